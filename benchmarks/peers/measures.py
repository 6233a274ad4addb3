"""Measures of the benchmark of peers, and the table of who wins where.

Every method is measured by the same code, from intervals, quantiles or sets of rows.
This module needs NumPy and SciPy only.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import stats

LEVELS = np.arange(1, 100) / 100
"""Levels of the quantiles from which CRPS is computed."""

OURS = "evenhand"
"""Names of our methods start with this word."""


@dataclass(frozen=True)
class Contest:
    """Values of one measure, of our method and of peers.

    Parameters
    ----------
    problem : str
        Problem that all methods were given.
    measure : str
        Measure with its unit, of which less is better.
    ours : float
        Value of our method.
    theirs : dict of str to float
        Values of the peers by name, at least one.
    noise : float, default 0
        Differences up to this one, in units of the measure, are ties.
    text : str, default ".3g"
        Format of the values.
    more_is_better : bool, default False
        Whether more is better instead.
    """

    problem: str
    measure: str
    ours: float
    theirs: Mapping[str, float]
    noise: float = 0.0
    text: str = ".3g"
    more_is_better: bool = False

    @property
    def best_peer(self) -> str:
        """Name of the best peer."""
        best = max if self.more_is_better else min
        return best(self.theirs, key=self.theirs.__getitem__)

    @property
    def winner(self) -> str:
        """Name of the winner; "tie" if the difference may be noise."""
        gain = self.theirs[self.best_peer] - self.ours
        if self.more_is_better:
            gain = -gain
        if abs(gain) <= self.noise:
            return "tie"
        return OURS if gain > 0 else self.best_peer

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table of who wins where."""
        best = self.best_peer
        return (
            self.problem,
            self.measure,
            self.winner,
            format(self.ours, self.text),
            f"{format(self.theirs[best], self.text)} ({best})",
        )


@dataclass(frozen=True)
class Tally:
    """Contests by the same measure on several tables.

    Parameters
    ----------
    problem, measure : str
        What was contested.
    contests : list of Contest
        One contest per table.
    """

    problem: str
    measure: str
    contests: list[Contest]

    @property
    def winner(self) -> str:
        """Who wins more tables, ours or any peers; "tie" if both win the same number."""
        won = sum(each.winner == OURS for each in self.contests)
        lost = sum(each.winner not in (OURS, "tie") for each in self.contests)
        if won == lost:
            return "tie"
        return OURS if won > lost else "peers"

    def cells(self) -> tuple[str, ...]:
        """Return the row of the table of who wins where."""
        won = sum(each.winner == OURS for each in self.contests)
        tied = sum(each.winner == "tie" for each in self.contests)
        lost = [each for each in self.contests if each.winner not in (OURS, "tie")]
        where = ", ".join(f"{each.winner} on {each.problem}" for each in lost)
        return (
            self.problem,
            self.measure,
            self.winner,
            f"{won} won, {tied} tied",
            f"{len(lost)} won" + (f" ({where})" if where else ""),
        )


CONTEST_HEADS = ("problem", "measure", "winner", "ours", "best peer")


@dataclass
class Section:
    """Part of the page: its title, its lines and the contests that it decides."""

    title: str
    lines: list[str] = field(default_factory=list)
    contests: list[Contest | Tally] = field(default_factory=list)


def table_lines(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Yield a table with aligned columns, words to the left and numbers to the right."""
    cells = [list(map(str, heads)), *(list(map(str, row)) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    right = [all(_is_number(row[k]) for row in cells[1:]) for k in range(len(heads))]
    for row in cells:
        parts = [
            cell.rjust(width) if is_right else cell.ljust(width)
            for cell, width, is_right in zip(row, widths, right, strict=True)
        ]
        yield "  ".join(parts).rstrip()


def _is_number(cell: str) -> bool:
    return not cell or cell[0].isdigit() or cell[0] in "+-.<" or cell in ("nan", "inf", "–")


def paragraph(text: str) -> list[str]:
    """Return a text in lines of at most 100 characters."""
    return textwrap.wrap(text, 100)


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    """Return the CPU seconds that a call takes, and its result."""
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


def overlap(found: np.ndarray | None, planted: np.ndarray) -> float:
    """Return the rows in both groups as a share of the rows in either; 0 if none was found."""
    if found is None:
        return 0.0
    either = np.count_nonzero(found | planted)
    return np.count_nonzero(found & planted) / either if either else 0.0


def binomial_range(count: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """Return the exact confidence interval of a share (Clopper and Pearson)."""
    tail = (1 - confidence) / 2
    low = stats.beta.ppf(tail, count, n - count + 1) if count > 0 else 0.0
    high = stats.beta.isf(tail, count + 1, n - count) if count < n else 1.0
    return float(low), float(high)


def crps_of_quantiles(quantiles: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the CRPS of rows from quantiles at `LEVELS`, as twice the mean pinball loss.

    CRPS is the integral of twice the pinball loss over all levels; the mean over the levels
    `0.01, ..., 0.99` leaves out the ends in the same way for every method.

    Parameters
    ----------
    quantiles : ndarray of shape (n, 99)
        Quantiles of each row.
    y : ndarray of shape (n,)
        Outcomes.
    """
    gap = y[:, None] - quantiles
    return 2 * np.maximum(LEVELS * gap, (LEVELS - 1) * gap).mean(axis=-1)


def covered_rows(interval: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return which outcomes intervals of shape (n, 2) contain."""
    return (interval[:, 0] <= y) & (y <= interval[:, 1])


def coverages(is_covered: np.ndarray, groups: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Return the coverage of each group of rows."""
    return {name: float(is_covered[mask].mean()) for name, mask in groups.items()}


def worst_gap(is_covered: np.ndarray, groups: Mapping[str, np.ndarray], level: float) -> float:
    """Return the largest difference of a group's coverage from the level, less its noise.

    From the difference two standard errors of a calibrated group are subtracted, so that a small
    group does not count more than what is known of it; at least 0.
    """
    gaps = [
        abs(is_covered[mask].mean() - level) - 2 * np.sqrt(level * (1 - level) / mask.sum())
        for mask in groups.values()
    ]
    return float(max([0.0, *gaps]))
