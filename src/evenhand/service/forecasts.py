"""Forecasts of rows as the values that a decision log keeps."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import and_more, finite
from evenhand._validate import Floats, InputError, bad_input, check_fraction
from evenhand.decisions import BayesDecision
from evenhand.distributions import (
    Distribution,
    Hurdle,
    OutcomeKind,
    Randomized,
    as_hurdle,
    to_records,
)
from evenhand.forecast import Forecast
from evenhand.forecasters import Forecaster
from evenhand.links import Link
from evenhand.service.features import Features, RowReader
from evenhand.store import foreign_parts, load_with_hash, pack
from evenhand.tables import unreported

Decide = Callable[[Forecast], Sequence[Any]] | BayesDecision
"""Rule for actions: a function from a forecast to one action per row, or a `BayesDecision`."""


@dataclass(frozen=True)
class Forecasting:
    """A fitted forecaster with what is served of its forecasts.

    Parameters
    ----------
    model : Forecaster
        The forecaster.
    reader : RowReader
        Reader of its rows.
    levels : tuple of float
        Levels of the quantiles.
    decide : function, BayesDecision or None
        Rule for actions.
    """

    model: Any
    reader: RowReader
    levels: tuple[float, ...]
    decide: Decide | None = None

    def values(self, rows: Sequence[Features], r: ArrayLike) -> list[dict[str, Any]]:
        """Return the forecast of each row at its draw, as JSON values.

        Parameters
        ----------
        rows : sequence of Features, length n
            Rows of `reader`.
        r : array-like of shape (n,)
            Draws.

        Returns
        -------
        list of dict
            `r` (None if the forecast does not depend on it), `record` of the deterministic
            distribution, `link` and `alpha` around it (None if `record` is what is served),
            `quantiles` by level and `probability` (the one or the other), `mean` and `action`.

        Raises
        ------
        InputError
            If the model refuses the rows.
        """
        with _refusals(rows):
            forecast, mean = self.model.forecast_and_predict(self.reader.table(rows), r)
        base, link = inside_link(forecast.distribution)
        shared = _named(link)
        n = len(rows)
        is_event = forecast.outcome_kind is OutcomeKind.BINARY
        columns: dict[str, list[Any]] = {
            "r": [None] * n if forecast.r is None else np.broadcast_to(forecast.r, n).tolist(),
            "record": to_records(base),
            "quantiles": [{}] * n if is_event else self._quantiles(forecast),
            "mean": _finite(mean),
            "probability": _finite(forecast.event_probability()) if is_event else [None] * n,
            "action": [None] * n if self.decide is None else _actions(self.decide, forecast),
        }
        return [
            {name: column[row] for name, column in columns.items()} | shared for row in range(n)
        ]

    def _quantiles(self, forecast: Forecast) -> list[dict[str, float | None]]:
        names = [f"{level}" for level in self.levels]
        table = np.asarray(forecast.ppf(self.levels), dtype=np.float64)
        return [dict(zip(names, _finite(row), strict=True)) for row in table]

    def settings(self) -> dict[str, Any]:
        """Return what all forecasts of the model have in common, as JSON values.

        That is the kind of outcome, the link, and the atom of amounts with one.
        """
        rows = [self.reader.example()]
        with _refusals(rows):
            forecast = self.model.forecast(self.reader.table(rows), [0.5])
        base, link = inside_link(forecast.distribution)
        is_hurdle = forecast.outcome_kind is OutcomeKind.HURDLE
        atom = as_hurdle(base) if is_hurdle else None
        return {
            "outcome": str(forecast.outcome_kind),
            **_named(link),
            "atom": None if atom is None else {"at": atom.at, "end": atom.end},
        }


def inside_link(distribution: Distribution) -> tuple[Distribution, Link | None]:
    """Return the distribution inside a link, and the link; None if there is no link.

    Of amounts with an atom, the link is around the continuous part.
    """
    if isinstance(distribution, Randomized):
        return distribution.base, distribution.link
    if isinstance(distribution, Hurdle) and isinstance(distribution.positive, Randomized):
        part = distribution.positive
        inner = Hurdle(distribution.chance, part.base, distribution.at, distribution.end)
        return inner, part.link
    return distribution, None


def _named(link: Link | None) -> dict[str, Any]:
    if link is None:
        return {"link": None, "alpha": None}
    return {"link": link.name, "alpha": float(link.alpha)}


def check_levels(levels: Sequence[float]) -> tuple[float, ...]:
    """Return levels of quantiles, which increase strictly between 0 and 1."""
    checked = tuple(check_fraction(f"levels[{i}]", level) for i, level in enumerate(levels))
    if not checked or list(checked) != sorted(set(checked)):
        raise bad_input("levels", "be increasing fractions, at least one", list(levels))
    return checked


def _finite(values: Floats) -> list[float | None]:
    return [finite(value) for value in np.asarray(values, dtype=np.float64).tolist()]


def _actions(decide: Decide, forecast: Forecast) -> list[Any]:
    """Return one action per row, as JSON values."""
    if isinstance(decide, BayesDecision):
        found = decide.decide(forecast).chosen.tolist()
    else:
        found = list(decide(forecast))
    if len(found) != len(forecast):
        rule = f"return one action per row ({len(forecast)})"
        raise bad_input("decide", rule, f"{len(found)} actions")
    plain = [one.item() if isinstance(one, np.generic) else one for one in found]
    try:
        json.dumps(plain, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise bad_input("decide", "return actions that are JSON values", str(error)) from error
    return plain


@contextmanager
def _refusals(rows: Sequence[Features]) -> Iterator[None]:
    """Turn errors of a model into one sentence with the columns that have no value."""
    try:
        # a warning for each person would fill the log of a server
        with unreported():
            yield
    except InputError:
        raise
    except (TypeError, ValueError) as error:
        why = (str(error).splitlines() or [type(error).__name__])[0][:200]
        empty = [
            repr(name)
            for name in (rows[0].values if rows else ())
            if any(row.values[name] is None for row in rows)
        ]
        remedy = f"columns without a value: {and_more(empty)}" if empty else "check its values"
        raise InputError(f"the model refuses the row ({why}); {remedy}") from error


# --- loading of the model of a service, with its hash


class Loaded(NamedTuple):
    """Fitted forecaster, its hash, and the names of inner models that the hash does not cover."""

    forecaster: Forecaster
    sha256: str
    unstored: list[str]


def loaded(model: str | os.PathLike[str] | Forecaster | Loaded) -> Loaded:
    """Return a forecaster from its folder, or as given, with the hash that its folder would have.

    What is loaded already is returned as it is.

    Raises
    ------
    InputError
        If it is neither a model folder nor a fitted forecaster of this package.
    """
    if isinstance(model, Loaded):
        return model
    if isinstance(model, str | os.PathLike):
        forecaster, sha256 = load_with_hash(model)
        return Loaded(forecaster, sha256, [])
    if not isinstance(model, Forecaster):
        rule = "be a model folder or a fitted forecaster"
        raise bad_input("model", rule, type(model).__name__, "randomize(...) has one as .model")
    packed = pack(model)
    return Loaded(model, packed.sha256, [part["name"] for part in foreign_parts(packed.entry)])
