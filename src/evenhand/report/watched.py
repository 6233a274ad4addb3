"""Values of a watch in types, and sentences on them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from evenhand._format import (
    Show,
    Toward,
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
)
from evenhand.report.document import Sentence, StatusBox, short
from evenhand.report.records import Number, Values, known

PARTS = {"promise": "promise", "group": "groups", "draws": "draws"}
"""Parts of a watch with their names, in the order in which they are listed."""

NEVER = -math.inf
"""Log evidence before a test has started."""

LEAST = 0.001
"""Least share of the evidence of an alarm that is printed."""

MOST = 1_000_000
"""Largest multiple of the evidence of an alarm, and rarest probability, that is printed."""


@dataclass(frozen=True)
class Moment:
    """Start of a period: its position on an axis of days, and its words."""

    day: float
    words: str

    def before(self, days: float) -> Moment:
        """Return the day that was so many days before.

        Examples
        --------
        >>> Moment.of("2026-03-01").before(30).words
        '30 January 2026'
        """
        date = datetime(1970, 1, 1) + timedelta(days=self.day - days)
        return Moment.of(date.date().isoformat())

    @classmethod
    def of(cls, date: str) -> Moment:
        """Return the moment of an ISO date or time.

        Examples
        --------
        >>> Moment.of("2026-03-01").words, Moment.of("2026-03-01T14:00").words
        ('1 March 2026', '1 March 2026, 14:00')
        """
        # only the local part counts: all dates of a watch are in UTC
        found = datetime.fromisoformat(date.replace("Z", "+00:00")).replace(tzinfo=None)
        seconds = (found - datetime(1970, 1, 1)).total_seconds()
        words = f"{found.day} {found:%B %Y}"
        return cls(seconds / 86400, f"{words}, {found:%H:%M}" if "T" in date else words)


@dataclass(frozen=True)
class Evidence:
    """Evidence of one test by period, as the log of its share of the alarm threshold.

    Parameters
    ----------
    part : {"promise", "group", "draws"}
        What is tested.
    group : str or None
        Group of the test; None for all people.
    path : tuple of float
        One value per period; 0 is the threshold of an alarm.
    """

    part: str
    group: str | None
    path: tuple[float, ...]

    @property
    def highest(self) -> float:
        return max(self.path, default=NEVER)


@dataclass(frozen=True)
class Signal:
    """Alarm or notice.

    Parameters
    ----------
    part, group
        As of `Evidence`.
    direction : str
        What deviates.
    date, since : Moment
        Period of the alarm, and period since about which there is evidence.
    ratio, highest : float
        Log of the share of the alarm threshold: on that date, and at most until now.
    n_rows : int
        Rows until then.
    """

    part: str
    group: str | None
    direction: str
    date: Moment
    since: Moment
    ratio: float
    highest: float
    n_rows: int

    @property
    def name(self) -> str:
        """What the signal is about."""
        if self.part == "promise":
            return "promise for every group"
        if self.part == "draws":
            return "draws" if self.group is None else f"draws in {self.group}"
        return self.group or "everyone"


@dataclass(frozen=True)
class WatchedGroup:
    """Named group with its evidence, as the log of its share of the alarm threshold."""

    name: str
    n: int
    n_missing: int
    error: Number
    direction: str
    highest: float
    is_alarm: bool


class Watched:
    """Values of a watch, in the types that its page needs.

    Parameters
    ----------
    values : dict
        `Watch.to_dict()`.
    """

    def __init__(self, values: Values) -> None:
        self.values = values
        self.settings: Values = values.get("settings") or {}
        self.alarms = _signals([_with_highest(row, values) for row in values.get("alarms") or ()])
        self.notices = _signals(values.get("notices"))
        self.moments = tuple(map(Moment.of, values.get("dates") or ()))
        self.tests = tuple(map(_evidence, values.get("tests") or ()))

    @cached_property
    def groups(self) -> tuple[WatchedGroup, ...]:
        """Groups, those with most evidence first."""
        found = map(_group, self.values.get("groups") or ())
        return tuple(sorted(found, key=lambda one: (not one.is_alarm, -one.highest, one.name)))

    @property
    def is_alarm(self) -> bool:
        return bool(self.alarms)

    @property
    def is_empty(self) -> bool:
        return not self.values.get("n_rows")

    @property
    def is_event(self) -> bool:
        """Whether outcomes are 0/1."""
        return self.settings.get("kind") == "event"

    @property
    def promise(self) -> Values | None:
        return self.values.get("promise")

    @property
    def draws(self) -> Values | None:
        return self.values.get("draws")

    @property
    def span(self) -> str:
        """First and last period in words."""
        first, until = self.values.get("first"), self.values.get("until")
        if first is None or until is None:
            return ""
        return f"{Moment.of(first).words} to {Moment.of(until).words}"

    @property
    def periods(self) -> str:
        """Number of periods in words."""
        return count(int(self.values.get("n_periods") or 0), str(self.settings.get("period")))

    def paths(self) -> dict[str, list[Evidence]]:
        """Return the tests by part, without parts that have none."""
        listed = {part: [one for one in self.tests if one.part == part] for part in PARTS}
        return {part: tests for part, tests in listed.items() if tests}

    def highest(self, part: str) -> float:
        """Return the most evidence of a part at any time."""
        found = [one.highest for one in self.tests if one.part == part]
        found += [one.highest for one in self.alarms if one.part == part]
        return max(found, default=NEVER)


def leading(tests: Sequence[Evidence]) -> list[tuple[int, float, str | None]]:
    """Return the most evidence of some tests in each period: its place, value and group."""
    n = max((len(one.path) for one in tests), default=0)
    found = []
    for place in range(n):
        best = max(tests, key=lambda one: one.path[place] if place < len(one.path) else NEVER)
        if place < len(best.path) and best.path[place] > NEVER:
            found.append((place, best.path[place], best.group))
    return found


def of_alarm(ratio: float) -> str:
    """Write evidence as a share or a multiple of the alarm threshold.

    Parameters
    ----------
    ratio : float
        Log of evidence over threshold.

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
    if share < LEAST:
        return f"under {percent(LEAST)}"
    # never 100%, which would be an alarm
    return percent(share, "down", 1 if share < 0.1 else 0)


def of_threshold(ratio: float) -> str:
    """Write evidence relative to the alarm threshold, for a sentence.

    Examples
    --------
    >>> of_threshold(math.log(0.5)), of_threshold(math.log(3))
    ('50% of the alarm threshold', '3 times the alarm threshold')
    """
    return f"{of_alarm(ratio)}{' of' if ratio < 0 else ''} the alarm threshold"


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
    most = math.log(MOST)
    cases = math.exp(min(ratio - math.log(false_alarm), most))
    return f"at most 1 in {plain_number(_two_digits(cases))}"


def _two_digits(value: float) -> float:
    # rounded down, the direction in which the bound stays valid
    unit = 10.0 ** (math.floor(math.log10(value) + 1e-9) - 1)
    return math.floor(value / unit + 1e-9) * unit


def _signals(rows: Iterable[Values] | None) -> tuple[Signal, ...]:
    found = [
        Signal(
            str(row["part"]),
            row.get("group"),
            str(row.get("direction") or ""),
            Moment.of(row["date"]),
            Moment.of(row["since"]),
            ratio_of(row, "log_evidence"),
            max(ratio_of(row, "log_evidence"), ratio_of(row, "max_log_evidence")),
            int(row.get("n_rows") or 0),
        )
        for row in rows or ()
    ]
    return tuple(sorted(found, key=lambda one: one.date.day))


def _with_highest(row: Values, values: Values) -> Values:
    """Return an alarm with the most evidence of its group within a period, not only at its end."""
    known = {one["name"]: one["max_log_evidence"] for one in values.get("groups") or ()}
    within = known.get(row.get("group")) if row["part"] == "group" else None
    at_ends = row.get("max_log_evidence")
    found = [one for one in (within, at_ends, row["log_evidence"]) if one is not None]
    return {**row, "max_log_evidence": max(found)}


def _evidence(row: Values) -> Evidence:
    limit: float = row["threshold"]
    path = (value - limit if is_known(value) else NEVER for value in row["log_evidence"])
    return Evidence(str(row["part"]), row.get("group"), tuple(path))


def ratio_of(row: Values, key: str) -> float:
    """Return log evidence over threshold; NEVER if it is unknown."""
    value = row.get(key)
    return NEVER if value is None else float(value) - float(row["threshold"])


def _group(row: Values) -> WatchedGroup:
    return WatchedGroup(
        str(row["name"]),
        int(row["n"]),
        int(row.get("n_missing") or 0),
        row.get("error"),
        str(row.get("bias_direction") or ""),
        ratio_of(row, "max_log_evidence"),
        bool(row.get("is_alarm")),
    )


# --- promised bounds and estimates of a watch in words; with signs where the sides differ


def bound_words(settings: Values) -> str:
    """Return the promised bound, or both of them, rounded away from the claim.

    Examples
    --------
    >>> bound_words({"target": 0.349884}), bound_words({"target": 0.812, "targets": [0.812, 0.354]})
    ('at most 35.0 points', 'between -35.4 and +81.2 points')
    """
    targets = settings.get("targets")
    if targets is None:
        return f"at most {at_most(settings.get('target'))} points"
    above, below = targets
    return f"between {_signed(-below, 'down')} and {_signed(above, 'up')} points"


def _signed(value: float | None, toward: Toward) -> str:
    """Return percentage points with their sign."""
    return f"{'+' if is_known(value) and value > 0 else ''}{points(value, toward)}"


def is_below(found: Values, settings: Values) -> bool:
    """Whether an estimate is one of the lower of two bounds."""
    return settings.get("targets") is not None and found.get("direction") == "lower"


def shown_of(found: Values, settings: Values) -> Show:
    """Return what writes an estimate: with its sign if both sides have bounds of their own."""
    if settings.get("targets") is None:
        return points
    if not is_below(found, settings):
        return _signed
    opposite: dict[Toward, Toward] = {"down": "up", "up": "down", "nearest": "nearest"}
    return lambda value, toward: _signed(-value if is_known(value) else None, opposite[toward])


# --- sentences on a watch: what was promised, what is broken since when, and what to do

LISTED = 3
"""Most alarms that the status describes one by one."""

NAME = 60
"""Most characters of the name of a group in a sentence."""

WORDS = {
    "higher": "outcomes are higher than forecast",
    "lower": "outcomes are lower than forecast",
    "narrow": "forecasts are too narrow",
    "wide": "forecasts are too wide",
    "gap": "PITs are too far from their draws",
}
"""What deviates in outcomes, by direction."""

DRAWS = {
    "higher": "they are too high",
    "lower": "they are too low",
    "extreme": "too many are near 0 or 1",
    "central": "too many are near 1/2",
}
"""What deviates in draws, by direction."""

REMEDIES = {
    "promise": "do not rely on the certificate for new forecasts; audit the rows since then to find"
    " the people concerned, and certify again, in a new context",
    "group": "audit the rows of the group since then, and recalibrate or refit the model",
    "draws": "check whether people were served under several ids to obtain a better draw, and"
    " whether the key was lost or replaced",
}
"""What to do after an alarm of each part."""

MEANS = (
    "An alarm means that something is broken: a promise, the tolerance of a group, or the draws. If"
    " nothing is broken, the probability of any alarm is at most {false_alarm}, in all tests"
    " together, over unlimited time and however often the watch is read.",
    "It does not identify the cause, such as new kinds of people, a change of the data or of the"
    " outcomes. An audit of the rows since then finds the people concerned.",
    "It does not mean that every forecast is wrong, and does not measure the size of an error:"
    " evidence grows with the number of rows as well as with the size.",
    "The date of an alarm is the period in which the evidence reached the threshold. The change"
    " came earlier; its start is estimated by the period since which there is most evidence. A"
    " forecast belongs to the period in which it matures, so a change is seen later than it"
    " happens, by at least this time.",
    "The estimate is not a test: the worst group is selected on the same outcomes, so its error is"
    " overestimated, most with few rows. Only evidence raises an alarm.",
    "No alarm does not prove that the promise is kept: small breaks need many rows, and errors"
    " of a group within the tolerance raise none by design.",
    "A missing outcome counts as the least favourable to an alarm. No assumption on the reasons is"
    " needed, but a break may be hidden if many are missing.",
)
"""What an alarm means and what it does not mean (outcomes: 6)."""

NOTICE = (
    "A notice means that the distribution of PITs has left the envelope of the certificate. The"
    " promise may still be kept, but what was certified no longer describes the people served."
)


def status_box(watched: Watched) -> StatusBox:
    """Return the status of a watch with what a reader needs first."""
    if watched.is_alarm:
        return StatusBox("Alarm.", "problem", [_broken(watched.alarms[0], watched)])
    if watched.is_empty:
        return StatusBox("No rows yet.", "few", _waiting_sentences(watched))
    rows = count(int(watched.values["n_rows"]), "forecast")
    text = f"No test has reached its threshold: {rows}, {watched.span}."
    return StatusBox("No alarm.", "none", [text])


def lead(watched: Watched) -> str:
    """Return how strong the evidence is."""
    if watched.is_empty:
        return "Evidence is computed once forecasts have matured."
    return _strength(watched.alarms[0], watched) if watched.is_alarm else nearest_sentence(watched)


def _waiting_sentences(watched: Watched) -> list[str]:
    matures_after = watched.settings.get("matures_after_days")
    waiting = watched.values.get("n_waiting")
    if matures_after is None:
        return ["No forecast has been watched yet."]
    until = f"No forecast has matured yet, after {days_in_words(matures_after)}"
    if not waiting:
        return [f"{until}."]
    return [f"{until}: {count(int(waiting), 'forecast is', 'forecasts are')} waiting."]


def nearest_sentence(watched: Watched) -> str:
    """Return which test has the highest evidence; empty without evidence."""
    found = [("the promise for every group", watched.highest("promise"))]
    found += [(f"the group {short(g.name, NAME)}", g.highest) for g in watched.groups[:1]]
    found += [("the draws", watched.highest("draws"))]
    name, ratio = max(found, key=lambda one: one[1])
    if ratio == float("-inf"):
        return ""
    return f"The highest evidence so far is {of_threshold(ratio)}, in the test of {name}."


def alarm_sentence(alarm: Signal, watched: Watched) -> str:
    """Return what is broken, since about when, and how strong the evidence is."""
    return f"{_broken(alarm, watched)} {_strength(alarm, watched)}"


def _strength(alarm: Signal, watched: Watched) -> str:
    rare = rarity(float(watched.settings["false_alarm"]), alarm.highest)
    return (
        f"The alarm was raised on {alarm.date.words}. If nothing were broken, the probability of so"
        f" much evidence would be {rare}."
    )


def _broken(alarm: Signal, watched: Watched) -> str:
    settings = watched.settings
    since = f"since about {alarm.since.words}{_served(alarm, settings)}"
    direction = direction_words(alarm.part, alarm.direction)
    if alarm.part == "promise":
        of = promised_groups(settings)
        return f"The promise for {of} has been broken {since}{_shown(direction)}."
    if alarm.part == "draws":
        where = "" if alarm.group is None else f" in the group {short(alarm.group, NAME)}"
        return f"The draws{where} have not been uniform {since}{_shown(direction)}."
    limit = points_in_full(float(settings["tolerance"]))
    return (
        f"In the group {short(alarm.name, NAME)}, the error has been above the tolerance of"
        f" {limit} points {since}{_shown(direction)}."
    )


def direction_words(part: str, direction: str) -> str:
    """Return what deviates; draws are not outcomes, and have words of their own."""
    return (DRAWS if part == "draws" else WORDS).get(direction, direction)


def _served(alarm: Signal, settings: Values) -> str:
    """Return when the first forecasts of a break were served, before they matured."""
    matures_after = settings.get("matures_after_days")
    # a week or a month is too long for a date
    if not matures_after or settings["period"] not in ("hour", "day"):
        return ""
    return f" (forecasts served since about {alarm.since.before(matures_after).words})"


def _shown(direction: str) -> str:
    return f": {direction}" if direction else ""


def promised_groups(settings: Values) -> str:
    """Return the groups that a promise covers."""
    mass = settings.get("mass")
    if mass is None:
        return "every group"
    return f"every group of at least {in_full(mass)} of {_promised_people(settings)}"


def _promised_people(settings: Values) -> str:
    """Return the people of whom the promised groups are a share."""
    atom = settings.get("atom")
    return "people" if atom is None else f"the people whose outcome is not {number_in_full(atom)}"


def promise_sentence(settings: Values) -> str:
    """Return what was promised, to whom and with which confidence."""
    who = promised_groups(settings)
    bound = bound_words(settings)
    what = {
        "mean_pit": f"an error of {bound}",
        "gap": f"a mean distance between PIT and draw of {bound}",
        "bias": f"a bias {bound}"
        if settings.get("targets")
        else f"a bias of its probabilities of {bound}",
    }[str(settings["statistic"])]
    confidence = settings.get("confidence")
    proof = (
        ""
        if confidence is None
        else f", certified with {confidence_in_full(confidence)} confidence"
    )
    return f"{who[:1].upper()}{who[1:]}, named or not, has {what}{proof}."


def estimate_sentence(promise: Values, settings: Values) -> str:
    """Return the estimate of the promised quantity, with missing outcomes at best and at worst."""
    estimate, best, worst = (promise.get(key) for key in ("estimate", "best_case", "worst_case"))
    if not known(estimate):
        return "It is not estimated yet."
    mass = settings.get("mass")
    size = "" if mass is None else f" of {in_full(mass)}"
    who = "the people watched" if settings.get("atom") is None else _promised_people(settings)
    shown = shown_of(promise, settings)
    value = shown(estimate, "nearest")
    text = f"Estimated for the worst group{size} of {who}: {value} points"
    if known(best, worst) and (best, worst) != (estimate, estimate):
        # those of the lower side are negative
        ends = [shown(best, "down"), shown(worst, "up")]
        low, high = ends if not is_below(promise, settings) else ends[::-1]
        text += f". It is between {low} and {high} points, whatever the missing outcomes are"
    recent = promise.get("recent")
    if recent is not None and known(recent["estimate"]):
        date = Moment.of(recent["since"]).words
        now = shown_of(recent, settings)(recent["estimate"], "nearest")
        text += f". From {date} on, it is an estimated {now} points"
    return f"{text}."


def findings(watched: Watched) -> list[Sentence]:
    """Return what to do, and a sentence on each further alarm and on each part without one."""
    first = watched.alarms[:1]
    listed = [Sentence("", "What to do: ", f"{REMEDIES[one.part]}.") for one in first]
    listed += [
        Sentence(alarm_sentence(one, watched), is_warning=True) for one in watched.alarms[1:LISTED]
    ]
    more = len(watched.alarms) - LISTED
    if more > 0:
        listed.append(Sentence(f"{count(more, 'further alarm')} in other groups or parts."))
    parts = {one.part for one in watched.alarms}
    listed += [*_promise_finding(watched, parts), *_group_finding(watched, parts)]
    listed += [*_draws_finding(watched, parts), *_late_finding(watched)]
    listed += [
        Sentence(f"{note[:1].upper()}{note[1:]}.", is_warning=True)
        for note in watched.values.get("notes") or ()
    ]
    if watched.notices:
        last = watched.notices[-1]
        listed.append(
            Sentence(
                f"Notice, no alarm: the PITs left the certified envelope on {last.date.words}"
                f"{_shown(direction_words(last.part, last.direction))}."
            )
        )
    return listed


def _promise_finding(watched: Watched, parts: set[str]) -> list[Sentence]:
    if watched.settings.get("target") is None:
        return [Sentence("No promise is watched, as no certificate was given.")]
    kept = promise_sentence(watched.settings)
    is_quiet = "promise" not in parts and not watched.is_empty
    before = "The promise has raised no alarm: " if is_quiet else "The promise: "
    text = f"{before}{kept[:1].lower()}{kept[1:]}"
    if watched.promise is not None:
        text += f" {estimate_sentence(watched.promise, watched.settings)}"
    return [Sentence(text)]


def _group_finding(watched: Watched, parts: set[str]) -> list[Sentence]:
    if not watched.groups:
        return []
    n = len(watched.groups)
    off = sum(one.is_alarm for one in watched.groups)
    limit = points_in_full(float(watched.settings["tolerance"]))
    if off:
        return [Sentence(f"{off:,} of {count(n, 'named group')} raised an alarm.")]
    return [
        Sentence(
            f"No alarm in {'any of ' if n > 1 else ''}{count(n, 'named group')}: no error above the"
            f" tolerance of {limit} points is proven."
        )
    ]


def _draws_finding(watched: Watched, parts: set[str]) -> list[Sentence]:
    if watched.draws is None or watched.is_empty:
        return []
    repeated = repeated_sentence(watched.draws)
    if repeated:
        return [Sentence(repeated, is_warning=True)]
    distance = (
        f"The draws of {count(int(watched.draws['n']), 'forecast')} are"
        f" {points(watched.draws.get('error'))} points from uniform"
    )
    if "draws" in parts:
        return [Sentence(f"{distance}.")]
    return [Sentence(f"{distance}: there is no evidence of repeated or selected draws.")]


def _late_finding(watched: Watched) -> list[Sentence]:
    text = late_sentence(watched.values)
    return [Sentence(text, is_warning=True)] if text else []


def late_sentence(values: Values) -> str:
    """Return the remedy if more outcomes came too late than in time; empty if not."""
    watched = Watched(values)
    n, missing, late = n_outcomes(watched)
    matures_after = watched.settings.get("matures_after_days")
    if matures_after is None or late <= n - missing:
        return ""
    text = (
        f"{late:,} of {count(n - missing + late, 'outcome')} were recorded later than"
        f" {days_in_words(matures_after)} and count as missing: begin a new watch that waits"
        " longer. Delays are measured from the time at which the forecast was logged."
    )
    usual = (values.get("delays") or {}).get("days_90")
    if usual is None:
        return text
    within = days_in_words(math.ceil(usual))
    return f"{text} 90% of the recorded outcomes were recorded within {within}."


def n_outcomes(watched: Watched) -> tuple[int, int, int]:
    """Return the numbers of forecasts, of missing outcomes, and of the late ones among these."""
    n, missing, late = (
        int(watched.values.get(key) or 0) for key in ("n_rows", "n_missing", "n_late")
    )
    return n, missing, late


def repeated_sentence(draws: Values) -> str:
    """Return how many draws were those of earlier forecasts; empty if none was."""
    n = int(draws.get("n_repeated") or 0)
    if not n:
        return ""
    total = n + int(draws["n"])
    return (
        f"{n:,} of {count(total, 'draw')} {'was' if n == 1 else 'were'} the same as an earlier one"
        " and not counted. In one context each person has a draw of their own: check how the draws"
        " are made."
    )


def missing_sentence(watched: Watched) -> str:
    """Return how many outcomes were known in time, missing, late or still waited for."""
    n, missing, late = n_outcomes(watched)
    if not n:
        return ""
    text = f"Outcomes of matured forecasts: all known, of {count(n, 'forecast')}."
    if missing:
        text = (
            f"Outcomes of matured forecasts: {missing:,} missing of {count(n, 'forecast')}"
            f" ({percent(missing / n)}), of which {late:,} were recorded later."
        )
    waiting = watched.values.get("n_waiting")
    if waiting:
        text += f" {count(int(waiting), 'more forecast has', 'more forecasts have')} not matured."
    repeated = watched.values.get("n_repeated")
    if repeated:
        text += f" {count(int(repeated), 'forecast')} of people counted before left out."
    return text


def meanings(watched: Watched) -> Sequence[str]:
    """Return what an alarm of this watch means and what it does not."""
    rate = in_full(float(watched.settings["false_alarm"]))
    listed = [text.format(false_alarm=rate) for text in MEANS]
    envelope = watched.settings.get("statistic") == "mean_pit"
    return [*listed, NOTICE] if watched.notices or envelope else listed


def maturity_words(days: float | None) -> str:
    """Return how long forecasts take to mature, in words."""
    return "none: an outcome counts once it is known" if days is None else days_in_words(days)
