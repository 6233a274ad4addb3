"""Jobs of the forecast benchmark: one fit per table, fold and forecaster, one result file each.

A result file that exists is not computed again, so that a run that was stopped can be continued.
This module needs NumPy and pandas only, as it runs in the environment of the peers as well.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tables import FOLDS, TABLES, Table, fold_of, prepared

Predict = Callable[[pd.DataFrame], Any]
Fit = Callable[[pd.DataFrame, np.ndarray, int], Predict]
"""Fits a forecaster to features and outcomes with a seed, and returns its predictions for rows."""


PREDICTED = 5600
"""Number of rows whose predictions are timed: those of the table, repeated."""


@dataclass(frozen=True)
class Rows:
    """A prepared table.

    Parameters
    ----------
    name : str
        Name of the table.
    X : DataFrame of shape (n, n_features)
        Features: numbers, and categories for text and booleans; missing values are NaN.
    y : ndarray of shape (n,)
        Outcomes.
    """

    name: str
    X: pd.DataFrame
    y: np.ndarray

    def test(self, fold: int) -> np.ndarray:
        """Return the mask of the test rows of a fold, shape (n,)."""
        return np.array(fold_of(len(self.y))) == fold


def table_file(folder: Path, name: str) -> Path:
    """Return the file of a prepared table."""
    return folder / "tables" / f"{name}.csv"


def result_file(folder: Path, name: str, forecaster: str, fold: int) -> Path:
    """Return the file with the result of a forecaster on a fold of a table."""
    return folder / "results" / name / f"{forecaster}-{fold}.npz"


def write_table(folder: Path, table: Table, frame: pd.DataFrame) -> None:
    """Prepare a table and write it; floats keep all their digits in the text."""
    file = table_file(folder, table.name)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, lambda part: prepared(table, frame).to_csv(part, index=False))


def read_rows(folder: Path, name: str) -> Rows:
    """Read a prepared table; the last column is the outcome."""
    # "NA" and "None" can be categories; only an empty cell is missing
    frame = pd.read_csv(table_file(folder, name), keep_default_na=False, na_values=[""])
    outcome = frame.columns[-1]
    y = frame.pop(outcome).to_numpy(dtype=np.float64)
    words = [column for column in frame if not pd.api.types.is_numeric_dtype(frame[column].dtype)]
    words += [column for column in frame if pd.api.types.is_bool_dtype(frame[column].dtype)]
    return Rows(name, frame.astype(dict.fromkeys(words, "category")), y)


def run_jobs(
    forecasters: Mapping[str, Fit], finish: Callable[[Any, Rows, np.ndarray], dict[str, Any]]
) -> None:
    """Run the jobs named on the command line, the smallest tables first.

    Parameters
    ----------
    forecasters : dict of str to function
        Forecasters of this environment.
    finish : function
        Turns the predictions for the test rows, given the rows and the mask of the test rows, into
        the arrays of the result file.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path, help="prepared tables")
    parser.add_argument("--out", type=Path, required=True, help="folder of the results")
    parser.add_argument("--tables", nargs="+", default=[table.name for table in TABLES])
    parser.add_argument("--forecasters", nargs="+", default=list(forecasters))
    parser.add_argument("--folds", nargs="+", type=int, default=list(range(FOLDS)))
    options = parser.parse_args()
    present = [name for name in options.tables if table_file(options.folder, name).exists()]
    for name in sorted(present, key=lambda name: table_file(options.folder, name).stat().st_size):
        rows = read_rows(options.folder, name)
        for fold in options.folds:
            for forecaster in options.forecasters:
                file = result_file(options.out, name, forecaster, fold)
                if not file.exists():
                    seconds, arrays = one_job(forecasters[forecaster], rows, fold, finish)
                    write_result(file, cpu=seconds, **arrays)
                    print(f"{name} fold {fold} {forecaster} {seconds:.2f} s", flush=True)


def one_job(
    fit: Fit, rows: Rows, fold: int, finish: Callable[[Any, Rows, np.ndarray], dict[str, Any]]
) -> tuple[float, dict[str, Any]]:
    """Return the CPU seconds of one fit and the arrays of its result; the fold is the seed.

    One of the arrays is the CPU seconds of predictions for `PREDICTED` rows.
    """
    test = rows.test(fold)
    X = rows.X[~test].reset_index(drop=True)
    start = time.process_time()
    predict = fit(X, rows.y[~test], fold)
    seconds = time.process_time() - start
    many = rows.X.iloc[np.resize(np.arange(len(rows.y)), PREDICTED)].reset_index(drop=True)
    start = time.process_time()
    predict(many)
    predicting = time.process_time() - start
    arrays = finish(predict(rows.X[test].reset_index(drop=True)), rows, test)
    return seconds, {**arrays, "predict": predicting}


def write_result(file: Path, **arrays: Any) -> None:
    """Write the arrays of a result."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_whole(file, lambda part: np.savez_compressed(part, **arrays))


def write_whole(file: Path, write: Callable[[Any], Any]) -> None:
    """Write a file under another name and rename it, so that no file is ever incomplete."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    with part.open("wb") as stream:
        write(stream)
    part.replace(file)
