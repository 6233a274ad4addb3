"""PITs of a block of rows: cells of the outcomes, draws, means and the base of a link."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from evenhand._validate import Floats, InputError, bad_input
from evenhand.certificates import LinkBase
from evenhand.distributions import Distribution, Randomized
from evenhand.draws import jittered
from evenhand.forecast import Forecast

PIT_DRAWS = 64
"""Draws per row for PITs and log scores."""

Ends = tuple[Floats, Floats]
"""Lower and upper ends of cells."""


class Block(NamedTuple):
    """PITs of some rows.

    Parameters
    ----------
    pit : ndarray of shape (k, m)
        PITs, at the person's position within each cell: rows are people, columns draws.
    r : ndarray of shape (k, m) or None
        The draws; None for a deterministic forecaster.
    mean : ndarray of shape (k,)
        Mean of each person's forecasts over the draws, units of y.
    base : LinkBase or None
        The link and the PITs of the deterministic forecaster inside it; None if the forecaster is
        no link.
    cells : tuple of two ndarrays of shape (k, m), or None
        Ends of the PITs' cells; None if all cells are empty.
    """

    pit: Floats
    r: Floats | None
    mean: Floats
    base: LinkBase | None
    cells: Ends | None


def forecast_of(model: Any, X: Any, random: np.random.Generator) -> Forecast:
    """Return the forecasts of a model at jittered draws, or the given forecasts."""
    if isinstance(model, Forecast):
        return model
    # one random draw in each of 64 equal cells: midpoints would understate errors (method: 1)
    draws = jittered(len(X), PIT_DRAWS, random)
    with missing_columns_named(model, X):
        forecast: Forecast = model.forecast(X, draws)
    return forecast


@contextmanager
def missing_columns_named(model: Any, X: Any) -> Iterator[None]:
    """Name the columns of its training table that a failing model does not find in X."""
    try:
        yield
    except InputError:
        raise
    except (KeyError, ValueError) as error:
        # models of other libraries are wrapped; arrays have no names
        names = getattr(getattr(model, "model", model), "feature_names_in_", ())
        lacking = [repr(name) for name in names if name not in getattr(X, "columns", names)]
        if not lacking:
            raise
        rule = "have the columns that the model was fitted on"
        remedy = "pass the table with these columns"
        raise bad_input("X", rule, f"none named {', '.join(lacking[:5])}", remedy) from error


def read_forecast(
    forecast: Forecast,
    ends: Ends,
    ties: Floats,
    random: np.random.Generator,
    *,
    is_own: bool,
    has_mean: bool = True,
) -> Block:
    """Compute the PITs of forecasts; `is_own` is true if the audit made their draws.

    Means of times that may be cut off have no use, and may take long: without `has_mean` they are
    NaN.
    """
    inside = inside_link(forecast)
    base = None
    if inside is not None:
        # served PITs are not computed from these: near 1 they would lose digits of the upper tail
        pit, cells = spread_pits(inside.base, ends, ties)
        own = None if cells is None else (_first(cells[0]), _first(cells[1]))
        base = LinkBase(_first(pit), inside.link, own)
    pit, cells = spread_pits(forecast.distribution, ends, ties)
    if pit.ndim == 1:
        pit = pit[:, None]
        cells = None if cells is None else (cells[0][:, None], cells[1][:, None])
    mean = _mean(forecast, random, is_own=is_own) if has_mean else np.full(len(forecast), np.nan)
    return Block(pit, _draws(forecast), mean, base, cells)


def inside_link(forecast: Forecast) -> Randomized | None:
    """Return the distributions of a link around one base distribution per person, or None."""
    distribution = forecast.distribution
    if forecast.r is None or not isinstance(distribution, Randomized):
        return None
    # a base with several draws per person is not deterministic
    is_one_each = forecast.r.ndim == 1 or distribution.base.batch_shape[-1:] in ((), (1,))
    return distribution if is_one_each else None


def spread_pits(distribution: Distribution, ends: Ends, ties: Floats) -> tuple[Floats, Ends | None]:
    """Return PITs, shape of the batch, spread over their cells, and the ends of the cells.

    The cell of an outcome `y` is `[F(y-), F(y)]`, and that of a rounded one reaches over all
    outcomes that are rounded to it.
    """
    low, high = ends
    if len(distribution.batch_shape) == 2:
        low, high, ties = low[:, None], high[:, None], ties[:, None]
    # exactly 1 where nothing is known above
    upper = np.where(np.isposinf(high), 1.0, distribution.cdf(high))
    # without atoms and a grid both ends of a cell are the outcome: one evaluation suffices
    if not distribution.has_atoms and np.array_equal(low, high):
        return upper, None
    lower = np.minimum(distribution.cdf_left(low), upper)
    # rounding errors must not move a PIT out of its cell
    return np.clip(lower + ties * (upper - lower), lower, upper), (lower, upper)


def _first(values: Floats) -> Floats:
    """Return one value per person of an array of shape (n,) or (n, 1)."""
    return np.asarray(values.reshape(values.shape[0], -1)[:, 0])


def _draws(forecast: Forecast) -> Floats | None:
    if forecast.r is None:
        return None
    r = forecast.r if forecast.r.ndim == 2 else forecast.r[:, None]
    return np.broadcast_to(r, (len(forecast), r.shape[1]))


def _mean(forecast: Forecast, random: np.random.Generator, *, is_own: bool) -> Floats:
    """Mean of each person's forecasts over the draws.

    If the audit makes the draws, a link has a formula for the mean over a uniform draw. Given
    forecasts are averaged over their own draws. Where a mean has no formula, it is estimated by
    one outcome drawn from each forecast, at jittered probabilities in random order. All of these
    estimates are unbiased.
    """
    distribution = forecast.distribution
    shape = distribution.batch_shape
    if len(shape) == 1:
        return forecast.mean()
    if distribution.has_mean:
        return np.asarray(distribution.mean().mean(axis=-1))
    # n x 64 integrals would take longer than the rest of the audit
    if (
        is_own
        and isinstance(distribution, Randomized)
        and not distribution.has_atoms
        and distribution.base.batch_shape == (shape[0], 1)
    ):
        return distribution.mean_over_draws(random)[:, 0]
    levels = random.permuted(jittered(shape[0], shape[1], random), axis=-1)
    return np.asarray(distribution.ppf(levels).mean(axis=-1))
