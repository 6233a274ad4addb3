"""Reliability of predicted probabilities, and tables of times that may be cut off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from evenhand import scoring, search
from evenhand._validate import Floats, Ints, Mask
from evenhand.audits.forecasts import Events, RowCells
from evenhand.audits.group_tests import TestedGroups
from evenhand.audits.options import Search
from evenhand.audits.rows import HeldOut
from evenhand.calibration import (
    COVERED,
    CensoredError,
    KaplanMeier,
    censored_error,
    coverage_name,
    n_effective,
    share_interval,
)
from evenhand.outcomes import Outcomes
from evenhand.report import Measure
from evenhand.results import Censoring, Finding, Interval, Reliability, Survival, plain, rows_from
from evenhand.scoring import probability_bins
from evenhand.tables import EVERYONE, Groups

changed = msgspec.structs.replace

# --- reliability


def reliability_bins(
    events: Events | None, weights: Floats | None, groups: Groups, confidence: float
) -> tuple[Reliability, ...]:
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
    """
    if events is None:
        return ()
    found: list[Reliability] = []
    for name, mask in known_masks(events.happened.size, groups):
        some = None if weights is None else weights[mask]
        table = scoring.reliability(
            events.probability[mask], events.happened[mask], some, confidence=confidence
        )
        found += rows_from(Reliability, table.assign(group=name))
    return tuple(found)


def own_reliability(tested: TestedGroups) -> tuple[Reliability, ...]:
    """Return the rates of 0/1 outcomes by predicted probability, as the family of the audit has it.

    There are as many bins as groups by the forecast; with few rows everyone is one bin.
    """
    return tuple(
        Reliability(
            group=EVERYONE,
            bin=place,
            n=one.n,
            probability=one.predicted,
            rate=one.rate,
            low=rate_end(one, one.bias_low),
            high=rate_end(one, one.bias_high),
        )
        for place, one in enumerate(tested.by_forecast or tested.groups[:1])
    )


def rate_end(one: Finding, bias: float | None) -> float | None:
    """Return an end of the interval of the event rate of a group, from that of its bias."""
    if bias is None or one.predicted is None:
        return None
    return min(max(one.predicted + bias, 0.0), 1.0)


def known_masks(n: int, groups: Groups) -> Iterator[tuple[str, Mask]]:
    """Yield everyone and the named groups of known members that have any."""
    yield EVERYONE, np.ones(n, dtype=np.bool_)
    for group, mask in groups.known().pairs():
        if mask.any():
            yield group.name, mask


# --- the event by a horizon


def counts_of(times: Outcomes) -> Censoring:
    """Count people by what is known of their times."""
    return Censoring(
        n_events=int(times.happened.sum()),
        n_reached=int(times.has_reached.sum()),
        n_lost=int(times.is_lost.sum()),
        horizon=times.horizon,
        n_followed=None if times.entered is None else int(times.is_followed.sum()),
    )


def survival_rates(rows: RowCells, groups: Groups, confidence: float) -> tuple[Survival, ...]:
    """Return the predicted and the observed probability of the event by the horizon.

    Parameters
    ----------
    rows : RowCells
        Rows with their times and `by_horizon`.
    groups : Groups
        Named groups; those known by probability are left out.
    confidence : float
        Confidence of the intervals of all groups jointly.
    """
    listed = list(_followed(rows, groups))
    each = 1 - (1 - confidence) / max(len(listed), 1)
    return tuple(
        Survival.of({"group": name} | _rates(times, predicted, weights, each))
        for name, times, predicted, weights in listed
    )


def _followed(rows: RowCells, groups: Groups) -> Iterator[tuple[str, Outcomes, Floats, Floats]]:
    """Yield times, predicted probabilities and weights of each group; none without a horizon."""
    times, predicted = rows.times, rows.by_horizon
    if times is None or predicted is None or times.horizon is None:
        return
    weights = np.ones(times.n_samples) if rows.cells.weights is None else rows.cells.weights
    for name, mask in known_masks(times.n_samples, groups):
        yield name, times.take(mask), predicted[mask], weights[mask]


def survival_reliability(
    rows: RowCells, groups: Groups, confidence: float
) -> tuple[Reliability, ...]:
    """Return Kaplan-Meier estimates of the event among people with similar probabilities of it.

    Intervals are simultaneous for all bins of a group.
    """
    found = []
    for name, times, predicted, weights in _followed(rows, groups):
        place = probability_bins(predicted)
        n_bins = int(place.max()) + 1
        each = 1 - (1 - confidence) / n_bins
        for number in range(n_bins):
            some = place == number
            one = _rates(times.take(some), predicted[some], weights[some], each)
            rates = {"probability": one["predicted"], "rate": one["observed"]}
            found.append(Reliability.of(one | rates | {"group": name, "bin": number}))
    return tuple(found)


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

MOST_SCANNED = 100
"""Most scanned groups with these columns, the significant ones with the smallest p-values."""

Columns = dict[str, float | None]
Members = Mask | Ints


def censored_scores(everyone: CensoredError) -> dict[Measure, Interval]:
    """Return the coverage and the error of the Kaplan-Meier estimate."""
    found = {Measure("coverage", level): Interval(*one) for level, one in everyone.coverage.items()}
    size = Interval(everyone.error, everyone.low, everyone.high)
    return found | {Measure("Kaplan-Meier error"): size}


def with_sizes(
    tested: TestedGroups,
    rows: RowCells,
    everyone: CensoredError,
    held: HeldOut,
    options: Search,
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

    found = {EVERYONE: _columns(everyone)}
    found |= {name: _columns(sized(mask)) for name, mask in held.groups.items()}
    for group, members in held.groups.probable():
        one = sized(members > 0, members[members > 0])
        # the members are not known, and the bounds are for the weighted rows
        found[group.name] = _columns(one) | {"least_error": None, "most_error": None}
    n_significant = int((tested.scanned_p < 1 - options.confidence).sum())
    significant = tested.scanned_rows(min(n_significant, MOST_SCANNED))
    of_scan = {name: _columns(sized(mask), has_mean=False) for name, mask in significant}
    of_own = {
        group.name: _columns(
            _sized(rows, group.mask, 1 - family.shares["by_forecast"], family.n_by_forecast, random)
        )
        for group in tested.own
    }
    return replace(
        tested,
        groups=_changed(tested.groups, found),
        scan=_changed(tested.scan, of_scan),
        by_forecast=_changed(tested.by_forecast, of_own),
    )


def with_learned_sizes(
    learned: Sequence[Finding],
    found: Sequence[search.FoundGroup],
    rows: RowCells,
    options: Search,
    random: np.random.Generator,
) -> list[Finding]:
    """Add sizes of errors to groups found by search.

    Rows of several folds were selected by different models: bounds without an assumption would need
    one for each, and are not known.
    """
    sized = []
    for row, group in zip(learned, found, strict=True):
        one = _sized(rows, group.rows, options.confidence, len(found), random)
        size = {"km_error": one.error, "km_error_low": one.low, "km_error_high": one.high}
        covered = one.coverage[0.8].value
        sized.append(changed(row, censored=True, **plain(size | {"coverage_80": covered})))
    return sized


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


def _columns(one: CensoredError, *, has_mean: bool = True) -> Columns:
    found = {
        "km_error": one.error,
        "km_error_low": one.low,
        "km_error_high": one.high,
        "least_error": one.least,
        "most_error": one.most,
    }
    for level in COVERED:
        key = coverage_name(level)
        value, low, high = one.coverage[level]
        found |= {key: value, f"{key}_low": low, f"{key}_high": high}
    columns: Columns = plain(found | ({"mean_pit": one.mean} if has_mean else {}))
    return columns


def _changed(groups: Sequence[Finding], found: Mapping[str, Columns]) -> list[Finding]:
    """Return groups with sizes where these were found; coverages of others are not known."""
    unknown: Columns = {
        f"{coverage_name(level)}{end}": None for level in COVERED for end in ("", "_low", "_high")
    }
    return [changed(one, censored=True, **found.get(one.group, unknown)) for one in groups]
