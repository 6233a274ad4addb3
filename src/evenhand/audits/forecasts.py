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
    rows_from,
)
from evenhand.audits.outcomes import (
    PIT_DRAWS,
    Events,
    PositivePart,
    RowCells,
    Simulate,
    event_probability,
    forecast_of,
    joined,
    read_forecast,
)
from evenhand.audits.scores import forecast_scores
from evenhand.calibration import Cells, KaplanMeier, calibration_error, cell_error
from evenhand.certificates import WIDER_LEVELS
from evenhand.distributions import Distribution, Hurdle, OutcomeKind, Randomized, as_hurdle
from evenhand.draws import fresh
from evenhand.forecast import Forecast, cells_of, check_forecast_of_times
from evenhand.outcomes import Outcomes, Rounding
from evenhand.report import Measure, NoteKind, note
from evenhand.results import Note
from evenhand.tables import as_table, copies_in_words, forecast_values, row_blocks, take_rows

# --- simulated outcomes, for the null distribution of searches


def cut_off(latent: Floats, times: Outcomes, random: np.random.Generator) -> Outcomes:
    """Return new times of the same people, cut off as they were.

    A person who was lost is cut off at the same time. When the others would have been cut off is
    drawn from the Kaplan-Meier estimate of that time, given that it is later than what was seen of
    them. This assumes that it is independent of the features, so it is approximate.

    Parameters
    ----------
    latent : ndarray of shape (n,)
        New times until the event, at least 0.
    times : Outcomes
        The times that were seen.
    """
    lost = times.is_lost
    estimate = KaplanMeier.of(times.value, lost)
    before = estimate.at(times.value)
    levels = before + (1 - before) * fresh(lost.size, random)
    # beyond the last of these times nobody is cut off
    drawn = np.append(estimate.values, np.inf)[np.searchsorted(estimate.cdf, levels)]
    cut = np.where(lost, times.value, drawn)
    happened = latent <= cut
    if times.horizon is not None:
        happened &= latent < times.horizon
        cut = np.minimum(cut, times.horizon)
    seen = np.where(happened, latent, np.minimum(latent, cut))
    return times.completed(seen, happened)


def _rounded(forecast: Forecast, values: Floats, rounding: Rounding, origin: float) -> Floats:
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
    inside = forecast.inside_link()
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
        inside = calibrated(forecast, random)
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


class RowReader:
    """Reader of the cells of all rows of an audit, block by block.

    Parameters
    ----------
    outcomes : Outcomes
        Outcomes of all rows.
    ties : ndarray of shape (n,)
        Position of each person within the cells, between 0 and 1.
    """

    def __init__(self, outcomes: Outcomes, ties: Floats) -> None:
        self.outcomes = outcomes
        self.kind = OutcomeKind.CONTINUOUS
        self.rounding = Rounding()
        self.grid: Rounding | None = None
        self._ties = ties

    def read(
        self, rows: slice, forecast: Forecast, random: np.random.Generator, *, is_own: bool
    ) -> RowCells:
        """Read the forecasts of a block of rows; the first block begins with row 0."""
        if rows.start == 0:
            self._start(forecast)
        outcomes, ties = self.outcomes.take(rows), self._ties[rows]
        block = read_forecast(forecast, outcomes, self.rounding, ties, random, is_own=is_own)
        cells, base, mean = block
        guess = time_base = None
        if outcomes.are_times:
            guess = Imputation.of(forecast, outcomes, self.rounding, ties, random)
            if forecast.is_randomized and not cells.are_points:
                time_base = guess.base
                cells = guess.moved(forecast, cells, np.arange(len(forecast)), guess.rows)
        at_horizon, by_horizon = _at_horizon(forecast, outcomes.horizon)
        return RowCells(
            cells,
            self.kind,
            residual=outcomes.value - mean,
            base=base,
            events=Events.of(forecast, outcomes.value),
            positive=self._positive(rows.start, forecast, outcomes, guess, random, is_own),
            at_horizon=at_horizon,
            by_horizon=by_horizon,
            time_base=time_base,
        )

    def _positive(
        self,
        start: int,
        forecast: Forecast,
        outcomes: Outcomes,
        guess: Imputation | None,
        random: np.random.Generator,
        is_own: bool,
    ) -> PositivePart | None:
        """Read the continuous part of a hurdle; None if every outcome is the atom."""
        if self.kind is not OutcomeKind.HURDLE:
            return None
        off = np.flatnonzero(forecast.is_off_atom(outcomes.value))
        if not off.size:
            return None
        part, some, ties = (
            forecast.positive_part()[off],
            outcomes.take(off),
            self._ties[start + off],
        )
        cells, base, mean = read_forecast(part, some, self.rounding, ties, random, is_own=is_own)
        if guess is not None:
            is_before = forecast.is_off_atom(guess.times)
            cells = guess.moved(part, cells, off, (guess.rows & is_before)[off])
        at = as_hurdle(forecast.distribution).at
        keys = {"predicted mean": mean}
        residual = some.value - mean
        return PositivePart(
            rows=off + start, cells=cells, base=base, residual=residual, at=at, keys=keys
        )

    def _start(self, forecast: Forecast) -> None:
        """Read the kind of outcome off the first forecasts, and check all outcomes."""
        known = self.outcomes
        check_forecast_of_times(forecast, known)
        self.kind = forecast.outcome_kind
        # many people may be cut off, or reach the horizon, at one time
        check_outcomes(known.value, kind=None if known.are_times else str(self.kind))
        self.rounding = forecast.rounding(known)
        # the grid is for scores of rounding cells, which times that are cut off do not have
        if self.kind is OutcomeKind.CONTINUOUS and not known.are_times:
            self.grid = Rounding.grid(known.value)


def _at_horizon(forecast: Forecast, horizon: float | None) -> tuple[Floats | None, Floats | None]:
    """Return `at_horizon` and `by_horizon` of `RowCells`."""
    if horizon is None:
        return None, None
    served = forecast.cdf(horizon, left=True)
    inside = forecast.inside_link()
    at = None
    if inside is not None or not forecast.is_randomized:
        known = forecast.distribution if inside is None else inside.base
        at = known.cdf(horizon, left=True).reshape(-1)
    return at, served.reshape(served.shape[0], -1).mean(axis=-1)


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


def read_subject(
    model: Any,
    X: Any,
    outcomes: Outcomes,
    random: np.random.Generator,
    *,
    weights: Floats | None = None,
) -> RowCells:
    """Forecast each row once, and store cells and scores.

    A forecaster is evaluated with jittered draws; given forecasts keep their own draws. `X` must
    come from `check_rows`.
    """
    n = outcomes.n_samples
    is_own = not isinstance(model, Forecast)
    # one position in the cell per person, shared by all draws: PITs of the true distribution are
    # uniform because it is independent of the draws (outcomes: 4.3)
    ties = fresh(n, random)
    scored = np.arange(n)
    # the intervals of mean scores are narrow at this size: more rows would only take time
    if n > BLOCK_ROWS:
        scored = np.sort(random.choice(n, BLOCK_ROWS, replace=False))
    reader = RowReader(outcomes, ties)
    read: list[RowCells] = []
    kept: list[_Kept] = []
    for block in row_blocks(n, BLOCK_ROWS):
        with rows_from(block.start):
            forecast = forecast_of(*_block_of(model, X, block), random)
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
            kept.append(_Kept.of(wide, part, reader, here, scored))
    merged: _Kept = joined(kept)
    found: RowCells = joined(read)
    cells, positive = Cells.joined([found.cells], weights), found.positive
    if positive is not None:
        off = positive.rows
        own = {**positive.keys, "80% width": merged.keys["80% width"][off]}
        of_part = Cells.joined([positive.cells], None if weights is None else weights[off])
        positive = replace(positive, cells=of_part, keys=own)
    base = found.time_base
    simulate = None
    if not cells.are_points:
        simulate = _simulation(model, X, cells.n_draws, reader, random)
    return replace(
        found,
        cells=cells,
        positive=positive,
        time_base=None if base is None else Cells.joined([base], weights),
        simulate=simulate,
        outcomes=outcomes,
        step=None if reader.grid is None else reader.grid.step,
        rounding=reader.rounding,
        scored=scored,
        **vars(merged),
    )


def _own_names(forecast: Forecast, outcomes: Outcomes) -> tuple[str, ...]:
    """Return the values of forecasts that define groups (verdict: 1)."""
    kind = forecast.outcome_kind
    if kind is OutcomeKind.BINARY:
        return ("predicted probability",)
    if kind is OutcomeKind.HURDLE:
        is_zero = as_hurdle(forecast.distribution).end == "low"
        level = ("chance of zero", "predicted mean") if is_zero else ("event by horizon",)
    else:
        level = ("predicted median",) if outcomes.are_times else ("predicted mean",)
    return (*level, "80% width")


def _simulation(
    model: Any, X: Any, n_draws: int, read: RowReader, random: np.random.Generator
) -> Simulate:
    """Return a function that draws outcomes of a sample of the rows, and gives their PITs.

    The outcomes of a randomized forecast are drawn from the deterministic forecast inside its link,
    under which it is calibrated; those of other randomized forecasts from one of their draws,
    chosen at random. Rounded outcomes are rounded to the grid of the outcomes. Times are cut off
    anew, see `cut_off`.
    """
    n = read.outcomes.n_samples
    most = min(n, SIMULATED_ROWS, max(SIMULATED_PITS // n_draws, 1))
    rows = np.arange(n) if most == n else np.sort(random.choice(n, most, replace=False))
    if isinstance(model, Forecast):
        forecast = model[rows]
    else:
        forecast = forecast_of(model, take_rows(X, rows), random)
    # tests of randomized forecasts complete times, which then are as if nobody was cut off
    is_cut_off = read.outcomes.are_times and not forecast.is_randomized
    times = read.outcomes.take(rows) if is_cut_off else None
    rounding, origin = read.rounding, float(read.outcomes.value[0])

    def simulate(random: np.random.Generator) -> Cells:
        inside = calibrated(forecast, random)
        drawn = inside.ppf(fresh(inside.batch_shape, random)).reshape(-1)
        values = _rounded(forecast, drawn, rounding, origin)
        seen = values if times is None else cut_off(np.maximum(values, 0.0), times, random)
        return forecast.cells(seen, rounding=rounding, random_state=random)

    return simulate


def check_model(model: Any) -> Any:
    """Return a forecaster or a Forecast; fitted models of other libraries become forecasters."""
    if isinstance(model, Forecast) or hasattr(model, "forecast"):
        return model
    methods = ("predict", "predict_proba", "predict_survival_function")
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


def copies_among(X: Any, subject: RowCells) -> str | None:
    """Return a warning if scored rows are copies, by their columns and deterministic forecasts."""
    is_table = hasattr(X, "columns") or np.ndim(X) == 2
    table = as_table(take_rows(X, subject.scored)) if is_table else pd.DataFrame()
    if not subject.cells.is_randomized:
        table = table.assign(**{"": subject.medians})
    assert subject.outcomes is not None
    return copies_in_words(table, subject.outcomes.value[subject.scored])


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
        scores = forecast_scores(wide, some, outcomes.take(inside), read.grid)
        keys: dict[str, Floats] = {}
        names = _own_names(few, outcomes)
        width = scores.get(Measure("interval width", 0.8))
        # solved for once, where the key is the width of the same forecasts without an atom
        if some is few and width is not None and few.atom_end is None:
            keys["80% width"] = width
        others = forecast_values(few, [name for name in names if name not in keys])
        keys |= {str(name): values.to_numpy() for name, values in others.items()}
        return cls(
            scores,
            np.asarray(median.mean(axis=-1) if median.ndim == 2 else median),
            _plain(some, scores),
            {name: keys[name] for name in names},
        )


def _plain(forecast: Forecast, scores: Mapping[Measure, Floats]) -> Floats:
    """Return the widths of the intervals without a draw at each level, shape (n, 4).

    They are NaN without a deterministic base. Scores of the forecasts may have some of them.
    """
    n, base = len(forecast), forecast.distribution
    measures = [Measure("interval width", level) for level in WIDER_LEVELS]
    found = {key: scores[key] for key in measures if key in scores}
    if forecast.is_randomized:
        link = forecast.inside_link()
        if link is None:
            return np.full((n, len(measures)), np.nan)
        # one distribution per person, shape (n,) or (n, 1), or one for everybody
        base, found = link.base, {}
    others = [key for key in measures if key not in found]
    tails = (1 - np.array([key.level for key in others])) / 2
    ends = base.expand().ppf(np.concatenate((tails, 1 - tails)))
    low, high = np.split(ends.reshape(-1, 2 * tails.size), 2, axis=-1)
    found |= dict(zip(others, (high - low).T, strict=True))
    return np.stack([np.broadcast_to(found[key], n) for key in measures], axis=-1)


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


def grid_findings(rows: RowCells) -> tuple[float | None, tuple[Note, ...]]:
    """Return the share of the average error that rounding may explain, and notes on atoms.

    The least error `I` of any positions in the rounding cells remains whatever the exact outcomes
    were; the rest of the error `d`, a share `(d - I) / d` of it, may be due to rounding
    (outcomes: 2). The share is None where PITs are not spread over rounding cells.
    """
    cells, rounding, outcomes = rows.cells, rows.rounding, rows.outcomes
    # cells of times that are cut off are no rounding, and atoms at a horizon or at the end of
    # follow-up neither
    is_plain = rows.kind is OutcomeKind.CONTINUOUS and rows.times is None
    if outcomes is None or not is_plain:
        return None, ()
    value, atom = largest_atom(outcomes.value)
    if atom <= MILD_ATOM or atom * outcomes.n_samples < 1.5:
        return None, ()
    notes: tuple[Note, ...] = ()
    if np.isin(outcomes.value, (0.0, 1.0)).all():
        notes = (note(NoteKind.EVENT_AS_CONTINUOUS),)
    if cells.are_points:
        return None, (*notes, note(NoteKind.TIED_OUTCOMES, numbers=(value, atom)))
    least, average_error = cell_error(cells), calibration_error(cells)
    share = max((average_error - least) / average_error, 0.0) if average_error > 0 else 0.0
    step = np.nan if rounding.step is None else rounding.step
    numbers = (value, atom, step, share)
    return share, (*notes, note(NoteKind.ROUNDING_CELLS, numbers=numbers))


def time_notes(outcomes: Outcomes | None) -> tuple[Note, ...]:
    """Return a note on the times that are cut off, and on what their analysis assumes."""
    if outcomes is None:
        return ()
    if outcomes.happened.all():
        return (note(NoteKind.NO_TIME_CUT_OFF),)
    n_lost = int(outcomes.is_lost.sum())
    return (note(NoteKind.CUT_OFF_TIMES, numbers=(n_lost, outcomes.n_samples)),) if n_lost else ()


def excluded_outcomes(rows: RowCells) -> tuple[Note, ...]:
    """Return a note on the outcomes to which their forecasts give no probability, if any."""
    infinite = [int(np.isinf(values).sum()) for values in rows.scores.values()]
    most = max(infinite, default=0)
    return (note(NoteKind.EXCLUDED_OUTCOMES, numbers=(most,)),) if most else ()
