"""Certificates of models and of forecasts of other models, in folders.

The certificate of a model contains the hash of its model, `model_sha256`, and of its report,
`report_sha256`. It contains no ids: the people on whom a model is certified are recorded as their
number and a single salted hash. The certificate of forecasts belongs to columns and not to a model
that this package could store; it contains its own hash.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evenhand._ids import id_text
from evenhand._validate import InputError
from evenhand.store.manifest import (
    digest,
    read_plain,
)

CERTIFICATE = "certificate.json"
REPORT = "report.html"


def ids_digest(ids: Iterable[Any], salt: str) -> str:
    """Return the salted hash of a set of people, as stored in `certificate.json`.

    It is the SHA-256 of a JSON list in ASCII without blanks: the salt, followed by all ids as
    sorted text (NFC).

    Parameters
    ----------
    ids : iterable of int or str
        The ids; for a table certified without ids, its row numbers from 1.
    salt : str
        The salt of the certificate.

    Examples
    --------
    Check whether a certificate was computed on exactly these people:

    >>> certified_on = {"n": 2, "salt": "1f0e", "sha256": ids_digest(["ann", "bob"], "1f0e")}
    >>> ids_digest(["bob", "ann"], certified_on["salt"]) == certified_on["sha256"]
    True
    >>> ids_digest(["bob", "cat"], certified_on["salt"]) == certified_on["sha256"]
    False
    """
    # sorted text, so that the hash does not depend on the order or the type of the ids
    names = sorted(id_text(value) for value in ids)
    return digest(json.dumps([salt, *names], separators=(",", ":")).encode())


def people_record(ids: Iterable[Any], named_by: str) -> dict[str, Any]:
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


def bound(
    certificate: dict[str, Any] | None, report: bytes | None, sha256: str
) -> dict[str, bytes]:
    """Return report and certificate of a model by file name, with the hashes that bind them.

    The certificate is last. Empty without a certificate.
    """
    if certificate is None:
        return {}
    # the hash of the model makes the certificate valid for this model only
    hashes = {"model_sha256": sha256, "report_sha256": None if report is None else digest(report)}
    content = (json.dumps(certificate | hashes, indent=2) + "\n").encode()
    return ({} if report is None else {REPORT: report}) | {CERTIFICATE: content}


def staged(folder: Path, sha256: str, name: str) -> Path:
    """Return the temporary path of a certificate or report, used until the manifest is replaced."""
    return folder / f".evenhand-{sha256[:16]}-{name}"


def parsed(path: Path) -> dict[str, Any] | None:
    """Read a certificate; None if there is none, or the file was not written by this package."""
    try:
        content = json.loads(read_plain(path))
    except (InputError, ValueError, RecursionError):
        return None
    is_ours = isinstance(content, dict) and isinstance(content.get("model_sha256"), str)
    return content if is_ours else None


def remove_report(folder: Path, certificate: dict[str, Any]) -> None:
    """Remove the report of a certificate, but no other file of that name."""
    path = folder / REPORT
    if not path.is_file() or path.is_symlink():
        return
    if digest(path.read_bytes()) == certificate.get("report_sha256"):
        path.unlink(missing_ok=True)
