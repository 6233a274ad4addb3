"""Times until an event, of which some are cut off before it (outcomes: 5)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from evenhand._format import number_in_full, one_line
from evenhand._validate import (
    Floats,
    InputError,
    Mask,
    as_floats,
    bad_input,
    check_finite,
    check_fraction,
    check_horizon,
)
from evenhand.calibration.errors import quantile_distance
from evenhand.tables import parse_numbers

DAY = np.timedelta64(1, "D")

ISO_DATES = "write dates as YYYY-MM-DD"
"""What to do with dates that are not read."""


@dataclass(frozen=True, eq=False, repr=False)
class CensoredTimes:
    """Times of people until an event, or until they were last seen without it.

    With a horizon the outcome is `min(T, horizon)`: who is seen without the event until then is
    known to have the outcome `horizon`, and only who is lost before it is not known.

    Parameters
    ----------
    time : ndarray of shape (n,)
        Time of the event, or time at which the person was last seen without it; at least 0, and
        at most the horizon.
    happened : ndarray of bool, shape (n,)
        Whether the event was observed, by the horizon.
    horizon : float or None
        Time up to which outcomes are followed, in units of `time`; None without one.
    entered : ndarray of shape (n,) or None
        When each person entered, in units of `time` from any origin; None if unknown.
    followed : ndarray of shape (n,)
        Time as it was given, before it was cut at the horizon.
    observed : ndarray of bool, shape (n,)
        Whether the event was observed, also after the horizon.

    See Also
    --------
    CensoredTimes.of : times from user input, with validation.

    Examples
    --------
    >>> times = CensoredTimes.of([2.0, 5.0, 9.0], [1, 0, 1], horizon=6)
    >>> times.time, times.happened, times.is_lost
    (array([2., 5., 6.]), array([ True, False, False]), array([False,  True, False]))
    """

    time: Floats
    happened: Mask
    horizon: float | None
    entered: Floats | None
    followed: Floats
    observed: Mask

    @classmethod
    def of(
        cls,
        y: ArrayLike,
        event: ArrayLike,
        horizon: float | None = None,
        entered: Any = None,
    ) -> Self:
        """Check times, events, the horizon and dates of entry.

        Parameters
        ----------
        y : array-like of shape (n,)
            Time of the event, or of the last observation without it; at least 0.
        event : array-like of shape (n,)
            1 or True where the event was observed, 0 or False where the time is cut off.
        horizon : float, optional
            Time up to which outcomes are followed, > 0, in units of `y`.
        entered : array-like of shape (n,), optional
            When each person entered, on one calendar: numbers in units of `y`, or dates if `y` is
            in days. Follow-up ends at the latest `entered + y`. Needs a horizon.

        Raises
        ------
        InputError
            If an input is invalid, or no event was observed.
        """
        if y is None:
            raise InputError("y is missing: it contains the times; pass y=")
        time = _times(y)
        happened = _events(event, time.size)
        tau = None if horizon is None else check_horizon(horizon)
        if entered is not None and tau is None:
            raise InputError(
                "entered is given without horizon: it selects the people who entered at least a"
                " horizon before the end of follow-up; pass horizon="
            )
        start = None if entered is None else _entered(entered, time.size)
        seen = happened if tau is None else happened & (time <= tau)
        if not seen.any():
            before = "" if tau is None else f" by the horizon {number_in_full(tau)}"
            remedy = (
                "check that 1 stands for an observed event"
                if not happened.any()
                else "give a later horizon"
            )
            raise InputError(f"no event was observed{before}, so nothing can be compared; {remedy}")
        if tau is None:
            return cls(time, seen, tau, start, time, happened)
        if time.max() < tau and not seen.all():
            rule = f"be at most {number_in_full(float(time.max()))}, the longest time"
            remedy = "nobody was followed for longer; check that y and horizon have one unit"
            raise bad_input("horizon", rule, number_in_full(tau), remedy)
        # the outcome `horizon` is that of people without an event until then
        last = np.where(seen, np.nextafter(tau, 0.0), tau)
        return cls(np.minimum(time, last), seen, tau, start, time, happened)

    def __repr__(self) -> str:
        return one_line(
            self,
            n_samples=self.n_samples,
            n_events=int(self.happened.sum()),
            n_lost=int(self.is_lost.sum()),
            horizon=self.horizon,
        )

    @property
    def n_samples(self) -> int:
        """Number of people."""
        return self.time.size

    @property
    def has_reached(self) -> Mask:
        """Who was seen without the event until the horizon, shape (n,)."""
        if self.horizon is None:
            return np.zeros(self.n_samples, dtype=np.bool_)
        return np.asarray(~self.happened & (self.time >= self.horizon))

    @property
    def is_lost(self) -> Mask:
        """Whose outcome is not known: no event, and not seen until a horizon; shape (n,)."""
        return ~self.happened & ~self.has_reached

    @property
    def upper(self) -> Floats:
        """Upper ends of what is known of the outcomes: infinite for who is lost; shape (n,)."""
        return np.where(self.is_lost, np.inf, self.time)

    @property
    def is_followed(self) -> Mask:
        """Who entered at least a horizon before the end of follow-up, whatever happened; (n,).

        Everybody if the times of entry are unknown. Of these people only those are lost who left:
        nobody is cut off by the end of the study (outcomes: 5, administrative censoring).
        """
        if self.entered is None or self.horizon is None:
            return np.ones(self.n_samples, dtype=np.bool_)
        end = float((self.entered + self.followed).max())
        # dates and times in units such as years are rounded
        slack = 1e-9 * max(abs(end), self.horizon)
        return np.asarray(self.entered + self.horizon <= end + slack)

    def take(self, rows: Any) -> Self:
        """Return the times of some people, by a mask, a slice or row numbers."""
        return type(self)(
            self.time[rows],
            self.happened[rows],
            self.horizon,
            None if self.entered is None else self.entered[rows],
            self.followed[rows],
            self.observed[rows],
        )


def given_times(
    y: ArrayLike,
    event: ArrayLike | None,
    horizon: float | None = None,
    entered: Any = None,
    sample_weight: ArrayLike | None = None,
) -> CensoredTimes | None:
    """Return times that may be cut off, or None if there is no `event`.

    The parameters are those of `CensoredTimes.of`, and weights of shape (n,).

    Raises
    ------
    InputError
        If an input is invalid, if there is a horizon or a time of entry without `event`, or if
        weights leave out the people whose times are cut off.
    """
    if event is None:
        for name, value in (("horizon", horizon), ("entered", entered)):
            if value is not None:
                raise InputError(
                    f"{name} is given without event: it is for times that may be cut off; pass"
                    " event=, 1 where the event was observed, 0 where the time is cut off"
                )
        return None
    times = CensoredTimes.of(y, event, horizon, entered)
    if sample_weight is not None and np.shape(sample_weight) == times.time.shape:
        is_left_out = np.asarray(sample_weight) == 0
        if times.is_lost.any() and is_left_out[times.is_lost].all():
            raise InputError(
                "sample_weight is 0 for each person whose time is cut off, which leaves them out:"
                " without them, times seem shorter than they are, and right forecasts seem wrong;"
                " weight people whatever happened to them"
            )
    return times


def _times(y: ArrayLike) -> Floats:
    time = as_floats("y", y)
    is_missing = np.isnan(time)
    if time.ndim == 1 and is_missing.any():
        remedy = (
            "where no event was observed, give the time at which the person was last seen: without"
            " these people, times would seem shorter than they are"
        )
        raise bad_input(f"y[{int(np.argmax(is_missing))}]", "be a time", "a missing value", remedy)
    time = check_finite("y", time)
    if time.min() < 0:
        first = int(np.argmax(time < 0))
        raise bad_input(f"y[{first}]", "be at least 0, as it is a time", float(time[first]))
    return time


def _events(event: ArrayLike, n: int) -> Mask:
    remedy = "give 1 where the event was observed, 0 where the time is cut off"
    values = np.asarray(event)
    if values.shape != (n,):
        raise bad_input("event", f"have shape ({n},), one value per time", f"shape {values.shape}")
    if values.dtype.kind == "b":
        return values
    try:
        numbers = values.astype(np.float64)
    except (TypeError, ValueError):
        first = next(one for one in values.tolist() if not isinstance(one, int | float))
        raise bad_input("event", "be 0 or 1", repr(first)[:80], remedy) from None
    wrong = (numbers != 0) & (numbers != 1)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise bad_input(f"event[{first}]", "be 0 or 1", float(numbers[first]), remedy)
    return np.asarray(numbers == 1)


def _entered(entered: Any, n: int) -> Floats:
    values = np.asarray(entered)
    if values.shape != (n,):
        got = f"shape {values.shape}"
        raise bad_input("entered", f"have shape ({n},), one value per time", got)
    if values.dtype.kind in "OUS":
        values = _read(values)
    if values.dtype.kind == "M":
        if np.isnat(values).any():
            first = int(np.argmax(np.isnat(values)))
            raise bad_input(f"entered[{first}]", "be a date", "a missing value", "fill it")
        values = (values - values.min()) / DAY
    return check_finite("entered", values)


def _read(values: NDArray[Any]) -> NDArray[Any]:
    """Return texts and objects as dates, or as numbers if most of them are."""
    column = pd.Series(values)
    found = parsed_dates(column)
    read, wrong = parse_numbers(column) if found is None else found
    if wrong.any():
        first = int(np.argmax(wrong))
        rule = "be a number, in units of y" if found is None else "be a date"
        remedy = "correct it" if found is None else ISO_DATES
        raise bad_input(f"entered[{first}]", rule, repr(values.tolist()[first])[:80], remedy)
    return read


def parsed_dates(values: pd.Series[Any]) -> tuple[NDArray[np.datetime64], Mask] | None:
    """Return texts and objects as dates, in UTC, or None if most of them are numbers.

    Returns
    -------
    dates : ndarray of datetime64, shape (n,)
        NaT where there is no date.
    wrong : ndarray of bool, shape (n,)
        Values that are neither dates such as 2024-12-31 nor missing.

    Examples
    --------
    >>> parsed_dates(pd.Series(["2024-12-31", "31/12/2024", None]))[1]
    array([False,  True, False])
    >>> parsed_dates(pd.Series(["0.5", "unknown", "2"])) is None
    True
    """
    is_there = values.notna().to_numpy()
    _, no_numbers = parse_numbers(values)
    if 2 * no_numbers.sum() < is_there.sum():
        return None
    # days first and months first look the same, so neither is guessed
    stamps = pd.to_datetime(values, format="ISO8601", utc=True, errors="coerce")
    dates = stamps.to_numpy("M8[ns]")
    return dates, np.asarray(np.isnat(dates) & is_there)


# --- the Kaplan-Meier estimate of the distribution of values that are cut off (outcomes: 5)


@dataclass(frozen=True, eq=False, repr=False)
class KaplanMeier:
    """Estimated distribution function of values, some of which are only known to be larger.

    It assumes that, among these people, being cut off is independent of the value.

    Parameters
    ----------
    values : ndarray of shape (k,)
        Distinct observed values, increasing.
    cdf : ndarray of shape (k,)
        Estimated probability of values up to each of them.
    hazard_variance : ndarray of shape (k,)
        Variance of the estimated log survival at each of them, Greenwood's sum.
    last : float
        Largest value up to which anybody was observed: nothing is known beyond it.

    References
    ----------
    Kaplan & Meier, JASA 1958; Greenwood 1926.

    Examples
    --------
    >>> estimate = KaplanMeier.of([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 1])
    >>> estimate.at([1.0, 2.5, 3.0]).round(3)
    array([0.25 , 0.25 , 0.625])
    """

    values: Floats
    cdf: Floats
    hazard_variance: Floats
    last: float

    @classmethod
    def of(cls, values: ArrayLike, event: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Estimate from values, whether each was observed (or is a lower limit), and weights.

        Values are finite, `event` is boolean or 0 and 1, weights are at least 0 and not all 0;
        each has shape (n,).
        """
        value = np.asarray(values, dtype=np.float64)
        observed = np.asarray(event, dtype=np.bool_)
        weight = np.ones(value.size) if weights is None else np.asarray(weights, dtype=np.float64)
        # Kish's effective number of people, of whom each then counts once
        weight = weight * (weight.sum() / (weight**2).sum())
        order = np.argsort(value, kind="stable")
        value, observed, weight = value[order], observed[order], weight[order]
        # who is cut off at the value of an event was at risk of it
        at_risk = np.cumsum(weight[::-1])[::-1]
        distinct, first = np.unique(value, return_index=True)
        ended = np.add.reduceat(weight * observed, first)
        some = ended > 0
        ended, left = ended[some], at_risk[first[some]]
        hazard = np.minimum(ended / left, 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = np.where(hazard < 1, hazard / (left * (1 - hazard)), 0.0)
        return cls(
            distinct[some], 1 - np.cumprod(1 - hazard), np.cumsum(variance), float(value[-1])
        )

    def __repr__(self) -> str:
        return one_line(self, n_values=self.values.size, last=self.last)

    def at(self, points: ArrayLike) -> Floats:
        """Estimated probability of values up to each point, in the shape of `points`."""
        steps = np.concatenate(([0.0], self.cdf))
        return np.asarray(steps[np.searchsorted(self.values, points, side="right")])

    def interval(self, point: float, confidence: float = 0.95) -> tuple[float, float]:
        """Return an interval for the probability of values up to a point.

        It is asymptotic, by Greenwood's variance on the scale of `log(-log S)`, and [0, 1] where
        there is no event or everybody has it.
        """
        check_fraction("confidence", confidence)
        place = int(np.searchsorted(self.values, point, side="right")) - 1
        if place < 0 or not 0 < self.cdf[place] < 1:
            return 0.0, 1.0
        log_survival = np.log1p(-self.cdf[place])
        z = special.ndtri((1 + confidence) / 2)
        half = z * np.sqrt(self.hazard_variance[place]) / -log_survival
        low, high = -np.expm1(log_survival * np.exp([-half, half]))
        return float(low), float(high)

    def error(self) -> float:
        """W1 distance of an estimate for PITs from uniform, 0 to 1/2.

        Beyond the last value the estimate continues as the forecasts predict, linearly to 1.
        """
        ends = np.concatenate(([0.0], self.values, [self.last]))
        levels = np.concatenate(([0.0], self.cdf))
        inner = quantile_distance(levels, ends)
        return float(inner + abs(levels[-1] - self.last) * (1 - self.last) / 2)
