"""First forecasts of the people of some contexts, collected in one pass over a log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from evenhand._validate import Mask
from evenhand.service.decision_log import DecisionLog
from evenhand.service.entries import Logged
from evenhand.service.entry_times import EntryTimes

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
        self._n_entries = 0
        # places of entries in the log, from 0
        self._places: list[int] = []
        self._repeated: list[int] = []
        self._recorded: list[tuple[int, str, float]] = []
        self._ids: list[str] = []
        self._numbers: list[int] = []
        self.outcomes: dict[str, list[Record]] = {}
        self.features: list[dict[str, Any]] = []

    def add(self, entry: Logged) -> None:
        """Take note of the next entry of the log."""
        place, values = self._n_entries, entry.values
        self._n_entries += 1
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
        self._numbers.append(entry.number)
        if len(self.features) < LEARNING:
            self.features.append(values.get("groups") or {})

    def set_times(self, entries: EntryTimes) -> None:
        """Set the times of the forecasts and outcomes by those of all entries that were added."""
        served = entries.latest[self._places]
        self.times: Any = served[served <= self.end]
        self.numbers = np.array(self._numbers[: len(self)], dtype=np.int64)
        self._ids, self.features = self._ids[: len(self)], self.features[: len(self)]
        self._times_repeated = entries.latest[self._repeated]
        recorded = entries.earliest[[place for place, _, _ in self._recorded]]
        for time, (_, id, y) in zip(recorded, self._recorded, strict=True):
            if time <= self.end:
                self.outcomes.setdefault(id, []).append((time, y))

    def __len__(self) -> int:
        return int(self.times.size)

    def is_due(self, wait: np.timedelta64) -> Mask:
        """Return whose horizon has passed by the end, (n,)."""
        return np.asarray(self.times + wait <= self.end)

    def n_repeated(self, wait: np.timedelta64) -> int:
        """Return how many forecasts, whose horizon has passed, are of people counted before."""
        return int(np.sum(self._times_repeated + wait <= self.end))

    def delays(self) -> Any:
        """Return the days from each forecast to the first record of its outcome, NaN without."""
        never = [(np.datetime64("NaT"), 0.0)]
        first = [self.outcomes.get(id, never)[0][0] for id in self._ids]
        return days_between(self.times, np.array(first, dtype=self.times.dtype))

    def entries(self, log: DecisionLog, chosen: Mask) -> Iterator[Logged]:
        """Yield chosen forecasts from the log, in order."""
        numbers = self.numbers[chosen].tolist()
        if not numbers:
            return
        wanted = iter(numbers)
        number = next(wanted)
        for entry in log.entries(after=numbers[0] - 1, kind="forecast"):
            if entry.number != number:
                continue
            yield entry
            following = next(wanted, None)
            if following is None:
                return
            number = following


def naming_of(values: Mapping[str, Any]) -> str:
    """Return what contexts must have in common for their names of people to be comparable."""
    mode = values.get("person")
    # ids are the same under every key
    return str(mode) if mode == "id" else f"{mode} {values.get('key')}"


def days_between(served: Any, recorded: Any) -> Any:
    """Return days from serving to a record; 0 if a wrong clock leaves their order open."""
    return np.maximum((recorded - served) / np.timedelta64(1, "D"), 0.0)
