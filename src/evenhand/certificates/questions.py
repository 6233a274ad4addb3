"""Questions about a forecaster that rows can or cannot answer (method: sharp certificate)."""

from __future__ import annotations

import pandas as pd

from evenhand.certificates.assumptions import NO_HORIZON
from evenhand.certificates.follow_up import FollowUp
from evenhand.distributions import OutcomeKind

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
