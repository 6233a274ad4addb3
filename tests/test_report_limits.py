"""Reports of incomplete audits and of awkward names, and the numbers that reports print."""

from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browser.report_examples import AUDITS, deterministic, full_randomized
from evenhand.report import audit_html, audit_text
from test_html import Page, each_page, scripts_of, svgs, text_of

# characters of a line
WIDTH = 118
NUMBER = re.compile(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?%?")

AWKWARD = [
    "{{ 7*7 }}{% raw %}{# x #}",
    "]]><!--</script></title>\"'`=>&amp;",
    "\ud800\u202e\u2066\u200b\x00\x1b[2J\x7f\u2028\ufffe",
    "two\nlines\tand\r\none",
    "名前" * 400,
    "",
]


def renamed(value, name, key=""):
    """Put a name for every text of an audit."""
    if isinstance(value, dict):
        return {k: renamed(v, name, k) for k, v in value.items()}
    if isinstance(value, list):
        return [renamed(item, name, key) for item in value]
    return name if isinstance(value, str) else value


@pytest.mark.parametrize("name", AWKWARD, ids=map(str, range(len(AWKWARD))))
def test_awkward_names_break_neither_page_nor_text(name):
    audit = renamed(full_randomized(), name)
    page, text = audit_html(audit), audit_text(audit)
    # data, which never run, and the script of the page
    assert scripts_of(page) == [{"type": "application/json", "id": "data"}, {}]
    parsed = Page(page)
    assert svgs(page)
    assert len(set(parsed.ids)) == len(parsed.ids)
    assert all(re.fullmatch("[a-z-]+", one) for one in parsed.ids)
    assert not re.search(
        r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", page
    )
    assert all(line.isprintable() and len(line) <= WIDTH for line in text.split("\n"))
    if "7*7" in name:
        # templates are not applied to data
        assert text_of(page).count(name) > 10


@each_page
def test_text_and_page_print_the_same_numbers(name):
    audit = AUDITS[name]()
    in_text = " ".join(audit_text(audit).split())
    # the page has all rows of a table
    in_text = re.sub(r"[\d,]+ of [\d,]+ rows are printed\.", "", in_text)
    assert set(NUMBER.findall(in_text)) <= set(NUMBER.findall(text_of(audit_html(audit))))


SHARES = st.one_of(
    st.floats(0.0006, 0.49),
    # near the digits at which rounding turns
    st.integers(1, 480).flatmap(
        lambda k: st.sampled_from([k / 1000, k / 1000 + 1e-12, k / 1000 - 1e-12, k / 1000 + 5e-4])
    ),
)


def cells(page, label):
    """Numbers of the rows of a table on a page."""
    table = page.partition(f'aria-label="{label}"')[2].partition("</table>")[0]
    rows = re.findall(r"<tr.*?</tr>", table.partition("<tbody>")[2], flags=re.S)
    return [[parsed(cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", row)] for row in rows]


def parsed(cell):
    return [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", re.sub(r"<.*?>", " ", cell))]


# what a float may be off, in percentage points
FUZZ = 1e-12


@settings(max_examples=12, deadline=None)
@given(low=SHARES, high=SHARES, covered=SHARES)
def test_no_bound_of_a_report_is_rounded_in_its_favour(low, high, covered):
    audit = full_randomized()
    proof = audit["certificate"]
    proof["groups"][0] |= {"low": low, "high": high}
    proof["average_error"] = high
    for row in proof["every_group"]:
        row |= {"group_error": high, "coverage_80_low": covered, "coverage_80_high": 1 - covered}
    for row in audit["plain_intervals"]:
        row["floor"] = low
    audit["learned"][0]["low"] = low
    audit["groups"][1] |= {"error_low": low, "error_high": high}
    page, text = audit_html(audit), " ".join(audit_text(audit).split())
    least, most = 100 * low + FUZZ, 100 * high - FUZZ
    named = cells(page, "Bounds for named groups")[0]
    assert named[3][0] <= least
    assert named[4][0] >= most
    every = cells(page, "Bounds for every group")[0]
    assert every[1][0] >= most
    assert every[-3][0] <= 100 * covered + FUZZ
    assert every[-2][0] >= 100 * (1 - covered) - FUZZ
    plain = cells(page, "Coverage of intervals without a draw in every group")
    assert plain[0][3][0] <= 100 * low + FUZZ
    assert cells(page, "Groups found by search")[0][2][0] <= least
    group = next(row for row in cells(page, "Named groups") if row[-1] == [760.0])
    assert group[1][1] <= least
    assert group[1][2] >= most
    for shown in (text, text_of(page)):
        bounds = re.findall(r"probabilities are off by at most (\d+\.\d) p", shown)
        assert all(float(bound) >= most for bound in bounds)
        assert bounds or math.ceil(most) >= 50
        claims = re.findall(r"at least (\d+\.\d)[.;)]", shown)
        certain = [low, deterministic()["learned"][1]["low"], audit["groups"][0]["error_low"]]
        assert all(float(claim) <= 100 * max(certain) + FUZZ for claim in claims)
        sides = re.findall(r"covers between (\d+\.\d)% and (\d+\.\d)%", shown)
        assert all(float(bound) <= 100 * covered + FUZZ for bound, _ in sides)
        assert all(float(bound) >= 100 * (1 - covered) - FUZZ for _, bound in sides)
        floors = re.findall(r"covers at least (\d+\.\d)%", shown)
        assert all(float(bound) <= 100 * low + FUZZ for bound in floors)
