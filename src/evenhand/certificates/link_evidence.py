"""Evidence of a certificate of links: bands for a base's PITs (method: sharp certificate)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator
from scipy.special import expit

from evenhand._format import one_line
from evenhand._validate import Floats, check_choice, check_count, check_fraction
from evenhand.calibration import CDFBand, CDFBands, SurvivalBand, local_levels, local_levels_band
from evenhand.certificates.certificate import WORST
from evenhand.certificates.event_certificate import Sample
from evenhand.certificates.promise import Envelope
from evenhand.links import Link, check_link

Bound = Literal["sharp", "pathwise"]


@dataclass(frozen=True, eq=False, repr=False)
class LinkEvidence(ABC):
    """Bands for a base's PITs, which bound the errors of every group under every link.

    Parameters
    ----------
    distances : SurvivalBand
        Upper band for `P(|U - 1/2| > t)`, `U` the PIT.
    nearness : CDFBand
        Upper band for `P(|U - 1/2| <= t)`.
    """

    distances: SurvivalBand
    nearness: CDFBand

    bound: ClassVar[Bound]

    def __repr__(self) -> str:
        return one_line(self, bound=self.bound, distances=self.distances)

    @classmethod
    @abstractmethod
    def of(cls, sample: Sample, confidence: float) -> Self:
        """Make the bands from PITs."""

    @classmethod
    @abstractmethod
    def of_calibrated(cls, n: int, confidence: float) -> Self:
        """Make the bands of `n` people with evenly spread PITs, `(i - 1/2) / n`."""

    @abstractmethod
    def group_error(self, link: Link, mass: float) -> float:
        """Return the bound for the W1 error of every group of at least this share."""

    def envelope(self, mass: float) -> Envelope | None:
        """Return bounds of both tails of the PIT, for groups of a size; None without such bands."""
        return None

    def searched(self, family: type[Link], mass: float) -> Callable[[float], float]:
        """Return the bound as a function of alpha for a search; it may be approximate."""
        return lambda alpha: self.group_error(family(alpha), mass)

    def worst_mean(self, values: Floats, mass: float, top: float) -> float:
        """Bound the mean of the worst `mass` of a quantity at the steps of the distances.

        The quantity increases with the distance and is at most `top`.
        """
        # monotone: moving the steps of the band from distances to values bounds the quantity
        steps = np.append(0.0, np.minimum(values, top))
        return SurvivalBand(steps, np.append(1.0, self.distances.upper), top).cvar(mass)

    def best_mean(self, values: Floats, mass: float) -> float:
        """Bound the mean of the best `mass` of a quantity at the steps of the nearness.

        The quantity decreases with the distance from 1/2.
        """
        shares = np.diff(np.minimum(self.nearness.upper, mass), prepend=0.0)
        return float(shares @ values) / mass


# --- one band: mean pathwise errors of the worst people (method: proof)

KNOTS = 30
"""Half of the number of distances at which a link's error is computed during the search."""


@dataclass(frozen=True, eq=False, repr=False)
class PathwiseEvidence(LinkEvidence):
    """One band for `|U - 1/2|`: a group's error is at most the mean pathwise error of its people.

    A person's pathwise error under a link increases with the distance of the PIT from 1/2.
    """

    bound = "pathwise"

    @classmethod
    def _around(cls, distances: SurvivalBand) -> Self:
        # nothing is known of how many people are near 1/2
        return cls(distances, CDFBand(np.zeros(1), np.ones(1)))

    @classmethod
    def of(cls, sample: Sample, confidence: float) -> Self:
        # rounded away from 1/2, so that no distance is understated
        distances = np.maximum(np.abs(sample.low - 0.5), np.abs(sample.high - 0.5))
        return cls._around(local_levels_band(distances, WORST, confidence, sample.counts))

    @classmethod
    def of_calibrated(cls, n: int, confidence: float) -> Self:
        ranks, bounds = local_levels(n, confidence)
        # distances come in pairs, the largest ones from the smallest and the largest PIT
        distances = 0.5 - ((ranks + 1) // 2 - 0.5) / n
        starts = np.append(distances, 0.0)[::-1]
        return cls._around(SurvivalBand(starts, np.append(bounds, 1.0)[::-1], WORST))

    def group_error(self, link: Link, mass: float) -> float:
        return self.worst_mean(_errors(link, self.distances), mass, WORST)

    def searched(self, family: type[Link], mass: float) -> Callable[[float], float]:
        # steps at which the band is at least `mass` all have full weight, so their widths
        # telescope: the bound depends only on the errors at the remaining steps
        needed = self.distances.starts[self.distances.upper < mass]
        inner = np.zeros(self.distances.starts.size - needed.size)

        def bound_at(alpha: float) -> float:
            errors = approximate_errors(family(alpha), needed)
            return self.worst_mean(np.append(inner, errors), mass, WORST)

        return bound_at


@lru_cache(maxsize=4)
def _errors(link: Link, distances: SurvivalBand) -> Floats:
    return link.pathwise_error(0.5 + distances.starts)


def approximate_errors(link: Link, distances: Floats) -> Floats:
    """Interpolate pathwise errors at distances of PITs from 1/2.

    The interpolation error is at most about 0.002, and 0.0001 on average.

    Parameters
    ----------
    link : Link
        The link.
    distances : ndarray of shape (n,)
        `|U - 1/2|`, 0 to 1/2.
    """
    left = 1 - (0.5 + distances)
    # the end of the unit interval is computed separately: its logarithm is infinite
    errors = np.full(distances.shape, float(link.pathwise_error(1.0)))
    is_inside = left > 0
    # errors are smooth in the logarithm of the distance from the end of the unit interval
    place = np.log(left[is_inside])
    knots = np.unique(place)
    if knots.size < 3:
        return link.pathwise_error(0.5 + distances)
    if knots.size > 2 * KNOTS:
        # half of the knots are equally spaced in that logarithm, half in rank
        ranks = np.linspace(0, knots.size - 1, KNOTS).astype(np.intp)
        knots = np.union1d(np.linspace(knots[0], knots[-1], KNOTS), knots[ranks])
    # the error at 1 - u equals that at u, and floats near 0 keep digits that those near 1 lose
    at_knots = link.pathwise_error(np.minimum(np.exp(knots), 0.5))
    errors[is_inside] = PchipInterpolator(knots, at_knots)(place)
    return errors


# --- two bands: sign changes of the CDF of a group (method: sharp certificate)
#
# With `mu` the mean served PIT of a link and `F_S` the CDF of the base's PIT in a group, the
# group's error is at most `integral |F_S(u) - u| dmu(u)`. The bound is the largest such integral
# over all CDFs `W` that a group of the given mass can have inside the bands, found by the places
# where `W - u` changes its sign: `W(v) = v` there, which limits `W` on both sides.

CELLS = 256
"""Number of cells of [0, 1] in which sign changes are located."""

# multiples of 2^-53: their distances from 1 are floats, too
_LOWER = 1 - (1 - np.append(np.geomspace(2.0**-53, 0.5, 1000), np.linspace(0.0, 0.5, 1001)))
PLACES = np.unique(np.append(_LOWER, 1 - _LOWER))
"""Possible edges of cells, symmetric and closer to each other near 0 and 1, where `mu` is steep."""


@dataclass(frozen=True)
class Contraction:
    """Bands for the CDF of a base's PIT, measured by the mean served PIT of a link.

    Parameters
    ----------
    cells : Cells
        Cells of [0, 1].
    above, below : Heights
        Bands for the PIT `U`, and for `1 - U`.
    remainder : float
        Error of the link itself over a calibrated base, which is added.
    """

    cells: Cells
    above: Heights
    below: Heights
    remainder: float

    @classmethod
    def of(cls, link: Link, bands: CDFBands) -> Self:
        """Measure the bands by a link."""
        cells = Cells.of(link)
        above = Heights.of(cells, bands.upper, bands.mirrored, link)
        # evenly spread PITs have one band for both sides
        is_even = bands.mirrored is bands.upper
        below = above if is_even else Heights.of(cells, bands.mirrored, bands.upper, link)
        return cls(cells, above, below, link.calibration_error)

    def bound(self, mass: float) -> float:
        """Return an upper bound for the W1 error of every group of at least this share."""
        above = _stretches(self.cells, self.above, mass)
        is_even = self.below is self.above
        mirrored = above if is_even else _stretches(self.cells, self.below, mass)
        # below the diagonal the mirrored CDF lies above it; the cells are symmetric
        below = mirrored[::-1, ::-1].T
        return _longest_path(np.maximum(above, below), self.cells) + self.remainder


@dataclass(frozen=True)
class Cells:
    """Cells of [0, 1], symmetric about 1/2, and integrals over them.

    Parameters
    ----------
    edges : ndarray of shape (k + 1,)
        Edges, from 0 to 1.
    mu : ndarray of shape (k + 1,)
        Mean served PIT at the edges.
    moment : ndarray of shape (k + 1,)
        `integral u dmu(u)` from 0 to each edge.
    """

    edges: Floats
    mu: Floats
    moment: Floats

    @classmethod
    def of(cls, link: Link) -> Self:
        # cells are short in u and in mu: heights are limited by u, widths are measured by mu
        place = (link.mean_pit(PLACES) + PLACES) / 2
        edges = PLACES[np.searchsorted(place, np.arange(1, CELLS // 2) / CELLS)]
        edges = np.unique(np.concatenate(([0.0], edges, [0.5], 1 - edges, [1.0])))
        mu = link.mean_pit(edges)
        return cls(edges, mu, edges * mu - link.mean_pit_integral(edges))


@dataclass(frozen=True)
class Heights:
    """Bands at the cells: mean (in `mu`) and top of the upper band, lower band at the edges."""

    mean: Floats
    top: Floats
    low: Floats

    @classmethod
    def of(cls, cells: Cells, upper: CDFBand, mirrored: CDFBand, link: Link) -> Self:
        steps = np.union1d(upper.starts, cells.edges)
        area = np.cumsum(upper.at(steps[:-1]) * np.diff(link.mean_pit(steps)))
        at_edges = np.append(0.0, area)[np.searchsorted(steps, cells.edges)]
        width = np.diff(cells.mu)
        top = upper.at(cells.edges[1:])
        mean = np.divide(np.diff(at_edges), width, out=top.copy(), where=width > 0)
        return cls(np.minimum(mean, top), top, 1 - mirrored.at(1 - cells.edges))


def _stretches(cells: Cells, heights: Heights, mass: float) -> Floats:
    """Return bounds for `integral (W - u) dmu` between two sign changes with `W >= u` between them.

    Rows and columns are the places of the first and the second change: the point 0, each cell, the
    point 1. A change may lie anywhere in its cell. Entries on and below the diagonal mean nothing.
    """
    edges, mu = cells.edges, cells.mu
    k = edges.size - 1
    left = np.concatenate(([0.0], edges[:-1], [1.0]))
    right = np.concatenate(([0.0], edges[1:], [1.0]))
    low = np.concatenate(([0.0], heights.low))
    # full cells lie from edge `first` of the start to edge `last` of the end
    first = np.concatenate(([0], np.arange(1, k + 1), [k]))
    last = np.concatenate(([0], np.arange(k), [k]))

    def cap(height: Floats, place: Floats, before: Floats) -> Floats:
        # mass of the group after the change is at most 1/mass times that of all people
        since = place + (height - before) / mass
        return np.minimum(np.minimum(height / mass, 1.0), since)

    # the cap is concave in the band: on a full cell its mean is at most the cap of the mean band
    caps = cap(heights.mean, right[:, None], low[:, None])
    sums = np.zeros((k + 2, k + 1))
    np.cumsum(caps * np.diff(mu), axis=1, out=sums[:, 1:])
    # before the second change W is at most the place of that change
    reach = np.array([np.searchsorted(row, right) for row in caps])
    reach = np.clip(reach, first[:, None], np.maximum(last, first[:, None]))
    start = np.arange(k + 2)[:, None]
    total = sums[start, reach] - sums[start, first[:, None]]
    total += right * (mu[last] - mu[reach])
    total -= cells.moment[last] - cells.moment[first][:, None]
    # parts of the two end cells: largest height over the whole cell
    width = np.concatenate(([0.0], np.diff(mu), [0.0]))
    tops = cap(heights.top, right[1:-1], low[1:-1])
    highest = np.minimum(right, np.concatenate(([0.0], tops, [0.0]))[:, None])
    total += width[:, None] * np.maximum(highest - left[:, None], 0.0)
    return np.asarray(total + width * (right - left))


def _longest_path(stretches: Floats, cells: Cells) -> float:
    """Return the largest sum of stretches from 0 to 1."""
    # all changes within one cell: W and u lie between the first and the last of them
    inside = np.concatenate(([0.0], np.diff(cells.mu) * np.diff(cells.edges), [0.0]))
    best = np.zeros(inside.size)
    for node in range(1, inside.size):
        best[node] = (best[:node] + stretches[:node, node]).max() + inside[node]
    return float(best[-1])


# --- two bands: probability level by level (method: sharp certificate)
#
# The CDF of a group's served PITs at `c` is `integral F_S(K(c; r)) dr`, and the CDF `F_S` of the
# base's PIT in a group of the given mass lies between limits that follow from the bands.

DRAWS = 512
"""Number of cells of draws; each is represented by the end that makes the bound larger."""

LEVELS = 4096
"""Number of cells of probability levels."""


def pointwise_bound(link: Link, bands: CDFBands, mass: float) -> float:
    """Return an upper bound for the W1 error of every group of at least this share of people.

    Parameters
    ----------
    link : Link
        The link around the base.
    bands : CDFBands
        Bands for the CDF of the base's PIT.
    mass : float
        Smallest share of people in a group, 0 < mass <= 1.
    """
    high = _served_cdf(link, bands.upper, mass)
    # evenly spread PITs have one band for both sides
    is_even = bands.mirrored is bands.upper
    mirrored = high if is_even else _served_cdf(link, bands.mirrored, mass)
    low = 1 - mirrored[::-1]
    # |CDF - c| is at most the larger of high - c and c - low, which are equal at the middle
    edges = np.linspace(0.0, 1.0, LEVELS + 1)
    middle = np.clip((high + low) / 2, edges[:-1], edges[1:])
    before = middle - edges[:-1]
    after = edges[1:] - middle
    area = before * (high - (edges[:-1] + middle) / 2) + after * ((edges[1:] + middle) / 2 - low)
    return float(area.sum())


def _served_cdf(link: Link, band: CDFBand, mass: float) -> Floats:
    """Bound the CDF of the served PITs of a group from above, on equal cells of levels."""
    limit = np.minimum(band.upper / mass, 1.0)
    jumps = np.diff(limit, prepend=0.0)
    # the band increases: only its first steps, below the mass, and the next one matter
    n_steps = int(np.flatnonzero(jumps)[-1]) + 1
    cell = _cells(link, band).first(n_steps)
    weights = np.broadcast_to(jumps[:n_steps, None] / DRAWS, cell.shape)
    share = np.bincount(cell.ravel(), weights.ravel(), minlength=LEVELS)
    return np.asarray(np.minimum(np.cumsum(share), 1.0))


class _Cells:
    """Cells of levels that contain the served PITs at the steps of a band, for any mass.

    Smaller masses need fewer steps, so steps are computed when a mass needs them first.
    """

    def __init__(self, link: Link, starts: Floats) -> None:
        self._link = link
        self._starts = starts
        self._known: NDArray[np.uint16] = np.empty((0, DRAWS), dtype=np.uint16)

    def first(self, n_steps: int) -> NDArray[np.uint16]:
        """Return the cells at the first steps, shape (n_steps, DRAWS)."""
        n_known = self._known.shape[0]
        if n_steps > n_known:
            # H increases with the draw: at the lower end of its cell it is smallest, and the CDF
            # is largest
            r = np.maximum(np.arange(DRAWS) / DRAWS, 2.0**-60)
            served = _served(self._link, self._starts[n_known:n_steps, None], r)
            more = np.minimum((served * LEVELS).astype(np.uint16), LEVELS - 1)
            self._known = np.concatenate((self._known, more), dtype=np.uint16)
        return self._known[:n_steps]


# one table serves all masses of an audit
@lru_cache(maxsize=4)
def _cells(link: Link, band: CDFBand) -> _Cells:
    return _Cells(link, band.starts)


def _served(link: Link, u: Floats, r: Floats) -> Floats:
    """Return `H(u; r)`, faster than `Link.ppf`, which keeps the digits of small values."""
    if link.alpha == 1:
        return np.broadcast_to(u, (u.size, r.size))
    upper = u > 0.5
    with np.errstate(divide="ignore"):
        log_u = np.log(np.where(upper, 1 - u, u))
    return link.ppf_lower(log_u, np.where(upper, 1 - r, r), upper)


# --- two bands: the smaller of both bounds


@dataclass(frozen=True, eq=False, repr=False)
class SharpEvidence(LinkEvidence):
    """Two one-sided bands for the CDF of the PIT, on which all bounds hold jointly.

    Of two bounds for a group's error that hold on the same event the smaller one is taken.

    Parameters
    ----------
    bands : CDFBands
        The bands.
    """

    bands: CDFBands

    bound = "sharp"

    @classmethod
    def _around(cls, bands: CDFBands) -> Self:
        return cls(bands.distance_band(), bands.nearness_band(), bands)

    @classmethod
    def of(cls, sample: Sample, confidence: float) -> Self:
        return cls._around(CDFBands.of(sample.low, sample.high, confidence, sample.counts))

    @classmethod
    def of_calibrated(cls, n: int, confidence: float) -> Self:
        return cls._around(CDFBands.of_uniform(n, confidence))

    def group_error(self, link: Link, mass: float) -> float:
        return _group_error(link, self.bands, mass)

    def envelope(self, mass: float) -> Envelope | None:
        return Envelope.of(self.bands, mass)


# a search evaluates its result once more, and an audit reads the same masses several times
@lru_cache(maxsize=64)
def _group_error(link: Link, bands: CDFBands, mass: float) -> float:
    contraction = _contraction(link, bands).bound(mass)
    return min(contraction, pointwise_bound(link, bands, mass), WORST)


@lru_cache(maxsize=4)
def _contraction(link: Link, bands: CDFBands) -> Contraction:
    return Contraction.of(link, bands)


# --- the largest alpha of a family of links whose bound meets a target

LEAST_ALPHA = 0.005
"""Smallest alpha of the search. There a calibrated base pays a price of 3.6 nats."""

SEARCH_SLACK = 2e-3
"""Tolerance of the search below the largest admissible alpha, on the logit scale."""

MOST_STEPS = 50
"""Maximum number of search steps. Three or four are usual; bisection alone needs fewer than 50."""

CALIBRATED_SLOPE = 1.35
CALIBRATED_PLACE = -2.1
"""Slope and location of the first guess; the result of the search does not depend on them.

Divide the bound by the bound without randomization. Around a calibrated forecaster the logit of
this ratio rises 1.1 to 1.7 times as fast as the logit of alpha, and the logit of alpha is -3.2 to
-1.5 where the ratio is one half (300 to 100,000 people, masses 0.1 to 1, all links).
"""


def largest_alpha(
    evidence: LinkEvidence, link: Link, max_group_error: float, mass: float
) -> float | None:
    """Return the largest alpha of a link's family that meets a target; None if none does.

    Parameters
    ----------
    evidence : LinkEvidence
        Bands for the PITs of the base.
    link : Link
        A member of the family.
    max_group_error : float
        Largest admissible W1 error of a group.
    mass : float
        Smallest share of people in a group.
    """
    family = type(link)

    def bound_at(alpha: float) -> float:
        return evidence.group_error(family(alpha), mass)

    most = bound_at(1.0)
    if most <= max_group_error:
        return 1.0
    alpha = search_alpha(evidence.searched(family, mass), max_group_error, most)
    step = SEARCH_SLACK
    # the search may have used approximate errors: the bound itself decides
    while bound_at(alpha) > max_group_error:
        if alpha <= LEAST_ALPHA:
            return None
        alpha = max(alpha * (1 - step), LEAST_ALPHA)
        step = min(2 * step, 0.5)
    return alpha


def search_alpha(bound_at: Callable[[float], float], target: float, most: float) -> float:
    """Return the alpha whose bound lies just below a target, or the smallest alpha if none does.

    Parameters
    ----------
    bound_at : callable
        Bound as a function of alpha; increasing.
    target : float
        Largest admissible bound.
    most : float
        Bound without randomization, above the target.
    """

    # the logit of the bound is nearly linear in the logit of alpha: secant steps converge fast
    def logit(bound: float) -> float:
        return float(np.log(bound / max(most - bound, 1e-9)))

    least = float(np.log(LEAST_ALPHA / (1 - LEAST_ALPHA)))
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
        if -SEARCH_SLACK <= gap / slope <= 0:
            return alpha
        low, high = (place, high) if gap < 0 else (low, place)
        last = (place, gap)
        place = max(place - gap / slope - SEARCH_SLACK / 2, least)
        if not low < place < high:
            place = (low + high) / 2
        if high - low < SEARCH_SLACK:
            break
    return max(float(expit(low)), LEAST_ALPHA)


def enough_rows(is_enough: Callable[[int], bool], n: int, most: int) -> int | None:
    """Return the smallest sufficient number of rows above `n`, to 5%; None if `most` is too few."""
    few = n
    enough = min(4 * n, most)
    while not is_enough(enough):
        if enough == most:
            return None
        few = enough
        enough = min(4 * enough, most)
    while enough - few > max(1, few // 20):
        middle = (few + enough) // 2
        few, enough = (few, middle) if is_enough(middle) else (middle, enough)
    return enough


# --- choice between the bounds by a rule that sees no data

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
