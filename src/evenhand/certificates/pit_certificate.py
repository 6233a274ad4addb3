"""Certificates from the PITs of each person (method: proof)."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from evenhand._validate import InputError, bad_input, check_choice, check_fraction
from evenhand.calibration.pits import PITs, as_pits
from evenhand.certificates.certificate import Certificate
from evenhand.certificates.evidence import Method, RowEvidence
from evenhand.draws import RandomState, generator

__all__ = ["certify_pit"]


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
) -> Certificate:
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
    Certificate

    Raises
    ------
    InputError
        If the input does not fit, or could not carry a guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.draws import jittered
    >>> r = jittered(1000, 64, random_state=0)  # a forecaster that says r, whatever the person
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
    random = generator(random_state)
    rows = RowEvidence.of(pits, groups, cluster, random)
    seed = int(random.integers(2**31))
    return Certificate(
        float(confidence), method, mass, rows.is_randomized, rows, seed, cluster is not None
    )
