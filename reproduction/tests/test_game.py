"""The lending game against its rules, closed forms and counterexamples to common claims.

Random checks are seeded. Counts are compared with their exact binomial law at a level of 1e-6,
shared among the comparisons of a test (Bonferroni): that is the false-alarm rate of one test with a
fresh seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtr, ndtri

from evenhand import Forecast
from evenhand.calibration import pathwise_errors
from evenhand.distributions import Normal
from evenhand.draws import fresh, jittered, nodes
from evenhand.links import make_link
from reproduction.game import LearningApplicants, LendingGame

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

FALSE_ALARM = 1e-6
LINKS = ("entropic", "laplace", "gaussian")
GAME = LendingGame(threshold=0.0)


@dataclass(frozen=True)
class DrawBank:
    """Forecasts N(x + shift(r), std^2) of people with the feature x."""

    shift: Callable[[Floats], Floats]
    std: float = 1.0

    def forecast(self, x: Floats, r: Floats) -> Forecast:
        centre = x if r.ndim == 1 else x[:, None]
        return Forecast(Normal(centre + self.shift(r), self.std), r)


def calibrated(spread: float) -> DrawBank:
    """Y ~ N(x, 1): PIT Phi((Y - x + spread Z) / sqrt(1 + spread^2)) is uniform for all x."""
    return DrawBank(lambda r: -spread * ndtri(r), float(np.hypot(1, spread)))


TRIVIAL = DrawBank(lambda r: -ndtri(r))  # h[x, r](x) = r: individually calibrated where Y = x


def answers(bank: DrawBank, x: Floats, seed: int) -> Mask:
    """Return the bank's answers to people who apply once, with a draw each."""
    return GAME.approve(bank.forecast(x, fresh(x.size, seed)))


def linked(x: Floats, alpha: float, link: str, r: Floats, std: Any = 1.0) -> Forecast:
    return Forecast.from_normal(x, std).randomized(alpha, link, r)


def is_plausible(count: Any, n: Any, p: Any, comparisons: int = 1) -> bool:
    """Whether counts agree with their binomial distributions, together at `FALSE_ALARM`."""
    tail = np.minimum(stats.binom.cdf(count, n, p), stats.binom.sf(np.asarray(count) - 1, n, p))
    return bool((tail >= FALSE_ALARM / comparisons / 2).all())


def is_at_most(count: Any, n: Any, p: float, comparisons: int = 1) -> bool:
    return bool((np.asarray(count) <= stats.binom.isf(FALSE_ALARM / comparisons, n, p)).all())


# --- rules


@pytest.mark.parametrize(("gain", "loss"), [(1.0, 3.0), (1.0, 1.0), (2.0, 0.5), (0.3, 7.0)])
def test_the_bank_accepts_up_to_its_risk_of_an_unqualified_person(gain: float, loss: float) -> None:
    rng = np.random.default_rng(0)
    game = LendingGame(threshold=0.4, bank_gain=gain, bank_loss=loss)
    forecast = Forecast.from_normal(rng.normal(0.4, 1, 2000), rng.uniform(0.1, 2, 2000))
    # approval is where it has a positive expected gain
    unqualified = forecast.cdf(0.4)
    gains = gain * (1 - unqualified) - loss * unqualified
    assert (np.abs(gains) > 1e-9).all()  # no ties in this sample
    np.testing.assert_array_equal(game.approve(forecast), gains > 0)
    assert GAME.risk == 1 / 4
    assert replace(GAME, bank_loss=1).approve(Forecast.from_normal([0.0], 1.0)).all()  # a tie
    assert GAME.is_qualified([0.0, np.nextafter(0, -1)]).tolist() == [True, False]


def test_utilities_are_those_of_both_answers_and_people_apply_from_break_even_on() -> None:
    # 0.2 q = 0.5 (1 - q) at q = 5/7, and q = 0.5 (1 - q) at 1/3
    assert GAME.expected_utility([1, 0, 1, 0], [1, 1, -1, -1]).tolist() == [0.2, -0.5, 1.0, -0.5]
    assert GAME.expected_bank_utility([1, 0, 1, 0.5], [1, 1, -1, -1]).tolist() == [1, 0, -3, -1.5]
    assert GAME.break_even == pytest.approx((5 / 7, 1 / 3))
    for y, needed in ((1.0, 5 / 7), (-1.0, 1 / 3)):
        around = [needed - 1e-9, needed + 1e-9]
        assert GAME.applies_if_informed(around, [y, y]).tolist() == [False, True]


# --- chances of approval


def largest_draw_with_a_yes(link: Any, base: Floats, risk: float) -> Floats:
    """Bisect for the draw up to which H(base; r) <= risk."""
    low, high = np.full(base.shape, 1e-16), np.full(base.shape, 1 - 1e-16)
    for _ in range(60):
        middle = (low + high) / 2
        is_yes = link.ppf(base, middle) <= risk
        low, high = np.where(is_yes, middle, low), np.where(is_yes, high, middle)
    return low


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("alpha", [0.01, 0.1, 0.4, 0.9])
def test_chances_through_a_link_are_the_largest_draw_with_a_yes(link: str, alpha: float) -> None:
    mean = np.linspace(-7, 7, 141)
    game = replace(GAME, bank_loss=2.0)
    one = make_link(link, alpha)
    chance = game.chance_of_link(Normal(mean, 1.0), one)
    # the table's draws are 1/2048 apart at most
    np.testing.assert_allclose(chance, largest_draw_with_a_yes(one, ndtr(-mean), 1 / 3), atol=2e-4)
    counted = game.approve(linked(mean, alpha, link, nodes(5000))).mean(axis=1)
    np.testing.assert_allclose(chance, counted, atol=2e-4 + 1e-4)
    if link == "gaussian":
        rest = np.sqrt(1 - one.rho**2)
        np.testing.assert_allclose(chance, ndtr((ndtri(1 / 3) + rest * mean) / one.rho), atol=2e-4)


@pytest.mark.parametrize("link", LINKS)
def test_chances_at_the_ends_of_the_range(link: str) -> None:
    surest = np.array([-12.0, -10, 10, 12])
    met = GAME.approve(linked(surest, 0.001, link, nodes(5000))).mean(axis=1)
    chance = GAME.chance_of_link(Normal(surest, 1.0), make_link(link, 0.001))
    np.testing.assert_allclose(chance, met, atol=2e-3)
    # without a link the answer is certain
    x = np.linspace(-3, 3, 100)
    certain = GAME.chance_of_link(Normal(x, 1.0), make_link(link, 1.0))
    np.testing.assert_array_equal(certain, x >= -ndtri(0.25))


@pytest.mark.parametrize("link", LINKS)
def test_without_sharpness_everybodys_chance_is_a_quarter_and_no_informed_person_applies(
    link: str,
) -> None:
    base, y = Normal(np.linspace(-3, 3, 500), 1.0), np.random.default_rng(0).normal(size=500)
    chances = [GAME.chance_of_link(base, make_link(link, alpha)) for alpha in (0.1, 0.01, 0.001)]
    gaps = [np.abs(chance - 0.25).max() for chance in chances]
    assert gaps[0] > 2 * gaps[1] > 4 * gaps[2]
    assert gaps[2] < 1 / 3 - 1 / 4  # an unqualified person risks a refusal for a chance of 1/3
    assert not GAME.applies_if_informed(chances[-1], y).any()


# --- what calibration promises (method: decisions)

PEOPLE, ROUNDS = 1000, 500


def many_loans(bank: DrawBank, x: Floats, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bad loans and loans per person, each asking `ROUNDS` times with a new outcome Y ~ N(x, 1)."""
    rng = np.random.default_rng(seed)
    y = x[:, None] + rng.normal(size=(x.size, ROUNDS))
    approved = GAME.approve(bank.forecast(x, fresh(y.shape, rng)))
    return (approved & (y < 0)).sum(axis=1), approved.sum(axis=1)


@pytest.mark.parametrize("spread", [0.02, 0.5, 2.0])
def test_individual_calibration_bounds_bad_loans_per_person_and_for_whoever_applies(
    spread: float,
) -> None:
    x = np.random.default_rng(1).normal(0.6, 1.0, PEOPLE)
    bad, loans = many_loans(calibrated(spread), x, seed=2)
    assert is_at_most(bad, ROUNDS, 0.25, PEOPLE)
    # N(x - c Z, 1 + c^2) says yes where Z <= (x + Phi^-1(1/4) sqrt(1 + c^2)) / c
    yes = ndtr((x + ndtri(0.25) * np.hypot(1, spread)) / spread)
    assert is_plausible(loans, ROUNDS, yes, 2 * PEOPLE)
    # the draw knows nothing of the outcome
    assert is_plausible(bad, ROUNDS, yes * ndtr(-x), 2 * PEOPLE)
    # whoever applies, as a function of x
    for score in (yes, -x, yes * ndtr(-x), np.sin(20 * x)):
        for share in (1, 10, 100, 500):
            chosen = np.argsort(score)[-share:]
            assert is_at_most(bad[chosen].sum(), share * ROUNDS, 0.25, 16)


def test_the_bound_on_bad_loans_is_attained() -> None:
    # Y lies surely just below the threshold, and h[x, r] there is r
    n = 100_000
    assert is_plausible(answers(TRIVIAL, np.full(n, -1e-12), seed=3).sum(), n, 0.25)
    # and approached by nearly the truth itself, for whom P(unqualified | x) is just below 1/4
    bad, _ = many_loans(calibrated(1e-6), np.full(200, -ndtri(0.249)), seed=4)
    assert is_plausible(int(bad.sum()), 200 * ROUNDS, 0.249)


@pytest.mark.parametrize("kind", [*LINKS, "random functions"])
def test_pathwise_errors_bound_each_unqualified_persons_chance(kind: str) -> None:
    # U <= 1/4 with chance 1/4 + d moves at least a mass d by d / 2: exact for the law over any
    # finite draws
    rng = np.random.default_rng(5)
    y = -rng.exponential(size=1000) * 10 ** rng.uniform(-4, 0.5, 1000)
    x, r = y + rng.normal(0, 1.5, 1000), jittered(1000, 256, rng)
    slack = []
    for alpha in (0.003, 0.03, 0.3, 1.0):
        std = rng.uniform(0.2, 2)
        forecast = linked(x, alpha, kind, r, std) if kind in LINKS else wild(x, r, rng)
        chance = GAME.approve(forecast).mean(axis=-1)
        slack.append(0.25 + np.sqrt(2 * pathwise_errors(forecast.pit(y))) - chance)
    assert np.min(slack) > -1e-9


def wild(x: Floats, r: Floats, rng: np.random.Generator) -> Forecast:
    """Means and standard deviations that vary with the draw as they like, not monotonously."""
    n = (len(x), 1)
    wave = np.sin(rng.uniform(0, 12, n) * r + rng.uniform(0, 6, n)) * rng.uniform(0, 3, n)
    mean = x[:, None] - rng.uniform(0, 1.5, n) * ndtri(r) + wave * rng.integers(0, 2, n)
    return Forecast(Normal(mean, np.exp(rng.uniform(-2, 1, n) + wave * rng.integers(0, 2, n))), r)


@pytest.mark.parametrize("extra", [0.02, 0.2, 0.7])
def test_the_bound_by_pathwise_errors_is_attained(extra: float) -> None:
    # draws from 1/4 to 1/4 + d are all moved to 1/4: error d^2 / 2
    bank = DrawBank(lambda r: -ndtri(np.where((r > 0.25) & (r < 0.25 + extra), 0.25 - 1e-9, r)))
    forecast = bank.forecast(np.zeros(1), nodes(100_000))
    error = pathwise_errors(forecast.pit([-1e-12]))
    assert error == pytest.approx(extra**2 / 2, abs=1e-5)
    chance = GAME.approve(forecast).mean()
    assert chance == pytest.approx(0.25 + extra, abs=2e-4)
    # m nodes add 1 / (4 m) to the error
    assert chance == pytest.approx(0.25 + np.sqrt(2 * error[0]), abs=1e-3)


# --- what it does not promise


def test_individual_calibration_does_not_bound_approvals_of_the_unqualified() -> None:
    # the true law, with P(unqualified | x) = 0.2 for everybody, says yes to all: also to each
    # unqualified one
    x = np.full(20_000, -ndtri(0.2))
    assert GAME.approve(Forecast.from_normal(x, 1.0)).all()


def test_people_who_know_their_outcome_may_exceed_the_bound_of_individual_calibration() -> None:
    # at a chance of 1/2 only unqualified people apply, and half of them get a loan: they are chosen
    # by x and y
    n, rng = 40_000, np.random.default_rng(7)
    x = np.full(n, -ndtri(0.25) * np.hypot(1, 1.0))
    y = x + rng.normal(size=n)
    applied = GAME.applies_if_informed(np.full(n, 0.5), y)
    np.testing.assert_array_equal(applied, y < 0)
    bad = int(answers(calibrated(1.0), x, seed=7)[applied].sum())
    assert is_plausible(bad, int(applied.sum()), 0.5)
    assert not is_at_most(bad, int(applied.sum()), 0.25)


def test_more_than_a_quarter_of_those_approved_may_be_unqualified() -> None:
    # nine of ten lie surely just below the threshold: the forecaster is calibrated for each, the
    # loans are bad
    n = 20_000
    y = np.where(np.arange(n) % 10 == 0, 1e-12, -1e-12)
    approved = answers(TRIVIAL, y, seed=8)
    bad = int((approved & (y < 0)).sum())
    assert is_plausible(int(approved.sum()), n, 0.25, 2)
    assert is_plausible(bad, int(approved.sum()), 0.9, 2)
    assert is_at_most(bad, n, 0.25)


# --- people who learn


def learned(n: int, seed: int = 0, gaps: float = 0.0) -> tuple[LearningApplicants, Any]:
    """Return people who learned from a bank that forecasts N(x, 0.2^2), and how to draw more."""
    rng = np.random.default_rng(seed)

    def people(count: int) -> tuple[Floats, Floats, Floats]:
        X = rng.normal(size=(count, 3))
        y = X[:, 0] + 0.5 * rng.normal(size=count)
        yes = (X[:, 0] >= -0.2 * ndtri(0.25)).astype(float)
        X[rng.uniform(size=count) < gaps, 1] = np.nan
        return X, y, yes

    X, y, yes = people(n)
    applicants = LearningApplicants(random_state=seed)
    applicants.learn(X, y, GAME.expected_utility(yes, y))
    return applicants, people


@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_learning_applicants_come_to_know_a_clear_cut_bank(gaps: float) -> None:
    applicants, people = learned(2000, gaps=gaps)
    X, y, yes = people(1000)
    # half of the people are refused, and their features tell who
    assert 0.4 < yes.mean() < 0.5
    assert np.mean(applicants.applies(X, y) == GAME.applies_if_informed(yes, y)) > 0.9


def test_people_learn_that_everybody_is_refused() -> None:
    rng = np.random.default_rng(17)
    X, y = rng.normal(size=(1000, 2)), rng.normal(size=1000)
    for seed in range(5):
        people = LearningApplicants(random_state=seed)
        people.learn(X, y, np.full(1000, -0.5))
        assert people.applies(X, y).mean() < 0.05


@pytest.mark.filterwarnings("error")
def test_learning_from_few_people_and_a_constant_gives_no_warnings() -> None:
    rng = np.random.default_rng(18)
    LearningApplicants(0).learn(rng.normal(size=(150, 2)), np.ones(150), rng.normal(size=150))
