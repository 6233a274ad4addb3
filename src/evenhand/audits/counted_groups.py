"""Tables of named and scanned groups of an audit whose named groups were counted in all rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand import search
from evenhand._validate import Floats
from evenhand.audits import tables
from evenhand.audits.group_tests import Family
from evenhand.audits.result import Audit
from evenhand.audits.scores import Band, band_of, bands_at
from evenhand.calibration import (
    PIT_BINS,
    GroupSums,
    PITCounts,
    RowValues,
    binned_error,
    holm,
    simultaneous_intervals,
)
from evenhand.columns import EVERYONE, Group, Partition

MOMENTS = 4
"""Sums of a group before those of `event_values`: of mean PITs and of powers of residuals."""


def counted_groups(
    everyone: PITCounts,
    groups: Mapping[str, PITCounts],
    sums: Mapping[str, Floats],
    partitions: Sequence[Partition],
    centre: float,
    found: Audit,
) -> tuple[pd.DataFrame, pd.DataFrame, Family]:
    """Return the tables of named and of scanned groups, and their family, from counts of all rows.

    Everyone keeps the tests of the sample, which compare people with similar forecasts.

    Parameters
    ----------
    everyone : PITCounts
        Counts of all rows.
    groups : dict of str to PITCounts
        Counts of the named groups.
    sums : dict of str to ndarray of shape (4,) or (12,)
        By group: sums of mean PITs, of the first three powers of residuals minus `centre`, and of
        `event_values` of 0/1 outcomes.
    partitions : sequence of Partition
        Definitions of the named groups.
    centre : float
        Value subtracted from residuals.
    found : Audit
        Audit of a random sample. Its scanned groups are kept; those that are named groups have
        p-values of all rows.
    """
    family = found.family
    assert family is not None
    known = {group.name: group for partition in partitions for group in partition.groups}
    names = list(groups)
    n_extra = len(set(names) - set(found.groups["group"]))
    named = _group_sums([groups[name] for name in names], [sums[name] for name in names], centre)
    whole = 1 - family.confidence
    share = family.shares["groups"] or whole
    intervals = simultaneous_intervals(named, _n_shared(family, len(names), n_extra), share)
    rows = [_everyone_row(everyone, sums[EVERYONE], centre, found, family.shares["everyone"])]
    estimates = named.estimates
    for i, name in enumerate(names):
        bands = bands_at(estimates, intervals, i)
        rates = {key: float(values[i]) for key, values in named.rates.items()}
        rows.append(_row(known[name], groups[name].n_samples, sums[name], bands) | rates)
    table = tables.group_frame(rows, found.leaks)
    listed = dict(zip(found.groups["group"], found.groups["scanned_as"], strict=True))
    scanned_as = pd.Series([listed.get(name) for name in table["group"]], dtype=object)
    table = table.assign(scanned_as=scanned_as)
    tests = found.groups[["p_value", "p_adjusted"]].iloc[0]
    table, scan = _tested(table, found.scan, named, tests, whole, whole / share)
    scan = tables.with_named(scan, table)
    joint = replace(family, n_groups=family.n_groups + n_extra)
    return table, scan, joint


def _group_sums(counts: Sequence[PITCounts], sums: Sequence[Floats], centre: float) -> GroupSums:
    """Return the sums over groups; level and spread are the smallest that fit the counts."""
    order = RowValues(
        counts[0].n_draws if counts else 1,
        has_residual=True,
        is_weighted=False,
        centre=centre,
        has_events=bool(sums) and sums[0].size > MOMENTS,
    )
    columns = []
    for one, values in zip(counts, sums, strict=True):
        n = one.n_samples
        middles = (np.arange(PIT_BINS) + 0.5) / PIT_BINS - 0.5
        # a PIT lies within half a bin of the middle of its bin
        most = n / (2 * PIT_BINS)
        level, spread = (
            float(np.sign(total) * max(abs(total) - most, 0.0))
            for total in (one.one_draw @ middles, one.one_draw @ (np.abs(middles) - 0.25))
        )
        shares = np.arange(one.n_draws + 1) / one.n_draws
        covered = [float(one.inside[share] @ shares) for share in order.covered]
        moments, in_cells = values[1:MOMENTS], values[MOMENTS:]
        columns.append([n, level, spread, *covered, *in_cells, *moments])
    matrix = np.array(columns, dtype=np.float64).reshape(len(columns), len(order.names)).T
    error = np.array([binned_error(one) for one in counts])
    return GroupSums(order, matrix, error, np.full(len(columns), 1 / (2 * PIT_BINS)))


def _n_shared(family: Family, n_named: int, n_extra: int) -> int:
    """Return the number of groups of the family if some named groups have no row in the sample.

    Scanned groups were given their share of the error probability in the sample. Named groups
    divide what the named groups of the sample were given.
    """
    n_sampled = max(n_named - n_extra, 1)
    return -(-family.n_groups * n_named // n_sampled)


def _everyone_row(
    counts: PITCounts, sums: Floats, centre: float, found: Audit, share: float
) -> dict[str, Any]:
    """Return the row of everyone; the error of 0/1 outcomes given the forecast is the sample's."""
    of_all = _group_sums([counts], [sums], centre)
    ends = simultaneous_intervals(of_all, 1, share, is_tested=False)
    bands = bands_at(of_all.estimates, ends, 0)
    sampled = found.groups.iloc[0]
    if of_all.order.has_events:
        bands["error"] = band_of(sampled, "error")
    elif not sampled["off"]:
        bands["error"]["low"] = 0.0
    rates = {key: float(values[0]) for key, values in of_all.rates.items()}
    return _row(Group.given(EVERYONE), counts.n_samples, sums, bands) | rates


def _row(group: Group, n: int, sums: Floats, bands: Mapping[str, Band]) -> dict[str, Any]:
    return tables.group_row(group, n, bands, float(sums[0] / n), n < tables.SMALL_GROUP)


def _tested(
    table: pd.DataFrame,
    scan: pd.DataFrame,
    sums: GroupSums,
    everyone: pd.Series[Any],
    level: float,
    factor: float,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Test named groups with all rows and scanned groups with the sample, under one correction.

    A named group that was scanned is one hypothesis, tested with all rows.
    """
    named = table.iloc[1:]
    is_tested = (~named["possible_leak"] & (named["n"] >= search.FEW_ROWS)).to_numpy(dtype=bool)
    p_named = np.where(is_tested, sums.tests.p_value, np.nan)
    p_scan = scan["p_value"].to_numpy(dtype=np.float64, copy=True)
    rows = {name: i for i, name in enumerate(scan["group"])}
    places = np.array([rows.get(name, -1) for name in named["scanned_as"]], dtype=np.intp)
    is_scanned = (places >= 0) & ~named["possible_leak"].to_numpy(dtype=bool)
    p_scan[places[is_scanned]] = p_named[is_scanned]
    adjusted = np.minimum(factor * holm(np.concatenate((p_scan, p_named[~is_scanned]))), 1.0)
    of_scan = adjusted[: p_scan.size]
    of_named = np.empty(len(named))
    of_named[~is_scanned] = adjusted[p_scan.size :]
    of_named[is_scanned] = of_scan[places[is_scanned]]
    table = table.assign(
        error_low=np.append(table["error_low"].iloc[:1], _proven(named, p_named)),
        p_value=np.append(everyone["p_value"], p_named),
        p_adjusted=np.append(everyone["p_adjusted"], of_named),
    )
    if scan.empty:
        return table, scan
    # other groups keep what the sample shows: their directions are those of its tests
    is_named = np.isin(np.arange(p_scan.size), places[is_scanned])
    sampled = scan["p_adjusted"].to_numpy(dtype=np.float64)
    of_scan = np.where(is_named, of_scan, np.fmax(of_scan, sampled))
    of_scan = np.where(np.isnan(p_scan), np.nan, of_scan)
    direction = scan["direction"].to_numpy(dtype=object, copy=True)
    direction[(of_scan >= level) & ~np.isnan(of_scan)] = search.AS_FORECAST
    for i, found in enumerate(search.directions(sums, of_named, level)):
        if is_scanned[i] and is_tested[i]:
            direction[places[i]] = found
    scan = scan.assign(direction=direction, p_value=p_scan, p_adjusted=of_scan)
    return table, scan.sort_values("p_adjusted", kind="stable", ignore_index=True)


def _proven(named: pd.DataFrame, p_value: Floats) -> Floats:
    """Return lower ends of errors; 0 for groups that are too small for a test."""
    untested = np.isnan(p_value) & ~named["possible_leak"].to_numpy(dtype=bool)
    return np.where(untested, 0.0, named["error_low"].to_numpy(dtype=np.float64))
