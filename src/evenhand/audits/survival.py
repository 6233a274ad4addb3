"""Reliability of predicted probabilities, and tables of times that may be cut off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd

from evenhand import calibration, search
from evenhand._validate import Floats, Ints, Mask
from evenhand.audits.group_tests import TestedGroups
from evenhand.audits.options import SearchOptions
from evenhand.audits.outcomes import Events, RowCells
from evenhand.audits.rows import HeldOut
from evenhand.audits.scores import LEVELS, Band
from evenhand.calibration import (
    CensoredError,
    Estimate,
    KaplanMeier,
    Outcomes,
    censored_error,
    coverage_name,
    n_effective,
    probability_bins,
    share_interval,
)
from evenhand.report import Measure
from evenhand.tables import EVERYONE, Groups

# --- reliability

RELIABILITY_COLUMNS = ("group", "bin", "n", "probability", "rate", "low", "high")


def reliability_table(
    events: Events | None, weights: Floats | None, groups: Groups, confidence: float
) -> pd.DataFrame:
    """Return the rate of an event among people with similar predicted probabilities.

    Parameters
    ----------
    events : Events or None
        Events and their probabilities; None for outcomes without events.
    weights : ndarray of shape (n,) or None
        Weights of the rows.
    groups : Groups
        Named groups; those known by probability are left out.
    confidence : float
        Confidence that the intervals of all bins of a group contain its rates.

    Returns
    -------
    DataFrame
        One row per group and bin of probabilities, see `Audit.reliability`.
    """
    tables = [pd.DataFrame(columns=list(RELIABILITY_COLUMNS))]
    if events is not None:
        tables = [
            _of_group(name, mask, events, weights, confidence)
            for name, mask in known_masks(events.happened.size, groups)
        ]
    return pd.concat(tables, ignore_index=True)


def own_reliability(tested: TestedGroups) -> pd.DataFrame:
    """Return the rates of 0/1 outcomes by predicted probability, as the family of the audit has it.

    There are as many bins as groups by the forecast; with few rows everyone is one bin.
    """
    table = tested.groups.iloc[:1] if tested.by_forecast.empty else tested.by_forecast
    columns = {
        "group": EVERYONE,
        "bin": np.arange(len(table)),
        "n": table["n"].to_numpy(),
        "probability": table["predicted"].to_numpy(),
        "rate": table["rate"].to_numpy(),
        "low": rate_ends(table, "low"),
        "high": rate_ends(table, "high"),
    }
    return pd.DataFrame(columns)[list(RELIABILITY_COLUMNS)]


def rate_ends(table: pd.DataFrame, end: str) -> Floats:
    """Return an end of the intervals of the event rates of groups."""
    ends = (table["predicted"] + table[f"bias_{end}"]).to_numpy(dtype=np.float64)
    return np.asarray(np.clip(ends, 0.0, 1.0))


def _of_group(
    name: str, mask: Mask, events: Events, weights: Floats | None, confidence: float
) -> pd.DataFrame:
    some = None if weights is None else weights[mask]
    found = calibration.reliability(
        events.probability[mask], events.happened[mask], some, confidence=confidence
    )
    return found.assign(group=name)[list(RELIABILITY_COLUMNS)]


def known_masks(n: int, groups: Groups) -> Iterator[tuple[str, Mask]]:
    """Yield everyone and the named groups of known members that have any."""
    yield EVERYONE, np.ones(n, dtype=np.bool_)
    for group, mask in groups.known().pairs():
        if mask.any():
            yield group.name, mask


# --- the event by a horizon

SURVIVAL_COLUMNS = (
    "group",
    "n",
    "n_events",
    "n_lost",
    "predicted",
    "observed",
    "low",
    "high",
    "least",
    "most",
)


@dataclass(frozen=True)
class CensoringCounts:
    """Number of people by what is known of their times.

    Parameters
    ----------
    n_events : int
        People whose event was observed, before the horizon if there is one.
    n_reached : int
        People who were seen without the event until the horizon; 0 without one.
    n_lost : int
        People whose outcome is not known: they were last seen without the event, before the horizon
        if there is one.
    horizon : float or None
        Time up to which outcomes are followed, in units of the times.
    n_followed : int or None
        People who entered at least a horizon before the end of follow-up; None if the times of
        entry or the horizon are not known.
    """

    n_events: int
    n_reached: int
    n_lost: int
    horizon: float | None
    n_followed: int | None

    @classmethod
    def of(cls, times: Outcomes) -> Self:
        """Count the people."""
        n_followed = None if times.entered is None else int(times.is_followed.sum())
        return cls(
            int(times.happened.sum()),
            int(times.has_reached.sum()),
            int(times.is_lost.sum()),
            times.horizon,
            n_followed,
        )


def survival_table(rows: RowCells, groups: Groups, confidence: float) -> pd.DataFrame:
    """Return the predicted and the observed probability of the event by the horizon.

    Parameters
    ----------
    rows : RowCells
        Rows with their times and `by_horizon`.
    groups : Groups
        Named groups; those known by probability are left out.
    confidence : float
        Confidence of the intervals of all groups jointly.

    Returns
    -------
    DataFrame
        One row per group, see `Audit.survival`; empty without a horizon.
    """
    listed = list(_followed(rows, groups))
    each = 1 - (1 - confidence) / max(len(listed), 1)
    found = [
        {"group": name} | _rates(times, predicted, weights, each)
        for name, times, predicted, weights in listed
    ]
    return pd.DataFrame(found, columns=list(SURVIVAL_COLUMNS))


def _followed(rows: RowCells, groups: Groups) -> Iterator[tuple[str, Outcomes, Floats, Floats]]:
    """Yield times, predicted probabilities and weights of each group; none without a horizon."""
    times, predicted = rows.times, rows.by_horizon
    if times is None or predicted is None or times.horizon is None:
        return
    weights = np.ones(times.n_samples) if rows.cells.weights is None else rows.cells.weights
    for name, mask in known_masks(times.n_samples, groups):
        yield name, times.take(mask), predicted[mask], weights[mask]


def survival_reliability(rows: RowCells, groups: Groups, confidence: float) -> pd.DataFrame:
    """Return Kaplan-Meier estimates of the event among people with similar probabilities of it.

    The columns are those of `Audit.reliability`; intervals are simultaneous for all bins of a
    group.
    """
    tables = [_bins(*some, confidence) for some in _followed(rows, groups)]
    return pd.concat(tables or [pd.DataFrame(columns=list(RELIABILITY_COLUMNS))], ignore_index=True)


def _bins(
    name: str, times: Outcomes, predicted: Floats, weights: Floats, confidence: float
) -> pd.DataFrame:
    place = probability_bins(predicted)
    n_bins = int(place.max()) + 1
    each = 1 - (1 - confidence) / n_bins
    rates = [
        _rates(times.take(some), predicted[some], weights[some], each)
        for some in (place == number for number in range(n_bins))
    ]
    names = {"predicted": "probability", "observed": "rate"}
    table = pd.DataFrame(rates).rename(columns=names).assign(group=name, bin=np.arange(n_bins))
    return table[list(RELIABILITY_COLUMNS)]


LEAST_REACHED = 5
"""Fewest people who reached the horizon, for an upper end by the Kaplan-Meier estimate."""


def _rates(
    times: Outcomes, predicted: Floats, weights: Floats, confidence: float
) -> dict[str, float | int]:
    """Return the numbers of a group; `confidence` is that of each interval."""
    assert times.horizon is not None
    happened, lost = times.happened, times.is_lost
    estimate = KaplanMeier.of(times.value, happened, weights)
    observed = float(estimate.at(times.horizon))
    n = n_effective(weights)
    least, most = (
        float(np.average(mask, weights=weights)) * n for mask in (happened, happened | lost)
    )
    lowest = share_interval(least, n, confidence)[0]
    highest = share_interval(most, n, confidence)[1]
    low, high = estimate.interval(times.horizon, confidence)
    reached = weights[times.has_reached]
    if not reached.any() or n_effective(reached) < LEAST_REACHED:
        # the estimate ends before the horizon: its last value is a lower end only
        high = 1.0
    return {
        "n": times.n_samples,
        "n_events": int(happened.sum()),
        "n_lost": int(lost.sum()),
        "predicted": float(np.average(predicted, weights=weights)),
        "observed": observed,
        # without an event there is no variance, but the bounds need none
        "low": max(low, lowest),
        "high": min(high, highest),
        "least": lowest,
        "most": highest,
    }


# --- sizes of errors where times are cut off (outcomes: 5)

SIZE_COLUMNS = ("km_error", "km_low", "km_high", "least_error", "most_error")
"""Columns of tables of groups of an audit of times that may be cut off."""

COVERED_COLUMNS = tuple(
    f"{coverage_name(level)}{end}" for level in LEVELS for end in ("", "_low", "_high")
)

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
    rows: RowCells,
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
    n_significant = int((tested.scanned_p < 1 - options.confidence).sum())
    significant = tested.scanned_rows(min(n_significant, MOST_SCANNED))
    of_scan = {name: _columns(sized(mask)) for name, mask in significant}
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
    rows: RowCells,
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
    rows: RowCells,
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
    cells, base = parts
    assert cells is not None
    return censored_error(cells, confidence, n_groups=n_groups, base=base, random_state=random)


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
    keys = [key for one in found.values() for key in one] or [*SIZE_COLUMNS, *COVERED_COLUMNS]
    names = table["group"]
    empty: Columns = {}
    return table.assign(
        **{
            key: np.array([found.get(name, empty).get(key, np.nan) for name in names], dtype=float)
            for key in dict.fromkeys(keys)
        }
    )
