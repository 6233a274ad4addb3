"""JSON Schema of a watch."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any


def watch_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) that the JSON of a watch fulfils.

    It is the file `watch.schema.json` of the package, and lists every key.

    Examples
    --------
    >>> watch_schema()["properties"]["schema"]
    {'const': 'evenhand.watch/1'}
    """
    text = files("evenhand.monitoring").joinpath("watch.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
