"""Replay of logged forecasts: the same model, key and features give the same forecast again."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from evenhand._format import Summarized, count
from evenhand._table import Column, Table
from evenhand._validate import AnyPath, InputError, about, as_number, check_column
from evenhand.draws import KeyedDraws, check_person
from evenhand.forecasters import Forecaster
from evenhand.results import plain
from evenhand.service.contexts import (
    base_of,
    context_of,
    logged_forecast,
    logged_name,
    served_of,
    versions,
)
from evenhand.service.features import Decide, FeatureReader, Features, Forecasting, Loaded, loaded
from evenhand.service.log import DecisionLog, Head, Logged, verify
from evenhand.tables import Parts, id_column

# --- result of a replay: what of a logged forecast is equal today, and what differs

SCHEMA = "evenhand.replay/1"

HASH = re.compile("[0-9a-f]{32,}")
"""Format of hashes, of which text shows the first digits."""

ReplayPart = Literal[
    "model", "key", "context", "person", "features", "draw", "record", "values", "libraries"
]
"""What is compared. "record": whether the logged quantiles follow from the logged distribution and
draw; "values": whether the model computes the same forecast again."""

EntryStatus = Literal["equal", "differs", "not checked"]

ReplayVerdict = Literal["equal", "differs", "incomplete"]


@dataclass(frozen=True)
class Difference:
    """A value that is not the logged one.

    Parameters
    ----------
    name : str
        What it is, such as "quantile 0.05", "numpy" or the name of a column.
    logged, found : object
        The value in the log, and the value now; None where there is none.
    """

    name: str
    logged: Any
    found: Any

    def __str__(self) -> str:
        text = f"{self.name}: {_shown(self.logged)} in the log, {_shown(self.found)} now"
        change = as_number(self.found) - as_number(self.logged)
        if math.isfinite(change):
            text += f", {abs(change):.3g} {'higher' if change > 0 else 'lower'}"
        return text


@dataclass(frozen=True)
class Check:
    """Comparison of one part of a forecast.

    Parameters
    ----------
    part : str
        The part.
    status : {"equal", "differs", "not checked"}
        Result.
    text : str
        What was compared, or why it was not.
    differences : tuple of Difference
        All values that differ.
    """

    part: ReplayPart
    status: EntryStatus
    text: str
    differences: tuple[Difference, ...] = ()

    @classmethod
    def of(
        cls, part: ReplayPart, values: Iterable[tuple[str, Any, Any]], text: str, other: str = ""
    ) -> Check:
        """Compare named values, logged and now; `other` is the text if any of them differ."""
        differs = tuple(Difference(*one) for one in values if one[1] != one[2])
        if not differs:
            return cls(part, "equal", text)
        return cls(part, "differs", other or text, differs)


@dataclass(frozen=True, repr=False)
class Replay(Summarized):
    """Comparison of a logged forecast with one computed now.

    Parameters
    ----------
    id, number, time, context, person, revision
        Of the forecast, as in the log.
    head : Head
        Last entry of the log, whose chain was verified first.
    checks : tuple of Check
        One for each part.
    is_identical : bool or None
        Whether all values computed now have the digits of the logged ones; None if they were not
        computed. Another processor or library may change the last digits.
    clock : str
        Sentence on the entries of the log at which a clock was wrong; empty if there are none.
    """

    id: str
    number: int
    time: str
    context: str
    person: str
    revision: int
    head: Head
    checks: tuple[Check, ...]
    is_identical: bool | None
    clock: str

    @property
    def status(self) -> ReplayVerdict:
        """Whether all that was checked is equal, and the forecast was computed again.

        "incomplete" is a replay without the features: nothing that was checked differs. Other
        library versions alone are no difference.
        """
        if any(one.status == "differs" and one.part != "libraries" for one in self.checks):
            return "differs"
        return "equal" if self.of("values").status == "equal" else "incomplete"

    @property
    def is_equal(self) -> bool:
        """Whether the forecast was computed again, and nothing differs."""
        return self.status == "equal"

    def of(self, part: ReplayPart) -> Check:
        """Return the comparison of a part."""
        return next(one for one in self.checks if one.part == part)

    def summary(self) -> str:
        """Return the comparison as text."""
        n = count(self.head.number, "entry", "entries")
        chain = f"{n}, none changed; the last is {self.head}"
        rows = [["log", "equal", "; ".join(filter(None, [chain, self.clock]))]]
        for check in self.checks:
            listed = [str(one) for one in check.differences]
            rows.append([check.part, check.status, "; ".join([*listed, check.text])])
        columns = [Column("part"), Column("result"), Column("details")]
        title = f"Forecast {self.id} of {self.time}, context {self.context!r}: {self._verdict()}"
        return f"{title}\n\n{Table('Replay', columns, rows).text()}"

    def _verdict(self) -> str:
        if self.status == "differs":
            parts = [one.part for one in self.checks if one.status == "differs"]
            return f"differs ({', '.join(parts)})"
        if self.status == "incomplete":
            return "not computed again"
        return "equal" if self.is_identical else "equal up to rounding"

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        named = ("id", "number", "time", "context", "person", "revision")
        return {
            "schema": SCHEMA,
            "status": self.status,
            "is_identical": self.is_identical,
            **{name: getattr(self, name) for name in named},
            "log": {"n_entries": self.head.number, "head": asdict(self.head), "clock": self.clock},
            "checks": plain(self.checks),
        }

    def __repr__(self) -> str:
        return f"Replay({self.id!r}, {self._verdict()})"


def _shown(value: Any) -> str:
    if value is None:
        return "nothing"
    text = f"{value:.10g}" if isinstance(value, float) else str(value)
    return f"{text[:16]}..." if HASH.fullmatch(text) else text


# --- the replay

TOLERANCE = 1e-9
"""Largest relative difference of numbers that are equal: other processors change last digits."""

LEVEL_TOLERANCE = 1e-3
"""Largest distance of the level of a logged quantile under the logged distribution, which is within
0.0005 for families without exact records."""

HASH_DIGITS = 16
"""Digits of a hash in messages."""


def replay_forecast(
    log: DecisionLog,
    id: str,
    model: AnyPath | Forecaster | Loaded,
    *,
    draws: KeyedDraws | None = None,
    row: Any = None,
    person: str | int | None = None,
    decide: Decide | None = None,
    anchor: Head | None = None,
) -> Replay:
    """Compute a logged forecast again, and compare all that belongs to it.

    Parameters
    ----------
    log : DecisionLog
        The log; its chain is verified first.
    id : str
        Id of the forecast.
    model : path or Forecaster
        Folder of the model, or the fitted forecaster.
    draws : KeyedDraws, optional
        Draws with the key and the context that the forecast should have; without them, neither key
        nor draw are compared.
    row : mapping, Series, or table with one row, optional
        Features; needed if the log keeps their hash only. Columns that the model does not use are
        ignored.
    person : str or int, optional
        Id of the person; needed to compare the draw if the log names people by hashes.
    decide : function, BayesDecision or None, default None
        Rule for actions; without it, actions are not compared.
    anchor : Head, optional
        Last entry at an earlier time, noted outside of the log (see `verify`).

    Returns
    -------
    Replay
        The forecast is computed at the logged draw, so that another key does not hide whether the
        model computes the same.

    Raises
    ------
    InputError
        If the log has been changed or has no such forecast, or the row cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from sklearn.linear_model import BayesianRidge
    >>> from evenhand import RandomizedRegressor, Service
    >>> from evenhand.service import open_log
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(200, 1)), rng.normal(size=200)
    >>> model = RandomizedRegressor(BayesianRidge()).fit(X, y)
    >>> draws = KeyedDraws(b"sixteen bytes or more", context="2026-11")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = open_log(Path(folder, "decisions.sqlite"))
    ...     served = Service(model, draws, log).forecast("ada", [0.4])
    ...     again = replay_forecast(log, served.id, model, draws=draws, row=[0.4], person="ada")
    ...     other = replay_forecast(log, served.id, model, draws=draws, row=[0.5], person="ada")
    ...     log.close()
    >>> again.is_equal, [check.part for check in other.checks if check.status == "differs"]
    (True, ['features', 'values'])
    """
    made = loaded(model)
    verification = verify(log, anchor)
    entry = logged_forecast(log, id)
    opened = context_of(log, entry)
    same_model = _model_check(made, opened)
    *who, draw = _draw_checks(entry, opened, draws, person)
    is_same = same_model.status == "equal"
    features, read = _features(made.forecaster, entry, row, is_same_model=is_same)
    values, is_identical = _values_check(made.forecaster, decide, entry, features, read.text)
    libraries = _libraries_check(opened, values)
    assert verification.head is not None  # the forecast is an entry
    return Replay(
        entry.id,
        entry.number,
        entry.time,
        entry.values["context"],
        entry.values["person"],
        entry.values["revision"],
        verification.head,
        (same_model, *who, read, draw, _record_check(entry), values, libraries),
        is_identical,
        verification.times.note,
    )


def _model_check(model: Loaded, opened: Mapping[str, Any]) -> Check:
    logged, unstored = opened["model_sha256"], ", ".join(opened["unstored"])
    rest = f"; the hash does not cover {unstored}" if unstored else ""
    text = f"sha256 {logged[:HASH_DIGITS]}{rest}"
    return Check.of("model", [("sha256", logged, model.sha256)], text, f"another model{rest}")


def _draw_checks(
    entry: Logged, opened: Mapping[str, Any], draws: KeyedDraws | None, person: str | int | None
) -> list[Check]:
    """Compare key, context, person and draw."""
    context, r, mode = entry.values["context"], entry.values["r"], opened["person"]
    key = Check("key", "not checked", "needs the key")
    named = Check("context", "equal", repr(context))
    if draws is not None:
        prints = [("fingerprint", opened["key"], draws.fingerprint)]
        key = Check.of("key", prints, f"fingerprint {opened['key']}", "another key")
        names = [("name", context, draws.context)]
        named = Check.of("context", names, repr(context), "another context")
    if mode == "id" and person is None:
        person = entry.values["person"]
    why = ""
    if mode == "hash" and draws is None:
        why = "needs the key"
    elif person is None:
        why = "the log has a keyed hash of the id; give the id of the person (--person)"
    elif mode == "hash" and key.status == "differs":
        why = "the log names people by hashes with another key"
    if why or person is None:
        who = Check("person", "not checked", why)
    else:
        name = logged_name(draws, mode, check_person(person, "person"))
        text = "the id belongs to the name in the log"
        names = [("name", entry.values["person"], name)]
        who = Check.of("person", names, text, "another person")
    if r is None:
        draw = Check("draw", "equal", "the forecast does not depend on a draw")
    elif who.status == "differs":
        draw = Check("draw", "not checked", "it is that of another person")
    elif draws is None or person is None:
        draw = Check("draw", "not checked", "needs the key" if draws is None else why)
    else:
        found = float(draws([check_person(person, "person")])[0])
        other = "not the draw of this person, key and context"
        draw = Check.of("draw", [("r", r, found)], f"r = {r:.10g}", other)
    return [key, named, who, draw]


def _features(
    model: Forecaster, entry: Logged, row: Any, *, is_same_model: bool
) -> tuple[Features | None, Check]:
    """Return the features with which a forecast is computed, and their comparison."""
    logged, kept = entry.values["features_sha256"], entry.values.get("features")
    given = kept if row is None else row
    if given is None:
        why = "the log has only the hash of the features; give the row"
        return None, Check("features", "not checked", why)
    reader = FeatureReader(model)
    try:
        found = reader.read(given, drop_others=True)
    except InputError as error:
        if is_same_model and row is not None:
            raise
        # another model may need other columns
        return None, Check("features", "not checked", f"the model cannot read them: {error}")
    if found.sha256 == logged:
        return found, Check("features", "equal", f"sha256 {logged[:HASH_DIGITS]}")
    text = "other features"
    values: list[tuple[str, Any, Any]] = [("sha256", logged, found.sha256)]
    if kept is None:
        text += "; the log has only their hash, so that the columns are not known"
    elif kept != found.values:
        names = dict.fromkeys([*kept, *found.values])
        values = [(name, kept.get(name), found.values.get(name)) for name in names]
    return found, Check.of("features", values, text)


def _values_check(
    model: Forecaster, decide: Decide | None, entry: Logged, features: Features | None, why: str
) -> tuple[Check, bool | None]:
    """Compute the forecast again at the logged draw; return whether it has the same digits too."""
    logged = entry.values
    if features is None:
        return Check("values", "not checked", why), None
    levels = tuple(float(level) for level in logged["quantiles"])
    forecasting = Forecasting(model, FeatureReader(model), levels, decide)
    r = 0.5 if logged["r"] is None else logged["r"]
    found = forecasting.values([features], [r])[0]
    compared, now = (_compared(one, with_action=decide is not None) for one in (logged, found))
    served = [*logged["quantiles"].values(), logged["mean"], logged["probability"]]
    scale = max((abs(value) for value in served if value is not None), default=0.0)
    differs = [
        (name, before, now.get(name))
        for name, before in compared.items()
        if not _is_close(before, now.get(name), scale)
    ]
    exact = ("record", "link", "alpha", "quantiles", "mean", "probability")
    is_identical = not differs and all(logged[name] == found[name] for name in exact)
    text = "at the logged draw"
    if not differs:
        text = f"equal {'to all digits' if is_identical else 'up to rounding'} {text}"
    if decide is None and logged["action"] is not None:
        text += "; the action was not compared, as its rule is not given"
    return Check.of("values", differs, text), is_identical


def _compared(values: Mapping[str, Any], *, with_action: bool) -> dict[str, Any]:
    """Return what is compared of a forecast, by name: numbers, link and action."""
    found = {f"quantile {level}": value for level, value in values["quantiles"].items()}
    of_kind = ["mean"] if values["probability"] is None else ["probability"]
    of_link = [] if values["link"] is None else ["link", "alpha"]
    named = [*of_kind, *of_link, *(["action"] if with_action else [])]
    return found | {name: values[name] for name in named}


def _is_close(before: Any, now: Any, scale: float) -> bool:
    if isinstance(before, float) and isinstance(now, float | int):
        return abs(before - now) <= TOLERANCE * max(abs(before), abs(now), scale)
    return before == now


def _record_check(entry: Logged) -> Check:
    """Compare the logged quantiles with those of the logged distribution at the logged draw."""
    values = entry.values
    served = served_of([entry], base_of([entry]))
    if values["probability"] is not None:
        found = float(served.event_probability()[0])
        is_same = _is_close(values["probability"], found, 1.0)
        differs = [] if is_same else [("probability", values["probability"], found)]
        return Check.of("record", differs, "probability of the logged distribution")
    differs = []
    for level, value in values["quantiles"].items():
        if value is None:
            continue
        low, high = (float(end[0]) for end in served.pit_interval([value]))
        if not low - LEVEL_TOLERANCE <= float(level) <= high + LEVEL_TOLERANCE:
            found = float(served.ppf(float(level))[0])
            differs.append((f"quantile {level}", value, found))
    return Check.of("record", differs, "quantiles of the logged distribution at the logged draw")


def _libraries_check(opened: Mapping[str, Any], values: Check) -> Check:
    logged, now = opened["versions"], versions()
    remark: dict[str, str] = {
        "equal": "the values are nevertheless equal",
        "differs": "they may be why values differ",
        "not checked": "the values were not computed again",
    }
    pairs = [(name, logged.get(name), now.get(name)) for name in dict.fromkeys([*logged, *now])]
    return Check.of("libraries", pairs, "the same versions", remark[values.status])


# --- rows of logged forecasts in tables of features


def row_of(
    entry: Logged,
    parts: Parts,
    model: Any,
    *,
    ids: str | None = None,
    mode: str = "hash",
    draws: KeyedDraws | None = None,
) -> tuple[dict[str, Any], str | int | None]:
    """Return the row of a table to which a logged forecast belongs, and the id of its person.

    That is the row with the hash of the logged features. With a column of ids it is the row of the
    person, whose features may have changed since; of several, one with the logged features. `mode`
    is how the log names people: "hash", which needs the draws with the key, or "id".
    """
    wanted, name = entry.values["features_sha256"], entry.values["person"]
    found, most, n = None, 0, 0
    for features, person in _rows(parts, FeatureReader(model), ids):
        n += 1
        is_person = person is not None and logged_name(draws, mode, person) == name
        # the person counts more than the features
        n_alike = (features.sha256 == wanted) + 2 * is_person
        if n_alike > most:
            found, most = (features.values, person), n_alike
        if most == (1 if ids is None else 3):
            break
    if found is not None:
        return found
    what = "the features" if ids is None else "the person or the features"
    remedy = "name another table"
    if ids is None:
        remedy += ", or the column of ids, to compare the row of the person"
    raise InputError(
        f"{parts.source}: none of {count(n, 'row')} has {what} of the forecast {entry.id}; {remedy}"
    )


def _rows(parts: Parts, reader: FeatureReader, ids: str | None) -> Iterator[tuple[Features, Any]]:
    """Yield the features of each row of a table, and the id of the person, if there is one."""
    names = [check_column(name, parts.columns, parts.source) for name in reader.names]
    if ids is not None:
        check_column(ids, parts.columns, parts.source)
    wanted = list(dict.fromkeys([*names, *([] if ids is None else [ids])]))
    typed = parts.typed(reader.schema.apply)
    for part, source in enumerate(parts.names):
        for start, block in typed.blocks(part, wanted):
            people: list[Any] = [None] * len(block)
            with about(source, start):
                if ids is not None:
                    people = list(id_column(block, ids, source=source))
                read = reader.read_all(block[names])
            yield from zip(read, people, strict=True)
