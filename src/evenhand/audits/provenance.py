"""Where an audit comes from: what made it, from which model and data, with which draws."""

from __future__ import annotations

import hashlib
import json
import numbers
import platform
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats
from evenhand.calibration import PITs
from evenhand.draws import RandomState

if TYPE_CHECKING:
    from evenhand.audits.result import Audit

PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas")


def provenance_of(
    name: str, kind: str | None, values: Floats, random_state: RandomState, draws: str
) -> dict[str, Any]:
    """Return what an audit from Python comes from; a command and files are not known there.

    `values` are the outcomes that were given, or the PITs where only they are known.
    """
    from evenhand._version import __version__

    # a generator cannot be given again: only a number makes an audit repeatable
    is_seed = isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool)
    return {
        "evenhand": __version__,
        "python": platform.python_version(),
        "packages": _packages(),
        "command": None,
        "random_state": int(random_state) if is_seed else None,  # type: ignore[arg-type]
        "model": {"name": name, "kind": kind, "sha256": None},
        "data": {"name": None, "sha256": None, "n_rows": len(values)},
        "values_sha256": hashlib.sha256(np.ascontiguousarray(values, dtype="<f8").data).hexdigest(),
        "draws": draws,
    }


def draws_in_words(pits: PITs, *, is_given: bool) -> str:
    """Return where the draws of an audit come from.

    `is_given` tells that the forecasts or PITs were made before the audit.
    """
    m = pits.n_draws
    each = f"{m} draw{'s' * (m > 1)} per row"
    if pits.draws is None:
        # several columns are draws all the same, which the caller did not give
        return (
            f"not known: {each}" if m > 1 else "none: one forecast per row, without randomization"
        )
    if is_given:
        return f"as they came with the forecasts: {each}"
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
    data_name: str | None = None,
    rows: NDArray[np.intp] | None = None,
    n_rows: int | None = None,
) -> Audit:
    """Add to an audit the command that made it, and the hashes of model and table.

    Parameters
    ----------
    found : Audit
        Of the model in the folder, on the table or on some of its rows.
    command : str, optional
        The command line.
    model : Path, optional
        The model folder.
    model_sha256 : str, optional
        The hash that it will hold, where the model is not saved yet.
    data : Path, optional
        The table; one in several parts has no hash.
    data_name : str, optional
        What to call a table that is no file.
    rows : ndarray of int, optional
        Where only some rows of the table were audited, their numbers: examples are then named by
        those.
    n_rows : int, optional
        Rows of the table, where only some were audited.
    """
    known = found.provenance
    table: dict[str, Any] = {} if n_rows is None else {"n_rows": n_rows}
    if data is not None:
        table |= {"name": _readable(data.name), "sha256": _file_hash(data)}
    elif data_name is not None:
        table |= {"name": _readable(data_name), "sha256": None}
    seal = model_sha256 if model is None else _seal(model)
    sources = {
        "command": None if command is None else _readable(command),
        "model": known["model"] | {"sha256": seal},
        "data": known["data"] | table,
    }
    examples = found.examples
    if rows is not None and not examples.empty:
        examples = examples.assign(row=rows[examples["row"].to_numpy()])
    return replace(found, provenance=known | sources, examples=examples)


def with_people(found: Audit, ids: Sequence[object]) -> Audit:
    """Name the example people of an audit by the ids of the rows of its table."""
    examples = found.examples
    if examples.empty:
        return found
    return replace(found, examples=examples.assign(id=[str(ids[row]) for row in examples["row"]]))


def _packages() -> dict[str, str]:
    packages = {name: version(name) for name in PACKAGES}
    # what was not loaded had no part in the audit
    return packages | (
        {"torch": str(sys.modules["torch"].__version__)} if "torch" in sys.modules else {}
    )


def _seal(model: Path) -> str | None:
    """Return the hash that a model folder holds of itself.

    It covers the hashes of all its files.
    """
    manifest = model / "model.json"
    return str(json.loads(manifest.read_text())["sha256"]) if manifest.is_file() else None


def _file_hash(data: Path) -> str | None:
    if not data.is_file():
        return None
    with data.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _readable(text: str) -> str:
    """Return text from the command line as a file can hold it: names of files may be any bytes."""
    return text.encode(errors="replace").decode()
