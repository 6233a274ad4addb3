"""Monitoring of served forecasts: whether promises still hold, by e-processes (outcomes: 6)."""

# for the watch and for tests; `__all__` is the documented reference
from evenhand.monitoring.e_processes import Alarm
from evenhand.monitoring.rows import Rows, rows_of_forecast
from evenhand.monitoring.rows import as_duration as as_duration
from evenhand.monitoring.rows import as_time as as_time
from evenhand.monitoring.rows import level_name as level_name
from evenhand.monitoring.rows import pit_cells as pit_cells
from evenhand.monitoring.watch import PERIODS as PERIODS
from evenhand.monitoring.watch import Watch, promise_of, watch_schema

__all__ = ["Alarm", "Rows", "Watch", "promise_of", "rows_of_forecast", "watch_schema"]
