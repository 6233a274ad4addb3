"""Audits as plain values, of this process or read from JSON files, for comparisons."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evenhand._format import number_in_full
from evenhand._validate import InputError, bad_input
from evenhand.audits.plain import SCHEMA
from evenhand.audits.result import Audit
from evenhand.audits.row_record import RowRecord
from evenhand.distributions import OutcomeKind
from evenhand.report import Measure
from evenhand.search import POSSIBLE_LEAK

# --- layout, as far as a comparison reads it

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

KEYS: Mapping[str, Kinds] = {
    "name": TEXT,
    "n_samples": COUNT,
    "tolerance": (int, float),
    # null if only PITs are known
    "outcome_kind": (str, type(None)),
}

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
    faults = (_wrong(value, kinds, place) for place, value, kinds in _checked(values))
    found = next((fault for fault in faults if fault is not None), None)
    kind = values.get("outcome_kind")
    if found is None and kind is not None and kind not in list(OutcomeKind):
        return f"outcome_kind that is none of {', '.join(OutcomeKind)}: {kind!r}"
    return found


Checked = Iterator[tuple[str, Any, Kinds]]


def _checked(values: Mapping[str, Any]) -> Checked:
    """Yield places, their values and the types that these must have; those inside others last."""
    for key, kinds in KEYS.items():
        yield key, values.get(key, ...), kinds
    for key in OBJECTS:
        yield key, values.get(key), (dict, type(None))
    yield "rounding_step", values.get("rounding_step"), NUMBER
    for key, columns in TABLES.items():
        yield from _rows(key, values.get(key, ...), columns)
    if censoring := values.get("censoring"):
        yield "censoring.n_events", censoring.get("n_events", ...), COUNT
        yield "censoring.horizon", censoring.get("horizon", ...), NUMBER
    yield "provenance.data", (values.get("provenance") or {}).get("data"), (dict, type(None))
    every = (values.get("certificate") or {}).get("every_group") or []
    yield from _rows("certificate.every_group", every, {"mass": (int, float)})


def _rows(name: str, rows: Any, columns: Mapping[str, Kinds]) -> Checked:
    yield name, rows, (list,)
    for i, row in enumerate(rows):
        place = f"{name}, row {i}"
        yield place, row, (dict,)
        present = {column: kinds for column, kinds in OPTIONAL.items() if column in row}
        for column, kinds in (present | dict(columns)).items():
            yield f"{place}: {column!r}", row.get(column, ...), kinds


def _wrong(value: Any, kinds: Kinds, place: str) -> str | None:
    """Return the place and the value if it is of another kind; `...` is a missing value."""
    if value is ...:
        return f"no {place}"
    # a flag is an int of Python, and is no number of JSON
    if isinstance(value, kinds) and not isinstance(value, bool):
        return None
    shown = repr(value) if len(repr(value)) <= 40 else type(value).__name__
    return f"{place} that is not {IN_WORDS[kinds[0]]}: {shown}"


# --- recorded audits

Source = Audit | str | os.PathLike[str]
"""An audit, or the path of its JSON."""

UNPAIRED = (
    "{}: no values of single rows are recorded, so changes have no paired intervals. They are"
    " recorded in audits of at most 20,000 rows whose outcomes are known; make the audit again with"
    " this version."
)
UNPAIRED_TIMES = (
    "{}: some times may be cut off, so errors are Kaplan-Meier estimates, whose changes have no"
    " paired intervals."
)


@dataclass(frozen=True)
class Recorded:
    """Audit as plain values.

    Parameters
    ----------
    values : dict
        `Audit.to_dict()`, or what was read from its JSON.
    label : str
        Name of the file, or of the audit, in messages.
    stem : str
        Name of the file without its ending; "" for an audit of this process.
    """

    values: Mapping[str, Any]
    label: str
    stem: str = ""

    @classmethod
    def of(cls, source: Source) -> Recorded:
        """Read an audit."""
        if isinstance(source, Audit):
            return cls(source.to_dict(), source.name)
        path = Path(source)
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            remedy = "write the audit with evenhand audit --out FILE.json"
            rule, given = "be the JSON of an audit", "a file that is not JSON"
            raise bad_input(f"{path}", rule, given, remedy) from error
        fault = layout_fault(values)
        if fault is not None:
            rule = "be the JSON of an audit"
            raise bad_input(f"{path}", rule, fault, "write it with evenhand audit --out FILE.json")
        return cls(values, path.name, path.stem)

    @property
    def rows_in_words(self) -> str:
        """Number of rows and name of the table."""
        name = ((self.values.get("provenance") or {}).get("data") or {}).get("name")
        rows = f"{self.values['n_samples']:,} rows"
        return rows if name is None else f"{rows} of {name}"

    @property
    def kind(self) -> OutcomeKind | None:
        """Kind of outcome; None if only PITs are known."""
        name = self.values["outcome_kind"]
        return None if name is None else OutcomeKind(name)

    @property
    def tolerance(self) -> float:
        """Tolerance of the audit."""
        return float(self.values["tolerance"])

    @cached_property
    def record(self) -> RowRecord | None:
        """Values of each row; None if the audit has none."""
        state = self.values.get("rows")
        if state is None:
            return None
        try:
            found = RowRecord.from_state(state)
        except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
            raise self._damaged from error
        if found.n_samples != self.values["n_samples"]:
            raise self._damaged
        return found

    @property
    def _damaged(self) -> InputError:
        return InputError(
            f"{self.label}: the row record of an audit is damaged; make the audit again"
        )

    @property
    def censoring(self) -> Mapping[str, Any] | None:
        """Numbers of events and of people cut off; None unless outcomes are times."""
        found: Mapping[str, Any] | None = self.values.get("censoring")
        return found

    @property
    def times_in_words(self) -> str:
        """Number of events, and the horizon."""
        if self.censoring is None:
            return "no times that may be cut off"
        horizon = self.censoring["horizon"]
        upto = "" if horizon is None else f" up to the horizon {number_in_full(horizon)}"
        return f"{self.censoring['n_events']:,} events{upto}"

    @property
    def has_pairs(self) -> bool:
        """Whether errors and scores are means over recorded values of rows."""
        return self.record is not None and self.censoring is None

    @property
    def why_unpaired(self) -> str:
        """Why an audit without values of each row has none."""
        return (UNPAIRED if self.censoring is None else UNPAIRED_TIMES).format(self.label)

    @property
    def named(self) -> list[Mapping[str, Any]]:
        """Rows of the table of named groups."""
        return [self._sized(row) for row in self.values["groups"]]

    def _sized(self, row: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a group whose error is its size: where times are cut off, by Kaplan-Meier."""
        return row if self.censoring is None else {**row, "error": row.get("km_error")}

    @cached_property
    def groups(self) -> dict[str, Mapping[str, Any]]:
        """Rows of both tables of groups by name; possible leaks are left out.

        Of 0/1 outcomes they have the scores of probabilities, where these are known.
        """
        scores = {row["group"]: row for row in self.values["probability_scores"]}
        found: dict[str, Mapping[str, Any]] = {}
        for row in self.named:
            if not row.get("possible_leak"):
                found[row["group"]] = {**row, **scores.get(row["group"], {})}
        for row in self.values["scan"]:
            is_tested = row.get("p_adjusted") is not None and row["direction"] != POSSIBLE_LEAK
            if is_tested and row["group"] not in found:
                found[row["group"]] = self._sized(row)
        return found

    @cached_property
    def scores(self) -> dict[Measure, float]:
        """Scores by measure."""
        step = self.values.get("rounding_step")
        known = [Measure("log score"), Measure("CRPS"), Measure("mean std")]
        # where times are cut off, the error of the tested PITs understates the size
        known += [Measure("error" if self.censoring is None else "Kaplan-Meier error")]
        known += [Measure("log loss"), Measure("Brier score")]
        known += [] if step is None else [Measure("cell log score", step)]
        known += [Measure("interval width", level) for level in (0.8, 0.9)]
        known += [Measure("coverage", level) for level in (0.8, 0.9)]
        known += [Measure("whole coverage", level) for level in (0.8, 0.9)]
        by_name = {str(measure): measure for measure in known}
        return {
            by_name[row["measure"]]: number(row["value"])
            for row in self.values["scores"]
            if row["measure"] in by_name
        }

    @property
    def worst_groups(self) -> list[Mapping[str, Any]]:
        """Rows of the table of oracle worst groups."""
        return list(self.values["worst_groups"])

    @property
    def every_group(self) -> dict[float, Mapping[str, Any]]:
        """Certified bounds by group size."""
        rows = (self.values.get("certificate") or {}).get("every_group") or []
        return {row["mass"]: row for row in rows}

    @property
    def sizes(self) -> list[str]:
        """Names and numbers of rows of the named groups."""
        return [f"{row['group']} ({row['n']})" for row in self.named]


def number(value: Any) -> float:
    """Return a number; NaN if it is not known."""
    return math.nan if value is None else float(value)
