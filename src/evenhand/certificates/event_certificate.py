"""Certificates of 0/1 forecasts: event rates and biases of every group (outcomes: 3)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evenhand._format import (
    Summarized,
    at_least,
    at_most,
    confidence_in_full,
    count,
    four_digits,
    in_full,
    one_line,
    percent,
)
from evenhand._validate import (
    Floats,
    InputError,
    Mask,
    bad_input,
    check_finite,
    check_fraction,
    check_masses,
    check_rows,
)
from evenhand.calibration import CDFBand, SurvivalBand, check_events, local_levels_band
from evenhand.certificates.assumptions import (
    FIXED_EVENT,
    ONE_ROW_EACH,
    SAMPLE,
    SHARES_OF_ROWS,
    SHIFT,
    SMALLER_GROUPS,
)
from evenhand.certificates.promise import Promise
from evenhand.draws import RandomState, one_row_each

# --- evidence: probabilities and events of people, or their counts

Counts = NDArray[np.int64]

EQUAL_BINS = 6400
"""Number of equal bins of [0, 1] for probabilities; bins near 0 and 1 are narrower."""

END = 0.01
"""Distance from 0 and from 1 up to which bins have geometric widths."""

LEAST = 1e-7
"""Upper end of the first bin."""


@dataclass(frozen=True)
class Sample:
    """PITs or probabilities of people, or limits between which they lie, with their numbers.

    Parameters
    ----------
    low, high : ndarray of shape (k,)
        Limits of the values; both are the values themselves if these are known.
    counts : ndarray of int64, shape (k,), or None
        Number of people between each pair of limits; None for one each.
    """

    low: Floats
    high: Floats
    counts: NDArray[np.int64] | None = None

    @property
    def n_samples(self) -> int:
        """Number of people."""
        return self.low.size if self.counts is None else int(self.counts.sum())

    def quantiles(self, most: int) -> Floats:
        """Return at most that many values, increasing, in the middle of equal steps in rank."""
        n = self.n_samples
        size = min(n, most)
        ranks = ((np.arange(size) + 0.5) * n / size).astype(np.int64)
        middle = (self.low + self.high) / 2
        if self.counts is None:
            return np.asarray(np.sort(middle)[ranks])
        order = np.argsort(middle, kind="stable")
        upto = np.cumsum(self.counts[order])
        return np.asarray(middle[order][np.searchsorted(upto, ranks, side="right")])


@dataclass(frozen=True)
class EventSample(Sample):
    """Probabilities of people, or limits between which they lie, with their events.

    Parameters
    ----------
    low, high, counts
        As in `Sample`.
    event : ndarray of bool, shape (k,)
        Whether the event happened.
    lost : ndarray of bool, shape (k,), or None
        People of whom it is not known whether the event happened; None if it is known of all.
    """

    event: Mask = field(kw_only=True)
    lost: Mask | None = field(default=None, kw_only=True)

    @property
    def is_possible(self) -> Mask:
        """Whether the event happened, or may have happened, shape (k,)."""
        return self.event if self.lost is None else self.event | self.lost

    @property
    def n_lost(self) -> int:
        """Number of people of whom it is not known whether the event happened."""
        return 0 if self.lost is None else int(self.lost.sum())

    def take(self, rows: Any) -> EventSample:
        """Return some of the people, one in each row."""
        lost = None if self.lost is None else self.lost[rows]
        return EventSample(self.low[rows], self.high[rows], event=self.event[rows], lost=lost)

    @property
    def n_events(self) -> int:
        """Number of people who have the event."""
        return int(self.event.sum() if self.counts is None else self.counts[self.event].sum())


def event_sample(
    probability: ArrayLike, event: ArrayLike, lost: ArrayLike | None = None
) -> EventSample:
    """Check probabilities and events, one of each per person, and of whom events are not known."""
    p, happened = check_events(check_finite("probability", probability), event)
    if lost is None:
        return EventSample(p, p, event=happened == 1)
    unknown = check_rows("lost", lost, p.size) != 0
    return EventSample(p, p, event=(happened == 1) & ~unknown, lost=unknown)


@dataclass(frozen=True, eq=False, repr=False)
class EventCounts:
    """Counts of people by probability and event, for tables that do not fit into memory.

    The sum of the counts of two disjoint blocks of people is the counts of both blocks.

    Parameters
    ----------
    with_event, without_event : ndarray of int64
        People who have the event, and who do not, by bin of their probability. Bins contain their
        left end.

    Examples
    --------
    >>> from evenhand.certificates import count_events
    >>> counts = count_events([0.1, 0.3], [0, 1]) + count_events([0.2], [1])
    >>> counts.n_samples, counts.n_events
    (3, 2)
    """

    with_event: Counts
    without_event: Counts

    def __repr__(self) -> str:
        return one_line(self, n_samples=self.n_samples, n_events=self.n_events)

    @property
    def n_samples(self) -> int:
        """Number of people."""
        return self.n_events + int(self.without_event.sum())

    @property
    def n_events(self) -> int:
        """Number of people who have the event."""
        return int(self.with_event.sum())

    def __add__(self, other: EventCounts) -> EventCounts:
        """Return the counts of both blocks of people."""
        if not isinstance(other, EventCounts):
            return NotImplemented
        return EventCounts(
            self.with_event + other.with_event, self.without_event + other.without_event
        )

    def sample(self) -> EventSample:
        """Return the limits of the probabilities of the counted people."""
        edges = _edges()
        low = np.tile(edges[:-1], 2)
        high = np.tile(edges[1:], 2)
        event = np.repeat([True, False], edges.size - 1)
        counts = np.concatenate((self.with_event, self.without_event))
        some = counts > 0
        return EventSample(low[some], high[some], counts[some], event=event[some])


def count_events(probability: ArrayLike, event: ArrayLike) -> EventCounts:
    """Count the people of a block by the probability of an event and by the event.

    Parameters
    ----------
    probability : array-like of shape (n,)
        Forecast probability of the event, between 0 and 1, one per person.
    event : array-like of shape (n,)
        Whether the event happened: 0 or 1, or booleans.

    Returns
    -------
    EventCounts

    Raises
    ------
    InputError
        If a value is out of range, or the lengths differ.
    """
    sample = event_sample(probability, event)
    edges = _edges()
    n_bins = edges.size - 1
    # a probability of 1 belongs to the last bin
    bins = np.minimum(np.searchsorted(edges, sample.low, side="right") - 1, n_bins - 1)
    each = (np.bincount(bins[rows], minlength=n_bins) for rows in (sample.event, ~sample.event))
    with_event, without_event = (counts.astype(np.int64, copy=False) for counts in each)
    return EventCounts(with_event, without_event)


@cache
def _edges() -> Floats:
    """Return the edges of the bins: rare events need narrow bins near 0."""
    ratio = 1 + 1 / (EQUAL_BINS * END)
    # so many steps that the narrowest equal bin is no narrower than the widest geometric one
    steps = int(np.ceil(np.log(END / LEAST) / np.log(ratio)))
    end = np.append(0.0, np.geomspace(LEAST, END, steps + 1))
    first = round(END * EQUAL_BINS)
    middle = np.arange(first + 1, EQUAL_BINS - first) / EQUAL_BINS
    return np.concatenate((end, middle, 1 - end[::-1]))


# --- certificates

MASSES = (0.1, 0.2, 0.5, 1.0)
"""Group sizes of tables."""

SHOWN_MASS = 0.2
"""Group size whose bounds are shown in one line."""

THRESHOLDS = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5),
    *(0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999),
)
"""Probabilities from which tables take a threshold for each group size."""

MOST_PROBABILITIES = 1000
"""Largest number of probabilities that a certificate keeps, for estimated shares of people."""


@dataclass(frozen=True, eq=False, repr=False)
class EventCertificate(Summarized):
    """Bounds on the event rate and the bias of a 0/1 forecast in every group of a given size.

    The forecasts are probabilities without a draw. A group is any share of the people, defined by
    features, by the forecast itself, or in any other way. Each of three sets of bounds holds with
    the given confidence: `event_rate(below=...)` for all thresholds and group sizes simultaneously,
    `event_rate(above=...)` likewise, and `bias` for all group sizes.

    Parameters
    ----------
    confidence : float
        Probability, over the rows, that a set of bounds holds.
    n_samples : int
        Number of people.
    n_events : int
        Number of people who have the event.
    with_event : CDFBand
        Upper band for `P(p <= t, Y = 1)`, `p` the probability of the event.
    without_event : CDFBand
        Upper band for `P(1 - p <= t, Y = 0)`.
    above_forecast, below_forecast : SurvivalBand
        Upper bands for the distributions of `1 + Y - p` and `1 + p - Y`.
    probability : ndarray of shape (k,)
        Probabilities of the people, increasing; 1,000 of equal steps in rank if there are more.
    one_row_each : bool
        Whether people have several rows and one row per person was used.
    n_lost : int
        Number of people of whom it is not known whether they had the event: they count as having it
        or not, whichever makes a bound larger.
    """

    confidence: float
    n_samples: int
    n_events: int
    with_event: CDFBand
    without_event: CDFBand
    above_forecast: SurvivalBand
    below_forecast: SurvivalBand
    probability: Floats
    one_row_each: bool = False
    n_lost: int = 0

    @classmethod
    def of(cls, sample: EventSample, confidence: float) -> Self:
        """Make the certificate from probabilities and events, or from their limits and counts."""
        low, high, counts = sample.low, sample.high, sample.counts
        # people without the event never enter P(p <= t, Y = 1) for t < 1. Limits of probabilities
        # are taken at the ends that make each bound larger, and so are events that are not known
        event, possible = sample.event, sample.is_possible
        both = (1 + confidence) / 2
        return cls(
            confidence,
            sample.n_samples,
            sample.n_events,
            CDFBand.of(np.where(possible, low, 1.0), confidence, counts),
            CDFBand.of(np.where(event, 1.0, 1 - high), confidence, counts),
            local_levels_band(1 + possible - low, 2.0, both, counts),
            local_levels_band(1 + high - event, 2.0, both, counts),
            sample.quantiles(MOST_PROBABILITIES),
            n_lost=sample.n_lost,
        )

    def __repr__(self) -> str:
        low, high = self.bias(SHOWN_MASS)
        return one_line(
            self,
            n_samples=self.n_samples,
            n_events=self.n_events,
            confidence=four_digits(self.confidence, "down"),
            bias_low=-four_digits(-low, "up"),
            bias_high=four_digits(high, "up"),
            group_mass=SHOWN_MASS,
        )

    def event_rate(
        self, *, below: float | None = None, above: float | None = None, mass: float
    ) -> float:
        """Bound the event rate of every group of people whose forecasts are below or above a value.

        The group lies inside the people whose probability is at most `below` (at least `above`) and
        contains at least the share `mass` of *all* people. It contains at most all of the people
        who have a probability of at most `below` and the event, whatever defines it: nobody can
        prove less (outcomes: Theorem 5). Holds simultaneously for all thresholds and masses.

        Parameters
        ----------
        below : float, optional
            Largest probability in the group, 0 < below < 1.
        above : float, optional
            Smallest probability in the group, 0 < above < 1. Give exactly one of the two.
        mass : float
            Smallest share of all people in the group, 0 < mass <= 1.

        Returns
        -------
        float
            With `below`, an upper bound for the event rate of the group; with `above`, a lower
            bound. Between 0 and 1.

        Raises
        ------
        InputError
            If not exactly one threshold is given, or an argument is out of its range.
        """
        check_fraction("mass", mass, high_open=False)
        if below is not None and above is None:
            share = self.with_event.at(np.array(check_fraction("below", below)))
            return min(float(share) / mass, 1.0)
        if above is not None and below is None:
            share = self.without_event.at(np.array(1 - check_fraction("above", above)))
            return max(1 - float(share) / mass, 0.0)
        got = "neither" if below is None else f"below={below} and above={above}"
        raise bad_input("event_rate", "have exactly one of below and above", got)

    def bias(self, mass: float) -> tuple[float, float]:
        """Bounds for the mean of `Y - p` in every group of at least this share of all people.

        The bias of a group is its event rate minus its mean forecast. Its largest value over groups
        is the mean of the largest `mass` of `Y - p`, and no rows can prove less (outcomes: Theorem
        4.4). Holds simultaneously for both sides and all masses.

        Parameters
        ----------
        mass : float
            Smallest share of all people in the group, 0 < mass <= 1.

        Returns
        -------
        low, high : float
            The bias of every such group lies between them; -1 to 1.
        """
        check_fraction("mass", mass, high_open=False)
        return 1 - self.below_forecast.cvar(mass), self.above_forecast.cvar(mass) - 1

    def promise(self, mass: float) -> Promise:
        """Return the bounds of both sides of the bias as a promise for every group of a size.

        Parameters
        ----------
        mass : float
            Smallest share of all people in the group, 0 < mass <= 1.

        Examples
        --------
        >>> proof = certify_events([0.2, 0.3] * 50, [0, 0, 0, 1] * 25)
        >>> promise = proof.promise(0.5)
        >>> promise.statistic, promise.targets == (proof.bias(0.5)[1], -proof.bias(0.5)[0])
        ('bias', True)
        """
        low, high = self.bias(mass)
        return Promise.of_bias(low, high, mass, self.confidence)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions under which the bounds hold."""
        return SAMPLE, FIXED_EVENT

    @property
    def not_covered(self) -> tuple[str, ...]:
        """Situations that the bounds do not cover."""
        return (SHIFT, SMALLER_GROUPS, *((SHARES_OF_ROWS,) if self.one_row_each else ()))

    def table(self, masses: ArrayLike = MASSES) -> pd.DataFrame:
        """Return the bounds, one row per group size.

        Columns: `mass`, `below`, `event_rate_below` (upper bound), `above`, `event_rate_above`
        (lower bound), `bias_low`, `bias_high`. The threshold `below` is the smallest of a fixed
        list such that the share `mass` of the certifying people has at most this probability, and
        `above` the largest such that the share has at least that probability; both are NaN, with
        their bounds, where no such threshold exists.
        """
        rows = []
        for mass in check_masses(masses).tolist():
            below, above = self._thresholds(mass)
            rows.append(
                (
                    mass,
                    np.nan if below is None else below,
                    np.nan if below is None else self.event_rate(below=below, mass=mass),
                    np.nan if above is None else above,
                    np.nan if above is None else self.event_rate(above=above, mass=mass),
                    *self.bias(mass),
                )
            )
        rates = ["below", "event_rate_below", "above", "event_rate_above"]
        return pd.DataFrame(rows, columns=["mass", *rates, "bias_low", "bias_high"])

    def summary(self) -> str:
        """Return the bounds as text, with their assumptions and limits."""
        lines = [
            f"With {confidence_in_full(self.confidence)} confidence, from"
            f" {count(self.n_samples, 'person', 'people')}, of whom"
            f" {self.n_events:,} had the event{self._lost()}:",
            *self.lines(),
            *([ONE_ROW_EACH] if self.one_row_each else []),
            "Assumes: " + "; ".join(self.assumptions) + ".",
            "Does not cover: " + "; ".join(self.not_covered) + ".",
        ]
        return "\n".join(lines)

    def _lost(self) -> str:
        unknown = f", and of {self.n_lost:,} it is not known whether they had it"
        return unknown if self.n_lost else ""

    def lines(self, event: str = "have the event") -> list[str]:
        """Return the bounds as lines of a summary; `event` is the verb of the event."""
        return [line for mass in (0.1, 0.2, 0.5) for line in self._lines(mass, event)]

    def _lines(self, mass: float, event: str) -> list[str]:
        size = in_full(mass)
        low, high = self.bias(mass)
        lines = [
            f"- in every group of at least {size} of all people, the share who {event} is at most"
            f" {at_most(high)} points above and at most {at_most(-low)} points below the mean"
            " forecast"
        ]
        below, above = self._thresholds(mass)
        if below is not None and (rate := self.event_rate(below=below, mass=mass)) < 1:
            lines.append(
                f"- in every group of at least {size} of all people, all with a forecast of at most"
                f" {in_full(below)}, at most {at_most(rate, percent)} {event}"
            )
        if above is not None and (rate := self.event_rate(above=above, mass=mass)) > 0:
            lines.append(
                f"- in every group of at least {size} of all people, all with a forecast of at"
                f" least {in_full(above)}, at least {at_least(rate, percent)} {event}"
            )
        return lines

    def _thresholds(self, mass: float) -> tuple[float | None, float | None]:
        """Return thresholds below and above which about a share `mass` of the people lies."""
        # bounds hold for all thresholds, so they may be chosen on the same people
        p = self.probability
        below = (t for t in THRESHOLDS if np.mean(p <= t) >= mass)
        above = (t for t in reversed(THRESHOLDS) if np.mean(p >= t) >= mass)
        return next(below, None), next(above, None)


def certify_events(
    probability: ArrayLike,
    event: ArrayLike,
    *,
    confidence: float = 0.95,
    lost: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    random_state: RandomState = None,
) -> EventCertificate:
    """Certify a 0/1 forecast from probabilities and events on rows that it has not seen.

    Parameters
    ----------
    probability : array-like of shape (n,)
        Forecast probability of the event, between 0 and 1, one per person, without a draw:
        `Forecast.event_probability`.
    event : array-like of shape (n,)
        Whether the event happened: 0 or 1, or booleans.
    confidence : float, default 0.95
        Probability that a set of bounds holds; see `EventCertificate`.
    lost : array-like of bool, shape (n,), optional
        People of whom it is not known whether the event happened, such as those who were lost
        before the end of a period; their `event` is ignored. The bounds hold whatever happened to
        them.
    cluster : array-like of shape (n,), optional
        Person labels, for people who have several rows. One row per person, chosen at random, is
        used, and group sizes are shares of people, not of rows.
    random_state : int, generator or None
        Seed for the choice of rows.

    Returns
    -------
    EventCertificate

    Raises
    ------
    InputError
        If a value is out of range, or the lengths differ.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 9, size=5000)  # a calibrated forecast of a rare event
    >>> proof = certify_events(p, rng.uniform(size=5000) < p)

    In every group of 20% of people with a forecast of at most 5%, the event rate is at most:

    >>> 0.043 < proof.event_rate(below=0.05, mass=0.2) < 0.08  # the least provable bound is 0.043
    True
    >>> low, high = proof.bias(0.5)
    >>> low < 0 < high < 0.3
    True
    """
    check_fraction("confidence", confidence)
    sample = event_sample(probability, event, lost)
    if cluster is not None:
        sample = sample.take(one_row_each(cluster, sample.n_samples, random_state))
    made = EventCertificate.of(sample, float(confidence))
    return replace(made, one_row_each=cluster is not None)


def certify_event_counts(counts: EventCounts, *, confidence: float = 0.95) -> EventCertificate:
    """Certify a 0/1 forecast from counts of its probabilities and events.

    Probabilities are taken at the ends of their bins, which only widens the bounds: those of biases
    by at most 1/6400, those of event rates as if a threshold were larger by the width of a bin.

    Parameters
    ----------
    counts : EventCounts
        Counts of one row per person.
    confidence : float, default 0.95
        As in `certify_events`.

    Returns
    -------
    EventCertificate

    Raises
    ------
    InputError
        If the counts contain no people.

    Examples
    --------
    >>> from evenhand.certificates import count_events
    >>> rng = np.random.default_rng(0)
    >>> p = rng.beta(1, 9, size=5000)
    >>> counts = count_events(p, rng.uniform(size=5000) < p)
    >>> 0.043 < certify_event_counts(counts).event_rate(below=0.05, mass=0.2) < 0.08
    True
    """
    check_fraction("confidence", confidence)
    if counts.n_samples == 0:
        raise InputError("counts contain no people; count at least one person")
    return EventCertificate.of(counts.sample(), float(confidence))
