"""Exact wording of the messages of `evenhand.decisions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evenhand import Forecast, InputError
from evenhand.decisions import BayesDecision, StepLoss, loss_guarantee

FORECAST = Forecast.from_normal([0.0, 1.0, 2.0], [1.0, 1.0, 1.0])
CONSTANT = BayesDecision(["a"], {"a": 1.0})


def decision(loss: Any) -> BayesDecision:
    return BayesDecision(["a"], {"a": loss})


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda: StepLoss([0.0], [1.0]),
            "values must have one more entry than cuts, got 1 value for 1 cut",
        ),
        (
            lambda: StepLoss([1.0, 0.0], [1.0, 2.0, 3.0]),
            "cuts must be strictly increasing, got cuts out of order or duplicates; sort them and"
            " remove duplicates",
        ),
        (
            lambda: StepLoss([[0.0]] * 3, [1.0, 2.0])([0.0, 1.0]),
            "this StepLoss has one row for each of 3 people, but is evaluated for 2; pass as many",
        ),
        (
            lambda: BayesDecision(["a", "b"], {"a": 1.0}),
            "loss has no entry for action 'b', only for ['a']; add a StepLoss, a number or a"
            " function",
        ),
        (
            lambda: BayesDecision(["a"], {"a": 1.0, "b": 2.0}),
            "loss has entries for ['b'], which are not actions; the actions are ['a']",
        ),
        (
            lambda: CONSTANT.decide("model"),  # type: ignore[arg-type]
            "forecast must be a Forecast, got str",
        ),
        (
            lambda: CONSTANT.realized_loss(FORECAST, [1.0, 2.0, 3.0]),  # type: ignore[arg-type]
            "decisions must be a Decisions object, got Forecast; pass decide(...)",
        ),
        (
            lambda: decision(lambda y: 1.0).decide(FORECAST[[0]]),
            "the loss of action 'a' must have the shape of the outcomes, (1, 641), got shape ();"
            " vectorize it over arrays, or pass a number for a constant loss",
        ),
        (
            lambda: decision(lambda y: y).check_loss([1, -3]),
            "the loss of action 'a' must be at least 0, got -3 at y = -3; add the same constant to"
            " the losses of all actions, which changes no decision",
        ),
        (
            lambda: decision(lambda y: np.abs(y - 1)).check_loss(range(5)),
            "the loss of action 'a' must be monotone in the outcome, but changes direction at"
            " y = 1",
        ),
        (
            lambda: decision(StepLoss([0, 1], [1, 3, 2])).check_loss([5.0]),
            "the loss of action 'a' must be monotone in the outcome: values of the StepLoss rise"
            " and fall: [1.0, 3.0, 2.0]",
        ),
        (
            lambda: loss_guarantee(CONSTANT, FORECAST, [0.0, 1.0, 2.0], k=0.5),
            "k must be at least 1, got 0.5; k=2 counts losses above twice the promise",
        ),
    ],
)
def test_messages_are_sentences(act: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        act()
    assert str(raised.value) == message
