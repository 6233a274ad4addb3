"""Which groups are off, and which by more than the tolerance: one decision for all readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import Forecast
from evenhand._format import at_least
from evenhand._validate import InputError
from evenhand.audits import Audit, audit, parse_condition
from evenhand.figures import plot_groups, style
from evenhand.report import findings_of
from evenhand.report.findings import Findings
from evenhand.report.sentences import main_findings

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


def calibrated() -> Audit:
    return audited(*people(2000, 1))


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


def of_draws() -> Audit:
    X, y = people(2000, 9)
    forecast = Forecast.from_normal(np.zeros(2000), np.full(2000, 0.6)).randomized(0.2)
    return audit(forecast, X, y, features=X, groups=["sex"], random_state=0, **QUICK)


MAKE: tuple[Callable[[], Audit], ...] = (calibrated, planted, small_shift, leaking, small, of_draws)


@pytest.fixture(scope="module")
def audits() -> dict[str, Audit]:
    return {make.__name__: make() for make in MAKE}


def read(found: Audit) -> Findings:
    return findings_of(found.to_dict(), found.notes)


def brute_force(found: Audit, tolerance: float) -> tuple[set[str], set[str]]:
    """Return names of named groups that are off and that are a problem, by the definition."""
    off, problems = set(), set()
    for row in found.groups.to_dict("records")[1:]:
        if row["too_small"] or row["possible_leak"] or not row["p_adjusted"] < 0.05:
            continue
        off.add(row["group"])
        if row["error"] > tolerance:
            problems.add(row["group"])
    return off, problems


@pytest.mark.parametrize("tolerance", [0.0, 0.02, 1.0])
@pytest.mark.parametrize("name", [make.__name__ for make in MAKE])
def test_all_readers_call_the_same_groups_off(
    audits: dict[str, Audit], name: str, tolerance: float
) -> None:
    found = replace(audits[name], tolerance=tolerance)
    off, problems = brute_force(found, tolerance)
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


@pytest.mark.parametrize("name", ["small_shift", "leaking", "small"])
def test_the_figure_colours_what_the_audit_decided(audits: dict[str, Audit], name: str) -> None:
    found = audits[name]
    axes = plot_groups(found.groups, tolerance=found.tolerance)
    places = {}
    for container in axes.containers:
        (line, *_) = container.lines
        for place in np.asarray(line.get_xydata())[:, 1]:
            places[int(place)] = str(line.get_color())
    for place, row in enumerate(found.groups.to_dict("records")):
        color = style.RED if row["problem"] else style.ORANGE if row["off"] else style.BLUE
        is_unjudged = row["too_small"] or row["possible_leak"]
        assert places[place] == (style.GREY if is_unjudged else color)
    labels = axes.get_legend_handles_labels()[1]
    assert "tolerance: up to 2 points" in labels


def test_a_group_that_is_off_by_one_point_is_no_problem(audits: dict[str, Audit]) -> None:
    """The planted shift of 0.04 is an error of 0.04 / (2 sqrt(pi)) = 1.13 points."""
    found = audits["small_shift"]
    known = read(found)
    assert "region = 2" in {group.name for group in known.seen}
    assert not known.problems
    (sentence,) = [
        str(one) for one in main_findings(known).sentences if str(one).startswith("Errors seen")
    ]
    assert sentence.startswith("Errors seen within the tolerance (2 points): ")
    assert "region = 2" in sentence
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


def test_a_large_tolerance_leaves_no_problem_and_none_leaves_all(audits: dict[str, Audit]) -> None:
    for found in audits.values():
        everything, nothing = (read(replace(found, tolerance=t)) for t in (1.0, 0.0))
        assert not everything.problems
        assert not nothing.seen
        of_groups = {g.name for g in nothing.problems if g not in nothing.overall}
        assert of_groups == {g.name for g in everything.seen}


def test_what_is_judged_is_judged_with_the_confidence_of_the_audit() -> None:
    X, y = people(1500, 10)
    y = y + 0.12 * (X["region"] == "3")
    found = {level: audited(X, y, confidence=level) for level in (0.5, 0.999)}
    for level, one in found.items():
        expected = one.groups["p_adjusted"] < 1 - level
        assert list(one.groups["off"]) == list(expected)
    assert found[0.5].groups["off"].sum() >= found[0.999].groups["off"].sum()


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


@pytest.mark.parametrize("value", [-0.1, float("nan"), "much"])
def test_a_tolerance_is_a_share(value: Any) -> None:
    with pytest.raises(InputError, match="tolerance must satisfy 0 <= tolerance <= 1"):
        audited(*people(100, 0), tolerance=value)
