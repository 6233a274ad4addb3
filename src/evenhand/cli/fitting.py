"""Subcommand `fit`: training and, with `--max-group-error`, certification."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from evenhand._validate import InputError, about, bad_input, check_column
from evenhand.cli.arguments import (
    DEFAULT_ALPHA,
    AsJson,
    Link,
    MaxPrice,
    MaxWider,
    Seed,
    Table,
    Target,
    check_seed,
)
from evenhand.cli.certifying import (
    Training,
    certificate_of,
    check_goal,
    check_target,
    choose,
    page_of,
)
from evenhand.cli.messages import inform
from evenhand.cli.options import check_apart, check_own_folder, folder_to_write, listed_names
from evenhand.cli.reports import show_result
from evenhand.cli.tables import people_of

if TYPE_CHECKING:
    import pandas as pd

    from evenhand._validate import Floats
    from evenhand.forecasters import Bounds

SCHEMA = "evenhand.fit/1"


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
    max_wider: MaxWider = None,
    max_price: MaxPrice = None,
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
    support: Annotated[
        str | None,
        typer.Option(
            help="bounds of the target, low:high with one of them left out if there is none; 0: for"
            " money or durations, so that no prediction interval ends below 0"
        ),
    ] = None,
    seed: Seed = None,
    device: Annotated[str, typer.Option(help="device for training: auto, cpu or cuda")] = "auto",
    as_json: AsJson = False,
) -> None:
    """Train a randomized forecaster on a table and save it to a folder."""
    from evenhand import store
    from evenhand._validate import check_choice
    from evenhand.forecasters import MixtureMLPRegressor, RandomizedRegressor
    from evenhand.links import make_link

    goals = {"max_group_error": max_group_error, "max_wider": max_wider, "max_price": max_price}
    is_certified = check_goal(alpha, goals, {"group_mass": group_mass, "confidence": confidence})
    check_target(goals, group_mass, confidence)
    chosen_alpha = DEFAULT_ALPHA if alpha is None else alpha
    # checks link and alpha before the training
    make_link(link, chosen_alpha)
    check_choice("--device", device, ("auto", "cpu", "cuda"))
    check_seed(seed)
    bounds = None if support is None else _bounds(support)
    check_apart(out, {"the table": table})
    out = folder_to_write(out)
    # training takes minutes: the output folder is checked before
    store.check_folder(out)
    check_own_folder(out, "model.json", "a model folder")
    X, y, people = _training_rows(table, target, id_column, cluster, drop, bounds)
    base = MixtureMLPRegressor(device=device, random_state=seed, verbose=True)
    if is_certified:
        asked = {
            **goals,
            "group_mass": group_mass,
            "confidence": confidence,
            "link": link,
            "cluster": None if cluster is None else people,
            "support": bounds,
        }
        fit_certified(Training(base, X, y, table, target, seed), people, asked, out, as_json)
        return
    with about(table.name):
        model = RandomizedRegressor(
            base,
            alpha=chosen_alpha,
            link=link,
            support=bounds,
            random_state=seed,
        )
        model.fit(X, y)
    store.save(model, out)
    inform(f"trained on {len(X):,} rows and {X.shape[1]} columns; model written to {out}")
    if as_json:
        result = _fitted(out, len(X), X, chosen_alpha, link)
        show_result(result | {"certificate": None}, "", as_json)
    inform(
        "no report was written because no rows were held out: run evenhand audit on other rows, or"
        " fit with --max-group-error, which holds out rows"
    )


def _training_rows(
    table: Path,
    target: str,
    id_column: str | None,
    cluster: str | None,
    drop: str | None,
    bounds: Bounds,
) -> tuple[pd.DataFrame, Floats, list[str] | None]:
    """Read the features, the outcomes and the names of people, and check the outcomes."""
    from evenhand import columns, tables
    from evenhand._validate import check_outcomes, discrete_outcome
    from evenhand.forecasters import check_support

    named = [name for name in (id_column, cluster) if name is not None]
    data, remarks = columns.read_typed(table, text=named)
    y = tables.number_column(data, target, source=table.name)
    people = people_of(data, id_column, cluster, target, table.name)
    # ids are not features: a model could memorize people
    X = _features(data, [target, *named, *listed_names("--drop", drop)], table.name)
    for remark in [*remarks, *features_like_names(X)]:
        inform(f"warning: {table.name}: {remark}")
    outcome = f"{table.name}: column {target!r}"
    check_support(y, bounds, name=outcome)
    discrete = discrete_outcome(y, name=outcome)
    check_outcomes(y, name=outcome, kind="continuous" if discrete is None else None)
    if discrete is not None:
        raise InputError(discrete)
    return X, y, people


def _bounds(support: str) -> Bounds:
    """Read bounds such as `0:` or `0:100`."""
    ends = support.split(":")
    try:
        low, high = (float(end) if end.strip() else None for end in ends)
    except ValueError:  # not two parts, or not numbers
        low, high = None, None
    floor = -math.inf if low is None else low
    ceiling = math.inf if high is None else high
    # written so that NaN is refused too
    if not floor < ceiling or (math.isinf(floor) and math.isinf(ceiling)):
        rule = "be low:high with low < high, or with one of them left out if there is no bound"
        raise bad_input("--support", rule, repr(support), "for amounts of money write 0:")
    return low, high


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


def fit_certified(
    training: Training, people: list[str] | None, asked: dict[str, Any], out: Path, as_json: bool
) -> None:
    """Fit a model with the least certified randomization; save model, certificate and report.

    `asked` are options of `evenhand.randomize`; None stands for its default.
    """
    from evenhand import store

    chosen = choose(training, asked)
    # packed once, so that certificate and report contain the hash of the written files
    packed = store.pack(chosen.model)
    certificate = certificate_of(chosen, people)
    page = None
    try:
        page, last = page_of(chosen, training, people, out, out.name, packed.sha256)
    finally:
        # training takes long: an error in the audit must not lose the model
        store.write_model(packed, out, certificate, page)
    result = _fitted(out, chosen.n_learning, training.X, chosen.alpha, asked["link"])
    show_result(result | {"certificate": certificate}, chosen.summary(), as_json)
    trained = f"trained on {chosen.n_learning:,} rows and {training.X.shape[1]} columns"
    inform(
        f"{trained}, certified on {chosen.n_certifying:,} other people; model and certificate.json"
        f" written to {out}"
    )
    inform(last)


def _fitted(out: Path, n_rows: int, X: pd.DataFrame, alpha: float, link: str) -> dict[str, Any]:
    """Return what was trained as plain values."""
    return {
        "schema": SCHEMA,
        "out": str(out),
        "n_learning": n_rows,
        "n_columns": X.shape[1],
        "alpha": alpha,
        "link": link,
    }
