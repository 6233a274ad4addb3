"""Actions of least expected loss under a forecast (method: decisions)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import percent
from evenhand._validate import Floats, InputError, Ints, bad_input, check_finite
from evenhand.decisions.steps import StepLoss
from evenhand.forecast import Forecast
from evenhand.tables import row_blocks, take_rows

Loss = Callable[..., ArrayLike]

BLOCK_NUMBERS = 1 << 22
"""Losses computed at once, so that memory does not grow with the number of people."""

SHIFT = "add a constant to the losses of all actions: decisions stay the same"


@dataclass(frozen=True, eq=False)
class Decisions:
    """Actions chosen under forecasts, with the expected loss that each forecast promised.

    Parameters
    ----------
    actions : tuple
        The actions to choose from.
    index : ndarray of int, shape of the batch
        Number of the chosen action.
    promised : ndarray, shape of the batch
        Its expected loss under the forecast that chose it.
    """

    actions: tuple[Hashable, ...]
    index: Ints
    promised: Floats

    @property
    def chosen(self) -> NDArray[Any]:
        """The chosen actions themselves, shape of the batch."""
        names = np.empty(len(self.actions), dtype=object)
        names[:] = self.actions
        return names[self.index]

    def __repr__(self) -> str:
        shares = ", ".join(
            f"{action!r}: {percent(float(np.mean(self.index == j)))}"
            for j, action in enumerate(self.actions)
        )
        return (
            f"Decisions(shape {self.index.shape}, {shares}, promised {self.promised.mean():.4g} on"
            " average)"
        )

    def share(self, action: Hashable) -> Floats:
        """Share of each person's draws with this action, shape (n,); estimates its probability."""
        if action not in self.actions:
            raise bad_input("action", f"be one of {list(self.actions)}", repr(action))
        is_chosen = self.index == self.actions.index(action)
        return np.asarray(
            is_chosen.mean(axis=-1) if is_chosen.ndim == 2 else is_chosen, dtype=np.float64
        )


class BayesDecision:
    """Choice of the action with the least expected loss under the forecast.

    Parameters
    ----------
    actions : sequence
        At least one action, such as `("yes", "no")`; of two that are equally good the first is
        taken.
    loss : mapping or callable
        A mapping from each action to a `StepLoss`, a number (a constant loss) or a function of
        outcomes; or one function `loss(y, action)` for all. Functions are vectorized: an array of
        outcomes in, losses of the same shape out. Where losses differ between people by more than a
        `StepLoss` per person can hold, pass `X` to the methods: functions are then called with the
        rows of `X` as last argument and outcomes of shape (n, k).

    Notes
    -----
    Step losses are integrated in closed form. Functions are integrated over the quantiles of the
    forecast, to about 3e-4 standard deviations where the function has a kink, to 1e-2 where the
    forecast has a gap of many standard deviations. A function that jumps loses more: write it
    as a `StepLoss`. Decisions take any losses; only `loss_guarantee` needs them to be non-negative
    and monotone.

    References
    ----------
    Zhao, Ma & Ermon, ICML 2020, section 6.

    Examples
    --------
    A bank that gains 1 by a good loan and loses 3 by a bad one, with 1 added to make losses of
    them, says yes where the forecast gives bad ones at most a quarter:

    >>> bank = BayesDecision(("yes", "no"), {"yes": StepLoss([0.5], [4.0, 0.0]), "no": 1.0})
    >>> decisions = bank.decide(Forecast.from_normal(mean=[0.6, 0.55], std=[0.1, 0.1]))
    >>> decisions.chosen.tolist(), decisions.promised.round(3)
    (['yes', 'no'], array([0.635, 1.   ]))

    Any loss, here the pinball loss, whose best action is a quantile:

    >>> def pinball(y, a):
    ...     return np.maximum(0.9 * (y - a), 0.1 * (a - y))
    >>> stock = BayesDecision([0.0, 1.0, 1.28, 1.5], pinball)
    >>> stock.decide(Forecast.from_normal([0.0], [1.0])).chosen
    array([1.28], dtype=object)
    """

    def __init__(self, actions: Sequence[Hashable], loss: Mapping[Any, Any] | Loss) -> None:
        try:
            self.actions: tuple[Hashable, ...] = (
                tuple(actions) if not isinstance(actions, str) else (actions,)
            )
            distinct = len(set(self.actions))
        except TypeError as error:
            raise bad_input(
                "actions", "be a sequence of names or numbers", repr(actions)
            ) from error
        if not self.actions or distinct < len(self.actions):
            raise bad_input("actions", "name at least one action, each once", list(self.actions))
        unknown = (
            [name for name in loss if name not in self.actions] if isinstance(loss, Mapping) else []
        )
        if unknown:
            raise bad_input(
                "loss", f"have entries for the actions {list(self.actions)} only", f"{unknown}"
            )
        self.loss = loss
        self._losses = [_loss_of(loss, action) for action in self.actions]

    def expected_loss(self, forecast: Forecast, X: Any = None) -> Floats:
        """Expected loss of each action under each forecast.

        Parameters
        ----------
        forecast : Forecast
            Of n people, over draws or not.
        X : table or array with n rows, optional
            What losses that are functions depend on besides the outcome.

        Returns
        -------
        ndarray of shape (n, n_actions) or (n, m, n_actions)

        Raises
        ------
        InputError
            If a loss does not fit the outcomes it is given or is not finite.
        """
        check_forecast(forecast)
        _check_people(X, len(forecast))
        expected = np.empty((*forecast.distribution.batch_shape, len(self.actions)))
        functions = []
        for j, loss in enumerate(self._losses):
            if isinstance(loss, StepLoss):
                expected[..., j] = loss.expected(forecast)  # in closed form
            else:
                functions.append(j)
        if functions:
            self._integrate(forecast, X, functions, expected)
        return expected

    def decide(self, forecast: Forecast, X: Any = None) -> Decisions:
        """Choose for each forecast; parameters and errors as for `expected_loss`."""
        expected = self.expected_loss(forecast, X)
        index = expected.argmin(axis=-1)  # of equally good actions the first
        return Decisions(
            self.actions, index, np.take_along_axis(expected, index[..., None], axis=-1)[..., 0]
        )

    def realized_loss(self, decisions: Decisions, y: ArrayLike, X: Any = None) -> Floats:
        """Loss of the chosen actions at the outcomes.

        Parameters
        ----------
        decisions : Decisions
            For n people.
        y : array-like of shape (n,)
            Outcomes.
        X : table or array with n rows, optional
            As for `decide`.

        Returns
        -------
        ndarray, shape of the batch
        """
        if not isinstance(decisions, Decisions):
            raise bad_input("decisions", "be what decide returned", type(decisions).__name__)
        outcomes = check_finite("y", y)
        n = decisions.index.shape[0]
        if outcomes.shape != (n,):
            raise bad_input("y", f"have one outcome per person ({n})", f"shape {outcomes.shape}")
        if decisions.actions != self.actions:
            raise bad_input(
                "decisions", f"choose among {list(self.actions)}", f"{list(decisions.actions)}"
            )
        _check_people(X, n)
        # all actions at each outcome, for each draw may have chosen another
        losses = np.column_stack(
            [self._at(j, outcomes[:, None], X)[:, 0] for j in range(len(self.actions))]
        )
        rows = np.arange(n) if decisions.index.ndim == 1 else np.arange(n)[:, None]
        return np.asarray(losses[rows, decisions.index])

    def check_loss(self, y: ArrayLike, X: Any = None) -> Ints:
        """Check that losses are non-negative and monotone in the outcome, as the guarantee needs.

        Step losses are checked as they are, functions at these outcomes.

        Parameters
        ----------
        y : array-like of shape (k,)
            Outcomes that may occur.
        X : table or array with n rows, optional
            As for `decide`.

        Returns
        -------
        ndarray of int, shape (1, n_actions) or (n, n_actions)
            For each action, and each person where losses differ, 1 if the loss rises with the
            outcome, -1 if it falls, 0 if it is constant.

        Raises
        ------
        InputError
            If a loss is negative somewhere (add a constant to all: decisions stay the same) or not
            monotone.
        """
        outcomes = np.unique(check_finite("y", y))
        return np.column_stack(
            np.broadcast_arrays(
                *(self._direction(j, outcomes, X) for j in range(len(self.actions)))
            )
        )

    def _direction(self, j: int, y: Floats, X: Any) -> Ints:
        """Direction of one action's loss, shape (1,) or (n,)."""
        loss = self._losses[j]
        name = f"the loss of action {self.actions[j]!r}"
        if isinstance(loss, StepLoss):
            if (loss.values < 0).any():
                raise bad_input(name, "be at least 0", float(loss.values.min()), SHIFT)
            try:
                return np.atleast_1d(loss.direction()).astype(np.intp)
            except InputError as error:
                raise InputError(f"{name} must be monotone in the outcome: {error}") from error
        # without X a function is the same for all people: one row of outcomes shows its direction
        n = 1 if X is None else len(X)
        parts = []
        for rows in _blocks(n, y.size):
            grid = np.broadcast_to(y, (rows.stop - rows.start, y.size))
            people = None if X is None else take_rows(X, rows)
            parts.append(_directions(self._at(j, grid, people), y, name))
        return np.concatenate(parts)

    def _at(self, j: int, y: Floats, X: Any) -> Floats:
        """Loss of one action at outcomes of shape (n, k)."""
        loss = self._losses[j]
        if isinstance(loss, StepLoss):
            return loss(y)
        name = f"the loss of action {self.actions[j]!r}"
        try:
            values = np.asarray(loss(y) if X is None else loss(y, X), dtype=np.float64)
        except Exception as error:  # whatever a function of the user's raises
            rows = ""
            remedy = "write it for arrays, and pass X if it depends on more than the outcome"
            if X is not None:
                rows = f" and {len(X)} rows of X (one column of them: X[...][:, None])"
                remedy = "write it for arrays"
            raise InputError(
                f"{name} cannot be computed at outcomes of shape {y.shape}{rows}: {error}; {remedy}"
            ) from error
        if values.shape != y.shape:
            remedy = "write it for arrays of outcomes; a constant loss is a number"
            raise bad_input(
                name, f"have the shape of its outcomes, {y.shape}", f"shape {values.shape}", remedy
            )
        if not np.isfinite(values).all():
            i, k = (int(place) for place in np.argwhere(~np.isfinite(values))[0])
            raise bad_input(name, "be finite", f"{values[i, k]} at y = {y[i, k]:g}")
        return values

    def _integrate(
        self, forecast: Forecast, X: Any, functions: list[int], expected: Floats
    ) -> None:
        """Fill in the expectations of losses that are functions, a block of people at a time."""
        # the expectation under one forecast takes about 1,024 outcomes
        for rows in _blocks(len(forecast), 1024 * int(np.prod(expected.shape[1:-1]))):
            part = forecast[rows].distribution
            people = None if X is None else take_rows(X, rows)
            for j in functions:
                # defaults bind the values of this turn of the loop; the quadrature gives outcomes
                # of shape (k, m, nodes), a user's function takes (k, any)
                def loss(y: Floats, j: int = j, people: Any = people) -> Floats:
                    return self._at(j, y.reshape(y.shape[0], -1), people).reshape(y.shape)

                expected[rows, ..., j] = part.expectation(loss)

    def __repr__(self) -> str:
        return f"BayesDecision(actions={list(self.actions)})"


def _loss_of(loss: Any, action: Hashable) -> Any:
    """Loss of one action: a `StepLoss`, or a function of outcomes and, if given, of `X`."""
    if not isinstance(loss, Mapping):
        if not callable(loss):
            raise bad_input(
                "loss", "be a function or a mapping from actions to losses", type(loss).__name__
            )
        return lambda y, *x: loss(y, action, *x)
    if action not in loss:
        raise bad_input("loss", f"have an entry for action {action!r}", list(loss))
    own = loss[action]
    if isinstance(own, StepLoss) or callable(own):
        return own
    try:
        # a number for all, or one for each person: a StepLoss without cuts
        values = np.asarray(own, dtype=np.float64)
        return StepLoss([], values[:, None] if values.ndim == 1 else [float(values)])
    except (TypeError, ValueError) as error:
        rule = "be a StepLoss, a finite number (or one per person) or a function of outcomes"
        raise bad_input(f"loss[{action!r}]", rule, repr(own)) from error


def check_forecast(forecast: Any) -> None:
    """Refuse what is not a Forecast, most often the model itself."""
    if not isinstance(forecast, Forecast):
        remedy = "ask the model for it: model.forecast(X)" if hasattr(forecast, "forecast") else ""
        raise bad_input("forecast", "be a Forecast", type(forecast).__name__, remedy)


def _check_people(X: Any, n: int) -> None:
    if X is not None and (not hasattr(X, "__len__") or len(X) != n):
        got = f"{len(X)} rows" if hasattr(X, "__len__") else repr(X)
        raise bad_input("X", f"have one row per person ({n})", got)


def _blocks(n: int, width: int) -> list[slice]:
    return row_blocks(n, max(1, BLOCK_NUMBERS // max(width, 1)))


def _directions(losses: Floats, y: Floats, name: str) -> Ints:
    """Directions of losses at increasing outcomes, shape (n, k) -> (n,)."""
    if (losses < 0).any():
        i, k = (int(place) for place in np.argwhere(losses < 0)[0])
        raise bad_input(name, "be at least 0", f"{losses[i, k]:g} at y = {y[k]:g}", SHIFT)
    steps = np.diff(losses, axis=-1)
    # smaller changes are rounding errors
    least = 1e-12 * np.abs(losses).max(axis=-1, keepdims=True)
    rises = (steps > least).any(axis=-1)
    falls = (steps < -least).any(axis=-1)
    if (rises & falls).any():
        i = int(np.argmax(rises & falls))
        # the first step against the direction of the first change
        first = steps[i][np.abs(steps[i]) > least[i]][0]
        k = int(np.argmax(-np.sign(first) * steps[i] > least[i]))
        raise bad_input(name, "rise or fall with the outcome", f"one that turns at y = {y[k]:g}")
    return np.asarray(rises.astype(np.intp) - falls.astype(np.intp))
