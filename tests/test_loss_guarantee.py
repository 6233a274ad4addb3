"""The certificate of realized losses, from rows of calibrated worlds.

In these worlds a person's outcome is normal around the person's mean, and a randomized forecast is
a normal law whose mean is the person's plus `shift * ndtri(r)`: if its variance is that of the
outcome plus `shift**2`, the PIT is uniform for each person, though the forecast is not the truth.
"""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from complaints import refused
from evenhand.decisions import BayesDecision, StepLoss, loss_guarantee
from evenhand.distributions import Normal
from evenhand.draws import jittered, nodes
from evenhand.forecast import Forecast
from repeats import repeats, statistical

FALSE_ALARM = 1e-6
KS = (2.0, 4.0, 10.0)
NOISE, SHIFT = 0.3, 1.0
FORECAST_STD = float(np.hypot(NOISE, SHIFT))
JUST_ABOVE = 1e-12  # `y <= 0` as a step loss: a cut belongs to what is above it


def most_hits(n, probability, tests=1):
    """Return a count that is exceeded with probability below `FALSE_ALARM` over so many tests."""
    return int(stats.binom.isf(FALSE_ALARM / tests, n, probability))


def individually_calibrated(mean, r):
    """Forecast for outcomes `mean + NOISE * normal`, off by an amount that draws set."""
    centers = mean.reshape(-1, *(1,) * (r.ndim - 1)) + SHIFT * ndtri(r)
    return Forecast(Normal(centers, np.full(centers.shape, FORECAST_STD)), r)


BANK = BayesDecision(("yes", "no"), {"yes": StepLoss([0.0], [4.0, 0.0]), "no": 1.0})
TRADER = BayesDecision(
    ("buy", "sell"),
    {"buy": StepLoss([JUST_ABOVE], [1.0, 0.0]), "sell": StepLoss([0.0], [0.0, 1.0])},
)
BUYER = BayesDecision(["buy"], {"buy": StepLoss([0.0], [1.0, 0.0])})
SMOOTH = BayesDecision(("up", "down"), {"up": np.exp, "down": lambda y: np.exp(-y)})


def never_mixing(person):
    """Losses that rise for odd people and fall for even ones, beside one never chosen."""
    rises = person[:, None] % 2 == 1
    own = StepLoss([0.0, 1.0], np.where(rises, [0.0, 0.2, 3.0], [3.0, 0.2, 0.0]))
    other = StepLoss([0.0, 1.0], np.where(rises, [13.0, 10.2, 10.0], [10.0, 10.2, 13.0]))
    return BayesDecision(("own", "never"), {"own": own, "never": other})


# --- the theorem, for each person: counts are within their binomial law at a level of 1e-6


def exceeds(decision, forecast, y, k):
    made = decision.decide(forecast)
    return np.asarray(decision.realized_loss(made, y) > k * made.promised)


N_PEOPLE, N_TIMES = 1000, 300
PERSON = np.tile(np.arange(N_PEOPLE), N_TIMES)


@pytest.mark.parametrize("decision", [BANK, BUYER, never_mixing(PERSON)], ids=["1", "2", "mixed"])
def test_individual_calibration_is_enough_where_the_direction_depends_on_no_draw(decision):
    rng = np.random.default_rng(20)
    mean = rng.normal(size=N_PEOPLE)[PERSON]
    y = mean + NOISE * rng.normal(size=mean.size)
    forecast = individually_calibrated(mean, rng.uniform(size=mean.size))
    for k in KS:
        hits = exceeds(decision, forecast, y, k).reshape(N_TIMES, N_PEOPLE).sum(axis=0)
        assert hits.max() <= most_hits(N_TIMES, 1 / k, tests=N_PEOPLE * len(KS))


@pytest.mark.parametrize("k", KS)
def test_two_in_k_is_attained_where_the_draw_decides_the_direction(k):
    # (method: decisions) outcome 0, forecasts with CDF r there: individually calibrated
    n = 200_000
    r = np.random.default_rng(1).uniform(size=n)
    hits = int(exceeds(TRADER, Forecast(Normal(-ndtri(r), np.ones(n)), r), np.zeros(n), k).sum())
    assert stats.binom.ppf(FALSE_ALARM, n, 2 / k) <= hits <= most_hits(n, 2 / k)
    assert hits > most_hits(n, 1 / k)


def guarantee(decision, n=200, m=16, seed=0, **settings):
    """Of the randomized forecaster, with m draws each; m = 0 for the truth without draws."""
    rng = np.random.default_rng(seed)
    mean = rng.normal(0.0, 1.0, n)
    y = mean + NOISE * rng.normal(size=n)
    r = jittered(n, m, rng) if m else None
    forecast = (
        Forecast.from_normal(mean, np.full(n, NOISE))
        if r is None
        else individually_calibrated(mean, r)
    )
    return loss_guarantee(decision, forecast, y, **{"random_state": seed, **settings})


@pytest.mark.parametrize(
    ("decision", "m", "factor", "why"),
    [
        (BANK, 16, 1, "all actions are monotone in the same direction"),
        (BANK, 1, 1, "all actions are monotone in the same direction"),
        (never_mixing(np.arange(200)), 16, 1, "16 draws each"),
        (TRADER, 16, 2, "depends on the draw"),
        (TRADER, 1, 2, "1 draw per person cannot show"),
        (never_mixing(np.arange(200)), 1, 2, "1 draw per person cannot show"),
        (BANK, 0, 1, "same direction for all people"),
        (TRADER, 0, 2, "chosen actions rise in both directions"),
        (SMOOTH, 16, 2, "depends on the draw"),
        (never_mixing(np.arange(200)), 0, 2, "chosen actions rise in both directions"),
    ],
)
def test_the_bound_and_its_reason_fit_the_losses_and_the_draws(decision, m, factor, why):
    found = guarantee(decision, m=m)
    assert found.factor == factor
    assert why in found.why
    everyone = found.table[found.table["kind"] == "everyone"]
    np.testing.assert_allclose(everyone["bound"], np.minimum(1, factor / np.array(KS)))
    assert found.is_randomized == (m > 0)


@pytest.mark.parametrize("m", [0, 1, 8])
def test_rates_are_counts_over_people_and_draws(m):
    n, rng = 40, np.random.default_rng(2)
    mean, y = rng.normal(0, 1, n), rng.normal(0, 1, n)
    forecast = (
        individually_calibrated(mean, jittered(n, m, rng))
        if m
        else Forecast.from_normal(mean, np.ones(n))
    )
    half = np.arange(n) < 15
    found = loss_guarantee(
        BANK, forecast, y, groups={"first": half}, masses=(0.25, 1.0), random_state=0
    )
    risk = np.reshape(stats.norm.cdf(0.0, forecast.mean(), forecast.std()), (n, -1))
    losses = np.where(4 * risk <= 1, 4.0 * (y < 0)[:, None], 1.0)
    promised = np.minimum(4 * risk, 1)
    everyone = found.table.loc[0]
    assert everyone["promised"] == pytest.approx(promised.mean())
    assert everyone["realized"] == pytest.approx(losses.mean())
    for k in KS:
        shares = (losses > k * promised).mean(axis=1)
        rows = found.table[found.table["k"] == k].set_index("group")
        assert rows.loc["everyone", "exceeded"] == pytest.approx(shares.mean())
        assert rows.loc["first", "exceeded"] == pytest.approx(shares[half].mean())
        assert rows.loc["first", "n"] == 15
        expected = np.sort(shares)[-10:].mean()
        assert rows.loc["every group of 25%", "exceeded"] == pytest.approx(expected)
        assert rows.loc["every group of 100%", "exceeded"] == pytest.approx(shares.mean())


def test_a_loss_of_just_k_times_the_promise_does_not_exceed_it():
    found = guarantee(BayesDecision(["pay"], {"pay": 3.0}), k=1)
    assert (found.table["exceeded"] == 0).all()


def test_one_row_of_each_person_is_counted():
    person = np.repeat(np.arange(30), 4)
    same = np.repeat(np.random.default_rng(3).normal(size=30), 4)  # a person's rows are alike
    r = np.repeat(jittered(30, 8, 0), 4, axis=0)
    found = loss_guarantee(
        BANK, individually_calibrated(same, r), same, person=person, k=2, random_state=0
    )
    assert "group sizes are shares of people, not of rows" in found.summary()
    alone = loss_guarantee(
        BANK, individually_calibrated(same[::4], r[::4]), same[::4], k=2, random_state=0
    )
    assert found.table.loc[0, "n"] == 30
    np.testing.assert_allclose(found.table["exceeded"], alone.table["exceeded"])
    assert found.table.loc[0, "promised"] == pytest.approx(alone.table.loc[0, "promised"])


def test_a_group_of_which_no_row_is_left_claims_nothing():
    mask = np.zeros(60, dtype=bool)
    mask[7] = True
    left = [
        guarantee(
            BANK, n=60, k=4, groups={"g": mask}, person=np.arange(60) // 30, random_state=seed
        ).table.loc[1]
        for seed in range(3)
    ]
    gone = [row for row in left if row["n"] == 0]
    assert gone
    for row in gone:
        assert (row["low"], row["high"], row["verdict"]) == (0.0, 1.0, "open")
        assert np.isnan(row["exceeded"])


N_SETS, N_ROWS = repeats(400), 60
RISKY, BIAS = 0.2, 0.7
"""Worlds that no forecast here fits: outcomes are N(0.7, 1), for a risky fifth of the people
N(-0.3, 1)."""


def proof_worlds(m):
    for seed in range(N_SETS):
        rng = np.random.default_rng(seed)
        risky = rng.uniform(size=N_ROWS) < RISKY
        y = rng.normal(size=N_ROWS) + BIAS - risky
        centers = np.full(N_ROWS, 0.8)
        if m:
            forecast = individually_calibrated(centers, jittered(N_ROWS, m, rng))
        else:
            forecast = Forecast.from_normal(centers, np.ones(N_ROWS))
        groups = {"risky": risky, "some": ~risky & (rng.uniform(size=N_ROWS) < 0.25)}
        yield loss_guarantee(
            BUYER, forecast, y, k=4, groups=groups, masses=(0.1, RISKY, 0.5), random_state=seed
        )


def true_rates(m):
    """Closed form: outcomes below the cut whose draw promised a quarter of the loss or less."""
    lure = (
        float(ndtr((FORECAST_STD * ndtri(0.25) + 0.8) / SHIFT)) if m else float(ndtr(-0.8) < 0.25)
    )
    risky, rest = float(ndtr(-BIAS + 1)), float(ndtr(-BIAS))
    hit = RISKY * risky + (1 - RISKY) * rest
    return {
        "everyone": lure * hit,
        "risky": lure * risky,
        "some": lure * rest,
        "hit": hit,
        "lure": lure,
    }


@statistical
@pytest.mark.parametrize("m", [0, 1, 16])
def test_intervals_and_worst_groups_hold_with_their_confidence(m):
    truth = true_rates(m)
    assert truth["lure"] > 0.3
    misses = dict.fromkeys(("everyone", "named", "feature", "outcome"), 0)
    for found in proof_worlds(m):
        rows = found.table.set_index("group")
        inside = {
            g: rows.loc[g, "low"] <= truth[g] <= rows.loc[g, "high"]
            for g in ("everyone", "risky", "some")
        }
        every = rows[rows["kind"] == "every"]
        # those who will be hit are a group too, one that only the outcomes define
        worst = truth["lure"] * np.minimum(1, truth["hit"] / every["mass"])
        misses["everyone"] += not inside["everyone"]
        misses["named"] += not (inside["risky"] and inside["some"])
        misses["feature"] += bool(rows.loc["every group of 20%", "high"] < truth["risky"])
        misses["outcome"] += bool((every["high"] < worst).any())
        assert (every["low"] == 0).all()  # nothing is claimed from below
    for kind, count in misses.items():
        assert count <= most_hits(N_SETS, 0.05, tests=len(misses)), kind


def test_one_outcome_per_person_is_judged_by_the_binomial_law():
    found = guarantee(BUYER, m=1, n=150, k=4, masses=(0.2, 0.5)).table.set_index("group")
    hits, n = round(found.loc["everyone", "exceeded"] * 150), 150
    exact = stats.binomtest(hits, n).proportion_ci(0.95, method="exact")
    ours = found.loc["everyone", ["low", "high"]].astype(float)
    np.testing.assert_allclose(ours, [exact.low, exact.high])
    above = stats.binomtest(hits, n, alternative="less").proportion_ci(0.95, method="exact").high
    every = found[found["kind"] == "every"]
    np.testing.assert_allclose(every["high"], np.minimum(1, above / every["mass"]))


def test_named_groups_share_the_risk():
    n, k = 90, 4
    thirds = {f"part {j}": np.arange(n) % 3 == j for j in range(3)}
    found = guarantee(BUYER, m=0, n=n, k=k, groups=thirds).table.set_index("group")
    for name in thirds:
        hits = round(found.loc[name, "exceeded"] * 30)
        exact = stats.binomtest(hits, 30).proportion_ci(1 - 0.05 / 3, method="exact")
        ours = found.loc[name, ["low", "high"]].astype(float)
        np.testing.assert_allclose(ours, [exact.low, exact.high])


@pytest.mark.parametrize(("m", "of_everyone"), [(0, True), (1, False), (8, False)])
def test_without_draws_a_group_may_hold_all_misses(m, of_everyone):
    found = guarantee(BANK, m=m).table
    every = found[found["kind"] == "every"]
    bound = 1 / every["k"] / (every["mass"] if of_everyone else 1)
    np.testing.assert_allclose(every["bound"], np.minimum(1, bound))


def test_each_verdict_says_how_the_interval_lies_to_the_bound():
    proven = guarantee(BANK, n=4000, m=8, k=(1, 2))
    expected = {1: ["no claim"], 2: ["proven"]}
    assert proven.table.groupby("k")["verdict"].unique().map(list).to_dict() == expected
    assert set(guarantee(BUYER, n=15, m=1, k=4, masses=0.5).table["verdict"]) == {"open"}
    n = 500
    forecast = Forecast.from_normal([2.0] * n, [1.0] * n)
    surprised = loss_guarantee(BUYER, forecast, np.full(n, -1.0), k=4, masses=0.5)
    # nothing from below for every group
    assert surprised.table["verdict"].tolist() == ["broken", "open"]
    assert guarantee(TRADER, k=2).table.loc[0, "verdict"] == "no claim"
    # 4 of 10 where a quarter is allowed: the interval, 12% to 74%, leaves it open
    y = np.repeat([-1.0, 1.0], [4, 6])
    ten = Forecast.from_normal([2.0] * 10, [1.0] * 10)
    few = loss_guarantee(BUYER, ten, y, k=4, masses=1.0).table.loc[0]
    assert (few["exceeded"], few["verdict"]) == (0.4, "open")


def _shared(r):
    n = 30
    forecast = Forecast.from_normal(np.zeros(n), np.ones(n)).randomized(0.2, r=r)
    return loss_guarantee(BUYER, forecast, np.zeros(n))


def test_what_proves_nothing_is_refused_in_one_line():
    refused("r .*the same draws for", _shared, nodes(8))
    twins = np.repeat(jittered(15, 4, 0), 2, axis=0)
    refused("the same draws in rows .*person", _shared, twins)
    near = np.random.default_rng(0).uniform(0.90, 0.91, size=(30, 16))
    refused("one draw in each of 16 equal cells", _shared, near)
    refused("k.* at least 1.* 0.5", guarantee, BUYER, k=0.5)
    refused("'g'.*empty", guarantee, BUYER, groups={"g": np.zeros(200, dtype=bool)})
    one = Forecast.from_normal([0.0], [1.0])
    refused(r"y .*one value per row \(1\)", loss_guarantee, BUYER, one, [0.0, 1.0])
    line, square, later = (
        BayesDecision(["a"], {"a": loss}) for loss in (lambda y: y, lambda y: y**2, lambda y: y + 1)
    )
    refused("'a' .*at least 0.*; add .*constant", guarantee, line)
    refused("'a' .*monotone", guarantee, square)
    # negative where forecasts reach, though not at the outcomes
    twenty = Forecast.from_normal([0.0] * 20, [1.0] * 20)
    refused("'a' must be at least 0", loss_guarantee, later, twenty, np.full(20, 2.0))
