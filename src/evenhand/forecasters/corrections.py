"""Sequence of joint corrections of PITs for overlapping groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand._validate import Floats, Mask
from evenhand.calibration import n_effective
from evenhand.forecasters.pit_cells import PitCells
from evenhand.forecasters.rescaling import Rescaling, learn_rescaling
from evenhand.forecasters.steps import LEVEL, Patterns, Step
from evenhand.forecasters.tilts import Tilt, learn_tilt

MOST_STEPS = 3
"""Largest number of successive joint corrections by tilts."""


def learn_corrections(
    pit: Floats | PitCells, weight: Floats, masks: Mask, level: float = LEVEL
) -> tuple[Step, ...]:
    """Learn the joint corrections of significant deviations; empty if there are none.

    All rows and the groups get a term one after the other, the most significant deviation first,
    as long as its p-value is below `level` divided by the number of groups plus one. Two sequences
    are compared by AIC: corrections of densities (`Tilt`), and the same after a correction of
    location and scale (`Rescaling`). Corrections of the corrected PITs follow while any group is
    significant.

    Parameters
    ----------
    pit : ndarray of shape (n,) or PitCells
        Held-out PITs.
    weight : ndarray of shape (n,)
        Positive weights.
    masks : ndarray of bool, shape (n, n_groups)
        Membership.
    level : float, default 0.05
        Probability that calibrated PITs get any correction.
    """
    pits = PitCells.of(pit)
    everyone = np.column_stack((np.ones(len(masks), dtype=bool), masks))
    patterns = Patterns.of(masks)
    scaled = weight * (n_effective(weight) / weight.sum())
    rescaling = learn_rescaling(pits, scaled, everyone, patterns, level)
    if rescaling is None:
        return ()
    sequences = (
        _with_tilts((), pits, scaled, everyone, patterns, level),
        _with_tilts((rescaling,), pits, scaled, everyone, patterns, level),
    )
    return max(sequences, key=lambda sequence: sequence[0])[1]


def _with_tilts(
    steps: tuple[Step, ...],
    pit: PitCells,
    weight: Floats,
    masks: Mask,
    patterns: Patterns,
    level: float,
) -> tuple[float, tuple[Step, ...]]:
    """Add tilts to corrections; return their gain minus the number of parameters, and all steps."""
    gain = 0.0
    for step in steps:
        pit, log_slope = step.apply(pit, patterns)
        gain += float(weight @ log_slope) - step.n_parameters
    for _ in range(MOST_STEPS):
        tilt = learn_tilt(pit, weight, masks, patterns, level)
        if tilt is None:
            break
        pit, log_slope = tilt.apply(pit, patterns)
        gain += float(weight @ log_slope) - tilt.n_parameters
        steps = (*steps, tilt)
    return gain, steps


def arrays_of_steps(steps: tuple[Step, ...]) -> dict[str, Any]:
    """Return the arrays of steps, named by field and number, for storage."""
    return {
        f"map_{name}_{i}": values
        for i, step in enumerate(steps)
        for name, values in step.to_arrays().items()
    }


def take_steps(arrays: dict[str, Any], n_steps: int) -> tuple[Step, ...]:
    """Rebuild steps from the output of `arrays_of_steps`, which is removed from `arrays`."""

    def taken(i: int) -> Step:
        if f"map_location_{i}" in arrays:
            return Rescaling(arrays.pop(f"map_location_{i}"), arrays.pop(f"map_log_scale_{i}"))
        return Tilt(arrays.pop(f"map_edges_{i}"), arrays.pop(f"map_tilts_{i}"))

    return tuple(taken(i) for i in range(n_steps))
