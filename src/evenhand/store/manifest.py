"""Manifest of a model folder, `model.json`, with the hashes of all files."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from evenhand._validate import InputError

FORMAT = 1
"""Format version that this release writes, and the newest that it reads."""

MANIFEST = "model.json"

_UNSEALED = "0" * 64
"""Placeholder in the manifest for its own hash while the hash is computed."""

_CHANGED = "is damaged or was changed after it was saved (its hash differs)"
_SAVE_AGAIN = "save the model again"

Mark = tuple[int, int, int] | None
"""Identity of the file `model.json`, which changes with each save."""


def digest(content: bytes) -> str:
    """Return the SHA-256 of bytes as hexadecimal text."""
    return hashlib.sha256(content).hexdigest()


def error_text(error: BaseException) -> str:
    """Return the message of an error from another package, shortened to one line."""
    return " ".join(str(error).split())[:200]


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


def sealed(manifest: dict[str, Any]) -> bytes:
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


def mark(source: Path) -> Mark:
    """Return the identity of the manifest file; None if there is no manifest."""
    try:
        found = (source / MANIFEST).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def read_manifest(source: Path) -> dict[str, Any]:
    """Read the manifest of a model folder and check its hash."""
    if not (source / MANIFEST).exists():
        what = f" is not a model folder, as it has no {MANIFEST}"
        what = what if source.is_dir() else ": no such model folder"
        raise InputError(f"{source}{what}; create one with evenhand fit or evenhand.save")
    return read_sealed(source / MANIFEST, "a model description", _SAVE_AGAIN)


def read_sealed(path: Path, noun: str, remedy: str) -> dict[str, Any]:
    """Read a file of JSON that contains its own hash, and check format and hash.

    Parameters
    ----------
    path : Path
        A file whose content is made by `sealed`.
    noun : str
        What the file should be, for messages.
    remedy : str
        What to do if it is damaged.
    """
    content = read_plain(path, remedy)
    try:
        text = content.decode()
        manifest = dict(json.loads(text))
        version = manifest["format"]
        seal = str(manifest.get("sha256"))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path} is damaged, as it is not {noun} ({error_text(error)}); {remedy}"
        ) from error
    if not isinstance(version, int) or version < 1:
        raise InputError(f"{path} is damaged, as its format is {version!r}; {remedy}")
    # a newer format may use the same names with other meanings
    if version > FORMAT:
        written_by = manifest.get("written_by", "a newer release")
        raise InputError(
            f"{path} has format {version}, but this release reads formats up to {FORMAT}; use"
            f" {written_by}"
        )
    # the hash was computed with zeros in its place
    if digest(text.replace(seal, _UNSEALED, 1).encode()) != seal:
        raise InputError(f"{path} {_CHANGED}; {remedy}")
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


def read_plain(path: Path, remedy: str = _SAVE_AGAIN) -> bytes:
    """Read a file; refuse symbolic links, folders and devices."""
    if path.is_symlink() or (path.exists() and not path.is_file()):
        kind = "a symbolic link" if path.is_symlink() else "a folder or a device"
        raise InputError(f"{path} is {kind} and not a plain file; {remedy}")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); {remedy}") from error
