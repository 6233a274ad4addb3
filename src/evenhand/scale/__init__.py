"""Audits and forecasts of large tables in parts, in one process or on a Dask cluster."""

from __future__ import annotations

from evenhand.scale.engine import dask_client
from evenhand.scale.forecast_columns import FORMS as FORMS
from evenhand.scale.forecast_columns import OUTCOMES as OUTCOMES
from evenhand.scale.forecast_columns import TIMES as TIMES
from evenhand.scale.forecast_columns import forecast_from_columns as forecast_from_columns
from evenhand.scale.forecasts import ForecastJob as ForecastJob
from evenhand.scale.forecasts import Recorder as Recorder
from evenhand.scale.forecasts import Written, forecast_parts
from evenhand.scale.forecasts import served_columns as served_columns
from evenhand.scale.parts_audit import audit_parts
from evenhand.scale.passes import SCORES as SCORES

# names beside `__all__`, the documented reference, are for the command and the tests
from evenhand.scale.passes import AuditColumns as AuditColumns
from evenhand.scale.passes import Sample as Sample
from evenhand.scale.passes import Scoring as Scoring
from evenhand.scale.passes import Survey as Survey
from evenhand.scale.passes import block_generator as block_generator
from evenhand.scale.passes import count_part as count_part
from evenhand.scale.passes import survey_part as survey_part
from evenhand.scale.passes import take_part as take_part
from evenhand.scale.people import People as People
from evenhand.scale.people import Repeated
from evenhand.scale.people import RowSet as RowSet
from evenhand.scale.subjects import ColumnSubject, ModelSubject
from evenhand.scale.subjects import first_forecast as first_forecast
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
