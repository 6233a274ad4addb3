"""Conditions on audits: the grammar, what each quantity reads, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand import audit_pit
from evenhand._checks import InputError
from evenhand.audits import Audit, parse_condition
from evenhand.draws import jittered
from evenhand.links import Laplace


@pytest.fixture(scope="module")
def found() -> Audit:
    rng = np.random.default_rng(0)
    r = jittered(400, 16, rng)
    pit = Laplace(0.1).ppf(rng.random(400)[:, None], r)
    return audit_pit(pit, r, rng.normal(size=(400, 2)), masses=[0.2, 1.0], learned_masses=[0.2], random_state=0)


def test_each_quantity_is_read_from_the_audit(found: Audit) -> None:
    assert found.certificate is not None
    values = {
        "certified_group_error(0.2) > 0": found.certificate.group_error(0.2),
        "certified_group_error(0.35) > 0": found.certificate.group_error(0.35),
        "oracle_group_error(0.2) > 0": found.worst_group_error(0.2),
        "learned_group_error(0.2) > 0": found.learned_group_error(0.2),
        "average_error > 0": found.score("average error"),
        "coverage(0.8, 0.2) > 0": found.certificate.coverage(0.8, 0.2)[0],
    }
    for text, value in values.items():
        assert parse_condition(text).value(found) == value


@pytest.mark.parametrize(
    ("relation", "offset", "expected"),
    [(">", 0, False), (">=", 0, True), ("<", 0, False), ("<=", 0, True), (">", -1e-6, True), ("<", 1e-6, True)],
)
def test_relations_mean_what_they_say(found: Audit, relation: str, offset: float, expected: bool) -> None:
    limit = found.score("average error") + offset
    assert parse_condition(f"average_error {relation} {limit!r}").holds(found) is expected


def test_spaces_do_not_matter() -> None:
    assert parse_condition("  coverage( 0.8 ,0.2 )<0.6 ").arguments == (0.8, 0.2)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "must compare a quantity with a number"),
        ("average_error", "must compare a quantity with a number"),
        ("average_error == 0.1", "must compare a quantity with a number"),
        ("average_error > 0.1 > 0.2", "must compare a quantity with a number"),
        ("__import__('os') > 0", "must name one of certified_group_error, "),
        ("average_error > __import__('os').getpid()", "must hold numbers only"),
        ("error(0.2) > 0.3", "must name one of certified_group_error, "),
        ("certified_group_error > 0.3", "must be written as certified_group_error(mass)"),
        ("coverage(0.8) < 0.3", "must be written as coverage(level, mass)"),
        ("average_error(0.2) > 0.3", "must be written as average_error"),
        ("certified_group_error(x) > 0.3", "must hold numbers only, got 'x'"),
        ("certified_group_error(20) > 0.3", "mass must fulfil 0 < mass <= 1, got 20.0"),
        ("certified_group_error(0.2) > 30", "limit must fulfil 0 <= limit <= 1, got 30.0"),
        ("certified_group_error(0.2) > nan", "limit must fulfil 0 <= limit <= 1, got nan"),
        ("coverage(1, 0.2) < 0.5", "level must fulfil 0 < level < 1, got 1.0"),
    ],
)
def test_anything_else_is_refused(text: str, told: str) -> None:
    with pytest.raises(InputError) as raised:
        parse_condition(text)
    assert told in str(raised.value)


def test_what_the_audit_did_not_find_is_an_error_not_a_pass(found: Audit) -> None:
    weighted = audit_pit([0.1, 0.5, 0.9, 0.3], sample_weight=[1, 2, 1, 1], random_state=0)
    with pytest.raises(InputError, match=r"'certified_group_error\(0.2\) > 0.3' cannot be judged: no certificate"):
        parse_condition("certified_group_error(0.2) > 0.3").holds(weighted)
    with pytest.raises(InputError, match="cannot be judged"):
        parse_condition("learned_group_error(0.2) > 0.3").holds(weighted)
    with pytest.raises(InputError, match="mass must be one of"):
        parse_condition("oracle_group_error(0.33) > 0.3").holds(found)
