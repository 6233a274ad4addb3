"""What links cost on given people, and the link chosen for continuous outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evenhand._logarithms import log1mexp
from evenhand._validate import Floats, InputError, Mask
from evenhand.calibration import Cells, Grid, interval_width
from evenhand.certificates import LinkCertificate, PITCertificate, certify_link, wider_interval
from evenhand.draws import RandomState, generator, jittered
from evenhand.forecast import Forecast, cell_ends
from evenhand.links import Link
from evenhand.selection.comparison import Ends
from evenhand.selection.result import PlainInterval
from evenhand.selection.rows import SplitRows, least_price
from evenhand.selection.target import (
    LEVEL,
    MaxGroupError,
    MaxPrice,
    MaxWider,
    Target,
    bound_of,
    least_alpha,
)
from evenhand.tables import take_rows

# --- costs: loss of log score and width of prediction intervals

PRICE_DRAWS = 16
MOST_PRICED = 400_000
"""Draws per person in the price, and most people times draws."""

WIDTH_DRAWS = 4
WIDTH_PEOPLE = 2000
"""Draws per person, and most people, in the width of randomized intervals: people without a closed
form of their quantiles take time."""

FITTED_PEOPLE = 500
"""Most people in the width of the intervals of a fitted model, whose error is then below 2%."""


class Widths:
    """Widths of prediction intervals of a forecast and of its randomizations, at fixed draws.

    Parameters
    ----------
    base : Forecast
        Deterministic forecast of n people.
    random : Generator
        Source of the sample of people, and of the draws.
    """

    def __init__(self, base: Forecast, random: np.random.Generator) -> None:
        n = base.n_samples
        rows = np.arange(n)
        if n > WIDTH_PEOPLE:
            rows = np.sort(random.choice(n, WIDTH_PEOPLE, replace=False))
        self._base = base[rows]
        self._draws = jittered(rows.size, WIDTH_DRAWS, random)

    def wider(self, link: Link) -> float:
        """Return the relative increase of the mean width of 80% intervals through a link."""
        served = self._base.randomized(link.alpha, link, self._draws)
        return float(interval_width(served, LEVEL).mean()) / self._unrandomized_width - 1

    def of_base(self, level: float) -> float:
        """Return the mean width of the intervals of the deterministic forecast, in units of y."""
        return float(interval_width(self._base, level).mean())

    @property
    def is_positive(self) -> bool:
        """Whether the intervals of the deterministic forecast have a mean width above 0."""
        return 0 < self._width < np.inf

    @cached_property
    def _width(self) -> float:
        return self.of_base(LEVEL)

    @property
    def _unrandomized_width(self) -> float:
        if not self.is_positive:
            raise InputError(
                f"80% prediction intervals of the model have a mean width of {self._width:g}; give"
                " forecasts whose intervals have a width"
            )
        return self._width


def wider_intervals(model: Any, X: Any, random_state: RandomState) -> float | None:
    """Return the relative increase of the mean width of 80% intervals that a model's draw causes.

    Parameters
    ----------
    model : fitted randomized forecaster
        Forecaster with `base_forecast`, its forecast without the draw.
    X : array-like or DataFrame of n rows
        Features of people; the widths of a random sample of them are computed.
    random_state : int, Generator, RandomState or None
        Source of the sample and of the draws.

    Returns
    -------
    float or None
        0.6 for intervals 60% wider; None if the intervals without the draw have no width.
    """
    random = generator(random_state)
    n = len(X)
    rows = np.sort(random.choice(n, min(n, FITTED_PEOPLE), replace=False))
    sample = take_rows(X, rows)
    served = model.forecast(sample, jittered(rows.size, WIDTH_DRAWS, random))
    width = float(interval_width(model.base_forecast(sample), LEVEL).mean())
    if not 0 < width < np.inf:
        return None
    return float(interval_width(served, LEVEL).mean()) / width - 1


class Costs:
    """Costs of links around a deterministic forecast, at fixed draws.

    Parameters
    ----------
    base : Forecast
        Deterministic forecast of n people, continuous or of counts.
    pit : ndarray of shape (n,)
        Its PITs; for counts, randomized ones.
    y : ndarray of shape (n,)
        Outcomes.
    grid : Grid or None
        Grid of the outcomes, which makes the price a difference of cell log scores; None for
        counts, whose log score is that of the outcome's probability.
    random : Generator
        Source of the draws, which are the same for all links: a cost is then a continuous function
        of alpha.
    """

    def __init__(
        self,
        base: Forecast,
        pit: Floats,
        y: Floats,
        grid: Grid | None,
        random: np.random.Generator,
    ) -> None:
        n = pit.size
        self.pit = pit
        self.y = y
        self.grid = grid
        self._whole = base
        self.draws = jittered(n, int(np.clip(MOST_PRICED // n, 1, PRICE_DRAWS)), random)
        self.widths = Widths(base, random)

    def randomized_pit(self, link: Link) -> Floats:
        """Return PITs of the randomized forecasts, shape (n, m)."""
        return link.ppf(self.pit[:, None], self.draws)

    def price(self, link: Link) -> float:
        """Return the mean loss of log score through a link, in nats."""
        # log h = log g - log k at the base's PIT: the price needs no further forecasts
        losses = link.logpdf(self.randomized_pit(link), self.draws)
        if self.grid is not None or self._whole.has_atoms:
            outer, inner, is_upper = self._cells
            draws = np.where(is_upper, 1 - self.draws, self.draws)
            far, near = (_log_ppf(link, log_u, draws) for log_u in (outer, inner))
            with np.errstate(invalid="ignore"):
                in_cells = _log_minus(inner, outer) - _log_minus(near, far)
            # cells whose probability is below the smallest float are as good as points
            losses = np.where(np.isfinite(in_cells), in_cells, losses)
        return float(losses.mean())

    def wider(self, link: Link) -> float:
        """Return the relative increase of the mean width of 80% intervals through a link."""
        return self.widths.wider(link)

    def base_width(self, level: float) -> float:
        """Return the mean width of the intervals of the deterministic forecast, in units of y."""
        return self.widths.of_base(level)

    @cached_property
    def _cells(self) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Logs of the base's tail probabilities at both ends of each cell, shape (n, 1).

        The cell of a rounded outcome is its rounding cell, that of a count the step of the CDF. The
        last array is True where they are those of the upper tail: a cell keeps its digits in the
        smaller tail. All links are evaluated at these ends, the base only once.
        """
        base = self._whole.distribution
        if self._whole.has_atoms:
            lower, upper = base.logcdf(self.y), base.logsf_left(self.y)
            rests = base.logcdf_left(self.y), base.logsf(self.y)
        else:
            assert self.grid is not None
            low, high = cell_ends(self.y, self.grid.step, self.grid.span)
            lower, upper = base.logcdf(high), base.logsf(low)
            rests = base.logcdf(low), base.logsf(high)
        is_upper = upper < lower
        outer = np.where(is_upper, rests[1], rests[0])
        inner = np.where(is_upper, upper, lower)
        return outer[:, None], inner[:, None], is_upper[:, None]


def _log_ppf(link: Link, log_u: Floats, r: Floats) -> Floats:
    """Return log H(u; r) from log u."""
    is_upper = log_u > np.log(0.5)
    turned = link.log_ppf_lower(
        np.where(is_upper, log1mexp(log_u), log_u), np.where(is_upper, 1 - r, r)
    )
    return np.where(is_upper, log1mexp(turned), turned)


def _log_minus(log_a: Floats, log_b: Floats) -> Floats:
    """Return log(a - b) from log a and log b."""
    return np.asarray(log_a + log1mexp(log_b - log_a))


# --- choice for continuous outcomes


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
    pit: Floats | Ends
    searched: Floats | Cells
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
