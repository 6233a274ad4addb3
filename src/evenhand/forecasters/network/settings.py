"""Settings of the optimizer and of early stopping."""

from __future__ import annotations

import time
from dataclasses import dataclass

from evenhand._validate import bad_input


@dataclass(frozen=True)
class Settings:
    """Settings of a training run.

    Parameters
    ----------
    learning_rate : float
        Initial step size of Adam; it decays along a half cosine over `max_steps`.
    weight_decay : float
        Decoupled weight decay (AdamW).
    batch_size : int
        Number of rows per step.
    max_steps : int
        Largest number of optimizer steps of a network.
    patience : int
        Number of checks without a better validation loss after which a network stops.
    check_every : int
        Number of steps between checks of the validation loss.
    last_rate : float, default 0.1
        Step size at the end, as a share of the initial one.
    decays_biases : bool, default True
        Whether weight decay applies to biases as well as to kernels.
    """

    learning_rate: float
    weight_decay: float
    batch_size: int
    max_steps: int
    patience: int
    check_every: int
    last_rate: float = 0.1
    decays_biases: bool = True

    def __post_init__(self) -> None:
        if not self.learning_rate > 0:
            raise bad_input("learning_rate", "be positive", self.learning_rate)


LEAST_BUDGET = 1e-9
"""Seconds that are left of a budget that is used up."""


class Clock:
    """Time since the beginning of a training, as a share of its budget.

    Parameters
    ----------
    budget : float, optional
        Seconds; without a budget the share is always 0.
    """

    def __init__(self, budget: float | None = None) -> None:
        self.budget = budget
        self.start = time.monotonic()

    def share(self) -> float:
        """Return the share of the budget that is used up."""
        return 0.0 if self.budget is None else (time.monotonic() - self.start) / self.budget

    def rest(self) -> Clock:
        """Return a clock of what is left of the budget, which starts now."""
        if self.budget is None:
            return self
        left = self.budget - (time.monotonic() - self.start)
        return Clock(max(left, LEAST_BUDGET))
