"""PITs and scores of a forecaster, or of given forecasts, on held-out rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import (
    Floats,
    InputError,
    bad_input,
    check_outcomes,
)
from evenhand.audits.pictures import Interval, example_rows, example_table, intervals
from evenhand.audits.plain_interval import plain_widths
from evenhand.audits.rounding import rounding_cells, spread_step
from evenhand.audits.scores import forecast_scores
from evenhand.calibration import Grid, PITs
from evenhand.certificates import LinkBase
from evenhand.distributions import Distribution, Randomized
from evenhand.draws import fresh, jittered
from evenhand.forecast import Forecast
from evenhand.report import Measure
from evenhand.tables import row_blocks, take_rows

PIT_DRAWS = 64
SCORE_DRAWS = 16
"""Draws per row: `PIT_DRAWS` for PITs and log scores, at most `SCORE_DRAWS` for CRPS, spread and
widths, whose means converge with fewer draws."""

LEAST_SCORE_DRAWS = 4
SCORED_FORECASTS = 40_000
"""Draws for CRPS, spread and widths decrease to 4 per row with at least so many forecasts in all:
beyond it the error of a mean is that of the sample of people."""

BLOCK_ROWS = 20_000
"""Rows forecast at once, so that PITs dominate the memory; also the largest number of rows that
scores are computed on."""


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
    base : LinkBase or None
        The link and the PITs of the deterministic forecaster inside it; None if the forecaster is
        no link.
    """

    pit: Floats
    r: Floats | None
    mean: Floats
    base: LinkBase | None


@dataclass(frozen=True)
class Subject:
    """Statistics that an audit stores of the forecasts of held-out rows.

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
        Numbers of the rows that scores are computed on: all rows, or a random sample of
        `BLOCK_ROWS`.
    scores : dict of Measure to ndarray of shape (k,)
        Scores of these rows.
    medians : ndarray of shape (k,)
        Medians of the forecasts of these rows, averaged over draws, units of y.
    examples : DataFrame
        Prediction intervals of a few people; see `example_table`.
    base : LinkBase or None
        The link and the PITs of the deterministic forecaster inside it; None if the forecaster is
        no link.
    plain : ndarray of shape (k, 4)
        Widths of the plain intervals of the deterministic forecaster, for the scored rows; NaN if
        there is none.
    """

    pits: PITs
    outcomes: Floats
    residual: Floats
    step: float | None
    scored: NDArray[np.intp]
    scores: dict[Measure, Floats]
    medians: Floats
    examples: pd.DataFrame
    base: LinkBase | None
    plain: Floats


def read_subject(
    model: Any,
    X: Any,
    outcomes: Floats,
    random: np.random.Generator,
    *,
    weights: Floats | None = None,
) -> Subject:
    """Forecast each row once, and store PITs and scores.

    A forecaster is evaluated with jittered draws; given forecasts keep their own draws. Outcomes
    must be finite, and `X` must come from `check_rows`.
    """
    check_outcomes(outcomes)
    n = outcomes.size
    grid = Grid.of(outcomes)
    low, high = rounding_cells(outcomes, spread_step(outcomes))
    # one position in the rounding cell per person, shared by all draws: PITs of the true
    # distribution are uniform because it is independent of the draws (outcomes, 4.3)
    shares = fresh(n, random)
    scored = np.arange(n)
    # the intervals of mean scores are narrow at this size: more rows would only take time
    if n > BLOCK_ROWS:
        scored = np.sort(random.choice(n, BLOCK_ROWS, replace=False))
    whole = _Whole.empty(n)
    kept: list[_Kept] = []
    for block in row_blocks(n, BLOCK_ROWS):
        forecast = _forecast(*_block_of(model, X, block), random)
        is_own = not isinstance(model, Forecast)
        whole.fill(block, _read(forecast, low[block], high[block], shares[block], random, is_own))
        # draws given with the forecasts need not lie in equal cells, so all of them are used
        few = (
            _few_draws(forecast, scored.size, random)
            if is_own and forecast.is_randomized
            else forecast
        )
        kept.append(_Kept.of(forecast, few, outcomes, block, scored, grid))
    pits = PITs(whole.pit, whole.r, weights)
    merged = _Kept.joined(kept)
    return Subject(
        pits,
        outcomes,
        outcomes - whole.mean,
        None if grid is None else grid.step,
        scored,
        merged.scores,
        merged.medians,
        example_table(example_rows(outcomes), merged.examples, outcomes),
        whole.base,
        merged.plain,
    )


def check_rows(model: Any, X: Any, n: int) -> Any:
    """Check the model and the number of rows, and return X as a table or an array."""
    if isinstance(model, Forecast):
        if model.n_samples != n:
            raise bad_input(
                "y", f"have one outcome per forecast ({model.n_samples})", f"{n} outcomes"
            )
        return X
    if not hasattr(model, "forecast"):
        remedy = "wrap it as RandomizedRegressor(model), or convert its output to a Forecast"
        raise bad_input("model", "be a forecaster or a Forecast", type(model).__name__, remedy)
    if X is None:
        raise InputError("X is missing: a forecaster needs input rows; pass X=")
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
    """Compute the PITs of one block of rows.

    Parameters
    ----------
    model : forecaster or Forecast
        A fitted forecaster, which is evaluated with jittered draws, or the forecasts of the block.
    X : DataFrame or array-like of shape (k, n_features)
        The rows; ignored if `model` is a Forecast.
    low, high : ndarray of shape (k,)
        Ends of the outcomes' rounding cells; both are the outcomes if they are not rounded.
    share : ndarray of shape (k,)
        Position of each PIT within the probability of its cell, between 0 and 1.
    random : numpy Generator
        Source of draws.
    """
    forecast = _forecast(model, X, random)
    return _read(forecast, low, high, share, random, not isinstance(model, Forecast))


@dataclass
class _Whole:
    """Arrays of all rows, filled in place: a list of blocks would double the memory."""

    pit: Floats
    r: Floats | None
    mean: Floats
    base: LinkBase | None

    @classmethod
    def empty(cls, n: int) -> _Whole:
        return cls(np.empty((n, 0)), None, np.empty(n), None)

    def fill(self, rows: slice, block: Block) -> None:
        if rows.start == 0:  # draws and link are known from the first block
            n = self.mean.size
            self.pit = np.empty((n, block.pit.shape[1]))
            self.r = None if block.r is None else np.empty((n, block.r.shape[1]))
            self.base = None if block.base is None else LinkBase(np.empty(n), block.base.link)
        self.pit[rows] = block.pit
        self.mean[rows] = block.mean
        if self.r is not None:
            self.r[rows] = block.r
        if self.base is not None and block.base is not None:
            self.base.pit[rows] = block.base.pit


@dataclass(frozen=True)
class _Kept:
    """Scores, medians and examples of the forecasts of a block of rows."""

    scores: dict[Measure, Floats]
    medians: Floats
    plain: Floats
    examples: dict[int, list[Interval]]

    @classmethod
    def of(
        cls,
        forecast: Forecast,
        few: Forecast,
        outcomes: Floats,
        block: slice,
        scored: NDArray[np.intp],
        grid: Grid | None,
    ) -> _Kept:
        """Score some rows of a block; `few` are its forecasts over some of the draws."""
        # `scored` is sorted, so the rows of a block are a slice of it
        inside = scored[np.searchsorted(scored, block.start) : np.searchsorted(scored, block.stop)]
        places = inside - block.start
        wide = forecast if places.size == len(forecast) else forecast[places]
        some = few if places.size == len(few) else few[places]
        # leaks are detected by ranks; every distribution has a median, but a mean may need an
        # integral
        median = some.ppf(0.5)
        shown = example_rows(outcomes)
        here = shown[(shown >= block.start) & (shown < block.stop)]
        examples = intervals(forecast[here - block.start]) if here.size else []
        return cls(
            forecast_scores(wide, some, outcomes[inside], grid),
            np.asarray(median.mean(axis=-1) if median.ndim == 2 else median),
            _plain(some),
            dict(zip(here.tolist(), examples, strict=True)),
        )

    @staticmethod
    def joined(kept: list[_Kept]) -> _Kept:
        """Concatenate the results of all blocks, in their order."""
        return _Kept(
            {key: np.concatenate([one.scores[key] for one in kept]) for key in kept[0].scores},
            np.concatenate([one.medians for one in kept]),
            np.concatenate([one.plain for one in kept]),
            {row: shown for one in kept for row, shown in one.examples.items()},
        )


def _plain(forecast: Forecast) -> Floats:
    """Return the widths of plain intervals, without a draw; NaN without a deterministic base."""
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


def _forecast(model: Any, X: Any, random: np.random.Generator) -> Forecast:
    if isinstance(model, Forecast):
        return model
    # one random draw in each of 64 equal cells: midpoints would understate errors (method: 1)
    forecast: Forecast = model.forecast(X, jittered(len(X), PIT_DRAWS, random))
    return forecast


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


def _read(
    forecast: Forecast,
    low: Floats,
    high: Floats,
    share: Floats,
    random: np.random.Generator,
    is_own: bool,
) -> Block:
    inside = inside_link(forecast)
    base = None
    if inside is not None:
        # served PITs are not computed from these: near 1 they would lose digits of the upper tail
        pit = _spread(inside.base, low, high, share)
        base = LinkBase(pit.reshape(pit.shape[0], -1)[:, 0], inside.link)
    pit = _spread(forecast.distribution, low, high, share)
    pit = pit if pit.ndim == 2 else pit[:, None]
    return Block(pit, _draws(forecast), _mean(forecast, random, is_own=is_own), base)


def inside_link(forecast: Forecast) -> Randomized | None:
    """Return the distributions of a link around one base distribution per person, or None."""
    distribution = forecast.distribution
    if forecast.r is None or not isinstance(distribution, Randomized):
        return None
    # a base with several draws per person is not deterministic
    is_one_each = forecast.r.ndim == 1 or distribution.base.batch_shape[-1:] in ((), (1,))
    return distribution if is_one_each else None


def _spread(distribution: Distribution, low: Floats, high: Floats, share: Floats) -> Floats:
    """Return PITs, shape of the batch, spread over the probability of the rounding cell, if any."""
    if len(distribution.batch_shape) == 2:
        low, high, share = low[:, None], high[:, None], share[:, None]
    pit = distribution.cdf(low)
    # without a grid both ends of a cell are the outcome: one evaluation suffices
    if np.array_equal(low, high):
        return pit
    return pit + share * (distribution.cdf(high) - pit)


def _draws(forecast: Forecast) -> Floats | None:
    if forecast.r is None:
        return None
    r = forecast.r if forecast.r.ndim == 2 else forecast.r[:, None]
    return np.broadcast_to(r, (len(forecast), r.shape[1]))


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
        and distribution.base.batch_shape == (shape[0], 1)
    ):
        return distribution.mean_over_draws(random)[:, 0]
    levels = random.permuted(jittered(shape[0], shape[1], random), axis=-1)
    return np.asarray(distribution.ppf(levels).mean(axis=-1))
