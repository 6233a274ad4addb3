"""Which rows are told apart by `by`, and the map of PITs that each group of rows learns."""

from __future__ import annotations

import datetime as dt
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, cast

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import Floats, bad_input
from evenhand.columns import as_pandas
from evenhand.columns.groups import EXACT_WHOLE, Group, group_columns, label
from evenhand.columns.values import Kind, kind_of, unpacked

By = str | Sequence[str] | Callable[[Any], Any]
Labels = NDArray[np.object_]
Mask = NDArray[np.bool_]
GroupKind = Kind | Literal["single"]
"""What a column holds; "single" are floats of 32 bits or fewer."""

MIN_GROUP_ROWS = 50
"""Fewest rows from which a group learns a map of its own: 10 knots, each with a standard error
of at most 0.07."""

MAX_KNOTS = 200
WARN_ROWS = 20
"""Fewest rows of a forecast of which it is said that most have labels never seen in training."""

LEAST_PIT = 1e-12
"""PITs nearer to 0 or 1 than this, or nearer to each other, count as tied: floats have no digits
left near 1."""


# --- groups
# ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grouping:
    """How rows are told apart: by a function, or by columns of which the groups were learned in training."""

    by: By
    columns: tuple[_GroupColumn, ...] = ()

    @classmethod
    def learn(cls, by: By, X: Any) -> Self:
        """Learn how columns make groups; a function is kept as it is."""
        if callable(by):
            return cls(by)
        names = [by] if isinstance(by, str) else list(by)
        if not names:
            raise bad_input("by", "name at least one column", "none", "leave it out for one map")
        table = _table(X)
        return cls(by, tuple(_GroupColumn.learn(table, name) for name in names))

    def labels(self, X: Any) -> Labels:
        """Label of each row; None where a part of it is missing or unknown."""
        if callable(self.by):
            answer = np.asarray(self.by(X), dtype=object)
            if answer.shape != (len(X),):
                raise bad_input(
                    "by", f"return one label per row ({len(X)})", f"shape {answer.shape}"
                )
            return np.array(
                [None if pd.isna(value) else label(value) for value in answer], dtype=object
            )
        table = _table(X)
        parts = np.column_stack([column.labels(table) for column in self.columns])
        known = pd.notna(parts).all(axis=1)
        joined = np.array([", ".join(map(str, row)) for row in parts], dtype=object)
        return np.where(known, joined, cast(Any, None))

    def warn_unseen(self, labels: Labels, seen: Sequence[str]) -> None:
        """Warn if a function gives most rows of a forecast labels that no row of the training had.

        Columns need no such warning: the schema of the model reports values that training never
        had.
        """
        is_new = pd.notna(labels) & ~pd.Series(labels, dtype=object).isin(list(seen)).to_numpy()
        if not callable(self.by) or labels.size < WARN_ROWS or 2 * is_new.sum() <= labels.size:
            return
        warnings.warn(
            f"by: {int(is_new.sum())} of {labels.size} rows have labels never seen in training and"
            f" take the map of all rows; write them as in training ({', '.join(seen)[:80]}) or fit"
            " again with rows of these labels",
            UserWarning,
            stacklevel=3,
        )

    def groups(self, X: Any) -> Iterator[tuple[str, Mask]]:
        """Groups that occur, each with its rows.

        In the order of a single column's groups, else by name.
        """
        labels = self.labels(X)
        seen = {str(name) for name in labels if name is not None}
        is_single = len(self.columns) == 1
        names = (
            [name for name in self.columns[0].groups if name in seen] if is_single else sorted(seen)
        )
        # one mask at a time: a function may tell many groups apart
        return ((name, labels == name) for name in names)

    def to_state(self) -> tuple[str | list[str], list[dict[str, Any]]]:
        """Return `by` and the columns as values that can be stored."""
        if callable(self.by):
            remedy = "put the labels into a column of X and name it"
            raise bad_input(
                "by", "name columns in a model that is stored", f"the function {self.by!r}", remedy
            )
        by = self.by if isinstance(self.by, str) else list(self.by)
        return by, [asdict(column) for column in self.columns]

    @classmethod
    def from_state(cls, by: By, columns: Iterable[dict[str, Any]]) -> Self:
        """Rebuild from `to_state`."""
        return cls(by, tuple(_GroupColumn(**column) for column in columns))


@dataclass(frozen=True)
class _GroupColumn:
    """How a column of the table makes groups.

    The names seen in training, and the cut if they are two halves.
    """

    name: str
    groups: Sequence[str]
    values: Sequence[str | None]
    """The value that each group has or is cut at, as its name shows it; None of missing values."""
    kind: GroupKind
    cut: str | None = None
    """As the names state it, so that a row belongs where its group's name says."""

    @classmethod
    def learn(cls, table: pd.DataFrame, name: str) -> _GroupColumn:
        groups = [group for group, _ in group_columns(table, [name], source="X").pairs()]
        cut = next((group.value for group in groups if group.operator == "<="), None)
        names = tuple(group.name for group in groups)
        values = tuple(group.value for group in groups)
        return cls(name, names, values, _kind(table[name]), cut)

    def labels(self, table: pd.DataFrame) -> Labels:
        """Name of each row's group; None where no row of the training had that value."""
        values = table[self.name]
        missing = values.isna().to_numpy(dtype=bool)
        found = np.full(len(values), None, dtype=object)
        if None in self.values:
            found[missing] = Group.where(self.name, "missing").name
        if not missing.all():
            found[~missing] = (
                self._value_labels(values[~missing])
                if self.cut is None
                else self._halves(values[~missing])
            )
        return found

    def _value_labels(self, values: pd.Series[Any]) -> Labels:
        codes, distinct = pd.factorize(values)
        names = np.array(
            [Group.where(self.name, "=", label(value)).name for value in distinct], dtype=object
        )
        unseen = ~np.isin(names.astype(str), self.groups)
        if unseen.any():
            names[unseen] = self._same_value(pd.Series(distinct, dtype=values.dtype)[unseen])
        return np.asarray(names[codes], dtype=object)

    def _same_value(self, values: pd.Series[Any]) -> Labels:
        """Groups of values written in another way than in training: 1 for True, 0.1 in 32 bits.

        None for new values.
        """
        if self.kind == "date":
            names = [Group.where(self.name, "=", label(value)).name for value in _dates(values)]
            return np.array([name if name in self.groups else None for name in names], dtype=object)
        found = np.full(len(values), None, dtype=object)
        seen = {
            _as_number(value): group
            for group, value in zip(self.groups, self.values, strict=True)
            if value
        }
        known = np.sort([number for number in seen if np.isfinite(number)])
        if self.kind in ("category", "other") or known.size == 0:
            return found
        numbers = _numbers(values).astype(np.float64)
        nearest = known[np.abs(numbers[:, None] - known).argmin(axis=1)]
        is_same = _equal(numbers, nearest, is_single="single" in (self.kind, _kind(values)))
        found[is_same] = [seen[number] for number in nearest[is_same]]
        return found

    def _halves(self, values: pd.Series[Any]) -> Labels:
        cut = cast(str, self.cut)
        if self.kind == "date":
            moments = _dates(values).to_numpy()
            is_low = moments <= np.datetime64(cut)
            known = ~np.isnat(moments)
        else:
            numbers = _numbers(values)
            is_low = self._is_low(numbers, is_single=_kind(values) == "single")
            known = ~np.isnan(numbers)
        halves = np.where(is_low, self.groups[0], self.groups[1]).astype(object)
        return np.where(known, halves, cast(Any, None))

    def _is_low(self, numbers: NDArray[Any], *, is_single: bool) -> Mask:
        """Compare in the fewer digits of training and forecast, so that a value at the cut stays on its side."""
        cut = cast(str, self.cut)
        with np.errstate(over="ignore"):
            if self.kind == "single":
                return np.asarray(numbers.astype(np.float32).astype(np.float64) <= float(cut))
            if is_single:
                return np.asarray(numbers.astype(np.float32) <= np.float32(float(cut)))
        # a whole cut is compared as one, so that large ids keep their digits
        return np.asarray(numbers <= (int(cut) if cut.lstrip("-").isdigit() else float(cut)))


def _kind(values: pd.Series[Any]) -> GroupKind:
    plain = unpacked(values)
    if plain.dtype.kind == "f" and getattr(plain.dtype, "itemsize", 8) <= 4:
        return "single"
    return kind_of(plain)


def _numbers(values: pd.Series[Any]) -> NDArray[Any]:
    """Numbers, booleans and text that says a number, as numbers; NaN for anything else."""
    if values.dtype.kind in "mM":
        return np.full(len(values), np.nan)
    plain = unpacked(values)
    numbers: NDArray[Any] = pd.to_numeric(plain, errors="coerce").to_numpy()
    return numbers if numbers.dtype.kind in "iuf" else numbers.astype(np.float64)


def _as_number(text: str) -> float:
    """The number that a label says, NaN if none.

    Whole ones beyond 2^53, which floats confuse, say none.
    """
    try:
        number = float({"True": "1", "False": "0"}.get(text, text))
    except ValueError:
        return np.nan
    return number if abs(number) < EXACT_WHOLE else np.nan


def _equal(numbers: Floats, others: Floats, *, is_single: bool) -> Mask:
    with np.errstate(over="ignore"):
        return np.asarray(
            numbers.astype(np.float32) == others.astype(np.float32)
            if is_single
            else numbers == others
        )


def _dates(values: pd.Series[Any]) -> pd.Series[Any]:
    """Dates, and text in ISO form, as dates by the local clock; NaT for anything else."""
    if values.dtype.kind != "M":
        is_text = values.map(lambda value: isinstance(value, str | dt.date)).to_numpy(dtype=bool)
        plain = values.astype(object).where(is_text, cast(Any, None))
        try:
            values = pd.to_datetime(plain, errors="coerce", format="ISO8601")
        except ValueError:  # several time zones: no one clock to read them by
            values = pd.Series(pd.NaT, index=values.index, dtype="datetime64[us]")
    return cast("pd.Series[Any]", values.dt.tz_localize(None))


def _table(X: Any) -> pd.DataFrame:
    if not hasattr(X, "columns"):
        raise bad_input(
            "X",
            "be a table if `by` names columns",
            type(X).__name__,
            "or give a function from X to labels",
        )
    return as_pandas(X)


# --- the maps
# --------------------------------------------------------------------------------------------------


def learn_maps(
    pit: Floats, weight: Floats, groups: Iterable[tuple[str, Mask]]
) -> tuple[Floats, Floats, pd.DataFrame]:
    """Learn the map of all rows, and one more for each group that has rows enough.

    Parameters
    ----------
    pit : ndarray of shape (n,)
        PITs of rows that the model was not fitted on, between 0 and 1.
    weight : ndarray of shape (n,)
        Weights of the rows; those of weight 0 do not count.
    groups : iterable of (str, ndarray)
        Names and masks of shape (n,).

    Returns
    -------
    levels, values : ndarray of shape (n_maps, n_knots)
        Knots of the maps: that of all rows, then those of the groups with maps of their own, in
        their order.
    table : DataFrame
        `group_table` of the groups.
    """
    used = weight > 0
    maps = [_learn_map(pit[used], weight[used])]
    rows: list[tuple[str, int, str]] = []
    for name, mask in groups:
        inside = used & mask
        own = int(inside.sum()) >= MIN_GROUP_ROWS
        rows.append((name, int(inside.sum()), "own" if own else "pooled"))
        if own:
            maps.append(_learn_map(pit[inside], weight[inside]))
    n_knots = max(levels.size for levels, _ in maps)
    refined = [_refined(levels, values, n_knots) for levels, values in maps]
    levels, values = (np.stack(knots) for knots in zip(*refined, strict=True))
    return levels, values, group_table(rows)


def group_table(rows: Iterable[tuple[str, int, str]]) -> pd.DataFrame:
    """Name, number of rows and kind of map, "own" or "pooled", of each group."""
    return pd.DataFrame(list(rows), columns=["group", "n_samples", "map"])


def map_of_rows(table: pd.DataFrame, labels: Labels) -> NDArray[np.intp]:
    """Which of the maps of `learn_maps` each row takes.

    That of all rows, 0, unless its group has one of its own.
    """
    own = pd.Index(table["group"][table["map"] == "own"])
    # -1, a label without a map of its own, becomes 0
    return np.asarray(1 + own.get_indexer(pd.Index(labels)), dtype=np.intp)


def _learn_map(pit: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Knots of the map: the isotonic step law of the PITs, read off at equal steps of its values.

    The number of steps is that of a histogram with equal masses whose bias and noise are in
    balance; unequal weights count as fewer rows (Kish). Over a base that is right the map costs
    about n_knots / (2 n) nats.
    """
    place, share = _step_law(np.clip(pit, LEAST_PIT, 1 - LEAST_PIT), weight)
    n_effective = weight.sum() ** 2 / (weight**2).sum()
    n_steps = int(np.clip(round(2 * n_effective**0.4), 2, MAX_KNOTS))
    values = np.arange(1, n_steps) / n_steps
    levels = np.interp(
        values, np.concatenate(([0.0], share, [1.0])), np.concatenate(([0.0], place, [1.0]))
    )
    levels, values = _joined(levels, values)
    return np.concatenate(([0.0], levels, [1.0])), np.concatenate(([0.0], values, [1.0]))


def _step_law(pit: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """PITs in order, each once, with plotting positions.

    I / (n + 1) without weights, the mean over ties.
    """
    place, which = np.unique(pit, return_inverse=True)
    mass = np.bincount(which, weights=weight / weight.mean())
    return place, (np.cumsum(mass) - mass / 2 + 0.5) / (pit.size + 1)


def _joined(levels: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Join knots at all but the same level into one at their mean.

    A map rises by an atom without a jump.
    """
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
