"""Promised bounds and estimates of a watch in words; with signs where the sides differ."""

from __future__ import annotations

from evenhand._format import Show, Toward, at_most, is_known, points
from evenhand.report.records import Values


def bound_words(settings: Values) -> str:
    """Return the promised bound, or both of them, rounded away from the claim.

    Examples
    --------
    >>> bound_words({"target": 0.349884}), bound_words({"target": 0.812, "targets": [0.812, 0.354]})
    ('at most 35.0 points', 'between -35.4 and +81.2 points')
    """
    targets = settings.get("targets")
    if targets is None:
        return f"at most {at_most(settings.get('target'))} points"
    above, below = targets
    return f"between {_signed(-below, 'down')} and {_signed(above, 'up')} points"


def _signed(value: float | None, toward: Toward) -> str:
    """Return percentage points with their sign."""
    return f"{'+' if is_known(value) and value > 0 else ''}{points(value, toward)}"


def is_below(found: Values, settings: Values) -> bool:
    """Whether an estimate is one of the lower of two bounds."""
    return settings.get("targets") is not None and found.get("direction") == "lower"


def shown_of(found: Values, settings: Values) -> Show:
    """Return what writes an estimate: with its sign if both sides have bounds of their own."""
    if settings.get("targets") is None:
        return points
    if not is_below(found, settings):
        return _signed
    opposite: dict[Toward, Toward] = {"down": "up", "up": "down", "nearest": "nearest"}
    return lambda value, toward: _signed(-value if is_known(value) else None, opposite[toward])
