"""Sums over groups of rows, with tests, estimates and simultaneous intervals of groups.

All intervals of a measure cover their true values at once with the stated confidence: each group
gets an equal share of the error probability (Bonferroni), however the groups overlap (method:
proof).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from evenhand._validate import Floats, Ints, Mask, Pair
from evenhand.calibration.bands import (
    LEAST_VARIED,
    ONLY_DIRECT,
    binomial_intervals,
    by_transform,
    convolved,
    last_within,
)
from evenhand.calibration.cells import Cells, Events, divided
from evenhand.calibration.errors import calibration_error, covered, middle_distances, n_effective
from evenhand.draws import RandomState
from evenhand.results import GivenForecast, plain, with_ends

# --- exact tests of 0/1 outcomes under predicted probabilities, and intervals of rates
#
# Given the forecasts, the outcomes are independent events, so the distribution of a weighted sum of
# them with whole weights is known exactly (verdict: 1). Tails of their number are at most binomial
# (Hoeffding, Annals of Mathematical Statistics 27, 1956, theorem 4).

EVENT_NAMES = (
    "probability",
    "excess",
    "excess squares",
    "variance",
    "step excess",
    "step variance",
    "squared step variance",
    "impossible",
)
"""Values of each row with a probability `P` of its event `Y`: `P`, `Y - P` and its square, the
variance `P (1 - P)`, `Y - P` times the step of its log odds, the variance times that step and its
square, and whether the outcome is impossible."""

STEPS = 4
"""Steps per unit of log odds in the weights of the trend test."""

MOST_LOG_ODDS = 8.0
"""Log odds beyond which all probabilities have the same weight in the trend test."""

# that of more rows is exact if their events are rare, and otherwise normal with the exact
# variance and skewness
EXACT_ROWS = 20_000
"""Largest number of rows whose distribution is always exact."""

RARE_VARIANCE = 200.0
"""Variance of the number of events below which they are rare."""

# Bonferroni levels times that number are 0.01 to 0.05. Normal tails are within a factor of 10
# there, unless events are rare: then exact p-values are computed below `RARE_MAYBE` in any case.
MAYBE, CERTAIN = 1.0, 1e-3
"""Normal p-values times the number of groups between which exact ones may change a decision."""

RARE_MAYBE = 1e-3
"""See `MAYBE`."""


def event_values(events: Pair) -> Floats:
    """Return the values named in `EVENT_NAMES`, shape (8, n), of events and their probabilities.

    Examples
    --------
    >>> event_values((np.array([1.0]), np.array([0.5])))[:, 0]
    array([0.5 , 0.5 , 0.25, 0.25, 0.  , 0.  , 0.  , 0.  ])
    """
    happened, p = events
    excess = happened - p
    variance = p * (1 - p)
    step = log_odds_steps(p)
    trend = [step * excess, step * variance, step**2 * variance]
    return np.stack([p, excess, excess**2, variance, *trend, np.abs(excess) == 1])


def log_odds_steps(probability: Floats) -> Floats:
    """Return the log odds of probabilities in whole steps of a quarter, from -32 to 32."""
    with np.errstate(divide="ignore"):
        odds = np.log(probability) - np.log1p(-probability)
    return np.rint(STEPS * np.clip(odds, -MOST_LOG_ODDS, MOST_LOG_ODDS))


def trend_weights(probability: Floats, weights: Floats | float = 1.0) -> Ints:
    """Return whole weights of the trend test: steps of log odds about their weighted mean.

    A right level moves the sum of the outcomes with these weights hardly.

    Examples
    --------
    >>> trend_weights(np.array([0.1, 0.3, 0.5, 0.7, 0.9]))
    array([-9, -3,  0,  3,  9])
    """
    step = log_odds_steps(probability)
    variance = weights * probability * (1 - probability)
    total = variance.sum()
    if not total:
        return np.zeros(step.size, dtype=np.intp)
    return np.asarray(step - np.rint((variance * step).sum() / total), dtype=np.intp)


def count_distribution(probability: Floats) -> Floats:
    """Return the probabilities of 0, 1, ..., n of n independent events, by a product tree."""
    n = probability.size
    tree = np.zeros((1 << max(n - 1, 0).bit_length(), 2))
    tree[:, 0] = 1.0
    tree[:n, 0], tree[:n, 1] = 1 - probability, probability
    while len(tree) > 1:
        one, other = tree[0::2], tree[1::2]
        m = tree.shape[1]
        if m >= ONLY_DIRECT // 4:
            tree = by_transform(one, other)
            continue
        tree = np.zeros((len(one), 2 * m - 1))
        for j in range(m):
            tree[:, j : j + m] += one[:, j : j + 1] * other
    return tree[0, : n + 1]


def sum_distribution(probability: Floats, weight: Ints) -> tuple[int, Floats]:
    """Return the least value of a sum of events with whole weights, and its distribution."""
    least, mass = 0, np.ones(1)
    # small weights first: distributions stay short for longer
    for w in sorted(set(weight.tolist()) - {0}, key=abs):
        own = count_distribution(probability[weight == w])
        spread = np.zeros(abs(w) * (own.size - 1) + 1)
        spread[:: abs(w)] = own if w > 0 else own[::-1]
        least += min(w, 0) * (own.size - 1)
        mass = convolved(mass, spread)
    return least, mass


def event_p_value(happened: Floats, probability: Floats, weight: Ints | None = None) -> float:
    """Return the two-sided p-value of the weighted number of events, given their probabilities.

    It is exact, unless there are many rows and their events are not rare (`EXACT_ROWS`). An
    impossible outcome has the p-value 0.
    """
    if (np.abs(happened - probability) == 1).any():
        return 0.0
    variance = probability * (1 - probability)
    c = np.ones(happened.size, dtype=np.intp) if weight is None else weight
    if happened.size > EXACT_ROWS and variance.sum() >= RARE_VARIANCE:
        # the normal p-value, corrected for the skewness (Cornish and Fisher 1938)
        deviation = np.sqrt((c**2 * variance).sum())
        if not deviation:
            return 1.0
        z = (c * (happened - probability)).sum() / deviation
        z -= (c**3 * variance * (1 - 2 * probability)).sum() / deviation**3 * (z**2 - 1) / 6
        return two_sided(z)
    least, mass = sum_distribution(probability, c)
    at = round((c * happened).sum()) - least
    tails = mass[: at + 1].sum(), mass[at:].sum()
    return min(1.0, 2 * min(tails) + 1e-13)


def two_sided(z: Floats | float) -> Any:
    """Return the two-sided p-value of a standard normal statistic."""
    return special.erfc(np.abs(z) / np.sqrt(2))


def two_point_entropy(t: Floats, variance: Floats) -> Floats:
    """Return the entropy of the two-point variable that exceeds its mean by `t` most likely.

    Its values exceed their mean by 1 or fall below it by `variance`: no variable with that variance
    that exceeds its mean by at most 1 has heavier tails in the bound of Hoeffding (JASA 58, 1963,
    theorem 3).
    """
    p = np.minimum((t + variance) / (1 + variance), 1.0)
    q = variance / (1 + variance)
    return special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q)


def rate_intervals(count: Floats | float, n: Floats | float, tail: float) -> Pair:
    """Return intervals for the mean probability of `n` independent events of which `count` occur.

    They are those of Clopper and Pearson, whose tails bound those of events with different
    probabilities (Hoeffding 1956); a single event, or a single person without one, has the
    probability `tail` where the expected number is `tail`.
    """
    # binomial tails of two events or more within 1 of their mean exceed 1/4
    tail = min(tail, 0.25)
    low, high = binomial_intervals(count, count, n, tail)
    low = np.where(count == 1, np.minimum(low, tail / n), low)
    return low, np.where(n - count == 1, np.maximum(high, 1 - tail / n), high)


# --- ranks of probabilities


def mid_ranks(values: Floats, weights: Floats | None = None) -> Floats:
    """Return mid-ranks between 0 and 1; values that are equal up to rounding have the same.

    Examples
    --------
    >>> mid_ranks(np.array([0.2, 0.1, 0.2, 0.4]))
    array([0.5  , 0.125, 0.5  , 0.875])
    """
    # values of equal forecasts may differ by rounding errors, which must not divide people
    mantissa, exponent = np.frexp(values)
    values = np.ldexp(np.round(mantissa * 2**30), exponent - 30)
    _, place = np.unique(values, return_inverse=True)
    mass = np.bincount(place, weights)
    return ((np.cumsum(mass) - mass / 2) / mass.sum())[place]


def rank_parts(rank: Floats, k: int) -> Ints:
    """Return which of k parts each rank between 0 and 1 is in, from 0."""
    return np.minimum((k * rank).astype(np.intp), k - 1)


# --- rows and their sums over groups

COVERED = (0.8, 0.9)
"""Nominal levels of the central prediction intervals whose coverage is listed by group."""

LEAST_EFFECTIVE = 150
"""Fewest effective rows of a group that is tested if rows have weights (verdict: 4)."""

NULL_VARIANCES = {"level": 1 / 12, "spread": 1 / 48}
"""Variances of level and spread of a uniform PIT."""

VARIANCE_SLOPES = {"level": 1.0, "spread": 0.5}
"""By how much the variance of level and spread grows at most with the W1 error."""

LEAST_EVENTS = 50
"""Fewest events, and fewest people without the event, for an empirical variance."""

OTHER = 20.0
"""Factor by which the normal p-value of the second test must exceed the exact one of the first."""

WIDE = 0.9
"""Width of the cell of a frequent outcome, over which the spread is averaged."""

MOST_SHARE = 0.05
"""Largest share of one row in the variance of a weighted mean that has an interval."""


def positions_in(low: Floats, high: Floats, drawn: Floats) -> dict[str, Pair]:
    """Return level `u - 1/2` and spread `|u - 1/2| - 1/4` of PITs in cells, with variances, (n,).

    The level is the mean over positions in the cell: under uniform PITs it has mean 0 and the
    variance 1/12 less the mean variance within the cells. The spread is such a mean in cells of
    nearly the whole range, those of a frequent outcome. In others it is that of the drawn position,
    since its mean over a cell such as [0, 0.7] may hardly vary but in a few rows.

    Examples
    --------
    >>> positions_in(*np.array([[0.9, 0.0], [0.9, 0.5], [0.9, 0.2]]))["level"]
    (array([ 0.4 , -0.25]), array([0.08333333, 0.0625    ]))
    """
    level, mean = (low + high) / 2 - 0.5, middle_distances(low, high)
    left = NULL_VARIANCES["level"] - (high - low) ** 2 / 12
    within = level**2 + (high - low) ** 2 / 12 - mean**2
    is_wide = high - low > WIDE
    spread = np.where(is_wide, mean, np.abs(drawn - 0.5)) - 0.25
    return {"level": (level, left), "spread": (spread, NULL_VARIANCES["spread"] - is_wide * within)}


def known_variances(positions: Mapping[str, Pair], some: Any) -> dict[str, Floats]:
    """Return what `positions_in` cells vary by at least, by row, if few have another outcome.

    They hardly vary then, and would make the weighted mean look certain. With more the empirical
    variance is right for weights that depend on the outcome.
    """
    left = {name: variance[some] for name, (_, variance) in positions.items()}
    is_other = left["level"] >= NULL_VARIANCES["level"] * 3 / 4  # cells of width 1/2 at most
    is_few = is_other.sum() < min(LEAST_EVENTS, is_other.size)
    return {name: is_few * one for name, one in left.items()}


@dataclass(frozen=True, eq=False)
class GroupRows:
    """Rows whose values are summed over groups.

    Parameters
    ----------
    cells : Cells of n rows
        PITs; weights are positive.
    chosen : tuple of two ndarrays of int, shape (n,)
        Place among the cells of one draw per person, which all tests share.
    residual : ndarray of shape (n,) or None
        Outcome minus mean of the forecast; of 0/1 outcomes minus the probability.
    events : Events or None
        0/1 outcomes and their probabilities; None for outcomes of other kinds.
    centre : float
        Value subtracted from residuals before they are summed: the variance of a group would
        otherwise lose its digits in a difference of large sums.
    """

    cells: Cells
    chosen: tuple[Ints, Ints]
    residual: Floats | None
    events: Events | None = None
    centre: float = 0.0

    @classmethod
    def of(
        cls,
        cells: Cells,
        residual: Floats | None,
        random_state: RandomState,
        events: Events | None = None,
        centre: float | None = None,
    ) -> GroupRows:
        """Choose one draw per person; residuals are centred at their mean by default."""
        chosen = cells.one_draw_each(random_state)
        residual = residual if events is None else events[0] - events[1]
        if centre is None and residual is not None:
            centre = np.average(residual, weights=cells.weights)
        return cls(cells, chosen, residual, events, centre or 0.0)

    @cached_property
    def positions(self) -> dict[str, Pair]:
        """`positions_in` the chosen cells."""
        cells = self.cells
        return positions_in(*(end[self.chosen] for end in (cells.low, cells.high, cells.drawn)))

    @cached_property
    def values(self) -> dict[str, Floats]:
        """Values of the rows by name, each of shape (n,).

        They are 1, level and spread, of cells that are not points with their variances, for each
        nominal level the share of draws whose interval covers the outcome, for 0/1 outcomes
        `EVENT_NAMES`, and the first three powers of the residual. With weights `w` all but the
        first are multiplied by `w`, and there are also products of shares with `w^2`, and `w^2` and
        `w` themselves.
        """
        w = self.cells.weights
        times: Floats | float = 1.0 if w is None else w
        found = {"n": np.ones(self.cells.n_samples)}
        found |= {name: times * value for name, (value, _) in self.positions.items()}
        if not self.cells.are_points:
            found |= {f"{name} variance": times * one for name, (_, one) in self.positions.items()}
        if self.events is not None:
            found |= dict(zip(EVENT_NAMES, event_values(self.events) * times, strict=True))
        else:
            for nominal in COVERED:
                share = covered(self.cells, nominal)
                found[f"covered {nominal}"] = times * share
                if w is not None:
                    found[f"w2 covered {nominal}"] = w**2 * share
        if self.residual is not None:
            excess = self.residual - self.centre
            found["residual"] = times * excess
            if w is None:
                found |= {"squares": excess**2, "cubes": excess**3}
        return found if w is None else found | {"w2": w**2, "w": w}

    @cached_property
    def matrix(self) -> Floats:
        """The values, shape (q, n)."""
        return np.stack(list(self.values.values()))

    def totals(self, masks: Iterable[Mask]) -> dict[str, Floats]:
        """Return the sums over groups of known members, of mean PITs ("pit") as well."""
        cells = self.cells
        pit = (cells.low.mean(axis=-1) + cells.high.mean(axis=-1)) / 2
        values = np.vstack((self.matrix, pit if cells.weights is None else cells.weights * pit))
        sums = np.array([values.compress(mask, axis=-1).sum(axis=-1) for mask in masks])
        return dict(zip((*self.values, "pit"), sums.reshape(-1, len(values)).T, strict=True))

    def sums(self, masks: Iterable[Mask]) -> GroupSums:
        """Return the sums over groups of known members, with exact errors."""
        groups = list(masks)
        error = np.zeros(len(groups))
        if self.events is None:
            error = np.array([calibration_error(self.cells.take(mask)) for mask in groups])
        return self.summed(self.totals(groups), error, groups.__getitem__)

    def weighted_sums(self, members: Floats) -> GroupSums:
        """Return the sums over one group that is known by probabilities of membership, (n,)."""
        some = members > 0
        # probabilities of membership are weights: estimates are sum p z / sum p
        part = GroupRows(
            self.cells.of_members(members),
            (np.arange(some.sum()), self.chosen[1][some]),
            None if self.residual is None else self.residual[some],
            None if self.events is None else self.events.take(some),
            self.centre,
        )
        return part.sums([np.ones(part.cells.n_samples, dtype=np.bool_)])

    def summed(
        self,
        sums: Mapping[str, Floats],
        error: Floats,
        members: Callable[[int], Mask],
        slack: float = 0.0,
    ) -> GroupSums:
        """Return sums of the values, each of shape (g,), over groups with these members."""
        is_hit = self.cells.n_draws == 1 and self.cells.are_points
        return GroupSums(sums, error, slack, self.centre, is_hit, self, members)


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
    sums : dict of str to ndarray of shape (g,)
        Sums of the values of the rows, by the names of `GroupRows.values` and `GroupRows.totals`.
    error : ndarray of shape (g,)
        Estimates of the W1 calibration error, over all draws; for 0/1 outcomes of the absolute
        difference of event rate and mean probability.
    slack : float
        Largest amount by which the exact error of the same PITs may exceed `error`: 0, or half the
        width of a bin.
    centre : float
        Value that was subtracted from residuals.
    counts_hits : bool
        Whether each covered share is 0 or 1: there is one draw per person, without a cell.
    rows : GroupRows, optional
        Values of the rows, for what sums do not determine; None if only sums are known.
    members : callable, optional
        Function that returns the rows of a group by its place among the groups.
    """

    sums: Mapping[str, Floats]
    error: Floats
    slack: float
    centre: float
    counts_hits: bool
    rows: GroupRows | None = None
    members: Callable[[int], Mask | Ints] | None = None

    def __post_init__(self) -> None:
        if self.has_events:
            # a group is one bin: too high and too low probabilities in it cancel (verdict: 2)
            object.__setattr__(self, "error", np.abs(self["excess"]) / self.weight)

    def __getitem__(self, name: str) -> Floats:
        """Return a sum over all groups by its name."""
        return self.sums[name]

    def __len__(self) -> int:
        return self.error.size

    @property
    def has_events(self) -> bool:
        """Whether outcomes are 0 or 1."""
        return "excess" in self.sums

    @property
    def has_residual(self) -> bool:
        """Whether residuals are known."""
        return "residual" in self.sums

    @property
    def is_weighted(self) -> bool:
        """Whether rows have weights."""
        return "w" in self.sums

    @property
    def covered(self) -> tuple[float, ...]:
        """Levels whose coverage is summed; 0/1 outcomes have no intervals."""
        return () if self.has_events else COVERED

    def of_rows(self, i: Any) -> tuple[GroupRows, Mask | Ints]:
        """Return all rows, and which of them are those of a group."""
        assert self.rows is not None
        assert self.members is not None
        return self.rows, self.members(i)

    def take(self, wanted: Ints) -> GroupSums:
        """Return some of the groups."""
        members = self.members
        return replace(
            self,
            sums={name: values[wanted] for name, values in self.sums.items()},
            error=self.error[wanted],
            members=None if members is None else lambda i: members(int(wanted[i])),
        )

    @cached_property
    def tests(self) -> GroupTests:
        """Tests that the PITs of each group are uniform, by their level and their spread.

        Both are standardized by their variances under uniform PITs. Sums over points are sums of
        uniform variables, whose tails beyond two standard errors are lighter than the normal tails
        that are used. Variances between cells are estimated by the widths of the cells: with few
        outcomes beside a frequent one the estimate grows with their number, as the skewness of the
        number asks for.

        For 0/1 outcomes the level is the number of events, and in place of the spread the trend is
        tested: whether outcomes of larger probabilities are too rare (`z_spread > 0`, probabilities
        too extreme) or too frequent. Both p-values are exact given the probabilities, in groups of
        any size; normal ones are returned where an exact one could change no decision (verdict: 1).

        With weights `w` the tests are those of Horvitz and Thompson sums `sum w g` of the same
        values `g` (verdict: 4), which are calibrated if the weights are inverse sampling
        probabilities, whatever these depend on. They are asymptotic: groups of fewer than 150
        effective rows have no test.
        """
        if self.is_weighted:
            return _weighted_tests(self)
        if self.has_events:
            return _event_tests(self)
        return _tested(
            *(divided(self[name], np.sqrt(self.n * self.variance(name))) for name in NULL_VARIANCES)
        )

    def variance(self, name: str) -> Floats:
        """Return the mean variance of the level or the spread under uniform PITs."""
        if f"{name} variance" in self.sums:
            return self[f"{name} variance"] / self.weight
        return np.full(len(self), NULL_VARIANCES[name])

    @property
    def n(self) -> Floats:
        """Number of rows."""
        return np.rint(self["n"])

    @property
    def weight(self) -> Floats:
        """Sum of weights."""
        return self["w"] if self.is_weighted else self.n

    @property
    def n_effective(self) -> Floats:
        """Effective number of rows (Kish)."""
        return self.weight**2 / self["w2"] if self.is_weighted else self.n

    @property
    def mean_pit(self) -> Floats:
        """Mean PIT over draws and positions in the cells."""
        return self["pit"] / self.weight

    @property
    def bias(self) -> Floats:
        """Mean residual; NaN if residuals are unknown."""
        if not self.has_residual:
            return np.full(len(self), np.nan)
        return self.centre + self["residual"] / self.weight

    @property
    def n_events(self) -> Floats:
        """Number of rows with the event, of 0/1 outcomes without weights."""
        return np.clip(np.rint(self["excess"] + self["probability"]), 0.0, self.n)

    @property
    def rates(self) -> dict[str, Floats]:
        """Mean probability "predicted" and "rate" of 0/1 outcomes; nothing for others."""
        if not self.has_events:
            return {}
        predicted = self["probability"] / self.weight
        return {"predicted": predicted, "rate": predicted + self["excess"] / self.weight}

    def coverage(self, level: float) -> Floats:
        """Share of outcomes in the central interval of a level."""
        # rounding errors in sums of weights may leave the share slightly outside [0, 1]
        return np.clip(self[f"covered {level}"] / self.weight, 0.0, 1.0)


def weighted_p_value(
    values: Floats, n_effective: float, least: Floats | float = 0.0
) -> tuple[float, float, float]:
    """Return the two-sided p-value of a sum of mean 0, its studentized value and its deviation.

    The variance is the sum of squares, uncentred as the null mean is known, and at least that of
    the `least` variances; the value is the one of the studentized sum and of Hall's transformation
    of it that is nearer to 0, with Student tails.
    """
    variance = max((values**2).sum(), np.sum(least))
    if not variance > 0:
        return 1.0, 0.0, 0.0
    t = values.sum() / variance**0.5
    skewness = np.clip((values**3).sum() / variance**1.5, -1.0, 1.0)
    other = hall(t, skewness)
    z = np.sign(t) * min(abs(t), abs(other)) if t * other > 0 else 0.0
    return 2 * special.stdtr(n_effective - 1, -abs(z)), z, variance**0.5


def hall(t: float, k: float) -> float:
    """Return Hall's transformation of a studentized sum, by the skewness `k` of the mean.

    It is normal to a higher order (Journal of the Royal Statistical Society B 54, 1992).
    """
    return t + k * t**2 / 3 + k**2 * t**3 / 27 + k / 6


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
    return weights**2 * probability * (1 - probability)


def _tested(z_level: Floats, z_spread: Floats) -> GroupTests:
    """Return tests of two standardized statistics with normal tails."""
    z = np.maximum(np.abs(z_level), np.abs(z_spread))
    # doubled, as z is the larger of two statistics
    p_value = np.minimum(2 * two_sided(z), 1.0)
    return GroupTests(z_level, z_spread, np.asarray(p_value))


def _event_tests(sums: GroupSums) -> GroupTests:
    """Return the tests of 0/1 outcomes: normal ones first, exact ones where they matter."""
    variance, steps = sums["variance"], sums["step variance"]
    centre = np.rint(divided(steps, variance))
    trend = sums["step excess"] - centre * sums["excess"]
    of_trend = sums["squared step variance"] - 2 * centre * steps + centre**2 * variance
    z_level = divided(sums["excess"], np.sqrt(variance))
    # outcomes that follow the probabilities less than they should: too extreme, as in too narrow
    z_trend = -divided(trend, np.sqrt(np.maximum(of_trend, 0.0)))
    if sums.rows is None or sums.rows.events is None:
        # sums determine no exact distribution; that of the level has a bound
        return GroupTests(z_level, np.zeros_like(z_level), _binomial_p_value(sums))
    found = _tested(z_level, z_trend)
    p_value = found.p_value.copy()
    happened, probability = sums.rows.events
    is_open = p_value * len(sums) < MAYBE
    is_open &= p_value * len(sums) > CERTAIN
    is_rare = variance < RARE_VARIANCE
    is_open |= is_rare & (p_value < max(RARE_MAYBE, MAYBE / max(len(sums), 1)))
    is_open |= sums["impossible"] > 0
    for i in np.flatnonzero(is_open):
        _, some = sums.of_rows(i)
        y, p = happened[some], probability[some]
        weights = [None, trend_weights(p)]
        # the smaller normal p-value first: the other one seldom matters
        first = int(abs(z_trend[i]) > abs(z_level[i]))
        least = event_p_value(y, p, weights[first])
        z_other = (z_trend, z_level)[first][i]
        if is_rare[i] or two_sided(z_other) < OTHER * least:
            least = min(least, event_p_value(y, p, weights[1 - first]))
        p_value[i] = min(2 * least, 1.0)
    return found._replace(p_value=p_value)


def _binomial_p_value(sums: GroupSums) -> Floats:
    """Return bounds of the p-values of numbers of events, from sums alone.

    Tails beyond the mean by at least 1 are at most those of a binomial number of the same mean
    (Hoeffding 1956, theorem 4), and one event has at most the expected number as its probability.
    """
    n, expected = sums.n, np.clip(sums["probability"], 0.0, sums.n)
    count = sums.n_events

    def at_least(number: Floats, mean: Floats) -> Floats:
        tail = special.betainc(np.maximum(number, 1.0), n - number + 1, mean / n)
        bound = np.where(number >= np.maximum(mean + 1, 1.0), tail, 1.0)
        return np.where(number == 1, np.minimum(mean, 1.0), bound)

    tails = at_least(count, expected), at_least(n - count, n - expected)
    return np.where(sums["impossible"] > 0, 0.0, np.minimum(2 * np.minimum(*tails), 1.0))


def _weighted_tests(sums: GroupSums) -> GroupTests:
    """Return the tests of Horvitz and Thompson sums."""
    found = np.full((3, len(sums)), np.nan)
    for i in np.flatnonzero(sums.n_effective >= LEAST_EFFECTIVE):
        rows, some = sums.of_rows(i)
        w, n = rows.values["w"][some], sums.n_effective[i]
        if rows.events is not None:
            y, p = (values[some] for values in rows.events)
            c = -trend_weights(p, w)
            known = least_variances(y, p, w)
            level = weighted_p_value(w * (y - p), n, known)
            spread = weighted_p_value(w * c * (y - p), n, c**2 * known)
            if (np.abs(y - p) == 1).any():
                level = 0.0, *level[1:]
        else:
            level, spread = (
                weighted_p_value(rows.values[name][some], n, w**2 * one)
                for name, one in known_variances(rows.positions, some).items()
            )
        found[:, i] = level[1], spread[1], min(2 * min(level[0], spread[0]), 1.0)
    return GroupTests(*found)


def coverage_name(level: float) -> str:
    """Return the name of the coverage of an interval in tables, such as `coverage_80`."""
    return f"coverage_{level * 100:.0f}"


# --- simultaneous intervals

MEASURES = ("error", "bias", *map(coverage_name, COVERED))
"""Measures of a group that have an interval."""


def simultaneous_intervals(
    sums: GroupSums, n_groups: int, level: float, *, is_tested: bool = True
) -> dict[str, Floats]:
    """Return estimates with simultaneous intervals: "error", "error_low", "error_high" and so on.

    The measures are "error", "bias" and, by level, "coverage_80"; rates of 0/1 outcomes come last.
    The intervals of a measure cover the true values of `n_groups` groups, of which these may be
    some, at once with probability `1 - level`. If `is_tested`, the lower end of the error is
    positive only where the test of the group is significant among all of them.
    """
    tail = level / (2 * max(n_groups, 1))
    low, high = error_intervals(sums, tail)
    if is_tested:
        # tests are of one draw per person, and intervals of all
        low = np.where(sums.tests.p_value * n_groups < level, low, 0.0)
    found = {"error": (sums.error, low, high), "bias": (sums.bias, *bias_intervals(sums, tail))}
    for share in sums.covered:
        found[coverage_name(share)] = sums.coverage(share), *coverage_intervals(sums, share, tail)
    columns: dict[str, Floats] = {}
    for name, three in found.items():
        columns |= zip(with_ends(name), three, strict=True)
    return columns | sums.rates


def coverage_intervals(sums: GroupSums, level: float, tail: float) -> Pair:
    """Return intervals for the coverage of a level; either end fails with probability `tail`.

    One draw per person: Clopper-Pearson. Several draws, or averages over the cells of outcomes with
    atoms: the covered shares of persons lie in [0, 1], and by Bentkus (Annals of Probability 32,
    2004) `P(S <= s) <= e P(B <= ceil(s))` for their sum `S` and a binomial `B` of the same mean;
    the interval is that of Clopper and Pearson at `tail / e`, from the sum rounded outwards. With
    weights it is that of Clopper and Pearson for the effective number of trials (Korn and Graubard
    1998), which is asymptotic.
    """
    n, hits = sums.n, sums[f"covered {level}"]
    if not sums.is_weighted:
        # sums of shares have rounding errors
        low, high = np.floor(hits + 1e-9), np.minimum(np.ceil(hits - 1e-9), n)
        return binomial_intervals(low, high, n, tail if sums.counts_hits else tail / math.e)
    n, share = sums.n_effective, sums.coverage(level)
    # squares of shares v in [0, 1] are at most v: sum w^2 (v - p)^2 <= sum w^2 (v (1 - 2p) + p^2)
    squares = sums[f"w2 covered {level}"] * (1 - 2 * share) + share**2 * sums["w2"]
    variance = np.maximum(squares, 0.0) / sums.weight**2
    trials = np.divide(share * (1 - share), variance, out=n.copy(), where=variance > 1e-300)
    # one heavy row determines the share, and would make it look certain
    trials = np.minimum(trials, n)
    return binomial_intervals(share * trials, share * trials, trials, tail)


def bias_intervals(sums: GroupSums, tail: float) -> Pair:
    """Return intervals for the mean residual; NaN if it is unknown.

    They are the farther ends of t-intervals and of Hall's intervals for skewed values (Journal of
    the Royal Statistical Society B 54, 1992), which are asymptotic: means of skewed residuals leave
    t-intervals much more often than stated, on one side. With weights the variance is that of the
    linearized ratio, and nothing is known where one row has more than 5% of it (verdict: 4).
    Intervals of 0/1 outcomes are `_event_bias`, which hold in groups of any size; with weights they
    are extended to `_weighted_rates`.
    """
    if not sums.has_residual:
        unknown = np.full(len(sums), np.nan)
        return unknown, unknown
    if sums.has_events and not sums.is_weighted:
        return _event_bias(sums, tail)
    squares, skewness = (_weighted_moments if sums.is_weighted else _moments)(sums)
    n = sums.n_effective
    with np.errstate(divide="ignore", invalid="ignore"):
        # one row, or outcomes that are all alike, have no variance estimate: the interval is
        # unknown, not of width 0
        varied = sums.variance("level") * 12
        is_known = sums.has_events | (varied > 0.9) | (varied * n >= LEAST_VARIED)
        scale = np.where(is_known & (n >= 2), n / (n - 1), np.nan)
        error = np.sqrt(squares * scale) / sums.weight
        t = np.asarray(-special.stdtrit(np.maximum(n - 1, 1), tail), dtype=np.float64)
    low = sums.bias - np.maximum(t, _unskewed(t, skewness)) * error
    high = sums.bias + np.maximum(t, -_unskewed(-t, skewness)) * error
    if not sums.has_events:
        return low, high
    least, most = _weighted_rates(sums, tail)
    return np.minimum(low, least), np.maximum(high, most)


def _moments(sums: GroupSums) -> Pair:
    """Return squares of residuals about their mean, and the estimated skewness of the mean."""
    mean = sums["residual"] / sums.n
    squares = np.maximum(sums["squares"] - sums.n * mean**2, 0.0)
    cubes = sums["cubes"] - 3 * mean * sums["squares"] + 2 * sums.n * mean**3
    # equal residuals have no skewness; their sum of squares may be a rounding error
    varies = squares > 1e-12 * sums["squares"]
    cubed = np.where(varies, squares, 1.0) ** 1.5
    return squares, np.where(varies, np.clip(cubes / cubed, -1.0, 1.0), 0.0)


def _weighted_moments(sums: GroupSums) -> Pair:
    """Return the moments of weighted residuals; NaN where one row has most of the variance."""
    squares, skewness = np.empty((2, len(sums)))
    for i, mean in enumerate(sums.bias):
        rows, some = sums.of_rows(i)
        assert rows.residual is not None
        values = rows.values["w"][some] * (rows.residual[some] - mean)
        total = (values**2).sum()
        is_known = np.abs(values).max() ** 2 <= MOST_SHARE * total
        squares[i] = total if is_known else np.nan
        skewness[i] = np.clip((values**3).sum() / total**1.5, -1.0, 1.0) if total > 0 else 0.0
    return squares, skewness


def _event_bias(sums: GroupSums, tail: float) -> Pair:
    """Return intervals for the mean of `P(Y = 1) - P` of the rows of each group, of 0/1 outcomes.

    The number of events, given the rows, has at most binomial tails: intervals of Clopper and
    Pearson for the mean probability of the event, minus the mean probability, fail with probability
    at most `tail` at either end, in groups of any size. The rows of a group differ from the people
    that they were drawn from by the variation of the errors `P(Y = 1) - P`: where `Y - P` varies
    more than binomial outcomes do, the ends are moved away in proportion to the standard deviation.
    """
    n, rate, mean = sums.n, sums.n_events / sums.n, sums["excess"] / sums.n
    low, high = rate_intervals(sums.n_events, n, tail)
    deviations = np.maximum(sums["excess squares"] / n - mean**2, 0.0)
    # that of one event, if none or all happened
    variance = np.maximum(rate * (1 - rate), (n - 1) / n**2)
    ratio = np.divide(deviations, variance, out=np.ones_like(n), where=n > 1)
    factor = np.sqrt(np.maximum(ratio, 1.0))
    return sums.bias + factor * (low - rate), sums.bias + factor * (high - rate)


def _weighted_rates(sums: GroupSums, tail: float) -> Pair:
    """Return intervals for the weighted rate of an event minus the mean forecast.

    The residuals of people without the event hardly vary: if nobody in a group has it, their
    variance does not limit the rate. The number of trials is the effective number of rows, which is
    asymptotic.
    """
    forecast = sums["probability"] / sums.weight
    rate = np.clip(forecast + sums["excess"] / sums.weight, 0.0, 1.0)
    trials = sums.n_effective
    low, high = binomial_intervals(rate * trials, rate * trials, trials, tail)
    return low - forecast, high - forecast


def _unskewed(t: Floats, skewness: Floats) -> Floats:
    """Return the value that Hall's transformation of a skewed t-statistic maps to `t`.

    With the skewness `k` of the mean, `T + k T^2 / 3 + k^2 T^3 / 27 + k / 6` is nearly normal; it
    is the cube of `1 + k T / 3`, apart from constants, and increases with `T`.
    """
    k = np.where(np.abs(skewness) < 1e-9, 1e-9, skewness)
    return 3 / k * (np.cbrt(1 + k * (t - k / 6)) - 1)


def error_intervals(sums: GroupSums, tail: float) -> Pair:
    """Return intervals for the calibration error; either end fails with probability `tail`.

    That of 0/1 outcomes is the distance of event rate and mean probability, whose interval is that
    of the bias.
    """
    if not sums.has_events:
        return _least_error(sums, tail), _most_error(sums, tail)
    low, high = bias_intervals(sums, tail)
    least = np.maximum(np.maximum(low, -high), 0.0)
    return np.where(np.isnan(least), 0.0, least), np.maximum(np.abs(low), np.abs(high))


def _least_error(sums: GroupSums, tail: float) -> Floats:
    """Return lower ends from the level and the spread of one draw per person.

    `u` and `|u - 1/2|` are 1-Lipschitz functions, so their means differ from those of a uniform
    variable by at most the error `d`. Their squared deviations from 1/2 and 1/4 are Lipschitz with
    constants 1 and 1/2, so their variances are at most `1/12 + d` and `1/48 + d/2`, less the mean
    variance within the cells if they are means over these. The lower end is the smallest `d` that a
    normal test of each does not reject, at a quarter of the error probability for each direction of
    each. It is positive only if the test of the group rejects.
    """
    z = -special.ndtri(tail / 4)

    def least(name: str) -> Floats:
        x = np.abs(sums[name]) / sums.weight
        return least_root(x, sums.variance(name), sums.n_effective, z, VARIANCE_SLOPES[name])

    low = np.maximum(least("level"), least("spread"))
    # one draw per person may deviate more than their average
    return np.minimum(low, sums.error)


def least_root(
    x: Floats | float, variance: Floats | float, n: Floats | float, z: float, slope: float
) -> Floats:
    """Return the least mean `d` that a normal test of the mean `x` of `n` values does not reject.

    The variance of a value is at most `variance + slope d`: `d` is the smaller root of `(x - d)^2 =
    z^2 (variance + slope d) / n`, or 0.
    """
    c = z**2 / np.asarray(n)
    half = c * slope / 2
    root = x + half - np.sqrt(2 * half * x + half**2 + c * variance)
    return np.where(np.square(x) > c * variance, np.maximum(root, 0.0), 0.0)


def _most_error(sums: GroupSums, tail: float) -> Floats:
    """Return upper ends, in groups of any size, from a bound for means of bounded variables.

    The error `d` of a group is a mean `E T(u) - integral T` for one 1-Lipschitz function `T` that
    the distribution of PITs determines. The estimate is the largest such mean over all `T`, so it
    is at least that of this `T`: if the estimate is `t` below `d`, so is a mean of independent
    variables with range at most 1 and variance at most `v(d)`. The probability of that is at most
    `exp(-2 n t^2)` and at most `exp(-n K)` with the relative entropy `K` of `two_point_entropy`
    (Hoeffding, JASA 58, 1963, theorems 2 and 3). The upper end is the largest `d` that is not
    excluded. The choice between both bounds does not depend on the outcomes. With several draws
    the variables are means over draws of `T(u)`, and with atoms also over the cell: both have the
    same mean, no larger range and no larger variance, and both bounds remain.
    """
    n = sums.n_effective
    limit = -np.log(tail) / n
    by_range = np.sqrt(limit / 2)
    # the mean estimate under uniform PITs (method: worst groups)
    usual = np.minimum(0.313 / np.sqrt(n), 0.5)
    is_narrower = _largest_error(usual, limit) < usual + by_range
    estimate = np.minimum(sums.error + sums.slack, 0.5)
    by_variance = _largest_error(estimate, limit)
    return np.minimum(np.where(is_narrower, by_variance, estimate + by_range), 0.5)


def _largest_error(estimate: Floats, limit: Floats) -> Floats:
    """Return the largest error whose distance from the estimate has an entropy within the limit."""

    def is_within(error: Floats) -> Mask:
        return two_point_entropy(error - estimate, most_variance(error)) <= limit

    # the entropy increases with the error: 30 halvings leave less than 1e-9
    return last_within(is_within, estimate, np.full(estimate.shape, 0.5), 30)


def most_variance(error: Floats) -> Floats:
    """Return the largest variance of 1-Lipschitz functions of PITs with a calibration error.

    It is at most the mean of `(u - 1/2)^2`, which is largest if the outermost PITs are moved to 0
    and 1: those farther than `1/2 - sqrt(d)` from 1/2, at a cost of `d`.
    """
    return np.minimum(1 / 12 + error - 2 / 3 * error**1.5, 0.25)


# --- calibration given the forecast itself: groups by its level and spread, tests and sizes
#
# Errors of opposite sign cancel in pooled PITs and in pooled rates. By convexity of W1 the error of
# all people is at most the mean error `D` of people with the same forecast, and for every function
# `c(f)` of the forecast with values from -1 to 1, `|E c(f) (u - 1/2)|` and `|E c(f) (|u - 1/2| -
# 1/4)|` are at most `D`; for 0/1 outcomes `|E c(p) (Y - p)| <= E |r(p) - p|` (verdict: 1).

MOST_PARTS = 10
"""Largest number of groups by one value of the forecast."""

LEAST_ROWS = 150
"""Fewest rows, or effective rows, per group by the forecast."""

CHANCE = 0.313
"""Mean W1 error of the empirical distribution of n uniform PITs, times `sqrt(n)`."""


def n_parts(n: float) -> int:
    """Return the number of groups by the forecast for a number of rows, or of effective rows."""
    return int(np.clip(n // LEAST_ROWS, 1, MOST_PARTS))


def own_parts(values: Floats, weights: Floats | None = None) -> tuple[Ints, int]:
    """Return the group of each row by a value of its forecast, from 0, and the number of groups.

    Groups have equal numbers of rows, but equal values are in one group: some may have no row.
    """
    k = n_parts(values.size if weights is None else n_effective(weights))
    return rank_parts(mid_ranks(values, weights), k), k


def rate_error(
    probability: Floats, event: Floats, share: float, weights: Floats | None = None
) -> GivenForecast:
    """Return the mean difference of event rate and probability by score (verdict: 2).

    The interval fails with probability `share`, and its lower end is positive only if the tests
    reject at it. With weights both are asymptotic.

    The measured size is `T = sum_b |sum_b (y - p)| / n` over the groups by score. Its upper end
    adds the margin of one mean, as for the true signs of `r(p) - p` the mean of `s (y - p)` is one
    linear statistic, which is at most `T` if the signs are constant within groups, and at most the
    largest such mean over signs that change at most twice otherwise.
    """
    w = np.ones(event.size) if weights is None else weights / weights.mean()
    n, size = event.size, n_effective(w)
    rank, k = mid_ranks(probability, w), n_parts(size)
    parts = rank_parts(rank, k)
    n_bins = np.unique(parts).size
    excess, variance = event - probability, probability * (1 - probability)
    measured = float(np.abs(np.bincount(parts, w * excess)).sum()) / n
    spread = np.sqrt(np.bincount(parts, w**2 * variance)).sum()
    chance = math.sqrt(2 / np.pi) * spread / n
    bend = np.where(np.abs(rank - 0.5) < 0.25, -1.0, 1.0)
    signs = {"level": np.ones(n), "half": np.where(rank < 0.5, -1.0, 1.0), "bend": bend}
    trend = trend_weights(probability, w)
    slope = trend / max(np.abs(trend).max(), 1)
    if weights is None:
        # where the sign is negative, the absence of the event is the event (verdict: 1)
        flipped = (np.where(bend > 0, one, 1 - one) for one in (event, probability))
        tests = {
            "level": event_p_value(event, probability),
            "trend": event_p_value(event, probability, trend),
            "bend": event_p_value(*flipped),
        }
        high = max(measured, largest_signed_mean(event, probability)) + margin_of_mean(
            event, share / 2
        )
        z = -float(special.ndtri(share / 8))
        lows = [_least_rate(event, probability, sign, share / 8) for sign in signs.values()]
        x = abs((slope * excess).mean())
        lows.append(float(least_root(x, (slope**2 * variance).mean(), n, z, 1.0)))
    else:
        known = least_variances(event, probability, w)
        t, z = (-float(special.stdtrit(size - 1, share / tails)) for tails in (2, 8))
        found, lows = {}, []
        for name, c in (signs | {"trend": slope}).items():
            values = w * c * excess
            found[name], _, deviation = weighted_p_value(values, size, c**2 * known)
            lows.append((abs(values.sum()) - z * deviation) / n)
        tests = {name: found[name] for name in ("level", "trend", "bend")}
        if (np.abs(excess) == 1).any():
            tests["level"] = 0.0
        high = measured + t * math.sqrt((w**2 * excess**2).sum()) / n
    low = max(0.0, *lows) if len(tests) * min(tests.values()) < share else 0.0
    estimate = max(max(measured**2 - chance**2, 0.0) ** 0.5, abs((w * excess).mean()), low)
    high = min(high, 1.0)
    sizes = {"error": estimate, "low": low, "high": high, "measured": measured, "chance": chance}
    complete = k == MOST_PARTS or n_bins == np.unique(probability).size
    return GivenForecast(**plain(sizes), n_bins=n_bins, is_complete=complete, tests=plain(tests))


def given_forecast(
    positions: Mapping[str, Pair],
    keys: Mapping[str, Floats],
    measured: float,
    share: float,
    weights: Floats | None = None,
    pooled: float = 0.0,
) -> GivenForecast:
    """Return the mean W1 error given level and spread of the forecast, with the tests of everyone.

    `positions` are `positions_in` cells, `keys` values of the forecasts, such as their means, and
    `measured` is the largest mean error of the groups by one of them. The W1 error of all PITs
    together, `pooled`, is at most the error given the forecast. The lower end fails with
    probability `share`, and is positive only if the tests reject at it.
    """
    n = positions["level"][0].size
    w = np.ones(n) if weights is None else weights / weights.mean()
    size = n_effective(w)
    trends = {f"trend of {name}": 2 * mid_ranks(key, weights) - 1 for name, key in keys.items()}
    n_tests = 2 + 2 * len(trends)
    tail = share / (2 * n_tests)
    z, t = -special.ndtri(tail), -special.stdtrit(size - 1, tail)
    floors = {} if weights is None else known_variances(positions, slice(None))
    tests: dict[str, float] = {}
    sizes, roots = [], [0.0]
    for name, c in {"": np.ones(n), **trends}.items():
        for kind, (value, variance) in positions.items():
            label = kind if not name else name if kind == "level" else f"{name}, spread"
            part = w * c * value
            sizes.append(abs(part.sum()) / n)
            if weights is None:
                left = (c**2 * variance).mean()
                tests[label] = two_sided(part.sum() / (n * left) ** 0.5) if left else 1.0
                roots.append(float(least_root(sizes[-1], left, n, z, VARIANCE_SLOPES[kind])))
            else:
                least = (w * c) ** 2 * floors[kind]
                tests[label], _, deviation = weighted_p_value(part, size, least)
                roots.append(sizes[-1] - t * deviation / n)
    k = n_parts(size)
    chance = CHANCE * (k / size) ** 0.5
    # what is left of both sizes beyond chance, and the statistic that rejects: with few rows there
    # are no groups by the forecast that could show it
    squares = max(measured**2 - chance**2, pooled**2 - CHANCE**2 / size, 0.0)
    low, estimate = 0.0, squares**0.5
    if n_tests * min(tests.values()) < share:
        low = max(roots)
        estimate = max(estimate, low, min(zip(tests.values(), sizes, strict=True))[1])
    known = {"error": estimate, "low": low, "measured": measured, "chance": chance}
    return GivenForecast(**plain(known), n_bins=k, is_complete=False, tests=plain(tests))


def largest_signed_mean(event: Floats, probability: Floats) -> float:
    """Return the largest mean of `s(p) (y - p)` over signs that change at most twice along p."""
    order = np.argsort(probability, kind="stable")
    rising = probability[order]
    sums = np.append(0.0, np.cumsum((event - probability)[order]))
    # signs change between distinct probabilities only
    sums = sums[np.r_[True, rising[1:] != rising[:-1], True]]
    best = 0.0
    for sign in (1.0, -1.0):
        value = sign * sums
        for change in (-sign, sign):
            value = np.maximum.accumulate(value - change * sums) + change * sums
        best = max(best, value[-1])
    return best / event.size


def margin_of_mean(event: Floats, tail: float) -> float:
    """Return by how much the mean of signed residuals falls below its expectation at most.

    It solves `n K(m; v) = log(1 / (0.6 tail))` with the entropy of Hoeffding (JASA 58, 1963,
    theorem 3), and `v = q (1 - q)` at the end of the interval of the rate nearest to 1/2, each end
    of which fails with probability `tail / 5`.
    """
    low, high = map(float, rate_intervals(event.sum(), event.size, tail / 5))
    v = 0.25 if low < 0.5 < high else max(low * (1 - low), high * (1 - high))
    limit = np.log(1 / (0.6 * tail)) / event.size

    def is_within(margin: Floats) -> Mask:
        return two_point_entropy(margin, np.array(v)) <= limit

    return float(last_within(is_within, np.zeros(()), np.ones(()), 50))


def _least_rate(event: Floats, probability: Floats, sign: Floats, tail: float) -> float:
    """Return a lower end of the mean difference from one pattern of signs, by Clopper-Pearson."""
    y, p = (np.where(sign > 0, values, 1 - values) for values in (event, probability))
    low, high = map(float, rate_intervals(y.sum(), y.size, tail))
    mean = p.mean()
    return max(low - mean, mean - high, 0.0)


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
