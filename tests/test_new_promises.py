"""Levels of the bounds of kinds of outcomes, of weights, shifts and unions (method: 12).

Each simulates data sets in which the truth is known and counts how often a bound is below it. The
forecasts are right, so that the worst group of a size is one with the lowest or the highest
outcomes; a bound of 95% may fail in 5% of data sets.
"""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from complaints import refused
from evenhand import Forecast, InputError, Outcomes, audit, certify, randomize
from evenhand._format import at_most
from evenhand.certificates import certify_pit
from evenhand.certificates.unions import disjoint_cells
from evenhand.draws import jittered
from evenhand.links import Entropic
from evenhand.selection.plans import planned_unions
from evenhand.tables import check_groups
from repeats import most_failures, repeats, statistical

LINK = Entropic(0.15)
N, MASS, SETS = 400, 0.2, 320


def summary(proof):
    return " ".join(proof.summary().split())


def failures(is_below, whole=SETS):
    n_sets = repeats(whole)
    found = sum(is_below(np.random.default_rng([20, i])) for i in range(n_sets))
    assert found <= most_failures(n_sets)


def served_draws(n, random):
    return np.clip(random.random(n), 1e-12, 1 - 1e-12)


def true_coverage(mass=MASS):
    """Return the least and the largest coverage of 80% intervals in groups of right forecasts."""
    u = (np.arange(4000) + 0.5) / 4000
    r = (np.arange(2000) + 0.5) / 2000
    inside = ((u[:, None] >= LINK.cdf(0.1, r)) & (u[:, None] <= LINK.cdf(0.9, r))).mean(axis=1)
    inside.sort()
    size = round(mass * inside.size)
    return float(inside[:size].mean()), float(inside[-size:].mean())


RATE = 0.15


def is_outside(ends, truths):
    return ends[0] > truths[0] or ends[1] < truths[1]


@statistical
def test_bounds_of_weighted_samples_hold_in_the_population():
    """A tenth of the population is sampled at a tenth of the rate, and its forecasts are wrong."""
    # PITs of the rare people lie in the lowest fifth: the worst group has all of them
    rare, lowest = 0.1, 0.2
    truth = error_of_mixture(rare, lowest)

    def is_below(random):
        n = 6 * N
        sampled = rare * 0.1 / (rare * 0.1 + 1 - rare)
        is_rare = random.random(n) < sampled
        u = random.random(n) * np.where(is_rare, lowest, 1.0)
        base = Forecast.from_normal(np.zeros(n), np.ones(n))
        forecast = base.randomized(LINK.alpha, LINK, served_draws(n, random))
        y = Outcomes(stats.norm.ppf(u), weight=np.where(is_rare, 10.0, 1.0), largest_weight=10.0)
        return certify(forecast, y=y, random_state=random).group_error(MASS) < truth

    failures(is_below)


def error_of_mixture(rare, lowest, n=400_000):
    """Return the error of the fifth of all people with the lowest PITs, where some are lower."""
    random = np.random.default_rng(1)
    u = random.random(n) * np.where(random.random(n) < rare, lowest, 1.0)
    u = np.sort(u)[: round(MASS * n)]
    served = np.sort(LINK.ppf(u, served_draws(u.size, random)))
    return float(np.abs(served - (np.arange(u.size) + 0.5) / u.size).mean())


@statistical
@pytest.mark.parametrize("ratio", [2.0, 5.0, 10.0])
def test_bounds_under_shift_hold(ratio):
    """In the shifted population only a share `1 / ratio` of the people is left, the worst ones."""
    error, coverage = LINK.group_error(1 / ratio), true_coverage(1 / ratio)
    least = RATE * ratio if ratio * RATE < 1 else 1.0  # the share who have the event
    biases = -RATE, least - RATE

    def is_link_outside(random):
        mean, noise = random.normal(size=(2, N))
        base = Forecast.from_normal(mean, np.ones(N))
        forecast = base.randomized(LINK.alpha, LINK, served_draws(N, random))
        proof = certify(forecast, y=mean + noise, random_state=random).under_shift(ratio)
        return proof.group_error(1.0) < error or is_outside(proof.coverage(0.8, 1.0), coverage)

    def is_bias_outside(random):
        y = (random.random(N) < RATE).astype(float)
        forecast = Forecast.from_probability(np.full(N, RATE))
        proof = certify(forecast, y=y, random_state=random).under_shift(ratio)
        return is_outside(proof.bias(1.0), biases)

    for is_below in (is_link_outside, is_bias_outside):
        failures(is_below)


AREAS = ("a", "b", "c")
SHARES = (0.6, 0.25, 0.15)
"""Of 1,000 people about 150 live in the last area: it is merged in half of the data sets."""


def people_of(n, random):
    return pd.DataFrame(
        {"sex": random.choice(["f", "m"], n), "area": random.choice(AREAS, n, p=SHARES)}
    )


def cells_of(proof, X, values):
    """Return the mean of values of the population over the areas and sexes of each cell."""
    place = proof.unions.cells.place
    kinds = pd.DataFrame({"cell": place, "sex": X["sex"], "area": X["area"], "value": values})
    found = []
    for _, some in kinds.groupby("cell"):
        each = some.groupby(["sex", "area"])["value"].first()
        shares = [SHARES[AREAS.index(area)] for _, area in each.index]
        found.append(float(np.average(each, weights=shares)))
    return found


@statistical
def test_unions_bound_the_biases_of_all_cells():
    """Areas are biased in opposite directions, and cells near 150 rows are merged by chance."""
    biases = dict(zip(AREAS, (0.0, 0.1, -0.1), strict=True))

    def is_below(random):
        n = 2000
        X = people_of(n, random)
        off = X["area"].map(biases).to_numpy()
        y = (random.random(n) < 0.3 + off).astype(float)
        forecast = Forecast.from_probability(np.full(n, 0.3))
        proof = certify(forecast, X, y, groups=["sex", "area"], random_state=random)
        truths = cells_of(proof, X, off)
        return is_outside(proof.unions.bias(), (min(truths), max(truths)))

    failures(is_below)


@statistical
def test_unions_bound_the_error_and_the_coverage_of_all_cells():
    shift = 0.3
    z = np.linspace(-9.0, 9.0, 20_001)
    # W1 of PITs of outcomes shifted by `shift`: the distance of two CDFs over levels
    gaps = np.abs(stats.norm.cdf(z) - stats.norm.cdf(z + shift))
    error = float(np.trapezoid(gaps * stats.norm.pdf(z), z))
    edge = stats.norm.ppf(0.9)
    covered = float(stats.norm.cdf(edge - shift) - stats.norm.cdf(-edge - shift))

    def is_below(random):
        n = 1200
        X = people_of(n, random)
        y = random.normal(size=n) + shift * (X["sex"] == "f").to_numpy()
        forecast = Forecast.from_normal(np.zeros(n), np.ones(n))
        unions = certify(forecast, X, y, groups=["sex", "area"], random_state=random).unions
        ends = unions.coverage_80()
        return unions.error() < error or is_outside(ends, (covered, 0.8))

    failures(is_below)


def test_cells_are_merged_along_the_last_column_first():
    sex = np.repeat(["f", "m"], 1000)
    area = np.tile(np.repeat(["a", "b", "c", "d"], [500, 300, 100, 100]), 2)
    X = pd.DataFrame({"sex": sex, "area": area})
    cells = disjoint_cells(check_groups(["sex", "area"], 2000, X))
    assert cells.n_before == 8
    assert cells.names == (
        *("sex = f, area = a", "sex = f, area = b", "sex = f, area = c or area = d"),
        *("sex = m, area = a", "sex = m, area = b", "sex = m, area = c or area = d"),
    )
    assert np.bincount(cells.place).tolist() == [500, 300, 200] * 2
    # a column that is too small for its cells is merged as a whole
    X = pd.DataFrame({"sex": ["f"] * 900 + ["m"] * 100, "area": ["a", "b"] * 500})
    cells = disjoint_cells(check_groups(["sex", "area"], 1000, X))
    assert np.bincount(cells.place).min() >= 150


def test_more_than_a_thousand_cells_have_no_bound_but_named_groups_keep_theirs():
    random = np.random.default_rng(0)
    X = pd.DataFrame(random.integers(0, 2, (3000, 11)), columns=[f"c{i}" for i in range(11)])
    forecast = Forecast.from_normal(np.zeros(3000), np.ones(3000))
    proof = certify(forecast, X, random.normal(size=3000), groups=list(X), random_state=0)
    assert proof.unions.error() is None
    assert "at most 1,000 are bounded; name fewer columns" in summary(proof)
    assert len(proof.named_table()) == 22


def test_overlapping_groups_become_disjoint():
    member = np.arange(900) % 2 == 0
    old = np.arange(900) >= 300
    y = np.random.default_rng(0).normal(size=900)
    forecast = Forecast.from_normal(np.zeros(900), np.ones(900))
    proof = certify(forecast, y=y, groups={"member": member, "old": old}, random_state=0)
    assert list(proof.unions.table()["n"]) == [300, 150, 300, 150]
    assert "the groups overlap, and cells are their combinations" in summary(proof)


def test_cells_of_equal_names_keep_their_own_bounds():
    s = np.array(["1"] * 400 + ["1, t = 2"] * 200)
    t = np.array(["2"] * 200 + ["3"] * 200 + ["2"] * 100 + ["3"] * 100)
    u = np.random.default_rng(0).random(600)
    u[:200] *= 0.01
    unions = certify_pit(u, groups={"s": s, "t": t}, random_state=0).unions
    assert unions.error() == unions.table()["error"].max() > 0.49


def test_a_single_merged_cell_has_no_bound_and_the_text_names_unions_of_merged_ones():
    random = np.random.default_rng(0)
    job = random.integers(0, 30, 900)
    proof = certify_pit(random.random(900), groups={"job": job.astype(str)}, random_state=0)
    assert "In any union of these merged cells of job (5 cells, 900 rows)" in summary(proof)
    assert "have no bound of their own" in summary(proof)


def test_coverage_of_unions_of_times_under_a_link_is_that_over_all_draws():
    random = np.random.default_rng(0)
    y, is_lost = random.normal(size=600) + 10, random.random(600) < 0.03
    base = Forecast.from_normal(np.full(600, 10.0), np.ones(600))
    times = Outcomes(np.where(is_lost, y - 1, y), event=~is_lost)
    served = base.randomized(0.1, r=served_draws(600, random))
    proof = certify(served, y=times, groups={"a": random.random(600) < 0.5}, random_state=0)
    low, high = proof.unions.coverage_80() or (1.0, 0.0)
    assert 0.5 < low < 0.8 < high < 0.99


@statistical
def test_nine_of_ten_samples_reach_the_planned_bound_of_unions():
    planned = planned_unions(2000, 10, 0.95)
    n_sets, reached = repeats(SETS), 0
    for i in range(n_sets):
        random = np.random.default_rng([21, i])
        groups = {"cell": np.repeat(np.arange(10), 200).astype(str)}
        unions = certify_pit(random.random(2000), groups=groups, random_state=0).unions
        reached += (unions.error() or 1.0) <= planned[1]
    assert planned[0] == 10
    # the quantile is one of 50 samples, with a standard error of 0.04 of its level; 4 of both
    assert abs(reached / n_sets - 0.9) < 4 * (0.04**2 + 0.09 / n_sets) ** 0.5
    assert planned_unions(379, 10, 0.95)[0] == 0


def test_equal_weights_below_the_largest_of_the_design_are_thinned():
    """Rows of the largest weight may be missing by chance."""
    y = np.random.default_rng(0).normal(size=3000)
    outcomes = Outcomes(y, weight=np.ones(3000), largest_weight=10.0)
    forecast = Forecast.from_normal(np.zeros(3000), np.ones(3000))
    proof = certify(forecast, y=outcomes, random_state=0)
    for found in (proof, audit(forecast, y=outcomes, random_state=0).certificate):
        assert 200 < found.n_samples < 400
    whole = Outcomes(y, weight=np.full(3000, 10.0), largest_weight=10)
    assert certify(forecast, y=whole, random_state=0).n_samples == 3000


def test_persons_are_chosen_before_rows_are_thinned():
    """A person with many rows would be kept more often."""
    random = np.random.default_rng(0)
    has_many = random.random(2000) < 0.3
    person = np.repeat(np.arange(2000), np.where(has_many, 12, 1))
    y = np.where(has_many, 0.0, 2.0)[person] + random.normal(size=person.size)
    weight = np.where(random.random(2000) < 0.02, 10.0, 1.0)[person]
    outcomes = Outcomes(y, weight=weight, largest_weight=10.0, person=person)
    forecast = Forecast.from_normal(np.zeros(y.size), np.ones(y.size))
    proof = certify(forecast, y=outcomes, random_state=0)
    # 70% of the people are off by two standard deviations: an error of 0.295
    assert proof.average_error() > 0.295
    assert proof.thinned.n_kept == proof.n_samples
    assert proof.thinned.n_given == 2000


def test_too_few_thinned_rows_and_other_numbers_are_refused_in_one_line():
    forecast = Forecast.from_normal(np.zeros(300), np.ones(300))
    y = np.random.default_rng(0).normal(size=300)
    few = Outcomes(y, weight=np.ones(300), largest_weight=1e6)
    for call in (certify, lambda one, y, **given: randomize(lambda X: one, X=y.y[:, None], y=y)):
        refused("0 are left that need no weights", call, forecast, y=few, random_state=0)
    for largest in (np.nan, np.inf, "ten"):
        with pytest.raises(InputError, match="largest_weight must be a number of at least 0"):
            Outcomes(y, weight=np.ones(300), largest_weight=largest)
    for ratio in ("two", "2", True):
        rule = f"ratio must be a number of at least 1, got {ratio!r}"
        refused(rule, certify(forecast, y=y).under_shift, ratio)


def test_a_betting_certificate_under_a_shift_is_for_one_larger_size():
    r = jittered(500, 64, random_state=0)
    proof = certify_pit(r, r, method="betting", mass=0.1, random_state=0)
    shifted = proof.under_shift(3)
    assert shifted.group_error(0.3) == proof.group_error(0.1)
    assert shifted.average_error() == 0.5
    assert "30% of people " in summary(shifted)
    assert "All people together: nothing is proven" in summary(shifted)
    refused("ratio must be a number of at least 1", proof.under_shift, 0.5)
    refused("ratio must be at most 10", proof.under_shift, 11)


def test_all_people_off_the_atom_are_a_group_under_a_shift():
    random = np.random.default_rng(0)
    y = np.where(random.random(1500) < 0.4, 0.0, np.exp(random.normal(size=1500)))
    levels = np.linspace(0.01, 0.99, 99)
    amounts = Forecast.from_quantiles(levels, np.tile(np.exp(stats.norm.ppf(levels)), (1500, 1)))
    forecast = Forecast.from_hurdle(np.full(1500, 0.4), amounts)
    served = forecast.randomized(0.1, r=served_draws(1500, random))
    proof = certify(served, y=y, random_state=0).under_shift(5)
    assert proof.own_error() == proof.group_error(1.0)
    own = f"off by at most {at_most(proof.own_error())} points"
    assert f"All people whose outcome is not 0: {own}" in summary(proof)
