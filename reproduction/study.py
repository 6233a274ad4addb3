"""Verdicts on claims, stored results, recalibration and pages of the studies."""

from __future__ import annotations

import hashlib
import html
import json
import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn
from scipy import stats

from evenhand import DiscreteOutcomeWarning, Forecast, UnseenValuesWarning
from evenhand.distributions import Recalibrated
from reproduction.game import Floats, Mask

Row = dict[str, Any]

PAIC, LIKELIHOOD = 0.1, 1.0
"""The values of alpha compared in the paper: mostly individual calibration, and likelihood
only."""

MASS = 0.2
"""Group size of worst-group errors in tables and claims."""

LINK = "entropic"
NETWORK = "paper's network"
"""Name of the paper's network in tables."""

MAX_STEPS = 1100
"""Training steps of `PAICRegressor` that reproduce the published figures."""

NEGLIGIBLE = 0.02
"""Largest improvement of an error that counts as none; the errors themselves are about ten times
as large."""

CONFIDENCE = 0.95

BLUE, ORANGE, RED, GREY = "#0072b2", "#e69f00", "#d55e00", "#757575"
"""Colours that people with any kind of colour vision can distinguish (Okabe and Ito)."""

# --- claims and verdicts over repetitions (splits or roll-outs)


@dataclass(frozen=True, eq=False)
class Claim:
    """A claim about a mean over repetitions.

    Parameters
    ----------
    claim, measured : str
        The claim, and the quantity that decides it.
    values : ndarray
        The quantity, one value per repetition; booleans for a share.
    limit : float
        Limit for the mean of the quantity.
    is_above : bool
        Whether the claim is that the mean lies above the limit, or below it.
    """

    claim: str
    measured: str
    values: Floats | Mask
    limit: float = 0.0
    is_above: bool = True


def judge(claims: Iterable[Claim]) -> pd.DataFrame:
    """Return a table of claims with means, intervals and verdicts."""
    rows = []
    for one in claims:
        mean, low, high = interval(one.values)
        # distances of both ends from the limit, positive on the side of the claim
        near, far = low - one.limit, high - one.limit
        if not one.is_above:
            near, far = -far, -near
        verdict = "holds" if near > 0 else "does not hold" if far < 0 else "undecided"
        rows.append((one.claim, one.measured, mean, low, high, verdict))
    return pd.DataFrame(rows, columns=["claim", "measured", "value", "low", "high", "verdict"])


def interval(values: Floats | Mask) -> tuple[float, float, float]:
    """Return the mean and the ends of its 95% interval, which are NaN for a single value.

    Student's t for numbers, Clopper-Pearson for booleans.
    """
    mean = float(np.mean(values))
    n = len(values)
    # one repetition gives no interval, and no verdict
    if n < 2:
        return mean, np.nan, np.nan
    # a t interval of a share may leave [0, 1], and has width 0 if all values agree
    if values.dtype == np.bool_:
        exact = stats.binomtest(round(mean * n), n).proportion_ci(CONFIDENCE)
        return mean, float(exact.low), float(exact.high)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def tally(found: pd.DataFrame) -> str:
    """Return the numbers of claims by verdict as text."""
    count = found["verdict"].value_counts()
    return (
        f"of {len(found)} claims {count.get('holds', 0)} hold, {count.get('does not hold', 0)} do"
        f" not hold and {count.get('undecided', 0)} are undecided"
    )


def spread_text(row: Any) -> str:
    """Return a value with the ends of its interval, if there is one, as text."""
    ends = "" if math.isnan(row.low) else f", {row.low:.3f} to {row.high:.3f}"
    return f"{row.value:.3f}{ends}"


CLAIMS_TEXT = (
    "A claim holds if its whole 95% interval is on the claimed side of the limit, does not hold if"
    " the whole interval is on the other side, and is undecided otherwise."
)


def values_at(rows: pd.DataFrame, column: str, alpha: float, recalibrated: bool) -> Floats:
    """Return the values of a measure at one alpha, in the order of the seeds."""
    # sorted by seed, so that differences between alphas are paired
    own = rows[(rows["alpha"] == alpha) & (rows["recalibrated"] == recalibrated)]
    return own.sort_values("seed")[column].to_numpy(dtype=np.float64)


def recalibration_claim(rows: pd.DataFrame, alpha: float) -> Claim:
    """Return the claim that recalibration does not improve adversarial groups."""
    before, after = (values_at(rows, "worst_error", alpha, own) for own in (False, True))
    return Claim(
        f"Recalibration does not improve adversarial groups, alpha {alpha:g}",
        f"worst fifth: error before minus after, at most {NEGLIGIBLE:g}",
        before - after,
        NEGLIGIBLE,
        is_above=False,
    )


def means_with_ends(rows: pd.DataFrame, columns: Sequence[str]) -> Row:
    """Return means of columns, each followed by the ends of its 95% t interval."""
    row: Row = {}
    for name in columns:
        ends = interval(rows[name].to_numpy(dtype=np.float64))
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
    return row


# --- recalibration of forecasts with draws

Map = tuple[Floats, Floats]

LEAST_STEP = 1e-12
"""Distance up to which knots of a map count as one."""


def learn_map(pit: Floats) -> Map:
    """Return levels and values of an isotonic map of PITs of any shape (method: recalibration)."""
    # draws count as rows: one map is learned for all draws. PITs at 0 and 1 are knots of their own
    seen = np.clip(np.sort(pit, axis=None), 2 * LEAST_STEP, 1 - 2 * LEAST_STEP)
    n = seen.size
    # equal steps of probability, and ranks 1, 2, 4, ... in both tails
    n_steps = int(np.clip(round(2 * n**0.4), 2, 200))
    ranks = 2.0 ** np.arange(max(0, int(np.log2((n + 1) / n_steps / 1.5)) + 1)) / (n + 1)
    even = np.arange(1, n_steps) / n_steps
    values = np.concatenate([[0.0], ranks, even, 1 - ranks[::-1], [1.0]])
    shares = np.arange(n + 2) / (n + 1)
    levels = np.interp(values, shares, np.concatenate([[0.0], seen, [1.0]]))
    distinct = np.append(True, np.diff(levels) > LEAST_STEP)
    return levels[distinct], values[distinct]


def apply_map(forecast: Forecast, learned: Map) -> Forecast:
    """Recalibrate a forecast with the map."""
    return Forecast(Recalibrated(forecast.distribution, *learned), forecast.r)


@contextmanager
def known_data() -> Iterator[None]:
    """Leave out warnings about outcomes and features of the studies' data, which are known.

    Outcomes are rounded, and a thousand training rows lack rare values of some features.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreteOutcomeWarning)
        warnings.simplefilter("ignore", UnseenValuesWarning)
        yield


# --- results that are computed in parallel and stored


def compute_rows(
    work: Callable[..., list[Row]],
    tasks: Sequence[Row],
    folder: Path,
    *,
    keep: Sequence[str],
    jobs: int = 1,
    data: Path | None = None,
) -> pd.DataFrame:
    """Compute the rows of each task, or read them if an earlier run stored them.

    Parameters
    ----------
    work : callable
        Module-level function of `data` and of the values of a task as keywords; returns rows.
    tasks : sequence of dict
        Plain values that determine the rows.
    folder : Path
        Folder of the stored rows, a file for each task.
    keep : sequence of str
        Values of the task that are added to its rows.
    jobs : int
        Number of processes.
    data : Path, optional
        Path of the data, which is not part of a task.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # file names are hashes of tasks, so changed settings give new files
    names = [json.dumps([work.__name__, task], sort_keys=True).encode() for task in tasks]
    files = [folder / f"{hashlib.blake2b(name, digest_size=8).hexdigest()}.json" for name in names]
    calls = [
        (work, {"data": data, **task}, file)
        for task, file in zip(tasks, files, strict=True)
        if not file.exists()
    ]
    console = Console(stderr=True)
    with Progress(
        "{task.description}",
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as shown:
        bar = shown.add_task("computing", total=len(files), completed=len(files) - len(calls))
        for _ in _finished(calls, jobs):
            shown.advance(bar)
    return pd.DataFrame(
        [
            {name: task[name] for name in keep} | row
            for task, file in zip(tasks, files, strict=True)
            for row in json.loads(file.read_text(encoding="utf-8"))
        ]
    )


def _finished(calls: Sequence[Any], jobs: int) -> Iterable[None]:
    """Store the rows of each call, and yield whenever one is finished."""
    if jobs == 1 or len(calls) < 2:
        for call in calls:
            _store_rows(*call)
            yield
        return
    # a process each, with one thread: results do not depend on the number of processes
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # not joblib's workers, which restart and warn when their caches grow
    pool = ProcessPoolExecutor(min(jobs, len(calls)), mp_context=get_context("spawn"))
    try:
        for done in as_completed([pool.submit(_store_rows, *call) for call in calls]):
            done.result()
            yield
    finally:
        pool.shutdown(cancel_futures=True)


def _store_rows(work: Callable[..., list[Row]], task: Row, file: Path) -> None:
    _write(file, json.dumps(plain(work(**task))))


def _write(file: Path, text: str) -> None:
    # an interrupted run leaves no half of a file
    partial = file.with_suffix(".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(file)


def plain(values: Any) -> Any:
    """Return values as JSON types: arrays become lists, NaN and infinity become None."""
    if isinstance(values, Mapping):
        return {str(key): plain(value) for key, value in values.items()}
    if isinstance(values, np.ndarray | np.generic):
        return plain(values.tolist())
    if isinstance(values, list | tuple):
        return [plain(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values


# --- pages


@dataclass(frozen=True)
class Exhibit:
    """A figure, a table or both, with a heading and an explanation.

    Parameters
    ----------
    name : str
        Stem of the file names.
    title, text : str
        Heading and explanation on the page.
    table : DataFrame, optional
        Table, written to csv with all digits and shown on the page with four.
    draw : callable, optional
        Function that draws the figure.
    alt : str
        Alternative text of the figure.
    """

    name: str
    title: str
    text: str
    table: pd.DataFrame | None = None
    draw: Callable[[], Figure] | None = None
    alt: str = ""


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body {{ font: 16px sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse }} td, th {{ padding: 0.2rem 0.6rem; text-align: left }}
tr:nth-child(even) {{ background: #f2f2f2 }} img {{ max-width: 100% }}</style></head>
<body><main><h1>{title}</h1><ul>{lead}</ul>{sections}</main></body></html>
"""


def write_study(
    out: Path, title: str, lead: Sequence[str], exhibits: Sequence[Exhibit], results: Row
) -> str:
    """Write `results.json`, tables, figures and `index.html`; return the text to print."""
    out.mkdir(parents=True, exist_ok=True)
    _write(out / "results.json", json.dumps(plain(results), indent=1) + "\n")
    sections = []
    for one in exhibits:
        section = f"<h2>{html.escape(one.title)}</h2><p>{html.escape(one.text)}</p>"
        if one.draw is not None:
            one.draw().savefig(out / f"{one.name}.svg")
            section += f'<img src="{one.name}.svg" alt="{html.escape(one.alt)}">'
        if one.table is not None:
            _write(out / f"{one.name}.csv", one.table.to_csv(index=False))
            section += one.table.to_html(index=False, border=0, float_format="{:.4g}".format)
        sections.append(section)
    items = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in lead)
    page = PAGE.format(title=html.escape(title), lead=items, sections="".join(sections))
    _write(out / "index.html", page)
    return "\n".join([*(f"- {sentence}" for sentence in lead), f"Written to {out}/index.html"])


def new_panels(size: tuple[float, float], rows: int = 1, columns: int = 1, **options: Any) -> Any:
    """Return the axes of a new figure, in inches, shape (rows, columns)."""
    figure = Figure(figsize=size, layout="constrained")
    return figure.subplots(rows, columns, squeeze=False, **options)


def tidy(axes: Axes) -> None:
    """Remove the frame at the top and right, and draw horizontal grid lines."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def plot_dots(axes: Axes, x: Any, y: Any, marker: str, color: str) -> None:
    """Draw one faint dot per repetition."""
    axes.plot(x, y, marker, color=color, alpha=0.25, markersize=3, markeredgewidth=0)


def share_legend(shown: Axes, ncols: int, side: Literal["upper", "lower"] = "upper") -> Figure:
    """Place the legend of one panel outside all panels, and return the figure."""
    figure = shown.get_figure(root=True)
    assert figure is not None
    handles, labels = shown.get_legend_handles_labels()
    loc: Any = f"outside {side} center"
    figure.legend(handles, labels, loc=loc, ncols=ncols, frameon=False)
    return figure
