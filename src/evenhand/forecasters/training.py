"""Networks that are trained together (torch), with members along the first axis of every tensor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.optim.adamw import adamw

from evenhand._progress import progress
from evenhand._validate import Floats, InputError, Ints, bad_input, check_choice, check_fraction
from evenhand.draws import RandomState, generator
from evenhand.tables import row_blocks

if TYPE_CHECKING:
    from evenhand.forecasters.networks import Shape

# --- fully connected networks, evaluated in batched matrix products

Weights = dict[str, NDArray[np.float32]]

BLOCK_INPUTS = 8_192
GPU_BLOCK_INPUTS = 262_144
"""Number of rows times draws times networks evaluated at once; on a GPU a layer of 100 units then
takes 200 MB."""

ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "leaky_relu": torch.nn.functional.leaky_relu,
    "silu": torch.nn.functional.silu,
}

Layers = Sequence[torch.Tensor]
"""Kernels (networks, inputs, outputs) of all layers, then their biases (networks, 1, outputs)."""


def drawn_weights(shape: Shape, n_networks: int, random: torch.Generator) -> list[torch.Tensor]:
    """Return random layers of a stack.

    They are drawn on the CPU, so that a seed gives the same values on any device.
    """
    drawn = []
    for n_in, n_out in shape.layers():
        # torch's default initialization of a linear layer
        for size in ((n_in, n_out), (1, n_out)):
            uniform = torch.rand((n_networks, *size), generator=random, device="cpu")
            drawn.append((2 * uniform - 1) * n_in**-0.5)
    return drawn[::2] + drawn[1::2]


def evaluate(
    shape: Shape,
    layers: Layers,
    x: torch.Tensor,
    r: torch.Tensor | None,
    dropping: torch.Generator | None = None,
) -> torch.Tensor:
    """Return outputs (networks, rows, outputs) for `x` (networks, rows, inputs) and draws.

    With the generator `dropping`, units of the last hidden layer are dropped, as in training.
    """
    last = len(layers) // 2 - 1
    activation = ACTIVATIONS[shape.activation]
    for i, (kernel, bias) in enumerate(zip(layers[: last + 1], layers[last + 1 :], strict=True)):
        # the draw is an input of all hidden layers except the first
        if i in (0, last) or r is None:
            x = torch.baddbmm(bias, x, kernel)
        else:
            # the draw's column is multiplied separately, which avoids a copy of the inputs
            x = torch.baddbmm(bias, x, kernel[:, :-1]) + r[..., None] * kernel[:, -1:]
        if i < last:
            x = activation(x)
        if i == last - 1 and dropping is not None and shape.dropout > 0:
            x = x * _dropout_mask(x, shape.dropout, dropping)
    return x


def _dropout_mask(x: torch.Tensor, dropout: float, random: torch.Generator) -> torch.Tensor:
    """Return a mask of zeros and 1/keep, with eight units from each random integer.

    The share of zeros is a multiple of 1/256.
    """
    # a byte is at most 255, so the smallest possible dropout is one unit in 256
    n_kept = min(max(round(256 * (1 - dropout)), 1), 255)
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64, device=x.device)
    bits = words.random_(-(2**63), None, generator=random).view(torch.uint8)[: x.numel()]
    return (bits < n_kept).view(x.shape) * (256 / n_kept)


def pick_device(device: str) -> torch.device:
    """Return the torch device; "auto" uses a CUDA device if there is one."""
    check_choice("device", device, ("auto", "cpu", "cuda"))
    has_cuda = torch.cuda.is_available()
    # no silent fallback to the CPU, which may take hours
    if device == "cuda" and not has_cuda:
        raise InputError(
            "device is 'cuda', but there is no CUDA device; set it to 'auto' or 'cpu', for a fitted"
            " model with model.device = 'auto' (model.estimator_.device for an inner network)"
        )
    return torch.device("cuda" if device != "cpu" and has_cuda else "cpu")


@contextmanager
def device_errors(where: torch.device, remedy: str) -> Iterator[None]:
    """Turn errors of a device into a one-line InputError.

    `remedy` is the advice if there is too little memory.
    """
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise InputError(f"device {where.type!r} has too little free memory; {remedy}") from error
    except (RuntimeError, AssertionError) as error:
        # torch raises these types for a device that is missing, lost or too old
        if where.type == "cpu" or "CUDA" not in str(error):
            raise
        reason = str(error).partition(". ")[0].splitlines()[0]
        raise InputError(
            f"the CUDA device cannot be used ({reason}); use device='cpu' (--device cpu)"
        ) from error


def score(shape: Shape, weights: Weights, x: Floats, r: Floats | None, device: str) -> Floats:
    """Return outputs, shape (networks, rows, outputs) or (networks, rows, draws, outputs).

    Rows are encoded, and draws have the shape (1, m) or (n, m).
    """
    where = pick_device(device)
    n, m = len(x), 1 if r is None else r.shape[1]
    draws = None if r is None else np.broadcast_to(r, (n, m))
    parts = []
    # float64, as PITs near 0 and 1 need the precision
    remedy = "predict fewer rows at once, or set device='cpu'"
    with device_errors(where, remedy), torch.inference_mode():
        # plain tensors: registering them as parameters takes longer than the forecast of a row
        tensor = partial(torch.tensor, dtype=torch.float64, device=where)
        layers = [tensor(weights[name]) for name in shape.parts()]
        n_networks = len(layers[0])
        step = max(
            1, (BLOCK_INPUTS if where.type == "cpu" else GPU_BLOCK_INPUTS) // (m * n_networks)
        )
        for cut in row_blocks(n, step):
            # rows are repeated on the device, which saves transfers
            rows = tensor(x[cut])
            block = rows.repeat_interleave(m, dim=0).expand(n_networks, -1, -1)
            at = None
            if draws is not None:
                at = tensor(draws[cut].flatten()).expand(n_networks, -1)
            parts.append(evaluate(shape, layers, block, at).cpu().numpy())
    out = np.concatenate(parts, axis=1)
    return out if r is None else out.reshape(n_networks, n, m, -1)


# --- rows of a training, and their split into rows to learn from and rows for early stopping

MIN_ROWS_TO_SPLIT = 10


@dataclass(frozen=True)
class EncodedRows:
    """Encoded rows with outcomes and weights of mean 1.

    `learning` and `validation` contain the row numbers of each network, shape (n_networks, k), or
    those of all networks, shape (1, k).
    """

    x: Floats
    y: Floats
    weight: Floats
    learning: Ints
    validation: Ints


def split_rows(
    n: int, fraction: float, n_splits: int, random_state: RandomState
) -> tuple[Ints, Ints]:
    """Return row numbers to learn from and to stop by, (n_splits, k); together splits use all rows.

    There is one split for each network, or a single one for all. If there are too few rows, all
    rows are used for both.
    """
    check_fraction("validation_fraction", fraction)
    # fewer rows would leave a validation loss of one or two outcomes
    if n < MIN_ROWS_TO_SPLIT:
        return (np.arange(n)[None],) * 2
    n_validation = min(max(round(fraction * n), 1), n - 1)
    order = generator(random_state).permutation(n)
    # the share of each split begins where the share of the previous one ends
    orders = np.stack([np.roll(order, -i * n_validation) for i in range(n_splits)])
    return orders[:, n_validation:], orders[:, :n_validation]


# --- optimizer steps and early stopping of a stack of networks

RowLoss = Callable[[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor], torch.Tensor]
"""Function from outputs, outcomes, draws and network numbers to losses, shape (networks, rows)."""

BLOCK_CELLS = 262_144
"""Number of validation cells times networks whose loss is computed at once."""

ADAM: Any = partial(
    adamw, fused=True, amsgrad=False, beta1=0.9, beta2=0.999, eps=1e-8, maximize=False
)
"""A step of Adam; `torch.optim.AdamW` costs a second at its first use."""

# the step size has hardly decayed
QUESTION = 0.4
"""Share of the steps after which a training that still improves is made longer."""

LATE = 0.75
"""Share of the steps up to the question after which an improvement is late."""

UNFINISHED = 0.02
"""Late improvement of the mean held-out loss, in nats, of a training that should be longer."""


@dataclass(frozen=True)
class Settings:
    """Settings of a training run.

    Parameters
    ----------
    learning_rate : float
        Initial step size of Adam; it decays along a half cosine over `max_steps`.
    weight_decay : float
        Decoupled weight decay (AdamW).
    batch_size : int
        Number of rows per step.
    max_steps : int
        Number of optimizer steps of a network, unless held-out losses ask for more.
    longest : int
        Largest number of steps; a training is made twice as long as often as that is not longer.
    patience : int
        Number of checks without a better validation loss after which a network stops.
    check_every : int
        Number of steps between checks of the validation loss.
    last_rate : float, default 0.1
        Step size at the end, as a share of the initial one.
    decays_biases : bool, default True
        Whether weight decay applies to biases as well as to kernels.
    """

    learning_rate: float
    weight_decay: float
    batch_size: int
    max_steps: int
    longest: int
    patience: int
    check_every: int
    last_rate: float = 0.1
    decays_biases: bool = True

    def __post_init__(self) -> None:
        if not self.learning_rate > 0:
            raise bad_input("learning_rate", "be positive", self.learning_rate)


@dataclass(frozen=True)
class Candidate:
    """Networks, rows and settings that a training may use.

    Candidates of a training have the same numbers of networks, steps and checks.
    """

    shape: Shape
    rows: EncodedRows
    settings: Settings


class TrainingRun:
    """A training that can be interrupted and continued, with the best state of each network.

    Networks share no parameters, and each stops on its own: `numbers` are those that still run, and
    the first axis of `parameters`, `moments`, `order` and `of` has these networks only. Steps are
    those of Adam with decoupled weight decay (Loshchilov & Hutter, ICLR 2019). The seed is that of
    the initial parameters, and of batches, draws and dropout.
    """

    def __init__(
        self, candidate: Candidate, n_networks: int, loss: RowLoss, where: torch.device, seed: int
    ) -> None:
        self.shape, self.rows, self.settings = candidate.shape, candidate.rows, candidate.settings
        self.loss = loss
        self.x, self.y, self.weight = (
            torch.as_tensor(array, dtype=torch.float32, device=where)
            for array in (self.rows.x, self.rows.y, self.rows.weight)
        )
        self.of, held_out = (
            torch.as_tensor(rows[:n_networks], device=where)
            for rows in (self.rows.learning, self.rows.validation)
        )
        # enough draws per row for 2,000 pairs, so that the validation loss has little noise
        n = held_out.shape[1]
        m = -(-2000 // n) if self.shape.takes_draw else 1
        # inputs, outcomes and weights of the cells, (networks or 1, rows times draws)
        self.cells = [
            values[held_out].repeat_interleave(m, dim=1) for values in (self.x, self.y, self.weight)
        ]
        # draws are shifted from row to row, so that together they cover (0, 1) finely
        shift = torch.arange(n, device=where)[:, None] / n
        draws = (torch.arange(m, device=where)[None, :] + (shift * 0.998 + 0.001)) / m
        self.r = draws.reshape(-1) if self.shape.takes_draw else None
        # torch has its own generators, one per device
        self.random = torch.Generator(where).manual_seed(seed)
        initial = drawn_weights(self.shape, n_networks, torch.Generator().manual_seed(seed))
        self.parameters = [part.to(where).requires_grad_() for part in initial]
        # the best parameters so far, including those of stopped networks
        self.kept = [part.detach().clone() for part in self.parameters]
        # of Adam: first and second moments of the gradients
        self.moments = [[torch.zeros_like(part) for part in self.kept] for _ in range(2)]
        # on the device of the parameters, as the fused kernel needs
        self.n_updates = [torch.zeros((), device=where) for _ in initial]
        self.numbers = torch.arange(n_networks, device=where)
        self.best = torch.full((n_networks,), np.inf, device=where)
        self.best_early = self.best.clone()
        self.waited, self.n_steps = torch.zeros(
            (2, n_networks), dtype=torch.long, device=where
        ).unbind()
        self.order = torch.empty((n_networks, 0), dtype=torch.long, device=where)
        self.place = 0
        self.n_done = 0
        self.is_unfinished = False
        """Whether held-out losses still fell when training could not be made longer."""

    @property
    def n_running(self) -> int:
        """Number of networks that have not stopped."""
        return self.numbers.numel()

    @property
    def steps_per_pass(self) -> int:
        """Number of steps in which every row is used once."""
        return max(1, self.of.shape[1] // self.settings.batch_size)

    def proceed(self, share: float, report: Report) -> None:
        """Train until a share of the steps is used, or all have stopped."""
        settings = self.settings
        last = max(1, round(share * settings.max_steps))
        n_networks = self.best.numel()
        while self.n_done < last and self.n_running > 0:
            self.step()
            if self.n_done % settings.check_every == 0 or self.n_done == last:
                self.check()
                running = f"passes, {self.n_running} of {n_networks} networks"
                report(self.n_done // self.steps_per_pass, running)

    def learning_rate(self) -> float:
        """Return the step size, half a cosine from the initial one to a share of it."""
        share = self.n_done / self.settings.max_steps
        last = self.settings.last_rate
        factor = last + (1 - last) * (1 + float(np.cos(np.pi * share))) / 2
        return self.settings.learning_rate * factor

    def step(self) -> None:
        """Change the parameters by the gradients of a batch, which each network draws itself."""
        self.n_done += 1
        rows = self._next_rows()
        r = None
        if self.shape.takes_draw:
            r = torch.rand(rows.shape, generator=self.random, device=rows.device)
        # several times as fast as x[rows]
        x = self.x.index_select(0, rows.flatten()).view(*rows.shape, -1)
        # dropout in training steps only, not in checks
        out = evaluate(self.shape, self.parameters, x, r, self.random)
        values = self.loss(out, self.y[rows], r, self.numbers)
        # the gradient of the sum is that of each network
        total = (values * self.weight[rows]).mean(dim=-1).sum()
        gradients = torch.autograd.grad(total, self.parameters)
        values_of = [part.detach() for part in self.parameters]
        kernels, biases = slice(len(values_of) // 2), slice(len(values_of) // 2, None)
        rate, decay = self.learning_rate(), self.settings.weight_decay
        for part, own in ((kernels, decay), (biases, decay * self.settings.decays_biases)):
            first, second = (both[part] for both in self.moments)
            parts = values_of[part], list(gradients[part]), first, second
            ADAM(*parts, [], self.n_updates[part], lr=rate, weight_decay=own)

    def _next_rows(self) -> torch.Tensor:
        """Return the row numbers of the next step; each network has its own order in each epoch."""
        n = self.of.shape[1]
        size = min(self.settings.batch_size, n)
        if self.place + size > self.order.shape[-1]:
            # sorting random keys permutes the rows of all networks in one operation
            keys = torch.rand((self.n_running, n), generator=self.random, device=self.of.device)
            self.order = keys.argsort(dim=-1)
            self.place = 0
        # an incomplete last batch of an epoch is dropped
        at = self.order[:, self.place : self.place + size]
        self.place += size
        return self.of.expand(self.n_running, -1).gather(1, at)

    @torch.no_grad()
    def validation(self) -> torch.Tensor:
        """Return the mean loss of each running network on its validation rows.

        The draws are the same at every check.
        """
        b = self.n_running
        sums = torch.zeros((2, b), device=self.numbers.device)
        for part in row_blocks(self.cells[0].shape[1], max(1, BLOCK_CELLS // b)):
            r = None if self.r is None else self.r[part].expand(b, -1)
            x, y, weight = (
                values[:, part].expand(b, *values[:, part].shape[1:])
                if values.shape[0] == 1
                else values[self.numbers, part]
                for values in self.cells
            )
            values = self.loss(evaluate(self.shape, self.parameters, x, r), y, r, self.numbers)
            sums += torch.stack([(values * weight).sum(dim=-1), weight.sum(dim=-1)])
        return sums[0] / sums[1]

    @torch.no_grad()
    def check(self) -> None:
        """Keep the networks that are better than before, and stop those without patience left."""
        values = self.validation()
        better = values < self.best[self.numbers]
        at = self.numbers[better]
        self.best[at] = values[better]
        for kept, part in zip(self.kept, self.parameters, strict=True):
            kept[at] = part[better]
        # patience is counted in checks, separately for each network
        self.waited[self.numbers] = torch.where(better, 0, self.waited[self.numbers] + 1)
        self.n_steps[self.numbers] = self.n_done
        if self.n_done <= LATE * QUESTION * self.settings.max_steps:
            self.best_early = self.best.clone()
        running = self.waited[self.numbers] < self.settings.patience
        if running.all():
            return
        self.numbers, self.order = self.numbers[running], self.order[running]
        self.parameters = [part[running].requires_grad_() for part in self.parameters]
        self.moments = [[part[running] for part in both] for both in self.moments]
        if self.of.shape[0] > 1:
            self.of = self.of[running]

    def still_improves(self) -> bool:
        """Whether the mean held-out loss fell late before the question."""
        return self.n_running > 0 and float((self.best_early - self.best).mean()) > UNFINISHED

    def lengthen(self, report: Report) -> None:
        """Train up to the question, and make the training longer while it asks for that."""
        self.proceed(QUESTION, report)
        while self.still_improves() and 2 * self.settings.max_steps <= self.settings.longest:
            self.settings = replace(
                self.settings,
                max_steps=2 * self.settings.max_steps,
                check_every=2 * self.settings.check_every,
            )
            self.proceed(QUESTION, report)

    def result(self) -> tuple[Weights, Floats, Floats]:
        """Return the best weights, the number of steps and the best loss of each network."""
        # a network whose loss was never finite still has its initial weights
        if not torch.isfinite(self.best).all():
            raise InputError(
                "training diverged: the validation loss was never finite; scale the outcome or"
                " lower learning_rate"
            )
        steps, best = (values.cpu().numpy().astype(float) for values in (self.n_steps, self.best))
        arrays = (part.cpu().numpy() for part in self.kept)
        return dict(zip(self.shape.parts(), arrays, strict=True)), steps, best


# --- training of the best of several stacks

ROUNDS = (0.05, 0.4)
"""Shares of the steps after which candidates are compared: the first time two go on, then one."""

TRIAL_ROWS = 1500
"""Number of held-out rows that candidates are compared on, if that takes fewer networks than all;
the networks of the best one are then trained from the beginning."""

FEWEST_TRIED = 2

Report = Callable[[int, str], None]


def train_best(
    candidates: Sequence[Candidate],
    n_networks: int,
    loss: RowLoss,
    *,
    device: str,
    random_state: RandomState,
    verbose: bool,
) -> tuple[int, TrainingRun]:
    """Train stacks by successive halving; return the number of the best one, and its training.

    Candidates are compared by the mean of their networks' best validation losses. Each network has
    rows of its own for validation, so this mean has less noise than the loss of one network
    (Jamieson & Talwalkar, Non-stochastic best arm identification, AISTATS 2016).
    """
    where = pick_device(device)
    seed = int(generator(random_state).integers(2**62))
    remedy = "train with fewer rows, a smaller batch_size or network, or device='cpu'"
    settings, shape = candidates[0].settings, candidates[0].shape
    with device_errors(where, remedy), _threads(shape, n_networks, settings.batch_size):
        n_tried = _n_tried(candidates[0], n_networks) if len(candidates) > 1 else n_networks

        def training(i: int, n: int, settings: Settings) -> TrainingRun:
            return TrainingRun(replace(candidates[i], settings=settings), n, loss, where, seed)

        trainings = {i: training(i, n_tried, one.settings) for i, one in enumerate(candidates)}
        n_passes = -(-settings.max_steps // trainings[0].steps_per_pass)
        with progress("training", n_passes, enabled=verbose) as advance:
            for share, n_kept in zip(ROUNDS, (2, 1), strict=True):
                if len(trainings) > n_kept:
                    for each in trainings.values():
                        each.proceed(share, advance)
                    trainings = _best_of(trainings, n_kept)
            ((chosen, best),) = trainings.items()
            best.lengthen(advance)
            if n_tried < n_networks:
                best = training(chosen, n_networks, best.settings)
                best.lengthen(advance)
            best.is_unfinished = best.still_improves()
            best.proceed(1.0, advance)
        return chosen, best


def _n_tried(candidate: Candidate, n_networks: int) -> int:
    """Return the number of networks by which candidates are compared."""
    n_splits, n_held_out = candidate.rows.validation.shape
    # without a split of their own, all networks are compared on the same rows
    if n_splits == 1:
        return n_networks
    return min(max(-(-TRIAL_ROWS // n_held_out), FEWEST_TRIED), n_networks)


def _best_of(trainings: dict[int, TrainingRun], n_kept: int) -> dict[int, TrainingRun]:
    """Return the best training, and the best of those with other inputs, or the second best.

    Some inputs are learned faster than others that are better in the end, so that early losses are
    comparable for the same inputs only.
    """
    ranked = sorted(trainings, key=lambda i: trainings[i].best.mean())
    n_inputs = trainings[ranked[0]].shape.n_inputs
    others = [i for i in ranked if trainings[i].shape.n_inputs != n_inputs] or ranked[1:]
    return {i: trainings[i] for i in [ranked[0], *others][:n_kept]}


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
