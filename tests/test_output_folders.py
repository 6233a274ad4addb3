"""Outputs of commands: a folder is replaced only by its own kind, and no result is put into it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from command_outcome import Command
from evenhand import ForecastColumns, RecalibratedRegressor, save, store
from evenhand.store import CERTIFICATE_FOLDER, MAPS_FOLDER, MODEL_FOLDER, folder_kind

ROWS = 300
NORMAL = ("--mean", "mu", "--std", "sigma")
WRITERS = {
    "fit": (MODEL_FOLDER, ("--outcome", "count", "--drop", "mu,sigma")),
    "recalibrate": (MAPS_FOLDER, NORMAL),
    "randomize": (CERTIFICATE_FOLDER, (*NORMAL, "--outcome", "count", "--max-group-error", "0.45")),
}
"""Commands that write a folder, with the kind of the folder."""


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    random = np.random.default_rng(3)
    x = random.normal(size=ROWS)
    mean = np.exp(2 + 0.8 * x)
    y = random.poisson(mean)
    path = tmp_path_factory.mktemp("table") / "t.csv"
    sigma = 1.05 * np.sqrt(mean)
    pd.DataFrame({"x": x, "mu": mean, "sigma": sigma, "y": y}).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def made(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    forecasts = {"kind": "mean_std", "columns": ["mu", "sigma"]}
    certificate = {"link": "entropic", "alpha": 0.1, "forecasts": forecasts}
    store.write_forecast_certificate(certificate, folder / "randomize", b"report")
    X = pd.read_csv(table)
    maps = RecalibratedRegressor(ForecastColumns("mu", "sigma")).fit(X[["mu", "sigma"]], X["y"])
    save(maps, folder / "recalibrate")
    # a repaired model with its own inner model is no folder of maps
    save(RecalibratedRegressor(LinearRegression()).fit(X[["x"]], X["mu"]), folder / "fit")
    return folder


@pytest.fixture
def folders(made: Path, tmp_path: Path) -> dict[str, Path]:
    """Return a folder of each kind, by the command that writes it."""
    return {one: Path(shutil.copytree(made / one, tmp_path / one)) for one in WRITERS}


def written_by(command: str, table: Path, out: Path) -> tuple[Any, ...]:
    return (command, table, "--target", "y", *WRITERS[command][1], "--out", out, "--seed", "0")


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("command", WRITERS)
def test_a_folder_is_replaced_only_by_its_own_kind(
    command: str, folders: dict[str, Path], table: Path, evenhand: Command
) -> None:
    noun, _ = WRITERS[command]
    for other, folder in folders.items():
        held, _ = WRITERS[other]
        assert folder_kind(folder) == held
        before = content(folder)
        done = evenhand(*written_by(command, table, folder))
        if other == command:
            assert done.code == 0, done.err
            assert f"warning: --out {folder} is {held}, which is replaced when" in done.err
            assert folder_kind(folder) == held
        else:
            assert done.complaint() == (
                f"error: --out {folder} is {held}, not {noun}; use a new or empty folder\n"
            )
            assert content(folder) == before


@pytest.mark.parametrize("command", WRITERS)
def test_a_manifest_of_another_program_is_not_replaced(
    command: str, table: Path, tmp_path: Path, evenhand: Command
) -> None:
    for name, text in (("model.json", '{"learner": {}}'), ("certificate.json", "[]")):
        folder = tmp_path / name.removesuffix(".json")
        folder.mkdir()
        (folder / name).write_text(text)
        refused = evenhand(*written_by(command, table, folder)).complaint()
        assert f"contains {name!r} and is not {WRITERS[command][0]}" in refused
        assert (folder / name).read_text() == text


RESULTS: dict[str, Callable[[Path, Path], tuple[Any, ...]]] = {
    "manifest": lambda table, to: ("audit", table, *NORMAL, "--out", to / "model.json"),
    "certificate": lambda table, to: ("audit", table, *NORMAL, "--out", to / "certificate.json"),
    "report": lambda table, to: ("audit", table, *NORMAL, "--out", to / "report.html"),
    "tables": lambda table, to: ("audit", table, *NORMAL, "--tables", to),
    "tables inside": lambda table, to: ("audit", table, *NORMAL, "--tables", to / "tables"),
    "demo": lambda table, to: ("demo", "--out", to),
}


@pytest.mark.parametrize("result", RESULTS)
def test_no_result_is_written_into_a_folder_of_a_model_or_certificate(
    result: str, folders: dict[str, Path], table: Path, evenhand: Command
) -> None:
    for writer, folder in folders.items():
        before = content(folder)
        args = RESULTS[result](table, folder)
        target = ("--target", "y") if args[0] == "audit" else ()
        refused = evenhand(*args, *target).complaint()
        assert str(folder) in refused
        assert f"{WRITERS[writer][0]}; use another path" in refused
        assert content(folder) == before
