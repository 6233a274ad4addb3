"""Studies: the paper's experiments, rerun with figures and verdicts, and the lending game.

The experiments are loaded when first used: the lending game below them needs none.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.studies.credit import run as run_credit
    from evenhand.studies.crime import run as run_crime
    from evenhand.studies.study import check_folder
    from evenhand.studies.toy import run as run_toy

_HOMES = {
    "check_folder": ("study", "check_folder"),
    "run_credit": ("credit", "run"),
    "run_crime": ("crime", "run"),
    "run_toy": ("toy", "run"),
}

__all__ = ["check_folder", "run_credit", "run_crime", "run_toy"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'evenhand.studies' has no attribute {name!r}")
    file, function = _HOMES[name]
    return getattr(importlib.import_module(f"evenhand.studies.{file}"), function)
