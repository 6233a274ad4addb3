"""Certificates of forecasts in columns: the link of a folder, if it is for the named columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand._format import and_more
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


def certified_forecasts(
    folder: Path, subject: ColumnSubject, parts: Parts
) -> tuple[ColumnSubject, Link]:
    """Return columns of forecasts up to the certified horizon, if there is one, and their link.

    Raises InputError if the certificate is for other columns, or for another horizon.
    """
    from evenhand import store

    certified = store.read_forecast_certificate(folder)
    if subject.horizon is None:
        subject = replace(subject, horizon=certified.horizon)
    kind = subject.kind
    columns = subject.columns(parts.columns, parts.source)
    times = tuple(subject.times(parts.columns, parts.source) or ())
    given = CertifiedColumns(kind, tuple(columns), times, subject.horizon)
    expected = CertifiedColumns(
        certified.kind, certified.columns, certified.times, certified.horizon
    )
    if given.ordered != expected.ordered:
        raise InputError(
            f"--certificate {folder} is for {expected.as_options()}, not for {given.as_options()};"
            " name the certified columns, or certify these with --target"
        )
    link = certified.link
    until = "" if certified.horizon is None else f", horizon {certified.horizon:g}"
    inform(f"certified by {folder}: {link.name} link, alpha = {link.alpha:.3g}{until}")
    return subject, link


@dataclass(frozen=True)
class CertifiedColumns:
    """Columns of forecasts as a certificate records them; parameters as in `CertifiedForecasts`."""

    kind: str
    columns: tuple[str, ...]
    times: tuple[float, ...] = ()
    horizon: float | None = None

    @property
    def ordered(self) -> CertifiedColumns:
        """The columns in the order that has a meaning."""
        return replace(self, columns=tuple(_ordered(self.kind, self.columns)))

    def as_options(self) -> str:
        """Return the columns as options of the command."""
        columns = list(self.columns)
        if self.times:
            pairs = zip(self.times, self.columns, strict=True)
            columns = [f"{time:.15g}={name}" for time, name in pairs]
        tau = "" if self.horizon is None else f" --horizon {self.horizon:.15g}"
        return f"{_as_options(self.kind, columns)}{tau}"


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
    words = [f"--{name} {and_more(listed, MOST_SHOWN, ',')}" for name, listed in options]
    return " ".join([*words, *(["--outcome count"] if kind.startswith(COUNT) else [])])
