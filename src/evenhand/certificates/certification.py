"""Certification of forecasters from PITs or from counts of PITs (method: proof)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from numpy.typing import ArrayLike

from evenhand._validate import InputError, bad_input, check_choice, check_fraction
from evenhand.calibration import PITCounts, PITs, as_pits
from evenhand.certificates.assumptions import WEIGHTED
from evenhand.certificates.certificate import Method
from evenhand.certificates.event_certificate import EventCertificate
from evenhand.certificates.evidence import CountEvidence, LinkBase, row_evidence
from evenhand.certificates.link_certification import certify_link, certify_link_counts
from evenhand.certificates.pit_certificate import PITCertificate
from evenhand.distributions import OutcomeKind
from evenhand.draws import RandomState, generator
from evenhand.links import Link


def certify_pit(
    pit: ArrayLike | PITs,
    r: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    groups: Any = None,
    base: LinkBase | None = None,
    method: Method = "local-levels",
    mass: float | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    kind: OutcomeKind | str | None = None,
    events: EventCertificate | None = None,
    random_state: RandomState = None,
) -> PITCertificate:
    """Certify a forecaster from its PITs on rows that neither its fit nor its selection has seen.

    Parameters
    ----------
    pit : PITs or array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns are draws. A single column without `r` means
        a deterministic forecaster. Outcomes with atoms have PITs with cells (`PITs.of_cells`):
        bounds for every group then average over the position in the cell, coverage is that of
        intervals of whole values, and all other bounds use the drawn positions. Coverage of rounded
        outcomes under continuous forecasts (`kind="continuous"`) uses the drawn positions, too.
    r : array-like of shape (n,) or (n, m), optional
        The draws behind the PITs: fresh for each person, one in each of m cells (`draws.jittered`).
        Draws shared by all people, such as midpoints, are refused because they understate errors.
        If PITs with several columns are given without `r`, such draws are assumed.
    confidence : float, default 0.95
        Probability that a bound holds.
    groups : DataFrame, Series, or dict of name to values, optional
        Groups named before the rows were seen, by features known before the outcome: booleans are
        masks, other values are labels, as in `evenhand.audit`.
    base : LinkBase, optional
        For a link around a deterministic forecaster: the link, and the PITs of that forecaster on
        the same rows, which are not compared with `pit`. The overall bound and those for every
        group are then those of `certify_link`. For counts and ordinal scores these bounds do not
        hold (outcomes: Theorem 2c), so the base, with its cells, only shows what its intervals
        prove without a draw.
    method : {"local-levels", "betting"}, default "local-levels"
        Method of the bounds for every group: equal local levels hold for all masses
        simultaneously; betting gives tighter bounds for a single mass. A link has only local
        levels.
    mass : float, optional
        The single mass of `method="betting"`.
    cluster : array-like of shape (n,), optional
        Person labels, for people who have several rows. One row per person, chosen at random, is
        used, and group sizes are shares of people, not of rows. Without labels, rows with the same
        draws are refused.
    sample_weight : None
        Refused: weighted rows are not a sample of the people. If the weights are known and at most
        `W` times their mean, certify without weights and read `group_error(mass / W)`.
    kind : {"continuous", "count", "binary"}, optional
        Kind of outcome that the forecasts describe (`Forecast.outcome_kind`). By default "binary"
        with `events`, else "count" for PITs with cells, else "continuous". PITs of rounded outcomes
        under continuous forecasts have cells, too. For an outcome with an atom and a continuous
        part use `certify_hurdle`.
    events : EventCertificate, optional
        For 0/1 outcomes: bounds of event rates and biases from the same people, by
        `certify_events`.
    random_state : int, generator or None
        Seed for the draw and the row chosen per person, and for the order of bets.

    Returns
    -------
    PITCertificate

    Raises
    ------
    InputError
        If the input is invalid or cannot support a guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.draws import jittered
    >>> r = jittered(1000, 64, random_state=0)  # a forecaster whose PITs are its draws
    >>> certificate = certify_pit(r, r, random_state=0)
    >>> certificate.group_error(0.2) < 0.05, certificate.mpaic(0.0) == 1.0
    (True, True)

    Bounds for a link around a deterministic forecaster need one draw per person only:

    >>> from evenhand.certificates import LinkBase
    >>> from evenhand.links import Entropic
    >>> u = np.random.default_rng(1).uniform(size=1000)  # PITs of a calibrated base
    >>> link, draws = Entropic(0.1), np.random.default_rng(2).uniform(size=1000)
    >>> served = certify_pit(link.ppf(u, draws), draws, base=LinkBase(u, link))
    >>> served.group_error(0.2) < 0.3
    True

    A deterministic forecaster, even the true distribution, cannot be certified for every group:

    >>> certify_pit(np.random.default_rng(0).uniform(size=1000)).group_error(0.2) > 0.25
    True
    """
    pits = as_pits(pit, r)
    outcome = _kind_of(kind, events, pits.cells is not None)
    check_options(pits, confidence, method, mass, sample_weight)
    has_bounds = base is not None and outcome is OutcomeKind.CONTINUOUS
    if has_bounds and method != "local-levels":
        rule = "be 'local-levels' where base is given"
        raise bad_input("method", rule, repr(method), "leave base out for another method")
    # the order of draws from the generator is fixed: one seed gives one certificate
    random = generator(random_state)
    rows = row_evidence(pits, groups, cluster, random, base)
    is_rounded = rows.has_cells and outcome is OutcomeKind.CONTINUOUS
    rows = replace(rows, is_rounded=is_rounded)
    _check_events(events, rows.n_samples, confidence)
    made = PITCertificate(
        confidence=float(confidence),
        method=method,
        mass=mass,
        is_randomized=rows.pits.is_randomized,
        evidence=rows,
        seed=int(random.integers(2**31)),
        one_row_each=cluster is not None,
        kind=outcome,
        events=events,
    )
    if rows.base is None or not has_bounds:
        return made
    return replace(made, bounds=certify_link(rows.base.pit, rows.base.link, confidence=confidence))


def check_options(
    pits: PITs,
    confidence: float,
    method: Method,
    mass: float | None,
    sample_weight: ArrayLike | None,
) -> None:
    """Check the options of a certificate from PITs."""
    if sample_weight is not None or pits.weights is not None:
        raise InputError(f"certificates do not accept sample_weight: {WEIGHTED}")
    check_fraction("confidence", confidence)
    check_choice("method", method, ("local-levels", "betting"))
    if method == "betting" and mass is None:
        raise InputError(
            "method='betting' bounds a single group size, and mass is None; give one, such as"
            " mass=0.2"
        )
    if method != "betting" and mass is not None:
        raise InputError(
            f"mass is for method='betting' only, got mass={mass} with method={method!r}; leave it"
            " out: these bounds hold for every mass"
        )
    if mass is not None:
        check_fraction("mass", mass, high_open=False)


def _kind_of(
    kind: OutcomeKind | str | None, events: EventCertificate | None, has_cells: bool
) -> OutcomeKind:
    """Check the kind of outcome, or derive it from what is known."""
    if kind is None:
        other = OutcomeKind.COUNT if has_cells else OutcomeKind.CONTINUOUS
        return other if events is None else OutcomeKind.BINARY
    if kind == OutcomeKind.HURDLE:
        raise InputError(
            "an outcome with an atom and a continuous part has two certificates in one; use"
            " certify_hurdle"
        )
    made = OutcomeKind(check_choice("kind", kind, ("continuous", "count", "binary")))
    if events is not None and made is not OutcomeKind.BINARY:
        raise bad_input("events", "be None unless kind is 'binary'", repr(events))
    return made


def _check_events(events: EventCertificate | None, n: int, confidence: float) -> None:
    """Check that events belong to as many people, with the same confidence."""
    if events is None:
        return
    if events.n_samples != n:
        rule = f"be those of the same people ({n})"
        raise bad_input("events", rule, f"{events.n_samples} people")
    if events.confidence != confidence:
        rule = f"have the confidence of the certificate ({confidence:g})"
        raise bad_input("events", rule, events.confidence)


def certify_counts(
    counts: PITCounts,
    *,
    is_randomized: bool,
    link: Link | None = None,
    confidence: float = 0.95,
    kind: OutcomeKind | str | None = None,
    events: EventCertificate | None = None,
) -> PITCertificate:
    """Certify a forecaster from counts of its PITs, for tables of any length.

    Errors and gaps are taken at the upper ends of their bins, so each bound holds with the same
    confidence as a bound of `certify_pit`. Bounds are wider than those from the PITs by at most:
    1/6400 for the overall error and for named groups; 1/16384 for every group, or (1/6400 + (1 -
    mass) / 16384) / mass where the complement decides; 1/400 for the chain. The bound for mPAIC is
    that of the PITs at an error smaller by 1/8192. Bounds for coverage are the same. With a link,
    the overall bound and those for every group widen by at most the share of base PITs in a bin
    times the change of `link.mean_pit` over it, summed over the bins and divided by the group size:
    by less than 0.002 for a size of 0.1 unless many PITs are in the first or last bin.

    Parameters
    ----------
    counts : PITCounts
        Counts of one row per person, from rows that neither the fit nor the selection of the
        forecaster has seen. The groups were named before the rows were seen.
    is_randomized : bool
        Whether the forecasts depend on a draw.
    link : Link, optional
        The link around the deterministic forecaster whose PITs are `counts.base`. The overall bound
        and those for every group are then those of `certify_link_counts`.
    confidence : float, default 0.95
        Probability that a bound holds.
    kind : {"continuous", "count", "binary"}, optional
        As in `certify_pit`; for counts and 0/1 outcomes `link` must be None.
    events : EventCertificate, optional
        For 0/1 outcomes: bounds of event rates and biases from counts of the same people, by
        `certify_event_counts`.

    Returns
    -------
    PITCertificate

    Raises
    ------
    InputError
        If the counts do not match this kind of forecaster, or contain no people.

    Examples
    --------
    >>> from evenhand.calibration import count_pits
    >>> from evenhand.draws import jittered
    >>> r = jittered(1000, 64, random_state=0)  # a forecaster whose PITs are its draws
    >>> counts = count_pits(r, r, random_state=0)
    >>> certify_counts(counts, is_randomized=True).group_error(0.2) < 0.05
    True
    """
    check_fraction("confidence", confidence)
    if counts.n_samples == 0:
        raise bad_input("counts", "contain at least one person", "none")
    if not is_randomized and (counts.n_draws > 1 or counts.gap is not None):
        remedy = "for a deterministic forecaster, count its one column of PITs without r"
        rule = "be True for counts of several draws or of known draws"
        raise bad_input("is_randomized", rule, is_randomized, remedy)
    outcome = _kind_of(kind, events, counts.inside_whole is not None)
    _check_events(events, counts.n_samples, confidence)
    bounds = None
    if link is not None:
        if outcome is not OutcomeKind.CONTINUOUS:
            remedy = "leave link out: these bounds rest on the pathwise errors"
            raise bad_input("link", "be None for outcomes with atoms", repr(link), remedy)
        if counts.base is None:
            remedy = "count the rows again with count_pits(..., base=...)"
            raise bad_input("counts", "have a base where a link is given", "none", remedy)
        bounds = certify_link_counts(counts.base, link, confidence=confidence)
    return PITCertificate(
        confidence=float(confidence),
        method="local-levels",
        mass=None,
        is_randomized=bool(is_randomized),
        evidence=CountEvidence(counts),
        bounds=bounds,
        kind=outcome,
        events=events,
    )
