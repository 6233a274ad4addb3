"""Slots of an audit's report: its sentences, made once from the rows for text and page.

Estimates are rounded to the nearest, lower bounds down and upper bounds up. A group has one name
in sentences; its exact rule is in tables and in JSON.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from evenhand._format import (
    LEAST_FLOOR,
    UNKNOWN,
    at_least,
    at_most,
    band,
    confidence_in_full,
    count,
    in_full,
    is_largest,
    is_trivial,
    joined,
    percent,
    points,
    points_in_full,
    points_with_digits,
    ratio,
    whole,
)
from evenhand._kinds import HIGHER, LOWER
from evenhand.report.certificates import union_sentence
from evenhand.report.kinds import IN_FEATURES, IN_GROUP, NO_HORIZON, WITHOUT, Key, Kind
from evenhand.report.measures import reach_of, signed
from evenhand.results import (
    GROUPS_LISTED,
    MASS,
    AuditRows,
    Bound,
    Finding,
    JudgedCondition,
    Number,
    PlainInterval,
    Verdict,
)

# --- the slots


@dataclass(frozen=True)
class Step:
    """A step after an audit: what it does, and how in the command and in Python, if it can."""

    what: str
    command: str = ""
    python: str = ""

    def code(self, has_command: bool) -> tuple[bool, str]:
        """Return whether a reader runs it as a command, and the command or lines of Python.

        Readers who audited with the command get the command, others the lines of Python.
        """
        is_shell = bool(self.command) and (has_command or not self.python)
        return is_shell, self.command if is_shell else self.python


@dataclass(frozen=True)
class Slots:
    """Sentences of a report on an audit.

    Parameters
    ----------
    heading : str
        What was audited, with the numbers of rows and groups.
    badge : str
        The verdict in capitals.
    tone : {"problem", "none", "few"}
        Style of the verdict.
    verdict : str
        The line beside the badge, which continues it; "" without one.
    name : str
        Name of the worst case; "" if there is no problem.
    title : str
        The worst case about people; without a problem everyone's number.
    lead : str
        One line of numbers below it.
    others : tuple of (str, str)
        Other cases: names and sentences.
    everyone : tuple of str
        Sentences on all people.
    proven : tuple of str
        What is proven of groups that nobody named.
    cautions : tuple of str
        What a reader must know before the findings: a caveat, possible leaks, assumptions.
    not_tested : tuple of str
        What the audit does not cover.
    next : tuple of Step
        What to do next, the most urgent first.
    more : str
        Where all groups are.
    gate : tuple of str
        Conditions of a gate.
    decided : tuple of str
        How the verdict was decided.
    """

    heading: str
    badge: str
    tone: str
    verdict: str
    name: str
    title: str
    lead: str
    others: tuple[tuple[str, str], ...]
    everyone: tuple[str, ...]
    proven: tuple[str, ...]
    cautions: tuple[str, ...]
    not_tested: tuple[str, ...]
    next: tuple[Step, ...]
    more: str
    gate: tuple[str, ...]
    decided: tuple[str, ...]

    @classmethod
    def of(cls, rows: AuditRows) -> Slots:
        """Write the slots of an audit."""
        kind, leading, verdict = Kind.of(rows), rows.leading, rows.status.verdict
        everyone = _of_all(rows, kind)
        name, title, lead = "", "No errors are known.", _shown(rows)
        if leading is not None:
            name = capitalized(name_of(leading, rows))
            fact, *facts = _case(leading, rows, kind)
            title = f"{name}: {fact}."
            lead = " ".join(_sentences([*facts, *_remarks(leading, rows)]))
        elif verdict is Verdict.TOO_FEW:
            n = rows.n_samples
            title = f"{count(n, 'row')} {'is' if n == 1 else 'are'} too few for an audit."
        elif everyone:
            title = everyone[-1 if kind.has_rates else 0]
            named = [one for one in rows.named if one.is_judged and one.coverage_80 is not None]
            if named and rows.everyone and rows.everyone.coverage_80 is not None:
                one = min(named, key=lambda one: one.rank)
                whose = f"{percent(one.coverage_80)} of those of {name_of(one, rows)}"
                title = f"{title.removesuffix('.')}, and {whose}."
        return cls(
            heading=_heading(rows),
            badge=str(verdict).upper(),
            tone=TONES[verdict],
            verdict=_verdict(rows, kind),
            name=name,
            title=title,
            lead=lead,
            others=tuple(_others(rows, kind)),
            everyone=everyone,
            proven=tuple(_proven(rows, kind)),
            cautions=tuple(_cautions(rows, kind)),
            not_tested=tuple(_not_tested(rows, kind)),
            next=tuple(_steps(rows, kind)),
            more=MORE[rows.has_command],
            gate=tuple(map(_condition, rows.conditions)),
            decided=tuple(_decided(rows, kind)),
        )


TONES = {Verdict.PROBLEM: "problem", Verdict.NO_PROBLEM: "none", Verdict.TOO_FEW: "few"}
"""Styles of the verdicts on a page."""

MORE = {True: "--full, or --out report.html", False: 'summary(full=True), to_html("report.html")'}
"""Where all groups are, after an audit by the command and after one in Python."""


def capitalized(text: str) -> str:
    """Return a text with a capital first letter."""
    # names of columns stay as they are
    return text[:1].upper() + text[1:] if re.match(r"[^\W\d_]{2,}(?![\w.])", text) else text


def _sentences(clauses: Iterable[str]) -> list[str]:
    return [f"{capitalized(one)}." for one in clauses]


def _of_all(rows: AuditRows, kind: Kind) -> tuple[str, ...]:
    """Return the sentences on all people; nothing if their error is not known."""
    known = [one for one in rows.overall if one.size.value is not None]
    return tuple(_sentences(clause for one in known for clause in _case(one, rows, kind)))


def _remarks(one: Finding, rows: AuditRows) -> Iterator[str]:
    """Yield what else a reader of the worst case must know."""
    if one.mass is not None:
        yield _found_on(one, rows)
    if one.probable:
        yield WEIGHTED


# --- names of groups in sentences

COMPARISON = re.compile(
    r" (is not missing|is missing|is not|present|missing|is|!=|<=|>=|=|<|>)(?: (.*))?", re.DOTALL
)
"""What follows the name of a column in a rule."""

WORD = re.compile(r"(?!(?:true|false|yes|no|none|nan|other|unknown)\b)[^\W\d_]{3}.*", re.I | re.S)
"""A value that is clear without the name of its column."""

AGE = {">": "over {}", ">=": "{} or older", "<": "under {}", "<=": "{} or younger"}
NUMBER = {">": "over {}", ">=": "{} or more", "<": "under {}", "<=": "{} or less"}
PARTS = ("half", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
"""Names of the parts that 2 to 10 groups divide people into."""


def name_of(one: Finding, rows: AuditRows) -> str:
    """Return the name of a group in sentences, by one rule for all groups.

    Values of categories stand alone where one column has them, ages without the name of their
    column. A rule that cannot be read as comparisons of known columns is the name itself.
    """
    kind = Kind.of(rows)
    is_part = any(one is other for other in rows.positive_part)
    if one is rows.given:
        return "all people, by their own forecasts"
    if one is rows.everyone or (is_part and one is rows.positive_part[0]):
        name = "all people"
    elif one.key is not None:
        name = _own_name(one, kind)
    elif one.mass is not None and not one.group:
        by = f", by {joined(one.features)}" if one.features else ""
        name = f"a group of {in_full(one.mass)} of people{by}"
    else:
        columns = {c for other in _listed(rows) for c in (*other.features, other.column) if c}
        found = _comparisons(one.group, columns)
        name = one.group if found is None else _in_words(found, columns, rows)
    return f"{name}{kind.part}" if is_part else name


def _listed(rows: AuditRows) -> tuple[Finding, ...]:
    return (*rows.named, *rows.scan, *rows.learned)


def _own_name(one: Finding, kind: Kind) -> str:
    """Return the name of a group by the forecast: "lowest fifth of forecasts (41 to 62 mg)"."""
    key = Key.named(one.key or "")
    part, n_parts = one.part or 1, one.n_parts or 2
    ends = [kind.forecast(end, one.key or "") for end in (one.lowest, one.highest)]
    reach = " to ".join(dict.fromkeys(ends))
    if not key.is_share and not kind.unit.startswith("units of "):
        reach += f" {kind.unit}"
    size = PARTS[min(n_parts, 10) - 2]
    place = {1: key.lowest, n_parts: key.highest}.get(part)
    if place is None:
        place = "middle" if n_parts == 3 else {2: "2nd", 3: "3rd"}.get(part, f"{part}th")
        # of widths, the place alone has no direction
        size += " by width" * (key.lowest == "narrowest")
    elif n_parts == 2:
        place = place.replace("est", "er")
    return f"{place} {size} of {key.of} ({reach})"


def _comparisons(text: str, columns: set[str]) -> list[tuple[str, str, str]] | None:
    """Return column, operator and value of the comparisons of a rule; None for another text."""
    found = []
    for part in text.split(" and "):
        # longer names first: the column "age at entry" takes precedence over the column "age"
        for column in sorted(columns, key=len, reverse=True):
            match = COMPARISON.fullmatch(part[len(column) :]) if part.startswith(column) else None
            if match is not None:
                found.append((column, match[1], (match[2] or "").strip('"')))
                break
        else:
            return None
    return found


def _in_words(found: list[tuple[str, str, str]], columns: set[str], rows: AuditRows) -> str:
    """Return comparisons as a name: "women over 60", "self-employed, south, kidney 79 or less"."""
    words, ages, others = list[str](), list[str](), list[str]()
    for column, operator, value in found:
        if operator in NUMBER:
            is_age = column.lower() == "age"
            # ages are whole years
            number = _grouped(value.removesuffix(".5") if is_age else value)
            text = (AGE if is_age else NUMBER)[operator].format(number)
            (ages if is_age else others).append(text if is_age else f"{column} {text}")
        elif operator in ("=", "is", "!=", "is not"):
            is_alone = WORD.fullmatch(value) and not any(
                f"{other} {sign} {value}" in one.group
                for other in columns - {column}
                for sign in ("=", "is")
                for one in _listed(rows)
            )
            text = value if is_alone else f"{column} {value}"
            words.append(text if operator in ("=", "is") else f"not {text}")
        else:
            is_known = operator in ("is not missing", "present")
            others.append(f"{column} {'known' if is_known else 'missing'}")
    first = [" ".join([", ".join(words), " and ".join(ages)]).strip()] if words or ages else []
    return ", ".join([*first, *others])


def _grouped(number: str) -> str:
    """Return a number of a rule with commas between thousands; other texts as they are."""
    return f"{int(number):,}" if re.fullmatch(r"\d{5,}", number) else number


def result_of(one: Finding, rows: AuditRows) -> str:
    """Return what was found of a group, for the column of results."""
    if one.same_as is not None:
        return f"same rows as {one.same_as}"
    if one.too_small or one.possible_leak:
        return "too few rows" if one.too_small else "possible leak"
    if one.problem:
        return "problem found"
    if not one.off and one.is_judged and one.is_proven(rows.tolerance):
        return f"{'rate ' * rows.is_event}within {points_in_full(rows.tolerance)}"
    return "none found"


# --- verdict


def _heading(rows: AuditRows) -> str:
    data = rows.provenance.get("data", {}).get("name")
    of = rows.name if data in (None, rows.name) else f"{rows.name} on {data}"
    size = f"{count(rows.n_samples, 'row')}, {count(len(rows.examined), 'group')}"
    drawn = f", {count(rows.n_draws, 'draw')} per row" if rows.is_randomized else ""
    return f"Audit of {of}: {size}{drawn}"


def _verdict(rows: AuditRows, kind: Kind) -> str:
    """Return the line that continues the verdict."""
    status, everyone, limit = rows.status, rows.everyone, points_in_full(rows.tolerance)
    if status.verdict is Verdict.TOO_FEW:
        return ""
    if status.verdict is Verdict.NO_PROBLEM:
        n = sum(one.is_proven(rows.tolerance) for one in rows.examined)
        proven = f"Not proven within {limit} points for any."
        if n:
            within = "Rate within" if kind.has_rates else "On average within"
            proven = f"{within} {limit} points in {count(n, 'group')}, not proven for the others."
        if status.is_proven:
            proven = f"Proven within {limit} points."
        return f"in {count(status.n_examined, 'group')}. {proven}"
    where = f"in {count(status.n_problems, 'group')}"
    if rows.is_everyone_problem:
        is_only = status.n_problems == 1
        return where + (": all people together." if is_only else f"; {ALL} are one of them.")
    if everyone is None or everyone.rate is None or everyone.is_mean_off:
        return f"{where}."
    rates = f"{percent(everyone.rate)}, {percent(everyone.predicted)} predicted"
    return f"{where}. The average is right ({rates})."


ALL = "all people together"
SMALLER = "Smaller errors may be there."


def _shown(rows: AuditRows) -> str:
    """Return the errors that the rows would have shown, with 80% probability."""
    everyone, *groups = rows.status.detectable
    if rows.status.verdict is not Verdict.TOO_FEW:
        sizes = [f"{points(one.error)} in a group of {count(one.n, 'row')}" for one in groups[::-1]]
        first, *others = [*sizes, f"{points(everyone.error)} in all {everyone.n:,}"]
        size, _, where = first.partition(" ")
        shown = ", ".join([f"{size} points or more {where}", *others])
        return f"These rows would have shown an error of {shown} (with 80% probability). {SMALLER}"
    text = (
        f"Only an error of {points(everyone.error)} points or more of {ALL} would have been found"
    )
    text += ", with 80% probability"
    most = rows.most_detectable
    if not most:
        return f"{text}."
    # detectable errors shrink as the root of the number of rows; two digits, rounded up
    n = everyone.n * (everyone.error / most) ** 2
    unit = 10 ** max(math.floor(math.log10(n)) - 1, 0)
    enough = math.ceil(n / unit) * unit
    return f"{text}. About {enough:,} rows would show {points(most).removesuffix('.0')} points."


# --- cases: a group, or all people, in clauses; the first one is a title

WEIGHTED = (
    "these are numbers of all rows, weighted by the probability of membership, and not necessarily"
    " those of the members"
)
"""Limit of the numbers of a group known by probability."""


def _case(one: Finding, rows: AuditRows, kind: Kind) -> list[str]:
    """Return what was found of a group or of all people, what says most to people first."""
    is_everyone = one is rows.everyone
    if kind.has_rates and is_everyone:
        return _probabilities(one, rows)
    n = f" ({one.n:,} {'expected members' if one.probable else 'rows'})" if one.mass is None else ""
    least = f", at least {at_least(one.least)}" if one.least else ""
    if is_everyone:
        n, reach = "", band(points, one.size.low, one.size.high)
        least = "" if reach == UNKNOWN else f" ({reach})"
    error = f"error {points(one.size.value)} points{least}{n}"
    if one is rows.given:
        chance = rows.given_forecast.chance if rows.given_forecast else None
        where = [one.direction or "errors differ between forecasts"] if one.off else []
        error = f"mean error at equal forecasts {points(one.error)} points{least}"
        return [*where, f"{error}; right ones would show {points(chance)}"]
    rate = _rates(one, n, kind) or _rate_by_horizon(one, n, rows, kind)
    if one.rate is not None and rate:
        return rate
    direction = _direction(one, kind) if one.off or one.is_mean_off else ""
    if is_everyone and one.off and not rows.is_everyone_problem:
        direction += f" (within {points_in_full(rows.tolerance)} points)"
    found, covered = [*([direction] if direction else []), error], one.coverage_80
    if covered is None:
        return (
            found if direction else [f"forecasts are off by {points(one.size.value)} points", error]
        )
    coverage = f"the 80% interval covers {percent(covered)} of outcomes"
    of_all = rows.everyone.coverage_80 if rows.everyone and one is rows.leading else None
    if of_all is not None and not is_everyone:
        coverage += f" (everyone: {percent(of_all)})"
    # a coverage near 80% is not what is wrong
    is_first = is_everyone or abs(covered - 0.8) > 0.05 or not direction
    found.insert(0 if is_first else 1, coverage)
    return [*(rate or []), *found] if not rate or is_everyone else [*rate, error]


def _found_on(one: Finding, rows: AuditRows) -> str:
    """Return on which rows a search found a group, and on which it was checked."""
    # of weighted rows and of samples of parts, it is not known how many were searched
    is_known = rows.family is None or rows.family.effective_share == 1
    is_known = is_known and "n_searched" not in rows.provenance.get("data", {})
    n = rows.n_samples - (one.n_judged or 0)
    where = f"{n:,} rows" if is_known and one.n_judged else "other rows"
    return f"found on {where}, checked on {one.n:,} others"


def _probabilities(everyone: Finding, rows: AuditRows) -> list[str]:
    """Return size, slope and level of the error of the probabilities of all people."""
    given = rows.given_forecast
    reach = band(points, everyone.error_low, everyone.error_high)
    chance = "" if given is None else f"right ones would show {points(given.chance)}"
    inside = "; ".join(text for text in (reach, chance) if text not in ("", UNKNOWN))
    size = f"probabilities are off by {points(everyone.error)} points on average"
    found = [f"{size} ({inside})" if inside else size]
    for one in rows.probability_scores[:1]:
        ends = band(ratio, one.slope_low, one.slope_high)
        if one.slope is not None and ends != UNKNOWN:
            way = ": too extreme" if (one.slope_high or 0) < 1 else ""
            way = ": not extreme enough" if (one.slope_low or 0) > 1 else way
            found.append(f"slope {ratio(one.slope)} ({ends}; 1 is right){way}")
    if everyone.rate is not None:
        rates = percent(everyone.rate), percent(everyone.predicted)
        found.append(f"{rates[0]} had the event, {rates[1]} were predicted")
    return found


def _rates(one: Finding, n: str, kind: Kind) -> list[str]:
    """Return event rate, prediction and their difference; nothing if they are not known."""
    if one.rate is None or one.predicted is None:
        return []
    change = f"difference {signed(one.bias)} points{_reach(one.bias_low, one.bias_high)}{n}"
    factor = one.rate / one.predicted if one.predicted else 1.0
    if abs(factor - 1) >= 0.05:
        change = f"{factor:,.1f} times as many; {change}"
    found = [f"{percent(one.rate)} had the event, {percent(one.predicted)} were predicted", change]
    words = kind.directions.of(one.direction)
    if one.off and words and one.direction not in (LOWER, HIGHER):
        ends = band(ratio, one.slope_low, one.slope_high)
        found.insert(0, words + f" (slope {ratio(one.slope)}, {ends})" * (ends != UNKNOWN))
    return found


def _reach(low: Number, high: Number) -> str:
    reach = reach_of(low, high)
    return "" if reach == UNKNOWN else f", {reach}"


def _rate_by_horizon(one: Finding, n: str, rows: AuditRows, kind: Kind) -> list[str]:
    """Return rate and prediction by the horizon, if the rate shows the direction of the error."""
    is_part = any(one is other for other in rows.positive_part)
    found = next((row for row in rows.survival if row.group == one.group and not is_part), None)
    if found is None or found.observed is None or found.predicted is None:
        return []
    low, high = (None if end is None else end - found.predicted for end in (found.low, found.high))
    # of an event that happens earlier than forecast, more people have it by then
    direction = LOWER if (low or 0) > 0 else HIGHER if (high or 0) < 0 else None
    if direction != one.direction and one is not rows.everyone:
        return []
    change = f"difference {signed(found.observed - found.predicted)} points"
    rates = f"{percent(found.observed)} had the event by {kind.horizon}"
    return [
        f"{rates}, {percent(found.predicted)} were predicted",
        f"{change}{_reach(low, high)}{n}",
    ]


def _direction(one: Finding, kind: Kind) -> str:
    """Return the direction of a group's error, with the mean difference; "" if it is unknown."""
    bias = one.reported_bias if kind.has_residual else 0.0
    side = f"{kind.size(bias)} {'lower' if bias < 0 else 'higher'}"
    if kind.has_residual and one.bias and one.direction == (HIGHER if one.bias < 0 else LOWER):
        # levels and mean disagree if a few large misses dominate the mean
        rank = f"outcomes rank {'lower' if one.direction == LOWER else 'higher'} than forecast"
        return f"{rank}, but their mean is {side}" if bias else rank
    if one.direction in (LOWER, HIGHER) and bias:
        return f"outcomes are {side} than forecast"
    mean = f"on average outcomes are {side} than forecast" if bias else ""
    words = kind.directions.of(one.direction)
    if words is None and one.direction is not None:
        words = "the error has no single direction"
    return "; ".join(text for text in (words, mean) if text)


def _others(rows: AuditRows, kind: Kind) -> Iterator[tuple[str, str]]:
    """Yield the other cases with a sentence each."""
    # a rule and a group found by search may have one name
    names = {} if rows.leading is None else {name_of(rows.leading, rows): None}
    for one in rows.listed:
        name = name_of(one, rows)
        if one is not rows.leading and name not in names:
            names[name] = None
            yield capitalized(name), "; ".join(_case(one, rows, kind)) + "."
    if rows.seen:
        listed = [f"{name_of(one, rows)} ({points(one.size.value)})" for one in rows.seen]
        more = len(listed) - GROUPS_LISTED
        listed = [*listed[:GROUPS_LISTED], *([count(more, "other group")] if more > 0 else [])]
        limit = points_in_full(rows.tolerance)
        yield f"Within {limit} points", f"small errors were found in {joined(listed)}."


# --- what is proven


def _proven(rows: AuditRows, kind: Kind) -> Iterator[str]:
    """Yield what is proven of groups that nobody named, the most useful first."""
    proof, bound = rows.certificate, rows.bound
    confidence = _confidence(rows)
    is_useful = bound is not None and not is_largest(bound.group_error)
    if proof is not None and proof.unions is not None:
        unions = union_sentence({**proof.unions, "error": None})
        if not is_useful:
            yield unions
    if bound is not None:
        yield from _bound_in_words(bound, rows, kind) if is_useful else [_nothing(rows, kind)]
    if is_useful and proof is not None and proof.unions is not None:
        yield unions
    if kind.has_rates:
        yield from _event_rate(rows, confidence)
    elif not rows.is_randomized:
        yield from _floors(rows, kind, confidence)


MEANS_OF_DRAWS = (
    "If outcomes are right-skewed, the draw itself raises the mean of the served forecasts. The"
    " output of `predict` and the column `mean` do not depend on the draw."
)


def _confidence(rows: AuditRows) -> str:
    proof = rows.certificate
    return confidence_in_full(rows.confidence if proof is None else proof.confidence)


def _every(mass: float, kind: Kind) -> str:
    return f"every group of at least {in_full(mass)} of {kind.people}, named or not"


def both_sides(low: Number, high: Number) -> str:
    """Write a coverage by both of its bounds: "between 61.2% and 89.3% of outcomes"."""
    if is_trivial(high) and (low or 0.0) < LEAST_FLOOR:
        return "any share of outcomes, as nothing is proven"
    if is_trivial(high):
        return f"at least {at_least(low, percent)} of outcomes"
    return f"between {at_least(low, percent)} and {at_most(high, percent)} of outcomes"


def _bound_in_words(bound: Bound, rows: AuditRows, kind: Kind) -> Iterator[str]:
    """Yield the bounds with a draw, and the interval without one that has the same lower bound."""
    proof = rows.certificate
    # each bound holds for all groups of its size simultaneously (method.md, 5)
    is_joint = proof is not None and proof.link_bound is not None
    each = "joint confidence" if is_joint else "confidence each"
    opening = f"In {_every(bound.mass, kind)}, predicted probabilities are off by at most"
    opening += f" {at_most(bound.group_error)} points"
    has_ceiling = bound.coverage_80_high is not None and not is_trivial(bound.coverage_80_high)
    if has_ceiling or (bound.coverage_80_low or 0.0) >= LEAST_FLOOR:
        sides = both_sides(bound.coverage_80_low, bound.coverage_80_high)
        yield f"{opening} and 80% intervals cover {sides} ({_confidence(rows)} {each}, with a draw)."
    else:
        yield f"{opening} ({_confidence(rows)} confidence, with a draw)."
    plain = [one for one in rows.plain_intervals if one.mass == bound.mass]
    if not plain or (bound.coverage_80_low or 0.0) < LEAST_FLOOR:
        return
    found = same_floor(rows, bound)
    one = found or plain[-1]
    level, floor = in_full(one.level), at_least(one.floor, percent)
    if found is None:
        yield (
            f"Without a draw, no interval of up to {level} has this lower bound; the {level}"
            f" interval covers at least {floor} of outcomes in every such group."
        )
        return
    # widths are unknown if only PITs are given
    width = "" if one.width is None else f", {_wider(one.width)} than the 80% interval with a draw"
    least = "at least " * kind.has_range
    yield (
        f"Without a draw, the {level} interval covers at least {floor} of outcomes in the same"
        f" groups{width}. Of all people it covers {least}{percent(one.covered)}; in a group it has"
        " no upper bound, and there is no guarantee for other levels."
    )


def _wider(width: float) -> str:
    return f"{percent(abs(width - 1), decimals=0)} {'wider' if width >= 1 else 'narrower'}"


def same_floor(rows: AuditRows, bound: Bound) -> PlainInterval | None:
    """Return the lowest level of an interval without a draw with at least the same floor."""
    least = bound.coverage_80_low or 0.0
    found = (one for one in rows.plain_intervals if one.mass == bound.mass)
    return next((one for one in found if (one.floor or 0.0) >= least), None)


def _nothing(rows: AuditRows, kind: Kind) -> str:
    """Return that a bound is the largest error, and what to do where many times are cut off."""
    text = f"These rows prove nothing useful for {_every(MASS, kind)}."
    censoring = rows.censoring
    if censoring is None or not censoring.n_lost:
        return text
    entered = "" if censoring.n_followed is not None else ", give the dates of entry"
    return (
        f"{text} Too many people are lost before {kind.horizon}, each of whom counts with the"
        f" largest error: use an earlier horizon{entered} or follow people for longer."
    )


def _floors(rows: AuditRows, kind: Kind, confidence: str) -> Iterator[str]:
    """Yield the lower bounds of intervals without a draw, if one is informative."""
    found = [one for one in rows.plain_intervals if one.mass == MASS]
    useful = [one for one in found if (one.floor or 0.0) >= LEAST_FLOOR]
    # the narrowest interval that covers half of every group
    for one in [one for one in useful if (one.floor or 0.0) >= 0.5][:1] or useful[-1:]:
        yield (
            f"In {_every(MASS, kind)}, the {in_full(one.level)} interval covers at least"
            f" {at_least(one.floor, percent)} of outcomes ({confidence} confidence, no draw)."
        )


def _event_rate(rows: AuditRows, confidence: str) -> Iterator[str]:
    """Yield the certified event rate of groups of a fifth of all people."""
    proof = rows.certificate
    for one in (proof.events or ()) if proof is not None else ():
        if (
            math.isclose(one.mass, MASS)
            and one.below is not None
            and (one.event_rate_below or 0) < 1
        ):
            yield (
                f"In every group of at least {in_full(one.mass)} of people with predicted"
                f" probabilities up to {in_full(one.below)}, at most"
                f" {at_most(one.event_rate_below, percent)} have the event ({confidence}"
                " confidence)."
            )


# --- cautions, and what is not tested

LEAKS_LISTED = 5
"""Most possible leaks that are listed."""


def _cautions(rows: AuditRows, kind: Kind) -> Iterator[str]:
    """Yield what a reader must know before the findings."""
    if rows.caveat:
        yield rows.caveat
    leaks: dict[object, str] = {}
    # a column may leak in two ways: equality with a range of outcomes is the plainer reason
    for leak in sorted(rows.possible_leaks, key=lambda leak: leak.apart is None):
        why = (
            f"it differs from a range of outcomes in only {percent(leak.apart, decimals=0)} of rows"
        )
        if leak.rank_correlation is not None:
            why = "it ranks people almost as the outcome does, and better than the forecasts"
        what = f"feature {leak.column}" if leak.column else f"group {leak.name}"
        # a tuple, so that a named group is not taken for a column of the same name
        leaks.setdefault(
            leak.column or (leak.name,),
            f"Possible leak: {what} may be made from the outcome: {why}. Unless it was known"
            " before the outcome, its errors are not findings.",
        )
    yield from list(leaks.values())[:LEAKS_LISTED]
    if len(leaks) > LEAKS_LISTED:
        yield f"Further possible leaks: {len(leaks) - LEAKS_LISTED:,}."
    if rows.censoring is not None:
        yield from _times(rows, kind)
    everyone = rows.everyone
    if rows.is_randomized and everyone is not None and everyone.reported_bias < 0:
        yield MEANS_OF_DRAWS


def followed(rows: AuditRows, kind: Kind) -> str:
    """Return the numbers of events, of people who reached the horizon and of those lost."""
    censoring, horizon = rows.censoring, kind.horizon
    if censoring is None:
        return ""
    facts = [count(censoring.n_events, "event") + (f" by {horizon}" if horizon else "")]
    if horizon:
        facts.append(f"{whole(censoring.n_reached)} people seen without it until then")
    lost = f"{censoring.n_lost:,} of {count(censoring.n_people, 'person', 'people')} lost before"
    return ", ".join([*facts, lost + (f" {horizon}" if horizon else " an event")])


def _times(rows: AuditRows, kind: Kind) -> Iterator[str]:
    censoring = rows.censoring
    if censoring is None:
        return
    people = count(censoring.n_people, "person", "people")
    before = kind.horizon or "an event"
    yield (
        f"{censoring.n_lost:,} of {people} were lost before {before}; errors are Kaplan-Meier"
        " estimates."
    )


def least_size(rows: AuditRows) -> int | None:
    """Return the least size of groups that are examined by features; None without any."""
    return None if rows.family is None or not rows.scanned else rows.family.min_size


def _not_tested(rows: AuditRows, kind: Kind) -> Iterator[str]:
    """Yield what the audit does not cover; the first ones fit a line."""
    least = least_size(rows)
    yield (
        "Groups that were not examined."
        if least is None
        else (f"Groups of fewer than {least:,} rows.")
    )
    yield "Changes since these rows."
    if kind.horizon:
        yield f"Times after {kind.horizon.removeprefix('time ')}."
    elif kind.has_range:
        yield NO_HORIZON
    if rows.bound is None:
        yield from _no_promise(rows, kind)


def _no_promise(rows: AuditRows, kind: Kind) -> Iterator[str]:
    """Yield why nothing is proven of the error in every group."""
    if kind.has_rates:
        # outcomes, section 3: only the mean over draws counts, and nothing below the share of the
        # event divided by the group size can be proven for the bias of every group
        yield (
            "Groups that nobody named: no data can prove that a yes/no forecast is right in each"
            " of them, with or without a draw."
        )
    elif rows.is_randomized:
        few = ", as only one draw per row is known: audit several draws per row"
        yield (
            "Groups that nobody named: nothing is proven of them"
            f"{few if rows.n_draws == 1 else '; see the notes'}."
        )
    elif not (kind.has_range and not kind.horizon):
        # (1 - mass) / 2 at a mass of one fifth (method.md, 11: nothing smaller can be proven);
        # the floor of others depends on the sizes of the atoms (outcomes: 2)
        least = "an error below 40 points" if kind.name in ("continuous", "") else "a small error"
        yield (
            "Groups that nobody named: with one forecast per person, no data can prove"
            f" {least} in every group of 20% of people."
        )


# --- how it was decided, and conditions of a gate

WHOSE = {
    "everyone": "everyone",
    "by_forecast": "groups by the own forecast",
    "groups": "named groups and groups by features",
    "learned": "groups found by search",
}
"""Parts of the family."""

SLOPE = ", or for everyone a trend with a slope outside 0.8 to 1.25"
"""Second rule for 0/1 outcomes."""


def _decided(rows: AuditRows, kind: Kind) -> Iterator[str]:
    """Yield the one rule by which problems are found, and what the intervals hold for."""
    family = rows.family
    shares = {} if family is None else family.shares
    listed = [f"{WHOSE.get(k, k)} {points_in_full(share)}" for k, share in shares.items() if share]
    of_all = f" (in points: {', '.join(listed)})" if listed else ""
    estimate = "Kaplan-Meier estimate" if kind.has_range else "estimate"
    yield (
        f"All tests are one family, with an error probability of {in_full(1 - rows.confidence)}"
        f"{of_all}; within each part, p-values are adjusted by Holm's method. A problem is a"
        f" significant error whose {estimate} is beyond the tolerance of"
        f" {points_in_full(rows.tolerance)} points{SLOPE * kind.has_rates}. Groups with the same"
        " rows count once; all people together count as one group."
    )
    confidence = confidence_in_full(rows.confidence)
    if kind.has_range:
        yield (
            f"Kaplan-Meier estimates assume that {IN_GROUP}; their {confidence} intervals need large"
            " groups and hold for all of them at once. The range without an assumption contains the"
            " error whatever the unknown times are, with the same confidence at any number of rows."
            f" Problems are found by a test, which assumes that {IN_FEATURES}."
        )
        one = rows.leading
        if one is not None and one.least_error is not None and one.most_error is not None:
            ends = f"between {at_least(one.least_error)} and {at_most(one.most_error)} points"
            yield f"{capitalized(name_of(one, rows))}: {WITHOUT}, the error is {ends}."
    else:
        names = {"error": "errors", "coverage": "coverage", "bias": kind.residual.lower()}
        limits = [names.get(one, one) for one in (() if family is None else family.asymptotic)]
        yield (
            f"Intervals of a measure hold for all groups at once with {confidence} confidence"
            + (f"; those of {joined(limits)} need large groups." if limits else ".")
        )
    if rows.status.verdict is Verdict.PROBLEM:
        n = rows.status.n_beyond
        where = (
            "In 1 group the whole interval is"
            if n == 1
            else f"In {n:,} groups the whole interval is"
        )
        yield f"{where} beyond {points_in_full(rows.tolerance)} points."
        yield _shown(rows)


def _condition(one: JudgedCondition) -> str:
    """Return whether a condition of a gate is met."""
    opening = f"`--fail-if {one.text}`:"
    if one.value is None:
        return f"{opening} not known."
    met = "met" if one.is_true else "not met"
    return f"{opening} {met}." if one.text == one.quantity else f"{opening} {met} ({_value(one)})."


def _value(condition: JudgedCondition) -> str:
    value, name = condition.value or 0.0, condition.quantity
    if name == "groups_beyond_tolerance":
        return f"it is {value:g}"
    # bounds are rounded to the side on which they stay valid
    if name == "coverage":
        return f"at least {at_least(value, percent)}"
    if name == "certified_event_rate":
        return f"at most {at_most(value, percent)}"
    shown = at_most(value)
    if shown.removesuffix(".0") == points_in_full(condition.limit):
        shown = points_with_digits(value)  # those by which it differs from the limit
    return f"at most {shown} points"


# --- what to do next, as lines of the command and of Python

FORECASTS = ("--target", "--forecast", "--event", "--horizon", "--weight", "--drop-missing")
"""Options of the command that name outcomes and forecasts of rows."""

PEOPLE = ("--id", "--person", "--entered", "--largest-weight")
"""Further options of rows that a certificate needs."""

GOAL = "0.25"
"""Largest group error in examples of a guarantee."""

APART = "with rows that neither the model nor this audit has seen"


def _steps(rows: AuditRows, kind: Kind) -> Iterator[Step]:
    """Yield what to do next: repair, collect rows, prove; the most urgent first."""
    yield from _repairs(rows, _options(rows, FORECASTS))
    if not rows.problems:
        yield _more_rows(rows, kind)
    yield from _proof(rows, kind, _options(rows, (*FORECASTS, *PEOPLE)))


def _more_rows(rows: AuditRows, kind: Kind) -> Step:
    # a plan is for outcomes that are all known
    if kind.has_range:
        return Step("Follow people for longer, collect more rows, or name fewer groups.")
    n = max(len(rows.examined), 1)
    return Step(
        "See how many rows show which error.",
        f"evenhand plan --groups {n}",
        f"print(evenhand.plan(n_groups={n}))",
    )


def _repairs(rows: AuditRows, options: str) -> Iterator[Step]:
    """Yield how to recalibrate the groups, or all forecasts, that have a problem."""
    apart = (*rows.overall, *rows.by_forecast)
    others = [one for one in rows.problems if not any(one is other for other in apart)]
    # groups found by search have no column
    listed = [one for one in others if one.mass is None]
    # groups of people before those by the forecast, which a repair of others changes, too
    order = sorted(rows.listed, key=lambda one: one.key is not None)
    rules = [text for one in order if (text := _rule_of(one)) is not None][:1]
    # an error along the forecast is no matter of single groups
    leads = any(rows.leading is other for other in apart)
    is_of_all = rows.is_everyone_problem and (not others or leads)
    if rules and not is_of_all:
        yield _repair(rows, rules, options)
    elif listed and not is_of_all:
        yield _repair_by_column(rows, listed[0], options)
    elif rows.problems:
        yield Step(
            f"Recalibrate all forecasts {APART}.",
            _of_table(options, "evenhand recalibrate OTHER.csv {} --out repaired"),
            _of_model(rows, "RecalibratedRegressor(FrozenEstimator(model)).fit({})"),
        )


def _rule_of(one: Finding) -> str | None:
    """Return the rule of a group as text; None for a mask, and for a group without a rule."""
    if not one.rule:
        return None
    # the name of other groups is their rule
    if one.key is None and one.mass is None:
        return one.group
    texts = []
    for condition in one.rule:
        for each in condition["comparisons"]:
            operator, value = each["operator"], each["value"]
            words = {"missing": "is missing", "present": "is not missing"}.get(operator, operator)
            texts.append(
                f"{each['column']} {words}" + ("" if value is None else f" {_in_rule(value)}")
            )
            texts[-1] += " (or missing)" * bool(condition.get("or_missing"))
    return " and ".join(texts)


def _in_rule(value: str) -> str:
    """Return a value of a rule as rules are read: in quotes where it has their words or signs."""
    is_plain = value == value.strip() != "" and not value.endswith("(or missing)")
    if is_plain and '"' not in value and not re.search(r"\s(?:and|or)\s", value, re.IGNORECASE):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _repair(rows: AuditRows, rules: Sequence[str], options: str) -> Step:
    chosen = " ".join(f"--by {_quoted(rule)}" for rule in rules)
    what = f"Repair {'this group' if len(rules) == 1 else 'these groups'} {APART}."
    model = "model"
    if rows.is_randomized:
        # the draw is the outermost part of a forecaster: what it is put around is repaired
        what = f"Repair the model before the draw, {APART}; then randomize it again."
        model = "model.estimator_"
        options = ""
    command = _of_table(options, f"evenhand recalibrate OTHER.csv {{}} {chosen} --out repaired")
    line = f"repaired = found.repair({model}, {{}})"
    return Step(what, command, _of_model(rows, line, "found = evenhand.audit(model, X, y)"))


def _repair_by_column(rows: AuditRows, one: Finding, options: str) -> Step:
    """Return how to recalibrate groups without a rule: masks, and groups of tables in parts."""
    column = _column_of(rows, one)
    by = "by=groups" if column is None else f"by={json.dumps(column, ensure_ascii=False)}"
    line = f"evenhand recalibrate OTHER.csv {{}} --by {_quoted(column or 'COLUMNS')} --out repaired"
    return Step(
        f"Recalibrate the groups with a problem, {APART}.",
        _of_table(options, line),
        _of_model(rows, f"RecalibratedRegressor(FrozenEstimator(model), {by}).fit({{}})"),
    )


def _column_of(rows: AuditRows, one: Finding) -> str | None:
    """Return the column that alone defines a group; None if there is none."""
    # recalibration by group takes one column; an intersection of two has none
    if one.features or not one.column:
        return one.features[0] if len(one.features) == 1 else None
    names = {other.group for other in rows.named}
    columns = {
        name for other in rows.scanned if other.group not in names for name in other.features
    }
    # a named group may come from outside the features, where the model cannot see its column
    return one.column if one.column in columns else None


def _proof(rows: AuditRows, kind: Kind, options: str) -> Iterator[Step]:
    """Yield how to prove something for every group, named or not, if nothing is proven."""
    bound = rows.bound
    if kind.has_rates or (bound is not None and not is_largest(bound.group_error)):
        return
    if rows.is_randomized:
        if rows.n_draws == 1 and bound is None:
            yield Step(
                "For a promise for every group, audit several draws per row.",
                "",
                "audit(model, X, y)",
            )
        return
    if kind.has_range and not kind.horizon:
        # the horizon depends on the times, which an audit does not record
        yield Step(
            "For a promise for every group, audit up to a horizon until which most people are"
            f" followed{' (--horizon)' if options else ''}.",
            python="" if options else "audit(model, X, evenhand.Outcomes(y, event, horizon=60))",
        )
        return
    size = f"{in_full(MASS)} of {kind.people}"
    floors = [one for one in rows.plain_intervals if one.mass == MASS and (one.floor or 0) > 0]
    wider = f"a wider interval, such as {in_full(floors[-1].level)}, or " if floors else ""
    yield Step(
        f"To prove coverage for every group of at least {size}, use {wider}a draw.",
        f"evenhand plan --max-group-error {GOAL}",
        f"print(evenhand.plan({GOAL}))",
    )
    yield Step(
        "If wider intervals are acceptable, randomize as little as the proof needs, on other rows.",
        _of_table(
            options, f"evenhand randomize OTHER.csv {{}} --max-group-error {GOAL} --out proven"
        ),
        _of_model(rows, f"chosen = evenhand.randomize(model, {{}}, max_group_error={GOAL})"),
    )


def _of_table(options: str, line: str) -> str:
    """Return a command on a table of forecasts; nothing for an audit that was made in Python."""
    if not options:
        return ""
    # a folder that is read must not be replaced
    is_read = any(line.endswith(f"--out {Path(word).name}") for word in options.split())
    return line.replace("{}", options, 1) + "-again" * is_read


def _of_model(rows: AuditRows, line: str, *first: str) -> str:
    """Return lines of Python on a model; those that load it follow an audit by the command."""
    lines = ['model = evenhand.load("model")', *first] if rows.has_command else []
    if rows.censoring is not None:
        horizon = rows.censoring.horizon
        until = "" if horizon is None else f", horizon={horizon:.15g}"
        lines.append(f"y_other = evenhand.Outcomes(y_other, event_other{until})")
    return "\n".join([*lines, line.replace("{}", "X_other, y_other")])


def _options(rows: AuditRows, names: Sequence[str]) -> str:
    """Return some options of the recorded command; nothing if no command was recorded."""
    recorded = rows.provenance.get("command")
    try:
        given = shlex.split(str(recorded or ""))
    except ValueError:  # an audit that was edited
        return ""
    words: list[str] = []
    for word, after in pairwise([*given, ""]):
        name, is_joined, value = word.partition("=")
        if name in names:
            has_value = name != "--drop-missing"
            words += [name, _quoted(value if is_joined else after)] if has_value else [name]
    return " ".join(words) if "--forecast" in words else ""


def _quoted(text: str) -> str:
    """Quote a word for shells, with double quotes where these suffice."""
    quoted = shlex.quote(text)
    is_simple = quoted != text and not any(sign in text for sign in "\"$`\\!'")
    return f'"{text}"' if is_simple else quoted
