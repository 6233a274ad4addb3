"""A stack of fully connected networks that train and score side by side, one matrix product for all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from evenhand._checks import Floats, bad_input, check_choice

Weights = dict[str, NDArray[np.float32]]

CHUNK = 32_768
"""Rows times networks that are scored at once."""


ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "leaky_relu": torch.nn.functional.leaky_relu,
    "silu": torch.nn.functional.silu,
}


@dataclass(frozen=True)
class Shape:
    """Shape of one network of a stack.

    Parameters
    ----------
    n_inputs, n_outputs : int
        Columns in and out.
    hidden : tuple of int
        Units of the hidden layers.
    takes_draw : bool
        Whether the draw `r` joins the inputs of the second and later hidden layers, as in the paper's published code.
    dropout : float
        Share of the last hidden layer's units that is dropped in training.
    activation : {"leaky_relu", "silu"}
        Of the hidden layers.
    """

    n_inputs: int
    n_outputs: int
    hidden: tuple[int, ...]
    takes_draw: bool
    dropout: float
    activation: str = "leaky_relu"

    def __post_init__(self) -> None:
        check_choice("activation", self.activation, tuple(ACTIVATIONS))

    def layers(self) -> list[tuple[int, int]]:
        """Inputs and outputs of each layer."""
        sizes = [self.n_inputs, *self.hidden, self.n_outputs]
        last = len(self.hidden)
        return [(size + int(self.takes_draw and 0 < i < last), sizes[i + 1]) for i, size in enumerate(sizes[:-1])]


class Stack(torch.nn.Module):
    """Networks of one shape; every parameter has a leading axis over networks."""

    def __init__(self, shape: Shape, n_networks: int, generator: torch.Generator | None = None) -> None:
        super().__init__()
        # never torch's global generator, which belongs to the caller
        generator = generator or torch.Generator()
        self.shape, self.n_networks = shape, n_networks
        self.kernels, self.biases = torch.nn.ParameterList(), torch.nn.ParameterList()
        for n_in, n_out in shape.layers():
            bound = n_in**-0.5
            for group, size in ((self.kernels, (n_in, n_out)), (self.biases, (1, n_out))):
                uniform = torch.rand((n_networks, *size), generator=generator)
                group.append(torch.nn.Parameter((2 * uniform - 1) * bound))

    def forward(self, x: torch.Tensor, r: torch.Tensor | None, generator: torch.Generator | None) -> torch.Tensor:
        """Outputs, shape (networks, rows, outputs), from `x` (networks, rows, inputs) and `r` (networks, rows)."""
        last = len(self.kernels) - 1
        activation = ACTIVATIONS[self.shape.activation]
        for i, (kernel, bias) in enumerate(zip(self.kernels, self.biases, strict=True)):
            if i in (0, last) or r is None:
                x = torch.baddbmm(bias, x, kernel)
            else:
                x = torch.baddbmm(bias, x, kernel[:, :-1]) + r[..., None] * kernel[:, -1:]
            if i < last:
                x = activation(x)
            if i == last - 1 and self.training and self.shape.dropout > 0:
                x = x * _dropout_mask(x, self.shape.dropout, generator)
        return x

    def to_weights(self) -> Weights:
        """Parameters as arrays, the first axis over networks."""
        named = {f"kernel_{i}": p for i, p in enumerate(self.kernels)} | {
            f"bias_{i}": p for i, p in enumerate(self.biases)
        }
        return {name: p.detach().cpu().numpy().astype(np.float32) for name, p in named.items()}

    @classmethod
    def from_weights(cls, shape: Shape, weights: Weights) -> Stack:
        """Rebuild a stack from its parameters."""
        stack = cls(shape, next(iter(weights.values())).shape[0])
        with torch.no_grad():
            for i in range(len(stack.kernels)):
                stack.kernels[i].copy_(torch.from_numpy(weights[f"kernel_{i}"]))
                stack.biases[i].copy_(torch.from_numpy(weights[f"bias_{i}"]))
        return stack


def _dropout_mask(x: torch.Tensor, dropout: float, generator: torch.Generator | None) -> torch.Tensor:
    """Zeros and 1/keep, with the share of zeros a multiple of 1/256: eight units from one random integer."""
    # a byte is at most 255: next to no dropout drops one unit in 256
    n_kept = min(max(round(256 * (1 - dropout)), 1), 255)
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64, device=x.device)
    bits = words.random_(-(2**63), None, generator=generator).view(torch.uint8)[: x.numel()]
    return (bits < n_kept).view(x.shape) * (256 / n_kept)


def pick_device(device: str) -> torch.device:
    """Return the torch device; "auto" takes a CUDA device if there is one."""
    check_choice("device", device, ("auto", "cpu", "cuda"))
    has_cuda = torch.cuda.is_available()
    if device == "cuda" and not has_cuda:
        raise bad_input("device", "be 'auto' or 'cpu' where there is no CUDA device", repr(device))
    return torch.device("cuda" if device != "cpu" and has_cuda else "cpu")


def score(shape: Shape, weights: Weights, x: Floats, r: Floats | None, device: str) -> Floats:
    """Outputs in float64, shape (networks, rows, outputs) or, over draws, (networks, rows, draws, outputs).

    Parameters
    ----------
    x : ndarray of shape (n, n_inputs)
        Encoded rows.
    r : ndarray of shape (n,), (1, m) or (n, m), or None
        Draws.
    """
    where = pick_device(device)
    stack = Stack.from_weights(shape, weights).double().eval().to(where)
    m = r.shape[1] if r is not None and r.ndim == 2 else 1
    draws = None if r is None else np.broadcast_to(r if r.ndim == 2 else r[:, None], (x.shape[0], m))
    step = max(1, CHUNK // (m * stack.n_networks))
    parts = []
    with torch.inference_mode():
        for start in range(0, x.shape[0], step):
            rows = np.repeat(x[start : start + step], m, axis=0)
            block = torch.from_numpy(rows).to(where).expand(stack.n_networks, -1, -1)
            at = None
            if draws is not None:
                flat = draws[start : start + step].flatten()
                at = torch.from_numpy(flat).to(where).expand(stack.n_networks, -1)
            parts.append(stack(block, at, None).cpu().numpy())
    out = np.concatenate(parts, axis=1)
    return out.reshape(out.shape[0], x.shape[0], m, -1) if r is not None and r.ndim == 2 else out
