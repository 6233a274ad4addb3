"""Forecasts that `predict` adds to a decision log before it writes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand._format import count
from evenhand._validate import InputError
from evenhand.cli.options import listed_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from evenhand.service import Naming, Served, Service

COLUMN = "forecast_id"
"""Column with the ids of forecasts, by which outcomes are recorded."""


class LoggedForecasts:
    """Recorder of forecasts in a decision log.

    Parameters
    ----------
    service : Service
        The service.
    where : str
        The log, for messages.
    """

    def __init__(self, service: Service, where: str) -> None:
        self._service = service
        self.where = where
        self.n_new = 0
        self.n_repeated = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the model and of the groups."""
        return tuple(self._service.schema.names)

    def __call__(self, ids: Sequence[str | int], rows: pd.DataFrame) -> dict[str, Any]:
        """Log the forecasts of people; return the columns of what is logged."""
        served = self._service.forecast_many(ids, rows)
        n_repeated = sum(one.is_repeated for one in served)
        self.n_repeated += n_repeated
        self.n_new += len(served) - n_repeated
        return {**_values(served), COLUMN: [one.id for one in served]}

    def text(self) -> str:
        """Return what was logged as a clause."""
        before = f"; {self.n_repeated:,} were in it before" if self.n_repeated else ""
        return f"{count(self.n_new, 'forecast')} added to {self.where}{before}"

    def record(self) -> dict[str, Any]:
        """Return what was logged as plain values."""
        names = {"context": self._service.context, "model_sha256": self._service.model_sha256}
        return names | {"n_new": self.n_new, "n_repeated": self.n_repeated}


def _values(served: Sequence[Served]) -> dict[str, Any]:
    """Return the columns of logged answers; an earlier answer is not computed anew.

    A level that an earlier answer lacks is left as it was computed.
    """
    if served[0].probability is not None:
        return {"probability": np.array([one.probability for one in served])}
    found: dict[str, Any] = {"mean": np.array([one.mean for one in served], dtype=np.float64)}
    levels = set.intersection(*(set(one.quantiles) for one in served))
    for level in levels:
        column = np.array([one.quantiles[level] for one in served], dtype=np.float64)
        found[f"q{level}"] = column
    return found


def logged_forecasts(
    model: Path,
    where: str,
    key: bytes | None,
    context: str,
    groups: str | None,
    keep_features: bool,
    person: str,
    levels: Sequence[float],
) -> LoggedForecasts:
    """Open the log and the context for the forecasts of a model."""
    from evenhand.draws import KeyedDraws
    from evenhand.service import Service, open_log

    if key is None:
        raise InputError(
            "--log needs --key-file: the key belongs to the context, and names people in the log;"
            " name a file with a secret key of at least 16 bytes"
        )
    # without one, a job that forgets it once gives everybody a second draw (outcomes: 6)
    if not context:
        raise InputError(
            "--log needs --context: each context has its own draws; name the decision, such as"
            " 2026-11"
        )
    naming: Naming = "id" if person == "id" else "hash"
    service = Service(
        model,
        KeyedDraws(key, context),
        open_log(where),
        person=naming,
        keep_features=keep_features,
        groups=listed_names("--groups", groups),
        levels=levels,
    )
    return LoggedForecasts(service, where)
