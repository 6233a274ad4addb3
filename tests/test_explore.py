"""The sliders of the documentation show what `plan` computes, rounded to the safe side."""

import json
import re

import pytest

from built_page import PAGES, built_page
from evenhand import plan
from in_browser import PHONE, WIDE, serious_findings

pytestmark = pytest.mark.skipif(not PAGES.exists(), reason="the documentation is not here")

ROUNDING = 1e-6
"""Difference that another processor may make."""

SETTINGS = [(0.2, 1000, 0.3), (0.1, 300, 0.3), (0.5, 10_000, 0.1)]
"""Group size, rows and error that are compared with the plan; all are on the sliders."""


@pytest.fixture(scope="module")
def table():
    return json.loads((PAGES / "explore.json").read_text(encoding="utf-8"))


def places(table, mass, rows, error):
    return table["masses"].index(mass), table["rows"].index(rows), table["errors"].index(error)


def safe_percent(shown, exact, *, is_bound_below):
    """Return whether a whole percentage is on the safe side of a share, by less than a point."""
    excess = 100 * exact - shown if is_bound_below else shown - 100 * exact
    return -ROUNDING <= excess < 1 + ROUNDING


@pytest.mark.parametrize(("mass", "rows", "error"), SETTINGS)
def test_the_table_has_the_values_of_the_plan(table, mass, rows, error):
    exact = plan(error, mass, rows=[rows]).certificates[0]
    of_mass, of_rows, of_error = places(table, mass, rows, error)
    alpha, price, wider, floor, ceiling = table["certificates"][of_mass][of_error][of_rows]
    assert 0 <= exact.alpha / alpha - 1 < 0.01
    assert -ROUNDING <= price - exact.price < 0.01 + ROUNDING
    assert safe_percent(wider, exact.wider, is_bound_below=False)
    assert safe_percent(floor, exact.coverage_low, is_bound_below=True)
    assert safe_percent(ceiling, exact.coverage_high, is_bound_below=False)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("explore")
    return built_page(folder, "plan", "explore", ["explore.json", "_static/explore.js"])


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["1280", "390"])
def test_sliders_move_by_keyboard_and_show_the_plan(chromium, page_file, table, size):
    page = chromium.new_page(viewport=size)
    page.context.set_offline(True)
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(page_file.as_uri())
    for setting in SETTINGS:
        at = places(table, *setting)
        for name, place in zip(("mass", "rows", "error"), at, strict=True):
            slider = page.locator(f"#explore-{name}")
            slider.focus()
            page.keyboard.press("Home")
            for _ in range(place):
                page.keyboard.press("ArrowRight")
        mass, rows, error = setting
        assert page.locator("#explore-mass").get_attribute("aria-valuetext") == (
            f"{100 * mass:g}% of people"
        )
        # the table is compared with the plan above
        _, price, wider, floor, ceiling = table["certificates"][at[0]][at[2]][at[1]]
        shown = [
            float(re.search(r"[\d.]+", page.locator(f"dd.{name}").text_content()).group())
            for name in ("price", "wider", "floor", "ceiling")
        ]
        assert shown == [price, wider, floor, ceiling]
        expected = f"evenhand plan --goal {error} --group-mass {mass} --rows {rows}"
        assert page.locator("pre.command").text_content() == (expected)
    # the hardest corner is refused in words
    for name in ("mass", "rows", "error"):
        page.locator(f"#explore-{name}").focus()
        page.keyboard.press("Home")
    assert "cannot be certified" in page.locator(".sentence").text_content()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert serious_findings(page, "form.explore") == []
    assert errors == []
    page.close()
