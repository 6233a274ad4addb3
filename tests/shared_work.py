"""Work that several tests share, done once for all workers of a run."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


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


def save_blank(figure: Any, target: Any, **options: Any) -> None:
    """Stand in for `Figure.savefig`, which takes half of the time of a study."""
    blank = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>'
    if hasattr(target, "write"):
        target.write(blank)
    else:
        Path(target).write_bytes(blank)


def made_small(run: Callable[[Path], str], **sizes: int) -> Callable[[Path], str]:
    """Run a study at other sizes, and draw the figures of its page alone.

    The files of figures are blank: those of the toy study, saved by the same function, are not.
    `sizes` are constants of modules of studies, written module__NAME.
    """

    def quick_run(out: Path) -> str:
        from matplotlib.figure import Figure

        draw = Figure.savefig

        def save(figure: Any, target: Any, **options: Any) -> None:
            (draw if hasattr(target, "write") else save_blank)(figure, target, **options)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Figure, "savefig", save)
            for name, size in sizes.items():
                patch.setattr(f"reproduction.{name.replace('__', '.')}", size)
            return run(out)

    return quick_run
