"""Training objectives of randomized forecasters (method: the paper's objective).

A network that takes a draw `r` and returns a distribution is trained on
`(1 - alpha) * mean |h[x, r](y) - r| + alpha * mean(-log density)` with a fresh `r` at each step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenhand._validate import check_fraction, require_extra

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["individual_calibration_loss", "nll_loss", "paic_loss"]


def paic_loss(pit: Tensor, r: Tensor) -> Tensor:
    """Return the distance of PITs from their draws, `|h[x, r](y) - r|`, elementwise.

    Parameters
    ----------
    pit : Tensor
        CDF of the forecast at the outcome, between 0 and 1.
    r : Tensor
        Draws at which the forecasts were made; broadcasts against `pit`.

    Returns
    -------
    Tensor
        Values between 0 and 1; their mean is the paper's individual-calibration term.

    Examples
    --------
    >>> import torch
    >>> paic_loss(torch.tensor([0.5, 1.0]), torch.tensor([0.5, 0.5]))
    tensor([0.0000, 0.5000])
    """
    return (pit - r).abs()


def nll_loss(log_density: Tensor) -> Tensor:
    """Return the negative log density of the outcome, elementwise, in nats.

    Examples
    --------
    >>> import torch
    >>> nll_loss(torch.tensor([-1.5]))
    tensor([1.5000])
    """
    return -log_density


def individual_calibration_loss(
    pit: Tensor, log_density: Tensor, r: Tensor, alpha: float | Tensor = 0.1
) -> Tensor:
    """Return the paper's objective `(1 - alpha) |pit - r| - alpha log_density`, elementwise.

    Parameters
    ----------
    pit, log_density : Tensor
        CDF and log density of the forecast at the outcome, with gradients.
    r : Tensor
        The draws, fresh at each step.
    alpha : float or Tensor, default 0.1
        Weight of sharpness, 0 < alpha <= 1. A tensor trains several networks simultaneously, each
        with its own weight.

    Returns
    -------
    Tensor
        Loss of each element; the training loss is the mean over the batch.

    Examples
    --------
    The loss of normal forecasts, whose mean and std any network may predict:

    >>> import torch
    >>> mean, std = torch.zeros(3, requires_grad=True), torch.ones(3)
    >>> y, r = torch.tensor([0.0, 1.0, -1.0]), torch.rand(3)
    >>> forecast = torch.distributions.Normal(mean, std)
    >>> pit, log_density = forecast.cdf(y), forecast.log_prob(y)
    >>> individual_calibration_loss(pit, log_density, r, alpha=0.1).mean().backward()
    """
    torch = require_extra("torch", "neural")
    # a tensor of alphas, one per network of a path, is validated by the caller
    if not isinstance(alpha, torch.Tensor):
        check_fraction("alpha", float(alpha), high_open=False)
    return (1 - alpha) * paic_loss(pit, r) + alpha * nll_loss(log_density)
