"""Parts of a watch that test witnesses: errors of named groups, and the draws."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import numpy as np

from evenhand._validate import Floats, InputError, Mask
from evenhand.monitoring.alarms import Part
from evenhand.monitoring.named_groups import NamedGroups
from evenhand.monitoring.rows import Rows
from evenhand.monitoring.tallies import BiasSums, PITSums, SeenDraws
from evenhand.monitoring.witness_tests import Crossing, WitnessTests, rounded
from evenhand.monitoring.witnesses import (
    DRAW_WITNESSES,
    EVENT_WITNESSES,
    PIT_WITNESSES,
    averaged_witnesses,
    cell_witnesses,
    event_witnesses,
)

Kind = Literal["pit", "event"]
"""What errors are measured on: served PITs, or outcome minus probability for 0/1 outcomes."""


Step = Callable[[slice], list[Crossing]]
"""Adds a slice of rows, all of the current period, and returns the tests that they complete."""


class WatchedPart(Protocol):
    """A part of a watch. Rows are prepared together, and tested period by period."""

    part: Part
    is_notice: bool

    def begin_period(self) -> None:
        """End the current period and begin the next one."""

    def prepare(self, rows: Rows, members: Mask) -> Step:
        """Return what adds the rows, slice by slice; `members` has shape (n, G)."""

    def tests(self) -> list[dict[str, Any]]:
        """Return the evidence of each test at the end of each period."""

    def to_state(self) -> dict[str, Any]:
        """Return the state as JSON values."""

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the output of `to_state`."""


class GroupErrors:
    """Tests whether the error of each named group exceeds a tolerance.

    Parameters
    ----------
    groups : NamedGroups
        The groups; those that appear later are added before their first rows.
    kind : {"pit", "event"}
        What errors are measured on.
    tolerance : float
        Largest error: W1 distance of served PITs to uniform, or bias of 0/1 forecasts.
    risk : float
        Probability of a false alarm of this part.
    """

    part: Part = "group"
    is_notice = False

    def __init__(self, groups: NamedGroups, kind: Kind, tolerance: float, risk: float) -> None:
        self.groups = groups
        self.kind = kind
        self._risk = risk
        self._tests = WitnessTests(PIT_WITNESSES if kind == "pit" else EVENT_WITNESSES, tolerance)
        self._sums: PITSums | BiasSums = PITSums(0) if kind == "pit" else BiasSums(0)
        self._add_groups()

    def _add_groups(self) -> None:
        n_known = len(self._tests.names)
        thresholds = self.groups.log_thresholds(self._risk)
        self._tests.add(self.groups.names[n_known:], thresholds[n_known:])
        self._sums.extend(len(self.groups.names))

    def begin_period(self) -> None:
        """End the current period and begin the next one."""
        self._tests.begin_period()

    def prepare(self, rows: Rows, members: Mask) -> Step:
        """Return what adds the rows, slice by slice; `members` has shape (n, G)."""
        self._add_groups()
        known = rows.known
        if isinstance(self._sums, BiasSums):
            excess = excess_of(rows)
            self._sums.add(excess[known], members[known])
            values = event_witnesses(excess)
        else:
            low, high = rows.pit
            self._sums.add(low[known], high[known], members[known])
            values = _pit_witnesses(rows)
        filled = self._tests.witnesses.with_missing(values, known)
        return lambda some: self._tests.update(filled[some], members[some])

    def tests(self) -> list[dict[str, Any]]:
        """Return the evidence of each test at the end of each period."""
        return test_records(self._tests, self.part)

    def records(self) -> list[dict[str, Any]]:
        """Return the estimates and the evidence of each group."""
        now = self._tests.log_evidence
        return [
            {
                "name": name,
                "n": int(self._tests.n_rows[j]),
                "n_missing": int(self._tests.n_rows[j]) - self._sums.n_rows(j),
                "error": self._sums.error(j),
                "bias_direction": self._sums.direction(j),
                "log_evidence": float(now[j]),
                "max_log_evidence": float(self._tests.largest[j]),
                "threshold": float(self._tests.thresholds[j]),
                "is_alarm": bool(self._tests.has_alarm[j]),
                "since_start": j < self.groups.n_first,
            }
            for j, name in enumerate(self.groups.names)
        ]

    def to_state(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {"tests": self._tests.to_state(), "sums": self._sums.to_state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the output of `to_state`."""
        self._tests.restore(state["tests"])
        self._sums.restore(state["sums"])


class FairDraws:
    """Tests whether draws are uniform given the past: of all rows, and of each named group.

    The null hypothesis is exact, as draws are made by a machine. Somebody who repeats requests
    until the draw is favourable makes it false. All rows have half of the risk if there are groups.

    Parameters
    ----------
    groups : NamedGroups or None
        The groups; None tests all rows only.
    risk : float
        Probability of a false alarm of this part.
    """

    part: Part = "draws"
    is_notice = False

    def __init__(self, groups: NamedGroups | None, risk: float) -> None:
        self._groups = groups if groups is not None and groups.partitions else None
        self._risk = risk if self._groups is None else risk / 2
        self._all = WitnessTests(DRAW_WITNESSES, 0.0)
        self._all.add([None], [-math.log(self._risk)])
        self._by_group = None if self._groups is None else WitnessTests(DRAW_WITNESSES, 0.0)
        self._seen = SeenDraws()
        self._sums = PITSums(1)
        self._add_groups()

    @property
    def _families(self) -> list[WitnessTests]:
        return [self._all] if self._by_group is None else [self._all, self._by_group]

    def _add_groups(self) -> None:
        if self._groups is not None and self._by_group is not None:
            n_known = len(self._by_group.names)
            thresholds = self._groups.log_thresholds(self._risk)
            self._by_group.add(self._groups.names[n_known:], thresholds[n_known:])

    def begin_period(self) -> None:
        """End the current period and begin the next one."""
        for tests in self._families:
            tests.begin_period()

    def prepare(self, rows: Rows, members: Mask) -> Step:
        """Return what adds the rows, slice by slice; `members` has shape (n, G)."""
        self._add_groups()
        if rows.r is None:
            return lambda some: []
        # a repeated draw follows from the past, and would be counted as often as people ask
        is_new = self._seen.is_new(rows.r)[:, None]
        draws = np.where(is_new[:, 0], rows.r, 0.5)
        self._sums.add(draws, draws, is_new)
        values = cell_witnesses(draws, draws)
        counted = (is_new, members & is_new)

        def add(some: slice) -> list[Crossing]:
            pairs = zip(self._families, counted, strict=False)
            return [
                found for tests, mine in pairs for found in tests.update(values[some], mine[some])
            ]

        return add

    def tests(self) -> list[dict[str, Any]]:
        """Return the evidence of each test at the end of each period."""
        return [one for tests in self._families for one in test_records(tests, self.part)]

    def record(self) -> dict[str, Any]:
        """Return the estimate and the evidence of the draws of all rows."""
        return {
            "n": int(self._all.n_rows[0]),
            "n_repeated": self._seen.n_repeated,
            "error": self._sums.error(0),
            "log_evidence": float(self._all.log_evidence[0]),
            "max_log_evidence": float(self._all.largest[0]),
            "threshold": float(self._all.thresholds[0]),
            "is_alarm": bool(self._all.has_alarm[0]),
        }

    def to_state(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {
            "tests": [tests.to_state() for tests in self._families],
            "seen": self._seen.to_state(),
            "sums": self._sums.to_state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the output of `to_state`."""
        for tests, kept in zip(self._families, state["tests"], strict=True):
            tests.restore(kept)
        self._seen.restore(state["seen"])
        self._sums.restore(state["sums"])


def _pit_witnesses(rows: Rows) -> Floats:
    """Return the witnesses of served PITs, (n, 4), averaged over draws where that is possible."""
    # of amounts with an atom the link randomizes a part alone
    if rows.link is None or rows.base is None or rows.promised is not None:
        return cell_witnesses(*rows.pit)
    low, high = (np.where(rows.known, end, 0.5) for end in rows.base)
    return averaged_witnesses(rows.link, low, high)


def excess_of(rows: Rows) -> Any:
    """Return outcome minus probability; InputError for rows without it."""
    if rows.excess is None:
        raise InputError(
            "rows have no excess, but this watch began with 0/1 outcomes; give outcome and"
            " probability, or begin another watch"
        )
    return rows.excess


def test_records(tests: WitnessTests, part: Part) -> list[dict[str, Any]]:
    """Return the evidence of tests at the end of each period, with their present directions."""
    now = tests.log_evidence
    directions = tests.directions
    return [
        {
            "part": part,
            "group": name,
            "direction": directions[j],
            "log_evidence": [*tests.history[j], rounded(now[j])],
            "threshold": float(tests.thresholds[j]),
        }
        for j, name in enumerate(tests.names)
    ]
