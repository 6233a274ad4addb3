"""A watch over one context of a decision log, which continues where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import numpy as np

from evenhand._files import write_text
from evenhand._validate import InputError, check_column, first_names
from evenhand._version import __version__
from evenhand.monitoring import Alarm, Rows, Watch, as_horizon, as_time
from evenhand.service.decision_log import DecisionLog
from evenhand.service.entries import Head
from evenhand.service.logged_forecasts import context_values, first_forecasts, time_of
from evenhand.service.matured import matured_rows, outcomes_until
from evenhand.service.verification import Verification

SCHEMA = "evenhand.log-watch/1"
"""Name and version of the layout of the state file."""

LEARNING = 100
"""Number of first forecasts that define the groups: the same ones, however often it is resumed."""


@dataclass(frozen=True)
class WatchedContext:
    """Context of a log that is watched.

    Parameters
    ----------
    name : str
        Name of the context.
    values : dict
        What the log has about it.
    n_alike : int
        Number of contexts among which it is the newest.
    """

    name: str
    values: Mapping[str, Any]
    n_alike: int = 1

    @classmethod
    def of(
        cls, log: DecisionLog, name: str | None = None, model_sha256: str | None = None
    ) -> WatchedContext:
        """Return a context of a log: the named one, or the newest with a model.

        Parameters
        ----------
        log : DecisionLog
            The log.
        name : str, optional
            Name of the context.
        model_sha256 : str, optional
            Hash of the model that the context must have.

        Raises
        ------
        InputError
            If there is no such context, or it has another model.
        """
        models: dict[str, str] = {}
        for entry in log.entries(kind="context"):
            models.setdefault(str(entry.values["context"]), str(entry.values["model_sha256"]))
        if not models:
            raise InputError(f"{log.source} has no forecasts yet; serve some, then watch them")
        if name is not None:
            values = context_values(log, name)
            if model_sha256 not in (None, values["model_sha256"]):
                raise _another_model(log, f"its context {name!r} has", model_sha256, models[name])
            return cls(name, values)
        # contexts are in the order in which they were opened
        alike = [one for one, model in models.items() if model_sha256 in (None, model)]
        if not alike:
            listed = first_names([repr(one) for one in models])
            last = list(models.values())[-1]
            which = (
                f"its contexts ({listed}) have" if len(models) > 1 else f"its context {listed} has"
            )
            raise _another_model(log, which, model_sha256, last)
        return cls(alike[-1], context_values(log, alike[-1]), len(alike))

    def group_columns(self, names: list[str] | None, source: str) -> list[str]:
        """Return columns whose values are logged, all of them by default; others are refused."""
        logged = list(self.values.get("groups") or ())
        if names and not logged:
            raise InputError(
                f"{source}: the context {self.name!r} logs no columns for groups; leave --groups"
                " out, and log columns in the next context, by --groups of evenhand predict or"
                " groups of Service"
            )
        for name in names or ():
            check_column(name, logged, f"{source}, context {self.name!r}, which logs groups")
        return logged if names is None else names

    def check_link(self, settings: Mapping[str, Any], source: str) -> None:
        """Refuse a promise about another link than that of the served forecasts."""
        promised = (settings["link"], settings["alpha"])
        served = (self.values.get("link"), self.values.get("alpha"))
        if settings["statistic"] == "mean_pit" and promised != served:
            raise InputError(
                f"{source}: the context {self.name!r} serves forecasts with {_link(*served)}, but"
                f" the certificate is about {_link(*promised)}; give the certificate of the served"
                " model"
            )


def _another_model(log: DecisionLog, which: str, wanted: str | None, found: str) -> InputError:
    return InputError(
        f"{log.source}: {which} another model ({found[:16]}) than the certificate"
        f" ({str(wanted)[:16]}); give the certificate of the served model, or another context"
    )


def _link(name: str | None, alpha: float | None) -> str:
    return "no link" if name is None or alpha is None else f"the {name} link, alpha {alpha:.6g}"


@dataclass(frozen=True)
class WatchState:
    """State of a watch over a log, as it is in a file.

    Parameters
    ----------
    context, model_sha256 : str
        Context that is watched, and its model.
    head : Head or None
        Last entry when the log was read, which later verifications compare.
    until : str
        Time up to which the log was read.
    after : str or None
        Time of the last row; None before the watch has begun.
    watch : dict or None
        `Watch.state()`; None before the watch has begun.
    """

    context: str
    model_sha256: str
    head: Head | None
    until: str
    after: str | None = None
    watch: Mapping[str, Any] | None = None

    def write(self, path: Path) -> None:
        """Write the state atomically."""
        values = {
            "schema": SCHEMA,
            "context": self.context,
            "model_sha256": self.model_sha256,
            "head": None if self.head is None else [self.head.number, self.head.sha256],
            "until": self.until,
            "after": self.after,
            "watch": self.watch,
        }
        write_text(path, json.dumps(values | {"sha256": _checksum(values)}) + "\n")

    @classmethod
    def read(cls, path: Path) -> Self | None:
        """Read a state; None if there is no such file.

        Raises
        ------
        InputError
            If the file is something else, which would be overwritten, or has been changed.
        """
        remedy = "name another file, or remove it to begin again"
        try:
            values = json.loads(path.read_bytes())
            if values["schema"] != SCHEMA:
                raise InputError(f"{path} has schema {values['schema']!r:.60}; {remedy}")
            # a changed number would be evidence that nobody saw
            if values.pop("sha256") != _checksum(values):
                raise InputError(f"{path} has been changed since a watch wrote it; {remedy}")
            head = values["head"]
            return cls(
                str(values["context"]),
                str(values["model_sha256"]),
                None if head is None else Head(int(head[0]), str(head[1])),
                str(values["until"]),
                values["after"],
                values["watch"],
            )
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}; {remedy}") from error
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path} is no state of a watch over a log; {remedy}") from error


def _checksum(values: Mapping[str, Any]) -> str:
    """Return the SHA-256 of values of JSON."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


class LogWatch:
    """Watch over one context of a log.

    Parameters
    ----------
    log : DecisionLog
        The log, verified before.
    context : WatchedContext
        The context.
    watch : Watch
        A watch without rows, which has a horizon.
    state : WatchState, optional
        State in which an earlier watch with the same settings stopped.

    Attributes
    ----------
    watch : Watch
        The watch.
    n_waiting, n_late : int
        Forecasts whose horizon has not passed, and those with an outcome after it, by now: the
        watch itself counts outcomes that were late when their forecasts entered.

    Raises
    ------
    InputError
        If the state belongs to another context or to a watch with other settings.
    """

    def __init__(
        self,
        log: DecisionLog,
        context: WatchedContext,
        watch: Watch,
        state: WatchState | None = None,
    ) -> None:
        self.log = log
        self.context = context
        self.watch = watch
        self.n_waiting = self.n_late = 0
        self._after: str | None = None
        self._until: np.datetime64 | None = None
        self._is_settled = True
        settings = watch.to_dict()["settings"]
        self._has_groups = bool(settings["groups"])
        self._horizon: timedelta = as_horizon(settings["horizon_days"]).astype(object)
        context.check_link(settings, log.source)
        if state is not None:
            self._resume(state)

    def _resume(self, state: WatchState) -> None:
        if state.context != self.context.name:
            raise InputError(
                f"the state is of the context {state.context!r}, not of {self.context.name!r}; name"
                " the context, or keep the state of each context in a file of its own"
            )
        self._until = as_time("until", state.until)
        if state.watch is not None:
            self.watch = Watch.from_state(state.watch, like=self.watch)
            self._after = state.after

    def update(self, until: datetime | str | None = None) -> list[Alarm]:
        """Add the forecasts whose horizon has passed, and return the alarms that they raise.

        Parameters
        ----------
        until : datetime or str, optional
            Time for which the log is read; now by default.

        Raises
        ------
        InputError
            If the time is in the future, or before that of the last update.
        """
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
        rows = matured_rows(
            self.log,
            horizon=self._horizon,
            until=end,
            context=self.context.name,
            after=self._after,
        )
        self._count(end)
        self._until = end
        return self._add(rows, end)

    def _add(self, rows: Rows, end: np.datetime64) -> list[Alarm]:
        alarms: list[Alarm] = []
        last = str(rows.time[-1]) if len(rows) else self._after
        # groups must not depend on how often the log is read
        if self._has_groups and self._after is None:
            self._is_settled = len(rows) >= LEARNING
            alarms += self.watch.update(rows.take(slice(0, LEARNING)))
            rows = rows.take(slice(LEARNING, None))
        self._after = last
        return alarms + self.watch.update(rows, until=end)

    def _count(self, end: np.datetime64) -> None:
        """Count first forecasts that wait for their horizon, and those whose outcome came late."""
        recorded = outcomes_until(self.log, end)
        self.n_waiting = self.n_late = 0
        for entry in first_forecasts(self.log, self.context.name, until=end):
            due = time_of(entry) + np.timedelta64(self._horizon)
            self.n_waiting += bool(due > end)
            first = recorded.get(entry.id, [(due, 0.0)])[0]
            self.n_late += bool(first[0] > due)

    def state(self, head: Head | None) -> WatchState:
        """Return the state, for a later watch over the same log.

        Before the groups are defined it contains no watch: the next one begins anew.
        """
        has_begun = self._is_settled and self._after is not None
        return WatchState(
            self.context.name,
            str(self.context.values["model_sha256"]),
            head,
            str(self._until),
            self._after if has_begun else None,
            self.watch.state() if has_begun else None,
        )

    @property
    def note(self) -> str:
        """Sentence on groups that are not defined yet; empty if they are."""
        if self._is_settled:
            return ""
        return (
            f"groups are defined by the first {LEARNING} forecasts; until these have reached their"
            " horizon, halves of numbers may change"
        )

    def to_dict(self, verified: Verification, **sources: Any) -> dict[str, Any]:
        """Return the values of the watch with the log that they are made of.

        Parameters
        ----------
        verified : Verification
            Verification of the log.
        **sources : str or None
            `certificate` and `command`.
        """
        head = verified.head
        values = self.watch.to_dict()
        return values | {
            "n_waiting": self.n_waiting,
            "n_late": self.n_late,
            "delays": values["delays"] | {"n_late": self.n_late},
            "sources": {
                "log": self.log.source,
                "context": self.context.name,
                "model_sha256": self.context.values["model_sha256"],
                "key": self.context.values["key"],
                "n_entries": verified.n_entries,
                "head_sha256": None if head is None else head.sha256,
                "evenhand": __version__,
                **sources,
            },
        }
