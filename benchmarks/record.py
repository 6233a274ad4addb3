"""Record of benchmarks: output, command and commit of each in `benchmarks/results/`.

python benchmarks/record.py worst_groups scan "audit_scale --rows 10000 100000"
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
PACKAGES = ("evenhand", "numpy", "scipy", "scikit-learn")


def print_lost(cases: Iterable[str]) -> int:
    """Print the cases in which a benchmark lost, and return its exit code: 1 if there are any."""
    named = "; ".join(cases)
    print(f"lost: {named or 'nothing'}", flush=True)
    return int(bool(named))


def commit_of_checkout() -> str:
    """Return the commit that is checked out, marked if files other than results differ from it."""
    git = ["git", "-C", str(HERE)]
    changed = subprocess.run(
        [*git, "diff", "--quiet", "HEAD", "--", "..", ":!results"], check=False
    )
    head = subprocess.run(
        [*git, "rev-parse", "--short", "HEAD"], check=True, capture_output=True, text=True
    )
    return head.stdout.strip() + " with changes" * changed.returncode


def record(commit: str, name: str, *options: str) -> int:
    """Run one benchmark, print its output, write it to a file and return its exit code."""
    shown = f"OMP_NUM_THREADS=1 python benchmarks/{shlex.join((f'{name}.py', *options))}"
    print(shown, flush=True)
    command = [sys.executable, "-u", str(HERE / f"{name}.py"), *options]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        for line in process.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    # the page stays after a failure before anything was printed
    if process.returncode not in (0, 1) or not lines:
        return process.returncode
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    page = [
        f"`{shown}`",
        "",
        "```text",
        *lines,
        "```",
        "",
        f"{versions}; commit {commit}; {os.cpu_count()} cores.",
    ]
    # a benchmark of several files is a folder with its command in run.py
    (HERE / "results" / f"{name.removesuffix('/run')}.md").write_text(
        "\n".join(page) + "\n", encoding="utf-8"
    )
    return process.returncode


def main() -> None:
    """Record each benchmark that is named; the exit code is the largest of theirs."""
    wanted = sys.argv[1:]
    if not wanted:
        raise SystemExit(__doc__)
    commit = commit_of_checkout()
    raise SystemExit(max([record(commit, *shlex.split(each)) for each in wanted]))


if __name__ == "__main__":
    main()
