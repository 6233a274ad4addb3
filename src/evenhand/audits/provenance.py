"""Provenance of an audit, and row numbers and ids of the people that it lists."""

from __future__ import annotations

import hashlib
import json
import numbers
import platform
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, Ints, bad_input
from evenhand.calibration import Cells
from evenhand.draws import RandomState, id_text

if TYPE_CHECKING:
    from evenhand.audits.result import Audit


# --- row numbers and ids of listed people


def check_people(ids: Any, n: int) -> list[str] | None:
    """Return ids of people as texts; None if none are given.

    Examples
    --------
    >>> check_people([17, "ada"], 2)
    ['17', 'ada']
    """
    if ids is None:
        return None
    found = list(ids)
    if len(found) != n:
        remedy = "pass the ids of all rows, in their order"
        raise bad_input("ids", f"have one id per row ({n})", len(found), remedy)
    return [id_text(one) for one in found]


def renumbered(found: Audit, numbers: Ints) -> Audit:
    """Number members of groups by `numbers`, those of the audited rows."""
    places = {key: numbers[rows] for key, rows in found.places.items()}
    ids = None if found.ids is None else dict(zip(numbers.tolist(), found.ids, strict=True))
    return replace(found, places=places, ids=ids)


# --- versions, command, model, data and draws

PACKAGES = {
    "numpy": "numpy",
    "scipy": "scipy",
    "scikit-learn": "sklearn",
    "pandas": "pandas",
    "torch": "torch",
}
"""Modules by package; versions of those that were loaded are recorded."""


def values_hash(values: Floats) -> str:
    """Return the hash of outcomes or PITs in their order."""
    return hashlib.sha256(np.ascontiguousarray(values, dtype="<f8").data).hexdigest()


def provenance_of(
    name: str, kind: str | None, values: Floats, random_state: RandomState, draws: str
) -> dict[str, Any]:
    """Return the provenance of an audit made in Python, without a command and files.

    `values` are the given outcomes, or the PITs if only they are known.
    """
    from evenhand._version import __version__

    loaded = {
        name: sys.modules[module] for name, module in PACKAGES.items() if module in sys.modules
    }
    # only an integer seed makes an audit repeatable; a generator cannot be recorded
    is_seed = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    return {
        "evenhand": __version__,
        "date": str(datetime.now(UTC).date()),
        "python": platform.python_version(),
        "packages": {name: str(module.__version__) for name, module in loaded.items()},
        "command": None,
        "random_state": int(random_state) if is_seed else None,  # type: ignore[arg-type]
        "model": {"name": name, "kind": kind, "sha256": None},
        "data": {"name": None, "sha256": None, "n_rows": len(values)},
        "values_sha256": values_hash(values),
        "draws": draws,
    }


def draws_in_words(cells: Cells, *, is_given: bool) -> str:
    """Return the origin of the draws of an audit.

    `is_given` is true if the forecasts or PITs were made before the audit.
    """
    m = cells.n_draws
    each = f"{m} draw{'s' * (m > 1)} per row"
    if cells.draws is None:
        # several columns of PITs imply draws, although the caller did not pass them
        return f"unknown: {each}" if m > 1 else "none: one forecast per row, without randomization"
    if is_given:
        return f"given with the forecasts: {each}"
    return (
        f"made for this audit: {each}, one at random in each of {m} equal parts of the range from 0"
        " to 1"
    )


def with_sources(
    found: Audit,
    *,
    command: str | None = None,
    model: Path | None = None,
    model_sha256: str | None = None,
    data: Path | None = None,
    rows: NDArray[np.intp] | None = None,
    n_rows: int | None = None,
) -> Audit:
    """Add to an audit the command that made it, and the hashes of model and table.

    Parameters
    ----------
    found : Audit
        Audit of the model in the folder, on the table or on some of its rows.
    command : str, optional
        The command line.
    model : Path, optional
        The model folder.
    model_sha256 : str, optional
        Hash of a model that is not saved yet.
    data : Path, optional
        The file of the table; a folder of parts gets no hash.
    rows : ndarray of int, optional
        Numbers of the audited rows in the table, if not all were audited; members of
        groups are then numbered by them.
    n_rows : int, optional
        Number of rows of the table, if not all were audited.
    """
    known = found.made.provenance
    table: dict[str, Any] = {} if n_rows is None else {"n_rows": n_rows}
    if data is not None:
        table |= {"name": _readable(data.name), "sha256": _file_hash(data)}
    manifest = None if model is None else model / "model.json"
    if manifest is not None:
        # the hash of a model folder covers the hashes of all its files
        has_seal = manifest.is_file()
        model_sha256 = str(json.loads(manifest.read_text())["sha256"]) if has_seal else None
    sources = {
        "command": None if command is None else _readable(command),
        "model": known["model"] | {"sha256": model_sha256},
        "data": known["data"] | table,
    }
    found = found if rows is None else renumbered(found, rows)
    return found.with_rows(provenance=known | sources)


def _file_hash(data: Path) -> str | None:
    if not data.is_file():
        return None
    with data.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _readable(text: str) -> str:
    """Return text that can be written to a file; names of files may contain any bytes."""
    return text.encode(errors="replace").decode()
