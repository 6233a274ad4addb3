"""Numbers in the columns of forecasts of another model, checked by row."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from evenhand._validate import Floats, InputError, Mask
from evenhand.tables import number_column


class ColumnValues:
    """Numbers in the columns of forecasts, by option.

    Parameters
    ----------
    table : DataFrame of n rows
        Output of the model.
    columns : dict of str to list of str
        Columns by option.
    source : str
        File name for messages.
    start : int, default 0
        Number of the first row within its file, for messages.

    Examples
    --------
    >>> table = pd.DataFrame({"p": [0.2, 1.5]})
    >>> ColumnValues(table, {"probability": ["p"]}, "t.csv").probabilities("probability")
    Traceback (most recent call last):
    evenhand._validate.InputError: t.csv: column 'p', row 2: a probability must lie between 0 and
    1, got 1.5; correct it or drop the row
    """

    def __init__(
        self, table: pd.DataFrame, columns: Mapping[str, list[str]], source: str, start: int = 0
    ) -> None:
        self.columns = columns
        self.source = source
        self.start = start
        self._values: dict[str, Floats] = {
            option: np.column_stack(
                [number_column(table, name, source=source, start=start) for name in names]
            )
            for option, names in columns.items()
        }

    def __contains__(self, option: object) -> bool:
        return option in self._values

    def __getitem__(self, option: str) -> Floats:
        """Return the numbers of an option, shape (n, number of columns)."""
        return self._values[option]

    def one(self, option: str) -> Floats:
        """Return the numbers of an option with one column, shape (n,)."""
        return self._values[option][:, 0]

    def probabilities(self, option: str) -> Floats:
        """Return the probabilities of an option, shape (n, number of columns)."""
        values = self._values[option]
        self.refuse(option, (values < 0) | (values > 1), "a probability must lie between 0 and 1")
        return values

    def place(self, option: str, row: int, column: int = 0) -> str:
        """Return the place of a value in messages; rows are counted from 0 here."""
        name = self.columns[option][column]
        return f"{self.source}: column {name!r}, row {self.start + row + 1}"

    def refuse(self, option: str, wrong: Mask, rule: str) -> None:
        """Raise InputError for the first value marked as wrong, an array (n, columns)."""
        if wrong.any():
            row, column = (int(k) for k in np.argwhere(wrong)[0])
            raise InputError(
                f"{self.place(option, row, column)}: {rule}, got"
                f" {self._values[option][row, column]:g}; correct it or drop the row"
            )
