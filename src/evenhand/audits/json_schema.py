"""JSON Schema of an audit."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

SCHEMA = "evenhand.audit/1"
"""Version of the layout of an audit's JSON."""


def audit_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) that the JSON of an audit fulfils.

    It is the file `audit.schema.json` of the package, and lists every key and every column.

    Examples
    --------
    >>> audit_schema()["properties"]["schema"]
    {'const': 'evenhand.audit/1'}
    """
    text = files("evenhand.audits").joinpath("audit.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
