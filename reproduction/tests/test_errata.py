"""What is wrong in the source, shown (method: errata). Zhao, Ma & Ermon, ICML 2020."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special
from scipy.stats import binom

from evenhand import Forecast
from evenhand.calibration import calibration_error, pathwise_errors, share_bound
from evenhand.distributions import Normal
from evenhand.draws import fresh, nodes
from evenhand.search import worst_group_curve
from reproduction.impossibility import measure_floors, theory_of_floors, two_worlds

MEAN_W1 = np.sqrt(np.pi / 32)
"""Mean of the integral of a Brownian bridge's absolute value: sqrt(n) times the mean W1 of n
uniform PITs."""


# the trivial forecaster (paper, appendix): Phi(y / c - Phi^-1(r)) as printed, + as meant


@pytest.mark.parametrize(("sign", "limit"), [(1, "r"), (-1, "1 - r")])
def test_trivial_forecaster_tends_to_the_draw_only_with_a_plus(sign, limit):
    r, wide = nodes(200), 1e9
    y = np.array([-3.0, 0.0, 2.0, 40.0])
    law = Normal(np.broadcast_to(-sign * wide * special.ndtri(r), (y.size, r.size)), wide)
    pit = Forecast(law, r).pit(y)
    np.testing.assert_allclose(
        pit, np.broadcast_to(r if limit == "r" else 1 - r, pit.shape), atol=1e-6
    )
    # E |h - r| is 0 with the plus; with the minus E |1 - 2 R| = 1/2, the worst there is
    assert np.abs(pit - r).mean() == pytest.approx(0.0 if sign == 1 else 0.5, abs=1e-4)


def test_trivial_forecaster_with_a_minus_is_calibrated_but_not_monotone():
    # its PITs over draws are uniform all the same, so it is the monotone notion (mPAIC) that fails
    r = nodes(200)
    printed = Normal(1e9 * special.ndtri(r), 1e9)
    assert pathwise_errors(Forecast(printed, r).pit([0.5]))[0] == pytest.approx(1 / 800, abs=1e-6)


# the concentration proposition: with probability 1 - gamma, share <= delta + margin


@pytest.mark.parametrize("delta", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("n", [20, 200])
def test_concentration_bounds_the_share_seen_and_not_the_true_one(n, delta):
    """Exact: the share seen is binomial, so nothing here is left to chance."""
    gamma = 0.05
    margin = np.sqrt(-np.log(gamma) / (2 * n))
    hits = np.arange(n + 1)
    chance = binom.pmf(hits, n, delta)
    assert chance[hits / n <= delta + margin].sum() >= 1 - gamma
    # turned round as it stands, delta >= share - margin: no upper bound for delta
    assert chance[hits / n - margin >= delta].sum() <= gamma
    # a certificate is the other tail's: delta <= share + margin, or Clopper and Pearson's bound
    certified = hits / n + margin
    assert chance[certified >= delta].sum() >= 1 - gamma
    bounds = np.array([share_bound(int(k), n, 1 - gamma) for k in hits])
    assert chance[bounds >= delta].sum() >= 1 - gamma


# the theorem on decisions, part 2: P(loss >= k promised loss) <= 1 / k for each x under PAIC


@pytest.mark.parametrize("k", [2, 3, 4, 10])
def test_decision_theorem_loses_a_factor_of_two_where_the_draw_turns_the_action(k):
    r = nodes(2000)
    forecast = Forecast(Normal(-special.ndtri(r), np.ones_like(r)), r)
    y = np.array([0.0])
    # individually calibrated at the one x there is: h[x, r](0) = r
    pit = forecast.pit(y)
    np.testing.assert_allclose(pit, r, atol=1e-12)
    assert calibration_error(pit) == pytest.approx(1 / 8000, abs=1e-9)
    # buy loses 1 if y <= 0, sell if y >= 0: monotone in y for each action, and not negative
    promised = {"buy": forecast.cdf(y), "sell": 1 - forecast.cdf(y)}
    chosen = np.where(promised["buy"] <= promised["sell"], "buy", "sell")
    loss = np.where(chosen == "buy", y[0] <= 0, y[0] >= 0).astype(float)
    exceeds = loss >= k * np.minimum(promised["buy"], promised["sell"])
    # exactly 2 / k, up to a node at each end; the paper's 1 / k is broken
    assert exceeds.mean() == pytest.approx(2 / k, abs=2 / r.size)
    assert exceeds.mean() > 1 / k


@pytest.mark.parametrize("k", [2, 4, 10])
def test_decision_theorem_holds_where_the_action_has_one_direction(k):
    # both actions lose at low outcomes: P(loss >= k promised) = P(R <= 1 / k) at the most
    r = nodes(2000)
    forecast = Forecast(Normal(-special.ndtri(r), np.ones_like(r)), r)
    y = np.array([0.0])
    promised = np.minimum(forecast.cdf(y), 2 * forecast.cdf(y))
    assert (k * promised <= 1.0).mean() <= 1 / k + 1 / r.size


# the bank: that of its yes at most a quarter go to the unqualified


def test_share_of_the_unqualified_is_joint_and_not_among_those_approved():
    # everybody's outcome is 0, a little short of what is asked for, and h[x, r](0) = r: calibrated
    # for each person
    r = nodes(4000)
    forecast = Forecast(Normal(-special.ndtri(r), np.ones_like(r)), r)
    y, asked = np.array([0.0]), 0.1
    assert calibration_error(forecast.pit(y)) == pytest.approx(1 / 16000, abs=1e-9)
    yes = forecast.cdf(asked) <= 1 / 4
    unqualified = np.broadcast_to(y[0] < asked, yes.shape)
    # P(Phi(0.1 + Phi^-1(R)) <= 1/4)
    joint = (yes & unqualified).mean()
    assert joint == pytest.approx(special.ndtr(special.ndtri(0.25) - 0.1), abs=1 / r.size)
    assert joint <= 1 / 4
    assert (yes & unqualified).sum() / yes.sum() == 1.0


def test_average_calibration_too_bounds_the_joint_share_only():
    """Deterministic, on even levels of outcomes: exact."""
    # two kinds of people: PITs in the lower half for one, in the upper half for the other, uniform
    # together
    n = 4000
    levels = (np.arange(n) + 0.5) / n
    low = levels < 0.5
    forecast = Forecast.from_normal(np.where(low, 0.01, -0.01), np.ones(n))
    y = forecast.distribution.ppf(levels)
    assert calibration_error(forecast.pit(y)) == pytest.approx(1 / (4 * n), abs=1e-9)
    # the first kind is forecast a little higher, and alone approved
    asked = 0.01 + special.ndtri(0.25)
    yes = forecast.cdf(asked) <= 0.25 + 1e-12
    np.testing.assert_array_equal(yes, low)
    assert (yes & (y < asked)).mean() == pytest.approx(1 / 4, abs=1 / n)
    assert (y < asked)[yes].mean() == pytest.approx(1 / 2, abs=2 / n)


# the impossibility for adversarial groups: 1/8 at masses up to 1/2, nothing above


@pytest.mark.parametrize("seed", range(20))
def test_adversarial_floor_is_an_eighth_up_to_half_of_the_people(seed):
    rng = np.random.default_rng(seed)
    n = 301
    forecast = Forecast.from_normal(rng.normal(size=n), rng.gamma(2.0, size=n) + 0.1)
    # outcomes from the forecast, all too high, or all in the middle
    y = forecast.distribution.ppf(
        [fresh(n, rng), fresh(n, rng) ** 0.3, 0.4 + 0.2 * fresh(n, rng)][seed % 3]
    )
    worlds = two_worlds(forecast, y, slices=1001)
    floors = measure_floors(worlds)
    assert floors.half_mass >= 1 / 2
    assert floors.half_error >= theory_of_floors(1001)[2] - 1e-6
    assert theory_of_floors(1001)[2] == pytest.approx(1 / 8, abs=3e-4)


def test_no_floor_is_left_for_everybody_together():
    # outcomes at even quantiles of their forecasts: each person's law is a point, all together are
    # uniform
    n = 400
    forecast = Forecast.from_normal(np.zeros(n), np.ones(n))
    y = forecast.distribution.ppf((np.arange(n) + 0.5) / n)
    worlds = two_worlds(forecast, y, slices=1001)
    assert measure_floors(worlds).average_error <= 2 / n
    worst = worst_group_curve(forecast.pit(y), [0.25, 0.5, 0.75, 1.0], random_state=0)
    # uniform points: the top of them is off by (1 - mass) / 2, so the floor fades with the mass
    np.testing.assert_allclose(worst.errors, (1 - worst.masses) / 2, atol=2 / n)
    assert (worst.errors[worst.masses <= 0.5] >= 1 / 8).all()


# the published search: a worst group picked on many draws, scored on one


def test_group_scored_on_one_draw_exceeds_the_exact_error_by_noise():
    """A perfect forecaster: mean of 400 scores within 5 errors (false-alarm rate 1e-6)."""
    n, size, runs = 200, 40, 400
    rng = np.random.default_rng(0)
    pit = np.broadcast_to(nodes(500), (n, 500))
    group = worst_group_curve(pit, size / n, random_state=0).rows[0]
    exact = calibration_error(pit[group])
    assert exact == pytest.approx(1 / 2000)
    scores = np.array([calibration_error(fresh(size, rng)) for _ in range(runs)])
    error = scores.std(ddof=1) / np.sqrt(runs)
    # finite samples lie a little above the limit; 1 / (8 n) is more than enough
    assert scores.mean() == pytest.approx(MEAN_W1 / np.sqrt(size), abs=5 * error + 1 / (8 * size))
    assert (scores > exact).all()


def test_score_on_one_draw_is_noise_on_top_of_an_error_that_is_there():
    """By convexity the mean over draws is at least the exact error; 300 runs, 5 standard errors."""
    rng = np.random.default_rng(1)
    base = Forecast.from_normal(np.zeros(300), np.ones(300))
    y = 0.5 + rng.normal(size=300)
    over = base.randomized(0.2, "entropic", nodes(400)).pit(y)
    curve = worst_group_curve(over, 0.2, random_state=0)
    group, exact = curve.rows[0], curve.errors[0]
    ones = [
        calibration_error(base.randomized(0.2, "entropic", fresh(300, rng)).pit(y)[group])
        for _ in range(300)
    ]
    assert np.mean(ones) >= exact - 5 * np.std(ones) / np.sqrt(300) - 1 / 1600
    assert np.std(ones) > 0.005
    assert 0.2 < np.mean(np.array(ones) > exact) < 1.0


# random subsets as adversarial groups


def test_random_subsets_hide_two_biased_halves():
    """A half beyond 0.1 is 9 standard deviations out in its share (false-alarm rate 1e-9)."""
    n = 2000
    rng = np.random.default_rng(0)
    half = np.arange(n) < n // 2
    # forecast N(0, 1), truth N(+-0.5, 1): PITs of a half are shifted one way, so W1 is the shift of
    # their mean
    true_error = special.ndtr(0.5 / np.sqrt(2)) - 0.5
    assert true_error == pytest.approx(0.138, abs=5e-4)
    pit = special.ndtr(np.where(half, 0.5, -0.5) + rng.normal(size=n))
    planted = max(calibration_error(pit[half]), calibration_error(pit[~half]))
    # five standard deviations of a mean of uniforms
    assert planted == pytest.approx(true_error, abs=5 / np.sqrt(12 * n / 2))
    subsets = [calibration_error(pit[rng.choice(n, n // 2, replace=False)]) for _ in range(200)]
    assert max(subsets) < true_error / 2
    # the search that sees outcomes finds no less than what was planted
    assert worst_group_curve(pit, 0.5, random_state=0).errors[0] >= planted
