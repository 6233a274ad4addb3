"""Reports of times that are cut off: what is known, what each number assumes, and what decides.

Times are lognormal given age, people enter over six years and drop out at random; in ward C events
are earlier than forecast by 0.8 standard deviations of log time.
"""

from __future__ import annotations

import functools
import re
from typing import Any, NamedTuple

import lifelines
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from browser.report_examples import full_deterministic, group
from evenhand import Audit, Forecast, Outcomes, audit
from evenhand._format import band, percent, points
from evenhand._table import Table
from evenhand.draws import jittered
from evenhand.figures import plot_groups
from evenhand.report import Verdict, audit_brief, audit_html, audit_text, findings_of, status_of
from evenhand.report.audit import audit_document
from evenhand.report.document import Section
from evenhand.report.next_steps import next_steps
from test_html import Page

HORIZON = 2.0
GRID = np.geomspace(0.02, 60.0, 100)


class People(NamedTuple):
    """Simulated people, of whom `time` and `event` are known."""

    table: pd.DataFrame
    time: np.ndarray
    event: np.ndarray
    entered: np.ndarray
    survival: np.ndarray


@functools.cache
def people() -> People:
    # not the seed of the audit, whose draws would be those of the table
    random = np.random.default_rng([5, 0])
    n = 900
    age = random.uniform(40, 85, n).round()
    ward = random.choice(["A", "B", "C"], n, p=[0.5, 0.3, 0.2])
    location = 1.2 - 0.02 * (age - 60)
    latent = np.exp(location - 0.8 * (ward == "C") + random.normal(size=n))
    entered = random.uniform(0, 6, n)
    cut = np.minimum(6 - entered, random.exponential(8.0, n))
    survival = stats.norm.sf(np.log(GRID) - location[:, None])
    table = pd.DataFrame({"age": age, "ward": ward})
    return People(table, np.minimum(latent, cut), latent <= cut, entered, survival)


@functools.cache
def audited(kind: str = "horizon") -> Audit:
    """Return an audit without a horizon, with one, or of randomized forecasts with one."""
    who = people()
    horizon = None if kind == "no horizon" else HORIZON
    forecast = Forecast.from_survival(GRID, who.survival, horizon=horizon)
    if kind == "randomized":
        draws = jittered(len(who.time), 8, random_state=1)
        forecast = forecast.randomized(0.12, "entropic", r=draws)
    return audit(
        forecast,
        X=who.table,
        y=Outcomes(
            pd.Series(who.time, name="stay"),
            who.event,
            horizon,
            who.entered if kind == "randomized" else None,
        ),
        groups=["ward"],
        masses=(0.2, 1.0),
        learned_masses=(0.2,),
        n_simulations=2,
        about={"unit": "years"},
        random_state=0,
    )


KINDS = pytest.mark.parametrize("kind", ["no horizon", "horizon", "randomized"])


def section(kind: str, key: str) -> Section:
    """Return a section of the page."""
    found = findings_of(audited(kind).to_dict())
    return next(one for one in audit_document(found).sections if one.key == key)


def table(part: Section, label: str) -> list[dict[str, str]]:
    """Return the rows of a table of a section, by the titles of its columns."""
    one = next(one for one in part.parts if isinstance(one, Table) and one.label == label)
    titles = [column.title for column in one.columns]
    return [dict(zip(titles, map(str, row), strict=True)) for row in one.rows]


def texts(kind: str) -> str:
    """Return everything that text and page contain, without line breaks."""
    found = audited(kind)
    text = audit_text(found.to_dict())
    return " ".join(f"{text} {audit_brief(found.to_dict())}".split())


def test_people_are_counted_by_what_is_known_of_their_times() -> None:
    who = people()
    by_then = who.time <= HORIZON
    events, seen = (who.event & by_then).sum(), (who.time > HORIZON).sum()
    lost = (~who.event & by_then).sum()
    assert events + seen + lost == len(who.time)
    assert (
        f"{events} events by 2 years, {seen} seen without it until then, {lost} times cut off"
    ) in texts("horizon")
    found = f"{who.event.sum()} events, {(~who.event).sum()} times cut off"
    assert found in texts("no horizon")


def test_people_who_entered_early_are_counted() -> None:
    who = people()
    end = (who.entered + who.time).max()
    followed = (who.entered + HORIZON <= end).sum()
    assert f"{followed} of all entered at least a horizon before" in texts("randomized")


@KINDS
def test_groups_have_the_kaplan_meier_size_and_the_range_without_an_assumption(kind: str) -> None:
    rows = {row["group"]: row for row in table(section(kind, "groups"), "Named groups")}
    for row in audited(kind).groups.to_dict("records"):
        shown = rows[row["group"]]
        reach = band(points, row["km_low"], row["km_high"])
        assert shown["Kaplan-Meier error (points)"] == f"{points(row['km_error'])} ({reach})"
        ends = band(points, row["least_error"], row["most_error"])
        assert shown["without assumption (points)"] == ends
    for key in ("groups", "learned"):
        assert "independent of how early or late the event is" in str(section(kind, key).parts)


@KINDS
def test_mean_outcomes_are_not_compared_and_pages_are_complete(kind: str) -> None:
    text = texts(kind)
    assert "outcome minus forecast" not in text
    assert "events earlier than forecast" in text
    assert "errors are Kaplan-Meier estimates." in text
    assert not re.search(r"\b(nan|None|inf)\b", text)
    Page(audit_html(audited(kind).to_dict()))


def test_rates_by_the_horizon_are_those_of_lifelines() -> None:
    who = people()
    rows = {row["group"]: row for row in table(section("horizon", "survival"), TITLE)}
    everyone = np.ones(len(who.time), dtype=bool)
    masks = {"everyone": everyone} | {
        f"ward = {ward}": (who.table["ward"] == ward).to_numpy() for ward in "ABC"
    }
    # the curve between the points of the grid is close to the lognormal one
    location = 1.2 - 0.02 * (who.table["age"].to_numpy() - 60)
    predicted = stats.norm.cdf(np.log(HORIZON) - location)
    assert rows.keys() == masks.keys()
    for name, mask in masks.items():
        peer = lifelines.KaplanMeierFitter().fit(who.time[mask], who.event[mask])
        rate = 1 - float(peer.predict(HORIZON))
        assert rows[name]["observed"].startswith(f"{percent(rate)} (")
        shown = float(rows[name]["predicted"].removesuffix("%")) / 100
        assert shown == pytest.approx(predicted[mask].mean(), abs=0.002)
        assert rows[name]["cut off"] == str((~who.event & (who.time <= HORIZON))[mask].sum())


TITLE = "Probability of the event by 2 years"


def test_without_a_horizon_one_sentence_says_why_nothing_is_proven() -> None:
    found = findings_of(audited("no horizon").to_dict())
    text = texts("no horizon")
    assert "Without a horizon nothing can be proven for every group" in text
    assert found.bound is None
    steps = [step.python for step in next_steps(found)]
    assert any("horizon=" in python for python in steps)
    assert not any("randomize(" in python for python in steps)


def test_bounds_are_for_people_with_the_event() -> None:
    found = findings_of(audited("randomized").to_dict())
    assert found.bound is not None
    assert found.terms.people == "people with the event by 2 years"
    text = " ".join(str(part) for part in section("randomized", "proof").parts)
    assert "Whoever is cut off before counts with the largest error" in text


def test_next_steps_repeat_event_and_horizon() -> None:
    values = audited().to_dict()
    options = "--target stay --forecast survival=1=s1,2=s2 --event died --horizon 2"
    command = f"evenhand audit test.csv {options} --groups ward"
    recorded = {**values, "provenance": {**values["provenance"], "command": command}}
    commands = [step.command for step in next_steps(findings_of(recorded)) if step.command]
    repaired = next(one for one in commands if "recalibrate" in one)
    assert options in repaired
    lines = [step.python for step in next_steps(findings_of(values))]
    assert any(
        "X_other, evenhand.Outcomes(y_other, event_other, horizon=2)" in line for line in lines
    )


@pytest.mark.parametrize("problem", [True, False])
def test_the_size_is_the_kaplan_meier_estimate_and_the_mark_that_of_the_audit(
    problem: bool,
) -> None:
    sizes = {"km_error": 0.2, "km_low": 0.15, "km_high": 0.25, "least_error": 0.0}
    one = group("a", 50_000, 0.001, 0.0, 0.006) | sizes | {"most_error": 0.4, "problem": problem}
    values = full_deterministic() | {"groups": [one, one], "scan": [], "learned": []}
    found = status_of(findings_of(values | {"censoring": COUNTS}))
    assert (found.verdict is Verdict.PROBLEM) is problem
    assert not found.is_proven
    assert found.n_beyond == 2


COUNTS = {"n_events": 90, "n_reached": 0, "n_lost": 10, "horizon": None, "n_followed": None}


@KINDS
def test_figures_draw_kaplan_meier_estimates(kind: str) -> None:
    found = audited(kind)
    axes = plot_groups(found.groups, tolerance=0.02)
    drawn = np.concatenate([line.get_xdata() for line in axes.lines if line.get_marker() != "None"])
    assert sorted(drawn) == pytest.approx(sorted(found.groups["km_error"]))
    assert "Kaplan-Meier" in axes.get_xlabel()


def test_awkward_names_and_absent_values_leave_a_page_complete() -> None:
    values: dict[str, Any] = audited("randomized").to_dict()
    evil = '"><script>alert(1)</script>'
    values["survival"][1]["group"] = evil
    values["survival"][2] |= dict.fromkeys(("low", "high", "least", "most"))
    values["groups"][2] |= dict.fromkeys(("km_low", "km_high", "least_error", "most_error"))
    values["about"] = {"unit": evil}
    page = audit_html(values)
    Page(page)
    assert "<script>alert" not in page
    assert not re.search(r">\s*(nan|None|inf)\b", page)
