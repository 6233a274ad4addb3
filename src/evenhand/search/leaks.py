"""Detection of groups and features that the outcome may define (target leakage)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from msgspec.structs import replace

from evenhand._validate import Floats, Ints, Mask
from evenhand.results import Leak
from evenhand.tables import Groups, as_numbers, as_table, column_kind, feature_groups


def find_leaks(y: Floats, median: Floats, groups: Groups, features: Any) -> tuple[Leak, ...]:
    """Find the groups, then the features, that the outcome may define.

    Calibration within a group is defined for groups that are known before the outcome. In a group
    such as "outcomes above their median" even the true distribution is miscalibrated. There are two
    criteria for such a group:

    - *range of outcomes*: the group equals the rows with outcomes between two thresholds (one of
      which may be infinite), or the rows outside of them, up to 1% of the rows and up to 10% of the
      smaller of the group and its complement, which have at least 10 rows each; and no range of
      the forecasts' medians fits as well;
    - *rank correlation*: a numeric or date feature has an absolute rank correlation (Spearman) with
      the outcome above 0.99 and above that of the forecasts' medians, on at least 20 rows.

    A column is found if one of its groups is found; one that defines no groups, such as free text,
    if the rows where it is missing are. A group of given size that is drawn independently of the
    outcomes is found with probability below 2e-4 at 20 rows, 2e-6 at 30 rows and 1e-9 at 100 rows.
    Two halves whose outcomes are normal with equal variance meet the 1% limit only if their means
    differ by 4.65 standard deviations, and are not found if the forecasts' medians separate them as
    well as the outcomes do. False alarms remain if the forecasts ignore such a strong feature (for
    1,000 people and a group of 2% whose mean differs from that of the others by 4 standard
    deviations, in a quarter of tables), or if a feature ranks outcomes better than the forecasts
    do.
    """
    ranges = (Ranges.of(y), Ranges.of(median))
    outcomes = pd.DataFrame({"y": y, "median": median})
    ranks = outcomes.rank()
    table = pd.DataFrame() if features is None else as_table(features, y.size)
    by_column: dict[str | None, Leak] = {}
    for j, (name, made) in enumerate(feature_groups(table)):
        values = table.iloc[:, j]
        # ids and free text have no groups, but may be missing where the outcome is of some range
        masks = [values.isna().to_numpy()] if isinstance(made, str) else list(made.values())
        found = [_apart(mask, *ranges) for mask in masks]
        least = min((one for one in found if one is not None), default=None)
        own, of_median = _correlations(as_numbers(values, column_kind(values)), outcomes, ranks)
        if least is not None or own is not None:
            numbers = {"rank_correlation": own, "forecast_rank_correlation": of_median}
            by_column[name] = Leak(kind="feature", name=name, column=name, apart=least, **numbers)
    apart = {group: _apart(mask, *ranges) for group, mask in groups.pairs()}
    # and other groups of their columns
    columns = {one.column for one, share in apart.items() if share is not None} | set(by_column)
    columns.discard(None)
    of_groups = [
        replace(
            by_column.get(one.column, Leak(kind="group", name="")),
            kind="group",
            name=one.name,
            column=one.column,
            apart=share,
        )
        for one, share in apart.items()
        if share is not None or one.column in columns
    ]
    return *of_groups, *by_column.values()


def _apart(mask: Mask, outcomes: Ranges, medians: Ranges) -> float | None:
    """Return the share of rows on which a group differs from a range of outcomes.

    None if it is not such a range, or if the forecasts' medians separate the group as well.
    """
    n = mask.size
    size = np.count_nonzero(mask)
    smaller = min(size, n - size)
    # few rows are often a range of outcomes by chance
    if smaller < 10:
        return None
    apart = outcomes.apart(mask)
    # differs on at most 1% of the rows and on at most a tenth of the group and of its complement:
    # by the first rule alone any rare group would qualify
    is_range = apart <= 0.01 * n and apart <= 0.1 * smaller
    # a range that the forecasts separate as well is no leak: the group was predictable
    return apart / n if is_range and apart < medians.apart(mask) else None


@dataclass(frozen=True)
class Ranges:
    """Sorted values, for the comparison of groups with ranges of values.

    Parameters
    ----------
    order : ndarray of int, shape (n,)
        Rows in increasing order of the value.
    ends : ndarray of int
        0 and the number of rows at or below each distinct value: the positions of thresholds.
    """

    order: Ints
    ends: Ints

    @classmethod
    def of(cls, values: Floats) -> Ranges:
        """Sort the values."""
        counts = np.unique(values, return_counts=True)[1]
        return cls(np.argsort(values, kind="stable"), np.append(0, np.cumsum(counts)))

    def apart(self, mask: Mask) -> int:
        """Return the smallest number of rows on which a group differs from a range of values.

        Complements of ranges are included.
        """
        balance = np.concatenate(([0], np.cumsum(np.where(mask[self.order], 1, -1))))[self.ends]
        # the balance counts rows of the group minus others; it increases most over the best range
        # (Kadane's algorithm, linear time)
        rise = int((balance - np.minimum.accumulate(balance)).max())
        fall = int((np.maximum.accumulate(balance) - balance).max())
        size = int(np.count_nonzero(mask))
        return min(size - rise, mask.size - size - fall)


def _correlations(
    numbers: Floats, outcomes: pd.DataFrame, ranks: pd.DataFrame
) -> tuple[float, float] | tuple[None, None]:
    """Return the rank correlations of a feature and of forecast medians with outcomes.

    None if the feature cannot be made from the outcome.
    """
    present = ~np.isnan(numbers)
    if present.sum() < 20:
        return None, None
    # most features have no missing values and share the ranks of all outcomes, which are slow to
    # compute
    ranks = ranks if present.all() else outcomes[present].rank()
    ranks = ranks.assign(own=pd.Series(numbers[present], ranks.index).rank())
    # equal values have no correlation
    found = ranks.corr()["y"].abs().fillna(0.0)
    own, of_median = float(found["own"]), float(found["median"])
    return (own, of_median) if own > 0.99 and own > of_median else (None, None)
