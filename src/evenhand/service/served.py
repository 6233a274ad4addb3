"""Forecasts as they are served."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from evenhand.service.entries import Logged


@dataclass(frozen=True)
class Served:
    """Forecast of one person, as it is in the decision log.

    Parameters
    ----------
    id : str
        Id of the forecast, by which its outcome is recorded and it is replayed.
    number : int
        Number of its entry in the log, from 1.
    context : str
        Name of the decision or period.
    person : str
        Name of the person in the log: a keyed hash of the id, or the id.
    r : float or None
        Draw of the person; None if the forecast does not depend on one.
    revision : int
        0 for the first forecast of the person in the context; 1, 2, ... for those with other
        features.
    quantiles : dict of str to float
        Quantiles of the served forecast by level, in units of the outcome; empty for 0/1 outcomes.
    mean : float or None
        Point forecast, which does not depend on the draw; None if it is infinite.
    probability : float or None
        Probability of the event, for 0/1 outcomes.
    action : object
        Action chosen under the forecast, a JSON value; None without a rule for actions.
    time : str
        Time of the entry in UTC, ISO 8601.
    model_sha256 : str
        SHA-256 of the model.
    is_repeated : bool
        Whether the answer was in the log before this request.
    warnings : tuple of str
        A sentence for each value of the row that is unusual for the training table: outside the
        range of its column, a new category, or missing. As it was logged with the forecast.
    """

    id: str
    number: int
    context: str
    person: str
    r: float | None
    revision: int
    quantiles: dict[str, float | None]
    mean: float | None
    probability: float | None
    action: Any
    time: str
    model_sha256: str
    is_repeated: bool
    warnings: tuple[str, ...] = ()

    @classmethod
    def of(cls, entry: Logged, model_sha256: str, *, is_repeated: bool) -> Self:
        """Return the answer that an entry of the log contains."""
        values = entry.values
        return cls(
            entry.id,
            entry.number,
            values["context"],
            values["person"],
            values["r"],
            values["revision"],
            # as JSON, levels are in the order of their text
            dict(sorted(values["quantiles"].items(), key=lambda one: float(one[0]))),
            values["mean"],
            values["probability"],
            values["action"],
            entry.time,
            model_sha256,
            is_repeated,
            tuple(values.get("warnings", ())),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values, for the response of a server."""
        return vars(self) | {"warnings": list(self.warnings)}
