"""Inputs and outputs of networks, on scales that are roughly normal, and the ensemble's spread."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from scipy import optimize, special

from evenhand._validate import Floats, InputError, Ints, Mask, check_indices
from evenhand.distributions import NormalMixture
from evenhand.forecasters.samples import smallest_gap, weighted_quantiles

if TYPE_CHECKING:
    import torch

    from evenhand.forecasters.network.training import RowLoss


# --- skewed scales: increasing functions of scores that are roughly normal (Tukey's g)

PROBABILITIES = (0.1, 0.5, 0.9)
NORMAL_SCORE = 1.2815515655446004
"""Score of the last of these quantiles under a standard normal distribution."""

LEAST_SIDE = 0.02
"""Distance of an outer quantile from the median, in standard deviations, below which a variable is
only standardized: most of its values are the same."""

MAX_SKEW = 1.0
FEW_ROWS = 50
"""Number of rows at which the estimated skewness is halved."""

SMALLEST = 0.02
"""Value of 1 + g v below which the logarithm is continued by its tangent."""

REACH = (-4.0, 6.0)
"""Scores beyond which the exponential of outcomes is continued by its tangent at the latest."""


def robust_scale(values: Floats, weight: Floats) -> tuple[float, float, float]:
    """Return offset, unit and skewness g of a variable.

    If the variable is `offset + unit * (exp(g score) - 1) / g` with a standard normal score, its
    quantiles at 10%, 50% and 90% determine all three. For g = 0 it is normal, for g = 1 lognormal.

    References
    ----------
    Hoaglin, Summarizing shape numerically: the g-and-h distributions, 1985.
    """
    mean = float(np.average(values, weights=weight))
    std = float(np.sqrt(np.average((values - mean) ** 2, weights=weight))) or 1.0
    low, middle, high = weighted_quantiles(values, weight, PROBABILITIES)
    if min(high - middle, middle - low) <= LEAST_SIDE * std:
        return mean, std, 0.0
    skew = math.log((high - middle) / (middle - low)) / NORMAL_SCORE
    skew *= values.size / (values.size + FEW_ROWS)
    skew = min(max(skew, -MAX_SKEW), MAX_SKEW)
    # the limit of the expression below for g to 0, where it cannot be evaluated
    if abs(skew) < 1e-3:
        return middle, (high - low) / (2 * NORMAL_SCORE), 0.0
    return middle, skew * (high - low) / (2 * math.sinh(skew * NORMAL_SCORE)), skew


def skew_scores(units: Floats, skew: Floats | float) -> Floats:
    """Return log(1 + g units) / g, or the units where g is 0; the inverse of `Skew.place`."""
    argument = 1 + np.asarray(skew) * units
    logarithm = np.log(np.maximum(argument, SMALLEST))
    tangent = np.minimum(argument - SMALLEST, 0.0) / SMALLEST
    with np.errstate(invalid="ignore"):
        scores = (logarithm + tangent) / np.where(skew == 0, 1.0, skew)
    return np.where(skew == 0, units, scores)


@dataclass(frozen=True)
class Skew:
    """Map from scores to outcomes in units: (exp(g score) - 1) / g, linear beyond two scores.

    Parameters
    ----------
    g : float
        Skewness; 0 is the identity.
    low, high : float
        Scores beyond which the map is linear, so that no outcome is out of reach.
    """

    g: float = 0.0
    low: float = REACH[0]
    high: float = REACH[1]

    @classmethod
    def reaching(cls, units: Floats, g: float) -> Skew:
        """Return the map that is exponential on the range of the outcomes."""
        scores = skew_scores(units, g)
        return cls(g, max(float(scores.min()), REACH[0]), min(float(scores.max()), REACH[1]))

    def place(self, score: Any, library: Any = np) -> tuple[Any, Any]:
        """Return outcomes and slopes at scores; `library` is numpy or torch."""
        if self.g == 0:
            return score, 1.0
        inside = library.clip(score, self.low, self.high)
        slope = library.exp(self.g * inside)
        return library.expm1(self.g * inside) / self.g + slope * (score - inside), slope


# --- inputs of networks: encoded columns with short tails, and their places among bins

LEAST_VALUES = 6
"""Fewest distinct values of a column that is transformed; others are indicators or few levels."""

BEND = 3.0
"""Score beyond which scores are compressed."""

LEVEL_RANGE = 2.0
"""Largest range of a column of few values: a standardized indicator of a rare level has a larger
one, which would make its level dominate all other inputs."""

BOUND = 8.0
"""Bound on columns of few values, which later rows may have other values of."""

ROWS_PER_BIN = 100
LEAST_BINS = 8
MOST_BINS = 48
MOST_BIN_INPUTS = 600
BIN_SCALE = 3.0
"""Difference of a bin's input between its two ends."""


@dataclass(frozen=True)
class Inputs:
    """Transformation of encoded columns into inputs of networks.

    Numbers become scores that are roughly normal, so that a skewed or heavy-tailed column has no
    values far from the others. Bins (a piecewise linear encoding) add inputs that grow from one
    quantile of a column to the next and are constant elsewhere: with them a network follows steps
    and fast changes, which it learns slowly from a single input.

    Parameters
    ----------
    factor : ndarray of shape (n_columns,)
        Factors of the columns of few values; 1 for the others.
    columns : ndarray of shape (n_transformed,)
        Encoded columns that are transformed.
    offset, unit, skew : ndarray of shape (n_transformed,)
        Scales of these columns.
    binned, low, width : ndarray of shape (n_bins,)
        Encoded column of each bin, its lower end and its width, in scores.

    References
    ----------
    Gorishniy, Rubachev & Babenko, On embeddings for numerical features in tabular deep learning,
    NeurIPS 2022; Holzmueller, Grinsztajn & Steinwart, Better by default, NeurIPS 2024.
    """

    factor: Floats
    columns: Ints
    offset: Floats
    unit: Floats
    skew: Floats
    binned: Ints
    low: Floats
    width: Floats

    @classmethod
    def fit(cls, encoded: Floats) -> Self:
        """Learn the scales, and bins if there are enough rows for them."""
        n = encoded.shape[0]
        columns = [
            j for j in range(encoded.shape[1]) if np.unique(encoded[:, j]).size >= LEAST_VALUES
        ]
        scales = [robust_scale(encoded[:, j], np.ones(n)) for j in columns]
        offset, unit, skew = np.array(scales, dtype=np.float64).reshape(-1, 3).T
        factor = 1 / np.maximum(np.ptp(encoded, axis=0) / LEVEL_RANGE, 1.0)
        factor[columns] = 1.0
        places = np.array(columns, dtype=np.intp)
        none = np.zeros(0)
        plain = cls(factor, places, offset, unit, skew, places[:0], none, none)
        n_bins = min(MOST_BINS, n // ROWS_PER_BIN, MOST_BIN_INPUTS // max(len(columns), 1))
        if not columns or n_bins < LEAST_BINS:
            return plain
        scores = plain._scores(encoded)
        levels = np.linspace(0, 1, n_bins + 1)
        ends = [np.unique(np.quantile(scores[:, i], levels)) for i in range(len(columns))]
        return replace(
            plain,
            binned=np.repeat(plain.columns, [end.size - 1 for end in ends]),
            low=np.concatenate([end[:-1] for end in ends]),
            width=np.concatenate([np.diff(end) for end in ends]),
        )

    @property
    def has_bins(self) -> bool:
        """Whether there are inputs of bins."""
        return self.binned.size > 0

    def without_bins(self) -> Self:
        """Return the same transformation without bins."""
        return replace(self, binned=self.binned[:0], low=self.low[:0], width=self.width[:0])

    def transform(self, encoded: Floats) -> Floats:
        """Return the inputs, shape (n, n_columns + n_bins)."""
        inputs = np.clip(encoded * self.factor, -BOUND, BOUND)
        scores = self._scores(encoded)
        # linear near 0, logarithmic far from it
        inputs[:, self.columns] = BEND * np.arcsinh(scores / BEND)
        if not self.has_bins:
            return inputs
        place = np.searchsorted(self.columns, self.binned)
        share = np.clip((scores[:, place] - self.low) / self.width, 0.0, 1.0)
        return np.hstack([inputs, BIN_SCALE * (share - 0.5)])

    def _scores(self, encoded: Floats) -> Floats:
        return skew_scores((encoded[:, self.columns] - self.offset) / self.unit, self.skew)

    def check(self, n_columns: int) -> None:
        """Refuse stored scales and bins that do not match `n_columns` encoded columns."""
        check_indices(self.columns, n_columns, "a column of the inputs")
        sizes = [array.size for array in vars(self).values()]
        is_known = np.isin(self.binned, self.columns).all()
        if sizes != [n_columns, *[sizes[1]] * 4, *[sizes[5]] * 3] or not is_known:
            raise InputError("the scales and the bins of the inputs do not match")


# --- shape of networks

Activation = Literal["leaky_relu", "silu"]
"""Activation function of the hidden layers."""


@dataclass(frozen=True)
class Shape:
    """Shape of one network of a stack.

    Parameters
    ----------
    n_inputs, n_outputs : int
        Numbers of inputs and outputs.
    hidden : tuple of int
        Numbers of units of the hidden layers.
    takes_draw : bool
        Whether the draw `r` is an additional input of all hidden layers except the first, as in
        the paper's published code.
    dropout : float
        Share of the last hidden layer's units that is dropped in training.
    activation : {"leaky_relu", "silu"}
        Activation function of the hidden layers.
    """

    n_inputs: int
    n_outputs: int
    hidden: tuple[int, ...]
    takes_draw: bool
    dropout: float
    activation: Activation = "leaky_relu"

    def layers(self) -> list[tuple[int, int]]:
        """Return the numbers of inputs and outputs of each layer."""
        sizes = [self.n_inputs, *self.hidden, self.n_outputs]
        last = len(self.hidden)
        return [
            (size + int(self.takes_draw and 0 < i < last), sizes[i + 1])
            for i, size in enumerate(sizes[:-1])
        ]


# --- mixtures of normals as functions of a network's outputs

MIN_STD = 0.002
"""Smallest standard deviation of a component, relative to the unit of the outcome."""

CELL_STD = 12**-0.5
"""Standard deviation of an outcome within a rounding cell of width 1."""


@dataclass(frozen=True)
class MixtureOutputs:
    """Mixtures of normals as functions of the outputs of networks.

    The outputs of a row are logits of weights, scores of means and the spreads before softplus. A
    mean is the skewed map of its score, and a standard deviation is in units of the map's slope
    there: where outcomes are skewed, spreads grow with the mean unless the network learns
    otherwise.

    Parameters
    ----------
    skew : Skew
        Map from scores to outcomes in units.
    min_std : float
        Smallest standard deviation of a component, before the slope.
    """

    skew: Skew = field(default_factory=Skew)
    min_std: float = MIN_STD

    @classmethod
    def of(cls, units: Floats, g: float) -> Self:
        """Return the outputs for outcomes in units of skewness g."""
        # on a grid, a component narrower than a cell raises the density and nothing else
        return cls(Skew.reaching(units, g), max(MIN_STD, CELL_STD * smallest_gap(units)))

    def mixtures(self, out: Floats) -> tuple[Floats, Floats, Floats]:
        """Return weights, means and standard deviations, in units of the outcome."""
        logits, score, raw = np.split(out, 3, axis=-1)
        loc, slope = self.skew.place(score)
        # softmax and softplus make any output a valid mixture
        std = slope * (np.logaddexp(0.0, raw) + self.min_std)
        return special.softmax(logits, axis=-1), loc, std

    def row_loss(self) -> RowLoss:
        """Return the log loss of each row."""
        import torch

        from evenhand.losses import nll_loss

        log_root = 0.5 * float(np.log(2 * np.pi))

        def loss(
            out: torch.Tensor, y: torch.Tensor, r: torch.Tensor | None, numbers: torch.Tensor
        ) -> torch.Tensor:
            # sums over the few components of a row are several times faster along the first axis
            logits, score, raw = out.movedim(-1, 0).contiguous().chunk(3)
            loc, slope = self.skew.place(score, torch)
            std = slope * (torch.nn.functional.softplus(raw) + self.min_std)
            z = (y - loc) / std
            parts = logits - 0.5 * z * z - torch.log(std)
            log_density = torch.logsumexp(parts, dim=0) - torch.logsumexp(logits, dim=0) - log_root
            return nll_loss(log_density)

        return loss


# --- recalibration of an ensemble's spread from the rows that its members held out

FEW_HELD_OUT = 100
"""Number of held-out forecasts at which the logarithm of the factor is halved."""

FACTOR_RANGE = (0.6, 1.6)
"""Range of the factor."""


def spread_factor(
    weights: Floats, loc: Floats, std: Floats, y: Floats, row_weight: Floats, held: Mask
) -> float:
    """Return the factor for the components' standard deviations of an ensemble.

    A member's factor t maximizes the likelihood of the rows that it held out. The ensemble needs
    another one: averaging m members takes away (m - 1) / m of their variance v from the error of
    the mean, and the mixture already adds as much to its own variance. With variances in units of
    a member's own variance, t^2 = error + v becomes (t^2 - c) / (1 + c), c = v (m - 1) / m.

    Parameters
    ----------
    weights, loc, std : ndarray of shape (n_members, n, n_components)
        Mixtures that the members predict.
    y, row_weight : ndarray of shape (n,)
        Outcomes and weights.
    held : ndarray of bool of shape (n_members, n)
        Whether a member held out a row.
    """
    if held.all():  # rows that no member learned from: the ensemble is a single member
        weights, loc, std = (
            np.concatenate(list(array), axis=-1)[None] for array in (weights / len(held), loc, std)
        )
        held = held[:1]
    member, row = np.nonzero(held)
    parts = (weights[member, row], loc[member, row], std[member, row])
    share = row_weight[row] / row_weight[row].sum()

    def loss(log_factor: float) -> float:
        mixture = NormalMixture(*parts[:2], parts[2] * np.exp(log_factor))
        return -float(share @ mixture.logpdf(y[row]))

    bounds = tuple(np.log(FACTOR_RANGE))
    found = optimize.minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    own = np.exp(2 * found.x)
    common = _variance_between(weights, loc, std)
    squared = (own - common) / (1 + common)
    log_factor = 0.5 * np.log(np.clip(squared, FACTOR_RANGE[0] ** 2, FACTOR_RANGE[1] ** 2))
    return float(np.exp(log_factor * member.size / (member.size + FEW_HELD_OUT)))


def _variance_between(weights: Floats, loc: Floats, std: Floats) -> float:
    """Return (m - 1) / m times the mean variance of m members' means, in own variances."""
    mean = (weights * loc).sum(axis=-1)
    own = (weights * (std**2 + (loc - mean[..., None]) ** 2)).sum(axis=-1)
    # the population variance is (m - 1) / m times the unbiased one
    return float(np.mean(mean.var(axis=0) / own.mean(axis=0)))
