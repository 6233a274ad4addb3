"""Start-up time of the command.

`evenhand --help` is compared with importing the packages that any such command needs.

Both are timed in turn, each in its own process, and compared by medians: the ratio depends little
on the machine and its load. Exit code 1 if it is over the limit.

    python benchmarks/import_time.py [--repeats 15]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import sysconfig
import time

LIMIT = 4.0
"""Largest ratio that is accepted."""


def main() -> None:
    """Time both in turn and print medians and their ratio."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--repeats", type=int, default=15)
    repeats = parser.parse_args().repeats
    command = shutil.which("evenhand", path=sysconfig.get_path("scripts"))
    if command is None:
        raise SystemExit("evenhand is not installed beside this Python; run make setup")
    commands = {
        "evenhand --help": [command, "--help"],
        "import numpy, typer": [sys.executable, "-c", "import numpy, typer"],
    }
    for argv in commands.values():
        seconds(argv)  # fills the caches of the disk
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, argv in commands.items():
            times[name].append(seconds(argv))
    medians = {name: statistics.median(measured) for name, measured in times.items()}
    for name, median in medians.items():
        print(
            f"{name:20} median {1000 * median:6.0f} ms of {repeats}, fastest"
            f" {1000 * min(times[name]):6.0f} ms"
        )
    ours, least = medians.values()
    print(f"ratio {ours / least:.2f}, at most {LIMIT:g} accepted")
    raise SystemExit(int(ours / least > LIMIT))


def seconds(argv: list[str]) -> float:
    """Run a command and return the seconds that it took."""
    start = time.perf_counter()
    subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
