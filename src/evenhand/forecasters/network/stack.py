"""Stack of fully connected networks, trained and evaluated in batched matrix products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from evenhand._validate import Floats, InputError, check_choice

Weights = dict[str, NDArray[np.float32]]

BLOCK_INPUTS = 8_192
GPU_BLOCK_INPUTS = 262_144
"""Number of rows times draws times networks evaluated at once; on a GPU a layer of 100 units then
takes 200 MB."""


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
        Numbers of inputs and outputs.
    hidden : tuple of int
        Numbers of units of the hidden layers.
    takes_draw : bool
        Whether the draw `r` is an additional input of all hidden layers except the first, as in
        the paper's published code.
    dropout : float
        Share of the last hidden layer's units that is dropped in training.
    activation : {"leaky_relu", "silu"}
        Activation function of the hidden layers.
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
        """Return the numbers of inputs and outputs of each layer."""
        sizes = [self.n_inputs, *self.hidden, self.n_outputs]
        last = len(self.hidden)
        return [
            (size + int(self.takes_draw and 0 < i < last), sizes[i + 1])
            for i, size in enumerate(sizes[:-1])
        ]


class Stack(torch.nn.Module):
    """Networks of the same shape, with networks along the first axis of every parameter."""

    def __init__(
        self, shape: Shape, n_networks: int, generator: torch.Generator | None = None
    ) -> None:
        super().__init__()
        # not torch's global generator, which belongs to the caller, and always on the CPU, so that
        # a seed gives the same initial weights on any device
        generator = generator or torch.Generator()
        self.shape = shape
        self.n_networks = n_networks
        self.kernels, self.biases = torch.nn.ParameterList(), torch.nn.ParameterList()
        for n_in, n_out in shape.layers():
            # torch's default initialization of a linear layer
            bound = n_in**-0.5
            for group, size in ((self.kernels, (n_in, n_out)), (self.biases, (1, n_out))):
                uniform = torch.rand((n_networks, *size), generator=generator, device="cpu")
                group.append(torch.nn.Parameter((2 * uniform - 1) * bound))

    def forward(
        self, x: torch.Tensor, r: torch.Tensor | None, generator: torch.Generator | None
    ) -> torch.Tensor:
        """Return outputs (networks, rows, outputs) for `x` (networks, rows, inputs) and draws."""
        drop = None
        if self.training and self.shape.dropout > 0:

            def drop(x: torch.Tensor) -> torch.Tensor:
                return x * _dropout_mask(x, self.shape.dropout, generator)

        return _evaluate(self.shape, list(self.kernels), list(self.biases), x, r, drop)

    def to_weights(self) -> Weights:
        """Return the parameters as arrays, with networks along the first axis."""
        named = {f"kernel_{i}": p for i, p in enumerate(self.kernels)} | {
            f"bias_{i}": p for i, p in enumerate(self.biases)
        }
        return {name: p.detach().cpu().numpy().astype(np.float32) for name, p in named.items()}


def _evaluate(
    shape: Shape,
    kernels: list[torch.Tensor],
    biases: list[torch.Tensor],
    x: torch.Tensor,
    r: torch.Tensor | None,
    drop: Callable[[torch.Tensor], torch.Tensor] | None = None,
) -> torch.Tensor:
    """Return outputs for `x` and draws; `drop` is applied to the last hidden layer."""
    last = len(kernels) - 1
    activation = ACTIVATIONS[shape.activation]
    for i, (kernel, bias) in enumerate(zip(kernels, biases, strict=True)):
        # the draw is an input of all hidden layers except the first
        if i in (0, last) or r is None:
            x = torch.baddbmm(bias, x, kernel)
        else:
            # the draw's column is multiplied separately, which avoids a copy of the inputs
            x = torch.baddbmm(bias, x, kernel[:, :-1]) + r[..., None] * kernel[:, -1:]
        if i < last:
            x = activation(x)
        if i == last - 1 and drop is not None:
            x = drop(x)
    return x


def _dropout_mask(
    x: torch.Tensor, dropout: float, generator: torch.Generator | None
) -> torch.Tensor:
    """Return a mask of zeros and 1/keep, with eight units from each random integer.

    The share of zeros is a multiple of 1/256.
    """
    # a byte is at most 255, so the smallest possible dropout is one unit in 256
    n_kept = min(max(round(256 * (1 - dropout)), 1), 255)
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64, device=x.device)
    bits = words.random_(-(2**63), None, generator=generator).view(torch.uint8)[: x.numel()]
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

    Parameters
    ----------
    x : ndarray of shape (n, n_inputs)
        Encoded rows.
    r : ndarray of shape (n,), (1, m) or (n, m), or None
        Draws.
    """
    where = pick_device(device)
    m = r.shape[1] if r is not None and r.ndim == 2 else 1
    draws = (
        None if r is None else np.broadcast_to(r if r.ndim == 2 else r[:, None], (x.shape[0], m))
    )
    parts = []
    # float64, as PITs near 0 and 1 need the precision
    remedy = "predict fewer rows at once, or set device='cpu'"
    with device_errors(where, remedy), torch.inference_mode():
        # plain tensors: registering them as parameters takes longer than the forecast of a row
        kernels, biases = (
            [
                torch.tensor(weights[f"{name}_{i}"], dtype=torch.float64, device=where)
                for i in range(len(shape.layers()))
            ]
            for name in ("kernel", "bias")
        )
        n_networks = len(kernels[0])
        step = max(
            1, (BLOCK_INPUTS if where.type == "cpu" else GPU_BLOCK_INPUTS) // (m * n_networks)
        )
        for start in range(0, x.shape[0], step):
            cut = slice(start, start + step)
            # rows are repeated on the device, which saves transfers
            rows = torch.tensor(x[cut], device=where)
            block = rows.repeat_interleave(m, dim=0).expand(n_networks, -1, -1)
            at = None
            if draws is not None:
                at = torch.tensor(draws[cut].flatten(), device=where).expand(n_networks, -1)
            parts.append(_evaluate(shape, kernels, biases, block, at).cpu().numpy())
    out = np.concatenate(parts, axis=1)
    return out.reshape(out.shape[0], x.shape[0], m, -1) if r is not None and r.ndim == 2 else out
