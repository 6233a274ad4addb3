"""Rows of the tables on which the benchmark of peers compares intervals and distributions."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.append(str(Path(__file__).parents[1] / "forecasts"))
# tables of the studies, which lie outside the package
sys.path.append(str(Path(__file__).resolve().parents[2]))
from tables import FOLDS, REPORTED, Table, fold_of, prepared, read

from reproduction.datasets import load_credit

ENOUGH_ROWS = 2000
"""Folds are taken until they have so many test rows."""

NAMES = ("Bwages", "Cigar", "credit", "MunExp", "Schooling", "Wages")
"""Tables of the report of the forecast benchmark with at least 1,000 rows."""


@dataclass(frozen=True)
class Data:
    """Rows of a table in the forms that methods take.

    Parameters
    ----------
    X : DataFrame of shape (n, p)
        Features: numbers and categories.
    numbers : ndarray of shape (n, q)
        The same as numbers: scaled to [0, 1], medians for missing values, indicators of categories.
    y : ndarray of shape (n,)
        Outcomes.
    """

    X: pd.DataFrame
    numbers: np.ndarray
    y: np.ndarray

    def __getitem__(self, rows: np.ndarray) -> Data:
        return Data(self.X.loc[rows].reset_index(drop=True), self.numbers[rows], self.y[rows])


def filled(X: pd.DataFrame) -> pd.DataFrame:
    """Return the table with medians for missing numbers, and a value of its own otherwise."""
    columns = {}
    for name, column in X.items():
        if pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column):
            columns[name] = column.fillna(column.median()).astype(float)
        else:
            columns[name] = column.astype(object).where(column.notna(), "missing").astype(str)
    return pd.DataFrame(columns)


def as_numbers(X: pd.DataFrame) -> np.ndarray:
    """Return features as numbers between 0 and 1, with an indicator for each category."""
    found = pd.get_dummies(filled(X)).to_numpy(dtype=float)
    low, high = found.min(axis=0), found.max(axis=0)
    return (found - low) / np.where(high > low, high - low, 1.0)


def folds_of(n_rows: int) -> list[np.ndarray]:
    """Return masks of test rows, one per fold, until there are enough."""
    fold = np.array(fold_of(n_rows))
    needed = min(FOLDS, int(np.ceil(ENOUGH_ROWS * FOLDS / n_rows)))
    return [fold == k for k in range(needed)]


def frame_of(table: Table) -> pd.DataFrame:
    """Return a prepared table, its outcome last."""
    if table.source != "credit":
        return prepared(table, read(table))
    data = load_credit()
    frame = data.X if table.outcome in data.X else data.X.assign(**{table.outcome: data.y})
    return prepared(table, frame)


def data_of(frame: pd.DataFrame) -> Data:
    """Return the rows of a prepared table."""
    frame = frame.reset_index(drop=True)
    outcome = frame.columns[-1]
    X = frame.drop(columns=[outcome])
    words = [name for name in X if not pd.api.types.is_numeric_dtype(X[name])]
    words += [name for name in X if pd.api.types.is_bool_dtype(X[name])]
    X = X.astype(dict.fromkeys(words, "category"))
    return Data(X, as_numbers(X), frame[outcome].to_numpy(dtype=float))


def wanted_tables() -> list[Table]:
    """Return the tables that are used."""
    return [table for table in REPORTED if table.name in NAMES]
