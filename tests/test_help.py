"""The command in general: help pages, examples that parse, results on a terminal and as JSON."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest
import typer.main

from evenhand import Forecast, compare
from evenhand.audits import parse_condition
from evenhand.cli.commands import app

COMMANDS = vars(typer.main.get_command(app))["commands"]


def test_help_pages_name_every_option_and_fit_the_terminal(evenhand, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name, command in COMMANDS.items():
        shown = evenhand(name, "--help")
        assert (shown.code, shown.err) == (0, "")
        assert max(map(len, shown.out.splitlines())) <= 80
        # without borders and line breaks
        plain = " ".join(re.sub("[│╭╮╰╯─]", " ", shown.out).split())
        assert f"Usage: evenhand {name} " in plain
        options = [one for one in command.params if one.param_type_name == "option"]
        assert len(options) <= 25
        everything = evenhand(name, "--help-all").out
        for option in options:
            # each is described on one of the pages, and named on both
            assert re.search(rf"{option.opts[0]} +([A-Z|]+|<)", everything)
            assert option.opts[0] in shown.out
            assert bool(re.search(rf"│.*{option.opts[0]} +", shown.out)) != option.hidden
        (as_json,) = [one for one in command.params if "--json" in one.opts]
        assert "JSON" in as_json.help
    assert len(evenhand("audit", "--help").out.splitlines()) <= 60


def examples():
    return [
        (name, line)
        for name, command in COMMANDS.items()
        for line in command.help.partition("Examples:")[2].split("\n\n")
        if line.startswith("evenhand ")
    ]


def test_every_command_has_examples_that_are_calls_with_its_options():
    assert {name for name, _ in examples()} == set(COMMANDS)
    for name, line in examples():
        program, command, *rest = shlex.split(line)
        assert (program, command) == ("evenhand", name)
        context = COMMANDS[command].make_context(command, rest)
        for condition in context.params.get("fail_if") or ():
            parse_condition(condition)


# The option --json: one document on standard output, messages on standard error.

SEARCHED = ("--features", "x,z")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("json")
    random = np.random.default_rng(0)
    n = 240
    table = pd.DataFrame({"id": np.arange(n), "x": random.normal(size=n), "z": random.random(n)})
    table = table.assign(mu=table["x"], sigma=1.0, narrow=0.5)
    table["y"] = table["x"] + random.normal(size=n)
    table.to_csv(folder / "table.csv", index=False)
    return folder


def test_standard_output_of_the_demo_is_one_json_document(tmp_path, evenhand, monkeypatch):
    # the demo trains for a minute; its results have tests of their own
    monkeypatch.setattr("evenhand.demo.run", lambda *args, **more: ("text", {"a": 1.0}))
    done = evenhand("demo", "--out", tmp_path / "demo", "--json").done()
    assert isinstance(json.loads(done.out, parse_constant=pytest.fail), dict)


def test_compare_fails_if_a_group_got_worse(place, tmp_path, evenhand):
    table = ("compare", place / "table.csv", "--target", "y", *SEARCHED, "--fail-if-worse")
    both = [("--forecast", f"mean=mu,std={std}") for std in ("narrow", "sigma")]
    worse = evenhand(*table, *both[1], *both[0])
    assert worse.code == 1
    assert worse.err == "failed: a group got significantly worse by more than the tolerance\n"
    assert worse.out.startswith("Before: mean=mu,std=sigma. After: mean=mu,std=narrow. 240 rows of")
    assert "\nWORSE in " in worse.out
    more = ("--out", tmp_path / "page.html", "--tables", tmp_path / "tables", "--json")
    better = evenhand(*table, *both[0], *both[1], *more).done()
    assert isinstance(json.loads(better.out, parse_constant=pytest.fail), dict)
    assert (tmp_path / "page.html").is_file()
    assert (tmp_path / "tables" / "groups.csv").is_file()


def test_a_table_is_compared_as_two_forecasts_are_in_python(place, tmp_path, evenhand):
    stds = ("narrow", "sigma")
    paths = [tmp_path / f"{std}.json" for std in stds]
    for std, path in zip(stds, paths, strict=True):
        options = ("--forecast", f"mean=mu,std={std}", "--target", "y", *SEARCHED, "--id", "id")
        evenhand("audit", place / "table.csv", *options, "--out", path).done()
    forecasts = [word for std in stds for word in ("--forecast", f"mean=mu,std={std}")]
    # halves of features are scanned from 300 rows on
    X = pd.read_csv(place / "table.csv", float_precision="round_trip").drop(columns="id")
    X = pd.concat([X] * 3, ignore_index=True)
    X.to_csv(tmp_path / "large.csv", index=False)
    table = ("compare", tmp_path / "large.csv", "--target", "y")
    shown = evenhand(*table, *forecasts, "--json")
    assert (shown.code, shown.err) == (0, "")
    found = json.loads(shown.out)
    assert found["names"] == forecasts[1::2]
    both = [Forecast.from_normal(X["mu"].to_numpy(), X[std].to_numpy()) for std in stds]
    # groups are searched in columns that neither forecast uses
    expected = compare(*both, X[["x", "z"]], X["y"], random_state=0).to_dict()
    assert len(found["groups"]) > 4
    assert [found[key] for key in ("groups", "scores")] == [expected["groups"], expected["scores"]]
    # the command and the table are recorded
    assert found["provenance"]["after"]["data"]["name"] == "large.csv"
    assert "--forecast" in found["provenance"]["before"]["command"]
    for wrong in (("--forecast", "mean=mu,std=sigma"), (*forecasts, *forecasts)):
        assert "a table with --target and two --forecast" in evenhand(*table, *wrong).complaint()
    refused = evenhand("compare", *paths, *SEARCHED).complaint()
    assert "--features has no effect with two audits" in refused
    # without paired intervals nothing can be decided
    open_question = evenhand("compare", *paths, "--fail-if-worse")
    assert open_question.code == 2
    assert "--fail-if-worse needs paired intervals; Paired intervals: " in open_question.err
