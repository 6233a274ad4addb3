"""Forecasts of other models in the columns of a table."""

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
    """Create forecasts from a model's means and standard deviations, quantiles or samples.

    Parameters
    ----------
    table : DataFrame of n rows
        Output of the model.
    mean, std : str, optional
        Columns with means and with standard deviations (> 0).
    quantiles : str, optional
        Comma-separated columns with quantiles, whose names end in their levels as in `q0.05`; or
        the common prefix of their names.
    samples : str, optional
        Comma-separated columns with samples of the outcome; or the common prefix of their names.
    sort_quantiles : bool, default False
        Whether to sort crossing quantiles in each row; otherwise they raise an error.
    source : str
        File name for messages.
    start : int, default 0
        Number of the first row within its file, for messages.

    Returns
    -------
    forecast : Forecast
        Deterministic forecasts of the n rows.
    columns : list of str
        Columns used.

    Raises
    ------
    InputError
        If no kind or several kinds of columns are named, or a column is missing or invalid.

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
        values = _numbers(table, names, source, start)
        equal = values.min(axis=1) == values.max(axis=1)
        if len(names) > 1 and equal.any():
            raise InputError(
                f"{source}: row {start + int(equal.argmax()) + 1} has equal samples only, which"
                " have no density; correct it or drop the row"
            )
        return Forecast.from_samples(values), names
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
    """Return the columns of a table that contain the forecasts, with quantiles sorted by level.

    Parameters as in `forecast_from_columns`. Raises InputError if no kind or several kinds are
    named, or there is no such column.
    """
    # a mean without a standard deviation is not a distribution
    kinds = [mean is not None or std is not None, quantiles is not None, samples is not None]
    if sum(kinds) != 1 or (mean is None) != (std is None):
        if sum(kinds) == 1:
            here, absent = ("--mean", "--std") if std is None else ("--std", "--mean")
            raise InputError(f"{source}: {here} needs {absent}; name both columns")
        rule = "name one kind of columns: --mean and --std, --quantiles, or --samples"
        raise InputError(f"{source}: {rule}")
    present = [str(column) for column in columns]
    if samples is not None:
        return _listed(present, samples, "--samples", source)
    if quantiles is not None:
        names = _listed(present, quantiles, "--quantiles", source)
        # quantile columns may have any order
        return sorted(names, key=_level)
    return [check_column(str(name), present, source) for name in (mean, std)]


def _listed(present: list[str], listed: str, option: str, source: str) -> list[str]:
    """Return comma-separated columns, or all columns with a common prefix."""
    names = [name.strip() for name in listed.split(",") if name.strip()]
    # a single word that is not a column is a prefix
    if len(names) == 1 and names[0] not in present:
        names = [
            name
            for name in present
            if name.startswith(names[0]) and name[len(names[0]) :][:1] in "0123456789._"
        ]
    for name in names:
        check_column(name, present, source)
    if len(names) < 2:
        remedy = "separate them by commas, or give the common prefix of their names"
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
    # equal quantiles are allowed: the distribution separates them
    falls = np.diff(values, axis=-1) < 0
    if falls.any() and not sort:
        row, column = (int(k) for k in np.argwhere(falls)[0])
        place = f"{source}: column {names[column + 1]!r}, row {start + row + 1}"
        below, above = values[row, column : column + 2]
        raise InputError(
            f"{place}: quantiles must not decrease with their level, got {above:g} after"
            f" {below:g}; correct them, or sort each row with --sort-quantiles (in Python:"
            " sort_quantiles=True)"
        )
    return Forecast.from_quantiles([_level(name) for name in names], values, sort=sort)


def _numbers(table: pd.DataFrame, names: list[str], source: str, start: int) -> Floats:
    return np.column_stack(
        [number_column(table, name, source=source, start=start) for name in names]
    )
