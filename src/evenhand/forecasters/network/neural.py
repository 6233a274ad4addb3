"""Base class of neural forecasters: encoding, training, scoring and storage of a stack."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from evenhand._validate import (
    Floats,
    InputError,
    bad_input,
    check_continuous,
    check_count,
    check_fraction,
    require_extra,
)
from evenhand.columns import TableEncoder
from evenhand.draws import generator
from evenhand.forecasters.base import Forecaster, State

COUNTS = ("n_members", "n_components", "batch_size", "max_steps", "patience", "check_every")
"""Constructor parameters that count something."""


class NeuralForecaster(Forecaster):
    """Base of the neural forecasters; a subclass has the parameters named below and a row loss."""

    takes_draw: ClassVar[bool]
    activation: ClassVar[str] = "leaky_relu"
    splits_by_network: ClassVar[bool] = False
    """Whether each network stops early on rows of its own."""

    # constructor parameters of every subclass
    hidden: tuple[int, ...]
    dropout: float
    learning_rate: float
    weight_decay: float
    batch_size: int
    max_steps: int
    patience: int
    check_every: int
    validation_fraction: float
    device: str
    on_discrete: Any
    random_state: Any
    verbose: bool

    @property
    @abstractmethod
    def _n_outputs(self) -> int:
        """Outputs of one network."""

    @abstractmethod
    def _row_loss(self) -> Any:
        """Loss of each row for `train`."""

    def _scale_outcomes(self, y: Floats, weight: Floats) -> tuple[float, float]:
        """Offset and unit in which the networks see the outcome."""
        mean = float(np.average(y, weights=weight))
        return mean, float(np.sqrt(np.average((y - mean) ** 2, weights=weight))) or 1.0

    def _learn(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        X_val: Any,
        y_val: Any,
        n_networks: int,
        chunk: int = 0,
    ) -> Any:
        """Encode, split and train; set the attributes that networks share, return the rest.

        Each `chunk` of one path has the same split, and starts and batches of its own.
        """
        require_extra("torch", "neural")
        from evenhand.forecasters.network.stack import Shape
        from evenhand.forecasters.network.training import Rows, train

        self._check_parameters()
        table, outcomes, weight = self._check_training(X, y, sample_weight)
        check_continuous(outcomes, on_discrete=self.on_discrete)
        random = generator(self.random_state)
        # fitted on all rows given: the share for early stopping is split off after encoding
        self.encoder_ = TableEncoder()
        encoded = self.encoder_.fit_transform(table)
        self.y_offset_, self.y_unit_ = self._scale_outcomes(outcomes, weight)
        # weights of mean 1 leave the learning rate its meaning
        rows = Rows(encoded, self._to_unit(outcomes), weight / weight.mean())
        learning, validation = self._split(rows, X_val, y_val, n_networks, random)
        # numpy integers of a grid search cannot be stored as JSON
        hidden = tuple(int(units) for units in self.hidden)
        self.shape_ = Shape(
            encoded.shape[1],
            self._n_outputs,
            hidden,
            self.takes_draw,
            float(self.dropout),
            self.activation,
        )
        random.integers(2**62, size=chunk)  # the seeds of the chunks before
        return train(
            self.shape_,
            n_networks,
            self._row_loss(),
            learning,
            validation,
            self._settings(),
            device=self.device,
            random_state=random,
            verbose=self.verbose,
        )

    def _split(
        self, rows: Any, X_val: Any, y_val: Any, n_networks: int, random: np.random.Generator
    ) -> tuple[Any, Any]:
        """Rows to learn from and rows for early stopping."""
        from evenhand.forecasters.network.training import split_rows, split_rows_by_network

        if X_val is not None or y_val is not None:
            return rows, self._validation_rows(X_val, y_val)
        if self.splits_by_network:
            return split_rows_by_network(rows, self.validation_fraction, n_networks, random)
        return split_rows(rows, self.validation_fraction, random)

    def _settings(self) -> Any:
        from evenhand.forecasters.network.training import Settings

        return Settings(
            self.learning_rate,
            self.weight_decay,
            self.batch_size,
            self.max_steps,
            self.patience,
            self.check_every,
        )

    def _check_parameters(self) -> None:
        """Check the counts, the layers and the dropout."""
        for name, value in self.get_params(deep=False).items():
            if name in COUNTS:
                check_count(name, value)
        if np.ndim(self.hidden) != 1 or len(self.hidden) < 1 + self.takes_draw:
            # the draw joins the inputs of the second hidden layer: with fewer layers it would be
            # ignored
            least = "two hidden layers" if self.takes_draw else "one hidden layer"
            raise bad_input("hidden", f"list the units of at least {least}", repr(self.hidden))
        for i, units in enumerate(self.hidden):
            check_count(f"hidden[{i}]", units)
        check_fraction("dropout", self.dropout, low_open=False)

    def _validation_rows(self, X_val: Any, y_val: Any) -> Any:
        from evenhand.forecasters.network.training import Rows

        if X_val is None or y_val is None:
            raise bad_input("X_val and y_val", "be given together", "one of them")
        outcomes = np.asarray(y_val, dtype=np.float64)
        if outcomes.shape != (len(X_val),) or not np.isfinite(outcomes).all():
            raise bad_input("y_val", f"hold {len(X_val)} finite numbers", f"shape {outcomes.shape}")
        encoded = self.encoder_.transform(self._check_rows(X_val, reset=False))
        return Rows(encoded, self._to_unit(outcomes), np.ones(outcomes.size))

    def _to_unit(self, y: Floats) -> Floats:
        return (y - self.y_offset_) / self.y_unit_

    def _outputs_of(self, encoded: Floats, r: Floats | None) -> Floats:
        """Network outputs in float64 for encoded rows (and draws), the first axis over networks."""
        require_extra("torch", "neural")
        from evenhand.forecasters.network.stack import score

        return score(self.shape_, self.weights_, encoded, r, self.device)

    def _encode(self, X: Any) -> Floats:
        check_is_fitted(self)
        return np.asarray(self.encoder_.transform(self._check_new_rows(X)))

    def to_state(self) -> State:
        from dataclasses import asdict

        check_is_fitted(self)
        learned: dict[str, Any] = {
            "shape": asdict(self.shape_),
            "encoder": self.encoder_.to_state(),
            "y_offset": self.y_offset_,
            "y_unit": self.y_unit_,
        } | self._columns_to_state()
        arrays = dict(self.weights_) | {
            "n_steps": self.n_steps_,
            "validation_loss": self.validation_loss_,
        }
        params = self._params_to_state() | {"hidden": self.shape_.hidden}
        return State(type(self).__name__, {"params": params, "learned": learned}, arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        require_extra("torch", "neural")
        from evenhand.forecasters.network.stack import Shape

        params = dict(state.params["params"])
        learned = state.params["learned"]
        # JSON knows lists only
        params["hidden"] = tuple(params["hidden"])
        model = cls(**params)
        shape = learned["shape"] | {"hidden": tuple(learned["shape"]["hidden"])}
        model.shape_ = Shape(**shape)
        model.encoder_ = TableEncoder.from_state(learned["encoder"])
        model.y_offset_ = learned["y_offset"]
        model.y_unit_ = learned["y_unit"]
        model._columns_from_state(learned)
        arrays = dict(state.arrays)
        model.n_steps_, model.validation_loss_ = (
            arrays.pop("n_steps"),
            arrays.pop("validation_loss"),
        )
        model.weights_ = arrays
        # a weight file of another shape would broadcast, or fail inside torch
        model._check_weights()
        return model

    def _check_weights(self) -> None:
        """Refuse weights that do not fit the shape, such as those of an edited model folder."""
        for i, (n_in, n_out) in enumerate(self.shape_.layers()):
            for name, size in ((f"kernel_{i}", (n_in, n_out)), (f"bias_{i}", (1, n_out))):
                array = self.weights_.get(name)
                if array is None or array.shape[1:] != size or not np.isfinite(array).all():
                    raise InputError(
                        f"the stored weights do not fit the network: {name} must have shape (k,"
                        f" {size})"
                    )


def warn_about_unit(y: Floats, low: float, high: float) -> None:
    """Warn if the outcome's spread lies outside the range of the paper's network."""
    spread = float(np.std(y))
    if not 2 * low < spread < high / 2:
        warnings.warn(
            f"the outcome has standard deviation {spread:g}, and the paper's network says standard"
            f" deviations from {low:g} to {high:g} in raw units of y; set standardize_y=True",
            UserWarning,
            stacklevel=6,  # the line that calls fit or path
        )
