"""Columns of tables: their kinds, the values that they had in training, and values that are new."""

from __future__ import annotations

from evenhand.columns.evidence import Evidence, found_schema
from evenhand.columns.reading import read_typed
from evenhand.columns.schema import Column, Schema, as_pandas
from evenhand.columns.unseen import (
    UnseenValues,
    UnseenValuesWarning,
    unreported,
    warn_unseen,
)

__all__ = [
    "Column",
    "Evidence",
    "Schema",
    "UnseenValues",
    "UnseenValuesWarning",
    "as_pandas",
    "found_schema",
    "read_typed",
    "unreported",
    "warn_unseen",
]
