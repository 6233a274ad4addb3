"""Outcomes that forecasts in columns can describe."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from evenhand._validate import MAX_ATOM, MIN_DISTINCT, Floats, Mask, bad_input, largest_atom
from evenhand.distributions import OutcomeKind
from evenhand.scale.column_names import pmf_value
from evenhand.scale.column_options import ForecastColumns

DROP = "correct it or drop the row"

MOST_VALUES = 8
"""Largest number of values of the outcome that a message lists."""


def check_outcomes(
    columns: ForecastColumns,
    y: Floats,
    present: Iterable[object],
    *,
    target: str,
    source: str,
    start: int = 0,
) -> None:
    """Refuse outcomes that forecasts in columns cannot describe.

    Parameters
    ----------
    columns : ForecastColumns
        Columns of the forecasts.
    y : ndarray of shape (n,)
        Outcomes.
    present : iterable of str
        Columns of the table.
    target : str
        Column with the outcomes, for messages.
    source : str
        File name for messages.
    start : int, default 0
        Number of the first row within its file, for messages.

    Raises
    ------
    InputError
        If a 0/1 outcome has another value, a count is not a whole number of at least 0, a value is
        not among those of `--pmf`, or an amount with zeros or a time is below 0.
    """
    refuse = partial(_refuse, target=target, source=source, start=start)
    kind = columns.outcome_kind(source)
    if columns.is_of_times:
        refuse(y < 0, y, "be 0 or above, as it is a time", DROP)
        return
    match kind:
        case OutcomeKind.BINARY:
            check_events(y, target=target, source=source, start=start)
        case OutcomeKind.HURDLE:
            refuse(y < 0, y, "be 0 or above for --chance-of-zero", DROP)
        case OutcomeKind.COUNT if columns.pmf is not None:
            support = [pmf_value(name) for name in columns.by_option(present, source)["pmf"]]
            rule = f"be one of the values of --pmf ({_values(support)})"
            remedy = "add the column with the probability of this value, or drop the row"
            refuse(~np.isin(y, support), y, rule, remedy)
        case OutcomeKind.COUNT:
            # samples of scores may be negative; means are those of counts
            is_possible = (y == np.round(y)) & ((y >= 0) | (columns.samples is not None))
            least = "" if columns.samples is not None else " of at least 0"
            rule = f"be a whole number{least} for --outcome count"
            refuse(~is_possible, y, rule, DROP)


def remedy_for(columns: ForecastColumns, y: Floats) -> str | None:
    """Return the option for discrete outcomes of columns that make continuous forecasts.

    None if no option fits the outcomes.

    Examples
    --------
    >>> remedy_for(ForecastColumns(mean="m", std="s"), np.arange(100.0) % 2)
    'if the forecasts are probabilities of an event, name their column with --probability'
    """
    values = np.unique(y)
    atom, share = largest_atom(y)
    is_count = bool((values == np.round(values)).all() and values[0] >= 0)
    amounts = "--chance-of-zero, with the other columns for amounts above 0"
    if values.size == 2:
        coded = "" if set(values) == {0.0, 1.0} else ", and code the event as 1, the other as 0"
        return (
            "if the forecasts are probabilities of an event, name their column with"
            f" --probability{coded}"
        )
    counts = "add --outcome count"
    if columns.quantiles is not None:
        counts = "name --pmf, or --mean with --outcome count, instead of quantiles"
    may_be_amounts = atom == values[0] == 0 and share > MAX_ATOM
    if is_count and may_be_amounts and values.size >= MIN_DISTINCT:
        return f"for counts {counts}; for amounts with zeros add {amounts}"
    if is_count:
        return f"if the forecasts are of counts or scores, {counts}"
    return f"for amounts with zeros add {amounts}" if may_be_amounts else None


def check_events(y: Floats, *, target: str, source: str, start: int = 0) -> None:
    """Refuse values other than 0 and 1; parameters as in `check_outcomes`.

    Examples
    --------
    >>> check_events(np.array([0.0, 2.0]), target="bad", source="t.csv")
    Traceback (most recent call last):
    evenhand._validate.InputError: t.csv: column 'bad', row 2 must be 0 or 1, got 2; code the event
    as 1, or drop the row
    """
    remedy = "code the event as 1, or drop the row"
    _refuse(~np.isin(y, (0.0, 1.0)), y, "be 0 or 1", remedy, target, source, start)


def _values(support: list[float]) -> str:
    """Return the values of an outcome in words."""
    listed = ", ".join(f"{value:g}" for value in support[:MOST_VALUES])
    return f"{listed}, ..., {support[-1]:g}" if len(support) > MOST_VALUES else listed


def _refuse(
    wrong: Mask, y: Floats, rule: str, remedy: str, target: str, source: str, start: int
) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        place = f"{source}: column {target!r}, row {start + row + 1}"
        raise bad_input(place, rule, f"{y[row]:g}", remedy)
