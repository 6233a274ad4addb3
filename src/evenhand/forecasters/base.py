"""Base class of forecasters, scikit-learn regressors with `forecast`: bounds and stored state."""

from __future__ import annotations

from abc import ABC
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import EnumType
from types import UnionType
from typing import Any, ClassVar, Literal, Self, Union, get_args, get_origin

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import check_array, check_consistent_length, column_or_1d, get_tags
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand._format import count, in_full, percent
from evenhand._validate import (
    LARGEST,
    MILD_ATOM,
    Floats,
    InputError,
    Ints,
    bad_input,
    check_choice,
    check_count,
    hints_of,
    not_numbers,
    refuse_entry,
    typed,
)
from evenhand.calibration import over_draws
from evenhand.distributions import (
    Distribution,
    OutcomeKind,
    Quantiles,
    Support,
    Transformed,
    Truncated,
)
from evenhand.draws import RandomState, generator, nodes
from evenhand.forecast import Forecast
from evenhand.results import plain
from evenhand.tables import (
    Schema,
    TableEncoder,
    as_pandas,
    refuse_repeated_names,
    row_blocks,
    take_rows,
    unreported,
    warn_unseen,
)

# --- choice of the bend of a support's map: from a logarithm near a bound to a line far from it

# A logarithm makes proportional noise constant, but it stretches additive noise where outcomes are
# near the bound. The bend decides between the two, before a model is fitted.

N_BENDS = 8
"""Number of bends that are compared."""

LEAST_BEND = 0.1
"""Smallest bend, relative to the median distance of outcomes from the nearer bound."""

TREE_ROWS = 2000
"""Largest number of rows on which bends are compared."""


def best_bent(support: Support, outcomes: Floats, rows: Any) -> Support:
    """Return the support with the bend of the largest likelihood, for equal normal noise.

    The noise is what outcomes on the line differ from the mean of their group. Groups are the
    leaves of a tree for the rank of the outcome, which no increasing map changes; it is grown on
    one half of the rows and used on the other half. The largest bend is the largest distance from
    the nearer bound, so that the map is a line beyond it and errors of a model there do not grow
    exponentially. Outcomes are inside of the support.
    """
    distance = np.minimum(outcomes - support.low, support.high - outcomes)
    most = distance.max()
    bends = np.geomspace(min(LEAST_BEND * np.median(distance), most), most, N_BENDS)
    # a fixed seed, as the choice must not change the draws of the model's own generator
    random = np.random.default_rng(0)
    order = random.permutation(outcomes.size)[:TREE_ROWS]
    y = outcomes[order]
    group = _groups(take_rows(rows, order), y)
    supports = [replace(support, bend=float(bend)) for bend in bends]
    return min(supports, key=lambda one: _loss(one, y, group))


def _loss(support: Support, y: Floats, group: Ints) -> float:
    """Negative log likelihood per row of normal noise around the means of the groups."""
    line = support.to_line(y)
    counts = np.bincount(group)
    noise = line - (np.bincount(group, line) / np.maximum(counts, 1))[group]
    freedom = max(y.size - (counts > 0).sum(), 1)
    return 0.5 * np.log((noise**2).sum() / freedom) - support.log_slope(y).mean()


def _groups(rows: Any, y: Floats) -> Ints:
    """Return the leaf of each row in a tree grown on the other half of the rows."""
    features = np.nan_to_num(TableEncoder().fit_transform(rows))
    rank = stats.rankdata(y)
    is_first = np.arange(y.size) < y.size // 2
    leaf = np.zeros(y.size, dtype=int)
    least = max(5, round(0.5 * np.sqrt(y.size)))
    for learn, start in ((is_first, 0), (~is_first, y.size)):
        tree = DecisionTreeRegressor(min_samples_leaf=least, random_state=0)
        tree.fit(features[learn], rank[learn])
        # leaves of the two trees have different numbers
        leaf[~learn] = tree.apply(features[~learn]) + start
    return leaf


# --- bounds of the outcome: validation, the map that is learned from them, and its application

Bounds = tuple[float | None, float | None] | None
"""Bounds of the outcome; None or an infinite number on a side without bound."""

FARTHEST_BOUND = 1e12
"""Largest distance of a bound from the outcomes, relative to their range."""


def check_bounds(support: Any) -> tuple[float, float] | None:
    """Return the bounds as floats, infinite on a side without bound; None without bounds."""
    if support is None:
        return None
    rule = "be a pair (low, high) with low < high, with None on a side without bound"
    refusal = bad_input("support", rule, repr(support)[:80], "for amounts of money pass (0, None)")
    # a set has no order, and the characters of a text are not bounds
    if isinstance(support, str | bytes | set | dict):
        raise refusal
    try:
        low, high = support
        bounds = (-np.inf if low is None else float(low), np.inf if high is None else float(high))
    except (TypeError, ValueError):
        raise refusal from None
    if not bounds[0] < bounds[1] or bounds[0] == np.inf or bounds[1] == -np.inf:
        raise refusal
    return None if np.isinf(bounds).all() else bounds


def check_support(
    outcomes: Floats, support: Bounds, weight: Floats | None = None, *, name: str = "y"
) -> None:
    """Refuse bounds that are invalid, and outcomes outside of them or too often at them.

    More than 2% of the outcomes at a bound are too many. A bound must not be so far away that
    rounding would change forecasts. Rows of weight 0 are not checked.
    """
    bounds = check_bounds(support)
    if bounds is None:
        return
    used = np.ones(outcomes.size, dtype=bool) if weight is None else weight > 0
    outside = used & ((outcomes < bounds[0]) | (outcomes > bounds[1]))
    remedy = f"correct {count(outside.sum(), 'row')} outside, or widen the support"
    refuse_entry(name, outcomes, outside, f"lie within support={_named(bounds)}", remedy)
    kept = outcomes[used]
    for bound in filter(np.isfinite, bounds):
        if np.abs(kept - bound).min() > FARTHEST_BOUND * np.ptp(kept) > 0:
            rule = f"have bounds at most {FARTHEST_BOUND:g} times the range of {name} away from it"
            remedy = "pass None on a side where no outcome is near the bound"
            raise bad_input("support", rule, f"{bound:g}", remedy)
        is_at = kept == bound
        share = is_at.mean()
        # a single row is more than 2% of fewer than 50 rows
        if share > MILD_ATOM and is_at.sum() > 1:
            raise InputError(
                f"{name} is {bound:g}, a bound of support={_named(bounds)}, in"
                f" {percent(share, 'up')} of the rows, and at most {in_full(MILD_ATOM)} may be at a"
                " bound, because forecasts are continuous there; model that value separately, or"
                " leave support out"
            )


def _named(bounds: tuple[float, float]) -> str:
    low, high = ("None" if np.isinf(end) else f"{end:g}" for end in bounds)
    return f"({low}, {high})"


def check_integers(model: Any, **least: int) -> None:
    """Refuse parameters of type int that are not whole numbers of at least 1, or as given.

    Where None is the default, the value depends on the training rows.
    """
    for one in fields(model):
        value = getattr(model, one.name)
        if one.type in ("int", "int | None") and not (value is None and one.default is None):
            check_count(one.name, value, least=least.get(one.name, 1))


# --- training rows

SpreadKind = Literal["learned", "constant"]
"""Whether the spread of residuals may depend on the features."""

SPREADS = get_args(SpreadKind)

Family = Literal["auto", "poisson", "negative-binomial"]
"""Family of the distributions of counts."""


@dataclass(frozen=True, eq=False)
class Training:
    """Training rows of a forecaster or an estimator.

    Parameters
    ----------
    X : DataFrame or array-like of shape (n, n_features)
        Features, passed to estimators unchanged.
    y : ndarray of shape (n,)
        Outcomes.
    weight : ndarray of shape (n,), or None
        Positive weights of the rows; None for estimators that do not accept weights.
    random : Generator
        Source of the folds.
    cv : int, default 5
        Number of folds for cross-fitting.
    spread : {"learned", "constant"}, default "constant"
        Whether the spread of a plain regressor's residuals may depend on the features.
    predicted_support : Support, optional
        Map from predictions of a fitted plain regressor, in units of the outcome, to the line on
        which `y` is. None for all other estimators.
    family : {"auto", "poisson", "negative-binomial"}, default "auto"
        Family of the distributions of counts.
    """

    X: Any
    y: Floats
    weight: Floats | None
    random: np.random.Generator
    cv: int = 5
    spread: SpreadKind = "constant"
    predicted_support: Support | None = None
    family: Family = "auto"

    def __post_init__(self) -> None:
        check_count("cv", self.cv, least=2)
        check_choice("spread", self.spread, SPREADS)
        check_choice("family", self.family, get_args(Family))

    def check_folds(self) -> None:
        """Raise InputError if a fold has fewer than two rows."""
        if self.y.size < 2 * self.cv:
            what = "rows" if self.weight is None else "rows of positive weight"
            rule = f"have at least {2 * self.cv} {what} for cv={self.cv}"
            raise bad_input("X", rule, f"n_samples = {self.y.size}")

    @property
    def weights(self) -> Floats:
        """Weights of the rows, 1 if there are none."""
        return np.ones(self.y.size) if self.weight is None else self.weight

    def take(self, rows: Ints) -> Training:
        """Return some rows."""
        weight = take_rows(self.weight, rows)
        return replace(self, X=take_rows(self.X, rows), y=self.y[rows], weight=weight)

    def seed(self) -> int:
        """Draw a seed for a model."""
        return int(self.random.integers(2**31))

    def folds(self) -> Iterator[tuple[Training, Ints]]:
        """Yield the training rows without each fold, and the row numbers of the fold."""
        folds = KFold(self.cv, shuffle=True, random_state=self.seed())
        for learn, held_out in folds.split(np.empty((self.y.size, 1))):
            # nested folds need two rows each as well
            yield replace(self.take(learn), cv=max(2, min(self.cv, learn.size // 2))), held_out


# --- fitted forecasters in parts that can be stored

# a mean without a closed form needs a table of quantiles for each row
POINT_ROWS = 1024
"""Number of rows whose means are computed at once."""


@dataclass(frozen=True, eq=False, repr=False)
class State:
    """Complete state of a fitted forecaster, in parts that can be stored without pickle.

    `put` and `taken` convert a learned attribute by its type: arrays and models are stored apart,
    under the names of their places, and JSON values contain these names. Dataclasses are stored by
    their fields, other classes of the package by their own `to_state` and `from_state`.

    Parameters
    ----------
    kind : str
        Class name of the forecaster.
    params : dict
        Constructor parameters and learned values, as JSON values.
    arrays : dict of str to ndarray
        Learned arrays.
    parts : dict of str to estimator
        Fitted inner estimators, which may be forecasters of this package or other models.
    """

    kind: str
    params: dict[str, Any]
    arrays: dict[str, Any] = field(default_factory=dict)
    parts: dict[str, Any] = field(default_factory=dict)

    def put(self, value: Any, place: str) -> Any:
        """Return a learned value as JSON values, and add its arrays and models to the state."""
        if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            self.arrays[place] = value
            return {"array": place}
        if isinstance(value, np.ndarray | np.generic):
            return value.tolist()
        inside = _inside(value)
        if isinstance(inside, dict):
            return {name: self.put(one, f"{place}.{name}") for name, one in inside.items()}
        if isinstance(inside, list | tuple):
            return [self.put(one, f"{place}.{i}") for i, one in enumerate(inside)]
        if isinstance(inside, str | int | float | None):
            return inside
        name = place.rpartition(".")[2].strip("_")
        name = f"member{name}" if name.isdecimal() else name
        # without FrozenEstimator, which only marks a model as fitted: a stored model always is
        self.parts[name] = thawed(value)
        return {"part": name}

    def taken(self, declared: Any, value: Any, place: str) -> Any:
        """Return a learned value of a declared type from the output of `put`."""
        kinds = get_args(declared)
        kinds = kinds if get_origin(declared) in (Union, UnionType) else (declared,)
        own = [kind for kind in kinds if hasattr(kind, "from_state")]
        if own and value is not None:
            return own[0].from_state(value)
        if isinstance(value, dict):
            return typed(place, self._taken_dict(kinds, value, place), declared)
        if isinstance(value, list):
            inner = [get_args(kind)[0] for kind in kinds if get_args(kind)[1:] == (...,)] or [Any]
            found = [self.taken(inner[0], one, f"{place}.{i}") for i, one in enumerate(value)]
            if Any in kinds:
                return found
            return np.array(found) if np.ndarray in kinds else typed(place, found, declared)
        return typed(place, declared(value) if isinstance(declared, EnumType) else value, declared)

    def _taken_dict(self, kinds: Sequence[Any], value: dict[str, Any], place: str) -> Any:
        if value.keys() == {"array"}:
            return self.arrays[value["array"]]
        if value.keys() == {"part"}:
            return self.parts[value["part"]]
        if value.keys() == {"quantiles"}:
            return Quantiles(*self.taken(Any, value["quantiles"], place))
        for kind in kinds:
            if get_origin(kind) is dict:
                inner = get_args(kind)[1]
                return {name: self.taken(inner, value[name], f"{place}.{name}") for name in value}
            if is_dataclass(kind) and value.get("class") == kind.__name__:  # type: ignore[union-attr]
                hints = hints_of(kind)  # type: ignore[arg-type]
                names = [one.name for one in fields(kind) if one.compare]
                found = {name: self.taken(hints[name], value[name], name) for name in names}
                return kind(**found)  # type: ignore[operator]
        return pd.DataFrame(value) if pd.DataFrame in kinds else value


def _inside(value: Any) -> Any:
    """Return what a learned value contains; models are unchanged."""
    if isinstance(value, pd.DataFrame):
        # JSON has no NaN
        return value.astype(object).where(value.notna(), None).to_dict("list")
    if isinstance(value, Quantiles):
        return {"quantiles": [value.levels, value.values]}
    # models of other libraries may have any form
    if not type(value).__module__.startswith("evenhand.") or hasattr(value, "predict"):
        return value
    if hasattr(value, "to_state"):
        return value.to_state()
    if is_dataclass(value):
        stored = {one.name: getattr(value, one.name) for one in fields(value) if one.compare}
        return {"class": type(value).__name__} | stored
    return value


class Forecaster(RegressorMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A regressor that predicts a whole distribution for each row."""

    inner: ClassVar[tuple[str, ...]] = ()
    """Constructor parameters that are models, which are not stored: fitted models are."""

    learned: ClassVar[dict[str, Any]] = {
        "n_features_in_": int,
        "feature_names_in_": tuple[str, ...] | None,
        "schema_": Schema,
        "sees_pandas_": bool,
        "support_": Support | None,
    }
    """What is learned and stored: attributes and their types."""

    kind: ClassVar[OutcomeKind | None] = OutcomeKind.CONTINUOUS
    """Kind of outcome; None if it depends on the model inside or on the outcomes."""

    support: Bounds = None
    support_: Support | None = None
    random_state: RandomState = None

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        """Predict the distribution of each row's outcome.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Rows with the columns of the training table.
        r : None, float, array of shape (n,), (1, m) or (n, m)
            Draws strictly between 0 and 1. None generates one new draw per row. Deterministic
            forecasters ignore `r`.
        random_state : int, generator or None
            Source of new draws.

        Returns
        -------
        Forecast
        """
        return self._forecast(self._check_new_rows(X))

    def _forecast(self, rows: Any) -> Forecast:
        """Return the deterministic forecasts of rows that are checked."""
        return Forecast(self._on_support(self._distribution(rows)))

    def _distribution(self, rows: Any) -> Distribution:
        """Return the distributions of rows that are checked, before they are on the support."""
        raise NotImplementedError

    def to_state(self) -> State:
        """Return the state of the fitted forecaster, which can be stored without pickle."""
        check_is_fitted(self)
        state = State(type(self).__name__, {"params": self._stored_params(), "learned": {}})
        for name in self.learned:
            state.params["learned"][name] = state.put(getattr(self, name, None), name)
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild a fitted forecaster from the output of `to_state`."""
        model = cls(**dict.fromkeys(cls.inner), **state.params["params"])
        learned = state.params["learned"]
        found = {
            name: state.taken(declared, learned[name], name)
            for name, declared in cls.learned.items()
        }
        model.__dict__.update({name: one for name, one in found.items() if one is not None})
        model._set_up()
        return model

    def _set_up(self) -> None:
        """Set what depends on stored values, and check that they match."""
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            if names != self.schema_.names:
                raise InputError("feature_names_in are not the names of the columns of the schema")
            self.feature_names_in_ = np.array(names, dtype=object)

    def outcome_kind_of(self, y: Floats) -> OutcomeKind | None:
        """Return the kind of outcome that this forecaster predicts if it is fitted to `y`.

        None if only a forecast shows it.
        """
        return self.kind

    def predict(self, X: Any) -> Floats:
        """Predict the mean of the outcome, shape (n,); it does not depend on a draw.

        This is the mean of the deterministic forecast: for `RandomizedRegressor` the forecast of
        the inner model, and for `PAICRegressor`, which has no inner model, the mean over 64 draws.
        For a skewed outcome, randomized forecasts have larger means in expectation over the draw.
        """
        return self.forecast_and_predict(X, 0.5)[1]

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Floats:
        """Predict an interval for each row that contains the outcome with a given probability.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Rows with the columns of the training table.
        coverage : float, default 0.9
            Probability, 0 < coverage < 1, half of the rest on each side.

        Returns
        -------
        ndarray of shape (n, 2)
            Lower and upper ends, those of `forecast(X).interval(coverage)`. Of a randomized
            forecaster they have a new draw per row.
        """
        return np.column_stack(self.forecast(X).interval(coverage))

    def forecast_and_predict(self, X: Any, r: ArrayLike | None) -> tuple[Forecast, Floats]:
        """Return `forecast` and `predict` of the same rows at less than their combined cost.

        Parameters
        ----------
        X, r
            As for `forecast`.

        Returns
        -------
        forecast : Forecast
        mean : ndarray of shape (n,)
            The point forecasts.
        """
        forecast = self.forecast(X, r)
        # for a deterministic forecast, the point forecast is its mean
        if not forecast.is_randomized:
            return forecast, point_forecast(forecast)
        with unreported():  # unseen values have already been reported above
            return forecast, point_forecast(self.forecast(X, nodes(64)))

    def _check_rows(self, X: Any, *, reset: bool) -> Any:
        """Check names and shape; read a table by the schema, and anything else as numbers."""
        if hasattr(X, "columns"):
            if reset or not self._has_columns_of_training(X):
                refuse_repeated_names(X.columns)
                # names and their order are checked by scikit-learn, values by the schema
                validate_data(self, X, skip_check_array=True, reset=reset)
            if len(X) == 0:
                raise bad_input("X", "have at least one row", "an empty table")
            if reset:
                self.schema_ = Schema.learn(X)
                self.sees_pandas_ = isinstance(X, pd.DataFrame)
            table = as_pandas(X)
            # a model trained on a pandas table always receives pandas tables, as models depend on
            # how missing values are stored
            read = self.schema_.apply(table, "")
            return X if read is table and not self.sees_pandas_ else read
        if reset:
            self.schema_ = Schema()
            self.sees_pandas_ = True
        elif self._are_plain_numbers(X):
            return X
        rows = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=reset)
        for i, j in np.argwhere(np.abs(rows) > LARGEST)[:1]:
            rule = f"lie between -{LARGEST:g} and {LARGEST:g}"
            raise bad_input(f"column 'x{j}', row {i + 1}", rule, rows[i, j])
        return rows

    def _has_columns_of_training(self, X: Any) -> bool:
        """Whether a pandas table has the column names of training, in their order."""
        names = getattr(self, "feature_names_in_", None)
        if names is None or not isinstance(X, pd.DataFrame):
            return False
        return X.columns.tolist() == names.tolist()

    def _are_plain_numbers(self, X: Any) -> bool:
        """Whether scikit-learn would return these rows unchanged and without a warning.

        Its own check takes as long for one row as the prediction of a linear model.
        """
        return (
            type(X) is np.ndarray
            and X.dtype == np.float64
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
            and not (np.abs(X) > LARGEST).any()
        )

    def _check_new_rows(self, X: Any) -> Any:
        """Check rows to forecast, and warn about values that did not occur in training."""
        if not hasattr(self, "schema_"):
            check_is_fitted(self)  # only for its error, as it takes long for one row
        if self._has_columns_of_training(X) and len(X) > 0 and self.schema_.covers(X):
            return X
        rows = self._check_rows(X, reset=False)
        if hasattr(rows, "columns"):
            warn_unseen(self.schema_, rows)
        return rows

    def _check_training(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None) -> Training:
        """Check a training set; return its rows of positive weight."""
        if y is None:
            # scikit-learn's own checks look for this clause
            reason = "this estimator requires y to be passed, but the target y is None"
            raise InputError(f"y is missing: {reason}; pass the outcomes")
        table = self._check_rows(X, reset=True)
        outcomes = _one_column("y", y, table, "fit one forecaster per outcome")
        if outcomes.size < 2:
            raise bad_input("X", "have at least 2 rows", "n_samples = 1")
        weight = None
        if sample_weight is not None:
            weight = _one_column("sample_weight", sample_weight, table, ensure_non_negative=True)
            if not weight.any():
                raise bad_input("sample_weight", "have a positive sum", "zeros only")
        check_support(outcomes, self.support, weight)
        names = ("cv", "spread", "family")
        own = {name: getattr(self, name) for name in names if hasattr(self, name)}
        rows = Training(table, outcomes, weight, generator(self.random_state), **own)
        # a model cannot be fitted to rows of weight 0
        return rows if weight is None or weight.all() else rows.take(np.flatnonzero(weight))

    def _learn_support(self, outcomes: Floats, rows: Any, *, is_map: bool = True) -> Floats:
        """Learn the map of outcomes to the line, `support_`; return the mapped outcomes.

        `rows` are the features, by which the map is chosen. With `is_map=False` outcomes are
        returned unchanged, and forecasts are truncated later.
        """
        self.support_, bounds = None, check_bounds(self.support)
        if bounds is None:
            return outcomes
        distance = np.minimum(outcomes - bounds[0], bounds[1] - outcomes)
        if not distance.any():
            raise bad_input("y", f"have values inside support={_named(bounds)}", "its bounds only")
        # half of the distance to the nearest outcome
        edge = float(distance[distance > 0].min()) / 2
        found = Support(*bounds, edge=edge, is_map=is_map)
        self.support_ = best_bent(found, found.inside(outcomes), rows) if is_map else found
        return self._to_line(outcomes)

    def _to_line(self, outcomes: Floats) -> Floats:
        """Map outcomes to the line on which models are trained."""
        support = self.support_
        if support is None or not support.is_map:
            return outcomes
        # outcomes at a bound are moved inside
        return support.to_line(support.inside(outcomes))

    def _on_support(self, distribution: Distribution) -> Distribution:
        """Map predicted distributions to the support, or truncate distributions of the outcome."""
        support = self.support_
        if support is None:
            return distribution
        return (Transformed if support.is_map else Truncated)(distribution, support)

    def _stored_params(self) -> dict[str, Any]:
        """Return other constructor parameters than models as JSON values, without a generator."""
        params = self.get_params(deep=False)
        if "support" in params:
            params["support"] = check_bounds(self.support)
        # the state of a generator has changed during the fit and would not reproduce it
        if not isinstance(params["random_state"], int | None):
            params["random_state"] = None
        return {name: plain(value) for name, value in params.items() if name not in self.inner}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inside = (allows_missing(getattr(self, name)) for name in self.inner)
        tags.input_tags.allow_nan = False not in inside
        return tags


def _one_column(name: str, values: Any, rows: Any, remedy: str = "", **checks: bool) -> Floats:
    """Return one number for each row."""
    try:
        array = check_array(values, ensure_2d=False, dtype=np.float64, input_name=name, **checks)
    except (TypeError, ValueError) as error:
        # scikit-learn's message of words has no remedy; its others have
        if "convert string" not in str(error):
            raise
        raise not_numbers(name, values, error) from error
    # a table with a single column is accepted, with scikit-learn's warning
    if array.ndim == 2 and array.shape[1] == 1:
        array = column_or_1d(array, warn=True)
    if array.ndim != 1:
        raise bad_input(name, "have one column", f"shape {array.shape}", remedy)
    check_consistent_length(rows, array)
    return array


def thawed(estimator: Any) -> Any:
    """Return the model inside a FrozenEstimator; any other estimator is returned unchanged."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def allows_missing(estimator: Any) -> bool | None:
    """Whether an estimator's tags allow missing values; None if it has no tags."""
    inner = thawed(estimator)
    return get_tags(inner).input_tags.allow_nan if hasattr(inner, "__sklearn_tags__") else None


def point_forecast(forecast: Forecast) -> Floats:
    """Return the mean of each row's forecast, averaged over several draws, shape (n,)."""
    mean = np.concatenate([forecast[rows].mean() for rows in row_blocks(len(forecast), POINT_ROWS)])
    return over_draws(mean)
