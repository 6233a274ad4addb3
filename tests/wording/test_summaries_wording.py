"""Exact sentences of the summaries of certificates, decisions and selections."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from evenhand import Forecast, certify_pit
from evenhand.certificates import WiderInterval
from evenhand.decisions import BayesDecision, StepLoss, loss_guarantee
from evenhand.planning import MaxGroupError, MaxPrice, MaxWider, Target
from evenhand.selection import PlainInterval, Selection, SpreadGroup


def test_a_certificate_lists_its_bounds():
    n = 40
    pit = (np.arange(n) + 0.5) / n
    first = certify_pit(pit, groups={"first": np.arange(n) < 1}).summary().splitlines()
    assert first[:5] == [
        "With 95% confidence, from 40 people, one deterministic forecast each:",
        "- overall, predicted probabilities are off by at most 21.9 points",
        "- in group 'first' (1 row), by 0.0 to 50.0 points",
        "- without a draw, in every group of at least 20% of people, the 95% interval covers at"
        " least 5.9% of outcomes, the 98% interval 48.1% and the 99% interval 48.1%; there is no"
        " upper bound",
        "Errors are means over all probability levels: 0 points is perfect, 50 the worst.",
    ]


def test_a_certificate_bounds_every_group_of_a_size():
    r = np.tile((np.arange(16) + 0.5) / 16, (50, 1))
    r = r + np.random.default_rng(0).uniform(-0.02, 0.02, r.shape)
    (line, *_) = [
        line for line in certify_pit(r, r).summary().splitlines() if "at least 20%" in line
    ]
    assert line == (
        "- in every group of at least 20% of people, by at most 28.5 points; the 80% prediction"
        " interval covers 33.6% to 97.1% of outcomes"
    )


def test_a_guarantee_for_losses_is_read_line_by_line():
    bank = BayesDecision(("yes", "no"), {"yes": StepLoss([0.0], [4.0, 0.0]), "no": 1.0})
    forecast = Forecast.from_normal(np.zeros(50), np.ones(50))
    y = np.linspace(-2, 2, 50)
    found = loss_guarantee(bank, forecast, y, k=2, masses=0.5, random_state=0)
    assert found.summary().splitlines() == [
        "The promised loss is 1 on average, the realized loss 1.",
        "Under a forecaster that is calibrated on average, the loss exceeds k times the promise"
        f" with probability at most 1/k: {found.why}. One group of a given size may contain all of"
        " these cases.",
        "- more than 2 times the promise, everyone: 0.0% (0.0% to 7.2%), bound 50.0%: proven",
        "- more than 2 times the promise, every group of 50%: at most 11.7%, bound 100.0%: no"
        " claim",
        "Each line gives the share of these rows and, in parentheses, its 95% confidence interval."
        " Proven: the loss exceeds k times the promise no more often than the bound, which is no"
        " statement about the mean loss. Open: the rows are too few to decide. Bounds for every"
        " group of a given size hold for groups chosen in any way that does not depend on the"
        " draws.",
    ]
    off = replace(found, more_low=0.1234, more_high=0.2345)
    assert off.summary().splitlines()[0] == (
        "The promised loss is 1 on average, the realized loss 1: 0.123 to 0.235 more with"
        " 95% confidence, so the forecasts are not calibrated for these decisions."
    )


def certificate(low, high):
    return SimpleNamespace(
        one_row_each=False,
        group_error=lambda mass: 0.29641,
        coverage=lambda level, mass: (low, high),
    )


def selection(**changes):
    comparison = pd.DataFrame(
        {
            "forecaster": ["without features", "as it is", "randomized"],
            "log_score": [1.5, 1.0, 1.4567],
            "crps": [0.6, 0.5, np.nan],
            "width": [2.6, 2.0, 2.5],
            "average_error": [0.01, 0.0512, 0.04],
            "certified_group_error": [np.nan, np.nan, 0.29641],
        }
    )
    given = {
        "model": SimpleNamespace(alpha=0.1234, recalibrate=False),
        "certificate": certificate(0.60891, 0.89211),
        "target": Target(MaxGroupError(0.3), 1 / 3, 0.95),
        "price": 0.4567,
        "limit": 0.4491,
        "wider": 0.254,
        "alternative": None,
        "comparison": comparison,
        "n_learning": 70,
        "n_certifying": 30,
        "certifying": np.arange(30),
        "plain": PlainInterval(WiderInterval(0.98, 1 / 3, 0.6312, 0.967, 30, 0.95), -0.121),
        "searches": None,
    }
    return Selection(**given | changes)


def searches(
    error, low, spread=None, description="age > 50", features=("age", "sex"), p_value=None
):
    # the test is more powerful than the bound
    p_value = (0.001 if low > 0 else 0.5) if p_value is None else p_value
    group = SimpleNamespace(
        mass=1 / 3,
        error=error,
        low=low,
        is_significant=p_value < 0.05,
        p_value=p_value,
        confidence=0.95,
        direction="intervals too narrow",
        description=description,
        features=features,
    )
    return SimpleNamespace(learned=lambda: group, spread=lambda: spread)


UNEVEN = SpreadGroup(0.12, True, 0.611, 0.803, "age > 50")


@pytest.mark.parametrize(
    ("changes", "line", "sentence"),
    [
        (
            {},
            0,
            "In every group of at least 33.34% of people, predicted probabilities are off by at"
            " most 29.7 points, with 95% confidence (30 people; trained on 70 other rows).",
        ),
        (
            {"n_learning": 0},
            0,
            "In every group of at least 33.34% of people, predicted probabilities are off by at"
            " most 29.7 points, with 95% confidence (30 people, whom the model must not have"
            " seen).",
        ),
        (
            {"searches": searches(0.1234, 0.0567, UNEVEN)},
            0,
            "The width of this model's prediction intervals does not vary enough with the features."
            " Its 80% intervals cover an estimated 61% of outcomes in a group of 33.34% of people"
            " (approximately: age > 50), 80% overall. A model that learns the spread would help"
            " more than a draw.",
        ),
        (
            {},
            1,
            "In every such group, 80% intervals cover between 60.8% and 89.3% of outcomes.",
        ),
        (
            {"certificate": certificate(0.3, 0.9996)},
            1,
            "In every such group, 80% intervals cover at least 30.0% of outcomes, with no upper"
            " limit.",
        ),
        (
            {},
            2,
            "A 98% interval without a draw covers at least 63.1% there and 97% overall, with no"
            " upper limit; it is 12% narrower than the randomized 80% interval.",
        ),
        ({}, 3, "This is the least randomization with this guarantee: alpha = 0.123."),
        (
            {"target": Target(MaxWider(0.125), 0.2, 0.95)},
            3,
            "This is the most that can be guaranteed with 80% intervals at most 12.5% wider:"
            " alpha = 0.123.",
        ),
        (
            {"target": Target(MaxPrice(0.5), 0.2, 0.95)},
            3,
            "This is the most that can be guaranteed for 0.5 nats: alpha = 0.123.",
        ),
        (
            {},
            4,
            "Price: 0.46 nats of log score; 80% intervals are 25% wider on average.",
        ),
        (
            {"limit": 0.489},
            5,
            "Around the true distribution, the price of this mean error is at least 0.48 nats. It"
            " is lower here because the model itself is off by an estimated 5.1 points overall.",
        ),
        (
            {"searches": searches(0.1234, 0.0567)},
            5,
            "Without a draw, the largest error found in a group of 33.34% of people defined by"
            " features (approximately: age > 50) is an estimated 12.3 points, at least 5.6 with 95%"
            " confidence: intervals too narrow.",
        ),
        (
            {"searches": searches(0.1234, 0.0567, description=None)},
            5,
            "Without a draw, the largest error found in a group of 33.34% of people defined by"
            " features (by age, sex) is an estimated 12.3 points, at least 5.6 with 95% confidence:"
            " intervals too narrow.",
        ),
        (
            {"searches": searches(0.0123, 0.0, p_value=0.012)},
            5,
            "Without a draw, the largest error found in a group of 33.34% of people defined by"
            " features (approximately: age > 50) is an estimated 1.2 points (p = 0.0120):"
            " intervals too narrow.",
        ),
        (
            {"searches": searches(0.01, 0.0)},
            5,
            "Without a draw, no significant error was found in a group of 33.34% of people defined"
            " by features.",
        ),
        (
            {},
            5,
            "Overall, the model itself is off by an estimated 5.1 points; recalibrate it"
            " first (in Python: recalibrate=True).",
        ),
        (
            {"model": SimpleNamespace(alpha=1.0)},
            2,
            "No randomization was needed: alpha = 1. Overall, predicted probabilities are off by an"
            " estimated 4.0 points.",
        ),
        (
            {
                "model": SimpleNamespace(alpha=1.0),
                "target": Target(MaxWider(1e-9), 0.2, 0.95),
            },
            2,
            "No randomization is possible within the price limit: alpha = 1. Overall, predicted"
            " probabilities are off by an estimated 4.0 points.",
        ),
        (
            {
                "model": SimpleNamespace(alpha=0.005),
                "target": Target(MaxPrice(9.0), 0.2, 0.95),
            },
            3,
            "This is the most that can be guaranteed for 9 nats: alpha = 0.005, the smallest that"
            " is tried.",
        ),
    ],
)
def test_a_selection_gives_its_guarantee_and_its_price(changes, line, sentence):
    assert selection(**changes).summary().splitlines()[line] == sentence


@pytest.mark.parametrize(
    ("goal", "sentence"),
    [
        (
            MaxGroupError(0.3),
            "At this promise the forecast is worse than one that ignores every feature: allow a"
            " larger error or more rows.",
        ),
        (
            MaxWider(0.5),
            "At this price the forecast is worse than one that ignores every feature: allow a"
            " smaller one.",
        ),
    ],
)
def test_a_selection_reports_that_it_is_not_worth_its_price(goal, sentence):
    found = selection()
    worse = found.comparison.assign(log_score=[1.45, 1.0, 1.4567])
    assert sentence not in found.summary()
    assert sentence in selection(comparison=worse, target=Target(goal, 0.2, 0.95)).summary()


def test_a_selection_reports_that_its_model_is_worse_than_none():
    found = selection()
    poor = selection(comparison=found.comparison.assign(log_score=[0.9, 1.0, 1.4567]))
    sentence = (
        "Even without a draw, the model has a worse log score than a forecast that ignores every"
        " feature: improve the model first."
    )
    assert sentence not in found.summary()
    assert sentence in poor.summary()
    assert "At this promise" not in poor.summary()
    assert poor.caveat.endswith(f" account for it. {sentence}")


def test_a_selection_names_the_people_on_whom_crps_is_compared():
    assert "CRPS (250 people)" in selection(n_certifying=251).summary()
    assert "people)" not in selection(n_certifying=250).summary().splitlines()[-5]


def test_a_selection_lists_its_forecasters():
    lines = selection().summary().splitlines()
    assert max(map(len, lines[-5:])) <= 118
    assert [" ".join(line.split()) for line in lines[-5:]] == [
        "forecaster log score CRPS width (80%) average error (points) certified group error"
        " (points)",
        "─" * 108,
        "without features 1.500 0.600 2.600 1.0 -",
        "as it is 1.000 0.500 2.000 5.1 -",
        "randomized 1.457 - 2.500 4.0 29.7",
    ]
    dear = selection(comparison=selection().comparison.assign(log_score=[9.99, 10.0, 10.4567]))
    scores = [line.split()[-5] for line in dear.summary().splitlines()[-3:]]
    assert scores == ["9.990", "10.000", "10.457"]


def test_a_selection_has_a_caveat_for_audits_of_the_same_people():
    assert selection().caveat == (
        "Alpha was chosen on these same people. Accounting for that: at most 29.7 points in every"
        " group of at least 33.34% of people, with 95% confidence. Bounds for named groups, 95%"
        " intervals and p-values do not account for it."
    )
