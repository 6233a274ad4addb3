"""Lending game between a bank and applicants who know their worthiness (paper, section 6.2)."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from evenhand import Forecast
from evenhand.distributions import Distribution, Normal, Randomized
from evenhand.draws import generator
from evenhand.links import Link

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

LINK_NODES = 2048
"""Half the number of draws at which a link is tabulated for its approval probability."""

SURE = 1e6
"""Largest normal score; larger ones are clipped."""


@dataclass(frozen=True)
class LendingGame:
    """Lending game of a bank that sees features and applicants who know their worthiness.

    A person is qualified if the worthiness `y` is at least `threshold`. The bank forecasts `y` from
    the features and approves if approval has a larger expected gain than refusal. All amounts are
    above 0 and in the same unit, such as the gain from a good loan; the defaults are the paper's.

    Parameters
    ----------
    threshold : float
        Smallest worthiness of a qualified person, in units of y.
    bank_gain, bank_loss : float
        Gain of the bank from approving a qualified person, and its loss from approving an
        unqualified one.
    gain_qualified, gain_unqualified, refusal_cost : float
        Gain of an applicant from approval, and cost of a refusal.

    Examples
    --------
    >>> game = LendingGame(threshold=0.5)
    >>> game.approve(Forecast.from_normal(mean=[0.6, 0.55], std=[0.1, 0.1]))
    array([ True, False])

    A qualified person applies if the approval probability is at least 5/7, an unqualified person if
    it is at least 1/3:

    >>> game.applies_if_informed(chance=[0.7, 0.72, 0.3, 0.34], y=[0.9, 0.9, 0.1, 0.1])
    array([False,  True, False,  True])
    """

    threshold: float
    bank_gain: float = 1.0
    bank_loss: float = 3.0
    gain_qualified: float = 0.2
    gain_unqualified: float = 1.0
    refusal_cost: float = 0.5

    @property
    def risk(self) -> float:
        """Largest predicted probability of `y < threshold` with approval, 1/4 by default."""
        return self.bank_gain / (self.bank_gain + self.bank_loss)

    @property
    def break_even(self) -> tuple[float, float]:
        """Smallest approval probabilities at which qualified and unqualified people apply."""
        cost = self.refusal_cost
        return cost / (self.gain_qualified + cost), cost / (self.gain_unqualified + cost)

    def is_qualified(self, y: ArrayLike) -> Mask:
        """Return whether people are qualified, shape (n,)."""
        return np.asarray(np.asarray(y) >= self.threshold)

    def approve(self, forecast: Forecast) -> Mask:
        """Return whether the bank approves each (continuous) forecast, shape of the batch."""
        return np.asarray(forecast.cdf(self.threshold) <= self.risk)

    def chance_of_link(self, base: Distribution, link: Link) -> Floats:
        """Return the approval probability under a link around deterministic forecasts, shape (n,).

        The bank approves if the predicted probability of `y < threshold` is at most `K(risk; r)`,
        which decreases with the draw: the approval probability is the draw at which both are equal.
        They are compared as normal scores, so that probabilities near 0 and 1 keep their digits.
        """
        lower = base.logcdf(self.threshold)
        upper = base.logsf(self.threshold)
        score = np.where(lower < upper, special.ndtri_exp(lower), -special.ndtri_exp(upper))
        if link.alpha == 1:
            return np.asarray(score <= special.ndtri(self.risk), dtype=np.float64)
        # K(risk; r) does not depend on the person, so one table suffices
        r = _link_nodes()
        most = Randomized(Normal(0.0, np.ones(1)), link, r).ppf(self.risk)
        most, score = (np.clip(np.where(np.isnan(z), 0.0, z), -SURE, SURE) for z in (most, score))
        # `most` decreases with the draw, but np.interp needs increasing values
        return np.interp(score, most[::-1], r[::-1], left=1.0, right=0.0)

    def expected_utility(self, chance: ArrayLike, y: ArrayLike) -> Floats:
        """Return the expected utility of applying for people who know the bank, shape (n,).

        With the bank's answers (0 or 1) as `chance`, it is the utility of the answer.
        """
        gain = np.where(self.is_qualified(y), self.gain_qualified, self.gain_unqualified)
        yes = np.asarray(chance, dtype=np.float64)
        return np.asarray(yes * gain - (1 - yes) * self.refusal_cost)

    def expected_bank_utility(self, chance: ArrayLike, y: ArrayLike) -> Floats:
        """Return the bank's expected gain from each applicant over draws, shape (n,)."""
        gain = np.where(self.is_qualified(y), self.bank_gain, -self.bank_loss)
        return np.asarray(np.asarray(chance, dtype=np.float64) * gain)

    def applies_if_informed(self, chance: ArrayLike, y: ArrayLike) -> Mask:
        """Return whether people who know the bank apply: if `expected_utility` is at least 0."""
        return np.asarray(self.expected_utility(chance, y) >= 0)


class LearningApplicants:
    """People who predict their utility by a network psi(x, y) trained on earlier applicants.

    They apply if the prediction is at least 0 (paper, appendix on credit approval).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(2000, 2)), rng.uniform(size=2000)
    >>> people = LearningApplicants(random_state=0)
    >>> people.learn(X, y, np.where(X[:, 0] > 0, 1.0, -0.5))  # yes for a positive first feature
    >>> people.applies(np.array([[2.0, 0.0], [-2.0, 0.0]]), np.array([0.3, 0.3]))
    array([ True, False])
    """

    def __init__(self, random_state: int | np.random.Generator | None = None) -> None:
        self._random = generator(random_state)

    def learn(self, X: Any, y: Floats, utility: Floats) -> None:
        """Train the network on earlier applicants: numeric features, worthiness, utilities."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

        table = np.column_stack([X, y])
        self._has_gaps = np.isnan(table).any(axis=0)
        self._mean, scale = np.nanmean(table, axis=0), np.nanstd(table, axis=0)
        self._scale = np.where(scale > 1e-12, scale, np.inf)
        self._network = MLPRegressor(
            hidden_layer_sizes=(64, 64),
            batch_size=min(200, len(y)),
            alpha=1e-3,
            max_iter=40,
            random_state=int(self._random.integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # epochs are limited by choice
            self._network.fit(self._inputs(X, y), utility)

    def applies(self, X: Any, y: Floats) -> Mask:
        """Return whether each of n people applies, shape (n,)."""
        return np.asarray(self._network.predict(self._inputs(X, y)) >= 0)

    def _inputs(self, X: Any, y: Floats) -> Floats:
        scores = (np.column_stack([X, y]) - self._mean) / self._scale
        # a column with missing values has an indicator of them beside it
        columns = []
        for score, has_gaps in zip(scores.T, self._has_gaps, strict=True):
            columns += [np.nan_to_num(score), np.isnan(score)][: 1 + has_gaps]
        return np.column_stack(columns)


@lru_cache(maxsize=1)
def _link_nodes() -> Floats:
    """Return increasing draws from 1e-15 to 1 - 1e-15.

    They are evenly spaced in probability, and in normal scores to resolve values near 0 and 1.
    """
    tails = np.clip(special.ndtr(np.linspace(-8.0, 8.0, LINK_NODES)), 1e-15, 1 - 1e-15)
    return np.union1d(tails, np.linspace(0.0, 1.0, LINK_NODES + 1)[1:-1])
