"""Tables of an audit: scores with their intervals, curves, worst groups and bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from scipy import special

from evenhand import search
from evenhand._validate import Floats
from evenhand.audits.forecasts import RowCells
from evenhand.calibration import (
    COVERED,
    HISTOGRAM_CONFIDENCE,
    Cells,
    coverage_name,
    covered,
    covered_whole,
    holm,
    n_effective,
    ramps_at,
)
from evenhand.certificates import MASSES, WIDER_LEVELS, Certificate
from evenhand.distributions import OutcomeKind
from evenhand.report import Measure
from evenhand.results import (
    CurvePoint,
    Finding,
    Interval,
    Membership,
    PlainInterval,
    Score,
    WorstGroup,
    rows_from,
)
from evenhand.tables import GroupRule, Groups

Z95 = 1.959964
"""Normal quantile of 95% confidence intervals."""

AVERAGE_ERROR = Measure("error")


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
        for level in COVERED
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


def worst_groups(
    rows: RowCells,
    masses: Sequence[float],
    certificate: Certificate | None,
    n_simulations: int,
    random: np.random.Generator,
) -> tuple[WorstGroup, ...]:
    """Return the oracle worst group of each size, its null distribution and the certified bound.

    Outcomes with cells are simulated from their forecasts for the null distribution. Where the
    forecasts are not known, it is that of continuous outcomes, whose errors are larger: an oracle
    chooses among more distinct PITs.
    """
    # random starts have a fixed seed, so the group does not depend on the searches before
    cells, simulate = rows.tested, rows.simulate
    curve = search.worst_group_curve(cells, masses, random_state=0)
    # an oracle finds groups in calibrated forecasts, too (method: worst groups)
    null = search.null_curve(
        cells, masses, n_simulations=n_simulations, random_state=random, simulate=simulate
    )
    columns = {
        "mass": curve.masses,
        "n": [rows.size for rows in curve.rows],
        "error": curve.errors,
        "null_mean": null.mean,
        "null_low": null.low,
        "null_high": null.high,
        "certified": certified_errors(certificate, curve.masses),
    }
    return rows_from(WorstGroup, columns)


def certified_errors(certificate: Certificate | None, masses: Iterable[float]) -> list[float]:
    """Return the bounds for the errors of every group of shares of all people; NaN without one."""
    # bounds of a hurdle are for shares of the people whose outcome is not the atom
    if certificate is None or certificate.kind is OutcomeKind.HURDLE:
        return [np.nan for _ in masses]
    return [float(certificate.group_error(mass)) for mass in masses]


def learned_findings(
    found: Sequence[search.FoundGroup], factor: float, *, is_event: bool
) -> list[Finding]:
    """Return the groups found by search, one per size.

    `factor` scales their adjusted p-values for comparison with the error probability of the audit.

    Given the forecast, the W1 error of 0/1 outcomes is half the difference of event rate and
    probability (outcomes: Theorem 4.1), which is their error here.
    """
    adjusted = np.minimum(holm(np.array([one.p_value for one in found])) * factor, 1.0)
    scale = 2 if is_event else 1
    return [
        Finding.of(
            vars(one)
            | {
                "group": one.description or "",
                "error": scale * one.error,
                "error_low": scale * one.low,
                "coverage_80": None if is_event else one.coverage_80,
                "p_adjusted": p,
                "rule": GroupRule(tuple(one.conditions)).to_state() if one.conditions else None,
            }
        )
        for one, p in zip(found, adjusted, strict=True)
    ]


# --- intervals without a draw


def relative_widths(rows: RowCells) -> dict[float, float]:
    """Return mean widths without a draw by level, divided by that of the served 80% intervals.

    Empty if the served intervals have no width, or if widths are not scored.
    """
    widths = rows.scores.get(Measure("interval width", 0.8))
    if widths is None or not 0 < (served := float(widths.mean())) < np.inf:
        return {}
    return dict(zip(WIDER_LEVELS, (rows.plain.mean(axis=0) / served).tolist(), strict=True))


def plain_intervals(
    proof: Certificate | None, widths: Mapping[float, float]
) -> tuple[PlainInterval, ...]:
    """Return the floors of intervals without a draw, by level and group size.

    `proof` is that of a deterministic forecaster or of a link around one: there are none without a
    certificate and for other forecasters. `widths` are the relative widths by level.
    """
    return tuple(
        PlainInterval.of(vars(one) | {"width": widths.get(one.level)})
        for mass in MASSES
        for one in ([] if proof is None else proof.plain_intervals(mass))
    )


# --- bounds for groups whose members are known by probability

BIN_ROWS = 100
"""Smallest number of rows with similar probabilities that are compared with each other."""

MOST_BINS = 20
"""Largest number of bins of similar probabilities."""


def membership(
    cells: Cells, residual: Floats | None, groups: Groups, confidence: float
) -> tuple[Membership, ...]:
    """Return bounds for the coverage and the bias of each group known by probability.

    The bounds allow for any relation between membership and outcome: see `mean_bounds`. There are
    none where times are cut off, whose coverage is not known.
    """
    weights = np.ones(cells.n_samples) if cells.weights is None else cells.weights
    rows = []
    for group, shares in groups.probable() if not cells.unknown.any() else ():
        row: dict[str, str | float] = {"group": group.name, "members": float(shares.sum())}
        values = {coverage_name(level): covered(cells, level) for level in COVERED}
        if residual is not None:
            values["bias"] = residual
        for key, one in values.items():
            low, high = mean_bounds(one, shares, weights, confidence)
            is_share = key != "bias"
            row[f"{key}_least"] = max(low, 0.0) if is_share else low
            row[f"{key}_most"] = min(high, 1.0) if is_share else high
        rows.append(Membership.of(row))
    return tuple(rows)


def mean_bounds(
    values: Floats, shares: Floats, weights: Floats, confidence: float = 0.95
) -> tuple[float, float]:
    """Return bounds for the mean of a group, whatever the relation of membership and values.

    People with a probability of membership `p` have an unknown part `p` who are members. Their mean
    value is largest if these are the people with the largest values. The bounds compare people
    within bins of similar probabilities, so they are slightly wider than the sharpest bounds given
    the probabilities. They assume that the probabilities are correct on average in each bin.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Value of each person, such as the share of draws whose interval covers the outcome.
    shares : ndarray of shape (n,)
        Probabilities of membership, not all 0.
    weights : ndarray of shape (n,)
        Weights of the rows.
    confidence : float, default 0.95
        Confidence that both bounds hold, asymptotically.

    References
    ----------
    Kallus, Mao & Zhou, Assessing algorithmic fairness with unobserved protected class using data
    combination, Management Science, 2022.

    Examples
    --------
    >>> values = np.repeat([0.0, 1.0], 500)
    >>> low, high = mean_bounds(values, np.full(1000, 0.8), np.ones(1000))
    >>> 0.33 < low < 3 / 8 and 5 / 8 < high < 0.67  # at least 0.3 of 0.8 have 0, at most 0.5
    True
    """
    low = -_upper_bound(-values, shares, weights, confidence)
    return low, _upper_bound(values, shares, weights, confidence)


def _upper_bound(values: Floats, shares: Floats, weights: Floats, confidence: float) -> float:
    """Return the upper end of a confidence interval for the largest possible mean."""
    total = float(weights @ shares)
    best = np.empty(values.size)
    for rows in _bins(shares):
        size = float(weights[rows] @ shares[rows])
        cut = _cut(values[rows], weights[rows], size)
        # the largest sum of members' values is size * cut + sum of the excesses over the cut
        best[rows] = shares[rows] * cut + np.maximum(values[rows] - cut, 0.0)
    bound = float(weights @ best) / total
    # the derivative in the cut is 0 at the optimum, so its sampling error has no effect
    influence = weights * (best - shares * bound) / total
    return bound - float(special.ndtri((1 - confidence) / 2) * np.sqrt(influence @ influence))


def _bins(shares: Floats) -> Iterable[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """Yield the rows of each bin of similar probabilities; equal ones are in one bin."""
    order = np.argsort(shares, kind="stable")
    count = min(MOST_BINS, max(shares.size // BIN_ROWS, 1))
    rising = shares[order]
    cuts = rising[np.rint(np.linspace(0, shares.size, count + 1)[1:-1]).astype(np.intp)]
    ends = np.unique([0, *np.searchsorted(rising, cuts), shares.size])
    for start, stop in pairwise(ends):
        yield order[start:stop]


def _cut(values: Floats, weights: Floats, size: float) -> float:
    """Return the value above which people have a total weight of `size`."""
    falling = np.argsort(-values, kind="stable")
    at = int(np.searchsorted(np.cumsum(weights[falling]), size))
    return float(values[falling[min(at, values.size - 1)]])
