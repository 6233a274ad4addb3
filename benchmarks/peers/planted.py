"""Simulated tables of the benchmark of peers, whose miscalibrated groups are known.

This module needs NumPy and pandas only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

FEW_VALUES = 10
"""Numbers with at most so many distinct values define one group per value."""

N_NUMBERS = 8
"""Number of uniform features of a table with a planted group."""

LEVELS = (2, 3, 4, 5)
"""Numbers of values of its categorical features."""

Mask = np.ndarray
"""Booleans of shape (n,)."""


@dataclass(frozen=True)
class Planted:
    """Table with one planted group, whose forecast is N(0, 1) in every row.

    Parameters
    ----------
    X : DataFrame of shape (n, 12)
        Features: `x0` to `x7` uniform on [0, 1], `c0` to `c3` categories of 2, 3, 4 and 5 values.
    y : ndarray of shape (n,)
        Outcomes.
    rows : ndarray of bool, shape (n,)
        Planted group; no row if the forecasts are calibrated.
    """

    X: pd.DataFrame
    y: np.ndarray
    rows: Mask


def nowhere(X: pd.DataFrame) -> Mask:
    """Return the empty group."""
    return np.zeros(len(X), dtype=bool)


def half(X: pd.DataFrame) -> Mask:
    """Return the half `x2 > 0.5`."""
    return (X["x2"] > 0.5).to_numpy()


def pair(X: pd.DataFrame) -> Mask:
    """Return the pair `x1 > 0.5` and one of three values of `c1`, a sixth of the rows."""
    return ((X["x1"] > 0.5) & (X["c1"] == "a")).to_numpy()


def triple(X: pd.DataFrame) -> Mask:
    """Return `x1 > 0.4`, `x3 < 0.6` and one of two values of `c0`, 18% of the rows."""
    return ((X["x1"] > 0.4) & (X["x3"] < 0.6) & (X["c0"] == "a")).to_numpy()


def ball(X: pd.DataFrame) -> Mask:
    """Return the ball of radius 0.25 around (0.75, 0.75) of `x4` and `x5`, 20% of the rows."""
    return (np.hypot(X["x4"] - 0.75, X["x5"] - 0.75) < 0.25).to_numpy()


def sharper(z: np.ndarray) -> np.ndarray:
    """Return `sign(z) sqrt|z|`: the distribution has another shape, but the same median."""
    return np.sign(z) * np.sqrt(np.abs(z))


PROBLEMS: dict[str, tuple[Callable[[pd.DataFrame], Mask], Callable[[np.ndarray], np.ndarray]]] = {
    "calibrated": (nowhere, lambda z: z),
    "half, mean +0.15": (half, lambda z: z + 0.15),
    "pair, mean +0.35, spread 1.5": (pair, lambda z: 0.35 + 1.5 * z),
    "triple, spread 1.6": (triple, lambda z: 1.6 * z),
    "ball, mean +0.5": (ball, lambda z: z + 0.5),
    "pair, shape": (pair, sharper),
}
"""Planted group, and what becomes of calibrated outcomes `z` in it, by name of the problem."""


def features(n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return the features of a table with a planted group."""
    numbers = {f"x{j}": rng.uniform(size=n) for j in range(N_NUMBERS)}
    words = np.array(list("abcde"))
    categories = {
        f"c{j}": words[rng.integers(0, levels, size=n)] for j, levels in enumerate(LEVELS)
    }
    return pd.DataFrame(numbers | categories)


def planted_table(problem: str, n: int, seed: int) -> Planted:
    """Return a table of a problem; tables of one seed have the same features."""
    rng = np.random.default_rng(seed)
    X = features(n, rng)
    group, change = PROBLEMS[problem]
    z = rng.normal(size=n)
    rows = group(X)
    return Planted(X, np.where(rows, change(z), z), rows)


def binary_features(n: int, n_features: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return independent features of two values each, which define two groups each."""
    return pd.DataFrame(
        rng.integers(0, 2, size=(n, n_features)), columns=[f"x{j}" for j in range(n_features)]
    )


OVERLAPPING: dict[str, Callable[[pd.DataFrame], Mask]] = {
    "x0 > 0.5": lambda X: (X["x0"] > 0.5).to_numpy(),
    "x1 > 0.7": lambda X: (X["x1"] > 0.7).to_numpy(),
    "c1 = a": lambda X: (X["c1"] == "a").to_numpy(),
}
"""Planted groups of the problem of repairs, which overlap, by name."""


def overlapping_table(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features and outcomes; the forecast N(0, 1) is wrong in three overlapping groups.

    In the first the mean is higher by 0.5, in the second the spread is 1.6 times as large, in the
    third the mean is lower by 0.4; where groups overlap, all that applies happens.
    """
    X = features(n, rng)
    first, second, third = (group(X) for group in OVERLAPPING.values())
    z = rng.normal(size=n)
    return X, np.where(second, 1.6, 1.0) * z + 0.5 * first - 0.4 * third


def groups_of_features(X: pd.DataFrame, min_size: int) -> dict[str, Mask]:
    """Return the groups that a scan tests: halves, values, and their pairs of `min_size` rows.

    Parameters
    ----------
    X : DataFrame of shape (n, p)
        Features without missing values: numbers and categories.
    min_size : int
        Smallest number of rows of a group.

    Returns
    -------
    dict of str to ndarray of bool, shape (n,)
        Masks by the names that `evenhand.search.scan_groups` prints.
    """
    single = [
        (name, label, mask)
        for name in X
        for label, mask in _groups_of_column(X[name])
        if 0 < mask.sum() < len(X)
    ]
    found = {label: mask for _, label, mask in single if mask.sum() >= min_size}
    for i, (name, label, mask) in enumerate(single):
        for other, other_label, other_mask in single[i + 1 :]:
            both = mask & other_mask
            if other != name and both.sum() >= min_size:
                found[f"{label} and {other_label}"] = both
    return found


def _groups_of_column(column: pd.Series) -> list[tuple[str, Mask]]:
    values = column.to_numpy()
    if not pd.api.types.is_numeric_dtype(column) or column.nunique() <= FEW_VALUES:
        return [(f"{column.name} = {value}", values == value) for value in sorted(set(values))]
    cut = np.median(values)
    return [
        (f"{column.name} <= {cut:g}", values <= cut),
        (f"{column.name} > {cut:g}", values > cut),
    ]
