"""Exact wording of the messages of `evenhand.audits`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from evenhand import Audit, Forecast, InputError, audit, audit_pit, certify, compare
from evenhand.audits import parse_condition

N = 200
EXAMPLE = 'write for example "problem" or "certified_group_error(0.2) > 0.25"'


@cache
def audit_of(name: str, n: int = N) -> Audit:
    """A cheap audit of PITs, one mass and no searches."""
    rng = np.random.default_rng(0)
    return audit_pit(rng.random(n), masses=[0.2], n_simulations=2, random_state=0, name=name)


class Forecaster:
    def forecast(self, X: Any, r: Any = None) -> Forecast:
        raise NotImplementedError


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (
            lambda: audit(Forecaster(), [[1.0]]),
            "y is missing: an audit compares forecasts with outcomes; pass y=",
        ),
        (
            lambda: certify(Forecaster(), [[1.0]]),
            "y is missing: a certificate needs outcomes; pass y=",
        ),
        (
            lambda: audit(Forecaster(), y=np.arange(30.0)),
            "X is missing: a forecaster needs input rows; pass X=",
        ),
        (
            lambda: audit(Forecaster(), np.zeros((9, 1)), np.arange(30.0)),
            "y must have one outcome per row of X (9), got 30 outcomes",
        ),
        (
            lambda: audit("model", np.zeros((30, 1)), np.arange(30.0)),
            "model must be a forecaster or a Forecast, got str; pass a fitted model, such as a"
            " RecalibratedRegressor, or its forecasts as Forecast.from_probability(p) or"
            " Forecast.from_normal(mean, std)",
        ),
        (
            lambda: audit_pit(np.full(30, 0.5), residual=[1.0]),
            "residual must have one value per row of PITs (30), got 1",
        ),
        (
            lambda: compare(audit_of("first"), audit_of("second", 190)),
            "first audits 200 rows, second audits 190 rows; audit both on the same rows",
        ),
        (
            lambda: compare(audit_of("model"), audit_of("model", 190)),
            "model (first) audits 200 rows, model (second) audits 190 rows; audit both on the same"
            " rows",
        ),
        (
            lambda: compare(audit_of("first"), audit_of("measure")),
            "an audit is named 'measure', which is a column of the comparison; pass another name="
            " to audit",
        ),
        (
            lambda: parse_condition("certified_group_error"),
            "--fail-if must be problem, too-few-rows, not-proven, or compare a quantity with a"
            f" number, got 'certified_group_error'; {EXAMPLE}",
        ),
        (
            lambda: parse_condition("coverage(0.8) < 0.3"),
            "--fail-if must be written as coverage(level, mass), got 'coverage(0.8) < 0.3';"
            f" {EXAMPLE}",
        ),
        (
            lambda: parse_condition("certified_bias(0.2) > x"),
            f"--fail-if 'certified_bias(0.2) > x': 'x' is not a number; {EXAMPLE}",
        ),
        (
            lambda: parse_condition("oracle_group_error(0.3) > 0.3"),
            "--fail-if must name one of groups_beyond_tolerance, certified_group_error, coverage,"
            " certified_event_rate, certified_bias, got 'oracle_group_error'; did you mean"
            " 'certified_group_error'?",
        ),
        (
            lambda: parse_condition("certified_group_error(0.2) > 0.25").holds(audit_of("PITs")),
            "condition 'certified_group_error(0.2) > 0.25' cannot be evaluated: with only one"
            " deterministic forecast per person, no bound below 0.4 can be certified for every"
            " group of 20% of people, even for the true distribution",
        ),
        (
            lambda: parse_condition("coverage(0.8, 0.15) < 0.5").holds(audit_of("PITs")),
            "condition 'coverage(0.8, 0.15) < 0.5' cannot be evaluated: with only one deterministic"
            " forecast per person, no coverage of 0.8 intervals can be certified for every group of"
            " 15% of people, even for the true distribution: choose a level above 0.85",
        ),
    ],
)
def test_messages_are_sentences(act: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError) as raised:
        act()
    assert str(raised.value) == message
