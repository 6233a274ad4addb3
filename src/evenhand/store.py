"""Save and load forecasters as folders without pickle.

`model.json` holds everything but arrays, and a hash of each other file; arrays are safetensors, scikit-learn parts
skops files with a fixed list of allowed types. Other files carry their hash in their names and `model.json` is
replaced last, in one step: a save that is interrupted leaves the old model as it was.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from evenhand._checks import InputError
from evenhand.forecasters import FORECASTERS, Forecaster, State

__all__ = ["FORMAT", "load", "save"]

FORMAT = 1
"""Version of the folder's layout that this release writes, and the newest that it reads."""

MANIFEST = "model.json"

_KERNELS = (
    "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Matern PairwiseKernel Product RBF "
    "RationalQuadratic Sum WhiteKernel"
)

ALLOWED_TYPES = frozenset(
    {
        "sklearn.tree._tree.Tree",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        *(f"sklearn.gaussian_process.kernels.{name}" for name in _KERNELS.split()),
    }
)
"""Types that a stored scikit-learn part may hold besides those that skops trusts by itself."""

Blob = tuple[str, bytes]


def save(model: Forecaster, folder: str | os.PathLike[str]) -> None:
    """Save a fitted forecaster to a folder.

    Parameters
    ----------
    model : forecaster
        One of ours, fitted; scikit-learn estimators inside are stored too.
    folder : path
        Made if it is not there. A model that is there already is replaced in one step.

    Raises
    ------
    InputError
        If the forecaster, or a model inside it, cannot be stored without pickle.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> from sklearn.linear_model import BayesianRidge
    >>> from evenhand import RandomizedRegressor
    >>> X, y = np.random.default_rng(0).normal(size=(2, 200, 1))
    >>> model = RandomizedRegressor(BayesianRidge()).fit(X, y[:, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, folder)
    ...     again = load(folder)
    >>> bool((again.predict(X) == model.predict(X)).all())
    True
    """
    if type(model).__name__ not in FORECASTERS:
        raise InputError(f"{type(model).__name__} cannot be saved; put it inside RandomizedRegressor(...) first")
    blobs: dict[str, Blob] = {}
    entry = _pack(model, "model", blobs)
    target = Path(folder)
    if target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file; name a folder for the model")
    target.mkdir(parents=True, exist_ok=True)
    files = {}
    for key, (ending, content) in blobs.items():
        digest = hashlib.sha256(content).hexdigest()
        name = f"{key}-{digest[:16]}.{ending}"
        _replace(target / name, content)
        files[key] = {"file": name, "sha256": digest}
    manifest = {"format": FORMAT, "written_by": _version(), "model": entry, "files": files}
    _replace(target / MANIFEST, (json.dumps(manifest, indent=2, allow_nan=False) + "\n").encode())
    _sweep(target, {MANIFEST, *(str(file["file"]) for file in files.values())})


def load(folder: str | os.PathLike[str]) -> Any:
    """Load a forecaster from a folder that `save` wrote.

    Parameters
    ----------
    folder : path
        The model folder.

    Returns
    -------
    forecaster
        Its forecasts at the same draws are those of the saved one.

    Raises
    ------
    InputError
        If the folder is missing, damaged, changed or of a newer format, or holds types that are not allowed.
    """
    source = Path(folder)
    manifest = _read_manifest(source)
    try:
        return _unpack(manifest["model"], manifest["files"], source)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{source / MANIFEST}: damaged, {type(error).__name__} at {error}; save the model anew"
        ) from error


def _pack(model: Forecaster, key: str, blobs: dict[str, Blob]) -> dict[str, Any]:
    """Describe a forecaster as JSON and add its arrays and parts to `blobs`."""
    from safetensors.numpy import save as to_bytes

    state = model.to_state()
    entry: dict[str, Any] = {"kind": state.kind, "params": state.params, "parts": {}}
    if state.arrays:
        arrays = {name: np.ascontiguousarray(array) for name, array in state.arrays.items()}
        blobs[key] = ("safetensors", to_bytes(arrays))
        entry["arrays"] = key
    for name, part in state.parts.items():
        inner = f"{key}.{name}"
        if isinstance(part, Forecaster):
            entry["parts"][name] = {"forecaster": _pack(part, inner, blobs)}
        else:
            blobs[inner] = ("skops", _dump_part(part))
            entry["parts"][name] = {"skops": inner}
    return entry


def _unpack(entry: dict[str, Any], files: dict[str, Any], source: Path) -> Forecaster:
    from safetensors.numpy import load as from_bytes

    if entry["kind"] not in FORECASTERS:
        raise InputError(f"{source / MANIFEST}: unknown forecaster {entry['kind']!r}; update evenhand")
    arrays = from_bytes(_read(source, files[entry["arrays"]])) if "arrays" in entry else {}
    parts: dict[str, Any] = {}
    for name, part in entry["parts"].items():
        if "forecaster" in part:
            parts[name] = _unpack(part["forecaster"], files, source)
        else:
            parts[name] = _load_part(_read(source, files[part["skops"]]), source)
    return FORECASTERS[entry["kind"]].from_state(State(entry["kind"], entry["params"], arrays, parts))


def _read_manifest(source: Path) -> dict[str, Any]:
    path = source / MANIFEST
    if not source.is_dir():
        raise InputError(f"{source}: no such model folder; make one with evenhand fit or evenhand.save")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        version = manifest["format"]
    except FileNotFoundError as error:
        raise InputError(f"{source}: not a model folder, it has no {MANIFEST}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path}: damaged, not a model description ({error}); save the model anew") from error
    if not isinstance(version, int) or version < 1:
        raise InputError(f"{path}: damaged, format {version!r}; save the model anew")
    if version > FORMAT:
        written_by = manifest.get("written_by", "a newer release")
        raise InputError(f"{path}: format {version} is newer than {FORMAT}, which this release reads; use {written_by}")
    return dict(manifest)


def _read(source: Path, file: dict[str, str]) -> bytes:
    """Read a file of the folder and check its hash; nothing outside the folder is opened."""
    name = str(file["file"])
    if Path(name).name != name or name in ("", ".", ".."):
        raise InputError(f"{source / MANIFEST}: file {name!r} leaves the model folder; do not use this model")
    path = source / name
    if path.is_symlink():
        raise InputError(f"{path}: is a link; model folders hold plain files only")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); save the model anew") from error
    if hashlib.sha256(content).hexdigest() != file["sha256"]:
        raise InputError(f"{path}: damaged or changed since it was saved (its hash differs); save the model anew")
    return content


def _dump_part(part: Any) -> bytes:
    import skops.io

    try:
        content: bytes = skops.io.dumps(part)
    except Exception as error:  # skops raises whatever the foreign object raises
        raise InputError(f"{type(part).__name__} cannot be stored without pickle ({error})") from error
    refused = _refused(content)
    if refused:
        raise InputError(f"{type(part).__name__} cannot be stored safely: it holds {', '.join(refused)}")
    return content


def _load_part(content: bytes, source: Path) -> Any:
    import skops.io

    refused = _refused(content)
    if refused:
        raise InputError(f"{source}: holds types that are not allowed: {', '.join(refused)}; do not use this model")
    return skops.io.loads(content, trusted=skops.io.get_untrusted_types(data=content))


def _refused(content: bytes) -> list[str]:
    import skops.io

    untrusted = skops.io.get_untrusted_types(data=content)
    return [name for name in untrusted if name not in ALLOWED_TYPES]


def _replace(path: Path, content: bytes) -> None:
    """Write a file in one step: what is there stays until the new content is on disk."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".draft-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def _sweep(folder: Path, keep: set[str]) -> None:
    """Remove the files of an earlier model."""
    for path in folder.iterdir():
        if path.name not in keep and path.suffix in (".safetensors", ".skops"):
            path.unlink(missing_ok=True)


def _version() -> str:
    from evenhand import __version__

    return f"evenhand {__version__}"
