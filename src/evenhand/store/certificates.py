"""Certificates of models and of forecasts of other models, in folders.

The certificate of a model contains the hash of its model, `model_sha256`, and of its report,
`report_sha256`. It contains no ids: the people on whom a model is certified are recorded as their
number and a single salted hash. The certificate of forecasts belongs to columns and not to a model
that this package could store; it contains its own hash.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand._files import replace_file
from evenhand._ids import id_text
from evenhand._locks import one_writer
from evenhand._validate import InputError, about, typed_fields
from evenhand.links import Link, make_link
from evenhand.store.manifest import (
    check_folder,
    digest,
    error_text,
    read_plain,
    read_sealed,
    sealed,
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


# --- certificates of forecasts of other models, in folders without a model
# `certificate.json` contains its own hash and that of the report, `report_sha256`. It belongs to
# columns of forecasts, not to a model that this package could store.

_CERTIFY_AGAIN = "certify the forecasts again with evenhand randomize --target"


@dataclass(frozen=True)
class CertifiedForecasts:
    """Columns of forecasts that a certificate belongs to, and the certified link.

    Parameters
    ----------
    kind : str
        Kind of forecasts and columns, such as "mean_std", "quantiles" or "samples".
    columns : tuple of str
        Names of the columns: means and standard deviations, quantiles sorted by level, samples, or
        probabilities of outcomes.
    link : Link
        The link for which the certificate holds.
    times : tuple of float
        Times of columns with survival probabilities; empty for other forms of forecasts.
    horizon : float or None
        Time up to which outcomes are followed; None for outcomes that are no times.
    """

    kind: str
    columns: tuple[str, ...]
    link: Link
    times: tuple[float, ...] = ()
    horizon: float | None = None


def write_forecast_certificate(
    certificate: dict[str, Any], folder: str | os.PathLike[str], report: bytes | None = None
) -> None:
    """Write the certificate of given forecasts and its report, each in one step.

    Parameters
    ----------
    certificate : dict
        JSON values with `link`, `alpha` and `forecasts`, a dict of `kind`, `columns` and, for
        forecasts of times, `times` and `horizon`.
    folder : path
        Folder, created if needed; a certificate in it is replaced.
    report : bytes, optional
        Report page of the certificate. Without one, an old report is removed.
    """
    target = check_folder(folder)
    target.mkdir(parents=True, exist_ok=True)
    content = sealed(certificate | {"report_sha256": None if report is None else digest(report)})
    with one_writer(target):
        if report is None:
            (target / REPORT).unlink(missing_ok=True)
        else:
            replace_file(target / REPORT, report)
        # last: a report that is newer than its certificate is recognized by the hash
        replace_file(target / CERTIFICATE, content)


def read_forecast_certificate(folder: str | os.PathLike[str]) -> CertifiedForecasts:
    """Read the certificate of given forecasts.

    Raises
    ------
    InputError
        If there is no certificate, it is damaged, or it certifies a model.
    """
    path = Path(folder) / CERTIFICATE
    certificate = forecast_certificate(folder)
    try:
        forecasts = certificate["forecasts"]
        given = {"kind": forecasts["kind"], "columns": forecasts["columns"]}
        # certificates of outcomes that are no times have none
        given |= {"times": forecasts.get("times") or [], "horizon": forecasts.get("horizon")}
        fields = typed_fields(CertifiedForecasts, given)
        name, alpha = str(certificate["link"]), float(certificate["alpha"])
    except (KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error_text(error)}"
        raise InputError(f"{path} is damaged ({reason}); {_CERTIFY_AGAIN}") from error
    with about(str(path)):
        return CertifiedForecasts(link=make_link(name, alpha), **fields)


def forecast_certificate(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the content of the certificate of given forecasts.

    Raises
    ------
    InputError
        If there is no certificate, it is damaged, or it certifies a model.
    """
    source = Path(folder)
    path = source / CERTIFICATE
    if source.exists() and not source.is_dir():
        raise InputError(
            f"{source} is a file; give the folder that evenhand randomize --target wrote"
        )
    if not path.exists():
        raise InputError(
            f"{source} has no {CERTIFICATE}; write one with evenhand randomize --target"
        )
    if parsed(path) is not None:
        raise InputError(
            f"{path} certifies the model in this folder, not forecasts of another model; use"
            f" evenhand predict {source}, or certify the forecasts with evenhand randomize --target"
        )
    return read_sealed(path, "a certificate of forecasts", _CERTIFY_AGAIN)
