"""Data, models and commands of golden files, from operations that every machine rounds alike."""

import functools
import sys
import unittest.mock
import warnings

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import BayesianRidge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from evenhand import Forecast, Outcomes, RandomizedRegressor

# every import from the package stands here: a refactor may edit these lines, and nothing below them
from evenhand.audits import Search
from evenhand.cli import main as command_main
from evenhand.draws import jittered

KEY = b"a secret of enough bytes"
MASSES = (0.1, 0.2, 0.5, 1.0)
QUICK = {"search": Search(masses=(0.1, 0.5, 1.0), learned_masses=(0.2,), n_simulations=4)}
MACHINE = ("evenhand", "date", "python", "packages", "command")
"""Entries of an audit's provenance that tell of the machine, not of the findings."""


def bell(random, n):
    """Draw numbers that are nearly normal: sums of twelve uniform ones."""
    return random.random((12, n)).sum(axis=0) - 6.0


@functools.cache
def people(n, seed):
    """Rows with columns of all kinds, missing values, a leak feature and forecasts."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "id": np.arange(n) + 1000,
            "age": random.integers(18, 90, n),
            "income": (50 + 10 * bell(random, n)).round(3),
            "rooms": random.integers(1, 5, n),
            "region": random.choice(["north", "south", "east"], n, p=[0.6, 0.25, 0.15]),
            "member": random.random(n) < 0.3,
            "since": pd.Timestamp("2015-01-01")
            + pd.to_timedelta(random.integers(0, 3000, n), unit="D"),
        }
    )
    wrong = np.where(table["region"] == "south", 1.5, 0.0) - np.where(table["member"], 1.0, 0.0)
    spread = np.where(table["age"] > 60, 2.0, 1.0)
    noise = bell(random, n)
    table["mean"] = (0.1 * table["income"] + 0.05 * table["age"] + 0.3 * bell(random, n)).round(6)
    table["std"] = (0.8 + random.random(n)).round(6)
    table["y"] = table["mean"] + wrong + spread * noise
    table["leak"] = (table["y"] + 0.02 * bell(random, n)).round(4)
    table.loc[random.random(n) < 0.1, "income"] = np.nan
    table.loc[random.random(n) < 0.05, "region"] = None
    table.loc[random.random(n) < 0.07, "since"] = pd.NaT
    return table


FEATURES = ["age", "income", "rooms", "region", "member", "since"]


def cheap():
    taken = make_column_transformer(
        (SimpleImputer(strategy="median"), ["age", "income", "rooms"]),
        (OneHotEncoder(handle_unknown="ignore", sparse_output=False), ["region"]),
    )
    return make_pipeline(taken, BayesianRidge())


@functools.cache
def forecaster(alpha=0.15, link="entropic"):
    """Return a randomized forecaster that is fitted on rows of its own."""
    table = people(500, 1)
    model = RandomizedRegressor(cheap(), alpha=alpha, link=link, random_state=0)
    return model.fit(table[FEATURES], table["y"])


@functools.cache
def pits(n=600, m=8, seed=5):
    """PITs that rise with their draws and are off where `x` is high, draws and features."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "x": random.random(n).round(6),
            "kind": random.choice(["a", "b", "c"], n),
            "flag": random.random(n) < 0.4,
            "z": random.random(n).round(6),
        }
    )
    u = random.random(n)
    u = np.where(X["x"] > 0.6, u * u, u)
    r = jittered(n, m, random_state=seed)
    return 0.6 * r + 0.4 * u[:, None], r, X


def flat_pits(n=600, seed=6):
    """Make PITs of a deterministic forecaster that are too low where `x` is high, and features."""
    _, _, X = pits(n, 1, seed)
    u = np.random.default_rng(seed + 1).random(n)
    return np.where(X["x"] > 0.5, 0.4 * u * u + 0.6 * u, u), X


def found_of(found, leave_out=()):
    """Return an audit as plain values, without those of the machine and some large ones."""
    # values of single rows are tested by what they compare
    plain = found.to_dict()
    for name in leave_out:
        del plain[name]
    for name in MACHINE:
        del plain["provenance"][name]
    return plain


def command(*words):
    # the command sets how warnings and errors without a place are shown
    with (
        unittest.mock.patch.object(sys, "argv", ["evenhand", *map(str, words)]),
        unittest.mock.patch.object(sys, "unraisablehook", sys.unraisablehook),
        warnings.catch_warnings(),
    ):
        try:
            command_main()
        except SystemExit as end:
            if end.code:
                raise RuntimeError(f"evenhand {words[0]} ended with exit code {end.code}") from end


def key_file(folder):
    place = folder / "key"
    place.write_bytes(KEY + b"\n")
    place.chmod(0o600)
    return place


def served_table(folder, n=14):
    """Write rows to be served; one has a region that training never had."""
    table = people(n, 10).copy()
    table.loc[3, "region"] = "west"
    place = folder / "new.csv"
    table.to_csv(place, index=False, date_format="%Y-%m-%d")
    return place


GRID = [1.0, 2.0, 4.0, 8.0, 16.0]
"""Times of survival curves."""

HORIZON = 8.0


def forecasts_of(kind, table):
    """Return deterministic forecasts of a kind of outcome from the age of people."""
    age = table["age"].to_numpy() / 90
    if kind == "counts":
        return Forecast.from_poisson(1 + 3 * age)
    if kind == "scores":
        shares = np.stack([0.5 - 0.25 * age, 0.25 + 0 * age, 0.25 + 0.25 * age], axis=1)
        return Forecast.from_pmf([1, 2, 3], shares)
    if kind == "events":
        return Forecast.from_probability(0.1 + 0.6 * age)
    if kind == "amounts":
        return Forecast.from_hurdle(0.9 - 0.6 * age, Forecast.from_normal(6 + 3 * age, 0 * age + 1))
    if kind in ("times", "cut times"):
        scale = 4.1 + 6 * age[:, None]
        curves = scale / (scale + np.array(GRID))
        return Forecast.from_survival(GRID, curves, HORIZON if kind == "cut times" else None)
    return Forecast.from_normal(table["mean"], table["std"])


KINDS = ("normal", "counts", "scores", "events", "amounts", "times", "cut times")


def outcomes_of(kind, table, seed, **more):
    """Return outcomes that are higher than `forecasts_of` predicts for members."""
    random = np.random.default_rng(seed)
    u = random.random(len(table))
    u = np.where(table["member"], 0.4 * u + 0.6 * np.sqrt(u), u)
    forecast = forecasts_of(kind, table)
    if kind == "normal":
        return Outcomes(table["y"].to_numpy(), **more)
    if kind not in ("times", "cut times"):
        return Outcomes(forecast.distribution.ppf(u).round(6), **more)
    scale = 4.1 + 6 * table["age"].to_numpy() / 90
    event_at, cut = scale * u / (1 - u), 6 + 24 * random.random(len(table))
    horizon = HORIZON if kind == "cut times" else None
    return Outcomes(np.minimum(event_at, cut), event_at <= cut, horizon, **more)
