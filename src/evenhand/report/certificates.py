"""Texts of certificates: assumptions, limits, questions, and the bounds as a summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from evenhand._table import SCREEN, labelled, line_width, wrapped

if TYPE_CHECKING:
    from evenhand.certificates import Certificate, FollowUp, PlainInterval

ONE_ROW_EACH = "One row per person was used: group sizes are shares of people, not of rows."
"""Remark of results where people have several rows."""

FIXED = {
    "fixed": "the forecaster, its recalibration and its randomization were",
    "fixed base": "the deterministic forecaster was",
    "fixed models": "the models and their order were",
    "fixed links": "the deterministic forecaster and the links compared were",
    "fixed event": "the forecaster and its recalibration were",
}
"""What has to be fixed beforehand."""

ASSUMED = {
    "sample": (
        "the rows are a random sample of the population to which the certificate applies,"
        " exchangeable and independent of each other"
    ),
    **{key: f"{what} fixed without using these rows" for key, what in FIXED.items()},
    "fixed link": (
        "the link was fixed without using these rows, for the bounds of named groups and of mPAIC"
    ),
    "fixed hurdle link": (
        "the link was fixed without using these rows, for the bounds of all people and of named"
        " groups under the whole forecast, and for that of mPAIC"
    ),
    "horizon": "the horizon was chosen without using these rows",
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

MARGIN = 31
"""Most characters of the column of labels."""

Facts = Mapping[Any, Any]

Row = tuple[str, str]
"""For whom a bound is, and the bound."""


def certificate_text(proof: Certificate) -> str:
    """Return the bounds of a certificate as text, with their assumptions and limits."""
    width = line_width(SCREEN)
    opening = (
        f"Proven with {confidence_in_full(proof.confidence)} confidence, from"
        f" {count(proof.n_samples, 'person', 'people')}, {_forecasts(proof)}:"
    )
    questions = proof.questions[~proof.questions["answered"]]["question"]
    conditions = [
        ("Assumes", "; ".join(proof.assumptions)),
        ("Not covered", "; ".join(proof.not_covered)),
    ]
    if len(questions):
        conditions.append(("Not answered", f"{'; '.join(questions)} (why: `questions`)"))
    return "\n\n".join(
        [
            f"{wrapped(opening, width)}\n{labelled(_bounds(proof), width, MARGIN)}",
            wrapped(" ".join(_remarks(proof)), width),
            labelled(conditions, width, MARGIN),
        ]
    )


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


def _at_most(error: float) -> str:
    return "nothing is proven" if is_largest(error) else f"at most {at_most(error)} points"


def _bounds(proof: Certificate) -> list[Row]:
    """Return all bounds: of everyone and named groups, of events, and of every group of a size."""
    rows = []
    if proof.kind is not OutcomeKind.BINARY:
        rows.append(("everyone", _at_most(proof.average_error())))
        for one in proof.named_table().to_dict("records"):
            ends = f"{band(points, one['low'], one['high'])} points"
            rows.append((f"{one['group']} ({count(one['n'], 'row')})", ends))
    if proof.unions is not None:
        rows.append(("named groups", union_sentence(proof.unions.facts())))
    people, event = "", "have the event"
    own: list[Row] = []
    if proof.at is not None and proof.n_positive is not None:
        people, at = " of these", number_in_full(proof.at)
        event = f"have an outcome other than {at}"
        who, given = f"people whose outcome is not {at}", "given that it is not"
        if proof.follow_up is not None:
            event, who = f"have the event by {at}", f"people with the event by {at}"
            given = "given that it happens by then"
        own = [(who, f"{_at_most(proof.own_error())} {given}")]
    events = proof.event_table(SIZES).to_dict("records")
    rows += [event_row(row, event) for row in events]
    rows += own
    for one in proof.table(SIZES).to_dict("records") if proof.bounds_every_group else []:
        bound = _at_most(one["group_error"])
        low, high = one["coverage_80_low"], one["coverage_80_high"]
        if is_known(low) and band(percent, low, high) != band(percent, 0.0, 1.0):
            bound += f"; 80% intervals cover {band(percent, low, high)} of outcomes"
        rows.append((f"every group of {in_full(one['mass'])}{people}", bound))
    size = SHOWN_SIZE if proof.mass is None else proof.mass * proof.ratio
    # an interval of a yes or no has no meaning
    if not events or proof.at is not None:
        rows += _floors(proof.plain_intervals(size), people)
    return rows


def union_sentence(found: Facts) -> str:
    """Return the bounds for every union of named cells."""
    is_merged = 0 < found["n_cells"] < found["n_before"]
    group = "union of these merged cells of" if is_merged else "group made of"
    opening = f"In any {group} {joined(found['columns'])}"
    if not found["n_cells"]:
        return (
            f"{opening} nothing is proven: these make {found['n_before']:,} cells, and at most"
            " 1,000 are bounded; name fewer columns, or coarser bands."
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
        f" ({confidence} confidence{each}, {draw}); {'; '.join(remarks)}."
    )


def event_row(row: Facts, event: str = "have the event") -> Row:
    """Return the bounds of an event for one group size; `event` is the verb of the event."""
    above, below = at_most(row["bias_high"]), at_most(-row["bias_low"])
    bounds = [f"at most {above} points above and at most {below} points below the mean forecast"]
    low, high = row["event_rate_below"], row["event_rate_above"]
    if is_known(low) and low < 1:
        most = at_most(low, percent)
        bounds.append(f"at most {most} if all forecasts are at most {in_full(row['below'])}")
    if is_known(high) and high > 0:
        least = at_least(high, percent)
        bounds.append(f"at least {least} if all forecasts are at least {in_full(row['above'])}")
    return (
        f"every group of {in_full(row['mass'])} of all",
        f"share who {event}: {'; '.join(bounds)}",
    )


def _floors(intervals: Sequence[PlainInterval], people: str) -> list[Row]:
    """Return the row of intervals without a draw; nothing if it is uninformative."""
    useful = [
        f"{in_full(one.level)} intervals cover at least {at_least(one.floor, percent)}"
        for one in intervals
        if one.floor >= LEAST_FLOOR
    ]
    if not useful:
        return []
    size = in_full(intervals[0].mass)
    first, *others = useful
    listed = ", ".join([first, *(one.replace("intervals cover at least ", "") for one in others)])
    return [(f"every group of {size}{people}", f"without a draw, {listed}; no upper bound")]


def _remarks(proof: Certificate) -> Iterator[str]:
    """Yield what the bounds mean, whom they count and how they hold together."""
    if proof.kind is not OutcomeKind.BINARY:
        yield (
            "Points are errors of predicted probabilities, means over all levels: 0 is perfect, 50"
            " the worst. Every group is one of at least this share of people, named or not."
        )
    if proof.bound is not None:
        yield (
            "The bounds of everyone and of every group are computed from the PITs of the"
            " deterministic forecaster inside the link, and hold jointly."
        )
    if proof.choice.rule == "simultaneous":
        yield "They hold for every link and alpha, so both may be chosen on the same people."
    elif proof.choice.rule == "tested":
        yield "Bounds of every group account for the choice of the randomization on these people."
    if proof.one_row_each:
        yield ONE_ROW_EACH
    if proof.thinned is not None:
        kept, given, seed = proof.thinned
        yield (
            f"Of {given:,} weighted rows {kept:,} were kept at random (seed {seed}), so that they"
            " need no weights."
        )
    if proof.follow_up is not None:
        yield from follow_up_sentences(proof.follow_up, in_cells=proof.at is None)
    if proof.kind in MEANINGS:
        yield MEANINGS[proof.kind]


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
