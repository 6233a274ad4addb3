"""Parts of an audit as plain values for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pandas as pd

from evenhand import certificates
from evenhand.audits.group_tests import Family
from evenhand.audits.plain_values import plain_records
from evenhand.distributions import OutcomeKind


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


def plain_certificate(
    certificate: certificates.PITCertificate, every_group: pd.DataFrame
) -> dict[str, Any]:
    """Return a certificate with its bounds for every group."""
    events = certificate.events
    # in pooled PITs of 0/1 outcomes too high and too low probabilities cancel (verdict: 2)
    is_event = certificate.kind is OutcomeKind.BINARY
    atom = (
        {"atom": certificate.at} if isinstance(certificate, certificates.HurdleCertificate) else {}
    )
    return {
        "confidence": certificate.confidence,
        "method": certificate.method,
        "link_bound": certificate.bound,
        "n_samples": certificate.n_samples,
        "n_draws": certificate.n_draws,
        "average_error": None if is_event else certificate.average_error(),
        "groups": [] if is_event else plain_records(certificate.named_table()),
        "every_group": plain_records(every_group),
        "events": None if events is None else plain_records(events.table()),
        "questions": plain_records(certificate.questions),
        "assumptions": list(certificate.assumptions),
        "not_covered": list(certificate.not_covered),
        **atom,
        **({} if certificate.follow_up is None else {"follow_up": certificate.follow_up.to_dict()}),
    }
