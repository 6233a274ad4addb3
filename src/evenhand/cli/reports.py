"""Output of audits: report, text or JSON, and the exit code of a gate."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from evenhand._validate import InputError
from evenhand.cli.messages import Verdict, inform, show

if TYPE_CHECKING:
    from evenhand.audits import Audit, Condition


def command_line() -> str:
    """Return the command line, ready to be run again."""
    # without the path of the interpreter, because reports are read on other machines
    return shlex.join(["evenhand", *sys.argv[1:]])


def report(found: Audit, conditions: list[Condition], out: Path | None, as_json: bool) -> None:
    """Write and print an audit, then evaluate the conditions.

    Raises Verdict, with exit code 1 if a condition is true, or InputError if a condition cannot be
    evaluated. The report is written in either case.
    """
    # file and text come first, so that a failed gate leaves its report
    if out is not None:
        (found.to_html if out.suffix.lower() == ".html" else found.to_json)(out)
        inform(f"audit written to {out}")
    show(found.to_json() if as_json else found.summary())
    if conditions:
        judge(found, conditions)


def judge(found: Audit, conditions: list[Condition]) -> NoReturn:
    """Print conditions that are true and conditions that cannot be evaluated, and exit."""
    refusals: list[InputError] = []
    n_failed = 0
    # all conditions are evaluated, so that one run prints all failures
    for condition in conditions:
        try:
            value = condition.value(found)
        except InputError as error:
            refusals.append(error)
            continue
        if condition.is_met_by(value):
            # with all digits: a rounded value could equal the limit that it exceeds
            inform(f"failed: {condition.text} is true, the value is {value:.10g}")
            n_failed += 1
    for refusal in refusals[:-1]:
        inform(f"error: {refusal}")
    # a condition that cannot be evaluated is bad input, not a passed gate
    if refusals:
        raise refusals[-1]
    raise Verdict(1 if n_failed else 0)
