"""Subcommand `randomize`: certification and randomization of another model's forecasts."""

from __future__ import annotations

import shlex
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand._format import and_more, count
from evenhand._validate import InputError
from evenhand.cli import arguments
from evenhand.cli.certifying import (
    Training,
    audit_of_held,
    certificate_of,
    check_goal,
    check_target,
    choose,
    report_page,
)
from evenhand.cli.options import (
    check_apart,
    listed_names,
    own_folder,
    refuse_without_effect,
    warn_of_replacement,
)
from evenhand.cli.output import NOT_WORTH_IT, command_line, fail, inform, show_result
from evenhand.cli.rows import (
    Request,
    TimeColumns,
    column_subject,
    read_rows,
    refuse_without_forecasts,
)
from evenhand.cli.serving import serve, serving_options

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from evenhand.audits import Audit
    from evenhand.forecast_columns import ForecastColumns
    from evenhand.links import Link
    from evenhand.tables import Parts


# --- certificates of forecasts in columns: the link of a folder, if it is for the named columns


def certified_forecasts(
    folder: Path, subject: ForecastColumns, parts: Parts
) -> tuple[ForecastColumns, Link]:
    """Return columns of forecasts up to the certified horizon, if there is one, and their link.

    Raises InputError if the certificate is for other columns, or for another horizon.
    """
    from evenhand import store

    certified = store.read_forecast_certificate(folder)
    if subject.horizon is None:
        subject = replace(subject, horizon=certified.horizon)
    columns = tuple(subject.columns(parts.columns, parts.source))
    times = tuple(subject.times(parts.columns, parts.source) or ())
    given = (subject.kind, columns, times, subject.horizon)
    expected = (certified.kind, certified.columns, certified.times, certified.horizon)
    if _ordered(*given) != _ordered(*expected):
        raise InputError(
            f"--certificate {folder} is for {_text(*expected)}, not for {_text(*given)}; name the"
            " certified columns, or certify these with --target"
        )
    link = certified.link
    until = "" if certified.horizon is None else f", horizon {certified.horizon:g}"
    inform(f"certified by {folder}: {link.name} link, alpha = {link.alpha:.3g}{until}")
    return subject, link


def _ordered(kind: str, columns: Sequence[str], *rest: Any) -> tuple[Any, ...]:
    """Return columns in the order that has a meaning; that of samples has none."""
    if not kind.endswith("samples"):
        return kind, *columns, *rest
    first = 1 if kind.startswith("chance_of_zero_") else 0
    return kind, *columns[:first], *sorted(columns[first:]), *rest


def _text(kind: str, columns: Sequence[str], times: Sequence[float], horizon: float | None) -> str:
    named = [f"{time:.15g}={name}" for time, name in zip(times, columns, strict=False)] or columns
    tau = "" if horizon is None else f" up to the horizon {horizon:.15g}"
    return f"{kind} in {and_more(named, 5)}{tau}"


# --- subcommand `randomize`: certification and randomization of another model's forecasts

CERTIFY = "With --target: choose and certify a randomization"
SERVE = "Without --target: randomize new rows"
"""Panels of options."""

CERTIFYING = (
    "drop_missing",
    "event",
    "entered",
    "max_group_error",
    "max_wider",
    "max_price",
    "group_mass",
    "confidence",
    "features",
    "person",
    "seed",
)
SERVING = (
    "key_file",
    "certificate",
    "alpha",
    "context",
    "levels",
    "moments",
    "keep",
    "workers",
    "scheduler",
    "skip_bad_parts",
)
"""Parameters that have an effect only with, or only without, --target."""


def randomize(
    options: typer.Context,
    table: arguments.Table,
    out: arguments.OutByTarget,
    id_column: arguments.PersonId = None,
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
            rich_help_panel=CERTIFY,
            help="column with the outcome: choose and certify the least randomization, and write"
            " the certificate and a report instead of forecasts",
        ),
    ] = None,
    drop_missing: arguments.DropMissing = False,
    event: arguments.Event = None,
    horizon: arguments.Horizon = None,
    entered: arguments.Entered = None,
    max_group_error: arguments.MaxGroupError = None,
    max_wider: arguments.MaxWider = None,
    max_price: arguments.MaxPrice = None,
    group_mass: arguments.GroupMass = None,
    confidence: arguments.Confidence = None,
    features: arguments.Features = None,
    person: arguments.Person = None,
    seed: arguments.Seed = None,
    key_file: arguments.KeyFile = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            rich_help_panel=SERVE,
            help="folder written with --target; its link and alpha are used",
        ),
    ] = None,
    alpha: Annotated[
        float,
        typer.Option(
            metavar="ALPHA",
            rich_help_panel=SERVE,
            help="weight of sharpness, 0 < alpha <= 1; a smaller alpha means more randomization"
            " and smaller possible errors in every group",
        ),
    ] = arguments.DEFAULT_ALPHA,
    context: arguments.Context = "",
    link: arguments.Link = "entropic",
    levels: arguments.Levels = arguments.DEFAULT_LEVELS,
    moments: arguments.Moments = False,
    keep: arguments.Keep = None,
    as_json: arguments.AsJson = False,
    workers: arguments.Workers = None,
    scheduler: arguments.Scheduler = None,
    skip_bad_parts: arguments.SkipBadParts = False,
) -> None:
    """Randomize forecasts of another model, given as columns of a table.

    With --target, the outcomes choose and certify the least randomization that meets a target. If
    the forecasts are then worse than one that ignores every feature, nothing is written, and the
    exit code is 3.

    With --id and --key-file, randomized forecasts are written, with a certificate or with --alpha.

    Of amounts with zeros only the part above 0 is randomized, and group sizes are shares of the
    people whose outcome is above 0. Of times that may be cut off (--event, with --horizon) the time
    of the event is randomized, not whether it happens by the horizon. Probabilities of 0/1 outcomes
    are refused, and so are other forecasts of them: a draw cannot improve them.
    """
    from evenhand import tables
    from evenhand.distributions import NO_BINARY_RANDOMIZATION, OutcomeKind

    subject = column_subject(options)
    refuse_without_forecasts(subject, f"{table}: no forecasts to randomize")
    if subject.outcome_kind(table.name) is OutcomeKind.BINARY:
        raise InputError(f"{table.name}: {NO_BINARY_RANDOMIZATION}")
    if target is not None:
        refuse_without_effect(options, SERVING, "with --target, which writes no forecasts")
        goals = {"max_group_error": max_group_error, "max_wider": max_wider, "max_price": max_price}
        check_goal(None, goals, {})
        check_target(goals, group_mass, confidence)
        times = TimeColumns.of(options, is_certified=True)
        asked = goals | {"group_mass": group_mass, "confidence": confidence, "link": link}
        request = Request(
            subject,
            table,
            target,
            table.name,
            features=features,
            id_column=id_column,
            person=person,
            seed=arguments.seed_of(seed),
            times=times,
            drop_missing=drop_missing,
            is_randomized=True,
        )
        _certify(subject, request, asked, out, as_json)
        return
    refuse_without_effect(options, CERTIFYING, "without --target")
    if id_column is None or key_file is None:
        raise InputError(
            f"give --target to certify the forecasts of {table}, or --id and --key-file to"
            " randomize them"
        )
    if certificate is not None:
        refuse_without_effect(options, ("alpha", "link"), "with --certificate")
    inputs = {"the table": table, "the key file": key_file, "the certificate": certificate}
    check_apart(out, inputs)
    served = serving_options(id_column, key_file, context, levels, moments, skip_bad_parts)
    served["link"] = arguments.checked_link(link, alpha)
    served["keep"] = listed_names("--keep", keep)
    parts = tables.open_parts(table, skip_bad=skip_bad_parts)
    if certificate is not None:
        subject, served["link"] = certified_forecasts(certificate, subject, parts)
    serve(subject, parts, out, served, workers, scheduler, "randomized forecast", as_json)


def _certify(
    subject: ForecastColumns, request: Request, asked: dict[str, Any], out: Path, as_json: bool
) -> None:
    """Choose the least randomization of given forecasts; write its certificate and a report.

    `asked` are options of `evenhand.randomize`.
    """
    from evenhand import selection, store

    arguments.checked_link(asked["link"], 1.0)
    out = own_folder(out, request.rows, store.CERTIFICATE_FOLDER)
    rows = read_rows(request)
    source = rows.source
    # all rows, so that messages count rows as in the table
    subject.of(rows.data, source)
    columns = subject.columns(rows.data.columns, source)
    others = [] if rows.searched is None else list(rows.searched.columns)
    training = Training(
        subject,
        rows.data[[*columns, *others]],
        rows.y,
        request.rows,
        request.target,
        request.seed,
        rows.searched,
        times=rows.times,
    )
    people = None if request.person is None else rows.people
    warn_of_replacement(out)
    with warnings.catch_warnings():
        warnings.simplefilter("error", selection.NotWorthItWarning)
        try:
            chosen = choose(training, asked | {"person": people})
        except selection.NotWorthItWarning as reason:
            fail(f"{source}: nothing was written. {reason}", NOT_WORTH_IT)
    forecasts = {"forecasts": _forecasts(subject, rows.data.columns, source)}
    certificate = certificate_of(chosen, rows.people) | forecasts | _sources(request, len(rows.y))

    def audited() -> Audit:
        held = chosen.certifying
        found = audit_of_held(chosen.model, training, held, chosen.confidence, request.name)
        # the report must mention that alpha was chosen on these rows
        return chosen.audited(found)

    page, last = report_page(audited, out)
    store.write_forecast_certificate(certificate, out, page)
    show_result(certificate | {"out": str(out)}, chosen.summary(), as_json)
    certified = f"certified on {count(chosen.n_certifying, 'person', 'people')}"
    inform(f"{certified} with seed {training.seed}; {store.CERTIFICATE} written to {out}")
    inform(last)
    folder = shlex.quote(str(out))
    inform(f"to randomize new rows, use --certificate {folder} with --id and --key-file")


def _forecasts(subject: ForecastColumns, present: Iterable[str], source: str) -> dict[str, Any]:
    """Return the columns of forecasts, as their certificate records them."""
    named = {"kind": subject.kind, "columns": subject.columns(present, source)}
    if not subject.is_of_times:
        return named
    return named | {"times": subject.times(present, source), "horizon": subject.horizon}


def _sources(request: Request, n_rows: int) -> dict[str, Any]:
    """Return the outcome, the table and the command of a certificate."""
    from evenhand import store

    table = request.rows
    sha256 = store.digest(table.read_bytes()) if table.is_file() else None
    return {
        "target": request.target,
        "data": {"name": table.name, "sha256": sha256, "n_rows": n_rows},
        "command": command_line(),
    }
