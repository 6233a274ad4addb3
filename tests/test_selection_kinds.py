"""The least certified randomization of counts, ordinal scores and amounts with zeros."""

import re
from functools import cache

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import PoissonRegressor

from complaints import refused
from discrete_laws import SLACK, CountWorld
from evenhand import CountRegressor, InputError, Outcomes, RandomizedRegressor, randomize
from evenhand.calibration import Cells
from evenhand.certificates import Choice, LatticeBounds, certify_link
from evenhand.distributions import OutcomeKind
from evenhand.forecast import Forecast
from evenhand.links import Entropic
from evenhand.outcomes import Rounding
from evenhand.selection.chosen_link import ALPHAS, Costs, Wrapped, last_passed
from evenhand.selection.target import largest_alpha
from repeats import most_failures, repeats, statistical

MASS = 0.2


def poisson(mean):
    counts = np.arange(int(mean + 12 * np.sqrt(mean) + 8))
    return np.asarray(stats.poisson.pmf(counts, mean))


LAWS = {"Poisson(2)": poisson(2.0), "ordinal of 5": np.array([0.1, 0.2, 0.3, 0.25, 0.15])}
"""Probabilities of 0, 1, 2, ..."""


def right_world(pmf, alpha):
    """Right forecasts for everyone, behind a link."""
    probabilities = tuple(pmf / pmf.sum())
    return CountWorld(Entropic(alpha), (probabilities,), (probabilities,))


def test_nothing_passes_after_the_first_failure(monkeypatch):
    bounds = {0.1: 0.2, 0.2: 0.31, 0.3: 0.1}
    monkeypatch.setattr("evenhand.selection.chosen_link.ALPHAS", tuple(bounds))
    assert last_passed(bounds.__getitem__, 0.3) == 0.1
    assert last_passed(bounds.__getitem__, 0.1) is None
    assert last_passed(bounds.__getitem__, 0.4) == 0.3


@statistical
@pytest.mark.parametrize(("name", "most"), [("Poisson(2)", 0.3), ("ordinal of 5", 0.33)])
def test_counts_are_falsely_certified_in_at_most_one_data_set_of_twenty(name, most):
    """1,000 data sets of each distribution; "false" is a chosen alpha with a larger group error.

    The model is right, and the error of the worst group is that of the distribution. No alpha from
    the first one on whose error is above the target is chosen unless that one passes, so it is
    tested first, and the whole sequence only if it passes.
    """
    pmf, n = LAWS[name], 250
    false = next(alpha for alpha in ALPHAS if true_error(name, alpha) > most + SLACK)
    n_sets = repeats(1000, shorter=64)
    broken = passed = 0
    for seed in range(n_sets):
        rng = np.random.default_rng([seed, n])
        low, high, _ = right_world(pmf, 1.0).sample(n, rng)
        bounds = LatticeBounds.of(Cells(low, high, ties=rng.random(n)), rng)

        def bound_at(alpha, bounds=bounds):
            return bounds.group_error(Entropic(alpha), MASS, 0.95, by_betting=True)

        # the sequence can be certified at all
        passed += seed < 10 and bound_at(ALPHAS[0]) <= most
        if bound_at(false) <= most:
            alpha = last_passed(bound_at, most)
            broken += alpha is not None and alpha >= false
    assert broken <= most_failures(n_sets, false_alarm=1e-4), broken
    assert passed >= 5


@cache
def true_error(name, alpha):
    return right_world(LAWS[name], alpha).worst(MASS)


def rate(X):
    return np.exp(1 + 0.4 * np.asarray(X)[:, 0])


def counts(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, rng.poisson(rate(X)).astype(float)


def law_of_counts(X):
    return Forecast.from_poisson(rate(X))


@pytest.fixture(scope="module")
def chosen_count():
    return randomize(law_of_counts, *counts(), goal=0.3, random_state=0)


def test_counts_are_certified_by_tests_in_order_and_served_as_counts(chosen_count):
    found = chosen_count
    proof = found.certificate
    assert proof.choice == Choice("tested", 0.3, MASS)
    assert found.kind is OutcomeKind.COUNT
    assert found.alpha in ALPHAS
    assert found.group_error == 0.3
    assert (found.n_learning, found.n_certifying, found.atom) == (0, 1500, None)
    plain = found.plain
    low, high = law_of_counts(counts()[0]).pit_interval(counts()[1])
    tail = (1 - plain.level) / 2
    assert plain.covered == np.mean((high >= tail) & (low < 1 - tail))
    assert found.rounding_step is None
    assert found.certificate.kind is OutcomeKind.COUNT
    assert "outcomes that are not continuous" not in " ".join(proof.not_covered)
    X, _ = counts(50, seed=1)
    quantiles = found.model.forecast(X, random_state=0).ppf([0.1, 0.5, 0.9])
    assert (quantiles == np.round(quantiles)).all()
    assert found.statement.startswith("In every group of at least 20% of people, predicted")
    assert "off by at most 30.0 points" in found.statement


def test_a_score_with_a_largest_value_is_forecast_within_its_scale():
    X, y = counts(400)
    y = np.minimum(y + 12, 20.0)
    free, bounded = (
        RandomizedRegressor(CountRegressor(PoissonRegressor(), largest=largest), 0.2).fit(X, y)
        for largest in (None, 20)
    )
    r = np.linspace(0.01, 0.99, 99)[None]
    assert free.forecast(X[:50], r).ppf(0.95).max() > 20
    forecast = bounded.forecast(X[:50], r)
    assert forecast.ppf(0.999).max() == 20
    np.testing.assert_array_equal(forecast.cdf(20), 1.0)
    # the distribution without a limit, given that it is kept
    base, inner = bounded.base_forecast(X[:50]), free.base_forecast(X[:50])
    np.testing.assert_allclose(base.cdf(15), inner.cdf(15) / inner.cdf(20), rtol=1e-9)
    with pytest.raises(InputError, match=r"y\[\d+\] must be at most largest=19, got 20"):
        CountRegressor(PoissonRegressor(), largest=19).fit(X, y)


def test_the_price_of_counts_is_lost_log_probability(chosen_count):
    X, y = counts()
    found = chosen_count
    scores = found.comparison.set_index("forecaster")
    own = -stats.poisson.logpmf(y, rate(X)).mean()
    assert scores.loc["as it is", "log_score"] == pytest.approx(own, rel=1e-9)
    r = np.random.default_rng(5).uniform(size=(y.size, 64))
    law = law_of_counts(X)
    link = Entropic(found.alpha)
    low, high = (np.asarray(end)[:, None] for end in law.pit_interval(y))
    mass = link.ppf(high, r) - link.ppf(low, r)
    # other draws: 1,500 people of deviation about 1
    price = -np.log(mass).mean() - own
    assert found.price == pytest.approx(price, abs=5 / np.sqrt(y.size * 16))
    assert scores.loc["randomized", "log_score"] == pytest.approx(own + found.price, rel=1e-9)
    widths = [
        np.diff(forecast.interval(0.8), axis=0).mean()
        for forecast in (found.model.forecast(X, random_state=8), law)
    ]
    assert found.wider == pytest.approx(widths[0] / widths[1] - 1, abs=0.1)
    # errors are averaged over positions in the cells, so the right model has a small one
    assert scores.loc["as it is", "average_error"] < 0.02


def test_affordable_links_of_counts_share_the_risk():
    X, y = counts()
    found = randomize(law_of_counts, X, y, max_price=0.25, random_state=0)
    choice, rng = found.certificate.choice, np.random.default_rng(0)
    assert (choice.rule, choice.mass, choice.n_links) == ("tested", MASS, len(ALPHAS))
    bounds = LatticeBounds.of(law_of_counts(X).cells(y, random_state=rng), rng)

    def bound(confidence):
        return bounds.group_error(Entropic(found.alpha), MASS, confidence, by_betting=True)

    # other draws, of 1,500 people
    assert choice.error == pytest.approx(bound(1 - 0.05 / len(ALPHAS)), abs=0.005)
    assert choice.error > bound(0.95) + 0.01


def test_a_target_that_no_randomization_of_counts_meets_is_refused_with_the_reason():
    X, y = counts()
    with pytest.raises(InputError, match=r"0\.01\) it is an estimated .*end of their scale"):
        randomize(law_of_counts, X, y, goal=0.1, random_state=0)
    with pytest.raises(InputError, match=r"with 60 certifying rows; about [0-9,]+ rows suffice"):
        randomize(law_of_counts, X[:60], y[:60], goal=0.25, random_state=0)


LEVELS = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)


def chance_of_zero(X):
    return np.asarray(1 / (1 + np.exp(-np.asarray(X)[:, 1])))


def amounts(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    positive = law_of_amounts(X).positive_part().sample(rng)
    return X, np.where(rng.uniform(size=n) < chance_of_zero(X), 0.0, positive)


def law_of_amounts(X):
    X = np.asarray(X)
    values = np.exp(1 + 0.5 * X[:, :1] + 0.6 * stats.norm.ppf(LEVELS))
    return Forecast.from_hurdle(chance_of_zero(X), Forecast.from_quantiles(LEVELS, values))


def test_randomized_models_of_amounts_are_tested_on_their_continuous_part():
    """The base is right, so the certified error exceeds the theoretical one of each link."""
    X, y = amounts()
    models = [
        RandomizedRegressor(law_of_amounts, alpha=alpha).fit(X, y) for alpha in (0.05, 0.1, 0.9)
    ]
    found = randomize(models, X, y, goal=0.3, random_state=0)
    proof = found.certificate
    assert proof.choice == Choice("tested", 0.3, MASS)
    assert found.model.alpha == 0.1  # pathwise: 0.234 of the right base at 0.1, above 0.4 at 0.9
    assert (found.kind, found.atom, found.group_error) == (OutcomeKind.HURDLE, 0.0, 0.3)
    assert proof.n_positive == found.n_off_atom == (y != 0).sum()
    low, high = proof.bias(MASS)
    assert low < 0 < high
    assert "of the people whose outcome is not 0" in " ".join(found.summary().split())


def test_amounts_are_certified_by_the_continuous_part_alone():
    X, y = amounts()
    found = randomize(law_of_amounts, X, y, goal=0.3, random_state=0)
    off = y != 0
    proof = found.certificate
    assert (proof.choice.rule, proof.bound) == ("simultaneous", "sharp")
    assert (found.kind, found.atom) == (OutcomeKind.HURDLE, 0.0)
    assert (found.n_certifying, found.n_off_atom) == (1500, off.sum())
    expected = certify_link(law_of_amounts(X[off]).positive_part().pit(y[off]), Entropic(1.0))
    alpha = largest_alpha(lambda a: expected.with_link(Entropic(a)).group_error(MASS), 0.3)
    assert found.alpha == pytest.approx(alpha, rel=1e-12)
    error = expected.with_link(Entropic(found.alpha)).group_error(MASS)
    assert found.group_error == pytest.approx(error, rel=1e-12)
    low, high = proof.bias(MASS)
    assert low < 0 < high
    text = " ".join(found.summary().split())
    assert "of at least 20% of the people whose outcome is not 0" in text
    assert re.search(r"own; its interval is \d+% (wider|narrower) than the randomized one\.", text)
    assert f"({int(off.sum())} of them, whom the model must not have seen)" in text
    assert "probability of 0 is not randomized" in text


@pytest.mark.parametrize(("share", "price"), [(0.3, 0.435), (0.8, 0.124)])
def test_the_price_beside_an_atom_has_the_check_values(share, price):
    """Prices at alpha 0.12 of the specification, which are simulated to three digits."""
    n = 20_000
    rng = np.random.default_rng(int(10 * share))
    y = np.where(rng.uniform(size=n) < share, 0.0, rng.lognormal(size=n))
    base = Forecast.from_hurdle(np.full(n, share), lognormal(n))
    costs = Costs(Wrapped.of(base, Outcomes(y), rng), Rounding(), rng)
    # 20,000 people times the deviation of a price over 16 draws, below 1
    assert costs.price(Entropic(0.12)) == pytest.approx(price, abs=5 / np.sqrt(n) + 0.0005)


def lognormal(n):
    from evenhand.distributions import Normal, Support, Transformed

    support = Support(low=0.0)
    return Forecast(Transformed(Normal(np.zeros(n), 1.0), support))


def test_too_few_outcomes_off_the_atom_are_refused():
    X, y = amounts(300)
    y[15:] = 0.0
    y[:15] = 1.0 + np.arange(15)
    with pytest.raises(InputError, match=r"15 certifying rows have an outcome other than 0"):
        randomize(law_of_amounts, X, y, random_state=0)
    X, y = amounts(100)
    refused(r"^outcomes other than 0: ", randomize, law_of_amounts, X, y, goal=0.02, random_state=0)


@statistical
def test_amounts_are_falsely_certified_in_at_most_one_data_set_of_twenty():
    """1,000 data sets; the true error of the worst groups around a right model is the link's."""
    share = 0.3
    n_sets = repeats(500, shorter=64)
    broken = 0
    for seed in range(n_sets):
        rng = np.random.default_rng([seed, int(10 * share)])
        n = int(rng.integers(300, 600))
        y = np.where(rng.uniform(size=n) < share, 0.0, rng.lognormal(size=n))
        mass = float(rng.choice([0.2, 0.5]))
        found = randomize(
            lambda X: Forecast.from_hurdle(np.full(len(X), share), lognormal(len(X))),
            np.zeros((n, 1)),
            y,
            **({"goal": 0.42}, {"max_wider": 0.4}, {"max_price": 0.1})[seed % 3],
            group_mass=mass,
            alternative=False,
            random_state=rng,
        )
        broken += found.certificate.link.group_error(mass) - 0.001 > found.group_error
    assert broken <= most_failures(n_sets, false_alarm=1e-4)


@statistical
def test_the_bound_of_an_affordable_link_of_counts_is_exceeded_in_one_data_set_of_twenty():
    pmf, n = LAWS["Poisson(2)"], 200
    support = np.arange(pmf.size)
    n_sets = repeats(500, shorter=64)
    broken = 0
    for seed in range(n_sets):
        rng = np.random.default_rng([seed, n])
        y = rng.choice(pmf.size, n, p=pmf / pmf.sum()).astype(float)
        found = randomize(
            lambda X: Forecast.from_pmf(support, np.tile(pmf / pmf.sum(), (len(X), 1))),
            np.zeros((n, 1)),
            y,
            **({"max_price": 0.3} if seed % 2 else {"max_wider": 0.3}),
            random_state=rng,
        )
        broken += true_error("Poisson(2)", found.alpha) - SLACK > found.group_error
    assert broken <= most_failures(n_sets, false_alarm=1e-4)
