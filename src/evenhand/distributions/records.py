"""Batches of several families, and parameters of single distributions as JSON values, for logs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from evenhand._kinds import OutcomeKind
from evenhand._validate import Floats, InputError, Ints, Mask, bad_input, check_choice
from evenhand.distributions.base import Distribution, Tail
from evenhand.distributions.wrappers import NEGLIGIBLE, Recalibrated, Support, Truncated
from evenhand.links import Link, make_link

# --- rows of several families

Part = tuple[Ints, Distribution]
"""Numbers of rows, and their distributions in this order."""


class Joined(Distribution):
    """Distributions of several batches as one batch of shape (n,).

    Parameters
    ----------
    parts : sequence of (ndarray of int, Distribution)
        Numbers of the rows of each batch, which together are 0, ..., n - 1, and the batch. All
        batches have the same number of axes, and describe the same kind of outcome.

    Examples
    --------
    >>> from evenhand.distributions import Normal, Quantiles
    >>> flat = Quantiles([0.1, 0.9], [[1.0, 9.0]])
    >>> Joined([([1], flat), ([0, 2], Normal([0.0, 5.0], 1.0))]).ppf(0.5)
    array([0., 5., 5.])
    """

    fields: ClassVar[dict[str, int | None]] = {}

    def __init__(self, parts: Sequence[tuple[ArrayLike, Distribution]]) -> None:
        self.parts: list[Part] = [(np.asarray(rows, dtype=np.intp), batch) for rows, batch in parts]
        kinds = sorted({str(batch.outcome_kind) for _, batch in self.parts})
        if len(kinds) > 1:
            got = f"several kinds ({', '.join(kinds)})"
            raise bad_input("parts", "describe outcomes of one kind", got)

    @property
    def outcome_kind(self) -> OutcomeKind:
        return self.parts[0][1].outcome_kind

    @cached_property
    def batch_shape(self) -> tuple[int, ...]:
        n = sum(rows.size for rows, _ in self.parts)
        return (n, *self.parts[0][1].batch_shape[1:])

    def take(self, rows: Any) -> Self:
        chosen = np.arange(self.batch_shape[0])[rows]
        parts: list[tuple[ArrayLike, Distribution]] = []
        for numbers, batch in self.parts:
            place = np.full(self.batch_shape[0], -1)
            place[numbers] = np.arange(numbers.size)
            inside = place[chosen]
            if (inside >= 0).any():
                parts.append((np.flatnonzero(inside >= 0), batch.take(inside[inside >= 0])))
        return type(self)(parts)

    def take_draws(self, columns: Ints) -> Self:
        return type(self)([(rows, batch.take_draws(columns[rows])) for rows, batch in self.parts])

    def expand(self) -> Self:
        return type(self)([(rows, batch.expand()) for rows, batch in self.parts])

    def _by_part(self, evaluate: Callable[..., Any], *arguments: ArrayLike) -> Floats:
        """Evaluate each batch at its rows of arguments that broadcast against the whole batch."""
        shape = np.broadcast_shapes(self.batch_shape, *(np.shape(array) for array in arguments))
        axis = len(shape) - len(self.batch_shape)
        full = [np.broadcast_to(array, shape) for array in arguments]
        parts = ((batch, [array.take(rows, axis) for array in full]) for rows, batch in self.parts)
        found: Floats = self._in_order([evaluate(batch, *some) for batch, some in parts], axis)
        return found

    def _in_order(self, found: Sequence[Any], axis: int) -> Any:
        """Join arrays, or tuples of arrays, of the batches along the axis of rows."""
        if isinstance(found[0], tuple):
            return tuple(self._in_order(arrays, axis) for arrays in zip(*found, strict=True))
        order = np.argsort(np.concatenate([rows for rows, _ in self.parts]))
        return np.concatenate(found, axis).take(order, axis)

    def tail(self, y: ArrayLike, *, left: bool = False) -> Tail:
        return Tail(*self._by_part(lambda batch, some: batch.tail(some, left=left), y))

    def point(self, tail: Tail) -> Floats:
        return self._by_part(lambda batch, *some: batch.point(Tail(*some)), *tail)

    def logpdf(self, y: ArrayLike) -> Floats:
        return self._by_part(lambda batch, some: batch.logpdf(some), y)

    def log_mass(self, y: ArrayLike) -> Floats:
        return self._by_part(lambda batch, some: batch.log_mass(some), y)

    def nodes(self, first: Floats, last: Floats, scores: Floats) -> tuple[Floats, Floats]:
        inner = [batch.nodes(first[rows], last[rows], scores) for rows, batch in self.parts]
        size = max(ends.shape[-1] for _, ends in inner)
        padded = []
        for (_, batch), both in zip(self.parts, inner, strict=True):
            place = np.minimum(np.arange(size), both[0].shape[-1] - 1)
            shape = (*batch.batch_shape, size)
            padded.append(tuple(np.broadcast_to(array[..., place], shape) for array in both))
        found: tuple[Floats, Floats] = self._in_order(padded, 0)
        return found

    def mean(self) -> Floats:
        return self._by_part(lambda batch: batch.mean())

    def std(self) -> Floats:
        return self._by_part(lambda batch: batch.std())

    def crps(self, y: ArrayLike) -> Floats:
        return self._by_part(lambda batch, some: batch.crps(some), y)


# --- records

Record = dict[str, Any]


def _concrete(kind: Any) -> list[type[Distribution]]:
    """Return the classes below one that are not abstract."""
    below = [found for child in kind.__subclasses__() for found in _concrete(child)]
    return below if inspect.isabstract(kind) else [kind, *below]


KINDS = {
    re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(): kind for kind in _concrete(Distribution)
}
"""Distributions of the package by their names in records."""


def to_records(distribution: Distribution) -> list[Record]:
    """Return the parameters of each distribution of a batch, as JSON values.

    Parameters
    ----------
    distribution : Distribution
        Batch of shape (n,).

    Returns
    -------
    list of dict
        A record for each distribution, which does not depend on the others of the batch: `family`
        and its parameters, finite numbers. The families of the package and their wrappers are
        stored exactly.

    Raises
    ------
    InputError
        If the batch has another shape, or its family is not one of the package.

    Examples
    --------
    >>> from evenhand.distributions import Normal
    >>> records = to_records(Normal([0.0, 10.0], 2.0))
    >>> records[1]
    {'family': 'normal', 'loc': 10.0, 'scale': 2.0}
    >>> from_records(records).cdf(10.0).round(3)
    array([1. , 0.5])
    """
    shape = distribution.batch_shape
    if len(shape) != 1:
        remedy = "give one draw per person"
        raise bad_input("distribution", "have one axis, shape (n,)", f"shape {shape}", remedy)
    return _records(distribution, shape[0])


def _fields(kind: type[Distribution]) -> dict[str, int | None]:
    """Return the parameters in a record."""
    return getattr(kind, "recorded", kind.fields)


def _records(batch: Distribution, n: int) -> list[Record]:
    """Return the records of a batch that broadcasts to shape (n,)."""
    if isinstance(batch, Joined):
        found: dict[int, Record] = {}
        for rows, part in batch.parts:
            found |= zip(rows.tolist(), _records(part, rows.size), strict=True)
        # a batch of one row is shared by all
        return [found[row if len(found) > 1 else 0] for row in range(n)]
    # the exact type: a subclass may compute another distribution from the same arrays
    family = next((name for name, kind in KINDS.items() if type(batch) is kind), None)
    if family is None:
        raise bad_input("distribution", "be a family of the package", type(batch).__name__)
    columns: dict[str, Sequence[Any]] = {"family": [family] * n}
    for name, dims in _fields(type(batch)).items():
        part = getattr(batch, name)
        if isinstance(part, Distribution):
            columns[name] = _records(part, n)
        elif dims is not None:
            shape = (n, *part.shape[part.ndim - dims :])
            columns[name] = np.broadcast_to(part, shape).tolist()
        elif isinstance(part, Link):
            columns |= {"link": [part.name] * n, "alpha": [float(part.alpha)] * n}
        else:
            columns[name] = [part.to_state() if isinstance(part, Support) else part] * n
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    if not isinstance(batch, Truncated):
        return records
    # the part of a hurdle is truncated in all rows of a batch if one row needs it: the others
    # have the record of the base
    cut = zip(records, _is_cut(batch, n), strict=True)
    return [record if is_cut else record["base"] for record, is_cut in cut]


def _is_cut(batch: Truncated, n: int) -> Mask:
    """Return whether truncation changes each distribution."""
    support = batch.support
    outside = np.maximum(batch.base.logcdf(support.low), batch.base.logsf(support.high, left=True))
    return np.broadcast_to((outside > NEGLIGIBLE) | (support.edge > 0), n)


def from_records(records: Sequence[Mapping[str, Any]]) -> Distribution:
    """Rebuild a batch of distributions, shape (n,), from the output of `to_records`.

    Parameters
    ----------
    records : sequence of dict
        One record per distribution; their families may differ, but not their kind of outcome.

    Raises
    ------
    InputError
        If there are no records, or one of them is not the output of `to_records`.

    Examples
    --------
    >>> mixed = [{"family": "normal", "loc": 1.0, "scale": 1.0},
    ...          {"family": "samples", "values": [1.0, 2.0, 3.0]}]
    >>> from_records(mixed).mean()
    array([1., 2.])
    """
    if len(records) == 0:
        raise InputError("records is empty; give at least one")
    rows: dict[Any, list[int]] = {}
    for row, record in enumerate(records):
        rows.setdefault(_form(record, f"records[{row}]"), []).append(row)
    parts: list[tuple[Ints, Distribution]] = []
    for chosen in rows.values():
        try:
            parts.append((np.array(chosen), _built([records[row] for row in chosen])))
        except (KeyError, TypeError, ValueError) as error:
            raise _no_record(f"records[{chosen[0]}]", error) from error
    return parts[0][1] if len(parts) == 1 else Joined(parts)


def _form(record: Any, place: str) -> Any:
    """Return what records must have in common to be one batch."""
    if not isinstance(record, Mapping) or not isinstance(record.get("family"), str):
        got = type(record).__name__ if not isinstance(record, Mapping) else "no family"
        raise bad_input(place, "be the record of a distribution", got)
    kind = KINDS[check_choice(f"{place} family", record["family"], tuple(KINDS))]
    form: list[Any] = [kind]
    try:
        for name, dims in _fields(kind).items():
            part = record[name]
            if name == kind.inner:
                form.append(_form(part, place))
            elif dims is None:
                form.append(tuple(sorted(part.items())) if isinstance(part, Mapping) else part)
            elif dims:
                form.append(len(part))
    except (KeyError, TypeError) as error:
        raise _no_record(place, error) from error
    return (*form, record.get("alpha"))


def _no_record(place: str, error: Exception) -> InputError:
    reason = f"{type(error).__name__}: {error}"
    return InputError(f"{place} is not the record of a distribution ({reason})")


def _built(records: Sequence[Mapping[str, Any]]) -> Distribution:
    first = records[0]
    kind: Any = KINDS[first["family"]]
    arguments: list[Any] = []
    for name, dims in _fields(kind).items():
        column = [record[name] for record in records]
        if name == kind.inner:
            arguments.append(_built(column))
        elif dims is not None:
            arguments.append(np.array(column, dtype=np.float64))
        elif name == "link":
            arguments.append(make_link(first["link"], first["alpha"]))
        else:
            arguments.append(Support.from_state(column[0]) if name == "support" else column[0])
    # each row has its own map
    built: Distribution = kind(*arguments, *[np.arange(len(records))] * (kind is Recalibrated))
    return built
