"""Follow-up of certified people whose times may be cut off (outcomes: 5)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

from evenhand._format import count, number_in_full
from evenhand.censoring import CensoredTimes
from evenhand.certificates.assumptions import (
    BEYOND_HORIZON,
    ENTRY,
    FIXED_HORIZON,
    LOST,
    WHOLE_CELLS,
)


@dataclass(frozen=True)
class FollowUp:
    """How many certified people had the event, reached the horizon, or were lost before it.

    Parameters
    ----------
    horizon : float or None
        Time up to which outcomes are followed, in units of the times; None without one.
    n_events : int
        Number of people who had the event by the horizon.
    n_reached : int
        Number of people seen until the horizon without the event.
    n_lost : int
        Number of people last seen without the event before the horizon: their outcome is not known.
    n_left_out : int
        Number of people who entered less than a horizon before the end of follow-up: they are not
        used, whatever happened to them.
    has_entry : bool
        Whether the times of entry are known, so that such people could be left out.
    """

    horizon: float | None
    n_events: int
    n_reached: int
    n_lost: int
    n_left_out: int = 0
    has_entry: bool = False

    @classmethod
    def of(cls, times: CensoredTimes, n_left_out: int = 0) -> Self:
        """Count the people whose times are used; `n_left_out` others are not.

        Examples
        --------
        >>> FollowUp.of(CensoredTimes.of([1.0, 2.0, 5.0], [1, 0, 0], horizon=3.0))
        FollowUp(horizon=3.0, n_events=1, n_reached=1, n_lost=1, n_left_out=0, has_entry=False)
        """
        return cls(
            times.horizon,
            int(times.happened.sum()),
            int(times.has_reached.sum()),
            int(times.is_lost.sum()),
            n_left_out,
            times.entered is not None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        return asdict(self)

    def sentence(self) -> str:
        """Return the counts as a sentence of a summary."""
        events = f"{count(self.n_events, 'person', 'people')} had the event"
        if self.horizon is None:
            return f"{events}, and the times of {self.n_lost:,} are cut off."
        tau = number_in_full(self.horizon)
        left_out = (
            ""
            if not self.n_left_out
            else f" Not used: {count(self.n_left_out, 'person', 'people')} who entered less than"
            f" {tau} before the end of follow-up."
        )
        lost = "was" if self.n_lost == 1 else "were"
        return (
            f"{events} by {tau}, {self.n_reached:,} reached {tau} without it, and"
            f" {self.n_lost:,} {lost} lost before.{left_out}"
        )


def assumptions_of_times(follow_up: FollowUp) -> tuple[str, ...]:
    """Return the assumptions on the horizon and on the times of entry."""
    horizon = () if follow_up.horizon is None else (FIXED_HORIZON,)
    return (*horizon, *((ENTRY,) if follow_up.has_entry else ()))


def beyond(follow_up: FollowUp) -> tuple[str, ...]:
    """Return that times beyond the horizon are not covered."""
    if follow_up.horizon is None:
        return ()
    return (BEYOND_HORIZON.format(horizon=number_in_full(follow_up.horizon)),)


def remarks_of_times(follow_up: FollowUp, *, in_cells: bool = False) -> list[str]:
    """Return how many people had the event, and what those who were lost count for."""
    has_horizon = follow_up.horizon is not None
    lost = [LOST] if follow_up.n_lost and has_horizon else []
    return [follow_up.sentence(), *lost, *([WHOLE_CELLS] if has_horizon and in_cells else [])]
