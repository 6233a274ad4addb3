"""Result of a replay: what of a logged forecast is equal today, and what differs."""

from __future__ import annotations

import math
import re
from dataclasses import asdict, dataclass
from typing import Any, Literal

from evenhand._format import Summarized, count
from evenhand._table import Column, Table
from evenhand.service.decision_log import Head

SCHEMA = "evenhand.replay/1"

HASH = re.compile("[0-9a-f]{32,}")
"""Format of hashes, of which text shows the first digits."""

ReplayPart = Literal[
    "model", "key", "context", "person", "features", "draw", "record", "values", "libraries"
]
"""What is compared. "record": whether the logged quantiles follow from the logged distribution and
draw; "values": whether the model computes the same forecast again."""

Status = Literal["equal", "differs", "not checked"]

Verdict = Literal["equal", "differs", "incomplete"]


@dataclass(frozen=True)
class Difference:
    """A value that is not the logged one.

    Parameters
    ----------
    name : str
        What it is, such as "quantile 0.05", "numpy" or the name of a column.
    logged, found : object
        The value in the log, and the value now; None where there is none.
    """

    name: str
    logged: Any
    found: Any

    def __str__(self) -> str:
        text = f"{self.name}: {_shown(self.logged)} in the log, {_shown(self.found)} now"
        if _is_number(self.logged) and _is_number(self.found):
            change = self.found - self.logged
            text += f", {abs(change):.3g} {'higher' if change > 0 else 'lower'}"
        return text


@dataclass(frozen=True)
class Check:
    """Comparison of one part of a forecast.

    Parameters
    ----------
    part : str
        The part.
    status : {"equal", "differs", "not checked"}
        Result.
    text : str
        What was compared, or why it was not.
    differences : tuple of Difference
        All values that differ.
    """

    part: ReplayPart
    status: Status
    text: str
    differences: tuple[Difference, ...] = ()

    @classmethod
    def of(cls, part: ReplayPart, differences: list[Difference], text: str) -> Check:
        """Return a comparison that was made."""
        return cls(part, "differs" if differences else "equal", text, tuple(differences))


@dataclass(frozen=True, repr=False)
class Replay(Summarized):
    """Comparison of a logged forecast with one computed now.

    Parameters
    ----------
    id, number, time, context, person, revision
        Of the forecast, as in the log.
    n_entries : int
        Number of entries of the log, whose chain was verified first.
    head : Head
        Last entry of the log.
    checks : tuple of Check
        One for each part.
    is_identical : bool or None
        Whether all values computed now have the digits of the logged ones; None if they were not
        computed. Another processor or library may change the last digits.
    clock : str
        Sentence on the entries of the log at which a clock was wrong; empty if there are none.
    """

    id: str
    number: int
    time: str
    context: str
    person: str
    revision: int
    n_entries: int
    head: Head
    checks: tuple[Check, ...]
    is_identical: bool | None
    clock: str

    @property
    def status(self) -> Verdict:
        """Whether all that was checked is equal, and the forecast was computed again.

        "incomplete" is a replay without the features: nothing that was checked differs. Other
        library versions alone are no difference.
        """
        if any(one.status == "differs" and one.part != "libraries" for one in self.checks):
            return "differs"
        return "equal" if self.of("values").status == "equal" else "incomplete"

    @property
    def is_equal(self) -> bool:
        """Whether the forecast was computed again, and nothing differs."""
        return self.status == "equal"

    @property
    def differences(self) -> tuple[tuple[ReplayPart, Difference], ...]:
        """All values that differ, with their parts."""
        return tuple((check.part, one) for check in self.checks for one in check.differences)

    def of(self, part: ReplayPart) -> Check:
        """Return the comparison of a part."""
        return next(one for one in self.checks if one.part == part)

    def summary(self) -> str:
        """Return the comparison as text."""
        chain = (
            f"{count(self.n_entries, 'entry', 'entries')}, none changed; the last is {self.head}"
        )
        rows = [["log", "equal", "; ".join(filter(None, [chain, self.clock]))]]
        for check in self.checks:
            listed = [str(one) for one in check.differences]
            rows.append([check.part, check.status, "; ".join([*listed, check.text])])
        columns = [Column("part"), Column("result"), Column("details")]
        title = f"Forecast {self.id} of {self.time}, context {self.context!r}: {self._verdict()}"
        return f"{title}\n\n{Table('Replay', columns, rows).text()}"

    def _verdict(self) -> str:
        if self.status == "differs":
            parts = [one.part for one in self.checks if one.status == "differs"]
            return f"differs ({', '.join(parts)})"
        if self.status == "incomplete":
            return "not computed again"
        return "equal" if self.is_identical else "equal up to rounding"

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values; the layout is described in docs/replay.rst."""
        named = ("id", "number", "time", "context", "person", "revision")
        return {
            "schema": SCHEMA,
            "status": self.status,
            "is_identical": self.is_identical,
            **{name: getattr(self, name) for name in named},
            "log": {"n_entries": self.n_entries, "head": asdict(self.head), "clock": self.clock},
            "checks": [
                asdict(one) | {"differences": [asdict(two) for two in one.differences]}
                for one in self.checks
            ],
        }

    def __repr__(self) -> str:
        return f"Replay({self.id!r}, {self._verdict()})"


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    return f"{text[:16]}..." if HASH.fullmatch(text) else text
