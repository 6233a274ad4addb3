"""Served forecasts of a log with the outcomes known when they matured (outcomes: 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

import numpy as np

from evenhand._validate import Floats, Mask, about
from evenhand.distributions import Distribution, OutcomeKind, as_hurdle
from evenhand.forecast import Forecast
from evenhand.monitoring import Rows, as_duration, as_time, level_name, pit_cells
from evenhand.service.contexts import (
    WatchedContexts,
    base_of,
    link_of,
    naming_of,
    served_of,
)
from evenhand.service.log import DecisionLog, EntryTimes, Logged, in_blocks, verified

# --- first forecasts of the people of some contexts, collected in one pass over a log

LEARNING = 100
"""Number of first forecasts that define the groups: the same ones, however often it is resumed."""

Record = tuple[np.datetime64, float]
"""Time at which an outcome was recorded, and its value."""


class FirstForecasts:
    """The first forecast of each person in some contexts, and the outcomes recorded by a time.

    Outcomes of one person are dependent given the past, so a person counts once, with the first
    forecast in any of the contexts; revisions are answers to somebody who knows the draw. Names of
    people are comparable among contexts with the same key and way of naming people: under another
    key the same people have other names, and count as new.

    All entries of a log are added in their order, then `set_times` is called. Where a clock was
    wrong, a forecast has its latest and an outcome its earliest time, so that none is lost.

    Parameters
    ----------
    contexts : dict
        Names of the contexts with what the log has about them.
    end : datetime64
        Time up to which entries are read; `set_times` drops later ones.

    Attributes
    ----------
    times : ndarray of datetime64[us], shape (n,)
        Times of the forecasts, not decreasing.
    numbers : ndarray of int, shape (n,)
        Numbers of their entries.
    outcomes : dict
        Times and values of the outcomes of each forecast id, in the order of the log.
    features : list of dict
        Values of group columns of the first 100 people.
    """

    def __init__(self, contexts: Mapping[str, Mapping[str, Any]], end: np.datetime64) -> None:
        self._naming = {name: naming_of(values) for name, values in contexts.items()}
        self.end = end
        # hashes have a fixed size, whatever the names
        self._people: set[bytes] = set()
        # places of entries in the log, from 0, one less than their numbers
        self._places: list[int] = []
        self._repeated: list[int] = []
        self._recorded: list[tuple[int, str, float]] = []
        self._ids: list[str] = []
        self.outcomes: dict[str, list[Record]] = {}
        self.features: list[dict[str, Any]] = []

    def add(self, entry: Logged) -> None:
        """Take note of the next entry of the log."""
        place, values = entry.number - 1, entry.values
        if entry.kind == "outcome":
            self._recorded.append((place, entry.id, float(values["y"])))
        if entry.kind != "forecast" or values["revision"]:
            return
        naming = self._naming.get(values["context"])
        if naming is None:
            return
        person = blake2b(f"{naming}\0{values['person']}".encode(), digest_size=16).digest()
        if person in self._people:
            self._repeated.append(place)
            return
        self._people.add(person)
        self._places.append(place)
        self._ids.append(entry.id)
        if len(self.features) < LEARNING:
            self.features.append(features_of(entry))

    def set_times(self, entries: EntryTimes) -> None:
        """Set the times of the forecasts and outcomes by those of all entries that were added."""
        served = entries.latest[self._places]
        self.times: Any = served[served <= self.end]
        self.numbers = np.array(self._places[: len(self)], dtype=np.int64) + 1
        self._ids, self.features = self._ids[: len(self)], self.features[: len(self)]
        self._times_repeated = entries.latest[self._repeated]
        recorded = entries.earliest[[place for place, _, _ in self._recorded]]
        for time, (_, id, y) in zip(recorded, self._recorded, strict=True):
            if time <= self.end:
                self.outcomes.setdefault(id, []).append((time, y))

    def __len__(self) -> int:
        return int(self.times.size)

    def is_due(self, wait: np.timedelta64) -> Mask:
        """Return which have matured by the end, (n,)."""
        return np.asarray(self.times + wait <= self.end)

    def n_repeated(self, wait: np.timedelta64) -> int:
        """Return how many forecasts that have matured are of people counted before."""
        return int(np.sum(self._times_repeated + wait <= self.end))

    def delays(self) -> Any:
        """Return the days from each forecast to the first record of its outcome, NaN without."""
        never = [(np.datetime64("NaT"), 0.0)]
        first = [self.outcomes.get(id, never)[0][0] for id in self._ids]
        return days_between(self.times, np.array(first, dtype=self.times.dtype))


def features_of(entry: Logged) -> dict[str, Any]:
    """Return the columns of a forecast that may define groups: those logged, and its level."""
    values = entry.values
    is_event = values["probability"] is not None
    level = values["probability" if is_event else "mean"]
    return {**values["groups"], level_name(is_event=is_event): level}


def days_between(served: Any, recorded: Any) -> Any:
    """Return days from serving to a record; 0 if a wrong clock leaves their order open."""
    return np.maximum((recorded - served) / np.timedelta64(1, "D"), 0.0)


# --- served forecasts of a log with the outcomes known when they matured (outcomes: 6)

BLOCK = 2000
"""Number of forecasts whose distributions are in memory at once."""


def matured_rows(
    log: DecisionLog,
    *,
    matures_after: float | str | timedelta,
    until: datetime | np.datetime64 | str | None = None,
    contexts: str | Sequence[str] | None = None,
) -> Rows:
    """Return the forecasts that have matured, in the order of serving.

    The outcome of a forecast is the last one recorded until it matures, measured from the time at
    which the forecast was logged. An outcome first recorded later counts as missing, with its
    delay. A forecast enters once it has matured, never when its outcome arrives: early
    outcomes differ from late ones, so that the order of arrival would be evidence by itself.

    Parameters
    ----------
    log : DecisionLog
        The log.
    matures_after : float, str or timedelta
        Time from serving to the use of the outcome, in days or as "365d", "12h"; the same in all
        calls for one watch.
    until : datetime, datetime64 or str, optional
        Time for which the log is read: later entries are ignored. Now by default; in UTC unless it
        has a zone.
    contexts : str or sequence of str, optional
        Names of the contexts; by default all contexts with the model of the newest one.

    Returns
    -------
    Rows
        The first forecast of each person in any of the contexts, and no revisions: outcomes of one
        person are dependent, and revisions are answers to somebody who knows the draw. People are
        compared by their names in the log, which differ between contexts with different keys.

    Raises
    ------
    InputError
        If `matures_after` or an entry cannot be read, a context is unknown, or the log is not as it
        was written.

    Notes
    -----
    PITs are computed from the logged distributions. Those of families without exact records are
    within 0.0005 of those of the forecaster. For amounts with an atom, `base` is the PIT given that
    the outcome is not the atom, and the whole interval from 0 to 1 at the atom.
    """
    wait = as_duration(matures_after)
    # before the log is read: what others write in the meantime is later
    end = as_time("until", datetime.now(UTC) if until is None else until)
    names = [contexts] if isinstance(contexts, str) else contexts
    if next(log.entries(kind="context"), None) is None:
        return _joined([])
    found = FirstForecasts(WatchedContexts.of(log, names).values, end)
    readings = []
    for entry in verified(log.entries(), log.source):
        found.add(entry)
        readings.append(entry.time)
    found.set_times(EntryTimes.of(readings, end))
    return rows_of(log, found, wait, found.is_due(wait))


def rows_of(
    log: DecisionLog,
    found: FirstForecasts,
    wait: np.timedelta64,
    chosen: Mask,
    groups: Sequence[str] = (),
    least: np.datetime64 | None = None,
) -> Rows:
    """Return rows of some of the first forecasts of people, which have matured.

    Parameters
    ----------
    log : DecisionLog
        The log.
    found : FirstForecasts
        First forecasts of people in the log.
    wait : timedelta64
        How long after serving forecasts mature.
    chosen : ndarray of bool, shape (n,)
        The forecasts.
    groups : sequence of str, optional
        Columns that the rows have even if no forecast has a value; by default, those with one.
    least : datetime64, optional
        Least time of the rows.
    """
    times = found.times[chosen] if least is None else np.maximum(found.times[chosen], least)
    pairs = zip(log.forecasts("number", found.numbers[chosen].tolist()), times, strict=True)
    return _joined([_columns(block, found, wait) for block in in_blocks(pairs, BLOCK)], groups)


def _columns(
    served: Sequence[tuple[Logged, np.datetime64]], found: FirstForecasts, wait: np.timedelta64
) -> dict[str, Any]:
    """Return columns of `Rows` for forecasts, each with its time, and their outcomes by then."""
    entries = [entry for entry, _ in served]
    time = np.array([one for _, one in served])
    y = np.full(len(entries), np.nan)
    delay = np.full(len(entries), np.nan)
    for row, entry in enumerate(entries):
        mine = found.outcomes.get(entry.id, [])
        if mine:
            delay[row] = days_between(time[row], mine[0][0])
        for recorded, value in mine:
            if recorded <= time[row] + wait:
                y[row] = value
    with about(f"entries {entries[0].number} to {entries[-1].number}"):
        base = base_of(entries)
    link = link_of(entries[0].values)
    kind = base.outcome_kind
    is_hurdle = kind is OutcomeKind.HURDLE
    return {
        "time": time,
        "known": ~np.isnan(y),
        "pit": pit_cells(served_of(entries, base), y),
        # None becomes NaN
        "r": np.array([entry.values["r"] for entry in entries], dtype=np.float64),
        "base": None if link is None else _base_cells(base, y),
        "excess": y - np.exp(base.logsf(0.0)) if kind is OutcomeKind.BINARY else None,
        "promised": np.isnan(y) | (y != as_hurdle(base).at) if is_hurdle else None,
        "columns": [features_of(entry) for entry in entries],
        "delay": delay,
        "link": link,
    }


def _base_cells(base: Distribution, y: Floats) -> tuple[Floats, Floats]:
    """Return PIT cells of the deterministic forecasts; for amounts, those off the atom."""
    if base.outcome_kind is not OutcomeKind.HURDLE:
        return pit_cells(Forecast(base), y)
    hurdle = as_hurdle(base)
    is_atom = y == hurdle.at
    low, high = pit_cells(Forecast(hurdle.positive), np.where(is_atom, np.nan, y))
    return np.where(is_atom, 0.0, low), np.where(is_atom, 1.0, high)


def _joined(blocks: Sequence[dict[str, Any]], names: Sequence[str] = ()) -> Rows:
    """Return the rows of all blocks, in order."""
    import pandas as pd

    if not blocks:
        return Rows.of([], [])

    def joined(parts: Sequence[Any]) -> Any:
        if any(part is None for part in parts):
            return None
        if isinstance(parts[0], tuple):
            return tuple(np.concatenate(ends) for ends in zip(*parts, strict=True))
        return np.concatenate(parts)

    link = blocks[0]["link"]  # one model for all forecasts of a context
    groups = [values for block in blocks for values in block["columns"]]
    columns = pd.DataFrame(groups, columns=list(names) or None)
    arrays = blocks[0].keys() - {"columns", "link"}
    found = {name: joined([block[name] for block in blocks]) for name in arrays}
    if np.isnan(found["r"]).all():
        found["r"] = None
    return Rows(**found, columns=columns, link=link)
