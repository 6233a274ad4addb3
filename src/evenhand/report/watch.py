"""Watch of served forecasts as text and page: alarms, promise, missing outcomes, evidence."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from evenhand._escape import short
from evenhand._format import (
    UNKNOWN,
    and_more,
    at_most,
    confidence_in_full,
    count,
    in_full,
    is_known,
    number_in_full,
    percent,
    plain_number,
    points,
    points_in_full,
    whole,
)
from evenhand._table import (
    SCREEN,
    Cells,
    Column,
    Table,
    Value,
    labelled,
    line_width,
    numeric,
    wrapped,
)
from evenhand.report.charts import (
    Axis,
    Chart,
    Color,
    Line,
    Place,
    Point,
    Points,
    Shape,
    time_axis,
    tip_name,
)
from evenhand.report.document import (
    Bullets,
    Document,
    Facts,
    Paragraph,
    Part,
    Section,
    Sentence,
    Status,
    document_html,
    embedded,
    hash_of,
)
from evenhand.report.kinds import signed
from evenhand.results import Row, Values, plain

NEVER = -math.inf
"""Log evidence before a test has started."""

NAME = 60
"""Most characters of the name of a group or of a source in a sentence."""

LISTED = 8
"""Most alarms, and most names without an alarm, that are listed."""

MARGIN = 31
"""Most characters of the column of labels."""

BROKEN = {
    "promise": "BROKEN since about {since}: {what}",
    "group": "above {tolerance} points since about {since}: {what}",
    "draws": "not uniform since about {since}: {what}",
}
"""What an alarm of each part reports."""

DIRECTIONS = {
    "higher": "outcomes higher than forecast",
    "lower": "outcomes lower than forecast",
    "narrow": "forecasts too narrow",
    "wide": "forecasts too wide",
    "gap": "outcomes too far from their draws",
}
"""What deviates in outcomes, by direction."""

DRAWS = {
    "higher": "draws too high",
    "lower": "draws too low",
    "extreme": "too many near 0 or 1",
    "central": "too many near 1/2",
}
"""What deviates in draws, by direction."""

STATISTICS = {
    "mean_pit": "",
    "gap": "a mean distance between PIT and draw of ",
    "bias": "a bias of ",
}
"""What is promised of a group, by statistic, if it is not its error."""

MEANS = (
    "If nothing is broken, the probability of any alarm is at most {false_alarm}, in all tests"
    " together, over unlimited time and however often the watch is read (e-processes and Ville's"
    " inequality). An alarm does not identify the cause.",
    "The date of an alarm is the period in which the evidence reached the threshold. The change was"
    " about in the period since which there is most evidence, and its forecasts were served earlier"
    " still, by the time in which they mature.",
    "No alarm does not prove that the promise is kept: small breaks need many rows, errors of a"
    " group within the tolerance raise none, and a missing outcome counts as the least favourable"
    " to an alarm. An estimate is no test: that of the worst group, which is selected on the same"
    " outcomes, is too high.",
)
"""What an alarm means and what it does not mean (outcomes: 6)."""


# --- dates and numbers


def _time(date: str) -> datetime:
    # only the local part counts: all dates of a watch are in UTC
    return datetime.fromisoformat(date).replace(tzinfo=None)


def _day(date: str) -> float:
    """Return the days since 1970."""
    return (_time(date) - datetime(1970, 1, 1)) / timedelta(days=1)


def date_words(date: str, days_before: float = 0) -> str:
    """Write an ISO date or time, or the day that was so many days before.

    Examples
    --------
    >>> date_words("2026-03-01"), date_words("2026-03-01T14:00"), date_words("2026-03-01", 30)
    ('1 March 2026', '1 March 2026, 14:00', '30 January 2026')
    """
    found = _time(date) - timedelta(days=days_before)
    is_time = "T" in date and not days_before
    return f"{found.day} {found:%B %Y}" + (f", {found:%H:%M}" if is_time else "")


def days_in_words(days: float) -> str:
    """Return a length of time, below one day in hours or minutes.

    Examples
    --------
    >>> days_in_words(365), days_in_words(1), days_in_words(0.5), days_in_words(0.5 / 24)
    ('365 days', '1 day', '12 hours', '30 minutes')
    """
    units = (("day", 1), ("hour", 24), ("minute", 24 * 60))
    name, per_day = next((one for one in units if days * one[1] >= 1), units[-1])
    n = plain_number(days * per_day)
    return f"{n} {name}{'' if n == '1' else 's'}"


LEAST, MOST = 0.001, 1_000_000
"""Least share and largest multiple of the alarm threshold, and rarest odds, that are printed."""


def of_alarm(ratio: float) -> str:
    """Write log evidence over threshold as a share or a multiple of the alarm threshold.

    Examples
    --------
    >>> [of_alarm(math.log(x)) for x in (0.00001, 0.0123, 0.5, 1.0, 12.34, 1e9)]
    ['under 0.1%', '1.2%', '50%', '1 time', '12.3 times', 'over 1,000,000 times']
    """
    if ratio >= math.log(MOST):
        return f"over {MOST:,} times"
    share = math.exp(ratio)
    if ratio >= 0:
        words = plain_number(share, "down")
        return f"{words} time{'' if words == '1' else 's'}"
    # never 100%, which would be an alarm
    least = f"under {percent(LEAST)}"
    return least if share < LEAST else percent(share, "down", 1 if share < 0.1 else 0)


def of_threshold(ratio: float) -> str:
    """Write evidence for a sentence.

    Examples
    --------
    >>> of_threshold(math.log(0.5)), of_threshold(math.log(3))
    ('50% of the alarm threshold', '3 times the alarm threshold')
    """
    return f"{of_alarm(ratio)}{' of' if ratio < 0 else ''} the alarm threshold"


def rarity(false_alarm: float, ratio: float) -> str:
    """Write how rare so much evidence is if nothing is broken, by Ville's inequality.

    Parameters
    ----------
    false_alarm : float
        Probability of a false alarm of all tests together.
    ratio : float
        Log of evidence over threshold.

    Examples
    --------
    >>> rarity(0.05, math.log(130)), rarity(0.05, 100.0)
    ('at most 1 in 2,600', 'at most 1 in 1,000,000')
    """
    cases = math.exp(min(ratio - math.log(false_alarm), math.log(MOST)))
    return f"at most 1 in {plain_number(_two_digits(cases))}"


def _two_digits(value: float) -> float:
    # rounded down, the direction in which the bound stays valid
    unit = 10.0 ** (math.floor(math.log10(value) + 1e-9) - 1)
    return math.floor(value / unit + 1e-9) * unit


# --- the values of a watch in types


class Signal(Row, frozen=True):
    """Alarm or notice, as the values of a watch have it."""

    part: str
    date: str
    since: str
    n_rows: int
    log_evidence: float
    threshold: float
    group: str | None = None
    direction: str | None = None
    max_log_evidence: float | None = None

    @property
    def ratio(self) -> float:
        """Log of the share of the alarm threshold on its date."""
        return self.log_evidence - self.threshold

    @property
    def highest(self) -> float:
        """Log of the share at most until now, at the ends of periods."""
        known_ones = filter(is_known, (self.log_evidence, self.max_log_evidence))
        return max(known_ones) - self.threshold

    @property
    def what(self) -> str:
        """What deviates; draws are not outcomes, and have words of their own."""
        words = DRAWS if self.part == "draws" else DIRECTIONS
        return words.get(self.direction or "", self.direction or "changed")


@dataclass(frozen=True)
class Entry:
    """Line of a watch: its label, what comes first, and what explains it."""

    label: str
    text: str
    more: str = ""
    is_warning: bool = False

    def __str__(self) -> str:
        return f"{self.text}. {self.more}" if self.more else self.text


class Watched:
    """Values of a watch, in the types that text and page need.

    Parameters
    ----------
    values : dict
        `Watch.to_dict()`.
    """

    def __init__(self, values: Values) -> None:
        self.values = values
        self.settings: Values = values.get("settings") or {}
        self.sources: Values = values.get("sources") or {}
        self.tests: Sequence[Values] = values.get("tests") or ()
        self.n_rows = int(values.get("n_rows") or 0)
        self.false_alarm = float(self.settings["false_alarm"])
        self.tolerance = points_in_full(float(self.settings["tolerance"]))
        self.matures_after: float | None = self.settings.get("matures_after_days")
        self.periods = count(int(values.get("n_periods") or 0), str(self.settings.get("period")))
        first, until = values.get("first"), values.get("until")
        self.span = f"{date_words(first)} to {date_words(until)}" if first and until else ""
        # those with an alarm first, then those with most evidence
        self.groups: list[Values] = sorted(
            values.get("groups") or (),
            key=lambda one: (not one["is_alarm"], -ratio_of(one, "max_log_evidence")),
        )
        # those of the promise first, then by date
        self.alarms, self.notices = (
            sorted(
                map(Signal.of, values.get(key) or ()),
                key=lambda one: (one.part != "promise", _day(one.date)),
            )
            for key in ("alarms", "notices")
        )

    def name(self, part: str, group: str | None = None) -> str:
        """Return what a test of a part is about."""
        if part == "promise":
            mass = self.settings.get("mass")
            return "Promise, every group" + ("" if mass is None else f" of {in_full(mass)}")
        name = short(group or "everyone", NAME)
        return name if part == "group" else "Draws" + (f", {name}" if group else "")


def ratio_of(row: Values, key: str) -> float:
    """Return log evidence over threshold; NEVER if it is unknown."""
    value = row.get(key)
    return float(value) - float(row["threshold"]) if is_known(value) else NEVER


# --- the promise; its numbers have signs where both sides have bounds of their own


def bound_words(settings: Values) -> str:
    """Return the promised bound, or both of them, rounded away from the claim.

    Examples
    --------
    >>> bound_words({"target": 0.349884}), bound_words({"target": 0.812, "targets": [0.812, 0.354]})
    ('at most 35.0 points', '-35.4 to +81.2 points')
    """
    targets = settings.get("targets")
    if targets is None:
        return f"at most {at_most(settings.get('target'))} points"
    above, below = targets
    return f"{signed(-below, toward='down')} to {signed(above, toward='up')} points"


def _promised(watched: Watched) -> str:
    """Return what was promised, to whom and with which confidence, and its estimate."""
    settings, promise = watched.settings, watched.values.get("promise")
    atom, confidence = settings.get("atom"), settings.get("confidence")
    text = "Promised"
    if atom is not None:
        text += f", in every group of at least {in_full(settings.get('mass'))} of the people whose"
        text += f" outcome is not {number_in_full(atom)}"
    text += f": {STATISTICS[settings['statistic']]}{bound_words(settings)}"
    if confidence is not None:
        text += f" ({confidence_in_full(confidence)} confidence)"
    return text if promise is None else f"{text}. {_estimated(promise, settings)}"


def _estimated(promise: Values, settings: Values) -> str:
    """Return the estimate for the worst group, with missing outcomes at best and at worst."""
    estimate, best, worst = (promise[key] for key in ("estimate", "best_case", "worst_case"))
    if not is_known(estimate):
        return "Not estimated yet"
    show: Callable[..., str] = points if settings.get("targets") is None else signed
    sign = _sign(promise, settings)
    text = f"Worst group: an estimated {show(sign * estimate)} points"
    if is_known(best) and is_known(worst) and (best, worst) != (estimate, estimate):
        low, high = sorted((sign * best, sign * worst))
        ends = [show(low, toward="down"), show(high, toward="up")]
        text += f", {' to '.join(ends)} whatever the missing outcomes are"
    recent = promise.get("recent")
    if recent is not None and is_known(recent["estimate"]):
        now = show(_sign(recent, settings) * recent["estimate"])
        text += f"; {now} from {date_words(recent['since'])} on"
    return text


def _sign(found: Values, settings: Values) -> int:
    """Return the sign of an estimate, which is negative on the lower of two sides."""
    is_lower = settings.get("targets") is not None and found.get("direction") == "lower"
    return -1 if is_lower else 1


# --- lines of a watch: what is broken, what is not, what is missing, and what to do


def rows_of(watched: Watched) -> Iterator[Entry]:
    """Yield the lines of a watch, the most important first."""
    is_promised = watched.settings.get("target") is not None
    if not watched.n_rows:
        yield Entry("Waiting", _waiting(watched))
    for one in watched.alarms[:LISTED]:
        yield _alarm_row(one, watched)
    if len(watched.alarms) > LISTED:
        yield Entry("More alarms", f"{len(watched.alarms) - LISTED:,}, in other groups or parts")
    parts = {one.part for one in watched.alarms}
    if is_promised and "promise" not in parts:
        quiet = (
            f"no evidence against it in {watched.periods}" if watched.n_rows else "not tested yet"
        )
        yield Entry(watched.name("promise"), quiet, _promised(watched))
    quiet_groups = [short(one["name"], 30) for one in watched.groups if not one["is_alarm"]]
    draws = watched.values.get("draws")
    if draws is not None and watched.n_rows and "draws" not in parts:
        quiet_groups.append(f"draws ({points(draws.get('error'))} points from uniform)")
    if quiet_groups:
        yield Entry("No alarm", and_more(quiet_groups, LISTED))
    if not is_promised:
        yield Entry("Promise", "none is watched, as no certificate was given")
    for one in watched.notices[-1:]:
        when = f"left the range of the certificate on {date_words(one.date)}: {one.what}"
        yield Entry("Notice, no alarm", when, "The promise may still be kept")
    if watched.n_rows:
        yield Entry("Missing outcomes", _missing(watched))
    notes = [_repeated(draws or {}), late_sentence(watched.values)]
    for note in filter(None, [*notes, *(watched.values.get("notes") or ())]):
        yield Entry("Caution", note, is_warning=True)


def _alarm_row(one: Signal, watched: Watched) -> Entry:
    words = {"since": date_words(one.since), "what": one.what, "tolerance": watched.tolerance}
    text = BROKEN[one.part].format(**words)
    more = _promised(watched) if one.part == "promise" else ""
    group = next((row for row in watched.groups if row["name"] == one.group), {})
    error = group.get("error") if one.part == "group" else None
    if one.part == "draws" and one.group is None:
        error = (watched.values.get("draws") or {}).get("error")
    over_all = f" ({points(error)} points over all forecasts)" if is_known(error) else ""
    return Entry(watched.name(one.part, one.group), text + over_all, more, is_warning=True)


def _waiting(watched: Watched) -> str:
    if watched.matures_after is None:
        return "no forecast has been watched yet"
    n = int(watched.values.get("n_waiting") or 0)
    until = f"no forecast has matured yet, after {days_in_words(watched.matures_after)}"
    return f"{until}: {count(n, 'forecast is', 'forecasts are')} waiting" if n else until


def _missing(watched: Watched) -> str:
    """Return how many outcomes are missing, late or still waited for."""
    n, missing, late = n_outcomes(watched.values)
    text = f"{missing:,} of {n:,} ({percent(missing / n)})"
    if late:
        text += f", of which {late:,} were recorded later"
    usual = watched.values.get("days_90")
    if usual is not None:
        text += f"; 90% of the recorded came within {days_in_words(math.ceil(usual))}"
    if waiting := int(watched.values.get("n_waiting") or 0):
        text += f"; {count(waiting, 'more forecast has', 'more forecasts have')} not matured"
    if repeated := int(watched.values.get("n_repeated") or 0):
        text += f"; {count(repeated, 'forecast')} of people counted before left out"
    return text


def n_outcomes(values: Values) -> tuple[int, int, int]:
    """Return the numbers of forecasts, of missing outcomes, and of the late ones among these."""
    n, missing, late = (int(values.get(key) or 0) for key in ("n_rows", "n_missing", "n_late"))
    return n, missing, late


def late_sentence(values: Values) -> str:
    """Return the remedy if more outcomes came too late than in time; empty if not."""
    n, missing, late = n_outcomes(values)
    matures_after = (values.get("settings") or {}).get("matures_after_days")
    if matures_after is None or late <= n - missing:
        return ""
    return (
        f"{late:,} of {count(n - missing + late, 'outcome')} were recorded later than"
        f" {days_in_words(matures_after)} after the forecast was logged and count as missing: begin"
        " a new watch that waits longer"
    )


def _repeated(draws: Values) -> str:
    """Return how many draws were those of earlier forecasts; empty if none was."""
    n = int(draws.get("n_repeated") or 0)
    if not n:
        return ""
    total = n + int(draws["n"])
    return (
        f"{n:,} of {count(total, 'draw')} {'was' if n == 1 else 'were'} the same as an earlier one"
        " and not counted; check how the draws are made"
    )


def next_step(watched: Watched) -> str:
    """Return what to do after alarms; empty without one."""
    steps = []
    of_outcomes = [one for one in watched.alarms if one.part != "draws"]
    if of_outcomes:
        since = min((one.since for one in of_outcomes), key=_day)
        when = f"that matured since {date_words(since)}"
        # a week or a month is too long for a date
        if watched.matures_after and watched.settings["period"] in ("hour", "day"):
            when = f"served since about {date_words(since, watched.matures_after)}"
        steps.append(f"audit the rows {when}, then repair or refit the model")
    if any(one.part == "promise" for one in watched.alarms):
        steps.append("do not rely on the certificate; certify again, in a new context")
    if any(one.part == "draws" for one in watched.alarms):
        steps.append(
            "check whether people were served under several ids to obtain a better draw, and"
            " whether the key was lost or replaced"
        )
    return "; ".join(steps)


def strength(watched: Watched) -> str:
    """Return how strong the evidence is: of the alarms together, or what is nearest to one."""
    if watched.alarms:
        # of groups also within a period, not only at its end
        ratios = [ratio_of(one, "max_log_evidence") for one in watched.groups if one["is_alarm"]]
        highest = max(*ratios, *(one.highest for one in watched.alarms), NEVER)
        rare = rarity(watched.false_alarm, highest)
        return f"If nothing were wrong, such evidence would have a probability of {rare}."
    found = [
        (ratio_of(one, "max_log_evidence"), short(one["name"], NAME)) for one in watched.groups
    ]
    for part, name in (("promise", "the promise"), ("draws", "the draws")):
        ratios = [max(_path(one), default=NEVER) for one in watched.tests if one["part"] == part]
        found.append((max(ratios, default=NEVER), name))
    ratio, name = max(found, key=lambda one: one[0])
    return "" if ratio == NEVER else f"Most evidence: {of_threshold(ratio)}, of {name}."


def status_word(watched: Watched) -> str:
    """Return the status: the words of a badge."""
    if watched.alarms:
        return "Alarm"
    return "No alarm" if watched.n_rows else "No rows yet"


def title(watched: Watched) -> str:
    """Return what is watched, by the file or the database of the log."""
    log = str(watched.sources.get("log") or "").rpartition("/")[2]
    return f"Watch of {short(log, NAME) if log else 'served forecasts'}"


def watch_text(values: Values) -> str:
    """Return a watch, given as `Watch.to_dict()`, as short text."""
    watched = Watched(plain(values))
    width = line_width(SCREEN)
    rows = list(rows_of(watched))
    facts = f", {watched.span}: {count(watched.n_rows, 'forecast')}" if watched.n_rows else ""
    status = status_word(watched).upper()
    is_alarm = bool(watched.alarms)
    lines = [
        wrapped(title(watched) + facts, width),
        wrapped(status if is_alarm else f"{status}. {strength(watched)}", width),
        labelled([(row.label, str(row)) for row in rows], width, MARGIN),
    ]
    if is_alarm:
        lines.append(wrapped(strength(watched), width))
        lines.append(labelled([("Next", next_step(watched))], width, MARGIN))
    return "\n".join(lines)


# --- evidence over time, in decimal logs of its share of the alarm threshold

TICKS = {-6: "÷10⁶", -4: "÷10⁴", -2: "÷100", 0: "alarm", 2: "×100", 4: "×10⁴"}
"""Ticks of the axis of evidence, which is the same on all pages; beyond it, curves are cut."""

LOWEST, TOP = float(min(TICKS)), float(max(TICKS))

MARKS: dict[str, tuple[str, Color, Shape]] = {
    "promise": ("promise", "blue", "circle"),
    "group": ("groups", "orange", "diamond"),
    "draws": ("draws", "grey", "hollow"),
}
"""Name, colour and shape of each part."""

SIGNALS: dict[str, tuple[Color, Shape]] = {
    "notice": ("grey", "triangle"),
    "alarm": ("red", "square"),
}
"""Colour and shape of alarms and notices."""

MARKED, DRAWN = 15, 300
"""Most marks of a curve that a pointer can distinguish, and most points in each direction: the
picture is 420 units wide."""

Led = tuple[int, float, str | None]
"""Period, highest evidence of a part in it, and the group that has it."""


def _path(test: Values) -> list[float]:
    """Return the log evidence over threshold of a test by period."""
    limit: float = test["threshold"]
    return [one - limit if is_known(one) else NEVER for one in test["log_evidence"]]


def _leading(tests: Sequence[Values]) -> list[Led]:
    """Return the most evidence of some tests in each period that has any."""
    by_period: dict[int, tuple[float, str | None]] = {}
    for test in tests:
        for i, ratio in enumerate(_path(test)):
            if ratio > by_period.get(i, (NEVER, None))[0]:
                by_period[i] = ratio, test["group"]
    return [(i, *by_period[i]) for i in sorted(by_period)]


def decimal(ratio: float) -> float:
    """Return the decimal log of evidence over threshold, cut at the ends of the axis."""
    return min(max(ratio / math.log(10), LOWEST), TOP)


def evidence_chart(watched: Watched) -> Chart | None:
    """Draw the evidence of each part by period with the threshold; None without a period."""
    days = [_day(date) for date in watched.values.get("dates") or ()]
    curves = {
        part: _leading([one for one in watched.tests if one["part"] == part]) for part in MARKS
    }
    ratios = [ratio for curve in curves.values() for _, ratio, _ in curve]
    if not days or not ratios:
        return None
    signals = {"notice": watched.notices, "alarm": watched.alarms}
    x = time_axis(days[0], days[-1], watched.span)
    note = "A line that reaches the dashed line raises an alarm."
    if len(watched.groups) > 1:
        n = len(watched.groups)
        note += f" The line of groups is that of the group with the highest evidence, of {n:,}."
    if any(decimal(ratio) != ratio / math.log(10) for ratio in ratios):
        note += f" Evidence is drawn between {TICKS[-6]} and {TICKS[4]}."
    return Chart(
        "Evidence of each part by period, on a logarithmic scale; an alarm is raised at the"
        " dashed line.",
        x,
        [
            Line([(x.low, 0.0), (x.high, 0.0)], "alarm threshold"),
            *(_curve(part, curve, days, watched) for part, curve in curves.items() if curve),
            *(_signal_points(word, found, watched) for word, found in signals.items() if found),
        ],
        Axis(LOWEST, TOP, "Evidence (log scale)", [*TICKS], lambda power: TICKS[round(power)]),
        note=note,
        numbers=_signal_table(watched) if watched.alarms or watched.notices else None,
    )


def _curve(part: str, curve: Sequence[Led], days: Sequence[float], watched: Watched) -> Points:
    """Return a curve with evenly spaced marks, the last and the highest among them."""
    label, color, shape = MARKS[part]
    highest = max(range(len(curve)), key=lambda i: curve[i][1])
    step = math.ceil(len(curve) / MARKED)
    marks = []
    for i in sorted({*range(len(curve) - 1, -1, -step), highest}):
        place, ratio, group = curve[i]
        when, name = date_words(watched.values["dates"][place]), tip_name(group or label)
        tip = f"{when}, {name}: {of_threshold(ratio)}."
        marks.append(Point(days[place], decimal(ratio), tip))
    along = [(days[place], decimal(ratio)) for place, ratio, _ in curve]
    return Points(marks, label, color, shape, along=thinned(along))


def thinned(places: Sequence[Place], most: int = DRAWN) -> list[Place]:
    """Return a curve with the lowest and highest point of each of `most` stretches, and the last.

    Examples
    --------
    >>> len(thinned([(i, i % 7) for i in range(10_000)], 100))
    201
    """
    if len(places) <= 2 * most:
        return list(places)
    size = math.ceil(len(places) / most)
    found = {places[-1]}
    for start in range(0, len(places), size):
        block = places[start : start + size]
        found |= {min(block, key=lambda one: one[1]), max(block, key=lambda one: one[1])}
    return sorted(found)


def _signal_points(word: str, signals: Sequence[Signal], watched: Watched) -> Points:
    points = [
        Point(
            _day(one.date),
            decimal(one.ratio),
            f"{date_words(one.date)}: {word}, {watched.name(one.part, one.group)}, {one.what};"
            f" since about {date_words(one.since)}.",
        )
        for one in signals
    ]
    return Points(points, word, *SIGNALS[word])


def _signal_table(watched: Watched) -> Table:
    cells: Cells[tuple[str, Signal]] = {
        Column("what"): lambda it: Value(
            watched.name(it[1].part, it[1].group), f"{it[0]}, {it[1].what}"
        ),
        Column("since about"): lambda it: date_words(it[1].since),
        Column("raised on"): lambda it: Value(
            date_words(it[1].date), f"after {count(it[1].n_rows, 'forecast')}"
        ),
        Column("if nothing is wrong"): lambda it: (
            rarity(watched.false_alarm, it[1].highest) if it[0] == "alarm" else UNKNOWN
        ),
    }
    items = [("alarm", one) for one in watched.alarms]
    items += [("notice", one) for one in watched.notices]
    return Table.of("Alarms and notices", items, cells)


# --- the page

EMBEDDED, DECIMALS = 80, 3
"""Most tests of groups whose evidence by period a page embeds, and its decimals."""

SOURCES = {
    "log": "Log",
    "contexts": "Contexts",
    "model_sha256": "Hash of the model",
    "key": "Fingerprint of the key",
    "certificate": "Certificate",
    "n_entries": "Entries of the log, verified",
    "head_sha256": "Hash of the last entry",
    "evenhand": "Version of evenhand",
}
"""Sources of a watch with their names."""


def watch_html(values: Values) -> str:
    """Return a watch, given as `Watch.to_dict()`, as one page of HTML that opens offline."""
    return document_html(watch_document(values))


def watch_document(values: Values) -> Document:
    """Return the page of a watch.

    Parameters
    ----------
    values : dict
        `Watch.to_dict()`; see `evenhand.monitoring.watch_schema`.
    """
    values = plain(values)
    watched = Watched(values)
    data = embedded(_embedded(values))
    chart = evidence_chart(watched)
    means = [text.format(false_alarm=in_full(watched.false_alarm)) for text in MEANS]
    sections = [
        _groups(watched),
        Section("What an alarm means", [Bullets.of(means)], "meaning", hint="and what it does not"),
        _method(watched, data),
    ]
    forecasts, step = count(watched.n_rows, "forecast"), next_step(watched)
    word, (first, *others) = status_word(watched), rows_of(watched)
    tone = {"Alarm": "problem", "No alarm": "none", "No rows yet": "few"}[word]
    return Document(
        title=title(watched),
        facts=[watched.span, watched.periods, forecasts] if watched.n_rows else ["no rows yet"],
        status=Status(f"{word}.", tone, strength(watched)),
        lead=f"{first.label}: {first.text}.",
        opening=[Bullets(list(_opening(first, others)))],
        picture=None if chart is None else Section("Evidence over time", [chart]),
        next_step=[Paragraph(f"{step[:1].upper()}{step[1:]}.")] if step else [],
        sections=[section for section in sections if section is not None],
        footer="Made by evenhand. The JSON of this watch contains all digits.",
        data=data,
    )


def _opening(first: Entry, others: Sequence[Entry]) -> Iterator[Sentence]:
    if first.more:
        yield Sentence(f"{first.more}.")
    for one in others:
        yield Sentence(f"{str(one).removesuffix('.')}.", f"{one.label}: ", one.is_warning)


def _groups(watched: Watched) -> Section | None:
    """Show the groups with their evidence and errors; None without groups."""
    groups = watched.groups
    error = "bias (points)" if watched.settings.get("kind") == "event" else "error (points)"

    def most(one: Values) -> Value:
        ratio = ratio_of(one, "max_log_evidence")
        return Value(of_alarm(ratio), order=ratio)

    cells: Cells[Values] = {
        Column("group"): lambda one: one["name"],
        Column("status"): lambda one: "alarm" if one["is_alarm"] else "no alarm",
        numeric("most evidence, of threshold"): most,
        numeric(error): lambda one: Value(
            points(one["error"]), one["bias_direction"] or UNKNOWN, order=one["error"]
        ),
        numeric("forecasts"): lambda one: Value(whole(one["n"]), order=one["n"]),
        numeric("missing"): lambda one: Value(
            percent(one["n_missing"] / one["n"]) if one["n"] else UNKNOWN, order=one["n_missing"]
        ),
    }
    text = (
        f"An alarm means an error above the tolerance of {watched.tolerance} points. Below an error"
        " is its direction: outcomes higher or lower than forecast, or forecasts too narrow or too"
        " wide."
    )
    table = Table.of("Groups", groups, cells, search="Find a group")
    return Section("Groups", [Paragraph(text), table], "groups") if groups else None


def _method(watched: Watched, data: str) -> Section:
    after, sources = watched.matures_after, watched.sources
    facts = {
        "Probability of a false alarm": in_full(watched.false_alarm),
        "Tolerance of groups": f"{watched.tolerance} points",
        "Period": str(watched.settings["period"]),
        "Matures after": "none: an outcome counts once it is known"
        if after is None
        else days_in_words(after),
        **{name: _source(sources.get(key)) for key, name in SOURCES.items()},
        "Hash of the page": hash_of(data),
    }
    parts: list[Part] = [Facts(facts)]
    if command := sources.get("command"):
        parts += [Paragraph("Command", "heading"), Paragraph(str(command), "code")]
    return Section("How it was computed", parts, "method", hint="settings, log, command, hashes")


def _source(value: Any) -> str | None:
    if isinstance(value, list):
        return and_more([short(one, NAME) for one in value])
    if value is None:
        return None
    return whole(value) if isinstance(value, int) else short(value)


def _embedded(values: Values) -> dict[str, Any]:
    """Return the values that a page embeds: evidence by period rounded, of few groups.

    The evidence of many groups in many periods would be most of the page.
    """
    tests = list(values.get("tests") or ())
    groups = [test for test in tests if test["part"] == "group"]
    groups.sort(key=lambda test: -max(filter(is_known, test["log_evidence"]), default=0))
    kept = [test for test in tests if test["part"] != "group" or test in groups[:EMBEDDED]]
    paths = [
        [one if one is None else round(one, DECIMALS) for one in t["log_evidence"]] for t in kept
    ]
    return {
        **values,
        "tests": [{**t, "log_evidence": path} for t, path in zip(kept, paths, strict=True)],
    }
