"""Certification by commands: options, training table, report and content of `certificate.json`."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand._format import at_most, confidence_in_full, count, finite, in_full, option_name
from evenhand._validate import (
    DiscreteOutcomeWarning,
    Floats,
    InputError,
    Ints,
    about,
    check_fraction,
)
from evenhand.cli.output import command_line, inform, show_result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd

    from evenhand.audits import Audit
    from evenhand.certificates import Certificate, Promise
    from evenhand.distributions import OutcomeKind
    from evenhand.selection import Selection


SCHEMA = "evenhand.fit/1"
"""Layout of the JSON that `fit` prints."""


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
    values = {option_name(name): value for name, value in goals.items()}
    given = [name for name, value in {"--alpha": alpha, **values}.items() if value is not None]
    if len(given) == 2:
        raise InputError(f"give {given[0]} or {given[1]}, not both")
    if len(given) > 2:
        raise InputError(f"give only one of {_listed(given, 'and')}")
    for name, value in others.items():
        if value is not None and (not given or alpha is not None):
            option = option_name(name)
            raise InputError(
                f"{option} {value} has no effect without {_listed(list(values), 'or')}; add one of"
                f" them, or leave {option} out"
            )
    return bool(given) and alpha is None


def check_target(
    goals: dict[str, float | None], group_mass: float | None, confidence: float | None
) -> None:
    """Refuse numbers outside of their ranges by the names of their options, before tables are read.

    Parameters
    ----------
    goals : dict of str to float or None
        As for `check_goal`.
    group_mass, confidence : float or None
        The options `--group-mass` and `--confidence`.
    """
    from evenhand import selection

    for name, value in goals.items():
        if value is not None:
            selection.checked_goal(name, value, option_name(name))
    if group_mass is not None:
        check_fraction("--group-mass", group_mass, high_open=False)
    if confidence is not None:
        check_fraction("--confidence", confidence)


def _listed(names: list[str], word: str) -> str:
    return f"{', '.join(names[:-1])} {word} {names[-1]}"


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
    kind : OutcomeKind, optional
        Kind of outcome; None if it is that of the forecasts.
    times : dict of str to object
        Arguments `event`, `horizon` and `entered` of `randomize`, for times that may be cut off.
    """

    base: Any
    X: pd.DataFrame
    y: Floats
    table: Path
    target: str
    seed: int | None
    searched: pd.DataFrame | None = None
    kind: OutcomeKind | None = None
    times: Mapping[str, Any] = field(default_factory=dict)


def fitted_record(
    out: Path, n_rows: int, training: Training, alpha: float | None, link: str | None
) -> dict[str, Any]:
    """Return what was trained as plain values; without an alpha the link is None."""
    return {
        "schema": SCHEMA,
        "out": str(out),
        "outcome": None if training.kind is None else str(training.kind),
        "seed": training.seed,
        "n_learning": n_rows,
        "n_columns": training.X.shape[1],
        "alpha": alpha,
        "link": None if alpha is None else link,
    }


def training_text(training: Training) -> str:
    """Return the number of columns, the seed and, for discrete outcomes, what is predicted."""
    from evenhand.distributions import OutcomeKind

    predicted = {
        OutcomeKind.COUNT: ", to predict the probability of each count or score",
        OutcomeKind.HURDLE: ", to predict the probability of 0 and amounts above 0",
        OutcomeKind.BINARY: ", to predict the probability of 1",
    }
    kind = training.kind or OutcomeKind.CONTINUOUS
    return f"{training.X.shape[1]} columns with seed {training.seed}{predicted.get(kind, '')}"


def choose(training: Training, asked: dict[str, Any]) -> Selection:
    """Choose the randomization of a model.

    `asked` are options of `evenhand.randomize`; None stands for its default.
    """
    from evenhand import selection
    from evenhand.calibration import Outcomes

    given = {name: value for name, value in asked.items() if value is not None}
    person = given.pop("person", None)
    with about(training.table.name):
        return selection.randomize(
            training.base,
            training.X,
            Outcomes(training.y, person=person, **training.times),
            random_state=training.seed,
            **given,
        )


def report_page(audited: Callable[[], Audit], out: Path) -> tuple[bytes | None, str]:
    """Return the report of an audit, None if the rows cannot be audited, and a message."""
    from evenhand import store

    try:
        found = audited()
    except InputError as refusal:
        # the certifying rows may be unfit for an audit, for example with many equal outcomes
        return None, f"no report was written: {refusal}"
    return (
        found.to_html().encode(),
        f"audit of the certifying people written to {out / store.REPORT}",
    )


def audit_of_held(
    model: Any,
    training: Training,
    held: Ints,
    confidence: float,
    name: str,
    sha256: str | None = None,
) -> Audit:
    """Audit a model on rows that were held out from training."""
    from evenhand.audits import audit, with_sources
    from evenhand.calibration import Outcomes
    from evenhand.tables import take_rows

    searched = training.searched
    with warnings.catch_warnings():
        # `fit` has warned about the whole table
        warnings.simplefilter("ignore", DiscreteOutcomeWarning)
        found = audit(
            model,
            take_rows(training.X, held),
            Outcomes(training.y, **training.times).take(held),
            features=None if searched is None else take_rows(searched, held),
            confidence=confidence,
            random_state=training.seed,
            name=name,
            target_name=training.target,
        )
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
    from evenhand._version import __version__

    return {
        "statement": chosen.statement,
        "alpha": chosen.alpha,
        "link": chosen.model.link,
        "n_certifying": chosen.n_certifying,
        "n_learning": chosen.n_learning,
        "outcome": str(chosen.kind),
        **_atom(chosen),
        **_follow_up(chosen),
        **asdict(chosen.target),
        "group_error": chosen.group_error,
        "promise": promise_record(chosen.promise),
        "coverage_80": list(chosen.certificate.coverage(0.8, chosen.group_mass)),
        "price": chosen.price,
        # counts that are nearly always equal have intervals without a width
        "wider": chosen.wider if math.isfinite(chosen.wider) else None,
        "plain_interval": _plain_interval(chosen),
        "learned_group": _learned_group(chosen),
        "rounding_step": chosen.rounding_step,
        "comparison": table_records(chosen.comparison),
        "assumes": list(chosen.certificate.assumptions),
        "does_not_cover": list(chosen.certificate.not_covered),
        "certified_on": certified_people(chosen.certifying, people),
        "written_by": f"evenhand {__version__}",
    }


def _atom(chosen: Selection) -> dict[str, Any]:
    """Return the atom beside which outcomes are certified, and the bounds of its probability.

    Group sizes are then shares of the people whose outcome is not the atom; those of the event
    that an outcome is not the atom are shares of all people.
    """
    if chosen.atom is None or chosen.certificate.events is None:
        return {}
    atom = {"atom": chosen.atom, "n_off_atom": chosen.n_off_atom}
    return atom | event_bounds(chosen.certificate, chosen.group_mass)


def _follow_up(chosen: Selection) -> dict[str, Any]:
    """Return how many people had the event, reached the horizon or were lost, for times."""
    found = chosen.certificate.follow_up
    return {} if found is None else {"follow_up": asdict(found)}


def promise_record(promise: Callable[[], Promise]) -> dict[str, Any] | None:
    """Return what a watch can test of a certificate as JSON values; None for nothing."""
    try:
        return promise().to_dict()
    except InputError:
        # randomized models without a link promise nothing that served forecasts can show
        return None


def certified_people(rows: Ints, people: list[str] | None) -> dict[str, Any]:
    """Return the number and the salted hash of the people that a model is certified on."""
    from evenhand import store

    # rows are counted from 1 in all output
    if people is None:
        return store.people_record((rows + 1).tolist(), "rows")
    return store.people_record([people[row] for row in rows], "ids")


def _plain_interval(chosen: Selection) -> dict[str, Any] | None:
    """Return the prediction interval without a draw that guarantees the same lower limit."""
    if chosen.plain is None:
        return None
    interval, wider = chosen.plain
    return {
        "level": interval.level,
        "coverage_low": interval.floor,
        "covered": interval.covered,
        "wider": wider,
    }


def _learned_group(chosen: Selection) -> dict[str, Any] | None:
    """Return the learned group with the largest error without a draw."""
    found = chosen.learned_group
    if found is None:
        return None
    names = ("mass", "n", "n_judged", "error", "low", "p_value", "direction", "description")
    return {name: getattr(found, name) for name in names}


def event_bounds(proof: Certificate, mass: float) -> dict[str, Any]:
    """Return the bounds of event rates and biases in every group of a size, as JSON values."""
    assert proof.events is not None
    return {
        "n_events": proof.events.n_events,
        "bias": list(proof.bias(mass)),
        "event_rates": table_records(proof.event_table([mass])),
    }


def table_records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table as JSON values; JSON has no NaN."""
    return [
        {str(name): finite(value) for name, value in row.items()}
        for row in table.to_dict("records")
    ]


def save_certified(
    model: Any,
    training: Training,
    held: Ints,
    record: dict[str, Any],
    out: Path,
    caveat: Callable[[Audit], Audit] = lambda found: found,
) -> str:
    """Save a model with its certificate and the report of the certifying rows.

    Returns a message about the report, to which `caveat` adds what the certificate allowed for.
    """
    from evenhand import store

    # packed once, so that certificate and report contain the hash of the written files
    packed = store.pack(model)

    def audited() -> Audit:
        confidence = record["confidence"]
        return caveat(audit_of_held(model, training, held, confidence, out.name, packed.sha256))

    page = None
    try:
        page, last = report_page(audited, out)
    finally:
        # training takes long: an error in the audit must not lose the model
        store.write_model(packed, out, record, page)
    return last


def show_certified(
    training: Training, record: dict[str, Any], text: str, out: Path, as_json: bool, last: str
) -> None:
    """Print the result of a fit with a certificate."""
    n_learning = record["n_learning"]
    result = fitted_record(out, n_learning, training, record.get("alpha"), record.get("link"))
    show_result(result | {"certificate": record}, text, as_json)
    certified = f"certified on {count(record['n_certifying'], 'other person', 'other people')}"
    trained = f"trained on {n_learning:,} rows and {training_text(training)}"
    inform(f"{trained}, {certified}; model and certificate.json written to {out}")
    inform(last)


def fit_events(
    training: Training,
    people: list[str] | None,
    asked: dict[str, Any],
    out: Path,
    as_json: bool,
) -> None:
    """Fit a model of the probability of an event, certify it on held-out people and save it.

    `asked` are the options `group_mass`, `confidence` and `person`; None stands for a default.
    """
    from evenhand.certificates import certify_events
    from evenhand.tables import take_rows

    learn, held = _split(training, asked["person"])
    with about(training.table.name):
        model = training.base.fit(take_rows(training.X, learn), training.y[learn])
    # defaults as in `evenhand.randomize`
    mass = 0.2 if asked["group_mass"] is None else asked["group_mass"]
    confidence = 0.95 if asked["confidence"] is None else asked["confidence"]
    probability = model.forecast(take_rows(training.X, held)).event_probability()
    proof = certify_events(probability, training.y[held], confidence=confidence)
    people_record = {"n_learning": len(learn), "certified_on": certified_people(held, people)}
    record = _record(proof, mass) | people_record
    last = save_certified(model, training, held, record, out)
    show_certified(training, record, proof.summary(), out, as_json, last)


def _split(training: Training, person: list[str] | None) -> tuple[Ints, Ints]:
    """Return training rows and certifying rows, one per person, as `evenhand.randomize` does."""
    from evenhand._validate import MIN_DISTINCT
    from evenhand.calibration import Outcomes
    from evenhand.draws import generator
    from evenhand.selection import CERTIFY_SHARE, split_rows

    random = generator(training.seed)
    with about(training.table.name):
        outcomes = Outcomes(training.y, person=person)
        rows = split_rows(training.X, outcomes, CERTIFY_SHARE, MIN_DISTINCT, random)
    return rows.learn, rows.certify


def _record(proof: Certificate, mass: float) -> dict[str, Any]:
    """Return a certificate of event rates as JSON values."""
    from evenhand._version import __version__

    low, high = proof.bias(mass)
    return {
        "statement": (
            f"In every group of at least {in_full(mass)} of people, the share with the event is at"
            f" most {at_most(high)} points above and at most {at_most(-low)} points below the mean"
            f" forecast, with {confidence_in_full(proof.confidence)} confidence."
        ),
        "outcome": "binary",
        "n_certifying": proof.n_samples,
        "group_mass": mass,
        "confidence": proof.confidence,
        **event_bounds(proof, mass),
        "promise": proof.promise(mass).to_dict(),
        "assumes": list(proof.assumptions),
        "does_not_cover": list(proof.not_covered),
        "written_by": f"evenhand {__version__}",
    }
