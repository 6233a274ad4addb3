"""Shares as text. A bound stays a bound: it is rounded away from what it claims, never in its favour."""

from __future__ import annotations

import math

ROUNDING = 1e-9
"""A bound that is a whole number but for rounding errors is that number."""


def percent(share: float) -> str:
    """Write a stated share in full.

    Examples
    --------
    >>> percent(0.95), percent(0.975), percent(0.9999)
    ('95%', '97.5%', '99.99%')
    """
    return f"{100 * share:.12g}%"


def at_most(share: float, decimals: int = 1, unit: float = 100) -> str:
    """Write an upper bound without its unit: percent and percentage points, or a share with `unit=1`.

    Examples
    --------
    >>> at_most(0.1301), at_most(0.13)
    ('13.1', '13.0')
    """
    scale = 10**decimals
    return f"{math.ceil(unit * scale * share - ROUNDING) / scale:.{decimals}f}"


def at_least(share: float, decimals: int = 1, unit: float = 100) -> str:
    """Write a lower bound without its unit: percent and percentage points, or a share with `unit=1`.

    Examples
    --------
    >>> at_least(0.7489), at_least(0.7489, 0)
    ('74.8', '74')
    """
    scale = 10**decimals
    return f"{math.floor(unit * scale * share + ROUNDING) / scale:.{decimals}f}"
