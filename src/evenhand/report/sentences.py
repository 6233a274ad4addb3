"""Sentences on findings: groups that are off, the evidence for it, and possible leaks."""

from __future__ import annotations

from evenhand._format import (
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
from evenhand.report.records import Leak, or_zero
from evenhand.search import AS_FORECAST, HIGHER, LOWER, MIXED, NARROW, POSSIBLE_LEAK, WIDE

WORDS: dict[str | None, tuple[str, str]] = {
    LOWER: ("outcomes", "lower than forecast"),
    HIGHER: ("outcomes", "higher than forecast"),
    NARROW: ("intervals", "too narrow"),
    WIDE: ("intervals", "too wide"),
}
"""Subject and predicate of the directions that make a sentence."""

NOT_OFF = "not surely off"

LEAKS_LISTED = 5
"""Most possible leaks that are named one by one."""


def how_off(group: GroupFinding, unit: str) -> str:
    """Return in which direction a group is off and by how much, by one rule for all tables."""
    if group.is_too_small:
        return "too few rows to tell"
    if group.is_possible_leak:
        return POSSIBLE_LEAK
    if group.is_off:
        return off_in_words(group, unit)
    if not group.is_tested:
        # the direction is all that is known, as of a possible leak
        return str(group.direction or "-")
    if not group.is_mean_off:
        return NOT_OFF
    # a mean that is off by its own band is worth a look even where the group, judged with all
    # others, is not off
    side = "lower" if or_zero(group.bias.value) < 0 else "higher"
    return f"{NOT_OFF}; mean {side}, by its own band alone"


def off_in_words(group: GroupFinding, unit: str, *, verb: str = "") -> str:
    """Return direction and size of a group's error; a verb makes it a clause."""
    bias = group.reported_bias
    size = f"{plain_number(abs(bias))} {unit}"
    if group.is_mean_opposed:
        # levels and mean disagree where a few large misses weigh most: one sentence must not say
        # both of outcomes
        ranks, side = ("lower", "above") if group.direction == LOWER else ("higher", "below")
        return (
            f"outcomes rank {ranks} than forecast, but their mean is {size} {side} the mean"
            " forecast"
        )
    words = _direction_in_words(group.direction, verb)
    if not bias:
        return words
    if group.direction in {LOWER, HIGHER}:
        return f"{words}, by {size} on average"
    return f"{words}; on average outcomes are {size} {'below' if bias < 0 else 'above'} forecast"


def _direction_in_words(direction: str | None, verb: str) -> str:
    """Return a direction in words, with a verb between subject and predicate if one is given."""
    if direction in WORDS:
        subject, predicate = WORDS[direction]
        return f"{subject} {verb} {predicate}" if verb else f"{subject} {predicate}"
    # in a clause the group is off, so "as forecast" of its mean leaves no one direction
    if direction in {None, MIXED, AS_FORECAST}:
        return "stated chances are off in no one direction" if verb else "in no one direction"
    return str(direction)


def evidence_in_words(group: GroupFinding) -> str:
    """Return the evidence for a group's error: its lower bound, else its adjusted p-value."""
    if group.least:
        return f"surely by at least {at_least(group.least)}"
    if group.p_adjusted is not None:
        return f"surely off (adjusted p {p_value(group.p_adjusted, '= ')})"
    return "surely off"


def group_sentences(findings: Findings) -> list[Sentence]:
    """Return sentences on the groups that are significantly off, five at most."""
    listed = [_finding(group, findings.unit) for group in findings.listed]
    others = [_learned_sentence(findings), _in_all(findings)]
    return listed + [sentence for sentence in others if sentence is not None]


def _finding(group: GroupFinding, unit: str) -> Sentence:
    rest = (
        f" ({count(group.n, 'row')}): {off_in_words(group, unit)}; off by an estimated"
        f" {points(group.error.value)} points, {evidence_in_words(group)}."
    )
    return Sentence("Named group " if group.is_named else "Group ", group.name, rest)


def _learned_sentence(findings: Findings) -> Sentence | None:
    found = findings.learned_off
    if found is None:
        return None
    group = found.group
    return Sentence(
        f"In a group of {in_full(found.mass)} of people, {_defined(found)}"
        f" ({count(group.n, 'row')}), {off_in_words(group, findings.unit, verb='are')}; off by an"
        f" estimated {points(group.error.value)} points, surely by at least"
        f" {at_least(group.least)}."
    )


def _in_all(findings: Findings) -> Sentence | None:
    named, others = findings.named_off, findings.scanned_off
    if len(named) + len(others) <= len(findings.listed):
        return None
    counts = {"named": (len(named), findings.n_named)}
    counts["scanned"] = (findings.n_scanned_off, findings.n_scanned)
    parts = [f"{off:,} of {n:,} {kind} groups" for kind, (off, n) in counts.items() if off]
    text = f"In all {' and '.join(parts)} are surely off: see the tables."
    # groups that share a feature with the first share many of its rows
    related = sum(not set(others[0].features).isdisjoint(group.features) for group in others[1:])
    if related:
        overlap = "overlaps" if related == 1 else "overlap"
        text += f" {related:,} of them {overlap} with {others[0].name}; others may only reflect it."
    return Sentence(text)


def learned_in_words(found: LearnedFinding) -> str:
    """Return the conditions that nearly define a learned group, or its main features."""
    if found.description:
        share = percent(or_zero(found.description_share), decimals=0)
        return f"nearly: {found.description}, {share} of people"
    features = found.group.features
    return f"by {', '.join(features)}" if features else "no short rule"


def _defined(found: LearnedFinding) -> str:
    """Return how a learned group is defined, for a sentence."""
    if found.description:
        return f"nearly those with {found.description}"
    *first, last = found.group.features or ("",)
    if not last:
        return "which features define by no short rule"
    return f"defined by {', '.join(first)}{' and ' if first else ''}{last}"


def no_scan(findings: Findings) -> str:
    """Return in a few words why no groups were scanned."""
    if findings.why_no_scan:
        return "too few rows"
    return "the notes say why" if findings.has_features else "that takes features"


def looked_at(findings: Findings) -> str:
    """Return how many groups were looked at, and whether a scan ran."""
    searched = {"scanned": findings.n_scanned, "learned": len(findings.learned)}
    counts = [count(findings.n_named, "named group")]
    counts += [count(n, f"{search} group") for search, n in searched.items() if n]
    no = "" if searched["scanned"] else f"; no scan: {no_scan(findings)}"
    return f"{', '.join(counts)} looked at, none surely off{no}"


def repair_sentence(findings: Findings) -> str:
    """Return how to recalibrate a group that is off, without randomness."""
    group = findings.farthest_off
    column = None if group is None else _column_of(findings, group)
    if column is None:
        return "To mend it without randomness: see the guides on mending."
    return f'To mend it without randomness: RecalibratedRegressor(model, by="{column}").'


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
    """Name the groups and features that the outcome may define, each column once."""
    leaks: dict[object, Leak] = {}
    # a column may leak in two ways: how far it is a range of outcomes is the plainer reason
    for leak in sorted(findings.leaks, key=lambda leak: not is_known(leak.apart)):
        # a tuple, so that a named group is not taken for a column of the same name
        leaks.setdefault(leak.column or (leak.name,), leak)
    listed = list(map(_leak_sentence, list(leaks.values())[:LEAKS_LISTED]))
    others = len(leaks) - len(listed)
    return [*listed, Sentence(f"Possible leaks besides these: {others:,}.")] if others else listed


def _leak_sentence(leak: Leak) -> Sentence:
    kind = "feature" if leak.column else "group"
    if is_known(leak.rank_correlation):
        why = "its rank correlation with the outcome is above 0.99 and above that of the forecasts"
    else:
        why = (
            f"it differs from a range of outcomes in {percent(leak.apart, decimals=0)} of the rows"
        )
    rest = f" may be defined by the outcome: {why}. "
    rest += "Groups must be known before the outcome: unless this one was, it is no finding."
    return Sentence(f"Possible leak: {kind} ", str(leak.column or leak.name), rest)
