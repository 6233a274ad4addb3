"""The demo: one command that trains, audits, compares and saves on a real table."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import InputError, demo, load
from evenhand.datasets import load_diabetes
from evenhand.demo import run

AUDITS = ("audit-deterministic.json", "audit-randomized.json")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Run the command as a newcomer does, in an empty folder and without options."""
    place = tmp_path_factory.mktemp("demo")
    script = shutil.which("evenhand", path=sysconfig.get_path("scripts"))
    assert script is not None
    return place, subprocess.run([script, "demo"], check=False, capture_output=True, text=True, cwd=place)


def read(path: Path) -> Any:
    return json.loads(path.read_text(), parse_constant=pytest.fail)


def test_the_demo_prints_a_table_and_where_its_files_are(
    shown: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    place, done = shown
    assert done.returncode == 0
    for words in ("log score", "oracle worst 20%", "in plain words", "deterministic", "randomized", "evenhand-demo/"):
        assert words in done.stdout
    for words in (
        "With 95% confidence, stated chances are off by at most 30.0 points in every group of at least 20% of people",
        "(certified on 177 people, learned on 265 rows).",
        "The least randomization that shows it: alpha = ",
        " nats of log score on these people; ",
    ):
        assert words in done.stdout
    assert done.stderr.splitlines() == [
        "diabetes: training on 265 rows, keeping 177 to certify and audit ...",
        "auditing ...",
    ]
    assert [path.name for path in place.iterdir()] == ["evenhand-demo"]
    files = {path.name for path in (place / "evenhand-demo").iterdir()}
    assert files == {"model", "comparison.csv", *AUDITS}
    for file in files:
        assert file in done.stdout


def test_its_files_are_what_they_are_named(shown: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder = shown[0] / "evenhand-demo"
    deterministic, randomized = (read(folder / name) for name in AUDITS)
    assert (deterministic["is_randomized"], randomized["is_randomized"]) == (False, True)
    assert deterministic["n_samples"] == randomized["n_samples"] == 177
    assert len(randomized["groups"]) > 3
    table = pd.read_csv(folder / "comparison.csv")
    assert list(table.columns) == ["measure", "deterministic", "randomized", "in_words"]
    for found in (deterministic, randomized):
        for row in found["scores"]:
            value = table.loc[table["measure"] == row["measure"], found["name"]].item()
            assert value == pytest.approx(row["value"], rel=1e-9)
    # the price is the mean difference of log scores, over other draws: at most 2 nats, of 64 and 16 draws for each
    paid = float(shown[1].stdout.partition("Price: ")[2].partition(" nats")[0])
    losses = table.set_index("measure").loc["log score"]
    assert losses["randomized"] - losses["deterministic"] == pytest.approx(paid, abs=5 * 2 / np.sqrt(177 * 16))
    data = load_diabetes()
    model = load(folder / "model")
    assert f"alpha = {model.alpha:.3g}." in shown[1].stdout
    assert 0.02 < model.alpha < 0.5  # neither half of a forecast's mean error nor next to no randomization
    forecast = model.forecast(data.X, 0.5)
    assert len(forecast) == 442
    # the median of the forecasts at the middle draw tells the patients apart: a correlation of 0 is 12 errors away
    assert np.corrcoef(forecast.ppf(0.5), data.y)[0, 1] > 0.5


def test_the_same_seed_gives_the_same_numbers(
    shown: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    said: list[str] = []
    text = run(tmp_path / "again", 0, said.append)
    assert text.replace(str(tmp_path / "again"), "evenhand-demo") + "\n" == shown[1].stdout
    assert said == shown[1].stderr.splitlines()
    for name in AUDITS:
        first, second = read(shown[0] / "evenhand-demo" / name), read(tmp_path / "again" / name)
        for row, again in zip(first["scores"], second["scores"], strict=True):
            assert again["value"] == pytest.approx(row["value"], rel=1e-9)
        for row, again in zip(first["worst_groups"], second["worst_groups"], strict=True):
            assert again["error"] == pytest.approx(row["error"], rel=1e-9)


def test_a_target_that_is_out_of_reach_is_said_and_the_next_one_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = pd.DataFrame({"a": np.arange(442.0)}), pd.Series(np.arange(442.0))
    tried: list[float] = []

    def attempt(X: pd.DataFrame, y: pd.Series, target: float, seed: int) -> Any:
        tried.append(target)
        if target < 0.4:
            raise InputError(f"a group error of at most {target:g} cannot be certified: it takes about 300 rows")
        return target

    monkeypatch.setattr(demo, "_attempt", attempt)
    said: list[str] = []
    chosen: Any = demo._certified(X, y, 0, said.append)
    assert chosen == 0.4
    assert tried == [0.3, 0.35, 0.4]
    assert said[1:] == [
        "a group error of at most 0.3 cannot be certified: it takes about 300 rows. Trying 0.35 ...",
        "a group error of at most 0.35 cannot be certified: it takes about 300 rows. Trying 0.4 ...",
    ]
