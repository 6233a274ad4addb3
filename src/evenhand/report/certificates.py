"""Texts of certificates, selections and plans: bounds, assumptions, limits, and what decides."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from evenhand._format import (
    UNKNOWN,
    at_least,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    is_known,
    is_largest,
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
from evenhand._kinds import NARROW, WIDE, OutcomeKind
from evenhand._table import Cells, Column, Table, numeric
from evenhand.report.document import Facts, Paragraph, headed, short_text
from evenhand.report.kinds import SCALE, people_of
from evenhand.report.slots import compared, union_sentence
from evenhand.report.tables import event_bounds, every_group, named_bounds, plain_intervals
from evenhand.results import Bound, EventBound, NamedBound, Values, rows_from

if TYPE_CHECKING:
    from evenhand.certificates import Certificate, FollowUp
    from evenhand.selection import Selection

ONE_ROW_EACH = "One row per person was used: group sizes are shares of people, not of rows."
"""Remark of results where people have several rows."""

FIXED = {
    "fixed": "the forecaster, its recalibration and its randomization were",
    "fixed base": "the deterministic forecaster was",
    "fixed models": "the models and their order were",
    "fixed links": "the deterministic forecaster and the links compared were",
    "fixed event": "the forecaster and its recalibration were",
    "horizon": "the horizon was",
}
"""What has to be fixed beforehand."""

ASSUMED = {
    "sample": "rows are a random sample of the population, exchangeable and independent",
    **{key: f"{what} fixed without using these rows" for key, what in FIXED.items()},
    "fixed link": (
        "the link was fixed without using these rows, for bounds of named groups and of mPAIC"
    ),
    "fixed hurdle link": (
        "the link was fixed without using these rows, for bounds of all people and of named groups"
        " under the whole forecast, and of mPAIC"
    ),
    "draws": (
        "each draw is uniform on [0, 1], independent of the person and of other people's draws"
    ),
    "own draws": (
        "the draws, which were not given, were made for each person separately, one in each of as"
        " many equal cells of [0, 1] as there are draws"
    ),
    "ties": (
        "the position of a PIT within the probability of its outcome is uniform on [0, 1],"
        " independent of the person, of the draw and of other people"
    ),
    "rounded": "outcomes lie anywhere in their rounding cells, distributed as forecasts predict",
    "counted": (
        "errors and gaps |PIT - r| were rounded up to bins of width 1/16384 and 1/8192, which only"
        " widens the bounds"
    ),
    "entry": "the time of entry is independent of everything else about a person",
    "design": (
        "no weight of the design is larger than the largest given; rows were drawn independently,"
        " one of each cluster"
    ),
    "ratio": (
        "densities of features and outcomes are at most {ratio} times those of the certified"
        " people, and of a part at most {ratio} times those of its people, which rows cannot show;"
        " sizes of a part are shares of the people in that part"
    ),
}

NOT_COVERED = {
    # where the density of features and outcomes is at most k times that of the certified people, an
    # average over the new people is one over a group of size 1/k (method: 12)
    "shift": (
        "changes over time or population; if densities of rows grow at most k-fold, which rows"
        " cannot show, bounds at size 1/k still hold"
    ),
    "larger shift": "populations whose densities exceed {ratio} times those of these people",
    "discrete": "outcomes that are not continuous",
    "smaller": "groups smaller than the size for which a bound is given",
    "after draws": "groups formed after seeing the draws, such as the people who were approved",
    "shares of rows": "groups measured by their share of the rows: sizes are shares of people",
    "mean probabilities": "mean probabilities over draws, which randomization moves towards 1/2",
    "atom": (
        "the probability of {atom}, except as a 0/1 event: bounds for every group are for people"
        " whose outcome is not {atom}"
    ),
    "by horizon": (
        "the probability of an event by the horizon {horizon}, except as a 0/1 event: bounds for"
        " every group are for people who have the event by then"
    ),
    "beyond horizon": "what happens after the horizon {horizon}",
    "chosen named": "the choice of randomization on these people, in named groups",
    "chosen overall": "the choice of randomization on these people, overall and in named groups",
}
"""Situations that certificates do not cover."""

QUESTIONS = {
    "average": "is it calibrated on average",
    "named": "is it calibrated for groups named beforehand",
    "every group": "is it calibrated for every group of a given size",
    "coverage": "do intervals have their nominal coverage in every group of a given size",
    "after draws": "is it calibrated for groups formed after the draws",
    "low forecasts": "is the event rate limited in every group of a given size with low forecasts",
    "each person": "is the probability of each person right",
}
OPENINGS = {
    "whether": "whether the outcome is {atom}: ",
    "among": "among the people whose outcome is not {atom}: ",
    "whether by": "whether the event happens by {atom}: ",
    "among by": "among the people with the event by {atom}: ",
}
QUESTIONS |= {
    f"{part}: {key}": opening + text
    for part, opening in OPENINGS.items()
    for key, text in QUESTIONS.items()
}

WHY = {
    "one PIT": "one PIT per person suffices, for any forecaster",
    "one PIT each": "one PIT per person suffices, in each group",
    "several": "the error of each person's own forecasts is observed over several draws",
    "link": "the PITs of the deterministic forecaster inside the link bound the error of all draws",
    "one draw": "only one draw per person is known; give PITs over several draws",
    # the sharp floor (method: 11, Theorem 2)
    "one forecast": (
        "with one forecast per person and uniform PITs, no bound below (1 - size) / 2 can be"
        " certified, which is 0.4 for a fifth of the people: features may define the group of the"
        " people with the lowest PITs"
    ),
    "one forecast of counts": (
        "with one forecast per person no bound below the error of the people with the lowest or the"
        " highest outcomes can be certified: features may define their group"
    ),
    "floor": "a floor only: all people whom an interval misses may be one group; see coverage",
    "after draws": "such groups can select people by their draws",
    "event rate": "all people with a low forecast and the event may be one group; see event_rate",
    "binary": (
        "no bound below the mean of the largest differences between outcome and forecast can be"
        " certified, with or without a draw: features may define their group; see bias for its size"
    ),
    "each person": "one outcome per person cannot show a probability",
    "lost on average": "whatever happened to people who were lost; many of them make bounds wide",
    "no horizon": "a group may be only times that are cut off, with any error; give a horizon",
}
WORST = "; each person lost before the horizon counts with the largest error of any outcome"
WHY |= {f"{key}; worst": text + WORST for key, text in WHY.items()}
"""Why a question is answered, or why it cannot be."""

COUNTED = "Intervals contain whole outcomes, so they may cover more than their nominal level."
"""Remark of certificates of counts."""

LOST = " Each person who was lost counts with the largest error that any later time can have."
WHOLE_CELLS = " Forecasts of people who reached the horizon are compared with a time beyond it."
"""Remarks of certificates of times with a horizon: the reading of cells (outcomes: 5)."""

CHOSEN = {
    "simultaneous": "They hold for every link and alpha, so both may be chosen on the same people.",
    "tested": "Bounds of every group account for the choice of randomization on these people.",
}
"""What bounds hold for, by the rule by which the randomization was chosen."""

SIZES, SHOWN_SIZE = (0.1, 0.2, 0.5), 0.2
"""Group sizes of summaries, and the one of intervals without a draw."""


def certificate_text(proof: Certificate) -> str:
    """Return the bounds of a certificate as text, with their assumptions and limits."""
    is_event, followed = proof.kind is OutcomeKind.BINARY, proof.follow_up
    people, off_atom = "people", ""
    if proof.at is not None:
        people = people_of(number_in_full(proof.at), is_time=followed is not None)
        off_atom = f" ({proof.n_positive:,} {people})"
    drawn = f"{count(proof.n_draws, 'draw')} each" + (f", under {proof.link!r}" * bool(proof.link))
    if not proof.is_randomized:
        drawn = "one deterministic forecast each"
    opening = (
        f"Proven with {confidence_in_full(proof.confidence)} confidence, from"
        f" {count(proof.n_samples, 'person', 'people')}{off_atom}, {drawn}."
    )
    if not is_event:
        opening += f" All people together: {_off(proof.average_error())}."
    if off_atom:
        opening += f" All {people}: {_off(proof.own_error())}."
    events = rows_from(EventBound, proof.event_table(SIZES))
    size = SHOWN_SIZE if proof.mass is None else proof.mass * proof.ratio
    # an interval of a yes or no has no meaning
    intervals = proof.plain_intervals(size) if off_atom or not events else ()
    every = rows_from(Bound, proof.table(SIZES)) if proof.bounds_every_group else ()
    tables = (
        named_bounds(() if is_event else rows_from(NamedBound, proof.named_table())),
        every_group(every, people),
        plain_intervals(intervals, may_be_lost=followed is not None),
        event_bounds(events),
    )
    unanswered = proof.questions[~proof.questions["answered"]]["question"]
    conditions = {
        "Assumes": "; ".join(proof.assumptions),
        "Not covered": "; ".join(proof.not_covered),
        "Not answered (why: `questions`)": "; ".join(unanswered),
    }
    unions = "" if proof.unions is None else union_sentence(proof.unions.facts())
    remarks = " ".join(_remarks(proof))
    return short_text(opening, *headed(tables), unions, remarks, Facts(conditions))


def _off(error: float) -> str:
    return "nothing is proven" if is_largest(error) else f"off by at most {at_most(error)} points"


def _remarks(proof: Certificate) -> Iterator[str]:
    """Yield what the bounds mean, whom they count and how they hold together."""
    if proof.kind is not OutcomeKind.BINARY:
        yield SCALE
    elif proof.events is not None and proof.events.n_lost:
        yield f"Of {proof.events.n_lost:,} it is not known whether they had the event."
    if proof.bound is not None:
        yield "Bounds of everyone and of every group are those of the link, and hold jointly."
    if proof.choice.rule != "fixed":
        yield CHOSEN[proof.choice.rule]
    if proof.thinned is not None:
        kept, given, seed = proof.thinned
        yield f"Of {given:,} weighted rows {kept:,} were drawn by their weights (seed {seed})."
    if proof.follow_up is not None:
        yield follow_up_in_words(proof.follow_up, in_cells=proof.at is None)
    if proof.kind is OutcomeKind.COUNT:
        yield COUNTED


def follow_up_in_words(found: FollowUp, *, in_cells: bool = False) -> str:
    """Return how many people had the event, and what those who were lost count for."""
    text = f"{count(found.n_events, 'person', 'people')} had the event"
    if found.horizon is None:
        return f"{text}, and the times of {found.n_lost:,} are cut off."
    tau = number_in_full(found.horizon)
    lost = count(found.n_lost, "was", "were")
    text += f" by {tau}, {found.n_reached:,} reached {tau} without it, and {lost} lost before."
    if found.n_left_out:
        left_out = count(found.n_left_out, "person", "people")
        text += f" Not used: {left_out} who entered less than {tau} before the end of follow-up."
    return text + LOST * (found.n_lost > 0) + WHOLE_CELLS * in_cells


# --- a selection

NO_CEILING = 0.99
NO_WIDER = 0.01
"""Upper limit of a coverage that limits nothing; relative difference of equal widths."""

LEARN = "learning the spread from features, or recalibrating, helps more than a draw."
"""Advice where 80% intervals of a group are too narrow or too wide."""

whole_percent = partial(percent, decimals=0)


def selection_text(found: Selection) -> str:
    """Return what decides, the intervals with and without a draw, and the guarantee."""
    if not_worth := worth_sentence(found):
        goal = "" if found.goal is None else f" --goal {found.goal:g}"
        advice = "Take the interval without a draw, improve the model, or plan more rows"
        return short_text(
            not_worth,
            _intervals(found),
            _learned_group(found.learned_group),
            Paragraph(advice, "heading"),
            Paragraph(f"  evenhand plan{goal}", "code"),
        )
    return short_text(
        _decision(found),
        _intervals(found),
        " ".join(_statements(found)),
        " ".join([*_without_draw(found), _learned_group(found.learned_group)]).strip(),
    )


def worth_sentence(found: Selection) -> str:
    """Return a sentence if a forecast that ignores every feature is better; otherwise nothing."""
    if found.is_worth_it:
        return ""
    scores = found.comparison.set_index("forecaster")["log_score"].map(log_score)
    most, score = found.target.most, scores["randomized"]
    where = {
        "goal": f"at {points_in_full(most)} points",
        "max_wider": f"at intervals {in_full(most)} wider",
        "max_price": f"at a price of {most:g} nats",
    }[found.target.given]
    remedy = "Allow a larger error or use more rows."
    # a NaN, of a price that is not known, compares as False
    if found.lost_without_features - found.price > 0:
        where, remedy = "even without a draw", "Improve the model first."
        score = scores["recalibrated" if _is_recalibrated(found) else "as it is"]
    elif found.worthy_error is not None:
        # rounded up, with half a point for the noise of prices
        error = math.ceil(100 * found.worthy_error + 0.5) / 100
        remedy = "No group error below 0.5 would be worth its price: improve the model first."
        if error < 0.5:
            remedy = f"The smallest group error that is worth its price is about {error:g}."
    return (
        f"NOT WORTH IT: {where}, the forecast is worse than one that ignores every feature (log"
        f" score {score}; {scores['without features']} without features). {remedy}"
    )


def _is_recalibrated(found: Selection) -> bool:
    return getattr(found.model, "recalibrate", False)


def _decision(found: Selection) -> str:
    """Return what a draw is needed for, beside what can be had without one."""
    low, high = found.coverage_80
    if found.alpha == 1:
        return "No draw is needed." if found.goal else "A draw is not possible at this cost."
    if found.plain is None:
        return ""
    plain = found.plain
    floor = (
        f"a {in_full(plain.level)} interval covers at least {at_least(plain.floor, percent)}"
        f" in every group of {in_full(found.group_mass)} of {_about(found)[0]}."
    )
    is_enough = plain.floor >= low > 0
    opening = "A floor needs no draw: without one," if is_enough else "Without a draw,"
    text = f"{opening} {floor}"
    if is_enough and high >= NO_CEILING and plain.wider <= NO_WIDER:
        return f"{text} For intervals the draw buys nothing: a smaller group error buys a ceiling."
    if is_trivial(high):
        return f"{text} The draw adds no ceiling."
    return f"{text} A draw adds a ceiling ({at_most(high, percent)})."


def _intervals(found: Selection) -> Table:
    """Return the intervals with and without a draw, those without one first."""

    def covers(low: float, high: float) -> str:
        if low <= 0:
            return "not proven"
        # an upper end of 100% is none
        return f"{at_least(low, percent)} or more" if is_trivial(high) else band(percent, low, high)

    label, rows = "80% interval", []
    if found.alpha < 1:
        label = "with a draw, 80% interval"
        if (plain := found.plain) is not None:
            # its width is given beside the randomized interval, off an atom for other people
            beside = (1 + plain.wider) * (1 + found.wider) - 1 if found.atom is None else math.nan
            own = f"no draw, {in_full(plain.level)} interval"
            rows.append([own, covers(plain.floor, 1.0), whole_percent(beside)])
    rows.append([label, covers(*found.coverage_80), whole_percent(found.wider)])
    whose = ", named or not" if found.atom is None else f" of {_about(found)[0]}"
    group = Column(f"every group of {in_full(found.group_mass)}{whose}")
    columns = [group, Column("covers"), numeric("wider than today's 80%")]
    return Table("Intervals in every group", columns, rows)


def guarantee(found: Selection) -> str:
    """Return the guarantee of a selection: the bound, the groups and the number of people."""
    learned = f"; trained on {count(found.n_learning, 'other row')}"
    if found.n_learning == 0:
        learned = ", whom the model must not have seen"
    # the bounds are for the people whose outcome is not an atom that is left as it is
    who = count(found.n_certifying, "person", "people")
    if found.atom is not None:
        who = f"{found.n_off_atom:,} of them"
    return f"{_bound(found)} ({who}{learned})."


def _bound(found: Selection) -> str:
    people, outcomes = _about(found)
    return (
        f"In every group of at least {in_full(found.group_mass)} of {people}, predicted"
        f" probabilities{outcomes} are off by at most {at_most(found.group_error)} points, with"
        f" {confidence_in_full(found.confidence)} confidence"
    )


def _about(found: Selection) -> tuple[str, str]:
    """Return the people of whom group sizes are shares, and their outcomes if not all."""
    if found.atom is None:
        return "people", ""
    at, is_time = number_in_full(found.atom), found.certificate.follow_up is not None
    outcomes = f"times, given an event by {at}" if is_time else f"outcomes other than {at}"
    return f"the {people_of(at, is_time=is_time)}", f" of {outcomes},"


def _statements(found: Selection) -> Iterator[str]:
    """Yield the guarantee with its conditions, and the choice of the randomization."""
    yield guarantee(found)
    if found.certificate.one_row_each:
        yield ONE_ROW_EACH
    followed = found.certificate.follow_up
    if found.atom is not None:
        what = number_in_full(found.atom) if followed is None else "an event by the horizon"
        yield f"The probability of {what} is not randomized: a draw cannot improve it."
    if followed is not None:
        yield follow_up_in_words(followed)
    if found.alpha == 1:
        return
    if found.plain is not None:
        than = f"; its interval is {compared(found.plain.wider)} than the randomized one"
        own = f"{confidence_in_full(found.certificate.confidence)} confidence of its own"
        yield f"The floor without a draw has {own}{than * (found.atom is not None)}."
    least = "the smallest that is tried" if found.is_least else "the least"
    if found.goal is None:
        least = "the most at this cost"
    yield (
        f"With a draw (alpha {found.alpha:.3g}, {least}), people who are alike get different"
        " forecasts. A second try with other rows needs its own error probability."
    )


def _without_draw(found: Selection) -> Iterator[str]:
    """Yield what rows prove of named groups, and whether recalibration comes first."""
    k, error = found.planned_unions()
    if k:
        yield (
            f"Named groups need no draw: if the model is right, {found.n_certifying:,} rows"
            f" prove at most {at_most(error)} points in any group made of"
            f" {count(k, 'equal cell')} of named columns, in nine of ten samples."
        )
    errors = found.comparison.set_index("forecaster")["average_error"]
    # no advice for a recalibrated base, or for a model that is randomized already
    can_help = is_known(found.price) and not _is_recalibrated(found)
    if can_help and errors["as it is"] > 0.05:
        size = points(errors["as it is"])
        yield f"Recalibrate the model first: overall it is off by an estimated {size} points."


def _learned_group(found: Any) -> str:
    """Return the largest error of a learned group without a draw."""
    if found is None:
        return ""
    group = f"in a group of {in_full(found.mass)} of people defined by features"
    if not found.is_significant:
        return f"Without a draw, no significant error was found {group}."
    rule = found.description and f"approximately: {found.description}"
    about = rule or (f"by {', '.join(found.features)}" if found.features else "")
    evidence = f" ({p_value(found.p_value)})"
    if (least := at_least(found.low)) != "0.0":
        evidence = f", at least {least} with {confidence_in_full(found.confidence)} confidence"
    helps_more = ""
    if found.direction in (NARROW, WIDE):
        helps_more = f" 80% intervals cover {whole_percent(found.coverage_80)} there: {LEARN}"
    return (
        f"Without a draw, the largest error found {group}{f' ({about})' if about else ''} is an"
        f" estimated {points(found.error)} points{evidence}: {found.direction}.{helps_more}"
    )


def caveat(found: Selection) -> str:
    """Return the caveat for an audit of the rows on which the randomization was chosen.

    It reports first if the randomized forecast is worse than one that ignores every feature.
    """
    chosen = (
        f"Alpha was chosen on these same people. Accounting for that: {_bound(found)}. Bounds for"
        " named groups, 95% intervals and p-values do not account for it."
    )
    return f"{worth_sentence(found)} {chosen}".strip()


# --- a plan

SHARES = {1.0: "all people", 0.5: "half of people", 0.2: "one fifth", 0.1: "one tenth"}
"""Names of the groups of a plan by their share of the rows."""


def plan_text(facts: Values) -> str:
    """Return the table of a plan: what an audit finds, or what is proven for every group."""
    if not facts["detectable"]:
        return _promise_plan(facts)
    found = {(one["n_samples"], one["share"]): one["error"] for one in facts["detectable"]}
    sizes = dict.fromkeys(n for n, _ in found)
    errors = [[whole(n), *(points(found[n, share], "up") for share in SHARES)] for n in sizes]
    table = Table("Errors that audits find", [*map(numeric, ("rows", *SHARES.values()))], errors)
    rate = facts["rate"]
    what = "Error" if rate is None else f"Error of an event rate of {in_full(rate)}"
    groups = count(facts["n_groups"], "group")
    least = f"Groups of fewer than {facts['min_size']} rows are not examined (-)."
    others = "Yes/no outcomes: --rate 0.1. " if rate is None else ""
    return short_text(
        f"{what} that an audit finds with {in_full(facts['power'])} probability, in points"
        f" ({groups})",
        table,
        f"{least} More groups: --groups N. {others}Every group, named or not: --goal 0.25.",
    )


def _promise_plan(facts: Values) -> str:
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
        f" samples{least}. Union: points of error of any group of (so many) named cells, no draw."
    )
    return short_text(
        f"Every group of {in_full(facts['group_mass'])}, named or not: {goal}"
        f" ({confidence_in_full(facts['confidence'])} confidence)",
        _certificates(facts),
        remark,
    )


def _certificates(facts: Values) -> Table:
    """Return what rows certify, first without a draw and then with one."""
    cells: Cells[Values] = {
        numeric("rows"): lambda one: whole(one["n_samples"]) if one["n_samples"] else "unlimited",
        "no draw, at least": lambda one: (
            f"{in_full(one['plain_level'])}: {at_least(one['plain_floor'], percent)}"
        ),
        "wider by": lambda one: whole_percent(one["plain_wider"]),
        "union": lambda one: (
            f"{at_most(one['union_error'])} ({one['union_cells']})"
            if one["union_cells"]
            else UNKNOWN
        ),
        "draw, 80%: from": lambda one: at_least(one["coverage_low"], percent),
        "to": lambda one: (
            UNKNOWN if is_trivial(one["coverage_high"]) else at_most(one["coverage_high"], percent)
        ),
    }
    if facts["goal"] is not None:
        cells["wider by "] = lambda one: whole_percent(one["wider"])
    else:
        cells["error, points"] = lambda one: at_most(one["group_error"])
    return Table.of("Promises by the number of rows", facts["certificates"], cells)
