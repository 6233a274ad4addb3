"""Files are replaced in one step: an interrupted write leaves the old content intact."""

from __future__ import annotations

import errno
import os
import re
import secrets
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from evenhand._checks import InputError
from evenhand._partial import link_target

try:
    import fcntl
except ImportError:  # Windows: what is left over is judged by its age alone
    fcntl = None  # type: ignore[assignment]

OLD_SECONDS = 24 * 60 * 60
"""Age of a file that no running process still writes, where the file system has no locks."""

SAVING = ".evenhand-saving"
"""Name of the lock file of a folder; it exists while the folder is written to."""

PATIENCE_SECONDS = 10.0
"""Time to wait for another process before saying so."""

_DRAFT = re.compile(r"\.evenhand-[0-9a-f]{16}\.draft")

_NO_SYNC = (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EACCES, errno.EPERM)
"""Errors of file systems and users that cannot sync a folder."""


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in one step: the old content stays until the new content is on disk.

    The new file has the permissions that the umask gives to any new file.
    """
    with _draft(path.parent) as (draft, file):
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
        # replaced while it is still open: its lock keeps others from sweeping it
        os.replace(draft, path)
    sync_folder(path.parent)


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in one step; InputError if its folder is missing or write-protected."""
    target = Path(path)
    try:
        reached = link_target(target)
        sweep_drafts(reached.parent)
        replace_file(reached, text.encode())
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror}; name a file in an existing folder") from error


def sync_folder(folder: Path) -> None:
    """Bring renames in a folder to disk, where the file system can."""
    if os.name == "nt":
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder may be writable and not readable
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(handle)


def sweep_drafts(folder: Path) -> None:
    """Remove drafts that killed processes left in a folder; those of running processes stay."""
    for path in listed(folder, _DRAFT):
        # another process may have removed it, or it is another user's
        with suppress(OSError), path.open("rb+") as file:
            locked = _lock(file.fileno())
            if locked or (locked is None and is_old(path)):
                path.unlink(missing_ok=True)


def listed(folder: Path, names: re.Pattern[str]) -> list[Path]:
    """List the plain files of a folder whose names match."""
    return [path for path in folder.iterdir() if names.fullmatch(path.name) and _is_plain(path)]


def is_old(path: Path) -> bool:
    """Return whether a file is too old to be part of a write that is still running."""
    return time.time() - path.stat().st_mtime > OLD_SECONDS


@contextmanager
def one_writer(folder: Path) -> Iterator[bool]:
    """Wait until no other process writes to a folder, and keep others waiting meanwhile.

    Yields whether others are kept out: False where the file system has no locks. The lock belongs to the process and
    ends with it, so a killed process blocks nobody.
    """
    path = folder / SAVING
    handle, alone = _acquire(path)
    try:
        yield alone
    finally:
        try:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        finally:
            if alone:
                # a forked child has the handle, too: closing ours would not end the lock
                fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)


def _acquire(path: Path) -> tuple[int, bool]:
    while True:
        handle = _open_lock(path)
        try:
            locked = _lock(handle)
            if locked is False:
                locked = _wait(handle, path.parent)
            # the last writer removes the file: a lock on a removed file keeps nobody out
            if locked is None or _is_at(path, handle):
                return handle, locked is not None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _open_lock(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except PermissionError:  # another user's, left by a killed process
        return os.open(path, os.O_RDONLY)


def _wait(handle: int, folder: Path) -> bool | None:
    start = time.monotonic()
    while time.monotonic() - start < PATIENCE_SECONDS:
        time.sleep(0.005)
        locked = _lock(handle)
        if locked is not False:
            return locked
    warnings.warn(f"{folder}: waiting for another process that saves to this folder", UserWarning, stacklevel=2)
    return _lock(handle, wait=True)


def _lock(handle: int, *, wait: bool = False) -> bool | None:
    """Lock an open file: False if another process has locked it, None if it cannot be locked."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


@contextmanager
def _draft(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """Open a new file under a name that nobody else uses; it is gone at the end unless it was renamed."""
    while True:
        path = folder / f".evenhand-{secrets.token_hex(8)}.draft"
        try:
            with path.open("xb") as file:
                _lock(file.fileno(), wait=True)
                # a sweep may have come between the two steps
                if _is_at(path, file.fileno()):
                    yield path, file
                    return
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _is_at(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
