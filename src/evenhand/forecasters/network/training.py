"""Training of stacks of networks (torch), with early stopping for each network separately."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch.optim.adamw import adamw

from evenhand._progress import progress
from evenhand._validate import Floats, InputError, Ints, check_fraction
from evenhand.draws import RandomState, generator
from evenhand.forecasters.network.settings import Clock, Settings
from evenhand.forecasters.network.stack import Shape, Stack, Weights, device_errors, pick_device

# --- rows of a training, and their split into rows to learn from and rows for early stopping

MIN_ROWS_TO_SPLIT = 10


@dataclass(frozen=True)
class Rows:
    """Encoded rows with outcomes and weights of mean 1.

    `of` contains the row numbers of each network, shape (n_networks, k); None means all rows.
    """

    x: Floats
    y: Floats
    weight: Floats
    of: Ints | None = None


def split_rows_by_network(
    rows: Rows, fraction: float, n_networks: int, random_state: RandomState
) -> tuple[Rows, Rows]:
    """Hold out a different share of the rows for each network, so that together they use all.

    If there are too few rows, all rows are used for both.
    """
    check_fraction("validation_fraction", fraction)
    n = rows.y.size
    # fewer rows would leave a validation loss of one or two outcomes
    if n < MIN_ROWS_TO_SPLIT:
        return rows, rows
    n_validation = min(max(round(fraction * n), 1), n - 1)
    order = generator(random_state).permutation(n)
    # the share of each network begins where the share of the previous one ends
    orders = np.stack([np.roll(order, -i * n_validation) for i in range(n_networks)])
    validation = orders[:, :n_validation]
    training = orders[:, n_validation:]
    for one_validation, one_training in zip(validation, training, strict=True):
        _check_weights(rows.weight[one_validation], rows.weight[one_training])
    return replace(rows, of=training), replace(rows, of=validation)


def split_rows(rows: Rows, fraction: float, random_state: RandomState) -> tuple[Rows, Rows]:
    """Hold out a random share of the training rows, the same for all networks."""
    learning, validation = (
        part
        if part.of is None
        else Rows(*(one[part.of[0]] for one in (rows.x, rows.y, rows.weight)))
        for part in split_rows_by_network(rows, fraction, 1, random_state)
    )
    return learning, validation


def _check_weights(*parts: Floats) -> None:
    if not all(part.any() for part in parts):
        raise InputError(
            "sample_weight is zero on all training or all validation rows; drop rows of zero weight"
        )


def tensors(rows: Rows, where: torch.device) -> tuple[torch.Tensor, ...]:
    """Return inputs, outcomes and weights as float32 tensors on a device."""
    return tuple(
        torch.as_tensor(array, dtype=torch.float32, device=where)
        for array in (rows.x, rows.y, rows.weight)
    )


def row_numbers(rows: Rows, where: torch.device) -> torch.Tensor:
    """Return the row numbers of each network, (n_networks, k), or (1, k) if all are the same."""
    if rows.of is None:
        return torch.arange(rows.y.size, device=where)[None, :]
    return torch.as_tensor(rows.of, device=where)


# --- loss of a stack of networks on the rows for early stopping

RowLoss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor], torch.Tensor]
"""Function from outputs, outcomes, draws and network numbers to losses, shape (networks, rows)."""

BLOCK_CELLS = 262_144
"""Number of validation cells times networks whose loss is computed at once."""


class Validation:
    """Mean loss of each network on the validation rows, with the same draws at every check."""

    def __init__(self, loss: RowLoss, rows: Rows, takes_draw: bool, where: torch.device) -> None:
        self.loss = loss
        x, y, weight = tensors(rows, where)
        of = row_numbers(rows, where)
        n = of.shape[1]
        # enough draws per row for 2,000 pairs, so that the validation loss has little noise
        m = -(-2000 // n) if takes_draw else 1
        # (networks or 1, rows times draws)
        self.x, self.y, self.weight = (
            values[of].repeat_interleave(m, dim=1) for values in (x, y, weight)
        )
        # draws are shifted from row to row, so that together they cover (0, 1) finely
        shift = torch.arange(n, device=where)[:, None] / n
        cells = torch.arange(m, device=where)[None, :]
        self.r = ((cells + (shift * 0.998 + 0.001)) / m).reshape(-1) if takes_draw else None

    @torch.no_grad()
    def __call__(self, stack: Stack, numbers: torch.Tensor) -> torch.Tensor:
        step = max(1, BLOCK_CELLS // stack.n_networks)
        parts = [
            self._sums(stack, numbers, slice(start, start + step))
            for start in range(0, self.x.shape[1], step)
        ]
        values, weight = (torch.stack(sums).sum(dim=0) for sums in zip(*parts, strict=True))
        return values / weight

    def _sums(
        self, stack: Stack, numbers: torch.Tensor, cells: slice
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the sums of weighted losses and of weights over some cells, by network."""
        b = stack.n_networks
        r = None if self.r is None else self.r[cells].expand(b, -1)
        x, y, weight = (
            part.expand(b, *part.shape[1:]) if part.shape[0] == 1 else part[numbers]
            for part in (values[:, cells] for values in (self.x, self.y, self.weight))
        )
        values = self.loss(stack(x, r, None), y, r, numbers)
        return (values * weight).sum(dim=-1), weight.sum(dim=-1)


# --- AdamW for the parameters of a stack of networks

BETAS = (0.9, 0.999)
EPSILON = 1e-8


@dataclass
class _Group:
    """Parameters with one weight decay, and their moments and numbers of steps."""

    parameters: torch.nn.ParameterList
    weight_decay: float
    first: list[torch.Tensor]
    second: list[torch.Tensor]
    n_steps: list[torch.Tensor]


class AdamW:
    """Adam with decoupled weight decay, in the functional form of torch.

    For parameters as small as these, a step of `torch.optim.AdamW` takes several times as long, and
    its first one a second.

    Parameters
    ----------
    stack : Stack
        Networks, whose parameters are changed in place.
    settings : Settings
        Settings of the training run, for the weight decay.

    References
    ----------
    Loshchilov & Hutter, Decoupled weight decay regularization, ICLR 2019.

    Attributes
    ----------
    learning_rate : float
        Step size of the last step.
    """

    learning_rate = 0.0

    def __init__(self, stack: Stack, settings: Settings) -> None:
        decay = settings.weight_decay
        self._groups = [
            _group(stack.kernels, decay),
            _group(stack.biases, decay if settings.decays_biases else 0.0),
        ]

    @torch.no_grad()
    def step(self, learning_rate: float) -> None:
        """Change all parameters by their gradients, which are deleted."""
        self.learning_rate = learning_rate
        for group in self._groups:
            parameters = list(group.parameters)
            adamw(
                parameters,
                [p.grad for p in parameters if p.grad is not None],
                group.first,
                group.second,
                [],
                group.n_steps,
                fused=True,
                amsgrad=False,
                beta1=BETAS[0],
                beta2=BETAS[1],
                lr=learning_rate,
                weight_decay=group.weight_decay,
                eps=EPSILON,
                maximize=False,
            )
            for p in parameters:
                p.grad = None

    def keep(self, running: torch.Tensor) -> None:
        """Keep the moments of some networks only, as the stack keeps their parameters."""
        for group in self._groups:
            group.first = [moment[running].clone() for moment in group.first]
            group.second = [moment[running].clone() for moment in group.second]


def _group(parameters: torch.nn.ParameterList, weight_decay: float) -> _Group:
    first, second = ([torch.zeros_like(p) for p in parameters] for _ in range(2))
    # on the device of the parameters, as the fused kernel needs
    n_steps = [torch.zeros((), device=p.device) for p in parameters]
    return _Group(parameters, weight_decay, first, second, n_steps)


# --- optimizer steps and early stopping of a stack of networks


@dataclass(frozen=True)
class Trained:
    """Result of a training run.

    Parameters
    ----------
    weights : Weights
        Best parameters of each network.
    n_steps : ndarray of shape (n_networks,)
        Number of optimizer steps of each network.
    validation_loss : ndarray of shape (n_networks,)
        Best mean loss on the validation rows.
    late_gain : ndarray of shape (n_networks,)
        Improvement of that loss in the last quarter of a training that reached `max_steps`, else 0.
    """

    weights: Weights
    n_steps: Floats
    validation_loss: Floats
    late_gain: Floats


LATE = 0.75
"""Share of the steps after which an improvement is late."""


class Run:
    """State of a training run: the networks still running, and the best state of each network."""

    def __init__(
        self,
        stack: Stack,
        loss: RowLoss,
        settings: Settings,
        of: torch.Tensor,
        clock: Clock | None = None,
    ) -> None:
        self.stack = stack
        self.loss = loss
        self.settings = settings
        self.of = of
        self.clock = clock or Clock()
        where = stack.kernels[0].device
        n = stack.n_networks
        self.numbers = torch.arange(n, device=where)
        self.best = torch.full((n,), np.inf, device=where)
        self.best_early = self.best.clone()
        self.waited = torch.zeros(n, dtype=torch.long, device=where)
        self.n_steps = torch.zeros(n, dtype=torch.long, device=where)
        # the best parameters so far, including those of stopped networks
        self.kept = {name: p.detach().clone() for name, p in stack.named_parameters()}
        self.optimizer = AdamW(stack, settings)
        self.order = torch.empty((0, 0), dtype=torch.long, device=where)
        self.place = 0

    @property
    def n_running(self) -> int:
        return self.numbers.numel()

    def step(
        self,
        step: int,
        x: torch.Tensor,
        y: torch.Tensor,
        weight: torch.Tensor,
        random: torch.Generator,
    ) -> None:
        rows = self._next_rows(random)
        shape = self.stack.shape
        r = torch.rand(rows.shape, generator=random, device=x.device) if shape.takes_draw else None
        # dropout in training steps only, not in checks
        self.stack.train()
        # several times as fast as x[rows]
        inputs = x.index_select(0, rows.flatten()).view(*rows.shape, -1)
        values = self.loss(self.stack(inputs, r, random), y[rows], r, self.numbers)
        # networks share no parameters, so the gradient of the sum is that of each network
        (values * weight[rows]).mean(dim=-1).sum().backward()  # type: ignore[no-untyped-call]
        # with a time budget the rate falls with the time where that is faster
        share = min(max(step / self.settings.max_steps, self.clock.share()), 1.0)
        last = self.settings.last_rate
        # half a cosine, from the learning rate to a share of it
        factor = last + (1 - last) * (1 + float(np.cos(np.pi * share))) / 2
        self.optimizer.step(self.settings.learning_rate * factor)

    def _next_rows(self, random: torch.Generator) -> torch.Tensor:
        """Return the row numbers of the next step; each network has its own order in each epoch."""
        n = self.of.shape[1]
        size = min(self.settings.batch_size, n)
        if self.place + size > self.order.shape[-1]:
            # sorting random keys permutes the rows of all networks in one operation
            keys = torch.rand((self.n_running, n), generator=random, device=self.numbers.device)
            self.order = keys.argsort(dim=-1)
            self.place = 0
        # an incomplete last batch of an epoch is dropped
        at = self.order[:, self.place : self.place + size]
        self.place += size
        return self.of.expand(self.n_running, -1).gather(1, at)

    def check(self, validation: Validation, step: int) -> None:
        self.stack.eval()
        values = validation(self.stack, self.numbers)
        better = values < self.best[self.numbers]
        at = self.numbers[better]
        self.best[at] = values[better]
        for name, p in self.stack.named_parameters():
            self.kept[name][at] = p.detach()[better]
        # patience is counted in checks, separately for each network
        self.waited[self.numbers] = torch.where(better, 0, self.waited[self.numbers] + 1)
        self.n_steps[self.numbers] = step
        if step <= LATE * self.settings.max_steps:
            self.best_early = self.best.clone()
        running = self.waited[self.numbers] < self.settings.patience
        if not running.all():
            self._keep(running)

    def _keep(self, running: torch.Tensor) -> None:
        """Remove the networks that have stopped, with their optimizer state."""
        self.numbers = self.numbers[running]
        self.stack.n_networks = self.n_running
        for group in (self.stack.kernels, self.stack.biases):
            for i, p in enumerate(group):
                group[i] = torch.nn.Parameter(p.detach()[running].clone())
        self.optimizer.keep(running)
        self.order = self.order[running]
        if self.of.shape[0] > 1:
            self.of = self.of[running]

    def result(self) -> Trained:
        # a network whose loss was never finite still has its initial weights
        if not torch.isfinite(self.best).all():
            raise InputError(
                "training diverged: the validation loss was never finite; scale the outcome or"
                " lower learning_rate"
            )
        stack = Stack(self.stack.shape, self.best.numel())
        with torch.no_grad():
            for name, p in stack.named_parameters():
                p.copy_(self.kept[name].cpu())
        steps = self.n_steps.cpu().numpy().astype(np.float64)
        best, before = (
            values.cpu().numpy().astype(np.float64) for values in (self.best, self.best_early)
        )
        is_last = steps >= self.settings.max_steps
        return Trained(stack.to_weights(), steps, best, np.where(is_last, before - best, 0.0))


# --- training of the best of several stacks

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
