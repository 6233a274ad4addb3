"""Length of a training and size of its steps, by the number of rows."""

from __future__ import annotations

from dataclasses import dataclass

from evenhand.forecasters.network.settings import Settings

BATCHES = ((1000, 64), (5000, 128))
LARGEST_BATCH = 256
"""Numbers of rows below which, and sizes of a batch."""

USUAL_STEPS = 1250
FEWEST_PASSES = 30
MOST_PASSES = 200
"""A training has the usual number of steps unless that is too few or too many passes."""

USUAL_CHECKS = 60

LAST_RATE = 0.01


@dataclass(frozen=True)
class Schedule:
    """Limits of a training; None for one that depends on the number of rows."""

    learning_rate: float
    patience: int
    batch_size: int | None = None
    max_passes: int | None = None
    max_steps: int | None = None
    check_every: int | None = None

    def settings(self, n: int, weight_decay: float) -> Settings:
        """Return the settings for n rows to learn from."""
        usual = next((size for below, size in BATCHES if n < below), LARGEST_BATCH)
        batch_size = min(self.batch_size or usual, n)
        per_pass = n // batch_size
        usual_passes = min(max(USUAL_STEPS // per_pass, FEWEST_PASSES), MOST_PASSES)
        max_steps = per_pass * (self.max_passes or usual_passes)
        if self.max_steps is not None:
            max_steps = min(max_steps, self.max_steps)
        return Settings(
            self.learning_rate,
            weight_decay,
            batch_size,
            max_steps,
            self.patience,
            self.check_every or max(1, max_steps // USUAL_CHECKS),
            last_rate=LAST_RATE,
            decays_biases=False,
        )
