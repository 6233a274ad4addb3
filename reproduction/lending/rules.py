"""Threshold and amounts of the lending game."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np

from evenhand._validate import bad_input, check_count


@dataclass(frozen=True)
class LendingRules:
    """Threshold, gains and costs of a lending game; see `LendingGame`."""

    threshold: float
    bank_gain: float = 1.0
    bank_loss: float = 3.0
    gain_qualified: float = 0.2
    gain_unqualified: float = 1.0
    refusal_cost: float = 0.5
    retry_cost: float = 0.0
    max_tries: int = 1

    def __post_init__(self) -> None:
        amounts = (
            "bank_gain",
            "bank_loss",
            "gain_qualified",
            "gain_unqualified",
            "refusal_cost",
            "retry_cost",
        )
        for name in ("threshold", *amounts):
            value = getattr(self, name)
            is_real = isinstance(value, Real) and not isinstance(value, bool)
            # only the cost of a retry may be 0
            is_allowed = is_real and np.isfinite(float(value))
            if name in amounts:
                is_allowed = is_allowed and (value > 0 or (name == "retry_cost" and value == 0))
            if not is_allowed:
                rule = {"threshold": "", "retry_cost": " of at least 0"}.get(name, " above 0")
                raise bad_input(name, f"be a finite number{rule}", repr(value))
        check_count("max_tries", self.max_tries)
