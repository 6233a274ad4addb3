"""Results of audits: reports, JSON and the exit code of a gate."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from evenhand._validate import InputError
from evenhand.cli.messages import Verdict, say, show

if TYPE_CHECKING:
    from evenhand.audits import Audit, Condition


def command_line() -> str:
    """Return the command as it can be typed again."""
    # not the path of the interpreter: a report is read on other machines
    return shlex.join(["evenhand", *sys.argv[1:]])


def report(found: Audit, conditions: list[Condition], out: Path | None, as_json: bool) -> None:
    """Write and print an audit, then judge the conditions.

    Raises Verdict if all can be judged, with exit code 1 if one of them holds; InputError if one
    cannot, in which case the report is there all the same.
    """
    # first the file, then the text, then the verdict: a gate that fails leaves its report
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
    # every condition is judged before the command ends, so that one run names all that hold
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
    # a condition that cannot be judged is bad input, not a passed gate
    if unjudged:
        raise unjudged[-1]
    raise Verdict(1 if n_failed else 0)
