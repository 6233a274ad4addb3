"""Models of the deviation of PITs from uniform: a forest and a ridge regression on features.

They predict the mean cosines ("waves") of a row's PITs, from which any pattern can be scored.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from evenhand._validate import Floats, Ints
from evenhand.search.oracle_group import group_sizes
from evenhand.search.patterns import (
    direction_of,
    pattern_of,
    pattern_values,
    starting_patterns,
    wave_weights,
    waves,
)

TREES = 50
"""Number of trees of the forest."""

FAR = 3.0
"""Standardized features of the linear model are clipped here, so that no row has high leverage."""

PENALTIES = (1e-3, 1e-2, 1e-1, 1.0)
"""Candidate ridge penalties per row, for standardized features; the leave-one-out error decides."""


@dataclass(frozen=True)
class Fit:
    """A model fitted to the training rows.

    Parameters
    ----------
    unseen : ndarray of shape (n, WAVES)
        Predicted mean waves of each training row, from fits without that row.
    predict : callable
        Returns the predicted mean waves of new rows.
    """

    unseen: Floats
    predict: Callable[[Floats], Floats]


@dataclass(frozen=True)
class LearnedScore:
    """Score of rows: the expected deviation in the direction of a pattern.

    Parameters
    ----------
    pattern : ndarray of shape (CELLS,)
        Signs over probability levels.
    fit : Fit
        Model that predicts the waves.
    mean, deviation : float
        Mean and standard deviation of the pattern values of the training rows with the best scores
        from fits without these rows.
    standard_error : float
        Standard error of the mean.
    """

    pattern: Floats
    fit: Fit
    mean: float
    deviation: float
    standard_error: float

    @property
    def unseen(self) -> Floats:
        """Scores of the training rows, from fits without the scored row."""
        return np.asarray(self.fit.unseen @ wave_weights(self.pattern))

    def __call__(self, matrix: Floats) -> Floats:
        """Return the scores of new rows."""
        return np.asarray(self.fit.predict(matrix) @ wave_weights(self.pattern))


def learn_fits(matrix: Floats, pit: Floats, random: np.random.Generator) -> tuple[Fit, ...]:
    """Fit both models to the waves of PITs; the fits do not depend on the mass of groups."""
    targets = waves(pit)
    return _forest(matrix, targets, random), _ridge(matrix, targets)


def best_score(
    fits: tuple[Fit, ...],
    pit: Floats,
    mass: float,
    random: np.random.Generator,
    before: LearnedScore | None = None,
) -> LearnedScore:
    """Return the best score over fits, the four starting patterns and one ascent step from each.

    A score whose direction differs from that of the previous fold must be better by the sum of both
    standard errors: if two halves deviate in opposite directions, the folds should agree on one.
    """
    found = [score for fit in fits for score in _scores_of(fit, pit, mass, random)]
    usual = None if before is None else direction_of(before.pattern)

    def merit(score: LearnedScore) -> float:
        keeps_direction = direction_of(score.pattern) == usual
        return score.mean + (1 if keeps_direction else -1) * score.standard_error

    return max(found, key=merit)


def top_rows(scores: Floats, mass: float, random: np.random.Generator) -> Ints:
    """Return the `ceil(mass * n)` rows with the highest scores; ties are broken at random."""
    k = int(group_sizes(np.asarray(mass), scores.size))
    return np.lexsort((random.random(scores.size), -scores))[:k]


def _scores_of(
    fit: Fit, pit: Floats, mass: float, random: np.random.Generator
) -> list[LearnedScore]:
    """Return scores by each starting pattern and by the pattern one ascent step from it."""
    found = []
    for start in starting_patterns():
        score, best = _assessed(start, fit, pit, mass, random)
        # one ascent step of the oracle search (method: worst groups), on predictions: a pattern
        # from the rows' PITs would be chosen and assessed on the same outcomes
        ahead = pattern_of(fit.unseen[best].mean(axis=0))
        found += (
            [score]
            if (ahead == start).all()
            else [score, _assessed(ahead, fit, pit, mass, random)[0]]
        )
    return found


def _assessed(
    pattern: Floats, fit: Fit, pit: Floats, mass: float, random: np.random.Generator
) -> tuple[LearnedScore, Ints]:
    # as in the evaluation: rows are selected by predictions without them, and valued by their PITs
    best = top_rows(fit.unseen @ wave_weights(pattern), mass, random)
    values = pattern_values(pit[best], pattern)
    mean = float(values.mean())
    deviation = float(values.std())
    return LearnedScore(pattern, fit, mean, deviation, deviation / math.sqrt(best.size)), best


def _forest(matrix: Floats, targets: Floats, random: np.random.Generator) -> Fit:
    from sklearn.ensemble import RandomForestRegressor

    n = matrix.shape[0]
    forest = RandomForestRegressor(
        TREES,
        # leaves of 20 rows suffice to estimate a deviation of PITs; small tables get smaller ones
        min_samples_leaf=min(20, max(n // 8, 1)),
        # a third of the features, as usual in regression, but at least five
        max_features=max(1 / 3, min(1.0, 5 / matrix.shape[1])),
        # bounds the time per tree; other trees use the other rows
        max_samples=min(n, 2000),
        oob_score=True,
        random_state=int(random.integers(2**31)),
    )
    with warnings.catch_warnings():
        # a row in the sample of every tree has no prediction; it gets 0, no deviation
        warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
        forest.fit(matrix, targets)
    return Fit(np.nan_to_num(forest.oob_prediction_), forest.predict)


def _ridge(matrix: Floats, targets: Floats) -> Fit:
    """Fit a ridge regression; leave-one-out predictions follow exactly from the leverage."""
    n = targets.shape[0]
    centre = matrix.mean(axis=0)
    scale = matrix.std(axis=0)
    # constant features become 0, without a division by 0
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 1e-9)
    z = ((matrix - centre) * inverse).clip(-FAR, FAR)
    # in the eigenbasis of the features each penalty needs only one division
    eigenvalues, vectors = np.linalg.eigh(z.T @ z / n)
    turned = z @ vectors
    means = targets.mean(axis=0)
    covariances = turned.T @ (targets - means) / n
    best: tuple[float, Floats, Floats] | None = None
    for penalty in PENALTIES:
        shrunk = covariances / (eigenvalues.clip(0) + penalty)[:, None]
        leverage = (1 + (turned**2 / (eigenvalues.clip(0) + penalty)).sum(axis=-1)) / n
        misses = (targets - means - turned @ shrunk) / (1 - leverage.clip(max=0.99))[:, None]
        loss = float((misses**2).sum())
        if best is None or loss < best[0]:
            best = loss, targets - misses, vectors @ shrunk
    assert best is not None
    _, unseen, slopes = best
    return Fit(
        unseen, lambda new: np.asarray(means + ((new - centre) * inverse).clip(-FAR, FAR) @ slopes)
    )
