"""Fit of models of other libraries, and conversion of their output to distributions.

Each conversion takes a fitted model, rows and the arrays that were learned beside the model.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import optimize, special, stats
from sklearn.base import BaseEstimator, RegressorMixin, clone, is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import PoissonRegressor, TweedieRegressor
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from evenhand._format import count, number_in_full
from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    Mask,
    bad_input,
    check_horizon,
    refuse_entry,
)
from evenhand.distributions import (
    Bernoulli,
    Categorical,
    Distribution,
    NegativeBinomial,
    Normal,
    OutcomeKind,
    Poisson,
    Quantiles,
    SurvivalCurves,
    from_ppf,
)
from evenhand.forecast import Forecast
from evenhand.forecasters.base import Family, Forecaster, State, Training, allows_missing, thawed
from evenhand.forecasters.samples import clearly_best
from evenhand.tables import as_pandas, row_blocks, take_rows, unreported

Learned = dict[str, Any]
"""What is learned beside a model: arrays, and the distribution and spread of residuals."""

USE_A_FUNCTION = "pass a function from rows to a Forecast instead"
"""Remedy for models whose output cannot be used."""


def unusable(model: Any, predicted: str) -> InputError:
    """Return the error for a model by what it predicts."""
    name = type(thawed(model)).__name__
    return InputError(f"estimator {name} predicts {predicted}; {USE_A_FUNCTION}")


def frozen(estimator: Any) -> Any:
    """Wrap a model, or each model of a list, in a FrozenEstimator.

    Functions and other models without `fit` are unchanged.
    """
    if isinstance(estimator, list | tuple):
        return [frozen(member) for member in estimator]
    return FrozenEstimator(thawed(estimator)) if hasattr(estimator, "fit") else estimator


def is_fitted(estimator: Any) -> bool:
    """Whether a model is used as it is: in a FrozenEstimator, or without `fit`."""
    return isinstance(estimator, FrozenEstimator) or not hasattr(estimator, "fit")


def final_step(estimator: Any) -> Any:
    """Return the last step of a Pipeline, also of nested ones; others are returned unchanged."""
    while isinstance(estimator, Pipeline):
        estimator = estimator.steps[-1][1]
    return estimator


def predict_options(estimator: Any) -> tuple[str, ...]:
    """Return the parameter names of `predict`, in a Pipeline those of its last step."""
    predict = getattr(final_step(estimator), "predict", None)
    return () if predict is None else tuple(inspect.signature(predict).parameters)


def fitted(estimator: Any, rows: Training) -> Any:
    """Fit a clone of an estimator; a fitted one is not refitted."""
    if is_fitted(estimator):
        return estimator
    copy = clone(estimator)
    if rows.weight is None:
        return copy.fit(rows.X, rows.y)
    last = final_step(copy)
    # otherwise the weights would silently be ignored
    if not has_fit_parameter(last, "sample_weight"):
        name = type(last).__name__
        raise InputError(f"sample_weight is not supported by {name}.fit; fit without weights")
    return copy.fit(rows.X, rows.y, **{of_final_step(copy, "sample_weight"): rows.weight})


def of_final_step(estimator: Any, parameter: str) -> str:
    """Return the name of a parameter of the last step of a Pipeline for the whole of it."""
    if not isinstance(estimator, Pipeline):
        return parameter
    name, last = estimator.steps[-1]
    return f"{name}__{of_final_step(last, parameter)}"


def one_per_row(values: Any, model: Any, n_samples: int) -> Floats:
    """Return predictions of a model in any shape as one finite number for each row."""
    column = np.ravel(np.asarray(values, dtype=float))
    is_wrong_size = column.size != n_samples
    if is_wrong_size or not np.isfinite(column).all():
        got = f"{column.size} values" if is_wrong_size else "values that are not finite"
        raise InputError(
            f"estimator {type(thawed(model)).__name__} predicts {got} for"
            f" {count(n_samples, 'row')}; check its predictions for NaN"
        )
    return column


def predictions(model: Any, X: Any) -> Floats:
    """Return what a fitted regressor predicts, shape (n,)."""
    return one_per_row(model.predict(X), model, len(X))


def cross_fitted(estimator: Any, rows: Training) -> tuple[Floats, list[Ints]]:
    """Return the prediction of each row by a model fitted without its fold, and the folds."""
    predicted = np.empty(rows.y.size)
    folds: list[Ints] = []
    for learn, held_out in rows.folds():
        predicted[held_out] = predictions(fitted(estimator, learn), take_rows(rows.X, held_out))
        folds.append(held_out)
    return predicted, folds


# --- functions, and forecasters of this package


def of_forecaster(model: Any, X: Any) -> Distribution:
    """Return the distributions of a deterministic forecaster.

    Columns of a table to which it was not fitted may define groups of a repair.
    """
    names = list(getattr(model, "feature_names_in_", ()))
    if names and hasattr(X, "columns") and set(names) < set(X.columns):
        X = X[names]
    with unreported():  # the wrapping forecaster reports unseen values
        forecast = model.forecast(X)
    if forecast.is_randomized:
        raise InputError(
            f"estimator {type(model).__name__} is already randomized, and randomization must be the"
            " outermost step; use it without this wrapper, or pass a deterministic estimator"
        )
    return forecast.distribution


def of_function(function: Any, X: Any) -> Distribution:
    """Return the output of a function: a forecast, a distribution, or means with deviations."""
    output = function(X)
    if isinstance(output, tuple) and len(output) == 2:
        output = Normal(*(np.ravel(np.asarray(part, dtype=float)) for part in output))
    elif isinstance(output, Forecast) and not output.is_randomized:
        output = output.distribution
    if not isinstance(output, Distribution) or output.batch_shape != (len(X),):
        shape = f" of shape {output.batch_shape}" if isinstance(output, Distribution) else ""
        rule = (
            "return a deterministic Forecast, a Distribution or (mean, std) for each of its"
            f" {count(len(X), 'row')}"
        )
        raise bad_input("estimator", rule, type(output).__name__ + shape)
    return output


# --- classifiers, which predict a probability for each class

MOST_CLASSES = 100
"""Largest number of classes; an outcome with more values is a count or continuous."""

SUM_TOLERANCE = 1e-3
"""Largest deviation from 1 of the sum of a row's probabilities, which are divided by it."""


def has_classes(model: Any) -> bool:
    """Whether a model predicts probabilities of classes, or should do so."""
    is_known = hasattr(model, "__sklearn_tags__") and is_classifier(model)
    # models of distributions have predict_proba as well, but also predict_quantiles (skpro)
    is_other = hasattr(final_step(model), "predict_quantiles")
    return is_known or (hasattr(model, "predict_proba") and not is_other)


def fit_classifier(estimator: Any, rows: Training) -> Any:
    """Fit a classifier, to the numbers of its classes if these are not whole numbers."""
    if not hasattr(thawed(estimator), "predict_proba"):
        rule = "predict probabilities (predict_proba)"
        remedy = "wrap the classifier in sklearn.calibration.CalibratedClassifierCV"
        raise bad_input("estimator", rule, type(thawed(estimator)).__name__, remedy)
    if is_fitted(estimator):
        return fitted(estimator, rows)
    values = check_classes(rows.y)
    # scikit-learn's classifiers refuse classes that are not whole numbers, such as 3.5 stars
    is_whole = (values == np.round(values)).all()
    labels: Any = rows.y.astype(np.int64) if is_whole else np.searchsorted(values, rows.y)
    return fitted(estimator, replace(rows, y=labels))


def learn_classes(model: Any, estimator: Any, rows: Training | None) -> Learned:
    """Return the numbers of the classes in the order of the columns of `predict_proba`."""
    if rows is None or is_fitted(estimator):
        return {"classes": classes_of(model, None if rows is None else rows.y)}
    return {"classes": check_classes(rows.y)}


def classes_of(model: Any, y: Floats | None) -> Floats:
    """Return the classes of a fitted model; none if it does not name them: they are 0, 1, ...

    If outcomes are 0 and 1, the second one of two classes is the event, whatever its name.
    """
    classes = getattr(thawed(model), "classes_", None)
    if classes is None:
        return np.empty(0)
    is_coded = y is not None and is_event(y) and len(classes) == 2
    return np.array([0.0, 1.0]) if is_coded else numbers_of(classes)


def outcome_of_classes(estimator: Any, y: Floats) -> OutcomeKind | None:
    """Return the kind of outcome of a classifier that is fitted to `y`, or was fitted before."""
    values = classes_of(estimator, y) if is_fitted(estimator) else y
    if values.size == 0:
        return None  # only a forecast shows the number of classes
    return OutcomeKind.BINARY if is_event(values) else OutcomeKind.COUNT


def of_classifier(model: Any, X: Any, classes: Floats) -> Distribution:
    """Return the probabilities of an event (classes 0 and 1) or of ordered numbers."""
    share = np.asarray(model.predict_proba(X), dtype=float)
    n_classes = classes.size or share.shape[-1]
    if share.shape != (len(X), n_classes):
        raise unusable(
            model, f"shape {share.shape} for {count(len(X), 'row')} and {n_classes} classes"
        )
    total = share.sum(axis=1, keepdims=True)
    if not ((share >= 0).all() and (np.abs(total - 1) <= SUM_TOLERANCE).all()):
        raise unusable(model, "probabilities that are not at least 0 with sum 1")
    share = share / total
    values = classes if classes.size else np.arange(n_classes, dtype=float)
    if values.size == 2 and is_event(values):
        return Bernoulli(share[:, 1])
    return Categorical(values, share)


def is_event(y: Floats) -> bool:
    """Whether all values are 0 or 1."""
    return bool(np.isin(y, (0.0, 1.0)).all())


def check_classes(y: Floats) -> Floats:
    """Return the distinct values of outcomes to classify: 0 and 1, or 3 to 100 numbers."""
    values = np.unique(y)
    if values.size == 2 and not is_event(values):
        got = f"{values[0]:g} and {values[1]:g}"
        raise bad_input("y", "be 0 or 1 if there are two classes", got, "code the event as 1")
    if values.size > MOST_CLASSES:
        rule = f"have at most {MOST_CLASSES} distinct values for a classifier"
        remedy = "use CountRegressor for counts, or a regressor for continuous outcomes"
        raise bad_input("y", rule, str(values.size), remedy)
    return values


def numbers_of(classes: ArrayLike) -> Floats:
    """Return the classes of a fitted classifier as increasing numbers."""
    labels = np.asarray(classes)
    if labels.ndim != 1 or labels.dtype.kind not in "biuf":
        rule, got = "have classes that are numbers in one column", np.ravel(labels).tolist()[:5]
        remedy = "fit it to 0 and 1, or to ordered numbers"
        raise bad_input("estimator", rule, f"classes_ {got}", remedy)
    return check_classes(labels.astype(float))


# --- dispersion of counts around predicted means, and a lower bound on these means

LEAST_DISPERSION = 1e-6
MOST_DISPERSION = 1e4
"""Range of dispersions; below it negative binomial and Poisson distributions are equal to all
digits that count."""

FALSE_ALARM = 0.05
"""Probability that counts with a Poisson distribution are found to be overdispersed."""

LEAST_MEANS = (1e-6, 1e-4, 1e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Lower bounds on predicted means that are compared, in units of the mean count."""


def learned_dispersion(y: Floats, mean: Floats, weight: Floats, family: Family) -> float:
    """Return the dispersion of counts, 0 for Poisson distributions.

    It is the maximum likelihood estimate of `a` in negative binomial distributions of variance
    `mean + a * mean**2`, whose means, above 0, are predicted by models that have not seen the row.
    With "auto" it is 0 unless a likelihood ratio test rejects Poisson distributions at the 5%
    level; under them the statistic is 0 or chi-squared with 1 degree of freedom, each with
    probability 1/2 (Self & Liang, JASA 82, 1987, 605-610).
    """
    if family == "poisson":
        return 0.0
    # only ratios of weights count: they are scaled to the effective number of rows (Kish)
    weight = weight * (weight.sum() / (weight**2).sum())

    def loss(log_dispersion: float) -> float:
        return -float(weight @ counts_around(mean, np.exp(log_dispersion)).log_mass(y))

    # the likelihood may have its maximum at the lower end, from where it is flat
    grid = np.linspace(np.log(LEAST_DISPERSION), np.log(MOST_DISPERSION), 25)
    best = int(np.argmin([loss(one) for one in grid]))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    found = optimize.minimize_scalar(loss, bounds=bounds, method="bounded")
    if family == "auto":
        gain = weight @ -counts_around(mean).log_mass(y) - found.fun
        if 2 * gain <= stats.chi2.isf(2 * FALSE_ALARM, 1):
            return 0.0
    return float(np.exp(found.x))


def counts_around(mean: Floats, dispersion: float = 0.0) -> Distribution:
    """Return Poisson or negative binomial distributions with these means."""
    return NegativeBinomial(mean, dispersion) if dispersion > 0 else Poisson(mean)


def least_mean(y: Floats, mean: Floats, weight: Floats) -> float:
    """Return a lower bound on predicted means, chosen by the likelihood of held-out rows.

    Models without a log link predict means of 0 or less, at which no count has a probability. Each
    bound in `LEAST_MEANS` replaces the one before if its likelihood is clearly greater, so that
    good predictions of small means are left as they are.
    """
    bounds = [share * np.average(y, weights=weight) for share in LEAST_MEANS]
    return clearly_best(
        bounds, lambda least: -counts_around(np.maximum(mean, least)).log_mass(y), weight
    )


# --- regressors that predict the mean of a count

POISSON_LOSSES = ("poisson", "count:poisson", "Poisson")
"""Names of the Poisson loss in scikit-learn, LightGBM, XGBoost and CatBoost."""


def learn_counts(model: Any, estimator: Any, rows: Training | None) -> Learned:
    """Estimate the dispersion around means that are predicted by models without the row.

    It includes the uncertainty of the model. A fitted model has not seen the rows. Without rows it
    is 0, as in the likelihood that a model with the Poisson loss has maximized.
    """
    if rows is None:
        return {"dispersion": np.zeros(1), "least_mean": np.array([np.finfo(np.float64).tiny])}
    is_held_out = is_fitted(estimator)
    mean = predictions(model, rows.X) if is_held_out else cross_fitted(estimator, rows)[0]
    least = least_mean(rows.y, mean, rows.weights)
    mean = np.maximum(mean, least)
    dispersion = learned_dispersion(rows.y, mean, rows.weights, rows.family)
    return {"dispersion": np.array([dispersion]), "least_mean": np.array([least])}


def of_counts(model: Any, X: Any, dispersion: Floats, least_mean: Floats) -> Distribution:
    """Return Poisson or negative binomial distributions around predicted means."""
    return counts_around(np.maximum(predictions(model, X), least_mean), dispersion.item())


def has_poisson_loss(estimator: Any) -> bool:
    """Whether a regressor, or the last step of a Pipeline, is fitted with the Poisson loss."""
    model = thawed(final_step(thawed(estimator)))
    if not hasattr(estimator, "predict"):
        return False
    if isinstance(model, PoissonRegressor | TweedieRegressor):
        return getattr(model, "power", 1) == 1
    params = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    names = ("loss", "objective", "loss_function", "criterion")
    return any(params.get(name) in POISSON_LOSSES for name in names)


def are_counts(y: Floats) -> Mask:
    """Return whether each outcome is a whole number of at least 0."""
    return (y >= 0) & (y == np.round(y))


def check_counts(y: Floats) -> None:
    """Raise InputError if an outcome is not a whole number of at least 0."""
    remedy = (
        "use ClassifierForecaster for ordered scores, HurdleRegressor for amounts with zeros, or a"
        " regressor for continuous outcomes"
    )
    refuse_entry("y", y, ~are_counts(y), "be a count, 0, 1, 2, ...", remedy)


# --- models that predict an object with `ppf`, as those of NGBoost and skpro do


def of_ppf(model: Any, X: Any) -> Distribution:
    """Return the distributions of a model of NGBoost or skpro: exactly if normal or discrete."""
    method = "pred_dist" if hasattr(final_step(model), "pred_dist") else "predict_proba"
    # a Pipeline delegates predict_proba, but not pred_dist
    owner = model if hasattr(model, method) else final_step(model)
    rows = X if owner is model or len(model.steps) == 1 else model[:-1].transform(X)
    predicted = getattr(owner, method)(rows)
    if is_discrete(predicted):
        return discrete_of(predicted, len(X), model)
    ppf = getattr(predicted, "ppf", None)
    if not callable(ppf):
        raise unusable(model, f"an object without ppf by {method}, {type(predicted).__name__}")
    return from_ppf(lambda p: one_per_row(ppf(p), model, len(X)))


def fit_ppf(estimator: Any, rows: Training) -> Any:
    """Fit a model of distributions."""
    # some models of skpro fail for rows of a table with an array of outcomes
    if hasattr(final_step(estimator), "predict_quantiles") and hasattr(rows.X, "columns"):
        table: Any = pd.DataFrame({"y": rows.y}, index=getattr(rows.X, "index", None))
        rows = replace(rows, y=table)
    return fitted(estimator, rows)


def has_ppf(estimator: Any) -> bool:
    """Whether a model has a method that returns a distribution.

    Classifiers have `predict_proba` as well, but not `predict_quantiles`.
    """
    model = final_step(estimator)
    has_quantiles = hasattr(model, "predict_proba") and hasattr(model, "predict_quantiles")
    return hasattr(model, "pred_dist") or has_quantiles


# --- conversion of discrete distributions of other libraries

TAIL = 1e-10
"""Probability of each tail that is left out of a table of probabilities."""

MOST_VALUES = 5000
"""Largest number of values in a table of probabilities."""


def is_discrete(predicted: Any) -> bool:
    """Whether a predicted distribution is discrete: of skpro by its tag, others by their name."""
    get_tag = getattr(predicted, "get_tag", None)
    if callable(get_tag):
        return get_tag("distr:measuretype", "continuous", raise_error=False) == "discrete"
    return type(predicted).__name__ == "Poisson"


def discrete_of(predicted: Any, n_samples: int, model: Any) -> Distribution:
    """Convert a discrete distribution of skpro or NGBoost.

    Poisson and negative binomial distributions are converted exactly, others by a table.
    """
    family = type(predicted).__name__
    if family in ("Poisson", "NegativeBinomial"):
        mean = one_per_row(predicted.mean(), model, n_samples)
        excess = one_per_row(predicted.var(), model, n_samples) - mean
        return Poisson(mean) if family == "Poisson" else NegativeBinomial(mean, excess / mean**2)
    # the probabilities of all whole numbers between two extreme quantiles
    try:
        low, high = (one_per_row(predicted.ppf(p), model, n_samples) for p in (TAIL, 1 - TAIL))
        first, last = np.floor(low.min()), np.ceil(high.max())
        if not last - first < MOST_VALUES:
            raise InputError(f"values from {first:g} to {last:g}, more than {MOST_VALUES}")
        support = np.arange(first, last + 1)
        mass = [one_per_row(predicted.pmf(value), model, n_samples) for value in support]
        return Categorical(support, np.stack(mass, axis=-1))
    except (AttributeError, NotImplementedError, TypeError, ValueError) as error:
        what = f"discrete distributions without probabilities (pmf) of values ({error})"
        raise unusable(model, what) from error


# --- models that predict quantiles

FITTED_LEVELS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Levels at which a model for a single quantile is fitted."""

ASKED_LEVELS = tuple(round(0.02 * k, 2) for k in range(1, 50))
"""Levels requested from a model that predicts any quantile."""

LEVEL_NAMES = ("levels", "quantiles", "quantile_alpha")
"""Names of attributes with the levels of a model's predictions."""


@dataclass(eq=False, repr=False)
class QuantileGrid(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Fitted models for single quantiles, combined into a model with one column per level.

    Parameters
    ----------
    models : list of estimators
        Fitted models, one for each level.
    levels : list of float
        Increasing levels of the models.
    """

    models: list[Any]
    levels: Sequence[float]

    def fit(self, X: Any, y: Any) -> Self:
        """Do nothing, as the models are already fitted."""
        return self

    def predict(self, X: Any) -> Floats:
        """Predict the quantiles, shape (n, n_levels)."""
        return np.column_stack([np.ravel(model.predict(X)) for model in self.models])

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = bool(allows_missing(self.models[0]))
        return tags


# model folders store the class under this module name, independent of its file
QuantileGrid.__module__ = "evenhand.forecasters"


def fit_quantiles(estimator: Any, rows: Training) -> Any:
    """Fit a model of quantiles: one model per level, as a single quantile is not a distribution."""
    parameter = level_parameter(estimator)
    if parameter is None:
        return fitted(estimator, rows)
    copies = (clone(estimator).set_params(**{parameter: level}) for level in FITTED_LEVELS)
    return QuantileGrid([fitted(copy, rows) for copy in copies], list(FITTED_LEVELS))


def of_quantiles(model: Any, X: Any) -> Distribution:
    """Return distributions with the predicted quantiles."""
    levels = known_levels(model)
    assert levels is not None
    # quantile forests, for instance, predict any level on request
    asked = {"quantiles": levels.tolist()} if "quantiles" in predict_options(model) else {}
    values = np.asarray(model.predict(X, **asked), dtype=float)
    if values.shape != (len(X), levels.size):
        raise unusable(
            model, f"shape {values.shape} for {count(len(X), 'row')} and {levels.size} levels"
        )
    # models store levels in the order given by the user
    order = np.argsort(levels)
    return Quantiles(levels[order], spaced(levels[order], values[:, order]))


def has_quantiles(model: Any) -> bool:
    """Whether a model predicts quantiles, or one of a level that is a parameter."""
    return known_levels(model) is not None or level_parameter(model) is not None


def spaced(levels: Floats, values: Floats) -> Floats:
    """Sort the quantiles of each row, and separate quantiles that nearly coincide.

    Quantiles are moved away from the middle one. After sorting, crossing quantiles can be
    arbitrarily close, and a tail fitted to them would be too short.
    """
    # monotone rearrangement (Chernozhukov, Fernandez-Val & Galichon 2010)
    ordered = np.sort(values, axis=-1)
    mean_gaps = np.diff(levels) * (ordered[:, -1:] - ordered[:, :1]) / (levels[-1] - levels[0])
    # a density above 50 times the row's mean density means that two models contradict each other
    short = np.maximum(mean_gaps / 50 - np.diff(ordered, axis=-1), 0.0)
    shift = np.concatenate([np.zeros((len(ordered), 1)), np.cumsum(short, axis=-1)], axis=-1)
    # the middle quantile is unchanged
    return ordered + shift - shift[:, [levels.size // 2]]


def known_levels(estimator: Any) -> Floats | None:
    """Return the levels of a model's quantiles by column; None if it does not predict quantiles."""
    model = final_step(estimator)
    if not hasattr(model, "predict"):
        return None
    if "quantiles" in predict_options(model):
        return np.array(ASKED_LEVELS)
    for name in LEVEL_NAMES:
        try:
            levels = np.asarray(getattr(model, name, ()), dtype=float)
        except (TypeError, ValueError):
            continue
        # an attribute of that name may have any content, so check that these are levels
        distinct = levels.ndim == 1 and np.unique(levels).size == levels.size > 1
        if distinct and levels.min() > 0 and levels.max() < 1:
            return levels
    return None


def level_parameter(estimator: Any) -> str | None:
    """Return the level parameter of a model for a single quantile; None for other models.

    A model with a `loss`, `objective` or `strategy` is a quantile model if its value is "quantile",
    any other model if its `quantile` is a number.
    """
    model = final_step(estimator)
    is_regressor = hasattr(model, "get_params") and hasattr(model, "predict")
    is_used_as_it_is = isinstance(estimator, FrozenEstimator) or known_levels(model) is not None
    if is_used_as_it_is or not is_regressor:
        return None
    params = model.get_params(deep=False)
    # `alpha` alone can be a penalty, so the quantile loss must be named
    modes = [params[name] for name in ("loss", "objective", "strategy") if name in params]
    if modes:
        is_quantile = any(isinstance(mode, str) and mode == "quantile" for mode in modes)
    else:
        level = params.get("quantile")
        is_quantile = isinstance(level, numbers.Real) and not isinstance(level, bool)
    if not is_quantile:
        return None
    return of_final_step(estimator, "quantile" if "quantile" in params else "alpha")


# --- fitted survival models of lifelines and scikit-survival as forecasts of times (outcomes: 5)

MOST_TIMES = 100
"""Largest number of times at which curves are evaluated by default, besides those of the tail."""

TAIL_STEPS = 2 ** (np.arange(1, 9) / 2)
"""Times beyond the last training time, relative to it, for models that predict there."""

BLOCK_NUMBERS = 4_000_000
"""Survival probabilities that a model predicts at once: scikit-survival returns one for each
distinct training time."""


class SurvivalModel(Forecaster):
    """Forecasts of times by a fitted survival model of lifelines or scikit-survival.

    The model's survival curves are evaluated at a grid of times and are linear between them, see
    `Forecast.from_survival`. The model is not refitted or changed: rows that audit, recalibrate or
    certify it must be rows that it has not seen. A fitted model itself, without this class, is
    accepted by `audit` and `certify`, and in a `FrozenEstimator` by other functions; this class
    chooses the horizon and the grid.

    Parameters
    ----------
    model : estimator
        Fitted model with `predict_survival_function`: a regression model of lifelines, such as
        `CoxPHFitter` or `WeibullAFTFitter`, or a model of scikit-survival, such as
        `RandomSurvivalForest`, also as the last step of a `Pipeline`.
    horizon : float, optional
        Time, above 0, up to which outcomes are followed. Forecasts are then of `min(T, horizon)`,
        in hurdle form: whether the event happens by the horizon, and when, given that it does.
        Models without a parametric baseline have no forecasts beyond their last training time, so
        that the horizon must not be later.
    times : array-like of shape (q,), optional
        Increasing times above 0 at which the model's curves are evaluated; by default at most 100
        quantiles of the times of training events, closer in both tails, and for parametric models
        the horizon and eight later times. With 3,000 training rows PITs then differ by 0.0001 to
        0.001 on average, and by at most 0.015, from those of the model's own curves.

    Attributes
    ----------
    times : ndarray of shape (q,)
        Times of the grid; with a horizon, up to it or to the first time of the grid beyond it.

    Raises
    ------
    InputError
        If the model has no survival curves or is not fitted, or the horizon or the times are
        invalid.

    Examples
    --------
    >>> from lifelines import WeibullAFTFitter
    >>> from lifelines.datasets import load_rossi
    >>> rows = load_rossi()
    >>> fitted = WeibullAFTFitter().fit(rows[:300], "week", "arrest")
    >>> forecast = SurvivalModel(fitted, horizon=26).forecast(rows[300:])
    >>> forecast.event_probability()[:3].round(2)
    array([0.16, 0.17, 0.15])
    """

    inner = ("model",)

    def __init__(
        self, model: Any, horizon: float | None = None, times: ArrayLike | None = None
    ) -> None:
        self.model = thawed(model)
        self.horizon = None if horizon is None else check_horizon(horizon)
        known, is_parametric = _known_times(self.model), _is_parametric(self.model)
        grid = _default_times(self.model, known, self.horizon)
        if times is not None:
            # the family checks times
            grid = SurvivalCurves(np.ravel(times), np.ones(np.size(times))).times
        for name, latest in (("horizon", self.horizon or 0.0), ("times", grid[-1])):
            # without a parametric baseline there are no forecasts beyond the last training time
            if latest > known[-1] and not is_parametric:
                inner = type(final_step(self.model)).__name__
                rule = f"be at most {number_in_full(known[-1])}, the last training time"
                remedy = (
                    f"{inner} predicts no survival probabilities beyond it; use a parametric model"
                )
                raise bad_input(name, rule, number_in_full(latest), remedy)
        # the times of the grid that a forecast up to a horizon needs
        if self.horizon is not None and is_parametric:
            grid = np.append(grid[grid < self.horizon], self.horizon)
        elif self.horizon is not None:
            # a step function is flat between two events, where it would exclude an event: the drop
            # at the first event beyond the horizon is spread over the time since the last before it
            grid = grid[: np.searchsorted(grid, self.horizon) + 1]
        self.times = grid
        # before its first event a model without a parametric baseline predicts none
        self._start = 0.0 if is_parametric else float(known[0])

    def _check_new_rows(self, X: Any) -> Any:
        return X

    def _forecast(self, rows: Any) -> Forecast:
        return Forecast.from_survival(self.times, self.survival(rows), self.horizon)

    def survival(self, X: Any) -> Floats:
        """Return the probabilities of times beyond each of `times`, shape (n, q).

        Where a model's curve rises, as it may for Aalen's additive model, or leaves the range from
        0 to 1, it is replaced by its running minimum in that range.
        """
        rows = as_pandas(X) if hasattr(X, "columns") else np.asarray(X)
        if len(rows) == 0:
            raise bad_input("X", "have at least one row", "an empty table")
        is_lifelines = hasattr(final_step(self.model), "durations")
        predicted = _from_lifelines if is_lifelines else _from_scikit_survival
        curves = predicted(self.model, rows, self.times)
        # lifelines extends the first step of a curve to time 0
        curves = np.where(self.times < self._start, 1.0, curves)
        missing = np.isnan(curves).any(axis=1)
        if missing.any():
            row = np.argmax(missing)
            rule = f"have a survival curve by {type(self.model).__name__} for each row"
            remedy = "check this row for missing values"
            raise bad_input(f"X[{row}]", rule, "probabilities that are missing", remedy)
        return np.minimum.accumulate(np.clip(curves, 0.0, 1.0), axis=1)

    def outcome_kind_of(self, y: Floats) -> OutcomeKind:
        """Return the kind of outcome, whatever `y` is: hurdle with a horizon, else continuous."""
        return OutcomeKind.CONTINUOUS if self.horizon is None else OutcomeKind.HURDLE

    def to_state(self) -> State:
        params = {"horizon": self.horizon}
        return State(
            "SurvivalModel", {"params": params}, {"times": self.times}, {"model": self.model}
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        return cls(state.parts["model"], times=state.arrays["times"], **state.params["params"])

    def __sklearn_clone__(self) -> Self:
        return self  # a fitted model


def has_survival_curves(model: Any) -> bool:
    """Whether a model predicts survival curves, as those of lifelines and scikit-survival do."""
    is_own = isinstance(model, SurvivalModel)
    return is_own or hasattr(final_step(model), "predict_survival_function")


def fit_survival(estimator: Any, rows: Training) -> SurvivalModel:
    """Return a fitted survival model as a forecaster; refuse one that would be fitted to `y`."""
    if not is_fitted(estimator):
        name = type(estimator).__name__
        raise InputError(
            f"estimator {name} is a survival model, which is fitted to times and events; fit it"
            " with its own fit, on other rows, and pass FrozenEstimator(model) or"
            " evenhand.forecasters.SurvivalModel(model, horizon=...)"
        )
    model = thawed(estimator)
    return model if isinstance(model, SurvivalModel) else SurvivalModel(model)


def _known_times(model: Any) -> Floats:
    """Return the distinct times above 0 at which a fitted model knows its curves, increasing.

    These are the times of events of lifelines' training rows with the last training time, and the
    distinct training times of scikit-survival's.
    """
    inner = final_step(model)
    name = type(inner).__name__
    try:
        is_fitted = hasattr(inner, "durations") or hasattr(inner, "unique_times_")
    except ValueError as error:  # a model of scikit-survival without a baseline gives the remedy
        raise InputError(f"model {name} has no survival curves: {error}") from error
    # models of lifelines have no such method before they are fitted
    if not (is_fitted and has_survival_curves(model)):
        rule = "be a fitted model with predict_survival_function"
        remedy = "fit it first, with its own fit; for other models use Forecast.from_survival"
        raise bad_input("model", rule, name, remedy)
    if hasattr(inner, "durations"):
        durations = np.asarray(inner.durations, dtype=float)
        happened = np.asarray(inner.event_observed, dtype=bool)
        found = np.append(durations[happened], durations.max())
    else:
        found = np.asarray(inner.unique_times_, dtype=float)
    return np.unique(found[found > 0])


def _default_times(model: Any, known: Floats, horizon: float | None) -> Floats:
    """Return the times at which curves are evaluated by default, increasing, shape (q,)."""
    last = known[-1]
    # beyond the last event a step function is flat to the last training time, and the tail is not
    inner = final_step(model)
    if hasattr(inner, "durations") and not _is_parametric(model):
        happened = np.asarray(inner.event_observed, dtype=bool)
        known = known[known <= np.asarray(inner.durations, dtype=float)[happened].max()]
    grid = known if horizon is None else known[: np.searchsorted(known, horizon) + 1]
    if grid.size > MOST_TIMES:
        # closer in the tails, where the people of largest and least risk have their events
        reach = special.ndtri(0.5 / grid.size)
        levels = special.ndtr(np.linspace(reach, -reach, MOST_TIMES))
        grid = np.unique(np.quantile(grid, levels, method="inverted_cdf"))
    return np.append(grid, last * TAIL_STEPS) if _is_parametric(model) else grid


def _is_parametric(model: Any) -> bool:
    """Whether a model of lifelines predicts beyond its last training time."""
    names = {kind.__name__ for kind in type(model).__mro__}
    baseline = getattr(model, "baseline_estimation_method", "breslow")
    return "ParametricRegressionFitter" in names or baseline != "breslow"


def _from_lifelines(model: Any, rows: Any, times: Floats) -> Floats:
    """Return the curves of a model of lifelines at some times, shape (n, q)."""
    # a stratified Cox model returns people by stratum: their labels restore the order
    table = rows.reset_index(drop=True) if hasattr(rows, "columns") else rows
    try:
        frame = model.predict_survival_function(table, times=times)
    except KeyError as error:
        rule = f"have the columns that {type(model).__name__} was fitted on"
        raise bad_input("X", rule, error.args[0], "pass the table with these columns") from None
    frame = frame.reindex(columns=range(len(rows)))
    curves = frame.to_numpy(dtype=float).T
    # Aalen's additive model returns its curves at training times instead
    given = frame.index.to_numpy(dtype=float)
    return curves if np.array_equal(given, times) else _steps_at(given, curves, times)


def _from_scikit_survival(model: Any, rows: Any, times: Floats) -> Floats:
    """Return the curves of a model of scikit-survival at some times, shape (n, q)."""
    known = np.asarray(final_step(model).unique_times_, dtype=float)
    # it returns a probability for each of them
    size = max(1, BLOCK_NUMBERS // known.size)
    curves = []
    for block in row_blocks(len(rows), size):
        predicted = model.predict_survival_function(take_rows(rows, block), return_array=True)
        curves.append(_steps_at(known, np.asarray(predicted, dtype=float), times))
    return np.concatenate(curves)


def _steps_at(known: Floats, curves: Floats, times: Floats) -> Floats:
    """Evaluate step functions, 1 before the first of the times at which they are known."""
    place = np.searchsorted(known, times, side="right") - 1
    return np.where(place >= 0, curves[:, np.maximum(place, 0)], 1.0)
