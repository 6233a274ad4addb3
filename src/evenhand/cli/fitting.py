"""Subcommand `fit`: training of a deterministic model."""

from __future__ import annotations

import secrets
import shlex
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import typer

from evenhand._kinds import OutcomeKind
from evenhand._validate import (
    MIN_DISTINCT,
    Floats,
    InputError,
    about,
    bad_input,
    check_column,
    check_outcomes,
    discrete_kind,
    short,
)
from evenhand.cli.checks import listed_names, own_folder, refuse_without_effect, warn_of_replacement
from evenhand.cli.options import Rows, with_options
from evenhand.cli.output import inform, show_result
from evenhand.cli.rooms import forecasters, store, tables
from evenhand.cli.rows import columns_like_ids, numbers_in, people_of, with_outcomes

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = "evenhand.fit/1"
"""Layout of the JSON that `fit` prints."""

# half of the rows may be held out, and a value that no training row has would be impossible
CLASS_ROWS = 10
"""Fewest rows with each value for which `fit` predicts the probability of each value of a score."""

UNUSED = {
    "count": ("support", "device", "model"),
    "hurdle": ("support",),
    "binary": ("support", "device", "model"),
}
"""Parameters without effect by kind of target."""


def kind_of_target(y: Floats, outcome: str | None, place: str) -> OutcomeKind:
    """Return the kind of a target, and refuse values that it cannot have.

    Without `--outcome` discrete outcomes are refused, with the option for them.
    """
    if outcome is None:
        reason = None if y.size < MIN_DISTINCT or (y == y[0]).all() else discrete_target(y)
        if reason is not None:
            raise InputError(f"{place} {reason}")
        return OutcomeKind.CONTINUOUS
    kind = OutcomeKind(outcome)
    match kind:
        case OutcomeKind.BINARY:
            tables.refuse_row(~np.isin(y, (0.0, 1.0)), y, place, "be 0 or 1", "code the event as 1")
        case OutcomeKind.HURDLE:
            tables.refuse_row(
                y < 0, y, place, "be 0 or above", "--outcome hurdle is for amounts with zeros"
            )
            if not (y == 0).any() or (y == 0).all():
                which = "only zeros" if (y == 0).all() else "no zeros"
                raise InputError(
                    f"{place} has {which}, but --outcome hurdle needs zeros and amounts above 0;"
                    " leave --outcome out for a continuous target"
                )
        case OutcomeKind.COUNT if not has_classes(y):
            is_count = (y >= 0) & (y == np.round(y))
            remedy = f"scores with other values need at least {CLASS_ROWS} rows with each value"
            tables.refuse_row(~is_count, y, place, "be a whole number of at least 0", remedy)
    return kind


def discrete_target(y: Floats) -> str | None:
    """Return why a target is discrete, and the option of `fit` for it; None if it is continuous."""
    found = discrete_kind(y)
    if found is None:
        return None
    is_coded = np.isin(y, (0.0, 1.0)).all()
    meaning = "the probability of 1 add --outcome binary"
    other = "one of them add --outcome binary, with the event coded as 1 and the other as 0"
    is_count = "counts" in found.kinds
    advice = found.advice(
        event=f"for {meaning if is_coded else other}",
        counts="for counts or scores add --outcome count",
        scores="for scores add --outcome count" if has_classes(y) and not is_count else "",
        amounts="for amounts with zeros add --outcome hurdle" if found.atom == 0 else "",
        other="a forecast of a continuous target needs different values: model the frequent values"
        " apart, or give a target without them",
    )
    return f"{found.facts}; {advice}"


def has_classes(y: Floats) -> bool:
    """Whether each value is frequent enough to predict the probability of each value."""
    values, counts = np.unique(y, return_counts=True)
    return bool(values.size < MIN_DISTINCT and counts.min() >= CLASS_ROWS)


CHOICE_ROWS = 8000
"""Largest number of rows on which models are compared, a quarter of them held out."""


def base_model(
    kind: OutcomeKind, X: pd.DataFrame, y: Floats, model: str | None, device: str, seed: int
) -> Any:
    """Return the unfitted deterministic model that `fit` trains on a kind of target.

    `model` and `device` are for continuous targets and amounts, see `fit`.
    """
    match kind:
        case OutcomeKind.CONTINUOUS:
            return continuous_model(X, y, model, device, seed)
        case OutcomeKind.HURDLE:
            amounts = continuous_model(X[y > 0], y[y > 0], model, device, seed)
            return forecasters.HurdleRegressor(None, amounts, random_state=seed)
        case OutcomeKind.COUNT if not has_classes(y):
            return forecasters.CountRegressor(random_state=seed)
        case _:
            return forecasters.ClassifierForecaster(random_state=seed)


def continuous_model(X: pd.DataFrame, y: Floats, name: str | None, device: str, seed: int) -> Any:
    """Return the unfitted model of a name, and report it where it was not named."""
    network = forecasters.MixtureMLPRegressor(device=device, random_state=seed, verbose=True)
    boosted = forecasters.BoostedDistributionRegressor(random_state=seed)
    if name == "auto":
        return better_model({"network": network, "boosted": boosted}, X, y, seed)
    if name is not None:
        return network if name == "network" else boosted
    if find_spec("torch"):
        return network
    needed = "networks need: pip install 'evenhand[neural]'"
    if find_spec("lightgbm"):
        inform(f"torch is not installed: boosted trees are trained; {needed}")
        return boosted
    inform(f"torch and lightgbm are not installed: scikit-learn's trees are trained; {needed}")
    return forecasters.RecalibratedRegressor(forecasters.TableMeans(seed), random_state=seed)


def better_model(models: dict[str, Any], X: pd.DataFrame, y: Floats, seed: int) -> Any:
    """Return the unfitted model with the lower CRPS on held-out rows, and report both."""
    from sklearn.base import clone

    start = time.monotonic()
    rows = np.random.default_rng(seed).permutation(len(y))[:CHOICE_ROWS]
    learn, held = np.split(rows, [len(rows) - len(rows) // 4])
    scores = {}
    for name, model in models.items():
        forecast = clone(model).fit(X.iloc[learn], y[learn]).forecast(X.iloc[held])
        scores[name] = forecast.crps(y[held]).mean()
    best = min(scores, key=scores.__getitem__)
    listed = ", ".join(f"{name} {score:.4g}" for name, score in scores.items())
    seconds = time.monotonic() - start
    inform(
        f"CRPS of {len(held):,} held-out rows: {listed}; {best} is trained on all rows (the"
        f" choice took {seconds:.0f} s)"
    )
    return models[best]


@with_options
def fit(
    context: typer.Context,
    table: Path,
    rows: Rows,
    out: Path,
    drop: str | None = None,
    outcome: Literal["continuous", "count", "hurdle", "binary"] | None = None,
    support: str | None = None,
    model: Literal["network", "boosted", "auto"] | None = None,
    device: Literal["auto", "cpu", "cuda"] = "auto",
    as_json: bool = False,
    seed: int | None = None,
) -> None:
    """Train a model on a table and save it to a folder.

    Columns of ids are not used as features. Forecasts depend on no draw: randomize certifies and
    randomizes them, with other rows.

    Rows
    ----
    drop : COLUMNS
        other columns not to use as features

    Model
    -----
    outcome : KIND
        continuous (the default), count for counts and scores, hurdle for amounts with zeros, binary
        for 0/1
    support : LOW:HIGH
        bounds of the target; 0: for money or durations, so that no interval ends below 0
    model : MODEL
        network, boosted, or auto for the one with the lower CRPS on held-out rows; by default the
        network, and boosted trees where torch is not installed
    device : DEVICE, rare
        device for training: auto, cpu or cuda
    seed : N
        seed, to repeat a run

    Examples
    --------
    evenhand fit train.csv --target loss --id person --out model
    """
    if outcome is not None:
        refuse_without_effect(context, UNUSED.get(outcome, ()), f"with --outcome {outcome}")
    seed = secrets.randbelow(2**32) if seed is None else seed
    bounds = None if support is None else _bounds(support)
    # training takes minutes: the output folder is checked before
    folder = own_folder(out, table)
    data, X, y, source, kind = _training_rows(table, rows, drop, bounds, outcome)
    people_of(data, rows.id, rows.person, rows.target, source)
    weight = numbers_in(data, rows.weight, source)
    warn_of_replacement(folder)
    with about(table.name, sample_weight=rows.weight):
        base = base_model(kind, X, y, model, device, seed)
        if bounds is not None:
            base.set_params(support=bounds)
        base.fit(X, y, sample_weight=weight)
    store.save(base, folder)
    columns = f"{X.shape[1]} columns with seed {seed}"
    inform(f"trained on {len(X):,} rows and {columns}; no draw; model written to {out}")
    if as_json:
        result = {
            "schema": SCHEMA,
            "out": str(out),
            "outcome": kind,
            "seed": seed,
            "n_learning": len(X),
            "n_columns": X.shape[1],
        }
        show_result(result, "", as_json)
    inform(
        "no rows were held out: run evenhand audit OTHER"
        f" --target {shlex.quote(rows.target)} --forecast {shlex.quote(str(out))}"
    )


def _training_rows(
    table: Path, rows: Rows, drop: str | None, bounds: forecasters.Bounds, outcome: str | None
) -> tuple[pd.DataFrame, pd.DataFrame, Floats, str, OutcomeKind]:
    """Return rows, features and checked outcomes, the name of the rows, and the kind of target."""
    data, remarks = tables.read_typed(table, text=(rows.id, rows.person))
    data, y, source, _ = with_outcomes(data, rows.target, rows.drop_missing, table.name)
    # ids are not features: a model could memorize people
    roles = rows.target, rows.id, rows.person, rows.weight
    X = _features(data, [*filter(None, roles), *listed_names("--drop", drop)], table.name)
    remarks += [
        f"column {name!r} is used as a feature but {why}; if it identifies people, pass it as --id,"
        " otherwise exclude it with --drop"
        for name, why in columns_like_ids(X)
    ]
    for remark in remarks:
        inform(f"warning: {table.name}: {remark}")
    place = f"{source}: column {rows.target!r}"
    forecasters.check_support(y, bounds, name=place)
    kind = kind_of_target(y, outcome, place)
    check_outcomes(y, name=place, kind=kind)
    return data, X, y, source, kind


def _bounds(support: str) -> forecasters.Bounds:
    """Read bounds such as `0:` or `0:100`."""
    try:
        low, high = (float(end) if end.strip() else None for end in support.split(":"))
    except ValueError as error:  # not two parts, or not numbers
        rule, remedy = "be low:high, or low: or :high", "for amounts of money write 0:"
        raise bad_input("support", rule, short(support), remedy) from error
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
