"""Status of audits, their short text and the next steps."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Iterator
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer.main

from browser.report_examples import AUDITS, deterministic, full_deterministic, group
from evenhand import Forecast, audit, audit_pit
from evenhand._table import lines_within
from evenhand.audits import Audit, parse_condition, with_conditions
from evenhand.cli import app
from evenhand.report import (
    Bullets,
    Decision,
    Paragraph,
    Status,
    audit_brief,
    audit_document,
    audit_html,
    audit_text,
    findings_of,
    next_steps,
    status_of,
)
from evenhand.report import StatusBox as Box

N = 600
QUICK: dict[str, Any] = {
    "masses": (0.2, 1.0),
    "learned_masses": (0.2,),
    "n_simulations": 2,
    "random_state": 0,
}


def of_kind(kind: str) -> dict[str, Any]:
    """Return an audit of forecasts of a kind of outcome that are wrong for people over 60."""
    random = np.random.default_rng(3)
    X = pd.DataFrame({"age": random.uniform(20, 80, N), "sex": random.choice(["f", "m"], N)})
    old = X["age"].to_numpy() > 60
    mean = np.exp(random.normal(0.5, 0.4, N))
    normal = Forecast.from_normal(np.full(N, 100.0), np.full(N, 20.0))
    amount = random.normal(100, 20, N) + 15 * old
    made: dict[str, tuple[Forecast, Any]] = {
        "events": (
            Forecast.from_probability(mean / 10),
            random.random(N) < mean / 10 * np.where(old, 3, 1),
        ),
        "counts": (Forecast.from_poisson(mean), random.poisson(mean * np.where(old, 1.5, 1))),
        "amounts": (
            Forecast.from_hurdle(np.full(N, 0.4), normal),
            np.where(random.random(N) < 0.4, 0.0, amount),
        ),
        "doses": (normal, amount),
        "served doses": (normal.randomized(0.2, random_state=0), amount),
    }
    forecast, outcome = made[kind]
    y = pd.Series(np.asarray(outcome, dtype=float), name="outcome")
    return audit(forecast, y=y, features=X, groups=X[["sex"]], **QUICK).to_dict(rows=False)


KINDS = ("events", "counts", "amounts", "doses", "served doses")
EVERY = (*AUDITS, *KINDS)


@cache
def audit_of(name: str) -> dict[str, Any]:
    """Return an audit of `EVERY`, made when a test first needs it."""
    made: dict[str, Any] = AUDITS[name]() if name in AUDITS else of_kind(name)
    return made


COMMANDS: dict[str, Any] = vars(typer.main.get_command(app))["commands"]


def grid(n: int) -> np.ndarray:
    """PITs without any error but that of a grid, 1 / (4 n)."""
    return np.random.default_rng(0).permutation((np.arange(n) + 0.5) / n)


def audited(pit: np.ndarray, **options: Any) -> Audit:
    half = np.arange(len(pit)) % 2 == 0
    return audit_pit(
        pit, groups={"half": half}, masses=[1.0], n_simulations=2, random_state=0, **options
    )


def decision(*groups: dict[str, Any], **more: Any) -> Decision:
    """Return the decision on all people and groups, made by hand."""
    return status(*groups, **more).decision


def status(*groups: dict[str, Any], **more: Any) -> Status:
    return status_of(findings_of(values_of(*groups, **more)))


def values_of(*groups: dict[str, Any], **more: Any) -> dict[str, Any]:
    empty = deterministic() | {"scan": [], "learned": [], "certificate": None, "notes": []}
    calm = group("everyone", 50_000, 0.001, 0.0, 0.006)
    decided = [
        row | {"off": row["error_low"] > 0, "beyond_tolerance": row["error"] > 0.02}
        for row in (calm, *groups)
    ]
    return empty | {"groups": decided} | more


# coverage of the helper: 0.8 and 0.9, each with an interval of three points to both sides
@pytest.mark.parametrize(
    ("low", "estimate", "high", "expected"),
    [
        (0.0, 0.001, 0.019, Decision.PASS),
        # a limit that the upper end reaches is met
        (0.0, 0.001, 0.02, Decision.PASS),
        (0.0, 0.001, 0.021, Decision.UNDECIDED),
        # significantly off, but within the tolerance
        (0.005, 0.01, 0.015, Decision.PASS),
        (0.005, 0.01, 0.03, Decision.UNDECIDED),
        # the estimate is beyond the tolerance, its lower bound is not
        (0.019, 0.09, 0.2, Decision.UNDECIDED),
        # the bounds of all people and of the group, for each measure, must hold together
        (0.021, 0.09, 0.2, Decision.UNDECIDED),
        (0.04, 0.09, 0.2, Decision.FAIL),
    ],
)
def test_the_lower_bound_fails_and_the_upper_bound_passes(
    low: float, estimate: float, high: float, expected: Decision
) -> None:
    assert decision(group("a", 5000, estimate, low, high)) is expected


@pytest.mark.parametrize(
    ("n_ends", "n_bounds", "more"),
    [
        # the coverages of all people; three measures of groups; learned groups
        (2, 1, {}),
        (5, 1, {"groups": 1}),
        (5, 2, {"groups": 1, "learned": 1}),
        (1, 2, {"groups": 1, "learned": 1, "within": 0.05}),
        (1, 1, {"groups": 1, "within": 0.05}),
        (0, 2, {"learned": 1, "within": 0.05}),
        (0, 1, {"within": 0.05}),
    ],
)
def test_all_bounds_together_fail_at_most_5_percent(
    n_ends: int, n_bounds: int, more: dict[str, Any]
) -> None:
    """By the normal distribution, with forecasts at the limit of every measure."""
    listed = dict(more)
    rows = [group("a", 5000, 0.001, 0.0, 0.01)] * listed.pop("groups", 0)
    found = {"mass": 0.2, "n": 900, "n_judged": 4000, "error": 0.01, "low": 0.0, "off": False}
    learned = [found | {"beyond_tolerance": False}] * listed.pop("learned", 0)
    limit = status(*rows, learned=learned, **listed).limit
    assert limit is not None
    # ends of intervals fail with 2.5%, the error of all people and of learned groups with 5%
    normal = NormalDist()
    shares = [(n_ends, 0.025), (n_bounds, 0.05)]
    together = sum(n * normal.cdf(limit.widening * normal.inv_cdf(share)) for n, share in shares)
    assert 0.03 < together <= 0.05 + 1e-9


def test_an_interval_of_its_own_is_not_enough_for_a_fail() -> None:
    needed = "A fail needs wider intervals, which hold for all measures together."
    for low, is_explained in ((0.019, False), (0.021, True), (0.04, False)):
        brief = " ".join(audit_brief(values_of(group("a", 5000, 0.09, low, 0.2))).split())
        assert (needed in brief) == is_explained


def test_the_coverage_is_judged_by_its_interval() -> None:
    # the helper's interval of the 80% coverage reaches three points to both sides of 0.8 - gap
    for gap, expected in ((0.01, Decision.PASS), (0.03, Decision.UNDECIDED), (0.09, Decision.FAIL)):
        row = group("a", 5000, 0.015, 0.001, 0.018, cover=0.8 - gap)
        assert decision(row) is expected
        # the limit of `within` is one of the error alone
        assert decision(row, within=0.018) is Decision.PASS
        assert decision(row, within=0.017) is Decision.UNDECIDED


def test_a_group_that_cannot_be_tested_prevents_a_pass() -> None:
    small = group("small", 9, 0.1, 0.0, 0.5, too_small=True)
    assert decision(small) is Decision.UNDECIDED
    assert decision() is Decision.PASS


def test_a_learned_group_fails_by_its_lower_bound() -> None:
    row = {"mass": 0.2, "n": 900, "n_judged": 4000, "error": 0.1, "direction": "mixed"}
    expected_by_low = {0.06: Decision.FAIL, 0.03: Decision.UNDECIDED, 0.01: Decision.PASS}
    for low, expected in expected_by_low.items():
        learned = [row | {"low": low, "off": True, "beyond_tolerance": True}]
        found = decision(learned=learned)
        # the limit is that of all people and of the groups of the tables: a learned group that is
        # not proven to be beyond it has no upper bound
        assert found is expected


def test_as_many_rows_as_the_status_names_suffice() -> None:
    """PITs on a grid have no error, so that the intervals alone decide."""
    few = audited(grid(2000))
    assert few.status.decision is Decision.UNDECIDED
    n = few.status.n_rows_to_pass
    assert n is not None
    # an approximation by the square root of the number of rows
    assert audited(grid(int(1.3 * n))).status.decision is Decision.PASS
    assert audited(grid(n // 3)).status.decision is Decision.UNDECIDED


def test_as_many_rows_as_the_status_names_prove_an_error() -> None:
    # u**0.9 has the mean 1 / 1.9: an error of 2.6 points
    few = audited(grid(2000) ** 0.9)
    n = few.status.n_rows_to_fail
    assert few.status.decision is Decision.UNDECIDED
    assert n is not None
    assert audited(grid(int(1.3 * n)) ** 0.9).status.decision is Decision.FAIL
    assert audited(grid(n // 3) ** 0.9).status.decision is Decision.UNDECIDED


def test_conditions_of_a_gate_decide_alone() -> None:
    found = audited(grid(500))
    assert (found.conditions, found.status.limit is None) == ((), False)
    true, false = "average_error < 0.1", "average_error > 0.1"
    unknown = "learned_group_error(0.2) > 0.1"
    for texts, expected in (
        ([false], Decision.PASS),
        ([false, unknown], Decision.UNDECIDED),
        ([true, unknown], Decision.FAIL),
        ([true, false], Decision.FAIL),
    ):
        judged = with_conditions(found, map(parse_condition, texts))
        assert judged.status.decision is expected
        plain = json.loads(judged.to_json())
        assert plain["status"] == str(expected)
        assert [one["text"] for one in plain["conditions"]] == texts
        # a report made from JSON has the same status
        assert status_of(findings_of(plain)).decision is expected
    (judged,) = with_conditions(found, [parse_condition(unknown)]).conditions
    assert (judged.is_true, judged.value) == (None, None)
    assert "features" in (judged.reason or "")


@pytest.mark.parametrize(
    ("condition", "sentence"),
    [
        (
            "average_error > 0.1",
            "PASS. The condition of --fail-if is false: average_error > 0.1. The estimated error"
            " over all people is 0.1 (limit: 10 points).",
        ),
        (
            "coverage(0.9, 0.5) < 0.85",
            "FAIL. The condition of --fail-if is true: coverage(0.9, 0.5) < 0.85. The certified"
            " coverage of the 90% interval in every group of at least 50% of people is ",
        ),
        (
            "learned_group_error(0.2) >= 0.1",
            "CANNOT BE JUDGED. The condition of --fail-if is about a number that this audit lacks:"
            " learned_group_error(0.2) >= 0.1. The estimated error of the learned group of 20% of"
            " people is unknown.",
        ),
        (
            "groups_beyond_tolerance > 0",
            "PASS. The condition of --fail-if is false: groups_beyond_tolerance > 0. The number of"
            " named and scanned groups that are significantly off, with estimates beyond the"
            " tolerance, is 0 (limit: 0). Finding",
        ),
    ],
)
def test_a_condition_in_words(condition: str, sentence: str) -> None:
    found = with_conditions(audited(grid(500)), [parse_condition(condition)])
    assert sentence in " ".join(found.summary().split())
    decided, _, reasons = sentence.removesuffix(" Finding").partition(". ")
    page = html.unescape(" ".join(re.sub(r"<[^>]*>", " ", found.to_html()).split()))
    assert f"{decided.capitalize()}. {reasons}" in page


@pytest.mark.parametrize("name", EVERY)
def test_the_short_text_fits_a_screen(name: str) -> None:
    lines = audit_brief(audit_of(name)).splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 20
    labels = [line[:9].strip() for line in lines[1:] if line[:9].strip()]
    order = ["Status", "Caution", "Finding", "Also", "Overall", "Proven"]
    order += ["Unseen", "Next", "More"]
    assert labels == [label for label in order if label in labels]
    assert {"Status", "Finding", "More"} <= set(labels)


def sentences(values: dict[str, Any]) -> Iterator[str]:
    """Yield the sentences of the first screen, names of groups as one word."""
    findings = findings_of(values)
    names = {one.name for one in (*findings.named, *findings.scanned)}
    names |= {found.description for found in findings.learned if found.description}
    names |= {str(one.get("name")) for one in values.get("possible_leaks") or ()}
    document = audit_document(findings)
    assert document.opening is not None
    for section in (document.opening, *document.cards):
        for part in section.parts:
            texts: list[str] = []
            if isinstance(part, Paragraph) and not part.summary:
                texts = [part.text]
            elif isinstance(part, Bullets):
                texts = [str(item) for item in part.items]
            elif isinstance(part, Box):
                texts = list(part.sentences)
            for text in texts:
                for name in sorted(names, key=len, reverse=True):
                    text = text.replace(name, "NAME")
                yield from re.split(r"(?<=[.!?]) (?=[A-Z0-9])", text)


# the names of the hostile audit, from data, have all lengths
@pytest.mark.parametrize("name", [name for name in EVERY if name != "hostile"])
def test_no_sentence_of_the_first_screen_has_more_than_25_words(name: str) -> None:
    for sentence in sentences(audit_of(name)):
        assert len(sentence.split()) <= 25, sentence


def test_next_steps_repair_the_groups_by_their_rules() -> None:
    given = full_deterministic()
    rule = [{"comparisons": [], "or_missing": False}]
    given["off_groups"] = [
        {"group": "age > 44 and sex = f", "mass": 0.2, "rule": rule},
        {"group": "age > 45 and sex = f", "mass": None, "rule": rule},
        {"group": "sex=f", "mass": None, "rule": None},
    ]
    command = "evenhand audit rows.csv --target 'pay $' --mean=mu --std sd --groups sex"
    given["provenance"] = {"command": command}
    repair, *_ = next_steps(findings_of(given))
    assert shlex.split(repair.command) == [
        *("evenhand", "recalibrate", "OTHER.csv", "--target", "pay $", "--mean", "mu"),
        *("--std", "sd", "--group", "age > 44 and sex = f", "--group", "age > 45 and sex = f"),
        *("--out", "maps"),
    ]
    assert repair.python == "repaired = found.repair(model, X_other, y_other)"
    text = audit_brief(given)
    # broken between options, as a shell reads it
    shown = text[text.index("evenhand recalibrate") : text.index("More ")]
    assert shlex.split(shown.replace("\\\n", " ")) == shlex.split(repair.command)
    # in the full text, too
    text = audit_text(given)
    start = text.index("$ evenhand recalibrate") + 2
    shown = text[start : text.index("\n\n", start)]
    assert shlex.split(shown.replace("\\\n", " ")) == shlex.split(repair.command)
    # readers who audited with the command get no Python
    assert ">>>" not in text
    # a model in a folder has no columns of forecasts
    given["provenance"] = {"command": "evenhand audit model rows.csv --target y"}
    repair, *_ = next_steps(findings_of(given))
    assert repair.command == ""
    # its lines of Python define all names but those of the rows
    assert repair.python.split("\n") == [
        'model = evenhand.load("model")',
        "found = evenhand.audit(model, X, y)",
        "repaired = found.repair(model, X_other, y_other)",
    ]
    text = audit_brief(given)
    assert [line.strip() for line in text.split("\n")[-4:-1]] == repair.python.split("\n")
    assert all(f">>> {line}" in audit_text(given) for line in repair.python.split("\n"))
    # readers who audited in Python have no columns of forecasts
    del given["provenance"]
    text = audit_text(given)
    assert ">>> repaired = found.repair(model, X_other, y_other)" in text
    assert "evenhand recalibrate" not in text


@pytest.mark.parametrize("name", EVERY)
def test_next_steps_are_commands_that_exist(name: str) -> None:
    steps = next_steps(findings_of(audit_of(name)))
    for step in steps:
        assert step.what.endswith(".")
        if not step.command:
            continue
        program, command, *words = shlex.split(step.command)
        assert program == "evenhand"
        known = {option for one in COMMANDS[command].params for option in one.opts}
        assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("width", [60, 80])
def test_the_short_text_fits_a_narrow_terminal(width: int) -> None:
    given = full_deterministic() | {
        "provenance": {"command": "evenhand audit t --target y --mean m"}
    }
    with lines_within(width):
        lines = audit_brief(given).splitlines()
    # a command is broken between its options, never inside of one
    assert max(len(line) for line in lines if "--" not in line) <= width
    assert len(lines) <= 20 * 100 / width


def test_units_are_those_of_the_reader() -> None:
    given = full_deterministic() | {"target": "dose", "about": {"unit": "mg per week"}}
    page, text = audit_html(given), audit_brief(given)
    assert "by 0.13 mg per week on average" in page
    assert "0.13 mg per week" in " ".join(text.split())
    assert "Outcome minus forecast is in mg per week" in page
    assert "dose (mg per week)" in page  # the axis of the examples
    assert "nits of" not in page.partition('id="scores"')[0] + text


def test_an_error_of_an_event_is_explained_beside_the_difference_of_rates() -> None:
    assert "The error is half the difference" in audit_brief(audit_of("events"))
    assert "The error is half the difference" not in audit_brief(audit_of("counts"))


def test_a_gate_and_the_status_count_the_same_groups() -> None:
    for name in AUDITS:
        values = audit_of(name)
        findings = findings_of(values)
        n = len(findings.beyond)
        total = sum(one.is_judged for one in findings.distinct)
        if name == "hostile" or n < 2 or status_of(findings).decision is not Decision.FAIL:
            continue
        text = " ".join(audit_brief(values).split())
        assert f"FAIL. {n} of {total} groups are beyond the tolerance (" in text


def test_a_pass_requires_nothing() -> None:
    found = with_conditions(audited(grid(500)), [parse_condition("average_error > 0.1")])
    first, *_ = next_steps(findings_of(found.to_dict()))
    assert first.what == (
        "Nothing is required: the condition of --fail-if is false, and no finding is beyond the"
        " tolerance."
    )
    calm = full_deterministic() | {"scan": [], "learned": [], "notes": []}
    calm["groups"] = [group("everyone", 50_000, 0.001, 0.0, 0.006)]
    assert next_steps(findings_of(calm))[0].what.startswith("Nothing to repair. Repeat the audit")


def test_an_undecided_tolerance_does_not_hide_a_guarantee() -> None:
    text = " ".join(audit_brief(audit_of("one_group")).split())
    assert "NOT DECIDED. These rows do not decide whether the forecasts are within" in text
    # nearly enough rows: the approximation is too coarse for a number
    assert "a few more rows would prove an error beyond it; now 1,500 rows." in text
    assert "Proven for every group of at least 20% of people: off by at most 31.4 points." in text


def test_groups_too_small_for_the_scan_are_named_as_not_examined() -> None:
    values = full_deterministic()
    least = min(one.n for one in findings_of(values).scanned if one.is_tested)
    sentence = f"Groups of fewer than {least} rows were not scanned: name those that matter"
    assert sentence in " ".join(audit_brief(values).split())
    assert sentence in audit_html(values)
