"""Cells of rows under their forecasts, read in blocks, with scores and the part off an atom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np

from evenhand._validate import (
    Floats,
    InputError,
    Ints,
    Mask,
    bad_input,
    check_outcomes,
    counted_from,
)
from evenhand.calibration import COVERED, Cells, Events, cut_off, over_draws
from evenhand.certificates import WIDER_LEVELS
from evenhand.distributions import OutcomeKind, Randomized
from evenhand.draws import fresh, jittered, sampled_rows
from evenhand.forecast import Forecast, calibrated_under, cells_of, check_forecast_of_times
from evenhand.outcomes import Outcomes, Rounding
from evenhand.report import Measure
from evenhand.scoring import (
    censored_log_score,
    crps,
    crps_and_spread,
    interval_width,
    log_loss,
    log_score,
    log_score_on,
    spread,
)
from evenhand.search import Simulate, n_simulated
from evenhand.tables import forecast_values, row_blocks, take_rows

# --- cells of a block of rows

PIT_DRAWS = 64
"""Draws per row for PITs and log scores."""


def forecast_of(model: Any, X: Any, random: np.random.Generator) -> Forecast:
    """Return the forecasts of a model at jittered draws, or the given forecasts."""
    if isinstance(model, Forecast):
        return model
    # one random draw in each of 64 equal cells: midpoints would understate errors (method: 1)
    forecast: Forecast = model.forecast(X, jittered(len(X), PIT_DRAWS, random))
    return forecast


class Audited(NamedTuple):
    """A forecaster with its input rows, or given forecasts, of which `X` may be the table."""

    model: Any
    X: Any

    @classmethod
    def of(cls, model: Any, X: Any, n: int) -> Self:
        """Check a model and its number of rows.

        Fitted models of other libraries become forecasters, and `X` a table or an array.
        """
        if isinstance(model, Forecast):
            if model.n_samples != n:
                rule = f"have one outcome per forecast ({model.n_samples})"
                raise bad_input("y", rule, f"{n} outcomes")
            return cls(model, X)
        methods = ("forecast", "predict", "predict_proba", "predict_survival_function")
        if not any(hasattr(model, name) for name in methods) and not callable(model):
            remedy = (
                "pass a fitted model, such as a RecalibratedRegressor, or its forecasts as"
                " Forecast.from_probability(p) or Forecast.from_normal(mean, std)"
            )
            raise bad_input("model", "be a forecaster or a Forecast", type(model).__name__, remedy)
        if not hasattr(model, "forecast"):
            # an audit of forecasts does not need scikit-learn, which forecasters import
            from evenhand.forecasters import as_forecaster

            model = as_forecaster(model)
        if X is None:
            raise InputError("X is missing: a forecaster needs input rows; pass X=")
        if len(X) != n:
            raise bad_input("y", f"have one outcome per row of X ({len(X)})", f"{n} outcomes")
        return cls(model, X if hasattr(X, "columns") else np.asarray(X))

    @property
    def is_given(self) -> bool:
        """Whether forecasts were made before."""
        return isinstance(self.model, Forecast)

    def take(self, rows: slice | Ints) -> Audited:
        """Return some rows."""
        some = self.model[rows] if self.is_given else self.model
        return Audited(some, take_rows(self.X, rows))

    def forecast(self, rows: slice | Ints, random: np.random.Generator) -> Forecast:
        """Return the forecasts of some rows, of a forecaster at jittered draws."""
        return forecast_of(*self.take(rows), random)


def _mean(forecast: Forecast, random: np.random.Generator, *, is_own: bool) -> Floats:
    """Mean of each person's forecasts over the draws.

    If the audit makes the draws, a link has a formula for the mean over a uniform draw. Given
    forecasts are averaged over their own draws. Where a mean has no formula, it is estimated by
    one outcome drawn from each forecast, at jittered probabilities in random order. All of these
    estimates are unbiased.
    """
    distribution = forecast.distribution
    shape = distribution.batch_shape
    if len(shape) == 1 or distribution.has_mean:
        return over_draws(distribution.mean())
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


# --- fields of what is read of rows: arrays, cells, events, mappings and dataclasses of them


def joined(parts: Sequence[Any]) -> Any:
    """Concatenate what was read of blocks of rows; None if it is None in every block."""
    known = [one for one in parts if one is not None]
    first = known[0] if known else None
    if isinstance(first, Cells | Events):
        return type(first).joined(known)
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
    if isinstance(value, Outcomes | Events):
        return value.take(rows)
    if isinstance(value, np.ndarray):
        return value[rows]
    return value.among(rows) if isinstance(value, RowCells) else value


# --- events, and the part off an atom


def _nothing() -> Any:
    """Return values of no rows."""
    return np.empty(0, np.intp)


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
    positive : RowCells or None
        The continuous part of a hurdle, of the people whose outcome is not the atom.
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
        Their median forecasts, averaged over draws; probabilities of the event for 0/1 outcomes.
    plain : ndarray of shape (k, 4)
        Widths of their intervals under the deterministic forecaster; NaN if there is none.
    rows : ndarray of int, shape (n,)
        Of a continuous part, the numbers of its rows among all rows.
    at : float or None
        Of a continuous part, the atom.
    """

    cells: Cells
    kind: OutcomeKind | None = None
    outcomes: Outcomes | None = None
    residual: Floats | None = None
    base: Cells | None = None
    events: Events | None = None
    positive: RowCells | None = None
    simulate: Simulate | None = None
    at_horizon: Floats | None = None
    by_horizon: Floats | None = None
    time_base: Cells | None = None
    keys: Mapping[str, Floats] = field(default_factory=dict)
    step: float | None = None
    rounding: Rounding = field(default_factory=Rounding)
    scored: Ints = field(default_factory=_nothing)
    scores: Mapping[Measure, Floats] = field(default_factory=dict)
    medians: Floats = field(default_factory=_nothing)
    plain: Floats = field(default_factory=_nothing)
    rows: Ints = field(default_factory=_nothing)
    at: float | None = None

    @classmethod
    def of_pits(cls, cells: Cells, residual: Floats | None) -> RowCells:
        """Return rows of which only PITs are known; cells of 0/1 outcomes have probabilities."""
        found = cells.events()
        if found is None:
            return cls(cells, residual=residual)
        keys = {"predicted probability": found.probability}
        return cls(cells, OutcomeKind.BINARY, residual=residual, events=found, keys=keys)

    def take(self, rows: Ints) -> RowCells:
        """Return some rows without weights and scores, such as a sample of them."""
        known = {name: taken(getattr(self, name), rows) for name in OF_ROWS}
        return RowCells(kind=self.kind, **known)

    def among(self, chosen: Ints) -> RowCells | None:
        """Return a continuous part among some rows, numbered by their place among these."""
        _, place, some = np.intersect1d(chosen, self.rows, assume_unique=True, return_indices=True)
        return replace(self.take(some), rows=place, at=self.at) if some.size else None

    @property
    def times(self) -> Outcomes | None:
        """Outcomes that are times that may be cut off; None for others."""
        return self.outcomes if self.outcomes is not None and self.outcomes.are_times else None

    def weights_of(self, some: Mask | Ints) -> Floats | None:
        """Weights of some rows; None if rows have none."""
        return None if self.cells.weights is None else self.cells.weights[some]

    @cached_property
    def weight(self) -> Floats:
        """Weights of all rows; ones if rows have none."""
        return self.cells.each_weight

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
    def binary(self) -> Events | None:
        """0/1 outcomes and their probabilities; None for outcomes of other kinds."""
        return self.events if self.kind is OutcomeKind.BINARY else None


OF_ROWS = (
    *("cells", "outcomes", "residual", "base", "events", "positive"),
    *("at_horizon", "by_horizon", "time_base"),
)
"""Fields with a value of each row, and the part off an atom."""


# --- scores of each row


def forecast_scores(
    wide: Forecast, few: Forecast, outcomes: Outcomes, grid: Rounding
) -> dict[Measure, Floats]:
    """Compute the scores of each row that need forecasts, in the order of the report.

    `wide` are the forecasts over all draws, and `few` over some draws, for scores whose mean
    converges quickly. `grid` is that of all outcomes, if they are rounded and the forecasts
    continuous.

    The log score of an outcome that is an atom of its forecast is the negative logarithm of its
    probability, infinite at a probability of 0. Of 0/1 outcomes it is the log loss, and their CRPS
    is the Brier score; intervals of 0/1 outcomes have no useful width.

    The log score of a time that is cut off is the negative logarithm of the predicted probability
    of a later time, which makes it proper if being cut off is independent of the time given the
    features (Rindt et al., AISTATS 2022). Its CRPS is not known.
    """
    y = outcomes.value
    if outcomes.are_times:
        widths = _widths(few)
        censored = {Measure("log score"): censored_log_score(wide, outcomes)}
        return censored | {Measure("mean std"): spread(few)} | widths
    if wide.outcome_kind is OutcomeKind.BINARY:
        return {Measure("log loss"): log_loss(wide, y), Measure("Brier score"): crps(wide, y)}
    is_continuous = wide.outcome_kind is OutcomeKind.CONTINUOUS
    scores = {Measure("log score"): (log_score if is_continuous else log_loss)(wide, y)}
    if grid.step is not None:
        # spikes on the grid can raise a density without limit, but not a cell's probability
        scores[Measure("cell log score", grid.step)] = log_score_on(wide, y, grid)
    ranked, deviation = crps_and_spread(few, y)
    return scores | {Measure("CRPS"): ranked, Measure("mean std"): deviation} | _widths(few)


def _widths(forecast: Forecast) -> dict[Measure, Floats]:
    return {Measure("interval width", level): interval_width(forecast, level) for level in COVERED}


# --- simulated outcomes, for the null distribution of searches


def _rounded(forecast: Forecast, values: Floats, rounding: Rounding, origin: float) -> Floats:
    if not rounding.is_used:
        return values
    rounded = rounding.rounded(values, origin)
    at = forecast.atom
    # a value near the atom is rounded to the next value of the grid: it is not the atom
    return np.where((values == at) | (rounded == at), values, rounded)


# --- completed times


class Imputation(NamedTuple):
    """Completed times of people whose outcome is open above, for tests (outcomes: 5).

    Under calibrated forecasts, and if being cut off is independent of the time given the features,
    a completed time has the distribution of the time itself. For a deterministic forecast its PIT
    is the position in the cell. A randomized forecast is calibrated over its draws, and not given
    one: uniform positions in the cells of served forecasts would not be uniform over draws.

    Parameters
    ----------
    rows : ndarray of bool, shape (n,)
        People whose outcome is open above.
    times : ndarray of shape (n,)
        Completed times of these people; the times of others.
    ties : ndarray of shape (n,)
        Position of each completed time within its own cell, if it is an atom.
    base : Cells
        Cells of all people under the distributions under which the forecasts are calibrated.
    """

    rows: Mask
    times: Floats
    ties: Floats
    base: Cells

    @classmethod
    def of(
        cls,
        forecast: Forecast,
        times: Outcomes,
        rounding: Rounding,
        ties: Floats,
        random: np.random.Generator,
    ) -> Self:
        """Complete times; `ties` are those that positions in cells are computed from."""
        inside = calibrated_under(forecast, random)
        shape = (-1,) if len(inside.batch_shape) == 1 else (-1, 1)
        base = cells_of(inside, forecast, times, rounding, ties)
        level = base.drawn[:, 0]
        completed = inside.ppf(level.reshape(shape))
        least, most = (
            inside.cdf(completed, left=True).reshape(-1),
            inside.cdf(completed).reshape(-1),
        )
        own = np.divide(level - least, most - least, out=ties.copy(), where=most > least)
        rows = base.unknown | base.beyond
        values = np.where(rows, np.maximum(completed.reshape(-1), times.value), times.value)
        return cls(rows, values, np.clip(own, 0.0, 1.0), base)

    def moved(self, forecast: Forecast, cells: Cells, people: Ints, rows: Mask) -> Cells:
        """Return the cells of people with the positions of some at their completed times.

        `people` are the numbers of the rows of `forecast` and `cells`, of which `rows` are moved.
        """
        if cells.are_points or not rows.any():
            return cells
        chosen = people[rows]
        at = forecast[rows].cells(self.times[chosen], ties=self.ties[chosen])
        drawn = cells.drawn.copy()
        drawn[rows] = np.maximum(at.drawn, cells.low[rows])
        return replace(cells, drawn=drawn)


# --- cells of all rows, read in blocks


@dataclass(frozen=True, eq=False)
class RowReader:
    """Reader of the cells of all rows of an audit, block by block.

    Parameters
    ----------
    outcomes : Outcomes
        Outcomes of all rows.
    ties : ndarray of shape (n,)
        Position of each person within the cells, between 0 and 1.
    kind : OutcomeKind
        Kind of outcome.
    rounding : Rounding
        Rounding cells of outcomes that have atoms although the forecast is continuous.
    grid : Rounding
        Grid of all outcomes, if they are rounded and the forecasts continuous.
    """

    outcomes: Outcomes
    ties: Floats
    kind: OutcomeKind
    rounding: Rounding
    grid: Rounding = field(default_factory=Rounding)

    @classmethod
    def of(cls, forecast: Forecast, known: Outcomes, ties: Floats) -> Self:
        """Read the kind of outcome off the first forecasts, and check all outcomes."""
        check_forecast_of_times(forecast, known)
        kind = forecast.outcome_kind
        # many people may be cut off, or reach the horizon, at one time
        check_outcomes(known.value, kind=None if known.are_times else kind)
        # the grid is for scores of rounding cells, which times that are cut off do not have
        is_plain = kind is OutcomeKind.CONTINUOUS and not known.are_times
        grid = Rounding.grid(known.value) if is_plain else Rounding()
        return cls(known, ties, kind, forecast.rounding(known), grid)

    def read(
        self, rows: slice, forecast: Forecast, random: np.random.Generator, *, is_own: bool
    ) -> RowCells:
        """Read the forecasts of a block of rows."""
        outcomes, ties = self.outcomes.take(rows), self.ties[rows]
        found, guess = self._read(forecast, outcomes, ties, random, is_own), None
        if outcomes.are_times:
            guess = Imputation.of(forecast, outcomes, self.rounding, ties, random)
            if forecast.is_randomized and not found.cells.are_points:
                people = np.arange(len(forecast))
                moved = guess.moved(forecast, found.cells, people, guess.rows)
                found = replace(found, cells=moved, time_base=guess.base)
        # the event of a hurdle is an outcome off its atom, where its continuous part is read
        events = positive = None
        is_event = outcomes.value != (forecast.atom or 0.0)
        if self.kind in (OutcomeKind.BINARY, OutcomeKind.HURDLE):
            # only their mean over draws matters for the calibration (outcomes: Theorem 4.3)
            probability = over_draws(forecast.event_probability())
            events = Events(is_event.astype(np.float64), probability)
        # there may be no outcome but the atom
        if self.kind is OutcomeKind.HURDLE and is_event.any():
            off = np.flatnonzero(is_event)
            part = forecast.positive_part()[off]
            own = self._read(part, outcomes.take(off), ties[off], random, is_own)
            if guess is not None:
                known = guess.rows & (guess.times != forecast.atom)
                own = replace(own, cells=guess.moved(part, own.cells, off, known[off]))
            positive = replace(own, rows=off + rows.start, at=forecast.atom)
        at_horizon = by_horizon = None
        if outcomes.horizon is not None:
            by_horizon = over_draws(forecast.cdf(outcomes.horizon, left=True))
            inside = forecast.inside_link()
            if inside is not None or not forecast.is_randomized:
                base = forecast.distribution if inside is None else inside.base
                at_horizon = base.cdf(outcomes.horizon, left=True).reshape(-1)
        return replace(
            found,
            kind=self.kind,
            events=events,
            positive=positive,
            at_horizon=at_horizon,
            by_horizon=by_horizon,
        )

    def _read(
        self,
        forecast: Forecast,
        outcomes: Outcomes,
        ties: Floats,
        random: np.random.Generator,
        is_own: bool,
    ) -> RowCells:
        """Compute cells and residuals; `is_own` is true if the audit made the draws.

        Means of times that may be cut off have no use, and may take long: they are NaN.
        """
        link, base = forecast.inside_link(), None
        # served PITs are not computed from these: near 1 they would lose digits of the upper tail
        if link is not None:
            base = cells_of(link.base, forecast, outcomes, self.rounding, ties).before(link.link)
        cells = forecast.cells(outcomes, rounding=self.rounding, ties=ties)
        mean = np.full(len(forecast), np.nan)
        if not outcomes.are_times:
            mean = _mean(forecast, random, is_own=is_own)
        keys = {"predicted mean": mean}
        return RowCells(cells, base=base, residual=outcomes.value - mean, keys=keys)


# --- PITs and scores

SCORE_DRAWS = 16
"""Most draws per row for CRPS, spread and widths, whose means converge with fewer draws."""

# with more, the error of a mean is that of the sample of people
LEAST_SCORE_DRAWS = 4
SCORED_FORECASTS = 40_000
"""Draws for CRPS, spread and widths decrease to 4 per row with so many forecasts in all."""

# few enough that PITs dominate the memory
BLOCK_ROWS = 20_000
"""Rows forecast at once, and the largest number of rows that scores are computed on."""


def read_subject(audited: Audited, outcomes: Outcomes, random: np.random.Generator) -> RowCells:
    """Forecast each row once, and store cells and scores.

    A forecaster is evaluated with jittered draws; given forecasts keep their own draws.
    """
    n, weights, is_own = outcomes.n_samples, outcomes.weight, not audited.is_given
    # one position in the cell per person, shared by all draws: PITs of the true distribution are
    # uniform because it is independent of the draws (outcomes: 4.3)
    ties = fresh(n, random)
    # the intervals of mean scores are narrow at this size: more rows would only take time
    scored = sampled_rows(n, BLOCK_ROWS, random)
    reader: RowReader | None = None
    read: list[RowCells] = []
    kept: list[dict[str, Any]] = []
    for block in row_blocks(n, BLOCK_ROWS):
        with counted_from(block.start):
            forecast = audited.forecast(block, random)
        reader = reader or RowReader.of(forecast, outcomes, ties)
        read.append(reader.read(block, forecast, random, is_own=is_own))
        # draws given with the forecasts need not lie in equal cells, so all of them are used
        few = (
            _few_draws(forecast, scored.size, random)
            if is_own and forecast.is_randomized
            else forecast
        )
        # one table of quantiles of each block serves the mean, the CRPS and the spread
        for rows, part in few.blocks():
            wide = part if few is forecast else forecast[rows]
            here = slice(block.start + rows.start, block.start + rows.stop)
            kept.append(_kept(wide, part, reader, here, scored))
    assert reader is not None
    merged = joined(kept)
    found: RowCells = joined(read)
    cells, positive = Cells.joined([found.cells], weights), found.positive
    if positive is not None:
        off = positive.rows
        own = {**positive.keys, "80% width": merged["keys"]["80% width"][off]}
        of_part = Cells.joined([positive.cells], None if weights is None else weights[off])
        positive = replace(positive, cells=of_part, keys=own)
    base = found.time_base
    simulate = None
    if not cells.are_points:
        simulate = _simulation(audited, cells.n_draws, reader, random)
    return replace(
        found,
        cells=cells,
        positive=positive,
        time_base=None if base is None else Cells.joined([base], weights),
        simulate=simulate,
        outcomes=outcomes,
        step=reader.grid.step,
        rounding=reader.rounding,
        scored=scored,
        **merged,
    )


def _own_names(forecast: Forecast, outcomes: Outcomes) -> tuple[str, ...]:
    """Return the values of forecasts that define groups (verdict: 1)."""
    kind = forecast.outcome_kind
    if kind is OutcomeKind.BINARY:
        return ("predicted probability",)
    if kind is OutcomeKind.HURDLE:
        is_zero = forecast.atom_end == "low"
        level = ("chance of zero", "predicted mean") if is_zero else ("event by horizon",)
    else:
        level = ("predicted median",) if outcomes.are_times else ("predicted mean",)
    return (*level, "80% width")


def _simulation(
    audited: Audited, n_draws: int, read: RowReader, random: np.random.Generator
) -> Simulate:
    """Return a function that draws outcomes of a sample of the rows, and gives their PITs.

    The outcomes of a randomized forecast are drawn from the deterministic forecast inside its link,
    under which it is calibrated; those of other randomized forecasts from one of their draws,
    chosen at random. Rounded outcomes are rounded to the grid of the outcomes. Times are cut off
    anew, see `cut_off`.
    """
    n = read.outcomes.n_samples
    rows = sampled_rows(n, n_simulated(n, n_draws), random)
    forecast = audited.forecast(rows, random)
    # tests of randomized forecasts complete times, which then are as if nobody was cut off
    is_cut_off = read.outcomes.are_times and not forecast.is_randomized
    times = read.outcomes.take(rows) if is_cut_off else None
    rounding, origin = read.rounding, float(read.outcomes.value[0])

    def simulate(random: np.random.Generator) -> Cells:
        inside = calibrated_under(forecast, random)
        drawn = inside.ppf(fresh(inside.batch_shape, random)).reshape(-1)
        values = _rounded(forecast, drawn, rounding, origin)
        seen = values if times is None else cut_off(np.maximum(values, 0.0), times, random)
        return forecast.cells(seen, rounding=rounding, random_state=random)

    return simulate


def _kept(
    forecast: Forecast, few: Forecast, read: RowReader, block: slice, scored: Ints
) -> dict[str, Any]:
    """Return the fields of `RowCells` with scores, medians and values of some rows of a block.

    `few` are the forecasts of the block over some of the draws.
    """
    outcomes = read.outcomes
    inside = scored[(block.start <= scored) & (scored < block.stop)]
    places = inside - block.start
    wide = forecast if places.size == len(forecast) else forecast[places]
    some = few if places.size == len(few) else few[places]
    # leaks are detected by ranks; every distribution has a median, but a mean may need an
    # integral
    is_binary = forecast.outcome_kind is OutcomeKind.BINARY
    median = over_draws(some.event_probability() if is_binary else some.ppf(0.5))
    values = forecast_values(few, _own_names(few, outcomes))
    return {
        "scores": forecast_scores(wide, some, outcomes.take(inside), read.grid),
        "medians": median,
        "plain": _plain(some),
        "keys": {str(name): own.to_numpy() for name, own in values.items()},
    }


def _plain(forecast: Forecast) -> Floats:
    """Return the widths of the intervals without a draw at each level, shape (n, 4).

    They are NaN without a deterministic base.
    """
    shape, base = (len(forecast), len(WIDER_LEVELS)), forecast.distribution
    if forecast.is_randomized:
        link = forecast.inside_link()
        if link is None:
            return np.full(shape, np.nan)
        # one distribution per person, shape (n,) or (n, 1), or one for everybody
        base = link.base
    tails = (1 - np.array(WIDER_LEVELS)) / 2
    ends = base.expand().ppf(np.concatenate((tails, 1 - tails))).reshape(-1, 2 * tails.size)
    low, high = np.split(ends, 2, axis=-1)
    return np.broadcast_to(high - low, shape)


def _few_draws(forecast: Forecast, n: int, random: np.random.Generator) -> Forecast:
    """Keep one random draw in each of a few larger cells; the result is jittered, too."""
    draws = SCORE_DRAWS
    while draws > LEAST_SCORE_DRAWS and draws * n > SCORED_FORECASTS:
        draws //= 2
    per_cell = PIT_DRAWS // draws
    chosen = (per_cell * fresh((len(forecast), draws), random)).astype(np.intp)
    return forecast.take_draws(per_cell * np.arange(draws) + chosen)
