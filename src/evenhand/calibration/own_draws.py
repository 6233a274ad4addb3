"""Draws that can carry a guarantee.

Each person's own, one in each of equal cells (method: draws).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, bad_input, check_draws
from evenhand.calibration.errors import BLOCK

JITTERED = "draw them with draws.jittered(n, m)"


def check_own_draws(r: ArrayLike, n: int, m: int) -> Floats:
    """Draws of shape (n, m), one in each cell."""
    draws = check_draws(r)
    if draws.ndim == 1:
        draws = draws[:, None]
    if draws.shape != (n, m):
        raise bad_input(
            "r",
            f"have the shape of pit, ({n}, {m}): each person's own draws",
            f"{draws.shape}",
            JITTERED,
        )
    for start in range(0, n, BLOCK):
        cells = np.sort(draws[start : start + BLOCK], axis=-1) * m - np.arange(m)
        elsewhere = ((cells < -1e-9) | (cells > 1 + 1e-9)).any(axis=-1)
        if elsewhere.any():
            place = f"r[{start + int(np.argmax(elsewhere))}]"
            rule = f"hold one draw in each of {m} equal cells of [0, 1]"
            raise bad_input(place, rule, "draws elsewhere", JITTERED)
    return draws


def check_fresh(draws: Floats) -> None:
    """Refuse draws that people share: continuous draws never coincide."""
    first = draws[:, 0]
    order = np.argsort(first, kind="stable")
    twins = np.flatnonzero(np.diff(first[order]) == 0)
    same = twins[(draws[order[twins]] == draws[order[twins + 1]]).all(axis=-1)]
    if same.size == draws.shape[0] - 1 > 0:
        raise bad_input(
            "r", "be drawn afresh for each person", "the same draws for everybody", JITTERED
        )
    if same.size:
        one = order[same[0]]
        other = order[same[0] + 1]
        remedy = "if they are rows of one person, name people with cluster"
        raise bad_input(
            "r",
            "be drawn afresh for each person",
            f"the same draws in rows {one} and {other}",
            remedy,
        )
