"""The group scan compared with a plain loop over groups, and its time per row by table size.

1. 500 rows, 99 features, groups of at least 100 rows (with the default of 150 hardly any pair of
   halves would count): a loop that takes each half and each pair of halves in turn (boolean and,
   size, exact W1 by sorting, two tests, coverage) and `scan_groups` take turns in one run; medians
   of CPU times are compared. The loop is written twice: plainly, from `calibration_error`,
   `covered` and SciPy's normal distribution, and once more with everything inlined. The target
   refers to the plain loop.
2. 10^4, 10^5, 10^6 rows, 50 features, one draw: time per row, which must not grow.

    OMP_NUM_THREADS=1 python benchmarks/scan.py [--repeats 5] [--rows 10000 100000 1000000]
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from evenhand.calibration import calibration_error, covered
from evenhand.search.scan import scan_groups
from record import print_lost

MIN_SIZE = 100
WANTED = 100.0
"""Least ratio that is accepted."""


def exact_error(u: np.ndarray) -> float:
    """Area between the step function of PITs and the diagonal, cell by cell."""
    n = u.size
    rising = np.sort(u)
    low, high = np.arange(n) / n - rising, np.arange(1, n + 1) / n - rising
    return float((high * np.abs(high) - low * np.abs(low)).sum() / 2)


def plain_group(name: str, u: np.ndarray) -> dict[str, Any]:
    """Measure and test one group from what the libraries have."""
    level = (u.mean() - 0.5) * np.sqrt(12 * u.size)
    spread = (np.abs(u - 0.5).mean() - 0.25) * np.sqrt(48 * u.size)
    p_level, p_spread = 2 * stats.norm.sf(abs(level)), 2 * stats.norm.sf(abs(spread))
    if p_level <= p_spread:
        direction = "outcomes higher than forecast" if level > 0 else "outcomes lower than forecast"
    else:
        direction = "intervals too narrow" if spread > 0 else "intervals too wide"
    return {
        "group": name,
        "n": u.size,
        "error": calibration_error(u),
        "direction": direction,
        "coverage_80": covered(u, 0.8).mean(),
        "p_value": min(1.0, 2 * min(p_level, p_spread)),
    }


def inlined_group(name: str, u: np.ndarray) -> dict[str, Any]:
    """Measure and test one group with as few calls as that takes."""
    level = (u.mean() - 0.5) * math.sqrt(12 * u.size)
    spread = (np.abs(u - 0.5).mean() - 0.25) * math.sqrt(48 * u.size)
    p = min(1.0, 2 * math.erfc(max(abs(level), abs(spread)) / math.sqrt(2)))
    if abs(level) >= abs(spread):
        direction = "outcomes higher than forecast" if level > 0 else "outcomes lower than forecast"
    else:
        direction = "intervals too narrow" if spread > 0 else "intervals too wide"
    coverage = np.mean(np.abs(u - 0.5) <= 0.4)
    return {
        "group": name,
        "n": u.size,
        "error": exact_error(u),
        "direction": direction,
        "coverage_80": coverage,
        "p_value": p,
    }


def loop(
    u: np.ndarray, X: pd.DataFrame, min_size: int, one_group: Callable[..., dict[str, Any]]
) -> pd.DataFrame:
    """Take each group in turn."""
    masks = []
    for name in X.columns:
        values = X[name].to_numpy()
        cut = np.median(values)
        masks += [
            (name, f"{name} <= {cut:g}", values <= cut),
            (name, f"{name} > {cut:g}", values > cut),
        ]
    rows = [one_group(name, u[mask]) for _, name, mask in masks if mask.sum() >= min_size]
    for (f, first, a), (g, second, b) in combinations(masks, 2):
        both = a & b
        if f != g and both.sum() >= min_size:
            rows.append(one_group(f"{first} and {second}", u[both]))
    frame = pd.DataFrame(rows).sort_values("p_value", ignore_index=True, kind="stable")
    frame["p_adjusted"] = np.minimum(
        np.maximum.accumulate(frame["p_value"] * np.arange(len(frame), 0, -1)), 1.0
    )
    return frame


def seconds(scan: Callable[[], pd.DataFrame]) -> tuple[float, pd.DataFrame]:
    """Return the CPU seconds that a scan takes, and its table."""
    start = time.process_time()
    frame = scan()
    return time.process_time() - start, frame


def compare(repeats: int) -> float:
    """Time both in turn, check that they find the same and return the ratio of plain to ours."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(500, 99)), columns=[f"feature {j}" for j in range(99)])
    u = rng.random(500)
    scan_groups(u, X, MIN_SIZE)
    times: dict[str, list[float]] = {"plain loop": [], "inlined loop": [], "scan_groups": []}
    for _ in range(repeats):
        for name, one_group in (("plain loop", plain_group), ("inlined loop", inlined_group)):
            taken, slow = seconds(lambda one=one_group: loop(u, X, MIN_SIZE, one))
            times[name].append(taken)
        for _ in range(5):
            taken, fast = seconds(lambda: scan_groups(u, X, MIN_SIZE))
            times["scan_groups"].append(taken)
    both = slow.merge(fast, on="group", validate="one_to_one", suffixes=("", "_ours"))
    if (
        len(both) != len(slow)
        or len(both) != len(fast)
        or not np.allclose(both["p_value"], both["p_value_ours"])
    ):
        raise SystemExit("the two did not find the same")
    print(f"500 rows, 99 features, min_size {MIN_SIZE}: {len(fast)} groups")
    medians = {name: float(np.median(measured)) for name, measured in times.items()}
    for name, median in medians.items():
        print(
            f"{name:12} {1e3 * median:7.1f} ms, {median / medians['scan_groups']:5.0f} times"
            " scan_groups"
        )
    difference = np.abs(both["error"] - both["error_ours"])
    print(
        f"error by 64 bins beside exact: median difference {difference.median():.5f}, largest"
        f" {difference.max():.5f}"
    )
    return medians["plain loop"] / medians["scan_groups"]


def growth(sizes: list[int]) -> None:
    """Print the time per row of larger and larger tables."""
    for n in sizes:
        rng = np.random.default_rng(1)
        X, u = rng.normal(size=(n, 50)), rng.random(n)
        taken = sorted(seconds(lambda X=X, u=u: scan_groups(u, X))[0] for _ in range(3))[1]
        print(
            f"{n:>8} rows, 50 features: {taken:7.3f} s, {1e6 * taken / n:6.2f} microseconds per row"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    options = parser.parse_args()
    ratio = compare(options.repeats)
    print(f"required: at least {WANTED:g} times")
    growth(options.rows)
    raise SystemExit(print_lost(["the target"] if ratio < WANTED else []))


if __name__ == "__main__":
    main()
