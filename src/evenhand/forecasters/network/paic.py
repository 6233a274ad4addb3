"""PAIC: a network that takes the draw as an input (Zhao, Ma & Ermon, ICML 2020)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._validate import Floats, InputError, check_fraction
from evenhand.distributions import Normal
from evenhand.draws import RandomState, as_draws
from evenhand.forecast import Forecast
from evenhand.forecasters.bounds import Bounds
from evenhand.forecasters.network.neural import NeuralForecaster

Data = tuple[Any, Any, Any, Any, Any]
"""Rows, outcomes and weights of a fit, and rows and outcomes for early stopping."""

MIN_STD = 0.01
STD_RANGE = 5.0


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

    takes_draw: ClassVar[bool] = True

    def __init__(
        self,
        alpha: float = 0.1,
        *,
        hidden: tuple[int, ...] = (100, 100, 100),
        dropout: float = 0.5,
        standardize_y: bool = False,
        learning_rate: float = 1e-2,
        weight_decay: float = 0.0,
        batch_size: int = 128,
        max_steps: int = 1100,
        patience: int = 25,
        check_every: int = 20,
        validation_fraction: float = 0.15,
        device: str = "auto",
        support: Bounds = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.alpha = alpha
        self.hidden = hidden
        self.dropout = dropout
        self.standardize_y = standardize_y
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_steps = max_steps
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
        """Train the network.

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
        """
        self._fit_path([self], (X, y, sample_weight, X_val, y_val))
        return self

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
        models[0]._fit_path(models, (X, y, sample_weight, X_val, y_val))
        return models

    def _fit_path(self, models: list[PAICRegressor], data: Data) -> None:
        """Train `models`, which differ only in alpha, as one stack with the settings of `self`."""
        self._alphas = [check_fraction("alpha", model.alpha, high_open=False) for model in models]
        trained = self._learn(*data, len(models))
        del self._alphas
        shared = {name: value for name, value in vars(self).items() if name.endswith("_")}
        for i, model in enumerate(models):
            model.__dict__.update(shared)
            model.weights_ = {name: array[i : i + 1] for name, array in trained.weights.items()}
            model.n_steps_ = trained.n_steps[i : i + 1]
            model.validation_loss_ = trained.validation_loss[i : i + 1]

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        rows = self._encode(X)
        # the draw is an input of the network, which is itself h[x, r]
        draws = as_draws(r, rows.shape[0], random_state)
        out = self._outputs_of(rows, draws)[0]
        # standard deviations from 0.01 to 5.01, as in the published code
        std = STD_RANGE * special.expit(out[..., 1]) + MIN_STD
        normal = Normal(self.y_offset_ + self.y_unit_ * out[..., 0], self.y_unit_ * std)
        return Forecast(self._on_support(normal), draws)

    @property
    def _n_outputs(self) -> int:
        return 2

    def _scale_outcomes(self, y: Floats, weight: Floats) -> tuple[float, float]:
        if self.standardize_y:
            return super()._scale_outcomes(y, weight)
        name = (
            "the outcome" if self.support_ is None else "the outcome mapped to the line (support)"
        )
        spread = float(np.std(y))
        if not 2 * MIN_STD < spread < (MIN_STD + STD_RANGE) / 2:
            warnings.warn(
                f"{name} has standard deviation {spread:g}, but the paper's network predicts"
                f" standard deviations from {MIN_STD:g} to {MIN_STD + STD_RANGE:g} in these units;"
                " set standardize_y=True",
                UserWarning,
                stacklevel=5,  # the line that calls fit or path
            )
        return 0.0, 1.0

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_fraction("dropout", self.dropout, low_open=False)

    def _train(
        self, learning: Any, validation: Any, n_networks: int, random: np.random.Generator
    ) -> Any:
        from evenhand.forecasters.network.settings import Settings
        from evenhand.forecasters.network.training import Candidate, train_best

        self.shape_ = self._shape_of(learning.x.shape[1], self.dropout)
        settings = Settings(
            self.learning_rate,
            self.weight_decay,
            self.batch_size,
            self.max_steps,
            self.patience,
            self.check_every,
        )
        _, trained = train_best(
            [Candidate(self.shape_, learning, validation, settings)],
            n_networks,
            self._row_loss(),
            device=self.device,
            random_state=random,
            verbose=self.verbose,
        )
        return trained

    def _row_loss(self) -> Any:
        import torch

        from evenhand.losses import individual_calibration_loss

        alphas = torch.tensor(self._alphas, dtype=torch.float32, device="cpu")
        log_root = 0.5 * float(np.log(2 * np.pi))

        def loss(
            out: torch.Tensor, y: torch.Tensor, r: torch.Tensor | None, numbers: torch.Tensor
        ) -> torch.Tensor:
            assert r is not None
            std = STD_RANGE * torch.sigmoid(out[..., 1]) + MIN_STD
            z = (y - out[..., 0]) / std
            nonlocal alphas
            alphas = alphas.to(out.device)  # copied to a GPU once
            alpha = alphas[numbers][:, None]
            # one draw per row and step, so that each row is trained with many draws over the steps
            return individual_calibration_loss(
                torch.special.ndtr(z), -0.5 * z * z - torch.log(std) - log_root, r, alpha
            )

        return loss
