"""The HTML report: its contents, well formed, and nothing from data becomes markup."""

import base64
import hashlib
import html
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browser.report_examples import AUDITS, EVIL, deterministic, group, made, randomized
from evenhand.report import audit_html
from evenhand.report.slots import Slots

VOID = {"meta", "link", "br", "hr", "img", "input"}


def page_of(audit):
    return audit_html(made(audit))


class Page(HTMLParser):
    """Collects tags, attributes and text, and complains of tags that are not closed in order."""

    def __init__(self, page):
        super().__init__()
        self.stack, self.tags, self.ids, self.text, self.cells = [], [], [], [], []
        self.feed(page)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs)
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.ids += [value for name, value in attrs if name == "id"]

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag

    def handle_data(self, data):
        if not {"style", "script"} & set(self.stack):
            self.text.append(data)
        if self.stack and self.stack[-1] in {"td", "th", "small", "span"}:
            self.cells.append(data)


def text_of(page):
    return " ".join(" ".join(Page(page).text).split())


def svgs(page):
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, flags=re.S)]


def tips(page):
    return [element.text for svg in svgs(page) for element in svg.iter("title")]


def rows_of(page, label):
    table = page.partition(f'aria-label="{label}"')[2].partition("</table>")[0]
    rows = re.findall(r"<tr.*?</tr>", table.partition("<tbody>")[2], flags=re.S)
    return [
        [text_of(cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", row, flags=re.S)]
        for row in rows
    ]


def told(page):
    first = page.partition("<main>")[2].partition('<section id="groups">')[0]
    return " ".join(html.unescape(re.sub(r"<title>.*?</title>|<[^>]*>", " ", first)).split())


SHOWN = (
    *("deterministic", "nothing", "yes_no", "unknown_randomized", "unknown_deterministic"),
    *("randomized", "no_groups", "hostile"),
)
each_page = pytest.mark.parametrize("name", SHOWN)


@pytest.fixture(scope="module")
def pages():
    return {name: page_of(AUDITS[name]()) for name in SHOWN}


@each_page
def test_page_is_well_formed_and_complete(pages, name):
    page = Page(pages[name])
    names = [tag for tag, _ in page.tags]
    assert pages[name].startswith("<!DOCTYPE html>\n")
    assert dict(page.tags)["html"] == {"lang": "en"}
    assert [names.count(tag) for tag in ("html", "head", "body", "main", "h1")] == [1] * 5
    assert len(set(page.ids)) == len(page.ids)
    assert all(attrs.get("scope") in {"row", "col"} for tag, attrs in page.tags if tag == "th")
    for tag, attrs in page.tags:
        if tag == "svg":
            assert (attrs.get("role") == "group" and attrs["aria-label"]) or attrs.get(
                "aria-hidden"
            ) == "true"
    for table in re.findall(r"<table.*?</table>", pages[name], flags=re.S):
        rows = re.findall(r"<tr.*?</tr>", table, flags=re.S)
        assert len({len(re.findall(r"<t[hd][ >]", row)) for row in rows}) == 1


@each_page
def test_figures_are_well_formed_and_refer_to_parts_of_the_page(pages, name):
    ids = Page(pages[name]).ids
    for root in svgs(pages[name]):
        values = [value for element in root.iter() for value in element.attrib.values()]
        assert {ref for value in values for ref in re.findall(r"url\(#([^)]*)\)", value)} <= set(
            ids
        )
        assert not [value for value in values if re.search(r"nan|inf|e[+-]\d", value)]
    assert not re.search(r"\b(nan|None|inf|True|False)\b|-0\.0\b", text_of(pages[name]))
    for root in svgs(pages[name]):
        marks = [one for one in root.iter("g") if one.get("class", "").startswith("mark")]
        for mark in marks:
            # each mark says its value
            assert (mark.get("role"), mark[0].tag) == ("img", "title")
            assert any(c.isdigit() for c in mark[0].text)


@each_page
def test_page_loads_nothing_and_is_small(pages, name):
    page = pages[name]
    assert len(page.encode()) < 1_500_000
    assert "://" not in page
    tags = Page(page).tags
    assert not {"iframe", "img", "object", "embed", "form", "image"} & {tag for tag, _ in tags}
    # the icon is part of the page
    (icon,) = [attributes for tag, attributes in tags if tag == "link"]
    assert (icon["rel"], icon["href"].partition(",")[0]) == ("icon", "data:image/svg+xml;base64")
    attributes = [attr for _, attrs in Page(page).tags for attr in attrs]
    assert not [attr for attr in attributes if attr.startswith("on") or attr in {"src", "style"}]
    assert "@import" not in page
    assert "url(" not in page.partition("</style>")[0]
    # only the script of the page may run, and it never writes markup
    (script,) = re.findall(r"<script>(.*?)</script>", page, flags=re.S)
    seal = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    head = next(attrs for _, attrs in Page(page).tags if attrs.get("http-equiv"))
    policy = head["content"].split("; ")
    assert policy[0] == "default-src 'none'"
    assert f"script-src 'sha256-{seal}'" in policy
    assert scripts_of(page) == [{"type": "application/json", "id": "data"}, {}]
    pattern = r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function\("
    assert not re.search(pattern, script)


def scripts_of(page):
    """Return the attributes of each script; what is of type JSON is data and never runs."""
    found = [attributes for tag, attributes in Page(page).tags if tag == "script"]
    assert page.count("<script") == len(found)
    return found


def data_text(page):
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return text


@pytest.mark.parametrize("bound", [0.5, 0.4991])
def test_bounds_that_say_nothing_are_not_sold_as_a_proof(bound):
    audit = randomized()
    for row in audit["certificate"]["every_group"]:
        row["group_error"] = bound
    text = told(page_of(audit))
    assert "prove nothing useful for every group of at least 20% of people" in text
    assert "at most 50" not in text


def test_one_draw_per_row_proves_nothing_for_every_group():
    values = randomized() | {"n_draws": 1}
    values["certificate"]["link_bound"] = None
    page = page_of(values)
    assert "as only one draw per row is known" in text_of(page)
    assert rows_of(page, "Bounds for every group, named or not") == []


def test_a_deterministic_model_has_lower_bounds_of_coverage_alone():
    page = page_of(deterministic())
    assert len(rows_of(page, "Coverage of intervals without a draw in every group")) == 4
    assert rows_of(page, "Bounds for every group, named or not") == []
    # uninformative floors are not listed
    audit = deterministic()
    for row in audit["plain_intervals"]:
        row["floor"] = 0.0
    assert rows_of(page_of(audit), "Coverage of intervals without a draw in every group") == []


def test_everything_from_data_is_escaped(pages):
    page = pages["hostile"]
    assert "<" not in data_text(page)
    page = page.replace(data_text(page), "")
    assert "<svg onload" not in page
    assert "alert(1)" not in re.findall(r"<script>(.*?)</script>", page, flags=re.S)[0]
    assert text_of(page).count(EVIL) > 20
    assert any(EVIL in tip for tip in tips(page))
    assert "</main>" in page.partition("<body>")[2].partition("<script")[0]


def test_bars_outside_the_band_are_told_apart():
    audit = randomized()
    n = len(audit["pit"])
    shares = [0.09, *([0.91 / (n - 1)] * (n - 1))]
    for one, share in zip(audit["pit"], shares, strict=True):
        one |= {"share": share, "low": 0.03, "high": 0.07}
    audit["calibration"] = [{"level": 0.8, "observed": 0.7, "low": 0.65, "high": 0.75}]
    page = page_of(audit)
    said = tips(page)
    outside = "PIT 0% to 5%: 9.0% of outcomes; under calibration 3.0% to 7.0%. Outside the band."
    assert outside in said
    assert "Predicted 80%: observed 70.0% (65.0% to 75.0%)." in said
    # the keys of both charts
    for words in ("outside the band", "interval excludes the predicted probability"):
        assert words in text_of(page)
        assert words not in text_of(page_of(randomized()))


@each_page
def test_every_slot_is_on_the_page(pages, name):
    slots, page = Slots(made(AUDITS[name]())), text_of(pages[name])
    cases = [f"{case}: {text}" for case, text in slots.others]
    said = [slots.verdict, slots.title, slots.lead, *cases, *slots.everyone, *slots.cautions]
    said += slots.proven
    steps = [step.what for step in slots.next]
    for sentence in (*said, *slots.not_tested, *slots.gate, *slots.decided, *steps[:1]):
        # a page shows code as such, text between backticks
        assert " ".join(sentence.replace("`", "").split()) in page


def test_a_caveat_stands_above_the_picture():
    caveat = "The draws were <not> fresh."
    page = page_of(randomized() | {"caveat": caveat})
    assert '<p class="warn">The draws were &lt;not&gt; fresh.</p>' in page
    assert told(page).index(caveat) < told(page).index("Next")
    assert 'class="warn"' not in page_of(deterministic())


def named_alone():
    """The deterministic audit with its named groups alone."""
    return deterministic() | {"scan": [], "learned": [], "by_forecast": []}


AWKWARD = [
    "{{ 7*7 }}{% raw %}{# x #}",
    "]]><!--</script></title>\"'`=>&amp;",
    "\ud800\u202e\u2066\u200b\x00\x1b[2J\x7f\u2028\ufffe",
    "two\nlines\tand\r\none",
    "名前" * 400,
    "",
]
FIXED = {"schema", "status", "outcome_kind", "kind"}
"""Texts that are not from data."""


def renamed(value, name, key=""):
    """Put a name for every text of an audit."""
    if isinstance(value, dict):
        return {k: renamed(v, name, k) for k, v in value.items()}
    if isinstance(value, list):
        return [renamed(item, name, key) for item in value]
    return name if isinstance(value, str) and key not in FIXED else value


@pytest.mark.parametrize("name", AWKWARD, ids=map(str, range(len(AWKWARD))))
def test_awkward_names_break_no_page(name):
    page = page_of(renamed(randomized(), name))
    # data, which never run, and the script of the page
    assert scripts_of(page) == [{"type": "application/json", "id": "data"}, {}]
    parsed = Page(page)
    assert svgs(page)
    assert len(set(parsed.ids)) == len(parsed.ids)
    assert all(re.fullmatch("[a-z-]+", one) for one in parsed.ids)
    pattern = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]"
    assert not re.search(pattern, page)
    if "7*7" in name:
        # templates are not applied to data
        assert text_of(page).count(name) > 10


SHARES = st.one_of(
    st.floats(0.0006, 0.49),
    # near the digits at which rounding turns
    st.integers(1, 480).flatmap(
        lambda k: st.sampled_from([k / 1000, k / 1000 + 1e-12, k / 1000 - 1e-12, k / 1000 + 5e-4])
    ),
)


def cells(page, label):
    numbers = re.compile(r"-?\d+(?:\.\d+)?")
    return [[[*map(float, numbers.findall(cell))] for cell in row] for row in rows_of(page, label)]


# what a float may be off, in percentage points
FUZZ = 1e-12


@settings(max_examples=12)
@given(low=SHARES, high=SHARES, covered=SHARES)
def test_no_bound_of_a_report_is_rounded_in_its_favour(low, high, covered):
    audit = randomized()
    proof = audit["certificate"]
    proof["groups"][0] |= {"low": low, "high": high}
    proof["average_error"] = high
    for row in proof["every_group"]:
        row |= {"group_error": high, "coverage_80_low": covered, "coverage_80_high": 1 - covered}
    for row in audit["plain_intervals"]:
        row["floor"] = low
    audit["scan"], audit["by_forecast"] = [], []
    audit["learned"][0]["error_low"] = low
    audit["groups"][1] |= {"error_low": low, "error_high": high}
    page = page_of(audit)
    least, most = 100 * low + FUZZ, 100 * high - FUZZ
    named = cells(page, "Bounds for named groups")[0]
    assert named[2][0] <= least
    assert named[3][0] >= most
    every = cells(page, "Bounds for every group, named or not")[0]
    assert every[1][0] >= most
    assert every[2][0] <= 100 * covered + FUZZ
    assert every[3][0] >= 100 * (1 - covered) - FUZZ
    # floors below 1% are not shown
    for plain in cells(page, "Coverage of intervals without a draw in every group"):
        assert plain[3][0] <= 100 * low + FUZZ
    listed = cells(page, "Groups") + cells(page, "Other groups")
    assert next(row for row in listed if row[1] == [120.0])[-2][1] <= least
    found = next(row for row in listed if row[1] == [990.0])
    assert found[-2][1] <= least
    assert found[-2][2] >= most
    shown = text_of(page)
    bounds = re.findall(r"off by at most (\d+\.\d) points", shown)
    assert all(float(bound) >= most for bound in bounds)
    assert bounds
    sides = re.findall(r"cover between (\d+\.\d)% and (\d+\.\d)%", shown)
    assert all(float(bound) <= 100 * covered + FUZZ for bound, _ in sides)
    assert all(float(bound) >= 100 * (1 - covered) - FUZZ for _, bound in sides)
    floors = re.findall(r"covers at least (\d+\.\d)%", shown)
    assert all(float(bound) <= 100 * low + FUZZ for bound in floors)


def test_a_page_of_120_groups_is_small_and_very_many_stay_in_bounds():
    names = [f"postcode = {1000 + i} and sex = {'fm'[i % 2]}" for i in range(117)]
    audit = named_alone()
    audit["groups"] += [group(name, 50, 0.1 + i / 1e5, 0.0, 0.2) for i, name in enumerate(names)]
    assert len(page_of(audit).encode()) <= 250_000
    long = [group(f"{'long ' * 200}{i}", 50, 0.1 + i / 1e5, 0.0, 0.2) for i in range(1000)]
    audit["groups"] += long
    page = page_of(audit)
    assert len(page.encode()) < 1_500_000
    assert "The first 400 of 1,124 groups are listed, problems before" in text_of(page)
    # cut in the middle, so that names that differ at their ends stay apart
    listed = [row[0] for row in rows_of(page, "Groups")[1:] + rows_of(page, "Other groups")]
    assert len(set(listed)) == len(listed) == 400
