"""Kinds of outcomes that `fit` trains on: checks of the target, and the model of each kind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand._format import percent
from evenhand._validate import MAX_ATOM, MIN_DISTINCT, Floats, InputError, bad_input, largest_atom
from evenhand.cli.options import given_options, refuse_without_effect

if TYPE_CHECKING:
    import typer

    from evenhand.distributions import OutcomeKind

KINDS = ("continuous", "count", "hurdle", "binary")
"""Values of `--outcome`."""

CLASS_ROWS = 10
"""Fewest rows with each value for which `fit` predicts the probability of each value of a score.
Half of the rows may be held out, and a value that no training row has would be impossible."""

RANDOMIZING = ("alpha", "max_group_error", "max_wider", "max_price", "link")
"""Parameters of `fit` that randomize forecasts."""


def refuse_for_kind(options: typer.Context, outcome: str | None) -> None:
    """Refuse an unknown kind of outcome, and options of `fit` that have no effect on its models."""
    from evenhand._validate import check_choice
    from evenhand.distributions import NO_BINARY_RANDOMIZATION, OutcomeKind

    if outcome is None:
        return
    check_choice("--outcome", outcome, KINDS)
    kind = OutcomeKind(outcome)
    if kind is OutcomeKind.BINARY:
        for option in given_options(options, RANDOMIZING):
            raise InputError(f"{option}: {NO_BINARY_RANDOMIZATION}")
    unused = {
        OutcomeKind.COUNT: ("support", "device"),
        OutcomeKind.HURDLE: ("support",),
        OutcomeKind.BINARY: ("support", "device"),
    }
    refuse_without_effect(options, unused.get(kind, ()), f"with --outcome {outcome}")


def kind_of_target(y: Floats, outcome: str | None, place: str) -> OutcomeKind:
    """Return the kind of a target, and refuse values that it cannot have.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Finite outcomes.
    outcome : {"continuous", "count", "hurdle", "binary"} or None
        Value of `--outcome`; None trains on continuous outcomes only.
    place : str
        File and column, for messages.

    Raises
    ------
    InputError
        If the outcomes are discrete and `outcome` is None, with the option for them; or if they are
        not of the kind that `outcome` names.
    """
    from evenhand.distributions import OutcomeKind

    if outcome is None:
        reason = None if y.size < MIN_DISTINCT or (y == y[0]).all() else discrete_target(y)
        if reason is not None:
            raise InputError(f"{place} {reason}")
        return OutcomeKind.CONTINUOUS
    kind = OutcomeKind(outcome)
    match kind:
        case OutcomeKind.BINARY:
            _refuse(~np.isin(y, (0.0, 1.0)), y, place, "be 0 or 1", "code the event as 1")
        case OutcomeKind.HURDLE:
            _refuse(y < 0, y, place, "be 0 or above", "--outcome hurdle is for amounts with zeros")
            if not (y == 0).any() or (y == 0).all():
                which = "only zeros" if (y == 0).all() else "no zeros"
                raise InputError(
                    f"{place} has {which}, but --outcome hurdle needs zeros and amounts above 0;"
                    " leave --outcome out for a continuous target"
                )
        case OutcomeKind.COUNT if not has_classes(y):
            is_count = (y >= 0) & (y == np.round(y))
            remedy = f"scores with other values need at least {CLASS_ROWS} rows with each value"
            _refuse(~is_count, y, place, "be a whole number of at least 0", remedy)
    return kind


def discrete_target(y: Floats) -> str | None:
    """Return why a target is discrete, and the option of `fit` for it; None if it is continuous.

    Examples
    --------
    >>> discrete_target(np.arange(100.0) % 2)
    'has only the values 0 and 1; for the probability of 1 add --outcome binary'
    """
    values = np.unique(y)
    atom, share = largest_atom(y)
    if values.size == 2:
        listed = f"{values[0]:g} and {values[1]:g}"
        coded = (
            "" if set(values) == {0.0, 1.0} else ", with the event coded as 1 and the other as 0"
        )
        meaning = "the probability of 1" if not coded else "the probability of one of them"
        return f"has only the values {listed}; for {meaning} add --outcome binary{coded}"
    is_count = bool((values == np.round(values)).all() and values[0] >= 0)
    if values.size < MIN_DISTINCT:
        facts = f"has only {values.size} distinct values"
    elif share > MAX_ATOM:
        facts = f"is {atom:g} in {percent(share, 'up')} of the rows"
    else:
        return None
    if is_count and values.size >= MIN_DISTINCT and atom == values[0] == 0:
        remedy = "for counts add --outcome count, for amounts with zeros --outcome hurdle"
    elif is_count or (values.size < MIN_DISTINCT and has_classes(y)):
        remedy = "for counts or scores add --outcome count"
    elif atom == values[0] == 0 and share > MAX_ATOM:
        remedy = "for amounts with zeros add --outcome hurdle"
    else:
        remedy = (
            "a forecast of a continuous target needs different values: model the frequent values"
            " apart, or give a target without them"
        )
    return f"{facts}; {remedy}"


def has_classes(y: Floats) -> bool:
    """Whether each value is frequent enough to predict the probability of each value."""
    values, counts = np.unique(y, return_counts=True)
    return bool(values.size < MIN_DISTINCT and counts.min() >= CLASS_ROWS)


def base_model(kind: OutcomeKind, y: Floats, device: str, seed: int | None) -> Any:
    """Return the unfitted deterministic model that `fit` trains on a kind of target.

    Parameters
    ----------
    kind : OutcomeKind
        Kind of the target.
    y : ndarray of shape (n,)
        Outcomes.
    device : str
        Device of the network for continuous targets and for amounts.
    seed : int or None
        Seed of the model.
    """
    from evenhand import forecasters
    from evenhand.distributions import OutcomeKind

    match kind:
        case OutcomeKind.CONTINUOUS:
            return _network(device, seed)
        case OutcomeKind.HURDLE:
            return forecasters.HurdleRegressor(None, _network(device, seed), random_state=seed)
        case OutcomeKind.COUNT if not has_classes(y):
            return forecasters.CountRegressor(random_state=seed)
        case _:
            return forecasters.ClassifierForecaster(random_state=seed)


def _network(device: str, seed: int | None) -> Any:
    from evenhand.forecasters import MixtureMLPRegressor

    return MixtureMLPRegressor(device=device, random_state=seed, verbose=True)


def _refuse(wrong: Any, y: Floats, place: str, rule: str, remedy: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise bad_input(f"{place}, row {row + 1}", rule, f"{y[row]:g}", remedy)
