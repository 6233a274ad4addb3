"""Audits of tables in parts: additive counts of PITs, and the audit tables computed from them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from evenhand._validate import Floats, bad_input
from evenhand.audits.forecasts import RowCells, RowReader, forecast_of
from evenhand.audits.group_tests import Summed, defined
from evenhand.calibration import (
    CURVE_LEVELS,
    NULL_VARIANCES,
    PIT_BINS,
    GroupRows,
    GroupSums,
    PITCounts,
    bin_sums,
    binned_error,
    count_pits,
    curve_points,
    histogram_table,
    total,
)
from evenhand.calibration import HISTOGRAM_BINS as BARS
from evenhand.certificates import Certificate, EventPart, certify_counts, count_events
from evenhand.distributions import OutcomeKind
from evenhand.draws import fresh
from evenhand.forecast import Forecast
from evenhand.links import Link
from evenhand.outcomes import Rounding, as_outcomes
from evenhand.report import NoteKind, note, notes_of
from evenhand.results import AuditRows, Bin, CurvePoint, Note, rows_from
from evenhand.tables import EVERYONE, Group, Groups, Partition

# --- counts

MOST_RESIDUAL = 1e95
"""Largest absolute residual whose cube can be summed without overflow."""


@dataclass(frozen=True)
class CountPlan:
    """Definition of what is counted, fixed before the rows are read and shared by all parts.

    Parameters
    ----------
    groups : tuple of Partition
        Partitions of columns into named groups.
    levels : tuple of float
        Probabilities of the intervals whose coverage is counted.
    rounding : Rounding
        Rounding cells of the outcomes, over which PITs are spread; unused for forecasts with atoms.
    link : Link or None
        Link around a deterministic forecaster that the certificate is for; None if there is none.
    centre : float
        Value subtracted from residuals before they are summed: the variance would otherwise lose
        its digits in a difference of large sums.
    """

    groups: tuple[Partition, ...]
    levels: tuple[float, ...]
    rounding: Rounding = field(default_factory=Rounding)
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
    sums : dict of str to ndarray
        Sums over everyone and each named group, those of `GroupRows.totals`, and "histogram", those
        of `bin_sums`. Floating-point sums depend on the order of addition: those of parts are to be
        added in the order of the parts, not of their completion.
    events : EventPart or None
        Probabilities and events of 0/1 outcomes and of hurdles.
    positive : PITCounts or None
        PITs of the continuous part of a hurdle, of the people whose outcome is not the atom.
    """

    plan: CountPlan
    counts: PITCounts
    sums: Mapping[str, Floats]
    events: EventPart | None = None
    positive: PITCounts | None = None

    def __add__(self, other: RowCounts) -> RowCounts:
        names = [one.name for one in fields(self) if one.name != "plan"]
        return RowCounts(
            self.plan, *(total(getattr(self, name), getattr(other, name)) for name in names)
        )

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.counts.n_samples

    @property
    def groups(self) -> list[Group]:
        """Named groups that have rows."""
        known = [group for partition in self.plan.groups for group in partition.groups]
        return [group for group in known if self.counts.groups[group.name].n_samples]

    def summed(self) -> tuple[Summed, Summed]:
        """Return the sums over all rows, and over the named groups that have rows."""
        counts, groups = self.counts, self.groups
        listed = (counts, *counts.groups.values())
        some = np.flatnonzero([one.n_samples for one in listed])
        error = np.array([binned_error(listed[i].pit) for i in some])
        # a PIT lies within half a bin of the middle of its bin
        slack = 1 / (2 * PIT_BINS)
        sums = {name: values[some] for name, values in self.sums.items() if name != "histogram"}
        is_hit = counts.n_draws == 1 and not counts.has_cells
        found = GroupSums(sums, error, slack, self.plan.centre, is_hit)
        everyone, named = found.take(np.arange(1)), found.take(np.arange(1, some.size))
        known = [defined(group, counts.groups[group.name].n_samples) for group in groups]
        return Summed([defined(Group.given(EVERYONE), self.n_samples)], everyone), Summed(
            known, named
        )

    def certified(self, sampled: Certificate, confidence: float) -> Certificate:
        """Certify all rows as the sample was certified."""
        counts, is_hurdle = self.counts, sampled.kind is OutcomeKind.HURDLE
        groups = {one.name: counts.groups[one.name] for one in self.groups}
        return certify_counts(
            replace(counts, groups=groups),
            is_randomized=counts.gap is not None,
            link=self.plan.link,
            kind=sampled.kind,
            off_atom=self.positive if is_hurdle else None,
            events=self.events,
            at=sampled.at or 0.0,
            confidence=confidence,
        )

    def over(self, sampled: AuditRows) -> AuditRows:
        """Return the rows of the audit of the sample with what PITs of all rows show."""
        empty = set(self.counts.groups).difference(one.name for one in self.groups)
        notes = [note(NoteKind.EMPTY_GROUP, (name,)) for name in sorted(empty)]
        n = self.n_samples
        shares = self.sums["histogram"] / np.array([[n], [n**2]])
        return msgspec.structs.replace(
            sampled,
            n_samples=n,
            pit=rows_from(Bin, histogram_table(shares, self.counts.n_draws)),
            calibration=sampled.calibration if sampled.is_event else _curve(self.counts),
            notes=(*_notes(n, sampled), *notes, *sampled.notes),
        )


def count_rows(
    model: Any, X: Any, y: Floats, table: pd.DataFrame, plan: CountPlan, random: np.random.Generator
) -> RowCounts:
    """Forecast some rows and count their PITs; `table` contains the columns that define groups."""
    ties = fresh(y.size, random)
    forecast = forecast_of(model, X, random)
    # atoms are those of all rows: atoms of a block would depend on the block
    reader = RowReader(as_outcomes(y), ties, forecast.outcome_kind, plan.rounding)
    is_own = not isinstance(model, Forecast)
    rows = reader.read(slice(0, y.size), forecast, random, is_own=is_own)
    residual, part, found = rows.residual, rows.positive, rows.events
    assert residual is not None
    if not np.abs(residual).max() < MOST_RESIDUAL:
        rule = f"lie within {MOST_RESIDUAL:g} of their forecasts"
        got = f"a residual of {np.abs(residual).max():g}"
        raise bad_input("outcomes", rule, got, "use a larger unit of measurement")
    groups = Groups(pair for one in plan.groups for pair in one.masks(table[one.column]).pairs())
    # cells of rounded outcomes are replaced by their drawn positions, as in a certificate
    cells = rows.cells.at_points() if plan.rounding.is_used else rows.cells
    # tests use the same draw of each person as the certificate
    valued = GroupRows.of(cells, residual, deepcopy(random), rows.binary, plan.centre)
    sums = valued.totals([np.ones(y.size, dtype=np.bool_), *groups.values()])
    # in a block no outcome may have a cell
    sums = {f"{name} variance": sums["n"] * one for name, one in NULL_VARIANCES.items()} | sums
    sums["histogram"] = bin_sums(cells, BARS, np.ones(y.size))
    is_hurdle = rows.kind is OutcomeKind.HURDLE
    base, positive = None if is_hurdle else _base_of(rows, plan), None
    counts = count_pits(cells, levels=plan.levels, groups=groups, base=base, random_state=random)
    if part is not None:
        positive = count_pits(
            part.cells.at_points(),
            levels=plan.levels,
            base=_base_of(part, plan),
            random_state=random,
        )
    return RowCounts(
        plan,
        # in a block no outcome may have a cell
        replace(counts, has_cells=counts.has_cells or forecast.has_atoms),
        sums,
        None if found is None else count_events(found.probability, found.happened),
        positive,
    )


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
    # only some rows of a large sample are scored: another note reports it
    are_scored = not notes_of(found.notes, NoteKind.SCORED_ROWS)
    sampled = {
        "scores other than coverage and average error": are_scored,
        "possible leaks": are_scored and found.possible_leaks,
        "scanned groups": True,
        "learned groups": True,
        "oracle worst groups": True,
        "coverage by features": found.miscoverage,
        "event rates by probability": found.reliability,
        "groups off the atom": found.positive_part,
        "widths of the confidence intervals of errors": True,
    }
    names = [name for name, is_sampled in sampled.items() if is_sampled]
    return (
        note(NoteKind.COUNTED_ROWS, numbers=(n, PIT_BINS)),
        note(NoteKind.SAMPLED_ROWS, names, (found.n_samples,)),
    )


def _curve(counts: PITCounts) -> tuple[CurvePoint, ...]:
    # levels are edges of bins, so the number of PITs at or below each is exact
    below = np.cumsum(counts.pit) / counts.pit.sum()
    at = np.rint(CURVE_LEVELS * PIT_BINS).astype(np.intp) - 1
    return curve_points(below[at], counts.n_samples)
