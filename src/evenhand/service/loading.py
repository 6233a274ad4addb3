"""Loading of the model of a service, with its hash."""

from __future__ import annotations

import os
from typing import NamedTuple

from evenhand._validate import bad_input
from evenhand.forecasters import Forecaster
from evenhand.store import foreign_parts, load_with_hash, pack


class Loaded(NamedTuple):
    """Fitted forecaster, its hash, and the names of inner models that the hash does not cover."""

    forecaster: Forecaster
    sha256: str
    unstored: list[str]


def loaded(model: str | os.PathLike[str] | Forecaster | Loaded) -> Loaded:
    """Return a forecaster from its folder, or as given, with the hash that its folder would have.

    What is loaded already is returned as it is.

    Raises
    ------
    InputError
        If it is neither a model folder nor a fitted forecaster of this package.
    """
    if isinstance(model, Loaded):
        return model
    if isinstance(model, str | os.PathLike):
        forecaster, sha256 = load_with_hash(model)
        return Loaded(forecaster, sha256, [])
    if not isinstance(model, Forecaster):
        rule = "be a model folder or a fitted forecaster"
        raise bad_input("model", rule, type(model).__name__, "randomize(...) has one as .model")
    packed = pack(model)
    return Loaded(model, packed.sha256, [part["name"] for part in foreign_parts(packed.entry)])
