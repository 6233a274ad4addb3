"""Training of stacks of networks, with early stopping for each network separately."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch

from evenhand._progress import progress
from evenhand.draws import RandomState, generator
from evenhand.forecasters.network.rows import Rows, row_numbers, tensors
from evenhand.forecasters.network.run import Run, Trained
from evenhand.forecasters.network.settings import Clock, Settings
from evenhand.forecasters.network.stack import Shape, Stack, device_errors, pick_device
from evenhand.forecasters.network.validation import RowLoss, Validation

ROUNDS = (0.1, 0.4)
"""Shares of the steps after which candidates are compared: the first time two go on, then one."""

TRIAL_ROWS = 1500
"""Number of held-out rows that candidates are compared on, if that takes fewer networks than all;
the networks of the best one are then trained from the beginning."""

FEWEST_TRIED = 2

Report = Callable[[int, str], None]


@dataclass(frozen=True)
class Candidate:
    """Networks, rows and settings that a training may use.

    Candidates of a training have the same numbers of networks, steps and checks.
    """

    shape: Shape
    learning: Rows
    validation: Rows
    settings: Settings

    def of_first(self, n_networks: int) -> Candidate:
        """Return the candidate for the first networks only."""
        learning, validation = (
            rows if rows.of is None else replace(rows, of=rows.of[:n_networks])
            for rows in (self.learning, self.validation)
        )
        return replace(self, learning=learning, validation=validation)


def train_best(
    candidates: Sequence[Candidate],
    n_networks: int,
    loss: RowLoss,
    *,
    device: str,
    random_state: RandomState,
    verbose: bool,
    time_budget: float | None = None,
) -> tuple[int, Trained]:
    """Train stacks by successive halving; return the number of the best one, and its networks.

    Candidates are compared by the mean of their networks' best validation losses. Each network has
    rows of its own for validation, so this mean has less noise than the loss of one network.

    References
    ----------
    Jamieson & Talwalkar, Non-stochastic best arm identification, AISTATS 2016.
    """
    where = pick_device(device)
    seed = int(generator(random_state).integers(2**62))
    remedy = "train with fewer rows, a smaller batch_size or network, or device='cpu'"
    settings = candidates[0].settings
    batch_size = settings.batch_size
    clock = Clock(time_budget)
    with device_errors(where, remedy), _threads(candidates[0].shape, n_networks, batch_size):
        n_tried = _n_tried(candidates[0], n_networks) if len(candidates) > 1 else n_networks

        def training(i: int, n: int, time: Clock) -> _Training:
            return _Training(candidates[i].of_first(n), n, loss, where, seed, time)

        trainings = {i: training(i, n_tried, clock) for i in range(len(candidates))}
        n_passes = -(-settings.max_steps // trainings[0].steps_per_pass)
        with progress("training", n_passes, enabled=verbose) as advance:
            for share, n_kept in zip(ROUNDS, (2, 1), strict=True):
                if len(trainings) > n_kept:
                    for each in trainings.values():
                        each.proceed(share, advance)
                    trainings = _best_of(trainings, n_kept)
            ((chosen, best),) = trainings.items()
            if n_tried < n_networks:
                best = training(chosen, n_networks, clock.rest())
            best.proceed(1.0, advance)
        return chosen, best.run.result()


def _n_tried(candidate: Candidate, n_networks: int) -> int:
    """Return the number of networks by which candidates are compared."""
    validation = candidate.validation
    # without a split of their own, all networks are compared on the same rows
    if validation.of is None:
        return n_networks
    held_out: int = validation.of.shape[1]
    needed = -(-TRIAL_ROWS // held_out)
    return min(max(needed, FEWEST_TRIED), n_networks)


def _best_of(trainings: dict[int, _Training], n_kept: int) -> dict[int, _Training]:
    """Return the best training, and the best of those with other inputs, or the second best.

    Some inputs are learned faster than others that are better in the end, so that early losses are
    comparable for the same inputs only.
    """
    ranked = sorted(trainings, key=lambda i: trainings[i].mean_loss())
    n_inputs = trainings[ranked[0]].n_inputs
    others = [i for i in ranked if trainings[i].n_inputs != n_inputs] or ranked[1:]
    return {i: trainings[i] for i in [ranked[0], *others][:n_kept]}


class _Training:
    """A training that can be interrupted and continued."""

    def __init__(
        self,
        candidate: Candidate,
        n_networks: int,
        loss: RowLoss,
        where: torch.device,
        seed: int,
        clock: Clock,
    ) -> None:
        # torch has its own generators, one per device
        self.random = torch.Generator(where).manual_seed(seed)
        # initialized on the CPU, so that a seed gives the same initial weights on any device
        weights = torch.Generator().manual_seed(seed)
        stack = Stack(candidate.shape, n_networks, weights).to(where)
        self.x, self.y, self.weight = tensors(candidate.learning, where)
        of = row_numbers(candidate.learning, where)
        self.run = Run(stack, loss, candidate.settings, of, clock)
        self.checked = Validation(loss, candidate.validation, candidate.shape.takes_draw, where)
        self.steps_per_pass = max(1, of.shape[1] // candidate.settings.batch_size)
        self.n_networks = n_networks
        self.n_inputs = candidate.shape.n_inputs
        self.step = 0

    def proceed(self, share: float, report: Report) -> None:
        """Train until a share of the steps or of the time budget is used, or all have stopped."""
        settings = self.run.settings
        last = max(1, round(share * settings.max_steps))
        while self.step < last and self.run.n_running > 0:
            self.step += 1
            self.run.step(self.step, self.x, self.y, self.weight, self.random)
            is_over = self.run.clock.share() >= share
            if self.step % settings.check_every == 0 or self.step == last or is_over:
                self.run.check(self.checked, self.step)
                running = f"passes, {self.run.n_running} of {self.n_networks} networks"
                report(self.step // self.steps_per_pass, running)
            if is_over:
                break

    def mean_loss(self) -> float:
        """Return the mean of the networks' best validation losses."""
        return float(self.run.best.mean())


@contextmanager
def _threads(shape: Shape, n_networks: int, batch_size: int) -> Iterator[None]:
    """Use a single thread for small steps, where synchronization costs more than it saves."""
    multiplications = n_networks * batch_size * sum(n_in * n_out for n_in, n_out in shape.layers())
    before = torch.get_num_threads()
    # several threads are faster only for steps with more multiplications
    torch.set_num_threads(before if multiplications > 10**9 else 1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
