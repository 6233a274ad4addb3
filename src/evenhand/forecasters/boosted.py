"""Boosted trees for mean and scale, with an estimated residual distribution (LightGBM)."""

from __future__ import annotations

from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from evenhand._validate import (
    Floats,
    MissingExtraError,
    OnDiscrete,
    bad_input,
    check_continuous,
    check_count,
    check_fraction,
    require_extra,
)
from evenhand.columns import CategoryColumn, TableEncoder
from evenhand.distributions import LocationScale, Quantiles
from evenhand.draws import RandomState, generator
from evenhand.forecast import Forecast
from evenhand.forecasters.adapters import residual_distribution
from evenhand.forecasters.base import Forecaster, State
from evenhand.forecasters.booster_text import check_booster_text


class BoostedDistributionRegressor(Forecaster):
    """Deterministic forecasts from boosted trees for the mean and the scale of each row.

    The rows are split into `cv` folds. For each fold, trees are grown on the other rows until the
    loss on the fold stops decreasing: first for the mean, then for the scale of the held-out
    residuals, then for the mean again with precision weights. Predictions are averages over these
    ensembles, one per fold. The shape of the predicted distribution is that of the standardized
    held-out residuals, so that skew and heavy tails need no assumption.

    Trees split categories, text and missing values natively; levels unseen in training are treated
    as missing.

    Parameters
    ----------
    n_estimators : int, default 1000
        Largest number of trees of an ensemble.
    learning_rate : float, default 0.05
        Shrinkage of each tree, 0 < learning_rate <= 1.
    num_leaves, min_child_samples : int
        Largest number of leaves of a tree, and smallest number of rows in a leaf.
    subsample, colsample_bytree : float
        Shares of rows and of features sampled for each tree.
    reg_lambda : float, default 1.0
        L2 penalty on the values of leaves.
    patience : int, default 50
        Number of trees without a better loss on the fold before an ensemble stops growing.
    cv : int, default 5
        Number of folds and ensembles. Each ensemble uses a share `1 / cv` of the training rows for
        early stopping.
    n_jobs : int, default 1
        Number of threads; -1 means all. Results may differ in the last digits between numbers of
        threads.
    on_discrete : {"raise", "warn", "ignore"}, default "raise"
        How to handle an outcome that is not continuous, with fewer than 20 distinct values or one
        value in more than 10% of the rows.
    random_state : int, generator or None
        Seed of the folds and of the sampling of rows and features.

    Attributes
    ----------
    mean_boosters_, scale_boosters_ : list of lightgbm.Booster
        Ensembles, one per fold: the mean relative to `y_offset_` in units of `y_unit_`, and the
        logarithm of the scale up to a constant that `residual_distribution_` absorbs. Empty if no
        feature can be split.
    residual_distribution_ : Quantiles
        Distribution of the standardized residuals, batch shape (1,).
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

    def __init__(
        self,
        n_estimators: int = 1000,
        learning_rate: float = 0.05,
        *,
        num_leaves: int = 7,
        min_child_samples: int = 20,
        subsample: float = 0.8,
        colsample_bytree: float = 0.5,
        reg_lambda: float = 1.0,
        patience: int = 50,
        cv: int = 5,
        n_jobs: int = 1,
        on_discrete: OnDiscrete = "raise",
        random_state: RandomState = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.reg_lambda = reg_lambda
        self.patience = patience
        self.cv = cv
        self.n_jobs = n_jobs
        self.on_discrete = on_discrete
        self.random_state = random_state

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
        _lightgbm()
        self._check_parameters()
        table, outcomes, weight = self._check_training(X, y, sample_weight)
        if outcomes.size < 2 * self.cv:
            rule = f"have at least {2 * self.cv} rows for cv={self.cv}"
            raise bad_input("X", rule, f"n_samples = {outcomes.size}")
        check_continuous(outcomes, on_discrete=self.on_discrete)
        self.encoder_ = TableEncoder().fit(table)
        # median and quartiles, so that outliers do not determine the unit of the trees
        self.y_offset_, self.y_unit_ = _centre_and_spread(outcomes, weight)
        unit = (outcomes - self.y_offset_) / self.y_unit_
        residuals = self._grow(self._features(table), unit, weight / weight.mean())
        self.residual_distribution_ = residual_distribution(
            residuals, None if sample_weight is None else weight
        )
        return self

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        check_is_fitted(self)
        features = self._features(self._check_new_rows(X))
        loc, log_scale = (
            np.mean(
                [self._output(one, features) for one in ensembles] or np.zeros((1, len(features))),
                axis=0,
            )
            for ensembles in (self.mean_boosters_, self.scale_boosters_)
        )
        # the trees predict log scales, so the average over ensembles is geometric and positive
        scale = self.y_unit_ * np.exp(log_scale)
        loc = self.y_offset_ + self.y_unit_ * loc
        return Forecast(LocationScale(self.residual_distribution_, loc, scale))

    @property
    def n_rounds_(self) -> Any:
        """Number of trees of each ensemble, mean before scale, shape (2, cv)."""
        return np.array([[one.current_iteration() for one in part] for part in self._boosters()])

    def to_state(self) -> State:
        check_is_fitted(self)
        learned: dict[str, Any] = {
            "boosters": [[one.model_to_string() for one in part] for part in self._boosters()],
            "encoder": self.encoder_.to_state(),
            "y_offset": self.y_offset_,
            "y_unit": self.y_unit_,
        } | self._columns_to_state()
        # the keys are those of stored model folders, which must stay readable
        arrays = {
            "law_levels": np.ravel(self.residual_distribution_.levels),
            "law_values": np.ravel(self.residual_distribution_.values),
        }
        return State(
            type(self).__name__, {"params": self._params_to_state(), "learned": learned}, arrays
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        lightgbm = _lightgbm()
        learned = state.params["learned"]
        model = cls(**state.params["params"])
        model.encoder_ = TableEncoder.from_state(learned["encoder"])
        model.y_offset_ = learned["y_offset"]
        model.y_unit_ = learned["y_unit"]
        model._columns_from_state(learned)
        width = sum(len(_names(column)) for column in model.encoder_.columns_)
        for text in chain.from_iterable(learned["boosters"]):
            # LightGBM does not check the indices in a text
            check_booster_text(text, width)
        model.mean_boosters_, model.scale_boosters_ = (
            [lightgbm.Booster(model_str=text) for text in part] for part in learned["boosters"]
        )
        model.residual_distribution_ = Quantiles(
            state.arrays["law_levels"], state.arrays["law_values"][None, :]
        )
        return model

    def _check_parameters(self) -> None:
        for name, least in (
            ("n_estimators", 1),
            ("num_leaves", 2),
            ("min_child_samples", 1),
            ("patience", 1),
        ):
            check_count(name, getattr(self, name), least=least)
        check_count("cv", self.cv, least=2)
        if self.n_jobs != -1:
            check_count("n_jobs", self.n_jobs)
        for name in ("learning_rate", "subsample", "colsample_bytree"):
            check_fraction(name, getattr(self, name), high_open=False)
        if not 0 <= self.reg_lambda < np.inf:
            raise bad_input("reg_lambda", "be a finite number of at least 0", repr(self.reg_lambda))

    def _features(self, table: Any) -> Floats:
        """Features for the trees, with NaN for missing values and level numbers for categories."""
        encoded = self.encoder_.transform(table)
        blocks = []
        start = 0
        for column in self.encoder_.columns_:
            n_out = len(column.outputs())
            # the encoder is that of the networks, so its indicators are turned back into levels
            block = encoded[:, start : start + n_out]
            missing = (
                encoded[:, start + n_out] > 0
                if column.had_missing
                else np.zeros(len(encoded), dtype=np.bool_)
            )
            if isinstance(column, CategoryColumn):
                missing = missing | (block[:, -1] > 0)  # unknown levels
                block = block.argmax(axis=-1)[:, None].astype(np.float64)
            blocks.append(np.where(missing[:, None], np.nan, block))
            start += len(column.names_out)
        return np.hstack(blocks)

    def _boosters(self) -> tuple[list[Any], list[Any]]:
        return self.mean_boosters_, self.scale_boosters_

    def _grow(self, features: Floats, y: Floats, weight: Floats) -> Floats:
        """Grow all ensembles; return the standardized held-out residual of each row."""
        random = generator(self.random_state)
        # fold sizes differ by at most one row
        fold = random.permutation(y.size) % self.cv
        settings = self._settings(int(random.integers(2**31)))
        # binned once, as the folds of all three fits are subsets of one data set
        rows = self._dataset(features, y, settings)
        self.mean_boosters_: list[Any] = []
        self.scale_boosters_: list[Any] = []
        # if no feature can be split, all rows get the same distribution
        if not any(rows.feature_num_bin(i) > 1 for i in range(features.shape[1])):
            return y
        # residuals of training rows are too small, so the scale is fitted to held-out residuals
        _, loc = self._cross_fit(rows, features, fold, settings | {"objective": "l2"}, y, weight)
        size = np.abs(y - loc)
        # the gamma distribution needs positive values
        size = np.maximum(size / (np.average(size, weights=weight) or 1.0), 1e-3)
        # with a log link, the gamma likelihood estimates the mean size consistently for any shape
        gamma = settings | {"objective": "gamma"}
        self.scale_boosters_, log_scale = self._cross_fit(rows, features, fold, gamma, size, weight)
        scale = np.exp(log_scale)
        # the weight of a row is at most a hundred times that of a row with the median scale
        precision = weight / np.maximum(scale, 0.1 * np.median(scale)) ** 2
        squares = settings | {"objective": "l2"}
        self.mean_boosters_, loc = self._cross_fit(
            rows, features, fold, squares, y, precision / precision.mean()
        )
        return np.asarray((y - loc) / scale)

    def _dataset(self, features: Floats, y: Floats, settings: dict[str, Any]) -> Any:
        # LightGBM splits categories by sets of levels, numbers by thresholds
        names = [one for column in self.encoder_.columns_ for one in _names(column)]
        categories = [i for i, is_category in enumerate(names) if is_category]
        return (
            _lightgbm()
            .Dataset(features, y, params=settings, categorical_feature=categories)
            .construct()
        )

    def _cross_fit(
        self,
        rows: Any,
        features: Floats,
        fold: Any,
        settings: dict[str, Any],
        target: Floats,
        weight: Floats,
    ) -> tuple[list[Any], Floats]:
        """Grow one ensemble without each fold, with early stopping on the fold.

        Returns the ensembles and their outputs on the folds.
        """
        lightgbm = _lightgbm()
        boosters = []
        out = np.empty(target.size)
        rows.set_label(target)
        rows.set_weight(weight)
        for k in range(self.cv):
            learn = np.flatnonzero(fold != k)
            held_out = np.flatnonzero(fold == k)
            booster = lightgbm.train(
                settings,
                rows.subset(learn),
                self.n_estimators,
                valid_sets=[rows.subset(held_out)],
                callbacks=[lightgbm.early_stopping(self.patience, verbose=False)],
            )
            # in its stored form, and without a reference to its training rows
            kept = lightgbm.Booster(
                model_str=booster.model_to_string(num_iteration=booster.best_iteration)
            )
            out[held_out] = self._output(kept, features[held_out])
            boosters.append(kept)
        return boosters, out

    def _settings(self, seed: int) -> dict[str, Any]:
        return {
            "learning_rate": float(self.learning_rate),
            "num_leaves": int(self.num_leaves),
            "min_data_in_leaf": int(self.min_child_samples),
            "min_data_per_group": int(self.min_child_samples),
            "bagging_fraction": float(self.subsample),
            "bagging_freq": 1,
            "feature_fraction": float(self.colsample_bytree),
            "lambda_l2": float(self.reg_lambda),
            "num_threads": 0 if self.n_jobs == -1 else int(self.n_jobs),
            # a seed determines the model on a given machine type and number of threads
            "deterministic": True,
            "force_row_wise": True,
            "seed": seed,
            "verbosity": -1,
        }

    def _output(self, booster: Any, features: Floats) -> Floats:
        """Return means or log scales, shape (n,)."""
        threads = 0 if self.n_jobs == -1 else int(self.n_jobs)
        return np.asarray(
            booster.predict(features, raw_score=True, num_threads=threads), dtype=np.float64
        )


def _lightgbm() -> Any:
    try:
        return require_extra("lightgbm", "boosting")
    except OSError as error:  # the package is installed, but the OpenMP library is not
        remedy = (
            "install the OpenMP runtime (Debian and Ubuntu: libgomp1, macOS: brew install libomp)"
        )
        raise MissingExtraError(f"lightgbm cannot be loaded ({error}); {remedy}") from error


def _names(column: Any) -> list[bool]:
    """Whether each feature made from a column is a category."""
    return [True] if isinstance(column, CategoryColumn) else [False] * len(column.outputs())


def _centre_and_spread(y: Floats, weight: Floats) -> tuple[float, float]:
    """Weighted median, and half the weighted interquartile range, or the std if that is 0."""
    order = np.argsort(y)
    share = (np.cumsum(weight[order]) - 0.5 * weight[order]) / weight.sum()
    low, centre, high = np.interp([0.25, 0.5, 0.75], share, y[order])
    return float(centre), float((high - low) / 2 or y.std() or 1.0)
