"""Subcommands `recalibrate`, `randomize` and `plan`: repairs and proofs, by group."""

from __future__ import annotations

import secrets
import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import typer

from evenhand._files import file_digest
from evenhand._format import at_most, confidence_in_full, count, in_full, option_name
from evenhand._validate import DiscreteOutcomeWarning, InputError, Ints, about, check_count, short
from evenhand._version import __version__
from evenhand.cli.checks import (
    given_options,
    listed_names,
    own_folder,
    refuse_without_effect,
    warn_of_replacement,
)
from evenhand.cli.options import GroupColumns, Guarantee, Rows, Times, with_options
from evenhand.cli.output import NOT_WORTH_IT, command_line, fail, inform, show_result
from evenhand.cli.rooms import audits, certificates, forecasters, scale, selection, store, tables
from evenhand.cli.rows import Given, Read, Request, chosen_columns, read_rows

SCHEMA = "evenhand.recalibration/1"
"""Layout of the JSON that is printed."""


@with_options
def recalibrate(
    context: typer.Context,
    table: Path,
    rows: Rows,
    forecast: str,
    out: Path,
    times: Times,
    by: list[str] | None = None,
    as_json: bool = False,
    seed: int = 0,
) -> None:
    """Repair forecasts by group, with rows that the model was not trained on.

    A check on held-out rows reports for each group whether the repair helps. What is written is a
    model, with which predict writes repaired forecasts of other rows.

    Groups
    ------
    by : GROUPS
        columns whose combinations are groups, such as sex,job; or a rule such as "bmi > 0.03 and
        sex = 2" or "predicted mean > 40", with its name as "name=rule"; rules may overlap and be
        repeated

    Examples
    --------
    evenhand recalibrate past.csv --target loss --forecast mean=mu,std=sigma --by sex --out repaired
    """
    refuse_without_effect(context, ("entered",), "on a repair, which certifies nothing")
    given, times = Given.of(forecast).with_times(times)
    folder = own_folder(out, table, given.folder)
    request = Request(given, table, rows, times, GroupColumns())
    read = read_rows(request)
    present = list(map(str, read.data.columns))
    groups, rules = _groups(by or [], present, request.outcome, table.name)
    of_rules = [column for rule in rules.values() for column in rule.columns]
    # values of the forecast itself are no columns of the table
    used = [
        *given.subject.columns(present, table.name),
        *groups,
        *(column for column in of_rules if column in present),
    ]
    model = forecasters.RecalibratedRegressor(
        given.model, by=rules or groups or None, random_state=seed
    )
    warn_of_replacement(folder)
    with about(read.source):
        model.fit(read.data[list(dict.fromkeys(used))], read.outcomes)
    empty = model.groups_["group"][model.groups_["n_samples"] == 0]
    if rules and len(empty):
        raise InputError(
            f"--by {empty.iloc[0]!r}: no row of {table.name} is in this group; check the values"
        )
    store.save(model, folder)
    n_rows = int(model.check_["n"].iloc[0])
    values = {
        "schema": SCHEMA,
        "out": str(out),
        "outcome": model.outcome_kind_,
        "n_rows": n_rows,
        "check": model.check_.to_dict("records"),
    }
    show_result(values, model.summary(), as_json)
    inform(f"repaired with {count(n_rows, 'row')}; written to {out}")
    inform(f"to use it: evenhand predict NEW --forecast {shlex.quote(str(out))} --out FILE")


def _groups(
    texts: Sequence[str], present: Sequence[str], outcome: Mapping[Any, str], source: str
) -> tuple[list[str], dict[str, tables.GroupRule]]:
    """Return the columns of groups or their rules, of which one is empty."""
    columns = [text for text in texts if not tables.LOOKS_LIKE_COMPARISON.search(text)]
    if len(texts) > 1 and columns:
        raise InputError(
            f"--by {columns[0]} names columns and cannot stand beside another --by; write all"
            " groups as rules"
        )
    if len(texts) == 1 and (columns or set(listed_names("--by", texts[0])) <= set(present)):
        return chosen_columns("--by", texts[0], outcome, present, source), {}
    return [], dict(_rule(text, present, outcome, source) for text in texts)


def _rule(
    text: str, present: Sequence[str], outcome: Mapping[Any, str], source: str
) -> tuple[str, tables.GroupRule]:
    """Return the name and the rule of a group."""
    columns = list(dict.fromkeys([*present, *tables.OWN_VALUES]))
    try:
        rule = tables.GroupRule.parse(text, columns, source=source)
        name = text.strip()
    except InputError as error:
        name, _, rest = (part.strip() for part in text.partition("="))
        # a rule with a wrong column, unless a name stands before it
        is_named = tables.LOOKS_LIKE_COMPARISON.search(rest)
        if not name or not is_named or name in columns:
            raise InputError(f"--by: {error}") from error
        with about(f"--by {name!r}"):
            rule = tables.GroupRule.parse(rest, columns, source=source)
    for column, role in outcome.items():
        if column in rule.columns:
            reason = "groups defined by the outcome are miscalibrated under any model"
            raise InputError(f"--by {name!r} uses the {role} {column!r}: {reason}; leave it out")
    return name, rule


def checked_options(guarantee: Guarantee) -> dict[str, Any]:
    """Return the given options of `evenhand.randomize` and `evenhand.plan`.

    They are checked before a table is read.
    """
    given = {name: value for name, value in asdict(guarantee).items() if value is not None}
    selection.Target(**{name: given[name] for name in given if name != "link"})
    return given


@with_options
def randomize(
    context: typer.Context,
    table: Path,
    rows: Rows,
    forecast: str,
    out: Path,
    guarantee: Guarantee,
    times: Times,
    largest_weight: float | None = None,
    features: str | None = None,
    as_json: bool = False,
    seed: int | None = None,
) -> None:
    """Choose and certify the least randomization of forecasts, for every group of a size.

    The rows must be new to the model. What is written is a model, with its certificate and a report
    of these rows; predict writes its forecasts of other rows. If they are worse than a forecast
    that ignores every feature, nothing is written, and the exit code is 3.

    Of amounts with zeros only the part above 0 is randomized, and group sizes are shares of the
    people whose outcome is above 0. Of times that may be cut off (--event, with --horizon) the time
    of the event is randomized, not whether it happens by the horizon. Probabilities of 0/1 outcomes
    are certified as they are: a draw cannot improve them.

    Groups
    ------
    features : COLUMNS
        columns in which groups are searched

    Model
    -----
    seed : N
        seed, to repeat a run

    Examples
    --------
    evenhand randomize past.csv --target loss --forecast mean=mu,std=sigma --out proven
    evenhand randomize past.csv --target loss --forecast model --max-wider 0.2 --out proven
    """
    from evenhand.distributions import NO_BINARY_RANDOMIZATION, OutcomeKind

    asked = checked_options(guarantee)
    given, times = Given.of(forecast).with_times(times)
    folder = own_folder(out, table, given.folder)
    request = Request(given, table, rows, times, GroupColumns(features=features), largest_weight)
    seed = secrets.randbelow(2**32) if seed is None else seed
    read = read_rows(request, is_randomized=True)
    # values that are no forecasts are refused with the name of the file
    given.subject.of(read.data, read.source)
    is_binary = read.kind is OutcomeKind.BINARY
    if is_binary:
        for name in given_options(context, (*selection.GOALS, "link")):
            raise InputError(f"{name}: {NO_BINARY_RANDOMIZATION}")
    warn_of_replacement(folder)
    with warnings.catch_warnings():
        # the text begins with it
        warnings.simplefilter("ignore", selection.NotWorthItWarning)
        proof = (_certified_events if is_binary else _chosen)(given, read, asked, seed)
    if not proof.is_worth_it:
        show_result(proof.record, proof.text, as_json)
        fail(f"{read.source}: not worth its price; nothing was written", NOT_WORTH_IT)
    _save(proof, read, folder, as_json, seed)


@dataclass(frozen=True)
class Certified:
    """A certified model.

    Parameters
    ----------
    model : forecaster or ForecastColumns
        The model that is written.
    held : ndarray of shape (n_certifying,)
        The certifying rows.
    record : dict
        The certificate as JSON values.
    text : str
        The result in words.
    is_worth_it : bool
        Whether it is better than a forecast that ignores every feature.
    audited : callable
        Adds to an audit of the certifying rows what the certificate allowed for.
    """

    model: Any
    held: Ints
    record: dict[str, Any]
    text: str
    is_worth_it: bool = True
    audited: Callable[[audits.Audit], audits.Audit] = lambda found: found


def _chosen(given: Given, read: Read, asked: dict[str, Any], seed: int) -> Certified:
    """Choose the least randomization; `asked` are options of `evenhand.randomize`."""
    X = read.data[given.subject.columns(map(str, read.data.columns), read.source)]
    if read.searched is not None and given.folder is None:
        X = X.join(read.searched[[name for name in read.searched if name not in X]])
    with about(read.source):
        chosen = selection.randomize(given.model, X, read.outcomes, random_state=seed, **asked)
    held = chosen.certifying
    record = certificate_of(chosen.certificate, held, read.people, values_of(chosen))
    return Certified(
        chosen.model, held, record, chosen.summary(), chosen.is_worth_it, chosen.audited
    )


def _certified_events(given: Given, read: Read, asked: dict[str, Any], seed: int) -> Certified:
    """Certify probabilities of an event as they are."""
    subject, X = given.subject.of(read.data, read.source)
    # defaults as in `evenhand.randomize`
    mass, confidence = asked.get("group_mass", 0.2), asked.get("confidence", 0.95)
    with about(read.source):
        proof = audits.certify(subject, X, read.outcomes, confidence=confidence, random_state=seed)
    held = np.arange(len(read.data))
    record = certificate_of(proof, held, read.people, event_values(proof, mass))
    return Certified(given.forecaster, held, record, proof.summary())


def _save(proven: Certified, read: Read, folder: Path, as_json: bool, seed: int) -> None:
    """Write a certified model with its certificate and the report of the certifying rows."""
    # packed once, so that certificate and report contain the hash of the written files
    packed = store.pack(proven.model)
    table = read.request.table
    source = {
        "target": read.request.rows.target,
        "data": {"name": table.name, "sha256": file_digest(table), "n_rows": len(read.data)},
        "command": command_line(),
    }
    record = proven.record | source
    page = None
    try:
        page, last = _report(proven, read, packed.sha256, seed)
    finally:  # an error in the audit must not lose the model
        store.write_model(packed, folder, record, page)
    show_result(record | {"out": str(folder), "seed": seed}, proven.text, as_json)
    certified = f"certified on {count(record['n_certifying'], 'person', 'people')}"
    inform(f"{certified} with seed {seed}; model and certificate.json written to {folder}")
    inform(last if page is None else f"{last} {folder / store.REPORT}")
    key = "" if record["outcome"] == "binary" else " --id ID --key-file KEY"
    inform(f"to use it: evenhand predict NEW --forecast {shlex.quote(str(folder))}{key} --out FILE")


def _report(proven: Certified, read: Read, sha256: str, seed: int) -> tuple[bytes | None, str]:
    """Return the report of an audit, None if the rows cannot be audited, and a message."""
    held, request = proven.held, read.request
    subject, X = scale.as_subject(proven.model).of(tables.take_rows(read.data, held), read.source)
    searched = tables.take_rows(read.searched, held)
    try:
        with warnings.catch_warnings():
            # `read_rows` has warned about the whole table
            warnings.simplefilter("ignore", DiscreteOutcomeWarning)
            found = audits.audit(
                subject,
                X,
                read.outcomes.take(held),
                features=searched,
                search=audits.Search(confidence=proven.record["confidence"]),
                random_state=seed,
                name=request.given.name(request.table),
                target_name=request.rows.target,
            )
    except InputError as refusal:
        # the certifying rows may be unfit for an audit, for example with many equal outcomes
        return None, f"no report was written: {refusal}"
    found = audits.with_sources(
        found,
        command=command_line(),
        model_sha256=sha256,
        data=request.table,
        n_rows=len(read.data),
    )
    return proven.audited(found).to_html().encode(), "audit of the certifying people written to"


# --- certificates as JSON values


LEARNED = ("mass", "n", "n_judged", "error", "low", "p_value", "direction", "description")
"""Fields of the learned group with the largest error without a draw."""

CHOSEN = ("alpha", "n_certifying", "n_learning", "group_error", "coverage_80", "price", "wider")
"""Facts of a selection that its certificate has."""


def certificate_of(
    proof: certificates.Certificate, held: Ints, people: list[str] | None, values: dict[str, Any]
) -> dict[str, Any]:
    """Return a certificate as JSON values; people are recorded by a salted hash only."""
    from evenhand.results import plain

    # rows are counted from 1 in all output
    rows = store.people_record((held + 1).tolist(), "rows")
    ids = None if people is None else store.people_record([people[row] for row in held], "ids")
    made = values | {
        "assumes": list(proof.assumptions),
        "does_not_cover": list(proof.not_covered),
        "certified_on": ids or rows,
        "written_by": f"evenhand {__version__}",
    }
    # unknown numbers, such as the widths of counts that are nearly always equal, are null
    return plain(made)


def values_of(chosen: selection.Selection) -> dict[str, Any]:
    """Return what was chosen as JSON values."""
    proof, found = chosen.certificate, chosen.learned_group
    events: dict[str, Any] = {}
    # sizes of groups are shares of the people off the atom; those of events, of all people
    if chosen.atom is not None and proof.events is not None:
        events = {"atom": chosen.atom, "n_off_atom": chosen.n_off_atom}
        events |= event_bounds(proof, chosen.group_mass)
    try:
        promise = chosen.promise().to_dict()
    except InputError:  # nothing that served forecasts can show
        promise = None
    return {
        "statement": chosen.statement,
        "link": chosen.model.link,
        "outcome": chosen.kind,
        **events,
        "follow_up": proof.follow_up,
        **asdict(chosen.target),
        "promise": promise,
        **{name: getattr(chosen, name) for name in CHOSEN},
        "comparison": chosen.comparison.to_dict("records"),
        "plain_interval": chosen.plain,
        "learned_group": found and {name: getattr(found, name) for name in LEARNED},
        "rounding_step": chosen.rounding_step,
    }


def event_values(proof: certificates.Certificate, mass: float) -> dict[str, Any]:
    """Return a certificate of event rates as JSON values."""
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
    }


def event_bounds(proof: certificates.Certificate, mass: float) -> dict[str, Any]:
    """Return the bounds of event rates and biases in every group of a size, as JSON values."""
    assert proof.events is not None
    return {
        "n_events": proof.events.n_events,
        "bias": list(proof.bias(mass)),
        "event_rates": proof.event_table([mass]).to_dict("records"),
    }


# --- plans


@with_options
def plan(
    context: typer.Context,
    guarantee: Guarantee,
    rows: str = "200,500,1000,2000,5000,20000",
    n_groups: int = 20,
    rate: float | None = None,
    as_json: bool = False,
) -> None:
    """Plan how many rows show which error, before there are any.

    By default, the error that an audit finds. With --goal, --max-wider or --max-price,
    what is proven for every group, named or not, and how much wider intervals become; for a model
    that is calibrated before the randomization.

    Groups
    ------
    rows : NUMBERS
        numbers of rows, comma-separated
    n_groups : N
        groups that are tested together
    rate : SHARE
        rate of the event, for yes/no outcomes

    Examples
    --------
    evenhand plan
    evenhand plan --max-wider 0.2 --rows 1000
    """
    asked = checked_options(guarantee)
    if not set(selection.GOALS) & set(asked):
        reason = f"without a goal, one of {', '.join(map(option_name, selection.GOALS))}"
        refuse_without_effect(context, ("group_mass", "confidence", "link"), reason)
        asked = {}
    else:
        refuse_without_effect(context, ("rate",), "on a guarantee")
    found = selection.plan(
        **asked,
        rate=rate,
        rows=[
            check_count("rows", int(one) if one.isdecimal() else short(one))
            for one in listed_names("--rows", rows)
        ],
        n_groups=n_groups,
    )
    show_result(found.to_dict(), found.summary(), as_json)
