"""Certification of links from PITs of a deterministic forecaster, or from their counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._validate import bad_input, check_count, check_fraction, check_rows
from evenhand.calibration import PIT_BINS, PITs, as_pits
from evenhand.certificates.assumptions import WEIGHTED
from evenhand.certificates.bound_choice import calibrated_evidence, evidence_type
from evenhand.certificates.link_certificate import MOST_PITS, LinkCertificate
from evenhand.certificates.link_evidence import Bound, Sample
from evenhand.draws import RandomState, one_row_each
from evenhand.links import Link


def certify_link(
    pit: ArrayLike | PITs,
    link: Link,
    *,
    confidence: float = 0.95,
    bound: Bound | None = None,
    lost: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    random_state: RandomState = None,
) -> LinkCertificate:
    """Certify links around a deterministic forecaster, from its own PITs on held-out rows.

    Parameters
    ----------
    pit : PITs or array-like of shape (n,)
        PITs of the deterministic forecaster, between 0 and 1, one per row.
    link : Link
        The link whose bounds are returned; `with_link` returns those of any other.
    confidence : float, default 0.95
        Probability that all bounds for all links hold.
    bound : {"sharp", "pathwise"}, optional
        The kind of bound for group errors. It must not be chosen by looking at these rows: by
        default it is the sharp one from 500 people on. `choose_bound` gives the cheaper one for a
        target.
    lost : array-like of bool, shape (n,), optional
        People whose PIT is not known, and who need not belong to the population of the others: the
        bounds are for groups of the people who do, and hold whatever these PITs are. What `pit`
        contains for them is ignored.
    cluster : array-like of shape (n,), optional
        Person labels, for people who have several rows. One row per person, chosen at random, is
        used, and group sizes are shares of people, not of rows.
    random_state : int, generator or None
        Seed for the choice of rows.

    Returns
    -------
    LinkCertificate

    Raises
    ------
    InputError
        If the PITs are invalid, weighted, randomized or those of outcomes with atoms, or there is
        more than one per row.

    Examples
    --------
    >>> from evenhand.links import Entropic
    >>> u = np.random.default_rng(0).uniform(size=2000)  # a calibrated forecaster
    >>> proof = certify_link(u, Entropic(0.1))
    >>> true = Entropic(0.1).group_error(0.2)
    >>> true < proof.group_error(0.2) < true + 0.04
    True
    >>> least = proof.least_randomized(max_group_error=0.3, mass=0.2)
    >>> least.group_error(0.2) <= 0.3, 0.1 < least.link.alpha < 0.2
    (True, True)
    """
    check_fraction("confidence", confidence)
    pits = as_pits(pit)
    remedy = "links wrap a deterministic forecaster; certify a randomized one with certify_pit"
    if pits.n_draws != 1:
        raise bad_input("pit", "have one PIT per row", f"shape {pits.matrix.shape}", remedy)
    if pits.is_randomized:
        raise bad_input("pit", "be those of forecasts without a draw", "PITs with draws", remedy)
    if pits.cells is not None:
        remedy = "certify randomized forecasts of outcomes with atoms with certify_pit"
        raise bad_input("pit", "be PITs of continuous outcomes", "PITs with cells", remedy)
    if pits.weights is not None:
        raise bad_input("pit", "have no weights", "weighted PITs", WEIGHTED)
    u = pits.matrix[:, 0]
    unknown = np.zeros(u.size, dtype=np.bool_)
    if lost is not None:
        unknown = check_rows("lost", lost, u.size) != 0
    if cluster is not None:
        rows = one_row_each(cluster, u.size, random_state)
        u, unknown = u[rows], unknown[rows]
    known = u[~unknown]
    if known.size == 0:
        raise bad_input("lost", "leave out at least one person whose PIT is known", "all people")
    # at 0 for the band of one tail and at 1 for that of the other, whichever makes a group worse
    sample = Sample(np.where(unknown, 0.0, u), np.where(unknown, 1.0, u))
    made = LinkCertificate.of(sample, link, float(confidence), bound)
    return replace(
        made,
        pit=Sample(known, known).quantiles(MOST_PITS),
        one_row_each=cluster is not None,
        n_lost=int(unknown.sum()),
    )


def certify_link_counts(
    counts: NDArray[np.int64],
    link: Link,
    *,
    confidence: float = 0.95,
    bound: Bound | None = None,
) -> LinkCertificate:
    """Certify links around a deterministic forecaster, from counts of its PITs in equal bins.

    PITs are taken at the ends of their bins, which only widens the bounds, by at most the share of
    people in a bin times the change of the mean served PIT over it, summed over bins and divided by
    the group size: by less than 0.001 for a size of 0.2 unless many PITs are in the first or the
    last bin.

    Parameters
    ----------
    counts : ndarray of int64, shape (6400,)
        Number of people by PIT, one row per person, in equal bins of [0, 1] closed on the right.
    link, confidence, bound
        As in `certify_link`.

    Returns
    -------
    LinkCertificate

    Raises
    ------
    InputError
        If the counts have another shape or contain no people.

    Examples
    --------
    >>> from evenhand.links import Entropic
    >>> counts = np.full(6400, 1)  # 6,400 people with evenly spread PITs
    >>> round(certify_link_counts(counts, Entropic(0.1)).group_error(0.2), 2)
    0.19
    """
    check_fraction("confidence", confidence)
    counts = np.asarray(counts)
    if counts.shape != (PIT_BINS,) or counts.dtype.kind not in "iu":
        rule = f"be {PIT_BINS} integers"
        raise bad_input("counts", rule, f"shape {counts.shape} of type {counts.dtype}")
    if counts.min() < 0 or counts.sum() == 0:
        raise bad_input("counts", "be at least 0, of at least one person", f"sum {counts.sum()}")
    bins = np.flatnonzero(counts)
    sample = Sample(bins / PIT_BINS, (bins + 1) / PIT_BINS, counts[bins])
    return LinkCertificate.of(sample, link, float(confidence), bound)


def certify_calibrated(
    n: int, link: Link, *, confidence: float = 0.95, bound: Bound | None = None
) -> LinkCertificate:
    """Return the certificate of links around a calibrated base with evenly spread PITs.

    It shows what so many rows can prove before there are any. Bounds from rows vary around it.

    Parameters
    ----------
    n : int
        Number of people; their PITs are `(i - 1/2) / n`.
    link, confidence, bound
        As in `certify_link`.

    Returns
    -------
    LinkCertificate

    Examples
    --------
    >>> from evenhand.links import Entropic
    >>> round(certify_calibrated(2000, Entropic(0.1)).group_error(0.2), 3)
    0.204
    """
    check_fraction("confidence", confidence)
    n_people = check_count("n", n)
    kind = evidence_type(bound, n_people).bound
    evidence = calibrated_evidence(n_people, float(confidence), kind)
    size = min(n_people, MOST_PITS)
    return LinkCertificate(
        float(confidence), link, evidence, (np.arange(size) + 0.5) / size, n_people
    )
