"""Atomic writing of model folders, and reading of folders that others may be writing.

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
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from evenhand._files import replace_file, sweep_partials, sync_folder
from evenhand._locks import SAVING, is_old, one_writer
from evenhand._validate import InputError
from evenhand.store.certificates import CERTIFICATE, REPORT, bound, parsed, remove_report, staged
from evenhand.store.manifest import MANIFEST, mark, read_manifest, read_plain
from evenhand.store.packing import PackedModel, foreign_parts

_MODEL_FILE = re.compile(r"model[\w.]*-[0-9a-f]{16}\.(safetensors|skops)")
_STAGED_FILE = re.compile(r"\.evenhand-[0-9a-f]{16}-(certificate\.json|report\.html)")

MODEL_FOLDER = "a model folder"
MAPS_FOLDER = "a folder of maps"
CERTIFICATE_FOLDER = "a certificate folder"
"""Kinds of folders, as messages name them."""

MOST_READS = 1000
"""Largest number of times that reading starts again because of another save."""

Found = TypeVar("Found")


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Return the path of a model folder, existing or not, if files could be written to it.

    Meant to be called before long work.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_folder(Path(folder, "models", "first")).name
    'first'
    """
    target = Path(folder)
    # the nearest existing folder decides whether the others can be created
    nearest = next(path for path in (target, *target.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise InputError(f"{target} cannot be a folder: {nearest} is a file; name another folder")
    if not os.access(nearest, os.W_OK):
        raise InputError(f"{target}: the folder {nearest} is write-protected; choose another")
    return target


def folder_kind(folder: Path) -> str | None:
    """Return the kind of a folder that this package wrote; None for any other.

    Maps are a recalibrated model around forecasts in columns of a table, which are not stored: a
    recalibrated model that contains its inner model is a model folder.
    """
    try:
        if not (folder / MANIFEST).exists():
            certificate = json.loads(read_plain(folder / CERTIFICATE))
            return CERTIFICATE_FOLDER if "forecasts" in certificate else None
        model = json.loads(read_plain(folder / MANIFEST))["model"]
        outside = [part["name"] for part in foreign_parts(model)]
        is_maps = (model["kind"], outside) == ("RecalibratedRegressor", ["ColumnSubject"])
        return MAPS_FOLDER if is_maps else MODEL_FOLDER
    except (InputError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None  # missing, or a file of another program


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
            failure = _settle(target, alone)
            if failure is not None:
                # a second attempt before a warning
                failure = _settle(target, alone)
    if failure is not None:
        message = (
            f"{target}: the certificate or the report could not be renamed ({failure.strerror});"
            " save again"
        )
        warnings.warn(message, UserWarning, stacklevel=2)


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


def is_being_saved(source: Path) -> bool:
    """Return whether a save is running or was killed."""
    return (source / SAVING).exists()


def _settle(folder: Path, alone: bool) -> OSError | None:
    """Rename certificate and report of the manifest's model, and remove files no longer needed.

    Returns the error if renaming fails. Files that cannot be removed are ignored, as nothing refers
    to them.
    """
    sweep_partials(folder)
    try:
        nothing: dict[str, Any] = {"files": {}, "sha256": ""}
        manifest = read_manifest(folder) if (folder / MANIFEST).exists() else nothing
        sha256 = str(manifest["sha256"])
        needed = {file["file"] for file in manifest["files"].values()}
    except (InputError, KeyError, TypeError, AttributeError):
        return None  # damaged or from a newer release: the files it needs are unknown
    failure = _place_companions(folder, sha256)
    needed |= (
        {staged(folder, sha256, name).name for name in (CERTIFICATE, REPORT)} if failure else set()
    )
    for path in (*_listed(folder, _MODEL_FILE), *_listed(folder, _STAGED_FILE)):
        with suppress(OSError):
            # without locks, another save may have written its files but not yet its manifest
            if path.name not in needed and (alone or is_old(path)):
                path.unlink(missing_ok=True)
    return failure


def _place_companions(folder: Path, sha256: str) -> OSError | None:
    """Rename the temporary certificate and report of a model; remove those of another model."""
    certificate, report = (staged(folder, sha256, name) for name in (CERTIFICATE, REPORT))
    try:
        old = parsed(folder / CERTIFICATE)
        if certificate.exists():
            if old is not None and not report.exists():
                remove_report(folder, old)
            if report.exists():
                os.replace(report, folder / REPORT)
            # last: until then the temporary one is read
            os.replace(certificate, folder / CERTIFICATE)
            sync_folder(folder)
        elif old is not None and sha256 and old["model_sha256"] != sha256:
            remove_report(folder, old)
            (folder / CERTIFICATE).unlink(missing_ok=True)
    except OSError as error:
        return error
    return None


def _listed(folder: Path, names: re.Pattern[str]) -> list[Path]:
    """List the plain files of a folder whose names match a pattern."""
    entries = (path for path in folder.iterdir() if names.fullmatch(path.name))
    return [path for path in entries if path.is_file() and not path.is_symlink()]
