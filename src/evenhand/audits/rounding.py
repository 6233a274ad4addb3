"""Rounding cells of outcomes, over which their PITs are spread."""

from __future__ import annotations

from evenhand._validate import MILD_ATOM, Floats, largest_atom
from evenhand.calibration import rounding_step
from evenhand.forecast import cell_ends


def spread_step(outcomes: Floats) -> float | None:
    """Return the rounding step over whose cells PITs are spread, or None if they are not spread.

    Where many rows share an outcome, their PITs would otherwise coincide.
    """
    # on a fine grid spreading would add a random number to each PIT without any benefit
    _, share = largest_atom(outcomes)
    # a single row is more than 2% of fewer than 50 rows
    is_tied = share > MILD_ATOM and share * outcomes.size > 1.5
    return rounding_step(outcomes) if is_tied else None


def rounding_cells(
    outcomes: Floats, step: float | None, span: tuple[float, float] | None = None
) -> tuple[Floats, Floats]:
    """Return both ends of each outcome's rounding cell; the outcomes themselves without a step.

    `span` is the smallest and the largest of all outcomes, where `outcomes` are only some of them.
    """
    return (outcomes, outcomes) if step is None else cell_ends(outcomes, step, span)
