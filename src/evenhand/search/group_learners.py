"""Models of the deviation of PITs from uniform: trees, boosting and a ridge regression.

They predict the mean cosines ("waves") of a row's PITs from its features, from which any pattern
can be scored. All choices are made on training rows: predictions of a training row come from models
that were fitted without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, Ints
from evenhand.calibration import PITs
from evenhand.search.cut_trees import CutTable, CutTree, grow_tree
from evenhand.search.oracle_group import group_sizes
from evenhand.search.patterns import (
    direction_of,
    pattern_basis,
    pattern_of,
    starting_patterns,
    wave_weights,
    waves,
)

DEPTHS = (2, 3, 4)
"""Depths of the trees."""

INNER_FOLDS = 3
"""Number of trees per depth, and of boosted models: each is fitted without one part of the rows."""

ROUNDS = 20
"""Number of rounds of boosting."""

RATE = 0.3
"""Share of the best step of each round that is taken."""

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
    predict: Callable[[CutTable], Floats]


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

    def __call__(self, table: CutTable) -> Floats:
        """Return the scores of new rows."""
        return np.asarray(self.fit.predict(table) @ wave_weights(self.pattern))


def learn_fits(table: CutTable, pits: PITs) -> tuple[Fit, ...]:
    """Fit all models to the waves of PITs; the fits do not depend on the mass of groups.

    The rows must be in random order.
    """
    targets = waves(pits)
    above = table.above.astype(np.float32)
    return (
        *_trees(table, above, targets),
        _boosting(table, above, targets),
        _ridge(table, targets),
    )


def best_score(
    fits: tuple[Fit, ...], pits: PITs, mass: float, before: LearnedScore | None = None
) -> LearnedScore:
    """Return the best score over fits, the starting patterns and one ascent step from each.

    The best score has the largest mean value of its group less one standard error: the mean alone
    would favour patterns with much noise. A score whose direction differs from that of the previous
    fold must be better by twice the sum of both standard errors: if two halves deviate in opposite
    directions, the folds should agree on one.
    """
    basis = pattern_basis(pits)
    found = [score for fit in fits for score in _scores_of(fit, basis, mass)]
    usual = None if before is None else direction_of(before.pattern)

    def merit(score: LearnedScore) -> float:
        keeps_direction = usual in (None, direction_of(score.pattern))
        return score.mean - (1 if keeps_direction else 5) * score.standard_error

    return max(found, key=merit)


def top_rows(scores: Floats, mass: float, random: np.random.Generator) -> Ints:
    """Return the `ceil(mass * n)` rows with the highest scores; ties are broken at random."""
    k = int(group_sizes(np.asarray(mass), scores.size))
    return np.lexsort((random.random(scores.size), -scores))[:k]


def _scores_of(fit: Fit, basis: Floats, mass: float) -> list[LearnedScore]:
    """Return scores by each starting pattern and by the pattern one ascent step from it."""
    patterns = starting_patterns()
    shares = _shares_of_best(fit.unseen, patterns, mass)
    # one ascent step of the oracle search (method: worst groups), on predictions: a pattern from
    # the rows' PITs would be chosen and assessed on the same outcomes
    ahead = np.unique(pattern_of(shares @ fit.unseen), axis=0)
    patterns = np.vstack([patterns, ahead])
    shares = np.vstack([shares, _shares_of_best(fit.unseen, ahead, mass)])
    values = patterns @ basis.T
    means = (shares * values).sum(axis=-1)
    deviations = np.sqrt((shares * (values - means[:, None]) ** 2).sum(axis=-1))
    root = math.sqrt(int(group_sizes(np.asarray(mass), basis.shape[0])))
    return [
        LearnedScore(pattern, fit, float(mean), float(deviation), float(deviation) / root)
        for pattern, mean, deviation in zip(patterns, means, deviations, strict=True)
    ]


def _shares_of_best(unseen: Floats, patterns: Floats, mass: float) -> Floats:
    """Return each row's share of the group of best scores, shape (patterns, n); rows add up to 1.

    As in the evaluation, rows are selected by predictions without them. Rows that tie at the end of
    the group have equal shares: trees give many rows the same score.
    """
    scores = wave_weights(patterns) @ unseen.T
    n = scores.shape[-1]
    k = int(group_sizes(np.asarray(mass), n))
    last = np.partition(scores, n - k, axis=-1)[:, n - k, None]
    is_better = scores > last
    is_tied = scores == last
    left = k - is_better.sum(axis=-1, keepdims=True)
    return np.asarray((is_better + is_tied * left / is_tied.sum(axis=-1, keepdims=True)) / k)


def _inner_folds(n: int) -> list[tuple[Ints, Ints]]:
    """Return training and held-out rows of each inner fold."""
    fold = np.arange(n) % INNER_FOLDS
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(INNER_FOLDS)]


def _trees(table: CutTable, above: NDArray[np.float32], targets: Floats) -> list[Fit]:
    """Fit trees of all depths: a tree of a smaller depth is the upper part of a deeper one."""
    n = targets.shape[0]
    # a mean over 20 rows suffices to see a deviation of PITs; small tables get smaller nodes
    least_rows = max(min(20, n // 20), n // 40, 1)
    unseen = {depth: np.empty_like(targets) for depth in DEPTHS}
    trees = list[CutTree]()
    for train, held in _inner_folds(n):
        trees.append(grow_tree(above[train], targets[train], max(DEPTHS), least_rows))
        found = trees[-1].predict(table.above[held], max(DEPTHS))
        for depth in DEPTHS:
            unseen[depth][held] = found[depth]

    def predict(new: CutTable, depth: int) -> Floats:
        sums = sum(tree.predict(new.above, depth)[depth] for tree in trees)
        return np.asarray(sums / len(trees))

    return [Fit(unseen[d], lambda new, d=d: predict(new, d)) for d in DEPTHS]  # type: ignore[misc]


def _boosting(table: CutTable, above: NDArray[np.float32], targets: Floats) -> Fit:
    """Boost stumps: a sum of steps of single features, for many small deviations that add up.

    All products of rows are computed once, so that a round costs as much as one column of the
    products of cuts with each other.
    """
    folds = _inner_folds(targets.shape[0])
    parts = [_products(above[held], targets[held]) for _, held in folds]
    total = tuple(sum(arrays) for arrays in zip(*parts, strict=True))
    unseen = np.empty_like(targets)
    models = list[tuple[Floats, Floats]]()
    for (_, held), part in zip(folds, parts, strict=True):
        left = tuple(whole - some for whole, some in zip(total, part, strict=True))
        models.append(_boosted(*left))
        unseen[held] = _steps(table.above[held], models[-1])

    def predict(new: CutTable) -> Floats:
        return np.asarray(sum(_steps(new.above, model) for model in models) / len(models))

    return Fit(unseen, predict)


def _products(above: NDArray[np.float32], targets: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return sums over rows: products of cuts, of cuts and targets, targets, and the count."""
    narrow = targets.astype(np.float32)
    return (
        (above.T @ above).astype(np.float64),
        (above.T @ narrow).astype(np.float64),
        targets.sum(axis=0),
        np.array(float(targets.shape[0])),
    )


def _boosted(gram: Floats, both: Floats, sums: Floats, count: Floats) -> tuple[Floats, Floats]:
    """Return the coefficients of cuts, and the intercept, of boosted stumps."""
    counts = np.diag(gram)
    # columns less their means
    centred = gram - np.outer(counts, counts) / count
    variance = np.diag(centred).clip(1e-9)
    residual = both - np.outer(counts, sums) / count
    coefficients = np.zeros_like(residual)
    # steps on either side of which there are few rows would fit noise
    is_usable = np.minimum(counts, count - counts) >= min(20.0, float(count) / 20)
    inverse = np.where(is_usable, 1 / variance, 0.0)
    for _ in range(ROUNDS if is_usable.any() else 0):
        best = int(np.einsum("qd,qd,q->q", residual, residual, inverse).argmax())
        step = RATE * residual[best] / variance[best]
        coefficients[best] += step
        residual -= centred[best, :, None] * step
    return coefficients, (sums - counts @ coefficients) / count


def _steps(above: NDArray[np.bool_], model: tuple[Floats, Floats]) -> Floats:
    coefficients, intercept = model
    used = np.flatnonzero(coefficients.any(axis=-1))
    return np.asarray(above[:, used] @ coefficients[used] + intercept)


def _ridge(table: CutTable, targets: Floats) -> Fit:
    """Fit a ridge regression; leave-one-out predictions follow exactly from the leverage."""
    matrix = table.matrix
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
    squares = turned**2
    best: tuple[float, Floats, Floats] | None = None
    for penalty in PENALTIES:
        shrunk = covariances / (eigenvalues.clip(0) + penalty)[:, None]
        leverage = (1 + squares @ (1 / (eigenvalues.clip(0) + penalty))) / n
        misses = (targets - means - turned @ shrunk) / (1 - leverage.clip(max=0.99))[:, None]
        loss = float((misses**2).sum())
        if best is None or loss < best[0]:
            best = loss, targets - misses, vectors @ shrunk
    assert best is not None
    _, unseen, slopes = best
    return Fit(
        unseen,
        lambda new: np.asarray(means + ((new.matrix - centre) * inverse).clip(-FAR, FAR) @ slopes),
    )
