"""Which groups are off, and which by more than the tolerance: one decision for all readers."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import Forecast
from evenhand._format import at_least
from evenhand._validate import InputError
from evenhand.audits import Audit, Tolerance, audit, parse_condition
from evenhand.figures import plot_groups, style
from evenhand.report import Findings, audit_html, findings_of, main_findings

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


def narrow() -> Audit:
    """Intervals too narrow for a region, by less than 2 points of error."""
    X, y = people(12_000, 3)
    return audited(X, y * np.where(X["region"] == "1", 1.15, 1.0))


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


def weighted() -> Audit:
    X, y = people(2000, 7)
    w = np.random.default_rng(7).integers(1, 4, 2000)
    return audited(X, y + 0.5 * (X["sex"] == "m"), sample_weight=w)


def bare() -> Audit:
    X, y = people(500, 8)
    return audited(X, y * 1.4, groups=None, features=X[:0].reindex(columns=[]))


def of_draws() -> Audit:
    X, y = people(2000, 9)
    forecast = Forecast.from_normal(np.zeros(2000), np.full(2000, 0.6)).randomized(0.2)
    return audit(forecast, X, y, features=X, groups=["sex"], random_state=0, **QUICK)


MAKE: tuple[Callable[[], Audit], ...] = (
    calibrated,
    planted,
    narrow,
    small_shift,
    leaking,
    small,
    weighted,
    of_draws,
)


@pytest.fixture(scope="module")
def audits() -> dict[str, Audit]:
    return {make.__name__: make() for make in MAKE}


def read(found: Audit) -> Findings:
    return findings_of(found.to_dict(), found.notes)


def brute_force(found: Audit, tolerance: Tolerance) -> tuple[set[str], set[str]]:
    """Return names of named groups that are off and beyond the tolerance, by the definition."""
    off, beyond = set(), set()
    for row in found.groups.to_dict("records")[1:]:
        if row["too_small"] or row["possible_leak"] or not row["p_adjusted"] < 0.05:
            continue
        off.add(row["group"])
        gaps = [abs(row["coverage_80"] - 0.8), abs(row["coverage_90"] - 0.9)]
        if row["error"] > tolerance.error or max(gaps) > tolerance.coverage:
            beyond.add(row["group"])
    return off, beyond


def drawn(page: str, section: str) -> dict[str, str]:
    """Return the colour of the mark of each group that a table of the page draws."""
    listed = page.partition(f'<section id="{section}">')[2].partition("</section>")[0]
    rows = re.findall(r'<th scope="row">(.*?)</th>(.*?)</tr>', listed, flags=re.S)
    found = {}
    for name, row in rows:
        mark = re.search(r'<g class="mark (\w+)"', row)
        if mark:
            found[html.unescape(name)] = mark[1]
    return found


COLORS = {(False, False): "blue", (True, False): "orange", (True, True): "red"}


@pytest.mark.parametrize("tolerance", [0.0, 0.02, 1.0])
@pytest.mark.parametrize("name", [make.__name__ for make in MAKE])
def test_all_readers_call_the_same_groups_off(
    audits: dict[str, Audit], name: str, tolerance: float
) -> None:
    accepted = Tolerance(tolerance, 0.05 if tolerance else 0.0)
    if tolerance == 1:
        accepted = Tolerance(1.0, 1.0)
    found = replace(audits[name], tolerance=accepted)
    off, beyond = brute_force(found, accepted)
    held, known = found.to_dict(), read(found)
    named = held["groups"][1:]
    assert {row["group"] for row in named if row["off"]} == off
    assert {row["group"] for row in named if row["beyond_tolerance"]} == beyond
    assert {group.name for group in known.named if group.is_off} == off
    assert {group.name for group in known.named if group.is_beyond} == beyond
    # the same rows are called the same under both names
    scan = {row["group"]: (row["off"], row["beyond_tolerance"]) for row in held["scan"]}
    for row in named:
        if row["scanned_as"] is not None and not row["possible_leak"]:
            assert scan[row["scanned_as"]] == (row["off"], row["beyond_tolerance"])
    assert {g.name: (g.is_off, g.is_beyond) for g in known.scanned} == scan
    # nothing is beyond a tolerance without being off, and nothing that is not off has a lower bound
    assert all(is_off or not is_beyond for is_off, is_beyond in scan.values())
    for row in (*named, *held["scan"]):
        is_tested = row["p_adjusted"] is not None and not row.get("possible_leak")
        assert row["off"] or not is_tested or not (row["error_low"] or 0) > 0
    # figures
    page = found.to_html()
    for section, groups in (("groups", known.named), ("features", known.scanned)):
        expected = {g.name: COLORS[g.is_off, g.is_beyond] for g in groups}
        colors = drawn(page, section)
        assert all(colors[key] == expected[key] for key in colors.keys() & expected.keys())
        assert {g.name for g in groups if g.is_beyond} <= set(colors) or len(groups) > 100
    # the verdict lists no group that is not beyond the tolerance
    assert known.beyond == tuple(group for group in known.off if group.is_beyond)
    assert set(known.tolerated).isdisjoint(known.beyond)
    listed = {one.name for one in main_findings(known).sentences if one.name and known.beyond}
    assert listed - {str(leak["name"]) for leak in held["possible_leaks"]} <= {
        group.name for group in known.beyond
    }


@pytest.mark.parametrize("name", [make.__name__ for make in MAKE])
def test_the_figure_colours_what_the_audit_decided(audits: dict[str, Audit], name: str) -> None:
    found = audits[name]
    axes = plot_groups(found.groups, tolerance=found.tolerance.error)
    places = {}
    for container in axes.containers:
        (line, *_) = container.lines
        for place in np.asarray(line.get_xydata())[:, 1]:
            places[int(place)] = str(line.get_color())
    for place, row in enumerate(found.groups.to_dict("records")):
        color = style.RED if row["beyond_tolerance"] else style.ORANGE if row["off"] else style.BLUE
        is_unjudged = row["too_small"] or row["possible_leak"]
        assert places[place] == (style.GREY if is_unjudged else color)
    labels = axes.get_legend_handles_labels()[1]
    assert "tolerance: up to 2 points" in labels


def test_a_group_that_is_off_by_one_point_is_no_headline(audits: dict[str, Audit]) -> None:
    """The planted shift of 0.04 is an error of 0.04 / (2 sqrt(pi)) = 1.13 points."""
    found = audits["small_shift"]
    known = read(found)
    assert "region = 2" in {group.name for group in known.tolerated}
    assert not known.beyond
    assert known.headline is None
    verdict = main_findings(known)
    assert verdict.lead.startswith("No group is significantly off by more than the tolerance")
    (sentence,) = [str(one) for one in verdict.sentences if str(one).startswith("Significantly")]
    assert sentence.startswith("Significantly off, but within the tolerance (2 points of error, 5")
    assert "region = 2" in sentence
    # with a smaller tolerance the same finding leads
    strict = read(replace(found, tolerance=Tolerance(0.005)))
    assert strict.headline is not None
    assert strict.headline.name in main_findings(strict).lead


def test_the_headline_has_the_largest_lower_bound(audits: dict[str, Audit]) -> None:
    for found in audits.values():
        known = read(found)
        bounds = [group.error.low or 0 for group in known.distinct if group.is_beyond]
        if known.headline is not None:
            assert (known.headline.error.low or 0) == max(bounds)
        else:
            assert not bounds
    known = read(audits["planted"])
    assert known.headline is not None
    # of all findings, also learned groups and all people, that of the largest lower bound leads
    learned = [found.group for found in known.learned if found.group.is_beyond]
    found = [*known.beyond, *learned, known.everyone]
    assert known.leading is max(found, key=lambda group: group.error.low or 0)
    assert (
        f"is off by at least {at_least(known.leading.error.low)} points" in main_findings(known).lead
    )
    assert known.headline.name in main_findings(replace(known, learned=())).lead
    # estimates of smaller groups may be larger
    assert all(known.headline.rank <= group.rank for group in known.beyond)


def test_a_large_tolerance_leaves_no_headline_and_none_leaves_all(audits: dict[str, Audit]) -> None:
    for found in audits.values():
        everything = read(replace(found, tolerance=Tolerance(1.0, 1.0)))
        assert not everything.beyond
        assert everything.learned_off is None
        nothing = read(replace(found, tolerance=Tolerance(0.0, 0.0)))
        assert not nothing.tolerated
        assert {g.name for g in nothing.beyond} == {g.name for g in everything.tolerated}


def test_what_is_judged_is_judged_with_the_confidence_of_the_audit() -> None:
    X, y = people(1500, 10)
    y = y + 0.12 * (X["region"] == "3")
    found = {level: audited(X, y, confidence=level) for level in (0.5, 0.999)}
    for level, one in found.items():
        expected = one.groups["p_adjusted"].iloc[1:] < 1 - level
        assert list(one.groups["off"].iloc[1:]) == list(expected)
    assert found[0.5].groups["off"].sum() >= found[0.999].groups["off"].sum()


def test_groups_proven_to_be_within_a_limit_are_counted() -> None:
    X, y = people(9000, 11)
    found = audited(X, y, within=0.08)
    known = read(found)
    n_within, n = known.n_within
    rows = [*found.groups.to_dict("records")[1:], *found.scan.to_dict("records")]
    names = set(found.groups["group"]) | set(found.groups["scanned_as"].dropna())
    listed = rows[: len(found.groups) - 1]
    listed += [row for row in rows[len(found.groups) - 1 :] if row["group"] not in names]
    assert n_within == sum(row["error_high"] <= 0.08 for row in listed) > 0
    sentences = [str(one) for one in main_findings(known).sentences]
    assert (
        f"{n_within} of {n} groups are proven to be off by at most 8 points, simultaneously with"
        " 95% confidence." in sentences
    )


def test_the_gate_counts_the_groups_beyond_the_tolerance(audits: dict[str, Audit]) -> None:
    gate = parse_condition("groups_beyond_tolerance > 0")
    assert gate.holds(audits["planted"])
    assert not gate.holds(audits["small_shift"])
    assert gate.value(audits["planted"]) == len(read(audits["planted"]).beyond)
    with pytest.raises(InputError, match="no groups were examined"):
        gate.holds(audit(Forecast.from_normal(np.zeros(50), np.ones(50)), y=people(50, 0)[1]))
    for limit in ("-1", "0.5", "nan"):
        with pytest.raises(InputError, match="limit"):
            parse_condition(f"groups_beyond_tolerance > {limit}")


def test_audits_of_version_4_are_judged_as_before(audits: dict[str, Audit]) -> None:
    held = deepcopy(audits["planted"].to_dict()) | {"schema": "evenhand.audit/4"}
    new = {"off", "beyond_tolerance", "simultaneous", "within"}
    for key in ("tolerance", "within", "family"):
        del held[key]
    for key, extra in (("groups", {"p_value", "p_adjusted"}), ("scan", set()), ("learned", set())):
        held[key] = [
            {name: value for name, value in row.items() if name not in new | extra}
            for row in held[key]
        ]
    known = findings_of(held)
    expected = {row["group"] for row in held["scan"] if (row["p_adjusted"] or 1) < 0.05}
    assert {group.name for group in known.scanned if group.is_off} == expected
    assert known.headline is not None
    page = audit_html(held)
    assert "pointwise 95% confidence intervals" in page


@pytest.mark.parametrize("option", ["tolerance", "coverage_tolerance"])
@pytest.mark.parametrize("value", [-0.1, 1.5, float("nan"), "much"])
def test_a_tolerance_is_a_share(option: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"{option} must satisfy 0 <= {option} <= 1"):
        audited(*people(100, 0), **{option: value})


def test_a_tolerance_is_reached_but_not_exceeded_up_to_rounding() -> None:
    tolerance = Tolerance(0.02, 0.05)
    found = tolerance.is_exceeded([0.02, 0.02, 0.021], {0.8: [0.75, 0.7499, 0.8], 0.9: [0.95] * 3})
    assert list(found) == [False, True, True]
    assert list(tolerance.is_exceeded([np.nan], {0.8: [np.nan]})) == [False]
