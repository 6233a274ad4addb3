"""Rounded outcomes, an honest forecast of them and one that puts spikes on the grid."""

import numpy as np
from scipy import stats

from evenhand.distributions import Normal, NormalMixture

SPIKE = 0.01
"""Standard deviation of a spike, in steps."""

RAW_GAIN = -np.log(SPIKE * np.sqrt(2 * np.pi)) - (np.log(2) - 3 / 8)
"""What `spiky` gains in log density, in nats: the height of a spike over the mean of its cell, less
what a normal forecast loses whose standard deviation is twice the true one."""

CELL_LOSS = np.log(2) - 3 / 8
"""What `spiky` loses in the probability of the cell."""


def rounded_task(n=300, seed=0):
    """Return rows and integers with a standard deviation of 5 around their mean."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 1))
    return X, np.round(30 * X[:, 0] + 5 * rng.normal(size=n))


def honest(X):
    """Return the distribution of the outcomes before rounding."""
    return Normal(_means(X), np.full(len(X), 5.0))


def spiky(X):
    """Return a distribution of twice the spread, concentrated on the integers."""
    integers = np.round(_means(X))[:, None] + np.arange(-30, 31)
    weights = stats.norm.pdf(integers, _means(X)[:, None], 10.0)
    weights /= weights.sum(axis=-1, keepdims=True)
    return NormalMixture(weights, integers, np.full(integers.shape, SPIKE))


def _means(X):
    return 30 * np.asarray(X, dtype=np.float64)[:, 0]
