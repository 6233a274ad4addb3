"""Assumptions and limits of certificates, as text (method: proof)."""

from __future__ import annotations

ASSUMPTIONS = (
    (
        "the rows are a random sample of the population to which the certificate applies,"
        " exchangeable and independent of each other"
    ),
    ("the forecaster, its recalibration and its randomization were fixed without using these rows"),
    ("each draw is uniform on [0, 1] and independent of the person and of other people's draws"),
)
"""Assumptions of every certificate, on the sample, on fixed models and on draws."""

OWN_DRAWS = (
    "the draws, which were not given, were made separately for each person, one in each of as many"
    " equal cells of [0, 1]"
)
"""Assumption where PITs over several draws are given without the draws."""

ROUNDED = (
    "pathwise errors and gaps |PIT - r| were rounded up to bins of width 1/{error} and 1/{gap},"
    " which only widens the bounds"
)
"""Effect of counting PITs in bins."""

NOT_COVERED = (
    "changes over time or in the population after these rows were collected",
    "groups formed after seeing the draws, such as the people who were approved",
    "groups smaller than the group size of a bound",
    "outcomes that are not continuous",
)
"""Not covered by any certificate."""

SHARES_OF_ROWS = (
    "groups measured by their share of the rows: one row per person was used, so group sizes are"
    " shares of people"
)
"""Not covered where people have several rows."""

DRAWS_ONLY = frozenset((ASSUMPTIONS[2], OWN_DRAWS, *NOT_COVERED[1:3]))
"""Assumptions and limits that concern randomized forecasts only."""

CHOSEN = "the choice of the randomization on these same people, in the bounds for named groups"
"""Not covered where only the bounds for every group account for a choice on the same people."""

ONE_ROW_EACH = "One row per person was used: group sizes are shares of people, not of rows."
"""Remark of results where people have several rows."""
