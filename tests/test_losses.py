"""Training objectives: formulas by hand, gradients by finite differences, known values."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy import special, stats

from evenhand import InputError
from evenhand.forecasters import MixtureMLPRegressor, PAICRegressor
from evenhand.forecasters.network.neural import NeuralForecaster
from evenhand.links import Laplace, make_link
from evenhand.losses import individual_calibration_loss, nll_loss, paic_loss

Floats = NDArray[np.float64]

Y = np.array([0.3, -1.2, 2.5, 0.0])
R = np.array([0.2, 0.9, 0.5, 0.01])
PIT = np.array([0.25, 0.4, 1.0, 0.0])
LOG_DENSITY = np.array([-0.5, -2.0, 1.5, -30.0])


def tensor(values: object) -> torch.Tensor:
    return torch.as_tensor(np.asarray(values, dtype=np.float64))


# --- values


def test_paic_loss_is_the_distance_from_the_draw() -> None:
    assert paic_loss(tensor(PIT), tensor(R)).tolist() == pytest.approx(
        [0.05, 0.5, 0.5, 0.01], abs=1e-15
    )


def test_objective_weighs_the_two_by_alpha() -> None:
    # 0.75 * |pit - r| - 0.25 * log density
    by_hand = [0.0375 + 0.125, 0.375 + 0.5, 0.375 - 0.375, 0.0075 + 7.5]
    loss = individual_calibration_loss(tensor(PIT), tensor(LOG_DENSITY), tensor(R), alpha=0.25)
    assert loss.tolist() == pytest.approx(by_hand, abs=1e-14)
    at_one = individual_calibration_loss(tensor(PIT), tensor(LOG_DENSITY), tensor(R), alpha=1.0)
    assert torch.equal(at_one, nll_loss(tensor(LOG_DENSITY)))


@pytest.mark.parametrize("alpha", [0.0, float("nan")])
def test_alpha_outside_its_range_is_refused(alpha: float) -> None:
    with pytest.raises(InputError, match="alpha must satisfy 0 < alpha <= 1"):
        individual_calibration_loss(tensor(PIT), tensor(LOG_DENSITY), tensor(R), alpha=alpha)


# --- theory


def objective_over_the_truth(pit: Floats, log_density: Floats, r: Floats, alpha: float) -> float:
    return float(
        individual_calibration_loss(tensor(pit), tensor(log_density), tensor(r), alpha).mean()
    )


@pytest.mark.parametrize(
    ("alpha", "price", "error"), [(0.05, 1.374, 0.049), (0.2, 0.280, 0.176), (0.5, 0.024, 0.285)]
)
def test_objective_of_the_laplace_link_over_the_truth_agrees_with_the_table(
    alpha: float, price: float, error: float
) -> None:
    # Y uniform, so the entropy is 0 and the objective is (1 - alpha) * error + alpha * price; the
    # average over people and draws is the midpoint rule on 400 x 400 cells, and the table is
    # rounded to 0.0005
    cells = (np.arange(400) + 0.5) / 400
    y, r = (grid.ravel() for grid in np.meshgrid(cells, cells))
    link = Laplace(alpha)
    pit = link.ppf(y, r)
    value = objective_over_the_truth(pit, -link.logpdf(pit, r), r, alpha)
    assert value == pytest.approx((1 - alpha) * error + alpha * price, abs=0.0015)


@pytest.mark.parametrize("alpha", [0.05, 0.5])
def test_no_other_link_has_a_lower_objective_than_laplace_at_its_alpha(alpha: float) -> None:
    cells = (np.arange(400) + 0.5) / 400
    y, r = (grid.ravel() for grid in np.meshgrid(cells, cells))
    others = [
        make_link(name, alpha * factor)
        for name in ("laplace", "entropic", "gaussian")
        for factor in (0.8, 1.25)
    ]
    values = []
    for link in (Laplace(alpha), *others):
        pit = link.ppf(y, r)
        values.append(objective_over_the_truth(pit, -link.logpdf(pit, r), r, alpha))
    assert min(values[1:]) > values[0]


# --- gradients


def difference_quotient(
    function: Callable[[Floats], float], at: Floats, step: float = 1e-6
) -> Floats:
    """Gradient by central differences: error about step^2 and 1e-16 / step."""
    slope = np.empty(at.size)
    for i in range(at.size):
        ahead, behind = at.ravel().copy(), at.ravel().copy()
        ahead[i] += step
        behind[i] -= step
        slope[i] = (function(ahead.reshape(at.shape)) - function(behind.reshape(at.shape))) / (
            2 * step
        )
    return slope.reshape(at.shape)


def gradient(function: Callable[[torch.Tensor], torch.Tensor], at: Floats) -> Floats:
    variable = tensor(at).requires_grad_()
    function(variable).backward()
    assert variable.grad is not None
    return np.asarray(variable.grad.numpy())


def paic_by_hand(out: Floats, y: Floats, r: Floats, alphas: Floats) -> Floats:
    std = 5 * special.expit(out[..., 1]) + 0.01
    distribution = stats.norm(out[..., 0], std)
    return np.asarray(
        (1 - alphas) * np.abs(distribution.cdf(y) - r) - alphas * distribution.logpdf(y)
    )


def mixture_by_hand(out: Floats, y: Floats, r: Floats, alphas: Floats) -> Floats:
    logits, loc, raw = np.split(out, 3, axis=-1)
    density = stats.norm(loc, np.log1p(np.exp(raw)) + 0.002).pdf(y[..., None])
    return np.asarray(-np.log((special.softmax(logits, axis=-1) * density).sum(axis=-1)))


@pytest.mark.parametrize(
    ("model", "n_outputs", "by_hand"),
    [(PAICRegressor(), 2, paic_by_hand), (MixtureMLPRegressor(2, 3), 9, mixture_by_hand)],
    ids=["PAICRegressor", "MixtureMLPRegressor"],
)
def test_row_losses_of_the_networks_and_their_gradients_are_those_of_the_formulas(
    model: NeuralForecaster,
    n_outputs: int,
    by_hand: Callable[[Floats, Floats, Floats, Floats], Floats],
) -> None:
    alphas = [0.125, 0.5]  # exact in float32, in which the training keeps them
    model._alphas = alphas  # type: ignore[attr-defined]
    loss = model._row_loss()
    out = np.random.default_rng(1).normal(size=(2, Y.size, n_outputs))
    y, r, numbers = np.tile(Y, (2, 1)), np.tile(R, (2, 1)), torch.arange(2)

    def total(values: torch.Tensor) -> torch.Tensor:
        rows: torch.Tensor = loss(values, tensor(y), tensor(r), numbers)
        assert rows.shape == (2, Y.size)
        return rows.sum()

    def total_by_hand(values: Floats) -> float:
        return float(by_hand(values, y, r, np.array(alphas)[:, None]).sum())

    rows = loss(tensor(out), tensor(y), tensor(r), numbers).numpy()
    np.testing.assert_allclose(
        rows, by_hand(out, y, r, np.array(alphas)[:, None]), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_allclose(
        gradient(total, out), difference_quotient(total_by_hand, out), atol=1e-7
    )
    # a network that has left the stack takes its number with it
    alone = loss(tensor(out[1:]), tensor(y[1:]), tensor(r[1:]), numbers[1:]).numpy()
    np.testing.assert_allclose(alone[0], rows[1], rtol=1e-15)
