"""CPU time of audits, in units of one fit of the default model and of gradient boosting.

The table is generated: 13 columns, of which 9 are numbers and 4 are categories of 2 to 8 levels,
and an outcome whose mean and spread depend on both. The default model (that of `evenhand fit` and
of `RandomizedRegressor()`) is fitted to the first rows, and as many further rows are audited:

1. `audit` of the deterministic forecasts of the model;
2. `audit` of the randomized model, with the 64 draws per row that the audit makes;
3. `audit_pit` of the PITs of the deterministic forecasts;
4. `audit` of the deterministic forecasts without features, so without a search.

All but the last name two columns as groups and search all 13. Each is run several times in this
process after the fits; the ratios are those of the medians of CPU time. A further, profiled run
gives the split by part. Gradient boosting is `HistGradientBoostingRegressor()`, fitted to the same
rows and columns. The exit code is 1 if an audit takes longer than one fit of the default model.

    OMP_NUM_THREADS=1 python benchmarks/audit_cost.py [--rows 11000] [--repeats 3]
"""

from __future__ import annotations

import argparse
import cProfile
import functools
import gc
import pstats
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator

from evenhand import RandomizedRegressor, audit, audit_pit
from evenhand.forecasters import MixtureMLPRegressor
from record import print_lost

MOST = 1.0
"""Largest accepted CPU time of an audit, in fits."""

PARTS = {
    "forecasts, scores": "read_subject",
    "certificate": "certify_held",
    "groups, scan": "tested_groups",
    "learned groups": "learn_groups",
    "oracle groups": "worst_groups",
    "coverage by features": "conditional_coverage",
}
"""Functions in `evenhand/audits/` whose time is shown, by what they compute."""


def table(n: int, seed: int) -> tuple[pd.DataFrame, pd.Series]:
    """Return features and outcomes of `n` people."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({f"x{i}": rng.normal(size=n) for i in range(9)})
    for i, k in enumerate((2, 3, 5, 8)):
        levels = np.array([f"level {j}" for j in range(k)])
        X[f"c{i}"] = levels[rng.integers(0, k, size=n)]
    mean = X["x0"] + 0.5 * X["x1"] * (X["c0"] == "level 1")
    y = mean + np.exp(0.3 * X["x2"]) * rng.normal(size=n)
    return X, y.rename("y")


def forget() -> None:
    """Empty all caches of evenhand."""
    for each in gc.get_objects():
        # by type: other objects in memory warn or do work where they are asked for their class
        if type(each) is functools._lru_cache_wrapper and str(each.__module__).startswith(
            "evenhand"
        ):
            each.cache_clear()


def seconds(work: Callable[[], Any]) -> float:
    """Return the CPU time of a call, with empty caches."""
    forget()
    start = time.process_time()
    work()
    return time.process_time() - start


def boosting_fit(X: pd.DataFrame, y: pd.Series, repeats: int) -> float:
    """Return the median CPU time of a fit of scikit-learn's gradient boosting."""
    table = X.astype({name: "category" for name in X if X[name].dtype.kind not in "iuf"})
    model = HistGradientBoostingRegressor(random_state=0)
    return float(np.median([seconds(lambda: model.fit(table, y)) for _ in range(repeats)]))


def split(work: Callable[[], Any]) -> dict[str, float]:
    """Return the share of each part in the time of a call."""
    forget()
    profile = cProfile.Profile(time.process_time)
    profile.runcall(work)
    stats = pstats.Stats(profile)
    shares = dict.fromkeys(PARTS, 0.0)
    for (path, _, name), (*_, cumulative, _) in stats.stats.items():
        for part, function in PARTS.items():
            # some functions of search/ have the same names and are called by these
            if name == function and "/audits/" in path.replace("\\", "/"):
                shares[part] += cumulative / stats.total_tt
    return shares | {"other": 1 - sum(shares.values())}


def main() -> None:
    """Fit once, time all audits and print ratios and shares."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=11_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    n = options.rows
    X, y = table(2 * n, 0)
    net = MixtureMLPRegressor(device="cpu", random_state=0)
    fit = seconds(lambda: net.fit(X[:n], y[:n]))
    boosting = boosting_fit(X[:n], y[:n], options.repeats)
    print(f"{n:,} rows, {X.shape[1]} columns; one fit of the default model: {fit:.2f} s of CPU,")
    print(f"of gradient boosting: {boosting:.3f} s of CPU")
    X, y = X[n:].reset_index(drop=True), y[n:].reset_index(drop=True)
    model = RandomizedRegressor(FrozenEstimator(net), alpha=0.1, random_state=0)
    model.fit(X[:200], y[:200])
    forecast = net.forecast(X)
    pit = forecast.cdf(y)
    residual = y - forecast.mean()
    some: dict[str, Any] = {"groups": ["c0", "c3"], "random_state": 0}
    audits = {
        "deterministic": lambda: audit(net.forecast(X), X, y, **some),
        "randomized": lambda: audit(model, X, y, **some),
        "PITs": lambda: audit_pit(pit, X=X, residual=residual, **some),
        "no features": lambda: audit(net.forecast(X), y=y, random_state=0),
    }
    print(f"{'audit':16} {'seconds':>8} {'in fits':>8} {'boosting':>8}  split of its time")
    ratios = {}
    for name, work in audits.items():
        work()  # imports
        cost = float(np.median([seconds(work) for _ in range(options.repeats)]))
        shares = ", ".join(f"{part} {share:.2f}" for part, share in split(work).items())
        in_fits = f"{cost / fit:8.2f} {cost / boosting:8.1f}"
        print(f"{name:16} {cost:8.2f} {in_fits}  {shares}", flush=True)
        ratios[name] = cost / fit
    print(f"accepted: at most {MOST:g} fits")
    raise SystemExit(print_lost(name for name, ratio in ratios.items() if ratio > MOST))


if __name__ == "__main__":
    main()
