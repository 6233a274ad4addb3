"""Learned worst group: learned from features, evaluated on other rows (method: worst groups).

A pattern `s` is +1 at levels `c` where the PITs of a group are expected to lie at or below `c` too
often, and -1 where too rarely. For every pattern with absolute values of at most 1 and every
distribution `F` of PITs, `integral_0^1 s(c) (F(c) - c) dc <= W1(F, Uniform)`, with equality for
`s = sign(F(c) - c)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import interpolate

from evenhand._format import digits_of, one_line
from evenhand._kinds import HIGHER, LOWER, MIXED, NARROW, WIDE, Direction
from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    Mask,
    Pair,
    bad_input,
    check_count,
    check_fraction,
    check_rows,
)
from evenhand.calibration import Cells, as_cells, covered, hall
from evenhand.draws import RandomState, generator
from evenhand.search.worst_groups import LEAST_WIDTH, group_sizes, mean_cdfs
from evenhand.tables import Condition, GroupRule, TableEncoder, as_table, take_rows

# --- values of PITs under patterns

PATTERN_CELLS = 32
"""Number of equal cells of [0, 1] on which a pattern is constant."""

WAVES = 4
"""Number of cosines that describe a distribution of PITs: level, spread, skew and tails."""

_EDGES = np.linspace(0.0, 1.0, PATTERN_CELLS + 1)
_MIDDLES = (_EDGES[1:] + _EDGES[:-1]) / 2
_FREQUENCIES = np.arange(1, WAVES + 1)[:, None] * np.pi
_SINES = np.sin(_FREQUENCIES * _MIDDLES) / _FREQUENCIES
_INTEGRALS = (
    -np.sqrt(2) * np.diff(np.cos(_FREQUENCIES * _EDGES), axis=-1).T / _FREQUENCIES[:, 0] ** 2
)
_SPREAD = np.where(_MIDDLES < 0.5, 1.0, -1.0)


def starting_patterns() -> Floats:
    """Return the patterns of all waves, shape (2 * WAVES, PATTERN_CELLS).

    The first four are too low, too high, too narrow and too wide; each wave has both signs.
    """
    signs = np.array([1.0, -1.0])
    return pattern_of((np.eye(WAVES)[:, None] * signs[:, None]).reshape(-1, WAVES))


def pattern_basis(pit: Floats | Cells) -> Floats:
    """Return the matrix, shape (n, PATTERN_CELLS), whose product with a pattern gives row values.

    The value of a row is `mean_j T(u_j) - integral_0^1 s(c) c dc` with `T(u) = integral_u^1 s(c)
    dc`, between -1/2 and 1/2. Its expectation for PITs with distribution `F` is `integral_0^1 s(c)
    (F(c) - c) dc`, which is at most the error of `F`. For cells it is the mean over positions in
    the cell.
    """
    # the part of a cell of the pattern above a PIT is the integral of its CDF
    return (mean_cdfs(as_cells(pit), PATTERN_CELLS) - _MIDDLES) / PATTERN_CELLS


def waves(pit: Floats | Cells) -> Floats:
    """Return each row's mean of `sqrt(2) cos(k pi u)` for k = 1 to WAVES, shape (n, WAVES).

    The cosines are orthonormal, so a squared error gives equal weight to level and spread.
    """
    pits = as_cells(pit)
    middle = (pits.low + pits.high) / 2
    width = None if pits.are_points else pits.high - pits.low
    means = np.empty((pits.n_samples, WAVES))
    for k in range(1, WAVES + 1):
        wave = np.cos(k * np.pi * middle)
        if width is not None:
            # the mean over a cell of width w is the wave at its middle times sinc(k w / 2)
            wave *= np.sinc(k * width / 2)
        means[:, k - 1] = wave.mean(axis=-1)
    return np.sqrt(2) * means


def wave_weights(pattern: Floats) -> Floats:
    """Return weights, shape (..., WAVES), whose product with mean waves is the value of a pattern.

    A density `1 + sum_k b_k sqrt(2) cos(k pi u)` has `F(c) - c = sum_k b_k sqrt(2) sin(k pi c) / (k
    pi)`.
    """
    return pattern @ _INTEGRALS


def pattern_of(mean_waves: Floats) -> Floats:
    """Return the sign of `F(c) - c` for distributions with these mean waves, by cell."""
    return np.where(mean_waves @ _SINES >= 0, 1.0, -1.0)


def direction_of(pattern: Floats) -> Direction:
    """Return the direction of a pattern; mixed if it agrees with no direction on 3/4 of levels."""
    level = pattern.sum() / PATTERN_CELLS
    spread = float(pattern @ _SPREAD) / PATTERN_CELLS
    # signs that agree on three quarters of the levels have a mean product of 3/4 - 1/4 = 1/2
    if abs(level) >= max(0.5, abs(spread)):
        return LOWER if level > 0 else HIGHER
    if abs(spread) >= 0.5:
        return NARROW if spread > 0 else WIDE
    return MIXED


# --- null moments of pattern values of outcomes with atoms (outcomes: 4.3)


def null_moments(pits: Cells, pattern: Floats) -> Pair:
    """Return estimates of the second and third moment of each row's pattern value, shape (n,) each.

    If the PIT `W` of a row is uniform given the features, the moments of `T(W)` are known. With the
    mean `v`, the variance `w` and the third central moment `c` of `T(W)` over positions in the
    observed cell they are `E T^2 = E(v^2 + w)` and `E T^3 = E(v^3 + 3 v w + c)`. The value of a row
    is the mean of `v` over draws, which splits the moments of `v` in the same way. All of this
    gives estimates without bias. Of a rare event that nobody in a group had, the squares of values
    show nothing, but the cells show that it could happen.
    """
    steps = pattern / PATTERN_CELLS
    tails = np.append(np.cumsum(steps[::-1])[::-1], 0.0)
    # values of T, less its mean
    tails -= steps @ _MIDDLES
    integrals = _integrals(tails)
    whole = integrals(1.0)[1:]
    # means over draws of v, v^2 and v^3, of w and of 3 v w + c
    sums = np.zeros((5, pits.n_samples))
    for low, high in zip(pits.low.T, pits.high.T, strict=True):
        mean, variance, third = _within(low, high, tails, integrals)
        sums += mean, mean**2, mean**3, variance, 3 * mean * variance + third
    mean, square, cube, spread, skew = sums / pits.n_draws
    between = square - mean**2
    rest = cube - mean**3  # 3 v times the variance between draws, plus their third central moment
    return whole[0] - spread - between, whole[1] - skew - rest


def _within(
    low: Floats, high: Floats, tails: Floats, integrals: interpolate.PPoly
) -> tuple[Floats, Floats, Floats]:
    """Return the mean, the variance and the third central moment of `T` over each cell."""
    width = high - low
    # moments over narrower cells lose their digits: such a cell is a point
    is_wide = width > LEAST_WIDTH
    differences = (integrals(high) - integrals(low)).T
    mean, square, cube = differences / np.where(is_wide, width, 1.0)
    variance = np.maximum(square - mean**2, 0.0)
    third = cube - 3 * mean * square + 2 * mean**3
    return (
        np.where(is_wide, mean, np.interp((low + high) / 2, _EDGES, tails)),
        np.where(is_wide, variance, 0.0),
        np.where(is_wide, third, 0.0),
    )


def _integrals(tails: Floats) -> interpolate.PPoly:
    """Return the integrals from 0 of `T`, `T^2` and `T^3`, as functions of the upper end.

    `T` is linear between the edges, where it has the values `tails`.
    """
    a, b, none = np.diff(tails) * PATTERN_CELLS, tails[:-1], np.zeros(PATTERN_CELLS)
    # coefficients by falling powers of the distance from the lower edge
    powers = (
        (none, none, a, b),
        (none, a**2, 2 * a * b, b**2),
        (a**3, 3 * a**2 * b, 3 * a * b**2, b**3),
    )
    return interpolate.PPoly(np.stack(powers, axis=-1), _EDGES).antiderivative()


# --- features as numbers of cuts, for trees and a ridge regression

CUTS = 19
"""Largest number of cuts of one column: at every 5% of its rows."""

MOST_CUTS = 600
"""Number of cuts of all columns together, above which columns get fewer cuts, but at least 3."""


@dataclass(frozen=True)
class CutTable:
    """Encoded features of rows as numbers of cuts below each value.

    Trees sort few distinct numbers fast, and a linear model of them has no outliers.

    Parameters
    ----------
    codes : ndarray of shape (n, p)
        Number of the column's cuts that are below the value.
    cuts : tuple of p ndarrays
        Increasing cuts of each column.
    encoder : TableEncoder
        Encoder of the features.
    """

    codes: Floats
    cuts: tuple[Floats, ...]
    encoder: TableEncoder

    @classmethod
    def of(cls, matrix: Floats, encoder: TableEncoder) -> CutTable:
        """Choose cuts between quantiles of each column.

        A column with few distinct values is cut between each two of them. Cuts depend on features
        only, never on outcomes.
        """
        n_cuts = int(np.clip(MOST_CUTS // matrix.shape[1], 3, CUTS))
        levels = np.arange(1, n_cuts + 1) / (n_cuts + 1)
        cuts = tuple(_cuts_of(values, levels) for values in matrix.T)
        codes = [np.searchsorted(cut, values) for cut, values in zip(cuts, matrix.T, strict=True)]
        return cls(np.column_stack(codes).astype(float), cuts, encoder)


def _cuts_of(values: Floats, levels: Floats) -> Floats:
    ordered = np.sort(values)
    steps = np.flatnonzero(ordered[1:] > ordered[:-1])
    if steps.size > levels.size:
        # the largest distinct value at or below each quantile; the last step leaves rows above
        wanted = (levels * values.size).astype(int) - 1
        steps = np.unique(steps[np.searchsorted(steps, wanted).clip(max=steps.size - 1)])
    # halfway to the next value, so that rounding of the cut moves no row
    low = ordered[steps]
    middle = low + (ordered[steps + 1] - low) / 2
    return np.where(middle < ordered[steps + 1], middle, low)


# --- models of the deviation of PITs from uniform

DEPTHS = (2, 3, 4)
"""Depths of the trees."""

INNER_FOLDS = 3
"""Number of trees: each is fitted without one part of the rows."""

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
        Returns the predicted mean waves of new rows from their codes.
    """

    unseen: Floats
    predict: Callable[[Floats], Floats]


@dataclass(frozen=True)
class LearnedScore:
    """Score of rows: the expected deviation in the direction of a pattern.

    Parameters
    ----------
    pattern : ndarray of shape (PATTERN_CELLS,)
        Signs over probability levels.
    fit : Fit
        Model that predicts the waves.
    mean, deviation : float
        Mean and standard deviation of the pattern values of the training rows with the best scores
        from fits without these rows.
    """

    pattern: Floats
    fit: Fit
    mean: float
    deviation: float

    @property
    def unseen(self) -> Floats:
        """Scores of the training rows, from fits without the scored row."""
        return self.fit.unseen @ wave_weights(self.pattern)

    def __call__(self, codes: Floats) -> Floats:
        """Return the scores of new rows."""
        return self.fit.predict(codes) @ wave_weights(self.pattern)


def learn_fits(codes: Floats, targets: Floats) -> list[Fit]:
    """Fit all models to the waves of PITs; the fits do not depend on the mass of groups.

    The rows must be in random order.
    """
    return [*_trees(codes, targets), _ridge(codes, targets)]


def _trees(codes: Floats, targets: Floats) -> list[Fit]:
    """Fit trees of all depths: a tree of a smaller depth is the upper part of a deeper one."""
    n = targets.shape[0]
    # a mean over 20 rows suffices to see a deviation of PITs; small tables get smaller nodes
    least_rows = max(min(20, n // 20), n // 40, 1)
    fold = np.arange(n) % INNER_FOLDS
    trees = [
        fitted_tree(codes[fold != k], targets[fold != k], max(DEPTHS), least_rows)
        for k in range(INNER_FOLDS)
    ]

    def predict(new: Floats, depth: int) -> Floats:
        return np.mean([_values_at(tree, _ways(tree, new), depth) for tree in trees], axis=0)

    unseen = {depth: np.empty_like(targets) for depth in DEPTHS}
    for k, tree in enumerate(trees):
        ways = _ways(tree, codes[fold == k])
        for depth in DEPTHS:
            unseen[depth][fold == k] = _values_at(tree, ways, depth)
    return [Fit(unseen[depth], partial(predict, depth=depth)) for depth in DEPTHS]


def fitted_tree(codes: Floats, targets: Floats, depth: int, least_rows: int) -> Any:
    """Return a fitted regression tree of scikit-learn."""
    import sklearn
    from sklearn.tree import DecisionTreeRegressor

    tree = DecisionTreeRegressor(max_depth=depth, min_samples_leaf=least_rows, random_state=0)
    # checks of its input take as long as the tree
    with sklearn.config_context(skip_parameter_validation=True):
        return tree.fit(np.ascontiguousarray(codes, dtype=np.float32), targets, check_input=False)


def _ways(tree: Any, codes: Floats) -> Any:
    """Return the nodes that rows pass on their way through a tree."""
    return tree.decision_path(np.ascontiguousarray(codes, dtype=np.float32), check_input=False)


def _values_at(tree: Any, ways: Any, depth: int) -> Floats:
    """Return the values of the nodes of rows at a depth, or of their leaves above it.

    `ways` are decision paths, on which nodes are numbered in their order.
    """
    ends = np.minimum(ways.indptr[:-1] + depth, ways.indptr[1:] - 1)
    return tree.tree_.value[ways.indices[ends], :, 0]


def _ridge(codes: Floats, targets: Floats) -> Fit:
    """Fit a ridge regression, which predicts each row without it."""
    import sklearn
    from sklearn.linear_model import RidgeCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    # with a scoring the leave-one-out predictions are stored, not only their errors
    penalties = np.array(PENALTIES) * targets.shape[0]
    ridge = RidgeCV(penalties, scoring="neg_mean_squared_error", store_cv_results=True)
    with sklearn.config_context(skip_parameter_validation=True, assume_finite=True):
        model = make_pipeline(StandardScaler(), ridge).fit(codes, targets)
    best = np.flatnonzero(penalties == ridge.alpha_)[0]
    return Fit(ridge.cv_results_[..., best], model.predict)


def best_score(
    fits: list[Fit], basis: Floats, mass: float, before: LearnedScore | None
) -> LearnedScore:
    """Return the best score over fits, the starting patterns and one ascent step from each.

    The best score has the largest mean value of its group less one standard error: the mean alone
    would favour patterns with much noise. A score whose direction differs from that of the previous
    fold must be better by twice the sum of both standard errors: if two halves deviate in opposite
    directions, the folds should agree on one.
    """
    found = [score for fit in fits for score in _scores_of(fit, basis, mass)]
    usual = None if before is None else direction_of(before.pattern)
    root = math.sqrt(group_sizes(mass, basis.shape[0]))

    def merit(score: LearnedScore) -> float:
        keeps_direction = usual in (None, direction_of(score.pattern))
        return score.mean - (1 if keeps_direction else 5) * (score.deviation / root)

    return max(found, key=merit)


def top_rows(scores: Floats, mass: float, random: np.random.Generator) -> Ints:
    """Return the `ceil(mass * n)` rows with the highest scores; ties are broken at random."""
    k = group_sizes(mass, scores.size)
    return np.lexsort((random.random(scores.size), -scores))[:k]


def _scores_of(fit: Fit, basis: Floats, mass: float) -> list[LearnedScore]:
    """Return scores by each starting pattern and by the pattern one ascent step from it."""
    patterns = starting_patterns()
    shares = _shares_of_best(fit.unseen, patterns, mass)
    # one ascent step of the oracle search (method: worst groups), on predictions: a pattern from
    # the rows' PITs would be chosen and assessed on the same outcomes
    signs = pattern_of(shares @ fit.unseen)
    # as numbers with a bit for each cell: to compare rows takes 20 times as long
    bits = np.packbits(signs > 0, axis=-1).view(">u4").ravel()
    ahead = signs[np.unique(bits, return_index=True)[1]]
    patterns = np.vstack([patterns, ahead])
    shares = np.vstack([shares, _shares_of_best(fit.unseen, ahead, mass)])
    values = patterns @ basis.T
    means = (shares * values).sum(axis=-1)
    deviations = np.sqrt((shares * (values - means[:, None]) ** 2).sum(axis=-1))
    return [
        LearnedScore(pattern, fit, float(mean), float(deviation))
        for pattern, mean, deviation in zip(patterns, means, deviations, strict=True)
    ]


def _shares_of_best(unseen: Floats, patterns: Floats, mass: float) -> Floats:
    """Return each row's share of the group of best scores, shape (patterns, n); rows add up to 1.

    As in the evaluation, rows are selected by predictions without them. Rows that tie at the end of
    the group have equal shares: trees give many rows the same score.
    """
    scores = wave_weights(patterns) @ unseen.T
    n = scores.shape[-1]
    k = group_sizes(mass, n)
    last = np.partition(scores, n - k, axis=-1)[:, n - k, None]
    is_better = scores > last
    is_tied = scores == last
    left = k - is_better.sum(axis=-1, keepdims=True)
    return (is_better + is_tied * left / is_tied.sum(axis=-1, keepdims=True)) / k


# --- rules that describe learned groups

RULE_STRETCH = 1.5
"""Largest factor by which the size of a rule's group may differ from the wanted size."""

MOST_CONDITIONS = 4
"""Largest number of conditions of a rule: the depth of its tree."""

RULE_ROWS = 2000
"""Largest number of rows from which rules are learned, as the scores of rows have no noise."""

Rule = dict[int, tuple[float, float]]
"""Bounds of columns of codes, which must be above the first and at or below the second."""


def learn_rules(table: CutTable, scores: Floats, mass: float) -> list[Rule]:
    """Learn rules of at most one, two, three and four conditions that select high scores.

    Each rule selects at least two thirds of the wanted mass of the training rows.
    """
    # rules are printed: use only columns of the matrix that have a description in words
    used = np.flatnonzero(table.encoder.readable)
    if not used.size:
        return []
    codes = table.codes[: scores.size, used]
    least_rows = max(10, math.ceil(mass * scores.size / RULE_STRETCH))
    tree = fitted_tree(codes, scores, MOST_CONDITIONS, least_rows)
    ways = _ways(tree, codes)
    rules = []
    for depth in range(1, MOST_CONDITIONS + 1):
        best = _values_at(tree, ways, depth)[:, 0].argmax()
        rule: Rule = {}
        for node in ways.indices[ways.indptr[best] : ways.indptr[best + 1] - 1][:depth]:
            place, cut = tree.tree_.feature[node], float(tree.tree_.threshold[node])
            low, high = rule.get(int(used[place]), (-math.inf, math.inf))
            is_above = codes[best, place] > cut
            rule[int(used[place])] = (max(low, cut), high) if is_above else (low, min(high, cut))
        rules.append(rule)
    return rules


def rule_mask(rule: Rule, codes: Floats) -> Mask:
    """Return the rows that meet a rule."""
    inside = np.ones(codes.shape[0], dtype=bool)
    for column, (low, high) in rule.items():
        inside &= (codes[:, column] > low) & (codes[:, column] <= high)
    return inside


def conditions_of(rule: Rule, table: CutTable) -> tuple[Condition, ...]:
    """Return a rule as conditions on columns of the table, all of which must hold."""
    found = []
    for column, ends in rule.items():
        # `k + 1/2` lies between the codes of the values below and above cut number k
        low, high = (
            end if math.isinf(end) else float(table.cuts[column][int(end)]) for end in ends
        )
        found.append(table.encoder.condition(column, low, high))
    return tuple(condition for condition in found if condition is not None)


def main_features(table: CutTable, scores: Floats) -> tuple[str, ...]:
    """Return the names of up to three features with the largest effect on scores, largest first."""
    # importances in a small tree of the scores: those in a model of noisy outcomes would favour
    # features with many values
    tree = fitted_tree(table.codes[: scores.size], scores, 3, max(10, scores.size // 50))
    columns = table.encoder.columns_
    ends = np.cumsum([0, *(len(column.names_out) for column in columns)])
    totals = np.add.reduceat(tree.feature_importances_, ends[:-1])
    order = np.argsort(-totals, kind="stable")[:3]
    # parts of less than a hundredth of the largest are rounding, or noise
    return tuple(columns[i].name for i in order if totals[i] > totals.max() / 100)


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
            low=digits_of(self.low, 4, "down"),
            p_value=digits_of(self.p_value, 4, "up"),
            direction=self.direction,
            description=self.description,
        )


# --- test of the hypothesis that a learned group is calibrated


def studentized_p_value(
    z: Floats, skewness: float, moments: tuple[float, float] | None = None
) -> float:
    """Return the p-value of a one-sided test that all values have conditional expectation 0.

    The values `z` are the pattern values of the selected rows of all folds, divided by the standard
    deviation of the values of their fold. Deviations and the mean skewness are estimated from
    earlier rows: folds with different patterns then have equal weights per row. The p-value is the
    upper tail of the standard normal distribution at the studentized sum, or at Hall's
    transformation of it if that is smaller.

    The pattern, the deviation and the selected rows of a fold depend on its features and on earlier
    folds only. If the PITs of all rows are uniform and independent given the features, each `z_i`
    therefore has conditional expectation 0 given the features and all earlier values, so the sums
    of `z_i` form a martingale. The values are bounded by 1/2, and the studentized sum `sum z_i /
    sqrt(sum z_i^2)` is asymptotically standard normal by the martingale central limit theorem (Hall
    & Heyde 1980, theorem 3.2 and corollary 3.1), whichever models selected the rows. Folds are
    evaluated by models of earlier folds only because statistics of folds that train each other's
    models are correlated under the hypothesis: with two folds and linear models they are nearly
    equal. Luedtke & van der Laan (Annals of Statistics 44, 2016) use the same construction.

    The means over several draws of one person may be strongly skewed. If they are skewed to the
    left, a studentized sum of few values is too often large. Hall's transformation is used where it
    is smaller. Sums of squares need no assumption on the dependence between these draws.

    Of a rare event that nobody in the group had, sums of squares and their skewness show nothing:
    the values are nearly equal, and their studentized sum is about the root of their number. For
    outcomes with atoms `moments` are estimates of the sums of the second and third moments of `z`
    under the hypothesis (`null_moments`), which show what could have happened. The sum is then
    divided by the root of the larger of both.
    """
    squares = float(z @ z)
    second, third = moments or (0.0, None)
    squares = max(squares, second)
    if squares == 0:
        return 1.0
    t = float(z.sum()) / math.sqrt(squares)
    # the scaled values of all folds have the same variance
    k = skewness / math.sqrt(z.size) if third is None else third / squares**1.5
    # math.erfc avoids an import of scipy.stats, which takes longer than the search
    return 0.5 * math.erfc(min(t, hall(t, k)) / math.sqrt(2))


def skewness_of(values: Floats) -> float:
    """Return the skewness of values; 0 if they are equal."""
    centred = values - values.mean()
    variance = float((centred**2).mean())
    return float((centred**3).mean()) / variance**1.5 if variance > 1e-12 else 0.0


# --- lower confidence bound for a mean by betting (method: what can be proven)

MULTIPLES = (1.0, 2.0, 4.0)
WEIGHTS = (0.8, 0.1, 0.1)
"""Stakes, as multiples of the best stake for the bound, and the share of capital on each."""


def mean_lower_bound(
    values: Floats, confidence: float = 0.95, *, deviation: float = 12**-0.5
) -> float:
    """Return a lower bound, by betting, for the mean of the values' conditional expectations.

    Each value, between -1/2 and 1/2, may depend on the earlier ones and have a different
    conditional expectation `mu_i` given them; the bound, at least 0, is for the mean of the `mu_i`.
    It is valid at any number of values. A poor guess of their standard deviation, made without
    seeing them, makes it looser, not invalid; the default is that of a uniform value.

    For a stake `b < 2`, `prod_i (1 + b v_i) / (1 + b mu_i)` has expectation 1, and so has a mean of
    such products over stakes. By Markov's inequality it is below `1 / (1 - confidence)` with
    probability at least `confidence`. As the logarithm is concave, `prod_i (1 + b mu_i) <= (1 + b
    mu)^n` at the mean `mu`. Therefore every `theta` at which the capital, the mean over stakes of
    `prod_i (1 + b v_i) / (1 + b theta)^n`, reaches that level is below `mu`. The capital decreases
    in `theta` (Waudby-Smith & Ramdas, Journal of the Royal Statistical Society B 86, 2024).
    """
    from scipy.optimize import brentq

    level = -math.log1p(-confidence)
    # log(1 + b v) is about b v - b^2 v^2 / 2, so the bound at level L is tightest for
    # b = sqrt(2 L / n) / deviation; larger stakes give larger bounds for strong effects
    stake = math.sqrt(2 * level / values.size) / max(deviation, 1e-3)
    # at a stake of 2 a single value of -1/2 would lose all the capital
    stakes = np.minimum(stake * np.array(MULTIPLES), 1.98)
    gains = np.log1p(stakes[:, None] * values).sum(axis=-1)

    def log_capital(theta: float) -> float:
        return np.logaddexp.reduce(gains - values.size * np.log1p(stakes * theta) + np.log(WEIGHTS))

    if log_capital(0.0) <= level:
        return 0.0
    return brentq(lambda theta: log_capital(theta) - level, 0.0, 0.5)


# --- search

FIRST_SHARE = 0.4
"""Share of the rows in the first fold, which is used for learning only."""

LEARNING_ROWS = 6_000
"""Largest number of rows that models are fitted to."""


@dataclass(frozen=True)
class _Stage:
    """Evaluated fold: its rows, the score learned before it, and values of the selected rows.

    `deviation` and `skewness` are those of the values of rows before it; `moments` are sums of null
    moments of the values, in units of the deviation, for outcomes with atoms.
    """

    fold: slice
    score: LearnedScore
    rows: Ints
    values: Floats
    deviation: float
    skewness: float
    moments: tuple[float, float] | None


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

    Trees of depth 2 to 4 and a linear model learn where PITs deviate from uniform in level, spread
    and shape. The one with the best group of rows outside its training data
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
        self._fits: dict[int, list[Fit]] = {}

    @cached_property
    def _shuffled(self) -> Cells:
        return self._pits.take(self._rows)

    @cached_property
    def _basis(self) -> Floats:
        return pattern_basis(self._shuffled)

    @cached_property
    def _table(self) -> CutTable:
        """The encoded features of the rows."""
        table = as_table(self._X, self._pits.n_samples)
        encoder = TableEncoder()
        try:
            matrix = encoder.fit_transform(take_rows(table, self._rows))
        except InputError:
            # the same error with the row number of the caller's table, not of the shuffled one
            encoder.fit_transform(table)
            raise
        # if no feature varies, a group would be a random subset
        if not (np.ptp(matrix, axis=0) > 0).any():
            raise InputError(
                "X must have a feature that varies, got constant features only, which define no"
                " groups; add a feature"
            )
        return CutTable.of(matrix, encoder)

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
        stages = list[_Stage]()
        for start, stop in pairwise(self._starts):
            before = stages[-1].score if stages else None
            stages.append(self._judged(slice(start, stop), mass, before))
        values = np.concatenate([stage.values for stage in stages])
        # a pattern depends on earlier rows only, so the conditional expectation of a value is at
        # most the error of its row's distribution (method: worst groups), as the bound requires.
        # The guess of the values' spread must not depend on evaluated rows
        own = 1 - (1 - confidence) / n_bounds
        low = mean_lower_bound(values, own, deviation=stages[0].score.deviation)
        moments = [stage.moments for stage in stages if stage.moments]
        p_value = studentized_p_value(
            np.concatenate([stage.values / stage.deviation for stage in stages]),
            float(np.average([s.skewness for s in stages], weights=[s.rows.size for s in stages])),
            tuple(np.sum(moments, axis=0)) if moments else None,
        )
        group = np.sort(rows[np.concatenate([stage.rows for stage in stages])])
        error = float(values.mean())
        conditions: tuple[Condition, ...] = ()
        # a rule for a group that is not significant would describe noise
        if p_value + confidence < 1:
            conditions = self._described(stages, error)
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
            features=main_features(self._table, stages[-1].score.unseen[:RULE_ROWS]),
        )

    def _share(self, conditions: tuple[Condition, ...]) -> float:
        """Return the share of the evaluated rows that meet conditions as they are printed."""
        if not conditions:
            return math.nan
        judged = take_rows(as_table(self._X, self._pits.n_samples), self._rows[self._starts[0] :])
        return float(GroupRule(conditions).mask(judged).mean())

    def _judged(self, fold: slice, mass: float, before: LearnedScore | None) -> _Stage:
        """Learn from the rows before a fold and evaluate it."""
        codes, basis = self._table.codes, self._basis
        start = fold.start
        n_learned = min(start, LEARNING_ROWS)
        learned = self._shuffled.take(slice(n_learned))
        if n_learned not in self._fits:
            self._fits[n_learned] = learn_fits(codes[:n_learned], waves(learned))
        score = best_score(self._fits[n_learned], basis[:n_learned], mass, before)
        best = start + top_rows(score(codes[fold]), mass, self._random)
        # of all these rows: under the hypothesis their values have the distribution of the group's
        skewness = skewness_of(basis[:n_learned] @ score.pattern)
        deviation, moments = max(score.deviation, 1e-9), None
        if not self._pits.are_points:
            # values of earlier rows without a rare outcome hardly vary
            deviation = math.sqrt(max(null_moments(learned, score.pattern)[0].mean(), 1e-18))
            second, third = null_moments(self._shuffled.take(best), score.pattern)
            moments = float(second.sum()) / deviation**2, float(third.sum()) / deviation**3
        return _Stage(fold, score, best, basis[best] @ score.pattern, deviation, skewness, moments)

    def _described(self, stages: Sequence[_Stage], error: float) -> tuple[Condition, ...]:
        """Return the conditions of the last fold's rule; none if no rule describes the group.

        Like a score, a rule is learned before each fold and evaluated on it, so that their errors
        on the same rows are comparable. A rule of fewer conditions takes precedence. A rule whose
        group is larger or smaller by a factor above 3/2 would describe another group.
        """
        n_judged = stages[-1].fold.stop - stages[0].fold.start
        mass = sum(stage.rows.size for stage in stages) / n_judged
        values: list[list[Floats]] = [[] for _ in range(MOST_CONDITIONS)]
        rules: list[Rule] = []
        for stage in stages:
            rules = learn_rules(self._table, stage.score.unseen[:RULE_ROWS], mass)
            of_rows = self._basis[stage.fold] @ stage.score.pattern
            for found, rule in zip(values, rules, strict=False):
                found.append(of_rows[rule_mask(rule, self._table.codes[stage.fold])])
        for found, rule in zip(values, rules, strict=False):
            judged = np.concatenate(found)
            share = judged.size / n_judged
            # a rule may have an error lower by a fifth, as the price of a description
            if mass / RULE_STRETCH <= share <= mass * RULE_STRETCH and judged.mean() >= 0.8 * error:
                return conditions_of(rule, self._table)
        return ()


def _usual_direction(stages: Sequence[_Stage]) -> Direction:
    """Return the most frequent direction over folds; the larger error breaks ties."""
    directions = [direction_of(stage.score.pattern) for stage in stages]
    errors = dict.fromkeys(directions, 0.0)
    for direction, stage in zip(directions, stages, strict=True):
        errors[direction] += float(stage.values.sum())
    return max(errors, key=lambda one: (directions.count(one), errors[one]))


def n_learnable(n: int, masses: Sequence[float]) -> int:
    """Return for how many of the masses there are enough rows for a search of four folds.

    Examples
    --------
    >>> n_learnable(200, [0.1, 0.2, 0.5])
    2
    """
    return sum(n >= _needed(mass, 4) for mass in masses)


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
