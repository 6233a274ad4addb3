"""Part of a watch that tests the promise for every group of a size, with notices of its envelope."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from evenhand._validate import Floats, Mask
from evenhand.certificates import Promise
from evenhand.monitoring.alarms import Part
from evenhand.monitoring.envelope_test import EnvelopeTest
from evenhand.monitoring.promise_test import PromiseTest
from evenhand.monitoring.rows import Rows
from evenhand.monitoring.witness_tests import DIGITS, Crossing

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
                past.append(round(float(now), DIGITS))
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


class PromiseKept:
    """Tests whether every group of a size keeps the promise, both sides at half of the risk.

    Parameters
    ----------
    promise : Promise
        What was promised. With an envelope, base PITs that leave it give a notice.
    risk : float
        Probability of a false alarm of this part.
    false_notice : float
        Probability of a false notice.
    """

    part: Part = "promise"

    def __init__(self, promise: Promise, risk: float, false_notice: float) -> None:
        self._evidence = SidedEvidence(PromiseTest(promise), PromiseTest.from_state, risk)
        self._envelope: SidedEvidence | None = None
        envelope = promise.envelope
        if envelope is not None and promise.statistic == "mean_pit":
            self._envelope = SidedEvidence(
                EnvelopeTest(envelope),
                lambda state: EnvelopeTest.from_state(envelope, state),
                false_notice,
            )

    def begin_period(self) -> None:
        """End the current period and begin the next one."""
        self._evidence.begin_period()
        if self._envelope is not None:
            self._envelope.begin_period()

    def update(self, rows: Rows, members: Mask) -> list[Crossing]:
        """Add rows of the current period; the promise covers groups that are not named."""
        return self._evidence.update(rows)

    def notices(self, rows: Rows) -> list[Crossing]:
        """Add the same rows to the test of the envelope and return its crossings."""
        return [] if self._envelope is None else self._envelope.update(rows)

    def tests(self) -> list[dict[str, Any]]:
        """Return the evidence of each side at the end of each period."""
        now = self._evidence.test.log_evidence
        return [
            {
                "part": self.part,
                "group": None,
                "direction": side,
                "log_evidence": [*self._evidence.history[i], round(float(now[i]), DIGITS)],
                "threshold": self._evidence.threshold,
            }
            for i, side in enumerate(self._evidence.test.sides)
        ]

    def record(self) -> dict[str, Any]:
        """Return the estimate of the worst group and the evidence."""
        test = self._evidence.test
        assert isinstance(test, PromiseTest)
        found = test.estimates()
        return {
            "estimate": found.estimate,
            "best_case": found.best_case,
            "worst_case": found.worst_case,
            "log_evidence": float(test.log_evidence.max()),
            "max_log_evidence": float(self._evidence.largest.max()),
            "threshold": self._evidence.threshold,
        }

    def to_state(self) -> dict[str, Any]:
        """Return the state as JSON values."""
        envelope = None if self._envelope is None else self._envelope.to_state()
        return {"evidence": self._evidence.to_state(), "envelope": envelope}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the output of `to_state`."""
        self._evidence.restore(state["evidence"])
        if self._envelope is not None:
            self._envelope.restore(state["envelope"])
