"""Plain values of watches and comparisons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand._format import is_known
from evenhand.results import Number
from evenhand.results import plain as without_nan

Values = Mapping[str, Any]
"""A result as plain values, or a row of one of its tables."""


def known(*values: Number) -> bool:
    """Whether all values are known."""
    return all(map(is_known, values))


__all__ = ["Number", "Values", "known", "without_nan"]
