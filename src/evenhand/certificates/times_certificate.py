"""Certificates of forecasts of times that may be cut off (outcomes: 5)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from evenhand._validate import InputError, check_fraction
from evenhand.certificates.assumptions import (
    FIXED,
    NO_PROMISE_OF_TIMES,
    OTHER_GROUPS,
    OWN_CELLS,
    SAMPLE,
    SHARES_OF_ROWS,
    SHIFT,
    SMALLER_GROUPS,
    UNIFORM_DRAWS,
)
from evenhand.certificates.certificate import WORST
from evenhand.certificates.follow_up import (
    FollowUp,
    assumptions_of_times,
    beyond,
    remarks_of_times,
)
from evenhand.certificates.pit_certificate import AVERAGE_SHARE, PITCertificate
from evenhand.certificates.promise import Promise
from evenhand.certificates.questions import questions_of_times
from evenhand.links import Link


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class TimesCertificate(PITCertificate):
    """Bounds on calibration errors of forecasts of times, of which some are cut off.

    With a horizon the outcome is `min(T, horizon)`. The errors of people with the event by the
    horizon, and of those seen until it without the event, are known; everybody else was lost, and
    counts with the largest error that any outcome after the last observation would have. All bounds
    therefore hold whatever made people leave. They are in the reading of cells: the forecasts of a
    person who reached the horizon are compared with that fact alone.

    If the times of entry are known, only people are used who entered at least a horizon before the
    end of follow-up, whatever happened to them: nobody else is lost by the end of follow-up.

    Without a horizon `group_error` is 1/2 for every group that may consist of people whose times
    are cut off.

    Parameters
    ----------
    confidence, method, mass, is_randomized, evidence, seed, one_row_each, events
        As in `PITCertificate`; `evidence` is a `TimesEvidence`, `events` are bounds of the event
        that the time is at most the horizon, for forecasts without a draw.
    follow_up : FollowUp
        How many of the people had the event, reached the horizon or were lost.
    around : Link or None
        The link around a deterministic forecaster, if there is one.
    is_rounded : bool
        Whether the times of events were rounded.
    """

    follow_up: FollowUp
    around: Link | None = None
    is_rounded: bool = False

    @property
    def link(self) -> Link | None:
        """Link around a deterministic forecaster; None if there is none."""
        return self.around

    @property
    def bounds_every_group(self) -> bool:
        """Whether every group can have a useful bound."""
        is_known = self.follow_up.horizon is not None or self.follow_up.n_lost == 0
        return is_known and (self.around is not None or self.n_draws > 1)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions under which the bounds hold."""
        drawn = (UNIFORM_DRAWS,) if self.is_randomized else ()
        rounded = (OWN_CELLS,) if self.is_rounded else ()
        own = (SAMPLE, FIXED, *drawn, *rounded, *self.evidence.assumptions)
        return (*own, *assumptions_of_times(self.follow_up))

    @property
    def not_covered(self) -> tuple[str, ...]:
        """Situations that the bounds do not cover."""
        others: tuple[str, ...] = ()
        if self.bounds_every_group:
            others = OTHER_GROUPS
        elif self.events is not None:
            others = (SMALLER_GROUPS,)
        shares = (SHARES_OF_ROWS,) if self.one_row_each else ()
        return (SHIFT, *others, *beyond(self.follow_up), *shares)

    def group_error(self, mass: float) -> float:
        """Upper bound for the W1 error, 0 to 1/2, of every group of at least this share of people.

        It is the mean of the largest pathwise errors that people may have. Simultaneous for all
        masses, except with betting.

        Parameters
        ----------
        mass : float
            Smallest share of people in the group, 0 < mass <= 1.
        """
        check_fraction("mass", mass, high_open=False)
        if self.method == "betting":
            return self._worst_mean(self.evidence.errors, mass, WORST, self.confidence)
        if mass < 1:
            # the overall error bounds no other group here: that of randomized PITs is not the error
            # in the reading of cells of the other people
            return self._band.cvar(mass)
        overall = self.evidence.error_interval(1 - (1 - self.confidence) * AVERAGE_SHARE)[1]
        return min(self._band.cvar(1.0), overall)

    def promise(self, mass: float) -> Promise:
        """Raise InputError: nothing is promised that served forecasts can show."""
        raise InputError(NO_PROMISE_OF_TIMES)

    @cached_property
    def questions(self) -> pd.DataFrame:
        """Questions that these rows can or cannot answer: `question`, `answered`, `why`."""
        return questions_of_times(
            self.is_randomized, self.link is not None, self.n_draws, self.follow_up
        )

    def _remarks(self) -> list[str]:
        return [*remarks_of_times(self.follow_up, in_cells=True), *super()._remarks()]
