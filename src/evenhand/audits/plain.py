"""Audits and their tables as plain values, for JSON, pages and csv files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from evenhand._files import link_target, write_text
from evenhand._format import finite
from evenhand._validate import InputError
from evenhand.audits.group_tests import Family, plain_groups
from evenhand.certificates import Certificate
from evenhand.distributions import OutcomeKind
from evenhand.report import findings_of, status_of
from evenhand.tables import UnseenValues

if TYPE_CHECKING:
    from evenhand.audits.result import Audit


# --- tables

MARK = "tables.json"
"""File of a folder of tables that lists them, so that only our own files are replaced."""

TABLES_SCHEMA = "evenhand.tables/1"

NUMERIC = re.compile(r"[+-]?[0-9]+(\.[0-9]*)?")

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Beginnings of texts that a spreadsheet computes; they are written after an apostrophe."""


def plain_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON values with all digits."""
    return [
        {str(key): plain(value) for key, value in row.items()} for row in table.to_dict("records")
    ]


def plain(value: Any) -> Any:
    """Return a value that JSON supports; NaN and infinity become None."""
    # the json module writes no NumPy numbers, and the JSON standard has no NaN
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return finite(value)


def write_tables(folder: str | os.PathLike[str], tables: Mapping[str, pd.DataFrame]) -> list[Path]:
    """Write each table as a csv file to a folder, which is made if it is missing.

    Numbers have all digits, unknown values are empty, lists are written as JSON, and a
    text that a spreadsheet would compute, such as a name `=1+1`, is written after an apostrophe.
    The file `tables.json` lists the files, which a later call replaces; other files of these names
    are never replaced, and neither are the tables of something else.

    Returns
    -------
    list of Path
        The csv files.
    """
    place = Path(folder)
    names = [f"{name}.csv" for name in tables]
    ours = _replaceable(place, names)
    place = link_target(place)
    place.mkdir(parents=True, exist_ok=True)
    # listed first: an interrupted run leaves files that the next run may replace
    files = sorted({*ours, *names})
    write_text(place / MARK, json.dumps({"schema": TABLES_SCHEMA, "files": files}, indent=2) + "\n")
    for name, table in zip(names, tables.values(), strict=True):
        write_text(place / name, csv_of(table))
    return [place / name for name in names]


def _replaceable(place: Path, names: Sequence[str]) -> list[str]:
    """Return the files of a folder of tables that may be replaced.

    Raises InputError if the folder is a file, contains one of the files `names` that evenhand did
    not write, or contains the tables of something else.
    """
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file, not a folder; name a new or empty folder for tables")
    ours = _listed(place)
    foreign = [name for name in (MARK, *names) if name not in ours and (place / name).exists()]
    # tables.json lists the others, and not itself
    foreign = [name for name in foreign if name != MARK or not ours]
    if foreign:
        raise InputError(
            f"{place} contains {foreign[0]!r}, which evenhand did not write; use a new or empty"
            " folder for tables"
        )
    # another version may have more tables, or fewer
    is_same = set(ours) <= set(names) or set(names) <= set(ours)
    if ours and not is_same:
        raise InputError(
            f"{place} contains other tables, {', '.join(sorted(ours)[:3])}, ...; use a new or empty"
            " folder for tables"
        )
    return ours


def csv_of(table: pd.DataFrame) -> str:
    """Return a table as csv with all digits of its numbers."""
    written = {
        str(name): pd.Series([_cell(value) for value in table[name]], dtype=object)
        for name in table.columns
    }
    return pd.DataFrame(written, columns=[str(c) for c in table.columns]).to_csv(index=False)


def _cell(value: Any) -> Any:
    shown = plain(value)
    if isinstance(shown, list):
        return json.dumps(shown, ensure_ascii=False)
    if isinstance(shown, str) and shown.startswith(FORMULA) and not NUMERIC.fullmatch(shown):
        return f"'{shown}"
    # the shortest text that is read as the same number
    return repr(shown) if isinstance(shown, float) else shown


def _listed(folder: Path) -> list[str]:
    """Return the files that an earlier call listed."""
    try:
        values = json.loads((folder / MARK).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    if not isinstance(values, dict) or values.get("schema") != TABLES_SCHEMA:
        return []
    files = values.get("files")
    return [str(name) for name in files] if isinstance(files, list) else []


# --- JSON Schema

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


# --- parts of an audit


def plain_family(family: Family) -> dict[str, Any]:
    """Return the family of tests and intervals that hold together."""
    lists = {"shares": dict(family.shares), "asymptotic": list(family.asymptotic)}
    return asdict(family) | lists


def plain_histogram(bins: pd.DataFrame) -> dict[str, list[float]] | None:
    """Return the bins as lists, with the list of their edges."""
    if bins.empty:
        return None
    edges = [*bins["start"], float(bins["end"].iloc[-1])]
    return {"edges": edges} | {key: bins[key].tolist() for key in ("share", "low", "high")}


def plain_certificate(certificate: Certificate, every_group: pd.DataFrame) -> dict[str, Any]:
    """Return a certificate with its bounds for every group."""
    # in pooled PITs of 0/1 outcomes too high and too low probabilities cancel (verdict: 2)
    is_event = certificate.kind is OutcomeKind.BINARY
    follow_up, unions = certificate.follow_up, certificate.unions
    return {
        "confidence": certificate.confidence,
        "method": certificate.method,
        "link_bound": certificate.bound,
        "n_samples": certificate.n_samples,
        "n_draws": certificate.n_draws,
        "average_error": None if is_event else certificate.average_error(),
        "groups": [] if is_event else plain_records(certificate.named_table()),
        "every_group": plain_records(every_group),
        "events": None if certificate.events is None else plain_records(certificate.event_table()),
        "questions": plain_records(certificate.questions),
        "assumptions": list(certificate.assumptions),
        "not_covered": list(certificate.not_covered),
        **({} if certificate.at is None else {"atom": certificate.at}),
        **({} if follow_up is None else {"follow_up": asdict(follow_up)}),
        **({} if unions is None else {"unions": unions.facts()}),
    }


# --- audits

TABLES = (
    "scores",
    "groups",
    "scan",
    "by_forecast",
    "learned",
    "worst_groups",
    "plain_intervals",
    "calibration",
    "miscoverage",
    "membership",
    "reliability",
    "positive_part",
    "probability_scores",
)
"""Tables of an audit that its JSON lists by the same names."""


def plain_audit(audit: Audit) -> dict[str, Any]:
    """Return an audit as JSON values, without the values of each row.

    The layout is documented in docs/audit-schema.rst.
    """
    unseen, given, proof = audit.unseen or UnseenValues(), audit.given_forecast, audit.certificate
    plain: dict[str, Any] = {
        "schema": SCHEMA,
        "name": audit.name,
        "target": audit.target,
        "about": dict(audit.about),
        "n_samples": audit.n_samples,
        "n_draws": audit.n_draws,
        "is_randomized": audit.is_randomized,
        "outcome_kind": None if audit.outcome_kind is None else str(audit.outcome_kind),
        "rounding_step": audit.rounding_step,
        "grid_share": audit.grid_share,
        "tolerance": audit.tolerance,
        "conditions": [asdict(condition) for condition in audit.conditions],
        "family": None if audit.family is None else plain_family(audit.family),
        "given_forecast": None if given is None else asdict(given) | {"tests": dict(given.tests)},
        **{key: plain_records(getattr(audit, key)) for key in TABLES},
        "off_groups": plain_groups(audit.off_groups),
        "certificate": None if proof is None else plain_certificate(proof, audit.every_group),
        # sentences for people; programs read the tables
        "notes": [*unseen.lines(), *map(str, audit.notes)],
        "caveat": audit.caveat,
        "pit": plain_histogram(audit.histogram),
        "provenance": audit.provenance,
        "possible_leaks": plain_records(audit.leaks),
        "unseen": unseen.records(),
    }
    if audit.censoring is not None:
        plain["censoring"] = asdict(audit.censoring)
        plain["survival"] = plain_records(audit.survival)
    plain["status"] = status_of(findings_of(plain)).to_dict()
    # an audit is immutable: callers get a copy
    return deepcopy(plain)


def csv_tables(audit: Audit) -> dict[str, pd.DataFrame]:
    """Return the tables of an audit by the names of their csv files."""
    tables = {key: getattr(audit, key) for key in TABLES}
    if audit.censoring is not None:
        tables |= {"survival": audit.survival}
    tables |= {"possible_leaks": audit.leaks, "histogram": audit.histogram}
    tables |= {"learned_rows": audit.learned_rows, "members": audit.members}
    return tables | {"every_group": audit.every_group}
