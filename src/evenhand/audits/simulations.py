"""Outcomes drawn from forecasts, for the null distribution of searches."""

from __future__ import annotations

import numpy as np

from evenhand._validate import Floats
from evenhand.audits.blocks import inside_link, spread_pits
from evenhand.audits.outcomes import Simulate, outcome_ends
from evenhand.audits.rounding import RoundingCells
from evenhand.calibration import PITs
from evenhand.censoring import CensoredTimes, KaplanMeier
from evenhand.distributions import Distribution, Hurdle, OutcomeKind, Randomized, as_hurdle
from evenhand.draws import fresh
from evenhand.forecast import Forecast


def simulation(
    forecast: Forecast,
    rounding: RoundingCells,
    origin: float,
    times: CensoredTimes | None = None,
) -> Simulate:
    """Return a function that draws outcomes from forecasts, and gives the PITs of these outcomes.

    The outcomes of a randomized forecast are drawn from the deterministic forecast inside its link,
    under which it is calibrated; those of other randomized forecasts from one of their draws,
    chosen at random. Rounded outcomes are rounded to the grid that contains `origin`.

    Times are cut off anew, see `cut_off`.
    """

    def simulate(random: np.random.Generator) -> PITs:
        inside = calibrated(forecast, random)
        drawn = inside.ppf(fresh(inside.batch_shape, random)).reshape(-1)
        outcomes = _rounded(forecast, drawn, rounding, origin)
        seen = None if times is None else cut_off(np.maximum(outcomes, 0.0), times, random)
        outcomes = outcomes if seen is None else seen.time
        ends = outcome_ends(forecast, outcomes, rounding, seen)
        pit, cells = spread_pits(forecast.distribution, ends, fresh(outcomes.size, random))
        return PITs(pit, None, None, cells, None if seen is None else seen.is_lost)

    return simulate


def cut_off(latent: Floats, times: CensoredTimes, random: np.random.Generator) -> CensoredTimes:
    """Return new times of the same people, cut off as they were.

    A person who was lost is cut off at the same time. When the others would have been cut off is
    drawn from the Kaplan-Meier estimate of that time, given that it is later than what was seen of
    them. This assumes that it is independent of the features, so it is approximate.

    Parameters
    ----------
    latent : ndarray of shape (n,)
        New times until the event, at least 0.
    times : CensoredTimes
        The times that were seen.
    """
    lost = times.is_lost
    estimate = KaplanMeier.of(times.time, lost)
    before = estimate.at(times.time)
    levels = before + (1 - before) * fresh(lost.size, random)
    # beyond the last of these times nobody is cut off
    drawn = np.append(estimate.values, np.inf)[np.searchsorted(estimate.cdf, levels)]
    cut = np.where(lost, times.time, drawn)
    happened = latent <= cut
    if times.horizon is not None:
        happened &= latent < times.horizon
        cut = np.minimum(cut, times.horizon)
    seen = np.where(happened, latent, np.minimum(latent, cut))
    return CensoredTimes(seen, happened, times.horizon, times.entered, seen, happened)


def _rounded(forecast: Forecast, values: Floats, rounding: RoundingCells, origin: float) -> Floats:
    if not rounding.is_used:
        return values
    rounded = rounding.rounded(values, origin)
    if forecast.outcome_kind is not OutcomeKind.HURDLE:
        return rounded
    # a value near the atom is rounded to the next value of the grid: it is not the atom
    at = as_hurdle(forecast.distribution).at
    return np.where((values == at) | (rounded == at), values, rounded)


def calibrated(forecast: Forecast, random: np.random.Generator) -> Distribution:
    """Return distributions of shape (n,) or (n, 1) under which the forecasts are calibrated."""
    distribution = forecast.distribution
    inside = inside_link(forecast)
    if inside is not None:
        return inside.base
    if isinstance(distribution, Hurdle) and isinstance(distribution.positive, Randomized):
        chance = (
            distribution.chance if distribution.chance.ndim == 1 else distribution.chance[:, :1]
        )
        return Hurdle(chance, distribution.positive.base, distribution.at, distribution.end)
    if len(distribution.batch_shape) == 1:
        return distribution
    n, m = distribution.batch_shape
    return distribution.take_draws(random.integers(m, size=(n, 1)))
