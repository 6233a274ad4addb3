"""Monitoring of served forecasts: whether promises still hold, by e-processes (outcomes: 6)."""

from evenhand.monitoring.rows import Rows

__all__ = ["Rows"]
