"""Reports of times that are cut off: what is known, what each number assumes, and what decides.

In ward C events are earlier than forecast by a standard deviation of log time.
"""

import functools
import re

import lifelines
import msgspec
import numpy as np
import pandas as pd
import pytest

from censored_laws import Sample, forecast_cdf
from evenhand import Outcomes, audit
from evenhand._format import band, percent, points
from evenhand._kinds import HIGHER, NARROW
from evenhand._table import Table
from evenhand.audits import Search
from evenhand.draws import jittered
from evenhand.figures import plot_groups
from evenhand.report import audit_html, audit_text
from evenhand.report.audit import audit_document
from evenhand.report.charts import Chart, Points
from evenhand.report.kinds import Kind
from evenhand.report.slots import Slots
from test_html import Page

HORIZON = 2.0


@functools.cache
def people():
    # not the seed of the audit, whose draws would be those of the table
    who = Sample.of(900, np.random.default_rng([5, 0]), shift=-1.0)
    ward = np.where(who.is_shifted, "C", np.where(np.arange(900) % 3, "A", "B"))
    return who, pd.DataFrame({"age": (62 + 12 * who.x).round(), "ward": ward})


@functools.cache
def audited(kind="horizon"):
    """Return an audit without a horizon, with one, or of randomized forecasts with one."""
    who, table = people()
    horizon = None if kind == "no horizon" else HORIZON
    forecast = who.forecast(horizon)
    entered = None
    if kind == "randomized":
        entered = who.entered
        forecast = forecast.randomized(0.12, "entropic", r=jittered(900, 8, random_state=1))
    return audit(
        forecast,
        X=table,
        y=Outcomes(pd.Series(who.time, name="stay"), who.event, horizon, entered),
        groups=["ward"],
        search=Search(masses=(0.2, 1.0), learned_masses=(0.2,), n_simulations=2),
        about={"unit": "years"},
        random_state=0,
    )


KINDS = pytest.mark.parametrize("kind", ["no horizon", "horizon", "randomized"])


def section(kind, key):
    return next(one for one in audit_document(audited(kind).rows).sections if one.key == key)


def table(part):
    """Return the rows of the table of a section, by the titles of its columns."""
    one = next(one for one in part.parts if isinstance(one, Table))
    titles = [column.title for column in one.columns]
    return [dict(zip(titles, map(str, row), strict=True)) for row in one.rows]


def texts(kind):
    rows = audited(kind).rows
    pattern = r"<script.*?</script>|<style.*?</style>|<[^>]*>"
    page = re.sub(pattern, "", audit_html(rows), flags=re.S)
    return " ".join(f"{audit_text(rows)} {audit_text(rows, full=True)} {page}".split())


def test_people_are_counted_by_what_is_known_of_their_times():
    who, _ = people()
    by_then = who.time <= HORIZON
    events, seen = (who.event & by_then).sum(), (who.time > HORIZON).sum()
    lost = (~who.event & by_then).sum()
    assert events + seen + lost == len(who.time)
    found = f"{events} events by 2 years, {seen} seen without it until then, {lost} lost before"
    assert found in texts("horizon")
    assert f"{who.event.sum()} events, {(~who.event).sum()} lost before" in texts("no horizon")
    # that nobody was lost is no caution
    rows = audited().rows
    none = msgspec.structs.replace(rows.censoring, n_lost=0)
    assert len(Slots(rows).cautions) == 1
    assert not Slots(msgspec.structs.replace(rows, censoring=none)).cautions


@KINDS
def test_groups_have_the_kaplan_meier_size_and_the_range_without_an_assumption(kind):
    rows = {row["Group"]: row for row in table(section(kind, "groups"))}
    for one in audited(kind).rows.groups:
        shown = rows["Everyone" if one.group == "everyone" else one.group]
        reach = band(points, one.km_error_low, one.km_error_high)
        assert shown["Error in points"] == f"{points(one.km_error)} ({reach})"
        assert shown["Without an assumption"] == band(points, one.least_error, one.most_error)
    assert "independent of how early or late the event is" in str(section(kind, "decided").parts)


@KINDS
def test_mean_outcomes_are_not_compared_and_pages_are_complete(kind):
    text = texts(kind)
    assert "minus forecast" not in text
    # with a horizon the title has rates alone
    assert ("earlier than forecast" in text) is (kind == "no horizon")
    # a rate that is significantly off is named for any direction that does not contradict it
    rows = audited(kind).rows
    for direction in (NARROW, HIGHER) if kind == "horizon" else ():
        groups = [rows.everyone, msgspec.structs.replace(rows.named[2], direction=direction)]
        alone = msgspec.structs.replace(rows, groups=groups, scan=(), learned=(), by_forecast=())
        assert ("had the event by 2" in Slots(alone).title) is (direction != HIGHER)
    assert "Kaplan-Meier estimates" in text
    assert not re.search(r"\b(nan|None|inf)\b", text)
    Page(audit_html(audited(kind).rows))


def test_rates_by_the_horizon_are_those_of_lifelines():
    who, people_of = people()
    rows = {row["Group"]: row for row in table(section("horizon", "survival"))}
    masks = {f"ward = {ward}": people_of["ward"].to_numpy() == ward for ward in "ABC"}
    masks["everyone"] = np.ones(len(who.time), dtype=bool)
    # the curve between the points of the grid is close to the lognormal one
    predicted = forecast_cdf(HORIZON, who.x)
    assert rows.keys() == masks.keys()
    for name, mask in masks.items():
        peer = lifelines.KaplanMeierFitter().fit(who.time[mask], who.event[mask])
        rate = 1 - float(peer.predict(HORIZON))
        assert rows[name]["Observed"].startswith(f"{percent(rate)} (")
        shown = float(rows[name]["Predicted"].removesuffix("%")) / 100
        assert shown == pytest.approx(predicted[mask].mean(), abs=0.002)
        assert rows[name]["Lost"] == str((~who.event & (who.time <= HORIZON))[mask].sum())


def test_the_picture_has_rates_by_the_horizon_if_those_of_the_worst_group_are_known():
    rows = audited().rows
    assert rows.leading.group == "ward = C"
    picture = audit_document(rows).picture
    assert picture.title == "Predicted and observed rate of the event by 2 years"
    assert "Rates of the event by 2 years" in texts("horizon")
    chart = picture.parts[0]
    drawn = {row.name: row.values for row in chart.rows}
    rate = next(one for one in rows.survival if one.group == "ward = C")
    assert drawn["Ward C"] == (percent(rate.predicted), percent(rate.observed))


def test_without_a_horizon_one_sentence_says_why_nothing_is_proven():
    rows = audited("no horizon").rows
    assert "Without a horizon nothing can be proven for every group" in texts("no horizon")
    assert rows.bound is None
    steps = [step.code for step in Slots(rows).next]
    assert any("horizon=" in python for python in steps)
    assert not any("randomize(" in python for python in steps)


def test_bounds_are_for_people_with_the_event():
    rows = audited("randomized").rows
    assert rows.bound is not None
    assert Kind.of(rows).people == "people with the event by 2 years"
    proven = str(section("randomized", "proof").parts)
    assert "Bounds for every group are about people with the event by 2 years." in proven
    # where there is one, next steps repeat it and the event
    lines = "\n".join(step.code for step in Slots(audited().rows).next)
    assert "evenhand.Outcomes(y_other, event_other, horizon=2)" in lines


@KINDS
def test_figures_draw_kaplan_meier_estimates(kind):
    found = audited(kind)
    axes = plot_groups(found.groups, tolerance=0.02)
    drawn = np.concatenate([line.get_xdata() for line in axes.lines if line.get_marker() != "None"])
    assert sorted(drawn) == pytest.approx(sorted(found.groups["km_error"]))
    assert "Kaplan-Meier" in axes.get_xlabel()


def test_the_calibration_of_times_and_of_the_event_are_separate_charts():
    rows = audited().rows
    bins = [one for one in rows.reliability if one.group == "everyone"]
    for key, marked in (("calibration", rows.calibration), ("rates", bins)):
        chart = next(one for one in section("horizon", key).parts if isinstance(one, Chart))
        (layer,) = (one for one in chart.layers if isinstance(one, Points))
        assert len(layer.points) == len(marked) > 0
