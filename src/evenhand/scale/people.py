"""People in a table in parts: repeated ids, and selection of one row per person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._ids import id_text
from evenhand._validate import InputError
from evenhand.tables import Parts, id_column, repeated_id

Ints = NDArray[np.intp]
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class People:
    """People by a hash of their labels.

    They take 32 bytes per row, and three times as much while they are sorted.

    Parameters
    ----------
    label : ndarray of uint64, shape (n,)
        Hash of the label of each row. Collisions are ignored (probability 1e-5 at 20 million
        labels).
    chance : ndarray of shape (n,)
        Random number of each row: the row with the smallest number is selected for each person.
    part, row : ndarray of int, shape (n,)
        Part number of each row, and row number within the part.
    """

    label: Hashes
    chance: NDArray[np.float64]
    part: Ints
    row: Ints

    @classmethod
    def of(
        cls,
        labels: Sequence[str | int],
        part: int,
        start: int,
        chance: NDArray[np.float64] | None = None,
    ) -> People:
        """Hash the labels of consecutive rows.

        Without `chance` the first row of each person is selected.
        """
        # 1 and "1" are the same person (method: draws)
        text = np.array([id_text(label) for label in labels], dtype=object)
        row = np.arange(start, start + text.size)
        chance = np.zeros(text.size) if chance is None else chance
        return cls(
            pd.util.hash_array(text, categorize=False), chance, np.full(text.size, part), row
        )

    @staticmethod
    def joined(people: Sequence[People]) -> People:
        """Concatenate people of different rows."""
        fields = ("label", "chance", "part", "row")
        return People(*(np.concatenate([getattr(one, name) for one in people]) for name in fields))

    def chosen(self) -> dict[int, Ints]:
        """Return the selected rows of each part, one per person, in increasing order."""
        # ties are broken by position, so the order of reading has no effect
        order, starts = self._by_label(self.chance)
        kept = order[starts]
        kept = kept[np.lexsort((self.row[kept], self.part[kept]))]
        # parts without selected rows are listed, too
        parts = np.unique(self.part)
        rows = np.split(self.row[kept], np.searchsorted(self.part[kept], parts[1:]))
        return dict(zip(parts.tolist(), rows, strict=True))

    def repeated(self, parts: Parts, column: str) -> Repeated | None:
        """Return the label with the most rows; None if all labels are distinct."""
        rows, counts = self._most()
        if len(rows) < 2:
            return None
        label = str(_label_at(parts, column, *rows[0]))
        return Repeated(label, int(counts.max()), int((counts > 1).sum()), _two_rows(parts, *rows))

    def refuse_repeated(self, parts: Parts, column: str) -> None:
        """Raise InputError if a label is repeated."""
        (first, row), *others = self._most()[0]
        for part, again in others:
            there = f"{parts.names[first]}, row" if part != first else "row"
            label = _label_at(parts, column, part, again)
            raise repeated_id(parts.names[part], column, again + 1, label, f"{there} {row + 1}")

    def _most(self) -> tuple[list[tuple[int, int]], Ints]:
        """Return part and row of the first two rows of the label with most; rows of each label."""
        order, starts = self._by_label()
        counts = np.diff(starts, append=self.label.size)
        most = starts[counts == counts.max()]
        first = order[most]
        at = most[np.lexsort((self.row[first], self.part[first]))[0]]
        pair = order[at : at + min(2, counts.max())]
        return list(zip(self.part[pair].tolist(), self.row[pair].tolist(), strict=True)), counts

    def _by_label(self, *keys: NDArray[np.float64]) -> tuple[Ints, Ints]:
        """Return rows in the order of label, keys and position, and where labels begin."""
        order = np.lexsort((self.row, self.part, *keys, self.label))
        label = self.label[order]
        return order, np.flatnonzero(np.append(True, label[1:] != label[:-1])[: label.size])


@dataclass(frozen=True)
class Repeated:
    """Summary of repeated ids.

    Parameters
    ----------
    label : str
        An id with the most rows.
    n_rows : int
        Number of its rows.
    n_labels : int
        Number of repeated ids.
    where : str
        The first two rows of `label`.
    """

    label: str
    n_rows: int
    n_labels: int
    where: str


def _two_rows(parts: Parts, first: tuple[int, int], second: tuple[int, int]) -> str:
    if first[0] == second[0]:
        source = f"{parts.names[first[0]]}, " if parts.is_folder else ""
        return f"{source}rows {first[1] + 1} and {second[1] + 1}"
    return " and ".join(f"{parts.names[part]}, row {row + 1}" for part, row in (first, second))


def _label_at(parts: Parts, column: str, part: int, row: int) -> str | int:
    for start, table in parts.blocks(part, [column]):
        if start <= row < start + len(table):
            return id_column(
                table.iloc[row - start : row - start + 1],
                column,
                source=parts.names[part],
                start=row,
            )[0]
    raise InputError(f"{parts.names[part]} has changed since it was first read; start again")
