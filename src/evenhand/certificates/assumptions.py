"""What certificates assume and what they do not cover, as text (method: proof)."""

from __future__ import annotations

ASSUMPTIONS = (
    (
        "the rows are a sample of the people the statement is about, exchangeable and independent"
        " of each other"
    ),
    (
        "the forecaster, its recalibration and its randomization were fixed before these rows were"
        " seen"
    ),
    "each draw is uniform, independent of the person and of other people's draws",
)
"""Assumptions of every certificate: the sample, what was fixed beforehand, the draws."""

OWN_DRAWS = (
    "the draws, which were not given, are each person's own, one in each of as many equal cells of"
    " [0, 1]"
)
"""Assumed where PITs over several draws come without the draws."""

ROUNDED = (
    "errors and gaps were rounded up to bins of 1/{error} and 1/{gap}, which only widens bounds"
)
"""Effect of counting PITs in bins."""

NOT_COVERED = (
    "a shift in time or population after these rows",
    "groups formed after seeing the draws, such as the people who were approved",
    "groups smaller than the stated mass",
    "outcomes that are not continuous",
)
"""Not covered by any certificate."""

SHARES_OF_ROWS = (
    "groups by their share of the rows: one row of each person was used, so sizes are shares of"
    " people"
)
"""Not covered where people have several rows."""

DRAWS_ONLY = frozenset((ASSUMPTIONS[2], OWN_DRAWS, *NOT_COVERED[1:3]))
"""Assumptions and limits that concern randomized forecasts only."""

CHOSEN = "the choice of the randomization on these people, in bounds for named groups"
"""Not covered by bounds for every group that account for a choice on the same people."""

ONE_ROW_EACH = "One row of each person was used: group sizes are shares of people, not of rows."
"""Remark of results where people have several rows."""
