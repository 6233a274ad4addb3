"""Saving and loading fitted forecasters."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

from evenhand._validate import InputError, MissingExtraError
from evenhand.forecasters import Forecaster
from evenhand.store.certificates import CERTIFICATE, parsed, staged
from evenhand.store.folder import check_folder, is_being_saved, read_steadily, write_model
from evenhand.store.forecast_certificates import forecast_certificate
from evenhand.store.manifest import error_text, mark, read_file, read_manifest
from evenhand.store.packing import attached_parts, foreign_parts, pack, unpack


def save(model: Forecaster, folder: str | os.PathLike[str]) -> None:
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
    source = Path(folder)
    model, _ = load_with_hash(source, estimator)
    stranger = _foreign_certificate(source)
    if stranger is not None:
        warnings.warn(stranger, UserWarning, stacklevel=2)
    return model


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
        The model folder.

    Returns
    -------
    dict
        The content of `certificate.json`, which `evenhand fit --max-group-error` writes.

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
    source = Path(folder)
    return read_steadily(source, lambda manifest: _certificate_of(manifest, source))


def certificate_at(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the certificate of a model, or that of forecasts of another model.

    Parameters
    ----------
    path : path
        Folder of the certificate, or the file itself.

    Raises
    ------
    InputError
        If there is no certificate, it is damaged, or it belongs to another model than that in its
        folder.
    """
    folder = Path(path)
    folder = folder.parent if folder.name == CERTIFICATE else folder
    has_model = (folder / "model.json").exists() or not (folder / CERTIFICATE).exists()
    return read_certificate(folder) if has_model else forecast_certificate(folder)


def _certificate_of(manifest: dict[str, Any], source: Path) -> dict[str, Any]:
    sha256 = str(manifest["sha256"])
    # a killed save leaves its certificate under the temporary name, and an older one may have the
    # final name
    for path in (staged(source, sha256, CERTIFICATE), source / CERTIFICATE):
        certificate = parsed(path)
        if certificate is not None and certificate["model_sha256"] == sha256:
            return certificate
    if certificate is None:
        remedy = "certify a model with evenhand fit --max-group-error"
        raise InputError(f"{source} has no readable {CERTIFICATE}; {remedy}")
    raise InputError(_of_another_model(source, certificate["model_sha256"], sha256))


def _of_another_model(source: Path, named: str, sha256: str) -> str:
    return (
        f"{source / CERTIFICATE} certifies the model {named[:16]} and gives no guarantee for"
        f" {sha256[:16]}, the model in this folder; remove it, or certify this model with evenhand"
        " fit --max-group-error"
    )


def _foreign_certificate(source: Path) -> str | None:
    """Return a warning about a certificate of another model in the folder.

    None if there is no such certificate, or a save is about to replace it.
    """
    before = mark(source)
    try:
        sha256 = str(read_manifest(source)["sha256"])
    except InputError:
        return None
    # a killed save leaves an older certificate under the final name
    if is_being_saved(source) or staged(source, sha256, CERTIFICATE).exists():
        return None
    certificate = parsed(source / CERTIFICATE)
    if certificate is None or certificate["model_sha256"] == sha256 or mark(source) != before:
        return None
    return _of_another_model(source, certificate["model_sha256"], sha256)


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
