"""Boosted trees for mean and scale, with an estimated residual distribution (LightGBM)."""

from __future__ import annotations

from itertools import chain
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from evenhand._validate import (
    bad_input,
    check_count,
    check_fraction,
    check_outcomes,
    typed_fields,
)
from evenhand.columns import TableEncoder
from evenhand.distributions import LocationScale, Quantiles
from evenhand.draws import RandomState, generator
from evenhand.forecast import Forecast
from evenhand.forecasters.adapters import residual_distribution
from evenhand.forecasters.base import Forecaster, State
from evenhand.forecasters.boosting import (
    FoldEnsembles,
    OutcomeScale,
    TreeSettings,
    best_candidate,
    category_flags,
    check_booster_text,
    fitting_leaf_size,
    fitting_learning_rate,
    fitting_leaves,
    fitting_share,
    lightgbm,
    n_splits,
    n_threads,
    raw_output,
    tree_features,
)
from evenhand.forecasters.bounds import Bounds


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
    n_estimators : int, default 2000
        Largest number of trees of an ensemble.
    learning_rate : float, optional
        Shrinkage of each tree, 0 < learning_rate <= 1. None is 0.05, and 0.1 from 20,000 rows.
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
    patience : int, default 50
        Number of trees without a better loss on the folds before the ensembles stop growing.
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
    mean_boosters_, scale_boosters_ : list of lightgbm.Booster
        Ensembles, one per fold and split: the mean on `outcome_scale_`, and the logarithm of the
        scale up to a constant that `residual_distribution_` absorbs. Both are empty if no feature
        can be split; `scale_boosters_` is empty if a constant scale has better held-out scores, and
        `mean_boosters_` has twice as many ensembles if the means with and without precision weights
        are averaged.
    outcome_scale_ : OutcomeScale
        Map between outcomes and the outputs of `mean_boosters_`: linear or logarithmic.
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

    def __init__(
        self,
        n_estimators: int = 2000,
        learning_rate: float | None = None,
        *,
        num_leaves: int | None = None,
        min_child_samples: int | None = None,
        subsample: float = 0.8,
        colsample_bytree: float | None = None,
        reg_lambda: float = 0.1,
        patience: int = 50,
        cv: int = 5,
        n_jobs: int = 1,
        support: Bounds = None,
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
        self.support = support
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
        lightgbm()
        self._check_parameters()
        table, outcomes, weight = self._check_training(X, y, sample_weight)
        if outcomes.size < 2 * self.cv:
            rule = f"have at least {2 * self.cv} rows for cv={self.cv}"
            raise bad_input("X", rule, f"n_samples = {outcomes.size}")
        check_outcomes(outcomes)
        outcomes = self._learn_support(outcomes, table)
        self.encoder_ = TableEncoder().fit(table)
        best = best_candidate(self._ensembles(table), outcomes, weight / weight.mean())
        self.mean_boosters_ = best.mean_boosters
        self.scale_boosters_ = best.scale_boosters
        self.outcome_scale_ = best.outcome_scale
        self.residual_distribution_ = residual_distribution(
            best.residuals, None if sample_weight is None else weight
        )
        return self

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        check_is_fitted(self)
        features = tree_features(self.encoder_, self._check_new_rows(X))
        threads = n_threads(self.n_jobs)
        nothing = np.zeros(len(features))
        # a mean over an axis would add in another order for one row than for many
        position, log_scale = (
            sum((raw_output(one, features, threads) for one in ensembles), nothing)
            / max(len(ensembles), 1)
            for ensembles in self._boosters()
        )
        # the trees predict log scales, so the average over ensembles is geometric and positive
        scale = self.outcome_scale_.slope(position) * np.exp(log_scale)
        loc = self.outcome_scale_.to_outcome(position)
        distribution = LocationScale(self.residual_distribution_, loc, scale)
        return Forecast(self._on_support(distribution))

    def to_state(self) -> State:
        check_is_fitted(self)
        learned: dict[str, Any] = {
            "boosters": [[one.model_to_string() for one in part] for part in self._boosters()],
            "encoder": self.encoder_.to_state(),
            "y_offset": self.outcome_scale_.offset,
            "y_unit": self.outcome_scale_.unit,
            "y_bend": self.outcome_scale_.bend,
        } | self._columns_to_state()
        arrays = {
            "residual_levels": np.ravel(self.residual_distribution_.levels),
            "residual_values": np.ravel(self.residual_distribution_.values),
        }
        return State(
            type(self).__name__, {"params": self._params_to_state(), "learned": learned}, arrays
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        learned = state.params["learned"]
        model = cls(**state.params["params"])
        model._check_parameters()
        model.encoder_ = TableEncoder.from_state(learned["encoder"])
        scale = {name: learned[f"y_{name}"] for name in ("offset", "unit", "bend")}
        model.outcome_scale_ = OutcomeScale(**typed_fields(OutcomeScale, scale))
        model._columns_from_state(learned)
        width = len(category_flags(model.encoder_))
        for text in chain.from_iterable(learned["boosters"]):
            # LightGBM does not check the indices in a text
            check_booster_text(text, width)
        model.mean_boosters_, model.scale_boosters_ = (
            [lightgbm().Booster(model_str=text) for text in part] for part in learned["boosters"]
        )
        model.residual_distribution_ = Quantiles(
            state.arrays["residual_levels"], state.arrays["residual_values"][None, :]
        )
        return model

    def _check_parameters(self) -> None:
        for name, least in (("n_estimators", 1), ("patience", 1), ("cv", 2)):
            check_count(name, getattr(self, name), least=least)
        for name, least in (("num_leaves", 2), ("min_child_samples", 1)):
            if getattr(self, name) is not None:
                check_count(name, getattr(self, name), least=least)
        # LightGBM ends the process if there is no memory for its threads
        if self.n_jobs != -1 and check_count("n_jobs", self.n_jobs) > 1024:
            raise bad_input("n_jobs", "be at most 1024", self.n_jobs, "-1 uses all")
        check_fraction("subsample", self.subsample, high_open=False)
        for name in ("learning_rate", "colsample_bytree"):
            if getattr(self, name) is not None:
                check_fraction(name, getattr(self, name), high_open=False)
        if not 0 <= self.reg_lambda < np.inf:
            raise bad_input("reg_lambda", "be a finite number of at least 0", repr(self.reg_lambda))

    def _boosters(self) -> tuple[list[Any], list[Any]]:
        return self.mean_boosters_, self.scale_boosters_

    def _ensembles(self, table: Any) -> FoldEnsembles:
        """Draw the folds of the training rows."""
        features = tree_features(self.encoder_, table)
        random = generator(self.random_state)
        # fold sizes differ by at most one row
        n_samples, n_features = features.shape
        splits = range(n_splits(n_samples))
        folds = np.stack([random.permutation(n_samples) % self.cv for _ in splits])
        settings = self._settings(n_samples, n_features, int(random.integers(2**31)))
        flags = category_flags(self.encoder_)
        return FoldEnsembles(features, np.flatnonzero(flags).tolist(), folds, settings)

    def _settings(self, n_samples: int, n_features: int, seed: int) -> TreeSettings:
        """Return the settings of the trees; those that are None are fitted to the table."""
        return TreeSettings(
            n_estimators=self.n_estimators,
            learning_rate=self.learning_rate or fitting_learning_rate(n_samples),
            num_leaves=self.num_leaves or fitting_leaves(n_samples),
            min_child_samples=self.min_child_samples or fitting_leaf_size(n_samples),
            subsample=self.subsample,
            colsample_bytree=self.colsample_bytree or fitting_share(n_features),
            reg_lambda=self.reg_lambda,
            patience=self.patience,
            n_threads=n_threads(self.n_jobs),
            seed=seed,
        )
