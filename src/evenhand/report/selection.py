"""Texts of selections and plans: guarantee, choice, price, and the tables beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from evenhand._format import (
    UNKNOWN,
    at_least,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    is_known,
    is_trivial,
    log_score,
    nats,
    number,
    number_in_full,
    p_value,
    percent,
    plain_number,
    points,
    points_in_full,
    whole,
    with_error,
)
from evenhand._table import Cells, Column, Table, numeric, wrapped
from evenhand.report.certificates import ONE_ROW_EACH, follow_up_sentences
from evenhand.report.measures import log_score_name

Facts = Mapping[str, Any]

# --- a selection

NO_CEILING = 0.99
NO_WIDER = 0.01
"""Upper limit of a coverage that limits nothing, and relative difference of widths
up to which an interval without a draw is as wide as a randomized one."""


def guarantee(facts: Facts) -> str:
    """Return the guarantee of a selection: the bound, the groups and the number of people."""
    learned = f"; trained on {count(facts['n_learning'], 'other row')}"
    if facts["n_learning"] == 0:
        learned = ", whom the model must not have seen"
    # the bounds are for the people whose outcome is not an atom that is left as it is
    n_off_atom = facts["n_off_atom"]
    n = facts["n_certifying"] if n_off_atom is None else n_off_atom
    who = count(n, "person", "people") if facts["atom"] is None else f"{n:,} of them"
    return (
        f"In every group of at least {in_full(facts['group_mass'])} of {_people(facts)}, predicted"
        f" probabilities{_of_part(facts)} are off by at most {at_most(facts['group_error'])}"
        f" points, with {confidence_in_full(facts['confidence'])} confidence ({who}{learned})."
    )


def selection_sentences(facts: Facts, learned: Any, spread: Any) -> list[str]:
    """Return guarantee, choice and price, and what they are worth; one sentence or two each.

    `learned` and `spread` are the groups in which the model is off without a draw, or None.
    """
    is_randomized = facts["alpha"] < 1
    return [
        *worth_sentences(facts),
        *_spread(facts, spread),
        guarantee(facts),
        *([ONE_ROW_EACH] if facts["one_row_each"] else []),
        *_atom(facts),
        *_coverage(facts),
        *(_choice(facts) if is_randomized else _without_randomization(facts)),
        *(_price(facts) if is_randomized and is_known(facts["price"]) else []),
        *_learned_group(learned),
        *_recalibration(facts),
    ]


def forecasters_table(facts: Facts) -> str:
    """Return the comparison of forecasters on the certifying rows as text."""
    scored = facts["crps_people"]
    crps = "CRPS" if scored == facts["n_certifying"] else f"CRPS ({scored} people)"
    cells: Cells[Facts] = {
        Column("forecaster"): lambda row: row["forecaster"],
        numeric(log_score_name(facts["rounding_step"])): lambda row: log_score(row["log_score"]),
        numeric(crps): lambda row: with_error(row["crps"], row["crps_error"]),
        numeric("width (80%)"): lambda row: number(row["width"]),
        numeric("average error (points)"): lambda row: points(row["average_error"]),
        numeric("certified group error (points)"): lambda row: at_most(
            row["certified_group_error"]
        ),
    }
    return Table.of("Forecasters on the certifying rows", facts["comparison"], cells).text()


def caveat(facts: Facts) -> str:
    """Return the caveat for an audit of the rows on which the randomization was chosen.

    It reports first if the randomized forecast is worse than one that ignores every feature.
    """
    chosen = (
        "Alpha was chosen on these same people. Accounting for that: at most"
        f" {at_most(facts['group_error'])} points in every group of at least"
        f" {in_full(facts['group_mass'])} of {_people(facts)}, with"
        f" {confidence_in_full(facts['confidence'])} confidence. Bounds for named groups, 95%"
        " intervals and p-values do not account for it."
    )
    return " ".join([*worth_sentences(facts), chosen])


def _people(facts: Facts) -> str:
    """Return the people of whom group sizes are shares."""
    if facts["follow_up"] is not None:
        return f"the people who have the event by {number_in_full(facts['atom'])}"
    return (
        "people" if facts["atom"] is None else f"the people whose outcome is not {facts['atom']:g}"
    )


def _of_part(facts: Facts) -> str:
    """Return the outcomes that predicted probabilities are about, if not all."""
    if facts["follow_up"] is not None:
        return f" of times, given an event by {number_in_full(facts['atom'])},"
    return "" if facts["atom"] is None else f" of outcomes other than {facts['atom']:g}"


def _spread(facts: Facts, found: Any) -> list[str]:
    if found is None:
        return []
    where = f" (approximately: {found.description})" if found.description else ""
    return [
        "The width of this model's prediction intervals does not vary enough with the features."
        f" Its 80% intervals cover an estimated {percent(found.coverage_80, decimals=0)} of"
        f" outcomes in a group of {in_full(facts['group_mass'])} of people{where},"
        f" {percent(found.overall_80, decimals=0)} overall. A model that learns the spread would"
        " help more than a draw."
    ]


def _atom(facts: Facts) -> list[str]:
    """Return what is not randomized (outcomes: 4.2)."""
    if facts["atom"] is None:
        return []
    found = facts["follow_up"]
    what = f"{facts['atom']:g}" if found is None else "an event by the horizon"
    return [
        f"The probability of {what} is not randomized, because a draw cannot improve the forecast"
        " of an event.",
        *([] if found is None else follow_up_sentences(found)),
    ]


def _coverage(facts: Facts) -> list[str]:
    """Return both ends of the coverage, and what can be had without a draw."""
    low, high = facts["coverage_80"]
    lines = []
    if low > 0:
        ends = f"between {at_least(low, percent)} and {at_most(high, percent)} of outcomes."
        if is_trivial(high):
            ends = f"at least {at_least(low, percent)} of outcomes, with no upper limit."
        lines = [f"In every such group, 80% intervals{_of_part(facts)} cover {ends}"]
    plain = facts["plain"]
    if plain is not None and facts["alpha"] < 1:
        compared = "wider" if plain["wider"] >= 0 else "narrower"
        lines.append(
            f"A {in_full(plain['level'])} interval without a draw covers at least"
            f" {at_least(plain['floor'], percent)} there (separately, with"
            f" {confidence_in_full(plain['confidence'])} confidence) and"
            f" {percent(plain['covered'], decimals=0)} overall, with no upper limit; it is"
            f" {percent(abs(plain['wider']), decimals=0)} {compared} than the randomized 80%"
            " interval."
        )
        if plain["floor"] >= low > 0 and high >= NO_CEILING and plain["wider"] <= NO_WIDER:
            lines.append(
                "For prediction intervals the draw buys nothing here: a smaller group error, such"
                " as 0.25, buys an upper limit."
            )
    k, error = facts["planned_unions"]
    if k:
        lines.append(
            "Groups that are named need no draw: if the model is right,"
            f" {facts['n_certifying']:,} rows prove, in nine of ten samples, an error of at most"
            f" {at_most(error)} points in any group made of {count(k, 'equal cell')} of named"
            " columns; audit them with `groups` for the bound of your columns."
        )
    return lines


def _without_randomization(facts: Facts) -> list[str]:
    why = "No randomization was needed"
    if facts["max_group_error"] is None:
        why = "No randomization is possible within the price limit"
    error = _average_error(facts, "randomized")
    return [
        f"{why}: alpha = 1. Overall, predicted probabilities are off by an estimated"
        f" {points(error)} points."
    ]


def _average_error(facts: Facts, forecaster: str) -> float:
    """Return the estimated overall error of a forecaster of the comparison."""
    errors = {row["forecaster"]: row["average_error"] for row in facts["comparison"]}
    return float(errors[forecaster])


def _choice(facts: Facts) -> list[str]:
    what = "This is the least randomization with this guarantee"
    if facts["max_wider"] is not None:
        what = (
            "This is the most that can be guaranteed with 80% intervals at most"
            f" {in_full(facts['max_wider'])} wider"
        )
    elif facts["max_price"] is not None:
        what = f"This is the most that can be guaranteed for {facts['max_price']:g} nats"
    least = ", the smallest that is tried" if facts["alpha"] == facts["least_alpha"] else ""
    return [f"{what}: alpha = {facts['alpha']:.3g}{least}."]


def _price(facts: Facts) -> list[str]:
    # a link around a model whose intervals are too wide can narrow them
    compared = "wider" if facts["wider"] >= 0 else "narrower"
    is_rounded = facts["rounding_step"] is not None
    score = "log score per rounding cell" if is_rounded else "log score"
    widths = "80% intervals have no width without a draw"
    if is_known(facts["wider"]):
        change = percent(abs(facts["wider"]), decimals=0)
        widths = f"80% intervals are {change} {compared} on average"
    lines = [f"Price: {nats(facts['price'])} of {score}; {widths}."]
    # as printed, the limit rounded down: a difference in the third decimal is noise
    limit = facts["limit"]
    if is_known(limit) and round(facts["price"], 2) < math.floor(100 * limit) / 100:
        base = "recalibrated" if facts["is_recalibrated"] else "as it is"
        rounded = "outcomes are rounded and " if is_rounded else ""
        lines.append(
            "Around the true distribution, the price of this mean error is at least"
            f" {at_least(limit, nats)}. It is lower here because {rounded}the model itself"
            f" is off by an estimated {points(_average_error(facts, base))} points overall."
        )
    return lines


def _learned_group(found: Any) -> list[str]:
    """Return the largest error of a learned group without a draw."""
    if found is None:
        return []
    group = f"in a group of {in_full(found.mass)} of people defined by features"
    if not found.is_significant:
        return [f"Without a draw, no significant error was found {group}."]
    about = ""
    if found.description:
        about = f" (approximately: {found.description})"
    elif found.features:
        about = f" (by {', '.join(found.features)})"
    evidence = f" (p {p_value(found.p_value, '= ')})"
    if found.low > 0:
        confidence = confidence_in_full(found.confidence)
        evidence = f", at least {at_least(found.low)} with {confidence} confidence"
    return [
        f"Without a draw, the largest error found {group}{about} is an estimated"
        f" {points(found.error)} points{evidence}: {found.direction}."
    ]


def worth_sentences(facts: Facts) -> list[str]:
    """Return a sentence if a forecast that ignores every feature is better; otherwise nothing."""
    # a NaN, of a price or of a score that is not known, compares as False
    if not facts["lost_without_features"] > 0:
        return []
    if facts["lost_without_features"] - facts["price"] > 0:
        return [
            "Even without a draw, the model has a worse log score than a forecast that ignores"
            " every feature: improve the model first."
        ]
    what = "price" if facts["max_group_error"] is None else "promise"
    lost = nats(facts["lost_without_features"], "up")
    remedy = "Allow a larger error or use more rows."
    if facts["worthy_error"] is not None:
        # rounded up, with half a point for the noise of prices
        error = math.ceil(100 * facts["worthy_error"] + 0.5) / 100
        remedy = "No group error below 0.5 would be worth its price here: improve the model first."
        if error < 0.5:
            remedy = f"The smallest group error that would be worth its price is about {error:g}."
    return [
        f"At this {what} the forecast is worse than one that ignores every feature, by {lost} of"
        f" log score. {remedy}"
    ]


def _recalibration(facts: Facts) -> list[str]:
    # recalibration is no advice for a recalibrated base or a model that is randomized already
    if not is_known(facts["price"]) or facts["is_recalibrated"]:
        return []
    error = _average_error(facts, "as it is")
    if error <= 0.05:
        return []
    return [
        f"Overall, the model itself is off by an estimated {points(error)} points; recalibrate it"
        " first (in Python: recalibrate=True)."
    ]


# --- a plan


def plan_text(facts: Facts) -> str:
    """Return both tables of a plan with their sentences."""
    tested = (
        "Rows of a group with which the test of an audit detects an error of that group, at a"
        " significance level of 5%. The outcomes of the group have the right spread and are"
        " shifted, by the given multiple of their standard deviation. All tested groups count,"
        f" including scanned groups. Groups of fewer than {facts['min_size']} rows are not tested"
        " by default."
    )
    return "\n\n".join(
        [
            wrapped(_heading(facts)),
            _certificates(facts).text(),
            wrapped(_remarks(facts)),
            wrapped(tested),
            _tests(facts).text(),
        ]
    )


def _heading(facts: Facts) -> str:
    groups = (
        f"in every group of at least {in_full(facts['group_mass'])} of people, with"
        f" {confidence_in_full(facts['confidence'])} confidence ({facts['link']} link)"
    )
    if facts["max_group_error"] is not None:
        return (
            "Price of certifying that predicted probabilities are off by at most"
            f" {points_in_full(facts['max_group_error'])} points {groups}:"
        )
    cost = f"80% prediction intervals are at most {in_full(facts['max_wider'])} wider"
    if facts["max_price"] is not None:
        cost = f"the price is at most {plain_number(facts['max_price'])} nats"
    limit = facts["certificates"][-1]
    return (
        f"Error that can be certified for predicted probabilities {groups}, if {cost} (alpha"
        f" {plain_number(limit['alpha'])}: {nats(limit['price'])},"
        f" {percent(limit['wider'], decimals=0)} wider):"
    )


def _remarks(facts: Facts) -> str:
    share = in_full(facts["probability"])
    remarks = [
        "Rows are people held out for the certificate. The numbers are for a model that is"
        f" calibrated before the randomization: at least {share} of random samples certify this"
        " error, these floors without a draw and these unions; the coverage in every group is that"
        " of evenly spread PITs. For a miscalibrated model less can be certified, or at a higher"
        " price."
    ]
    if facts["rows_needed"] is not None:
        rows = count(facts["rows_needed"], "row is", "rows are")
        remarks.append(
            f"At least {rows} needed, at any price (the smallest alpha is"
            f" {facts['least_alpha']:g})."
        )
    return " ".join(remarks)


def _certificates(facts: Facts) -> Table:
    cells: Cells[Facts] = {
        numeric("rows"): lambda one: (
            "unlimited" if one["n_samples"] is None else whole(one["n_samples"])
        )
    }
    if facts["max_group_error"] is not None:
        cells |= {
            numeric("alpha"): _known(lambda one: plain_number(one["alpha"])),
            numeric("price"): _known(lambda one: nats(one["price"])),
            numeric("80% intervals are wider by"): _known(
                lambda one: percent(one["wider"], decimals=0)
            ),
        }
    else:
        cells[numeric("error in every group (points)")] = _known(
            lambda one: at_most(one["group_error"])
        )
    whole_percent = partial(percent, decimals=0)
    cells |= {
        numeric("80% intervals cover in every group"): _known(
            lambda one: band(whole_percent, one["coverage_low"], one["coverage_high"])
        ),
        numeric("without a draw: this interval covers at least"): lambda one: (
            f"{in_full(one['plain_level'])}: {at_least(one['plain_floor'], percent)}"
        ),
        numeric("wider by"): lambda one: whole_percent(one["plain_wider"]),
        numeric("unions of named cells: error (points)"): lambda one: (
            f"{count(one['union_cells'], 'cell')}: {at_most(one['union_error'])}"
            if one["union_cells"]
            else UNKNOWN
        ),
    }
    return Table.of("Certificates by the number of rows", facts["certificates"], cells)


def _known(write: Callable[[Facts], str]) -> Callable[[Facts], str]:
    """Write the cell of a certificate that exists."""
    return lambda one: UNKNOWN if one["alpha"] is None else write(one)


def _tests(facts: Facts) -> Table:
    tests = facts["group_tests"]
    needed = {(one["error"], one["n_groups"], one["power"]): one["n_samples"] for one in tests}
    shifts = {one["error"]: one["shift"] for one in tests}

    def rows(size: int, power: float) -> Callable[[float], str]:
        return lambda error: whole(needed[error, size, power])

    cells: Cells[float] = {
        numeric("error (points)"): points_in_full,
        numeric("shift"): lambda error: f"{shifts[error]:.2f}",
    }
    for size, power in dict.fromkeys((one["n_groups"], one["power"]) for one in tests):
        title = f"{in_full(power)} power, {count(size, 'group')}"
        cells[numeric(title)] = rows(size, power)
    return Table.of("Rows of a group by its error", shifts, cells)
