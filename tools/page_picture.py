"""Pictures of the first screen of a page, with its status and headline as their description."""

from __future__ import annotations

from pathlib import Path

from PIL import Image, PngImagePlugin
from playwright.sync_api import sync_playwright

CHROMIUM = "/usr/bin/chromium"


def take_picture(page: Path, picture: Path) -> None:
    """Save the first screen of a page; the file carries its status and headline, a line each."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        screen = browser.new_page(
            viewport={"width": 1180, "height": 620}, device_scale_factor=1.5, color_scheme="light"
        )
        screen.goto(page.as_uri())
        picture.write_bytes(screen.screenshot())
        parts = [screen.locator(name).first.inner_text() for name in (".verdict", "h1")]
        browser.close()
    about = PngImagePlugin.PngInfo()
    about.add_text("Description", "\n".join(" ".join(part.split()) for part in parts))
    with Image.open(picture) as taken:
        # few colours are enough for a page
        taken.convert("P", palette=Image.Palette.ADAPTIVE, colors=128).save(
            picture, pnginfo=about, optimize=True
        )
