"""Certificates of forecasts in columns: the link of a folder, if it is for the named columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand._validate import InputError, first_names
from evenhand.cli.messages import inform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evenhand.links import Link
    from evenhand.scale import ColumnSubject
    from evenhand.tables import Parts


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
    columns = tuple(subject.columns(parts.columns, parts.source))
    times = tuple(subject.times(parts.columns, parts.source) or ())
    given = (subject.kind, columns, times, subject.horizon)
    expected = (certified.kind, certified.columns, certified.times, certified.horizon)
    if _ordered(*given) != _ordered(*expected):
        raise InputError(
            f"--certificate {folder} is for {_text(*expected)}, not for {_text(*given)}; name the"
            " certified columns, or certify these with --target"
        )
    link = certified.link
    until = "" if certified.horizon is None else f", horizon {certified.horizon:g}"
    inform(f"certified by {folder}: {link.name} link, alpha = {link.alpha:.3g}{until}")
    return subject, link


def _ordered(kind: str, columns: Sequence[str], *rest: Any) -> tuple[Any, ...]:
    """Return columns in the order that has a meaning; that of samples has none."""
    if not kind.endswith("samples"):
        return kind, *columns, *rest
    first = 1 if kind.startswith("chance_of_zero_") else 0
    return kind, *columns[:first], *sorted(columns[first:]), *rest


def _text(kind: str, columns: Sequence[str], times: Sequence[float], horizon: float | None) -> str:
    named = [f"{time:.15g}={name}" for time, name in zip(times, columns, strict=False)] or columns
    tau = "" if horizon is None else f" up to the horizon {horizon:.15g}"
    return f"{kind} in {first_names(named, 5)}{tau}"
