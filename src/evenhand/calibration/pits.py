"""Validated probability integral transforms (PITs) of held-out outcomes (method: objects)."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import one_line
from evenhand._validate import (
    Floats,
    InputError,
    Mask,
    bad_input,
    check_draws,
    check_rows,
    check_weights,
)
from evenhand.draws import RandomState, generator

BLOCK_ROWS = 10_000
"""Number of rows processed at once, so that temporaries need little memory."""

JITTERED = "make the draws with draws.jittered(n, m)"
"""Remedy in messages about draws."""


@dataclass(frozen=True, eq=False, repr=False)
class PITs:
    """PITs of people over draws, with the draws and the weights of the people.

    The input is validated once: every function that takes `pit` also takes a `PITs`, and does not
    check it again.

    Parameters
    ----------
    matrix : array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns are draws; one column for a deterministic
        forecaster. Stored as an array of shape (n, m); an array of float64 is not copied and must
        not be changed afterwards.
    draws : array-like of shape (n,) or (n, m), optional
        The draws `r` behind the PITs, each strictly between 0 and 1. Stored in the shape of
        `matrix`.
    weights : array-like of shape (n,), optional
        Weights of the people, at least 0 and not all 0. Stored with mean 1, or as None if all
        weights are equal.
    cells : tuple of two arrays of the shape of `matrix`, optional
        Lower and upper ends of the PITs' cells, for outcomes with atoms: the CDF just below and at
        the outcome. `matrix` then contains randomized PITs, one position `V` per person within the
        cells: tests and bounds with exact null distributions use it, and estimates average over
        `V` (outcomes: 4.3). Stored as None if all cells are empty.
    censored : array-like of bool, shape (n,), optional
        People whose outcome is only known to be beyond a time: their cell is what is known of their
        PIT, and reaches to 1 (outcomes: 5). Tests use the position `V` in it, which is uniform
        there under calibrated forecasts; the size of an error is not known from it. Stored as None
        if there is nobody.

    Raises
    ------
    InputError
        If a value is not a number or out of range, or the shapes do not match.

    See Also
    --------
    PITs.of_cells : PITs from the ends of their cells.

    Examples
    --------
    >>> pits = PITs([0.2, 0.7, 0.9], weights=[1, 1, 2])
    >>> pits.n_samples, pits.n_draws, pits.is_randomized
    (3, 1, False)
    >>> pits.take([0, 1]).matrix
    array([[0.2],
           [0.7]])
    """

    matrix: Floats
    draws: Floats | None = None
    weights: Floats | None = None
    cells: tuple[Floats, Floats] | None = None
    censored: Mask | None = None

    def __post_init__(self) -> None:
        matrix = _matrix(self.matrix)
        draws = None if self.draws is None else _draws(self.draws, matrix.shape)
        cells = None if self.cells is None else _cells(self.cells, matrix)
        censored = (
            None if self.censored is None else _censored(self.censored, matrix.shape[0], cells)
        )
        # the fields of a frozen dataclass cannot be assigned
        self.__dict__.update(
            matrix=matrix,
            draws=draws,
            weights=_weights(self.weights, matrix.shape[0]),
            cells=cells,
            censored=censored,
        )

    @classmethod
    def of_cells(
        cls,
        low: ArrayLike,
        high: ArrayLike,
        ties: ArrayLike,
        *,
        draws: ArrayLike | None = None,
        weights: ArrayLike | None = None,
        censored: ArrayLike | None = None,
    ) -> PITs:
        """Make PITs from the ends of their cells and a position of each person within them.

        Parameters
        ----------
        low, high : array-like of shape (n,) or (n, m)
            CDF just below and at the outcomes, as from `Forecast.pit_interval`.
        ties : array-like of shape (n,)
            Position `V` of each person between 0 and 1, uniform and independent of the draws; it is
            shared by all of the person's draws.
        draws, weights, censored : optional
            As for `PITs`.

        Examples
        --------
        >>> pits = PITs.of_cells([0.0, 0.5], [0.5, 1.0], ties=[0.5, 0.1])
        >>> pits.matrix.ravel(), pits.high.ravel()
        (array([0.25, 0.55]), array([0.5, 1. ]))
        """
        ends = _matrix(low), _matrix(high)
        if ends[0].shape != ends[1].shape:
            raise bad_input("high", f"have the shape of low {ends[0].shape}", f"{ends[1].shape}")
        share = check_rows("ties", ties, ends[0].shape[0])
        if not ((share >= 0) & (share <= 1)).all():
            raise bad_input("ties", "lie between 0 and 1", "a value outside")
        matrix = np.clip(ends[0] + share[:, None] * (ends[1] - ends[0]), *ends)
        return cls(matrix, draws, weights, ends, censored)  # type: ignore[arg-type]

    @property
    def low(self) -> Floats:
        """Lower ends of the cells, shape (n, m); the PITs themselves for continuous outcomes."""
        return self.matrix if self.cells is None else self.cells[0]

    @property
    def high(self) -> Floats:
        """Upper ends of the cells, shape (n, m); the PITs themselves for continuous outcomes."""
        return self.matrix if self.cells is None else self.cells[1]

    def events(self) -> tuple[Floats, Floats] | None:
        """Return 0/1 outcomes and the probabilities of 1, each of shape (n,); None for others.

        The cell of an outcome 0 with probability `P` of 1 is [0, 1 - P], that of an outcome 1 is
        [1 - P, 1]: outcomes are 0/1 if each person has one such cell. So do lattices with two
        values. Cells [0, 1], of outcomes that were certain, count as outcomes 0 of probability 0.

        Examples
        --------
        >>> PITs.of_cells([0.0, 0.75], [0.9, 1.0], ties=[0.5, 0.5]).events()
        (array([0., 1.]), array([0.1 , 0.25]))
        """
        if self.cells is None or self.n_draws > 1 or self.censored is not None:
            return None
        low, high = (end[:, 0] for end in self.cells)
        is_zero = low == 0
        if not (is_zero | (high == 1)).all():
            return None
        return np.where(is_zero, 0.0, 1.0), 1 - np.where(is_zero, high, low)

    def __repr__(self) -> str:
        return one_line(
            self,
            n_samples=self.n_samples,
            n_draws=self.n_draws,
            has_draws=self.draws is not None,
            has_weights=self.weights is not None,
        )

    @property
    def n_samples(self) -> int:
        """Number of people."""
        return int(self.matrix.shape[0])

    @property
    def n_draws(self) -> int:
        """Number of draws per person."""
        return int(self.matrix.shape[1])

    @property
    def is_randomized(self) -> bool:
        """Whether the forecasts depend on a draw."""
        return self.draws is not None or self.n_draws > 1

    @property
    def shares(self) -> Floats:
        """Share of each person in the total weight, shape (n,)."""
        if self.weights is None:
            return np.full(self.n_samples, 1 / self.n_samples)
        return np.asarray(self.weights / self.weights.sum())

    def row_blocks(self, size: int) -> Iterator[tuple[Floats, Floats]]:
        """Yield `low` and `high` in blocks of `size` rows; one array twice if there are no cells.

        Examples
        --------
        >>> [low.ravel() for low, _ in PITs([0.2, 0.7, 0.9]).row_blocks(2)]
        [array([0.2, 0.7]), array([0.9])]
        """
        for start in range(0, self.n_samples, size):
            low = self.low[start : start + size]
            yield low, low if self.cells is None else self.high[start : start + size]

    def take(self, rows: Any) -> PITs:
        """Return the PITs of some people, with weights rescaled to mean 1.

        Parameters
        ----------
        rows : slice, boolean mask or row numbers
            Rows of the people; may be empty.
        """
        matrix = self.matrix[rows]
        weights = None if self.weights is None or not matrix.size else self.weights[rows]
        return self._with(
            matrix=matrix,
            draws=None if self.draws is None else self.draws[rows],
            weights=_weights(weights, matrix.shape[0]),
            cells=None if self.cells is None else (self.cells[0][rows], self.cells[1][rows]),
            censored=None if self.censored is None else _some(self.censored[rows]),
        )

    def weighted_by(self, membership: Floats) -> PITs:
        """Return the PITs with the weight of each person multiplied by a probability.

        Parameters
        ----------
        membership : ndarray of shape (n,)
            Probabilities of membership in a group, between 0 and 1 and not all 0.

        Examples
        --------
        >>> PITs([0.2, 0.7], weights=[1, 3]).weighted_by(np.array([0.75, 0.25])).weights is None
        True
        """
        return self._with(weights=_weights(self.shares * membership, self.n_samples))

    def without_copies(self) -> PITs:
        """Return PITs of one column if no draws are known and all columns are equal.

        Such PITs are those of a deterministic forecaster, repeated.
        """
        first = self.matrix[:, :1]
        if self.draws is not None or self.n_draws == 1:
            return self
        # different cells may contain the same PIT
        if not all((x == x[:, :1]).all() for x in (self.matrix, *(self.cells or ()))):
            return self
        cells = None if self.cells is None else (self.low[:, :1], self.high[:, :1])
        return self._with(matrix=first, cells=cells)

    def _with(self, **values: Any) -> PITs:
        """Return the same with some values, which are already validated."""
        some = copy(self)
        some.__dict__.update(values)
        return some


Pit: TypeAlias = ArrayLike | PITs | tuple[ArrayLike, ArrayLike]
"""PITs of people: an array, a `PITs`, or a tuple of the lower and the upper ends of their cells."""


def as_pits(
    pit: Pit,
    r: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
) -> PITs:
    """Return a `PITs` unchanged, or validate an array of PITs with its draws and weights.

    Parameters
    ----------
    pit : PITs, array-like of shape (n,) or (n, m), or tuple (low, high) of two such arrays
        PITs between 0 and 1, or the ends of their cells: rows are people, columns are draws.
    r : array-like of shape (n,) or (n, m), optional
        The draws behind an array of PITs.
    sample_weight : array-like of shape (n,), optional
        Weights of the people in an array of PITs.
    random_state : int, generator or None
        Seed for the positions in the cells of a tuple, one per person. Estimates average over the
        positions and do not depend on it; tests and bounds do. Positions that are to be the same
        in another run come from the key of a person: `PITs.of_cells` with `KeyedDraws.ties`.

    Returns
    -------
    PITs

    Raises
    ------
    InputError
        If the input is invalid, or draws or weights are given in addition to those of a `PITs`.

    Examples
    --------
    >>> pits = as_pits([[0.25, 0.75], [0.5, 0.5]])
    >>> pits.n_draws, as_pits(pits) is pits
    (2, True)
    >>> as_pits(([0.0, 0.5], [0.5, 1.0])).high.ravel()  # the ends of two cells
    array([0.5, 1. ])
    """
    # a tuple of two arrays; a tuple of two numbers is two PITs
    if isinstance(pit, tuple) and len(pit) == 2 and all(np.ndim(end) > 0 for end in pit):
        low, high = (_matrix(end) for end in pit)
        ties = generator(random_state).random(low.shape[0])
        return PITs.of_cells(low, high, ties, draws=r, weights=sample_weight)
    if not isinstance(pit, PITs):
        # the constructor turns array-likes into arrays
        return PITs(pit, r, sample_weight)  # type: ignore[arg-type]
    for name, own in (("r", r), ("sample_weight", sample_weight)):
        if own is not None:
            raise InputError(
                f"{name} was given together with a PITs object, which already contains it; pass it"
                " to PITs(...) instead"
            )
    return pit


def _matrix(pit: ArrayLike) -> Floats:
    """Check PITs, shape (n, m)."""
    try:
        matrix = np.asarray(pit, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"pit contains values that are not numbers ({error})") from error
    if matrix.ndim == 1:
        matrix = matrix[:, None]
    if matrix.ndim != 2 or matrix.size == 0:
        raise bad_input("pit", "have shape (n,) or (n, m), n >= 1", f"shape {np.shape(pit)}")
    wrong = ~((matrix >= 0) & (matrix <= 1))
    if wrong.any():
        i, j = (int(k) for k in np.argwhere(wrong)[0])
        raise bad_input(f"pit[{i}, {j}]", "lie between 0 and 1", float(matrix[i, j]))
    return matrix


def _cells(cells: tuple[ArrayLike, ArrayLike], matrix: Floats) -> tuple[Floats, Floats] | None:
    """Check the ends of cells that contain PITs; None if all cells are empty."""
    low, high = (_matrix(end) for end in cells)
    if low.shape != matrix.shape or high.shape != matrix.shape:
        got = f"shapes {low.shape} and {high.shape}"
        raise bad_input("cells", f"have the shape of pit {matrix.shape}", got)
    outside = (matrix < low) | (matrix > high)
    if outside.any():
        i, j = (int(k) for k in np.argwhere(outside)[0])
        got = f"{matrix[i, j]:g} in [{low[i, j]:g}, {high[i, j]:g}]"
        raise bad_input(f"pit[{i}, {j}]", "lie in its cell", got)
    return None if np.array_equal(low, high) else (low, high)


def _censored(censored: ArrayLike, n: int, cells: tuple[Floats, Floats] | None) -> Mask | None:
    """Check who is censored; None if nobody is."""
    mask = np.asarray(censored)
    if mask.shape != (n,) or mask.dtype.kind != "b":
        raise bad_input("censored", f"be {n} booleans", f"{mask.dtype} of shape {mask.shape}")
    high = None if cells is None else cells[1][mask]
    if mask.any() and (high is None or (high < 1).any()):
        raise bad_input("cells", "reach to 1 for people who are censored", "other cells")
    return _some(mask)


def _some(mask: Mask) -> Mask | None:
    return mask if mask.any() else None


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
    """Check weights; None if all are equal."""
    if sample_weight is None:
        return None
    # PITs without weights need only a plain sort
    weights = check_weights(sample_weight, n)
    return None if (weights == weights[0]).all() else weights


# --- draws that can support a guarantee (method: draws)


def check_own_draws(draws: Floats, rows: NDArray[np.intp] | None = None) -> None:
    """Refuse draws that cannot support a guarantee (method: draws).

    Valid draws are made separately for each person, one in each of m equal cells of [0, 1].

    Parameters
    ----------
    draws : ndarray of shape (n, m)
        Draws strictly between 0 and 1.
    rows : ndarray of int, optional
        Rows that are used, one per person; all by default. Only these must not share draws.

    Raises
    ------
    InputError
        If a cell has no draw, or two of the rows have the same draws.

    Examples
    --------
    >>> from evenhand.draws import jittered
    >>> check_own_draws(jittered(100, 8))
    """
    n, m = draws.shape
    for start in range(0, n, BLOCK_ROWS):
        # draws of draws.jittered are in the order of the cells; only others need a sort
        scaled = draws[start : start + BLOCK_ROWS] * m
        if (np.floor(scaled) == np.arange(m)).all():
            continue
        cells = np.sort(scaled, axis=-1) - np.arange(m)
        elsewhere = ((cells < -1e-9) | (cells > 1 + 1e-9)).any(axis=-1)
        if elsewhere.any():
            place = f"r[{start + int(np.argmax(elsewhere))}]"
            raise InputError(
                f"{place} does not have one draw in each of {m} equal cells of [0, 1]; {JITTERED}"
            )
    _check_fresh(draws, np.arange(n) if rows is None else rows)


def _check_fresh(draws: Floats, rows: NDArray[np.intp]) -> None:
    """Refuse draws shared by several people: continuous draws coincide with probability 0."""
    first = draws[rows, 0]
    order = rows[np.argsort(first, kind="stable")]
    twins = np.flatnonzero(np.diff(draws[order, 0]) == 0)
    same = twins[(draws[order[twins]] == draws[order[twins + 1]]).all(axis=-1)]
    rule = "contain fresh draws for each person"
    if same.size == rows.size - 1 > 0:
        raise bad_input("r", rule, "the same draws for all people", JITTERED)
    if same.size:
        got = f"the same draws in rows {order[same[0]]} and {order[same[0] + 1]}"
        remedy = "if these are rows of the same person, pass person labels as cluster"
        raise bad_input("r", rule, got, remedy)
