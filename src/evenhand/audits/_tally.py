"""What an audit keeps of rows that come in parts.

Sums and counts, which add up in any order without rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._format import one_line
from evenhand._validate import Floats, bad_input
from evenhand.audits.forecasts import read_block
from evenhand.calibration import HISTOGRAM_BINS, PITCounts, count_pits, draws_in_bins
from evenhand.calibration._exact import Wholes, exact
from evenhand.columns import Partition
from evenhand.draws import fresh
from evenhand.forecast import cell_ends
from evenhand.search._scan_counts import ScanCounts, ScanLayout

MOST_RESIDUAL = 1e140
"""Of larger ones the squares would not be numbers."""


@dataclass(frozen=True)
class TallyPlan:
    """What is fixed before the rows are read, and is the same for all of them.

    Parameters
    ----------
    groups : tuple of Partition
        How columns name groups.
    layout : ScanLayout or None
        The groups that are scanned, if any are.
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
    layout: ScanLayout | None
    levels: tuple[float, ...]
    step: float | None
    span: tuple[float, float]
    centre: float = 0.0

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """How columns part the rows, for any purpose."""
        scanned = () if self.layout is None else self.layout.partitions
        return tuple(
            {part.column: part for part in (*self.groups, *scanned) if part is not None}.values()
        )


@dataclass(frozen=True, eq=False, repr=False)
class Tally:
    """What an audit keeps of some rows; tallies of different rows add up to that of all of them.

    Parameters
    ----------
    counts : PITCounts
        PITs of everybody and of the named groups.
    moments : dict of str to ndarray of whole numbers, shape (3,)
        Of everybody, under "everyone", and of the named groups: exact sums of the mean PIT of each
        row, of the residual and of its square.
    bars : ndarray of int, shape (2, 20)
        Of each bar of the histogram, sums over rows of the number of draws in it and of its square.
    scan : ScanCounts or None
        What is needed of the groups that are scanned.
    """

    counts: PITCounts
    moments: dict[str, Wholes]
    bars: NDArray[np.int64]
    scan: ScanCounts | None

    def __repr__(self) -> str:
        return one_line(self, n_samples=self.counts.n_samples, groups=len(self.counts.groups))

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.counts + other.counts,
            {name: sums + other.moments[name] for name, sums in self.moments.items()},
            self.bars + other.bars,
            None if self.scan is None or other.scan is None else self.scan + other.scan,
        )


def tally(
    model_or_forecast: Any,
    X: Any,
    y: Floats,
    table: pd.DataFrame,
    plan: TallyPlan,
    random: np.random.Generator,
) -> Tally:
    """Score some rows and keep what adds up.

    Parameters
    ----------
    model_or_forecast : forecaster or Forecast
        As for `audit`.
    X : DataFrame or None
        The rows as the forecaster takes them.
    y : ndarray of shape (n,)
        Outcomes.
    table : DataFrame of n rows
        With the columns that groups are named by or scanned in.
    plan : TallyPlan
        What all rows have in common.
    random : numpy.random.Generator
        Of the draws of these rows.
    """
    low, high = (y, y) if plan.step is None else cell_ends(y, plan.step, plan.span)
    pit, r, mean = read_block(model_or_forecast, X, low, high, fresh(y.size, random), random)
    residual = y - mean
    if not np.abs(residual).max() < MOST_RESIDUAL:
        rule = f"lie within {MOST_RESIDUAL:g} of their forecasts, as squares are added up"
        raise bad_input("outcomes", rule, f"{np.abs(residual).max():g}", "take a larger unit")
    parted = {part.column: part.masks(table[part.column]) for part in plan.partitions}
    masks = {name: mask for part in plan.groups for name, mask in parted[part.column].items()}
    counts = count_pits(pit, r, levels=plan.levels, groups=masks, random_state=random)
    values = np.column_stack(
        (pit.mean(axis=-1), residual - plan.centre, (residual - plan.centre) ** 2)
    )
    in_bars = draws_in_bins(pit, HISTOGRAM_BINS)
    scan = None
    if plan.layout is not None:
        scan = ScanCounts.count(plan.layout.of(parted, y.size), pit, residual, random)
    return Tally(
        counts,
        {"everyone": exact(values.sum(axis=0))}
        | {name: exact(values[mask].sum(axis=0)) for name, mask in masks.items()},
        np.stack((in_bars.sum(axis=0), (in_bars**2).sum(axis=0))),
        scan,
    )
