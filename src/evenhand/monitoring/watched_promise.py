"""Parts of a watch about the promise for every group of a size, and the certified envelope."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from evenhand._validate import Floats, Mask
from evenhand.certificates import Envelope, Promise
from evenhand.monitoring.alarms import Part
from evenhand.monitoring.envelope_test import EnvelopeTest
from evenhand.monitoring.promise_test import PromiseEstimates, PromiseTest
from evenhand.monitoring.rows import Rows
from evenhand.monitoring.watched_parts import Step
from evenhand.monitoring.witness_tests import Crossing, rounded

SidedTest = PromiseTest | EnvelopeTest
"""Test with evidence of each of its sides."""


class SidedEvidence:
    """Evidence of the sides of a test, with the first rows at which they reach a threshold.

    Parameters
    ----------
    test : PromiseTest or EnvelopeTest
        The test.
    again : callable
        Rebuilds the test from its state.
    risk : float
        Probability that any side reaches the threshold if the hypothesis holds.
    """

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

    def update(self, rows: Rows) -> list[Crossing]:
        """Add rows of the current period and return the sides that reach the threshold."""
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


class SidedPart:
    """Part of a watch with evidence of its own for each side.

    Parameters
    ----------
    evidence : SidedEvidence
        The evidence.
    """

    part: Part = "promise"
    is_notice = False

    def __init__(self, evidence: SidedEvidence) -> None:
        self.evidence = evidence

    def begin_period(self) -> None:
        """End the current period and begin the next one."""
        self.evidence.begin_period()

    def prepare(self, rows: Rows, members: Mask) -> Step:
        """Return what adds the rows, slice by slice; named groups do not matter."""
        return lambda some: self.evidence.update(rows.take(some))

    def tests(self) -> list[dict[str, Any]]:
        """Return the evidence of each side at the end of each period."""
        now = self.evidence.test.log_evidence
        return [
            {
                "part": self.part,
                "group": None,
                "direction": side,
                "log_evidence": [*self.evidence.history[i], rounded(now[i])],
                "threshold": self.evidence.threshold,
            }
            for i, side in enumerate(self.evidence.test.sides)
        ]

    def to_state(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        return self.evidence.to_state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the output of `to_state`."""
        self.evidence.restore(state)


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
        super().__init__(SidedEvidence(PromiseTest(promise), PromiseTest.from_state, risk))

    def estimates(self, since: int = 1) -> PromiseEstimates:
        """Return the estimate of the worst group of the rows from a period on, counted from 1."""
        assert isinstance(self.evidence.test, PromiseTest)
        return self.evidence.test.estimates(since)

    def record(self) -> dict[str, Any]:
        """Return the estimate of the worst group and the evidence."""
        test = self.evidence.test
        return {
            **cases(self.estimates()),
            "log_evidence": float(test.log_evidence.max()),
            "max_log_evidence": float(self.evidence.largest.max()),
            "threshold": self.evidence.threshold,
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

        super().__init__(SidedEvidence(EnvelopeTest(envelope), again, risk))

    def tests(self) -> list[dict[str, Any]]:
        """Return nothing: what gives no alarm is no evidence for one."""
        return []
