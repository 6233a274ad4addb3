"""Number of rows with which a guarantee can be certified (method: sharp certificate)."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq

from evenhand._format import in_full, nats, number, points_in_full
from evenhand._validate import InputError
from evenhand.certificates import LEAST_ALPHA, choose_bound
from evenhand.links import Link
from evenhand.planning.random_samples import reached_error
from evenhand.planning.target import (
    TOLERANCE,
    MaxGroupError,
    MaxPrice,
    Target,
    affordable,
    family_of,
)

MOST_ROWS = 10_000_000
"""Largest number of rows that is considered."""

FIRST_ROWS = 1000
"""Number of rows at which the search begins."""

MOST_STEPS = 8
"""Secant steps of the search; bisection follows."""

TINY = 1e-12
"""Least excess of a bound on the log scale."""


def rows_needed(
    max_group_error: float,
    group_mass: float,
    confidence: float = 0.95,
    price: float | None = None,
    link: str = "entropic",
) -> int:
    """Return the number of certifying rows that a calibrated model needs for a guarantee.

    The guarantee: every group of at least `group_mass` has a W1 error of at most `max_group_error`.
    The model is calibrated before the randomization. With this number of rows `randomize` finds a
    certified link in nine of ten random samples or more, by the bound with the lower price, which
    is chosen before rows are seen (`certificates.choose_bound`).

    Parameters
    ----------
    max_group_error : float
        Largest W1 error of a group, 0 < max_group_error < 1/2.
    group_mass : float
        Smallest group size, as a share of the people, 0 < group_mass <= 1.
    confidence : float, default 0.95
        Confidence of the certificate.
    price : float, optional
        Largest loss of log score, in nats. By default any link of the search is admitted, down to
        alpha = 0.005, whose price is 3.6 nats.
    link : {"entropic", "laplace", "gaussian"}, default "entropic"
        Family of links.

    Returns
    -------
    int
        Number of rows, one per person, rounded up to three digits. Rows for training are not
        included.

    Raises
    ------
    InputError
        If an argument is out of its range, or no number of rows suffices; the message gives the
        least error or the least price.

    Notes
    -----
    The other samples are certified at a higher price. A miscalibrated model needs more rows.

    Examples
    --------
    >>> rows_needed(0.3, group_mass=0.2)
    47
    >>> rows_needed(0.3, group_mass=0.2, price=0.5)
    871
    """
    target = Target(MaxGroupError(max_group_error), group_mass, confidence)
    family = family_of(link)
    least = type(family)(LEAST_ALPHA)
    most = None if price is None else MaxPrice.checked("price", price)
    strongest = least if most is None else affordable(MaxPrice(most), family)
    mass = target.group_mass
    limit = strongest.group_error(mass)
    margin = target.goal.most - limit
    if margin <= 0:
        raise InputError(_impossible(target, strongest, most))

    def gap(rows: int) -> float:
        bound = choose_bound(rows, strongest, mass=mass, confidence=target.confidence)
        excess = reached_error(rows, strongest, bound, mass, target.confidence) - limit
        # the excess falls as a power of the number of rows: nearly linear on the log scale
        return math.log(max(excess, TINY) / margin)

    found = _fewest(gap)
    if found is None:
        raise InputError(_too_many(target, family, most))
    return found


def population_link(target: Target, family: Link) -> Link:
    """Return the link with the lowest price that meets a target with unlimited rows.

    Parameters
    ----------
    target : Target
        The largest group error, above that of the smallest alpha, and the group size.
    family : Link
        A link of the family.
    """
    kind = type(family)

    def excess(place: float) -> float:
        return kind(math.exp(place)).group_error(target.group_mass) - target.goal.most

    if excess(0.0) <= 0:
        return kind(1.0)
    alpha = math.exp(brentq(excess, math.log(LEAST_ALPHA), 0.0, xtol=TOLERANCE / 2))
    # the root lies on either side of the limit
    return kind(alpha * (1 - TOLERANCE))


def _impossible(target: Target, strongest: Link, price: float | None) -> str:
    """Return the message where no number of rows suffices."""
    start = f"{_asked(target)} cannot be certified with any number of rows"
    least = type(strongest)(LEAST_ALPHA).group_error(target.group_mass)
    if price is None or least >= target.goal.most:
        return (
            f"{start}: the smallest alpha of the search, {LEAST_ALPHA:g}, has a group error of"
            f" {number(least, 'up')} for a calibrated model; allow a larger error"
        )
    return _too_cheap(start, target, strongest, price)


def _too_many(target: Target, family: Link, price: float | None) -> str:
    """Return the message where so many rows are needed that bounds are not computed."""
    start = f"{_asked(target)} needs more than {MOST_ROWS:,} rows"
    if price is None:
        return f"{start}; allow a larger error"
    return _too_cheap(start, target, family, price)


def _asked(target: Target) -> str:
    error, mass = points_in_full(target.goal.most), in_full(target.group_mass)
    return f"a group error of at most {error} points in groups of {mass} of people"


def _too_cheap(start: str, target: Target, family: Link, price: float) -> str:
    least = population_link(target, family).price
    return (
        f"{start} at a price of at most {price:g} nats: for a calibrated model it costs at least"
        f" {nats(least, 'up')} with unlimited rows; allow a higher price or a larger error"
    )


def _fewest(gap: Callable[[int], float]) -> int | None:
    """Return the smallest number of rows, to three digits, whose gap is at most 0.

    None if `MOST_ROWS` are too few.

    Parameters
    ----------
    gap : callable
        Decreasing function of the number of rows, nearly linear in its logarithm.
    """
    # places in the list of numbers of three digits: nearly logarithms of these numbers
    few = 0
    enough = end = _place(MOST_ROWS) + 1
    place = _place(FIRST_ROWS)
    last = (0, math.nan)
    slope = -math.log(10) / 1800  # errors of bounds fall with the root of the number of rows
    step = 0
    while enough - few > 1:
        value = gap(_rows(place))
        few, enough = (few, place) if value <= 0 else (place, enough)
        if step and place != last[0]:
            slope = min((value - last[1]) / (place - last[0]), slope / 4)
        last = (place, value)
        # the nearest places of a root are those beside the interval's ends
        root = math.floor(place - value / slope)
        place = min(max(root, few + 1), enough - 1)
        step += 1
        if step > MOST_STEPS:
            place = (few + enough) // 2
    return None if enough == end else _rows(enough)


def _rows(place: int) -> int:
    """Return the number of at most three significant digits at a place of their list."""
    if place < 1000:
        return place
    power, digits = divmod(place - 100, 900)
    return int((100 + digits) * 10**power)


def _place(rows: int) -> int:
    """Return the place of a power of ten, at least 1000, in the list of such numbers."""
    return 100 + 900 * (len(str(rows)) - 3)
