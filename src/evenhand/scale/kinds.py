"""Types of the columns of a table in parts, from a model's schema or from all parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from evenhand._validate import InputError
from evenhand.columns import Evidence, Schema, found_schema, text_dates
from evenhand.scale.engine import Advance
from evenhand.tables import Parts, parse_numbers

Found = dict[str, Evidence]


def typed_parts(
    over: Callable[..., Any],
    parts: Parts,
    columns: Sequence[str],
    schema: Schema,
    skipped: dict[str, str] | None,
) -> Parts:
    """Return the parts with typed columns, by a model's schema or else by all csv parts together.

    A part with text in a column of numbers or dates in most parts is refused, or added to
    `skipped`.
    """
    unknown = tuple(name for name in columns if name not in schema)
    # parquet parts have types, but csv cells are text: one part may contain integers and another
    # words, so only all parts together determine the type of a column
    if not unknown or all(count is not None for count in parts.counts):
        return parts.typed(schema.apply)
    found: dict[int, Found] = dict(over(look_at_part, unknown, description="reading types"))
    for i, error in _misfits(found, parts, unknown):
        if skipped is None:
            raise error
        skipped[parts.names[i]] = str(error)
        del found[i]
    total = {
        name: reduce(add, (one[name] for one in found.values()), Evidence()) for name in unknown
    }
    return parts.typed(schema.with_others(found_schema(total)).apply)


def look_at_part(columns: tuple[str, ...], parts: Parts, i: int, advance: Advance) -> Found:
    """Count the cells of some columns of one part by type."""
    found = {name: Evidence() for name in columns}
    is_csv = parts.n_rows(i) is None
    for start, block in parts.blocks(i, columns):
        for name in columns:
            values = block[name]
            found[name] += Evidence.of_text(values, start) if is_csv else Evidence.of_typed(values)
        advance(len(block))
    return found


def _misfits(
    found: Mapping[int, Found], parts: Parts, columns: Sequence[str]
) -> list[tuple[int, InputError]]:
    wrong: dict[int, InputError] = {}
    for name in columns:
        kinds = Counter(one[name].kind for one in found.values() if not one[name].is_empty)
        # without a majority of numbers the column is text, and its numbers are codes
        is_typed = 2 * (kinds["number"] + kinds["date"]) > len(found)
        for i in sorted(found) if is_typed else ():
            if not found[i][name].is_empty and found[i][name].kind == "category":
                wrong.setdefault(i, _misfit(parts, i, name, kinds["date"] > kinds["number"]))
    return sorted(wrong.items())


def _misfit(parts: Parts, i: int, name: str, is_date: bool) -> InputError:
    for start, block in parts.blocks(i, [name]):
        is_wrong = (text_dates if is_date else parse_numbers)(block[name])[1]
        if is_wrong.any():
            row = int(np.argmax(is_wrong))
            place = f"{parts.names[i]}: column {name!r}, row {start + row + 1}"
            kind = "a date" if is_date else "a number"
            return InputError(
                f"{place}: {block[name].iloc[row]!r} is not {kind} as in most parts; correct it or"
                " drop the row"
            )
    return InputError(
        f"{parts.names[i]}: column {name!r} contains text, unlike most parts; correct it"
    )
