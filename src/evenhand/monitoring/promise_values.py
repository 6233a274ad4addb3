"""Values per person whose mean over every group a promise bounds (outcomes: 6)."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeVar

import numpy as np

from evenhand._validate import Floats, InputError, Mask
from evenhand.certificates import Promise
from evenhand.links import Link
from evenhand.monitoring.rows import Cells, Rows

Side = Literal["higher", "lower", "gap"]
"""Way in which a promise is broken: outcomes higher or lower than forecast, or PITs far from their
draws."""

SIDES: dict[str, tuple[Side, ...]] = {
    "mean_pit": ("higher", "lower"),
    "gap": ("gap",),
    "bias": ("higher", "lower"),
}
"""Sides of each statistic."""

RANGES = {"mean_pit": (-0.5, 0.5), "gap": (0.0, 1.0), "bias": (-1.0, 1.0)}
"""Least and largest value of each statistic."""


Found = TypeVar("Found")


class PromiseValues(NamedTuple):
    """Values of the statistic of a promise.

    Parameters
    ----------
    values : ndarray of shape (n, n_sides)
        Values of each side; NaN where the outcome is missing.
    covered : ndarray of bool, shape (n,)
        Rows that the promise covers, or may cover if their outcome is missing.
    """

    values: Floats
    covered: Mask


def promise_values(promise: Promise, rows: Rows) -> PromiseValues:
    """Return the values of n rows whose mean over every group of the size is at most the target.

    In every group S, whatever the link, the group error is at least `|E_S mu(U) - 1/2|`, `mu(u)`
    the mean served PIT at the base PIT u: served PITs have that mean, and W1 is at least the
    distance of means. The mean of the absolute gap is at least the group error.

    Raises
    ------
    InputError
        If the rows lack what the statistic is computed from.
    """
    if promise.statistic == "mean_pit":
        assert promise.link is not None
        if rows.link not in (None, promise.link):
            raise InputError(
                f"rows have the link {rows.link}, but the promise is about {promise.link}; give the"
                " certificate of the forecasts that were served"
            )
        if promise.atom is not None and rows.promised is None:
            raise InputError(
                f"the promise is about outcomes other than {promise.atom:g}, but rows do not have"
                " which outcomes these are; read them from a log, or make Rows with promised, and"
                " with base of the part beside this atom"
            )
        base = _needed(rows.base, "base PITs", "log the link of the forecasts")
        value = mean_served_pit(promise.link, base, rows.known) - 0.5
    elif promise.statistic == "gap":
        draws = _needed(rows.r, "draws", "log the draws of the forecasts")
        lacks = np.flatnonzero(rows.known & np.isnan(draws))
        if lacks.size:
            raise InputError(
                f"row {lacks[0]} (counted from 0) has an outcome but no draw, which the promise is"
                " about; remove the forecasts without a draw"
            )
        value = mean_gap(rows.pit, draws)
    else:
        value = _needed(
            rows.excess, "outcomes minus probabilities", "watch forecasts of 0/1 outcomes"
        )
    value = np.where(rows.known, value, np.nan)
    covered = np.full(value.shape, True) if rows.promised is None else rows.promised | ~rows.known
    signs = {"higher": 1.0, "lower": -1.0, "gap": 1.0}
    sides = [signs[side] * value for side in SIDES[promise.statistic]]
    return PromiseValues(np.stack(sides, axis=-1), covered)


def mean_served_pit(link: Link, base: Cells, known: Mask) -> Floats:
    """Return the mean of the randomized served PIT over draws and positions in the cell, (n,)."""
    low, high = (np.where(known, end, 0.5) for end in base)
    return (link.mean_pit(low) + link.mean_pit(high)) / 2


def mean_gap(pit: Cells, r: Floats) -> Floats:
    """Return the mean of `|PIT - r|` over positions in the cell, (n,)."""
    low, high = pit
    inside = np.clip(r, low, high)
    width = high - low
    parts = (inside - low) ** 2 + (high - inside) ** 2
    spread = np.divide(parts, 2 * width, out=np.zeros_like(parts), where=width > 0)
    return np.asarray(np.abs(r - inside) + spread)


def _needed(found: Found | None, what: str, remedy: str) -> Found:
    if found is None:
        raise InputError(f"rows have no {what}, which the promise is about; {remedy}")
    return found
