"""Plain intervals beside the bounds of an audit: floors, coverage and widths."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from scipy import stats

from evenhand import Forecast, Outcomes, audit, audit_pit
from evenhand._format import at_least, at_most, in_full, percent
from evenhand.audits import Audit
from evenhand.certificates import certify_pit
from evenhand.distributions import Normal
from evenhand.draws import jittered
from evenhand.links import Entropic

N = 300
LEVELS = (0.9, 0.95, 0.98, 0.99)
MASSES = (0.1, 0.2, 0.5, 1.0)


def outcomes() -> Any:
    return np.random.default_rng(0).normal(size=N)


def stated() -> Forecast:
    return Forecast.from_normal(np.zeros(N), np.linspace(0.5, 1.5, N))


def audited(forecast: Forecast, **more: Any) -> Audit:
    y = Outcomes(outcomes(), **more)
    return audit(forecast, y=y, masses=(0.2,), n_simulations=2, random_state=0)


def served(**more: Any) -> Audit:
    return audited(stated().randomized(0.1, r=jittered(N, 8, 1)), **more)


def both_ends(low: float, high: float) -> str:
    return f"between {at_least(low, percent)} and {at_most(high, percent)}"


def check(found: Audit, u: Any) -> None:
    """Compare the table with the bounds of the PITs."""
    table = found.plain_intervals
    assert [(row.mass, row.level) for row in table.itertuples()] == [
        (mass, level) for mass in MASSES for level in LEVELS
    ]
    expected = [one for mass in MASSES for one in certify_pit(u).plain_intervals(mass)]
    assert list(table["floor"]) == [one.floor for one in expected]
    assert list(table["covered"]) == [one.covered for one in expected]


def test_a_deterministic_forecaster_and_a_link_around_it_have_the_same_floors() -> None:
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
    np.testing.assert_allclose(
        randomized.plain_intervals["width"], np.tile(widths, 4) * ratio, rtol=1e-9
    )


def test_pits_alone_have_floors_without_widths() -> None:
    u = stated().pit(outcomes())
    found = audit_pit(u, masses=(0.2,), n_simulations=2, random_state=0)
    check(found, u)
    assert "width" not in found.plain_intervals
    assert not any("width" in row for row in found.to_dict()["plain_intervals"])


def test_certificates_list_the_floors_beside_the_bounds_of_randomized_intervals() -> None:
    u = stated().pit(outcomes())
    floors = [
        (f"{one.level:.0%}", at_least(one.floor, percent))
        for one in certify_pit(u).plain_intervals(0.2)
        if one.floor >= 0.01  # smaller ones are uninformative
    ]
    for found in (audited(stated()), served()):
        proof = found.certificate
        assert proof is not None
        assert proof.plain_intervals(0.3) == certify_pit(u).plain_intervals(0.3)
        text = " ".join(proof.summary().split())
        line = text.partition("without a draw, ")[2].partition("; no upper bound")[0]
        shown = re.findall(r"(\d+%) (?:intervals cover at least )?([\d.]+%)", line)
        assert shown == floors
        assert len(shown) == 3


def test_people_with_several_rows_count_once() -> None:
    people = np.arange(N) // 3
    for found in (audited(stated(), person=people), served(person=people)):
        kept = found.n_samples
        assert kept == N // 3
        # numbers of covered people are whole
        covered = found.plain_intervals["covered"] * kept
        np.testing.assert_allclose(covered, np.round(covered), atol=1e-9)


def test_forecasters_without_a_deterministic_base_have_no_plain_interval() -> None:
    r = jittered(N, 8, 1)
    own = Forecast(Normal(r - 0.5, np.ones((N, 8))), r)
    u = Entropic(0.1).cdf(stated().pit(outcomes())[:, None], r)
    pits = audit_pit(u, r, masses=(0.2,), n_simulations=2, random_state=0)
    weighted = audited(stated(), weight=np.linspace(1, 2, N))
    for found in (audited(own), pits, weighted):
        assert found.plain_intervals.empty
        assert found.to_dict()["plain_intervals"] == []
        assert "ithout a draw, the" not in found.summary(full=True)


def test_the_report_compares_the_lower_bound_with_that_of_a_plain_interval() -> None:
    found = served()
    assert found.certificate is not None
    low, high = found.certificate.coverage(0.8, 0.2)
    table = found.plain_intervals
    enough = table.loc[np.isclose(table["mass"], 0.2) & (table["floor"] >= low)]
    text = " ".join(found.summary(full=True).split())
    assert 0 < low < 0.8 < high < 1
    assert f"cover {both_ends(low, high)} of outcomes (95% joint confidence, with a draw)" in text
    level = in_full(enough["level"].min())
    assert f"Without a draw, the {level} interval covers at least" in text
