"""Comparison of two models or audits as text and page: verdict, groups and scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from evenhand._escape import shortened
from evenhand._format import (
    UNKNOWN,
    band,
    count,
    in_full,
    is_known,
    number,
    percent,
    plain_number,
    points,
    points_in_full,
    ratio,
    whole,
)
from evenhand._table import Cells, Column, Table, Value
from evenhand.report.document import (
    Bullets,
    Document,
    Paragraph,
    Part,
    about_facts,
    document_html,
    document_text,
    embedded,
    section,
    short_text,
    source_facts,
)
from evenhand.report.kinds import formatter_of, in_one_line, signed
from evenhand.results import Change, ComparedGroup, ComparisonRows

Show = Callable[..., str]

COVERED: dict[str, tuple[str, Show]] = {
    "coverage_80": ("80% interval covers", percent),
    "error": ("error (points)", points),
}
"""Measures of groups, with their columns; a short text has the first three."""

EVENTS: dict[str, tuple[str, Show]] = {
    "rate": ("observed", percent),
    "predicted": ("predicted", percent),
    "bias": ("difference (points)", signed),
    "slope": ("slope", ratio),
    "log_loss": ("log score", number),
    "error": ("error (points)", points),
}
"""Those of 0/1 outcomes."""

LISTED = ("rate", "predicted", "slope", "log_loss")
"""Measures without intervals, of which values are listed."""


# --- groups and their verdicts

NO_PROOF = "A problem in one audit alone does not prove that the group changed."

IN_WORDS = {"not significant": "", "unknown": "no interval", "no problem": ""}
"""Words of a table for outcomes; of others, the outcome itself."""

ORDER = ("worse", "better", "problem after", "problem before", "problem in both")
"""Outcomes of groups in the order in which these are listed; others come last."""


def is_slight(row: ComparedGroup) -> bool:
    """Whether a significant change is within the tolerance."""
    return row.outcome in ("worse", "better") and not row.important


class Shown:
    """What a comparison found, in words and tables."""

    def __init__(self, rows: ComparisonRows) -> None:
        self.rows = rows
        self.tolerance = f"{points_in_full(rows.tolerance)} points"
        # everyone, then important groups, then worse ones, then those that changed most
        everyone, *others = rows.groups
        others.sort(
            key=lambda row: (
                not row.important,
                [*ORDER, row.outcome].index(row.outcome),
                -abs(row.change("error").change or 0.0),
            )
        )
        # each set of people once
        names = {row.group for row in rows.groups}
        self.groups = [everyone, *(row for row in others if row.same_as not in names)]
        self.is_event = everyone.change("rate").before is not None
        name = rows.provenance["after"].get("data", {}).get("name")
        size = count(rows.n_samples, "row") + (f" of {in_one_line(name)}" if name else "")
        # the second audit may have other rows
        if everyone.n_after != everyone.n:
            size = f"{everyone.n:,} and {count(everyone.n_after, 'row')}"
        self.facts = [size, count(len(self.groups), "group")]

    @property
    def verdict(self) -> str:
        """In how many groups the error got better and worse, or is a problem."""
        total, slight = count(len(self.groups), "group"), sum(map(is_slight, self.groups))
        n = Counter(row.outcome for row in self.groups if not is_slight(row))
        if not self.rows.is_paired:
            # groups that one audit alone lists are not compared
            total = count(len(self.groups), "shared group")
            both, new = n["problem in both"], n["problem after"]
            before, after = both + n["problem before"], both + new
            if not before + after:
                return f"NO PROBLEM FOUND in {total}, before or after."
            now = f"in {after or 'none'} after" + (f", {new:,} of them new." if new else ".")
            return f"PROBLEM in {before or 'none'} of {total} before, {now}"
        text = f"BETTER in {count(n['better'], 'group')}, worse in none."
        if n["worse"]:
            text = f"WORSE in {count(n['worse'], 'group')}, better in {n['better'] or 'none'}."
        elif not n["better"]:
            beyond = f"beyond {self.tolerance}" if slight else "of the error"
            text = f"NO SIGNIFICANT CHANGE {beyond} in {total}."
        if slight:
            text += f" In {count(slight, 'group')} the error changed by less than {self.tolerance}."
        if few := n["unknown"]:
            text += f" {count(few, 'group has', 'groups have')} no interval."
        return text

    @property
    def sentences(self) -> Iterator[str]:
        """Remarks on audits that are not paired, and everyone's scores."""
        if not self.rows.is_paired:
            yield from self.rows.notes[:1]
            yield from [NO_PROOF] * any(row.important for row in self.groups)
        known = {one.measure: one for one in self.rows.scores}
        parts = []
        if self.is_event:
            error, slope = map(self.groups[0].change, ("error", "slope"))
            parts.append(f"{_to(error, points)} points off by score")
            if is_known(slope.before) and is_known(slope.after):
                parts.append(f"slope {_to(slope, ratio)} (right is 1)")
        elif width := known.get("80% interval width"):
            unit = in_one_line(self.rows.about.get("unit", ""))
            parts.append(f"80% interval {_to(width, plain_number, ' → ')} {unit}".strip() + " wide")
        for name, shown in (("CRPS", "CRPS"), ("log loss", "log score")):
            if name in known:
                parts.append(f"{shown} {_to(known[name], number)} (smaller is better)")
        if parts:
            yield f"Everyone: {'; '.join(parts)}."

    def table(self, rows: list[ComparedGroup], *, is_short: bool = False, **options: Any) -> Table:
        """Return groups; in a short text with few measures, and without changes."""
        measures = EVENTS if self.is_event else COVERED
        is_paired = self.rows.is_paired
        printed = list(measures)[: 3 if is_short else None]
        if is_short and not is_paired:
            printed = ["error"]

        def verdict(row: ComparedGroup) -> str:
            found = IN_WORDS.get(row.outcome, row.outcome)
            return f"slightly {found}" if is_slight(row) else found

        def size(row: ComparedGroup) -> Value:
            return Value(" → ".join(map(whole, dict.fromkeys((row.n, row.n_after)))), order=row.n)

        def written(row: ComparedGroup, name: str, show: Show) -> Value:
            """Write a measure before and after, with its interval."""
            one = row.change(name)
            if name == "rate" and is_paired:
                return Value(show(one.after), order=one.after)
            ends = UNKNOWN
            if name not in LISTED and not is_paired:
                # the own intervals of both audits
                sides = (one.interval(side)[1:] for side in ("before", "after"))
                ends = " → ".join(band(show, *side) for side in sides)
            elif name not in LISTED and not is_short and is_known(one.change):
                within = band(signed, one.change_low, one.change_high)
                ends = signed(one.change) + (f", {within}" if within != UNKNOWN else "")
            return Value(_to(one, show, " → "), ends, one.change)

        cells: Cells[ComparedGroup] = {
            "group": lambda row: in_one_line(row.group) if is_short else row.group,
            "rows": size,
        }
        for name in printed:
            column, show = measures[name]
            cells[column] = partial(written, name=name, show=show)
        return Table.of("Groups", rows, cells | {Column("verdict"): verdict}, **options)


def _to(one: Change, show: Show, join: str = " to ") -> str:
    """Write a measure before and after."""
    pair = one.before, one.after
    return join.join(map(show, pair)) if any(map(is_known, pair)) else UNKNOWN


# --- text of at most 16 lines

LINES = 16
"""Most lines of a short text."""

ROWS = 5
"""Most groups in a short text."""


def comparison_text(rows: ComparisonRows, *, full: bool) -> str:
    """Return a comparison as text; `full` has all groups."""
    if full:
        return document_text(comparison_document(rows))
    found = Shown(rows)
    before, after = (shortened(name, 24) for name in rows.names)
    is_command = bool(rows.provenance["after"].get("command"))
    more = "--full, or --out comparison.html" if is_command else "summary(full=True)"
    head = f"Before: {before}. After: {after}. {', '.join(found.facts)}"
    tail = Bullets([*found.sentences, f"All groups: {more}"])
    for n in range(ROWS, 0, -1):
        text = short_text(head, found.verdict, found.table(found.groups[:n], is_short=True), tail)
        if text.count("\n") < LINES:
            break
    return text


# --- page and full text

SHOWN = 400
"""Most groups in a table of a page."""

FIRST = 11
"""Everyone and ten groups, in the first table."""

HOW = (
    "A change is the value after minus the value before, on the same rows. A group got better or"
    " worse if the interval of the change of its error excludes 0. The intervals of a measure"
    " contain the true changes of all groups jointly with {confidence} confidence"
    " (Bonferroni); they are asymptotic, and groups of under 50 rows have none, nor errors and"
    " biases where 1 to 19 rows change. The intervals of the error allow for its bias near 0, so"
    " that small errors need large changes."
)

HOW_OF_EVENTS = (
    " The error of a group is the difference of event rate and mean probability; that of everyone"
    " is its mean over people by score, so that errors of low and high scores do not cancel."
)
"""Addition for 0/1 outcomes."""

HOW_UNPAIRED = "Each audit decides by its own intervals, which hold jointly for all of its groups."


def comparison_html(rows: ComparisonRows) -> str:
    """Return a comparison as one page of HTML."""
    return document_html(comparison_document(rows))


def comparison_document(rows: ComparisonRows) -> Document:
    """Return the document of a comparison."""
    found = Shown(rows)
    before, after = map(in_one_line, rows.names)
    how, within = HOW_UNPAIRED, "their intervals"
    if rows.is_paired:
        how = HOW.format(confidence=in_full(rows.confidence)) + HOW_OF_EVENTS * found.is_event
        within = "the change with its paired interval"
    note = f"Values before and after, and in brackets {within}. Tolerance: {found.tolerance}."
    others = found.groups[FIRST:]
    options: dict[str, Any] = {"search": "Find a group", "printed": SHOWN}
    first = found.table(found.groups[:FIRST], note=note, **options)
    if len(others) > SHOWN:
        n = count(len(others) - SHOWN, "group")
        note += f" {n} with the smallest changes are in the JSON alone."
    table = found.table(others[:SHOWN], note=note, **options)
    hint = "what was left out or done otherwise"
    sources: list[Part | None] = [about_facts(rows.about)]
    for name, known in rows.provenance.items():
        sources += [Paragraph(name.capitalize(), "heading"), source_facts(known)]
    sections = [
        section("groups", "Groups", "", first),
        section("others", "The other groups", "smaller changes", table if others else None),
        section("scores", "Scores", "of all rows", *_scores(rows)),
        section("how", "How changes are judged", "intervals of changes", Paragraph(how)),
        section("notes", "Notes", hint, Bullets(rows.notes)),
        section("provenance", "Where this comes from", "both audits", *sources),
    ]
    return Document(
        title=f"Comparison of {before} and {after}",
        facts=[*found.facts, f"before: {before}", f"after: {after}"],
        lead=found.verdict,
        opening=[Bullets([*found.sentences])],
        sections=sections,
        data=embedded(rows.to_dict()),
    )


def _scores(rows: ComparisonRows) -> list[Part]:
    """Show scores and certified bounds of all rows, with paired intervals where there are any."""

    def written(one: Change, at: str) -> str:
        show = formatter_of(one.unit)
        toward = "up" if one.measure.startswith("certified") else "nearest"
        text: str = show(getattr(one, at), toward)
        return text + (" points" if show is points else "")

    def change(one: Change) -> str | Value:
        if one.change_low is None:
            return UNKNOWN
        show = partial(signed, show=number)
        return Value(show(one.change), band(show, one.change_low, one.change_high), one.change)

    cells: Cells[Change] = {
        "measure": lambda one: one.measure,
        "before": partial(written, at="before"),
        "after": partial(written, at="after"),
    }
    text = "Of all rows. Smaller log scores and CRPS are better."
    if rows.is_paired:
        cells["change"] = change
        text += f" Changes have paired {in_full(rows.confidence)} intervals, each by itself."
    return [Paragraph(text), Table.of("Scores", rows.scores, cells)]
