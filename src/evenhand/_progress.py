"""Progress bars on terminals; nothing is shown in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, TimeRemainingColumn


@contextmanager
def progress(
    description: str, total: int, *, enabled: bool = True
) -> Iterator[Callable[[int, str], None]]:
    """Show a bar while the block runs, if standard error is a terminal.

    Yields `advance(done, note)`: the number of steps done so far and a few words beside the bar.
    """
    # new columns for each bar, as they cache the text of a task by its number
    columns = ("{task.description}", BarColumn(), "{task.fields[note]}", TimeRemainingColumn())
    with _on_terminal(*columns, enabled=enabled) as shown:
        task = shown.add_task(description, total=total, note=f"0/{total:,}")
        yield lambda done, note: shown.update(
            task, completed=done, note=f"{done:,}/{total:,} {note}"
        )


@contextmanager
def waiting(description: str, *, enabled: bool = True) -> Iterator[None]:
    """Show a spinner while the block runs, if standard error is a terminal."""
    with _on_terminal(SpinnerColumn(), "{task.description}", enabled=enabled) as shown:
        shown.add_task(description, total=None)
        yield


def _on_terminal(*columns: str | ProgressColumn, enabled: bool) -> Progress:
    # on standard error: standard output may be a table or JSON for another program
    # named once, as rich would write to the command's escaping stream while a bar is shown
    console = Console(file=getattr(sys.stderr, "rich_proxied_file", sys.stderr))
    is_shown = enabled and console.is_terminal
    return Progress(*columns, console=console, transient=True, disable=not is_shown)
