"""Audits of tables in parts: additive counts of PITs, and the audit tables computed from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import Floats, Mask, bad_input
from evenhand.audits.forecasts import RowCells, RowReader, forecast_of
from evenhand.audits.group_tests import Summed, mean_pits
from evenhand.audits.scores import CURVE_LEVELS, curve
from evenhand.calibration import (
    COVERED,
    EVENT_NAMES,
    PIT_BINS,
    Cells,
    Events,
    GroupSums,
    PITCounts,
    binned_error,
    count_pits,
    draws_in_bins,
    event_values,
    histogram_table,
)
from evenhand.calibration import HISTOGRAM_BINS as BARS
from evenhand.certificates import Certificate, EventPart, certify_counts, count_events
from evenhand.distributions import OutcomeKind
from evenhand.draws import fresh
from evenhand.forecast import Forecast
from evenhand.links import Link
from evenhand.outcomes import OPEN, Rounding, as_outcomes
from evenhand.report import NoteKind, note, notes_of
from evenhand.results import AuditRows, Bin, CurvePoint, Note, rows_from
from evenhand.tables import EVERYONE, Group, Partition

# --- sums over groups from counts

MOMENTS = 4
"""Sums of a group before those of `event_values`: of mean PITs and of powers of residuals."""


def _group_sums(counts: Sequence[PITCounts], sums: Sequence[Floats], centre: float) -> GroupSums:
    """Return the sums over groups; level and spread are the smallest that fit the counts."""
    has_events = bool(sums) and sums[0].size > MOMENTS
    levels = () if has_events else COVERED
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
    error = np.array([binned_error(one.pit) for one in counts])
    slack = np.full(len(columns), 1 / (2 * PIT_BINS))
    is_hit = all(one.n_draws == 1 for one in counts)
    return GroupSums(dict(zip(names, matrix, strict=True)), error, slack, centre, is_hit)


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

    Of all rows of a table, a random sample is audited in memory: it has the searches and the scores
    of forecasts. A named group without a row in the table has no certificate and uses no part of
    the error probability.

    Parameters
    ----------
    plan : CountPlan
        The plan that the rows were counted with.
    counts : PITCounts
        PITs of all rows and of the named groups.
    bars : ndarray of int, shape (2, 20)
        For each bar of the histogram, sums over rows of the number of draws in it and of the square
        of that number.
    sums : dict of int to Sums
        Sums of each part of the table, by the number of the part. Floating-point sums depend on the
        order of addition: parts are added in the order of their numbers, not of their completion.
    events : EventPart or None
        Probabilities and events of 0/1 outcomes and of hurdles.
    positive : PITCounts or None
        PITs of the continuous part of a hurdle, of the people whose outcome is not the atom.
    """

    plan: CountPlan
    counts: PITCounts
    bars: NDArray[np.int64]
    sums: dict[int, Sums]
    events: EventPart | None = None
    positive: PITCounts | None = None

    def __add__(self, other: RowCounts) -> RowCounts:
        both = self.sums | other.sums
        # only parts that occur on both sides need an addition, however many parts there are
        for part in self.sums.keys() & other.sums.keys():
            both[part] = _added([self.sums[part], other.sums[part]])
        return RowCounts(
            self.plan,
            self.counts + other.counts,
            self.bars + other.bars,
            both,
            _both(self.events, other.events),
            _both(self.positive, other.positive),
        )

    @property
    def total(self) -> Sums:
        """Sums over all parts."""
        return _added([self.sums[part] for part in sorted(self.sums)])

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.counts.n_samples

    @cached_property
    def everyone(self) -> Summed:
        """Sums over all rows."""
        return self._summed([Group.given(EVERYONE)], [self.counts])

    @cached_property
    def named(self) -> Summed:
        """Sums over the named groups that have rows."""
        known = [group for partition in self.plan.groups for group in partition.groups]
        counts = self.counts.groups
        some = [group for group in known if counts[group.name].n_samples]
        return self._summed(some, [counts[group.name] for group in some])

    def _summed(self, groups: Sequence[Group], counts: Sequence[PITCounts]) -> Summed:
        total = self.total
        sums = [total[group.name] for group in groups]
        n = [one.n_samples for one in counts]
        mean_pit = [float(one[0]) / k for one, k in zip(sums, n, strict=True)]
        return Summed(groups, _group_sums(counts, sums, self.plan.centre), n, mean_pit)

    def certified(self, sampled: Certificate, confidence: float) -> Certificate:
        """Certify all rows as the sample was certified."""
        names = set(self.named.names)
        overall = self.counts
        groups = {name: one for name, one in overall.groups.items() if name in names}
        is_hurdle = sampled.kind is OutcomeKind.HURDLE
        return certify_counts(
            replace(overall, groups=groups),
            is_randomized=overall.gap is not None,
            link=self.plan.link,
            kind=sampled.kind,
            off_atom=self.positive if is_hurdle else None,
            events=self.events,
            at=sampled.at or 0.0,
            confidence=confidence,
        )

    def over(self, sampled: AuditRows) -> AuditRows:
        """Return the rows of the audit of the sample with what PITs of all rows show."""
        empty = set(self.counts.groups) - set(self.named.names)
        notes = [note(NoteKind.EMPTY_GROUP, (name,)) for name in sorted(empty)]
        return msgspec.structs.replace(
            sampled,
            n_samples=self.n_samples,
            pit=_histogram(self),
            calibration=_curve(self.counts),
            notes=(*_notes(self.n_samples, sampled), *notes, *sampled.notes),
        )


def _both(one: Any, other: Any) -> Any:
    return one + other if one is not None and other is not None else one or other


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
    reader = RowReader(as_outcomes(y), ties, forecast.outcome_kind, rounding)
    is_own = not isinstance(model, Forecast)
    rows = reader.read(slice(0, y.size), forecast, random, is_own=is_own)
    residual, part, found = rows.residual, rows.positive, rows.events
    assert residual is not None
    if not np.abs(residual).max() < MOST_RESIDUAL:
        rule = f"lie within {MOST_RESIDUAL:g} of their forecasts"
        got = f"a residual of {np.abs(residual).max():g}"
        raise bad_input("outcomes", rule, got, "use a larger unit of measurement")
    masks = {
        name: mask
        for partition in plan.groups
        for name, mask in partition.masks(table[partition.column]).items()
    }
    counts = _counted(rows, plan, masks, random, has_base=rows.kind is not OutcomeKind.HURDLE)
    positive = None
    if part is not None:
        part = replace(part, cells=part.cells.at_points())
        positive = _counted(part, plan, {}, random, has_base=True)
    return RowCounts(
        plan,
        # in a block no outcome may have a cell
        replace(counts, has_cells=counts.has_cells or forecast.has_atoms),
        _bars(rows),
        {part_number: _sums(_pits(rows, plan), residual - plan.centre, masks, rows.binary)},
        None if found is None else count_events(found.probability, found.happened),
        positive,
    )


def _counted(
    rows: RowCells,
    plan: CountPlan,
    masks: Mapping[str, Mask],
    random: np.random.Generator,
    *,
    has_base: bool,
) -> PITCounts:
    """Count the PITs of a block of rows, and those of the base of its link."""
    return count_pits(
        _pits(rows, plan),
        levels=plan.levels,
        groups=masks,
        base=_base_of(rows, plan) if has_base else None,
        random_state=random,
    )


def _pits(rows: RowCells, plan: CountPlan) -> Cells:
    """Return the PITs of a block, with the cells of outcomes that have atoms."""
    # cells of rounded outcomes are replaced by their drawn positions, as in a certificate
    has_cells = plan.step is None and plan.span == OPEN
    return rows.cells if has_cells else rows.cells.at_points()


def _sums(cells: Cells, excess: Floats, masks: Mapping[str, Mask], binary: Events | None) -> Sums:
    """Return sums over everyone and the groups.

    `excess` are residuals minus their centre, `binary` the events if outcomes are 0 or 1.
    """
    # centred at the bias of the sample: the variance is not a difference of two large sums
    columns = [mean_pits(cells), excess, excess**2, excess**3]
    if binary is not None:
        columns += list(event_values(binary))
    values = np.column_stack(columns)
    sums = {EVERYONE: values.sum(axis=0)}
    return sums | {name: values[mask].sum(axis=0) for name, mask in masks.items()}


def _bars(rows: RowCells) -> NDArray[np.int64]:
    in_bars = draws_in_bins(rows.cells.drawn, BARS)
    return np.stack((in_bars.sum(axis=0), (in_bars**2).sum(axis=0)))


def _base_of(rows: RowCells, plan: CountPlan) -> Floats | None:
    """Return the PITs of the forecaster inside the link of the plan, if it has one."""
    if plan.link is None:
        return None
    # one certificate is for one link
    if rows.base is None or rows.base.link != plan.link:
        got = "another forecaster" if rows.base is None else repr(rows.base.link)
        raise bad_input("the forecaster", f"be a link {plan.link!r} in all parts", got)
    return rows.base.drawn[:, 0]


def _notes(n: int, found: AuditRows) -> tuple[Note, ...]:
    """Return notes on which parts of the audit use all rows, and which only the sample."""
    few = ["scores other than coverage and average error"]
    few += ["possible leaks"] if len(found.possible_leaks) else []
    sampled = ["scanned groups", "learned groups", "oracle worst groups"]
    sampled += ["coverage by features"] if len(found.miscoverage) else []
    sampled += ["event rates by probability"] if len(found.reliability) else []
    sampled += ["groups off the atom"] if len(found.positive_part) else []
    sampled += ["widths of the confidence intervals of errors"]
    # only some rows of a large sample are scored: another note reports it
    if not notes_of(found.notes, NoteKind.SCORED_ROWS):
        sampled = few + sampled
    return (
        note(NoteKind.COUNTED_ROWS, numbers=(n, PIT_BINS)),
        note(NoteKind.SAMPLED_ROWS, tuple(sampled), (found.n_samples,)),
    )


def _histogram(rows: RowCounts) -> tuple[Bin, ...]:
    n = rows.counts.n_samples
    m = rows.counts.n_draws
    draws, squares = rows.bars / np.array([[m], [m**2]])
    # sum (b - 1/BARS)^2 = sum b^2 - 2/BARS sum b + n/BARS^2, with b a person's share of draws in it
    variance = (squares - 2 / BARS * draws + n / BARS**2) / n**2
    return rows_from(Bin, histogram_table(draws / n, variance, m))


def _curve(counts: PITCounts) -> tuple[CurvePoint, ...]:
    # levels are edges of bins, so the number of PITs at or below each is exact
    below = np.cumsum(counts.pit) / counts.pit.sum()
    at = np.rint(CURVE_LEVELS * PIT_BINS).astype(np.intp) - 1
    return curve(below[at], counts.n_samples)
