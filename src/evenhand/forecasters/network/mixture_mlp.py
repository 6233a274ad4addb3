"""Deterministic forecaster: ensemble of mixture density networks, trained by likelihood."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from evenhand._validate import OnDiscrete
from evenhand.distributions import NormalMixture
from evenhand.draws import RandomState
from evenhand.forecast import Forecast
from evenhand.forecasters.network.neural import NeuralForecaster

MIN_STD = 0.02
"""Smallest standard deviation of a component, relative to that of the outcome."""


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
    dropout : float, default 0.2
        Share of the last hidden layer's units dropped in training.
    learning_rate, weight_decay : float
        Parameters of AdamW; the rate decays along a half cosine to a tenth over `max_steps`.
    batch_size, max_steps : int
        Number of rows per step, and largest number of steps.
    patience, check_every : int
        Number of checks without a better validation loss before a network stops, and number of
        steps between checks.
    validation_fraction : float, default 0.15
        Share of the training rows that each network holds out for early stopping. Different
        networks hold out different rows, so that the ensemble is trained on all rows.
    device : {"auto", "cpu", "cuda"}, default "auto"
        Device for training and prediction; "auto" uses a CUDA device if there is one.
    on_discrete : {"raise", "warn", "ignore"}, default "raise"
        How to handle an outcome that is not continuous, with fewer than 20 distinct values or one
        value in more than 10% of the rows.
    random_state : int, generator or None
        Seed of the split, the initial weights and the batches.
    verbose : bool, default False
        Whether to show a progress bar on a terminal.

    Attributes
    ----------
    weights_ : dict of str to ndarray
        Parameters of the networks, with members along the first axis.
    n_steps_, validation_loss_ : ndarray of shape (n_members,)
        Number of optimizer steps and best validation loss of each member.
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

    def __init__(
        self,
        n_members: int = 8,
        n_components: int = 4,
        *,
        hidden: tuple[int, ...] = (64, 64, 64, 64),
        dropout: float = 0.2,
        learning_rate: float = 3e-3,
        weight_decay: float = 0.1,
        batch_size: int = 128,
        max_steps: int = 2000,
        patience: int = 10,
        check_every: int = 20,
        validation_fraction: float = 0.15,
        device: str = "auto",
        on_discrete: OnDiscrete = "raise",
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_members = n_members
        self.n_components = n_components
        self.hidden = hidden
        self.dropout = dropout
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.max_steps = max_steps
        self.patience = patience
        self.check_every = check_every
        self.validation_fraction = validation_fraction
        self.device = device
        self.on_discrete = on_discrete
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
        """
        trained = self._learn(X, y, sample_weight, X_val, y_val, self.n_members)
        self.weights_ = trained.weights
        self.n_steps_ = trained.n_steps
        self.validation_loss_ = trained.validation_loss
        return self

    def forecast(
        self, X: Any, r: ArrayLike | None = None, *, random_state: RandomState = None
    ) -> Forecast:
        out = self._outputs_of(self._encode(X), None)
        # softmax and softplus make any output a valid mixture
        logits, loc, raw = np.split(out, 3, axis=-1)
        # (members, rows, components) -> (rows, members * components), with equal weights
        weights, loc, std = (
            np.moveaxis(array, 0, 1).reshape(out.shape[1], -1)
            for array in (special.softmax(logits, axis=-1), loc, np.logaddexp(0.0, raw) + MIN_STD)
        )
        return Forecast(
            NormalMixture(weights, self.y_offset_ + self.y_unit_ * loc, self.y_unit_ * std)
        )

    @property
    def _n_outputs(self) -> int:
        return 3 * self.n_components

    def _row_loss(self) -> Any:
        import torch

        from evenhand.losses import nll_loss

        log_root = 0.5 * float(np.log(2 * np.pi))

        def loss(
            out: torch.Tensor, y: torch.Tensor, r: torch.Tensor | None, numbers: torch.Tensor
        ) -> torch.Tensor:
            logits, loc, raw = out.chunk(3, dim=-1)
            std = torch.nn.functional.softplus(raw) + MIN_STD
            z = (y[..., None] - loc) / std
            parts = torch.log_softmax(logits, dim=-1) - 0.5 * z * z - torch.log(std) - log_root
            return nll_loss(torch.logsumexp(parts, dim=-1))

        return loss
