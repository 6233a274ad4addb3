"""Audits as plain values, for JSON, pages and csv files."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pandas as pd

from evenhand.audits.json_schema import SCHEMA
from evenhand.audits.off_groups import plain_groups
from evenhand.audits.plain_parts import plain_certificate, plain_family, plain_histogram
from evenhand.audits.plain_values import plain_records
from evenhand.calibration import GivenForecast
from evenhand.columns import UnseenValues
from evenhand.report import findings_of, status_of

if TYPE_CHECKING:
    from evenhand.audits.result import Audit

TABLES = (
    "scores",
    "groups",
    "scan",
    "by_forecast",
    "learned",
    "worst_groups",
    "plain_intervals",
    "calibration",
    "examples",
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
    unseen = audit.unseen or UnseenValues()
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
        "given_forecast": _plain_given(audit.given_forecast),
        **{key: plain_records(getattr(audit, key)) for key in TABLES},
        "off_groups": plain_groups(audit.off_groups),
        "certificate": _plain_proof(audit),
        # sentences for people; programs read the tables
        "notes": [*unseen.lines(), *map(str, audit.notes)],
        "caveat": audit.caveat,
        "pit": plain_histogram(audit.histogram),
        "price": audit.price,
        "provenance": audit.provenance,
        "possible_leaks": plain_records(audit.leaks),
        "unseen": unseen.records(),
    }
    if audit.censoring is not None:
        plain["censoring"] = asdict(audit.censoring)
        plain["survival"] = plain_records(audit.survival)
    plain["status"] = status_of(findings_of(plain, audit.notes)).to_dict()
    # an audit is immutable: callers get a copy
    return deepcopy(plain)


def _plain_given(given: GivenForecast | None) -> dict[str, Any] | None:
    return None if given is None else asdict(given) | {"tests": dict(given.tests)}


def csv_tables(audit: Audit) -> dict[str, pd.DataFrame]:
    """Return the tables of an audit by the names of their csv files."""
    tables = {key: getattr(audit, key) for key in TABLES}
    if audit.censoring is not None:
        tables |= {"survival": audit.survival}
    tables |= {"possible_leaks": audit.leaks, "histogram": audit.histogram}
    tables |= {"learned_rows": audit.learned_rows, "members": audit.members}
    return tables | {"every_group": audit.every_group}


def _plain_proof(audit: Audit) -> dict[str, Any] | None:
    """Return the certificate as plain values."""
    if audit.certificate is None:
        return None
    return plain_certificate(audit.certificate, audit.every_group)
