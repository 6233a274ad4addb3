"""Subcommand `audit`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from evenhand._format import option_name
from evenhand._validate import InputError
from evenhand.cli import arguments
from evenhand.cli.options import check_apart, described
from evenhand.cli.output import Verdict, command_line, inform, show, show_text
from evenhand.cli.rows import (
    Request,
    TimeColumns,
    audit_in_memory,
    audit_in_parts,
    column_subject,
    refuse_without_forecasts,
)

if TYPE_CHECKING:
    from evenhand.audits import Audit, Comparison, Condition
    from evenhand.forecast_columns import ForecastColumns
    from evenhand.scale import ModelSubject


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


def audit(
    options: typer.Context,
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="[MODEL] TABLE",
            help="model folder written by fit, and the table; the table alone if it contains the"
            " forecasts of another model",
        ),
    ],
    target: arguments.Target,
    id_column: arguments.PersonId = None,
    person: arguments.Person = None,
    weight: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN", rich_help_panel=arguments.ROWS, help="column with sampling weights"
        ),
    ] = None,
    largest_weight: Annotated[
        float | None,
        typer.Option(
            metavar="NUMBER",
            rich_help_panel=arguments.ROWS,
            help="largest weight of the sampling design, with which groups are found by search and"
            " guarantees are given for weighted rows",
        ),
    ] = None,
    mean: arguments.Mean = None,
    std: arguments.Std = None,
    quantiles: arguments.Quantiles = None,
    samples: arguments.Samples = None,
    sort_quantiles: arguments.SortQuantiles = False,
    survival: arguments.Survival = None,
    probability: arguments.Probability = None,
    pmf: arguments.Pmf = None,
    chance_of_zero: arguments.ChanceOfZero = None,
    outcome: arguments.ForecastOutcome = None,
    drop_missing: arguments.DropMissing = False,
    event: arguments.Event = None,
    horizon: arguments.Horizon = None,
    entered: arguments.Entered = None,
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            rich_help_panel=arguments.GROUPS,
            help="columns that define groups, known before the outcome, comma-separated",
        ),
    ] = None,
    group_probabilities: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            rich_help_panel=arguments.GROUPS,
            help="columns with each row's probability of membership in a group, comma-separated;"
            " one group of that name each",
        ),
    ] = None,
    features: arguments.Features = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION",
            rich_help_panel=arguments.GATE,
            help="exit with code 1 if this condition is true: problem, too-few-rows, not-proven,"
            ' "groups_beyond_tolerance > 0", "certified_group_error(0.2) > 0.25" for forecasts with'
            ' a draw, or "certified_event_rate(0.05, 0.2) > 0.1" for 0/1 outcomes; may be repeated',
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            rich_help_panel=arguments.GATE,
            help="error above which a significant finding is a problem; by default 0.02 (2 points),"
            " for yes/no the lesser of 2 points and a fifth of the rate",
        ),
    ] = None,
    confidence: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            rich_help_panel=arguments.GATE,
            help="confidence of the certificate and other bounds",
        ),
    ] = 0.95,
    about: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            rich_help_panel=arguments.OUTPUT,
            help="describe the audit in its report: population=..., period=..., author=...,"
            " purpose=..., unit=... (of the outcome) or any other key; may be repeated",
        ),
    ] = None,
    out: arguments.Out = None,
    tables: arguments.Tables = None,
    no_rows: Annotated[
        bool,
        typer.Option(
            "--no-rows",
            rich_help_panel=arguments.OUTPUT,
            help="leave the values of single rows out of the JSON, without which evenhand compare"
            " has no paired intervals, and all ids out of the JSON and the tables",
        ),
    ] = False,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            rich_help_panel=arguments.OUTPUT,
            help="print all findings and tables, not a short summary",
        ),
    ] = False,
    as_json: arguments.AsJson = False,
    sample_size: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            rich_help_panel=arguments.LARGE,
            help="for a folder of parts: number of random rows that are searched and scored;"
            " 100,000 by default",
        ),
    ] = None,
    workers: arguments.Workers = None,
    scheduler: arguments.Scheduler = None,
    skip_bad_parts: arguments.SkipBadParts = False,
    seed: arguments.FixedSeed = 0,
) -> None:
    """Audit the calibration of a model, or of another model's forecasts, on held-out rows."""
    from evenhand import audits
    from evenhand._validate import check_fraction
    from evenhand.tables import check_writable

    arguments.check_seed(seed)
    times = TimeColumns.of(options)
    check_fraction("--confidence", confidence)
    if tolerance is not None:
        check_fraction("--tolerance", tolerance, low_open=False, high_open=False)
    if largest_weight is not None and weight is None:
        raise InputError("--largest-weight needs the weights of the rows; give --weight")
    # options are checked before a table is read, which may take minutes
    conditions = [audits.parse_condition(text) for text in fail_if or []]
    description = described("--about", about)
    if len(paths) > 2:
        raise InputError(f"give a model folder and a table, or a table alone, not {paths[2]} too")
    source, rows = paths[0], paths[-1]
    model = source if len(paths) == 2 else None
    inputs = {"the table": rows, "the model": model}
    if out is not None:
        check_apart(out, inputs)
        check_writable(out, (".html", ".json"))
    check_tables(tables, inputs)
    columns = column_subject(options)
    subject = _subject(source, columns, has_model=model is not None)
    request = Request(
        subject,
        rows,
        target,
        source.name,
        groups=groups,
        features=features,
        id_column=id_column,
        person=person,
        conditions=conditions,
        confidence=confidence,
        seed=seed,
        tolerance=tolerance,
        weight=weight,
        largest_weight=largest_weight,
        group_probabilities=group_probabilities,
        about=description,
        times=times,
        drop_missing=drop_missing,
    )
    in_parts = {"--sample-size": sample_size is not None, "--skip-bad-parts": skip_bad_parts}
    if rows.is_dir() or scheduler is not None or workers is not None:
        found = audit_in_parts(
            request, scheduler, workers, sample_size=sample_size, skip_bad=skip_bad_parts
        )
    elif any(in_parts.values()):
        option = next(option for option, is_given in in_parts.items() if is_given)
        raise InputError(
            f"{option} applies only to a folder of parts, but {rows} is a file; leave it out"
        )
    else:
        found = audit_in_memory(request)
    found = audits.with_sources(found, command=command_line(), model=model, data=rows)
    if no_rows:
        found = audits.without_rows(found)
    report(found, conditions, out, as_json, tables, full=full)


def _subject(
    source: Path, columns: ForecastColumns, *, has_model: bool
) -> ModelSubject | ForecastColumns:
    """Return the audited forecaster: the model in a folder, or columns of the table."""
    from evenhand import scale

    if not has_model:
        remedy = "give a model folder before the table, or columns of the table"
        refuse_without_forecasts(columns, f"{source}: no forecasts to audit", remedy)
        return columns
    given = [*columns.named, *(["outcome"] if columns.outcome is not None else [])]
    if given:
        raise InputError(f"give a model folder or {option_name(given[0])}, not both")
    # imported here, as models need scikit-learn and columns of a table do not
    from evenhand import store

    return scale.as_subject(store.load(source))


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
