"""Subcommand `recalibrate`: maps for another model's forecasts, by group, and their application."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand._format import and_more, count
from evenhand._validate import InputError, about, bad_input
from evenhand.cli import arguments
from evenhand.cli.options import (
    check_apart,
    listed_names,
    own_folder,
    refuse_without_effect,
    warn_of_replacement,
)
from evenhand.cli.output import inform, show_result
from evenhand.cli.rows import (
    Request,
    TimeColumns,
    chosen_columns,
    column_subject,
    read_rows,
    refuse_without_forecasts,
)
from evenhand.cli.serving import parse_levels, serve

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evenhand.forecast_columns import ForecastColumns
    from evenhand.forecasters import RecalibratedRegressor
    from evenhand.tables import GroupRule, Parts

SCHEMA = "evenhand.recalibration/1"
"""Layout of the JSON that is printed with --target."""

ESTIMATE = "With --target: estimate maps"
APPLY = "Without --target: apply maps to new rows"
"""Panels of options."""

FITTING = ("drop_missing", "event", "by", "group", "seed")
SERVING = ("id_column", "maps", "keep", "levels", "skip_bad_parts")
"""Parameters that have an effect only with, or only without, --target."""


def recalibrate(
    options: typer.Context,
    table: arguments.Table,
    out: arguments.OutByTarget,
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
    target: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            rich_help_panel=ESTIMATE,
            help="column with the outcome: estimate maps and write them to a folder",
        ),
    ] = None,
    drop_missing: arguments.DropMissing = False,
    event: arguments.Event = None,
    horizon: arguments.Horizon = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            rich_help_panel=ESTIMATE,
            help="columns that define groups with separate maps, comma-separated; several columns"
            " define one group per combination",
        ),
    ] = None,
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            rich_help_panel=ESTIMATE,
            help='a group that may overlap others, as "name=rule" or as a rule such as'
            ' "bmi > 0.03 and sex = 2" or, of the forecast itself, "predicted mean > 40"; may be'
            " repeated",
        ),
    ] = None,
    seed: arguments.FixedSeed = 0,
    maps: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", rich_help_panel=APPLY, help="folder written with --target"),
    ] = None,
    id_column: arguments.PersonId = None,
    keep: arguments.Keep = None,
    levels: arguments.Levels = arguments.DEFAULT_LEVELS,
    skip_bad_parts: arguments.SkipBadParts = False,
    as_json: arguments.AsJson = False,
) -> None:
    """Recalibrate forecasts of another model, given as columns of a table, by group.

    With --target, maps are estimated from the outcomes of rows that the model was not trained on,
    and a check on held-out rows reports for each group whether they help.

    With --id and --maps, recalibrated forecasts of other rows are written; with --pmf also the
    probability of each value, in columns such as p1 and p2, which audit --pmf p reads.
    """
    subject = column_subject(options)
    refuse_without_forecasts(subject, f"{table}: no forecasts to recalibrate")
    if target is not None:
        refuse_without_effect(options, SERVING, "with --target, which writes no forecasts")
        arguments.check_seed(seed)
        if by is not None and group:
            raise InputError("give --by or --group, not both; write the columns of --by as rules")
        times = TimeColumns.of(options)
        request = Request(
            subject, table, target, table.name, seed=seed, times=times, drop_missing=drop_missing
        )
        _estimate(subject, request, out, by, group or [], as_json=as_json)
        return
    refuse_without_effect(options, FITTING, "without --target")
    if id_column is None or maps is None:
        raise InputError(
            f"give --target to estimate maps for the forecasts of {table}, or --id and --maps to"
            " recalibrate them"
        )
    if subject.probability is not None:
        reason = "with --probability, as probabilities of a 0/1 outcome are written"
        refuse_without_effect(options, ("levels",), reason)
    check_apart(out, {"the table": table, "the maps": maps})
    asked = {
        "id_column": id_column,
        "key": None,
        "levels": parse_levels(levels),
        "keep": listed_names("--keep", keep),
        "skip_bad": skip_bad_parts,
        "verbose": True,
    }
    _apply(subject, table, out, maps, asked, as_json=as_json)


def _estimate(
    subject: ForecastColumns,
    request: Request,
    out: Path,
    by: str | None,
    texts: Sequence[str],
    *,
    as_json: bool,
) -> None:
    """Estimate maps by group, print their check and write them."""
    from evenhand import store
    from evenhand.calibration import Outcomes
    from evenhand.forecasters import RecalibratedRegressor

    table = request.rows
    folder = own_folder(out, table, store.MAPS_FOLDER)
    rows = read_rows(request)
    present = list(map(str, rows.data.columns))
    names = subject.columns(present, table.name)
    outcome = {request.target: "target"} | request.times.outcome
    groups = chosen_columns("--by", by, outcome, present, table.name)
    rules = dict(_rule(text, present, outcome, table.name) for text in texts)
    of_rules = [column for rule in rules.values() for column in rule.columns]
    # values of the forecast itself are no columns of the table
    used = [*names, *groups, *(column for column in of_rules if column in present)]
    model = RecalibratedRegressor(subject, by=rules or groups or None, random_state=request.seed)
    warn_of_replacement(folder)
    with about(rows.source):
        model.fit(rows.data[list(dict.fromkeys(used))], Outcomes(rows.y, **rows.times))
    store.save(model, folder)
    checked = model.check_.astype(object).where(model.check_.notna(), None).to_dict("records")
    values = {
        "schema": SCHEMA,
        "out": str(out),
        "outcome": str(model.outcome_kind_),
        "n_rows": len(rows.y),
        "check": checked,
    }
    show_result(values, model.summary(full=True), as_json)
    inform(f"maps estimated from {count(len(rows.y), 'row')}; written to {out}")
    option = shlex.quote(str(out))
    inform(f"to recalibrate new rows, use --maps {option} with --id")


def _rule(
    text: str, present: Sequence[str], outcome: Mapping[str, str], source: str
) -> tuple[str, GroupRule]:
    """Return the name and the rule of a group."""
    from evenhand.tables import OWN_VALUES, GroupRule

    columns = list(dict.fromkeys([*present, *OWN_VALUES]))
    try:
        rule = GroupRule.parse(text, columns, source=source)
        name = text.strip()
    except InputError as error:
        name, _, rest = (part.strip() for part in text.partition("="))
        if not name or not rest or name in columns:
            raise InputError(f"--group: {error}") from error
        try:
            rule = GroupRule.parse(rest, columns, source=source)
        except InputError as wrong:
            raise InputError(f"--group {name!r}: {wrong}") from wrong
    for column, role in outcome.items():
        if column in rule.columns:
            reason = "groups defined by the outcome are miscalibrated under any model"
            raise InputError(f"--group {name!r} uses the {role} {column!r}: {reason}; leave it out")
    return name, rule


def _apply(
    subject: ForecastColumns,
    table: Path,
    out: Path,
    maps: Path,
    asked: dict[str, Any],
    *,
    as_json: bool,
) -> None:
    """Write recalibrated forecasts; `asked` are options of `forecast_parts`."""
    from evenhand import scale, store, tables

    if store.folder_kind(maps) != store.MAPS_FOLDER:
        what = type(store.load(maps)).__name__
        remedy = "write one with evenhand recalibrate --target"
        raise bad_input("--maps", "be a folder of maps", f"a folder with a {what}", remedy)
    model = store.load(maps)
    if subject.horizon is None:
        subject = replace(subject, horizon=model.horizon_)
    _check_horizon(maps, model, subject)
    parts = tables.open_parts(table, skip_bad=asked["skip_bad"])
    _check_times(maps, model, subject, parts)
    known = model.estimator_.by_option(model.feature_names_in_, str(maps))
    given = subject.by_option(parts.columns, parts.source)
    names = [name for listed in given.values() for name in listed]
    is_same = {option: set(listed) for option, listed in given.items()} == {
        option: set(listed) for option, listed in known.items()
    }
    if not is_same or subject.sort_quantiles != model.estimator_.sort_quantiles:
        listed = ", ".join(names[:5])
        raise InputError(
            f"--maps {maps} are for other columns of forecasts than {listed}; name the columns that"
            " the maps were estimated with, or estimate maps for these with --target"
        )
    kind = subject.outcome_kind(parts.source)
    if kind is not model.outcome_kind_:
        raise InputError(
            f"--maps {maps} are for forecasts of the kind {str(model.outcome_kind_)!r}, but"
            f" {', '.join(names[:5])} make forecasts of the kind {str(kind)!r}; give the options"
            " that the maps were estimated with, or estimate maps for these with --target"
        )
    served = scale.ModelSubject(model)
    serve(served, parts, out, asked, None, None, "recalibrated forecast", as_json)


def _check_horizon(maps: Path, model: RecalibratedRegressor, subject: ForecastColumns) -> None:
    """Refuse forecasts up to another horizon than that of the maps."""
    if subject.horizon is None or subject.horizon == model.horizon_:
        return
    known = "no horizon" if model.horizon_ is None else f"the horizon {model.horizon_:.15g}"
    remedy = "leave --horizon out, or estimate maps for it with --target"
    raise bad_input(
        "--maps", f"be for --horizon {subject.horizon:.15g}", f"maps for {known}", remedy
    )


def _check_times(
    maps: Path, model: RecalibratedRegressor, subject: ForecastColumns, parts: Parts
) -> None:
    """Refuse survival probabilities at other times than those of the maps."""
    given = subject.times(parts.columns, parts.source) or []
    # everybody survives time 0, which is no part of a curve
    times = [time for time in given if time > 0]
    # maps of other forecasts than curves have no times
    if not times or not model.curve_times_ or times == list(model.curve_times_):
        return
    known, other = (
        and_more([f"{time:.15g}" for time in some], 5) for some in (model.curve_times_, times)
    )
    raise InputError(
        f"--maps {maps} are for survival probabilities at the times {known}, not at {other}; name"
        " the times that the maps were estimated with, or estimate maps for these with --target"
    )
