"""Certificates: bounds on the calibration of a forecaster in every group, with confidence."""

from __future__ import annotations

# parts for other rooms and for tests; `__all__` is the documented reference
from evenhand.certificates.bounds import LatticeBounds as LatticeBounds
from evenhand.certificates.bounds import LinkBounds as LinkBounds
from evenhand.certificates.certificate import MASSES as MASSES
from evenhand.certificates.certificate import Certificate, Choice, FollowUp, Method
from evenhand.certificates.certificate import Thinned as Thinned
from evenhand.certificates.certify import WEIGHTED as WEIGHTED
from evenhand.certificates.certify import OffAtom as OffAtom
from evenhand.certificates.certify import (
    certify_counts,
    certify_events,
    certify_link,
    certify_pit,
)
from evenhand.certificates.certify import certify_rows as certify_rows
from evenhand.certificates.functionals import WORST as WORST
from evenhand.certificates.parts import WIDER_LEVELS as WIDER_LEVELS
from evenhand.certificates.parts import EventPart, PlainInterval, count_events
from evenhand.certificates.parts import coverage_floor as coverage_floor
from evenhand.certificates.parts import part_of_base as part_of_base
from evenhand.certificates.promise import Envelope, Promise
from evenhand.certificates.unions import Unions

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
