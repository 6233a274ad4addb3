"""Contexts of a decision log: one model, key and way of naming people under a name."""

from __future__ import annotations

import importlib.metadata
import platform
from contextlib import suppress
from typing import Any, Literal

from evenhand._ids import INVISIBLE
from evenhand._validate import InputError, bad_input
from evenhand.service.chain import digest_of
from evenhand.service.decision_log import DecisionLog, Transaction
from evenhand.service.entries import Entry, Logged

Naming = Literal["hash", "id"]
"""How the log names people: by a keyed hash of the id, or by the id."""

LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "torch")
"""Packages that compute forecasts."""

BOUND = {
    "model_sha256": "model",
    "key": "key",
    "person": "way of naming people",
}
"""Values of a context that never change, with their names in messages."""


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute forecasts.

    Examples
    --------
    >>> sorted(versions())[:2]
    ['evenhand', 'machine']
    """
    from evenhand._version import __version__

    found = {
        "evenhand": __version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    for name in LIBRARIES:
        with suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def open_context(log: DecisionLog, values: dict[str, Any]) -> Logged:
    """Open a context, and log it unless it is in the log with the same values.

    A context that is opened again with other library versions or options has one more entry.

    Parameters
    ----------
    log : DecisionLog
        The log.
    values : dict
        The context's name and all else that the log keeps of it.

    Returns
    -------
    Logged
        The entry with these values.

    Raises
    ------
    InputError
        If the context belongs to another model, key or way of naming people, or its name looks like
        that of another one.
    """
    name = values["context"]
    if not name.isprintable() or INVISIBLE.search(name) or name != name.strip():
        rule = "have no hidden characters, and no blanks at its ends"
        raise bad_input("the name of a context", rule, ascii(name)[:80])
    requests = digest_of("context", name), digest_of("context", name, values)

    def work(transaction: Transaction) -> Logged:
        first = transaction.find(requests[0])
        if first is None:
            return transaction.add(Entry("context", name, requests[0], None, values))
        _check_bound(first, values, log.source)
        if first.values == values:
            return first
        return transaction.find(requests[1]) or transaction.add(
            Entry("context", name, requests[1], None, values)
        )

    return log.run(work)


def _check_bound(first: Logged, values: dict[str, Any], source: str) -> None:
    for name, noun in BOUND.items():
        if first.values[name] != values[name]:
            before, now = (str(one[name])[:19] for one in (first.values, values))
            raise InputError(
                f"{source}: the context {values['context']!r} was opened with another {noun}"
                f" ({before}, now {now}); give the {noun} of"
                " the context, or use a new context"
            )


def person_request(context: str, person: str, features_sha256: str) -> str:
    """Return the hash that all requests for the same forecast have in common."""
    return digest_of("forecast", context, person, features_sha256)


def person_subject(context: str, person: str) -> str:
    """Return the hash that the forecasts of a person in a context have in common."""
    return digest_of("person", context, person)
