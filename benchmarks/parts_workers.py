"""An audit of a table in parts on a Dask cluster of this machine.

The gain from a second worker, and the overhead of Dask.

The table and the forecaster are those of `parts_scale.py`. One process without Dask, one worker and
two audit it one after the other; starting workers is not counted. The exit code is 1 if their
findings differ in any digit.

    python benchmarks/parts_workers.py [--rows 4000000] [--parts 16] [--sample-size 100000]
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from parts_scale import make_table, result, start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--sample-size", type=int, default=100_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = make_table(Path(place, "parts"), options.rows, options.parts)
        alone, one, two = (
            result(start("audit", folder, options.sample_size, workers)) for workers in (0, 1, 2)
        )
    same = alone["found"] == one["found"] == two["found"]
    print(f"{options.rows:,} rows in {options.parts} parts, all that an audit does:")
    print(f"two workers are {one['seconds'] / two['seconds']:.2f} times as fast as one")
    print(
        f"one worker takes {one['seconds'] / alone['seconds']:.2f} times as long as one process"
        " without Dask"
    )
    print(f"peak memory of a worker: {two['workers_gib']:.2f} GiB")
    print(
        "findings of one process, one worker and two:"
        f" {'the same to the last digit' if same else 'DIFFERENT'}"
    )
    raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()
