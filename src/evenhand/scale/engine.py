"""Execution over the parts of a table, in this process or on the workers of a Dask cluster."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, TypeVar

from evenhand._progress import progress
from evenhand._validate import InputError, check_count, require_extra
from evenhand.tables import Parts, Schema, cells_of_text, cells_of_type, found_columns

Result = TypeVar("Result")
Work = Callable[[Any, Parts, int], Result]
"""Function of the shared data, the parts and the number of a part."""

CONNECT_SECONDS = 15
KEEP_INTERVAL = "2s"
"""Time to wait for a scheduler, and interval between checks for dead local workers."""


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
    config = require_extra("dask.config", "scale")
    if isinstance(workers, str):
        try:
            client = distributed.Client(workers, timeout=CONNECT_SECONDS)
        except (OSError, TimeoutError, ValueError) as error:
            raise InputError(
                f"no Dask scheduler answers at {workers!r}; check the address, or start one with:"
                " dask scheduler"
            ) from error
    else:
        check_count("workers", workers)
        key = "distributed.nanny.pre-spawn-environ"
        # by default Dask returns memory at once: a page fault for each page of the next block
        environment = {k: v for k, v in config.get(key).items() if k != "MALLOC_TRIM_THRESHOLD_"}
        with config.set({key: environment}):
            # one thread each, as Python code holds the interpreter lock; the dashboard, which shows
            # data of the workers, is local only
            local = {"dashboard_address": "127.0.0.1:0", "silence_logs": 50, "processes": True}
            client = distributed.Client(n_workers=workers, threads_per_worker=1, **local)
        # the nanny of a worker that dies during its start does not restart it
        client.cluster.adapt(minimum=workers, maximum=workers, interval=KEEP_INTERVAL)
    with client:
        yield client


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

    `work(shared, parts, i)` must be a module-level function, because workers are other processes.
    They open the files by the same paths, and results of workers that die are computed again.
    `numbers` are the parts to process, all by default. Parts that fail with an InputError are added
    to `skipped`, with the reason; without it the error is raised.
    """
    chosen = list(range(len(parts)) if numbers is None else numbers)
    rows = [parts.counts[i] for i in chosen]
    by_rows = None not in rows
    total = sum(filter(None, rows)) if by_rows else len(chosen)
    done = 0
    with progress(description, total, enabled=verbose) as show:

        def advance(n: int) -> None:
            nonlocal done
            done += n
            show(done, "rows" if by_rows else "parts")

        attempts: Generator[tuple[int, Any]]
        if client is None:
            here = replace(parts, advance=advance) if by_rows else parts
            attempts = ((i, _attempt(work, (shared, here), i)) for i in chosen)
        else:
            attempts = _attempts(work, shared, parts, chosen, client)
        with closing(attempts):  # an error cancels all other tasks at once
            for i, result in attempts:
                if client is not None or not by_rows:
                    # in this process blocks have already reported their rows
                    advance(parts.counts[i] or 0 if by_rows else 1)
                if not isinstance(result, InputError):
                    yield i, result
                elif skipped is None:
                    raise result
                else:
                    skipped[parts.names[i]] = str(result)
    if skipped and all(parts.names[i] in skipped for i in chosen):
        raise InputError(
            f"{parts.source}: no part can be used ({len(chosen)} tried); the first error:"
            f" {skipped[parts.names[chosen[0]]]}"
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
        held = client.submit(tuple, (shared, seen), pure=False)
    suspects: list[int] = []
    futures: dict[Any, int] = {}
    try:
        # suspects are repeated each alone: another part may have killed their worker
        for numbers in chain([chosen], ([i] for i in suspects)):
            # not pure: an earlier result of the same key may have been lost with its worker
            futures = {client.submit(_attempt, work, held, i, pure=False): i for i in numbers}
            for future in distributed.as_completed(list(futures)):
                i = futures.pop(future)
                try:
                    # computed again if the worker with the result has died
                    result = future.result()
                except distributed.KilledWorker:
                    if numbers is chosen:
                        suspects.append(i)
                        continue
                    result = InputError(
                        f"{parts.names[i]}: several workers died one after the other while they"
                        " processed this part; give workers more memory, or split the part"
                    )
                except distributed.CancelledError:
                    raise InputError(
                        "the connection to the Dask scheduler was lost, with all results; start"
                        " again"
                    ) from None
                yield i, result
    finally:
        client.cancel([*futures, held])


def _attempt(work: Work[Any], held: tuple[Any, Parts], i: int) -> Any:
    """Return the result of one part, or the error of its input."""
    shared, parts = held
    if not parts.paths[i].exists():
        return InputError(
            f"{parts.paths[i]} does not exist on a worker, or was removed; store the table where"
            " all workers can open it by the same path"
        )
    try:
        return work(shared, parts, i)
    except InputError as error:
        return error


# --- types of the columns of a table in parts, from a model's schema or from all parts


def typed_parts(
    over: Callable[..., Any], parts: Parts, columns: Sequence[str], schema: Schema
) -> Parts:
    """Return the parts with typed columns, by a model's schema or else by all csv parts together.

    Where most parts have numbers or dates, text in another part is refused when it is read.
    """
    unknown = tuple(dict.fromkeys(name for name in columns if name not in schema))
    # parquet parts have types, but csv cells are text: one part may contain integers and another
    # words, so only all parts together determine the type of a column
    if unknown and None in parts.counts:
        found = [cells for _, cells in over(cells_of_part, unknown, description="reading types")]
        kinds = {name: [cells[name] for cells in found] for name in unknown}
        schema = Schema((*schema.columns, *found_columns(kinds)))
    return parts.typed(schema.apply)


def cells_of_part(columns: tuple[str, ...], parts: Parts, i: int) -> dict[str, Counter[str]]:
    """Count the cells of some columns of one part by type."""
    found = {name: Counter[str]() for name in columns}
    count = cells_of_text if parts.counts[i] is None else cells_of_type
    for _, block in parts.blocks(i, columns):
        for name in columns:
            found[name] += count(block[name])
    return found
