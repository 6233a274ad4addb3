"""Named groups of rows that the columns of a table make: values, halves, missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import Floats, about, bad_input, coded, is_container
from evenhand.columns.values import level
from evenhand.tables import column_of

__all__ = [
    "Group",
    "Groups",
    "Partition",
    "Seen",
    "cut_name",
    "group_columns",
    "label",
    "partition_of",
]

Mask = NDArray[np.bool_]
Operator = Literal["=", "<=", ">", "missing"]

MAX_VALUES = 10  # most distinct values with which a number or date column gives one group per value
MAX_GROUPS = 100  # the same for text, where more are most likely ids
EXACT_WHOLE = 2**53  # whole numbers from here on may coincide as floats
KINDS = {"i": "number", "u": "number", "f": "number", "M": "date"}
MAX_PLAIN = 1e15  # whole numbers below this are written without an exponent


@dataclass(frozen=True)
class Group:
    """What a named group is.

    Parameters
    ----------
    name : str
        As people read it; no code reads it back.
    column : str or None
        The column that makes the group; None of a mask.
    operator : {"=", "<=", ">", "missing"} or None
        How its values are compared.
    value : str or None
        The value compared with, as it is shown; None for missing values.

    Examples
    --------
    >>> Group.where("age", "<=", "50").name, Group.where("hours > 40", "=", "True").column
    ('age <= 50', 'hours > 40')
    """

    name: str
    column: str | None = None
    operator: Operator | None = None
    value: str | None = None

    @classmethod
    def where(cls, column: str, operator: Operator, value: str | None = None) -> Self:
        """Return a group that a column makes."""
        name = f"{column} {operator}" if value is None else f"{column} {operator} {value}"
        return cls(name, column, operator, value)


class Groups(Mapping[str, Mask]):
    """Named groups of the same rows: masks by name, and what each group is.

    Parameters
    ----------
    pairs : iterable of (Group, ndarray of bool)
        Groups and their rows; names differ.
    """

    def __init__(self, pairs: Iterable[tuple[Group, Mask]] = ()) -> None:
        self._pairs = {group.name: (group, mask) for group, mask in pairs}

    def __getitem__(self, name: str) -> Mask:
        return self._pairs[name][1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pairs)

    def __len__(self) -> int:
        return len(self._pairs)

    def what(self, name: str) -> Group:
        """Return what a group is."""
        return self._pairs[name][0]

    def pairs(self) -> Iterable[tuple[Group, Mask]]:
        """Return groups and their rows."""
        return self._pairs.values()

    def take(self, rows: NDArray[Any]) -> Groups:
        """Return the groups among some rows, without those that have none there."""
        return Groups((group, mask[rows]) for group, mask in self.pairs() if mask[rows].any())

    def without(self, names: Iterable[str]) -> Groups:
        """Return the other groups."""
        left_out = set(names)
        return Groups(pair for name, pair in self._pairs.items() if name not in left_out)


def group_columns(table: pd.DataFrame, names: Iterable[str], *, source: str) -> Groups:
    """Return the named groups that some columns make, for an audit.

    `source` is the file name for messages.

    Text, booleans, categories, and numbers or dates with at most 10 distinct values give one group
    per value, `sex = 2`. Other numbers and dates give two halves at the median, `age <= 50` and
    `age > 50`; if nothing lies above the median, at the value below it; the cut is rounded, but so
    that it still parts the rows as its name says. Dates and whole numbers of 2^53 and more are cut
    at one of their values. Missing values are a group of their own, `age missing`. The groups of
    one column share no row, leave none out and are never empty. Raises InputError if there is no
    such column, or a text column has more than 100 distinct values.

    Examples
    --------
    >>> groups = group_columns(pd.DataFrame({"sex": [2, 1, None]}), ["sex"], source="loans.csv")
    >>> {name: rows.tolist() for name, rows in groups.items()}
    {'sex = 1': [False, True, False], 'sex = 2': [True, False, False], 'sex missing': [False, False, True]}
    """
    return Groups(
        pair
        for name in names
        for pair in label_groups(name, column_of(table, name, source), source)
    )


def label_groups(name: str, values: pd.Series[Any], source: str) -> Iterable[tuple[Group, Mask]]:
    """Return the groups that the values of a column make."""
    with about(source):
        seen = Seen.of(values.rename(name))
    partition = partition_of(name, seen, values, source=source)
    return partition.masks(values).pairs()


@dataclass(frozen=True)
class Seen:
    """Summary of a column that determines its groups; summaries of parts of a column can be added.

    Parameters
    ----------
    labels : dict of str to value, or None
        Each distinct value by the name that its group has; None if there are too many for a group
        each.
    has_missing : bool
        Whether a value is missing.
    kind : {"number", "date", "text", "none"}
        What the values are; text is also what numbers and dates are together, and none is where all
        are missing.
    """

    labels: dict[str, Any] | None
    has_missing: bool
    kind: str

    @classmethod
    def of(cls, values: pd.Series[Any]) -> Seen:
        """Look at some or all values of a column; InputError if they are lists, structs or maps."""
        codes, distinct = _coded(values, f"column {values.name!r}")
        has_missing = bool((codes < 0).any())
        kind = "none" if len(distinct) == 0 else KINDS.get(values.dtype.kind, "text")
        if kind != "text" and len(distinct) > MAX_GROUPS:  # as text two of them may look alike
            return cls(None, has_missing, kind)
        labels = {label(value): value for value in distinct}
        return cls(labels if len(labels) <= MAX_GROUPS else None, has_missing, kind)

    def __add__(self, other: Seen) -> Seen:
        has_missing = self.has_missing or other.has_missing
        kinds = {self.kind, other.kind} - {"none"}
        kinds = kinds or {"none"}
        kind = kinds.pop() if len(kinds) == 1 else "text"
        if self.labels is None or other.labels is None:
            return Seen(None, has_missing, kind)
        labels = self.labels | other.labels
        return Seen(labels if len(labels) <= MAX_GROUPS else None, has_missing, kind)

    @property
    def has_halves(self) -> bool:
        """Whether the column is cut in two, having too many values for a group each."""
        is_ordered = self.kind in ("number", "date")
        return is_ordered and (self.labels is None or len(self.labels) > MAX_VALUES)


@dataclass(frozen=True)
class Partition:
    """How a column parts rows into groups that share no row, those to come as well.

    Parameters
    ----------
    column : str
        Its name.
    labels : tuple of str
        One group per value: how the values are shown. Empty where the column is cut in two.
    cut : number, date or None
        Values at or below it are the first of two groups.
    shown : str
        The cut as it is named.
    has_missing : bool
        Whether missing values are a group.
    """

    column: str
    labels: tuple[str, ...]
    cut: Any
    shown: str
    has_missing: bool

    @property
    def groups(self) -> list[Group]:
        """The groups, in the order of their masks."""
        operators: tuple[Operator, ...] = () if self.cut is None else ("<=", ">")
        halves = [Group.where(self.column, operator, self.shown) for operator in operators]
        values = [Group.where(self.column, "=", shown) for shown in self.labels]
        return halves + values + ([Group.where(self.column, "missing")] if self.has_missing else [])

    @property
    def names(self) -> list[str]:
        """Names of the groups, such as `age <= 50`."""
        return [group.name for group in self.groups]

    def masks(self, values: pd.Series[Any]) -> Groups:
        """Return the rows of each group; a value that no group is for is in none."""
        missing = values.isna().to_numpy(dtype=bool)
        groups = self._by_value(values) if self.cut is None else self._halves(values, missing)
        return Groups(zip(self.groups, [*groups, missing], strict=False))

    def _by_value(self, values: pd.Series[Any]) -> list[NDArray[np.bool_]]:
        codes, distinct = _coded(
            values, f"column {self.column!r}"
        )  # missing values have the code -1
        place = {shown: i for i, shown in enumerate(self.labels)}
        group = np.array([*(place.get(label(value), -1) for value in distinct), -1], dtype=np.intp)[
            codes
        ]
        return [group == i for i in range(len(self.labels))]

    def _halves(
        self, values: pd.Series[Any], missing: NDArray[np.bool_]
    ) -> list[NDArray[np.bool_]]:
        present = values[~missing]
        is_low = _comparable(present) <= self.cut if len(present) else np.zeros(0, dtype=np.bool_)
        # filled in by index: a missing value is in neither half, whatever it compares to
        low = np.zeros_like(missing)
        high = np.zeros_like(missing)
        low[~missing] = is_low
        high[~missing] = ~is_low
        return [low, high]


def partition_of(name: str, seen: Seen, values: pd.Series[Any], *, source: str) -> Partition:
    """Return how a column parts rows.

    `seen` summarizes all of it, and `values` are some or all, for the median.
    """
    if not seen.has_halves:
        if seen.labels is None:
            count = values.dropna().map(label).nunique()
            got = count if count > MAX_GROUPS else f"more than {MAX_GROUPS}"
            place = f"{source}: column {name!r}"
            raise bad_input(
                place, f"have at most {MAX_GROUPS} distinct values", got, "join the rare values"
            )
        order = None if seen.kind == "text" else seen.labels.__getitem__
        return Partition(name, tuple(sorted(seen.labels, key=order)), None, "", seen.has_missing)
    present = values.dropna()
    if present.empty:  # so few rows have a value that none of them was seen: there is no median
        return Partition(name, (), None, "", seen.has_missing)
    if present.dtype.kind == "M":
        cut = _middle(np.sort(_comparable(present)))
        return Partition(
            name, (), cut, str(np.datetime_as_string(cut, unit="auto")), seen.has_missing
        )
    rising = np.sort(_comparable(present))
    cut = _median(rising) if rising.dtype.kind == "f" else _middle(rising)
    at = int(np.searchsorted(rising, cut, side="right"))
    above = rising[at] if at < rising.size else np.nextafter(cut, np.inf)
    shown = cut_name(cut, rising[at - 1], above)
    # what the name says is what is done, with rows that were not seen here too
    return Partition(
        name, (), cut if isinstance(cut, np.integer) else float(shown), shown, seen.has_missing
    )


def _coded(values: pd.Series[Any], place: str) -> tuple[NDArray[np.intp], Any]:
    """Return a code per row, -1 where missing, and the distinct values as groups are named by them."""
    codes, distinct = coded(values, place)
    # an index would turn floats of 32 bits into Python's, which are written with other digits
    return codes, np.asarray(distinct) if getattr(distinct.dtype, "kind", "") == "f" else distinct


def _comparable(present: pd.Series[Any]) -> NDArray[Any]:
    """Return values that are there as what a cut is compared with."""
    return (
        present.dt.tz_localize(None).to_numpy() if present.dtype.kind == "M" else _numbers(present)
    )


def _numbers(present: pd.Series[Any]) -> NDArray[Any]:
    """Return numbers as floats, or as whole numbers if floats could not tell them apart."""
    numbers: NDArray[Any] = present.to_numpy(dtype=np.float64)
    if present.dtype.kind in "iu" and np.abs(numbers).max() >= EXACT_WHOLE:
        return present.to_numpy(dtype=np.int64 if present.dtype.kind == "i" else np.uint64)
    return numbers


def _middle(rising: NDArray[Any]) -> Any:
    """Return the middle value, or the last one that has something above it; of equal ones any."""
    cut = rising[(rising.size - 1) // 2]
    below = rising[rising < rising[-1]]
    return cut if cut < rising[-1] or not below.size else below[-1]


def _median(rising: Floats) -> Any:
    """Return the median of the finite values, or the last value that has something above it."""
    finite = rising[np.isfinite(rising)]
    with np.errstate(over="ignore"):
        cut = np.median(finite) if finite.size else np.inf
    return cut if np.isfinite(cut) and cut < rising[-1] else _middle(rising)


def cut_name(cut: Any, last: Any, first: Any) -> str:
    """Write a cut with as few digits, six or more, as still part `last`, the largest low value, from `first` above it.

    Whole numbers below 10^15 are written without an exponent.

    Examples
    --------
    >>> cut_name(20200610.5, 20200610.0, 20200611.0), cut_name(0.123456789, 0.1, 0.2)
    ('20200610', '0.123457')
    """
    if isinstance(cut, np.integer):
        return str(int(cut))
    number = float(cut)
    for digits in range(6, 18):  # 17 digits hold every float
        shown = f"{number:.{digits}g}"
        if last <= float(shown) < first:
            break
    rounded = float(shown)
    return str(int(rounded)) if rounded.is_integer() and abs(rounded) < MAX_PLAIN else shown


def label(value: Any) -> str:
    """Return a value as groups are named: 2.0 as `2`, a midnight as its date.

    InputError of a list or a struct.

    Examples
    --------
    >>> label(2.0), label(pd.Timestamp("2020-01-31"))
    ('2', '2020-01-31')
    """
    if is_container(value):
        raise bad_input(
            "the value of a group", "be a single value", repr(value)[:80], "make one label of it"
        )
    return level(value)
