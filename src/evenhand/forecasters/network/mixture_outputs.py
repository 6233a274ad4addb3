"""Mixtures of normals as functions of a network's outputs."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from scipy import special

from evenhand._validate import Floats, typed, typed_fields
from evenhand.forecasters.gaps import smallest_gap
from evenhand.forecasters.network.skew import Skew

if TYPE_CHECKING:
    import torch

    from evenhand.forecasters.network.validation import RowLoss

MIN_STD = 0.002
"""Smallest standard deviation of a component, relative to the unit of the outcome."""

CELL_STD = 12**-0.5
"""Standard deviation of an outcome within a rounding cell of width 1."""


@dataclass(frozen=True)
class MixtureOutputs:
    """Mixtures of normals as functions of the outputs of networks.

    The outputs of a row are logits of weights, scores of means and the spreads before softplus. A
    mean is the skewed map of its score, and a standard deviation is in units of the map's slope
    there: where outcomes are skewed, spreads grow with the mean unless the network learns
    otherwise.

    Parameters
    ----------
    skew : Skew
        Map from scores to outcomes in units.
    min_std : float
        Smallest standard deviation of a component, before the slope.
    """

    skew: Skew = field(default_factory=Skew)
    min_std: float = MIN_STD

    @classmethod
    def of(cls, units: Floats, g: float) -> Self:
        """Return the outputs for outcomes in units of skewness g."""
        # on a grid, a component narrower than a cell raises the density and nothing else
        return cls(Skew.reaching(units, g), max(MIN_STD, CELL_STD * smallest_gap(units)))

    def mixtures(self, out: Floats) -> tuple[Floats, Floats, Floats]:
        """Return weights, means and standard deviations, in units of the outcome."""
        logits, score, raw = np.split(out, 3, axis=-1)
        loc, slope = self.skew.place(score)
        # softmax and softplus make any output a valid mixture
        std = slope * (np.logaddexp(0.0, raw) + self.min_std)
        return special.softmax(logits, axis=-1), loc, std

    def tensors(
        self, out: torch.Tensor, dim: int = -1
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return logits of weights, means and standard deviations in training.

        `dim` is the axis of the outputs.
        """
        import torch

        logits, score, raw = out.chunk(3, dim=dim)
        loc, slope = self.skew.place(score, torch)
        return logits, loc, slope * (torch.nn.functional.softplus(raw) + self.min_std)

    def row_loss(self) -> RowLoss:
        """Return the log loss of each row."""
        import torch

        from evenhand.losses import nll_loss

        log_root = 0.5 * float(np.log(2 * np.pi))

        def loss(
            out: torch.Tensor, y: torch.Tensor, r: torch.Tensor | None, numbers: torch.Tensor
        ) -> torch.Tensor:
            # sums over the few components of a row are several times faster along the first axis
            logits, loc, std = self.tensors(out.movedim(-1, 0).contiguous(), dim=0)
            z = (y - loc) / std
            parts = logits - 0.5 * z * z - torch.log(std)
            log_density = torch.logsumexp(parts, dim=0) - torch.logsumexp(logits, dim=0) - log_root
            return nll_loss(log_density)

        return loss

    def to_state(self) -> dict[str, Any]:
        """Return JSON values."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Rebuild from the output of `to_state`."""
        skew = Skew(**typed_fields(Skew, state["skew"]))
        return cls(skew, typed("min_std", state["min_std"], float))
