"""Rows of an audit from its plain values: directions, the same rows once, and the verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from statistics import NormalDist
from typing import Any

import msgspec

from evenhand._kinds import HIGHER, LOWER, MIXED, NARROW, WIDE
from evenhand.results import (
    MASS,
    ROUNDING,
    AuditRows,
    Detectable,
    Finding,
    GivenForecast,
    Note,
    Status,
    Verdict,
    plain,
)

replace = msgspec.structs.replace

TRENDS = {
    "trend of mean": "errors differ between low and high forecasts",
    "trend of width": "errors differ between narrow and wide forecasts",
}
"""What the trend tests of everyone find."""

GIVEN = "everyone, given the own forecast"
"""Name of all people where the mean error given the own forecast is meant."""


def rows_of(values: Mapping[str, Any]) -> AuditRows:
    """Return the rows of an audit from its plain values, with directions and the verdict."""
    audit = plain(values)
    groups = [_km(row) for row in audit.get("groups") or ()]
    is_event = audit.get("outcome_kind") == "binary"
    scan = [Finding.of(_km(row)) for row in audit.get("scan") or ()]
    tested = {one.group: one.direction for one in scan}
    probable = {row["group"] for row in audit.get("membership") or ()}
    rules = {
        (one["group"] if one.get("mass") is None else one["mass"]): one.get("rule")
        for one in audit.get("off_groups") or ()
    }

    def found(row: Mapping[str, Any]) -> Finding:
        one = Finding.of({**row, "probable": row["group"] in probable})
        return directed(one, tested, is_event=is_event)

    named = [found(row) for row in groups]
    own = [found(_km(row)) for row in audit.get("by_forecast") or ()]
    own, named, scan = once(own, named, scan)
    own, named, scan = (
        [replace(one, rule=rules.get(one.group)) for one in some] for some in (own, named, scan)
    )
    learned = []
    for row in audit.get("learned") or ():
        row = _km(row)
        row["group"] = row.get("description") or ""
        row["error_low"] = row.get("low")
        learned.append(Finding.of({**row, "rule": rules.get(row["mass"])}))
    part = [
        directed(Finding.of(_km(row)), {}, is_event=is_event)
        for row in audit.get("positive_part") or ()
    ]
    size = audit.get("given_forecast")
    tolerance = 0.02 if audit.get("tolerance") is None else audit["tolerance"]
    given = None
    if named and size and not is_event:
        named[0], given = split(named[0], GivenForecast.of(size), tolerance)
    pit = audit.get("pit") or {}
    edges = pit.get("edges") or ()
    unknown = [None] * len(edges)
    bins = [
        dict(zip(("start", "end", "share", "low", "high"), row, strict=False))
        for row in zip(
            edges, edges[1:], *(pit.get(k) or unknown for k in ("share", "low", "high")),
            strict=False,
        )
    ]
    proof = audit.get("certificate")
    rest = {
        **{key: value for key, value in audit.items() if value is not None},
        "tolerance": tolerance,
        "groups": named,
        "given": given,
        "by_forecast": own,
        "scan": scan,
        "learned": learned,
        "positive_part": part,
        "pit": bins,
        "certificate": proof or None,
        "notes": [Note(kind="", text=str(one)) for one in audit.get("notes") or ()],
        "status": Status(
            verdict=Verdict.NO_PROBLEM,
            is_proven=False,
            n_examined=0,
            n_problems=0,
            n_beyond=0,
            detectable=(),
        ),
    }
    if audit.get("outcome_kind") not in ("continuous", "count", "hurdle", "binary"):
        rest["outcome_kind"] = None
    rest["schema"] = "evenhand.audit/1"
    rows = msgspec.convert(msgspec.to_builtins(rest), AuditRows)
    return replace(rows, status=status_of(rows))


def _km(row: Mapping[str, Any]) -> dict[str, Any]:
    renamed = {"km_low": "km_error_low", "km_high": "km_error_high"}
    found = {renamed.get(key, key): value for key, value in row.items()}
    if "km_error" in found:
        # it is known that times are cut off, though not the ends
        found["most_error"] = 0.5 if found.get("most_error") is None else found["most_error"]
    return found


# --- decisions


def directed(one: Finding, tested: Mapping[str, str | None], *, is_event: bool) -> Finding:
    """Return a group with one direction for the same rows: that of the search, or estimated."""
    found = tested.get(one.scanned_as or one.group)
    if found not in {LOWER, HIGHER, NARROW, WIDE}:
        found = _event_direction(one) if is_event else _estimated_direction(one)
    return replace(one, direction=found)


def _estimated_direction(one: Finding) -> str:
    """Return the direction of a group's error by its mean and its spread."""
    # the error is at least the distance of the mean PIT from 1/2: is that most of the error
    if one.mean_pit is not None and abs(one.mean_pit - 0.5) >= max((one.error or 0) / 2, 1e-9):
        return LOWER if one.mean_pit < 0.5 else HIGHER
    # otherwise the spread explains the error if the interval of the coverage excludes 80%
    if one.coverage_80_high is not None and one.coverage_80_high < 0.8:
        return NARROW
    if one.coverage_80_low is not None and one.coverage_80_low > 0.8:
        return WIDE
    return MIXED


def _event_direction(one: Finding) -> str:
    # the second test of a group of 0/1 outcomes is that of its slope
    if not one.is_mean_off:
        if one.slope_high is not None and one.slope_high < 1:
            return NARROW
        if one.slope_low is not None and one.slope_low > 1:
            return WIDE
    return LOWER if (one.bias or 0) < 0 else HIGHER


def once(
    by_forecast: Sequence[Finding], groups: Sequence[Finding], scan: Sequence[Finding]
) -> tuple[list[Finding], list[Finding], list[Finding]]:
    """Return groups by the forecast, everyone and named groups, and scanned groups, marked.

    Groups whose rows another one has that is listed before have its name in `same_as`. Rows are
    identified by the name that the scan gives them; those of groups by the forecast and of scanned
    groups by size and error.
    """
    first: dict[object, str] = {}

    def marked(one: Finding, *keys: object) -> Finding:
        same = next((first[key] for key in keys if key in first), None)
        first.setdefault(keys[0], one.group)
        return one if same is None or same == one.group else replace(one, same_as=same)

    own = []
    for one in by_forecast:
        own.append(marked(one, one.scanned_as or one.group, _rows_of(one)))
        first.setdefault(_rows_of(one), one.group)
    named = [marked(one, one.scanned_as or one.group, _rows_of(one)) for one in groups[1:]]
    # of several names of the same rows, the one with the fewest features is kept
    found: dict[int, Finding] = {}
    for i, one in sorted(enumerate(scan), key=lambda pair: len(pair[1].features)):
        same = first.get(one.group)
        if same is None:
            same = first.setdefault(_rows_of(one), one.group)
        found[i] = one if same == one.group and one.group not in first else replace(one, same_as=same)
    return own, [*groups[:1], *named], [found[i] for i in range(len(scan))]


def _rows_of(one: Finding) -> tuple[object, ...]:
    # sums of the same rows in another order differ in the last digits
    return one.n, *(f"{number or 0:.9g}" for number in (one.size.value, one.bias, one.predicted))


def split(
    everyone: Finding, size: GivenForecast, tolerance: float
) -> tuple[Finding, Finding]:
    """Return all people, and all people given the own forecast; one of them has the problem."""
    is_own = everyone.problem and (everyone.size.value or 0) <= tolerance + ROUNDING
    p_values = {name: p for name, p in size.tests.items() if p is not None}
    test = min(p_values, key=lambda name: p_values[name], default="")
    given = Finding(
        group=GIVEN,
        n=everyone.n,
        error=size.error,
        error_low=size.low,
        error_high=size.high,
        direction=TRENDS.get(test),
        p_value=everyone.p_value,
        p_adjusted=everyone.p_adjusted,
        off=is_own,
        problem=is_own,
        same_as=None if is_own else everyone.group,
    )
    return replace(everyone, problem=everyone.problem and not is_own), given


# --- the verdict (verdict: 3)

NORMAL = NormalDist()
POWER = 0.8
"""Probability with which a detectable error is found."""

MOST = 0.1
"""Detectable error of all people above which there are too few rows."""


def status_of(rows: AuditRows) -> Status:
    """Return the status of an audit, by the groups that it marks as problems."""
    detectable = tuple(_detectable_errors(rows))
    verdict = Verdict.NO_PROBLEM
    if rows.problems:
        verdict = Verdict.PROBLEM
    elif detectable[0].error > most_of(rows):
        verdict = Verdict.TOO_FEW
    return Status(
        verdict=verdict,
        is_proven=_is_proven(rows),
        n_examined=len(rows.examined),
        n_problems=len(rows.problems),
        n_beyond=sum(one.is_beyond(rows.tolerance) for one in rows.examined)
        + any(one.is_beyond(rows.tolerance) for one in rows.overall),
        detectable=detectable,
    )


def most_of(rows: AuditRows) -> float:
    """Return the detectable error of all people above which there are too few rows."""
    if not rows.is_event:
        return MOST
    predicted = _predicted(rows.everyone)
    # not even a doubling of a rare event would show
    return min(MOST, predicted, 1 - predicted)


def detectable_error(n: float, level: float, variance: float | None = None) -> float:
    """Return the error of `n` rows that a two-sided test at a level finds with 80% probability.

    Parameters
    ----------
    n : float
        Number of rows.
    level : float
        Level of the test.
    variance : float, optional
        Mean of p (1 - p) of the probabilities of 0/1 outcomes. Without it, the error is the W1
        distance of PITs from uniform ones, whose variance is 1/12.

    Examples
    --------
    >>> round(detectable_error(500, 0.02 / 100), 3), round(detectable_error(500, 0.0004, 0.25), 3)
    (0.059, 0.099)
    """
    reach = NORMAL.inv_cdf(1 - level / 2) + NORMAL.inv_cdf(POWER)
    if variance is None:
        return reach / sqrt(12 * n)
    # the count is an integer: half of it for continuity
    return reach * sqrt(variance / n) + 1 / (2 * n)


def _detectable_errors(rows: AuditRows) -> Iterator[Detectable]:
    """Yield the errors that all people, and groups of median and of least size, would show."""
    family = rows.family
    shares = {} if family is None else family.shares
    effective = 1.0 if family is None else family.effective_share or 1.0
    tests = 1 if family is None else family.n_tests or 1
    level = (shares.get("everyone") or 1 - rows.confidence) / tests
    variance = _variance(rows) if rows.is_event else None
    n = rows.n_samples
    yield Detectable(n=n, error=detectable_error(effective * n, level, variance))
    kinds = (
        ("groups", 0 if family is None else family.n_groups, (*rows.named, *rows.scan)),
        ("by_forecast", 0 if family is None else family.n_by_forecast, rows.by_forecast),
    )
    for share, number, found in kinds:
        groups = sorted((one for one in found if one.is_judged), key=lambda one: -one.n)
        if not groups or not shares.get(share) or not number:
            continue
        # a level for each group; continuous outcomes have two tests of each
        level = shares[share] / number / (1 if rows.is_event else 2)
        middle, least = groups[(len(groups) - 1) // 2], groups[-1]
        for one in (middle, least) if middle is not least else (least,):
            chance = _predicted(one, _predicted(rows.everyone))
            variance = chance * (1 - chance) if rows.is_event else None
            yield Detectable(n=one.n, error=detectable_error(effective * one.n, level, variance))
        return


def _variance(rows: AuditRows) -> float:
    """Return the mean of p (1 - p) of all people, by groups of similar probabilities."""
    groups = [one for one in rows.by_forecast if one.predicted is not None]
    shares = [(one.n, _predicted(one)) for one in groups or rows.groups[:1]]
    total = sum(n for n, _ in shares)
    return sum(n * p * (1 - p) for n, p in shares) / total if total else 0.25


def _predicted(one: Finding | None, default: float = 0.5) -> float:
    """Return the mean probability of a group of 0/1 outcomes."""
    return default if one is None or one.predicted is None else one.predicted


def _is_proven(rows: AuditRows) -> bool:
    """Whether every upper end lies within the tolerance, which only 0/1 outcomes have.

    Errors of opposite signs cancel in a pooled number: the mean error given the own forecast needs
    an upper end, too.
    """
    given, tolerance = rows.given_forecast, rows.tolerance
    if not rows.is_event or given is None or not given.is_complete or not rows.groups:
        return False
    # of a group found by search nothing bounds the error from above; unless it is off, it is not
    # described either; groups of a few rows are not tested, but they are listed
    found = [one for one in rows.examined if one.mass is None or one.off]
    named = [one for one in rows.named if one.same_as is None and not one.possible_leak]
    members = (*rows.groups[:1], *found, *named)
    is_within = given.high is not None and given.high <= tolerance
    return is_within and all(one.is_proven(tolerance) for one in members)


__all__ = ["MASS", "detectable_error", "rows_of", "status_of"]
