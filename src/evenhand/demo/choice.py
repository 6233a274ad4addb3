"""Choice of a demonstration by the name of its table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from evenhand.demo.diabetes import run_diabetes
from evenhand.demo.doses import run_doses
from evenhand.demo.result import Finished

TABLES = ("doses", "diabetes")
"""Tables of the demonstrations, the default first."""


def run(
    out: Path,
    seed: int,
    inform: Callable[[str], None],
    *,
    table: str = "doses",
    command: str | None = None,
    width: int = 80,
) -> Finished:
    """Run a demonstration and return its result.

    Parameters
    ----------
    out : Path
        Folder to write to.
    seed : int
        Seed of tables, training and draws.
    inform : callable
        Function that prints progress messages.
    table : {"doses", "diabetes"}, default "doses"
        The generated table, or the small real one.
    command : str, optional
        The command line, for the reports.
    width : int, default 80
        Most characters of a printed line.
    """
    from evenhand._validate import check_choice
    from evenhand.store import check_folder

    check_choice("table", table, TABLES)
    # checked before anything is computed
    check_folder(out)
    demonstrate = run_doses if table == "doses" else run_diabetes
    return demonstrate(out, seed, inform, command, width)
