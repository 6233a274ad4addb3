"""Parts of an audit as plain values for JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pandas as pd

from evenhand import certificates
from evenhand.audits.plain_values import plain_records
from evenhand.calibration import Family


def plain_family(family: Family) -> dict[str, Any]:
    """Return the family of simultaneous intervals."""
    return asdict(family) | {"asymptotic": list(family.asymptotic)}


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
    atom = (
        {"atom": certificate.at} if isinstance(certificate, certificates.HurdleCertificate) else {}
    )
    return {
        "confidence": certificate.confidence,
        "method": certificate.method,
        "link_bound": certificate.bound,
        "n_samples": certificate.n_samples,
        "n_draws": certificate.n_draws,
        "average_error": certificate.average_error(),
        "groups": plain_records(certificate.named_table()),
        "every_group": plain_records(every_group),
        "events": None if events is None else plain_records(events.table()),
        "questions": plain_records(certificate.questions),
        "assumptions": list(certificate.assumptions),
        "not_covered": list(certificate.not_covered),
        **atom,
        **({} if certificate.follow_up is None else {"follow_up": certificate.follow_up.to_dict()}),
    }
