"""Directions of the miscalibration of a group."""

from __future__ import annotations

from typing import Final, Literal

Direction = Literal[
    "outcomes lower than forecast",
    "outcomes higher than forecast",
    "intervals too narrow",
    "intervals too wide",
    "mixed",
    "as forecast",
    "too few rows",
    "possible leak",
]
"""Values of the column `direction` in tables of groups, and of `FoundGroup.direction`."""

LOWER: Final = "outcomes lower than forecast"
HIGHER: Final = "outcomes higher than forecast"
NARROW: Final = "intervals too narrow"
WIDE: Final = "intervals too wide"

MIXED: Final = "mixed"
"""Neither level nor spread accounts for most of the error."""

AS_FORECAST: Final = "as forecast"
"""The test of the group finds no significant deviation."""

TOO_SMALL: Final = "too few rows"
"""A named group with fewer rows than a test needs."""

POSSIBLE_LEAK: Final = "possible leak"
"""A group that the outcome may define: any forecaster is miscalibrated in it, so it is not tested.
"""
