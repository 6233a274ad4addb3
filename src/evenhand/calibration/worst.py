"""The oracle worst group: rows chosen with the outcomes seen (method: worst groups)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._checks import Floats, bad_input, check_fraction
from evenhand.calibration.errors import calibration_error, check_pit

__all__ = ["WorstGroupCurve", "worst_group_curve"]


@dataclass(frozen=True)
class WorstGroupCurve:
    """The worst group of each size.

    Parameters
    ----------
    masses : ndarray of shape (k,)
        Shares of the rows.
    errors : ndarray of shape (k,)
        W1 calibration error of the group found, 0 to 1/2.
    rows : tuple of ndarray
        Row numbers of each group.
    """

    masses: Floats
    errors: Floats
    rows: tuple[NDArray[np.intp], ...]


def worst_group_curve(pit: ArrayLike, masses: ArrayLike) -> WorstGroupCurve:
    """Find a worst group of each mass among all subsets of the rows, the outcomes seen.

    The groups searched are those of the paper: the rows with the lowest, and those with the highest, mean PIT over
    draws; the exact error over all draws decides. It is a lower bound for the worst subset of the sample. For a
    deterministic forecaster it says nothing about harm: even the true distribution scores about `(1 - mass) / 2`.

    Parameters
    ----------
    pit : array-like of shape (n,) or (n, m)
        PITs: rows are people, columns draws.
    masses : array-like of shape (k,)
        Shares of the rows, 0 < mass <= 1; a group has `ceil(mass * n)` rows.

    Returns
    -------
    WorstGroupCurve

    Examples
    --------
    >>> curve = worst_group_curve([[0.1, 0.6], [0.4, 0.9], [0.2, 0.8], [0.0, 0.3]], masses=[0.25, 1.0])
    >>> curve.errors, curve.rows[0]
    (array([0.35    , 0.090625]), array([3]))
    """
    matrix = check_pit(pit)
    shares = np.atleast_1d(np.asarray(masses, dtype=np.float64))
    if shares.ndim != 1 or shares.size == 0:
        raise bad_input("masses", "be a number or a list of numbers", f"shape {shares.shape}")
    for mass in shares:
        check_fraction("mass", mass, high_open=False)
    order = np.argsort(matrix.mean(axis=-1), kind="stable")
    n = order.size
    errors, rows = np.empty(shares.size), []
    for i, mass in enumerate(shares):
        # a rounding error in mass * n must not add a row
        k = min(max(int(np.ceil(mass * n - 1e-9)), 1), n)
        ends = (order[:k], order[n - k :])
        found = [calibration_error(matrix[end]) for end in ends]
        worst = int(np.argmax(found))
        errors[i] = found[worst]
        rows.append(np.sort(ends[worst]))
    return WorstGroupCurve(shares, errors, tuple(rows))
