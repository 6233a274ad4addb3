"""Verdict of an audit: overall error, groups that are significantly off, and guarantees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand._format import (
    at_most,
    band,
    count,
    in_full,
    is_known,
    percent,
    plain_number,
    points,
    points_in_full,
)
from evenhand.report.coverage import (
    both_sides,
    floors_sentence,
    is_informative,
    plain_sentences,
)
from evenhand.report.document import Sentence
from evenhand.report.events import event_sentence
from evenhand.report.findings import Findings
from evenhand.report.records import Bound, or_zero
from evenhand.report.sentences import (
    error_in_words,
    examined,
    found_in_words,
    group_sentences,
    leak_sentences,
    repair_sentence,
    size_in_words,
    tolerated_sentence,
    within_sentence,
)
from evenhand.search import NARROW, WIDE

NOT_ALL_GROUPS = "Groups that were not examined: there is no guarantee for them."
OTHER_ROWS = "People, places and times that these rows do not represent."
"""Limits of every audit, for audits whose certificate does not list its own."""

MEANS_OF_DRAWS = (
    "If outcomes are right-skewed, the draw itself raises the mean of the served forecasts; the"
    " output of `predict` and the column `mean` do not depend on the draw."
)


@dataclass(frozen=True)
class Verdict:
    """The leading sentence of an audit and the remaining ones, errors before guarantees."""

    lead: str
    sentences: Sequence[Sentence]


def forecast_kind(findings: Findings) -> str:
    """Return the kind of forecasts that were audited."""
    if not findings.is_randomized:
        return "deterministic forecasts"
    return f"randomized forecasts, {count(findings.n_draws, 'draw')} per row"


def significance(findings: Findings) -> str:
    """Return the rules by which findings are significant, and important."""
    error, coverage = findings.tolerance.error, findings.tolerance.coverage
    beyond = f"estimated error is above {points_in_full(error)} points"
    if not findings.terms.is_event:
        beyond += (
            ", or if the estimated coverage of its 80% or 90% prediction interval differs from that"
            f" level by more than {points_in_full(coverage)} points"
        )
    return (
        "A named or scanned group is significantly off if its p-value, adjusted by Holm's method"
        f" for all named and scanned groups together, is below {1 - findings.confidence:.4g}."
        " A learned group is significantly off if its p-value, adjusted for the number of learned"
        " groups, is. All people together are significantly off if the 95% confidence interval of"
        " their error excludes 0. What is significantly off is beyond the tolerance if its"
        f" {beyond}. Findings beyond the tolerance are listed first, by falling lower bound of the"
        " error."
    )


def verdict_of(findings: Findings) -> Verdict:
    """Write the verdict on the findings of an audit."""
    groups = group_sentences(findings, is_led=findings.bound is None)
    is_off = findings.headline is not None or findings.learned_off is not None
    overall = _overall_sentences(findings)
    everyone = findings.everyone
    is_overall = everyone is not None and everyone.is_beyond
    remark = [MEANS_OF_DRAWS] if findings.is_randomized and findings.is_mean_too_high else []
    average = _average_sentences(findings)
    if not is_overall:
        # an error of all people within the tolerance is no headline
        overall, average = [], [*overall, *average]
    bound = findings.bound
    if bound is None:
        # without a guarantee for all groups, the groups that were found lead
        lead = [*overall, _group_lead(findings) if is_off else _no_group_beyond(findings)]
        before, after = remark, [*average, *_no_proof_sentences(findings)]
        if is_off and not findings.is_randomized:
            after.append(repair_sentence(findings))
    else:
        # an uninformative bound must not push known errors out of the lead
        first, before = ([], overall) if findings.is_bound_useful else (overall, [])
        lead = [*first, _proof_sentence(findings, bound)]
        some = ["Some groups are significantly off by more than the tolerance."] if is_off else []
        beside = plain_sentences(findings, bound) if findings.is_bound_useful else []
        before = [*beside, *before, *remark, *some]
        after = average
        after += [] if is_off else [_no_group_beyond(findings)]
    caveat = findings.values.get("caveat")
    warning = [Sentence(str(caveat), is_warning=True)] if caveat else []
    others = [tolerated_sentence(findings), within_sentence(findings)]
    groups += [sentence for sentence in others if sentence is not None]
    sentences = [*map(Sentence, before), *groups, *map(Sentence, after)]
    return Verdict(" ".join(lead), [*warning, *sentences, *leak_sentences(findings)])


def _overall_sentences(findings: Findings) -> list[str]:
    """Return the overall direction and size of the error, if it is significant."""
    group = findings.everyone
    if group is None or not (group.is_mean_off or group.is_off):
        return []
    # the mean first: a bias in the outcome's own unit is easier to act on than points
    if group.is_mean_off:
        ends = sorted((abs(or_zero(group.bias.low)), abs(or_zero(group.bias.high))))
        way = "high" if findings.is_mean_too_high else "low"
        is_event = findings.terms.is_event
        subject = "Predicted probabilities" if is_event else "Forecasts"
        reach = band(points if is_event else plain_number, *ends)
        return [
            f"{subject} are too {way} on average, by {findings.terms.size(group.reported_bias)}"
            f" (95% confidence interval {reach})."
        ]
    mixed = ("predicted probabilities", "off, in no single direction")
    subject, predicate = findings.terms.directions.get(group.direction, mixed)
    # the coverage is given if the width of intervals is the error
    is_width = group.direction in {NARROW, WIDE} and not findings.terms.is_event
    verb = "rank" if group.is_direction_opposed else "are"
    covered = f": the 80% prediction interval covers {percent(group.coverage_80.value)} of outcomes"
    within = "" if group.is_beyond else ", but within the tolerance"
    return [
        f"Overall, {subject} {verb} significantly {predicate}{within}"
        f"{covered if is_width else ''}. Predicted probabilities are off"
        f" by {error_in_words(group, 'percentage points')}."
    ]


def _group_lead(findings: Findings) -> str:
    """Return the sentence that some groups are off, with the worst one that has a name."""
    group = findings.headline
    # only learned groups are off, which have no name
    if group is None:
        return "Some groups are significantly off."
    opening = "Some groups are significantly off. In group"
    if len(findings.beyond) == 1:
        opening = "One group is significantly off: in"
    name = f"{group.name} ({size_in_words(group)})"
    return f"{opening} {name}, {found_in_words(group, findings, 'percentage points')}."


def _no_group_beyond(findings: Findings) -> str:
    if not (findings.named or findings.scanned or findings.learned):
        return "No groups were examined: name groups or pass features."
    n = len(findings.tolerated)
    opening = f"No group is significantly off: {examined(findings)}"
    if n:
        verb = "is" if n == 1 else "are"
        opening = (
            "No group is significantly off by more than the tolerance"
            f" ({findings.tolerance}): {examined(findings)} {n:,} {verb} significantly off within"
            " it."
        )
    text = f"{opening} This does not prove that every group is well calibrated"
    worst = findings.least_proven
    if worst is None:
        return f"{text}."
    return (
        f"{text}: the error of group {worst.name} ({count(worst.n, 'row')}) may be as large as"
        f" {at_most(worst.error.high)} percentage points."
    )


def _proof_sentence(findings: Findings, bound: Bound) -> str:
    mass = in_full(bound.mass)
    if not findings.is_bound_useful:
        return (
            "These rows give no useful guarantee for every group of at least"
            f" {mass} of {findings.terms.people}."
        )
    opening = (
        f"For every group of at least {mass} of {findings.terms.people}, predicted probabilities"
        " are off by at most"
        f" {at_most(bound.group_error)} percentage points"
    )
    if not is_informative(bound):
        return f"{opening}, with {findings.level} confidence."
    is_joint = findings.proof is not None and findings.proof.is_joint
    holds = "all bounds hold jointly" if is_joint else "each bound holds"
    return (
        f"{opening} and the 80% prediction interval covers"
        f" {both_sides(bound.coverage_80_low, bound.coverage_80_high)}; {holds} with"
        f" {findings.level} confidence."
    )


def _no_proof_sentences(findings: Findings) -> list[str]:
    if not findings.is_randomized:
        if findings.terms.is_event:
            return _event_sentences(findings)
        floors = floors_sentence(findings)
        least = "less than 40 points in every group of 20% of people, whatever the data"
        if findings.terms.has_atoms:
            # the floor depends on the sizes of the atoms (outcomes: 2)
            least = "little in every group of 20% of people, whatever the data"
        # (1 - mass) / 2 at a mass of one fifth (method.md, 11: nothing smaller can be proven)
        return [
            "With one forecast per person, not even the true distribution can be certified to be"
            f" off by {least}; groups that are named beforehand can be certified. Groups that were"
            " not examined may be off.",
            *([floors] if floors else []),
        ]
    if findings.n_draws == 1:
        return [
            "Only one draw per row is known, which gives no guarantee for groups that were not"
            " named beforehand; audit several draws per row."
        ]
    return ["There is no guarantee for groups that were not named beforehand; see the notes."]


def _event_sentences(findings: Findings) -> list[str]:
    # outcomes, section 3: only the mean over draws counts, and nothing below the share of the event
    # divided by the group size can be proven for the bias of every group
    rate = event_sentence(findings)
    return [
        "No data can prove that a yes/no forecast is calibrated in every group, with or without"
        " randomization: groups that were not examined may be off.",
        *([rate] if rate else []),
    ]


def _average_sentences(findings: Findings) -> list[str]:
    if findings.everyone is None:
        return []
    group, error = findings.everyone, findings.everyone.error
    text = (
        f"Overall, predicted probabilities are off by an estimated {points(error.value)} percentage"
        f" points (95% confidence interval {band(points, error.low, error.high)})"
    )
    if findings.terms.is_event:
        return [] if group.is_off and not group.is_mean_off else [f"{text}."]
    covered = f"prediction interval covers {percent(group.coverage_80.value)} of outcomes."
    if group.is_off and not group.is_mean_off:
        # the sentence on the overall direction gives the error, and the coverage if that is off
        return [] if group.direction in {NARROW, WIDE} else [f"Overall, the 80% {covered}"]
    return [f"{text}; the 80% {covered}"]


def not_covered(findings: Findings) -> list[str]:
    """Return the limits of an audit."""
    listed = findings.proof.not_covered if findings.proof else ()
    limits = [f"{text[:1].upper()}{text[1:]}." for text in listed]
    return [*([] if findings.bound else [NOT_ALL_GROUPS]), *(limits or [OTHER_ROWS])]


def chance_sentence(findings: Findings) -> str:
    """Return the shares at which oracle worst groups exceed chance; nothing if they are unknown."""
    # the search fits noise: only errors beyond those of calibrated forecasts are evidence
    judged = [g for g in findings.worst_groups if is_known(g.null_high) and is_known(g.error)]
    above = [in_full(g.mass) for g in judged if or_zero(g.error) > or_zero(g.null_high)]
    if above:
        return f"Errors exceed the 95% quantile under calibration at shares of {', '.join(above)}."
    return "At no share do errors exceed the 95% quantile under calibration." if judged else ""
