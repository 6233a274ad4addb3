"""Reruns of the paper's experiments with figures and verdicts, and the lending game.

The experiments are imported on first use, because the lending game does not need them.
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
    # for tests of the studies
    "credit_claims_of": ("credit_claims", "claims"),
    "crime_claims_of": ("crime_claims", "claims"),
    **{
        name: (file, name)
        for file, names in {
            "credit_banks": ("LINKED", "bank_earnings", "best_cut", "deterministic_banks"),
            "credit_claims": ("advantages", "choose_cells", "judge_chosen"),
            "credit_people": ("NOISE", "SHARE_UNQUALIFIED", "Rollout", "load_people"),
            "crime_claims": ("kinds_of",),
            "crime_split": ("MASSES", "Split", "errors_as_published"),
            "impossibility": (
                "WORLDS",
                "TwoWorlds",
                "measure_floors",
                "share_of_yes",
                "theory_of_floors",
                "two_worlds",
            ),
            "study": ("compute_parts",),
            "sweep": ("NETWORK",),
            "toy_figures": ("plot_introduction", "plot_two_worlds"),
            "verdicts": ("interval", "judge"),
        }.items()
        for name in names
    },
}

__all__ = ["check_folder", "run_credit", "run_crime", "run_toy"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'evenhand.studies' has no attribute {name!r}")
    file, function = _HOMES[name]
    return getattr(importlib.import_module(f"evenhand.studies.{file}"), function)
