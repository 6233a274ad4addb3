"""Texts of certificates: assumptions, limits, questions, and the bounds as a summary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenhand._format import (
    LEAST_FLOOR,
    at_least,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    is_known,
    is_largest,
    joined,
    number_in_full,
    percent,
    points,
)
from evenhand._kinds import OutcomeKind

if TYPE_CHECKING:
    from evenhand.certificates import Certificate, FollowUp, PlainInterval

ONE_ROW_EACH = "One row per person was used: group sizes are shares of people, not of rows."
"""Remark of results where people have several rows."""

ASSUMED = {
    "sample": (
        "the rows are a random sample of the population to which the certificate applies,"
        " exchangeable and independent of each other"
    ),
    "fixed": (
        "the forecaster, its recalibration and its randomization were fixed without using these"
        " rows"
    ),
    "fixed base": "the deterministic forecaster was fixed without using these rows",
    "fixed models": "the models and their order were fixed without using these rows",
    "fixed links": (
        "the deterministic forecaster and the links compared were fixed without using these rows"
    ),
    "fixed event": "the forecaster and its recalibration were fixed without using these rows",
    "fixed link": (
        "the link was fixed without using these rows, for the bounds of named groups and of mPAIC"
    ),
    "fixed hurdle link": (
        "the link was fixed without using these rows, for the bounds of all people and of named"
        " groups under the whole forecast, and for that of mPAIC"
    ),
    "draws": (
        "each draw is uniform on [0, 1] and independent of the person and of other people's draws"
    ),
    "own draws": (
        "the draws, which were not given, were made separately for each person, one in each of as"
        " many equal cells of [0, 1]"
    ),
    "ties": (
        "the position of each PIT within the probability of its outcome is uniform on [0, 1] and"
        " independent of the person, of the draw and of other people"
    ),
    "rounded": (
        "outcomes were rounded: they lie anywhere in their rounding cells, distributed as the"
        " forecasts predict"
    ),
    "counted": (
        "pathwise errors and gaps |PIT - r| were rounded up to bins of width 1/16384 and 1/8192,"
        " which only widens the bounds"
    ),
    "horizon": "the horizon was chosen without using these rows",
    "entry": (
        "the time at which a person enters is independent of everything else about the person, so"
        " that those who entered at least a horizon before the end of follow-up represent all"
    ),
    "design": (
        "the largest weight is that of the design, and rows were drawn independently of each other:"
        " of a design in clusters or stages, one row per cluster is needed"
    ),
    "ratio": (
        "densities of features and outcomes are at most {ratio} times those of the certified"
        " people, and within a part at most {ratio} times those of its people, which rows cannot"
        " show; sizes of a part are shares of the people in that part"
    ),
}
"""Assumptions of certificates."""

NOT_COVERED = {
    # where the density of features and outcomes is at most k times that of the certified people, an
    # average over the new people is one over a group of size 1/k (method: 12)
    "shift": (
        "changes over time or population; if densities of rows grow at most k-fold, which rows"
        " cannot show, bounds at size 1/k still hold"
    ),
    "larger shift": (
        "populations whose densities exceed {ratio} times those of the certified people"
    ),
    "discrete": "outcomes that are not continuous",
    "smaller": "groups smaller than the size for which a bound is given",
    "after draws": "groups formed after seeing the draws, such as the people who were approved",
    "shares of rows": (
        "groups measured by their share of the rows: one row per person was used, so group sizes"
        " are shares of people"
    ),
    "mean probabilities": (
        "averages of forecast probabilities over draws, which strong randomization moves towards"
        " 1/2"
    ),
    "atom": (
        "the probability of {atom} in the forecasts, except as a 0/1 event: bounds for every group"
        " are for people whose outcome is not {atom}"
    ),
    "by horizon": (
        "the probability of an event by the horizon {horizon}, except as a 0/1 event: bounds for"
        " every group are for people who have the event by then"
    ),
    "beyond horizon": "what happens after the horizon {horizon}",
    "chosen named": (
        "the choice of the randomization on these same people, in the bounds for named groups"
    ),
    "chosen overall": (
        "the choice of the randomization on these same people, in the overall bound and in the"
        " bounds for named groups"
    ),
}
"""Situations that certificates do not cover."""

QUESTIONS = {
    "average": "is it calibrated on average",
    "named": "is it calibrated for groups named beforehand",
    "every group": "is it calibrated for every group of a given size",
    "coverage": (
        "do prediction intervals have their nominal coverage in every group of a given size"
    ),
    "after draws": "is it calibrated for groups formed after the draws",
    "low forecasts": (
        "is the event rate limited in every group of a given size with low forecasts"
    ),
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
"""Questions about forecasters."""

WHY = {
    "one PIT": "one PIT per person suffices, for any forecaster",
    "one PIT each": "one PIT per person suffices, in each group",
    "several": (
        "with several draws per person, the error of each person's own forecasts is observed"
    ),
    "link": (
        "the forecasts are those of a link around a deterministic forecaster, whose PITs bound the"
        " error under all draws"
    ),
    "one draw": (
        "only one draw per person is known; give PITs over several draws of the same forecaster"
    ),
    # the sharp floor (method: 11, Theorem 2)
    "one forecast": (
        "with one forecast per person and uniform PITs, no bound below (1 - size) / 2 can be"
        " certified, which is 0.4 for a fifth of the people: no rows can rule out that features"
        " define the group of the people with the lowest PITs"
    ),
    "one forecast of counts": (
        "with one forecast per person no bound below the error of the people with the lowest or the"
        " highest outcomes, compared with their forecasts, can be certified: no rows can rule out"
        " that features define their group"
    ),
    "floor": (
        "a floor only: a group contains at most all people whom an interval misses, so the share"
        " that it misses in the group is at most the share that it misses among all people, divided"
        " by the size of the group; see coverage"
    ),
    "after draws": "such groups can select people by their draws",
    "event rate": (
        "a group contains at most all people who have a low forecast and the event; see event_rate"
    ),
    "binary": (
        "no bound for the bias of a group can be certified below the mean of the largest"
        " differences between outcome and forecast: no rows can rule out that features define the"
        " group of these people. Randomization does not lower this bound; see bias for its size"
    ),
    "each person": (
        "one outcome per person cannot show a probability, and no randomized 0/1 forecast but the"
        " true probabilities is calibrated for each person"
    ),
    "lost on average": (
        "whatever happened to people whose times are cut off; the bounds are wide where they are"
        " many"
    ),
    "no horizon": (
        "a time that is cut off may have any error up to the largest, so nothing is proven for"
        " groups that may contain nobody else; give a horizon up to which people are followed"
    ),
}
WHY |= {
    f"{key}; worst": f"{text}; each person who was lost before the horizon counts with the largest"
    " error that any outcome would have"
    for key, text in WHY.items()
}
"""Why a question is answered, or why it cannot be."""

MEANINGS = {
    "count": (
        "Errors are those of randomized PITs, averaged over the position within the probability of"
        " an outcome. Prediction intervals contain whole outcomes, so they may cover more than"
        " their nominal level."
    ),
    "binary": (
        "For 0/1 outcomes, the error of people with the same forecast is half of the difference"
        " between the forecast and their event rate."
    ),
}
"""Remarks on the meaning of errors, by kind of outcome."""

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

SIZES, SHOWN_SIZE = (0.1, 0.2, 0.5), 0.2
"""Group sizes of summaries, and the one of intervals without a draw."""

Facts = Mapping[Any, Any]


def certificate_text(proof: Certificate) -> str:
    """Return the bounds of a certificate as text, with their assumptions and limits."""
    has_errors = proof.kind is not OutcomeKind.BINARY
    unions = None if proof.unions is None else proof.unions.facts()
    lines = [
        f"With {confidence_in_full(proof.confidence)} confidence, from"
        f" {count(proof.n_samples, 'person', 'people')}, {_forecasts(proof)}:",
        *(_overall(proof) if has_errors else []),
        *([] if unions is None else [f"- {union_sentence(unions, True)}"]),
        *_groups(proof),
        *([ONE_ROW_EACH] if proof.one_row_each else []),
    ]
    if proof.thinned is not None:
        kept, given, seed = proof.thinned
        lines.append(
            f"Of {given:,} weighted rows {kept:,} were kept at random (seed {seed}), so"
            " that they need no weights."
        )
    if has_errors:
        lines.append(
            "Errors are means over all probability levels: 0 points is perfect, 50 the worst."
        )
    lines += _remarks(proof)
    lines.append("Assumes: " + "; ".join(proof.assumptions) + ".")
    lines.append("Does not cover: " + "; ".join(proof.not_covered) + ".")
    return "\n".join(lines)


def _forecasts(proof: Certificate) -> str:
    """Return the kind of forecasts that were certified."""
    if proof.everyone is None:
        assert proof.events is not None
        n_lost = proof.events.n_lost
        lost = f", and of {n_lost:,} it is not known whether they had it" if n_lost else ""
        return f"of whom {proof.events.n_events:,} had the event{lost}"
    under = "" if proof.link is None else f", under {proof.link!r}"
    drawn = f"{count(proof.n_draws, 'draw')} each{under}"
    if not proof.is_randomized:
        drawn = "one deterministic forecast each"
    if proof.at is None or proof.n_positive is None:
        return drawn
    outcome = f"an outcome other than {number_in_full(proof.at)}"
    if proof.follow_up is not None:
        outcome = f"the event by {number_in_full(proof.at)}"
    return f"of whom {count(proof.n_positive, 'has', 'have')} {outcome}, {drawn}"


def _overall(proof: Certificate) -> list[str]:
    error = proof.average_error()
    bound = f"predicted probabilities are off by at most {at_most(error)} points"
    return [
        f"- overall, {'nothing is proven' if is_largest(error) else bound}",
        *(
            f"- in group {row['group']!r} ({count(row['n'], 'row')}), by"
            f" {band(points, row['low'], row['high'])} points"
            for row in proof.named_table().to_dict("records")
        ),
    ]


def union_sentence(found: Facts, is_line: bool = False) -> str:
    """Return the bounds for every union of named cells, as a sentence or as a line of a list."""
    is_merged = 0 < found["n_cells"] < found["n_before"]
    group = "union of these merged cells of" if is_merged else "group made of"
    opening = f"{'in' if is_line else 'In'} any {group} {joined(found['columns'])}"
    if not found["n_cells"]:
        return (
            f"{opening} nothing is proven: these make {found['n_before']:,} cells, and at most"
            f" 1,000 are bounded; name fewer columns, or coarser bands{'' if is_line else '.'}"
        )
    bounds = []
    if found["bias"] is not None:
        most = at_most(max(-found["bias"][0], found["bias"][1]))
        bounds.append(f"the event rate is within {most} points of the mean probability")
    if found["error"] is not None:
        most = at_most(found["error"])
        bounds.append(f"predicted probabilities are off by at most {most} points")
    if found["coverage_80"] is not None:
        bounds.append(f"80% intervals cover {band(percent, *found['coverage_80'])} of outcomes")
    confidence = confidence_in_full(found["confidence"])
    each = " each" if len(bounds) > 1 else ""
    draw = "over its draws" if found["is_randomized"] else "no draw"
    remarks = ["single probabilities may be farther off"]
    if is_merged:
        remarks.append(
            f"of {found['n_before']} cells those of fewer than 150 rows were merged, and have no"
            " bound of their own"
        )
    if found["overlap"]:
        remarks.append("the groups overlap, and cells are their combinations")
    return (
        f"{opening} ({count(found['n_cells'], 'cell')}, {found['n']:,} rows), {joined(bounds)}"
        f" ({confidence} confidence{each}, {draw}); {'; '.join(remarks)}{'' if is_line else '.'}"
    )


def _groups(proof: Certificate) -> list[str]:
    """Return the lines about every group of a size."""
    people, event = "people", "have the event"
    opening = []
    if proof.at is not None and proof.n_positive is not None:
        people, at = "these people", number_in_full(proof.at)
        event = f"have an outcome other than {at}"
        who = f"the {count(proof.n_positive, 'person', 'people')} whose outcome is not {at}"
        given = "given that it is not"
        if proof.follow_up is not None:
            event, who = f"have the event by {at}", f"the people who have the event by {at}"
            given = "given that it happens by then"
        opening = [
            f"- for {who}, probabilities {given} are off by at most"
            f" {at_most(proof.own_error())} points"
        ]
    events = proof.event_table(SIZES).to_dict("records")
    lines = [line for row in events for line in event_lines(row, event)] + opening
    for row in proof.table(SIZES).to_dict("records") if proof.bounds_every_group else []:
        error = row["group_error"]
        line = f"- in every group of at least {in_full(row['mass'])} of {people}"
        bound = f", by at most {at_most(error)} points"
        line += ": nothing is proven" if is_largest(error) else bound
        if is_known(row["coverage_80_low"]):
            shown = band(percent, row["coverage_80_low"], row["coverage_80_high"])
            if shown != band(percent, 0.0, 1.0):
                line += f"; the 80% prediction interval covers {shown} of outcomes"
        lines.append(line)
    size = SHOWN_SIZE if proof.mass is None else proof.mass * proof.ratio
    # an interval of a yes or no has no meaning
    if not events or proof.at is not None:
        lines += _floors(proof.plain_intervals(size), people)
    if proof.bound is not None:
        lines.append(
            f"The bounds for all {people} and for every group are computed from the PITs of the"
            " deterministic forecaster inside the link, and hold jointly."
        )
    if proof.choice.rule == "simultaneous":
        lines.append(
            "These bounds hold simultaneously for every link and alpha, so both may be chosen on"
            " the same people."
        )
    elif proof.choice.rule == "tested":
        lines.append(
            "Bounds for every group account for the choice of the randomization on these people."
        )
    return lines


def event_lines(row: Facts, event: str = "have the event") -> list[str]:
    """Return the bounds of an event for one group size; `event` is the verb of the event."""
    every = f"- in every group of at least {in_full(row['mass'])} of all people"
    lines = [
        f"{every}, the share who {event} is at most {at_most(row['bias_high'])} points above and at"
        f" most {at_most(-row['bias_low'])} points below the mean forecast"
    ]
    low, high = row["event_rate_below"], row["event_rate_above"]
    if is_known(low) and low < 1:
        lines.append(
            f"{every}, all with a forecast of at most {in_full(row['below'])}, at most"
            f" {at_most(low, percent)} {event}"
        )
    if is_known(high) and high > 0:
        lines.append(
            f"{every}, all with a forecast of at least {in_full(row['above'])}, at least"
            f" {at_least(high, percent)} {event}"
        )
    return lines


def _floors(intervals: Sequence[PlainInterval], people: str) -> list[str]:
    """Return the line about intervals without a draw; nothing if it is uninformative."""
    useful = [
        (f"the {in_full(one.level)} interval", at_least(one.floor, percent))
        for one in intervals
        if one.floor >= LEAST_FLOOR
    ]
    if not useful:
        return []
    (first, least), *others = useful
    listed = [f"{first} covers at least {least} of outcomes", *map(" ".join, others)]
    text = f"{', '.join(listed[:-1])} and {listed[-1]}" if others else listed[0]
    size = in_full(intervals[0].mass)
    return [
        f"- without a draw, in every group of at least {size} of {people}, {text}; there is no"
        " upper bound"
    ]


def _remarks(proof: Certificate) -> list[str]:
    found = proof.follow_up
    return [
        *([] if found is None else follow_up_sentences(found, in_cells=proof.at is None)),
        *([MEANINGS[proof.kind]] if proof.kind in MEANINGS else []),
        *(
            f"Cannot be answered: {row['question']}? {row['why'][:1].upper()}{row['why'][1:]}."
            for row in proof.questions.to_dict("records")
            if not row["answered"]
        ),
    ]


def follow_up_sentences(found: FollowUp, *, in_cells: bool = False) -> list[str]:
    """Return how many people had the event, and what those who were lost count for."""
    events = f"{count(found.n_events, 'person', 'people')} had the event"
    if found.horizon is None:
        return [f"{events}, and the times of {found.n_lost:,} are cut off."]
    tau = number_in_full(found.horizon)
    left_out = (
        f" Not used: {count(found.n_left_out, 'person', 'people')} who entered less than {tau}"
        " before the end of follow-up."
        if found.n_left_out
        else ""
    )
    lost = "was" if found.n_lost == 1 else "were"
    return [
        f"{events} by {tau}, {found.n_reached:,} reached {tau} without it, and"
        f" {found.n_lost:,} {lost} lost before.{left_out}",
        *([LOST] if found.n_lost else []),
        *([WHOLE_CELLS] if in_cells else []),
    ]
