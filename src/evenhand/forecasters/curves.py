"""Increasing curve of log odds, estimated by isotonic regression."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special
from sklearn.isotonic import IsotonicRegression

from evenhand._validate import Floats, Mask
from evenhand.forecasters.adapters import n_cells


@dataclass(frozen=True)
class Curve:
    """Increasing, piecewise linear correction of log odds; a shift beyond the outermost knots.

    Parameters
    ----------
    knots, values : ndarray of shape (k,)
        Log odds, and the corrected log odds; empty for no correction.

    Examples
    --------
    >>> Curve(np.array([-1.0, 1.0]), np.array([-0.5, 2.0])).apply(np.array([-3.0, 0.0, 1.0]))
    array([-2.5 ,  0.75,  2.  ])
    """

    knots: Floats
    values: Floats

    def apply(self, odds: Floats) -> Floats:
        """Return the corrected log odds, shape of `odds`."""
        if not self.knots.size:
            return odds
        return np.asarray(odds + np.interp(odds, self.knots, self.values - self.knots))

    @classmethod
    def learn(cls, odds: Floats, happened: Mask | Floats, weight: Floats) -> Curve:
        """Estimate the curve; no correction if the gain is less than its number of steps.

        Isotonic regression of the rates of `2 n^(2/5)` bins of equal probability, to each of which
        one row with the predicted rate is added. The curve is linear between the centers of its
        steps, so that different forecasts remain different.

        Parameters
        ----------
        odds : ndarray of shape (n,)
            Predicted log odds.
        happened : ndarray of bool or float, shape (n,)
            Whether the event happened, or the probability that it did.
        weight : ndarray of shape (n,)
            Weights that add up to the effective number of rows.
        """
        none = cls(np.empty(0), np.empty(0))
        order = np.argsort(odds, kind="stable")
        share = np.cumsum(weight[order]) / weight.sum()
        # equal forecasts share a bin
        _, which = np.unique(odds[order], return_inverse=True)
        first = np.minimum.reduceat(share, np.unique(which, return_index=True)[1])
        n_bins = n_cells(weight.sum())
        bins = np.minimum(first[which] * n_bins, n_bins - 1).astype(np.intp)
        _, bins = np.unique(bins, return_inverse=True)
        own = weight[order]
        p = special.expit(odds[order])
        size = np.bincount(bins, own)
        predicted = np.bincount(bins, own * p) / size
        rate = (np.bincount(bins, own * happened[order]) + predicted) / (size + 1)
        levels = IsotonicRegression().fit_transform(predicted, rate, sample_weight=size + 1)
        steps = np.unique(np.round(levels, 12), return_inverse=True)[1]
        if steps.max() == 0:
            return none
        total = np.bincount(steps, size + 1)
        knots = special.logit(np.bincount(steps, (size + 1) * predicted) / total)
        values = special.logit(np.bincount(steps, (size + 1) * levels) / total)
        found = cls(knots, values)
        corrected = found.apply(odds)
        gain = weight @ (log_losses(odds, happened) - log_losses(corrected, happened))
        return found if gain > knots.size else none


def log_losses(odds: Floats, happened: Mask | Floats) -> Floats:
    """Return the log losses of predicted log odds, in nats, shape (n,).

    `happened` is whether the event happened, or the probability that it did where this is not
    known; the loss is then its mean.
    """
    if happened.dtype == np.bool_:
        return np.asarray(np.logaddexp(0, np.where(happened, -odds, odds)))
    return np.asarray(np.logaddexp(0, odds) - happened * odds)
