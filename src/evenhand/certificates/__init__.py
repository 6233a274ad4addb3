"""Certificates: bounds on the calibration of a forecaster in every group, with confidence."""

# parts for other rooms and for tests; `__all__` is the documented reference
from evenhand.certificates.bounds import LatticeBounds, LinkBounds
from evenhand.certificates.certificate import (
    MASSES,
    Certificate,
    Choice,
    Envelope,
    FollowUp,
    Method,
    Promise,
    Thinned,
    proof_rows,
    question_keys,
)
from evenhand.certificates.certify import (
    WEIGHTED,
    OffAtom,
    certify_counts,
    certify_events,
    certify_link,
    certify_pit,
    certify_rows,
)
from evenhand.certificates.parts import (
    WIDER_LEVELS,
    WORST,
    EventPart,
    count_events,
    coverage_floor,
    part_of_base,
)
from evenhand.certificates.unions import Unions
from evenhand.results import PlainInterval

__all__ = [
    "Certificate",
    "Choice",
    "Envelope",
    "EventPart",
    "FollowUp",
    "Method",
    "PlainInterval",
    "Promise",
    "Unions",
    "certify_counts",
    "certify_events",
    "certify_link",
    "certify_pit",
    "count_events",
]
