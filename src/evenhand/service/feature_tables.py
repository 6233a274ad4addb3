"""Rows of logged forecasts in tables of features."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evenhand._format import count
from evenhand._validate import InputError, about, check_column
from evenhand.draws import KeyedDraws
from evenhand.service.entries import Logged
from evenhand.service.features import RowReader
from evenhand.service.logged_forecasts import logged_name
from evenhand.tables import Parts, id_column


@dataclass(frozen=True)
class FoundRow:
    """Row of a table that belongs to a logged forecast.

    Parameters
    ----------
    values : dict
        Features by column, as the model reads them.
    person : str, int or None
        Id of the person; None without a column of ids.
    """

    values: dict[str, Any]
    person: str | int | None


def row_of(
    entry: Logged,
    parts: Parts,
    model: Any,
    *,
    ids: str | None = None,
    mode: str = "hash",
    draws: KeyedDraws | None = None,
) -> FoundRow:
    """Return the row of a table to which a logged forecast belongs.

    That is the row with the hash of the logged features. With a column of ids it is the row of the
    person, whose features may have changed since; of several, one with the logged features.

    Parameters
    ----------
    entry : Logged
        The forecast.
    parts : Parts
        The table.
    model : Forecaster
        The fitted model, by whose schema rows are read.
    ids : str, optional
        Column with the ids of people.
    mode : {"hash", "id"}
        How the log names people.
    draws : KeyedDraws, optional
        Draws with the key, if people are named by hashes.

    Raises
    ------
    InputError
        If no row belongs to the forecast, or the table cannot be read.
    """
    wanted, name = entry.values["features_sha256"], entry.values["person"]
    by_features: FoundRow | None = None
    by_person: FoundRow | None = None
    n = 0
    for found, sha256 in _rows(parts, RowReader(model), ids):
        n += 1
        is_person = found.person is not None and logged_name(draws, mode, found.person) == name
        if sha256 == wanted and (is_person or ids is None):
            return found
        if sha256 == wanted:
            by_features = by_features or found
        if is_person:
            by_person = by_person or found
    if by_person is not None or by_features is not None:
        return by_person or by_features  # type: ignore[return-value]
    what = "the features" if ids is None else "the person or the features"
    remedy = "name another table"
    if ids is None:
        remedy += ", or the column of ids, to compare the row of the person"
    raise InputError(
        f"{parts.source}: none of {count(n, 'row')} has {what} of the forecast {entry.id}; {remedy}"
    )


def _rows(parts: Parts, reader: RowReader, ids: str | None) -> Iterator[tuple[FoundRow, str]]:
    """Yield each row of a table with the hash of its features."""
    names = [check_column(name, parts.columns, parts.source) for name in reader.names]
    if ids is not None:
        check_column(ids, parts.columns, parts.source)
    wanted = list(dict.fromkeys([*names, *([] if ids is None else [ids])]))
    typed = parts.typed(reader.schema.apply)
    for part, source in enumerate(parts.names):
        for start, block in typed.blocks(part, wanted):
            people: list[Any] = [None] * len(block)
            if ids is not None:
                people = list(id_column(block, ids, source=source, start=start))
            with about(source):
                read = reader.read_all(block[names])
            for features, person in zip(read, people, strict=True):
                yield FoundRow(features.values, person), features.sha256
