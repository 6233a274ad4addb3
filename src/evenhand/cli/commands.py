"""The command `evenhand`: parses, calls one thing below, prints.

Results go to standard output, messages to standard error. Exit codes: see `EXIT_CODES`. A gate has
the code of its verdict whatever becomes of the streams.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from evenhand import __version__
from evenhand._escape import single_line
from evenhand._validate import InputError, about, bad_input, check_column
from evenhand.cli.audit import Request, audit_in_memory, audit_in_parts
from evenhand.cli.messages import code_of, say, show, stopped_by_signals, tell, warn
from evenhand.cli.options import (
    check_apart,
    check_model_folder,
    check_not_among,
    folder_to_write,
    listed_names,
    refuse_blank,
)
from evenhand.cli.reports import command_line, fit_certified, report
from evenhand.cli.streams import safe_streams
from evenhand.cli.tables import name_like, parse_levels, people_of, read_key, tell_written


class Commands(TyperGroup):
    """Tells the errors of a command that typer would otherwise turn into exit code 1, that of a gate."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was chosen."""
        try:
            return super().invoke(ctx)
        except (EOFError, OSError, KeyboardInterrupt) as error:
            tell(error)
        except Exception as error:
            if isinstance(
                getattr(error, "message", None), str
            ):  # typer's: it names arguments, such as file names
                error.message = single_line(error.message)  # type: ignore[attr-defined]
            raise

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Choose the command by the first argument; refuse values that are empty."""
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None:
            refuse_blank(
                rest,
                {
                    option
                    for one in command.params
                    if getattr(one, "is_flag", False)
                    for option in one.opts
                },
            )
        return name, command, rest


EXIT_CODES = (
    "Exit codes: 0 done, 1 a --fail-if condition holds, 2 bad input or a condition that cannot be"
    " judged, 70 a fault of evenhand, 74 results that cannot be written to standard output, 130"
    " interrupted, 143 terminated (129 by SIGHUP)."
)

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Forecasts that are calibrated for each person, not only on average.",
    epilog=EXIT_CODES,
)

Table = Annotated[Path, typer.Argument(help="csv, parquet, or a folder of such parts")]
Target = Annotated[str, typer.Option(help="column with the outcome")]
Alpha = Annotated[
    float,
    typer.Option(
        help="weight of sharpness, 0 < alpha <= 1; small buys calibration for every group"
    ),
]
Link = Annotated[str, typer.Option(help="entropic, laplace or gaussian")]
Seed = Annotated[int | None, typer.Option(help="makes the run repeatable")]
Id = Annotated[str, typer.Option("--id", help="column that names each person")]
Key = Annotated[Path, typer.Option(help="file with the secret of the draws, at least 16 bytes")]
Context = Annotated[str, typer.Option(help="the decision that the draws are for, such as 2026-11")]
Levels = Annotated[str, typer.Option(help="probabilities of the quantiles to write")]
Moments = Annotated[
    bool,
    typer.Option(
        "--moments",
        help="also write served_mean and served_std, which take long: see the docs, costs",
    ),
]
OutTable = Annotated[
    Path, typer.Option(help="csv or parquet file to write; or a new folder, for a folder of parts")
]

Workers = Annotated[
    int | None, typer.Option(help="processes that share the parts of the table on this machine")
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="address of a Dask scheduler whose workers do it, such as tcp://10.0.0.1:8786"
    ),
]
SkipBadParts = Annotated[
    bool,
    typer.Option("--skip-bad-parts", help="go on without parts that cannot be used, and name them"),
]


def _print_version(is_asked: bool) -> None:
    if is_asked:
        show(f"evenhand {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="print the version and exit"
        ),
    ] = False,
) -> None:
    pass


DEFAULT_ALPHA = 0.1
DEFAULT_LEVELS = "0.05,0.1,0.25,0.5,0.75,0.9,0.95"


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="folder to write to")] = Path("evenhand-demo"),
    seed: Annotated[int, typer.Option(help="of the split, the training and the draws")] = 0,
) -> None:
    """Train, audit and save on a real table that is bundled, end to end."""
    from evenhand.demo import run

    _check_seed(seed)
    show(run(folder_to_write(out), seed, say=say, command=command_line()))


@app.command()
def fit(
    table: Table,
    target: Target,
    out: Annotated[Path, typer.Option(help="model folder to write")],
    alpha: Annotated[
        float | None, typer.Option(help="weight of sharpness, up to 1; 0.1 by default")
    ] = None,
    max_group_error: Annotated[
        float | None,
        typer.Option(
            help="instead of --alpha: the least randomization that is certified for this error"
        ),
    ] = None,
    group_mass: Annotated[
        float | None,
        typer.Option(help="least share of people in a group that is certified; 0.2 by default"),
    ] = None,
    confidence: Annotated[
        float | None, typer.Option(help="of what is certified; 0.95 by default")
    ] = None,
    link: Link = "entropic",
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id", help="column that names each person, not a feature; repeated ids are refused"
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(help="column that names people who have several rows, not a feature"),
    ] = None,
    drop: Annotated[
        str | None, typer.Option(help="other columns that are not features, with commas between")
    ] = None,
    seed: Seed = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda")] = "auto",
) -> None:
    """Train a randomized forecaster on a table and save it to a folder."""
    from evenhand import columns, store, tables
    from evenhand._validate import check_choice, check_continuous
    from evenhand.forecasters import MixtureMLPRegressor, RandomizedRegressor
    from evenhand.links import make_link

    if alpha is not None and max_group_error is not None:
        raise InputError("--alpha and --max-group-error exclude each other; give one of them")
    for option, value in (("--group-mass", group_mass), ("--confidence", confidence)):
        if value is not None and max_group_error is None:
            raise bad_input(option, "be left out here", value, "it belongs to --max-group-error")
    chosen_alpha = DEFAULT_ALPHA if alpha is None else alpha
    make_link(link, chosen_alpha)
    check_choice("--device", device, ("auto", "cpu", "cuda"))
    _check_seed(seed)
    check_apart(out, {"the table": table})
    out = folder_to_write(out)
    store.check_folder(out)
    check_model_folder(out)
    named = [name for name in (id_column, cluster) if name is not None]
    data, remarks = columns.read_typed(table, text=named)
    y = tables.number_column(data, target, source=table.name)
    people = people_of(data, id_column, cluster, table.name)
    unused = [target, *named, *listed_names("--drop", drop)]
    X = data.drop(columns=[check_column(name, data.columns, table.name) for name in unused])
    if X.shape[1] == 0:
        raise InputError(f"{table.name}: no columns are left as features")
    for remark in [*remarks, *name_like(X)]:
        say(f"warning: {table.name}: {remark}")
    check_continuous(y, name=f"{table.name}: column {target!r}")
    base = MixtureMLPRegressor(device=device, on_discrete="ignore", random_state=seed, verbose=True)
    if max_group_error is not None:
        asked = {
            "max_group_error": max_group_error,
            "group_mass": group_mass,
            "confidence": confidence,
            "link": link,
            "cluster": None if cluster is None else people,
        }
        fit_certified(base, X, y, people, asked, out, seed, table, target)
        return
    with about(table.name):
        model = RandomizedRegressor(
            base, alpha=chosen_alpha, link=link, on_discrete="ignore", random_state=seed
        )
        model.fit(X, y)
    store.save(model, out)
    say(f"trained on {len(X):,} rows and {X.shape[1]} columns; the model is in {out}")
    say(
        "no report: no rows were held out for an audit; evenhand audit takes others,"
        " --max-group-error holds out some"
    )


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="model folder")],
    table: Table,
    id_column: Id,
    key_file: Key,
    out: OutTable,
    context: Context = "",
    levels: Levels = DEFAULT_LEVELS,
    moments: Moments = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    skip_bad_parts: SkipBadParts = False,
) -> None:
    """Forecast each person of a table.

    A person's draw is a keyed hash of the id, the same every time.
    """
    from evenhand import scale, store

    check_apart(out, {"the model": model, "the table": table, "the key file": key_file})
    asked = _asked(id_column, key_file, context, levels, moments, skip_bad_parts)
    subject = scale.ModelSubject(store.load(model))
    with scale.dask_client(scheduler, workers) as client:
        done = scale.forecast_parts(subject, table, out, client=client, **asked)
    tell_written(done, "forecasts", out)


@app.command()
def randomize(
    table: Table,
    mean: Annotated[str, typer.Option(help="column with the means")],
    std: Annotated[str, typer.Option(help="column with the standard deviations")],
    id_column: Id,
    key_file: Key,
    out: OutTable,
    alpha: Alpha = DEFAULT_ALPHA,
    link: Link = "entropic",
    context: Context = "",
    levels: Levels = DEFAULT_LEVELS,
    moments: Moments = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    skip_bad_parts: SkipBadParts = False,
) -> None:
    """Randomize the forecasts of another model, given as columns of a table."""
    from evenhand import scale
    from evenhand.links import make_link

    check_apart(out, {"the table": table, "the key file": key_file})
    asked = _asked(id_column, key_file, context, levels, moments, skip_bad_parts) | {
        "link": make_link(link, alpha)
    }
    with scale.dask_client(scheduler, workers) as client:
        done = scale.forecast_parts(
            scale.ColumnSubject(mean, std), table, out, client=client, **asked
        )
    tell_written(done, "randomized forecasts", out)


@app.command()
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
    workers: Workers = None,
    scheduler: Scheduler = None,
    skip_bad_parts: SkipBadParts = False,
) -> None:
    """Audit a model on rows that it was not trained on, or the forecasts of another model."""
    from evenhand import audits, scale, store, tables
    from evenhand._validate import check_fraction
    from evenhand.audits.provenance import with_sources

    _check_seed(seed)
    check_fraction("--confidence", confidence)
    conditions = [audits.parse_condition(text) for text in fail_if or []]
    rows = source if table is None else table
    if out is not None:
        check_apart(out, {"the table": rows, "the model": None if table is None else source})
        tables.check_writable(out, (".html", ".json"))
    forecaster = None if table is None else store.load(source)
    columns = scale.ColumnSubject(mean, std, quantiles, samples, sort_quantiles)
    given = list(columns.named)
    if sort_quantiles and quantiles is None:
        raise bad_input(
            "--sort-quantiles", "come with --quantiles", "none", "leave it out, or name the columns"
        )
    if forecaster is None and not given:
        remedy = "--mean and --std, --quantiles or --samples columns of the table"
        raise InputError(f"{source}: give a model folder before the table, or {remedy}")
    if forecaster is not None and given:
        raise InputError(
            f"--{given[0]} is for tables without a model; leave it out, or leave the model out"
        )
    subject = columns if forecaster is None else scale.ModelSubject(forecaster)
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
    if rows.is_dir() or scheduler is not None or workers is not None:
        found = audit_in_parts(request, scheduler, workers, skip_bad=skip_bad_parts)
    elif skip_bad_parts:
        raise bad_input("--skip-bad-parts", "be left out here", rows, "it is for a folder of parts")
    else:
        found = audit_in_memory(request)
    found = with_sources(
        found, command=command_line(), model=None if forecaster is None else source, data=rows
    )
    report(found, conditions, out, as_json)


@app.command()
def reproduce(
    name: Annotated[str, typer.Argument(help="toy, crime or credit", metavar="STUDY")],
    out: Annotated[
        Path, typer.Option(help="folder to write to; a stopped run goes on from what lies there")
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help=(
                "crime: communities.data, where it cannot be fetched; credit: the training file"
                " from Kaggle"
            )
        ),
    ] = None,
    splits: Annotated[
        int | None,
        typer.Option(help="crime: random splits, 10 by default; credit: roll-outs, 8 by default"),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="crime, credit: computed at the same time, 2 by default")
    ] = None,
    seed: Annotated[int, typer.Option(help="of the first split or roll-out, or of the task")] = 0,
) -> None:
    """Rerun an experiment of the paper, with figures, tables and a verdict on each claim."""
    from evenhand._validate import check_choice, check_count
    from evenhand.studies import check_folder, run_credit, run_crime, run_toy

    check_choice("STUDY", name, ("toy", "crime", "credit"))
    _check_seed(seed)
    given = {"data": data, "splits": splits, "jobs": jobs}
    options: dict[str, Any] = {
        option: value for option, value in given.items() if value is not None
    }
    if name == "toy" and options:
        raise InputError(
            f"--{next(iter(options))} belongs to crime and credit: the toy makes its data, in one"
            " piece"
        )
    for option in ("splits", "jobs"):
        if option in options:
            check_count(f"--{option}", options[option])
    if data is not None and not data.is_file():
        raise bad_input("--data", f"be the data file of {name}", data)
    out = folder_to_write(out)
    check_not_among("--data", data, out)
    check_folder(out, name)
    if name == "toy":
        show(run_toy(out, seed, say))
    else:
        run = run_crime if name == "crime" else run_credit
        show(run(out, seed, say, **options))


def main() -> None:
    """Run the command; whatever ends it early is one line and an exit code of its own."""
    warnings.showwarning = warn
    sys.unraisablehook = lambda raised: (
        None
    )  # pyarrow prints a traceback beside the error that it raises
    with safe_streams() as out:
        try:
            _run()
        except SystemExit as end:
            raise SystemExit(code_of(end, out)) from None


def _run() -> None:
    try:
        with stopped_by_signals():
            app()
    except (Exception, KeyboardInterrupt) as error:
        tell(error)


def _asked(
    id_column: str, key_file: Path, context: str, levels: str, moments: bool, skip_bad: bool
) -> dict[str, Any]:
    """What `predict` and `randomize` ask for alike."""
    if not context.isprintable():
        raise bad_input("--context", "be printable text", ascii(context))
    asked = {
        "id_column": id_column,
        "key": read_key(key_file),
        "context": context,
        "levels": parse_levels(levels),
    }
    return asked | {"moments": moments, "skip_bad": skip_bad, "verbose": True}


def _check_seed(seed: int | None) -> None:
    if seed is not None and not 0 <= seed < 2**32:
        raise bad_input("--seed", f"lie between 0 and {2**32 - 1}", seed)
