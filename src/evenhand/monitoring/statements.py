"""Statements that a watch tests, and its estimates: sums that are exact in any order of rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, ClassVar, Literal, NamedTuple, Self, TypeVar

import numpy as np

from evenhand._validate import Floats, InputError, Ints, Mask, Pair, bad_input
from evenhand.calibration import binned_error, divided, middle_distances
from evenhand.certificates import Envelope, Promise
from evenhand.draws import nodes
from evenhand.links import Link
from evenhand.monitoring.e_processes import Direction, Statement, Stored
from evenhand.monitoring.rows import Rows, refuse_missing

# --- witnesses of miscalibration: functions whose mean under a calibrated forecast is 0

Kind = Literal["pit", "event"]
"""What errors are measured on: served PITs, or outcome minus probability for 0/1 outcomes."""

N_DRAWS = 64
"""Draws over which witnesses are averaged: their means are exact to 0.0001."""

LEAST = np.array([-0.5, -0.5, -0.25, -0.25])
"""Least values of `cell_witnesses`."""

PIT_DIRECTIONS: tuple[Direction, ...] = ("higher", "lower", "narrow", "wide")
"""What positive means of `cell_witnesses` of PITs mean."""


def cell_witnesses(low: Floats, high: Floats) -> Floats:
    """Return `c - 1/2`, `1/2 - c`, `|c - 1/2| - 1/4` and `1/4 - |c - 1/2|`, averaged over cells.

    For a function f with slopes between -1 and 1, `E f(W) - integral of f` is at most the W1
    distance of W to the uniform distribution. So the mean of a witness exceeds a tolerance only if
    the error does. The shape is (n, 4).
    """
    shift = (low + high) / 2 - 0.5
    spread = middle_distances(low, high) - 0.25
    return np.stack((shift, -shift, spread, -spread), axis=-1)


def averaged_witnesses(link: Link, low: Floats, high: Floats) -> Floats:
    """Return the means over draws of the witnesses of served PITs under a link, shape (n, 4).

    `low` and `high` are the ends of the PIT cells of the deterministic forecaster. In a group the
    means are the same as those at the draws that were served, since draws are independent of
    everything else, and have a smaller variance. They do not depend on the draws, so that draws
    which are not fair, or return with the same person, do not matter here.
    """
    r = nodes(N_DRAWS)
    first = link.ppf(low[:, None], r)
    last = first if np.array_equal(low, high) else link.ppf(high[:, None], r)
    at_draws = cell_witnesses(first.ravel(), last.ravel()).T.reshape(-1, low.size, N_DRAWS)
    return np.ascontiguousarray(at_draws.mean(axis=-1).T)


def _pit_witnesses(rows: Rows) -> Floats:
    """Return the witnesses of served PITs, averaged over draws where that is possible."""
    # of amounts with an atom the link randomizes a part alone
    if rows.link is None or rows.base is None or rows.promised is not None:
        return cell_witnesses(*rows.pit)
    low, high = (np.where(rows.known, end, 0.5) for end in rows.base)
    return averaged_witnesses(rows.link, low, high)


def _event_witnesses(rows: Rows) -> Floats:
    excess = excess_of(rows)
    return np.stack((excess, -excess), axis=-1)


def excess_of(rows: Rows) -> Floats:
    """Return outcome minus probability; InputError for rows without it."""
    what = "excess, but this watch began with 0/1 outcomes"
    return needed(rows.excess, what, "give outcome and probability, or begin another watch")


def _filled(rows: Rows, values: Floats, low: Floats) -> Floats:
    """Return values (n, J) with the least where the outcome is missing.

    Valid whatever outcomes are missing, even if that depends on the outcome.
    """
    return np.where(rows.known[:, None], values, low)


def calibrated(kind: Kind, tolerance: float) -> Statement:
    """Return that an error is at most the tolerance.

    The W1 distance of served PITs to uniform, or the bias of 0/1 forecasts.
    """
    directions, low, values = ERRORS[kind]
    bound = np.full(low.shape, tolerance)
    return Statement(directions, low, bound, lambda rows: _filled(rows, values(rows), low))


ERRORS: dict[Kind, tuple[tuple[Direction, ...], Floats, Callable[[Rows], Floats]]] = {
    "pit": (PIT_DIRECTIONS, LEAST, _pit_witnesses),
    "event": (("higher", "lower"), np.full(2, -1.0), _event_witnesses),
}
"""Directions, least values and values of what errors are measured on."""


FAIR_DRAWS = Statement(
    ("higher", "lower", "extreme", "central"),
    LEAST,
    np.zeros(4),
    lambda rows: cell_witnesses(rows.r, rows.r),  # type: ignore[arg-type]
)
"""Draws are uniform given the past. The hypothesis is exact, as draws are made by a machine."""


# --- the promise for every group of a size

SIDES: dict[str, tuple[Direction, ...]] = {
    "mean_pit": ("higher", "lower"),
    "gap": ("gap",),
    "bias": ("higher", "lower"),
}
"""Sides of each statistic: outcomes higher or lower than forecast, or PITs far from their draws."""

RANGES = {"mean_pit": (-0.5, 0.5), "gap": (0.0, 1.0), "bias": (-1.0, 1.0)}
"""Least and largest value of each statistic."""

Found = TypeVar("Found")


def promise_values(promise: Promise, rows: Rows) -> tuple[Floats, Mask]:
    """Return the values of n rows whose mean over every group of the size is at most the target.

    In every group S, whatever the link, the group error is at least `|E_S mu(U) - 1/2|`, `mu(u)`
    the mean served PIT at the base PIT u: served PITs have that mean, and W1 is at least the
    distance of means. The mean of the absolute gap is at least the group error.

    Values are those of the first side, of which the other one has the negatives, and NaN where the
    outcome is missing. The mask contains the rows that the promise covers, or may cover if their
    outcome is missing.
    """
    if promise.statistic == "mean_pit":
        assert promise.link is not None
        if rows.link not in (None, promise.link):
            raise InputError(
                f"rows have the link {rows.link}, but the promise is about {promise.link}; give the"
                " certificate of the forecasts that were served"
            )
        if promise.atom is not None and rows.promised is None:
            raise InputError(
                f"the promise is about outcomes other than {promise.atom:g}, but rows do not have"
                " which outcomes these are; read them from a log, or make Rows with promised, and"
                " with base of the part beside this atom"
            )
        what = "base PITs, which the promise is about"
        base = needed(rows.base, what, "log the link of the forecasts")
        low, high = (np.where(rows.known, end, 0.5) for end in base)
        # the mean over draws and positions in the cell
        value = (promise.link.mean_pit(low) + promise.link.mean_pit(high)) / 2 - 0.5
    elif promise.statistic == "gap":
        what = "draws, which the promise is about"
        draws = needed(rows.r, what, "log the draws of the forecasts")
        why = ": the promise is about draws; remove the forecasts without one"
        refuse_missing("r", rows.known & np.isnan(draws), why)
        value = mean_gap(rows.pit, draws)
    else:
        what = "outcomes minus probabilities, which the promise is about"
        value = needed(rows.excess, what, "watch forecasts of 0/1 outcomes")
    return np.where(rows.known, value, np.nan), _covered(rows)


def _covered(rows: Rows) -> Mask:
    return np.full(len(rows), True) if rows.promised is None else rows.promised | ~rows.known


def mean_gap(pit: Pair, r: Floats) -> Floats:
    """Return the mean of `|PIT - r|` over positions in the cell, (n,)."""
    low, high = pit
    inside = np.clip(r, low, high)
    parts = (inside - low) ** 2 + (high - inside) ** 2
    return np.abs(r - inside) + divided(parts, 2 * (high - low))


def needed(found: Found | None, what: str, remedy: str) -> Found:
    """Return a column of rows; InputError if there is none."""
    if found is None:
        raise InputError(f"rows have no {what}; {remedy}")
    return found


N_CELLS = 32
"""Number of cells; 64 detect a change hardly earlier."""

LAST_CELL = 0.02
"""Width of the cell next to the target, as a share of the distance from the least value to it."""


class QuantileCells(NamedTuple):
    """Cells of quantiles q from the least value to the target, and the values that test them.

    The largest mean of a group of a share `mass` of people is `CVaR(x) = min over q of q + E(x -
    q)_+ / mass` (Rockafellar & Uryasev 2000). It is at most `target` if and only if there is a q
    with `E z_q <= 1`, `z_q = (x - q)_+ / (mass (target - q))`. In q, `z_q` falls where `x < target`
    and rises where `x > target`. Its minimum over a cell therefore lies at one of the two ends, and
    has a mean of at most 1 if any q of the cell serves.

    Parameters
    ----------
    target : float
        Promised largest mean.
    mass : float
        Share of people.
    left, right : ndarray of shape (n_cells,)
        Ends of the cells.
    """

    target: float
    mass: float
    left: Floats
    right: Floats

    @classmethod
    def of(cls, target: float, mass: float, low: float) -> Self:
        """Make the cells for values of at least `low`, which is below the target."""
        if mass == 1:
            # the mean of everybody: q = low is the weakest condition
            return cls(target, mass, np.array([low]), np.array([low]))
        # the loss of power by a cell depends on its width over the distance to the target, so the
        # widths fall in geometric steps. A q below `low` serves only if `low` does
        edges = target - (target - low) * np.geomspace(1.0, LAST_CELL, N_CELLS)
        edges[0] = low
        return cls(target, mass, edges, np.append(edges[1:], target))

    def ratios(self, x: Floats) -> Floats:
        """Return the least `z_q` over each cell, shape (..., n_cells)."""
        value = x[..., None]
        at_left = np.maximum(value - self.left, 0.0) / (self.target - self.left)
        # q = target serves if no value exceeds it, and then needs no bet
        distance = self.target - self.right
        above = np.maximum(value - self.right, 0.0)
        least = np.where(value > self.target, at_left, divided(above, distance))
        return np.ascontiguousarray(least / self.mass)


def kept_promise(promise: Promise) -> list[Statement]:
    """Return that in every group of a size a mean is at most a target, one statement per side.

    Group errors are not observed, but the mean of a value x per person (`promise_values`) is at
    most the group error in every group. The largest mean over groups of a share of at least `mass`
    is at most `target` if and only if there is a quantile q with `E z_q <= 1` (`QuantileCells`). So
    the null hypothesis is a union over q, and the minimum over cells of q of e-processes tests it.

    *What is a broken promise.* The null hypothesis is that one q serves all rows: each has, given
    the rows before it, `E z_q <= 1`. Then, in every stretch of time, all groups of a share of at
    least `mass` of the people in it have a mean of at most the target. The distributions of rows
    may change from period to period, as long as one q serves them all. What the null hypothesis
    does not include, and an alarm may therefore report:

    - a period in which the promise does not hold for the people of that period, even if it holds
      for the people of the year, such as days with shocks that are common to all outcomes
      (`benchmarks/watch_delays.py` has examples);
    - periods of which each keeps the promise for its own people, but with different q. A group may
      then consist of more people of some periods than of others, and the largest mean over such
      groups exceeds those within the periods: the certificate promised it for them, too.
    """
    sides, least = SIDES[promise.statistic], RANGES[promise.statistic][0]
    targets = targets_of(promise)
    if not (len(targets) == len(sides) and min(targets) > least and 0 < promise.mass <= 1):
        rule = f"have a target above {least:g} and a mass above 0 and at most 1"
        raise bad_input("promise", rule, promise)
    return [_kept_side(promise, side, target) for side, target in zip(sides, targets, strict=True)]


def targets_of(promise: Promise) -> tuple[float, ...]:
    """Return the bound of each side of a promise."""
    return promise.targets or (promise.target,) * len(SIDES[promise.statistic])


def _kept_side(promise: Promise, side: Direction, target: float) -> Statement:
    least = RANGES[promise.statistic][0]
    cells = QuantileCells.of(target, promise.mass, least)

    def values(rows: Rows) -> Floats:
        value, covered = promise_values(promise, rows)
        ratios = cells.ratios(np.where(rows.known, -value if side == "lower" else value, least))
        return np.where(covered[:, None], ratios, np.nan)

    low = np.zeros(cells.left.size)
    return Statement((side,) * low.size, low, low + 1, values, "min")


# --- bounds of a certificate on base PITs, which may be left without a broken promise


def kept_envelope(envelope: Envelope) -> list[Statement]:
    """Return that base PITs lie within certified bounds, one statement per side that has any.

    A certificate bounds `P(U <= t)` and `P(U >= 1 - t)` at several t. People outside these bounds
    are no broken promise, because the bound of group errors may still hold, but the forecaster is
    not what was certified. Missing outcomes count as outside of the tails.
    """
    sides = _within("higher", envelope.high), _within("lower", envelope.low)
    return [side for side in sides if side.directions]


def _within(side: Direction, bounds: tuple[tuple[float, float], ...]) -> Statement:
    tails, bound = np.array(bounds).reshape(-1, 2).T

    def values(rows: Rows) -> Floats:
        assert rows.base is not None  # the promise beside the envelope needs them
        low, high = (np.where(rows.known, end, 1.0)[:, None] for end in rows.base)
        low, width = (low if side == "lower" else 1 - high), high - low
        # of each cell at or below each tail
        share = np.divide(tails - low, width, out=(tails >= low) * 1.0, where=width > 0)
        share = _filled(rows, np.clip(share, 0.0, 1.0), np.zeros(tails.size))
        return np.where(_covered(rows)[:, None], share, np.nan)

    return Statement((side,) * bound.size, np.zeros(bound.size), bound, values)


# --- sums of PITs, biases and draws, in parts of a row

BINS = 100
"""Number of equal bins of [0, 1] for PITs: estimates of errors are exact to half a bin, 0.005."""

UNIT = 1 << 20
"""Parts of a row that are counted: sums of whole numbers do not depend on the order of rows."""

GENERATION = 1 << 16
"""Draws are remembered to recognize repeated ones for at least so many later draws."""


class Sums(Stored):
    """Sums of the rows of G groups, in parts of a row that are whole numbers."""

    width: ClassVar[int]
    counts: Ints

    def __init__(self, n_groups: int = 0) -> None:
        self.counts = np.zeros((n_groups, self.width), dtype=np.int64)

    def extend(self, n_groups: int) -> None:
        """Add groups without rows, up to a number of groups."""
        self.counts = np.pad(self.counts, ((0, n_groups - len(self.counts)), (0, 0)))

    def _add(self, parts: Ints, members: Mask) -> None:
        # in floating point the product is fast, and exact up to 2^53: 2^33 rows
        total = members.T.astype(float) @ parts.astype(float)
        self.counts = self.counts + total.astype(np.int64)


class PITSums(Sums):
    """PITs of groups in bins, for the estimates of their errors.

    Each PIT cell is spread over its bins; a row counts as 2^20 parts, which makes sums exact.
    """

    width = BINS

    def add(self, cells: Floats, members: Mask) -> None:
        """Add PIT cells, (2, n), of rows whose outcome is known; `members` has shape (n, G)."""
        low, high = cells
        edges = np.arange(BINS + 1) / BINS
        width = np.maximum(high - low, 1e-12)[:, None]
        below = np.clip((edges - low[:, None]) / width, 0.0, 1.0)
        below[:, -1] = 1.0
        upto = np.rint(below * UNIT).astype(np.int64)
        self._add(upto[:, 1:] - upto[:, :-1], members)

    def n_rows(self, group: int) -> int:
        """Return the number of rows of a group with a known outcome."""
        return round(int(self.counts[group].sum()) / UNIT)

    def error(self, group: int) -> float | None:
        """Return the W1 distance of a group's PITs to uniform; None if it has no rows."""
        # sums of parts of 2^20 would exceed whole numbers in floating point from 10^7 rows on
        return binned_error(self.counts[group] >> 10) if self.counts[group].any() else None

    def direction(self, group: int) -> Direction | None:
        """Return in which way a group's PITs deviate most; None if they do not."""
        middle = nodes(BINS)[0]
        shares = self.counts[group] / max(self.counts[group].sum(), 1)
        means = shares @ cell_witnesses(middle, middle)
        return PIT_DIRECTIONS[means.argmax()] if means.max() > 1e-9 else None


class BiasSums(Sums):
    """Sums of outcome minus probability of groups, for 0/1 outcomes."""

    width = 2

    def add(self, excess: Floats, members: Mask) -> None:
        """Add rows whose outcome is known; `members` has shape (n, G)."""
        parts = np.rint(excess * UNIT).astype(np.int64)
        self._add(np.stack((np.ones_like(parts), parts), axis=-1), members)

    def n_rows(self, group: int) -> int:
        """Return the number of rows of a group with a known outcome."""
        return int(self.counts[group, 0])

    def error(self, group: int) -> float | None:
        """Return the absolute mean of outcome minus probability; None if there are no rows."""
        n, total = (int(one) for one in self.counts[group])
        return abs(total) / UNIT / n if n else None

    def direction(self, group: int) -> Direction | None:
        """Return whether outcomes are higher or lower than predicted; None if neither."""
        total = int(self.counts[group, 1])
        return ("higher" if total > 0 else "lower") if total else None


class SeenDraws(Stored):
    """Draws that were seen before: a person's draw in one context is evidence only once.

    At least the last 65,536 draws are remembered, and fewer than twice as many. Fresh draws of 52
    bits practically never coincide.

    Examples
    --------
    >>> seen = SeenDraws()
    >>> seen.is_new(np.array([0.1, 0.2, 0.1, np.nan])), seen.n_repeated
    (array([ True,  True, False, False]), 1)
    """

    def __init__(self) -> None:
        self.n_repeated = 0
        self._draws: dict[float, None] = {}

    def is_new(self, r: Floats) -> Mask:
        """Return which draws were not seen before, and remember them; NaN is no draw."""
        new = ~np.isnan(r)
        for row in np.flatnonzero(new).tolist():
            draw = float(r[row])
            if draw in self._draws:
                new[row] = False
                self.n_repeated += 1
                continue
            # one row after another, so that splits into calls do not matter
            self._draws[draw] = None
            if len(self._draws) == 2 * GENERATION:
                self._draws = dict.fromkeys(islice(self._draws, GENERATION, None))
        return new

    def to_state(self) -> dict[str, Any]:
        """Return the draws as JSON values."""
        return {"n_repeated": self.n_repeated, "draws": [*self._draws]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the output of `to_state`."""
        self.n_repeated = int(state["n_repeated"])
        self._draws = dict.fromkeys(map(float, state["draws"]))


# --- values of a promise in bins, for estimates of recent periods and of all

N_BINS = 1000
"""Number of bins: values between -1/2 and 1/2 are known to 0.0005."""


class ValueCounts(Stored):
    """Counts of the values of a promise, in blocks of periods that are longer if they are older.

    There are at most two blocks of the same number of periods, a power of two. The state therefore
    grows as the logarithm of the number of periods. The counts from a period on are known for a
    start that is at most about half of the time later. Counts, unlike sums of floats, do not depend
    on how rows are split into calls.

    Parameters
    ----------
    promise : Promise
        The promise, whose statistic has limits.

    Attributes
    ----------
    starts : list of int
        Number of the first period of each block, from 1.
    counts : list of ndarray of shape (N_BINS + 1,)
        Numbers of values in equal bins, increasing, and last of missing values.

    Examples
    --------
    >>> found = ValueCounts(Promise("gap", mass=0.2, target=0.3, confidence=0.95))
    >>> for _ in range(8):
    ...     found.begin_period()
    ...     found.add(np.array([0.5, np.nan]))
    >>> found.starts
    [1, 5, 7, 8]
    >>> recent = found.estimates(since=4)
    >>> recent["since"], recent["n"], recent["n_missing"]
    (5, 4, 4)
    """

    period: int
    starts: list[int]
    counts: list[Ints]

    def __init__(self, promise: Promise) -> None:
        self._promise = promise
        self.period = 0
        self.starts = []
        self.counts = []

    def begin_period(self) -> None:
        """Begin the next period."""
        self.period += 1
        self.starts.append(self.period)
        self.counts.append(np.zeros(N_BINS + 1, dtype=int))
        size = 1
        # of three blocks of one size the two older ones become one of twice the size
        while len(alike := np.flatnonzero(np.diff([*self.starts, self.period + 1]) == size)) > 2:
            first = alike[0]
            self.starts.pop(first + 1)
            self.counts[first] = self.counts[first] + self.counts.pop(first + 1)
            size *= 2

    def add(self, values: Floats) -> None:
        """Add values, shape (n,), of the current period; NaN where the outcome is missing."""
        low, high = RANGES[self._promise.statistic]
        known = values[~np.isnan(values)]
        bins = np.clip(((known - low) / (high - low) * N_BINS).astype(int), 0, N_BINS - 1)
        found = np.bincount(bins, minlength=N_BINS)
        self.counts[-1] = self.counts[-1] + np.append(found, values.size - known.size)

    def estimates(self, since: int = 1) -> dict[str, Any]:
        """Return the mean of the worst share from a period on, with limits for missing outcomes.

        An estimate is no test: it is that of the worst group, which is selected after seeing the
        outcomes, and after an alarm also that of a selected stretch of time.

        "estimate" is the largest mean, over both sides, of a group of the promised size, of the
        rows with an outcome, exact to 0.0005, or 0.001 for biases. If the sides have bounds of
        their own, all estimates are of the side that is nearest to, or furthest above, its bound.
        "best_case" and "worst_case" are the same with all missing outcomes at the least and at the
        largest values. "n" and "n_missing" count covered rows with and without an outcome. "since"
        is the first period of the rows, which may be later than asked for, as only recent periods
        are kept one by one.
        """
        blocks = [i for i, start in enumerate(self.starts) if start >= since]
        total = sum((self.counts[i] for i in blocks), np.zeros(N_BINS + 1, dtype=int))
        counts, n_missing = total[:-1], int(total[-1])
        sides = SIDES[self._promise.statistic]
        by_side = np.stack((counts, counts[::-1]))[: len(sides)]
        missing = np.zeros_like(counts)
        missing[0] = n_missing
        means, best, worst = (
            self._worst_means(some)
            for some in (by_side, by_side + missing, by_side + missing[::-1])
        )
        # all of one side if each has its own bound, as estimates are compared with that bound
        if self._promise.targets is not None:
            side = (means - np.array(targets_of(self._promise))).argmax()
            means, best, worst = (values[[side]] for values in (means, best, worst))
            sides = sides[side : side + 1]
        n = int(counts.sum())
        has_any = n + n_missing > 0
        return {
            "estimate": float(means.max()) if n else None,
            "best_case": float(best.max()) if has_any else None,
            "worst_case": float(worst.max()) if has_any else None,
            "direction": sides[means.argmax()] if n else None,
            "n": n,
            "n_missing": n_missing,
            "since": self.starts[blocks[0]] if blocks else since,
        }

    def _worst_means(self, counts: Ints) -> Floats:
        """Return the mean of the largest share `mass` of counted values, of each side."""
        low, high = RANGES[self._promise.statistic]
        middles = low + (np.arange(N_BINS) + 0.5) / N_BINS * (high - low)
        room = self._promise.mass * np.maximum(counts.sum(axis=-1, keepdims=True), 1)
        # the largest values first
        taken = np.diff(np.minimum(np.cumsum(counts[..., ::-1], axis=-1), room), prepend=0.0)
        return taken @ middles[::-1] / room[..., 0]
