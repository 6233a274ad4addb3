"""Times of the entries of a log, of which some clock readings may be wrong."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from evenhand._format import and_more, count

FIRST = np.datetime64("2026-01-01", "us")
"""A reading before it is wrong: no log is older than the first version of its format."""

MOST_ERROR = timedelta(minutes=10)
"""Error of a clock from which on an entry is named; those of several machines differ by less."""

Times = NDArray[Any]
"""Array of type datetime64[us], in UTC."""


@dataclass(frozen=True, eq=False)
class EntryTimes:
    """Limits of the times of the entries of a log, and the entries at which a clock was wrong.

    The order of entries is that of their numbers. Right readings never decrease, so a longest
    sequence of readings that do not decrease is taken for right, and no right reading is moved by
    a few wrong ones. An entry outside this sequence was added between its neighbours in it.

    Parameters
    ----------
    earliest, latest : ndarray of datetime64[us], shape (n,)
        Limits of the time of each entry, in the order of the log, not decreasing; both are the
        reading where it is right. After the last right reading, `latest` is the present.
    wrong : list of str
        Number and reading of each entry that a clock dates more than 10 minutes outside its limits.

    Examples
    --------
    The clock of the second entry was a year ahead, and that of the last one was reset:

    >>> days = ["2026-03-01", "2027-03-01", "2026-03-02", "2026-03-03", "1970-01-01"]
    >>> times = EntryTimes.of([f"{day}T09:00:00.000000Z" for day in days])
    >>> [str(time)[:10] for time in times.earliest]
    ['2026-03-01', '2026-03-01', '2026-03-02', '2026-03-03', '2026-03-03']
    >>> [str(time)[:10] for time in times.latest[:4]]
    ['2026-03-01', '2026-03-02', '2026-03-02', '2026-03-03']
    >>> times.wrong
    ['2 (2027-03-01T09:00)', '5 (1970-01-01T09:00)']
    """

    earliest: Times
    latest: Times
    wrong: list[str]

    @classmethod
    def of(cls, readings: Sequence[str], until: np.datetime64 | None = None) -> Self:
        """Return the times of all entries of a log.

        Parameters
        ----------
        readings : sequence of str
            `Logged.time` of the entries, in the order of the log.
        until : datetime64, optional
            Time up to which readings may be right, if it is later than now.
        """
        now = np.datetime64(datetime.now(UTC).replace(tzinfo=None), "us")
        present = now if until is None else np.maximum(now, until)
        raw = np.array([reading[:-1] for reading in readings], dtype="datetime64[us]")
        is_right = _longest_in_order(raw, (raw >= FIRST) & (raw <= present))
        earliest = np.maximum.accumulate(np.where(is_right, raw, FIRST))
        latest = np.minimum.accumulate(np.where(is_right, raw, present)[::-1])[::-1]
        error = np.timedelta64(MOST_ERROR)
        is_wrong = (raw < earliest - error) | (raw > latest + error)
        named = [f"{i + 1} ({readings[i][:16]})" for i in np.flatnonzero(is_wrong).tolist()]
        return cls(earliest, latest, named)

    @property
    def note(self) -> str:
        """Sentence on the entries at which a clock was wrong; empty if there are none."""
        if not self.wrong:
            return ""
        return (
            f"a clock was wrong at {count(len(self.wrong), 'entry', 'entries')} of the log, number"
            f" {and_more(self.wrong)}; each counts between the entries beside it"
        )


def _longest_in_order(raw: Times, usable: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return a longest subsequence of usable times that does not decrease (patience sorting)."""
    # from the last one: the largest first time, negative, of a sequence of each length
    firsts: list[int] = []
    places: list[int] = []
    following: dict[int, int] = {}
    values = (-raw.astype(np.int64)).tolist()
    for place in np.flatnonzero(usable)[::-1].tolist():
        length = bisect_right(firsts, values[place])
        firsts[length : length + 1] = [values[place]]
        places[length : length + 1] = [place]
        following[place] = places[length - 1] if length else -1
    found = np.zeros(raw.shape, dtype=np.bool_)
    place = places[-1] if places else -1
    while place >= 0:
        found[place] = True
        place = following[place]
    return found
