"""CPU time per row and peak memory of a whole audit, from ten thousand to a million rows.

Each size is audited in a process of its own: a randomized forecaster around a linear regression, 64
draws per row, 50 features, everything that `evenhand.audit` does by default.

    python benchmarks/audit_scale.py [--rows 10000 100000 1000000]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time

import numpy as np


def measure(n: int) -> dict[str, float]:
    """Audit `n` rows in this process."""
    from sklearn.linear_model import LinearRegression

    from evenhand import RandomizedRegressor, audit

    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 50))
    y = X[:, 0] + rng.normal(size=n)
    model = RandomizedRegressor(LinearRegression(), random_state=0).fit(X[:5000], y[:5000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    start = time.process_time()
    found = audit(model, X, y, random_state=0)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "rows": n,
        "draws": found.n_draws,
        "seconds": seconds,
        "before_gib": before,
        "peak_gib": peak,
    }


def main() -> None:
    """Measure each size in a fresh process and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.rows[0])))
        return
    print(f"{'rows':>10} {'draws':>6} {'CPU s':>8} {'microseconds per row':>21} {'peak GiB':>9}")
    for n in options.rows:
        command = [sys.executable, __file__, "--one", "--rows", str(n)]
        done = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[
                -1
            ]
        )
        per_row = 1e6 * done["seconds"] / n
        print(
            f"{n:>10,} {done['draws']:>6} {done['seconds']:>8.1f} {per_row:>21.1f}"
            f" {done['peak_gib']:>9.2f}"
        )


if __name__ == "__main__":
    main()
