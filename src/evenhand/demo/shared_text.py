"""Parts of the text that demonstrations share."""

from __future__ import annotations

from evenhand._format import band, percent
from evenhand._table import wrapped
from evenhand.demo.result import Estimate, Written


def step(title: str, text: str, width: int) -> str:
    """Return a step: its title, and a paragraph."""
    return f"{wrapped(title, width)}\n{wrapped(text, width)}"


def estimate(found: Estimate) -> str:
    """Return an estimated share with its interval."""
    return f"{percent(found.value)} ({band(percent, found.low, found.high)})"


def written_text(written: Written, width: int) -> str:
    """Return the names of the files, and which report to open."""
    folder = f"{written.out}{'/' if not str(written.out).endswith('/') else ''}"
    files = wrapped(f"Written to {folder}: {', '.join(written.files)}", width)
    return f"{files}\n\nOpen {written.out / written.report}"
