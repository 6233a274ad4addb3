"""Rows of an audit: groups found by search, worst groups, floors, and probable members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np
from scipy import special

from evenhand import search
from evenhand._validate import Floats
from evenhand.audits.outcomes import RowCells
from evenhand.audits.scores import LEVELS
from evenhand.calibration import Cells, coverage_name, covered, holm
from evenhand.certificates import MASSES, WIDER_LEVELS, Certificate
from evenhand.distributions import OutcomeKind
from evenhand.report import Measure
from evenhand.results import Finding, Membership, PlainInterval, WorstGroup, rows_from
from evenhand.tables import GroupRule, Groups


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
            {
                "group": one.description or "",
                "n": one.n,
                "n_judged": one.n_judged,
                "mass": one.mass,
                "error": scale * one.error,
                "error_low": scale * one.low,
                "bias": one.bias,
                "coverage_80": None if is_event else one.coverage_80,
                "direction": one.direction,
                "p_value": one.p_value,
                "p_adjusted": p,
                "description_share": one.description_share,
                "features": one.features,
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
        values = {coverage_name(level): covered(cells, level) for level in LEVELS}
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
