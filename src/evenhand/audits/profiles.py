"""Shape of the errors of single groups: histograms of PITs, or reliability of probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from evenhand import calibration, search
from evenhand._validate import Ints
from evenhand.audits.group_tests import TestedGroups
from evenhand.audits.outcomes import RowPITs
from evenhand.audits.pictures import dkw_margin
from evenhand.columns import Groups
from evenhand.distributions import OutcomeKind

PROFILE_COLUMNS = ("table", "group", "mass", "share", "low", "high", "margin", "reliability")

BINS = 10
"""Bins of the histogram of a group."""

MOST_SCANNED = 100
"""Most scanned groups with a profile, those with the smallest p-values."""

DIGITS = 6
"""Decimals of shares, which are drawn in charts of a few centimetres."""

Listed = tuple[str, str | None, float, Ints]
"""Table of a group, its name, its mass if it is learned, and its rows."""


def profile_table(
    rows: RowPITs,
    named: Groups,
    tested: TestedGroups,
    learned: Iterable[search.FoundGroup],
    confidence: float,
) -> pd.DataFrame:
    """Return the profile of each group that reports list, see `Audit.profiles`."""
    found = [
        {"table": table, "group": name, "mass": mass} | _profile(rows, members, confidence)
        for table, name, mass, members in _listed(named, tested, learned)
    ]
    return pd.DataFrame(found, columns=list(PROFILE_COLUMNS)).astype({"mass": float})


def _listed(
    named: Groups, tested: TestedGroups, learned: Iterable[search.FoundGroup]
) -> Iterator[Listed]:
    """Yield the groups of each table whose members are known."""
    for name, mask in named.items():
        yield "groups", name, np.nan, np.flatnonzero(mask)
    for name, mask in tested.scanned_rows(MOST_SCANNED):
        yield "scan", name, np.nan, np.flatnonzero(mask)
    for group in learned:
        yield "learned", None, group.mass, group.rows


def _profile(rows: RowPITs, members: Ints, confidence: float) -> dict[str, Any]:
    """Return the histogram of a group, or its reliability if outcomes are 0 or 1."""
    if rows.kind is OutcomeKind.BINARY and rows.events is not None:
        weights = rows.pits.weights
        bins = calibration.reliability(
            rows.events.probability[members],
            rows.events.happened[members],
            None if weights is None else weights[members],
            confidence=confidence,
        )
        ends = (bins.probability, bins.rate, bins.low, bins.high)
        each = tuple(tuple(map(_rounded, one)) for one in zip(*ends, strict=True))
        return {"share": (), "low": np.nan, "high": np.nan, "margin": np.nan, "reliability": each}
    pits = rows.pits.take(members)
    bars = calibration.pit_histogram(pits, n_bins=BINS)
    # for several draws the band differs between bins: one band that contains all is wider
    return {
        "share": tuple(map(_rounded, bars.share)),
        "low": _rounded(bars.low.min()),
        "high": _rounded(bars.high.max()),
        "margin": _rounded(dkw_margin(calibration.n_effective(pits.shares))),
        "reliability": (),
    }


def _rounded(value: float) -> float:
    return round(float(value), DIGITS)
