"""Pages as people meet them: in a browser, from the file system, with the network off.

Skipped, saying so, where there is no Chromium or no playwright, unless EVENHAND_NEEDS_BROWSER is 1.
Pictures go to the folder that EVENHAND_SCREENSHOTS names.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand
from browser.report_examples import AUDITS, EVIL
from browser.watch_examples import WATCHES
from evenhand.report import audit_html, watch_html
from in_browser import PHONE, WIDE, pages_of, serious_findings
from test_times_report import audited as times_audited

MADE = ["full_deterministic", "full_randomized", "many_groups", "no_groups", "hostile"]
REAL = ["events", "changes", "times"]
WATCHED = ["alarm", "years", "many", "empty", "hostile"]


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name in MADE:
        (folder / f"{name}.html").write_text(audit_html(AUDITS[name]()), encoding="utf-8")
    for name in WATCHED:
        page = watch_html(WATCHES[name]())
        (folder / f"watch-{name}.html").write_text(page, encoding="utf-8")
    changes = changed_events()
    changes.audits[1].to_html(folder / "events.html")
    changes.to_html(folder / "changes.html")
    times_audited("randomized").to_html(folder / "times.html")
    return folder


def changed_events():
    """Audits of events, whose probabilities are right before, and wrong for women after."""
    rng = np.random.default_rng(0)
    n = 600
    X = pd.DataFrame({"age": rng.uniform(20, 80, n).round(), "sex": rng.choice(["f", "m"], n)})
    p = 1 / (1 + np.exp(-(X["age"].to_numpy() - 50) / 15))
    is_woman = (X["sex"] == "f").to_numpy()
    y = (rng.random(n) < np.where(is_woman, p**4, p)).astype(float)
    predicted = [np.where(is_woman, p**power, p) for power in (4, 1)]
    quick = {"masses": (0.2, 1.0), "learned_masses": (), "n_simulations": 2}
    both = map(evenhand.Forecast.from_probability, predicted)
    return evenhand.compare(*both, X, y, groups=["sex"], random_state=0, **quick)


@pytest.fixture
def opened(chromium, reports):
    names = MADE + REAL + [f"watch-{name}" for name in WATCHED]
    with pages_of(chromium, reports, names) as open_report:
        yield open_report


def picture(page, name, **options):
    folder = os.environ.get("EVENHAND_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(Path(folder) / f"{name}.png"), **options)


def is_in_first_screen(page, locator):
    box = locator.bounding_box()
    return box is not None and 0 <= box["y"] <= page.viewport_size["height"] - box["height"]


@pytest.mark.parametrize(
    "name", ["full_deterministic", "hostile", *REAL, "watch-years", "watch-empty", "watch-hostile"]
)
def test_verdict_is_seen_at_once_and_nothing_runs_over(opened, reports, name):
    page = opened(name)
    for size in (WIDE, PHONE):
        page.set_viewport_size(size)
        assert is_in_first_screen(page, page.locator(".status, .verdict .lead").first)
        assert is_in_first_screen(page, page.locator(".verdict .lead"))
        assert page.evaluate(
            "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
        )
        picture(page, f"{name}-{size['width']}")
        picture(page, f"{name}-{size['width']}-whole", full_page=True)
    assert (reports / f"{name}.html").stat().st_size < 1_500_000


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        ("full_randomized", WIDE, "light"),
        ("full_deterministic", PHONE, "dark"),
        ("events", WIDE, "light"),
        ("changes", PHONE, "dark"),
        ("times", WIDE, "dark"),
        ("watch-alarm", PHONE, "dark"),
        ("watch-many", WIDE, "light"),
    ],
    ids=lambda value: str(value["width"]) if isinstance(value, dict) else value,
)
def test_axe_finds_nothing_serious(opened, name, size, scheme):
    page = opened(name, size, scheme)
    page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    if name != "changes":  # a comparison has no chart
        page.locator(".mark").first.focus()
    assert serious_findings(page) == []
    if scheme == "dark":
        picture(page, f"{name}-{size['width']}-dark-whole", full_page=True)


def names_of(page, table):
    return page.locator(f"[aria-label='{table}'] tbody tr:visible th").all_inner_texts()


def test_table_of_groups_sorts(opened):
    page = opened("many_groups", PHONE)
    table = page.locator("[aria-label='Named groups']")
    head = table.get_by_role("columnheader", name="rows")
    button = head.get_by_role("button")
    button.click()
    assert head.get_attribute("aria-sort") == "descending"
    assert names_of(page, "Named groups")[0] == "everyone"  # 1,500 rows
    button.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert names_of(page, "Named groups")[0] == "region=north"  # 21
    # numbers sort as numbers, and unknown ones come last
    page.locator("#groups").get_by_role("columnheader", name="error").get_by_role("button").click()
    cells = table.locator("tbody tr td:nth-child(2)").all_inner_texts()
    values = [float(cell.split()[0]) for cell in cells[:-1]]
    assert values == sorted(values, reverse=True)
    assert cells[-1].strip() == "-"
    by_name = table.get_by_role("columnheader", name="group")
    by_name.get_by_role("button").click()
    assert names_of(page, "Named groups")[0] == "age in [0, 5) and sex=f"
    assert head.get_attribute("aria-sort") is None
    status = page.locator("#groups [role=status]")
    assert status.inner_text() == "304 of 304 shown. Sorted by group, ascending."


def test_table_of_groups_filters(opened):
    page = opened("many_groups")
    field, status = (
        page.get_by_label("Find a group", exact=True),
        page.locator("#groups [role=status]"),
    )
    assert status.inner_text() == "304 of 304 shown."
    field.press_sequentially("AGE [12")
    # words in any order, and numbers of other columns are none of them
    lower = [120, 123, 126, 129, 12]
    assert sorted(names_of(page, "Named groups")) == sorted(
        f"age in [{i}, {i + 5}) and sex=f" for i in lower
    )
    assert status.inner_text() == "5 of 304 shown."
    field.fill("no such group")
    assert names_of(page, "Named groups") == []
    assert status.inner_text() == "0 of 304 shown."
    field.fill("")
    assert len(names_of(page, "Named groups")) == 304


FIGURES = {
    "histogram": ("svg[aria-label^='Histogram']", "PIT 0% to 5%: 5.1% of outcomes"),
    "calibration": ("svg[aria-label^='Calibration curve']", "Predicted 5%: 5.1% of outcomes"),
    "coverage": ("svg[aria-label^='Certified bounds']", "In every group of at least 10% of people"),
    "picture": (".picture svg.rows", "everyone: off by 4.1 points"),
}


def test_figures_tell_their_values_to_the_mouse(opened):
    size = PHONE
    page = opened("full_randomized", size)
    tip = page.locator(".tip")
    assert not tip.is_visible()
    for name, (where, says) in FIGURES.items():
        mark = page.locator(f"{where} .mark").first
        mark.scroll_into_view_if_needed()
        box = mark.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        tip.wait_for(state="visible")
        assert tip.inner_text().startswith(says)
        inside = tip.bounding_box()
        assert inside["x"] >= 0
        assert inside["x"] + inside["width"] <= size["width"]
        picture(page, f"hover-{name}-{size['width']}")
        page.mouse.move(0, 0)
        tip.wait_for(state="hidden")


def test_figures_tell_their_values_to_the_keyboard(opened):
    page = opened("full_randomized")
    tip = page.locator(".tip")
    for where, _ in FIGURES.values():
        marks = page.locator(f"{where} .mark")
        # one stop of the Tab key for all marks; the arrows lead on
        assert page.locator(f"{where} .mark[tabindex='0']").count() == 1
        for key, mark in (
            (None, marks.first),
            ("ArrowRight", marks.nth(1)),
            ("End", marks.last),
            ("Home", marks.first),
        ):
            if key is None:
                mark.focus()
            else:
                page.keyboard.press(key)
            assert tip.is_visible()
            assert tip.inner_text() == mark.get_attribute("aria-label")
            assert mark.get_attribute("tabindex") == "0"
        page.keyboard.press("Escape")
        assert not tip.is_visible()


def test_keyboard_reaches_the_report_figures_and_tables(opened):
    page = opened("full_randomized")
    page.keyboard.press("Tab")
    link = page.locator(".skip")
    assert link.evaluate("link => link === document.activeElement")
    assert is_in_first_screen(page, link)
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    summary = "How this was decided"
    assert page.evaluate("document.activeElement.textContent") == summary
    page.keyboard.press("Tab")
    assert page.locator(".tip").is_visible()  # the scale, first thing in the report that has values
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.closest('section')?.id"))
    assert {"calibration", "groups", "features", "proof"} <= seen


def test_page_reads_without_javascript(opened):
    page = opened("full_deterministic", PHONE, java_script_enabled=False)
    assert is_in_first_screen(page, page.locator(".verdict .lead"))
    assert page.locator("#groups tbody tr").count() == 4
    assert page.locator(".search:visible").count() == 0
    assert page.locator("svg.chart:not(.rows)").count() == 2
    first = page.locator(".mark title").first.text_content()
    assert first.startswith("everyone: off by 4.1 points (interval 2.0 to 6.2)")
    page.locator("#calibration summary").first.click()
    assert page.locator("#calibration details table").first.is_visible()


def test_script_that_is_not_of_the_page_does_not_run(chromium, reports, tmp_path):
    text = (reports / "full_randomized.html").read_text(encoding="utf-8")
    (tmp_path / "report.html").write_text(
        text.replace("</main>", "<script>document.title = 'ran'</script></main>")
    )
    page = chromium.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    assert page.title() == "Audit of risk model, randomized"
    assert page.locator(".tip").count() == 1  # its own does
    page.close()


def test_data_of_a_watch_are_saved_as_json(opened):
    page = opened("watch-hostile")
    with page.expect_download() as saving:
        page.get_by_role("button", name="Download the data").click()
    assert saving.value.suggested_filename == "Watch of script alert 1 script.json"
    saved = json.loads(Path(saving.value.path()).read_text(encoding="utf-8"))
    assert saved["schema"] == "evenhand.watch/1"
    assert saved["sources"]["contexts"] == [EVIL]
