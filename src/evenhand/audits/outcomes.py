"""Cells of a block of rows under their forecasts, events, and the part off an atom."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from evenhand._validate import Floats, InputError, Ints, bad_input
from evenhand.calibration import Cells
from evenhand.distributions import OutcomeKind, Randomized
from evenhand.draws import jittered
from evenhand.forecast import Forecast, cells_of
from evenhand.outcomes import Outcomes, Rounding
from evenhand.report import Measure

# --- cells of a block of rows

PIT_DRAWS = 64
"""Draws per row for PITs and log scores."""


class Block(NamedTuple):
    """Cells of some rows.

    Parameters
    ----------
    cells : Cells
        Cells of the outcomes under the forecasts.
    base : Cells or None
        Those under the deterministic forecaster inside a link, before the draw; None without one.
    mean : ndarray of shape (k,)
        Mean of each person's forecasts over the draws, units of y.
    """

    cells: Cells
    base: Cells | None
    mean: Floats


def forecast_of(model: Any, X: Any, random: np.random.Generator) -> Forecast:
    """Return the forecasts of a model at jittered draws, or the given forecasts."""
    if isinstance(model, Forecast):
        return model
    # one random draw in each of 64 equal cells: midpoints would understate errors (method: 1)
    draws = jittered(len(X), PIT_DRAWS, random)
    with missing_columns_named(model, X):
        forecast: Forecast = model.forecast(X, draws)
    return forecast


@contextmanager
def missing_columns_named(model: Any, X: Any) -> Iterator[None]:
    """Name the columns of its training table that a failing model does not find in X."""
    try:
        yield
    except InputError:
        raise
    except (KeyError, ValueError) as error:
        # models of other libraries are wrapped; arrays have no names
        names = getattr(getattr(model, "model", model), "feature_names_in_", ())
        lacking = [repr(name) for name in names if name not in getattr(X, "columns", names)]
        if not lacking:
            raise
        rule = "have the columns that the model was fitted on"
        remedy = "pass the table with these columns"
        raise bad_input("X", rule, f"none named {', '.join(lacking[:5])}", remedy) from error


def read_forecast(
    forecast: Forecast,
    outcomes: Outcomes,
    rounding: Rounding,
    ties: Floats,
    random: np.random.Generator,
    *,
    is_own: bool,
) -> Block:
    """Compute the cells of outcomes; `is_own` is true if the audit made the draws.

    Means of times that may be cut off have no use, and may take long: they are NaN.
    """
    link, base = forecast.inside_link(), None
    # served PITs are not computed from these: near 1 they would lose digits of the upper tail
    if link is not None:
        base = cells_of(link.base, forecast, outcomes, rounding, ties).before(link.link)
    cells = forecast.cells(outcomes, rounding=rounding, ties=ties)
    mean = np.full(len(forecast), np.nan)
    if not outcomes.are_times:
        mean = _mean(forecast, random, is_own=is_own)
    return Block(cells, base, mean)


def _mean(forecast: Forecast, random: np.random.Generator, *, is_own: bool) -> Floats:
    """Mean of each person's forecasts over the draws.

    If the audit makes the draws, a link has a formula for the mean over a uniform draw. Given
    forecasts are averaged over their own draws. Where a mean has no formula, it is estimated by
    one outcome drawn from each forecast, at jittered probabilities in random order. All of these
    estimates are unbiased.
    """
    distribution = forecast.distribution
    shape = distribution.batch_shape
    if len(shape) == 1:
        return forecast.mean()
    if distribution.has_mean:
        return np.asarray(distribution.mean().mean(axis=-1))
    # n x 64 integrals would take longer than the rest of the audit
    if (
        is_own
        and isinstance(distribution, Randomized)
        and not distribution.has_atoms
        and distribution.base.batch_shape == (shape[0], 1)
    ):
        return distribution.mean_over_draws(random)[:, 0]
    levels = random.permuted(jittered(shape[0], shape[1], random), axis=-1)
    return np.asarray(distribution.ppf(levels).mean(axis=-1))


# --- fields of what is read of rows: arrays, cells, and mappings and dataclasses of them


def joined(parts: Sequence[Any]) -> Any:
    """Concatenate what was read of blocks of rows; None if it is None in every block."""
    known = [one for one in parts if one is not None]
    first = known[0] if known else None
    if isinstance(first, Cells):
        return Cells.joined(known)
    if isinstance(first, np.ndarray):
        return np.concatenate(known)
    if isinstance(first, Mapping):
        return {key: joined([one[key] for one in known]) for key in first}
    if is_dataclass(first):
        names = [one.name for one in fields(first)]
        return replace(
            first, **{key: joined([getattr(one, key) for one in known]) for key in names}
        )  # type: ignore[type-var]
    return first


def taken(value: Any, rows: Ints) -> Any:
    """Return some rows of what was read, without weights."""
    if isinstance(value, Cells):
        return value.take(rows).without_weights()
    if isinstance(value, Outcomes):
        return value.take(rows)
    if isinstance(value, np.ndarray):
        return value[rows]
    if isinstance(value, PositivePart):
        return value.of_rows(rows)
    if is_dataclass(value):
        some = {one.name: taken(getattr(value, one.name), rows) for one in fields(value)}
        return replace(value, **some)  # type: ignore[type-var]
    return value


# --- events, and the part off an atom

Simulate = Callable[[np.random.Generator], Cells]
"""Function of a random generator that returns PITs of the same rows under their forecasts."""


@dataclass(frozen=True, eq=False)
class Events:
    """Events and their predicted probabilities.

    Parameters
    ----------
    probability : ndarray of shape (n,)
        Predicted probability of the event.
    happened : ndarray of shape (n,)
        1 where the event happened, 0 elsewhere.
    """

    probability: Floats
    happened: Floats

    @classmethod
    def of(cls, forecast: Forecast, outcomes: Floats) -> Events | None:
        """Return the events of a forecast: 0/1 outcomes, or outcomes off the atom of a hurdle.

        None for outcomes of other kinds.
        """
        if forecast.outcome_kind is OutcomeKind.BINARY:
            return cls(event_probability(forecast), outcomes)
        if forecast.outcome_kind is OutcomeKind.HURDLE:
            happened = forecast.is_off_atom(outcomes).astype(np.float64)
            return cls(event_probability(forecast), happened)
        return None


@dataclass(frozen=True, eq=False)
class RowCells:
    """Cells of the audited rows, and what an audit stores of the forecasts behind them.

    Parameters
    ----------
    cells : Cells
        Cells of the outcomes.
    kind : OutcomeKind or None
        Kind of outcome; None if only PITs are known.
    outcomes : Outcomes or None
        The outcomes; None if only PITs are known.
    residual : ndarray of shape (n,) or None
        Outcome minus the mean of the forecasts, units of y; NaN for times that may be cut off.
    base : Cells or None
        Cells under the deterministic forecaster inside a link, before the draw.
    events : Events or None
        Events and their probabilities.
    positive : PositivePart or None
        Cells of the people whose outcome is not the atom of a hurdle.
    simulate : callable or None
        Draws outcomes of a sample of the rows, and returns their PITs.
    at_horizon : ndarray of shape (n,) or None
        CDF at the horizon of the deterministic forecaster inside the link, or of a deterministic
        forecast; None without a horizon, and for other randomized forecasts.
    by_horizon : ndarray of shape (n,) or None
        Predicted probability of the event before the horizon, mean over draws; None without a
        horizon.
    time_base : Cells or None
        For randomized forecasts of times: cells under the distributions under which they are
        calibrated, one per person; None for others.
    keys : dict of str to ndarray of shape (n,)
        Values of the forecasts that define groups, by the column that rules name them by; empty if
        only PITs are known.
    step : float or None
        Grid that outcomes of a continuous forecast lie on, if they are rounded.
    rounding : Rounding
        Rounding cells of outcomes that have atoms although the forecast is continuous.
    scored : ndarray of int, shape (k,)
        Numbers of the rows that scores are computed on: all rows, or a random sample.
    scores : dict of Measure to ndarray of shape (k,)
        Scores of these rows.
    medians : ndarray of shape (k,)
        Medians of the forecasts of these rows, averaged over draws, units of y; probabilities of
        the event for 0/1 outcomes.
    plain : ndarray of shape (k, 4)
        Widths of the intervals of the deterministic forecaster, for the scored rows; NaN if
        there is none.
    """

    cells: Cells
    kind: OutcomeKind | None = None
    outcomes: Outcomes | None = None
    residual: Floats | None = None
    base: Cells | None = None
    events: Events | None = None
    positive: PositivePart | None = None
    simulate: Simulate | None = None
    at_horizon: Floats | None = None
    by_horizon: Floats | None = None
    time_base: Cells | None = None
    keys: Mapping[str, Floats] = field(default_factory=dict)
    step: float | None = None
    rounding: Rounding = field(default_factory=Rounding)
    scored: Ints = field(default_factory=lambda: np.empty(0, np.intp))
    scores: Mapping[Measure, Floats] = field(default_factory=dict)
    medians: Floats = field(default_factory=lambda: np.empty(0))
    plain: Floats = field(default_factory=lambda: np.empty((0, 0)))

    @classmethod
    def of_pits(cls, cells: Cells, residual: Floats | None) -> RowCells:
        """Return rows of which only PITs are known; cells of 0/1 outcomes have probabilities."""
        found = cells.events()
        if found is None:
            return cls(cells, residual=residual)
        events = Events(found[1], found[0])
        keys = {"predicted probability": events.probability}
        return cls(cells, OutcomeKind.BINARY, residual=residual, events=events, keys=keys)

    def take(self, rows: Ints) -> RowCells:
        """Return some rows without weights and scores, such as a sample of them."""
        known = {name: taken(getattr(self, name), rows) for name in OF_ROWS}
        return RowCells(kind=self.kind, **known)

    @property
    def times(self) -> Outcomes | None:
        """Outcomes that are times that may be cut off; None for others."""
        return self.outcomes if self.outcomes is not None and self.outcomes.are_times else None

    @cached_property
    def tested(self) -> Cells:
        """Cells that tests use, and errors beside them.

        Positions in the cells of open outcomes are uniform under calibrated forecasts if these are
        deterministic. Randomized forecasts are tested at completed times, which are points.
        """
        cells = self.cells
        return cells if self.time_base is None else cells.at_points(cells.unknown | cells.beyond)

    @cached_property
    def sized(self) -> Cells:
        """Cells that sizes of errors are estimated from: positions of who is lost are unknown."""
        cells = self.cells
        return cells if self.time_base is None else cells.at_points(cells.beyond)

    @property
    def is_censored(self) -> bool:
        """Whether outcomes are times that may be cut off."""
        return self.times is not None or bool(self.cells.unknown.any())

    @property
    def binary(self) -> tuple[Floats, Floats] | None:
        """0/1 outcomes and their probabilities, each (n,); None for outcomes of other kinds."""
        if self.kind is not OutcomeKind.BINARY or self.events is None:
            return None
        return self.events.happened, self.events.probability


OF_ROWS = (
    *("cells", "outcomes", "residual", "base", "events", "positive"),
    *("at_horizon", "by_horizon", "time_base"),
)
"""Fields with a value of each row, and the part off an atom."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PositivePart(RowCells):
    """Cells of the continuous part of a hurdle, of the people whose outcome is not the atom.

    Parameters
    ----------
    rows : ndarray of int, shape (k,)
        Numbers of their rows.
    at : float
        The atom.
    """

    rows: Ints
    at: float

    def of_rows(self, chosen: Ints) -> PositivePart | None:
        """Return the people among some rows, numbered by their place among these, no weights."""
        place = np.searchsorted(chosen, self.rows)
        is_in = (place < chosen.size) & (chosen[np.minimum(place, chosen.size - 1)] == self.rows)
        some = np.flatnonzero(is_in)
        if not some.size:
            return None
        return PositivePart(**vars(self.take(some)), rows=place[some], at=self.at)


def event_probability(forecast: Forecast) -> Floats:
    """Return each person's probability of the event, shape (n,).

    Only its mean over draws matters for the calibration of events (outcomes: Theorem 4.3).
    """
    probability = forecast.event_probability()
    return np.asarray(probability.mean(axis=-1) if probability.ndim == 2 else probability)
