"""Model folders: writing all files of a model in one step, and reading them while others write.

Every file but the manifest has a name that holds a hash, and the manifest is replaced last. A save
holds a lock that other saves wait for. Loading takes no lock, so that it works on folders that
cannot be written to: it starts again when the manifest was replaced meanwhile.

A certificate and a report keep plain names, which people open. They are written under names that
hold the hash of their model, and count from the moment in which the manifest does; only then they
are renamed. What a killed save leaves half done is finished or removed by the next one.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from evenhand._files import replace_file, sweep_partials, sync_folder
from evenhand._locks import SAVING, is_old, one_writer
from evenhand._validate import InputError, bad_input
from evenhand.store.certificates import CERTIFICATE, REPORT, bound, parsed, remove_report, staged
from evenhand.store.manifest import MANIFEST, mark, read_manifest
from evenhand.store.packing import PackedModel

_MODEL_FILE = re.compile(r"model[\w.]*-[0-9a-f]{16}\.(safetensors|skops)")
_STAGED_FILE = re.compile(r"\.evenhand-[0-9a-f]{16}-(certificate\.json|report\.html)")

MOST_READS = 1000
"""Times that reading starts again because somebody saves; each time a whole save has come
between."""

Found = TypeVar("Found")


def check_folder(folder: str | os.PathLike[str]) -> Path:
    """Return the folder if files could be written to it, there already or not.

    Call this before long work.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_folder(Path(folder, "models", "first")).name
    'first'
    """
    target = Path(folder)
    # the nearest folder that exists decides whether the rest can be made
    there = next(path for path in (target, *target.absolute().parents) if path.exists())
    if not there.is_dir():
        raise bad_input(
            str(target), "be a folder, there already or not", f"the file {there}", "name another"
        )
    if not os.access(there, os.W_OK):
        raise bad_input(
            str(target), "lie in a folder that can be written to", str(there), "choose another"
        )
    return target


def write_model(
    packed: PackedModel,
    folder: str | os.PathLike[str],
    certificate: dict[str, Any] | None = None,
    report: bytes | None = None,
) -> None:
    """Replace a model together with its certificate and report, or leave all of them as they were.

    Parameters
    ----------
    packed : PackedModel
        The model.
    folder : path
        Made if it is not there.
    certificate : dict, optional
        What is certified of this model; the hashes of the model and of the report are added.
        Without it, the folder has no certificate afterwards: that of another model proves nothing
        about this one.
    report : bytes, optional
        The page that belongs to the certificate.
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
            # the manifest last: until then the folder holds the old model, whole
            replace_file(target / MANIFEST, packed.manifest)
        finally:
            # whichever model the manifest names by now
            failure = _settle(target, alone)
            if failure is not None:
                # a second try before people are warned
                failure = _settle(target, alone)
    if failure is not None:
        message = (
            f"{target}: the certificate or the report is not in its place ({failure.strerror});"
            " save again"
        )
        warnings.warn(message, UserWarning, stacklevel=2)


def read_steadily(source: Path, read: Callable[[dict[str, Any]], Found]) -> Found:
    """Read a folder that others may be saving to.

    `read` is called with its manifest until that stays the same.
    """
    for _ in range(MOST_READS - 1):
        before = mark(source)
        try:
            return read(read_manifest(source))
        except InputError:
            # an error counts only if no save came between: otherwise files of two models were mixed
            if mark(source) == before:
                raise
    return read(read_manifest(source))


def is_being_saved(source: Path) -> bool:
    """Return whether a save is running, or was killed."""
    return (source / SAVING).exists()


def _settle(folder: Path, alone: bool) -> OSError | None:
    """Put the companions of the manifest's model in place, and remove what no model needs.

    Returns what keeps a companion from its place. Files that cannot be removed do no harm: nothing
    names them.
    """
    sweep_partials(folder)
    try:
        nothing: dict[str, Any] = {"files": {}, "sha256": ""}
        manifest = read_manifest(folder) if (folder / MANIFEST).exists() else nothing
        sha256 = str(manifest["sha256"])
        needed = {file["file"] for file in manifest["files"].values()}
    except (InputError, KeyError, TypeError, AttributeError):
        return None  # damaged, or of a newer release: what it needs is not known
    failure = _place_companions(folder, sha256)
    needed |= (
        {staged(folder, sha256, name).name for name in (CERTIFICATE, REPORT)} if failure else set()
    )
    for path in (*_listed(folder, _MODEL_FILE), *_listed(folder, _STAGED_FILE)):
        with suppress(OSError):
            # without locks another save may be running that has written its files and not yet its
            # manifest
            if path.name not in needed and (alone or is_old(path)):
                path.unlink(missing_ok=True)
    return failure


def _place_companions(folder: Path, sha256: str) -> OSError | None:
    """Rename the staged certificate and report of a model, and remove those of another model."""
    certificate, report = (staged(folder, sha256, name) for name in (CERTIFICATE, REPORT))
    try:
        old = parsed(folder / CERTIFICATE)
        if certificate.exists():
            if old is not None and not report.exists():
                remove_report(folder, old)
            if report.exists():
                os.replace(report, folder / REPORT)
            # last: until then the staged one is read
            os.replace(certificate, folder / CERTIFICATE)
            sync_folder(folder)
        elif old is not None and sha256 and old["model_sha256"] != sha256:
            remove_report(folder, old)
            (folder / CERTIFICATE).unlink(missing_ok=True)
    except OSError as error:
        return error
    return None


def _listed(folder: Path, names: re.Pattern[str]) -> list[Path]:
    """List the plain files of a folder whose names match."""
    entries = (path for path in folder.iterdir() if names.fullmatch(path.name))
    return [path for path in entries if path.is_file() and not path.is_symlink()]
