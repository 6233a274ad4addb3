"""Which bound a certificate rests on, by a rule that sees no data (method.md, 11)."""

from __future__ import annotations

from evenhand.certificates import Bound, choose_bound
from evenhand.links import Link
from evenhand.selection.costs import least_alpha, right_wider
from evenhand.selection.target import MaxGroupError, MaxPrice, MaxWider, Target


def bound_of(target: Target, family: Link, n: int) -> Bound:
    """Return the bound that is cheaper, or lower, for a target over a right base of n rows.

    Bounds rest on different bands: the smaller of two 95% bounds is valid with 90% only. A rule
    that sees the number of rows and the target alone keeps the confidence.

    Parameters
    ----------
    target : Target
        What is asked.
    family : Link
        A link of the family.
    n : int
        Number of certifying rows.
    """
    goal = target.goal
    kind = type(family)
    match goal:
        case MaxGroupError():
            return choose_bound(
                n,
                family,
                max_group_error=goal.most,
                mass=target.group_mass,
                confidence=target.confidence,
            )
        case MaxWider():
            alpha = least_alpha(lambda alpha: right_wider(kind(alpha)), goal.most)
        case MaxPrice():
            alpha = least_alpha(lambda alpha: kind(alpha).price, goal.most)
    return choose_bound(n, kind(alpha), mass=target.group_mass, confidence=target.confidence)
