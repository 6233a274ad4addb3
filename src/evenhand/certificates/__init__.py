"""Certificates: bounds on the calibration of a forecaster, from PITs, from counts, or for links."""

from __future__ import annotations

# parts for other rooms and for tests; `__all__` is the documented reference
from evenhand.certificates.assumptions import LOST as LOST
from evenhand.certificates.assumptions import ONE_ROW_EACH as ONE_ROW_EACH
from evenhand.certificates.assumptions import FollowUp
from evenhand.certificates.certificate import WORST as WORST
from evenhand.certificates.certificate import Certificate, Method
from evenhand.certificates.deterministic_intervals import WIDER_LEVELS as WIDER_LEVELS
from evenhand.certificates.deterministic_intervals import (
    WiderInterval,
    wider_interval,
    wider_intervals,
)
from evenhand.certificates.event_certificate import MASSES as MASSES
from evenhand.certificates.event_certificate import (
    EventCertificate,
    EventCounts,
    certify_event_counts,
    certify_events,
    count_events,
)
from evenhand.certificates.evidence import CountEvidence, LinkBase, RowEvidence, TimesEvidence
from evenhand.certificates.hurdle_certificate import (
    HurdleCertificate,
    certify_hurdle,
    certify_hurdle_counts,
)
from evenhand.certificates.link_certificate import (
    FixedSequenceCertificate,
    LinkCertificate,
    certify_link,
    certify_link_counts,
)
from evenhand.certificates.link_certificate import certify_calibrated as certify_calibrated
from evenhand.certificates.link_evidence import LEAST_ALPHA as LEAST_ALPHA
from evenhand.certificates.link_evidence import Bound as Bound
from evenhand.certificates.link_evidence import choose_bound
from evenhand.certificates.link_evidence import search_alpha as search_alpha
from evenhand.certificates.pit_certificate import PITCertificate, certify_counts, certify_pit
from evenhand.certificates.promise import Envelope, Promise
from evenhand.certificates.times_certificate import (
    TimesCertificate,
    certify_hurdle_times,
    certify_times,
)

__all__ = [
    "Certificate",
    "CountEvidence",
    "Envelope",
    "EventCertificate",
    "EventCounts",
    "FixedSequenceCertificate",
    "FollowUp",
    "HurdleCertificate",
    "LinkBase",
    "LinkCertificate",
    "Method",
    "PITCertificate",
    "Promise",
    "RowEvidence",
    "TimesCertificate",
    "TimesEvidence",
    "WiderInterval",
    "certify_counts",
    "certify_event_counts",
    "certify_events",
    "certify_hurdle",
    "certify_hurdle_counts",
    "certify_hurdle_times",
    "certify_link",
    "certify_link_counts",
    "certify_pit",
    "certify_times",
    "choose_bound",
    "count_events",
    "wider_interval",
    "wider_intervals",
]
