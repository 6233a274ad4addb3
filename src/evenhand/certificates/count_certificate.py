"""Certificates from counts of PITs, for tables of any length (method: proof)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from evenhand._validate import check_choice, check_fraction
from evenhand.calibration.counts import PITCounts
from evenhand.certificates.certificate import Certificate
from evenhand.certificates.evidence import CountEvidence

__all__ = ["certify_counts"]


def certify_counts(
    counts: PITCounts,
    *,
    groups: Mapping[str, PITCounts] | None = None,
    is_randomized: bool,
    confidence: float = 0.95,
    method: Literal["local-levels", "dkw"] = "local-levels",
) -> Certificate:
    """Certify a forecaster from counts of its PITs, as `certify_pit` does from the PITs.

    For tables of any length.

    Errors and gaps count as the upper ends of their bins, so each statement holds with the same
    confidence. Bounds are wider than from the PITs by at most: 1/6400 for average and named errors;
    for groups 1/16384, or where the complement decides, (1/6400 + (1 - mass) / 16384) / mass; 1/400
    for the chain. mPAIC is that at an error of 1/8192 less. Coverage is the same.

    Parameters
    ----------
    counts : PITCounts
        Of one row per person, of rows that the forecaster, and whatever chose it, has not seen.
    groups : dict of str to PITCounts, optional
        Of groups of these people, named before the rows were seen.
    is_randomized : bool
        Whether a draw stands behind the forecasts.
    confidence : float, default 0.95
        Probability that a statement is true.
    method : {"local-levels", "dkw"}, default "local-levels"
        Bounds for every group. Bets need the rows: `certify_pit`.

    Returns
    -------
    Certificate

    Raises
    ------
    InputError
        If the counts do not fit together, or there is nobody.

    Examples
    --------
    >>> from evenhand.calibration import count_pits
    >>> from evenhand.draws import jittered
    >>> r = jittered(1000, 64, random_state=0)  # a forecaster that says r, whatever the person
    >>> counts, _ = count_pits(r, r, random_state=0)
    >>> certify_counts(counts, is_randomized=True).group_error(0.2) < 0.05
    True
    """
    check_fraction("confidence", confidence)
    check_choice("method", method, ("local-levels", "dkw"))
    evidence = CountEvidence.of(counts, groups or {}, is_randomized)
    return Certificate(float(confidence), method, None, bool(is_randomized), evidence)
