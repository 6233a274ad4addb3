"""Named and scanned groups of an audit, tested together, with simultaneous intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from evenhand import search
from evenhand._validate import Floats, Mask
from evenhand.audits import tables
from evenhand.audits.off_groups import OffGroup, off_groups
from evenhand.audits.options import SearchOptions
from evenhand.audits.rows import HeldOut
from evenhand.audits.scores import Band
from evenhand.calibration import (
    Family,
    GroupSums,
    PITs,
    holm,
    simultaneous_intervals,
    uniformity_tests,
    weighted_uniformity_tests,
)
from evenhand.columns import EVERYONE, Groups, as_table
from evenhand.report import Measure, Note, NoteKind

Notes = tuple[Note, ...]


@dataclass(frozen=True, eq=False)
class TestedGroups:
    """Tables of named and of scanned groups, with the family that their intervals share.

    `off` contains the definitions of the groups with significant errors, `scanned` the scanned
    groups and `scanned_p` their adjusted p-values.
    """

    groups: pd.DataFrame
    scan: pd.DataFrame
    family: Family
    notes: Notes
    off: tuple[OffGroup, ...]
    scanned: search.Scanned | None = None
    scanned_p: Floats = field(default_factory=lambda: np.empty(0))

    def scanned_rows(self, most: int) -> Iterator[tuple[str, Mask]]:
        """Yield names and rows of scanned groups, those with the smallest p-values first."""
        if self.scanned is None:
            return
        for i in np.argsort(self.scanned_p, kind="stable")[:most]:
            yield " and ".join(one.name for one in self.scanned.parts(i)), self.scanned.rows(i)


def tested_groups(
    pits: PITs,
    residual: Floats | None,
    held: HeldOut,
    options: SearchOptions,
    everyone: Mapping[Measure, Band],
    random: np.random.Generator,
    events: Floats | None,
) -> TestedGroups:
    """Scan the features, and test named and scanned groups under one Holm correction.

    A named group that the scan lists, under this or another name, is one hypothesis. Possible leaks
    are listed with intervals, but not tested. `everyone` contains the scores of all rows, `events`
    their outcomes if these are 0 or 1.
    """
    rows = search.ScanRows.of(pits, residual, random, events)
    scanned, leaks, notes = _scans(rows, held, options)
    sums = rows.sums(held.groups)
    family = _family(sums, scanned, leaks, held.groups, options.confidence)
    probable = [rows.weighted_sums(members) for _, members in held.groups.probable()]
    own, of_scan = _tests(sums, probable, scanned, held, min(options.min_size, search.FEW_ROWS))
    table = [tables.everyone_row(pits, residual, everyone, events)]
    table += _named_rows(rows, sums, probable, held, family, own[0])
    groups = tables.group_frame(table, held.leaks)
    # the first row is everyone; groups known by probability come last
    tests = np.pad(np.stack(own), ((0, 0), (1, 0)), constant_values=np.nan)
    groups = groups.assign(
        scanned_as=tables.scan_names(groups["group"], scanned, leaks),
        simultaneous=groups["group"] != EVERYONE,
        p_value=tests[0],
        p_adjusted=tests[1],
    )
    scan = tables.with_named(tables.scan_frame(scanned, leaks, of_scan, family), groups)
    groups, scan = (tables.with_within(table, options.within) for table in (groups, scan))
    # the interval of a group known by probability is not that of its members
    members = [held.groups.is_probable(name) for name in groups["group"]]
    groups = groups.assign(within=groups["within"] & ~np.array(members, dtype=np.bool_))
    off = off_groups(held.groups, own[1], scanned, of_scan, 1 - options.confidence, held.kept)
    return TestedGroups(groups, scan, family, notes, off, scanned, of_scan)


def _tests(
    sums: GroupSums,
    probable: Sequence[GroupSums],
    scanned: search.Scanned | None,
    held: HeldOut,
    least: int,
) -> tuple[tuple[Floats, Floats], Floats]:
    """Return p-values and adjusted p-values of named groups, and adjusted ones of scanned groups.

    They are NaN for groups that are not tested: possible leaks, and fewer than `least` rows.
    """
    names = list(held.groups)
    is_tested = np.array([name in held.judged for name in names], dtype=np.bool_)
    p_value = np.where(is_tested & (sums.n >= least), _p_values(sums), np.nan)
    places = {} if scanned is None else scanned.places
    of_scan = np.empty(0) if scanned is None else _p_values(scanned.sums)
    is_own = np.array([name not in places for name in names], dtype=np.bool_)
    weighted = [
        float(weighted_uniformity_tests(one)[0])
        if one.n_effective[0] >= least and not held.is_leak(group.name)
        else np.nan
        for one, (group, _) in zip(probable, held.groups.probable(), strict=True)
    ]
    adjusted = holm(np.concatenate((of_scan, p_value[is_own], weighted)))
    found = np.full(len(names), np.nan)
    found[is_own], of_weighted = np.split(adjusted[of_scan.size :], [is_own.sum()])
    for i, name in enumerate(names):
        if name in places:
            p_value[i] = of_scan[places[name]]
            found[i] = adjusted[places[name]]
    both = (np.append(p_value, weighted), np.append(found, of_weighted))
    return both, adjusted[: of_scan.size]


def _named_rows(
    rows: search.ScanRows,
    sums: GroupSums,
    probable: Sequence[GroupSums],
    held: HeldOut,
    family: Family,
    p_value: Floats,
) -> list[dict[str, Any]]:
    """Return the rows of named groups, those known by probability last."""
    names = list(held.groups)
    intervals = simultaneous_intervals(sums, family)
    # too few rows for a test: not proven to be off
    low, high = intervals["error"]
    is_leak = np.array([name not in held.judged for name in names], dtype=np.bool_)
    intervals["error"] = np.where(is_leak | ~np.isnan(p_value[: low.size]), low, 0.0), high
    found = tables.named_rows(rows.pits, held.groups, names, sums, intervals)
    later = p_value[len(names) :]
    for (group, _), weighted, p in zip(held.groups.probable(), probable, later, strict=True):
        ends = simultaneous_intervals(weighted, family, is_tested=False)
        if np.isnan(p) and not held.is_leak(group.name):
            ends["error"] = np.zeros(1), ends["error"][1]
        found += tables.named_rows(rows.pits, held.groups, [group.name], weighted, ends)
    return found


def _scans(
    rows: search.ScanRows, held: HeldOut, options: SearchOptions
) -> tuple[search.Scanned | None, search.Scanned | None, Notes]:
    """Return the sums over scanned groups and over possible leaks; None without a scan."""
    least = options.min_size
    n = rows.pits.n_samples
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


def _p_values(sums: GroupSums) -> Floats:
    return uniformity_tests(sums)[-1]


def _family(
    sums: GroupSums,
    scanned: search.Scanned | None,
    leaks: search.Scanned | None,
    groups: Groups,
    confidence: float,
) -> Family:
    """Return the family of all groups that either table lists; each set of rows counts once."""
    scans = [scan for scan in (scanned, leaks) if scan is not None]
    listed = {name for scan in scans for name in scan.places}
    n_groups = sum(len(scan.sums) for scan in scans)
    n_groups += sum(name not in listed for name in groups.names)
    is_probable = any(map(groups.is_probable, groups.names))
    return Family.of(sums, n_groups, confidence, is_weighted=is_probable)
