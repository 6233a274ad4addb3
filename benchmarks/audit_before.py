"""CPU time of audits relative to another version of evenhand, such as the last release.

Each version runs in a process of its own, and both audit the same rows in turn, in alternating
order: 11,000 rows of a continuous outcome, and of a 0/1 outcome with calibrated probabilities and
with log odds that are too far from 0 (calibration slope 0.7); and 10^6 rows of a 0/1 outcome. All
have 8 features, one of which names groups. Caches are emptied before each audit. The ratio is the
median over repeats of the ratios of CPU times; beside it is the ratio of the shortest times. The
exit code is 1 if a median is above 1.1.

    OMP_NUM_THREADS=1 python benchmarks/audit_before.py OTHER/src [--repeats 7] [--cases 0/1]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

import evenhand
from audit_cost import forget
from evenhand import Forecast, audit

MOST = 1.1
"""Largest accepted ratio of CPU times."""

CASES = {
    "continuous, 11,000 rows": (11_000, None),
    "0/1, calibrated, 11,000 rows": (11_000, 1.0),
    "0/1, slope 0.7, 11,000 rows": (11_000, 0.7),
    "0/1, calibrated, 10^6 rows": (1_000_000, 1.0),
}
"""Number of rows and, of 0/1 outcomes, the calibration slope."""


def problem(n: int, slope: float | None) -> tuple[Forecast, dict[str, Any]]:
    """Return forecasts and the arguments of their audit."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n, 8)), columns=[f"x{i}" for i in range(8)])
    X["x7"] = rng.integers(0, 4, size=n)
    score = X["x0"].to_numpy() - 1
    some: dict[str, Any] = {"X": X, "groups": ["x7"]}
    if slope is None:
        scale = np.exp(0.3 * X["x1"].to_numpy())
        return Forecast.from_normal(score, scale), some | {"y": score + scale * rng.normal(size=n)}
    y = (rng.random(n) < expit(slope * score)).astype(int)
    return Forecast.from_probability(expit(score)), some | {"y": y}


def answer() -> None:
    """Print the CPU time of an audit of each case that is read."""
    for line in sys.stdin:
        model, some = problem(*CASES[line.strip()])
        forget()
        start = time.process_time()
        audit(model, random_state=0, **some)
        print(time.process_time() - start, flush=True)


def started(source: Path) -> subprocess.Popen[str]:
    """Start a process that imports evenhand from a folder."""
    return subprocess.Popen(
        [sys.executable, __file__, "--answer", str(source)],
        env=os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def seconds(process: subprocess.Popen[str], case: str) -> float:
    """Return the CPU time of an audit in a process."""
    assert process.stdin is not None
    assert process.stdout is not None
    print(case, file=process.stdin, flush=True)
    return float(process.stdout.readline())


def main() -> None:
    """Time both versions in turn and print ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("other", type=Path, help="folder src of the other version")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--cases", default="", help="part of the names of the cases to run")
    parser.add_argument("--answer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    here = Path(evenhand.__file__).resolve().parents[1]
    if options.answer:
        if here != options.other.resolve():
            raise SystemExit(f"evenhand was imported from {here}, not from {options.other}")
        return answer()
    versions = {"this": started(here), "other": started(options.other)}
    print(f"{'audit':30} {'this':>7} {'other':>7} {'ratio':>6} {'of shortest':>12}")
    largest = 0.0
    for case in (each for each in CASES if options.cases in each):
        for process in versions.values():
            seconds(process, case)  # imports
        times = np.empty((options.repeats, 2))
        for row in range(options.repeats):
            for i in (0, 1) if row % 2 else (1, 0):
                times[row, i] = seconds(list(versions.values())[i], case)
        ratio = float(np.median(times[:, 0] / times[:, 1]))
        (new, old), (least, old_least) = np.median(times, axis=0), times.min(axis=0)
        print(f"{case:30} {new:7.2f} {old:7.2f} {ratio:6.2f} {least / old_least:12.2f}", flush=True)
        largest = max(largest, ratio)
    print(f"medians of CPU seconds; accepted: a ratio of at most {MOST:g}")
    raise SystemExit(int(largest > MOST))


if __name__ == "__main__":
    main()
