"""People in a table in parts: repeated ids, and selection of one row per person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._ids import id_text
from evenhand._validate import Floats, InputError
from evenhand.tables import Parts, id_column, repeated_id


@dataclass(frozen=True, eq=False)
class People:
    """People by a hash of their labels.

    They take 32 bytes per row, and three times as much while they are sorted.

    Parameters
    ----------
    rows : DataFrame
        One row per row of the table: `label`, the hash of the label, whose collisions are ignored
        (probability 1e-5 at 20 million labels); `chance`, a random number, of which the smallest
        selects a row for each person; `part`, the number of the part; and `row`, within the part.
    """

    rows: pd.DataFrame

    @classmethod
    def of(
        cls, labels: Sequence[str | int], part: int, start: int, chance: Floats | float = 0.0
    ) -> People:
        """Hash the labels of consecutive rows.

        Without `chance` the first row of each person is selected.
        """
        # 1 and "1" are the same person (method: draws)
        text = np.array([id_text(label) for label in labels], dtype=object)
        hashed = pd.util.hash_array(text, categorize=False)
        row = np.arange(start, start + text.size)
        return cls(pd.DataFrame({"label": hashed, "chance": chance, "part": part, "row": row}))

    @staticmethod
    def joined(people: Sequence[People]) -> People:
        """Concatenate people of different rows."""
        return People(pd.concat([one.rows for one in people], ignore_index=True))

    def chosen(self) -> dict[int, NDArray[np.intp]]:
        """Return the selected rows of each part, one per person, in increasing order."""
        # ties are broken by position, so the order of reading has no effect
        ordered = self.rows.sort_values(["chance", "part", "row"], ignore_index=True)
        kept = ordered.drop_duplicates("label").sort_values(["part", "row"])
        # parts without selected rows are listed, too
        none = dict.fromkeys(np.unique(self.rows["part"]).tolist(), np.zeros(0, dtype=np.intp))
        some: Any = kept.groupby("part")["row"]
        return none | {int(i): rows.to_numpy() for i, rows in some}

    def repeated(self, parts: Parts, column: str) -> Repeated | None:
        """Return the label with the most rows; None if all labels are distinct."""
        rows, counts = self._most()
        if len(rows) < 2:
            return None
        label = str(_label_at(parts, column, *rows[0]))
        names = [f"{name}, " if parts.is_folder else "" for name in parts.names]
        where = " and ".join(f"{names[part]}row {row + 1}" for part, row in rows)
        return Repeated(label, int(counts.max()), int((counts > 1).sum()), where)

    def refuse_repeated(self, parts: Parts, column: str) -> None:
        """Raise InputError if a label is repeated."""
        (first, row), *others = self._most()[0]
        for part, again in others:
            there = f"{parts.names[first]}, row" if part != first else "row"
            label = _label_at(parts, column, part, again)
            raise repeated_id(parts.names[part], column, again + 1, label, f"{there} {row + 1}")

    def _most(self) -> tuple[list[tuple[int, int]], pd.Series[int]]:
        """Return part and row of the first two rows of the label with most; rows of each label."""
        ordered = self.rows.sort_values(["part", "row"], ignore_index=True)
        counts = ordered["label"].value_counts(sort=False)  # in the order of the first rows
        pair = ordered[ordered["label"] == counts.idxmax()][:2]
        return list(zip(pair["part"].tolist(), pair["row"].tolist(), strict=True)), counts


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


def _label_at(parts: Parts, column: str, part: int, row: int) -> str | int:
    source = parts.names[part]
    for start, table in parts.blocks(part, [column]):
        if row < start + len(table):
            return id_column(table.iloc[[row - start]], column, source=source, start=row)[0]
    raise InputError(f"{source} has changed since it was first read; start again")
