"""Forecasts that are calibrated for each person, not only on average.

Public names are imported on first use, so that `import evenhand` is fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from evenhand._version import __version__ as __version__

if TYPE_CHECKING:
    from evenhand._validate import DiscreteOutcomeWarning as DiscreteOutcomeWarning
    from evenhand._validate import InputError as InputError
    from evenhand._validate import MissingExtraError as MissingExtraError
    from evenhand.audits import Audit as Audit
    from evenhand.audits import Search as Search
    from evenhand.audits import audit as audit
    from evenhand.audits import audit_pit as audit_pit
    from evenhand.audits import certify as certify
    from evenhand.audits import compare as compare
    from evenhand.certificates import Certificate as Certificate
    from evenhand.certificates import certify_pit as certify_pit
    from evenhand.forecast import Forecast as Forecast
    from evenhand.forecast_columns import ForecastColumns as ForecastColumns
    from evenhand.forecasters import BoostedDistributionRegressor as BoostedDistributionRegressor
    from evenhand.forecasters import ClassifierForecaster as ClassifierForecaster
    from evenhand.forecasters import CountRegressor as CountRegressor
    from evenhand.forecasters import HurdleRegressor as HurdleRegressor
    from evenhand.forecasters import MixtureMLPRegressor as MixtureMLPRegressor
    from evenhand.forecasters import PAICRegressor as PAICRegressor
    from evenhand.forecasters import RandomizedRegressor as RandomizedRegressor
    from evenhand.forecasters import RecalibratedClassifier as RecalibratedClassifier
    from evenhand.forecasters import RecalibratedRegressor as RecalibratedRegressor
    from evenhand.monitoring import Watch as Watch
    from evenhand.outcomes import Outcomes as Outcomes
    from evenhand.selection import Selection as Selection
    from evenhand.selection import plan as plan
    from evenhand.selection import randomize as randomize
    from evenhand.service import Service as Service
    from evenhand.store import load as load
    from evenhand.store import save as save
    from evenhand.tables import UnseenValuesWarning as UnseenValuesWarning

_HOMES = {
    name: room
    for room, names in {
        "_validate": "DiscreteOutcomeWarning InputError MissingExtraError",
        "audits": "Audit Search audit audit_pit certify compare",
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

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(f"evenhand.{_HOMES[name]}"), name)
    if name in _ROOMS:
        return importlib.import_module(f"evenhand.{name}")
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS, "__version__"])
