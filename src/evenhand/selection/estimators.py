"""Checks of the estimator and the options of `randomize`, before anything is fitted."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from evenhand._validate import bad_input
from evenhand.forecasters import By, PAICRegressor, kind_of, thawed

DEFAULT_LINK = "entropic"


def check_estimator(estimator: Any) -> None:
    """Refuse what cannot be randomized, or tested if it is randomized already."""
    members = list(estimator) if isinstance(estimator, list | tuple) else [estimator]
    if not members:
        raise bad_input("estimator", "hold at least one fitted forecaster", "none")
    for member in members:
        if isinstance(thawed(member), type):
            name = thawed(member).__name__
            raise bad_input("estimator", "be a model, not a class", name, f"write {name}()")
    is_randomized = [_is_randomized(member) for member in members]
    if isinstance(estimator, list | tuple):
        # a list of deterministic models is one ensemble, of randomized ones a sequence of tests
        if any(is_randomized) and not all(is_randomized):
            raise bad_input(
                "estimator",
                "hold randomized forecasters only, or deterministic models only",
                "both",
            )
        unfitted = [
            type(one).__name__ for one in members if _is_randomized(one) and not _is_fitted(one)
        ]
        if unfitted:
            remedy = "fit it first, on rows that do not certify"
            raise bad_input(
                "estimator", "hold fitted forecasters", f"an unfitted {unfitted[0]}", remedy
            )
    elif is_randomized[0] and (_is_fitted(estimator) or not isinstance(estimator, PAICRegressor)):
        name = type(thawed(estimator)).__name__
        got = (
            f"{'a fitted' if _is_fitted(estimator) else 'an unfitted'} {name}, which is randomized"
            " already"
        )
        remedy = (
            "[model], in a list, tests it as it is"
            if _is_fitted(estimator)
            else "give the model inside it"
        )
        raise bad_input("estimator", "be deterministic", got, remedy)
    # a model of no known kind fails here, before an hour of training
    if estimator is not None and not any(is_randomized):
        for member in (estimator, *members):
            kind_of(member)


def check_options(
    link: str,
    by: By | None,
    recalibrate: bool,
    alternative: bool,
    is_randomized: bool,
    is_held_out: bool,
) -> None:
    """Refuse options that would be of no effect."""
    if is_randomized:
        given: list[tuple[str, Any, bool]] = [
            ("link", link, link != DEFAULT_LINK),
            ("by", by, by is not None),
        ]
        for name, value, is_given in [*given, ("recalibrate", recalibrate, recalibrate)]:
            if is_given:
                raise bad_input(
                    name, "be left out for forecasters that are randomized already", repr(value)
                )
    if by is not None and not alternative:
        raise bad_input(
            "by",
            "be left out with alternative=False",
            by,
            "its groups are those of the alternative",
        )
    # maps of groups need rows to learn from, and all rows certify
    if by is not None and is_held_out:
        remedy = (
            "recalibrate=True learns maps on some of the rows, or fit RecalibratedRegressor(model,"
            " by=...) on others"
        )
        raise bad_input("by", "be left out for a model that learns nothing here", repr(by), remedy)


def _is_randomized(model: Any) -> bool:
    return not isinstance(model, type) and hasattr(model, "forecast") and hasattr(model, "alpha")


def is_model_sequence(estimator: Any) -> bool:
    """Whether this is a list of randomized forecasters; a list of other models is one ensemble."""
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
    except TypeError:  # no estimator, so there is nothing to fit
        return True
    return True


def is_prefit(estimator: Any) -> bool:
    """Whether nothing is fitted here, so that all rows may certify."""
    # the default estimator and a path of networks are trained here
    if estimator is None or isinstance(estimator, PAICRegressor):
        return False
    return is_model_sequence(estimator) or kind_of(estimator).is_held_out(estimator)


def without_outcome_checks(estimator: Any) -> Any:
    """Return a clone of a model that does not check again whether outcomes are continuous."""
    if isinstance(estimator, list | tuple):
        return [without_outcome_checks(member) for member in estimator]
    if isinstance(estimator, FrozenEstimator) or not hasattr(estimator, "get_params"):
        return estimator
    # at any depth: models inside pipelines and wrappers check outcomes too
    names = [name for name in estimator.get_params() if name.rpartition("__")[2] == "on_discrete"]
    return clone(estimator).set_params(**dict.fromkeys(names, "ignore")) if names else estimator
