"""Recalibration of an ensemble's spread from the rows that its members held out."""

from __future__ import annotations

import numpy as np
from scipy import optimize, special

from evenhand._validate import Floats, Mask

FEW_ROWS = 100
"""Number of held-out forecasts at which the logarithm of the factor is halved."""

RANGE = (0.6, 1.6)
"""Range of the factor."""


def spread_factor(
    weights: Floats, loc: Floats, std: Floats, y: Floats, row_weight: Floats, held: Mask
) -> float:
    """Return the factor for the components' standard deviations of an ensemble.

    A member's factor t maximizes the likelihood of the rows that it held out. The ensemble needs
    another one: averaging m members takes away (m - 1) / m of their variance v from the error of
    the mean, and the mixture already adds as much to its own variance. With variances in units of
    a member's own variance, t^2 = error + v becomes (t^2 - c) / (1 + c), c = v (m - 1) / m.

    Parameters
    ----------
    weights, loc, std : ndarray of shape (n_members, n, n_components)
        Mixtures that the members predict.
    y, row_weight : ndarray of shape (n,)
        Outcomes and weights.
    held : ndarray of bool of shape (n_members, n)
        Whether a member held out a row.
    """
    if held.all():  # rows that no member learned from: the ensemble is a single member
        weights, loc, std = (
            np.concatenate(list(array), axis=-1)[None] for array in (weights / len(held), loc, std)
        )
        held = held[:1]
    member, row = np.nonzero(held)
    parts = (weights[member, row], loc[member, row], std[member, row])
    outcome = y[row, None]
    share = row_weight[row] / row_weight[row].sum()

    def loss(log_factor: float) -> float:
        scaled = parts[2] * np.exp(log_factor)
        logs = -0.5 * ((outcome - parts[1]) / scaled) ** 2 - np.log(scaled)
        return -float(share @ special.logsumexp(logs, b=parts[0], axis=-1))

    bounds = tuple(np.log(RANGE))
    found = optimize.minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    own = np.exp(2 * found.x)
    common = _variance_between(weights, loc, std)
    squared = (own - common) / (1 + common)
    log_factor = 0.5 * np.log(np.clip(squared, RANGE[0] ** 2, RANGE[1] ** 2))
    return float(np.exp(log_factor * member.size / (member.size + FEW_ROWS)))


def _variance_between(weights: Floats, loc: Floats, std: Floats) -> float:
    """Return (m - 1) / m times the mean variance of m members' means, in own variances."""
    mean = (weights * loc).sum(axis=-1)
    own = (weights * (std**2 + (loc - mean[..., None]) ** 2)).sum(axis=-1)
    # the population variance is (m - 1) / m times the unbiased one
    return float(np.mean(mean.var(axis=0) / own.mean(axis=0)))
