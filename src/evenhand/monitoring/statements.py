"""Statements that a watch tests: calibrated groups, fair draws, a kept promise and its envelope."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, Self, TypeVar

import numpy as np

from evenhand._validate import Floats, InputError, Mask, bad_input
from evenhand.certificates import Envelope, Promise
from evenhand.links import Link
from evenhand.monitoring.e_processes import Direction, Statement
from evenhand.monitoring.rows import Cells, Rows

# --- witnesses of miscalibration: functions whose mean under a calibrated forecast is 0

Kind = Literal["pit", "event"]
"""What errors are measured on: served PITs, or outcome minus probability for 0/1 outcomes."""

N_DRAWS = 64
"""Draws over which witnesses are averaged: their means are exact to 0.0001."""

LEAST = np.array([-0.5, -0.5, -0.25, -0.25])
"""Least values of `cell_witnesses`."""

PIT_DIRECTIONS: tuple[Direction, ...] = ("higher", "lower", "narrow", "wide")
"""What positive means of `cell_witnesses` of PITs mean."""


def cell_witnesses(low: Floats, high: Floats) -> Floats:
    """Return `c - 1/2`, `1/2 - c`, `|c - 1/2| - 1/4` and `1/4 - |c - 1/2|`, averaged over cells.

    For a function f with slopes between -1 and 1, `E f(W) - integral of f` is at most the W1
    distance of W to the uniform distribution. So the mean of a witness exceeds a tolerance only if
    the error does.

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


def _pit_witnesses(rows: Rows) -> Floats:
    """Return the witnesses of served PITs, averaged over draws where that is possible."""
    # of amounts with an atom the link randomizes a part alone
    if rows.link is None or rows.base is None or rows.promised is not None:
        return cell_witnesses(*rows.pit)
    low, high = (np.where(rows.known, end, 0.5) for end in rows.base)
    return averaged_witnesses(rows.link, low, high)


def _event_witnesses(rows: Rows) -> Floats:
    excess = excess_of(rows)
    return np.stack((excess, -excess), axis=-1)


def excess_of(rows: Rows) -> Floats:
    """Return outcome minus probability; InputError for rows without it."""
    what = "excess, but this watch began with 0/1 outcomes"
    return needed(rows.excess, what, "give outcome and probability, or begin another watch")


def _filled(rows: Rows, values: Floats, low: Floats) -> Floats:
    """Return values (n, J) with the least where the outcome is missing.

    Valid whatever outcomes are missing, even if that depends on the outcome.
    """
    return np.where(rows.known[:, None], values, low)


def calibrated(kind: Kind, tolerance: float) -> Statement:
    """Return that an error is at most the tolerance.

    The W1 distance of served PITs to uniform, or the bias of 0/1 forecasts.
    """
    directions, low, values = ERRORS[kind]
    bound = np.full(low.shape, tolerance)
    return Statement(directions, low, bound, lambda rows: _filled(rows, values(rows), low))


ERRORS: dict[Kind, tuple[tuple[Direction, ...], Floats, Callable[[Rows], Floats]]] = {
    "pit": (PIT_DIRECTIONS, LEAST, _pit_witnesses),
    "event": (("higher", "lower"), np.full(2, -1.0), _event_witnesses),
}
"""Directions, least values and values of what errors are measured on."""


FAIR_DRAWS = Statement(
    ("higher", "lower", "extreme", "central"),
    LEAST,
    np.zeros(4),
    lambda rows: cell_witnesses(rows.r, rows.r),  # type: ignore[arg-type]
)
"""Draws are uniform given the past. The hypothesis is exact, as draws are made by a machine."""


# --- the promise for every group of a size

SIDES: dict[str, tuple[Direction, ...]] = {
    "mean_pit": ("higher", "lower"),
    "gap": ("gap",),
    "bias": ("higher", "lower"),
}
"""Sides of each statistic: outcomes higher or lower than forecast, or PITs far from their draws."""

RANGES = {"mean_pit": (-0.5, 0.5), "gap": (0.0, 1.0), "bias": (-1.0, 1.0)}
"""Least and largest value of each statistic."""

Found = TypeVar("Found")


def promise_values(promise: Promise, rows: Rows) -> tuple[Floats, Mask]:
    """Return the values of n rows whose mean over every group of the size is at most the target.

    In every group S, whatever the link, the group error is at least `|E_S mu(U) - 1/2|`, `mu(u)`
    the mean served PIT at the base PIT u: served PITs have that mean, and W1 is at least the
    distance of means. The mean of the absolute gap is at least the group error.

    Returns
    -------
    values : ndarray of shape (n,)
        Values of the first side; those of the other one are their negatives. NaN where the outcome
        is missing.
    covered : ndarray of bool, shape (n,)
        Rows that the promise covers, or may cover if their outcome is missing.

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
        what = "base PITs, which the promise is about"
        base = needed(rows.base, what, "log the link of the forecasts")
        value = mean_served_pit(promise.link, base, rows.known) - 0.5
    elif promise.statistic == "gap":
        what = "draws, which the promise is about"
        draws = needed(rows.r, what, "log the draws of the forecasts")
        lacks = np.flatnonzero(rows.known & np.isnan(draws))
        if lacks.size:
            raise InputError(
                f"row {lacks[0]} (counted from 0) has an outcome but no draw, which the promise is"
                " about; remove the forecasts without a draw"
            )
        value = mean_gap(rows.pit, draws)
    else:
        what = "outcomes minus probabilities, which the promise is about"
        value = needed(rows.excess, what, "watch forecasts of 0/1 outcomes")
    return np.where(rows.known, value, np.nan), _covered(rows)


def _covered(rows: Rows) -> Mask:
    everyone = np.full(len(rows), True)
    return everyone if rows.promised is None else rows.promised | ~rows.known


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


def needed(found: Found | None, what: str, remedy: str) -> Found:
    """Return a column of rows; InputError if there is none."""
    if found is None:
        raise InputError(f"rows have no {what}; {remedy}")
    return found


N_CELLS = 32
"""Number of cells; 64 detect a change hardly earlier."""

LAST_CELL = 0.02
"""Width of the cell next to the target, as a share of the distance from the least value to it."""


class QuantileCells(NamedTuple):
    """Cells of quantiles q from the least value to the target, and the values that test them.

    The largest mean of a group of a share `mass` of people is `CVaR(x) = min over q of
    q + E(x - q)_+ / mass` (Rockafellar & Uryasev 2000). It is at most `target` if and only if there
    is a q with `E z_q <= 1`, `z_q = (x - q)_+ / (mass (target - q))`. In q, `z_q` falls where `x <
    target` and rises where `x > target`. Its minimum over a cell therefore lies at one of the two
    ends, and has a mean of at most 1 if any q of the cell serves.

    Parameters
    ----------
    target : float
        Promised largest mean.
    mass : float
        Share of people.
    left, right : ndarray of shape (n_cells,)
        Ends of the cells.

    Examples
    --------
    The minimum of `z_q` over all cells is 0 for values below, and large for values above:

    >>> cells = QuantileCells.of(target=0.3, mass=0.2, low=-0.5)
    >>> ratios = cells.ratios(np.array([-0.5, 0.3, 0.5]))
    >>> ratios.shape, ratios.min(axis=-1).round(2)
    ((3, 32), array([0.  , 0.  , 6.25]))
    """

    target: float
    mass: float
    left: Floats
    right: Floats

    @classmethod
    def of(cls, target: float, mass: float, low: float) -> Self:
        """Make the cells for values of at least `low`, which is below the target."""
        if mass == 1:
            # the mean of everybody: q = low is the weakest condition
            return cls(target, mass, np.array([low]), np.array([low]))
        # the loss of power by a cell depends on its width over the distance to the target, so the
        # widths fall in geometric steps. A q below `low` serves only if `low` does
        edges = target - (target - low) * np.geomspace(1.0, LAST_CELL, N_CELLS)
        edges[0] = low
        return cls(target, mass, edges, np.append(edges[1:], target))

    def ratios(self, x: Floats) -> Floats:
        """Return the least `z_q` over each cell, shape (..., n_cells)."""
        value = x[..., None]
        at_left = np.maximum(value - self.left, 0.0) / (self.target - self.left)
        # q = target serves if no value exceeds it, and then needs no bet
        distance = self.target - self.right
        above = np.maximum(value - self.right, 0.0)
        at_right = np.divide(above, distance, out=np.zeros_like(above), where=distance > 0)
        least = np.where(value > self.target, at_left, at_right)
        return np.ascontiguousarray(least / self.mass)


def kept_promise(promise: Promise) -> list[Statement]:
    """Return that in every group of a size a mean is at most a target, one statement per side.

    Group errors are not observed, but the mean of a value x per person (`promise_values`) is at
    most the group error in every group. The largest mean over groups of a share of at least `mass`
    is at most `target` if and only if there is a quantile q with `E z_q <= 1` (`QuantileCells`). So
    the null hypothesis is a union over q, and the minimum over cells of q of e-processes tests it.

    *What is a broken promise.* The null hypothesis is that one q serves all rows: each has, given
    the rows before it, `E z_q <= 1`. Then, in every stretch of time, all groups of a share of at
    least `mass` of the people in it have a mean of at most the target. The distributions of rows
    may change from period to period, as long as one q serves them all. What the null hypothesis
    does not include, and an alarm may therefore report:

    - a period in which the promise does not hold for the people of that period, even if it holds
      for the people of the year, such as days with shocks that are common to all outcomes
      (`benchmarks/watch_delays.py` has examples);
    - periods of which each keeps the promise for its own people, but with different q. A group may
      then consist of more people of some periods than of others, and the largest mean over such
      groups exceeds those within the periods: the certificate promised it for them, too.

    Raises
    ------
    InputError
        If the target does not exceed the least value, or `mass` is not a share.

    Examples
    --------
    >>> from evenhand.links import Entropic
    >>> promise = Promise("mean_pit", mass=0.2, target=0.25, confidence=0.95, link=Entropic(0.12))
    >>> [statement.directions[0] for statement in kept_promise(promise)]
    ['higher', 'lower']
    """
    sides, least = SIDES[promise.statistic], RANGES[promise.statistic][0]
    targets = targets_of(promise)
    if not (len(targets) == len(sides) and min(targets) > least and 0 < promise.mass <= 1):
        rule = f"have a target above {least:g} and a mass above 0 and at most 1"
        raise bad_input("promise", rule, promise)
    return [_kept_side(promise, side, target) for side, target in zip(sides, targets, strict=True)]


def targets_of(promise: Promise) -> tuple[float, ...]:
    """Return the bound of each side of a promise."""
    return promise.targets or (promise.target,) * len(SIDES[promise.statistic])


def _kept_side(promise: Promise, side: Direction, target: float) -> Statement:
    least = RANGES[promise.statistic][0]
    cells = QuantileCells.of(target, promise.mass, least)

    def values(rows: Rows) -> Floats:
        value, covered = promise_values(promise, rows)
        ratios = cells.ratios(np.where(rows.known, -value if side == "lower" else value, least))
        return np.where(covered[:, None], ratios, np.nan)

    low = np.zeros(cells.left.size)
    return Statement((side,) * low.size, low, low + 1, values, "min")


# --- bounds of a certificate on base PITs, which may be left without a broken promise


def kept_envelope(envelope: Envelope) -> list[Statement]:
    """Return that base PITs lie within certified bounds, one statement per side that has any.

    A certificate bounds `P(U <= t)` and `P(U >= 1 - t)` at several t. People outside these bounds
    are no broken promise, because the bound of group errors may still hold, but the forecaster is
    not what was certified. Missing outcomes count as outside of the tails.

    Examples
    --------
    >>> found = kept_envelope(Envelope(low=((0.05, 0.06),), high=((0.05, 0.06),)))
    >>> [statement.directions for statement in found]
    [('higher',), ('lower',)]
    """
    sides: tuple[tuple[Direction, tuple[tuple[float, float], ...]], ...] = (
        ("higher", envelope.high),
        ("lower", envelope.low),
    )
    return [_within(side, np.array(bounds)) for side, bounds in sides if bounds]


def _within(side: Direction, bounds: Floats) -> Statement:
    tails, bound = bounds.T

    def values(rows: Rows) -> Floats:
        assert rows.base is not None  # the promise beside the envelope needs them
        low, high = rows.base
        cells = (low, high) if side == "lower" else (1 - high, 1 - low)
        share = _filled(rows, _share_below(cells, tails, rows.known), np.zeros(tails.size))
        return np.where(_covered(rows)[:, None], share, np.nan)

    return Statement((side,) * bound.size, np.zeros(bound.size), bound, values)


def _share_below(cells: Cells, tails: Floats, known: Mask) -> Floats:
    """Share of each cell at or below each tail, (n, J)."""
    low, high = (np.where(known, end, 1.0)[:, None] for end in cells)
    width = high - low
    share = np.divide(tails - low, width, out=(tails >= low) * 1.0, where=width > 0)
    return np.asarray(np.clip(share, 0.0, 1.0))
