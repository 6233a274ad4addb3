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
"""Largest number of losses computed at once, which bounds the memory."""

SHIFT = "add the same constant to the losses of all actions, which changes no decision"


@dataclass(frozen=True, eq=False)
class Decisions:
    """Actions chosen under forecasts, with their expected (promised) losses.

    Parameters
    ----------
    actions : tuple
        The actions to choose from.
    index : ndarray of int, shape of the batch
        Index of the chosen action in `actions`.
    promised : ndarray, shape of the batch
        Expected loss of the chosen action under the forecast.
    """

    actions: tuple[Hashable, ...]
    index: Ints
    promised: Floats

    @property
    def chosen(self) -> NDArray[Any]:
        """The chosen actions, shape of the batch."""
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
        """Return the share of each person's draws with this action, shape (n,).

        It estimates the probability that the person gets the action.
        """
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
        At least one action, such as `("yes", "no")`; ties are resolved in favour of the first.
    loss : mapping or callable
        A mapping from each action to a `StepLoss`, a number (a constant loss) or a function of
        outcomes; or one function `loss(y, action)` for all. Functions are vectorized: they take an
        array of outcomes and return losses of the same shape. If losses depend on people in ways
        that a `StepLoss` per person cannot express, pass `X` to the methods: functions are then
        called with the rows of `X` as the last argument and outcomes of shape (n, k).

    Notes
    -----
    Step losses are integrated in closed form. Functions are integrated over the quantiles of the
    forecast, with an error of about 3e-4 standard deviations where the function has a kink, and
    1e-2 where the forecast has a gap of many standard deviations. Functions with jumps have larger
    errors: write them as a `StepLoss`. Decisions accept any losses; only `loss_guarantee` requires
    them to be non-negative and monotone.

    References
    ----------
    Zhao, Ma & Ermon, ICML 2020, section 6.

    Examples
    --------
    A bank gains 1 by a good loan and loses 3 by a bad one; the loss is 1 minus the gain. It grants
    a loan if the predicted probability of a bad one is at most a quarter:

    >>> bank = BayesDecision(("yes", "no"), {"yes": StepLoss([0.5], [4.0, 0.0]), "no": 1.0})
    >>> decisions = bank.decide(Forecast.from_normal(mean=[0.6, 0.55], std=[0.1, 0.1]))
    >>> decisions.chosen.tolist(), decisions.promised.round(3)
    (['yes', 'no'], array([0.635, 1.   ]))

    With the pinball loss the best action is a quantile:

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
                "actions", "be a sequence of hashable names or numbers", repr(actions)
            ) from error
        if not self.actions or distinct < len(self.actions):
            raise bad_input(
                "actions", "contain at least one action and no duplicates", list(self.actions)
            )
        unknown = (
            [name for name in loss if name not in self.actions] if isinstance(loss, Mapping) else []
        )
        if unknown:
            raise InputError(
                f"loss has entries for {unknown}, which are not actions; the actions are"
                f" {list(self.actions)}"
            )
        self.loss = loss
        self._losses = [_loss_of(loss, action) for action in self.actions]

    def expected_loss(self, forecast: Forecast, X: Any = None) -> Floats:
        """Return the expected loss of each action under each forecast.

        Parameters
        ----------
        forecast : Forecast
            Forecasts of n people, deterministic or over draws.
        X : table or array with n rows, optional
            Further arguments of losses that are functions.

        Returns
        -------
        ndarray of shape (n, n_actions) or (n, m, n_actions)

        Raises
        ------
        InputError
            If a loss returns another shape than that of its outcomes, or is not finite.
        """
        check_forecast(forecast)
        _check_people(X, len(forecast))
        expected = np.empty((*forecast.distribution.batch_shape, len(self.actions)))
        functions = []
        for j, loss in enumerate(self._losses):
            if isinstance(loss, StepLoss):
                expected[..., j] = loss.expected(forecast)
            else:
                functions.append(j)
        if functions:
            self._integrate(forecast, X, functions, expected)
        return expected

    def decide(self, forecast: Forecast, X: Any = None) -> Decisions:
        """Choose an action for each forecast; parameters and errors as for `expected_loss`."""
        expected = self.expected_loss(forecast, X)
        index = expected.argmin(axis=-1)  # ties: the first action
        return Decisions(
            self.actions, index, np.take_along_axis(expected, index[..., None], axis=-1)[..., 0]
        )

    def realized_loss(self, decisions: Decisions, y: ArrayLike, X: Any = None) -> Floats:
        """Return the loss of the chosen actions at the outcomes.

        Parameters
        ----------
        decisions : Decisions
            Decisions for n people, as returned by `decide`.
        y : array-like of shape (n,)
            Outcomes.
        X : table or array with n rows, optional
            As for `decide`.

        Returns
        -------
        ndarray, shape of the batch
        """
        if not isinstance(decisions, Decisions):
            raise bad_input(
                "decisions", "be a Decisions object", type(decisions).__name__, "pass decide(...)"
            )
        outcomes = check_finite("y", y)
        n = decisions.index.shape[0]
        if outcomes.shape != (n,):
            raise bad_input("y", f"have one outcome per person ({n})", f"shape {outcomes.shape}")
        if decisions.actions != self.actions:
            raise InputError(
                f"decisions choose among {list(decisions.actions)}, but this BayesDecision has the"
                f" actions {list(self.actions)}; pass the decisions of its own decide method"
            )
        _check_people(X, n)
        # losses of all actions are needed: each draw may have chosen another action
        losses = np.column_stack(
            [self._at(j, outcomes[:, None], X)[:, 0] for j in range(len(self.actions))]
        )
        rows = np.arange(n) if decisions.index.ndim == 1 else np.arange(n)[:, None]
        return np.asarray(losses[rows, decisions.index])

    def check_loss(self, y: ArrayLike, X: Any = None) -> Ints:
        """Check the conditions of `loss_guarantee`: losses are non-negative and monotone in y.

        Step losses are checked exactly, functions at the given outcomes.

        Parameters
        ----------
        y : array-like of shape (k,)
            Possible outcomes.
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
            If a loss is negative somewhere or not monotone. A constant added to all losses makes
            them non-negative and changes no decision.
        """
        outcomes = np.unique(check_finite("y", y))
        return np.column_stack(
            np.broadcast_arrays(
                *(self._direction(j, outcomes, X) for j in range(len(self.actions)))
            )
        )

    def _direction(self, j: int, y: Floats, X: Any) -> Ints:
        """Return the direction of one action's loss, shape (1,) or (n,)."""
        loss = self._losses[j]
        name = f"the loss of action {self.actions[j]!r}"
        if isinstance(loss, StepLoss):
            if (loss.values < 0).any():
                raise bad_input(name, "be at least 0", float(loss.values.min()), SHIFT)
            try:
                return np.atleast_1d(loss.direction()).astype(np.intp)
            except InputError as error:
                raise InputError(f"{name} must be monotone in the outcome: {error}") from error
        # without X a function is the same for all people: one row of outcomes suffices
        n = 1 if X is None else len(X)
        parts = []
        for rows in _blocks(n, y.size):
            grid = np.broadcast_to(y, (rows.stop - rows.start, y.size))
            people = None if X is None else take_rows(X, rows)
            parts.append(_directions(self._at(j, grid, people), y, name))
        return np.concatenate(parts)

    def _at(self, j: int, y: Floats, X: Any) -> Floats:
        """Return the loss of one action at outcomes of shape (n, k)."""
        loss = self._losses[j]
        if isinstance(loss, StepLoss):
            return loss(y)
        name = f"the loss of action {self.actions[j]!r}"
        try:
            values = np.asarray(loss(y) if X is None else loss(y, X), dtype=np.float64)
        except Exception as error:  # a user's function may raise anything
            rows = ""
            remedy = "vectorize it over arrays, and pass X if it depends on more than the outcome"
            if X is not None:
                rows = f" and {len(X)} rows of X (select a column as X[...][:, None])"
                remedy = "vectorize it over arrays"
            raise InputError(
                f"{name} cannot be computed at outcomes of shape {y.shape}{rows}: {error}; {remedy}"
            ) from error
        if values.shape != y.shape:
            remedy = "vectorize it over arrays, or pass a number for a constant loss"
            raise bad_input(
                name, f"have the shape of the outcomes, {y.shape}", f"shape {values.shape}", remedy
            )
        if not np.isfinite(values).all():
            i, k = (int(place) for place in np.argwhere(~np.isfinite(values))[0])
            raise bad_input(name, "be finite", f"{values[i, k]} at y = {y[i, k]:g}")
        return values

    def _integrate(
        self, forecast: Forecast, X: Any, functions: list[int], expected: Floats
    ) -> None:
        """Fill in the expectations of losses that are functions, one block of people at a time."""
        # the quadrature evaluates about 1,024 outcomes per forecast
        for rows in _blocks(len(forecast), 1024 * int(np.prod(expected.shape[1:-1]))):
            part = forecast[rows].distribution
            people = None if X is None else take_rows(X, rows)
            for j in functions:
                # defaults bind the loop variables; the quadrature passes outcomes of shape
                # (k, m, nodes), a user's function takes (k, any)
                def loss(y: Floats, j: int = j, people: Any = people) -> Floats:
                    return self._at(j, y.reshape(y.shape[0], -1), people).reshape(y.shape)

                expected[rows, ..., j] = part.expectation(loss)

    def __repr__(self) -> str:
        return f"BayesDecision(actions={list(self.actions)})"


def _loss_of(loss: Any, action: Hashable) -> Any:
    """Return the loss of one action: a `StepLoss`, or a function of outcomes and optionally `X`."""
    if not isinstance(loss, Mapping):
        if not callable(loss):
            raise bad_input(
                "loss", "be a function or a mapping from actions to losses", type(loss).__name__
            )
        return lambda y, *x: loss(y, action, *x)
    if action not in loss:
        raise InputError(
            f"loss has no entry for action {action!r}, only for {list(loss)}; add a StepLoss, a"
            " number or a function"
        )
    own = loss[action]
    if isinstance(own, StepLoss) or callable(own):
        return own
    try:
        # a constant loss, for all people or per person, is a StepLoss without cuts
        values = np.asarray(own, dtype=np.float64)
        return StepLoss([], values[:, None] if values.ndim == 1 else [float(values)])
    except (TypeError, ValueError) as error:
        rule = "be a StepLoss, a finite number (or one per person) or a function of outcomes"
        raise bad_input(f"loss[{action!r}]", rule, repr(own)) from error


def check_forecast(forecast: Any) -> None:
    """Check that an argument is a Forecast; a frequent mistake is to pass the model."""
    if not isinstance(forecast, Forecast):
        remedy = "pass model.forecast(X)" if hasattr(forecast, "forecast") else ""
        raise bad_input("forecast", "be a Forecast", type(forecast).__name__, remedy)


def _check_people(X: Any, n: int) -> None:
    if X is not None and (not hasattr(X, "__len__") or len(X) != n):
        got = f"{len(X)} rows" if hasattr(X, "__len__") else repr(X)
        raise bad_input("X", f"have one row per person ({n})", got)


def _blocks(n: int, width: int) -> list[slice]:
    return row_blocks(n, max(1, BLOCK_NUMBERS // max(width, 1)))


def _directions(losses: Floats, y: Floats, name: str) -> Ints:
    """Return the directions of losses at increasing outcomes, shape (n, k) -> (n,)."""
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
        raise InputError(
            f"{name} must be monotone in the outcome, but changes direction at y = {y[k]:g}"
        )
    return np.asarray(rises.astype(np.intp) - falls.astype(np.intp))
