"""Sentences on groups that are significantly off, the evidence, and possible leaks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evenhand._format import (
    UNKNOWN,
    at_least,
    at_most,
    confidence_in_full,
    count,
    in_full,
    is_known,
    p_value,
    percent,
    points,
    points_in_full,
)
from evenhand.report.assumptions import WITHOUT
from evenhand.report.document import Sentence
from evenhand.report.findings import (
    GROUPS_LISTED,
    Findings,
    GroupFinding,
    LearnedFinding,
)
from evenhand.report.records import Leak, known, or_zero, records
from evenhand.report.terms import Terms
from evenhand.search import (
    AS_FORECAST,
    HIGHER,
    LOWER,
    MIXED,
    NARROW,
    POSSIBLE_LEAK,
    TOO_SMALL,
    WIDE,
)

NOT_OFF = "not significantly off"
TOLERATED = "significantly off within the tolerance"
BEYOND = "significantly off by more than the tolerance"

WEIGHTED = (
    "These numbers hold for all rows weighted by the probability of membership, and not necessarily"
    " for the members."
)
"""Limit of the numbers of a group known by probability."""

LEAKS_LISTED = 5
"""Most possible leaks that are listed."""


def how_off(group: GroupFinding, terms: Terms) -> str:
    """Return direction and size of a group's error, by the same rule in all tables."""
    if group.is_too_small:
        return TOO_SMALL
    if group.is_possible_leak:
        return POSSIBLE_LEAK
    if group.is_off:
        words = off_in_words(group, terms)
        return words if group.is_beyond else f"within the tolerance: {words}"
    if not group.is_tested:
        # only the direction is known, for example of a possible leak
        return group.direction or UNKNOWN
    if not group.is_mean_off:
        return NOT_OFF
    # a biased mean is worth attention even if the test of the group finds nothing
    return f"{NOT_OFF}; {terms.mean_side(or_zero(group.bias.value))}"


def off_in_words(group: GroupFinding, terms: Terms, *, verb: str = "") -> str:
    """Return direction and size of a group's error; a verb makes it a clause."""
    bias = group.reported_bias
    size = terms.size(bias)
    if group.is_direction_opposed:
        # levels and mean disagree if a few large misses dominate the mean: the sentence must not
        # contradict itself, nor the mean beside it in the table
        ranks, side = ("lower", "above") if group.direction == LOWER else ("higher", "below")
        text = f"outcomes rank {ranks} than forecast"
        return f"{text}, but their mean is {size} {side} the mean forecast" if bias else text
    words = _direction_in_words(group.direction, terms, verb)
    if not bias:
        return words
    if group.direction in {LOWER, HIGHER}:
        return f"{words}, by {size} on average"
    side = "below" if bias < 0 else "above"
    if terms.is_event:
        return f"{words}; the event rate is {size} {side} the mean probability"
    return f"{words}; on average outcomes are {size} {side} forecast"


def off_in_brief(group: GroupFinding, terms: Terms) -> str:
    """Return direction and size of a group's error in as few words as possible."""
    is_level = group.direction in {LOWER, HIGHER} and not group.is_direction_opposed
    if not (is_level and group.reported_bias):
        return off_in_words(group, terms)
    return f"{_direction_in_words(group.direction, terms, '')} by {terms.size(group.reported_bias)}"


def _direction_in_words(direction: str | None, terms: Terms, verb: str) -> str:
    """Return a direction in words; a verb makes it a clause."""
    if direction in terms.directions:
        subject, predicate = terms.directions[direction]
        return f"{subject} {verb} {predicate}" if verb else f"{subject} {predicate}"
    # the group is off, so "as forecast" of its mean means that there is no single direction
    if direction in {None, MIXED, AS_FORECAST}:
        return "errors have no single direction" if verb else "in no single direction"
    return str(direction)


def bound_in_words(group: GroupFinding) -> str:
    """Return the lower bound of an error if there is one, and the estimate, without a verb."""
    estimate = f"an estimated {points(group.error.value)}"
    if group.least:
        confidence = confidence_in_full(group.confidence)
        return f"at least {at_least(group.least)} points with {confidence} confidence, {estimate}"
    if group.p_adjusted is None:
        return f"{estimate} points"
    return f"{estimate} points (adjusted p {p_value(group.p_adjusted, '= ')})"


def finding_sentences(group: GroupFinding, findings: Findings) -> str:
    """Return sentences on how a group is off, and by how much; the first follows a colon."""
    direction = f"{off_in_words(group, findings.terms, verb='are')}."
    error = f"The error is {bound_in_words(group)}."
    return " ".join([direction, error, *coverage_sentences(group, findings)])


def coverage_sentences(group: GroupFinding, findings: Findings) -> list[str]:
    """Return the coverage if it is the reason of a finding, and the limit of its numbers."""
    # nothing is known of the members themselves without an assumption on membership
    ending = [WEIGHTED] if group.is_probable else []
    covered = {0.8: group.coverage_80.value, 0.9: group.coverage_90.value}
    gaps = {level: abs(or_zero(share) - level) for level, share in covered.items() if share}
    # if intervals are wrong or the error is small
    is_reason = group.direction in {NARROW, WIDE} or not findings.tolerance.is_exceeded(
        or_zero(group.error.value), {}
    )
    is_reason = is_reason and not findings.terms.is_event
    if not is_reason or max(gaps.values(), default=0.0) <= findings.tolerance.coverage:
        return ending
    level = max(gaps, key=lambda level: gaps[level])
    share = percent(covered[level])
    return [f"The {in_full(level)} interval covers {share} of outcomes.", *ending]


def size_in_words(group: GroupFinding) -> str:
    """Return the number of rows, or of expected members if they are known by probability."""
    return count(group.n, "expected member" if group.is_probable else "row")


def group_sentences(findings: Findings) -> list[Sentence]:
    """Return at most five sentences on groups beyond the tolerance, without that of the lead."""
    leading = findings.leading
    found = [_finding(group, findings) for group in findings.listed if group is not leading]
    learned = findings.learned_off
    if learned is not None and learned.group is not leading:
        # the largest lower bound comes first, as among all findings
        worst = findings.headline
        is_first = worst is None or learned.group.least > worst.least
        found.insert(0 if is_first else len(found), _learned_sentence(learned, findings))
    others = _in_all(findings)
    return found + ([] if others is None else [others])


def _finding(group: GroupFinding, findings: Findings) -> Sentence:
    rest = f" ({size_in_words(group)}): {finding_sentences(group, findings)}"
    return Sentence("Named group " if group.is_named else "Group ", group.name, rest)


def _learned_sentence(found: LearnedFinding, findings: Findings) -> Sentence:
    return Sentence(
        f"Learned group of {in_full(found.mass)} of people, {_defined(found)}"
        f" ({count(found.group.n, 'row')}): {finding_sentences(found.group, findings)}"
    )


def headline_sentences(group: GroupFinding, findings: Findings) -> str:
    """Return the sentences on the leading finding: lower bound, direction and estimate."""
    subject, verb = _subject(group, findings)
    if findings.terms.is_event and group.reported_bias and group is not findings.everyone:
        return " ".join(_event_sentences(subject, group, findings))
    if not group.least:
        evidence = group.p_adjusted is not None
        p = f", adjusted p {p_value(group.p_adjusted, '= ')}" if evidence else ""
        estimate = f"estimate {points(group.error.value)} points"
        first = f"{subject} {verb} significantly off ({estimate}{p})."
    else:
        confidence = confidence_in_full(group.confidence)
        method = "Kaplan-Meier " if findings.terms.is_time else ""
        first = (
            f"{subject} {verb} off by at least {at_least(group.least)} points, with {confidence}"
            f" confidence ({method}estimate {points(group.error.value)})."
        )
    # direction and estimate of all people have a sentence of their own
    if group is findings.everyone:
        return first
    there = f"There, {off_in_words(group, findings.terms, verb='are')}."
    return " ".join([first, there, *coverage_sentences(group, findings)])


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


def _event_sentences(subject: str, group: GroupFinding, findings: Findings) -> Iterator[str]:
    """Yield the sentences on 0/1 outcomes: the difference of rates, then the error."""
    yield f"{subject.rstrip(',')}: {off_in_words(group, findings.terms, verb='are')}."
    # outcomes, Theorem 4.1: readers compare the difference of rates with the error beside it
    half = "The error is half the difference of event rate and probability"
    yield f"{half}: {bound_in_words(group)}."
    yield from coverage_sentences(group, findings)


def _subject(group: GroupFinding, findings: Findings) -> tuple[str, str]:
    """Return the subject of the sentence on a finding, and its verb."""
    if group is findings.everyone:
        return "Over all people, predicted probabilities", "are"
    learned = findings.learned_off
    if learned is not None and group is learned.group:
        opening = f"A learned group of {in_full(learned.mass)} of people, {_defined(learned)}"
        return f"{opening} ({count(group.n, 'row')}),", "is"
    return f"Group {group.name} ({size_in_words(group)})", "is"


def finding_name(group: GroupFinding, findings: Findings) -> str:
    """Return the name of a group, or the definition of a learned one."""
    learned = findings.learned_off
    if learned is None or group is not learned.group:
        return group.name
    definition = learned.description or ", ".join(group.features)
    size = f"learned group of {in_full(learned.mass)}"
    return f"{size}, {definition}" if definition else size


def _in_all(findings: Findings) -> Sentence | None:
    n_others = len(findings.beyond) - len(findings.listed)
    if not n_others:
        return None
    # the number of a gate; the tables may list the same rows twice
    n = len(findings.beyond)
    text = (
        f"In total, {groups_in_words(n, findings)} {'is' if n == 1 else 'are'} significantly off,"
        " with estimates beyond the tolerance; see the tables."
    )
    used = {column for group in findings.listed for column in group.columns}
    if any(not used.isdisjoint(group.columns) for group in _unlisted(findings)):
        text += " Of groups that share a feature, only the worst is named here."
    return Sentence(text)


def groups_in_words(n: int, findings: Findings) -> str:
    """Return how many of the named and scanned groups, each set of rows once."""
    return f"{n:,} of {count(sum(group.is_judged for group in findings.distinct), 'group')}"


def _unlisted(findings: Findings) -> Iterable[GroupFinding]:
    names = {group.name for group in findings.listed}
    return (group for group in findings.beyond if group.name not in names)


def tolerated_sentence(findings: Findings) -> Sentence | None:
    """Return the sentence on groups that are significantly off within the tolerance."""
    tolerated = findings.tolerated
    if not tolerated:
        return None
    listed = [f"{group.name} ({points(group.error.value)})" for group in tolerated[:GROUPS_LISTED]]
    more = len(tolerated) - len(listed)
    listed += [f"{count(more, 'other group')}"] if more else []
    return Sentence(
        f"Significantly off, but within the tolerance ({findings.tolerance}): {joined(listed)};"
        " estimated errors in points."
    )


def within_sentence(findings: Findings) -> Sentence | None:
    """Return how many groups are proven to be within the limit that was asked for."""
    limit = findings.values.get("within")
    if not is_known(limit):
        return None
    n_within, n = findings.n_within
    number = f"{n_within:,}" if n_within else "None"
    verb = "is" if n_within <= 1 else "are"
    return Sentence(
        f"{number} of {count(n, 'group')} {verb} proven to be off by at most"
        f" {points_in_full(limit)} points, simultaneously with"
        f" {confidence_in_full(findings.confidence)} confidence."
    )


def joined(texts: Sequence[str]) -> str:
    """Join texts by commas and a final "and".

    Examples
    --------
    >>> joined(["a"]), joined(["a", "b"]), joined(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    *most, last = texts
    return f"{', '.join(most)} and {last}" if most else last


def learned_in_words(found: LearnedFinding) -> str:
    """Return conditions that approximately define a learned group, or its main features."""
    if found.description:
        share = percent(or_zero(found.description_share), decimals=0)
        return f"approximately {found.description} ({share} of people)"
    features = found.group.features
    return f"by {', '.join(features)}" if features else "no short definition"


def _defined(found: LearnedFinding) -> str:
    """Return the definition of a learned group as part of a sentence."""
    if found.description:
        return f"approximately {found.description}"
    features = found.group.features
    return f"defined by {joined(features)}" if features else "without a short definition"


def no_scan(findings: Findings) -> str:
    """Return the sentence on why no groups were scanned."""
    for note in map(str, findings.why_no_scan):
        return f"{note[:1].upper()}{note[1:]}."
    if findings.has_features:
        return "No groups were scanned; see the notes."
    return "No groups were scanned: no features were given."


def examined(findings: Findings) -> str:
    """Return the numbers of groups that were examined, and why none was scanned."""
    numbers = {"named": findings.n_named, "scanned": findings.n_scanned}
    numbers["learned"] = len(findings.learned)
    counts = [count(n, f"{kind} group") for kind, n in numbers.items() if n] or ["no group"]
    verb = "was" if sum(numbers.values()) <= 1 else "were"
    counted = f"{joined(counts)} {verb} examined."
    return counted if findings.n_scanned else f"{counted} {no_scan(findings)}"


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
