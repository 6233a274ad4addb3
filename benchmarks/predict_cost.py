"""CPU time and peak memory of `evenhand predict`, compared with `evenhand fit`.

The table is generated: 13 columns (numbers, one with missing values, categories of 3 to 50 levels,
a boolean, a date) and a right-skewed outcome. The commands run in turn, each in its own process
including start-up; user and system time are added, and medians are compared. Forecasts are those of
the fitted model, randomized at 80% intervals 45% wider. The table also has
`predict --moments` and the difference between the served means and the point forecasts.

    OMP_NUM_THREADS=1 python benchmarks/predict_cost.py [--repeats 5]

The exit code is 1 if `predict` takes more than half the CPU time of `fit`, or 1 GB.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

from evenhand.store import read_certificate
from record import print_lost

FITTED, FORECAST = 11_000, 5_600
"""Rows that are fitted, and rows that are forecast."""

MOST_CPU, MOST_GB = 0.5, 1.0
"""Largest accepted ratio of CPU times, and peak memory of `predict`."""


def make_table(n: int, seed: int) -> pd.DataFrame:
    """Generate people with ids, 13 columns and an outcome."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, 6)), columns=[f"x{i}" for i in range(6)])
    for n_levels in (3, 8, 20, 50):
        table[f"one of {n_levels}"] = rng.choice([f"level {i}" for i in range(n_levels)], n)
    table["is_new"] = rng.random(n) < 0.4
    table["seldom"] = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    table["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(
        rng.integers(0, 1500, n), unit="D"
    )
    log_cost = 0.7 * table["x0"] + 0.4 * table["is_new"] + 0.5 * rng.normal(size=n)
    return table.assign(cost=1000 * np.exp(log_cost), id=[f"person {seed}-{i}" for i in range(n)])


def measure(*words: str | Path) -> tuple[float, float]:
    """Run `evenhand` with these arguments; returns seconds of CPU time and peak memory in GB."""
    command = shutil.which("evenhand", path=sysconfig.get_path("scripts"))
    if command is None:
        raise SystemExit("evenhand is not installed beside this Python; run make setup")
    process = subprocess.Popen(
        [command, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"evenhand {words[0]} failed: {status}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def measure_all(place: Path) -> dict[str, tuple[float, float]]:
    """Fit and forecast once, one after the other."""
    key = ("--id", "id", "--key-file", place / "key")
    fit = (
        "fit",
        place / "fitted.csv",
        "--target",
        "cost",
        "--id",
        "id",
        "--seed",
        "0",
        "--out",
        place / "model",
    )
    randomize = (
        "randomize",
        place / "others.csv",
        "--target",
        "cost",
        "--forecast",
        place / "model",
        "--max-wider",
        "0.45",
        "--out",
        place / "randomized",
    )
    predict = ("predict", place / "new.csv", "--forecast", place / "randomized", *key)
    fitted = measure(*fit)
    measure(*randomize)
    return {
        "fit": fitted,
        "predict": measure(*predict, "--out", place / "out.csv"),
        "predict --moments": measure(*predict, "--moments", "--out", place / "moments.csv"),
    }


def report(runs: list[dict[str, tuple[float, float]]], place: Path) -> int:
    """Print medians, ratios and which limit `predict` exceeds; returns the exit code."""
    cpu = {name: statistics.median(run[name][0] for run in runs) for name in runs[0]}
    peak = {name: max(run[name][1] for run in runs) for name in runs[0]}
    print(f"fit of {FITTED:,} rows, forecasts of {FORECAST:,}; medians of {len(runs)}")
    print(f"{'command':20} {'CPU seconds':>12} {'of fit':>8} {'peak GB':>8}")
    for name, seconds in cpu.items():
        print(f"{name:20} {seconds:12.2f} {seconds / cpu['fit']:8.2f} {peak[name]:8.2f}")
    written = pd.read_csv(place / "moments.csv")
    above = written["served_mean"].mean() / written["mean"].mean() - 1
    alpha = read_certificate(place / "randomized")["alpha"]
    print(f"served means are {above:+.0%} above the point forecasts on average ({alpha = :.2g})")
    ratio = cpu["predict"] / cpu["fit"]
    print(f"required: predict takes at most {MOST_CPU:g} of fit, and less than {MOST_GB:g} GB")
    return print_lost(
        name
        for name, is_lost in (("time", ratio > MOST_CPU), ("memory", peak["predict"] >= MOST_GB))
        if is_lost
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        make_table(FITTED, 0).to_csv(place / "fitted.csv", index=False)
        make_table(FORECAST, 2).to_csv(place / "others.csv", index=False)
        make_table(FORECAST, 1).drop(columns="cost").to_csv(place / "new.csv", index=False)
        (place / "key").write_text("a key for this benchmark only\n")
        runs = [measure_all(place) for _ in range(repeats)]
        raise SystemExit(report(runs, place))


if __name__ == "__main__":
    main()
