"""Scores of forecasts, person by person: log score, CRPS, spread, coverage (method: front)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._validate import Floats, check_finite, check_fraction
from evenhand.calibration.pits import PITs, as_pits
from evenhand.forecast import Forecast
from evenhand.tables import row_blocks

BLOCK_ROWS = 1000
"""Forecasts scored at once: a randomized one is tabulated, draws by some 300 knots."""


def log_score(forecast: Forecast, y: ArrayLike) -> Floats:
    """Negative log density of each outcome, mean over draws, in nats; smaller is sharper."""
    return _over_draws(-forecast.logpdf(check_finite("y", y)))


def cell_log_score(
    forecast: Forecast, y: ArrayLike, step: float, span: tuple[float, float] | None = None
) -> Floats:
    """Negative log of the probability of each outcome's rounding cell over `step`, in nats.

    Mean over draws. On rounded outcomes a log density can be raised without end by spikes on the
    grid; the probability of the cell cannot. The cells of the least and the greatest outcome, of
    all in `span` if it is given, are open. For a fine step it is the log score.
    """
    return _over_draws(-forecast.log_cell(check_finite("y", y), step, span))


def crps(forecast: Forecast, y: ArrayLike) -> Floats:
    """Continuous ranked probability score of each outcome, mean over draws, in units of `y`."""
    outcomes = check_finite("y", y)
    return _in_blocks(forecast, lambda part, rows: (part.crps(outcomes[rows]),))[0]


def spread(forecast: Forecast) -> Floats:
    """Standard deviation of each person's forecasts, mean over draws, in units of `y`."""
    return _in_blocks(forecast, lambda part, rows: (part.std(),))[0]


def crps_and_spread(forecast: Forecast, y: ArrayLike) -> tuple[Floats, Floats]:
    """Return `crps` and `spread`, in half the time: both need a table of each forecast."""
    outcomes = check_finite("y", y)
    scores, spreads = _in_blocks(
        forecast, lambda part, rows: (part.crps(outcomes[rows]), part.std())
    )
    return scores, spreads


def interval_width(forecast: Forecast, level: float = 0.9) -> Floats:
    """Width of each person's central intervals, mean over draws, in units of `y`."""
    low, high = forecast.interval(level)
    return _over_draws(high - low)


def covered(pit: ArrayLike | PITs, level: float = 0.9) -> Floats:
    """Share of each person's draws whose central interval holds the outcome, shape (n,).

    Examples
    --------
    >>> covered([[0.5, 0.97], [0.2, 0.3]], level=0.9)
    array([0.5, 1. ])
    """
    check_fraction("level", level)
    return np.asarray(is_inside(as_pits(pit).matrix, level).mean(axis=-1))


def is_inside(matrix: Floats, level: float) -> NDArray[np.bool_]:
    """Whether the central interval of a level holds the outcome, for each PIT."""
    held = matrix >= (1 - level) / 2
    held &= matrix <= (1 + level) / 2
    return held


def rounding_step(y: ArrayLike) -> float | None:
    """Find the step of the grid that rounded outcomes lie on; None if they look continuous.

    Outcomes count as rounded if a tenth of them or more repeat and all gaps are multiples of the
    least one.

    Examples
    --------
    >>> rounding_step([0.1, 0.3, 0.3, 0.5])
    0.2
    """
    return grid_step(np.unique(check_finite("y", y)), np.size(y))


def grid_step(values: Floats, n: int) -> float | None:
    """Find the step of the grid that `n` outcomes lie on, from the distinct ones, rising.

    Examples
    --------
    >>> grid_step(np.array([0.1, 0.3, 0.5]), 4)
    0.2
    """
    # 0.3 and 0.1 + 0.2 are one value of the grid
    values = values[np.diff(values, prepend=-np.inf) > 1e-9 * (values[-1] - values[0])]
    if values.size < 2 or values.size > 0.9 * n:
        return None
    gaps = np.diff(values)
    least = float(gaps.min())
    multiples = gaps / least
    # a thousandth of the least gap is more than rounding of printed numbers leaves
    if np.abs(multiples - np.round(multiples)).max() > 1e-3:
        return None
    # the least gap carries a rounding error of its own: divide the whole range instead
    step = float((values[-1] - values[0]) / np.round(multiples).sum())
    return float(np.format_float_positional(step, precision=10, fractional=False))


def _in_blocks(
    forecast: Forecast, measure: Callable[[Forecast, slice], tuple[Floats, ...]]
) -> list[Floats]:
    """Mean over draws of some measures, block by block."""
    if forecast.n_samples <= BLOCK_ROWS:
        return [_over_draws(values) for values in measure(forecast, slice(None))]
    parts = row_blocks(forecast.n_samples, BLOCK_ROWS)
    blocks = [measure(forecast[rows], rows) for rows in parts]
    return [
        np.concatenate([_over_draws(values) for values in each])
        for each in zip(*blocks, strict=True)
    ]


def _over_draws(values: Floats) -> Floats:
    return np.asarray(values.mean(axis=-1) if values.ndim == 2 else values, dtype=np.float64)
