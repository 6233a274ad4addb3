"""People in a table in parts: repeated ids, and selection of one row per person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
        order = np.lexsort((self.row, self.part, self.chance, self.label))
        is_first = np.append(True, self.label[order][1:] != self.label[order][:-1])
        kept = order[is_first]
        kept = kept[np.lexsort((self.row[kept], self.part[kept]))]
        # parts without selected rows are listed, too
        parts = np.unique(self.part)
        rows = np.split(self.row[kept], np.searchsorted(self.part[kept], parts[1:]))
        return dict(zip(parts.tolist(), rows, strict=True))

    def repeated(self, parts: Parts, column: str) -> Repeated | None:
        """Return the label with the most rows; None if all labels are distinct."""
        order = np.lexsort((self.row, self.part, self.label))
        starts = np.flatnonzero(np.append(True, self.label[order][1:] != self.label[order][:-1]))
        counts = np.diff(starts, append=self.label.size)
        if self.label.size == 0 or counts.max() == 1:
            return None
        most = starts[counts == counts.max()]
        first = order[most]
        at = most[np.lexsort((self.row[first], self.part[first]))[0]]
        places = [self._place(k) for k in order[at : at + 2]]
        label = str(_label_at(parts, column, *places[0]))
        return Repeated(
            label, int(counts.max()), int((counts > 1).sum()), _two_rows(parts, *places)
        )

    def refuse_repeated(self, parts: Parts, column: str) -> None:
        """Raise InputError if a label is repeated."""
        order = np.lexsort((self.row, self.part, self.label))
        for at in np.flatnonzero(self.label[order][1:] == self.label[order][:-1]):
            first, again = (self._place(k) for k in order[at : at + 2])
            # only hashes are stored: the labels of equal hashes are read again and compared
            label = _label_at(parts, column, *again)
            if id_text(_label_at(parts, column, *first)) == id_text(label):
                there = f"{parts.names[first[0]]}, row" if first[0] != again[0] else "row"
                raise repeated_id(
                    parts.names[again[0]], column, again[1] + 1, label, f"{there} {first[1] + 1}"
                )

    def _place(self, k: int) -> tuple[int, int]:
        return int(self.part[k]), int(self.row[k])


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


@dataclass(frozen=True)
class RowSet:
    """Some rows of each part, stored as one bit per row of the table."""

    bits: dict[int, NDArray[np.uint8]]

    @classmethod
    def of(cls, rows: Mapping[int, Ints], n_rows: Mapping[int, int]) -> RowSet:
        """Store these rows of each part."""
        # bits, because all workers receive the rows of all parts; indices take 64 times the space
        bits = {i: np.zeros(n, dtype=np.bool_) for i, n in n_rows.items()}
        for i, mask in bits.items():
            mask[rows[i]] = True
        return cls({i: np.packbits(mask) for i, mask in bits.items()})

    def within(self, part: int, start: int, count: int) -> Ints:
        """Return the stored rows among `count` rows from `start`, relative to `start`."""
        # unpacks only the bytes needed, because a part may have very many blocks
        byte, skip = divmod(start, 8)
        bits = np.unpackbits(self.bits[part][byte : -(-(start + count) // 8)])
        return np.flatnonzero(bits[skip : skip + count])


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
