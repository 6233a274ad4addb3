"""Loss of a stack of networks on the rows for early stopping."""

from __future__ import annotations

from collections.abc import Callable

import torch

from evenhand.forecasters.network.rows import Rows, row_numbers, tensors
from evenhand.forecasters.network.stack import Stack

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
