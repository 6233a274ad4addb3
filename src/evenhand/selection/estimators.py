"""Checks of the estimator and the options of `randomize` before fitting."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from evenhand._validate import Floats, InputError, bad_input
from evenhand.distributions import NO_BINARY_RANDOMIZATION
from evenhand.forecasters import Bounds, By, PAICRegressor, SpreadKind, kind_of, thawed
from evenhand.selection.target import Goal, MaxGroupError

DEFAULT_LINK = "entropic"


def check_estimator(estimator: Any) -> None:
    """Refuse models that can neither be randomized nor tested as randomized forecasters."""
    members = list(estimator) if isinstance(estimator, list | tuple) else [estimator]
    if not members:
        raise InputError("estimator is an empty list; pass at least one fitted forecaster")
    for member in members:
        if isinstance(thawed(member), type):
            name = thawed(member).__name__
            raise InputError(f"estimator is the class {name}, not a model; pass {name}()")
    is_randomized = [_is_randomized(member) for member in members]
    if isinstance(estimator, list | tuple):
        # deterministic models in a list form an ensemble, randomized models a sequence of tests
        if any(is_randomized) and not all(is_randomized):
            raise InputError(
                "estimator mixes randomized forecasters and deterministic models; pass a list of"
                " one kind"
            )
        unfitted = [
            type(one).__name__ for one in members if _is_randomized(one) and not _is_fitted(one)
        ]
        if unfitted:
            raise InputError(
                f"estimator contains an unfitted {unfitted[0]}; fit it first, on other rows than"
                " these"
            )
    elif is_randomized[0] and (_is_fitted(estimator) or not isinstance(estimator, PAICRegressor)):
        name = type(thawed(estimator)).__name__
        if _is_fitted(estimator):
            got = f"a fitted {name}, which is already randomized"
            remedy = "pass [model], a list, to test it as it is"
        else:
            got = f"an unfitted {name}, which is already randomized"
            remedy = "pass its base estimator instead"
        raise bad_input("estimator", "be deterministic", got, remedy)
    # a model of unknown kind fails here, before an hour of training
    if estimator is not None and not any(is_randomized):
        for member in (estimator, *members):
            kind_of(member)


def refuse_events(outcomes: Floats, name: str = "y") -> None:
    """Refuse outcomes with two values, whatever kind of outcome is forecast (outcomes: 3)."""
    values = np.unique(outcomes)
    if values.size == 2:
        raise InputError(
            f"{name} has only the values {values[0]:g} and {values[1]:g}, and"
            f" {NO_BINARY_RANDOMIZATION}"
        )


def check_randomized_options(
    goal: Goal,
    link: str,
    by: By | None,
    recalibrate: bool,
    spread: SpreadKind,
    support: Bounds,
) -> None:
    """Refuse what forecasters that are already randomized do not have."""
    given: list[tuple[str, Any, bool]] = [
        ("link", link, link != DEFAULT_LINK),
        ("by", by, by is not None),
        ("recalibrate", recalibrate, recalibrate),
        ("spread", spread, spread != "learned"),
        ("support", support, support is not None),
    ]
    for name, value, is_given in given:
        if is_given:
            raise InputError(
                f"{name}={value!r} has no effect on forecasters that are already randomized;"
                " leave it out"
            )
    # a test proves a target that was fixed before the rows were seen
    if not isinstance(goal, MaxGroupError):
        raise InputError(
            f"{goal.name}={goal.most!r} is not available for forecasters that are already"
            " randomized; give max_group_error"
        )


def check_options(by: By | None, alternative: bool, is_held_out: bool, is_weighted: bool) -> None:
    """Refuse options that would have no effect."""
    if by is not None and not alternative:
        raise InputError(
            f"by={by!r} has no effect with alternative=False, because it defines the groups of the"
            " alternative; leave one of the two out"
        )
    # maps by group need training rows, but here all rows certify
    if by is not None and is_held_out:
        raise InputError(
            f"by={by!r} has no effect on a model that is not fitted here; pass recalibrate=True to"
            " fit maps on some of the rows, or fit RecalibratedRegressor(model, by=...) on others"
        )
    if is_weighted and is_held_out:
        raise InputError(
            "weight has no effect on a model that is not fitted here, because certificates use no"
            " weights; leave it out, or give the largest_weight of the design"
        )


def _is_randomized(model: Any) -> bool:
    return not isinstance(model, type) and hasattr(model, "forecast") and hasattr(model, "alpha")


def is_model_sequence(estimator: Any) -> bool:
    """Return whether this is a list of randomized forecasters; other lists are ensembles."""
    return (
        isinstance(estimator, list | tuple)
        and bool(estimator)
        and all(map(_is_randomized, estimator))
    )


def _is_fitted(model: Any) -> bool:
    try:
        check_is_fitted(thawed(model))
    except NotFittedError:
        return False
    except TypeError:  # not an estimator, so there is nothing to fit
        return True
    return True


def is_prefit(estimator: Any) -> bool:
    """Return whether the model is not fitted here, so that all rows may certify."""
    # the default estimator and a path of networks are fitted here
    if estimator is None or isinstance(estimator, PAICRegressor):
        return False
    return is_model_sequence(estimator) or kind_of(estimator).is_held_out(estimator)
