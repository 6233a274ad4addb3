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
from numpy.typing import NDArray
from scipy import linalg, special, stats

from evenhand._validate import Floats, Ints, Mask
from evenhand.forecasters.adapters import effective_size
from evenhand.forecasters.curves import Curve
from evenhand.forecasters.steps import FEWEST_ROWS, LEAST_LEFT, most_significant

FEWEST_EVENTS = 5.0
"""Fewest expected rows with the event, and without it, for a test of a group; the normal
approximation of a number of events needs them."""

SPREAD_OF_ALL = 2.0
"""Standard deviation of the normal prior for the terms of all rows, in log odds. It keeps
probabilities away from 0 and 1 where all outcomes are equal."""

SPREADS_OF_GROUPS = 0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6
"""Standard deviations of the normal prior for the terms of groups that are compared."""

LEAST_SLOPE = 0.05
"""Smallest slope of corrected in predicted log odds, so that the correction increases."""

EXACT = 1e-12
"""Probabilities closer to 0 or 1 count as exactly 0 or 1, which no correction could change."""

MOST_NEWTON = 50
"""Largest number of Newton steps."""


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

    def apply(self, probability: Floats, members: Mask) -> Floats:
        """Return the corrected probabilities.

        Parameters
        ----------
        probability : ndarray of shape (n,)
            Predicted probabilities.
        members : ndarray of bool, shape (n, n_groups)
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
    happened : ndarray of bool, shape (n,)
        Whether the event happened.
    """

    probability: Floats
    happened: Mask

    def take(self, rows: Any) -> Events:
        """Return some rows."""
        return Events(self.probability[rows], self.happened[rows])

    def gains(self, corrected: Floats) -> Floats:
        """Return the gain in log score of each row by corrected probabilities."""
        return self._log_scores(corrected) - self._log_scores(self.probability)

    def _log_scores(self, probability: Floats) -> Floats:
        # an event of probability 0 has an infinite loss, which no mean can contain
        inside = np.clip(probability, EXACT, 1 - EXACT)
        return np.where(self.happened, np.log(inside), np.log1p(-inside))


def learn_disjoint(
    events: Events, weight: Floats, names: Sequence[str], members: Mask
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
    members : ndarray of bool, shape (n, n_groups)
        Membership.
    """
    problem = _Problem.of(events, weight)
    everyone = np.ones((weight.size, 1))
    terms, _ = problem.largest(everyone, 0.0)
    if names:
        terms = problem.by_groups(np.column_stack((everyone, members)), SPREADS_OF_GROUPS)
    found = problem.maps(names if terms.shape[1] > 1 else (), terms)
    return problem.with_curve(found, members[:, : len(found.names)])


def learn_overlapping(
    events: Events, weight: Floats, names: Sequence[str], members: Mask
) -> EventMaps:
    """Learn joint corrections of all rows and of overlapping groups that deviate significantly.

    Groups get terms one after the other, the most significant first, as long as the p-value of the
    score test is below 5% divided by the number of groups plus one. The parameters are those of
    `learn_disjoint`.
    """
    problem = _Problem.of(events, weight)
    masks = np.column_stack((np.ones(weight.size), members))
    is_done = np.zeros(masks.shape[1], dtype=bool)
    terms = np.zeros((2, masks.shape[1]))
    moved = problem.odds
    while True:
        found = problem.log_p_values(moved, masks, is_done)
        group = most_significant(found, weight @ masks)
        if group is None:
            break
        is_done[group] = True
        design = masks[:, is_done]
        terms = np.zeros((2, masks.shape[1]))
        terms[:, is_done] = problem.by_groups(design, SPREADS_OF_GROUPS[1:], is_done[0])
        moved = problem.moved(masks, terms)
    used = np.concatenate(([True], is_done[1:]))
    chosen = [name for name, is_used in zip(names, is_done[1:], strict=True) if is_used]
    maps = problem.maps(chosen, terms[:, used])
    return problem.with_curve(maps, members[:, is_done[1:]]) if is_done[0] else maps


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
        n = effective_size(weight)
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
        numbers = self.center, self.scale, self.least
        return EventMaps(tuple(names), *terms, *numbers, curve)

    def with_curve(self, maps: EventMaps, members: Mask) -> EventMaps:
        """Add the further correction of all rows, if it pays."""
        odds = special.logit(maps.apply(self.events.probability, members))
        return replace(maps, curve=Curve.learn(odds, self.events.happened, self.weight))

    def by_groups(
        self, masks: Floats, spreads: Sequence[float], has_all: bool = True
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
        self, masks: Floats, spread: float, has_all: bool = True
    ) -> tuple[Floats, float]:
        """Return the terms with the largest posterior, and the log of the marginal likelihood.

        The marginal likelihood is that of Laplace's approximation.
        """
        n_groups = masks.shape[1]
        sd = np.full(n_groups, spread)
        sd[0] = SPREAD_OF_ALL if has_all else spread
        has_slope = bool(np.ptp(self.score) > 0)
        design = np.column_stack((masks, masks * self.score[:, None])) if has_slope else masks
        precision = np.tile(sd**-2.0, 2 if has_slope else 1)
        terms, evidence = self._newton(design, precision)
        if has_slope and (self._slopes(masks, terms) < LEAST_SLOPE).any():
            # the correction must increase: one slope for all rows, which is at least the smallest
            design = np.column_stack((masks, self.score)) if has_all else masks
            terms, evidence = self._newton(design, np.append(sd**-2.0, sd[0] ** -2.0)[: design.shape[1]])
            slopes = np.zeros(n_groups)
            if has_all:
                slopes[0] = max(terms[-1], (LEAST_SLOPE - 1) * self.scale)
            return np.stack([terms[:n_groups], slopes]), evidence
        return np.stack([terms[:n_groups], np.resize(terms[n_groups:], n_groups) if has_slope else np.zeros(n_groups)]), evidence

    def _slopes(self, masks: Floats, terms: Floats) -> Floats:
        """Return the slope of corrected in predicted log odds, of each row."""
        return np.asarray(1 + masks @ terms[masks.shape[1] :] / self.scale)

    def _newton(self, design: Floats, precision: Floats) -> tuple[Floats, float]:
        """Maximize the log posterior, which is concave, by damped Newton steps."""
        at = np.zeros(design.shape[1])
        value = self._loss(design, precision, at)
        for _ in range(MOST_NEWTON):
            p = special.expit(self.odds + design @ at)
            slope = design.T @ (self.weight * (p - self.events.happened)) + precision * at
            curvature = (design.T * (self.weight * p * (1 - p))) @ design + np.diag(precision)
            step = linalg.solve(curvature, slope, assume_a="pos")
            length = 1.0
            while (new := self._loss(design, precision, at - length * step)) > value:
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

    def _loss(self, design: Floats, precision: Floats, at: Floats) -> float:
        odds = self.odds + design @ at
        log_loss = np.logaddexp(0, np.where(self.events.happened, -odds, odds))
        return float(self.weight @ log_loss + precision @ at**2 / 2)

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
            inside = masks[:, group] > 0
            mean = np.average(self.score[inside], weights=variance[inside])
            # slopes within the group are around its own mean
            own = np.column_stack((inside, inside * (self.score - mean)))
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
