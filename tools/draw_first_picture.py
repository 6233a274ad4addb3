"""Draw the first picture of the README from its script in the gallery.

The file carries what the script printed, which a test compares with what the script prints.
"""

from __future__ import annotations

import contextlib
import io
import runpy
from pathlib import Path

import matplotlib as mpl

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "docs" / "gallery" / "plot_blind_spot.py"
PICTURE = ROOT / "docs" / "_static" / "blind-spot.png"


def main() -> None:
    """Run the script and save its figure."""
    mpl.use("Agg")
    from matplotlib import pyplot as plt

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(SCRIPT), run_name="__main__")
    # as wide as pages show it, twice as fine
    plt.savefig(PICTURE, dpi=170, metadata={"Description": printed.getvalue()})


if __name__ == "__main__":
    main()
