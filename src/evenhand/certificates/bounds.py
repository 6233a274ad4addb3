"""Bounds for every group under a link: profiles in one order, lattices, norms (method: 11, 12)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np

from evenhand._format import OneLine
from evenhand._validate import Floats
from evenhand.calibration import CDFBand, CDFBands, Cells, SurvivalBand
from evenhand.certificates.parts import WORST, Values, check_proven, norm
from evenhand.draws import jittered, nodes
from evenhand.links import Link
from evenhand.tables import row_blocks

# --- two bands: sign changes of the CDF of a group (method: sharp certificate)
#
# With `mu` the mean served PIT of a link and `F_S` the CDF of the base's PIT in a group, the
# group's error is at most `integral |F_S(u) - u| dmu(u)`. The bound is the largest such integral
# over all CDFs `W` that a group of the given mass can have inside the bands, found by the places
# where `W - u` changes its sign: `W(v) = v` there, which limits `W` on both sides.

N_STRIPS = 256
"""Number of strips of [0, 1] in which sign changes are located."""

# multiples of 2^-53: their distances from 1 are floats, too
_LOWER = 1 - (1 - np.append(np.geomspace(2.0**-53, 0.5, 1000), np.linspace(0.0, 0.5, 1001)))
PLACES = np.unique(np.append(_LOWER, 1 - _LOWER))
"""Possible edges of strips, symmetric, and closer to each other near 0 and 1 as `mu` is steep."""


def contraction_bound(link: Link, bands: CDFBands, mass: float) -> float:
    """Return an upper bound for the W1 error of every group of at least this share of people.

    It is that of `|F_S - u|`, measured by the mean served PIT, and the error of the link itself
    over a calibrated base.
    """
    strips = Strips.of(link)
    above, mirrored = (
        _stretches(strips, Heights.of(strips, *both, link), mass)
        for both in ((bands.upper, bands.mirrored), (bands.mirrored, bands.upper))
    )
    # below the diagonal the mirrored CDF lies above it; the strips are symmetric
    return _longest_path(np.maximum(above, mirrored[::-1, ::-1].T), strips) + link.calibration_error


@dataclass(frozen=True)
class Strips:
    """Strips of [0, 1], symmetric about 1/2, and integrals over them.

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
        """Divide [0, 1] for a link."""
        # strips are short in u and in mu: heights are limited by u, widths are measured by mu
        place = (link.mean_pit(PLACES) + PLACES) / 2
        edges = PLACES[np.searchsorted(place, np.arange(1, N_STRIPS // 2) / N_STRIPS)]
        edges = np.unique(np.concatenate(([0.0], edges, [0.5], 1 - edges, [1.0])))
        mu = link.mean_pit(edges)
        return cls(edges, mu, edges * mu - link.mean_pit_integral(edges))


@dataclass(frozen=True)
class Heights:
    """Bands at the strips: mean (in `mu`) and top of the upper band, lower band at the edges."""

    mean: Floats
    top: Floats
    low: Floats

    @classmethod
    def of(cls, strips: Strips, upper: CDFBand, mirrored: CDFBand, link: Link) -> Self:
        """Measure the bands by a link."""
        steps = np.union1d(upper.starts, strips.edges)
        area = np.cumsum(upper.at(steps[:-1]) * np.diff(link.mean_pit(steps)))
        at_edges = np.append(0.0, area)[np.searchsorted(steps, strips.edges)]
        width = np.diff(strips.mu)
        top = upper.at(strips.edges[1:])
        mean = np.divide(np.diff(at_edges), width, out=top.copy(), where=width > 0)
        return cls(np.minimum(mean, top), top, 1 - mirrored.at(1 - strips.edges))


def _stretches(strips: Strips, heights: Heights, mass: float) -> Floats:
    """Return bounds for `integral (W - u) dmu` between two sign changes with `W >= u` between them.

    Rows and columns are the places of the first and the second change: the point 0, each
    strip, the point 1. A change may lie anywhere in its strip. Entries on and below the diagonal
    mean nothing.
    """
    edges, mu = strips.edges, strips.mu
    k = edges.size - 1
    left = np.concatenate(([0.0], edges[:-1], [1.0]))
    right = np.concatenate(([0.0], edges[1:], [1.0]))
    low = np.concatenate(([0.0], heights.low))
    # full strips lie from edge `first` of the start to edge `last` of the end
    first = np.concatenate(([0], np.arange(1, k + 1), [k]))
    last = np.concatenate(([0], np.arange(k), [k]))

    def cap(height: Floats, place: Floats, before: Floats) -> Floats:
        # mass of the group after the change is at most 1/mass times that of all people
        return np.minimum(np.minimum(height / mass, 1.0), place + (height - before) / mass)

    # the cap is concave in the band: on a full strip its mean is at most the cap of the mean band
    caps = cap(heights.mean, right[:, None], low[:, None])
    sums = np.zeros((k + 2, k + 1))
    np.cumsum(caps * np.diff(mu), axis=1, out=sums[:, 1:])
    # before the second change W is at most the place of that change
    reach = np.array([np.searchsorted(row, right) for row in caps])
    reach = np.clip(reach, first[:, None], np.maximum(last, first[:, None]))
    start = np.arange(k + 2)[:, None]
    total = sums[start, reach] - sums[start, first[:, None]]
    total += right * (mu[last] - mu[reach])
    total -= strips.moment[last] - strips.moment[first][:, None]
    # parts of the two end strips: largest height over the whole strip
    width = np.concatenate(([0.0], np.diff(mu), [0.0]))
    tops = cap(heights.top, right[1:-1], low[1:-1])
    highest = np.minimum(right, np.concatenate(([0.0], tops, [0.0]))[:, None])
    total += width[:, None] * np.maximum(highest - left[:, None], 0.0)
    return total + width * (right - left)


def _longest_path(stretches: Floats, strips: Strips) -> float:
    """Return the largest sum of stretches from 0 to 1."""
    # all changes within one strip: W and u lie between the first and the last of them
    inside = np.concatenate(([0.0], np.diff(strips.mu) * np.diff(strips.edges), [0.0]))
    best = np.zeros(inside.size)
    for node in range(1, inside.size):
        best[node] = (best[:node] + stretches[:node, node]).max() + inside[node]
    return float(best[-1])


# --- two bands: probability level by level (method: sharp certificate)
#
# The CDF of a group's served PITs at `c` is `integral F_S(K(c; r)) dr`, and the CDF `F_S` of the
# base's PIT in a group of the given mass lies between limits that follow from the bands.

DRAW_CELLS = 512
"""Number of cells of draws; each is represented by the end that makes the bound larger."""

LEVELS = 4096
"""Number of cells of probability levels."""

BAND_STEPS = 64  # served at once


def pointwise_bound(link: Link, bands: CDFBands, mass: float) -> float:
    """Return an upper bound for the W1 error of every group of at least this share of people."""
    high = _served_cdf(link, bands.upper, mass)
    low = 1 - _served_cdf(link, bands.mirrored, mass)[::-1]
    # |CDF - c| is at most the larger of high - c and c - low, which are equal at the middle
    edges = np.linspace(0.0, 1.0, LEVELS + 1)
    middle = np.clip((high + low) / 2, edges[:-1], edges[1:])
    before = middle - edges[:-1]
    after = edges[1:] - middle
    area = before * (high - (edges[:-1] + middle) / 2) + after * ((edges[1:] + middle) / 2 - low)
    return float(area.sum())


def _served_cdf(link: Link, band: CDFBand, mass: float) -> Floats:
    """Bound the CDF of the served PITs of a group from above, on equal cells of levels."""
    jumps = np.diff(np.minimum(band.upper / mass, 1.0), prepend=0.0)
    # the band increases: only its first steps, below the mass, and the next one matter
    n_steps = int(np.flatnonzero(jumps)[-1]) + 1
    blocks = [_served_cells(link, band, first) for first in range(0, n_steps, BAND_STEPS)]
    cell = np.concatenate(blocks)[:n_steps]
    weights = np.broadcast_to(jumps[:n_steps, None] / DRAW_CELLS, cell.shape)
    share = np.bincount(cell.ravel(), weights.ravel(), minlength=LEVELS)
    return np.minimum(np.cumsum(share), 1.0)


# groups of all sizes share the first cells, and evenly spread PITs have one band for both sides
@lru_cache(maxsize=128)
def _served_cells(link: Link, band: CDFBand, first: int) -> Any:
    """Return the cells of levels of served PITs at some steps of a band, for all cells of draws."""
    # H increases with the draw: at the lower end of its cell it is smallest, and the CDF is largest
    r = np.maximum(np.arange(DRAW_CELLS) / DRAW_CELLS, 2.0**-60)
    served = link.ppf(band.starts[first : first + BAND_STEPS, None], r)
    return np.minimum((served * LEVELS).astype(np.uint16), LEVELS - 1)


# --- both bounds and the norm, on one event


ORDERED_SHARE = 0.9
"""Share of the risk of the ordered bounds where positions may be unknown; the norm has the rest."""

GRID_POINTS = 257
"""Number of distances, besides the steps of the bands, at which probabilities are computed."""


@dataclass(frozen=True, eq=False, repr=False)
class LinkBounds(OneLine):
    """Simultaneous bounds for every link around one deterministic forecaster.

    Two one-sided bands for the forecaster's PITs give the ordered bounds, under every link, at
    every alpha and in every group of every size at once. Where positions may be unknown a band for
    `|PIT - 1/2|` gives the norm as well, with a part of the risk that is fixed beforehand: people
    whose PIT is unknown are in both tails of the ordered bounds, and only once in the norm.

    Parameters
    ----------
    bands : CDFBands
        Bands for the CDFs of the PIT and of its mirror image.
    distances : SurvivalBand or None
        Upper band for `|PIT - 1/2|`; None where no position can be unknown.
    """

    bands: CDFBands
    distances: SurvivalBand | None = None

    @classmethod
    def of(cls, cells: Cells, confidence: float, *, may_be_unknown: bool) -> Self:
        """Make the bounds from cells before the draw of a link.

        Whether positions may be unknown must be known before the rows are seen.
        """
        check_proven("ordered", cells)
        low, high, count = cells.low[:, 0], cells.high[:, 0], cells.count
        if not may_be_unknown:
            return cls(CDFBands.of(low, high, confidence, count))
        risk = 1 - confidence
        distance = Values.known(np.maximum(np.abs(low - 0.5), np.abs(high - 0.5)), count)
        return cls(
            CDFBands.of(low, high, 1 - risk * ORDERED_SHARE, count),
            distance.band(WORST, 1 - risk * (1 - ORDERED_SHARE)),
        )

    def group_error(self, link: Link, mass: float) -> float:
        """Upper bound for the W1 error, 0 to 1/2, of every group of at least this share."""
        ordered = _ordered(link, self.bands, mass)
        if self.distances is None:
            return ordered
        errors = link.pathwise_error(0.5 + self.distances.starts)
        return min(ordered, _worst_mean(self.distances, errors, mass, WORST))

    def coverage(self, link: Link, level: float, mass: float) -> tuple[float, float]:
        """Bounds for the coverage of central intervals in every group of at least this share."""
        u, r = 0.5 + self._grid[:, None], nodes(DRAW_CELLS)
        near = (u < link.cdf((1 - level) / 2, r)).mean(axis=-1)
        far = (u > link.cdf((1 + level) / 2, r)).mean(axis=-1)
        # the largest share of hits from each distance on; between two grid points each probability
        # lies between its values there, and each average over cells is exact to half a cell
        hits = 1 - np.append(near[1:] + far[:-1], near[-1] + far[-1]) + 1 / DRAW_CELLS
        largest = np.maximum.accumulate(hits[::-1])[::-1]
        nearness = self._nearness
        covered = largest[np.searchsorted(self._grid, nearness.starts)]
        shares = np.diff(np.minimum(nearness.upper, mass), prepend=0.0)
        missed = self._least_worst(near, far, 1 / DRAW_CELLS, mass)
        return 1 - missed, min(float(shares @ covered) / mass, 1.0)

    def mpaic(self, link: Link, error: float) -> float:
        """Upper bound for `P(|h[X, R](Y) - R| >= error)`, for all thresholds at once."""
        # H(u; r) <= r - e where u <= K(r - e; r), H(u; r) >= r + e where u >= K(r + e; r). K(c; r)
        # increases in c and decreases in r, so its values at opposite ends of a cell of draws bound
        # it from above and from below. No draw lies within 2^-60 of an end
        ends = np.clip(np.linspace(0.0, 1.0, DRAW_CELLS + 1), 2.0**-60, 1 - 2.0**-53)
        left, right = ends[:-1], ends[1:]
        u = 0.5 + self._grid[:, None]
        below = link.cdf(np.maximum(right - error, 0.0), left)
        above = link.cdf(np.minimum(left + error, 1.0), right)
        near = ((u <= below) & (right >= error)).mean(axis=-1)
        return self._least_worst(near, ((u >= above) & (left + error <= 1)).mean(axis=-1), 0.0, 1.0)

    @cached_property
    def _all_distances(self) -> list[SurvivalBand]:
        found = [self.bands.distance_band()]
        return found if self.distances is None else [*found, self.distances]

    @cached_property
    def _nearness(self) -> CDFBand:
        return self.bands.nearness_band()

    @cached_property
    def _grid(self) -> Floats:
        """Distances at which probabilities over the draw are computed."""
        steps = [band.starts for band in self._all_distances]
        every = np.concatenate((*steps, self._nearness.starts, np.linspace(0, 0.5, GRID_POINTS)))
        return np.unique(every)

    def _least_worst(self, near: Floats, far: Floats, slack: float, mass: float) -> float:
        """Bound the mean of the worst `mass` of the sum of two probabilities over draws.

        The probability on the near side of the PIT decreases with the distance, the one on the far
        side increases. Links are symmetric, so PITs above 1/2 also represent those below.
        """
        # unlike the error, the sum is not monotone in the distance: the near side can decrease
        # before the far side increases. Its running maximum is monotone. Between two grid points
        # each probability lies between its values at these points
        sums = np.maximum.accumulate(np.append(near[0], near[:-1]) + far)
        return min(
            _worst_mean(band, sums[np.searchsorted(self._grid, band.starts)] + slack, mass, 1.0)
            for band in self._all_distances
        )


def _worst_mean(distances: SurvivalBand, values: Floats, mass: float, top: float) -> float:
    """Bound the mean of the worst `mass` of a quantity at the steps of the distances.

    The quantity increases with the distance and is at most `top`.
    """
    # monotone: moving the steps of the band from distances to values bounds the quantity
    steps = np.append(0.0, np.minimum(values, top))
    return SurvivalBand(steps, np.append(1.0, distances.upper), top).cvar(mass)


# a search evaluates its result once more, and an audit reads the same masses several times
@lru_cache(maxsize=64)
def _ordered(link: Link, bands: CDFBands, mass: float) -> float:
    found = contraction_bound(link, bands, mass), pointwise_bound(link, bands, mass)
    return min(*found, WORST)


# --- lattices: outcomes with atoms under a link (method: 12, Theorem L)

LATTICE_SHARE = 0.5
"""Share of the risk of Theorem L; the norm has the rest, as it is better for few levels."""

SHIFT_SHARE = 0.3
"""Part of this share that is spent on the distance between the two positions of a person."""

LATTICE_DRAWS = 64
"""Draws per person over which errors of lattices are averaged."""

BLOCK_ROWS = 20_000
"""Rows whose draws are evaluated at once."""


@dataclass(frozen=True, eq=False, repr=False)
class LatticeBounds:
    """Bounds for every group under one link, fixed beforehand, around cells of atoms.

    A served position lies uniformly in the served cell. If the base's position were uniform in the
    base's cell, and served through the link, profiles would be in one order: Theorem L adds the
    distance between both. The smaller of this and of the norm holds, at parts of the risk.

    Parameters
    ----------
    cells : Cells
        Cells before the draw, with a position in each.
    draws : ndarray of shape (n, m)
        Draws, one in each of m cells, which are the same for all links.
    places : ndarray of shape (n, m)
        Positions in the cells at these draws, one in each of m cells, in random order.
    seed : int
        Seed of the order of bets.
    """

    cells: Cells
    draws: Floats
    places: Floats
    seed: int

    @classmethod
    def of(cls, cells: Cells, random: np.random.Generator) -> Self:
        """Make the bounds with fresh draws."""
        n = cells.n_samples
        draws = jittered(n, LATTICE_DRAWS, random)
        places = random.permuted(jittered(n, LATTICE_DRAWS, random), axis=-1)
        return cls(cells, draws, places, int(random.integers(2**31)))

    def group_error(
        self, link: Link, mass: float, confidence: float, by_betting: bool = False, most: float = 0
    ) -> float:
        """Upper bound for the W1 error, 0 to 1/2, of every group of at least this share.

        With `by_betting` it holds for this mass alone, otherwise for all masses at once. A norm of
        at most `most` is enough: the other bound is not computed.
        """
        own = self.cells.before(link)
        check_proven("lattice", own)
        risk = (1 - confidence) * np.array([1 - LATTICE_SHARE, LATTICE_SHARE * SHIFT_SHARE])
        seed = self.seed if by_betting else None
        worst = self.errors(link).worst_mean(mass, WORST, 1 - risk[0], seed)
        if worst <= most:
            return worst
        shift = self.errors(link, of_places=True).worst_mean(mass, WORST, 1 - risk[1], seed)
        left = (1 - confidence) - float(risk.sum())
        ordered = LinkBounds.of(own.at_points(), 1 - left, may_be_unknown=False)
        return min(worst, ordered.group_error(link, mass) + shift, WORST)

    @lru_cache(maxsize=4)  # noqa: B019  (one object serves one selection)
    def errors(self, link: Link, *, of_places: bool = False) -> Values:
        """Return pathwise errors, or distances between the two positions of a person."""
        values = (
            self._shifts if of_places else lambda link, rows: norm(self.served(link, rows)).high
        )
        blocks = row_blocks(self.cells.n_samples, BLOCK_ROWS)
        return Values.known(np.concatenate([values(link, rows) for rows in blocks]))

    def _shifts(self, link: Link, rows: slice) -> Floats:
        served, places = self.served(link, rows), self.places[rows]
        low, high = (end[rows] for end in (self.cells.low, self.cells.high))
        # both distributions over the same draws and positions; W1 is convex in the pair, so that
        # its mean over draws and positions is at least the distance of both
        drawn = served.low + places * (served.high - served.low)
        through = link.ppf(low + places * (high - low), self.draws[rows])
        return np.abs(np.sort(drawn, axis=-1) - np.sort(through, axis=-1)).mean(axis=-1)

    def served(self, link: Link, rows: slice = slice(None)) -> Cells:
        """Return the cells of the randomized forecasts of some people."""
        return self.cells.take(rows).served(link, self.draws[rows])
