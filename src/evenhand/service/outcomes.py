"""Recording of outcomes of logged forecasts, one by one or from a table."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import and_more, count
from evenhand._validate import REMEDY, InputError, as_floats, as_number, bad_input, short
from evenhand.distributions import OutcomeKind, from_records
from evenhand.draws import KeyedDraws, check_id
from evenhand.monitoring import as_time, as_times
from evenhand.service.contexts import logged_name, unknown_context
from evenhand.service.log import (
    DecisionLog,
    Entry,
    Logged,
    Transaction,
    digest_of,
    in_blocks,
    person_subject,
)

# --- outcomes that a logged forecast can have

LISTED_VALUES = 8
"""Largest number of values that a message lists."""


def check_outcome(y: Any, record: Mapping[str, Any], place: str, remedy: str = "") -> float:
    """Return an outcome as a float, if the logged distribution describes outcomes of this kind.

    Raises InputError if the outcome is not a finite number, or not one that the forecast can have:
    0 or 1 for events, which alone may be booleans, a value of the lattice for counts and scores, no
    amount beyond the atom, and nothing beyond a bound of the model's `support`.
    """
    if isinstance(y, bool | np.bool_):
        if from_records([record]).outcome_kind is not OutcomeKind.BINARY:
            raise bad_input(place, "be a number, not a boolean", str(y), remedy)
        return float(y)
    value = as_number(y)
    if not math.isfinite(value):
        raise bad_input(place, "be a finite number", short(y), remedy)
    rule = _broken_rule(value, record)
    if rule is not None:
        raise bad_input(place, rule, f"{value:g}", remedy)
    return value


def _broken_rule(y: float, record: Mapping[str, Any]) -> str | None:
    """Return the rule of the forecast that an outcome breaks.

    The ends of samples are no bounds: an outcome beyond them is a surprise, but possible.
    """
    rule, inner = None, record.get("base")
    match record["family"]:
        case "bernoulli" if y not in (0.0, 1.0):
            rule = "be 0 or 1"
        case "categorical" if y not in record["support"]:
            listed = and_more([f"{value:g}" for value in record["support"]], LISTED_VALUES)
            rule = f"be one of the values {listed}"
        case "poisson" | "negative_binomial" if y < 0 or y != round(y):
            rule = "be a whole number of at least 0"
        case "hurdle":
            at, has_low_atom = record["at"], record["end"] == "low"
            if (y < at) if has_low_atom else (y > at):
                rule = f"be {at:g} or {'above' if has_low_atom else 'below'}"
            inner = None if y == at else record["positive"]
        case "transformed" | "truncated" if record["support"] is not None:
            low, high = record["support"]["low"], record["support"]["high"]
            if low is not None and y < low:
                rule = f"be {low:g} or above, the bound of the forecast"
            elif high is not None and y > high:
                rule = f"be {high:g} or below, the bound of the forecast"
    # inside of these, outcomes have other units
    has_own_units = record["family"] in ("transformed", "location_scale")
    return rule if rule or has_own_units or inner is None else _broken_rule(y, inner)


# --- places of rows in the files of a table, for messages

LISTED_ROWS = 1000
"""Largest number of rows that a message lists."""


@dataclass(frozen=True)
class RowPlaces:
    """Files of a table, one after the other, each with the number, from 0, of its first row.

    Examples
    --------
    >>> places = RowPlaces(("a.csv", "b.csv"), (0, 10))
    >>> places.of(12)
    'b.csv, row 3'
    >>> places.listed([0, 2, 3, 4, 12])
    'a.csv, rows 1, 3 to 5; b.csv, row 3'
    """

    names: tuple[str, ...]
    starts: tuple[int, ...] = (0,)

    def of(self, row: int) -> str:
        """Return the file of a row and its number there, from 1."""
        return self.listed([row])

    def listed(self, rows: Sequence[int]) -> str:
        """Return the files of increasing rows and their numbers there, runs of rows as one."""
        found = []
        of_file = groupby(rows[:LISTED_ROWS], lambda row: bisect_right(self.starts, row) - 1)
        for file, some in of_file:
            numbers = np.array(list(some)) - self.starts[file] + 1
            runs = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
            shown = ", ".join(
                f"{run[0]}" if run.size == 1 else f"{run[0]} to {run[-1]}" for run in runs
            )
            found.append(f"{self.names[file]}, row{'s' * (numbers.size > 1)} {shown}")
        n_more = len(rows) - LISTED_ROWS
        return "; ".join(found) + (f" and {n_more:,} more" if n_more > 0 else "")


# --- recording of outcomes

RECORDED_AT_ONCE = 1000
"""Number of outcomes in a transaction: others wait for the log for a fraction of a second."""


News = Literal["first", "correction", "repeated"]


@dataclass(frozen=True)
class Recorded:
    """What was recorded of a table of outcomes.

    Parameters
    ----------
    n_first : int
        Outcomes of forecasts that had none.
    n_corrections : int
        Outcomes that differ from the one recorded before, which stays in the log.
    n_repeated : int
        Outcomes equal to the one recorded before; they are not logged again.
    unknown : tuple of int
        Numbers of rows, from 0, whose ids have no forecast in the log; they were skipped.
    """

    n_first: int
    n_corrections: int
    n_repeated: int
    unknown: tuple[int, ...] = ()


def record_outcome(
    log: DecisionLog, id: str, y: float, *, time: datetime | str | None = None
) -> Logged:
    """Record the outcome of a logged forecast, or its correction.

    Parameters
    ----------
    log : DecisionLog
        The log.
    id : str
        Id of the forecast.
    y : float
        The outcome, in units of the forecast; True or False for forecasts of a yes or no alone.
    time : datetime or str, optional
        When the outcome was observed. The wait of a watch is compared with the time of the entry
        in the log instead, which nobody can choose.

    Returns
    -------
    Logged
        The new entry, or the last outcome of the forecast if it has the same value.

    Raises
    ------
    InputError
        If the log has no such forecast, or the forecast cannot have this outcome.

    Examples
    --------
    >>> from evenhand.service import open_log
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = open_log(f"{folder}/log.sqlite")
    ...     record_outcome(log, "5f3c", 1.5)
    Traceback (most recent call last):
    evenhand._validate.InputError: ...log.sqlite has no forecast '5f3c'; give the id ...
    """
    # without a search for similar ids, which reads the whole log: a server may be asked for any
    forecast = log.get(id)
    if forecast is None:
        remedy = "give the id that was served with the forecast"
        raise InputError(f"{log.source} has no forecast {id!r:.80}; {remedy}")
    value = check_outcome(y, forecast.values["record"], "y")
    observed = None if time is None else f"{as_time('time', time)}Z"
    return log.run(lambda transaction: _add(transaction, id, value, observed))[0]


def record_outcomes(
    log: DecisionLog,
    ids: Sequence[str | int],
    y: ArrayLike,
    *,
    context: str | None = None,
    draws: KeyedDraws | None = None,
    observed: Sequence[Any] | None = None,
    skip_unknown: bool = False,
    places: RowPlaces | None = None,
) -> Recorded:
    """Record outcomes of many logged forecasts.

    All ids and outcomes are checked before any is recorded. They are then recorded in the order
    given, in blocks: after an interruption the same call records the rest.

    Parameters
    ----------
    log : DecisionLog
        The log.
    ids : sequence of str or int, length n
        Ids of forecasts; with `context`, ids of people, whose first forecasts are meant.
    y : array-like of shape (n,)
        Outcomes.
    context : str, optional
        Context in which people are looked up.
    draws : KeyedDraws, optional
        Draws with the key of the context, if it names people by keyed hashes.
    observed : sequence of length n, optional
        When the outcomes were observed, None where unknown.
    skip_unknown : bool, default False
        Whether to skip ids without a forecast in the log, instead of refusing all.
    places : RowPlaces, optional
        Names of the rows in messages.

    Returns
    -------
    Recorded

    Raises
    ------
    InputError
        If ids have no forecast in the log (all of them are listed), a forecast cannot have its
        outcome, or one id has different outcomes; nothing is recorded then.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.service import open_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = open_log(f"{folder}/log.sqlite")
    ...     record_outcomes(log, ["5f3c", "77ab"], [1.5, 0.3], skip_unknown=True)
    Recorded(n_first=0, n_corrections=0, n_repeated=0, unknown=(0, 1))
    """
    values = as_floats("y", y)
    if values.shape != (len(ids),):
        raise bad_input("y", f"have one value per id ({len(ids)})", f"shape {values.shape}")
    where = places or RowPlaces(("outcomes",))
    times: list[str | None] = [None] * len(ids)
    if observed is not None:
        read = as_times("observed", observed, allow_missing=True)
        times = [None if np.isnat(time) else f"{time}Z" for time in read]
    names = _names(log, ids, context, draws, where)
    found = _matched(log, names, values, context, where)
    unknown = [row for row, name in enumerate(names) if name not in found]
    if unknown and not skip_unknown:
        # without a context, the ids of people are taken for those of forecasts
        hint = "" if context is not None else ", name the context if they are ids of people"
        what = "a forecast" if context is None else f"a first forecast in the context {context!r}"
        raise InputError(
            f"{where.listed(unknown)}: {count(len(unknown), 'id')} without {what} in {log.source};"
            f" nothing was recorded; correct these ids{hint}, or skip them (skip_unknown,"
            " --skip-unknown)"
        )
    known = [
        (found[name], value, time)
        for name, value, time in zip(names, values.tolist(), times, strict=True)
        if name in found
    ]
    news: Counter[News] = Counter()
    for block in in_blocks(known, RECORDED_AT_ONCE):
        news.update(_add_all(log, block))
    return Recorded(news["first"], news["correction"], news["repeated"], tuple(unknown))


def _names(
    log: DecisionLog,
    ids: Sequence[str | int],
    context: str | None,
    draws: KeyedDraws | None,
    places: RowPlaces,
) -> list[str]:
    """Return the names by which the log knows forecasts, or people of a context."""
    checked = [check_id(one, places.of(row)) for row, one in enumerate(ids)]
    if context is None:
        return checked
    # a later entry of a context has its present library versions
    known = {entry.id: entry.values for entry in log.entries(kind="context")}
    if context not in known:
        raise unknown_context(log.source, context, list(known))
    values = known[context]
    if values["person"] == "hash" and draws is not None and draws.fingerprint != values["key"]:
        raise InputError(
            f"the key has the fingerprint {draws.fingerprint}, but people of the context"
            f" {context!r} are named by the key {values['key']}; give that key"
        )
    return [logged_name(draws, values["person"], one) for one in checked]


def _matched(
    log: DecisionLog,
    names: Sequence[str],
    values: np.ndarray[Any, Any],
    context: str | None,
    places: RowPlaces,
) -> dict[str, str]:
    """Return the id of the forecast of each known name, and check its outcomes."""
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        rows.setdefault(name, []).append(row)
    found: dict[str, str] = {}
    if context is None:
        meant = log.forecasts("id", rows)
    else:
        meant = log.forecasts("subject", [person_subject(context, name) for name in rows])
    for entry in meant:
        name = entry.id if context is None else entry.values["person"]
        if context is not None and entry.values["revision"]:
            continue
        mine = rows[name]
        for row in mine:
            place = f"{places.of(row)}: the outcome"
            check_outcome(values[row], entry.values["record"], place, REMEDY)
            if values[row] != values[mine[0]]:
                raise InputError(
                    f"{places.listed([mine[0], row])}: one id has the outcomes {values[mine[0]]}"
                    f" and {values[row]}; nothing was recorded, keep one of the rows"
                )
            found[name] = entry.id
    return found


def _add_all(log: DecisionLog, block: Sequence[tuple[str, float, str | None]]) -> list[News]:
    return log.run(lambda transaction: [_add(transaction, *one)[1] for one in block])


def _add(transaction: Transaction, id: str, y: float, observed: str | None) -> tuple[Logged, News]:
    """Add an outcome of a forecast, unless the last one has the same value."""
    # outcomes of a forecast are numbered, so that the last one is found without a search
    subject = digest_of("outcomes", id)
    n = transaction.n_of(subject)[subject]
    last = [*transaction.find(digest_of("outcome", id, n)).values()] if n else []
    if last and last[0].values["y"] == y:
        return last[0], "repeated"
    values = {"y": y, "observed": observed}
    entry = Entry("outcome", id, digest_of("outcome", id, n + 1), subject, values)
    return transaction.add(entry)[0], "correction" if n else "first"
