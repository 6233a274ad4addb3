"""Applicants of the lending game: random, informed, or learning from earlier applicants."""

from __future__ import annotations

import warnings
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import Floats, InputError, Mask, check_count, check_fraction, check_rows
from evenhand.columns import TableEncoder
from evenhand.draws import RandomState, generator
from reproduction.lending.game import LendingGame


class Applicants(Protocol):
    """Strategy of people who decide whether to apply."""

    def applies(self, game: LendingGame, bank: Any, X: Any, y: ArrayLike) -> Mask:
        """Return whether each of n people applies, shape (n,)."""
        ...

    def learn(self, X: Any, y: ArrayLike, utility: ArrayLike) -> None:
        """Learn from the features, worthiness and utility of earlier applicants."""
        ...


class RandomApplicants:
    """People who apply with the same probability, independently of the bank.

    Parameters
    ----------
    share : float, default 1
        Probability of applying, above 0.
    random_state : int, generator or None
        Seed of their decisions.

    Examples
    --------
    >>> game = LendingGame(threshold=0.5)
    >>> RandomApplicants().applies(game, None, np.zeros((3, 1)), [0.1, 0.5, 0.9])
    array([ True,  True,  True])
    """

    def __init__(self, share: float = 1.0, random_state: RandomState = None) -> None:
        self.share = check_fraction("share", share, high_open=False)
        self._random = generator(random_state)

    def applies(self, game: LendingGame, bank: Any, X: Any, y: ArrayLike) -> Mask:
        """Return whether each of n people applies, shape (n,)."""
        return np.asarray(self._random.random(len(X)) < self.share)

    def learn(self, X: Any, y: ArrayLike, utility: ArrayLike) -> None:
        """Do nothing: they do not learn."""


class InformedApplicants:
    """People who know their worthiness and their approval probability, but not their draw.

    Parameters
    ----------
    same_draw : bool, default False
        Whether they know that the bank uses keyed draws, so that a second application has the same
        draw and only costs.
    """

    def __init__(self, *, same_draw: bool = False) -> None:
        self.same_draw = same_draw

    def applies(self, game: LendingGame, bank: Any, X: Any, y: ArrayLike) -> Mask:
        """Return whether each of n people applies, shape (n,)."""
        return game.applies_if_informed(game.approval_chance(bank, X), y, same_draw=self.same_draw)

    def learn(self, X: Any, y: ArrayLike, utility: ArrayLike) -> None:
        """Do nothing: they know the bank already."""


class LearningApplicants:
    """People who predict their utility by a network psi(x, y) trained on earlier applicants.

    They apply if the prediction is at least 0. Before the first training everybody applies.

    Parameters
    ----------
    hidden : tuple of int, default (64, 64)
        Units of the hidden layers.
    max_epochs : int, default 40
        Largest number of training epochs.
    memory : int, default 20,000
        Number of most recent applicants used for training.
    random_state : int, generator or None
        Seed of the network.

    References
    ----------
    Zhao, Ma & Ermon, ICML 2020, appendix on credit approval.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(2000, 2)), rng.uniform(size=2000)
    >>> people = LearningApplicants(random_state=0)
    >>> people.learn(X, y, np.where(X[:, 0] > 0, 1.0, -0.5))  # yes for a positive first feature
    >>> game = LendingGame(threshold=0.5)
    >>> people.applies(game, None, np.array([[2.0, 0.0], [-2.0, 0.0]]), [0.3, 0.3])
    array([ True, False])
    """

    def __init__(
        self,
        hidden: tuple[int, ...] = (64, 64),
        *,
        max_epochs: int = 40,
        memory: int = 20_000,
        random_state: RandomState = None,
    ) -> None:
        self.hidden = hidden
        self.max_epochs = check_count("max_epochs", max_epochs)
        self.memory = check_count("memory", memory)
        self._random = generator(random_state)
        self._encoder: TableEncoder | None = None
        self._seen: tuple[Floats, Floats] | None = None
        self._network: Any = None
        self._scale = (0.0, 1.0)

    def applies(self, game: LendingGame, bank: Any, X: Any, y: ArrayLike) -> Mask:
        """Return whether each of n people applies, shape (n,)."""
        # before the first training everybody applies
        if self._network is None:
            return np.ones(len(X), dtype=np.bool_)
        return np.asarray(self.predicted_utility(X, y) >= 0)

    def predicted_utility(self, X: Any, y: ArrayLike) -> Floats:
        """Return the utility of applying as predicted by the network, shape (n,)."""
        if self._network is None:
            raise InputError("the applicants have not learned anything yet; call learn first")
        return np.asarray(
            self._network.predict(self._inputs(X, check_rows("y", y, len(X)))), dtype=np.float64
        )

    def learn(self, X: Any, y: ArrayLike, utility: ArrayLike) -> None:
        """Train the network on these and earlier applicants."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

        worth = check_rows("y", y, len(X))
        gains = check_rows("utility", utility, len(X))
        if self._encoder is None:
            self._encoder = TableEncoder().fit(X)
            # the scale of the first batch is kept, so that inputs of all batches are comparable
            self._scale = float(worth.mean()), float(worth.std()) or 1.0
        inputs = self._inputs(X, worth)
        if self._seen is not None:
            inputs = np.vstack([self._seen[0], inputs])
            gains = np.concatenate([self._seen[1], gains])
        # only recent applicants, because the bank may have changed
        self._seen = inputs[-self.memory :], gains[-self.memory :]
        self._network = MLPRegressor(
            hidden_layer_sizes=self.hidden,
            batch_size=min(200, len(self._seen[1])),
            alpha=1e-3,
            max_iter=self.max_epochs,
            random_state=int(self._random.integers(2**31)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # epochs are limited by choice
            self._network.fit(*self._seen)

    def _inputs(self, X: Any, y: Floats) -> Floats:
        assert self._encoder is not None
        mean, scale = self._scale
        return np.column_stack([self._encoder.transform(X), (y - mean) / scale])
