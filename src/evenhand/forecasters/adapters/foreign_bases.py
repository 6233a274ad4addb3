"""Bases of other packages and of people's own making, known by what they have.

No such package is imported.

Kinds: several models as a mixture, a function, an object with quantiles (NGBoost, skpro), and
quantile regressors.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from scipy import special
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import BaggingRegressor, VotingRegressor
from sklearn.frozen import FrozenEstimator

from evenhand._validate import Floats, InputError, bad_input
from evenhand.distributions import Distribution, Normal, NormalMixture, Quantiles
from evenhand.distributions.base import score_grid
from evenhand.draws import RandomState
from evenhand.forecast import Forecast
from evenhand.forecasters.adapters.bases import (
    Base,
    ReturnStdBase,
    allows_missing,
    final_step,
    fitted,
    frozen,
    kind_of,
    predict_options,
    thawed,
)
from evenhand.tables import take_rows

FITTED_LEVELS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98)
"""Levels at which a model for one quantile is fitted."""

ASKED_LEVELS = tuple(round(0.02 * k, 2) for k in range(1, 50))
"""Levels that are asked of a model which predicts any quantile."""

SHARPEST = 50.0
"""Greatest density between two quantiles, in units of the row's mean density; beyond it, the
models contradict."""

LEVEL_NAMES = ("levels", "quantiles", "quantile_alpha")
"""Attributes that say at what levels a model predicts."""

TABLE_REACH = 5.0
TABLE_STEP = 1 / 16
"""Normal scores of the quantiles that stand for a distribution: the CDF between them is off by
0.0001 to 0.0003."""

OPEN = "give a function from rows to a Forecast instead"


class CallableBase(Base):
    """A function from rows to forecasts; there is nothing to fit."""

    name: ClassVar[str] = "callable"

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return (
            callable(estimator)
            and not isinstance(estimator, type)
            and not hasattr(estimator, "predict")
        )

    @classmethod
    def is_held_out(cls, estimator: Any) -> bool:
        return True

    @classmethod
    def fit(
        cls, estimator: Any, X: Any, y: Floats, weight: Floats | None, cv: int, random: RandomState
    ) -> Self:
        base = cls(thawed(estimator))
        base.distribution(
            take_rows(X, [0])
        )  # what does not fit is said here, not at the first forecast
        return base

    def distribution(self, X: Any) -> Distribution:
        said = self.estimator(X)
        if isinstance(said, tuple) and len(said) == 2:
            said = Normal(*(np.ravel(np.asarray(part, dtype=np.float64)) for part in said))
        elif isinstance(said, Forecast) and not said.is_randomized:
            said = said.distribution
        if not isinstance(said, Distribution) or said.batch_shape != (len(X),):
            shape = f" of shape {said.batch_shape}" if isinstance(said, Distribution) else ""
            rule = (
                f"return a deterministic Forecast, a Distribution or (mean, std) of the {len(X)}"
                " rows it is given"
            )
            raise bad_input("estimator", rule, type(said).__name__ + shape)
        return said


class LawBase(Base):
    """A model that returns an object with `ppf` for its rows, as those of NGBoost and skpro do."""

    name: ClassVar[str] = "ppf"

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return _law_method(estimator) is not None

    @classmethod
    def fit(
        cls, estimator: Any, X: Any, y: Floats, weight: Floats | None, cv: int, random: RandomState
    ) -> Self:
        # not every such model shows scikit-learn that it is fitted: its first forecast does
        base = cls(
            estimator if isinstance(estimator, FrozenEstimator) else fitted(estimator, X, y, weight)
        )
        base.distribution(take_rows(X, [0]))
        return base

    def distribution(self, X: Any) -> Distribution:
        model = thawed(self.estimator)
        method = _law_method(model)
        assert method is not None
        law = getattr(model if hasattr(model, method) else final_step(model), method)(
            _rows_for(model, X)
        )
        ppf = getattr(law, "ppf", None)
        if not callable(ppf):
            rule = f"return an object with ppf from {method}"
            raise bad_input(
                "estimator", rule, f"{type(law).__name__} from {type(model).__name__}", OPEN
            )
        return from_ppf(ppf, len(X), type(model).__name__)


class QuantileGrid(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Fitted models for one quantile each, as one model that predicts a column per level.

    Parameters
    ----------
    models : list of estimators
        Fitted, one for each level.
    levels : list of float
        Their levels, increasing.
    """

    def __init__(self, models: list[Any], levels: Sequence[float]) -> None:
        self.models = models
        self.levels = levels

    def fit(self, X: Any, y: Any) -> Self:
        """Do nothing: the models are fitted."""
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


class QuantileBase(Base):
    """A model that predicts quantiles.

    One of them, at a level that can be set, or several at known levels.
    """

    name: ClassVar[str] = "quantiles"

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return cls.accepts_frozen(estimator) or level_parameter(estimator) is not None

    @classmethod
    def accepts_frozen(cls, estimator: Any) -> bool:
        return known_levels(estimator) is not None

    @classmethod
    def fit(
        cls, estimator: Any, X: Any, y: Floats, weight: Floats | None, cv: int, random: RandomState
    ) -> Self:
        parameter = (
            None if known_levels(thawed(estimator)) is not None else level_parameter(estimator)
        )
        if parameter is None:
            base = cls(fitted(estimator, X, y, weight))
        else:
            copies = (clone(estimator).set_params(**{parameter: level}) for level in FITTED_LEVELS)
            base = cls(
                QuantileGrid([fitted(copy, X, y, weight) for copy in copies], list(FITTED_LEVELS))
            )
        base.distribution(take_rows(X, [0]))
        return base

    def distribution(self, X: Any) -> Distribution:
        model = thawed(self.estimator)
        levels = known_levels(model)
        assert levels is not None
        asked = {"quantiles": levels.tolist()} if "quantiles" in predict_options(model) else {}
        values = np.asarray(model.predict(X, **asked), dtype=np.float64)
        if values.shape != (len(X), levels.size):
            rule = f"predict a column for each of its {levels.size} levels"
            raise bad_input(
                "estimator", rule, f"shape {values.shape} from {type(model).__name__}", OPEN
            )
        order = np.argsort(levels)
        return Quantiles(levels[order], spaced(levels[order], values[:, order]))


class MembersBase(Base):
    """Several models, each of which says a normal distribution or a mixture.

    Their mixture, with equal weights.
    """

    name: ClassVar[str] = "members"

    def __init__(self, members: list[Base]) -> None:
        super().__init__([member.estimator for member in members])
        self.members = members

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return isinstance(estimator, list | tuple)

    @classmethod
    def is_held_out(cls, estimator: Any) -> bool:
        return all(kind_of(member).is_held_out(member) for member in _members(estimator))

    @classmethod
    def fit(
        cls, estimator: Any, X: Any, y: Floats, weight: Floats | None, cv: int, random: RandomState
    ) -> Self:
        members = _members(estimator)
        if not members:
            raise bad_input("estimator", "hold at least one model", "an empty list")
        # a plain regressor is refused before anything is fitted
        served = {"forecaster", "callable", "ppf", "return_std", "ensemble"}
        for member in members:
            if kind_of(member).name not in served:
                raise _not_normal(member)
        base = cls([kind_of(member).fit(member, X, y, weight, cv, random) for member in members])
        base.distribution(take_rows(X, [0]))
        return base

    def distribution(self, X: Any) -> Distribution:
        return mixture([(1.0, member.distribution(X), member.estimator) for member in self.members])

    def to_arrays(self) -> dict[str, Floats]:
        named = ((i, member.to_arrays()) for i, member in enumerate(self.members))
        return {f"{i}.{name}": array for i, arrays in named for name, array in arrays.items()}

    def to_parts(self) -> dict[str, Any]:
        return {f"member{i}": thawed(member.estimator) for i, member in enumerate(self.members)}

    @classmethod
    def from_parts(cls, parts: dict[str, Any], arrays: dict[str, Floats]) -> Self:
        members = []
        for i in range(len(parts)):
            model = parts[f"member{i}"]
            start = f"{i}."
            own = {
                name.removeprefix(start): array
                for name, array in arrays.items()
                if name.startswith(start)
            }
            members.append(kind_of(model).from_parts({"estimator": model}, own))
        return cls(members)


class EnsembleBase(ReturnStdBase):
    """A `BaggingRegressor` or `VotingRegressor` of models that say their standard deviation.

    A mixture of normals.
    """

    name: ClassVar[str] = "ensemble"

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        if isinstance(estimator, BaggingRegressor):
            return estimator.estimator is not None and kind_of(estimator.estimator) is ReturnStdBase
        if isinstance(estimator, VotingRegressor):
            members = [member for _, member in estimator.estimators if member != "drop"]
            return bool(members) and all(kind_of(member) is ReturnStdBase for member in members)
        return False

    def distribution(self, X: Any) -> Distribution:
        model = thawed(self.estimator)
        rows = np.asarray(X) if isinstance(model, BaggingRegressor) else X
        columns = getattr(model, "estimators_features_", None) or [None] * len(model.estimators_)
        weights = getattr(model, "_weights_not_none", None)
        weights = np.ones(len(model.estimators_)) if weights is None else np.asarray(weights)
        said = []
        for weight, member, used in zip(weights, model.estimators_, columns, strict=True):
            law = ReturnStdBase(member, self.least_std).distribution(
                rows if used is None else rows[:, used]
            )
            said.append((float(weight), law, member))
        return mixture(said)


def mixture(said: list[tuple[float, Distribution, Any]]) -> NormalMixture:
    """Mix normal distributions and mixtures of them.

    Weight, distribution and model of each member.
    """
    parts = []
    for weight, law, model in said:
        if isinstance(law, Normal):
            parts.append(
                (np.full((*law.batch_shape, 1), weight), law.loc[..., None], law.scale[..., None])
            )
        elif isinstance(law, NormalMixture):
            parts.append((weight * law.weights, law.loc, law.scale))
        else:
            raise _not_normal(model)
    weights, loc, scale = (np.concatenate(column, axis=-1) for column in zip(*parts, strict=True))
    return NormalMixture(weights, loc, scale)


def from_ppf(ppf: Callable[[float], Any], n: int, name: str) -> Distribution:
    """Distributions of n rows from their quantile function.

    Normal ones exactly, others by a table of quantiles.

    Parameters
    ----------
    ppf : callable
        Quantiles of all rows at one probability; anything with n numbers.
    n : int
        Number of rows.
    name : str
        The model, for complaints.
    """

    def at(score: float) -> Floats:
        values = np.ravel(np.asarray(ppf(float(special.ndtr(score))), dtype=np.float64))
        if values.size != n or not np.isfinite(values).all():
            got = f"{values.size} values" if values.size != n else "values that are not finite"
            raise InputError(f"estimator {name} gives {got} as quantiles of {n} rows; {OPEN}")
        return values

    centre = at(0.0)
    unit = at(1.0) - centre
    # the quantiles of a normal distribution, and of no other, lie on a line over their scores
    near = 1e-7 * unit + 1e-12 * np.abs(centre)
    if (unit > 0).all() and all(
        (np.abs(at(z) - centre - z * unit) <= near).all() for z in (-4.0, -1.5, 0.5, 3.0)
    ):
        return Normal(centre, unit)
    scores = score_grid(TABLE_REACH, TABLE_STEP)
    return Quantiles(
        special.ndtr(scores), np.column_stack([at(float(z)) for z in scores]), sort=True
    )


def spaced(levels: Floats, values: Floats) -> Floats:
    """Sort the quantiles of each row and move those that nearly coincide apart, away from the middle one.

    Where models of two levels cross, sorting leaves them any small distance apart, and a tail that
    joins on there would be as short.
    """
    ordered = np.sort(values, axis=-1)
    mean_gaps = np.diff(levels) * (ordered[:, -1:] - ordered[:, :1]) / (levels[-1] - levels[0])
    short = np.maximum(mean_gaps / SHARPEST - np.diff(ordered, axis=-1), 0.0)
    shift = np.concatenate([np.zeros((len(ordered), 1)), np.cumsum(short, axis=-1)], axis=-1)
    return np.asarray(ordered + shift - shift[:, [levels.size // 2]])


def known_levels(estimator: Any) -> Floats | None:
    """Levels of the quantiles that a model predicts, in the order of their columns.

    None if it predicts no such.
    """
    model = final_step(estimator)
    if not hasattr(model, "predict"):
        return None
    if "quantiles" in predict_options(model):
        return np.array(ASKED_LEVELS)
    for name in LEVEL_NAMES:
        try:
            levels = np.asarray(getattr(model, name, ()), dtype=np.float64)
        except (TypeError, ValueError):
            continue
        distinct = levels.ndim == 1 and np.unique(levels).size == levels.size > 1
        if distinct and levels.min() > 0 and levels.max() < 1:
            return levels
    return None


def level_parameter(estimator: Any) -> str | None:
    """Name of the parameter with the level of a model for one quantile.

    None if it is no such model.

    A model that can be trained for other things too, by a `loss`, `objective` or `strategy`, counts
    if that is "quantile"; one that cannot, if its `quantile` is a number.
    """
    model = final_step(estimator)
    if (
        isinstance(estimator, FrozenEstimator)
        or not hasattr(model, "get_params")
        or not hasattr(model, "predict")
    ):
        return None
    params = model.get_params(deep=False)
    modes = [params[name] for name in ("loss", "objective", "strategy") if name in params]
    if modes:
        serves = any(isinstance(mode, str) and mode == "quantile" for mode in modes)
    else:
        level = params.get("quantile")
        serves = isinstance(level, numbers.Real) and not isinstance(level, bool)
    if not serves:
        return None
    parameter = "quantile" if "quantile" in params else "alpha"
    return parameter if model is estimator else f"{estimator.steps[-1][0]}__{parameter}"


def _law_method(estimator: Any) -> str | None:
    """Name of the method that returns a distribution.

    Classifiers have `predict_proba` too, but no quantiles.
    """
    model = final_step(estimator)
    if hasattr(model, "pred_dist"):
        return "pred_dist"
    return (
        "predict_proba"
        if hasattr(model, "predict_proba") and hasattr(model, "predict_quantiles")
        else None
    )


def _rows_for(estimator: Any, X: Any) -> Any:
    """Return rows as the method that says the distribution takes them.

    Past the steps before it, in a Pipeline.
    """
    method = _law_method(estimator)
    if method is None or hasattr(estimator, method) or len(estimator.steps) == 1:
        return X
    return estimator[:-1].transform(X)


def _members(estimator: Any) -> list[Any]:
    """Return the members of a list, each of them fitted where the list came in a FrozenEstimator."""
    inner = thawed(estimator)
    return list(inner) if inner is estimator else frozen(inner)


def _not_normal(model: Any) -> InputError:
    rule = "hold models that say normal distributions or mixtures of them"
    remedy = "put plain regressors into a VotingRegressor"
    return bad_input("estimator", rule, type(thawed(model)).__name__, remedy)
