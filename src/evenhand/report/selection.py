"""Texts of selections and plans: what decides, the table of intervals, and the guarantee."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
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
    number_in_full,
    p_value,
    percent,
    plain_number,
    points,
    points_in_full,
    whole,
)
from evenhand._kinds import NARROW, WIDE
from evenhand._table import SCREEN, Cells, Column, Table, line_width, numeric, wrapped
from evenhand.report.certificates import ONE_ROW_EACH, follow_up_sentences

Facts = Mapping[str, Any]

NO_CEILING = 0.99
NO_WIDER = 0.01
"""Upper limit of a coverage that limits nothing, and relative difference of widths
up to which an interval without a draw is as wide as a randomized one."""

whole_percent = partial(percent, decimals=0)


def _text(*blocks: str | Table) -> str:
    """Return paragraphs and tables, one blank line apart."""
    width = line_width(SCREEN)
    shown = (one.text(width) if isinstance(one, Table) else wrapped(one, width) for one in blocks)
    return "\n\n".join(filter(None, shown))


def _covers(low: float, high: float) -> str:
    """Write both ends of a certified coverage; an upper end of 100% is none."""
    if low <= 0:
        return "not proven"
    return f"{at_least(low, percent)} or more" if is_trivial(high) else band(percent, low, high)


# --- a selection


def selection_text(facts: Facts, learned: Any) -> str:
    """Return what decides, the intervals with and without a draw, and the guarantee.

    `learned` is the group in which the model is off the most without a draw, or None.
    """
    if not_worth := worth_sentence(facts):
        remedy = "Take the interval without a draw, improve the model, or plan more rows:"
        goal = facts["goal"]
        command = "evenhand plan" + ("" if goal is None else f" --goal {goal:g}")
        reasons = " ".join(_learned_group(learned))
        return f"{_text(not_worth, _intervals(facts), reasons, remedy)}\n  {command}"
    return _text(
        " ".join(_decision(facts)),
        _intervals(facts),
        " ".join(_statements(facts)),
        " ".join([*_unions(facts), *_learned_group(learned), *_recalibration(facts)]),
    )


def worth_sentence(facts: Facts) -> str:
    """Return a sentence if a forecast that ignores every feature is better; otherwise nothing."""
    # a NaN, of a price or of a score that is not known, compares as False
    if not facts["lost_without_features"] > 0:
        return ""
    scores = {row["forecaster"]: log_score(row["log_score"]) for row in facts["comparison"]}
    ignorant = scores["without features"]
    if facts["lost_without_features"] - facts["price"] > 0:
        base = scores["recalibrated" if facts["is_recalibrated"] else "as it is"]
        return (
            "NOT WORTH IT: even without a draw, the forecast is worse than one that ignores every"
            f" feature (log score {base}; {ignorant} without features). Improve the model first."
        )
    remedy = "Allow a larger error or use more rows."
    if facts["worthy_error"] is not None:
        # rounded up, with half a point for the noise of prices
        error = math.ceil(100 * facts["worthy_error"] + 0.5) / 100
        remedy = "No group error below 0.5 would be worth its price: improve the model first."
        if error < 0.5:
            remedy = f"The smallest group error that is worth its price is about {error:g}."
    return (
        f"NOT WORTH IT: {_goal(facts)}, the forecast is worse than one that ignores every feature"
        f" (log score {scores['randomized']}; {ignorant} without features). {remedy}"
    )


def _goal(facts: Facts) -> str:
    if facts["goal"] is not None:
        return f"at {points_in_full(facts['goal'])} points"
    if facts["max_wider"] is not None:
        return f"at intervals {in_full(facts['max_wider'])} wider"
    return f"at a price of {facts['max_price']:g} nats"


def _decision(facts: Facts) -> list[str]:
    """Return what a draw is needed for, beside what can be had without one."""
    plain, (low, high) = facts["plain"], facts["coverage_80"]
    if facts["alpha"] == 1:
        is_needed = facts["goal"] is None
        return ["A draw is not possible at this cost." if is_needed else "No draw is needed."]
    if plain is None:
        return []
    group = f"every group of {in_full(facts['group_mass'])} of {_people(facts)}"
    interval = f"a {in_full(plain['level'])} interval covers at least"
    text = f"Without a draw, {interval} {at_least(plain['floor'], percent)} in {group}."
    if plain["floor"] >= low > 0:
        floor = f"{at_least(plain['floor'], percent)} in {group}"
        text = f"A floor needs no draw: without one, {interval} {floor}."
        if high >= NO_CEILING and plain["wider"] <= NO_WIDER:
            return [
                text,
                "For intervals the draw buys nothing here: a smaller group error, such as 0.25,"
                " buys a ceiling.",
            ]
    if not is_trivial(high):
        return [text, f"A draw adds a ceiling ({at_most(high, percent)})."]
    return [text, "The draw adds no ceiling."]


def _intervals(facts: Facts) -> Table:
    """Return the intervals with and without a draw, those without one first."""
    rows = []
    plain, wider = facts["plain"], facts["wider"]
    if plain is not None and facts["alpha"] < 1:
        label = f"no draw, {in_full(plain['level'])} interval"
        # its width is given beside the randomized interval, off an atom for other people
        beside = (1 + plain["wider"]) * (1 + wider) - 1 if facts["atom"] is None else math.nan
        rows.append((label, _covers(plain["floor"], 1.0), beside))
    label = "with a draw, 80% interval" if facts["alpha"] < 1 else "80% interval"
    rows.append((label, _covers(*facts["coverage_80"]), wider))
    whose = ", named or not" if facts["atom"] is None else f" of {_people(facts)}"
    group = f"every group of {in_full(facts['group_mass'])}{whose}"
    cells: Cells[tuple[str, str, float]] = {
        Column(group): lambda row: row[0],
        Column("covers"): lambda row: row[1],
        numeric("wider than today's 80%"): lambda row: whole_percent(row[2]),
    }
    return Table.of("Intervals in every group", rows, cells)


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


def _statements(facts: Facts) -> Iterator[str]:
    """Yield the guarantee with its conditions, and the choice of the randomization."""
    yield guarantee(facts)
    if facts["one_row_each"]:
        yield ONE_ROW_EACH
    if facts["atom"] is not None:
        followed = facts["follow_up"]
        what = f"{facts['atom']:g}" if followed is None else "an event by the horizon"
        yield f"The probability of {what} is not randomized: a draw cannot improve it."
        yield from [] if followed is None else follow_up_sentences(followed)
    plain = facts["plain"]
    if facts["alpha"] == 1:
        return
    if plain is not None:
        compared = ""
        if facts["atom"] is not None:
            than = "wider" if plain["wider"] >= 0 else "narrower"
            wider = whole_percent(abs(plain["wider"]))
            compared = f"; its interval is {wider} {than} than the randomized one"
        confidence = confidence_in_full(plain["confidence"])
        yield f"The floor without a draw has {confidence} confidence of its own{compared}."
    least = "the smallest that is tried" if facts["alpha"] == facts["least_alpha"] else "the least"
    if facts["goal"] is None:
        least = "the most at this cost"
    yield f"With a draw (alpha {facts['alpha']:.3g}, {least}), people who are alike get different"
    yield "forecasts. A second try with other rows needs its own error probability."


def _unions(facts: Facts) -> list[str]:
    k, error = facts["planned_unions"]
    if not k:
        return []
    return [
        f"Named groups need no draw: if the model is right, {facts['n_certifying']:,} rows prove"
        f" at most {at_most(error)} points in any group made of {count(k, 'equal cell')} of named"
        " columns, in nine of ten samples."
    ]


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
    helps_more = ""
    if found.direction in (NARROW, WIDE):
        helps_more = (
            f" 80% intervals cover {whole_percent(found.coverage_80)} there: learning the spread"
            " from the features, or recalibrating, helps more than a draw."
        )
    return [
        f"Without a draw, the largest error found {group}{about} is an estimated"
        f" {points(found.error)} points{evidence}: {found.direction}.{helps_more}"
    ]


def _recalibration(facts: Facts) -> list[str]:
    # recalibration is no advice for a recalibrated base or a model that is randomized already
    if not is_known(facts["price"]) or facts["is_recalibrated"]:
        return []
    errors = {row["forecaster"]: float(row["average_error"]) for row in facts["comparison"]}
    if errors["as it is"] <= 0.05:
        return []
    return [
        f"Overall, the model itself is off by an estimated {points(errors['as it is'])} points;"
        " recalibrate it first."
    ]


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
    return " ".join(filter(None, [worth_sentence(facts), chosen]))


# --- a plan


def plan_text(facts: Facts) -> str:
    """Return the table of a plan: what an audit finds, or what is proven for every group."""
    return _audit_plan(facts) if facts["detectable"] else _promise_plan(facts)


SHARES = {1.0: "all people", 0.5: "half of people", 0.2: "one fifth", 0.1: "one tenth"}
"""Names of the groups of a plan by their share of the rows."""


def _audit_plan(facts: Facts) -> str:
    found = {(one["n_samples"], one["share"]): one["error"] for one in facts["detectable"]}
    errors = [
        [whole(n), *(points(found[n, share], "up") for share in SHARES)]
        for n in dict.fromkeys(n for n, _ in found)
    ]
    table = Table("Errors that audits find", [*map(numeric, ("rows", *SHARES.values()))], errors)
    rate = facts["rate"]
    what = "Error" if rate is None else f"Error of an event rate of {in_full(rate)}"
    groups = count(facts["n_groups"], "group")
    least = f"Groups of fewer than {facts['min_size']} rows are not examined (-)."
    others = "Yes/no outcomes: --rate 0.1. " if rate is None else ""
    return _text(
        f"{what} that an audit finds with {in_full(facts['power'])} probability, in points"
        f" ({groups})",
        table,
        f"{least} More groups: --groups N. {others}Every group, named or not: --goal 0.25.",
    )


def _promise_plan(facts: Facts) -> str:
    goal = f"at most {points_in_full(facts['goal'] or 0)} points off"
    if facts["max_wider"] is not None:
        goal = f"80% intervals at most {in_full(facts['max_wider'])} wider"
    elif facts["max_price"] is not None:
        wider = whole_percent(facts["certificates"][-1]["wider"])
        goal = f"at most {plain_number(facts['max_price'])} nats, 80% intervals {wider} wider"
    needed = facts["rows_needed"]
    least = "" if needed is None else f"; at least {count(needed, 'row')}"
    remark = (
        f"What intervals cover for a calibrated model, in {in_full(facts['probability'])} of"
        f" samples{least}. Union: points of error of any group made of (so many) named cells, no"
        " draw."
    )
    return _text(
        f"Every group of {in_full(facts['group_mass'])}, named or not: {goal}"
        f" ({confidence_in_full(facts['confidence'])} confidence)",
        _certificates(facts),
        remark,
    )


def _certificates(facts: Facts) -> Table:
    """Return what rows certify, first without a draw and then with one."""
    cells: Cells[Facts] = {
        numeric("rows"): lambda one: whole(one["n_samples"]) if one["n_samples"] else "unlimited",
        numeric("no draw, at least"): lambda one: (
            f"{in_full(one['plain_level'])}: {at_least(one['plain_floor'], percent)}"
        ),
        numeric("wider by"): lambda one: whole_percent(one["plain_wider"]),
        numeric("union"): lambda one: (
            f"{at_most(one['union_error'])} ({one['union_cells']})"
            if one["union_cells"]
            else UNKNOWN
        ),
        numeric("draw, 80%: from"): lambda one: at_least(one["coverage_low"], percent),
        numeric("to"): lambda one: (
            UNKNOWN if is_trivial(one["coverage_high"]) else at_most(one["coverage_high"], percent)
        ),
    }
    if facts["goal"] is not None:
        cells[numeric("wider by ")] = lambda one: whole_percent(one["wider"])
    else:
        cells[numeric("error, points")] = lambda one: at_most(one["group_error"])
    return Table.of("Promises by the number of rows", facts["certificates"], cells)
