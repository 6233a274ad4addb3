"""Certificates of forecasts in columns: the link of a folder, if it is for the named columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evenhand._validate import InputError
from evenhand.cli.messages import inform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evenhand.links import Link
    from evenhand.scale import ColumnSubject
    from evenhand.tables import Parts

MOST_SHOWN = 5
"""Largest number of columns that a message lists."""

CHANCE = "chance_of_zero_"
COUNT = "count_"
"""Beginnings of kinds of columns (`ColumnSubject.kind`), before the form of the forecasts."""


def certified_link(folder: Path, subject: ColumnSubject, parts: Parts) -> Link:
    """Return the certified link; refuse a certificate of other columns."""
    from evenhand import store

    certified = store.read_forecast_certificate(folder)
    kind = subject.kind
    columns = subject.columns(parts.columns, parts.source)
    if (kind, _ordered(kind, columns)) != (
        certified.kind,
        _ordered(certified.kind, certified.columns),
    ):
        raise InputError(
            f"--certificate {folder} is for {_as_options(certified.kind, certified.columns)}, not"
            f" for {_as_options(kind, columns)}; name the certified columns, or certify these with"
            " --target"
        )
    link = certified.link
    inform(f"certified by {folder}: {link.name} link, alpha = {link.alpha:.3g}")
    return link


def _ordered(kind: str, columns: Sequence[str]) -> list[str]:
    """Return columns in the order that has a meaning; that of samples has none."""
    first = 1 if kind.startswith(CHANCE) else 0
    rest = columns[first:]
    return [*columns[:first], *(sorted(rest) if kind.endswith("samples") else rest)]


def _as_options(kind: str, columns: Sequence[str]) -> str:
    """Return columns of forecasts as options of the command."""
    form = kind.removeprefix(CHANCE).removeprefix(COUNT)
    options = [("chance-of-zero", columns[:1])] if kind.startswith(CHANCE) else []
    rest = columns[len(options) :]
    if form in ("mean", "mean_std"):
        options += [(name, [column]) for name, column in zip(form.split("_"), rest, strict=True)]
    else:
        options.append((form, rest))
    words = [f"--{name} {_listed(listed)}" for name, listed in options]
    return " ".join([*words, *(["--outcome count"] if kind.startswith(COUNT) else [])])


def _listed(columns: Sequence[str]) -> str:
    more = f" and {len(columns) - MOST_SHOWN:,} more" if len(columns) > MOST_SHOWN else ""
    return ",".join(columns[:MOST_SHOWN]) + more
