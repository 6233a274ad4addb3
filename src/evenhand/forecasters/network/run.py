"""Optimizer steps and early stopping of a stack of networks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from evenhand._validate import Floats, InputError
from evenhand.forecasters.network.optimizer import AdamW
from evenhand.forecasters.network.settings import Clock, Settings
from evenhand.forecasters.network.stack import Stack, Weights
from evenhand.forecasters.network.validation import RowLoss, Validation


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
