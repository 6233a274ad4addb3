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
from evenhand.report.assumptions import NO_HORIZON
from evenhand.report.coverage import (
    both_sides,
    floors_sentence,
    is_informative,
    plain_sentences,
)
from evenhand.report.document import Sentence
from evenhand.report.events import event_sentence
from evenhand.report.findings import Findings
from evenhand.report.next_steps import has_command
from evenhand.report.records import or_zero
from evenhand.report.sentences import (
    examined,
    group_sentences,
    headline_sentences,
    leak_sentences,
    open_sentences,
    tolerated_sentence,
    within_sentence,
)
from evenhand.report.survival import survival_sentence

NOT_ALL_GROUPS = "Groups that were not examined: there is no guarantee for them."
OTHER_ROWS = "People, places and times that these rows do not represent."
"""Limits of every audit, for audits whose certificate does not list its own."""

MEANS_OF_DRAWS = (
    "If outcomes are right-skewed, the draw itself raises the mean of the served forecasts. The"
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
    of_all, estimated = "their error", "estimated error"
    if findings.terms.is_time:
        of_all, estimated = "the error of the tested PITs", "Kaplan-Meier estimate of the error"
    beyond = f"{estimated} is above {points_in_full(error)} points"
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
        f" {of_all} excludes 0. What is significantly off is beyond the tolerance if its"
        f" {beyond}. Named and scanned groups with the same rows count once."
        " Findings beyond the tolerance are listed first, by falling lower bound of the"
        " error. The status is stricter: it is fail only if a whole confidence interval lies beyond"
        " the tolerance."
    )


def verdict_of(findings: Findings) -> Verdict:
    """Write the verdict on the findings of an audit."""
    caveat = findings.values.get("caveat")
    warning = [Sentence(str(caveat), is_warning=True)] if caveat else []
    others = [tolerated_sentence(findings), within_sentence(findings)]
    sentences = [
        *map(Sentence, open_sentences(findings)),
        *map(Sentence, _overall_after_lead(findings)),
        *group_sentences(findings),
        *(sentence for sentence in others if sentence is not None),
        *map(Sentence, _after_groups(findings)),
    ]
    return Verdict(headline(findings), [*warning, *sentences, *leak_sentences(findings)])


def headline(findings: Findings) -> str:
    """Return the finding with the largest lower bound; without one, what is proven or examined."""
    leading = findings.leading
    if leading is not None:
        of_all = _direction_sentences(findings) if leading is findings.everyone else []
        return " ".join([headline_sentences(leading, findings), *of_all])
    return proof_sentences(findings)[0] if findings.is_bound_useful else _no_group_beyond(findings)


def _overall_after_lead(findings: Findings) -> list[str]:
    """Return the sentences on all people that the lead does not contain."""
    coverage = _coverage_sentences(findings)
    if findings.everyone is None or findings.leading is findings.everyone:
        return coverage
    sentences = [*_direction_sentences(findings), _size_sentence(findings), *coverage]
    rate = survival_sentence(findings)
    return [" ".join(sentences), *([rate] if rate else [])]


def _after_groups(findings: Findings) -> list[str]:
    """Return sentences on groups that were not found to be off, and on all groups."""
    proof = proof_sentences(findings)
    bound = findings.bound
    # a guarantee leads if nothing is known to be off
    is_proof_lead = findings.leading is None and findings.is_bound_useful
    found = [] if is_proof_lead else proof[:1]
    if bound is not None and findings.is_bound_useful:
        found += plain_sentences(findings, bound)
    found += proof[1:]
    if findings.is_randomized and findings.is_mean_too_high:
        found.append(MEANS_OF_DRAWS)
    # without a finding the lead is on groups, unless a guarantee is
    is_no_group = findings.headline is None and findings.learned_off is None
    if is_no_group and (is_proof_lead or findings.leading is not None):
        found.insert(0, _no_group_beyond(findings))
    return found


def _direction_sentences(findings: Findings) -> list[str]:
    """Return the direction of the error of all people, if it is significant."""
    group = findings.everyone
    if group is None:
        return []
    # the mean first: a bias in the outcome's own unit is easier to act on than points
    if group.is_mean_off:
        ends = sorted((abs(or_zero(group.bias.low)), abs(or_zero(group.bias.high))))
        way = "high" if findings.is_mean_too_high else "low"
        is_event = findings.terms.is_event
        subject = "predicted probabilities" if is_event else "forecasts"
        reach = band(points if is_event else plain_number, *ends)
        return [
            f"Overall, {subject} are too {way} by {findings.terms.size(group.reported_bias)} on"
            f" average (95% confidence interval {reach})."
        ]
    if not group.is_off:
        return []
    mixed = ("predicted probabilities", "off, in no single direction")
    subject, predicate = findings.terms.directions.get(group.direction, mixed)
    verb = "rank" if group.is_direction_opposed else "are"
    within = "" if group.is_beyond else ", but within the tolerance"
    return [f"Overall, {subject} {verb} significantly {predicate}{within}."]


def _size_sentence(findings: Findings) -> str:
    group = findings.everyone
    assert group is not None
    method = "Kaplan-Meier, " if findings.terms.is_time else ""
    reach = band(points, group.error.low, group.error.high)
    return (
        f"Predicted probabilities of all people are off by an estimated {points(group.error.value)}"
        f" points ({method}95% confidence interval {reach})."
    )


def _coverage_sentences(findings: Findings) -> list[str]:
    group = findings.everyone
    if group is None or findings.terms.is_event or not is_known(group.coverage_80.value):
        return []
    covered = percent(group.coverage_80.value)
    return [f"The 80% prediction interval covers {covered} of outcomes overall."]


def _no_group_beyond(findings: Findings) -> str:
    if not (findings.named or findings.scanned or findings.learned):
        return "No groups were examined: name groups or pass features."
    n = len(findings.tolerated)
    opening = f"No group is significantly off: {examined(findings)}"
    if n:
        verb = "is" if n == 1 else "are"
        opening = (
            "No group is significantly off by more than the tolerance"
            f" ({findings.tolerance}). {examined(findings)} {n:,} {verb} significantly off within"
            " it."
        )
    text = f"{opening} This does not prove that every group is well calibrated."
    worst = findings.least_proven
    if worst is None:
        return text
    return (
        f"{text} The error of group {worst.name} ({count(worst.n, 'row')}) may be as large as"
        f" {at_most(worst.most)} points."
    )


def proof_sentences(findings: Findings) -> list[str]:
    """Return what is proven for every group, named or not: one text, and others on details."""
    bound = findings.bound
    if bound is None:
        return _no_proof_sentences(findings)
    every = f"every group of at least {in_full(bound.mass)} of {findings.terms.people}"
    if not findings.is_bound_useful:
        return [f"These rows prove nothing useful for {every}.{_lost_in_words(findings)}"]
    is_joint = findings.proof is not None and findings.proof.is_joint
    # each bound holds for all groups of its size simultaneously (method.md, 5)
    holds = "Both bounds hold jointly" if is_joint else "Each bound holds"
    opening = f"In {every}, predicted probabilities are off by at most"
    opening += f" {at_most(bound.group_error)} points"
    if not is_informative(bound):
        return [f"{opening}, with {findings.level} confidence."]
    return [
        f"{opening}. In each of them, the 80% prediction interval covers"
        f" {both_sides(bound.coverage_80_low, bound.coverage_80_high)}. {holds} with"
        f" {findings.level} confidence."
    ]


def _lost_in_words(findings: Findings) -> str:
    """Return why nothing is proven where many times are cut off, and what to do."""
    if findings.censoring is None or not findings.censoring.n_lost:
        return ""
    entered = "" if findings.censoring.n_followed is not None else ", give the dates of entry"
    return (
        f" Too many times are cut off before {findings.terms.horizon}, each of which counts with"
        f" the largest error: use an earlier horizon{entered} or follow people for longer."
    )


def proof_in_brief(findings: Findings) -> str:
    """Return the most that is proven for every group."""
    *_, last = proof_sentences(findings)
    return last


def _no_proof_sentences(findings: Findings) -> list[str]:
    if findings.terms.is_time and not findings.terms.horizon:
        return [NO_HORIZON]
    if not findings.is_randomized:
        if findings.terms.is_event:
            return _event_sentences(findings)
        floors = floors_sentence(findings)
        # (1 - mass) / 2 at a mass of one fifth (method.md, 11: nothing smaller can be proven)
        least = "an error below 40 points"
        if findings.terms.has_atoms:
            # the floor depends on the sizes of the atoms (outcomes: 2)
            least = "a small error"
        return [
            f"Groups that were not examined may be off. With one forecast per person, no data can"
            f" prove {least} in every group of 20% of people.",
            *([floors] if floors else []),
        ]
    if findings.n_draws == 1:
        return [
            "Nothing is proven for groups that were not named beforehand, as only one draw per row"
            " is known. Audit several draws per row."
        ]
    return ["Nothing is proven for groups that were not named beforehand; see the notes."]


def _event_sentences(findings: Findings) -> list[str]:
    # outcomes, section 3: only the mean over draws counts, and nothing below the share of the event
    # divided by the group size can be proven for the bias of every group
    rate = event_sentence(findings)
    return [
        "Groups that were not examined may be off. No data can prove that a yes/no forecast is"
        " calibrated in every group, with or without randomization.",
        *([rate] if rate else []),
    ]


def not_covered(findings: Findings) -> list[str]:
    """Return the limits of an audit."""
    listed = findings.proof.not_covered if findings.proof else ()
    limits = [f"{text[:1].upper()}{text[1:]}." for text in listed]
    unnamed = [] if findings.bound else [NOT_ALL_GROUPS]
    return [*unnamed, *small_groups(findings), *(limits or [OTHER_ROWS])]


def small_groups(findings: Findings) -> list[str]:
    """Return the sentence on groups that are too small for the scan; nothing without a scan."""
    sizes = [group.n for group in findings.scanned if group.is_tested and not group.is_named]
    if not sizes:
        return []
    option = "`--groups`" if has_command(findings) else "`groups`"
    return [
        f"Groups of fewer than {min(sizes):,} rows were not scanned: name those that matter with"
        f" {option}."
    ]


def chance_sentence(findings: Findings) -> str:
    """Return the shares at which oracle worst groups exceed chance; nothing if they are unknown."""
    # the search fits noise: only errors beyond those of calibrated forecasts are evidence
    judged = [g for g in findings.worst_groups if is_known(g.null_high) and is_known(g.error)]
    above = [in_full(g.mass) for g in judged if or_zero(g.error) > or_zero(g.null_high)]
    if above:
        return f"Errors exceed the 95% quantile under calibration at shares of {', '.join(above)}."
    return "At no share do errors exceed the 95% quantile under calibration." if judged else ""
