"""Cells of the PIT axis: what is known of each outcome under its forecast (method: one core)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import OneLine
from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    Mask,
    Pair,
    as_floats,
    bad_input,
    check_draws,
    check_finite,
    check_probabilities,
    check_rows,
    check_weights,
    refuse_entry,
)
from evenhand.draws import JITTERED, RandomState, generator
from evenhand.links import Link
from evenhand.tables import row_blocks


class Reading(IntEnum):
    """What is known of the position of an outcome in its cell (method: 12)."""

    AVERAGED = 0
    """Uniform under calibrated forecasts: an atom, a rounding cell, or a point."""
    UNKNOWN = 1
    """Anywhere, so that the worst position counts: a time that is cut off, a bin of counts."""
    BEYOND = 2
    """Anywhere above the lower end, and forecasts are compared with this fact alone, so that the
    best position counts: a person who reached the horizon."""


class Events(NamedTuple):
    """What happened of an event in n rows, and its predicted probabilities.

    Parameters
    ----------
    happened : ndarray of bool or float, shape (n,)
        Whether the event happened, or the probability that it did where this is not known.
    probability : ndarray of shape (n,)
        Predicted probabilities.
    """

    happened: NDArray[Any]
    probability: Floats

    def take(self, rows: Any) -> Events:
        """Return some rows."""
        return Events(self.happened[rows], self.probability[rows])

    @classmethod
    def joined(cls, parts: Sequence[Events]) -> Events:
        """Return the rows of several parts."""
        return cls(*map(np.concatenate, zip(*parts, strict=True)))


def check_events(probability: ArrayLike, event: ArrayLike) -> Pair:
    """Check probabilities and events, one of each per person."""
    values = as_floats("probability", probability)
    means = check_finite("probability", over_draws(values))
    refuse_entry("probability", values, (values < 0) | (values > 1), "lie between 0 and 1")
    occurred = check_rows("event", event, means.size)
    remedy = "code the event as 1 and its absence as 0"
    refuse_entry("event", occurred, (occurred != 0) & (occurred != 1), "be 0 or 1", remedy)
    return means, occurred


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Cells(OneLine):
    """Cells `[F(y-), F(y)]` of outcomes under their forecasts; a continuous outcome is a point.

    The input is validated once: every function that takes `pit` also takes `Cells`, and does not
    check them again.

    Parameters
    ----------
    low : array-like of shape (n,) or (n, m)
        Lower ends of the cells, between 0 and 1: rows are people, columns are draws; one column for
        a deterministic forecaster. Stored as an array of shape (n, m); an array of float64 is not
        copied and must not be changed afterwards.
    high : array-like of the shape of `low`, optional
        Upper ends; the lower ends by default. One array is stored for both if they are equal.
    drawn : array-like of the shape of `low`, optional
        A PIT in each cell, at one position per person: tests of the spread and bounds with exact
        null distributions use it; estimates and tests of the mean PIT average over the position.
        The lower end by default.
    draws : array-like of shape (n,) or (n, m), optional
        The draws `r` behind the PITs, each strictly between 0 and 1.
    weights : array-like of shape (n,), optional
        Weights of the people, at least 0 and not all 0. Stored with mean 1, or as None if all
        weights are equal.
    reading : array-like of shape (n,), optional
        The `Reading` of each cell; "averaged" by default.
    count : array-like of int, shape (n,), optional
        Number of people whom each row stands for, as in tables in parts; one by default.
    link : Link, optional
        The link whose draw these cells do not contain yet: they are those of the deterministic
        forecaster inside it, in one column.
    ties : array-like of shape (n,), optional
        Instead of `drawn`: the position of each person in the cell, between 0 and 1, uniform and
        independent of the draws; it is shared by all of the person's draws.

    Raises
    ------
    InputError
        If a value is not a number or out of range, or the shapes do not match.

    Examples
    --------
    >>> cells = Cells([0.2, 0.7, 0.9], weights=[1, 1, 2])
    >>> cells.n_samples, cells.n_draws, cells.is_randomized, cells.are_points
    (3, 1, False, True)
    >>> cells.take([0, 1]).drawn
    array([[0.2],
           [0.7]])
    >>> Cells([0.0, 0.5], [0.5, 1.0], ties=[0.5, 0.1]).drawn.ravel()
    array([0.25, 0.55])
    """

    low: Floats
    high: Floats
    drawn: Floats
    draws: Floats | None
    weights: Floats | None
    reading: NDArray[np.int8]
    count: NDArray[np.int64] | None
    link: Link | None

    def __init__(
        self,
        low: ArrayLike,
        high: ArrayLike | None = None,
        drawn: ArrayLike | None = None,
        draws: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        reading: ArrayLike | None = None,
        count: ArrayLike | None = None,
        link: Link | None = None,
        *,
        ties: ArrayLike | None = None,
    ) -> None:
        own = low
        low = _matrix(low)
        high, drawn = (low if one is None or one is own else _matrix(one) for one in (high, drawn))
        for name, one in (("high", high), ("drawn", drawn)):
            if one.shape != low.shape:
                raise bad_input(name, f"have the shape of low {low.shape}", f"{one.shape}")
        if ties is not None:
            share = check_probabilities("ties", check_rows("ties", ties, low.shape[0]))
            # rounding errors must not move a position out of its cell
            drawn = np.clip(low + share[:, None] * (high - low), low, high)
        refuse_entry("drawn", drawn, (drawn < low) | (drawn > high), "lie between low and high")
        if np.array_equal(low, high):
            low = high = drawn
        n = low.shape[0]
        # the fields of a frozen dataclass cannot be assigned
        self.__dict__.update(
            low=low,
            high=high,
            drawn=drawn,
            draws=None if draws is None else _draws(draws, low.shape),
            weights=_weights(weights, n),
            reading=_readings(reading, n),
            count=None if count is None else np.asarray(count, dtype=np.int64),
            link=link,
        )

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.low.shape[0]

    @property
    def n_people(self) -> int:
        """Number of people for whom the rows stand."""
        return self.n_samples if self.count is None else int(self.count.sum())

    @property
    def n_draws(self) -> int:
        """Number of draws per person."""
        return self.low.shape[1]

    @property
    def is_randomized(self) -> bool:
        """Whether the forecasts depend on a draw."""
        return self.draws is not None or self.n_draws > 1

    @property
    def are_points(self) -> bool:
        """Whether all cells have width 0."""
        return self.low is self.high

    @property
    def averaged(self) -> Mask:
        """Whose position in the cell is uniform under calibrated forecasts, shape (n,)."""
        return self.reading == Reading.AVERAGED

    @property
    def unknown(self) -> Mask:
        """Who may be anywhere in the cell, shape (n,)."""
        return self.reading == Reading.UNKNOWN

    @property
    def beyond(self) -> Mask:
        """Who is only known to be above the lower end, and is compared with that; shape (n,)."""
        return self.reading == Reading.BEYOND

    @property
    def shares(self) -> Floats:
        """Share of each person in the total weight, shape (n,)."""
        return self.each_weight / self.each_weight.sum()

    @property
    def each_weight(self) -> Floats:
        """Weight of each person, shape (n,); ones without weights."""
        return np.ones(self.n_samples) if self.weights is None else self.weights

    def events(self) -> Events | None:
        """Return 0/1 outcomes and the probabilities of 1, each of shape (n,); None for others.

        Outcomes are 0/1 if each person has one cell that begins at 0 or ends at 1. So do lattices
        with two values. Cells [0, 1], of outcomes that were certain, count as outcomes 0 of
        probability 0.

        Examples
        --------
        >>> Cells([0.0, 0.75], [0.9, 1.0], ties=[0.5, 0.5]).events()
        Events(happened=array([0., 1.]), probability=array([0.1 , 0.25]))
        """
        if self.are_points or self.n_draws > 1 or not self.averaged.all():
            return None
        low, high = self.low[:, 0], self.high[:, 0]
        is_zero = low == 0
        if not (is_zero | (high == 1)).all():
            return None
        return Events(np.where(is_zero, 0.0, 1.0), 1 - np.where(is_zero, high, low))

    def one_draw_each(self, random_state: RandomState = None) -> tuple[Ints, Ints]:
        """Choose a draw of each person at random, and return its place among all cells.

        PITs over draws of one person share an outcome and are dependent: tests use only one.
        """
        n, m = self.drawn.shape
        return np.arange(n), generator(random_state).integers(m, size=(n,))

    def row_blocks(self, size: int) -> Iterator[Pair]:
        """Yield `low` and `high` in blocks of `size` rows; one array twice for points.

        Examples
        --------
        >>> [low.ravel() for low, _ in Cells([0.2, 0.7, 0.9]).row_blocks(2)]
        [array([0.2, 0.7]), array([0.9])]
        """
        for rows in row_blocks(self.n_samples, size):
            low = self.low[rows]
            yield low, low if self.are_points else self.high[rows]

    def take(self, rows: Any) -> Cells:
        """Return the cells of some people, with weights rescaled to mean 1.

        Parameters
        ----------
        rows : slice, boolean mask or row numbers
            Rows of the people; may be empty.
        """
        names = ["drawn", "reading", "draws", "weights", "count"]
        names += [] if self.are_points else ["low", "high"]
        given = {name: self.__dict__[name] for name in names}
        some: dict[str, Any] = {
            name: None if one is None else one[rows] for name, one in given.items()
        }
        some["weights"] = _weights(some["weights"], some["reading"].size)
        return self._with(**{"low": some["drawn"], "high": some["drawn"]} | some)

    def at_points(self, rows: Mask | None = None) -> Cells:
        """Return cells that are the drawn positions, of all or of some people.

        Examples
        --------
        >>> Cells([0.0, 0.5], [0.5, 1.0], ties=[0.5, 0.1]).at_points().high.ravel()
        array([0.25, 0.55])
        """
        chosen = np.full(self.n_samples, True) if rows is None else rows
        low, high = (np.where(chosen[:, None], self.drawn, end) for end in (self.low, self.high))
        if np.array_equal(low, high):
            low = high = self.drawn
        return self._with(low=low, high=high, reading=np.where(chosen, 0, self.reading))

    def before(self, link: Link) -> Cells:
        """Return cells of a deterministic forecaster as those before the draw of a link."""
        return self._with(link=link)

    def served(self, link: Link, draws: Floats) -> Cells:
        """Return the cells of forecasts that a link randomizes, at draws of shape (n, m).

        The position of each person in the served cells is that in the own cell.
        """
        if self.are_points:
            return Cells(link.ppf(self.drawn, draws), draws=draws, reading=self.reading)
        low, high = (link.ppf(end, draws) for end in (self.low, self.high))
        # both ends of a cell move up with the same draw: rounding errors alone could cross them
        high = np.maximum(low, high)
        at = divided(self.drawn - self.low, self.high - self.low)
        drawn = np.clip(low + at * (high - low), low, high)
        return Cells(low, high, drawn, draws, reading=self.reading)

    @classmethod
    def joined(cls, parts: Sequence[Cells], weights: Floats | None = None) -> Cells:
        """Return the cells of several blocks of people, in their order.

        Examples
        --------
        >>> Cells.joined([Cells([0.2]), Cells([0.1], [0.5])]).high.ravel()
        array([0.2, 0.5])
        """

        def all_of(name: str) -> Any:
            return np.concatenate([getattr(part, name) for part in parts])

        drawn = all_of("drawn")
        are_points = all(part.are_points for part in parts)
        return parts[0]._with(
            low=drawn if are_points else all_of("low"),
            high=drawn if are_points else all_of("high"),
            drawn=drawn,
            draws=None if parts[0].draws is None else all_of("draws"),
            weights=_weights(weights, drawn.shape[0]),
            reading=all_of("reading"),
        )

    def without_weights(self) -> Cells:
        """Return the cells of people who all count once."""
        return self._with(weights=None)

    def of_members(self, members: Mask | Ints | Floats) -> Cells:
        """Return the cells of the members of a group.

        Parameters
        ----------
        members : ndarray of bool, of int, or of float of shape (n,)
            A mask or the numbers of the rows of the members; or each person's probability of
            membership, between 0 and 1 and not all 0, by which weights are multiplied.

        Examples
        --------
        >>> cells = Cells([0.2, 0.7, 0.9], weights=[1, 3, 5])
        >>> cells.of_members(np.array([0.75, 0.25, 0.0])).weights is None
        True
        """
        if members.dtype.kind != "f":
            return self.take(members)
        some = self.take(members > 0)
        shares = some.shares * members[members > 0]
        return some._with(weights=_weights(shares, some.n_samples))

    def without_copies(self) -> Cells:
        """Return cells of one column if no draws are known and all columns are equal.

        Such cells are those of a deterministic forecaster, repeated.
        """
        if self.draws is not None or self.n_draws == 1:
            return self
        # different cells may contain the same PIT
        if not all((x == x[:, :1]).all() for x in (self.drawn, self.low, self.high)):
            return self
        return replace(self, low=self.low[:, :1], high=self.high[:, :1], drawn=self.drawn[:, :1])

    def _with(self, **values: Any) -> Cells:
        """Return the same with some values, which are already validated."""
        some = copy(self)
        some.__dict__.update(values)
        return some


Pit: TypeAlias = ArrayLike | Cells | tuple[ArrayLike, ArrayLike]
"""PITs of people: an array, `Cells`, or a tuple of the lower and the upper ends of their cells."""


def as_cells(
    pit: Pit,
    r: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
) -> Cells:
    """Return `Cells` unchanged, or validate an array of PITs with its draws and weights.

    `random_state` is the seed for the positions in the cells of a tuple, one per person. Estimates
    average over the positions and do not depend on it; tests of the spread and bounds do. Positions
    that are to be the same in another run come from the key of a person: `Cells(..., ties=)` with
    `KeyedDraws.ties`.
    """
    # a tuple of two arrays; a tuple of two numbers is two PITs
    if isinstance(pit, tuple) and len(pit) == 2 and all(np.ndim(end) > 0 for end in pit):
        ties = generator(random_state).random(np.shape(pit[0])[0])
        return Cells(*pit, ties=ties, draws=r, weights=sample_weight)
    if not isinstance(pit, Cells):
        return Cells(pit, draws=r, weights=sample_weight)  # type: ignore[arg-type]  # no tuple
    for name, own in (("r", r), ("sample_weight", sample_weight)):
        if own is not None:
            raise InputError(
                f"{name} was given together with Cells, which already contain it; pass it to"
                " Cells(...) instead"
            )
    return pit


def divided(value: NDArray[Any] | float, by: NDArray[Any]) -> Floats:
    """Return the ratio; 0 where the denominator is not positive."""
    return np.divide(value, by, out=np.zeros(np.broadcast(value, by).shape), where=by > 0)


def over_draws(values: Floats) -> Floats:
    """Return the mean of each person's values over draws, (n, m) -> (n,); (n,) as they are."""
    return np.asarray(values.mean(axis=-1) if values.ndim == 2 else values, dtype=np.float64)


def _matrix(pit: ArrayLike) -> Floats:
    """Check PITs, shape (n, m)."""
    matrix = as_floats("pit", pit)
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2 or matrix.size == 0:
        raise bad_input("pit", "have shape (n,) or (n, m), n >= 1", f"shape {np.shape(pit)}")
    refuse_entry("pit", matrix, ~((matrix >= 0) & (matrix <= 1)), "lie between 0 and 1")
    return matrix


def _readings(reading: ArrayLike | None, n: int) -> NDArray[np.int8]:
    """Check readings; all are averaged by default."""
    found = np.zeros(n, dtype=np.int8) if reading is None else np.asarray(reading)
    if found.shape != (n,) or not np.isin(found, list(Reading)).all():
        raise bad_input("reading", f"be {n} of {[*Reading]}", f"shape {found.shape}")
    return found.astype(np.int8)


def _draws(r: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Check the draws behind PITs of a shape."""
    draws = check_draws(r)
    if draws.ndim == 1:
        draws = draws[:, None]
    if draws.shape != shape:
        # a common mistake is one row of draws for all people, such as draws.nodes
        is_shared = draws.ndim == 2 and draws.shape[0] == 1
        remedy = f"each person needs separate draws: {JITTERED}" if is_shared else ""
        raise bad_input("r", f"have the shape of pit {shape}", f"shape {np.shape(r)}", remedy)
    return draws


def _weights(sample_weight: ArrayLike | None, n: int) -> Floats | None:
    """Check weights; None if all are equal, and without rows."""
    if sample_weight is None or not n:
        return None
    # PITs without weights need only a plain sort
    weights = check_weights(sample_weight, n)
    return None if (weights == weights[0]).all() else weights
