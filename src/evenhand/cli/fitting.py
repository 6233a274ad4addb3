"""Subcommand `fit`: training and, with `--max-group-error`, certification."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand._validate import (
    DiscreteOutcomeWarning,
    Floats,
    InputError,
    about,
    check_column,
)
from evenhand.cli.arguments import DEFAULT_ALPHA, Link, Seed, Table, Target, check_seed
from evenhand.cli.messages import inform, show
from evenhand.cli.options import check_apart, check_own_folder, folder_to_write, listed_names
from evenhand.cli.reports import command_line
from evenhand.cli.tables import people_of

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.audits import Audit
    from evenhand.selection import Selection


def fit(
    table: Table,
    target: Target,
    out: Annotated[Path, typer.Option(help="model folder to write")],
    alpha: Annotated[
        float | None,
        typer.Option(help="weight of sharpness, 0 < alpha <= 1; 0.1 by default"),
    ] = None,
    max_group_error: Annotated[
        float | None,
        typer.Option(
            help="instead of --alpha: choose the least randomization that is certified to have at"
            " most this group error"
        ),
    ] = None,
    max_wider: Annotated[
        float | None,
        typer.Option(
            help="instead of --max-group-error: certify as much as possible with 80% prediction"
            " intervals at most so much wider; 0.1 for 10%"
        ),
    ] = None,
    max_price: Annotated[
        float | None,
        typer.Option(
            help="instead of --max-group-error: certify as much as possible for at most this loss"
            " of log score, in nats"
        ),
    ] = None,
    group_mass: Annotated[
        float | None,
        typer.Option(
            help="with a certificate: smallest certified group size, as a share of people; 0.2 by"
            " default"
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(help="with a certificate: its confidence; 0.95 by default"),
    ] = None,
    link: Link = "entropic",
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id", help="column with the unique id of each person; it is not used as a feature"
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            help="column with the ids of people who have several rows; it is not used as a feature"
        ),
    ] = None,
    drop: Annotated[
        str | None,
        typer.Option(help="other columns not to use as features, comma-separated"),
    ] = None,
    seed: Seed = None,
    device: Annotated[str, typer.Option(help="device for training: auto, cpu or cuda")] = "auto",
) -> None:
    """Train a randomized forecaster on a table and save it to a folder."""
    from evenhand import columns, store, tables
    from evenhand._validate import check_choice, check_continuous
    from evenhand.forecasters import MixtureMLPRegressor, RandomizedRegressor
    from evenhand.links import make_link

    goals = {"max_group_error": max_group_error, "max_wider": max_wider, "max_price": max_price}
    is_certified = check_goal(alpha, goals, {"group_mass": group_mass, "confidence": confidence})
    chosen_alpha = DEFAULT_ALPHA if alpha is None else alpha
    # checks link and alpha before the training
    make_link(link, chosen_alpha)
    check_choice("--device", device, ("auto", "cpu", "cuda"))
    check_seed(seed)
    check_apart(out, {"the table": table})
    out = folder_to_write(out)
    # training takes minutes: the output folder is checked before
    store.check_folder(out)
    check_own_folder(out, "model.json", "a model folder")
    named = [name for name in (id_column, cluster) if name is not None]
    data, remarks = columns.read_typed(table, text=named)
    y = tables.number_column(data, target, source=table.name)
    people = people_of(data, id_column, cluster, table.name)
    # ids are not features: a model could memorize people
    unused = [target, *named, *listed_names("--drop", drop)]
    X = _features(data, unused, table.name)
    for remark in [*remarks, *features_like_names(X)]:
        inform(f"warning: {table.name}: {remark}")
    check_continuous(y, name=f"{table.name}: column {target!r}")
    # the check above has already warned of discrete outcomes, with the name of the column
    base = MixtureMLPRegressor(device=device, on_discrete="ignore", random_state=seed, verbose=True)
    if is_certified:
        asked = {
            **goals,
            "group_mass": group_mass,
            "confidence": confidence,
            "link": link,
            "cluster": None if cluster is None else people,
        }
        fit_certified(Training(base, X, y, table, target, seed), people, asked, out)
        return
    with about(table.name):
        model = RandomizedRegressor(
            base, alpha=chosen_alpha, link=link, on_discrete="ignore", random_state=seed
        )
        model.fit(X, y)
    store.save(model, out)
    inform(f"trained on {len(X):,} rows and {X.shape[1]} columns; model written to {out}")
    inform(
        "no report was written because no rows were held out: run evenhand audit on other rows, or"
        " fit with --max-group-error, which holds out rows"
    )


def check_goal(
    alpha: float | None, goals: dict[str, float | None], others: dict[str, float | None]
) -> bool:
    """Return whether a certificate is asked for; refuse options that exclude each other.

    Parameters
    ----------
    alpha : float or None
        The option `--alpha`.
    goals : dict of str to float or None
        The options of which one asks for a certificate, by name.
    others : dict of str to float or None
        Options that have an effect on a certificate only.
    """
    values = {_option(name): value for name, value in goals.items()}
    given = [name for name, value in {"--alpha": alpha, **values}.items() if value is not None]
    if len(given) == 2:
        raise InputError(f"give {given[0]} or {given[1]}, not both")
    if len(given) > 2:
        raise InputError(f"give only one of {_listed(given, 'and')}")
    for name, value in others.items():
        if value is not None and (not given or alpha is not None):
            raise InputError(
                f"{_option(name)} {value} has no effect without {_listed(list(values), 'or')}; add"
                f" one of them, or leave {_option(name)} out"
            )
    return bool(given) and alpha is None


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _listed(names: list[str], word: str) -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


def _features(data: pd.DataFrame, unused: list[str], source: str) -> pd.DataFrame:
    """Return the remaining columns as features."""
    X = data.drop(columns=[check_column(name, data.columns, source) for name in unused])
    if X.shape[1] == 0:
        raise InputError(
            f"{source}: no columns are left as features besides {', '.join(map(repr, unused))}; add"
            " features to the table"
        )
    return X


def features_like_names(X: pd.DataFrame) -> list[str]:
    """Return warnings about text features with a different value in every row, probably ids."""
    from evenhand._validate import MIN_DISTINCT
    from evenhand.tables import is_text

    # distinct numbers are ordinary features, and so is text in tables of a few rows
    return [
        f"column {name!r} is used as a feature but has a different text in every row; if it"
        " identifies people, pass it as --id, otherwise exclude it with --drop"
        for name, values in X.items()
        if len(X) >= MIN_DISTINCT and is_text(values) and values.nunique() == len(X)
    ]


@dataclass(frozen=True)
class Training:
    """Training table of a model and its options.

    Parameters
    ----------
    base : estimator
        The deterministic base model.
    X : DataFrame
        Features.
    y : ndarray of shape (n,)
        Outcomes.
    table : Path
        The file of the table.
    target : str
        Column with the outcomes.
    seed : int or None
        Seed of the split, the training and the audit.
    searched : DataFrame, optional
        Columns in which the audit searches groups, if other than `X`.
    """

    base: Any
    X: pd.DataFrame
    y: Floats
    table: Path
    target: str
    seed: int | None
    searched: pd.DataFrame | None = None


def fit_certified(
    training: Training, people: list[str] | None, asked: dict[str, Any], out: Path
) -> None:
    """Fit a model with the least certified randomization; save model, certificate and report.

    `asked` are options of `evenhand.randomize`; None stands for its default.
    """
    from evenhand import selection, store

    X = training.X
    given = {name: value for name, value in asked.items() if value is not None}
    with about(training.table.name):
        chosen = selection.randomize(
            training.base,
            X,
            training.y,
            on_discrete="ignore",
            random_state=training.seed,
            **given,
        )
    # packed once, so that certificate and report contain the hash of the written files
    packed = store.pack(chosen.model)
    certificate = certificate_of(chosen, people)
    page = None
    try:
        page, last = page_of(chosen, training, people, out, out.name, packed.sha256)
    finally:
        # training takes long: an error in the audit must not lose the model
        store.write_model(packed, out, certificate, page)
    show(chosen.summary())
    trained = f"trained on {chosen.n_learning:,} rows and {X.shape[1]} columns"
    inform(
        f"{trained}, certified on {chosen.n_certifying:,} other people; model and certificate.json"
        f" written to {out}"
    )
    inform(last)


def page_of(
    chosen: Selection,
    training: Training,
    people: list[str] | None,
    out: Path,
    name: str,
    sha256: str | None = None,
) -> tuple[bytes | None, str]:
    """Return the report of the certifying rows, None if they cannot be audited, and a message."""
    from evenhand import store
    from evenhand.audits import with_people

    try:
        found = _audit_of_choice(chosen, training, name, sha256)
    except InputError as refusal:
        # the certifying rows may be unfit for an audit, for example with many equal outcomes
        return None, f"no report was written: {refusal}"
    page = (found if people is None else with_people(found, people)).to_html().encode()
    return page, f"audit of the certifying people written to {out / store.REPORT}"


def _audit_of_choice(chosen: Selection, training: Training, name: str, sha256: str | None) -> Audit:
    """Audit the model on its certifying rows, which were held out from training."""
    from evenhand.audits import audit, with_sources
    from evenhand.tables import take_rows

    held = chosen.certifying
    searched = training.searched
    with warnings.catch_warnings():
        # `fit` has warned about the whole table
        warnings.simplefilter("ignore", DiscreteOutcomeWarning)
        found = audit(
            chosen.model,
            take_rows(training.X, held),
            training.y[held],
            features=None if searched is None else take_rows(searched, held),
            confidence=chosen.confidence,
            random_state=training.seed,
            name=name,
            target_name=training.target,
        )
    # the report must mention that alpha was chosen on these rows
    found = chosen.audited(found)
    return with_sources(
        found,
        command=command_line(),
        model_sha256=sha256,
        data=training.table,
        rows=held,
        n_rows=len(training.X),
    )


def certificate_of(chosen: Selection, people: list[str] | None) -> dict[str, Any]:
    """Return the certificate as JSON values; people are recorded by a salted hash only."""
    from evenhand import store
    from evenhand._version import __version__

    rows = chosen.certifying
    # rows are counted from 1 in all output
    if people is None:
        on = store.people_record((rows + 1).tolist(), "rows")
    else:
        on = store.people_record([people[row] for row in rows], "ids")
    return {
        "statement": chosen.statement,
        "alpha": chosen.alpha,
        "link": chosen.model.link,
        "n_certifying": chosen.n_certifying,
        "n_learning": chosen.n_learning,
        **dict.fromkeys(("max_group_error", "max_wider", "max_price")),
        chosen.target.goal.name: chosen.target.goal.most,
        "group_mass": chosen.group_mass,
        "confidence": chosen.confidence,
        "group_error": chosen.group_error,
        "bound": chosen.bound,
        "coverage_80": list(chosen.certificate.coverage(0.8, chosen.group_mass)),
        "price": chosen.price,
        "wider": chosen.wider,
        "plain_interval": _plain_interval(chosen),
        "learned_group": _learned_group(chosen),
        "comparison": [
            {name: _json(value) for name, value in row.items()}
            for row in chosen.comparison.to_dict("records")
        ],
        "assumes": list(chosen.certificate.assumptions),
        "does_not_cover": list(chosen.certificate.not_covered),
        "certified_on": on,
        "written_by": f"evenhand {__version__}",
    }


def _plain_interval(chosen: Selection) -> dict[str, Any] | None:
    """Return the prediction interval without a draw that guarantees the same lower limit."""
    if chosen.plain is None:
        return None
    interval = chosen.plain.interval
    return {
        "level": interval.level,
        "coverage_low": interval.floor,
        "covered": interval.covered,
        "wider": chosen.plain.wider,
    }


def _learned_group(chosen: Selection) -> dict[str, Any] | None:
    """Return the group that features define with the largest error without a draw."""
    found = chosen.learned_group
    if found is None:
        return None
    names = ("mass", "n", "n_judged", "error", "low", "p_value", "direction", "description")
    return {name: getattr(found, name) for name in names}


def _json(value: Any) -> Any:
    """Return a value of a table for JSON, which has no NaN."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
