"""Text of a plan: two tables, and what they assume."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evenhand._format import (
    UNKNOWN,
    Toward,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    nats,
    percent,
    plain_number,
    points_in_full,
    whole,
)
from evenhand._table import Cells, Column, Table, numeric, wrapped
from evenhand.certificates import LEAST_ALPHA
from evenhand.planning.random_samples import PROBABILITY
from evenhand.planning.target import MaxGroupError, MaxWider
from evenhand.search import MIN_SIZE

if TYPE_CHECKING:
    from evenhand.planning.plans import Plan, PlannedCertificate


def text(found: Plan) -> str:
    """Return both tables with their sentences."""
    return "\n\n".join(
        [
            wrapped(_heading(found)),
            _certificates(found).text(),
            wrapped(_remarks(found)),
            wrapped(TESTED),
            _tests(found).text(),
        ]
    )


TESTED = (
    "Rows of a group with which the test of an audit detects an error of that group, at a"
    " significance level of 5%. The outcomes of the group have the right spread and are shifted, by"
    " the given multiple of their standard deviation. All tested groups count, including scanned"
    f" groups. Groups of fewer than {MIN_SIZE} rows are not tested by default."
)


def _heading(found: Plan) -> str:
    groups = (
        f"in every group of at least {in_full(found.target.group_mass)} of people, with"
        f" {confidence_in_full(found.target.confidence)} confidence ({found.link} link)"
    )
    goal = found.target.goal
    if isinstance(goal, MaxGroupError):
        return (
            "Price of certifying that predicted probabilities are off by at most"
            f" {points_in_full(goal.most)} points {groups}:"
        )
    cost = (
        f"80% prediction intervals are at most {in_full(goal.most)} wider"
        if isinstance(goal, MaxWider)
        else f"the price is at most {plain_number(goal.most)} nats"
    )
    limit = found.certificates[-1]
    return (
        f"Error that can be certified for predicted probabilities {groups}, if {cost} (alpha"
        f" {plain_number(limit.alpha)}: {nats(limit.price)},"
        f" {percent(limit.wider, decimals=0)} wider):"
    )


def _remarks(found: Plan) -> str:
    remarks = [
        "Rows are people held out for the certificate. The numbers are for a model that is"
        f" calibrated before the randomization: at least {in_full(PROBABILITY)} of random samples"
        " certify this. For a miscalibrated model less can be certified, or at a higher price."
    ]
    if found.rows_needed is not None:
        rows = count(found.rows_needed, "row is", "rows are")
        remarks.append(
            f"At least {rows} needed, at any price (the smallest alpha is {LEAST_ALPHA:g})."
        )
    return " ".join(remarks)


def _certificates(found: Plan) -> Table:
    cells: Cells[PlannedCertificate] = {
        numeric("rows"): lambda one: "unlimited" if one.n_samples is None else whole(one.n_samples)
    }
    if isinstance(found.target.goal, MaxGroupError):
        cells |= {
            numeric("alpha"): _known(lambda one: plain_number(one.alpha)),
            numeric("price"): _known(lambda one: nats(one.price)),
            numeric("80% intervals are wider by"): _known(
                lambda one: percent(one.wider, decimals=0)
            ),
        }
    else:
        cells[numeric("error in every group (points)")] = _known(
            lambda one: at_most(one.group_error)
        )
    cells |= {
        numeric("80% intervals cover in every group"): _known(
            lambda one: band(_whole_percent, one.coverage_low, one.coverage_high)
        ),
        Column("bound"): lambda one: UNKNOWN if one.bound is None else one.bound,
    }
    return Table.of("Certificates by the number of rows", found.certificates, cells)


def _known(write: Callable[[PlannedCertificate], str]) -> Callable[[PlannedCertificate], str]:
    """Write the cell of a certificate that exists."""
    return lambda one: UNKNOWN if one.alpha is None else write(one)


def _whole_percent(share: float | None, toward: Toward) -> str:
    return percent(share, toward, decimals=0)


def _tests(found: Plan) -> Table:
    needed = {(one.error, one.n_groups, one.power): one.n_samples for one in found.group_tests}
    shifts = {one.error: one.shift for one in found.group_tests}

    def rows(size: int, power: float) -> Callable[[float], str]:
        return lambda error: whole(needed[error, size, power])

    cells: Cells[float] = {
        numeric("error (points)"): points_in_full,
        numeric("shift"): lambda error: f"{shifts[error]:.2f}",
    }
    for size, power in dict.fromkeys((one.n_groups, one.power) for one in found.group_tests):
        title = f"{in_full(power)} power, {count(size, 'group')}"
        cells[numeric(title)] = rows(size, power)
    return Table.of("Rows of a group by its error", shifts, cells)
