"""`--json` in every command: one JSON document on standard output, messages on standard error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.main import get_command

from command_outcome import Command
from evenhand.cli import app

NORMAL = ("--mean", "mu", "--std", "sigma")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table and a key."""
    folder = tmp_path_factory.mktemp("json")
    random = np.random.default_rng(0)
    n = 240
    table = pd.DataFrame({"id": np.arange(n), "x": random.normal(size=n), "z": random.random(n)})
    table = table.assign(mu=table["x"], sigma=1.0, narrow=0.5)
    table["y"] = table["x"] + random.normal(size=n)
    table.to_csv(folder / "table.csv", index=False)
    (folder / "key").write_bytes(b"a secret of enough bytes")
    (folder / "key").chmod(0o600)
    return folder


def audited(place: Path, evenhand: Command, name: str, std: str, *more: Any) -> Path:
    options = ("--mean", "mu", "--std", std, "--target", "y", "--features", "x,z", "--id", "id")
    out = ("--out", place / name)
    assert evenhand("audit", place / "table.csv", *options, *out, *more).code == 0
    return place / name


def randomize(place: Path, *more: Any) -> tuple[Any, ...]:
    return ("randomize", place / "table.csv", *NORMAL, "--id", "id", *more)


CALLS: dict[str, Callable[[Path, Path], tuple[Any, ...]]] = {
    "demo": lambda place, out: ("demo", "--out", out / "demo"),
    "randomize": lambda place, out: randomize(
        place, "--key-file", place / "key", "--out", out / "served.csv"
    ),
    "audit": lambda place, out: (
        *("audit", place / "table.csv", *NORMAL, "--target", "y", "--features", "x,z"),
        *("--tables", out / "tables"),
    ),
}
"""Calls of commands whose JSON is not read in the tests of the command."""


def test_every_command_has_the_option() -> None:
    for name, command in vars(get_command(app))["commands"].items():
        options = {option: one for one in command.params for option in one.opts}
        assert "JSON" in options["--json"].help, name


@pytest.mark.parametrize("name", CALLS)
def test_standard_output_is_one_json_document(
    name: str, place: Path, tmp_path: Path, evenhand: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the demo trains for a minute; its results have tests of their own
    monkeypatch.setattr("evenhand.demo.run", lambda *args, **more: ("text", {"a": 1.0}))
    done = evenhand(*CALLS[name](place, tmp_path), "--json")
    assert done.code == 0, done.err
    values = json.loads(done.out, parse_constant=pytest.fail)
    assert isinstance(values, dict)
    assert all(not line.startswith(("{", "}")) for line in done.err.splitlines())
    if name == "randomize":
        assert values["n_rows"] == 240
        assert values["key"] in done.err
    if name == "audit":
        assert (tmp_path / "tables" / "groups.csv").is_file()
        assert re.search(r"\d+ tables written to", done.err)


def test_compare_fails_if_a_group_got_worse(place: Path, tmp_path: Path, evenhand: Command) -> None:
    files = (("narrow.json", "narrow"), ("right.json", "sigma"))
    paths = [audited(place, evenhand, file, std) for file, std in files]
    worse = evenhand("compare", *reversed(paths), "--fail-if-worse")
    assert worse.code == 1
    assert worse.err == "failed: a group got significantly worse by more than the tolerance\n"
    assert worse.out.startswith("Comparison of right and narrow: 240 rows")
    more = ("--out", tmp_path / "page.html", "--tables", tmp_path / "tables", "--json")
    better = evenhand("compare", *paths, "--fail-if-worse", *more)
    assert better.code == 0
    assert isinstance(json.loads(better.out, parse_constant=pytest.fail), dict)
    assert (tmp_path / "page.html").is_file()
    assert (tmp_path / "tables" / "groups.csv").is_file()
    # without paired intervals nothing can be decided
    bare = audited(place, evenhand, "bare.json", "sigma", "--no-rows")
    open_question = evenhand("compare", bare, paths[0], "--fail-if-worse")
    assert open_question.code == 2
    assert "--fail-if-worse needs paired intervals" in open_question.err
