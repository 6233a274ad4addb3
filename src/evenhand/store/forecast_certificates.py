"""Certificates of forecasts of other models, in folders without a model.

`certificate.json` contains its own hash and that of the report, `report_sha256`. It belongs to
columns of forecasts, not to a model that this package could store.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand._files import replace_file
from evenhand._locks import one_writer
from evenhand._validate import InputError, about, typed_fields
from evenhand.links import Link, make_link
from evenhand.store.certificates import CERTIFICATE, REPORT, parsed
from evenhand.store.folder import check_folder
from evenhand.store.manifest import digest, error_text, read_sealed, sealed

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
