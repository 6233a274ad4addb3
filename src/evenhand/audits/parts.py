"""Parts of an audit that need only PITs, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand._validate import Floats
from evenhand.audits import tables
from evenhand.audits.censored_groups import censored_scores, with_learned_sizes, with_sizes
from evenhand.audits.group_tests import tested_groups
from evenhand.audits.membership import membership_table
from evenhand.audits.off_groups import off_learned
from evenhand.audits.options import SearchOptions
from evenhand.audits.outcomes import PositivePart, RowPITs
from evenhand.audits.pictures import calibration_table
from evenhand.audits.profiles import profile_table
from evenhand.audits.reliability import reliability_table
from evenhand.audits.result import Audit
from evenhand.audits.rows import HeldOut
from evenhand.audits.scores import Band, pit_scores, score_table
from evenhand.audits.searches import certify_rows, conditional_coverage, learn_groups
from evenhand.audits.survival import CensoringCounts, survival_reliability, survival_table
from evenhand.calibration import CensoredError, censored_error, pit_histogram
from evenhand.report import Measure, Note, NoteKind, units_of
from evenhand.search import FEW_ROWS


def audit_rows(
    rows: RowPITs,
    residual: Floats | None,
    scores: dict[Measure, Band],
    held: HeldOut,
    options: SearchOptions,
    random: np.random.Generator,
    target: str | None,
) -> Audit:
    """Run the parts of an audit that need only PITs."""
    pits = rows.tested
    # all share one random generator, so the order of these calls affects the numbers
    proof, unproven = certify_rows(rows, held, options.confidence, random)
    everyone: CensoredError | None = None
    if rows.is_censored:
        # the mean of times that are cut off is not that of times until the event
        residual = None
        everyone = censored_error(rows.sized, base=rows.time_base, random_state=random)
        scores = censored_scores(scores, everyone)
    tested = tested_groups(pits, residual, held, options, scores, random, rows.binary_outcomes)
    learned, unlearned = learn_groups(pits, residual, held, options, random)
    of_learned = tables.learned_table(learned)
    if everyone is not None:
        tested = with_sizes(tested, rows, everyone, held, options, random)
        of_learned = with_learned_sizes(of_learned, learned, rows, options, random)
    miscoverage, unmeasured = conditional_coverage(rows.pits, held, options)
    is_searched = held.searched is not None and (len(tested.scan) > 0 or len(learned) > 0)
    # the note names them: by default they are all other columns of a table of forecasts
    names = tuple(map(str, held.searched.columns)) if is_searched else ()
    # without the columns that both searches left out, which have notes of their own
    not_scanned = _columns_of(tested.notes, NoteKind.COLUMN_NOT_SCANNED)
    left_out = not_scanned & _columns_of(unlearned, NoteKind.COLUMN_NOT_LEARNED)
    names = tuple(name for name in names if name not in left_out)
    searched = (Note(NoteKind.FEATURES, names),) if is_searched else ()
    return Audit(
        name="",
        n_samples=pits.n_samples,
        n_draws=pits.n_draws,
        is_randomized=pits.is_randomized,
        rounding_step=None,
        scores=score_table(scores, units_of(target)),
        measures=tuple(scores),
        groups=tested.groups,
        scan=tested.scan,
        off_groups=(*tested.off, *off_learned(learned, held.kept)),
        family=tested.family,
        within=options.within,
        learned=of_learned,
        learned_rows=tables.learned_rows(learned, held.kept),
        worst_groups=tables.worst_group_table(
            pits, options.masses, proof, options.n_simulations, random, rows.simulate
        ),
        outcome_kind=rows.kind,
        reliability=_reliability(rows, held, options.confidence),
        censoring=None if rows.times is None else CensoringCounts.of(rows.times),
        survival=survival_table(rows, held.groups, options.confidence),
        positive_part=_positive_groups(rows.positive, held, options, random),
        certificate=proof,
        leaks=held.leaks,
        notes=(*held.notes, *unproven, *tested.notes, *unlearned, *unmeasured, *searched),
        histogram=pit_histogram(pits).table(),
        calibration=calibration_table(pits),
        target=target,
        tolerance=options.tolerance,
        miscoverage=miscoverage,
        profiles=profile_table(
            replace(rows, pits=pits), held.groups, tested, learned, options.confidence
        ),
        membership=membership_table(rows.pits, residual, held.groups, options.confidence),
    )


def _reliability(rows: RowPITs, held: HeldOut, confidence: float) -> pd.DataFrame:
    if rows.times is not None:
        return survival_reliability(rows, held.groups, confidence)
    return reliability_table(rows.events, rows.pits.weights, held.groups, confidence)


def _positive_groups(
    part: PositivePart | None, held: HeldOut, options: SearchOptions, random: np.random.Generator
) -> pd.DataFrame:
    """Return the named groups of the people whose outcome is not the atom of a hurdle."""
    if part is None or part.tested.sum() < FEW_ROWS:
        return pd.DataFrame()
    rows, pits = part.rows[part.tested], part.pits.take(part.tested)
    weights = pits.weights
    some = replace(
        held,
        kept=held.kept[rows],
        X=None,
        features=None,
        weights=weights,
        groups=held.groups.take(rows),
    )
    scores = pit_scores(pits, random)
    # the mean of times that are cut off is not that of times until the event
    residual = None if np.isnan(part.residual).any() else part.residual[part.tested]
    return tested_groups(pits, residual, some, options, scores, random, None).groups


def _columns_of(notes: Sequence[Note], kind: NoteKind) -> set[str]:
    return {str(name) for note in notes if note.kind is kind for name in note.subject}


def name_of(values: Any) -> str | None:
    """Return the name of a Series as text, or None if there is none."""
    name = getattr(values, "name", None)
    return None if name is None or not str(name).strip() else str(name)
