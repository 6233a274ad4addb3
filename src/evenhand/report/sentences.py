"""Sentences on groups that are significantly off, the evidence, and possible leaks."""

from __future__ import annotations

from evenhand._format import (
    UNKNOWN,
    at_least,
    count,
    in_full,
    is_known,
    p_value,
    percent,
    plain_number,
    points,
)
from evenhand.report.document import Sentence
from evenhand.report.findings import Findings, GroupFinding, LearnedFinding
from evenhand.report.records import Leak, or_zero, records
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

WORDS: dict[str | None, tuple[str, str]] = {
    LOWER: ("outcomes", "lower than forecast"),
    HIGHER: ("outcomes", "higher than forecast"),
    NARROW: ("intervals", "too narrow"),
    WIDE: ("intervals", "too wide"),
}
"""Subject and predicate of the directions that make a sentence."""

NOT_OFF = "not significantly off"

SEPARATE_LEVEL = "95%"
"""Confidence of the separate intervals of groups."""

LEAKS_LISTED = 5
"""Most possible leaks that are listed."""


def how_off(group: GroupFinding, unit: str) -> str:
    """Return direction and size of a group's error, by the same rule in all tables."""
    if group.is_too_small:
        return TOO_SMALL
    if group.is_possible_leak:
        return POSSIBLE_LEAK
    if group.is_off:
        return off_in_words(group, unit)
    if not group.is_tested:
        # only the direction is known, for example of a possible leak
        return group.direction or UNKNOWN
    if not group.is_mean_off:
        return NOT_OFF
    # a biased mean is worth attention even if the group, tested jointly with all others, is not off
    side = "lower" if or_zero(group.bias.value) < 0 else "higher"
    return f"{NOT_OFF}; mean outcome {side} than forecast (unadjusted)"


def off_in_words(group: GroupFinding, unit: str, *, verb: str = "") -> str:
    """Return direction and size of a group's error; a verb makes it a clause."""
    bias = group.reported_bias
    size = f"{plain_number(abs(bias))} {unit}"
    if group.is_direction_opposed:
        # levels and mean disagree if a few large misses dominate the mean: the sentence must not
        # contradict itself, nor the mean beside it in the table
        ranks, side = ("lower", "above") if group.direction == LOWER else ("higher", "below")
        text = f"outcomes rank {ranks} than forecast"
        return f"{text}, but their mean is {size} {side} the mean forecast" if bias else text
    words = _direction_in_words(group.direction, verb)
    if not bias:
        return words
    if group.direction in {LOWER, HIGHER}:
        return f"{words}, by {size} on average"
    return f"{words}; on average outcomes are {size} {'below' if bias < 0 else 'above'} forecast"


def _direction_in_words(direction: str | None, verb: str) -> str:
    """Return a direction in words; a verb makes it a clause."""
    if direction in WORDS:
        subject, predicate = WORDS[direction]
        return f"{subject} {verb} {predicate}" if verb else f"{subject} {predicate}"
    # the group is off, so "as forecast" of its mean means that there is no single direction
    if direction in {None, MIXED, AS_FORECAST}:
        return "errors have no single direction" if verb else "in no single direction"
    return str(direction)


def error_in_words(group: GroupFinding, level: str, unit: str = "points") -> str:
    """Return the estimated error and its evidence: a lower bound, else an adjusted p-value."""
    estimate = f"an estimated {points(group.error.value)} {unit}"
    if group.least:
        # the confidence of a certificate is not that of a separate interval
        confidence = SEPARATE_LEVEL if group.is_separate else level
        return f"{estimate}, by at least {at_least(group.least)} with {confidence} confidence"
    if group.p_adjusted is None:
        return estimate
    return f"{estimate} (adjusted p {p_value(group.p_adjusted, '= ')})"


def group_sentences(findings: Findings) -> list[Sentence]:
    """Return at most five sentences on the groups that are significantly off."""
    listed = [_finding(group, findings) for group in findings.listed]
    others = [_learned_sentence(findings), _in_all(findings)]
    return listed + [sentence for sentence in others if sentence is not None]


def _finding(group: GroupFinding, findings: Findings) -> Sentence:
    rest = (
        f" ({count(group.n, 'row')}): {off_in_words(group, findings.unit, verb='are')}; predicted"
        f" probabilities are off by {error_in_words(group, findings.level)}."
    )
    return Sentence("Named group " if group.is_named else "Group ", group.name, rest)


def _learned_sentence(findings: Findings) -> Sentence | None:
    found = findings.learned_off
    if found is None:
        return None
    group = found.group
    off_by = error_in_words(group, findings.level)
    if not group.least:  # the test is more powerful than the bound
        off_by += f" (p {p_value(found.p_value, '= ')})"
    return Sentence(
        f"In a group of {in_full(found.mass)} of people, {_defined(found)}"
        f" ({count(group.n, 'row')}), {off_in_words(group, findings.unit, verb='are')}; predicted"
        f" probabilities are off by {off_by}."
    )


def _in_all(findings: Findings) -> Sentence | None:
    named, others = findings.named_off, findings.scanned_off
    if len(named) + len(others) <= len(findings.listed):
        return None
    counts = {"named": (len(named), findings.n_named)}
    counts["scanned"] = (findings.n_scanned_off, findings.n_scanned)
    parts = [f"{off:,} of {n:,} {kind} groups" for kind, (off, n) in counts.items() if off]
    text = f"In total, {' and '.join(parts)} are significantly off; see the tables."
    # groups that share a feature with the first share many of its rows
    related = sum(not set(others[0].features).isdisjoint(group.features) for group in others[1:])
    if related:
        verb = "overlaps" if related == 1 else "overlap"
        text += f" {related:,} of them {verb} with {others[0].name} and may only reflect its error."
    return Sentence(text)


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
    *first, last = found.group.features or ("",)
    if not last:
        return "without a short definition"
    return f"defined by {', '.join(first)}{' and ' if first else ''}{last}"


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
    *most, last = [count(n, f"{kind} group") for kind, n in numbers.items() if n] or ["no group"]
    verb = "was" if sum(numbers.values()) <= 1 else "were"
    counted = f"{', '.join(most)}{' and ' if most else ''}{last} {verb} examined."
    return counted if findings.n_scanned else f"{counted} {no_scan(findings)}"


def repair_sentence(findings: Findings) -> str:
    """Return how to recalibrate a group without randomness."""
    group = findings.farthest_off
    column = None if group is None else _column_of(findings, group)
    if column is None:
        return "To recalibrate the model without randomness, see the guides on recalibration."
    return (
        "To recalibrate the model without randomness, use"
        f' RecalibratedRegressor(model, by="{column}").'
    )


def _column_of(findings: Findings, group: GroupFinding) -> str | None:
    """Return the column that alone defines a group; None if there is none."""
    # recalibration by group takes one column; an intersection of two has none
    if not group.is_named:
        return group.features[0] if len(group.features) == 1 else None
    names = {other.name for other in findings.named}
    columns = {name for g in findings.scanned if g.name not in names for name in g.features}
    # a named group may come from outside the features, where the model cannot see its column
    return group.column if group.column in columns else None


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
