"""Who has which row of a table in parts: ids that come twice, and one row of each person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._checks import InputError
from evenhand.tables import Parts, id_column

Ints = NDArray[np.intp]
Hashes = NDArray[np.uint64]


@dataclass(frozen=True)
class People:
    """People by a hash of their labels; 32 bytes a row, and three times as much while they are sorted.

    Parameters
    ----------
    label : ndarray of uint64, shape (n,)
        Hash of the label of each row; that two labels share one is left out of account (1e-5 at 20 million).
    chance : ndarray of shape (n,)
        Random number of each row: of one person the least is taken.
    part, row : ndarray of int, shape (n,)
        Where the row stands.
    """

    label: Hashes
    chance: NDArray[np.float64]
    part: Ints
    row: Ints

    @classmethod
    def of(
        cls, labels: Sequence[str | int], part: int, start: int, chance: NDArray[np.float64] | None = None
    ) -> People:
        """Take the labels of some rows that follow each other; without chances the first row of a person is taken."""
        text = np.array([str(label) for label in labels], dtype=object)
        row = np.arange(start, start + text.size)
        chance = np.zeros(text.size) if chance is None else chance
        return cls(pd.util.hash_array(text, categorize=False), chance, np.full(text.size, part), row)

    @staticmethod
    def joined(people: Sequence[People]) -> People:
        """Return the people of all rows."""
        fields = ("label", "chance", "part", "row")
        return People(*(np.concatenate([getattr(one, name) for one in people]) for name in fields))

    def chosen(self) -> dict[int, Ints]:
        """Return the rows of each part that are taken, one of each person, in increasing order."""
        order = np.lexsort((self.row, self.part, self.chance, self.label))
        is_first = np.append(True, self.label[order][1:] != self.label[order][:-1])
        kept = order[is_first]
        kept = kept[np.lexsort((self.row[kept], self.part[kept]))]
        parts = np.unique(self.part)
        rows = np.split(self.row[kept], np.searchsorted(self.part[kept], parts[1:]))
        return dict(zip(parts.tolist(), rows, strict=True))

    def repeated(self, parts: Parts, column: str) -> tuple[str, int, int] | None:
        """Return a label that most rows share, how many, and how many labels are shared; None if none is."""
        order = np.lexsort((self.row, self.part, self.label))
        starts = np.flatnonzero(np.append(True, self.label[order][1:] != self.label[order][:-1]))
        counts = np.diff(starts, append=self.label.size)
        if self.label.size == 0 or counts.max() == 1:
            return None
        first = order[starts[counts == counts.max()]]
        at = first[np.lexsort((self.row[first], self.part[first]))[0]]
        label = _label_at(parts, column, int(self.part[at]), int(self.row[at]))
        return str(label), int(counts.max()), int((counts > 1).sum())

    def refuse_repeated(self, parts: Parts, column: str) -> None:
        """Raise InputError if a label comes twice."""
        order = np.lexsort((self.row, self.part, self.label))
        for at in np.flatnonzero(self.label[order][1:] == self.label[order][:-1]):
            places = [(int(self.part[k]), int(self.row[k])) for k in order[at : at + 2]]
            first, second = (str(_label_at(parts, column, *place)) for place in places)
            if first == second:
                (i, row), (j, again) = places
                there = f"{parts.names[i]}, row {row + 1}" if i != j else f"row {row + 1}"
                remedy = f"rows of one person are not independent; to take one row of each: --cluster {column}"
                place = f"{parts.names[j]}: column {column!r}, row {again + 1}"
                raise InputError(f"{place}: {second} is the id of {there} too; {remedy}")


@dataclass(frozen=True)
class RowSet:
    """Some rows of each part, a bit for each row of the table."""

    bits: dict[int, NDArray[np.uint8]]

    @classmethod
    def of(cls, rows: Mapping[int, Ints], n_rows: Mapping[int, int]) -> RowSet:
        """Keep these rows of each part."""
        bits = {i: np.zeros(n, dtype=np.bool_) for i, n in n_rows.items()}
        for i, mask in bits.items():
            mask[rows[i]] = True
        return cls({i: np.packbits(mask) for i, mask in bits.items()})

    def within(self, part: int, start: int, count: int) -> Ints:
        """Return those of some rows that follow each other, counted from the first of these."""
        # only the bytes that hold them: a part may have very many blocks
        byte, skip = divmod(start, 8)
        bits = np.unpackbits(self.bits[part][byte : -(-(start + count) // 8)])
        return np.flatnonzero(bits[skip : skip + count])


def _label_at(parts: Parts, column: str, part: int, row: int) -> str | int:
    for start, table in parts.blocks(part, [column]):
        if start <= row < start + len(table):
            return id_column(table.iloc[row - start : row - start + 1], column, source=parts.names[part], start=row)[0]
    raise InputError(f"{parts.names[part]} has changed since it was read")
