"""Which groups are off, and which by more than the tolerance: one decision for all readers.

First line, chart, tables, figures and JSON of an audit have one count of problems.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import special

from evenhand import Audit, Forecast, Outcomes, audit, audit_pit, figures
from evenhand._format import at_least
from evenhand._validate import Floats, InputError
from evenhand.audits import parse_condition
from evenhand.report import audit_brief, findings_of
from evenhand.report.audit import audit_document
from evenhand.report.charts import Chart, Points
from evenhand.report.findings import Findings
from evenhand.report.sentences import main_findings
from repeats import repeats, statistical

PROBLEM = "problem found"
KINDS = ("0/1", "continuous", "counts", "amounts", "times", "weights", "PITs")
FOUND = re.compile(r"PROBLEM FOUND in ([\d,]+) groups?")
DRAWN = re.compile(r"(\d+) of (\d+) problems are drawn")


def made(kind: str, seed: int) -> Audit:
    """An audit with a fault of random size in a random group, with features and named groups."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = int(rng.choice([60, 320, 900, 2500]))
    X = pd.DataFrame(
        {"age": rng.integers(18, 90, n), "job": rng.choice(["a", "b", "c"], n), "x": rng.random(n)}
    )
    m = rng.normal(size=n)
    off = np.where(X["job"] == rng.choice(["a", "b"]), rng.choice([0.0, 0.3, 1.0]), 0.0)
    steep = rng.choice([1.0, 1.0, 0.6])
    options: dict[str, Any] = {
        "X": X,
        "groups": ["job"],
        "learned_masses": (0.5,) if rng.random() < 0.5 else (),
        "masses": (0.2, 1.0),
        "n_simulations": 2,
        "random_state": seed,
    }
    outcome: Floats | Outcomes = steep * m + off + rng.normal(size=n)
    forecast = Forecast.from_normal(m, np.ones(n))
    if kind == "PITs":
        return audit_pit(special.ndtr(outcome - m), **options)
    if kind == "0/1":
        outcome = (rng.random(n) < special.expit(steep * m - 1 + off)).astype(float)
        forecast = Forecast.from_probability(special.expit(m - 1))
    elif kind == "counts":
        outcome = rng.poisson(np.exp(steep * m / 2 + off)).astype(float)
        forecast = Forecast.from_poisson(np.exp(m / 2))
    elif kind == "amounts":
        outcome = np.where(rng.random(n) < special.expit(m - 1 + off), 0.0, 30 + outcome)
        amount = Forecast.from_normal(30 + m, np.ones(n))
        forecast = Forecast.from_hurdle(special.expit(m - 1), amount)
    elif kind == "times":
        grid = np.linspace(0.1, 8, 60)
        survival = np.exp(-grid / np.exp(m / 2)[:, None])
        time, lost = rng.exponential(np.exp(steep * m / 2 + off)), rng.exponential(3, n)
        outcome = np.minimum(time, lost)
        forecast = Forecast.from_survival(grid, survival, horizon=3.0)
        outcome = Outcomes(outcome, time < lost, horizon=3.0)
    elif kind == "weights":
        outcome = Outcomes(outcome, weight=rng.choice([1.0, 3.0], n))
    return audit(forecast, y=outcome, **options)


def rows_with(found: Audit, column: str) -> int:
    """Number of distinct sets of rows that the tables of an audit mark."""
    tables = [found.groups, found.by_forecast, found.scan, found.positive_part]
    marked: set[tuple[Any, ...]] = set()
    for place, table in enumerate(tables):
        for row in table.to_dict("records") if column in table else []:
            if row[column]:
                of_part = place == 3
                is_everyone = row["group"] == "everyone"
                bias = float(np.nan_to_num(row["bias"]))
                rows = (row["n"], round(row["error"], 9), round(bias, 9))
                marked.add((of_part, is_everyone, *rows))
    return len(marked) + int(found.learned[column].sum())


@statistical
@pytest.mark.parametrize("kind", KINDS)
def test_text_chart_tables_and_json_have_one_count(kind: str) -> None:
    for seed in range(repeats(300 // len(KINDS) + 1, shorter=14)):
        found = made(kind, seed)
        plain = json.loads(json.dumps(found.to_dict()))
        status = plain["status"]
        text = audit_brief(plain)
        said = FOUND.search(" ".join(text.split()))
        verdict = {
            "problem found": "PROBLEM FOUND",
            "no problem found": "NO PROBLEM FOUND",
            "too few rows": "TOO FEW ROWS",
        }[status["verdict"]]
        assert text.split("\n")[1].startswith(verdict)
        n_problems = int(said[1].replace(",", "")) if said else 0
        assert n_problems == status["n_problems"] == found.status.n_problems
        assert (status["verdict"] == "problem found") == (n_problems > 0)
        # the same rows under two names count once, and everyone once
        assert n_problems == rows_with(found, "problem")
        check_groups(found)
        document = audit_document(findings_of(plain))
        charts = [part for part in document.picture.parts if isinstance(part, Chart)]
        drawn = sum(
            len(layer.points)
            for chart in charts
            for layer in chart.layers
            if isinstance(layer, Points) and layer.label == PROBLEM
        )
        noted = DRAWN.search(str(document.picture))
        assert drawn == (int(noted[1]) if noted else n_problems)
        assert noted is None or int(noted[2]) == n_problems


# Decisions of the audit on each group.

QUICK: dict[str, Any] = {"masses": (0.5,), "learned_masses": (0.2,), "n_simulations": 2}


def people(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features and standard normal outcomes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.uniform(size=n),
            "score": rng.uniform(size=n),
            "sex": rng.choice(["f", "m"], n),
            "region": rng.integers(0, 4, n).astype(str),
        }
    )
    return X, rng.normal(size=n)


def audited(X: pd.DataFrame, y: np.ndarray, **options: Any) -> Audit:
    forecast = Forecast.from_normal(np.zeros(len(y)), np.ones(len(y)))
    given: dict[str, Any] = {"features": X, "groups": ["sex", "region"], "random_state": 0}
    return audit(forecast, X, y, **(QUICK | given | options))


def planted() -> Audit:
    X, y = people(3000, 2)
    return audited(X, y + 0.7 * ((X["age"] > 0.5) & (X["sex"] == "f")))


def small_shift() -> Audit:
    """All of region 2 is off by about 1.1 points, which 40,000 rows show."""
    X, y = people(40_000, 4)
    shifted = y + 0.04 * (X["region"] == "2").to_numpy()
    return audited(X, shifted, features=X[["region"]], learned_masses=())


def leaking() -> Audit:
    X, y = people(900, 5)
    return audited(X, y, groups={"high": y > 0, "sex": X["sex"]})


def small() -> Audit:
    X, y = people(300, 6)
    few = np.arange(300) < 12
    return audited(X, y + 1.0, groups={"few": few, "sex": X["sex"]})


@pytest.fixture(scope="module")
def audits() -> dict[str, Audit]:
    return {make.__name__: make() for make in (planted, small_shift, leaking, small)}


def read(found: Audit) -> Findings:
    return findings_of(found.to_dict())


def brute_force(found: Audit, tolerance: float) -> tuple[set[str], set[str]]:
    """Return names of named groups that are off and that are a problem, by the definition."""
    off, problems = set(), set()
    for row in found.groups.to_dict("records")[1:]:
        if row["too_small"] or row["possible_leak"] or not row["p_adjusted"] < 0.05:
            continue
        off.add(row["group"])
        # the second rule for 0/1 outcomes
        is_steep = not 0.8 <= np.nan_to_num(row.get("slope", 1.0), nan=1.0) <= 1.25
        if row.get("km_error", row["error"]) > tolerance or is_steep:
            problems.add(row["group"])
    return off, problems


def test_all_readers_call_the_same_groups_off(audits: dict[str, Audit]) -> None:
    for found in audits.values():
        for tolerance in (0.0, 0.02, 1.0):
            check_groups(replace(found, tolerance=tolerance))


def check_groups(found: Audit) -> None:
    """Compare the groups that an audit, its findings and its sentences call off."""
    off, problems = brute_force(found, found.tolerance)
    held, known = found.to_dict(), read(found)
    named = held["groups"][1:]
    assert {row["group"] for row in named if row["off"]} == off
    assert {row["group"] for row in named if row["problem"]} == problems
    counted = [group for group in known.named if group.same_as is None]
    assert {group.name for group in counted if group.is_off} <= off
    assert {group.name for group in counted if group.is_problem} <= problems
    # the same rows are called the same under both names
    scan = {row["group"]: (row["off"], row["problem"]) for row in held["scan"]}
    for row in named:
        if row["scanned_as"] is not None and not row["possible_leak"]:
            assert scan[row["scanned_as"]] == (row["off"], row["problem"])
    assert all(scan[g.name] == (g.is_off, g.is_problem) for g in known.scanned)
    # nothing is a problem without being off
    assert all(is_off or not is_problem for is_off, is_problem in scan.values())
    assert set(known.seen).isdisjoint(known.problems)
    listed = {one.name for one in main_findings(known).sentences if one.name and known.problems}
    names = {f"{group.name[:1].upper()}{group.name[1:]}" for group in known.problems}
    names |= {group.name for group in known.problems}
    assert listed - {str(leak["name"]) for leak in held["possible_leaks"]} <= names


def test_the_figure_colours_what_the_audit_decided(audits: dict[str, Audit]) -> None:
    for found in audits.values():
        places = {}
        for container in figures.plot_groups(found.groups).containers:
            (line, *_) = container.lines
            for place in np.asarray(line.get_xydata())[:, 1]:
                places[int(place)] = str(line.get_color())
        for place, row in enumerate(found.groups.to_dict("records")):
            color = (
                figures.RED if row["problem"] else figures.ORANGE if row["off"] else figures.BLUE
            )
            is_unjudged = row["too_small"] or row["possible_leak"]
            assert places[place] == (figures.GREY if is_unjudged else color)


def test_a_group_that_is_off_by_one_point_is_no_problem(audits: dict[str, Audit]) -> None:
    """The planted shift of 0.04 is an error of 0.04 / (2 sqrt(pi)) = 1.13 points."""
    found = audits["small_shift"]
    known = read(found)
    assert "region = 2" in {group.name for group in known.seen}
    assert not known.problems
    said = " ".join(map(str, main_findings(known).sentences))
    assert "region = 2" in said.partition("Errors seen within the tolerance (2 points): ")[2]
    # with a smaller tolerance the same finding leads
    strict = read(replace(found, tolerance=0.005))
    assert strict.leading is not None
    assert strict.leading.name in main_findings(strict).lead


def test_the_lead_has_the_largest_lower_bound(audits: dict[str, Audit]) -> None:
    for found in audits.values():
        known = read(found)
        if known.leading is not None:
            assert known.leading.least == max(group.least for group in known.problems)
    known = read(audits["planted"])
    assert known.leading is not None
    assert f"at least {at_least(known.leading.error.low)}" in main_findings(known).lead
    learned = [one.group for one in known.learned if one.group.is_problem]
    assert learned
    assert set(learned) < set(known.problems)


def test_the_gate_counts_the_groups_beyond_the_tolerance(audits: dict[str, Audit]) -> None:
    gate = parse_condition("groups_beyond_tolerance > 0")
    assert gate.holds(audits["planted"])
    assert not gate.holds(audits["small_shift"])
    known = read(audits["planted"])
    n = sum((group.error.low or 0) > 0.02 for group in known.examined)
    assert gate.value(audits["planted"]) - n in (0, 1)
    for limit in ("-1", "0.5", "nan"):
        with pytest.raises(InputError, match="limit"):
            parse_condition(f"groups_beyond_tolerance > {limit}")


def test_a_tolerance_is_a_share() -> None:
    for value in (-0.1, float("nan"), "much"):
        with pytest.raises(InputError, match="tolerance must satisfy 0 <= tolerance <= 1"):
            audited(*people(100, 0), tolerance=value)
