"""Decisions of least expected loss, and bounds on how often their loss exceeds its expectation."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evenhand._format import (
    OneLine,
    Summarized,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    percent,
)
from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    Mask,
    Pair,
    as_floats,
    bad_input,
    check_finite,
    check_fraction,
    check_masses,
    check_rows,
    refuse_entry,
)
from evenhand.calibration import betting_cvar, cvar, local_levels_band, share_bound, share_interval
from evenhand.draws import RandomState, check_own_draws, generator, one_row_each
from evenhand.forecast import Forecast
from evenhand.report import ONE_ROW_EACH
from evenhand.tables import check_groups, row_blocks, take_rows


class StepLoss:
    """Piecewise constant loss that jumps at cuts.

    Parameters
    ----------
    cuts : array-like of shape (k,) or (n, k)
        Outcomes where the loss jumps, strictly increasing, units of `y`; one row per person with n
        rows. A single number is one cut; an empty list `[]` makes a constant loss.
    values : array-like of shape (k + 1,) or (n, k + 1)
        Losses below the first cut, between cuts and from the last cut on; at a cut the loss is that
        of the interval above it.

    Raises
    ------
    InputError
        If a number is not finite, the cuts do not increase or the shapes do not match.

    Examples
    --------
    The loss of a bank that grants a loan, which is repaid if the creditworthiness is at least 0.5:

    >>> loan = StepLoss(cuts=[0.5], values=[4.0, 0.0])
    >>> loan([0.2, 0.5, 0.9])
    array([4., 0., 0.])
    >>> loan.expected(Forecast.from_normal(mean=[0.5], std=[0.1]))
    array([2.])
    """

    def __init__(self, cuts: ArrayLike, values: ArrayLike) -> None:
        self.cuts = _array("cuts", cuts)
        self.values = _array("values", values)
        if self.values.shape[-1] != self.cuts.shape[-1] + 1:
            sizes = (self.values.shape[-1], "value"), (self.cuts.shape[-1], "cut")
            got = " for ".join(count(n, noun) for n, noun in sizes)
            raise bad_input("values", "have one more entry than cuts", got)
        if not (np.diff(self.cuts, axis=-1) > 0).all():
            remedy = "sort them and remove duplicates"
            raise bad_input("cuts", "be strictly increasing", "cuts out of order", remedy)
        rows = {array.shape[0] for array in (self.cuts, self.values) if array.ndim == 2}
        if len(rows) > 1:
            got = f"{self.cuts.shape[0]} and {self.values.shape[0]}"
            raise bad_input("cuts and values", "have the same number of rows", got)
        self.n_rows: int | None = rows.pop() if rows else None

    def __call__(self, y: ArrayLike) -> Floats:
        """Return the losses at outcomes of shape (...), or (n, ...) if the loss is per person."""
        outcomes = np.asarray(y, dtype=float)
        cuts, values = self._along(outcomes.shape)
        place = (outcomes[..., None] >= cuts).sum(axis=-1)
        every = np.broadcast_to(values, (*outcomes.shape, values.shape[-1]))
        return np.take_along_axis(every, place[..., None], axis=-1)[..., 0]

    def expected(self, forecast: Forecast) -> Floats:
        """Return the expected loss under each forecast in closed form, shape of the batch."""
        shape = forecast.distribution.batch_shape
        cuts, values = self._along(shape)
        jumps = np.diff(values, axis=-1)
        rises, falls = np.maximum(jumps, 0.0), np.maximum(-jumps, 0.0)
        # upward jumps use the upper tail and downward jumps the lower one, so that monotone losses
        # suffer no cancellation
        mixed = values[..., 0] - falls.sum(axis=-1)
        total = np.zeros(shape) + np.where(rises.any(axis=-1), mixed, values[..., -1])
        # cut by cut, which takes the memory of one
        for j in range(cuts.shape[-1]):
            tail = forecast.distribution.tail(cuts[..., j], left=True)
            total += rises[..., j] * tail.plain(upper=True)
            total += falls[..., j] * tail.plain(upper=False)
        # rounding errors must not make an expectation smaller than the least loss, or negative
        return np.maximum(total, values.min(axis=-1))

    def _along(self, shape: tuple[int, ...]) -> Pair:
        """Return cuts and values that broadcast against outcomes, with one more axis."""
        if self.n_rows is not None and shape[:1] != (self.n_rows,):
            raise InputError(
                f"this StepLoss has one row for each of {self.n_rows} people, but is evaluated for"
                f" {shape[0] if shape else 'one'}; pass as many"
            )
        axes = (1,) * (len(shape) - 1)
        cuts, values = (
            array if array.ndim == 1 else array.reshape(len(array), *axes, array.shape[-1])
            for array in (self.cuts, self.values)
        )
        return cuts, values

    def __repr__(self) -> str:
        if self.n_rows is not None:
            return f"StepLoss({count(self.cuts.shape[-1], 'cut')}, {self.n_rows} people)"
        return f"StepLoss(cuts={self.cuts.tolist()}, values={self.values.tolist()})"


def _array(name: str, values: ArrayLike) -> Floats:
    array = np.atleast_1d(as_floats(name, values))
    if array.ndim not in (1, 2):
        raise bad_input(name, "have shape (k,) or (n, k)", f"shape {array.shape}")
    refuse_entry(name, array, ~np.isfinite(array), "be finite")
    return array


# --- actions of least expected loss (method: decisions)

Loss = Callable[..., ArrayLike]

BLOCK_NUMBERS = 1 << 22
"""Largest number of losses computed at once, which bounds the memory."""

SHIFT = "add the same constant to the losses of all actions, which changes no decision"


@dataclass(frozen=True, eq=False, repr=False)
class Decisions(OneLine):
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
        self.actions: tuple[Hashable, ...] = (
            tuple(actions) if not isinstance(actions, str) else (actions,)
        )
        if not self.actions or len(set(self.actions)) < len(self.actions):
            rule = "contain at least one action and no duplicates"
            raise bad_input("actions", rule, list(self.actions))
        if isinstance(loss, Mapping) and set(loss) != set(self.actions):
            rule = f"have one entry for each of the actions {list(self.actions)}"
            raise bad_input("loss", rule, list(loss))
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
        n = decisions.index.shape[0]
        outcomes = check_rows("y", y, n)
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
        return losses[rows, decisions.index]

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
            # each value is the loss from one of these outcomes on
            start = np.full((*loss.cuts.shape[:-1], 1), -np.inf)
            return _directions(loss.values, np.concatenate((start, loss.cuts), axis=-1), name)
        # without X a function is the same for all people: one row of outcomes suffices
        n = 1 if X is None else len(X)
        parts = []
        for rows in _blocks(n, y.size):
            grid = np.broadcast_to(y, (rows.stop - rows.start, y.size))
            parts.append(_directions(self._at(j, grid, take_rows(X, rows)), y, name))
        return np.concatenate(parts)

    def _at(self, j: int, y: Floats, X: Any) -> Floats:
        """Return the loss of one action at outcomes of shape (n, k)."""
        loss = self._losses[j]
        if isinstance(loss, StepLoss):
            return loss(y)
        name = f"the loss of action {self.actions[j]!r}"
        try:
            values = np.asarray(loss(y) if X is None else loss(y, X), dtype=float)
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
            i, k = np.argwhere(~np.isfinite(values))[0]
            raise bad_input(name, "be finite", f"{values[i, k]} at y = {y[i, k]:g}")
        return values

    def _integrate(
        self, forecast: Forecast, X: Any, functions: list[int], expected: Floats
    ) -> None:
        """Fill in the expectations of losses that are functions, one block of people at a time."""
        # the quadrature evaluates about 1,024 outcomes per forecast
        for rows in _blocks(len(forecast), 1024 * math.prod(expected.shape[1:-1])):
            part = forecast[rows].distribution
            people = take_rows(X, rows)
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
    own = loss[action]
    if isinstance(own, StepLoss) or callable(own):
        return own
    try:
        # a constant loss, for all people or per person, is a StepLoss without cuts
        values = np.asarray(own, dtype=float)
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
    """Return the directions of losses at increasing outcomes, (n, k) or (k,) -> (n,)."""
    losses, y = np.broadcast_arrays(np.atleast_2d(losses), y)
    if (losses < 0).any():
        i, k = np.argwhere(losses < 0)[0]
        raise bad_input(name, "be at least 0", f"{losses[i, k]:g} at y = {y[i, k]:g}", SHIFT)
    steps = np.diff(losses, axis=-1)
    # smaller changes are rounding errors
    least = 1e-12 * np.abs(losses).max(axis=-1, keepdims=True)
    rises = (steps > least).any(axis=-1)
    falls = (steps < -least).any(axis=-1)
    if (rises & falls).any():
        i = np.argmax(rises & falls)
        # the first step against the direction of the first change
        first = steps[i][np.abs(steps[i]) > least[i]][0]
        k = np.argmax(-np.sign(first) * steps[i] > least[i])
        raise InputError(
            f"{name} must be monotone in the outcome, but changes direction at y = {y[i, k]:g}"
        )
    return rises.astype(int) - falls.astype(int)


# --- how often a loss exceeds the promised loss

CHECKED_LEVELS = (0.001, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999)
"""Levels of the forecast quantiles at which losses are checked for sign and direction."""

ENOUGH_DRAWS = 16
"""Minimum number of draws per person to see whether the direction depends on the draw."""


@dataclass(frozen=True, eq=False, repr=False)
class LossGuarantee(OneLine, Summarized):
    """Frequency of realized losses above `k` times the promised loss, with the theorem's bound.

    Parameters
    ----------
    table : DataFrame
        One row per group and k. `group`; `kind` ("everyone", "named", or "every" for every group of
        a given size); `mass`, the group size (NaN for named groups); `k`; `n`; `promised` and
        `realized`, mean losses (NaN in "every" rows); `exceeded`, the share of people and draws
        whose loss exceeds k times the promise, in "every" rows the share in the oracle worst group
        (chosen after seeing the outcomes); `low` and `high`, its confidence interval, simultaneous
        over named groups, and one-sided and simultaneous over sizes for "every"; `bound`, the bound
        of the theorem, which is for groups defined by features, while `low` and `high` are valid
        for any group; and `verdict`: "proven" if `high` is at most the bound, "broken" if `low`
        exceeds it (the forecaster is then not calibrated in that group, if features define it),
        "no claim" if the bound is 1, else "open": more rows may decide.
    factor : int
        1 if the bound for everyone is `1/k`, 2 if it is `2/k`; a named group may have a smaller
        factor.
    why : str
        The reason for the factor.
    is_randomized : bool
        Whether the forecasts depend on draws. If not, the bound is that of a forecaster that is
        calibrated on average (for a named group: in that group), and a group of a given size may
        contain all exceedances.
    confidence : float
        Confidence level of each kind of statement.
    one_row_each : bool
        Whether one row per person was selected: shares are then of people, not of rows.
    """

    table: pd.DataFrame
    factor: int
    why: str
    is_randomized: bool
    confidence: float
    one_row_each: bool = False

    def summary(self) -> str:
        """Return the findings as text."""
        subject, where = "a forecaster that is calibrated on average", ""
        if self.is_randomized:
            subject = "an individually calibrated forecaster"
            where = " in every group defined by features"
        theorem = (
            f"Under {subject}, the loss exceeds k times the promise with probability at most"
            f" {self.factor}/k{where}: {self.why}."
        )
        if not self.is_randomized:
            theorem += " One group of a given size may contain all of these cases."
        level = confidence_in_full(self.confidence)
        explained = (
            f"Each line gives the share of these rows and, in parentheses, its {level} confidence"
            " interval. Proven: the loss exceeds k times the promise no more often than the bound,"
            " which is no statement about the mean loss. Open: the rows are too few to decide."
            " Bounds for every group of a given size hold for groups chosen in any way that does"
            " not depend on the draws."
        )
        lines = [theorem, *(_line(row) for row in self.table.to_dict("records")), explained]
        return "\n".join(lines + [ONE_ROW_EACH] * self.one_row_each)


def _line(row: Mapping[Any, Any]) -> str:
    if row["n"] == 0:
        return f"- group {row['group']!r} has no rows"
    what = f"- more than {row['k']:g} times the promise"
    bound = f"bound {at_most(row['bound'], percent)}: {row['verdict']}"
    if row["kind"] == "every":
        return f"{what}, {row['group']}: at most {at_most(row['high'], percent)}, {bound}"
    who = row["group"] if row["kind"] == "everyone" else f"group {row['group']!r}"
    interval = band(percent, row["low"], row["high"])
    return f"{what}, {who}: {percent(row['exceeded'])} ({interval}), {bound}"


def loss_guarantee(
    decision: BayesDecision,
    forecast: Forecast,
    y: ArrayLike,
    *,
    X: Any = None,
    k: float | Sequence[float] = (2, 4, 10),
    groups: Any = None,
    masses: ArrayLike = (0.1, 0.2, 0.5),
    confidence: float = 0.95,
    person: ArrayLike | None = None,
    random_state: RandomState = None,
) -> LossGuarantee:
    """Estimate how often a decision's loss exceeds k times its promise, with the theorem's bound.

    Parameters
    ----------
    decision : BayesDecision
        A decision whose losses are non-negative and monotone in the outcome.
    forecast : Forecast
        Forecasts of n held-out people. If randomized, each person needs own draws, preferably
        several (`draws.jittered(n, 64)`): they show whether the direction of the chosen action's
        loss depends on the draw, and how often the promise to each person is broken.
    y : array-like of shape (n,)
        Outcomes.
    X : table or array with n rows, optional
        Further arguments of losses that are functions.
    k : float or list of float, default (2, 4, 10)
        Multiples of the promised loss, at least 1.
    groups : DataFrame, Series, dict of name to values, or list of columns of `X`, optional
        Groups chosen before seeing the rows, as in `evenhand.audit`. The theorem covers groups
        defined by features. A group defined by outcomes may have larger losses under any
        forecaster; it is measured all the same.
    masses : float or list of float
        Group sizes, as shares of the people, at which every group is bounded.
    confidence : float, default 0.95
        Confidence level for each k, separately for everyone, simultaneously for all named groups,
        and simultaneously for every group of all sizes.
    person : array-like of shape (n,), optional
        Labels of people who have several rows: one row per person, chosen at random, is used.
    random_state : int, generator or None
        Seed of that choice and of the order of bets.

    Returns
    -------
    LossGuarantee

    Raises
    ------
    InputError
        If the inputs do not match, a loss is negative or not monotone, or people share draws.

    Notes
    -----
    The promised loss of an action is its expectation under the forecast. If the loss is
    non-negative and rises with the outcome, it exceeds `k` times the promise only where the PIT is
    above `1 - 1/k`; if it falls, only where the PIT is below `1/k` (Markov's inequality). The
    distribution of PITs therefore bounds the frequency of such losses among people for whom the
    forecaster is calibrated: by `1/k` if the loss of the chosen action always has the same
    direction, by `2/k` otherwise. For one person under an individually calibrated forecaster, the
    factor depends on whether the direction changes with that person's draw.

    A loss that is a function is checked for its sign and direction at the given outcomes and at
    quantiles of the forecasts. The bounds in `high` do not assume calibration: they follow from the
    rows alone. With one draw per person they are Clopper-Pearson bounds, otherwise betting bounds
    on the share of each person's draws.

    References
    ----------
    Zhao, Ma & Ermon, ICML 2020, the theorem on decisions, whose second part is true only under the
    condition given here.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.decisions import StepLoss
    >>> from evenhand.draws import jittered
    >>> y = np.random.default_rng(0).normal(size=2000)
    >>> base = Forecast.from_normal(np.zeros(2000), np.ones(2000))
    >>> forecast = base.randomized(0.1, r=jittered(2000, 32, 0))
    >>> bank = BayesDecision(("yes", "no"), {"yes": StepLoss([0.0], [4.0, 0.0]), "no": 1.0})
    >>> found = loss_guarantee(bank, forecast, y, k=2, masses=0.5, random_state=0)
    >>> found.factor, found.table["verdict"].tolist()
    (1, ['proven', 'proven'])
    """
    check_forecast(forecast)
    n = len(forecast)
    outcomes = check_rows("y", y, n)
    multiples = np.unique(check_finite("k", np.atleast_1d(k)))
    # the theorem's bound would exceed 1
    remedy = "k=2 counts losses above twice the promise"
    refuse_entry("k", multiples, multiples < 1, "be at least 1", remedy)
    shares = check_masses(masses)
    check_fraction("confidence", confidence)
    masks = check_groups(groups, n, y if X is None else X)
    random = generator(random_state)
    # bounds need independent rows: one random row per person is used
    rows = np.arange(n) if person is None else one_row_each(person, n, random)
    if forecast.r is not None:
        # draws of shape (1, m) apply to all people: broadcast, they are refused as shared
        draws = forecast.r if forecast.r.ndim == 2 else forecast.r[:, None]
        check_own_draws(np.broadcast_to(draws, (n, draws.shape[1])), rows)
    # losses must be monotone at all possible outcomes, not only at the observed ones
    ways = decision.check_loss(_likely(forecast, outcomes), X)
    ways = np.broadcast_to(ways, (n, ways.shape[1]))[rows]
    made = decision.decide(forecast, X)
    chosen = np.take_along_axis(ways, made.index.reshape(n, -1)[rows], axis=1)
    promised = made.promised.reshape(n, -1)[rows]
    losses = decision.realized_loss(made, outcomes, X).reshape(n, -1)[rows]
    factor, why = _factor(ways, chosen, forecast.is_randomized)
    # Bonferroni correction for the named groups
    shared = 1 - (1 - confidence) / max(len(masks), 1)
    parts = [("everyone", "everyone", 1.0, confidence, np.ones(rows.size, dtype=bool))]
    parts += [(name, "named", np.nan, shared, mask[rows]) for name, mask in masks.items()]
    table = []
    for multiple in multiples.tolist():
        # the share of each person's draws; a constant loss equals its promise up to rounding
        exceeded = (losses > (1 + 1e-9) * multiple * promised).mean(axis=1)
        for name, kind, mass, level, mask in parts:
            bound = _factor(ways[mask], chosen[mask], forecast.is_randomized)[0] / multiple
            interval = _interval(exceeded[mask], losses.shape[1], level, random)
            n_rows = mask.sum()
            means = [
                float(values[mask].mean()) if n_rows else np.nan
                for values in (promised, losses, exceeded)
            ]
            table.append((name, kind, mass, multiple, n_rows, *means, *interval, bound))
        most = _of_worst(exceeded, losses.shape[1], shares, confidence)
        for mass, high in zip(shares.tolist(), most, strict=True):
            # without draws average calibration allows all exceedances in the same group
            bound = factor / multiple / (1.0 if forecast.is_randomized else mass)
            means = [np.nan, np.nan, cvar(exceeded, mass)]
            every = f"every group of {in_full(mass)}", "every", mass
            table.append((*every, multiple, rows.size, *means, 0.0, high, bound))
    columns = ["group", "kind", "mass", "k", "n", "promised", "realized", "exceeded"]
    found = pd.DataFrame(table, columns=[*columns, "low", "high", "bound"])
    found["bound"] = found["bound"].clip(upper=1.0)
    cases = {
        "no claim": found["bound"] >= 1,
        "proven": found["high"] <= found["bound"],
        "broken": found["low"] > found["bound"],
    }
    # the first that applies
    verdicts = np.select([*cases.values()], [*cases], "open")
    return LossGuarantee(
        table=found.assign(verdict=verdicts),
        factor=factor,
        why=why,
        is_randomized=forecast.is_randomized,
        confidence=float(confidence),
        one_row_each=person is not None,
    )


def _factor(ways: Ints, chosen: Ints, is_randomized: bool) -> tuple[int, str]:
    """Return 1 or 2, for a bound of 1/k or 2/k, and the reason.

    `ways` (n, n_actions) are the directions of the losses of all actions, `chosen` (n, m) those of
    the chosen action at each draw: 1 if the loss rises with the outcome, -1 if it falls.
    """
    if not is_randomized:
        # calibration is over people, not draws: the directions of all people count
        if _both(chosen.reshape(1, -1)).any():
            return 2, "losses of chosen actions rise in both directions, so both tails count"
        return 1, "the loss of the chosen action rises in the same direction for all people"
    # per person: without actions of opposite directions no draw can change the tail
    if not _both(ways).any():
        return 1, "the losses of all actions are monotone in the same direction, or constant"
    m = chosen.shape[1]
    if m < ENOUGH_DRAWS:
        # with few draws per person, actions that other draws would choose go unnoticed
        return 2, (
            f"losses of different actions rise in both directions, and {count(m, 'draw')} per"
            " person cannot show whether the direction depends on the draw: use at least"
            f" {ENOUGH_DRAWS}, draws.jittered(n, 64)"
        )
    mixed = _both(chosen).mean()
    if mixed:
        return 2, (
            f"for {percent(mixed)} of people the direction in which the loss of the chosen action"
            " rises depends on the draw, so both tails count"
        )
    return 1, (
        "the direction in which the loss of the chosen action rises changes with the draw for no"
        f" person, over {m} draws each"
    )


def _both(ways: Ints) -> Mask:
    """Return whether each row contains both directions."""
    return np.any(ways > 0, axis=1) & np.any(ways < 0, axis=1)


def _interval(
    shares: Floats, n_draws: int, confidence: float, random: np.random.Generator
) -> tuple[float, float]:
    """Return a confidence interval for the mean of shares of each person's draws."""
    if shares.size == 0:  # one row per person may leave a group without rows
        return 0.0, 1.0
    if n_draws == 1:
        # one draw each: independent trials, for which Clopper-Pearson intervals are exact
        return share_interval(round(shares.sum()), shares.size, confidence)
    # shares in [0, 1]: a betting bound on each side, at half the error probability
    side = 1 - (1 - confidence) / 2
    low = 1 - betting_cvar(1 - shares, 1.0, 1.0, side, random)
    return low, betting_cvar(shares, 1.0, 1.0, side, random)


def _of_worst(shares: Floats, n_draws: int, masses: Floats, confidence: float) -> list[float]:
    """Return bounds on the mean share in any group of each size, simultaneous over sizes."""
    if n_draws > 1:
        worst = local_levels_band(shares, 1.0, confidence)
        return [worst.cvar(mass) for mass in masses.tolist()]
    # one draw per person: the worst group contains all people whose loss exceeds the bound
    most = share_bound(round(shares.sum()), shares.size, confidence)
    return [min(1.0, most / mass) for mass in masses.tolist()]


def _likely(forecast: Forecast, y: Floats) -> Floats:
    """Return outcomes at which to check losses: observed ones and quantiles of some forecasts."""
    n = len(forecast)
    # 200 people at most, and 257 outcomes of each kind
    some = forecast[np.linspace(0, n - 1, min(n, 200)).astype(int)]
    # only some people, evenly spaced: losses are users' functions and may be slow
    quantiles = some.ppf(CHECKED_LEVELS).ravel()
    levels = np.linspace(0.0, 1.0, 257)
    return np.concatenate(
        (np.quantile(y, levels), np.quantile(quantiles[np.isfinite(quantiles)], levels))
    )


__all__ = ["BayesDecision", "Decisions", "LossGuarantee", "StepLoss", "loss_guarantee"]
