"""Main findings: sentences on all people, groups with a problem, guarantees and leaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenhand._format import (
    UNKNOWN,
    at_least,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    is_known,
    joined,
    percent,
    plain_number,
    points,
    points_in_full,
    ratio,
)
from evenhand._kinds import AS_FORECAST, HIGHER, LOWER, MIXED, POSSIBLE_LEAK, TOO_SMALL
from evenhand.report.calibration import event_sentence, survival_sentence
from evenhand.report.certificates import union_sentence
from evenhand.report.document import Sentence
from evenhand.report.findings import GROUPS_LISTED, Findings, GroupFinding, LearnedFinding
from evenhand.report.measures import reach_of, signed
from evenhand.report.next_steps import has_command
from evenhand.report.proof import both_sides, floors_sentence, is_informative, plain_sentences
from evenhand.report.records import Leak, ProbabilityScores, known, or_zero, records
from evenhand.report.status import Verdict, status_of
from evenhand.report.terms import NO_HORIZON, WITHOUT, Terms

NOT_OFF = "no problem found"
TOLERATED = "seen, within the tolerance"
PROBLEM = "problem found"

WEIGHTED = (
    "These numbers hold for all rows weighted by the probability of membership, and not necessarily"
    " for the members."
)
"""Limit of the numbers of a group known by probability."""

LEAKS_LISTED = 5
"""Most possible leaks that are listed."""


def how_off(group: GroupFinding, findings: Findings) -> str:
    """Return what was found of a group, by the same rule in all tables and charts."""
    if group.same_as is not None:
        return f"same rows as {group.same_as}"
    if group.is_too_small or group.is_possible_leak:
        return TOO_SMALL if group.is_too_small else POSSIBLE_LEAK
    if group.is_off:
        kind = PROBLEM if group.is_problem else TOLERATED
        # of events, the sign of the difference is beside it
        is_plain = findings.terms.is_event and group.direction in {LOWER, HIGHER}
        return kind if is_plain else f"{kind}: {_ranked_in_words(group, findings.terms)}"
    if group.is_tested and group.is_proven(findings.tolerance):
        what = "rate" if findings.terms.is_event else "on average"
        return f"{NOT_OFF}; {what} within {points_in_full(findings.tolerance)}"
    # of a possible leak, only the direction is known
    return NOT_OFF if group.is_tested else group.direction or UNKNOWN


def off_in_words(group: GroupFinding, terms: Terms) -> str:
    """Return direction and size of a group's error."""
    bias = group.reported_bias
    size = terms.size(bias)
    words = _ranked_in_words(group, terms)
    if group.is_direction_opposed:
        side = "above" if group.direction == LOWER else "below"
        return f"{words}, but their mean is {size} {side} the mean forecast" if bias else words
    if not bias:
        return words
    if group.direction in {LOWER, HIGHER}:
        return f"{words}, by {size} on average"
    side = "below" if bias < 0 else "above"
    if terms.is_event:
        return f"{words}; the event rate is {size} {side} the mean probability"
    return f"{words}; on average outcomes are {size} {side} forecast"


def _ranked_in_words(group: GroupFinding, terms: Terms) -> str:
    """Return the direction of a group's error."""
    direction = group.direction
    if group.is_direction_opposed:
        # levels and mean disagree if a few large misses dominate the mean: the words must not
        # contradict the mean beside them
        return f"outcomes rank {'lower' if direction == LOWER else 'higher'} than forecast"
    if direction in terms.directions:
        return terms.directions[direction]
    # the group is off, so "as forecast" of its mean means that there is no single direction
    if direction in {None, MIXED, AS_FORECAST}:
        return "in no single direction"
    return str(direction)


def group_in_words(group: GroupFinding, findings: Findings) -> str:
    """Return how a group is off, and by how much, as sentences that follow its name."""
    terms = findings.terms
    if known(group.rate, group.predicted, group.bias.value):
        text = (
            f"{percent(group.rate)} had the event, {percent(group.predicted)} were predicted"
            f" (difference {signed(group.bias.value)} points, {reach_of(*group.bias.ends)})"
        )
        is_level = group.direction in {LOWER, HIGHER}
        text += "" if is_level else f"; {off_in_words(group, terms)}"
    else:
        size = f"off by {points(group.error.value)} points"
        size += f", at least {at_least(group.least)}" if group.least else ""
        direction = f"{off_in_words(group, terms)}. Forecasts are " if group.direction else ""
        text = f"{direction}{size}"
    texts = [f"{text}."]
    if group.is_beyond(findings.tolerance):
        confidence = confidence_in_full(group.confidence)
        texts.append(f"This is beyond the tolerance with {confidence} confidence.")
    if is_known(group.coverage_80.value):
        texts.append(f"The 80% interval covers {percent(group.coverage_80.value)} of outcomes.")
    # nothing is known of the members themselves without an assumption on membership
    return " ".join([*texts, *([WEIGHTED] if group.is_probable else [])])


def everyone_in_words(findings: Findings) -> str:
    """Return the sentences on all people; nothing if their error is not known."""
    everyone = findings.everyone
    if everyone is None or not is_known(everyone.error.value):
        return ""
    if findings.terms.is_event:
        return _event_in_words(everyone, findings)
    covered, error = everyone.coverage_80.value, everyone.error
    texts = [f"The 80% interval covers {percent(covered)} of outcomes."] * is_known(covered)
    confidence = confidence_in_full(findings.confidence)
    method = "Kaplan-Meier, " if findings.terms.is_time else ""
    reach = band(points, error.low, error.high)
    size = f"The error is {points(error.value)} points ({method}{confidence}: {reach})"
    texts += [f"{size}.", *_given_in_words(findings)]
    if everyone.is_mean_off:
        ends = sorted((abs(or_zero(everyone.bias.low)), abs(or_zero(everyone.bias.high))))
        way = "high" if findings.is_mean_too_high else "low"
        texts.append(
            f"Forecasts are too {way} by {findings.terms.size(everyone.reported_bias)} on average"
            f" ({confidence}: {band(plain_number, *ends)})."
        )
    elif everyone.is_off and everyone.direction:
        texts.append(f"Overall: {_ranked_in_words(everyone, findings.terms)}.")
    return " ".join(texts)


def _event_in_words(everyone: GroupFinding, findings: Findings) -> str:
    """Return size, slope and level of the error of probabilities."""
    given, error = findings.given_forecast, everyone.error
    chance = None if given is None else given.chance
    reach = band(points, error.low, error.high)
    by_chance = f"; right ones would show {points(chance)}" if is_known(chance) else ""
    texts = [
        f"Probabilities are off by {points(error.value)} points on average over people"
        f" ({confidence_in_full(findings.confidence)}: {reach}{by_chance})."
    ]
    scores = records(ProbabilityScores, findings.values.get("probability_scores"))[:1]
    for one in scores:
        if known(one.slope, one.slope_low, one.slope_high):
            way = "too extreme" if or_zero(one.slope_high) < 1 else ""
            way = "not extreme enough" if or_zero(one.slope_low) > 1 else way
            reach = f"{ratio(one.slope_low, 'down')} to {ratio(one.slope_high, 'up')}"
            slope = f"Calibration slope {ratio(one.slope)} ({reach})"
            texts.append(f"{slope}: {way}." if way else f"{slope}.")
    if known(everyone.rate, everyone.predicted):
        rates = percent(everyone.rate), percent(everyone.predicted)
        texts.append(f"Event rate {rates[0]}, predicted {rates[1]}.")
    return " ".join(texts)


def _given_in_words(findings: Findings) -> list[str]:
    """Return the mean error given the own forecast, and where it lies."""
    given, size = findings.given, findings.given_forecast
    if given is None or size is None:
        return []
    least = f"at least {at_least(given.least)}; " if given.least else ""
    text = f"Given the own forecast it is {points(given.error.value)} points"
    text += f" ({least}right ones would show {points(size.chance)})"
    return [f"{text}: {given.direction}." if given.is_off and given.direction else f"{text}."]


def size_in_words(group: GroupFinding) -> str:
    """Return the number of rows, or of expected members if they are known by probability."""
    return count(group.n, "expected member" if group.is_probable else "row")


def group_sentences(findings: Findings) -> list[Sentence]:
    """Return sentences on the most important groups with a problem, without that of the lead."""
    found = [
        Sentence(
            *_title(one, findings), f" ({size_in_words(one)}): {group_in_words(one, findings)}"
        )
        for one in findings.listed
        if one is not findings.leading
    ]
    n, n_listed = len(findings.problems), len(findings.listed) + findings.is_everyone_problem
    if n > n_listed:
        more = count(n - n_listed, "more problem")
        why = "Of groups that share a feature, only the worst is named here"
        found.append(Sentence(f"{why}; {more} in the tables."))
    return found


def headline_sentences(findings: Findings) -> str:
    """Return the worst problem in words; nothing if there is none."""
    group = findings.leading
    if group is None:
        return ""
    if group in findings.overall:
        return everyone_in_words(findings)
    title = "".join(_title(group, findings))
    return f"{title} ({size_in_words(group)}): {group_in_words(group, findings)}"


def _title(group: GroupFinding, findings: Findings) -> tuple[str, str]:
    """Return the beginning of a sentence on a group, and its name."""
    is_own = group in findings.by_forecast or group.mass is not None
    return ("", f"{group.name[:1].upper()}{group.name[1:]}") if is_own else ("Group ", group.name)


def open_sentences(findings: Findings) -> list[str]:
    """Return the range of the leading error that assumes nothing on times that are cut off."""
    group = findings.leading
    ends = None if group is None else group.open_error
    if group is None or ends is None or not known(ends.low, ends.high):
        return []
    whose = "of all people" if group is findings.everyone else f"of group {group.name}"
    opening = f"{WITHOUT[:1].upper()}{WITHOUT[1:]}"
    reach = f"between {at_least(ends.low)} and {at_most(ends.high)} points"
    return [f"{opening}, the error {whose} is {reach}."]


def seen_sentence(findings: Findings) -> Sentence | None:
    """Return the sentence on groups that are significantly off within the tolerance."""
    if not findings.seen:
        return None
    listed = [f"{one.name} ({points(one.error.value)})" for one in findings.seen[:GROUPS_LISTED]]
    more = len(findings.seen) - len(listed)
    listed += [count(more, "other group")] if more else []
    limit = points_in_full(findings.tolerance)
    return Sentence(f"Errors seen within the tolerance ({limit} points): {joined(listed)}.")


def learned_in_words(found: LearnedFinding) -> str:
    """Return conditions that approximately define a learned group, or its main features."""
    if found.description:
        share = percent(or_zero(found.description_share), decimals=0)
        return f"approximately {found.description} ({share} of people)"
    features = found.group.features
    return f"by {', '.join(features)}" if features else "no short definition"


def no_scan(findings: Findings) -> str:
    """Return the sentence on why no groups were scanned."""
    notes = list(map(str, findings.values["notes"]))
    for note in notes:
        if note.startswith("no groups were scanned"):
            return f"{note[:1].upper()}{note[1:]}."
    if findings.values["learned"] or any("was not scanned" in note for note in notes):
        return "No groups were scanned; see the notes."
    return "No groups were scanned: no features were given."


def leak_sentences(findings: Findings) -> list[Sentence]:
    """Return sentences on groups and features that the outcome may define, one per column."""
    found = records(Leak, findings.values.get("possible_leaks"))
    leaks: dict[object, Leak] = {}
    # a column may leak in two ways: equality with a range of outcomes is the plainer reason
    for leak in sorted(found, key=lambda leak: not is_known(leak.apart)):
        # a tuple, so that a named group is not taken for a column of the same name
        leaks.setdefault(leak.column or (leak.name,), leak)
    listed = list(map(_leak_sentence, list(leaks.values())[:LEAKS_LISTED]))
    others = len(leaks) - len(listed)
    return [*listed, Sentence(f"Further possible leaks: {others:,}.")] if others else listed


def _leak_sentence(leak: Leak) -> Sentence:
    kind = "feature" if leak.column else "group"
    if is_known(leak.rank_correlation):
        why = "its rank correlation with the outcome is above 0.99 and above that of the forecasts"
    else:
        share = percent(leak.apart, decimals=0)
        why = f"it differs from a range of outcomes in only {share} of the rows"
    rest = (
        f" may be defined by the outcome: {why}. Unless it was known before the outcome, its errors"
        " are not findings."
    )
    return Sentence(f"Possible leak: {kind} ", str(leak.column or leak.name), rest)


# --- main findings of an audit: the worst problem, other groups, and guarantees

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
    found = union_sentences(findings)
    found += [text for text in proof[:1] if text != lead]
    if bound is not None and findings.is_bound_useful:
        found += plain_sentences(findings, bound)
    found += proof[1:]
    if findings.is_randomized and findings.is_mean_too_high:
        found.append(MEANS_OF_DRAWS)
    return found


def union_sentences(findings: Findings, *, is_short: bool = False) -> list[str]:
    """Return what is proven for every union of cells of named groups, if there are any.

    The short form has coverage or the event rate alone.
    """
    unions = None if findings.proof is None else findings.proof.unions
    if unions is None:
        return []
    return [union_sentence({**unions, "error": None} if is_short else unions)]


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
    holds = "joint confidence" if is_joint else "confidence each"
    opening = f"In {every}, predicted probabilities are off by at most"
    opening += f" {at_most(bound.group_error)} points"
    if not is_informative(bound):
        return [f"{opening}, with {findings.level} confidence."]
    return [
        f"{opening} and 80% intervals cover"
        f" {both_sides(bound.coverage_80_low, bound.coverage_80_high)} ({findings.level} {holds})."
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
