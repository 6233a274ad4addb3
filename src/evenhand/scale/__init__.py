"""Tables larger than memory: audits and forecasts part by part, in one process or on a Dask cluster."""

from __future__ import annotations

from evenhand.scale.engine import dask_client
from evenhand.scale.forecasts import Written, forecast_parts
from evenhand.scale.parts_audit import audit_parts
from evenhand.scale.subjects import ColumnSubject, ModelSubject, has_sources, searched_columns

__all__ = [
    "ColumnSubject",
    "ModelSubject",
    "Written",
    "audit_parts",
    "dask_client",
    "forecast_parts",
    "has_sources",
    "searched_columns",
]
