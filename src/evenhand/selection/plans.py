"""Plans: what an audit finds, or what is proven for every group, with each number of rows."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import bdtrik, ndtri

from evenhand._format import OneLine, Summarized, in_full, number, points_in_full
from evenhand._validate import Floats, InputError, bad_input, check_count, check_fraction
from evenhand.calibration import CDFBands, error_interval, local_levels
from evenhand.certificates import WIDER_LEVELS, WORST, LinkBounds, coverage_floor
from evenhand.links import Link, make_link
from evenhand.report import plan_text
from evenhand.search import MIN_SIZE, POWER, detectable_error
from evenhand.selection.target import (
    LEAST_ALPHA,
    LEVEL,
    NUMBERS,
    TOLERANCE,
    Target,
    fewest_rows,
    largest_alpha,
    least_alpha,
    right_coverage,
    right_wider,
)

# --- the bound that most random samples of a calibrated base reach

PROBABILITY = 0.9
"""Probability, over random rows of a calibrated base, that a plan is met."""

SAMPLES = 1000
"""Number of simulated samples; the probability is then met to within 0.02."""

NODES = 300
"""Number of PITs at which a link is evaluated; it is interpolated between them."""


def _even(n: int, confidence: float) -> LinkBounds:
    """Return the bounds of evenly spread PITs, `(i - 1/2) / n`."""
    return LinkBounds(CDFBands.of_uniform(n, confidence))


@lru_cache(maxsize=256)
def reached_error(n: int, link: Link, mass: float, confidence: float) -> float:
    """Return the group error that `n` random rows certify with a probability of `PROBABILITY`.

    The bound of evenly spread PITs, plus a simulated quantile of the difference that random PITs
    make. For the difference, a group has the lowest or the highest PITs: its bound is linear in the
    link at order statistics. Strong links have a smaller difference, so that more samples reach the
    error than planned.
    """
    even_error = _even(n, confidence).group_error(link, mass)
    even, weights, tails = _tails(n, mass, confidence)
    nodes = np.geomspace(min(even[0], tails.min()), 1.0, NODES)
    values = -link.mean_pit(nodes)
    # sums, as products of matrices depend on the number of threads
    drawn, planned = ((np.interp(u, nodes, values) * weights).sum(axis=-1) for u in (tails, even))
    excess = np.quantile(drawn.max(axis=0), PROBABILITY) - planned
    return float(min(even_error + max(excess, 0.0), WORST))


@lru_cache(maxsize=4)
def _tails(n: int, mass: float, confidence: float) -> tuple[Floats, Floats, Floats]:
    """Return evenly spread PITs, their weights in a bound, and random PITs in both tails.

    Shapes (k,), (k,) and (2, SAMPLES, k).
    """
    ranks, levels = local_levels(n, (1 + confidence) / 2)
    weights = np.diff(np.minimum(np.append(levels, 1.0) / mass, 1.0))
    # the first rank has no weight with so few rows that nothing is certified
    is_used = (weights > 0) | (ranks == 1)
    ranks, weights = ranks[is_used], weights[is_used]
    # order statistics of uniform variables are ratios of sums of exponential ones
    drawn = np.union1d(ranks, n + 1 - ranks)
    steps = np.diff(drawn, prepend=0, append=n + 1)
    sums = np.random.default_rng(0).standard_gamma(steps, (SAMPLES, steps.size)).cumsum(axis=1)
    rising = sums[:, :-1] / sums[:, -1:]
    low, high = (np.searchsorted(drawn, places) for places in (ranks, n + 1 - ranks))
    return (ranks - 0.5) / n, weights, np.array([rising[:, low], 1 - rising[:, high]])


def _rows_needed(target: Target, family: Link) -> int:
    """Return the fewest rows, to three digits, that certify an error with any link of the search.

    Raises InputError if no number of rows is enough.
    """
    link = type(family)(LEAST_ALPHA)
    most, mass = target.most, target.group_mass
    limit = link.group_error(mass)
    found = None
    if limit < most:
        found = fewest_rows(lambda n: reached_error(n, link, mass, target.confidence) <= most)
    if found is None:
        raise InputError(
            f"a group error of at most {points_in_full(most)} points in groups of {in_full(mass)}"
            f" of people cannot be certified with {NUMBERS[-1]:,} rows: the smallest alpha of the"
            f" search, {LEAST_ALPHA:g}, has a group error of {number(limit, 'up')} for a calibrated"
            " model and any number of rows; allow a larger error"
        )
    return found


def unlimited_link(target: Target, family: Link) -> Link:
    """Return the link that meets a target with unlimited rows.

    That with the lowest price for an error, and that with the smallest error for a price.
    """
    kind = type(family)
    if target.max_wider is not None:
        return kind(least_alpha(lambda alpha: right_wider(kind(alpha)), target.max_wider))
    if target.max_price is not None:
        return kind(least_alpha(lambda alpha: kind(alpha).price, target.max_price))

    def excess(place: float) -> float:
        return kind(math.exp(place)).group_error(target.group_mass) - target.most

    if excess(0.0) <= 0:
        return kind(1.0)
    alpha = math.exp(brentq(excess, math.log(LEAST_ALPHA), 0.0, xtol=TOLERANCE / 2))
    # the root lies on either side of the limit
    return kind(alpha * (1 - TOLERANCE))


# --- unions of named cells, without a draw

PLANNED_ROWS = 190
"""Fewest rows of a planned cell: with so many on average it hardly ever has fewer than 150."""

UNION_SAMPLES, UNION_ROWS = 50, 1000
"""Simulated samples of a plan, and most rows per cell: beyond, bounds fall as `n^-1/2`."""


@lru_cache(maxsize=64)
def planned_unions(n: int, n_cells: int, confidence: float) -> tuple[int, float]:
    """Return a number of equal cells, and the bound of their error if forecasts are calibrated.

    Of at most `n_cells` cells there are fewer if small ones would be merged, and 0 if there are too
    few rows for two. The bound, for the W1 error of every union, is the one that nine of ten
    samples reach (simulated).
    """
    k = min(n // PLANNED_ROWS, n_cells)
    if k < 2:
        return 0, WORST
    rows, each = n // k, 1 - (1 - confidence) / k
    few = min(rows, UNION_ROWS)
    drawn = np.random.default_rng(0).random((UNION_SAMPLES, k, few))
    worst = [max(error_interval(u, each)[1] for u in one) for one in drawn]
    return k, min(float(np.quantile(worst, PROBABILITY)) * (few / rows) ** 0.5, WORST)


# --- the plan

ROWS = (200, 500, 1000, 2000, 5000, 20_000)
"""Numbers of rows of a plan."""

GROUP_SHARES = (1.0, 0.5, 0.2, 0.1)
"""Groups whose detectable errors are planned, as shares of the rows; 1 is everyone."""

EVERYONE_LEVEL, GROUPS_LEVEL = 0.01, 0.02
"""Error probability that an audit gives everyone, and all of its named and scanned groups."""

EVERYONE_TESTS, EVENT_TESTS = 6, 3
"""Tests of everyone: of level, of spread, and of trends along the mean and the width of forecasts;
for 0/1 outcomes of the level and of two trends along the probability."""

N_GROUPS = 20
"""Number of groups that are tested together."""


@dataclass(frozen=True)
class PlannedCertificate:
    """What a number of rows certifies for a calibrated model, in nine of ten samples or more.

    Parameters
    ----------
    n_samples : int or None
        Number of certifying rows; None for unlimited rows.
    alpha : float or None
        Alpha of the link; None if no link meets the target with so few rows. The other fields are
        then None, too.
    price : float or None
        Loss of log score, in nats.
    wider : float or None
        Relative increase of the mean width of 80% prediction intervals of normal forecasts.
    group_error : float or None
        Certified bound for the W1 error of every group.
    coverage_low, coverage_high : float or None
        Certified bounds for the coverage of 80% prediction intervals in every group, if PITs are
        evenly spread.
    plain_level, plain_floor, plain_wider : float
        Without a draw: level of the narrowest interval that covers as much in every group, or of
        the widest; its certified least coverage there; and how much wider it is than the 80%
        interval of a normal forecast.
    union_cells, union_error : int and float
        Without a draw: number of named cells, 0 where rows are too few, and certified bound for
        the W1 error of every union of them.
    """

    n_samples: int | None
    alpha: float | None
    price: float | None
    wider: float | None
    group_error: float | None
    coverage_low: float | None
    coverage_high: float | None
    plain_level: float
    plain_floor: float
    plain_wider: float
    union_cells: int
    union_error: float


@dataclass(frozen=True)
class PlannedError:
    """Error of a group that an audit finds with a probability of 80%.

    Parameters
    ----------
    n_samples : int
        Number of audited rows.
    share : float
        Share of them in the group; 1 for everyone.
    error : float or None
        W1 error of the group, or of an event the difference of its rate; None for a group of fewer
        than 150 rows, which is not examined by default.
    """

    n_samples: int
    share: float
    error: float | None


@dataclass(frozen=True, repr=False)
class Plan(OneLine, Summarized):
    """What an audit finds or, with a target, what a guarantee costs, before there are any rows.

    Parameters
    ----------
    n_groups : int
        Number of groups that are tested together, or largest number of named cells.
    target : Target or None
        The guarantee, or what may be paid for it; None for a plan of an audit.
    link : str or None
        Family of the links of a guarantee.
    certificates : tuple of PlannedCertificate
        One for each number of rows, by increasing number; the last one is for unlimited rows.
        Empty without a target.
    rows_needed : int or None
        Fewest certifying rows for the guarantee at any price, in nine of ten samples; None if the
        cost is limited, and without a target.
    rate : float or None
        Rate of the event of an audit of 0/1 outcomes.
    detectable : tuple of PlannedError
        Without a target: errors that an audit finds, by the number of rows and the group.
    """

    n_groups: int
    target: Target | None = None
    link: str | None = None
    certificates: tuple[PlannedCertificate, ...] = ()
    rows_needed: int | None = None
    rate: float | None = None
    detectable: tuple[PlannedError, ...] = ()

    def summary(self) -> str:
        """Return the table of the plan as text."""
        return plan_text(self.to_dict() | {"min_size": MIN_SIZE, "power": POWER})

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as values of JSON."""
        return {
            "schema": "evenhand.plan/1",
            **({} if self.target is None else asdict(self.target)),
            "n_groups": self.n_groups,
            "link": self.link,
            "probability": PROBABILITY,
            "rows_needed": self.rows_needed,
            "certificates": [asdict(one) for one in self.certificates],
            "rate": self.rate,
            "detectable": [asdict(one) for one in self.detectable],
        }


def plan(
    goal: float | None = None,
    group_mass: float = 0.2,
    *,
    max_wider: float | None = None,
    max_price: float | None = None,
    confidence: float = 0.95,
    link: str = "entropic",
    rows: ArrayLike = ROWS,
    n_groups: int = N_GROUPS,
    rate: float | None = None,
) -> Plan:
    """Return the errors that an audit finds or, with a target, what is proven for every group.

    The target is one of `goal`, `max_wider` and `max_price`. Its plan is that of a model
    that is calibrated before the randomization: nine of ten random samples or more certify it; a
    miscalibrated model needs more rows or a higher price.

    Parameters
    ----------
    goal : float, optional
        Largest W1 error that a group may have, between 0 and 1/2.
    group_mass : float, default 0.2
        Smallest group size, as a share of the people.
    max_wider : float, optional
        Instead of an error: largest relative increase of the mean width of 80% prediction
        intervals of normal forecasts; 0.1 for 10%. At most 2.
    max_price : float, optional
        Instead of an error: largest loss of log score, in nats.
    confidence : float, default 0.95
        Confidence of the certificates.
    link : {"entropic", "laplace", "gaussian"}, default "entropic"
        Family of links.
    rows : int or sequence of int
        Numbers of rows, one per person, up to 10 million. Rows for training are not included.
    n_groups : int, default 20
        Number of groups that an audit tests together, named and scanned. With a target the largest
        number of named cells, of whose unions the error without a draw is given.
    rate : float, optional
        Rate of the event, for an audit of 0/1 outcomes.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If an argument is out of its range, or no number of rows suffices for the guarantee.

    Examples
    --------
    >>> planned = plan(0.3, 0.2, rows=[500, 2000])
    >>> [(one.n_samples, round(one.price, 1)) for one in planned.certificates]
    [(500, 0.6), (2000, 0.4), (None, 0.3)]
    >>> planned.rows_needed
    85
    >>> everyone, half, *_ = plan(rows=2000).detectable
    >>> round(everyone.error, 3), round(half.error, 3)
    (0.026, 0.039)
    """
    numbers = sorted({check_count("rows", one) for one in np.atleast_1d(rows).tolist()})
    if numbers[-1:] > [NUMBERS[-1]]:
        raise bad_input("rows", f"be at most {NUMBERS[-1]:,}", f"{numbers[-1]:,}")
    check_count("n_groups", n_groups)
    if goal is max_wider is max_price is None:
        variance = None if rate is None else check_fraction("rate", rate) * (1 - rate)
        detectable = (
            _planned_error(n, share, n_groups, variance) for n in numbers for share in GROUP_SHARES
        )
        return Plan(n_groups, rate=rate, detectable=tuple(detectable))
    if rate is not None:
        raise bad_input("rate", "be None for a guarantee", rate, "it is of an audit")
    target = Target(goal, max_wider, max_price, group_mass, confidence)
    family = make_link(link, 1.0)
    needed = None if target.goal is None else _rows_needed(target, family)
    limit = unlimited_link(target, family)
    return Plan(
        n_groups,
        target,
        family.name,
        tuple(_certificate(n, limit, target, n_groups) for n in (*numbers, None)),
        needed,
    )


def _planned_error(n: int, share: float, n_groups: int, variance: float | None) -> PlannedError:
    """Return the error of a group that an audit of `n` rows finds; of an event by its variance."""
    size = n * share
    if share == 1:
        level = EVERYONE_LEVEL / (EVERYONE_TESTS if variance is None else EVENT_TESTS)
    else:
        # continuous outcomes have two tests of each group
        level = GROUPS_LEVEL / n_groups / (2 if variance is None else 1)
    is_examined = share == 1 or size >= MIN_SIZE
    return PlannedError(n, share, detectable_error(size, level, variance) if is_examined else None)


def _certificate(n: int | None, limit: Link, target: Target, n_cells: int) -> PlannedCertificate:
    """Plan the certificate of `n` rows, beside what they certify without a draw.

    `limit` is the link of unlimited rows.
    """
    mass, confidence = target.group_mass, target.confidence
    link: Link | None = limit
    error, coverage = WORST, (0.0, 1.0)
    if n is None:
        error, coverage = limit.group_error(mass), right_coverage(limit, mass)
    else:

        def error_at(alpha: float) -> float:
            return reached_error(n, type(limit)(alpha), mass, confidence)

        if target.goal is not None:
            alpha = largest_alpha(error_at, target.goal, WORST)
            link = None if alpha is None else type(limit)(alpha)
        if link is not None:
            error = error_at(link.alpha)
            coverage = _even(n, confidence).coverage(link, LEVEL, mass)

    def floor(level: float) -> float:
        if n is None:
            return max(1 - (1 - level) / mass, 0.0)
        missed = math.ceil(bdtrik(PROBABILITY, n, 1 - level))
        return coverage_floor(missed, n, level, mass, confidence)

    # the interval that covers as much without a draw, or the widest
    covering = (one for one in WIDER_LEVELS if floor(one) >= coverage[0] > 0)
    level = next(covering, WIDER_LEVELS[-1])
    cells, union_error = (n_cells, 0.0) if n is None else planned_unions(n, n_cells, confidence)
    return PlannedCertificate(
        n_samples=n,
        alpha=None if link is None else link.alpha,
        price=None if link is None else link.price,
        wider=None if link is None else right_wider(link),
        group_error=None if link is None else error,
        coverage_low=None if link is None else coverage[0],
        coverage_high=None if link is None else coverage[1],
        plain_level=level,
        plain_floor=floor(level),
        plain_wider=float(ndtri((1 + level) / 2) / ndtri((1 + LEVEL) / 2)) - 1,
        union_cells=cells,
        union_error=union_error,
    )
