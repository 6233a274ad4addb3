"""Assumptions and limits of certificates, as text (method: proof)."""

from __future__ import annotations

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
