"""Figures: what is drawn equals what was given, and nothing outside the axes is touched."""

import numpy as np
import pandas as pd
from matplotlib.patches import Rectangle, StepPatch
from scipy.stats import binom

from evenhand.figures import plot_calibration, plot_groups, plot_price_of_proof, plot_worst_group


def worst_groups():
    keys = ("mass", "n", "error", "null_mean", "null_low", "null_high", "certified")
    values = [(0.1, 50, 0.31, 0.2, 0.15, 0.25, 0.4), (0.5, 250, 0.12, 0.1, 0.08, 0.12, 0.2)]
    return [
        dict(zip(keys, row, strict=True))
        for row in [*values, (1.0, 500, 0.03, 0.01, 0.0, 0.02, None)]
    ]


def groups():
    keys = ("group", "n", "error", "error_low", "error_high", "too_small")
    rows = [
        ("everyone", 1500, 0.02, 0.0, 0.05, False),
        ("old", 400, 0.1, 0.06, 0.17, False),
        ("few", 12, 0.2, 0.0, 0.5, True),
    ]
    return [dict(zip(keys, row, strict=True)) for row in rows]


def line(ax, start):
    listed = zip(*ax.get_legend_handles_labels(), strict=True)
    return next(handle for handle, label in listed if label.startswith(start))


def test_oracle_curve_and_certified_steps_are_the_numbers_given():
    ax = plot_worst_group(worst_groups())
    oracle, bound = line(ax, "oracle"), line(ax, "certified")
    np.testing.assert_array_equal(oracle.get_xydata(), [[0.1, 0.31], [0.5, 0.12], [1.0, 0.03]])
    np.testing.assert_array_equal(bound.get_xydata(), [[0.1, 0.4], [0.5, 0.2], [1.0, np.nan]])
    # the bound at a mass holds for larger groups too, so the step reaches to the right
    assert bound.get_drawstyle() == "steps-post"


def test_learned_estimates_have_a_bar_down_to_their_lower_bound_only():
    learned = [{"mass": 0.1, "error": 0.2, "low": 0.12}, {"mass": 0.5, "error": -0.02, "low": 0.0}]
    ax = plot_worst_group(worst_groups(), learned=learned)
    points, _, (bars,) = line(ax, "learned").lines
    np.testing.assert_array_equal(points.get_xydata(), [[0.1, 0.2], [0.5, -0.02]])
    found = bars.get_segments()
    np.testing.assert_allclose(found, [[[0.1, 0.12], [0.1, 0.2]], [[0.5, -0.02], [0.5, -0.02]]])
    assert ax.get_ylim()[0] < -0.02


def test_groups_are_dots_with_whiskers_from_top_to_bottom():
    ax = plot_groups(groups())
    known, small = ax.containers
    np.testing.assert_array_equal(known.lines[0].get_xydata(), [[0.02, 0], [0.1, 1]])
    found = known.lines[2][0].get_segments()
    np.testing.assert_allclose(found, [[[0, 0], [0.05, 0]], [[0.06, 1], [0.17, 1]]])
    np.testing.assert_array_equal(small.lines[0].get_xydata(), [[0.2, 2]])
    assert ax.get_ylim()[0] > ax.get_ylim()[1]


def bars(ax):
    return [patch for patch in ax.patches if isinstance(patch, Rectangle)]


def band(ax):
    (steps,) = (patch for patch in ax.patches if isinstance(patch, StepPatch))
    return steps.get_data().baseline, steps.get_data().values


def test_band_is_the_exact_binomial_one_for_one_draw():
    low, high = band(plot_calibration(np.random.default_rng(1).uniform(size=1000)))
    alpha = 0.05 / 20 / 2
    np.testing.assert_allclose(low, np.full(20, binom.ppf(alpha, 1000, 0.05) / 1000))
    np.testing.assert_allclose(high, np.full(20, binom.isf(alpha, 1000, 0.05) / 1000))


def test_bars_outside_the_band_are_marked_by_colour_and_hatch():
    pit = np.concatenate([np.linspace(0.001, 0.999, 900), np.full(100, 0.52)])
    marked = [i for i, bar in enumerate(bars(plot_calibration(pit))) if bar.get_hatch()]
    assert marked == [10]


def forecasters():
    keys = ("name", "error", "price", "price_low", "price_high")
    rows = [
        ("network", 0.18, 0.55, 0.45, 0.7),
        ("mine", 0.25, 0.12, None, 0.2),
        (None, 0.1, None, None, None),
    ]
    return [dict(zip(keys, row, strict=True)) for row in rows]


def test_forecasters_are_dots_with_names_and_known_whiskers():
    ax = plot_price_of_proof(points=forecasters())
    points, _, (reach,) = line(ax, "forecasters").lines
    np.testing.assert_array_equal(points.get_xydata(), [[0.18, 0.55], [0.25, 0.12], [0.1, np.nan]])
    expected = [[[0.18, 0.45], [0.18, 0.7]], [[0.25, 0.12], [0.25, 0.2]]]
    np.testing.assert_allclose(reach.get_segments()[:2], expected)
    assert [text.get_text() for text in ax.texts[-2:]] == ["network", "mine"]
    table = plot_price_of_proof(points=pd.DataFrame(forecasters()[:2]))
    found = line(table, "forecasters").lines[0].get_xydata()
    np.testing.assert_array_equal(found, points.get_xydata()[:2])
    ax.figure.canvas.draw()
