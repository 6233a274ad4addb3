"""Output of audits: report, text or JSON, and the exit code of a gate."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from evenhand._validate import InputError
from evenhand.cli.messages import Verdict, inform, show, show_text
from evenhand.cli.options import check_apart

if TYPE_CHECKING:
    from evenhand.audits import Audit, Comparison, Condition


def show_summary(found: Audit | Comparison, *, as_json: bool, **options: bool) -> None:
    """Print an audit or a comparison as text, with options of `summary`, or as JSON."""
    if as_json:
        show(found.to_json())
    else:
        show_text(found.summary(**options))


def check_tables(folder: Path | None, inputs: Mapping[str, Path | None]) -> None:
    """Refuse a folder of tables that cannot be written, before long work."""
    if folder is None:
        return
    check_apart(folder, inputs, option="--tables")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"--tables {folder} is a file; name a new or empty folder")
    parent = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"--tables {folder}: {parent} is not a writable folder; name another")


def write_tables(found: Audit | Comparison, folder: Path | None) -> None:
    """Write the tables of a result as csv files."""
    if folder is not None:
        files = found.to_csv(folder)
        inform(f"{len(files)} tables written to {folder}")


def report(
    found: Audit,
    conditions: list[Condition],
    out: Path | None,
    as_json: bool,
    tables: Path | None = None,
    *,
    full: bool = False,
) -> None:
    """Write and print an audit with the conditions of its gate; `full` prints all findings.

    Raises Verdict, with exit code 1 if a condition is true, or InputError if a condition cannot be
    evaluated. The report is written in either case.
    """
    from evenhand.audits import with_conditions

    found = with_conditions(found, conditions)
    # file and text come first, so that a failed gate leaves its report
    if out is not None:
        (found.to_html if out.suffix.lower() == ".html" else found.to_json)(out)
        inform(f"audit written to {out}")
    # the result is printed even if the folder of tables turns out to contain other files
    show_summary(found, as_json=as_json, full=full)
    write_tables(found, tables)
    if conditions:
        judge(found)


def judge(found: Audit) -> NoReturn:
    """Print conditions that are true and conditions that cannot be evaluated, and exit."""
    failed = [one for one in found.conditions if one.is_true]
    refusals = [one.reason for one in found.conditions if one.reason]
    for one in failed:
        # with all digits: a rounded value could equal the limit that it exceeds
        value = "" if one.text == one.quantity else f" (it is {one.value:.10g})"
        inform(f"failed: the condition of --fail-if is true: {one.text}{value}")
    for refusal in refusals[:-1]:
        inform(f"error: {refusal}")
    # a condition that cannot be evaluated is bad input, not a passed gate
    if refusals:
        raise InputError(refusals[-1])
    raise Verdict(1 if failed else 0)
