"""Questions about a forecaster that rows can or cannot answer (method: sharp certificate)."""

from __future__ import annotations

import pandas as pd

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

FLOOR = (
    "a floor only: a group contains at most all people whom an interval misses, so the share that"
    " it misses in the group is at most the share that it misses among all people, divided by the"
    " size of the group; see coverage"
)


def questions(is_randomized: bool, is_link: bool, n_draws: int) -> pd.DataFrame:
    """Return the questions that rows can or cannot answer about this kind of forecaster.

    Parameters
    ----------
    is_randomized : bool
        Whether the forecasts depend on a draw.
    is_link : bool
        Whether the forecaster is a known link around a deterministic one.
    n_draws : int
        Number of draws per person.

    Returns
    -------
    DataFrame
        Columns `question`, `answered`, `why`.
    """
    is_answered = is_link or n_draws > 1
    error = coverage = ONE_DRAW
    if is_answered:
        error = coverage = INSIDE_LINK if is_link else SEVERAL
    elif not is_randomized:
        error = ONE_FORECAST
        coverage = FLOOR
    rows = [
        ("is it calibrated on average", True, "one PIT per person suffices, for any forecaster"),
        (
            "is it calibrated for groups named beforehand",
            True,
            "one PIT per person suffices, in each group",
        ),
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
    return pd.DataFrame(rows, columns=["question", "answered", "why"])
