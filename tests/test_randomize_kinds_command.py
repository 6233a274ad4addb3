"""`evenhand randomize` of counts, scores and amounts with zeros, and its refusal of events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from command_outcome import Command
from evenhand import InputError, randomize
from evenhand.draws import KeyedDraws
from evenhand.links import make_link
from evenhand.scale import ColumnSubject

ROWS = 900
KEY = b"a secret of enough bytes"
LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
SERVED = [f"q{level}" for level in LEVELS]
QUANTILES = [f"a{level}" for level in LEVELS]
SCORES = [f"s_{value}" for value in (1, 2, 3, 4, 5)]

GIVEN: dict[str, tuple[str, ...]] = {
    "count_mean": ("--mean", "rate", "--outcome", "count"),
    "count_mean_std": ("--mean", "rate", "--std", "spread", "--outcome", "count"),
    "pmf": ("--pmf", "s"),
    "chance_of_zero_quantiles": ("--chance-of-zero", "none", "--quantiles", "a"),
}
"""Options of each kind of columns."""

SUBJECTS = {
    "count_mean": ColumnSubject("rate", outcome="count"),
    "count_mean_std": ColumnSubject("rate", "spread", outcome="count"),
    "pmf": ColumnSubject(pmf="s"),
    "chance_of_zero_quantiles": ColumnSubject(quantiles="a", chance_of_zero="none"),
}

COLUMNS = {
    "count_mean": ["rate"],
    "count_mean_std": ["rate", "spread"],
    "pmf": SCORES,
    "chance_of_zero_quantiles": ["none", *QUANTILES],
}

TARGETS = {
    "count_mean": ("visits", 0.35),
    "count_mean_std": ("stays", 0.4),
    "pmf": ("score", 0.4),
    "chance_of_zero_quantiles": ("cost", 0.35),
}
"""Outcome and largest group error."""


def make_table(seed: int, n: int = ROWS) -> pd.DataFrame:
    """Return right forecasts of outcomes of each kind."""
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    rate = np.exp(1.5 + 0.9 * x)
    # a negative binomial distribution of dispersion 0.5
    spread = np.sqrt(rate + 0.5 * rate**2)
    scores = stats.norm.cdf(np.array([-1.2, -0.4, 0.4, 1.2]) - 1.5 * x[:, None])
    pmf = np.diff(np.column_stack((np.zeros(n), scores, np.ones(n))), axis=1)
    none = 1 / (1 + np.exp(x))
    amounts = np.exp(2 + 1.5 * x[:, None] + 0.5 * stats.norm.ppf(LEVELS))
    subject = ColumnSubject(quantiles="a", chance_of_zero="none")
    values = {
        "id": [f"p{seed}-{i}" for i in range(n)],
        "age": random.integers(20, 90, n),
        "rate": rate,
        "spread": spread,
        **dict(zip(SCORES, pmf.T, strict=True)),
        "none": none,
        **dict(zip(QUANTILES, amounts.T, strict=True)),
        "visits": random.poisson(rate),
        "stays": random.poisson(rate * random.gamma(2.0, 0.5, n)),
        "score": 1 + (random.uniform(size=n)[:, None] > np.cumsum(pmf, axis=1)[:, :4]).sum(axis=1),
        "event": (random.uniform(size=n) < none).astype(int),
    }
    table = pd.DataFrame(values)
    return table.assign(cost=subject(table).sample(random))


OLD = make_table(1)
NEW = make_table(2, 300).drop(columns=["visits", "stays", "score", "event", "cost"])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with rows that have outcomes, new rows and a key."""
    OLD.to_csv(tmp_path / "old.csv", index=False)
    NEW.to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "key").write_bytes(KEY)
    (tmp_path / "key").chmod(0o600)
    return tmp_path


@pytest.fixture
def no_audit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refuse audits, where the report is not what is tested."""

    def refuse(*args: Any, **more: Any) -> None:
        raise InputError("not in this test")

    monkeypatch.setattr("evenhand.audits.audit", refuse)


def certify_args(place: Path, kind: str, *more: Any) -> tuple[Any, ...]:
    target, most = TARGETS[kind]
    options = ("--target", target, "--out", place / "proof", "--seed", 0)
    goal = () if any("--max" in str(word) for word in more) else ("--max-group-error", most)
    return ("randomize", place / "old.csv", *GIVEN[kind], *options, *goal, *more)


def serve_args(place: Path, kind: str, *more: Any) -> tuple[Any, ...]:
    options = ("--id", "id", "--key-file", place / "key", "--out", place / "served.csv")
    return ("randomize", place / "new.csv", *GIVEN[kind], *options, *more)


def proof_in(place: Path) -> dict[str, Any]:
    proof: dict[str, Any] = json.loads((place / "proof" / "certificate.json").read_text())
    return proof


@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.usefixtures("no_audit")
def test_forecasts_of_each_kind_are_certified_and_new_ones_served(
    kind: str, place: Path, evenhand: Command
) -> None:
    made = evenhand(*certify_args(place, kind, "--id", "id"))
    assert made.code == 0, made.err
    proof = proof_in(place)
    assert proof["forecasts"] == {"kind": kind, "columns": COLUMNS[kind]}
    target, most = TARGETS[kind]
    chosen = randomize(
        SUBJECTS[kind],
        OLD[COLUMNS[kind]],
        OLD[target].astype(float),
        max_group_error=most,
        random_state=0,
    )
    assert proof["alpha"] == pytest.approx(chosen.alpha, rel=1e-9)
    assert proof["group_error"] == pytest.approx(chosen.group_error, rel=1e-9)
    assert made.out.startswith(proof["statement"])

    served = evenhand(*serve_args(place, kind, "--certificate", place / "proof"))
    assert served.code == 0, served.err
    table = pd.read_csv(place / "served.csv")
    base = SUBJECTS[kind](NEW)
    link = make_link(proof["link"], proof["alpha"])
    expected = base.randomized(link.alpha, link, KeyedDraws(KEY)(NEW["id"]))
    np.testing.assert_allclose(table[SERVED], expected.ppf(LEVELS), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(table["mean"], base.mean(), rtol=1e-9)
    if kind == "chance_of_zero_quantiles":
        # the chance of zero is not randomized
        np.testing.assert_allclose(table["chance_of_zero"], NEW["none"], rtol=1e-9)
        assert "people whose outcome is not 0" in proof["statement"]
        assert (proof["outcome"], proof["atom"]) == ("hurdle", 0.0)
        assert proof["n_off_atom"] == (OLD["cost"] > 0).sum()
        low, high = proof["bias"]
        assert -1 < low < 0 < high < 1
    else:
        assert (table[SERVED] == table[SERVED].round()).all(axis=None)
        assert proof["outcome"] == "count"


@pytest.mark.parametrize(
    ("kind", "goal", "most"),
    [("count_mean", "wider", 0.4), ("chance_of_zero_quantiles", "price", 0.3)],
)
@pytest.mark.usefixtures("no_audit")
def test_the_most_that_a_cost_certifies(
    kind: str, goal: str, most: float, place: Path, evenhand: Command
) -> None:
    made = evenhand(*certify_args(place, kind, f"--max-{goal}", most))
    assert made.code == 0, made.err
    proof = proof_in(place)
    assert 0 < proof[goal] <= most
    assert 0.1 < proof["group_error"] < 0.5


@pytest.mark.usefixtures("no_audit")
def test_continuous_forecasts_of_events_are_refused_with_the_column(
    place: Path, evenhand: Command
) -> None:
    given = ("--mean", "rate", "--std", "spread", "--target", "event", "--out", place / "proof")
    refused = evenhand("randomize", place / "old.csv", *given).complaint()
    named = "old.csv: column 'event' has only the values 0 and 1, and forecasts of 0/1 outcomes"
    assert named in refused
    assert not (place / "proof").exists()


@pytest.mark.usefixtures("no_audit")
def test_a_certificate_is_for_its_kind_of_columns(place: Path, evenhand: Command) -> None:
    assert evenhand(*certify_args(place, "count_mean")).code == 0
    for kind, named in (
        ("count_mean_std", "count_mean_std in rate, spread;"),
        ("pmf", "pmf in s_1, s_2, s_3, s_4, s_5;"),
        ("chance_of_zero_quantiles", "chance_of_zero_quantiles in none, a0.05, "),
    ):
        refused = evenhand(*serve_args(place, kind, "--certificate", place / "proof"))
        message = refused.complaint()
        assert "is for count_mean in rate, not for " in message
        assert named in message
