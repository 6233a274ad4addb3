"""State of a watch over a decision log, as it is in a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from evenhand._files import write_text
from evenhand._validate import InputError, about
from evenhand.monitoring import Watch, as_time
from evenhand.service.chain import digest_of
from evenhand.service.entries import Head
from evenhand.service.watched_contexts import Scope

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
    watch: Mapping[str, Any] | None = None

    def _values(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {
            "schema": SCHEMA,
            "scope": self.scope.to_dict(),
            "head": None if self.head is None else [self.head.number, self.head.sha256],
            "until": self.until,
            "after": self.after,
            "watch": self.watch,
        }

    def write(self, path: Path) -> None:
        """Write the state atomically."""
        values = self._values()
        write_text(path, json.dumps(values | {"sha256": digest_of(values)}) + "\n")

    @property
    def groups(self) -> list[str] | None:
        """Group columns of the watch, which later contexts may lack; None before it has begun."""
        return None if self.watch is None else list(self.watch["settings"]["groups"])

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
            if values.pop("sha256") != digest_of(values):
                raise InputError(f"{path} has been changed since a watch wrote it; {remedy}")
            head = values["head"]
            found = cls(
                Scope.from_dict(values["scope"]),
                None if head is None else Head(int(head[0]), str(head[1])),
                str(as_time("until", values["until"])),
                int(values["after"]),
                values["watch"],
            )
            if found._values() != values or found.scope.contexts == ():
                raise ValueError
            if found.watch is not None:
                with about(str(path)):
                    Watch.from_state(found.watch)
            return found
        except FileNotFoundError:
            return None
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}; {remedy}") from error
        except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"{path} is no state of a watch over a log; {remedy}") from error
