"""Partition of rows by one column, learned from training rows and applied to later rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import Floats, Ints, Mask, about, bad_input, coded, typed_fields
from evenhand.tables.groups import Group, Groups, label
from evenhand.tables.values import Kind, is_single, kind_of, unpacked

# --- cuts of number and date columns at the median, and their text

EXACT_WHOLE = 2**53
"""Smallest whole number from which two whole numbers may be the same float."""

BLOCK_VALUES = 4_000_000
"""Largest number of values in a working array of several columns, about 32 MB."""


def median_cut(present: pd.Series[Any]) -> str:
    """Return the text of the cut that halves a column without missing values."""
    rising = np.sort(comparable(present))
    if rising.dtype.kind == "M":
        return str(np.datetime_as_string(_middle(rising), unit="auto"))
    cut = _median(rising) if rising.dtype.kind == "f" else _middle(rising)
    at = int(np.searchsorted(rising, cut, side="right"))
    above = rising[at] if at < rising.size else np.nextafter(cut, np.inf)
    return cut_name(cut, rising[at - 1], above)


def at_or_below(present: pd.Series[Any], cut: str, *, learned_single: bool = False) -> Mask:
    """Return a mask of the values at or below a cut.

    Parameters
    ----------
    present : Series
        Numbers or dates, without missing values.
    cut : str
        The text of the cut, so that rows are on the side that the names of their groups show.
    learned_single : bool, default False
        Whether the cut was learned from floats of 32 bits or fewer.
    """
    if present.dtype.kind == "M":
        return np.asarray(comparable(present) <= np.datetime64(cut))
    # a whole number is compared as an integer, so that large ids keep their digits
    number = int(cut) if cut.lstrip("-").isdigit() else float(cut)
    if is_single(present) and not learned_single:
        # values have fewer digits than in training, and a value at the cut must stay at the cut
        with np.errstate(over="ignore"):
            return np.asarray(present.to_numpy(dtype=np.float32) <= np.float32(number))
    return np.asarray(comparable(present) <= number)


def comparable(present: pd.Series[Any]) -> NDArray[Any]:
    """Return non-missing values in the form in which they are compared with a cut.

    Dates are in local time of their zone. Whole numbers stay integers if two of them may be one
    float.
    """
    if present.dtype.kind == "M":
        return np.asarray(present.dt.tz_localize(None).to_numpy())
    numbers: NDArray[Any] = present.to_numpy(dtype=np.float64)
    if present.dtype.kind in "iu" and np.abs(numbers).max() >= EXACT_WHOLE:
        return present.to_numpy(dtype=np.int64 if present.dtype.kind == "i" else np.uint64)
    return numbers


def _middle(rising: NDArray[Any]) -> Any:
    """Return the middle value, or the largest value below the maximum if it is the maximum."""
    cut = rising[(rising.size - 1) // 2]
    below = rising[rising < rising[-1]]
    return cut if cut < rising[-1] or not below.size else below[-1]


def _median(rising: Floats) -> Any:
    """Return the median of the finite values, or `_middle` if it is the maximum or not finite."""
    finite = rising[np.isfinite(rising)]
    with np.errstate(over="ignore"):
        cut = np.median(finite) if finite.size else np.inf
    return cut if np.isfinite(cut) and cut < rising[-1] else _middle(rising)


def cut_name(cut: Any, last: Any, first: Any) -> str:
    """Return a cut as text with the fewest digits, at least six, that separate its two sides.

    Whole numbers below 10^15 are written without an exponent.

    Parameters
    ----------
    cut : number
        Written exactly if it is a whole number of numpy.
    last, first : number
        The largest value at or below the cut, and the smallest above it.

    Examples
    --------
    >>> cut_name(20200610.5, 20200610.0, 20200611.0), cut_name(0.123456789, 0.1, 0.2)
    ('20200610', '0.123457')
    """
    if isinstance(cut, np.integer):
        return str(int(cut))
    number = float(cut)
    for digits in range(6, 18):  # 17 digits represent every float
        shown = f"{number:.{digits}g}"
        if last <= float(shown) < first:
            break
    rounded = float(shown)
    return str(int(rounded)) if rounded.is_integer() and abs(rounded) < 1e15 else shown


def plain_halves(table: pd.DataFrame, most_values: int) -> Iterator[tuple[int, str, Mask]]:
    """Yield position, cut and upper half of each plain number column, many columns in one step.

    A column is plain if it has no missing or infinite values, more than `most_values` distinct
    values that floats distinguish, and values above its median. The cut is that of `median_cut`.
    """
    dtypes = table.dtypes.to_numpy()
    numeric = [
        j for j, dtype in enumerate(dtypes) if isinstance(dtype, np.dtype) and dtype.kind in "iuf"
    ]
    n = len(table)
    width = max(1, BLOCK_VALUES // max(n, 1))
    for start in range(0, len(numeric), width):
        part = numeric[start : start + width]
        values = np.ascontiguousarray(table.iloc[:, part].to_numpy(dtype=np.float64).T)
        # two order statistics by partition: sorting every column would cost more than the scan
        rising = np.partition(values, ((n - 1) // 2, n // 2), axis=-1)
        with np.errstate(over="ignore", invalid="ignore"):
            cuts = (rising[:, (n - 1) // 2] + rising[:, n // 2]) / 2
            # the first 100 rows usually show that a column has many distinct values
            steps = np.diff(np.sort(values[:, :100], axis=-1), axis=-1)
        plain = (steps > 0).sum(axis=-1) >= most_values
        plain &= np.isfinite(values).all(axis=-1) & np.isfinite(cuts) & (cuts < values.max(axis=-1))
        whole = np.array([dtypes[j].kind in "iu" for j in part])
        plain &= ~whole | (np.abs(values).max(axis=-1) < EXACT_WHOLE)
        high = values > cuts[:, None]
        last = np.where(high, -np.inf, values).max(axis=-1)
        first = np.where(high, values, np.inf).min(axis=-1)
        for i in np.flatnonzero(plain):
            yield part[i], cut_name(cuts[i], last[i], first[i]), high[i]


# --- partition of rows by one column, learned from training rows and applied to later rows

PartitionKind = Kind | Literal["single"]
"""Kind of a column; "single" means floats of 32 bits or fewer."""

MAX_VALUES = 10
"""Largest number of distinct values for which numbers or dates give one group per value."""

MAX_GROUPS = 100
"""Largest number of distinct values of a text column; columns with more are most likely ids."""


@dataclass(frozen=True)
class Seen:
    """Summary of a column that determines its groups; summaries of disjoint rows can be added.

    Parameters
    ----------
    labels : dict of str to value, or None
        Distinct values by the labels of their groups; None if there are too many for one group
        each.
    has_missing : bool
        Whether a value is missing.
    kind : {"number", "date", "text", "none"}
        Type in memory; "text" includes mixtures of numbers and dates, and "none" means that all
        values are missing.
    """

    labels: dict[str, Any] | None
    has_missing: bool
    kind: str

    @classmethod
    def of(cls, values: pd.Series[Any]) -> Seen:
        """Summarize some or all values of a column; InputError for lists, structs and maps."""
        codes, distinct = _coded(values, f"column {values.name!r}")
        has_missing = bool((codes < 0).any())
        orders = dict.fromkeys("iuf", "number") | {"M": "date"}
        kind = "none" if len(distinct) == 0 else orders.get(values.dtype.kind, "text")
        if kind != "text" and len(distinct) > MAX_GROUPS:  # two texts may have the same label
            return cls(None, has_missing, kind)
        labels = {label(value): value for value in distinct}
        return cls(labels if len(labels) <= MAX_GROUPS else None, has_missing, kind)

    def __add__(self, other: Seen) -> Seen:
        has_missing = self.has_missing or other.has_missing
        kinds = ({self.kind, other.kind} - {"none"}) or {"none"}
        kind = kinds.pop() if len(kinds) == 1 else "text"
        if self.labels is None or other.labels is None:
            return Seen(None, has_missing, kind)
        labels = self.labels | other.labels
        return Seen(labels if len(labels) <= MAX_GROUPS else None, has_missing, kind)

    @property
    def has_halves(self) -> bool:
        """Whether the column is split into halves, as it has too many values for one group each."""
        is_ordered = self.kind in ("number", "date")
        return is_ordered and (self.labels is None or len(self.labels) > MAX_VALUES)


@dataclass(frozen=True)
class Partition:
    """Disjoint groups of rows by the values of a column, to which later rows can be assigned.

    Later rows must first be read by the schema of the training table if their format may differ.

    Parameters
    ----------
    column : str
        Name of the column.
    values : tuple of str
        Values as text, one group per value; empty if the column is split into halves.
    cut : str or None
        Cut between the two halves; values at or below it are in the first.
    has_missing : bool
        Whether missing values are a group.
    kind : {"number", "single", "category", "boolean", "date", "other"}
        Kind of the column in training.

    Examples
    --------
    >>> partition = Partition.learn(pd.Series([2, 1, None]), "sex", source="loans.csv")
    >>> partition.labels(pd.Series([1.0, 3.0])).tolist()
    ['sex = 1', None]
    """

    column: str
    values: tuple[str, ...] = ()
    cut: str | None = None
    has_missing: bool = False
    kind: PartitionKind = "other"

    @classmethod
    def learn(
        cls, values: pd.Series[Any], name: str, *, source: str, seen: Seen | None = None
    ) -> Self:
        """Learn the groups of a column.

        Parameters
        ----------
        values : Series
            The column, or a sample of its rows, from which the median is estimated.
        name : str
            Name of the column.
        source : str
            Name of the table, for messages.
        seen : Seen, optional
            Summary of all rows, if `values` is a sample.

        Raises
        ------
        InputError
            If text has more than 100 distinct values, or values are lists, structs or maps.
        """
        if seen is None:
            with about(source):
                seen = Seen.of(values.rename(name))
        kind: PartitionKind = "single" if is_single(values) else kind_of(unpacked(values))
        if seen.has_halves:
            # if all values of the sample are missing, there is no median
            present = values.dropna()
            cut = None if present.empty else median_cut(present)
            return cls(name, (), cut, seen.has_missing, kind)
        if seen.labels is None:
            count = values.dropna().map(label).nunique()
            got = count if count > MAX_GROUPS else f"more than {MAX_GROUPS}"
            rule = f"have at most {MAX_GROUPS} distinct values"
            raise bad_input(f"{source}: column {name!r}", rule, got, "merge the rare values")
        order = None if seen.kind == "text" else seen.labels.__getitem__
        return cls(name, tuple(sorted(seen.labels, key=order)), None, seen.has_missing, kind)

    @property
    def groups(self) -> list[Group]:
        """The groups, in the order of their masks."""
        if self.cut is None:
            groups = [Group(self.column, "=", value) for value in self.values]
        else:
            groups = [Group(self.column, "<=", self.cut), Group(self.column, ">", self.cut)]
        return groups + ([Group(self.column, "missing")] if self.has_missing else [])

    @property
    def names(self) -> list[str]:
        """Names of the groups, such as `age <= 50`."""
        return [group.name for group in self.groups]

    def codes(self, values: pd.Series[Any]) -> Ints:
        """Return the index in `groups` of each row's group; -1 for a value without a group."""
        missing = values.isna().to_numpy(dtype=bool)
        if self.cut is None:
            codes = self._codes_of_values(values)
        else:
            codes = np.full(len(values), -1, dtype=np.intp)
            # missing values are in neither half, so they are not compared
            if not missing.all():
                low = at_or_below(values[~missing], self.cut, learned_single=self.kind == "single")
                codes[~missing] = np.where(low, 0, 1)
        if self.has_missing:
            codes[missing] = len(self.groups) - 1
        return codes

    def masks(self, values: pd.Series[Any]) -> Groups:
        """Return the groups with their rows as masks."""
        codes = self.codes(values)
        return Groups((group, codes == i) for i, group in enumerate(self.groups))

    def labels(self, values: pd.Series[Any]) -> NDArray[np.object_]:
        """Return the name of each row's group, shape (n,); None for a value without a group."""
        names: Any = [*self.names, None]  # code -1 selects the last entry
        return np.array(names, dtype=object)[self.codes(values)]

    def _codes_of_values(self, values: pd.Series[Any]) -> Ints:
        codes, distinct = _coded(values, f"column {self.column!r}")
        place = {shown: i for i, shown in enumerate(self.values)}
        found = np.array([*(place.get(label(value), -1) for value in distinct), -1], dtype=np.intp)
        new = np.flatnonzero(found[:-1] < 0)
        if new.size and self.kind == "number" and is_single(values):
            found[new] = self._places_of_single(np.asarray(distinct, dtype=np.float64)[new])
        return found[codes]  # code -1, a missing value, selects the last entry

    def _places_of_single(self, numbers: NDArray[np.float64]) -> Ints:
        """Match 32-bit numbers with values that had 64 bits in training; -1 without a match."""
        known = np.array([float(value) for value in self.values])
        # whole numbers above 2^53 are ids, which floats may not distinguish
        usable = np.flatnonzero(np.abs(known) < EXACT_WHOLE)
        if usable.size == 0:
            return np.full(numbers.size, -1, dtype=np.intp)
        nearest = usable[np.abs(numbers[:, None] - known[usable]).argmin(axis=1)]
        with np.errstate(over="ignore"):
            is_same = numbers.astype(np.float32) == known[nearest].astype(np.float32)
        return np.where(is_same, nearest, -1)

    def to_state(self) -> dict[str, Any]:
        """Return the partition as JSON values."""
        values = tuple(group.value for group in self.groups)
        names = tuple(self.names)
        return {
            "name": self.column,
            "groups": names,
            "values": values,
            "kind": self.kind,
            "cut": self.cut,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild a partition from the output of `to_state`."""
        fields = {"column": state["name"], "cut": state["cut"], "kind": state["kind"]}
        values = [value for value in state["values"] if value is not None]
        fields |= {"values": values if fields["cut"] is None else []}
        return cls(**typed_fields(cls, fields), has_missing=None in state["values"])


def _coded(values: pd.Series[Any], place: str) -> tuple[Ints, Any]:
    """Return one code per row, -1 if missing, and the distinct values for the group names."""
    codes, distinct = coded(values, place)
    # an index would convert 32-bit floats to Python floats, whose text has other digits
    return codes, np.asarray(distinct) if getattr(distinct.dtype, "kind", "") == "f" else distinct
