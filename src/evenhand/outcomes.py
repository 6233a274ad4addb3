"""Outcomes of people, with what is known of them, checked once."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand._format import OneLine, number_in_full
from evenhand._validate import (
    MILD_ATOM,
    Floats,
    InputError,
    Ints,
    Mask,
    as_floats,
    bad_input,
    check_finite,
    check_horizon,
    check_number,
    check_rows,
    check_weights,
    largest_atom,
    named,
    refuse_entry,
)
from evenhand.draws import check_person_labels
from evenhand.tables import as_numbers, dates, numbers, parse_numbers, refuse_other_index

__all__ = ["Rounding", "rounding_step"]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Outcomes(OneLine):
    """Outcomes of people, with the event, follow-up, weight and person of each; checked once.

    Every function that takes outcomes `y` takes an array, or `Outcomes` with what else is known.
    With `event`, outcomes are times that may be cut off. With a horizon the outcome is then
    `min(T, horizon)`: who is seen without the event until then is known to have the outcome
    `horizon`, and only who is lost before it is not known (outcomes: 5).

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcomes; with `event`, times of the event, or of the last observation without it, at least
        0.
    event : array-like of shape (n,), optional
        1 or True where the event was observed, 0 or False where the time is cut off.
    horizon : float, optional
        Time up to which outcomes are followed, > 0, in units of `y`.
    entered : array-like of shape (n,), optional
        When each person entered, on one calendar: numbers in units of `y`, or dates if `y` is in
        days. Follow-up ends at the latest `entered + y`. Needs a horizon.
    weight : array-like of shape (n,), optional
        Sampling weights of the rows, inverse to the probability that a row was sampled, whatever
        that depends on; at least 0 and not all 0.
    largest_weight : float, optional
        Largest weight that any person could have had by the design of the sample, in the units of
        `weight`; not the largest one observed. With it, certificates and searches use a random part
        of the rows that needs no weights: each with probability `weight / largest_weight`
        (method: 12).
    person : array-like of shape (n,), optional
        Label of the person of each row. Where a plain sample is needed, one row per person, chosen
        at random, is used.

    Attributes
    ----------
    value : ndarray of shape (n,)
        What forecasts are compared with: `y`, cut at the horizon.
    happened : ndarray of bool, shape (n,)
        Whether the outcome was observed, by the horizon.
    given : array-like or None
        `y` as it was given, with its name and index; None for some of the people.

    Raises
    ------
    InputError
        If an input is invalid, no event was observed, or weights leave out the people whose times
        are cut off.

    Examples
    --------
    >>> times = Outcomes([2.0, 5.0, 9.0], event=[1, 0, 1], horizon=6)
    >>> times.value, times.happened, times.is_lost
    (array([2., 5., 6.]), array([ True, False, False]), array([False,  True, False]))
    """

    y: Floats
    event: Mask | None
    horizon: float | None
    entered: Floats | None
    weight: Floats | None
    largest_weight: float | None
    person: Ints | None
    value: Floats = field(init=False)
    happened: Mask = field(init=False)
    given: Any = field(init=False)

    def __init__(
        self,
        y: ArrayLike,
        event: ArrayLike | None = None,
        horizon: float | None = None,
        entered: Any = None,
        weight: ArrayLike | None = None,
        largest_weight: float | None = None,
        person: ArrayLike | None = None,
    ) -> None:
        if y is None:
            raise InputError("y is missing: it contains the outcomes; pass y=")
        time = check_finite("y", y) if event is None else _times(y)
        # the fields of a frozen dataclass cannot be assigned
        self.__dict__.update(
            y=time,
            event=None if event is None else _events(event, time.size),
            horizon=None if horizon is None else check_horizon(horizon),
            entered=None if entered is None else _entered(entered, time.size),
            weight=weight,
            largest_weight=largest_weight,
            person=None if person is None else check_person_labels(person, time.size),
            value=time,
            happened=np.ones(time.size, dtype=bool),
            given=y,
        )
        self._follow()
        self._weigh()

    def _follow(self) -> None:
        """Cut times at the horizon."""
        time, tau = self.y, self.horizon
        if self.event is None:
            for name in ("horizon", "entered"):
                if self.__dict__[name] is not None:
                    raise InputError(
                        f"{named(name)} is given without {named('event')}: it is for times that may"
                        " be cut off; give both, with 1 where the event was observed, 0 where the"
                        " time is cut off"
                    )
            return
        if self.entered is not None and tau is None:
            raise InputError(
                f"{named('entered')} is given without {named('horizon')}: it selects the people who"
                " entered at least a horizon before the end of follow-up; give both"
            )
        seen = self.event if tau is None else self.event & (time <= tau)
        if not seen.any():
            before = "" if tau is None else f" by the horizon {number_in_full(tau)}"
            remedy = (
                "check that 1 stands for an observed event"
                if not self.event.any()
                else "give a later horizon"
            )
            raise InputError(f"no event was observed{before}, so nothing can be compared; {remedy}")
        value = time
        if tau is not None:
            if time.max() < tau and not seen.all():
                rule = f"be at most {number_in_full(time.max())}, the longest time"
                remedy = "nobody was followed for longer; check that y and horizon have one unit"
                raise bad_input("horizon", rule, number_in_full(tau), remedy)
            # the outcome `horizon` is that of people without an event until then
            value = np.minimum(time, np.where(seen, np.nextafter(tau, 0.0), tau))
        self.__dict__.update(value=value, happened=seen)

    def _weigh(self) -> None:
        """Check the weights, which are not scaled: some models depend on their sum."""
        largest = self.largest_weight
        if self.weight is None:
            if largest is not None:
                raise InputError(
                    f"{named('largest_weight')} needs the weights of the rows; give"
                    f" {named('weight')} as well"
                )
            return
        check_weights(self.weight, self.y.size, "weight")
        weight = np.asarray(self.weight, dtype=float)
        if largest is not None:
            largest = check_number("largest_weight", largest, 0)
        self.__dict__.update(weight=weight, largest_weight=largest)
        if self.is_lost.any() and not weight[self.is_lost].any():
            raise InputError(
                "weight is 0 for each person whose time is cut off, which leaves them out: without"
                " them, times seem shorter than they are, and right forecasts seem wrong; weight"
                " people whatever happened to them"
            )
        if largest is not None and largest < weight.max():
            row = weight.argmax()
            rule = f"be at least the largest weight ({weight[row]:g} in row {row})"
            remedy = "give the largest weight that the design of the sample allows"
            raise bad_input("largest_weight", rule, largest, remedy)

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.y.size

    @property
    def are_times(self) -> bool:
        """Whether outcomes are times that may be cut off."""
        return self.event is not None

    @property
    def are_plain(self) -> bool:
        """Whether rows are a plain sample: all weights are equal, and the design has no others.

        Examples
        --------
        >>> ones = np.ones(3)
        >>> Outcomes(ones, weight=ones).are_plain
        True
        >>> Outcomes(ones, weight=ones, largest_weight=10.0).are_plain
        False
        """
        weight, largest = self.weight, self.largest_weight
        if weight is None:
            return True
        are_all = largest is None or largest <= weight[0] * (1 + 1e-9)
        return bool(are_all and (weight == weight[0]).all())

    @property
    def has_reached(self) -> Mask:
        """Who was seen without the event until the horizon, shape (n,)."""
        if self.horizon is None:
            return np.zeros(self.n_samples, dtype=bool)
        return ~self.happened & (self.value >= self.horizon)

    @property
    def is_lost(self) -> Mask:
        """Whose outcome is not known: no event, and not seen until a horizon; shape (n,)."""
        return ~self.happened & ~self.has_reached

    @property
    def is_followed(self) -> Mask:
        """Who entered at least a horizon before the end of follow-up, whatever happened; (n,).

        Everybody if the times of entry are unknown. Of these people only those are lost who left:
        nobody is cut off by the end of the study (outcomes: 5, administrative censoring).
        """
        if self.entered is None or self.horizon is None:
            return np.ones(self.n_samples, dtype=bool)
        end = (self.entered + self.y).max()
        # dates and times in units such as years are rounded
        return self.entered + self.horizon <= end + 1e-9 * max(abs(end), self.horizon)

    def take(self, rows: Any) -> Outcomes:
        """Return the outcomes of some people, by a mask, a slice or row numbers."""
        some = copy(self)
        each = ("y", "event", "entered", "weight", "person", "value", "happened")
        known = {name: one[rows] for name in each if (one := self.__dict__[name]) is not None}
        some.__dict__.update(known, given=None)
        return some

    def without_weights(self) -> Outcomes:
        """Return the outcomes of people who all count once."""
        some = copy(self)
        some.__dict__.update(weight=None, largest_weight=None)
        return some

    def completed(self, value: Floats, happened: Mask) -> Outcomes:
        """Return other outcomes of the same people, cut off at the same horizon; not checked."""
        some = copy(self)
        some.__dict__.update(y=value, event=happened, value=value, happened=happened)
        return some


def thinned_rows(weight: Floats, largest: float, random: np.random.Generator) -> tuple[Ints, int]:
    """Keep rows with probability `weight / largest`; return them and the seed (method: 12).

    If rows were drawn independently of each other with these weights, the kept ones are a plain
    sample of the population.
    """
    seed = int(random.integers(2**32))
    kept = np.random.default_rng(seed).random(weight.size) < weight / largest
    return np.flatnonzero(kept), seed


def as_outcomes(y: ArrayLike | Outcomes, X: Any = None) -> Outcomes:
    """Return `Outcomes` unchanged, or check an array of outcomes, of which `X` has the rows."""
    found = y if isinstance(y, Outcomes) else Outcomes(y)
    refuse_other_index("y", found.given, X)
    return found


def _times(y: ArrayLike) -> Floats:
    time = as_floats("y", y)
    remedy = (
        "where no event was observed, give the time at which the person was last seen: without"
        " these people, times would seem shorter than they are"
    )
    refuse_entry("y", time, np.isnan(time), "be a time", remedy)
    refuse_entry("y", check_finite("y", time), time < 0, "be at least 0, as it is a time")
    return time


def _events(event: ArrayLike, n: int) -> Mask:
    values = check_rows("event", event, n)
    remedy = "give 1 where the event was observed, 0 where the time is cut off"
    refuse_entry("event", values, (values != 0) & (values != 1), "be 0 or 1", remedy)
    return values == 1


def _entered(entered: Any, n: int) -> Floats:
    values = np.asarray(entered)
    if values.shape != (n,):
        got = f"shape {values.shape}"
        raise bad_input("entered", f"have shape ({n},), one value per time", got)
    if values.dtype.kind not in "OUM":
        return check_finite("entered", values)
    column, place = pd.Series(values), named("entered")
    if 2 * parse_numbers(column)[1].sum() < column.count():
        return check_finite("entered", numbers(column, place))
    found = as_numbers(dates(column, place), "date")
    refuse_entry("entered", found, np.isnan(found), "be a date", "fill it")
    return found - found.min()


# --- grids and cells of rounded outcomes (outcomes: 4.3)

REPEATED = 0.1
"""Share of repeated outcomes above which few distinct values, or a very fine grid, are a grid."""

LEAST_VALUES = 10
MOST_CELLS = 1e5
"""Least distinct outcomes, and most cells between the smallest and the largest, of a grid without
repeated outcomes: numbers that are not rounded fulfil the rule with a probability below 1e-9."""

TOLERANCE = 1e-3
"""Largest deviation from the grid in steps; errors of printed and converted numbers are smaller."""

CLIPPED = 0.01
"""Share of outcomes above which the end of a grid is a bound of the outcome."""


def rounding_step(y: ArrayLike) -> float | None:
    """Return the step of the grid of rounded outcomes; None if the outcomes look continuous.

    The step is the largest number of which all differences of outcomes are multiples. Outcomes are
    considered rounded if the step is the smallest difference and at least a tenth of the outcomes
    are repeated, or if there are at least 10 distinct ones and the step is at least 1e-5 of their
    range. The second rule does not depend on the number of rows, so that folds and whole tables
    have the same grid, unless all outcomes of a fold are multiples of a larger step.

    Parameters
    ----------
    y : array-like of shape (n,)
        Outcomes.

    Returns
    -------
    float or None
        Step in units of `y`, to ten digits.

    Examples
    --------
    >>> rounding_step([0.1, 0.3, 0.3, 0.5])
    0.2
    >>> rounding_step([1499, 1795, 1595, 1849, 3295, 3695, 1720, 1995, 2225, 2575])
    1.0
    """
    outcomes = check_finite("y", y)
    values = np.unique(outcomes)
    # 0.3 and 0.1 + 0.2 are the same grid value
    values = values[np.diff(values, prepend=-np.inf) > 1e-9 * (values[-1] - values[0])]
    if values.size < 2:
        return None
    gaps = np.diff(values)
    reach = float(values[-1] - values[0])
    step = float(gaps.min())
    off = np.abs(gaps - step * np.round(gaps / step))
    if values.size > (1 - REPEATED) * outcomes.size or off.max() > TOLERANCE * step:
        step = _common_divisor(gaps, reach / MOST_CELLS) if values.size >= LEAST_VALUES else 0.0
    if step == 0:
        return None
    # the smallest gap has a rounding error of its own: divide the whole range instead
    step = reach / float(np.round(gaps / step).sum())
    return float(np.format_float_positional(step, precision=10, fractional=False))


def _common_divisor(gaps: Floats, least: float) -> float:
    """Return the largest step that divides all gaps (Euclid); 0 if it is smaller than `least`."""
    step = float(gaps.min())
    while step >= least:
        rest = np.abs(gaps - step * np.round(gaps / step))
        rest = rest[rest > TOLERANCE * step]
        if not rest.size:
            return step
        # a remainder is at most half a step: the loop takes at most 17 rounds
        step = float(rest.min())
    return 0.0


OPEN = (-np.inf, np.inf)
"""Bounds of outcomes that are no atoms: no cell is open."""


@dataclass(frozen=True)
class Rounding:
    """Rounding cells of outcomes, over whose probability PITs are spread.

    Many rows may share an outcome although the forecast is continuous. Their PITs would coincide
    under the true distribution of the unrounded outcome, and that distribution would seem
    miscalibrated. An outcome on a grid has the cell `y -+ step / 2`. The cell of an atom at the
    smallest or largest outcome is open: that outcome stands for all values beyond it.

    Parameters
    ----------
    step : float or None
        Distance of neighbouring grid values, in units of the outcome; None for outcomes off a grid.
    span : tuple of float
        Bounds of the outcome that are atoms, whose cells are open; infinite for an end that is
        none.

    Examples
    --------
    A fifth of the outcomes are censored at 3, the others are continuous:

    >>> y = np.minimum(np.random.default_rng(0).exponential(2.0, size=500), 3.0)
    >>> rounding = Rounding.of(y)
    >>> rounding
    Rounding(step=None, span=(-inf, 3.0))
    >>> rounding.ends(np.array([1.5, 3.0]))
    (array([1.5, 3. ]), array([1.5, inf]))
    """

    step: float | None = None
    span: tuple[float, float] = OPEN

    def __post_init__(self) -> None:
        if self.step is not None and not self.step > 0:
            raise bad_input("step", "be positive", self.step)

    @classmethod
    def of(cls, outcomes: Floats) -> Rounding:
        """Return the cells of outcomes; no cells unless more than 2% of the rows share one."""
        # on a fine grid spreading would add a random number to each PIT without any benefit; a
        # single row is more than 2% of fewer than 50 rows
        least = max(MILD_ATOM * outcomes.size, 1.5)
        if largest_atom(outcomes)[1] * outcomes.size <= least:
            return cls()
        return cls(rounding_step(outcomes), _bounds(outcomes, least))

    @classmethod
    def grid(cls, y: ArrayLike) -> Rounding:
        """Return the grid that outcomes lie on, for scores; no cells if they look continuous.

        An end is a bound if over 1% of the outcomes, and at least three, are equal to it. A cell
        that is open at any other extreme outcome would add the probability of the whole tail to it,
        so that the score on a fine grid would not be the log score.

        Examples
        --------
        Counts have a bound at 0, where outcomes pile up:

        >>> Rounding.grid(np.random.default_rng(0).poisson(2.0, size=1000))
        Rounding(step=1.0, span=(0.0, inf))
        """
        step = rounding_step(y)
        if step is None:
            return cls()
        outcomes = np.asarray(y, dtype=float)
        # in a fold of few rows, two rows may share an extreme outcome by chance
        return cls(step, _bounds(outcomes, max(CLIPPED * outcomes.size, 2)))

    @property
    def is_used(self) -> bool:
        """Whether any outcome has a cell."""
        return self.step is not None or self.span != OPEN

    def ends(self, outcomes: Floats) -> tuple[Floats, Floats]:
        """Return both ends of each outcome's cell; the outcome itself where it has no cell."""
        half = 0.0 if self.step is None else self.step / 2
        low = np.where(outcomes <= self.span[0], -np.inf, outcomes - half)
        return low, np.where(outcomes >= self.span[1], np.inf, outcomes + half)

    def rounded(self, values: Floats, origin: float) -> Floats:
        """Return the outcomes that would be observed instead of continuous values.

        Parameters
        ----------
        values : ndarray
            Values of a continuous distribution.
        origin : float
            A value on the grid.
        """
        step = self.step
        on_grid = values if step is None else origin + step * np.round((values - origin) / step)
        return np.clip(on_grid, *self.span)


def _bounds(outcomes: Floats, least: float) -> tuple[float, float]:
    """Return the extreme outcomes that more than `least` rows have; infinite for others."""
    low, high = float(outcomes.min()), float(outcomes.max())
    return (
        low if (outcomes == low).sum() > least else -np.inf,
        high if (outcomes == high).sum() > least else np.inf,
    )
