"""Save and load forecasters as folders without pickle.

`model.json` holds everything but arrays, a hash of each other file and one of itself; arrays are safetensors,
scikit-learn parts skops files with a fixed list of allowed types. Models that skops cannot store safely are only named;
they are attached again at load. Other files carry their hash in their names and `model.json` is replaced last, in one
step: a save that is interrupted leaves the old model as it was.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from evenhand._checks import InputError, MissingExtraError, bad_input
from evenhand._files import replace_file
from evenhand.forecasters import FORECASTERS, Forecaster, State
from evenhand.forecasters._bases import thawed

__all__ = ["FORMAT", "check_folder", "load", "save"]

FORMAT = 1
"""Version of the folder's layout that this release writes, and the newest that it reads."""

MANIFEST = "model.json"

_UNSEALED = "0" * 64
"""Stands in the manifest where its own hash goes, while that is taken."""

_OURS = re.compile(r"model[\w.]*-[0-9a-f]{16}\.(safetensors|skops)|\.draft-.*")
"""Names of files that a save makes beside the manifest."""

_DISTANCES = "Chebyshev Euclidean Manhattan Minkowski"
_KERNELS = (
    "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Matern PairwiseKernel Product RBF "
    "RationalQuadratic Sum WhiteKernel"
)

ALLOWED_TYPES = frozenset(
    {
        "evenhand.forecasters._foreign_bases.QuantileGrid",
        "numpy.dtype",
        "sklearn._loss.loss.HalfTweedieLoss",
        "sklearn._loss.loss.HalfTweedieLossIdentity",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.KFold",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        *(f"sklearn.metrics._dist_metrics.{name}Distance64" for name in _DISTANCES.split()),
        *(f"sklearn.gaussian_process.kernels.{name}" for name in _KERNELS.split()),
    }
)
"""Types that a stored scikit-learn part may hold besides those that skops trusts by itself; no functions.

A made-up tree can crash the process when it predicts, and hashes show damage, not who wrote a file: load models of
people you trust.
"""

Blob = tuple[str, bytes]


def save(model: Forecaster, folder: str | os.PathLike[str]) -> None:
    """Save a fitted forecaster to a folder.

    Parameters
    ----------
    model : forecaster
        One of ours, fitted; scikit-learn estimators inside are stored too. Other models and functions inside, which
        cannot be stored safely, are named in a warning: keep them yourself and give them to `load`.
    folder : path
        Made if it is not there. A model that is there already is replaced in one step.

    Raises
    ------
    InputError
        If the model is no forecaster of ours, or one of its parameters cannot be stored.

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
    target = check_folder(folder)
    blobs: dict[str, Blob] = {}
    entry = _pack(model, "model", blobs)
    files, contents = {}, {}
    for key, (ending, content) in blobs.items():
        digest = _digest(content)
        name = f"{key}-{digest[:16]}.{ending}"
        contents[name] = content
        files[key] = {"file": name, "sha256": digest}
    manifest = _sealed({"written_by": _version(), "model": entry, "files": files})
    target.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        replace_file(target / name, content)
    replace_file(target / MANIFEST, manifest)
    _sweep(target, set(contents))
    missing = "; ".join(f"{part['name']} {part['reason']}" for part in _foreign_parts(entry))
    if missing:
        places = list(_foreign_places(entry, "model"))
        given = "..." if len(places) == 1 else "[...]"
        advice = f"keep {' and '.join(places)}, e.g. with joblib, and load with load(folder, estimator={given})"
        warnings.warn(f"{target}: saved without a model inside: {missing}; {advice}", UserWarning, stacklevel=2)


def load(folder: str | os.PathLike[str], estimator: Any = None) -> Any:
    """Load a forecaster from a folder that `save` wrote.

    Parameters
    ----------
    folder : path
        The model folder.
    estimator : estimator, function or list, optional
        The fitted model or the function that `save` said it left out, or a list of them in the order it named them.
        That it is the same one is your word: only the name of its class or function is compared.

    Returns
    -------
    forecaster
        Its forecasts at the same draws are those of the saved one.

    Raises
    ------
    InputError
        If the folder is missing, damaged, changed or of a newer format, or holds types that are not allowed; or if
        `estimator` is not what was left out.
    MissingExtraError
        If the model needs a package that is not installed.

    Examples
    --------
    >>> load("no/such/folder")
    Traceback (most recent call last):
    evenhand._checks.InputError: no/such/folder: no such model folder; make one with evenhand fit or evenhand.save
    """
    source = Path(folder)
    manifest = _read_manifest(source)
    try:
        attached = iter(_attached(estimator, list(_foreign_parts(manifest["model"])), source))
        return _unpack(manifest["model"], manifest["files"], source, attached)
    except (InputError, MissingExtraError, MemoryError):
        raise
    except ModuleNotFoundError as error:
        remedy = "run: pip install 'evenhand[neural]'"
        raise MissingExtraError(f"{source}: the model needs {error.name}, which is not installed; {remedy}") from error
    except Exception as error:  # what is rebuilt from foreign bytes raises whatever it likes
        reason = f"{type(error).__name__}: {_line(error)}"
        raise InputError(f"{source}: damaged, cannot be rebuilt ({reason}); save the model anew") from error


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Return the folder if files could be written to it, there already or not; call this before long work.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_folder(Path(folder, "models", "first")).name
    'first'
    """
    target = Path(folder)
    there = next(path for path in (target, *target.absolute().parents) if path.exists())
    if not there.is_dir():
        raise bad_input(str(target), "be a folder, there already or not", f"the file {there}", "name another")
    if not os.access(there, os.W_OK):
        raise bad_input(str(target), "lie in a folder that can be written to", str(there), "choose another")
    return target


def _pack(model: Forecaster, key: str, blobs: dict[str, Blob]) -> dict[str, Any]:
    """Describe a forecaster as JSON and add its arrays and parts to `blobs`."""
    from safetensors.numpy import save as to_bytes

    if FORECASTERS.get(type(model).__name__) is not type(model):
        remedy = "put a scikit-learn model inside RandomizedRegressor(...)"
        raise bad_input("a model to save", f"be one of {', '.join(FORECASTERS)}", type(model).__name__, remedy)
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
            try:
                blobs[inner] = ("skops", _dump_part(part))
                entry["parts"][name] = {"skops": inner}
            except InputError as error:
                entry["parts"][name] = {"foreign": {"name": _name(part), "reason": str(error)}}
    return entry


def _foreign_parts(entry: dict[str, Any]) -> Iterator[dict[str, str]]:
    """Give the parts of a model that are not stored, in the order in which they are attached."""
    for part in entry["parts"].values():
        if "foreign" in part:
            yield part["foreign"]
        elif "forecaster" in part:
            yield from _foreign_parts(part["forecaster"])


def _foreign_places(entry: dict[str, Any], place: str) -> Iterator[str]:
    """Say where in a fitted forecaster the parts are that are not stored, in the same order."""
    for name, part in entry["parts"].items():
        member = name.removeprefix("member")
        inner = f"{place}.estimator_" + (f"[{member}]" if member != name else "")
        if "foreign" in part:
            yield inner
        elif "forecaster" in part:
            yield from _foreign_places(part["forecaster"], inner)


def _attached(estimator: Any, missing: list[dict[str, str]], source: Path) -> list[Any]:
    """Return what people give for the parts that are not stored, one for each."""
    names = [str(part["name"]) for part in missing]
    listed = ", ".join(names)
    if not missing:
        if estimator is not None:
            raise bad_input("estimator", "be left out", type(estimator).__name__, f"{source} holds the whole model")
        return []
    if estimator is None:
        raise InputError(f"{source}: saved without {listed}; load it with load(folder, estimator=...), fitted")
    given = [estimator] if len(names) == 1 else estimator
    if not isinstance(given, list | tuple) or len(given) != len(names):
        raise bad_input("estimator", f"be a list of {len(names)}: {listed}", type(estimator).__name__)
    given = [thawed(one) for one in given]
    for one, name in zip(given, names, strict=True):
        if _name(one) != name:
            raise bad_input("estimator", f"be what {source} was saved without, {name}", _name(one))
    return given


def _name(part: Any) -> str:
    """Name of a function or of an object's class; not its module, which is another one in a script."""
    return str(part.__qualname__ if inspect.isroutine(part) else type(part).__qualname__)


def _unpack(entry: dict[str, Any], files: dict[str, Any], source: Path, attached: Iterator[Any]) -> Forecaster:
    from safetensors.numpy import load as from_bytes

    if entry["kind"] not in FORECASTERS:
        raise InputError(f"{source / MANIFEST}: unknown forecaster {entry['kind']!r}; update evenhand")
    arrays = from_bytes(_read(source, files[entry["arrays"]])) if "arrays" in entry else {}
    parts: dict[str, Any] = {}
    for name, part in entry["parts"].items():
        if "forecaster" in part:
            parts[name] = _unpack(part["forecaster"], files, source, attached)
        elif "foreign" in part:
            parts[name] = next(attached)
        else:
            parts[name] = _load_part(_read(source, files[part["skops"]]), source)
    return FORECASTERS[entry["kind"]].from_state(State(entry["kind"], entry["params"], arrays, parts))


def _read_manifest(source: Path) -> dict[str, Any]:
    path = source / MANIFEST
    if not source.is_dir():
        raise InputError(f"{source}: no such model folder; make one with evenhand fit or evenhand.save")
    if not path.exists():
        raise InputError(f"{source}: not a model folder, it has no {MANIFEST}")
    content = _read_plain(path)
    try:
        text = content.decode()
        manifest = dict(json.loads(text))
        version = manifest["format"]
        seal = str(manifest.get("sha256"))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: damaged, not a model description ({_line(error)}); save the model anew") from error
    if not isinstance(version, int) or version < 1:
        raise InputError(f"{path}: damaged, format {version!r}; save the model anew")
    if version > FORMAT:
        written_by = manifest.get("written_by", "a newer release")
        raise InputError(f"{path}: format {version} is newer than {FORMAT}, which this release reads; use {written_by}")
    if _digest(text.replace(seal, _UNSEALED, 1).encode()) != seal:
        raise InputError(f"{path}: damaged or changed since it was saved (its hash differs); save the model anew")
    return manifest


def _sealed(manifest: dict[str, Any]) -> bytes:
    """Return the manifest as text that holds the hash of itself."""
    try:
        # the hash stands near the top, before any text that could look like its place
        head = {"format": FORMAT, "sha256": _UNSEALED}
        text = json.dumps(head | manifest, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise InputError(f"the model has a parameter that cannot be stored ({_line(error)})") from error
    return text.replace(_UNSEALED, _digest(text.encode()), 1).encode()


def _read(source: Path, file: dict[str, str]) -> bytes:
    """Read a file of the folder and check its hash; nothing outside the folder is opened."""
    name = str(file["file"])
    if Path(name).name != name or name in ("", ".", ".."):
        raise InputError(f"{source / MANIFEST}: file {name!r} leaves the model folder; do not use this model")
    content = _read_plain(source / name)
    if _digest(content) != file["sha256"]:
        damage = "damaged or changed since it was saved (its hash differs)"
        raise InputError(f"{source / name}: {damage}; save the model anew")
    return content


def _read_plain(path: Path) -> bytes:
    if path.is_symlink():
        raise InputError(f"{path}: is a link; model folders hold plain files only")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is not a plain file; save the model anew")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); save the model anew") from error


def _dump_part(part: Any) -> bytes:
    import skops.io

    try:
        content: bytes = skops.io.dumps(part)
        refused = _refused(content)
    except Exception as error:  # skops raises whatever the foreign object raises
        raise InputError(f"cannot be stored without pickle ({_line(error)})") from error
    if refused:
        raise InputError(f"cannot be stored safely: it holds {', '.join(refused)}")
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


def _sweep(folder: Path, keep: set[str]) -> None:
    """Remove the files of an earlier model, and of saves that were interrupted; nobody else's."""
    for path in folder.iterdir():
        if path.name not in keep and _OURS.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _line(error: BaseException) -> str:
    """Return what another package says in one line of bearable length."""
    return " ".join(str(error).split())[:200]


def _version() -> str:
    from evenhand import __version__

    return f"evenhand {__version__}"
