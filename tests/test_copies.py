"""Copies of rows: reported where equal rows are no coincidence, and nowhere else."""

import numpy as np
import pandas as pd
import pytest
from scipy import special
from sklearn.linear_model import BayesianRidge

from evenhand import Forecast, Outcomes, audit, certify, randomize
from evenhand.audits import Search
from evenhand.tables import copies_in_words

N, TIMES = 200, 5
COPIES = "80.0% of 1,000 rows are exact copies of other rows"
QUICK = {"search": Search(masses=(1.0,), learned_masses=(), n_simulations=2)}

OUTCOMES = {
    "continuous": lambda f, random: f + random.normal(size=f.size),
    "rounded": lambda f, random: (f + random.normal(size=f.size)).round(1),
    "counts": lambda f, random: random.poisson(np.exp(f / 2)).astype(np.float64),
    "0/1": lambda f, random: (random.random(f.size) < special.expit(f)).astype(np.float64),
    "rare 0/1": lambda f, random: (random.random(f.size) < special.expit(f - 4)).astype(np.float64),
}


def table(n, decimals, random):
    """Return normal features with so many decimals; groups of six rows share them for -1."""
    X = random.normal(size=(n, 2))
    if decimals < 0:
        X = X[random.integers(0, n // 6, size=n)]
    return pd.DataFrame(X if decimals < 0 else X.round(decimals), columns=["a", "b"])


def people():
    random = np.random.default_rng(0)
    X = pd.DataFrame({"age": random.uniform(20, 80, N).round(), "bmi": random.normal(25, 4, N)})
    y = X["age"].to_numpy() / 10 + random.normal(size=N)
    rows = np.tile(np.arange(N), TIMES)
    return X.iloc[rows].reset_index(drop=True), y[rows]


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_copied_people_are_found_whatever_the_outcome_and_coincidences_are_none(outcome):
    random = np.random.default_rng(0)
    for n in (100, 500, 3000):
        for decimals in (-1, 0, 1, 2, 15):
            for n_columns in (1, 2):
                X = table(n, decimals, random).iloc[:, :n_columns]
                y = OUTCOMES[outcome](X["a"].to_numpy(), random)
                assert copies_in_words(X, y) is None
    X = table(N, 15, random)
    y = OUTCOMES[outcome](X["a"].to_numpy(), random)
    rows = np.tile(np.arange(N), TIMES)
    assert str(copies_in_words(X.iloc[rows], y[rows])).startswith(COPIES)


def test_an_audit_of_copies_starts_with_a_caution():
    X, y = people()
    forecast = Forecast.from_normal(X["age"].to_numpy() / 10, np.ones(y.size))
    found = audit(forecast, X, y, **QUICK)
    assert str(found.caveat).startswith(COPIES)
    assert f"Caution {COPIES}" in " ".join(found.summary().split())
    assert audit(forecast[:N], X[:N], y[:N], **QUICK).caveat is None
    # rows of one person, which the audit reads once
    persons = Outcomes(y, person=np.tile(np.arange(N), TIMES))
    assert audit(forecast, X, persons, **QUICK).caveat is None


def test_certificates_warn_of_copies():
    X, y = people()
    forecast = Forecast.from_normal(X["age"].to_numpy() / 10, np.ones(y.size))
    with pytest.warns(UserWarning, match=COPIES):
        certify(forecast, X, y, random_state=0)
    with pytest.warns(UserWarning, match=COPIES):
        chosen = randomize(BayesianRidge(), X, y, goal=0.4, random_state=0)
    held = chosen.certifying
    found = chosen.audited(audit(chosen.model, X.iloc[held], y[held], **QUICK))
    assert "exact copies" in str(found.caveat)
    assert "Alpha was chosen on these same people" in str(found.caveat)


def test_a_tenth_of_the_people_twice_is_found():
    random = np.random.default_rng(0)
    X, y = table(N, 15, random), random.normal(size=N)
    rows = np.concatenate((np.arange(N), np.arange(N // 10)))
    assert str(copies_in_words(X.iloc[rows], y[rows])).startswith("9.1% of 220 rows")
