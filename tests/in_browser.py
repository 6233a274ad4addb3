"""Pages opened in Chromium. Skipped, with the reason, where it or a package is missing.

With EVENHAND_NEEDS_BROWSER=1 nothing is skipped.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import pytest

CHROMIUM = shutil.which("chromium")
MUST_RUN = os.environ.get("EVENHAND_NEEDS_BROWSER") == "1"
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def missing(what: str) -> NoReturn:
    if MUST_RUN:
        pytest.fail(f"EVENHAND_NEEDS_BROWSER is 1, but there is no {what}")
    pytest.skip(f"there is no {what}: no page is opened")


@contextmanager
def started() -> Iterator[Any]:
    """Start Chromium."""
    if CHROMIUM is None:
        missing("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        missing("playwright")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def serious_findings(page: Any) -> list[tuple[str, str]]:
    """Return what axe finds serious or critical on a page, each with the first place."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        missing("axe-playwright-python")
    found = Axe().run(page).response["violations"]
    return [
        (finding["id"], finding["nodes"][0]["html"][:200])
        for finding in found
        if finding["impact"] in {"serious", "critical"}
    ]
