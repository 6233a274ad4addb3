"""Certificates of audited rows, by the kind of outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import number_in_full
from evenhand._validate import InputError
from evenhand.audits.outcomes import RowPITs
from evenhand.calibration import PITs
from evenhand.censoring import CensoredTimes
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


def certificate_of(
    rows: RowPITs,
    *,
    confidence: float,
    groups: Any,
    random_state: np.random.Generator,
    method: Method = "local-levels",
    mass: float | None = None,
    cluster: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> PITCertificate:
    """Certify rows.

    Parameters
    ----------
    rows : RowPITs
        PITs of the rows.
    confidence, groups, random_state, method, mass, cluster, sample_weight
        As in `certify_pit`.

    Raises
    ------
    InputError
        If the rows cannot support a guarantee.
    """
    options: dict[str, Any] = {
        "confidence": confidence,
        "groups": groups,
        "method": method,
        "mass": mass,
        "cluster": cluster,
        "sample_weight": sample_weight,
        "random_state": random_state,
    }
    if rows.times is not None:
        return _of_times(rows, rows.times, options)
    if rows.kind is OutcomeKind.HURDLE:
        return _hurdle(rows, options)
    events = None
    if rows.kind is OutcomeKind.BINARY and rows.events is not None:
        found = rows.events
        events = certify_events(
            found.probability,
            found.happened,
            confidence=confidence,
            cluster=cluster,
            random_state=random_state,
        )
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
        PITs(part.pits.matrix, part.pits.draws),
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
        PITs(part.pits.matrix, part.pits.draws, cells=part.pits.cells),
        events.happened,
        events.probability,
        at=part.at,
        base=None if base is None else base._replace(cells=None),
        **options,
    )
