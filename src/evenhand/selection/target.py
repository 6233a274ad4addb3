"""Targets of a selection: what must be certified, or what may be paid for it."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import exp, log
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from evenhand._validate import InputError, as_number, bad_input, check_fraction, named
from evenhand.calibration import cvar
from evenhand.draws import nodes
from evenhand.forecast import Forecast
from evenhand.links import Link
from evenhand.scoring import interval_width

DEFAULT_ERROR = 0.25
"""Largest group error if neither an error nor a limit of the cost is given."""

MOST_WIDER = 2.0
"""Largest admissible limit of the width: three times the width without a draw."""

GOALS = ("goal", "max_wider", "max_price")
"""What a selection keeps to; exactly one is given."""


def _checked(name: str, most: Any) -> float:
    """Return a limit as a float if it lies in its range."""
    if name == "goal":
        error = check_fraction(name, most)
        if error >= 0.5:
            rule = "be below 0.5, the largest possible error"
            raise bad_input(name, rule, error, "use 0.25 to begin with")
        return error
    # True is a number in Python, but never a limit
    limit = as_number(most)
    if name == "max_wider" and not 0 < limit <= MOST_WIDER:
        rule = f"be above 0 and at most {MOST_WIDER:g}"
        raise bad_input(name, rule, repr(most), "use 0.1 for intervals 10% wider")
    if not 0 < limit < math.inf:
        raise bad_input(name, "be a number above 0", repr(most), "use 0.3 nats")
    return limit


@dataclass(frozen=True)
class Target:
    """What a selection keeps to, for groups of which size, at which confidence.

    Parameters
    ----------
    goal : float, optional
        Largest group error to certify, above 0 and below 1/2: the least randomization is chosen.
        0.25 if neither of the other two is given.
    max_wider : float, optional
        Instead: largest relative increase of the mean width of 80% prediction intervals, above 0
        and at most 2, at which as much as possible is certified.
    max_price : float, optional
        Instead: largest loss of log score, in nats, above 0.
    group_mass : float, default 0.2
        Smallest group size, as a share of the people.
    confidence : float, default 0.95
        Confidence level of the certificate.

    Examples
    --------
    >>> target = Target(max_wider=0.1)
    >>> target.given, target.most
    ('max_wider', 0.1)
    """

    goal: float | None = None
    max_wider: float | None = None
    max_price: float | None = None
    group_mass: float = 0.2
    confidence: float = 0.95

    def __post_init__(self) -> None:
        given = {name: getattr(self, name) for name in GOALS if getattr(self, name) is not None}
        if len(given) > 1:
            names = " and ".join(f"{named(name)}={most!r}" for name, most in given.items())
            raise InputError(f"{names} are given together; give one of them")
        for name, most in (given or {"goal": DEFAULT_ERROR}).items():
            object.__setattr__(self, name, _checked(name, most))
        mass = check_fraction("group_mass", self.group_mass, high_open=False)
        object.__setattr__(self, "group_mass", mass)
        object.__setattr__(self, "confidence", check_fraction("confidence", self.confidence))

    @property
    def given(self) -> str:
        """Name of the limit that is given."""
        return next(name for name in GOALS if getattr(self, name) is not None)

    @property
    def most(self) -> float:
        """The limit."""
        return float(getattr(self, self.given))


# --- the largest alpha of a family of links whose bound meets a target

LEAST_ALPHA = 0.005
"""Smallest alpha of the search. There a calibrated base pays a price of 3.6 nats."""

SEARCH_SLACK = 2e-3
"""Tolerance of the search below the largest admissible alpha, on the logit scale."""

MOST_STEPS = 50
"""Maximum number of search steps. Three or four are usual; bisection alone needs fewer than 50."""

CALIBRATED_SLOPE = 1.35
# divide the bound by the bound without randomization. Around a calibrated forecaster the logit of
# this ratio rises 1.1 to 1.7 times as fast as the logit of alpha, and the logit of alpha is -3.2
# to -1.5 where the ratio is one half (300 to 100,000 people, masses 0.1 to 1, all links).
CALIBRATED_PLACE = -2.1
"""Slope and location of the first guess; the result of the search does not depend on them."""


def largest_alpha(
    bound_at: Callable[[float], float], most: float, worst: float | None = None
) -> float | None:
    """Return the largest alpha whose bound is at most a target; None if none is.

    `bound_at` is the bound as a function of alpha; it increases but for rounding. `worst` is its
    largest value; the bound without randomization by default.
    """
    plain = bound_at(1.0)
    if plain <= most:
        return 1.0
    alpha = _search_alpha(bound_at, most, plain if worst is None else worst)
    return alpha if bound_at(alpha) <= most else None


def _search_alpha(bound_at: Callable[[float], float], target: float, most: float) -> float:
    """Return the alpha whose bound lies just below a target, or the smallest alpha if none does.

    The bound increases with alpha; `most` is that without randomization, above the target.
    """

    # the logit of the bound is nearly linear in the logit of alpha: secant steps converge fast
    def logit(bound: float) -> float:
        return float(np.log(bound / max(most - bound, 1e-9)))

    least = np.log(LEAST_ALPHA / (1 - LEAST_ALPHA))
    # the smallest alpha lies inside, so that one evaluation there ends a search in vain
    low = least - SEARCH_SLACK / 2
    high = 12.0
    slope = CALIBRATED_SLOPE
    goal = logit(target)
    place = float(np.clip(goal / slope + CALIBRATED_PLACE, least, high))
    last = (np.nan, np.nan)
    for _ in range(MOST_STEPS):
        alpha = float(expit(place))
        gap = logit(bound_at(alpha)) - goal
        if np.isfinite(last[1]) and place != last[0]:
            slope = max((gap - last[1]) / (place - last[0]), 0.01)
        if -SEARCH_SLACK <= gap / slope < 0:
            return alpha
        low, high = (place, high) if gap < 0 else (low, place)
        last = (place, gap)
        place = max(place - gap / slope - SEARCH_SLACK / 2, least)
        if not low < place < high:
            place = (low + high) / 2
        if high - low < SEARCH_SLACK:
            break
    return max(float(expit(low)), LEAST_ALPHA)


# --- number of rows with which a guarantee can be certified

NUMBERS: tuple[int, ...] = (
    *range(1, 1000),
    *(digits * 10**power for power in range(1, 5) for digits in range(100, 1000)),
    10_000_000,
)
"""Numbers of at most three digits, other than 0, up to the largest number of rows of a plan."""


def fewest_rows(
    is_enough: Callable[[int], bool], above: int = 0, most: int = NUMBERS[-1]
) -> int | None:
    """Return the fewest rows, to three digits, that are enough; None if `most` are too few."""
    numbers = [n for n in NUMBERS if above < n <= most]
    place = bisect_left(numbers, True, key=is_enough)
    return numbers[place] if place < len(numbers) else None


# --- links over a calibrated base: width and coverage

LEVEL = 0.8
"""Nominal level of the prediction intervals whose width and coverage are given."""

DRAWS = 1024
"""Draws over which widths and coverages are averaged."""

PEOPLE = 2000
"""People with evenly spread PITs, over whom coverage is computed."""

TOLERANCE = 1e-4
"""Relative tolerance of the alpha whose cost reaches a limit."""


def mean_width(forecast: Forecast, level: float = LEVEL) -> float:
    """Return the mean width of central prediction intervals, in units of y."""
    return float(interval_width(forecast, level).mean())


@lru_cache(maxsize=256)
def right_wider(link: Link) -> float:
    """Return the relative increase of the width of 80% intervals over a calibrated, normal base."""
    right = Forecast.from_normal([0.0], [1.0])
    return mean_width(right.randomized(link.alpha, link, nodes(DRAWS))) / mean_width(right) - 1


def right_coverage(link: Link, mass: float) -> tuple[float, float]:
    """Return the range of the coverage of 80% intervals in a group over a calibrated base."""
    u = nodes(PEOPLE).T
    r = nodes(DRAWS)
    inside = (u >= link.cdf((1 - LEVEL) / 2, r)) & (u <= link.cdf((1 + LEVEL) / 2, r))
    hits = inside.mean(axis=-1)
    # the people with the smallest and with the largest shares of hits
    return 1 - cvar(1 - hits, mass), cvar(hits, mass)


def least_alpha(cost: Callable[[float], float], most: float) -> float:
    """Return the smallest alpha, from `LEAST_ALPHA` on, whose cost is at most `most`, above 0.

    The cost is a continuous function of alpha, 0 at 1, and in general decreasing.
    """
    if cost(LEAST_ALPHA) <= most:
        return LEAST_ALPHA
    root = brentq(lambda place: cost(exp(place)) - most, log(LEAST_ALPHA), 0.0, xtol=TOLERANCE)
    alpha = min(exp(root), 1.0)
    # the root lies on either side of the limit
    while cost(alpha) > most:
        alpha = min(alpha * (1 + TOLERANCE), 1.0)
    return alpha
