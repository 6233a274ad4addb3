"""Candidates for the forecasts of boosted trees, compared by held-out scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from evenhand._validate import Floats
from evenhand.forecasters.adapters import residual_distribution
from evenhand.forecasters.boosting.ensembles import FoldEnsembles
from evenhand.forecasters.boosting.outcome_scale import OutcomeScale, possible_scales
from evenhand.forecasters.gaps import smallest_gap

CHOICE_ROWS = 2000
"""Number of rows on which the scale of the outcome is chosen, at most."""

SCORE_ROWS = 5000
"""Number of rows on which candidates are scored, at most."""

WEIGHT_CAP = 3.0
"""A precision weight treats no row as having a scale more than this times above or below the
median, so weights range from 1/9 to 9."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """Ensembles for mean and log scale, with what they leave of the training outcomes.

    Parameters
    ----------
    outcome_scale : OutcomeScale
        Scale of the means.
    mean_boosters, scale_boosters : list of lightgbm.Booster
        One ensemble per fold; none is a mean or a log scale of 0 for all rows.
    residuals : ndarray of shape (n,)
        Held-out residuals in units of `scale`.
    scale : ndarray of shape (n,)
        Scale of each row, predicted without its fold.
    """

    outcome_scale: OutcomeScale
    mean_boosters: list[Any] = field(repr=False)
    scale_boosters: list[Any] = field(repr=False)
    residuals: Floats = field(repr=False)
    scale: Floats = field(repr=False)

    def loss(self, weight: Floats, width: float) -> float:
        """Return the held-out log score plus the logarithm of the held-out CRPS.

        Both are in nats: a difference of 0.01 is 1% of the CRPS. The log score is that of cells
        around the outcomes, at least `width` and 2% of a scale wide, so that ties in the residuals
        of rounded outcomes are no gain.
        """
        distribution = residual_distribution(self.residuals, weight)
        rows = slice(None, None, -(-self.residuals.size // SCORE_ROWS))
        residuals = self.residuals[rows]
        scale = self.scale[rows]
        half = np.maximum(width / scale, 0.02) / 2
        mass = distribution.cdf(residuals + half) - distribution.cdf(residuals - half)
        # an outlier far in a tail costs at most 27 nats
        log_score = np.log(2 * half * scale) - np.log(np.maximum(mass, 1e-12))
        crps = np.average(scale * distribution.crps(residuals), weights=weight[rows])
        return float(np.average(log_score, weights=weight[rows]) + np.log(crps))


def best_candidate(ensembles: FoldEnsembles, y: Floats, weight: Floats) -> Candidate:
    """Grow the candidates of a table and return the one with the lowest held-out loss.

    Parameters
    ----------
    ensembles : FoldEnsembles
        Features and folds of the rows.
    y : ndarray of shape (n,)
        Outcomes.
    weight : ndarray of shape (n,)
        Weights of the rows, with mean 1.
    """
    scales = possible_scales(y, weight)
    # if no feature can be split, all rows get the same distribution
    if not ensembles.can_split:
        linear = scales[0]
        return Candidate(linear, [], [], linear.to_unit(y), np.full(y.size, linear.unit))
    if len(scales) == 1 or y.size <= CHOICE_ROWS:
        return _best([_grown(ensembles, y, weight, scale) for scale in scales], y, weight)
    # folds are random, so the first rows of each fold are a random part of the table
    few = np.sort(np.argsort(ensembles.folds[0], kind="stable")[:: -(-y.size // CHOICE_ROWS)])
    part = ensembles.take(few)
    trials = [_grown(part, y[few], weight[few], scale) for scale in scales]
    chosen = _best(trials, y[few], weight[few]).outcome_scale
    return _best([_grown(ensembles, y, weight, chosen)], y, weight)


def _best(grown: list[list[Candidate]], y: Floats, weight: Floats) -> Candidate:
    width = smallest_gap(y)
    return min(
        (candidate for several in grown for candidate in several),
        key=lambda candidate: candidate.loss(weight, width),
    )


def _grown(
    ensembles: FoldEnsembles, y: Floats, weight: Floats, outcome_scale: OutcomeScale
) -> list[Candidate]:
    """Grow ensembles on one scale of the outcome; the first candidate is plain boosting.

    The others have a scale learned from the held-out residuals; a mean with precision weights, or
    the average of both means.
    """
    position = outcome_scale.to_unit(y)
    plain, loc = ensembles.of_mean(position, weight)
    # residuals of training rows are too small, so the scale is fitted to held-out residuals
    size = np.abs(position - loc)
    typical = np.average(size, weights=weight) or 1.0
    # rounding alone moves outcomes by a quarter of the step on average
    rounding = smallest_gap(y) / 4 / outcome_scale.slope(loc)
    # the gamma distribution needs positive values
    size = np.maximum(np.maximum(size, rounding) / typical, 1e-3)
    spread, log_scale = ensembles.of_log_scale(size, weight)
    relative = np.exp(log_scale - np.median(log_scale))
    precision = weight / np.clip(relative, 1 / WEIGHT_CAP, WEIGHT_CAP) ** 2
    weighted, weighted_loc = ensembles.of_mean(position, precision / precision.mean())
    both = plain + weighted, (loc + weighted_loc) / 2
    return [
        _candidate(outcome_scale, y, means, boosters)
        for means in ((plain, loc), (weighted, weighted_loc), both)
        for boosters in (([], np.zeros(y.size)), (spread, log_scale))
    ]


def _candidate(
    outcome_scale: OutcomeScale,
    y: Floats,
    means: tuple[list[Any], Floats],
    log_scales: tuple[list[Any], Floats],
) -> Candidate:
    mean_boosters, position = means
    scale_boosters, log_scale = log_scales
    scale = outcome_scale.slope(position) * np.exp(log_scale)
    residuals = (y - outcome_scale.to_outcome(position)) / scale
    return Candidate(outcome_scale, mean_boosters, scale_boosters, residuals, scale)
