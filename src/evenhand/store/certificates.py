"""Certificates in model folders: what binds them to one model and one report, and whom they name.

A certificate holds the hash of its model, `model_sha256`, and of its report, `report_sha256`. It
names nobody: of the people that a model is certified on it holds their number and one salted hash
of all of them.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from evenhand._ids import id_text
from evenhand._validate import InputError
from evenhand.store.manifest import digest, read_plain

CERTIFICATE = "certificate.json"
REPORT = "report.html"


def ids_digest(ids: Iterable[Any], salt: str) -> str:
    """Return the salted hash of a set of people, as `certificate.json` holds it.

    It is the SHA-256 of a JSON list without blanks, in ASCII: the salt, then all ids as text (NFC),
    sorted.

    Parameters
    ----------
    ids : iterable of int or str
        The ids; where the table was certified without ids, the numbers of its rows, counted from 1.
    salt : str
        The salt of the certificate.

    Examples
    --------
    Whether a certificate is on these very people:

    >>> certified_on = {"n": 2, "salt": "1f0e", "sha256": ids_digest(["ann", "bob"], "1f0e")}
    >>> ids_digest(["bob", "ann"], certified_on["salt"]) == certified_on["sha256"]
    True
    >>> ids_digest(["bob", "cat"], certified_on["salt"]) == certified_on["sha256"]
    False
    """
    # sorted and as text: the hash is of a set of people, whatever the order and the type
    names = sorted(id_text(value) for value in ids)
    return digest(json.dumps([salt, *names], separators=(",", ":")).encode())


def people_record(ids: Iterable[Any], named_by: str) -> dict[str, Any]:
    """Return what a certificate holds of its people: how many, and their salted hash.

    The salt is new each time, so that two certificates do not show whether they are on the same
    people.
    """
    people = list(ids)
    # without a salt, a guess of the people could be tested against the hash
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
    """Return the companions of a model by name, the certificate last and bound to the others."""
    if certificate is None:
        return {}
    # a certificate holds for one model: its hash ties the two together
    hashes = {"model_sha256": sha256, "report_sha256": None if report is None else digest(report)}
    content = (json.dumps(certificate | hashes, indent=2) + "\n").encode()
    return ({} if report is None else {REPORT: report}) | {CERTIFICATE: content}


def staged(folder: Path, sha256: str, name: str) -> Path:
    """Return where a companion lies until the manifest names its model."""
    return folder / f".evenhand-{sha256[:16]}-{name}"


def parsed(path: Path) -> dict[str, Any] | None:
    """Read a certificate; None if there is none, or none of ours."""
    try:
        content = json.loads(read_plain(path))
    except (InputError, ValueError, RecursionError):
        return None
    is_ours = isinstance(content, dict) and isinstance(content.get("model_sha256"), str)
    return content if is_ours else None


def remove_report(folder: Path, certificate: dict[str, Any]) -> None:
    """Remove the report of a certificate, and no other page of that name."""
    path = folder / REPORT
    if not path.is_file() or path.is_symlink():
        return
    # certificates of release 0.1.0 hold no hash of their report
    if (
        "report_sha256" not in certificate
        or digest(path.read_bytes()) == certificate["report_sha256"]
    ):
        path.unlink(missing_ok=True)
