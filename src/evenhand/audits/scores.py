"""Tables of an audit beside its groups: scores, curves, rates, worst groups, sizes and bounds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import msgspec
import numpy as np

from evenhand import scoring, search
from evenhand._validate import Floats, InputError, Ints, Mask
from evenhand.audits.forecasts import RowCells
from evenhand.audits.group_tests import TestedGroups, scaled
from evenhand.audits.rows import HeldOut, Search
from evenhand.calibration import (
    COVERED,
    LEAST_EFFECTIVE,
    calibration_curve,
    censored_error,
    coverage_name,
    covered,
    covered_whole,
    holm,
    mean_bounds,
    pit_histogram,
    rates_by_horizon,
    weighted_mean_band,
    weighted_share_band,
)
from evenhand.certificates import MASSES, WIDER_LEVELS, Certificate
from evenhand.distributions import OutcomeKind
from evenhand.outcomes import Outcomes
from evenhand.report import Measure, NoteKind
from evenhand.results import (
    Bin,
    Censoring,
    CurvePoint,
    Family,
    Finding,
    Interval,
    Membership,
    Number,
    PlainInterval,
    ProbabilityScores,
    Reliability,
    Score,
    Survival,
    WorstGroup,
    plain,
    rows_from,
    with_ends,
)
from evenhand.scoring import isotonic_curve, probability_bins, probability_scores
from evenhand.tables import EVERYONE, GroupRule, Groups

replace = msgspec.structs.replace


Learned = list[tuple[Finding, Ints]]
"""Groups found by search, one per size, with the numbers of their rows."""


def scores_of(
    rows: RowCells, everyone: Finding, unit: str, *, are_counted: bool
) -> tuple[Score, ...]:
    """Return the mean scores and the coverage of prediction intervals, with their intervals.

    Intervals of 0/1 outcomes have no coverage. Where the ends of a prediction interval are atoms, a
    part of each counts as covered, so that the coverage of calibrated forecasts is the level; the
    coverage of sets of whole values, which is at least the level, is a further measure. The error
    of all people is that of the table of groups, and so is the coverage of times that may be cut
    off, and that of all rows if these are counted.
    """
    cells, weights = rows.tested, rows.weights_of(rows.scored)
    found = {key: weighted_mean_band(values, weights) for key, values in rows.scores.items()}
    kinds = {} if rows.binary is not None else {"coverage": covered}
    if rows.times is None and rows.kind in (OutcomeKind.COUNT, OutcomeKind.HURDLE):
        kinds["whole coverage"] = covered_whole
    for name, share in kinds.items():
        is_listed = name == "coverage" and (rows.is_censored or are_counted)
        for level in COVERED:
            found[Measure(name, level)] = (
                everyone.interval(coverage_name(level))
                if is_listed
                else weighted_share_band(share(cells, level), cells.weights)
            )
    if rows.is_censored:
        found[Measure("Kaplan-Meier error")] = everyone.size
    found[Measure("error")] = everyone.interval("error")
    columns = dict(zip(Interval._fields, zip(*found.values(), strict=True), strict=True))
    units = [measure.unit(unit) for measure in found]
    return rows_from(Score, {"measure": map(str, found), "unit": units, **columns})


# --- tables beside the groups


def tables_beside(
    rows: RowCells, held: HeldOut, tested: TestedGroups, proof: Certificate | None
) -> dict[str, Any]:
    """Return the tables of an audit that need no random numbers, by their names in `AuditRows`."""
    return {
        "probability_scores": tuple(_probability_scores(rows, held)),
        "reliability": tuple(reliability_rows(rows, held, tested)),
        "pit": rows_from(Bin, pit_histogram(rows.tested)),
        "calibration": _calibration(rows, tested.by_forecast),
        "membership": tuple(membership(rows, held)),
        "censoring": None if rows.times is None else counts_of(rows.times),
        "survival": tuple(survival_rates(rows, held)),
        "plain_intervals": tuple(plain_intervals(proof, rows)),
        "possible_leaks": held.leaks,
    }


def _probability_scores(rows: RowCells, held: HeldOut) -> Iterator[ProbabilityScores]:
    """Yield the usual scores of probabilities, of everyone and of named groups with enough rows.

    Groups have at least 150 rows.
    """
    if rows.binary is None:
        return
    happened, probability = rows.binary
    for name, mask in known_masks(happened.size, held.groups):
        if name == EVERYONE or mask.sum() >= LEAST_EFFECTIVE:
            sides = probability[mask], happened[mask], rows.weights_of(mask)
            scores = probability_scores(*sides, held.options.confidence)
            yield ProbabilityScores.of(msgspec.structs.asdict(scores) | {"group": name})


def _calibration(rows: RowCells, by_forecast: Sequence[Finding]) -> tuple[CurvePoint, ...]:
    """Return the calibration curve; of 0/1 outcomes the isotonic curve with its band."""
    if rows.binary is None:
        return calibration_curve(rows.tested)
    happened, probability = rows.binary
    known = [(one.lowest, one.highest, *rate_ends(one)) for one in by_forecast]
    lowest, highest, low, high = np.array(known, dtype=np.float64).reshape(-1, 4).T
    curve = isotonic_curve(probability, happened, lowest, highest, low, high, rows.cells.weights)
    return rows_from(CurvePoint, curve)


# --- worst groups


def worst_groups(
    rows: RowCells, options: Search, certificate: Certificate | None, random: np.random.Generator
) -> tuple[WorstGroup, ...]:
    """Return the oracle worst group of each size, its null distribution and the certified bound.

    Outcomes with cells are simulated from their forecasts for the null distribution. Where the
    forecasts are not known, it is that of continuous outcomes, whose errors are larger: an oracle
    chooses among more distinct PITs.
    """
    # random starts have a fixed seed, so the group does not depend on the searches before
    cells, simulate = rows.tested, rows.simulate
    curve = search.worst_group_curve(cells, options.masses, random_state=0)
    # an oracle finds groups in calibrated forecasts, too (method: worst groups)
    null = search.null_curve(
        cells,
        options.masses,
        n_simulations=options.n_simulations,
        random_state=random,
        simulate=simulate,
    )
    columns = {
        "mass": curve.masses,
        "n": [rows.size for rows in curve.rows],
        "error": curve.errors,
        "null_mean": null.mean,
        "null_low": null.low,
        "null_high": null.high,
        "certified": [certified_error(certificate, mass) for mass in curve.masses],
    }
    return rows_from(WorstGroup, columns)


def certified_error(certificate: Certificate | None, mass: float) -> float:
    """Return the bound for the error of every group of a share of all people; NaN without one."""
    # bounds of a hurdle are for shares of the people whose outcome is not the atom
    if certificate is None or certificate.kind is OutcomeKind.HURDLE:
        return np.nan
    return float(certificate.group_error(mass))


# --- groups learned from features


def learned_groups(
    rows: RowCells, held: HeldOut, family: Family, random: np.random.Generator
) -> Learned:
    """Learn the worst group of each size from features; return each with its rows.

    Given the forecast, the W1 error of 0/1 outcomes is half the difference of event rate and
    probability (outcomes: Theorem 4.1), which is their error here.
    """
    features, names = held.learnable
    for name in names:
        held.add_note(NoteKind.COLUMN_NOT_LEARNED, (name,))
    found: list[search.FoundGroup] = []
    # one search object for all sizes: its model of the PITs is fitted once
    learner = search.GroupSearch(rows.tested, features, random_state=random)
    masses = held.options.learned_masses if features is not None else ()
    confidence = 1 - family.part("learned")[1]
    for mass in masses:
        try:
            found.append(
                learner.find(
                    mass, confidence=confidence, n_bounds=len(masses), residual=rows.residual
                )
            )
        except InputError as error:
            # the remedy in the message addresses direct callers of the search
            why = str(error).partition("; ")[0]
            held.add_note(NoteKind.NOT_LEARNED, numbers=(mass,), reason=why)
    adjusted = scaled(holm(np.array([one.p_value for one in found])), family, "learned")
    is_event = rows.binary is not None
    scale = 2 if is_event else 1
    return [
        (
            Finding.of(
                vars(one)
                | {
                    "group": one.description or "",
                    "error": scale * one.error,
                    "error_low": scale * one.low,
                    "coverage_80": None if is_event else one.coverage_80,
                    "p_adjusted": p,
                    "rule": GroupRule(one.conditions).to_state() if one.conditions else None,
                }
            ),
            one.rows,
        )
        for one, p in zip(found, adjusted, strict=True)
    ]


# --- intervals without a draw


def plain_intervals(proof: Certificate | None, rows: RowCells) -> Iterator[PlainInterval]:
    """Yield the floors of intervals without a draw, by level and group size.

    `proof` is that of a deterministic forecaster or of a link around one: there are none without a
    certificate and for other forecasters. Widths are divided by that of the served 80% intervals;
    they are unknown if these have no width, or if widths are not scored.
    """
    if proof is None:
        return
    served = float(np.mean(rows.scores.get(Measure("interval width", 0.8), np.nan)))
    widths = dict[float, float]()
    if 0 < served < np.inf:
        widths = dict(zip(WIDER_LEVELS, (rows.plain.mean(axis=0) / served).tolist(), strict=True))
    for mass in MASSES:
        for one in proof.plain_intervals(mass):
            yield replace(one, width=plain(widths.get(one.level)))


# --- bounds for groups whose members are known by probability


def membership(rows: RowCells, held: HeldOut) -> Iterator[Membership]:
    """Yield bounds for the coverage and the bias of each group known by probability.

    The bounds allow for any relation between membership and outcome: see `mean_bounds`. There are
    none where times are cut off, whose coverage is not known.
    """
    cells = rows.cells
    for group, shares in held.groups.probable() if not cells.unknown.any() else ():
        row: dict[str, str | float] = {"group": group.name, "members": float(shares.sum())}
        options = shares, rows.weight, held.options.confidence
        for level in COVERED:
            name, (low, high) = coverage_name(level), mean_bounds(covered(cells, level), *options)
            row |= {f"{name}_least": max(low, 0.0), f"{name}_most": min(high, 1.0)}
        if rows.residual is not None:
            row["bias_least"], row["bias_most"] = mean_bounds(rows.residual, *options)
        yield Membership.of(row)


# --- reliability


def reliability_rows(rows: RowCells, held: HeldOut, tested: TestedGroups) -> Iterator[Reliability]:
    """Yield the rates of an event among people with similar predicted probabilities, by group.

    Groups known by probability are left out. The intervals of a group hold for all of its bins at
    once. Bins of 0/1 outcomes are the groups by the forecast, with the intervals of the family;
    with few rows everyone is one bin. Rates of times that may be cut off are Kaplan-Meier
    estimates.
    """
    confidence = held.options.confidence
    if rows.binary is not None:
        for place, one in enumerate(tested.by_forecast or tested.groups[:1]):
            low, high = rate_ends(one)
            yield Reliability(
                group=EVERYONE,
                bin=place,
                n=one.n,
                probability=one.predicted,
                rate=one.rate,
                low=low,
                high=high,
            )
    elif rows.times is not None:
        for name, times, predicted, weights in _followed(rows, held.groups):
            bins = probability_bins(predicted)
            n_bins = int(bins.max()) + 1
            for place in range(n_bins):
                some, each = bins == place, 1 - (1 - confidence) / n_bins
                found = rates_by_horizon(times.take(some), predicted[some], weights[some], each)
                rates = {"probability": found["predicted"], "rate": found["observed"]}
                yield Reliability.of(found | rates | {"group": name, "bin": place})
    elif rows.events is not None:
        happened, probability = rows.events
        for name, mask in known_masks(happened.size, held.groups):
            sides = probability[mask], happened[mask], rows.weights_of(mask)
            table = scoring.reliability(*sides, confidence=confidence)
            yield from rows_from(Reliability, table.assign(group=name))


def rate_ends(one: Finding) -> tuple[float | None, float | None]:
    """Return the interval of the event rate of a group, from that of its bias."""
    low, high = (
        None if bias is None or one.predicted is None else min(max(one.predicted + bias, 0.0), 1.0)
        for bias in (one.bias_low, one.bias_high)
    )
    return low, high


def known_masks(n: int, groups: Groups) -> Iterator[tuple[str, Mask]]:
    """Yield everyone and the named groups of known members."""
    yield EVERYONE, np.ones(n, dtype=np.bool_)
    yield from groups.items()


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


def survival_rates(rows: RowCells, held: HeldOut) -> Iterator[Survival]:
    """Yield the predicted and the observed probability of the event by the horizon, by group.

    Groups known by probability are left out; intervals hold for all groups jointly.
    """
    listed = list(_followed(rows, held.groups))
    for name, times, predicted, weights in listed:
        each = 1 - (1 - held.options.confidence) / len(listed)
        yield Survival.of({"group": name} | rates_by_horizon(times, predicted, weights, each))


def _followed(rows: RowCells, groups: Groups) -> Iterator[tuple[str, Outcomes, Floats, Floats]]:
    """Yield times, predicted probabilities and weights of each group; none without a horizon."""
    times, predicted = rows.times, rows.by_horizon
    if times is None or predicted is None or times.horizon is None:
        return
    for name, mask in known_masks(times.n_samples, groups):
        yield name, times.take(mask), predicted[mask], rows.weight[mask]


# --- sizes of errors where times are cut off (outcomes: 5)

MOST_SCANNED = 100
"""Most scanned groups with these columns, the significant ones with the smallest p-values."""

Columns = dict[str, float | None]
Members = Mask | Ints | Floats


def with_sizes(
    tested: TestedGroups, rows: RowCells, held: HeldOut, random: np.random.Generator
) -> TestedGroups:
    """Add the columns of sizes to the tables of everyone, of named and of scanned groups.

    Mean PITs and coverages become those of the Kaplan-Meier estimates.
    """
    family = tested.family

    def sized(
        groups: Sequence[Finding], members: Iterable[tuple[str, Members]], part: str
    ) -> list[Finding]:
        n_groups, share = family.part(part)
        options = 1 - share, max(n_groups, 1), random
        found = {name: _sizes(rows, some, *options) for name, some in members}
        # coverages of other groups are not known
        names = (with_ends(coverage_name(level)) for level in COVERED)
        unknown: Columns = dict.fromkeys(chain.from_iterable(names))
        return [replace(one, censored=True, **found.get(one.group, unknown)) for one in groups]

    everyone = sized(tested.groups[:1], [(EVERYONE, np.ones(held.kept.size, bool))], "everyone")
    named = ((group.name, some) for group, some in held.groups.every())
    groups = [*everyone, *sized(tested.groups[1:], named, "groups")]
    significant = tested.scanned.least(MOST_SCANNED, family.level)
    scan = sized(tested.scan, ((name, mask) for name, _, mask in significant), "groups")
    own = ((one.group, mask) for one, mask in tested.own)
    # of groups known by probability bounds are for the weighted rows, not for the members
    bounds = {"least_error": None, "most_error": None}
    return dataclasses.replace(
        tested,
        groups=[replace(one, **bounds) if one.probable else one for one in groups],
        # scanned groups have no mean PIT
        scan=[replace(one, mean_pit=None) for one in scan],
        by_forecast=sized(tested.by_forecast, own, "by_forecast"),
    )


def with_learned_sizes(
    learned: Learned, rows: RowCells, confidence: float, random: np.random.Generator
) -> Learned:
    """Add sizes of errors to groups found by search.

    Rows of several folds were selected by different models: bounds without an assumption would need
    one for each, and are not known.
    """
    sized = []
    for one, some in learned:
        columns = _sizes(rows, some, confidence, len(learned), random)
        known = {name: columns[name] for name in (*with_ends("km_error"), "coverage_80")}
        sized.append((replace(one, censored=True, **known), some))
    return sized


def _sizes(
    rows: RowCells, members: Members, confidence: float, n_groups: int, random: np.random.Generator
) -> Columns:
    """Return the columns of the size of the error of a group."""
    cells, base = rows.sized.of_members(members), rows.time_base
    base = None if base is None else base.of_members(members)
    one = censored_error(cells, confidence, n_groups=n_groups, base=base, random_state=random)
    intervals: dict[str, Iterable[Number]] = {"km_error": (one.error, one.low, one.high)}
    intervals |= {coverage_name(level): one.coverage[level] for level in COVERED}
    found: Columns = {"least_error": one.least, "most_error": one.most, "mean_pit": one.mean}
    for name, ends in intervals.items():
        found |= zip(with_ends(name), ends, strict=True)
    known: Columns = plain(found)
    return known
