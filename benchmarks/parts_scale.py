"""An audit of a table in parts, compared with scoring only: throughput and memory.

Rows are generated: eight features, two columns of named groups, an outcome. The forecaster is a
link around a linear regression, so that scoring is as cheap as possible. Scoring alone reads the
features and computes the PITs of 64 draws per row; it runs at the same time as the audit, each in a
process with one thread. CPU times and peak memory are those of each process.

    python benchmarks/parts_scale.py [--rows 20000000] [--parts 40] [--sample-size 100000]

The exit code is 1 if the larger audit takes twice the CPU time of scoring alone, or 2 GiB.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from record import print_lost

FEATURES = [f"x{i}" for i in range(8)]
GROUPS = ["sex", "region"]


def make_rows(n: int, seed: int) -> pd.DataFrame:
    """Generate a part of the table."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(rng.normal(size=(n, len(FEATURES))), columns=FEATURES)
    table["sex"] = rng.choice(["f", "m"], n)
    table["region"] = rng.choice(list("abcde"), n)
    table["y"] = table["x0"] + rng.normal(size=n)
    return table


def make_table(folder: Path, n_rows: int, n_parts: int) -> Path:
    """Write the parts."""
    from evenhand.tables.files import write_table

    folder.mkdir()
    for i in range(n_parts):
        write_table(make_rows(n_rows // n_parts, i), folder / f"part-{i:04}.parquet")
    return folder


def make_model() -> Any:
    """Fit the forecaster on other rows."""
    from sklearn.linear_model import LinearRegression

    from evenhand import RandomizedRegressor

    rows = make_rows(5000, 12345)
    return RandomizedRegressor(LinearRegression(), random_state=0).fit(rows[FEATURES], rows["y"])


def score(folder: Path) -> dict[str, Any]:
    """Read the features and take the PITs, and nothing else."""
    from evenhand.draws import jittered
    from evenhand.tables import open_parts

    model, parts, rng = make_model(), open_parts(folder), np.random.default_rng(0)
    total = 0.0
    for i in range(len(parts)):
        for _, table in parts.blocks(i, [*FEATURES, "y"]):
            forecast = model.forecast(table[FEATURES], jittered(len(table), 64, rng))
            total += float(forecast.pit(table["y"].to_numpy()).mean())
    return {"mean": total}


def audit(folder: Path, sample_size: int) -> dict[str, Any]:
    """Audit the table."""
    from evenhand.scale import audit_parts

    options: dict[str, Any] = {"groups": GROUPS, "random_state": 0, "name": "model"}
    audit_parts(make_model(), folder, "y", sample_size=sample_size, **options)
    return {}


def peak() -> float:
    """Peak memory of this process in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def start(what: str, folder: Path, sample_size: int) -> subprocess.Popen[str]:
    """Measure something in a process of its own."""
    command = [
        sys.executable,
        __file__,
        "--one",
        what,
        "--folder",
        str(folder),
        "--sample-size",
        str(sample_size),
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def result(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Return what a process measured."""
    out, _ = process.communicate()
    if process.returncode:
        raise SystemExit(process.returncode)
    measured: dict[str, Any] = json.loads(out.splitlines()[-1])
    return measured


def one(what: str, folder: Path, sample_size: int) -> None:
    """Measure one thing in this process and print it."""
    begun = time.process_time()
    found = score(folder) if what == "score" else audit(folder, sample_size)
    print(json.dumps({"seconds": time.process_time() - begun, **found, "peak_gib": peak()}))


def compare(folder: Path, n_rows: int, sample_size: int) -> bool:
    """Whether the audit takes less than twice as long as scoring alone and under 2 GiB."""
    both = [start(what, folder, sample_size) for what in ("audit", "score")]
    audited, scored = (result(process) for process in both)
    ratio = audited["seconds"] / scored["seconds"]
    print(
        f"{n_rows:>12,} {1e6 * audited['seconds'] / n_rows:>15.1f}"
        f" {1e6 * scored['seconds'] / n_rows:>15.1f} {ratio:>7.2f} {audited['peak_gib']:>10.2f}"
        f" {scored['peak_gib']:>12.2f}",
        flush=True,
    )
    return bool(ratio < 2 and audited["peak_gib"] < 2)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--parts", type=int, default=40)
    parser.add_argument("--sample-size", type=int, default=100_000)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options.one, options.folder, options.sample_size)
        return
    with tempfile.TemporaryDirectory() as place:
        print("CPU microseconds per row; peak memory in GiB")
        print(
            f"{'rows':>12} {'audit':>15} {'scoring alone':>15} {'ratio':>7} {'audit GiB':>10}"
            f" {'scoring GiB':>12}"
        )
        slow: list[str] = []
        for rows, parts in (
            (options.rows // 10, options.parts // 10),
            (options.rows, options.parts),
        ):
            folder = make_table(Path(place, str(rows)), rows, parts)
            if not compare(folder, rows, options.sample_size):
                slow.append(f"{rows:,} rows")
        print("required of the larger table: less than 2 times scoring alone, and 2 GiB")
        print_lost(slow)
        raise SystemExit(int(slow[-1:] == [f"{options.rows:,} rows"]))


if __name__ == "__main__":
    main()
