"""Notes on outcomes that have atoms although the forecast is continuous, or are excluded by it."""

from __future__ import annotations

import numpy as np

from evenhand._validate import MILD_ATOM, largest_atom
from evenhand.audits.forecasts import Subject
from evenhand.calibration import calibration_error, cell_error
from evenhand.censoring import CensoredTimes
from evenhand.distributions import OutcomeKind
from evenhand.report import Note, NoteKind


def grid_findings(subject: Subject) -> tuple[float | None, tuple[Note, ...]]:
    """Return the share of the average error that rounding may explain, and notes on atoms.

    The least error `I` of any positions in the rounding cells remains whatever the exact outcomes
    were; the rest of the error `d`, a share `(d - I) / d` of it, may be due to rounding
    (outcomes: 2). The share is None where PITs are not spread over rounding cells.

    Parameters
    ----------
    subject : Subject
        Forecasts of the audited rows.
    """
    pits, rounding = subject.pits, subject.rounding
    # cells of times that are cut off are no rounding, and atoms at a horizon or at the end of
    # follow-up neither
    if subject.kind is not OutcomeKind.CONTINUOUS or subject.times is not None:
        return None, ()
    value, atom = largest_atom(subject.outcomes)
    if atom <= MILD_ATOM or atom * subject.outcomes.size < 1.5:
        return None, ()
    notes: tuple[Note, ...] = ()
    if np.isin(subject.outcomes, (0.0, 1.0)).all():
        notes = (Note(NoteKind.EVENT_AS_CONTINUOUS),)
    if pits.cells is None:
        return None, (*notes, Note(NoteKind.TIED_OUTCOMES, numbers=(value, atom)))
    least, average_error = cell_error(pits), calibration_error(pits)
    share = max((average_error - least) / average_error, 0.0) if average_error > 0 else 0.0
    step = np.nan if rounding.step is None else rounding.step
    note = Note(NoteKind.ROUNDING_CELLS, numbers=(value, atom, step, share))
    return share, (*notes, note)


def time_notes(times: CensoredTimes | None) -> tuple[Note, ...]:
    """Return a note on the times that are cut off, and on what their analysis assumes."""
    if times is None:
        return ()
    if times.happened.all():
        return (Note(NoteKind.NO_TIME_CUT_OFF),)
    n_lost = int(times.is_lost.sum())
    return (Note(NoteKind.CUT_OFF_TIMES, numbers=(n_lost, times.n_samples)),) if n_lost else ()


def excluded_outcomes(subject: Subject) -> tuple[Note, ...]:
    """Return a note on the outcomes to which their forecasts give no probability, if any."""
    infinite = [int(np.isinf(values).sum()) for values in subject.scores.values()]
    most = max(infinite, default=0)
    return (Note(NoteKind.EXCLUDED_OUTCOMES, numbers=(most,)),) if most else ()
