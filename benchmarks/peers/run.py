"""Benchmark of peers: comparison with MAPIE, crepes, fairaudit, MCGrad and others.

Planted problems, whose answers are known, and tables of the forecast benchmark. Every package gets
the same rows and its recommended settings, which the page lists. Seeds are fixed; times are CPU
times in one thread, as ratios within one run. `make bench-peers` makes the environment and runs

    python benchmarks/record.py peers/run

with it, which writes `benchmarks/results/peers.md`; `--quick` uses fewer tables.
"""

from __future__ import annotations

import argparse
import logging
import os
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import agreement
import coverage_intervals
import on_tables
import peer_detection
import peer_repairs
from measures import CONTEST_HEADS, Section, table_lines
from table_rows import NAMES

PACKAGES = (
    "mapie",
    "crepes",
    "conditionalconformal",
    "fairaudit",
    "mcgrad",
    "uncertainty-toolbox",
    "divexplorer",
)


@dataclass(frozen=True)
class Size:
    """Size of the run.

    Parameters
    ----------
    interval_tables : int
        Tables with simultaneous intervals; ten times as many of ours alone.
    detection_tables : int
        Tables of each planted problem for the fastest method.
    repetitions : int
        Repetitions of repairs.
    tables : tuple of str
        Tables of the forecast benchmark.
    """

    interval_tables: int
    detection_tables: int
    repetitions: int
    tables: tuple[str, ...]

    def times(self, factor: float) -> Size:
        """Return the size with other numbers of simulated tables, at least two."""
        numbers = (self.interval_tables, self.detection_tables, self.repetitions)
        return Size(*(max(2, round(factor * number)) for number in numbers), self.tables)


FULL = Size(20, 40, 20, NAMES)
QUICK = Size(2, 4, 2, ("Bwages",))


def quietly(job: Callable[..., Any], *arguments: Any) -> Any:
    """Run a job without the log lines and warnings of the packages; return errors as text."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    try:
        return job(*arguments)
    except Exception:
        return traceback.format_exc()


def _takes_less(method: peer_detection.Method) -> bool:
    return "fairaudit" not in method.name


def submit(pool: ProcessPoolExecutor, size: Size) -> dict[tuple[str, str], Future[Any]]:
    """Start all jobs, the longest first; the key of a job is its part of the page and its name."""
    known = on_tables.OURS | on_tables.PEERS
    jobs: dict[tuple[str, str], tuple[Any, ...]] = {
        ("detection", method.name): (peer_detection.results_of, method, size.detection_tables)
        for method in sorted(
            peer_detection.METHODS, key=lambda method: "fairaudit" not in method.name
        )
    }
    # a job for each method, as training our network takes longest
    jobs |= {
        ("tables", f"{table}, {method}"): (on_tables.results_of, table, {method: predict})
        for method, predict in sorted(known.items(), key=lambda item: "network" not in item[0])
        for table in size.tables
    }
    jobs["intervals", ""] = (coverage_intervals.section, size.interval_tables)
    jobs["repairs", ""] = (peer_repairs.section, size.repetitions)
    jobs["agreement", ""] = (agreement.section,)
    return {key: pool.submit(quietly, *job) for key, job in jobs.items()}


def finished(found: dict[tuple[str, str], Any]) -> Iterator[Section]:
    """Yield the sections of the page, given the results of all jobs."""
    for title in ("intervals", "repairs", "agreement"):
        if title == "repairs":
            yield _detection_section(found)
        yield _section_or_error(title, found[title, ""])
        if title == "repairs":
            yield _tables_section(found)


def _section_or_error(title: str, result: Any) -> Section:
    return result if isinstance(result, Section) else Section(title, [f"FAILED: {result}"])


def _detection_section(found: dict[tuple[str, str], Any]) -> Section:
    results = {name: result for (part, name), result in found.items() if part == "detection"}
    order = [method.name for method in peer_detection.METHODS]
    failed = {name: results[name] for name in order if isinstance(results[name], str)}
    made = peer_detection.section({name: results[name] for name in order if name not in failed})
    made.lines += [f"FAILED: {name}: {text}" for name, text in failed.items()]
    return made


def _tables_section(found: dict[tuple[str, str], Any]) -> Section:
    results = {name: result for (part, name), result in found.items() if part == "tables"}
    failed = {name: result for name, result in results.items() if isinstance(result, str)}
    merged: dict[str, on_tables.TableResult] = {}
    for method in on_tables.OURS | on_tables.PEERS:
        for table in NAMES:
            result = results.get(f"{table}, {method}")
            if isinstance(result, on_tables.TableResult):
                merged[table] = result.with_scores(merged.get(table))
    made = on_tables.section(list(merged.values()))
    made.lines += [f"FAILED: {name}: {text}" for name, text in failed.items()]
    return made


def versions() -> str:
    """Return the versions of the packages, and which are not installed."""
    found = []
    for name in PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"{name} NOT INSTALLED")
    return ", ".join(found)


def print_page(sections: Sequence[Section]) -> None:
    """Print versions, the table of who wins where, and the sections."""
    print(f"Peers: {versions()}.")
    print("\nWho wins where\n==============")
    contests = [contest.cells() for section in sections for contest in section.contests]
    print("\n".join(table_lines(CONTEST_HEADS, contests)))
    print(
        "\nTie: the difference may be noise (two standard errors, or Fisher's exact test at 5%)."
        "\nDetection: the more powerful of our scan and our learned group, against peers whose"
        "\nfalse alarms are not significantly above 5%. Tables: how many of them each side wins."
    )
    for section in sections:
        print(f"\n{section.title}\n{'=' * len(section.title)}")
        print("\n".join(section.lines))


def main() -> None:
    """Run all parts and print the page."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="few tables, about two minutes")
    parser.add_argument(
        "--factor", type=float, default=1.0, help="of the number of simulated tables"
    )
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="processes")
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs) as pool:
        futures = submit(pool, QUICK if options.quick else FULL.times(options.factor))
        found = {key: future.result() for key, future in futures.items()}
    sections = list(finished(found))
    print_page(sections)
    raise SystemExit(1 if any("FAILED" in line for part in sections for line in part.lines) else 0)


if __name__ == "__main__":
    main()
