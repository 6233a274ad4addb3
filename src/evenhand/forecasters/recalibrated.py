"""A model whose forecasts are mended on rows that it was not fitted on, on average or in named groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, cast

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import KFold
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from evenhand._checks import Floats, OnDiscrete, bad_input, check_continuous
from evenhand.distributions import Recalibrated
from evenhand.draws import RandomState, generator
from evenhand.forecast import Forecast
from evenhand.forecasters._bases import KINDS, Base, ResidualBase, _rows, kind_of, thawed
from evenhand.forecasters.base import Forecaster, State, check_count
from evenhand.tables import _label, group_columns

By = str | Sequence[str] | Callable[[Any], Any]
Labels = NDArray[np.object_]

MIN_GROUP_ROWS = 50
"""Fewest rows from which a group learns a map of its own: 10 knots, each with a standard error of at most 0.07."""

MAX_KNOTS = 200
LEAST_PIT = 1e-12
"""PITs nearer to 0 or 1 than this, or nearer to each other, count as tied: floats have no digits left near 1."""


class RecalibratedRegressor(Forecaster):
    """A model with its forecasts mended: `g(F(y))`, `g` learned from PITs on rows that the model was not fitted on.

    The map is the isotonic one of Kuleshov, Fenner and Ermon (2018), smoothed to `2 n^(2/5)` knots of equal mass so
    that densities stay finite. One map for all repairs averages, not groups; with `by` each named group has a map of
    its own. Groups that nobody named need randomization: put this model inside `RandomizedRegressor`. Certify with
    rows that were not used here.

    Parameters
    ----------
    estimator : estimator
        The deterministic model, of any kind that `RandomizedRegressor` takes; it is always cloned. It is fitted on
        all rows, and once more without each fold for the PITs; a plain regressor, whose residuals are cross-fitted
        too, up to `(cv + 1)^2` times. A fitted model comes in a `FrozenEstimator` and is not fitted again: all rows
        serve the map, give `fit` rows that it has not seen.
    by : str, list of str or callable, optional
        Groups with maps of their own: columns of the table `X`, or a function from `X` to a label for each row.
        Several columns give a group for each combination. Numbers and dates with more than 10 distinct values are
        cut at the training median, others give a group per value, missing values one more, named as in an audit:
        `age <= 50`. Rows of a label not seen in training (missing, for a function), or of a group with fewer
        than 50 rows, take the map of all rows.
    cv : int, default 5
        Folds for the PITs, and for the residuals of a plain regressor.
    on_discrete : {"raise", "warn", "ignore"}, default "raise"
        What to do about an outcome that is not continuous: fewer than 20 values, or one in over 10% of rows.
        PITs of rounded outcomes are used as they are: the map is then right up to the mass of a rounding cell.
    random_state : int, generator or None
        Seed of the folds.

    Attributes
    ----------
    estimator_ : estimator
        The fitted model.
    groups_ : DataFrame
        The groups seen in training: `group`, `n_samples` (those of positive weight) and `map`, which is "own" or
        "pooled". Empty without `by`.
    levels_, values_ : ndarray of shape (n_maps, n_knots)
        Knots of the maps: that of all rows, then those of the groups with maps of their own, in their order.

    References
    ----------
    Kuleshov, Fenner & Ermon, ICML 2018. Plotting positions `i / (n + 1)`, at which a fresh outcome is below the
    `i`-th PIT with just that probability: Vovk et al., Machine Learning 108 (2019), 445-474.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import BayesianRidge
    >>> X, y = load_diabetes(return_X_y=True, as_frame=True)
    >>> model = RecalibratedRegressor(BayesianRidge(), by="sex", random_state=0).fit(X[:300], y[:300])
    >>> model.groups_["map"].tolist()
    ['own', 'own']
    >>> model.forecast(X[300:]).cdf(150.0).shape
    (142,)
    """

    def __init__(
        self,
        estimator: Any,
        by: By | None = None,
        *,
        cv: int = 5,
        on_discrete: OnDiscrete = "raise",
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.by = by
        self.cv = cv
        self.on_discrete = on_discrete
        self.random_state = random_state

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model, and the maps from PITs on rows that it was not fitted on.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Training rows, passed to the estimator as they are; a table if `by` names columns.
        y : array-like of shape (n,)
            Continuous outcomes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows, in the maps and for estimators that take them.

        Returns
        -------
        self

        Raises
        ------
        InputError
            If the estimator is randomized or of no kind that is served, or `by` does not fit the table.
        """
        cv = check_count("cv", self.cv, least=2)
        table, outcomes, weight = self._check_training(X, y, sample_weight)
        check_continuous(outcomes, on_discrete=self.on_discrete)
        random = generator(self.random_state)
        self._by, (self._columns, labels) = self.by, _learn_groups(self.by, table)
        kind, given = kind_of(self.estimator), None if sample_weight is None else weight
        self._base = kind.fit(self.estimator, table, outcomes, given, cv, random)
        self.estimator_ = self._base.estimator
        if isinstance(self.estimator, FrozenEstimator) and kind is not ResidualBase:
            pit = self._base.distribution(table).cdf(outcomes)
        else:
            # a frozen plain regressor is not fitted again either, but the law of its residuals is
            pit = _cross_fitted_pit(kind, self.estimator, table, outcomes, given, cv, random)
        if not np.isfinite(pit).all():
            raise bad_input("estimator", "give forecasts that are finite", f"{type(self.estimator_).__name__} with NaN")
        self._learn_maps(pit, weight, labels)
        return self

    def base_forecast(self, X: Any) -> Forecast:
        """Forecast as the model itself does, before the map, shape (n,)."""
        check_is_fitted(self)
        return Forecast(self._base.distribution(self._check_rows(X, reset=False)))

    def forecast(self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None) -> Forecast:
        base = self.base_forecast(X).distribution
        if self._by is None:
            return Forecast(Recalibrated(base, self.levels_[0], self.values_[0]))
        labels = _labels(self._by, self._columns, self._check_rows(X, reset=False))
        own = self.groups_["group"][self.groups_["map"] == "own"]
        row = 1 + pd.Index(own).get_indexer(pd.Index(labels))  # -1, the label of no own map, is row 0
        return Forecast(Recalibrated(base, self.levels_[row], self.values_[row]))

    def _learn_maps(self, pit: Floats, weight: Floats, labels: Labels | None) -> None:
        used = weight > 0
        maps = [_learn_map(pit[used], weight[used])]
        rows: list[tuple[str, int, str]] = []
        if labels is not None:
            for name in _in_order(self._columns, labels):
                inside = used & (labels == name)
                own = int(inside.sum()) >= MIN_GROUP_ROWS
                rows.append((name, int(inside.sum()), "own" if own else "pooled"))
                if own:
                    maps.append(_learn_map(pit[inside], weight[inside]))
        n_knots = max(levels.size for levels, _ in maps)
        refined = [_refined(levels, values, n_knots) for levels, values in maps]
        self.levels_, self.values_ = (np.stack(knots) for knots in zip(*refined, strict=True))
        self.groups_ = _group_table(rows)

    def to_state(self) -> State:
        check_is_fitted(self)
        if callable(self._by):
            remedy = "put the labels into a column of X and name it"
            raise bad_input("by", "name columns in a model that is stored", f"the function {self._by!r}", remedy)
        learned: dict[str, Any] = {"kind": self._base.name, "n_features_in": self.n_features_in_}
        if hasattr(self, "feature_names_in_"):
            learned["feature_names_in"] = [str(name) for name in self.feature_names_in_]
        learned["columns"] = [asdict(column) for column in self._columns]
        learned["groups"] = [[name, int(count), used] for name, count, used in self.groups_.itertuples(index=False)]
        by = self._by if self._by is None or isinstance(self._by, str) else list(self._by)
        seed = self.random_state if isinstance(self.random_state, int) else None
        params = {"by": by, "cv": int(self.cv), "on_discrete": self.on_discrete, "random_state": seed}
        arrays = self._base.to_arrays() | {"map_levels": self.levels_, "map_values": self.values_}
        parts = {"estimator": thawed(self.estimator_)}
        return State(type(self).__name__, {"params": params, "learned": learned}, arrays, parts)

    @classmethod
    def from_state(cls, state: State) -> Self:
        learned, estimator, arrays = state.params["learned"], state.parts["estimator"], dict(state.arrays)
        kind: type[Base] = {kind.name: kind for kind in KINDS}[learned["kind"]]
        model = cls(FrozenEstimator(estimator), **state.params["params"])
        model.levels_, model.values_ = arrays.pop("map_levels"), arrays.pop("map_values")
        model._base = kind.from_arrays(estimator, arrays)
        model.estimator_, model._by = estimator, model.by
        model._columns = tuple(_GroupColumn(**column) for column in learned["columns"])
        model.groups_ = _group_table([(name, count, used) for name, count, used in learned["groups"]])
        model.n_features_in_ = learned["n_features_in"]
        if "feature_names_in" in learned:
            model.feature_names_in_ = np.array(learned["feature_names_in"], dtype=object)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags.allow_nan = get_tags(self.estimator).input_tags.allow_nan
        return tags


def _cross_fitted_pit(
    kind: type[Base], estimator: Any, X: Any, y: Floats, weight: Floats | None, cv: int, random: np.random.Generator
) -> Floats:
    """PITs of each row under the model fitted without its fold."""
    if y.size < 2 * cv:
        raise bad_input("X", f"have at least {2 * cv} rows for cv={cv}", f"n_samples = {y.size}")
    pit = np.empty(y.size)
    seed = int(random.integers(2**31))
    for learn, hold in KFold(cv, shuffle=True, random_state=seed).split(np.empty((y.size, 1))):
        inner = max(2, min(cv, learn.size // 2))  # folds of the residuals, where few rows are left
        part = kind.fit(estimator, _rows(X, learn), y[learn], None if weight is None else weight[learn], inner, random)
        pit[hold] = part.distribution(_rows(X, hold)).cdf(y[hold])
    return pit


# --- the map ---------------------------------------------------------------------------------------------------


def _learn_map(pit: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Knots of the map: the isotonic step law of the PITs, read off at equal steps of its values.

    The number of steps is that of a histogram with equal masses whose bias and noise are in balance; unequal weights
    count as fewer rows (Kish). Over a base that is right the map costs about n_knots / (2 n) nats.
    """
    place, share = _step_law(np.clip(pit, LEAST_PIT, 1 - LEAST_PIT), weight)
    n_effective = weight.sum() ** 2 / (weight**2).sum()
    n_steps = int(np.clip(round(2 * n_effective**0.4), 2, MAX_KNOTS))
    values = np.arange(1, n_steps) / n_steps
    levels = np.interp(values, np.concatenate(([0.0], share, [1.0])), np.concatenate(([0.0], place, [1.0])))
    levels, values = _joined(levels, values)
    return np.concatenate(([0.0], levels, [1.0])), np.concatenate(([0.0], values, [1.0]))


def _step_law(pit: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """PITs in order, each once, with plotting positions: i / (n + 1) without weights, the mean over ties."""
    place, which = np.unique(pit, return_inverse=True)
    mass = np.bincount(which, weights=weight / weight.mean())
    return place, (np.cumsum(mass) - mass / 2 + 0.5) / (pit.size + 1)


def _joined(levels: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Join knots at all but the same level into one at their mean: a map rises by an atom without a jump."""
    which = np.cumsum(np.diff(levels, prepend=-np.inf) > LEAST_PIT) - 1
    count = np.bincount(which)
    return np.bincount(which, weights=levels) / count, np.bincount(which, weights=values) / count


def _refined(levels: Floats, values: Floats, n_knots: int) -> tuple[Floats, Floats]:
    """The same map with knots added on its widest line, so that maps of several groups fit into one array."""
    missing = n_knots - levels.size
    if missing == 0:
        return levels, values
    at = int(np.argmax(np.diff(levels)))
    share = np.arange(1, missing + 1) / (missing + 1)
    added = (knots[at] + share * (knots[at + 1] - knots[at]) for knots in (levels, values))
    more_levels, more_values = added
    return np.insert(levels, at + 1, more_levels), np.insert(values, at + 1, more_values)


# --- groups ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _GroupColumn:
    """How a column of the table makes groups: the names seen in training, and the cut if they are two halves."""

    name: str
    groups: tuple[str, ...]
    kind: Literal["values", "numbers", "dates"]
    cut: float = 0.0
    """For dates, microseconds since 1970."""

    @classmethod
    def learn(cls, table: pd.DataFrame, name: str) -> _GroupColumn:
        masks = group_columns(table, [name], source="X")
        names = tuple(masks)
        if not names[0].startswith(f"{name} <= "):
            return cls(name, names, "values")
        numbers, kind = _numbers(table[name])
        # the cut is the median unless nothing lies above it; date cuts, and others, are values of the lower half
        last, first = numbers[masks[names[0]]].max(), numbers[masks[names[1]]].min()
        median = float(np.median(numbers[np.isfinite(numbers)]))
        is_median = kind == "numbers" and last <= median < first
        return cls(name, names, kind, median if is_median else float(last))

    def labels(self, table: pd.DataFrame) -> Labels:
        """Name of each row's group; a value not seen in training has a name that no group has."""
        values = table[self.name]
        missing = values.isna().to_numpy(dtype=bool)
        if self.kind == "values":
            codes, distinct = pd.factorize(values)
            found = np.array([*(f"{self.name} = {_label(value)}" for value in distinct), None], dtype=object)[codes]
        else:
            numbers, _ = _numbers(values)
            found = np.where(numbers <= self.cut, self.groups[0], self.groups[1]).astype(object)
            found[np.isnan(numbers)] = None
        found[missing] = f"{self.name} missing"
        return np.asarray(found, dtype=object)


def _numbers(values: pd.Series[Any]) -> tuple[Floats, Literal["numbers", "dates"]]:
    """Return numbers as they are and dates as microseconds since 1970, in floats, which hold them exactly."""
    if values.dtype.kind == "M":
        whole = values.dt.tz_localize(None).to_numpy("datetime64[us]")
        return np.where(np.isnat(whole), np.nan, whole.astype(np.int64).astype(np.float64)), "dates"
    return np.asarray(pd.to_numeric(values, errors="coerce").to_numpy(np.float64, na_value=np.nan)), "numbers"


def _learn_groups(by: By | None, X: Any) -> tuple[tuple[_GroupColumn, ...], Labels | None]:
    """Learn how columns make groups, and label the training rows; no labels without groups."""
    if by is None:
        return (), None
    if callable(by):
        return (), _labels(by, (), X)
    names = [by] if isinstance(by, str) else list(by)
    if not names:
        raise bad_input("by", "name at least one column", "none", "leave it out for one map")
    table = _table(X)
    columns = tuple(_GroupColumn.learn(table, name) for name in names)
    return columns, _labels(by, columns, X)


def _labels(by: By, columns: tuple[_GroupColumn, ...], X: Any) -> Labels:
    """Label of each row; None where a part of it is missing or unknown."""
    if callable(by):
        answer = np.asarray(by(X), dtype=object)
        if answer.shape != (len(X),):
            raise bad_input("by", f"return one label per row ({len(X)})", f"shape {answer.shape}")
        return np.array([None if pd.isna(label) else _label(label) for label in answer], dtype=object)
    table = _table(X)
    parts = np.column_stack([column.labels(table) for column in columns])
    known = np.column_stack([np.isin(parts[:, j].astype(str), column.groups) for j, column in enumerate(columns)])
    joined = np.array([", ".join(map(str, row)) for row in parts], dtype=object)
    return np.where(known.all(axis=1), joined, cast(Any, None))


def _table(X: Any) -> pd.DataFrame:
    if not hasattr(X, "columns"):
        raise bad_input(
            "X", "be a table if `by` names columns", type(X).__name__, "or give a function from X to labels"
        )
    return cast(pd.DataFrame, nw.from_native(X).to_pandas())


def _in_order(columns: tuple[_GroupColumn, ...], labels: Labels) -> list[str]:
    """Return the labels that occur, in the order of a single column's groups, else by name."""
    seen = {str(label) for label in labels if label is not None}
    return [name for name in columns[0].groups if name in seen] if len(columns) == 1 else sorted(seen)


def _group_table(rows: list[tuple[str, int, str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["group", "n_samples", "map"])
