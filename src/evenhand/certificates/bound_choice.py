"""Choice between the bounds for links by a rule that sees no data (method: sharp certificate)."""

from __future__ import annotations

from functools import lru_cache

from evenhand._validate import check_choice, check_count, check_fraction
from evenhand.certificates.least_alpha import LEAST_ALPHA, largest_alpha
from evenhand.certificates.link_evidence import Bound, LinkEvidence
from evenhand.certificates.pathwise_evidence import PathwiseEvidence
from evenhand.certificates.sharp_evidence import SharpEvidence
from evenhand.links import Link, check_link

SHARP_ROWS = 500
"""Number of people from which the sharp bound is used where no target is given."""

MARGIN = 1.05
"""Ratio by which the sharp bound must be better than the pathwise one, in alpha or in the bound.

On random rows of a calibrated base, bounds of the sharp kind vary more than those of the other.
"""

SLACK = 0.01
"""Relative tolerance of an alpha that a search finds."""

KINDS: tuple[type[LinkEvidence], ...] = (SharpEvidence, PathwiseEvidence)
EVIDENCE: dict[str, type[LinkEvidence]] = {kind.bound: kind for kind in KINDS}


def evidence_type(bound: str | None, n: int) -> type[LinkEvidence]:
    """Return the kind of evidence of a bound; by default a function of the number of people."""
    # a rule that saw the PITs would take the smaller of two bounds that need not hold jointly
    if bound is None:
        return SharpEvidence if n >= SHARP_ROWS else PathwiseEvidence
    return EVIDENCE[check_choice("bound", bound, tuple(EVIDENCE))]


def choose_bound(
    n: int, link: Link, *, mass: float, confidence: float, max_group_error: float | None = None
) -> Bound:
    """Return the kind of bound that costs less over a calibrated base with evenly spread PITs.

    The sharp bound is chosen where it is better by at least 5%, in alpha or in the bound itself, so
    that it does not cost more on random rows either. With few people and strong links the pathwise
    bound needs less randomization, because its one band has all of the risk. The choice depends on
    the arguments alone, never on the rows, so the bounds of the chosen kind keep their confidence.

    Parameters
    ----------
    n : int
        Number of certifying people.
    link : Link
        The link, or a member of its family if there is a target.
    mass : float
        Smallest share of people in a group.
    confidence : float
        Confidence of the certificate.
    max_group_error : float, optional
        Target: the kind with which the largest alpha meets it is chosen. Without a target it is
        the kind with the smaller bound under `link`.

    Returns
    -------
    {"sharp", "pathwise"}

    Raises
    ------
    InputError
        If an argument is out of its range.

    Examples
    --------
    >>> from evenhand.links import Entropic
    >>> choose_bound(2000, Entropic(0.1), mass=0.2, confidence=0.95, max_group_error=0.3)
    'sharp'
    """
    return _chosen(
        check_count("n", n),
        check_link(link),
        check_fraction("mass", mass, high_open=False),
        check_fraction("confidence", confidence),
        None if max_group_error is None else check_fraction("max_group_error", max_group_error),
    )


@lru_cache(maxsize=256)
def _chosen(
    n: int, link: Link, mass: float, confidence: float, max_group_error: float | None
) -> Bound:
    sharp = calibrated_evidence(n, confidence, "sharp")
    if max_group_error is None:
        pathwise = calibrated_evidence(n, confidence, "pathwise").group_error(link, mass)
        is_better = pathwise >= MARGIN * sharp.group_error(link, mass)
        return "sharp" if is_better else "pathwise"
    alpha = largest_calibrated_alpha(n, link, "pathwise", max_group_error, mass, confidence)
    # bounds mostly increase with alpha: one bound of the sharp kind excludes it without a search
    needed = LEAST_ALPHA if alpha is None else min(MARGIN * alpha, 1.0)
    is_met = sharp.group_error(type(link)(needed), mass) <= max_group_error
    if (alpha is None and not is_met) or (alpha == 1 and is_met):
        # no alpha meets the target, or every alpha does, with either kind
        return evidence_type(None, n).bound
    if not is_met or (alpha is not None and MARGIN * alpha > 1):
        return "pathwise"
    # with few people the sharp bound is not monotone in alpha: what its search finds decides
    found = largest_calibrated_alpha(n, link, "sharp", max_group_error, mass, confidence)
    return "sharp" if found is not None and found >= needed * (1 - SLACK) else "pathwise"


@lru_cache(maxsize=256)
def largest_calibrated_alpha(
    n: int, link: Link, bound: Bound, max_group_error: float, mass: float, confidence: float
) -> float | None:
    """Return the largest alpha with a bound of this kind that meets a target; None if none does.

    The base is calibrated, and the PITs of its `n` people are evenly spread.
    """
    return largest_alpha(calibrated_evidence(n, confidence, bound), link, max_group_error, mass)


@lru_cache(maxsize=16)
def calibrated_evidence(n: int, confidence: float, bound: Bound) -> LinkEvidence:
    """Return the evidence of `n` people with evenly spread PITs."""
    return EVIDENCE[bound].of_calibrated(n, confidence)
