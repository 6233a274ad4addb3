"""What `evenhand fit` prints: the cost of its randomization, its seed and what it replaces."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import BayesianRidge

from command_outcome import Command
from evenhand import RandomizedRegressor, load
from evenhand.links import make_link
from evenhand.planning import right_wider
from evenhand.selection import wider_intervals

ROWS = 120


@pytest.fixture
def table(tmp_path: Path) -> Path:
    random = np.random.default_rng(5)
    x = random.normal(size=ROWS)
    y = x + random.normal(size=ROWS)
    path = tmp_path / "t.csv"
    pd.DataFrame({"x": x, "y": y}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.5])
def test_the_cost_of_a_gaussian_link_around_normal_forecasts_is_that_of_theory(
    alpha: float,
) -> None:
    # the randomized forecast is normal with a standard deviation larger by 1/sqrt(1 - rho^2),
    # whatever the draw, and the price is -log(1 - rho^2)/2
    random = np.random.default_rng(0)
    X = random.normal(size=(ROWS, 1))
    y = X[:, 0] + random.normal(size=ROWS)
    model = RandomizedRegressor(BayesianRidge(), alpha=alpha, link="gaussian").fit(X, y)
    expected = math.exp(make_link("gaussian", alpha).price) - 1
    assert wider_intervals(model, X, 0) == pytest.approx(expected, rel=1e-6)


def test_the_cost_of_the_default_is_that_of_plans() -> None:
    # plans average over 1,024 draws, this over 4 of each of 120 people
    random = np.random.default_rng(1)
    X = random.normal(size=(ROWS, 1))
    model = RandomizedRegressor(BayesianRidge()).fit(X, X[:, 0] + random.normal(size=ROWS))
    found = wider_intervals(model, X, 0)
    assert found == pytest.approx(right_wider(make_link("entropic", 0.1)), abs=0.03)


@pytest.mark.usefixtures("quick_training")
def test_a_fit_names_its_cost_and_a_seed_that_repeats_it(
    table: Path, tmp_path: Path, evenhand: Command
) -> None:
    args = ("fit", table, "--target", "y", "--alpha", 0.2)
    first = evenhand(*args, "--out", tmp_path / "first")
    seed = re.search(r"with seed (\d+)", first.err)
    assert seed is not None
    again = evenhand(*args, "--out", tmp_path / "second", "--seed", seed.group(1), "--json")
    ids = [json.loads((tmp_path / name / "model.json").read_text()) for name in ("first", "second")]
    assert ids[0]["sha256"] == ids[1]["sha256"]
    found = json.loads(again.out)
    assert found["seed"] == int(seed.group(1))
    model = load(tmp_path / "first")
    expected = wider_intervals(model, pd.read_csv(table)[["x"]], int(seed.group(1)))
    assert found["wider"] == pytest.approx(expected, rel=1e-6)
    cost = f"alpha = 0.2: 80% prediction intervals are about {100 * found['wider']:.0f}% wider"
    assert cost in first.err
    # another run has another seed
    assert seed.group(0) not in evenhand(*args, "--out", tmp_path / "third").err
