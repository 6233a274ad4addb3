"""Notes of an audit: what was left out or done otherwise, and the words for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto

from evenhand._format import count, in_full

MOST_NAMED = 8
"""Most features that a note lists."""


class NoteKind(Enum):
    """What a note is about."""

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
    """What an audit left out or did otherwise; printed, it is one sentence.

    Parameters
    ----------
    kind : NoteKind
        What the note is about.
    subject : tuple of str
        The groups, columns or parts of the audit that it concerns.
    numbers : tuple of float
        The numbers in its sentence: rows, people or the size of a group.
    reason : str
        The message of whatever refused, where there was one.

    Examples
    --------
    >>> print(Note(NoteKind.EMPTY_GROUP, ("north",)))
    no row of group 'north' is left
    """

    kind: NoteKind
    subject: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        return WORDS[self.kind](self)


def notes_of(notes: Iterable[Note], *kinds: NoteKind) -> tuple[Note, ...]:
    """Return the notes of some kinds, in their order."""
    return tuple(note for note in notes if note.kind in kinds)


NO_SCAN = (NoteKind.TOO_FEW_TO_SCAN, NoteKind.NO_LARGE_GROUP, NoteKind.ALL_FEATURES_LEAK)
"""Kinds of notes that explain why the scan found no group to test."""


def _rows(note: Note) -> str:
    return f"{note.numbers[0]:,}"


def _counted(note: Note) -> str:
    # a value lies at most half a bin from the middle of its bin
    n, bins = note.numbers
    return (
        f"averages, named groups and what is proven are of all {n:,} rows; errors of averages and"
        f" named groups are counted in bins, within {1 / (2 * bins):.5f} of the exact ones"
    )


def _one_row_each(note: Note) -> str:
    people, rows = note.numbers
    return (
        f"one row of each of {people:,} people is audited, of {rows:,} rows; group sizes are"
        " shares of people, not of rows"
    )


def _features(note: Note) -> str:
    names = note.subject
    # tables with hundreds of columns would make a note of a page
    more = len(names) - MOST_NAMED
    listed = ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"groups were looked for in {count(len(names), 'feature')}: {listed}"


def _no_certificate(note: Note) -> str:
    # without a refusal of its own, weights are the only reason
    weighted = "rows with weights are not a sample of the people"
    return f"no certificate: {note.reason or weighted}"


WORDS: dict[NoteKind, Callable[[Note], str]] = {
    NoteKind.PART_LEFT_OUT: lambda note: f"part left out: {note.reason}",
    NoteKind.ZERO_WEIGHTS: lambda note: f"rows of weight 0 are left out: {_rows(note)}",
    NoteKind.ONE_ROW_EACH: _one_row_each,
    NoteKind.EMPTY_GROUP: lambda note: f"no row of group {note.subject[0]!r} is left",
    NoteKind.SEARCHES_UNWEIGHTED: lambda note: (
        "learned groups, worst groups in hindsight and the tests of scanned groups count each row"
        " once, whatever its weight"
    ),
    NoteKind.COUNTED_ROWS: _counted,
    NoteKind.SAMPLED_ROWS: lambda note: (
        f"{', '.join(note.subject)} are of {_rows(note)} rows chosen at random"
    ),
    NoteKind.SCORED_ROWS: lambda note: f"scores are taken on {_rows(note)} rows chosen at random",
    NoteKind.NO_CERTIFICATE: _no_certificate,
    NoteKind.TOO_FEW_TO_SCAN: lambda note: (
        f"{note.numbers[0]} rows are needed to scan for groups, got {note.numbers[1]}"
    ),
    NoteKind.NO_LARGE_GROUP: lambda note: (
        f"no group has at least {note.numbers[0]} rows: nothing was scanned"
    ),
    NoteKind.ALL_FEATURES_LEAK: lambda note: (
        "the outcome may define every feature: nothing was scanned"
    ),
    NoteKind.COLUMN_NOT_SCANNED: lambda note: (
        f"column {note.subject[0]!r} was not scanned: {note.reason}"
    ),
    NoteKind.COLUMN_NOT_LEARNED: lambda note: (
        f"column {note.subject[0]!r} names each row and was not learned from"
    ),
    NoteKind.NOT_LEARNED: lambda note: (
        f"no group of {in_full(note.numbers[0])} was learned: {note.reason}"
    ),
    NoteKind.FEATURES: _features,
}
"""The sentence of each kind of note."""
