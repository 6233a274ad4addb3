"""Texts of certificates: assumptions, limits, questions, and the bounds as a summary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand._format import at_most, confidence_in_full, count, is_largest, number_in_full
from evenhand._kinds import OutcomeKind
from evenhand.report.document import Facts, headed, short_text
from evenhand.report.kinds import people_of
from evenhand.report.slots import union_sentence
from evenhand.report.tables import event_bounds, every_group, named_bounds, plain_intervals
from evenhand.results import Bound, EventBound, NamedBound, PlainInterval, rows_from

if TYPE_CHECKING:
    from evenhand.certificates import Certificate, FollowUp

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

COUNTED = (
    "Errors are those of randomized PITs, averaged over the position within the probability of an"
    " outcome. Prediction intervals contain whole outcomes, so they may cover more than their"
    " nominal level."
)
"""Meaning of errors of counts."""

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


def certificate_text(proof: Certificate) -> str:
    """Return the bounds of a certificate as text, with their assumptions and limits."""
    is_event, followed = proof.kind is OutcomeKind.BINARY, proof.follow_up
    people, off_atom = "people", ""
    if proof.at is not None and proof.n_positive is not None:
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
    plain: list[PlainInterval] = []
    # an interval of a yes or no has no meaning
    if not events or off_atom:
        size = SHOWN_SIZE if proof.mass is None else proof.mass * proof.ratio
        plain = [PlainInterval.of(vars(one)) for one in proof.plain_intervals(size)]
    every = rows_from(Bound, proof.table(SIZES)) if proof.bounds_every_group else ()
    tables = (
        named_bounds(() if is_event else rows_from(NamedBound, proof.named_table())),
        every_group(every, plain, people),
        plain_intervals(plain, may_be_lost=followed is not None),
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
        yield (
            "Points are errors of predicted probabilities, means over all levels: 0 is perfect, 50"
            " the worst. Every group is one of at least this share of people, named or not."
        )
    elif proof.events is not None and proof.events.n_lost:
        yield f"Of {proof.events.n_lost:,} it is not known whether they had the event."
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
    if proof.kind is OutcomeKind.COUNT:
        yield COUNTED


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
