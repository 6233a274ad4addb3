"""Errors of decision logs that could not be read or written."""

from __future__ import annotations

from evenhand._validate import InputError

FULL = "the disk is full; free space and repeat the request"
CLOSED = "the log is closed; open it anew"
READ_ONLY = "the log can only be read; make it writable to add entries"


class LogError(InputError):
    """A decision log cannot be read or written. The message is one line with a remedy.

    Nothing that was confirmed before is lost. The log can be used again once the cause, such as a
    full disk, is gone.

    Examples
    --------
    >>> raise LogError("log.sqlite: the disk is full; free space and repeat the request")
    Traceback (most recent call last):
    evenhand.service.log_errors.LogError: log.sqlite: the disk is full; free space and repeat ...
    """


def changed(source: str, number: int, reason: str) -> InputError:
    """Return the error for an entry that is not as it was written."""
    return InputError(
        f"{source}: entry {number} {reason}; compare the log with a backup, and do not rely on"
        " entries from there on"
    )
