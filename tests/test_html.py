"""The HTML report: its contents, well formed, and nothing from data becomes markup."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from browser.report_examples import (
    AUDITS,
    EVIL,
    deterministic,
    full_deterministic,
    full_randomized,
    group,
    randomized,
    scanned,
)
from evenhand.report import audit_html, audit_text, findings_of
from evenhand.report.next_steps import next_steps
from evenhand.report.sentences import main_findings

VOID = {"meta", "link", "br", "hr", "img", "input"}


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
        if self.stack and self.stack[-1] in {"td", "th", "small"}:
            self.cells.append(data)


def text_of(page):
    return " ".join(" ".join(Page(page).text).split())


def svgs(page):
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, flags=re.S)]


def tips(page):
    """What the marks of all charts say."""
    return [element.text for svg in svgs(page) for element in svg.iter("title")]


def rows_of(page, label):
    """Cells of the rows of a table on a page, as text."""
    table = page.partition(f'aria-label="{label}"')[2].partition("</table>")[0]
    rows = re.findall(r"<tr.*?</tr>", table.partition("<tbody>")[2], flags=re.S)
    return [
        [text_of(cell) for cell in re.findall(r"<t[dh].*?</t[dh]>", row, flags=re.S)]
        for row in rows
    ]


def verdict(audit):
    """The leading sentence of an audit, and the others."""
    found = main_findings(findings_of(audit))
    return found.lead, found.sentences


def steps(audit):
    """The lines of Python and of the command that an audit recommends."""
    return "\n".join(f"{one.python}\n{one.command}" for one in next_steps(findings_of(audit)))


def told(page):
    """The text of the first screen."""
    first = page.partition('<main id="main">')[2].partition("<nav")[0]
    return " ".join(html.unescape(re.sub(r"<title>.*?</title>|<[^>]*>", " ", first)).split())


SHOWN = (
    *("deterministic", "nothing", "yes_no", "unknown_randomized", "unknown_full"),
    *("full_randomized", "no_groups", "hostile"),
)
each_page = pytest.mark.parametrize("name", SHOWN)


@pytest.fixture(scope="module")
def pages():
    names = {*SHOWN, "randomized", "full_deterministic"}
    return {name: audit_html(AUDITS[name]()) for name in names}


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
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    assert links[0] == "#main"
    assert {link[1:] for link in links} <= set(page.ids)
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
    # the icon is part of the page, and small charts use drawings of the page
    (icon,) = [attributes for tag, attributes in tags if tag == "link"]
    assert (icon["rel"], icon["href"].partition(",")[0]) == ("icon", "data:image/svg+xml;base64")
    assert all(attributes["href"].startswith("#") for tag, attributes in tags if tag == "use")
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
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval|Function\(", script
    )


def scripts_of(page):
    """Return the attributes of each script; what is of type JSON is data and never runs."""
    found = [attributes for tag, attributes in Page(page).tags if tag == "script"]
    assert page.count("<script") == len(found)
    return found


def data_text(page):
    """Return the text of the data that a page embeds."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return text


def test_equal_values_give_equal_pages_and_are_left_alone(pages):
    values = randomized()
    assert audit_html(json.loads(json.dumps(values))) == pages["randomized"]
    assert audit_html(values) == pages["randomized"]
    assert values == randomized()


def test_deterministic_verdict_says_which_groups_are_off_how_and_how_much(pages):
    text = text_of(pages["deterministic"])
    assert re.search(
        r"Problem found in 9 groups; .* Main findings 20% found by search: age > 44 and sex = f"
        r" \(180 rows\): outcomes lower than forecast, by 0\.62 units of y on average\. Forecasts"
        r" are off by 21\.4 points, at least 15\.2\. This is beyond the tolerance with 95% conf",
        text,
    )
    assert re.search(
        r"Group sex=f \(740 rows\): outcomes lower than forecast, by 0\.31 units of y on average\."
        r" Forecasts are off by 9\.2 points, at least 6\.1\.",
        text,
    )
    assert re.search(
        r"Group age > 45 and sex = f \(420 rows\): outcomes lower .* 0\.81 units of y .* 23\.1"
        r" points\.",
        text,
    )
    # everyone, sex=f, the smallest p-value, p = 0.01, 0.02, 0.03, 0.04, and two found by search
    assert "5 more problems in the tables." in text
    assert re.search(r"no data can prove an error below 40 points in every group of 20%", text)
    assert "In every group of at least" not in text


def test_the_proof_of_a_randomized_model_follows_the_groups_that_are_off(pages):
    text = text_of(pages["randomized"])
    # 31.38 and 94.45 are rounded up; the confidence is that of each bound, not of all together
    assert re.search(
        r"in the tables\. In every group of at least 20% of people, .* at most 31\.4 points and"
        r" .* between 51\.4% and 94\.5% of outcomes \(95% confidence each\)\.",
        text,
    )
    assert "bounds for every group are sharp" not in text


@pytest.mark.parametrize("bound", [0.5, 0.4991])
def test_bounds_that_say_nothing_are_not_sold_as_a_proof(bound):
    audit = randomized()
    for row in audit["certificate"]["every_group"]:
        row["group_error"] = bound
    page = audit_html(audit)
    assert "These rows prove nothing useful for every group of at least 20% of people." in told(
        page
    )
    assert "at most 50" not in told(page)
    # nor if nothing else leads
    lead, _ = verdict(audit | {"scan": [], "learned": [], "groups": []})
    assert lead == "No errors are known."


def test_one_draw_per_row_proves_nothing_for_every_group():
    text = text_of(audit_html(randomized() | {"n_draws": 1}))
    assert "as only one draw per row is known. Audit several draws per row." in text
    assert "In every group" not in text


def test_bounds_of_a_link_hold_jointly_and_need_no_second_draw():
    for n_draws in (1, 64):
        text = text_of(audit_html(full_randomized() | {"n_draws": n_draws}))
        assert re.search(r"between 51\.4% and 94\.5% of outcomes \(95% joint confidence", text)
        assert "The bounds for every group are sharp" in text
        assert "They hold jointly, for every alpha, with 95% confidence" in text


def test_a_plain_interval_stands_beside_the_coverage_of_a_randomized_one():
    # the lowest of the levels whose lower bound reaches 51.4%, in every fifth
    verdict = text_of(audit_html(full_randomized())).partition("Errors are absolute differences")[0]
    assert re.search(
        r"the 95% interval of the deterministic model covers at least 64\.5% of outcomes in the"
        r" same groups\. On average it is 15% narrower than the randomized 80% interval\. It covers"
        r" 94\.6% of outcomes overall, without an upper bound",
        verdict,
    )
    page = audit_html(full_randomized())
    levels = [row[-1] for row in rows_of(page, "Bounds for every group")]
    assert levels == [f"{level}% interval" for level in (98, 95, 90, 90)]
    plain = rows_of(page, "Coverage of intervals without a draw in every group")
    assert plain[1] == ["95%", "94.6%", "29.0%", "64.5%", "85.8%", "85%"]


def test_a_deterministic_model_has_lower_bounds_of_coverage_alone():
    page = audit_html(full_deterministic())
    assert re.search(
        r"only lower bounds .* for every group of at least 20% of people\. Guaranteed there with"
        r" 95% confidence: 90% interval at least 34\.5%, 95% interval at least 64\.5%, 98% interval"
        r" at least 81\.0%, 99% interval at least 88\.5%\.",
        text_of(page),
    )
    assert len(rows_of(page, "Coverage of intervals without a draw in every group")) == 4
    # uninformative floors are not listed
    audit = full_deterministic()
    for row in audit["plain_intervals"]:
        row["floor"] = 0.3 if row["level"] == 0.99 else 0.0
    assert "confidence: 99% interval at least 30.0%." in text_of(audit_html(audit))


def test_everything_from_data_is_escaped(pages):
    page = pages["hostile"]
    assert len(scripts_of(page)) == 2
    assert "<" not in data_text(page)
    page = page.replace(data_text(page), "")
    assert "<svg onload" not in page
    assert "alert(1)" not in re.findall(r"<script>(.*?)</script>", page, flags=re.S)[0]
    assert text_of(page).count(EVIL) > 20
    assert any(EVIL in tip for tip in tips(page))
    written = page.partition("<body>")[2].partition("<script")[0]
    assert "</main>" in written
    assert not [attr for _, attrs in Page(page).tags for attr in attrs if attr.startswith("on")]


def test_very_many_groups_and_long_names_stay_in_bounds():
    audit = deterministic()
    audit["groups"] += [
        group(f"{'long ' * 200}{i}", 50, 0.1 + i / 1e5, 0.0, 0.2) for i in range(1000)
    ]
    page = audit_html(audit)
    assert len(page.encode()) < 1_500_000
    assert "The first 400 of 1,003 groups are listed, problems" in text_of(page)
    # cut in the middle, so that names that differ at their ends stay apart
    assert (
        len({cell for cell in Page(page).cells if cell.startswith("long ")}) == 399
    )  # sex=f has a problem


def test_bars_outside_the_band_are_told_apart():
    audit = full_randomized()
    n = len(audit["pit"]["share"])
    audit["pit"] |= {
        "share": [0.09, *([0.91 / (n - 1)] * (n - 1))],
        "low": [0.03] * n,
        "high": [0.07] * n,
    }
    audit["calibration"] = [{"level": 0.8, "observed": 0.7, "low": 0.65, "high": 0.75}]
    page = audit_html(audit)
    said = tips(page)
    outside = "PIT 0% to 5%: 9.0% of outcomes; under calibration 3.0% to 7.0%. Outside the band."
    assert outside in said
    assert "1 bar lies outside the band." in text_of(page)
    assert "All bars lie within the band." in text_of(audit_html(full_randomized()))
    (tip,) = [tip for tip in said if tip.startswith("Predicted 80%: 70.0% of outcomes")]
    assert "65.0% to 75.0%" in tip
    assert "At 1 of 1 level, the band does not contain the predicted" in text_of(page)


def test_bounds_that_round_to_nothing_are_not_told_of():
    audit = deterministic() | {"scan": [], "learned": []}
    for low, said in ((0.0004, ""), (0.0016, ", at least 0.1")):
        audit["groups"][2] |= {"error_low": low}
        assert f"Forecasts are off by 9.2 points{said}." in text_of(audit_html(audit))


@each_page
def test_text_and_page_say_the_same(pages, name):
    lead, sentences = verdict(AUDITS[name]())
    page, text = text_of(pages[name]), " ".join(audit_text(AUDITS[name]()).split())
    for sentence in map(str, (lead, *sentences)):
        # a page shows code as such, text between backticks
        assert " ".join(sentence.replace("`", "").split()) in page
        assert all(word in text for word in sentence.split())


def test_a_caveat_stands_first_in_page_and_text():
    caveat = "The draws were <not> fresh."
    audit = full_randomized() | {"caveat": caveat}
    page, text = audit_html(audit), " ".join(audit_text(audit).split())
    listed = page.partition("<ul>")[2]
    assert listed.startswith('<li class="warn">The draws were &lt;not&gt; fresh.</li>')
    lead = "20% found by search: "
    assert told(page).partition("Main findings ")[2].index(lead) < told(page).index("The draws")
    assert lead in text
    assert f"- {caveat}" in text
    for lacking in (full_randomized(), full_randomized() | {"caveat": None}):
        assert '<li class="warn">' not in audit_html(lacking)


def test_groups_too_small_to_tell_are_the_first_to_be_left_out():
    audit = deterministic()
    large = [group(f"large {i}", 50, 0.05, 0.03 + i / 1e5, 0.2) for i in range(398)]
    small = [group(f"small {i}", 9, 0.4, 0.3, 0.5, too_small=True) for i in range(300)]
    audit["groups"] = [*audit["groups"][:3], *small, *large]
    named = [
        {"group": row["group"], "n": row["n"], "error": row["error"], "low": 0.01, "high": 0.2}
        for row in small
    ]
    audit["certificate"]["groups"] = named + [
        row | {"group": f"large {i}", "low": 0.02} for i, row in enumerate(named)
    ]
    page = audit_html(audit)
    listed = page.partition('<section id="groups">')[2].partition("</section>")[0]
    assert "small" not in re.sub("<small>|</small>", "", listed)  # 400 others fill the table
    order = re.findall(r'<th scope="row">(large \d+|[a-z]+=?[a-z]?)', listed)
    assert order[:3] == ["everyone", "sex=f", "large 397"]  # by lower bound
    bounds = page.partition('aria-label="Bounds for named groups"')[2].partition("</table>")[0]
    assert re.findall(r'<th scope="row">([a-z]+)', bounds) == ["large"] * 300 + ["small"] * 100
    assert "The 400 of 600 groups with the largest lower bounds" in text_of(page)
    assert '<label for="find-bounds-for-named-groups">' in page
    text = audit_text(audit)
    assert not re.search(r"small \d", text)
    assert text.index("large 397") < text.index("large 380")


def everybody(bias, error_low, **more):
    audit = deterministic() | {"scan": [], "learned": [], "certificate": None}
    audit["groups"] = [
        group("everyone", 1500, 0.2, error_low, 0.3, bias=bias, **more),
        group("g", 700, 0.02, 0.0, 0.1),
    ]
    return audit


def test_bad_news_over_everybody_comes_first_with_direction_and_units():
    audit = everybody(-15.2, 0.15)
    audit["groups"][0] |= {"bias_low": -23.1, "bias_high": -7.3}
    lead, _ = verdict(audit)
    assert lead == (
        "The 80% interval covers 80.0% of outcomes. The error is 20.0 points (95%: 15.0 to 30.0)."
        " Forecasts are too high by 15.2 units of y on average (95%: 7.3 to 23.1)."
    )
    audit["groups"][0] |= {"bias": 15.2, "bias_low": 7.3, "bias_high": 23.1}
    assert "Forecasts are too low by 15.2 units of y on average" in verdict(audit)[0]


def test_one_unknown_error_does_not_mix_up_the_order_of_groups():
    audit = deterministic()
    audit["groups"] += [group(f"g{i}", 99, 0.1, 0.01 * (i % 7), 0.2) for i in range(20)]
    audit["groups"].insert(5, group("lost", 99, float("nan"), float("nan"), float("nan")))
    listed = audit_html(audit).partition('<section id="groups">')[2].partition("</section>")[0]
    rows = re.findall(r"<small>([\d.]+) to [\d.]+</small></td><td>(?:no )?problem", listed)
    assert [float(low) for low in rows[1:]] == sorted(map(float, rows[1:]), reverse=True)
    assert 'lost</th><td class="n" data-v="">-' in listed


def test_a_column_whose_name_looks_like_a_group_is_recalibrated_by_its_whole_name():
    # a boolean column of this name was cut at its " > " and the advice named a column `hours` that
    # there was not
    audit = deterministic() | {"learned": []}
    audit["groups"][2] |= {"group": "hours > 40 = True", "column": "hours > 40"}
    audit["certificate"]["groups"][0]["group"] = "hours > 40 = True"
    for n, name in ((700, "hours"), (710, "hours > 40")):
        audit["scan"].append(
            scanned(f"{name} <= 30", n, 0.01, "as forecast", 0.0, 1.0) | {"features": [name]}
        )
    assert 'by="hours > 40")' in steps(audit)


def painted_off(audit):
    """Names of the groups in which the table of named groups finds a problem."""
    rows = rows_of(audit_html(audit), "Named groups")
    return {row[0] for row in rows if any(cell.startswith("problem found") for cell in row)}


def test_the_table_calls_those_groups_off_that_the_verdict_does():
    audit = deterministic() | {"scan": [], "learned": []}
    assert painted_off(audit) == {"everyone", "sex=f"}
    audit["groups"][0] |= {"off": False, "problem": False}
    assert painted_off(audit) == {"sex=f"}
    assert verdict(audit)[0].startswith("Group sex=f")
    audit["groups"][2] |= {"problem": False}
    assert verdict(audit)[0].startswith("The 80% interval covers 77.2% of outcomes.")
    assert str(verdict(audit)[1][0]) == "Errors seen within the tolerance (2 points): sex=f (9.2)."
    assert painted_off(audit) == set()


def test_groups_that_were_not_judged_are_not_counted():
    audit = deterministic()
    audit["groups"][2] |= {"possible_leak": True}
    audit["scan"] = [
        scanned(f"age > {i}", 99 + i, 0.2, "mixed", -0.1, p) for i, p in enumerate((1e-6, 0.9, 1.0))
    ]
    audit["scan"][2]["p_adjusted"] = None
    shown = audit_text(audit)
    assert "2 groups were examined" in shown
    assert "1 problem found." in " ".join(shown.split())
    assert re.search(r"^sex=f +9\.2 .* possible leak", shown, flags=re.M)
    assert "possible leak" not in audit_text(deterministic())


def test_possible_leaks_are_named_and_are_no_findings():
    audit = deterministic() | {"scan": [], "learned": [], "certificate": None}
    audit["groups"][2] |= {"possible_leak": True, "off": False, "problem": False}
    leak = {"kind": "group", "name": "sex=f", "column": None, "apart": 0.004}
    audit["possible_leaks"] = [leak | {"rank_correlation": None, "forecast_rank_correlation": None}]
    lead, sentences = verdict(audit)
    assert "The error is 4.1 points (95%: 2.0 to 6.2)." in lead
    assert str(sentences[-1]).startswith(
        "Possible leak: group sex=f may be defined by the outcome: it differs"
    )
    assert painted_off(audit) <= {"everyone"}
    assert "possible leak" in text_of(audit_html(audit)).partition("Named groups Estimates")[2]


def test_of_groups_that_share_a_feature_the_worst_has_a_sentence():
    audit = deterministic() | {"learned": []}
    audit["groups"] = audit["groups"][:1]
    lows = {"dest": 0.2, "dest and km": 0.15, "hour and km": 0.1, "hour": 0.08, "plane": 0.05}
    audit["scan"] = [
        scanned(name, 200 + i, 0.25 - i / 100, "mixed", -0.1, 1e-6)
        | {"features": name.split(" and "), "error_low": low, "error_high": 0.4}
        for i, (name, low) in enumerate(lows.items())
    ]
    lead, sentences = verdict(audit)
    assert lead.startswith("Group dest (200 rows): in no single direction")
    assert [one.name for one in sentences if one.name] == ["hour and km", "plane"]
    assert str(sentences[3]).startswith("Of groups that share a feature, only the worst is named")
    # of two names of the same rows, the shorter one leads
    audit["scan"].insert(0, audit["scan"][0] | {"group": "dest and hour"})
    audit["scan"][0]["features"] = ["dest", "hour"]
    assert verdict(audit)[0].startswith("Group dest (200 rows): ")


@pytest.mark.parametrize(("direction", "bias"), [("higher", -7951.0), ("lower", 7951.0)])
def test_a_mean_that_errs_the_other_way_does_not_contradict_its_sentence(direction, bias):
    opposed = {"below": "higher", "above": "lower"}
    side = next(side for side, way in opposed.items() if way == direction)
    audit = deterministic()
    audit["scan"][0] |= {"direction": f"outcomes {direction} than forecast", "bias": bias}
    shown = text_of(audit_html(audit)) + " ".join(audit_text(audit).split())
    told = (
        f"outcomes rank {direction} than forecast, but their mean is 7,950 units of y {side} the"
        " mean forecast"
    )
    assert told in shown
    assert f"outcomes {direction} than forecast; on average" not in shown


# Awkward names, and the numbers that reports print.

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
    numbers = re.compile(r"-?\d+(?:\.\d+)?")
    return [[[*map(float, numbers.findall(cell))] for cell in row] for row in rows_of(page, label)]


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
