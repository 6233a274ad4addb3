"""Subcommand `recalibrate`: maps for forecasts, by group."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from evenhand._format import count
from evenhand._validate import InputError, about
from evenhand.cli import options
from evenhand.cli.checks import (
    listed_names,
    own_folder,
    refuse_without_effect,
    warn_of_replacement,
)
from evenhand.cli.options import GROUPS, Rows, Search, Times, option, with_options
from evenhand.cli.output import inform, show_result
from evenhand.cli.rooms import forecasters, store, tables
from evenhand.cli.rows import Given, Request, chosen_columns, read_rows

if TYPE_CHECKING:
    from evenhand.tables import GroupRule

SCHEMA = "evenhand.recalibration/1"
"""Layout of the JSON that is printed."""


@with_options
def recalibrate(
    context: typer.Context,
    table: options.Table,
    rows: Rows,
    forecast: options.Forecast,
    out: options.Folder,
    times: Times,
    by: Annotated[
        list[str] | None,
        option(
            "columns whose combinations are groups, such as sex,job; or a rule such as"
            ' "bmi > 0.03 and sex = 2" or "predicted mean > 40", with its name as "name=rule";'
            " rules may overlap and be repeated",
            GROUPS,
            "GROUPS",
        ),
    ] = None,
    as_json: options.AsJson = False,
    seed: options.FixedSeed = 0,
) -> None:
    """Repair forecasts by group, with rows that the model was not trained on.

    A check on held-out rows reports for each group whether the repair helps. What is written is a
    model, with which predict writes repaired forecasts of other rows.
    """
    refuse_without_effect(context, ("entered", "person"), "on a repair, which certifies nothing")
    options.check_seed(seed)
    given, times = Given.of(forecast).with_times(times)
    folder = own_folder(out, table, given.folder)
    request = Request(given, table, rows, times, Search())
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
    n_rows = len(read.data)
    checked = model.check_.astype(object).where(model.check_.notna(), None).to_dict("records")
    values = {
        "schema": SCHEMA,
        "out": str(out),
        "outcome": str(model.outcome_kind_),
        "n_rows": n_rows,
        "check": checked,
    }
    show_result(values, model.summary(), as_json)
    inform(f"repaired with {count(n_rows, 'row')}; written to {out}")
    inform(f"to use it: evenhand predict NEW --forecast {shlex.quote(str(out))} --out FILE")


def _groups(
    texts: Sequence[str], present: Sequence[str], outcome: Mapping[str, str], source: str
) -> tuple[list[str], dict[str, GroupRule]]:
    """Return the columns of groups or their rules, of which one is empty."""
    is_rule = [any(sign in text for sign in "<>=") for text in texts]
    if len(texts) > 1 and not all(is_rule):
        raise InputError(
            f"--by {texts[is_rule.index(False)]} names columns and cannot stand beside another"
            " --by; write all groups as rules"
        )
    if len(texts) == 1 and (not is_rule[0] or set(listed_names("--by", texts[0])) <= set(present)):
        return chosen_columns("--by", texts[0], dict(outcome), present, source), {}
    return [], dict(_rule(text, present, outcome, source) for text in texts)


def _rule(
    text: str, present: Sequence[str], outcome: Mapping[str, str], source: str
) -> tuple[str, GroupRule]:
    """Return the name and the rule of a group."""
    columns = list(dict.fromkeys([*present, *tables.OWN_VALUES]))
    try:
        rule = tables.GroupRule.parse(text, columns, source=source)
        name = text.strip()
    except InputError as error:
        name, _, rest = (part.strip() for part in text.partition("="))
        # a rule with a wrong column, unless a name stands before it
        is_named = any(sign in rest for sign in "<>=")
        if not name or not is_named or name in columns:
            raise InputError(f"--by: {error}") from error
        try:
            rule = tables.GroupRule.parse(rest, columns, source=source)
        except InputError as wrong:
            raise InputError(f"--by {name!r}: {wrong}") from wrong
    for column, role in outcome.items():
        if column in rule.columns:
            reason = "groups defined by the outcome are miscalibrated under any model"
            raise InputError(f"--by {name!r} uses the {role} {column!r}: {reason}; leave it out")
    return name, rule
