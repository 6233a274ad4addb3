"""Cuts of number and date columns at the median, and their text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import Floats, Mask
from evenhand.columns.values import is_single

EXACT_WHOLE = 2**53
"""Smallest whole number from which two whole numbers may be the same float."""

BLOCK_VALUES = 4_000_000
"""Largest number of values in a working array of several columns, about 32 MB."""


def median_cut(present: pd.Series[Any]) -> str:
    """Return the text of the cut that halves a column without missing values."""
    rising = np.sort(comparable(present))
    if rising.dtype.kind == "M":
        return str(np.datetime_as_string(_middle(rising), unit="auto"))
    cut = _median(rising) if rising.dtype.kind == "f" else _middle(rising)
    at = int(np.searchsorted(rising, cut, side="right"))
    above = rising[at] if at < rising.size else np.nextafter(cut, np.inf)
    return cut_name(cut, rising[at - 1], above)


def at_or_below(present: pd.Series[Any], cut: str, *, learned_single: bool = False) -> Mask:
    """Return a mask of the values at or below a cut.

    Parameters
    ----------
    present : Series
        Numbers or dates, without missing values.
    cut : str
        The text of the cut, so that rows are on the side that the names of their groups show.
    learned_single : bool, default False
        Whether the cut was learned from floats of 32 bits or fewer.
    """
    if present.dtype.kind == "M":
        return np.asarray(comparable(present) <= np.datetime64(cut))
    # a whole number is compared as an integer, so that large ids keep their digits
    number = int(cut) if cut.lstrip("-").isdigit() else float(cut)
    if is_single(present) and not learned_single:
        # values have fewer digits than in training, and a value at the cut must stay at the cut
        with np.errstate(over="ignore"):
            return np.asarray(present.to_numpy(dtype=np.float32) <= np.float32(number))
    return np.asarray(comparable(present) <= number)


def comparable(present: pd.Series[Any]) -> NDArray[Any]:
    """Return non-missing values in the form in which they are compared with a cut.

    Dates are in local time of their zone. Whole numbers stay integers if two of them may be one
    float.
    """
    if present.dtype.kind == "M":
        return np.asarray(present.dt.tz_localize(None).to_numpy())
    numbers: NDArray[Any] = present.to_numpy(dtype=np.float64)
    if present.dtype.kind in "iu" and np.abs(numbers).max() >= EXACT_WHOLE:
        return present.to_numpy(dtype=np.int64 if present.dtype.kind == "i" else np.uint64)
    return numbers


def _middle(rising: NDArray[Any]) -> Any:
    """Return the middle value, or the largest value below the maximum if it is the maximum."""
    cut = rising[(rising.size - 1) // 2]
    below = rising[rising < rising[-1]]
    return cut if cut < rising[-1] or not below.size else below[-1]


def _median(rising: Floats) -> Any:
    """Return the median of the finite values, or `_middle` if it is the maximum or not finite."""
    finite = rising[np.isfinite(rising)]
    with np.errstate(over="ignore"):
        cut = np.median(finite) if finite.size else np.inf
    return cut if np.isfinite(cut) and cut < rising[-1] else _middle(rising)


def cut_name(cut: Any, last: Any, first: Any) -> str:
    """Return a cut as text with the fewest digits, at least six, that separate its two sides.

    Whole numbers below 10^15 are written without an exponent.

    Parameters
    ----------
    cut : number
        Written exactly if it is a whole number of numpy.
    last, first : number
        The largest value at or below the cut, and the smallest above it.

    Examples
    --------
    >>> cut_name(20200610.5, 20200610.0, 20200611.0), cut_name(0.123456789, 0.1, 0.2)
    ('20200610', '0.123457')
    """
    if isinstance(cut, np.integer):
        return str(int(cut))
    number = float(cut)
    for digits in range(6, 18):  # 17 digits represent every float
        shown = f"{number:.{digits}g}"
        if last <= float(shown) < first:
            break
    rounded = float(shown)
    return str(int(rounded)) if rounded.is_integer() and abs(rounded) < 1e15 else shown


def plain_halves(table: pd.DataFrame, most_values: int) -> Iterator[tuple[int, str, Mask]]:
    """Yield position, cut and upper half of each plain number column, many columns in one step.

    A column is plain if it has no missing or infinite values, more than `most_values` distinct
    values that floats distinguish, and values above its median. The cut is that of `median_cut`.
    """
    dtypes = table.dtypes.to_numpy()
    numeric = [
        j for j, dtype in enumerate(dtypes) if isinstance(dtype, np.dtype) and dtype.kind in "iuf"
    ]
    n = len(table)
    width = max(1, BLOCK_VALUES // max(n, 1))
    for start in range(0, len(numeric), width):
        part = numeric[start : start + width]
        values = np.ascontiguousarray(table.iloc[:, part].to_numpy(dtype=np.float64).T)
        # two order statistics by partition: sorting every column would cost more than the scan
        rising = np.partition(values, ((n - 1) // 2, n // 2), axis=-1)
        with np.errstate(over="ignore", invalid="ignore"):
            cuts = (rising[:, (n - 1) // 2] + rising[:, n // 2]) / 2
            # the first 100 rows usually show that a column has many distinct values
            steps = np.diff(np.sort(values[:, :100], axis=-1), axis=-1)
        plain = (steps > 0).sum(axis=-1) >= most_values
        plain &= np.isfinite(values).all(axis=-1) & np.isfinite(cuts) & (cuts < values.max(axis=-1))
        whole = np.array([dtypes[j].kind in "iu" for j in part])
        plain &= ~whole | (np.abs(values).max(axis=-1) < EXACT_WHOLE)
        high = values > cuts[:, None]
        last = np.where(high, -np.inf, values).max(axis=-1)
        first = np.where(high, values, np.inf).min(axis=-1)
        for i in np.flatnonzero(plain):
            yield part[i], cut_name(cuts[i], last[i], first[i]), high[i]
