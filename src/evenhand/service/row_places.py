"""Places of rows in the files of a table, for messages."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

LISTED_RUNS = 200
"""Largest number of runs of rows that a message lists."""


@dataclass(frozen=True)
class RowPlaces:
    """Files of a table, one after the other.

    Parameters
    ----------
    names : tuple of str
        Names of the files, or of what else contains the rows.
    starts : tuple of int
        Number of the first row of each file, from 0, increasing.

    Examples
    --------
    >>> places = RowPlaces(("a.csv", "b.csv"), (0, 10))
    >>> places.of(12)
    'b.csv, row 3'
    >>> places.listed([0, 2, 3, 4, 12])
    'a.csv, rows 1, 3 to 5; b.csv, row 3'
    """

    names: tuple[str, ...]
    starts: tuple[int, ...] = (0,)

    def of(self, row: int) -> str:
        """Return the file of a row and its number there, from 1."""
        return self.listed([row])

    def listed(self, rows: Sequence[int]) -> str:
        """Return the files of increasing rows and their numbers there, runs of rows as one."""
        runs: list[list[int]] = []
        for row in rows:
            is_next = runs and row == runs[-1][-1] + 1 and row not in self.starts
            if is_next:
                runs[-1][-1] = row
            else:
                runs.append([row, row])
        by_file: dict[int, list[list[int]]] = {}
        for run in runs[:LISTED_RUNS]:
            by_file.setdefault(bisect_right(self.starts, run[0]) - 1, []).append(run)
        found = "; ".join(self._of_file(file, some) for file, some in by_file.items())
        n_more = sum(last - first + 1 for first, last in runs[LISTED_RUNS:])
        return f"{found} and {n_more:,} more" if n_more else found

    def _of_file(self, file: int, runs: list[list[int]]) -> str:
        before = self.starts[file] - 1
        shown = ", ".join(
            f"{first - before}" if first == last else f"{first - before} to {last - before}"
            for first, last in runs
        )
        is_one = len(runs) == 1 and runs[0][0] == runs[0][1]
        return f"{self.names[file]}, row{'' if is_one else 's'} {shown}"
