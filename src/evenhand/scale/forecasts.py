"""Forecasts of tables in parts with keyed draws, written block by block."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import add
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from evenhand._files import Partial, check_folder, link_target
from evenhand._validate import Floats, InputError, check_column, counted_from
from evenhand.distributions import Categorical, OutcomeKind, as_hurdle, curve_times, found_inside
from evenhand.draws import KeyedDraws
from evenhand.forecast import Forecast
from evenhand.scale.engine import over_parts, typed_parts
from evenhand.scale.rows import People, Repeated, Subject, as_subject, first_forecast, refusals
from evenhand.tables import (
    TABLE_ENDINGS,
    Parts,
    TableWriter,
    UnseenValues,
    check_writable,
    id_column,
    open_parts,
    unguarded,
)

# --- columns in which forecasts are written, by kind of outcome

SURVIVAL = "survival_"
"""Prefix of columns with survival probabilities; their names end in the time."""


def served_columns(
    forecast: Forecast, mean: Floats, levels: Sequence[float], *, moments: bool, counts: int
) -> dict[str, Any]:
    """Return the columns of written forecasts, which have at most one draw each.

    For a 0/1 outcome only `probability`: its quantiles are 0 or 1, and no draw changes it. For
    other outcomes draws, means, which do not depend on a draw, and quantiles; for amounts with
    zeros the probability of the zero before them, `chance_of_zero`. Quantiles of whole numbers are
    integers. Without draws, scores and as many `counts` from 0 have the probability of each value
    too, such as `p1` to `p5`, and amounts the quantiles of the outcomes above 0, such as
    `positive_q0.5`: an audit can read them again. Forecasts of times have survival probabilities,
    such as `survival_30`: at the times of survival curves up to the horizon, if there is one, and
    at the horizon. With `moments`, mean and standard deviation of the served forecasts follow.
    """
    kind = forecast.outcome_kind
    if kind is OutcomeKind.BINARY:
        return {"probability": forecast.event_probability()}
    r, times = forecast.r, survival_times(forecast)
    columns: dict[str, Any] = {} if r is None else {"r": r}
    # an atom at the high end is a horizon, whose probability is among those of survival
    has_zeros = kind is OutcomeKind.HURDLE and not times
    if has_zeros:
        columns["chance_of_zero"] = 1 - forecast.event_probability()
    columns["mean"] = mean
    quantiles = forecast.ppf(levels)
    scores = found_inside(forecast.distribution, Categorical)
    is_whole = scores is None or (scores.support == np.round(scores.support)).all()
    if kind is OutcomeKind.COUNT and is_whole:
        quantiles = quantiles.astype(np.int64)
    columns |= {f"q{level}": quantiles[:, i] for i, level in enumerate(levels)}
    if r is None:
        rows = np.ones(forecast.n_samples)
        values = _support(forecast) or range(counts)
        columns |= {f"p{v:.15g}": np.exp(forecast.log_mass(v * rows)) for v in values}
    # with all digits: 1 less a probability that is next to 1 would lose them
    survival = {f"{SURVIVAL}{t:.15g}": forecast.distribution.sf(t) for t in times}
    if survival and kind is OutcomeKind.HURDLE:  # beyond the horizon is its atom
        survival |= {[*survival][-1]: 1 - forecast.event_probability()}
    columns |= survival
    if r is None and has_zeros:
        above = forecast.positive_part().ppf(levels)
        columns |= {f"positive_q{level}": above[:, i] for i, level in enumerate(levels)}
    if moments:
        columns |= {"served_mean": forecast.mean(), "served_std": forecast.std()}
    return columns


def survival_times(forecast: Forecast) -> list[float]:
    """Return the times at which survival probabilities are written; none for other outcomes.

    Examples
    --------
    >>> survival_times(Forecast.from_survival([1, 2, 5], [[0.9, 0.7, 0.4]], horizon=3))
    [1.0, 2.0, 3.0]
    """
    times = curve_times(forecast.distribution)
    if forecast.outcome_kind is not OutcomeKind.HURDLE:
        return times
    hurdle = as_hurdle(forecast.distribution)
    if hurdle.end == "low":
        return []
    return [*(time for time in times if time < hurdle.at), hurdle.at]


def text_of_written(forecast: Forecast, counts: int) -> str | None:
    """Return the text of `--forecast` for the columns of forecasts without draws.

    None for counts without their probabilities, which an audit cannot read.

    Examples
    --------
    >>> text_of_written(Forecast.from_poisson([2.0]), counts=9)
    'pmf=p'
    """
    kind = forecast.outcome_kind
    if kind is OutcomeKind.COUNT and not counts and _support(forecast) is None:
        return None
    if survival_times(forecast):
        return f"survival={SURVIVAL}"
    return {
        OutcomeKind.BINARY: "probability=probability",
        OutcomeKind.COUNT: "pmf=p",
        OutcomeKind.HURDLE: "chance_of_zero=chance_of_zero,quantiles=positive_q",
        OutcomeKind.CONTINUOUS: "quantiles=q",
    }[kind]


def _support(forecast: Forecast) -> list[float] | None:
    """Return the values of scores that are those of all rows; None for other outcomes."""
    scores = found_inside(forecast.distribution, Categorical)
    return None if scores is None or np.ndim(scores.support) != 1 else scores.support.tolist()


# --- writing of forecasts, block by block

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
MOST_COUNTS = 1000
"""Largest number of counts whose probabilities are written; an audit reads the model instead."""

LIKE_AN_ENDING = re.compile(r"\.[A-Za-z]{2,5}")


class Recorder(Protocol):
    """Record of forecasts, such as a decision log, that is made before they are written."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the table that are recorded or needed for it."""

    def __call__(self, ids: Sequence[str | int], rows: pd.DataFrame) -> dict[str, Any]:
        """Record the forecasts of people with these rows of `columns`.

        Returns columns that are written after the others, or in place of those of the same name.
        """


@dataclass(frozen=True)
class Written:
    """Summary of the written forecasts.

    Parameters
    ----------
    n_rows : int
        Number of forecasts.
    repeated : Repeated or None
        Repeated ids, whose rows share a draw.
    skipped : dict of str to str
        Skipped parts, with the reason.
    key : str or None
        Fingerprint of the key, as in each row; None without draws.
    unseen : UnseenValues
        Values that are absent from the forecaster's training table.
    forecast : str or None
        Text of `--forecast` with which an audit reads what was written; None if it cannot.
    """

    n_rows: int
    repeated: Repeated | None
    skipped: dict[str, str]
    key: str | None
    unseen: UnseenValues
    forecast: str | None


def forecast_parts(
    model: Any,
    table: str | Path | Parts,
    out: str | Path,
    *,
    id_column: str | None = None,
    key: bytes | None = None,
    context: str = "",
    levels: Sequence[float] = LEVELS,
    moments: bool = False,
    keep: Sequence[str] = (),
    client: Any = None,
    skip_bad: bool = False,
    verbose: bool = False,
    recorder: Recorder | None = None,
    first: Forecast | None = None,
) -> Written:
    """Forecast each person in a table in parts, with keyed draws.

    A person's draw is a keyed hash of the id and does not depend on the part.

    Parameters
    ----------
    model : forecaster or ForecastColumns
        A fitted forecaster, or the columns that contain the forecasts of another model.
    table : path or Parts
        A folder of parquet or csv parts, or one file.
    out : path
        A csv or parquet file; or, for a folder of parts, a new folder, to which one part is written
        for each part of the table. Either the whole output is written, or nothing.
    id_column : str, optional
        Column with the id of each person: integers or text. Draws and records need it.
    key : bytes, optional
        Secret key of at least 16 bytes; None for a deterministic forecaster, whose forecasts are
        written without the columns `r`, `context` and `key`.
    context : str, default ""
        Name of the decision that the draws are for, such as a period.
    levels : sequence of float
        Levels of the quantiles to write.
    moments : bool, default False
        Whether to write mean and standard deviation of the served forecast, which is randomized
        with the person's draw, as `served_mean` and `served_std`. They take longer to compute than
        all other columns.
    keep : sequence of str
        Columns of the table that are written too, after the id.
    client : distributed.Client, optional
        Client of a Dask cluster; `out` must then be a folder.
    skip_bad : bool, default False
        Whether to skip parts that cannot be read.
    verbose : bool, default False
        Whether to show progress on a terminal.
    recorder : Recorder, optional
        Record of the forecasts of each block, made before the block is written; not with `client`.
    first : Forecast, optional
        Output of `first_forecast` for this table; it is computed if needed.

    Returns
    -------
    Written

    Raises
    ------
    InputError
        If a part, column or value cannot be read, with file and row, or `out` cannot be written.

    Notes
    -----
    The column `mean` is the point forecast, which does not depend on the draw.

    The memory needed is that of a block of rows, and about 100 bytes per row to find repeated ids.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.forecast_columns import ForecastColumns
    >>> from evenhand.tables.files import read_table, write_table
    >>> rows = pd.DataFrame({"id": ["a", "b"], "mean": [0.0, 1.0], "std": 1.0})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(rows, Path(folder, "in.parquet"))
    ...     table, out = Path(folder, "in.parquet"), Path(folder, "out.csv")
    ...     done = forecast_parts(ForecastColumns("mean", "std"), table, out, id_column="id")
    ...     list(read_table(out).columns[:3]), done.n_rows
    (['id', 'mean', 'q0.05'], 2)
    """
    subject = as_subject(model)
    parts = table if isinstance(table, Parts) else open_parts(table, skip_bad=skip_bad)
    parts = parts.typed(subject.schema.apply)
    target = check_output(out, parts, is_shared=client is not None, skip_bad=skip_bad)
    used = subject.columns(parts.columns, parts.source)
    ids = () if id_column is None else (id_column,)
    kept = tuple(dict.fromkeys(name for name in keep if name not in ids))
    recorded = () if recorder is None else recorder.columns
    columns = tuple(dict.fromkeys((*ids, *used, *kept, *recorded)))
    for name in columns:
        check_column(name, parts.columns, parts.source)
    job = ForecastJob(subject, ids, columns, key, context, tuple(levels), moments, kept, recorder)
    skipped = dict(parts.skipped)
    over = partial(
        over_parts,
        parts=parts,
        client=client,
        skipped=skipped if skip_bad else None,
        verbose=verbose,
        description="forecasting",
    )
    if recorder is not None:
        # columns of groups that the model does not use have the types of all parts
        over = partial(over, parts=typed_parts(over, parts, recorded, subject.schema))
    if key is not None:
        first = None
    elif first is None:
        first = first_forecast(subject, parts)
    is_counted = first is not None and first.outcome_kind is OutcomeKind.COUNT
    if first is not None and is_counted and _support(first) is None and recorder is None:
        # all parts have the same columns, with room for larger counts than are expected
        n = 2 * int(max((largest for _, largest in over(_largest_count, job)), default=0)) + 1
        job = replace(job, counts=n if n <= MOST_COUNTS else 0)
    written = _write(job, over, target)
    people = People.joined([one for one, _ in written])
    return Written(
        len(people.rows),
        None if id_column is None else people.repeated(parts, id_column),
        dict(sorted(skipped.items())),
        None if key is None else KeyedDraws(key, context).fingerprint,
        reduce(add, (unseen for _, unseen in written)),
        None if first is None else text_of_written(first, job.counts),
    )


def check_output(out: str | Path, parts: Parts, *, is_shared: bool, skip_bad: bool) -> Path:
    """Check before long work that an output file, or a new folder of parts, can be written."""
    target = Path(out)
    if is_shared and not parts.is_folder:
        raise InputError(
            f"{parts.source} is one file, but workers need a folder of parts; run without workers"
        )
    is_file = target.name.lower().endswith(TABLE_ENDINGS)
    # a name such as `out.txt` is meant to be a file, with an ending that is not supported
    is_named = LIKE_AN_ENDING.fullmatch(target.suffix) and not target.is_dir()
    if is_file and (is_shared or skip_bad):
        # a part of a folder can be discarded, but not rows of a file
        late = "a bad part may be found after half of it is written"
        why = "each worker writes its own parts" if is_shared else late
        raise InputError(
            f"{target} is a file, but a folder is needed here because {why}; name a new folder"
        )
    if is_file or is_named or not parts.is_folder:
        return check_writable(target, TABLE_ENDINGS)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} already exists and is not an empty folder; name a new folder")
    return check_folder(target)


Kept = tuple[People, UnseenValues]
"""People and unseen values of a written block."""


@dataclass(frozen=True)
class ForecastJob:
    """Forecasting task, which is sent to all workers."""

    subject: Subject
    ids: tuple[str, ...]
    columns: tuple[str, ...]
    key: bytes | None = field(repr=False)
    context: str
    levels: tuple[float, ...]
    moments: bool = False
    keep: tuple[str, ...] = ()
    recorder: Recorder | None = None
    counts: int = 0

    def forecast(
        self, table: pd.DataFrame, source: str, start: int, r: Floats | None = None
    ) -> tuple[Forecast, Floats]:
        """Return forecasts of a block with the draws, and the means, which do not depend on them.

        `start` is the number of the first row within the part `source`.
        """
        model: Any = getattr(self.subject, "forecaster", self.subject)
        X = table[self.subject.columns(table.columns, source)]
        with refusals(source, start):
            return model.forecast_and_predict(X, r)

    def blocks(self, parts: Parts, i: int) -> Iterator[tuple[pd.DataFrame, Kept]]:
        """Yield the forecasts of each block of a part, with its people and unseen values."""
        draws = None if self.key is None else KeyedDraws(self.key, self.context)
        source = parts.names[i]
        for start, table in parts.blocks(i, self.columns):
            # rows without ids are numbered
            ids: Sequence[str | int] = range(start, start + len(table))
            for name in self.ids:
                with counted_from(start):
                    ids = id_column(table, name, source=source)
                _warn_of_guarded(ids, f"{source}: column {name!r}", start)
            r = None if draws is None else draws(ids)
            forecast, mean = self.forecast(table, source, start, r)
            if draws is None and forecast.is_randomized:
                raise InputError(f"{source}: the forecasts depend on draws, which need a key")
            made = served_columns(
                forecast, mean, self.levels, moments=self.moments, counts=self.counts
            )
            # context and key fingerprint of each row, so that its draw can be reproduced
            if draws is not None and forecast.is_randomized:
                made |= {"context": self.context, "key": draws.fingerprint}
            if self.recorder is not None:
                with refusals(source, start):
                    recorded = self.recorder(ids, table[list(self.recorder.columns)])
                # counts, for example, remain integers
                for name in made.keys() & recorded.keys():
                    recorded[name] = np.asarray(recorded[name], np.asarray(made[name]).dtype)
                made |= recorded
            for name in (*self.ids, *self.keep):
                if name in made:
                    role = "id" if name in self.ids else "kept"
                    raise InputError(
                        f"{role} column {name!r} clashes with an output column of the same name;"
                        " rename it"
                    )
            copied: dict[str, Any] = dict.fromkeys(self.ids, ids)
            copied |= {name: table[name].to_numpy() for name in self.keep}
            kept = People.of(ids, i, start), UnseenValues.of(self.subject.schema, table)
            yield pd.DataFrame(copied | made), kept


def _largest_count(job: ForecastJob, parts: Parts, i: int) -> float:
    """Return the largest count that any row of a part expects."""
    largest = 0.0
    for start, table in parts.blocks(i, job.columns):
        forecast, _ = job.forecast(table, parts.names[i], start)
        largest = max(largest, float(forecast.ppf(1 - 1e-9).max()))
    return largest


def _write(job: ForecastJob, over: Callable[..., Any], target: Path) -> list[Kept]:
    """Write all or nothing: a file, or parts to a hidden folder, which is renamed at the end."""
    if target.name.lower().endswith(TABLE_ENDINGS):
        # a writer cannot be sent to workers, but a file has none (`check_output`)
        with TableWriter(target) as writer:
            return [one for _, kept in over(_write_part, (job, writer)) for one in kept]
    folder = link_target(target)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with Partial(folder, is_folder=True) as hidden:
        found = [one for _, kept in over(_write_part, (job, hidden.path)) for one in kept]
        # left by workers that died while writing, or of a part that is written once more, as the
        # worker that had its result died: that one may be gone by now
        for half in hidden.path.glob(".*"):
            half.unlink(missing_ok=True)
    return found


def _write_part(shared: tuple[ForecastJob, TableWriter | Path], parts: Parts, i: int) -> list[Kept]:
    job, out = shared
    with TableWriter(out / parts.names[i]) if isinstance(out, Path) else nullcontext(out) as writer:
        found = []
        for table, kept in job.blocks(parts, i):
            writer.write(table)
            found.append(kept)
        return found


def _warn_of_guarded(ids: Sequence[str | int], column: str, start: int) -> None:
    # an id read from a csv file written by evenhand would get a different draw than the original id
    for row, value in enumerate(ids, start=start + 1):
        if isinstance(value, str) and unguarded(value) != value:
            warnings.warn(
                f"{column}, row {row}: {value!r} may be {unguarded(value)!r} with the apostrophe"
                " that evenhand adds in csv files, and has a different draw; remove the apostrophe"
                " if it was added",
                stacklevel=2,
            )
            return
