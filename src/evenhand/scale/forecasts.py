"""`forecast_parts`: forecasts of a table in parts, under keyed draws, written as they are made."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from itertools import chain
from operator import add
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand._files import Partial, link_target
from evenhand._validate import Floats, InputError, bad_input, check_column
from evenhand.columns import UnseenValues
from evenhand.draws import KeyedDraws
from evenhand.forecast import Forecast
from evenhand.links import Link
from evenhand.scale.engine import Advance, over_parts
from evenhand.scale.people import People, Repeated
from evenhand.scale.subjects import Subject, as_subject, refusals
from evenhand.tables import (
    TABLE_ENDINGS,
    Parts,
    TableWriter,
    check_writable,
    id_column,
    open_parts,
    spreadsheet_safe,
    unguarded,
)

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
LIKE_AN_ENDING = re.compile(r"\.[A-Za-z]{2,5}")


@dataclass(frozen=True)
class Written:
    """Summary of the forecasts that were written.

    Parameters
    ----------
    n_rows : int
        Forecasts.
    repeated : Repeated or None
        Ids that come more than once: their rows share a draw.
    skipped : dict of str to str
        Parts that were left out, and why.
    key : str
        Fingerprint of the key, as in each row.
    unseen : UnseenValues
        Values that the forecaster's training table never had.
    """

    n_rows: int
    repeated: Repeated | None
    skipped: dict[str, str]
    key: str
    unseen: UnseenValues


def forecast_parts(
    model: Any,
    table: str | Path | Parts,
    out: str | Path,
    *,
    id_column: str,
    key: bytes,
    context: str = "",
    link: Link | None = None,
    levels: Sequence[float] = LEVELS,
    moments: bool = False,
    client: Any = None,
    skip_bad: bool = False,
    verbose: bool = False,
) -> Written:
    """Forecast each person of a table in parts.

    A person's draw is a keyed hash of the id, whatever the part.

    Parameters
    ----------
    model : forecaster or ColumnSubject
        A fitted forecaster, or the columns that hold the forecasts of another model.
    table : path or Parts
        A folder of parquet or csv parts, or one file.
    out : path
        A csv or parquet file; or, for a folder of parts, a new folder that is given a part for each
        of them. All of it is written, or nothing.
    id_column : str
        Column that names each person: integers or text.
    key : bytes
        Secret of at least 16 bytes.
    context : str, default ""
        The decision that the draws are for, such as a period.
    link : Link, optional
        Randomizes the forecasts of another model; a forecaster is randomized already, or not at
        all.
    levels : sequence of float
        Probabilities of the quantiles that are written.
    moments : bool, default False
        Whether the mean and the standard deviation of the served forecast, randomized at the
        person's draw, are written, as `served_mean` and `served_std`. They take longer to compute
        than all other columns.
    client : distributed.Client, optional
        Of a Dask cluster that works on the parts; `out` is then a folder.
    skip_bad : bool, default False
        Whether to go on without parts that cannot be used.
    verbose : bool, default False
        Whether to show progress on a terminal.

    Returns
    -------
    Written

    Raises
    ------
    InputError
        If a part, column or value cannot be used, with its file and row, or `out` cannot be
        written.

    Notes
    -----
    The column `mean` is the point forecast, which does not depend on the draw: `predict` of a
    forecaster, the mean of another model's forecast.

    Memory stays that of a block of rows and, to tell of ids that come twice, some 100 bytes a row.

    Examples
    --------
    >>> import tempfile
    >>> from evenhand.links import Entropic
    >>> from evenhand.scale import ColumnSubject
    >>> from evenhand.tables import read_table, write_table
    >>> rows = pd.DataFrame({"id": ["a", "b"], "mean": [0.0, 1.0], "std": 1.0})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_table(rows, Path(folder, "in.parquet"))
    ...     options = {"id_column": "id", "key": b"sixteen bytes or more", "link": Entropic(0.1)}
    ...     table, out = Path(folder, "in.parquet"), Path(folder, "out.csv")
    ...     done = forecast_parts(ColumnSubject("mean", "std"), table, out, **options)
    ...     list(read_table(out).columns[:4]), done.n_rows
    (['id', 'r', 'mean', 'q0.05'], 2)
    """
    subject = as_subject(model)
    fingerprint = KeyedDraws(key, context).fingerprint
    parts = table if isinstance(table, Parts) else open_parts(table, skip_bad=skip_bad)
    parts = parts.typed(subject.schema.apply)
    target = check_output(out, parts, is_shared=client is not None, skip_bad=skip_bad)
    source = parts.source
    used = subject.columns(parts.columns, source)
    job = _Job(
        subject,
        check_column(id_column, parts.columns, source),
        tuple(dict.fromkeys((id_column, *used))),
        key,
        context,
        link,
        tuple(levels),
        moments,
    )
    skipped = dict(parts.skipped)
    over = partial(
        over_parts,
        parts=parts,
        client=client,
        skipped=skipped if skip_bad else None,
        verbose=verbose,
        description="forecasting",
    )
    kept = (_to_file if _is_file(target) else _to_folder)(job, over, target)
    people = People.joined([one for one, _ in kept])
    return Written(
        people.row.size,
        people.repeated(parts, id_column),
        dict(sorted(skipped.items())),
        fingerprint,
        reduce(add, (unseen for _, unseen in kept)),
    )


def check_output(out: str | Path, parts: Parts, *, is_shared: bool, skip_bad: bool) -> Path:
    """Return the path if it could be written to: a file, or a new folder with as many parts.

    Call before long work.
    """
    target = Path(out)
    if is_shared and not parts.is_folder:
        rule = "be a folder of parts for workers to share"
        raise bad_input(parts.source, rule, "one file", "leave the workers out")
    if _is_file(target):
        if is_shared or skip_bad:
            # bytes in a file cannot be taken back, a part of a folder can
            why = "a bad part may be noticed when half is written"
            why = "workers write parts of their own" if is_shared else why
            raise bad_input(str(target), "be a folder here", "a file", f"{why}: name a new folder")
        return check_writable(target, TABLE_ENDINGS)
    # a name like `out.txt` is meant as a file, of an ending that cannot be written
    if not parts.is_folder or (LIKE_AN_ENDING.fullmatch(target.suffix) and not target.is_dir()):
        return check_writable(target, TABLE_ENDINGS)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        there = "something that is there already"
        raise bad_input(str(target), "be a new folder", there, "name another")
    parent = link_target(target).parent
    if not os.access(parent, os.W_OK):
        rule = "lie in an existing folder that can be written to"
        raise bad_input(str(target), rule, str(parent), "name another")
    return target


def _is_file(target: Path) -> bool:
    return target.name.lower().endswith(TABLE_ENDINGS)


Kept = tuple[People, UnseenValues]
"""Of a block that is written: who it is about, and values that training never had."""


@dataclass(frozen=True)
class _Job:
    """What forecasting a part takes: it goes to every worker."""

    subject: Subject
    id_column: str
    columns: tuple[str, ...]
    key: bytes = field(repr=False)
    context: str
    link: Link | None
    levels: tuple[float, ...]
    moments: bool = False

    def blocks(self, parts: Parts, i: int, advance: Advance) -> Iterator[tuple[pd.DataFrame, Kept]]:
        """Yield the forecasts of each block of a part, and what is kept of it."""
        draws = KeyedDraws(self.key, self.context)
        source = parts.names[i]
        column = f"{source}: column {self.id_column!r}"
        for start, table in parts.blocks(i, self.columns):
            ids = id_column(table, self.id_column, source=source, start=start)
            _warn_of_guarded(ids, column, start)
            r = draws(ids)
            forecaster, X = self.subject.of(table, source, start)
            with refusals(source, start, start + len(table) - 1):
                forecast, mean = self._forecast(forecaster, X, r)
            # with each row what, besides the id, its draw is made of: it can then be made again
            made = self._columns(r, mean, forecast)
            made |= {"context": self.context, "key": draws.fingerprint}
            if self.id_column in made:
                raise InputError(
                    f"id column {self.id_column!r} clashes with an output column of the same name;"
                    " rename it"
                )
            kept = People.of(ids, i, start), UnseenValues.of(self.subject.schema, table)
            yield pd.DataFrame({self.id_column: ids} | made), kept
            advance(len(table))

    def _forecast(
        self, forecaster: Any, X: pd.DataFrame | None, r: Floats
    ) -> tuple[Forecast, Floats]:
        """Return the forecasts under the draws, and the means that do not depend on a draw."""
        if X is not None:
            both: tuple[Forecast, Floats] = forecaster.forecast_and_predict(X, r)
            return both
        stated: Forecast = forecaster
        served = stated if self.link is None else stated.randomized(self.link.alpha, self.link, r)
        # a draw must not move a point forecast: the mean is that of the base
        return served, stated.mean()

    def _columns(self, r: Floats, mean: Floats, forecast: Forecast) -> dict[str, Any]:
        """Return the draws, means, quantiles and, if asked for, served moments."""
        quantiles = forecast.ppf(self.levels)
        columns: dict[str, Any] = {"r": r, "mean": mean}
        columns |= {f"q{level}": quantiles[:, i] for i, level in enumerate(self.levels)}
        if self.moments:
            columns |= {"served_mean": forecast.mean(), "served_std": forecast.std()}
        return columns


def _to_file(job: _Job, over: Callable[..., Any], target: Path) -> list[Kept]:
    with TableWriter(target) as writer:
        # a function within another reaches no worker; one file has none (`check_output`)
        def write(job: _Job, parts: Parts, i: int, advance: Advance) -> list[Kept]:
            return [_written(writer, *block) for block in job.blocks(parts, i, advance)]

        return [one for _, kept in over(write, job) for one in kept]


def _to_folder(job: _Job, over: Callable[..., Any], target: Path) -> list[Kept]:
    # all or nothing: parts are written to a hidden folder, which gets its name in the end
    hidden = Partial(link_target(target), is_folder=True)
    try:
        found = [one for _, kept in over(_write_part, (job, hidden.path)) for one in kept]
        for half in hidden.path.glob(".*"):  # of a worker that died as it wrote
            half.unlink()
        hidden.commit()
    except BaseException:
        hidden.discard()
        raise
    return found


def _write_part(shared: tuple[_Job, Path], parts: Parts, i: int, advance: Advance) -> list[Kept]:
    job, folder = shared
    blocks = job.blocks(parts, i, advance)
    # a file has the columns of its blocks: a part without rows makes none
    first = next(blocks, None)
    if first is None:
        return []
    with TableWriter(folder / parts.names[i]) as writer:
        return [_written(writer, *block) for block in chain([first], blocks)]


def _written(writer: TableWriter, table: pd.DataFrame, kept: Kept) -> Kept:
    # a spreadsheet would run text that begins with = or @ as a formula; parquet is for programs
    is_parquet = writer.path.name.lower().endswith(".parquet")
    writer.write(table if is_parquet else spreadsheet_safe(table))
    return kept


def _warn_of_guarded(ids: Sequence[str | int], column: str, start: int) -> None:
    # an id that went through a csv of ours would get another draw than the person had
    for row, value in enumerate(ids, start=start + 1):
        if (
            isinstance(value, str)
            and value.startswith("'")
            and (original := unguarded(value)) != value
        ):
            warnings.warn(
                f"{column}, row {row}: {value!r} is how csv files of evenhand write {original!r};"
                " it is taken as it is and has another draw: remove the apostrophe if it was"
                " added",
                stacklevel=2,
            )
            return
