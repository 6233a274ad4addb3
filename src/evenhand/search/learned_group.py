"""Learned worst group: learned from features, evaluated on other rows (method: worst groups)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import at_least, confidence_in_full, four_digits, number, one_line
from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    bad_input,
    check_count,
    check_fraction,
    check_rows,
)
from evenhand.calibration import PITs, as_pits, covered
from evenhand.columns import TableEncoder, as_table
from evenhand.draws import RandomState, generator
from evenhand.search.directions import Direction
from evenhand.search.group_learners import Fit, LearnedScore, best_score, learn_fits, top_rows
from evenhand.search.mean_bound import mean_lower_bound
from evenhand.search.patterns import direction_of, pattern_values
from evenhand.search.rules import RULE_STRETCH, Rule, learn_rules, main_features
from evenhand.tables import take_rows

FIRST_SHARE = 0.4
"""Share of the rows in the first fold, which is used for learning only."""


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
        Lower confidence bound for the error, 0 to 1/2. It is also a lower bound for the error of
        the worst group of this mass that features define.
    confidence : float
        Probability that `low` holds.
    p_value : float
        P-value for the hypothesis that the group is calibrated; `low > 0` exactly if it is below
        `1 - confidence`.
    direction : str
        Direction of the error in most folds: `"outcomes lower than forecast"`, `"outcomes higher
        than forecast"`, `"intervals too narrow"`, `"intervals too wide"` or `"mixed"`.
    bias : float
        Mean residual of the rows, in units of the residuals; NaN if no residuals were given.
    coverage_80 : float
        Share of the group's draws whose central 80% interval covers the outcome.
    description : str or None
        One or two conditions, such as `"bmi > 0.03 and age <= 50"`, that define a group of nearly
        this mass with at least 0.8 of the error on the same rows; None if there are no such
        conditions, or if `low` is 0.
    description_share : float
        Share of the evaluated rows that meet these conditions, between 2/3 and 3/2 of the mass; NaN
        without conditions.
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
    description: str | None
    description_share: float
    features: tuple[str, ...]

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

    def __str__(self) -> str:
        """Return the result as a sentence."""
        result = f"{self.direction}: " if self.low > 0 else "no significantly miscalibrated group: "
        where = f" (approximately: {self.description})" if self.description else ""
        return (
            f"{result}calibration error {number(self.error)}, at least {at_least(self.low, number)}"
            f" with {confidence_in_full(self.confidence)} confidence, in {self.n} of"
            f" {self.n_judged} rows{where}"
        )


@dataclass(frozen=True)
class _Stage:
    """Evaluated fold: its range of rows, the score learned before it, selected rows and values."""

    start: int
    stop: int
    score: LearnedScore
    rows: Ints
    values: Floats


def find_group(
    pit: ArrayLike | PITs,
    X: Any,
    mass: float = 0.2,
    *,
    confidence: float = 0.95,
    n_folds: int = 5,
    residual: ArrayLike | None = None,
    max_rows: int = 50_000,
    random_state: RandomState = None,
) -> FoundGroup:
    """Find the least calibrated group that features define, with a bound for its error.

    A forest and a linear model learn where PITs deviate from uniform in level and spread. The one
    with the better predictions of rows outside its training data selects the share `mass` of the
    rows of the next fold, and the outcomes of these rows give the error of the group. Rows are
    shuffled and split into folds: the first 40% are used for learning only, and the group in each
    further fold is selected by models of all folds before it. The bound and the p-value are
    therefore valid at any number of rows and for any models.

    Parameters
    ----------
    pit : PITs or array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns are draws. A guarantee with few draws needs
        one jittered draw per cell. Each row counts once.
    X : DataFrame of any library, or array-like of shape (n, n_features)
        Features: numbers, text, categories, booleans, dates, missing values. Columns of an array
        are named x0, x1, ...
    mass : float, default 0.2
        Share of the rows in the group, 0 < mass <= 1.
    confidence : float, default 0.95
        Probability that the bound holds.
    n_folds : int, default 5
        Number of folds, at least 2.
    residual : array-like of shape (n,), optional
        Outcome minus mean forecast, for the group's bias.
    max_rows : int, default 50,000
        Largest number of rows that are used; larger samples are subsampled at random.
    random_state : int, generator or None
        Seed for the shuffle, the forests and the order of ties.

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
    pit : PITs or array-like of shape (n,) or (n, m)
        PITs between 0 and 1.
    X : DataFrame of any library, or array-like of shape (n, n_features)
        Features.
    n_folds : int, default 5
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
        pit: ArrayLike | PITs,
        X: Any,
        *,
        n_folds: int = 5,
        max_rows: int = 50_000,
        random_state: RandomState = None,
    ) -> None:
        self._pits = as_pits(pit)
        self._X = X
        self._random = generator(random_state)
        # files are often sorted by time or place; shuffling makes the folds alike
        order = self._random.permutation(self._pits.n_samples)
        self._rows = order[: check_count("max_rows", max_rows)]
        self._n_folds = check_count("n_folds", n_folds, least=2)
        # the first fold is larger than the others: all scores learn from it
        starts = np.linspace(FIRST_SHARE * self._rows.size, self._rows.size, n_folds)
        self._starts = starts.round().astype(int)
        # cached by first evaluated row: fits take most of the time and do not depend on the mass
        self._fits: dict[int, tuple[Fit, ...]] = {}

    @cached_property
    def _encoded(self) -> tuple[TableEncoder, Floats]:
        return _encoded(self._X, self._rows, self._pits.n_samples)

    def find(
        self, mass: float, *, confidence: float = 0.95, residual: ArrayLike | None = None
    ) -> FoundGroup:
        """Find the group of one mass; the parameters are those of `find_group`."""
        check_fraction("mass", mass, high_open=False)
        check_fraction("confidence", confidence)
        n = self._pits.n_samples
        rows = self._rows
        residuals = None if residual is None else check_rows("residual", residual, n)
        _check_enough(rows.size, mass, self._n_folds, n > rows.size)
        encoder, features = self._encoded
        shuffled = self._pits.matrix[rows]
        stages = list[_Stage]()
        for start, stop in pairwise(self._starts):
            stages.append(
                self._judged(shuffled[:stop], start, mass, stages[-1].score if stages else None)
            )
        values = np.concatenate([stage.values for stage in stages])
        # a pattern depends on earlier rows only, so the conditional expectation of a value is at
        # most the error of its row's distribution (method: worst groups), as the bound requires.
        # The guess of the values' spread must not depend on evaluated rows
        low, p_value = mean_lower_bound(values, confidence, deviation=stages[0].score.deviation)
        group = np.sort(rows[np.concatenate([stage.rows for stage in stages])])
        error = float(values.mean())
        rule = None
        if low > 0:  # a rule for a group that is not significant would describe noise
            rule = _rule_in_words(stages, features, shuffled, error, encoder, self._random)
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
            description=None if rule is None else rule[0],
            description_share=math.nan if rule is None else rule[1],
            # the last score was learned from the largest number of rows
            features=main_features(
                features[: stages[-1].start], stages[-1].score.unseen, encoder, self._random
            ),
        )

    def _judged(self, pit: Floats, start: int, mass: float, before: LearnedScore | None) -> _Stage:
        """Learn from the rows before `start` and evaluate the others."""
        features = self._encoded[1][: pit.shape[0]]
        # fits predict waves of PITs, which do not depend on the mass
        if start not in self._fits:
            self._fits[start] = learn_fits(features[:start], pit[:start], self._random)
        score = best_score(self._fits[start], pit[:start], mass, self._random, before)
        best = start + top_rows(score(features[start:]), mass, self._random)
        return _Stage(start, pit.shape[0], score, best, pattern_values(pit[best], score.pattern))


def _usual_direction(stages: Sequence[_Stage]) -> Direction:
    """Return the most frequent direction over folds; the larger error breaks ties."""
    sums: dict[Direction, tuple[int, float]] = {}
    for stage in stages:
        direction = direction_of(stage.score.pattern)
        count, total = sums.get(direction, (0, 0.0))
        sums[direction] = count + 1, total + float(stage.values.sum())
    return max(sums, key=lambda direction: sums[direction])


def _rule_in_words(
    stages: Sequence[_Stage],
    features: Floats,
    pit: Floats,
    error: float,
    encoder: TableEncoder,
    random: np.random.Generator,
) -> tuple[str, float] | None:
    """Return the last fold's rule in words and its share of the evaluated rows, or None.

    Like a score, a rule is learned before each fold and evaluated on it, so that their errors on
    the same rows are comparable. A rule of one condition takes precedence. A rule whose group is
    larger or smaller by a factor above 3/2 would describe another group.
    """
    n_judged = sum(stage.stop - stage.start for stage in stages)
    mass = sum(stage.rows.size for stage in stages) / n_judged
    values: list[list[Floats]] = [[], []]
    rules: tuple[Rule, ...] = ()
    for stage in stages:
        rules = learn_rules(features[: stage.start], stage.score.unseen, mass, encoder, random)
        for rule, found in zip(rules, values, strict=False):
            inside = stage.start + np.flatnonzero(rule.selects(features[stage.start : stage.stop]))
            found.append(pattern_values(pit[inside], stage.score.pattern))
    for rule, found in zip(rules, values, strict=False):
        judged = np.concatenate(found)
        share = judged.size / n_judged
        # a rule may have an error lower by a fifth, as the price of a description
        if mass / RULE_STRETCH <= share <= mass * RULE_STRETCH and judged.mean() >= 0.8 * error:
            return rule.words(encoder), share
    return None


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


def _check_enough(n: int, mass: float, n_folds: int, is_subset: bool) -> None:
    judged = 1 - FIRST_SHARE
    # 100 rows in total, 20 in the group and 10 in each evaluated fold: with fewer rows no bound is
    # above 0
    needed = math.ceil(max(100, 20 / (judged * mass), 10 * (n_folds - 1) / judged))
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
