"""What an audit looks at: the PITs of a forecaster, or of forecasts that are made already, on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand import calibration
from evenhand._validate import (
    MILD_ATOM,
    Floats,
    bad_input,
    check_continuous,
    check_draws,
    check_finite,
    largest_atom,
)
from evenhand.distributions import Randomized
from evenhand.draws import fresh, jittered
from evenhand.forecast import Forecast, cell_ends
from evenhand.tables import row_blocks, take_rows

PIT_DRAWS = 64
SCORE_DRAWS = 16
"""Draws for CRPS and spread, whose means over draws settle with few."""

BLOCK = 20_000
"""Rows forecast at once, so that memory stays that of the PITs; also the most rows that scores
are taken on."""


@dataclass(frozen=True)
class Subject:
    """Forecasts on held-out rows, as numbers.

    Parameters
    ----------
    pit : ndarray of shape (n, m)
        PITs: rows are people, columns draws.
    r : ndarray of shape (n, m) or None
        The draws; None for a deterministic forecaster.
    outcomes : ndarray of shape (n,)
        The outcomes.
    residual : ndarray of shape (n,)
        Outcome minus the mean of the forecasts, units of y.
    step : float or None
        Grid that the outcomes lie on, if they are rounded.
    wide, few : Forecast
        Forecasts of the scored rows over many draws and over few; the same where they are given.
    scored : ndarray of int
        The rows that scores are taken on: all, or a random part of very many.
    """

    pit: Floats
    r: Floats | None
    outcomes: Floats
    residual: Floats
    step: float | None
    wide: Forecast
    few: Forecast
    scored: NDArray[np.intp]


def read_subject(
    model_or_forecast: Any, X: Any, y: ArrayLike | None, random: np.random.Generator
) -> Subject:
    """Take the PITs of a fitted forecaster over jittered draws, or of forecasts as they are."""
    if y is None:
        raise bad_input("y", "be given: an audit needs outcomes", "None")
    outcomes = check_finite("y", y)
    check_continuous(outcomes)
    n = outcomes.size
    rows = check_rows(model_or_forecast, X, n)
    step = calibration.rounding_step(outcomes)
    # an outcome that many rows share piles their PITs up: spread them over the cell's probability
    is_spread = step is not None and largest_atom(outcomes)[1] > MILD_ATOM
    low, high = (
        cell_ends(outcomes, step) if is_spread and step is not None else (outcomes, outcomes)
    )
    shares = fresh(n, random)
    pit = np.empty((n, 0))
    r = None
    residual = outcomes.copy()
    is_own = not isinstance(model_or_forecast, Forecast)
    for block in row_blocks(n, BLOCK):
        part = _forecast(*_block_of(model_or_forecast, rows, block), random)
        pits, draws, mean = _read(
            part, low[block], high[block], shares[block], random, is_own=is_own
        )
        if block.start == 0:  # filled in place: lists of blocks would take as much again
            pit = np.empty((n, pits.shape[1]))
            r = None if draws is None else np.empty((n, draws.shape[1]))
        pit[block] = pits
        if r is not None:
            r[block] = draws
        residual[block] -= mean
    scored = np.arange(n) if n <= BLOCK else np.sort(random.choice(n, BLOCK, replace=False))
    wide, few = _score_forecasts(
        model_or_forecast, rows, part if n <= BLOCK else None, scored, random
    )
    return Subject(pit, r, outcomes, residual, step, wide, few, scored)


def check_rows(model: Any, X: Any, n: int) -> Any:
    """Return X so that rows can be taken from it.

    Refuse what is neither forecaster nor forecast.
    """
    if isinstance(model, Forecast):
        if model.n_samples != n:
            raise bad_input(
                "y", f"have one outcome per forecast ({model.n_samples})", f"{n} outcomes"
            )
        return X
    if not hasattr(model, "forecast"):
        remedy = (
            "put a link around it: RandomizedRegressor(model), or make a Forecast of its output"
        )
        raise bad_input(
            "model_or_forecast", "be a forecaster or a Forecast", type(model).__name__, remedy
        )
    if X is None:
        raise bad_input("X", "be given with a forecaster", "None")
    if len(X) != n:
        raise bad_input("y", f"have one outcome per row of X ({len(X)})", f"{n} outcomes")
    return X if hasattr(X, "columns") else np.asarray(X)


def draws_like(r: ArrayLike, pit: Floats) -> Floats:
    """Return draws as a matrix of the shape of their PITs."""
    draws = check_draws(r)
    draws = draws[:, None] if draws.ndim == 1 else draws
    if draws.shape != pit.shape:
        raise bad_input("r", f"have the shape of pit {pit.shape}", f"shape {np.shape(r)}")
    return draws


def read_block(
    model_or_forecast: Any,
    X: Any,
    low: Floats,
    high: Floats,
    share: Floats,
    random: np.random.Generator,
) -> tuple[Floats, Floats | None, Floats]:
    """Forecast one block of rows.

    Parameters
    ----------
    model_or_forecast : forecaster or Forecast
        A fitted forecaster, which is given jittered draws, or the forecasts of the block.
    X : DataFrame or array-like of shape (k, n_features)
        The rows; not looked at where they are forecast already.
    low, high : ndarray of shape (k,)
        Ends of the outcomes' rounding cells, or the outcomes twice.
    share : ndarray of shape (k,)
        Where in the probability of its cell each PIT lies, between 0 and 1.
    random : numpy Generator
        Source of draws.

    Returns
    -------
    pit : ndarray of shape (k, m)
    r : ndarray of shape (k, m) or None
        The draws; None for a deterministic forecaster.
    mean : ndarray of shape (k,)
        Mean of each person's forecasts over the draws, units of y.
    """
    forecast = _forecast(model_or_forecast, X, random)
    return _read(
        forecast, low, high, share, random, is_own=not isinstance(model_or_forecast, Forecast)
    )


def _block_of(model: Any, X: Any, block: slice) -> tuple[Any, Any]:
    """Return the rows of a block, or the forecasts where they are there already."""
    if isinstance(model, Forecast):
        return (model if block == slice(0, len(model)) else model[block]), None
    return model, X if block == slice(0, len(X)) else take_rows(X, block)


def _forecast(model: Any, X: Any, random: np.random.Generator) -> Forecast:
    if isinstance(model, Forecast):
        return model
    forecast: Forecast = model.forecast(X, jittered(len(X), PIT_DRAWS, random))
    return forecast


def _read(
    forecast: Forecast,
    low: Floats,
    high: Floats,
    share: Floats,
    random: np.random.Generator,
    *,
    is_own: bool,
) -> tuple[Floats, Floats | None, Floats]:
    return (
        _pit(forecast, low, high, share),
        _draws(forecast),
        _mean(forecast, random, is_own=is_own),
    )


def _pit(forecast: Forecast, low: Floats, high: Floats, share: Floats) -> Floats:
    """PITs of shape (n, m), drawn from the probability of the rounding cell where it has a width."""
    pit = forecast.cdf(low)
    if low is not high and not np.array_equal(low, high):
        pit = pit + (share[:, None] if pit.ndim == 2 else share) * (forecast.cdf(high) - pit)
    return pit if pit.ndim == 2 else pit[:, None]


def _draws(forecast: Forecast) -> Floats | None:
    if forecast.r is None:
        return None
    r = forecast.r if forecast.r.ndim == 2 else forecast.r[:, None]
    return np.broadcast_to(r, (len(forecast), r.shape[1]))


def _mean(forecast: Forecast, random: np.random.Generator, *, is_own: bool) -> Floats:
    """Mean of each person's forecasts over the draws.

    The audit's own draws stand for a uniform one, over which a link has a law of its own. Given
    forecasts are averaged over the draws that they have; where means are no formulas, the mean is
    that of one outcome drawn from each, the probabilities spread over cells and dealt to the draws
    at random. All are without bias.
    """
    distribution = forecast.distribution
    shape = distribution.batch_shape
    if len(shape) == 1:
        return forecast.mean()
    if distribution.has_mean:
        return np.asarray(distribution.mean().mean(axis=-1))
    if (
        is_own
        and isinstance(distribution, Randomized)
        and distribution.base.batch_shape == (shape[0], 1)
    ):
        return distribution.mean_over_draws(random)[:, 0]
    levels = random.permuted(jittered(shape[0], shape[1], random), axis=-1)
    return np.asarray(distribution.ppf(levels).mean(axis=-1))


def _score_forecasts(
    model: Any,
    X: Any,
    whole: Forecast | None,
    scored: NDArray[np.intp],
    random: np.random.Generator,
) -> tuple[Forecast, Forecast]:
    if isinstance(model, Forecast):
        given = model if whole is not None else model[scored]
        return given, given
    rows = X if whole is not None else take_rows(X, scored)
    wide = whole or model.forecast(rows, jittered(scored.size, PIT_DRAWS, random))
    return wide, (
        model.forecast(rows, jittered(scored.size, SCORE_DRAWS, random))
        if wide.is_randomized
        else wide
    )
