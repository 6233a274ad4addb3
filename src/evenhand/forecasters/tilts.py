"""Joint corrections of PITs for overlapping groups: densities tilted by group membership.

Given the groups that contain a row, its PIT has the density `exp(a_0(u) + sum_g a_g(u)) / Z` with
one function `a_g` for each group. The likelihood is concave in these functions, and at its maximum
the expected and the observed number of PITs agree in every cell of every group at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.polynomial import legendre
from scipy import optimize, special, stats

from evenhand._validate import Floats, Ints, Mask
from evenhand.forecasters.adapters import effective_size, n_cells

FEWEST_ROWS = 30
"""Fewest rows of a group, and fewest rows outside of it, for a correction of its own."""

LEVEL = 0.05
"""Probability that calibrated data give any group a correction."""

MOST_STEPS = 3
"""Largest number of successive joint corrections."""

N_MOMENTS = 4
"""Number of Legendre polynomials in the test of uniform PITs."""

LEAST_SLOPE = 1e-3
"""Smallest slope of a correction, so that densities stay finite."""

EVEN_CELLS = 64
"""Number of cells of equal width, besides those of the groups and of the tails."""

PENALTIES = 0.1, 1.0
"""Ridge penalties for the normal scores and for the cells: precisions of normal priors."""


@dataclass(frozen=True)
class Tilt:
    """Joint correction of PITs by group membership.

    Parameters
    ----------
    edges : ndarray of shape (n_cells + 1,)
        Edges of cells of PITs, increasing from 0 to 1.
    tilts : ndarray of shape (1 + n_groups, n_cells)
        Terms of the log density in each cell: of all rows, then of each group; zeros for a group
        without a correction.
    """

    edges: Floats
    tilts: Floats

    def values(self, members: Mask) -> Floats:
        """Return the map at the edges for membership patterns of shape (n_patterns, n_groups)."""
        width = np.diff(self.edges)
        logits = np.log(width) + self.tilts[0] + members @ self.tilts[1:]
        share = np.maximum(special.softmax(logits, axis=-1), LEAST_SLOPE * width)
        share /= share.sum(axis=-1, keepdims=True)
        inner = np.cumsum(share, axis=-1)[:, :-1]
        zeros = np.zeros((members.shape[0], 1))
        return np.concatenate((zeros, inner, zeros + 1), axis=-1)

    def apply(self, pit: Floats, patterns: Patterns) -> Floats:
        """Return the corrected PITs of rows."""
        moved = np.empty_like(pit)
        for rows, values in zip(patterns.rows(), self.values(patterns.members), strict=True):
            moved[rows] = np.interp(pit[rows], self.edges, values)
        return moved

    @property
    def is_corrected(self) -> Mask:
        """Whether each group has a correction, shape (n_groups,)."""
        return np.asarray(self.tilts[1:].any(axis=-1))


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

    def rows(self) -> list[Ints]:
        """Return the rows of each pattern."""
        order = np.argsort(self.which, kind="stable")
        counts = np.bincount(self.which, minlength=len(self.members))
        return list(np.split(order, np.cumsum(counts)[:-1]))


def learn_tilts(pit: Floats, weight: Floats, masks: Mask) -> tuple[Tilt, ...]:
    """Learn the joint corrections of groups with significant deviations; empty if there are none.

    Groups get a correction one after the other, the one with the smallest p-value first, as long as
    it is below 5% divided by the number of groups. All corrections are fitted jointly after each. A
    second correction of the corrected PITs is learned if a group is still significant, as the
    effects of groups on the log density need not add up.

    Parameters
    ----------
    pit : ndarray of shape (n,)
        PITs under the map of all rows.
    weight : ndarray of shape (n,)
        Positive weights.
    masks : ndarray of bool, shape (n, n_groups)
        Membership.
    """
    steps: list[Tilt] = []
    patterns = Patterns.of(masks)
    scaled = weight * (effective_size(weight) / weight.sum())
    while len(steps) < MOST_STEPS:
        tilt = _learn_tilt(pit, scaled, masks, patterns)
        if tilt is None:
            break
        steps.append(tilt)
        pit = tilt.apply(pit, patterns)
    return tuple(steps)


def log_p_values(pit: Floats, weight: Floats, masks: Mask) -> Floats:
    """Return log p-values of Neyman's smooth test of uniform PITs in each group, (n_groups,).

    PITs of all rows together are uniform by their map. The variance of a sum over a group therefore
    is that of the difference between the group and the other rows. The p-value is 1 where one of
    the two has fewer than 30 rows.

    References
    ----------
    Neyman (1937), Skandinavisk Aktuarietidskrift 20, 149-199.
    """
    # orthonormal polynomials on [0, 1], without the constant
    moments = legendre.legvander(2 * pit - 1, N_MOMENTS)[:, 1:]
    moments *= np.sqrt(2 * np.arange(1, N_MOMENTS + 1) + 1)
    found = np.zeros(masks.shape[1])
    for g, mask in enumerate(masks.T):
        inside = weight[mask]
        outside = weight[~mask]
        if min(inside.size, outside.size) < FEWEST_ROWS:
            continue
        share = inside.sum() / weight.sum()
        variance = (1 - share) ** 2 * (inside**2).sum() + share**2 * (outside**2).sum()
        statistic = ((inside @ moments[mask]) ** 2).sum() / variance
        found[g] = stats.chi2.logsf(statistic, N_MOMENTS)
    return found


def _learn_tilt(pit: Floats, weight: Floats, masks: Mask, patterns: Patterns) -> Tilt | None:
    """Learn one joint correction; None if no group is significant."""
    n_groups = masks.shape[1]
    sizes = weight @ masks
    knots: dict[int, Floats] = {}
    is_done = np.zeros(n_groups, dtype=bool)
    tilt: Tilt | None = None
    moved = pit
    while True:
        found = np.where(is_done, 0.0, log_p_values(moved, weight, masks))
        if n_groups == 0 or found.min() >= np.log(LEVEL / n_groups):
            return tilt
        # a group and its complement have nearly the same p-value: the smaller one is farther off
        group = int(np.where(found <= 0.9 * found.min(), sizes, np.inf).argmin())
        is_done[group] = True
        inside = masks[:, group]
        chosen = _chosen_knots(moved[inside], pit[inside], weight[inside])
        if chosen is None:
            continue
        knots[group] = chosen
        tilt = _fitted(pit, weight, patterns, knots)
        moved = tilt.apply(pit, patterns)


def _chosen_knots(moved: Floats, pit: Floats, weight: Floats) -> Floats | None:
    """Return the inner knots of a group's cells by AIC; None if no correction pays.

    Without cells, a correction is a tilt by the normal score and its square, which is exact for
    normal forecasts with a wrong mean or spread. More cells describe any deviation, at the cost of
    half a nat per cell.
    """
    best: tuple[float, Floats | None] = (0.0, None)
    alone = Patterns(np.zeros((1, 0), dtype=bool), np.zeros(moved.size, dtype=np.intp))
    most = n_cells(effective_size(weight))
    for count in sorted({0, most // 4, most}):
        steps = np.arange(1, count) / max(count, 1)
        tilt = _fitted(moved, weight, alone, {}, np.quantile(moved, steps))
        slopes = np.diff(tilt.values(alone.members)[0]) / np.diff(tilt.edges)
        gain = float(weight @ np.log(slopes[_cells(moved, tilt.edges)]))
        n_parameters = 2 + steps.size
        if gain - n_parameters > best[0]:
            best = gain - n_parameters, np.quantile(pit, steps)
    return best[1]


def _fitted(
    pit: Floats,
    weight: Floats,
    patterns: Patterns,
    knots: dict[int, Floats],
    shared: Floats | None = None,
) -> Tilt:
    """Fit the tilts of all rows and of the groups in `knots` by penalized maximum likelihood.

    Parameters
    ----------
    pit, weight : ndarray of shape (n,)
        PITs, and weights that sum to the effective number of rows.
    patterns : Patterns
        Membership of the rows.
    knots : dict of int to ndarray
        Inner knots of the cells of each group that is corrected.
    shared : ndarray, optional
        Inner knots of the cells of all rows; by default those of all groups.
    """
    everyone = np.unique(np.concatenate(list(knots.values()))) if shared is None else shared
    edges = _grid(pit.size, everyone)
    designs = [_design(edges, everyone), *(_design(edges, own) for own in knots.values())]
    members = patterns.members[:, list(knots)]
    terms = np.column_stack((np.ones(len(members)), members)).astype(np.float64)
    n = edges.size - 1
    flat = patterns.which * n + _cells(pit, edges)
    counts = np.bincount(flat, weights=weight, minlength=len(members) * n).astype(np.float64)
    found = largest_likelihood(counts.reshape(-1, n), terms, designs, np.log(np.diff(edges)))
    tilts = np.zeros((1 + patterns.members.shape[1], n))
    tilts[[0, *(1 + group for group in knots)]] = found
    return Tilt(edges, tilts)


def largest_likelihood(
    counts: Floats, terms: Floats, designs: Sequence[Floats], offset: Floats
) -> Floats:
    """Return the log-density terms, shape (n_terms, n_cells), with the largest likelihood.

    Parameters
    ----------
    counts : ndarray of shape (n_patterns, n_cells)
        Weights of rows.
    terms : ndarray of shape (n_patterns, n_terms)
        Whether each pattern has each term.
    designs : sequence of ndarray of shape (n_cells, n_parameters)
        Basis of each term; the first two functions are the normal score and its square.
    offset : ndarray of shape (n_cells,)
        Logarithms of the widths of the cells.
    """
    sizes = [design.shape[1] for design in designs]
    ends = np.cumsum(sizes)[:-1]
    smooth, rough = PENALTIES
    penalty = np.concatenate([np.r_[smooth, smooth, np.full(size - 2, rough)] for size in sizes])
    totals = counts.sum(axis=-1, keepdims=True)

    def functions(parameters: Floats) -> Floats:
        parts = np.split(parameters, ends)
        return np.stack([design @ part for design, part in zip(designs, parts, strict=True)])

    def loss(parameters: Floats) -> tuple[float, Floats]:
        logits = offset + terms @ functions(parameters)
        log_share = logits - special.logsumexp(logits, axis=-1, keepdims=True)
        excess = terms.T @ (totals * np.exp(log_share) - counts)
        slope = [design.T @ part for design, part in zip(designs, excess, strict=True)]
        value = -(counts * log_share).sum() + 0.5 * (penalty * parameters**2).sum()
        return float(value), np.concatenate(slope) + penalty * parameters

    options = {"maxiter": 500, "ftol": 1e-10, "gtol": 1e-3}
    start = np.zeros(sum(sizes))
    # the stubs of SciPy lack functions that return their gradient without further arguments
    minimize: Any = optimize.minimize
    return functions(minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x)


def _grid(n: int, knots: Floats) -> Floats:
    """Return the edges of cells: equal widths, halved again and again in the tails, and knots."""
    even = np.arange(1, EVEN_CELLS) / EVEN_CELLS
    # the outermost cells contain a quarter of a row of a calibrated sample
    tail = 0.5 ** np.arange(np.log2(EVEN_CELLS) + 1, np.log2(4 * max(n, EVEN_CELLS)))
    inner = np.unique(np.concatenate((even, tail, 1 - tail, knots)))
    inner = inner[(inner > 1e-9) & (inner < 1 - 1e-9)]
    # cells must be wide enough for distinct values of the map
    return np.concatenate(([0.0], inner[np.diff(inner, prepend=0.0) > 1e-9], [1.0]))


def _cells(pit: Floats, edges: Floats) -> Ints:
    found = np.searchsorted(edges, pit, side="right") - 1
    return np.clip(found, 0, edges.size - 2)


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
