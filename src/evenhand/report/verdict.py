"""Verdict of an audit: what was audited, what is significantly off, and what is proven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand._format import (
    at_least,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    is_known,
    percent,
    plain_number,
    points,
)
from evenhand.report.document import Sentence
from evenhand.report.findings import Findings, GroupFinding
from evenhand.report.records import Bound, or_zero
from evenhand.report.sentences import (
    WORDS,
    evidence_in_words,
    group_sentences,
    leak_sentences,
    looked_at,
    off_in_words,
    repair_sentence,
)
from evenhand.search import NARROW, WIDE

LEAST_COVERED = 0.01
"""Least bound of an interval's coverage that is reported: a smaller one shows nothing."""

NOT_ALL_GROUPS = "Groups that nobody looked at: nothing is proven for them here."
OTHER_ROWS = "People, places and times that these rows do not stand for."
"""Limits of every audit, for audits whose certificate does not list its own."""

SCALE = (
    "Off by 0 points is perfect, by 50 the worst: how far stated chances are from true ones,"
    " averaged over all levels."
)
"""How to read the points."""

SURELY = (
    "Surely: of scanned groups at a risk of 5% over all of them at once; of named groups by bounds"
    " that hold at once, where there is a certificate, else by each band; of learned groups by each"
    " one's lower bound."
)
"""How to read the word "surely"."""

MEANS_OF_DRAWS = (
    "Where outcomes are right-skewed, the draw itself raises the mean of served forecasts; predict"
    " and the column mean do not depend on the draw."
)


@dataclass(frozen=True)
class Verdict:
    """The leading sentence of an audit, and the others, bad news first."""

    lead: str
    sentences: Sequence[Sentence]


def forecast_kind(findings: Findings) -> str:
    """Return what kind of forecasts was audited."""
    if not findings.is_randomized:
        return "deterministic forecasts"
    return f"randomized forecasts, {count(findings.n_draws, 'draw')} per row"


def verdict_of(findings: Findings) -> Verdict:
    """Write the verdict on the findings of an audit."""
    groups = group_sentences(findings)
    overall = list(filter(None, [_overall_sentence(findings)]))
    remark = [MEANS_OF_DRAWS] if _is_served_mean_high(findings) else []
    average = _average_sentences(findings)
    bound = findings.bound
    if bound is None:
        # nothing is proven for all groups, so the groups that were found lead
        lead = " ".join([*overall, _group_lead(findings) if groups else _no_group_off(findings)])
        before, after = remark, [*average, _no_proof_sentence(findings)]
        if groups and not findings.is_randomized:
            after.append(repair_sentence(findings))
    else:
        lead = _proof_sentence(findings, bound)
        if not findings.is_bound_useful:
            # a bound that says nothing must not push what is known to be wrong out of the lead
            lead = " ".join([*overall, lead])
            overall = []
        before = [*overall, *remark, *(["Even so, some groups are surely off."] if groups else [])]
        after = [*_proof_remarks(findings, bound), *average]
        after += [] if groups else [_no_group_off(findings)]
    caveat = findings.values.get("caveat")
    warning = [Sentence(str(caveat), is_warning=True)] if caveat else []
    sentences = [*map(Sentence, before), *groups, *map(Sentence, after)]
    return Verdict(lead, [*warning, *sentences, *leak_sentences(findings)])


def _overall_sentence(findings: Findings) -> str:
    """Return in which direction and by how much forecasts are off over everybody, if they are."""
    group = findings.everyone
    if group is None:
        return ""
    # the mean first: a bias in the outcome's own unit is easier to act on than points
    if group.is_mean_off:
        bias = or_zero(group.bias.value)
        ends = sorted((abs(or_zero(group.bias.low)), abs(or_zero(group.bias.high))))
        # the bias is outcome minus forecast
        way = "high" if bias < 0 else "low"
        reach = band(plain_number, *ends)
        off = plain_number(abs(bias))
        return f"Forecasts are too {way} on average, by {off} ({reach}) in {findings.unit}."
    return _overall_error_sentence(group) if group.is_off else ""


def _is_served_mean_high(findings: Findings) -> bool:
    group = findings.everyone
    is_high = group is not None and group.is_mean_off and or_zero(group.bias.value) < 0
    return findings.is_randomized and is_high


def _overall_error_sentence(group: GroupFinding) -> str:
    subject, predicate = WORDS.get(group.direction, ("stated chances", "off, in no one direction"))
    # coverage is named where it is what is wrong
    covered = f": a stated 80% interval holds {percent(group.coverage_80.value)} of outcomes"
    return (
        f"{subject.capitalize()} are surely {predicate} over everybody"
        f"{covered if group.direction in {NARROW, WIDE} else ''}; stated chances are off by an"
        f" estimated {points(group.error.value)} percentage points, surely by at least"
        f" {at_least(group.least)}."
    )


def _group_lead(findings: Findings) -> str:
    """Return the sentence that some groups are off, with the worst of those that can be named."""
    group = findings.farthest_off
    # only learned groups are off, which have no name
    if group is None:
        return "Some groups are surely off."
    return (
        f"Some groups are surely off. For one, {group.name}:"
        f" {off_in_words(group, findings.unit, verb='are')}; stated chances are off by an"
        f" estimated {points(group.error.value)} percentage points, {evidence_in_words(group)}."
    )


def _no_group_off(findings: Findings) -> str:
    if not (findings.named or findings.scanned or findings.learned):
        return "No groups were looked at: name some, or give features."
    return (
        f"No group is surely off: {looked_at(findings)}. That does not prove that each of them is"
        " well calibrated."
    )


def _proof_sentence(findings: Findings, bound: Bound) -> str:
    mass = in_full(bound.mass)
    if not findings.is_bound_useful:
        return f"These rows prove nothing useful for every group of at least {mass} of people."
    assert findings.proof is not None
    level = confidence_in_full(findings.proof.confidence)
    opening = f"For every group of at least {mass} of people, "
    off = (
        f"stated chances are off by at most {at_most(bound.group_error)} percentage points"
        " averaged over all levels"
    )
    covered = or_zero(bound.coverage_80_low)
    if covered < LEAST_COVERED:
        return f"{opening}{off}, with {level} confidence."
    # the two bounds are two statements: nothing says how often both hold
    return (
        f"{opening}an interval stated as 80% holds at least {at_least(covered)}% of the time, and"
        f" {off}; each with {level} confidence."
    )


def _proof_remarks(findings: Findings, bound: Bound) -> list[str]:
    """Return the upper bound of a coverage, where there is one."""
    high = bound.coverage_80_high
    # 100% bounds nothing
    if not findings.is_bound_useful or high is None or at_most(high) == "100.0":
        return []
    return [
        f"The same 80% interval holds at most {at_most(high)}% of the time, each bound with the"
        " same confidence."
    ]


def _no_proof_sentence(findings: Findings) -> str:
    if not findings.is_randomized:
        return (
            "What cannot be shown: with one forecast per person no data can prove calibration for"
            " groups of up to half of the people, unless they were named beforehand, however good"
            " the forecasts are. Groups that nobody looked at may be off."
        )
    if findings.n_draws == 1:
        return (
            "Only one draw per row is known, which proves nothing for groups not named: audit"
            " several draws per row."
        )
    return "Nothing is proven here for groups that were not named; the notes say why."


def _average_sentences(findings: Findings) -> list[str]:
    if findings.everyone is None:
        return []
    error = findings.everyone.error
    return [
        f"Over everybody, stated chances are off by an estimated {points(error.value)} percentage"
        f" points (95% band {band(points, error.low, error.high)}); a stated 80% interval holds"
        f" {percent(findings.everyone.coverage_80.value)} of outcomes."
    ]


def not_covered(findings: Findings) -> list[str]:
    """Return what an audit does not cover."""
    limits = [f"{text[:1].upper()}{text[1:]}." for text in findings.not_covered]
    return [*([] if findings.bound else [NOT_ALL_GROUPS]), *(limits or [OTHER_ROWS])]


def chance_sentence(findings: Findings) -> str:
    """Return where worst groups in hindsight exceed chance; nothing if that is not known."""
    # the search fits noise: only what it finds beyond calibrated forecasts is evidence
    judged = [g for g in findings.worst_groups if is_known(g.null_high) and is_known(g.error)]
    above = [in_full(g.mass) for g in judged if or_zero(g.error) > or_zero(g.null_high)]
    if above:
        return f"Above what calibrated forecasts show at shares of {', '.join(above)}."
    return "At no share is it above what calibrated forecasts show." if judged else ""
