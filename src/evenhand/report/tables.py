"""Tables of an audit, written once from its typed rows for pages, full text and documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec

from evenhand._format import (
    LEAST_FLOOR,
    UNKNOWN,
    Show,
    at_least,
    at_most,
    band,
    confidence_in_full,
    in_full,
    is_known,
    number,
    percent,
    plain_number,
    points,
    points_in_full,
    ratio,
    whole,
)
from evenhand._kinds import HIGHER, LOWER
from evenhand._table import Cells, Column, Item, Table, Value
from evenhand.report.kinds import IN_TIME, Kind, formatter_of, signed, units_of
from evenhand.report.slots import capitalized, name_of
from evenhand.results import (
    AuditRows,
    Bound,
    EventBound,
    Finding,
    Interval,
    Membership,
    NamedBound,
    PlainInterval,
    Survival,
)
from evenhand.results import Cell as UnionCell

replace = msgspec.structs.replace

LISTED = 400
"""Most groups that a page or text lists."""

FIRST = 10
"""Most groups beside everyone in the first table of a page."""


BY_FORECAST = "Everyone, by forecast"
"""Name of all people where errors of low and high forecasts do not cancel."""


def of(label: str, items: Iterable[Item], cells: Cells[Item], **options: Any) -> Table | None:
    """Return a table without the columns that are unknown in all rows; None without rows."""
    rows = list(items)
    nothing = {UNKNOWN, ""}
    known = {k: write for k, write in cells.items() if {str(write(one)) for one in rows} - nothing}
    return Table.of(label, rows, known, **options) if rows else None


def estimate(one: Interval, show: Show) -> Value:
    """Write an estimate with its interval, or its lower end alone; sorted by the estimate."""
    reach = band(show, one.low, one.high)
    if one.high is None and is_known(one.low):
        reach = f"{at_least(max(one.low, 0.0), show)} or more"
    return Value(show(one.value, "nearest"), reach, one.value)


def whole_number(value: float | None) -> Value:
    """Write a count, sorted by it."""
    return Value(whole(None if value is None else round(value)), order=value)


def share(value: float | None) -> Value:
    """Write a share, sorted by it."""
    return Value(percent(value), order=value)


# --- groups: everyone, and whatever made a group


def groups(label: str, found: Sequence[Finding], rows: AuditRows, **options: Any) -> Table | None:
    """Return the table of findings: the exact rule of each group, its numbers and its result."""
    kind = Kind.of(rows)

    def bias(one: Finding) -> Value:
        if not kind.has_rates:
            return Value(signed(one.bias, show=plain_number), order=one.bias)
        # the bound of a group found by search is one of its error, of which a bias may be no part
        if one.bias is None or (one.mass and one.direction not in (HIGHER, LOWER)):
            return estimate(one.size, points)
        reach = band(signed, one.bias_low, one.bias_high)
        if reach == UNKNOWN and one.least:
            reach = f"{at_least(one.least)} or more"
        return Value(signed(one.bias), reach, one.bias)

    def times(one: Finding) -> Value:
        value = one.rate / one.predicted if one.rate is not None and one.predicted else None
        return Value(ratio(value), order=value)

    def error(one: Finding) -> Value:
        # the error of a few rows is mostly chance: it is not shown, and rows are not sorted by it
        return Value(UNKNOWN) if one.too_small or kind.has_rates else estimate(one.size, points)

    return of(
        label,
        found,
        {
            "Group": lambda one: rule_of(one, rows),
            "Rows": lambda one: whole_number(one.n),
            "Predicted": lambda one: share(one.predicted),
            "Observed": lambda one: share(one.rate),
            "Times": times,
            "80% interval covers": lambda one: share(one.coverage_80),
            kind.residual: bias,
            "Error in points": error,
            "Without an assumption": lambda one: Value(
                band(points, one.least_error, one.most_error), order=one.least_error
            ),
            Column("Result"): lambda one: result(one, rows),
        },
        **options,
    )


def rule_of(one: Finding, rows: AuditRows) -> Value:
    """Write the exact rule of a group, and how it was found."""
    if one.mass is not None:
        return Value(one.group or name_of(one, rows), "found by search" if one.group else UNKNOWN)
    if one.part is not None:
        return Value(capitalized(name_of(one, rows)))
    if one is rows.everyone or one is rows.given:
        return Value("Everyone" if one is rows.everyone else "Everyone, by their own forecasts")
    if one.group == BY_FORECAST:
        return Value(one.group, "mean distance over groups by the forecast")
    return Value(one.group, "members known by probability" if one.probable else UNKNOWN)


def result(one: Finding, rows: AuditRows) -> Value:
    """Write what was found of a group."""
    if one.same_as is not None:
        return Value(f"same rows as {one.same_as}", tone="soft")
    if one.too_small or one.possible_leak:
        return Value("too few rows" if one.too_small else "possible leak", tone="soft")
    if one.problem:
        # the difference beside it does not show a slope
        is_slope = one.slope is not None and not one.is_mean_off
        slope = f"slope {ratio(one.slope)}" if is_slope else UNKNOWN
        return Value("problem found", slope, tone="bad")
    if not (one.is_judged and one.is_proven(rows.tolerance)):
        return Value("none found", tone="soft")
    within = f"{'rate ' * rows.is_event}within {points_in_full(rows.tolerance)}"
    return Value("none found" if one.off else within, tone="good")


def everyone(rows: AuditRows) -> list[Finding]:
    """Return all people; of 0/1 outcomes on average and by score, where errors do not cancel."""
    one = rows.everyone
    if one.rate is None:
        # given the own forecast, if the problem is there
        return [found for found in rows.overall if found.same_as is None]
    size, name = abs(one.bias or 0.0), "Everyone, on average"
    is_off = one.problem and one.is_mean_off and size > rows.tolerance
    ends = [abs(end) for end in (one.bias_low, one.bias_high) if end is not None]
    most = max(ends, default=None)
    average = replace(one, group=name, error=size, error_high=most, off=is_off, problem=is_off)
    # of both rows one has the problem
    same = name if is_off else None
    by_score = replace(one, group=BY_FORECAST, predicted=None, rate=None, bias=None, same_as=same)
    return [average, by_score]


def first_groups(rows: AuditRows) -> tuple[list[Finding], list[Finding]]:
    """Return the groups of the first table, the worst first, and the others."""
    own = [one for one in rows.by_forecast if one.problem and one.same_as is None]
    found = [*own, *rows.named, *rows.scanned, *rows.learned]
    place = {id(one): i for i, one in enumerate(rows.problems)}
    found.sort(key=lambda one: (place.get(id(one), len(place)), one.rank))
    others = [one for one in found[FIRST:] if one not in own]
    return found[:FIRST], others[: LISTED - FIRST]


def membership(rows: AuditRows) -> Table | None:
    """Return bounds for groups known by probability."""

    def ends(name: str, show: Show) -> Callable[[Membership], str]:
        return lambda one: band(show, getattr(one, f"{name}_least"), getattr(one, f"{name}_most"))

    return of(
        "Groups known by probability",
        rows.membership,
        {
            "Group": lambda one: one.group,
            "Members expected": lambda one: whole_number(one.members),
            "80% interval covers": ends("coverage_80", percent),
            "90% interval covers": ends("coverage_90", percent),
            "Outcome minus forecast": ends("bias", number),
        },
        note="Valid however membership and outcome relate, if probabilities are right on average.",
    )


def miscoverage(rows: AuditRows) -> Table | None:
    """Return how far the coverage differs from its level for people with the same features."""
    return of(
        "Coverage by features",
        rows.miscoverage,
        {
            "Interval": lambda one: in_full(one.level),
            "Mean difference, points": lambda one: estimate(
                Interval(one.excess, one.low, one.high), points
            ),
            "Lowest fifth of people": lambda one: percent(one.lowest_fifth),
            "Highest fifth": lambda one: percent(one.highest_fifth),
            "Rows": lambda one: whole_number(one.n),
        },
        note="How far coverage is from its level for people of equal features, by a model.",
    )


def worst_groups(rows: AuditRows) -> Table | None:
    """Return the worst group of each size, chosen with the outcomes known."""
    return of(
        "Worst groups of each size",
        rows.worst_groups,
        {
            "Size of the group": lambda one: f"{in_full(one.mass)} of people",
            "Error in points": lambda one: points(one.error),
            "Right forecasts would show": lambda one: band(points, one.null_low, one.null_high),
            "Proven, at most": lambda one: at_most(one.certified),
        },
        note="The groups of the largest error, chosen with the outcomes known: no group is worse.",
    )


# --- calibration, rates and scores


def reliability(rows: AuditRows) -> Table | None:
    """Return predicted probabilities and event rates by group."""
    confidence = confidence_in_full(rows.confidence)
    return of(
        "Rates by predicted probability",
        rows.reliability,
        {
            "Group": lambda one: one.group,
            "Predicted": lambda one: share(one.probability),
            "Observed": lambda one: estimate(Interval(one.rate, one.low, one.high), percent),
            "Rows": lambda one: whole_number(one.n),
        },
        note=f"The intervals of all bins of a group hold together, with {confidence} confidence.",
    )


def survival(rows: AuditRows) -> Table | None:
    """Return everyone, then groups by falling distance of predicted and observed rate."""
    note = (
        f"Observed rates are Kaplan-Meier estimates, which assume that {IN_TIME}. Their intervals"
        f" hold together with {confidence_in_full(rows.confidence)} confidence. Without an"
        " assumption: from nobody to everybody who was lost had the event."
    )
    return of(
        "Rates by the horizon",
        survival_rows(rows),
        {
            "Group": lambda one: one.group,
            "Predicted": lambda one: share(one.predicted),
            "Observed": lambda one: estimate(Interval(one.observed, one.low, one.high), percent),
            "Without an assumption": lambda one: Value(
                band(percent, one.least, one.most), order=one.least
            ),
            "Events": lambda one: whole_number(one.n_events),
            "Lost": lambda one: whole_number(one.n_lost),
            "Rows": lambda one: whole_number(one.n),
        },
        note=note,
    )


def survival_rows(rows: AuditRows) -> list[Survival]:
    """Return everyone, then groups by falling distance of predicted and observed rate."""
    shown = [one for one in rows.survival if None not in (one.predicted, one.observed)]
    others = sorted(shown[1:], key=lambda one: -abs((one.observed or 0.0) - (one.predicted or 0.0)))
    return shown[:1] + others


def scores(rows: AuditRows) -> Table | None:
    """Return the scores of everyone."""
    unit = Kind.of(rows).unit
    words = {"share": "of outcomes", "probability": "points", units_of(rows.target): unit}
    return of(
        "Scores",
        rows.scores,
        {
            "Score": lambda one: capitalized(one.measure),
            "Mean": lambda one: formatter_of(one.unit)(one.value),
            "95% interval": lambda one: band(formatter_of(one.unit), one.low, one.high),
            Column("Unit"): lambda one: words.get(str(one.unit), str(one.unit or "of outcomes")),
        },
    )


def probability_scores(rows: AuditRows) -> Table | None:
    """Return the scores of probabilities that the field reports, of everyone and of groups."""
    note = (
        "The slope is below 1 if probabilities are too extreme; the intercept is 0 if the rate is"
        " right. O:E: events divided by expected ones. ICI and Emax: mean and largest distance of"
        " the smoothed rate from the probability. Each interval holds for itself, with"
        f" {confidence_in_full(rows.confidence)} confidence."
    )
    return of(
        "Scores of probabilities",
        rows.probability_scores,
        {
            "Group": lambda one: one.group,
            "Slope": lambda one: estimate(one.interval("slope"), ratio),
            "Intercept": lambda one: estimate(one.interval("intercept"), ratio),
            "O:E": lambda one: estimate(one.interval("observed_expected"), ratio),
            "ICI, points": lambda one: points(one.ici),
            "Emax, points": lambda one: points(one.e_max),
            "AUC": lambda one: number(one.auc),
            "Brier": lambda one: number(one.brier),
            "Scaled": lambda one: percent(one.scaled_brier),
            "Log loss": lambda one: number(one.log_loss),
            "Events": lambda one: whole_number(one.n_events),
            "Rows": lambda one: whole_number(one.n),
        },
        note=note,
    )


# --- what is proven


def every_group(found: Iterable[Bound], people: str = "people") -> Table | None:
    """Return the bounds for every group of a size, named or not."""
    return of(
        "Bounds for every group, named or not",
        found,
        {
            "Every group of at least": lambda one: f"{in_full(one.mass)} of {people}",
            "Error at most, points": lambda one: at_most(one.group_error),
            "80% interval covers at least": lambda one: at_least(one.coverage_80_low, percent),
            "At most": lambda one: at_most(one.coverage_80_high, percent),
        },
    )


def plain_intervals(found: Sequence[PlainInterval], *, may_be_lost: bool) -> Table | None:
    """Return the floors of intervals without a draw by level and group size."""
    masses = sorted({one.mass for one in found if one.mass < 1})
    floors = {(one.level, one.mass): one.floor for one in found}
    levels = [one for one in found if masses and one.mass == masses[0]]
    if max(floors.values(), default=0.0) < LEAST_FLOOR:
        return None

    def floor(one: PlainInterval, mass: float) -> str:
        return at_least(floors.get((one.level, mass)), percent)

    return of(
        "Coverage of intervals without a draw in every group",
        levels,
        {
            "Interval": lambda one: in_full(one.level),
            # of people who are lost it is not known, so that they count as missed
            f"Covers{', at least' * may_be_lost}": lambda one: percent(one.covered),
            **{f"In every {in_full(mass)}, at least": partial(floor, mass=mass) for mass in masses},
            "Width, of today's 80%": lambda one: percent(one.width, decimals=0),
        },
    )


def named_bounds(found: Iterable[NamedBound]) -> Table | None:
    """Return the certified bounds for named groups, by falling lower bound."""
    listed = sorted(found, key=lambda one: (-(one.low or 0.0), -(one.error or 0.0)))[:LISTED]
    return of(
        "Bounds for named groups",
        listed,
        {
            "Group": lambda one: one.group,
            "Rows": lambda one: whole_number(one.n),
            "Error at least, points": lambda one: Value(at_least(one.low), order=one.low),
            "At most": lambda one: Value(at_most(one.high), order=one.high),
        },
    )


def event_bounds(found: Iterable[EventBound]) -> Table | None:
    """Return the certified event rates and biases of every group of all people, by size."""
    return of(
        "Bounds for events",
        sorted(found, key=lambda one: one.mass),
        {
            "Every group of at least": lambda one: f"{in_full(one.mass)} of people",
            "Rate minus probability, at least, points": lambda one: at_least(one.bias_low),
            "At most": lambda one: at_most(one.bias_high),
            Column("Predicted at most"): lambda one: in_full(one.below),
            "have the event, at most": lambda one: at_most(one.event_rate_below, percent),
            Column("Predicted at least"): lambda one: in_full(one.above),
            "have the event, at least": lambda one: at_least(one.event_rate_above, percent),
        },
    )


def unions(cells_of: Iterable[UnionCell]) -> Table | None:
    """Return the bounds for cells of named columns, the worst first."""

    def worst(one: UnionCell) -> float:
        ends = one.get("error"), one.get("bias_high"), -(one.get("bias_low") or 0.0)
        return -max(end or 0.0 for end in ends)

    return of(
        "Bounds for unions of groups",
        sorted(cells_of, key=worst),
        {
            "Group": lambda one: one["cell"],
            "Rows": lambda one: whole_number(one["n"]),
            "Error at most, points": lambda one: at_most(one.get("error")),
            "80% interval covers": lambda one: band(
                percent, one.get("coverage_80_low"), one.get("coverage_80_high")
            ),
            "Rate minus probability, points": lambda one: band(
                points, one.get("bias_low"), one.get("bias_high")
            ),
        },
    )
