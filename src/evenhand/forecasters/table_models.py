"""Classifier and regressors for tables of any kind, the defaults of forecasters."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import KFold, StratifiedKFold

from evenhand._validate import Floats, Ints
from evenhand.forecasters.adapters import on_grids
from evenhand.forecasters.boosted import fitted_parameters
from evenhand.tables import TableEncoder

N_FOLDS = 5
"""Number of folds for the choice between the models."""

STAGES = (5, 10, 20, 30, 45, 60, 80, 100, 140, 200, 280, 400)
"""Numbers of trees that are compared, in this order until the held-out loss grows twice."""

SHARES = (0.0, 0.5, 1.0)
"""Shares of the trees in the average of both models that are compared."""

LEAST_ROWS = 5
"""Number of rows of an event, or of positive counts, below which predictions are constant."""

LEAST_PROBABILITY = 1e-9
"""Lower bound on probabilities in held-out losses: a rare class may be absent from a fold."""


class TableModel(BaseEstimator, ABC):  # type: ignore[misc]
    """Average of boosted trees and a linear model, with a share chosen by the held-out loss.

    Trees are grown by scikit-learn's histogram gradient boosting, with the number of trees that has
    the smallest held-out loss. The linear model has the same likelihood, a ridge penalty of one
    half of the squared coefficients, and standardized features. The share of the trees is 0, 1/2
    or 1. Text, categories, dates and missing values are encoded by `TableEncoder`.

    Parameters
    ----------
    random_state : int, default 0
        Seed of the folds, and of the bins of large tables.

    Attributes
    ----------
    columns_ : dict
        State of the `TableEncoder`.
    share_ : float
        Share of the trees.
    trees_, linear_ : estimator or None
        Fitted models; None if the share leaves them out, or if there are too few rows.
    constant_ : ndarray
        Prediction without features.
    """

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    @abstractmethod
    def _trees(self, n_samples: int, **settings: Any) -> Any:
        """Return unfitted trees."""

    @abstractmethod
    def _linear(self, n_samples: int) -> Any:
        """Return an unfitted linear model."""

    @abstractmethod
    def _folds(self, target: NDArray[Any]) -> list[tuple[Ints, Ints]] | None:
        """Return training and held-out rows of each fold; None if there are too few rows."""

    @abstractmethod
    def _constant(self, target: NDArray[Any], weight: Floats | None) -> Floats:
        """Return the prediction without features."""

    @abstractmethod
    def _output(self, model: Any, rows: Floats) -> Floats:
        """Return the predictions of a fitted model."""

    @abstractmethod
    def _loss(self, target: NDArray[Any], predicted: Floats) -> Floats:
        """Return the loss of each row."""

    def _learn(self, X: Any, target: NDArray[Any], sample_weight: Floats | None) -> Self:
        encoder = TableEncoder().fit(X)
        self.columns_ = encoder.to_state()
        self._encoder = encoder
        rows = self._features(X)
        weight = _varying(sample_weight)
        # scikit-learn's weighted quantiles of many distinct values take a second per fit
        splits = rows if weight is None else on_grids(rows)
        self.constant_ = self._constant(target, weight)
        self.trees_ = self.linear_ = None
        self.share_ = 0.0
        folds = self._folds(target) if rows.shape[1] else None
        if folds is None:
            return self
        with warnings.catch_warnings():
            # a lack of convergence shows in the held-out loss
            warnings.simplefilter("ignore")
            linear = self._cross_fitted_linear(rows, target, weight, folds)
            n_trees, trees = self._cross_fitted_trees(splits, target, weight, folds)
            mixed = [share * trees + (1 - share) * linear for share in SHARES]
            losses = [np.average(self._loss(target, one), weights=weight) for one in mixed]
            best = int(np.argmin(losses))
            self.share_ = SHARES[best]
            if self.share_ < 1:
                self.linear_ = self._linear(len(target)).fit(rows, target, weight)
            if self.share_ > 0:
                self.trees_ = self._trees(len(target), max_iter=n_trees)
                self.trees_.fit(splits, target, weight)
        return self

    def _cross_fitted_linear(
        self,
        rows: Floats,
        target: NDArray[Any],
        weight: Floats | None,
        folds: list[tuple[Ints, Ints]],
    ) -> Floats:
        """Return the held-out predictions of the linear model."""
        held = np.empty((len(target), *self.constant_.shape))
        for learn, out in folds:
            model = self._linear(learn.size).fit(rows[learn], target[learn], _part(weight, learn))
            held[out] = self._output(model, rows[out])
        return held

    def _cross_fitted_trees(
        self,
        rows: Floats,
        target: NDArray[Any],
        weight: Floats | None,
        folds: list[tuple[Ints, Ints]],
    ) -> tuple[int, Floats]:
        """Return the number of trees with the smallest held-out loss, and its predictions."""
        models = [self._trees(learn.size, warm_start=True) for learn, _ in folds]
        best = np.inf
        n_worse = 0
        for stage in STAGES:
            held = np.empty((len(target), *self.constant_.shape))
            for model, (learn, out) in zip(models, folds, strict=True):
                model.set_params(max_iter=stage).fit(
                    rows[learn], target[learn], _part(weight, learn)
                )
                held[out] = self._output(model, rows[out])
            loss = float(np.average(self._loss(target, held), weights=weight))
            if loss < best:
                best, n_trees, kept, n_worse = loss, stage, held, 0
            else:
                n_worse += 1
            if n_worse == 2:
                break
        return n_trees, kept

    def _mixed(self, X: Any) -> Floats:
        """Return the predictions of new rows."""
        rows = self._features(X)
        if self.trees_ is None and self.linear_ is None:
            return np.broadcast_to(self.constant_, (len(rows), *self.constant_.shape)).copy()
        parts = []
        if self.linear_ is not None:
            parts.append((1 - self.share_) * self._output(self.linear_, rows))
        if self.trees_ is not None:
            parts.append(self.share_ * self._output(self.trees_, rows))
        return np.asarray(sum(parts))

    def _features(self, X: Any) -> Floats:
        """Return the rows as finite numbers, with one column per level of a category."""
        if not hasattr(self, "_encoder"):
            self._encoder = TableEncoder.from_state(self.columns_)
        return self._encoder.transform(X) if self._encoder.columns_ else np.empty((len(X), 0))

    def _tree_settings(self, n_samples: int) -> dict[str, Any]:
        fitted = fitted_parameters(n_samples, 1)
        return {
            "learning_rate": 0.1,
            "max_leaf_nodes": fitted["num_leaves"],
            "min_samples_leaf": fitted["min_child_samples"],
            "l2_regularization": 1.0,
            "early_stopping": False,
            "random_state": self.random_state,
        }

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        # the encoder is stored as `columns_`
        return {name: value for name, value in state.items() if name != "_encoder"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _varying(sample_weight: Any) -> Floats | None:
    """Return weights of mean 1; None if all are equal."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    return None if np.ptp(weight) == 0 else weight / weight.mean()


def _part(weight: Floats | None, rows: Ints) -> Floats | None:
    return None if weight is None else weight[rows]


class TableClassifier(TableModel):
    """Probabilities of classes for tables of any kind; see `TableModel`."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the models to classes `y`, shape (n,)."""
        self.classes_, target = np.unique(y, return_inverse=True)
        return self._learn(X, target, sample_weight)

    def predict_proba(self, X: Any) -> Floats:
        """Return the probability of each class, shape (n, n_classes)."""
        return self._mixed(X)

    def predict(self, X: Any) -> Any:
        """Return the most probable class of each row."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _trees(self, n_samples: int, **settings: Any) -> Any:
        return HistGradientBoostingClassifier(**self._tree_settings(n_samples) | settings)

    def _linear(self, n_samples: int) -> Any:
        return LogisticRegression(max_iter=300)

    def _folds(self, target: NDArray[Any]) -> list[tuple[Ints, Ints]] | None:
        if (np.bincount(target) >= LEAST_ROWS).sum() < 2:
            return None
        folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=self.random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a class with few rows is absent from some folds
            return list(folds.split(target, target))

    def _constant(self, target: NDArray[Any], weight: Floats | None) -> Floats:
        counts = np.bincount(target, weights=weight)
        return np.asarray(counts / counts.sum())

    def _output(self, model: Any, rows: Floats) -> Floats:
        predicted = np.zeros((len(rows), self.classes_.size))
        predicted[:, model.classes_.astype(np.intp)] = model.predict_proba(rows)
        return predicted

    def _loss(self, target: NDArray[Any], predicted: Floats) -> Floats:
        chosen = predicted[np.arange(len(target)), target]
        return np.asarray(-np.log(np.maximum(chosen, LEAST_PROBABILITY)))


class TableRegressor(TableModel):
    """Base of models of means."""

    def predict(self, X: Any) -> Floats:
        """Return the mean of each row, shape (n,)."""
        return self._mixed(X)

    def _folds(self, target: NDArray[Any]) -> list[tuple[Ints, Ints]] | None:
        if target.size < 2 * N_FOLDS:
            return None
        return list(KFold(N_FOLDS, shuffle=True, random_state=self.random_state).split(target))

    def _constant(self, target: NDArray[Any], weight: Floats | None) -> Floats:
        return np.asarray(np.average(target, weights=weight))

    def _output(self, model: Any, rows: Floats) -> Floats:
        return np.asarray(model.predict(rows))


class TableCounts(TableRegressor):
    """Means of counts for tables of any kind; see `TableModel`."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the models to counts `y`, shape (n,)."""
        target = np.asarray(y, dtype=np.float64)
        self.most_ = float(target.max())
        return self._learn(X, target, sample_weight)

    def _trees(self, n_samples: int, **settings: Any) -> Any:
        known = self._tree_settings(n_samples)
        return HistGradientBoostingRegressor(loss="poisson", **known | settings)

    def _linear(self, n_samples: int) -> Any:
        # the penalty of LogisticRegression with C=1; its loss is a sum, this one a mean
        return PoissonRegressor(alpha=1 / n_samples, solver="newton-cholesky", max_iter=100)

    def _folds(self, target: NDArray[Any]) -> list[tuple[Ints, Ints]] | None:
        is_positive, plain = target > 0, super()._folds(target)
        # each fold needs positive counts
        if plain is None or is_positive.sum() < LEAST_ROWS:
            return None
        if (~is_positive).sum() < LEAST_ROWS:
            return plain
        folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=self.random_state)
        return list(folds.split(target, is_positive))

    def _output(self, model: Any, rows: Floats) -> Floats:
        # a log-linear model grows without limit far from the training rows
        return np.minimum(super()._output(model, rows), self.most_)

    def _loss(self, target: NDArray[Any], predicted: Floats) -> Floats:
        mean = np.maximum(predicted, LEAST_PROBABILITY)
        return np.asarray(mean - target * np.log(mean))


class TableMeans(RegressorMixin, TableRegressor):  # type: ignore[misc]
    """Means of continuous outcomes for tables of any kind; see `TableModel`."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the models to outcomes `y`, shape (n,)."""
        return self._learn(X, np.asarray(y, dtype=np.float64), sample_weight)

    def _trees(self, n_samples: int, **settings: Any) -> Any:
        return HistGradientBoostingRegressor(**self._tree_settings(n_samples) | settings)

    def _linear(self, n_samples: int) -> Any:
        return Ridge()

    def _loss(self, target: NDArray[Any], predicted: Floats) -> Floats:
        return np.asarray((target - predicted) ** 2)


# model folders store the classes under this module name, independent of their file
for _class in (TableClassifier, TableCounts, TableMeans):
    _class.__module__ = "evenhand.forecasters"
