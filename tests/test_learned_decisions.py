"""Learned groups of several masses: decisions, joint lower bounds, level of the test."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from evenhand import audit_pit
from evenhand.audits import verdict
from evenhand.results import Finding
from evenhand.search import GroupSearch
from planted_groups import planted_table
from repeats import most_failures, repeats, statistical


@pytest.mark.parametrize(
    ("adjusted", "off"),
    [
        ((0.12, 0.4, 0.4), [False, False, False]),
        ((0.03, 0.04, 0.2), [True, True, False]),
        ((0.03, 0.06, 0.2), [True, False, False]),
    ],
)
def test_only_learned_groups_that_are_off_have_a_rule(
    adjusted: tuple[float, ...], off: list[bool]
) -> None:
    rule, known = [{"column": "x0"}], {"n": 50, "error": 0.1, "description_share": 0.5}
    learned = [
        Finding(group="x0 > 0.5", mass=mass, p_adjusted=p, rule=rule, **known)
        for mass, p in zip((0.1, 0.2, 0.5), adjusted, strict=True)
    ]
    decided = verdict.decide(learned, 0.02, 0.05)
    assert [one.off for one in decided] == [one.problem for one in decided] == off
    assert not any(one.problem for one in verdict.decide(learned, 0.1, 0.05))
    assert [one.group != "" for one in decided] == off
    assert [one.rule is not None for one in decided] == off
    assert [one.description_share is not None for one in decided] == off


def test_p_values_of_learned_groups_are_adjusted_for_their_number_and_share() -> None:
    X, pit, _ = planted_table("pair", 2)
    found = audit_pit(pit, X=X, learned_masses=(0.1, 0.2, 0.5), random_state=0)
    p = found.learned["p_value"].to_numpy()
    steps = np.maximum.accumulate(np.sort(p) * [3, 2, 1])[np.argsort(np.argsort(p))]
    # one point of five, where everyone has that of groups by the forecast, which is not known
    assert found.family is not None
    assert found.family.shares["learned"] == pytest.approx(0.01)
    np.testing.assert_allclose(found.learned["p_adjusted"], np.minimum(5 * steps, 1), rtol=1e-9)
    assert (found.learned["off"] == (found.learned["p_adjusted"] < 0.05)).all()
    assert found.learned["off"].any()


def test_the_bounds_of_an_audit_hold_together() -> None:
    X, pit, _ = planted_table("pair", 2)
    each, joint = (GroupSearch(pit, X, random_state=0) for _ in range(2))
    own = each.find(0.2, confidence=1 - 0.05 / 3)
    shared = joint.find(0.2, confidence=0.95, n_bounds=3)
    assert shared.low == pytest.approx(own.low, rel=1e-9)
    assert shared.low > 0
    assert shared.confidence == 0.95
    single = GroupSearch(pit, X, random_state=0).find(0.2)
    assert shared.low < single.low
    table = audit_pit(pit, X=X, learned_masses=(0.2, 0.5), random_state=0).learned
    alone = audit_pit(pit, X=X, learned_masses=(0.2,), random_state=0).learned
    assert 0 < table["error_low"][0] < alone["error_low"][0]


@statistical
@pytest.mark.parametrize("kind", ["few rows", "categories", "draws", "ties"])
def test_p_values_of_hard_calibrated_tables_are_at_level(kind: str) -> None:
    """Small tables, many categories, dependent draws, tied PITs; three masses.

    Levels of 1%, 5% and 25%; at most nine checks per kind, each with a false-alarm rate of 1e-6.
    """
    n_sets = repeats(400)
    masses = (0.2, 0.5) if kind == "few rows" else (0.1, 0.2, 0.5)
    p = np.empty((n_sets, len(masses)))
    for seed in range(n_sets):
        random = np.random.default_rng([seed, 17])
        n = 200 if kind == "few rows" else 400
        pit = random.random((n, 1))
        if kind == "ties":
            # the 21 values 0, 1/20, ..., 1 with the probabilities of a rounded uniform variable
            pit = np.round(20 * pit) / 20
        if kind == "draws":
            # one person's draws are dependent, each uniform
            pit = (pit + random.random() + np.arange(8) / 8) % 1
        levels = 3 + 2 * np.arange(6)
        X = pd.DataFrame(random.integers(0, levels, size=(n, 6)).astype(str))
        X.columns = [f"c{j}" for j in range(6)]
        search = GroupSearch(pit, X, random_state=random)
        p[seed] = [search.find(mass, confidence=0.999).p_value for mass in masses]
    for level in (0.01, 0.05, 0.25):
        assert ((p < level).sum(axis=0) <= most_failures(n_sets, level)).all()
