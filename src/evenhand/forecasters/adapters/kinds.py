"""Registry of adapters in order of precedence, and adapters for several models.

A new adapter needs one class and one line in `KINDS`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
from sklearn.ensemble import BaggingRegressor, VotingRegressor

from evenhand._validate import Floats, InputError, bad_input
from evenhand.distributions import Distribution, Normal, NormalMixture
from evenhand.forecasters.adapters.base import USE_A_FUNCTION, Base, Training, frozen, thawed
from evenhand.forecasters.adapters.discrete_bases import ClassifierBase, CountBase
from evenhand.forecasters.adapters.distribution_bases import (
    CallableBase,
    ForecasterBase,
    PPFBase,
    QuantileBase,
    ReturnStdBase,
)
from evenhand.forecasters.adapters.residual_bases import ResidualBase
from evenhand.forecasters.adapters.survival import SurvivalBase
from evenhand.tables import take_rows


class MembersBase(Base):
    """Equal mixture of several models that predict normal distributions or mixtures of them."""

    name: ClassVar[str] = "members"

    def __init__(self, members: list[Base]) -> None:
        super().__init__([member.estimator for member in members])
        self.members = members

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        return isinstance(estimator, list | tuple)

    @classmethod
    def is_held_out(cls, estimator: Any) -> bool:
        return all(kind_of(member).is_held_out(member) for member in _members(estimator))

    @classmethod
    def fit(cls, estimator: Any, rows: Training) -> Self:
        members = _members(estimator)
        if not members:
            raise InputError("estimator is an empty list; give at least one model")
        # refuse a plain regressor before anything is fitted
        served = (ForecasterBase, CallableBase, PPFBase, ReturnStdBase)
        for member in members:
            if not issubclass(kind_of(member), served):
                raise _not_normal(member)
        base = cls([kind_of(member).fit(member, rows) for member in members])
        base.distribution(take_rows(rows.X, [0]))
        return base

    def distribution(self, X: Any) -> Distribution:
        return mixture([(1.0, member.distribution(X), member.estimator) for member in self.members])

    def to_arrays(self) -> dict[str, Floats]:
        # flat names, as the arrays of all members are stored in one file
        named = ((i, member.to_arrays()) for i, member in enumerate(self.members))
        return {f"{i}.{name}": array for i, arrays in named for name, array in arrays.items()}

    def to_parts(self) -> dict[str, Any]:
        return {f"member{i}": thawed(member.estimator) for i, member in enumerate(self.members)}

    @classmethod
    def from_parts(cls, parts: dict[str, Any], arrays: dict[str, Floats]) -> Self:
        members = []
        for i in range(len(parts)):
            # the kind of a member is not stored, as it can be determined from the fitted model
            model = parts[f"member{i}"]
            start = f"{i}."
            own = {
                name.removeprefix(start): array
                for name, array in arrays.items()
                if name.startswith(start)
            }
            members.append(kind_of(model).from_parts({"estimator": model}, own))
        return cls(members)


class EnsembleBase(ReturnStdBase):
    """Mixture of normals from a bagging or voting regressor of models with `return_std`."""

    name: ClassVar[str] = "ensemble"

    @classmethod
    def accepts(cls, estimator: Any) -> bool:
        if isinstance(estimator, BaggingRegressor):
            return estimator.estimator is not None and kind_of(estimator.estimator) is ReturnStdBase
        if isinstance(estimator, VotingRegressor):
            members = [member for _, member in estimator.estimators if member != "drop"]
            return bool(members) and all(kind_of(member) is ReturnStdBase for member in members)
        return False

    def distribution(self, X: Any) -> Distribution:
        model = thawed(self.estimator)
        rows = np.asarray(X) if isinstance(model, BaggingRegressor) else X
        # a bagging regressor may fit each member on different columns
        columns = getattr(model, "estimators_features_", None) or [None] * len(model.estimators_)
        # this property omits the weights of members that a voting regressor has dropped
        weights = getattr(model, "_weights_not_none", None)
        weights = np.ones(len(model.estimators_)) if weights is None else np.asarray(weights)
        members = []
        for weight, member, used in zip(weights, model.estimators_, columns, strict=True):
            own_rows = rows if used is None else rows[:, used]
            predicted = ReturnStdBase(member, self.least_std).distribution(own_rows)
            members.append((float(weight), predicted, member))
        return mixture(members)


KINDS: dict[str, type[Base]] = {
    kind.name: kind
    # in order of precedence, from whole distributions to single numbers
    for kind in (
        SurvivalBase,
        ForecasterBase,
        MembersBase,
        EnsembleBase,
        CallableBase,
        ClassifierBase,
        PPFBase,
        CountBase,
        QuantileBase,
        ReturnStdBase,
        ResidualBase,
    )
}


def kind_of(estimator: Any, y: Floats | None = None) -> type[Base]:
    """Return the first adapter that accepts an estimator and the outcomes that it is fitted to.

    Without outcomes, a regressor with the Poisson loss is a plain regressor.
    """
    inner = thawed(estimator)
    for kind in KINDS.values():
        is_accepted = kind.accepts(inner) if inner is estimator else kind.accepts_frozen(inner)
        if is_accepted and kind.accepts_outcomes(y):
            return kind
    rule = "be a regressor with fit and predict"
    raise bad_input("estimator", rule, type(estimator).__name__, USE_A_FUNCTION)


def mixture(members: list[tuple[float, Distribution, Any]]) -> NormalMixture:
    """Mix normal distributions and mixtures.

    `members` contains the weight, the predicted distribution and the model of each member.
    """
    parts = []
    for weight, predicted, model in members:
        if isinstance(predicted, Normal):
            weights = np.full((*predicted.batch_shape, 1), weight)
            parts.append((weights, predicted.loc[..., None], predicted.scale[..., None]))
        elif isinstance(predicted, NormalMixture):
            parts.append((weight * predicted.weights, predicted.loc, predicted.scale))
        else:
            raise _not_normal(model)
    weights, loc, scale = (np.concatenate(column, axis=-1) for column in zip(*parts, strict=True))
    return NormalMixture(weights, loc, scale)


def _members(estimator: Any) -> list[Any]:
    """Return the members of a list, each in a FrozenEstimator if the list is in one."""
    inner = thawed(estimator)
    return list(inner) if inner is estimator else frozen(inner)


def _not_normal(model: Any) -> InputError:
    return InputError(
        f"estimator contains a {type(thawed(model)).__name__}, but only models that predict normal"
        " distributions or mixtures of them can be mixed; put plain regressors in a"
        " VotingRegressor"
    )
