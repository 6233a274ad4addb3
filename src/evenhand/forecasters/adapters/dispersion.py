"""Dispersion of counts around predicted means, and a lower bound on these means."""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy import optimize, special, stats

from evenhand._validate import Floats

Family = Literal["auto", "poisson", "negative-binomial"]

LEAST_DISPERSION = 1e-6
MOST_DISPERSION = 1e4
"""Range of dispersions; below it negative binomial and Poisson distributions are equal to all
digits that count."""

FALSE_ALARM = 0.05
"""Probability that counts with a Poisson distribution are found to be overdispersed."""

LEAST_MEANS = (1e-6, 1e-4, 1e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Lower bounds on predicted means that are compared, in units of the mean count."""


CLEAR = 2.0
"""Number of paired standard errors by which a larger bound must be better."""


def learned_dispersion(y: Floats, mean: Floats, weight: Floats | None, family: Family) -> float:
    """Return the dispersion of counts, 0 for Poisson distributions.

    It is the maximum likelihood estimate of `a` in negative binomial distributions of variance
    `mean + a * mean**2`. With "auto" it is 0 unless a likelihood ratio test rejects Poisson
    distributions at the 5% level; under them the statistic is 0 or chi-squared with 1 degree of
    freedom, each with probability 1/2 (Self & Liang, JASA 82, 1987, 605-610).

    Parameters
    ----------
    y : ndarray of shape (n,)
        Counts.
    mean : ndarray of shape (n,)
        Predicted means (> 0) of models that have not seen the row.
    weight : ndarray of shape (n,), or None
        Weights of the rows.
    family : {"auto", "poisson", "negative-binomial"}
        Family of the distributions.
    """
    if family == "poisson":
        return 0.0
    weight = np.ones(y.size) if weight is None else weight
    # only ratios of weights count: they are scaled to the effective number of rows (Kish)
    weight = weight * (weight.sum() / (weight**2).sum())

    def loss(log_dispersion: float) -> float:
        return -float(weight @ log_likelihood(y, mean, float(np.exp(log_dispersion))))

    ends = np.log([LEAST_DISPERSION, MOST_DISPERSION])
    # the likelihood may have its maximum at the lower end, from where it is flat
    grid = np.linspace(ends[0], ends[1], 25)
    losses = [loss(one) for one in grid]
    best = int(np.argmin(losses))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    found = optimize.minimize_scalar(loss, bounds=bounds, method="bounded")
    if family == "auto":
        gain = float(weight @ (-log_likelihood(y, mean, 0.0))) - float(found.fun)
        if 2 * gain <= stats.chi2.isf(2 * FALSE_ALARM, 1):
            return 0.0
    return float(np.exp(found.x))


def log_likelihood(y: Floats, mean: Floats, dispersion: float) -> Floats:
    """Return the log probability of each count, without the term of `y` alone."""
    if dispersion == 0:
        return np.asarray(special.xlogy(y, mean) - mean)
    # log Gamma(y + 1/a) - log Gamma(1/a) + y log(a), whose limit for a -> 0 is 0
    size = 1 / dispersion
    rising = special.gammaln(y + size) - special.gammaln(size) + y * np.log(dispersion)
    return np.asarray(rising + special.xlogy(y, mean) - (y + size) * np.log1p(dispersion * mean))


def least_mean(y: Floats, mean: Floats, weight: Floats | None) -> float:
    """Return a lower bound on predicted means, chosen by the likelihood of held-out rows.

    Models without a log link predict means of 0 or less, at which no count has a probability. Each
    bound in `LEAST_MEANS` replaces the one before if its likelihood is clearly greater, so that
    good predictions of small means are left as they are.
    """
    weight = np.ones(y.size) if weight is None else weight
    least, *others = (share * float(np.average(y, weights=weight)) for share in LEAST_MEANS)
    score = log_likelihood(y, np.maximum(mean, least), 0.0)
    for candidate in others:
        higher = log_likelihood(y, np.maximum(mean, candidate), 0.0)
        gain = weight * (higher - score)
        if gain.sum() > CLEAR * np.sqrt((gain**2).sum()):
            least, score = candidate, higher
    return least
