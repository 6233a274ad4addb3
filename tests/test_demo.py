"""The demo: one command that finds, repairs and proves on a table with known truth."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from command_outcome import Command
from evenhand import load
from evenhand._format import at_least, at_most, band, percent
from evenhand.demo import (
    FOUND_SIZES,
    audited,
    make_tables,
    randomized,
    train,
    variant_coverage,
    worst_rule,
)
from repeats import most_failures, repeats, statistical

FILES = {
    "report.html",
    "report-repaired.html",
    "report-randomized.html",
    "comparison.html",
    "audit.json",
    "audit-before.json",
    "audit-repaired.json",
    "audit-randomized.json",
    "model",
    "model-repaired",
    "model-randomized",
    "trial.csv",
    "clinics-find.csv",
    "clinics-repair.csv",
    "clinics-prove.csv",
    "truth.csv",
}
AUDITS = {
    "audit": ("model", "clinics-find.csv"),
    "audit-before": ("model", "clinics-prove.csv"),
    "audit-repaired": ("model-repaired", "clinics-prove.csv"),
    "audit-randomized": ("model-randomized", "clinics-prove.csv"),
}
"""The audits, each with its model and its table."""


@pytest.fixture(scope="module")
def out(demo_run: tuple[Path, subprocess.CompletedProcess[str]]) -> Path:
    return demo_run[0] / "evenhand-demo"


@pytest.fixture(scope="module")
def text(demo_run: tuple[Path, subprocess.CompletedProcess[str]]) -> str:
    assert demo_run[1].returncode == 0, demo_run[1].stderr
    return demo_run[1].stdout


@pytest.fixture(scope="module")
def story(text: str) -> dict[str, list[str]]:
    """Return the rows of the two tables that are printed, by their names."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    return {name: values for name, *values in rows if values}


def read(path: Path) -> Any:
    return json.loads(path.read_text(), parse_constant=pytest.fail)


def everyone(found: dict[str, Any]) -> dict[str, Any]:
    return {row["group"]: row for row in found["groups"]}["everyone"]


def interval(row: dict[str, Any]) -> str:
    value, low, high = (row[f"coverage_80{end}"] for end in ("", "_low", "_high"))
    return f"{percent(value)} ({band(percent, low, high)})"


def worst_group(text: str) -> tuple[str, str]:
    """Return the printed rule of the worst group, and the lower bound of its error."""
    pattern = r"Worst group found: (.*?), off by at least ([\d.]+) points with 95% confidence"
    ((rule, low),) = re.findall(pattern, " ".join(text.split()))
    return rule, low


def test_the_demo_prints_three_steps_and_where_its_files_are(
    demo_run: tuple[Path, subprocess.CompletedProcess[str]], text: str, out: Path
) -> None:
    titles = [line for line in text.splitlines() if re.match(r"\d\. [A-Z]+: ", line)]
    assert [title.split(":")[0] for title in titles] == ["1. FIND", "2. REPAIR", "3. PROVE"]
    assert all(len(line) <= 80 for line in text.splitlines())
    # the steps and what was written fit on a screen
    assert len(text.splitlines()) <= 36
    assert text.splitlines()[-1] == "Open evenhand-demo/report.html"
    assert {path.name for path in out.iterdir()} == FILES
    written = text.partition("Written to evenhand-demo/:")[2]
    for file in FILES:
        assert re.search(rf"\b{re.escape(file)}/?,?\s", written), file
    progress = demo_run[1].stderr.splitlines()
    assert [line.split()[0] for line in progress] == [
        "training",
        "finding",
        "repairing",
        "proving",
        "writing",
    ]


def test_it_finds_a_group_of_the_women_that_the_trial_left_out(text: str, out: Path) -> None:
    printed = " ".join(text.split())
    rule, low = worst_group(text)
    found = read(out / "audit.json")
    (learned,) = [row for row in found["learned"] if row["mass"] == 0.2]
    assert low == at_least(learned["low"])
    assert float(low) > 10
    cut = re.search(r"age > ([\d.]+)", rule)
    assert cut is not None
    # learned from 800 patients, of whom one in eighty is 60
    assert 55 < float(cut[1]) < 65
    assert set(rule.split(" and ")) == {cut[0], "sex = woman"}
    trial = pd.read_csv(out / "trial.csv")
    assert not ((trial["sex"] == "woman") & (trial["age"] > 60)).any()
    assert f"80% intervals cover {interval(everyone(found))} of doses" in printed


def test_the_repair_is_shown_on_patients_whom_it_has_not_seen(
    text: str, story: dict[str, list[str]], out: Path
) -> None:
    before, after = read(out / "audit-before.json"), read(out / "audit-repaired.json")
    assert story["everyone"] == [interval(everyone(before)), interval(everyone(after))]
    rule, _ = worst_group(text)
    rows = [{row["group"]: row for row in found["groups"]}[rule] for found in (before, after)]
    assert story[rule] == [interval(row) for row in rows]
    # the intervals of an audit are simultaneous: off before, and not significantly off after
    assert rows[0]["coverage_80_high"] < 0.8 < rows[1]["coverage_80_high"]
    assert rows[1]["coverage_80_low"] < 0.8
    assert not any(row["off"] for row in after["groups"] + after["scan"])
    n_off = [sum(row["off"] for row in found["scan"]) for found in (before, after)]
    assert n_off[0] > 30
    n_scanned = len(after["scan"])
    assert story["scanned groups that are off"] == [f"{n} of {n_scanned}" for n in n_off]
    ids = [set(pd.read_csv(out / f"clinics-{part}.csv")["patient"]) for part in PARTS]
    assert len(set.union(*ids)) == sum(map(len, ids)) == 6000


PARTS = ("find", "repair", "prove")


def test_what_is_proven_is_that_of_the_certificate(
    text: str, story: dict[str, list[str]], out: Path
) -> None:
    found = read(out / "audit-randomized.json")
    (proven,) = [row for row in found["certificate"]["every_group"] if row["mass"] == 0.2]
    assert proven["group_error"] <= 0.25
    low, high = (proven[f"coverage_80_{end}"] for end in ("low", "high"))
    bounds, width, score, variant = story["randomized, 80%"]
    assert bounds == f"{at_least(low, percent)} to {at_most(high, percent)}"
    assert float(story["repaired, 80%"][2]) < float(score) < float(story["without features"][2])
    assert float(story["repaired, 80%"][1]) < float(width) < float(story["without features"][1])
    assert story["model, 80% interval"][0] == story["repaired, 80%"][0] == "none"
    # groups of at least a fifth include that of the variant, which has a fifth in expectation only
    assert low - 0.02 < float(variant[:-1]) / 100 < high
    assert story["repaired, 95%"][0].startswith("at least ")


@statistical
def test_the_story_is_the_same_for_other_seeds() -> None:
    """All seeds from 0 to 9 find the group; nothing is off after the repair for eight of them."""
    n_seeds = repeats(10, shorter=10)
    n_clean = 0
    for seed in range(9, 9 - n_seeds, -1):
        tables = make_tables(seed)
        model = train(tables.trial, seed)
        found = audited(model, tables.find, "model", {}, seed, FOUND_SIZES)
        rule = worst_rule(found)
        left_out = (tables.find.X["sex"] == "woman") & (tables.find.X["age"] > 60)
        members = rule.mask(tables.find.X)
        assert (members & left_out).sum() > 0.85 * (members | left_out).sum()
        repaired = found.repair(model, tables.repair.X, tables.repair.y, random_state=seed)
        X = tables.prove.X
        after = audited(repaired, tables.prove, "repaired", {"found": rule.mask(X)}, seed)
        row = after.groups.set_index("group").loc["found"]
        # 450 patients learn the map and as many others test it: the difference of two estimates
        # with a standard error of 2 points each
        assert abs(row["coverage_80"] - 0.8) < 0.14
        chosen = randomized(repaired, tables.prove, seed)
        assert chosen.is_worth_it
        low, high = chosen.certificate.coverage(0.8, 0.2)
        variant = [variant_coverage(one, tables.prove, 0.8) for one in (model, repaired)]
        assert variant[0] < variant[1] < 0.7 < variant_coverage(chosen.model, tables.prove, 0.8)
        assert 0.4 < low < high < 0.96
        n_clean += not (after.groups["off"].any() or after.scan["off"].any())
    # fresh rows find something after one repair in five, as its maps are estimates
    assert n_clean >= n_seeds - most_failures(n_seeds, 0.2, 1e-3)


@pytest.mark.parametrize(
    ("name", "model", "draw"),
    [
        ("model, 80% interval", "model", None),
        ("repaired, 80%", "model-repaired", None),
        ("randomized, 80%", "model-randomized", 20),
    ],
)
def test_the_coverage_of_the_variant_is_that_of_simulated_doses(
    story: dict[str, list[str]], out: Path, name: str, model: str, draw: int | None
) -> None:
    truth, table = pd.read_csv(out / "truth.csv"), pd.read_csv(out / "clinics-prove.csv")
    assert table["patient"].tolist() == truth["patient"].tolist()
    random = np.random.default_rng(0)
    has = truth["variant"].to_numpy()
    truth, table = truth[has], table[has]
    fitted = load(out / model)
    hits = []
    for _ in range(draw or 1):
        served = fitted.forecast(table[fitted.feature_names_in_], random.random(len(table)))
        low, high = served.ppf(0.1), served.ppf(0.9)
        dose = random.normal(truth["mean"], truth["std"], size=(20, len(table)))
        hits.append(((low <= dose) & (dose <= high)).mean())
    # at least 8,000 doses of 400 patients: five standard errors are below 3 points
    assert float(story[name][3][:-1]) / 100 == pytest.approx(np.mean(hits), abs=0.03)


def test_its_reports_and_audits_are_of_its_models_and_tables(out: Path) -> None:
    for audit, (model, table) in AUDITS.items():
        found = read(out / f"{audit}.json")
        made = found["provenance"]
        assert (made["command"], made["random_state"]) == ("evenhand demo", 0)
        assert made["model"]["sha256"] == read(out / model / "model.json")["sha256"]
        assert (made["data"]["name"], made["data"]["n_rows"]) == (table, 2000)
        assert made["data"]["sha256"] is not None
        assert found["is_randomized"] == (model == "model-randomized")
        assert found["about"]["unit"] == "mg per week"
        page = out / f"{audit.replace('audit', 'report')}.html"
        if audit != "audit-before":
            assert found["name"] in page.read_text()
    assert "comparison" in (out / "comparison.html").read_text().lower()
    (gate,) = read(out / "audit-randomized.json")["conditions"]
    assert "certified_group_error(0.2) > 0.25" in gate.values()


def test_the_command_audits_a_table_of_the_demo_with_the_same_result(
    out: Path, evenhand: Command
) -> None:
    more = ("--groups", "sex,age,clinic", "--id", "patient", "--seed", 0, "--json")
    done = evenhand("audit", out / "model", out / "clinics-find.csv", "--target", "dose", *more)
    assert (done.code, done.err) == (0, "")
    again, first = json.loads(done.out), read(out / "audit.json")
    # features are read from csv: the same numbers, from the same seed
    for row, other in zip(first["scores"], again["scores"], strict=True):
        assert row["value"] == pytest.approx(other["value"], rel=1e-9)
    names = [[row["group"] for row in found["groups"]] for found in (first, again)]
    assert names[0] == names[1]
