"""Status of audits, their short text and the next steps."""

from __future__ import annotations

import json
import shlex
from copy import deepcopy
from dataclasses import asdict
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer.main

from browser.report_examples import AUDITS, FAMILY, full_deterministic, group, rates
from evenhand import Forecast, audit, audit_pit
from evenhand.audits import parse_condition, with_conditions
from evenhand.cli.commands import app
from evenhand.report import (
    JudgedCondition,
    Status,
    Verdict,
    audit_brief,
    audit_text,
    findings_of,
    status_of,
)
from evenhand.report.next_steps import next_steps
from evenhand.report.status import detectable_error
from parts_examples import QUICK_AUDIT

N = 600
QUICK = QUICK_AUDIT | {"learned_masses": (0.2,)}


def of_kind(kind: str) -> dict[str, Any]:
    """Return an audit of forecasts of a kind of outcome that are wrong for people over 60."""
    random = np.random.default_rng(3)
    X = pd.DataFrame({"age": random.uniform(20, 80, N), "sex": random.choice(["f", "m"], N)})
    old = X["age"].to_numpy() > 60
    mean = np.exp(random.normal(0.5, 0.4, N))
    normal = Forecast.from_normal(np.full(N, 100.0), np.full(N, 20.0))
    amount = random.normal(100, 20, N) + 15 * old
    made: dict[str, tuple[Forecast, Any]] = {
        "events": (
            Forecast.from_probability(mean / 10),
            random.random(N) < mean / 10 * np.where(old, 3, 1),
        ),
        "counts": (Forecast.from_poisson(mean), random.poisson(mean * np.where(old, 1.5, 1))),
        "amounts": (
            Forecast.from_hurdle(np.full(N, 0.4), normal),
            np.where(random.random(N) < 0.4, 0.0, amount),
        ),
        "doses": (normal, amount),
        "served doses": (normal.randomized(0.2, random_state=0), amount),
    }
    forecast, outcome = made[kind]
    y = pd.Series(np.asarray(outcome, dtype=float), name="outcome")
    return audit(forecast, y=y, features=X, groups=X[["sex"]], **QUICK).to_dict()


KINDS = ("events", "counts", "amounts", "doses", "served doses")
EVERY = (*("full_randomized", "nothing", "unknown_full"), *KINDS)


@cache
def audit_of(name: str) -> dict[str, Any]:
    """Return an audit of `EVERY`, made when a test first needs it."""
    made: dict[str, Any] = AUDITS[name]() if name in AUDITS else of_kind(name)
    return made


COMMANDS: dict[str, Any] = vars(typer.main.get_command(app))["commands"]


def yes_no(**more: Any) -> dict[str, Any]:
    """Return the audit of scores made by hand, with other values."""
    return deepcopy(audit_of("yes_no")) | more


def calm_scores(n: int = 20_000, predicted: float = 0.5, reach: float = 0.015) -> dict[str, Any]:
    """Return an audit of right scores, whose intervals have a half width."""
    everyone = rates("everyone", n, predicted, predicted, reach)
    own = [
        rates(f"predicted probability {k} (tenth {k})", n // 10, predicted, predicted, reach)
        | {"key": "probability"}
        for k in range(1, 11)
    ]
    size = {"error": 0.0, "low": 0.0, "high": reach, "chance": 0.005, "is_complete": True}
    given = size | {"tests": {"level": 1.0, "trend": 0.5, "bend": 0.4}}
    values = yes_no(n_samples=n, groups=[everyone], by_forecast=own, given_forecast=given)
    return values | {"probability_scores": []}


def doses(*groups: dict[str, Any], n: int = 50_000, **more: Any) -> dict[str, Any]:
    """Return an audit of continuous outcomes: right on average, and these groups."""
    empty = full_deterministic() | {"scan": [], "learned": [], "certificate": None, "notes": []}
    family = FAMILY | {"n_tests": 6, "n_groups": len(groups), "n_by_forecast": 0}
    calm = group("everyone", n, 0.001, 0.0, 0.006)
    return empty | {"groups": [calm, *groups], "n_samples": n, "family": family} | more


def status(values: dict[str, Any]) -> Status:
    return status_of(findings_of(values))


# verdict.md, section 3: errors of groups of k rows, one of G, with a share of 2 points
@pytest.mark.parametrize(
    ("k", "continuous", "half", "tenth"),
    [
        (150, 10.75, 18.2, 11.1),
        (500, 5.89, 9.9, 6.0),
        (1000, 4.16, 7.0, 4.2),
        (2000, 2.94, 4.9, 3.0),
    ],
)
def test_detectable_errors_are_those_of_the_specification(
    k: int, continuous: float, half: float, tenth: float
) -> None:
    # a group of a continuous outcome has two tests
    assert 100 * detectable_error(k, 0.02 / 50 / 2) == pytest.approx(continuous, abs=0.005)
    assert 100 * detectable_error(k, 0.02 / 50, 0.25) == pytest.approx(half, abs=0.06)
    assert 100 * detectable_error(k, 0.02 / 50, 0.09) == pytest.approx(tenth, abs=0.06)


def test_an_error_of_the_detectable_size_is_found_in_80_percent_of_tables() -> None:
    random = np.random.default_rng(0)
    level, k, n_tables = 0.001, 800, 4000
    # PITs whose mean is off by the detectable error, the lower bound of their W1 distance
    error = detectable_error(k, level)
    means = random.normal(error, 1 / np.sqrt(12 * k), n_tables)
    found = np.abs(means) * np.sqrt(12 * k) > NormalDist().inv_cdf(1 - level / 2)
    # 4,000 tables: three standard errors are 1.9%
    assert abs(found.mean() - 0.8) < 0.02


@pytest.mark.parametrize("n", [132, 133])
def test_continuous_outcomes_need_133_rows(n: int) -> None:
    assert status(doses(n=n)).verdict is (Verdict.TOO_FEW if n < 133 else Verdict.NO_PROBLEM)


def test_yes_no_outcomes_need_370_rows_or_14_events() -> None:
    for n, predicted, expected in (
        (360, 0.5, Verdict.TOO_FEW),
        (380, 0.5, Verdict.NO_PROBLEM),
        # 5% events: not even a doubling would show
        (240, 0.05, Verdict.TOO_FEW),
        (320, 0.05, Verdict.NO_PROBLEM),
    ):
        assert status(calm_scores(n, predicted, 0.5)).verdict is expected, (n, predicted)


def test_a_problem_takes_precedence_over_too_few_rows() -> None:
    few = doses(group("a", 60, 0.4, 0.1, 0.5), n=100)
    assert status(few).verdict is Verdict.PROBLEM
    assert status(doses(group("a", 60, 0.4, 0.0, 0.5), n=100)).verdict is Verdict.TOO_FEW


def test_the_verdict_reads_the_marks_of_the_audit() -> None:
    row = group("a", 5000, 0.09, 0.01, 0.2)
    for mark in (True, False):
        found = status(doses(row | {"problem": mark}))
        assert (found.verdict is Verdict.PROBLEM, found.n_problems) == (mark, int(mark))
    # the whole interval beyond the tolerance is a count of its own
    for low, n_beyond in ((0.02, 0), (0.0201, 1)):
        assert status(doses(group("a", 5000, 0.09, low, 0.2))).n_beyond == n_beyond


def test_all_people_count_once_whichever_number_shows_their_problem() -> None:
    given = {"error": 0.045, "low": 0.019, "high": None, "chance": 0.007, "is_complete": False}
    given |= {"tests": {"level": 0.6, "trend of mean": 1e-9}}
    pooled = group("everyone", 20_000, 0.003, 0.0, 0.01) | {"off": True, "problem": True}
    findings = findings_of(doses(groups=[pooled], given_forecast=given))
    assert [one.name for one in findings.problems] == ["everyone, given the own forecast"]
    assert status_of(findings).n_problems == 1
    # a pooled error beyond the tolerance is the mark of everyone
    both = [group("everyone", 20_000, 0.03, 0.02, 0.04)]
    findings = findings_of(doses(groups=both, given_forecast=given))
    assert [one.name for one in findings.problems] == ["everyone"]


def test_the_same_rows_count_once() -> None:
    own = rates("predicted probability 0.8 to 0.9 (tenth 10)", 2000, 0.84, 0.7, 0.03)
    own |= {"key": "probability", "scanned_as": "score > 0.8"}
    named = rates("top scores", 2000, 0.84, 0.7, 0.03) | {"scanned_as": "score > 0.8"}
    scan = [
        rates(name, 2000, 0.84, 0.7, 0.03, p_adjusted=0.001, features=features)
        for name, features in (("score > 0.8", ["score"]), ("grade = A and x", ["grade", "x"]))
    ]
    other = rates("score <= 0.1", 2000, 0.1, 0.24, 0.03, p_adjusted=0.001, features=["score"])
    everyone = rates("everyone", 20_000, 0.5, 0.5, 0.01)
    found = findings_of(yes_no(groups=[everyone, named], by_forecast=[own], scan=[*scan, other]))
    assert [one.name for one in found.problems] == [own["group"], "score <= 0.1"]
    assert (status_of(found).n_examined, status_of(found).n_problems) == (2, 2)
    assert [one.same_as for one in found.named] == [own["group"]]


def test_proven_needs_every_upper_end() -> None:
    assert status(calm_scores()).is_proven
    assert not status(calm_scores(reach=0.021)).is_proven
    calm = calm_scores()
    wide = rates("a", 500, 0.5, 0.5, 0.03)
    found = {"mass": 0.2, "n": 900, "n_judged": 4000, "error": 0.0, "low": 0.0, "p_adjusted": 1.0}
    many = {"groups": [*calm["groups"], wide]}
    for more in (
        many,
        {"groups": [*calm["groups"], wide | {"too_small": True}]},
        {"given_forecast": calm["given_forecast"] | {"is_complete": False}},
        {"given_forecast": calm["given_forecast"] | {"high": 0.021}},
        {"given_forecast": None},
        # its members are known by probability
        {
            "groups": [*calm["groups"], rates("b", 500, 0.5, 0.5, 0.01)],
            "membership": [{"group": "b"}],
        },
        # a search bounds its error from below alone
        {"learned": [found | {"off": True}]},
    ):
        assert not status(calm | more).is_proven, more
    # it is not described unless it is off
    assert status(calm | {"learned": [found | {"off": False}]}).is_proven
    # pooled errors of other outcomes may cancel
    given = {"error": 0.001, "low": 0.0, "high": None, "chance": 0.001, "is_complete": False}
    assert not status(doses(given_forecast=given)).is_proven


def test_conditions_do_not_change_the_verdict() -> None:
    for values in (yes_no(), calm_scores()):
        alone = status(values)
        for is_true in (True, False):
            one = JudgedCondition("problem", "problem", (), ">", 0, float(is_true), is_true)
            judged = values | {"conditions": [asdict(one)]}
            assert status(judged) == alone
            line = f"`--fail-if problem`: {'met' if is_true else 'not met'}."
            assert line in audit_brief(judged)
            assert line in audit_text(judged)


def test_conditions_of_a_gate_read_the_status() -> None:
    random = np.random.default_rng(0)
    found = audit_pit(random.random(400) ** 2, masses=[1.0], n_simulations=2, random_state=0)
    texts = ("problem", "too-few-rows", "not-proven", "groups_beyond_tolerance > 0")
    judged = with_conditions(found, map(parse_condition, texts))
    assert [one.is_true for one in judged.conditions] == [True, False, True, True]
    assert judged.status == found.status
    plain = json.loads(judged.to_json())
    assert plain["status"]["verdict"] == "problem found"
    assert [one["text"] for one in plain["conditions"]] == list(texts)
    # a report made from JSON has the same status
    assert status_of(findings_of(plain)) == found.status


def test_without_a_problem_the_text_says_what_the_rows_would_have_shown() -> None:
    named = [rates(f"g{k}", n, 0.5, 0.5, 0.1) for k, n in enumerate((1900, 500, 150))]
    values = calm_scores()
    values |= {"groups": [*values["groups"], *named], "family": FAMILY | {"n_groups": 50}}
    text = " ".join(audit_brief(values).split())
    # verdict.md: 9.9 points for 500 and 18.2 for 150 rows of one of 50 groups
    assert (
        "NO PROBLEM FOUND. These rows would have shown, with 80% probability, an error of" in text
    )
    assert "In a group of 500 rows 9.9 or more and in a group of 150 rows 18.2 or more." in text
    assert "Proven" not in text
    assert "Proven within 2 points." in audit_brief(calm_scores())
    few = " ".join(audit_brief(doses(n=75)).split())
    assert few.startswith("Audit of risk model: 75 rows, 0 groups TOO FEW ROWS. Only an error of")
    assert "75 rows are too few for an audit." in few


@pytest.mark.parametrize("name", EVERY)
def test_the_short_text_fits_a_screen(name: str) -> None:
    lines = audit_brief(audit_of(name)).splitlines()
    assert max(map(len, lines)) <= 100
    # a table by tenth has 14 lines
    assert len(lines) <= 24 + 14 * any(line.startswith("probability ") for line in lines)
    order = ["Caution", "Worst", "Also", "Everyone", "Proven", "Not tested"]
    order += ["Next", "All groups"]
    found = [line[:12].strip() for line in lines]
    labels = [label for label in found if label in order]
    assert labels == [label for label in order if label in labels]
    assert labels[-1] == "All groups"


def test_next_steps_repair_the_groups_by_their_rules() -> None:
    given = full_deterministic()
    rule = [{"comparisons": [], "or_missing": False}]
    given["off_groups"] = [
        {"group": "age > 44 and sex = f", "mass": 0.2, "rule": rule},
        {"group": "age > 45 and sex = f", "mass": None, "rule": rule},
        {"group": "sex=f", "mass": None, "rule": None},
    ]
    forecast = "mean=mu,std=sd"
    command = f"evenhand audit rows.csv --target 'pay $' --forecast={forecast} --groups sex"
    given["provenance"] = {"command": command}
    repair, *_ = next_steps(findings_of(given))
    assert shlex.split(repair.command) == [
        *("evenhand", "recalibrate", "OTHER.csv", "--target", "pay $", "--forecast", forecast),
        *("--by", "age > 44 and sex = f", "--by", "age > 45 and sex = f", "--out", "repaired"),
    ]
    assert repair.python.split("\n")[-1] == "repaired = found.repair(model, X_other, y_other)"
    text = audit_brief(given)
    # broken between options, as a shell reads it
    shown = text[text.index("evenhand recalibrate") : text.index("All groups ")]
    assert shlex.split(shown.replace("\\\n", " ")) == shlex.split(repair.command)
    # readers who audited with the command get no Python, and those who did not get it alone
    assert ">>>" not in audit_text(given)
    del given["provenance"]
    text = audit_text(given)
    assert ">>> repaired = found.repair(model, X_other, y_other)" in text
    assert "evenhand recalibrate" not in text


@pytest.mark.parametrize("name", EVERY)
def test_next_steps_are_commands_that_exist(name: str) -> None:
    steps = next_steps(findings_of(audit_of(name)))
    for step in steps:
        assert step.what.endswith(".")
        if not step.command:
            continue
        program, command, *words = shlex.split(step.command)
        assert program == "evenhand"
        COMMANDS[command].make_context(command, words)


def test_a_trend_is_repaired_for_all_people_and_a_tenth_by_its_rule() -> None:
    # the trend of the example is the smallest p-value of everyone
    step, *_ = next_steps(findings_of(yes_no()))
    assert step.what.startswith("Recalibrate all forecasts")
    command = "evenhand audit t.csv --target y --forecast probability=p"
    values = yes_no(provenance={"command": command})
    values["groups"][0] |= {"off": False, "problem": False}
    for row in values["by_forecast"][:-1]:
        row |= {"off": False, "problem": False}
    name = values["by_forecast"][-1]["group"]
    ends = ((">", "0.81"), ("<=", "0.87"))
    sides = [{"column": "predicted probability", "operator": o, "value": v} for o, v in ends]
    rule = [{"comparisons": sides, "or_missing": False}]
    values["off_groups"] = [{"group": name, "mass": None, "rule": rule}]
    step, *_ = next_steps(findings_of(values))
    words = shlex.split(step.command)
    expected = "predicted probability > 0.81 and predicted probability <= 0.87"
    assert words[words.index("--by") + 1] == expected
