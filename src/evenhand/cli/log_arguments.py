"""Arguments of commands that read or write a decision log, with their help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand._validate import InputError, bad_input, short

if TYPE_CHECKING:
    from evenhand.draws import KeyedDraws
    from evenhand.service import DecisionLog

LOG = "Decision log"
"""Panel of options in help pages."""

Log = Annotated[
    str,
    typer.Argument(
        metavar="LOG",
        help="decision log: a .sqlite file, or a URL such as postgresql://USER@HOST/DATABASE",
    ),
]
LogContext = Annotated[
    str | None,
    typer.Option(
        "--context",
        metavar="NAME",
        rich_help_panel=LOG,
        help="context of the forecasts in the log",
    ),
]


def opened_log(where: str) -> DecisionLog:
    """Return an existing decision log."""
    from evenhand.service import open_log

    return open_log(where, create=False)


def draws_of(key_file: Path | None, context: str) -> KeyedDraws | None:
    """Return the draws of a context; None without a key."""
    from evenhand.cli.keys import read_key
    from evenhand.draws import KeyedDraws

    return None if key_file is None else KeyedDraws(read_key(key_file), context)


def anchor_of(text: str | None) -> Any:
    """Return the last entry that an option NUMBER:SHA256 names; None without one."""
    from evenhand.service import Head

    if text is None:
        return None
    number, _, sha256 = text.partition(":")
    if not number.isdecimal() or len(sha256) != 64:
        rule = "be the number and hash of an entry, NUMBER:SHA256"
        raise bad_input("--anchor", rule, short(text), "copy it from an earlier replay")
    return Head(int(number), sha256)


def refuse_workers(workers: int | None, scheduler: str | None) -> None:
    """Refuse options of several processes, whose forecasts would not be logged in order."""
    for option, value in (("--workers", workers), ("--scheduler", scheduler)):
        if value is not None:
            raise InputError(
                f"{option} cannot be used with --log, to which forecasts are added in the order of"
                " the table; leave it out"
            )
