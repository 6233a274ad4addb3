"""Rooms of the package that commands use, each imported when it is first used.

Help pages and refused options then wait for neither pandas nor scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand import audits as audits
    from evenhand import draws as draws
    from evenhand import forecast_columns as forecast_columns
    from evenhand import forecasters as forecasters
    from evenhand import links as links
    from evenhand import monitoring as monitoring
    from evenhand import outcomes as outcomes
    from evenhand import report as report
    from evenhand import scale as scale
    from evenhand import selection as selection
    from evenhand import service as service
    from evenhand import store as store
    from evenhand import tables as tables


class Room:
    """A module of the package that is imported with the first of its names."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module(f"evenhand.{self._name}"), name)


def __getattr__(name: str) -> Room:
    # tools ask modules for names of their own, such as `__wrapped__` and `pytest_plugins`
    if name.startswith("_") or find_spec(f"evenhand.{name}") is None:
        raise AttributeError(name)
    return Room(name)
