"""Learned spread and tails around regressors, compared with split conformal intervals.

Part 1: 4,000 generated rows with a region of a tenth of the rows where noise has three times the
standard deviation; the region is given by a threshold or an interval of one feature, or by a
category. Coverage of 80% prediction intervals in the region, and their mean width relative to that
of split conformal intervals (half of the rows to fit, half to calibrate).

Part 2: constant noise; CRPS with a learned spread relative to the CRPS with a constant one.

Part 3: 98% and 99% intervals of residual distributions; misses relative to the nominal rate, and
log score and calibration error compared with equally spaced knots only.

python benchmarks/learned_spread.py
"""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from evenhand import RandomizedRegressor
from evenhand.distributions import Quantiles
from evenhand.forecasters.samples import residual_distribution

Floats = NDArray[np.float64]

N_FRESH = 4000
N_SETS = 2
REGIONS = ("threshold", "interval", "category")
BASES = {
    "LinearRegression": LinearRegression(),
    "RandomForest": RandomForestRegressor(30, min_samples_leaf=5, random_state=0),
    "HistGradientBoosting": HistGradientBoostingRegressor(random_state=0),
    "KNeighbors": make_pipeline(StandardScaler(), KNeighborsRegressor(20)),
    "SVR": make_pipeline(StandardScaler(), SVR()),
}


def rows(n: int, region: str, seed: int) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    """Return features, outcomes and the rows in the region."""
    random = np.random.default_rng(seed)
    X = random.uniform(size=(n, 6))
    X[:, 5] = random.integers(10, size=n)
    inside = {
        "threshold": X[:, 0] > 0.9,
        "interval": np.abs(X[:, 1] - 0.5) < 0.05,
        "category": X[:, 5] == 4,
        "none": np.zeros(n, dtype=np.bool_),
    }[region]
    mean = 2 * X[:, 0] + X[:, 1] + np.sin(3 * X[:, 2])
    return X, mean + np.where(inside, 3.0, 1.0) * random.normal(size=n), inside


def conformal_width(base: object, X: Floats, y: Floats) -> float:
    """Return the width of split conformal 80% intervals."""
    half = len(y) // 2
    scores = np.sort(np.abs(y[half:] - clone(base).fit(X[:half], y[:half]).predict(X[half:])))
    return float(2 * scores[int(np.ceil(0.8 * (scores.size + 1))) - 1])


def learned_regions() -> bool:
    """Print coverage and width in regions of larger noise; return whether both meet the goals."""
    print(f"1. 80% intervals, 4,000 rows, means of {N_SETS} data sets (smallest coverage)")
    print("base                  region     coverage there  overall  width/conformal")
    good = True
    for name, base in BASES.items():
        for region in REGIONS:
            found = []
            for seed in range(N_SETS):
                X, y, _ = rows(4000, region, seed)
                fresh, y_fresh, inside = rows(N_FRESH, region, 1000 + seed)
                model = RandomizedRegressor(base, random_state=0).fit(X, y)
                low, high = model.base_forecast(fresh).interval(0.8)
                covers = (low <= y_fresh) & (y_fresh <= high)
                width = (high - low).mean() / conformal_width(base, X, y)
                found.append((covers[inside].mean(), covers.mean(), width))
            there, overall, width = np.mean(found, axis=0)
            least = np.min(found, axis=0)[0]
            print(
                f"{name:21s} {region:10s} {there:.3f} ({least:.3f})   {overall:.3f}    {width:.3f}",
                flush=True,
            )
            good = good and there >= 0.72 and width <= 1.12
    return good


def constant_spread() -> bool:
    """Print the CRPS where the spread is constant; return whether at most 1% is lost."""
    print("\n2. constant noise: CRPS with a learned spread relative to a constant one")
    print("base                  rows   data sets  spread used  mean      largest")
    good = True
    for name, n, n_sets in (
        ("LinearRegression", 200, 20),
        ("LinearRegression", 1000, 10),
        ("LinearRegression", 4000, 4),
        ("KNeighbors", 200, 20),
        ("KNeighbors", 1000, 10),
        ("HistGradientBoosting", 1000, 3),
        ("RandomForest", 1000, 3),
        ("SVR", 1000, 4),
    ):
        changes = []
        used = 0
        for seed in range(n_sets):
            X, y, _ = rows(n, "none", seed)
            fresh, y_fresh, _ = rows(N_FRESH, "none", 1000 + seed)
            models = [
                RandomizedRegressor(BASES[name], spread=spread, random_state=0).fit(X, y)
                for spread in ("learned", "constant")
            ]
            used += models[0].spread_ is not None
            learned, constant = (one.base_forecast(fresh).crps(y_fresh).mean() for one in models)
            changes.append(learned / constant - 1)
        print(
            f"{name:21s} {n:5d}  {n_sets:9d}  {used:11d}  {100 * np.mean(changes):+.3f}%"
            f"   {100 * np.max(changes):+.3f}%",
            flush=True,
        )
        good = good and np.mean(changes) <= 0.01
    return good


def equal_steps(residuals: Floats) -> Quantiles:
    """Return the distribution with equally spaced knots alone."""
    n_levels = round(2 * residuals.size**0.4)
    levels = (np.arange(n_levels) + 0.5) / n_levels
    return Quantiles(levels, np.quantile(residuals, levels, method="hazen")[None, :])


def tails() -> bool:
    """Print misses of extreme intervals; return whether they are as frequent as predicted."""
    print("\n3. misses of 98% and 99% intervals relative to the nominal rate, 300 data sets")
    print("noise   rows  knots         98%   99%   log score  CRPS     calibration error")
    good = True
    nominal = np.array([0.02, 0.01])
    for label, truth in (("normal", stats.norm()), ("t3", stats.t(3))):
        # where scores are compared
        y = truth.ppf((np.arange(200) + 0.5) / 200)
        for n in (200, 1000):
            random = np.random.default_rng(n)
            found: dict[str, list[Floats]] = {"equal steps": [], "with tails": []}
            for _ in range(300):
                residuals = truth.rvs(n, random_state=random)
                for name, learned in (
                    ("equal steps", equal_steps(residuals)),
                    ("with tails", residual_distribution(residuals, None)),
                ):
                    ends = (
                        np.ravel(learned.ppf(p[:, None])) for p in (nominal / 2, 1 - nominal / 2)
                    )
                    low, high = ends
                    misses = (truth.cdf(low) + truth.sf(high)) / nominal
                    error = np.abs(learned.cdf(y) - truth.cdf(y)).mean()
                    score = -learned.logpdf(y).mean(), learned.crps(y).mean(), error
                    found[name].append(np.array([*misses, *score]))
            for name, values in found.items():
                miss98, miss99, score, crps, error = np.mean(values, axis=0)
                print(
                    f"{label:7s} {n:4d}  {name:12s}  {miss98:.2f}  {miss99:.2f}  {score:.4f}    "
                    f" {crps:.4f}   {error:.5f}",
                    flush=True,
                )
            rates = np.mean(found["with tails"], axis=0)[:2]
            good = good and bool(((rates > 0.8) & (rates < 1.3)).all())
    return good


def main() -> None:
    """Run all parts; the exit code is 1 if one of them misses its goal."""
    start = time.process_time()
    good = [learned_regions(), constant_spread(), tails()]
    print(f"\n{time.process_time() - start:.0f} s of CPU")
    raise SystemExit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
