"""Where PITs deviate, learned from features.

A forest and a linear model, judged on rows they did not see.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats
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
LEAF_ROWS = 20
TREE_ROWS = 2000
"""Most rows that one tree is grown on: what more rows would tell, the other trees see."""

STAY = 1.0
"""Standard errors that a score is credited with if it keeps the direction; any other one is
charged one."""

FAR = 3.0
"""Bound on standardised features of the linear model, so that no row has all the leverage."""

PENALTIES = (1e-3, 1e-2, 1e-1, 1.0)
"""Ridge penalties per row, of standardised features; the one with the least leave-one-out error
is taken."""


@dataclass(frozen=True)
class Fit:
    """What one learner made of the training rows.

    Parameters
    ----------
    unseen : ndarray of shape (n, WAVES)
        Predicted mean waves of each training row, from fits that left the row out.
    predict : callable
        Predicted mean waves of new rows.
    """

    unseen: Floats
    predict: Callable[[Floats], Floats]


@dataclass(frozen=True)
class LearnedScore:
    """A score of rows: the higher, the more the group of a pattern is expected to deviate.

    Parameters
    ----------
    pattern : ndarray of shape (CELLS,)
        Signs over probability levels.
    fit : Fit
        The learner behind the score.
    mean, deviation : float
        Mean and standard deviation of the best training rows' pattern values, chosen by fits that
        left them out.
    standard_error : float
        Of the mean.
    """

    pattern: Floats
    fit: Fit
    mean: float
    deviation: float
    standard_error: float

    @property
    def unseen(self) -> Floats:
        """Scores of the training rows, from fits that left the row out."""
        return np.asarray(self.fit.unseen @ wave_weights(self.pattern))

    def __call__(self, matrix: Floats) -> Floats:
        """Return the scores of new rows."""
        return np.asarray(self.fit.predict(matrix) @ wave_weights(self.pattern))


def learn_fits(matrix: Floats, pit: Floats, random: np.random.Generator) -> tuple[Fit, ...]:
    """Learn from features, with two learners, where PITs deviate.

    This serves groups of any mass.
    """
    targets = waves(pit)
    return _forest(matrix, targets, random), _ridge(matrix, targets)


def best_score(
    fits: tuple[Fit, ...],
    pit: Floats,
    mass: float,
    random: np.random.Generator,
    before: LearnedScore | None = None,
) -> LearnedScore:
    """Return the best of several scores: of each fit, four patterns and where these lead.

    A score that points in another direction than the one of the fold before has to be clearly
    better: of two halves that deviate in opposite directions one is to be found, not now this one
    and now that.
    """
    found = [score for fit in fits for score in _scores_of(fit, pit, mass, random)]
    usual = None if before is None else direction_of(before.pattern)

    def merit(score: LearnedScore) -> float:
        return (
            score.mean
            + (STAY if direction_of(score.pattern) == usual else -1.0) * score.standard_error
        )

    return max(found, key=merit)


def top_rows(scores: Floats, mass: float, random: np.random.Generator) -> NDArray[np.intp]:
    """Rows with the highest scores, `ceil(mass * n)` of them, ties in random order."""
    k = int(group_sizes(np.asarray(mass), scores.size))
    return np.lexsort((random.random(scores.size), -scores))[:k]


def _scores_of(
    fit: Fit, pit: Floats, mass: float, random: np.random.Generator
) -> list[LearnedScore]:
    """Score the training rows by each starting pattern and by the pattern it leads to (method: worst groups)."""
    found = []
    for start in starting_patterns():
        score, best = _assessed(start, fit, pit, mass, random)
        # the next pattern comes from predictions, not from the rows' own PITs, which would flatter
        # it
        ahead = pattern_of(fit.unseen[best].mean(axis=0))
        found += (
            [score]
            if (ahead == start).all()
            else [score, _assessed(ahead, fit, pit, mass, random)[0]]
        )
    return found


def _assessed(
    pattern: Floats, fit: Fit, pit: Floats, mass: float, random: np.random.Generator
) -> tuple[LearnedScore, NDArray[np.intp]]:
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
        min_samples_leaf=min(LEAF_ROWS, max(n // 8, 1)),
        max_features=max(1 / 3, min(1.0, 5 / matrix.shape[1])),
        max_samples=min(n, TREE_ROWS),
        oob_score=True,
        random_state=int(random.integers(2**31)),
    )
    with warnings.catch_warnings():
        # a row that every tree has seen is given 0, no deviation
        warnings.filterwarnings("ignore", message="Some inputs do not have OOB scores")
        forest.fit(matrix, targets)
    return Fit(np.nan_to_num(forest.oob_prediction_), forest.predict)


def _ridge(matrix: Floats, targets: Floats) -> Fit:
    """Ridge regression; leaving a row out is exact through its leverage."""
    n = targets.shape[0]
    centre = matrix.mean(axis=0)
    scale = matrix.std(axis=0)
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 1e-9)
    z = ((matrix - centre) * inverse).clip(-FAR, FAR)
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
