"""Layout of the JSON of an audit, as far as a comparison reads it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.audits.json_schema import SCHEMA
from evenhand.distributions import OutcomeKind

Kinds = tuple[type, ...]

NUMBER: Kinds = (int, float, type(None))
"""An unknown number is null."""

TEXT: Kinds = (str,)
COUNT: Kinds = (int,)

TABLES: Mapping[str, Mapping[str, Kinds]] = {
    "scores": {"measure": TEXT, "value": NUMBER},
    "groups": {"group": TEXT, "n": COUNT, "error": NUMBER},
    "scan": {"group": TEXT, "n": COUNT, "error": NUMBER, "direction": (str, type(None))},
    "probability_scores": {"group": TEXT, "slope": NUMBER, "log_loss": NUMBER},
    "worst_groups": {"mass": (int, float), "error": NUMBER, "certified": NUMBER},
}
"""Columns that each row of a table has."""

OPTIONAL: Mapping[str, Kinds] = {
    "coverage_80": NUMBER,
    "coverage_90": NUMBER,
    "bias": NUMBER,
    "predicted": NUMBER,
    "rate": NUMBER,
    "p_adjusted": NUMBER,
    "unit": (str, type(None)),
    "coverage_80_low": NUMBER,
    "coverage_80_high": NUMBER,
    "km_error": NUMBER,
}
"""Columns that a row may have, depending on the kind of outcome."""

KEYS: Mapping[str, Kinds] = {"name": TEXT, "n_samples": COUNT, "tolerance": (int, float)}

OBJECTS = ("about", "certificate", "provenance", "rows", "censoring")
"""Keys whose value is an object, null or left out."""

IN_WORDS = {str: "a text", int: "a number", dict: "an object", list: "a list", float: "a number"}


def layout_fault(values: Any) -> str | None:
    """Return what in parsed JSON is not the layout of an audit; None if nothing is.

    Examples
    --------
    >>> layout_fault([])
    'no object'
    >>> layout_fault({"schema": "evenhand.plan/1"})
    "schema 'evenhand.plan/1'"
    """
    if not isinstance(values, Mapping):
        return "no object"
    if values.get("schema") != SCHEMA:
        return f"schema {values.get('schema')!r}"
    faults = [_wrong(values.get(key, ...), kinds, key) for key, kinds in KEYS.items()]
    faults += [_wrong(values.get(key), (dict, type(None)), key) for key in OBJECTS]
    faults += [_wrong(values.get("rounding_step"), NUMBER, "rounding_step")]
    faults += [_kind_fault(values.get("outcome_kind", ...))]
    faults += [_table_fault(values.get(key, ...), key, kinds) for key, kinds in TABLES.items()]
    found = next((fault for fault in faults if fault is not None), None)
    return found or _nested_fault(values)


def _kind_fault(kind: Any) -> str | None:
    """Return what is wrong with the kind of outcome, which is null if only PITs are known."""
    if kind is None or kind in list(OutcomeKind):
        return None
    if kind is ...:
        return "no outcome_kind"
    return f"outcome_kind that is none of {', '.join(OutcomeKind)}: {kind!r}"


def _nested_fault(values: Mapping[str, Any]) -> str | None:
    """Return what is wrong in objects of an audit."""
    faults = []
    censoring = values.get("censoring") or {}
    if censoring:
        count, horizon = censoring.get("n_events", ...), censoring.get("horizon", ...)
        faults += [_wrong(count, COUNT, "censoring.n_events")]
        faults += [_wrong(horizon, NUMBER, "censoring.horizon")]
    data = (values.get("provenance") or {}).get("data")
    faults += [_wrong(data, (dict, type(None)), "provenance.data")]
    every = (values.get("certificate") or {}).get("every_group") or []
    faults += [_table_fault(every, "certificate.every_group", {"mass": (int, float)})]
    return next((fault for fault in faults if fault is not None), None)


def _table_fault(rows: Any, name: str, kinds: Mapping[str, Kinds]) -> str | None:
    """Return the first value of a table that is of the wrong kind."""
    if not isinstance(rows, list):
        return _wrong(rows, (list,), name)
    for i, row in enumerate(rows):
        place = f"{name}, row {i}"
        if not isinstance(row, Mapping):
            return _wrong(row, (dict,), place)
        present = {column: kind for column, kind in OPTIONAL.items() if column in row}
        for column, kind in (present | dict(kinds)).items():
            fault = _wrong(row.get(column, ...), kind, f"{place}: {column!r}")
            if fault is not None:
                return fault
    return None


def _wrong(value: Any, kinds: Kinds, place: str) -> str | None:
    """Return the place and the value if it is of another kind; `...` is a missing value."""
    if value is ...:
        return f"no {place}"
    # a flag is an int of Python, and is no number of JSON
    if isinstance(value, kinds) and not isinstance(value, bool):
        return None
    shown = repr(value) if len(repr(value)) <= 40 else type(value).__name__
    return f"{place} that is not {IN_WORDS[kinds[0]]}: {shown}"
