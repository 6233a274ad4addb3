"""Built pages of the documentation in a browser. `make docs` builds them; skipped without them."""

from pathlib import Path

import pytest

from in_browser import PHONE, WIDE, serious_findings

BUILT = Path(__file__).parents[1] / "docs" / "_build" / "html"

pytestmark = pytest.mark.skipif(
    not (BUILT / "index.html").is_file(), reason="the documentation is not built"
)

# the front page; formulas and code; tables; the gallery and a figure
PAGES = ("index", "method", "which", "auto_examples/index", "auto_examples/plot_audit")


@pytest.mark.parametrize("name", PAGES)
def test_pages_can_be_read_by_everybody(chromium, name):
    for size, scheme in ((WIDE, "light"), (PHONE, "dark")):
        page = chromium.new_page(viewport=size, color_scheme=scheme)
        page.goto((BUILT / f"{name}.html").as_uri(), wait_until="load")
        assert serious_findings(page) == []
        # tables, code and figures scroll; the page does not
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.close()


def test_figures_scroll_on_a_phone_and_fit_a_wide_screen(chromium):
    boxes = "all => all.map(box => box.scrollWidth > box.clientWidth)"
    for size, scrolls in ((WIDE, False), (PHONE, True)):
        page = chromium.new_page(viewport=size)
        page.goto((BUILT / "auto_examples" / "plot_audit.html").as_uri(), wait_until="load")
        assert page.eval_on_selector_all(".scrolling", boxes) == [scrolls, scrolls]
        page.close()


def test_pages_have_a_description_and_an_icon(chromium):
    page = chromium.new_page()
    for name in PAGES:
        page.goto((BUILT / f"{name}.html").as_uri())
        tags = {
            tag: page.locator(f"meta[{tag}]").get_attribute("content")
            for tag in ("name=description", "property='og:title'", "property='og:description'")
        }
        assert all(tags.values()), tags
        assert 20 <= len(tags["name=description"]) <= 200
        icon = page.locator("link[rel~=icon]").get_attribute("href")
        assert (BUILT / name).parent.joinpath(icon).is_file()
    page.close()
