"""Forecasts of other models, from the columns of a table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats, InputError, bad_input, check_column
from evenhand.forecast import Forecast
from evenhand.tables import number_column

LEVEL = re.compile(r"(0?\.[0-9]+)$")


def forecast_from_columns(
    table: pd.DataFrame,
    *,
    mean: str | None = None,
    std: str | None = None,
    quantiles: str | None = None,
    samples: str | None = None,
    sort_quantiles: bool = False,
    source: str,
    start: int = 0,
) -> tuple[Forecast, list[str]]:
    """Make forecasts from a model's output: means and standard deviations, quantiles or samples.

    Parameters
    ----------
    table : DataFrame of n rows
        The model's output.
    mean, std : str, optional
        Columns with means and with standard deviations (> 0).
    quantiles : str, optional
        Columns with quantiles, with commas between, each name ending in its level as in `q0.05`; or
        what all their names begin with.
    samples : str, optional
        Columns with samples of the outcome, with commas between; or what all their names begin
        with.
    sort_quantiles : bool, default False
        Whether quantiles that fall with their level are sorted in each row; they are refused
        otherwise.
    source : str
        File name for messages.
    start : int, default 0
        Number of the first row within its file, for messages.

    Returns
    -------
    forecast : Forecast
        Deterministic forecasts of the n rows.
    columns : list of str
        The columns they were made of.

    Raises
    ------
    InputError
        If none or several kinds are named, or a column is missing or does not fit.

    Examples
    --------
    >>> output = pd.DataFrame({"q0.25": [1.0], "q0.5": [2.0], "q0.75": [3.0]})
    >>> forecast, columns = forecast_from_columns(output, quantiles="q", source="output.csv")
    >>> forecast.ppf(0.5), columns
    (array([2.]), ['q0.25', 'q0.5', 'q0.75'])
    """
    names = forecast_columns(
        table.columns, mean=mean, std=std, quantiles=quantiles, samples=samples, source=source
    )
    if quantiles is not None:
        return _from_quantiles(table, names, source, start, sort=sort_quantiles), names
    if samples is not None:
        return Forecast.from_samples(_numbers(table, names, source, start)), names
    loc, scale = _numbers(table, names, source, start).T
    if not (scale > 0).all():
        row = int((scale <= 0).argmax())
        place = f"{source}: column {std!r}, row {start + row + 1}"
        raise InputError(
            f"{place}: a standard deviation must be positive, got {scale[row]:g};"
            " correct it or drop the row"
        )
    return Forecast.from_normal(loc, scale), names


def forecast_columns(
    columns: Iterable[Any],
    *,
    mean: str | None = None,
    std: str | None = None,
    quantiles: str | None = None,
    samples: str | None = None,
    source: str,
) -> list[str]:
    """Return which columns of a table hold the forecasts, quantiles by rising level.

    Options as for `forecast_from_columns`. Raises InputError if none or several kinds are named, or
    there is no such column.
    """
    # a mean without a standard deviation predicts no distribution
    kinds = [mean is not None or std is not None, quantiles is not None, samples is not None]
    if sum(kinds) != 1 or (mean is None) != (std is None):
        rule = "name one kind of columns: --mean and --std, --quantiles, or --samples"
        raise InputError(f"{source}: {rule}")
    present = [str(column) for column in columns]
    if samples is not None:
        return _listed(present, samples, "--samples", source)
    if quantiles is not None:
        names = _listed(present, quantiles, "--quantiles", source)
        # files list quantiles in any order
        return sorted(names, key=_level)
    return [check_column(str(name), present, source) for name in (mean, std)]


def _listed(present: list[str], listed: str, option: str, source: str) -> list[str]:
    """Return the columns listed with commas between, or all that begin with the word given."""
    names = [name.strip() for name in listed.split(",") if name.strip()]
    # one word that is no column is the beginning of the columns' names
    if len(names) == 1 and names[0] not in present:
        names = [
            name
            for name in present
            if name.startswith(names[0]) and name[len(names[0]) :][:1] in "0123456789._"
        ]
    for name in names:
        check_column(name, present, source)
    if len(names) < 2:
        remedy = "list them with commas between, or give what their names begin with"
        raise bad_input(option, "name at least two columns", repr(listed), remedy)
    return names


def _level(name: str) -> float:
    found = LEVEL.search(name)
    if found is None:
        raise bad_input(
            "--quantiles", "name columns that end in their level, such as q0.05", repr(name)
        )
    return float(found.group(1))


def _from_quantiles(
    table: pd.DataFrame, names: list[str], source: str, start: int, *, sort: bool
) -> Forecast:
    values = _numbers(table, names, source, start)
    # equal quantiles are allowed, and spread by the distribution
    falls = np.diff(values, axis=-1) < 0
    if falls.any() and not sort:
        row, column = (int(k) for k in np.argwhere(falls)[0])
        place = f"{source}: column {names[column + 1]!r}, row {start + row + 1}"
        below, above = values[row, column : column + 2]
        raise InputError(
            f"{place}: quantiles must not fall with their level, got {above:g} after"
            f" {below:g}; correct them, or sort each row with --sort-quantiles (in Python:"
            " sort_quantiles=True)"
        )
    return Forecast.from_quantiles([_level(name) for name in names], values, sort=sort)


def _numbers(table: pd.DataFrame, names: list[str], source: str, start: int) -> Floats:
    return np.column_stack(
        [number_column(table, name, source=source, start=start) for name in names]
    )
