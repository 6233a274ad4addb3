"""Planning: rows for a guarantee, its price by the number of rows, and the power of group tests."""

import inspect
import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from complaints import refused
from evenhand import Forecast, audit, plan
from evenhand.audits import Search
from evenhand.certificates import certify_link
from evenhand.cli.repairing import plan as plan_command
from evenhand.draws import nodes
from evenhand.links import Entropic, make_link
from evenhand.search import group_test_rows, scan_groups, shift_of
from evenhand.selection.target import LEAST_ALPHA, largest_alpha, right_wider
from repeats import FALSE_ALARM, most_failures, repeats, statistical


def evenly_spread(n):
    return (np.arange(n) + 0.5) / n


@statistical
@pytest.mark.parametrize(
    ("error", "mass", "link"), [(0.2, 0.2, "entropic"), (0.3, 0.5, "gaussian")]
)
def test_the_rows_suffice_in_nine_of_ten_samples(error, mass, link):
    rows = plan(error, mass, link=link, rows=[100]).rows_needed
    assert len(str(rows).rstrip("0")) <= 3
    strongest = make_link(link, LEAST_ALPHA)
    rng = np.random.default_rng(5)
    n_sets = repeats(100, shorter=2)

    def n_certified(n):
        proofs = (certify_link(rng.uniform(size=n), strongest) for _ in range(n_sets))
        return sum(proof.group_error(mass) <= error for proof in proofs)

    # the approximation is good to 0.03 where links are not strong, and cautious where they are
    assert n_sets - n_certified(rows) <= most_failures(n_sets, 0.13)
    assert n_certified(int(0.6 * rows)) <= most_failures(n_sets, 0.6)


def test_what_the_smallest_alpha_does_not_certify_is_refused(monkeypatch):
    monkeypatch.setattr("evenhand.selection.target.NUMBERS", (100, 2000))
    limit = Entropic(LEAST_ALPHA).group_error(0.2)
    for error in (0.9 * limit, limit + 1e-9):
        refused("the smallest alpha of the search", plan, error, rows=[100])


ROWS = (150, 800)


@pytest.mark.parametrize("link", ["entropic", "laplace"])
def test_a_plan_is_the_certificate_of_a_right_base_with_a_margin(link):
    planned = plan(0.25, 0.3, rows=[400], link=link, confidence=0.9).certificates[0]
    family = make_link(link, 1.0)
    proof = certify_link(evenly_spread(400), family, confidence=0.9)
    least = largest_alpha(lambda a: proof.with_link(type(family)(a)).group_error(0.3), 0.25)
    # most random samples need more randomization than evenly spread PITs
    assert 0.7 * least < planned.alpha < 0.98 * least
    chosen = type(family)(planned.alpha)
    assert proof.with_link(chosen).group_error(0.3) < 0.25
    low, high = proof.with_link(chosen).coverage(0.8, 0.3)
    expected = {
        "n_samples": 400,
        "price": pytest.approx(chosen.price, rel=1e-9),
        "wider": pytest.approx(right_wider(chosen), rel=1e-9),
        "group_error": pytest.approx(0.25, abs=1e-3),
        "coverage_low": pytest.approx(low, abs=1e-9),
        "coverage_high": pytest.approx(high, abs=1e-9),
    }
    assert asdict(planned) | expected == asdict(planned)


@pytest.mark.parametrize("cost", [{"max_wider": 0.3}, {"max_price": 0.4}])
def test_for_a_cost_more_rows_prove_more(cost):
    planned = plan(**cost, rows=ROWS)
    errors = [one.group_error for one in planned.certificates]
    floors = [one.coverage_low for one in planned.certificates]
    assert errors == sorted(errors, reverse=True)
    assert floors == sorted(floors)
    (link,) = {one.alpha for one in planned.certificates}
    name, most = next(iter(cost.items()))
    found = getattr(planned.certificates[0], name.removeprefix("max_"))
    assert found == pytest.approx(most, rel=1e-3)
    assert errors[-1] == Entropic(link).group_error(0.2)
    # a random sample has a larger bound than evenly spread PITs
    even = certify_link(evenly_spread(800), Entropic(link)).group_error(0.2)
    assert even < errors[1] < even + 0.03
    assert planned.rows_needed is None


def test_widths_and_coverages_over_a_right_base():
    link = Entropic(0.1)
    r = nodes(1000)
    ends = [ndtri(link.cdf(level, r)) for level in (0.1, 0.9)]
    wider = (ends[1] - ends[0]).mean() / (2 * ndtri(0.9)) - 1
    assert right_wider(link) == pytest.approx(wider, abs=1e-3)
    # groups of extreme coverage have the fifths of PITs covered least and most often
    served = link.ppf(evenly_spread(1000)[:, None], r)
    inside = ((served > 0.1) & (served < 0.9)).mean(axis=-1)
    one = plan(max_price=link.price, rows=[20]).certificates[-1]
    assert one.coverage_low == pytest.approx(np.sort(inside)[:200].mean(), abs=4e-3)
    assert one.coverage_high == pytest.approx(np.sort(inside)[-200:].mean(), abs=4e-3)


def test_without_randomization_a_large_error_is_free():
    # a group of four fifths cannot be off by more than a tenth around a right model
    endless = plan(0.3, 0.8, rows=[100]).certificates[-1]
    assert (endless.alpha, endless.price) == (1.0, 0.0)
    assert endless.group_error == pytest.approx(0.1, abs=1e-6)


def test_rows_of_a_test_follow_from_its_errors():
    # few standard errors at a small shift: n = ((c + z) / (sqrt(12) e))^2, 4 (1 - Phi(c)) = 0.05
    critical, quantile = ndtri(1 - 0.05 / 4), ndtri(0.8)
    expected = ((critical + quantile) / 0.001) ** 2 / 12
    assert group_test_rows(0.001) == pytest.approx(expected, rel=1e-4)
    assert group_test_rows(0.05) < group_test_rows(0.05, power=0.9)
    assert group_test_rows(0.05) < group_test_rows(0.05, n_groups=2)
    assert group_test_rows(0.05) > group_test_rows(0.06)
    assert group_test_rows(0.2, min_size=150) == 150
    refused("^power must", group_test_rows, 0.1, power=0.4)
    refused("^error must", group_test_rows, 0.5)
    refused("^n_groups must", group_test_rows, 0.1, n_groups=0)


@statistical
@pytest.mark.parametrize(("error", "power"), [(0.05, 0.8), (0.1, 0.9)])
def test_the_scan_detects_errors_with_that_power(error, power):
    rng = np.random.default_rng(6)
    n_sets = repeats(400)
    n = group_test_rows(error, power=power, n_groups=2)
    X = pd.DataFrame({"sex": np.repeat(["f", "m"], n)})
    shift = np.repeat([shift_of(error), 0.0], n)
    detected = 0
    for _ in range(n_sets):
        found = scan_groups(ndtr(rng.normal(size=2 * n) + shift), X, min_size=2)
        row = found.set_index("group").loc["sex = f"]
        detected += row["direction"] == "outcomes higher than forecast"
    # the test of the spread is left out, and the normal approximation is good to 0.02
    low, high = power - 0.02, power + 0.04
    assert stats.binom.cdf(detected, n_sets, low) > FALSE_ALARM
    assert stats.binom.sf(detected - 1, n_sets, high) > FALSE_ALARM


def test_the_command_prints_a_plan(evenhand):
    asked = ("--max-price", "0.5", "--group-mass", "0.3", "--rows", "200, 400", "--groups", "5")
    planned = plan(max_price=0.5, group_mass=0.3, rows=[200, 400], n_groups=5)
    shown = evenhand("plan", *asked)
    assert (shown.code, shown.out, shown.err) == (0, planned.summary() + "\n", "")
    values = json.loads(evenhand("plan", *asked, "--json").out)
    assert values == json.loads(json.dumps(planned.to_dict()))
    assert values["schema"] == "evenhand.plan/1"
    assert [one["n_samples"] for one in values["certificates"]] == [200, 400, None]


@pytest.mark.parametrize("rate", [None, 0.1])
def test_by_default_the_command_prints_the_errors_that_an_audit_finds(evenhand, rate):
    asked = ("--rows", "400,2000", *(() if rate is None else ("--rate", rate)))
    planned = plan(rows=[400, 2000], rate=rate)
    shown = evenhand("plan", *asked).done()
    assert shown.out == planned.summary() + "\n"
    lines = shown.out.splitlines()
    assert len(lines) <= 15
    (cells,) = [line.split()[1:] for line in lines if line.split()[:1] == ["400"]]
    errors = [one.error for one in planned.detectable if one.n_samples == 400]
    # rounded up, and unknown for a group of fewer than 150 rows
    assert cells == ["-" if one is None else f"{np.ceil(1000 * one) / 10:.1f}" for one in errors]
    assert cells[2:] == ["-", "-"]


@pytest.mark.parametrize("is_event", [False, True])
def test_what_is_planned_is_what_an_audit_of_so_many_rows_would_have_shown(is_event):
    rng = np.random.default_rng(0)
    n = 1500
    X = pd.DataFrame({"fifth": np.array([*"abcde"])[np.arange(n) % 5]})
    if is_event:
        p = rng.permutation((np.arange(n) + 0.5) / n)
        forecast, y = Forecast.from_probability(p), (rng.uniform(size=n) < p).astype(float)
    else:
        mean, std = rng.normal(size=n), rng.uniform(0.5, 2, n)
        forecast, y = Forecast.from_normal(mean, std), rng.normal(mean, std)
    found = audit(
        forecast, X, y, groups=["fifth"], search=Search(learned_masses=(0.5,)), random_state=0
    )
    everyone, *fifths = found.status.detectable
    rate = 0.5 if is_event else None
    planned = {
        one.share: one.error
        for one in plan(rows=n, n_groups=found.family.n_groups, rate=rate).detectable
    }
    # the probabilities of the audited event vary: the mean of p (1 - p) is 1/6
    alike = plan(rows=n, n_groups=found.family.n_groups, rate=rate and (1 - 3**-0.5) / 2)
    assert everyone.error == pytest.approx(alike.detectable[0].error, rel=0.01)
    assert {one.n for one in fifths} == {n / 5}
    # numbers of events are whole
    few = {"abs": 5 / n} if is_event else {"rel": 0.01}
    assert [one.error for one in fifths] == pytest.approx([planned[0.2]] * len(fifths), **few)


def test_the_command_has_the_defaults_of_the_function():
    command = inspect.signature(plan_command).parameters
    function = inspect.signature(plan).parameters
    rows = command["rows"].default.split(",")
    assert [int(number) for number in rows] == list(function["rows"].default)
    assert command["n_groups"].default == function["n_groups"].default
    for name in ("goal", "max_wider", "max_price", "link"):
        assert command[name].default == function[name].default, name


@pytest.mark.parametrize(
    ("asked", "facts"),
    [
        ("--goal 0.3 --max-wider 0.1", "--goal=0.3 and --max-wider=0.1 are given together"),
        ("--rows 1,x", "--rows"),
        ("--rows 20000000", "--rows must be at most 10,000,000"),
        ("--groups 0", "--groups must be an integer"),
        ("--max-wider 10", "--max-wider must be above 0 and at most 2"),
        ("--group-mass 0.3", "--group-mass has no effect without a goal"),
        ("--rate 0.1 --max-wider 0.1", "--rate has no effect on a guarantee"),
        ("--rate 1.5", "--rate"),
        ("--goal 0.001", "cannot be certified with"),
    ],
)
def test_the_command_refuses_in_one_line(evenhand, asked, facts):
    assert facts in evenhand("plan", *asked.split()).complaint()
