"""Subcommands `audit` and `compare`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NoReturn

import typer

from evenhand._validate import InputError
from evenhand.cli.checks import check_out, described, refuse_without_effect
from evenhand.cli.options import GroupColumns, Large, Rows, Times, with_options
from evenhand.cli.output import Decision, command_line, inform, show, show_text
from evenhand.cli.rooms import audits
from evenhand.cli.rows import (
    Given,
    Request,
    audit_in_parts,
    audited_rows,
    columns_like_ids,
    read_rows,
)


def give(
    found: audits.Audit | audits.Comparison,
    noun: str,
    out: Path | None,
    tables: Path | None,
    *,
    as_json: bool,
    full: bool,
) -> None:
    """Write an audit or a comparison as a page, Markdown or JSON, print it, and write its tables.

    `full` prints all findings.
    """
    # file and text come first, so that a failed gate leaves its report
    if out is not None:
        writers = {".html": "to_html", ".md": "to_markdown"}
        getattr(found, writers.get(out.suffix.lower(), "to_json"))(out)
        inform(f"{noun} written to {out}")
    if as_json:
        show(found.to_json())
    else:
        show_text(found.summary(full=full))
    # the result is printed even if the folder of tables turns out to contain other files
    if tables is not None:
        inform(f"{len(found.to_csv(tables))} tables written to {tables}")


def judge(found: audits.Audit) -> NoReturn:
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
    raise Decision(1 if failed else 0)


@with_options
def audit(
    context: typer.Context,
    table: Path,
    rows: Rows,
    forecast: str,
    times: Times,
    grouping: GroupColumns,
    large: Large,
    largest_weight: float | None = None,
    tolerance: float | None = None,
    fail_if: list[str] | None = None,
    confidence: float = 0.95,
    out: Path | None = None,
    full: bool = False,
    about: list[str] | None = None,
    as_json: bool = False,
    tables: Path | None = None,
    seed: int = 0,
) -> None:
    """For whom are forecasts wrong? Rows must be new to the model.

    Decision
    --------
    tolerance : SHARE
        error that is no problem; 0.02 by default, less for yes/no outcomes with low rates
    fail_if : CONDITION
        exit with code 1 if problem, too-few-rows, not-proven or "certified_group_error(0.2) >
        0.25"; may be repeated
    confidence : SHARE, rare
        confidence of bounds

    Output
    ------
    out : FILE
        file to write: an .html page, .md, or .json
    full
        print all findings and tables
    about : KEY=VALUE
        population=..., period=..., unit=... (of outcomes) or any other key, for the report; may be
        repeated

    Examples
    --------
    evenhand audit test.csv --target loss --forecast mean=mu,std=sigma
    evenhand audit loans.csv --target bad --forecast probability=p --groups sex,job
    evenhand audit test.csv --target loss --forecast model --fail-if problem
    """
    # options are checked before a table is read, which may take minutes
    asked: dict[str, Any] = {
        "search": audits.Search(tolerance=tolerance, confidence=confidence),
        "random_state": seed,
        "about": described(about or []),
    }
    conditions = [audits.parse_condition(text) for text in fail_if or []]
    folder = Path(forecast) if Path(forecast).exists() else None
    check_out(out, {"the table": table, "the model": folder}, (".md",), tables)
    given, times = Given.of(forecast).with_times(times)
    asked["name"] = given.name(table)
    request = Request(given, table, rows, times, grouping, largest_weight)
    if not table.is_dir():
        refuse_without_effect(context, ("workers", "skip_bad_parts"), "on one file, only on parts")
        read = read_rows(request)
        found = audited_rows(read, asked).audit
        if read.searched is not None and grouping.features is None:
            # ids that are text are not searched, as they have too many values
            for name, why in columns_like_ids(read.searched.select_dtypes("number")):
                inform(
                    f"warning: {read.source}: column {name!r} {why} and is searched like a feature;"
                    " if it identifies people, name it with --id"
                )
    else:
        levels = sorted({c.arguments[0] for c in conditions if c.quantity == "coverage"})
        found = audit_in_parts(request, asked, levels, large)
    found = audits.with_sources(found, command=command_line(), model=given.folder, data=table)
    found = audits.with_conditions(found, conditions)
    give(found, "audit", out, tables, as_json=as_json, full=full)
    if conditions:
        judge(found)


NO_TARGET = Rows(target="")
"""Two audits are compared without the column of their outcomes."""


@with_options
def compare(
    context: typer.Context,
    paths: list[Path],
    *,
    rows: Rows = NO_TARGET,
    times: Times,
    grouping: GroupColumns,
    forecast: list[str] | None = None,
    confidence: float = 0.95,
    fail_if_worse: bool = False,
    out: Path | None = None,
    full: bool = False,
    as_json: bool = False,
    tables: Path | None = None,
) -> None:
    """Compare two forecasts of the same rows, or two audits: which groups got better or worse.

    Two forecasts in a table have paired intervals. Two audits are compared by their estimates.

    Arguments
    ---------
    paths : TABLE | OLD NEW
        a table, or the JSON of two audits, which have no paired intervals

    Rows
    ----
    forecast : FORECAST
        for a table: the old and the new forecasts, as in audit

    Decision
    --------
    confidence : SHARE, rare
        confidence of intervals
    fail_if_worse
        exit with code 1 if a group got worse by more than the tolerance

    Output
    ------
    out : FILE
        file to write: an .html page, or .json
    full
        print all groups and scores

    Examples
    --------
    evenhand compare test.csv --target loss --forecast mean=mu,std=sigma --forecast repaired
    evenhand compare june.json july.json --out compare.html
    """
    search = audits.Search(confidence=confidence)
    forecasts = forecast or []
    counts = (len(paths), len(forecasts), rows.target != "")
    if counts not in ((1, 2, True), (2, 0, False)):
        raise InputError(
            "give a table with --target and two --forecast, or the JSON of two audits; other"
            " numbers of them cannot be compared"
        )
    if not forecasts:
        of_tables = [one.name for group in (Rows, Times, GroupColumns) for one in fields(group)]
        refuse_without_effect(context, [*of_tables, "confidence"], "with two audits")
    names = ["the table"] if forecasts else ["the old audit", "the new audit"]
    check_out(out, dict(zip(names, paths, strict=True)), folder=tables)
    if forecasts:
        given = [Given.of(text) for text in forecasts]
        # events and horizon may be named with one of the forecasts
        for one in given:
            _, times = one.with_times(times)
        given = [one.with_times(times)[0] for one in given]
        requests = [Request(one, paths[0], rows, times, grouping) for one in given]
        labels = [
            text if one.folder is None else one.folder.name
            for one, text in zip(given, forecasts, strict=True)
        ]
        labels = forecasts if labels[0] == labels[1] else labels
        made = compared_rows(requests, labels, search)
    else:
        made = audits.compare(paths[0], paths[1])
    give(made, "comparison", out, tables, as_json=as_json, full=full)
    if fail_if_worse:
        if not made.is_paired:
            raise InputError(f"--fail-if-worse needs paired intervals; {made.notes[0]}")
        if made.is_worse:
            inform("failed: a group got significantly worse by more than the tolerance")
        raise Decision(1 if made.is_worse else 0)


def compared_rows(
    requests: Sequence[Request], names: Sequence[str], search: audits.Search
) -> audits.Comparison:
    """Compare two forecasts of a table, in groups of columns that neither of them uses."""
    before, after = (read_rows(request) for request in requests)
    shared = before.searched
    if shared is not None:
        others = () if after.searched is None else after.searched.columns
        shared = shared[[name for name in shared.columns if name in others]]
        shared = shared if shared.shape[1] else None
    sides = []
    for read, name in zip((before, after), names, strict=True):
        asked = {"name": name, "search": search, "random_state": 0}
        side = audited_rows(replace(read, groups=before.groups, searched=shared), asked)
        model, data = read.request.given.folder, read.request.table
        found = audits.with_sources(side.audit, command=command_line(), model=model, data=data)
        sides.append(side._replace(audit=found))
    return audits.paired(sides[0], sides[1])
