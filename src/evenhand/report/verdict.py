"""Main findings of an audit: the worst problem, other groups, and guarantees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand._format import at_most, count, in_full, points_in_full
from evenhand.report.document import Sentence
from evenhand.report.events import event_sentence
from evenhand.report.findings import Findings
from evenhand.report.next_steps import has_command
from evenhand.report.proof import (
    both_sides,
    floors_sentence,
    is_informative,
    plain_sentences,
)
from evenhand.report.sentences import (
    everyone_in_words,
    group_sentences,
    headline_sentences,
    leak_sentences,
    open_sentences,
    seen_sentence,
)
from evenhand.report.status import Verdict, status_of
from evenhand.report.survival import survival_sentence
from evenhand.report.terms import NO_HORIZON

NOT_ALL_GROUPS = "Groups that were not examined: there is no guarantee for them."
OTHER_ROWS = "People, places and times that these rows do not represent."
"""Limits of every audit, for audits whose certificate does not list its own."""

UNNAMED = "not examined: name those that matter with"
NOTHING_KNOWN = "No errors are known."
WHOSE = {
    "everyone": "everyone",
    "by_forecast": "groups by the own forecast",
    "groups": "named and scanned groups",
    "learned": "groups found by search",
}
"""Parts of the family."""

SLOPE = ", or for everyone a significant trend with a calibration slope outside 0.8 to 1.25"
"""Second rule for 0/1 outcomes."""

MEANS_OF_DRAWS = (
    "If outcomes are right-skewed, the draw itself raises the mean of the served forecasts. The"
    " output of `predict` and the column `mean` do not depend on the draw."
)


@dataclass(frozen=True)
class MainFindings:
    """The leading sentence of an audit and the remaining ones, errors before guarantees."""

    lead: str
    sentences: Sequence[Sentence]


def forecast_kind(findings: Findings) -> str:
    """Return the kind of forecasts that were audited."""
    if not findings.is_randomized:
        return "deterministic forecasts"
    return f"randomized forecasts, {count(findings.n_draws, 'draw')} per row"


def significance(findings: Findings) -> str:
    """Return the one rule by which problems are found."""
    shares = findings.family.get("shares") or {}
    listed = [f"{WHOSE[key]} {points_in_full(share)}" for key, share in shares.items() if share]
    of_all = f" (in points: {', '.join(listed)})" if listed else ""
    estimate = "Kaplan-Meier estimate" if findings.terms.is_time else "estimate"
    return (
        f"All tests are one family, with an error probability of {in_full(1 - findings.confidence)}"
        f"{of_all}; within each part, p-values are adjusted by Holm's method. A problem is a"
        f" significant error whose {estimate} is beyond the tolerance of"
        f" {points_in_full(findings.tolerance)} points{SLOPE * findings.terms.is_event}. Groups"
        " with the same rows count once; all people together count as one group."
    )


def main_findings(findings: Findings) -> MainFindings:
    """Write the main findings of an audit."""
    caveat = findings.values.get("caveat")
    warning = [Sentence(str(caveat), is_warning=True)] if caveat else []
    seen, rate = seen_sentence(findings), survival_sentence(findings)
    lead, everyone = headline(findings), everyone_in_words(findings)
    texts = [*open_sentences(findings), *([everyone] if everyone not in ("", lead) else [])]
    sentences = [
        *map(Sentence, [*texts, *([rate] if rate else [])]),
        *group_sentences(findings),
        *([seen] if seen else []),
        *map(Sentence, _after_groups(findings, lead)),
    ]
    return MainFindings(lead, [*warning, *sentences, *leak_sentences(findings)])


def headline(findings: Findings) -> str:
    """Return the worst problem; without one, what is proven of every group, or everyone's error."""
    if findings.leading is not None:
        return headline_sentences(findings)
    if status_of(findings).verdict is Verdict.TOO_FEW:
        n = count(findings.values["n_samples"], "row")
        return f"{n} {'is' if n == '1 row' else 'are'} too few for an audit."
    proven = proof_sentences(findings)[0] if findings.is_bound_useful else ""
    return proven or everyone_in_words(findings) or NOTHING_KNOWN


def _after_groups(findings: Findings, lead: str) -> list[str]:
    """Return sentences on what is proven for all groups."""
    proof = proof_sentences(findings)
    bound = findings.bound
    found = [text for text in proof[:1] if text != lead]
    if bound is not None and findings.is_bound_useful:
        found += plain_sentences(findings, bound)
    found += proof[1:]
    if findings.is_randomized and findings.is_mean_too_high:
        found.append(MEANS_OF_DRAWS)
    return found


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


def _no_proof_sentences(findings: Findings) -> list[str]:
    if findings.terms.is_time and not findings.terms.horizon:
        return [NO_HORIZON]
    if findings.terms.is_event:
        return _event_sentences(findings)
    if not findings.is_randomized:
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
    least = least_size(findings)
    option = "`--groups`" if has_command(findings) else "`groups`"
    small = f"rows were {UNNAMED} {option}."
    of_few = [] if least is None else [f"Groups of fewer than {least:,} {small}"]
    return [*unnamed, *of_few, *(limits or [OTHER_ROWS])]


def least_size(findings: Findings) -> int | None:
    """Return the least size of groups that are examined by features; None without any."""
    return findings.family.get("min_size") if findings.scanned else None
