"""The toy study: its measures against theory and brute force, its findings, its files."""

from __future__ import annotations

import itertools
import json
import math
import shutil

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

from evenhand.calibration import calibration_error
from evenhand.draws import fresh, nodes
from evenhand.forecast import Forecast
from evenhand.links import Entropic
from reproduction import plot_introduction, plot_two_worlds, toy
from shared_work import made_once, save_blank

pytest.importorskip("torch")

FILES = {
    "results.json",
    "index.html",
    "parts",
    "introduction.svg",
    "introduction.png",
    "worlds.svg",
    "worlds.png",
}
TABLES = {"notions.csv", "readings.csv", "averaging.csv", "floors.csv"}
RESOLUTION = 1 / (4 * 48)


@pytest.fixture(scope="module")
def study(shared_folder):
    """The networks of the real run on coarser grids, with fewer data sets for the verifier."""
    out, text = made_once(shared_folder / "toy", run_study)
    return out, text, json.loads((out / "results.json").read_text())


def run_study(out):
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "N_GRID": 200,
            "N_LEVELS": 48,
            "N_DRAWS": 48,
            "N_DATASETS": 60,
            "SLICES": (1, 101),
        }.items():
            patch.setattr(toy, name, value)
        said = []
        text = toy.run(out, 0, said.append)
        # a second run finds its parts and trains nothing
        patch.setattr(toy, "train", lambda seed: pytest.fail("trained again"))
        again = shutil.copytree(out, out.with_name("toy-again"), dirs_exist_ok=True)
        patch.setattr("matplotlib.figure.Figure.savefig", save_blank)
        assert toy.run(again, 0, said.append) == text.replace(str(out), str(again))
    assert len(said) == 2
    return text


@pytest.fixture(scope="module")
def rows(study):
    return {row["forecaster"]: row for row in study[2]["notions"]}


def test_study_leaves_its_files(study):
    out, text, _ = study
    assert {file.name for file in out.iterdir()} == FILES | TABLES
    assert str(out) in text
    page = (out / "index.html").read_text()
    assert page.count("<svg") == 2


def test_every_sentence_is_on_the_page_and_holds_the_numbers(study, rows):
    out, text, values = study
    page = (out / "index.html").read_text().replace("&#39;", "'")
    *found, _ = text.split("\n")
    assert all(sentence in page for sentence in found)
    assert f"{rows['Small network']['worst fifth of x']:.3f}" in found[0]
    price = rows["Paper's network"]["price"]
    assert f"{price:.2f}" in found[1]
    assert f"{values['floors'][-1]['least_error']:.3f}" in found[2]


def test_tables_on_disk_are_the_results(study):
    out, _, values = study
    frame = pd.read_csv(out / "notions.csv")
    np.testing.assert_allclose(frame["pathwise"], [row["pathwise"] for row in values["notions"]])
    assert len(pd.read_csv(out / "averaging.csv")) == 6
    assert pd.read_csv(out / "floors.csv")["slices"].tolist() == [1, 101]


def test_every_forecaster_has_its_sentence(study, rows):
    readings = pd.read_csv(study[0] / "readings.csv")
    assert readings["forecaster"].tolist() == list(rows)
    assert readings["interpretation"].str.endswith(".").all()


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
    share = np.array(study[2]["introduction"]["misses"]["Deterministic"])
    assert share.mean() == pytest.approx(0.2, abs=0.05)
    assert share.max() > 0.9


def test_randomized_network_is_wrong_on_no_stretch(study, rows):
    assert rows["Paper's network"]["worst fifth of x"] < 0.06
    assert rows["Paper's network"]["pathwise"] < 0.1
    share = np.array(study[2]["introduction"]["misses"]["Randomized"])
    np.testing.assert_allclose(share, 0.2, atol=0.1)


def test_recalibration_by_group_mends_the_groups_and_leaves_others(rows):
    small, mended = rows["Small network"], rows["Small network, recalibrated by group"]
    assert mended["worst named group"] < 0.05 < small["worst named group"]
    assert mended["worst fifth of x"] > 0.15


def test_averaging_over_draws_gives_calibration_away(study):
    averaged = study[2]["averaged"]
    for one, many in zip(averaged[::2], averaged[1::2], strict=True):
        assert (one["served"], many["served"]) == ("one draw", "average of draws")
        # a deterministic forecast cannot have less than 1/4; PITs near 1/2 are all off by 1/4
        assert one["pathwise"] < 0.1
        assert many["pathwise"] >= 0.25
        assert many["worst fifth of x"] > one["worst fifth of x"] + 0.1
        assert many["average"] > 0.15 > one["average"]


def test_verifier_is_fooled(study):
    last = study[2]["floors"][-1]
    assert last["least_error"] == pytest.approx(0.25 * (1 - 1 / 101), abs=1e-4)
    # 60 data sets at 95%: a false alarm in 10^6 each
    for share in last["yes"].values():
        assert binomtest(round(60 * share), 60, 0.95).pvalue > 1e-6


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


# the figures


def test_introduction_marks_the_people_who_are_missed(study):
    shown = study[2]["introduction"]
    panels = plot_introduction(shown).figure.axes
    assert len(panels) == 4
    for axes, served in zip((panels[0], panels[1], panels[3]), shown["served"], strict=True):
        y, low, high = np.array(shown["y"]), np.array(served["low"]), np.array(served["high"])
        missed = (y < low) | (y > high)
        drawn = {line.get_label(): line.get_xydata() for line in axes.lines}
        np.testing.assert_allclose(
            drawn["Outcome missed"], np.column_stack([shown["x"], y])[missed]
        )
        np.testing.assert_allclose(
            drawn["Outcome inside"], np.column_stack([shown["x"], y])[~missed]
        )
        np.testing.assert_allclose(drawn["Median"][:, 1], served["median"])
        assert len(axes.patches) == missed.sum()
        assert axes.get_title(loc="left").endswith(f"misses {missed.sum()} of {y.size}")
    # the deterministic forecaster has one answer, the other two
    assert shown["served"][1]["low"] != shown["served"][2]["low"]


def test_two_worlds_are_drawn_around_the_same_data(study):
    shown = study[2]["picture"]
    left, right = plot_two_worlds(shown).figure.axes
    data = [next(line for line in axes.lines).get_xydata() for axes in (left, right)]
    np.testing.assert_array_equal(data[0], data[1])
    np.testing.assert_allclose(data[0][:, 1], shown["y"])
    widths = [
        np.subtract(shown[world]["high"], shown[world]["low"]) for world in ("calibrated", "sliced")
    ]
    assert (widths[1] < widths[0]).all()


@pytest.mark.parametrize("draw", [plot_introduction, plot_two_worlds])
def test_axes_are_labelled_with_units(study, draw):
    values = study[2]["introduction" if draw is plot_introduction else "picture"]
    for axes in draw(values).figure.axes:
        assert axes.get_xlabel() == "Feature x (no unit)"
        assert axes.get_ylabel() in {"Outcome y (no unit)", "Outcomes missed (%)", ""}
