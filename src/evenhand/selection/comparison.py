"""Scores of forecasters on certifying rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand._validate import Floats, Ints
from evenhand.audits import censored_log_score
from evenhand.calibration import Cells, estimated_error
from evenhand.distributions import LocationScale, OutcomeKind, Quantiles, Samples, as_hurdle
from evenhand.draws import RandomState, fresh
from evenhand.forecast import Forecast
from evenhand.outcomes import Outcomes, Rounding
from evenhand.scoring import crps, interval_width, log_score_on
from evenhand.selection.target import LEVEL

# --- forecast that ignores every feature

WITHOUT_FEATURES = "without features"
"""Name of the forecast that ignores every feature in `Selection.comparison`."""

FOLDS = 5
"""Folds of the certifying rows, if there are no training outcomes."""

MOST_KERNELS = 2000
"""Most outcomes in the kernel estimate; more are replaced by as many of their quantiles."""

MOST_LEVELS = 200


def without_features(
    learned: Floats, held_out: Floats, like: Forecast, random: np.random.Generator
) -> list[tuple[Ints, Forecast]]:
    """Return a forecast of the held-out outcomes that ignores every feature, in parts.

    For continuous outcomes, the distribution is a histogram of equal probabilities with exponential
    tails, `Quantiles`, at the quantiles of a kernel estimate, `Samples`: the quantiles are smoothed
    so that values that occur often have a finite density, and the tails are exponential so that
    outcomes beyond those of training have a finite score. For counts, it is the share of each value
    among the outcomes, with half an occurrence added to each value. For outcomes with an atom at an
    end of their range, the share of the atom and the distribution of the other outcomes.

    Parameters
    ----------
    learned : ndarray of shape (k,)
        Training outcomes; empty for a model that was not fitted here. The outcomes of the other
        four fifths of the held-out rows then take their place.
    held_out : ndarray of shape (n,)
        The outcomes that are forecast.
    like : Forecast
        Forecast of a model, which shows the kind of outcome and the place of an atom.
    random : Generator
        Source of the folds.

    Returns
    -------
    list of (ndarray of int, Forecast)
        Held-out rows and their forecast; one part, or one for each fold. Empty if all or
        nearly all continuous outcomes are equal, which have no density.
    """
    if learned.size:
        parts = [(np.arange(held_out.size), learned)]
    else:
        folds = random.permutation(held_out.size) % FOLDS
        each = [(np.flatnonzero(folds == k), held_out[folds != k]) for k in range(FOLDS)]
        parts = [(rows, others) for rows, others in each if rows.size]
    values = np.union1d(learned, held_out)
    is_smooth = like.outcome_kind is not OutcomeKind.COUNT
    if is_smooth and not all(_has_density(_continuous(others, like)) for _, others in parts):
        return []
    return [(rows, _of_kind(like, others, rows.size, values)) for rows, others in parts]


def _of_kind(like: Forecast, outcomes: Floats, n: int, values: Floats) -> Forecast:
    """Return the same distribution for n people, of the kind of a forecast."""
    match like.outcome_kind:
        case OutcomeKind.COUNT:
            return _shares(values, outcomes, n)
        case OutcomeKind.HURDLE:
            hurdle = as_hurdle(like.distribution)
            n_atom = int(np.sum(outcomes == hurdle.at))
            chance = np.full(n, (n_atom + 0.5) / (outcomes.size + 1))
            part = _smoothed(_continuous(outcomes, like), n)
            return Forecast.from_hurdle(chance, part, at=hurdle.at, end=hurdle.end)
        case _:
            return _smoothed(outcomes, n)


def _continuous(outcomes: Floats, like: Forecast) -> Floats:
    """Return the outcomes that are not an atom of forecasts with a continuous part."""
    if like.outcome_kind is OutcomeKind.HURDLE:
        return np.asarray(outcomes[outcomes != as_hurdle(like.distribution).at])
    return outcomes


def _has_density(outcomes: Floats) -> bool:
    """Whether outcomes differ enough for a kernel estimate."""
    kernels = _thinned(outcomes)
    return kernels.size > 0 and bool(kernels.min() < kernels.max() and kernels.std() > 0)


def _shares(support: Floats, outcomes: Floats, n: int) -> Forecast:
    """Return the shares of values of a count, for n people."""
    counts = np.bincount(np.searchsorted(support, outcomes), minlength=support.size)
    # half an occurrence for each value: those of the held-out rows have a finite score
    shares = (counts + 0.5) / (outcomes.size + support.size / 2)
    return Forecast.from_pmf(support, np.broadcast_to(shares, (n, support.size)))


def _thinned(outcomes: Floats) -> Floats:
    """Return the outcomes, or `MOST_KERNELS` of their quantiles if there are more."""
    if outcomes.size <= MOST_KERNELS:
        return outcomes
    return np.quantile(outcomes, (np.arange(MOST_KERNELS) + 0.5) / MOST_KERNELS)


def _smoothed(outcomes: Floats, n: int) -> Forecast:
    """Return the same continuous distribution for n people."""
    n_levels = int(np.clip(round(2 * outcomes.size**0.4), 2, MOST_LEVELS))
    levels = (np.arange(n_levels) + 0.5) / n_levels
    smoothed = Quantiles(levels, Samples(_thinned(outcomes)).ppf(levels)[None, :])
    # shared by all people: a batch of its own for each would take hundreds of numbers per person
    return Forecast(LocationScale(smoothed, np.zeros(n)))


# --- scores


def log_scores(forecast: Forecast, outcomes: Outcomes, grid: Rounding | None) -> Floats:
    """Return each person's log score; over cells of a grid, or right-censored for times."""
    if outcomes.are_times:
        return censored_log_score(forecast, outcomes)
    return log_score_on(forecast, outcomes.value, grid)


COMPARED_DRAWS = 2
"""Draws per person in the comparison of CRPS."""

COMPARED = 250
"""Most people in the comparison of CRPS, which is slow without a closed form: a randomized forecast
of 4,500 people takes 2 to 17 s. The standard error beside it shows the noise of so few people."""


@dataclass(eq=False)
class HeldOutScores:
    """Scores that compare forecasters on the outcomes of the certifying people.

    Parameters
    ----------
    outcomes : Outcomes of n people
        Their outcomes. Of times that may be cut off the log score is the right-censored one, and
        a CRPS is not known.
    grid : Rounding or None
        Grid of all outcomes, which makes the log score a cell log score.
    step : float or None
        Rounding step over whose cells PITs are spread.
    random : Generator
        Source of draws.
    """

    outcomes: Outcomes
    grid: Rounding | None
    step: float | None
    random: np.random.Generator

    def __post_init__(self) -> None:
        n = self.outcomes.n_samples
        self.y = self.outcomes.value
        # one random sample for all forecasters
        self.compared = np.arange(n)
        if n > COMPARED:
            self.compared = np.sort(self.random.choice(n, COMPARED, replace=False))

    def cells(
        self, forecast: Forecast, rows: Any = slice(None), random: RandomState = None
    ) -> Cells:
        """Return the cells of some outcomes, rounded ones at one position in their cells."""
        outcomes = self.outcomes.take(rows)
        # positions in atoms are averaged over
        needs_ties = self.step is not None or outcomes.are_times
        ties = fresh(outcomes.n_samples, random or self.random) if needs_ties else None
        cells = forecast.cells(
            outcomes,
            rounding=Rounding(None if forecast.has_atoms else self.step),
            ties=np.full(outcomes.n_samples, 0.5) if ties is None else ties,
        )
        return cells if forecast.has_atoms else cells.at_points(~cells.unknown)

    def crps(self, part: Forecast) -> Floats:
        """Return the CRPS of each compared person, averaged over draws; NaN for times."""
        if self.outcomes.are_times:
            return np.full(self.compared.size, np.nan)
        return crps(part, self.y[self.compared])

    def line(
        self, name: str, forecast: Forecast, cells: Floats | Cells | None = None
    ) -> dict[str, Any]:
        """Return the row of a forecaster in `Selection.comparison`."""
        return self._line(
            name,
            log_scores(forecast, self.outcomes, self.grid),
            self.crps(forecast[self.compared]),
            interval_width(forecast, LEVEL),
            self.cells(forecast) if cells is None else cells,
        )

    def without_features(self, learned: Floats, like: Forecast) -> list[dict[str, Any]]:
        """Return the row of the forecast that ignores every feature, if it has a density.

        `learned` are the training outcomes, of which there may be none; `like` is a forecast of the
        same kind of outcome.
        """
        if self.outcomes.are_times:
            return []
        # draws of its own: those of the other forecasts must not depend on it
        random = self.random.spawn(1)[0]
        parts = without_features(learned, self.y, like, random)
        if not parts:
            return []
        losses, scores, widths = np.empty((3, self.y.size))
        cells = []
        is_compared = np.isin(np.arange(self.y.size), self.compared)
        for rows, forecast in parts:
            y = self.y[rows]
            losses[rows] = log_score_on(forecast, y, self.grid)
            widths[rows] = interval_width(forecast, LEVEL)
            cells.append(self.cells(forecast, rows, random))
            some = np.flatnonzero(is_compared[rows])
            if some.size:
                scores[rows[some]] = crps(forecast[some], y[some])
        joined = Cells.joined(cells)
        return [self._line(WITHOUT_FEATURES, losses, scores[self.compared], widths, joined)]

    def _line(
        self, name: str, losses: Floats, crps: Floats, widths: Floats, cells: Floats | Cells
    ) -> dict[str, Any]:
        return {
            "forecaster": name,
            "log_score": float(losses.mean()),
            **mean_with_error(crps),
            "width": float(widths.mean()),
            "average_error": estimated_error(cells),
            "certified_group_error": np.nan,
        }


def mean_with_error(crps: Floats) -> dict[str, float]:
    """Return the mean of CRPS and its standard error, as columns of `Selection.comparison`."""
    error = crps.std(ddof=1) / np.sqrt(crps.size)
    return {"crps": float(crps.mean()), "crps_error": float(error)}
