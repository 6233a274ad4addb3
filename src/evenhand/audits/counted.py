"""Audits of rows that come in parts: counts of PITs that add up, and the tables that they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand import certificates
from evenhand._format import one_line
from evenhand._validate import Floats, bad_input
from evenhand.audits import tables
from evenhand.audits.forecasts import read_block, rounding_cells
from evenhand.audits.pictures import LEVELS, curve_table
from evenhand.audits.result import Audit
from evenhand.audits.scores import (
    AVERAGE_ERROR,
    Band,
    mean_band,
    replace_scores,
    share_band,
)
from evenhand.audits.scores import LEVELS as COVERED
from evenhand.calibration import HISTOGRAM_BINS as BARS
from evenhand.calibration import (
    PIT_BINS,
    PITCounts,
    PITHistogram,
    binned_error,
    binned_error_interval,
    count_pits,
    draws_in_bins,
    histogram_band,
)
from evenhand.columns import Group, Partition
from evenhand.draws import fresh
from evenhand.report import Measure, Note, NoteKind, notes_of

MOST_RESIDUAL = 1e140
"""Squares of larger residuals would not be numbers."""

Sums = dict[str, Floats]
"""Sums over each group of the mean PIT of a row, its residual and its square, shape (3,)."""


@dataclass(frozen=True)
class CountPlan:
    """What is fixed before the rows are read, and is the same for all of them.

    Parameters
    ----------
    groups : tuple of Partition
        How columns name groups.
    levels : tuple of float
        Probabilities of the intervals whose coverage is counted.
    step : float or None
        Grid of outcomes whose PITs are spread over the probability of their rounding cell; None to
        leave them.
    span : tuple of float
        The least and the greatest outcome of all rows.
    centre : float
        Residuals are added up from here, so that squares do not swallow their spread.
    """

    groups: tuple[Partition, ...]
    levels: tuple[float, ...]
    step: float | None
    span: tuple[float, float]
    centre: float = 0.0


@dataclass(frozen=True, eq=False, repr=False)
class RowCounts:
    """Counts of the PITs of some rows; those of disjoint rows can be added.

    Parameters
    ----------
    counts : PITCounts
        PITs of all rows and of the named groups.
    bars : ndarray of int, shape (2, 20)
        Of each bar of the histogram, sums over rows of the number of draws in it and of its square.
    sums : dict of int to Sums
        Sums of each part of the table. They are floats, whose sum depends on the order: kept by
        part, they are added in the order of the parts, whichever was read first.
    """

    counts: PITCounts
    bars: NDArray[np.int64]
    sums: dict[int, Sums]

    def __repr__(self) -> str:
        return one_line(self, n_samples=self.counts.n_samples, groups=len(self.counts.groups))

    def __add__(self, other: RowCounts) -> RowCounts:
        both = self.sums | other.sums
        # blocks of one part meet; sums of other parts are taken as they are, however many there are
        for part in self.sums.keys() & other.sums.keys():
            both[part] = _added([self.sums[part], other.sums[part]])
        return RowCounts(self.counts + other.counts, self.bars + other.bars, both)

    @property
    def total(self) -> Sums:
        """Sums over all parts."""
        return _added([self.sums[part] for part in sorted(self.sums)])


def _added(sums: Sequence[Sums]) -> Sums:
    return {name: np.sum([one[name] for one in sums], axis=0) for name in sums[0]}


def count_rows(
    model: Any,
    X: Any,
    y: Floats,
    table: pd.DataFrame,
    plan: CountPlan,
    part: int,
    random: np.random.Generator,
) -> RowCounts:
    """Forecast some rows and count their PITs.

    Parameters
    ----------
    model : forecaster or Forecast
        As for `audit`.
    X : DataFrame or None
        The rows as the forecaster takes them.
    y : ndarray of shape (n,)
        Outcomes.
    table : DataFrame of n rows
        With the columns that groups are named by.
    plan : CountPlan
        What all rows have in common.
    part : int
        Number of the part of the table that they are from.
    random : numpy.random.Generator
        Of the draws of these rows.
    """
    # end cells are open, and the span says which they are: that of the block would change with it
    low, high = rounding_cells(y, plan.step, plan.span)
    block = read_block(model, X, low, high, fresh(y.size, random), random)
    residual = y - block.mean
    if not np.abs(residual).max() < MOST_RESIDUAL:
        rule = f"lie within {MOST_RESIDUAL:g} of their forecasts, as squares are added up"
        raise bad_input("outcomes", rule, f"{np.abs(residual).max():g}", "take a larger unit")
    masks = {
        name: mask
        for partition in plan.groups
        for name, mask in partition.masks(table[partition.column]).items()
    }
    counts = count_pits(block.pit, block.r, levels=plan.levels, groups=masks, random_state=random)
    # centred at the bias of the sample: the variance is a difference of sums of like size
    excess = residual - plan.centre
    values = np.column_stack((block.pit.mean(axis=-1), excess, excess**2))
    sums = {tables.EVERYONE: values.sum(axis=0)}
    sums |= {name: values[mask].sum(axis=0) for name, mask in masks.items()}
    in_bars = draws_in_bins(block.pit, BARS)
    bars = np.stack((in_bars.sum(axis=0), (in_bars**2).sum(axis=0)))
    return RowCounts(counts, bars, {part: sums})


def with_counts(found: Audit, rows: RowCounts, plan: CountPlan, *, confidence: float) -> Audit:
    """Replace in an audit of a random sample what the counts of all rows give.

    Parameters
    ----------
    found : Audit
        Of rows chosen at random: searches, scores of forecasts, examples and price stay as they
        are.
    rows : RowCounts
        Of all rows.
    plan : CountPlan
        By which they were counted.
    confidence : float
        Of the certificate.
    """
    everybody = rows.counts
    groups = {name: counts for name, counts in everybody.groups.items() if counts.n_samples}
    proof = None
    worst = found.worst_groups
    # what nothing can be proven of in a sample, nothing can be proven of at all
    if found.certificate is not None:
        # a group without rows has no certificate and takes no part of the level
        proof = certificates.certify_counts(
            replace(everybody, groups=groups),
            is_randomized=everybody.gap is not None,
            confidence=confidence,
        )
        worst = worst.assign(certified=[proof.group_error(mass) for mass in worst["mass"]])
    table = _group_table(rows, groups, plan, found)
    empty = tuple(
        Note(NoteKind.EMPTY_GROUP, (name,)) for name in everybody.groups if name not in groups
    )
    return replace(
        found,
        n_samples=everybody.n_samples,
        scores=replace_scores(found.scores, _pit_scores(table.iloc[0])),
        # the scan is of the sample: a group may be named here that it did not list
        groups=tables.with_scanned_as(table, found.scan),
        worst_groups=worst,
        certificate=proof,
        histogram=_histogram(rows),
        calibration=_curve(everybody),
        notes=(*_notes(everybody.n_samples, found), *empty, *found.notes),
    )


def _notes(n: int, found: Audit) -> tuple[Note, ...]:
    """Return which parts of the audit are of all rows, and which of the sample."""
    few = ["scores other than coverage and average error"]
    few += ["possible leaks"] if len(found.leaks) else []
    sampled = ["scanned groups", "learned groups", "worst groups in hindsight", "examples"]
    sampled += ["widths of the bands of errors"]
    # of a large sample a part is scored, which a note of its own says
    if not notes_of(found.notes, NoteKind.SCORED_ROWS):
        sampled = few + sampled
    return (
        Note(NoteKind.COUNTED_ROWS, numbers=(n, PIT_BINS)),
        Note(NoteKind.SAMPLED_ROWS, tuple(sampled), (found.n_samples,)),
    )


def _pit_scores(everyone: pd.Series[Any]) -> dict[Measure, Band]:
    """Return the scores that PITs alone give, from the row of everybody in the table of groups."""
    columns = {Measure("coverage", level): tables.coverage_column(level) for level in COVERED}
    return {
        measure: {
            "value": everyone[column],
            "low": everyone[f"{column}_low"],
            "high": everyone[f"{column}_high"],
        }
        for measure, column in (columns | {AVERAGE_ERROR: "error"}).items()
    }


def _group_table(
    rows: RowCounts, groups: Mapping[str, PITCounts], plan: CountPlan, found: Audit
) -> pd.DataFrame:
    """Everybody and the named groups; `found` is of the rows chosen at random."""
    margins = {row["group"]: _margin(row) for row in found.groups.to_dict("records")}
    known = {group.name: group for partition in plan.groups for group in partition.groups}
    known[tables.EVERYONE] = Group.given(tables.EVERYONE)
    counted = {tables.EVERYONE: rows.counts, **groups}
    total = rows.total
    return tables.group_frame(
        [
            _row(known[name], counts, total[name], plan.centre, margins.get(name))
            for name, counts in counted.items()
        ],
        found.leaks,
    )


def _margin(row: Mapping[Any, Any]) -> float | None:
    """Distance of the upper end of the band from the error, for one row; None for a small group."""
    return None if row["too_small"] else (row["error_high"] - row["error"]) * np.sqrt(row["n"])


def _row(
    group: Group, counts: PITCounts, sums: Floats, centre: float, margin: float | None
) -> dict[str, Any]:
    # as in memory: variance of a mean with equal weights, by n and not n - 1
    n = counts.n_samples
    mean_pit, excess, square = sums / n
    variance = max(square - excess**2, 0.0) / n if n >= 2 else np.nan
    return tables.group_row(
        group,
        n,
        _error(counts, margin),
        float(mean_pit),
        mean_band(float(centre + excess), float(variance)),
        {level: _coverage(counts, level) for level in COVERED},
        n < tables.SMALL_GROUP,
    )


def _error(counts: PITCounts, margin: float | None) -> tuple[float, float, float]:
    """Return the W1 error with its band.

    The band is that of the rows chosen at random, which shrinks as 1 / sqrt(n), as it is in an
    audit in memory beyond some number of rows.
    """
    error = binned_error(counts)
    if margin is None:
        # too few of its rows are in the sample to resample: counts of one draw each have a band
        return error, *binned_error_interval(counts.one_draw, 0.95)
    spread = margin / np.sqrt(counts.n_samples)
    return error, max(error - spread, 0.0), min(error + spread, 0.5)


def _coverage(counts: PITCounts, level: float) -> Band:
    inside = counts.inside[level]
    n = counts.n_samples
    shares = np.arange(inside.size) / counts.n_draws
    mean = float(inside @ shares) / n
    # the table of counts holds all that the mean over people and its variance need
    return share_band(mean, float(inside @ (shares - mean) ** 2) / n**2, n)


def _histogram(rows: RowCounts) -> pd.DataFrame:
    n = rows.counts.n_samples
    m = rows.counts.n_draws
    draws, squares = rows.bars / np.array([[m], [m**2]])
    # sum (b - 1/BARS)^2 = sum b^2 - 2/BARS sum b + n/BARS^2, b the share of a person's draws in it
    variance = (squares - 2 / BARS * draws + n / BARS**2) / n**2
    return PITHistogram(draws / n, *histogram_band(variance, m)).table()


def _curve(counts: PITCounts) -> pd.DataFrame:
    # levels are edges of bins, so the count at or below each is exact
    below = np.cumsum(counts.pit) / counts.pit.sum()
    return curve_table(below[np.rint(LEVELS * PIT_BINS).astype(np.intp) - 1], counts.n_samples)
