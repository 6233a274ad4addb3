"""Recalibration of probabilities of events: joint terms of log odds by group (outcomes: 3).

A forecast probability P is calibrated in a group if the event has the rate P among the rows of the
group with this forecast. The correction adds terms to the log odds: `l + a + b (l - c) / s`, with
`a = a_0 + sum_g a_g` and `b = b_0 + sum_g b_g` over the groups `g` that contain a row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy import linalg, sparse, special, stats
from sklearn.isotonic import IsotonicRegression

from evenhand._validate import Floats, Mask
from evenhand.calibration import n_effective
from evenhand.forecasters.corrections import FEWEST_ROWS, LEAST_LEFT, LEVEL, significant_groups
from evenhand.forecasters.samples import n_cells

# --- increasing curve of log odds, estimated by isotonic regression


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
    names : tuple of str
        Groups with terms of their own.
    location, slope : ndarray of shape (1 + n_groups,)
        Terms of all rows, then of each group.
    center, scale : float
        Mean and standard deviation of the predicted log odds.
    least : float
        Predicted probabilities are moved into `[least, 1 - least]`.
    curve : Curve
        Further correction of all rows.
    """

    names: tuple[str, ...]
    location: Floats
    slope: Floats
    center: float
    scale: float
    least: float
    curve: Curve

    def apply(self, probability: Floats, members: sparse.csr_array) -> Floats:
        """Return the corrected probabilities.

        Parameters
        ----------
        probability : ndarray of shape (n,)
            Predicted probabilities.
        members : sparse array of shape (n, n_groups)
            Membership in the groups with terms.
        """
        if self.is_identity:
            return probability
        odds = special.logit(np.clip(probability, self.least, 1 - self.least))
        location = self.location[0] + members @ self.location[1:]
        slope = self.slope[0] + members @ self.slope[1:]
        # groups that did not overlap in training may have slopes that add up to less than -1
        slope = np.maximum(slope / self.scale, LEAST_SLOPE - 1)
        moved = odds + location + slope * (odds - self.center)
        return np.asarray(special.expit(self.curve.apply(moved)))

    @property
    def is_identity(self) -> bool:
        """Whether nothing is corrected."""
        return not (self.location.any() or self.slope.any() or self.curve.knots.size)

    def to_state(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "names": list(self.names),
            "location": self.location.tolist(),
            "slope": self.slope.tolist(),
            "numbers": [self.center, self.scale, self.least],
            "curve": [self.curve.knots.tolist(), self.curve.values.tolist()],
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild corrections from the output of `to_state`."""
        center, scale, least = map(float, state["numbers"])
        location, slope = (np.array(state[name], dtype=float) for name in ("location", "slope"))
        knots, values = (np.array(one, dtype=np.float64) for one in state["curve"])
        curve = Curve(knots, values)
        return cls(tuple(state["names"]), location, slope, center, scale, least, curve)


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

MOST_NEWTON = 50
"""Largest number of Newton steps."""


def learn_disjoint(
    events: Events, weight: Floats, names: Sequence[str], members: sparse.csr_array
) -> EventMaps:
    """Learn the correction of all rows, and one for each disjoint group.

    Terms of groups have a normal prior. Its standard deviation is the one with the largest marginal
    likelihood, so that groups with few rows, or without differences, get the correction of all.

    Parameters
    ----------
    events : Events of n rows
    weight : ndarray of shape (n,)
        Positive weights.
    names : sequence of str
        Names of the groups.
    members : sparse array of shape (n, n_groups)
        Membership.

    Examples
    --------
    Half of 200 events of predicted probability 0.2 happen:

    >>> events = Events(np.full(200, 0.2), np.arange(200) % 2 == 0)
    >>> nobody = sparse.csr_array((200, 0))
    >>> maps = learn_disjoint(events, np.ones(200), (), nobody)
    >>> maps.apply(np.array([0.2]), nobody[:1]).round(2)
    array([0.5])
    """
    problem = _Problem.of(events, weight)
    everyone = sparse.csr_array(np.ones((weight.size, 1)))
    spreads = SPREADS_OF_GROUPS if names else (0.0,)
    terms = problem.by_groups(sparse.hstack((everyone, members), format="csr"), spreads)
    found = problem.maps(names if terms.shape[1] > 1 else (), terms)
    return problem.with_curve(found, members[:, : len(found.names)])


def learn_overlapping(
    events: Events, weight: Floats, names: Sequence[str], members: Mask, level: float = LEVEL
) -> EventMaps:
    """Learn joint corrections of all rows and of overlapping groups that deviate significantly.

    Groups get terms one after the other, the most significant first, as long as the p-value of the
    score test is below `level` divided by the number of groups plus one. The other parameters are
    those of `learn_disjoint`, with masks of shape (n, n_groups).
    """
    problem = _Problem.of(events, weight)
    masks = np.column_stack((np.ones(weight.size), members)).astype(np.float64)
    is_done = np.zeros(masks.shape[1], dtype=bool)
    terms = np.zeros((2, masks.shape[1]))
    moved = problem.odds

    def log_p(is_done: Mask) -> Floats:
        return problem.log_p_values(moved, masks, is_done)

    for _, is_done in significant_groups(log_p, weight @ masks, level):
        design = sparse.csr_array(masks[:, is_done])
        terms = np.zeros((2, masks.shape[1]))
        terms[:, is_done] = problem.by_groups(design, SPREADS_OF_GROUPS[1:], is_done[0])
        moved = problem.moved(masks, terms)
    used = np.concatenate(([True], is_done[1:]))
    chosen = [name for name, is_used in zip(names, is_done[1:], strict=True) if is_used]
    maps = problem.maps(chosen, terms[:, used])
    return problem.with_curve(maps, sparse.csr_array(masks[:, used][:, 1:])) if is_done[0] else maps


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

    def moved(self, masks: Floats, terms: Floats) -> Floats:
        """Return the log odds with terms of shape (2, n_groups)."""
        location, slope = terms
        return np.asarray(self.odds + masks @ location + (masks @ slope) * self.score)

    def maps(self, names: Sequence[str], terms: Floats) -> EventMaps:
        curve = Curve(np.empty(0), np.empty(0))
        location, slope = terms
        numbers = self.center, self.scale, self.least
        return EventMaps(tuple(names), location, slope, *numbers, curve)

    def with_curve(self, maps: EventMaps, members: sparse.csr_array) -> EventMaps:
        """Add the further correction of all rows, if it pays."""
        p = maps.apply(self.events.probability, members)
        odds = special.logit(np.clip(p, self.least, 1 - self.least))
        return replace(maps, curve=Curve.learn(odds, self.events.happened, self.weight))

    def by_groups(
        self, masks: sparse.csr_array, spreads: Sequence[float], has_all: bool = True
    ) -> Floats:
        """Return the terms with the prior of the largest marginal likelihood, (2, n_groups).

        The first group is all rows if `has_all`. If no prior is better than none for the groups,
        only the terms of the first group are returned.
        """
        best = -np.inf
        found = np.zeros((2, 1))
        for spread in spreads:
            used = masks if spread else masks[:, :1]
            terms, evidence = self.largest(used, spread, has_all)
            if evidence > best:
                best, found = evidence, terms
        return found

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
        at, evidence = self._newton(design, np.tile(precision, n_parts), self.odds)
        terms = np.zeros((2, n_groups))
        terms[:n_parts] = at.reshape(n_parts, n_groups)
        least = float((1 + masks @ terms[1] / self.scale).min())
        if least < LEAST_SLOPE:
            # smaller slopes, with which the correction increases
            terms[1] *= (1 - LEAST_SLOPE) / (1 - least)
            odds = self.odds + (masks @ terms[1]) * self.score
            terms[0], _ = self._newton(masks, precision, odds)
        return terms, evidence

    def _newton(
        self, design: sparse.csr_array, precision: Floats, odds: Floats
    ) -> tuple[Floats, float]:
        """Maximize the log posterior, which is concave, by damped Newton steps."""

        def loss(at: Floats) -> float:
            moved = odds + design @ at
            losses = log_losses(moved, self.events.happened)
            return float(self.weight @ losses + precision @ at**2 / 2)

        at = np.zeros(design.shape[1])
        value = loss(at)
        for _ in range(MOST_NEWTON):
            p = special.expit(odds + design @ at)
            slope = design.T @ (self.weight * (p - self.events.happened)) + precision * at
            curvature = (design.multiply((self.weight * p * (1 - p))[:, None]).T @ design).toarray()
            curvature += np.diag(precision)
            step = linalg.solve(curvature, slope, assume_a="pos")
            length = 1.0
            while (new := loss(at - length * step)) > value:
                length /= 2
                if length < 1e-6:
                    new, length = value, 0.0
                    break
            at = at - length * step
            gain, value = value - new, new
            if gain < 1e-9 * (1 + abs(value)):
                break
        evidence = -value + (np.log(precision).sum() - np.linalg.slogdet(curvature)[1]) / 2
        return at, float(evidence)

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
        return np.asarray((masks.sum(axis=0) >= FEWEST_ROWS) & (expected >= FEWEST_EVENTS))
