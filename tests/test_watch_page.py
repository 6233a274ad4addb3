"""The page and the text of a watch, and the schema of its JSON."""

import json
import math
import re
from datetime import date, datetime, timedelta

import jsonschema
import pytest

from browser.watch_examples import EVIL, WATCHES
from evenhand._table import lines_within
from evenhand.monitoring import watch_schema
from evenhand.report import watch_html, watch_text
from evenhand.report.charts import Chart, Points
from evenhand.report.watch import watch_document
from test_golden_pages import data_of, page_text


def shown(values):
    return " ".join(page_text(watch_html(values)).split())


def printed(values):
    return " ".join(watch_text(values).split())


def evidence(values):
    (chart,) = watch_document(values).picture.parts
    assert isinstance(chart, Chart)
    return chart


@pytest.mark.parametrize("name", WATCHES)
def test_the_json_of_a_watch_fulfils_the_schema(name):
    jsonschema.validate(json.loads(json.dumps(WATCHES[name]())), watch_schema())


def written(date):
    return f"{date:%d %B %Y}".lstrip("0")


def points(chart):
    return {layer.label: layer for layer in chart.layers if isinstance(layer, Points)}


def test_an_alarm_comes_first_with_what_since_when_how_strong_and_what_to_do():
    values = WATCHES["alarm"]()
    of_promise, of_group = values["alarms"]
    since = [datetime.fromisoformat(one["since"]) for one in (of_promise, of_group)]
    # what is audited was served a maturity of 30 days before the first change
    served = written(min(since) - timedelta(days=30))
    for text in (shown(values), printed(values)):
        promise = (
            f"Promise, every group of 20%: BROKEN since about {written(since[0])}: outcomes"
            " higher than forecast."
        )
        assert promise in text
        (error,) = (one["error"] for one in values["groups"] if one["name"] == of_group["group"])
        group = (
            f"{of_group['group']}: above 2 points since about {written(since[1])}: outcomes higher"
            f" than forecast ({100 * error:.1f} points over all forecasts)"
        )
        assert text.index(promise) < text.index(group)
        assert f"Audit the rows served since about {served}, then repair or refit" in text
        assert "Do not rely on the certificate" in text
        assert "Notice, no alarm: left the range of the certificate" in text
    assert re.search(r"ALARM\. If nothing [^.]*\. Promise, every group", printed(values))
    # the page has the date of the alarm itself, and the rows until then
    raised = written(datetime.fromisoformat(of_promise["date"]))
    assert f"{raised}, after {of_promise['n_rows']:,} forecasts" in shown(values)


def test_what_to_audit_is_named_by_its_maturity_if_periods_are_long():
    values = WATCHES["alarm"]()
    values["settings"]["period"] = "month"
    since = written(datetime.fromisoformat(values["alarms"][0]["since"]))
    assert f"Audit the rows that matured since {since}, then" in printed(values)


def test_a_watch_without_an_alarm_names_what_is_nearest_to_one():
    values = WATCHES["quiet"]()
    # of these tests, that of a group
    row, test = values["groups"][0], values["tests"][2]
    row["max_log_evidence"] = test["log_evidence"][-9] = row["threshold"] - 0.9
    share = math.exp(row["max_log_evidence"] - row["threshold"])
    ratios = [max(t["log_evidence"]) - t["threshold"] for t in values["tests"]]
    assert max(ratios) == pytest.approx(math.log(share))
    for text in (shown(values), printed(values)):
        most = rf"no alarm\. ?Most evidence: {math.floor(1000 * share) / 10:.1f}% of the alarm"
        assert re.search(f"{most} threshold, of {row['name']}\\.", text, re.I)
        assert re.search("no evidence against it in 200 days. (- )?Promised: at most 30.0 p", text)


def test_probability_of_the_evidence_is_the_share_of_a_false_alarm():
    # Ville's inequality and a union bound: the evidence of any test is e^2 times its threshold
    # with a probability of at most 0.05 / e^2, which is 1 in 147; two digits, rounded down
    values = WATCHES["quiet"]()
    test = values["tests"][0]
    test["log_evidence"][-1] = test["threshold"] + 2.0
    values["alarms"] = [
        {key: test[key] for key in ("part", "group", "direction", "threshold")}
        | {"date": values["dates"][-1], "since": values["dates"][-9], "n_rows": 10_000}
        | {"log_evidence": test["threshold"] + 1.0, "max_log_evidence": test["threshold"] + 2.0}
    ]
    assert "such evidence would have a probability of at most 1 in 140." in printed(values)


def test_the_promise_is_shown_with_missing_outcomes_at_best_and_at_worst():
    values = WATCHES["quiet"]()
    values["promise"] |= {"estimate": 0.2614, "best_case": 0.2533, "worst_case": 0.2891}
    assert (
        "Promised: at most 30.0 points (95% confidence). Worst group: an estimated 26.1 points,"
        " 25.3 to 29.0 whatever the missing outcomes are"
    ) in shown(values)


def test_a_promise_with_two_bounds_has_signs_and_ends_rounded_outwards():
    values = WATCHES["events"]()
    values["settings"] |= {"targets": [0.0811, 0.0612], "atom": 0.0}
    values["promise"] |= {"direction": "lower"}
    # of the lower side, an error of 1.81 to 4.91 points is a bias of -4.91 to -1.81
    values["promise"] |= {"estimate": 0.0311, "best_case": 0.0181, "worst_case": 0.0491}
    assert (
        "Promised: in every group of at least 20% of the people whose outcome is not 0: a bias of"
        " -6.2 to +8.2 points (95% confidence). Worst group: an estimated -3.1 points, -5.0 to"
        " -1.8 whatever"
    ) in printed(values)


def test_probabilities_have_a_bias_and_no_draws():
    text = shown(WATCHES["events"]())
    assert "a bias of at most 8.0 points" in text
    assert "bias (points)" in text
    assert "draws (" not in text


@pytest.mark.parametrize("name", ["quiet", "years"])
def test_curves_pass_through_the_most_evidence_of_each_part(name):
    values = WATCHES[name]()
    chart = evidence(values)
    first = datetime(1970, 1, 1).toordinal()
    for part, label in (("promise", "promise"), ("group", "groups"), ("draws", "draws")):
        tests = [test for test in values["tests"] if test["part"] == part]
        highest = {
            float(date.fromisoformat(day).toordinal() - first): max(
                (test["log_evidence"][i] - test["threshold"]) / math.log(10) for test in tests
            )
            for i, day in enumerate(values["dates"])
        }
        layer = points(chart)[label]
        for x, y in [*layer.along, *((one.x, one.y) for one in layer.points)]:
            assert y == pytest.approx(min(max(highest[x], chart.y.low), chart.y.high))
        ends = [min(max(value, -6.0), 4.0) for value in highest.values()]
        # thinning keeps the extremes and both ends
        assert {min(ends), max(ends)} <= {y for _, y in layer.along}
        assert {layer.along[-1][0], layer.points[-1].x} == {max(highest)}


def test_alarms_are_marked_at_or_above_the_threshold_on_their_dates():
    values = WATCHES["alarm"]()
    marks = points(evidence(values))
    assert [point.y >= 0 for point in marks["alarm"].points] == [True, True]
    days = [(date.fromisoformat(one["date"]) - date(1970, 1, 1)).days for one in values["alarms"]]
    assert [point.x for point in marks["alarm"].points] == sorted(days)
    assert ": notice, Promise, every group of 20%, outcomes" in marks["notice"].points[0].tip


def test_outcomes_missing_and_late_are_counted_with_their_usual_delay():
    values = WATCHES["quiet"]()
    found = re.search(
        r"outcomes: ([\d,]+) of ([\d,]+) \(.*?\), of which ([\d,]+) were", shown(values)
    )
    counts = [int(n.replace(",", "")) for n in found.groups()]
    assert counts == [values["n_missing"], values["n_rows"], values["n_late"]]
    values["days_90"] = 21.5
    assert "; 90% of the recorded came within 22 days; 1,489 more" in printed(values)


def test_the_page_embeds_its_data():
    values = WATCHES["quiet"]()
    data = data_of(watch_html(values))
    expected = {key: one for key, one in json.loads(json.dumps(values)).items() if key != "tests"}
    assert data == expected


def test_names_are_text_and_never_markup():
    page = watch_html(WATCHES["hostile"]())
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert page.count("</script>") == 2  # of the data and of the script
    assert "Watch of script&gt;&lt;img src=x onerror=alert(1)&gt;<" in page
    assert EVIL.replace("<", "&lt;").replace(">", "&gt;") in page
    assert len(data_of(page)["groups"]) == 4


@pytest.mark.parametrize("width", [60, 118])
@pytest.mark.parametrize("name", ["alarm", "many", "events", "hostile"])
def test_text_is_short_and_fits_the_terminal(name, width):
    with lines_within(width):
        lines = watch_text(WATCHES[name]()).splitlines()
    assert max(map(len, lines)) <= width
    assert all(line.isprintable() for line in lines)
    # the names of one example are long
    assert len(lines) <= (30 if width == 118 else 45)


def test_unknown_numbers_are_shown_as_unknown():
    values = WATCHES["quiet"]()
    values["promise"] |= dict.fromkeys(("estimate", "best_case", "worst_case"))
    values["groups"][0]["error"] = math.nan
    values["tests"][2]["log_evidence"][:150] = [None] * 150
    text = shown(values)
    assert "Not estimated yet" in text
    assert "nan" not in text.lower().split()
    assert "None" not in text
