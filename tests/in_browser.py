"""Pages opened in Chromium; skipped where it is missing, unless EVENHAND_NEEDS_BROWSER is 1."""

import os
import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium")
MUST_RUN = os.environ.get("EVENHAND_NEEDS_BROWSER") == "1"
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


def missing(what):
    if MUST_RUN:
        pytest.fail(f"EVENHAND_NEEDS_BROWSER is 1, but there is no {what}")
    pytest.skip(f"there is no {what}: no page is opened")


@contextmanager
def started():
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


@contextmanager
def pages_of(chromium, folder, names):
    """Open pages of a folder; check in the end for messages and for requests beyond the pages."""
    contexts, complaints, requests = [], [], []

    def open_page(name, size=WIDE, scheme="light", **options):
        context = chromium.new_context(offline=True, viewport=size, color_scheme=scheme, **options)
        context.set_default_timeout(10_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))
        page.on("request", lambda request: requests.append(request.url))
        page.goto((folder / f"{name}.html").as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []
    # the file that a button saves is made in the page itself
    others = [url for url in requests if not url.startswith("blob:")]
    files = {url.rpartition("/")[2].partition("#")[0] for url in others}
    assert files <= {f"{name}.html" for name in names}
    assert all(url.startswith("file://") for url in others)


def serious_findings(page, part=None):
    """Return what axe finds serious or critical on a page or part, each with the first place."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        missing("axe-playwright-python")
    options = {"resultTypes": ["violations"]}
    found = Axe().run(page, context=part, options=options).response["violations"]
    return [
        (finding["id"], finding["nodes"][0]["html"][:200])
        for finding in found
        if finding["impact"] in {"serious", "critical"}
    ]
