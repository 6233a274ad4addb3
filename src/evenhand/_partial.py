"""Hidden files and folders that take the place of a finished one; those of killed runs are swept.

A partial `.NAME.xxxxxxxx.part` lies beside NAME and is locked (flock) by the process that writes it. The system
releases the lock however that process ends, so a partial without a lock belongs to nobody.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
from contextlib import suppress
from pathlib import Path

from evenhand._checks import bad_input

_TOKEN_BYTES = 4
_ENDING = rf"\.[0-9a-f]{{{2 * _TOKEN_BYTES}}}\.part"
_PARTIAL = re.compile(rf"\..+{_ENDING}", re.DOTALL)


def link_target(path: str | os.PathLike[str]) -> Path:
    """Return the path that is written: where symbolic links lead, whether anything is there or not.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Path(folder, "latest.csv").symlink_to("march.csv")
    ...     link_target(Path(folder, "latest.csv")).name
    'march.csv'
    """
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise bad_input(str(path), "lead to a file", "a symbolic link that leads to itself", "remove the link")
    return target


def fsync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk: without this a crash may undo a replacement."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:  # a folder that can be written to but not listed
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP}:  # file systems without it
            raise
    finally:
        os.close(handle)


class Partial:
    """A hidden file or folder beside `target`, made and locked here; removes those of killed runs first.

    Parameters
    ----------
    target : Path
        Where the finished file or folder goes; not a symbolic link, see `link_target`.
    is_folder : bool, default False
        Whether to make a folder.

    Attributes
    ----------
    path : Path
        The hidden file or folder.
    handle : int
        Its open descriptor, of which the lock is; for a file it can be written to.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     partial = Partial(Path(folder, "out.csv"))
    ...     _ = os.write(partial.handle, b"id")
    ...     partial.commit()
    ...     os.listdir(folder)
    ['out.csv']
    """

    def __init__(self, target: Path, *, is_folder: bool = False) -> None:
        self.target = target
        sweep(target)
        while True:
            self.path = _new_name(target)
            self.handle = _made_folder(self.path) if is_folder else _made_file(self.path)
            _lock(self.handle)
            if _is_at(self.handle, self.path):
                return
            self._close()  # another run swept it before it was locked

    def commit(self) -> None:
        """Give it the place of the target, and wait until that is on disk."""
        os.fsync(self.handle)
        os.replace(self.path, self.target)
        self._close()
        fsync_folder(self.target.parent)

    def discard(self) -> None:
        """Remove it, if it is still there."""
        _remove(self.path)
        self._close()

    def _close(self) -> None:
        handle, self.handle = self.handle, -1
        if handle >= 0:
            os.close(handle)


def sweep(target: Path) -> None:
    """Remove the partials of `target` that no running process holds."""
    name = re.compile(rf"\.{re.escape(target.name)}{_ENDING}")
    if _PARTIAL.fullmatch(target.parent.name):
        return  # a folder of this run, and maybe of many files
    with suppress(PermissionError):  # a folder that can be written to but not listed
        for path in [entry for entry in target.parent.iterdir() if name.fullmatch(entry.name)]:
            with suppress(OSError):  # gone already, or held: both are as they should be
                _remove_unheld(path)


def _remove_unheld(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_at(handle, path):
            _remove(path)
    finally:
        os.close(handle)


def _new_name(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN_BYTES)}.part")


def _made_file(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)


def _made_folder(path: Path) -> int:
    path.mkdir()
    return os.open(path, os.O_RDONLY)


def _lock(handle: int) -> None:
    """Wait for the lock; a file system without locks (some network folders) has no sweep either."""
    with suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX)


def _is_at(handle: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def _remove(path: Path) -> None:
    """Remove a file or folder. A folder is renamed first, as a worker may still make files by its old name."""
    if not path.is_dir():
        path.unlink(missing_ok=True)
        return
    moved = _new_name(path.with_name(re.sub(_ENDING, "", path.name).removeprefix(".")))
    with suppress(FileNotFoundError):
        path.rename(moved)
        shutil.rmtree(moved, ignore_errors=True)
