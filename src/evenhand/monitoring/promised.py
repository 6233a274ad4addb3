"""Promises of certificates, of selected randomizations, and of folders with a certificate."""

from __future__ import annotations

import os
from pathlib import Path

from evenhand._validate import InputError, about, bad_input, check_fraction
from evenhand.certificates import Certificate, EventCertificate, Promise
from evenhand.selection import Selection
from evenhand.store import CERTIFICATE, certificate_at

DEFAULT_MASS = 0.2
"""Group size of a promise, if neither the certificate nor the caller gives one."""

Promising = Certificate | EventCertificate | Selection | Promise | str | os.PathLike[str]
"""What contains a promise: a certificate, a selected randomization, or the path of a folder."""


def promise_of(source: Promising, mass: float | None = None) -> Promise:
    """Return what is promised for every group of a size, in the form that a watch tests.

    Parameters
    ----------
    source : Certificate, EventCertificate, Selection, Promise or path
        A certificate; the result of `randomize`; or a folder with `certificate.json`, which
        `evenhand fit` and `evenhand randomize` write, or that file itself.
    mass : float, optional
        Smallest share of people in a group, for certificates that bound all sizes. By default 0.2,
        or the one size that was certified.

    Returns
    -------
    Promise

    Raises
    ------
    InputError
        If nothing is promised, the certificate is damaged, or `mass` is not the certified size.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.certificates import certify_link
    >>> from evenhand.links import Entropic
    >>> proof = certify_link(np.random.default_rng(0).uniform(size=2000), link=Entropic(0.12))
    >>> promise = promise_of(proof)
    >>> promise.statistic, promise.mass, promise.target == proof.group_error(0.2)
    ('mean_pit', 0.2, True)
    """
    if mass is not None:
        check_fraction("mass", mass, high_open=False)
    if isinstance(source, Certificate | EventCertificate):
        only = getattr(source, "mass", None)
        return source.promise((only or DEFAULT_MASS) if mass is None else mass)
    if isinstance(source, Promise):
        found = source
    elif isinstance(source, Selection):
        found = source.promise()
    elif isinstance(source, str | os.PathLike):
        found = _of_folder(Path(source))
    else:
        rule = "be a Certificate, a Selection, a Promise or a path"
        raise bad_input("certificate", rule, type(source).__name__)
    if mass not in (None, found.mass):
        raise bad_input("mass", f"be {found.mass:g}, the size of the groups promised", mass)
    return found


def _of_folder(path: Path) -> Promise:
    content = certificate_at(path)
    with about(str(path if path.name == CERTIFICATE else path / CERTIFICATE)):
        if content.get("promise") is None:
            raise InputError(
                "nothing is promised that served forecasts can show; watch named groups without a"
                " certificate"
            )
        return Promise.from_dict(content["promise"])
