"""Audits and forecasts of tables in parts, in one process or on a Dask cluster."""

from __future__ import annotations

from evenhand.scale.engine import dask_client
from evenhand.scale.forecasts import Written, forecast_parts

# parts for the command; `__all__` is the documented reference
from evenhand.scale.parts_audit import SAMPLE_SIZE as SAMPLE_SIZE
from evenhand.scale.parts_audit import audit_parts
from evenhand.scale.people import Repeated
from evenhand.scale.subjects import ColumnSubject, ModelSubject
from evenhand.scale.subjects import has_sources as has_sources
from evenhand.scale.subjects import searched_columns as searched_columns

__all__ = [
    "ColumnSubject",
    "ModelSubject",
    "Repeated",
    "Written",
    "audit_parts",
    "dask_client",
    "forecast_parts",
]
