"""Decision logs on disks that are full."""

import re
import subprocess
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from evenhand.service import LogError, open_log, verify
from log_writers import adding


@contextmanager
def small_disk(megabytes):
    """Mount a small disk, or skip the test if that is not allowed."""
    # not in a folder of pytest, which other users may not enter
    folder = Path(tempfile.mkdtemp())
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", str(folder)]
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except OSError as error:
        pytest.skip(f"no small disk can be mounted here: {error}")
    if done.returncode != 0:
        pytest.skip(f"no small disk can be mounted here: {done.stderr}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
        folder.rmdir()


def fill(log):
    """Add entries until there is an error; return the confirmed ones and the error."""
    confirmed = []

    def add_without_end():
        for i in range(100_000):
            name = f"name-{time.time_ns()}-{i}"
            log.run(adding(name))
            confirmed.append(name)

    with pytest.raises(LogError) as caught:
        add_without_end()
    assert str(caught.value).startswith(log.source)
    assert "\n" not in str(caught.value)
    return confirmed, caught.value


def check_full_disk(log, *, make_space, message):
    """Fill the disk under a log, look at what is in it, make space, and go on."""
    confirmed, error = fill(log)
    assert message in str(error)
    assert confirmed
    # readers go on, and another attempt fails alike and changes nothing
    for _ in range(2):
        assert [entry.values["name"] for entry in log.entries()] == confirmed
        assert verify(log).n_entries == len(confirmed)
        with pytest.raises(LogError, match=re.escape(message)):
            log.run(lambda t: [adding(f"{i}")(t) for i in range(2000)])
    make_space()
    log.run(adding("later"))
    assert [entry.values["name"] for entry in log.entries()] == [*confirmed, "later"]
    assert verify(log).n_entries == len(confirmed) + 1
    again = open_log(log.source)
    assert again.get("later") == log.get("later") is not None
    again.close()
