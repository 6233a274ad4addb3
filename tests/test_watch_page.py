"""The page and the text of a watch, made from values by hand."""

from __future__ import annotations

import json
import math
import re
from datetime import date, datetime, timedelta
from typing import Any

import pytest

from browser.watch_examples import EVIL, WATCHES, alarm, events, quiet
from evenhand._table import lines_within
from evenhand.report import watch_html, watch_text
from evenhand.report.charts import Chart, Points
from evenhand.report.document import Document, Pair
from evenhand.report.watch_page import watch_document
from test_golden_pages import data_of, page_text


def shown(values: Any) -> str:
    """Return what a reader of the page sees or hears, in one line."""
    return " ".join(page_text(watch_html(values)).split())


def printed(values: Any) -> str:
    return " ".join(watch_text(values).split())


def charts(document: Document, title: str) -> list[Chart]:
    parts = [part for section in document.sections for part in section.parts]
    parts += [one for part in parts if isinstance(part, Pair) for one in [*part.left, *part.right]]
    return [part for part in parts if isinstance(part, Chart) and part.title == title]


def evidence(values: Any) -> Chart:
    (chart,) = charts(watch_document(values), "Evidence by part")
    return chart


def points(chart: Chart) -> dict[str, Points]:
    return {layer.label: layer for layer in chart.layers if isinstance(layer, Points)}


# Status and findings.


def test_an_alarm_comes_first_with_what_since_when_how_strong_and_what_to_do() -> None:
    values = alarm()
    of_promise = values["alarms"][0]
    since, raised = (
        datetime.fromisoformat(of_promise[key]).strftime("%d %B %Y").lstrip("0")
        for key in ("since", "date")
    )
    served = datetime.fromisoformat(of_promise["since"]) - timedelta(days=30)
    first = served.strftime("%d %B %Y").lstrip("0")
    for text in (shown(values), printed(values)):
        start = text[: text.lower().index("alarm was raised") + 120]
        assert (
            f"The promise for every group of at least 20% of people has been broken since about"
            f" {since} (forecasts served since about {first}): outcomes are higher than forecast."
        ) in start
        assert f"The alarm was raised on {raised}." in start
        assert "What to do: do not rely on the certificate" in text
        assert "In the group age > 60, the error has been above the tolerance of 2 points" in text
        assert "Notice, no alarm: the PITs left the certified envelope" in text
    assert printed(values).index("ALARM.") < 150


def test_a_watch_without_an_alarm_names_what_is_nearest_to_one() -> None:
    values = quiet()
    row = max(values["groups"], key=lambda row: row["max_log_evidence"])
    share = math.exp(row["max_log_evidence"] - row["threshold"])
    ratios = [max(t["log_evidence"]) - t["threshold"] for t in values["tests"]]
    assert max(ratios) == pytest.approx(math.log(share))  # of these tests, that of a group
    for text in (shown(values), printed(values)):
        assert re.search("no alarm. ?No test has reached its threshold", text, re.I)
        assert f"The highest evidence so far is {100 * share:.1f}"[:-1] in text
        assert f"in the test of the group {row['name']}." in text


def test_probability_of_the_evidence_is_the_share_of_a_false_alarm() -> None:
    # Ville's inequality and a union bound: the evidence of any test is e^2 times its threshold
    # with a probability of at most 0.05 / e^2, which is 1 in 147; two digits, rounded down
    values = quiet()
    test = values["tests"][0]
    test["log_evidence"][-1] = test["threshold"] + 2.0
    values["alarms"] = [
        {key: test[key] for key in ("part", "group", "direction", "threshold")}
        | {"date": values["dates"][-1], "since": values["dates"][-9], "n_rows": 10_000}
        | {"log_evidence": test["threshold"] + 1.0, "max_log_evidence": test["threshold"] + 2.0}
    ]
    assert "the probability of so much evidence would be at most 1 in 140." in printed(values)


# The promise.


def test_the_promise_is_shown_with_missing_outcomes_at_best_and_at_worst() -> None:
    text = shown(quiet())
    assert (
        "every group of at least 20% of people, named or not, has an error of at most 30.0 points,"
        " certified with 95% confidence. Estimated for the worst group of 20% of the people"
        " watched: 26.1 points. It is between 25.3 and 29.0 points, whatever"
    ) in text


def test_probabilities_have_a_bias_and_no_draws() -> None:
    text = shown(events())
    assert "a bias of its probabilities of at most 8.0 points" in text
    assert "bias (points)" in text
    assert "[Draws" not in text
    assert "Each person's draw" not in text


# Evidence over time.


@pytest.mark.parametrize("name", ["quiet", "years"])
def test_curves_pass_through_the_most_evidence_of_each_part(name: str) -> None:
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
        assert chart.y is not None
        for x, y in [*layer.along, *(point.place for point in layer.points)]:
            assert y == pytest.approx(min(max(highest[x], chart.y.low), chart.y.high))
        ends = [min(max(value, -6.0), 4.0) for value in highest.values()]
        # thinning keeps the extremes and both ends
        assert {min(ends), max(ends)} <= {y for _, y in layer.along}
        assert {layer.along[-1][0], layer.points[-1].x} == {max(highest)}


def test_alarms_are_marked_at_or_above_the_threshold_on_their_dates() -> None:
    values = alarm()
    marks = points(evidence(values))
    assert [point.y >= 0 for point in marks["alarm"].points] == [True, True]
    days = [(date.fromisoformat(one["date"]) - date(1970, 1, 1)).days for one in values["alarms"]]
    assert [point.x for point in marks["alarm"].points] == sorted(days)
    assert ": notice, promise for every group" in marks["notice"].points[0].tip


# Groups, delays and data.


def test_outcomes_missing_and_late_are_counted_with_their_delays() -> None:
    values = quiet()
    found = re.search(
        r"([\d,]+) missing of ([\d,]+) forecasts .*? of which ([\d,]+) were", shown(values)
    )
    assert found is not None
    counts = [int(n.replace(",", "")) for n in found.groups()]
    assert counts == [values["n_missing"], values["n_rows"], values["n_late"]]
    (chart,) = charts(watch_document(values), "Delays of outcomes")
    bars = [bar for layer in chart.layers if hasattr(layer, "bars") for bar in layer.bars]
    assert [bar.height for bar in bars] == values["delays"]["counts"]
    assert [bar.is_off for bar in bars] == [start >= 30 for start in values["delays"]["days"][:-1]]


def test_the_page_embeds_its_data() -> None:
    values = quiet()
    data = data_of(watch_html(values))
    assert {key: one for key, one in data.items() if key != "tests"} == {
        key: one for key, one in json.loads(json.dumps(values)).items() if key != "tests"
    }
    for kept, test in zip(data["tests"], values["tests"], strict=True):
        assert kept["log_evidence"] == pytest.approx(test["log_evidence"], abs=5.1e-4)


# Hostile names, and text of a terminal.


def test_names_are_text_and_never_markup() -> None:
    values = WATCHES["hostile"]()
    page = watch_html(values)
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert page.count("</script>") == 2  # of the data and of the script
    assert f"<h1>Watch of {EVIL.replace('<', '&lt;').replace('>', '&gt;')}</h1>" in page
    assert len(data_of(page)["groups"]) == 4


@pytest.mark.parametrize("width", [60, 118])
@pytest.mark.parametrize("name", ["alarm", "many", "events", "hostile"])
def test_text_is_short_and_fits_the_terminal(name: str, width: int) -> None:
    with lines_within(width):
        lines = watch_text(WATCHES[name]()).splitlines()
    assert max(map(len, lines)) <= width
    assert all(line.isprintable() for line in lines)
    # rows of a table that does not fit are stacked, and a group of one example has a long name
    assert len(lines) <= (45 if width == 118 else 90)


def test_unknown_numbers_are_shown_as_unknown() -> None:
    values = quiet()
    values["promise"] |= dict.fromkeys(("estimate", "best_case", "worst_case"))
    values["groups"][0]["error"] = math.nan
    values["tests"][2]["log_evidence"][:150] = [None] * 150
    text = shown(values)
    assert "It is not estimated yet." in text
    assert "nan" not in text.lower().split()
    assert "None" not in text
