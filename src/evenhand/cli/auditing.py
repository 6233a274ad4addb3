"""Command that audits: `audit`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand._validate import InputError, bad_input
from evenhand.cli.arguments import Scheduler, SkipBadParts, Target, Workers, check_seed
from evenhand.cli.audit_request import Request, audit_in_memory, audit_in_parts
from evenhand.cli.options import check_apart
from evenhand.cli.reports import command_line, report

if TYPE_CHECKING:
    from evenhand.scale import ColumnSubject, ModelSubject


def audit(
    source: Annotated[
        Path, typer.Argument(metavar="[MODEL] TABLE", help="model folder, or the table alone")
    ],
    target: Target,
    table: Annotated[
        Path | None, typer.Argument(show_default=False, metavar="", hidden=True)
    ] = None,
    mean: Annotated[
        str | None, typer.Option(help="without a model: column with another model's means")
    ] = None,
    std: Annotated[
        str | None, typer.Option(help="without a model: column with its standard deviations")
    ] = None,
    quantiles: Annotated[
        str | None,
        typer.Option(
            help="without a model: columns with quantiles, such as q0.05,q0.5,q0.95, or just q"
        ),
    ] = None,
    samples: Annotated[
        str | None,
        typer.Option(help="without a model: columns with samples, or what their names begin with"),
    ] = None,
    sort_quantiles: Annotated[
        bool,
        typer.Option(
            "--sort-quantiles",
            help="sort the quantiles of rows where they cross, instead of refusing",
        ),
    ] = False,
    groups: Annotated[
        str | None,
        typer.Option(
            help="columns that name groups, known before the outcome, with commas between"
        ),
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(
            help=(
                "columns that groups are searched in, known before the outcome; by default the"
                " model's, or all others"
            )
        ),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option("--id", help="column that names each person; repeated ids are refused"),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="column that names people who have several rows; one row of each is audited"
        ),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                'exit with code 1 if this holds, such as "certified_group_error(0.2) > 0.3"; may be'
                " repeated"
            )
        ),
    ] = None,
    confidence: Annotated[float, typer.Option(help="of what is proven")] = 0.95,
    out: Annotated[
        Path | None, typer.Option(help="report.html or audit.json file to write")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print JSON instead of text")] = False,
    seed: Annotated[int, typer.Option(help="of the draws, the bands and the searches")] = 0,
    sample_size: Annotated[
        int | None,
        typer.Option(
            help=(
                "of a folder of parts: rows chosen at random that are searched and scored; 100,000"
                " by default"
            )
        ),
    ] = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    skip_bad_parts: SkipBadParts = False,
) -> None:
    """Audit a model on rows that it was not trained on, or the forecasts of another model."""
    from evenhand import audits, scale, tables
    from evenhand._validate import check_fraction

    check_seed(seed)
    check_fraction("--confidence", confidence)
    # all options are checked before any table is read: large ones take minutes
    conditions = [audits.parse_condition(text) for text in fail_if or []]
    # typer has no optional first argument: a single path is the table, not the model
    rows = source if table is None else table
    if out is not None:
        check_apart(out, {"the table": rows, "the model": None if table is None else source})
        tables.check_writable(out, (".html", ".json"))
    columns = scale.ColumnSubject(mean, std, quantiles, samples, sort_quantiles)
    subject = _subject(source, columns, has_model=table is not None)
    request = Request(
        subject,
        rows,
        target,
        groups,
        features,
        id_column,
        cluster,
        conditions,
        confidence,
        seed,
        source.name,
    )
    in_parts = {"--sample-size": sample_size is not None, "--skip-bad-parts": skip_bad_parts}
    if rows.is_dir() or scheduler is not None or workers is not None:
        found = audit_in_parts(
            request, scheduler, workers, sample_size=sample_size, skip_bad=skip_bad_parts
        )
    elif any(in_parts.values()):
        option = next(option for option, is_given in in_parts.items() if is_given)
        raise bad_input(option, "be left out here", rows, "it is for a folder of parts")
    else:
        found = audit_in_memory(request)
    found = audits.with_sources(
        found, command=command_line(), model=None if table is None else source, data=rows
    )
    report(found, conditions, out, as_json)


def _subject(
    source: Path, columns: ColumnSubject, *, has_model: bool
) -> ModelSubject | ColumnSubject:
    """Return what is audited: the model of a folder, or columns of the table."""
    from evenhand import scale, store

    given = list(columns.named)
    # an option without effect is refused: whoever gave it expects another result
    if columns.sort_quantiles and columns.quantiles is None:
        raise bad_input(
            "--sort-quantiles", "come with --quantiles", "none", "leave it out, or name the columns"
        )
    if not has_model and not given:
        remedy = "--mean and --std, --quantiles or --samples columns of the table"
        raise InputError(f"{source}: give a model folder before the table, or {remedy}")
    if has_model and given:
        raise InputError(
            f"--{given[0]} is for tables without a model; leave it out, or leave the model out"
        )
    return scale.ModelSubject(store.load(source)) if has_model else columns
