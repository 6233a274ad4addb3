"""Assumptions and limits of certificates, follow-up of people, and questions with answers."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self

import pandas as pd

from evenhand._format import count, number_in_full
from evenhand.calibration import CensoredTimes
from evenhand.distributions import OutcomeKind

SAMPLE = (
    "the rows are a random sample of the population to which the certificate applies, exchangeable"
    " and independent of each other"
)
"""Assumption of every certificate."""

FIXED = (
    "the forecaster, its recalibration and its randomization were fixed without using these rows"
)
"""Assumption where nothing was chosen on the certification rows."""

FIXED_LINK = (
    "the link was fixed without using these rows, for the bounds of named groups and of mPAIC"
)
"""Assumption of the bounds that a `LinkCertificate` does not give, unless the link was chosen on
the certification rows."""

FIXED_EVENT = "the forecaster and its recalibration were fixed without using these rows"
"""Assumption of certificates of 0/1 forecasts, which are not randomized."""

FIXED_HURDLE_LINK = (
    "the link was fixed without using these rows, for the bounds of all people and of named groups"
    " under the whole forecast, and for that of mPAIC"
)
"""Assumption of the bounds that do not follow from the PITs off the atom, unless the link was
chosen on the certification rows."""

UNIFORM_DRAWS = (
    "each draw is uniform on [0, 1] and independent of the person and of other people's draws"
)
"""Assumption on the draws of randomized forecasts."""

OWN_DRAWS = (
    "the draws, which were not given, were made separately for each person, one in each of as many"
    " equal cells of [0, 1]"
)
"""Assumption where PITs over several draws are given without the draws."""

OWN_TIES = (
    "the position of each PIT within the probability of its outcome is uniform on [0, 1] and"
    " independent of the person, of the draw and of other people"
)
"""Assumption where outcomes have atoms, so that PITs are randomized within cells."""

OWN_CELLS = (
    "outcomes were rounded: they lie anywhere in their rounding cells, distributed as the forecasts"
    " predict"
)
"""Assumption where continuous forecasts are compared with rounded outcomes."""

MEANINGS = {
    OutcomeKind.COUNT: (
        "Errors are those of randomized PITs, averaged over the position within the probability of"
        " an outcome. Prediction intervals contain whole outcomes, so they may cover more than"
        " their nominal level."
    ),
    OutcomeKind.BINARY: (
        "For 0/1 outcomes, the error of people with the same forecast is half of the difference"
        " between the forecast and their event rate."
    ),
}
"""Remarks on the meaning of errors, by kind of outcome."""

ROUNDED = (
    "pathwise errors and gaps |PIT - r| were rounded up to bins of width 1/{error} and 1/{gap},"
    " which only widens the bounds"
)
"""Effect of counting PITs in bins."""

SHIFT = (
    "changes over time or population; if densities of rows grow at most k-fold, which rows cannot"
    " show, bounds at size 1/k still hold"
)
"""Not covered by any certificate, and the change that is (method: 12): where the density of
features and outcomes is at most k times that of the certified people, an average over the new
people is one over a group of size 1/k, in the sense of weights of at most k."""

DISCRETE = "outcomes that are not continuous"
"""Not covered by certificates from PITs of points, without cells."""

SMALLER_GROUPS = "groups smaller than the size for which a bound is given"
"""Not covered by bounds for every group of a size."""

OTHER_GROUPS = (
    "groups formed after seeing the draws, such as the people who were approved",
    SMALLER_GROUPS,
)
"""Not covered by bounds for every group of a size, which need randomized forecasts."""

SHARES_OF_ROWS = (
    "groups measured by their share of the rows: one row per person was used, so group sizes are"
    " shares of people"
)
"""Not covered where people have several rows."""

MEAN_PROBABILITIES = (
    "averages of forecast probabilities over draws, which strong randomization moves towards 1/2"
)
"""Not covered where a count or an ordinal score is randomized (outcomes: Theorem 2d)."""

ATOM = (
    "the probability of {atom} in the forecasts, except as a 0/1 event: bounds for every group are"
    " for people whose outcome is not {atom}"
)
"""Not covered where only the continuous part of a forecast is randomized (outcomes: 4.2)."""

BY_HORIZON = (
    "the probability of an event by the horizon {horizon}, except as a 0/1 event: bounds for every"
    " group are for people who have the event by then"
)
"""Not covered where only the time of an event before the horizon is randomized."""

CHOSEN = "the choice of the randomization on these same people, in the bounds for named groups"
"""Not covered where only the bounds for every group account for a choice on the same people."""

CHOSEN_HURDLE = (
    "the choice of the randomization on these same people, in the overall bound and in the bounds"
    " for named groups"
)
"""Not covered where the randomization of the continuous part was chosen on the same people."""

ONE_ROW_EACH = "One row per person was used: group sizes are shares of people, not of rows."
"""Remark of results where people have several rows."""

FIXED_HORIZON = "the horizon was chosen without using these rows"
"""Assumption of certificates of times that may be cut off."""

ENTRY = (
    "the time at which a person enters is independent of everything else about the person, so that"
    " those who entered at least a horizon before the end of follow-up represent all"
)
"""Assumption where only people who could be followed until the horizon are used (outcomes: 5)."""

BEYOND_HORIZON = "what happens after the horizon {horizon}"
"""Not covered by certificates of times with a horizon."""

NO_HORIZON = (
    "a time that is cut off may have any error up to the largest, so nothing is proven for groups"
    " that may contain nobody else; give a horizon up to which people are followed"
)
"""Why nothing is proven for every group without a horizon (outcomes: 5)."""

NO_PROMISE_OF_TIMES = (
    "nothing is promised that served forecasts can show: the outcomes of people who are lost before"
    " the horizon are not known; watch named groups"
)
"""Why a watch cannot test certificates of times that may be cut off."""

LOST = (
    "No assumption is made on why people were lost: each of them counts with the largest error"
    " that any time after the last observation can have."
)
"""Remark of certificates of times with a horizon."""

WHOLE_CELLS = (
    "Outcomes are times up to the horizon: of a person who reached it without the event, forecasts"
    " are only compared with the fact that the time is later."
)
"""Meaning of errors of times with a horizon: the reading of cells (outcomes: 5)."""

WEIGHTED = (
    "weighted rows are not a sample of the people; if the weights are known and at most W times"
    " their mean, certify without them and read the bounds at mass / W"
)
"""Why certificates refuse weights, and what to do."""


# --- follow-up of certified people whose times may be cut off (outcomes: 5)


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


# --- questions that rows can or cannot answer (method: sharp certificate)

SEVERAL = "with several draws per person, the error of each person's own forecasts is observed"

INSIDE_LINK = (
    "the forecasts are those of a link around a deterministic forecaster, whose PITs bound the"
    " error under all draws"
)

ONE_DRAW = "only one draw per person is known; give PITs over several draws of the same forecaster"

# the sharp floor (method.md, 11, Theorem 2)
ONE_FORECAST = (
    "with one forecast per person and uniform PITs, no bound below (1 - size) / 2 can be certified,"
    " which is 0.4 for a fifth of the people: no rows can rule out that features define the group"
    " of the people with the lowest PITs"
)

ONE_FORECAST_OF_COUNTS = (
    "with one forecast per person no bound below the error of the people with the lowest or the"
    " highest outcomes, compared with their forecasts, can be certified: no rows can rule out that"
    " features define their group"
)

FLOOR = (
    "a floor only: a group contains at most all people whom an interval misses, so the share that"
    " it misses in the group is at most the share that it misses among all people, divided by the"
    " size of the group; see coverage"
)


BINARY = (
    "no bound for the bias of a group can be certified below the mean of the largest differences"
    " between outcome and forecast: no rows can rule out that features define the group of these"
    " people. Randomization does not lower this bound; see bias for its size"
)

EVENT_RATE = (
    "a group contains at most all people who have a low forecast and the event; see event_rate"
)

EACH_PERSON = (
    "one outcome per person cannot show a probability, and no randomized 0/1 forecast but the true"
    " probabilities is calibrated for each person"
)

LOST_ON_AVERAGE = (
    "whatever happened to people whose times are cut off; the bounds are wide where they are many"
)

WORST_LOST = (
    "each person who was lost before the horizon counts with the largest error that any outcome"
    " would have"
)

_COLUMNS = ["question", "answered", "why"]

_ON_AVERAGE = [
    ("is it calibrated on average", True, "one PIT per person suffices, for any forecaster"),
    (
        "is it calibrated for groups named beforehand",
        True,
        "one PIT per person suffices, in each group",
    ),
]


def questions(
    is_randomized: bool,
    is_link: bool,
    n_draws: int,
    kind: OutcomeKind = OutcomeKind.CONTINUOUS,
) -> pd.DataFrame:
    """Return the questions that rows can or cannot answer about this kind of forecaster.

    Parameters
    ----------
    is_randomized : bool
        Whether the forecasts depend on a draw.
    is_link : bool
        Whether the forecaster is a known link around a deterministic one.
    n_draws : int
        Number of draws per person.
    kind : OutcomeKind, default "continuous"
        Kind of outcome; for a hurdle, the questions about its continuous part.

    Returns
    -------
    DataFrame
        Columns `question`, `answered`, `why`.
    """
    if kind is OutcomeKind.BINARY:
        return pd.DataFrame(_ON_AVERAGE + event_questions(), columns=_COLUMNS)
    return pd.DataFrame(
        _ON_AVERAGE + group_questions(is_randomized, is_link, n_draws, kind), columns=_COLUMNS
    )


def hurdle_questions(
    is_randomized: bool, is_link: bool, n_draws: int, atom: str, follow_up: FollowUp | None = None
) -> pd.DataFrame:
    """Return the questions about a forecaster of outcomes with an atom at an end of the range.

    Parameters
    ----------
    is_randomized, is_link, n_draws
        As in `questions`, of the continuous part.
    atom : str
        The atom, as text.
    follow_up : FollowUp, optional
        For times that may be cut off, whose atom is the horizon.
    """
    events = event_questions()
    others = group_questions(is_randomized, is_link, n_draws, OutcomeKind.CONTINUOUS)
    average = _ON_AVERAGE
    whether, among = (
        f"whether the outcome is {atom}",
        f"among the people whose outcome is not {atom}",
    )
    if follow_up is not None:
        average = [(text, known, LOST_ON_AVERAGE) for text, known, _ in average]
        events, others = with_lost(events, follow_up), with_lost(others, follow_up)
        whether, among = (
            f"whether the event happens by {atom}",
            f"among the people with the event by {atom}",
        )
    rows = [(f"{whether}: {text}", known, why) for text, known, why in events]
    rows += [(f"{among}: {text}", known, why) for text, known, why in others]
    return pd.DataFrame(average + rows, columns=_COLUMNS)


def questions_of_times(
    is_randomized: bool, is_link: bool, n_draws: int, follow_up: FollowUp
) -> pd.DataFrame:
    """Return the questions about forecasts of times that may be cut off.

    Parameters
    ----------
    is_randomized, is_link, n_draws
        As in `questions`.
    follow_up : FollowUp
        How many people were followed until the horizon.
    """
    average = [(text, answered, LOST_ON_AVERAGE) for text, answered, _ in _ON_AVERAGE]
    # with one forecast per person the floor is that of the lowest outcomes, as for counts: times
    # are compared up to the horizon only
    every = group_questions(is_randomized, is_link, n_draws, OutcomeKind.COUNT)
    return pd.DataFrame(average + with_lost(every, follow_up), columns=_COLUMNS)


def with_lost(
    rows: list[tuple[str, bool, str]], follow_up: FollowUp
) -> list[tuple[str, bool, str]]:
    """Return questions about every group of a size, of people of whom some may be lost."""
    if follow_up.n_lost == 0:
        return rows
    if follow_up.horizon is None:
        (error, *_), *others = rows
        unproven = [(text, False, NO_HORIZON if known else why) for text, known, why in others]
        return [(error, False, NO_HORIZON), *unproven]
    return [(text, known, f"{why}; {WORST_LOST}" if known else why) for text, known, why in rows]


def event_questions() -> list[tuple[str, bool, str]]:
    """Return the questions about every group of a given size under a 0/1 forecast."""
    return [
        (
            "is the event rate limited in every group of a given size with low forecasts",
            True,
            EVENT_RATE,
        ),
        ("is it calibrated for every group of a given size", False, BINARY),
        ("is the probability of each person right", False, EACH_PERSON),
    ]


def group_questions(
    is_randomized: bool, is_link: bool, n_draws: int, kind: OutcomeKind
) -> list[tuple[str, bool, str]]:
    """Return the questions about every group of a given size, and of groups after the draws."""
    is_answered = is_link or n_draws > 1
    error = coverage = ONE_DRAW
    if is_answered:
        error = coverage = INSIDE_LINK if is_link else SEVERAL
    elif not is_randomized:
        error = ONE_FORECAST if kind is OutcomeKind.CONTINUOUS else ONE_FORECAST_OF_COUNTS
        coverage = FLOOR
    return [
        ("is it calibrated for every group of a given size", is_answered, error),
        (
            "do prediction intervals have their nominal coverage in every group of a given size",
            is_answered,
            coverage,
        ),
        (
            "is it calibrated for groups formed after the draws",
            False,
            "such groups can select people by their draws",
        ),
    ]
