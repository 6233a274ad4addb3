"""Sentences and the table of the summary of a selection."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from evenhand._format import (
    at_least,
    at_most,
    confidence_in_full,
    count,
    in_full,
    is_trivial,
    log_score,
    nats,
    number,
    number_in_full,
    p_value,
    percent,
    points,
    with_error,
)
from evenhand._table import Column, Table, numeric
from evenhand.certificates import planned_unions
from evenhand.report import ONE_ROW_EACH, follow_up_sentences, log_score_name
from evenhand.selection.target import LEAST_ALPHA, LEVEL, MaxGroupError, MaxPrice, MaxWider

if TYPE_CHECKING:
    from evenhand.selection.result import Selection


UNION_CELLS = 20
"""Most cells of named columns, of whose unions a bound without a draw is shown."""

NO_CEILING = 0.99
NO_WIDER = 0.01
"""Upper limit of a coverage that limits nothing, and relative difference of widths
up to which an interval without a draw is as wide as a randomized one."""


def statement(chosen: Selection) -> str:
    """Return the guarantee: the bound, the groups and the number of people."""
    learned = f"; trained on {count(chosen.n_learning, 'other row')}"
    if chosen.n_learning == 0:
        learned = ", whom the model must not have seen"
    # the bounds are for the people whose outcome is not an atom that is left as it is
    n = chosen.n_certifying if chosen.n_off_atom is None else chosen.n_off_atom
    which = _of_part(chosen)
    who = count(n, "person", "people") if chosen.atom is None else f"{n:,} of them"
    return (
        f"In every group of at least {in_full(chosen.group_mass)} of {chosen.people}, predicted"
        f" probabilities{which} are off by at most {at_most(chosen.group_error)} points, with"
        f" {confidence_in_full(chosen.confidence)} confidence ({who}{learned})."
    )


def sentences(chosen: Selection) -> list[str]:
    """Return guarantee, choice and price, and what they are worth; one sentence or two each."""
    is_randomized = chosen.alpha < 1
    return [
        *worth(chosen),
        *_spread(chosen),
        statement(chosen),
        *([ONE_ROW_EACH] if chosen.certificate.one_row_each else []),
        *_atom(chosen),
        *_coverage(chosen),
        *(_choice(chosen) if is_randomized else _without_randomization(chosen)),
        *(_price(chosen) if is_randomized and np.isfinite(chosen.price) else []),
        *_learned_group(chosen),
        *_recalibration(chosen),
    ]


def text(chosen: Selection) -> str:
    """Return the sentences and the comparison of forecasters."""
    scored = chosen.crps_people
    crps = "CRPS" if scored == chosen.n_certifying else f"CRPS ({scored} people)"
    columns = [
        Column("forecaster"),
        numeric(log_score_name(chosen.rounding_step)),
        numeric(crps),
        numeric("width (80%)"),
        numeric("average error (points)"),
        numeric("certified group error (points)"),
    ]
    rows = [
        [
            row["forecaster"],
            log_score(row["log_score"]),
            with_error(row["crps"], row["crps_error"]),
            number(row["width"]),
            points(row["average_error"]),
            at_most(row["certified_group_error"]),
        ]
        for row in chosen.comparison.to_dict("records")
    ]
    shown = Table("Forecasters on the certifying rows", columns, rows)
    return "\n".join([*sentences(chosen), "", shown.text()])


def _of_part(chosen: Selection) -> str:
    """Return the outcomes that predicted probabilities are about, if not all."""
    if chosen.horizon is not None:
        return f" of times, given an event by {number_in_full(chosen.horizon)},"
    return "" if chosen.atom is None else f" of outcomes other than {chosen.atom:g}"


def _spread(chosen: Selection) -> list[str]:
    found = chosen.spread_group
    if found is None:
        return []
    where = f" (approximately: {found.description})" if found.description else ""
    return [
        "The width of this model's prediction intervals does not vary enough with the features."
        f" Its 80% intervals cover an estimated {percent(found.coverage_80, decimals=0)} of"
        f" outcomes in a group of {in_full(chosen.group_mass)} of people{where},"
        f" {percent(found.overall_80, decimals=0)} overall. A model that learns the spread would"
        " help more than a draw."
    ]


def _atom(chosen: Selection) -> list[str]:
    """Return what is not randomized (outcomes: 4.2)."""
    if chosen.atom is None:
        return []
    if chosen.horizon is not None:
        found = chosen.follow_up
        return [
            "The probability of an event by the horizon is not randomized, because a draw cannot"
            " improve the forecast of an event.",
            *([] if found is None else follow_up_sentences(vars(found))),
        ]
    return [
        f"The probability of {chosen.atom:g} is not randomized, because a draw cannot improve the"
        " forecast of an event."
    ]


def _coverage(chosen: Selection) -> list[str]:
    """Return both ends of the coverage, and what can be had without a draw."""
    low, high = chosen.certificate.coverage(LEVEL, chosen.group_mass)
    which = _of_part(chosen)
    lines = []
    if low > 0:
        ends = f"between {at_least(low, percent)} and {at_most(high, percent)} of outcomes."
        if is_trivial(high):
            ends = f"at least {at_least(low, percent)} of outcomes, with no upper limit."
        lines = [f"In every such group, 80% intervals{which} cover {ends}"]
    if chosen.plain is not None and chosen.alpha < 1:
        interval, wider = chosen.plain
        compared = "wider" if wider >= 0 else "narrower"
        lines.append(
            f"A {in_full(interval.level)} interval without a draw covers at least"
            f" {at_least(interval.floor, percent)} there (separately, with"
            f" {confidence_in_full(interval.confidence)} confidence) and"
            f" {percent(interval.covered, decimals=0)} overall, with no upper limit; it is"
            f" {percent(abs(wider), decimals=0)} {compared} than the randomized 80%"
            " interval."
        )
        if interval.floor >= low > 0 and high >= NO_CEILING and wider <= NO_WIDER:
            lines.append(
                "For prediction intervals the draw buys nothing here: a smaller group error, such"
                " as 0.25, buys an upper limit."
            )
    k, error = planned_unions(chosen.n_certifying, UNION_CELLS, chosen.confidence)
    lines.append(
        f"Groups that are named need no draw: any group made of {count(k, 'equal cell')} of named"
        f" columns would be off by at most {at_most(error)} points on these"
        f" {chosen.n_certifying:,} rows if the model is right; audit them with `groups` for the"
        " bound of your columns."
    )
    return lines


def _without_randomization(chosen: Selection) -> list[str]:
    why = "No randomization was needed"
    if not isinstance(chosen.target.goal, MaxGroupError):
        why = "No randomization is possible within the price limit"
    return [
        f"{why}: alpha = 1. Overall, predicted probabilities are off by an"
        f" estimated {points(chosen.average_error('randomized'))} points."
    ]


def _choice(chosen: Selection) -> list[str]:
    goal = chosen.target.goal
    match goal:
        case MaxGroupError():
            what = "This is the least randomization with this guarantee"
        case MaxWider():
            what = (
                "This is the most that can be guaranteed with 80% intervals at most"
                f" {in_full(goal.most)} wider"
            )
        case MaxPrice():
            what = f"This is the most that can be guaranteed for {goal.most:g} nats"
    least = ", the smallest that is tried" if chosen.alpha == LEAST_ALPHA else ""
    return [f"{what}: alpha = {chosen.alpha:.3g}{least}."]


def _price(chosen: Selection) -> list[str]:
    # a link around a model whose intervals are too wide can narrow them
    compared = "wider" if chosen.wider >= 0 else "narrower"
    is_rounded = chosen.rounding_step is not None
    score = "log score per rounding cell" if is_rounded else "log score"
    widths = "80% intervals have no width without a draw"
    if np.isfinite(chosen.wider):
        change = percent(abs(chosen.wider), decimals=0)
        widths = f"80% intervals are {change} {compared} on average"
    lines = [f"Price: {nats(chosen.price)} of {score}; {widths}."]
    # as printed, the limit rounded down: a difference in the third decimal is noise
    if np.isfinite(chosen.limit) and round(chosen.price, 2) < math.floor(100 * chosen.limit) / 100:
        off_by = points(chosen.average_error(chosen.base_name))
        rounded = "outcomes are rounded and " if is_rounded else ""
        lines.append(
            "Around the true distribution, the price of this mean error is at least"
            f" {at_least(chosen.limit, nats)}. It is lower here because {rounded}the model itself"
            f" is off by an estimated {off_by} points overall."
        )
    return lines


def _learned_group(chosen: Selection) -> list[str]:
    """Return the largest error of a learned group without a draw."""
    found = chosen.learned_group
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


def worth(chosen: Selection) -> list[str]:
    """Return a sentence if a forecast that ignores every feature is better; otherwise nothing."""
    if chosen.is_worth_it:
        return []
    # the price is NaN, which compares as False, of models that are randomized already
    if chosen.lost_without_features - chosen.price > 0:
        return [
            "Even without a draw, the model has a worse log score than a forecast that ignores"
            " every feature: improve the model first."
        ]
    what = "promise" if isinstance(chosen.target.goal, MaxGroupError) else "price"
    lost = nats(chosen.lost_without_features, "up")
    remedy = "Allow a larger error or use more rows."
    if chosen.worthy_error is not None:
        # rounded up, with half a point for the noise of prices
        error = math.ceil(100 * chosen.worthy_error + 0.5) / 100
        remedy = "No group error below 0.5 would be worth its price here: improve the model first."
        if error < 0.5:
            remedy = f"The smallest group error that would be worth its price is about {error:g}."
    return [
        f"At this {what} the forecast is worse than one that ignores every feature, by {lost} of"
        f" log score. {remedy}"
    ]


def _recalibration(chosen: Selection) -> list[str]:
    # recalibration is no advice for a recalibrated base or a model that is randomized already
    is_recalibrated = getattr(chosen.model, "recalibrate", True)
    if not np.isfinite(chosen.price) or is_recalibrated:
        return []
    error = chosen.average_error("as it is")
    if error <= 0.05:
        return []
    return [
        f"Overall, the model itself is off by an estimated {points(error)} points; recalibrate it"
        " first (in Python: recalibrate=True)."
    ]
