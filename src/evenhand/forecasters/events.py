"""Recalibration of probabilities of events: joint terms of log odds by group (outcomes: 3).

A forecast probability P is calibrated in a group if the event has the rate P among the rows of the
group with this forecast. The correction adds terms to the log odds: `l + a + b (l - c)`, with
`a = a_0 + sum_g a_g` and `b = b_0 + sum_g b_g` over the groups `g` that contain a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import sparse, special, stats
from sklearn.isotonic import IsotonicRegression

from evenhand._validate import Floats, Mask
from evenhand.calibration import n_effective
from evenhand.forecasters.corrections import (
    FEWEST_TESTED,
    LEAST_LEFT,
    LEVEL,
    chosen_greedily,
    newton,
)
from evenhand.forecasters.groups import Members
from evenhand.forecasters.samples import n_cells

# --- increasing curve of log odds, estimated by isotonic regression


NO_CURVE: Floats = np.empty((2, 0))
"""Curve that corrects nothing."""


def curved(odds: Floats, curve: Floats) -> Floats:
    """Return log odds under an increasing, piecewise linear curve; a shift beyond its ends.

    Parameters
    ----------
    odds : ndarray
        Log odds.
    curve : ndarray of shape (2, k)
        Log odds and the corrected log odds at the knots; empty for no correction.

    Examples
    --------
    >>> curved(np.array([-3.0, 0.0, 1.0]), np.array([[-1.0, 1.0], [-0.5, 2.0]]))
    array([-2.5 ,  0.75,  2.  ])
    """
    knots, values = curve
    return np.asarray(odds + np.interp(odds, knots, values - knots)) if knots.size else odds


def learn_curve(odds: Floats, happened: Mask | Floats, weight: Floats) -> Floats:
    """Estimate a curve; no correction if the gain is less than its number of steps.

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
        return NO_CURVE
    total = np.bincount(steps, size + 1)
    knots = special.logit(np.bincount(steps, (size + 1) * predicted) / total)
    values = special.logit(np.bincount(steps, (size + 1) * levels) / total)
    found = np.stack((knots, values))
    corrected = curved(odds, found)
    gain = weight @ (log_losses(odds, happened) - log_losses(corrected, happened))
    return found if gain > knots.size else NO_CURVE


def log_losses(odds: Floats, happened: Mask | Floats) -> Floats:
    """Return the log losses of predicted log odds, in nats, shape (n,).

    `happened` is whether the event happened, or the probability that it did where this is not
    known; the loss is then its mean.
    """
    if happened.dtype == np.bool_:
        return np.asarray(np.logaddexp(0, np.where(happened, -odds, odds)))
    return np.asarray(np.logaddexp(0, odds) - happened * odds)


# --- joint terms of log odds by group

LEAST_SLOPE = 0.05
"""Smallest slope of corrected in predicted log odds, so that the correction increases."""

EXACT = 1e-12
"""Probabilities closer to 0 or 1 count as exactly 0 or 1, which no correction could change."""


@dataclass(frozen=True)
class EventMaps:
    """Corrections of the probability of an event.

    Parameters
    ----------
    terms : ndarray of shape (1 + n_groups, 2)
        Terms of location and of slope: of all rows, then of each group; zeros for a group without
        terms of its own.
    center : float
        Mean predicted log odds.
    least : float
        Predicted probabilities are moved into `[least, 1 - least]`.
    curve : ndarray of shape (2, k)
        Further correction of all rows, as for `curved`.
    """

    terms: Floats
    center: float
    least: float
    curve: Floats

    def apply(self, probability: Floats, members: Members) -> Floats:
        """Return the corrected probabilities of rows, shape (n,)."""
        if self.is_identity:
            return probability
        odds = special.logit(np.clip(probability, self.least, 1 - self.least))
        location, slope = members.sums(self.terms).T
        # groups that did not overlap in training may have slopes that add up to less than -1
        slope = np.maximum(slope, LEAST_SLOPE - 1)
        moved = odds + location + slope * (odds - self.center)
        return np.asarray(special.expit(curved(moved, self.curve)))

    @property
    def is_identity(self) -> bool:
        """Whether nothing is corrected."""
        return not (self.terms.any() or self.curve.size)

    @property
    def is_own(self) -> Mask:
        """Whether each group has terms of its own, shape (n_groups,)."""
        return np.asarray(self.terms[1:].any(axis=-1))


@dataclass(frozen=True)
class Events:
    """Predicted probabilities of an event in n rows, and what happened.

    Parameters
    ----------
    probability : ndarray of shape (n,)
        Predicted probabilities.
    happened : ndarray of bool or float, shape (n,)
        Whether the event happened, or the probability that it did where this is not known.
    """

    probability: Floats
    happened: Mask | Floats

    def take(self, rows: Any) -> Events:
        """Return some rows."""
        return Events(self.probability[rows], self.happened[rows])

    @classmethod
    def joined(cls, parts: Sequence[Events]) -> Events:
        """Return the rows of several parts."""
        return cls(*(np.concatenate(one) for one in zip(*map(astuple, parts), strict=True)))

    def gains(self, corrected: Floats) -> Floats:
        """Return the gain in log score of each row by corrected probabilities.

        What happened must be known.
        """
        return self._log_scores(corrected) - self._log_scores(self.probability)

    def _log_scores(self, probability: Floats) -> Floats:
        # an event of probability 0 has an infinite loss, which no mean can contain
        inside = np.clip(probability, EXACT, 1 - EXACT)
        return np.where(self.happened, np.log(inside), np.log1p(-inside))


# --- estimation of the terms

FEWEST_EVENTS = 5.0
"""Fewest expected rows with the event, and without it, for a test of a group; the normal
approximation of a number of events needs them."""

SPREAD_OF_ALL = 2.0
"""Standard deviation of the normal prior for the terms of all rows, in log odds. It keeps
probabilities away from 0 and 1 where all outcomes are equal."""

SPREADS_OF_GROUPS = 0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6
"""Standard deviations of the normal prior for the terms of groups that are compared."""

LEAST_DECREMENT = 1e-13
"""Smallest decrement of the loss, in nats of all rows together, for another Newton step."""


def learn_events(
    events: Events,
    weight: Floats,
    members: Members,
    level: float = LEVEL,
    *,
    has_curve: bool = True,
) -> EventMaps:
    """Learn the correction of all rows, and those of groups.

    Terms of groups have a normal prior. Its standard deviation is the one with the largest marginal
    likelihood, so that groups with few rows, or without differences, get the correction of all.

    Disjoint groups get terms all at once. All rows and overlapping groups get
    terms one after the other, the most significant first, as long as the p-value of the score test
    is below `level` divided by the number of groups plus one.

    Parameters
    ----------
    events : Events of n rows
    weight : ndarray of shape (n,)
        Positive weights.
    members : Members
        Membership of the rows.
    level : float, default 0.05
        Probability that calibrated probabilities give all rows or overlapping groups any term.
    has_curve : bool, default True
        Whether a curve of all rows follows, if it pays.

    Examples
    --------
    Half of 200 events of predicted probability 0.2 happen:

    >>> events = Events(np.full(200, 0.2), np.arange(200) % 2 == 0)
    >>> nobody = Members((), np.zeros(200, dtype=int))
    >>> learn_events(events, np.ones(200), nobody).apply(np.full(200, 0.2), nobody)[:1].round(2)
    array([0.5])
    """
    problem = _Problem.of(events, weight)
    design = members.matrix
    if members.are_disjoint:
        spreads = SPREADS_OF_GROUPS if members.names else (0.0,)
        terms = problem.by_groups(design, spreads)
        return problem.maps(terms, members, has_curve=has_curve)
    masks = design.toarray()

    def log_p_values(moved: Floats, is_done: Mask) -> Floats:
        return problem.log_p_values(moved, masks, is_done)

    def fit(_: int, is_done: Mask, __: Floats) -> tuple[Floats, Floats]:
        terms = np.zeros((design.shape[1], 2))
        terms[is_done] = problem.by_groups(design[:, is_done], SPREADS_OF_GROUPS[1:], is_done[0])
        location, slope = (masks @ terms).T
        return terms, problem.odds + location + slope * problem.score

    found = chosen_greedily(problem.odds, log_p_values, fit, weight @ masks, level)
    terms = np.zeros((design.shape[1], 2)) if found is None else found
    return problem.maps(terms, members, has_curve=has_curve and bool(terms[0].any()))


@dataclass(frozen=True)
class _Problem:
    """Events with log odds that terms are added to.

    Parameters
    ----------
    events : Events
    weight : ndarray of shape (n,)
        Weights that add up to the effective number of rows.
    odds, score : ndarray of shape (n,)
        Predicted log odds, and the same with mean 0 and standard deviation 1.
    center, scale, least : float
        As for `EventMaps`.
    """

    events: Events
    weight: Floats
    odds: Floats
    score: Floats
    center: float
    scale: float
    least: float

    @classmethod
    def of(cls, events: Events, weight: Floats) -> Self:
        n = n_effective(weight)
        p = events.probability
        inner = np.minimum(p, 1 - p)
        # exact zeros and ones may be wrong once in 2 (n + 1) rows, and are no inner probabilities
        least = min(0.5 / (n + 1), float(inner[inner > EXACT].min(initial=0.5)))
        odds = special.logit(np.clip(p, least, 1 - least))
        share = weight / weight.sum()
        center = float(share @ odds)
        scale = float(np.sqrt(share @ (odds - center) ** 2))
        # equal forecasts have no slope
        scale = scale if scale > 1e-9 * max(1.0, abs(center)) else 1.0
        return cls(events, share * n, odds, (odds - center) / scale, center, scale, least)

    def maps(self, terms: Floats, members: Members, *, has_curve: bool) -> EventMaps:
        """Return the maps with terms of shape (1 + n_groups, 2), and a curve if it pays."""
        scaled = terms / [1.0, self.scale]
        maps = EventMaps(scaled, self.center, self.least, NO_CURVE)
        if not has_curve:
            return maps
        p = maps.apply(self.events.probability, members)
        odds = special.logit(np.clip(p, self.least, 1 - self.least))
        return replace(maps, curve=learn_curve(odds, self.events.happened, self.weight))

    def by_groups(
        self, masks: sparse.csr_array, spreads: Sequence[float], has_all: bool = True
    ) -> Floats:
        """Return the terms with the prior of the largest marginal likelihood, (n_groups, 2).

        The first group is all rows if `has_all`. If no prior is better than none for the groups,
        their terms are 0.
        """
        found = [self.largest(masks if one else masks[:, :1], one, has_all) for one in spreads]
        best = max(found, key=lambda one: one[1])[0]
        return np.pad(best, ((0, masks.shape[1] - len(best)), (0, 0)))

    def largest(
        self, masks: sparse.csr_array, spread: float, has_all: bool = True
    ) -> tuple[Floats, float]:
        """Return the terms with the largest posterior, and the log of the marginal likelihood.

        The marginal likelihood is that of Laplace's approximation.
        """
        n_groups = masks.shape[1]
        precision = np.full(n_groups, spread**-2.0 if spread else 0.0)
        precision[0] = SPREAD_OF_ALL**-2.0 if has_all else precision[0]
        # without different forecasts there are no slopes
        n_parts = 2 if np.ptp(self.score) > 0 else 1
        parts = masks, masks.multiply(self.score[:, None])
        design = sparse.hstack(parts[:n_parts], format="csr")
        at, evidence = self._largest(design, np.tile(precision, n_parts), self.odds)
        terms = np.zeros((2, n_groups))
        terms[:n_parts] = at.reshape(n_parts, n_groups)
        least = float((1 + masks @ terms[1] / self.scale).min())
        if least < LEAST_SLOPE:
            # smaller slopes, with which the correction increases
            terms[1] *= (1 - LEAST_SLOPE) / (1 - least)
            odds = self.odds + (masks @ terms[1]) * self.score
            terms[0], _ = self._largest(masks, precision, odds)
        return terms.T, evidence

    def _largest(
        self, design: sparse.csr_array, precision: Floats, odds: Floats
    ) -> tuple[Floats, float]:
        """Return the largest posterior of terms that are added to log odds."""

        def loss(at: Floats) -> tuple[float, Floats, Floats]:
            moved = odds + design @ at
            losses = log_losses(moved, self.events.happened)
            p = special.expit(moved)
            slope = design.T @ (self.weight * (p - self.events.happened)) + precision * at
            return float(self.weight @ losses + precision @ at**2 / 2), slope, p

        def curvature(p: Floats) -> Floats:
            weighted = design.multiply((self.weight * p * (1 - p))[:, None])
            return np.asarray((weighted.T @ design).toarray() + np.diag(precision))

        at = newton(loss, curvature, np.zeros(design.shape[1]), LEAST_DECREMENT)
        value, _, p = loss(at)
        log_volume = np.log(precision).sum() - np.linalg.slogdet(curvature(p))[1]
        return at, float(log_volume / 2 - value)

    def log_p_values(self, moved: Floats, masks: Floats, is_done: Mask) -> Floats:
        """Return log p-values of Rao's score test of terms of each group, given those of others.

        Groups with terms have p-value 1, and so have groups with fewer than 30 rows, or fewer than
        5 expected rows with or without the event.
        """
        p = special.expit(moved)
        variance = self.weight * p * (1 - p)
        residual = self.weight * (self.events.happened - p)
        done = np.column_stack((masks[:, is_done], masks[:, is_done] * self.score[:, None]))
        gram = np.linalg.pinv((done.T * variance) @ done)
        found = np.zeros(masks.shape[1])
        for group in np.flatnonzero(~is_done & self._are_testable(p, masks)):
            mean = np.average(self.score, weights=variance * masks[:, group])
            # slopes within the group are around its own mean
            own = masks[:, [group]] * np.column_stack((np.ones(p.size), self.score - mean))
            left = own - done @ (gram @ ((done.T * variance) @ own))
            cover = (left.T * (self.weight * variance)) @ left
            size = np.diag((own.T * (self.weight * variance)) @ own)
            kept = np.diag(cover) > LEAST_LEFT * np.maximum(size, 1e-12)
            if kept.any():
                sums = left[:, kept].T @ residual
                solved = np.linalg.pinv(cover[np.ix_(kept, kept)]) @ sums
                found[group] = stats.chi2.logsf(sums @ solved, kept.sum())
        return found

    def _are_testable(self, p: Floats, masks: Floats) -> Mask:
        expected = np.minimum((self.weight * p) @ masks, (self.weight * (1 - p)) @ masks)
        return np.asarray((masks.sum(axis=0) >= FEWEST_TESTED) & (expected >= FEWEST_EVENTS))
