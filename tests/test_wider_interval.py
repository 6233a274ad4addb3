"""Coverage that plain wider intervals prove, against theory and brute force."""

import re

import numpy as np
import pytest
from scipy import stats

from evenhand import Forecast, Outcomes, audit, audit_pit
from evenhand._format import at_least, percent
from evenhand.audits import Search
from evenhand.calibration import count_pits, covered
from evenhand.certificates import certify_counts, certify_pit, coverage_floor
from evenhand.distributions import Normal
from evenhand.draws import jittered
from evenhand.links import Entropic

LEVELS = (0.9, 0.95, 0.98, 0.99)
MASSES = (0.05, 0.1, 0.2, 0.5, 0.9, 1.0)


def test_the_floor_is_that_of_clopper_and_pearson_with_a_quarter_of_the_risk():
    u = np.random.default_rng(0).beta(0.7, 0.9, size=400)
    for mass in MASSES:
        found = certify_pit(u, confidence=0.9).plain_intervals(mass)
        assert [interval.level for interval in found] == list(LEVELS)
        for interval in found:
            inside = np.sum(
                (u >= (1 - interval.level) / 2) & (u <= (1 + interval.level) / 2), dtype=int
            )
            test = stats.binomtest(int(400 - inside), 400, alternative="less")
            high = test.proportion_ci(1 - 0.1 / 4, "exact").high
            assert interval.floor == pytest.approx(max(0, 1 - high / mass), abs=1e-8)
            assert interval.covered == inside / 400
            assert interval.mass == mass


def test_intervals_are_closed_as_everywhere():
    # at the ends of the 90% interval: covered; the next numbers outside: missed
    low, high = (1 - 0.9) / 2, (1 + 0.9) / 2
    ends = np.repeat([low, high], 50)
    beyond = np.repeat([np.nextafter(low, 0), np.nextafter(high, 1)], 50)
    assert certify_pit(ends).plain_intervals(1.0)[0].covered == covered(ends).mean() == 1
    assert certify_pit(beyond).plain_intervals(1.0)[0].covered == covered(beyond).mean() == 0
    assert certify_pit(np.repeat([0.0, 1.0], 50)).plain_intervals(1.0)[-1].floor == 0


def test_counts_give_the_same_bounds_and_never_more():
    rng = np.random.default_rng(2)
    for u in (rng.beta(0.8, 0.8, size=3000), rng.choice([0.0, 0.005, 0.05, 0.5, 0.95, 1.0], 3000)):
        of_bins = certify_counts(count_pits(u)).plain_intervals(0.2)
        for exact, counted in zip(certify_pit(u).plain_intervals(0.2), of_bins, strict=True):
            assert counted.floor <= exact.floor
            assert counted.level == exact.level
            if np.unique(u).size > 6:
                assert counted == exact


def test_a_level_that_is_fixed_beforehand_has_the_whole_risk():
    whole = coverage_floor(30, 1000, 0.97, 0.2, 0.95)
    assert whole == 1 - stats.beta.ppf(0.95, 31, 970) / 0.2
    assert coverage_floor(30, 1000, 0.98, 0.2, 0.95) < whole
    assert coverage_floor(1000, 1000, 0.98, 0.2, 0.95) == 0


# --- plain intervals beside the bounds of an audit: floors, coverage and widths


N = 300
SIZES = (0.1, 0.2, 0.5, 1.0)


def outcomes():
    return np.random.default_rng(0).normal(size=N)


def stated():
    return Forecast.from_normal(np.zeros(N), np.linspace(0.5, 1.5, N))


def audited(forecast, **more):
    y = Outcomes(outcomes(), **more)
    return audit(forecast, y=y, search=Search(masses=(0.2,), n_simulations=2), random_state=0)


def served(**more):
    return audited(stated().randomized(0.1, r=jittered(N, 8, 1)), **more)


def check(found, u):
    table = found.plain_intervals
    wanted = [(mass, level) for mass in SIZES for level in LEVELS]
    assert [(row.mass, row.level) for row in table.itertuples()] == wanted
    expected = [one for mass in SIZES for one in certify_pit(u).plain_intervals(mass)]
    assert list(table["floor"]) == [one.floor for one in expected]
    assert list(table["covered"]) == [one.covered for one in expected]


def test_a_deterministic_forecaster_and_a_link_around_it_have_the_same_floors():
    u = stated().pit(outcomes())
    plain = audited(stated())
    check(plain, u)
    # widths of normal intervals relative to that of 80%
    widths = stats.norm.ppf((1 + np.array(LEVELS)) / 2) / stats.norm.ppf(0.9)
    np.testing.assert_allclose(plain.plain_intervals["width"], np.tile(widths, 4), rtol=1e-9)
    randomized = served()
    check(randomized, u)
    ratio = plain.score("80% interval width") / randomized.score("80% interval width")
    assert ratio < 0.8
    found = randomized.plain_intervals["width"]
    np.testing.assert_allclose(found, np.tile(widths, 4) * ratio, rtol=1e-9)


def test_pits_alone_have_floors_without_widths():
    u = stated().pit(outcomes())
    found = audit_pit(u, search=Search(masses=(0.2,), n_simulations=2), random_state=0)
    check(found, u)
    assert "width" not in found.plain_intervals
    assert not any("width" in row for row in found.to_dict()["plain_intervals"])


def test_certificates_list_the_floors_beside_the_bounds_of_randomized_intervals():
    u = stated().pit(outcomes())
    floors = [
        (f"{one.level:.0%}", at_least(one.floor, percent))
        for one in certify_pit(u).plain_intervals(0.2)
    ]
    for found in (audited(stated()), served()):
        proof = found.certificate
        assert proof.plain_intervals(0.3) == certify_pit(u).plain_intervals(0.3)
        table = proof.summary().partition("Coverage of intervals without a draw")[2]
        shown = re.findall(r"^(\d+%) +[\d.]+% +([\d.]+%)$", table, re.MULTILINE)
        assert shown == floors
        assert len(shown) == 4


def test_people_with_several_rows_count_once():
    people = np.arange(N) // 3
    for found in (audited(stated(), person=people), served(person=people)):
        kept = found.n_samples
        assert kept == N // 3
        # numbers of covered people are whole
        covered = found.plain_intervals["covered"] * kept
        np.testing.assert_allclose(covered, np.round(covered), atol=1e-9)


def test_forecasters_without_a_deterministic_base_have_no_plain_interval():
    r = jittered(N, 8, 1)
    own = Forecast(Normal(r - 0.5, np.ones((N, 8))), r)
    u = Entropic(0.1).cdf(stated().pit(outcomes())[:, None], r)
    pits = audit_pit(u, r, search=Search(masses=(0.2,), n_simulations=2), random_state=0)
    weighted = audited(stated(), weight=np.linspace(1, 2, N))
    for found in (audited(own), pits, weighted):
        assert found.plain_intervals.empty
        assert found.to_dict()["plain_intervals"] == []
        assert "ithout a draw, the" not in found.summary(full=True)
