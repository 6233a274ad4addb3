"""Serving of forecasts that are logged before they are returned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Self

from evenhand._format import one_line
from evenhand._validate import AnyPath, InputError, bad_input, check_choice, check_levels
from evenhand.draws import KeyedDraws, check_person, id_text
from evenhand.forecasters import Forecaster
from evenhand.service.contexts import Naming, open_context, versions
from evenhand.service.features import (
    Decide,
    FeatureReader,
    Features,
    Forecasting,
    loaded,
    unseen_values,
)
from evenhand.service.log import (
    Batches,
    DecisionLog,
    Entry,
    Logged,
    Transaction,
    by_request,
    digest_of,
    in_blocks,
    person_subject,
)
from evenhand.service.outcomes import record_outcome
from evenhand.service.replay import Replay, replay_forecast
from evenhand.tables import Schema, check_names

# --- forecasts as they are served


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
        logged = entry.values
        names = ("context", "person", "r", "revision", "mean", "probability", "action")
        # as JSON, levels are in the order of their text
        quantiles = dict(sorted(logged["quantiles"].items(), key=lambda one: float(one[0])))
        return cls(
            id=entry.id,
            number=entry.number,
            quantiles=quantiles,
            time=entry.time,
            model_sha256=model_sha256,
            is_repeated=is_repeated,
            warnings=tuple(logged.get("warnings", ())),
            **{name: logged[name] for name in names},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values, for the response of a server."""
        return vars(self) | {"warnings": list(self.warnings)}


# --- the service

BLOCK = 500
"""Number of forecasts in a transaction: others wait for the log for a fraction of a second."""

ID_DIGITS = 32
"""Length of the id of a forecast, the beginning of the hash of its request."""


class Service:
    """Service that logs each forecast before it returns it.

    It is safe for threads, and for several processes on one log. A forecast depends on the person's
    draw and features only, not on other requests: requests that wait for the model are forecast in
    one call, which changes no more than the last digits of a number. A person who is forecast again
    in the same context with the same features gets the logged answer, whoever asks and whenever.
    With other features the draw is the same, and the new forecast is logged as a revision.

    Parameters
    ----------
    model : path or Forecaster
        Folder of a fitted model, or a fitted forecaster.
    draws : KeyedDraws
        Draws of people. Their context is the context of the service: the name of one decision or
        period, which belongs to one model and key. The key is not logged.
    log : DecisionLog
        The log, from `open_log`.
    person : {"hash", "id"}, default "hash"
        How the log names people: by a keyed hash of the id, or by the id itself.
    keep_features : bool, default False
        Whether to log the features, and not only their hash. A replay then needs no table.
    groups : sequence of str, default ()
        Columns whose values are logged, for the groups of a watch. Rows must have them, also if the
        model does not use them.
    levels : sequence of float, default (0.05, 0.25, 0.5, 0.75, 0.95)
        Levels of the quantiles that are served, increasing, 0 < level < 1.
    decide : function, BayesDecision or None, default None
        Rule for actions: a function from a `Forecast` to one action per row, each a JSON value, or
        a `BayesDecision`.

    Raises
    ------
    InputError
        If the log has the context with another model, key or way of naming people.

    Notes
    -----
    The hash of features is not keyed: somebody with the log can test a guess of all features of a
    forecast.

    Examples
    --------
    >>> import tempfile, numpy as np, pandas as pd
    >>> from pathlib import Path
    >>> from sklearn.linear_model import BayesianRidge
    >>> from evenhand import RandomizedRegressor, Service
    >>> from evenhand.draws import KeyedDraws
    >>> from evenhand.service import open_log
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": rng.uniform(20, 60, 200)})
    >>> model = RandomizedRegressor(BayesianRidge()).fit(X, X["age"] + rng.normal(size=200))
    >>> draws = KeyedDraws(b"sixteen bytes or more", context="2026-11")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     service = Service(model, draws, open_log(Path(folder, "decisions.sqlite")))
    ...     first = service.forecast("person 17", {"age": 40})
    ...     again = service.forecast("person 17", {"age": "40.0"})
    ...     service.close()
    >>> again.id == first.id, again.is_repeated, list(first.quantiles)
    (True, True, ['0.05', '0.25', '0.5', '0.75', '0.95'])
    """

    def __init__(
        self,
        model: AnyPath | Forecaster,
        draws: KeyedDraws,
        log: DecisionLog,
        *,
        person: Naming = "hash",
        keep_features: bool = False,
        groups: Sequence[str] = (),
        levels: Sequence[float] = (0.05, 0.25, 0.5, 0.75, 0.95),
        decide: Decide | None = None,
    ) -> None:
        if not isinstance(draws, KeyedDraws):
            raise bad_input("draws", "be KeyedDraws(key, context)", type(draws).__name__)
        check_choice("person", person, ("hash", "id"))
        self.log = log
        self._draws = draws
        self._names_by_hash = person == "hash"
        self._keeps_features = keep_features
        self._loaded = loaded(model)
        self._reader = FeatureReader(self._loaded.forecaster, check_names(groups))
        self._forecasting = Forecasting(
            self._loaded.forecaster, self._reader, check_levels(levels), decide
        )
        opened = {
            "context": draws.context,
            "model_sha256": self.model_sha256,
            "unstored": self._loaded.unstored,
            "key": draws.fingerprint,
            "person": person,
            "keep_features": keep_features,
            "groups": list(self._reader.groups),
            "levels": list(self._forecasting.levels),
            "columns": self._reader.names,
            **self._forecasting.settings(),
            "versions": versions(),
        }
        self._computing: Batches[Sequence[_Asked]] = Batches(
            self._compute, RuntimeError("a forecast was interrupted; repeat the request")
        )
        self._opened = open_context(log, opened).number

    @property
    def model_sha256(self) -> str:
        """SHA-256 of the model, as in its folder and certificate."""
        return self._loaded.sha256

    @property
    def context(self) -> str:
        """Name of the context."""
        return self._draws.context

    @property
    def schema(self) -> Schema:
        """Columns of a row: their names, kinds, and levels, ranges and missing values in training.

        Columns of groups that the model does not use have the kind "other".
        """
        return self._reader.schema

    def __repr__(self) -> str:
        return one_line(self, context=self.context, model=self.model_sha256[:16])

    def forecast(self, person: str | int, row: Any) -> Served:
        """Return the forecast of a person, which is in the log once it is returned.

        Parameters
        ----------
        person : str or int
            Id of the person; 17 and "17" are the same id.
        row : mapping, Series, or table with one row
            Value of each column of the model, and of `groups`. For a model that was trained on an
            array, a sequence of numbers too.

        Returns
        -------
        Served

        Raises
        ------
        InputError
            If the id cannot be used, a column is missing or unknown or has a value of another kind,
            or the model refuses the row; nothing is logged then.
        """
        return self._served(self._asked([person], ["person"], [self._reader.read(row)]))[0]

    def forecast_many(self, people: Iterable[str | int], X: Any) -> list[Served]:
        """Return the forecasts of people, as `forecast` does one by one.

        All ids and rows are read before any forecast is logged. Forecasts are then logged in
        blocks: after an interruption, the same call returns what was logged and adds the rest.

        Parameters
        ----------
        people : iterable of str or int, length n
            Ids of the people.
        X : table or array with n rows
            Their rows.

        Returns
        -------
        list of Served
            One for each row, in their order.

        Raises
        ------
        InputError
            If an id or a row cannot be used; the message names the row, from 1.
        """
        rows = self._reader.read_all(X)
        ids = list(people)
        if len(ids) != len(rows):
            raise bad_input("people", f"have one id per row ({len(rows)})", f"{len(ids)} ids")
        asked = self._asked(ids, [f"people[{i}]" for i in range(len(ids))], rows)
        return [served for block in in_blocks(asked, BLOCK) for served in self._served(block)]

    def record_outcome(self, id: str, y: float, *, time: datetime | str | None = None) -> Logged:
        """Record the outcome of a forecast of the log, or its correction.

        Parameters
        ----------
        id : str
            Id of the forecast.
        y : float
            The outcome; True or False for forecasts of a yes or no alone.
        time : datetime or str, optional
            When the outcome was observed; the log has the time of the record besides.

        Raises
        ------
        InputError
            If the log has no such forecast, or the forecast cannot have this outcome.
        """
        return record_outcome(self.log, id, y, time=time)

    def replay(self, id: str, *, row: Any = None, person: str | int | None = None) -> Replay:
        """Compute a forecast of the log again, and compare it with the logged one.

        The hash chain of the whole log is verified first, which takes seconds for 100,000 entries.

        Parameters
        ----------
        id : str
            Id of the forecast.
        row : mapping, Series, or table with one row, optional
            Its features; needed unless the log keeps them.
        person : str or int, optional
            Id of the person, to compare the draw; needed unless the log names people by their ids.

        Returns
        -------
        Replay
            What is equal and what differs: model, key, context, person, features, draw, values and
            library versions.

        Raises
        ------
        InputError
            If an entry of the log has been changed, the log has no such forecast, or the row cannot
            be read.
        """
        return replay_forecast(
            self.log,
            id,
            self._loaded,
            draws=self._draws,
            row=row,
            person=person,
            decide=self._forecasting.decide,
        )

    def close(self) -> None:
        """Close the log."""
        self.log.close()

    def _asked(
        self, ids: Sequence[str | int], places: Sequence[str], rows: Sequence[Features]
    ) -> list[_Asked]:
        """Return requests of people, with their names in the log."""
        people = [self._checked(one, place) for one, place in zip(ids, places, strict=True)]
        names = (
            self._draws.pseudonyms(people) if self._names_by_hash else list(map(id_text, people))
        )
        return [
            _Asked(person, name, row, digest_of("forecast", self.context, name, row.sha256))
            for person, name, row in zip(people, names, rows, strict=True)
        ]

    def _checked(self, person: str | int, place: str) -> str:
        """Return the id of a person as text."""
        try:
            return check_person(person, place)
        except InputError:
            if not self._names_by_hash:
                raise
            # messages may be logged, and then the id must not be in them, nor in their causes
            rule = "be an integer, or text without hidden characters or blanks at its ends"
            got = "an id that is not shown, as the log names people by a hash"
            raise bad_input(place, rule, got, "write 17.0 as 17") from None

    def _served(self, asked: Sequence[_Asked]) -> list[Served]:
        """Return the logged answers, and forecast and log what is not in the log."""
        known = by_request(self.log.forecasts("request", [one.request for one in asked]))
        new = {one.request: one for one in asked if one.request not in known}
        added: dict[str, Logged] = {}
        if new:
            # outside the transaction, so that others do not wait for the model
            values = self._values(list(new.values()))
            before, added = self.log.run(lambda work: self._logged(work, new, values))
            known |= before | added
        # of rows with the same request, the first one is the one that was added
        are_new = (added.pop(one.request, None) is not None for one in asked)
        return [
            Served.of(known[one.request], self.model_sha256, is_repeated=not is_new)
            for one, is_new in zip(asked, are_new, strict=True)
        ]

    def _values(self, asked: Sequence[_Asked]) -> dict[str, dict[str, Any]]:
        """Return what is logged of new forecasts by request, all but their revision."""
        # with those of other threads: the forecast of a row is mostly Python, which threads cannot
        # run at the same time, and of many rows takes hardly longer than of one
        if self._computing.is_led_here:  # by a rule for actions that asks for other forecasts
            (forecasts,) = self._compute([asked])
        else:
            forecasts = self._computing.run(asked)
        found = {}
        for one, forecast in zip(asked, forecasts, strict=True):
            own = {
                "context": self.context,
                "opened": self._opened,
                "person": one.name,
                "features_sha256": one.row.sha256,
                "groups": one.row.groups,
            }
            kept = {"features": one.row.values} if self._keeps_features else {}
            warnings = unseen_values(self._reader.schema.columns, one.row.values)
            found[one.request] = (
                own | kept | forecast | ({"warnings": warnings} if warnings else {})
            )
        return found

    def _compute(self, waiting: Sequence[Sequence[_Asked]]) -> list[list[dict[str, Any]]]:
        every = [one for asked in waiting for one in asked]
        r = self._draws([one.person for one in every])
        found = iter(self._forecasting.values([one.row for one in every], r))
        return [list(islice(found, len(asked))) for asked in waiting]

    def _logged(
        self, transaction: Transaction, asked: dict[str, _Asked], values: dict[str, dict[str, Any]]
    ) -> tuple[dict[str, Logged], dict[str, Logged]]:
        """Log forecasts, except those that another request has just added; return these first."""
        known = transaction.find(*asked)
        new = {
            request: person_subject(self.context, one.name)
            for request, one in asked.items()
            if request not in known
        }
        n = transaction.n_of(*new.values())
        entries = []
        for request, subject in new.items():
            content = values[request] | {"revision": n[subject]}
            entries.append(Entry("forecast", request[:ID_DIGITS], request, subject, content))
            n[subject] += 1
        return known, by_request(transaction.add(*entries))


@dataclass(frozen=True)
class _Asked:
    """Request for the forecast of a person."""

    person: str
    name: str
    row: Features
    request: str
