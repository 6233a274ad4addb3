"""Verification of the hash chain of a decision log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from evenhand._validate import InputError, bad_input
from evenhand.service.chain import BEFORE_FIRST
from evenhand.service.decision_log import DecisionLog
from evenhand.service.entries import Head, Logged
from evenhand.service.entry_times import EntryTimes
from evenhand.service.log_errors import changed


@dataclass(frozen=True)
class Verification:
    """Result of a verification in which every entry was as it was written.

    Parameters
    ----------
    n_entries : int
        Number of entries.
    head : Head or None
        The last entry, to be noted outside of the log as the anchor of later verifications; None
        for an empty log.
    times : EntryTimes
        Times of the entries, with those at which a clock was wrong.
    """

    n_entries: int
    head: Head | None
    times: EntryTimes = field(default_factory=lambda: EntryTimes.of([]), compare=False, repr=False)


def verify(
    log: DecisionLog,
    anchor: Head | None = None,
    *,
    each: Callable[[Logged], object] | None = None,
) -> Verification:
    """Verify that no entry of a log has been changed, removed, added later or moved.

    The chain alone cannot show that the last entries were cut off, or that someone computed all
    hashes anew. An anchor, a head that was noted elsewhere, shows both for all entries up to it.

    Parameters
    ----------
    log : DecisionLog
        The log; entries that are added during the verification are not part of it.
    anchor : Head, optional
        Head of the log at an earlier time.
    each : function, optional
        Called with every entry once its place in the chain is verified, so that the log is read
        only once.

    Returns
    -------
    Verification
        Number of entries and the head.

    Raises
    ------
    InputError
        If the log is not as it was written; names the first entry where this shows.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.service import Entry, open_log
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     log = open_log(f"{folder}/log.sqlite")
    ...     logged = log.run(lambda transaction: transaction.add(Entry("context", "2026-11")))
    ...     verify(log, anchor=log.head()).n_entries
    ...     log.close()
    1
    """
    if anchor is not None and anchor.number < 1:
        raise bad_input("the anchor", "be an entry, from 1", anchor.number)
    last = None
    readings = []
    for last in verified(log.entries(), log.source):
        if anchor is not None and last.number == anchor.number and last.sha256 != anchor.sha256:
            raise changed(
                log.source, last.number, "is not the one of the anchor: the log has been rewritten"
            )
        readings.append(last.time)
        if each is not None:
            each(last)
    n_entries = 0 if last is None else last.number
    if anchor is not None and n_entries < anchor.number:
        raise InputError(
            f"{log.source}: the log ends with entry {n_entries}, and the anchor is entry"
            f" {anchor.number}: entries after {n_entries} are missing; restore them from a backup"
        )
    head = None if last is None else Head(last.number, last.sha256)
    return Verification(n_entries, head, EntryTimes.of(readings))


def verified(entries: Iterable[Logged], source: str) -> Iterator[Logged]:
    """Yield all entries of a log, from the first; InputError where the chain is broken."""
    number, previous = 0, BEFORE_FIRST
    for entry in entries:
        if entry.number != number + 1:
            raise changed(source, number + 1, "is missing")
        if entry.previous != previous:
            which = f"{entry.number - 1} or {entry.number}"
            raise changed(source, entry.number, f"breaks the chain: entry {which} was rewritten")
        number, previous = entry.number, entry.sha256
        yield entry
