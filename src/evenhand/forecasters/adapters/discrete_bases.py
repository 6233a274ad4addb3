"""Adapters for classifiers, and for regressors that predict the mean of a count."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special, stats
from sklearn.base import is_classifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import PoissonRegressor, TweedieRegressor

from evenhand._validate import Floats, InputError, bad_input
from evenhand.distributions import (
    Bernoulli,
    Categorical,
    Distribution,
    NegativeBinomial,
    OutcomeKind,
    Poisson,
)
from evenhand.forecasters.adapters.base import (
    USE_A_FUNCTION,
    Base,
    Training,
    final_step,
    fitted,
    thawed,
)
from evenhand.forecasters.samples import clearly_best
from evenhand.tables import take_rows

# --- adapter for classifiers, which predict a probability for each class

MOST_CLASSES = 100
"""Largest number of classes; an outcome with more values is a count or continuous."""

SUM_TOLERANCE = 1e-3
"""Largest deviation from 1 of the sum of a row's probabilities, which are divided by it."""


class ClassifierBase(Base):
    """Probabilities of a classifier for an event (classes 0 and 1) or for ordered numbers.

    Parameters
    ----------
    estimator : classifier
        Fitted classifier with `predict_proba`.
    values : ndarray of shape (K,)
        Numbers of the classes, increasing, in the order of the columns of `predict_proba`.
    """

    name: ClassVar[str] = "classifier"

    def __init__(self, estimator: Any, values: Floats) -> None:
        super().__init__(estimator)
        self.values = values

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        # models of distributions have predict_proba as well, but also predict_quantiles (skpro)
        is_known = hasattr(estimator, "__sklearn_tags__") and is_classifier(estimator)
        has_both = hasattr(estimator, "predict_proba") and hasattr(estimator, "predict")
        return is_known or (has_both and not hasattr(final_step(estimator), "predict_quantiles"))

    @classmethod
    def outcome_kind_of(cls, estimator: Any, y: Floats) -> OutcomeKind | None:
        if isinstance(estimator, FrozenEstimator):
            return cls.of_fitted(estimator).outcome_kind
        return OutcomeKind.BINARY if is_event(y) else OutcomeKind.COUNT

    @classmethod
    def fit(cls, estimator: Any, rows: Training) -> Self:
        if not hasattr(thawed(estimator), "predict_proba"):
            rule = "predict probabilities (predict_proba)"
            remedy = "wrap the classifier in sklearn.calibration.CalibratedClassifierCV"
            raise bad_input("estimator", rule, type(thawed(estimator)).__name__, remedy)
        if isinstance(estimator, FrozenEstimator):
            return cls.of_fitted(fitted(estimator, rows))
        values = check_classes(rows.y)
        # scikit-learn's classifiers refuse classes that are not whole numbers, such as 3.5 stars
        is_whole = bool((values == np.round(values)).all())
        labels: Any = rows.y.astype(np.int64) if is_whole else np.searchsorted(values, rows.y)
        return cls(fitted(estimator, replace(rows, y=labels)), values)

    @classmethod
    def of_fitted(cls, estimator: Any) -> Self:
        model = thawed(estimator)
        classes = getattr(model, "classes_", None)
        # NGBoost names no classes: they are 0, 1, ...
        values = np.empty(0) if classes is None else numbers_of(classes)
        return cls(estimator, values)

    @property
    def outcome_kind(self) -> OutcomeKind:
        """Kind of outcome that the classifier predicts."""
        is_binary = self.values.size in (0, 2) and is_event(self.values)
        return OutcomeKind.BINARY if is_binary else OutcomeKind.COUNT

    @property
    def predicts_outcomes(self) -> bool:
        classes = getattr(thawed(self.estimator), "classes_", None)
        # values such as 3.5 stars are fitted as numbers of classes
        return classes is None or np.array_equal(self.values, np.asarray(classes, dtype=float))

    def distribution(self, X: Any) -> Distribution:
        share = self._probabilities(X)
        values = self.values if self.values.size else np.arange(share.shape[1], dtype=np.float64)
        if values.size == 2 and is_event(values):
            return Bernoulli(share[:, 1])
        return Categorical(values, share)

    def _probabilities(self, X: Any) -> Floats:
        """Return the probabilities of the classes, shape (n, K), with sums of exactly 1."""
        model = thawed(self.estimator)
        share = np.asarray(self.estimator.predict_proba(X), dtype=np.float64)
        n_classes = self.values.size or share.shape[-1]
        if share.shape != (len(X), n_classes):
            rule = f"predict one probability per class, shape {(len(X), n_classes)}"
            got = f"shape {share.shape} from {type(model).__name__}"
            raise bad_input("estimator", rule, got, USE_A_FUNCTION)
        total = share.sum(axis=1, keepdims=True)
        if not ((share >= 0).all() and (np.abs(total - 1) <= SUM_TOLERANCE).all()):
            raise InputError(
                f"estimator {type(model).__name__} predicts probabilities that are negative, not"
                f" finite or do not add up to 1; {USE_A_FUNCTION}"
            )
        return np.asarray(share / total)

    def to_arrays(self) -> dict[str, Floats]:
        return {"classes": self.values}

    @classmethod
    def from_arrays(cls, estimator: Any, arrays: dict[str, Floats]) -> Self:
        return cls(estimator, arrays["classes"])


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
        raise bad_input(
            "estimator",
            "have classes that are numbers in one column",
            f"classes_ {np.ravel(labels).tolist()[:5]}",
            "fit it to 0 and 1, or to ordered numbers",
        )
    values = labels.astype(np.float64)
    return check_classes(values)


# --- dispersion of counts around predicted means, and a lower bound on these means

Family = Literal["auto", "poisson", "negative-binomial"]

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
    `mean + a * mean**2`. With "auto" it is 0 unless a likelihood ratio test rejects Poisson
    distributions at the 5% level; under them the statistic is 0 or chi-squared with 1 degree of
    freedom, each with probability 1/2 (Self & Liang, JASA 82, 1987, 605-610).

    Parameters
    ----------
    y : ndarray of shape (n,)
        Counts.
    mean : ndarray of shape (n,)
        Predicted means (> 0) of models that have not seen the row.
    weight : ndarray of shape (n,)
        Weights of the rows.
    family : {"auto", "poisson", "negative-binomial"}
        Family of the distributions.
    """
    if family == "poisson":
        return 0.0
    # only ratios of weights count: they are scaled to the effective number of rows (Kish)
    weight = weight * (weight.sum() / (weight**2).sum())

    def loss(log_dispersion: float) -> float:
        return -float(weight @ log_likelihood(y, mean, float(np.exp(log_dispersion))))

    ends = np.log([LEAST_DISPERSION, MOST_DISPERSION])
    # the likelihood may have its maximum at the lower end, from where it is flat
    grid = np.linspace(ends[0], ends[1], 25)
    losses = [loss(one) for one in grid]
    best = int(np.argmin(losses))
    bounds = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
    found = optimize.minimize_scalar(loss, bounds=bounds, method="bounded")
    if family == "auto":
        gain = float(weight @ (-log_likelihood(y, mean, 0.0))) - float(found.fun)
        if 2 * gain <= stats.chi2.isf(2 * FALSE_ALARM, 1):
            return 0.0
    return float(np.exp(found.x))


def log_likelihood(y: Floats, mean: Floats, dispersion: float) -> Floats:
    """Return the log probability of each count, without the term of `y` alone."""
    if dispersion == 0:
        return np.asarray(special.xlogy(y, mean) - mean)
    # log Gamma(y + 1/a) - log Gamma(1/a) + y log(a), whose limit for a -> 0 is 0
    size = 1 / dispersion
    rising = special.gammaln(y + size) - special.gammaln(size) + y * np.log(dispersion)
    return np.asarray(rising + special.xlogy(y, mean) - (y + size) * np.log1p(dispersion * mean))


def least_mean(y: Floats, mean: Floats, weight: Floats) -> float:
    """Return a lower bound on predicted means, chosen by the likelihood of held-out rows.

    Models without a log link predict means of 0 or less, at which no count has a probability. Each
    bound in `LEAST_MEANS` replaces the one before if its likelihood is clearly greater, so that
    good predictions of small means are left as they are.
    """
    bounds = [share * float(np.average(y, weights=weight)) for share in LEAST_MEANS]
    return clearly_best(
        bounds, lambda least: -log_likelihood(y, np.maximum(mean, least), 0.0), weight
    )


# --- adapter for regressors that predict the mean of a count

POISSON_LOSSES = ("poisson", "count:poisson", "Poisson")
"""Names of the Poisson loss in scikit-learn, LightGBM, XGBoost and CatBoost."""


class CountBase(Base):
    """Means of any regressor, with Poisson or negative binomial distributions around them.

    The dispersion is estimated from means that are predicted without the row, by cross-fitting, so
    that it includes the uncertainty of the model. A fitted model has not seen the rows.

    Parameters
    ----------
    estimator : regressor
        Fitted regressor.
    dispersion : float
        Excess variance in units of the squared mean; 0 for Poisson distributions.
    least : float
        Lower bound (> 0) on means.
    """

    name: ClassVar[str] = "counts"

    def __init__(self, estimator: Any, dispersion: float, least: float) -> None:
        super().__init__(estimator)
        self.dispersion = dispersion
        self.least = least

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return hasattr(estimator, "predict") and has_poisson_loss(estimator)

    @classmethod
    def accepts_outcomes(cls, y: Floats | None) -> bool:
        # amounts of money are fitted with the Poisson loss, too
        return y is not None and are_counts(y)

    @classmethod
    def is_held_out(cls, estimator: Any) -> bool:
        return False  # the dispersion is estimated even for a fitted model

    @classmethod
    def outcome_kind_of(cls, estimator: Any, y: Floats) -> OutcomeKind | None:
        return OutcomeKind.COUNT

    @classmethod
    def fit(cls, estimator: Any, rows: Training, family: Family = "auto") -> Self:
        if not isinstance(estimator, FrozenEstimator):
            rows.check_folds()
        check_counts(rows.y)
        model = fitted(estimator, rows)
        mean = _held_out_means(estimator, model, rows)
        least = least_mean(rows.y, mean, rows.weights)
        mean = np.maximum(mean, least)
        return cls(model, learned_dispersion(rows.y, mean, rows.weights, family), least)

    @classmethod
    def of_fitted(cls, estimator: Any) -> Self:
        # the distribution whose likelihood the model has maximized
        return cls(estimator, 0.0, np.finfo(np.float64).tiny)

    def distribution(self, X: Any) -> Distribution:
        mean = np.maximum(_means(self.estimator, X), self.least)
        return NegativeBinomial(mean, self.dispersion) if self.dispersion > 0 else Poisson(mean)

    def to_arrays(self) -> dict[str, Floats]:
        return {"dispersion": np.array([self.dispersion]), "least_mean": np.array([self.least])}

    @classmethod
    def from_arrays(cls, estimator: Any, arrays: dict[str, Floats]) -> Self:
        return cls(estimator, float(arrays["dispersion"][0]), float(arrays["least_mean"][0]))


def has_poisson_loss(estimator: Any) -> bool:
    """Whether a regressor, or the last step of a Pipeline, is fitted with the Poisson loss."""
    model = thawed(final_step(thawed(estimator)))
    if isinstance(model, PoissonRegressor):
        return True
    if isinstance(model, TweedieRegressor):
        return bool(model.power == 1)
    params = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    names = ("loss", "objective", "loss_function", "criterion")
    return any(params.get(name) in POISSON_LOSSES for name in names)


def are_counts(y: Floats) -> bool:
    """Whether outcomes are whole numbers of at least 0."""
    return bool(((y >= 0) & (y == np.round(y))).all())


def check_counts(y: Floats) -> None:
    """Raise InputError if an outcome is not a whole number of at least 0."""
    wrong = (y < 0) | (y != np.round(y))
    if wrong.any():
        row = int(np.argmax(wrong))
        remedy = (
            "use ClassifierForecaster for ordered scores, HurdleRegressor for amounts with zeros,"
            " or a regressor for continuous outcomes"
        )
        raise bad_input(f"y[{row}]", "be a count, 0, 1, 2, ...", f"{y[row]:g}", remedy)


def _means(model: Any, X: Any) -> Floats:
    mean = np.ravel(np.asarray(model.predict(X), dtype=np.float64))
    if mean.size != len(X) or not np.isfinite(mean).all():
        raise InputError(
            f"estimator {type(thawed(model)).__name__} predicts values that are not finite; check"
            " its predictions for NaN"
        )
    return mean


def _held_out_means(estimator: Any, model: Any, rows: Training) -> Floats:
    """Return the mean of each row, predicted by a model that has not seen it."""
    if isinstance(estimator, FrozenEstimator):
        return _means(model, rows.X)
    # the default model has cross-fitted means of its own
    held = getattr(model, "held_out_", None)
    if held is not None:
        return np.asarray(held)
    mean = np.empty(rows.y.size)
    for learn, held_out in rows.folds():
        mean[held_out] = _means(fitted(estimator, learn), take_rows(rows.X, held_out))
    return mean
