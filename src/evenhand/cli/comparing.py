"""Subcommand `compare`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evenhand.cli import arguments
from evenhand.cli.messages import Verdict, inform
from evenhand.cli.options import check_apart
from evenhand.cli.reports import check_tables, show_summary, write_tables


def compare(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="JSON of the audit before the change")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="JSON of the audit after the change")],
    confidence: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            rich_help_panel=arguments.GATE,
            help="confidence of the intervals of changes",
        ),
    ] = 0.95,
    fail_if_worse: Annotated[
        bool,
        typer.Option(
            "--fail-if-worse",
            rich_help_panel=arguments.GATE,
            help="exit with code 1 if a group got significantly worse by more than the tolerance",
        ),
    ] = False,
    out: arguments.Out = None,
    tables: arguments.Tables = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Compare two audits of the same rows: which groups got better or worse.

    Changes have paired intervals if both audits recorded values of each row.
    """
    from evenhand import audits
    from evenhand._validate import InputError, check_fraction
    from evenhand.tables import check_writable

    check_fraction("--confidence", confidence)
    if out is not None:
        check_apart(out, {"the old audit": old, "the new audit": new})
        check_writable(out, (".html", ".json"))
    check_tables(tables, {"the old audit": old, "the new audit": new})
    found = audits.compare(old, new, confidence=confidence)
    if out is not None:
        (found.to_html if out.suffix.lower() == ".html" else found.to_json)(out)
        inform(f"comparison written to {out}")
    show_summary(found, as_json=as_json)
    write_tables(found, tables)
    if fail_if_worse:
        if not found.is_paired:
            raise InputError(f"--fail-if-worse needs paired intervals; {found.notes[0]}")
        if found.is_worse:
            inform("failed: a group got significantly worse by more than the tolerance")
        raise Verdict(1 if found.is_worse else 0)
