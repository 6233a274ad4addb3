"""Sums over groups of rows from which tests, estimates and intervals of groups are computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import special

from evenhand._validate import Floats, Ints, Mask
from evenhand.calibration.cells import BLOCK_ROWS, Cells
from evenhand.calibration.event_sums import (
    CERTAIN,
    EVENT_NAMES,
    MAYBE,
    RARE_MAYBE,
    RARE_VARIANCE,
    event_p_value,
    event_values,
    trend_weights,
)
from evenhand.calibration.scores import share_inside

COVERED = (0.8, 0.9)
"""Nominal levels of the central prediction intervals whose coverage is listed by group."""

LEAST_EFFECTIVE = 150
"""Fewest effective rows of a group that is tested if rows have weights (verdict: 4)."""

LEAST_EVENTS = 50
"""Fewest events, and fewest people without the event, for an empirical variance."""

OTHER = 20.0
"""Factor by which the normal p-value of the second test must exceed the exact one of the first."""

Events = tuple[Floats, Floats]
"""0/1 outcomes and their probabilities, each of shape (n,)."""


@dataclass(frozen=True)
class RowValues:
    """Values of each row that are summed over groups.

    Parameters
    ----------
    n_draws : int
        Number of draws per person.
    has_residual, is_weighted : bool
        Whether residuals and weights are known.
    centre : float
        Value subtracted from residuals before they are summed: the variance of a group would
        otherwise lose its digits in a difference of large sums.
    has_cells : bool, default False
        Whether covered shares are averages over the positions of PITs in their cells. `u` is one
        position in either case: tests have exact null distributions (outcomes: 4.3).
    has_events : bool, default False
        Whether outcomes are 0 or 1; the residuals are then outcome minus probability.

    Notes
    -----
    The values are, in the order of `names`: 1, level `u - 1/2` and spread `|u - 1/2| - 1/4` of one
    draw `u` per person; with weights `w` also the products of both with `w`; for each level the
    share of draws whose interval covers the outcome; for 0/1 outcomes `EVENT_NAMES`; the first
    three powers of the residual. With weights, shares, events and residuals are multiplied by `w`,
    products of shares with `w^2` follow, and the last two values are `w^2` and `w`.
    """

    n_draws: int
    has_residual: bool
    is_weighted: bool
    centre: float = 0.0
    has_cells: bool = False
    has_events: bool = False

    @property
    def counts_hits(self) -> bool:
        """Whether each covered share is 0 or 1."""
        return self.n_draws == 1 and not self.has_cells

    @property
    def covered(self) -> tuple[float, ...]:
        """Levels whose coverage is summed; 0/1 outcomes have no intervals."""
        return () if self.has_events else COVERED

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the values, in the order of the sums."""
        names = ["n", "level", "spread"]
        names += ["w level", "w spread"] if self.is_weighted else []
        for level in self.covered:
            names += [f"covered {level}"] + [f"w2 covered {level}"] * self.is_weighted
        names += EVENT_NAMES if self.has_events else ()
        if self.has_residual:
            names += ["residual"] + ["squares", "cubes"] * (not self.is_weighted)
        return (*names, *(["w2", "w"] if self.is_weighted else []))

    def values(
        self, cells: Cells, residual: Floats | None, u: Floats, events: Events | None = None
    ) -> Floats:
        """Return the values of all rows, shape (q, n); `u` is one PIT per person, (n,)."""
        n = cells.n_samples
        level = u - 0.5
        spread = np.abs(level) - 0.25
        rows = [np.ones(n), level, spread]
        w = cells.weights
        if w is not None:
            rows += [w * level, w * spread]
        for share in [] if self.has_events else _shares(cells):
            rows += [share] if w is None else [w * share, w**2 * share]
        if events is not None:
            rows += list(event_values(events) * (1.0 if w is None else w))
        if residual is not None:
            excess = residual - self.centre
            rows += [excess, excess**2, excess**3] if w is None else [w * excess]
        if w is not None:
            rows += [w**2, w]
        return np.stack(rows)


def row_values(
    cells: Cells, residual: Floats | None, u: Floats, events: Events | None = None
) -> tuple[RowValues, Floats]:
    """Return the values of each row, shape (q, n), and their order."""
    centre = 0.0
    if residual is not None:
        centre = float(np.average(residual, weights=cells.weights))
    order = RowValues(
        cells.n_draws,
        residual is not None,
        cells.weights is not None,
        centre,
        has_cells=not cells.are_points,
        has_events=events is not None,
    )
    return order, order.values(cells, residual, u, events)


def _shares(cells: Cells) -> list[Floats]:
    """Return each person's share of draws inside the interval of each level."""
    # in blocks of rows, so that temporaries need little memory
    blocks = list(cells.row_blocks(BLOCK_ROWS))
    return [
        np.concatenate([share_inside(*block, level).mean(axis=-1) for block in blocks])
        for level in COVERED
    ]


@dataclass(frozen=True, eq=False)
class GroupRows:
    """Values of single rows, for what sums over groups do not determine.

    Parameters
    ----------
    u : ndarray of shape (n,)
        One PIT per person.
    residual, weights : ndarray of shape (n,) or None
        Outcome minus mean of the forecast, and weights.
    events : tuple of two ndarrays of shape (n,), or None
        0/1 outcomes and their probabilities.
    members : callable
        Returns the rows of a group by its place among the groups.
    """

    u: Floats
    residual: Floats | None
    weights: Floats | None
    events: Events | None
    members: Callable[[int], Mask | Ints]


class GroupTests(NamedTuple):
    """Tests of groups: standardized level and spread, and twice the smaller of both p-values.

    Values are NaN where nothing is tested.
    """

    z_level: Floats
    z_spread: Floats
    p_value: Floats


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over the rows of each of `g` groups.

    Parameters
    ----------
    order : RowValues
        Order of the sums.
    sums : ndarray of shape (q, g)
        Sums of the values of the rows.
    error : ndarray of shape (g,)
        Estimates of the W1 calibration error, over all draws; for 0/1 outcomes of the absolute
        difference of event rate and mean probability.
    slack : ndarray of shape (g,)
        Largest amount by which the exact error of the same PITs may exceed `error`: 0, or half the
        width of a bin.
    rows : GroupRows, optional
        Values of the rows; None if only sums are known.
    """

    order: RowValues
    sums: Floats
    error: Floats
    slack: Floats
    rows: GroupRows | None = None

    def __post_init__(self) -> None:
        if self.order.has_events:
            # a group is one bin: too high and too low probabilities in it cancel (verdict: 2)
            object.__setattr__(self, "error", np.abs(self["excess"]) / self.weight)
            object.__setattr__(self, "slack", np.zeros(len(self)))

    def __getitem__(self, name: str) -> Floats:
        """Return a sum over all groups by its name."""
        return np.asarray(self.sums[self.order.names.index(name)])

    def __len__(self) -> int:
        return int(self.error.size)

    def take(self, wanted: Ints) -> GroupSums:
        """Return some of the groups."""
        rows = self.rows
        if rows is not None:
            members = rows.members
            rows = replace(rows, members=lambda i: members(int(wanted[i])))
        return replace(
            self,
            sums=self.sums[:, wanted],
            error=self.error[wanted],
            slack=self.slack[wanted],
            rows=rows,
        )

    @cached_property
    def tests(self) -> GroupTests:
        """Tests that the PITs of each group are uniform, by their level and their spread.

        Under a uniform PIT `u`, `u - 1/2` has variance 1/12 and `|u - 1/2| - 1/4` has variance
        1/48. Both are sums of uniform variables, whose tails beyond two standard errors are lighter
        than the normal tails that are used.

        For 0/1 outcomes the level is the number of events, and in place of the spread the trend is
        tested: whether outcomes of larger probabilities are too rare (`z_spread > 0`, probabilities
        too extreme) or too frequent. Both p-values are exact given the probabilities, in groups of
        any size; normal ones are returned where an exact one could change no decision (verdict: 1).

        With weights `w` the tests are those of Horvitz and Thompson sums `sum w g` of the same
        values `g` (verdict: 4), which are calibrated if the weights are inverse sampling
        probabilities, whatever these depend on. They are asymptotic: groups of fewer than 150
        effective rows have no test.
        """
        if self.order.is_weighted:
            return _weighted_tests(self)
        if self.order.has_events:
            return _event_tests(self)
        z_level = self["level"] * np.sqrt(12 / self.n)
        z_spread = self["spread"] * np.sqrt(48 / self.n)
        return _tested(z_level, z_spread)

    @property
    def n(self) -> Floats:
        """Number of rows."""
        return np.rint(self["n"])

    @property
    def weight(self) -> Floats:
        """Sum of weights."""
        return self["w"] if self.order.is_weighted else self.n

    @property
    def n_effective(self) -> Floats:
        """Effective number of rows (Kish)."""
        return self.weight**2 / self["w2"] if self.order.is_weighted else self.n

    @property
    def bias(self) -> Floats:
        """Mean residual; NaN if residuals are unknown."""
        if not self.order.has_residual:
            return np.full(len(self), np.nan)
        return self.order.centre + self["residual"] / self.weight

    @property
    def rates(self) -> dict[str, Floats]:
        """Mean probability "predicted" and "rate" of 0/1 outcomes; nothing for others."""
        if not self.order.has_events:
            return {}
        predicted = self["probability"] / self.weight
        return {"predicted": predicted, "rate": predicted + self["excess"] / self.weight}

    def coverage(self, level: float) -> Floats:
        """Share of outcomes in the central interval of a level."""
        # rounding errors in sums of weights may leave the share slightly outside [0, 1]
        return np.clip(self[f"covered {level}"] / self.weight, 0.0, 1.0)

    @property
    def estimates(self) -> dict[str, Floats]:
        """Estimates of "error", "bias" and, by level, "coverage_80" and so on."""
        covered = {coverage_name(level): self.coverage(level) for level in self.order.covered}
        return {"error": self.error, "bias": self.bias} | covered


def weighted_p_value(
    values: Floats, n_effective: float, least_variance: float = 0.0
) -> tuple[float, float]:
    """Return the two-sided p-value of a sum whose null mean is 0, and its studentized value.

    The variance is the sum of squares, uncentred as the null mean is known, and at least
    `least_variance`; the value is the one of the studentized sum and of Hall's transformation of it
    (Journal of the Royal Statistical Society B 54, 1992) that is nearer to 0, with Student tails.

    Examples
    --------
    >>> u = ((np.arange(200) + 0.5) / 200) ** 0.9
    >>> w = np.where(np.arange(200) % 4 == 0, 4.0, 1.0)
    >>> p_value, z = weighted_p_value(w * (u - 0.5), w.sum() ** 2 / (w**2).sum())
    >>> round(p_value, 5)
    0.35796
    """
    variance = max(float((values**2).sum()), least_variance)
    if not variance > 0:
        return 1.0, 0.0
    t = float(values.sum()) / variance**0.5
    skewness = float(np.clip((values**3).sum() / variance**1.5, -1.0, 1.0))
    hall = t + skewness * t**2 / 3 + skewness**2 * t**3 / 27 + skewness / 6
    z = float(np.sign(t)) * min(abs(t), abs(hall)) if t * hall > 0 else 0.0
    return float(2 * special.stdtr(n_effective - 1, -abs(z))), z


def least_variances(happened: Floats, probability: Floats, weights: Floats) -> Floats:
    """Return what weighted residuals of 0/1 outcomes vary by at least, by row.

    With few events the residuals hardly vary, and would make their mean look certain: those of the
    forecasts do. With more the empirical variance is right for weights that depend on the outcome.

    Examples
    --------
    >>> least_variances(np.zeros(3), np.full(3, 0.5), np.array([1.0, 1.0, 2.0]))
    array([0.25, 0.25, 1.  ])
    """
    n_events = happened.sum()
    if min(n_events, happened.size - n_events) >= LEAST_EVENTS:
        return np.zeros(happened.size)
    return np.asarray(weights**2 * probability * (1 - probability))


def _tested(z_level: Floats, z_spread: Floats) -> GroupTests:
    """Return tests of two standardized statistics with normal tails."""
    z = np.maximum(np.abs(z_level), np.abs(z_spread))
    # erfc(|z| / sqrt(2)) is the two-sided p-value; doubled, as z is the larger of two statistics
    p_value = np.minimum(2 * special.erfc(z / np.sqrt(2)), 1.0)
    return GroupTests(z_level, z_spread, np.asarray(p_value))


def _event_tests(sums: GroupSums) -> GroupTests:
    """Return the tests of 0/1 outcomes: normal ones first, exact ones where they matter."""
    variance, steps = sums["variance"], sums["step variance"]
    centre = np.rint(_ratio(steps, variance))
    trend = sums["step excess"] - centre * sums["excess"]
    of_trend = sums["squared step variance"] - 2 * centre * steps + centre**2 * variance
    z_level = _ratio(sums["excess"], np.sqrt(variance))
    # outcomes that follow the probabilities less than they should: too extreme, as in too narrow
    z_trend = -_ratio(trend, np.sqrt(np.maximum(of_trend, 0.0)))
    if sums.rows is None or sums.rows.events is None:
        # sums determine no exact distribution; that of the level has a bound
        p_level = _binomial_p_value(sums)
        return GroupTests(z_level, np.zeros_like(z_level), p_level)
    found = _tested(z_level, z_trend)
    p_value = found.p_value.copy()
    happened, probability = sums.rows.events
    is_open = p_value * len(sums) < MAYBE
    is_open &= p_value * len(sums) > CERTAIN
    is_rare = variance < RARE_VARIANCE
    is_open |= is_rare & (p_value < max(RARE_MAYBE, MAYBE / max(len(sums), 1)))
    is_open |= sums["impossible"] > 0
    for i in np.flatnonzero(is_open):
        rows = sums.rows.members(int(i))
        y, p = happened[rows], probability[rows]
        weights = [None, trend_weights(p)]
        # the smaller normal p-value first: the other one seldom matters
        first = int(abs(z_trend[i]) > abs(z_level[i]))
        least = event_p_value(y, p, weights[first])
        z_other = (z_trend, z_level)[first][i]
        if is_rare[i] or special.erfc(abs(z_other) / np.sqrt(2)) < OTHER * least:
            least = min(least, event_p_value(y, p, weights[1 - first]))
        p_value[i] = min(2 * least, 1.0)
    return found._replace(p_value=p_value)


def _binomial_p_value(sums: GroupSums) -> Floats:
    """Return bounds of the p-values of numbers of events, from sums alone.

    Tails beyond the mean by at least 1 are at most those of a binomial number of the same mean
    (Hoeffding 1956, theorem 4), and one event has at most the expected number as its probability.
    """
    n, expected = sums.n, np.clip(sums["probability"], 0.0, sums.n)
    count = np.clip(np.rint(sums["excess"] + sums["probability"]), 0.0, n)

    def at_least(number: Floats, mean: Floats) -> Floats:
        tail = special.betainc(np.maximum(number, 1.0), n - number + 1, mean / n)
        bound = np.where(number >= np.maximum(mean + 1, 1.0), tail, 1.0)
        return np.asarray(np.where(number == 1, np.minimum(mean, 1.0), bound))

    tails = at_least(count, expected), at_least(n - count, n - expected)
    p_value = np.minimum(2 * np.minimum(*tails), 1.0)
    return np.asarray(np.where(sums["impossible"] > 0, 0.0, p_value))


def _ratio(value: Floats, by: Floats) -> Floats:
    return np.divide(value, by, out=np.zeros_like(value), where=by > 0)


def _weighted_tests(sums: GroupSums) -> GroupTests:
    """Return the tests of Horvitz and Thompson sums."""
    rows = sums.rows
    assert rows is not None
    assert rows.weights is not None
    found = np.full((3, len(sums)), np.nan)
    for i in np.flatnonzero(sums.n_effective >= LEAST_EFFECTIVE):
        some = rows.members(int(i))
        w, n = rows.weights[some], float(sums.n_effective[i])
        if rows.events is not None:
            y, p = (values[some] for values in rows.events)
            c = -trend_weights(p, w)
            known = least_variances(y, p, w)
            level = weighted_p_value(w * (y - p), n, float(known.sum()))
            spread = weighted_p_value(w * c * (y - p), n, float((c**2 * known).sum()))
            if (np.abs(y - p) == 1).any():
                level = 0.0, level[1]
        else:
            value = rows.u[some] - 0.5
            level = weighted_p_value(w * value, n)
            spread = weighted_p_value(w * (np.abs(value) - 0.25), n)
        found[:, i] = level[1], spread[1], min(2 * min(level[0], spread[0]), 1.0)
    return GroupTests(*found)


def coverage_name(level: float) -> str:
    """Return the name of the coverage of an interval in tables, such as `coverage_80`."""
    return f"coverage_{level * 100:.0f}"


# --- correction of p-values for the number of tests


def holm(p_values: Floats) -> Floats:
    """Adjust p-values for the number of tests, step down (Holm, 1979); NaN is no test.

    Examples
    --------
    >>> holm(np.array([0.01, np.nan, 0.04]))
    array([0.02,  nan, 0.04])
    """
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested])]
    adjusted = np.full(p_values.size, np.nan)
    steps = p_values[order] * np.arange(order.size, 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted
