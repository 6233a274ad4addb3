"""Draw the second picture of the README: the first screen of the report of `evenhand demo`.

Chromium takes the picture. The file carries the status and the headline of the report, which a test
compares with those of a new demo.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image, PngImagePlugin
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "_static" / "report.png"
CHROMIUM = "/usr/bin/chromium"


def main() -> None:
    """Run the demo and save the first screen of its report."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "evenhand", "demo", "--out", "demo"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        shown = photographed(Path(folder, "demo", "report.html"))
    about = PngImagePlugin.PngInfo()
    about.add_text("Description", shown)
    with Image.open(PICTURE) as picture:
        # few colours are enough for a page
        picture.convert("P", palette=Image.Palette.ADAPTIVE, colors=128).save(
            PICTURE, pnginfo=about, optimize=True
        )


def photographed(page: Path) -> str:
    """Save the first screen of a page, and return its status and headline."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        screen = browser.new_page(
            viewport={"width": 1180, "height": 620}, device_scale_factor=1.5, color_scheme="light"
        )
        screen.goto(page.as_uri())
        PICTURE.write_bytes(screen.screenshot())
        parts = [screen.locator(name).first.inner_text() for name in (".status", ".verdict")]
        browser.close()
    return " ".join(" ".join(parts).split())


if __name__ == "__main__":
    main()
