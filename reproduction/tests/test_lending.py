"""The lending game against its rules, closed forms and counterexamples to common claims.

Random checks are seeded. Counts are compared with their exact binomial law at a level of 1e-6,
shared among the comparisons of a test (Bonferroni): that is the false-alarm rate of one test with a
fresh seed.
"""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import ndtr, ndtri
from sklearn.base import BaseEstimator

from evenhand._validate import InputError
from evenhand.calibration import pathwise_errors
from evenhand.distributions import Normal
from evenhand.draws import KeyedDraws, as_draws, fresh, jittered, nodes
from evenhand.forecast import Forecast
from reproduction.lending import (
    InformedApplicants,
    LearningApplicants,
    LendingGame,
    RandomApplicants,
    Round,
    play_rounds,
)
from evenhand.links import make_link

Floats = NDArray[np.float64]

FALSE_ALARM = 1e-6
LINKS = ("entropic", "laplace", "gaussian")
GAME = LendingGame(threshold=0.0)


@dataclass(frozen=True)
class DrawBank:
    """Forecasts N(x + shift(r), std^2), x being the first feature."""

    shift: Callable[[Floats], Floats]
    std: float = 1.0

    def forecast(self, X: Floats, r: Any = None) -> Forecast:
        draws = as_draws(r, len(X))
        x = X[:, 0] if draws.ndim == 1 else X[:, :1]
        return Forecast(Normal(x + self.shift(draws), self.std), draws)


def calibrated(spread: float) -> DrawBank:
    """Y ~ N(x, 1): PIT Phi((Y - x + spread Z) / sqrt(1 + spread^2)) is uniform for all x."""
    return DrawBank(lambda r: -spread * ndtri(r), float(np.hypot(1, spread)))


TRIVIAL = DrawBank(lambda r: -ndtri(r))  # h[x, r](x) = r: individually calibrated where Y = x


@dataclass(frozen=True)
class LinkBank:
    """Normal forecasts around the first feature, through a link or, without alpha, as they are."""

    alpha: float | None = None
    link: str = "entropic"
    std: float = 1.0

    def forecast(self, X: Any, r: Any = None) -> Forecast:
        first = X["income"].to_numpy() if isinstance(X, pd.DataFrame) else X[:, 0]
        base = Forecast.from_normal(first, self.std)
        return (
            base
            if self.alpha is None
            else base.randomized(self.alpha, self.link, as_draws(r, len(X)))
        )


def column(x: Any) -> Floats:
    return np.asarray(x, dtype=float)[:, None]


def is_plausible(count: Any, n: Any, p: Any, comparisons: int = 1) -> bool:
    """Whether counts agree with their binomial distributions, together at `FALSE_ALARM`."""
    tail = np.minimum(stats.binom.cdf(count, n, p), stats.binom.sf(np.asarray(count) - 1, n, p))
    return bool((tail >= FALSE_ALARM / comparisons / 2).all())


def is_at_most(count: Any, n: Any, p: float, comparisons: int = 1) -> bool:
    return bool((np.asarray(count) <= stats.binom.isf(FALSE_ALARM / comparisons, n, p)).all())


def n_bad(played: Round) -> int:
    return int((played.approved & ~played.qualified).sum())


# --- rules


@pytest.mark.parametrize(("gain", "loss"), [(1.0, 3.0), (1.0, 1.0), (2.0, 0.5), (0.3, 7.0)])
def test_the_bank_accepts_up_to_its_risk_of_an_unqualified_person(gain: float, loss: float) -> None:
    rng = np.random.default_rng(0)
    game = LendingGame(threshold=0.4, bank_gain=gain, bank_loss=loss)
    for forecast in (
        Forecast.from_normal(rng.normal(0.4, 1, 2000), rng.uniform(0.1, 2, 2000)),
        Forecast.from_normal(rng.normal(0.4, 1, 100), 0.5).randomized(0.2, r=nodes(20)),
        Forecast.from_samples(rng.normal(0.7, 1, (200, 7))),
    ):
        unqualified = forecast.cdf(0.4)
        assert (np.abs(unqualified - gain / (gain + loss)) > 1e-9).all()  # no ties in this sample
        np.testing.assert_array_equal(game.approve(forecast), unqualified <= gain / (gain + loss))
    assert (game.risk, GAME.risk) == (pytest.approx(gain / (gain + loss)), 1 / 4)
    even = replace(GAME, bank_gain=1, bank_loss=1)
    assert even.approve(Forecast.from_normal([0.0], 1.0)).all()  # a tie
    assert GAME.is_qualified([0.0, np.nextafter(0, -1)]).tolist() == [True, False]


def worth(chance: float, gain: float, game: LendingGame, tries: int) -> float:
    """What asking is worth with so many tries left, try by try."""
    if tries == 1:
        return chance * gain - (1 - chance) * game.refusal_cost
    return chance * gain + (1 - chance) * (worth(chance, gain, game, tries - 1) - game.retry_cost)


@pytest.mark.parametrize(("tries", "cost"), [(1, 0.0), (1, 0.3), (2, 0.0), (4, 0.07), (10, 0.2)])
def test_expected_utility_is_that_of_asking_try_by_try(tries: int, cost: float) -> None:
    game = replace(GAME, max_tries=tries, retry_cost=cost, refusal_cost=0.6)
    chance = np.linspace(0, 1, 21)
    for y, gain in ((0.5, 0.2), (-0.5, 1.0)):
        expected = [worth(p, gain, game, tries) for p in chance]
        found = game.expected_utility(chance, np.full(21, y))
        np.testing.assert_allclose(found, expected, atol=1e-12)
        np.testing.assert_array_equal(game.applies_if_informed(chance, np.full(21, y)), found >= 0)
        # the bank neither pays for retries nor gains by a refusal
        bank = (1 - (1 - chance) ** tries) * (1.0 if y > 0 else -3.0)
        np.testing.assert_allclose(
            game.expected_bank_utility(chance, np.full(21, y)), bank, atol=1e-12
        )
        # one answer for all tries: after a no the others bring their cost only
        once = [worth(p, gain, game, 1) - (1 - p) * (tries - 1) * game.retry_cost for p in chance]
        same = game.expected_utility(chance, np.full(21, y), same_draw=True)
        np.testing.assert_allclose(same, once, atol=1e-12)


@pytest.mark.parametrize("tries", [1, 3, 10])
def test_people_apply_from_their_break_even_chance_on(tries: int) -> None:
    # 0.2 q = 0.5 (1 - q) at q = 5/7, and q = 0.5 (1 - q) at 1/3, where q is the chance of a yes in
    # all tries
    game = replace(GAME, max_tries=tries)
    for y, needed in ((1.0, 5 / 7), (-1.0, 1 / 3)):
        each = 1 - (1 - needed) ** (1 / tries)
        around = [each - 1e-9, each + 1e-9]
        assert game.applies_if_informed(around, [y, y]).tolist() == [False, True]
        around = [needed - 1e-9, needed + 1e-9]
        assert game.applies_if_informed(around, [y, y], same_draw=True).tolist() == [False, True]


AMOUNTS = ("bank_gain", "bank_loss", "gain_qualified", "gain_unqualified", "refusal_cost")
BAD = [(name, value) for name in AMOUNTS for value in (0.0, -1.0, np.nan, np.inf)]
BAD += [("retry_cost", -0.1), ("retry_cost", np.nan), ("threshold", np.inf), ("threshold", np.nan)]
BAD += [("max_tries", value) for value in (0, -1, 2.0, True, "3", None)]
BAD += [("threshold", None), ("threshold", [0.1, 0.2]), ("bank_loss", "three"), ("threshold", 1j)]


@pytest.mark.parametrize(("name", "value"), BAD)
def test_rules_that_make_no_sense_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=rf"^{name} must be .*, got [^\n]*$"):
        LendingGame(**({"threshold": 0.0} | {name: value}))


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
    game = replace(GAME, bank_gain=1.0, bank_loss=2.0)
    chance = game.approval_chance(LinkBank(alpha, link), column(mean))
    expected = largest_draw_with_a_yes(make_link(link, alpha), ndtr(-mean), 1 / 3)
    # the table's draws are 1/2048 apart at most
    np.testing.assert_allclose(chance, expected, atol=2e-4)
    counted = game.approve(LinkBank(alpha, link).forecast(column(mean), nodes(5000))).mean(axis=1)
    np.testing.assert_allclose(chance, counted, atol=2e-4 + 1e-4)
    if link == "gaussian":
        one = make_link(link, alpha)
        rest = np.sqrt(1 - one.rho**2)
        np.testing.assert_allclose(chance, ndtr((ndtri(1 / 3) + rest * mean) / one.rho), atol=2e-4)


@pytest.mark.parametrize("link", LINKS)
def test_chances_of_the_surest_people_are_those_they_meet(link: str) -> None:
    bank, people = LinkBank(0.001, link), column([-12, -10, 10, 12])
    met = GAME.approve(bank.forecast(people, nodes(5000))).mean(axis=1)
    np.testing.assert_allclose(GAME.approval_chance(bank, people), met, atol=2e-3)


def test_deterministic_banks_give_chances_of_nothing_or_certainty() -> None:
    people = column(np.linspace(-3, 3, 100))
    expected = (people[:, 0] >= -ndtri(0.25)).astype(float)
    for bank in (LinkBank(), *(LinkBank(1.0, link) for link in LINKS)):
        np.testing.assert_array_equal(GAME.approval_chance(bank, people), expected)


@pytest.mark.parametrize("spread", [0.3, 1.0, 3.0])
def test_chances_without_a_link_are_counted_over_draws(spread: float) -> None:
    # N(x - c Z, 1 + c^2) says yes where Z <= (x + Phi^-1(1/4) sqrt(1 + c^2)) / c
    x = np.linspace(-4, 4, 81)
    expected = ndtr((x + ndtri(0.25) * np.hypot(1, spread)) / spread)
    for n_draws, options in ((10, {"n_draws": 10}), (64, {})):
        chance = GAME.approval_chance(calibrated(spread), column(x), **options)
        np.testing.assert_allclose(chance, expected, atol=0.5 / n_draws + 1e-12)
        np.testing.assert_array_equal(chance * n_draws, np.round(chance * n_draws))


@pytest.mark.parametrize("link", LINKS)
def test_without_sharpness_everybodys_chance_is_a_quarter_and_no_informed_person_applies(
    link: str,
) -> None:
    y = np.random.default_rng(0).normal(size=500)
    X = column(np.linspace(-3, 3, 500))
    gaps = [
        np.abs(GAME.approval_chance(LinkBank(alpha, link), X) - 0.25).max()
        for alpha in (0.1, 0.01, 0.001)
    ]
    assert gaps[0] > 2 * gaps[1] > 4 * gaps[2]
    assert gaps[2] < 1 / 3 - 1 / 4  # an unqualified person risks a refusal for a chance of 1/3
    assert not InformedApplicants().applies(GAME, LinkBank(0.001, link), X, y).any()
    assert InformedApplicants().applies(GAME, LinkBank(), X, y).mean() == np.mean(
        X[:, 0] >= -ndtri(0.25)
    )


# --- what calibration promises (method: decisions)

PEOPLE, ROUNDS = 1000, 500


def many_loans(bank: DrawBank, x: Floats, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Bad loans and loans per person, each asking `ROUNDS` times with a new outcome Y ~ N(x, 1)."""
    rng = np.random.default_rng(seed)
    y = (x[:, None] + rng.normal(size=(x.size, ROUNDS))).ravel()
    played = GAME.play(bank, np.repeat(x, ROUNDS)[:, None], y, random_state=rng)
    bad = (played.approved & ~played.qualified).reshape(-1, ROUNDS).sum(axis=1)
    return bad, played.approved.reshape(-1, ROUNDS).sum(axis=1)


@pytest.mark.parametrize("spread", [0.02, 0.5, 2.0])
def test_individual_calibration_bounds_bad_loans_per_person_and_for_whoever_applies(
    spread: float,
) -> None:
    x = np.random.default_rng(1).normal(0.6, 1.0, PEOPLE)
    bank = calibrated(spread)
    bad, loans = many_loans(bank, x, seed=2)
    assert is_at_most(bad, ROUNDS, 0.25, PEOPLE)
    yes = ndtr((x + ndtri(0.25) * np.hypot(1, spread)) / spread)
    assert is_plausible(loans, ROUNDS, yes, 2 * PEOPLE)
    assert is_plausible(
        bad, ROUNDS, yes * ndtr(-x), 2 * PEOPLE
    )  # the draw knows nothing of the outcome
    chance = GAME.approval_chance(bank, x[:, None])
    for score in (
        chance,
        -x,
        chance * ndtr(-x),
        np.sin(20 * x),
    ):  # whoever applies, as a function of x
        for share in (1, 10, 100, 500):
            chosen = np.argsort(score)[-share:]
            assert is_at_most(bad[chosen].sum(), share * ROUNDS, 0.25, 16)


def test_the_bound_on_bad_loans_is_attained() -> None:
    # Y lies surely just below the threshold, and h[x, r] there is r
    n = 100_000
    played = GAME.play(TRIVIAL, np.full((n, 1), -1e-12), np.full(n, -1e-12), random_state=3)
    assert is_plausible(int(played.approved.sum()), n, 0.25)
    # and approached by nearly the truth itself, for whom P(unqualified | x) is just below 1/4
    bad, _ = many_loans(calibrated(1e-6), np.full(200, -ndtri(0.249)), seed=4)
    assert is_plausible(int(bad.sum()), 200 * ROUNDS, 0.249)


@pytest.mark.parametrize("kind", [*LINKS, "random functions"])
def test_pathwise_errors_bound_each_unqualified_persons_chance(kind: str) -> None:
    # U <= 1/4 with chance 1/4 + d moves at least a mass d by d / 2: exact for the law over any
    # finite draws
    rng = np.random.default_rng(5)
    y = -rng.exponential(size=1000) * 10 ** rng.uniform(-4, 0.5, 1000)
    x, r = column(y + rng.normal(0, 1.5, 1000)), jittered(1000, 256, rng)
    slack = []
    for alpha in (0.003, 0.03, 0.3, 1.0):
        forecast = (
            LinkBank(alpha, kind, std=rng.uniform(0.2, 2)).forecast(x, r)
            if kind in LINKS
            else wild(x, r, rng)
        )
        chance = GAME.approve(forecast).mean(axis=1)
        slack.append(0.25 + np.sqrt(2 * pathwise_errors(forecast.pit(y))) - chance)
    assert np.min(slack) > -1e-9


def wild(x: Floats, r: Floats, rng: np.random.Generator) -> Forecast:
    """Means and standard deviations that vary with the draw as they like, not monotonously."""
    n = (len(x), 1)
    wave = np.sin(rng.uniform(0, 12, n) * r + rng.uniform(0, 6, n)) * rng.uniform(0, 3, n)
    mean = x - rng.uniform(0, 1.5, n) * ndtri(r) + wave * rng.integers(0, 2, n)
    return Forecast(Normal(mean, np.exp(rng.uniform(-2, 1, n) + wave * rng.integers(0, 2, n))), r)


@pytest.mark.parametrize("extra", [0.02, 0.2, 0.7])
def test_the_bound_by_pathwise_errors_is_attained(extra: float) -> None:
    # draws from 1/4 to 1/4 + d are all moved to 1/4: error d^2 / 2
    bank = DrawBank(lambda r: -ndtri(np.where((r > 0.25) & (r < 0.25 + extra), 0.25 - 1e-9, r)))
    forecast = bank.forecast(np.zeros((1, 1)), nodes(100_000))
    error = pathwise_errors(forecast.pit([-1e-12]))
    assert error == pytest.approx(extra**2 / 2, abs=1e-5)
    chance = GAME.approve(forecast).mean()
    assert chance == pytest.approx(0.25 + extra, abs=2e-4)
    assert chance == pytest.approx(
        0.25 + np.sqrt(2 * error[0]), abs=1e-3
    )  # m nodes add 1 / (4 m) to the error


# --- what it does not promise


def test_individual_calibration_does_not_bound_approvals_of_the_unqualified() -> None:
    # the true law, with P(unqualified | x) = 0.2 for everybody, says yes to all: also to each
    # unqualified one
    n, rng = 20_000, np.random.default_rng(6)
    x = np.full(n, -ndtri(0.2))
    played = GAME.play(LinkBank(), x[:, None], x + rng.normal(size=n), random_state=rng)
    assert played.approved[~played.qualified].all()
    assert is_plausible(int((~played.qualified).sum()), n, 0.2)
    assert is_at_most(n_bad(played), n, 0.25)


def test_people_who_know_their_outcome_may_exceed_the_bound_of_individual_calibration() -> None:
    # at a chance of 1/2 only unqualified people apply, and half of them get a loan: they are chosen
    # by x and y
    n, rng, spread = 40_000, np.random.default_rng(7), 1.0
    x = np.full((n, 1), -ndtri(0.25) * np.hypot(1, spread))
    y = x[:, 0] + rng.normal(size=n)
    applied = InformedApplicants().applies(GAME, calibrated(spread), x, y)
    np.testing.assert_array_equal(applied, y < 0)
    played = GAME.play(calibrated(spread), x, y, applied, random_state=rng)
    assert is_plausible(int(played.approved.sum()), int(applied.sum()), 0.5)
    assert not is_at_most(n_bad(played), int(applied.sum()), 0.25)


def test_more_than_a_quarter_of_those_approved_may_be_unqualified() -> None:
    # nine of ten lie surely just below the threshold: the forecaster is calibrated for each, the
    # loans are bad
    n = 20_000
    y = np.where(np.arange(n) % 10 == 0, 1e-12, -1e-12)
    played = GAME.play(TRIVIAL, y[:, None], y, random_state=8)
    assert is_plausible(int(played.approved.sum()), n, 0.25, 2)
    assert is_plausible(n_bad(played), int(played.approved.sum()), 0.9, 2)
    assert is_at_most(n_bad(played), n, 0.25)


# --- asking again


def test_asking_again_pays_against_fresh_draws() -> None:
    n, game = 20_000, replace(GAME, max_tries=10)
    for bank, x in ((TRIVIAL, -1e-12), (LinkBank(0.1), -0.3)):
        X, y = np.full((n, 1), x), np.full(n, -1e-12)
        chance = GAME.approval_chance(bank, X[:1], 4096)[0]
        once, often = (rules.play(bank, X, y, random_state=9) for rules in (GAME, game))
        # the chance is known to half a draw of 4096: less than a fifth of a standard deviation of
        # the count
        assert is_plausible(int(once.approved.sum()), n, chance, 4)
        assert is_plausible(int(often.approved.sum()), n, 1 - (1 - chance) ** 10, 4)
        assert often.utilities.mean() > once.utilities.mean() + 0.5
        assert not is_at_most(n_bad(often), n, 0.25)  # the bound of one try is broken


def test_the_try_that_succeeds_is_geometric() -> None:
    n, chance, game = 40_000, 0.25, replace(GAME, max_tries=4, retry_cost=0.1)
    played = game.play(TRIVIAL, np.full((n, 1), -1e-12), np.full(n, -1e-12), random_state=10)
    for k in range(1, 5):
        count = int((played.approved & (played.tries == k)).sum())
        assert is_plausible(count, n, chance * (1 - chance) ** (k - 1), 5)
    assert is_plausible(int((~played.approved).sum()), n, (1 - chance) ** 4, 5)
    assert (played.tries[~played.approved] == 4).all()
    # utilities lie between -0.8 and 1: Hoeffding at the level of this file
    width = 1.8 * np.sqrt(np.log(2 / FALSE_ALARM) / (2 * n))
    assert played.utilities.mean() == pytest.approx(worth(chance, 1.0, game, 4), abs=width)


def test_asking_again_is_no_use_against_keyed_draws() -> None:
    n = 5000
    X, y, draws = np.full((n, 1), -1e-12), np.full(n, -1e-12), KeyedDraws(b"a key of sixteen bytes")
    once = GAME.play(TRIVIAL, X, y, draws=draws, ids=range(n))
    often = replace(GAME, max_tries=10, retry_cost=0.03).play(
        TRIVIAL, X, y, draws=draws, ids=range(n), random_state=1
    )
    np.testing.assert_array_equal(often.approved, once.approved)
    np.testing.assert_array_equal(once.approved, draws(range(n)) <= 0.25)
    np.testing.assert_allclose(
        often.utilities, once.utilities - np.where(once.approved, 0, 9 * 0.03)
    )
    odd = (
        np.arange(n) % 2 == 1
    )  # a draw belongs to the person, whoever else applies and in whatever order
    backwards = GAME.play(TRIVIAL, X, y, odd[::-1], draws=draws, ids=range(n)[::-1])
    np.testing.assert_array_equal(backwards.approved[::-1], once.approved & odd)
    game = replace(GAME, max_tries=10)
    assert InformedApplicants().applies(game, TRIVIAL, X, y).all()
    assert not InformedApplicants(same_draw=True).applies(game, TRIVIAL, X, y).any()


# --- rounds


def test_gains_are_those_of_a_loop_over_people() -> None:
    rng, game = (
        np.random.default_rng(11),
        replace(GAME, threshold=0.3, max_tries=3, retry_cost=0.05),
    )
    X, y = rng.normal(size=(300, 1)), rng.normal(size=300)
    applied = rng.uniform(size=300) < 0.6
    played = game.play(LinkBank(0.3), X, y, applied, random_state=12)
    r = iter(fresh((int(applied.sum()), 3), 12))
    gains, bank_gains = [], []
    for i in range(300):
        gain = bank_gain = 0.0
        if applied[i]:
            answers = [
                float(LinkBank(0.3).forecast(X[[i]], [one]).cdf(0.3)[0]) <= 0.25 for one in next(r)
            ]
            tries = answers.index(True) + 1 if any(answers) else 3
            gain = (0.2 if y[i] >= 0.3 else 1.0) if any(answers) else -0.5
            gain -= 0.05 * (tries - 1)
            bank_gain = (1.0 if y[i] >= 0.3 else -3.0) if any(answers) else 0.0
        gains.append(gain)
        bank_gains.append(bank_gain)
    np.testing.assert_allclose(played.utilities, gains)
    np.testing.assert_array_equal(played.bank_utilities, bank_gains)
    assert played.bank_utility == pytest.approx(np.mean(bank_gains))
    assert played.bank_utility_per_applicant == pytest.approx(np.sum(bank_gains) / applied.sum())
    assert played.exploiting == pytest.approx(np.mean(applied & (y < 0.3)))
    again = game.play(LinkBank(0.3), X, y, applied, random_state=12)
    np.testing.assert_array_equal(again.tries, played.tries)


def test_a_round_says_what_happened() -> None:
    played = Round(
        GAME,
        qualified=np.array([True, True, False, False, True]),
        applied=np.array([True, True, True, True, False]),
        approved=np.array([True, False, True, False, False]),
        tries=np.array([1, 1, 1, 1, 0]),
    )
    # bank: 1 - 3 of five people and four applicants; applicants: 0.2 - 0.5 + 1 - 0.5 of four
    numbers = re.findall(r"-?\d+\.?\d*", played.summary())
    assert [float(one) for one in numbers] == [4, 5, 2, 1, -0.4, -0.5, 0.05]
    assert (played.exploiting, played.bad_loan_share) == (2 / 5, 1 / 5)


def test_a_round_without_applicants_is_empty() -> None:
    played = GAME.play(LinkBank(0.1), np.zeros((4, 1)), np.zeros(4), np.zeros(4, dtype=bool))
    assert not played.approved.any()
    assert not played.tries.any()
    assert (played.bank_utility, played.bank_utility_per_applicant, played.exploiting) == (0, 0, 0)
    assert played.summary().startswith("0 of 4 people applied, 0 were approved")
    assert "nan" not in played.summary()


@pytest.mark.parametrize(
    "change",
    [
        {"y": np.zeros(3)},
        {"y": [0.0, np.nan]},
        {"applied": np.ones(3, dtype=bool)},
        {"applied": np.ones(2)},
        {"ids": [1, 2]},
        {"draws": KeyedDraws(b"a key of sixteen bytes")},
        {"draws": KeyedDraws(b"a key of sixteen bytes"), "ids": [1, 2, 3]},
    ],
)
def test_rounds_that_do_not_fit_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"^[^\n]+$"):
        GAME.play(LinkBank(), **({"X": np.zeros((2, 1)), "y": np.zeros(2)} | change))


def test_random_applicants_apply_at_their_share() -> None:
    X, y = np.zeros((50_000, 1)), np.zeros(50_000)
    assert is_plausible(
        int(RandomApplicants(0.3, random_state=0).applies(GAME, None, X, y).sum()), 50_000, 0.3
    )
    assert RandomApplicants().applies(GAME, None, X, y).all()
    for share in (0.0, 1.1, np.nan):
        with pytest.raises(InputError, match="share"):
            RandomApplicants(share)


# --- people who learn, and rounds that follow each other


def customers(n: int, rounds: int, rng: np.random.Generator) -> list[tuple[Floats, Floats]]:
    X = [rng.normal(size=(n, 3)) for _ in range(rounds)]
    return [(x, x[:, 0] + 0.5 * rng.normal(size=n)) for x in X]


def test_learning_applicants_come_to_know_a_clear_cut_bank() -> None:
    bank, stream = LinkBank(std=0.2), customers(1000, 4, np.random.default_rng(15))
    rounds = play_rounds(GAME, bank, stream, LearningApplicants(random_state=0, max_epochs=40))
    assert rounds[0].applied.all()
    informed = [InformedApplicants().applies(GAME, bank, X, y) for X, y in stream]
    # the bank's answer depends on x alone, and half of the people are refused
    assert 0.4 < np.mean(informed[-1]) < 0.5
    assert np.mean(rounds[-1].applied == informed[-1]) > 0.95
    assert rounds[-1].utilities.mean() > rounds[0].utilities.mean() + 0.1


def test_memory_keeps_the_latest_applicants() -> None:
    rng = np.random.default_rng(16)
    X, y = rng.normal(size=(1800, 2)), rng.normal(500, 10, 1800)
    gain = np.where(
        (y > 500) ^ (np.arange(1800) >= 1200), 1.0, -1.0
    )  # later on it is the other way round
    for memory, sign in ((600, -1), (10_000, 1)):
        people = LearningApplicants(memory=memory, random_state=0)
        people.learn(X[:1200], y[:1200], gain[:1200])
        people.learn(X[1200:], y[1200:], gain[1200:])
        assert np.mean(people.applies(GAME, None, X, y) == (sign * (y - 500) > 0)) > 0.85


def test_people_learn_that_everybody_is_refused() -> None:
    rng = np.random.default_rng(17)
    X, y = rng.normal(size=(1000, 2)), rng.normal(size=1000)
    for seed in range(5):
        people = LearningApplicants(random_state=seed)
        people.learn(X, y, np.full(1000, -0.5))
        assert people.applies(GAME, None, X, y).mean() < 0.05


@pytest.mark.filterwarnings("error")
def test_learning_from_few_people_gives_no_warnings() -> None:
    rng = np.random.default_rng(18)
    LearningApplicants(max_epochs=2, random_state=0).learn(
        rng.normal(size=(150, 2)), np.ones(150), rng.normal(size=150)
    )


def frame(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, Floats]:
    income = rng.normal(size=n)
    age, job = np.where(rng.uniform(size=n) < 0.2, np.nan, 40.0), rng.choice(["a", "b", None], n)
    table = pd.DataFrame({"income": income, "age": age, "job": job}, index=rng.permutation(n))
    return table, income + 0.3 * rng.normal(size=n)


def test_people_learn_from_tables_with_missing_values() -> None:
    rng, bank, people = (
        np.random.default_rng(19),
        LinkBank(std=0.2),
        LearningApplicants(random_state=0),
    )
    (X, y), (new_X, new_y) = frame(2000, rng), frame(1000, rng)
    play_rounds(GAME, bank, [(X, y)], people)
    informed = InformedApplicants().applies(GAME, bank, new_X, new_y)
    assert np.mean(people.applies(GAME, bank, new_X, new_y) == informed) > 0.9


def recording() -> tuple[BaseEstimator, list[tuple[Any, Floats]]]:
    """Return a bank and the list of what it learns."""
    fits: list[tuple[Any, Floats]] = []

    class Recorder(BaseEstimator):
        def fit(self, X: Any, y: Floats) -> Any:
            fits.append((X, y))
            self.n_seen_ = len(y)
            return self

        def forecast(self, X: Any, r: Any = None) -> Forecast:
            return LinkBank(std=0.1).forecast(X)

    return Recorder(), fits


@pytest.mark.parametrize("labels", ["approved", "all"])
@pytest.mark.parametrize(
    "make", [frame, lambda n, rng: customers(n, 1, rng)[0]], ids=["table", "array"]
)
def test_banks_learn_from_the_labels_they_may_see(labels: Any, make: Any) -> None:
    rng, (bank, fits) = np.random.default_rng(17), recording()
    start, stream = make(30, rng), [make(200, rng) for _ in range(3)]
    rounds = play_rounds(
        GAME, bank, stream, RandomApplicants(0.7, random_state=0), labels=labels, start=start
    )
    assert not hasattr(bank, "n_seen_")  # the caller's estimator stays as it was
    assert len(fits) == 3
    X, y = [np.asarray(start[0])], [start[1]]
    for (seen_X, seen_y), played, (new_X, new_y) in zip(fits, rounds, stream, strict=True):
        pd.testing.assert_frame_equal(pd.DataFrame(np.asarray(seen_X)), pd.DataFrame(np.vstack(X)))
        np.testing.assert_array_equal(seen_y, np.concatenate(y))
        assert not hasattr(seen_X, "index") or seen_X.index.is_unique
        rows = played.approved if labels == "approved" else np.ones(200, dtype=bool)
        X.append(np.asarray(new_X)[rows])
        y.append(new_y[rows])
        assert 0 < played.approved.sum() < 200


def test_banks_without_labels_stay_as_they_are_and_people_learn_from_applicants_only() -> None:
    bank, fits = recording()
    heard: list[tuple[Any, ...]] = []

    class Listening(RandomApplicants):
        def learn(self, X: Any, y: Any, utility: Any) -> None:
            heard.append((X, y, utility))

    stream = customers(100, 3, np.random.default_rng(18))
    rounds = play_rounds(GAME, bank, stream, Listening(0.3, random_state=0))
    assert not fits
    for (X, y), played, (seen_X, seen_y, gains) in zip(stream, rounds, heard, strict=True):
        np.testing.assert_array_equal(seen_X, X[played.applied])
        np.testing.assert_array_equal(seen_y, y[played.applied])
        np.testing.assert_array_equal(gains, played.utilities[played.applied])
    first = [
        play_rounds(GAME, LinkBank(0.1), stream, RandomApplicants(), random_state=4)[-1]
        for _ in range(2)
    ]
    np.testing.assert_array_equal(first[0].approved, first[1].approved)


@pytest.mark.parametrize(
    ("labels", "start"), [("approved", None), ("all", None), ("none", ([[0.0]], [0.0]))]
)
def test_a_start_that_is_missing_or_not_needed_is_refused(labels: Any, start: Any) -> None:
    with pytest.raises(InputError, match=r"^start [^\n]+$"):
        play_rounds(GAME, recording()[0], [], RandomApplicants(), labels=labels, start=start)
    with pytest.raises(InputError, match=r"^labels must [^\n]+$"):
        play_rounds(GAME, recording()[0], [], RandomApplicants(), labels="refused")  # type: ignore[arg-type]


# --- cost


def time_per_person(n: int, repeats: int) -> float:
    """Least processor time per person of two rounds: everybody applies, the informed do."""
    rng, times = np.random.default_rng(0), []
    X, y = rng.normal(size=(n, 1)), rng.normal(size=n)
    for _ in range(repeats):
        start = time.process_time()
        GAME.play(LinkBank(0.1), X, y, random_state=0)
        GAME.play(
            LinkBank(0.1),
            X,
            y,
            InformedApplicants().applies(GAME, LinkBank(0.1), X, y),
            random_state=0,
        )
        times.append(time.process_time() - start)
    return min(times) / n


def test_a_person_costs_as_much_among_a_million_as_among_few() -> None:
    few, many = time_per_person(50_000, 3), time_per_person(1_000_000, 1)
    assert many / few <= 2.0, (few, many)


@pytest.mark.parametrize("bank", [calibrated(1.0), LinkBank(0.1)], ids=["counted", "link"])
def test_draws_of_all_people_are_never_held_at_once(bank: Any) -> None:
    n = 300_000
    X, y = np.zeros((n, 1)), np.zeros(n)
    tracemalloc.start()
    try:
        GAME.approval_chance(bank, X)
        replace(GAME, max_tries=10).play(bank, X, y, random_state=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # 64 draws of all people are 154 MB for one array; those of a block, ten arrays of them, 102 MB
    assert peak < 130e6, peak


def test_rounds_against_keyed_draws_meet_the_same_draw_each_time() -> None:
    rng = np.random.default_rng(21)
    X, y, ids = np.zeros((300, 1)), rng.normal(size=300), np.arange(300)
    draws = KeyedDraws(b"sixteen bytes or more", context="2026")
    customers = [(X, y, ids), (X[::-1], y[::-1], ids[::-1])]
    once, again = play_rounds(GAME, TRIVIAL, customers, RandomApplicants(), draws=draws)
    assert np.array_equal(once.approved, again.approved[::-1])
    assert np.array_equal(
        once.approved, draws(ids) <= 0.25
    )  # the trivial bank says r, whoever asks
    assert once.bank is TRIVIAL
    with pytest.raises(InputError, match=r"customers .*\(X, y, ids\) per round"):
        play_rounds(GAME, TRIVIAL, [(X, y)], RandomApplicants(), draws=draws)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: play_rounds(
                GAME, TRIVIAL, (column([1.0, 2.0]), [1.0, 2.0]), RandomApplicants()
            ),
            "customers must",
        ),
        (
            lambda: play_rounds(GAME, TRIVIAL, [], InformedApplicants),
            "applicants .*InformedApplicants",
        ),
        (
            lambda: play_rounds(GAME, object(), [], InformedApplicants()),
            "bank must be a fitted forecaster",
        ),
        (lambda: GAME.play(object(), column([1.0]), [1.0]), "bank must be a fitted forecaster"),
        (lambda: GAME.play(TRIVIAL, None, [1.0]), "X must have one row per person of y"),
        (
            lambda: GAME.play(TRIVIAL, column([1.0]), [1.0], InformedApplicants()),
            "applied .*one boolean",
        ),
        (
            lambda: GAME.play(TRIVIAL, column([1.0]), [1.0], draws=b"key", ids=[1]),
            "draws must be KeyedDraws",
        ),
        (
            lambda: GAME.expected_bank_utility([0.5], [1.0, 2.0]),
            "chance must have one value per person",
        ),
        (lambda: GAME.expected_utility([50.0], [1.0]), "chance must lie between 0 and 1"),
        (
            lambda: LearningApplicants().predicted_utility(column([1.0]), [1.0]),
            "call learn first",
        ),
        (
            lambda: LearningApplicants().learn(column([1.0]), [1.0, 2.0], [1.0]),
            "y must have one value per row",
        ),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(call: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_rounds_make_a_table() -> None:
    rng = np.random.default_rng(22)
    X, y = rng.normal(size=(200, 1)), rng.normal(size=200)
    (played,) = play_rounds(GAME, TRIVIAL, [(X, y)], RandomApplicants(), random_state=0)
    row = played.measures()
    assert (row["people"], row["applied"], row["approved"]) == (200, 200, played.approved.sum())
    assert (
        row["bad_loans"] == (played.approved & (y < 0)).sum() == round(row["bad_loan_share"] * 200)
    )
    assert row["default_rate"] == pytest.approx(row["bad_loans"] / row["approved"])
    assert np.isnan(GAME.play(TRIVIAL, X, y, np.zeros(200, dtype=bool)).default_rate)
    assert (
        repr(played)
        == f"Round(200 people, 200 applied, {row['approved']} approved, {row['bad_loans']} of them"
        " unqualified)"
    )
