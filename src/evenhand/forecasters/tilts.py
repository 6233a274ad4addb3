"""Joint corrections of PITs for overlapping groups: densities tilted by group membership.

Given the groups that contain a row, its PIT has the density `exp(a_0(u) + sum_g a_g(u)) / Z` with
one function `a_g` for each group. The likelihood is concave in these functions, and at its maximum
the expected and the observed number of PITs agree in every cell of every group at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy import linalg, special

from evenhand._validate import Floats, Mask
from evenhand.calibration import n_effective
from evenhand.forecasters.adapters import n_cells
from evenhand.forecasters.pit_cells import PitCells
from evenhand.forecasters.steps import Patterns, Step, log_p_values, significant_groups

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
        tilt = _fitted(pit, weight, patterns, knots)
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
        tilt = _fitted(moved, weight, alone, {0: np.quantile(moved.points, below)})
        gain = float(weight @ tilt.apply(moved, alone)[1]) - tilt.n_parameters
        if gain > best[0]:
            best = gain, np.quantile(pit.points, below)
    return best[1]


def _shares(count: int, n: int) -> Floats:
    """Return shares of rows below the knots: equal steps, halved in the tails down to 4 rows."""
    even = np.arange(1, max(count, 4)) / max(count, 4)
    tail = even[0] * 0.5 ** np.arange(1, np.log2(max(even[0] * n / 4, 1)) + 1)
    return np.unique(np.concatenate((even, tail, 1 - tail)))


def _fitted(
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
