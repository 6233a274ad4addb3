"""PITs and scores of a forecaster, or of forecasts that are made already, on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import (
    MILD_ATOM,
    Floats,
    bad_input,
    check_continuous,
    largest_atom,
)
from evenhand.audits.pictures import Interval, example_rows, example_table, intervals
from evenhand.audits.scores import forecast_scores
from evenhand.calibration import PITs, rounding_step
from evenhand.distributions import Randomized
from evenhand.draws import fresh, jittered
from evenhand.forecast import Forecast, cell_ends
from evenhand.report import Measure
from evenhand.tables import row_blocks, take_rows

PIT_DRAWS = 64
SCORE_DRAWS = 16
"""Draws per row of PITs and log scores, and of CRPS and spread, whose means settle with few."""

BLOCK_ROWS = 20_000
"""Rows forecast at once, so that memory stays that of the PITs; also the most rows that scores
are taken on."""


class Block(NamedTuple):
    """PITs of some rows.

    Parameters
    ----------
    pit : ndarray of shape (k, m)
        PITs: rows are people, columns draws.
    r : ndarray of shape (k, m) or None
        The draws; None for a deterministic forecaster.
    mean : ndarray of shape (k,)
        Mean of each person's forecasts over the draws, units of y.
    """

    pit: Floats
    r: Floats | None
    mean: Floats


@dataclass(frozen=True)
class Subject:
    """What an audit keeps of the forecasts of held-out rows.

    Parameters
    ----------
    pits : PITs
        PITs with their draws and the weights of the rows.
    outcomes : ndarray of shape (n,)
        The outcomes.
    residual : ndarray of shape (n,)
        Outcome minus the mean of the forecasts, units of y.
    step : float or None
        Grid that the outcomes lie on, if they are rounded.
    scored : ndarray of int, shape (k,)
        The rows that scores are taken on: all, or a random part of very many.
    scores : dict of Measure to ndarray of shape (k,)
        Scores of these rows.
    medians : ndarray of shape (k,)
        Medians of their forecasts, mean over draws, units of y.
    examples : DataFrame
        Intervals of a few people; see `example_table`.
    """

    pits: PITs
    outcomes: Floats
    residual: Floats
    step: float | None
    scored: NDArray[np.intp]
    scores: dict[Measure, Floats]
    medians: Floats
    examples: pd.DataFrame


def read_subject(
    model: Any,
    X: Any,
    outcomes: Floats,
    random: np.random.Generator,
    *,
    weights: Floats | None = None,
) -> Subject:
    """Forecast each row once, and keep PITs and scores.

    A forecaster is asked for jittered draws; forecasts that are given keep theirs. Outcomes are
    finite, and `X` is as `check_rows` returns it.
    """
    check_continuous(outcomes)
    n = outcomes.size
    step = rounding_step(outcomes)
    low, high = rounding_cells(outcomes, spread_step(outcomes))
    # one place in the cell per person, whatever the draw: that it is independent of the draws is
    # what makes PITs of a true distribution uniform (outcomes, 4.3)
    shares = fresh(n, random)
    scored = np.arange(n)
    # bands of their means are narrow by then: scores of more rows would only take time
    if n > BLOCK_ROWS:
        scored = np.sort(random.choice(n, BLOCK_ROWS, replace=False))
    whole = _Whole.empty(n)
    kept: list[_Kept] = []
    for block in row_blocks(n, BLOCK_ROWS):
        forecast = _forecast(*_block_of(model, X, block), random)
        is_own = not isinstance(model, Forecast)
        whole.fill(block, _read(forecast, low[block], high[block], shares[block], random, is_own))
        # draws that came with the forecasts need not lie in equal cells to choose from
        few = _few_draws(forecast, random) if is_own and forecast.is_randomized else forecast
        kept.append(_Kept.of(forecast, few, outcomes, block, scored, step))
    pits = PITs(whole.pit, whole.r, weights)
    merged = _Kept.joined(kept)
    return Subject(
        pits,
        outcomes,
        outcomes - whole.mean,
        step,
        scored,
        merged.scores,
        merged.medians,
        example_table(example_rows(outcomes), merged.examples, outcomes),
    )


def spread_step(outcomes: Floats) -> float | None:
    """Return the grid of outcomes whose PITs are spread over rounding cells; None to leave them.

    An outcome that many rows share would pile their PITs up at one value.
    """
    # a fine grid is left as it is: spread PITs would depend on a random number for nothing
    step = rounding_step(outcomes)
    return step if step is not None and largest_atom(outcomes)[1] > MILD_ATOM else None


def rounding_cells(
    outcomes: Floats, step: float | None, span: tuple[float, float] | None = None
) -> tuple[Floats, Floats]:
    """Return both ends of each outcome's rounding cell; the outcomes twice without a step.

    `span` holds the least and the greatest of all outcomes, where these are a part of them.
    """
    return (outcomes, outcomes) if step is None else cell_ends(outcomes, step, span)


def check_rows(model: Any, X: Any, n: int) -> Any:
    """Return X so that rows can be taken from it.

    Refuse what is neither forecaster nor forecast.
    """
    if isinstance(model, Forecast):
        if model.n_samples != n:
            raise bad_input(
                "y", f"have one outcome per forecast ({model.n_samples})", f"{n} outcomes"
            )
        return X
    if not hasattr(model, "forecast"):
        remedy = (
            "put a link around it: RandomizedRegressor(model), or make a Forecast of its output"
        )
        raise bad_input("model", "be a forecaster or a Forecast", type(model).__name__, remedy)
    if X is None:
        raise bad_input("X", "be given with a forecaster", "None")
    if len(X) != n:
        raise bad_input("y", f"have one outcome per row of X ({len(X)})", f"{n} outcomes")
    return X if hasattr(X, "columns") else np.asarray(X)


def read_block(
    model: Any,
    X: Any,
    low: Floats,
    high: Floats,
    share: Floats,
    random: np.random.Generator,
) -> Block:
    """Take the PITs of one block of rows.

    Parameters
    ----------
    model : forecaster or Forecast
        A fitted forecaster, which is given jittered draws, or the forecasts of the block.
    X : DataFrame or array-like of shape (k, n_features)
        The rows; not looked at where they are forecast already.
    low, high : ndarray of shape (k,)
        Ends of the outcomes' rounding cells, or the outcomes twice.
    share : ndarray of shape (k,)
        Where in the probability of its cell each PIT lies, between 0 and 1.
    random : numpy Generator
        Source of draws.
    """
    forecast = _forecast(model, X, random)
    return _read(forecast, low, high, share, random, not isinstance(model, Forecast))


@dataclass
class _Whole:
    """Arrays of all rows, filled in place: lists of blocks would take as much memory again."""

    pit: Floats
    r: Floats | None
    mean: Floats

    @classmethod
    def empty(cls, n: int) -> _Whole:
        return cls(np.empty((n, 0)), None, np.empty(n))

    def fill(self, rows: slice, block: Block) -> None:
        if rows.start == 0:  # the first block shows how many draws there are
            n = self.mean.size
            self.pit = np.empty((n, block.pit.shape[1]))
            self.r = None if block.r is None else np.empty((n, block.r.shape[1]))
        self.pit[rows] = block.pit
        self.mean[rows] = block.mean
        if self.r is not None:
            self.r[rows] = block.r


@dataclass(frozen=True)
class _Kept:
    """What is kept of the forecasts of a block of rows besides their PITs."""

    scores: dict[Measure, Floats]
    medians: Floats
    examples: dict[int, list[Interval]]

    @classmethod
    def of(
        cls,
        forecast: Forecast,
        few: Forecast,
        outcomes: Floats,
        block: slice,
        scored: NDArray[np.intp],
        step: float | None,
    ) -> _Kept:
        """Score some rows of a block; `few` are its forecasts over a part of the draws."""
        # `scored` is sorted, so the rows of a block are a slice of it
        inside = scored[np.searchsorted(scored, block.start) : np.searchsorted(scored, block.stop)]
        places = inside - block.start
        span = float(outcomes.min()), float(outcomes.max())
        wide = forecast if places.size == len(forecast) else forecast[places]
        some = few if places.size == len(few) else few[places]
        # leaks are judged by ranks, and every distribution has a median; a mean may be an integral
        median = some.ppf(0.5)
        shown = example_rows(outcomes)
        here = shown[(shown >= block.start) & (shown < block.stop)]
        examples = intervals(forecast[here - block.start]) if here.size else []
        return cls(
            forecast_scores(wide, some, outcomes[inside], step, span),
            np.asarray(median.mean(axis=-1) if median.ndim == 2 else median),
            dict(zip(here.tolist(), examples, strict=True)),
        )

    @staticmethod
    def joined(kept: list[_Kept]) -> _Kept:
        """Join what is kept of all blocks, in their order."""
        return _Kept(
            {key: np.concatenate([one.scores[key] for one in kept]) for key in kept[0].scores},
            np.concatenate([one.medians for one in kept]),
            {row: shown for one in kept for row, shown in one.examples.items()},
        )


def _block_of(model: Any, X: Any, block: slice) -> tuple[Any, Any]:
    """Return the rows of a block, or the forecasts where they are there already."""
    # an index copies the parameters: where one block holds all, nothing is copied
    if isinstance(model, Forecast):
        return (model if block == slice(0, len(model)) else model[block]), None
    return model, X if block == slice(0, len(X)) else take_rows(X, block)


def _forecast(model: Any, X: Any, random: np.random.Generator) -> Forecast:
    if isinstance(model, Forecast):
        return model
    # one draw in each of 64 cells, at random within: midpoints would understate errors (method: 1)
    forecast: Forecast = model.forecast(X, jittered(len(X), PIT_DRAWS, random))
    return forecast


def _few_draws(forecast: Forecast, random: np.random.Generator) -> Forecast:
    """Keep one draw in each of a few cells, chosen at random: these are jittered too."""
    per_cell = PIT_DRAWS // SCORE_DRAWS
    chosen = (per_cell * fresh((len(forecast), SCORE_DRAWS), random)).astype(np.intp)
    return forecast.take_draws(per_cell * np.arange(SCORE_DRAWS) + chosen)


def _read(
    forecast: Forecast,
    low: Floats,
    high: Floats,
    share: Floats,
    random: np.random.Generator,
    is_own: bool,
) -> Block:
    pit = _pit(forecast, low, high, share)
    return Block(pit, _draws(forecast), _mean(forecast, random, is_own=is_own))


def _pit(forecast: Forecast, low: Floats, high: Floats, share: Floats) -> Floats:
    """Return PITs of shape (n, m), spread over the probability of the rounding cell, if any."""
    pit = forecast.cdf(low)
    # outcomes without a grid are both ends of their cell: the second evaluation is spared
    if low is not high and not np.array_equal(low, high):
        pit = pit + (share[:, None] if pit.ndim == 2 else share) * (forecast.cdf(high) - pit)
    return pit if pit.ndim == 2 else pit[:, None]


def _draws(forecast: Forecast) -> Floats | None:
    if forecast.r is None:
        return None
    r = forecast.r if forecast.r.ndim == 2 else forecast.r[:, None]
    return np.broadcast_to(r, (len(forecast), r.shape[1]))


def _mean(forecast: Forecast, random: np.random.Generator, *, is_own: bool) -> Floats:
    """Mean of each person's forecasts over the draws.

    Where the audit makes the draws, a link has a mean over a uniform draw. Given forecasts are
    averaged over the draws that they have; where means are no formulas, the mean is that of one
    outcome drawn from each, the probabilities spread over cells and dealt to the draws at random.
    All are without bias.
    """
    distribution = forecast.distribution
    shape = distribution.batch_shape
    if len(shape) == 1:
        return forecast.mean()
    if distribution.has_mean:
        return np.asarray(distribution.mean().mean(axis=-1))
    # integrals for each of n x 64 forecasts would take longer than all else of an audit
    if (
        is_own
        and isinstance(distribution, Randomized)
        and distribution.base.batch_shape == (shape[0], 1)
    ):
        return distribution.mean_over_draws(random)[:, 0]
    levels = random.permuted(jittered(shape[0], shape[1], random), axis=-1)
    return np.asarray(distribution.ppf(levels).mean(axis=-1))
