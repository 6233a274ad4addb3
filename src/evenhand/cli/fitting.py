"""Subcommand `fit`: training and, with `--max-group-error`, certification."""

from __future__ import annotations

import math
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from evenhand._format import percent
from evenhand._validate import (
    MAX_ATOM,
    MIN_DISTINCT,
    Floats,
    InputError,
    about,
    bad_input,
    check_column,
    check_outcomes,
    largest_atom,
    short,
)
from evenhand.cli import arguments
from evenhand.cli.certifying import (
    Training,
    certificate_of,
    check_goal,
    check_target,
    choose,
    fit_events,
    fitted_record,
    save_certified,
    show_certified,
    training_text,
)
from evenhand.cli.options import (
    given_options,
    listed_names,
    own_folder,
    refuse_without_effect,
    warn_of_replacement,
)
from evenhand.cli.output import inform, show_result
from evenhand.cli.rows import people_of, with_outcomes

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.distributions import OutcomeKind
    from evenhand.forecasters import Bounds


KINDS = ("continuous", "count", "hurdle", "binary")
"""Values of `--outcome`."""

CLASS_ROWS = 10
"""Fewest rows with each value for which `fit` predicts the probability of each value of a score.
Half of the rows may be held out, and a value that no training row has would be impossible."""

RANDOMIZING = ("alpha", "max_group_error", "max_wider", "max_price", "link")
"""Parameters of `fit` that randomize forecasts."""


def refuse_for_kind(options: typer.Context, outcome: str | None) -> None:
    """Refuse an unknown kind of outcome, and options of `fit` that have no effect on its models."""
    from evenhand._validate import check_choice
    from evenhand.distributions import NO_BINARY_RANDOMIZATION, OutcomeKind

    if outcome is None:
        return
    check_choice("--outcome", outcome, KINDS)
    kind = OutcomeKind(outcome)
    if kind is OutcomeKind.BINARY:
        for option in given_options(options, RANDOMIZING):
            raise InputError(f"{option}: {NO_BINARY_RANDOMIZATION}")
    unused = {
        OutcomeKind.COUNT: ("support", "device", "model"),
        OutcomeKind.HURDLE: ("support",),
        OutcomeKind.BINARY: ("support", "device", "model"),
    }
    refuse_without_effect(options, unused.get(kind, ()), f"with --outcome {outcome}")


def kind_of_target(y: Floats, outcome: str | None, place: str) -> OutcomeKind:
    """Return the kind of a target, and refuse values that it cannot have.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Finite outcomes.
    outcome : {"continuous", "count", "hurdle", "binary"} or None
        Value of `--outcome`; None trains on continuous outcomes only.
    place : str
        File and column, for messages.

    Raises
    ------
    InputError
        If the outcomes are discrete and `outcome` is None, with the option for them; or if they are
        not of the kind that `outcome` names.
    """
    from evenhand.distributions import OutcomeKind

    if outcome is None:
        reason = None if y.size < MIN_DISTINCT or (y == y[0]).all() else discrete_target(y)
        if reason is not None:
            raise InputError(f"{place} {reason}")
        return OutcomeKind.CONTINUOUS
    kind = OutcomeKind(outcome)
    match kind:
        case OutcomeKind.BINARY:
            _refuse(~np.isin(y, (0.0, 1.0)), y, place, "be 0 or 1", "code the event as 1")
        case OutcomeKind.HURDLE:
            _refuse(y < 0, y, place, "be 0 or above", "--outcome hurdle is for amounts with zeros")
            if not (y == 0).any() or (y == 0).all():
                which = "only zeros" if (y == 0).all() else "no zeros"
                raise InputError(
                    f"{place} has {which}, but --outcome hurdle needs zeros and amounts above 0;"
                    " leave --outcome out for a continuous target"
                )
        case OutcomeKind.COUNT if not has_classes(y):
            is_count = (y >= 0) & (y == np.round(y))
            remedy = f"scores with other values need at least {CLASS_ROWS} rows with each value"
            _refuse(~is_count, y, place, "be a whole number of at least 0", remedy)
    return kind


def discrete_target(y: Floats) -> str | None:
    """Return why a target is discrete, and the option of `fit` for it; None if it is continuous.

    Examples
    --------
    >>> discrete_target(np.arange(100.0) % 2)
    'has only the values 0 and 1; for the probability of 1 add --outcome binary'
    """
    values = np.unique(y)
    atom, share = largest_atom(y)
    if values.size == 2:
        listed = f"{values[0]:g} and {values[1]:g}"
        coded = (
            "" if set(values) == {0.0, 1.0} else ", with the event coded as 1 and the other as 0"
        )
        meaning = "the probability of 1" if not coded else "the probability of one of them"
        return f"has only the values {listed}; for {meaning} add --outcome binary{coded}"
    is_count = bool((values == np.round(values)).all() and values[0] >= 0)
    if values.size < MIN_DISTINCT:
        facts = f"has only {values.size} distinct values"
    elif share > MAX_ATOM:
        facts = f"is {atom:g} in {percent(share, 'up')} of the rows"
    else:
        return None
    if is_count and values.size >= MIN_DISTINCT and atom == values[0] == 0:
        remedy = "for counts add --outcome count, for amounts with zeros --outcome hurdle"
    elif is_count or (values.size < MIN_DISTINCT and has_classes(y)):
        remedy = "for counts or scores add --outcome count"
    elif atom == values[0] == 0 and share > MAX_ATOM:
        remedy = "for amounts with zeros add --outcome hurdle"
    else:
        remedy = (
            "a forecast of a continuous target needs different values: model the frequent values"
            " apart, or give a target without them"
        )
    return f"{facts}; {remedy}"


def has_classes(y: Floats) -> bool:
    """Whether each value is frequent enough to predict the probability of each value."""
    values, counts = np.unique(y, return_counts=True)
    return bool(values.size < MIN_DISTINCT and counts.min() >= CLASS_ROWS)


MODELS = ("network", "boosted", "auto")
"""Values of `--model`."""

CHOICE_ROWS = 8000
"""Largest number of rows on which models are compared, a quarter of them held out."""


def base_model(
    kind: OutcomeKind, X: pd.DataFrame, y: Floats, model: str | None, device: str, seed: int
) -> Any:
    """Return the unfitted deterministic model that `fit` trains on a kind of target.

    Parameters
    ----------
    kind : OutcomeKind
        Kind of the target.
    X : DataFrame of shape (n, n_features)
        Features.
    y : ndarray of shape (n,)
        Outcomes.
    model : {"network", "boosted", "auto"} or None
        Model of continuous targets and of amounts; None is the first that is installed.
    device : str
        Device of the network.
    seed : int
        Seed of the model.
    """
    from evenhand import forecasters
    from evenhand.distributions import OutcomeKind

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
    from evenhand import forecasters

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
    means = forecasters.TableMeans(seed)
    return forecasters.RecalibratedRegressor(means, random_state=seed)


def better_model(models: dict[str, Any], X: pd.DataFrame, y: Floats, seed: int) -> Any:
    """Return the unfitted model with the lower CRPS on held-out rows, and report both."""
    from sklearn.base import clone

    start = time.monotonic()
    rows = np.random.default_rng(seed).permutation(len(y))[:CHOICE_ROWS]
    learn, held = np.split(rows, [len(rows) - len(rows) // 4])
    scores = {}
    for name, model in models.items():
        forecast = clone(model).fit(X.iloc[learn], y[learn]).forecast(X.iloc[held])
        scores[name] = float(forecast.crps(y[held]).mean())
    best = min(scores, key=lambda name: scores[name])
    listed = ", ".join(f"{name} {score:.4g}" for name, score in scores.items())
    seconds = time.monotonic() - start
    inform(
        f"CRPS of {len(held):,} held-out rows: {listed}; {best} is trained on all rows (the"
        f" choice took {seconds:.0f} s)"
    )
    return models[best]


def _refuse(wrong: Any, y: Floats, place: str, rule: str, remedy: str) -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise bad_input(f"{place}, row {row + 1}", rule, f"{y[row]:g}", remedy)


DEVICES = ("auto", "cpu", "cuda")


def fit(
    options: typer.Context,
    table: arguments.Table,
    target: arguments.Target,
    out: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", rich_help_panel=arguments.OUTPUT, help="model folder to write"
        ),
    ],
    id_column: arguments.PersonId = None,
    person: arguments.Person = None,
    drop_missing: arguments.DropMissing = False,
    drop: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            rich_help_panel=arguments.ROWS,
            help="other columns not to use as features, comma-separated",
        ),
    ] = None,
    outcome: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            rich_help_panel=arguments.MODEL,
            help="kind of target: continuous (the default), count for counts and scores, hurdle for"
            " amounts with zeros, binary for 0/1, which is not randomized",
        ),
    ] = None,
    support: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH",
            rich_help_panel=arguments.MODEL,
            help="bounds of the target, with one of them left out if there is none; 0: for money or"
            " durations, so that no prediction interval ends below 0",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="MODEL",
            rich_help_panel=arguments.MODEL,
            help="network, boosted, or auto for the one with the lower CRPS on held-out rows; by"
            " default the network, and boosted trees where torch is not installed",
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            metavar="DEVICE",
            rich_help_panel=arguments.MODEL,
            help="device for training: auto, cpu or cuda",
        ),
    ] = "auto",
    alpha: Annotated[
        float | None,
        typer.Option(
            metavar="ALPHA",
            rich_help_panel=arguments.RANDOMIZATION,
            help="randomize forecasts with this weight of sharpness, 0 < alpha <= 1, such as 0.1: a"
            " smaller alpha means more randomization and wider intervals; by default forecasts are"
            " not randomized",
        ),
    ] = None,
    link: arguments.Link = "entropic",
    max_group_error: arguments.MaxGroupError = None,
    max_wider: arguments.MaxWider = None,
    max_price: arguments.MaxPrice = None,
    group_mass: arguments.GroupMass = None,
    confidence: arguments.Confidence = None,
    as_json: arguments.AsJson = False,
    seed: arguments.Seed = None,
) -> None:
    """Train a forecaster on a table and save it to a folder.

    Columns of ids are not used as features.

    Forecasts are randomized only with --alpha, or with one of --max-group-error, --max-wider and
    --max-price, which certify them for every group. Those of --outcome binary are never randomized:
    there --group-mass or --confidence ask for a certificate of event rates.
    """
    from evenhand import store
    from evenhand._validate import check_choice
    from evenhand.distributions import OutcomeKind

    goals = {"max_group_error": max_group_error, "max_wider": max_wider, "max_price": max_price}
    certified = {"group_mass": group_mass, "confidence": confidence}
    refuse_for_kind(options, outcome)
    # events are certified as they are, without a goal
    is_binary = outcome == OutcomeKind.BINARY
    wants_rates = any(value is not None for value in certified.values())
    is_certified = wants_rates if is_binary else check_goal(alpha, goals, certified)
    check_target(goals, group_mass, confidence)
    # checked before the training
    arguments.checked_link(link, 1.0 if alpha is None else alpha)
    if alpha is None and not is_certified:
        refuse_without_effect(options, ("link",), "without --alpha or a target such as --max-wider")
    check_choice("--device", device, DEVICES)
    if model is not None:
        check_choice("--model", model, MODELS)
    if model == "auto" and is_certified:
        raise InputError(
            "--model auto compares models on all rows, so that none are left to certify; give"
            " network or boosted"
        )
    seed = arguments.seed_of(seed)
    bounds = None if support is None else _bounds(support)
    # training takes minutes: the output folder is checked before
    out = own_folder(out, table, store.MODEL_FOLDER)
    named = [name for name in (id_column, person) if name is not None]
    data, X, y, source, kind = _training_rows(
        table, target, named, drop, bounds, outcome, drop_missing
    )
    people = people_of(data, id_column, person, target, source)
    warn_of_replacement(out)
    with about(table.name):
        base = base_model(kind, X, y, model, device, seed)
    training = Training(base, X, y, table, target, seed, kind=kind)
    labels = None if person is None else people
    asked = {**goals, **certified, "link": link, "person": labels, "support": bounds}
    if not is_certified:
        fit_plainly(training, alpha, asked, out, as_json)
    elif is_binary:
        fit_events(training, people, asked, out, as_json)
    else:
        fit_certified(training, people, asked, out, as_json)


def fit_plainly(
    training: Training, alpha: float | None, asked: dict[str, Any], out: Path, as_json: bool
) -> None:
    """Fit a model on all rows, randomized if there is an alpha, and save it."""
    from evenhand import selection, store
    from evenhand.distributions import OutcomeKind
    from evenhand.forecasters import RandomizedRegressor

    X, support = training.X, asked["support"]
    with about(training.table.name):
        model = training.base
        if alpha is not None:
            model = RandomizedRegressor(
                model, alpha, asked["link"], support=support, random_state=training.seed
            )
        elif support is not None:
            model.set_params(support=support)
        model.fit(X, training.y)
    store.save(model, out)
    inform(f"trained on {len(X):,} rows and {training_text(training)}; model written to {out}")
    wider = None if alpha is None else selection.wider_intervals(model, X, training.seed)
    if wider is not None:
        inform(
            f"alpha = {alpha:g}: 80% prediction intervals are about {percent(wider, decimals=0)}"
            " wider than without the draw, on average over these rows; --max-wider limits this"
        )
    if as_json:
        result = fitted_record(out, len(X), training, alpha, asked["link"])
        show_result(result | {"wider": wider, "certificate": None}, "", as_json)
    option = "--group-mass" if training.kind is OutcomeKind.BINARY else "--max-group-error"
    inform(
        "no report was written because no rows were held out: run evenhand audit on other rows, or"
        f" fit with {option}, which holds out rows and certifies the model on them"
    )


def _training_rows(
    table: Path,
    target: str,
    named: list[str],
    drop: str | None,
    bounds: Bounds,
    outcome: str | None,
    drop_missing: bool,
) -> tuple[pd.DataFrame, pd.DataFrame, Floats, str, OutcomeKind]:
    """Return rows, features and checked outcomes, the name of the rows, and the kind of target."""
    from evenhand import tables
    from evenhand.forecasters import check_support

    data, remarks = tables.read_typed(table, text=named)
    data, y, source, _ = with_outcomes(data, target, drop_missing, table.name)
    # ids are not features: a model could memorize people
    X = _features(data, [target, *named, *listed_names("--drop", drop)], table.name)
    for remark in [*remarks, *features_like_names(X)]:
        inform(f"warning: {table.name}: {remark}")
    place = f"{source}: column {target!r}"
    check_support(y, bounds, name=place)
    kind = kind_of_target(y, outcome, place)
    check_outcomes(y, name=place, kind=kind)
    return data, X, y, source, kind


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
        raise bad_input("--support", rule, short(support), "for amounts of money write 0:")
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
    chosen = choose(training, asked)
    record = certificate_of(chosen, people)
    # the report must mention that alpha was chosen on these rows
    held, caveat = chosen.certifying, chosen.audited
    last = save_certified(chosen.model, training, held, record, out, caveat)
    show_certified(training, record, chosen.summary(), out, as_json, last)
