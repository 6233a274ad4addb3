"""The family of groups of an audit: tests and intervals that hold together (verdict: 1, 3)."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from evenhand import search
from evenhand._format import PARTS, plain_number
from evenhand._kinds import POSSIBLE_LEAK
from evenhand._validate import Floats, Ints, Mask
from evenhand.audits.forecasts import RowCells
from evenhand.audits.rows import HeldOut
from evenhand.audits.verdict import as_named
from evenhand.calibration import (
    MEASURES,
    GroupRows,
    GroupSums,
    given_forecast,
    holm,
    mid_ranks,
    own_parts,
    rate_error,
    simultaneous_intervals,
)
from evenhand.report import NoteKind
from evenhand.results import Family, Finding, GivenForecast, rows_from, with_ends
from evenhand.scoring import calibration_slope
from evenhand.tables import EVERYONE, Condition, Group, GroupRule, Groups

replace = msgspec.structs.replace

# --- rules that select groups among other rows, and their members

MOST_SCANNED = 50
"""Most scanned groups with rules and members, the smallest p-values first."""

SMALL_GROUP = 30
"""Effective number of rows below which a group is too small for reliable estimates."""

Members = dict[str | float, Ints]
"""Row numbers in the given table, by name of the group, or size if it was found by search."""


def rule_of(*groups: Any) -> list[dict[str, Any]] | None:
    """Return the rule of a group, or of the intersection of several; None for masks."""
    if any(group.column is None for group in groups):
        return None
    return GroupRule.of(*groups).to_state()


def defined(group: Group, n: float, **more: Any) -> Finding:
    """Return what is known of a named group of `n` rows, or expected members, before any test."""
    return Finding(group=group.name, n=round(n), column=group.column, rule=rule_of(group), **more)


@dataclass(frozen=True, eq=False)
class Summed:
    """Groups with their sums, over rows in memory or from counts of all rows of a table in parts.

    The groups have no estimates yet.
    """

    groups: Sequence[Finding]
    sums: GroupSums

    @classmethod
    def of(cls, rows: GroupRows, pairs: Iterable[tuple[Finding, Mask]]) -> Summed:
        """Return groups of rows of known members."""
        listed = list(pairs)
        return cls([group for group, _ in listed], rows.sums(mask for _, mask in listed))

    def marked(self, scanned_as: Mapping[str, str], leaked: Collection[str]) -> Summed:
        """Return the groups with the names of the same rows in the scan, and possible leaks."""
        groups = [
            replace(one, scanned_as=scanned_as.get(one.group), possible_leak=one.group in leaked)
            for one in self.groups
        ]
        return Summed(groups, self.sums)

    def findings(
        self, family: Family, kind: str, tests: Any, by_trend: Mask | None = None
    ) -> list[Finding]:
        """Return the groups with their estimates and tests.

        Of tested groups, lower ends of errors are positive only where the test is significant; of
        possible leaks, which have no test, as if they were tested. `tests` are p-values and
        adjusted p-values, shape (2, g). Groups in `by_trend` have a calibration slope; by default
        those of known members that the trend decides.
        """
        p_value, adjusted = np.asarray(tests)
        columns: dict[str, Any] = {
            name: [getattr(one, name) for one in self.groups] for name in Finding.__struct_fields__
        }
        is_probable, is_leak = np.array([columns["probable"], columns["possible_leak"]], np.bool_)
        is_tested = kind != "everyone" and not is_probable.any()
        by_trend = ~is_probable if is_probable.any() else by_trend
        columns |= simultaneous_intervals(self.sums, *family.part(kind), is_tested=is_tested)
        columns |= _slopes(self.sums, adjusted, family.level, by_trend)
        columns |= {
            "mean_pit": self.sums.mean_pit,
            # too few rows for a test: not proven to be off
            "error_low": np.where(is_leak | ~np.isnan(p_value), columns["error_low"], 0.0),
            # tests of everyone hold with the fewest rows of an audit, too
            "too_small": (self.sums.n_effective < SMALL_GROUP) & (kind != "everyone"),
            "p_value": p_value,
            "p_adjusted": adjusted,
        }
        return list(rows_from(Finding, columns))


# --- groups by the forecast's own level and spread


def own_keys(values: Mapping[str, Floats]) -> dict[str, Floats]:
    """Return the values of forecasts that define groups of their own.

    Values that are constant, not finite, or in the order of others before, or its reverse, are left
    out.
    """
    found: dict[str, Floats] = {}
    ranks: list[Floats] = []
    for name, value in values.items():
        if not np.isfinite(value).all():
            continue
        rank = mid_ranks(value)
        if np.ptp(rank) == 0:
            continue
        # the groups by a value in the opposite order are the same ones
        if not any(np.allclose(rank, other) or np.allclose(rank, 1 - other) for other in ranks):
            found[name] = value
            ranks.append(rank)
    return found


def own_groups(
    keys: Mapping[str, Floats], weights: Floats | None
) -> Iterator[tuple[Finding, Mask]]:
    """Yield the groups of people whose forecasts have similar values, by each of the values.

    Groups come with their rows; there are none of too few rows.
    """
    for key, values in keys.items():
        parts, n_parts = own_parts(values, weights)
        ends = pd.Series(values).groupby(parts).agg(["min", "max"])
        if len(ends) == 1:
            continue
        cuts = [*map(_between, ends["max"].iloc[:-1], ends["min"].iloc[1:])]
        for i, (k, low, high) in enumerate(ends.itertuples()):
            # the last cut before the group and the first one after it
            comparisons = (
                *(Group(key, ">", cut) for cut in cuts[:i][-1:]),
                *(Group(key, "<=", cut) for cut in cuts[i:][:1]),
            )
            rule = GroupRule((Condition(comparisons),)).to_state()
            place = {"key": key, "part": k + 1, "n_parts": n_parts, "lowest": low, "highest": high}
            reach = " to ".join(dict.fromkeys(map(plain_number, (low, high))))
            name, rows = f"{key} {reach} ({PARTS[n_parts - 2]} {k + 1})", parts == k
            yield Finding(group=name, n=int(rows.sum()), rule=rule, **place), rows


def _between(last: float, first: float) -> str:
    """Return the shortest number from `last` up to below `first`, of at least two digits."""
    middle = last + (first - last) / 2
    shown = (f"{middle:.{digits}g}" for digits in range(2, 18))
    return next((text for text in shown if last <= float(text) < first), repr(last))


# --- the family of tests

Columns = dict[str, Floats]


# errors of the scan are otherwise those of histograms, or of a sample of the rows
SHARED = (*chain.from_iterable(map(with_ends, MEASURES)), "p_value")
"""Fields that a named group and the same group of the scan share."""

POINTS = {"everyone": 1, "by_forecast": 1, "groups": 2, "learned": 1}
"""Shares of the error probability, in fifths (verdict: 1)."""

MOST_SLOPES = 100
"""Most groups of a table whose calibration slope is computed, the smallest p-values first."""


def shares_of(level: float, present: Mapping[str, int]) -> dict[str, float]:
    """Return the error probability of each part of the family, from its number of groups.

    That of absent parts goes to everyone and to groups by the forecast, half each.
    """
    fifths = {name: float(points) for name, points in POINTS.items() if present.get(name, True)}
    free = sum(POINTS.values()) - sum(fifths.values())
    first = [name for name in ("everyone", "by_forecast") if name in fifths]
    for name in first:
        fifths[name] += free / len(first)
    return {name: level * fifths.get(name, 0.0) / 5 for name in POINTS}


@dataclass(frozen=True, eq=False)
class TestedGroups:
    """Tables of groups, with the family that their tests and intervals share.

    `members` are the rows of groups that may be off, `scanned` the scanned groups, `own`
    the groups by the forecast with their rows, and `given` the error given the forecast.
    """

    groups: list[Finding]
    scan: list[Finding]
    by_forecast: list[Finding]
    given: GivenForecast
    family: Family
    members: Members
    own: list[tuple[Finding, Mask]]
    scanned: search.Scanned


def tested_groups(
    found: RowCells,
    held: HeldOut,
    random: np.random.Generator,
    *,
    n_learned: int,
    level: float,
    counted: tuple[Summed, Summed] | None,
) -> TestedGroups:
    """Test everyone, groups by the forecast, named and scanned groups as one family.

    A named group that the scan lists, under this or another name, is one hypothesis. Possible leaks
    are listed with intervals, but not tested. The family has the error probability `level` and
    `n_learned` learned groups more.

    If these rows are a sample, everyone and named groups are `counted` in all rows: they replace
    the sums over the sample. Everyone keeps the tests of the sample, which compare people with
    similar forecasts.
    """
    options = held.options
    cells = found.tested
    rows = GroupRows.of(cells, found.residual, random, found.binary)
    scanned, leaks = _scans(rows, held)
    keys = own_keys(found.keys)
    own = list(own_groups(keys, cells.weights))
    n = cells.n_samples
    everyone = Summed.of(rows, [(defined(Group.given(EVERYONE), n), np.ones(n, np.bool_))])
    pooled = everyone.sums
    pairs = [(defined(group, mask.sum()), mask) for group, mask in held.groups.pairs()]
    named = Summed.of(rows, pairs)
    if counted is not None:
        everyone, named = counted
    # of the groups that either table lists, each set of rows counts once
    names = {one.group for one in named.groups}.union(held.groups.names)
    names = names.difference(scanned.places, leaks.places)
    n_groups = len(scanned.sums) + len(leaks.sums) + len(names)
    # own groups of the same rows by two values are one hypothesis
    n_own = len({mask.tobytes() for _, mask in own})
    present = {"by_forecast": n_own, "groups": n_groups, "learned": n_learned}
    shares = shares_of(level, present)
    by_value = Summed.of(rows, own)
    given = _given(rows, keys, by_value, pooled, shares["everyone"])
    sums = named.sums
    judged = (sums, scanned.sums) if n_groups else (by_value.sums,)
    is_weighted = sums.is_weighted or bool(held.groups.probable())
    has_skew = sums.has_residual and (is_weighted or not sums.has_events)
    limits = {"error": is_weighted, "coverage": is_weighted, "bias": has_skew}
    family = Family(
        confidence=options.confidence,
        n_groups=n_groups,
        n_by_forecast=n_own,
        n_learned=n_learned,
        n_tests=len(given.tests),
        shares=shares,
        min_size=options.min_size,
        effective_share=float(pooled.n_effective[0]) / n,
        variance=float(pooled.variance("level")[0]),
        group_variance=max(float(one.variance("level").max(initial=0.0)) for one in judged),
        asymptotic=tuple(name for name, needs_many in limits.items() if needs_many),
    )
    probable = [
        Summed([defined(group, share.sum(), probable=True)], rows.weighted_sums(share))
        for group, share in held.groups.probable()
    ]
    scanned_as, leaked = scanned.listed_as | leaks.listed_as, held.leaked("group")
    listed = [one.marked(scanned_as, leaked) for one in (named, *probable)]
    tests, scanned = _tests(listed, scanned, options.min_size, family)
    of_groups = [_everyone(everyone, given, family)]
    for one, own_tests in zip(listed, tests, strict=True):
        of_groups += one.findings(family, "groups", own_tests)
    p_own = by_value.sums.tests.p_value
    by_own = scaled(holm(p_own), family, "by_forecast")
    by_forecast = by_value.findings(family, "by_forecast", (p_own, by_own))
    off = list(scanned.least(MOST_SCANNED, family.level))
    rules = {name: rule_of(*parts) for name, parts, _ in off}
    scan = as_named(_scan(scanned, leaks, family), of_groups, SHARED)
    members: Members = {}
    if counted is None:  # members of a sample are not those of all rows
        masks = {name: mask for name, _, mask in off}
        known = zip((*pairs, *own), (*tests[0][1], *by_own), strict=True)
        masks |= {one.group: mask for (one, mask), p in known if p < family.level}
        members = {name: held.kept[mask] for name, mask in masks.items()}
    return TestedGroups(
        of_groups,
        [replace(one, rule=rules.get(one.group)) for one in scan],
        by_forecast,
        given,
        family,
        members,
        own,
        scanned,
    )


def scaled(p_value: Any, family: Family, part: str) -> Any:
    """Return p-values that are compared with the error probability of the whole family."""
    return np.minimum(p_value * (family.level / family.part(part)[1]), 1.0)


def _given(
    rows: GroupRows, keys: Mapping[str, Floats], own: Summed, pooled: GroupSums, share: float
) -> GivenForecast:
    """Return the error given the forecast, with the tests of everyone."""
    weights = rows.cells.weights
    if rows.events is not None:
        happened, probability = rows.events
        return rate_error(probability, happened, share, weights)
    masses, of_key = own.sums.weight * own.sums.error, np.array([one.key for one in own.groups])
    sizes = [float(masses[of_key == key].sum()) for key in keys]
    measured = max(sizes, default=0.0) / float(pooled.weight[0])
    error = float(pooled.error[0])
    return given_forecast(rows.positions, keys, measured or error, share, weights, error)


def _everyone(pooled: Summed, given: GivenForecast, family: Family) -> Finding:
    """Return all people, whose test is that of the error given the forecast."""
    share = family.shares["everyone"]
    # of everyone the trend of events has a p-value of its own
    is_trend = np.array([len(given.tests) * given.tests.get("trend", 1.0) < share])
    (everyone,) = pooled.findings(
        family,
        "everyone",
        ([given.p_value], [float(scaled(given.p_value, family, "everyone"))]),
        is_trend,
    )
    if given.high is None:
        return everyone if given.p_value < share else replace(everyone, error_low=0.0)
    return replace(everyone, error=given.error, error_low=given.low, error_high=given.high)


def _tests(
    listed: Sequence[Summed], scanned: search.Scanned, min_size: int, family: Family
) -> tuple[list[Floats], search.Scanned]:
    """Return p-values and adjusted p-values of named groups, and scanned groups with theirs.

    Groups of known members are the first of `listed`. P-values are NaN for groups that are not
    tested: possible leaks, and too few rows. A named group that is scanned is one hypothesis.
    """
    named, groups = listed[0], [one for each in listed for one in each.groups]
    p_value = np.concatenate([one.sums.tests.p_value for one in listed])
    p_value[: len(named.sums)][named.sums.n < min(min_size, search.FEW_ROWS)] = np.nan
    p_value[[one.possible_leak for one in groups]] = np.nan
    places, of_scan = scanned.places, scanned.sums.tests.p_value.copy()
    found = [places.get(one.group, of_scan.size + i) for i, one in enumerate(groups)]
    at = np.array(found, np.intp)
    is_listed = at < of_scan.size
    if named.sums.rows is None:  # counted in all rows, of which the scan has a sample
        of_scan[at[is_listed]] = p_value[is_listed]
    tests = np.append(of_scan, np.where(is_listed, np.nan, p_value))
    adjusted = scaled(holm(tests), family, "groups")
    ends = np.cumsum([len(one.groups) for one in listed])[:-1]
    of_groups = np.split(np.stack([tests[at], adjusted[at]]), ends, axis=-1)
    return of_groups, dataclasses.replace(scanned, adjusted=adjusted[: of_scan.size])


def _scan(scanned: search.Scanned, leaks: search.Scanned, family: Family) -> list[Finding]:
    """Return scanned groups; possible leaks are listed last, without tests."""
    slopes = _slopes(scanned.sums, scanned.adjusted, family.level)
    scan, listed = (
        rows_from(Finding, one.columns(*family.part("groups"), family.level, more))
        for one, more in ((scanned, slopes), (leaks, {}))
    )
    untested = {"direction": POSSIBLE_LEAK, "p_value": None}
    return [*scan, *(replace(one, **untested) for one in listed)]


def _slopes(
    sums: GroupSums, adjusted: Floats, whole: float, by_trend: Mask | None = None
) -> Columns:
    """Return calibration slopes of the groups of 0/1 outcomes that the trend decides."""
    if sums.rows is None or sums.rows.events is None:
        return {}
    if by_trend is None:
        by_trend = (adjusted < whole) & (np.abs(sums.tests.z_spread) >= np.abs(sums.tests.z_level))
    found = np.full((3, len(sums)), np.nan)
    for i in np.flatnonzero(by_trend)[np.argsort(adjusted[by_trend], kind="stable")][:MOST_SLOPES]:
        rows, some = sums.of_rows(int(i))
        assert rows.events is not None
        happened, probability = rows.events.take(some)
        weights = None if rows.cells.weights is None else rows.cells.weights[some]
        found[:, i] = calibration_slope(probability, happened, weights)
    return dict(zip(with_ends("slope"), found, strict=True))


def _scans(rows: GroupRows, held: HeldOut) -> tuple[search.Scanned, search.Scanned]:
    """Return the sums over scanned groups and over possible leaks; of no group without a scan."""
    least = held.options.min_size
    n = rows.cells.n_samples
    nothing = search.scan_rows(rows, pd.DataFrame(index=range(n)), Groups(), least)
    if held.features is None:
        return nothing, nothing
    if n < least:
        held.add_note(NoteKind.TOO_FEW_TO_SCAN, numbers=(least, n))
        return nothing, nothing
    # a scan of their own: possible leaks would count as tests in Holm's correction, and their
    # intersections would repeat the same leak under many names
    leaks = search.scan_rows(rows, *held.leaking, least).singles
    if held.searched is None:
        held.add_note(NoteKind.ALL_FEATURES_LEAK)
        return nothing, leaks
    scanned = search.scan_rows(rows, held.searched, held.judged, least)
    for column, why in scanned.masks.left_out.items():
        held.add_note(NoteKind.COLUMN_NOT_SCANNED, (column,), reason=why)
    if not (scanned.sums.n >= least).any():
        held.add_note(NoteKind.NO_LARGE_GROUP, numbers=(least,))
    return scanned, leaks
