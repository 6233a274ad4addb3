"""Notes of an audit on parts that were left out or computed differently."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto

from evenhand._format import count, in_full

MOST_NAMED = 8
"""Most features that a note lists."""


class NoteKind(Enum):
    """Subject of a note."""

    PART_LEFT_OUT = auto()
    ZERO_WEIGHTS = auto()
    ONE_ROW_EACH = auto()
    EMPTY_GROUP = auto()
    SEARCHES_UNWEIGHTED = auto()
    COUNTED_ROWS = auto()
    SAMPLED_ROWS = auto()
    SCORED_ROWS = auto()
    NO_CERTIFICATE = auto()
    TOO_FEW_TO_SCAN = auto()
    NO_LARGE_GROUP = auto()
    ALL_FEATURES_LEAK = auto()
    COLUMN_NOT_SCANNED = auto()
    COLUMN_NOT_LEARNED = auto()
    NOT_LEARNED = auto()
    FEATURES = auto()


@dataclass(frozen=True)
class Note:
    """A part of an audit that was left out or computed differently; `str` gives a sentence.

    Parameters
    ----------
    kind : NoteKind
        Subject of the note.
    subject : tuple of str
        Groups, columns or parts of the audit that are affected.
    numbers : tuple of float
        Numbers in the sentence: rows, people or the size of a group.
    reason : str
        Error message that explains the note, if there is one.

    Examples
    --------
    >>> print(Note(NoteKind.EMPTY_GROUP, ("north",)))
    group 'north' has no rows left
    """

    kind: NoteKind
    subject: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        return WORDS[self.kind](self)


def notes_of(notes: Iterable[Note], *kinds: NoteKind) -> tuple[Note, ...]:
    """Return the notes of the given kinds in their order."""
    return tuple(note for note in notes if note.kind in kinds)


NO_SCAN = (NoteKind.TOO_FEW_TO_SCAN, NoteKind.NO_LARGE_GROUP, NoteKind.ALL_FEATURES_LEAK)
"""Kinds of notes that explain why no group was scanned."""


def _rows(note: Note) -> str:
    return f"{note.numbers[0]:,}"


def _counted(note: Note) -> str:
    # each value lies within half a bin of the middle of its bin
    n, bins = note.numbers
    return (
        f"averages, named groups and guarantees use all {n:,} rows; errors of averages and named"
        f" groups are computed from binned PITs, within {1 / (2 * bins):.5f} of the exact values"
    )


def _one_row_each(note: Note) -> str:
    people, rows = note.numbers
    return (
        f"one row per person is audited, {people:,} of {rows:,} rows; group sizes are shares of"
        " people, not of rows"
    )


def _features(note: Note) -> str:
    names = note.subject
    # a table may have hundreds of columns
    more = len(names) - MOST_NAMED
    listed = ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"groups were searched in {count(len(names), 'feature')}: {listed}"


def _no_certificate(note: Note) -> str:
    # without an error message, weights are the only reason
    weighted = "rows with weights are not a sample of the people"
    return f"no certificate: {note.reason or weighted}"


WORDS: dict[NoteKind, Callable[[Note], str]] = {
    NoteKind.PART_LEFT_OUT: lambda note: f"part left out: {note.reason}",
    NoteKind.ZERO_WEIGHTS: lambda note: f"rows of weight 0 were left out: {_rows(note)}",
    NoteKind.ONE_ROW_EACH: _one_row_each,
    NoteKind.EMPTY_GROUP: lambda note: f"group {note.subject[0]!r} has no rows left",
    NoteKind.SEARCHES_UNWEIGHTED: lambda note: (
        "learned groups, oracle worst groups and the tests of scanned groups count each row once,"
        " whatever its weight"
    ),
    NoteKind.COUNTED_ROWS: _counted,
    NoteKind.SAMPLED_ROWS: lambda note: (
        f"{', '.join(note.subject)} use {_rows(note)} rows sampled at random"
    ),
    NoteKind.SCORED_ROWS: lambda note: (
        f"scores are computed on {_rows(note)} rows sampled at random"
    ),
    NoteKind.NO_CERTIFICATE: _no_certificate,
    NoteKind.TOO_FEW_TO_SCAN: lambda note: (
        f"no groups were scanned: the scan needs {note.numbers[0]} rows, got {note.numbers[1]}"
    ),
    NoteKind.NO_LARGE_GROUP: lambda note: (
        f"no groups were scanned: none has at least {note.numbers[0]} rows"
    ),
    NoteKind.ALL_FEATURES_LEAK: lambda note: (
        "no groups were scanned: the outcome may define every feature"
    ),
    NoteKind.COLUMN_NOT_SCANNED: lambda note: (
        f"column {note.subject[0]!r} was not scanned: {note.reason}"
    ),
    NoteKind.COLUMN_NOT_LEARNED: lambda note: (
        f"column {note.subject[0]!r} identifies each row and was not used to learn groups"
    ),
    NoteKind.NOT_LEARNED: lambda note: (
        f"no group of {in_full(note.numbers[0])} was learned: {note.reason}"
    ),
    NoteKind.FEATURES: _features,
}
"""The sentence of each kind of note."""
