"""The family of groups of an audit: tests and intervals that hold together (verdict: 1, 3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from evenhand import search
from evenhand._format import in_full, plain_number
from evenhand._validate import Floats, Ints, Mask
from evenhand.audits import tables
from evenhand.audits.options import SearchOptions
from evenhand.audits.rows import HeldOut
from evenhand.calibration import (
    Cells,
    Events,
    GivenForecast,
    GroupRows,
    GroupSums,
    calibration_slope,
    given_forecast,
    holm,
    mid_ranks,
    own_parts,
    rate_error,
    simultaneous_intervals,
)
from evenhand.report import Note, NoteKind
from evenhand.tables import EVERYONE, Condition, Group, GroupRule, Groups, as_table

# --- groups that are significantly off, with rules that select them among other rows

MOST_SCANNED = 50
"""Most scanned groups that are listed as off with their rules, the smallest p-values first."""


@dataclass(frozen=True)
class OffGroup:
    """Group that is significantly off in an audit.

    Parameters
    ----------
    name : str
        Name in the tables of the audit.
    rule : GroupRule or None
        Rule that selects the group among other rows; None for a mask, and for a learned group that
        no rule describes.
    mass : float or None
        Size of a learned group as in the table `learned`; None for other groups.
    rows : ndarray of int or None
        Row numbers of its members in the given table; None if they are known only by probability.
    ids : tuple of str or None
        Ids of these members; None if none were given.
    """

    name: str
    rule: GroupRule | None
    mass: float | None = None
    rows: Ints | None = field(default=None, compare=False, repr=False)
    ids: tuple[str, ...] | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, groups: Iterable[Group], rows: Ints | None) -> OffGroup:
        """Return one group, or the intersection of several."""
        parts = tuple(groups)
        name = " and ".join(group.name for group in parts)
        has_rule = all(group.column is not None and group.mask is None for group in parts)
        return cls(name, GroupRule.of(*parts) if has_rule else None, rows=rows)


def off_groups(
    named: Groups,
    named_p: Floats,
    scanned: search.Scanned | None,
    scanned_p: Floats,
    level: float,
    kept: Ints,
) -> tuple[OffGroup, ...]:
    """Return the named and scanned groups with adjusted p-values below a level, each name once.

    The audit keeps those that it calls off. `kept` are the audited rows' numbers in the given
    table.
    """
    found = [
        OffGroup.of([named.what(name)], kept[named[name]] if name in named else None)
        for name, p_value in zip(named.names, named_p, strict=True)
        if p_value < level
    ]
    if scanned is not None:
        order = np.argsort(scanned_p, kind="stable")[:MOST_SCANNED]
        for i in order[scanned_p[order] < level]:
            found.append(OffGroup.of(scanned.parts(i), kept[scanned.rows(i)]))
    return tuple({group.name: group for group in found}.values())


def off_learned(found: Iterable[search.FoundGroup], kept: Ints) -> Iterator[OffGroup]:
    """Yield the learned groups that may be off: those whose own detection test rejects."""
    for group in found:
        if group.is_significant:
            conditions: tuple[Condition, ...] = tuple(group.conditions)
            rule = GroupRule(conditions) if conditions else None
            name = rule.name if rule else f"learned group of {in_full(group.mass)} of people"
            yield OffGroup(name, rule, group.mass, kept[group.rows])


def marked(
    groups: Iterable[OffGroup], tables: Iterable[pd.DataFrame], learned: pd.DataFrame, column: str
) -> tuple[OffGroup, ...]:
    """Return the groups for which a column is true in the tables that list them.

    Parameters
    ----------
    groups : iterable of OffGroup
        Groups.
    tables : iterable of DataFrame
        Tables of named and scanned groups.
    learned : DataFrame
        Table of learned groups.
    column : {"off", "problem"}
        Decision of the audit.
    """
    names = {name for table in tables for name in table.loc[table[column], "group"]}
    masses = set(learned.loc[learned[column], "mass"])
    return tuple(
        group
        for group in groups
        if (group.name in names if group.mass is None else group.mass in masses)
    )


def member_table(groups: Iterable[OffGroup]) -> pd.DataFrame:
    """Return the members of groups: `group`, `mass`, `row` and `id`."""
    parts = [
        pd.DataFrame(
            {
                "group": group.name,
                "mass": np.nan if group.mass is None else group.mass,
                "row": group.rows,
                # as objects: pandas would convert None to NaN
                "id": pd.Series(group.ids or [None] * group.rows.size, dtype=object),
            }
        )
        for group in groups
        if group.rows is not None
    ]
    empty = pd.DataFrame({"group": [], "mass": [], "row": [], "id": []})
    return pd.concat(parts, ignore_index=True) if parts else empty


def plain_groups(groups: Iterable[OffGroup] | None) -> list[dict[str, Any]] | None:
    """Return the groups as JSON values; None if they are not known."""
    if groups is None:
        return None
    return [
        {
            "group": group.name,
            "mass": group.mass,
            "rule": None if group.rule is None else group.rule.to_state(),
        }
        for group in groups
    ]


# --- groups by the forecast's own level and spread

PARTS = (
    "half",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
)
"""Names of the parts that 2 to 10 groups divide people into."""

KEY_COLUMNS = ("key", "part", "n_parts", "lowest", "highest")
"""Columns of groups by the forecast, beside those of other groups."""


@dataclass(frozen=True, eq=False)
class OwnGroup:
    """Group of people whose forecasts have similar values.

    Parameters
    ----------
    key : str
        Name of the value, which rules use as a column.
    part, n_parts : int
        Place among the groups by this value, from 1, and their number.
    lowest, highest : float
        Range of the values.
    rule : GroupRule
        Rule on the value that selects the group among other rows.
    mask : ndarray of bool, shape (n,)
        Its rows.
    """

    key: str
    part: int
    n_parts: int
    lowest: float
    highest: float
    rule: GroupRule
    mask: Mask

    @property
    def name(self) -> str:
        """Name in tables."""
        ends = [plain_number(end) for end in (self.lowest, self.highest)]
        reach = ends[0] if ends[0] == ends[1] else " to ".join(ends)
        return f"{self.key} {reach} ({PARTS[self.n_parts - 2]} {self.part})"


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


def own_groups(keys: Mapping[str, Floats], weights: Floats | None) -> tuple[OwnGroup, ...]:
    """Return the groups by each value of the forecasts; none of too few rows."""
    found: list[OwnGroup] = []
    for key, values in keys.items():
        parts, n_parts = own_parts(values, weights)
        if n_parts == 1:
            continue
        listed = np.unique(parts)
        ends = [(float(values[parts == k].min()), float(values[parts == k].max())) for k in listed]
        for i, k in enumerate(listed):
            low, high = ends[i]
            sides = []
            if i:
                sides.append(Group(key, ">", _between(ends[i - 1][1], low)))
            if i + 1 < listed.size:
                sides.append(Group(key, "<=", _between(high, ends[i + 1][0])))
            if not sides:
                continue
            rule = GroupRule((Condition(tuple(sides)),))
            found.append(OwnGroup(key, int(k) + 1, n_parts, low, high, rule, parts == k))
    return tuple(found)


def _between(last: float, first: float) -> str:
    """Return the shortest number from `last` up to below `first`, of at least two digits."""
    middle = last + (first - last) / 2
    shown = (f"{middle:.{digits}g}" for digits in range(2, 18))
    return next((text for text in shown if last <= float(text) < first), repr(last))


def as_groups(groups: Iterable[OwnGroup]) -> Groups:
    """Return the groups by name."""
    return Groups((Group.given(group.name), group.mask) for group in groups)


# --- the family of tests

Notes = tuple[Note, ...]
Columns = dict[str, Floats]

SLOPES = ("slope", "slope_low", "slope_high")
"""Columns of calibration slopes, in tables of groups of 0/1 outcomes."""

POINTS = {"everyone": 1, "by_forecast": 1, "groups": 2, "learned": 1}
"""Shares of the error probability, in fifths (verdict: 1)."""

MOST_SLOPES = 100
"""Most groups of a table whose calibration slope is computed, the smallest p-values first."""


@dataclass(frozen=True)
class Family:
    """All tests and intervals of an audit, which hold together with its confidence.

    Parameters
    ----------
    confidence : float
        Probability that no test rejects falsely; also that the intervals of any one measure cover
        their true values at once.
    n_groups, n_by_forecast, n_learned, n_tests : int
        Numbers of named and scanned groups, of groups by the forecast, of learned groups, and of
        tests of everyone.
    shares : dict of str to float
        Error probability of everyone, of groups by the forecast, of named and scanned groups and of
        learned groups; 0 where there are none.
    min_size : int
        Least number of rows of a scanned group.
    effective_share : float
        Effective number of rows, as a share of the rows; 1 without weights.
    asymptotic : tuple of str
        Measures ("error", "coverage", "bias") whose intervals need large groups; those of the
        others have their confidence in groups of any size.
    """

    confidence: float
    n_groups: int
    n_by_forecast: int
    n_learned: int
    n_tests: int
    shares: Mapping[str, float]
    min_size: int
    effective_share: float = 1.0
    asymptotic: tuple[str, ...] = ()


def shares_of(level: float, present: Mapping[str, bool]) -> dict[str, float]:
    """Return the error probability of each part of the family.

    That of absent parts goes to everyone and to groups by the forecast, half each.

    Examples
    --------
    >>> shares_of(0.05, {"by_forecast": True, "groups": False, "learned": False})
    {'everyone': 0.025, 'by_forecast': 0.025, 'groups': 0.0, 'learned': 0.0}
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

    `off` contains the definitions of the groups with significant errors, `scanned` the scanned
    groups and `scanned_p` their adjusted p-values, `own` the groups by the forecast and `given` the
    error given the forecast.
    """

    groups: pd.DataFrame
    scan: pd.DataFrame
    by_forecast: pd.DataFrame
    given: GivenForecast
    family: Family
    notes: Notes
    off: tuple[OffGroup, ...]
    own: tuple[OwnGroup, ...] = ()
    scanned: search.Scanned | None = None
    scanned_p: Floats = field(default_factory=lambda: np.empty(0))

    def scanned_rows(self, most: int) -> Iterator[tuple[str, Mask]]:
        """Yield names and rows of scanned groups, those with the smallest p-values first."""
        if self.scanned is None:
            return
        for i in np.argsort(self.scanned_p, kind="stable")[:most]:
            yield " and ".join(one.name for one in self.scanned.parts(i)), self.scanned.rows(i)


def tested_groups(
    cells: Cells,
    residual: Floats | None,
    events: Events | None,
    keys: Mapping[str, Floats],
    held: HeldOut,
    options: SearchOptions,
    random: np.random.Generator,
    *,
    n_learned: int,
    level: float,
) -> TestedGroups:
    """Test everyone, groups by the forecast, named and scanned groups as one family.

    A named group that the scan lists, under this or another name, is one hypothesis. Possible leaks
    are listed with intervals, but not tested.

    Parameters
    ----------
    cells, residual, events
        PITs, outcomes minus means of the forecasts, and 0/1 outcomes with their probabilities.
    keys : dict of str to ndarray of shape (n,)
        Values of the forecasts that define groups.
    held, options, random
        Held-out rows, options and the source of random numbers.
    n_learned : int
        Number of learned groups that share the family.
    level : float
        Error probability of the family.
    """
    whole = 1 - options.confidence
    rows = GroupRows.of(cells, residual, random, events)
    scanned, leaks, notes = _scans(rows, held, options)
    keys = own_keys(keys)
    own = own_groups(keys, cells.weights)
    named = rows.sums(held.groups.values())
    n_groups = _n_groups(scanned, leaks, held.groups)
    present = {"by_forecast": bool(own), "groups": n_groups > 0, "learned": n_learned > 0}
    shares = shares_of(level, present)
    # own groups of the same rows by two values are one hypothesis
    masks = {group.mask.tobytes() for group in own}
    of_own = rows.sums(group.mask for group in own)
    all_rows = Groups([(Group.given(EVERYONE), np.ones(cells.n_samples, dtype=np.bool_))])
    pooled = rows.sums(all_rows.values())
    given = _given(rows, events, keys, of_own, own, pooled, shares["everyone"])
    family = Family(
        options.confidence,
        n_groups,
        len(masks),
        n_learned,
        len(given.tests),
        shares,
        options.min_size,
        float(pooled.n_effective[0]) / cells.n_samples,
        _asymptotic(named, held.groups),
    )
    everyone = _everyone(rows, all_rows, pooled, given, shares["everyone"])
    probable = [rows.weighted_sums(members) for _, members in held.groups.probable()]
    share = shares["groups"] or level
    p_named, adjusted, of_scan = _tests(
        named, probable, scanned, held, min(options.min_size, search.FEW_ROWS), whole / share
    )
    table = _named_rows(
        rows, named, probable, held, (n_groups, share), p_named, _slopes(named, adjusted, whole)
    )
    of_groups = tables.group_frame([everyone, *table], held.leaks)
    # the first row is everyone; groups known by probability come last
    of_groups = of_groups.assign(
        scanned_as=tables.scan_names(of_groups["group"], scanned, leaks),
        p_value=np.append(given.p_value, p_named),
        p_adjusted=np.append(_scaled(given.p_value, whole / shares["everyone"]), adjusted),
    )
    slopes = {} if scanned is None else _slopes(scanned.sums, of_scan, whole)
    scan = tables.scan_frame(
        scanned, leaks, of_scan, (n_groups, share, whole), slopes, named.covered
    )
    scan = tables.with_named(scan, of_groups)
    p_own = of_own.tests.p_value
    by_own = _scaled(holm(p_own), whole / (shares["by_forecast"] or 1))
    by_forecast = _by_forecast(
        rows,
        own,
        of_own,
        (len(masks), shares["by_forecast"]),
        by_own,
        _slopes(of_own, by_own, whole),
    )
    off = off_groups(held.groups, adjusted, scanned, of_scan, whole, held.kept)
    off += tuple(
        OffGroup(group.name, group.rule, rows=held.kept[group.mask])
        for group, p_value in zip(own, by_own, strict=True)
        if p_value < whole
    )
    return TestedGroups(
        of_groups, scan, by_forecast, given, family, notes, off, own, scanned, of_scan
    )


def _scaled(p_value: Any, factor: float) -> Any:
    """Return p-values that are compared with the error probability of the whole family."""
    return np.minimum(p_value * factor, 1.0)


def _asymptotic(sums: GroupSums, groups: Groups) -> tuple[str, ...]:
    is_weighted = sums.is_weighted or any(map(groups.is_probable, groups.names))
    weighted = ("error", "coverage") if is_weighted else ()
    return weighted + (
        ("bias",) if sums.has_residual and (is_weighted or not sums.has_events) else ()
    )


def _given(
    rows: GroupRows,
    events: Events | None,
    keys: Mapping[str, Floats],
    sums: GroupSums,
    own: Sequence[OwnGroup],
    pooled: GroupSums,
    share: float,
) -> GivenForecast:
    """Return the error given the forecast, with the tests of everyone."""
    weights = rows.cells.weights
    if events is not None:
        happened, probability = events
        return rate_error(probability, happened, share, weights)
    by_key: dict[str, float] = {}
    for group, mass in zip(own, sums.weight * sums.error, strict=True):
        by_key[group.key] = by_key.get(group.key, 0.0) + float(mass)
    measured = max(by_key.values(), default=0.0) / float(pooled.weight[0])
    error = float(pooled.error[0])
    return given_forecast(rows.u, keys, measured or error, share, weights, error)


def _everyone(
    rows: GroupRows, groups: Groups, sums: GroupSums, given: GivenForecast, share: float
) -> dict[str, Any]:
    """Return the row of all people, whose test is that of the error given the forecast."""
    intervals = simultaneous_intervals(sums, 1, share, is_tested=False)
    low, high = intervals["error"]
    intervals["error"] = (low if given.p_value < share else np.zeros(1)), high
    slopes: Columns = {}
    if rows.events is not None:
        # of everyone the trend has a p-value of its own
        is_trend = np.array([len(given.tests) * given.tests["trend"] < share])
        slopes = _slopes(sums, np.zeros(1), share, is_trend)
    row = tables.named_rows(rows.cells, groups, [EVERYONE], sums, intervals, slopes)[0]
    if given.high is not None:
        row |= {"error": given.error, "error_low": given.low, "error_high": given.high}
    return row


def _by_forecast(
    rows: GroupRows,
    own: Sequence[OwnGroup],
    sums: GroupSums,
    family: tuple[int, float],
    adjusted: Floats,
    slopes: Columns,
) -> pd.DataFrame:
    """Return the table of groups by the forecast."""
    if not own:
        return pd.DataFrame()
    groups = as_groups(own)
    intervals = simultaneous_intervals(sums, *family)
    found = tables.named_rows(rows.cells, groups, list(groups), sums, intervals, slopes)
    table = pd.DataFrame(found).drop(columns="column")
    tests = {"p_value": sums.tests.p_value, "p_adjusted": adjusted}
    keys = {name: [getattr(group, name) for group in own] for name in KEY_COLUMNS}
    return table.assign(**tests, **keys)


def _tests(
    sums: GroupSums,
    probable: Sequence[GroupSums],
    scanned: search.Scanned | None,
    held: HeldOut,
    least: int,
    factor: float,
) -> tuple[Floats, Floats, Floats]:
    """Return p-values and adjusted p-values of named groups, and adjusted ones of scanned groups.

    They are NaN for groups that are not tested: possible leaks, and fewer than `least` rows.
    """
    names = list(held.groups)
    is_tested = np.array([name in held.judged for name in names], dtype=np.bool_)
    p_value = np.where(is_tested & (sums.n >= least), sums.tests.p_value, np.nan)
    places = {} if scanned is None else scanned.places
    of_scan = np.empty(0) if scanned is None else scanned.sums.tests.p_value
    is_own = np.array([name not in places for name in names], dtype=np.bool_)
    weighted = [
        np.nan if held.is_leak(group.name) else float(one.tests.p_value[0])
        for one, (group, _) in zip(probable, held.groups.probable(), strict=True)
    ]
    adjusted = _scaled(holm(np.concatenate((of_scan, p_value[is_own], weighted))), factor)
    found = np.full(len(names), np.nan)
    found[is_own], of_weighted = np.split(adjusted[of_scan.size :], [is_own.sum()])
    for i, name in enumerate(names):
        if name in places:
            p_value[i] = of_scan[places[name]]
            found[i] = adjusted[places[name]]
    return np.append(p_value, weighted), np.append(found, of_weighted), adjusted[: of_scan.size]


def _named_rows(
    rows: GroupRows,
    sums: GroupSums,
    probable: Sequence[GroupSums],
    held: HeldOut,
    family: tuple[int, float],
    p_value: Floats,
    slopes: Columns,
) -> list[dict[str, Any]]:
    """Return the rows of named groups, those known by probability last."""
    names = list(held.groups)
    intervals = simultaneous_intervals(sums, *family)
    # too few rows for a test: not proven to be off
    low, high = intervals["error"]
    is_leak = np.array([name not in held.judged for name in names], dtype=np.bool_)
    intervals["error"] = np.where(is_leak | ~np.isnan(p_value[: low.size]), low, 0.0), high
    found = tables.named_rows(rows.cells, held.groups, names, sums, intervals, slopes)
    later = p_value[len(names) :]
    for (group, _), weighted, p in zip(held.groups.probable(), probable, later, strict=True):
        ends = simultaneous_intervals(weighted, *family, is_tested=False)
        if np.isnan(p) and not held.is_leak(group.name):
            ends["error"] = np.zeros(1), ends["error"][1]
        found += tables.named_rows(rows.cells, held.groups, [group.name], weighted, ends, {})
    return found


def _slopes(
    sums: GroupSums, adjusted: Floats, whole: float, by_trend: Mask | None = None
) -> Columns:
    """Return calibration slopes of the groups of 0/1 outcomes that the trend decides."""
    found = dict(zip(SLOPES, np.full((3, len(sums)), np.nan), strict=True))
    rows = sums.rows
    if rows is None or rows.events is None:
        return {}
    tests = sums.tests
    if by_trend is None:
        by_trend = (adjusted < whole) & (np.abs(tests.z_spread) >= np.abs(tests.z_level))
    happened, probability = rows.events
    for i in np.flatnonzero(by_trend)[np.argsort(adjusted[by_trend], kind="stable")][:MOST_SLOPES]:
        _, some = sums.of_rows(int(i))
        weights = None if rows.cells.weights is None else rows.cells.weights[some]
        ends = calibration_slope(probability[some], happened[some], weights)
        for name, end in zip(SLOPES, ends, strict=True):
            found[name][i] = end
    return found


def _scans(
    rows: GroupRows, held: HeldOut, options: SearchOptions
) -> tuple[search.Scanned | None, search.Scanned | None, Notes]:
    """Return the sums over scanned groups and over possible leaks; None without a scan."""
    least = options.min_size
    n = rows.cells.n_samples
    if held.features is None:
        return None, None, ()
    if n < least:
        return None, None, (Note(NoteKind.TOO_FEW_TO_SCAN, numbers=(least, n)),)
    # a scan of their own: possible leaks would count as tests in Holm's correction, and their
    # intersections would repeat the same leak under many names
    leaks = None if held.leaks.empty else search.scan_rows(rows, *held.leaking, least).singles
    if held.searched is None:
        return None, leaks, (Note(NoteKind.ALL_FEATURES_LEAK),)
    table = as_table(held.searched, n)
    scanned = search.scan_rows(rows, table, held.judged, least)
    notes = tuple(
        Note(NoteKind.COLUMN_NOT_SCANNED, (column,), reason=why)
        for column, why in scanned.masks.attrs["left_out"].items()
    )
    if not (scanned.sums.n >= least).any():
        notes += (Note(NoteKind.NO_LARGE_GROUP, numbers=(least,)),)
    return scanned, leaks, notes


def _n_groups(scanned: search.Scanned | None, leaks: search.Scanned | None, groups: Groups) -> int:
    """Return the number of groups that either table lists; each set of rows counts once."""
    scans = [scan for scan in (scanned, leaks) if scan is not None]
    listed = {name for scan in scans for name in scan.places}
    n_groups = sum(len(scan.sums) for scan in scans)
    return n_groups + sum(name not in listed for name in groups.names)
