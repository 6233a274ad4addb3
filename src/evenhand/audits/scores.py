"""Mean scores of forecasts with 95% confidence intervals, and tables behind figures."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from evenhand._validate import Floats
from evenhand.audits.outcomes import RowCells
from evenhand.calibration import (
    HISTOGRAM_CONFIDENCE,
    Cells,
    covered,
    covered_whole,
    n_effective,
    ramps_at,
)
from evenhand.distributions import OutcomeKind
from evenhand.forecast import Forecast
from evenhand.outcomes import Outcomes, Rounding
from evenhand.report import Measure
from evenhand.results import CurvePoint, Interval, Score, rows_from
from evenhand.scoring import crps, crps_and_spread, interval_width, log_score, log_score_on, spread

LEVELS = (0.8, 0.9)
"""Nominal levels of the central prediction intervals in every audit."""

Z95 = 1.959964
"""Normal quantile of 95% confidence intervals."""

AVERAGE_ERROR = Measure("error")


def forecast_scores(
    wide: Forecast,
    few: Forecast,
    outcomes: Outcomes,
    grid: Rounding | None,
) -> dict[Measure, Floats]:
    """Compute the scores of each row that need forecasts, in the order of the report.

    Parameters
    ----------
    wide, few : Forecast of k rows
        Forecasts over all draws, and over a few draws for scores whose mean converges quickly.
    outcomes : Outcomes of k rows
        The outcomes.
    grid : Rounding or None
        Grid of all outcomes, if they are rounded and the forecasts continuous.

    Notes
    -----
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
        return {Measure("log loss"): _log_loss(wide, y), Measure("Brier score"): crps(wide, y)}
    is_continuous = wide.outcome_kind is OutcomeKind.CONTINUOUS
    scores = {Measure("log score"): (log_score if is_continuous else _log_loss)(wide, y)}
    if grid is not None and grid.step is not None:
        # spikes on the grid can raise a density without limit, but not a cell's probability
        scores[Measure("cell log score", grid.step)] = log_score_on(wide, y, grid)
    ranked, deviation = crps_and_spread(few, y)
    return scores | {Measure("CRPS"): ranked, Measure("mean std"): deviation} | _widths(few)


def _widths(forecast: Forecast) -> dict[Measure, Floats]:
    return {Measure("interval width", level): interval_width(forecast, level) for level in LEVELS}


def censored_log_score(forecast: Forecast, times: Outcomes) -> Floats:
    """Return right-censored log scores, mean over draws."""
    # an atom at the horizon is known to be the outcome of who reaches it
    is_open = times.is_lost if forecast.has_atoms else ~times.happened
    y = times.value
    found = _log_loss(forecast, y)
    if is_open.any():
        some = forecast[is_open]
        at = y[is_open] if len(some.distribution.batch_shape) == 1 else y[is_open, None]
        tails = -some.distribution.logsf(at)
        found[is_open] = tails.mean(axis=-1) if tails.ndim == 2 else tails
    return found


def _log_loss(forecast: Forecast, y: Floats) -> Floats:
    """Return log scores; infinite where a forecast excludes the outcome.

    Classifiers often predict probabilities of exactly 0. That makes a log score useless, but not
    the audit.
    """
    scores = -forecast.log_density(y)
    return np.asarray(scores.mean(axis=-1) if scores.ndim == 2 else scores)


def scores_of(rows: RowCells) -> dict[Measure, Interval]:
    """Return the mean scores and the coverage of prediction intervals, with their intervals.

    Intervals of 0/1 outcomes have no coverage. Where the ends of a prediction interval are atoms, a
    part of each counts as covered, so that the coverage of calibrated forecasts is the level; the
    coverage of sets of whole values, which is at least the level, is a further measure.
    """
    cells, weights = rows.tested, rows.cells.weights
    of_scored = None if weights is None else weights[rows.scored]
    found = {key: weighted_mean_band(values, of_scored) for key, values in rows.scores.items()}
    if rows.kind is OutcomeKind.BINARY:
        return found
    kinds = {"coverage": covered}
    if rows.times is None and rows.kind in (OutcomeKind.COUNT, OutcomeKind.HURDLE):
        kinds["whole coverage"] = covered_whole
    return found | {
        Measure(name, level): weighted_share_band(share(cells, level), cells.weights)
        for name, share in kinds.items()
        for level in LEVELS
    }


def score_rows(bands: Mapping[Measure, Interval], unit: str) -> tuple[Score, ...]:
    """Return the scores; `unit` is the unit of the outcome."""
    columns = dict(zip(Interval._fields, zip(*bands.values(), strict=True), strict=True))
    units = [measure.unit(unit) for measure in bands]
    return rows_from(Score, {"measure": map(str, bands), "unit": units, **columns})


def weighted_mean_band(values: Floats, weight: Floats | None) -> Interval:
    """Return a weighted mean with a normal 95% interval from the variance between people."""
    if np.isinf(values).any():
        return Interval(float(np.average(values, weights=weight)))
    mean, variance, n = _weighted_mean(values, weight)
    # one row has no variance estimate: the interval is unknown, not of width 0
    half = Z95 * float(np.sqrt(variance)) if n >= 2 else np.nan
    return Interval(mean, mean - half, mean + half)


def weighted_share_band(values: Floats, weight: Floats | None) -> Interval:
    """Return a weighted mean of shares with Wilson's 95% confidence interval."""
    mean, variance, n = _weighted_mean(values, weight)
    variance = variance if n >= 2 else 0.0
    # rounding errors in sums of weights may leave the mean slightly outside [0, 1]
    mean = min(max(mean, 0.0), 1.0)
    # shares over several draws vary less than single trials: n becomes the number of single trials
    # whose mean would have this variance
    n = mean * (1 - mean) / variance if variance > 0 else n
    centre = (mean + Z95**2 / (2 * n)) / (1 + Z95**2 / n)
    half = Z95 / (1 + Z95**2 / n) * np.sqrt(mean * (1 - mean) / n + (Z95 / (2 * n)) ** 2)
    return Interval(mean, max(float(centre - half), 0.0), min(float(centre + half), 1.0))


def _weighted_mean(values: Floats, weight: Floats | None) -> tuple[float, float, float]:
    """Return a weighted mean, its variance and the effective number of rows."""
    weight = np.ones(values.size) if weight is None else weight
    mean = float(np.average(values, weights=weight))
    share = weight / weight.sum()
    # a weighted mean is a ratio of two sums; this is the variance of the linearized ratio
    return mean, float((share**2 * (values - mean) ** 2).sum()), n_effective(weight)


# --- tables behind figures; their size does not depend on the number of rows

CURVE_LEVELS = np.arange(1, 20) / 20
"""Probability levels of the calibration curve."""


def calibration_curve(cells: Cells) -> tuple[CurvePoint, ...]:
    """Return the share of outcomes at or below the quantile of each level, with a 95% band.

    The band of Dvoretzky, Kiefer and Wolfowitz (Massart 1990) is simultaneous for all levels. It is
    valid for one PIT per person; it is approximate for several PITs, whose mean varies less, for
    weighted rows, and for outcomes with atoms, whose share is the mean over positions in the cells.
    """
    share = cells.shares
    observed = share @ ramps_at(CURVE_LEVELS, cells.low, cells.high) / cells.n_draws
    return curve(observed, n_effective(share))


def curve(observed: Floats, n: float) -> tuple[CurvePoint, ...]:
    """Return the calibration curve of `n` rows from the share of PITs at or below each level."""
    # from P(sup |F_n - F| > t) <= 2 exp(-2 n t^2)
    margin = float(np.sqrt(np.log(2 / (1 - HISTOGRAM_CONFIDENCE)) / (2 * n)))
    low = np.maximum(observed - margin, 0.0)
    high = np.minimum(observed + margin, 1.0)
    columns = {"level": CURVE_LEVELS, "observed": observed, "low": low, "high": high}
    return rows_from(CurvePoint, columns)
