"""Forecasts that are calibrated for each person, not only on average.

Public names are imported on first use, so that `import evenhand` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from evenhand._version import __version__ as __version__

if TYPE_CHECKING:
    from evenhand._validate import DiscreteOutcomeWarning, InputError, MissingExtraError
    from evenhand.audits import Audit, audit, audit_pit, certify, compare
    from evenhand.certificates import Certificate, certify_pit
    from evenhand.forecast import Forecast
    from evenhand.forecasters import (
        BoostedDistributionRegressor,
        ClassifierForecaster,
        CountRegressor,
        HurdleRegressor,
        MixtureMLPRegressor,
        PAICRegressor,
        RandomizedRegressor,
        RecalibratedClassifier,
        RecalibratedRegressor,
    )
    from evenhand.monitoring import Watch
    from evenhand.outcomes import Outcomes
    from evenhand.selection import Selection, plan, randomize
    from evenhand.service import Service
    from evenhand.store import load, save
    from evenhand.tables import UnseenValuesWarning

_HOMES = {
    name: room
    for room, names in {
        "_validate": "DiscreteOutcomeWarning InputError MissingExtraError",
        "audits": "Audit audit audit_pit certify compare",
        "certificates": "Certificate certify_pit",
        "forecast": "Forecast",
        "forecast_columns": "ForecastColumns",
        "forecasters": (
            "BoostedDistributionRegressor ClassifierForecaster CountRegressor HurdleRegressor"
            " MixtureMLPRegressor PAICRegressor RandomizedRegressor RecalibratedClassifier"
            " RecalibratedRegressor"
        ),
        "monitoring": "Watch",
        "outcomes": "Outcomes",
        "selection": "Selection plan randomize",
        "service": "Service",
        "store": "load save",
        "tables": "UnseenValuesWarning",
    }.items()
    for name in names.split()
}
_ROOMS = (
    "calibration",
    "certificates",
    "datasets",
    "decisions",
    "distributions",
    "draws",
    "figures",
    "forecasters",
    "links",
    "losses",
    "monitoring",
    "outcomes",
    "scale",
    "scoring",
    "search",
    "selection",
    "service",
)

__all__ = [
    "Audit",
    "BoostedDistributionRegressor",
    "Certificate",
    "ClassifierForecaster",
    "CountRegressor",
    "DiscreteOutcomeWarning",
    "Forecast",
    "ForecastColumns",
    "HurdleRegressor",
    "InputError",
    "MissingExtraError",
    "MixtureMLPRegressor",
    "Outcomes",
    "PAICRegressor",
    "RandomizedRegressor",
    "RecalibratedClassifier",
    "RecalibratedRegressor",
    "Selection",
    "Service",
    "UnseenValuesWarning",
    "Watch",
    "audit",
    "audit_pit",
    "certify",
    "certify_pit",
    "compare",
    "load",
    "plan",
    "randomize",
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
