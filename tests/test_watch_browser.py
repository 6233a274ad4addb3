"""The page of a watch as people meet it: in a browser, from the file system, with the network off.

Skipped where there is no Chromium or no playwright, unless EVENHAND_NEEDS_BROWSER is 1. Pictures go
to the folder that EVENHAND_SCREENSHOTS names.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from browser.watch_examples import EVIL, WATCHES
from evenhand.report import watch_html
from in_browser import PHONE, WIDE, pages_of, serious_findings

NARROW = {"width": 360, "height": 800}
SIZES = pytest.mark.parametrize("size", [WIDE, NARROW], ids=["1280", "360"])


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("watches")
    for name, made in WATCHES.items():
        (folder / f"{name}.html").write_text(watch_html(made()), encoding="utf-8")
    return folder


@pytest.fixture
def opened(chromium, pages):
    with pages_of(chromium, pages, WATCHES) as open_page:
        yield open_page


def picture(page, name, **options):
    folder = os.environ.get("EVENHAND_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(Path(folder) / f"watch-{name}.png"), full_page=True, **options)


def is_in_first_screen(page, locator):
    box = locator.bounding_box()
    return box is not None and 0 <= box["y"] <= page.viewport_size["height"] - box["height"]


@pytest.mark.parametrize("name", ["alarm", "years", "many", "empty", "unpromised", "hostile"])
def test_status_is_seen_at_once_and_nothing_runs_over(opened, name):
    page = opened(name)
    for size in (WIDE, PHONE, NARROW):
        page.set_viewport_size(size)
        assert is_in_first_screen(page, page.locator(".status"))
        assert is_in_first_screen(page, page.locator(".verdict .lead"))
        assert page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
        picture(page, f"{name}-{size['width']}")


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        ("alarm", NARROW, "dark"),
        ("many", WIDE, "dark"),
        ("empty", NARROW, "light"),
        ("hostile", NARROW, "light"),
    ],
    ids=lambda value: str(value["width"]) if isinstance(value, dict) else value,
)
def test_axe_finds_nothing_serious(opened, name, size, scheme):
    page = opened(name, size, scheme)
    page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    if page.locator(".mark").count():
        page.locator(".mark").first.focus()
    assert serious_findings(page) == []
    picture(page, f"{name}-{size['width']}-{scheme}")


@SIZES
def test_evidence_is_read_with_the_keyboard(opened, size):
    page = opened("years", size)
    figure = "svg[aria-label^='Evidence of each part']"
    marks = page.locator(f"{figure} .mark")
    assert page.locator(f"{figure} .mark[tabindex='0']").count() == 1
    assert marks.count() <= 55  # of 1,000 periods and three parts
    marks.first.focus()
    for key, mark in (("ArrowRight", marks.nth(1)), ("End", marks.last), ("Home", marks.first)):
        page.keyboard.press(key)
        assert page.locator(".tip").inner_text() == mark.get_attribute("aria-label")
    page.keyboard.press("Escape")
    assert not page.locator(".tip").is_visible()


def test_groups_sort_and_filter(opened):
    page = opened("many")
    table = page.locator("[aria-label='Groups']")
    names = lambda: table.locator("tbody tr:visible th").all_inner_texts()  # noqa: E731
    assert names()[0] == WATCHES["many"]()["alarms"][0]["group"]
    head = table.get_by_role("columnheader", name="error")
    head.get_by_role("button").press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    page.get_by_label("Find a group", exact=True).fill("region 7 [40")
    assert names() == ["region 7 and age in [40, 60)"]


def test_data_are_saved_as_json(opened):
    page = opened("hostile")
    with page.expect_download() as saving:
        page.get_by_role("button", name="Download the data").click()
    assert saving.value.suggested_filename == "Watch of script alert 1 script.json"
    saved = json.loads(Path(saving.value.path()).read_text(encoding="utf-8"))
    assert saved["schema"] == "evenhand.watch/1"
    assert saved["sources"]["contexts"] == [EVIL]


def test_page_reads_without_javascript(opened):
    page = opened("alarm", PHONE, java_script_enabled=False)
    assert is_in_first_screen(page, page.locator(".status"))
    assert page.locator("#groups tbody tr").count() == 5
    assert page.locator(".download button:visible, .search:visible").count() == 0


def test_texts_of_charts_are_large_enough_to_read(opened):
    for name in ("alarm", "years"):
        page = opened(name)
        for size in (WIDE, PHONE):
            page.set_viewport_size(size)
            sizes = page.evaluate(
                """() => [...document.querySelectorAll("svg.chart text")].map((text) =>
                  parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a)"""
            )
            assert len(sizes) > 10
            assert min(sizes) >= 9
