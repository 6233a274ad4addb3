"""Execution over the parts of a table, in this process or on the workers of a Dask cluster."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, TypeVar

from evenhand._progress import part_progress
from evenhand._validate import InputError, check_count, require_extra
from evenhand.tables import Evidence, Parts, Schema, found_schema

Result = TypeVar("Result")
Advance = Callable[[int], None]
Work = Callable[[Any, Parts, int, Advance], Result]
"""Function of the shared data, the parts, the number of a part and `advance(rows)`."""

CONNECT_SECONDS = 15
KEEP_INTERVAL = "2s"
"""Time to wait for a scheduler, and interval between checks for dead local workers."""

FETCH_SECONDS = 60
MOST_LOSSES = 5
"""Time limit for the transfer of a result, and number of repetitions of a part whose result is
lost."""


@contextmanager
def dask_client(workers: int | str | None = None) -> Iterator[Any]:
    """Yield a Dask client of a running scheduler or of new local workers, or None.

    Parameters
    ----------
    workers : int or str, optional
        Number of local processes to start, each with one thread. Or the address of a scheduler,
        such as `tcp://10.0.0.1:8786`, or `tls://...` with the certificates in Dask's configuration.
        Scheduler and workers have access to the model, the data and, for forecasts, the key of the
        draws.

    Yields
    ------
    distributed.Client or None

    Raises
    ------
    InputError
        If no scheduler answers at the address.

    Examples
    --------
    >>> with dask_client() as client:
    ...     client is None
    True
    """
    if workers is None:
        yield None
        return
    distributed = require_extra("distributed", "scale")
    if not isinstance(workers, str):
        with _local_client(check_count("workers", workers)) as client:
            # the nanny of a worker that dies during its start does not restart it
            client.cluster.adapt(minimum=workers, maximum=workers, interval=KEEP_INTERVAL)
            yield client
        return
    try:
        client = distributed.Client(workers, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(
            f"no Dask scheduler answers at {workers!r}; check the address, or start one with:"
            " dask scheduler"
        ) from error
    with client:
        yield client


def _local_client(workers: int) -> Any:
    """Return the client of new local workers that reuse the memory of one block for the next."""
    config = require_extra("dask.config", "scale")
    distributed = require_extra("distributed", "scale")
    key = "distributed.nanny.pre-spawn-environ"
    # by default Dask returns memory at once, which costs a page fault for each page of an array
    environment = {
        name: value for name, value in config.get(key).items() if name != "MALLOC_TRIM_THRESHOLD_"
    }
    with config.set({key: environment}):
        return distributed.Client(
            n_workers=workers,
            # Python code holds the interpreter lock, so threads of one process would wait
            threads_per_worker=1,
            processes=True,
            # local only: the dashboard shows data of the workers
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        )


def over_parts(
    work: Work[Result],
    shared: Any,
    parts: Parts,
    *,
    description: str,
    numbers: Sequence[int] | None = None,
    client: Any = None,
    skipped: dict[str, str] | None = None,
    verbose: bool = False,
) -> Iterator[tuple[int, Result]]:
    """Apply a function to each part; yield part numbers and results in the order of completion.

    Parameters
    ----------
    work : callable
        `work(shared, parts, i, advance)` processes part `i` and reports finished rows by
        `advance(rows)`. It must be a module-level function, because workers are other processes.
    shared : object
        Data that all parts need, such as the model.
    parts : Parts
        The table. Workers of a cluster open its files by the same paths.
    description : str
        Label of the progress bar.
    numbers : sequence of int, optional
        Parts to process; all by default.
    client : distributed.Client, optional
        Client of a Dask cluster. Results of workers that die are computed again.
    skipped : dict of str to str, optional
        If given, parts that fail with an InputError are added to it, with the reason, and the other
        parts are processed. By default the error is raised.
    verbose : bool, default False
        Whether to show a progress bar on a terminal.
    """
    chosen = list(range(len(parts)) if numbers is None else numbers)
    n_bad = 0
    rows = [parts.n_rows(i) for i in chosen]
    total = None if None in rows else sum(n for n in rows if n is not None)
    with part_progress(description, len(chosen), total, enabled=verbose) as advance:
        attempts: Generator[tuple[int, Any]]
        if client is None:
            attempts = (
                (i, _attempt(work, shared, parts, i, lambda rows: advance(rows, 0))) for i in chosen
            )
        else:
            attempts = _attempts(work, shared, parts, chosen, client)
        with closing(attempts):  # an error cancels all other tasks at once
            for i, result in attempts:
                # in this process `work` has already reported its rows
                advance(0 if client is None else parts.n_rows(i) or 0, 1)
                if not isinstance(result, InputError):
                    yield i, result
                elif skipped is None:
                    raise result
                else:
                    skipped[parts.names[i]] = str(result)
                    n_bad += 1
    if skipped is not None and n_bad == len(chosen):
        first = skipped[parts.names[chosen[0]]]
        raise InputError(
            f"{parts.source}: no part can be used ({n_bad} tried); the first error: {first}"
        )


def _attempts(
    work: Work[Any], shared: Any, parts: Parts, chosen: list[int], client: Any
) -> Generator[tuple[int, Any]]:
    """Process the parts on a cluster; yield results or input errors in the order of completion."""
    distributed = require_extra("distributed", "scale")
    # workers may run in another working directory
    seen = replace(parts, paths=tuple(path.absolute() for path in parts.paths))
    with warnings.catch_warnings():
        # the warning advises to send large data once, as it is done here
        warnings.filterwarnings("ignore", "Sending large graph")
        # a task instead of scattered data: the scheduler recomputes it if its worker dies
        held = client.submit(_same, (shared, seen), pure=False)
    running: dict[Any, int] = {}

    def begin(i: int) -> Any:
        # not pure: an earlier result of the same key may have been lost with its worker
        future = client.submit(_remotely, work, held, i, pure=False)
        running[future] = i
        return future

    def results(numbers: Sequence[int]) -> Generator[tuple[int, Any]]:
        losses = Counter[int]()
        done = distributed.as_completed([begin(i) for i in numbers])
        for future in done:
            i = running.pop(future)
            if future.status == "cancelled":
                raise InputError(
                    "the connection to the Dask scheduler was lost, with all results; start again"
                )
            is_error = future.status == "error"
            try:
                # an error of the work itself is raised here at once and is not repeated. A large
                # result may take longer to arrive, so each attempt has twice the time
                result = future.result(timeout=None if is_error else FETCH_SECONDS * 2 ** losses[i])
            except distributed.KilledWorker:
                yield (
                    i,
                    _WorkersDied(
                        f"{parts.names[i]}: several workers died one after the other while they"
                        " processed this part; give workers more memory, or split the part"
                    ),
                )
            except TimeoutError:
                if is_error or losses[i] == MOST_LOSSES:
                    raise
                losses[i] += 1  # the worker with the result died, or the transfer takes longer
                done.add(begin(i))
            else:
                yield i, result
            future.release()  # otherwise workers would keep the results of all parts

    try:
        suspects = []
        for i, result in results(chosen):
            if isinstance(result, _WorkersDied):
                suspects.append(i)
            else:
                yield i, result
        # repeat each part alone: another part may have killed its worker
        for i in suspects:
            yield from results([i])
    finally:
        client.cancel([*running, held])


class _WorkersDied(InputError):
    """Several workers died one after the other while they processed a part."""


def _same(value: Any) -> Any:
    return value


def _remotely(work: Work[Any], held: tuple[Any, Parts], i: int) -> Any:
    shared, parts = held
    if not parts.paths[i].exists():
        return InputError(
            f"{parts.paths[i]} does not exist on a worker; store the table where all workers can"
            " open it by the same path"
        )
    return _attempt(work, shared, parts, i, lambda rows: None)


def _attempt(work: Work[Any], shared: Any, parts: Parts, i: int, advance: Advance) -> Any:
    try:
        return work(shared, parts, i, advance)
    except InputError as error:
        return error


# --- types of the columns of a table in parts, from a model's schema or from all parts


def typed_parts(
    over: Callable[..., Any],
    parts: Parts,
    columns: Sequence[str],
    schema: Schema,
    skipped: dict[str, str] | None,
) -> Parts:
    """Return the parts with typed columns, by a model's schema or else by all csv parts together.

    A part with text in a column of numbers or dates in most parts is refused, or added to
    `skipped`.
    """
    unknown = tuple(name for name in columns if name not in schema)
    # parquet parts have types, but csv cells are text: one part may contain integers and another
    # words, so only all parts together determine the type of a column
    if not unknown or all(count is not None for count in parts.counts):
        return parts.typed(schema.apply)
    found: dict[int, dict[str, Evidence]] = dict(
        over(look_at_part, unknown, description="reading types")
    )
    for name in unknown:
        kinds = Counter(one[name].kind for one in found.values() if one[name].counts["values"])
        kind = "date" if kinds["date"] > kinds["number"] else "number"
        # without a majority of numbers the column is text, and its numbers are codes
        is_typed = 2 * (kinds["number"] + kinds["date"]) > len(found)
        for i in [i for i in sorted(found) if is_typed and found[i][name].kind == "category"]:
            error = _misfit(parts.names[i], name, kind, found[i][name])
            if skipped is None:
                raise error
            skipped[parts.names[i]] = str(error)
            del found[i]
    total = {
        name: reduce(add, (one[name] for one in found.values()), Evidence()) for name in unknown
    }
    return parts.typed(schema.with_others(found_schema(total)).apply)


def look_at_part(
    columns: tuple[str, ...], parts: Parts, i: int, advance: Advance
) -> dict[str, Evidence]:
    """Count the cells of some columns of one part by type."""
    found = dict.fromkeys(columns, Evidence())
    is_csv = parts.n_rows(i) is None
    for start, block in parts.blocks(i, columns):
        for name in columns:
            values = block[name]
            found[name] += Evidence.of_text(values, start) if is_csv else Evidence.of_typed(values)
        advance(len(block))
    return found


def _misfit(source: str, name: str, kind: str, found: Evidence) -> InputError:
    if kind not in found.odd:  # a column of text in parquet
        return InputError(f"{source}: column {name!r} contains text, unlike most parts; correct it")
    row, value = found.odd[kind]
    return InputError(
        f"{source}: column {name!r}, row {row + 1}: {value!r} is not a {kind} as in most parts;"
        " correct it or drop the row"
    )
