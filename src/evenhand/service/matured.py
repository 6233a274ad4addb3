"""Served forecasts of a log with the outcomes known when they matured (outcomes: 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats, Mask, Pair, about
from evenhand.distributions import Distribution, OutcomeKind, as_hurdle
from evenhand.forecast import Forecast
from evenhand.monitoring import Rows, as_duration, as_time, level_name, served_cells
from evenhand.service.contexts import WatchedContexts, base_of, link_of, naming_of, served_of
from evenhand.service.log import DecisionLog, EntryTimes, Logged, in_blocks, verify

# --- first forecasts of the people of some contexts, collected in one pass over a log

LEARNING = 100
"""Number of first forecasts that define the groups: the same ones, however often it is resumed."""


class FirstForecasts:
    """The first forecast of each person in some contexts, and the outcomes recorded by a time.

    Outcomes of one person are dependent given the past, so a person counts once, with the first
    forecast in any of the contexts; revisions are answers to somebody who knows the draw. Names of
    people are comparable among contexts with the same key and way of naming people: under another
    key the same people have other names, and count as new.

    All entries of a log are added in their order, then `set_times` is called, which drops those
    after `end`. Where a clock was wrong, a forecast has its latest and an outcome its earliest
    time, so that none is lost.

    Attributes
    ----------
    times : ndarray of datetime64[us], shape (n,)
        Times of the forecasts, not decreasing.
    numbers : ndarray of int, shape (n,)
        Numbers of their entries.
    ids : ndarray of str, shape (n,)
        Ids of the forecasts.
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
        self.features: list[dict[str, Any]] = []

    def add(self, entry: Logged) -> None:
        """Take note of the next entry of the log."""
        place, values = entry.number - 1, entry.values
        if entry.kind == "outcome":
            self._recorded.append((place, entry.id, values["y"]))
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
        self.ids = np.array(self._ids[: len(self)], dtype=object)
        self.features = self.features[: len(self)]
        self._times_repeated = entries.latest[self._repeated]
        records = pd.DataFrame(self._recorded, columns=["place", "id", "y"])
        records["time"] = entries.earliest[records["place"].astype(np.int64)]
        self._records = records[records["time"] <= self.end]
        self._first = self._records.drop_duplicates("id").set_index("id")["time"]

    def __len__(self) -> int:
        return self.times.size

    def is_due(self, wait: np.timedelta64) -> Mask:
        """Return which have matured by the end, (n,)."""
        return self.times + wait <= self.end

    def n_repeated(self, wait: np.timedelta64) -> int:
        """Return how many forecasts that have matured are of people counted before."""
        return int(np.sum(self._times_repeated + wait <= self.end))

    def delays(self, ids: Any, times: Any) -> Floats:
        """Return the days from times to the first record of each outcome, NaN without."""
        days = (self._first.reindex(ids).to_numpy() - times) / np.timedelta64(1, "D")
        # 0 if a wrong clock leaves their order open
        return np.maximum(days, 0.0)

    def outcomes(self, ids: Any, limits: Any) -> Floats:
        """Return the last outcomes of forecasts that were recorded by a limit, NaN without."""
        records = self._records
        in_time = records["time"] <= pd.Series(limits, ids).reindex(records["id"]).to_numpy()
        last = records[in_time].drop_duplicates("id", keep="last").set_index("id")["y"]
        return last.reindex(ids).to_numpy(float)


def features_of(entry: Logged) -> dict[str, Any]:
    """Return the columns of a forecast that may define groups: those logged, and its level."""
    values = entry.values
    is_event = values["probability"] is not None
    level = values["probability" if is_event else "mean"]
    return {**values["groups"], level_name(is_event=is_event): level}


# --- matured forecasts as rows of a watch

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
        return Rows.of([], [])
    found = FirstForecasts(WatchedContexts.of(log, names).values, end)
    found.set_times(verify(log, each=found.add).times)
    return rows_of(log, found, wait, found.is_due(wait))


def rows_of(
    log: DecisionLog,
    found: FirstForecasts,
    wait: np.timedelta64,
    chosen: Mask,
    groups: Sequence[str] = (),
    least: np.datetime64 | None = None,
) -> Rows:
    """Return rows of the `chosen` first forecasts of people, which have matured after `wait`.

    Rows have the columns `groups` even if no forecast has a value; by default, those with one.
    Their times are at least `least`.
    """
    times = found.times[chosen] if least is None else np.maximum(found.times[chosen], least)
    if not times.size:
        return Rows.of([], [])
    ids = found.ids[chosen]
    y, delay = found.outcomes(ids, times + wait), found.delays(ids, times)
    pairs = zip(log.forecasts("number", found.numbers[chosen].tolist()), y, strict=True)
    made = _joined([_columns(block) for block in in_blocks(pairs, BLOCK)], groups)
    return Rows(time=times, known=~np.isnan(y), delay=delay, **made)


def _columns(served: Sequence[tuple[Logged, float]]) -> dict[str, Any]:
    """Return columns of `Rows` for forecasts, each with its outcome."""
    entries = [entry for entry, _ in served]
    y = np.array([one for _, one in served])
    with about(f"entries {entries[0].number} to {entries[-1].number}"):
        base = base_of(entries)
    link = link_of(entries[0].values)
    kind = base.outcome_kind
    is_hurdle = kind is OutcomeKind.HURDLE
    return {
        "pit": served_cells(served_of(entries, base), y),
        # None becomes NaN
        "r": np.array([entry.values["r"] for entry in entries], dtype=float),
        "base": None if link is None else _base_cells(base, y),
        "excess": y - np.exp(base.logsf(0.0)) if kind is OutcomeKind.BINARY else None,
        "promised": np.isnan(y) | (y != as_hurdle(base).at) if is_hurdle else None,
        "columns": [features_of(entry) for entry in entries],
        "link": link,
    }


def _base_cells(base: Distribution, y: Floats) -> Pair:
    """Return PIT cells of the deterministic forecasts; for amounts, those off the atom."""
    if base.outcome_kind is not OutcomeKind.HURDLE:
        return served_cells(Forecast(base), y)
    hurdle = as_hurdle(base)
    is_atom = y == hurdle.at
    low, high = served_cells(Forecast(hurdle.positive), np.where(is_atom, np.nan, y))
    return np.where(is_atom, 0.0, low), np.where(is_atom, 1.0, high)


def _joined(blocks: Sequence[dict[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Return the columns of all blocks, in order."""

    def joined(name: str) -> Any:
        parts = [block[name] for block in blocks]
        if any(part is None for part in parts):
            return None
        found = np.concatenate(parts, axis=-1)
        return tuple(found) if found.ndim == 2 else found

    found = {name: joined(name) for name in ("pit", "r", "base", "excess", "promised")}
    if np.isnan(found["r"]).all():
        found["r"] = None
    groups = [values for block in blocks for values in block["columns"]]
    columns = pd.DataFrame(groups, columns=list(names) or None)
    # one model for all forecasts of a context
    return found | {"columns": columns, "link": blocks[0]["link"]}
