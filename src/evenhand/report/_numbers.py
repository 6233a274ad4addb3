"""Numbers of a report as text; what is not known is a dash."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any


def is_known(value: Any) -> bool:
    return value is not None and math.isfinite(value)


def or_zero(value: Any) -> float:
    return float(value) if is_known(value) else 0.0


def without_nan(value: Any) -> Any:
    """Put None for what is not finite: JSON has no word for it, but Python reads and writes one."""
    if isinstance(value, Mapping):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def points(share: float | None) -> str:
    """Write a share as percentage points, without a unit."""
    return f"{100 * share + 0.0:.1f}" if share is not None and math.isfinite(share) else "-"


def bound(show: Callable[[float], str], share: float | None, unit: str = "") -> str:
    """Write a bound that may be unknown."""
    return show(share) + unit if share is not None and math.isfinite(share) else "-"


def percent(share: float | None, decimals: int | None = None) -> str:
    if share is None or not math.isfinite(share):
        return "-"
    return f"{100 * share:.4g}%" if decimals is None else f"{100 * share:.{decimals}f}%"


def tenth_percent(share: float | None) -> str:
    return percent(share, 1)


def number(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2g}" if 0 < abs(value) < 0.001 else f"{value:.3g}" if abs(value) >= 10 else f"{value:.3f}"


def band(show: Callable[[float | None], str], low: float | None, high: float | None) -> str:
    return f"{show(low)} to {show(high)}" if is_known(low) and is_known(high) else "-"


def p_value(value: float | None, equals: str = "") -> str:
    if value is None or not math.isfinite(value):
        return equals + "-"
    return ("< " if equals else "<") + "0.0001" if value < 1e-4 else f"{equals}{value:.4f}"


def whole(n: int | None) -> str:
    return "-" if n is None else f"{n:,}"


def count(n: int, noun: str, plural: str = "") -> str:
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"
