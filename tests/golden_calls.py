"""Calls of golden cases in the words that their files were written with."""

from __future__ import annotations

from typing import Any

import numpy as np

import evenhand
from evenhand import InputError
from evenhand.calibration import Cells
from evenhand.certificates import (
    Certificate,
    certify_counts,
    certify_events,
    certify_link,
    certify_pit,
    certify_rows,
)
from evenhand.distributions import OutcomeKind
from evenhand.outcomes import Outcomes
from evenhand.search import group_test_rows, shift_of
from evenhand.selection.target import largest_alpha

OF_OUTCOMES = {
    **{name: name for name in ("event", "horizon", "entered", "largest_weight")},
    **{"sample_weight": "weight", "cluster": "person"},
}


def outcomes(y: Any, options: dict[str, Any]) -> Any:
    """Return outcomes with those of the options that are about them, which are taken out."""
    given = {new: options.pop(old) for old, new in OF_OUTCOMES.items() if old in options}
    return Outcomes(y, **given) if given else y


def audit(model: Any, X: Any = None, y: Any = None, **options: Any) -> Any:
    name = None if getattr(y, "name", None) is None else str(y.name)
    y = outcomes(y, options)
    return evenhand.audit(model, X, y, **{"target_name": name} | options)


def certify(model: Any, X: Any = None, y: Any = None, **options: Any) -> Any:
    return evenhand.certify(model, X, outcomes(y, options), **options)


def randomize(model: Any, X: Any, y: Any, **options: Any) -> Any:
    return evenhand.randomize(model, X, outcomes(y, options), **options)


def repaired(found: Any, model: Any, X: Any, y: Any, **options: Any) -> Any:
    return found.repair(model, X, outcomes(y, options), **options)


def of_person(certified: Any) -> Any:
    """Return a function that takes labels of persons as `cluster`."""

    def call(*given: Any, cluster: Any = None, **options: Any) -> Certificate:
        made: Certificate = certified(*given, person=cluster, **options)
        return made

    return call


def pit_or_event(pit: Any, *given: Any, events: Any = None, **options: Any) -> Certificate:
    if events is None:
        return certify_pit(pit, *given, **options)
    return certify_rows(pit, kind=OutcomeKind.BINARY, event=events.events, **options)


pit, link, events = map(of_person, (pit_or_event, certify_link, certify_events))


def hurdle_counts(counts: Any, positive: Any, events: Any, **options: Any) -> Certificate:
    return certify_counts(counts, off_atom=positive, events=events, **options)


def event_counts(counts: Any, **options: Any) -> Certificate:
    return certify_counts(events=counts, **options)


def around(u: Any, link: Any) -> Cells:
    return Cells(u, link=link)


def least_randomized(proof: Certificate, goal: float, mass: float) -> Certificate:
    """Return the certificate of the largest alpha of the link's family that meets a target."""
    kind = type(proof.link)
    alpha = largest_alpha(lambda alpha: proof.with_link(kind(alpha)).group_error(mass), goal)
    if alpha is None:
        raise InputError("no alpha meets the target")
    return proof.with_link(kind(alpha))


def plain_intervals(u: Any, mass: float) -> tuple[Any, ...]:
    return certify_pit(np.asarray(u)).plain_intervals(mass)


def plain_interval(u: Any, floor: float, mass: float) -> Any:
    return next((one for one in plain_intervals(u, mass) if one.floor >= floor), None)


def plan_values(planned: Any) -> dict[str, Any]:
    """Return a plan of a guarantee, beside the rows with which a test finds an error."""
    values = planned.to_dict()
    sizes = (1, values.pop("n_groups"))
    assert (values.pop("rate"), values.pop("detectable")) == (None, [])
    tests = [
        {
            "error": error,
            "shift": shift_of(error),
            "power": power,
            "n_groups": n,
            "n_samples": group_test_rows(error, power=power, n_groups=n, min_size=150, level=0.02),
        }
        for error in (0.02, 0.03, 0.05, 0.1)
        for n in sizes
        for power in (0.8, 0.9)
    ]
    return values | {"group_tests": tests}
