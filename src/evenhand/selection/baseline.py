"""Forecast that ignores every feature: the distribution of the training outcomes for everybody."""

from __future__ import annotations

import numpy as np

from evenhand._validate import Floats
from evenhand.distributions import Quantiles, Samples
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
) -> Forecast | None:
    """Return a forecast of the held-out outcomes that ignores every feature.

    The distribution is a histogram of equal probabilities with exponential tails, `Quantiles`, at
    the quantiles of a kernel estimate, `Samples`: the quantiles are smoothed so that values that
    occur often have a finite density, and the tails are exponential so that outcomes beyond those
    of training have a finite score. None if all outcomes are equal.

    Parameters
    ----------
    learned : ndarray of shape (k,)
        Training outcomes; empty for a model that was not fitted here. The outcomes of the other
        four fifths of the held-out rows then take their place.
    held_out : ndarray of shape (n,)
        The outcomes that are forecast.
    random : Generator
        Source of the folds.
    """
    n = held_out.size
    if learned.size:
        fold = np.zeros(n, dtype=np.intp)
        parts = [learned]
    else:
        fold = random.permutation(n) % FOLDS
        parts = [held_out[fold != k] for k in range(FOLDS)]
    # equal outcomes have no density
    if not all(np.unique(part).size > 1 for part in parts):
        return None
    n_levels = int(np.clip(round(2 * parts[0].size ** 0.4), 2, MOST_LEVELS))
    levels = (np.arange(n_levels) + 0.5) / n_levels
    values = np.stack([_smoothed_quantiles(part, levels) for part in parts])
    return Forecast(Quantiles(levels, values[fold]))


def _smoothed_quantiles(outcomes: Floats, levels: Floats) -> Floats:
    if outcomes.size > MOST_KERNELS:
        outcomes = np.quantile(outcomes, (np.arange(MOST_KERNELS) + 0.5) / MOST_KERNELS)
    return Samples(outcomes).ppf(levels)
