"""Atomic replacement of files and folders: an interrupted write leaves the old content intact.

New content is written to a hidden partial file `.NAME.xxxxxxxx.part` beside NAME, locked by the
process that writes it. The system releases the lock however that process ends, so a partial file
without a lock has no owner and is removed by the next process that writes NAME.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

from evenhand._locks import is_at, is_old, lock
from evenhand._validate import AnyPath, InputError

_TOKEN_BYTES = 4
_ENDING = rf"\.[0-9a-f]{{{2 * _TOKEN_BYTES}}}\.part"
_PARTIAL = re.compile(rf"\..+{_ENDING}", re.DOTALL)

_NO_SYNC = (errno.EINVAL, errno.EBADF, errno.ENOTSUP, errno.EACCES, errno.EPERM)
"""Error codes where the file system or the user's permissions do not allow syncing a folder."""


def link_target(path: AnyPath) -> Path:
    """Return the path that symbolic links point to, whether it exists or not."""
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise InputError(f"{path} is a symbolic link that points to itself; remove the link")
    return target


def check_folder(folder: AnyPath) -> Path:
    """Return the path of a model folder, existing or not, if files could be written to it.

    Meant to be called before long work.
    """
    target = Path(folder)
    # the nearest existing folder decides whether the others can be created
    nearest = next(path for path in (target, *target.absolute().parents) if path.exists())
    if not nearest.is_dir():
        raise InputError(f"{target} cannot be a folder: {nearest} is a file; name another folder")
    if not os.access(nearest, os.W_OK):
        raise InputError(f"{target}: the folder {nearest} is write-protected; choose another")
    return target


def write_text(path: AnyPath, text: str) -> None:
    """Write a text file atomically; InputError if its folder is missing or write-protected."""
    target = Path(path)
    try:
        replace_file(link_target(target), text.encode())
    except OSError as error:
        raise InputError(
            f"{target} cannot be written: {error.strerror}; name a file in an existing folder"
            " with space"
        ) from error


def written(text: str, path: AnyPath | None) -> str:
    """Return a text, which is written to a file first if there is a path."""
    if path is not None:
        write_text(path, text if text.endswith("\n") else f"{text}\n")
    return text


def replace_file(path: Path, content: bytes) -> None:
    """Write a file atomically: the old content stays until the new content is on disk.

    The new file has the default permissions of the umask.
    """
    with Partial(path) as partial, os.fdopen(partial.handle, "wb", closefd=False) as file:
        file.write(content)


class Partial:
    """A hidden file or folder beside `target`, in which new content is prepared.

    Creating one removes those that killed processes have left behind. A `with` block replaces the
    target at its end, and leaves the old content after an error.

    Parameters
    ----------
    target : Path
        Path of the finished file or folder; not a symbolic link, see `link_target`.
    is_folder : bool, default False
        Whether to create a folder.

    Attributes
    ----------
    path : Path
        The hidden file or folder.
    handle : int
        Its open descriptor, which holds the lock; open for writing if it is a file.
    """

    def __init__(self, target: Path, *, is_folder: bool = False) -> None:
        self.target = target
        # a partial folder belongs to a running process, with everything in it
        if not _PARTIAL.fullmatch(target.parent.name):
            sweep_partials(target.parent, target.name)
        while True:
            self.path, self.handle = _new_name(target), -1
            flags = os.O_RDONLY if is_folder else os.O_WRONLY | os.O_CREAT | os.O_EXCL
            # a signal may come as soon as it exists
            try:
                if is_folder:
                    self.path.mkdir()
                self.handle = os.open(self.path, flags, 0o666)
                lock(self.handle, wait=True)
                if is_at(self.handle, self.path):
                    return
            except FileExistsError:  # that of another process
                raise
            except BaseException:
                self.discard()
                raise
            # another process removed it before it was locked: create another one
            self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self.commit()
        finally:
            self.discard()

    def commit(self) -> None:
        """Replace the target; return once the new content is on disk."""
        os.fsync(self.handle)
        # replaced while still open: until then the lock keeps other processes from removing it
        os.replace(self.path, self.target)
        self._close()
        sync_folder(self.target.parent)

    def discard(self) -> None:
        """Remove the hidden file or folder, if it still exists.

        An error of the system that is being handled and names no file, such as that of a full disk,
        gets the name of the target.
        """
        error = sys.exception()
        if isinstance(error, OSError) and error.errno is not None and error.filename is None:
            error.filename = str(self.target)
        try:
            _remove(self.path)
        finally:
            self._close()

    def _close(self) -> None:
        handle = self.handle
        self.handle = -1
        if handle >= 0:
            os.close(handle)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk, where the file system supports it.

    Without this, a crash may undo a replacement.
    """
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


def sweep_partials(folder: Path, name: str | None = None) -> None:
    """Remove the partial files of killed processes from a folder, of one target or of all."""
    ours = _PARTIAL if name is None else re.compile(rf"\.{re.escape(name)}{_ENDING}")
    with suppress(PermissionError):  # a folder may be writable and not readable
        for path in [entry for entry in folder.iterdir() if ours.fullmatch(entry.name)]:
            # another process may have removed it, or it belongs to another user
            with suppress(OSError):
                _remove_abandoned(path)


def _remove_abandoned(path: Path) -> None:
    # some network file systems lock only files that are open for writing
    handle = os.open(
        path, (os.O_RDONLY if path.is_dir() else os.O_RDWR) | getattr(os, "O_NOFOLLOW", 0)
    )
    try:
        locked = lock(handle)
        if (locked or (locked is None and is_old(path))) and is_at(handle, path):
            _remove(path)
    finally:
        os.close(handle)


def _new_name(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN_BYTES)}.part")


def _remove(path: Path) -> None:
    """Remove a file or folder. A folder is renamed first, as a worker may still write to it."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    moved = _new_name(path.with_name(re.sub(_ENDING, "", path.name).removeprefix(".")))
    with suppress(FileNotFoundError):
        path.rename(moved)
        shutil.rmtree(moved, ignore_errors=True)


def file_digest(path: Path) -> str | None:
    """Return the SHA-256 of a file as hexadecimal text, None of a folder."""
    if not path.is_file():
        return None
    # a table that is read in parts may be larger than memory
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
