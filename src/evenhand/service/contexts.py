"""Contexts of a decision log, each with one model and key, and the forecasts in them."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from evenhand._format import and_more, count
from evenhand._validate import InputError, bad_input, check_column, did_you_mean
from evenhand.distributions import Distribution, from_records
from evenhand.draws import INVISIBLE, KeyedDraws, id_text
from evenhand.forecast import Forecast
from evenhand.links import Link, make_link
from evenhand.monitoring import level_name
from evenhand.service.log import DecisionLog, Entry, Logged, Transaction, digest_of
from evenhand.tables import EVERYONE

Naming = Literal["hash", "id"]
"""How the log names people: by a keyed hash of the id, or by the id."""

LIBRARIES = ("numpy", "scipy", "scikit-learn", "pandas", "torch")
"""Packages that compute forecasts."""

BOUND = {"model_sha256": "model", "key": "key", "person": "way of naming people"}
"""Values of a context that never change, with their names in messages."""


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute forecasts."""
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

    A context that is opened again with other library versions or options has one more entry. Raises
    InputError if it belongs to another model, key or way of naming people, or its name looks like
    that of another one.
    """
    name = values["context"]
    if not name.isprintable() or INVISIBLE.search(name) or name != name.strip():
        rule = "have no hidden characters, and no blanks at its ends"
        raise bad_input("the name of a context", rule, ascii(name)[:80])
    requests = digest_of("context", name), digest_of("context", name, values)

    def work(transaction: Transaction) -> Logged:
        known = transaction.find(*requests)
        first = known.get(requests[0])
        if first is None:
            return transaction.add(Entry("context", name, requests[0], None, values))[0]
        for bound, noun in BOUND.items():
            if first.values[bound] != values[bound]:
                before, now = (str(one[bound])[:19] for one in (first.values, values))
                raise InputError(
                    f"{log.source}: the context {name!r} was opened with another {noun} ({before},"
                    f" now {now}); give the {noun} of the context, or use a new context"
                )
        if first.values == values:
            return first
        entry = Entry("context", name, requests[1], None, values)
        return known.get(requests[1]) or transaction.add(entry)[0]

    return log.run(work)


# --- forecasts as a decision log has them, and their distributions


def logged_forecast(log: DecisionLog, id: str) -> Logged:
    """Return the forecast with an id; InputError if the log has no such one."""
    found = log.get(id)
    if found is not None:
        return found
    known = [entry.id for entry in log.entries(kind="forecast")]
    # with the same beginning: of a long id, a part is often all that somebody has
    similar = [one for one in known if len(id) >= 4 and one.startswith(id[:8])][:3]
    if similar:
        remedy = f"did you mean {' or '.join(map(repr, similar))}?"
    else:
        remedy = f"it has {count(len(known), 'forecast')}; give the id of one of them"
    raise InputError(f"{log.source} has no forecast {id!r}; {remedy}")


def unknown_context(source: str, name: str, known: Sequence[str]) -> InputError:
    """Return the error for a context that a log does not have."""
    remedy = did_you_mean(name, known) or "name one of these"
    listed = f"only {and_more(map(repr, known))}" if known else "and no other"
    return InputError(f"{source} has no context {name!r}, {listed}; {remedy}")


def context_of(log: DecisionLog, entry: Logged) -> dict[str, Any]:
    """Return what the log has of the context of a forecast, at the time of it."""
    return next(log.entries(after=entry.values["opened"] - 1, kind="context")).values


def logged_name(draws: KeyedDraws | None, mode: str, person: str | int) -> str:
    """Return the name of a person in the log: the id, or a keyed hash, which needs `draws`."""
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
    return None if name is None else make_link(name, values["alpha"])


def base_of(entries: Sequence[Logged]) -> Distribution:
    """Return the logged distributions of forecasts: those inside the link, if there is one."""
    return from_records([entry.values["record"] for entry in entries])


def served_of(entries: Sequence[Logged], base: Distribution) -> Forecast:
    """Return served forecasts of one context, from their logged distributions and draws."""
    forecast = Forecast(base)
    link = link_of(entries[0].values)
    if link is None:
        return forecast
    r = np.array([entry.values["r"] for entry in entries], dtype=float)
    return forecast.randomized(link.alpha, link, r)


@dataclass(frozen=True)
class Scope:
    """What a watch is over: named contexts, or all of a model, also later ones.

    Parameters
    ----------
    contexts : tuple of str or None
        Names of the contexts; None for all of them.
    model_sha256 : str or None
        Hash of their model; None if they may have several.
    """

    contexts: tuple[str, ...] | None = None
    model_sha256: str | None = None

    def __str__(self) -> str:
        if self.contexts is not None:
            noun = "context" if len(self.contexts) == 1 else "contexts"
            return f"the {noun} {', '.join(map(repr, self.contexts))}"
        return f"all contexts of the model {str(self.model_sha256)[:16]}"


@dataclass(frozen=True)
class WatchedContexts:
    """Contexts of a log that are watched as one stream, in the order in which they were opened.

    Parameters
    ----------
    values : dict
        Names of the contexts, with what the log has about each.
    scope : Scope
        Which contexts these are, for later looks at a log with more of them.
    logged_groups : dict
        Group columns by context, those that were logged in all of its time.
    """

    values: Mapping[str, Mapping[str, Any]]
    scope: Scope
    logged_groups: Mapping[str, Sequence[str]]

    @classmethod
    def of(
        cls,
        log: DecisionLog,
        names: Sequence[str] | None = None,
        *,
        model_sha256: str | None = None,
        before: Scope | None = None,
    ) -> Self:
        """Return contexts of a log: the named ones, or all of a model.

        Without `model_sha256` that is the model of the newest context, or of the earlier watch
        `before`, which this one continues. Raises InputError if the log has no such contexts, they
        cannot be watched together, or the earlier watch was over others.
        """
        known: dict[str, dict[str, Any]] = {}
        groups: dict[str, list[str]] = {}
        for entry in log.entries(kind="context"):
            name, logged = entry.id, entry.values["groups"]
            # a later entry of a context has its present library versions and options
            known[name] = entry.values
            groups[name] = [one for one in groups.get(name, logged) if one in logged]
        if not known:
            raise InputError(f"{log.source} has no forecasts yet; serve some, then watch them")
        if before is not None:
            names = before.contexts if names is None else names
            model_sha256 = model_sha256 or before.model_sha256
        models = {name: values["model_sha256"] for name, values in known.items()}
        if names is None:
            # those of the newest context
            model_sha256 = model_sha256 or list(models.values())[-1]
            chosen = [name for name in known if models[name] == model_sha256]
            scope = Scope(model_sha256=model_sha256)
        else:
            # as the draws write them, whatever their accents
            names = [id_text(name) for name in names]
            for name in names:
                if name not in known:
                    raise unknown_context(log.source, name, list(known))
            chosen = [name for name in known if name in names]
            found = {models[name] for name in chosen}
            scope = Scope(tuple(chosen), found.pop() if len(found) == 1 else None)
        others = [name for name in chosen or known if model_sha256 not in (None, models[name])]
        if others:
            listed = and_more(map(repr, others))
            which = f"contexts ({listed}) have" if len(others) > 1 else f"context {listed} has"
            raise InputError(
                f"{log.source}: its {which} another model ({models[others[-1]][:16]}) than the"
                f" certificate ({str(model_sha256)[:16]}); give the certificate of the served"
                " model, or another context"
            )
        if len({(*_link(known[name]), known[name]["outcome"]) for name in chosen}) > 1:
            raise InputError(
                f"{log.source}: the contexts {', '.join(map(repr, chosen))} have different links or"
                " kinds of outcomes; watch each in a run of its own"
            )
        if before is not None and before != scope:
            raise InputError(
                f"the state is of {before}, not of {scope}; watch the same, or keep the state of"
                " each watch in a file of its own"
            )
        return cls({n: known[n] for n in chosen}, scope, {n: groups[n] for n in chosen})

    @property
    def incomparable_people(self) -> str:
        """Sentence on contexts that name people in different ways; empty if all do in one way."""
        n = len({naming_of(one) for one in self.values.values()})
        if n == 1:
            return ""
        return (
            f"the contexts name people in {count(n, 'way')} (another key, or ids), which cannot be"
            " compared; people who appear under several of them are counted as several people"
        )

    def group_columns(
        self, names: Sequence[str] | None, source: str, *, with_everyone: bool
    ) -> list[str]:
        """Return columns that define groups, by default those that all contexts have logged.

        `with_everyone` adds everyone, and low and high forecasts. Raises InputError if no context
        logs a column.
        """
        first, *others = self.logged_groups.values()
        if names is None:
            names = [one for one in first if all(one in other for other in others)]
        some = dict.fromkeys(one for v in self.values.values() for one in v["groups"])
        columns = [name for name in names if name not in (EVERYONE, self.level)]
        if columns and not some:
            raise InputError(
                f"{source}: the contexts log no columns for groups; leave --groups out, and log"
                " columns in the next context, by --groups of evenhand predict or groups of Service"
            )
        for name in columns:
            check_column(name, list(some), f"{source}, which logs groups")
        return [EVERYONE, *columns, self.level] if with_everyone else list(names)

    @property
    def level(self) -> str:
        """Name of the column with the level of each forecast."""
        return level_name(is_event=next(iter(self.values.values()))["outcome"] == "binary")

    def without_column(self, columns: Sequence[str]) -> dict[str, list[str]]:
        """Return the columns that contexts have not logged in all of their time, by context."""
        lacking = {
            name: [one for one in columns if one not in (EVERYONE, self.level, *logged)]
            for name, logged in self.logged_groups.items()
        }
        return {name: missing for name, missing in lacking.items() if missing}

    def check_link(self, settings: Mapping[str, Any], source: str) -> None:
        """Refuse a promise about another link than that of the served forecasts."""
        if settings["statistic"] != "mean_pit":
            return
        promised = (settings["link"], settings["alpha"])
        for name, values in self.values.items():
            if _link(values) != promised:
                served, wanted = (
                    "no link" if kind is None else f"the {kind} link, alpha {alpha:.6g}"
                    for kind, alpha in (_link(values), promised)
                )
                raise InputError(
                    f"{source}: the context {name!r} serves forecasts with {served}, but the"
                    f" certificate is about {wanted}; give the certificate of the served model"
                )


def _link(values: Mapping[str, Any]) -> tuple[str | None, float | None]:
    """Return name and alpha of the link of a context."""
    return values["link"], values["alpha"]


def naming_of(values: Mapping[str, Any]) -> str:
    """Return what contexts must have in common for their names of people to be comparable."""
    # ids are the same under every key
    return "id" if values["person"] == "id" else values["key"]
