"""Contexts of a decision log, each with one model and key, and the forecasts in them."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Literal, TypeVar

import numpy as np

from evenhand._format import and_more, count
from evenhand._ids import INVISIBLE, id_text
from evenhand._validate import InputError, bad_input, did_you_mean
from evenhand.distributions import Distribution, from_records
from evenhand.draws import KeyedDraws
from evenhand.forecast import Forecast
from evenhand.links import Link, make_link
from evenhand.service.chain import digest_of
from evenhand.service.decision_log import DecisionLog, Entry, Logged, Transaction

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


# --- forecasts as a decision log has them, and their distributions

T = TypeVar("T")


def in_blocks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield lists of at most `size` items.

    Examples
    --------
    >>> list(in_blocks("abc", 2))
    [['a', 'b'], ['c']]
    """
    rest = iter(items)
    while block := list(islice(rest, size)):
        yield block


def logged_forecast(log: DecisionLog, id: str) -> Logged:
    """Return the forecast with an id; InputError if the log has no such one."""
    found = log.get(id)
    if found is not None:
        return found
    known = [entry.id for entry in log.entries(kind="forecast")]
    similar = [one for one in known if _is_similar(id, one)][:3]
    if similar:
        remedy = f"did you mean {' or '.join(map(repr, similar))}?"
    else:
        remedy = f"it has {count(len(known), 'forecast')}; give the id of one of them"
    raise InputError(f"{log.source} has no forecast {id!r}; {remedy}")


def _is_similar(given: str, known: str) -> bool:
    """Whether an id is the beginning of a known one, or differs in one or two characters."""
    if len(given) != len(known):
        return len(given) >= 4 and (known.startswith(given) or given.startswith(known))
    n_changed = sum(one != other for one, other in zip(given, known, strict=True))
    return n_changed <= min(2, len(given) // 4)


def context_values(log: DecisionLog, context: str) -> dict[str, Any]:
    """Return what the log has about a context; InputError if it has no such context."""
    # a later entry of a context has its present library versions
    known = {str(entry.values["context"]): entry.values for entry in log.entries(kind="context")}
    if context not in known:
        raise unknown_context(log.source, context, list(known))
    return known[context]


def unknown_context(source: str, name: str, known: Sequence[str]) -> InputError:
    """Return the error for a context that a log does not have."""
    remedy = did_you_mean(name, known) or "name one of these"
    listed = f"only {and_more([repr(one) for one in known])}" if known else "and no other"
    return InputError(f"{source} has no context {name!r}, {listed}; {remedy}")


def context_of(log: DecisionLog, entry: Logged) -> dict[str, Any]:
    """Return what the log has of the context of a forecast, at the time of it."""
    number = int(entry.values["opened"])
    return next(log.entries(after=number - 1, kind="context")).values


def logged_name(draws: KeyedDraws | None, mode: str, person: str | int) -> str:
    """Return the name of a person in the log: a keyed hash, or the id itself.

    Parameters
    ----------
    draws : KeyedDraws or None
        Draws with the key; needed for hashes.
    mode : {"hash", "id"}
        How the context names people.
    person : str or int
        Id of the person, already checked.
    """
    if mode == "id":
        return id_text(person)
    if draws is None:
        raise InputError(
            "people are named by keyed hashes in this context; give the key (draws, or --key-file)"
        )
    return draws.pseudonyms([person])[0]


def link_of(values: Mapping[str, Any]) -> Link | None:
    """Return the link around the logged distribution; None if that is the served one."""
    name = values["link"]
    return None if name is None else make_link(name, float(values["alpha"]))


def base_of(entries: Sequence[Logged]) -> Distribution:
    """Return the logged distributions of forecasts: those inside the link, if there is one."""
    return from_records([entry.values["record"] for entry in entries])


def served_of(entries: Sequence[Logged], base: Distribution | None = None) -> Forecast:
    """Return served forecasts of one context, from their logged distributions and draws."""
    forecast = Forecast(base_of(entries) if base is None else base)
    link = link_of(entries[0].values)
    if link is None:
        return forecast
    r = np.array([entry.values["r"] for entry in entries], dtype=np.float64)
    return forecast.randomized(link.alpha, link, r)
