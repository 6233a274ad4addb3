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
from evenhand.store.manifest import error_text, mark, read_file, read_manifest
from evenhand.store.packing import attached_parts, foreign_parts, pack, unpack


def save(model: Forecaster, folder: str | os.PathLike[str]) -> None:
    """Save a fitted forecaster to a folder.

    Parameters
    ----------
    model : forecaster
        One of ours, fitted; scikit-learn estimators inside are stored too. Other models and
        functions inside, which cannot be stored safely, are named in a warning: keep them yourself
        and give them to `load`.
    folder : path
        Made if it is not there. A model that is there already is replaced in one step.

    Raises
    ------
    InputError
        If the model is no forecaster of ours, or one of its parameters cannot be stored.

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
        The fitted model or the function that `save` left out, by its warning, or a list of them in
        the order it named them. That it is the same one is your word: only the name of its class or
        function is compared.

    Returns
    -------
    forecaster
        Its forecasts at the same draws are those of the saved one.

    Raises
    ------
    InputError
        If the folder is missing, damaged, changed or of a newer format, or holds types that are not
        allowed; or if `estimator` is not what was left out.
    MissingExtraError
        If the model needs a package that is not installed.

    Examples
    --------
    >>> load("no/such/folder")
    Traceback (most recent call last):
    evenhand._validate.InputError: no/such/folder: no such model folder; make one with ...
    """
    source = Path(folder)
    model = read_steadily(source, lambda manifest: _rebuilt(manifest, source, estimator))
    stranger = _foreign_certificate(source)
    if stranger is not None:
        warnings.warn(stranger, UserWarning, stacklevel=2)
    return model


def read_certificate(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Read the certificate of the model in a folder.

    Parameters
    ----------
    folder : path
        The model folder.

    Returns
    -------
    dict
        What `evenhand fit --max-group-error` wrote to `certificate.json`.

    Raises
    ------
    InputError
        If there is no certificate, or it is that of another model than the one in the folder.

    Examples
    --------
    >>> read_certificate("no/such/folder")
    Traceback (most recent call last):
    evenhand._validate.InputError: no/such/folder: no such model folder; make one with ...
    """
    source = Path(folder)
    return read_steadily(source, lambda manifest: _certificate_of(manifest, source))


def _certificate_of(manifest: dict[str, Any], source: Path) -> dict[str, Any]:
    sha256 = str(manifest["sha256"])
    # a save that was killed leaves the certificate of its model under this name, and an older one
    # in its place
    for path in (staged(source, sha256, CERTIFICATE), source / CERTIFICATE):
        certificate = parsed(path)
        if certificate is not None and certificate["model_sha256"] == sha256:
            return certificate
    if certificate is None:
        remedy = "certify a model with evenhand fit --max-group-error"
        raise InputError(f"{source}: the model has no {CERTIFICATE} that can be read; {remedy}")
    raise InputError(_of_another_model(source, certificate["model_sha256"], sha256))


def _of_another_model(source: Path, named: str, sha256: str) -> str:
    what = (
        f"certifies the model {named[:16]} and proves nothing about {sha256[:16]}, the one in this"
        " folder"
    )
    return (
        f"{source / CERTIFICATE}: {what}; remove it, or certify this model with evenhand fit"
        " --max-group-error"
    )


def _foreign_certificate(source: Path) -> str | None:
    """Describe a certificate of another model that lies beside this one.

    None if a save is about to replace it.
    """
    before = mark(source)
    try:
        sha256 = str(read_manifest(source)["sha256"])
    except InputError:
        return None
    # a killed save leaves an older certificate in the place of its own
    if is_being_saved(source) or staged(source, sha256, CERTIFICATE).exists():
        return None
    certificate = parsed(source / CERTIFICATE)
    if certificate is None or certificate["model_sha256"] == sha256 or mark(source) != before:
        return None
    return _of_another_model(source, certificate["model_sha256"], sha256)


def _rebuilt(manifest: dict[str, Any], source: Path, estimator: Any) -> Any:
    try:
        # all files before the first is used: nobody replaces them meanwhile
        contents = {key: read_file(source, file) for key, file in manifest["files"].items()}
        attached = iter(attached_parts(estimator, list(foreign_parts(manifest["model"])), source))
        return unpack(manifest["model"], contents, source, attached)
    # these name their cause and remedy already
    except (InputError, MissingExtraError, MemoryError):
        raise
    except ModuleNotFoundError as error:
        remedy = "run: pip install 'evenhand[neural]'"
        raise MissingExtraError(
            f"{source}: the model needs {error.name}, which is not installed; {remedy}"
        ) from error
    except Exception as error:  # what is rebuilt from foreign bytes raises whatever it likes
        reason = f"{type(error).__name__}: {error_text(error)}"
        raise InputError(
            f"{source}: damaged, cannot be rebuilt ({reason}); save the model anew"
        ) from error
