"""Files are replaced in one step: an interrupted write leaves the old content intact."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from evenhand._checks import InputError
from evenhand._partial import link_target


def replace_file(path: Path, content: bytes) -> None:
    """Write a file in one step: what is there stays until the new content is on disk."""
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=".draft-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(draft, 0o644)
        os.replace(draft, path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in one step; InputError if its folder is missing or write-protected."""
    target = Path(path)
    try:
        replace_file(link_target(target), text.encode())
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror}; name a file in an existing folder") from error
