"""Work that several tests share, done once for all workers of a run."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path


def made_once(place: Path, make: Callable[[Path], str]) -> tuple[Path, str]:
    """Return a folder and the text that `make` returned when it filled it, in whichever worker."""
    text = place.with_suffix(".txt")
    with place.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not text.exists():  # otherwise the folder is complete
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            text.write_text(make(place), encoding="utf-8")
    return place, text.read_text(encoding="utf-8")
