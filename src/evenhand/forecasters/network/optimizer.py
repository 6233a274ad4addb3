"""AdamW for the parameters of a stack of networks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.optim.adamw import adamw

from evenhand.forecasters.network.settings import Settings
from evenhand.forecasters.network.stack import Stack

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
