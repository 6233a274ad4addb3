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
from evenhand.audits.group_tests import TestedGroups
from evenhand.audits.result import Audit
from evenhand.audits.scores import LEVELS, Band, mean_band, share_band, with_rate_band
from evenhand.calibration import (
    PIT_BINS,
    Family,
    GroupSums,
    PITCounts,
    RowValues,
    binned_error,
    binned_error_interval,
    coverage_name,
    holm,
    simultaneous_intervals,
    uniformity_tests,
)
from evenhand.columns import EVERYONE, Group, Partition

SUMS_OF_EVENTS = 5
"""Least number of sums of a group whose outcomes are 0 or 1; one fewer for other outcomes. Those of
`event_values` follow if their forecasts are deterministic."""


def counted_groups(
    everyone: PITCounts,
    groups: Mapping[str, PITCounts],
    sums: Mapping[str, Floats],
    partitions: Sequence[Partition],
    centre: float,
    found: Audit,
) -> TestedGroups:
    """Return the tables of an audit with named groups from counts of all rows.

    Parameters
    ----------
    everyone : PITCounts
        Counts of all rows.
    groups : dict of str to PITCounts
        Counts of the named groups.
    sums : dict of str to ndarray of shape (4,), (5,) or (11,)
        By group: sums of mean PITs, of the first three powers of residuals minus `centre`, of 0/1
        outcomes, and of `event_values` of deterministic forecasts of these.
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
    intervals = simultaneous_intervals(named, _share_of(family, len(names), n_extra))
    rows = [_everyone_row(everyone, sums[EVERYONE], centre, found)]
    estimates = named.estimates
    for i, name in enumerate(names):
        bands = {
            key: {
                "value": float(values[i]),
                "low": intervals[key][0][i],
                "high": intervals[key][1][i],
            }
            for key, values in estimates.items()
        }
        rows.append(_named_row(known[name], groups[name].n_samples, sums[name], bands))
    table = tables.group_frame(rows, found.leaks)
    listed = dict(zip(found.groups["group"], found.groups["scanned_as"], strict=True))
    scanned_as = pd.Series([listed.get(name) for name in table["group"]], dtype=object)
    table = table.assign(scanned_as=scanned_as, simultaneous=table["group"] != EVERYONE)
    table, scan = _tested(table, found.scan, named, 1 - family.confidence)
    scan = tables.with_named(scan, table)
    table = tables.with_within(table, found.within)
    joint = replace(family, n_groups=family.n_groups + n_extra)
    return TestedGroups(table, scan, joint, (), ())


def _group_sums(counts: Sequence[PITCounts], sums: Sequence[Floats], centre: float) -> GroupSums:
    """Return the sums over groups; level and spread are the smallest that fit the counts."""
    order = RowValues(
        counts[0].n_draws if counts else 1,
        has_residual=True,
        is_weighted=False,
        centre=centre,
        has_events=bool(sums) and sums[0].size >= SUMS_OF_EVENTS,
        has_event_cells=bool(sums) and sums[0].size > SUMS_OF_EVENTS,
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
        covered = [float(one.inside[share] @ shares) for share in LEVELS]
        moments, in_cells = values[1:SUMS_OF_EVENTS], values[SUMS_OF_EVENTS:]
        columns.append([n, level, spread, *covered, *in_cells, *moments])
    matrix = np.array(columns, dtype=np.float64).reshape(len(columns), len(order.names)).T
    error = np.array([binned_error(one) for one in counts])
    return GroupSums(order, matrix, error, np.full(len(columns), 1 / (2 * PIT_BINS)))


def _share_of(family: Family, n_named: int, n_extra: int) -> Family:
    """Return the family that named groups share if some have no row in the sample.

    Scanned groups were given their share of the error probability in the sample. Named groups
    divide what the named groups of the sample were given.
    """
    n_sampled = max(n_named - n_extra, 1)
    return replace(family, n_groups=-(-family.n_groups * n_named // n_sampled))


def _everyone_row(counts: PITCounts, sums: Floats, centre: float, found: Audit) -> dict[str, Any]:
    # as for tables in memory, the variance of a mean with equal weights divides by n, not n - 1
    n = counts.n_samples
    mean_pit, excess, square = (float(value) for value in sums[:3] / n)
    variance = max(square - excess**2, 0.0) / n if n >= 2 else np.nan
    bias = mean_band(centre + excess, variance)
    if sums.size >= SUMS_OF_EVENTS:
        bias = with_rate_band(bias, float(sums[SUMS_OF_EVENTS - 1] / n), n)
    return tables.group_row(
        Group.given(EVERYONE),
        n,
        _error(counts, found.groups.iloc[0]),
        mean_pit,
        bias,
        {level: _coverage(counts, level) for level in LEVELS},
        n < tables.SMALL_GROUP,
    )


def _named_row(group: Group, n: int, sums: Floats, bands: Mapping[str, Band]) -> dict[str, Any]:
    return tables.group_row(
        group,
        n,
        bands["error"],
        float(sums[0] / n),
        bands["bias"],
        {level: bands[coverage_name(level)] for level in LEVELS},
        n < tables.SMALL_GROUP,
    )


def _error(counts: PITCounts, sampled: pd.Series[Any]) -> Band:
    """Return the W1 error of all rows with its pointwise confidence interval.

    The interval of the sample is scaled by 1 / sqrt(n), as for large tables in memory.
    """
    error = binned_error(counts)
    if sampled["too_small"]:
        # the sample has too few rows for a bootstrap: use one draw per row
        low, high = binned_error_interval(counts.one_draw, 0.95)
        return {"value": error, "low": low, "high": high}
    spread = (sampled["error_high"] - sampled["error"]) * np.sqrt(sampled["n"] / counts.n_samples)
    return {"value": error, "low": max(error - spread, 0.0), "high": min(error + spread, 0.5)}


def _coverage(counts: PITCounts, level: float) -> Band:
    inside = counts.inside[level]
    n = counts.n_samples
    shares = np.arange(inside.size) / counts.n_draws
    mean = float(inside @ shares) / n
    # the mean over people and its variance depend on the counts only
    return share_band(mean, float(inside @ (shares - mean) ** 2) / n**2, n)


def _tested(
    table: pd.DataFrame, scan: pd.DataFrame, sums: GroupSums, level: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Test named groups with all rows and scanned groups with the sample, under one correction.

    A named group that was scanned is one hypothesis, tested with all rows.
    """
    named = table.iloc[1:]
    is_tested = (~named["possible_leak"] & (named["n"] >= search.FEW_ROWS)).to_numpy(dtype=bool)
    p_named = np.where(is_tested, uniformity_tests(sums)[-1], np.nan)
    p_scan = scan["p_value"].to_numpy(dtype=np.float64, copy=True)
    rows = {name: i for i, name in enumerate(scan["group"])}
    places = np.array([rows.get(name, -1) for name in named["scanned_as"]], dtype=np.intp)
    is_scanned = (places >= 0) & ~named["possible_leak"].to_numpy(dtype=bool)
    p_scan[places[is_scanned]] = p_named[is_scanned]
    adjusted = holm(np.concatenate((p_scan, p_named[~is_scanned])))
    of_scan = adjusted[: p_scan.size]
    of_named = np.empty(len(named))
    of_named[~is_scanned] = adjusted[p_scan.size :]
    of_named[is_scanned] = of_scan[places[is_scanned]]
    table = table.assign(
        error_low=np.append(table["error_low"].iloc[:1], _proven(named, p_named)),
        p_value=np.append(np.nan, p_named),
        p_adjusted=np.append(np.nan, of_named),
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
