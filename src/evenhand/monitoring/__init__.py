"""Monitoring of served forecasts: whether promises still hold, by e-processes (outcomes: 6)."""

# for the watch and for tests; `__all__` is the documented reference
from evenhand.monitoring.alarms import Alarm, Notice
from evenhand.monitoring.e_processes import STAKES as STAKES
from evenhand.monitoring.e_processes import EProcesses as EProcesses
from evenhand.monitoring.promise_test import EnvelopeTest as EnvelopeTest
from evenhand.monitoring.promise_test import PromiseTest as PromiseTest
from evenhand.monitoring.promise_test import QuantileCells as QuantileCells
from evenhand.monitoring.promise_test import mean_gap as mean_gap
from evenhand.monitoring.promise_test import promise_values as promise_values
from evenhand.monitoring.rows import Rows
from evenhand.monitoring.rows import as_horizon as as_horizon
from evenhand.monitoring.rows import as_time as as_time
from evenhand.monitoring.settings import PERIODS as PERIODS
from evenhand.monitoring.watch import Watch, promise_of, watch_schema
from evenhand.monitoring.witnesses import averaged_witnesses as averaged_witnesses
from evenhand.monitoring.witnesses import cell_witnesses as cell_witnesses

__all__ = ["Alarm", "Notice", "Rows", "Watch", "promise_of", "watch_schema"]
