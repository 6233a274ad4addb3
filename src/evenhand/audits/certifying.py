"""Certificates of audited rows, by the kind of outcome."""

from __future__ import annotations

from typing import Any

from evenhand.audits.outcomes import RowPITs
from evenhand.certificates import PITCertificate, certify_pit
from evenhand.distributions import OutcomeKind


def certificate_of(rows: RowPITs, **options: Any) -> PITCertificate:
    """Certify rows; `options` are those of `certify_pit`."""
    # a link bounds errors of lattices in the weaker reading of whole cells only (outcomes: 2)
    base = rows.base if rows.kind is OutcomeKind.CONTINUOUS else None
    return certify_pit(rows.pits, base=base, **options)
