"""Key files, which contain the secret key of people's draws."""

from __future__ import annotations

import os
import re
import shlex
import stat
from pathlib import Path

from evenhand._validate import InputError, about
from evenhand.cli.messages import inform

MAKE_KEY_FILE = (
    "python -c \"import os, secrets; os.umask(0o77); open('KEYFILE',"
    " 'x').write(secrets.token_hex(32))\""
)
"""Command that creates a key file: the same bytes from any shell (some write `>` as UTF-16),
readable for the owner only, and never over another key."""

OTHERS = stat.S_IRGRP | stat.S_IWGRP | stat.S_IROTH | stat.S_IWOTH


def read_key(path: Path) -> bytes:
    """Return the key in a file of one line of printable ASCII, without the newline."""
    from evenhand.draws import check_key

    try:
        content = path.read_bytes()
        mode = path.stat().st_mode
    except OSError as error:
        raise InputError(f"{path}: the key file cannot be read ({error.strerror})") from error
    # editors add a newline, in different forms, which must not change the draws
    key = re.sub(rb"\r?\n\Z", b"", content)
    # other characters may be saved as other bytes later, which would change all draws; the key
    # itself is not shown, as messages may be logged
    if key and not re.fullmatch(rb"[!-~]([ -~]*[!-~])?", key):
        raise InputError(
            f"{path}: the key file must contain one line of printable ASCII characters, without"
            f" blanks at its ends and without a byte order mark; create one with: {MAKE_KEY_FILE}"
        )
    with about(str(path)):
        check_key(key)
    # anyone who knows the key can compute the draws in advance, so only the owner should read it;
    # pipes have no permanent content
    if os.name == "posix" and stat.S_ISREG(mode) and mode & OTHERS:
        remedy = f"run: chmod 600 {shlex.quote(str(path))}"
        inform(f"warning: {path}: other users can read or change the key; {remedy}")
    return key
