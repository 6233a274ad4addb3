"""Training of a stack of networks, with early stopping for each network separately."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch

from evenhand._progress import progress
from evenhand._validate import Floats, InputError, Ints, bad_input, check_fraction
from evenhand.draws import RandomState, generator
from evenhand.forecasters.network.stack import Shape, Stack, Weights, device_errors, pick_device

RowLoss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor], torch.Tensor]
"""Function from outputs, outcomes, draws and network numbers to losses, shape (networks, rows)."""

BLOCK_CELLS = 262_144
"""Number of validation cells times networks whose loss is computed at once."""

MIN_ROWS_TO_SPLIT = 10


@dataclass(frozen=True)
class Settings:
    """Settings of a training run.

    Parameters
    ----------
    learning_rate : float
        Initial step size of Adam; it decays along a half cosine to a tenth over `max_steps`.
    weight_decay : float
        Decoupled weight decay (AdamW).
    batch_size : int
        Number of rows per step.
    max_steps : int
        Largest number of optimizer steps of a network.
    patience : int
        Number of checks without a better validation loss after which a network stops.
    check_every : int
        Number of steps between checks of the validation loss.
    """

    learning_rate: float
    weight_decay: float
    batch_size: int
    max_steps: int
    patience: int
    check_every: int

    def __post_init__(self) -> None:
        for name in ("batch_size", "max_steps", "patience", "check_every"):
            if not getattr(self, name) >= 1:
                raise bad_input(name, "be at least 1", getattr(self, name))
        if not self.learning_rate > 0:
            raise bad_input("learning_rate", "be positive", self.learning_rate)


@dataclass(frozen=True)
class Rows:
    """Encoded rows with outcomes and weights of mean 1.

    `of` contains the row numbers of each network, shape (n_networks, k); None means all rows.
    """

    x: Floats
    y: Floats
    weight: Floats
    of: Ints | None = None


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
    """

    weights: Weights
    n_steps: Floats
    validation_loss: Floats


def split_rows(rows: Rows, fraction: float, random_state: RandomState) -> tuple[Rows, Rows]:
    """Hold out a random share of the training rows for early stopping.

    If there are too few rows, all rows are used for both.
    """
    check_fraction("validation_fraction", fraction)
    n = rows.y.size
    # fewer rows would leave a validation loss of one or two outcomes
    if n < MIN_ROWS_TO_SPLIT:
        return rows, rows
    order = generator(random_state).permutation(n)
    n_validation = min(max(round(fraction * n), 1), n - 1)
    validation = order[:n_validation]
    training = order[n_validation:]
    _check_weights(rows.weight[validation], rows.weight[training])
    kept, held_out = (
        Rows(rows.x[part], rows.y[part], rows.weight[part]) for part in (training, validation)
    )
    return kept, held_out


def split_rows_by_network(
    rows: Rows, fraction: float, n_networks: int, random_state: RandomState
) -> tuple[Rows, Rows]:
    """Hold out a different share of the rows for each network, so that together they use all."""
    check_fraction("validation_fraction", fraction)
    n = rows.y.size
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


def _check_weights(*parts: Floats) -> None:
    if not all(part.any() for part in parts):
        raise InputError(
            "sample_weight is zero on all training or all validation rows; drop rows of zero weight"
        )


def train(
    shape: Shape,
    n_networks: int,
    loss: RowLoss,
    learning: Rows,
    validation: Rows,
    settings: Settings,
    *,
    device: str,
    random_state: RandomState,
    verbose: bool,
) -> Trained:
    """Train a stack; each network stops separately and returns to its best validation step."""
    where = pick_device(device)
    remedy = "train with fewer rows, a smaller batch_size or network, or device='cpu'"
    with device_errors(where, remedy), _threads(shape, n_networks, settings.batch_size):
        return _train(
            shape, n_networks, loss, learning, validation, settings, where, random_state, verbose
        )


def _train(
    shape: Shape,
    n_networks: int,
    loss: RowLoss,
    learning: Rows,
    validation: Rows,
    settings: Settings,
    where: torch.device,
    random_state: RandomState,
    verbose: bool,
) -> Trained:
    # torch has its own generators, one per device
    seed = int(generator(random_state).integers(2**62))
    random = torch.Generator(where).manual_seed(seed)
    # initialized on the CPU, so that a seed gives the same initial weights on any device
    stack = Stack(shape, n_networks, torch.Generator().manual_seed(seed)).to(where)
    x, y, weight = tensors(learning, where)
    run = Run(stack, loss, settings, row_numbers(learning, where))
    checked = Validation(loss, validation, shape.takes_draw, where)
    with progress("training", settings.max_steps, enabled=verbose) as advance:
        for step in range(1, settings.max_steps + 1):
            run.step(step, x, y, weight, random)
            if step % settings.check_every == 0 or step == settings.max_steps:
                run.check(checked, step)
                advance(step, f"{run.n_running} of {n_networks} networks")
                if run.n_running == 0:
                    break
    return run.result()


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


class Run:
    """State of a training run: the networks still running, and the best state of each network."""

    def __init__(self, stack: Stack, loss: RowLoss, settings: Settings, of: torch.Tensor) -> None:
        self.stack = stack
        self.loss = loss
        self.settings = settings
        self.of = of
        where = stack.kernels[0].device
        n = stack.n_networks
        self.numbers = torch.arange(n, device=where)
        self.best = torch.full((n,), np.inf, device=where)
        self.waited = torch.zeros(n, dtype=torch.long, device=where)
        self.n_steps = torch.zeros(n, dtype=torch.long, device=where)
        # the best parameters so far, including those of stopped networks
        self.kept = {name: p.detach().clone() for name, p in stack.named_parameters()}
        self.optimizer = self._optimizer()
        self.order = torch.empty((0, 0), dtype=torch.long, device=where)
        self.place = 0

    @property
    def n_running(self) -> int:
        return self.numbers.numel()

    def _optimizer(self) -> torch.optim.AdamW:
        return torch.optim.AdamW(
            self.stack.parameters(),
            lr=self.settings.learning_rate,
            weight_decay=self.settings.weight_decay,
            fused=True,
        )

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
        values = self.loss(self.stack(x[rows], r, random), y[rows], r, self.numbers)
        # networks share no parameters, so the gradient of the sum is that of each network
        (values * weight[rows]).mean(dim=-1).sum().backward()  # type: ignore[no-untyped-call]
        share = min(step / self.settings.max_steps, 1.0)
        # half a cosine, from the learning rate to a tenth of it
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * (0.55 + 0.45 * float(np.cos(np.pi * share)))
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

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
        running = self.waited[self.numbers] < self.settings.patience
        if not running.all():
            self._keep(running)

    def _keep(self, running: torch.Tensor) -> None:
        """Remove the networks that have stopped, with their optimizer state."""
        old = list(self.stack.parameters())
        states = [self.optimizer.state[p] for p in old]
        self.numbers = self.numbers[running]
        self.stack.n_networks = self.n_running
        for group in (self.stack.kernels, self.stack.biases):
            for i, p in enumerate(group):
                group[i] = torch.nn.Parameter(p.detach()[running].clone())
        # parameters of another shape need a new optimizer, which continues from the old state
        self.optimizer = self._optimizer()
        for p, state in zip(self.stack.parameters(), states, strict=True):
            self.optimizer.state[p] = {
                name: value[running].clone() if value.dim() > 0 else value
                for name, value in state.items()
            }
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
        return Trained(stack.to_weights(), steps, self.best.cpu().numpy().astype(np.float64))
