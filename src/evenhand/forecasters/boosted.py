"""Boosted trees for mean and scale, with an estimated residual distribution (LightGBM)."""

from __future__ import annotations

import re
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    MissingExtraError,
    bad_input,
    check_fraction,
    check_outcomes,
    require_extra,
)
from evenhand.distributions import Distribution, LocationScale, Quantiles
from evenhand.draws import RandomState
from evenhand.forecasters.base import Bounds, Forecaster, Training, check_integers
from evenhand.forecasters.samples import residual_distribution, smallest_gap, weighted_quantiles
from evenhand.tables import TableEncoder

# --- settings of the trees, by the size of the training table

SHRINKAGE = 100
"""Product of the learning rate and the largest number of trees."""


def spread_settings(of_mean: dict[str, Any]) -> dict[str, Any]:
    """Return LightGBM's parameters of ensembles for the scale, from those for the mean.

    The size of a residual has about as much noise as signal, so leaves are larger and their values
    shrunk more than for the mean.
    """
    smallest = 2 * of_mean["min_data_in_leaf"]
    return of_mean | {
        "objective": "gamma",
        # a Newton step on the log scale is unbounded where residuals are near 0
        "max_delta_step": 0.7,
        "min_data_in_leaf": smallest,
        "min_data_per_group": smallest,
        "lambda_l2": max(1.0, of_mean["lambda_l2"]),
    }


def fitted_parameters(n_samples: int, n_features: int) -> dict[str, Any]:
    """Return parameters of `BoostedDistributionRegressor` that suit a table, by their names."""
    return {
        # large tables would need many small steps
        "learning_rate": 0.05 if n_samples < 1000 else 0.1,
        # 4 for 400 rows, 9 for 2,000
        "num_leaves": int(np.clip(round(np.sqrt(n_samples) / 5), 4, 31)),
        "min_child_samples": int(np.clip(n_samples // 100, 5, 20)),
        # if few features matter, trees without them learn noise
        "colsample_bytree": float(np.clip(10 / n_features, 0.5, 1.0)),
        "patience": 25 if n_samples < 500 else 50,
    }


# --- features of a table for trees


def tree_features(encoder: TableEncoder, table: Any) -> Floats:
    """Return features with NaN for missing values and level numbers for categories."""
    encoded = encoder.transform(table)
    blocks = []
    start = 0
    for column in encoder.columns_:
        n_out = len(column.outputs())
        # the encoder is that of the networks, so its indicators are turned back into levels
        block = encoded[:, start : start + n_out]
        missing = np.zeros(len(encoded), dtype=bool)
        if column.had_missing:
            missing = encoded[:, start + n_out] > 0
        if column.kind == "category":
            missing = missing | (block[:, -1] > 0)  # unknown levels
            block = block.argmax(axis=-1)[:, None].astype(float)
        blocks.append(np.where(missing[:, None], np.nan, block))
        start += len(column.names_out)
    return np.hstack(blocks)


def category_flags(encoder: TableEncoder) -> list[bool]:
    """Return whether each feature is a category."""
    return [
        column.kind == "category"
        for column in encoder.columns_
        for _ in range(1 if column.kind == "category" else len(column.outputs()))
    ]


# --- scale of the outcome on which trees are grown


@dataclass(frozen=True)
class OutcomeScale:
    """Standardized outcomes, or standardized inverse hyperbolic sines of outcomes.

    `arcsinh(y / bend)` is `log(2 y / bend)` for outcomes far above `bend` and linear below, so it
    is defined for every outcome. If effects and noise are proportional to the outcome, they are
    additive on this scale.

    Parameters
    ----------
    offset, unit : float
        Centre and spread of the (transformed) training outcomes.
    bend : float, optional
        Outcome at which the scale turns from linear to logarithmic; None is linear everywhere.
    """

    offset: float
    unit: float
    bend: float | None = None

    @classmethod
    def learn(cls, y: Floats, weight: Floats, bend: float | None = None) -> OutcomeScale:
        """Return the scale with the median of the outcomes at 0 and their quartiles near -+1."""
        line = cls(0.0, 1.0, bend).to_unit(y)
        # median and quartiles, so that outliers do not determine the unit of the trees
        low, centre, high = weighted_quantiles(line, weight, [0.25, 0.5, 0.75])
        return cls(float(centre), float((high - low) / 2 or line.std() or 1.0), bend)

    def to_unit(self, y: Floats) -> Floats:
        """Return the position of outcomes on this scale."""
        line = y if self.bend is None else np.arcsinh(y / self.bend)
        return (line - self.offset) / self.unit

    def to_outcome(self, position: Floats) -> Floats:
        """Return the outcome at a position."""
        line = self.offset + self.unit * position
        return line if self.bend is None else self.bend * np.sinh(line)

    def slope(self, position: Floats) -> Floats:
        """Return the derivative of the outcome by the position."""
        line = self.offset + self.unit * position
        stretch = np.ones_like(line) if self.bend is None else self.bend * np.cosh(line)
        return self.unit * stretch


def possible_scales(y: Floats, weight: Floats) -> list[OutcomeScale]:
    """Return the linear scale, and the logarithmic one if outcomes are spread over multiples.

    Outcomes qualify if none is negative and the 90% quantile is more than twice the 10% quantile.
    """
    scales = [OutcomeScale.learn(y, weight)]
    least, low, centre, high = weighted_quantiles(y, weight, [0.02, 0.1, 0.5, 0.9])
    if y.min() >= 0 and high > 2 * low and centre > 0:
        bend = max(least, 1e-3 * centre, smallest_gap(y))
        scales.append(OutcomeScale.learn(y, weight, float(bend)))
    return scales


# --- cross-fitted ensembles of trees (LightGBM)


def lightgbm() -> Any:
    """Return the module LightGBM, or raise an error that names what is missing."""
    try:
        return require_extra("lightgbm", "boosting")
    except OSError as error:  # the package is installed, but the OpenMP library is not
        remedy = (
            "install the OpenMP runtime (Debian and Ubuntu: libgomp1, macOS: brew install libomp)"
        )
        raise MissingExtraError(f"lightgbm cannot be loaded ({error}); {remedy}") from error


@dataclass(eq=False, repr=False)
class FoldEnsembles:
    """Ensembles of trees for one table, each grown without one fold of one split of its rows.

    Parameters
    ----------
    features : ndarray of shape (n, n_features)
        Numbers, level numbers of categories, NaN for missing values.
    categories : list of int
        Features that are categories: LightGBM splits them by sets of levels.
    folds : ndarray of shape (n_splits, n)
        Fold of each row in each split, 0 to the number of folds - 1.
    settings : dict
        LightGBM's parameters of ensembles for the mean.
    """

    features: Floats
    categories: list[int]
    folds: Ints
    settings: dict[str, Any]

    def __post_init__(self) -> None:
        n, n_features = self.features.shape
        # binned once, as the folds of all fits are subsets of one data set
        options = {"params": self.settings, "categorical_feature": self.categories}
        self._rows = lightgbm().Dataset(self.features, np.zeros(n), **options).construct()
        self.can_split = any(self._rows.feature_num_bin(i) > 1 for i in range(n_features))
        """Whether any feature has more than one value."""

    def take(self, rows: Ints) -> FoldEnsembles:
        """Return the same for a part of the rows."""
        return replace(self, features=self.features[rows], folds=self.folds[:, rows])

    def grow(self, target: Floats, weight: Floats, *, of_log_scale: bool = False) -> Grown:
        """Grow all ensembles tree by tree until their mean held-out loss stops decreasing.

        The folds of a small table are too small to determine a number of trees each. Ensembles are
        for the mean of the target, or for the logarithm of the mean of positive sizes: with a log
        link, the gamma likelihood estimates the mean size consistently for any shape.

        Returns the ensembles and, for each row, the mean output of those grown without it.
        """
        params = spread_settings(self.settings) if of_log_scale else self.settings
        self._rows.set_label(target)
        self._rows.set_weight(weight)
        parts = [fold == k for fold in self.folds for k in range(self.folds.max() + 1)]
        found = lightgbm().cv(
            params,
            self._rows,
            folds=[(np.flatnonzero(~held_out), np.flatnonzero(held_out)) for held_out in parts],
            return_cvbooster=True,
        )["cvbooster"]
        best, out = found.best_iteration, np.zeros(target.size)
        options = {"num_iteration": best, "num_threads": self.settings["num_threads"]}
        for one, held_out in zip(found.boosters, parts, strict=True):
            out[held_out] += one.predict(self.features[held_out], raw_score=True, **options)
        # in their stored form, without a reference to the training rows
        return [one.model_to_string(best) for one in found.boosters], out / len(self.folds)


# sums of multiples of it are exact below 2^15, and outputs are in units of half an interquartile
# range of the outcome
LEAF_UNIT = 2.0**-38
"""Unit of the values of leaves."""

# these trees stay in the cache of the processor, where LightGBM by itself reads all trees for
# each row
TREES_AT_ONCE = 25
FEW_ROWS = 100
"""Number of trees that are evaluated at once, for more than a few rows."""


def averaged(texts: list[str]) -> Any:
    """Return one booster with the mean output of several in stored form; None if there are none.

    The values of its leaves are rounded, so that no order of its trees matters.
    """
    if not texts:
        return None

    def rounded(line: re.Match[str]) -> str:
        values = (float(value) / len(texts) / LEAF_UNIT for value in line[1].split())
        return f"\nleaf_value={' '.join(repr(round(value) * LEAF_UNIT) for value in values)}\n"

    tree, end = "\nTree=", "\nend of trees"
    trees = [part for text in texts for part in text.partition(end)[0].split(tree)[1:]]
    first, last = texts[0].partition(tree)[0], texts[0].partition(end)[2]
    # LightGBM counts bytes and trees itself if the sizes of trees are not there
    text = re.sub(r"\ntree_sizes=.*\n", "\n", tree.join([first, *trees]) + end + last)
    return lightgbm().Booster(model_str=re.sub(r"\nleaf_value=(.*)\n", rounded, text))


def raw_output(booster: Any, features: Floats, n_threads: int) -> Floats:
    """Return means or log scales of an averaged booster, shape (n,); 0 without one.

    The output of a row does not depend on other rows, as the sums are exact.
    """
    output = np.zeros(len(features))
    if booster is None:
        return output
    step, order = booster.num_trees(), np.arange(len(features))
    if len(features) > FEW_ROWS:
        # rows that take the same branches follow each other, so that processors predict these
        step, often = TREES_AT_ONCE, np.argsort(booster.feature_importance())[-2:]
        order = np.lexsort(features.T[often])
    rows = features[order]
    for start in range(0, booster.num_trees(), step):
        trees = {"start_iteration": start, "num_iteration": step}
        output[order] += booster.predict(rows, raw_score=True, num_threads=n_threads, **trees)
    return output


# --- candidates for the forecasts of boosted trees, compared by held-out scores

CHOICE_ROWS = 2000
"""Number of rows on which the scale of the outcome is chosen, at most."""

SCORE_ROWS = 5000
"""Number of rows on which candidates are scored, at most."""

WEIGHT_CAP = 3.0
"""A precision weight treats no row as having a scale more than this times above or below the
median, so weights range from 1/9 to 9."""


Grown = tuple[list[str], Floats]
"""Ensembles in stored form, and the output for each training row of those grown without it."""


@dataclass(frozen=True, eq=False)
class BoostedCandidate:
    """Ensembles for mean and log scale, with what they leave of the training outcomes.

    Parameters
    ----------
    outcome_scale : OutcomeScale
        Scale of the means.
    y : ndarray of shape (n,)
        Training outcomes.
    means, log_scales : tuple of list and ndarray of shape (n,)
        One ensemble per fold, and the outputs for each row without its fold; no ensembles are
        outputs of 0 for all rows.
    """

    outcome_scale: OutcomeScale
    y: Floats
    means: Grown
    log_scales: Grown

    @cached_property
    def scale(self) -> Floats:
        """Scale of each row."""
        return self.outcome_scale.slope(self.means[1]) * np.exp(self.log_scales[1])

    @cached_property
    def residuals(self) -> Floats:
        """Held-out residuals in units of the scale."""
        return (self.y - self.outcome_scale.to_outcome(self.means[1])) / self.scale

    def loss(self, weight: Floats, width: float) -> float:
        """Return the held-out log score plus the logarithm of the held-out CRPS.

        Both are in nats: a difference of 0.01 is 1% of the CRPS. The log score is that of cells
        around the outcomes, at least `width` and 2% of a scale wide, so that ties in the residuals
        of rounded outcomes are no gain.
        """
        distribution = residual_distribution(self.residuals, weight)
        rows = slice(None, None, -(-self.residuals.size // SCORE_ROWS))
        residuals = self.residuals[rows]
        scale = self.scale[rows]
        half = np.maximum(width / scale, 0.02) / 2
        log_mass = distribution.log_between(residuals - half, residuals + half)
        # an outlier far in a tail costs at most 28 nats
        log_score = np.log(2 * half * scale) - np.maximum(log_mass, np.log(1e-12))
        crps = np.average(scale * distribution.crps(residuals), weights=weight[rows])
        return np.average(log_score, weights=weight[rows]) + np.log(crps)


def best_candidate(ensembles: FoldEnsembles, y: Floats, weight: Floats) -> BoostedCandidate:
    """Grow the candidates of a table and return the one with the lowest held-out loss.

    The weights have mean 1.
    """
    scales = possible_scales(y, weight)
    # if no feature can be split, all rows get the same distribution
    if not ensembles.can_split:
        return BoostedCandidate(scales[0], y, ([], np.zeros(y.size)), ([], np.zeros(y.size)))
    if len(scales) > 1 and y.size > CHOICE_ROWS:
        # folds are random, so the first rows of each fold are a random part of the table
        few = np.sort(np.argsort(ensembles.folds[0], kind="stable")[:: -(-y.size // CHOICE_ROWS)])
        scales = [_best(ensembles.take(few), y[few], weight[few], scales).outcome_scale]
    return _best(ensembles, y, weight, scales)


def _best(
    ensembles: FoldEnsembles, y: Floats, weight: Floats, scales: list[OutcomeScale]
) -> BoostedCandidate:
    grown = chain.from_iterable(_grown(ensembles, y, weight, scale) for scale in scales)
    width = smallest_gap(y)
    return min(grown, key=lambda candidate: candidate.loss(weight, width))


def _grown(
    ensembles: FoldEnsembles, y: Floats, weight: Floats, outcome_scale: OutcomeScale
) -> list[BoostedCandidate]:
    """Grow ensembles on one scale of the outcome; the first candidate is plain boosting.

    The others have a scale learned from the held-out residuals; a mean with precision weights, or
    the average of both means.
    """
    position = outcome_scale.to_unit(y)
    plain, loc = ensembles.grow(position, weight)
    # residuals of training rows are too small, so the scale is fitted to held-out residuals
    size = np.abs(position - loc)
    typical = np.average(size, weights=weight) or 1.0
    # rounding alone moves outcomes by a quarter of the step on average
    rounding = smallest_gap(y) / 4 / outcome_scale.slope(loc)
    # the gamma distribution needs positive values
    size = np.maximum(np.maximum(size, rounding) / typical, 1e-3)
    spread, log_scale = ensembles.grow(size, weight, of_log_scale=True)
    relative = np.exp(log_scale - np.median(log_scale))
    precision = weight / np.clip(relative, 1 / WEIGHT_CAP, WEIGHT_CAP) ** 2
    weighted, weighted_loc = ensembles.grow(position, precision / precision.mean())
    both = plain + weighted, (loc + weighted_loc) / 2
    return [
        BoostedCandidate(outcome_scale, y, means, log_scales)
        for means in ((plain, loc), (weighted, weighted_loc), both)
        for log_scales in (([], np.zeros(y.size)), (spread, log_scale))
    ]


# --- the forecaster


@dataclass(eq=False, repr=False)
class BoostedDistributionRegressor(Forecaster):
    """Deterministic forecasts from boosted trees for the mean and the scale of each row.

    The rows are split into `cv` folds. For each fold, trees are grown on the other rows until the
    loss on the folds stops decreasing: for the mean, for the scale of the held-out residuals, and
    for the mean again with precision weights. Predictions are averages over these ensembles, one
    per fold. The shape of the predicted distribution is that of the standardized held-out
    residuals, so that skew and heavy tails need no assumption.

    Tables of fewer than 1,000 rows are split into folds up to five times, which averages more
    ensembles and makes held-out scores less noisy. These scores decide what is used: the mean with
    or without precision weights, or the average of both; a learned or a constant scale; and, if
    outcomes are not negative and spread over multiples, trees for the outcome or for its logarithm
    (linear near 0). One of the choices is plain gradient boosting with one residual distribution
    for all rows.

    Trees split categories, text and missing values natively; levels unseen in training are treated
    as missing.

    Parameters
    ----------
    n_estimators : int, optional
        Largest number of trees of an ensemble. None is 100 over the learning rate.
    learning_rate : float, optional
        Shrinkage of each tree, 0 < learning_rate <= 1. None is 0.05, and 0.1 from 1,000 rows.
    num_leaves : int, optional
        Largest number of leaves of a tree. None fits it to the number of rows n:
        `sqrt(n) / 5`, between 4 and 31.
    min_child_samples : int, optional
        Smallest number of rows in a leaf; twice as many in the trees for the scale. None fits it to
        the number of rows n: `n / 100`, between 5 and 20.
    subsample : float, default 0.8
        Share of the rows sampled for each tree.
    colsample_bytree : float, optional
        Share of the features sampled for each tree. None takes all of up to 10 features, and
        half of 20 or more.
    reg_lambda : float, default 0.1
        L2 penalty on the values of leaves; at least 1 in the trees for the scale.
    patience : int, optional
        Number of trees without a better loss on the folds before the ensembles stop growing. None
        is 50, and 25 for fewer than 500 rows.
    cv : int, default 5
        Number of folds of a split, and of its ensembles. Each ensemble uses a share `1 / cv` of the
        training rows for early stopping.
    n_jobs : int, default 1
        Number of threads; -1 means all. Results may differ in the last digits between numbers of
        threads.
    support : tuple of (float or None, float or None), optional
        Bounds `(low, high)` of the outcome, None on a side without bound: `(0, None)` for money or
        durations. Trees are grown for outcomes mapped to the real line.
    random_state : int, generator or None
        Seed of the folds and of the sampling of rows and features.

    Attributes
    ----------
    mean_booster_, scale_booster_ : lightgbm.Booster or None
        Averages of the ensembles: the mean on `outcome_scale_`, and the logarithm of the scale up
        to a constant that `residual_distribution_` absorbs. Both are None if no feature can be
        split; `scale_booster_` is None if a constant scale has better held-out scores.
    outcome_scale_ : OutcomeScale
        Map between outcomes and the outputs of `mean_booster_`: linear or logarithmic.
    residual_distribution_ : Quantiles
        Distribution of the standardized residuals, batch shape (1,).
    support_ : Support or None
        Map of outcomes to the line; None without `support`.
    schema_ : Schema
        Kinds, levels and ranges of the columns of the training table, by which every table is read.

    References
    ----------
    Ke et al., LightGBM, NeurIPS 2017. Weights from an estimated scale: Carroll & Ruppert,
    Transformation and Weighting in Regression, 1988.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(500, 2))
    >>> y = (1 + 4 * (X[:, 1] > 0.5)) * rng.normal(size=500)
    >>> model = BoostedDistributionRegressor(n_estimators=50, random_state=0).fit(X, y)
    >>> calm, wild = model.forecast([[0.5, 0.2], [0.5, 0.8]]).std()
    >>> bool(wild > 3 * calm)
    True
    """

    n_estimators: int | None = None
    learning_rate: float | None = None
    _: KW_ONLY
    num_leaves: int | None = None
    min_child_samples: int | None = None
    subsample: float = 0.8
    colsample_bytree: float | None = None
    reg_lambda: float = 0.1
    patience: int | None = None
    cv: int = 5
    n_jobs: int = 1
    support: Bounds = None
    random_state: RandomState = None

    mean_booster_ = scale_booster_ = None
    learned = Forecaster.learned | {
        "encoder_": TableEncoder,
        "mean_booster_": Any,
        "scale_booster_": Any,
        "outcome_scale_": OutcomeScale,
        "residual_distribution_": Quantiles,
    }

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Grow the ensembles and estimate the distribution of their residuals.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Training rows; a table may contain numbers, categories, text, booleans, dates and
            missing values.
        y : array-like of shape (n,)
            Continuous outcomes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, for the trees, early stopping and the residual distribution.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If a parameter or the training set is invalid, or fewer than `2 cv` rows have a positive
            weight.
        MissingExtraError
            If LightGBM is not installed.
        """
        lightgbm()
        self._check_parameters()
        rows = self._check_training(X, y, sample_weight)
        rows.check_folds()
        check_outcomes(rows.y)
        outcomes = self._learn_support(rows.y, rows.X)
        self.encoder_ = TableEncoder().fit(rows.X)
        weight = rows.weights
        best = best_candidate(self._ensembles(rows), outcomes, weight / weight.mean())
        self.mean_booster_ = averaged(best.means[0])
        self.scale_booster_ = averaged(best.log_scales[0])
        self.outcome_scale_ = best.outcome_scale
        self.residual_distribution_ = residual_distribution(best.residuals, weight)
        return self

    def _distribution(self, rows: Any) -> Distribution:
        features = tree_features(self.encoder_, rows)
        position, log_scale = (
            raw_output(one, features, self.n_jobs)
            for one in (self.mean_booster_, self.scale_booster_)
        )
        # the trees predict log scales, so the average over ensembles is geometric and positive
        scale = self.outcome_scale_.slope(position) * np.exp(log_scale)
        loc = self.outcome_scale_.to_outcome(position)
        return LocationScale(self.residual_distribution_, loc, scale)

    def _set_up(self) -> None:
        super()._set_up()
        self._check_parameters()
        n_features = len(category_flags(self.encoder_))
        for booster in filter(None, (self.mean_booster_, self.scale_booster_)):
            # LightGBM would read past the end of a shorter row
            if booster.num_feature() != n_features:
                raise InputError(
                    f"a stored booster does not have the {n_features} features of the training"
                    " table"
                )

    def _check_parameters(self) -> None:
        check_integers(self, cv=2, num_leaves=2, n_jobs=-1)
        # LightGBM ends the process if there is no memory for its threads
        if self.n_jobs == 0 or self.n_jobs > 1024:
            raise bad_input("n_jobs", "lie between 1 and 1024", self.n_jobs, "-1 uses all")
        check_fraction("subsample", self.subsample, high_open=False)
        for name in ("learning_rate", "colsample_bytree"):
            if getattr(self, name) is not None:
                check_fraction(name, getattr(self, name), high_open=False)
        if not 0 <= self.reg_lambda < np.inf:
            raise bad_input("reg_lambda", "be a finite number of at least 0", repr(self.reg_lambda))

    def _ensembles(self, rows: Training) -> FoldEnsembles:
        """Draw the folds of the training rows."""
        features, random = tree_features(self.encoder_, rows.X), rows.random
        # fold sizes differ by at most one row
        n_samples, n_features = features.shape
        # one split from 1,000 rows on, and more of small tables, which make held-out scores less
        # noisy, and average more ensembles
        n_splits = int(np.clip(-(-1000 // n_samples), 1, 5))
        folds = np.stack([random.permutation(n_samples) % self.cv for _ in range(n_splits)])
        settings = self._settings(n_samples, n_features, rows.seed())
        flags = category_flags(self.encoder_)
        return FoldEnsembles(features, np.flatnonzero(flags).tolist(), folds, settings)

    def _settings(self, n_samples: int, n_features: int, seed: int) -> dict[str, Any]:
        """Return LightGBM's parameters; those that are None are fitted to the table."""
        used = {
            name: fitted if getattr(self, name) is None else getattr(self, name)
            for name, fitted in fitted_parameters(n_samples, n_features).items()
        }
        return {
            "objective": "l2",
            "learning_rate": used["learning_rate"],
            "num_leaves": used["num_leaves"],
            "min_data_in_leaf": used["min_child_samples"],
            "min_data_per_group": used["min_child_samples"],
            # one binned data set serves ensembles with different smallest leaves
            "feature_pre_filter": False,
            "bagging_fraction": self.subsample,
            "bagging_freq": 1,
            "feature_fraction": used["colsample_bytree"],
            "lambda_l2": self.reg_lambda,
            # all, if it is -1
            "num_threads": self.n_jobs,
            # a seed determines the model on a given machine type and number of threads
            "deterministic": True,
            "force_row_wise": True,
            "seed": seed,
            "verbosity": -1,
            "num_iterations": self.n_estimators or round(SHRINKAGE / used["learning_rate"]),
            "early_stopping_round": used["patience"],
        }
