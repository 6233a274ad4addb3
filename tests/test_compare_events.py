"""Comparisons of forecasts of 0/1 outcomes: errors in rate, paired by row."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import special

from evenhand import Forecast, compare
from evenhand.audits import Comparison, comparison
from repeats import most_failures, repeats, statistical

Floats = NDArray[np.float64]
N = 6000
QUICK: dict[str, Any] = {"n_simulations": 2, "learned_masses": (), "masses": (1.0,)}


@cache
def people() -> tuple[pd.DataFrame, Floats]:
    """Return people of whom log odds have the slope 0.62."""
    random = np.random.default_rng(0)
    X = pd.DataFrame({"z": random.normal(-0.2, 1.2, N), "sex": random.choice(["f", "m"], N)})
    return X, (random.uniform(size=N) < special.expit(0.62 * X["z"])).astype(np.float64)


def probability(slope: float, shift: float = 0.0) -> Floats:
    """Return the probabilities of log odds with a slope, and with a shift for women."""
    X, _ = people()
    return np.asarray(special.expit(slope * X["z"] + shift * (X["sex"] == "f")))


@cache
def compared(*predicted: tuple[float, float]) -> Comparison:
    """Compare two forecasts, given by slope and shift."""
    X, y = people()
    options = {"features": X[["sex"]], "groups": ["sex"], "random_state": 0, **QUICK}
    before, after = (Forecast.from_probability(probability(*one)) for one in predicted)
    return compare(before, after, X, y, **options)


def loss_of(p: Floats, y: Floats) -> float:
    return float(-np.log(np.where(y == 1, p, 1 - p)).mean())


def distance_of(profile: comparison.Profile) -> float:
    """Return the mean distance of the weighted column means from their targets."""
    assert profile.target is not None
    mean = np.average(profile.values, axis=0, weights=profile.weight)
    return float(np.abs(mean - profile.target).mean())


def test_scores_that_are_too_extreme_get_better_though_their_mean_was_right() -> None:
    found = compared((1.0, 0), (0.62, 0))
    everyone = found.groups.iloc[0]
    assert everyone["group"] == "everyone"
    assert (everyone["outcome"], everyone["important"]) == ("better", True)
    # 6.4 points before (verdict: 0)
    assert 0.04 < everyone["error_before"] < 0.09
    assert everyone["error_change_low"] < everyone["error_change"] < everyone["error_change_high"]
    assert everyone["error_change_high"] < 0
    assert abs(everyone["bias_change"]) < 0.02
    assert not found.is_worse
    back = compared((0.62, 0), (1.0, 0))
    assert back.groups.loc[0, "outcome"] == "worse"
    assert back.is_worse


def test_a_group_is_compared_by_its_rate() -> None:
    found = compared((0.62, 0.8), (0.62, 0)).groups.set_index("group")
    X, y = people()
    for group, letter in (("sex = f", "f"), ("sex = m", "m")):
        mask = (X["sex"] == letter).to_numpy()
        for when, shift in (("before", 0.8), ("after", 0.0)):
            p = probability(0.62, shift)[mask]
            row = found.loc[group]
            assert row[f"predicted_{when}"] == pytest.approx(p.mean())
            assert row[f"bias_{when}"] == pytest.approx(y[mask].mean() - p.mean())
            assert row[f"error_{when}"] == pytest.approx(abs(y[mask].mean() - p.mean()))
            assert row[f"log_loss_{when}"] == pytest.approx(loss_of(p, y[mask]))
            assert np.isfinite(row[f"slope_{when}"])
        assert found.loc[group, "rate"] == pytest.approx(y[mask].mean())
    assert found.loc["sex = f", "outcome"] == "better"
    assert found.loc["sex = m", "outcome"] == "not significant"
    assert found.loc["sex = m", "error_change"] == 0


@pytest.mark.parametrize("paired", [True, False])
def test_there_is_no_coverage_and_groups_by_the_forecast_are_not_listed(paired: bool) -> None:
    made = compared((1.0, 0), (0.62, 0))
    found = made if paired else compare(*made.audits)
    assert found.groups["group"].tolist()[:3] == ["everyone", "sex = f", "sex = m"]
    plain = found.to_dict()
    text = json.dumps({key: plain[key] for key in ("groups", "scores", "measures", "notes")})
    assert "coverage" not in text
    assert "tenth" not in text
    assert plain["tolerance"] == made.audits[1].tolerance
    # nor a certificate for every group, which an audit of 0/1 outcomes says there cannot be
    page = " ".join(found.summary(full=True).split())
    assert not [word for word in ("coverage", "covers", "every group", "ertified") if word in page]


def test_a_text_has_rates_slope_and_log_score() -> None:
    X, y = people()
    text = " ".join(compared((0.62, 0.8), (0.62, 0)).summary().split())
    women = (X["sex"] == "f").to_numpy()
    before, after = (probability(0.62, shift) for shift in (0.8, 0.0))
    values = [y[women].mean(), before[women].mean(), after[women].mean()]
    gaps = [100 * (values[0] - one) for one in values[1:]]
    observed, *predicted = (f"{one:.1%}" for one in values)
    row = f"{observed} {' → '.join(predicted)} {' → '.join(f'{gap:+.1f}' for gap in gaps)}"
    assert f"sex = f {women.sum():,} {row} better" in text
    losses = [f"{loss_of(p, y):.3f}" for p in (before, after)]
    assert f"log score {' to '.join(losses)} (smaller is better)" in text


@pytest.mark.parametrize("weighted", [False, True])
def test_the_error_of_everyone_is_the_mean_by_score(weighted: bool) -> None:
    random = np.random.default_rng(1)
    p = random.uniform(size=900)
    y = (random.uniform(size=900) < p**2).astype(np.float64)
    weight = random.choice([1.0, 3.0], 900) if weighted else np.ones(900)
    profile = comparison.event_profiles(y, p, weight if weighted else None)[comparison.BY_SCORE]
    # groups of equal weight by increasing probability; 900 rows are 6, or fewer effective rows 4
    k = 4 if weighted else 6
    order = np.argsort(p)
    middle = (np.cumsum(weight[order]) - weight[order] / 2) / weight.sum()
    sums = [abs((weight * (y - p))[order][np.floor(k * middle) == part].sum()) for part in range(k)]
    assert distance_of(profile) == pytest.approx(sum(sums) / weight.sum(), rel=1e-5)


SCENARIOS = {
    "right before and after": (1.0, 1.0),
    "too extreme before, right after": (0.62, 1.0),
    "right before, too extreme after": (1.0, 0.62),
    "too extreme in both": (0.62, 0.62),
    "slightly too extreme before": (0.9, 1.0),
}
SETS = 400
GROUPS = 4


@statistical
@pytest.mark.parametrize("n", [600, 2000])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_paired_intervals_of_rates_contain_all_true_changes_jointly(scenario: str, n: int) -> None:
    """In 5% of tables at most any of 5 intervals misses; false alarm 1e-6 by `repeats`.

    The slope of a scenario is that of the true log odds on the predicted ones. Both forecasts
    predict the same outcomes; truths are those given the forecasts.
    """
    random = np.random.default_rng(n + list(SCENARIOS).index(scenario))
    masks = [np.arange(n) % GROUPS == g for g in range(GROUPS)]
    everyone = np.ones(n, dtype=bool)
    n_sets = repeats(SETS)
    missed = 0
    for _ in range(n_sets):
        odds = random.normal(-0.2, 1.0, n)
        true = special.expit(odds)
        y = (random.uniform(size=n) < true).astype(np.float64)
        both, truths = [], []
        for slope in SCENARIOS[scenario]:
            p = special.expit(odds / slope)
            both.append(comparison.event_profiles(y, p, None))
            parts = np.array_split(np.argsort(p), min(n // 150, 10))
            bent = sum(abs((true - p)[rows].sum()) for rows in parts) / n
            truths.append([bent, *(abs((true - p)[mask].mean()) for mask in masks)])
        members = {"everyone": everyone} | dict(enumerate(masks))
        changes = comparison.changes_of(*both, members.items(), len(members), 0.95)
        found = [changes[name, "error"] for name in members]
        gaps = np.subtract(truths[1], truths[0])
        missed += any(not one.low <= gap <= one.high for one, gap in zip(found, gaps, strict=True))
    assert missed <= most_failures(n_sets)
