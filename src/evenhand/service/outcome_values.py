"""Outcomes that a logged forecast can have."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from evenhand._validate import bad_input, first_names

LISTED_VALUES = 8
"""Largest number of values that a message lists."""


def check_outcome(y: Any, record: Mapping[str, Any], place: str, remedy: str = "") -> float:
    """Return an outcome as a float, if the forecast describes outcomes of this kind.

    Parameters
    ----------
    y : float
        The outcome.
    record : dict
        Logged distribution of the forecast, of `distributions.to_records`.
    place : str
        Name of the outcome in messages.
    remedy : str, default ""
        What to do, in messages.

    Raises
    ------
    InputError
        If the outcome is not a finite number, or not one that the forecast can have: 0 or 1 for
        events, which alone may be booleans, a value of the lattice for counts and scores, no amount
        beyond the atom, and nothing beyond a bound of the model's `support`.

    Examples
    --------
    >>> check_outcome(2, {"family": "poisson", "rate": 1.5}, "y")
    2.0
    >>> check_outcome(2.5, {"family": "poisson", "rate": 1.5}, "y")
    Traceback (most recent call last):
    evenhand._validate.InputError: y must be a whole number of at least 0, got 2.5
    """
    if isinstance(y, bool | np.bool_):
        if _innermost(record)["family"] != "bernoulli":
            raise bad_input(place, "be a number, not a boolean", str(y), remedy)
        return float(y)
    try:
        value = float(y) if isinstance(y, numbers.Real) else math.nan
    except OverflowError:  # of an integer
        value = math.inf
    if not math.isfinite(value):
        raise bad_input(place, "be a finite number", _shown(y), remedy)
    rule = _broken_rule(value, record)
    if rule is not None:
        raise bad_input(place, rule, f"{value:g}", remedy)
    return value


def _shown(y: Any) -> str:
    # the digits of a large integer would fill the message, and above 4,300 are an error
    if isinstance(y, int):
        return "a larger integer"
    return f"{y:g}" if isinstance(y, numbers.Real) else f"{y!r:.80}"


def _broken_rule(y: float, record: Mapping[str, Any]) -> str | None:
    """Return the rule of the forecast that an outcome breaks."""
    whole, record = record, _innermost(record)
    match record["family"]:
        case "bernoulli":
            return None if y in (0.0, 1.0) else "be 0 or 1"
        case "categorical":
            listed = first_names([f"{value:g}" for value in record["support"]], LISTED_VALUES)
            return None if y in record["support"] else f"be one of the values {listed}"
        case "poisson" | "negative_binomial":
            is_count = y >= 0 and y == round(y)
            return None if is_count else "be a whole number of at least 0"
        case "hurdle":
            at = record["at"]
            is_beyond = y < at if record["end"] == "low" else y > at
            side = "above" if record["end"] == "low" else "below"
            if is_beyond:
                return f"be {at:g} or {side}"
    return _broken_bound(y, whole)


def _innermost(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the record of the distribution that determines the kind of the outcome."""
    while record["family"] != "hurdle" and "base" in record:
        record = record["base"]
    return record


def _broken_bound(y: float, record: Mapping[str, Any]) -> str | None:
    """Return the bound of the support, in units of the outcome, that an outcome is beyond.

    The ends of samples are no bounds: an outcome beyond them is a surprise, but possible.
    """
    if record["family"] == "hurdle":
        return None if y == record["at"] else _broken_bound(y, record["positive"])
    support = record.get("support") if record["family"] in ("transformed", "truncated") else None
    if support is not None:
        low, high = support["low"], support["high"]
        if low is not None and y < low:
            return f"be {low:g} or above, the bound of the forecast"
        if high is not None and y > high:
            return f"be {high:g} or below, the bound of the forecast"
    # inside of these, supports have other units
    has_own_units = record["family"] in ("transformed", "location_scale")
    return None if has_own_units or "base" not in record else _broken_bound(y, record["base"])
