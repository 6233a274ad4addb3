"""Scores per row of all forecasters of the forecast benchmark, computed by the same code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evenhand import Forecast
from evenhand.distributions import LocationScale, NormalMixture
from evenhand.forecasters.samples import residual_distribution
from evenhand.outcomes import Rounding, rounding_step
from evenhand.scoring import cell_log_score, crps, log_score
from evenhand.tables import row_blocks

BLOCK_ROWS = 2000
"""Number of rows scored at once, as a forecast by quantiles needs temporaries of its size."""

N_KERNELS = 40
"""Number of kernels of a density estimated from quantiles."""

WIDE_SHARE = 0.01
"""Weight of the wide normal distribution in such a density."""

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Scale:
    """Rounding grid of the outcomes of a table.

    Parameters
    ----------
    step : float or None
        Step of the grid; None for outcomes that are not on a grid.
    span : tuple of float
        Smallest and largest outcome, whose cells are open.
    """

    step: float | None
    span: tuple[float, float]

    @classmethod
    def of(cls, y: np.ndarray) -> Scale:
        """Return the scale of all outcomes of a table."""
        return cls(rounding_step(y), (float(y.min()), float(y.max())))


def forecast_of(arrays: Arrays, y: np.ndarray) -> Forecast:
    """Return the forecast that a peer's predictions describe.

    Parameters
    ----------
    arrays : dict of str to ndarray
        Normal forecasts by "mean" and "std", quantiles by "quantiles", or "centre" with the
        held-out "residuals".
    y : ndarray of shape (n,)
        Training outcomes.
    """
    if "std" in arrays:
        return Forecast.from_normal(arrays["mean"], arrays["std"])
    if "quantiles" in arrays:
        return _smoothed(arrays["quantiles"], y)
    residuals = residual_distribution(arrays["residuals"], np.ones(len(arrays["residuals"])))
    return Forecast(LocationScale(residuals, arrays["centre"]))


def _smoothed(quantiles: np.ndarray, y: np.ndarray) -> Forecast:
    """Return kernel density estimates from quantiles at the middles of equal shares.

    A forest predicts atoms at training outcomes, whose density does not exist, and nothing beyond
    them. Interpolated quantiles have spikes at ties: on the tables for choosing defaults their mean
    log score is worse by 0.5 nats to millions, and their CRPS is not better. One per cent of a wide
    normal distribution is mixed in for outcomes far from all that the forest has seen nearby.
    """
    n = len(quantiles)
    samples = quantiles.reshape(n, N_KERNELS, -1).mean(axis=-1)
    spread = quantiles.std(axis=-1)
    low, high = np.quantile(quantiles, [0.25, 0.75], axis=-1)
    # Silverman's rule, as in `Samples`; at least a thousandth of the spread of all outcomes
    narrow = np.where(high > low, np.minimum(spread, (high - low) / 1.349), spread)
    width = 0.9 * np.maximum(narrow, 1e-3 * y.std()) * N_KERNELS**-0.2
    weights = np.append(np.full(N_KERNELS, (1 - WIDE_SHARE) / N_KERNELS), WIDE_SHARE)
    loc = np.column_stack([samples, np.full(n, y.mean())])
    scale = np.column_stack([np.tile(width[:, None], N_KERNELS), np.full(n, 2 * y.std())])
    return Forecast(NormalMixture(weights, loc, scale))


def row_scores(forecast: Forecast, y: np.ndarray, scale: Scale) -> dict[str, np.ndarray]:
    """Return scores and PITs per row.

    Parameters
    ----------
    forecast : Forecast
        Deterministic forecast of n rows.
    y : ndarray of shape (n,)
        Outcomes.
    scale : Scale
        Grid of all outcomes of the table.

    Returns
    -------
    dict of str to ndarray of shape (n,)
        "log" is the log score in nats, the cell log score for outcomes on a grid; "crps" is in
        units of `y`; "mean" is the mean of the forecast; "pit" is spread over rounding cells.
    """
    shares = np.random.default_rng(0).uniform(size=len(y))
    blocks = [
        _block_scores(forecast[part], y[part], shares[part], scale)
        for part in row_blocks(len(y), BLOCK_ROWS)
    ]
    return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}


def _block_scores(
    forecast: Forecast, y: np.ndarray, shares: np.ndarray, scale: Scale
) -> dict[str, np.ndarray]:
    if scale.step is None:
        log = log_score(forecast, y)
        pit = forecast.cdf(y)
    else:
        log = cell_log_score(forecast, y, scale.step, scale.span)
        pit = forecast.pit(y, ties=shares, rounding=Rounding(scale.step, scale.span))
    return {"log": log, "crps": crps(forecast, y), "mean": forecast.mean(), "pit": pit}
