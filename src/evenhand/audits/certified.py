"""Certificates and group searches of audited rows, and the entry point `certify`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand import search
from evenhand._format import number_in_full
from evenhand._validate import InputError, Ints
from evenhand.audits.forecasts import RowCells, read_subject
from evenhand.audits.rows import HeldOut, check_model, check_rows, copies_among
from evenhand.calibration import COVERED
from evenhand.certificates import (
    WEIGHTED,
    Certificate,
    EventPart,
    Method,
    OffAtom,
    Thinned,
    certify_rows,
)
from evenhand.distributions import OutcomeKind
from evenhand.draws import RandomState, generator, one_row_each
from evenhand.forecast import Forecast
from evenhand.outcomes import Outcomes, as_outcomes, needs_no_weights
from evenhand.report import NoteKind, note
from evenhand.results import Note
from evenhand.tables import check_groups, take_rows

# --- certificates by the kind of outcome


def certificate_of(rows: RowCells, **options: Any) -> Certificate:
    """Certify rows; `options` are those of `certify_pit`."""
    times, part, events = rows.times, rows.positive, rows.events
    kind = rows.kind or (OutcomeKind.CONTINUOUS if rows.cells.are_points else OutcomeKind.COUNT)
    is_hurdle = kind is OutcomeKind.HURDLE
    if times is not None and is_hurdle and (part is None or part.at != times.horizon):
        atom = "" if part is None else f" with an atom at {number_in_full(part.at)}"
        raise InputError(
            "times that may be cut off are certified under continuous forecasts and under those"
            f" with an atom at the horizon, and these are of the kind {kind}{atom}; make them"
            " with Forecast.from_survival(times, survival, horizon)"
        )
    # the other method bounds pathwise errors over draws, of any forecaster; a base of counts only
    # shows what its intervals prove
    has_base = options.get("method", "local-levels") == "local-levels"
    event = None
    lost = None if times is None else times.is_lost
    if events is not None:
        event = EventPart.of(events.probability, events.happened, lost)
    elif times is not None and rows.at_horizon is not None and not rows.cells.is_randomized:
        # without a draw, whether the event happens by the horizon is a 0/1 forecast
        event = EventPart.of(rows.at_horizon, times.happened, lost)
    off_atom = None
    if part is not None:
        own = part.base if has_base else None
        off_atom = OffAtom(part.rows, part.cells.without_weights(), own, part.at)
    return certify_rows(
        rows.cells,
        kind=kind,
        base=rows.base if has_base or kind is OutcomeKind.COUNT else None,
        off_atom=off_atom,
        event=event,
        times=times,
        at_horizon=None if is_hurdle else rows.at_horizon,
        **options,
    )


# --- a certificate without an audit


def certify(
    model: Any,
    X: Any = None,
    y: ArrayLike | Outcomes | None = None,
    *,
    confidence: float = 0.95,
    groups: Any = None,
    method: Method = "local-levels",
    mass: float | None = None,
    random_state: RandomState = None,
) -> Certificate:
    """Certify a forecaster, or given forecasts, on rows not used for training or model selection.

    Parameters
    ----------
    model : forecaster or Forecast
        A fitted forecaster, which is evaluated with 64 jittered draws per row, or the forecasts
        themselves. Fitted models of other libraries, such as classifiers with `predict_proba`, are
        certified as forecasters.
    X : DataFrame or array-like of shape (n, n_features), optional
        Input rows of the forecaster, and the table that contains the columns listed in `groups`.
    y : array-like of shape (n,) or Outcomes
        Outcomes. `Outcomes` have the event, the horizon, weights and persons as well. Only people
        are used who entered at least a horizon before the end of follow-up, if it is known.
    confidence, method, mass, random_state
        As in `certificates.certify_pit`. With the default method, a forecaster or a forecast that
        is a link around a deterministic forecaster has the bounds of `certificates.certify_link`,
        from the PITs of that forecaster; one draw per person then suffices.
    groups : as in `audit`, optional
        Groups chosen before seeing these rows, by features known before the outcome: a group that
        the outcome defines is miscalibrated under any forecaster. A numeric column is cut at its
        median in these rows; this dependence on the rows is ignored.

    Returns
    -------
    Certificate

    Raises
    ------
    InputError
        If the inputs do not match, or allow no guarantee.

    Warns
    -----
    UserWarning
        If rows are exact copies of others, so that they are not independent.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand import Forecast
    >>> rng = np.random.default_rng(0)
    >>> forecast = Forecast.from_normal(np.zeros(400), np.ones(400))
    >>> certify(forecast, y=rng.normal(size=400), random_state=0).average_error() < 0.15
    True
    """
    if y is None:
        raise InputError("y is missing: a certificate needs outcomes; pass y=")
    random = generator(random_state)
    outcomes = as_outcomes(y)
    n = outcomes.n_samples
    masks = check_groups(groups, n, outcomes.given if X is None else X)
    audited = check_model(model)
    rows = check_rows(audited, X, n)
    kept, thinned = _kept(outcomes, random)
    if kept is not None:
        outcomes, masks = outcomes.take(kept), masks.take(kept)
        rows = None if rows is None else take_rows(rows, kept)
        audited = audited[kept] if isinstance(audited, Forecast) else audited
    subject = read_subject(audited, rows, outcomes, random)
    if outcomes.person is None and (warning := copies_among(rows, subject)):
        warnings.warn(warning, UserWarning, stacklevel=2)
    proof = certificate_of(
        subject,
        confidence=confidence,
        groups=masks,
        method=method,
        mass=mass,
        person=outcomes.person,
        random_state=random,
    )
    return replace(proof, thinned=thinned)


def _kept(outcomes: Outcomes, random: np.random.Generator) -> tuple[Ints | None, Thinned | None]:
    """Return the rows that need no weights, None for all: of each person at most one."""
    weight, largest = outcomes.weight, outcomes.largest_weight
    if weight is None or needs_no_weights(weight, largest):
        return None, None
    if largest is None:
        raise InputError(f"certificates do not accept weights alone: {WEIGHTED}")
    rows = np.arange(weight.size)
    if outcomes.person is not None:
        # one row each first: of several rows of a person one would be kept more often
        rows = np.sort(one_row_each(outcomes.person, rows.size, random))
    kept, thinned = Thinned.of(weight[rows], largest, random)
    return rows[kept], thinned


# --- searches; one that has too few rows gives a note, not an error

Notes = tuple[Note, ...]


def certify_held(
    rows: RowCells, held: HeldOut, random: np.random.Generator
) -> tuple[Certificate | None, Notes]:
    """Certify the rows, or return None and a note with the reason if there is no guarantee."""
    # groups are chosen before seeing the rows, so they can share the level (method: proof)
    try:
        proof = certificate_of(
            rows,
            confidence=held.options.confidence,
            groups=held.groups.known(),
            random_state=random,
        )
    except InputError as error:  # people share draws, or the draws do not cover [0, 1]
        return None, (note(NoteKind.NO_CERTIFICATE, reason=str(error)),)
    return replace(proof, one_row_each=held.one_row_each), ()


def learn_groups(
    rows: RowCells, held: HeldOut, confidence: float, random: np.random.Generator
) -> tuple[list[search.FoundGroup], Notes]:
    """Learn the worst group of each size from features."""
    features, names = _without_names(held.searched)
    notes = [note(NoteKind.COLUMN_NOT_LEARNED, (name,)) for name in names]
    found: list[search.FoundGroup] = []
    # one search object for all sizes: its model of the PITs is fitted once
    learner = search.GroupSearch(rows.tested, features, random_state=random)
    masses = held.options.learned_masses if held.searched is not None else ()
    for mass in masses:
        try:
            group = learner.find(
                mass, confidence=confidence, n_bounds=len(masses), residual=rows.residual
            )
            found.append(group)
        except InputError as error:
            # the remedy in the message addresses direct callers of the search
            why = str(error).partition("; ")[0]
            notes.append(note(NoteKind.NOT_LEARNED, numbers=(mass,), reason=why))
    return found, tuple(notes)


def conditional_coverage(rows: RowCells, held: HeldOut) -> tuple[pd.DataFrame, Notes]:
    """Estimate how far the coverage of intervals, given the features, differs from their level.

    Probabilities of 0/1 outcomes have no intervals.
    """
    features, _ = _without_names(held.searched)
    nothing = pd.DataFrame(columns=list(search.MISCOVERAGE_COLUMNS))
    if features is None or rows.binary is not None:
        return nothing, ()
    why = "whether an interval covers a time that is cut off may be unknown"
    if not rows.cells.unknown.any():
        try:
            # the order of the rows has a fixed seed, so it does not depend on the searches before
            return search.conditional_miscoverage(
                rows.cells, features, COVERED, confidence=held.options.confidence, random_state=0
            ), ()
        except InputError as error:
            why = str(error).partition("; ")[0]
    return nothing, (note(NoteKind.NO_MISCOVERAGE, reason=why),)


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
