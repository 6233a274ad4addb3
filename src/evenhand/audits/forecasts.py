"""PITs and scores of a forecaster, or of given forecasts, on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import (
    MILD_ATOM,
    Floats,
    InputError,
    Ints,
    Mask,
    bad_input,
    check_outcomes,
    largest_atom,
)
from evenhand.audits.outcomes import (
    PIT_DRAWS,
    Block,
    Ends,
    Events,
    PositivePart,
    RoundingCells,
    RowPITs,
    Simulate,
    event_probability,
    forecast_of,
    inside_link,
    is_off_atom,
    outcome_ends,
    read_forecast,
    rounding_of,
    spread_pits,
)
from evenhand.audits.scores import forecast_scores
from evenhand.audits.tables import plain_widths
from evenhand.calibration import (
    Cells,
    CensoredTimes,
    Grid,
    KaplanMeier,
    Reading,
    calibration_error,
    cell_error,
)
from evenhand.certificates import LinkBase
from evenhand.distributions import Distribution, Hurdle, OutcomeKind, Randomized, as_hurdle
from evenhand.draws import fresh
from evenhand.forecast import Forecast, check_forecast_of_times, forecast_values, table_blocks
from evenhand.report import Measure, Note, NoteKind
from evenhand.tables import as_table, copies_in_words, row_blocks, take_rows

# --- simulated outcomes, for the null distribution of searches


def simulation(
    forecast: Forecast,
    rounding: RoundingCells,
    origin: float,
    times: CensoredTimes | None = None,
) -> Simulate:
    """Return a function that draws outcomes from forecasts, and gives the PITs of these outcomes.

    The outcomes of a randomized forecast are drawn from the deterministic forecast inside its link,
    under which it is calibrated; those of other randomized forecasts from one of their draws,
    chosen at random. Rounded outcomes are rounded to the grid that contains `origin`.

    Times are cut off anew, see `cut_off`.
    """

    def simulate(random: np.random.Generator) -> Cells:
        inside = calibrated(forecast, random)
        drawn = inside.ppf(fresh(inside.batch_shape, random)).reshape(-1)
        outcomes = _rounded(forecast, drawn, rounding, origin)
        seen = None if times is None else cut_off(np.maximum(outcomes, 0.0), times, random)
        outcomes = outcomes if seen is None else seen.time
        ends = outcome_ends(forecast, outcomes, rounding, seen)
        pit, cells = spread_pits(forecast.distribution, ends, fresh(outcomes.size, random))
        lost = None if seen is None else seen.is_lost * Reading.UNKNOWN
        return Cells(*(cells or (pit, pit)), pit, reading=lost)

    return simulate


def cut_off(latent: Floats, times: CensoredTimes, random: np.random.Generator) -> CensoredTimes:
    """Return new times of the same people, cut off as they were.

    A person who was lost is cut off at the same time. When the others would have been cut off is
    drawn from the Kaplan-Meier estimate of that time, given that it is later than what was seen of
    them. This assumes that it is independent of the features, so it is approximate.

    Parameters
    ----------
    latent : ndarray of shape (n,)
        New times until the event, at least 0.
    times : CensoredTimes
        The times that were seen.
    """
    lost = times.is_lost
    estimate = KaplanMeier.of(times.time, lost)
    before = estimate.at(times.time)
    levels = before + (1 - before) * fresh(lost.size, random)
    # beyond the last of these times nobody is cut off
    drawn = np.append(estimate.values, np.inf)[np.searchsorted(estimate.cdf, levels)]
    cut = np.where(lost, times.time, drawn)
    happened = latent <= cut
    if times.horizon is not None:
        happened &= latent < times.horizon
        cut = np.minimum(cut, times.horizon)
    seen = np.where(happened, latent, np.minimum(latent, cut))
    return CensoredTimes(seen, happened, times.horizon, times.entered, seen, happened)


def _rounded(forecast: Forecast, values: Floats, rounding: RoundingCells, origin: float) -> Floats:
    if not rounding.is_used:
        return values
    rounded = rounding.rounded(values, origin)
    if forecast.outcome_kind is not OutcomeKind.HURDLE:
        return rounded
    # a value near the atom is rounded to the next value of the grid: it is not the atom
    at = as_hurdle(forecast.distribution).at
    return np.where((values == at) | (rounded == at), values, rounded)


def calibrated(forecast: Forecast, random: np.random.Generator) -> Distribution:
    """Return distributions of shape (n,) or (n, 1) under which the forecasts are calibrated."""
    distribution = forecast.distribution
    inside = inside_link(forecast)
    if inside is not None:
        return inside.base
    if isinstance(distribution, Hurdle) and isinstance(distribution.positive, Randomized):
        chance = (
            distribution.chance if distribution.chance.ndim == 1 else distribution.chance[:, :1]
        )
        return Hurdle(chance, distribution.positive.base, distribution.at, distribution.end)
    if len(distribution.batch_shape) == 1:
        return distribution
    n, m = distribution.batch_shape
    return distribution.take_draws(random.integers(m, size=(n, 1)))


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
    pit, low, high : ndarray of shape (n,)
        PITs of all people under the distributions under which the forecasts are calibrated, and the
        ends of their cells.
    """

    rows: Mask
    times: Floats
    ties: Floats
    pit: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(
        cls,
        forecast: Forecast,
        times: CensoredTimes,
        ends: Ends,
        ties: Floats,
        random: np.random.Generator,
    ) -> Self:
        """Complete times; `ends` and `ties` are those that PITs are computed from."""
        rows = np.isposinf(ends[1]) & ~times.happened
        inside = calibrated(forecast, random)
        shape = (-1,) if len(inside.batch_shape) == 1 else (-1, 1)
        level, cells = spread_pits(inside, ends, ties)
        low, high = (end.reshape(-1) for end in (cells or (level, level)))
        completed = inside.ppf(level.reshape(shape))
        least, most = (inside.cdf_left(completed).reshape(-1), inside.cdf(completed).reshape(-1))
        level, width = level.reshape(-1), most - least
        own = np.divide(level - least, width, out=ties.copy(), where=width > 0)
        values = np.where(rows, np.maximum(completed.reshape(-1), times.time), times.time)
        return cls(rows, values, np.clip(own, 0.0, 1.0), level, low, high)

    def take(self, rows: Ints) -> Self:
        """Return the completed times of some people."""
        values: tuple[Any, ...] = self
        return type(self)(*(one[rows] for one in values))

    def positions(self, forecast: Forecast, pits: Floats, low: Floats, rows: Mask) -> Floats:
        """Return PITs, shape (n, m), with those of some people at their completed times.

        `low` are the lower ends of what is known of the PITs.
        """
        found = pits.copy()
        if rows.any():
            at = self.times[rows]
            moved, _ = spread_pits(forecast[rows].distribution, (at, at), self.ties[rows])
            found[rows] = np.maximum(moved.reshape(at.size, -1), low[rows])
        return found


# --- PITs of all rows, read in blocks


class RowReader:
    """PITs of all rows of an audit, filled in block by block.

    Arrays of all rows are made with the first block: a list of blocks would double the memory.

    Parameters
    ----------
    outcomes : ndarray of shape (n,)
        Outcomes of all rows, finite.
    ties : ndarray of shape (n,)
        Position of each person's PITs within their cells, between 0 and 1.
    times : CensoredTimes or None
        Which of the outcomes are times that are cut off; None if all are known.
    """

    def __init__(self, outcomes: Floats, ties: Floats, times: CensoredTimes | None = None) -> None:
        self.outcomes = outcomes
        self.times = times
        self.at_horizon: Floats | None = None
        self.by_horizon: Floats | None = None
        self.mean = np.empty(outcomes.size)
        self.base: LinkBase | None = None
        self.kind = OutcomeKind.CONTINUOUS
        self.rounding = RoundingCells()
        self.grid: Grid | None = None
        self._ties = ties
        self._pit = np.empty((outcomes.size, 0))
        self._r: Floats | None = None
        self._cells: Ends | None = None
        self.events: Events | None = None
        self._positive: list[Block] = []
        self._base: Floats | None = None
        self._at = 0.0
        self._off_atom = np.zeros(outcomes.size, dtype=np.bool_)

    def add(
        self, rows: slice, forecast: Forecast, random: np.random.Generator, *, is_own: bool
    ) -> None:
        """Read the forecasts of a block of rows; the first block begins with row 0."""
        if rows.start == 0:
            self._start(forecast)
        outcomes, ties = self.outcomes[rows], self._ties[rows]
        times = None if self.times is None else self.times.take(rows)
        ends = outcome_ends(forecast, outcomes, self.rounding, times)
        has_mean = times is None
        block = read_forecast(forecast, ends, ties, random, is_own=is_own, has_mean=has_mean)
        guess = None
        if times is not None:
            guess = Imputation.of(forecast, times, ends, ties, random)
            if forecast.is_randomized and block.cells is not None:
                if self._base is None:
                    self._base = np.empty((3, self.outcomes.size))
                self._base[:, rows] = guess.pit, guess.low, guess.high
                pit = guess.positions(forecast, block.pit, block.cells[0], guess.rows)
                block = block._replace(pit=pit)
        self._fill(rows, block)
        if times is not None and times.horizon is not None:
            self._fill_horizon(rows, forecast, times.horizon)
        found = Events.of(forecast, outcomes)
        if found is not None and self.events is not None:
            self.events.probability[rows] = found.probability
            self.events.happened[rows] = found.happened
        if self.kind is OutcomeKind.HURDLE:
            off = np.flatnonzero(is_off_atom(forecast, outcomes))
            self._off_atom[rows] = is_off_atom(forecast, outcomes)
            if off.size:
                part = forecast.positive_part()[off]
                ends = ends[0][off], ends[1][off]
                block = read_forecast(
                    part, ends, ties[off], random, is_own=is_own, has_mean=has_mean
                )
                if guess is not None and block.cells is not None:
                    guess = guess.take(off)
                    is_before = is_off_atom(forecast, guess.times)
                    some = guess.rows & is_before
                    pit = guess.positions(part, block.pit, block.cells[0], some)
                    block = block._replace(pit=pit)
                self._positive.append(block)

    def time_base(self, weights: Floats | None) -> Cells | None:
        """Return PITs of the base of randomized forecasts of times; None for others."""
        if self._base is None or self.times is None:
            return None
        pit, low, high = (values[:, None] for values in self._base)
        return Cells(low, high, pit, None, weights, self.times.is_lost * Reading.UNKNOWN)

    def _fill_horizon(self, rows: slice, forecast: Forecast, horizon: float) -> None:
        if self.by_horizon is None:
            self.by_horizon = np.empty(self.outcomes.size)
        served = forecast.cdf_left(horizon)
        self.by_horizon[rows] = served.reshape(served.shape[0], -1).mean(axis=-1)
        inside = inside_link(forecast)
        known = forecast.distribution if inside is None else inside.base
        if inside is None and forecast.is_randomized:
            return
        if self.at_horizon is None:
            self.at_horizon = np.empty(self.outcomes.size)
        self.at_horizon[rows] = known.cdf_left(horizon).reshape(-1)

    def _start(self, forecast: Forecast) -> None:
        """Read the kind of outcome off the first forecasts, and check all outcomes."""
        check_forecast_of_times(forecast, self.times)
        self.kind = forecast.outcome_kind
        # many people may be cut off, or reach the horizon, at one time
        check_outcomes(self.outcomes, kind=str(self.kind) if self.times is None else None)
        self.rounding = rounding_of(forecast, self.outcomes, self.times)
        # the grid is for scores of rounding cells, which times that are cut off do not have
        if self.kind is OutcomeKind.CONTINUOUS and self.times is None:
            self.grid = Grid.of(self.outcomes)
        if self.kind is OutcomeKind.HURDLE:
            self._at = as_hurdle(forecast.distribution).at
        if self.kind in (OutcomeKind.BINARY, OutcomeKind.HURDLE):
            self.events = Events(np.empty(self.outcomes.size), np.empty(self.outcomes.size))

    def _fill(self, rows: slice, block: Block) -> None:
        n = self.outcomes.size
        if rows.start == 0:  # draws, cells and link are known from the first block
            shape = (n, block.pit.shape[1])
            self._pit = np.empty(shape)
            self._r = None if block.r is None else np.empty((n, block.r.shape[1]))
            # a block without atoms at the ends has no cells, although others may have them
            has_cells = block.cells is not None or self.rounding.is_used or self.times is not None
            self._cells = (np.empty(shape), np.empty(shape)) if has_cells else None
            if block.base is not None:
                own = (np.empty(n), np.empty(n)) if has_cells else None
                self.base = LinkBase(np.empty(n), block.base.link, own)
        self._pit[rows] = block.pit
        self.mean[rows] = block.mean
        if self._r is not None:
            self._r[rows] = block.r
        if self._cells is not None:
            ends = (block.pit, block.pit) if block.cells is None else block.cells
            self._cells[0][rows], self._cells[1][rows] = ends
        if self.base is not None and block.base is not None:
            self.base.pit[rows] = block.base.pit
            if self.base.cells is not None:
                low, high = block.base.cells or (block.base.pit, block.base.pit)
                self.base.cells[0][rows], self.base.cells[1][rows] = low, high

    def pits(self, weights: Floats | None) -> Cells:
        """Return the PITs of all rows."""
        ends = self._cells or (self._pit, self._pit)
        lost = None if self.times is None else self.times.is_lost * Reading.UNKNOWN
        return Cells(*ends, self._pit, self._r, weights, lost)

    def positive(self, weights: Floats | None, keys: Mapping[str, Floats]) -> PositivePart | None:
        """Return the PITs of the people whose outcome is not the atom of a hurdle, if any."""
        if not self._positive:
            return None
        rows = np.flatnonzero(self._off_atom)
        part = PositivePart.joined(
            rows, self._positive, self.outcomes, weights, self._at, self.times
        )
        return replace(part, keys={**part.keys, "80% width": keys["80% width"][rows]})


# --- PITs and scores

SCORE_DRAWS = 16
"""Most draws per row for CRPS, spread and widths, whose means converge with fewer draws."""

LEAST_SCORE_DRAWS = 4
SCORED_FORECASTS = 40_000
"""Draws for CRPS, spread and widths decrease to 4 per row with at least so many forecasts in all:
beyond it the error of a mean is that of the sample of people."""

SIMULATED_ROWS = 5000
SIMULATED_PITS = 1 << 17
"""Most rows, and most PITs, whose outcomes are simulated: those of `search.null_curve`."""

BLOCK_ROWS = 20_000
"""Rows forecast at once, so that PITs dominate the memory; also the largest number of rows that
scores are computed on."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Subject(RowPITs):
    """PITs of held-out rows, and what an audit stores of their forecasts beside them.

    Parameters
    ----------
    outcomes : ndarray of shape (n,)
        The outcomes.
    residual : ndarray of shape (n,)
        Outcome minus the mean of the forecasts, units of y; NaN for times that may be cut off.
    step : float or None
        Grid that outcomes of a continuous forecast lie on, if they are rounded.
    rounding : RoundingCells
        Cells of outcomes that have atoms although the forecast is continuous.
    scored : ndarray of int, shape (k,)
        Numbers of the rows that scores are computed on: all rows, or a random sample of
        `BLOCK_ROWS`.
    scores : dict of Measure to ndarray of shape (k,)
        Scores of these rows.
    medians : ndarray of shape (k,)
        Medians of the forecasts of these rows, averaged over draws, units of y; probabilities of
        the event for 0/1 outcomes.
    plain : ndarray of shape (k, 4)
        Widths of the intervals of the deterministic forecaster, for the scored rows; NaN if
        there is none.
    """

    outcomes: Floats
    residual: Floats
    step: float | None
    rounding: RoundingCells
    scored: NDArray[np.intp]
    scores: dict[Measure, Floats]
    medians: Floats
    plain: Floats


def read_subject(
    model: Any,
    X: Any,
    outcomes: Floats,
    random: np.random.Generator,
    *,
    weights: Floats | None = None,
    times: CensoredTimes | None = None,
) -> Subject:
    """Forecast each row once, and store PITs and scores.

    A forecaster is evaluated with jittered draws; given forecasts keep their own draws. Outcomes
    must be finite, and `X` must come from `check_rows`. Of `times` that may be cut off, `outcomes`
    are the times.
    """
    n = outcomes.size
    is_own = not isinstance(model, Forecast)
    # one position in the cell per person, shared by all draws: PITs of the true distribution are
    # uniform because it is independent of the draws (outcomes: 4.3)
    ties = fresh(n, random)
    scored = np.arange(n)
    # the intervals of mean scores are narrow at this size: more rows would only take time
    if n > BLOCK_ROWS:
        scored = np.sort(random.choice(n, BLOCK_ROWS, replace=False))
    read = RowReader(outcomes, ties, times)
    kept: list[_Kept] = []
    for block in row_blocks(n, BLOCK_ROWS):
        forecast = forecast_of(*_block_of(model, X, block), random)
        read.add(block, forecast, random, is_own=is_own)
        # draws given with the forecasts need not lie in equal cells, so all of them are used
        few = (
            _few_draws(forecast, scored.size, random)
            if is_own and forecast.is_randomized
            else forecast
        )
        # one table of quantiles of each block serves the mean, the CRPS and the spread
        for rows, part in table_blocks(few):
            wide = part if few is forecast else forecast[rows]
            here = slice(block.start + rows.start, block.start + rows.stop)
            kept.append(_Kept.of(wide, part, read, here, scored))
    pits = read.pits(weights)
    merged = _Kept.joined(kept)
    return Subject(
        pits,
        read.kind,
        read.base,
        read.events,
        read.positive(weights, merged.keys),
        None if pits.are_points else _simulation(model, X, pits.n_draws, read, random),
        times,
        read.at_horizon,
        read.by_horizon,
        read.time_base(weights),
        merged.keys,
        outcomes=outcomes,
        residual=outcomes - read.mean,
        step=None if read.grid is None else read.grid.step,
        rounding=read.rounding,
        scored=scored,
        scores=merged.scores,
        medians=merged.medians,
        plain=merged.plain,
    )


def _own_names(forecast: Forecast, times: CensoredTimes | None) -> tuple[str, ...]:
    """Return the values of forecasts that define groups (verdict: 1)."""
    kind = forecast.outcome_kind
    if kind is OutcomeKind.BINARY:
        return ("predicted probability",)
    if kind is OutcomeKind.HURDLE:
        is_zero = as_hurdle(forecast.distribution).end == "low"
        level = ("chance of zero", "predicted mean") if is_zero else ("event by horizon",)
    else:
        level = ("predicted mean",) if times is None else ("predicted median",)
    return (*level, "80% width")


def _simulation(
    model: Any, X: Any, n_draws: int, read: RowReader, random: np.random.Generator
) -> Simulate:
    """Return a function that draws outcomes of a sample of the rows, and gives their PITs."""
    n = read.outcomes.size
    most = min(n, SIMULATED_ROWS, max(SIMULATED_PITS // n_draws, 1))
    rows = np.arange(n) if most == n else np.sort(random.choice(n, most, replace=False))
    if isinstance(model, Forecast):
        some = model[rows]
    else:
        some = forecast_of(model, take_rows(X, rows), random)
    # tests of randomized forecasts complete times, which then are as if nobody was cut off
    is_cut_off = read.times is not None and not some.is_randomized
    times = read.times.take(rows) if is_cut_off and read.times is not None else None
    return simulation(some, read.rounding, float(read.outcomes[0]), times)


def check_model(model: Any) -> Any:
    """Return a forecaster or a Forecast; fitted models of other libraries become forecasters."""
    if isinstance(model, Forecast) or hasattr(model, "forecast"):
        return model
    methods = ("predict", "predict_survival_function")
    if not any(hasattr(model, name) for name in methods) and not callable(model):
        remedy = (
            "pass a fitted model, such as a RecalibratedRegressor, or its forecasts as"
            " Forecast.from_probability(p) or Forecast.from_normal(mean, std)"
        )
        raise bad_input("model", "be a forecaster or a Forecast", type(model).__name__, remedy)
    # imported here, as forecasters import scikit-learn, which an audit of forecasts does not need
    from evenhand.forecasters import as_forecaster

    return as_forecaster(model)


def check_rows(model: Any, X: Any, n: int) -> Any:
    """Check the number of rows, and return X as a table or an array."""
    if isinstance(model, Forecast):
        if model.n_samples != n:
            raise bad_input(
                "y", f"have one outcome per forecast ({model.n_samples})", f"{n} outcomes"
            )
        return X
    if X is None:
        raise InputError("X is missing: a forecaster needs input rows; pass X=")
    if len(X) != n:
        raise bad_input("y", f"have one outcome per row of X ({len(X)})", f"{n} outcomes")
    return X if hasattr(X, "columns") else np.asarray(X)


def copies_among(X: Any, subject: Subject) -> str | None:
    """Return a warning if scored rows are copies, by their columns and deterministic forecasts."""
    is_table = hasattr(X, "columns") or np.ndim(X) == 2
    table = as_table(take_rows(X, subject.scored)) if is_table else pd.DataFrame()
    if not subject.pits.is_randomized:
        table = table.assign(**{"": subject.medians})
    return copies_in_words(table, subject.outcomes[subject.scored])


@dataclass(frozen=True)
class _Kept:
    """Scores and medians of the forecasts of a block of rows."""

    scores: dict[Measure, Floats]
    medians: Floats
    plain: Floats
    keys: Mapping[str, Floats]

    @classmethod
    def of(
        cls,
        forecast: Forecast,
        few: Forecast,
        read: RowReader,
        block: slice,
        scored: NDArray[np.intp],
    ) -> _Kept:
        """Score some rows of a block; `few` are its forecasts over some of the draws."""
        outcomes = read.outcomes
        # `scored` is sorted, so the rows of a block are a slice of it
        inside = scored[np.searchsorted(scored, block.start) : np.searchsorted(scored, block.stop)]
        places = inside - block.start
        wide = forecast if places.size == len(forecast) else forecast[places]
        some = few if places.size == len(few) else few[places]
        # leaks are detected by ranks; every distribution has a median, but a mean may need an
        # integral
        is_binary = forecast.outcome_kind is OutcomeKind.BINARY
        median = event_probability(some) if is_binary else some.ppf(0.5)
        return cls(
            forecast_scores(
                wide,
                some,
                outcomes[inside],
                read.grid,
                None if read.times is None else read.times.take(inside),
            ),
            np.asarray(median.mean(axis=-1) if median.ndim == 2 else median),
            _plain(some),
            {
                str(name): values.to_numpy()
                for name, values in forecast_values(few, _own_names(few, read.times)).items()
            },
        )

    @staticmethod
    def joined(kept: list[_Kept]) -> _Kept:
        """Concatenate the results of all blocks, in their order."""
        return _Kept(
            {key: np.concatenate([one.scores[key] for one in kept]) for key in kept[0].scores},
            np.concatenate([one.medians for one in kept]),
            np.concatenate([one.plain for one in kept]),
            {key: np.concatenate([one.keys[key] for one in kept]) for key in kept[0].keys},
        )


def _plain(forecast: Forecast) -> Floats:
    """Return the widths of intervals without a draw; NaN without a deterministic base."""
    if not forecast.is_randomized:
        return plain_widths(forecast.distribution, len(forecast))
    link = inside_link(forecast)
    return plain_widths(None if link is None else link.base, len(forecast))


def _block_of(model: Any, X: Any, block: slice) -> tuple[Any, Any]:
    """Return the model and the rows of a block, or the given forecasts of the block."""
    # indexing copies the parameters: it is skipped where one block contains all rows
    if isinstance(model, Forecast):
        return (model if block == slice(0, len(model)) else model[block]), None
    return model, X if block == slice(0, len(X)) else take_rows(X, block)


def _few_draws(forecast: Forecast, n: int, random: np.random.Generator) -> Forecast:
    """Keep one random draw in each of a few larger cells; the result is jittered, too."""
    draws = SCORE_DRAWS
    while draws > LEAST_SCORE_DRAWS and draws * n > SCORED_FORECASTS:
        draws //= 2
    per_cell = PIT_DRAWS // draws
    chosen = (per_cell * fresh((len(forecast), draws), random)).astype(np.intp)
    return forecast.take_draws(per_cell * np.arange(draws) + chosen)


# --- notes on outcomes


def grid_findings(subject: Subject) -> tuple[float | None, tuple[Note, ...]]:
    """Return the share of the average error that rounding may explain, and notes on atoms.

    The least error `I` of any positions in the rounding cells remains whatever the exact outcomes
    were; the rest of the error `d`, a share `(d - I) / d` of it, may be due to rounding
    (outcomes: 2). The share is None where PITs are not spread over rounding cells.

    Parameters
    ----------
    subject : Subject
        Forecasts of the audited rows.
    """
    pits, rounding = subject.pits, subject.rounding
    # cells of times that are cut off are no rounding, and atoms at a horizon or at the end of
    # follow-up neither
    if subject.kind is not OutcomeKind.CONTINUOUS or subject.times is not None:
        return None, ()
    value, atom = largest_atom(subject.outcomes)
    if atom <= MILD_ATOM or atom * subject.outcomes.size < 1.5:
        return None, ()
    notes: tuple[Note, ...] = ()
    if np.isin(subject.outcomes, (0.0, 1.0)).all():
        notes = (Note(NoteKind.EVENT_AS_CONTINUOUS),)
    if pits.are_points:
        return None, (*notes, Note(NoteKind.TIED_OUTCOMES, numbers=(value, atom)))
    least, average_error = cell_error(pits), calibration_error(pits)
    share = max((average_error - least) / average_error, 0.0) if average_error > 0 else 0.0
    step = np.nan if rounding.step is None else rounding.step
    note = Note(NoteKind.ROUNDING_CELLS, numbers=(value, atom, step, share))
    return share, (*notes, note)


def time_notes(times: CensoredTimes | None) -> tuple[Note, ...]:
    """Return a note on the times that are cut off, and on what their analysis assumes."""
    if times is None:
        return ()
    if times.happened.all():
        return (Note(NoteKind.NO_TIME_CUT_OFF),)
    n_lost = int(times.is_lost.sum())
    return (Note(NoteKind.CUT_OFF_TIMES, numbers=(n_lost, times.n_samples)),) if n_lost else ()


def excluded_outcomes(subject: Subject) -> tuple[Note, ...]:
    """Return a note on the outcomes to which their forecasts give no probability, if any."""
    infinite = [int(np.isinf(values).sum()) for values in subject.scores.values()]
    most = max(infinite, default=0)
    return (Note(NoteKind.EXCLUDED_OUTCOMES, numbers=(most,)),) if most else ()
