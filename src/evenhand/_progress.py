"""Progress bars on terminals; nothing is shown in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress, Task
    from rich.text import Text


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
    from rich.progress import TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.completed}/{task.total} {task.fields[note]}"),
        TimeRemainingColumn(),
    )
    with _bar(columns, enabled=enabled) as bar:
        if bar is None:
            yield lambda done, note: None
            return
        task = bar.add_task(description, total=total, note="")
        yield lambda done, note: bar.update(task, completed=done, note=note)


@contextmanager
def part_progress(
    description: str, n_parts: int, n_rows: int | None, *, enabled: bool = True
) -> Iterator[Callable[[int, int], None]]:
    """Show how many parts of a table are done, the speed in rows and the time that remains.

    Parameters
    ----------
    description : str
        Text before the bar.
    n_parts : int
        Parts in all.
    n_rows : int or None
        Rows in all; if they are unknown the bar counts parts.
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
    from rich.progress import ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Speed(ProgressColumn):
        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text("" if not speed or n_rows is None else f"{speed:,.0f} rows/s")

    columns = (
        TextColumn("{task.fields[parts]}/" + f"{n_parts} parts"),
        Speed(),
        TimeRemainingColumn(),
    )
    with _bar(columns, enabled=enabled) as bar:
        if bar is None:
            yield lambda rows, parts: None
            return
        task = bar.add_task(description, total=n_parts if n_rows is None else n_rows, parts=0)

        # workers finish in any order, so progress comes as increments
        def advance(rows: int, parts: int) -> None:
            done = bar.tasks[0].fields["parts"] + parts
            bar.update(task, advance=parts if n_rows is None else rows, parts=done)

        yield advance


@contextmanager
def waiting(description: str, *, enabled: bool = True) -> Iterator[None]:
    """Show a spinner while the block runs, if standard error is a terminal.

    Examples
    --------
    >>> with waiting("searching", enabled=False):
    ...     pass
    """
    from rich.console import Console

    console = Console(stderr=True)
    if not enabled or not console.is_terminal:
        yield
        return
    with console.status(description):
        yield


@contextmanager
def _bar(columns: Any, *, enabled: bool) -> Iterator[Progress | None]:
    """Yield a bar with a description before it and columns after it, or None without a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    # on standard error: standard output may be a table or JSON for another program
    console = Console(stderr=True)
    if not enabled or not console.is_terminal:
        yield None
        return
    with Progress(
        TextColumn("{task.description}"), BarColumn(), *columns, console=console, transient=True
    ) as bar:
        yield bar
