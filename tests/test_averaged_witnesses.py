"""Errors of named groups under a link, whose witnesses are averaged over draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from evenhand import InputError, Watch
from evenhand.certificates import Promise
from evenhand.links import Entropic, Gaussian, Laplace, Link
from evenhand.monitoring import Rows, averaged_witnesses, cell_witnesses
from repeats import most_failures

LINK = Entropic(0.12)


@pytest.mark.parametrize("link", [Entropic(0.12), Laplace(0.3)], ids=repr)
def test_averaged_witnesses_are_means_over_draws(link: Link) -> None:
    low = np.array([0.0, 0.001, 0.3, 0.45, 0.7, 0.9])
    high = np.array([0.2, 0.001, 0.3, 0.6, 0.95, 1.0])
    r = np.random.default_rng(0).uniform(size=100_000)
    expected = [
        cell_witnesses(link.ppf(one, r), link.ppf(other, r)).mean(axis=0)
        for one, other in zip(low, high, strict=True)
    ]
    # five standard errors of the witnesses, which lie within 1/2
    assert averaged_witnesses(link, low, high) == pytest.approx(np.array(expected), abs=0.005)


@pytest.mark.parametrize("link", [Entropic(0.02), Gaussian(0.12)], ids=repr)
def test_averaged_witnesses_of_a_right_forecaster_under_an_exact_link_have_mean_zero(
    link: Link,
) -> None:
    u = (np.arange(4000) + 0.5) / 4000
    assert averaged_witnesses(link, u, u).mean(axis=0) == pytest.approx(np.zeros(4), abs=1e-4)


def test_evidence_about_groups_under_a_link_does_not_depend_on_draws() -> None:
    random = np.random.default_rng(3)
    u = random.uniform(size=3000) ** 0.8
    time = np.datetime64("2026-01-01") + np.repeat(np.arange(60), 50)

    def evidence(r: Any) -> Any:
        watch = Watch()
        watch.update(Rows.of(time, LINK.ppf(u, r), r=r, link=LINK))
        return watch.to_dict()["groups"][0]["log_evidence"]

    fair = evidence(random.uniform(size=3000))
    # the same 50 people every day, with the same draws, all of them high
    assert evidence(np.tile(random.uniform(0.8, 1.0, 50), 60)) == pytest.approx(fair, abs=1e-6)


def test_people_who_return_with_the_same_draw_do_not_raise_false_alarms_under_a_link() -> None:
    # 100 people in each of 24 months: their draws have a mean that is not 1/2
    time = np.datetime64("2026-01-15") + 30 * np.repeat(np.arange(24), 100)
    alarms = 0
    for seed in range(24):
        random = np.random.default_rng(seed)
        r = np.tile(random.uniform(size=100), 24)
        pit = LINK.ppf(random.uniform(size=2400), r)
        alarms += bool(Watch().update(Rows.of(time, pit, r=r, link=LINK)))
    assert alarms <= most_failures(24)


def test_an_error_under_a_link_is_found_sooner_than_from_single_draws() -> None:
    # a shift of 0.5 standard deviations: a median of 17 days at alpha 0.12, of 50 from single draws
    time = np.datetime64("2026-01-01") + np.repeat(np.arange(60), 20)
    with_link, without = [], []
    for seed in range(6):
        random = np.random.default_rng(seed)
        u, r = stats.norm.cdf(random.normal(size=1200) + 0.5), random.uniform(size=1200)
        for found, link in ((with_link, LINK), (without, None)):
            watch = Watch()
            watch.update(Rows.of(time, LINK.ppf(u, r), r=r, link=link))
            found.append(watch.to_dict()["groups"][0]["max_log_evidence"])
    assert np.median(with_link) > 2 * np.median(without)


def test_rows_with_another_link_than_the_promise_are_refused() -> None:
    watch = Watch(Promise("mean_pit", 0.2, 0.3, 0.95, LINK))
    rows = Rows.of(["2026-01-01"], [0.5], r=[0.5], link=Entropic(0.1))
    with pytest.raises(InputError, match=r"rows have the link Entropic\(alpha=0.1"):
        watch.update(rows)
