"""Certificates of audited rows, by the kind of outcome."""

from __future__ import annotations

from typing import Any

from evenhand.audits.outcomes import RowPITs
from evenhand.certificates import Method, PITCertificate, certify_pit
from evenhand.distributions import OutcomeKind


def certificate_of(
    rows: RowPITs, *, method: Method = "local-levels", **options: Any
) -> PITCertificate:
    """Certify rows; `method` and other options are those of `certify_pit`."""
    # a link bounds errors of lattices in the weaker reading of whole cells only (outcomes: 2)
    has_base = rows.kind is OutcomeKind.CONTINUOUS and method == "local-levels"
    # the other methods bound pathwise errors over draws, of any forecaster
    base = rows.base if has_base else None
    return certify_pit(rows.pits, base=base, method=method, **options)
