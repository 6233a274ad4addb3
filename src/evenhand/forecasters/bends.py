"""Choice of the bend of a support's map: from a logarithm near a bound to a line far from it.

A logarithm makes proportional noise constant, but it stretches additive noise where outcomes are
near the bound. The bend decides between the two, before a model is fitted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from sklearn.tree import DecisionTreeRegressor

from evenhand._validate import Floats, Ints
from evenhand.columns import TableEncoder
from evenhand.distributions import Support
from evenhand.tables import take_rows

N_BENDS = 8
"""Number of bends that are compared."""

LEAST_BEND = 0.1
"""Smallest bend, relative to the median distance of outcomes from the nearer bound."""

TREE_ROWS = 2000
"""Largest number of rows on which bends are compared."""


def choose_bend(low: float, high: float, outcomes: Floats, rows: Any) -> float:
    """Return the bend with the largest likelihood of normal noise with constant variance.

    The noise is what outcomes on the line differ from the mean of their group. Groups are the
    leaves of a tree for the rank of the outcome, which no increasing map changes; it is grown on
    one half of the rows and used on the other half. The largest bend is the largest distance from
    the nearer bound, so that the map is a line beyond it and errors of a model there do not grow
    exponentially.

    Parameters
    ----------
    low, high : float
        Bounds, infinite on a side without bound.
    outcomes : ndarray of shape (n,)
        Outcomes inside the bounds.
    rows : DataFrame or ndarray of shape (n, n_features), or None
        Features; None compares outcomes to their overall mean.
    """
    distance = np.minimum(outcomes - low, high - outcomes)
    most = float(distance.max())
    bends = np.geomspace(min(LEAST_BEND * float(np.median(distance)), most), most, N_BENDS)
    # a fixed seed, as the choice must not change the draws of the model's own generator
    random = np.random.default_rng(0)
    order = random.permutation(outcomes.size)[:TREE_ROWS]
    y = outcomes[order]
    group = np.zeros(y.size, dtype=np.intp) if rows is None else _groups(take_rows(rows, order), y)
    losses = [_loss(Support(low, high, bend=float(bend)), y, group) for bend in bends]
    return float(bends[int(np.argmin(losses))])


def _loss(support: Support, y: Floats, group: Ints) -> float:
    """Negative log likelihood per row of normal noise around the means of the groups."""
    line = support.to_line(y)
    counts = np.bincount(group)
    noise = line - (np.bincount(group, line) / np.maximum(counts, 1))[group]
    freedom = max(y.size - int((counts > 0).sum()), 1)
    return float(0.5 * np.log((noise**2).sum() / freedom) - support.log_slope(y).mean())


def _groups(rows: Any, y: Floats) -> Ints:
    """Return the leaf of each row in a tree grown on the other half of the rows."""
    features = np.nan_to_num(np.asarray(TableEncoder().fit_transform(rows)))
    rank = stats.rankdata(y)
    is_first = np.arange(y.size) < y.size // 2
    leaf = np.zeros(y.size, dtype=np.intp)
    least = max(5, round(0.5 * np.sqrt(y.size)))
    for learn, start in ((is_first, 0), (~is_first, y.size)):
        tree = DecisionTreeRegressor(min_samples_leaf=least, random_state=0)
        tree.fit(features[learn], rank[learn])
        # leaves of the two trees have different numbers
        leaf[~learn] = tree.apply(features[~learn]) + start
    return leaf
