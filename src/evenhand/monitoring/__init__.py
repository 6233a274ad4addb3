"""Monitoring of served forecasts: whether promises still hold, by e-processes (outcomes: 6)."""

# for the watch and for tests; `__all__` is the documented reference
from evenhand.monitoring.e_processes import EProcesses as EProcesses
from evenhand.monitoring.rows import Rows

__all__ = ["Rows"]
