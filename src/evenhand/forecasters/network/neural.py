"""Base class of neural forecasters: encoding, training, prediction and storage."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from evenhand._validate import (
    Floats,
    InputError,
    bad_input,
    check_count,
    check_outcomes,
    check_rows,
    require_extra,
    typed,
    typed_fields,
)
from evenhand.draws import generator
from evenhand.forecasters.base import Forecaster, State
from evenhand.forecasters.bounds import check_support
from evenhand.tables import TableEncoder

COUNTS = (
    "n_members",
    "n_components",
    "batch_size",
    "max_passes",
    "max_steps",
    "patience",
    "check_every",
)
"""Constructor parameters that must be positive integers."""


class NeuralForecaster(Forecaster):
    """Base of neural forecasters; subclasses have the parameters listed below and a row loss."""

    takes_draw: ClassVar[bool]
    activation: ClassVar[str] = "leaky_relu"
    splits_by_network: ClassVar[bool] = False
    """Whether each network has its own rows for early stopping."""

    # constructor parameters of every subclass
    hidden: tuple[int, ...]
    validation_fraction: float
    device: str
    random_state: Any
    verbose: bool

    @property
    @abstractmethod
    def _n_outputs(self) -> int:
        """Number of outputs of one network."""

    @abstractmethod
    def _row_loss(self) -> Any:
        """Return the row loss for `train`."""

    def _scale_outcomes(self, y: Floats, weight: Floats) -> tuple[float, float]:
        """Return the offset and the unit of the outcome for the networks."""
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
    ) -> Any:
        """Encode, split and train; set the attributes common to all networks, return the others."""
        require_extra("torch", "neural")
        from evenhand.forecasters.network.training import Rows

        self._check_parameters()
        table, outcomes, weight = self._check_training(X, y, sample_weight)
        check_outcomes(outcomes)
        outcomes = self._learn_support(outcomes, table)
        random = generator(self.random_state)
        # the encoder is fitted on all rows; rows for early stopping are held out afterwards
        self.encoder_ = TableEncoder()
        encoded = self.encoder_.fit_transform(table)
        self.y_offset_, self.y_unit_ = self._scale_outcomes(outcomes, weight)
        # weights of mean 1 do not change the effective learning rate
        rows = Rows(encoded, self._to_unit(outcomes), weight / weight.mean())
        learning, validation = self._split(rows, X_val, y_val, n_networks, random)
        return self._train(learning, validation, n_networks, random)

    @abstractmethod
    def _train(
        self, learning: Any, validation: Any, n_networks: int, random: np.random.Generator
    ) -> Any:
        """Train the networks; set `shape_`."""

    def _shape_of(self, n_inputs: int, dropout: float) -> Any:
        from evenhand.forecasters.network.stack import Shape

        # NumPy integers, for instance of a grid search, cannot be stored as JSON
        hidden = tuple(int(units) for units in self.hidden)
        return Shape(
            n_inputs, self._n_outputs, hidden, self.takes_draw, float(dropout), self.activation
        )

    def _split(
        self, rows: Any, X_val: Any, y_val: Any, n_networks: int, random: np.random.Generator
    ) -> tuple[Any, Any]:
        """Return rows for training and rows for early stopping."""
        from evenhand.forecasters.network.training import split_rows, split_rows_by_network

        if X_val is not None or y_val is not None:
            return rows, self._validation_rows(X_val, y_val)
        if self.splits_by_network:
            return split_rows_by_network(rows, self.validation_fraction, n_networks, random)
        return split_rows(rows, self.validation_fraction, random)

    def _check_parameters(self) -> None:
        """Check the counts and the layers."""
        # where None is the default, the value depends on the training rows
        defaults = type(self)().get_params(deep=False)
        for name, value in self.get_params(deep=False).items():
            if name in COUNTS and not (value is None and defaults[name] is None):
                check_count(name, value)
        if np.ndim(self.hidden) != 1 or len(self.hidden) < 1 + self.takes_draw:
            # the draw is an input of the second hidden layer, so fewer layers would ignore it
            least = "two hidden layers" if self.takes_draw else "one hidden layer"
            rule = f"list the numbers of units of at least {least}"
            raise bad_input("hidden", rule, repr(self.hidden))
        for i, units in enumerate(self.hidden):
            check_count(f"hidden[{i}]", units)

    def _validation_rows(self, X_val: Any, y_val: Any) -> Any:
        from evenhand.forecasters.network.training import Rows

        if X_val is None or y_val is None:
            raise bad_input("X_val and y_val", "be given together", "only one of them")
        given = check_rows("y_val", y_val, len(X_val))
        check_support(given, self.support, name="y_val")
        outcomes = self._to_line(given)
        encoded = self.encoder_.transform(self._check_rows(X_val, reset=False))
        return Rows(encoded, self._to_unit(outcomes), np.ones(outcomes.size))

    def _to_unit(self, y: Floats) -> Floats:
        return (y - self.y_offset_) / self.y_unit_

    def _outputs_of(self, encoded: Floats, r: Floats | None) -> Floats:
        """Return float64 outputs for encoded rows (and draws), with networks on the first axis."""
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

        learned = state.params["learned"]
        model = cls(**state.params["params"])
        model.shape_ = Shape(**typed_fields(Shape, learned["shape"]))
        model.encoder_ = TableEncoder.from_state(learned["encoder"])
        inputs = learned.get("inputs")  # of mixtures
        n_inputs = len(model.encoder_.names_out) + (len(inputs["binned"]) if inputs else 0)
        if model.shape_.n_inputs != n_inputs:
            raise InputError(f"the network has {model.shape_.n_inputs} inputs, not {n_inputs}")
        model.y_offset_ = typed("y_offset", learned["y_offset"], float)
        model.y_unit_ = typed("y_unit", learned["y_unit"], float)
        model._columns_from_state(learned)
        arrays = dict(state.arrays)
        model.n_steps_, model.validation_loss_ = (
            arrays.pop("n_steps"),
            arrays.pop("validation_loss"),
        )
        model.weights_ = arrays
        # weights of another shape would broadcast, or fail inside torch
        model._check_weights()
        return model

    def _check_weights(self) -> None:
        """Refuse weights that do not match the network, for instance of an edited model folder."""
        for i, (n_in, n_out) in enumerate(self.shape_.layers()):
            for name, size in ((f"kernel_{i}", (n_in, n_out)), (f"bias_{i}", (1, n_out))):
                array = self.weights_.get(name)
                if array is None or array.shape[1:] != size or not np.isfinite(array).all():
                    raise InputError(
                        f"the stored weights do not match the network: {name} must have the shape"
                        f" (k, {size[0]}, {size[1]}) and finite values; save the model again"
                    )
