"""Notes of an audit on parts that were left out or computed differently."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum

from evenhand._format import and_more, count, in_full, percent
from evenhand.results import Note, plain

MOST_NAMED = 8
"""Most features that a note lists."""


class NoteKind(Enum):
    """Kind of a note, with the template of its sentence."""

    PART_LEFT_OUT = "part left out: {reason}"
    NO_OUTCOME = "rows without an outcome were left out: {numbers[0]:,} of {numbers[1]:,}"
    ZERO_WEIGHTS = "rows of weight 0 were left out: {numbers[0]:,}"
    ONE_ROW_EACH = (
        "one row per person is audited, {numbers[0]:,} of {numbers[1]:,} rows; group sizes are"
        " shares of people, not of rows"
    )
    EMPTY_GROUP = "group {subject[0]!r} has no rows left"
    PROBABLE_GROUPS = (
        "values from 0 to 1 were read as probabilities of membership: {names}; estimates weight"
        " rows by them, and are those of the group itself if membership is independent of the"
        " outcome, given what the probabilities were computed from; such groups are neither"
        " certified nor scanned"
    )
    HALVED_FRACTIONS = (
        "columns of values from 0 to 1 were cut at their median: {names}; if they are probabilities"
        " of membership in a group, pass {{'name': values}} as groups, or name them in"
        " --group-probabilities"
    )
    NO_OWN_FORECAST = "forecasts are not known, so levels of the forecast cannot be compared"
    IMPOSSIBLE_OUTCOMES = (
        "{numbers[2]:,.0f} outcomes have a predicted probability of 0, the first in row"
        " {numbers[0]:,.0f}, where the probability of the event is {numbers[1]:g}"
    )
    NO_THINNING = (
        "no groups were found by search and nothing is certified: rows have weights, and the"
        " largest weight of the design is not known; give it in largest_weight or --largest-weight"
    )
    THINNED = (
        "groups found by search and guarantees use {numbers[0]:,} of {numbers[1]:,} rows, drawn"
        " with probabilities in proportion to their weights (seed {numbers[2]})"
    )
    FEW_AFTER_THINNING = (
        "no groups were found by search: too few of {numbers[0]:,} rows after thinning,"
        " {numbers[1]:,} kept"
    )
    COUNTED_ROWS = (
        "averages, named groups and guarantees use all {numbers[0]:,} rows; errors of averages and"
        " named groups are computed from binned PITs, within {half_bin:.5f} of the exact values"
    )
    SAMPLED_ROWS = "{names} use {numbers[0]:,} rows sampled at random"
    ROUNDING_CELLS = (
        "the forecasts are continuous, but {atom} of the outcomes are {numbers[0]:g}: PITs are"
        " spread over the cells of rounded outcomes, and rounding may explain up to {grid} of the"
        " average error"
    )
    TIED_OUTCOMES = (
        "the forecasts are continuous, but {atom} of the outcomes are {numbers[0]:g}, and outcomes"
        " lie on no grid: the PITs of these rows coincide unless their forecasts differ"
    )
    EVENT_AS_CONTINUOUS = (
        "the outcome is 0 or 1, but the forecasts are continuous: audit probabilities of the event"
        " instead, for example Forecast.from_probability(p) or a classifier"
    )
    EXCLUDED_OUTCOMES = (
        "{numbers[0]:,} outcomes have a probability of 0 under their forecasts, so the log score is"
        " infinite"
    )
    CUT_OFF_TIMES = (
        "{numbers[0]:,} of {numbers[1]:,} times are cut off (censored). Tests assume that, given"
        " the features, being cut off is independent of the time of the event. Kaplan-Meier"
        " estimates assume that, within a group, it is independent of the PIT. The least and the"
        " largest possible errors assume nothing"
    )
    NO_TIME_CUT_OFF = (
        "no time is cut off: if people without an observed event were left out of the table, times"
        " seem shorter than they are, and these results are wrong"
    )
    SKEWED_RESIDUALS = (
        "outcome minus forecast is skewed: its sample skewness is {numbers[0]:.1f}, so intervals of"
        " its mean miss more often than stated, for lognormal errors up to 4 times as often in"
        " groups of 100 to 500 rows"
    )
    SCORED_ROWS = "scores are computed on {numbers[0]:,} rows sampled at random"
    NO_CERTIFICATE = "no certificate: {reason}"
    TOO_FEW_TO_SCAN = "no groups were scanned: the scan needs {numbers[0]} rows, got {numbers[1]}"
    NO_LARGE_GROUP = "no groups were scanned: none has at least {numbers[0]} rows"
    ALL_FEATURES_LEAK = "no groups were scanned: the outcome may define every feature"
    COLUMN_NOT_SCANNED = "column {subject[0]!r} was not scanned: {reason}"
    COLUMN_NOT_LEARNED = (
        "column {subject[0]!r} identifies each row and was not used to learn groups"
    )
    NOT_LEARNED = "no group of {size} was learned: {reason}"
    NO_MISCOVERAGE = "coverage was not estimated by features: {reason}"
    FEATURES = "groups were searched in {features}"


def note(
    kind: NoteKind,
    subject: Sequence[str] = (),
    numbers: Sequence[float] = (),
    reason: str = "",
) -> Note:
    """Return a note, whose sentence is the template of its kind.

    Parameters
    ----------
    kind : NoteKind
        Kind of the note.
    subject : sequence of str
        Groups, columns or parts of the audit that are affected.
    numbers : sequence of float
        Numbers in the sentence: rows, people or the size of a group.
    reason : str
        Error message that explains the note; by default, that rows have weights.

    Examples
    --------
    >>> print(note(NoteKind.EMPTY_GROUP, ["north"]))
    group 'north' has no rows left
    """
    text = kind.value.format(
        subject=subject,
        numbers=numbers,
        # without an error message, weights are the only reason
        reason=reason or "rows with weights are not a sample of the people",
        names=", ".join(subject),
        # a table may have hundreds of columns
        features=f"{count(len(subject), 'feature')}: {and_more(subject, MOST_NAMED)}",
        atom=percent(numbers[1], "up") if len(numbers) > 1 else "",
        grid=percent(numbers[3], "up") if len(numbers) > 3 else "",
        size=in_full(numbers[0]) if numbers else "",
        # each value lies within half a bin of the middle of its bin
        half_bin=0.5 / numbers[-1] if any(numbers[-1:]) else 0.0,
    )
    known = tuple(plain(list(numbers)))
    return Note(kind=kind.name, text=text, subject=tuple(map(str, subject)), numbers=known)


def notes_of(notes: Iterable[Note], *kinds: NoteKind) -> tuple[Note, ...]:
    """Return the notes of the given kinds in their order."""
    return tuple(one for one in notes if one.kind in {kind.name for kind in kinds})
