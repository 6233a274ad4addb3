"""Classifier and regressors for tables of any kind, the defaults of forecasters."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin, clone
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import KFold, StratifiedKFold

from evenhand._validate import Floats, Ints
from evenhand.forecasters.boosted import fitted_parameters
from evenhand.forecasters.kinds import StoredWithEncoder, on_grids
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


@dataclass(eq=False, repr=False)
class TableModel(StoredWithEncoder, ABC):
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
        Fitted models; None if the share leaves them out. With too few rows the linear model is a
        constant.
    """

    random_state: int = 0

    _trees: ClassVar[Callable[..., Any]]
    """Unfitted trees, from their settings."""

    _constant: ClassVar[Any]
    """Model without features, where there are too few rows."""

    @abstractmethod
    def _linear(self, n_samples: int) -> Any:
        """Return an unfitted linear model."""

    @abstractmethod
    def _folds(self, target: NDArray[Any]) -> list[tuple[Ints, Ints]] | None:
        """Return training and held-out rows of each fold; None if there are too few rows."""

    @abstractmethod
    def _output(self, model: Any, rows: Floats) -> Floats:
        """Return the predictions of a fitted model."""

    @abstractmethod
    def _loss(self, target: NDArray[Any], predicted: Floats) -> Floats:
        """Return the loss of each row."""

    def _learn(self, X: Any, target: NDArray[Any], sample_weight: Floats | None) -> Self:
        self._set_encoder(TableEncoder().fit(X))
        rows = self._features(X)
        weight = _varying(sample_weight)
        # scikit-learn's weighted quantiles of many distinct values take a second per fit
        splits = rows if weight is None else on_grids(rows)
        self.trees_, self.share_ = None, 0.0
        folds = self._folds(target) if rows.shape[1] else None
        if folds is None:
            self.linear_ = clone(self._constant).fit(rows, target, weight)
            return self

        def held_out(models: Sequence[Any], features: Floats) -> Floats:
            """Fit a model without each fold; return their predictions for the folds."""
            outputs = []
            for model, (learn, out) in zip(models, folds, strict=True):
                some = None if weight is None else weight[learn]
                model.fit(features[learn], target[learn], some)
                outputs.append(self._output(model, features[out]))
            return np.concatenate(outputs)[np.argsort(np.concatenate([out for _, out in folds]))]

        def loss(predicted: Floats) -> float:
            return float(np.average(self._loss(target, predicted), weights=weight))

        with warnings.catch_warnings():
            # a lack of convergence shows in the held-out loss
            warnings.simplefilter("ignore")
            linear = held_out([self._linear(learn.size) for learn, _ in folds], rows)
            models = [self._unfitted(learn.size, warm_start=True) for learn, _ in folds]
            trees: list[Floats] = []
            losses: list[float] = []
            # until the loss is larger twice than the smallest one before
            for stage in STAGES:
                for model in models:
                    model.set_params(max_iter=stage)
                trees.append(held_out(models, splits))
                losses.append(loss(trees[-1]))
                best = int(np.argmin(losses))
                if best == len(losses) - 3:
                    break
            shared = [loss(share * trees[best] + (1 - share) * linear) for share in SHARES]
            self.share_ = SHARES[int(np.argmin(shared))]
            # a model without a share of the average is not fitted
            self.linear_ = self._linear(len(target)) if self.share_ < 1 else None
            if self.share_ > 0:
                self.trees_ = self._unfitted(len(target), max_iter=STAGES[best])
            for model, features in ((self.linear_, rows), (self.trees_, splits)):
                if model is not None:
                    model.fit(features, target, weight)
        return self

    def _mixed(self, X: Any) -> Floats:
        """Return the predictions of new rows."""
        rows = self._features(X)
        parts = (self.share_, self.trees_), (1 - self.share_, self.linear_)
        outputs = [share * self._output(model, rows) for share, model in parts if model is not None]
        return np.asarray(sum(outputs))

    def _features(self, X: Any) -> Floats:
        """Return the rows as finite numbers, with one column per level of a category."""
        assert self._encoder is not None
        return self._encoder.transform(X) if self._encoder.columns_ else np.empty((len(X), 0))

    def _unfitted(self, n_samples: int, **settings: Any) -> Any:
        """Return trees with settings that suit a number of rows."""
        fitted = fitted_parameters(n_samples, 1)
        return self._trees(
            learning_rate=0.1,
            max_leaf_nodes=fitted["num_leaves"],
            min_samples_leaf=fitted["min_child_samples"],
            l2_regularization=1.0,
            early_stopping=False,
            random_state=self.random_state,
            **settings,
        )

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


class TableClassifier(TableModel):
    """Probabilities of classes for tables of any kind; see `TableModel`."""

    _trees = HistGradientBoostingClassifier
    _constant = DummyClassifier(strategy="prior")

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

    def _linear(self, n_samples: int) -> Any:
        return LogisticRegression(max_iter=300)

    def _folds(self, target: NDArray[Any]) -> list[tuple[Ints, Ints]] | None:
        if (np.bincount(target) >= LEAST_ROWS).sum() < 2:
            return None
        folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=self.random_state)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a class with few rows is absent from some folds
            return list(folds.split(target, target))

    def _output(self, model: Any, rows: Floats) -> Floats:
        predicted = np.zeros((len(rows), self.classes_.size))
        predicted[:, model.classes_.astype(np.intp)] = model.predict_proba(rows)
        return predicted

    def _loss(self, target: NDArray[Any], predicted: Floats) -> Floats:
        chosen = predicted[np.arange(len(target)), target]
        return np.asarray(-np.log(np.maximum(chosen, LEAST_PROBABILITY)))


class TableMeans(RegressorMixin, TableModel):  # type: ignore[misc]
    """Means of continuous outcomes for tables of any kind; see `TableModel`."""

    _trees = HistGradientBoostingRegressor
    _constant = DummyRegressor()

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the models to outcomes `y`, shape (n,)."""
        return self._learn(X, np.asarray(y, dtype=np.float64), sample_weight)

    def predict(self, X: Any) -> Floats:
        """Return the mean of each row, shape (n,)."""
        return self._mixed(X)

    def _linear(self, n_samples: int) -> Any:
        return Ridge()

    def _folds(self, target: NDArray[Any]) -> list[tuple[Ints, Ints]] | None:
        if target.size < 2 * N_FOLDS:
            return None
        return list(KFold(N_FOLDS, shuffle=True, random_state=self.random_state).split(target))

    def _output(self, model: Any, rows: Floats) -> Floats:
        return np.asarray(model.predict(rows))

    def _loss(self, target: NDArray[Any], predicted: Floats) -> Floats:
        return np.asarray((target - predicted) ** 2)


class TableCounts(TableMeans):
    """Means of counts for tables of any kind; see `TableModel`."""

    _trees = staticmethod(partial(HistGradientBoostingRegressor, loss="poisson"))

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the models to counts `y`, shape (n,)."""
        self.most_ = float(np.max(y))
        return super().fit(X, y, sample_weight)

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


# model folders store the classes under this module name, independent of their file
for _class in (TableClassifier, TableCounts, TableMeans):
    _class.__module__ = "evenhand.forecasters"
