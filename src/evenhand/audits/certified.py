"""Certificates and group searches of audited rows, and the entry point `certify`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from evenhand import certificates, search
from evenhand._format import number_in_full
from evenhand._validate import Floats, InputError, check_finite
from evenhand.audits.forecasts import check_model, check_rows, copies_among, read_subject
from evenhand.audits.options import SearchOptions
from evenhand.audits.outcomes import RowPITs
from evenhand.audits.rows import HeldOut
from evenhand.audits.scores import LEVELS
from evenhand.calibration import Cells, CensoredTimes, given_times
from evenhand.certificates import (
    Method,
    PITCertificate,
    certify_events,
    certify_hurdle,
    certify_hurdle_times,
    certify_pit,
    certify_times,
)
from evenhand.distributions import OutcomeKind
from evenhand.draws import RandomState, generator
from evenhand.report import Note, NoteKind
from evenhand.tables import check_groups

# --- certificates by the kind of outcome


def certificate_of(
    rows: RowPITs, *, method: Method = "local-levels", **options: Any
) -> PITCertificate:
    """Certify rows; `options` are those of `certify_pit`.

    Raises
    ------
    InputError
        If the rows cannot support a guarantee.
    """
    options["method"] = method
    if rows.times is not None:
        return _of_times(rows, rows.times, options)
    if rows.kind is OutcomeKind.HURDLE:
        return _hurdle(rows, options)
    events = None
    if rows.kind is OutcomeKind.BINARY and rows.events is not None:
        names = ("confidence", "cluster", "random_state")
        shared: dict[str, Any] = {name: options.get(name) for name in names}
        events = certify_events(rows.events.probability, rows.events.happened, **shared)
    # the other methods bound pathwise errors over draws, of any forecaster; a base of counts only
    # shows what its intervals prove
    has_base = method == "local-levels" or rows.kind is OutcomeKind.COUNT
    base = rows.base if has_base else None
    return certify_pit(rows.pits, base=base, kind=rows.kind, events=events, **options)


def _of_times(rows: RowPITs, times: CensoredTimes, options: dict[str, Any]) -> PITCertificate:
    """Certify forecasts of times that may be cut off (outcomes: 5)."""
    has_base = options["method"] == "local-levels"
    if rows.kind is OutcomeKind.CONTINUOUS:
        base = rows.base if has_base else None
        return certify_times(rows.pits, times, base=base, at_horizon=rows.at_horizon, **options)
    part, events = rows.positive, rows.events
    if part is None or events is None or part.at != times.horizon:
        atom = "" if part is None else f" with an atom at {number_in_full(part.at)}"
        raise InputError(
            "times that may be cut off are certified under continuous forecasts and under those"
            f" with an atom at the horizon, and these are of the kind {rows.kind}{atom}; make them"
            " with Forecast.from_survival(times, survival, horizon)"
        )
    base = part.base if has_base else None
    return certify_hurdle_times(
        rows.pits,
        part.pits.at_points().without_weights(),
        events.probability,
        times,
        base=None if base is None else base._replace(cells=None),
        **options,
    )


def _hurdle(rows: RowPITs, options: dict[str, Any]) -> PITCertificate:
    """Certify forecasts with an atom: the event, and the people whose outcome is not the atom."""
    part, events = rows.positive, rows.events
    if part is None or events is None:
        raise InputError(
            "every outcome is the atom, so nothing can be certified about the others; use rows with"
            " other outcomes"
        )
    base = part.base if options["method"] == "local-levels" else None
    return certify_hurdle(
        rows.pits,
        part.pits.without_weights(),
        events.happened,
        events.probability,
        at=part.at,
        base=None if base is None else base._replace(cells=None),
        **options,
    )


# --- a certificate without an audit


def certify(
    model: Any,
    X: Any = None,
    y: ArrayLike | None = None,
    *,
    event: ArrayLike | None = None,
    horizon: float | None = None,
    entered: Any = None,
    confidence: float = 0.95,
    groups: Any = None,
    method: certificates.Method = "local-levels",
    mass: float | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    random_state: RandomState = None,
) -> certificates.PITCertificate:
    """Certify a forecaster, or given forecasts, on rows not used for training or model selection.

    Parameters
    ----------
    model : forecaster or Forecast
        A fitted forecaster, which is evaluated with 64 jittered draws per row, or the forecasts
        themselves. Fitted models of other libraries, such as classifiers with `predict_proba`, are
        certified as forecasters.
    X : DataFrame or array-like of shape (n, n_features), optional
        Input rows of the forecaster, and the table that contains the columns listed in `groups`.
    y : array-like of shape (n,)
        Outcomes.
    event : array-like of shape (n,), optional
        For times until an event: 1 or True where the event was observed, 0 or False where the time
        is cut off, so that `y` is when the person was last seen without it.
    horizon : float, optional
        For times: up to when outcomes are followed, in units of `y`. The outcome is then the time
        or the horizon, whichever is first.
    entered : array-like of shape (n,), optional
        For times with a horizon: when each person entered, as dates (`y` is then in days) or as
        numbers in units of `y`. The guarantee uses the people who entered at least a horizon before
        the end of follow-up, the latest `entered + y`.
    confidence, method, mass, cluster, sample_weight, random_state
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
    times = given_times(y, event, horizon, entered, sample_weight)
    outcomes = check_finite("y", y) if times is None else times.time
    masks = check_groups(groups, outcomes.size, y if X is None else X)
    audited = check_model(model)
    rows = check_rows(audited, X, outcomes.size)
    subject = read_subject(audited, rows, outcomes, random, times=times)
    if cluster is None and (warning := copies_among(rows, subject)):
        warnings.warn(warning, UserWarning, stacklevel=2)
    return certificate_of(
        subject,
        confidence=confidence,
        groups=masks,
        method=method,
        mass=mass,
        cluster=cluster,
        sample_weight=sample_weight,
        random_state=random,
    )


# --- searches; one that has too few rows gives a note, not an error

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
    pits: Cells,
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
    pits: Cells, held: HeldOut, options: SearchOptions, *, is_event: bool
) -> tuple[pd.DataFrame, Notes]:
    """Estimate how far the coverage of intervals, given the features, differs from their level.

    Probabilities of 0/1 outcomes have no intervals.
    """
    features, _ = _without_names(held.searched)
    nothing = pd.DataFrame(columns=list(search.MISCOVERAGE_COLUMNS))
    if features is None or is_event:
        return nothing, ()
    why = "whether an interval covers a time that is cut off may be unknown"
    if not pits.unknown.any():
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
