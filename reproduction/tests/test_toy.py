"""The toy study: its measures against theory and brute force, and its findings."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from evenhand import Forecast
from evenhand.calibration import calibration_error
from evenhand.draws import fresh, nodes
from evenhand.links import Entropic
from reproduction import toy

pytest.importorskip("torch")

RESOLUTION = 1 / (4 * 48)


def run_small(out):
    """Train the networks of the real run, and measure them on coarser grids."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"N_GRID": 200, "N_LEVELS": 48, "N_DRAWS": 48}.items():
            patch.setattr(toy, name, value)
        return toy.run(out)


@pytest.fixture(scope="module")
def study(finished):
    return finished("toy", run_small)


@pytest.fixture(scope="module")
def rows(study):
    return {row["forecaster"]: row for row in study[1]["notions"]}


def test_study_leaves_its_files(study):
    assert {file.name for file in study[0].iterdir()} == {
        *("results.json", "index.html", "introduction.svg", "notions.csv", "averaging.csv")
    }


# the notions against theory


def test_true_distribution_is_calibrated_for_each_x_and_cannot_be_proven_so(rows):
    true = rows["True conditional distribution"]
    assert max(true[key] for key in toy.NOTIONS[:-1]) <= RESOLUTION + 1e-9
    # E [u^2 / 2 + (1 - u)^2 / 2] over uniform u is 1/3
    assert true["pathwise"] == pytest.approx(1 / 3, abs=1e-4)
    assert true["price"] == 0


def test_constant_marginal_is_calibrated_on_average_only(rows):
    marginal = rows["Constant marginal distribution"]
    assert marginal["average"] <= RESOLUTION
    assert marginal["worst x"] > 0.4
    assert marginal["pathwise"] == pytest.approx(1 / 3, abs=1e-3)


def test_trivial_forecaster_is_calibrated_for_every_outcome_at_its_price(rows):
    trivial = rows["Trivial forecaster"]
    # |Phi(y / c + Phi^-1(r)) - r| <= |y| / (c sqrt(2 pi))
    assert (
        max(trivial[key] for key in toy.NOTIONS)
        <= 3.5 / (toy.WIDE * math.sqrt(2 * math.pi)) + RESOLUTION
    )
    # N(-c z, c) with z standard normal: log(c / noise) + E z^2 / 2 - 1/2, but for E y^2 / (2 c^2)
    assert trivial["price"] == pytest.approx(math.log(toy.WIDE / toy.NOISE), abs=2e-3)


def test_randomized_truth_has_the_error_and_the_price_of_its_link(rows):
    link = Entropic(toy.ALPHA)
    row = rows["True distribution, randomized"]
    assert row["pathwise"] == pytest.approx(link.mean_error, abs=2 * RESOLUTION)
    assert row["price"] == pytest.approx(link.price, rel=0.03)
    assert max(row[key] for key in toy.NOTIONS[:-1]) <= RESOLUTION


def test_notions_are_ordered_for_every_forecaster(rows):
    for row in rows.values():
        # the error is convex in the law: a mixture is at most as far off as its worst part, or its
        # parts on average
        assert row["average"] <= row["worst named group"] + 1e-9
        assert row["average"] <= row["mean over x"] + 1e-9
        assert row["worst fifth of x"] <= row["worst x"] + 1e-9
        assert row["worst named group"] <= row["worst x"] + 1e-9
        # a named group is a fifth of x too; the search sees each x by fewer quantiles
        assert row["worst named group"] <= row["worst fifth of x"] + 0.01
        assert row["mean over x"] <= row["pathwise"] + 2 * RESOLUTION


# what the study shows


def test_network_is_calibrated_on_average_and_wrong_on_a_stretch(study, rows):
    small = rows["Small network"]
    assert small["average"] < 0.03
    assert small["worst fifth of x"] > 0.25
    share = np.array(study[1]["introduction"]["misses"]["Deterministic"])
    assert share.mean() == pytest.approx(0.2, abs=0.05)
    assert share.max() > 0.9


def test_randomized_network_is_wrong_on_no_stretch(study, rows):
    assert rows["Paper's network"]["worst fifth of x"] < 0.06
    assert rows["Paper's network"]["pathwise"] < 0.1
    share = np.array(study[1]["introduction"]["misses"]["Randomized"])
    np.testing.assert_allclose(share, 0.2, atol=0.1)


def test_recalibration_by_group_mends_the_groups_and_leaves_others(rows):
    small, mended = rows["Small network"], rows["Small network, recalibrated by group"]
    assert mended["worst named group"] < 0.05 < small["worst named group"]
    assert mended["worst fifth of x"] > 0.15


def test_averaging_over_draws_gives_calibration_away(study):
    averaged = study[1]["averaged"]
    for one, many in zip(averaged[::2], averaged[1::2], strict=True):
        assert (one["served"], many["served"]) == ("one draw", "average of draws")
        # a deterministic forecast cannot have less than 1/4; PITs near 1/2 are all off by 1/4
        assert one["pathwise"] < 0.1
        assert many["pathwise"] >= 0.25
        assert many["worst fifth of x"] > one["worst fifth of x"] + 0.1
        assert many["average"] > 0.15 > one["average"]


# the measures


def test_worst_fifth_is_the_worst_of_all_subsets(monkeypatch):
    monkeypatch.setattr(toy, "N_LEVELS", 6)
    rng = np.random.default_rng(3)
    pit = np.sort(rng.beta(0.7, 0.7, size=(10, 1, 1)) * 0.6 + 0.4 * rng.random((10, 6, 1)), axis=1)
    measured = toy.measure(pit, np.zeros(10))
    brute = max(
        calibration_error(pit[list(rows), :, 0]) for rows in itertools.combinations(range(10), 2)
    )
    assert measured["worst fifth of x"] == pytest.approx(brute)
    assert measured["average"] == pytest.approx(measured["worst named group"])


def test_price_is_the_divergence_between_normals():
    # KL(N(m, s) || N(m + d, 2 s)) = log 2 + (s^2 + d^2) / (8 s^2) - 1/2
    x = (np.arange(50) + 0.5) / 50
    shifted = Forecast.from_normal(toy.truth(x) + 0.3 * toy.NOISE, np.full(50, 2 * toy.NOISE))
    _, price = toy.pits_of(shifted, x)
    assert price == pytest.approx(math.log(2) + (1 + 0.09) / 8 - 0.5, abs=5e-3)


def test_miss_rate_is_the_share_of_simulated_outcomes():
    """400 000 outcomes at each of two x, seeded: 5 standard errors, a false alarm in 10^6."""
    x, n = np.array([0.28, 0.5]), 400_000
    rng = np.random.default_rng(0)
    base = Forecast.from_normal(toy.truth(x) + np.array([0.15, 0.0]), np.full(2, 0.12))
    theory = toy.miss_rate(base.randomized(0.2, "entropic", nodes(400)), x)
    for i in range(2):
        y = toy.truth(x[i]) + toy.NOISE * rng.normal(size=n)
        many = Forecast.from_normal(np.full(n, toy.truth(x[i]) + [0.15, 0.0][i]), np.full(n, 0.12))
        low, high = many.randomized(0.2, "entropic", fresh(n, rng)).interval(toy.LEVEL)
        missed = ((y < low) | (y > high)).mean()
        assert theory[i] == pytest.approx(
            missed, abs=5 * math.sqrt(missed * (1 - missed) / n) + 1e-3
        )


# the figure


def test_introduction_marks_the_people_who_are_missed(study):
    shown = study[1]["introduction"]
    shown |= {name: np.array(shown[name]) for name in ("x", "y", "grid")}
    for served in shown["served"]:
        served |= {name: np.array(served[name]) for name in ("low", "high", "median")}
    panels = toy.plot_introduction(shown).axes
    for axes, served in zip((panels[0], panels[1], panels[3]), shown["served"], strict=True):
        missed = (shown["y"] < served["low"]) | (shown["y"] > served["high"])
        drawn = {line.get_label(): line.get_xydata() for line in axes.lines}
        np.testing.assert_allclose(drawn["Outcome missed"][:, 1], shown["y"][missed])
        assert len(axes.patches) == missed.sum()
        assert axes.get_title(loc="left").endswith(f"misses {missed.sum()} of {missed.size}")
    # the deterministic forecaster has one answer, the other two
    assert (shown["served"][1]["low"] != shown["served"][2]["low"]).any()
