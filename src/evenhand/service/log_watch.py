"""A watch over contexts of a decision log, which continues where it stopped."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
import pandas as pd

from evenhand._files import write_text
from evenhand._format import and_more, count
from evenhand._validate import InputError, about
from evenhand._version import __version__
from evenhand.monitoring import Alarm, Watch, as_duration, as_time
from evenhand.service.contexts import Scope, WatchedContexts
from evenhand.service.log import DecisionLog, Head, Verification, digest_of, verify
from evenhand.service.matured import LEARNING, FirstForecasts, rows_of

# --- state of a watch over a decision log, as it is in a file

SCHEMA = "evenhand.log-watch/1"
"""Name and version of the layout of the state file."""


@dataclass(frozen=True)
class WatchState:
    """State of a watch over a log, as it is in a file.

    Parameters
    ----------
    scope : Scope
        Contexts that are watched.
    head : Head or None
        Last entry when the log was read, which later verifications compare.
    until : str
        Time up to which the log was read.
    after : int
        Number of the entry of the last row; 0 without rows.
    watch : dict or None
        `Watch.state()`; None before the watch has begun.
    """

    scope: Scope
    head: Head | None
    until: str
    after: int = 0
    watch: dict[str, Any] | None = None

    def write(self, path: Path) -> None:
        """Write the state atomically."""
        values = {"schema": SCHEMA, **asdict(self)}
        write_text(path, json.dumps(values | {"sha256": digest_of(values)}) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read a state; None if there is no such file.

        Raises InputError if the file is something else, which would be overwritten, or was changed.
        """
        remedy = "name another file, or remove it to begin again"
        try:
            values = json.loads(path.read_bytes())
            if values["schema"] != SCHEMA:
                raise InputError(f"{path} has schema {values['schema']!r:.60}; {remedy}")
            # a changed number would be evidence that nobody saw
            if values.pop("sha256") != digest_of(values):
                raise InputError(f"{path} has been changed since a watch wrote it; {remedy}")
            values["until"] = str(as_time("until", values["until"]))
            found = msgspec.convert(values, cls)
            if found.scope.contexts == ():
                raise ValueError
            if found.watch is not None:
                with about(str(path)):
                    Watch.from_state(found.watch)
            return found
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}; {remedy}") from error
        except InputError:
            raise
        except Exception as error:  # of a damaged or forged file
            raise InputError(f"{path} is no state of a watch over a log; {remedy}") from error


# --- the watch

MOST = 0.5
"""Share of outcomes that were never recorded above which a remedy is named."""

NEARLY_ALL = 0.9
"""Share of the recorded outcomes for which a longer wait is suggested."""


class LogWatch:
    """Watch over contexts of a log, as one stream in the order of serving.

    Each person counts once, with the first forecast in any of the contexts. If groups are watched,
    the watch begins when 100 people were served, whose features define the groups, so that cuts of
    numbers are the same however often the log is read.

    Parameters
    ----------
    log : DecisionLog
        The log; each update verifies it.
    contexts : WatchedContexts
        The contexts.
    watch : Watch
        A watch without rows, which has `matures_after`.
    state : WatchState, optional
        State in which an earlier watch over the same contexts with the same settings stopped.

    Attributes
    ----------
    verified : Verification
        The log when it was last read.
    n_waiting, n_late, n_repeated : int
        People whose forecasts have not matured, or who wait for the watch to begin; outcomes that
        came too late, by now (the watch itself counts those that were late when their forecasts
        entered); and matured forecasts of people who were counted before.
    """

    def __init__(
        self,
        log: DecisionLog,
        contexts: WatchedContexts,
        watch: Watch,
        state: WatchState | None = None,
    ) -> None:
        self.log = log
        self.contexts = contexts
        self.watch = watch
        self.verified = Verification(None if state is None else state.head)
        self.n_waiting = self.n_late = self.n_repeated = 0
        self._n_served = self._n_due = 0
        self._usual_delay: float | None = None
        self._until = None if state is None else as_time("until", state.until)
        self._after = 0 if state is None else state.after
        settings = watch.to_dict()["settings"]
        self._groups: list[str] = settings["groups"]
        self._matures_after = as_duration(settings["matures_after_days"])
        contexts.check_link(settings, log.source)
        before = None if state is None else state.watch
        self._has_begun = before is not None
        if before is not None:
            self.watch = Watch.from_state(before, like=watch)

    def update(self, until: datetime | str | None = None) -> list[Alarm]:
        """Verify the log, add the forecasts that have matured by `until`, and return new alarms.

        The default is now. Raises InputError if the time is in the future or before that of the
        last update, or the log is not as it was written.
        """
        end = self._end(until)
        found = FirstForecasts(self.contexts.values, end)
        self.verified = verify(self.log, self.verified.head, each=found.add)
        found.set_times(self.verified.times)
        # rows continue after this time, also if later entries have shown that it was not theirs
        least = self._until - self._matures_after if self._has_begun and self._until else None
        self._until = end
        is_due = found.is_due(self._matures_after)
        self._count(found, is_due)
        if not self._has_begun and not self._begin(found):
            return []
        # by number: the time of an entry may change as later ones show that a clock was wrong
        new = is_due & (found.numbers > self._after)
        rows = rows_of(self.log, found, self._matures_after, new, self._groups, least)
        alarms = self.watch.update(rows, until=end)
        self._after = max([self._after, *found.numbers[new].tolist()])
        return alarms

    def _end(self, until: datetime | str | None) -> np.datetime64:
        now = as_time("until", datetime.now(UTC))
        end = now if until is None else as_time("until", until)
        if end > now:
            raise InputError(
                f"until is {end.item():%Y-%m-%dT%H:%M}, in the future: outcomes may still arrive by"
                " then; name a time that has passed"
            )
        if self._until is not None and end < self._until:
            raise InputError(
                f"until is {end}, before {self._until}, up to which the state has read the log;"
                " name a later time, or another state"
            )
        return end

    def _begin(self, found: FirstForecasts) -> bool:
        """Define the groups once enough people were served, and return whether that is so."""
        if self._groups:
            if len(found) < LEARNING:
                self.n_waiting = len(found)
                return False
            self.watch.learn(pd.DataFrame(found.features, columns=self._groups))
        self._has_begun = True
        return True

    def _count(self, found: FirstForecasts, is_due: Any) -> None:
        self._n_served = len(found)
        self._n_due = int(is_due.sum())
        self.n_waiting = self._n_served - self._n_due
        self.n_repeated = found.n_repeated(self._matures_after)
        days = found.delays(found.ids[is_due], found.times[is_due])
        recorded = days[~np.isnan(days)]
        self.n_late = int((recorded > self._matures_after / np.timedelta64(1, "D")).sum())
        # the least number of days for which it is so
        usual = np.quantile(recorded, NEARLY_ALL, method="inverted_cdf") if recorded.size else None
        self._usual_delay = None if usual is None else float(usual)

    def state(self) -> WatchState:
        """Return the state, for a later watch over the same log.

        Before the groups are defined it contains no watch: the next one begins anew.
        """
        return WatchState(
            self.contexts.scope,
            self.verified.head,
            str(self._until),
            self._after,
            self.watch.state() if self._has_begun else None,
        )

    @property
    def notes(self) -> list[str]:
        """Sentences on what is not watched yet or left out, wrong clocks and missing outcomes."""
        found = []
        if not self._has_begun:
            served = count(self._n_served, "person was", "people were")
            found.append(
                f"the watch begins when {LEARNING} people were served, who define its groups: so"
                f" far {served}"
            )
        found.append(self.contexts.incomparable_people)
        if self.n_repeated:
            n = count(self.n_repeated, "forecast was", "forecasts were")
            found.append(
                f"{n} left out: of people who appear in several contexts, only the first forecast"
                " counts, since outcomes of one person are dependent"
            )
        for name, columns in self.contexts.without_column(self._groups).items():
            found.append(
                f"the context {name!r} has not logged {and_more(columns)} for all of its"
                " forecasts; people without a value are a group of their own"
            )
        found.append(self.verified.times.note)
        n_missing = self.watch.to_dict()["n_missing"] - self.n_late
        if n_missing > MOST * self._n_due:
            found.append(
                f"{n_missing:,} of {count(self._n_due, 'outcome')} were never recorded, which hides"
                " what is broken; record them with evenhand outcomes, before they mature"
            )
        return [note for note in found if note]

    def to_dict(self, **sources: Any) -> dict[str, Any]:
        """Return the values of the watch with the log that they are made of and other `sources`."""
        head, contexts = self.verified.head, self.contexts.values
        values = self.watch.to_dict()
        return values | {
            "n_waiting": self.n_waiting,
            "n_late": self.n_late,
            "n_repeated": self.n_repeated,
            "days_90": self._usual_delay,
            "notes": self.notes,
            "sources": {
                "log": self.log.source,
                "contexts": list(contexts),
                "model_sha256": self.contexts.scope.model_sha256,
                "key": ", ".join(dict.fromkeys(one["key"] for one in contexts.values())),
                "n_entries": self.verified.n_entries,
                "head_sha256": None if head is None else head.sha256,
                "evenhand": __version__,
                **sources,
            },
        }
