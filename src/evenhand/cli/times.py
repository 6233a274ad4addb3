"""Options of the command for times until an event, which may be cut off (outcomes: 5)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand._validate import InputError, about, bad_input

if TYPE_CHECKING:
    import pandas as pd

    from evenhand._validate import Floats, Mask
    from evenhand.distributions import OutcomeKind

CUT_OFF = "1 where the event was observed, 0 where the time is cut off"


@dataclass(frozen=True)
class TimeColumns:
    """The options `--event`, `--horizon` and `--entered`.

    Parameters
    ----------
    event : str or None
        Column with 1 where the event was observed, 0 where the time is cut off; None for outcomes
        that are no times.
    horizon : float or None
        Time up to which outcomes are followed, units of the target.
    entered : str or None
        Column with the dates at which people entered.
    """

    event: str | None = None
    horizon: float | None = None
    entered: str | None = None

    @classmethod
    def of(
        cls,
        event: str | None,
        horizon: float | None,
        entered: str | None = None,
        *,
        survival: str | None = None,
    ) -> TimeColumns:
        """Check the options of a command that reads outcomes, before a table is read."""
        if horizon is not None and not (math.isfinite(horizon) and horizon > 0):
            raise bad_input("--horizon", "be a time above 0", f"{horizon:g}")
        given = {"--survival": survival, "--horizon": horizon, "--entered": entered}
        if event is None:
            for option, value in given.items():
                if value is not None:
                    raise InputError(
                        f"{option} is for times until an event, which may be cut off; add --event,"
                        f" the column with {CUT_OFF}"
                    )
        if entered is not None and horizon is None:
            raise InputError(
                "--entered has no effect without --horizon: it selects the people who entered at"
                " least a horizon before the end of follow-up; add --horizon"
            )
        return cls(event, horizon, entered)

    @classmethod
    def with_horizon(
        cls, event: str | None, horizon: float | None, entered: str | None, survival: str | None
    ) -> TimeColumns:
        """Check the options of a command that certifies, which is impossible without a horizon."""
        found = cls.of(event, horizon, entered, survival=survival)
        if event is not None and horizon is None:
            raise InputError(
                "--event needs --horizon here: without a time up to which people are followed, a"
                " time that is cut off may have any error up to the largest, and nothing can be"
                " certified; add --horizon"
            )
        return found

    @property
    def outcome(self) -> dict[str, str]:
        """The column that is part of the outcome, with its role."""
        return {} if self.event is None else {self.event: "event"}

    @property
    def roles(self) -> dict[str, str]:
        """The named columns with their roles."""
        return self.outcome | ({} if self.entered is None else {self.entered: "entered"})

    def read(self, data: pd.DataFrame, y: Floats, target: str, source: str) -> dict[str, Any]:
        """Return arguments of `audit`, `randomize` and `fit` for these times; none without events.

        Parameters
        ----------
        data : DataFrame of n rows
            The table.
        y : ndarray of shape (n,)
            The column `target`, finite.
        target, source : str
            Column of the times, and file name, for messages.
        """
        from evenhand import tables
        from evenhand.censoring import CensoredTimes

        if self.event is None:
            return {}
        if self.event == target:
            raise InputError(
                f"--event {target!r} is the --target column, which contains the times; name the"
                f" column with {CUT_OFF}"
            )
        tables.refuse_row(
            y < 0, data[target], f"{source}: column {target!r}", "be at least 0", "it is a time"
        )
        happened = self._events(data, source)
        found: dict[str, Any] = {"event": happened}
        if self.horizon is not None:
            found["horizon"] = self.horizon
        if self.entered is not None:
            found["entered"] = self._entries(data, source)
        with about(source):
            CensoredTimes.of(y, **found)
        return found

    def _events(self, data: pd.DataFrame, source: str) -> Mask:
        from evenhand import tables

        column = str(self.event)
        values = tables.number_column(data, column, source=source)
        place = f"{source}: column {column!r}"
        wrong = (values != 0) & (values != 1)
        tables.refuse_row(wrong, data[column], place, "be 0 or 1", f"write {CUT_OFF}")
        return np.asarray(values == 1)

    def _entries(self, data: pd.DataFrame, source: str) -> Any:
        """Return dates, or numbers in units of the target."""
        import pandas as pd

        from evenhand import tables
        from evenhand.censoring import ISO_DATES, parsed_dates

        column = str(self.entered)
        values = tables.column_of(data, column, source)
        place = f"{source}: column {column!r}"
        if values.dtype.kind != "M":
            found = parsed_dates(values)
            if found is None:
                return tables.number_column(data, column, source=source)
            dates, wrong = found
            tables.refuse_row(wrong, values, place, "be a date", ISO_DATES)
            values = pd.Series(dates, index=values.index)
        tables.refuse_row(values.isna().to_numpy(), values, place, "be a date", "fill it")
        # dates with a time zone have an object dtype in arrays
        return values.dt.tz_localize(None).to_numpy()


def refuse_missing_times(data: pd.DataFrame, target: str, source: str) -> None:
    """Refuse missing times, with the reason why their rows must not be dropped."""
    from evenhand import tables

    values = tables.column_of(data, target, source)
    remedy = (
        "where no event was observed, give the time at which the person was last seen: without"
        " these people, times would seem shorter than they are"
    )
    place = f"{source}: column {target!r}"
    tables.refuse_row(values.isna().to_numpy(), values, place, "be a time", remedy)


def check_kind_of_times(kind: OutcomeKind, source: str) -> None:
    """Refuse forecasts that are not of times."""
    from evenhand.distributions import OutcomeKind
    from evenhand.scale import TIMES

    if kind in (OutcomeKind.BINARY, OutcomeKind.COUNT):
        raise InputError(
            f"{source}: --event is for times until an event, but the forecasts are of the kind"
            f" {str(kind)!r}; name {TIMES}, or leave --event out"
        )
