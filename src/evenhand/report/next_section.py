"""Section on what to do after an audit."""

from __future__ import annotations

from evenhand._table import folded_command
from evenhand.report.document import Paragraph, Part, Section
from evenhand.report.findings import Findings
from evenhand.report.next_steps import has_command, next_steps

WIDTH = 90
"""Most characters of a line of a command."""


def next_section(findings: Findings) -> Section | None:
    """Show the next steps, as commands if the audit was made by one, else in Python."""
    steps = next_steps(findings)
    if not steps:
        return None
    parts: list[Part] = []
    for step in steps:
        is_shell, code = step.code(has_command(findings))
        lines = [f">>> {line}" for line in code.split("\n")]
        lines = [f"$ {folded_command(code, WIDTH)}"] if is_shell else lines
        parts += [Paragraph(step.what), *([Paragraph("\n".join(lines), "code")] if code else [])]
    return Section("What to do next", parts, "next")
