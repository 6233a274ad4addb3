"""Values of an audit that may be unknown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from evenhand._format import is_known


def or_zero(value: Any) -> float:
    """Return a value, or 0 where it is unknown."""
    return float(value) if is_known(value) else 0.0


def without_nan(value: Any) -> Any:
    """Put None for what is not finite: JSON has no word for it, but Python reads and writes one."""
    if isinstance(value, Mapping):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
