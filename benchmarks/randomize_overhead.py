"""Time of `randomize` itself, compared with that of its base model.

On 10,000 rows with 20 generated features, and on 10,000 borrowers of Give Me Some Credit whose age
is predicted from the other columns (a tie contains up to 2.6% of them; the table is omitted if it
is not found), in turn in one process:

1. one fit of the model on all of the rows;
2. all fits and predictions of the model inside `randomize`, measured by the model itself;
3. `randomize` as a whole. The difference to 2 is its own time.

All caches of evenhand are emptied before each call, so that first calls are measured, without
imports. Medians are compared. The exit code is 1 unless the own time is below a fifth of the
model's.

    OMP_NUM_THREADS=1 python benchmarks/randomize_overhead.py [--repeats 5] [--rows 10000]
"""

from __future__ import annotations

import argparse
import functools
import gc
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor

from evenhand import randomize
from evenhand._validate import DiscreteOutcomeWarning, InputError

# tables of the studies, which lie beside this folder, outside the package
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reproduction.datasets import load_credit

WANTED = 0.2
"""Own time over the model's time must be below."""


class Timed(HistGradientBoostingRegressor):
    """Adds up the seconds that it is at work."""

    at_work = 0.0

    def fit(self, *args: Any, **options: Any) -> Timed:
        """Fit as ever, and count the time."""
        return self._counted(super().fit, *args, **options)

    def predict(self, *args: Any, **options: Any) -> np.ndarray:
        """Predict as ever, and count the time."""
        return self._counted(super().predict, *args, **options)

    @staticmethod
    def _counted(work: Callable[..., Any], *args: Any, **options: Any) -> Any:
        start = time.perf_counter()
        done = work(*args, **options)
        Timed.at_work += time.perf_counter() - start
        return done


def forget() -> None:
    """Empty all caches of evenhand."""
    for each in gc.get_objects():
        if isinstance(each, functools._lru_cache_wrapper) and (each.__module__ or "").startswith(
            "evenhand"
        ):
            each.cache_clear()


def tables(n: int) -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield the name, rows and outcomes of each table."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    yield "generated", X, X[:, 0] + np.abs(X[:, 1]) * rng.normal(size=n)
    try:
        credit = load_credit().X
    except InputError as missing:
        print(f"credit data left out: {missing}")
        return
    chosen = credit.sample(n, random_state=0, ignore_index=True)
    yield "credit", chosen.drop(columns="age"), chosen["age"].to_numpy(dtype=np.float64)


def measure(X: Any, y: np.ndarray, seed: int) -> tuple[float, float, float]:
    """Return the seconds of one fit, of the model inside `randomize`, and of `randomize`."""
    start = time.perf_counter()
    HistGradientBoostingRegressor(random_state=seed).fit(X, y)
    fit = time.perf_counter() - start
    forget()
    Timed.at_work = 0.0
    start = time.perf_counter()
    randomize(Timed(random_state=seed), X, y, goal=0.3, random_state=seed)
    return fit, Timed.at_work, time.perf_counter() - start


def main() -> None:
    """Measure each table and print a line for it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore", DiscreteOutcomeWarning)
    worst = 0.0
    print(f"{options.rows:,} rows, medians of {options.repeats}, seconds")
    names = ("one fit", "model inside", "randomize", "own", "own / inside", "own / one fit")
    print(f"{'table':10}", *(f"{name:>14}" for name in names))
    for name, X, y in tables(options.rows):
        measure(X, y, 0)  # imports
        times = np.array([measure(X, y, seed) for seed in range(options.repeats)])
        fit, inside, whole = times.T
        own = whole - inside
        measured = (
            *np.median(times, axis=0),
            *(np.median(part) for part in (own, own / inside, own / fit)),
        )
        print(f"{name:10}", *(f"{value:14.3f}" for value in measured), flush=True)
        worst = max(worst, float(measured[4]))
    print(f"required: own / inside below {WANTED:g}")
    raise SystemExit(int(worst >= WANTED))


if __name__ == "__main__":
    main()
