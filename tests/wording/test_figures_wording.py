"""Exact messages of `figures/`."""

from __future__ import annotations

import pytest

from evenhand import figures
from evenhand._validate import InputError


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (
            lambda: figures.plot_groups([]),
            "records must contain at least one row, got none",
        ),
        (
            lambda: figures.plot_price_of_proof(points=[]),
            "points must contain at least one row, got none",
        ),
        (
            lambda: figures.plot_front([{"error": 0.1}]),
            "records must contain a row with an error and a score, got none",
        ),
    ],
)
def test_messages(draw, message):
    with pytest.raises(InputError) as caught:
        draw()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("row", "label"),
    [
        ({"group": "women", "n": 1200}, "women (1,200 rows)"),
        ({"group": "women", "n": 1}, "women (1 row)"),
        ({"group": "women"}, "women (unknown number of rows)"),
        ({"group": "few", "n": 12, "too_small": True}, "few (too few rows: 12)"),
        ({"group": "y", "n": 40, "possible_leak": True}, "y (40 rows, possible leak)"),
    ],
)
def test_labels_of_groups(row, label):
    ax = figures.plot_groups([{"error": 0.1, **row}])
    assert [text.get_text() for text in ax.get_yticklabels()] == [label]


def test_labels_of_axes_and_legends():
    curve = {"mass": 0.5, "error": 0.1, "null_mean": 0.1, "null_low": 0.0, "null_high": 0.2}
    worst = figures.plot_worst_group(
        [curve | {"certified": 0.3}], learned=[{"mass": 0.5, "error": 0.1, "low": 0.05}]
    )
    assert worst.get_xlabel() == "Group size (share of people)"
    assert worst.get_ylabel() == "Calibration error (percentage points)"
    assert [text.get_text() for text in worst.get_legend().get_texts()] == [
        "oracle (chosen after seeing the outcomes)",
        "the same search in calibrated forecasts (5% to 95%, mean dashed)",
        "certified upper bound for every group of at least this size",
        "learned from features, with lower bound",
    ]
    histogram = figures.plot_calibration([0.2, 0.7])
    assert histogram.get_xlabel() == "Predicted probability of an outcome this low (PIT)"
    assert histogram.get_ylabel() == "Share of outcomes"
    front = figures.plot_front([{"error": 0.1, "score": 1.0}])
    assert front.get_xlabel() == "Calibration error of the worst group (percentage points)"
    assert front.get_ylabel() == "Score (smaller is sharper)"
