"""Joint corrections of PITs and of probabilities that depend on the groups that contain a row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeVar

import numpy as np
from numpy.polynomial import legendre
from scipy import linalg, optimize, sparse, special, stats
from sklearn.isotonic import IsotonicRegression

from evenhand._validate import Floats, Ints, Mask, Pair
from evenhand.calibration import Cells, Events, n_effective
from evenhand.distributions import Normal
from evenhand.forecasters.groups import Members
from evenhand.forecasters.samples import CellsInGrid, closed, converged, ends_of, mapped, n_cells

T = TypeVar("T")

# --- joint maps by pattern of membership, and the choice of significant groups

FEWEST_TESTED = 30
"""Fewest rows of a group for a test of the group."""

LEVEL = 0.05
"""Probability that calibrated data give any group, or all rows, a correction."""

N_MOMENTS = 4
"""Number of Legendre polynomials in the test of uniform PITs."""

LEAST_SLOPE = 1e-3
"""Smallest slope of a correction, so that densities stay finite."""

LEAST_LEFT = 1e-6
"""Smallest share of a group's variance that other groups leave, for a test of the group."""

MOST_NEWTON = 50
"""Largest number of Newton steps."""


@dataclass(frozen=True)
class Step(ABC):
    """Rescaling of PITs: an increasing, piecewise linear map for each pattern of membership.

    Parameters
    ----------
    edges : ndarray of shape (n_cells + 1,)
        Knots of the maps, increasing from 0 to 1.
    terms : ndarray of shape (1 + n_groups, k)
        Terms of all rows, then of each group; zeros for a group without a correction.
    n_parameters : int
        Number of estimated parameters.
    """

    edges: Floats
    terms: Floats
    n_parameters: int = 0

    @abstractmethod
    def shares(self, terms: Floats) -> Floats:
        """Return probabilities of the cells by sums of terms, shape (n_patterns, n_cells)."""

    def values(self, patterns: Mask) -> Floats:
        """Return the maps at the edges for membership patterns of shape (n_patterns, n_groups)."""
        width = np.diff(self.edges)
        share = self.shares(self.terms[0] + patterns @ self.terms[1:])
        share = np.maximum(share, LEAST_SLOPE * width)
        share /= share.sum(axis=-1, keepdims=True)
        # from the nearer end, so that narrow cells next to 1 keep their widths
        below, above = np.cumsum(share, axis=-1), np.cumsum(share[:, ::-1], axis=-1)[:, ::-1]
        inner = np.where(below < 0.5, below, 1 - np.roll(above, -1, axis=-1))[:, :-1]
        zeros = np.zeros((len(patterns), 1))
        return np.concatenate((zeros, inner, zeros + 1), axis=-1)

    def maps(self, members: Members) -> tuple[Floats, Floats, Ints]:
        """Return the edges, the maps of all patterns there, and the pattern of each row."""
        return self.edges, self.values(members.patterns), members.which

    def apply(self, pit: Cells, members: Members) -> tuple[Cells, Floats]:
        """Return the corrected PITs of rows, and the logarithm of the slope at each."""
        return mapped(pit, *self.maps(members))


def log_p_values(pit: Floats, weight: Floats, masks: Mask, is_done: Mask) -> Floats:
    """Return log p-values of Neyman's smooth test of uniform PITs in each group, (n_groups,).

    Groups with a term have p-value 1, and so do groups with fewer than 30 rows. Other groups are
    tested for what the groups with a term leave: sums are taken over the residuals of the group's
    indicator in its regression on their indicators (Neyman 1937, Skandinavisk Aktuarietidskrift 20,
    149-199).
    """
    # orthonormal polynomials on [0, 1], without the constant
    moments = legendre.legvander(2 * pit - 1, N_MOMENTS)[:, 1:]
    moments *= np.sqrt(2 * np.arange(1, N_MOMENTS + 1) + 1)
    found = np.zeros(masks.shape[1])
    tested = ~is_done & (masks.sum(axis=0) >= FEWEST_TESTED)
    groups = masks[:, tested].astype(float)
    own = unexplained_by(masks[:, is_done].astype(float), weight)(groups)
    size = (weight**2) @ groups
    variance = (weight**2) @ own**2
    sums = own.T @ (weight[:, None] * moments)
    # nothing is left of a group that is identical to another or to its complement
    is_new = variance > LEAST_LEFT * size
    statistic = (sums**2).sum(axis=-1) / np.where(is_new, variance, np.inf)
    found[tested] = stats.chi2.logsf(statistic, N_MOMENTS)
    return found


def unexplained_by(done: Floats, weight: Floats) -> Callable[[Floats], Floats]:
    """Return a function to the residuals of columns in their weighted regression on others."""
    across = done.T * weight
    inverse = np.linalg.pinv(across @ done)
    return lambda own: own - done @ (inverse @ (across @ own))


def _tests(weight: Floats, masks: Mask) -> Callable[[Cells, Mask], Floats]:
    """Return the tests of groups by PITs with these weights."""
    return lambda pit, is_done: log_p_values(pit.drawn.ravel(), weight, masks, is_done)


def chosen_greedily(
    start: Cells | Floats,
    log_p_values: Callable[[Any, Mask], Floats],
    fit: Callable[[int, Mask, Any], tuple[T, Any] | None],
    sizes: Floats,
    level: float,
) -> T | None:
    """Correct groups one after the other, the most significant first; None if none is significant.

    All groups are corrected jointly. A group and its complement have nearly the same p-value: the
    smaller of them is farther off, so the smallest group is taken whose log p-value is within 10%
    of the smallest.

    Parameters
    ----------
    start : Cells or ndarray
        What is tested first.
    log_p_values : callable
        Log p-values of all groups, given what is tested and the groups that were taken.
    fit : callable
        The correction of all groups that were taken, and what is left to test, given the number of
        the last group, the mask of all that were taken and what was tested; None if the group needs
        no term.
    sizes : ndarray of shape (n_groups,)
        Sizes of the groups.
    level : float
        Probability that calibrated data give any group a term.
    """
    is_done = np.zeros(sizes.size, dtype=bool)
    correction, tested = None, start
    while True:
        found = log_p_values(tested, is_done)
        if found.min() >= np.log(level / found.size):
            return correction
        group = int(np.where(found <= 0.9 * found.min(), sizes, np.inf).argmin())
        is_done[group] = True
        fitted = fit(group, is_done, tested)
        if fitted is not None:
            correction, tested = fitted


def newton(
    loss: Callable[[Floats], tuple[float, Floats, T]],
    curvature: Callable[[T], Floats],
    start: Floats,
    least: float,
) -> Floats:
    """Return the place of the smallest value of a convex function, by damped Newton steps.

    `loss` gives value and gradient at a place, and what the matrix of second derivatives there,
    `curvature`, depends on. No step follows for a decrement below `least`.
    """
    at = start
    value, slope, state = loss(at)
    for _ in range(MOST_NEWTON):
        step = linalg.cho_solve(linalg.cho_factor(curvature(state)), slope)
        decrement = float(slope @ step)
        if decrement < least:
            break
        length = 1.0
        new = loss(at - step)
        # Armijo's rule; the loss is convex, so that short steps reduce it
        while new[0] > value - 0.1 * length * decrement and length > 1e-3:
            length /= 2
            new = loss(at - length * step)
        if new[0] > value:  # by rounding
            break
        at = at - length * step
        value, slope, state = new
    return at


# --- joint correction of location and scale on the normal scores of PITs, by group membership

# A row's normal score `z` is replaced by `(z - m) / s`, with `m = m_0 + sum_g m_g` and
# `log s = t_0 + sum_g t_g` over the groups `g` that contain it. The model is exact for normal
# forecasts whose means and spreads are wrong by group, in the intersections of groups, too.

FARTHEST = 7.0
"""Largest absolute normal score: PITs nearer to 0 or 1 than 1.3e-12 lose precision."""

PENALTY = 0.1
"""Precision of normal priors for the terms."""

LEAST_CELL = 1e-8
"""Smallest width of a cell, in normal scores; narrower cells are treated as points."""

WIDEST = 5.0
"""Bound on the absolute terms of the logarithm of the scale."""


SCORES = np.linspace(-FARTHEST, FARTHEST, 113)
"""Normal scores of the inner knots, at steps of 1/8."""


class Rescaling(Step):
    """Joint correction of location and scale, the two terms of each group."""

    def shares(self, terms: Floats) -> Floats:
        location, log_scale = terms.T[:, :, None]
        low = np.zeros((len(terms), 1))
        moved = (SCORES - location) * np.exp(-log_scale)
        return np.diff(special.ndtr(moved), axis=-1, prepend=low, append=low + 1)


def learn_rescaling(pit: Cells, weight: Floats, members: Members, level: float) -> Rescaling | None:
    """Fit the terms of significant groups by penalized maximum likelihood."""
    masks = members.matrix.toarray() > 0
    edges = closed(special.ndtr(SCORES))

    def fit(_: int, is_done: Mask, __: Cells) -> tuple[Rescaling, Cells]:
        terms = np.zeros((masks.shape[1], 2))
        terms[is_done] = _fitted_terms(pit, weight, masks[:, is_done].astype(float)).T
        found = Rescaling(edges, terms, int(np.count_nonzero(terms)))
        return found, found.apply(pit, members)[0]

    return chosen_greedily(pit, _tests(weight, masks), fit, weight @ masks, level)


def _fitted_terms(pit: Cells, weight: Floats, design: Floats) -> Floats:
    """Return the terms of location and log scale, shape (2, n_terms)."""
    n_terms = design.shape[1]
    ends = special.ndtri(np.stack(ends_of(pit)[:2]))
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

    The likelihood of a cell is its probability, that of a point its density. Errors, shape (2, n),
    are normal scores of both ends, less the location and divided by the scale.
    """
    error = errors[0]
    if not is_cell.any():
        return spread + error**2 / 2, error, 1 - error**2
    low, high = errors[:, is_cell]
    log_mass = Normal(0.0, 1.0).log_between(low, high)
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

LEAST_DECREMENT = 1e-6
"""Smallest gain in nats, of all rows together, for another Newton step."""

EVEN_CELLS = 64
"""Number of cells of equal width, besides those of the groups and of the tails."""

MOST_EM_OF_TILTS = 40
"""Largest number of further steps of the EM algorithm for outcomes with atoms."""

PENALTIES = 0.1, 1.0
"""Ridge penalties for the normal scores and for the cells: precisions of normal priors."""


class Tilt(Step):
    """Joint correction of densities; terms are those of the log density in each cell."""

    def shares(self, terms: Floats) -> Floats:
        return special.softmax(np.log(np.diff(self.edges)) + terms, axis=-1)


def learn_tilt(pit: Cells, weight: Floats, members: Members, level: float) -> Tilt | None:
    """Fit the terms of significant groups that pay, with cells that AIC chooses."""
    masks = members.matrix.toarray() > 0
    knots: dict[int, Floats] = {}

    def fit(group: int, _: Mask, moved: Cells) -> tuple[Tilt, Cells] | None:
        inside = masks[:, group]
        chosen = _chosen_knots(moved.take(inside), pit.take(inside), weight[inside])
        if chosen is None:
            return None
        knots[group] = chosen
        found = _fitted_tilt(pit, weight, members, knots)
        return found, found.apply(pit, members)[0]

    return chosen_greedily(pit, _tests(weight, masks), fit, weight @ masks, level)


def _chosen_knots(moved: Cells, pit: Cells, weight: Floats) -> Floats | None:
    """Return the inner knots of a group's cells by AIC; None if no correction pays.

    Without cells, a correction is a tilt by the normal score and its square, which is exact for
    normal forecasts with a wrong mean or spread. More cells describe any deviation, at the cost of
    half a nat per cell.
    """
    best: tuple[float, Floats | None] = (0.0, None)
    alone = Members((), np.zeros(pit.n_samples, dtype=int), np.zeros((1, 0), dtype=bool))
    most = n_cells(n_effective(weight))
    for count, has_tails in product(sorted({0, most // 4, most}), (False, True)):
        below = _shares(count, pit.n_samples) if has_tails else np.arange(1, count) / max(count, 1)
        tilt = _fitted_tilt(moved, weight, alone, {0: np.quantile(moved.drawn, below)})
        gain = float(weight @ tilt.apply(moved, alone)[1]) - tilt.n_parameters
        if gain > best[0]:
            best = gain, np.quantile(pit.drawn, below)
    return best[1]


def _shares(count: int, n: int) -> Floats:
    """Return shares of rows below the knots: equal steps, halved in the tails down to 4 rows."""
    even = np.arange(1, max(count, 4)) / max(count, 4)
    tail = even[0] * 0.5 ** np.arange(1, np.log2(max(even[0] * n / 4, 1)) + 1)
    return np.unique(np.concatenate((even, tail, 1 - tail)))


def _fitted_tilt(pit: Cells, weight: Floats, members: Members, knots: dict[int, Floats]) -> Tilt:
    """Fit the tilts of all rows and of the groups in `knots` by penalized maximum likelihood.

    The likelihood of a cell is `M(high) - M(low)`. It is maximized by the EM algorithm, in which
    PITs are spread within their cells; points need one step. `knots` are the inner knots of the
    cells of each group that is corrected; group 0 is all rows.
    """
    patterns = members.patterns
    edges = _grid(pit.n_samples, np.concatenate(list(knots.values())))
    designs = [_design(edges, own) for own in knots.values()]
    everyone = np.column_stack((np.ones(len(patterns), dtype=bool), patterns))
    terms = everyone[:, list(knots)].astype(float)
    cells, offset = CellsInGrid(pit, members.which, edges), np.log(np.diff(edges))

    def step(last: tuple[Floats, Floats | None, Any]) -> tuple[Floats, Floats, Tilt]:
        """Return values of the maps, coefficients and the tilt."""
        counts = cells.expected_counts(last[0], weight)
        tilts = np.zeros((everyone.shape[1], edges.size - 1))
        tilts[list(knots)], found = fitted_tilts(counts, terms, designs, offset, last[1])
        tilt = Tilt(edges, tilts, found.size)
        return tilt.values(patterns), found, tilt

    def gain(found: tuple[Floats, Any, Tilt]) -> float:
        return float(weight @ cells.under(found[0])[2])

    start = np.tile(edges, (len(terms), 1)), None, None
    most = 1 if pit.are_points else 1 + MOST_EM_OF_TILTS
    return converged(step, gain, start, most)[-1]


def fitted_tilts(
    counts: Floats,
    terms: Floats,
    designs: Sequence[Floats],
    offset: Floats,
    start: Floats | None = None,
) -> Pair:
    """Return terms of the log density in cells with the largest penalized likelihood.

    `counts`, shape (n_patterns, n_cells), are the weights of rows. `terms`, shape (n_patterns,
    n_terms), are 1 where a pattern has a term. Each term has a basis in `designs`, shape (n_cells,
    n_parameters), whose first two functions are the normal score and its square. `offset` are the
    logarithms of the widths of the cells. Returns the terms, shape (n_terms, n_cells), and the
    coefficients of all terms, which a later call may start from.
    """
    # precisions of the normal priors of all parameters
    smooth, rough = PENALTIES
    sizes = [design.shape[1] for design in designs]
    penalty = np.concatenate([np.r_[smooth, smooth, np.full(n - 2, rough)] for n in sizes])
    totals = counts.sum(axis=-1, keepdims=True)
    of_terms = list(zip(terms.T, designs, strict=True))

    def tilts(at: Floats) -> Floats:
        parts = np.split(at, np.cumsum(sizes)[:-1])
        return np.stack([design @ part for design, part in zip(designs, parts, strict=True)])

    def loss(at: Floats) -> tuple[float, Floats, Floats]:
        logits = offset + terms @ tilts(at)
        log_share = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
        share = np.exp(log_share)
        excess = terms.T @ (totals * share - counts)
        slopes = [design.T @ part for design, part in zip(designs, excess, strict=True)]
        value = -(counts * log_share).sum() + 0.5 * (penalty * at**2).sum()
        return value, np.concatenate(slopes) + penalty * at, share

    def curvature(share: Floats) -> Floats:
        weighted = totals * share
        # means of the basis functions of each term in each pattern
        means = [term[:, None] * (share @ design) for term, design in of_terms]
        joined = np.concatenate(means, axis=-1)
        crossed = -joined.T @ (totals * joined)
        blocks = [
            [left.T @ (((one * other) @ weighted)[:, None] * right) for other, right in of_terms]
            for one, left in of_terms
        ]
        return np.block(blocks) + crossed + np.diag(penalty)

    begin = np.zeros(penalty.size) if start is None else start
    found = newton(loss, curvature, begin, LEAST_DECREMENT)
    return tilts(found), found


def _grid(n: int, knots: Floats) -> Floats:
    """Return the edges of cells: equal widths, halved again and again in the tails, and knots."""
    even = np.arange(1, EVEN_CELLS) / EVEN_CELLS
    # the outermost cells contain a quarter of a row of a calibrated sample
    tail = 0.5 ** np.arange(np.log2(EVEN_CELLS) + 1, np.log2(4 * max(n, EVEN_CELLS)))
    inner = np.unique(np.concatenate((even, tail, 1 - tail, knots)))
    inner = inner[(inner > 1e-9) & (inner < 1 - 1e-9)]
    # cells must be wide enough for distinct values of the map
    return closed(inner[np.diff(inner, prepend=0.0) > 1e-9])


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

Correction = Rescaling | Tilt

MOST_STEPS = 3
"""Largest number of successive joint corrections by tilts."""


def learn_corrections(
    pit: Cells, weight: Floats, members: Members, level: float = LEVEL
) -> tuple[Correction, ...]:
    """Learn the joint corrections of significant deviations of held-out PITs; empty without one.

    All rows and the groups get a term one after the other, the most significant deviation first, as
    long as its p-value is below `level` divided by the number of groups plus one, so that
    calibrated PITs get any correction with probability `level`. Two sequences are compared by AIC:
    corrections of densities (`Tilt`), and the same after a correction of location and scale
    (`Rescaling`). Corrections of the corrected PITs follow while any group is significant. Weights
    are scaled to add up to the effective number of rows.
    """
    scaled = weight * (n_effective(weight) / weight.sum())
    rescaling = learn_rescaling(pit, scaled, members, level)
    if rescaling is None:
        return ()

    def with_tilts(first: Rescaling | None) -> tuple[float, tuple[Correction, ...]]:
        """Return the gain minus the number of parameters, and all steps."""
        gain, moved = 0.0, pit
        done: tuple[Correction, ...] = ()
        step: Correction | None = first or learn_tilt(pit, scaled, members, level)
        while step is not None:
            moved, log_slope = step.apply(moved, members)
            gain += float(scaled @ log_slope) - step.n_parameters
            done = (*done, step)
            is_last = len(done) == MOST_STEPS + (first is not None)
            step = None if is_last else learn_tilt(moved, scaled, members, level)
        return gain, done

    return max(map(with_tilts, (None, rescaling)), key=lambda sequence: sequence[0])[1]


# --- increasing curve of log odds, estimated by isotonic regression


NO_CURVE: Floats = np.empty((2, 0))
"""Curve that corrects nothing."""


def curved(odds: Floats, curve: Floats) -> Floats:
    """Return log odds under an increasing, piecewise linear curve; a shift beyond its ends.

    The curve has log odds and the corrected log odds at the knots, shape (2, k); it is empty for no
    correction.

    Examples
    --------
    >>> curved(np.array([-3.0, 0.0, 1.0]), np.array([[-1.0, 1.0], [-0.5, 2.0]]))
    array([-2.5 ,  0.75,  2.  ])
    """
    knots, values = curve
    return odds + np.interp(odds, knots, values - knots) if knots.size else odds


def learn_curve(odds: Floats, happened: Mask | Floats, weight: Floats) -> Floats:
    """Estimate a curve; no correction if the gain is less than its number of steps.

    Isotonic regression of the rates of `2 n^(2/5)` bins of equal probability, to each of which
    one row with the predicted rate is added. The curve is linear between the centers of its
    steps, so that different forecasts remain different. `happened` may be the probability that the
    event happened, and weights add up to the effective number of rows.
    """
    order = np.argsort(odds, kind="stable")
    share = np.cumsum(weight[order]) / weight.sum()
    # equal forecasts share a bin
    _, first, which = np.unique(odds[order], return_index=True, return_inverse=True)
    n_bins = n_cells(weight.sum())
    bins = np.minimum(share[first[which]] * n_bins, n_bins - 1).astype(int)
    _, bins = np.unique(bins, return_inverse=True)
    own = weight[order]
    p = special.expit(odds[order])
    size = np.bincount(bins, own)
    predicted = np.bincount(bins, own * p) / size
    rate = (np.bincount(bins, own * happened[order]) + predicted) / (size + 1)
    levels = IsotonicRegression().fit_transform(predicted, rate, sample_weight=size + 1)
    steps = np.unique(np.round(levels, 12), return_inverse=True)[1]
    if steps.max() == 0:
        return NO_CURVE
    total = np.bincount(steps, size + 1)
    knots = special.logit(np.bincount(steps, (size + 1) * predicted) / total)
    found = np.stack((knots, special.logit(np.bincount(steps, (size + 1) * levels) / total)))
    gain = weight @ (log_losses(odds, happened) - log_losses(curved(odds, found), happened))
    return found if gain > knots.size else NO_CURVE


def log_losses(odds: Floats, happened: Mask | Floats) -> Floats:
    """Return the log losses of predicted log odds, in nats, shape (n,).

    `happened` is whether the event happened, or the probability that it did where this is not
    known; the loss is then its mean.
    """
    # the difference is exactly 0 where the more probable thing happened
    return np.logaddexp(0, -np.abs(odds)) + (np.maximum(odds, 0.0) - happened * odds)


# --- joint terms of log odds by group

LEAST_ODDS_SLOPE = 0.05
"""Smallest slope of corrected in predicted log odds, so that the correction increases."""

EXACT = 1e-12
"""Probabilities closer to 0 or 1 count as exactly 0 or 1, which no correction could change."""


@dataclass(frozen=True)
class EventMaps:
    """Corrections of the probability of an event.

    Parameters
    ----------
    terms : ndarray of shape (1 + n_groups, 2)
        Terms of location and of slope: of all rows, then of each group; zeros for a group without
        terms of its own.
    center : float
        Mean predicted log odds.
    least : float
        Predicted probabilities are moved into `[least, 1 - least]`.
    curve : ndarray of shape (2, k)
        Further correction of all rows, as for `curved`.
    """

    terms: Floats
    center: float
    least: float
    curve: Floats

    def apply(self, probability: Floats, members: Members) -> Floats:
        """Return the corrected probabilities of rows, shape (n,)."""
        if self.is_identity:
            return probability
        odds = special.logit(np.clip(probability, self.least, 1 - self.least))
        location, slope = members.sums(self.terms).T
        # groups that did not overlap in training may have slopes that add up to less than -1
        slope = np.maximum(slope, LEAST_ODDS_SLOPE - 1)
        moved = odds + location + slope * (odds - self.center)
        return special.expit(curved(moved, self.curve))

    @property
    def is_identity(self) -> bool:
        """Whether nothing is corrected."""
        return not (self.terms.any() or self.curve.size)

    @property
    def is_own(self) -> Mask:
        """Whether each group has terms of its own, shape (n_groups,)."""
        return np.any(self.terms[1:], axis=-1)


def event_gains(events: Events, corrected: Floats) -> Floats:
    """Return the gain in log score of each row by corrected probabilities.

    What happened must be known.
    """
    # an event of probability 0 has an infinite loss, which no mean can contain
    both = np.clip((corrected, events.probability), EXACT, 1 - EXACT)
    after, before = np.where(events.happened, np.log(both), np.log1p(-both))
    return after - before


# --- estimation of the terms

FEWEST_EVENTS = 5.0
"""Fewest expected rows with the event, and without it, for a test of a group; the normal
approximation of a number of events needs them."""

# keeps probabilities away from 0 and 1 where all outcomes are equal
SPREAD_OF_ALL = 2.0
"""Standard deviation of the normal prior for the terms of all rows, in log odds."""

SPREADS_OF_GROUPS = 0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6
"""Standard deviations of the normal prior for the terms of groups that are compared."""

LEAST_EVENT_DECREMENT = 1e-13
"""Smallest decrement of the loss, in nats of all rows together, for another Newton step."""


def learn_events(
    events: Events,
    weight: Floats,
    members: Members,
    level: float = LEVEL,
    *,
    has_curve: bool = True,
) -> EventMaps:
    """Learn the correction of all rows, and those of groups.

    Terms of groups have a normal prior. Its standard deviation is the one with the largest marginal
    likelihood, so that groups with few rows, or without differences, get the correction of all.
    Disjoint groups get terms all at once. All rows and overlapping groups get terms one after the
    other, the most significant first, as long as the p-value of the score test is below `level`
    divided by the number of groups plus one. With `has_curve` a curve of all rows follows, if it
    pays.
    """
    problem = _Problem(events, weight)
    design = members.matrix
    if members.are_disjoint:
        terms = problem.by_groups(design, SPREADS_OF_GROUPS if members.names else (0.0,))
        return problem.maps(terms, members, has_curve=has_curve)
    masks = design.toarray()

    def log_p_values(moved: Floats, is_done: Mask) -> Floats:
        return problem.log_p_values(moved, masks, is_done)

    def fit(_: int, is_done: Mask, __: Floats) -> Pair:
        terms = np.zeros((design.shape[1], 2))
        terms[is_done] = problem.by_groups(design[:, is_done], SPREADS_OF_GROUPS[1:], is_done[0])
        location, slope = (masks @ terms).T
        return terms, problem.odds + location + slope * problem.score

    found = chosen_greedily(problem.odds, log_p_values, fit, weight @ masks, level)
    terms = np.zeros((design.shape[1], 2)) if found is None else found
    return problem.maps(terms, members, has_curve=has_curve and bool(terms[0].any()))


class _Problem:
    """Events with log odds that terms are added to, and with weights of any sum."""

    def __init__(self, events: Events, weight: Floats) -> None:
        n, share, p = n_effective(weight), weight / weight.sum(), events.probability
        self.events, self.weight = events, share * n
        inner = np.minimum(p, 1 - p)
        # exact zeros and ones may be wrong once in 2 (n + 1) rows, and are no inner probabilities
        self.least = min(0.5 / (n + 1), float(inner[inner > EXACT].min(initial=0.5)))
        self.odds = special.logit(np.clip(p, self.least, 1 - self.least))
        self.center = float(share @ self.odds)
        scale = float(np.sqrt(share @ (self.odds - self.center) ** 2))
        # equal forecasts have no slope
        self.scale = scale if scale > 1e-9 * max(1.0, abs(self.center)) else 1.0
        self.score = (self.odds - self.center) / self.scale

    def maps(self, terms: Floats, members: Members, *, has_curve: bool) -> EventMaps:
        """Return the maps with terms of shape (1 + n_groups, 2), and a curve if it pays."""
        maps = EventMaps(terms / [1.0, self.scale], self.center, self.least, NO_CURVE)
        if not has_curve:
            return maps
        p = maps.apply(self.events.probability, members)
        odds = special.logit(np.clip(p, self.least, 1 - self.least))
        return replace(maps, curve=learn_curve(odds, self.events.happened, self.weight))

    def by_groups(
        self, masks: sparse.csr_array, spreads: Sequence[float], has_all: bool = True
    ) -> Floats:
        """Return the terms with the prior of the largest marginal likelihood, (n_groups, 2).

        The first group is all rows if `has_all`. If no prior is better than none for the groups,
        their terms are 0.
        """
        found = [self.largest(masks if one else masks[:, :1], one, has_all) for one in spreads]
        best = max(found, key=lambda one: one[1])[0]
        return np.pad(best, ((0, masks.shape[1] - len(best)), (0, 0)))

    def largest(
        self, masks: sparse.csr_array, spread: float, has_all: bool = True
    ) -> tuple[Floats, float]:
        """Return the terms with the largest posterior, and the log of the marginal likelihood.

        The marginal likelihood is that of Laplace's approximation.
        """
        n_groups = masks.shape[1]
        precision = np.full(n_groups, spread**-2.0 if spread else 0.0)
        precision[0] = SPREAD_OF_ALL**-2.0 if has_all else precision[0]
        # without different forecasts there are no slopes
        n_parts = 2 if np.ptp(self.score) > 0 else 1
        parts = masks, masks.multiply(self.score[:, None])
        design = sparse.hstack(parts[:n_parts], format="csr")
        at, evidence = self._largest(design, np.tile(precision, n_parts), self.odds)
        terms = np.zeros((2, n_groups))
        terms[:n_parts] = at.reshape(n_parts, n_groups)
        least = (1 + masks @ terms[1] / self.scale).min()
        if least < LEAST_ODDS_SLOPE:
            # smaller slopes, with which the correction increases
            terms[1] *= (1 - LEAST_ODDS_SLOPE) / (1 - least)
            odds = self.odds + (masks @ terms[1]) * self.score
            terms[0], _ = self._largest(masks, precision, odds)
        return terms.T, evidence

    def _largest(
        self, design: sparse.csr_array, precision: Floats, odds: Floats
    ) -> tuple[Floats, float]:
        """Return the largest posterior of terms that are added to log odds."""
        across = design.T.tocsr()
        row = np.repeat(np.arange(odds.size), np.diff(design.indptr))

        def loss(at: Floats) -> tuple[float, Floats, Floats]:
            moved = odds + design @ at
            losses = log_losses(moved, self.events.happened)
            p = special.expit(moved)
            slope = across @ (self.weight * (p - self.events.happened)) + precision * at
            return self.weight @ losses + precision @ at**2 / 2, slope, p

        def curvature(p: Floats) -> Floats:
            weighted = design.copy()
            weighted.data *= (self.weight * p * (1 - p))[row]
            return (across @ weighted).toarray() + np.diag(precision)

        at = newton(loss, curvature, np.zeros(design.shape[1]), LEAST_EVENT_DECREMENT)
        value, _, p = loss(at)
        log_volume = np.log(precision).sum() - np.linalg.slogdet(curvature(p))[1]
        return at, float(log_volume / 2 - value)

    def log_p_values(self, moved: Floats, masks: Floats, is_done: Mask) -> Floats:
        """Return log p-values of Rao's score test of terms of each group, given those of others.

        Groups with terms have p-value 1, and so have groups with fewer than 30 rows, or fewer than
        5 expected rows with or without the event.
        """
        p = special.expit(moved)
        variance = self.weight * p * (1 - p)
        residual = self.weight * (self.events.happened - p)
        done = np.column_stack((masks[:, is_done], masks[:, is_done] * self.score[:, None]))
        unexplained = unexplained_by(done, variance)
        found = np.zeros(masks.shape[1])
        expected = np.minimum((self.weight * p) @ masks, (self.weight * (1 - p)) @ masks)
        is_testable = (masks.sum(axis=0) >= FEWEST_TESTED) & (expected >= FEWEST_EVENTS)
        for group in np.flatnonzero(~is_done & is_testable):
            mean = np.average(self.score, weights=variance * masks[:, group])
            # slopes within the group are around its own mean
            own = masks[:, [group]] * np.column_stack((np.ones(p.size), self.score - mean))
            left = unexplained(own)
            cover = (left.T * (self.weight * variance)) @ left
            size = np.diag((own.T * (self.weight * variance)) @ own)
            kept = np.diag(cover) > LEAST_LEFT * np.maximum(size, 1e-12)
            if kept.any():
                sums = left[:, kept].T @ residual
                solved = np.linalg.pinv(cover[np.ix_(kept, kept)]) @ sums
                found[group] = stats.chi2.logsf(sums @ solved, kept.sum())
        return found
