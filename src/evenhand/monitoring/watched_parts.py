"""Parts of a watch: named groups, draws, the promise for every group, and its envelope."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd

from evenhand._validate import Floats, InputError, Ints, Mask, about, bad_input, check_column, coded
from evenhand.certificates import Envelope, Promise
from evenhand.monitoring.promise_test import EnvelopeTest, PromiseEstimates, PromiseTest
from evenhand.monitoring.rows import Rows
from evenhand.monitoring.settings import Part
from evenhand.monitoring.tallies import BiasSums, PITSums, SeenDraws
from evenhand.monitoring.witnesses import (
    DRAW_WITNESSES,
    EVENT_WITNESSES,
    PIT_WITNESSES,
    Crossing,
    WitnessTests,
    averaged_witnesses,
    cell_witnesses,
    event_witnesses,
    rounded,
)
from evenhand.tables import EVERYONE, Group, Partition, label

# --- named groups of a watch: learned from the first rows, with groups that appear later

MOST_LATER = 100
"""Most groups of one column that may appear after the first update; more are most likely ids."""


class NamedGroups:
    """Groups by the values of columns, such as `sex = 2`, and the rows that belong to them.

    Columns define groups as in an audit: one group per value, or two halves at the median. Values
    that are seen later for the first time, and are not in a half, become further groups, in the
    order of their first rows.

    Parameters
    ----------
    partitions : sequence of Partition
        Groups of each column, learned from the first rows. Without any, "everyone" is the only
        group.

    Attributes
    ----------
    names : list of str
        Names of the groups, those that appeared later last.
    n_first : int
        Number of groups of the first rows.

    Examples
    --------
    >>> table = pd.DataFrame({"sex": ["f", "m", "f"]})
    >>> groups = NamedGroups.learn(table, ["sex"])
    >>> groups.members(pd.DataFrame({"sex": ["m", None]})).tolist()
    [[False, True, False], [False, False, True]]
    >>> groups.names
    ['sex = f', 'sex = m', 'sex missing']
    """

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self.partitions = tuple(partitions)
        self.names = [name for one in self.partitions for name in one.names] or [EVERYONE]
        self.n_first = len(self.names)
        self._later: dict[str, int] = dict.fromkeys((one.column for one in self.partitions), 0)

    @classmethod
    def learn(cls, table: pd.DataFrame, columns: Iterable[str]) -> NamedGroups:
        """Learn the groups of some columns; InputError if a column is missing or has only ids."""
        return cls(
            [
                Partition.learn(_column(table, name), name, source="rows of the first update")
                for name in columns
            ]
        )

    def check(self, table: pd.DataFrame) -> None:
        """Refuse a table without the columns of the groups."""
        for partition in self.partitions:
            check_column(partition.column, table.columns, "the table of groups")

    def members(self, table: Any) -> Mask:
        """Return the rows of each group, (n, G), after adding the groups that appear in them."""
        if not self.partitions:
            return np.full((len(table), 1), True)
        first = 0
        found: list[Ints] = []
        strangers: list[tuple[int, str, int]] = []
        for j, partition in enumerate(self.partitions):
            values = _column(table, partition.column)
            with about("rows"):
                codes = partition.codes(_comparable(values, partition))
            unknown = np.flatnonzero(codes < 0)
            strangers += self._strangers(j, unknown, values.iloc[unknown])
            found.append(np.where(codes < 0, -1, codes + first))
            first += len(partition.names)
        # in the order of rows, whatever the columns, so that splits into updates do not matter
        for row, name, j in sorted(strangers, key=lambda one: (one[0], one[2])):
            found[j][row] = self._place_of(name, self.partitions[j].column)
        members = np.zeros((len(table), len(self.names)), dtype=np.bool_)
        for codes in found:
            rows = np.flatnonzero(codes >= 0)
            members[rows, codes[rows]] = True
        return members

    def _strangers(
        self, j: int, unknown: Ints, values: pd.Series[Any]
    ) -> list[tuple[int, str, int]]:
        """Return row, name of the group and column of values without a group."""
        if unknown.size == 0:
            return []
        column = self.partitions[j].column
        codes, distinct = coded(values, f"column {column!r}")
        names = [Group(column, "=", label(value)).name for value in distinct]
        names.append(Group(column, "missing").name)  # code -1 selects the last entry
        return [(int(row), names[code], j) for row, code in zip(unknown, codes, strict=True)]

    def _place_of(self, name: str, column: str) -> int:
        """Return the index of a group that appeared later, adding it; -1 if there are too many."""
        if name in self.names:
            return self.names.index(name)
        if self._later[column] >= MOST_LATER:
            return -1
        self._later[column] += 1
        self.names.append(name)
        return len(self.names) - 1

    def log_thresholds(self, risk: float) -> list[float]:
        """Return the logarithms of the thresholds of all groups, which share a risk.

        Of G first groups each has `risk / (G + 1)`, and the remaining part is for later groups, the
        j-th of which has `1 / (j (j + 1))` of it. Nothing is spent twice, as the sum is at most the
        risk however many groups appear (outcomes: 6, e-Bonferroni with weights).
        """
        n_parts = self.n_first + bool(self.partitions)
        later = np.arange(1, len(self.names) - self.n_first + 1, dtype=np.float64)
        weights = np.append(np.ones(self.n_first), 1 / (later * (later + 1)))
        return [float(one) for one in np.log(n_parts / (risk * weights))]

    def to_state(self) -> dict[str, Any]:
        """Return the groups as JSON values."""
        return {
            "partitions": [_as_lists(partition.to_state()) for partition in self.partitions],
            "later": self.names[self.n_first :],
            "n_later": dict(self._later),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> NamedGroups:
        """Rebuild the groups from the output of `to_state`."""
        groups = cls([Partition.from_state(one) for one in state["partitions"]])
        groups.names += state["later"]
        groups._later = dict(state["n_later"])
        return groups


def _column(table: pd.DataFrame, name: str) -> pd.Series[Any]:
    check_column(name, table.columns, "the table of groups")
    # columns of numbers in object arrays, such as those of a log, become numbers
    return table[name].infer_objects()


def _comparable(values: pd.Series[Any], partition: Partition) -> pd.Series[Any]:
    """Return the values of a column in halves as numbers or dates."""
    if partition.cut is None or values.dtype.kind in "iufM":
        return values
    is_date = partition.kind == "date"
    read: Any = pd.to_datetime if is_date else pd.to_numeric
    converted: pd.Series[Any] = read(values, errors="coerce")
    wrong = np.flatnonzero((converted.isna() & values.notna()).to_numpy())
    if wrong.size:
        row = int(wrong[0])
        rule = f"contain {'dates' if is_date else 'numbers'}, as in the first update"
        raise bad_input(f"column {partition.column!r}", rule, f"{values.iloc[row]!r} in row {row}")
    return converted


def _as_lists(state: Mapping[str, Any]) -> dict[str, Any]:
    return {key: list(one) if isinstance(one, tuple) else one for key, one in state.items()}


# --- parts of a watch: named groups, draws, the promise for every group, and its envelope

Kind = Literal["pit", "event"]
"""What errors are measured on: served PITs, or outcome minus probability for 0/1 outcomes."""


Step = Callable[[slice], list[Crossing]]
"""Adds a slice of rows, all of the current period, and returns the tests that they complete."""


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


# --- parts of a watch about the promise for every group of a size, and the certified envelope

SidedTest = PromiseTest | EnvelopeTest
"""Test with evidence of each of its sides."""


class SidedPart:
    """Part of a watch with evidence of each side of a test, and their first rows at the threshold.

    Parameters
    ----------
    test : PromiseTest or EnvelopeTest
        The test.
    again : callable
        Rebuilds the test from its state.
    risk : float
        Probability that any side reaches the threshold if the hypothesis holds.
    """

    part: Part = "promise"
    is_notice = False

    def __init__(
        self, test: SidedTest, again: Callable[[Mapping[str, Any]], SidedTest], risk: float
    ) -> None:
        self.test = test
        self.threshold = math.log(len(test.sides) / risk)
        self.largest: Floats = np.zeros(len(test.sides))
        self.has_alarm: Mask = np.zeros(len(test.sides), dtype=np.bool_)
        self.history: list[list[float]] = [[] for _ in test.sides]
        self._again = again
        self._n_rows = 0

    def begin_period(self) -> None:
        """End the current period and begin the next one."""
        if self.test.period > 0:
            for past, now in zip(self.history, self.test.log_evidence, strict=True):
                past.append(rounded(now))
        self.test.begin_period(self.test.period + 1)

    def prepare(self, rows: Rows, members: Mask) -> Step:
        """Return what adds the rows, slice by slice; named groups do not matter."""
        return lambda some: self._update(rows.take(some))

    def _update(self, rows: Rows) -> list[Crossing]:
        before = None if self.has_alarm.all() else self.test.to_state()
        path = self.test.update(rows)
        is_reached = (path >= self.threshold) & ~self.has_alarm
        found = []
        for side in np.flatnonzero(is_reached.any(axis=0)):
            assert before is not None
            end = int(np.argmax(is_reached[:, side])) + 1
            # later rows of the update must not matter
            then = self._again(before)
            then.update(rows.take(slice(0, end)))
            found.append(
                Crossing(
                    end - 1,
                    None,
                    self.test.sides[side],
                    int(then.since[side]),
                    float(path[end - 1, side]),
                    self.threshold,
                    self._n_rows + end,
                )
            )
        self.has_alarm |= is_reached.any(axis=0)
        self.largest = np.maximum(self.largest, path.max(axis=0, initial=0.0))
        self._n_rows += len(rows)
        return found

    def tests(self) -> list[dict[str, Any]]:
        """Return the evidence of each side at the end of each period."""
        now = self.test.log_evidence
        return [
            {
                "part": self.part,
                "group": None,
                "direction": side,
                "log_evidence": [*self.history[i], rounded(now[i])],
                "threshold": self.threshold,
            }
            for i, side in enumerate(self.test.sides)
        ]

    def to_state(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return {
            "n_rows": self._n_rows,
            "largest": self.largest.tolist(),
            "has_alarm": self.has_alarm.tolist(),
            "history": [list(past) for past in self.history],
            "test": self.test.to_state(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the output of `to_state`."""
        self._n_rows = int(state["n_rows"])
        self.largest = np.array(state["largest"], dtype=np.float64)
        self.has_alarm = np.array(state["has_alarm"], dtype=np.bool_)
        self.history = [list(map(float, past)) for past in state["history"]]
        self.test = self._again(state["test"])


class PromiseKept(SidedPart):
    """Tests whether every group of a size keeps the promise, both sides at half of the risk.

    Parameters
    ----------
    promise : Promise
        What was promised.
    risk : float
        Probability of a false alarm of this part.
    """

    def __init__(self, promise: Promise, risk: float) -> None:
        super().__init__(PromiseTest(promise), PromiseTest.from_state, risk)

    def estimates(self, since: int = 1) -> PromiseEstimates:
        """Return the estimate of the worst group of the rows from a period on, counted from 1."""
        assert isinstance(self.test, PromiseTest)
        return self.test.estimates(since)

    def record(self) -> dict[str, Any]:
        """Return the estimate of the worst group and the evidence."""
        test = self.test
        return {
            **cases(self.estimates()),
            "log_evidence": float(test.log_evidence.max()),
            "max_log_evidence": float(self.largest.max()),
            "threshold": self.threshold,
        }


def cases(found: PromiseEstimates) -> dict[str, Any]:
    """Return an estimate, with missing outcomes at best and at worst."""
    return {
        "estimate": found.estimate,
        "best_case": found.best_case,
        "worst_case": found.worst_case,
        "direction": found.direction,
    }


class EnvelopeKept(SidedPart):
    """Notices if base PITs leave the certified envelope, which breaks no promise by itself.

    Parameters
    ----------
    envelope : Envelope
        Certified bounds of the distribution of base PITs.
    risk : float
        Probability of a false notice.
    """

    is_notice = True

    def __init__(self, envelope: Envelope, risk: float) -> None:
        def again(state: Mapping[str, Any]) -> EnvelopeTest:
            return EnvelopeTest.from_state(envelope, state)

        super().__init__(EnvelopeTest(envelope), again, risk)

    def tests(self) -> list[dict[str, Any]]:
        """Return nothing: what gives no alarm is no evidence for one."""
        return []


WatchedPart = GroupErrors | FairDraws | SidedPart
"""A part of a watch. Rows are prepared together, and tested period by period."""
