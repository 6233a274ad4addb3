"""Sizes of the errors of groups where times are cut off, beside their tests (outcomes: 5)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand import search
from evenhand._validate import Floats, Ints, Mask
from evenhand.audits.group_tests import TestedGroups
from evenhand.audits.options import SearchOptions
from evenhand.audits.outcomes import RowPITs
from evenhand.audits.rows import HeldOut
from evenhand.audits.scores import LEVELS, Band
from evenhand.calibration import (
    CensoredError,
    Estimate,
    censored_error,
    coverage_name,
)
from evenhand.columns import EVERYONE
from evenhand.report import Measure

SIZE_COLUMNS = ("km_error", "km_low", "km_high", "least_error", "most_error")
"""Columns of tables of groups of an audit of times that may be cut off."""

MOST_SCANNED = 100
"""Most scanned groups with these columns, the significant ones with the smallest p-values."""

Columns = dict[str, float]
Members = Mask | Ints


def censored_scores(scores: Mapping[Measure, Band], everyone: CensoredError) -> dict[Measure, Band]:
    """Return the scores with the coverage and the error of the Kaplan-Meier estimate."""
    found = {key: dict(band) for key, band in scores.items()}
    found |= {Measure("coverage", level): one._asdict() for level, one in everyone.coverage.items()}
    size = Estimate(everyone.error, everyone.low, everyone.high)
    return found | {Measure("Kaplan-Meier error"): size._asdict()}


def with_sizes(
    tested: TestedGroups,
    rows: RowPITs,
    everyone: CensoredError,
    held: HeldOut,
    options: SearchOptions,
    random: np.random.Generator,
) -> TestedGroups:
    """Add the columns of sizes to the tables of named and of scanned groups.

    Mean PITs and coverages become those of the Kaplan-Meier estimates.
    """
    family = tested.family
    n_groups = max(family.n_groups, 1)

    def sized(members: Members, shares: Floats | None = None) -> CensoredError:
        confidence = 1 - family.shares["groups"]
        return _sized(rows, members, confidence, n_groups, random, shares)

    found = {EVERYONE: _columns(everyone) | {"mean_pit": everyone.mean}}
    for name, mask in held.groups.items():
        one = sized(mask)
        found[name] = _columns(one) | {"mean_pit": one.mean}
    for group, members in held.groups.probable():
        one = sized(members > 0, members[members > 0])
        # the members are not known, and the bounds are for the weighted rows
        unproven = dict.fromkeys(("least_error", "most_error"), np.nan)
        found[group.name] = _columns(one) | {"mean_pit": one.mean} | unproven
    groups = _replaced(tested.groups, found)
    of_scan = {name: _columns(sized(mask)) for name, mask in _significant(tested, options)}
    scan = _replaced(tested.scan, of_scan)
    of_own = {
        group.name: _columns(one) | {"mean_pit": one.mean}
        for group in tested.own
        for one in [
            _sized(rows, group.mask, 1 - family.shares["by_forecast"], family.n_by_forecast, random)
        ]
    }
    own = _replaced(tested.by_forecast, of_own) if of_own else tested.by_forecast
    return replace(tested, groups=groups, scan=scan, by_forecast=own)


def with_learned_sizes(
    learned: pd.DataFrame,
    found: Sequence[search.FoundGroup],
    rows: RowPITs,
    options: SearchOptions,
    random: np.random.Generator,
) -> pd.DataFrame:
    """Add the columns of sizes to the table of learned groups.

    Rows of several folds were selected by different models: bounds without an assumption would need
    one for each, and are not known.
    """
    unknown = dict.fromkeys(SIZE_COLUMNS, np.nan)
    sizes = []
    for group in found:
        one = _sized(rows, group.rows, options.confidence, len(found), random)
        size = {"km_error": one.error, "km_low": one.low, "km_high": one.high}
        sizes.append(unknown | size | {"coverage_80": one.coverage[0.8].value})
    columns = pd.DataFrame(sizes, columns=[*SIZE_COLUMNS, "coverage_80"], dtype=np.float64)
    return learned.assign(**{str(name): columns[name].to_numpy() for name in columns})


def _sized(
    rows: RowPITs,
    members: Members,
    confidence: float,
    n_groups: int,
    random: np.random.Generator,
    shares: Floats | None = None,
) -> CensoredError:
    """Return the size of the error of a group, whose members may be known by probability."""
    parts = [None if one is None else one.take(members) for one in (rows.sized, rows.time_base)]
    if shares is not None:
        parts = [None if one is None else one.weighted_by(shares) for one in parts]
    pits, base = parts
    assert pits is not None
    return censored_error(pits, confidence, n_groups=n_groups, base=base, random_state=random)


def _columns(one: CensoredError) -> Columns:
    sizes = (one.error, one.low, one.high, one.least, one.most)
    found = dict(zip(SIZE_COLUMNS, sizes, strict=True))
    for level in LEVELS:
        key = coverage_name(level)
        value, low, high = one.coverage[level]
        found |= {key: value, f"{key}_low": low, f"{key}_high": high}
    return found


def _replaced(table: pd.DataFrame, found: Mapping[str, Columns]) -> pd.DataFrame:
    """Return a table with columns of the groups that were found, NaN for others."""
    keys = [key for one in found.values() for key in one] or [*SIZE_COLUMNS, *_covered_columns()]
    names = table["group"]
    empty: Columns = {}
    return table.assign(
        **{
            key: np.array([found.get(name, empty).get(key, np.nan) for name in names], dtype=float)
            for key in dict.fromkeys(keys)
        }
    )


def _covered_columns() -> Iterable[str]:
    return (f"{coverage_name(level)}{end}" for level in LEVELS for end in ("", "_low", "_high"))


def _significant(tested: TestedGroups, options: SearchOptions) -> Iterable[tuple[str, Any]]:
    level = 1 - options.confidence
    count = min(int((tested.scanned_p < level).sum()), MOST_SCANNED)
    return tested.scanned_rows(count)
