"""Sentences of a report in parts, the words for directions, and what is too small to be told of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]
"""An audit as plain values, or a row of one of its tables."""

SURE = 0.05
"""Adjusted p-value under which a group is surely off."""

LEAST_TOLD = 0.0005
"""Least bound that is told of: a smaller one would read as 0.0 points."""

LOWER, HIGHER = "outcomes lower than forecast", "outcomes higher than forecast"
NARROW, WIDE = "intervals too narrow", "intervals too wide"


@dataclass(frozen=True)
class Said:
    """A sentence; the name of a group in it stands apart, as a page makes it stand out."""

    before: str
    name: str = ""
    rest: str = ""
    is_warning: bool = False

    def __str__(self) -> str:
        return self.before + self.name + self.rest
