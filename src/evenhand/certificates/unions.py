"""Bounds for every union and mixture of disjoint named cells, without a draw (method: 12)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand._format import OneLine
from evenhand._validate import Ints, Mask
from evenhand.calibration import share_bound
from evenhand.certificates.parts import EventPart, Part, Values, bias_bounds
from evenhand.tables import Groups

LEAST_ROWS = 150
"""Fewest rows of a cell; smaller ones are merged with their neighbours."""

MOST_CELLS = 1000
"""Most cells, before small ones are merged."""

SHOWN_LEVEL = 0.8
"""Nominal level of the intervals whose coverage is shown."""


class NamedCells(NamedTuple):
    """Disjoint cells of rows: all combinations of named groups, merged to at least 150 rows.

    Parameters
    ----------
    columns : tuple of str
        Columns that the groups are made of, and names of given masks.
    names : tuple of str
        Names of the cells; empty if there are more than 1,000 before small ones are merged, which
        have no bound.
    place : ndarray of int, shape (n,)
        Cell of each row.
    n_before : int
        Number of cells before small ones were merged.
    overlap : bool
        Whether given masks overlap: cells are then disjoint, as all combinations are.
    """

    columns: tuple[str, ...]
    names: tuple[str, ...]
    place: Ints
    n_before: int
    overlap: bool

    def masks(self) -> list[Mask]:
        """Return the rows of each cell."""
        return [self.place == cell for cell in range(len(self.names))]


def disjoint_cells(groups: Groups) -> NamedCells | None:
    """Return the cells of named groups; None if they do not divide the rows.

    Cells are merged along the last column first, and by numbers of rows alone: outcomes are not
    looked at. A merged cell is one group: its people are spread over it like the rows.

    Examples
    --------
    >>> from evenhand.tables import check_groups
    >>> sex, old = np.arange(900) % 2 == 0, np.arange(900) % 7 == 0
    >>> cells = disjoint_cells(check_groups({"woman": sex, "old": old}, 900))
    >>> cells.names, cells.n_before
    (('woman', 'not woman'), 4)
    """
    columns: dict[str, list[tuple[str, Mask]]] = {}
    for group, mask in groups.pairs():
        columns.setdefault(group.column or group.name, []).append((group.name, mask))
    if not columns:
        return None
    labels, codes = zip(*(_labelled(name, own) for name, own in columns.items()), strict=True)
    combos, place, counts = np.unique(
        np.array(codes).T, axis=0, return_inverse=True, return_counts=True
    )
    given = [mask for group, mask in groups.pairs() if group.column is None]
    overlap = bool((np.sum(given, axis=0) > 1).any())
    if len(combos) > MOST_CELLS:
        return NamedCells(tuple(columns), (), place.reshape(-1), len(combos), overlap)
    merged = _merged(combos, counts)
    if len(merged) < 2:
        return None
    new = np.repeat(np.arange(len(merged)), [*map(len, merged)])
    names = tuple(_name(own, combos, labels) for own in merged)
    return NamedCells(tuple(columns), names, new[place.reshape(-1)], len(combos), overlap)


def _labelled(column: str, own: Sequence[tuple[str, Mask]]) -> tuple[list[str], Ints]:
    """Return the labels of a column's groups, and the label of each row."""
    rest = f"not {column}" if len(own) == 1 and own[0][0] == column else f"other {column}"
    code = np.full(own[0][1].size, len(own))
    for i, (_, mask) in enumerate(own):
        code[mask] = i
    return [*(name for name, _ in own), rest], code


Cell = tuple[list[int], int]
"""Combinations of a cell, and the number of its rows."""


def _merged(combos: Ints, counts: Ints) -> list[list[int]]:
    """Merge neighbours with too few rows, along the last column first."""
    codes = [tuple(combo) for combo in combos.tolist()]
    cells: list[Cell] = [([i], n) for i, n in enumerate(counts.tolist())]
    for depth in reversed(range(combos.shape[1])):
        blocks = groupby(cells, key=lambda cell: codes[cell[0][0]][:depth])
        cells = [cell for _, block in blocks for cell in _joined(block)]
    return [own for own, _ in cells]


def _joined(block: Iterable[Cell]) -> list[Cell]:
    found: list[Cell] = []
    for own, n in block:
        if found and found[-1][1] < LEAST_ROWS:
            found[-1] = found[-1][0] + own, found[-1][1] + n
        else:
            found.append((own, n))
    if len(found) > 1 and found[-1][1] < LEAST_ROWS:
        found[-2:] = [(found[-2][0] + found[-1][0], found[-2][1] + found[-1][1])]
    return found


def _name(cell: list[int], combos: Ints, labels: Sequence[Sequence[str]]) -> str:
    """Return what the combinations of a cell have in common, and their alternatives."""
    own = combos[cell]
    n_common = 0
    while n_common < own.shape[1] and (own[:, n_common] == own[0, n_common]).all():
        n_common += 1
    common = [labels[i][own[0, i]] for i in range(n_common)]
    is_whole = (combos[:, :n_common] == own[0, :n_common]).all(axis=1).sum() == len(cell)
    if n_common == own.shape[1] or (common and is_whole):
        return ", ".join(common)
    rest = (", ".join(labels[i][row[i]] for i in range(n_common, row.size)) for row in own)
    return ", ".join([*common, " or ".join(rest)])


@dataclass(frozen=True, eq=False, repr=False)
class Unions(OneLine):
    """Bounds for every union and mixture of disjoint named cells, of any size, without a draw.

    The cells are a family of their own: bounds of all of them hold jointly. Errors are convex, and
    biases and coverages are means, so that the worst cell bounds every union and mixture. Single
    forecasts, and groups within a cell, may be farther off.

    Parameters
    ----------
    cells : NamedCells
        The cells.
    parts : tuple of Part
        What was seen of each cell's people; empty for 0/1 outcomes.
    events : tuple of EventPart
        The event of 0/1 forecasts in each cell; empty for others.
    confidence : float
        Probability that a bound holds for all cells.
    is_randomized : bool
        Whether the forecasts depend on a draw; no bound needs one.
    seed : int
        Seed of the order of bets.
    """

    cells: NamedCells
    parts: tuple[Part, ...]
    events: tuple[EventPart, ...]
    confidence: float
    is_randomized: bool
    seed: int

    @cached_property
    def _table(self) -> pd.DataFrame:
        each = 1 - (1 - self.confidence) / max(len(self.cells.names), 1)
        tail = (1 - each) / 2
        rows = []
        for cell, name in enumerate(self.cells.names):
            row: dict[str, Any] = {"cell": name, "n": int((self.cells.place == cell).sum())}
            if self.parts:
                part = self.parts[cell]
                missed = part.missed(SHOWN_LEVEL)
                row["error"] = part.average(each)[1]
                row["coverage_80_low"] = 1 - self._most(missed, part.n_intervals, tail)
                row["coverage_80_high"] = self._most(missed.complement(), part.n_intervals, tail)
            if self.events:
                ends = bias_bounds(self.events[cell], 1.0, 1 - tail, self.seed)
                row["bias_low"], row["bias_high"] = ends
            rows.append(row)
        return pd.DataFrame(rows)

    def _most(self, shares: Values, n_intervals: int, tail: float) -> float:
        """Bound the mean of shares of draws, which are 0 or 1 for a single draw."""
        if n_intervals == 1:
            return share_bound(shares.n_at_least(1.0), shares.n_people, 1 - tail)
        return shares.worst_mean(1.0, 1.0, 1 - tail, self.seed)

    def table(self) -> pd.DataFrame:
        """Return one row per cell: `cell`, `n`, and its ends, which hold jointly.

        `error`, `coverage_80_low` and `coverage_80_high` for outcomes that are not 0/1; `bias_low`
        and `bias_high` for an event.
        """
        return self._table.copy()

    def error(self) -> float | None:
        """Upper bound for the W1 error, 0 to 1/2; None for 0/1 outcomes."""
        return float(self._table["error"].max()) if "error" in self._table else None

    def coverage_80(self) -> tuple[float, float] | None:
        """Bounds for the coverage of 80% prediction intervals; None for 0/1 outcomes."""
        return self._ends("coverage_80")

    def bias(self) -> tuple[float, float] | None:
        """Bounds for the event rate minus the mean probability; None without an event."""
        return self._ends("bias")

    def _ends(self, name: str) -> tuple[float, float] | None:
        if f"{name}_low" not in self._table:
            return None
        return float(self._table[f"{name}_low"].min()), float(self._table[f"{name}_high"].max())

    def facts(self) -> dict[str, Any]:
        """Return what texts are made of, as plain values."""
        return {
            "columns": self.cells.columns,
            "n": self.cells.place.size,
            "n_cells": len(self.cells.names),
            "n_before": self.cells.n_before,
            "overlap": self.cells.overlap,
            "confidence": self.confidence,
            "is_randomized": self.is_randomized,
            "error": self.error(),
            "coverage_80": self.coverage_80(),
            "bias": self.bias(),
            "cells": self._table.to_dict("records"),
        }
