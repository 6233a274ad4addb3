"""First forecasts of the people of some contexts, collected in one pass over a log."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from evenhand._validate import Mask
from evenhand.logs import DecisionLog, Logged

LEARNING = 100
"""Number of first forecasts that define the groups: the same ones, however often it is resumed."""

Record = tuple[str, float]
"""Time at which an outcome was recorded, and its value."""


class FirstForecasts:
    """The first forecast of each person in some contexts, and the outcomes recorded by a time.

    Outcomes of one person are dependent given the past, so a person counts once, with the first
    forecast in any of the contexts; revisions are answers to somebody who knows the draw. Names of
    people are comparable among contexts with the same key and way of naming people: under another
    key the same people have other names, and count as new.

    Parameters
    ----------
    contexts : dict
        Names of the contexts with what the log has about them.
    end : datetime64
        Time up to which entries are read; `add` ignores later ones.

    Attributes
    ----------
    outcomes : dict
        Times and values of the outcomes of each forecast id, in the order of the log.
    features : list of dict
        Values of group columns of the first 100 people.
    """

    def __init__(self, contexts: Mapping[str, Mapping[str, Any]], end: np.datetime64) -> None:
        self._naming = {name: naming_of(values) for name, values in contexts.items()}
        self.end = end
        # times of entries, and this, are texts of one form, which sort by time
        self._end = str(end.astype("datetime64[us]"))
        # hashes have a fixed size, whatever the names
        self._people: set[bytes] = set()
        self._ids: list[str] = []
        self._numbers: list[int] = []
        self._times: list[str] = []
        self._repeated: list[str] = []
        self.outcomes: dict[str, list[Record]] = {}
        self.features: list[dict[str, Any]] = []

    def add(self, entry: Logged) -> bool:
        """Take note of an entry, and return whether it is the first forecast of a person.

        Forecasts are added in the order of the log.
        """
        if entry.kind == "context" or entry.time[:-1] > self._end:
            return False
        if entry.kind == "outcome":
            record = (entry.time[:-1], float(entry.values["y"]))
            self.outcomes.setdefault(entry.id, []).append(record)
            return False
        values = entry.values
        naming = self._naming.get(values["context"])
        if naming is None or values["revision"]:
            return False
        person = blake2b(f"{naming}\0{values['person']}".encode(), digest_size=16).digest()
        if person in self._people:
            self._repeated.append(entry.time[:-1])
            return False
        self._people.add(person)
        self._ids.append(entry.id)
        self._numbers.append(entry.number)
        self._times.append(entry.time[:-1])
        if len(self.features) < LEARNING:
            self.features.append(values.get("groups") or {})
        return True

    def __len__(self) -> int:
        return len(self._ids)

    def is_due(self, wait: np.timedelta64) -> Mask:
        """Return whose horizon has passed by the end, (n,)."""
        due: Mask = _times(self._times) + wait <= self.end
        return due

    def n_repeated(self, wait: np.timedelta64) -> int:
        """Return how many forecasts, whose horizon has passed, are of people counted before."""
        return int(np.sum(_times(self._repeated) + wait <= self.end))

    def delays(self) -> Any:
        """Return the days from each forecast to the first record of its outcome, NaN without."""
        never = [("NaT", 0.0)]
        first = [self.outcomes.get(id, never)[0][0] for id in self._ids]
        return (_times(first) - _times(self._times)) / np.timedelta64(1, "D")

    def entries(self, log: DecisionLog, chosen: Mask) -> Iterator[Logged]:
        """Yield chosen forecasts from the log, in order."""
        numbers = np.array(self._numbers, dtype=np.int64)[chosen].tolist()
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

    def last_time(self, chosen: Mask) -> str | None:
        """Return the time of the last of chosen forecasts; None if there is none."""
        rows = np.flatnonzero(chosen)
        return self._times[int(rows[-1])] if rows.size else None

    def is_after(self, time: np.datetime64 | None) -> Mask:
        """Return who was served later than a time, (n,)."""
        times = _times(self._times)
        later: Mask = np.full(times.shape, True) if time is None else times > time
        return later


def naming_of(values: Mapping[str, Any]) -> str:
    """Return what contexts must have in common for their names of people to be comparable."""
    mode = values.get("person")
    # ids are the same under every key
    return str(mode) if mode == "id" else f"{mode} {values.get('key')}"


def _times(texts: list[str]) -> Any:
    return np.array(texts, dtype="datetime64[us]")
