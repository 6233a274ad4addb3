"""What audits leave: reports, JSON, and the exit code of a gate."""

from __future__ import annotations

import shlex
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from evenhand._validate import DiscreteOutcomeWarning, InputError, about
from evenhand.cli.messages import Verdict, say, show
from evenhand.cli.tables import certificate_of

if TYPE_CHECKING:
    from evenhand.audits import Audit, Condition
    from evenhand.selection import Selection


def command_line() -> str:
    """Return the command as it can be typed again."""
    return shlex.join(["evenhand", *sys.argv[1:]])


def report(found: Audit, conditions: list[Condition], out: Path | None, as_json: bool) -> None:
    """Write and print an audit, then judge the conditions.

    Raises Verdict if all can be judged, with exit code 1 if one of them holds; InputError if one
    cannot, in which case the report is there all the same.
    """
    if out is not None:
        (found.to_html if out.suffix.lower() == ".html" else found.to_json)(out)
        say(f"the audit is in {out}")
    show(found.to_json() if as_json else found.summary())
    if conditions:
        judge(found, conditions)


def judge(found: Audit, conditions: list[Condition]) -> NoReturn:
    """Name the conditions that hold, and those that cannot be judged."""
    unjudged: list[InputError] = []
    n_failed = 0
    for condition in conditions:
        try:
            value = condition.value(found)
        except InputError as error:
            unjudged.append(error)
            continue
        if condition.is_met_by(value):
            # in full: rounded it could read as the limit that it is beyond
            say(f"failed: {condition.text} holds, the value is {value:.10g}")
            n_failed += 1
    for refusal in unjudged[:-1]:
        say(f"error: {refusal}")
    if unjudged:
        raise unjudged[-1]
    raise Verdict(1 if n_failed else 0)


def masses(conditions: list[Condition], quantity: str, usual: tuple[float, ...]) -> list[float]:
    """Group sizes to audit: the usual ones and those that conditions ask about."""
    asked = {condition.arguments[-1] for condition in conditions if condition.quantity == quantity}
    return sorted({*usual, *asked})


def fit_certified(
    base: Any,
    X: Any,
    y: Any,
    people: list[str] | None,
    asked: dict[str, Any],
    out: Path,
    seed: int | None,
    table: Path,
    target: str,
) -> None:
    """Fit, take the least randomization that is certified, and save model, certificate and report in one step."""
    from evenhand import selection, store
    from evenhand.audits import with_people

    given = {name: value for name, value in asked.items() if value is not None}
    with about(table.name):
        chosen = selection.randomize(base, X, y, on_discrete="ignore", random_state=seed, **given)
    packed = store.pack(chosen.model)
    certificate = certificate_of(chosen, people)
    page = None
    try:
        found = _audit_of_fit(chosen, X, y, out, packed.sha256, seed, table, target)
        page = (found if people is None else with_people(found, people)).to_html().encode()
        last = f"the audit of those people is in {out / store.REPORT}"
    except (
        InputError
    ) as refusal:  # fewer rows may be unfit for an audit, as where many outcomes are the same
        last = f"no report: {refusal}"
    finally:
        # training took long: a fault of the audit does not lose the model
        store.write_model(packed, out, certificate, page)
    show(chosen.summary())
    learned = f"learned from {chosen.n_learning:,} rows and {X.shape[1]} columns"
    say(
        f"{learned}, certified on {chosen.n_certifying:,} other people; the model and"
        f" certificate.json are in {out}"
    )
    say(last)


def _audit_of_fit(
    chosen: Selection,
    X: Any,
    y: Any,
    out: Path,
    sha256: str,
    seed: int | None,
    table: Path,
    target: str,
) -> Audit:
    """Audit the model on the rows that it is certified on, which it has not learned from."""
    from evenhand.audits import audit
    from evenhand.audits.provenance import with_sources
    from evenhand.tables import take_rows

    held = chosen.certifying
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreteOutcomeWarning)  # given for the whole table
        found = audit(
            chosen.model,
            take_rows(X, held),
            y[held],
            confidence=chosen.confidence,
            random_state=seed,
            name=out.name,
            target_name=target,
        )
    found = chosen.audited(found)
    return with_sources(
        found, command=command_line(), model=sha256, data=table, rows=held, n_rows=len(X)
    )
