"""Benchmark of deterministic forecasts: evenhand's defaults and other libraries.

Twenty tables (`tables.py`), five folds each, every row a test row once. Half of the tables are for
choosing defaults, the other half for the report. Scores are means over test rows: the log score in
nats (the cell log score where outcomes are on a grid), CRPS, the root mean squared error of the
mean, the error of PITs on average, the coverage of 90% intervals; and the CPU time of the fits, and
of a prediction of 5,600 rows by each of them, in one thread. Lower is better but for the coverage.
Standard errors are those of paired differences over rows, as if rows were independent.

NGBoost and CatBoost are run with a fixed number of rounds and with early stopping, and both are
ranked. A default is last if only those with a fixed number are worse, as these overfit small
tables. CPU time is compared with NGBoost of 500 rounds; run both on an equally busy machine.

Tables, peers' packages and results are in a folder (`bench-results/forecasts`); existing results
are not computed again. The exit code is 1 if a claim does not hold.

    python benchmarks/forecasts/run.py --tables choosing --forecasters network --folds 0
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
from comparison import PEERS, SHOWN, TableScores
from jobs import read_rows, result_file, table_file, write_table
from report import claim_lines, summary_lines, table_lines
from scores import Scale, forecast_of, row_scores
from tables import CHOOSING, FOLDS, REPORTED, TABLES, Table

from evenhand import InputError

# tables of the studies, which lie beside this folder, outside the package
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from reproduction.datasets import load_credit, load_crime

HERE = Path(__file__).parent
FOLDER = HERE.parents[1] / "bench-results" / "forecasts"
GROUPS = {"choosing": CHOOSING, "reported": REPORTED}
PACKAGES = ("ngboost", "catboost", "quantile-forest", "scikit-learn")
"""Packages of the peers."""

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def peers_python(folder: Path) -> Path:
    """Return the Python of the peers' environment, which is made first if necessary."""
    python = folder / "peers" / "bin" / "python"
    wanted = (HERE / "requirements.txt").read_text(encoding="utf-8")
    made_from = folder / "peers" / "made-from.txt"
    if not made_from.exists() or made_from.read_text(encoding="utf-8") != wanted:
        print("making the environment of the peers", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder / "peers"], check=True)
        quiet = ("--quiet", "--disable-pip-version-check")
        subprocess.run(
            [python, "-m", "pip", "install", *quiet, "-r", HERE / "requirements.txt"], check=True
        )
        made_from.write_text(wanted, encoding="utf-8")
    return python


def versions(peers: Path) -> str:
    """Return the versions of the peers' packages."""
    code = f"from importlib.metadata import version; print(*map(version, {PACKAGES}))"
    found = subprocess.run([peers, "-c", code], check=True, capture_output=True, text=True).stdout
    pairs = zip(PACKAGES, found.split(), strict=True)
    return ", ".join(f"{name} {number}" for name, number in pairs)


def prepare(folder: Path, peers: Path) -> None:
    """Write the tables that are not there yet."""
    missing = [table for table in TABLES if not table_file(folder, table.name).exists()]
    if any(table.source not in ("crime", "credit") for table in missing):
        subprocess.run([peers, HERE / "peers.py", "prepare", folder], check=True)
    for table in missing:
        if table.source in ("crime", "credit"):
            try:
                data = load_crime() if table.source == "crime" else load_credit()
            except InputError as error:
                print(f"skipped {table.name}: {error}", flush=True)
                continue
            # the outcome of credit is one of the features of its loader
            frame = data.X if table.outcome in data.X else data.X.assign(**{table.outcome: data.y})
            write_table(folder, table, frame)


def results(
    options: argparse.Namespace, forecaster: str, names: Sequence[str]
) -> dict[tuple[str, int], Path]:
    """Return the result files of a forecaster, by table and fold."""
    out = options.folder if forecaster in PEERS else options.own
    jobs = [(name, fold) for name in names for fold in options.folds]
    return {(name, fold): result_file(out, name, forecaster, fold) for name, fold in jobs}


def fit(options: argparse.Namespace, names: Sequence[str], peers: Path, forecaster: str) -> None:
    """Run the jobs of a forecaster whose results are missing, in one process."""
    files = results(options, forecaster, names).values()
    if forecaster in options.again:
        for file in files:
            file.unlink(missing_ok=True)
    if all(file.exists() for file in files):
        return
    command = [sys.executable, "-u", HERE / "own.py", options.folder, "--out", options.own]
    if forecaster in PEERS:
        command = [peers, "-u", HERE / "peers.py", options.folder, "--out", options.folder]
    command += ["--forecasters", forecaster, "--tables", *names]
    command += ["--folds", *map(str, options.folds)]
    environment = os.environ | dict.fromkeys(THREADS, "1")
    # fits are reported as they end; stdout is for the scores
    subprocess.run(command, check=True, env=environment, stdout=sys.stderr)


def scores_of(options: argparse.Namespace, name: str) -> TableScores:
    """Return the scores of all forecasters that have results on the wanted folds."""
    rows = read_rows(options.folder, name)
    scale = Scale.of(rows.y)
    scores = {}
    cpu = {}
    predict = {}
    for forecaster in SHOWN:
        files = results(options, forecaster, [name])
        if not all(file.exists() for file in files.values()):
            continue
        parts = []
        cpu[forecaster] = predict[forecaster] = 0.0
        for (_, fold), file in files.items():
            arrays = dict(np.load(file))
            cpu[forecaster] += float(arrays.pop("cpu"))
            predict[forecaster] += float(arrays.pop("predict"))
            if forecaster in PEERS:
                test = rows.test(fold)
                arrays = row_scores(forecast_of(arrays, rows.y[~test]), rows.y[test], scale)
            parts.append(arrays)
        scores[forecaster] = {
            kind: np.concatenate([part[kind] for part in parts]) for kind in parts[0]
        }
    y = np.concatenate([rows.y[rows.test(fold)] for fold in options.folds])
    return TableScores(name, rows.X.shape[1], scale.step, y, scores, cpu, predict)


def section(title: str, tables: Sequence[TableScores]) -> Iterator[str]:
    """Yield the blocks of some tables and their counts."""
    yield title
    yield "=" * len(title)
    for table in tables:
        yield from table_lines(table)
        yield ""
    complete = [table for table in tables if table.is_complete]
    if complete:
        yield f"{title}, {len(complete)} complete"
        yield from summary_lines(complete)
        yield ""


def selected(words: Sequence[str]) -> list[Table]:
    """Return the tables that the command line names."""
    wanted = {table.name for word in words for table in GROUPS.get(word, ())} | set(words)
    unknown = wanted - {table.name for table in TABLES} - set(GROUPS)
    if unknown:
        raise SystemExit(f"no table is named {', '.join(sorted(unknown))}; see tables.py")
    return [table for table in TABLES if table.name in wanted]


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--tables", nargs="+", default=list(GROUPS), help="reported, choosing or names")
    add("--forecasters", nargs="*", default=list(SHOWN), choices=SHOWN, help="that are run")
    add("--folds", nargs="+", type=int, default=list(range(FOLDS)))
    add("--again", nargs="+", default=[], choices=SHOWN, help="forecasters that are run again")
    add("--folder", type=Path, default=FOLDER, help="tables, peers and results")
    add("--own", type=Path, help="folder of evenhand's results, by default the same")
    add("--peers", type=Path, help="Python of an environment that has the peers already")
    add("--jobs", type=int, default=1, help="forecasters at the same time, a process each")
    options = parser.parse_args()
    options.own = options.own or options.folder
    return options


def main() -> None:
    """Fit, score and print."""
    options = parsed()
    peers = options.peers or peers_python(options.folder)
    prepare(options.folder, peers)
    tables = selected(options.tables)
    names = [table.name for table in tables if table_file(options.folder, table.name).exists()]
    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(partial(fit, options, names, peers), options.forecasters))
    print(f"Peers: {versions(peers)}. Standard errors are paired over rows.\n", flush=True)
    is_held = True
    for kind in ("reported", "choosing"):
        chosen = [table.name for table in GROUPS[kind] if table.name in names]
        found = [scores_of(options, name) for name in chosen]
        if found:
            title = "Reported tables" if kind == "reported" else "Tables for choosing defaults"
            print("\n".join(section(title, found)), flush=True)
        complete = [table for table in found if table.is_complete]
        if complete and kind == "reported":
            lines, is_held = claim_lines(complete)
            print("\n".join([*lines, ""]), flush=True)
    raise SystemExit(0 if is_held else 1)


if __name__ == "__main__":
    main()
