"""The document of a watch: status, promise, evidence over time, groups, draws and delays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand._format import (
    UNKNOWN,
    and_more,
    confidence_in_full,
    count,
    in_full,
    percent,
    points,
    points_exactly,
    points_in_full,
    whole,
)
from evenhand._table import Cells, Column, Table, Value, numeric
from evenhand.report.document import (
    Bullets,
    Document,
    Download,
    Facts,
    Heading,
    PageData,
    Pair,
    Paragraph,
    Part,
    Section,
    short,
)
from evenhand.report.page import document_html
from evenhand.report.records import Values, without_nan
from evenhand.report.text import document_text
from evenhand.report.watch_charts import delays_chart, evidence_chart
from evenhand.report.watched import (
    Signal,
    Watched,
    WatchedGroup,
    direction_words,
    findings,
    lead,
    maturity_words,
    meanings,
    missing_sentence,
    of_alarm,
    rarity,
    status_box,
)

# --- section on the named groups of a watch

PRINTED = 8
"""Most groups in text."""


def groups_section(watched: Watched) -> Section | None:
    """Show the groups with their evidence and errors; None without groups."""
    groups = watched.groups
    if not groups:
        return None
    error = "bias (points)" if watched.is_event else "error (points)"
    cells: Cells[WatchedGroup] = {
        Column("group"): lambda one: one.name,
        Column("status"): lambda one: "alarm" if one.is_alarm else "no alarm",
        numeric("maximum, of threshold"): lambda one: Value(
            of_alarm(one.highest), order=one.highest
        ),
        numeric(error): lambda one: Value(
            points(one.error), one.direction or UNKNOWN, order=one.error
        ),
        numeric("forecasts"): lambda one: Value(whole(one.n), order=one.n),
        numeric("missing", in_text=False): lambda one: Value(
            percent(one.n_missing / one.n) if one.n else UNKNOWN, order=one.n_missing
        ),
    }
    limit = points_in_full(float(watched.settings["tolerance"]))
    text = (
        "Groups with the highest evidence first. An alarm means an error above the tolerance of"
        f" {limit} points; evidence is the maximum so far. Below an error is its direction:"
        " outcomes higher or lower than forecast, or forecasts too narrow or too wide."
    )
    quiet = [i for i, one in enumerate(groups) if not one.is_alarm]
    dim = quiet if len(quiet) < len(groups) else ()
    table = Table.of("Groups", groups, cells, dim=dim, search="Find a group", printed=PRINTED)
    return Section("Groups", [Paragraph(text), table], "groups")


# --- the document of a watch: status, promise, evidence over time, groups, draws and delays

EMBEDDED = 80
"""Most tests of groups whose evidence by period a page embeds."""

DECIMALS = 3
"""Decimals of the log evidence by period that a page embeds."""

NAME = 60
"""Most characters of the name of a source."""

DELAYED = (
    "A forecast counts when it has matured, whenever its outcome arrived, because early"
    " outcomes differ from late ones."
)

READING = (
    "Evidence fluctuates or decreases while a promise is kept, and grows exponentially once it is"
    " broken."
)

HOW = (
    "Each part is tested by e-processes that allow for a change in any period. They are valid"
    " however often they are read: if nothing is broken, the probability that the evidence of a"
    " test ever reaches 1/p is at most p (Ville's inequality). The parts share the probability of a"
    " false alarm, and groups share that of their part equally, so the threshold of each test is"
    " the inverse of its share."
)

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


def watch_document(values: Values) -> Document:
    """Return the document of a watch.

    Parameters
    ----------
    values : dict
        `Watch.to_dict()`; see docs/watch-schema.rst.
    """
    values = without_nan(values)
    watched = Watched(values)
    data = PageData.of(embedded(values))
    sections = [
        _evidence(watched),
        groups_section(watched),
        _delays(watched),
        Section("What an alarm means", [Bullets.of(meanings(watched))], "meaning", in_text=False),
        _method(watched, data),
    ]
    return Document(
        title=_title(watched),
        facts=_facts(watched),
        opening=Section("Main findings", _opening(watched)),
        sections=[section for section in sections if section is not None],
        footer="Made by evenhand. The JSON of this watch contains all digits.",
        data=data,
    )


def watch_text(values: Values) -> str:
    """Return a watch, given as `Watch.to_dict()`, as short text."""
    return document_text(watch_document(values))


def watch_html(values: Values) -> str:
    """Return a watch, given as `Watch.to_dict()`, as one page of HTML that opens offline."""
    return document_html(watch_document(values))


def embedded(values: Values) -> dict[str, Any]:
    """Return the values that a page embeds: evidence by period rounded, of few groups.

    The evidence of many groups in many periods would be most of the page.
    """
    tests = list(values.get("tests") or ())
    strongest = sorted(
        (test for test in tests if test["part"] == "group"),
        key=lambda test: -max((one for one in test["log_evidence"] if one is not None), default=0),
    )[:EMBEDDED]
    kept = [test for test in tests if test["part"] != "group" or test in strongest]
    return {**values, "tests": [{**test, "log_evidence": _rounded(test)} for test in kept]}


def _rounded(test: Values) -> list[float | None]:
    return [None if one is None else round(one, DECIMALS) for one in test["log_evidence"]]


def _title(watched: Watched) -> str:
    contexts = (watched.values.get("sources") or {}).get("contexts") or ()
    if len(contexts) > 1:
        return f"Watch of {count(len(contexts), 'context')}"
    return f"Watch of {short(contexts[0], NAME)}" if contexts else "Watch of served forecasts"


def _facts(watched: Watched) -> list[str]:
    if watched.is_empty:
        return ["no rows yet"]
    n = count(int(watched.values["n_rows"]), "forecast")
    return [watched.span, watched.periods, n]


def _opening(watched: Watched) -> list[Part]:
    parts: list[Part] = [status_box(watched)]
    if headline := lead(watched):
        parts.append(Paragraph(headline, "lead"))
    found = findings(watched)
    if found:
        parts.append(Bullets(found))
    missing = missing_sentence(watched)
    return [*parts, Paragraph(missing, "facts")] if missing else parts


# ---- Sections


def _evidence(watched: Watched) -> Section | None:
    chart = evidence_chart(watched)
    if chart is None:
        return None
    beside: list[Part] = [Paragraph(READING)]
    signals = [("alarm", one) for one in watched.alarms]
    signals += [("notice", one) for one in watched.notices]
    if signals:
        beside += [Heading("Alarms and notices"), _signal_table(signals, watched)]
    beside.append(Download("Download the data of this page (json)"))
    return Section("Evidence over time", [Pair([chart], beside)], "evidence", in_text=False)


def _signal_table(signals: Sequence[tuple[str, Signal]], watched: Watched) -> Table:
    false_alarm = float(watched.settings["false_alarm"])

    def what(item: tuple[str, Signal]) -> Value:
        kind, one = item
        below = ", ".join(filter(None, [kind, direction_words(one.part, one.direction)]))
        return Value(one.name, below)

    def raised(item: tuple[str, Signal]) -> Value:
        kind, one = item
        rows = f"after {count(one.n_rows, 'forecast')}"
        if kind == "notice":
            return Value(one.date.words, rows)
        rare = rarity(false_alarm, one.highest)
        return Value(one.date.words, f"{rows}; {rare} if nothing is broken")

    cells: Cells[tuple[str, Signal]] = {
        Column("what"): what,
        Column("since about"): lambda item: item[1].since.words,
        Column("raised on"): raised,
    }
    return Table.of("Alarms and notices", signals, cells)


def _delays(watched: Watched) -> Section | None:
    delays = watched.values.get("delays") or {}
    chart = delays_chart(delays, watched.settings.get("matures_after_days"))
    if chart is None:
        return None
    return Section("Delays of outcomes", [Paragraph(DELAYED), chart], "delays", in_text=False)


def _method(watched: Watched, data: PageData) -> Section:
    settings = watched.settings
    confidence = settings.get("confidence")
    link = settings.get("link")
    alpha = settings.get("alpha")
    facts: dict[str, str | None] = {
        "Probability of a false alarm": in_full(float(settings["false_alarm"])),
        "Tolerance of groups": f"{points_in_full(float(settings['tolerance']))} points",
        "Promised bound": _bound_in_full(settings),
        "Period": str(settings["period"]),
        "Matures after": maturity_words(settings.get("matures_after_days")),
        "Statistic": settings.get("statistic"),
        "Link": None if link is None else f"{link}, alpha {alpha:g}",
        "Confidence of the certificate": None
        if confidence is None
        else confidence_in_full(confidence),
        "Thresholds (log evidence)": _thresholds(watched),
        **_sources(watched.values.get("sources") or {}),
        "Schema": watched.values.get("schema"),
        "Hash of the page": f"sha256 of the embedded data: {data.sha256}",
    }
    parts: list[Part] = [Paragraph(HOW), Facts(facts)]
    command = (watched.values.get("sources") or {}).get("command")
    if command:
        parts += [Heading("Command"), Paragraph(str(command), "code")]
    return Section("How it was computed", parts, "method", in_text=False)


def _bound_in_full(settings: Values) -> str | None:
    """Return the promised bounds with all digits, which sentences round."""
    target, targets = settings.get("target"), settings.get("targets")
    if target is None:
        return None
    if targets is None:
        return f"{points_exactly(target)} points"
    return f"bias from {points_exactly(-targets[1])} to {points_exactly(targets[0])} points"


def _thresholds(watched: Watched) -> str | None:
    tests = watched.values.get("tests") or ()
    found = {(str(test["part"]), f"{test['threshold']:.3g}") for test in tests}
    return ", ".join(f"{part} {limit}" for part, limit in sorted(found)) or None


def _sources(sources: Mapping[str, Any]) -> dict[str, str | None]:
    named = {name: sources.get(key) for key, name in SOURCES.items()}
    return {name: None if value is None else _source(value) for name, value in named.items()}


def _source(value: Any) -> str:
    if isinstance(value, list):
        return and_more([short(one, NAME) for one in value])
    return whole(value) if isinstance(value, int) else short(value)
