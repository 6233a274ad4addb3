"""Chosen link around a deterministic model, and its choice for continuous outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from evenhand._validate import Floats, Mask
from evenhand.calibration import PITs
from evenhand.certificates import (
    LinkCertificate,
    PITCertificate,
    certify_link,
    wider_interval,
)
from evenhand.links import Link
from evenhand.planning import (
    LEVEL,
    MaxGroupError,
    MaxPrice,
    MaxWider,
    Target,
    bound_of,
    least_alpha,
)
from evenhand.selection.comparison import Cells
from evenhand.selection.costs import Costs
from evenhand.selection.result import PlainInterval
from evenhand.selection.rows import SplitRows, least_price


@dataclass(frozen=True, eq=False)
class ChosenLink:
    """A link around a deterministic model, its certificate and its costs.

    Parameters
    ----------
    link : Link
        The link.
    certificate : LinkCertificate or PITCertificate
        Certificate that accounts for the choice.
    price : float
        Mean loss of log score, in nats.
    limit : float
        Minimum price of any forecaster with the same mean pathwise error; NaN if it is not known.
    wider : float
        Relative increase of the mean width of 80% prediction intervals; NaN if they have no width.
    pit : ndarray of shape (n, m) or tuple of two
        PITs of the randomized forecasts of all certifying people, or the ends of their cells.
    searched : ndarray of shape (n,) or PITs
        PITs of the deterministic model, in which groups are searched.
    costs : LinkCosts
        Costs of all links.
    error_at : callable
        Function that returns the certified group error of another link.
    plain : PlainInterval or None
        Prediction interval without a draw that covers at least as much.
    """

    link: Link
    certificate: LinkCertificate | PITCertificate
    price: float
    limit: float
    wider: float
    pit: Floats | Cells
    searched: Floats | PITs
    costs: LinkCosts
    error_at: Callable[[Link], float]
    plain: PlainInterval | None = None


class LinkCosts(Protocol):
    """Costs of links, which decide where a limit of the cost is the goal."""

    def price(self, link: Link) -> float:
        """Return the mean loss of log score through a link, in nats."""

    def wider(self, link: Link) -> float:
        """Return the relative increase of the mean width of 80% intervals through a link."""


def continuous_choice(costs: Costs, family: Link, target: Target, rows: SplitRows) -> ChosenLink:
    """Choose a link around a forecast of continuous outcomes.

    The bands over the base model's PITs bound all links simultaneously, so the link may be chosen
    on the rows that certify it.
    """
    proof = certified(costs.pit, costs, family, target, rows)
    wider = costs.wider(proof.link)
    return ChosenLink(
        proof.link,
        proof,
        costs.price(proof.link),
        least_price(proof.mean_error()),
        wider,
        costs.randomized_pit(proof.link),
        costs.pit,
        costs,
        lambda link: proof.with_link(link).group_error(target.group_mass),
        plain_interval(proof, costs, wider, target),
    )


def certified(
    pit: Floats,
    costs: LinkCosts,
    family: Link,
    target: Target,
    rows: SplitRows,
    lost: Mask | None = None,
) -> LinkCertificate:
    """Certify all links, and read the certificate for the link that meets the goal.

    `pit` are PITs of a continuous deterministic forecast; those of people who were `lost` are not
    known.
    """
    # two bands for the tails would count people who were lost twice
    bound = "pathwise" if lost is not None else bound_of(target, family, pit.size)
    proof = certify_link(pit, family, confidence=target.confidence, bound=bound, lost=lost)
    proof = replace(proof, one_row_each=rows.one_row_each)
    goal = target.goal
    match goal:
        case MaxGroupError():
            return proof.least_randomized(goal.most, target.group_mass, certify_share=rows.share)
        case MaxWider() | MaxPrice():
            return proof.with_link(type(family)(affordable_alpha(costs, family, target)))


def affordable_alpha(costs: LinkCosts, family: Link, target: Target) -> float:
    """Return the smallest alpha that costs no more than the goal admits."""
    link = type(family)
    cost = costs.wider if isinstance(target.goal, MaxWider) else costs.price
    return least_alpha(lambda alpha: cost(link(alpha)), target.goal.most)


def plain_interval(
    proof: LinkCertificate, costs: Costs, wider: float, target: Target
) -> PlainInterval | None:
    """Return the interval without a draw that covers at least as much as the randomized one."""
    floor, _ = proof.coverage(LEVEL, target.group_mass)
    found = wider_interval(costs.pit, floor, target.group_mass, confidence=target.confidence)
    if found is None or floor <= 0:
        return None
    width = costs.base_width(found.level) / (costs.base_width(LEVEL) * (1 + wider))
    return PlainInterval(found, width - 1)
