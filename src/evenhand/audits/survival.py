"""Counts of times that are cut off, and calibration of the probability of an event by a horizon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from evenhand._validate import Floats
from evenhand.audits.outcomes import RowPITs
from evenhand.audits.reliability import RELIABILITY_COLUMNS, known_masks
from evenhand.calibration import n_effective, probability_bins, share_interval
from evenhand.censoring import CensoredTimes, KaplanMeier
from evenhand.columns import Groups

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
    def of(cls, times: CensoredTimes) -> Self:
        """Count the people."""
        n_followed = None if times.entered is None else int(times.is_followed.sum())
        return cls(
            int(times.happened.sum()),
            int(times.has_reached.sum()),
            int(times.is_lost.sum()),
            times.horizon,
            n_followed,
        )


def survival_table(rows: RowPITs, groups: Groups, confidence: float) -> pd.DataFrame:
    """Return the predicted and the observed probability of the event by the horizon.

    Parameters
    ----------
    rows : RowPITs
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
    times, predicted = rows.times, rows.by_horizon
    if times is None or predicted is None or times.horizon is None:
        return pd.DataFrame(columns=list(SURVIVAL_COLUMNS))
    listed = list(known_masks(times.n_samples, groups))
    tail = (1 - confidence) / len(listed)
    weights = np.ones(times.n_samples) if rows.pits.weights is None else rows.pits.weights
    found = [
        {"group": name} | _rates(times.take(mask), predicted[mask], weights[mask], 1 - tail)
        for name, mask in listed
    ]
    return pd.DataFrame(found, columns=list(SURVIVAL_COLUMNS))


def survival_reliability(rows: RowPITs, groups: Groups, confidence: float) -> pd.DataFrame:
    """Return Kaplan-Meier estimates of the event among people with similar probabilities of it.

    The columns are those of `Audit.reliability`; intervals are simultaneous for all bins of a
    group.
    """
    times, predicted = rows.times, rows.by_horizon
    tables = [pd.DataFrame(columns=list(RELIABILITY_COLUMNS))]
    if times is not None and predicted is not None and times.horizon is not None:
        weights = np.ones(times.n_samples) if rows.pits.weights is None else rows.pits.weights
        tables = [
            _bins(name, times.take(mask), predicted[mask], weights[mask], confidence)
            for name, mask in known_masks(times.n_samples, groups)
        ]
    return pd.concat(tables, ignore_index=True)


def _bins(
    name: str, times: CensoredTimes, predicted: Floats, weights: Floats, confidence: float
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
    times: CensoredTimes, predicted: Floats, weights: Floats, confidence: float
) -> dict[str, float | int]:
    """Return the numbers of a group; `confidence` is that of each interval."""
    assert times.horizon is not None
    happened, lost = times.happened, times.is_lost
    estimate = KaplanMeier.of(times.time, happened, weights)
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
