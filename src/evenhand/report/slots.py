"""Slots of an audit's report: its sentences, made once from the rows for text and page.

Estimates are rounded to the nearest, lower bounds down and upper bounds up. A group has one name
in sentences; its exact rule is in tables and in JSON.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from evenhand._escape import shortened
from evenhand._format import (
    LEAST_FLOOR,
    PARTS,
    UNKNOWN,
    at_least,
    at_most,
    band,
    confidence_in_full,
    count,
    digits_of,
    in_full,
    is_largest,
    is_trivial,
    joined,
    percent,
    plain_number,
    points,
    points_in_full,
    ratio,
)
from evenhand._kinds import HIGHER, LOWER
from evenhand.report.kinds import (
    IN_FEATURES,
    IN_GROUP,
    KEYS,
    NO_HORIZON,
    Key,
    Kind,
    NoteKind,
    signed,
)
from evenhand.report.next_steps import next_steps
from evenhand.results import (
    GROUPS_LISTED,
    MASS,
    AuditRows,
    Bound,
    Finding,
    GateCondition,
    Proof,
    Values,
    Verdict,
)


def capitalized(text: str) -> str:
    """Return a text with a capital first letter."""
    # names of columns stay as they are
    return text[:1].upper() + text[1:] if re.match(r"[^\W\d_]{2,}(?![\w.])", text) else text


# --- names of groups in sentences

COMPARISON = re.compile(
    r" (present|missing|is(?: not)?(?: missing)?|[!<>]?=|[<>])(?: (.*))?", re.DOTALL
)
"""What follows the name of a column in a rule."""

WORD = re.compile(r"(?!(?:true|false|yes|no|none|nan|other|unknown)\b)[^\W\d_]{3}.*", re.I | re.S)
"""A value that is clear without the name of its column."""

AGE = {">": "over {}", ">=": "{} or older", "<": "under {}", "<=": "{} or younger"}
NUMBER = {">": "over {}", ">=": "{} or more", "<": "under {}", "<=": "{} or less"}
NAME = 90
"""Most characters of a name in a sentence."""


def name_of(one: Finding, rows: AuditRows) -> str:
    """Return the name of a group in sentences, by one rule for all groups.

    Values of categories stand alone where one column has them, ages without the name of their
    column.
    """
    kind = Kind.of(rows)
    is_part = one in rows.positive_part
    if one is rows.given:
        return "all people, by their own forecasts"
    if one is rows.everyone or (is_part and one is rows.positive_part[0]):
        name = "all people"
    elif one.key is not None:
        name = _own_name(one, kind)
    elif one.mass is not None and not one.group:
        by = f", mostly by {joined(one.features)}" if one.features else ""
        people = "people" if one.n_judged is None else f"{one.n_judged:,} rows"
        name = f"a group found by search ({in_full(one.mass)} of {people}{by})"
    else:
        listed = (*rows.named, *rows.scan, *rows.learned)
        columns = {c for other in listed for c in (*other.features, other.column) if c}
        name = _in_words(one.group, columns, "\n".join(other.group for other in listed))
    return shortened(f"{name}{kind.part}" if is_part else name, NAME)


def _own_name(one: Finding, kind: Kind) -> str:
    """Return the name of a group by the forecast: "lowest fifth of forecasts (41 to 62 mg)"."""
    key = KEYS.get(one.key or "") or Key(f"values of {one.key}")
    part, n_parts = one.part or 1, one.n_parts or 2
    show = percent if key.is_share else plain_number
    reach = " to ".join(dict.fromkeys(map(show, (one.lowest, one.highest))))
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


def _in_words(text: str, columns: set[str], rules: str) -> str:
    """Return a rule as a name: "women over 60", "self-employed, south, kidney 79 or less".

    A rule that cannot be read as comparisons of known columns is the name itself.
    """
    words, ages, others, age = list[str](), list[str](), list[str](), "age "
    # longer names first: the column "age at entry" takes precedence over the column "age"
    known = sorted(columns, key=len, reverse=True)
    for part in dict.fromkeys(text.split(" and ")):
        found = (COMPARISON.fullmatch(part, len(one)) for one in known if part.startswith(one))
        match = next(filter(None, found), None)
        if match is None:
            return text
        column, operator, value = part[: match.start()], match[1], (match[2] or "").strip('"')
        if operator in NUMBER:
            # long numbers have commas between thousands
            long = re.fullmatch(r"(\d{5,})(\.\d+)?", value)
            number = f"{int(long[1]):,}{long[2] or ''}" if long else value
            if column.lower() == "age":
                ages.append(AGE[operator].format(number))
            else:
                others.append(f"{column} {NUMBER[operator].format(number)}")
        elif operator in ("=", "is", "!=", "is not"):
            same = (f"{one} {sign} {value}" for one in columns - {column} for sign in ("=", "is"))
            is_alone = bool(WORD.fullmatch(value)) and not any(rule in rules for rule in same)
            text_of = value if is_alone else f"{column} {value}"
            words.append(text_of if operator in ("=", "is") else f"not {text_of}")
            age = "" if is_alone and column.lower() in ("sex", "gender") else "age "
        else:
            is_known = operator in ("is not missing", "present")
            others.append(f"{column} {'known' if is_known else 'missing'}")
    # "women over 60", but "south, age over 60"
    of_age = age + " and ".join(ages) if ages else ""
    named = (", " if age else " ").join(filter(None, [", ".join(words), of_age]))
    return ", ".join([*filter(None, [named]), *others])


# --- verdict


def _verdict(rows: AuditRows, kind: Kind) -> str:
    """Return the line that continues the verdict."""
    status, n, limit = rows.status, rows.status.n_problems, points_in_full(rows.tolerance)
    confidence = confidence_in_full(rows.family.confidence)
    if status.verdict is Verdict.TOO_FEW:
        return ""
    if status.verdict is Verdict.NO_PROBLEM:
        proven = f"No group is proven within {limit} points"
        if n_proven := sum(one.is_proven(rows.tolerance) for one in rows.examined):
            groups = f"{'Rate' if kind.has_rates else 'On average'} within {limit} points in"
            proven = f"{groups} {count(n_proven, 'group')}, not proven for the others"
        if status.is_proven:
            proven = f"Proven within {limit} points"
        return f"in {count(status.n_examined, 'group')}. {proven} ({confidence} confidence)."
    where = f"in {n:,} of {count(status.n_examined, 'group')}."
    if rows.is_everyone_problem:
        others = f" and {n - 1:,} of {status.n_examined:,} others" * (n > 1)
        where = f"in {count(n, 'group')}: everyone{others}."
    # every problem is beyond the tolerance by its estimate, or by its slope
    small = (one for one in rows.problems if (one.size.value or 0.0) <= rows.tolerance)
    has_slope = any(one.slope is not None for one in small)
    beyond = f"over {limit} points" + " (or slope far from 1)" * has_slope
    sure = f"in {status.n_beyond:,} with" if status.n_beyond else "and not 0 with"
    is_off = rows.everyone.rate is None or rows.is_everyone_problem or rows.everyone.is_mean_off
    average = " The average is not significantly off." * (not is_off)
    return f"{where} {capitalized(kind.gap)} {beyond}, {sure} {confidence} confidence.{average}"


ALL = "all people together"


def _shown(rows: AuditRows, kind: Kind) -> str:
    """Return the errors that the rows would have shown, with 80% probability."""
    everyone, *groups = rows.status.detectable
    if rows.status.verdict is not Verdict.TOO_FEW:
        first, *others = [*groups[::-1], everyone]
        where = f"a group of {count(first.n, 'row')}" if others else f"all {first.n:,}"
        shown = f"of {points(first.error)} points or more in {where}"
        for one in others:
            shown += f", {points(one.error)} in {'all ' * (one is everyone)}{one.n:,}"
        gap = f"{'an' if kind.gap[0] == 'e' else 'a'} {kind.gap}"
        found = f"These rows would have shown {gap} {shown} (with 80% probability)."
        return f"{found} Smaller errors may be there."
    error, most = f"Only an error of {points(everyone.error)} points or more", rows.most_detectable
    if everyone.error >= (1 if kind.has_rates else 0.5):
        error = "No error"
    text = f"{error} of {ALL} would have been found, with 80% probability"
    # detectable errors shrink as the root of the number of rows
    enough = digits_of(math.ceil(everyone.n * (everyone.error / most) ** 2), 2, "up")
    shown = points_in_full(digits_of(most, 2, "nearest"))
    return f"{text}. About {enough:,.0f} rows would show {shown} points."


# --- cases: a group, or all people, in clauses; the first one is a title

WEIGHTED = "Numbers of {} are those of all rows, weighted by the probability of membership."
"""Limit of the numbers of groups known by probability."""


def _case(one: Finding, rows: AuditRows, kind: Kind) -> list[str]:
    """Return what was found of a group or of all people, what people need first comes first."""
    is_everyone = one is rows.everyone
    if kind.has_rates and is_everyone:
        return _probabilities(rows)
    n = f" ({one.n:,} {'expected members' if one.probable else 'rows'})" if one.mass is None else ""
    least = f", at least {at_least(one.least)}" if one.least else ""
    if is_everyone:
        n, reach = "", band(points, one.size.low, one.size.high)
        least = "" if reach == UNKNOWN else f" ({reach})"
    error = f"error {points(one.size.value)} points{least}{n}"
    if one is rows.given:
        where = [one.direction] if one.direction else []
        error = f"in groups of equal forecasts the error averages {points(one.error)} points{least}"
        return [*where, error]
    rate = _rates(one, n, rows, kind)
    if one.rate is not None and rate:
        return rate
    # the trend that decides on everyone has no direction
    by_trend = is_everyone and rows.given is not None and rows.given.direction
    is_off = one.is_mean_off or (one.off and not by_trend)
    direction = _direction(one, kind) if is_off else ""
    if is_everyone and direction and one.off and not rows.is_everyone_problem:
        direction += f" (within {points_in_full(rows.tolerance)} points)"
    found, covered = [*filter(None, [direction]), error], one.coverage_80
    if covered is None:
        size = f"forecasts are off by {points(one.size.value)} points"
        return found if direction else [size, error]
    # of outcomes: where it stands first
    of = " of outcomes" if rows.leading is None or one is rows.leading else ""
    coverage = f"the 80% interval covers {percent(covered)}{of}"
    if is_everyone and one is not rows.leading:
        return [*rate, coverage, error, *found[:-1]]
    # a coverage near 80% is not what is wrong
    is_first = is_everyone or abs(covered - 0.8) > 0.05 or not direction
    found.insert(0 if is_first else 1, coverage)
    return [*rate, *found] if not rate or is_everyone else [*rate, error]


def _probabilities(rows: AuditRows) -> list[str]:
    """Return size, slope and level of the error of the probabilities of all people."""
    everyone = rows.everyone
    reach = band(points, everyone.error_low, everyone.error_high)
    size = f"probabilities are off by {points(everyone.error)} points on average"
    found = [size if reach == UNKNOWN else f"{size} ({reach})"]
    for one in rows.probability_scores[:1]:
        ends = band(ratio, one.slope_low, one.slope_high)
        if one.slope is not None and ends != UNKNOWN:
            # the interval of the slope holds by itself, and does not decide
            way = ": not extreme enough" if (one.slope or 0) > 1 else ": too extreme"
            way *= everyone.off and not (one.slope_low or 0) <= 1 <= (one.slope_high or 0)
            found.append(f"slope {ratio(one.slope)} ({ends}; 1 is right){way}")
    if rows.is_everyone_problem and (everyone.error or 0) <= rows.tolerance:
        found.reverse()
    if everyone.rate is not None:
        reach = band(signed, everyone.bias_low, everyone.bias_high)
        difference = signed(everyone.bias) + (f" ({reach})" if reach != UNKNOWN else "")
        rates = f"{percent(everyone.rate)} had the event, {percent(everyone.predicted)} predicted"
        # what decides stands first: the rates of all people may agree
        place = len(found) if rows.is_everyone_problem else 0
        found.insert(place, f"{rates}: {difference}")
    return found


def _rates(one: Finding, n: str, rows: AuditRows, kind: Kind) -> list[str]:
    """Return event rate, prediction and their difference; nothing if they are not known.

    Of times, the rate by the horizon, if it is off and does not contradict the direction.
    """
    predicted, rate, bias, by = one.predicted, one.rate, one.bias, ""
    ends = [one.bias_low, one.bias_high]
    is_part = one in rows.positive_part
    found = next((row for row in rows.survival if row.group == one.group and not is_part), None)
    if found is not None and found.observed is not None and found.predicted is not None:
        predicted, rate, bias = found.predicted, found.observed, found.observed - found.predicted
        ends = [None if end is None else end - predicted for end in (found.low, found.high)]
        by = f" by {kind.horizon}"
        # of an event that happens earlier than forecast, more people have it by then
        direction = LOWER if (ends[0] or 0) > 0 else HIGHER if (ends[1] or 0) < 0 else None
        is_opposite = {direction, one.direction} == {LOWER, HIGHER}
        if (direction is None or is_opposite) and one is not rows.everyone:
            return []
    if rate is None or predicted is None:
        return []
    reach = band(signed, *ends)
    change = f"difference {signed(bias)} points{f', {reach}' * (reach != UNKNOWN)}{n}"
    factor = rate / predicted if predicted else 1.0
    if abs(factor - 1) >= 0.05:
        change = f"{factor:,.1f} times as many; {change}"
    clauses = [f"{percent(rate)} had the event{by}, {percent(predicted)} were predicted", change]
    words = kind.directions.get(one.direction)
    if kind.has_rates and one.off and words and one.direction not in (LOWER, HIGHER):
        slope = band(ratio, one.slope_low, one.slope_high)
        clauses.insert(0, words + f" (slope {ratio(one.slope)}, {slope})" * (slope != UNKNOWN))
    return clauses


def _direction(one: Finding, kind: Kind) -> str:
    """Return the direction of a group's error, with the mean difference; "" if it is unknown."""
    direction = one.direction
    bias = 0.0 if kind.has_range else one.reported_bias
    size = f"{plain_number(abs(bias))} {kind.unit}"
    if kind.has_rates:
        size = f"{points(abs(bias))} points"
    by_mean = LOWER if (one.bias or 0.0) < 0 else HIGHER
    mean = kind.directions[by_mean].format(f" {size}") if bias else None
    if direction in (LOWER, HIGHER) and direction != by_mean and one.bias and not kind.has_range:
        # levels and mean disagree if a few large misses dominate the mean
        rank = f"outcomes rank {'lower' if direction == LOWER else 'higher'} than forecast"
        return f"{rank}, but on average {mean}" if mean else rank
    if direction in (LOWER, HIGHER) and mean:
        return mean
    other = "" if direction is None else "the error has no single direction"
    words = kind.directions.get(direction, other).format("")
    return "; ".join(text for text in (words, mean and f"on average {mean}") if text)


def _others(rows: AuditRows, kind: Kind) -> Iterator[tuple[str, str]]:
    """Yield the other cases with a sentence each."""
    # a rule and a group found by search may have one name
    names = {} if rows.leading is None else {name_of(rows.leading, rows): None}
    for one in rows.apart(rows.problems):
        name = name_of(one, rows)
        if one is not rows.leading and name not in names:
            names[name] = None
            yield capitalized(name), "; ".join(_case(one, rows, kind)) + "."
    # with a name that stands above for other outcomes, a small error would seem to contradict it
    found = {one.group for one in rows.problems}
    small = [one for one in rows.examined if one.off and not one.problem and one.group not in found]
    if small:
        small.sort(key=lambda one: one.rank)
        listed = [f"{name_of(one, rows)} ({points(one.size.value, 'down')})" for one in small]
        more = len(listed) - GROUPS_LISTED
        listed = [*listed[:GROUPS_LISTED], *([count(more, "other group")] if more > 0 else [])]
        limit = points_in_full(rows.tolerance)
        yield f"Within {limit} points", f"small errors were found in {joined(listed)}."


# --- what is proven


def _proven(rows: AuditRows, kind: Kind) -> Iterator[str]:
    """Yield what is proven of groups that nobody named, the most useful first."""
    proof, bound = rows.certificate, rows.bound
    if proof is None:
        return
    # the bound if it is useful, or else none of the size whose bounds lead a report
    useful = Bound(mass=MASS) if bound is None or is_largest(bound.group_error) else bound
    every = f"every group of at least {in_full(useful.mass)} of {kind.people}, named or not"
    confidence = f"{confidence_in_full(proof.confidence)} confidence"
    if bound is useful:
        yield f"In {every}, {_with_draw(useful, proof)}"
    if proof.unions is not None:
        yield union_sentence({**proof.unions, "error": None})
    if bound not in (None, useful):
        text = f"These rows prove nothing useful for {every}."
        if rows.censoring is not None and rows.censoring.n_lost:
            entered = "" if rows.censoring.n_followed is not None else ", give the dates of entry"
            text += (
                f" Too many people are lost before {kind.horizon}, each of whom counts with the"
                f" largest error: use an earlier horizon{entered} or follow people for longer."
            )
        yield text
    if kind.has_rates:
        for one in proof.events or ():
            is_bounded = one.below is not None and (one.event_rate_below or 0.0) < 1
            if is_bounded and math.isclose(one.mass, MASS):
                yield (
                    f"In every group of at least {in_full(MASS)} of people with predicted"
                    f" probabilities up to {in_full(one.below)}, at most"
                    f" {at_most(one.event_rate_below, percent)} have the event ({confidence})."
                )
        return
    plain = [one for one in rows.plain_intervals if one.mass == useful.mass]
    floors = [one for one in plain if one.floor >= LEAST_FLOOR]
    # the narrowest interval that covers half of every group; beside a draw, as much as that does
    shown = [one for one in floors if one.floor >= 0.5][:1] or floors[-1:]
    if rows.is_randomized:
        least = useful.coverage_80_low or 0.0
        covering = [one for one in plain if one.floor >= least] or plain[-1:]
        shown = covering[:1] if least >= LEAST_FLOOR else []
    for each in shown:
        level, floor = in_full(each.level), at_least(each.floor, percent)
        covers = f"the {level} interval covers at least {floor} of outcomes"
        # widths are unknown if only PITs are given
        if rows.is_randomized and each.width is not None:
            wider = compared(each.width - 1)
            covers += f", with no upper bound, and is {wider} than the 80% one with a draw"
        yield f"In {every}, {covers} ({confidence}, no draw)."


def compared(wider: float) -> str:
    """Write how much wider an interval is than another one."""
    return f"{percent(abs(wider), decimals=0)} {'wider' if wider >= 0 else 'narrower'}"


def union_sentence(found: Values) -> str:
    """Return the bounds for every union of named cells."""
    is_merged = 0 < found["n_cells"] < found["n_before"]
    group = "union of these merged cells of" if is_merged else "group made of"
    opening = f"In any {group} {joined(found['columns'])}"
    if not found["n_cells"]:
        return (
            f"{opening} nothing is proven: these make {found['n_before']:,} cells, and at most"
            " 1,000 are bounded; name fewer columns, or coarser bands."
        )
    bounds = []
    if found["bias"] is not None:
        most = at_most(max(-found["bias"][0], found["bias"][1]))
        bounds.append(f"the event rate is within {most} points of the mean probability")
    if found["error"] is not None:
        most = at_most(found["error"])
        bounds.append(f"predicted probabilities are off by at most {most} points")
    if found["coverage_80"] is not None:
        bounds.append(f"80% intervals cover {band(percent, *found['coverage_80'])} of outcomes")
    confidence = confidence_in_full(found["confidence"])
    each = " each" if len(bounds) > 1 else ""
    draw = "over its draws" if found["is_randomized"] else "no draw"
    remarks = ""
    if is_merged:
        remarks += (
            f"; of {found['n_before']} cells those of fewer than 150 rows were merged, and have no"
            " bound of their own"
        )
    if found["overlap"]:
        remarks += "; the groups overlap, and cells are their combinations"
    return (
        f"{opening} ({count(found['n_cells'], 'cell')}, {found['n']:,} rows), {joined(bounds)}"
        f" ({confidence} confidence{each}, {draw}){remarks}."
    )


def _with_draw(bound: Bound, proof: Proof) -> str:
    """Return the bounds of every group with a draw."""
    least, most = bound.coverage_80_low or 0.0, bound.coverage_80_high
    text = f"predicted probabilities are off by at most {at_most(bound.group_error)} points"
    each, is_open = "confidence", most is None or is_trivial(most)
    if least >= LEAST_FLOOR or not is_open:
        low = at_least(least, percent)
        sides = f"at least {low}" if is_open else f"between {low} and {at_most(most, percent)}"
        text += f" and 80% intervals cover {sides} of outcomes"
        # each bound holds for all groups of its size simultaneously (method.md, 5)
        each = "confidence each" if proof.link_bound is None else "joint confidence"
    return f"{text} ({confidence_in_full(proof.confidence)} {each}, with a draw)."


# --- cautions, and what is not tested

LEAKS_LISTED = 5
"""Most possible leaks that are listed."""


def _cautions(rows: AuditRows, kind: Kind) -> Iterator[str]:
    """Yield what a reader must know before the findings."""
    if rows.caveat:
        yield rows.caveat
    for note in rows.notes:
        if note.kind == NoteKind.IMPOSSIBLE_OUTCOMES.name:
            yield f"{capitalized(note.text)}."
    leaks: dict[object, str] = {}
    # a column may leak in two ways: equality with a range of outcomes is the plainer reason
    for leak in sorted(rows.possible_leaks, key=lambda leak: leak.apart is None):
        apart = percent(leak.apart, decimals=0)
        why = f"it differs from a range of outcomes in only {apart} of rows"
        if leak.rank_correlation is not None:
            why = "it ranks people almost as the outcome does, and better than the forecasts"
        # a tuple, so that a named group is not taken for a column of the same name
        key = leak.column or (leak.name,)
        what = f"feature {leak.column}" if leak.column else f"group {leak.name}"
        text = f"Possible leak: {what} may be made from the outcome: {why}. Unless it was known"
        leaks.setdefault(key, f"{text} before the outcome, its errors are not findings.")
    yield from list(leaks.values())[:LEAKS_LISTED]
    if len(leaks) > LEAKS_LISTED:
        yield f"Further possible leaks: {len(leaks) - LEAKS_LISTED:,}."
    probable = [name_of(one, rows) for one in rows.apart(rows.problems) if one.probable]
    if probable:
        yield WEIGHTED.format(joined(probable))
    if (times := rows.censoring) is not None and times.n_lost:
        before = f"{kind.horizon or 'an event'} (errors: Kaplan-Meier)"
        yield f"{times.n_lost:,} of {times.n_people:,} were lost before {before}."
    if rows.is_randomized and rows.everyone.reported_bias < 0:
        yield "A draw raises the mean of right-skewed forecasts; `predict` does not depend on it."


def _not_tested(rows: AuditRows, kind: Kind) -> Iterator[str]:
    """Yield what the audit does not cover; the first ones fit a line."""
    if rows.scan:
        first = "Groups by features" if rows.bound else "Unrecorded groups, unnamed ones"
        yield f"{first} under {rows.family.min_size:,} rows."
    else:
        yield f"Groups {'not examined' if rows.bound else 'nobody named'}."
    yield "Later changes."
    if kind.horizon:
        yield f"Times after {kind.horizon.removeprefix('time ')}."
    if kind.has_range and not kind.horizon:
        yield NO_HORIZON
    elif kind.has_rates:
        # outcomes, section 3: only the mean over draws counts, and nothing below the share of the
        # event divided by the group size can be proven for the bias of every group
        yield "No data can prove that the probabilities of every group are right."
    elif rows.bound is None and rows.is_randomized:
        few = ", as only one draw per row is known: audit several draws per row"
        yield f"Nothing is proven for every group{few if rows.n_draws == 1 else '; see the notes'}."
    elif rows.bound is None:
        # no bound below (1 - mass) / 2 can be certified (method.md, 11)
        yield (
            "Groups that nobody named: without a random draw in the forecasts, no data can exclude"
            " a large error in some of them."
        )


# --- how it was decided, and conditions of a gate

WHOSE = {
    "everyone": "everyone",
    "by_forecast": "groups by the own forecast",
    "groups": "named groups and groups by features",
    "learned": "groups found by search",
}
"""Parts of the family."""

TIMES = (
    f"Kaplan-Meier estimates assume that {IN_GROUP}; their {{confidence}} intervals need large"
    " groups and hold for all at once, as does the range without an assumption at any number of"
    f" rows. Problems are found by a test, which assumes that {IN_FEATURES}."
)
"""What numbers on times that are cut off assume."""

SLOPE = ", or a significant trend with a slope outside 0.8 to 1.25"
"""Second rule for 0/1 outcomes."""


def _decided(rows: AuditRows, kind: Kind) -> Iterator[str]:
    """Yield the one rule by which problems are found, and what the intervals hold for."""
    limit, shares = points_in_full(rows.tolerance), rows.family.shares
    listed = [f"{WHOSE.get(k, k)} {points_in_full(share)}" for k, share in shares.items() if share]
    of_all = f" (in points: {', '.join(listed)})" if listed else ""
    estimate = "Kaplan-Meier estimate" if kind.has_range else "estimate"
    yield (
        f"All tests are one family, with an error probability of {in_full(1 - rows.confidence)}"
        f"{of_all}; within each part, p-values are adjusted by Holm's method. A problem is a"
        f" significant error whose {estimate} is beyond the tolerance of {limit} points"
        f"{SLOPE * kind.has_rates}. The same rows count once; {ALL} count as one group."
    )
    confidence = confidence_in_full(rows.confidence)
    if kind.has_range:
        yield TIMES.format(confidence=confidence)
    else:
        names = {"error": "errors", "bias": kind.residual.partition(",")[0].lower()}
        limits = [names.get(one, one) for one in rows.family.asymptotic]
        large = f"; those of {joined(limits)} need large groups" if limits else ""
        yield f"Intervals of a measure hold for all groups, with {confidence} confidence{large}."
    if rows.problems:
        yield _shown(rows, kind)


def _condition(one: GateCondition) -> str:
    """Return whether a condition of a gate is met, and its value."""
    met = "not known" if one.is_true is None else "met" if one.is_true else "not met"
    if one.value is None or one.text == one.quantity:
        return f"`--fail-if {one.text}`: {met}."
    # bounds are rounded to the side on which they stay valid
    limits = {
        "groups_beyond_tolerance": f"it is {one.value:g}",
        "coverage": f"at least {at_least(one.value, percent)}",
        "certified_event_rate": f"at most {at_most(one.value, percent)}",
    }
    # digits by which it differs from the limit
    is_same = at_most(one.value).removesuffix(".0") == points_in_full(one.limit)
    error = f"{100 * one.value:.6g}" if is_same else at_most(one.value)
    shown = limits.get(one.quantity, f"at most {error} points")
    return f"`--fail-if {one.text}`: {met} ({shown})."


# --- the slots


class Slots:
    """Sentences of a report on an audit.

    Attributes
    ----------
    heading : str
        What was audited, with the numbers of rows and groups.
    badge : str
        The verdict in capitals.
    verdict : str
        The line beside the badge, which continues it; "" without one.
    name, fact : str
        The worst case, and what is wrong there; "" if there is no problem.
    title : str
        The worst case about people; without a problem everyone's number.
    lead : str
        One line of numbers below it.
    found_on : str
        On which rows a group was found by search and checked; "" for others.
    gate : list of str
        Conditions of a gate.
    others : tuple of (str, str)
        Other cases: names and sentences.
    everyone : tuple of str
        Sentences on all people; none if their error is not known.
    proven : tuple of str
        What is proven of groups that nobody named.
    cautions : tuple of str
        What a reader must know before the findings: a caveat, possible leaks, assumptions.
    not_tested : tuple of str
        What the audit does not cover.
    next : tuple of Step
        What to do next, the most urgent first.
    """

    def __init__(self, rows: AuditRows) -> None:
        kind, leading, verdict = Kind.of(rows), rows.leading, rows.status.verdict
        self.rows, self.kind = rows, kind
        data = rows.provenance.get("data", {}).get("name")
        of = shortened(rows.name, NAME)
        of += "" if data in (None, rows.name) else f" on {shortened(data, NAME)}"
        drawn = f", {count(rows.n_draws, 'draw')} per row" if rows.is_randomized else ""
        size = f"{count(rows.n_samples, 'row')}, {count(len(rows.examined), 'group')}"
        self.heading, self.verdict = f"Audit of {of}: {size}{drawn}", _verdict(rows, kind)
        self.badge, self.gate = str(verdict).upper(), list(map(_condition, rows.conditions))
        self.others = tuple(_others(rows, kind))
        self.everyone = tuple(
            f"{capitalized(sentence)}."
            # what decides stands first: errors of opposite signs cancel among all people
            for one in sorted(rows.overall, key=lambda one: not one.off or one is not rows.given)
            if one.size.value is not None and (one is not rows.given or rows.everyone.off)
            for sentence in _case(one, rows, kind)
        )
        self.proven, self.cautions = tuple(_proven(rows, kind)), tuple(_cautions(rows, kind))
        self.not_tested = tuple(_not_tested(rows, kind))
        self.next = tuple(next_steps(rows, kind))
        self.name = self.fact = self.found_on = ""
        if leading is not None:
            self.name = capitalized(name_of(leading, rows))
            self.fact, *facts = _case(leading, rows, kind)
            self.title = f"{self.name}: {self.fact}."
            self.lead = " ".join(f"{capitalized(one)}." for one in facts)
            if leading.mass is not None:
                of = f" of {leading.n_judged:,}" if leading.n_judged else ""
                self.found_on = f"Found by search, checked on {leading.n:,}{of} other rows."
            return
        # everyone's number, and that of a named group
        self.lead = _shown(rows, kind)
        named = [one for one in rows.named if one.is_judged and one.coverage_80 is not None]
        if verdict is Verdict.TOO_FEW:
            self.title = f"{count(rows.n_samples, 'row is', 'rows are')} too few for an audit."
        elif not self.everyone:
            self.title = "No errors are known."
        elif not named or rows.everyone.coverage_80 is None:
            self.title = self.everyone[0]
        else:
            one = max(named, key=lambda one: abs((one.coverage_80 or 0) - 0.8))
            group = f"{name_of(one, rows)}, {percent(one.coverage_80)}"
            first = self.everyone[0].removesuffix(".")
            self.title = f"{first} (named group farthest from 80%: {group})."

    @property
    def decided(self) -> list[str]:
        """How the verdict was decided."""
        return list(_decided(self.rows, self.kind))
