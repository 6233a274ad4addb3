"""Audits and forecasts of tables in parts, in one process or on a Dask cluster."""

from __future__ import annotations

from evenhand.scale.engine import dask_client
from evenhand.scale.forecasts import Written, forecast_parts
from evenhand.scale.parts_audit import SAMPLE_SIZE, audit_parts
from evenhand.scale.people import Repeated
from evenhand.scale.subjects import ColumnSubject, ModelSubject, has_sources, searched_columns

__all__ = [
    "SAMPLE_SIZE",
    "ColumnSubject",
    "ModelSubject",
    "Repeated",
    "Written",
    "audit_parts",
    "dask_client",
    "forecast_parts",
    "has_sources",
    "searched_columns",
]
