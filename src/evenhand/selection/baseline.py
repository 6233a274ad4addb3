"""Forecast that ignores every feature: the distribution of the training outcomes for everybody."""

from __future__ import annotations

import numpy as np

from evenhand._validate import Floats, Ints
from evenhand.distributions import LocationScale, Quantiles, Samples
from evenhand.forecast import Forecast

WITHOUT_FEATURES = "without features"
"""Name of the forecast that ignores every feature in `Selection.comparison`."""

FOLDS = 5
"""Folds of the certifying rows, if there are no training outcomes."""

MOST_KERNELS = 2000
"""Most outcomes in the kernel estimate; more are replaced by as many of their quantiles."""

MOST_LEVELS = 200


def without_features(
    learned: Floats, held_out: Floats, random: np.random.Generator
) -> list[tuple[Ints, Forecast]]:
    """Return a forecast of the held-out outcomes that ignores every feature, in parts.

    The distribution is a histogram of equal probabilities with exponential tails, `Quantiles`, at
    the quantiles of a kernel estimate, `Samples`: the quantiles are smoothed so that values that
    occur often have a finite density, and the tails are exponential so that outcomes beyond those
    of training have a finite score.

    Parameters
    ----------
    learned : ndarray of shape (k,)
        Training outcomes; empty for a model that was not fitted here. The outcomes of the other
        four fifths of the held-out rows then take their place.
    held_out : ndarray of shape (n,)
        The outcomes that are forecast.
    random : Generator
        Source of the folds.

    Returns
    -------
    list of (ndarray of int, Forecast)
        Held-out rows and their forecast; one part, or one for each fold. Empty if all or
        nearly all outcomes are equal, which have no density.
    """
    if learned.size:
        parts = [(np.arange(held_out.size), learned)]
    else:
        folds = random.permutation(held_out.size) % FOLDS
        each = [(np.flatnonzero(folds == k), held_out[folds != k]) for k in range(FOLDS)]
        parts = [(rows, others) for rows, others in each if rows.size]
    kernels = [_thinned(others) for _, others in parts]
    if not all(values.min() < values.max() and values.std() > 0 for values in kernels):
        return []
    return [
        (rows, _forecast(values, others.size, rows.size))
        for (rows, others), values in zip(parts, kernels, strict=True)
    ]


def _thinned(outcomes: Floats) -> Floats:
    """Return the outcomes, or `MOST_KERNELS` of their quantiles if there are more."""
    if outcomes.size <= MOST_KERNELS:
        return outcomes
    return np.quantile(outcomes, (np.arange(MOST_KERNELS) + 0.5) / MOST_KERNELS)


def _forecast(kernels: Floats, n_outcomes: int, n: int) -> Forecast:
    """Return the same distribution for n people."""
    n_levels = int(np.clip(round(2 * n_outcomes**0.4), 2, MOST_LEVELS))
    levels = (np.arange(n_levels) + 0.5) / n_levels
    smoothed = Quantiles(levels, Samples(kernels).ppf(levels)[None, :])
    # shared by all people: a batch of its own for each would take hundreds of numbers per person
    return Forecast(LocationScale(smoothed, np.zeros(n)))
