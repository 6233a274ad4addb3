"""Certificates: bounds on the calibration of a forecaster, from PITs, from counts of them, or for links."""

from __future__ import annotations

from evenhand.certificates.certificate import (
    ASSUMPTIONS,
    ONE_ROW_EACH,
    WORST,
    Certificate,
    ChoiceBounds,
    Method,
)
from evenhand.certificates.count_certificate import certify_counts
from evenhand.certificates.link_certificate import LinkCertificate, certify_link
from evenhand.certificates.pit_certificate import certify_pit

__all__ = [
    "ASSUMPTIONS",
    "ONE_ROW_EACH",
    "WORST",
    "Certificate",
    "ChoiceBounds",
    "LinkCertificate",
    "Method",
    "certify_counts",
    "certify_link",
    "certify_pit",
]
