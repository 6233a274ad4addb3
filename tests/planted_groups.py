"""Tables for tests of both searches: calibrated forecasts but for one planted group.

The forecast is N(0, 1) for all 3,000 rows. Features are uniform numbers x0 to x7 and categories c0
to c3 of 2 to 5 levels. Outcomes are N(0, 1) except in the planted group.
"""

import numpy as np
import pandas as pd
from scipy import special

PLANTED = {
    # features, rows of the group, their outcomes by standard normal ones
    "half": (("x2",), lambda X: X["x2"] > 0.5, lambda z: 0.15 + z),
    "pair": (("c1", "x1"), lambda X: (X["x1"] > 0.5) & (X["c1"] == "a"), lambda z: 0.35 + 1.5 * z),
    "triple": (
        ("c0", "x1", "x3"),
        lambda X: (X["x1"] > 0.4) & (X["x3"] < 0.6) & (X["c0"] == "a"),
        lambda z: 1.6 * z,
    ),
    "ball": (
        ("x4", "x5"),
        lambda X: (X["x4"] - 0.75) ** 2 + (X["x5"] - 0.75) ** 2 <= 0.25**2,
        lambda z: 0.5 + z,
    ),
    # neither the mean nor the median changes, and the spread a little
    "shape": (
        ("c1", "x1"),
        lambda X: (X["x1"] > 0.5) & (X["c1"] == "a"),
        lambda z: np.sign(z) * np.sqrt(np.abs(z)),
    ),
}


def planted_table(kind, seed, n=3000):
    """Return features, PITs and the rows of the planted group; no group for None."""
    random = np.random.default_rng([seed, 0 if kind is None else 1 + list(PLANTED).index(kind)])
    X = pd.DataFrame({f"x{j}": random.random(n) for j in range(8)})
    for j in range(4):
        X[f"c{j}"] = random.choice(list("abcde")[: j + 2], size=n)
    y = random.normal(size=n)
    inside = np.zeros(n, dtype=np.bool_)
    if kind is not None:
        _, where, outcome = PLANTED[kind]
        inside = np.asarray(where(X), dtype=np.bool_)
        y[inside] = outcome(y[inside])
    return X, special.ndtr(y), inside


def mixed_table(rng, n):
    """Return a table with columns of all kinds, some of them with missing values."""
    income = rng.lognormal(size=n)
    income[rng.random(n) < 0.2] = np.nan
    return pd.DataFrame(
        {
            "bmi": rng.normal(size=n),
            "income": income,
            "children": rng.integers(0, 3, size=n),
            "city": rng.choice(["Bern", "Oslo", None], size=n),
            "member": rng.random(n) < 0.4,
            "grade": pd.Categorical(rng.choice(["a", "b"], size=n)),
            "debt": np.where(rng.random(n) < 0.7, 0.0, rng.random(n)),
            "since": (
                pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, size=n), unit="D")
            ),
        }
    )
