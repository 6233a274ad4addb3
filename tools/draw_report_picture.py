"""Draw the second picture of the README: the first screen of the report of `evenhand demo`.

Chromium takes the picture. The file carries the status and the headline of the report, which a test
compares with those of a new demo.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from page_picture import take_picture

PICTURE = Path(__file__).parents[1] / "docs" / "_static" / "report.png"


def main() -> None:
    """Run the demo and save the first screen of its report."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "evenhand", "demo", "--out", "demo"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        take_picture(Path(folder, "demo", "report.html"), PICTURE)


if __name__ == "__main__":
    main()
