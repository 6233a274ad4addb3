"""A progress bar on a terminal, silence in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(description: str, total: int, *, enabled: bool = True) -> Iterator[Callable[[int, str], None]]:
    """Show a bar on standard error while the block runs, if that is a terminal.

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
    if not enabled:
        yield lambda done, note: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda done, note: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} {task.fields[note]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(description, total=total, note="")
        yield lambda done, note: bar.update(task, completed=done, note=note)
