"""Coverage that a wider interval of a deterministic forecaster proves for every group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import LEAST_FLOOR, at_least, in_full, percent
from evenhand._validate import bad_input, check_fraction
from evenhand.calibration import Cells, as_cells, covered_whole, share_bound

WIDER_LEVELS = (0.9, 0.95, 0.98, 0.99)
"""Nominal levels of the wider intervals, among which the risk is shared equally."""

LOW_SHARE = 0.9
"""Share of the risk of coverage that is spent on the lower bound: undercoverage does the harm."""


@dataclass(frozen=True)
class WiderInterval:
    """Lower bound for the coverage of a deterministic prediction interval in every group.

    The bounds of all `WIDER_LEVELS` hold simultaneously, at every group size.

    Parameters
    ----------
    level : float
        Nominal level of the central prediction interval.
    mass : float
        Smallest share of people in the group.
    floor : float
        Lower bound for the coverage in every group of at least this share of people, 0 to 1. There
        is no upper bound below 1, unless the group contains nearly all people.
    covered : float
        Share of all of these people whose outcome the interval covers: an estimate.
    n_samples : int
        Number of people.
    confidence : float
        Probability, over the rows, that the bounds of all levels hold.
    """

    level: float
    mass: float
    floor: float
    covered: float
    n_samples: int
    confidence: float


def wider_interval(
    pit: ArrayLike | Cells, floor: float, mass: float, *, confidence: float = 0.95
) -> WiderInterval | None:
    """Return the narrowest interval without a draw that covers at least `floor` in every group.

    Its floor is certified for a deterministic forecaster, and can be compared with that of a
    randomized one. A group of a share `mass` of people contains at most all the people
    whom the interval misses: `P(miss | group) <= P(miss) / mass`, for any group (method.md,
    11). `P(miss)` has a Clopper-Pearson bound. Levels of 0.9, 0.95, 0.98 and 0.99 are tried, and
    each has a quarter of the risk, so that the level may be chosen on the same people.

    Parameters
    ----------
    pit : Cells or array-like of shape (n,)
        PITs of the deterministic forecaster on independent rows that it has not seen, one per row.
    floor : float
        Smallest admissible coverage in a group, 0 to 1.
    mass : float
        Smallest share of people in the group, 0 < mass <= 1.
    confidence : float, default 0.95
        Probability, over the rows, that the bounds of all levels hold.

    Returns
    -------
    WiderInterval or None
        The lowest level that suffices; None if none does.

    Raises
    ------
    InputError
        If the PITs are invalid, or there is more than one per row.

    Examples
    --------
    >>> u = (np.arange(1000) + 0.5) / 1000  # a calibrated forecaster
    >>> found = wider_interval(u, floor=0.7, mass=0.2)
    >>> found.level, round(found.floor, 2), found.covered
    (0.98, 0.84, 0.98)
    >>> wider_interval(u, floor=0.99, mass=0.2) is None
    True
    """
    check_fraction("floor", floor, low_open=False, high_open=False)
    reached = (
        interval
        for interval in wider_intervals(pit, mass, confidence=confidence)
        if interval.floor >= floor
    )
    return next(reached, None)


def wider_intervals(
    pit: ArrayLike | Cells, mass: float, *, confidence: float = 0.95
) -> tuple[WiderInterval, ...]:
    """Return the floors of intervals without a draw in every group, by increasing level.

    Parameters
    ----------
    pit, mass, confidence
        As in `wider_interval`.

    Returns
    -------
    tuple of WiderInterval
        One for each of the levels 0.9, 0.95, 0.98 and 0.99; all bounds hold simultaneously.

    Raises
    ------
    InputError
        If the PITs are invalid, or there is more than one per row.

    Examples
    --------
    >>> u = (np.arange(1000) + 0.5) / 1000  # a calibrated forecaster
    >>> [round(interval.floor, 2) for interval in wider_intervals(u, mass=0.2)]
    [0.38, 0.66, 0.84, 0.9]
    """
    pits = as_cells(pit)
    if pits.n_draws != 1:
        remedy = "pass the PITs of the deterministic forecaster"
        raise bad_input("pit", "have one PIT per row", f"shape {pits.drawn.shape}", remedy)
    inside = [round(covered_whole(pits, level).sum()) for level in WIDER_LEVELS]
    return intervals_of_hits(inside, pits.n_samples, mass, confidence)


def wider_intervals_of_counts(
    counts: NDArray[np.int64], mass: float, *, confidence: float = 0.95
) -> tuple[WiderInterval, ...]:
    """Return `wider_intervals` from counts of PITs in equal bins of [0, 1], closed on the right.

    The number of bins must make the ends of the intervals edges of bins, as 200 or 6,400 do. PITs
    at the lower end of an interval count as missed.

    Examples
    --------
    >>> found = wider_intervals_of_counts(np.full(200, 5), mass=0.2)
    >>> found == wider_intervals((np.arange(1000) + 0.5) / 1000, mass=0.2)
    True
    """
    ends = [round((1 - level) / 2 * counts.size) for level in WIDER_LEVELS]
    inside = [int(counts[end : counts.size - end].sum()) for end in ends]
    return intervals_of_hits(inside, int(counts.sum()), mass, confidence)


def intervals_of_hits(
    inside: Sequence[int], n: int, mass: float, confidence: float
) -> tuple[WiderInterval, ...]:
    """Return `wider_intervals` from the numbers of people inside the interval of each level."""
    check_fraction("mass", mass, high_open=False)
    check_fraction("confidence", confidence)
    return tuple(
        WiderInterval(
            level,
            mass,
            coverage_floor(n - hits, n, level, mass, confidence),
            hits / n,
            n,
            confidence,
        )
        for level, hits in zip(WIDER_LEVELS, inside, strict=True)
    )


def coverage_floor(n_missed: int, n: int, level: float, mass: float, confidence: float) -> float:
    """Lower bound for the coverage of a deterministic interval in every group of a given size.

    The bounds of all `WIDER_LEVELS` hold simultaneously, at all group sizes; that of another level,
    which must not depend on the rows, holds on its own.

    Parameters
    ----------
    n_missed : int
        Number of people whose outcome the interval does not cover.
    n : int
        Number of people.
    level : float
        Nominal level of the interval.
    mass : float
        Smallest share of people in the group.
    confidence : float
        Probability, over the rows, that the bound holds.

    Returns
    -------
    float
        Between 0 and 1.

    Examples
    --------
    >>> round(coverage_floor(20, 1000, level=0.98, mass=0.2, confidence=0.95), 2)
    0.84
    >>> coverage_floor(500, 1000, level=0.5, mass=0.2, confidence=0.95)
    0.0
    """
    shared = len(WIDER_LEVELS) if level in WIDER_LEVELS else 1
    missed = share_bound(n_missed, n, 1 - (1 - confidence) / shared)
    # all of the misses may be in one group
    return max(1 - missed / mass, 0.0)


def plain_coverage(
    n_missed: int, n_covered: int, n: int, level: float, mass: float, confidence: float
) -> tuple[float, float]:
    """Bounds for the coverage of a deterministic interval in every group; as `coverage_floor`.

    `n_covered` are the people whose outcome the interval covers: with `n_missed` all people, or
    more if outcomes that are not known count as both.
    """
    # a group of a share `mass` of people has at most all misses, and at most all hits, of all
    # people (method.md, 11)
    if level in WIDER_LEVELS:  # the lower bounds of these levels share the whole risk
        return coverage_floor(n_missed, n, level, mass, confidence), 1.0
    risk = 1 - confidence
    low = coverage_floor(n_missed, n, level, mass, 1 - risk * LOW_SHARE)
    high = share_bound(n_covered, n, 1 - risk * (1 - LOW_SHARE)) / mass
    return low, min(high, 1.0)


def floors_line(intervals: Sequence[WiderInterval], of: str) -> str:
    """Return the line of a summary about intervals without a draw; "" if it is uninformative."""
    useful = [
        (f"the {in_full(one.level)} interval", at_least(one.floor, percent))
        for one in intervals
        if one.floor >= LEAST_FLOOR
    ]
    if not useful:
        return ""
    (first, least), *others = useful
    listed = [f"{first} covers at least {least} of outcomes", *map(" ".join, others)]
    text = f"{', '.join(listed[:-1])} and {listed[-1]}" if others else listed[0]
    opening = f"- without a draw, in every group of at least {in_full(intervals[0].mass)} of {of},"
    return f"{opening} {text}; there is no upper bound"
