"""Joint corrections of PITs that depend on the groups that contain a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from scipy import linalg, optimize, special, stats

from evenhand._logarithms import log1mexp
from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration import n_effective
from evenhand.forecasters.pit_cells import PitCells
from evenhand.forecasters.samples import n_cells

# --- maps by pattern of membership, and the choice of significant groups

FEWEST_ROWS = 30
"""Fewest rows of a group for a correction of its own."""

LEVEL = 0.05
"""Probability that calibrated data give any group, or all rows, a correction."""

N_MOMENTS = 4
"""Number of Legendre polynomials in the test of uniform PITs."""

LEAST_SLOPE = 1e-3
"""Smallest slope of a correction, so that densities stay finite."""

LEAST_LEFT = 1e-6
"""Smallest share of a group's variance that other groups leave, for a test of the group."""


@dataclass(frozen=True)
class Patterns:
    """Distinct patterns of membership and the pattern of each row.

    Parameters
    ----------
    members : ndarray of bool, shape (n_patterns, n_groups)
    which : ndarray of int, shape (n,)
    """

    members: Mask
    which: Ints

    @classmethod
    def of(cls, masks: Mask) -> Patterns:
        """Find the patterns of masks of shape (n, n_groups)."""
        members, which = np.unique(masks, axis=0, return_inverse=True)
        return cls(members, np.asarray(which.reshape(-1), dtype=np.intp))


@dataclass(frozen=True)
class Step(ABC):
    """Correction of PITs: an increasing, piecewise linear map for each pattern of membership."""

    @property
    @abstractmethod
    def edges(self) -> Floats:
        """Knots of the maps, increasing from 0 to 1, shape (n_cells + 1,)."""

    @abstractmethod
    def shares(self, members: Mask) -> Floats:
        """Return probabilities of the cells by pattern, shape (n_patterns, n_cells)."""

    @property
    @abstractmethod
    def is_corrected(self) -> Mask:
        """Whether each group has a term of its own, shape (n_groups,)."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Number of estimated parameters."""

    @abstractmethod
    def to_arrays(self) -> Mapping[str, Any]:
        """Return the fields, from which the constructor rebuilds the step."""

    def values(self, members: Mask) -> Floats:
        """Return the map at the edges for membership patterns of shape (n_patterns, n_groups)."""
        width = np.diff(self.edges)
        share = np.maximum(self.shares(members), LEAST_SLOPE * width)
        share /= share.sum(axis=-1, keepdims=True)
        inner = np.cumsum(share, axis=-1)[:, :-1]
        zeros = np.zeros((members.shape[0], 1))
        return np.concatenate((zeros, inner, zeros + 1), axis=-1)

    def apply(self, pit: PitCells, patterns: Patterns) -> tuple[PitCells, Floats]:
        """Return the corrected PITs of rows, and the logarithm of the slope at each."""
        values = self.values(patterns.members)
        return pit.mapped_by(patterns.which, np.broadcast_to(self.edges, values.shape), values)


def log_p_values(pit: Floats, weight: Floats, masks: Mask, is_done: Mask | None = None) -> Floats:
    """Return log p-values of Neyman's smooth test of uniform PITs in each group, (n_groups,).

    Groups with a term have p-value 1, and so do groups with fewer than 30 rows. Other groups are
    tested for what the groups with a term leave: sums are taken over the residuals of the group's
    indicator in its regression on their indicators.

    References
    ----------
    Neyman (1937), Skandinavisk Aktuarietidskrift 20, 149-199.
    """
    # orthonormal polynomials on [0, 1], without the constant
    moments = legendre.legvander(2 * pit - 1, N_MOMENTS)[:, 1:]
    moments *= np.sqrt(2 * np.arange(1, N_MOMENTS + 1) + 1)
    found = np.zeros(masks.shape[1])
    done = np.zeros(masks.shape[1], dtype=bool) if is_done is None else is_done
    tested = ~done & (masks.sum(axis=0) >= FEWEST_ROWS)
    groups = masks[:, tested].astype(np.float64)
    fitted = masks[:, done].astype(np.float64)
    gram = fitted.T @ (weight[:, None] * fitted)
    own = groups - fitted @ (np.linalg.pinv(gram) @ (fitted.T @ (weight[:, None] * groups)))
    size = (weight**2) @ groups
    variance = (weight**2) @ own**2
    sums = own.T @ (weight[:, None] * moments)
    # nothing is left of a group that is identical to another or to its complement
    is_new = variance > LEAST_LEFT * size
    statistic = (sums**2).sum(axis=-1) / np.where(is_new, variance, np.inf)
    found[tested] = stats.chi2.logsf(statistic, N_MOMENTS)
    return found


def significant_groups(
    log_p_values: Callable[[Mask], Floats], sizes: Floats, level: float
) -> Iterator[tuple[int, Mask]]:
    """Yield groups that get a term, the most significant first, with the mask of all so far.

    A group and its complement have nearly the same p-value: the smaller of them is farther off, so
    the smallest group is taken whose log p-value is within 10% of the smallest.

    Parameters
    ----------
    log_p_values : callable
        Log p-values of all groups, given the mask of groups that have a term.
    sizes : ndarray of shape (n_groups,)
        Sizes of the groups.
    level : float
        Probability that calibrated data give any group a term.
    """
    is_done = np.zeros(sizes.size, dtype=bool)
    while True:
        found = log_p_values(is_done)
        if found.min() >= np.log(level / found.size):
            return
        group = int(np.where(found <= 0.9 * found.min(), sizes, np.inf).argmin())
        is_done[group] = True
        yield group, is_done


# --- joint correction of location and scale on the normal scores of PITs, by group membership

# A row's normal score `z` is replaced by `(z - m) / s`, with `m = m_0 + sum_g m_g` and
# `log s = t_0 + sum_g t_g` over the groups `g` that contain it. The model is exact for normal
# forecasts whose means and spreads are wrong by group, in the intersections of groups, too.

FARTHEST = 7.0
"""Largest absolute normal score: PITs nearer to 0 or 1 than 1.3e-12 lose precision."""

N_SCORES = 113
"""Number of inner knots: normal scores at steps of 1/8."""

PENALTY = 0.1
"""Precision of normal priors for the terms."""

LEAST_CELL = 1e-8
"""Smallest width of a cell, in normal scores; narrower cells are treated as points."""

WIDEST = 5.0
"""Bound on the absolute terms of the logarithm of the scale."""


@dataclass(frozen=True)
class Rescaling(Step):
    """Joint correction of location and scale.

    Parameters
    ----------
    location, log_scale : ndarray of shape (1 + n_groups,)
        Terms of all rows, then of each group; zeros for a group without a correction.
    """

    location: Floats
    log_scale: Floats

    @property
    def edges(self) -> Floats:
        scores = np.linspace(-FARTHEST, FARTHEST, N_SCORES)
        return np.concatenate(([0.0], special.ndtr(scores), [1.0]))

    def shares(self, members: Mask) -> Floats:
        scores = np.linspace(-FARTHEST, FARTHEST, N_SCORES)
        location = self.location[0] + members @ self.location[1:]
        log_scale = self.log_scale[0] + members @ self.log_scale[1:]
        moved = (scores - location[:, None]) * np.exp(-log_scale)[:, None]
        low = np.zeros((len(members), 1))
        return np.diff(special.ndtr(moved), axis=-1, prepend=low, append=low + 1)

    @property
    def is_corrected(self) -> Mask:
        return np.asarray((self.location[1:] != 0) | (self.log_scale[1:] != 0))

    @property
    def n_parameters(self) -> int:
        return int(np.count_nonzero(self.location) + np.count_nonzero(self.log_scale))

    def to_arrays(self) -> Mapping[str, Any]:
        return {"location": self.location, "log_scale": self.log_scale}


def learn_rescaling(
    pit: PitCells, weight: Floats, masks: Mask, patterns: Patterns, level: float
) -> Rescaling | None:
    """Fit the terms of significant groups; None if no group is significant.

    Groups get a term one after the other, the most significant first, and all terms are fitted
    jointly by penalized maximum likelihood after each.

    Parameters
    ----------
    pit : PitCells of n rows
    weight : ndarray of shape (n,)
        Weights that add up to the effective number of rows.
    masks : ndarray of bool, shape (n, 1 + n_groups)
        Membership; the first column is all rows.
    patterns : Patterns
        Patterns of the other columns.
    level : float
        Probability that calibrated PITs get any term.
    """
    found: Rescaling | None = None
    moved = pit

    def log_p(is_done: Mask) -> Floats:
        return log_p_values(moved.points, weight, masks, is_done)

    for _, is_done in significant_groups(log_p, weight @ masks, level):
        terms = np.zeros((2, masks.shape[1]))
        terms[:, is_done] = _fitted_terms(pit, weight, masks[:, is_done].astype(np.float64))
        found = Rescaling(*terms)
        moved, _ = found.apply(pit, patterns)
    return found


def _fitted_terms(pit: PitCells, weight: Floats, design: Floats) -> Floats:
    """Return the terms of location and log scale, shape (2, n_terms)."""
    n_terms = design.shape[1]
    ends = np.stack([special.ndtri(pit.low), special.ndtri(pit.high)])
    scores = np.clip(ends, -FARTHEST, FARTHEST)
    is_cell = np.diff(scores, axis=0)[0] > LEAST_CELL
    # cells at the ends of a range are open
    scores = np.where(np.isinf(ends) & is_cell, ends, scores)

    def loss(parameters: Floats) -> tuple[float, Floats]:
        location, log_scale = np.split(parameters, 2)
        spread = design @ log_scale
        narrow = np.exp(-spread)
        errors = (scores - design @ location) * narrow
        losses, by_error, by_spread = losses_of_cells(errors, spread, is_cell)
        value = weight @ losses + PENALTY / 2 * parameters @ parameters
        slope = np.concatenate(
            (-design.T @ (weight * by_error * narrow), design.T @ (weight * by_spread))
        )
        return float(value), slope + PENALTY * parameters

    bounds = [(None, None)] * n_terms + [(-WIDEST, WIDEST)] * n_terms
    # the stubs of SciPy lack functions that return their gradient without further arguments
    minimize: Any = optimize.minimize
    found = minimize(loss, np.zeros(2 * n_terms), jac=True, method="L-BFGS-B", bounds=bounds)
    return np.reshape(found.x, (2, n_terms))


def losses_of_cells(errors: Floats, spread: Floats, is_cell: Mask) -> tuple[Floats, ...]:
    """Return negative log likelihoods, and their derivatives by the errors and the log scale.

    The likelihood of a cell is its probability, that of a point its density.

    Parameters
    ----------
    errors : ndarray of shape (2, n)
        Normal scores of the ends of cells, less the location and divided by the scale.
    spread : ndarray of shape (n,)
        Logarithms of the scale.
    is_cell : ndarray of bool, shape (n,)
        Whether the ends differ.
    """
    error = errors[0]
    if not is_cell.any():
        return spread + error**2 / 2, error, 1 - error**2
    low, high = errors[:, is_cell]
    # from the nearer tail, in which the difference of two probabilities keeps its digits
    is_above = np.isfinite(low) & (np.isinf(high) | (low + np.where(np.isinf(high), 0, high) > 0))
    near = special.log_ndtr(np.where(is_above, -low, high))
    far = special.log_ndtr(np.where(is_above, -high, low))
    log_mass = near + log1mexp(np.minimum(far - near, -1e-16))
    density = np.exp(-(errors[:, is_cell] ** 2) / 2 - np.log(2 * np.pi) / 2 - log_mass)
    moment = np.where(density > 0, errors[:, is_cell], 0.0) * density
    error = np.where(is_cell, 0.0, error)
    found = spread + error**2 / 2, error.copy(), 1 - error**2
    for values, of_cells in zip(
        found, (-log_mass, density[0] - density[1], moment[1] - moment[0]), strict=True
    ):
        values[is_cell] = of_cells
    return found


# --- joint correction of densities, tilted by group membership

# Given the groups that contain a row, its PIT has the density `exp(a_0(u) + sum_g a_g(u)) / Z` with
# one function `a_g` for each group. The likelihood is concave in these functions, and at its
# maximum the expected and the observed number of PITs agree in every cell of every group at once.

MOST_NEWTON = 30
"""Largest number of Newton steps."""

LEAST_DECREMENT = 1e-6
"""Smallest gain in nats, of all rows together, for another Newton step."""

EVEN_CELLS = 64
"""Number of cells of equal width, besides those of the groups and of the tails."""

MOST_EM = 40
"""Largest number of steps of the EM algorithm for outcomes with atoms."""

LEAST_GAIN = 0.05
"""Smallest gain in nats, of all rows together, for another step of the EM algorithm."""

PENALTIES = 0.1, 1.0
"""Ridge penalties for the normal scores and for the cells: precisions of normal priors."""


@dataclass(frozen=True)
class Tilt(Step):
    """Joint correction of PITs by group membership.

    Parameters
    ----------
    cell_edges : ndarray of shape (n_cells + 1,)
        Edges of cells of PITs, increasing from 0 to 1.
    tilts : ndarray of shape (1 + n_groups, n_cells)
        Terms of the log density in each cell: of all rows, then of each group; zeros for a group
        without a correction.
    n_fitted : int
        Number of estimated parameters.
    """

    cell_edges: Floats
    tilts: Floats
    n_fitted: int = 0

    @property
    def edges(self) -> Floats:
        return self.cell_edges

    @property
    def n_parameters(self) -> int:
        return self.n_fitted

    def shares(self, members: Mask) -> Floats:
        logits = np.log(np.diff(self.edges)) + self.tilts[0] + members @ self.tilts[1:]
        return np.asarray(special.softmax(logits, axis=-1))

    @property
    def is_corrected(self) -> Mask:
        return np.asarray(self.tilts[1:].any(axis=-1))

    def to_arrays(self) -> Mapping[str, Any]:
        return {"edges": self.cell_edges, "tilts": self.tilts}


def learn_tilt(
    pit: PitCells, weight: Floats, masks: Mask, patterns: Patterns, level: float
) -> Tilt | None:
    """Fit the terms of significant groups; None if no group is significant or no term pays.

    Groups get a term one after the other, the most significant first, and all terms are fitted
    jointly after each.

    Parameters
    ----------
    pit : PitCells of n rows
    weight : ndarray of shape (n,)
        Weights that add up to the effective number of rows.
    masks : ndarray of bool, shape (n, 1 + n_groups)
        Membership; the first column is all rows.
    patterns : Patterns
        Patterns of the other columns.
    level : float
        Probability that calibrated PITs get any term.
    """
    knots: dict[int, Floats] = {}
    tilt: Tilt | None = None
    moved = pit

    def log_p(is_done: Mask) -> Floats:
        return log_p_values(moved.points, weight, masks, is_done)

    for group, _ in significant_groups(log_p, weight @ masks, level):
        inside = masks[:, group]
        chosen = _chosen_knots(moved.take(inside), pit.take(inside), weight[inside])
        if chosen is None:
            continue
        knots[group] = chosen
        tilt = _fitted_tilt(pit, weight, patterns, knots)
        moved, _ = tilt.apply(pit, patterns)
    return tilt


def _chosen_knots(moved: PitCells, pit: PitCells, weight: Floats) -> Floats | None:
    """Return the inner knots of a group's cells by AIC; None if no correction pays.

    Without cells, a correction is a tilt by the normal score and its square, which is exact for
    normal forecasts with a wrong mean or spread. More cells describe any deviation, at the cost of
    half a nat per cell.
    """
    best: tuple[float, Floats | None] = (0.0, None)
    alone = Patterns(np.zeros((1, 0), dtype=bool), np.zeros(moved.size, dtype=np.intp))
    most = n_cells(n_effective(weight))
    for count, has_tails in product(sorted({0, most // 4, most}), (False, True)):
        below = _shares(count, pit.size) if has_tails else np.arange(1, count) / max(count, 1)
        tilt = _fitted_tilt(moved, weight, alone, {0: np.quantile(moved.points, below)})
        gain = float(weight @ tilt.apply(moved, alone)[1]) - tilt.n_parameters
        if gain > best[0]:
            best = gain, np.quantile(pit.points, below)
    return best[1]


def _shares(count: int, n: int) -> Floats:
    """Return shares of rows below the knots: equal steps, halved in the tails down to 4 rows."""
    even = np.arange(1, max(count, 4)) / max(count, 4)
    tail = even[0] * 0.5 ** np.arange(1, np.log2(max(even[0] * n / 4, 1)) + 1)
    return np.unique(np.concatenate((even, tail, 1 - tail)))


def _fitted_tilt(
    pit: PitCells,
    weight: Floats,
    patterns: Patterns,
    knots: dict[int, Floats],
) -> Tilt:
    """Fit the tilts of all rows and of the groups in `knots` by penalized maximum likelihood.

    The likelihood of a cell is `M(high) - M(low)`. It is maximized by the EM algorithm, in which
    PITs are spread within their cells; points need one step.

    Parameters
    ----------
    pit : PitCells of n rows
    weight : ndarray of shape (n,)
        Weights that sum to the effective number of rows.
    patterns : Patterns
        Membership of the rows.
    knots : dict of int to ndarray
        Inner knots of the cells of each group that is corrected.
    """
    edges = _grid(pit.size, np.concatenate(list(knots.values())))
    designs = tuple(_design(edges, own) for own in knots.values())
    everyone = np.column_stack((np.ones(len(patterns.members), dtype=bool), patterns.members))
    terms = everyone[:, list(knots)].astype(np.float64)

    def fitted(values: Floats, start: Floats | None = None) -> tuple[Tilt, Floats]:
        counts = pit.expected_counts(weight, patterns.which, edges, values)
        problem = TiltLikelihood(counts, terms, designs, np.log(np.diff(edges)))
        found = problem.largest(start)
        tilts = np.zeros((everyone.shape[1], edges.size - 1))
        tilts[list(knots)] = problem.terms_at(found)
        return Tilt(edges, tilts, found.size), found

    tilt, at = fitted(np.tile(edges, (len(terms), 1)))
    if pit.ties is None:
        return tilt
    gain = float(weight @ tilt.apply(pit, patterns)[1])
    for _ in range(MOST_EM):
        tilt, at = fitted(tilt.values(patterns.members), at)
        last, gain = gain, float(weight @ tilt.apply(pit, patterns)[1])
        if gain < last + LEAST_GAIN:
            break
    return tilt


@dataclass(frozen=True)
class TiltLikelihood:
    """Penalized likelihood of terms of the log density in cells, with its derivatives.

    Parameters
    ----------
    counts : ndarray of shape (n_patterns, n_cells)
        Weights of rows.
    terms : ndarray of shape (n_patterns, n_terms)
        Whether each pattern has each term.
    designs : tuple of ndarray of shape (n_cells, n_parameters)
        Basis of each term; the first two functions are the normal score and its square.
    offset : ndarray of shape (n_cells,)
        Logarithms of the widths of the cells.
    """

    counts: Floats
    terms: Floats
    designs: tuple[Floats, ...]
    offset: Floats

    @cached_property
    def penalty(self) -> Floats:
        """Precisions of the normal priors of all parameters."""
        smooth, rough = PENALTIES
        penalty = [np.r_[smooth, smooth, np.full(one.shape[1] - 2, rough)] for one in self.designs]
        return np.concatenate(penalty)

    def largest(self, start: Floats | None = None) -> Floats:
        """Return the parameters with the largest likelihood, by damped Newton steps."""
        at = np.zeros(self.penalty.size) if start is None else start
        value, slope, share = self.loss(at)
        for _ in range(MOST_NEWTON):
            step = linalg.solve(self.curvature(share), slope, assume_a="pos")
            decrement = float(slope @ step)
            if decrement < LEAST_DECREMENT:
                break
            length = 1.0
            new, *rest = self.loss(at - step)
            # Armijo's rule; the loss is convex, so that short steps reduce it
            while new > value - 0.1 * length * decrement and length > 1e-3:
                length /= 2
                new, *rest = self.loss(at - length * step)
            at = at - length * step
            value, (slope, share) = new, rest
        return at

    def terms_at(self, at: Floats) -> Floats:
        """Return the log-density terms at parameters, shape (n_terms, n_cells)."""
        parts = np.split(at, np.cumsum([design.shape[1] for design in self.designs])[:-1])
        return np.stack([design @ part for design, part in zip(self.designs, parts, strict=True)])

    def loss(self, at: Floats) -> tuple[float, Floats, Floats]:
        """Return the negative log likelihood, its gradient and the probabilities of cells."""
        logits = self.offset + self.terms @ self.terms_at(at)
        log_share = logits - special.logsumexp(logits, axis=-1, keepdims=True)
        share = np.exp(log_share)
        excess = self.terms.T @ (self._totals * share - self.counts)
        slopes = [design.T @ part for design, part in zip(self.designs, excess, strict=True)]
        value = -(self.counts * log_share).sum() + 0.5 * (self.penalty * at**2).sum()
        return float(value), np.concatenate(slopes) + self.penalty * at, share

    def curvature(self, share: Floats) -> Floats:
        """Return the matrix of second derivatives, given the probabilities of cells."""
        weighted = self._totals * share
        # means of the basis functions of each term in each pattern
        means = [
            term[:, None] * (share @ design)
            for term, design in zip(self.terms.T, self.designs, strict=True)
        ]
        joined = np.concatenate(means, axis=-1)
        crossed = -joined.T @ (self._totals * joined)
        blocks = [
            [
                left.T @ (((one * other) @ weighted)[:, None] * right)
                for other, right in zip(self.terms.T, self.designs, strict=True)
            ]
            for one, left in zip(self.terms.T, self.designs, strict=True)
        ]
        return np.asarray(np.block(blocks) + crossed + np.diag(self.penalty))

    @property
    def _totals(self) -> Floats:
        return np.asarray(self.counts.sum(axis=-1, keepdims=True))


def _grid(n: int, knots: Floats) -> Floats:
    """Return the edges of cells: equal widths, halved again and again in the tails, and knots."""
    even = np.arange(1, EVEN_CELLS) / EVEN_CELLS
    # the outermost cells contain a quarter of a row of a calibrated sample
    tail = 0.5 ** np.arange(np.log2(EVEN_CELLS) + 1, np.log2(4 * max(n, EVEN_CELLS)))
    inner = np.unique(np.concatenate((even, tail, 1 - tail, knots)))
    inner = inner[(inner > 1e-9) & (inner < 1 - 1e-9)]
    # cells must be wide enough for distinct values of the map
    return np.concatenate(([0.0], inner[np.diff(inner, prepend=0.0) > 1e-9], [1.0]))


def _design(edges: Floats, knots: Floats) -> Floats:
    """Return means over cells of the normal score and its square, and indicators of wide cells."""
    ends = special.ndtri(edges)
    density = np.exp(-(ends**2) / 2) / np.sqrt(2 * np.pi)
    # z phi(z) is 0 at both ends
    product = np.where(np.isfinite(ends), ends, 0.0) * density
    width = np.diff(edges)
    score = -np.diff(density) / width
    square = -np.diff(product) / width / np.sqrt(2)
    which = np.searchsorted(knots, (edges[:-1] + edges[1:]) / 2)
    indicators = np.eye(knots.size + 1)[which] if knots.size else np.zeros((width.size, 0))
    return np.column_stack((score, square, indicators))


# --- sequences of corrections

MOST_STEPS = 3
"""Largest number of successive joint corrections by tilts."""


def learn_corrections(
    pit: Floats | PitCells, weight: Floats, masks: Mask, level: float = LEVEL
) -> tuple[Step, ...]:
    """Learn the joint corrections of significant deviations; empty if there are none.

    All rows and the groups get a term one after the other, the most significant deviation first,
    as long as its p-value is below `level` divided by the number of groups plus one. Two sequences
    are compared by AIC: corrections of densities (`Tilt`), and the same after a correction of
    location and scale (`Rescaling`). Corrections of the corrected PITs follow while any group is
    significant.

    Parameters
    ----------
    pit : ndarray of shape (n,) or PitCells
        Held-out PITs.
    weight : ndarray of shape (n,)
        Positive weights.
    masks : ndarray of bool, shape (n, n_groups)
        Membership.
    level : float, default 0.05
        Probability that calibrated PITs get any correction.
    """
    pits = PitCells.of(pit)
    everyone = np.column_stack((np.ones(len(masks), dtype=bool), masks))
    patterns = Patterns.of(masks)
    scaled = weight * (n_effective(weight) / weight.sum())
    rescaling = learn_rescaling(pits, scaled, everyone, patterns, level)
    if rescaling is None:
        return ()
    sequences = (
        _with_tilts((), pits, scaled, everyone, patterns, level),
        _with_tilts((rescaling,), pits, scaled, everyone, patterns, level),
    )
    return max(sequences, key=lambda sequence: sequence[0])[1]


def _with_tilts(
    steps: tuple[Step, ...],
    pit: PitCells,
    weight: Floats,
    masks: Mask,
    patterns: Patterns,
    level: float,
) -> tuple[float, tuple[Step, ...]]:
    """Add tilts to corrections; return their gain minus the number of parameters, and all steps."""
    gain = 0.0
    for step in steps:
        pit, log_slope = step.apply(pit, patterns)
        gain += float(weight @ log_slope) - step.n_parameters
    for _ in range(MOST_STEPS):
        tilt = learn_tilt(pit, weight, masks, patterns, level)
        if tilt is None:
            break
        pit, log_slope = tilt.apply(pit, patterns)
        gain += float(weight @ log_slope) - tilt.n_parameters
        steps = (*steps, tilt)
    return gain, steps


def arrays_of_steps(steps: tuple[Step, ...]) -> dict[str, Any]:
    """Return the arrays of steps, named by field and number, for storage."""
    return {
        f"map_{name}_{i}": values
        for i, step in enumerate(steps)
        for name, values in step.to_arrays().items()
    }


def take_steps(arrays: dict[str, Any], n_steps: int) -> tuple[Step, ...]:
    """Rebuild steps from the output of `arrays_of_steps`, which is removed from `arrays`."""

    def taken(i: int) -> Step:
        if f"map_location_{i}" in arrays:
            return Rescaling(arrays.pop(f"map_location_{i}"), arrays.pop(f"map_log_scale_{i}"))
        return Tilt(arrays.pop(f"map_edges_{i}"), arrays.pop(f"map_tilts_{i}"))

    return tuple(taken(i) for i in range(n_steps))
