"""Scores of forecasts per person: log score, CRPS, spread and coverage (method: front)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._validate import Floats, bad_input, check_finite, check_fraction
from evenhand.calibration.cells import Pit, as_cells
from evenhand.calibration.outcomes import Rounding

if TYPE_CHECKING:
    from evenhand.forecast import Forecast

# --- scores


def log_score(forecast: Forecast, y: ArrayLike) -> Floats:
    """Return the negative log density of each outcome in nats, mean over draws; lower is better.

    At an outcome that has a probability, such as a count or the zero of a hurdle, it is the
    negative log probability.

    Raises
    ------
    InputError
        If an outcome is outside the support of its forecast, where the score is infinite.
    """
    outcomes = check_finite("y", y)
    scores = _over_draws(-forecast.log_density(outcomes))
    outside = np.isposinf(scores)
    if outside.any():
        rule = "lie within the support of the forecasts"
        remedy = "correct the outcome, or fit the forecaster with a wider support"
        raise bad_input("y", rule, f"{outcomes[outside][0]:g}", remedy)
    return scores


def cell_log_score(
    forecast: Forecast, y: ArrayLike, step: float, span: tuple[float, float] | None = None
) -> Floats:
    """Return the negative log mean density over each outcome's rounding cell in nats.

    The score of an outcome `y` is `-log(P(rounding cell of y) / step)`, mean over draws. On rounded
    outcomes spikes on the grid can increase a log density without limit, but not the probability
    of a cell. The outer cells, those of the smallest and largest outcome (of `span`, if given), are
    open. For a fine step the score of all other outcomes equals the log score.
    """
    outcomes = check_finite("y", y)
    ends = (float(outcomes.min()), float(outcomes.max())) if span is None else span
    return _over_draws(-forecast.log_cell(outcomes, step, ends))


def log_score_on(forecast: Forecast, y: ArrayLike, grid: Rounding | None) -> Floats:
    """Return the log score; the cell log score where continuous outcomes lie on a grid."""
    if grid is None or grid.step is None or forecast.has_atoms:
        return log_score(forecast, y)
    return cell_log_score(forecast, y, grid.step, grid.span)


def crps(forecast: Forecast, y: ArrayLike) -> Floats:
    """Return the continuous ranked probability score of each outcome, in units of `y`.

    The score is the mean over draws.
    """
    outcomes = check_finite("y", y)
    return _in_blocks(forecast, lambda part, rows: (part.crps(outcomes[rows]),))[0]


def spread(forecast: Forecast) -> Floats:
    """Return the standard deviation of each person's forecasts, in units of `y`.

    The value is the mean over draws.
    """
    return _in_blocks(forecast, lambda part, rows: (part.std(),))[0]


def crps_and_spread(forecast: Forecast, y: ArrayLike) -> tuple[Floats, Floats]:
    """Return `crps` and `spread` together, in half the time: both use a table of each forecast."""
    outcomes = check_finite("y", y)
    scores, spreads = _in_blocks(
        forecast, lambda part, rows: (part.crps(outcomes[rows]), part.std())
    )
    return scores, spreads


def interval_width(forecast: Forecast, level: float = 0.9) -> Floats:
    """Return the width of each person's central intervals, mean over draws, in units of `y`."""
    low, high = forecast.interval(level)
    return _over_draws(high - low)


def covered(pit: Pit, level: float = 0.9) -> Floats:
    """Return the share of each person's draws whose central interval covers the outcome, (n,).

    For an outcome with an atom a draw counts by the share of its PIT's cell that lies in
    `[(1 - level) / 2, (1 + level) / 2]`, so that the mean is `level` under calibrated forecasts of
    any kind. Intervals that consist of whole outcomes cover more (`covered_whole`).

    Parameters
    ----------
    pit : Cells, array-like of shape (n,) or (n, m), or tuple (low, high) of two such arrays
        PITs between 0 and 1, or the ends of their cells: rows are people, columns are draws.
    level : float, default 0.9
        Nominal level of the central interval.

    Examples
    --------
    >>> covered([[0.5, 0.97], [0.2, 0.3]], level=0.9)
    array([0.5, 1. ])
    >>> covered(([0.0, 0.8], [0.8, 1.0]), level=0.5)  # of [0.25, 0.75], cells of 0.8 and 0.2
    array([0.625, 0.   ])
    """
    check_fraction("level", level)
    cells = as_cells(pit)
    return np.asarray(share_inside(cells.low, cells.high, level).mean(axis=-1))


def covered_whole(pit: Pit, level: float = 0.9) -> Floats:
    """Return the share of each person's draws whose interval contains the outcome, (n,).

    The interval is the central one between two quantiles, with its ends: it contains an outcome
    with an atom if the cell of the PIT reaches into `[(1 - level) / 2, (1 + level) / 2]`
    (outcomes: 4.1). Under calibrated forecasts the mean is at least `level`.

    Parameters
    ----------
    pit, level
        As for `covered`.

    Examples
    --------
    >>> covered_whole(([0.0, 0.8], [0.8, 1.0]), level=0.5)
    array([1., 0.])
    """
    check_fraction("level", level)
    cells = as_cells(pit)
    return np.asarray(touches(cells.low, cells.high, level).mean(axis=-1))


def share_inside(low: Floats, high: Floats, level: float) -> Floats:
    """Return the share of each cell inside the central interval of a level; a point is 0 or 1."""
    share = is_inside(low, level).astype(np.float64)
    # one array twice: there are no cells
    if low is not high:
        width = high - low
        overlap = np.minimum(high, (1 + level) / 2) - np.maximum(low, (1 - level) / 2)
        np.divide(np.maximum(overlap, 0.0), width, out=share, where=width > 0)
        np.minimum(share, 1.0, out=share)
    return share


def touches(low: Floats, high: Floats, level: float) -> NDArray[np.bool_]:
    """Whether the interval between quantiles contains the outcome of each cell."""
    if low is high:
        return is_inside(low, level)
    # the upper quantile is the first outcome whose CDF reaches the upper level: the outcomes up to
    # it are those whose CDF just below them is less
    is_low_enough = (low < (1 + level) / 2) | (is_inside(low, level) & (low == high))
    return np.asarray((high >= (1 - level) / 2) & is_low_enough)


def is_inside(matrix: Floats, level: float) -> NDArray[np.bool_]:
    """Whether the central interval of a level covers the outcome, for each PIT."""
    inside = matrix >= (1 - level) / 2
    inside &= matrix <= (1 + level) / 2
    return inside


def _in_blocks(
    forecast: Forecast, measure: Callable[[Forecast, slice], tuple[Floats, ...]]
) -> list[Floats]:
    """Return the means over draws of some measures, computed in blocks of rows."""
    blocks = [measure(part, rows) for rows, part in forecast.blocks()]
    return [
        np.concatenate([_over_draws(values) for values in each])
        for each in zip(*blocks, strict=True)
    ]


def _over_draws(values: Floats) -> Floats:
    return np.asarray(values.mean(axis=-1) if values.ndim == 2 else values, dtype=np.float64)
