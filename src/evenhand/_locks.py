"""Locks on files and folders, released by the system however their process ends."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer

try:
    import fcntl
except ImportError:  # Windows has no flock
    fcntl = None  # type: ignore[assignment]

OLD_SECONDS = 24 * 60 * 60
"""Age above which a file counts as abandoned on file systems without locks."""

PATIENCE_SECONDS = 10.0
"""Time to wait for another process before a warning is given."""


def lock(handle: int, *, wait: bool = False) -> bool | None:
    """Lock an open file; return False if another process holds the lock, None without locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network file systems have no locks
        return None
    return True


def is_at(handle: int, path: Path) -> bool:
    """Return whether an open file is still the one at `path`; a removed file locks nothing."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def is_old(path: Path) -> bool:
    """Return whether a file is too old to belong to a write that is still running."""
    return time.time() - path.stat().st_mtime > OLD_SECONDS


@contextmanager
def one_writer(folder: Path) -> Iterator[bool]:
    """Wait until no other process writes to a folder, and make others wait during the block.

    Yields whether the folder is locked: False on systems and file systems without locks.
    """
    if fcntl is None:  # where folders cannot be opened either
        yield False
        return
    handle = os.open(folder, os.O_RDONLY)
    locked = None
    try:
        locked = _wait(handle, folder)
        yield bool(locked)
    finally:
        if locked:
            # a forked child has a copy of the handle: closing ours would not release the lock
            fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def _wait(handle: int, folder: Path) -> bool | None:
    message = f"{folder}: waiting for another process that is saving to this folder"
    timer = Timer(PATIENCE_SECONDS, warnings.warn, (message, UserWarning))
    timer.start()
    try:
        return lock(handle, wait=True)
    finally:
        timer.cancel()
