"""Groups whose members are known by probability: estimates, intervals and bounds."""

import numpy as np
import pytest
from scipy import optimize

from evenhand import Forecast, audit, audit_pit
from evenhand.audits import Search
from evenhand.calibration import calibration_error, covered, mean_bounds
from evenhand.report.slots import Slots
from parts_examples import searching
from repeats import most_failures, repeats, statistical
from test_scan import student_p_value

QUICK = {"search": Search(masses=[1.0], learned_masses=[], n_simulations=2)}


def audited(pit, shares, residual=None, **options):
    return audit_pit(
        pit, residual=residual, groups={"proxy": shares}, random_state=0, **QUICK, **options
    )


def proxy_row(found):
    return found.groups.set_index("group").loc["proxy"]


def test_estimates_are_means_weighted_by_the_probabilities():
    random = np.random.default_rng(0)
    pit, p, residual = random.beta(2, 1, 400), random.beta(1, 2, 400), random.normal(size=400)
    weight = random.uniform(0.5, 2, 400)
    for w, options in ((np.ones(400), {}), (weight, {"sample_weight": weight})):
        found = audited(pit, p, residual, **options)
        row = proxy_row(found)
        assert row["coverage_80"] == pytest.approx(np.average(covered(pit, 0.8), weights=p * w))
        assert row["coverage_90"] == pytest.approx(np.average(covered(pit, 0.9), weights=p * w))
        assert row["bias"] == pytest.approx(np.average(residual, weights=p * w))
        assert row["mean_pit"] == pytest.approx(np.average(pit, weights=p * w))
        assert row["error"] == pytest.approx(calibration_error(pit, sample_weight=p * w))
        assert row["n"] == round(p.sum())
        assert found.membership["members"][0] == pytest.approx(p.sum())


def test_probabilities_belong_to_their_rows_where_others_are_left_out():
    random = np.random.default_rng(0)
    pit, p, residual = random.beta(2, 1, 400), random.beta(1, 2, 400), random.normal(size=400)
    weight = (np.arange(400) >= 100).astype(float)
    some = proxy_row(audited(pit, p, residual, sample_weight=weight))
    alone = proxy_row(audited(pit[100:], p[100:], residual[100:]))
    for key in ("error", "coverage_80", "coverage_90", "mean_pit", "bias", "n"):
        assert some[key] == pytest.approx(alone[key])


def test_bounds_are_the_optimum_of_a_linear_program():
    # part a of each row is a member, sum of a = sum of p by proxy; no margin at confidence 0
    random = np.random.default_rng(0)
    proxy = np.repeat([0, 1, 2], [150, 200, 250])
    shares = np.array([0.1, 0.43, 0.8])[proxy]
    weights = random.uniform(0.5, 2, 600)
    for values in (random.normal(size=600), (random.random(600) < 0.7).astype(float)):
        ends = []
        for sign in (1, -1):
            found = optimize.linprog(
                -sign * values * weights,
                A_eq=np.stack([weights * (proxy == v) for v in range(3)]),
                b_eq=[float((weights * shares)[proxy == v].sum()) for v in range(3)],
                bounds=(0, 1),
            )
            ends.append(-sign * found.fun / (weights @ shares))
        assert mean_bounds(values, shares, weights, 0.0) == pytest.approx((ends[1], ends[0]))


@statistical
def test_bounds_contain_the_group_at_the_worst_relation():
    # members are covered people first: all of those with p = 0.2, 0.6 of those with p = 0.9
    random = np.random.default_rng(3)
    truth = (0.2 + 0.6) / (0.2 + 0.9)
    n_sets = repeats(2000)
    outside = 0
    for _ in range(n_sets):
        p = random.choice([0.2, 0.9], 500)
        value = (random.random(500) < 0.6).astype(float)
        outside += mean_bounds(value, p, np.ones(500))[1] < truth
    assert outside <= most_failures(n_sets, 0.025)


@statistical
def test_intervals_contain_the_group_if_membership_is_independent_given_the_proxy():
    # 95% for each measure, as the family has one group; intervals are asymptotic: 6%
    random = np.random.default_rng(4)
    n_sets = repeats(1000)
    outside = {"bias": 0, "coverage_80": 0}
    for _ in range(n_sets):
        # bias and coverage depend on the proxy: covered with probability 0.8 - 0.2 proxy
        proxy = random.random(400) < 0.5
        p = np.where(proxy, 0.7, 0.2)
        is_covered = random.random(400) < 0.8 - 0.2 * proxy
        pit = np.where(is_covered, 0.5, 0.01)
        row = proxy_row(audited(pit, p, random.normal(0.5 * proxy, 1.0)))
        truth = {"bias": 0.5 * 0.7 / 0.9, "coverage_80": 0.8 - 0.2 * 0.7 / 0.9}
        for key, value in truth.items():
            outside[key] += not row[f"{key}_low"] <= value <= row[f"{key}_high"]
    assert max(outside.values()) <= most_failures(n_sets, 0.06)


def test_a_group_known_by_probability_is_tested_with_the_others():
    # its members are rows with weights (verdict.md, section 4): studentized sums with Hall's
    # correction, twice the smaller of two p-values; Holm's method for 2 groups, at 2 points of 5
    random = np.random.default_rng(0)
    p, pit, mask = random.random(500), random.random(500), random.random(500) < 0.5
    found = audit_pit(pit, groups={"mask": mask, "proxy": p}, random_state=0, **QUICK).groups
    values = (p * (pit - 0.5), p * (abs(pit - 0.5) - 0.25))
    expected = min(1.0, *(2 * student_p_value(d, p.sum() ** 2 / (p @ p)) for d in values))
    row = found.set_index("group").loc["proxy"]
    assert row["p_value"] == pytest.approx(expected)
    first, last = sorted(found["p_value"][1:])
    by_holm = 2 * first if row["p_value"] == first else max(2 * first, last)
    assert row["p_adjusted"] == pytest.approx(min(by_holm * 0.05 / 0.02, 1.0))
    assert row["error_low"] == 0
    assert not row["off"]
    # people with high probabilities have PITs that are too high
    shifted = np.clip(pit + 0.3 * p, 0, 1)
    row = proxy_row(audited(shifted, p))
    assert row["off"]
    assert 0 < row["error_low"] < row["error"]
    few = audited(shifted[:25], p[:25])
    assert np.isnan(proxy_row(few)["p_value"])
    assert proxy_row(few)["error_low"] == 0


@statistical
def test_calibrated_forecasts_are_off_for_a_proxy_at_the_level():
    random = np.random.default_rng(5)
    n_sets = repeats(1000)
    off = sum(
        bool(proxy_row(audited(random.random(200), random.beta(1, 3, 200)))["off"])
        for _ in range(n_sets)
    )
    assert off <= most_failures(n_sets, 0.05)


def test_findings_of_a_proxy_are_those_of_weighted_rows_and_prove_nothing_of_members():
    random = np.random.default_rng(1)
    p = random.random(2000)
    # PITs of mean 1/4 are far too low, whatever the weights
    found = audited(random.random(2000) ** 3, p)
    row = proxy_row(found)
    assert row["off"]
    assert row["problem"]
    slots = Slots(found.rows)
    (case,) = [text for name, text in slots.others if name == "Proxy"]
    assert "outcomes are lower than forecast" in case
    assert f"({row['n']:,} expected members)" in case
    (caution,) = slots.cautions
    assert caution.startswith("Numbers of proxy are those of all rows, weighted by the probability")
    # members of a group known by probability have no upper bound of their error
    chance = random.random(2000)
    y = (random.random(2000) < chance).astype(float)
    for groups, is_proven in ((None, True), ({"half": p > 0.5}, True), ({"proxy": p}, False)):
        given = searching(QUICK, tolerance=0.3) | {"groups": groups, "random_state": 0}
        calm = audit(Forecast.from_probability(chance), y=y, **given)
        assert calm.status.is_proven is is_proven


def test_named_groups_of_events_are_as_without_a_group_known_by_probability():
    random = np.random.default_rng(2)
    chance = random.random(2000)
    y = (random.random(2000) < chance).astype(float)
    masks = {"low": chance < 0.4, "even": np.arange(2000) % 2 == 0}
    both = audit(Forecast.from_probability(chance), y=y, groups=masks | {"proxy": chance**2})
    found = both.groups.set_index("group")
    assert found.loc["proxy", "bias"] == pytest.approx(np.average(y - chance, weights=chance**2))
    for name, mask in masks.items():
        assert found.loc[name, "rate"] == pytest.approx(y[mask].mean())
