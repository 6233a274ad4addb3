"""Section on times that are cut off: what is known of them, and what each number assumes."""

from __future__ import annotations

from collections.abc import Iterator

from evenhand._format import confidence_in_full, count, percent, whole
from evenhand._table import Cells, Column, Table, numeric
from evenhand.report.document import Heading, Paragraph, Part, Section
from evenhand.report.findings import Findings
from evenhand.report.records import Censoring
from evenhand.report.terms import IN_FEATURES, IN_GROUP, IN_TIME, NO_HORIZON

NOTHING = "nothing on why times are cut off"


def counts_in_words(findings: Findings) -> str:
    """Return the numbers of events, of people who reached the horizon and of times cut off."""
    censoring, horizon = findings.censoring, findings.terms.horizon
    if censoring is None:
        return ""
    facts = [count(censoring.n_events, "event") + (f" by {horizon}" if horizon else "")]
    if horizon:
        facts.append(f"{whole(censoring.n_reached)} seen without it until then")
    lost = percent(censoring.n_lost / censoring.n_people)
    return ", ".join([*facts, f"{count(censoring.n_lost, 'time')} cut off ({lost})"])


def times_section(findings: Findings) -> Section | None:
    """Show what is known of times, and what each number assumes; nothing for other outcomes."""
    censoring = findings.censoring
    if censoring is None:
        return None
    parts: list[Part] = [
        Paragraph(_of_times(findings, censoring)),
        _people_by_time(findings, censoring),
    ]
    parts += [Heading("What each number assumes"), _readings(findings)]
    if not findings.terms.horizon:
        parts.append(Paragraph(NO_HORIZON))
    return Section("Times that are cut off", parts, "times")


def _of_times(findings: Findings, censoring: Censoring) -> str:
    lost = percent(censoring.n_lost / censoring.n_people)
    text = (
        f"The event of {whole(censoring.n_lost)} of {count(censoring.n_people, 'person', 'people')}"
        f" ({lost}) was not observed, and is only known to be later than the time at which they"
        " were last seen (censored). Leaving these people out, or counting them as events, would"
        " make a right forecast look wrong."
    )
    horizon = findings.terms.horizon
    if not horizon:
        return text
    return (
        f"Outcomes are followed until {horizon}: whether the event happened by then, and when."
        f" {text}"
    )


def _people_by_time(findings: Findings, censoring: Censoring) -> Table:
    """Return the numbers of people by what is known of their times."""
    horizon = findings.terms.horizon
    by = f" by {horizon}" if horizon else ""
    rows = [(f"event observed{by}", censoring.n_events, "its time")]
    if horizon:
        seen = f"seen without the event until {horizon}"
        rows.append((seen, censoring.n_reached, "no event by then"))
    before = f" before {horizon}" if horizon else ""
    rows.append((f"cut off{before}", censoring.n_lost, "no event until they were last seen"))
    if censoring.n_followed is not None:
        entered = "of all: entered at least a horizon before the end of follow-up"
        rows.append((entered, censoring.n_followed, "used for guarantees, whatever happened"))
    cells: Cells[tuple[str, int, str]] = {
        Column("people"): lambda row: row[0],
        numeric("number"): lambda row: whole(row[1]),
        numeric("share"): lambda row: percent(row[1] / censoring.n_people),
        Column("what is known"): lambda row: row[2],
    }
    return Table.of("Times that are cut off", rows, cells)


def _readings(findings: Findings) -> Table:
    """Return the readings of times that are cut off with their assumptions."""
    cells: Cells[tuple[str, str, str]] = {
        Column("number"): lambda row: row[0],
        Column("computed as"): lambda row: row[1],
        Column("assumes"): lambda row: row[2],
    }
    return Table.of("What each number assumes", _assumptions(findings), cells)


def _assumptions(findings: Findings) -> Iterator[tuple[str, str, str]]:
    confidence = confidence_in_full(findings.confidence)
    yield (
        "errors and coverage of groups",
        "Kaplan-Meier estimate of PITs, with asymptotic intervals",
        IN_GROUP,
    )
    yield (
        "errors without assumption",
        f"least and largest error of all possible times, with {confidence} confidence",
        NOTHING,
    )
    yield (
        "whether a group is significantly off, scanned groups, histogram of PITs",
        "tests of PITs that are drawn from the remaining part of the predicted distribution where"
        " a time is cut off",
        IN_FEATURES,
    )
    if findings.values.get("survival"):
        yield (
            f"rate of the event by {findings.terms.horizon}",
            "Kaplan-Meier estimate",
            IN_TIME,
        )
    if findings.proof is not None and findings.terms.horizon:
        yield (
            "guarantees",
            "people who are cut off count with the largest error that they can have",
            _of_guarantee(findings),
        )


def _of_guarantee(findings: Findings) -> str:
    censoring = findings.censoring
    if censoring is None or censoring.n_followed is None:
        return NOTHING
    return "people who entered early are like the others; nothing on who is lost after entry"
