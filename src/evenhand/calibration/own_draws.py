"""Check that draws can support a guarantee (method: draws)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, InputError, bad_input
from evenhand.calibration.pits import BLOCK_ROWS, JITTERED


def check_own_draws(draws: Floats, rows: NDArray[np.intp] | None = None) -> None:
    """Refuse draws that cannot support a guarantee (method: draws).

    Valid draws are made separately for each person, one in each of m equal cells of [0, 1].

    Parameters
    ----------
    draws : ndarray of shape (n, m)
        Draws strictly between 0 and 1.
    rows : ndarray of int, optional
        Rows that are used, one per person; all by default. Only these must not share draws.

    Raises
    ------
    InputError
        If a cell has no draw, or two of the rows have the same draws.

    Examples
    --------
    >>> from evenhand.draws import jittered
    >>> check_own_draws(jittered(100, 8))
    """
    n, m = draws.shape
    for start in range(0, n, BLOCK_ROWS):
        # draws of draws.jittered are in the order of the cells; only others need a sort
        scaled = draws[start : start + BLOCK_ROWS] * m
        if (np.floor(scaled) == np.arange(m)).all():
            continue
        cells = np.sort(scaled, axis=-1) - np.arange(m)
        elsewhere = ((cells < -1e-9) | (cells > 1 + 1e-9)).any(axis=-1)
        if elsewhere.any():
            place = f"r[{start + int(np.argmax(elsewhere))}]"
            raise InputError(
                f"{place} does not have one draw in each of {m} equal cells of [0, 1]; {JITTERED}"
            )
    _check_fresh(draws, np.arange(n) if rows is None else rows)


def _check_fresh(draws: Floats, rows: NDArray[np.intp]) -> None:
    """Refuse draws shared by several people: continuous draws coincide with probability 0."""
    first = draws[rows, 0]
    order = rows[np.argsort(first, kind="stable")]
    twins = np.flatnonzero(np.diff(draws[order, 0]) == 0)
    same = twins[(draws[order[twins]] == draws[order[twins + 1]]).all(axis=-1)]
    rule = "contain fresh draws for each person"
    if same.size == rows.size - 1 > 0:
        raise bad_input("r", rule, "the same draws for all people", JITTERED)
    if same.size:
        got = f"the same draws in rows {order[same[0]]} and {order[same[0] + 1]}"
        remedy = "if these are rows of the same person, pass person labels as cluster"
        raise bad_input("r", rule, got, remedy)
