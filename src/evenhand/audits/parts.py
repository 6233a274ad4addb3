"""Parts of an audit that need only PITs, in their order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from evenhand import search
from evenhand._validate import Floats, Ints
from evenhand.audits import tables
from evenhand.audits.certified import Notes, certify_rows, conditional_coverage, learn_groups
from evenhand.audits.group_tests import TestedGroups, tested_groups
from evenhand.audits.off_groups import off_learned
from evenhand.audits.options import SearchOptions, resolved_tolerance
from evenhand.audits.outcomes import PositivePart, RowPITs
from evenhand.audits.result import Audit
from evenhand.audits.rows import HeldOut
from evenhand.audits.scores import AVERAGE_ERROR, Band, band_of, calibration_table, score_table
from evenhand.audits.survival import (
    CensoringCounts,
    censored_scores,
    own_reliability,
    rate_ends,
    reliability_table,
    survival_reliability,
    survival_table,
    with_learned_sizes,
    with_sizes,
)
from evenhand.audits.tables import membership_table
from evenhand.calibration import (
    LEAST_EFFECTIVE,
    censored_error,
    isotonic_curve,
    pit_histogram,
    probability_scores,
)
from evenhand.columns import EVERYONE
from evenhand.report import Measure, Note, NoteKind, units_of
from evenhand.search import FEW_ROWS
from evenhand.tables import take_rows

MOST_SKEWED = 3.0
"""Sample skewness of residuals up to which intervals of their mean miss about as stated."""


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
    # learned and worst groups and guarantees are those of a sample that needs no weights
    thin = _thinned(held, random)
    plain = rows if thin.rows is None else rows.take(thin.rows)
    # all share one random generator, so the order of these calls affects the numbers
    proof, unproven = None, thin.notes
    if thin.held is not None:
        proof, unproven = certify_rows(plain, thin.held, options.confidence, random)
        unproven = (*thin.notes, *unproven)
    if rows.is_censored:
        # the mean of times that are cut off is not that of times until the event
        residual = None
    n_learned = 0
    if thin.held is not None and thin.held.searched is not None:
        n_learned = search.n_learnable(plain.pits.n_samples, options.learned_masses)
    part = rows.positive
    # who is lost may or may not have the event by the horizon: times have no such part
    has_part = part is not None and rows.times is None and part.rows.size >= FEW_ROWS
    level = (1 - options.confidence) / (2 if has_part else 1)
    tested = tested_groups(
        pits,
        residual,
        rows.binary,
        rows.keys,
        held,
        options,
        random,
        n_learned=n_learned,
        level=level,
    )
    learned: list[search.FoundGroup] = []
    unlearned: Notes = ()
    if thin.held is not None:
        of_plain = residual if residual is None or thin.rows is None else residual[thin.rows]
        confidence = 1 - tested.family.shares["learned"]
        learned, unlearned = learn_groups(
            plain.tested, of_plain, thin.held, options, confidence, random
        )
    is_event = rows.binary is not None
    factor = (1 - options.confidence) / (tested.family.shares["learned"] or 1.0)
    of_learned = tables.learned_table(learned, factor, is_event=is_event)
    if rows.is_censored:
        confidence = 1 - tested.family.shares["everyone"]
        sized = censored_error(rows.sized, confidence, base=rows.time_base, random_state=random)
        scores = censored_scores(scores, sized)
        tested = with_sizes(tested, rows, sized, held, options, random)
        of_learned = with_learned_sizes(of_learned, learned, plain, options, random)
    # the error of everyone is that of the table of groups
    scores |= {AVERAGE_ERROR: band_of(tested.groups.iloc[0], "error")}
    worst = pd.DataFrame(columns=list(tables.WORST_COLUMNS))
    if thin.held is not None and not is_event:
        simulate = rows.simulate if thin.rows is None else None
        worst = tables.worst_group_table(
            plain.tested, options.masses, proof, options.n_simulations, random, simulate
        )
    kept = held.kept if thin.held is None else thin.held.kept
    miscoverage, unmeasured = conditional_coverage(rows.pits, held, options, is_event=is_event)
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
        by_forecast=tested.by_forecast,
        given_forecast=tested.given if rows.keys else None,
        off_groups=(*tested.off, *off_learned(learned, kept)),
        family=tested.family,
        learned=of_learned,
        learned_rows=tables.learned_rows(learned, kept),
        worst_groups=worst,
        plain_intervals=tables.plain_table(proof),
        outcome_kind=rows.kind,
        reliability=_reliability(rows, held, tested, options.confidence),
        probability_scores=_probability_scores(rows, held, options.confidence),
        censoring=None if rows.times is None else CensoringCounts.of(rows.times),
        survival=survival_table(rows, held.groups, options.confidence),
        positive_part=(
            _positive_groups(part, held, options, random, level)
            if part is not None and has_part
            else pd.DataFrame()
        ),
        certificate=proof,
        leaks=held.leaks,
        notes=(
            *held.notes,
            *_own_notes(rows, held),
            *_skewed(rows, residual),
            *unproven,
            *tested.notes,
            *unlearned,
            *unmeasured,
            *searched,
        ),
        histogram=pit_histogram(pits).table(),
        calibration=_calibration(rows, tested.by_forecast),
        target=target,
        tolerance=resolved_tolerance(
            options.tolerance,
            None if not is_event else float(tested.groups["predicted"].iloc[0]),
        ),
        miscoverage=miscoverage,
        membership=membership_table(rows.pits, residual, held.groups, options.confidence),
    )


def _reliability(
    rows: RowPITs, held: HeldOut, tested: TestedGroups, confidence: float
) -> pd.DataFrame:
    if rows.binary is not None:
        return own_reliability(tested)
    if rows.times is not None:
        return survival_reliability(rows, held.groups, confidence)
    return reliability_table(rows.events, rows.pits.weights, held.groups, confidence)


class _Thinned(NamedTuple):
    """Part of the rows that needs no weights: row numbers, None for all, and held-out rows."""

    rows: Ints | None
    held: HeldOut | None
    notes: Notes = ()


def _thinned(held: HeldOut, random: np.random.Generator) -> _Thinned:
    """Keep each row with the probability that makes the kept ones a plain sample (verdict: 4)."""
    if held.weights is None:
        return _Thinned(None, held)
    if held.largest_weight is None:
        return _Thinned(None, None, (Note(NoteKind.NO_THINNING),))
    seed = int(random.integers(2**32))
    n = held.kept.size
    kept = np.flatnonzero(
        np.random.default_rng(seed).random(n) < held.weights / held.largest_weight
    )
    if kept.size < LEAST_EFFECTIVE:
        return _Thinned(None, None, (Note(NoteKind.FEW_AFTER_THINNING, numbers=(n, kept.size)),))
    features = None if held.features is None else take_rows(held.features, kept)
    some = replace(
        held,
        kept=held.kept[kept],
        X=None,
        features=features,
        weights=None,
        groups=held.groups.take(kept),
    )
    return _Thinned(kept, some, (Note(NoteKind.THINNED, numbers=(kept.size, n, seed)),))


def _own_notes(rows: RowPITs, held: HeldOut) -> Notes:
    """Return notes on unknown forecasts, and on outcomes that their probabilities exclude."""
    if not rows.keys:
        return (Note(NoteKind.NO_OWN_FORECAST),)
    if rows.binary is None:
        return ()
    happened, probability = rows.binary
    impossible = np.flatnonzero(np.abs(happened - probability) == 1)
    if not impossible.size:
        return ()
    first = int(impossible[0])
    numbers = (int(held.kept[first]), float(probability[first]), int(impossible.size))
    return (Note(NoteKind.IMPOSSIBLE_OUTCOMES, numbers=numbers),)


def _skewed(rows: RowPITs, residual: Floats | None) -> Notes:
    """Return a note if intervals of mean residuals are too short; those of 0/1 outcomes hold."""
    if residual is None or rows.binary is not None:
        return ()
    with np.errstate(all="ignore"):  # of constant or of huge residuals it is unknown
        scaled = (residual - residual.mean()) / residual.std()
        skewness = float((scaled**3).mean())
    is_large = abs(skewness) > MOST_SKEWED
    return (Note(NoteKind.SKEWED_RESIDUALS, numbers=(skewness,)),) if is_large else ()


def _probability_scores(rows: RowPITs, held: HeldOut, confidence: float) -> pd.DataFrame:
    """Return the usual scores of probabilities, of everyone and of named groups with enough rows.

    Groups have at least 150 rows.
    """
    if rows.binary is None:
        return pd.DataFrame()
    happened, probability = rows.binary
    weights = rows.pits.weights
    masks = {EVERYONE: np.ones(happened.size, dtype=np.bool_)}
    masks |= {name: mask for name, mask in held.groups.items() if mask.sum() >= LEAST_EFFECTIVE}
    found = []
    for name, mask in masks.items():
        some = None if weights is None else weights[mask]
        scores = probability_scores(probability[mask], happened[mask], some, confidence)
        found.append({"group": name} | scores._asdict())
    return pd.DataFrame(found)


def _calibration(rows: RowPITs, by_forecast: pd.DataFrame) -> pd.DataFrame:
    """Return the calibration curve; of 0/1 outcomes the isotonic curve with its band."""
    if rows.binary is None:
        return calibration_table(rows.tested)
    happened, probability = rows.binary
    ends = [np.empty(0)] * 4
    if len(by_forecast):
        ends = [by_forecast[end].to_numpy(dtype=np.float64) for end in ("lowest", "highest")]
        ends += [rate_ends(by_forecast, end) for end in ("low", "high")]
    lowest, highest, low, high = ends
    weights = rows.pits.weights
    return isotonic_curve(probability, happened, lowest, highest, low, high, weights)


def _positive_groups(
    part: PositivePart,
    held: HeldOut,
    options: SearchOptions,
    random: np.random.Generator,
    level: float,
) -> pd.DataFrame:
    """Return the groups of the people whose outcome is not the atom of a hurdle.

    Everyone comes first, then the groups by the forecast, then named groups.
    """
    rows, pits = part.rows, part.pits
    some = replace(
        held,
        kept=held.kept[rows],
        X=None,
        features=None,
        weights=pits.weights,
        groups=held.groups.take(rows),
    )
    found = tested_groups(
        pits, part.residual, None, part.keys, some, options, random, n_learned=0, level=level
    )
    everyone, named = found.groups.iloc[:1], found.groups.iloc[1:]
    own = found.by_forecast.assign(possible_leak=False)
    tables = [table for table in (everyone, own, named) if len(table)]
    return pd.concat(tables, ignore_index=True) if len(tables) > 1 else everyone


def _columns_of(notes: Sequence[Note], kind: NoteKind) -> set[str]:
    return {str(name) for note in notes if note.kind is kind for name in note.subject}


def name_of(values: Any) -> str | None:
    """Return the name of a Series as text, or None if there is none."""
    name = getattr(values, "name", None)
    return None if name is None or not str(name).strip() else str(name)
