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
)
from evenhand.report.coverage import (
    both_sides,
    floors_sentence,
    is_informative,
    plain_sentences,
)
from evenhand.report.document import Sentence
from evenhand.report.findings import Findings
from evenhand.report.records import Bound, or_zero
from evenhand.report.sentences import (
    WORDS,
    error_in_words,
    examined,
    group_sentences,
    leak_sentences,
    off_in_words,
    repair_sentence,
)
from evenhand.search import NARROW, WIDE

NOT_ALL_GROUPS = "Groups that were not examined: there is no guarantee for them."
OTHER_ROWS = "People, places and times that these rows do not represent."
"""Limits of every audit, for audits whose certificate does not list its own."""

SCALE = (
    "Errors are absolute differences between predicted and actual probabilities in percentage"
    " points, averaged over all probability levels: 0 is perfect calibration, 50 the largest error."
)
"""Definition of the error."""

SIGNIFICANCE = (
    "A scanned group is significantly off if its p-value, adjusted by Holm's method for all scanned"
    " groups, is below 0.05. A named group is significantly off if its adjusted p-value from the"
    " scan is below 0.05 or its certified lower bound is above 0. The 95% confidence interval"
    " decides only for everyone and for named groups that were neither scanned nor certified. A"
    " learned group is significantly off if its lower bound is above 0."
)
"""Rules by which groups are called significantly off."""

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


def verdict_of(findings: Findings) -> Verdict:
    """Write the verdict on the findings of an audit."""
    groups = group_sentences(findings)
    overall = _overall_sentences(findings)
    remark = [MEANS_OF_DRAWS] if findings.is_randomized and findings.is_mean_too_high else []
    average = _average_sentences(findings)
    bound = findings.bound
    if bound is None:
        # without a guarantee for all groups, the groups that were found lead
        lead = [*overall, _group_lead(findings) if groups else _no_group_off(findings)]
        before, after = remark, [*average, *_no_proof_sentences(findings)]
        if groups and not findings.is_randomized:
            after.append(repair_sentence(findings))
    else:
        # an uninformative bound must not push known errors out of the lead
        first, before = ([], overall) if findings.is_bound_useful else (overall, [])
        lead = [*first, _proof_sentence(findings, bound)]
        some = ["Some groups are significantly off."] if groups else []
        beside = plain_sentences(findings, bound) if findings.is_bound_useful else []
        before = [*beside, *before, *remark, *some]
        after = average
        after += [] if groups else [_no_group_off(findings)]
    caveat = findings.values.get("caveat")
    warning = [Sentence(str(caveat), is_warning=True)] if caveat else []
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
        return [
            f"Forecasts are too {way} on average, by {plain_number(abs(group.reported_bias))}"
            f" {findings.unit} (95% confidence interval {band(plain_number, *ends)})."
        ]
    mixed = ("predicted probabilities", "off, in no single direction")
    subject, predicate = WORDS.get(group.direction, mixed)
    # the coverage is given if the width of intervals is the error
    verb = "rank" if group.is_direction_opposed else "are"
    covered = f": the 80% prediction interval covers {percent(group.coverage_80.value)} of outcomes"
    return [
        f"Overall, {subject} {verb} significantly {predicate}"
        f"{covered if group.direction in {NARROW, WIDE} else ''}. Predicted probabilities are off"
        f" by {error_in_words(group, findings.level, 'percentage points')}."
    ]


def _group_lead(findings: Findings) -> str:
    """Return the sentence that some groups are off, with the worst one that has a name."""
    group = findings.farthest_off
    # only learned groups are off, which have no name
    if group is None:
        return "Some groups are significantly off."
    return (
        f"Some groups are significantly off. In group {group.name},"
        f" {off_in_words(group, findings.unit, verb='are')}; predicted probabilities are off by"
        f" {error_in_words(group, findings.level, 'percentage points')}."
    )


def _no_group_off(findings: Findings) -> str:
    if not (findings.named or findings.scanned or findings.learned):
        return "No groups were examined: name groups or pass features."
    return (
        f"No group is significantly off: {examined(findings)} This does not prove that every group"
        " is well calibrated."
    )


def _proof_sentence(findings: Findings, bound: Bound) -> str:
    mass = in_full(bound.mass)
    if not findings.is_bound_useful:
        return f"These rows give no useful guarantee for every group of at least {mass} of people."
    opening = (
        f"For every group of at least {mass} of people, predicted probabilities are off by at most"
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
        floors = floors_sentence(findings)
        # (1 - mass) / 2 at a mass of one fifth (method.md, 11: nothing smaller can be proven)
        return [
            "With one forecast per person, not even the true distribution can be certified to be"
            " off by less than 40 points in every group of 20% of people, whatever the data; groups"
            " that are named beforehand can be certified. Groups that were not examined may be"
            " off.",
            *([floors] if floors else []),
        ]
    if findings.n_draws == 1:
        return [
            "Only one draw per row is known, which gives no guarantee for groups that were not"
            " named beforehand; audit several draws per row."
        ]
    return ["There is no guarantee for groups that were not named beforehand; see the notes."]


def _average_sentences(findings: Findings) -> list[str]:
    if findings.everyone is None:
        return []
    group, error = findings.everyone, findings.everyone.error
    covered = f"prediction interval covers {percent(group.coverage_80.value)} of outcomes."
    if group.is_off and not group.is_mean_off:
        # the sentence on the overall direction gives the error, and the coverage if that is off
        return [] if group.direction in {NARROW, WIDE} else [f"Overall, the 80% {covered}"]
    return [
        f"Overall, predicted probabilities are off by an estimated {points(error.value)} percentage"
        f" points (95% confidence interval {band(points, error.low, error.high)}); the 80%"
        f" {covered}"
    ]


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
