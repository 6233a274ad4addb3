"""Served forecasts with the outcomes that were known at their horizon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from evenhand._validate import Floats, Mask

Times = NDArray[Any]
"""Array of type datetime64[us], in UTC."""

Cells = tuple[Floats, Floats]
"""Lower and upper ends of PIT cells, each of shape (n,); equal for continuous outcomes."""


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Served forecasts of n people in the order of serving, at the end of their horizons.

    Outcomes that were not known at the horizon are missing: their values are NaN.

    Parameters
    ----------
    time : ndarray of datetime64[us], shape (n,)
        Times of serving in UTC, increasing.
    known : ndarray of bool, shape (n,)
        Whether the outcome was known at the horizon.
    pit : tuple of two ndarrays of shape (n,)
        Cells of the served PITs.
    r : ndarray of shape (n,) or None
        Draws; None for forecasts without a draw.
    base : tuple of two ndarrays of shape (n,) or None
        Cells of the PITs of the deterministic forecaster inside a known link.
    excess : ndarray of shape (n,) or None
        Outcome minus probability, for 0/1 outcomes.
    promised : ndarray of bool, shape (n,), or None
        Rows that the promise covers; None if it covers all. The promise for amounts with an atom
        covers outcomes off the atom only; rows with a missing outcome are included.
    columns : DataFrame or None
        Columns that define groups, one row per forecast.
    delay : ndarray of shape (n,) or None
        Days from serving to the record of the outcome; NaN without an outcome, also beyond the
        horizon for late outcomes.
    """

    time: Times
    known: Mask
    pit: Cells
    r: Floats | None = None
    base: Cells | None = None
    excess: Floats | None = None
    promised: Mask | None = None
    columns: Any = None
    delay: Floats | None = None
