"""The HTML report: what it says, that it is well formed, and that nothing from data becomes markup."""

from __future__ import annotations

import json
import re
import sys
from copy import deepcopy
from html.parser import HTMLParser
from xml.etree import ElementTree

import matplotlib as mpl
import pytest

from evenhand.report import audit_html, audit_text
from evenhand.report._verdict import verdict

VOID = {"meta", "link", "br", "hr", "img", "input"}
EVIL = "<script>alert(1)</script>"


def group(name, n, error, low, high, *, bias=None, mean_pit=0.5, cover=0.8, too_small=False):
    bands = {"bias": bias, "bias_low": None, "bias_high": None}
    if bias is not None:
        bands |= {"bias_low": bias - 0.1, "bias_high": bias + 0.1}
    for level, value in (("80", cover), ("90", (1 + cover) / 2)):
        key = f"coverage_{level}"
        bands |= {key: value, f"{key}_low": value - 0.03, f"{key}_high": min(value + 0.03, 1.0)}
    head = {"group": name, "n": n, "error": error, "error_low": low, "error_high": high, "mean_pit": mean_pit}
    return head | bands | {"too_small": too_small}


def scanned(name, n, error, direction, bias, p_adjusted):
    tests = {"p_value": p_adjusted / 50, "p_adjusted": p_adjusted, "features": name.split(" and ")}
    return {"group": name, "n": n, "error": error, "direction": direction, "bias": bias, "coverage_80": 0.71} | tests


def found(mass, n, error, low, description):
    told = {"p_value": 0.0004 if low else 0.3, "direction": "outcomes lower than forecast", "bias": -0.62}
    told |= {"coverage_80": 0.66, "description": description, "description_share": 0.21, "features": ["age", "sex"]}
    return {"mass": mass, "n": n, "n_judged": 900, "error": error, "low": low} | told


def worst(mass, error, null, certified):
    nulls = {"null_mean": null, "null_low": null and null - 0.01, "null_high": null and null + 0.01}
    return {"mass": mass, "n": round(1500 * mass), "error": error} | nulls | {"certified": certified}


SCORES = [
    {"measure": "log score", "value": 1.512, "low": 1.47, "high": 1.55, "unit": "nats"},
    {"measure": "CRPS", "value": 0.6012, "low": 0.58, "high": 0.62, "unit": "units of y"},
    {"measure": "80% interval width", "value": 12563.1, "low": 12000.2, "high": 13000.9, "unit": "units of y"},
    {"measure": "80% coverage", "value": 0.772, "low": 0.75, "high": 0.79, "unit": "share"},
    {"measure": "average error", "value": 0.0413, "low": 0.02, "high": 0.06, "unit": "probability"},
]
QUESTIONS = [
    {"question": "is it calibrated on average", "answered": True, "why": "one PIT per person suffices"},
    {"question": "is it calibrated for groups formed after the draws", "answered": False, "why": "lucky draws"},
]
CERTIFICATE = {
    "confidence": 0.95,
    "method": "local-levels",
    "n_samples": 1500,
    "n_draws": 64,
    "average_error": 0.0521,
    "groups": [{"group": "sex=f", "n": 740, "error": 0.09, "low": 0.043, "high": 0.137}],
    "every_group": [
        {"mass": m, "group_error": e, "chain": c, "coverage_80_low": low, "coverage_80_high": high}
        for m, e, c, low, high in (
            (0.1, 0.394, 0.5, 0.37, 0.98),
            (0.2, 0.3138, 0.47, 0.514, 0.9445),
            (0.5, 0.19, 0.39, 0.65, 0.9),
            (1.0, 0.0521, None, 0.75, 0.84),
        )
    ],
    "questions": QUESTIONS,
    "assumptions": ["the rows are a sample of the people the statement is about"],
    "not_covered": ["a shift in time or population after these rows"],
}


def deterministic():
    surest = scanned("age > 45 and sex = f", 420, 0.2312, "outcomes lower than forecast", -0.81, 0.00003)
    many = [scanned(f"x{i} > 0.5", 700, 0.05 - i / 1000, "mixed", 0.02, min(0.01 * (i + 1), 1.0)) for i in range(30)]
    certificate = deepcopy(CERTIFICATE) | {"n_draws": 1}
    return {
        "schema": "evenhand.audit/2",
        "name": "risk model",
        "n_samples": 1500,
        "n_draws": 1,
        "is_randomized": False,
        "rounding_step": 0.01,
        "scores": deepcopy(SCORES),
        "groups": [
            group("everyone", 1500, 0.041, 0.02, 0.062, bias=-0.13, mean_pit=0.46, cover=0.772),
            group("sex=m", 760, 0.012, 0.0, 0.037, bias=0.05, mean_pit=0.505),
            group("sex=f", 740, 0.092, 0.061, 0.12, bias=-0.31, mean_pit=0.42, cover=0.74),
            group("region=north", 21, 0.08, 0.0, 0.25, bias=0.1, mean_pit=0.55, too_small=True),
        ],
        "scan": [surest, *many],
        "learned": [
            found(0.1, 90, 0.26, 0.14, "age > 45 and sex = f"),
            found(0.2, 180, 0.2141, 0.1523, "age > 44 and sex = f"),
            found(0.5, 450, 0.08, 0.0, None),
        ],
        "worst_groups": [worst(m / 10, (1 - m / 10) / 2 + 0.04, (1 - m / 10) / 2 + 0.01, 0.5) for m in range(1, 11)],
        "certificate": certificate,
        "notes": ["column 'id' was not scanned: too many values"],
    }


def randomized():
    curve = [
        worst(m / 10, 0.22 * (1 - m / 10) + 0.02, 0.2 * (1 - m / 10) + 0.02, 0.43 - 0.038 * m) for m in range(1, 11)
    ]
    certificate = deepcopy(CERTIFICATE)
    head = {"name": "risk model, randomized", "n_draws": 64, "is_randomized": True, "rounding_step": None}
    return deterministic() | head | {"certificate": certificate, "worst_groups": curve}


def pits_only():
    groups = [group("everyone", 300, 0.011, 0.0, 0.05, cover=0.79)]
    head = {"name": "PITs", "n_samples": 300, "rounding_step": None, "scores": deepcopy(SCORES[3:])}
    return deterministic() | head | {"groups": groups, "scan": [], "learned": [], "certificate": None, "notes": []}


def nothing():
    lists = {key: [] for key in ("scores", "groups", "scan", "learned", "worst_groups", "notes")}
    head = {"schema": "evenhand.audit/2", "name": "", "n_samples": 1, "n_draws": 1, "is_randomized": False}
    return head | lists | {"rounding_step": None, "certificate": None}


def unknown(value, key=""):
    """Put None for every number that can be unknown."""
    if isinstance(value, dict):
        return {k: unknown(v, k) for k, v in value.items()}
    if isinstance(value, list):
        return [unknown(item, key) for item in value]
    kept = {"n_samples", "n_draws", "confidence", "mass", "n", "error"}
    return None if isinstance(value, float) and key not in kept else value


AUDITS = {
    "deterministic": deterministic,
    "randomized": randomized,
    "pits_only": pits_only,
    "nothing": nothing,
    "unknown": lambda: unknown(deterministic()),
    "unknown_randomized": lambda: unknown(randomized()),
}


class Page(HTMLParser):
    """Collects tags, attributes and text, and complains of tags that are not closed in order."""

    def __init__(self, page):
        super().__init__()
        self.stack, self.tags, self.ids, self.text, self.cells = [], [], [], [], []
        self.feed(page)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag, attrs):
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
        if "style" not in self.stack:
            self.text.append(data)
        if self.stack and self.stack[-1] in {"td", "th", "small"}:
            self.cells.append(data)


def text_of(page):
    return " ".join(" ".join(Page(page).text).split())


def headings(page):
    return re.findall(r"<h2>(.*?)</h2>", page)


@pytest.fixture(scope="module")
def pages():
    return {name: audit_html(make()) for name, make in AUDITS.items()}


@pytest.mark.parametrize("name", AUDITS)
def test_page_is_well_formed_and_complete(pages, name):
    page = Page(pages[name])
    names = [tag for tag, _ in page.tags]
    assert pages[name].startswith("<!DOCTYPE html>\n")
    assert dict(page.tags)["html"] == {"lang": "en"}
    assert [names.count(tag) for tag in ("html", "head", "title", "body", "main", "h1")] == [1] * 6
    assert len(set(page.ids)) == len(page.ids)
    assert all(attrs.get("scope") in {"row", "col"} for tag, attrs in page.tags if tag == "th")
    assert all(attrs["role"] == "img" and attrs["aria-label"] for tag, attrs in page.tags if tag == "svg")


@pytest.mark.parametrize("name", AUDITS)
def test_every_row_of_a_table_has_as_many_cells_as_its_head(pages, name):
    for table in re.findall(r"<table>.*?</table>", pages[name], flags=re.S):
        assert len({len(re.findall(r"<t[hd][ >]", row)) for row in re.findall(r"<tr.*?</tr>", table, flags=re.S)}) == 1


@pytest.mark.parametrize("name", AUDITS)
def test_figures_are_well_formed_and_refer_to_their_own_parts(pages, name):
    for svg in re.findall(r"<svg.*?</svg>", pages[name], flags=re.S):
        root = ElementTree.fromstring(svg)
        ids = {element.get("id") for element in root.iter()}
        values = [value for element in root.iter() for value in element.attrib.values()]
        used = [ref for value in values for ref in re.findall(r"url\(#([^)]*)\)", value)]
        used += [element.get("href")[1:] for element in root.iter() if element.get("href")]
        assert used
        assert set(used) <= ids


@pytest.mark.parametrize("name", AUDITS)
def test_page_loads_nothing_runs_nothing_and_is_small(pages, name):
    page = pages[name]
    assert len(page.encode()) < 1_500_000
    assert "://" not in page
    assert not {"script", "link", "iframe", "img", "object", "a"} & {tag for tag, _ in Page(page).tags}
    assert not [attr for _, attrs in Page(page).tags for attr in attrs if attr.startswith("on") or attr == "src"]
    assert "@import" not in page


@pytest.mark.parametrize("name", AUDITS)
def test_no_python_value_shows_through(pages, name):
    assert not re.search(r"\b(nan|None|inf|True|False)\b|-0\.0\b", text_of(pages[name]))


def test_number_of_figures(pages):
    counts = {name: page.count("<svg") for name, page in pages.items()}
    assert counts["deterministic"] == counts["randomized"] == 2
    assert counts["pits_only"] == 1  # no named groups, but the oracle curve
    assert counts["nothing"] == 0


def test_same_values_give_the_same_page(pages):
    assert audit_html(deterministic()) == pages["deterministic"]


def test_page_from_the_json_of_an_audit_is_the_same(pages):
    assert audit_html(json.loads(json.dumps(randomized()))) == pages["randomized"]


def test_input_is_not_changed():
    values = deterministic()
    audit_html(values)
    assert values == deterministic()


def test_rows_that_go_by_several_names_are_told_of_once():
    audit = deterministic()
    again = scanned("sex = f and age > 45", 420, 0.2312, "outcomes lower than forecast", -0.81, 0.00003)
    named = scanned("sex=f", 740, 0.092, "outcomes lower than forecast", -0.31, 0.00004)
    audit["scan"][1:1] = [again, named]
    verdict = text_of(audit_html(audit)).partition("Off by 0 points")[0]
    assert "Group age > 45 and sex = f (420 rows)" in verdict
    assert "sex = f and age > 45" not in verdict
    assert verdict.count("sex=f (740 rows)") == 1
    assert "In all 7 of 33 scanned groups are surely off" in verdict


def test_deterministic_verdict_says_which_groups_are_off_how_and_how_much(pages):
    text = text_of(pages["deterministic"])
    assert "What this audit says Some groups are surely off." in text
    assert (
        "Named group sex=f (740 rows): outcomes lower than forecast, by 0.31 units of y on average; off by 9.2 points"
    ) in text
    assert (
        "Group age > 45 and sex = f (420 rows): outcomes lower than forecast, by 0.81 units of y on average; "
        "off by 23.1 points (adjusted p < 0.0001)."
    ) in text
    assert "In all 5 of 31 scanned groups are surely off" in text  # the surest, and p = 0.01, 0.02, 0.03, 0.04
    assert "20% of people that features define (nearly: age > 44 and sex = f, 21% of people) (180 rows)" in text
    assert "off by 21.4 points, surely by 15.2 or more" in text
    assert "with one forecast per person no data can prove calibration for groups" in text
    assert "With 95% confidence: for every group" not in text


def test_groups_lead_for_a_deterministic_model_and_the_oracle_is_an_appendix(pages):
    assert headings(pages["deterministic"]) == [
        "What this audit says",
        "Named groups",
        "Groups by features",
        "Worst groups learned from features",
        "Scores",
        "What is proven",
        "What the proof rests on",
        "Notes",
        "Appendix: worst groups picked in hindsight",
    ]
    assert "even the true distribution scores about (1 - share) / 2 here" in text_of(pages["deterministic"])


def test_proof_leads_for_a_randomized_model(pages):
    text = text_of(pages["randomized"])
    # 31.38 and 94.45 are rounded up, 51.4 down
    assert (
        "What this audit says With 95% confidence: for every group of at least 20% of people, stated chances are off "
        "by at most 32 percentage points averaged over all probability levels; with the same confidence the 80% "
        "interval holds 51% to 95% of outcomes there."
    ) in text
    assert headings(pages["randomized"])[:4] == [
        "What this audit says",
        "What is proven",
        "Worst groups picked in hindsight",
        "Named groups",
    ]
    assert "even the true distribution" not in text


def test_bounds_that_say_nothing_are_not_sold_as_a_proof():
    audit = randomized()
    for row in audit["certificate"]["every_group"]:
        row["group_error"] = 0.5
    assert "The rows are too few to prove anything for every group of at least 20%" in text_of(audit_html(audit))


def test_one_draw_per_row_proves_nothing_for_every_group():
    text = text_of(audit_html(randomized() | {"n_draws": 1}))
    assert "Only one draw per row is known" in text
    assert "For every group" not in text


def test_scan_shows_the_surest_and_says_how_many_there_were(pages):
    text = text_of(pages["deterministic"])
    assert "31 groups looked at" in text
    assert "5 of them have an adjusted p-value below 0.05" in text
    assert "x18 > 0.5" in text
    assert "x19 > 0.5" not in text


def test_where_nothing_is_off_that_is_said_without_claiming_perfection():
    audit = deterministic() | {"scan": [], "learned": [found(0.2, 180, -0.01, 0.0, None)], "certificate": None}
    audit["groups"] = [group("everyone", 1500, 0.01, 0.0, 0.03), group("sex=f", 740, 0.02, 0.0, 0.05, mean_pit=0.49)]
    text = text_of(audit_html(audit))
    assert "No group is surely off among those looked at. That does not prove" in text
    assert "not surely off" in text


def test_named_groups_that_fail_only_their_own_band_are_not_sure_beside_joint_bounds():
    audit = deterministic() | {"scan": [], "learned": []}
    audit["certificate"]["groups"][0]["low"] = 0.0
    assert "Named group sex=f" not in text_of(audit_html(audit))
    assert "Named group sex=f" in text_of(audit_html(audit | {"certificate": None}))


def test_forecasts_that_are_off_for_everybody_are_called_so():
    audit = deterministic() | {"scan": [], "learned": []}
    audit["groups"] = audit["groups"][:1]
    assert "surely off over everybody" in text_of(audit_html(audit))


def test_too_small_groups_are_marked(pages):
    text = text_of(pages["deterministic"])
    assert "too few rows to tell" in text
    assert "region=north (too few rows: 21)" in text


def test_units_of_scores(pages):
    cells = Page(pages["deterministic"]).cells
    for cell in ("1.512", "12,563", "12,000 to 13,001", "77.2%", "75.0% to 79.0%", "4.1", "2.0 to 6.0"):
        assert cell in cells


def test_certificate_is_shown_with_its_limits(pages):
    text = text_of(pages["randomized"])
    for part in (
        "every group of at least",
        "31.4",
        "51.4%",
        "what these rows can answer",
        "is it calibrated on average? yes",
    ):
        assert part.lower() in text.lower()
    assert "is it calibrated for groups formed after the draws? no lucky draws" in text
    assert "Not covered a shift in time or population after these rows" in text


def test_everything_from_data_is_escaped():
    audit = deterministic()
    audit["name"] = EVIL
    audit["notes"] = [EVIL]
    audit["scores"][0] |= {"measure": EVIL, "unit": EVIL}
    for row in audit["groups"][1:3] + audit["scan"] + audit["certificate"]["groups"]:
        row["group"] = EVIL
    for row in audit["scan"] + audit["learned"]:
        row["direction"] = EVIL
    audit["learned"][0]["description"] = EVIL
    audit["learned"][2]["features"] = [EVIL, '"><svg onload=alert(1)>']
    audit["certificate"]["questions"][0] |= {"question": EVIL, "why": EVIL}
    audit["certificate"] |= {"assumptions": [EVIL], "not_covered": [EVIL], "method": EVIL}
    page = audit_html(audit)
    assert "<script" not in page
    assert "<svg onload" not in page
    assert EVIL in text_of(page)
    svg = re.search(r"<svg.*?</svg>", page, flags=re.S)[0]
    assert any(EVIL in (element.text or "") for element in ElementTree.fromstring(svg).iter("text"))


@pytest.mark.parametrize("name", ["$a_b$", r"\$x$", "$", "100 $ to 200 $", r"\frac{a}{b}", "a & b", "$\\frac$"])
def test_names_are_never_read_as_mathematics(name):
    audit = deterministic()
    audit["groups"][1]["group"] = name
    page = audit_html(audit)
    svg = ElementTree.fromstring(re.search(r"<svg.*?</svg>", page, flags=re.S)[0])
    assert f"{name} (760 rows)" in [element.text for element in svg.iter("text")]
    assert name in Page(page).cells


def test_characters_that_a_page_may_not_hold_are_replaced():
    audit = deterministic() | {"name": "bell \x07, half a pair \ud800"}
    audit["groups"][1]["group"] = "zero \x00 日本"
    page = audit_html(audit)
    assert page.encode("utf-8")
    assert "bell \ufffd, half a pair \ufffd" in text_of(page)
    assert "zero \ufffd 日本 (760 rows)" in text_of(page)


def test_very_many_groups_and_long_names_stay_in_bounds():
    audit = deterministic()
    audit["groups"] += [group(f"{'long ' * 200}{i}", 50, 0.1 + i / 1e5, 0.0, 0.2) for i in range(3000)]
    page = audit_html(audit)
    assert len(page.encode()) < 1_500_000
    assert "Shown are the 200 of 3,003 groups that are furthest off." in text_of(page)


def test_style_of_the_user_neither_changes_the_page_nor_is_changed(pages):
    assert "matplotlib.pyplot" not in sys.modules or mpl.rcParams["text.usetex"] is False
    with mpl.rc_context({"text.color": "magenta", "figure.facecolor": "black", "font.size": 30}):
        before = dict(mpl.rcParams)
        assert audit_html(deterministic()) == pages["deterministic"]
        assert dict(mpl.rcParams) == before


def test_bounds_that_round_to_nothing_are_not_told_of():
    audit = randomized() | {"scan": [], "learned": []}
    audit["certificate"]["groups"][0] |= {"low": 0.0004}
    assert "Named group sex=f" not in text_of(audit_html(audit))
    audit["certificate"]["groups"][0] |= {"low": 0.0016}
    assert "off by 9.2 points, surely by 0.1 or more" in text_of(audit_html(audit))


@pytest.mark.parametrize("name", AUDITS)
def test_text_and_page_say_the_same(pages, name):
    lead, sentences = verdict(AUDITS[name]())
    page, text = text_of(pages[name]), " ".join(audit_text(AUDITS[name]()).split())
    for sentence in (lead, *sentences):
        assert " ".join(sentence.split()) in page
        assert all(word in text for word in sentence.split())
