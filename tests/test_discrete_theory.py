"""A theorem about forecasts of outcomes with atoms, from the served distributions."""

import numpy as np
import pytest
from scipy import stats

from evenhand.distributions import Randomized
from evenhand.draws import nodes
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
    y = stats.halfnorm.ppf((np.arange(n) + 0.5) / n)
    return np.append(0.0, y), np.append(chance, np.full(n, (1 - chance) / n))


SCORES = np.arange(5.0), np.array([0.1, 0.2, 0.4, 0.2, 0.1])
HALF_NORMAL = Forecast.from_hurdle([0.5], Forecast.from_normal([0.0], 1.0))

LAWS = {
    "poisson 2": (Forecast.from_poisson([2.0]), counts(stats.poisson, 2.0)),
    "poisson 20": (Forecast.from_poisson([20.0]), counts(stats.poisson, 20.0)),
    "poisson 0.5": (Forecast.from_poisson([0.5]), counts(stats.poisson, 0.5)),
    "negative binomial": (
        Forecast.from_negative_binomial([3.0], 0.5),
        counts(stats.nbinom, 2.0, 0.4),
    ),
    "ordinal of 5": (Forecast.from_pmf(SCORES[0], [SCORES[1]]), SCORES),
    "atom 0.5": (HALF_NORMAL, atom_and_rest(0.5)),
    "event 0.2": (Forecast.from_probability([0.2]), (np.arange(2.0), np.array([0.8, 0.2]))),
}


@pytest.mark.parametrize(
    ("link", "alpha"), [("entropic", 0.05), ("gaussian", 0.12), ("entropic", 0.3)]
)
@pytest.mark.parametrize("name", LAWS)
def test_an_exact_link_over_the_cdf_is_calibrated_in_the_cell_reading(name, link, alpha):
    # I(x) = integral dist(c, [A(c), B(c)]) dc is 0 for every person (Theorem 2a)
    forecast, (y, mass) = LAWS[name]
    # also where `randomized` does not offer the link over the whole CDF
    base = forecast[np.zeros(y.size, dtype=int)].distribution.expand()
    low, high = Forecast(Randomized(base, LINKS[link](alpha), R), R).pit_interval(y)
    share = np.repeat(mass / N_DRAWS, N_DRAWS)

    def below(ends):
        order = np.argsort(ends, axis=None)
        total = np.append(0.0, np.cumsum(share[order]))
        return total[np.searchsorted(ends.ravel()[order], C, side="right")]

    at_least, at_most = below(high), below(low)
    distance = np.maximum(at_least - C, 0) + np.maximum(C - at_most, 0)
    assert distance.mean() < 1e-4
