"""Axioms of distributions with atoms: left limits, masses, quantiles, moments and scores."""

from __future__ import annotations

import numpy as np
import pytest

from distribution_examples import WITH_ATOMS, Example, Floats, Shape, frozen, some
from evenhand.distributions import Distribution, OutcomeKind
from quadrature import panels

LEVELS = frozen([1e-12, 1e-6, 0.001, 0.043, 0.2, 0.5, 0.71, 0.97, 1 - 1e-6, 1 - 1e-12])


def is_lattice(batch: Distribution) -> bool:
    return batch.outcome_kind in (OutcomeKind.COUNT, OutcomeKind.BINARY)


def nodes_of(batch: Distribution) -> Floats:
    """Return outcomes, all atoms of at least 1e-9 among them, batch shape + (q,)."""
    return np.broadcast_to(
        batch.nodes(9.0, 1 / 16), (*batch.batch_shape, batch.nodes(9.0, 1 / 16).shape[-1])
    )


@pytest.mark.parametrize(("example", "shape"), some(WITH_ATOMS, 0))
def test_left_limits_are_limits_from_below(example: Example, shape: Shape) -> None:
    batch = example.build(shape)
    assert batch.has_atoms
    wide, y = batch.expand(), nodes_of(batch)
    below = np.nextafter(y, -np.inf)
    for left, right in (("logcdf_left", "logcdf"), ("logsf_left", "logsf")):
        at, before = getattr(wide, left)(y), getattr(wide, right)(below)
        # a step of one float changes a continuous part by rounding alone
        np.testing.assert_allclose(np.exp(at), np.exp(before), rtol=1e-7, atol=1e-15)
    np.testing.assert_allclose(wide.cdf_left(y) + wide.sf_left(y), 1, atol=1e-13)
    np.testing.assert_allclose(wide.cdf(y) + wide.sf(y), 1, atol=1e-13)
    np.testing.assert_allclose(wide.cdf(y), np.exp(wide.logcdf(y)), rtol=1e-13, atol=1e-14)
    for values in (wide.cdf(y), -wide.sf(y), wide.cdf_left(y)):
        assert (np.diff(values, axis=-1) >= -1e-14).all()
    assert not np.isnan(wide.logpdf(y)).any()


@pytest.mark.parametrize(("example", "shape"), some(WITH_ATOMS, 1))
def test_masses_are_the_jumps_of_the_cdf(example: Example, shape: Shape) -> None:
    batch = example.build(shape)
    wide, y = batch.expand(), nodes_of(batch)
    mass = np.exp(wide.log_mass(y))
    np.testing.assert_allclose(mass, wide.cdf(y) - wide.cdf_left(y), atol=1e-13)
    np.testing.assert_allclose(mass, wide.sf_left(y) - wide.sf(y), atol=1e-13)
    # between the atoms there is none
    assert np.isneginf(wide.log_mass(np.nextafter(y, np.inf))).all()
    if is_lattice(batch) and example.name not in ("many", "randomized many"):
        fresh = np.diff(y, axis=-1, prepend=-np.inf) > 0
        np.testing.assert_allclose((mass * fresh).sum(axis=-1), 1, atol=1e-11)
        assert np.isneginf(wide.logpdf(y)).all()


@pytest.mark.parametrize(("example", "shape"), some(WITH_ATOMS, 2))
def test_the_density_beside_an_atom_is_the_slope_of_the_cdf(example: Example, shape: Shape) -> None:
    batch = example.build(shape).expand()
    if is_lattice(batch):
        return  # it has none
    levels = np.array([0.21, 0.5, 0.71, 0.97])
    low, high = (batch.ppf(levels + step) for step in (-1e-6, 1e-6))
    is_beside = np.isneginf(batch.log_mass(low)) & np.isneginf(batch.log_mass(high))
    assert is_beside.any()
    width = np.where(is_beside, high - low, 1.0)
    slope = (batch.cdf(high) - batch.cdf(low)) / width
    density = np.exp(batch.logpdf((low + high) / 2))
    np.testing.assert_allclose(density[is_beside], slope[is_beside], rtol=1e-3)


@pytest.mark.parametrize(("example", "shape"), some(WITH_ATOMS, 3))
def test_quantiles_are_the_least_outcomes_of_enough_probability(
    example: Example, shape: Shape
) -> None:
    batch = example.build(shape).expand()
    for upper in (False, True):
        levels = np.minimum(LEVELS, 1 - 1e-9)
        y = batch.quantile_from_tail(np.log(levels), np.full(levels.shape, upper))
        assert np.isfinite(y).all()
        # relative to the tail that is given: the tolerance of quantiles, and of the links' tables
        slack = 3e-8 * levels + 1e-15
        if upper:
            assert (batch.sf(y) <= levels + slack).all()
            assert (batch.sf_left(y) >= levels - slack).all()
        else:
            assert (batch.cdf(y) >= levels - slack).all()
            assert (batch.cdf_left(y) <= levels + slack).all()
    assert (np.diff(batch.ppf(LEVELS), axis=-1) >= 0).all()


@pytest.mark.parametrize(("example", "shape"), some(WITH_ATOMS, 4))
def test_the_quantile_at_the_cdf_of_an_atom_is_the_atom(example: Example, shape: Shape) -> None:
    batch = example.build(shape).expand()
    y = nodes_of(example.build(shape))
    is_atom = np.exp(batch.log_mass(y)) > 1e-6
    assert is_atom.any()
    cdf, sf = batch.cdf(y), batch.sf(y)
    with np.errstate(divide="ignore"):
        for tail, upper in ((cdf, False), (sf, True)):
            back = batch.quantile_from_tail(np.log(tail), np.full(y.shape, upper))
            # at probability 1 the quantile is the end of the support
            inner = is_atom & (cdf < 1 - 1e-9) & (cdf > 1e-9)
            np.testing.assert_array_equal(back[inner], y[inner])
    middle = (batch.cdf(y) + batch.cdf_left(y)) / 2
    back = batch.ppf(middle)
    np.testing.assert_array_equal(back[is_atom], y[is_atom])


def by_integrals(batch: Distribution, outcomes: Floats) -> tuple[Floats, Floats, Floats]:
    """Mean, standard deviation and CRPS by tail integrals, with an edge at each atom.

    E Y = c + integral_c^inf S - integral_-inf^c F, E (Y - c)^2 = 2 integral |y - c| (S or F), CRPS
    = integral_-inf^y F^2 + integral_y^inf S^2.
    """
    wide = batch.expand()
    edges = nodes_of(batch)
    centre = edges[..., edges.shape[-1] // 2][..., None]
    edges = np.sort(np.concatenate((edges, outcomes, centre), axis=-1), axis=-1)
    y, weight = panels(edges, order=6)
    cdf, sf = wide.cdf(y), wide.sf(y)
    above = y > centre
    mean = (weight * np.where(above, sf, -cdf)).sum(axis=-1)
    square = 2 * (weight * np.abs(y - centre) * np.where(above, sf, cdf)).sum(axis=-1)
    crps = [
        (weight * np.where(y > at[..., None], sf, cdf) ** 2).sum(-1)
        for at in np.moveaxis(outcomes, -1, 0)
    ]
    return mean + centre[..., 0], np.sqrt(square - mean**2), np.stack(crps, axis=-1)


@pytest.mark.parametrize(("example", "shape"), some(WITH_ATOMS, 5))
def test_mean_deviation_and_crps_agree_with_integrals(example: Example, shape: Shape) -> None:
    batch = example.build(shape)
    outcomes = batch.expand().ppf(np.array([0.004, 0.3, 0.6, 0.99]))
    # an outcome that is none of the values of a lattice has a score too
    outcomes[..., 1] += 0.3
    mean, std, crps = by_integrals(batch, outcomes)
    np.testing.assert_array_less(np.abs(batch.mean() - mean) / std, example.tolerance)
    np.testing.assert_array_less(np.abs(batch.std() / std - 1), example.tolerance)
    for k in range(outcomes.shape[-1]):
        np.testing.assert_array_less(
            np.abs(batch.crps(outcomes[..., k]) - crps[..., k]) / std, example.tolerance
        )
    for far, sign in ((batch.mean() + 50 * batch.std(), 1), (batch.mean() - 50 * batch.std(), -1)):
        # the distance to the mean, less half the mean difference of two copies
        gap = sign * (far - mean) - batch.crps(far)
        assert ((gap > 0) & (gap < 0.6 * std)).all()


@pytest.mark.parametrize(("example", "shape"), some(WITH_ATOMS, 6))
def test_expectations_are_those_of_the_outcome(example: Example, shape: Shape) -> None:
    batch = example.build(shape)
    mean, std = batch.mean(), batch.std()
    tolerance = 3 * example.tolerance
    for expect in (batch.expectation, batch.smooth_expectation):
        assert expect(np.square).shape == shape
        found = expect(lambda y: (y - mean[..., None]) / std[..., None])
        np.testing.assert_allclose(found, 0, atol=tolerance)
        square = expect(lambda y: ((y - mean[..., None]) / std[..., None]) ** 2)
        np.testing.assert_allclose(square, 1, atol=tolerance)
    if is_lattice(batch) and "many" not in example.name:
        # functions with jumps, too
        at = batch.ppf(0.6)
        found = batch.expectation(lambda y: (y <= at[..., None]).astype(float))
        np.testing.assert_allclose(found, batch.cdf(at), atol=1e-9)
