"""Neural forecasters: mixture density networks, and networks that take the draw as an input.

Training, which needs torch, is imported on first use.
"""

from __future__ import annotations

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special
from sklearn.exceptions import ConvergenceWarning

from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    Mask,
    Pair,
    bad_input,
    check_count,
    check_fraction,
    check_indices,
    check_outcomes,
    check_rows,
    require_extra,
)
from evenhand.distributions import Distribution, Normal, NormalMixture
from evenhand.draws import RandomState, as_draws
from evenhand.forecast import Forecast
from evenhand.forecasters.base import Bounds, Forecaster, check_integers, check_support
from evenhand.forecasters.samples import smallest_gap, weighted_quantiles
from evenhand.tables import TableEncoder

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


def mean_and_std(values: Floats, weight: Floats) -> tuple[float, float]:
    """Return the mean and the standard deviation of a variable, 1 if all values are equal."""
    mean = float(np.average(values, weights=weight))
    return mean, float(np.sqrt(np.average((values - mean) ** 2, weights=weight))) or 1.0


def robust_scale(values: Floats, weight: Floats) -> tuple[float, float, float]:
    """Return offset, unit and skewness g of a variable.

    If the variable is `offset + unit * (exp(g score) - 1) / g` with a standard normal score, its
    quantiles at 10%, 50% and 90% determine all three (Hoaglin, Summarizing shape numerically: the
    g-and-h distributions, 1985). For g = 0 it is normal, for g = 1 lognormal.
    """
    mean, std = mean_and_std(values, weight)
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
    argument = 1 + skew * units
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

# a standardized indicator of a rare level has a larger one, and would dominate all other inputs
LEVEL_RANGE = 2.0
"""Largest range of a column of few values."""

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
        """Learn the scales, without bins."""
        n = encoded.shape[0]
        columns = [
            j for j in range(encoded.shape[1]) if np.unique(encoded[:, j]).size >= LEAST_VALUES
        ]
        scales = [robust_scale(encoded[:, j], np.ones(n)) for j in columns]
        offset, unit, skew = np.array(scales, dtype=float).reshape(-1, 3).T
        factor = 1 / np.maximum(np.ptp(encoded, axis=0) / LEVEL_RANGE, 1.0)
        factor[columns] = 1.0
        places = np.array(columns, dtype=int)
        none = np.zeros(0)
        return cls(factor, places, offset, unit, skew, places[:0], none, none)

    def with_bins(self, encoded: Floats) -> Self:
        """Learn bins, if there are enough rows for them."""
        n, n_columns = len(encoded), self.columns.size
        n_bins = min(MOST_BINS, n // ROWS_PER_BIN, MOST_BIN_INPUTS // max(n_columns, 1))
        if not n_columns or n_bins < LEAST_BINS:
            return self
        levels = np.linspace(0, 1, n_bins + 1)
        ends = [np.unique(np.quantile(scores, levels)) for scores in self._scores(encoded).T]
        return replace(
            self,
            binned=np.repeat(self.columns, [end.size - 1 for end in ends]),
            low=np.concatenate([end[:-1] for end in ends]),
            width=np.concatenate([np.diff(end) for end in ends]),
        )

    def transform(self, encoded: Floats) -> Floats:
        """Return the inputs, shape (n, n_columns + n_bins)."""
        inputs = np.clip(encoded * self.factor, -BOUND, BOUND)
        scores = self._scores(encoded)
        # linear near 0, logarithmic far from it
        inputs[:, self.columns] = BEND * np.arcsinh(scores / BEND)
        if not self.binned.size:
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

    def parts(self) -> dict[str, tuple[int, int]]:
        """Return the shapes of the kernels of all layers, then of their biases, by their names."""
        layers = self.layers()
        biases = {f"bias_{i}": (1, n_out) for i, (_, n_out) in enumerate(layers)}
        return {f"kernel_{i}": size for i, size in enumerate(layers)} | biases


# --- mixtures of normals as functions of a network's outputs

LOG_ROOT_2PI = 0.5 * float(np.log(2 * np.pi))

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
        scores = skew_scores(units, g)
        # exponential on the range of the outcomes
        skew = Skew(g, max(float(scores.min()), REACH[0]), min(float(scores.max()), REACH[1]))
        # on a grid, a component narrower than a cell raises the density and nothing else
        return cls(skew, max(MIN_STD, CELL_STD * smallest_gap(units)))

    def mixtures(self, out: Floats) -> tuple[Floats, Floats, Floats]:
        """Return weights, means and standard deviations, in units of the outcome."""
        logits, score, raw = np.split(out, 3, axis=-1)
        loc, slope = self.skew.place(score)
        # softmax and softplus make any output a valid mixture
        std = slope * (np.logaddexp(0.0, raw) + self.min_std)
        return special.softmax(logits, axis=-1), loc, std

    def loss(self, out: Any, y: Any) -> Any:
        """Return the log loss of each row of tensors."""
        import torch

        from evenhand.losses import nll_loss

        # sums over the few components of a row are several times faster along the first axis
        logits, score, raw = out.movedim(-1, 0).contiguous().chunk(3)
        loc, slope = self.skew.place(score, torch)
        std = slope * (torch.nn.functional.softplus(raw) + self.min_std)
        z = (y - loc) / std
        parts = logits - 0.5 * z * z - torch.log(std)
        log_density = torch.logsumexp(parts, dim=0) - torch.logsumexp(logits, dim=0) - LOG_ROOT_2PI
        return nll_loss(log_density)


# --- recalibration of an ensemble's spread from the rows that its members held out

FEW_HELD_OUT = 100
"""Number of held-out forecasts at which the logarithm of the factor is halved."""

FACTOR_RANGE = (0.6, 1.6)
"""Range of the factor."""


def spread_factor(
    weights: Floats, loc: Floats, std: Floats, y: Floats, row_weight: Floats, held: Mask
) -> float:
    """Return the factor for the components' standard deviations of an ensemble.

    A member's factor t maximizes the likelihood of the rows that it held out, `held` of shape
    (n_members, n). The ensemble needs another one: averaging m members takes away (m - 1) / m of
    their variance v from the error of the mean, and the mixture already adds as much to its own
    variance. With variances in units of a member's own variance, t^2 = error + v becomes (t^2 - c)
    / (1 + c), c = v (m - 1) / m. The mixtures of the members have the shape (n_members, n,
    n_components).
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
        return -(share @ NormalMixture(*parts[:2], parts[2] * np.exp(log_factor)).logpdf(y[row]))

    bounds = tuple(np.log(FACTOR_RANGE))
    found = optimize.minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    own = np.exp(2 * found.x)
    # (m - 1) / m times the mean variance of m members' means, in own variances: the population
    # variance is (m - 1) / m times the unbiased one
    mean = (weights * loc).sum(axis=-1)
    variance = (weights * (std**2 + (loc - mean[..., None]) ** 2)).sum(axis=-1)
    common = np.mean(mean.var(axis=0) / variance.mean(axis=0))
    squared = (own - common) / (1 + common)
    log_factor = 0.5 * np.log(np.clip(squared, FACTOR_RANGE[0] ** 2, FACTOR_RANGE[1] ** 2))
    return float(np.exp(log_factor * member.size / (member.size + FEW_HELD_OUT)))


# --- what both forecasters share


@dataclass(eq=False, repr=False, kw_only=True)
class NeuralForecaster(Forecaster):
    """Base of neural forecasters; subclasses have parameters of their own and a row loss."""

    hidden: tuple[int, ...]
    validation_fraction: float = 0.15
    device: str = "auto"
    support: Bounds = None
    random_state: RandomState = None
    verbose: bool = False

    takes_draw: ClassVar[bool]
    activation: ClassVar[Activation] = "leaky_relu"
    splits_by_network: ClassVar[bool] = False
    """Whether each network has its own rows for early stopping."""
    learned = Forecaster.learned | {
        "encoder_": TableEncoder,
        "inputs_": Inputs | None,
        "y_offset_": float,
        "y_unit_": float,
        "shape_": Shape,
        "weights_": dict[str, np.ndarray],
        "n_steps_": np.ndarray,
        "validation_loss_": np.ndarray,
    }

    inputs_ = None
    """Transformation of the encoded rows; None uses them as they are."""

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Train the networks.

        Parameters
        ----------
        X : DataFrame or array-like of shape (n, n_features)
            Training rows; a table may contain numbers, categories, text, booleans, dates and
            missing values.
        y : array-like of shape (n,)
            Continuous outcomes.
        sample_weight : array-like of shape (n,), optional
            Weights of the rows.
        X_val, y_val : optional
            Rows for early stopping instead of a share of the training rows. They must not be the
            test rows.

        Returns
        -------
        self

        Warns
        -----
        ConvergenceWarning
            If the held-out losses of a `MixtureMLPRegressor` still fell when training could not be
            made longer.
        """
        self._fit((X, y, sample_weight, X_val, y_val))
        return self

    @abstractmethod
    def _fit(self, data: Any) -> None:
        """Train with the arguments of `fit`."""

    def _scale_outcomes(self, y: Floats, weight: Floats) -> tuple[float, float]:
        """Return the offset and the unit of the outcome for the networks."""
        return mean_and_std(y, weight)

    def _learn(
        self, data: Any, n_networks: int, n_outputs: int, options_of: Callable[..., Any], loss: Any
    ) -> Any:
        """Encode, split and train; set what all networks share, and return the training.

        `options_of` are inputs, dropout and settings to choose from, for encoded rows and the
        number of rows to learn from; `loss` is that of each row, as `RowLoss`.
        """
        require_extra("torch", "neural")
        from evenhand.forecasters import training

        self._check_parameters()
        X, y, weight, X_val, y_val = data
        given = self._check_training(X, y, weight)
        check_outcomes(given.y)
        outcomes, weight = self._learn_support(given.y, given.X), given.weights
        # the encoder is fitted on all rows; rows for early stopping are held out afterwards
        self.encoder_ = TableEncoder()
        x, n = self.encoder_.fit_transform(given.X), outcomes.size
        self.y_offset_, self.y_unit_ = self._scale_outcomes(outcomes, weight)
        if X_val is None and y_val is None:
            n_splits = n_networks if self.splits_by_network else 1
            learning, validation = training.split_rows(
                n, self.validation_fraction, n_splits, given.random
            )
        else:
            x_val, more = self._validation_rows(X_val, y_val)
            x, outcomes = np.concatenate((x, x_val)), np.concatenate((outcomes, more))
            learning, validation = np.arange(n)[None], np.arange(n, outcomes.size)[None]
        # weights of mean 1 do not change the effective learning rate
        weight = np.append(weight / weight.mean(), np.ones(outcomes.size - n))
        unit = (outcomes - self.y_offset_) / self.y_unit_
        rows = training.EncodedRows(x, unit, weight, learning, validation)
        options = options_of(x[:n], learning.shape[1])
        candidates = [self._candidate(rows, n_outputs, *option) for option in options]
        chosen, best = training.train_best(
            candidates,
            n_networks,
            loss,
            device=self.device,
            random_state=given.random,
            verbose=self.verbose,
        )
        self.inputs_, self.shape_ = options[chosen][0], best.shape
        self.weights_, self.n_steps_, self.validation_loss_ = best.result()
        return best

    def _candidate(
        self, rows: Any, n_outputs: int, inputs: Inputs | None, dropout: Any, settings: Any
    ) -> Any:
        from evenhand.forecasters.training import Candidate

        x = rows.x if inputs is None else inputs.transform(rows.x)
        # NumPy integers, for instance of a grid search, cannot be stored as JSON
        hidden = tuple(int(units) for units in self.hidden)
        share = check_fraction("dropout", dropout, low_open=False)
        shape = Shape(x.shape[1], n_outputs, hidden, self.takes_draw, share, self.activation)
        return Candidate(shape, replace(rows, x=x), settings)

    def _settings(self, **others: Any) -> Any:
        """Return settings of a training: the parameters of these names, and others."""
        from evenhand.forecasters.training import Settings

        names = (one.name for one in fields(Settings) if hasattr(self, one.name))
        return Settings(**{name: getattr(self, name) for name in names} | others)

    def _check_parameters(self) -> None:
        """Check the counts and the layers."""
        check_integers(self)
        if np.ndim(self.hidden) != 1 or len(self.hidden) < 1 + self.takes_draw:
            # the draw is an input of the second hidden layer, so fewer layers would ignore it
            least = "two hidden layers" if self.takes_draw else "one hidden layer"
            rule = f"list the numbers of units of at least {least}"
            raise bad_input("hidden", rule, repr(self.hidden))
        for i, units in enumerate(self.hidden):
            check_count(f"hidden[{i}]", units)

    def _validation_rows(self, X_val: Any, y_val: Any) -> Pair:
        """Return encoded rows for early stopping, and their outcomes on the line."""
        if X_val is None or y_val is None:
            raise bad_input("X_val and y_val", "be given together", "only one of them")
        given = check_rows("y_val", y_val, len(X_val))
        check_support(given, self.support, name="y_val")
        return self.encoder_.transform(self._check_rows(X_val, reset=False)), self._to_line(given)

    def _outputs_of(self, encoded: Floats, r: Floats | None) -> Floats:
        """Return float64 outputs for encoded rows (and draws), with networks on the first axis."""
        require_extra("torch", "neural")
        from evenhand.forecasters.training import score

        return score(self.shape_, self.weights_, encoded, r, self.device)

    def _encode(self, rows: Any) -> Floats:
        encoded = self.encoder_.transform(rows)
        return encoded if self.inputs_ is None else self.inputs_.transform(encoded)

    def _set_up(self) -> None:
        super()._set_up()
        n_inputs = len(self.encoder_.names_out)
        if self.inputs_ is not None:
            self.inputs_.check(n_inputs)
            n_inputs += self.inputs_.binned.size
        # weights of another shape, of an edited model folder, would broadcast or fail inside torch
        for name, size in replace(self.shape_, n_inputs=n_inputs).parts().items():
            array = self.weights_.get(name)
            if array is None or array.shape[1:] != size or not np.isfinite(array).all():
                raise InputError(
                    f"the stored weights do not match the network: {name} must have the shape"
                    f" (k, {size[0]}, {size[1]}) and finite values; save the model again"
                )


# --- ensemble of mixture density networks, trained by likelihood

STRENGTHS = ((0.0, 0.01), (0.2, 0.1), (0.3, 1.0))
"""Dropout and weight decay that are tried where neither is given."""

BIN_STRENGTHS = 2
"""Number of the first of these pairs that are also tried with inputs of bins."""

RECALIBRATION_ROWS = 4000
"""Most held-out rows that are used to recalibrate."""

BATCHES = ((1000, 64), (5000, 128))
LARGEST_BATCH = 256
"""Numbers of rows below which, and sizes of a batch."""

USUAL_STEPS = 1250
FEWEST_PASSES = 30
MOST_PASSES = 200
"""A training has the usual number of steps at first, unless that is too few or too many passes."""

MOST_STEPS = 5000
"""Largest number of steps of a training that is made longer as it still improves."""

USUAL_CHECKS = 60

LAST_RATE = 0.01


@dataclass(eq=False, repr=False)
class MixtureMLPRegressor(NeuralForecaster):
    """Deterministic mixture forecasts from a small ensemble of networks.

    Each network predicts a mixture of normals and is trained by maximum likelihood; the forecast is
    the mixture of all of them. The members are trained together, with separate initial weights,
    batches and early stopping.

    Parameters
    ----------
    n_members : int, default 8
        Number of networks in the ensemble.
    n_components : int, default 4
        Number of normal components of each network.
    hidden : tuple of int, default (64, 64, 64, 64)
        Numbers of units of the hidden layers.
    dropout, weight_decay : float, optional
        Share of the last hidden layer's units dropped in training, and weight decay of AdamW. If
        neither is given, three pairs from (0, 0.01) to (0.3, 1) are tried: trainings that are worse
        on the members' held-out rows are stopped after 5% and after 40% of the steps. On large
        tables they are tried with few of the members. One without the other is (0, 0.01) for the
        one left out.
    bins : bool, optional
        Whether networks have inputs of bins, which grow from one quantile of a number to the next
        and follow steps and fast changes. By default both are tried with 1,000 rows or more; with
        fewer rows there are no bins.
    learning_rate : float, default 0.003
        Step size of AdamW; it decays along a half cosine to a hundredth.
    batch_size : int, optional
        Number of rows per step; by default 64 with fewer than 1,000 rows, 128 with fewer than
        5,000, and 256 otherwise.
    max_steps : int, optional
        Largest number of steps. A training has 1,250 steps at first, but at least 30 and at most
        200 passes over the rows. If the mean held-out loss still falls after 40% of the steps, by
        more than 0.02 nats in the last quarter of these, there are twice as many, and so on, up to
        `max_steps`; by default 5,000, or 30 passes where that is more.
    patience : int, default 10
        Number of checks without a better validation loss after which a network stops.
    check_every : int, optional
        Number of steps between checks, twice as many in a training of twice as many steps; by
        default a sixtieth of all steps.
    validation_fraction : float, default 0.15
        Share of the training rows that each network holds out for early stopping. Different
        networks hold out different rows, so that the ensemble is trained on all rows.
    device : {"auto", "cpu", "cuda"}, default "auto"
        Device for training and prediction; "auto" uses a CUDA device if there is one.
    support : tuple of (float or None, float or None), optional
        Bounds of the outcome, with None on a side without bound: (0, None) for amounts of money.
        The network then predicts outcomes on a logarithmic or logistic scale, and no forecast is
        outside the bounds. Outcomes may be at a bound in at most 2% of the rows.
    random_state : int, generator or None
        Seed of the split, the initial weights and the batches.
    verbose : bool, default False
        Whether to show a progress bar on a terminal.

    Attributes
    ----------
    weights_ : dict of str to ndarray
        Parameters of the networks, with members along the first axis.
    n_steps_, validation_loss_ : ndarray of shape (n_members,)
        Number of optimizer steps and best validation loss of each member, in nats and with
        outcomes in units of `y_unit_`.
    spread_factor_ : float
        Factor of the components' standard deviations, estimated from the members' held-out rows.
    strength_ : tuple of float
        Dropout and weight decay that were chosen.
    support_ : Support or None
        Map of outcomes to the line; None without `support`.
    schema_ : Schema
        Kinds, levels and ranges of the columns of the training table, by which every table is read.

    References
    ----------
    Bishop, Mixture density networks, 1994; Lakshminarayanan, Pritzel & Blundell, NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=300)
    >>> model = MixtureMLPRegressor(max_steps=50, random_state=0).fit(X, y)
    >>> model.forecast(X[:5]).mean().shape
    (5,)
    """

    n_members: int = 8
    n_components: int = 4
    _: KW_ONLY
    hidden: tuple[int, ...] = (64, 64, 64, 64)
    dropout: float | None = None
    bins: bool | None = None
    learning_rate: float = 3e-3
    weight_decay: float | None = None
    batch_size: int | None = None
    max_steps: int | None = None
    patience: int = 10
    check_every: int | None = None

    takes_draw: ClassVar[bool] = False
    # smooth activations fit better than piecewise linear ones, and with a different validation set
    # for each network the ensemble is trained on all rows
    activation: ClassVar[Activation] = "silu"
    splits_by_network: ClassVar[bool] = True

    learned = NeuralForecaster.learned | {
        "outputs_": MixtureOutputs,
        "spread_factor_": float,
        "strength_": tuple[float, float],
    }

    # of an unfitted model
    outputs_ = MixtureOutputs()
    spread_factor_ = 1.0

    def _fit(self, data: Any) -> None:
        best = self._learn(
            data,
            self.n_members,
            3 * self.n_components,
            self._options,
            lambda out, y, r, numbers: self.outputs_.loss(out, y),
        )
        self.strength_ = (best.shape.dropout, best.settings.weight_decay)
        self.spread_factor_ = 1.0
        # rows that the members learned from would show too small a spread
        if best.rows.validation is not best.rows.learning:
            self.spread_factor_ = self._spread_factor(best.rows)
        if best.is_unfinished:
            from evenhand.forecasters.training import UNFINISHED

            warnings.warn(
                f"held-out losses still fell by more than {UNFINISHED} nats when training could not"
                f" be made longer than {self.max_steps or MOST_STEPS} steps; raise max_steps",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _distribution(self, rows: Any) -> Distribution:
        encoded = self._encode(rows)
        # (members, rows, components) -> (rows, members * components), with equal weights
        weights, loc, std = (
            np.moveaxis(array, 0, 1).reshape(encoded.shape[0], -1)
            for array in self.outputs_.mixtures(self._outputs_of(encoded, None))
        )
        loc = self.y_offset_ + self.y_unit_ * loc
        return NormalMixture(weights, loc, self.y_unit_ * self.spread_factor_ * std)

    def _scale_outcomes(self, y: Floats, weight: Floats) -> tuple[float, float]:
        offset, unit, g = robust_scale(y, weight)
        self.outputs_ = MixtureOutputs.of((y - offset) / unit, g)
        return offset, unit

    def _options(self, x: Floats, n: int) -> list[tuple[Inputs | None, float, Any]]:
        """Return inputs, dropout and settings to choose from, for n rows of x to learn from."""
        strengths: Any = STRENGTHS
        given = self.dropout, self.weight_decay
        if given != (None, None):
            both = zip(given, STRENGTHS[0], strict=True)
            strengths = [tuple(float(usual if one is None else one) for one, usual in both)]
        inputs = Inputs.fit(x)
        with_bins = inputs.with_bins(x)
        plain = [(inputs, strength) for strength in strengths]
        binned = [(with_bins, strength) for strength in strengths[:BIN_STRENGTHS]]
        if self.bins is False or with_bins is inputs:
            chosen = plain
        else:
            chosen = binned if self.bins else plain + binned
        return [
            (one, dropout, self._settings(weight_decay=weight_decay, **self._steps(n)))
            for one, (dropout, weight_decay) in chosen
        ]

    def _steps(self, n: int) -> dict[str, Any]:
        """Return the settings for n rows to learn from; None depends on this number."""
        usual = next((size for below, size in BATCHES if n < below), LARGEST_BATCH)
        batch_size = min(self.batch_size or usual, n)
        per_pass = n // batch_size
        steps = per_pass * min(max(USUAL_STEPS // per_pass, FEWEST_PASSES), MOST_PASSES)
        longest = self.max_steps or max(MOST_STEPS, steps)
        max_steps = min(steps, longest)
        return {
            "batch_size": batch_size,
            "max_steps": max_steps,
            "longest": longest,
            "check_every": self.check_every or max(1, max_steps // USUAL_CHECKS),
            "last_rate": LAST_RATE,
            "decays_biases": False,
        }

    def _spread_factor(self, rows: Any) -> float:
        """Return the factor of the standard deviations, from the rows that members held out."""
        held_out = np.broadcast_to(rows.validation, (self.n_members, rows.validation.shape[1]))
        held = np.zeros((self.n_members, rows.y.size), dtype=bool)
        np.put_along_axis(held, held_out, True, axis=1)
        # some rows of each member, in the random order of the split
        some = np.unique(rows.validation.T.ravel()[:RECALIBRATION_ROWS])
        arrays = self.outputs_.mixtures(self._outputs_of(rows.x[some], None))
        return spread_factor(*arrays, rows.y[some], rows.weight[some], held[:, some])


# --- PAIC: a network that takes the draw as an input (Zhao, Ma & Ermon, ICML 2020)

PAIC_MIN_STD = 0.01
PAIC_STD_RANGE = 5.0


@dataclass(eq=False, repr=False)
class PAICRegressor(NeuralForecaster):
    """Randomized normal forecasts from a network trained for individual calibration.

    Network and objective are those of the paper: three hidden layers of 100 units, the draw as an
    additional input of the second and third, dropout 0.5 before the last layer, and a normal output
    with standard deviation `5 sigmoid(.) + 0.01` in raw units of `y`. The loss is `(1 - alpha)
    |h[x, r](y) - r| - alpha log density`, with a new draw each step. The settings of the optimizer
    differ from the paper.

    Parameters
    ----------
    alpha : float, default 0.1
        Weight of sharpness, 0 < alpha <= 1. Small values favor calibration for every group; 1 is
        maximum likelihood.
    hidden : tuple of int, default (100, 100, 100)
        Numbers of units of the hidden layers.
    dropout : float, default 0.5
        Share of the last hidden layer's units dropped in training.
    standardize_y : bool, default False
        Whether to standardize the outcome. In raw units, as in the paper, predicted standard
        deviations are limited to 0.01 to 5.01: standardize outcomes of another scale.
    learning_rate, weight_decay : float
        Parameters of AdamW; the rate decays along a half cosine to a tenth over `max_steps`.
    batch_size, max_steps : int
        Number of rows per step, and largest number of steps.
    patience, check_every : int
        Number of checks without a better validation loss before a network stops, and number of
        steps between checks.
    validation_fraction : float, default 0.15
        Share of the training rows that is held out for early stopping.
    device : {"auto", "cpu", "cuda"}, default "auto"
        Device for training and prediction; "auto" uses a CUDA device if there is one.
    support : tuple of (float or None, float or None), optional
        Bounds `(low, high)` of the outcome, None on a side without bound: `(0, None)` for money or
        durations. The network is trained on outcomes mapped to the real line, so with a bound
        "raw units" are units of their logarithm.
    random_state : int, generator or None
        Seed of the split, the initial weights, the batches and the draws.
    verbose : bool, default False
        Whether to show a progress bar on a terminal.

    Attributes
    ----------
    weights_ : dict of str to ndarray
        Parameters of the network.
    n_steps_, validation_loss_ : ndarray of shape (1,)
        Number of optimizer steps and best validation loss.
    support_ : Support or None
        Map of outcomes to the line; None without `support`.
    schema_ : Schema
        Kinds, levels and ranges of the columns of the training table, by which every table is read.

    References
    ----------
    Zhao, Ma & Ermon, Individual Calibration with Randomized Forecasting, ICML 2020, sections 4.3
    and 5.2.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> y = X[:, 0] + 0.3 * rng.normal(size=300)
    >>> model = PAICRegressor(alpha=0.1, max_steps=50, random_state=0).fit(X, y)
    >>> model.forecast(X[:5], r=[[0.25, 0.75]]).pit(y[:5]).shape
    (5, 2)
    """

    alpha: float = 0.1
    _: KW_ONLY
    hidden: tuple[int, ...] = (100, 100, 100)
    dropout: float = 0.5
    standardize_y: bool = False
    learning_rate: float = 1e-2
    weight_decay: float = 0.0
    batch_size: int = 128
    max_steps: int = 1100
    patience: int = 25
    check_every: int = 20

    takes_draw: ClassVar[bool] = True

    @classmethod
    def path(
        cls,
        X: Any,
        y: ArrayLike,
        alphas: Sequence[float],
        *,
        sample_weight: ArrayLike | None = None,
        X_val: Any = None,
        y_val: Any = None,
        **params: Any,
    ) -> list[PAICRegressor]:
        """Train one model for each alpha, in a single run.

        The models have different initial weights, batches and draws, which depend on their position
        in the run, and the same rows held out for early stopping.

        Parameters
        ----------
        X, y, sample_weight, X_val, y_val
            As for `fit`.
        alphas : sequence of float
            Weights of sharpness. Repeated values give models that differ only by their seeds.
        **params
            Constructor parameters other than `alpha`.

        Returns
        -------
        list of PAICRegressor
            Fitted models in the order of `alphas`.
        """
        models = [cls(alpha=alpha, **params) for alpha in alphas]
        if not models:
            raise InputError("alphas is empty; give at least one alpha")
        models[0]._fit((X, y, sample_weight, X_val, y_val), models)
        return models

    def _fit(self, data: Any, path: Sequence[PAICRegressor] = ()) -> None:
        """Train `path`, which differ only in alpha, as one stack with the settings of `self`."""
        models = path or [self]
        self._alphas: Any = [
            check_fraction("alpha", model.alpha, high_open=False) for model in models
        ]
        self._learn(data, len(models), 2, self._options, self._row_loss)
        del self._alphas
        shared = {name: value for name, value in vars(self).items() if name.endswith("_")}
        own = "n_steps_", "validation_loss_"
        for i, model in enumerate(models):
            model.__dict__.update(shared | {name: shared[name][i : i + 1] for name in own})
            model.weights_ = {name: array[i : i + 1] for name, array in shared["weights_"].items()}

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        rows = self._encode(self._check_new_rows(X))
        # the draw is an input of the network, which is itself h[x, r]
        draws = as_draws(r, rows.shape[0], random_state)
        out = self._outputs_of(rows, draws.reshape(len(draws), -1))[0]
        out = out.reshape(len(rows), *draws.shape[1:], 2)
        # standard deviations from 0.01 to 5.01, as in the published code
        std = PAIC_STD_RANGE * special.expit(out[..., 1]) + PAIC_MIN_STD
        normal = Normal(self.y_offset_ + self.y_unit_ * out[..., 0], self.y_unit_ * std)
        return Forecast(self._on_support(normal), draws)

    def _scale_outcomes(self, y: Floats, weight: Floats) -> tuple[float, float]:
        if self.standardize_y:
            return super()._scale_outcomes(y, weight)
        line = "" if self.support_ is None else " mapped to the line (support)"
        spread = np.std(y)
        least, most = PAIC_MIN_STD, PAIC_MIN_STD + PAIC_STD_RANGE
        if not 2 * least < spread < most / 2:
            warnings.warn(
                f"the outcome{line} has standard deviation {spread:g}, but the paper's network"
                f" predicts standard deviations from {least:g} to {most:g} in these units;"
                " set standardize_y=True",
                UserWarning,
                stacklevel=5,  # the line that calls fit or path
            )
        return 0.0, 1.0

    def _options(self, *_: Any) -> Any:
        return [(None, self.dropout, self._settings(longest=self.max_steps))]

    def _row_loss(self, out: Any, y: Any, r: Any, numbers: Any) -> Any:
        """Return the loss of each row, as `RowLoss`."""
        import torch

        from evenhand.losses import individual_calibration_loss

        # copied to a GPU once
        self._alphas = torch.as_tensor(self._alphas, dtype=torch.float32, device=out.device)
        std = PAIC_STD_RANGE * torch.sigmoid(out[..., 1]) + PAIC_MIN_STD
        z = (y - out[..., 0]) / std
        # one draw per row and step, so that each row is trained with many draws over the steps
        log_density = -0.5 * z * z - torch.log(std) - LOG_ROOT_2PI
        alpha = self._alphas[numbers][:, None]
        return individual_calibration_loss(torch.special.ndtr(z), log_density, r, alpha)
