"""Theorems about forecasts of outcomes with atoms, from the served distributions."""

import numpy as np
import pytest
from scipy import stats

from evenhand.distributions import Randomized
from evenhand.draws import fresh, nodes
from evenhand.forecast import Forecast
from evenhand.links import LINKS

N_DRAWS = 4000
R = nodes(N_DRAWS)
C = (np.arange(1000) + 0.5) / 1000


def counts(family, *parameters):
    """Return the values and probabilities of a law up to 1e-12 of each tail."""
    law = family(*parameters)
    y = np.arange(law.ppf(1e-12), law.isf(1e-12) + 1)
    return y, law.pmf(y)


def atom_and_rest(chance, n=400):
    """Return quantiles of half-normal outcomes with an atom at 0, each standing for its cell."""
    levels = (np.arange(n) + 0.5) / n
    y = stats.halfnorm.ppf(levels)
    return np.append(0.0, y), np.append(chance, np.full(n, (1 - chance) / n))


def hurdle(chance, n=1):
    return Forecast.from_hurdle(np.full(n, chance), Forecast.from_normal(np.zeros(n), 1.0))


ORDINAL = (0.1, 0.2, 0.4, 0.2, 0.1)

LAWS = {
    "poisson 2": (lambda: Forecast.from_poisson([2.0]), counts(stats.poisson, 2.0)),
    "poisson 20": (lambda: Forecast.from_poisson([20.0]), counts(stats.poisson, 20.0)),
    "poisson 0.5": (lambda: Forecast.from_poisson([0.5]), counts(stats.poisson, 0.5)),
    "negative binomial": (
        lambda: Forecast.from_negative_binomial([3.0], 0.5),
        counts(stats.nbinom, 2.0, 0.4),
    ),
    "ordinal of 5": (
        lambda: Forecast.from_pmf(np.arange(5), [ORDINAL]),
        (np.arange(5.0), np.array(ORDINAL)),
    ),
    "atom 0.5": (lambda: hurdle(0.5), atom_and_rest(0.5)),
    "event 0.2": (lambda: Forecast.from_probability([0.2]), (np.arange(2.0), np.array([0.8, 0.2]))),
}


def over_all(forecast, link, alpha, n, r=R):
    """Return the link over the whole CDF for n rows, also where `randomized` does not offer it."""
    base = forecast[np.zeros(n, dtype=int)].distribution.expand()
    return Forecast(Randomized(base, LINKS[link](alpha), r), r)


def cells(name, link, alpha, r=R):
    build, (y, mass) = LAWS[name]
    low, high = over_all(build(), link, alpha, y.size, r).pit_interval(y)
    return low, high, mass


@pytest.mark.parametrize("link", ["entropic", "gaussian"])
@pytest.mark.parametrize("alpha", [0.05, 0.12, 0.3])
@pytest.mark.parametrize("name", LAWS)
def test_an_exact_link_over_the_cdf_is_calibrated_in_the_cell_reading(name, alpha, link):
    # I(x) = integral dist(c, [A(c), B(c)]) dc is 0 for every person (Theorem 2a)
    low, high, mass = cells(name, link, alpha)
    share = np.repeat(mass / N_DRAWS, N_DRAWS)

    def below(ends):
        order = np.argsort(ends, axis=None)
        total = np.append(0.0, np.cumsum(share[order]))
        return total[np.searchsorted(ends.ravel()[order], C, side="right")]

    at_least, at_most = below(high), below(low)
    distance = np.maximum(at_least - C, 0) + np.maximum(C - at_most, 0)
    assert distance.mean() < 1e-4


@pytest.mark.parametrize("chance", [0.3, 0.5, 0.8])
def test_randomized_hurdles_are_uniform(chance):
    # Kolmogorov-Smirnov at 1e-6
    n = 100_000
    rng = np.random.default_rng(1)
    y = np.where(rng.uniform(size=n) < chance, 0.0, np.abs(rng.normal(size=n)))
    served = hurdle(chance, n).randomized(0.12, random_state=2)
    pit = served.pit(y, ties=fresh(n, 3))
    assert stats.kstest(pit, "uniform").pvalue > 1e-6
    np.testing.assert_allclose(np.exp(served.log_mass(0.0)), chance, rtol=1e-12)
    # the positive part is a forecast that a certificate for continuous outcomes covers
    is_positive = y > 0
    part = served[is_positive].positive_part()
    assert stats.kstest(part.pit(y[is_positive]), "uniform").pvalue > 1e-6
    found = pit[is_positive]
    np.testing.assert_allclose(found, chance + (1 - chance) * part.cdf(y[is_positive]), rtol=1e-12)
