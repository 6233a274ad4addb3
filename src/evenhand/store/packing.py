"""Conversion of forecasters to and from JSON, arrays and stored parts."""

from __future__ import annotations

import inspect
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evenhand._validate import InputError, about, bad_input, typed_fields
from evenhand.forecast_columns import ForecastColumns
from evenhand.forecasters import FORECASTERS, Forecaster, State, SurvivalModel, thawed
from evenhand.store.estimators import dump_part, load_part
from evenhand.store.manifest import MANIFEST, digest, sealed

Blob = tuple[str, bytes]
"""File ending and content."""


@dataclass(frozen=True)
class PackedModel:
    """A fitted forecaster as the files of a model folder, before they are written.

    Parameters
    ----------
    entry : dict
        Description of the forecaster, as JSON values.
    contents : dict of str to bytes
        Other files than the manifest, by name; the names contain hashes.
    manifest : bytes
        Content of `model.json`.
    sha256 : str
        The manifest's hash of itself, which covers the hashes of all files.
    """

    entry: dict[str, Any]
    contents: dict[str, bytes]
    manifest: bytes
    sha256: str

    def warn_of_omissions(self, folder: Path) -> None:
        """Warn about inner models that could not be stored, with the attributes to keep."""
        parts = list(foreign_parts(self.entry))
        if parts:
            missing = "; ".join(f"{part['name']} {part['reason']}" for part in parts)
            given = "..." if len(parts) == 1 else "[...]"
            advice = (
                f"keep {' and '.join(part['place'] for part in parts)}, e.g. with joblib, and load"
                f" with load(folder, estimator={given})"
            )
            message = f"{folder} was saved without an inner model: {missing}; {advice}"
            # the line that calls `save`
            warnings.warn(message, UserWarning, stacklevel=3)


def pack(model: Forecaster | ForecastColumns) -> PackedModel:
    """Return a fitted forecaster as the files of a model folder.

    Raises
    ------
    InputError
        If the model is not a forecaster of this package, or a parameter cannot be stored.
    """
    from evenhand._version import __version__

    # arrays and parts of nested models are collected in one flat dict, by their paths
    blobs: dict[str, Blob] = {}
    entry = _pack(model, "model", blobs)
    files = {}
    contents = {}
    for key, (ending, content) in blobs.items():
        sha256 = digest(content)
        # a new save writes new names, so that an interrupted save leaves the old files intact
        name = f"{key}-{sha256[:16]}.{ending}"
        contents[name] = content
        files[key] = {"file": name, "sha256": sha256}
    # the manifest contains the hash of each file and of itself
    manifest = sealed({"written_by": f"evenhand {__version__}", "model": entry, "files": files})
    return PackedModel(entry, contents, manifest, str(json.loads(manifest)["sha256"]))


def unpack(
    entry: dict[str, Any], contents: Mapping[str, bytes], source: Path, attached: Iterator[Any]
) -> Forecaster | ForecastColumns:
    """Rebuild a forecaster from its description and the contents of its files, by key."""
    from safetensors.numpy import load as from_bytes

    if entry["kind"] not in FORECASTERS:
        raise InputError(
            f"{source / MANIFEST} contains an unknown forecaster {entry['kind']!r}; update evenhand"
        )
    arrays = from_bytes(contents[entry["arrays"]]) if "arrays" in entry else {}
    parts: dict[str, Any] = {}
    for name, part in entry["parts"].items():
        if "forecaster" in part:
            parts[name] = unpack(part["forecaster"], contents, source, attached)
        elif "foreign" in part:
            # in the order of `foreign_parts`, which is the order of the warning
            parts[name] = next(attached)
        else:
            parts[name] = load_part(contents[part["skops"]], source)
    kind = FORECASTERS[entry["kind"]]
    with about(f"{source / MANIFEST} is damaged"):
        given = typed_fields(kind.__init__, entry["params"]["params"])
        if issubclass(kind, ForecastColumns):
            return kind(**given)
        params = entry["params"] | {"params": given}
        return kind.from_state(State(entry["kind"], params, arrays, parts))


def _pack(model: Forecaster | ForecastColumns, key: str, blobs: dict[str, Blob]) -> dict[str, Any]:
    """Describe a forecaster as JSON values and add its arrays and parts to `blobs`."""
    from safetensors.numpy import save as to_bytes

    # a user's subclass would be loaded as our class
    if FORECASTERS.get(type(model).__name__) is not type(model):
        remedy = (
            "wrap a scikit-learn regressor in RandomizedRegressor(...), a classifier in"
            " ClassifierForecaster(...)"
        )
        raise bad_input("model", f"be a {' or '.join(FORECASTERS)}", type(model).__name__, remedy)
    if isinstance(model, ForecastColumns):
        return {"kind": "ForecastColumns", "params": {"params": asdict(model)}, "parts": {}}
    state = model.to_state()
    entry: dict[str, Any] = {"kind": state.kind, "params": state.params, "parts": {}}
    if state.arrays:
        # safetensors writes the memory of an array regardless of its strides
        arrays = {name: np.ascontiguousarray(array) for name, array in state.arrays.items()}
        blobs[key] = ("safetensors", to_bytes(arrays))
        entry["arrays"] = key
    for name, part in state.parts.items():
        inner = f"{key}.{name}"
        if isinstance(part, Forecaster | ForecastColumns):
            entry["parts"][name] = {"forecaster": _pack(part, inner, blobs)}
        else:
            try:
                blobs[inner] = ("skops", dump_part(part))
                entry["parts"][name] = {"skops": inner}
            # one foreign part must not prevent saving: it is omitted, and attached again on loading
            except InputError as error:
                entry["parts"][name] = {"foreign": {"name": _name(part), "reason": str(error)}}
    return entry


def foreign_parts(entry: dict[str, Any], place: str = "model") -> Iterator[dict[str, str]]:
    """Yield the parts of a model that are not stored, in the order in which they are attached.

    Each has the `name` of its class, the `reason` and the `place`, the attribute that contains it.
    """
    for name, part in entry["parts"].items():
        # the model of a `SurvivalModel` is its parameter, all others are fitted attributes
        fitted = re.sub(r"member(\d+)_", r"estimator_[\1]", f"{name}_")
        at = f"{place}.{name if name == 'model' else fitted}"
        if "foreign" in part:
            yield part["foreign"] | {"place": at}
        elif "forecaster" in part:
            yield from foreign_parts(part["forecaster"], at)


def attached_parts(estimator: Any, missing: list[dict[str, str]], source: Path) -> list[Any]:
    """Return the user's model for each part that is not stored."""
    names = [str(part["name"]) for part in missing]
    listed = ", ".join(names)
    if estimator is None and names:
        raise InputError(
            f"{source} was saved without {listed}; pass the fitted model with load(folder,"
            " estimator=...)"
        )
    if estimator is not None and not names:
        raise InputError(
            f"estimator is not needed, as {source} contains the whole model; omit the"
            f" {type(estimator).__name__}"
        )
    # a single missing part need not be in a list
    given = [estimator] if len(names) == 1 else estimator or []
    if not isinstance(given, list | tuple) or len(given) != len(names):
        rule = f"be a list of {len(names)} models, {listed}"
        raise bad_input("estimator", rule, type(estimator).__name__)
    given = [thawed(one) for one in given]
    # what is kept may be the fitted attribute, which contains the model
    given = [one.model if isinstance(one, SurvivalModel) else one for one in given]
    for one, name in zip(given, names, strict=True):
        if _name(one) != name:
            remedy = f"pass the model that {source} was saved without"
            raise bad_input("estimator", f"be a fitted {name}", _name(one), remedy)
    return given


def _name(part: Any) -> str:
    """Name of a function or an object's class, without its module, which differs in scripts."""
    return str(part.__qualname__ if inspect.isroutine(part) else type(part).__qualname__)
