"""Saving and loading fitted forecasters, in folders that others may be reading or writing.

Every file except the manifest has its hash in its name, and the manifest is replaced last. A save
takes a lock that other saves wait for. Loading takes no lock, so that it works on write-protected
folders: it starts again if the manifest has been replaced in the meantime.

Certificate and report have plain names, as people open them. They are first written under temporary
names that contain the hash of their model, and are renamed once the manifest has been replaced. The
next save completes or removes the files of a killed save.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from evenhand._files import replace_file, sweep_partials, sync_folder
from evenhand._locks import is_old, one_writer
from evenhand._validate import InputError, MissingExtraError
from evenhand.forecast_columns import ForecastColumns
from evenhand.forecasters import Forecaster
from evenhand.store.certificates import (
    CERTIFICATE,
    REPORT,
    bound,
    parsed,
    remove_report,
    staged,
)
from evenhand.store.manifest import (
    MANIFEST,
    check_folder,
    error_text,
    mark,
    read_file,
    read_manifest,
    read_plain,
)
from evenhand.store.packing import PackedModel, attached_parts, foreign_parts, pack, unpack

# --- atomic writing of model folders, and reading of folders that others may be writing

_MODEL_FILE = re.compile(r"model[\w.]*-[0-9a-f]{16}\.(safetensors|skops)")
_STAGED_FILE = re.compile(r"\.evenhand-[0-9a-f]{16}-(certificate\.json|report\.html)")

MOST_READS = 1000
"""Largest number of times that reading starts again because of another save."""

Found = TypeVar("Found")


def is_model_folder(folder: Path) -> bool:
    """Whether this package wrote a model to a folder."""
    try:
        return "model" in json.loads(read_plain(folder / MANIFEST))
    except (InputError, ValueError, RecursionError, TypeError):
        return False  # missing, or a file of another program


def write_model(
    packed: PackedModel,
    folder: str | os.PathLike[str],
    certificate: dict[str, Any] | None = None,
    report: bytes | None = None,
) -> None:
    """Replace a model, its certificate and its report in one step.

    Parameters
    ----------
    packed : PackedModel
        The model.
    folder : path
        Model folder, created if needed.
    certificate : dict, optional
        Certificate of this model; the hashes of the model and of the report are added. Without one,
        an old certificate is removed: it gives no guarantee for the new model.
    report : bytes, optional
        Report page of the certificate.
    """
    target = check_folder(folder)
    target.mkdir(parents=True, exist_ok=True)
    companions = bound(certificate, report, packed.sha256)
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


def read_steadily(source: Path, read: Callable[[dict[str, Any]], Found]) -> Found:
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
        nothing: dict[str, Any] = {"files": {}, "sha256": ""}
        manifest = read_manifest(folder) if (folder / MANIFEST).exists() else nothing
        sha256 = str(manifest["sha256"])
        needed = {file["file"] for file in manifest["files"].values()}
    except (InputError, KeyError, TypeError, AttributeError):
        return  # damaged or from a newer release: the files it needs are unknown
    _place_companions(folder, sha256)
    for path in (*_listed(folder, _MODEL_FILE), *_listed(folder, _STAGED_FILE)):
        with suppress(OSError):
            # without locks, another save may have written its files but not yet its manifest
            if path.name not in needed and (alone or is_old(path)):
                path.unlink(missing_ok=True)
    sync_folder(folder)


def _place_companions(folder: Path, sha256: str) -> None:
    """Rename the temporary certificate and report of a model; remove those of another model."""
    certificate, report = (staged(folder, sha256, name) for name in (CERTIFICATE, REPORT))
    old = parsed(folder / CERTIFICATE)
    if certificate.exists():
        if old is not None and not report.exists():
            remove_report(folder, old)
        if report.exists():
            os.replace(report, folder / REPORT)
        # last: until then the temporary one is read
        os.replace(certificate, folder / CERTIFICATE)
    elif old is not None and sha256 and old["model_sha256"] != sha256:
        remove_report(folder, old)
        (folder / CERTIFICATE).unlink(missing_ok=True)


def _listed(folder: Path, names: re.Pattern[str]) -> list[Path]:
    """List the plain files of a folder whose names match a pattern."""
    entries = (path for path in folder.iterdir() if names.fullmatch(path.name))
    return [path for path in entries if path.is_file() and not path.is_symlink()]


# --- saving and loading fitted forecasters


def save(model: Forecaster | ForecastColumns, folder: str | os.PathLike[str]) -> None:
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
    target = check_folder(folder)
    packed = pack(model)
    write_model(packed, target)
    packed.warn_of_omissions(target)


def load(folder: str | os.PathLike[str], estimator: Any = None) -> Any:
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


def load_with_hash(folder: str | os.PathLike[str], estimator: Any = None) -> tuple[Any, str]:
    """Return the forecaster in a folder, and the SHA-256 of the model, as in its certificate."""
    source = Path(folder)
    return read_steadily(
        source,
        lambda manifest: (_rebuilt(manifest, source, estimator), str(manifest["sha256"])),
    )


def read_certificate(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the certificate of the model in a folder.

    Parameters
    ----------
    folder : path
        The model folder, or the certificate in it.

    Returns
    -------
    dict
        The content of `certificate.json`, which `evenhand randomize` writes.

    Raises
    ------
    InputError
        If there is no certificate, or it belongs to a model other than the one in the folder.

    Examples
    --------
    >>> read_certificate("no/such/folder")
    Traceback (most recent call last):
    evenhand._validate.InputError: no/such/folder: no such model folder; create one with ...
    """
    path = Path(folder)
    source = path.parent if path.name == CERTIFICATE else path
    return read_steadily(source, lambda manifest: _certificate_of(manifest, source))


def _certificate_of(manifest: dict[str, Any], source: Path) -> dict[str, Any]:
    sha256 = str(manifest["sha256"])
    # a killed save leaves its certificate under the temporary name, and an older one may have the
    # final name
    for path in (staged(source, sha256, CERTIFICATE), source / CERTIFICATE):
        certificate = parsed(path)
        if certificate is not None and certificate["model_sha256"] == sha256:
            return certificate
    if certificate is None:
        remedy = "certify a model with evenhand randomize"
        raise InputError(f"{source} has no readable {CERTIFICATE}; {remedy}")
    raise InputError(
        f"{source / CERTIFICATE} certifies the model {certificate['model_sha256'][:16]} and gives"
        f" no guarantee for {sha256[:16]}, the model in this folder; remove it, or certify this"
        " model with evenhand randomize"
    )


def _rebuilt(manifest: dict[str, Any], source: Path, estimator: Any) -> Any:
    try:
        # read all files before using any, as a later save may remove them
        contents = {key: read_file(source, file) for key, file in manifest["files"].items()}
        attached = iter(attached_parts(estimator, list(foreign_parts(manifest["model"])), source))
        return unpack(manifest["model"], contents, source, attached)
    # these messages already name cause and remedy
    except (InputError, MissingExtraError, MemoryError):
        raise
    except ModuleNotFoundError as error:
        remedy = "run: pip install 'evenhand[neural]'"
        raise MissingExtraError(
            f"{source}: the model needs {error.name}, which is not installed; {remedy}"
        ) from error
    except Exception as error:  # rebuilding from untrusted bytes can raise anything
        reason = f"{type(error).__name__}: {error_text(error)}"
        raise InputError(
            f"{source} is damaged and cannot be loaded ({reason}); save the model again"
        ) from error
