"""Group searches of an audit; a search that has too few rows gives a note, not an error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand import search
from evenhand._validate import Floats, InputError
from evenhand.audits.certifying import certificate_of
from evenhand.audits.options import SearchOptions
from evenhand.audits.outcomes import RowPITs
from evenhand.audits.rows import HeldOut
from evenhand.audits.scores import LEVELS
from evenhand.calibration import PITs
from evenhand.certificates import PITCertificate
from evenhand.report import Note, NoteKind

Notes = tuple[Note, ...]


def certify_rows(
    rows: RowPITs,
    held: HeldOut,
    confidence: float,
    random: np.random.Generator,
) -> tuple[PITCertificate | None, Notes]:
    """Certify the rows, or return None and a note with the reason if there is no guarantee."""
    # groups are chosen before seeing the rows, so they can share the level (method: proof)
    try:
        proof = certificate_of(
            rows, confidence=confidence, groups=held.groups.known(), random_state=random
        )
    except InputError as error:  # people share draws, or the draws do not cover [0, 1]
        return None, (Note(NoteKind.NO_CERTIFICATE, reason=str(error)),)
    return replace(proof, one_row_each=held.one_row_each), ()


def learn_groups(
    pits: PITs,
    residual: Floats | None,
    held: HeldOut,
    options: SearchOptions,
    confidence: float,
    random: np.random.Generator,
) -> tuple[list[search.FoundGroup], Notes]:
    """Learn the worst group of each size from features."""
    features, names = _without_names(held.searched)
    notes = [Note(NoteKind.COLUMN_NOT_LEARNED, (name,)) for name in names]
    found: list[search.FoundGroup] = []
    # one search object for all sizes: its model of the PITs is fitted once
    learner = search.GroupSearch(pits, features, random_state=random)
    masses = options.learned_masses if held.searched is not None else ()
    for mass in masses:
        try:
            group = learner.find(
                mass, confidence=confidence, n_bounds=len(masses), residual=residual
            )
            found.append(group)
        except InputError as error:
            # the remedy in the message addresses direct callers of the search
            why = str(error).partition("; ")[0]
            notes.append(Note(NoteKind.NOT_LEARNED, numbers=(mass,), reason=why))
    return found, tuple(notes)


def conditional_coverage(
    pits: PITs, held: HeldOut, options: SearchOptions, *, is_event: bool
) -> tuple[pd.DataFrame, Notes]:
    """Estimate how far the coverage of intervals, given the features, differs from their level.

    Probabilities of 0/1 outcomes have no intervals.
    """
    features, _ = _without_names(held.searched)
    nothing = pd.DataFrame(columns=list(search.MISCOVERAGE_COLUMNS))
    if features is None or is_event:
        return nothing, ()
    why = "whether an interval covers a time that is cut off may be unknown"
    if pits.censored is None:
        try:
            # the order of the rows has a fixed seed, so it does not depend on the searches before
            return search.conditional_miscoverage(
                pits, features, LEVELS, confidence=options.confidence, random_state=0
            ), ()
        except InputError as error:
            why = str(error).partition("; ")[0]
    return nothing, (Note(NoteKind.NO_MISCOVERAGE, reason=why),)


def _without_names(features: Any) -> tuple[Any, list[str]]:
    """Leave out text columns with a different value in every row: they identify people."""
    if features is None:
        return features, []
    named = [
        name
        for name in features.columns
        if not pd.api.types.is_numeric_dtype(features[name])
        and not pd.api.types.is_datetime64_any_dtype(features[name])
        and features[name].nunique() == len(features)
    ]
    if not named or len(named) == features.shape[1]:
        return features, []
    return features.drop(columns=named), named
