"""Table of the kinds of models that are converted to forecasters, and forecasters around them.

A new kind of model needs one line in `ADAPTERS`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator

from evenhand._format import and_more
from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    bad_input,
    check_choice,
    check_outcomes,
    outcomes_checked,
    place_of_rows,
)
from evenhand.distributions import (
    NO_BINARY_RANDOMIZATION,
    Distribution,
    LocationScale,
    Normal,
    NormalMixture,
    OutcomeKind,
    Quantiles,
    Support,
)
from evenhand.forecast import Forecast
from evenhand.forecasters import conversions
from evenhand.forecasters.base import Forecaster, Training, check_bounds, thawed
from evenhand.forecasters.conversions import Learned
from evenhand.forecasters.samples import clearly_best, residual_distribution
from evenhand.tables import TableEncoder, as_pandas, take_rows

# --- boosted trees of the logarithm of the mean size of a residual

MOST_TREES = 100
"""Largest number of trees. With the learning rate below, 60 trees reach a ratio of 20."""

MOST_BINS = 255
"""Largest number of values of a feature between which trees choose a threshold."""

# a Newton step on the log scale is unbounded where residuals are near 0; with at most 40 smallest
# leaves this keeps it below 0.1 * 40 / 0.05 = 80, so that scikit-learn's single-precision
# gradients are finite. Other steps are shorter by 5% at most.
PENALTY = 0.05
"""L2 penalty per row of the smallest leaf."""

SLOPES = np.linspace(0.5, 2.0, 31)
"""Factors on the output of the trees."""


class StoredWithEncoder(BaseEstimator):  # type: ignore[misc]
    """A model with the encoder of a table, which is stored as its state `columns_`."""

    columns_: dict[str, Any] | None

    @cached_property
    def _encoder(self) -> TableEncoder | None:
        return None if self.columns_ is None else TableEncoder.from_state(self.columns_)

    def _set_encoder(self, encoder: TableEncoder | None) -> None:
        self._encoder = encoder
        self.columns_ = None if encoder is None else encoder.to_state()

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_encoder"}


@dataclass(eq=False, repr=False)
class SpreadTrees(StoredWithEncoder):
    """Boosted trees that predict the logarithm of the mean size of a residual.

    They are a `HistGradientBoostingRegressor` with the gamma likelihood and a log link, which
    estimates the mean size consistently for any shape of the distribution. At normal residuals its
    variance is half of that of a regression on log sizes. Features are the columns of the table and
    the predicted mean, as spread often grows with it.

    Parameters
    ----------
    n_trees : int
        Number of trees.
    slope : float
        Factor on the output of the trees, as trees that stop early predict too small differences.
    low, high : float
        Range of the predictions, in which they have been compared with residuals.

    Attributes
    ----------
    columns_ : dict or None
        State of the `TableEncoder` of the columns; None if all are numbers.
    trees_ : HistGradientBoostingRegressor
        The trees.
    """

    n_trees: int
    slope: float
    low: float = -np.inf
    high: float = np.inf

    def fit(self, X: Any, loc: Floats, size: Floats, weight: Floats | None) -> Self:
        """Grow the trees for predicted means `loc` and positive sizes of residuals."""
        self._set_encoder(learned_encoder(X))
        self.trees_ = _grown(self.n_trees, features(self._encoder, X, loc), size, weight)
        return self

    def predict(self, X: Any, loc: Floats) -> Floats:
        """Predict the logarithm of the mean size, shape (n,)."""
        rows = features(self._encoder, X, loc)
        return np.clip(self.slope * np.log(self.trees_.predict(rows)), self.low, self.high)


# model folders store the class under this module name, independent of its file
SpreadTrees.__module__ = "evenhand.forecasters"


def learned_encoder(X: Any) -> TableEncoder | None:
    """Return the fitted encoder of a table; None if all columns are numbers."""
    if not hasattr(X, "columns"):
        return None
    table = as_pandas(X)
    # trees need no standardized numbers, and one row is read ten times faster without
    return None if all(dtype.kind in "iuf" for dtype in table.dtypes) else TableEncoder().fit(table)


def features(encoder: TableEncoder | None, X: Any, loc: Floats) -> Floats:
    """Return the numeric features of rows, with the predicted mean as the last column."""
    if encoder is not None:
        rows = encoder.transform(X)
    elif hasattr(X, "columns"):
        rows = as_pandas(X).to_numpy(dtype=float, na_value=np.nan)
    else:
        rows = np.asarray(X, dtype=float)
    return np.column_stack((rows, loc))


def cross_fitted_sizes(
    X: Any, loc: Floats, size: Floats, weight: Floats | None, folds: Sequence[Ints]
) -> tuple[int, float, Floats]:
    """Choose the number of trees, and the factor on their output, by the held-out likelihood.

    Both have the smallest gamma deviance on rows outside of the training rows, with 0 trees if no
    number is better than a constant. Also returns the predicted log size of each row, shape (n,),
    by trees that were grown without its fold.
    """
    rows = features(learned_encoder(X), X, loc)
    path = np.empty((size.size, MOST_TREES + 1))
    for held_out in folds:
        learn = np.delete(np.arange(size.size), held_out)
        own_weight = take_rows(weight, learn)
        grown = _grown(MOST_TREES, rows[learn], size[learn], own_weight)
        path[held_out, 0] = np.log(np.average(size[learn], weights=own_weight))
        staged = grown.staged_predict(rows[held_out])
        with np.errstate(divide="ignore"):  # a size of 0 is raised to the smallest below
            path[held_out, 1:] = np.log(np.stack(list(staged), axis=-1))
    # no mean size is outside of the range of sizes
    path = np.clip(path, np.log(size.min()), np.log(size.max()))
    deviance = np.average(path + size[:, None] * np.exp(-path), axis=0, weights=weight)
    n_trees = int(np.argmin(deviance))
    slope = float(
        SLOPES[np.argmin([_deviance(size, t * path[:, n_trees], weight) for t in SLOPES])]
    )
    return n_trees, slope, slope * path[:, n_trees]


def _deviance(size: Floats, log_size: Floats, weight: Floats | None) -> float:
    """Return the gamma deviance with the best constant factor, up to terms of the sizes alone."""
    factor = np.average(size * np.exp(-log_size), weights=weight)
    return float(np.log(factor) + np.average(log_size, weights=weight))


def _grown(
    n_trees: int, rows: Floats, size: Floats, weight: Floats | None
) -> HistGradientBoostingRegressor:
    # leaves of a small table have at least 20 rows, those of a large one 1 / 40 of it
    n_least = max(20, round(0.025 * len(rows)))
    model = HistGradientBoostingRegressor(
        loss="gamma",
        learning_rate=0.1,
        max_iter=n_trees,
        # small trees, as spread rarely depends on interactions of many features
        max_leaf_nodes=3,
        min_samples_leaf=n_least,
        l2_regularization=PENALTY * n_least,
        max_bins=MOST_BINS,
        early_stopping=False,
        # bins of a large table are computed from a sample of its rows
        random_state=0,
    )
    if weight is None:
        return model.fit(rows, size)
    # scikit-learn's weighted quantiles of many distinct values take a second per fit
    return model.fit(on_grids(rows), size, weight / weight.mean())


def on_grids(rows: Floats) -> Floats:
    """Return each feature rounded up to quantiles of it, of which there are at most `MOST_BINS`."""
    rounded = rows.copy()
    for column in rounded.T:
        known = ~np.isnan(column)
        if known.any():
            grid = np.unique(np.quantile(column[known], np.linspace(0, 1, MOST_BINS)))
            column[known] = grid[np.minimum(np.searchsorted(grid, column[known]), grid.size - 1)]
    return rounded


# --- models of the spread of residuals, chosen by the CRPS of held-out rows

LEAST_ROWS = 100
"""Number of rows below which spread is constant, as held-out rows could not show a difference."""

# trees that gain nothing stop at 0 trees, so that one is enough where spread is constant
CLEAR = 1.0
"""Number of paired standard errors by which a model's held-out CRPS must be better."""

MOST_COMPARED = 10_000
"""Largest number of rows whose CRPS is compared."""

LEAST_SIZE = 1e-3
MOST_SIZE = 20.0
"""Bounds on sizes of residuals in units of their mean: residuals of 0 have no logarithm, and one
outlier must not determine a leaf."""

OUTER = 0.005
"""Predicted log spreads are clipped to these quantiles of the held-out predictions, as a spread
outside of that range has never been compared with residuals."""


def learn_spread(
    rows: Training, loc: Floats, residuals: Floats, folds: Sequence[Ints]
) -> tuple[SpreadTrees | None, Floats]:
    """Choose a model of the spread of held-out residuals, and fit it to all rows.

    `SpreadTrees` replace a constant spread, None, if their CRPS on held-out rows is clearly better.
    Also returns the held-out spread of each row, shape (n,), which is 1 for a constant spread.

    A row's held-out spread comes from a model that has not seen the row's residual. Residuals of
    other folds come from mean models that have seen the row's outcome, as nested fits would cost
    the square of the number of folds.
    """
    constant = np.ones(residuals.size)
    if constant.size < LEAST_ROWS or not residuals.any():
        return None, constant
    # sizes are bounded in units of their mean
    size = np.abs(residuals)
    unit = np.average(size, weights=rows.weights)
    size = np.clip(size, LEAST_SIZE * unit, MOST_SIZE * unit)
    n_trees, slope, log_scale = cross_fitted_sizes(rows.X, loc, size, rows.weight, folds)
    low, high = (float(end) for end in np.quantile(log_scale, [OUTER, 1 - OUTER]))
    scale = np.exp(np.clip(log_scale, low, high))
    # all rows, or a sample of a large table
    some = np.random.default_rng(0).permutation(constant.size)[:MOST_COMPARED]
    few, weight = residuals[some], rows.weights[some]

    def crps(scale: Floats) -> Floats:
        shape = residual_distribution(few / scale[some], weight)
        return LocationScale(shape, np.zeros(few.size), scale[some]).crps(few)

    if n_trees == 0 or clearly_best((constant, scale), crps, weight, CLEAR) is constant:
        return None, constant
    return SpreadTrees(n_trees, slope, low, high).fit(rows.X, loc, size, rows.weight), scale


# --- predictions of any regressor plus the distribution of its residuals

# a linear model predicts values far below the bound where outcomes are merely small
LEAST_SHARES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)
"""Shares of the outcomes that may be nearer to a bound than every prediction of a fitted model."""


def learn_residuals(model: Any, estimator: Any, rows: Training) -> Learned:
    """Estimate the distribution of held-out residuals, and their spread.

    The residuals are those of models fitted on a share `(cv - 1) / cv` of the rows; the final model
    is fitted on all rows. Their spread may depend on the features: then the distribution is that of
    residuals divided by their predicted spread.

    A fitted model may predict outcomes in their own units while `y` is on the line of a support.
    Then its predictions are mapped to the line, where they are the locations of the distributions.

    Returns the parameters of `of_residuals`, and the PITs `unseen_pit` of the rows, if the model is
    not one that was fitted before. A row's residual has weight 1 / n in the distribution, and its
    spread is predicted by a model that has not seen the residual: apart from that weight, its PIT
    is held out.
    """
    n = rows.y.size
    if conversions.is_fitted(estimator):
        # the folds serve to choose the spread
        folds = [one for _, one in replace(rows, cv=min(rows.cv, n)).folds()]
        loc = conversions.predictions(model, rows.X)
    else:
        loc, folds = conversions.cross_fitted(estimator, rows)
    learned: Learned = {}
    if rows.predicted_support is not None:
        support = _support_of_predictions(rows.predicted_support, loc, rows)
        fields = [support.low, support.high, support.bend, support.edge]
        learned["predicted_support"] = np.array(fields)
        loc = _on_line(loc, support)
    spread, scale = None, np.ones(n)
    if rows.spread == "learned":
        spread, scale = learn_spread(rows, loc, rows.y - loc, folds)
    if spread is not None:
        learned["spread"] = spread
    normalized = (rows.y - loc) / scale
    residuals = residual_distribution(normalized, rows.weights)
    if not conversions.is_fitted(estimator):
        learned["unseen_pit"] = LocationScale(residuals, np.zeros(n)).cdf(normalized)
    return learned | {"residuals": residuals}


def of_residuals(
    model: Any,
    X: Any,
    residuals: Quantiles,
    spread: SpreadTrees | None = None,
    predicted_support: Floats | None = None,
) -> Distribution:
    """Return predictions plus the distribution of residuals, times their predicted spread."""
    loc = np.ravel(model.predict(X))
    if predicted_support is not None:
        loc = _on_line(loc, Support(*predicted_support.tolist()))
    scale = 1.0 if spread is None else np.exp(spread.predict(X, loc))
    return LocationScale(residuals, loc, scale)


def _on_line(predicted: Floats, support: Support) -> Floats:
    """Map predictions to the line, those nearer to a bound than `support.edge` from there."""
    return support.to_line(
        np.clip(predicted, support.low + support.edge, support.high - support.edge)
    )


def _support_of_predictions(support: Support, predicted: Floats, rows: Training) -> Support:
    """Return the support whose `edge` is the least distance of predictions from a bound.

    Predictions beyond a bound have no image on the line, and those next to it one far from all
    others. The least distance is the distance that a share of the outcomes in `LEAST_SHARES` are
    within. Each share replaces the one before if its residuals on the line are clearly smaller.
    """
    outcomes = support.from_line(rows.y)
    distance = np.minimum(outcomes - support.low, support.high - outcomes)
    # rounding errors may take an outcome back to the bound
    distance = np.maximum(distance, support.edge)

    def size(candidate: Support) -> Floats:
        """Return the distance of each residual on the line from the mean residual."""
        residuals = rows.y - _on_line(predicted, candidate)
        return np.abs(residuals - np.average(residuals, weights=rows.weights))

    edges = np.quantile(distance, LEAST_SHARES)
    return clearly_best([replace(support, edge=float(edge)) for edge in edges], size, rows.weights)


@dataclass(frozen=True)
class Adapter:
    """A kind of model: how it is recognized, fitted and converted to distributions.

    Parameters
    ----------
    name : str
        Name, as it is stored.
    accepts : callable
        Whether a model, outside of its `FrozenEstimator`, is of this kind.
    convert : callable
        Distributions of rows, from the fitted model, the rows and what was learned.
    fit : callable
        Fitted clone of an estimator, from training rows.
    learn : callable
        What is learned beside the model, from the fitted model, the estimator and training rows;
        for a fitted model without rows, None.
    outcome : OutcomeKind or None
        Kind of outcome of models that have no `outcome_kind_of`; None if only a forecast shows it.
    reads_rows : bool, default False
        Whether rows of `fit` are used even for a model that was fitted before.
    """

    name: str
    accepts: Callable[[Any], bool]
    convert: Callable[..., Distribution]
    fit: Callable[[Any, Training], Any] = conversions.fitted
    learn: Callable[[Any, Any, Any], Learned] = lambda model, estimator, rows: {}
    outcome: OutcomeKind | None = OutcomeKind.CONTINUOUS
    reads_rows: bool = False


@dataclass(eq=False)
class Base:
    """A fitted model of another library, or several of them, as a source of distributions.

    Parameters
    ----------
    kind : str
        Name of its kind.
    estimator : estimator, function or list
        The fitted model.
    learned : dict
        What was learned beside it: arrays, and the distribution and spread of residuals.
    unseen_pit : ndarray of shape (n,), optional
        After a fit, PITs of the training rows by a model that has not seen them, where `fit` has
        computed them.
    outcome_kind : OutcomeKind, optional
        After a fit, kind of outcome that the model predicts.
    """

    kind: str
    estimator: Any
    learned: Learned = field(default_factory=dict)
    # not stored
    unseen_pit: Floats | None = field(default=None, compare=False)
    outcome_kind: OutcomeKind | None = field(default=None, compare=False)

    @classmethod
    def fit(cls, estimator: Any, rows: Training, kind: str | None = None) -> Self:
        """Fit a clone of an estimator, and everything else that its distributions need."""
        own = adapter_of(estimator, rows.y) if kind is None else ADAPTERS[kind]
        if own.reads_rows and not conversions.is_fitted(estimator):
            rows.check_folds()
        model = own.fit(estimator, rows)
        learned = own.learn(model, estimator, rows)
        base = cls(own.name, model, learned, learned.pop("unseen_pit", None))
        # refuse output that cannot be used now, not at the first forecast
        base.outcome_kind = base.distribution(take_rows(rows.X, [0])).outcome_kind
        return base

    @classmethod
    def of_fitted(cls, model: Any) -> Self:
        """Return the base of a fitted model that determines its distributions without training."""
        # without outcomes, only the loss shows that a regressor predicts counts
        is_count = conversions.has_poisson_loss(model)
        own = ADAPTERS["counts"] if is_count else adapter_of(conversions.frozen(model))
        if own.name == "residuals":
            name = type(thawed(model)).__name__
            rule = "predict distributions"
            remedy = f"fit RecalibratedRegressor({name}(...)), which learns them from training rows"
            raise bad_input("model", rule, f"{name}, which predicts only numbers", remedy)
        return cls(own.name, model, own.learn(model, model, None))

    def distribution(self, X: Any) -> Distribution:
        """Return the predicted distributions of the rows, batch shape (n,).

        Raises InputError if the model of another library refuses some of them.
        """
        try:
            return ADAPTERS[self.kind].convert(thawed(self.estimator), X, **self.learned)
        except InputError:
            raise
        except (TypeError, ValueError) as error:
            start, n = place_of_rows()[1], len(X)
            rows = "the row" if n == 1 else f"some of {n:,} rows"
            rows += f" from row {start + 1} on" if start else ""
            table = pd.DataFrame(as_pandas(X))
            empty = [repr(name) for name in table.columns[table.isna().any()]]
            remedy = f"columns without a value: {and_more(empty)}" if empty else "check the values"
            why = " ".join(str(error).split())[:200] or type(error).__name__
            raise InputError(f"the model refuses {rows} ({why}); {remedy}") from error

    @property
    def predicts_outcomes(self) -> bool:
        """Whether the model was fitted to the outcomes themselves and not to codes of them."""
        classes = getattr(thawed(self.estimator), "classes_", None)
        if self.kind != "classifier" or classes is None or len(classes) == 2:
            return True
        # values such as 3.5 stars are fitted as numbers of classes
        return np.array_equal(self.learned["classes"], classes)


# --- models whose `predict` takes `return_std`, and mixtures of lists of models


def takes_return_std(model: Any) -> bool:
    """Whether a model predicts standard deviations, which are not those of a DummyRegressor, 0."""
    is_dummy = isinstance(conversions.final_step(model), DummyRegressor)
    return not is_dummy and "return_std" in conversions.predict_options(model)


def learn_least_std(model: Any, estimator: Any, rows: Training | None) -> Learned:
    """Return a lower bound on std, as a noise-free Gaussian process predicts 0 at training rows."""
    largest = 0.0 if rows is None else float(np.abs(rows.y).max())
    return {"least_std": np.array([1e-9 * largest or 1e-300])}


def of_return_std(model: Any, X: Any, least_std: Floats) -> Distribution:
    """Return normal distributions."""
    mean, std = model.predict(X, return_std=True)
    # some models predict a standard deviation of 0 where they interpolate
    return Normal(np.ravel(mean), np.maximum(np.ravel(std), least_std))


def fit_members(estimator: Any, rows: Training) -> list[Any]:
    """Fit each model of a list, unless one of them predicts no distribution by itself."""
    members = members_of(estimator)
    if not members:
        raise InputError("estimator is an empty list; give at least one model")
    # refuse a plain regressor before anything is fitted
    for member in members:
        if adapter_of(member).name not in ("forecaster", "callable", "ppf", "return_std"):
            raise _not_normal(member)
    return [adapter_of(member).fit(member, rows) for member in members]


def members_of(estimator: Any) -> list[Any]:
    """Return the members of a list, each in a FrozenEstimator if the list is in one."""
    inner = thawed(estimator)
    return list(inner) if inner is estimator else conversions.frozen(inner)


def of_members(models: Any, X: Any, least_std: Floats) -> Distribution:
    """Return the mixture of the distributions of members, normal ones or mixtures of them."""
    parts = []
    for member in models:
        own = adapter_of(member)
        learned = {"least_std": least_std} if own.convert is of_return_std else {}
        predicted = own.convert(thawed(member), X, **learned)
        if isinstance(predicted, Normal):
            weights = np.ones((*predicted.batch_shape, 1))
            parts.append((weights, predicted.loc[..., None], predicted.scale[..., None]))
        elif isinstance(predicted, NormalMixture):
            parts.append((predicted.weights, predicted.loc, predicted.scale))
        else:
            raise _not_normal(member)
    weights, loc, scale = (np.concatenate(column, axis=-1) for column in zip(*parts, strict=True))
    return NormalMixture(weights, loc, scale)


def _not_normal(model: Any) -> InputError:
    return InputError(
        f"estimator contains a {type(thawed(model)).__name__}, but only models that predict normal"
        " distributions or mixtures of them can be mixed; put plain regressors in a"
        " VotingRegressor"
    )


# --- the table


def is_function(model: Any) -> bool:
    """Whether a model is a function from rows to distributions."""
    return callable(model) and not isinstance(model, type) and not hasattr(model, "predict")


ADAPTERS: dict[str, Adapter] = {
    kind.name: kind
    # in order of precedence, from whole distributions to single numbers
    for kind in (
        Adapter(
            "survival",
            conversions.has_survival_curves,
            conversions.of_forecaster,
            conversions.fit_survival,
        ),
        Adapter(
            "forecaster",
            lambda model: hasattr(model, "forecast") and not getattr(model, "is_mean_alone", False),
            conversions.of_forecaster,
            outcome=None,
        ),
        Adapter(
            "members",
            lambda model: isinstance(model, list | tuple),
            of_members,
            fit_members,
            learn_least_std,
        ),
        Adapter(
            "classifier",
            conversions.has_classes,
            conversions.of_classifier,
            conversions.fit_classifier,
            conversions.learn_classes,
        ),
        Adapter("callable", is_function, conversions.of_function, outcome=None),
        # the same model of skpro may predict counts or amounts
        Adapter("ppf", conversions.has_ppf, conversions.of_ppf, conversions.fit_ppf, outcome=None),
        Adapter(
            "counts",
            conversions.has_poisson_loss,
            conversions.of_counts,
            learn=conversions.learn_counts,
            outcome=OutcomeKind.COUNT,
            reads_rows=True,
        ),
        Adapter(
            "quantiles",
            conversions.has_quantiles,
            conversions.of_quantiles,
            conversions.fit_quantiles,
        ),
        Adapter("return_std", takes_return_std, of_return_std, learn=learn_least_std),
        Adapter(
            "residuals",
            lambda model: hasattr(model, "predict"),
            of_residuals,
            learn=learn_residuals,
            reads_rows=True,
        ),
    )
}


def adapter_of(estimator: Any, y: Floats | None = None) -> Adapter:
    """Return the first kind that accepts an estimator and the outcomes that it is fitted to.

    Without outcomes, a regressor with the Poisson loss is a plain regressor: amounts of money are
    fitted with this loss, too. So is a fitted model for one quantile.
    """
    inner = thawed(estimator)
    excluded = {
        "counts": y is None or not conversions.are_counts(y).all(),
        "quantiles": conversions.is_fitted(estimator) and conversions.known_levels(inner) is None,
    }
    for kind in ADAPTERS.values():
        if not excluded.get(kind.name) and kind.accepts(inner):
            return kind
    rule = "be a regressor with fit and predict"
    raise bad_input("estimator", rule, type(inner).__name__, conversions.USE_A_FUNCTION)


def outcome_of(estimator: Any, y: Floats) -> OutcomeKind | None:
    """Return the kind of outcome that an estimator predicts if it is fitted to `y`.

    None if only a forecast shows it.
    """
    kind, find = adapter_of(estimator, y), getattr(thawed(estimator), "outcome_kind_of", None)
    if kind.name == "classifier":
        return conversions.outcome_of_classes(estimator, y)
    return kind.outcome if find is None else find(y)


def is_held_out(estimator: Any, y: Floats | None = None) -> bool:
    """Whether `fit` learns nothing from its rows, so that they are held out for this model."""
    kind = adapter_of(estimator, y)
    if kind.name == "members":
        return all(map(is_held_out, members_of(estimator)))
    return conversions.is_fitted(estimator) and not kind.reads_rows


# --- base class of forecasters that transform the distributions of another model


class WrappingForecaster(Forecaster):
    """A forecaster around a model, whose distributions it predicts or transforms."""

    kind: ClassVar[OutcomeKind | None] = None
    inner: ClassVar[tuple[str, ...]] = ("estimator",)
    learned = Forecaster.learned | {"_base": Base}

    estimator: Any

    def outcome_kind_of(self, y: Floats) -> OutcomeKind | None:
        if self.kind is None and self.estimator is not None:
            return outcome_of(self.estimator, y)
        # the default estimator of a randomized forecaster is continuous
        return self.kind or OutcomeKind.CONTINUOUS

    def _set_base(self, base: Base) -> None:
        self._base = base
        self.estimator_ = base.estimator
        self.spread_ = base.learned.get("spread")

    def _set_up(self) -> None:
        """Wrap the estimator of a loaded model in a FrozenEstimator, so that `fit` keeps it.

        An estimator that was fitted to mapped or coded outcomes is fitted again instead, as its
        predictions have no meaning without the map. Predictions of a fitted plain regressor are in
        units of the outcome, and are mapped afterwards.
        """
        super()._set_up()
        base = self._base
        # of an edited model folder, anything may be missing
        convert = ADAPTERS[check_choice("kind", base.kind, tuple(ADAPTERS))].convert
        inspect.signature(convert).bind(None, None, **base.learned)
        self._set_base(base)
        is_plain = "predicted_support" in base.learned
        is_own = base.predicts_outcomes and (self.support_ is None or not self.support_.is_map)
        estimator = conversions.frozen(base.estimator) if is_own or is_plain else base.estimator
        setattr(self, self.inner[0], estimator)

    def _fit_on_support(self, estimator: Any, rows: Training) -> Training:
        """Learn the support, and fit a model; return the rows with the outcomes on the line.

        Distributions that are predicted by models that are not refitted are those of outcomes in
        their own units, and are truncated.
        """
        if self.support is not None and has_own_support(estimator):
            raise InputError(
                f"support is given both for {type(self).__name__} and for its estimator"
                f" {type(thawed(estimator)).__name__}; leave one of the two out"
            )
        is_new = is_refitted(estimator)
        # a fitted plain regressor predicts outcomes in their units
        is_plain = not is_new and adapter_of(estimator).name == "residuals"
        line = self._learn_support(rows.y, rows.X, is_map=is_new or is_plain)
        rows = replace(rows, y=line, predicted_support=self.support_ if is_plain else None)
        self._fit_base(estimator, rows)
        return rows

    def _fit_base(self, estimator: Any, rows: Training, kind: str | None = None) -> None:
        """Fit a model to outcomes that are checked already."""
        with outcomes_checked():
            self._set_base(Base.fit(estimator, rows, kind))

    @contextmanager
    def _kind_checked(self, estimator: Any, outcomes: Floats) -> Iterator[OutcomeKind | None]:
        """Check outcomes against the kind that an estimator predicts, which the block fits.

        They are checked before the fit if the kind is known, and after it if not. A continuous
        model of outcomes with atoms is warned about, unless it is a survival model: the times of
        many people end with the study. With a `support`, outcomes must be continuous, as its map to
        the line would move the atoms.
        """
        known = outcome_of(estimator, outcomes)
        is_of_times = adapter_of(estimator, outcomes).name == "survival"
        has_no_atoms = known is OutcomeKind.CONTINUOUS and not is_of_times
        check_outcomes(outcomes, kind="continuous" if has_no_atoms else None)
        if known is not None:
            check_support_of(known, self.support)
        yield known
        if known is None:
            kind = self._base.outcome_kind
            check_support_of(kind, self.support)
            if kind is OutcomeKind.CONTINUOUS:
                check_outcomes(outcomes)

    def base_forecast(self, X: Any) -> Forecast:
        """Return the forecast of the inner model on the support, without maps or links, (n,)."""
        return self._forecast(self._check_new_rows(X))

    def _distribution(self, rows: Any) -> Distribution:
        return self._base.distribution(rows)


# --- kinds of outcomes, and what estimators do to them


def check_support_of(kind: OutcomeKind | None, support: Any) -> None:
    """Raise InputError if bounds are given for outcomes with atoms."""
    if support is not None and kind is not OutcomeKind.CONTINUOUS:
        remedy = ", or pass CountRegressor(largest=...)" if kind is OutcomeKind.COUNT else ""
        raise InputError(
            f"support={support!r} has no meaning for forecasts of the kind {str(kind)!r}, only for"
            f" continuous ones; leave it out{remedy}"
        )


def refuse_binary(kind: OutcomeKind | None) -> None:
    """Raise InputError for 0/1 outcomes, which randomization cannot help (outcomes: 3)."""
    if kind is OutcomeKind.BINARY:
        raise InputError(NO_BINARY_RANDOMIZATION)


def is_refitted(estimator: Any) -> bool:
    """Whether an estimator, or each member of a list, is fitted to the outcomes passed to `fit`."""
    if isinstance(estimator, list | tuple):
        return all(map(is_refitted, estimator))
    # a fitted plain regressor is not held out, as its residual distribution is estimated
    is_frozen = isinstance(conversions.final_step(estimator), FrozenEstimator)
    return not is_frozen and not is_held_out(estimator)


def has_own_support(estimator: Any) -> bool:
    """Whether an estimator to be refitted, or a member of a list, has a support of its own."""
    if isinstance(estimator, list | tuple):
        return any(map(has_own_support, estimator))
    last = conversions.final_step(estimator)
    if isinstance(last, FrozenEstimator) or not hasattr(last, "forecast"):
        return False
    return check_bounds(getattr(last, "support", None)) is not None
