"""Certification of forecasts with an atom at an end of the range of outcomes (outcomes: 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import InputError, Mask, bad_input, check_finite, check_rows
from evenhand.calibration import PITCounts, PITs
from evenhand.certificates.assumptions import WEIGHTED
from evenhand.certificates.certificate import Method
from evenhand.certificates.certification import certify_counts, certify_pit
from evenhand.certificates.event_certificate import (
    EventCertificate,
    certify_event_counts,
    certify_events,
)
from evenhand.certificates.event_evidence import EventCounts
from evenhand.certificates.evidence import CountEvidence, LinkBase, RowEvidence, row_evidence
from evenhand.certificates.hurdle_certificate import HurdleCertificate
from evenhand.certificates.pit_certificate import PITCertificate
from evenhand.columns import check_groups
from evenhand.distributions import OutcomeKind
from evenhand.draws import RandomState, generator, one_row_each
from evenhand.links import Link


def certify_hurdle(
    pit: PITs,
    positive: PITs,
    is_positive: ArrayLike,
    probability: ArrayLike,
    *,
    at: float = 0.0,
    confidence: float = 0.95,
    groups: Any = None,
    base: LinkBase | None = None,
    method: Method = "local-levels",
    mass: float | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
) -> HurdleCertificate:
    """Certify forecasts with an atom, such as money with zeros, on rows that they have not seen.

    Parameters
    ----------
    pit : PITs of n people
        PITs of the whole forecast, with their cells: the basis of the overall bound and of those of
        named groups.
    positive : PITs of the n_positive people whose outcome is not the atom
        PITs of the forecast given that the outcome is not the atom (`Forecast.positive_part`), in
        the order of the rows; their draws are those of the rows. They have cells only where
        outcomes were rounded.
    is_positive : array-like of bool, shape (n,)
        Whether the outcome is not the atom.
    probability : array-like of shape (n,)
        Forecast probability that the outcome is not the atom (`Forecast.event_probability`).
    at : float, default 0.0
        The atom.
    confidence, groups, method, mass, cluster, sample_weight, random_state
        As in `certify_pit`, with one value or label for each of the n rows.
    base : LinkBase, optional
        For a link around the continuous part: the link, and the n_positive PITs of the forecast
        inside it, given that the outcome is not the atom.

    Returns
    -------
    HurdleCertificate
        `group_error(mass)` and `coverage(level, mass)` are for every group of at least a share
        `mass` of the people whose outcome is not the atom; `event_rate` and `bias`, about whether
        it is the atom, for groups of shares of all people.

    Raises
    ------
    InputError
        If the input is invalid or cannot support a guarantee, or every outcome is the atom.

    Examples
    --------
    >>> from evenhand.draws import jittered
    >>> from evenhand.links import Entropic
    >>> rng = np.random.default_rng(0)
    >>> n, chance = 2000, 0.3  # a right forecast: 30% have an outcome of 0
    >>> is_positive = rng.uniform(size=n) > chance
    >>> u = rng.uniform(size=int(is_positive.sum()))  # PITs given that the outcome is not 0
    >>> link, r = Entropic(0.1), jittered(n, 8, random_state=1)
    >>> low, high = np.zeros((n, 8)), np.full((n, 8), chance)
    >>> low[is_positive] = chance + (1 - chance) * link.ppf(u[:, None], r[is_positive])
    >>> high[is_positive] = low[is_positive]
    >>> proof = certify_hurdle(
    ...     PITs.of_cells(low, high, rng.uniform(size=n), draws=r),
    ...     PITs(link.ppf(u[:, None], r[is_positive]), r[is_positive]),
    ...     is_positive,
    ...     np.full(n, 1 - chance),
    ...     base=LinkBase(u, link),
    ... )
    >>> proof.average_error() < 0.05, proof.group_error(0.2) < 0.25
    (True, True)
    >>> low, high = proof.bias(0.5)
    >>> low < 0 < high
    True
    """
    if sample_weight is not None or pit.weights is not None:
        raise InputError(f"certificates do not accept sample_weight: {WEIGHTED}")
    flags = _flags(is_positive, pit, positive)
    chance = check_rows("probability", probability, pit.n_samples)
    masks: Mapping[str, Mask] = check_groups(groups, pit.n_samples)
    random = generator(random_state)
    if cluster is not None:
        # one row per person from all rows: of these, the people off the atom are a random sample
        rows = one_row_each(cluster, pit.n_samples, random)
        kept = np.isin(np.flatnonzero(flags), rows)
        pit = pit.take(rows)
        positive = positive.take(kept)
        flags = flags[rows]
        chance = chance[rows]
        masks = {name: mask[rows] for name, mask in masks.items()}
        base = None if base is None else base.take(kept)
        _check_some(flags)
    events = certify_events(chance, flags, confidence=confidence)
    inner = certify_pit(
        positive,
        confidence=confidence,
        base=base,
        method=method,
        mass=mass,
        kind=OutcomeKind.CONTINUOUS,
        random_state=random,
    )
    made = _hurdle(row_evidence(pit, masks, None, random), inner, events, at)
    return made if cluster is None else with_one_row_each(made)


def certify_hurdle_counts(
    counts: PITCounts,
    positive: PITCounts,
    events: EventCounts,
    *,
    is_randomized: bool,
    at: float = 0.0,
    link: Link | None = None,
    confidence: float = 0.95,
) -> HurdleCertificate:
    """Certify forecasts with an atom from counts, for tables of any length.

    Parameters
    ----------
    counts : PITCounts
        Counts of the PITs of the whole forecast, of all people.
    positive : PITCounts
        Counts of the PITs of the forecast given that the outcome is not the atom, of the people
        whose outcome is not; with a link, `base` counts those of the forecast inside it.
    events : EventCounts
        Counts of all people by the probability that the outcome is not the atom and by whether it
        is not.
    at, is_randomized, link, confidence
        As in `certify_hurdle` and `certify_counts`.

    Returns
    -------
    HurdleCertificate

    Raises
    ------
    InputError
        If the counts are not of the same people, or every outcome is the atom.
    """
    for name, size, number in (
        ("events", events.n_samples, counts.n_samples),
        ("positive", positive.n_samples, events.n_events),
    ):
        if size != number:
            raise bad_input(name, f"contain {number} people", size, "count them on the same rows")
    if positive.n_samples == 0:
        raise _no_positive()
    inner = certify_counts(
        positive,
        is_randomized=is_randomized,
        link=link,
        confidence=confidence,
        kind=OutcomeKind.CONTINUOUS,
    )
    made = certify_event_counts(events, confidence=confidence)
    return _hurdle(CountEvidence(counts), inner, made, at)


def _flags(is_positive: ArrayLike, pit: PITs, positive: PITs) -> Mask:
    """Check which people have an outcome off the atom, and that the PITs match them."""
    values = check_rows("is_positive", is_positive, pit.n_samples)
    flags: Mask = values != 0
    if not ((values == 0) | (values == 1)).all():
        raise bad_input("is_positive", "be booleans", "other numbers")
    _check_some(flags)
    if positive.n_samples != flags.sum():
        rule = f"have one row for each person with is_positive ({int(flags.sum())})"
        raise bad_input("positive", rule, f"{positive.n_samples} rows")
    return flags


def _check_some(flags: Mask) -> None:
    if not flags.any():
        raise _no_positive()


def _no_positive() -> InputError:
    return InputError(
        "every outcome is the atom, so nothing can be certified about the others; use rows with"
        " other outcomes"
    )


def _hurdle(
    evidence: RowEvidence | CountEvidence,
    positive: PITCertificate,
    events: EventCertificate,
    at: float,
) -> HurdleCertificate:
    (place,) = check_finite("at", [at])
    return HurdleCertificate(
        confidence=positive.confidence,
        method=positive.method,
        mass=positive.mass,
        is_randomized=positive.is_randomized,
        evidence=evidence,
        seed=positive.seed,
        bounds=positive.bounds,
        events=events,
        positive=positive,
        at=float(place),
    )


def with_one_row_each(made: HurdleCertificate) -> HurdleCertificate:
    """Mark all parts of a certificate as made of one row per person."""
    assert made.events is not None
    return replace(
        made,
        one_row_each=True,
        positive=replace(made.positive, one_row_each=True),
        events=replace(made.events, one_row_each=True),
    )
