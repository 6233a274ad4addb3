"""Manifest of a model folder, `model.json`, which holds the hashes of the other files."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from evenhand._validate import InputError

FORMAT = 1
"""Version of the folder's layout that this release writes, and the newest that it reads."""

MANIFEST = "model.json"

_UNSEALED = "0" * 64
"""Stands in the manifest where its own hash goes, while that is taken."""

Mark = tuple[int, int, int] | None
"""Identity of the file `model.json`, which changes with each save."""


def digest(content: bytes) -> str:
    """Return the SHA-256 of some bytes as text."""
    return hashlib.sha256(content).hexdigest()


def error_text(error: BaseException) -> str:
    """Return the message of an error of another package, cut to one short line."""
    return " ".join(str(error).split())[:200]


def sealed(manifest: dict[str, Any]) -> bytes:
    """Return the manifest as text that holds the hash of itself."""
    try:
        # the hash stands near the top, before any text that could look like its place
        head = {"format": FORMAT, "sha256": _UNSEALED}
        text = json.dumps(head | manifest, indent=2, allow_nan=False) + "\n"
    except (TypeError, ValueError) as error:
        raise InputError(
            f"the model has a parameter that cannot be stored ({error_text(error)})"
        ) from error
    return text.replace(_UNSEALED, digest(text.encode()), 1).encode()


def mark(source: Path) -> Mark:
    """Return the identity of the manifest; None if there is none."""
    try:
        found = (source / MANIFEST).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def read_manifest(source: Path) -> dict[str, Any]:
    """Read the manifest of a model folder and check its hash."""
    path = source / MANIFEST
    if not source.is_dir():
        raise InputError(
            f"{source}: no such model folder; make one with evenhand fit or evenhand.save"
        )
    if not path.exists():
        raise InputError(f"{source}: not a model folder, it has no {MANIFEST}")
    content = read_plain(path)
    try:
        text = content.decode()
        manifest = dict(json.loads(text))
        version = manifest["format"]
        seal = str(manifest.get("sha256"))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path}: damaged, not a model description ({error_text(error)}); save the model anew"
        ) from error
    if not isinstance(version, int) or version < 1:
        raise InputError(f"{path}: damaged, format {version!r}; save the model anew")
    # a newer format may mean other things by the same names
    if version > FORMAT:
        written_by = manifest.get("written_by", "a newer release")
        raise InputError(
            f"{path}: format {version} is newer than {FORMAT}, which this release reads; use"
            f" {written_by}"
        )
    # the hash was taken with zeros in its own place
    if digest(text.replace(seal, _UNSEALED, 1).encode()) != seal:
        raise InputError(
            f"{path}: damaged or changed since it was saved (its hash differs); save the model anew"
        )
    return manifest


def read_file(source: Path, file: dict[str, str]) -> bytes:
    """Read a file of the folder and check its hash; nothing outside the folder is opened."""
    name = str(file["file"])
    # a manifest of somebody else's must not make us read other files
    if Path(name).name != name or name in ("", ".", ".."):
        raise InputError(
            f"{source / MANIFEST}: file {name!r} leaves the model folder; do not use this model"
        )
    content = read_plain(source / name)
    if digest(content) != file["sha256"]:
        damage = "damaged or changed since it was saved (its hash differs)"
        raise InputError(f"{source / name}: {damage}; save the model anew")
    return content


def read_plain(path: Path) -> bytes:
    """Read a file that is neither a link nor anything else than a file."""
    if path.is_symlink():
        raise InputError(f"{path}: is a link; model folders hold plain files only")
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is not a plain file; save the model anew")
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); save the model anew"
        ) from error
