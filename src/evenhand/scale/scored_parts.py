"""Scoring of the parts of a table, one block at a time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from evenhand.audits import CountPlan, RowCounts, count_rows
from evenhand.scale.audit_columns import AuditColumns
from evenhand.scale.engine import Advance
from evenhand.scale.people import RowSet
from evenhand.scale.subjects import refusals
from evenhand.scale.survey import SCORES, block_generator
from evenhand.tables import Parts, number_column


@dataclass(frozen=True)
class Scoring:
    """Scoring task, which is sent to all workers.

    Parameters
    ----------
    columns : AuditColumns
        Columns to read.
    plan : CountPlan
        Definition of what is counted.
    kept : RowSet or None
        The audited rows; None for all.
    seed : int
        Seed of the draws of all blocks.
    """

    columns: AuditColumns
    plan: CountPlan
    kept: RowSet | None
    seed: int


def count_part(shared: Scoring, parts: Parts, i: int, advance: Advance) -> RowCounts | None:
    """Score one part; return None if none of its rows are audited."""
    columns = shared.columns
    source = parts.names[i]
    total = None
    for block, (start, whole) in enumerate(parts.blocks(i, columns.columns)):
        table = whole
        if shared.kept is not None:
            table = whole.iloc[shared.kept.within(i, start, len(whole))]
        if len(table):
            y = number_column(table, columns.target, source=source, start=start)
            model, X = columns.subject.of(table, source, start)
            # keyed by part and block, so draws depend on neither worker nor order
            random = block_generator(shared.seed, SCORES, i, block)
            with refusals(source, start, start + len(whole) - 1):
                found = count_rows(model, X, y, table, shared.plan, i, random)
            total = found if total is None else total + found
        advance(len(whole))
    return total


def added(counts: Iterable[tuple[int, RowCounts | None]]) -> tuple[RowCounts, list[int]]:
    """Sum the counts as they arrive; return the sum and the part numbers."""
    # counts take 0.2 MB per group and part: a list for all parts might not fit in memory
    done = []
    total = None
    for i, one in counts:
        done.append(i)
        if one is not None:
            total = one if total is None else total + one
    assert total is not None
    return total, sorted(done)
