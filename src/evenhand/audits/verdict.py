"""Verdict of an audit: which groups are off, which of these are a problem, and the status.

Everything that is decided of a finding is decided here, once (verdict: 3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from evenhand._kinds import HIGHER, LOWER, MIXED, NARROW, WIDE
from evenhand.audits.rows import TOLERANCE
from evenhand.results import (
    ROUNDING,
    AuditRows,
    Detectable,
    Finding,
    GivenForecast,
    Status,
    Verdict,
)
from evenhand.search import detectable_error

replace = msgspec.structs.replace

UNDECIDED = Status(
    verdict=Verdict.TOO_FEW, is_proven=False, n_examined=0, n_problems=0, n_beyond=0, detectable=()
)
"""Status of rows before anything is decided."""

SLOPES = (0.8, 1.25)
"""Calibration slopes outside of which a significant trend is a problem, whatever its size."""

GIVEN = "everyone, given the own forecast"
"""Name of all people where the mean error given the own forecast is meant."""


# --- decisions on groups


def decide(one: Finding, tolerance: float, level: float) -> Finding:
    """Return a group with the decisions `off` and `problem`.

    A group is off if its p-value, adjusted for the whole family, is below the level; groups that
    are too small and possible leaks never are. It is a problem if it is off and its estimated error
    is beyond the tolerance, or the slope of the trend that decides it far from 1. The rules of
    other groups would describe noise: they are removed.
    """
    is_judged = not (one.too_small or one.possible_leak) and one.p_adjusted is not None
    is_off = is_judged and (one.p_adjusted or 0.0) < level
    # where times are cut off, the error of the tested PITs understates the size (outcomes: 5)
    size = one.error if one.km_error is None else one.km_error
    is_beyond = (size or 0.0) > tolerance + ROUNDING
    if one.slope is not None:
        is_beyond |= not SLOPES[0] <= one.slope <= SLOPES[1]
    is_known = is_off or one.mass is None
    return replace(
        one,
        off=is_off,
        problem=is_off and is_beyond,
        rule=one.rule if is_off else None,
        group=one.group if is_known else "",
        description_share=one.description_share if is_known else None,
    )


def as_named(
    scan: Iterable[Finding], groups: Iterable[Finding], names: Iterable[str]
) -> list[Finding]:
    """Return the scan with some fields of the named groups of the same rows.

    Named groups that are too small for the scan have no estimates there, and keep what is listed.
    """
    named: dict[str | None, Finding] = {}
    for one in groups:
        named.setdefault(one.scanned_as, one)
    return [
        replace(one, **{name: getattr(named[one.group], name) for name in names})
        if one.group in named and one.error is not None
        else one
        for one in scan
    ]


def decided(rows: AuditRows, of_part: float = TOLERANCE) -> AuditRows:
    """Return the rows of an audit with all decisions, directions and the status.

    `of_part` is the tolerance of the part off the atom.
    """
    level = rows.family.level
    tables: dict[str, list[Finding]] = {
        name: [decide(one, rows.tolerance, level) for one in getattr(rows, name)]
        for name in ("groups", "by_forecast", "scan", "learned")
    }
    tables["positive_part"] = [decide(one, of_part, level) for one in rows.positive_part]
    # the same rows have one decision under both names
    scan = as_named(tables["scan"], tables["groups"], ("off", "problem"))
    tested = {one.group: one.direction for one in scan}
    for name in ("groups", "by_forecast", "positive_part"):
        directions = tested if name != "positive_part" else {}
        tables[name] = [directed(one, directions, rows.is_event) for one in tables[name]]
    own, groups, scan = once(tables["by_forecast"], tables["groups"], scan)
    given = None
    if rows.given_forecast is not None:
        groups[0], given = judged_everyone(
            groups[0], rows.given_forecast, rows.tolerance, is_event=rows.is_event
        )
    tables |= {"groups": groups, "by_forecast": own, "scan": scan}
    found = replace(rows, given=given, **{name: tuple(one) for name, one in tables.items()})
    return replace(found, status=status_of(found))


def directed(one: Finding, tested: Mapping[str, str | None], is_event: bool) -> Finding:
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

    def marked(one: Finding, *, are_known: bool) -> Finding:
        name, rows = one.scanned_as or one.group, _rows_of(one)
        same = first.get(name, first.get(rows))
        first.setdefault(name, one.group)
        if are_known:
            first.setdefault(rows, one.group)
        return one if same is None else replace(one, same_as=same)

    own = [marked(one, are_known=True) for one in by_forecast]
    # sizes and errors of few rows may be equal by chance
    named = [marked(one, are_known=False) for one in groups[1:]]
    # of several names of the same rows, the one with the fewest features is kept
    order = sorted(range(len(scan)), key=lambda i: len(scan[i].features))
    found = {i: marked(scan[i], are_known=True) for i in order}
    return own, [*groups[:1], *named], [found[i] for i in range(len(scan))]


def _rows_of(one: Finding) -> tuple[object, ...]:
    # sums of the same rows in another order differ in the last digits
    return one.n, *(f"{number or 0:.9g}" for number in (one.size.value, one.bias, one.predicted))


def judged_everyone(
    everyone: Finding, size: GivenForecast, tolerance: float, *, is_event: bool
) -> tuple[Finding, Finding | None]:
    """Return all people, judged by the error given the forecast as well, and that error.

    A problem of all people is marked at the pooled error, and at the other one if the pooled error
    is within the tolerance. The error of 0/1 outcomes is the one given the forecast.
    """
    is_problem = everyone.problem or (everyone.off and (size.error or 0.0) > tolerance + ROUNDING)
    everyone = replace(everyone, problem=is_problem)
    if is_event:
        return everyone, None
    is_own = is_problem and (everyone.size.value or 0.0) <= tolerance + ROUNDING
    test = min(size.tests, key=size.tests.__getitem__, default="")
    is_trend, ends = "trend" in test, "narrow and wide" if "width" in test else "low and high"
    given = Finding(
        group=GIVEN,
        n=everyone.n,
        error=size.error,
        error_low=size.low,
        error_high=size.high,
        direction=f"errors differ between {ends} forecasts" if everyone.off and is_trend else None,
        p_value=everyone.p_value,
        p_adjusted=everyone.p_adjusted,
        off=is_own,
        problem=is_own,
        same_as=None if is_own else everyone.group,
    )
    return everyone, given


# --- the verdict (verdict: 3)


def status_of(rows: AuditRows) -> Status:
    """Return the status of an audit, by the groups that it marks as problems."""
    detectable = tuple(_detectable_errors(rows))
    verdict = Verdict.NO_PROBLEM
    if rows.problems:
        verdict = Verdict.PROBLEM
    elif detectable[0].error > rows.most_detectable:
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


def _detectable_errors(rows: AuditRows) -> Iterator[Detectable]:
    """Yield the errors that all people, and groups of median and of least size, would show."""
    family, n = rows.family, rows.n_samples
    level = family.shares["everyone"] / (family.n_tests or 1)
    variance = _variance(rows) if rows.is_event else None
    effective, left = family.effective_share, family.variance
    yield Detectable(n=n, error=detectable_error(effective * n, level, variance, left))
    kinds = ("groups", (*rows.named, *rows.scan)), ("by_forecast", rows.by_forecast)
    for kind, found in kinds:
        number, share = family.part(kind)
        groups = sorted((one for one in found if one.is_judged), key=lambda one: -one.n)
        if not groups or not number:
            continue
        # a level for each group; continuous outcomes have two tests of each
        level = share / number / (1 if rows.is_event else 2)
        middle, least = groups[(len(groups) - 1) // 2], groups[-1]
        for one in (middle, least) if middle is not least else (least,):
            chance = _predicted(one, _predicted(rows.everyone))
            variance = chance * (1 - chance) if rows.is_event else None
            left = family.group_variance
            error = detectable_error(effective * one.n, level, variance, left)
            yield Detectable(n=one.n, error=error)
        return


def _variance(rows: AuditRows) -> float:
    """Return the mean of p (1 - p) of all people, by groups of similar probabilities."""
    shares = [(one.n, _predicted(one)) for one in rows.by_forecast or [rows.everyone]]
    return sum(n * p * (1 - p) for n, p in shares) / sum(n for n, _ in shares)


def _predicted(one: Finding, default: float = 0.5) -> float:
    """Return the mean probability of a group of 0/1 outcomes."""
    return default if one.predicted is None else one.predicted


def _is_proven(rows: AuditRows) -> bool:
    """Whether every upper end lies within the tolerance, which only 0/1 outcomes have.

    Errors of opposite signs cancel in a pooled number: the mean error given the own forecast needs
    an upper end, too.
    """
    given, tolerance = rows.given_forecast, rows.tolerance
    if not rows.is_event or given is None or not given.is_complete:
        return False
    # of a group found by search nothing bounds the error from above; unless it is off, it is not
    # described either; groups of a few rows are not tested, but they are listed
    found = [one for one in rows.examined if one.mass is None or one.off]
    named = [one for one in rows.named if one.same_as is None and not one.possible_leak]
    members = (rows.everyone, *found, *named)
    is_within = given.high is not None and given.high <= tolerance
    return is_within and all(one.is_proven(tolerance) for one in members)
