"""Learned worst group: learned from features, evaluated on other rows (method: worst groups)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import four_digits, one_line
from evenhand._kinds import Direction
from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    bad_input,
    check_count,
    check_finite,
    check_fraction,
    check_rows,
)
from evenhand.calibration import Cells, as_cells, covered
from evenhand.draws import RandomState, generator
from evenhand.search.cut_trees import (
    RULE_STRETCH,
    CutTable,
    CutTree,
    Rule,
    cut_table,
    grow_tree,
    learn_rules,
    main_features,
)
from evenhand.search.patterns import (
    direction_of,
    null_moments,
    pattern_basis,
    pattern_of,
    pattern_values,
    starting_patterns,
    wave_weights,
    waves,
)
from evenhand.search.worst_groups import group_sizes
from evenhand.tables import Condition, GroupRule, TableEncoder, as_table, take_rows

# --- models of the deviation of PITs from uniform: trees, boosting and a ridge regression

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


def learn_fits(table: CutTable, pits: Cells) -> tuple[Fit, ...]:
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
    fits: tuple[Fit, ...], pits: Cells, mass: float, before: LearnedScore | None = None
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


# --- learned worst group

# --- result of a search for a learned group


@dataclass(frozen=True, eq=False, repr=False)
class FoundGroup:
    """Group of rows defined by features, evaluated on rows from which it was not learned.

    Parameters
    ----------
    mass : float
        Requested size of the group as a share of the rows.
    n : int
        Number of rows in the group, over all folds.
    n_judged : int
        Number of rows that were evaluated, from which the group was selected: all but the first
        fold.
    n_rows : int
        Number of rows used in total, at most `max_rows`.
    rows : ndarray of shape (n,)
        Row numbers of the group, increasing.
    error : float
        Estimated calibration error (W1) of the group: an unbiased estimate of a lower bound for
        the error. Not clipped, so it may be slightly negative for calibrated forecasts.
    low : float
        Lower confidence bound for the error, 0 to 1/2, by betting: valid at any number of rows. It
        is also a lower bound for the error of the worst group of this size defined by features.
    confidence : float
        Probability that `low` holds.
    p_value : float
        P-value of the detection test, for the hypothesis that the forecasts are calibrated given
        the features. The test is asymptotic and more powerful than the bound: mostly `low` is 0
        unless the p-value is far below `1 - confidence`, but neither implies the other. Each is
        valid at its own level.
    direction : str
        Direction of the error in most folds: `"outcomes lower than forecast"`, `"outcomes higher
        than forecast"`, `"intervals too narrow"`, `"intervals too wide"` or `"mixed"`.
    bias : float
        Mean residual of the rows, in units of the residuals; NaN if no residuals were given.
    coverage_80 : float
        Share of the group's draws whose central 80% interval covers the outcome.
    conditions : tuple of Condition
        Rule of up to four conditions that defines a group of nearly this mass with at least 0.8 of
        the error on the same rows; empty if there is no such rule, or if the group is not
        significant.
    description_share : float
        Share of the evaluated rows that meet the rule, between 2/3 and 3/2 of the mass; NaN without
        a rule.
    features : tuple of str
        Up to three features with the largest effect on the score of rows, largest first.
    """

    mass: float
    n: int
    n_judged: int
    n_rows: int
    rows: Ints
    error: float
    low: float
    confidence: float
    p_value: float
    direction: Direction
    bias: float
    coverage_80: float
    conditions: tuple[Condition, ...]
    description_share: float
    features: tuple[str, ...]

    @property
    def description(self) -> str | None:
        """The conditions as text, such as `"bmi > 0.03 and age <= 50"`; None without a rule."""
        return " and ".join(map(str, self.conditions)) if self.conditions else None

    @property
    def is_significant(self) -> bool:
        """Whether the detection test rejects at the level `1 - confidence`."""
        # as a difference, 1 - 0.95 is above 0.05
        return self.p_value + self.confidence < 1

    def __repr__(self) -> str:
        return one_line(
            self,
            mass=self.mass,
            n=self.n,
            n_judged=self.n_judged,
            error=self.error,
            low=four_digits(self.low, "down"),
            p_value=four_digits(self.p_value, "up"),
            direction=self.direction,
            description=self.description,
        )


# --- test of the hypothesis that a learned group is calibrated

NullMoments = tuple[Floats, Floats]
"""Estimates of the second and third moment of each value."""


def studentized_p_value(
    values: Sequence[Floats],
    deviations: Sequence[float],
    skewness: Sequence[float],
    moments: Sequence[NullMoments] | None = None,
) -> float:
    """Return the p-value of a one-sided test that all values have conditional expectation 0.

    Parameters
    ----------
    values : sequence of ndarray
        Pattern values of the selected rows, one array per evaluated fold.
    deviations : sequence of float
        Standard deviation of the values of each fold, estimated from earlier rows: folds with
        different patterns then have equal weights per row.
    skewness : sequence of float
        Skewness of the values of each fold, estimated from earlier rows.
    moments : sequence of pairs of ndarray, optional
        For outcomes with atoms, estimates of the second and third moments of the values of each
        fold under the hypothesis (`null_moments`); None for other outcomes.

    Returns
    -------
    float
        Upper tail of the standard normal distribution at the studentized sum, or at Hall's
        transformation of it if that is smaller.

    Notes
    -----
    Let `z_i` be the values divided by the deviation of their fold. The pattern, the deviation and
    the selected rows of a fold depend on its features and on earlier folds only. If the PITs of
    all rows are uniform and independent given the features, each `z_i` therefore has conditional
    expectation 0 given the features and all earlier values, so the sums of `z_i` form a
    martingale. The values are bounded by 1/2, and the studentized sum `sum z_i / sqrt(sum z_i^2)`
    is asymptotically standard normal by the martingale central limit theorem (Hall & Heyde 1980,
    theorem 3.2 and corollary 3.1), whichever models selected the rows. Folds are evaluated by
    models of earlier folds only because statistics of folds that train each other's models are
    correlated under the hypothesis: with two folds and linear models they are nearly equal.
    Luedtke & van der Laan (2016) use the same construction.

    The means over several draws of one person may be strongly skewed. If they are skewed to the
    left, a studentized sum of few values is too often large. With the skewness `k` of the mean,
    Hall's transformation `t + k t^2 / 3 + k^2 t^3 / 27 + k / 6` of the sum `t` is normal to a
    higher order; it is used where it is smaller. Sums of
    squares need no assumption on the dependence between these draws.

    Of a rare event that nobody in the group had, sums of squares and their skewness show nothing:
    the values are nearly equal, and their studentized sum is about the root of their number. The
    sum of `moments` has the same expectation under the hypothesis, and shows what could have
    happened. The sum is then divided by the root of the larger of both.

    References
    ----------
    Hall & Heyde (1980), Martingale Limit Theory and Its Application. doi:10.1016/C2013-0-10818-5

    Hall (1992), On the removal of skewness by transformation.
    doi:10.1111/j.2517-6161.1992.tb01876.x

    Luedtke & van der Laan (2016), Statistical inference for the mean outcome under a possibly
    non-unique optimal treatment strategy. doi:10.1214/15-AOS1384

    Examples
    --------
    Ten values of 1/4 have the studentized sum `sqrt(10)`.

    >>> round(studentized_p_value([np.full(10, 0.25)], [0.2], [0.0]), 5)
    0.00078
    """
    scaled = [fold / max(scale, 1e-9) for fold, scale in zip(values, deviations, strict=True)]
    z = np.concatenate(scaled)
    squares = float((z**2).sum())
    third = None
    if moments is not None:
        known = zip(moments, deviations, strict=True)
        sums = [
            (m2.sum() / max(d, 1e-9) ** 2, m3.sum() / max(d, 1e-9) ** 3) for (m2, m3), d in known
        ]
        second, third = (float(one) for one in np.sum(sums, axis=0))
        squares = max(squares, second)
    if squares == 0:
        return 1.0
    t = float(z.sum()) / math.sqrt(squares)
    # the scaled values of all folds have the same variance
    k = float(np.repeat(skewness, [fold.size for fold in scaled]).mean()) / math.sqrt(z.size)
    if third is not None:
        k = third / squares**1.5
    transformed = t + k * t**2 / 3 + k**2 * t**3 / 27 + k / 6
    # math.erfc avoids an import of scipy.stats, which takes longer than the search
    return 0.5 * math.erfc(min(t, transformed) / math.sqrt(2))


def skewness_of(values: Floats) -> float:
    """Return the skewness of values; 0 if they are equal.

    Examples
    --------
    >>> round(skewness_of(np.array([0.0, 0.0, 0.0, 1.0])), 3)
    1.155
    """
    centred = values - values.mean()
    variance = float((centred**2).mean())
    return float((centred**3).mean()) / variance**1.5 if variance > 1e-12 else 0.0


# --- lower confidence bound for a mean by betting (method: what can be proven)

MULTIPLES = (1.0, 2.0, 4.0)
WEIGHTS = (0.8, 0.1, 0.1)
"""Stakes, as multiples of the best stake for the bound, and the share of capital on each."""


def mean_lower_bound(
    values: ArrayLike, confidence: float = 0.95, *, deviation: float = 12**-0.5
) -> float:
    """Return a lower bound, by betting, for the mean of the values' conditional expectations.

    Each value may depend on the earlier ones and have a different conditional expectation `mu_i`
    given them; the bound is for the mean of the `mu_i`. It is valid at any number of values.

    Parameters
    ----------
    values : array-like of shape (n,)
        Values between -1/2 and 1/2.
    confidence : float, default 0.95
        Probability that the bound holds.
    deviation : float, default 12**-0.5
        Guess of the standard deviation of the values, made without seeing them; by default that of
        a uniform value. A poor guess makes the bound looser, not invalid.

    Returns
    -------
    float
        The bound, at least 0.

    Notes
    -----
    For a stake `b < 2`, `prod_i (1 + b v_i) / (1 + b mu_i)` has expectation 1, and so has a mean of
    such products over stakes. By Markov's inequality it is below `1 / (1 - confidence)` with
    probability at least `confidence`. As the logarithm is concave, `prod_i (1 + b mu_i) <=
    (1 + b mu)^n` at the mean `mu`. Therefore every `theta` at which the capital, the mean over
    stakes of `prod_i (1 + b v_i) / (1 + b theta)^n`, reaches that level is below `mu`. The capital
    decreases in `theta`.

    References
    ----------
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting.
    doi:10.1093/jrsssb/qkad009

    Examples
    --------
    >>> 0.4 < mean_lower_bound(np.full(100, 0.5)) < 0.5
    True
    """
    from scipy.optimize import brentq

    bets = check_finite("values", values)
    if np.abs(bets).max() > 0.5 + 1e-12:
        raise bad_input("values", "lie between -1/2 and 1/2", float(bets[np.abs(bets).argmax()]))
    level = -math.log1p(-check_fraction("confidence", confidence))
    # log(1 + b v) is about b v - b^2 v^2 / 2, so the bound at level L is tightest for
    # b = sqrt(2 L / n) / deviation; larger stakes give larger bounds for strong effects
    stake = math.sqrt(2 * level / bets.size) / max(deviation, 1e-3)
    # at a stake of 2 a single value of -1/2 would lose all the capital
    stakes = np.minimum(stake * np.array(MULTIPLES), 1.98)
    gains = np.log1p(stakes[:, None] * bets).sum(axis=-1)

    def log_capital(theta: float) -> float:
        return float(
            np.logaddexp.reduce(gains - bets.size * np.log1p(stakes * theta) + np.log(WEIGHTS))
        )

    if log_capital(0.0) <= level:
        return 0.0
    return float(brentq(lambda theta: log_capital(theta) - level, 0.0, 0.5))


# --- search

FIRST_SHARE = 0.4
"""Share of the rows in the first fold, which is used for learning only."""

LEARNING_ROWS = 6_000
"""Largest number of rows that models are fitted to."""


@dataclass(frozen=True)
class _Stage:
    """Evaluated fold: its range of rows, the score learned before it, selected rows and values.

    `deviation` and `skewness` are those of the values of rows before it; `moments` are null moments
    of the values, for outcomes with atoms.
    """

    start: int
    stop: int
    n_learned: int
    score: LearnedScore
    rows: Ints
    values: Floats
    deviation: float
    skewness: float
    moments: NullMoments | None


def find_group(
    pit: ArrayLike | Cells,
    X: Any,
    mass: float = 0.2,
    *,
    confidence: float = 0.95,
    n_folds: int = 4,
    residual: ArrayLike | None = None,
    max_rows: int = 50_000,
    random_state: RandomState = None,
) -> FoundGroup:
    """Find the least calibrated group defined by features, with a bound for its error.

    Trees of depth 2 to 4, boosted stumps and a linear model learn where PITs deviate from uniform
    in level, spread and shape. The one with the best group of rows outside its training data
    selects the share `mass` of the rows of the next fold, and the outcomes of these rows give the
    error of the group. Rows are shuffled and split into folds: the first 40% are used for learning
    only, and the group in each further fold is selected by models of the folds before it. The bound
    and the p-value are therefore valid for any models: the bound at any number of rows, the p-value
    asymptotically.

    Parameters
    ----------
    pit : Cells or array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns are draws. A guarantee with few draws needs
        one jittered draw per cell. Each row counts once.
    X : DataFrame of any library, or array-like of shape (n, n_features)
        Features: numbers, text, categories, booleans, dates, missing values. Columns of an array
        are named x0, x1, ...
    mass : float, default 0.2
        Share of the rows in the group, 0 < mass <= 1.
    confidence : float, default 0.95
        Probability that the bound holds.
    n_folds : int, default 4
        Number of folds, at least 2.
    residual : array-like of shape (n,), optional
        Outcome minus mean forecast, for the group's bias.
    max_rows : int, default 50,000
        Largest number of rows that are used; larger samples are subsampled at random. Models are
        fitted to at most 6,000 of them.
    random_state : int, generator or None
        Seed for the shuffle and the order of ties.

    Returns
    -------
    FoundGroup
        The rows, their error with a bound, and the direction of the error.

    Raises
    ------
    InputError
        If there are too few rows, no feature varies, or a feature has an unsupported type.

    Notes
    -----
    With a sign pattern `s` learned before, the value of a selected row is `mean_j T(u_j) -
    integral_0^1 s(c) c dc`, where `T(u) = integral_u^1 s(c) dc`. Its expectation is
    `integral_0^1 s(c) (F(c) - c) dc` for the distribution `F` of the row's PITs, so the expected
    mean over a group never exceeds the group's error. Given the features, `low` is a lower bound
    for the mean error, over folds, of the selected groups, and therefore for the error of the worst
    of them. Rows must be independent people.

    The detection test divides the sum of the same values by the root of the sum of their squares.
    Under the hypothesis that the PITs are uniform given the features, the values are martingale
    differences, so the ratio is asymptotically standard normal (Hall & Heyde 1980; Luedtke &
    van der Laan 2016); if values are skewed to the left, as means over draws may be, the ratio is
    reduced by Hall's transformation. Each search has its own p-value: searches for several masses
    are several tests.

    References
    ----------
    Hall & Heyde (1980), Martingale Limit Theory and Its Application. doi:10.1016/C2013-0-10818-5

    Luedtke & van der Laan (2016), Statistical inference for the mean outcome under a possibly
    non-unique optimal treatment strategy. doi:10.1214/15-AOS1384

    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting.
    doi:10.1093/jrsssb/qkad009

    Examples
    --------
    >>> import pandas as pd
    >>> random = np.random.default_rng(0)
    >>> age = random.uniform(20, 80, size=1000)
    >>> pit = random.uniform(size=1000) ** np.where(age > 50, 2, 1)  # F(u) = sqrt(u) above 50
    >>> group = find_group(pit, pd.DataFrame({"age": age}), mass=0.5, random_state=0)
    >>> group.low < 2 / 3 - 1 / 2, group.direction, group.features
    (True, 'outcomes lower than forecast', ('age',))
    """
    search = GroupSearch(pit, X, n_folds=n_folds, max_rows=max_rows, random_state=random_state)
    return search.find(mass, confidence=confidence, residual=residual)


class GroupSearch:
    """Search for learned worst groups of several masses, which share the fitted models.

    Parameters
    ----------
    pit : Cells or array-like of shape (n,) or (n, m)
        PITs between 0 and 1.
    X : DataFrame of any library, or array-like of shape (n, n_features)
        Features.
    n_folds : int, default 4
        Number of folds, at least 2.
    max_rows : int, default 50,000
        Largest number of rows that are used.
    random_state : int, generator or None
        Seed.

    See Also
    --------
    find_group : The same search for one mass, with a description of all parameters.

    Examples
    --------
    >>> x = np.linspace(0, 1, 500)
    >>> pit = np.random.default_rng(0).uniform(size=500) ** np.where(x > 0.5, 3, 1)
    >>> search = GroupSearch(pit, x[:, None], random_state=0)
    >>> [search.find(mass).direction for mass in (0.2, 0.5)]
    ['outcomes lower than forecast', 'outcomes lower than forecast']
    """

    def __init__(
        self,
        pit: ArrayLike | Cells,
        X: Any,
        *,
        n_folds: int = 4,
        max_rows: int = 50_000,
        random_state: RandomState = None,
    ) -> None:
        self._pits = as_cells(pit)
        self._X = X
        self._random = generator(random_state)
        # files are often sorted by time or place; shuffling makes the folds alike
        order = self._random.permutation(self._pits.n_samples)
        self._rows = order[: check_count("max_rows", max_rows)]
        self._n_folds = check_count("n_folds", n_folds, least=2)
        # the first fold is larger than the others: all scores learn from it
        starts = np.linspace(FIRST_SHARE * self._rows.size, self._rows.size, n_folds)
        self._starts = starts.round().astype(int)
        # by number of training rows: fits take most of the time and do not depend on the mass
        self._fits: dict[int, tuple[Fit, ...]] = {}

    @cached_property
    def _encoded(self) -> tuple[TableEncoder, CutTable]:
        encoder, matrix = _encoded(self._X, self._rows, self._pits.n_samples)
        return encoder, cut_table(matrix)

    def find(
        self,
        mass: float,
        *,
        confidence: float = 0.95,
        n_bounds: int = 1,
        residual: ArrayLike | None = None,
    ) -> FoundGroup:
        """Find the group of one mass; the parameters are those of `find_group`.

        The bounds of searches for `n_bounds` masses hold together with the confidence (Bonferroni).
        """
        check_fraction("mass", mass, high_open=False)
        check_fraction("confidence", confidence)
        n = self._pits.n_samples
        rows = self._rows
        residuals = None if residual is None else check_rows("residual", residual, n)
        _check_enough(rows.size, mass, self._n_folds, n > rows.size)
        encoder, table = self._encoded
        shuffled = self._pits.take(rows)
        stages = list[_Stage]()
        for start, stop in pairwise(self._starts):
            stages.append(
                self._judged(
                    shuffled.take(slice(stop)), start, mass, stages[-1].score if stages else None
                )
            )
        values = np.concatenate([stage.values for stage in stages])
        # a pattern depends on earlier rows only, so the conditional expectation of a value is at
        # most the error of its row's distribution (method: worst groups), as the bound requires.
        # The guess of the values' spread must not depend on evaluated rows
        own = 1 - (1 - confidence) / check_count("n_bounds", n_bounds)
        low = mean_lower_bound(values, own, deviation=stages[0].score.deviation)
        p_value = studentized_p_value(
            [stage.values for stage in stages],
            [stage.deviation for stage in stages],
            [stage.skewness for stage in stages],
            [stage.moments for stage in stages if stage.moments is not None] or None,
        )
        group = np.sort(rows[np.concatenate([stage.rows for stage in stages])])
        error = float(values.mean())
        conditions: tuple[Condition, ...] = ()
        # a rule for a group that is not significant would describe noise
        if p_value + confidence < 1:
            conditions = _described(stages, table, shuffled, error, encoder)
        return FoundGroup(
            mass=float(mass),
            n=group.size,
            n_judged=int(rows.size - self._starts[0]),
            n_rows=rows.size,
            rows=group,
            error=error,
            low=low,
            confidence=float(confidence),
            p_value=p_value,
            direction=_usual_direction(stages),
            bias=math.nan if residuals is None else float(residuals[group].mean()),
            coverage_80=float(covered(self._pits.take(group), 0.8).mean()),
            conditions=conditions,
            description_share=self._share(conditions),
            # the last score was learned from the largest number of rows
            features=main_features(
                table.part(0, stages[-1].n_learned), stages[-1].score.unseen, encoder
            ),
        )

    def _share(self, conditions: tuple[Condition, ...]) -> float:
        """Return the share of the evaluated rows that meet conditions as they are printed."""
        if not conditions:
            return math.nan
        judged = take_rows(as_table(self._X, self._pits.n_samples), self._rows[self._starts[0] :])
        return float(GroupRule(conditions).mask(judged).mean())

    def _judged(self, pits: Cells, start: int, mass: float, before: LearnedScore | None) -> _Stage:
        """Learn from the rows before `start` and evaluate the others."""
        table = self._encoded[1]
        n_learned = min(start, LEARNING_ROWS)
        # fits predict waves of PITs, which do not depend on the mass
        learned = pits.take(slice(n_learned))
        if n_learned not in self._fits:
            self._fits[n_learned] = learn_fits(table.part(0, n_learned), learned)
        score = best_score(self._fits[n_learned], learned, mass, before)
        stop = pits.n_samples
        best = start + top_rows(score(table.part(start, stop)), mass, self._random)
        values = pattern_values(pits.take(best), score.pattern)
        # of all these rows: under the hypothesis their values have the distribution of the group's
        skewness = skewness_of(pattern_values(learned, score.pattern))
        deviation, moments = score.deviation, None
        if not pits.are_points:
            # values of earlier rows without a rare outcome hardly vary
            deviation = math.sqrt(max(null_moments(learned, score.pattern)[0].mean(), 0.0))
            moments = null_moments(pits.take(best), score.pattern)
        return _Stage(start, stop, n_learned, score, best, values, deviation, skewness, moments)


def _usual_direction(stages: Sequence[_Stage]) -> Direction:
    """Return the most frequent direction over folds; the larger error breaks ties."""
    sums: dict[Direction, tuple[int, float]] = {}
    for stage in stages:
        direction = direction_of(stage.score.pattern)
        count, total = sums.get(direction, (0, 0.0))
        sums[direction] = count + 1, total + float(stage.values.sum())
    return max(sums, key=lambda direction: sums[direction])


def _described(
    stages: Sequence[_Stage], table: CutTable, pits: Cells, error: float, encoder: TableEncoder
) -> tuple[Condition, ...]:
    """Return the conditions of the last fold's rule; none if no rule describes the group.

    Like a score, a rule is learned before each fold and evaluated on it, so that their errors on
    the same rows are comparable. A rule of fewer conditions takes precedence. A rule whose group is
    larger or smaller by a factor above 3/2 would describe another group.
    """
    n_judged = sum(stage.stop - stage.start for stage in stages)
    mass = sum(stage.rows.size for stage in stages) / n_judged
    values: dict[int, list[Floats]] = {}
    rules: dict[int, Rule] = {}
    for stage in stages:
        rules = learn_rules(table.part(0, stage.n_learned), stage.score.unseen, mass, encoder)
        matrix = table.matrix[stage.start : stage.stop]
        for depth, rule in rules.items():
            inside = stage.start + np.flatnonzero(rule.selects(matrix))
            values.setdefault(depth, []).append(
                pattern_values(pits.take(inside), stage.score.pattern)
            )
    for depth, rule in rules.items():
        judged = np.concatenate(values[depth])
        share = judged.size / n_judged
        # a rule may have an error lower by a fifth, as the price of a description
        if mass / RULE_STRETCH <= share <= mass * RULE_STRETCH and judged.mean() >= 0.8 * error:
            return rule.conditions(encoder)
    return ()


def _encoded(X: Any, rows: Ints, n: int) -> tuple[TableEncoder, Floats]:
    """Encode the features of some rows."""
    table = as_table(X, n)
    encoder = TableEncoder()
    try:
        features = encoder.fit_transform(take_rows(table, rows))
    except InputError:
        # raise the same error with the row number of the caller's table, not of the shuffled one
        encoder.fit_transform(table)
        raise
    # if no feature varies, a group would be a random subset
    if not (np.ptp(features, axis=0) > 0).any():
        raise InputError(
            "X must have a feature that varies, got constant features only, which define no groups;"
            " add a feature"
        )
    return encoder, features


def n_learnable(n: int, masses: Sequence[float], n_folds: int = 4) -> int:
    """Return for how many of the masses there are enough rows for a search.

    Examples
    --------
    >>> n_learnable(200, [0.1, 0.2, 0.5])
    2
    """
    return sum(n >= _needed(mass, n_folds) for mass in masses)


def _needed(mass: float, n_folds: int) -> int:
    # 100 rows in total, 20 in the group and 10 in each evaluated fold: with fewer rows no bound is
    # above 0
    judged = 1 - FIRST_SHARE
    return math.ceil(max(100, 20 / (judged * mass), 10 * (n_folds - 1) / judged))


def _check_enough(n: int, mass: float, n_folds: int, is_subset: bool) -> None:
    needed = _needed(mass, n_folds)
    if n < needed:
        remedy = "use a larger mass, fewer folds or more rows"
        if is_subset:
            rule = f"be at least {needed} for mass {mass:g} and {n_folds} folds"
            raise bad_input("max_rows", rule, n, remedy)
        # the report prints this sentence, without the remedy, to people who know no parameters
        raise InputError(
            f"{n} rows are too few for mass {mass:g} and {n_folds} folds, which need at least"
            f" {needed} rows; {remedy}"
        )
