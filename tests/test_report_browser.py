"""Pages as people meet them: in a browser, from the file system, with the network off.

Skipped, saying so, where there is no Chromium or no playwright, unless EVENHAND_NEEDS_BROWSER is 1.
Pictures go to the folder that EVENHAND_SCREENSHOTS names.
"""

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand
from browser.report_examples import AUDITS, made
from browser.watch_examples import WATCHES
from evenhand.audits import Search
from evenhand.report import audit_html, watch_html
from evenhand.results import AuditRows
from in_browser import PHONE, WIDE, pages_of, serious_findings
from test_golden_pages import NAMES, PAGES
from test_times_report import audited as times_audited

MADE = ["many_groups", "no_groups", "hostile"]
REAL = ["events", "changes", "times"]
WATCHED = ["alarm", "years", "many", "empty", "hostile"]


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name in MADE:
        (folder / f"{name}.html").write_text(audit_html(made(AUDITS[name]())), encoding="utf-8")
    for name in NAMES:
        page = audit_html(AuditRows.read((PAGES / f"{name}.json").read_bytes()))
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
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
    quick = {"search": Search(masses=(0.2, 1.0), learned_masses=(), n_simulations=2)}
    both = map(evenhand.Forecast.from_probability, predicted)
    return evenhand.compare(*both, X, y, groups=["sex"], random_state=0, **quick)


@pytest.fixture
def opened(chromium, reports):
    names = [*MADE, *NAMES, *REAL, *(f"watch-{name}" for name in WATCHED)]
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
    "name", ["audit", "hostile", *REAL, "watch-years", "watch-empty", "watch-hostile"]
)
def test_verdict_is_seen_at_once_and_nothing_runs_over(opened, reports, name):
    page = opened(name)
    for size in (WIDE, PHONE):
        page.set_viewport_size(size)
        assert is_in_first_screen(page, page.locator(".verdict, h1").first)
        assert is_in_first_screen(page, page.locator("h1"))
        # a table with the verdict on each change in its last column is not scrolled either
        boxes = "html, .box" if name == "changes" else "html"
        for wide, seen in page.locator(boxes).evaluate_all(
            "all => all.map(one => [one.scrollWidth, one.clientWidth])"
        ):
            assert wide <= seen
        picture(page, f"{name}-{size['width']}-whole", full_page=True)
    assert (reports / f"{name}.html").stat().st_size < 1_500_000


@pytest.mark.parametrize("name", [*NAMES, "events", "times"])
def test_an_audit_is_at_most_700_words_and_three_pages_of_a4(opened, name):
    page = opened(name)
    words = page.locator("main").inner_text().split()
    # signs that stand alone are no words
    assert sum(any(sign.isalnum() for sign in word) for word in words) <= 700
    assert len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))) <= 3


@pytest.mark.parametrize(
    ("name", "size", "scheme"),
    [
        ("audit-randomized", WIDE, "light"),
        ("audit", PHONE, "dark"),
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
    assert serious_findings(page) == []
    if scheme == "dark":
        picture(page, f"{name}-{size['width']}-dark-whole", full_page=True)


def names_of(page):
    """Names in both tables of groups, those that a search leaves out excepted."""
    page.locator("#others").evaluate("one => { one.open = true }")
    return page.locator("[aria-label$='roups'] tr:visible > th[scope=row]").all_inner_texts()


def test_groups_sort_across_the_first_table_and_the_others(opened):
    page = opened("many_groups")
    head = page.locator("#groups").get_by_role("columnheader", name="rows")
    button = head.get_by_role("button")
    button.click()
    assert head.get_attribute("aria-sort") == "descending"
    assert names_of(page)[:3] == ["Everyone", "age <= 58", "sex = man"]  # 2,000, 1,047 and 1,030
    assert page.locator("#groups tbody tr").count() == 11
    button.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert names_of(page)[0] == "age in [0, 5) and sex=f"  # 31
    # numbers sort as numbers, and unknown ones come last
    page.locator("#groups").get_by_role("columnheader", name="error").get_by_role("button").click()
    cells = page.locator("[aria-label$='roups'] td[data-l='Error in points']").all_inner_texts()
    known = [cell for cell in cells if cell.strip() != "-"]
    assert cells[: len(known)] == known
    values = [float(cell.split()[0]) for cell in known]
    assert values == sorted(values, reverse=True)
    page.locator("#groups").get_by_role("columnheader", name="group").get_by_role("button").click()
    assert names_of(page)[0] == "age <= 58"
    assert head.get_attribute("aria-sort") is None
    status = page.locator("#groups [role=status]")
    assert status.inner_text() == "310 of 310 shown. Sorted by Group, ascending."


def test_a_search_opens_the_other_groups(opened):
    page = opened("many_groups")
    field = page.get_by_label("Find a group")
    status = page.locator("#groups [role=status]")
    assert not page.locator("#others").evaluate("one => one.open")
    field.press_sequentially("AGE [12")
    assert page.locator("#others").evaluate("one => one.open")
    # words in any order, and numbers of other columns are none of them
    lower = [120, 123, 126, 129, 12]
    assert sorted(names_of(page)) == sorted(f"age in [{i}, {i + 5}) and sex=f" for i in lower)
    assert status.inner_text() == "5 of 310 shown."
    field.fill("no such group")
    assert names_of(page) == []
    field.fill("")
    assert len(names_of(page)) == 310


def test_keyboard_reaches_the_search_the_tables_and_the_folds(opened):
    page = opened("audit-randomized")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.type") == "search"
    seen = set()
    for _ in range(30):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.closest('main > *')?.id"))
    assert {"groups", "others", "calibration", "decided", "proof", "provenance"} <= seen
    fold = page.locator("#proof")
    fold.locator("summary").first.press("Enter")
    assert fold.evaluate("one => one.open")


def test_page_reads_without_javascript(opened):
    page = opened("audit", PHONE, java_script_enabled=False)
    assert is_in_first_screen(page, page.locator("h1"))
    assert page.locator("#groups tbody tr").count() == 11
    assert page.locator("input").count() == 0
    # of both drawings of the picture one is shown
    for size, width in ((PHONE, "narrow"), (WIDE, "wide")):
        page.set_viewport_size(size)
        shown = page.locator(".picture svg.chart:visible")
        assert [one.get_attribute("class") for one in shown.all()] == [f"chart {width}"]
    assert page.locator("#calibration svg.chart").count() == 2
    said = page.locator(".picture svg.wide .mark title").all_text_contents()
    assert "all people: the 80% interval covers 75.0% (2,000 rows); problem found." in said
    page.locator("#calibration > summary").click()
    assert page.locator("#calibration svg.chart").first.is_visible()


def test_script_that_is_not_of_the_page_does_not_run(chromium, reports, tmp_path):
    text = (reports / "audit-randomized.html").read_text(encoding="utf-8")
    (tmp_path / "report.html").write_text(
        text.replace("</main>", "<script>document.title = 'ran'</script></main>")
    )
    page = chromium.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    assert page.title() == "Audit of randomized model"
    assert page.locator("input[type=search]").count() == 1  # its own does
    page.close()
