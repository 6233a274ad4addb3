"""Quantiles of mixtures of normal distributions: exact ones, and tables for integrals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from evenhand._validate import Floats, Ints
from evenhand.distributions.normal import LOG_ROOT_2PI

SOLVED = 65_536
"""Number of values in a temporary array of the solver, few enough for the cache."""

MOST_STEPS = 200
"""Largest number of steps of the solver; four are usual."""

DEEPEST_PLAIN = -36.0
"""Normal score below which tail probabilities are handled by their logarithms."""


KNOT_STEP = 0.5
"""Distance of the normal scores between whose quantiles a table is interpolated."""

MOST_MISSED = 1e-4
"""Largest difference of normal scores in a table of interpolated quantiles."""

MOST_BENT = 0.2
"""Largest relative difference of the slopes at two knots from the slope between them."""


def solve_scores(
    weights: Floats,
    loc: Floats,
    scale: Floats,
    row: Any,
    sign: Floats,
    score: Floats,
    start: Floats,
) -> Floats:
    """Solve `ndtri(CDF(y)) = score` by Newton steps inside a bracket.

    On the scale of normal scores the CDF of a mixture is nearly linear, so few steps suffice. The
    quantile lies between the smallest and the largest quantile of the components.
    """
    ends = sign[:, None] * loc[row] + scale[row] * score[:, None]
    low = ends.min(axis=-1)
    high = ends.max(axis=-1)
    y = np.clip(start, low, high)
    y[np.isinf(score)] = score[np.isinf(score)]
    open_ended = (high > low) & np.isfinite(score)
    for evaluate, asked in (
        (_score_and_slope, np.flatnonzero(open_ended & (score >= DEEPEST_PLAIN))),
        (_deep_score_and_slope, np.flatnonzero(open_ended & (score < DEEPEST_PLAIN))),
    ):
        _solve(evaluate, weights, loc, scale, row, sign, score, y, low, high, asked)
    return y


def knots_of(scores: Floats) -> Ints:
    """Return the numbers of scores about `KNOT_STEP` apart, with the first and the last one."""
    wanted = np.arange(scores[0], scores[-1], KNOT_STEP)
    return np.unique(np.append(np.searchsorted(scores, wanted), scores.size - 1))


def interpolated(
    weights: Floats, loc: Floats, scale: Floats, scores: Floats, knots: Ints, exact: Floats
) -> Floats:
    """Return quantiles at the scores, shape (n, q), from exact ones at the knots.

    Where the cubic misses the score in the middle between two knots, as at a gap between
    components, all quantiles between the knots are solved for.
    """
    n = exact.shape[0]
    at_knots = scores[knots]
    row = np.arange(n)[:, None]
    _, slope = _at(weights, loc, scale, row, at_knots, exact)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        rise = 1 / slope
        middle = (at_knots[1:] + at_knots[:-1]) / 2
        place = np.arange(middle.size)
        found, _ = _at(
            weights, loc, scale, row, middle, _cubic(at_knots, exact, rise, place, middle)
        )
        # near a gap between components slopes differ from that of the chord
        chord = np.diff(exact, axis=-1) / np.diff(at_knots)
        bends = np.maximum(np.abs(rise[:, 1:] / chord - 1), np.abs(rise[:, :-1] / chord - 1))
        # not the reverse: a comparison with NaN must count as a miss
        is_missed = ~((np.abs(found - middle) <= MOST_MISSED) & (bends <= MOST_BENT))
        place = np.clip(np.searchsorted(knots, np.arange(scores.size)) - 1, 0, middle.size - 1)
        table = _cubic(at_knots, exact, rise, place, scores)
    table[:, knots] = exact
    solved = is_missed[:, place]
    solved[:, knots] = False
    rows, columns = np.nonzero(solved)
    if rows.size:
        sign = np.where(scores[columns] > 0, -1.0, 1.0)
        # a bracket contains the solution, whatever the start
        start = np.nan_to_num(sign * table[rows, columns])
        tail = sign * scores[columns]
        table[rows, columns] = sign * solve_scores(weights, loc, scale, rows, sign, tail, start)
    # rounding errors between equal quantiles
    return np.asarray(np.maximum.accumulate(table, axis=-1))


def _at(
    weights: Floats, loc: Floats, scale: Floats, row: Any, scores: Floats, y: Floats
) -> tuple[Floats, Floats]:
    """Return normal scores of the CDF at `y`, shape (n, q), and slopes; `scores` are expected."""
    sign = np.where(scores > 0, -1.0, 1.0)
    rows = np.broadcast_to(row, y.shape).ravel()
    s = scale[rows]
    z = np.broadcast_to(sign, y.shape).reshape(-1, 1) * (y.reshape(-1, 1) - loc[rows]) / s
    at, slope = _score_and_slope(weights[rows], z, s)
    return sign * at.reshape(y.shape), slope.reshape(y.shape)


def _cubic(knots: Floats, values: Floats, slopes: Floats, place: Ints, at: Floats) -> Floats:
    """Evaluate the cubic between knots `place` and `place + 1` at `at`, shape (n, q)."""
    # row by row, not as a product of matrices, whose rounding would depend on the number of rows
    width = knots[place + 1] - knots[place]
    t = (at - knots[place]) / width
    gap = values[:, place + 1] - values[:, place]
    from_left = slopes[:, place] * width - gap
    from_right = gap - slopes[:, place + 1] * width
    bend = t * (1 - t) * ((1 - t) * from_left + t * from_right)
    return np.asarray(values[:, place] + t * gap + bend)


def _solve(
    evaluate: Callable[[Floats, Floats, Floats], tuple[Floats, Floats]],
    weights: Floats,
    loc: Floats,
    scale: Floats,
    row: Any,
    sign: Floats,
    score: Floats,
    y: Floats,
    low: Floats,
    high: Floats,
    active: Ints,
) -> None:
    """Replace `y` by the solutions at `active`; `low` and `high` shrink to the last brackets."""
    w, m, s = weights[row[active]], sign[active, None] * loc[row[active]], scale[row[active]]
    least = s.min(axis=-1)
    last = high[active] - low[active]
    for _ in range(MOST_STEPS):
        if active.size == 0:
            return
        here = y[active]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            at, slope = evaluate(w, (here[:, None] - m) / s, s)
            newton = here - (at - score[active]) / slope
        below = at < score[active]
        low[active] = np.where(below, here, low[active])
        high[active] = np.where(below, high[active], here)
        # a Newton step that leaves the bracket, or is not half as long as the last step, is
        # replaced by bisection: without the second rule steps can alternate between two points
        quick = (newton >= low[active]) & (newton <= high[active])
        quick &= np.abs(newton - here) <= last / 2
        step = np.where(quick, newton, 0.5 * (low[active] + high[active]))
        last = np.abs(step - here)
        y[active] = step
        # the error after a Newton step is of the order of its square
        moved = last > np.where(quick, 1e-8, 1e-13) * least + 1e-13 * np.abs(step)
        if not moved.all():
            active, last, least = active[moved], last[moved], least[moved]
            w, m, s = w[moved], m[moved], s[moved]


def _score_and_slope(w: Floats, z: Floats, s: Floats) -> tuple[Floats, Floats]:
    """Return the normal score of the mixture's CDF and its derivative; `z` are component scores."""
    at = special.ndtri(np.clip(np.einsum("ij,ij->i", w, special.ndtr(z)), 1e-300, 1 - 1e-16))
    density = np.einsum("ij,ij->i", w, np.exp(-0.5 * z * z - LOG_ROOT_2PI) / s)
    return at, np.asarray(density * np.exp(0.5 * at * at + LOG_ROOT_2PI))


def _deep_score_and_slope(w: Floats, z: Floats, s: Floats) -> tuple[Floats, Floats]:
    """Return the same from logarithms, for tails below the smallest float."""
    at = special.ndtri_exp(special.logsumexp(special.log_ndtr(z), b=w, axis=-1))
    return at, np.exp(special.logsumexp(-0.5 * z * z - np.log(s), b=w, axis=-1) + 0.5 * at * at)
