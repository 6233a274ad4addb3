"""Deterministic forecaster: ensemble of mixture density networks, trained by likelihood."""

from __future__ import annotations

import numbers
import warnings
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special
from sklearn.exceptions import ConvergenceWarning

from evenhand._validate import Floats, Mask, bad_input, check_fraction, typed
from evenhand.distributions import NormalMixture
from evenhand.draws import RandomState
from evenhand.forecast import Forecast
from evenhand.forecasters.base import State
from evenhand.forecasters.bounds import Bounds
from evenhand.forecasters.network.inputs import Inputs, MixtureOutputs, robust_scale
from evenhand.forecasters.network.neural import NeuralForecaster
from evenhand.forecasters.network.settings import Settings

# --- recalibration of an ensemble's spread from the rows that its members held out

FEW_ROWS = 100
"""Number of held-out forecasts at which the logarithm of the factor is halved."""

RANGE = (0.6, 1.6)
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
    outcome = y[row, None]
    share = row_weight[row] / row_weight[row].sum()

    def loss(log_factor: float) -> float:
        scaled = parts[2] * np.exp(log_factor)
        logs = -0.5 * ((outcome - parts[1]) / scaled) ** 2 - np.log(scaled)
        return -float(share @ special.logsumexp(logs, b=parts[0], axis=-1))

    bounds = tuple(np.log(RANGE))
    found = optimize.minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-3})
    own = np.exp(2 * found.x)
    common = _variance_between(weights, loc, std)
    squared = (own - common) / (1 + common)
    log_factor = 0.5 * np.log(np.clip(squared, RANGE[0] ** 2, RANGE[1] ** 2))
    return float(np.exp(log_factor * member.size / (member.size + FEW_ROWS)))


def _variance_between(weights: Floats, loc: Floats, std: Floats) -> float:
    """Return (m - 1) / m times the mean variance of m members' means, in own variances."""
    mean = (weights * loc).sum(axis=-1)
    own = (weights * (std**2 + (loc - mean[..., None]) ** 2)).sum(axis=-1)
    # the population variance is (m - 1) / m times the unbiased one
    return float(np.mean(mean.var(axis=0) / own.mean(axis=0)))


# --- the forecaster

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
"""A training has the usual number of steps unless that is too few or too many passes."""

USUAL_CHECKS = 60

LAST_RATE = 0.01

UNFINISHED = 0.02
"""Improvement of a network's loss in the last quarter of a training, in nats, that is a sign
that it ended too early."""


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
        on the members' held-out rows are stopped after 10% and after 40% of the steps. On large
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
    max_passes : int, optional
        Largest number of passes over the training rows; by default as many as make 1,250 steps,
        but at least 30 and at most 200.
    max_steps : int, optional
        Largest number of steps, where that is less.
    time_budget : float, optional
        Seconds after which training ends, with the step size decaying in time. Results then depend
        on the speed of the machine.
    patience : int, default 10
        Number of checks without a better validation loss after which a network stops.
    check_every : int, optional
        Number of steps between checks; by default a sixtieth of all steps.
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

    takes_draw: ClassVar[bool] = False
    # smooth activations fit better than piecewise linear ones, and with a different validation set
    # for each network the ensemble is trained on all rows
    activation: ClassVar[str] = "silu"
    splits_by_network: ClassVar[bool] = True

    # of an unfitted model
    inputs_: Inputs | None = None
    outputs_: MixtureOutputs = MixtureOutputs()
    spread_factor_: float = 1.0

    def __init__(
        self,
        n_members: int = 8,
        n_components: int = 4,
        *,
        hidden: tuple[int, ...] = (64, 64, 64, 64),
        dropout: float | None = None,
        bins: bool | None = None,
        learning_rate: float = 3e-3,
        weight_decay: float | None = None,
        batch_size: int | None = None,
        max_passes: int | None = None,
        max_steps: int | None = None,
        time_budget: float | None = None,
        patience: int = 10,
        check_every: int | None = None,
        validation_fraction: float = 0.15,
        device: str = "auto",
        support: Bounds = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_members = n_members
        self.n_components = n_components
        self.hidden = hidden
        self.dropout = dropout
        self.bins = bins
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_passes = max_passes
        self.max_steps = max_steps
        self.time_budget = time_budget
        self.patience = patience
        self.check_every = check_every
        self.validation_fraction = validation_fraction
        self.device = device
        self.support = support
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Train the ensemble.

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
            If the validation losses of most networks still improve when training ends.
        """
        trained = self._learn(X, y, sample_weight, X_val, y_val, self.n_members)
        self.weights_ = trained.weights
        self.n_steps_ = trained.n_steps
        self.validation_loss_ = trained.validation_loss
        self._warn_unfinished(trained.late_gain)
        return self

    def _warn_unfinished(self, late_gain: Floats) -> None:
        n_improving = int((late_gain > UNFINISHED).sum())
        if 2 * n_improving > late_gain.size:
            warnings.warn(
                f"{n_improving} of {late_gain.size} networks still improved when training ended"
                f" after {int(self.n_steps_.max())} steps; raise max_passes (and max_steps, if it"
                " is given)",
                ConvergenceWarning,
                stacklevel=3,
            )

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        encoded = self._encode(X)
        if self.inputs_ is not None:
            encoded = self.inputs_.transform(encoded)
        # (members, rows, components) -> (rows, members * components), with equal weights
        weights, loc, std = (
            np.moveaxis(array, 0, 1).reshape(encoded.shape[0], -1)
            for array in self.outputs_.mixtures(self._outputs_of(encoded, None))
        )
        mixture = NormalMixture(
            weights,
            self.y_offset_ + self.y_unit_ * loc,
            self.y_unit_ * self.spread_factor_ * std,
        )
        return Forecast(self._on_support(mixture))

    @property
    def _n_outputs(self) -> int:
        return 3 * self.n_components

    def _scale_outcomes(self, y: Floats, weight: Floats) -> tuple[float, float]:
        offset, unit, g = robust_scale(y, weight)
        self.outputs_ = MixtureOutputs.of((y - offset) / unit, g)
        return offset, unit

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.dropout is not None:
            check_fraction("dropout", self.dropout, low_open=False)
        budget = self.time_budget
        if budget is not None and not (isinstance(budget, numbers.Real) and budget > 0):
            raise bad_input("time_budget", "be a positive number of seconds", repr(budget))

    def _train(
        self, learning: Any, validation: Any, n_networks: int, random: np.random.Generator
    ) -> Any:
        from dataclasses import replace

        from evenhand.forecasters.network.training import Candidate, train_best

        n_learning = learning.y.size if learning.of is None else learning.of.shape[1]
        options = self._options(Inputs.fit(learning.x))
        candidates = []
        for inputs, (dropout, weight_decay) in options:
            x = inputs.transform(learning.x)
            x_val = x if validation.x is learning.x else inputs.transform(validation.x)
            candidates.append(
                Candidate(
                    self._shape_of(x.shape[1], dropout),
                    replace(learning, x=x),
                    replace(validation, x=x_val),
                    self._settings(n_learning, weight_decay),
                )
            )
        chosen, trained = train_best(
            candidates,
            n_networks,
            self._row_loss(),
            device=self.device,
            random_state=random,
            verbose=self.verbose,
            time_budget=self.time_budget,
        )
        self.inputs_, self.strength_ = options[chosen]
        self.shape_ = candidates[chosen].shape
        self.weights_ = trained.weights
        if validation is not learning:
            self.spread_factor_ = self._spread_factor(candidates[chosen].validation, n_networks)
        return trained

    def _settings(self, n: int, weight_decay: float) -> Settings:
        """Return the settings for n rows to learn from; None depends on this number."""
        usual = next((size for below, size in BATCHES if n < below), LARGEST_BATCH)
        batch_size = min(self.batch_size or usual, n)
        per_pass = n // batch_size
        usual_passes = min(max(USUAL_STEPS // per_pass, FEWEST_PASSES), MOST_PASSES)
        max_steps = per_pass * (self.max_passes or usual_passes)
        if self.max_steps is not None:
            max_steps = min(max_steps, self.max_steps)
        return Settings(
            self.learning_rate,
            weight_decay,
            batch_size,
            max_steps,
            self.patience,
            self.check_every or max(1, max_steps // USUAL_CHECKS),
            last_rate=LAST_RATE,
            decays_biases=False,
        )

    def _options(self, inputs: Inputs) -> list[tuple[Inputs, tuple[float, float]]]:
        """Return the inputs and the pairs of dropout and weight decay to choose from."""
        strengths: tuple[tuple[float, float], ...] = STRENGTHS
        if self.dropout is not None or self.weight_decay is not None:
            dropout, weight_decay = STRENGTHS[0]
            given = (
                dropout if self.dropout is None else float(self.dropout),
                weight_decay if self.weight_decay is None else float(self.weight_decay),
            )
            strengths = (given,)
        plain = [(inputs.without_bins(), strength) for strength in strengths]
        binned = [(inputs, strength) for strength in strengths[:BIN_STRENGTHS]]
        if self.bins is False or not inputs.has_bins:
            return plain
        return binned if self.bins else plain + binned

    def _spread_factor(self, validation: Any, n_networks: int) -> float:
        """Return the factor of the standard deviations, from the rows that members held out."""
        rows = np.arange(validation.y.size)[:RECALIBRATION_ROWS]
        held = np.ones((n_networks, validation.y.size), dtype=bool)
        if validation.of is not None:
            held[:] = False
            np.put_along_axis(held, validation.of, True, axis=1)
            # some rows of each member, in the random order of the split
            rows = np.unique(validation.of.T.ravel()[:RECALIBRATION_ROWS])
        arrays = self.outputs_.mixtures(self._outputs_of(validation.x[rows], None))
        return spread_factor(*arrays, validation.y[rows], validation.weight[rows], held[:, rows])

    def _row_loss(self) -> Any:
        return self.outputs_.row_loss()

    def to_state(self) -> State:
        state = super().to_state()
        state.params["learned"] |= {
            "inputs": None if self.inputs_ is None else self.inputs_.to_state(),
            "outputs": self.outputs_.to_state(),
            "spread_factor": self.spread_factor_,
            "strength": list(self.strength_),
        }
        return state

    @classmethod
    def from_state(cls, state: State) -> Self:
        model = super().from_state(state)
        learned = state.params["learned"]
        inputs = learned["inputs"]
        if inputs is not None:
            model.inputs_ = Inputs.from_state(inputs, len(model.encoder_.names_out))
        model.outputs_ = MixtureOutputs.from_state(learned["outputs"])
        model.spread_factor_ = typed("spread_factor", learned["spread_factor"], float)
        model.strength_ = typed("strength", learned["strength"], tuple[float, float])
        return model
