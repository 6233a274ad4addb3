"""Kinds of outcomes that forecasters are fitted to, checked before and after the fit."""

from __future__ import annotations

from typing import Any

from evenhand._validate import Floats, InputError, check_outcomes
from evenhand.distributions import NO_BINARY_RANDOMIZATION, OutcomeKind
from evenhand.forecasters.adapters import Base, SurvivalBase, kind_of
from evenhand.tables import take_rows


def check_before_fit(estimator: Any, outcomes: Floats, support: Any) -> OutcomeKind | None:
    """Check outcomes against the kind that an estimator predicts, and return it if it is known.

    A continuous model of outcomes with atoms is warned about, unless it is a survival model: the
    times of many people end with the study. With a `support`, outcomes must be continuous, as its
    map to the line would move the atoms.
    """
    adapter = kind_of(estimator, outcomes)
    kind = adapter.outcome_kind_of(estimator, outcomes)
    has_no_atoms = kind is OutcomeKind.CONTINUOUS and adapter is not SurvivalBase
    check_outcomes(outcomes, kind="continuous" if has_no_atoms else None)
    if kind is not None:
        check_support_of(kind, support)
    return kind


def check_after_fit(
    base: Base, rows: Any, outcomes: Floats, support: Any, before: OutcomeKind | None
) -> OutcomeKind:
    """Return the kind of outcome that a fitted model predicts, checked if it was not known."""
    if before is not None:
        return before
    kind = base.distribution(take_rows(rows, [0])).outcome_kind
    check_support_of(kind, support)
    if kind is OutcomeKind.CONTINUOUS:
        check_outcomes(outcomes)
    return kind


def check_support_of(kind: OutcomeKind, support: Any) -> None:
    """Raise InputError if bounds are given for outcomes with atoms."""
    if support is not None and kind is not OutcomeKind.CONTINUOUS:
        is_count = kind is OutcomeKind.COUNT
        remedy = ", or pass CountRegressor(largest=...)" if is_count else ""
        raise InputError(
            f"support={support!r} has no meaning for forecasts of the kind {str(kind)!r}, only for"
            f" continuous ones; leave it out{remedy}"
        )


def refuse_binary(kind: OutcomeKind | None) -> None:
    """Raise InputError for 0/1 outcomes, which randomization cannot help (outcomes: 3)."""
    if kind is OutcomeKind.BINARY:
        raise InputError(NO_BINARY_RANDOMIZATION)
