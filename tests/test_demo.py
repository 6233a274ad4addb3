"""The demo: one command that trains, audits, compares and saves on a real table."""

from __future__ import annotations

import json
import re
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import InputError, MixtureMLPRegressor, demo, load
from evenhand._format import at_most
from evenhand._validate import DiscreteOutcomeWarning
from evenhand.datasets import load_diabetes
from evenhand.demo import run

AUDITS = ("audit-deterministic.json", "audit-randomized.json")
REPORTS = ("report-deterministic.html", "report.html")


@pytest.fixture(scope="module")
def shown(
    demo_run: tuple[Path, subprocess.CompletedProcess[str]],
) -> tuple[Path, subprocess.CompletedProcess[str]]:
    return demo_run


def read(path: Path) -> Any:
    return json.loads(path.read_text(), parse_constant=pytest.fail)


def test_the_demo_prints_a_table_and_where_its_files_are(
    shown: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    place, done = shown
    assert done.returncode == 0
    for words in (
        "log score, cells of 1",
        "Comparison of deterministic and randomized",
        "None of 4 groups changed significantly.",
        "deterministic",
        "randomized",
        "evenhand-demo/",
    ):
        assert words in done.stdout
    for words in (
        "With 95% confidence",
        "off by at most 30.0 points in every group of at least 20% of people",
        "(certified on 177 people, trained on 265 rows).",
        "alpha = ",
        " nats of log score per rounding cell",
    ):
        assert words in " ".join(done.stdout.split())
    training, auditing = done.stderr.splitlines()
    assert "training on 265 rows; 177 rows are held out" in training
    assert auditing == "auditing ..."
    assert [path.name for path in place.iterdir()] == ["evenhand-demo"]
    files = {path.name for path in (place / "evenhand-demo").iterdir()}
    assert files == {"model", "comparison.csv", *AUDITS, *REPORTS}
    for file in files:
        assert file in done.stdout
    assert done.stdout.splitlines()[-1] == "Open evenhand-demo/report.html"


def test_its_reports_are_those_of_the_two_models(
    shown: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder = shown[0] / "evenhand-demo"
    for audit, report in zip(AUDITS, REPORTS, strict=True):
        held, page = read(folder / audit), (folder / report).read_text()
        assert page.lstrip().lower().startswith("<!doctype html>")
        assert held["name"] in page
        made = held["provenance"]
        assert (made["command"], made["random_state"]) == ("evenhand demo", 0)
        assert made["model"]["sha256"] == read(folder / "model" / "model.json")["sha256"]
        assert made["data"] == {
            "name": "diabetes, bundled with scikit-learn",
            "sha256": None,
            "n_rows": 442,
        }
        # people are named by their rows in the whole table
        outcomes = load_diabetes().y
        assert all(outcomes[row["row"]] == row["outcome"] for row in held["examples"])
        assert len(held["examples"]) == (20 if held["is_randomized"] else 5)
        chosen = held["price"]["chosen"]
        assert (chosen is not None) == held["is_randomized"]
        assert (held["caveat"] is not None) == held["is_randomized"]
    assert chosen["alpha"] == load(folder / "model").alpha


def test_one_number_stands_for_one_promise(
    shown: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, done = shown[0] / "evenhand-demo", shown[1]
    held = read(folder / AUDITS[-1])
    assert held["is_randomized"]
    text = " ".join(done.stdout.split())
    (stated,) = re.findall(
        r"off by at most ([\d.]+) points in every group of at least 20% of people", text
    )
    (compared,) = re.findall(
        r"Certified for every group of at least 20% of people: off by at most"
        r" [\d.]+ points before, ([\d.]+) points after",
        text,
    )
    (warned,) = re.findall(
        r"at most ([\d.]+) points in every group of at least 20% of people", held["caveat"]
    )
    (proven,) = [
        row["group_error"] for row in held["certificate"]["every_group"] if row["mass"] == 0.2
    ]
    (in_hindsight,) = [row["certified"] for row in held["worst_groups"] if row["mass"] == 0.2]
    assert stated == compared == warned == at_most(proven) == at_most(in_hindsight)
    page = " ".join((folder / REPORTS[-1]).read_text().split())
    assert f"predicted probabilities are off by at most {stated} percentage points" in page


def test_its_files_are_what_they_are_named(
    shown: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder = shown[0] / "evenhand-demo"
    deterministic, randomized = (read(folder / name) for name in AUDITS)
    assert (deterministic["is_randomized"], randomized["is_randomized"]) == (False, True)
    assert (
        "<h1>Audit of the diabetes model with a draw</h1>" in (folder / "report.html").read_text()
    )
    assert deterministic["n_samples"] == randomized["n_samples"] == 177
    assert len(randomized["groups"]) > 3
    table = pd.read_csv(folder / "comparison.csv")
    assert list(table.columns) == ["measure", "deterministic", "randomized", "in_words"]
    for found in (deterministic, randomized):
        for row in found["scores"]:
            # these outcomes are integers: their densities are not compared
            if row["measure"] == "log score":
                continue
            value = table.loc[table["measure"] == row["measure"], found["name"]].item()
            assert value == pytest.approx(row["value"], rel=1e-9)
    # the price is the mean difference of log scores, over other draws: at most 2 nats, of 64 and 16
    # draws for each
    paid = float(shown[1].stdout.partition("Price: ")[2].partition(" nats")[0])
    losses = table.set_index("measure").loc["log score, cells of 1"]
    assert losses["randomized"] - losses["deterministic"] == pytest.approx(
        paid, abs=5 * 2 / np.sqrt(177 * 16)
    )
    data = load_diabetes()
    model = load(folder / "model")
    assert f"alpha = {model.alpha:.3g}." in shown[1].stdout
    assert (
        0.02 < model.alpha < 0.5
    )  # neither half of a forecast's mean error nor next to no randomization
    forecast = model.forecast(data.X, 0.5)
    assert len(forecast) == 442
    # the median of the forecasts at the middle draw tells the patients apart: a correlation of 0 is
    # 12 errors away
    assert np.corrcoef(forecast.ppf(0.5), data.y)[0, 1] > 0.5


def test_the_same_seed_gives_the_same_numbers(
    shown: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    said: list[str] = []
    text = run(tmp_path / "again", 0, said.append).text
    assert text.replace(str(tmp_path / "again"), "evenhand-demo") + "\n" == shown[1].stdout
    assert said == shown[1].stderr.splitlines()
    for name in AUDITS:
        first, second = read(shown[0] / "evenhand-demo" / name), read(tmp_path / "again" / name)
        for row, again in zip(first["scores"], second["scores"], strict=True):
            assert again["value"] == pytest.approx(row["value"], rel=1e-9)
        for row, again in zip(first["worst_groups"], second["worst_groups"], strict=True):
            assert again["error"] == pytest.approx(row["error"], rel=1e-9)


def test_a_target_that_is_out_of_reach_is_said_and_the_next_one_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    X, y = pd.DataFrame({"a": np.arange(442.0)}), pd.Series(np.arange(442.0))
    tried: list[float] = []

    def chosen(trained: str, X: pd.DataFrame, y: pd.Series, target: float, seed: int) -> Any:
        tried.append(target)
        if target < least:
            raise InputError(
                f"a group error of at most {target:g} cannot be certified: about 300 rows will do"
            )
        return target

    monkeypatch.setattr(demo, "_trained", lambda X, y, seed: "trained once")
    monkeypatch.setattr(demo, "_chosen", chosen)
    said: list[str] = []
    least = 0.4
    found: Any = demo._certified(X, y, 0, said.append)
    assert found == 0.4
    assert tried == [0.3, 0.35, 0.4]
    assert [re.findall(r"at most ([\d.]+) .* error of ([\d.]+) \.", line) for line in said[1:]] == [
        [("0.3", "0.35")],
        [("0.35", "0.4")],
    ]
    least = 0.45  # the model was trained for this one
    found = demo._certified(X, y, 0, said.append)
    assert found == "trained once"


def test_one_training_serves_all_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    # predictions without any use, in a fraction of the time: only the largest of the errors can be
    # met on these rows
    trained: list[int] = []
    fit = MixtureMLPRegressor.fit

    def counted(self: Any, X: Any, y: Any, *args: Any, **more: Any) -> Any:
        trained.append(len(X))
        return fit(self.set_params(max_steps=2), X, y, *args, **more)

    monkeypatch.setattr(MixtureMLPRegressor, "fit", counted)
    monkeypatch.setattr(demo, "TARGETS", (0.05, 0.35, 0.45))
    data = load_diabetes()
    said: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiscreteOutcomeWarning)
        found = demo._certified(data.X, data.y, 0, said.append)
    assert trained == [265]
    assert "cannot be certified for mass 0.2 on 177 rows" in said[1]
    assert "in all at certify_share=0.4" in said[1] or "nor on" in said[1]
    assert found.max_group_error == 0.35
    assert found.n_learning == 265
    assert found.model.alpha == found.alpha == found.certificate.link.alpha
    # what is certified is certified on the rows that were kept, with their numbers in the whole
    # table
    assert found.certifying.shape == (177,)
    held = found.model.base_forecast(data.X.iloc[found.certifying]).pit(
        data.y.iloc[found.certifying]
    )
    # outcomes that come often are spread over their cell, whose probability is below 0.02 each
    np.testing.assert_allclose(found.certificate.pit, np.sort(held), atol=0.02)
