"""Certification of forecasters from PITs, or from counts of them (method: proof)."""

from __future__ import annotations

from typing import Any, Literal

from numpy.typing import ArrayLike

from evenhand._validate import InputError, bad_input, check_choice, check_fraction
from evenhand.calibration import PITCounts, PITs, as_pits
from evenhand.certificates.certificate import Method
from evenhand.certificates.evidence import CountEvidence, row_evidence
from evenhand.certificates.pit_certificate import PITCertificate
from evenhand.draws import RandomState, generator


def certify_pit(
    pit: ArrayLike | PITs,
    r: ArrayLike | None = None,
    *,
    confidence: float = 0.95,
    groups: Any = None,
    method: Method = "local-levels",
    mass: float | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
) -> PITCertificate:
    """Certify a forecaster from its PITs on rows that it, and whatever chose it, has not seen.

    Parameters
    ----------
    pit : PITs or array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns draws. One column without `r` is a
        deterministic forecaster.
    r : array-like of shape (n,) or (n, m), optional
        The draws behind the PITs: fresh for each person, one in each of m cells (`draws.jittered`).
        Draws shared by all people, such as midpoints, are refused: they understate errors. Where
        PITs with several columns come without `r`, such draws are assumed.
    confidence : float, default 0.95
        Probability that a statement is true.
    groups : DataFrame, Series, or dict of name to values, optional
        Groups named before the rows were seen, by features known before the outcome: booleans are
        masks, other values labels, as in `evenhand.audit`.
    method : {"local-levels", "betting", "dkw"}, default "local-levels"
        Bounds for every group: equal local levels hold for all masses at once; bets are tighter,
        for one mass; DKW is the baseline.
    mass : float, optional
        The one mass of `method="betting"`.
    cluster : array-like of shape (n,), optional
        Labels of people who have several rows: one row of each, chosen at random, is used, and the
        sizes of groups are shares of people, not of rows. Rows with the same draws are refused
        without it.
    sample_weight : None
        Refused: rows with weights are not a sample of the people. If the weights are known and at
        most `W` times their mean, certify without weights and read `group_error(mass / W)`.
    random_state : int, generator or None
        Of the draw and the row chosen per person, and of the order of bets.

    Returns
    -------
    PITCertificate

    Raises
    ------
    InputError
        If the input does not fit, or could not carry a guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.draws import jittered
    >>> r = jittered(1000, 64, random_state=0)  # a forecaster whose PITs are its draws
    >>> certificate = certify_pit(r, r, random_state=0)
    >>> certificate.group_error(0.2) < 0.05, certificate.mpaic(0.0) == 1.0
    (True, True)

    A deterministic forecaster, even the true one, cannot be certified for every group:

    >>> certify_pit(np.random.default_rng(0).uniform(size=1000)).group_error(0.2) > 0.25
    True
    """
    pits = as_pits(pit, r)
    if sample_weight is not None or pits.weights is not None:
        raise InputError(
            "a certificate takes no sample_weight: rows with weights are not a sample of the"
            " people; if the weights are known and at most W times their mean, certify without them"
            " and read the bounds at mass / W"
        )
    check_fraction("confidence", confidence)
    check_choice("method", method, ("local-levels", "betting", "dkw"))
    if (method == "betting") != (mass is not None):
        raise bad_input("mass", "be given with method='betting', and only then", mass)
    if mass is not None:
        check_fraction("mass", mass, high_open=False)
    # the order of draws from the generator is fixed: one seed gives one certificate
    random = generator(random_state)
    rows = row_evidence(pits, groups, cluster, random)
    return PITCertificate(
        confidence=float(confidence),
        method=method,
        mass=mass,
        is_randomized=rows.pits.is_randomized,
        evidence=rows,
        seed=int(random.integers(2**31)),
        one_row_each=cluster is not None,
    )


def certify_counts(
    counts: PITCounts,
    *,
    is_randomized: bool,
    confidence: float = 0.95,
    method: Literal["local-levels", "dkw"] = "local-levels",
) -> PITCertificate:
    """Certify a forecaster from counts of its PITs, for tables of any length.

    Errors and gaps count as the upper ends of their bins, so each statement holds with the same
    confidence as from `certify_pit`. Bounds are wider than from the PITs by at most: 1/6400 for
    average and named errors; for groups 1/16384, or where the complement decides, (1/6400 + (1 -
    mass) / 16384) / mass; 1/400 for the chain. mPAIC is that at an error of 1/8192 less. Coverage
    is the same.

    Parameters
    ----------
    counts : PITCounts
        Of one row per person, of rows that the forecaster, and whatever chose it, has not seen. Its
        groups were named before the rows were seen.
    is_randomized : bool
        Whether the forecasts depend on a draw.
    confidence : float, default 0.95
        Probability that a statement is true.
    method : {"local-levels", "dkw"}, default "local-levels"
        Bounds for every group. Bets need the rows: `certify_pit`.

    Returns
    -------
    PITCertificate

    Raises
    ------
    InputError
        If the counts are not those of this kind of forecaster, or there is nobody.

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
    check_choice("method", method, ("local-levels", "dkw"))
    if counts.n_samples == 0:
        raise bad_input("counts", "hold at least one person", "none")
    if not is_randomized and (counts.n_draws > 1 or counts.gap is not None):
        remedy = "count the one column of a deterministic forecaster, without r"
        rule = "be True of several draws or known ones"
        raise bad_input("is_randomized", rule, is_randomized, remedy)
    return PITCertificate(
        confidence=float(confidence),
        method=method,
        mass=None,
        is_randomized=bool(is_randomized),
        evidence=CountEvidence(counts),
    )
