"""Texts: rendering of documents, and the text of an audit: short, in full and as Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from typing import NamedTuple

from evenhand._escape import visible
from evenhand._format import percent, whole
from evenhand._table import Cells, Column, Table, folded_command, line_width, numeric, wrapped
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

LABEL = 16
"""Most characters of a line of a label."""

INDENT = 2
"""Blanks before code."""


class Block(NamedTuple):
    """A label with the text beside it; of several, those of high `rank` are left out first."""

    label: str
    text: str
    rank: int = 0
    code: str = ""


def audit_text(rows: AuditRows, *, full: bool = False) -> str:
    """Return an audit as text of about 12 lines, or in full with all tables."""
    if full:
        document = audit_document(rows)
        step = Section("Next step", document.next_step)
        sections = [step, *document.cards, *document.sections]
        return document_text(replace(document, sections=sections))
    slots, width = Slots.of(rows), min(line_width(), LONGEST)
    heading = f"{slots.heading} (all: {slots.more})"
    head = [wrapped(heading, width), wrapped(_verdict(slots), width), ""]
    blocks = list(_blocks(slots, rows))
    margin = 2 + min(max(len(line) for one in blocks for line in _label(one)), LABEL)
    while True:
        lines = [line for one in blocks for line in _beside(one, margin, width)]
        n = sum(len(text.split("\n")) for text in head) + len(lines)
        last = max(blocks, key=lambda one: one.rank)
        if n <= LINES or not last.rank:
            break
        blocks.remove(last)
    table = ["", _by_tenth(rows).text(width)] if rows.is_event and rows.by_forecast else []
    return "\n".join([*head, *lines, *table])


def _verdict(slots: Slots) -> str:
    """Return the verdict with its line, and without a problem what the rows would have shown."""
    shown = "" if slots.name else slots.lead.removesuffix(SMALLER)
    opening = f"{slots.badge} {slots.verdict}" if slots.verdict else f"{slots.badge}."
    return f"{opening} {shown}".strip()


def _blocks(slots: Slots, rows: AuditRows) -> Iterator[Block]:
    """Yield what the short text has, from top to bottom."""
    if slots.name:
        fact = slots.title.removeprefix(f"{slots.name}: ")
        yield Block(slots.name, f"{capitalized(fact)} {slots.lead}".strip())
    label = "Also"
    for i, (name, text) in enumerate(slots.others):
        yield Block(label, f"{name}: {text.split('; ')[0].removesuffix('.')}", 2 + 4 * i)
        label = ""
    if rows.leading is None or rows.leading not in rows.overall:
        n = 1 if rows.is_event or rows.survival else 2
        yield Block("Everyone", " ".join(slots.everyone[:n]))
        yield from (Block("", text, 1) for text in filter(None, [" ".join(slots.everyone[n:4])]))
    yield from (Block("Caution", text) for text in slots.cautions)
    if slots.proven:
        yield Block("Proven", slots.proven[0], 0 if rows.bound else 3)
    tested = (one.rstrip(".") for one in slots.not_tested[: 3 if rows.censoring else 2])
    yield Block("Not tested", "; ".join(f"{one[:1].lower()}{one[1:]}" for one in tested))
    yield from (Block("Gate", text) for text in slots.gate)
    for step in slots.next[:1]:
        code = step.code(rows.has_command)[1]
        yield Block("Next", f"{step.what[:-1]}:" if code else step.what, code=code)


def _label(one: Block) -> list[str]:
    return wrapped(one.label, LABEL).split("\n")


def _beside(one: Block, margin: int, width: int) -> Iterator[str]:
    """Yield the lines of a text beside its label, and its code below."""
    margin = len(one.label) + 2 if one.code else margin
    lines = wrapped(one.text, width - margin).split("\n")
    for label, line in zip_longest(_label(one), lines, fillvalue=""):
        yield f"{label:{margin}}{line}".rstrip()
    code = "\n".join(map(visible, one.code.split("\n")))
    is_shell = code.startswith("evenhand ")
    lines = (folded_command(code, width - INDENT) if is_shell else code).split("\n")
    yield from (f"{'':{INDENT}}{line}" for line in lines if code)


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
    slots = Slots.of(rows)
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
