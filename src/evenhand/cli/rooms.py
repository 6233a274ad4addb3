"""Rooms of the package that commands use, each imported when it is first used.

Help pages and refused options then wait for neither pandas nor scikit-learn.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand import (
        audits,
        certificates,
        draws,
        forecast_columns,
        forecasters,
        links,
        monitoring,
        outcomes,
        report,
        scale,
        selection,
        service,
        store,
        tables,
    )


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
