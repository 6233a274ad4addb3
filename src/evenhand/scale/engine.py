"""Where the parts of a table are worked on.

In this process, or by the workers of a Dask cluster.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

from evenhand._progress import part_progress
from evenhand._validate import InputError, bad_input, check_count, require_extra
from evenhand.tables import Parts

Result = TypeVar("Result")
Advance = Callable[[int], None]
Work = Callable[[Any, Parts, int, Advance], Result]
"""From what all parts share, the parts, the number of one and `advance(rows)`."""

CONNECT_SECONDS = 15
KEEP_MILLISECONDS = 2000
FETCH_SECONDS = 60
MOST_LOSSES = 5
"""How long a result may take to come, after which its part is done again, and how often that is
tried."""


@contextmanager
def dask_client(scheduler: str | None = None, workers: int | None = None) -> Iterator[Any]:
    """Yield a Dask client of a scheduler that is there, or of workers started on this machine.

    None without either.

    Parameters
    ----------
    scheduler : str, optional
        Address, such as `tcp://10.0.0.1:8786`, or `tls://...` with certificates as Dask's
        configuration names them. Scheduler and workers see the model, the data and, for forecasts,
        the key of the draws.
    workers : int, optional
        Processes to start on this machine, each with one thread.

    Yields
    ------
    distributed.Client or None

    Raises
    ------
    InputError
        If both are given, or no scheduler answers at the address.

    Examples
    --------
    >>> with dask_client() as client:
    ...     client is None
    True
    """
    if scheduler is not None and workers is not None:
        raise InputError("a scheduler and a number of workers exclude each other; give one of them")
    if scheduler is None and workers is None:
        yield None
        return
    distributed = require_extra("distributed", "scale")
    if workers is not None:
        with (
            _local_cluster(check_count("workers", workers)) as local,
            distributed.Client(local) as client,
        ):
            # a worker that dies while it starts is not started again by its nanny
            ioloop = require_extra("tornado.ioloop", "scale")
            keeper = ioloop.PeriodicCallback(lambda: local.scale(workers), KEEP_MILLISECONDS)
            local.periodic_callbacks["keeper"] = keeper
            client.loop.add_callback(keeper.start)
            yield client
        return
    try:
        client = distributed.Client(scheduler, timeout=CONNECT_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        rule = "be the address of a Dask scheduler"
        remedy = "start one with: dask scheduler"
        raise bad_input("scheduler", rule, f"{scheduler!r}, where none answers", remedy) from error
    with client:
        yield client


def _local_cluster(workers: int) -> Any:
    """Start workers on this machine that reuse the memory of one block for the next."""
    config = require_extra("dask.config", "scale")
    distributed = require_extra("distributed", "scale")
    key = "distributed.nanny.pre-spawn-environ"
    # Dask tells workers to give it back at once, which costs a page fault for each page of each
    # array
    environment = {
        name: value for name, value in config.get(key).items() if name != "MALLOC_TRIM_THRESHOLD_"
    }
    with config.set({key: environment}):
        return distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=True,
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
    """Do the same to every part, and yield the number of a part with its result as they are done.

    Parameters
    ----------
    work : callable
        `work(shared, parts, i, advance)` does it to part `i` and tells `advance` how many rows it
        has done; a function of a module, as workers are processes of their own.
    shared : object
        What all parts need, such as the model.
    parts : Parts
        The table. Workers of a cluster open its files by the same paths.
    description : str
        For the progress bar.
    numbers : sequence of int, optional
        Parts to work on; all by default.
    client : distributed.Client, optional
        Of the cluster that does it. A worker that dies is replaced, and what it did is done again.
    skipped : dict of str to str, optional
        Where a part that an InputError stops is noted, with the reason, to go on without it. By
        default it is raised.
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
        with closing(attempts):  # an error ends the work of the others at once
            for i, result in attempts:
                # in this process rows were counted as they were done
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
        raise bad_input(parts.source, "hold at least one good part", f"none of {n_bad}", first)


def _attempts(
    work: Work[Any], shared: Any, parts: Parts, chosen: list[int], client: Any
) -> Generator[tuple[int, Any]]:
    """Do it to each part on a cluster, and yield results as they come."""
    distributed = require_extra("distributed", "scale")
    seen = replace(parts, paths=tuple(path.absolute() for path in parts.paths))
    # a task, not data that is scattered: the scheduler makes it again where a worker that held it
    # dies
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "Sending large graph"
        )  # it is sent once, which is what the advice is for
        held = client.submit(_same, (shared, seen), pure=False)

    def begun(i: int) -> Any:
        return client.submit(_remotely, work, held, i, pure=False)

    futures = {begun(i): i for i in chosen}
    suspects = []
    losses = Counter[int]()
    try:
        done = distributed.as_completed(list(futures))
        for future in done:
            i = futures.pop(future)
            if future.status == "cancelled":
                raise InputError(
                    "the Dask scheduler was lost, and what its workers did with it; start again"
                )
            if future.status == "error" and isinstance(
                future.exception(), distributed.KilledWorker
            ):
                suspects.append(i)
                continue
            try:
                # what the work itself raises is raised here; it is no loss
                result = future.result(
                    timeout=None if future.status == "error" else FETCH_SECONDS * 2 ** losses[i]
                )
            except TimeoutError:
                if future.status == "error" or losses[i] == MOST_LOSSES:
                    raise
                losses[i] += 1  # the worker died that held the result, or it takes longer to come
                futures[again := begun(i)] = i
                done.add(again)
            else:
                yield i, result
            future.release()
        for i in (
            suspects
        ):  # each alone now: it may only have waited at a worker that another part killed
            futures[alone := begun(i)] = i
            distributed.wait(alone)
            is_killed = alone.status == "error" and isinstance(
                alone.exception(), distributed.KilledWorker
            )
            yield i, _killed(parts.names[i]) if is_killed else alone.result()
    finally:
        client.cancel([*futures, held])


def _killed(name: str) -> InputError:
    rule = "be worked on without killing its worker"
    remedy = "give workers more memory, or split the part"
    return bad_input(name, rule, "several workers that died of it one after the other", remedy)


def _same(value: Any) -> Any:
    return value


def _remotely(work: Work[Any], held: tuple[Any, Parts], i: int) -> Any:
    shared, parts = held
    if not parts.paths[i].exists():
        remedy = "all workers open the table by the same path"
        return bad_input(str(parts.paths[i]), "be a file that workers see", "none there", remedy)
    return _attempt(work, shared, parts, i, lambda rows: None)


def _attempt(work: Work[Any], shared: Any, parts: Parts, i: int, advance: Advance) -> Any:
    try:
        return work(shared, parts, i, advance)
    except InputError as error:
        return error
