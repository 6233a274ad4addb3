"""Groups of rows: by a column, given as masks, labels or names, and rules on several columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from operator import ge, gt, le, lt
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._escape import JOINS, OR_MISSING, as_value
from evenhand._format import count
from evenhand._kinds import OutcomeKind
from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    Mask,
    about,
    bad_input,
    check_choice,
    check_column,
    coded,
    read_state,
    typed_fields,
)
from evenhand.results import plain
from evenhand.tables.values import (
    ORDERED,
    ColumnKind,
    Series,
    as_pandas,
    as_table,
    column_kind,
    column_of,
    level,
    missing,
    moments,
    of_levels,
    unpacked,
)

if TYPE_CHECKING:
    from evenhand.forecast import Forecast

EVERYONE = "everyone"
"""Name of the group of all rows, which no other group may have."""

Operator = Literal["=", "!=", "<", "<=", ">", ">=", "missing", "present"]

WORDS = {"=": "is", "!=": "is not", "missing": "is missing", "present": "is not missing"}
"""Operators in rules, which are sentences. Group names are short, with the operators themselves."""


@dataclass(frozen=True)
class Group:
    """Definition of a group of rows: a comparison of a column with a value, or a given mask.

    Parameters
    ----------
    column : str or None
        Column that defines the group; None for a mask.
    operator : {"=", "!=", "<", "<=", ">", ">=", "missing", "present"} or None
        Comparison operator; None for a mask.
    value : str or None
        Value compared with, as text; None for "missing" and "present". The name of a mask.

    Examples
    --------
    >>> Group("age", "<=", "50").name, Group.given("hours > 40").column
    ('age <= 50', None)
    """

    column: str | None
    operator: Operator | None
    value: str | None = None

    @classmethod
    def given(cls, name: str) -> Self:
        """Return the group of a mask with a given name."""
        return cls(None, None, name)

    @property
    def name(self) -> str:
        """Name of the group in tables, such as `age <= 50`."""
        return self._text(self.operator)

    @property
    def words(self) -> str:
        """Comparison as part of a sentence, such as `job is cook`."""
        return self._text(WORDS.get(self.operator or "", self.operator))

    def _text(self, operator: str | None) -> str:
        words = (self.column, operator, self.value)
        return " ".join(word for word in words if word is not None)


@dataclass(frozen=True)
class Condition:
    """Conjunction of comparisons of one column.

    Parameters
    ----------
    comparisons : tuple of Group
        One comparison, or the two ends of a range.
    or_missing : bool, default False
        Whether rows with a missing value are included as well.

    Examples
    --------
    >>> print(Condition((Group("age", ">", "30"), Group("age", "<=", "50")), or_missing=True))
    age > 30 and age <= 50 (or missing)
    """

    comparisons: tuple[Group, ...]
    or_missing: bool = False

    def __str__(self) -> str:
        words = " and ".join(group.words for group in self.comparisons)
        return f"{words} (or missing)" if self.or_missing else words


class Groups(Mapping[str, Mask]):
    """Named groups of the same rows: masks by name, with the definition of each group.

    Groups whose members are known only by probability are carried beside the masks. They have no
    mask, so they are not items of the mapping: what needs known members leaves them out.

    Parameters
    ----------
    pairs : iterable of (Group, ndarray of bool or float)
        Groups with unique names. Their rows as masks; or, for groups known by probability, each
        row's probability of membership, between 0 and 1.

    Examples
    --------
    >>> groups = Groups([(Group.given("north"), np.array([True, False])),
    ...                  (Group.given("south"), np.array([0.2, 0.9]))])
    >>> list(groups), groups.names, groups["north"]
    (['north'], ('north', 'south'), array([ True, False]))
    """

    def __init__(self, pairs: Iterable[tuple[Group, NDArray[Any]]] = ()) -> None:
        every = {pair[0].name: pair for pair in pairs}
        self._known = {name: one for name, one in every.items() if one[1].dtype == np.bool_}
        self._probable = {name: one for name, one in every.items() if name not in self._known}

    def __getitem__(self, name: str) -> Mask:
        return self._known[name][1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def pairs(self) -> Iterable[tuple[Group, Mask]]:
        """Return the groups of known members with their masks."""
        return self._known.values()

    def probable(self) -> Iterable[tuple[Group, Floats]]:
        """Return the groups known by probability with each row's probability of membership."""
        return self._probable.values()

    def every(self) -> list[tuple[Group, NDArray[Any]]]:
        """Return all groups with their masks or probabilities, those known by probability last."""
        return [*self.pairs(), *self.probable()]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all groups, those known by probability last."""
        return (*self._known, *self._probable)

    def take(self, rows: NDArray[Any]) -> Groups:
        """Return the groups restricted to some rows, without groups that become empty."""
        # the error of an empty group is undefined
        return Groups((one, values[rows]) for one, values in self.every() if values[rows].any())

    def without(self, names: Iterable[str]) -> Groups:
        """Return all groups except those of these names."""
        left_out = set(names)
        return Groups(pair for pair in self.every() if pair[0].name not in left_out)

    def known(self) -> Groups:
        """Return the groups of known members."""
        return Groups(self.pairs())


# --- values as they are compared with the text of a group, and cuts at the median

EXACT_WHOLE = 2**53
"""Smallest whole number from which two whole numbers may be the same float."""


ZONE = re.compile(r" ?(Z|[+-][0-9]{2}:?[0-9]{2})$")
"""Time zone at the end of a time."""


def comparable(present: Series) -> NDArray[Any]:
    """Return non-missing numbers or dates in the form in which they are compared.

    Dates are in local time of their zone. Whole numbers stay integers if two of them may be one
    float, and floats of 32 bits or fewer keep their digits.
    """
    plain = unpacked(present)
    if plain.dtype.kind == "M":
        return plain.dt.tz_localize(None).to_numpy()
    if column_kind(plain) == "date":
        return moments(plain)
    if plain.dtype in (np.float32, np.float16):
        return plain.to_numpy()
    plain = plain.infer_objects() if plain.dtype == object else plain
    numbers: NDArray[Any] = plain.to_numpy(dtype=float)
    if plain.dtype.kind in "iu" and np.abs(numbers).max(initial=0) >= EXACT_WHOLE:
        return plain.to_numpy(dtype=np.int64 if plain.dtype.kind == "i" else np.uint64)
    return numbers


def point_of(text: str, values: NDArray[Any]) -> Any:
    """Return a number or date in the type of the values it is compared with.

    So 0.1 is the same number in floats of 32 and of 64 bits. ValueError if the text is neither.
    """
    point: Any
    if values.dtype.kind == "M":
        # numpy reads 20200131 as a year
        point = np.datetime64("NaT" if text.isdigit() and len(text) != 4 else ZONE.sub("", text))
    elif text.lstrip("-").isdigit() and values.dtype.kind != "f":
        point = int(text)  # large ids keep their digits
    else:
        with np.errstate(over="ignore"):
            point = values.dtype.type(text) if values.dtype.kind == "f" else float(text)
    if pd.isna(point):
        raise ValueError(text)
    return point


def codes_of(values: Series, texts: Sequence[str], place: str) -> Ints:
    """Return the number of the text that each value prints as, or equals; -1 if there is none."""
    kind = column_kind(unpacked(values))
    if kind not in ORDERED:
        shown = [text.capitalize() for text in texts] if kind == "boolean" else texts
        position = {text: i for i, text in enumerate(shown)}
        return of_levels(values, place, lambda one: position.get(one, -1), -1)
    found = np.full(len(values), -1)
    is_there = ~missing(values)
    codes = found[is_there]
    present = comparable(values[is_there])
    for i, text in enumerate(texts):
        with suppress(ValueError):
            codes[present == point_of(text, present)] = i
    found[is_there] = codes
    return found


def median_cut(present: Series) -> str:
    """Return the text of the cut that halves a column without missing values.

    It is the median of the finite values, and for dates and large whole numbers one of the values:
    the lower median. Where it is the largest value, it is the next smaller one.
    """
    values = comparable(present)
    top = values.max()
    cut: Any = None
    if values.dtype.kind == "f":
        finite = values[np.isfinite(values)].astype(float)
        with np.errstate(over="ignore"):
            cut = np.median(finite) if finite.size else np.inf
    if cut is None or not (np.isfinite(cut) and cut < top):
        middle = (values.size - 1) // 2
        cut = np.partition(values, middle)[middle]
    if cut == top and (below := values[values < top]).size:
        cut = below.max()
    if values.dtype.kind == "M":
        return str(np.datetime_as_string(cut, unit="auto"))
    above = values[values > cut]
    first = above.min() if above.size else np.nextafter(cut, np.inf)
    return cut_name(cut, values[values <= cut].max(), first)


def cut_name(cut: Any, last: Any, first: Any) -> str:
    """Return a cut as text with the fewest digits, at least six, that separate its two sides.

    These end at `last`, the largest value at or below the cut, and begin at `first`, the smallest
    above it. Whole numbers of numpy are written exactly, and others below 10^15 without an
    exponent.

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
        if last <= type(last)(shown) < first:
            break
    rounded = float(shown)
    return str(int(rounded)) if rounded.is_integer() and abs(rounded) < 1e15 else shown


# --- partition of rows by one column, learned from training rows and applied to later rows

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
    kind : {"number", "category", "boolean", "date", "other", "none"}
        Kind of the values; "other" includes those of parts of different kinds, and "none" means
        that all values are missing.
    """

    labels: dict[str, Any] | None
    has_missing: bool
    kind: str

    @classmethod
    def of(cls, values: Series) -> Seen:
        """Summarize some or all values of a column; InputError for lists, structs and maps."""
        codes, distinct = coded(values, f"column {values.name!r}")
        has_missing = bool((codes < 0).any())
        kind = column_kind(values) if len(distinct) else "none"
        if values.dtype.kind == "f":
            # an index would convert 32-bit floats to Python floats, whose text has other digits
            distinct = np.asarray(distinct)
        if kind in ORDERED and len(distinct) > MAX_GROUPS:  # two texts may have the same label
            return cls(None, has_missing, kind)
        labels = {level(value): value for value in distinct}
        return cls(labels if len(labels) <= MAX_GROUPS else None, has_missing, kind)

    def __add__(self, other: Seen) -> Seen:
        has_missing = self.has_missing or other.has_missing
        kinds = ({self.kind, other.kind} - {"none"}) or {"none"}
        kind = kinds.pop() if len(kinds) == 1 else "other"
        if self.labels is None or other.labels is None:
            return Seen(None, has_missing, kind)
        labels = self.labels | other.labels
        return Seen(labels if len(labels) <= MAX_GROUPS else None, has_missing, kind)


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
    kind : {"number", "category", "boolean", "date", "other"}
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
    kind: ColumnKind = "other"

    @classmethod
    def learn(cls, values: Series, name: str, *, source: str, seen: Seen | None = None) -> Self:
        """Learn the groups of a column, as `group_columns` defines them.

        `seen` is a summary of all rows where `values` are a sample, from which the median is
        estimated. Raises InputError if text has more than 100 distinct values, or values are lists,
        structs or maps.
        """
        if seen is None:
            with about(source):
                seen = Seen.of(values.rename(name))
        kind = column_kind(unpacked(values))
        is_many = seen.labels is None or len(seen.labels) > MAX_VALUES
        if is_many and seen.kind in ORDERED:
            # if all values of the sample are missing, there is no median
            present = values.dropna()
            cut = None if present.empty else median_cut(present)
            return cls(name, (), cut, seen.has_missing, kind)
        if seen.labels is None:
            n = values.dropna().map(level).nunique()
            got = n if n > MAX_GROUPS else f"more than {MAX_GROUPS}"
            rule = f"have at most {MAX_GROUPS} distinct values"
            raise bad_input(f"{source}: column {name!r}", rule, got, "merge the rare values")
        order = seen.labels.__getitem__ if seen.kind == "number" else None
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

    def codes(self, values: Series) -> Ints:
        """Return the index in `groups` of each row's group; -1 for a value without a group."""
        place = f"column {self.column!r}"
        if self.cut is None:
            codes = codes_of(values, self.values, place)
        else:
            codes = np.where(_meets(values, self.groups[0], place), 0, 1)
        codes[missing(values)] = len(self.groups) - 1 if self.has_missing else -1
        return codes

    def masks(self, values: Series) -> Groups:
        """Return the groups with their rows as masks."""
        codes = self.codes(values)
        return Groups((group, codes == i) for i, group in enumerate(self.groups))

    def labels(self, values: Series) -> NDArray[np.object_]:
        """Return the name of each row's group, shape (n,); None for a value without a group."""
        names: Any = [*self.names, None]  # code -1 selects the last entry
        return np.array(names, dtype=object)[self.codes(values)]


# --- groups of rows defined by the columns of a table: values, halves, missing values


def group_columns(table: pd.DataFrame, names: Iterable[str], *, source: str) -> Groups:
    """Return the named groups that columns define, for an audit.

    Text, booleans, categories, and numbers or dates with at most 10 distinct values give one group
    per value, such as `sex = 2`. Other numbers and dates are split into two halves at the median,
    `age <= 50` and `age > 50`, or at the next smaller value if no value is above the median. The
    cut is rounded only so far that the rows still match the names of the halves. Dates and whole
    numbers of 2^53 and more are cut at one of their values. Missing values are a separate group,
    `age missing`. The groups of a column are a partition of the rows, and none is empty. Raises
    InputError for an unknown column, and for text with more than 100 distinct values.

    Examples
    --------
    >>> groups = group_columns(pd.DataFrame({"sex": [2, 1, None]}), ["sex"], source="loans.csv")
    >>> for name, rows in groups.items():
    ...     print(name, rows.tolist())
    sex = 1 [False, True, False]
    sex = 2 [True, False, False]
    sex missing [False, False, True]
    """
    columns = ((name, column_of(table, name, source)) for name in names)
    return Groups(
        pair
        for name, values in columns
        for pair in Partition.learn(values, name, source=source).masks(values).pairs()
    )


def feature_groups(table: pd.DataFrame) -> Iterator[tuple[str, Groups | str]]:
    """Yield each column of a table with its groups, or the reason in words why it has none."""
    for name, values in table.items():
        try:
            yield str(name), Partition.learn(values, str(name), source="X").masks(values)
        except InputError:  # ids and free text, which must not stop the scan of other features
            yield str(name), f"more than {MAX_GROUPS} distinct values"


# --- named groups given as masks, labels or column names, interpreted alike by every function


def check_groups(
    groups: Any,
    n_samples: int,
    X: Any = None,
    *,
    is_block: bool = False,
    allow_probable: bool = False,
) -> Groups:
    """Return named groups of rows from any accepted form.

    These are a DataFrame or Series of any library, or a dict of name to values. Booleans are a
    mask, one group of that name. Floats that are all between 0 and 1, with one strictly between,
    are each row's probability of membership in one group of that name (`allow_probable`). Other
    values are labels, which define groups as in `group_columns`. A sequence of names refers to
    columns of `X`, which always define groups as in `group_columns`. Rows are matched by position,
    and pandas groups must have the index of `X`, which is the outcomes if there is no table.

    In a block of a larger table (`is_block`) a group may be empty, and labels are refused, as their
    groups would depend on the block.
    """
    found: dict[str, tuple[Group, NDArray[Any]]] = {}
    for place, group, values in _formed(groups, n_samples, X, is_block):
        if group.name == EVERYONE:
            reserved = f"the name {EVERYONE!r} is reserved for all rows"
            raise InputError(f"{place}: {reserved}; rename the group")
        if group.name in found:
            raise InputError(f"{place}: two groups have the name {group.name!r}; rename one")
        if not is_block and not values.any():
            raise InputError(f"{place} is an empty group; remove it")
        if values.dtype != np.bool_ and not allow_probable:
            rule = "be booleans or labels, as members must be known here"
            remedy = "audit this group, or name a column of X to halve it at its median"
            raise bad_input(place, rule, "probabilities of membership", remedy)
        found[group.name] = (group, values)
    return Groups(found.values())


def _formed(
    groups: Any, n: int, X: Any, is_block: bool
) -> Iterator[tuple[str, Group, NDArray[Any]]]:
    """Yield the place for messages, the definition and the mask or membership of each group."""
    given = _values_by_name(groups, n, X)
    if isinstance(given, Groups):
        for group, values in given.every():
            yield f"groups[{group.name!r}]", group, values
        return
    for name, values in given:
        place = f"groups[{name!r}]"
        column = _one_column(values, place, n, X)
        # categories of True and False are labels, so that missing values can be a separate group
        if not isinstance(column.dtype, pd.CategoricalDtype) and column_kind(column) == "boolean":
            yield place, Group.given(str(name)), _mask(column, place)
        elif is_block:  # another block may have other labels or another median
            got = f"{column.dtype} of shape ({n},)"
            remedy = "make masks, as a block may not have all labels"
            raise bad_input(place, f"be {n} booleans", got, remedy)
        elif are_probabilities(column):
            yield place, Group.given(str(name)), column.to_numpy(dtype=float)
        else:
            partition = Partition.learn(column, str(name), source="groups")
            for group, mask in partition.masks(column).pairs():
                yield place, group, mask


def _values_by_name(groups: Any, n: int, X: Any) -> Groups | Iterable[tuple[Any, Any]]:
    """Return the values of each name, or the groups that columns of X define."""
    if groups is None:
        return ()
    if isinstance(groups, Mapping):
        return groups if isinstance(groups, Groups) else groups.items()
    table = as_pandas(groups, "groups")
    if isinstance(table, pd.Series):
        if table.name in (None, ""):
            raise InputError("groups is a Series without a name; write {'name': series}")
        return [(table.name, groups)]
    if isinstance(table, pd.DataFrame):
        _check_match("groups", groups, n, X)
        return [(name, values.array) for name, values in table.items()]
    names, columns = check_names(groups), as_pandas(X)
    if not isinstance(columns, pd.DataFrame):
        raise bad_input("groups", "be masks by name, as X is not a table", type(groups).__name__)
    return group_columns(as_table(columns, n, per="outcome"), names, source="X")


def _check_match(place: str, values: Any, n: int, X: Any) -> None:
    """Refuse another length or another index than that of X."""
    if len(values) != n:
        raise bad_input(place, f"have one row per outcome ({n})", f"{len(values)} rows")
    refuse_other_index(place, values, X)


def refuse_other_index(place: str, values: Any, X: Any) -> None:
    """Refuse pandas values with another index than that of X, as rows are matched by position."""
    # a different index most likely means a different order of the rows
    are_indexed = all(isinstance(one, pd.Series | pd.DataFrame) for one in (values, X))
    if are_indexed and len(values) == len(X) and not values.index.equals(X.index):
        of = "y" if isinstance(X, pd.Series) else "X"
        raise InputError(
            f"{place} and {of} have different indexes, but rows are matched by position; reorder"
            f" with .loc[{of}.index], or pass .to_numpy() if the rows are in the order of {of}"
        )


def _one_column(values: Any, place: str, n: int, X: Any) -> Series:
    """Convert values of any library to a column without an index."""
    series = as_pandas(values, place)
    if isinstance(series, pd.Series):
        _check_match(place, values, n, X)
        # without its index, by which pandas would reorder the rows
        return pd.Series(series.array, name=series.name)
    array = values if isinstance(values, pd.api.extensions.ExtensionArray) else np.asarray(values)
    if array.shape != (n,):
        rule = f"be {n} booleans or labels"
        raise bad_input(place, rule, f"{array.dtype} of shape {array.shape}")
    return pd.Series(array)


def are_probabilities(column: Series) -> bool:
    """Whether values are floats from 0 to 1, none missing, with at least one strictly between.

    Such values given by name are probabilities of membership: labels and codes are whole numbers.

    Examples
    --------
    >>> are_probabilities(pd.Series([0.0, 0.4])), are_probabilities(pd.Series([0.0, 1.0]))
    (True, False)
    """
    if column.dtype.kind != "f" or column.isna().any():
        return False
    values = column.to_numpy(dtype=float)
    return bool(((values >= 0) & (values <= 1)).all() and ((values > 0) & (values < 1)).any())


def _mask(column: Series, place: str) -> Mask:
    is_missing = missing(column)
    if is_missing.any():
        n = count(is_missing.sum(), "missing value")
        raise InputError(
            f"{place} is a mask with {n}, the first in row {np.argmax(is_missing)} (counted"
            " from 0); fill them, or make them a separate group with .astype('category')"
        )
    return column.to_numpy(dtype=bool)


def check_names(groups: Any) -> list[Any]:
    """Return groups given as column names; InputError for any other form."""
    # rows that are read in parts are not in memory and cannot be matched with masks
    table = as_pandas(groups, "groups")
    if isinstance(table, str | Mapping | pd.DataFrame | pd.Series):
        is_name = isinstance(groups, str)
        remedy = f"write [{groups!r}]" if is_name else "add the groups to the table as columns"
        raise bad_input("groups", "be a list of column names", type(groups).__name__, remedy)
    names = list(groups)
    for name in names:
        if isinstance(name, bool | np.bool_) or not isinstance(name, str | int | np.integer):
            remedy = "pass masks as {'name': mask}"
            raise bad_input("groups", "contain column names", type(name).__name__, remedy)
    return names


# --- text of rules on columns: parsing against the known columns of a table, and quoting

OPERATORS: dict[str, Operator] = {
    "is not missing": "present",
    "is missing": "missing",
    "present": "present",
    "missing": "missing",
    "is not": "!=",
    "is": "=",
    "!=": "!=",
    "<=": "<=",
    ">=": ">=",
    "==": "=",
    "=": "=",
    "<": "<",
    ">": ">",
}
"""Operators as text. An operator that begins with another one comes before it."""

QUOTED = r'"(?:[^"\\]|\\.)*"'

ORDERS = {"<": lt, "<=": le, ">": gt, ">=": ge}

LOOKS_LIKE_COMPARISON = re.compile(r"[<>=]|\bis\b|\bmissing\b|\bpresent\b")

AND = re.compile(" and ")


def _pattern(columns: Sequence[str]) -> re.Pattern[str]:
    """Return the pattern of one comparison, up to the next one or to the end of the text."""
    # longer names first: the column "age and sex" takes precedence over the column "age"
    known = "|".join(map(re.escape, sorted(columns, key=len, reverse=True))) or "(?!)"
    texts = list(OPERATORS)
    # operators without a value, words, which need spaces around them, and signs
    alone, words, signs = ("|".join(part) for part in (texts[:4], texts[4:6], texts[6:]))
    value = rf"{QUOTED}|(?!{QUOTED})\S.*?"
    after = rf" and \s*(?=(?:{known})(?:\s+(?:{alone}|{words})(?!\S)|\s*(?:{signs})))"
    return re.compile(
        rf"\s*(?P<column>{known})(?:\s+(?P<alone>{alone})"
        rf"|(?:\s+(?P<word>{words})(?!\S)|\s*(?P<sign>{signs})(?![<>=]))\s*(?P<value>{value}))"
        rf"\s*(?P<missing>{re.escape(OR_MISSING)})?\s*(?:\Z|{after})",
        re.DOTALL,
    )


def _is_read_well(comparison: re.Match[str]) -> bool:
    """Whether a value contains no comparison, such as one of a column whose name is misspelled."""
    value = comparison["value"]
    if value is None or re.fullmatch(QUOTED, value):
        return True
    # an order compares numbers and dates, which are checked with the column
    is_equality = OPERATORS[comparison["sign"] or comparison["word"]] in ("=", "!=")
    others = (JOINS if is_equality else AND).split(value)[1:]
    is_cut_off = "and" in (value.split(" ")[0], value.split(" ")[-1])
    return not (is_cut_off or any(map(LOOKS_LIKE_COMPARISON.search, others)))


def _error(text: str, columns: Sequence[str], source: str) -> InputError:
    """Return the error of a text that cannot be parsed, about its first wrong comparison."""
    for part in text.split(" and "):
        found = re.match(r"\s*(.+?)\s*(?:[<>=!]|\bis\b|\bmissing\b|\bpresent\b)", part)
        if found and found[1] not in columns:
            try:
                check_column(found[1], columns, source)
            except InputError as error:
                return error
    rule = "be comparisons such as 'bmi > 0.03 and sex = 2'"
    remedy = 'join them by "and", and put values that contain operators in double quotes'
    return bad_input("a rule", rule, repr(text), remedy)


# --- rules that define groups of rows: conjunctions of conditions on the columns of a table


@dataclass(frozen=True, repr=False)
class GroupRule:
    """Group of rows that meet every one of some conditions on columns.

    The text of a rule defines its rows: a value is compared with the number that is printed.

    Parameters
    ----------
    conditions : tuple of Condition
        Conditions that all must be true; at least one.

    Notes
    -----
    A missing value meets no comparison except `missing` and `!=`: `job != cook` selects all rows
    that `job = cook` does not. A condition that prints `(or missing)` selects missing values, too.
    Dates are compared in the local time of their zone.

    Examples
    --------
    >>> table = pd.DataFrame({"bmi": [0.01, 0.05, 0.07], "sex": [2, 2, 1]})
    >>> rule = GroupRule.parse("bmi > 0.03 and sex = 2", table.columns)
    >>> rule.name, rule.mask(table).tolist()
    ('bmi > 0.03 and sex = 2', [False, True, False])
    """

    conditions: tuple[Condition, ...]

    def __post_init__(self) -> None:
        if not self.conditions:
            raise InputError("a rule has no conditions; give at least one")
        for group, _ in self.comparisons:
            if group.column is None or group.operator is None:
                raise InputError(
                    f"the group {group.name!r} is a mask without a rule, which cannot be applied to"
                    " other rows; pass its mask, or a rule on columns"
                )
            if (group.value is None) != (group.operator in ("missing", "present")):
                raise InputError(f"the comparison {group.name!r} has a wrong number of values")

    @classmethod
    def of(cls, *groups: Group) -> Self:
        """Return the rule of one group, or of the intersection of several.

        Raises InputError if a group is a mask, which has no rule.
        """
        return cls(tuple(Condition((group,)) for group in groups))

    @classmethod
    def parse(cls, text: str, columns: Iterable[Any], *, source: str = "the table") -> Self:
        """Read a rule such as `bmi > 0.03 and sex = 2`; InputError if it is none on these columns.

        Comparisons of columns with values are joined by `and`. Operators are `=`, `!=`, `<`, `<=`,
        `>`, `>=`, `is`, `is not`, `missing`, `is missing` and `is not missing`; a comparison may
        end with `(or missing)`. A value with ` and ` and an operator needs double quotes. Names of
        columns may contain spaces and the word `and`.
        """
        names, found, at = [str(column) for column in columns], list[Condition](), 0
        pattern = _pattern(names)
        while at < len(text) or not found:
            match = pattern.match(text, at)
            if match is None or not _is_read_well(match):
                raise _error(text, names, source)
            value, at = match["value"], match.end()
            if value is not None and re.fullmatch(QUOTED, value):
                value = re.sub(r"\\(.)", r"\1", value[1:-1])
            operator = OPERATORS[match["alone"] or match["sign"] or match["word"]]
            comparison = Group(match["column"], operator, value)
            found.append(Condition((comparison,), match["missing"] is not None))
        return cls(tuple(found))

    @property
    def name(self) -> str:
        """The rule as text, which `parse` reads."""
        return " and ".join(_text(group, or_missing) for group, or_missing in self.comparisons)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def comparisons(self) -> list[tuple[Group, bool]]:
        """The comparisons of all conditions, and whether missing values meet each."""
        return [(group, one.or_missing) for one in self.conditions for group in one.comparisons]

    @property
    def columns(self) -> list[str]:
        """Columns that the rule reads, each once."""
        return list(dict.fromkeys(str(group.column) for group, _ in self.comparisons))

    def mask(self, table: Any) -> Mask:
        """Return the rows that meet the rule; the columns of an array are named x0, x1, ...

        Raises InputError if a column is missing or cannot be compared with the value of the rule.
        """
        rows = as_table(table)
        inside = np.ones(len(rows), dtype=bool)
        for group, or_missing in self.comparisons:
            values = column_of(rows, str(group.column), "X")
            place = f"X: column {group.column!r}"
            inside &= _meets(values, group, place) | (missing(values) & or_missing)
        return inside

    def to_state(self) -> list[dict[str, Any]]:
        """Return the rule as JSON values."""
        return [plain(condition) for condition in self.conditions]

    @classmethod
    def from_state(cls, state: Sequence[Mapping[str, Any]]) -> Self:
        """Rebuild a rule from the output of `to_state`; InputError if it is anything else."""
        with read_state("GroupRule.to_state"):
            return cls(tuple(_condition(**one) for one in state))


def _condition(comparisons: Sequence[Mapping[str, Any]], or_missing: bool) -> Condition:
    """Rebuild a condition from the output of `GroupRule.to_state`."""
    groups = (Group(**typed_fields(Group, group)) for group in comparisons)
    return Condition(tuple(groups), bool(or_missing))


def _text(group: Group, or_missing: bool) -> str:
    """Return a comparison as text that can be parsed."""
    shown = group if group.value is None else replace(group, value=as_value(group.value))
    return f"{shown.name} {OR_MISSING}" if or_missing else shown.name


def _meets(values: Series, group: Group, place: str) -> Mask:
    """Return the rows that meet a comparison, without missing ones unless it is about them."""
    is_missing = missing(values)
    found: Mask = np.zeros(len(values), dtype=bool)
    if group.value is None:
        found = is_missing == (group.operator == "missing")
    elif group.operator in ("=", "!="):
        found = (codes_of(values, [group.value], place) == 0) == (group.operator == "=")
    else:
        found[~is_missing] = _ordered(values[~is_missing], group, place)
    return found


def _ordered(present: Series, group: Group, place: str) -> Mask:
    """Compare non-missing numbers or dates with the value of `<`, `<=`, `>` or `>=`."""
    if present.empty:
        return np.zeros(0, dtype=bool)
    kind = column_kind(unpacked(present))
    if kind not in ORDERED:
        rule = f"contain numbers or dates to be compared by {group.operator}"
        remedy = "use = or !=, or convert the column, such as with pandas.to_datetime"
        raise bad_input(place, rule, f"values of kind {kind!r}", remedy)
    text = str(group.value)
    try:
        values = comparable(present)
        point = point_of(text, values)
    except ValueError as error:
        what = "a date such as 2020-01-31" if kind == "date" else "a number"
        rule = f"compare column {group.column!r} with {what}"
        raise bad_input("the rule", rule, repr(text)) from error
    return ORDERS[str(group.operator)](values, point)


# --- values of a person's own forecast, which rules may name as columns


def forecast_values(forecast: Forecast, names: Iterable[str]) -> pd.DataFrame:
    """Return values of each person's own forecast, on average over several draws.

    One column per name of `OWN_VALUES`, in units of the outcome or probabilities from 0 to 1. The
    mean is the median where it is not finite, and the width of a forecast with an atom at the end
    of its range is that of its other part. Raises InputError for another name, and for a value of
    forecasts of another kind.
    """
    wanted = {name: OWN_VALUES[check_choice("name", name, tuple(OWN_VALUES))] for name in names}
    found = []
    for _, part in forecast.blocks():
        means = {k: value(part).reshape(len(part), -1).mean(axis=-1) for k, value in wanted.items()}
        found.append(pd.DataFrame(means, index=range(len(part))))
    return pd.concat(found, ignore_index=True)


def _event(forecast: Forecast, name: str, kind: OutcomeKind, end: str | None = None) -> Floats:
    """Return the probability of an event that forecasts of one kind have."""
    if (forecast.outcome_kind, forecast.atom_end) != (kind, end):
        raise InputError(
            f"a group is defined by {name!r}, which forecasts of kind"
            f" {str(forecast.outcome_kind)!r} do not have; define it by another of their values"
        )
    found = forecast.event_probability()
    return 1 - found if end == "low" else found


def _mean(forecast: Forecast) -> Floats:
    mean = forecast.mean()
    is_finite = np.isfinite(mean)
    return mean if is_finite.all() else np.where(is_finite, mean, forecast.ppf(0.5))


def _width(forecast: Forecast) -> Floats:
    part = forecast if forecast.atom_end is None else forecast.positive_part()
    low, high = part.interval(0.8)
    return high - low


OWN_VALUES: dict[str, Callable[[Forecast], Floats]] = {
    "predicted probability": lambda one: _event(one, "predicted probability", OutcomeKind.BINARY),
    "predicted mean": _mean,
    "predicted median": lambda one: one.ppf(0.5),
    "80% width": _width,
    "chance of zero": lambda one: _event(one, "chance of zero", OutcomeKind.HURDLE, "low"),
    "event by horizon": lambda one: _event(one, "event by horizon", OutcomeKind.HURDLE, "high"),
}
"""Functions for the values of forecasts, shape of the batch, by names that rules reserve."""
