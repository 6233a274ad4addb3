"""Watch of served forecasts as text and page: alarms, promise, missing outcomes, evidence."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._escape import shortened
from evenhand._format import (
    UNKNOWN,
    and_more,
    at_most,
    band,
    confidence_in_full,
    count,
    digits_of,
    in_full,
    is_known,
    number_in_full,
    percent,
    plain_number,
    points,
    points_in_full,
    whole,
)
from evenhand._table import SCREEN, Column, Table, Value, line_width, lines_within
from evenhand.report.charts import Axis, Chart, Color, Line, Point, Points, Shape, time_axis
from evenhand.report.document import (
    Bullets,
    Document,
    Facts,
    Headline,
    Paragraph,
    Section,
    Sentence,
    document_html,
    document_text,
    embedded,
)
from evenhand.report.kinds import in_one_line, people_of, signed
from evenhand.report.tables import whole_number
from evenhand.results import Values

Floats = NDArray[np.float64]

NEVER = -math.inf
"""Log evidence before a test has started."""

LISTED = 8
"""Most alarms, and most names without an alarm, that are listed."""

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

STATISTICS = {"gap": "a mean distance between PIT and draw of ", "bias": "a bias of "}
"""What is promised of a group, by statistic, if it is not its error."""

MEANS = (
    "If nothing is broken, the probability of any alarm is at most {false_alarm}, in all tests"
    " together, over unlimited time and however often the watch is read (e-processes and Ville's"
    " inequality). An alarm does not identify the cause.",
    "An alarm is dated by the period in which the evidence reached the threshold, the change by"
    " that since which there is most evidence; its forecasts were served earlier still.",
    "No alarm does not prove that the promise is kept: small breaks need many rows, errors within"
    " the tolerance raise none, and a missing outcome counts as the least favourable to an alarm."
    " The estimate of the worst group, which is selected on the same outcomes, is too high.",
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


def days_between(first: str, last: str) -> str:
    """Write the dates from the first to the last, a single one once."""
    return " to ".join(dict.fromkeys(map(date_words, (first, last))))


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


MOST = 1_000_000
"""Largest multiple of the alarm threshold, and rarest odds, that are printed."""


def of_alarm(ratio: float) -> str:
    """Write log evidence over threshold as a share or a multiple of the alarm threshold.

    Examples
    --------
    >>> [of_alarm(math.log(x)) for x in (0.00001, 0.0123, 0.999, 1.0, 12.34, 1e9)]
    ['0.0%', '1.2%', '99.9%', '1 times', '12.3 times', '1,000,000 times']
    """
    share = math.exp(min(ratio, math.log(MOST)))
    # rounded down: never 100%, which would be an alarm
    return percent(share, "down") if ratio < 0 else f"{plain_number(share, 'down')} times"


def of_threshold(ratio: float) -> str:
    """Write evidence for a sentence.

    Examples
    --------
    >>> of_threshold(math.log(0.5)), of_threshold(math.log(3))
    ('50.0% of the alarm threshold', '3 times the alarm threshold')
    """
    return f"{of_alarm(ratio)}{' of' if ratio < 0 else ''} the alarm threshold"


def rarity(false_alarm: float, ratio: float) -> str:
    """Write how rare so much evidence is if nothing is broken, by Ville's inequality.

    `false_alarm` is the probability of a false alarm of all tests together, and `ratio` the log of
    evidence over threshold.

    Examples
    --------
    >>> rarity(0.05, math.log(130)), rarity(0.05, 100.0)
    ('at most 1 in 2,600', 'at most 1 in 1,000,000')
    """
    value = math.exp(min(ratio - math.log(false_alarm), math.log(MOST)))
    # rounded down, the direction in which the bound stays valid
    return f"at most 1 in {digits_of(value, 2, 'down'):,.10g}"


# --- the values of a watch in types


def what_of(one: Values) -> str:
    """Return what deviates by an alarm or a notice; draws have words of their own."""
    return (DRAWS if one["part"] == "draws" else DIRECTIONS)[one["direction"]]


class Watched:
    """Values of a watch, `Watch.to_dict()`, in the types that text and page need."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.settings: Values = values["settings"]
        self.sources: Values = values.get("sources") or {}
        self.draws: Values = values["draws"] or {}
        self.n_rows: int = values["n_rows"]
        self.tolerance = points_in_full(self.settings["tolerance"])
        self.matures_after: float | None = self.settings["matures_after_days"]
        self.periods = count(values["n_periods"], self.settings["period"])
        # those with an alarm first, then those with most evidence
        self.groups: list[Values] = sorted(
            values["groups"], key=lambda one: (not one["is_alarm"], -ratio_of(one))
        )
        # those of the promise first, then by date
        self.alarms, self.notices = (
            sorted(values[key], key=lambda one: (one["part"] != "promise", one["date"]))
            for key in ("alarms", "notices")
        )
        self.parts = {one["part"] for one in self.alarms}

    def name(self, part: str, group: str | None = None) -> str:
        """Return what a test of a part is about."""
        if part == "promise":
            return f"Promise, every group of {in_full(self.settings['mass'])}"
        name = in_one_line(group or "everyone")
        return name if part == "group" else "Draws" + (f", {name}" if group else "")

    def paths(self, part: str) -> tuple[list[str | None], Floats]:
        """Return the groups of the tests of a part, and their log evidence over threshold."""
        tests = [one for one in self.values["tests"] if one["part"] == part]
        evidence = [
            [NEVER if one is None else one - test["threshold"] for one in test["log_evidence"]]
            for test in tests
        ]
        shape = len(tests), len(self.values["dates"])
        return [one["group"] for one in tests], np.reshape(evidence, shape)


def ratio_of(row: Values, key: str = "max_log_evidence") -> float:
    """Return log evidence over threshold; NEVER if it is unknown."""
    value = row.get(key)
    return value - row["threshold"] if is_known(value) else NEVER


# --- the promise; its numbers have signs where both sides have bounds of their own


def _promised(watched: Watched) -> str:
    """Return what was promised, to whom, and the estimate of the worst group.

    The range of the estimate has missing outcomes at best and at worst.
    """
    settings, promise = watched.settings, watched.values["promise"]
    # bounds are rounded away from the claim
    sides = settings.get("targets")
    bound = band(signed, -sides[1], sides[0]) if sides else f"at most {at_most(settings['target'])}"
    text = f"{STATISTICS.get(settings['statistic'], '')}{bound} points"
    if settings["atom"] is not None:
        people = people_of(number_in_full(settings["atom"]), is_time=False)
        text = f"in every group of at least {in_full(settings['mass'])} of the {people}: {text}"
    if settings["confidence"] is not None:
        text += f" ({confidence_in_full(settings['confidence'])} confidence)"

    def of_side(found: Values) -> list[float | None]:
        """Return estimate, best and worst case; on the lower of two sides they are negative."""
        is_lower = sides is not None and found.get("direction") == "lower"
        ends = (found[key] for key in ("estimate", "best_case", "worst_case"))
        return [-one if is_lower and is_known(one) else one for one in ends]

    show = points if sides is None else signed
    estimate, *ends = of_side(promise) if promise else [None]
    if not is_known(estimate):
        return f"{text}." + " Not estimated yet." * (promise is not None)
    text += f". Worst group: an estimated {show(estimate)} points"
    known = sorted(filter(is_known, ends))
    if len(known) == 2 and known != [estimate, estimate]:
        text += f", {band(show, *known)} whatever the missing outcomes are"
    recent = promise.get("recent")
    if recent is not None and is_known(now := of_side(recent)[0]):
        text += f"; {show(now)} from {date_words(recent['since'])} on"
    return f"{text}."


# --- sentences: what is broken, what is not, what is missing, how strong the evidence is


def sentences(watched: Watched) -> Iterator[Sentence]:
    """Yield the findings of a watch, the most important first."""
    values, draws, parts = watched.values, watched.draws, watched.parts
    is_promised = watched.settings["target"] is not None
    if not watched.n_rows:
        yield Sentence(_waiting(watched), "Waiting: ")
    errors = {("group", one["name"]): one["error"] for one in watched.groups}
    errors["draws", None] = draws.get("error")
    for one in watched.alarms[:LISTED]:
        part, group = one["part"], one["group"]
        words = {"since": date_words(one["since"]), "what": what_of(one)}
        text = BROKEN[part].format(tolerance=watched.tolerance, **words)
        error = errors.get((part, group))
        text += f" ({points(error)} points over all forecasts)" if is_known(error) else ""
        yield Sentence(f"{text}.", f"{watched.name(part, group)}: ", is_warning=True)
    if (n := len(watched.alarms) - LISTED) > 0:
        yield Sentence(f"{n:,}, in other groups or parts.", "More alarms: ", is_warning=True)
    if is_promised and watched.n_rows and "promise" not in parts:
        quiet = f"no evidence against it in {watched.periods}."
        yield Sentence(quiet, f"{watched.name('promise')}: ")
    promised = _promised(watched) if is_promised else "nothing, as no certificate was given."
    yield Sentence(promised, "Promised: ")
    quiet_groups = [shortened(one["name"], 40) for one in watched.groups if not one["is_alarm"]]
    if draws and watched.n_rows and "draws" not in parts:
        quiet_groups.append(f"draws ({points(draws['error'])} points from uniform)")
    if quiet_groups:
        yield Sentence(f"{and_more(quiet_groups, LISTED)}.", "No alarm: ")
    for one in watched.notices[-1:]:
        when = f"left the range of the certificate on {date_words(one['date'])}: {what_of(one)}"
        yield Sentence(f"{when}. The promise may still be kept.", "Notice, no alarm: ")
    if watched.n_rows:
        yield Sentence(f"{_missing(values)}.", "Missing outcomes: ")
    cautions = [late_sentence(values), *(values.get("notes") or ())]
    if draws and draws["n_repeated"]:
        n, total = draws["n_repeated"], draws["n_repeated"] + draws["n"]
        same = f"{n:,} of {count(total, 'draw')} repeated an earlier one and did not count"
        cautions.insert(0, f"{same}; check how the draws are made")
    for text in filter(None, cautions):
        yield Sentence(f"{text.removesuffix('.')}.", "Caution: ", is_warning=True)


def _waiting(watched: Watched) -> str:
    if watched.matures_after is None:
        return "no forecast has been watched yet."
    n = watched.values["n_waiting"] or 0
    which = f"none of {count(n, 'forecast')}" if n else "no forecast"
    return f"{which} has matured yet, which takes {days_in_words(watched.matures_after)}."


def _missing(values: Values) -> str:
    """Return how many outcomes are missing, late or still waited for."""
    n, missing = values["n_rows"], values["n_missing"]
    text = f"{missing:,} of {n:,} ({percent(missing / n)})"
    if late := values["n_late"]:
        text += f", of which {late:,} were recorded later"
    if (usual := values["days_90"]) is not None:
        text += f"; 90% of the recorded came within {days_in_words(math.ceil(usual))}"
    if waiting := values["n_waiting"]:
        text += f"; {count(waiting, 'more forecast has', 'more forecasts have')} not matured"
    if repeated := values["n_repeated"]:
        text += f"; {count(repeated, 'forecast')} of people counted before left out"
    return text


def late_sentence(values: Values) -> str:
    """Return the remedy if more outcomes came too late than in time; empty if not."""
    matures_after, late = values["settings"]["matures_after_days"], values["n_late"]
    in_time = values["n_rows"] - values["n_missing"]
    if matures_after is None or late <= in_time:
        return ""
    return (
        f"{late:,} of {count(in_time + late, 'outcome')} were recorded later than"
        f" {days_in_words(matures_after)} after the forecast was logged and count as missing: begin"
        " a new watch that waits longer"
    )


def next_steps_of(watched: Watched) -> Iterator[str]:
    """Yield what to do after alarms."""
    parts = watched.parts
    if parts - {"draws"}:
        since = min(one["since"] for one in watched.alarms if one["part"] != "draws")
        when = f"that matured since {date_words(since)}"
        # a week or a month is too long for a date
        if watched.matures_after and watched.settings["period"] in ("hour", "day"):
            when = f"served since about {date_words(since, watched.matures_after)}"
        yield f"Audit the rows {when}, then repair or refit the model."
    if "promise" in parts:
        yield "Do not rely on the certificate; certify again, in a new context."
    if "draws" in parts:
        yield "Check if people had several ids to obtain a better draw, or the key was replaced."


def strength(watched: Watched) -> str:
    """Return how strong the evidence is: of the alarms together, or what is nearest to one."""
    # of groups also within a period, not only at its end
    found = [(ratio_of(one), in_one_line(one["name"])) for one in watched.groups]
    for part, name in (("promise", "the promise"), ("draws", "the draws")):
        found.append((watched.paths(part)[1].max(initial=NEVER), name))
    ratio, name = max(found)
    if watched.alarms:
        most = max(ratio, *map(ratio_of, watched.alarms))
        rare = rarity(watched.settings["false_alarm"], most)
        return f"If nothing were wrong, such evidence would have a probability of {rare}."
    return "" if ratio == NEVER else f"Most evidence: {of_threshold(ratio)}, of {name}."


# --- evidence over time, in decimal logs of its share of the alarm threshold

TICKS = {-6: "÷10⁶", -4: "÷10⁴", -2: "÷100", 0: "alarm", 2: "×100", 4: "×10⁴"}
"""Ticks of the axis of evidence, which is the same on all pages; beyond it, curves are cut."""

MARKS: dict[str, tuple[str, Color, Shape]] = {
    "promise": ("promise", "blue", "circle"),
    "group": ("groups", "orange", "diamond"),
    "draws": ("draws", "grey", "hollow"),
}
"""Name, colour and shape of each part."""

# the picture is 420 units wide
MARKED, DRAWN = 15, 300
"""Most marks of a curve that a pointer can distinguish, and most points in each direction."""


def decimal(ratio: float) -> float:
    """Return the decimal log of evidence over threshold, cut at the ends of the axis."""
    return float(np.clip(ratio / math.log(10), min(TICKS), max(TICKS)))


def evidence_chart(watched: Watched) -> Chart | None:
    """Draw the evidence of each part by period with the threshold; None without a period."""
    dates: Sequence[str] = watched.values["dates"]
    days = list(map(_day, dates))
    curves = [curve for part in MARKS if (curve := _curve(watched, part, days))]
    if not curves:
        return None
    note = "A line that reaches the dashed line raises an alarm."
    if (n := len(watched.groups)) > 1:
        note += f" The line of groups is that of the group with the highest evidence, of {n:,}."
    note += f" Evidence is drawn between {TICKS[-6]} and {TICKS[4]}."

    def mark(one: Values, word: str) -> Point:
        name = f"{word}, {watched.name(one['part'], one['group'])}, {what_of(one)}"
        tip = f"{date_words(one['date'])}, after {count(one['n_rows'], 'forecast')}: {name}"
        place = _day(one["date"]), decimal(ratio_of(one, "log_evidence"))
        return Point(*place, f"{tip}; since about {date_words(one['since'])}.")

    x = time_axis(days[0], days[-1], days_between(dates[0], dates[-1]))
    return Chart(
        "Evidence of each part by period, on a log scale; an alarm is raised at the dashed line.",
        x,
        [
            Line([(x.low, 0.0), (x.high, 0.0)], "alarm threshold"),
            *curves,
            Points([mark(one, "notice") for one in watched.notices], "notice", "grey", "triangle"),
            Points([mark(one, "alarm") for one in watched.alarms], "alarm", "red", "square"),
        ],
        Axis(min(TICKS), max(TICKS), "Evidence (log scale)", [*TICKS], lambda x: TICKS[round(x)]),
        note=note,
    )


def _curve(watched: Watched, part: str, days: Sequence[float]) -> Points | None:
    """Return the most evidence of a part by period, with evenly spaced marks; None without any."""
    names, paths = watched.paths(part)
    if not (paths > NEVER).any():
        return None
    (label, color, shape), dates = MARKS[part], watched.values["dates"]
    leading, most = paths.argmax(axis=0), paths.max(axis=0)
    known = np.flatnonzero(most > NEVER)
    marks = []
    # the last and the highest among them
    step = math.ceil(known.size / MARKED)
    for i in sorted({*known[::-step].tolist(), int(most.argmax())}):
        name = in_one_line(names[leading[i]] or label)
        tip = f"{date_words(dates[i])}, {name}: {of_threshold(most[i])}."
        marks.append(Point(days[i], decimal(most[i]), tip))
    # of each stretch its extremes
    stretches = np.array_split(known, min(known.size, DRAWN))
    ends = {int(one[k]) for one in stretches for k in (most[one].argmin(), most[one].argmax())}
    along = [(days[i], decimal(most[i])) for i in sorted(ends | {int(known[-1])})]
    return Points(marks, label, color, shape, along=along)


# --- the page, and the text of its head

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


def watch_text(values: Values) -> str:
    """Return a watch, given as `Watch.to_dict()`, as short text."""
    document = replace(watch_document(values), cards=(), sections=())
    with lines_within(line_width(SCREEN)):
        return document_text(document)


def watch_document(values: Values) -> Document:
    """Return the page of a watch, given as `Watch.to_dict()`."""
    watched = Watched(values)
    # the evidence by period is in the JSON of the watch, and would be most of the page
    data = embedded({key: one for key, one in watched.values.items() if key != "tests"})
    chart = evidence_chart(watched)
    false_alarm = in_full(watched.settings["false_alarm"])
    word, tone, facts = "No rows yet.", "few", ["no rows yet"]
    if watched.n_rows:
        word, tone = "No alarm.", "none"
        days = days_between(watched.values["first"], watched.values["until"])
        facts = [count(watched.n_rows, "forecast"), watched.periods, days]
    if watched.alarms:
        word, tone = "Alarm.", "problem"
    lead, *others = sentences(watched)
    # by the file or the database of the log
    log = in_one_line(str(watched.sources.get("log") or "").rpartition("/")[2])
    means = Bullets([text.format(false_alarm=false_alarm) for text in MEANS])
    return Document(
        title=f"Watch of {log or 'served forecasts'}",
        facts=facts,
        status=Headline(word, tone, strength(watched)),
        lead=str(lead),
        opening=[Bullets(others)],
        picture=None if chart is None else Section("Evidence over time", [chart]),
        next_step=list(map(Paragraph, next_steps_of(watched))),
        sections=[
            *([_groups(watched)] if watched.groups else []),
            Section("What an alarm means", [means], "meaning", "and what it does not"),
            _method(watched),
        ],
        data=data,
    )


def _groups(watched: Watched) -> Section:
    """Show the groups with their evidence and errors."""
    error = "bias (points)" if watched.settings["kind"] == "event" else "error (points)"

    def most(one: Values) -> Value:
        ratio = ratio_of(one)
        return Value(of_alarm(ratio), order=ratio)

    text = (
        f"An alarm means an error above the tolerance of {watched.tolerance} points. Below an error"
        " is its direction: outcomes higher or lower than forecast, forecasts too narrow or wide."
    )
    table = Table.of(
        "Groups",
        watched.groups,
        {
            "group": lambda one: one["name"],
            Column("status"): lambda one: "alarm" if one["is_alarm"] else "no alarm",
            "most evidence, of threshold": most,
            error: lambda one: Value(
                points(one["error"]), one["bias_direction"] or UNKNOWN, order=one["error"]
            ),
            "forecasts": lambda one: whole_number(one["n"]),
            "missing": lambda one: Value(
                percent(one["n_missing"] / one["n"]) if one["n"] else UNKNOWN,
                order=one["n_missing"],
            ),
        },
        search="Find a group",
    )
    return Section("Groups", [Paragraph(text), table], "groups")


def _method(watched: Watched) -> Section:
    after, sources = watched.matures_after, watched.sources

    def shown(value: Any) -> str:
        if isinstance(value, list):
            return and_more(map(in_one_line, value))
        return whole(value) if isinstance(value, int) else shortened(value)

    waits = "none: an outcome counts once it is known" if after is None else days_in_words(after)
    facts = {
        "Probability of a false alarm": in_full(watched.settings["false_alarm"]),
        "Tolerance of groups": f"{watched.tolerance} points",
        "Period": str(watched.settings["period"]),
        "Matures after": waits,
        **{name: shown(sources[k]) for k, name in SOURCES.items() if sources.get(k) is not None},
        "Command": f"`{sources['command']}`" if sources.get("command") else None,
    }
    return Section("How it was computed", [Facts(facts)], "method", "settings, log, command")
