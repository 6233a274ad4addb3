"""PITs and scores of a forecaster, or of given forecasts, on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import MILD_ATOM, Floats, InputError, bad_input, largest_atom
from evenhand.audits.blocks import PIT_DRAWS, forecast_of, inside_link
from evenhand.audits.outcomes import (
    PositivePart,
    RoundingCells,
    RowPITs,
    Simulate,
    event_probability,
)
from evenhand.audits.reading import Reading, simulation
from evenhand.audits.scores import Interval, example_rows, example_table, forecast_scores, intervals
from evenhand.audits.tables import plain_widths
from evenhand.calibration import calibration_error, cell_error
from evenhand.censoring import CensoredTimes
from evenhand.columns import as_table, copies_in_words
from evenhand.distributions import OutcomeKind, as_hurdle
from evenhand.draws import fresh
from evenhand.forecast import Forecast, forecast_values
from evenhand.report import Measure, Note, NoteKind
from evenhand.tables import row_blocks, take_rows

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
    examples : DataFrame
        Prediction intervals of a few people; see `example_table`.
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
    examples: pd.DataFrame
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
    read = Reading(outcomes, ties, times)
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
        kept.append(_Kept.of(forecast, few, read, block, scored))
    pits = read.pits(weights)
    merged = _Kept.joined(kept)
    return Subject(
        pits,
        read.kind,
        read.base,
        read.events,
        _with_width(read.positive(weights), merged.keys),
        None if pits.cells is None else _simulation(model, X, pits.n_draws, read, random),
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
        examples=example_table(
            example_rows(outcomes),
            merged.examples,
            outcomes,
            None if times is None else times.is_lost,
        ),
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


def _with_width(part: PositivePart | None, keys: Mapping[str, Floats]) -> PositivePart | None:
    """Return the people off the atom with the width of their forecasts as well."""
    if part is None:
        return None
    name = "80% width"
    return replace(part, keys={**part.keys, name: keys[name][part.rows]})


def _simulation(
    model: Any, X: Any, n_draws: int, read: Reading, random: np.random.Generator
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
    """Scores, medians and examples of the forecasts of a block of rows."""

    scores: dict[Measure, Floats]
    medians: Floats
    plain: Floats
    examples: dict[int, list[Interval]]
    keys: Mapping[str, Floats]

    @classmethod
    def of(
        cls,
        forecast: Forecast,
        few: Forecast,
        read: Reading,
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
        shown = example_rows(outcomes)
        here = shown[(shown >= block.start) & (shown < block.stop)]
        examples = intervals(forecast[here - block.start]) if here.size else []
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
            dict(zip(here.tolist(), examples, strict=True)),
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
            {row: shown for one in kept for row, shown in one.examples.items()},
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


def score_draws(n: int) -> int:
    """Return the number of draws per row for the scores of n rows: 4, 8 or 16."""
    draws = SCORE_DRAWS
    while draws > LEAST_SCORE_DRAWS and draws * n > SCORED_FORECASTS:
        draws //= 2
    return draws


def _few_draws(forecast: Forecast, n: int, random: np.random.Generator) -> Forecast:
    """Keep one random draw in each of a few larger cells; the result is jittered, too."""
    draws = score_draws(n)
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
    if pits.cells is None:
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
