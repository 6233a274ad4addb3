"""Execution over the parts of a table, in this process or by the workers of a Dask cluster."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
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
"""Time to wait for a scheduler, and between looks for workers that died on this machine."""

FETCH_SECONDS = 60
MOST_LOSSES = 5
"""Time that a result may take to arrive, and how often a part is repeated where it does not."""


@contextmanager
def dask_client(scheduler: str | None = None, workers: int | None = None) -> Iterator[Any]:
    """Yield a Dask client of a running scheduler or of workers started here, or None.

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
    # by default Dask returns memory at once, at the price of a page fault for each page of an array
    environment = {
        name: value for name, value in config.get(key).items() if name != "MALLOC_TRIM_THRESHOLD_"
    }
    with config.set({key: environment}):
        return distributed.LocalCluster(
            n_workers=workers,
            # the work is Python code that holds the lock: threads of one process would wait
            threads_per_worker=1,
            processes=True,
            # a free port of this machine only: the dashboard shows what workers hold
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
    """Apply a function to each part; yield part numbers with results, as they are done.

    Parameters
    ----------
    work : callable
        `work(shared, parts, i, advance)` works on part `i` and reports rows done by
        `advance(rows)`; a function of a module, as workers are processes of their own.
    shared : object
        What all parts need, such as the model.
    parts : Parts
        The table. Workers of a cluster open its files by the same paths.
    description : str
        For the progress bar.
    numbers : sequence of int, optional
        Parts to work on; all by default.
    client : distributed.Client, optional
        Of the cluster that works. A worker that dies is replaced, and its results are made again.
    skipped : dict of str to str, optional
        Takes the parts that an InputError stops, with the reason, and work goes on without them.
        By default the error is raised.
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
    """Work on each part on a cluster, and yield results, or errors of input, as they come."""
    tasks = _Tasks.begin_all(work, shared, parts, chosen, client)
    try:
        yield from tasks.results()
        # each alone now: it may only have waited at a worker that another part killed
        for i in tasks.suspects:
            future = tasks.begin(i)
            tasks.distributed.wait(future)
            yield i, _killed(parts.names[i]) if tasks.is_killed(future) else future.result()
    finally:
        tasks.cancel()


@dataclass(frozen=True)
class _Tasks:
    """Tasks of a cluster, one for each part, and those of which workers died."""

    distributed: Any
    client: Any
    work: Work[Any]
    held: Any
    running: dict[Any, int] = field(default_factory=dict)
    suspects: list[int] = field(default_factory=list)

    @classmethod
    def begin_all(
        cls, work: Work[Any], shared: Any, parts: Parts, chosen: list[int], client: Any
    ) -> _Tasks:
        # workers may run in another folder
        seen = replace(parts, paths=tuple(path.absolute() for path in parts.paths))
        with warnings.catch_warnings():
            # it is sent once, which is what the advice is for
            warnings.filterwarnings("ignore", "Sending large graph")
            # a task, not data that is scattered: the scheduler makes it again where a worker that
            # held it dies
            held = client.submit(_same, (shared, seen), pure=False)
        tasks = cls(require_extra("distributed", "scale"), client, work, held)
        for i in chosen:
            tasks.begin(i)
        return tasks

    def begin(self, i: int) -> Any:
        # not pure: a result of the same name, from before, could be one that died with its worker
        future = self.client.submit(_remotely, self.work, self.held, i, pure=False)
        self.running[future] = i
        return future

    def is_killed(self, future: Any) -> bool:
        killed = self.distributed.KilledWorker
        return future.status == "error" and isinstance(future.exception(), killed)

    def results(self) -> Generator[tuple[int, Any]]:
        losses = Counter[int]()
        done = self.distributed.as_completed(list(self.running))
        for future in done:
            i = self.running.pop(future)
            if future.status == "cancelled":
                lost = "the Dask scheduler was lost, and what its workers did with it; start again"
                raise InputError(lost)
            if self.is_killed(future):
                self.suspects.append(i)
                continue
            is_error = future.status == "error"
            try:
                # an error of the work itself is raised here at once: it is no loss. A large result
                # may take longer to come, so each attempt is given twice the time
                result = future.result(timeout=None if is_error else FETCH_SECONDS * 2 ** losses[i])
            except TimeoutError:
                if is_error or losses[i] == MOST_LOSSES:
                    raise
                losses[i] += 1  # the worker that held the result died, or it takes longer to come
                done.add(self.begin(i))
            else:
                yield i, result
            future.release()  # else workers would keep the results of all parts

    def cancel(self) -> None:
        self.client.cancel([*self.running, self.held])


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
