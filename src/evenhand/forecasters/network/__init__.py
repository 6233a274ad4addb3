"""Neural forecasters (torch).

Names that need torch are imported on first use, as the package must import without torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from evenhand.forecasters.network.mixture_mlp import MixtureMLPRegressor
from evenhand.forecasters.network.neural import NeuralForecaster
from evenhand.forecasters.network.paic import PAICRegressor

__all__ = ["MixtureMLPRegressor", "NeuralForecaster", "PAICRegressor"]

# parts for tests and benchmarks; `__all__` is what other rooms use
_PARTS = {
    "stack": ("Shape", "Stack", "Weights", "pick_device", "score"),
    "settings": ("Settings",),
    "rows": ("Rows", "row_numbers", "split_rows", "split_rows_by_network", "tensors"),
    "run": ("Run",),
    "validation": ("Validation",),
    "training": ("train",),
    "inputs": ("Inputs",),
    "mixture_outputs": ("MixtureOutputs",),
    "recalibration": ("spread_factor",),
    "schedule": ("Schedule",),
    "skew": ("Skew", "robust_scale", "skew_scores"),
}


def __getattr__(name: str) -> Any:
    for module, names in _PARTS.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
