"""Conditions on audits: the grammar, what each quantity reads, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand import audit_pit
from evenhand._validate import InputError
from evenhand.audits import Audit, parse_condition
from evenhand.draws import jittered
from evenhand.links import Laplace


@pytest.fixture(scope="module")
def found() -> Audit:
    rng = np.random.default_rng(0)
    r = jittered(400, 16, rng)
    pit = Laplace(0.1).ppf(rng.random(400)[:, None], r)
    return audit_pit(
        pit, r, rng.normal(size=(400, 2)), masses=[0.2, 1.0], learned_masses=[0.2], random_state=0
    )


def test_each_quantity_is_read_from_the_audit(found: Audit) -> None:
    assert found.certificate is not None
    values = {
        "certified_group_error(0.2) > 0": found.certificate.group_error(0.2),
        "certified_group_error(0.35) > 0": found.certificate.group_error(0.35),
        "groups_beyond_tolerance > 0": found.status.n_beyond,
        "problem": found.status.n_problems,
        "not-proven": 1.0,
        "coverage(0.8, 0.2) > 0": found.certificate.coverage(0.8, 0.2)[0],
    }
    for text, value in values.items():
        assert parse_condition(text).value(found) == value


@pytest.mark.parametrize(
    ("relation", "offset", "expected"),
    [(">", 0, False), (">=", 0, True), ("<", 0, False), ("<=", 0, True), (">", -1e-6, True)],
)
def test_relations_mean_what_they_say(
    found: Audit, relation: str, offset: float, expected: bool
) -> None:
    assert found.certificate is not None
    limit = found.certificate.group_error(0.2) + offset
    condition = parse_condition(f"certified_group_error(0.2) {relation} {limit!r}")
    assert condition.holds(found) is expected


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "or compare a quantity with a number"),
        ("problems", "must be problem, too-few-rows, not-proven, or compare"),
        ("groups_beyond_tolerance == 1", "or compare a quantity with a number"),
        ("groups_beyond_tolerance > 0.5", "limit must be"),
        ("groups_beyond_tolerance > __import__('os').getpid()", "is not a number"),
        ("average_error > 0.3", "must name one of groups_beyond_tolerance, "),
        ("certified_group_error > 0.3", "must be written as certified_group_error(mass)"),
        ("certified_group_error(x) > 0.3", "'x' is not a number"),
        ("certified_group_error(20) > 0.3", "--fail-if: mass must satisfy 0 < mass <= 1, got 20.0"),
        ("certified_group_error(0.2) > nan", "limit must satisfy 0 <= limit <= 1, got nan"),
        ("coverage(1, 0.2) < 0.5", "level must satisfy 0 < level < 1, got 1.0"),
    ],
)
def test_anything_else_is_refused(text: str, told: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_condition(text)
    assert told in str(raised.value)


def refusal(text: str, found: Audit) -> str:
    """Return why a condition cannot be judged."""
    with pytest.raises(InputError) as raised:
        parse_condition(text).holds(found)
    beginning = f"condition {text!r} cannot be evaluated: "
    assert str(raised.value).startswith(beginning)
    return str(raised.value).removeprefix(beginning)


def test_what_the_audit_did_not_find_is_an_error_not_a_pass() -> None:
    weighted = audit_pit([0.1, 0.5, 0.9, 0.3], sample_weight=[1, 2, 1, 1], random_state=0)
    for text in ("certified_group_error(0.2) > 0.3", "coverage(0.8, 0.2) < 0.3"):
        assert "no certificate" in refusal(text, weighted)
    # the verdict needs no certificate
    assert parse_condition("too-few-rows").holds(weighted)


def test_one_forecast_per_person_is_no_matter_for_a_gate_on_every_group() -> None:
    # the certificate of the true distribution is at least 0.4: no deterministic model could pass
    rng = np.random.default_rng(0)
    single = audit_pit(
        rng.random(400), groups={"half": np.arange(400) < 200}, masses=[0.2], random_state=0
    )
    floor = "certified_group_error(0.2) > 0.1"
    assert "no bound below 0.4 can be certified" in refusal(floor, single)
    for text in (floor, "coverage(0.8, 0.2) < 0.5"):
        assert "only one deterministic forecast per person" in refusal(text, single)
    # a wider interval has a floor in every group of a size, and the model decides on it
    wider = parse_condition("coverage(0.98, 0.2) < 0.6")
    assert 0.6 < wider.value(single) == single.certificate.coverage(0.98, 0.2)[0] < 0.9  # type: ignore[union-attr]
    narrow = audit_pit(rng.beta(0.5, 0.5, size=400), masses=[0.2], random_state=0)
    assert wider.holds(narrow)
    assert not wider.holds(single)
    drawn = audit_pit(rng.random(400), rng.random(400), masses=[0.2], random_state=0)
    assert "only one draw per person" in refusal("certified_group_error(0.2) > 0.1", drawn)
    # everybody is a group that was named beforehand
    assert not parse_condition("certified_group_error(1) > 0.2").holds(single)
