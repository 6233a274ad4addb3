"""Section on what to do after an audit."""

from __future__ import annotations

from evenhand._table import folded_command
from evenhand.report.document import Paragraph, Part, Section
from evenhand.report.findings import Findings
from evenhand.report.next_steps import next_steps

WIDTH = 90
"""Most characters of a line of a command."""


def next_section(findings: Findings) -> Section | None:
    """Show the next steps, each as a command and in Python."""
    steps = next_steps(findings)
    if not steps:
        return None
    parts: list[Part] = []
    for step in steps:
        lines = [f"$ {folded_command(step.command, WIDTH)}"] if step.command else []
        lines += [f">>> {step.python}"] if step.python else []
        parts += [Paragraph(step.what), Paragraph("\n".join(lines), "code")]
    return Section("What to do next", parts, "next")
