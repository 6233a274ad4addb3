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

    Yields
    ------
    callable
        `advance(done, note)`: the number of steps done so far and a few words beside the bar.

    Examples
    --------
    >>> with progress("counting", 3, enabled=False) as advance:
    ...     for i in range(3):
    ...         advance(i + 1, "")
    """
    with _bar(enabled=enabled) as shown:
        task = shown.add_task(description, total=total, note=f"0/{total}")
        yield lambda done, note: shown.update(task, completed=done, note=f"{done}/{total} {note}")


@contextmanager
def part_progress(
    description: str, n_parts: int, n_rows: int | None, *, enabled: bool = True
) -> Iterator[Callable[[int, int], None]]:
    """Show the number of parts done, the rows per second and the remaining time.

    Parameters
    ----------
    description : str
        Text before the bar.
    n_parts : int
        Number of all parts.
    n_rows : int or None
        Number of all rows; if it is unknown, the bar counts parts.
    enabled : bool, default True
        Whether to show anything.

    Yields
    ------
    callable
        `advance(rows, parts)`: how many more are done.

    Examples
    --------
    >>> with part_progress("auditing", 2, 2000, enabled=False) as advance:
    ...     advance(1000, 1)
    """
    with _bar(enabled=enabled) as shown:
        total = n_parts if n_rows is None else n_rows
        task = shown.add_task(description, total=total, note=f"0/{n_parts} parts", done=0)

        # workers finish in any order, so progress comes as increments
        def advance(rows: int, parts: int) -> None:
            now = shown.tasks[task]
            done = now.fields["done"] + parts
            speed = f" {now.speed:,.0f} rows/s" if now.speed and n_rows is not None else ""
            step = parts if n_rows is None else rows
            shown.update(task, advance=step, done=done, note=f"{done}/{n_parts} parts{speed}")

        yield advance


@contextmanager
def waiting(description: str, *, enabled: bool = True) -> Iterator[None]:
    """Show a spinner while the block runs, if standard error is a terminal.

    Examples
    --------
    >>> with waiting("searching", enabled=False):
    ...     pass
    """
    with _on_terminal(SpinnerColumn(), "{task.description}", enabled=enabled) as shown:
        shown.add_task(description, total=None)
        yield


def _bar(*, enabled: bool) -> Progress:
    # new columns for each bar, as they cache the text of a task by its number
    columns = ("{task.description}", BarColumn(), "{task.fields[note]}", TimeRemainingColumn())
    return _on_terminal(*columns, enabled=enabled)


def _on_terminal(*columns: str | ProgressColumn, enabled: bool) -> Progress:
    # on standard error: standard output may be a table or JSON for another program
    # named once, as rich would write to the command's escaping stream while a bar is shown
    console = Console(file=getattr(sys.stderr, "rich_proxied_file", sys.stderr))
    is_shown = enabled and console.is_terminal
    return Progress(*columns, console=console, transient=True, disable=not is_shown)
