"""Forecasts that are calibrated for each person, not only on average.

The public names are loaded when first used, so that `import evenhand` costs almost nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand._checks import DiscreteOutcomeWarning, InputError, MissingExtraError
    from evenhand.audits import Audit, audit, compare
    from evenhand.forecast import Forecast
    from evenhand.forecasters import MixtureMLPRegressor, PAICRegressor, RandomizedRegressor
    from evenhand.store import load, save

__version__ = "0.1.0"

_HOMES = {
    "Audit": "audits",
    "DiscreteOutcomeWarning": "_checks",
    "Forecast": "forecast",
    "InputError": "_checks",
    "MissingExtraError": "_checks",
    "MixtureMLPRegressor": "forecasters",
    "PAICRegressor": "forecasters",
    "RandomizedRegressor": "forecasters",
    "audit": "audits",
    "compare": "audits",
    "load": "store",
    "save": "store",
}
_ROOMS = ("calibration", "datasets", "distributions", "draws", "forecasters", "links", "losses")

__all__ = [
    "Audit",
    "DiscreteOutcomeWarning",
    "Forecast",
    "InputError",
    "MissingExtraError",
    "MixtureMLPRegressor",
    "PAICRegressor",
    "RandomizedRegressor",
    "audit",
    "compare",
    "load",
    "save",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"evenhand.{_HOMES[name]}"), name)
    if name in _ROOMS:
        return importlib.import_module(f"evenhand.{name}")
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS, "__version__"])
