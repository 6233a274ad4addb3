"""Output folders of studies: intermediate results, tables, figures and a page.

A study is a list of exhibits. Its folder contains `results.json`, a csv file for each table, an SVG
and a PNG file for each figure, and `index.html`, one self-contained page with all of them.
Intermediate results are stored in `parts/`, one file each, and are not computed again by a resumed
run.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand import store
from evenhand._files import write_text
from evenhand._format import UNKNOWN
from evenhand._progress import progress
from evenhand._table import Column, Table
from evenhand._validate import InputError
from evenhand.figures import save_figure
from evenhand.report import Bullets, Document, Figure, Paragraph, Section, document_html

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Values = Mapping[str, Any]

RESULTS = "results.json"


@dataclass(frozen=True)
class Exhibit:
    """A figure, a table or both, with a heading and an explanation.

    Parameters
    ----------
    name : str
        Stem of the file names.
    title, text : str
        Heading and explanation on the page.
    draw : callable, optional
        Function that draws the figure and returns one of its axes.
    alt : str
        Alternative text of the figure.
    table : DataFrame, optional
        Table, written to csv with all digits and shown on the page with four.
    shown : int
        Largest number of table rows on the page.
    """

    name: str
    title: str
    text: str
    draw: Callable[[], Axes] | None = None
    alt: str = ""
    table: pd.DataFrame | None = None
    shown: int = 40


def check_folder(out: Path, name: str) -> None:
    """Refuse a folder that is not writable, or that contains another study."""
    store.check_folder(out)
    try:
        there = json.loads((out / RESULTS).read_text(encoding="utf-8")).get("study")
    except (OSError, ValueError, AttributeError):
        return
    if there != name:
        raise InputError(
            f"--out {out} contains the study {there}, not {name}; name a new folder, or that of an"
            f" earlier {name} run"
        )


def compute_parts(
    work: Callable[..., Values],
    tasks: Sequence[Values],
    folder: Path,
    *,
    jobs: int = 1,
    verbose: bool = False,
) -> Iterator[Values]:
    """Compute the parts of a study in parallel, and store each in a file when it is finished.

    Parameters
    ----------
    work : callable
        Function that takes the values of a task as keywords and returns plain values. It must be a
        module-level function or a `partial` of one, because workers are other processes.
    tasks : sequence of dict
        Plain values that determine each part. Stored parts of the same tasks are not computed
        again.
    folder : Path
        Folder of the files.
    jobs : int, default 1
        Number of processes. A joblib back end that is active around the call, such as
        `parallel_config("dask")`, is used instead, with its own number of workers. Each part is
        computed by one worker.
    verbose : bool, default False
        Whether to show a progress bar on a terminal.

    Yields
    ------
    dict
        The values of each part, in the order of the tasks.
    """
    from joblib import delayed

    folder.mkdir(parents=True, exist_ok=True)
    # file names are hashes of tasks, so changed settings give new parts
    files = [folder / f"{_fingerprint(task)}.json" for task in tasks]
    missing = [
        (task, file) for task, file in zip(tasks, files, strict=True) if _stored(file, task) is None
    ]
    with progress("computing", len(tasks), enabled=verbose) as advance:
        done = len(tasks) - len(missing)
        advance(done, "parts")
        calls = (delayed(_compute)(work, task, file) for task, file in missing)
        # values are passed through files, so an interrupted run loses only unfinished parts
        for _ in _workers(jobs)(calls):
            done += 1
            advance(done, "parts")
    for task, file in zip(tasks, files, strict=True):
        stored = _stored(file, task)
        if stored is None:
            raise InputError(
                f"{file} changed while the study was running; do not run two studies in one folder"
            )
        yield stored


def _workers(jobs: int) -> Any:
    """Return joblib's workers, which return results as they finish if the back end can."""
    from joblib import Parallel
    from joblib.parallel import get_active_backend

    backend, n_jobs = get_active_backend()
    # by default dask uses all its workers, other back ends one
    is_set = n_jobs is not None or backend.default_n_jobs != 1
    return_as = "generator_unordered" if backend.supports_return_generator else "list"
    return Parallel(n_jobs=None if is_set else jobs, return_as=return_as)


def _compute(work: Callable[..., Values], task: Values, file: Path) -> None:
    from joblib import parallel_config

    # nested parallelism could change results, and would wait for its own worker
    with parallel_config("sequential"):
        values = work(**task)
    write_text(file, json.dumps({"task": task, "values": plain(values)}))


def _stored(file: Path, task: Values) -> Values | None:
    """Return the values of a stored part, or None if the file is missing or of another task."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    # the task is converted to JSON types for the comparison
    if not isinstance(kept, dict) or kept.get("task") != json.loads(json.dumps(task)):
        return None
    values = kept.get("values")
    return values if isinstance(values, dict) else None


def _fingerprint(task: Values) -> str:
    return hashlib.blake2b(json.dumps(task, sort_keys=True).encode(), digest_size=8).hexdigest()


def plain(values: Any) -> Any:
    """Return values as JSON types: arrays become lists, NaN and infinity become None."""
    if isinstance(values, Mapping):
        return {str(key): plain(value) for key, value in values.items()}
    if isinstance(values, np.ndarray | np.generic):
        return plain(values.tolist())
    if isinstance(values, list | tuple):
        return [plain(value) for value in values]
    # JSON has no NaN
    if isinstance(values, float) and not math.isfinite(values):
        return None
    return values


def rows_of(
    tasks: Sequence[Values], parts: Iterable[Values], keep: Sequence[str]
) -> list[dict[str, Any]]:
    """Return the `rows` of all parts, with the task values named in `keep` added to each row."""
    return [
        {name: task[name] for name in keep} | row
        for task, part in zip(tasks, parts, strict=True)
        for row in part["rows"]
    ]


def closing_message(out: Path, lead: Sequence[str]) -> str:
    """Return the results of a study and the place of its files, for the terminal."""
    sentences = "\n".join(f"- {sentence}" for sentence in lead)
    return (
        f"{sentences}\n\nWritten to {out}: index.html, results.json, tables as csv, figures as SVG"
        " and PNG"
    )


def write_study(
    out: Path, title: str, lead: Sequence[str], exhibits: Sequence[Exhibit], results: Values
) -> None:
    """Write the folder of a study.

    Parameters
    ----------
    out : Path
        The folder; created if needed.
    title : str
        Heading of the page.
    lead : sequence of str
        Sentences on the results.
    exhibits : sequence of Exhibit
        Exhibits in the order of the page.
    results : dict
        Settings, seeds and numbers, for `results.json`.
    """
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / RESULTS, json.dumps(plain(results), indent=1) + "\n")
    for exhibit in exhibits:
        if exhibit.table is not None:
            write_text(out / f"{exhibit.name}.csv", exhibit.table.to_csv(index=False))
        if exhibit.draw is not None:
            save_figure(exhibit.draw, out / exhibit.name)
    footer = "Made by evenhand. All digits are in results.json and the csv files."
    sections = list(map(_section, exhibits))
    page = Document(title, sections, footer, introduction=[Bullets.of(lead)])
    write_text(out / "index.html", document_html(page))


def _section(exhibit: Exhibit) -> Section:
    parts: list[Paragraph | Figure | Table] = [Paragraph(exhibit.text)]
    if exhibit.draw is not None:
        parts.append(Figure(exhibit.draw, exhibit.alt, exhibit.name))
    if exhibit.table is not None:
        parts.append(_shown(exhibit.title, exhibit.table.head(exhibit.shown)))
        left = len(exhibit.table) - exhibit.shown
        rest = Paragraph(f"{left} more rows are in {exhibit.name}.csv.", "facts")
        parts += [rest] if left > 0 else []
    return Section(exhibit.title, parts)


def _shown(label: str, rows: pd.DataFrame) -> Table:
    columns = [
        Column(str(name), is_number=kind.kind in "fiu")
        for name, kind in zip(rows.columns, rows.dtypes, strict=True)
    ]
    return Table(label, columns, [list(map(_cell, row)) for row in rows.itertuples(index=False)])


def _cell(value: Any) -> str:
    if isinstance(value, float | np.floating):
        return UNKNOWN if not math.isfinite(value) else f"{value:.4g}"
    return str(value)
