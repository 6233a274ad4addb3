"""Texts: rendering of documents, and the text of an audit: short, in full and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from evenhand._escape import visible
from evenhand._format import percent, whole
from evenhand._table import (
    Cells,
    Column,
    Table,
    folded_command,
    labelled,
    line_width,
    numeric,
    wrapped,
)
from evenhand.report import tables
from evenhand.report.document import (
    Section,
    document_text,
)
from evenhand.report.kinds import reach_of, signed
from evenhand.report.next_steps import Step
from evenhand.report.page import audit_document
from evenhand.report.slots import SMALLER, Slots, capitalized, name_of
from evenhand.results import AuditRows, Finding

# --- short text of an audit: verdict, worst case, other cases, what was not tested, next step

LONGEST = 80
"""Most characters of a line."""

LINES = 12
"""Most lines, beside the table by tenth and what a reader must not miss."""

LABEL = 18
"""Most characters of the column of labels."""


def audit_text(rows: AuditRows, *, full: bool = False) -> str:
    """Return an audit as text of about 12 lines, or in full with all tables."""
    if full:
        document = audit_document(rows)
        next_step = Section("Next step", document.next_step)
        sections = [next_step, *document.cards, *document.sections]
        return document_text(replace(document, sections=sections))
    slots, width = Slots(rows), min(line_width(), LONGEST)
    # without a problem, the verdict is followed by what the rows would have shown
    shown = "" if slots.name else slots.lead.removesuffix(SMALLER)
    verdict = f"{slots.badge} {slots.verdict}" if slots.verdict else f"{slots.badge}."
    heading = f"{slots.heading} (all: {slots.more})"
    head = [wrapped(heading, width), wrapped(f"{verdict} {shown}".strip(), width), ""]
    step = slots.next[0]
    code = "\n".join(map(visible, step.code(rows.has_command)[1].split("\n")))
    code = folded_command(code, width - 2) if code.startswith("evenhand ") else code
    last = wrapped(f"Next  {step.what[:-1]}:" if code else f"Next  {step.what}", width)
    last += "\n  " + code.replace("\n", "\n  ") if code else ""
    blocks = list(_blocks(slots, rows))
    while True:
        beside = labelled([one[1:] for one in blocks], width, LABEL)
        text = "\n".join([*head, beside, last])
        least = max(blocks, key=lambda one: one[0])
        if text.count("\n") < LINES or not least[0]:
            break
        blocks.remove(least)
    table = f"\n\n{_by_tenth(rows).text(width)}" if rows.is_event and rows.by_forecast else ""
    return text + table


def _blocks(slots: Slots, rows: AuditRows) -> Iterator[tuple[int, str, str]]:
    """Yield rank, label and text; of several, those of high rank are left out first."""
    if slots.name:
        yield 0, slots.name, f"{capitalized(slots.fact)}. {slots.lead}".strip()
    for i, (name, text) in enumerate(slots.others):
        yield 2 + 4 * i, "" if i else "Also", f"{name}: {text.split('; ')[0].removesuffix('.')}"
    if rows.leading is None or rows.leading not in rows.overall:
        n = 1 if rows.is_event or rows.survival else 2
        yield 0, "Everyone", " ".join(slots.everyone[:n])
        yield from ((1, "", text) for text in filter(None, [" ".join(slots.everyone[n:4])]))
    yield from ((0, "Caution", text) for text in slots.cautions)
    if slots.proven:
        yield 0 if rows.bound else 3, "Proven", slots.proven[0]
    tested = (one.rstrip(".") for one in slots.not_tested[: 3 if rows.censoring else 2])
    yield 0, "Not tested", "; ".join(f"{one[:1].lower()}{one[1:]}" for one in tested)
    yield from ((0, "Gate", text) for text in slots.gate)


def _by_tenth(rows: AuditRows) -> Table:
    """Return predicted probabilities and event rates by tenth of the probability."""
    cells: Cells[Finding] = {
        Column("probability"): lambda g: name_of(g, rows).partition("(")[2].rstrip(")"),
        numeric("rows"): lambda g: whole(g.n),
        numeric("predicted"): lambda g: percent(g.predicted),
        numeric("observed"): lambda g: percent(g.rate),
        numeric("difference"): lambda g: f"{signed(g.bias)} ({reach_of(g.bias_low, g.bias_high)})",
        Column(""): lambda g: "problem" if g.problem else "",
    }
    return Table.of("By tenth of the probability", rows.by_forecast, cells)


# --- an audit as Markdown, for documents of others


def audit_markdown(rows: AuditRows) -> str:
    """Return an audit as Markdown: its sentences, and the table of groups, the worst first."""
    slots = Slots(rows)
    first, others = tables.first_groups(rows)
    table = tables.groups("Groups", [*tables.everyone(rows), *first], rows)
    parts = [
        f"## {slots.heading}",
        f"**{slots.badge}** {slots.verdict}".strip(),
        f"**{slots.title}**",
    ]
    parts += [slots.lead, *slots.cautions, *(f"- {name}: {text}" for name, text in slots.others)]
    parts += [*slots.gate, *([] if table is None else [_pipes(table)])]
    parts += [f"{len(others):,} other groups are not listed."] if others else []
    for title, texts in {"Proven": slots.proven, "Not tested": slots.not_tested}.items():
        parts += [f"### {title}", *(f"- {text}" for text in texts)] if texts else []
    parts += ["### Next", *map(_step, slots.next, [rows.has_command] * len(slots.next))]
    return "\n\n".join(_markdown(part) for part in parts if part) + "\n"


def _step(step: Step, has_command: bool) -> str:
    code = step.code(has_command)[1]
    return f"{step.what}\n\n```\n{code}\n```" if code else step.what


def _markdown(text: str) -> str:
    """Escape what Markdown would read as HTML, outside code and tables."""
    return text if "\n" in text else visible(text).replace("<", "&lt;")


def _pipes(table: Table) -> str:
    """Return a table in the form of Markdown."""
    titles = [column.title for column in table.columns]
    sides = ["---:" if column.is_number else "---" for column in table.columns]
    rows = [titles, sides, *([str(cell) for cell in row] for row in table.rows)]
    escaped = (
        [visible(cell).replace("<", "&lt;").replace("|", "\\|") for cell in row] for row in rows
    )
    return "\n".join(f"| {' | '.join(row)} |" for row in escaped)
