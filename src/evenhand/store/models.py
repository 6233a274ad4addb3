"""Saving and loading fitted forecasters, in folders that others may be reading or writing.

Every file except the manifest has its hash in its name, and the manifest is replaced last. A save
takes a lock that other saves wait for. Loading takes no lock, so that it works on write-protected
folders: it starts again if the manifest has been replaced in the meantime.

Certificate and report have plain names, as people open them. They are first written under temporary
names that contain the hash of their model, and are renamed once the manifest has been replaced. The
next save completes or removes the files of a killed save.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import re
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from evenhand._files import check_folder, replace_file, sweep_partials, sync_folder
from evenhand._locks import is_old, one_writer
from evenhand._validate import (
    AnyPath,
    InputError,
    MissingExtraError,
    about,
    bad_input,
    typed_fields,
)
from evenhand.draws import id_text
from evenhand.forecast_columns import ForecastColumns
from evenhand.forecasters import FORECASTERS, Forecaster, State, SurvivalModel, thawed
from evenhand.store.estimators import dump_part, error_text, load_part

Json = dict[str, Any]
"""A JSON object."""

CERTIFICATE = "certificate.json"
REPORT = "report.html"

# --- fitted forecasters as files: a manifest, arrays and stored parts

FORMAT = 1
"""Format version that this release writes, and the newest that it reads."""

MANIFEST = "model.json"

_UNSEALED = "0" * 64
"""Placeholder in the manifest for its own hash while the hash is computed."""


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
    """

    entry: Json
    contents: dict[str, bytes]
    manifest: bytes

    @property
    def sha256(self) -> str:
        """The manifest's hash of itself, which covers the hashes of all files."""
        return json.loads(self.manifest)["sha256"]


def pack(model: Forecaster | ForecastColumns) -> PackedModel:
    """Return a fitted forecaster as the files of a model folder.

    Raises InputError if it is not one of this package, or has a parameter that cannot be stored.
    """
    from evenhand._version import __version__

    # arrays and parts of nested models are collected in one flat dict, by their paths
    blobs: dict[str, tuple[str, bytes]] = {}
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
    return PackedModel(entry, contents, manifest)


def digest(content: bytes) -> str:
    """Return the SHA-256 of bytes as hexadecimal text."""
    return hashlib.sha256(content).hexdigest()


def sealed(manifest: Json) -> bytes:
    """Return the manifest as JSON that contains its own hash."""
    try:
        # the hash is near the top, before any text that could look like its placeholder
        head = {"format": FORMAT, "sha256": _UNSEALED}
        text = json.dumps(head | manifest, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the model has a parameter that cannot be stored ({error_text(error)})"
        ) from error
    return text.replace(_UNSEALED, digest(text.encode()), 1).encode()


def unpack(
    entry: Json, contents: Mapping[str, bytes], source: Path, attached: Iterator[Any]
) -> Forecaster | ForecastColumns:
    """Rebuild a forecaster from its description and the contents of its files, by key."""
    from safetensors.numpy import load as from_bytes

    arrays = from_bytes(contents[entry["arrays"]]) if "arrays" in entry else {}
    parts: Json = {}
    for name, part in entry["parts"].items():
        if "forecaster" in part:
            parts[name] = unpack(part["forecaster"], contents, source, attached)
        elif "foreign" in part:
            # in the order of `foreign_parts`, which is the order of the warning
            parts[name] = next(attached)
        else:
            ((form, key),) = part.items()
            parts[name] = load_part(form, contents[key], source)
    kind = FORECASTERS[entry["kind"]]
    with about(f"{source / MANIFEST} is damaged"):
        given = typed_fields(kind.__init__, entry["params"]["params"])
        if issubclass(kind, ForecastColumns):
            return kind(**given)
        params = entry["params"] | {"params": given}
        return kind.from_state(State(entry["kind"], params, arrays, parts))


def _pack(
    model: Forecaster | ForecastColumns, key: str, blobs: dict[str, tuple[str, bytes]]
) -> Json:
    """Describe a forecaster as JSON values; add endings and contents of its files to `blobs`."""
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
    entry: Json = {"kind": state.kind, "params": state.params, "parts": {}}
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
                blobs[inner] = dump_part(part)
                entry["parts"][name] = {blobs[inner][0]: inner}
            # one foreign part must not prevent saving: it is omitted, and attached again on loading
            except InputError as error:
                entry["parts"][name] = {"foreign": {"name": _name(part), "reason": str(error)}}
    return entry


def foreign_parts(entry: Json, place: str = "model") -> Iterator[dict[str, str]]:
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
    # a single part need not be in a list
    given = list(estimator) if isinstance(estimator, list | tuple) else [estimator]
    given = [thawed(one) for one in given if one is not None]
    # what is kept may be the fitted attribute, which contains the model
    given = [one.model if isinstance(one, SurvivalModel) else one for one in given]
    found = [_name(one) for one in given]
    if found and not names:
        raise InputError(
            f"estimator is not needed, as {source} contains the whole model; omit the {found[0]}"
        )
    if found != names:
        raise InputError(
            f"{source} was saved without {' and '.join(names)}; pass"
            f" {'it' if len(names) == 1 else 'a list of them'}, fitted, with load(folder,"
            f" estimator=...), got {', '.join(found) or 'no model'}"
        )
    return given


def _name(part: Any) -> str:
    """Name of a function or an object's class, without its module, which differs in scripts."""
    return part.__qualname__ if inspect.isroutine(part) else type(part).__qualname__


# --- reading of the files of a model folder, with their hashes

_CHANGED = "is damaged or was changed after it was saved (its hash differs)"
_SAVE_AGAIN = "save the model again"


def mark(source: Path) -> tuple[int, int, int] | None:
    """Return the identity of the manifest file, which changes with each save; None without one."""
    try:
        found = (source / MANIFEST).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def read_manifest(source: Path) -> Json:
    """Read the manifest of a model folder, and check its format and hash."""
    if not (source / MANIFEST).exists():
        what = f" is not a model folder, as it has no {MANIFEST}"
        what = what if source.is_dir() else ": no such model folder"
        raise InputError(f"{source}{what}; create one with evenhand fit or evenhand.save")
    path = source / MANIFEST
    content = read_plain(path)
    try:
        text = content.decode()
        manifest = dict(json.loads(text))
        version = manifest["format"]
        seal = str(manifest.get("sha256"))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path} is damaged, as it is not a model description ({error_text(error)});"
            f" {_SAVE_AGAIN}"
        ) from error
    if not isinstance(version, int) or version < 1:
        raise InputError(f"{path} is damaged, as its format is {version!r}; {_SAVE_AGAIN}")
    # a newer format may use the same names with other meanings
    if version > FORMAT:
        written_by = manifest.get("written_by", "a newer release")
        raise InputError(
            f"{path} has format {version}, but this release reads formats up to {FORMAT}; use"
            f" {written_by}"
        )
    # the hash was computed with zeros in its place
    if digest(text.replace(seal, _UNSEALED, 1).encode()) != seal:
        raise InputError(f"{path} {_CHANGED}; {_SAVE_AGAIN}")
    return manifest


def read_file(source: Path, file: dict[str, str]) -> bytes:
    """Read a file of the folder and check its hash; nothing outside the folder is opened."""
    name = str(file["file"])
    # a foreign manifest must not make us read other files
    if Path(name).name != name or name in ("", ".", ".."):
        raise InputError(
            f"{source / MANIFEST} refers to the file {name!r} outside the model folder; do not use"
            " this model"
        )
    content = read_plain(source / name)
    if digest(content) != file["sha256"]:
        raise InputError(f"{source / name} {_CHANGED}; {_SAVE_AGAIN}")
    return content


def read_plain(path: Path) -> bytes:
    """Read a file; refuse symbolic links, folders and devices."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        kind = "a symbolic link" if path.is_symlink() else "a folder or a device"
        raise InputError(f"{path} is {kind} and not a plain file; {_SAVE_AGAIN}")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); {_SAVE_AGAIN}") from error


# --- atomic writing of model folders, and reading of folders that others may be writing

_OWN_FILE = re.compile(
    r"model[\w.]*-[0-9a-f]{16}\.(safetensors|skops|booster)"
    r"|\.evenhand-[0-9a-f]{16}-(certificate\.json|report\.html)"
)
"""Names of files that belong to one save."""

MOST_READS = 1000
"""Largest number of times that reading starts again because of another save."""

Found = TypeVar("Found")


def is_model_folder(folder: Path) -> bool:
    """Whether this package wrote a model to a folder."""
    return "model" in parsed(folder / MANIFEST)


def write_model(
    packed: PackedModel,
    folder: AnyPath,
    certificate: Json | None = None,
    report: bytes | None = None,
) -> None:
    """Replace a model, its certificate and its report in one step.

    The hashes of the model and of the report are added to the certificate. Without a certificate,
    an old one is removed: it gives no guarantee for the new model.
    """
    target = check_folder(folder)
    target.mkdir(parents=True, exist_ok=True)
    companions = {}
    if certificate is not None:
        companions = {} if report is None else {REPORT: report}
        # the hash of the model makes the certificate valid for this model only
        seal = None if report is None else digest(report)
        hashes = {"model_sha256": packed.sha256, "report_sha256": seal}
        companions[CERTIFICATE] = (json.dumps(certificate | hashes, indent=2) + "\n").encode()
    with one_writer(target) as alone:
        _settle(target, alone)
        try:
            for name, content in packed.contents.items():
                replace_file(target / name, content)
            for name, content in companions.items():
                replace_file(staged(target, packed.sha256, name), content)
            # the manifest last: until then the folder contains the complete old model
            replace_file(target / MANIFEST, packed.manifest)
        finally:
            # after a failure too: the manifest may name the old model or the new one
            _settle(target, alone)


def read_steadily(source: Path, read: Callable[[Json], Found]) -> Found:
    """Read a model folder that another process may be saving to.

    `read` is called with the manifest, again if the manifest has been replaced in the meantime.
    """
    for _ in range(MOST_READS - 1):
        before = mark(source)
        try:
            return read(read_manifest(source))
        except InputError:
            # after another save the error may come from a mixture of old and new files: try again
            if mark(source) == before:
                raise
    return read(read_manifest(source))


def _settle(folder: Path, alone: bool) -> None:
    """Rename certificate and report of the manifest's model, and remove files no longer needed.

    Files that cannot be removed are ignored, as nothing refers to them.
    """
    sweep_partials(folder)
    try:
        nothing: Json = {"files": {}, "sha256": ""}
        manifest = read_manifest(folder) if (folder / MANIFEST).exists() else nothing
        sha256 = str(manifest["sha256"])
        needed = {file["file"] for file in manifest["files"].values()}
    except (InputError, KeyError, TypeError, AttributeError):
        return  # damaged or from a newer release: the files it needs are unknown
    _place_companions(folder, sha256)
    for path in list(folder.iterdir()):
        is_own = _OWN_FILE.fullmatch(path.name) and path.is_file() and not path.is_symlink()
        with suppress(OSError):
            # without locks, another save may have written its files but not yet its manifest
            if is_own and path.name not in needed and (alone or is_old(path)):
                path.unlink(missing_ok=True)
    sync_folder(folder)


def _place_companions(folder: Path, sha256: str) -> None:
    """Rename the temporary certificate and report of a model; remove those of another model."""
    old = parsed(folder / CERTIFICATE)
    is_replaced = staged(folder, sha256, CERTIFICATE).exists()
    if sha256 and "model_sha256" in old and (is_replaced or old["model_sha256"] != sha256):
        # its report, but no other file of that name
        with suppress(InputError):
            if digest(read_plain(folder / REPORT)) == old.get("report_sha256"):
                (folder / REPORT).unlink(missing_ok=True)
        (folder / CERTIFICATE).unlink(missing_ok=True)
    # the certificate last: until then the temporary one is read
    for name in (REPORT, CERTIFICATE):
        with suppress(FileNotFoundError):
            os.replace(staged(folder, sha256, name), folder / name)


# --- certificates of models
# A certificate contains the hash of its model, `model_sha256`, and of its report, `report_sha256`.
# It contains no ids: the people on whom a model is certified are recorded as their number and a
# single salted hash.


def ids_digest(ids: Iterable[Any], salt: str) -> str:
    """Return the salted hash of a set of people, as stored in `certificate.json`.

    It is the SHA-256 of a JSON list in ASCII without blanks: the salt, followed by all ids as
    sorted text (NFC). The ids of a table certified without ids are its row numbers from 1.

    Examples
    --------
    Check whether a certificate was computed on exactly these people:

    >>> certified_on = {"n": 2, "salt": "1f0e", "sha256": ids_digest(["ann", "bob"], "1f0e")}
    >>> ids_digest(["bob", "ann"], certified_on["salt"]) == certified_on["sha256"]
    True
    """
    # sorted text, so that the hash does not depend on the order or the type of the ids
    names = sorted(id_text(value) for value in ids)
    return digest(json.dumps([salt, *names], separators=(",", ":")).encode())


def people_record(ids: Iterable[Any], named_by: str) -> Json:
    """Return the number and the salted hash of people, for a certificate.

    Each record has a new salt, so that two certificates do not reveal whether they were computed on
    the same people.
    """
    people = list(ids)
    # without a salt, a guessed set of people could be checked against the hash
    salt = secrets.token_hex(16)
    return {
        "n": len(people),
        "named_by": named_by,
        "salt": salt,
        "sha256": ids_digest(people, salt),
    }


def staged(folder: Path, sha256: str, name: str) -> Path:
    """Return the temporary path of a certificate or report, used until the manifest is replaced."""
    return folder / f".evenhand-{sha256[:16]}-{name}"


def parsed(path: Path) -> Json:
    """Read the JSON of a model folder; empty if it is missing, damaged or of another program."""
    try:
        return dict(json.loads(read_plain(path)))
    except (InputError, ValueError, TypeError, RecursionError):
        return {}


# --- saving and loading fitted forecasters


def save(model: Forecaster | ForecastColumns, folder: AnyPath) -> None:
    """Save a fitted forecaster to a folder.

    Parameters
    ----------
    model : forecaster
        A fitted forecaster of this package; scikit-learn estimators inside it are stored too. Other
        models and functions inside it cannot be stored safely and are named in a warning: keep them
        and pass them to `load`.
    folder : path
        Model folder, created if needed. A model in it is replaced atomically.

    Raises
    ------
    InputError
        If the model is not a forecaster of this package, or a parameter cannot be stored.

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
    packed = pack(model)
    write_model(packed, folder)
    parts = list(foreign_parts(packed.entry))
    if parts:
        missing = "; ".join(f"{part['name']} {part['reason']}" for part in parts)
        advice = (
            f"keep {' and '.join(part['place'] for part in parts)}, e.g. with joblib, and load with"
            " load(folder, estimator=...)"
        )
        message = f"{folder} was saved without an inner model: {missing}; {advice}"
        warnings.warn(message, UserWarning, stacklevel=2)


def load(folder: AnyPath, estimator: Any = None) -> Any:
    """Load a forecaster from a folder that `save` wrote.

    Parameters
    ----------
    folder : path
        The model folder.
    estimator : estimator, function or list, optional
        The fitted model or function that `save` could not store and named in its warning, or a list
        of them in the order of the warning. Only the name of the class or function is compared, not
        its content.

    Returns
    -------
    forecaster
        The forecaster; at equal draws its forecasts equal those of the saved one.

    Raises
    ------
    InputError
        If the folder is missing, damaged, changed, of a newer format or contains types that are not
        allowed; or if `estimator` does not have the name of the missing model.
    MissingExtraError
        If the model needs a package that is not installed.

    Examples
    --------
    >>> load("no/such/folder")
    Traceback (most recent call last):
    evenhand._validate.InputError: no/such/folder: no such model folder; create one with ...
    """
    return load_with_hash(folder, estimator)[0]


def load_with_hash(folder: AnyPath, estimator: Any = None) -> tuple[Any, str]:
    """Return the forecaster in a folder, and the SHA-256 of the model, as in its certificate."""
    source = Path(folder)
    return read_steadily(
        source, lambda manifest: (_rebuilt(manifest, source, estimator), str(manifest["sha256"]))
    )


def read_certificate(folder: AnyPath) -> Json:
    """Read the certificate of the model in a folder, which may also be named by its certificate.

    Raises InputError if there is none, or it belongs to a model other than the one in the folder.
    """
    path = Path(folder)
    source = path.parent if path.name == CERTIFICATE else path
    return read_steadily(source, lambda manifest: _certificate_of(manifest, source))


def _certificate_of(manifest: Json, source: Path) -> Json:
    sha256 = str(manifest["sha256"])
    # a killed save leaves its certificate under the temporary name, and an older one may have the
    # final name
    for path in (staged(source, sha256, CERTIFICATE), source / CERTIFICATE):
        certificate = parsed(path)
        if certificate.get("model_sha256") == sha256:
            return certificate
    if "model_sha256" not in certificate:
        remedy = "certify a model with evenhand randomize"
        raise InputError(f"{source} has no readable {CERTIFICATE}; {remedy}")
    raise InputError(
        f"{source / CERTIFICATE} certifies the model {str(certificate['model_sha256'])[:16]} and"
        f" gives no guarantee for {sha256[:16]}, the model in this folder; remove it, or certify"
        " this model with evenhand randomize"
    )


def _rebuilt(manifest: Json, source: Path, estimator: Any) -> Any:
    try:
        # read all files before using any, as a later save may remove them
        contents = {key: read_file(source, file) for key, file in manifest["files"].items()}
        attached = iter(attached_parts(estimator, list(foreign_parts(manifest["model"])), source))
        return unpack(manifest["model"], contents, source, attached)
    # these messages already name cause and remedy
    except (InputError, MissingExtraError, MemoryError):
        raise
    except Exception as error:  # rebuilding from untrusted bytes can raise anything
        reason = f"{type(error).__name__}: {error_text(error)}"
        raise InputError(
            f"{source} is damaged and cannot be loaded ({reason}); save the model again"
        ) from error
