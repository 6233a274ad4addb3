"""Witnesses of miscalibration: functions whose mean under a calibrated forecast is 0 (outcomes: 6).

For a function f with slopes between -1 and 1, `E f(W) - integral of f` is at most the W1 distance
of W to the uniform distribution. So its conditional mean exceeds a tolerance only if the error
does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand._validate import Floats, Mask
from evenhand.links import Link
from evenhand.monitoring.alarms import Direction

N_DRAWS = 64
"""Draws over which witnesses are averaged: their means are exact to 0.0001."""


@dataclass(frozen=True)
class Witnesses:
    """Directions of some witnesses, and their least values.

    Parameters
    ----------
    directions : tuple of str
        What a positive mean of each witness means.
    low : tuple of float
        Least value of each witness: the one least favourable to an alarm.
    """

    directions: tuple[Direction, ...]
    low: tuple[float, ...]

    def with_missing(self, values: Floats, known: Mask) -> Floats:
        """Return values (n, W) with the least value where the outcome is missing."""
        # valid whatever outcomes are missing, even if that depends on the outcome
        return np.where(known[:, None], values, np.array(self.low))


PIT_WITNESSES = Witnesses(("higher", "lower", "narrow", "wide"), (-0.5, -0.5, -0.25, -0.25))
EVENT_WITNESSES = Witnesses(("higher", "lower"), (-1.0, -1.0))
DRAW_WITNESSES = Witnesses(("higher", "lower", "extreme", "central"), (-0.5, -0.5, -0.25, -0.25))


def cell_witnesses(low: Floats, high: Floats) -> Floats:
    """Return `c - 1/2`, `1/2 - c`, `|c - 1/2| - 1/4` and `1/4 - |c - 1/2|`, averaged over cells.

    Parameters
    ----------
    low, high : ndarray of shape (n,)
        Ends of the cells; equal for continuous outcomes.

    Returns
    -------
    ndarray of shape (n, 4)

    Examples
    --------
    >>> cell_witnesses(np.array([0.9, 0.2]), np.array([0.9, 1.0])).round(3)
    array([[ 0.4  , -0.4  ,  0.15 , -0.15 ],
           [ 0.1  , -0.1  , -0.038,  0.038]])
    """
    shift = (low + high) / 2 - 0.5
    left, right = low - 0.5, high - 0.5
    is_across = (left < 0) & (right > 0)
    width = np.where(is_across, right - left, 1.0)
    # over a cell across 1/2 the mean of |c - 1/2| is that of two triangles
    distance = np.where(is_across, (left**2 + right**2) / (2 * width), np.abs(shift))
    spread = distance - 0.25
    return np.stack((shift, -shift, spread, -spread), axis=-1)


def averaged_witnesses(link: Link, low: Floats, high: Floats) -> Floats:
    """Return the means over draws of the witnesses of served PITs under a link.

    In a group they have the same mean as those at the draws that were served, since draws are
    independent of everything else, and a smaller variance. They do not depend on the draws, so
    that draws which are not fair, or return with the same person, do not matter here.

    Parameters
    ----------
    link : Link
        The link.
    low, high : ndarray of shape (n,)
        Ends of the PIT cells of the deterministic forecaster.

    Returns
    -------
    ndarray of shape (n, 4)

    Examples
    --------
    With much randomization an outcome is little evidence about a group:

    >>> from evenhand.links import Entropic
    >>> u = np.array([0.1, 0.9])
    >>> averaged_witnesses(Entropic(0.05), u, u)[:, 0].round(2).tolist()
    [-0.08, 0.08]
    """
    r = (np.arange(N_DRAWS) + 0.5) / N_DRAWS
    first = link.ppf(low[:, None], r)
    last = first if np.array_equal(low, high) else link.ppf(high[:, None], r)
    at_draws = cell_witnesses(first.ravel(), last.ravel()).T.reshape(-1, low.size, N_DRAWS)
    return np.ascontiguousarray(at_draws.mean(axis=-1).T)


def event_witnesses(excess: Floats) -> Floats:
    """Return outcome minus probability and its negative, (n, 2), for 0/1 outcomes."""
    return np.stack((excess, -excess), axis=-1)
