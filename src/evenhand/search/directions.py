"""Directions in which the forecasts of a group are off."""

from __future__ import annotations

from typing import Final, Literal

Direction = Literal[
    "outcomes lower than forecast",
    "outcomes higher than forecast",
    "intervals too narrow",
    "intervals too wide",
    "mixed",
    "as forecast",
    "too small to tell",
    "possible leak",
]
"""Values of the column `direction` in tables of groups, and of `FoundGroup.direction`."""

LOWER: Final = "outcomes lower than forecast"
HIGHER: Final = "outcomes higher than forecast"
NARROW: Final = "intervals too narrow"
WIDE: Final = "intervals too wide"

MIXED: Final = "mixed"
"""Neither level nor spread makes up most of the error."""

AS_FORECAST: Final = "as forecast"
"""The test of the group finds nothing beyond chance."""

TOO_SMALL: Final = "too small to tell"
"""A named group with fewer rows than are tested."""

POSSIBLE_LEAK: Final = "possible leak"
"""A group that the outcome may define: any forecaster is off in it, so it is not tested."""
