"""Audits of tables in parts: additive counts of PITs, and the audit tables computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand import search
from evenhand._kinds import AS_FORECAST
from evenhand._validate import Floats, Mask, bad_input
from evenhand.audits import tables
from evenhand.audits.group_tests import Family
from evenhand.audits.outcomes import Block, Events, forecast_of, read_forecast
from evenhand.audits.result import Audit
from evenhand.audits.scores import (
    AVERAGE_ERROR,
    CURVE_LEVELS,
    LEVELS,
    Band,
    band_of,
    bands_at,
    curve_table,
    replace_scores,
)
from evenhand.audits.tables import plain_table
from evenhand.calibration import (
    EVENT_NAMES,
    OPEN,
    PIT_BINS,
    Cells,
    GroupSums,
    PITCounts,
    Rounding,
    as_outcomes,
    binned_error,
    count_pits,
    coverage_name,
    draws_in_bins,
    event_values,
    histogram_table,
    holm,
    simultaneous_intervals,
)
from evenhand.calibration import HISTOGRAM_BINS as BARS
from evenhand.certificates import Certificate, EventCounts, certify_counts, count_events
from evenhand.distributions import OutcomeKind
from evenhand.draws import fresh
from evenhand.forecast import Forecast
from evenhand.links import Link
from evenhand.report import Measure, Note, NoteKind, notes_of
from evenhand.tables import EVERYONE, Group, Partition

# --- tables of groups that were counted in all rows

MOMENTS = 4
"""Sums of a group before those of `event_values`: of mean PITs and of powers of residuals."""


def counted_groups(
    everyone: PITCounts,
    groups: Mapping[str, PITCounts],
    sums: Mapping[str, Floats],
    partitions: Sequence[Partition],
    centre: float,
    found: Audit,
) -> tuple[pd.DataFrame, pd.DataFrame, Family]:
    """Return the tables of named and of scanned groups, and their family, from counts of all rows.

    Everyone keeps the tests of the sample, which compare people with similar forecasts.

    Parameters
    ----------
    everyone : PITCounts
        Counts of all rows.
    groups : dict of str to PITCounts
        Counts of the named groups.
    sums : dict of str to ndarray of shape (4,) or (12,)
        By group: sums of mean PITs, of the first three powers of residuals minus `centre`, and of
        `event_values` of 0/1 outcomes.
    partitions : sequence of Partition
        Definitions of the named groups.
    centre : float
        Value subtracted from residuals.
    found : Audit
        Audit of a random sample. Its scanned groups are kept; those that are named groups have
        p-values of all rows.
    """
    family = found.family
    assert family is not None
    known = {group.name: group for partition in partitions for group in partition.groups}
    names = list(groups)
    n_extra = len(set(names) - set(found.groups["group"]))
    named = _group_sums([groups[name] for name in names], [sums[name] for name in names], centre)
    whole = 1 - family.confidence
    share = family.shares["groups"] or whole
    intervals = simultaneous_intervals(named, _n_shared(family, len(names), n_extra), share)
    rows = [_everyone_row(everyone, sums[EVERYONE], centre, found, family.shares["everyone"])]
    estimates = named.estimates
    for i, name in enumerate(names):
        bands = bands_at(estimates, intervals, i)
        rates = {key: float(values[i]) for key, values in named.rates.items()}
        rows.append(_row(known[name], groups[name].n_samples, sums[name], bands) | rates)
    table = tables.group_frame(rows, found.leaks)
    listed = dict(zip(found.groups["group"], found.groups["scanned_as"], strict=True))
    scanned_as = pd.Series([listed.get(name) for name in table["group"]], dtype=object)
    table = table.assign(scanned_as=scanned_as)
    tests = found.groups[["p_value", "p_adjusted"]].iloc[0]
    table, scan = _tested(table, found.scan, named, tests, whole, whole / share)
    scan = tables.with_named(scan, table)
    joint = replace(family, n_groups=family.n_groups + n_extra)
    return table, scan, joint


def _group_sums(counts: Sequence[PITCounts], sums: Sequence[Floats], centre: float) -> GroupSums:
    """Return the sums over groups; level and spread are the smallest that fit the counts."""
    has_events = bool(sums) and sums[0].size > MOMENTS
    levels = () if has_events else LEVELS
    names = ["n", "level", "spread", *(f"covered {level}" for level in levels)]
    names += [*(EVENT_NAMES if has_events else ()), "residual", "squares", "cubes"]
    columns = []
    for one, values in zip(counts, sums, strict=True):
        n = one.n_samples
        middles = (np.arange(PIT_BINS) + 0.5) / PIT_BINS - 0.5
        # a PIT lies within half a bin of the middle of its bin
        most = n / (2 * PIT_BINS)
        level, spread = (
            float(np.sign(total) * max(abs(total) - most, 0.0))
            for total in (one.one_draw @ middles, one.one_draw @ (np.abs(middles) - 0.25))
        )
        shares = np.arange(one.n_draws + 1) / one.n_draws
        covered = [float(one.inside[level] @ shares) for level in levels]
        moments, in_cells = values[1:MOMENTS], values[MOMENTS:]
        columns.append([n, level, spread, *covered, *in_cells, *moments])
    matrix = np.array(columns, dtype=np.float64).reshape(len(columns), len(names)).T
    error = np.array([binned_error(one) for one in counts])
    slack = np.full(len(columns), 1 / (2 * PIT_BINS))
    is_hit = all(one.n_draws == 1 for one in counts)
    return GroupSums(dict(zip(names, matrix, strict=True)), error, slack, centre, is_hit)


def _n_shared(family: Family, n_named: int, n_extra: int) -> int:
    """Return the number of groups of the family if some named groups have no row in the sample.

    Scanned groups were given their share of the error probability in the sample. Named groups
    divide what the named groups of the sample were given.
    """
    n_sampled = max(n_named - n_extra, 1)
    return -(-family.n_groups * n_named // n_sampled)


def _everyone_row(
    counts: PITCounts, sums: Floats, centre: float, found: Audit, share: float
) -> dict[str, Any]:
    """Return the row of everyone; the error of 0/1 outcomes given the forecast is the sample's."""
    of_all = _group_sums([counts], [sums], centre)
    ends = simultaneous_intervals(of_all, 1, share, is_tested=False)
    bands = bands_at(of_all.estimates, ends, 0)
    sampled = found.groups.iloc[0]
    if of_all.has_events:
        bands["error"] = band_of(sampled, "error")
    elif not sampled["off"]:
        bands["error"]["low"] = 0.0
    rates = {key: float(values[0]) for key, values in of_all.rates.items()}
    return _row(Group.given(EVERYONE), counts.n_samples, sums, bands) | rates


def _row(group: Group, n: int, sums: Floats, bands: Mapping[str, Band]) -> dict[str, Any]:
    return tables.group_row(group, n, bands, float(sums[0] / n), n < tables.SMALL_GROUP)


def _tested(
    table: pd.DataFrame,
    scan: pd.DataFrame,
    sums: GroupSums,
    everyone: pd.Series[Any],
    level: float,
    factor: float,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Test named groups with all rows and scanned groups with the sample, under one correction.

    A named group that was scanned is one hypothesis, tested with all rows.
    """
    named = table.iloc[1:]
    is_tested = (~named["possible_leak"] & (named["n"] >= search.FEW_ROWS)).to_numpy(dtype=bool)
    p_named = np.where(is_tested, sums.tests.p_value, np.nan)
    p_scan = scan["p_value"].to_numpy(dtype=np.float64, copy=True)
    rows = {name: i for i, name in enumerate(scan["group"])}
    places = np.array([rows.get(name, -1) for name in named["scanned_as"]], dtype=np.intp)
    is_scanned = (places >= 0) & ~named["possible_leak"].to_numpy(dtype=bool)
    p_scan[places[is_scanned]] = p_named[is_scanned]
    adjusted = np.minimum(factor * holm(np.concatenate((p_scan, p_named[~is_scanned]))), 1.0)
    of_scan = adjusted[: p_scan.size]
    of_named = np.empty(len(named))
    of_named[~is_scanned] = adjusted[p_scan.size :]
    of_named[is_scanned] = of_scan[places[is_scanned]]
    # groups that are too small for a test are not proven to be off
    untested = np.isnan(p_named) & ~named["possible_leak"].to_numpy(dtype=bool)
    low = named["error_low"].to_numpy(dtype=np.float64)
    table = table.assign(
        error_low=np.append(table["error_low"].iloc[:1], np.where(untested, 0.0, low)),
        p_value=np.append(everyone["p_value"], p_named),
        p_adjusted=np.append(everyone["p_adjusted"], of_named),
    )
    if scan.empty:
        return table, scan
    # other groups keep what the sample shows: their directions are those of its tests
    is_named = np.isin(np.arange(p_scan.size), places[is_scanned])
    sampled = scan["p_adjusted"].to_numpy(dtype=np.float64)
    of_scan = np.where(is_named, of_scan, np.fmax(of_scan, sampled))
    of_scan = np.where(np.isnan(p_scan), np.nan, of_scan)
    direction = scan["direction"].to_numpy(dtype=object, copy=True)
    direction[(of_scan >= level) & ~np.isnan(of_scan)] = AS_FORECAST
    for i, found in enumerate(search.directions(sums, of_named, level)):
        if is_scanned[i] and is_tested[i]:
            direction[places[i]] = found
    scan = scan.assign(direction=direction, p_value=p_scan, p_adjusted=of_scan)
    return table, scan.sort_values("p_adjusted", kind="stable", ignore_index=True)


# --- counts

MOST_RESIDUAL = 1e95
"""Largest absolute residual whose cube can be summed without overflow."""

Sums = dict[str, Floats]
"""By group: sums of the rows' mean PITs and of the first three powers of residuals, shape (4,), and
of 0/1 outcomes, shape (5,); with one draw followed by those of `event_values`, shape (11,)."""


@dataclass(frozen=True)
class CountPlan:
    """Definition of what is counted, fixed before the rows are read and shared by all parts.

    Parameters
    ----------
    groups : tuple of Partition
        Partitions of columns into named groups.
    levels : tuple of float
        Probabilities of the intervals whose coverage is counted.
    step : float or None
        Rounding step of the outcomes, over whose cells PITs are spread; None if they are not
        spread, and for forecasts with atoms.
    span : tuple of float
        Bounds of the outcome that are atoms, whose cells are open; infinite if there are none.
    link : Link or None
        Link around a deterministic forecaster that the certificate is for; None if there is none.
    centre : float
        Value subtracted from residuals before they are summed: the variance would otherwise lose
        its digits in a difference of large sums.
    """

    groups: tuple[Partition, ...]
    levels: tuple[float, ...]
    step: float | None
    span: tuple[float, float]
    link: Link | None = None
    centre: float = 0.0


@dataclass(frozen=True, eq=False, repr=False)
class RowCounts:
    """Counts of the PITs of some rows; counts of disjoint rows can be added.

    Parameters
    ----------
    counts : PITCounts
        PITs of all rows and of the named groups.
    bars : ndarray of int, shape (2, 20)
        For each bar of the histogram, sums over rows of the number of draws in it and of the square
        of that number.
    sums : dict of int to Sums
        Sums of each part of the table, by the number of the part. Floating-point sums depend on the
        order of addition: parts are added in the order of their numbers, not of their completion.
    events : EventCounts or None
        Probabilities and events of 0/1 outcomes and of hurdles.
    positive : PITCounts or None
        PITs of the continuous part of a hurdle, of the people whose outcome is not the atom.
    """

    counts: PITCounts
    bars: NDArray[np.int64]
    sums: dict[int, Sums]
    events: EventCounts | None = None
    positive: PITCounts | None = None

    def __add__(self, other: RowCounts) -> RowCounts:
        both = self.sums | other.sums
        # only parts that occur on both sides need an addition, however many parts there are
        for part in self.sums.keys() & other.sums.keys():
            both[part] = _added([self.sums[part], other.sums[part]])
        events = [one for one in (self.events, other.events) if one is not None]
        positive = [one for one in (self.positive, other.positive) if one is not None]
        return RowCounts(
            self.counts + other.counts,
            self.bars + other.bars,
            both,
            reduce(add, events) if events else None,
            reduce(add, positive) if positive else None,
        )

    @property
    def total(self) -> Sums:
        """Sums over all parts."""
        return _added([self.sums[part] for part in sorted(self.sums)])


def _added(sums: Sequence[Sums]) -> Sums:
    return {name: np.sum([one[name] for one in sums], axis=0) for name in sums[0]}


def count_rows(
    model: Any,
    X: Any,
    y: Floats,
    table: pd.DataFrame,
    plan: CountPlan,
    part_number: int,
    random: np.random.Generator,
) -> RowCounts:
    """Forecast some rows and count their PITs.

    Parameters
    ----------
    model : forecaster or Forecast
        As for `audit`.
    X : DataFrame or None
        The rows as the forecaster takes them.
    y : ndarray of shape (n,)
        Outcomes.
    table : DataFrame of n rows
        Contains the columns that define groups.
    plan : CountPlan
        Definition of what is counted.
    part_number : int
        Number of the part of the table that contains these rows.
    random : numpy.random.Generator
        Source of the draws of these rows.
    """
    ties = fresh(y.size, random)
    forecast = forecast_of(model, X, random)
    # atoms are those of all rows: atoms of a block would depend on the block
    rounding = Rounding(plan.step, plan.span)
    outcomes, is_own = as_outcomes(y), not isinstance(model, Forecast)
    block = read_forecast(forecast, outcomes, rounding, ties, random, is_own=is_own)
    residual = y - block.mean
    if not np.abs(residual).max() < MOST_RESIDUAL:
        rule = f"lie within {MOST_RESIDUAL:g} of their forecasts"
        got = f"a residual of {np.abs(residual).max():g}"
        raise bad_input("outcomes", rule, got, "use a larger unit of measurement")
    masks = {
        name: mask
        for partition in plan.groups
        for name, mask in partition.masks(table[partition.column]).items()
    }
    is_hurdle = forecast.outcome_kind is OutcomeKind.HURDLE
    counts = _counted(block, plan, masks, random, has_base=not is_hurdle)
    off = np.flatnonzero(forecast.is_off_atom(y)) if is_hurdle else np.empty(0, np.intp)
    positive = None
    if off.size:
        part, some = forecast.positive_part()[off], outcomes.take(off)
        inner = read_forecast(part, some, rounding, ties[off], random, is_own=is_own)
        inner = inner._replace(cells=inner.cells.at_points())
        positive = _counted(inner, plan, {}, random, has_base=True)
    found = Events.of(forecast, y)
    binary = found if forecast.outcome_kind is OutcomeKind.BINARY else None
    return RowCounts(
        # in a block no outcome may have a cell
        replace(counts, has_cells=counts.has_cells or forecast.has_atoms),
        _bars(block),
        {part_number: _sums(_pits(block, plan), residual - plan.centre, masks, binary)},
        None if found is None else count_events(found.probability, found.happened),
        positive,
    )


def _counted(
    block: Block,
    plan: CountPlan,
    masks: Mapping[str, Mask],
    random: np.random.Generator,
    *,
    has_base: bool,
) -> PITCounts:
    """Count the PITs of a block of rows, and those of the base of its link."""
    return count_pits(
        _pits(block, plan),
        levels=plan.levels,
        groups=masks,
        base=_base_of(block, plan) if has_base else None,
        random_state=random,
    )


def _pits(block: Block, plan: CountPlan) -> Cells:
    """Return the PITs of a block, with the cells of outcomes that have atoms."""
    # cells of rounded outcomes are replaced by their drawn positions, as in a certificate
    has_cells = plan.step is None and plan.span == OPEN
    return block.cells if has_cells else block.cells.at_points()


def _sums(cells: Cells, excess: Floats, masks: Mapping[str, Mask], binary: Events | None) -> Sums:
    """Return sums over everyone and the groups.

    `excess` are residuals minus their centre, `binary` the events if outcomes are 0 or 1.
    """
    # centred at the bias of the sample: the variance is not a difference of two large sums
    columns = [tables.mean_pits(cells), excess, excess**2, excess**3]
    if binary is not None:
        columns += list(event_values((binary.happened, binary.probability)))
    values = np.column_stack(columns)
    sums = {EVERYONE: values.sum(axis=0)}
    return sums | {name: values[mask].sum(axis=0) for name, mask in masks.items()}


def _bars(block: Block) -> NDArray[np.int64]:
    in_bars = draws_in_bins(block.cells.drawn, BARS)
    return np.stack((in_bars.sum(axis=0), (in_bars**2).sum(axis=0)))


def _base_of(block: Block, plan: CountPlan) -> Floats | None:
    """Return the PITs of the forecaster inside the link of the plan, if it has one."""
    if plan.link is None:
        return None
    # one certificate is for one link
    if block.base is None or block.base.link != plan.link:
        got = "another forecaster" if block.base is None else repr(block.base.link)
        raise bad_input("the forecaster", f"be a link {plan.link!r} in all parts", got)
    return block.base.drawn[:, 0]


def with_counts(found: Audit, rows: RowCounts, plan: CountPlan, *, confidence: float) -> Audit:
    """Return the audit of a random sample with its PIT statistics replaced by those of all rows.

    Parameters
    ----------
    found : Audit
        Audit of rows chosen at random: its searches and scores of forecasts are kept.
    rows : RowCounts
        Counts of all rows.
    plan : CountPlan
        The plan that the rows were counted with.
    confidence : float
        Confidence level of the certificate.
    """
    overall = rows.counts
    groups = {name: counts for name, counts in overall.groups.items() if counts.n_samples}
    proof = None
    worst = found.worst_groups
    # whatever prevents a certificate of the sample prevents a certificate of all rows
    if found.certificate is not None:
        # a group without rows has no certificate and uses no part of the error probability
        proof = _proof(
            replace(rows, counts=replace(overall, groups=groups)),
            found.certificate,
            confidence,
            plan.link,
        )
        worst = worst.assign(certified=tables.certified_errors(proof, worst["mass"]))
    groups_table, scan, family = counted_groups(
        overall, groups, rows.total, plan.groups, plan.centre, found
    )
    # the widths are those of the sample
    plain = found.plain_intervals
    widths = dict(zip(plain["level"], plain["width"], strict=True))
    empty = tuple(
        Note(NoteKind.EMPTY_GROUP, (name,)) for name in overall.groups if name not in groups
    )
    return replace(
        found,
        n_samples=overall.n_samples,
        scores=replace_scores(
            found.scores,
            _pit_scores(groups_table.iloc[0], is_event=found.outcome_kind is OutcomeKind.BINARY),
        ),
        groups=groups_table,
        scan=scan,
        family=family,
        worst_groups=worst,
        certificate=proof,
        plain_intervals=plain_table(proof, widths),
        # the tests of the sample are not those of all rows
        off_groups=None,
        histogram=_histogram(rows),
        calibration=_curve(overall),
        # the record is that of the sample
        notes=(*_notes(overall.n_samples, found), *empty, *found.notes),
    )


def _proof(
    rows: RowCounts, sampled: Certificate, confidence: float, link: Link | None
) -> Certificate:
    """Certify all rows from their counts, as a certificate of a sample of the rows."""
    is_hurdle = sampled.kind is OutcomeKind.HURDLE
    return certify_counts(
        rows.counts,
        is_randomized=rows.counts.gap is not None,
        link=link,
        kind=sampled.kind,
        off_atom=rows.positive if is_hurdle else None,
        events=rows.events,
        at=sampled.at or 0.0,
        confidence=confidence,
    )


def _notes(n: int, found: Audit) -> tuple[Note, ...]:
    """Return notes on which parts of the audit use all rows, and which only the sample."""
    few = ["scores other than coverage and average error"]
    few += ["possible leaks"] if len(found.leaks) else []
    sampled = ["scanned groups", "learned groups", "oracle worst groups"]
    sampled += ["coverage by features"] if len(found.miscoverage) else []
    sampled += ["event rates by probability"] if len(found.reliability) else []
    sampled += ["groups off the atom"] if len(found.positive_part) else []
    sampled += ["widths of the confidence intervals of errors"]
    # only some rows of a large sample are scored: another note reports it
    if not notes_of(found.notes, NoteKind.SCORED_ROWS):
        sampled = few + sampled
    return (
        Note(NoteKind.COUNTED_ROWS, numbers=(n, PIT_BINS)),
        Note(NoteKind.SAMPLED_ROWS, tuple(sampled), (found.n_samples,)),
    )


def _pit_scores(everyone: pd.Series[Any], *, is_event: bool) -> dict[Measure, Band]:
    """Return the scores that need only PITs, from the row "everyone" of the table of groups."""
    covered = () if is_event else LEVELS
    columns = {Measure("coverage", level): coverage_name(level) for level in covered}
    listed = (columns | {AVERAGE_ERROR: "error"}).items()
    return {measure: band_of(everyone, column) for measure, column in listed}


def _histogram(rows: RowCounts) -> pd.DataFrame:
    n = rows.counts.n_samples
    m = rows.counts.n_draws
    draws, squares = rows.bars / np.array([[m], [m**2]])
    # sum (b - 1/BARS)^2 = sum b^2 - 2/BARS sum b + n/BARS^2, with b a person's share of draws in it
    variance = (squares - 2 / BARS * draws + n / BARS**2) / n**2
    return histogram_table(draws / n, variance, m)


def _curve(counts: PITCounts) -> pd.DataFrame:
    # levels are edges of bins, so the number of PITs at or below each is exact
    below = np.cumsum(counts.pit) / counts.pit.sum()
    return curve_table(
        below[np.rint(CURVE_LEVELS * PIT_BINS).astype(np.intp) - 1], counts.n_samples
    )
