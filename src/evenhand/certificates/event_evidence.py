"""Evidence on 0/1 outcomes: probabilities and events of people, or their counts (outcomes: 3)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import one_line
from evenhand._validate import Floats, Mask, bad_input, check_finite, check_rows
from evenhand.calibration import check_events

Counts = NDArray[np.int64]

EQUAL_BINS = 6400
"""Number of equal bins of [0, 1] for probabilities; bins near 0 and 1 are narrower."""

END = 0.01
"""Distance from 0 and from 1 up to which bins have geometric widths."""

LEAST = 1e-7
"""Upper end of the first bin."""


@dataclass(frozen=True)
class EventSample:
    """Probabilities of people, or limits between which they lie, with their events.

    Parameters
    ----------
    low, high : ndarray of shape (k,)
        Limits of the probability of the event; both are the probability itself if it is known.
    event : ndarray of bool, shape (k,)
        Whether the event happened.
    counts : ndarray of int64, shape (k,), or None
        Number of people in each row; None for one each.
    lost : ndarray of bool, shape (k,), or None
        People of whom it is not known whether the event happened; None if it is known of all.
    """

    low: Floats
    high: Floats
    event: Mask
    counts: Counts | None = None
    lost: Mask | None = None

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
        return EventSample(self.low[rows], self.high[rows], self.event[rows], None, lost)

    @property
    def n_samples(self) -> int:
        """Number of people."""
        return self.low.size if self.counts is None else int(self.counts.sum())

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
        return EventSample(p, p, happened == 1)
    unknown = check_rows("lost", lost, p.size) != 0
    return EventSample(p, p, (happened == 1) & ~unknown, None, unknown)


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

    def __post_init__(self) -> None:
        n_bins = _edges().size - 1
        for name in ("with_event", "without_event"):
            counts = getattr(self, name)
            if counts.shape != (n_bins,) or counts.dtype != np.int64 or counts.min() < 0:
                got = f"{counts.dtype} of shape {counts.shape}"
                raise bad_input(name, f"be {n_bins} counts of type int64, at least 0", got)

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
        return EventSample(low[some], high[some], event[some], counts[some])


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
