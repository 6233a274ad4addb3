"""Audits and forecasts of large tables in parts, in one process or on a Dask cluster."""

# names beside `__all__`, the documented reference, are for the command
from evenhand.scale.engine import dask_client
from evenhand.scale.forecasts import Written, forecast_parts
from evenhand.scale.parts_audit import audit_parts
from evenhand.scale.rows import (
    ModelSubject,
    Repeated,
    Subject,
    as_subject,
    first_forecast,
    has_sources,
    searched_columns,
)

__all__ = ["ModelSubject", "Repeated", "Written", "audit_parts", "dask_client", "forecast_parts"]
