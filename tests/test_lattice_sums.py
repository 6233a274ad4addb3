"""Sums over the values of counts and scores, against sums of the definition."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from scipy import special

from evenhand.distributions import (
    Categorical,
    Distribution,
    NegativeBinomial,
    Poisson,
    Randomized,
    Recalibrated,
)
from evenhand.links import make_link

MEANS = np.array([0.02, 1.5, 8.0, 40.0])
Y = np.array([0.0, 4.0, 2.5, 31.0])
VALUES = np.arange(3000.0)


def bases() -> dict[str, Distribution]:
    counts = NegativeBinomial(MEANS, [0.1, 2.0, 0.5, 0.05])
    scores = [[0.2, 0.5, 0.3], [0.0, 0.0, 1.0], [0.1, 0.9, 0.0], [1.0, 0.0, 0.0]]
    return {
        "poisson": Poisson(MEANS),
        "negative binomial": counts,
        "scores": Categorical([1, 2, 5], scores),
        "recalibrated": Recalibrated(counts, [0, 0.2, 1], [0, 0.5, 1]),
        "recalibrated by group": Recalibrated(
            counts, [[0, 0.2, 1], [0, 0.6, 1]], [[0, 0.5, 1], [0, 0.5, 1]], [0, 1, 1, 0]
        ),
    }


def by_definition(batch: Distribution, y: Any) -> tuple[Any, Any, Any]:
    """Return mean, standard deviation and CRPS from the CDF at whole numbers."""
    wide = batch.expand()
    lower, upper = wide.cdf(VALUES), wide.sf(VALUES)
    mean = upper.sum(axis=-1)  # outcomes are whole numbers of at least 0
    square = ((2 * VALUES + 1) * upper).sum(axis=-1)
    point = np.asarray(y)[..., None]
    below = np.clip(point - VALUES, 0, 1)
    crps = (lower**2 * below + upper**2 * (1 - below)).sum(axis=-1)
    return mean, np.sqrt(np.maximum(square - mean**2, 0)), crps


@pytest.mark.parametrize("name", bases())
def test_moments_and_crps_are_the_sums_of_the_definition(name: str) -> None:
    batch = bases()[name]
    found = batch.mean(), batch.std(), batch.crps(Y)
    for one, expected in zip(found, by_definition(batch, Y), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-8, atol=1e-7)


@pytest.mark.parametrize("link", ["entropic", "laplace", "gaussian"])
@pytest.mark.parametrize("name", bases())
def test_sums_of_randomized_lattices_are_those_of_the_definition(name: str, link: str) -> None:
    r = np.array([[0.003, 0.3, 0.97]])
    batch = Randomized(bases()[name].expand(), make_link(link, 0.2), r)
    found = batch.mean(), batch.std(), batch.crps(Y[:, None])
    for one, expected in zip(found, by_definition(batch, Y[:, None]), strict=True):
        np.testing.assert_allclose(one, expected, rtol=1e-8, atol=1e-7)
    one_each = Randomized(bases()[name], make_link(link, 0.2), np.full(4, 0.3))
    np.testing.assert_allclose(one_each.mean(), found[0][:, 1], rtol=1e-12)
    np.testing.assert_allclose(one_each.crps(Y), found[2][:, 1], rtol=1e-12)


def test_sums_of_a_person_do_not_depend_on_others() -> None:
    # the last two have too many values for sums
    means = np.array([0.1, 3.0, 50.0, 2000.0, 1e5])
    batch = Randomized(NegativeBinomial(means[:, None], 0.8), make_link("entropic", 0.1), [[0.2]])
    y = np.array([0.0, 5.0, 20.0, 1500.0, 2e5])[:, None]
    for row in range(5):
        alone = batch.take([row])
        np.testing.assert_allclose(alone.mean(), batch.mean()[[row]], rtol=1e-12)
        np.testing.assert_allclose(alone.std(), batch.std()[[row]], rtol=1e-12)
        np.testing.assert_allclose(alone.crps(y[[row]]), batch.crps(y)[[row]], rtol=1e-12)
    assert np.isfinite(batch.std()).all()


@pytest.mark.parametrize("link", ["entropic", "gaussian"])
def test_the_mean_over_draws_is_the_integral_of_means(link: str) -> None:
    # draws at Gauss-Legendre nodes of the normal score up to 7.5, beyond which is less than 1e-13
    score, weight = special.roots_legendre(3000)
    score, weight = 7.5 * score, 7.5 * weight
    weight = weight * np.exp(-(score**2) / 2) / np.sqrt(2 * np.pi)
    base = Poisson([[8.0], [0.3]])
    batch = Randomized(base, make_link(link, 0.2), special.ndtr(score)[None])
    found = batch.mean_over_draws()
    np.testing.assert_allclose(found[:, 0], batch.mean() @ weight, rtol=1e-8)


def test_distributions_with_sums_can_be_pickled() -> None:
    batch = Randomized(Poisson(MEANS[:, None]), make_link("entropic", 0.1), [[0.2, 0.6]])
    mean = batch.mean()
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(batch)).mean(), mean)
