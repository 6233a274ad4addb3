"""Monitoring of served forecasts: whether promises still hold, by e-processes (outcomes: 6)."""

# for the watch and for tests; `__all__` is the documented reference
from evenhand.monitoring.e_processes import Alarm
from evenhand.monitoring.rows import (
    Rows,
    as_duration,
    as_time,
    as_times,
    level_name,
    rows_of_forecast,
    served_cells,
)
from evenhand.monitoring.watch import Watch, promise_of, watch_schema

__all__ = ["Alarm", "Rows", "Watch", "promise_of", "rows_of_forecast", "watch_schema"]
