"""Outputs of commands: only a model folder is replaced, and no other result is put into one."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from command_outcome import contents
from evenhand import ForecastColumns, RecalibratedRegressor, save
from evenhand.store import is_model_folder

NORMAL = ("--forecast", "mean=mu,std=sigma")
WRITERS = {
    "fit": ("--outcome", "count", "--drop", "mu,sigma"),
    "recalibrate": NORMAL,
    "randomize": ("--forecast", "mean=mu,std=sigma,outcome=count", "--goal", "0.45"),
}
"""Options of the commands that write a model folder."""


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    random = np.random.default_rng(3)
    x = random.normal(size=300)
    mean = np.exp(2 + 0.8 * x)
    y = random.poisson(mean)
    path = tmp_path_factory.mktemp("table") / "t.csv"
    sigma = 1.05 * np.sqrt(mean)
    pd.DataFrame({"x": x, "mu": mean, "sigma": sigma, "y": y}).to_csv(path, index=False)
    return path


@pytest.fixture(scope="module")
def made(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "model"
    X = pd.read_csv(table)
    model = RecalibratedRegressor(ForecastColumns("mu", "sigma"))
    save(model.fit(X[["mu", "sigma"]], X["y"]), folder)
    return folder


@pytest.fixture
def folder(made, tmp_path):
    return Path(shutil.copytree(made, tmp_path / "model"))


def written_by(command, table, out):
    return (command, table, "--target", "y", *WRITERS[command], "--out", out, "--seed", "0")


@pytest.mark.parametrize("command", WRITERS)
def test_a_model_folder_is_replaced_unless_it_is_read(command, folder, table, evenhand):
    before = contents(folder)
    done = evenhand(*written_by(command, table, folder)).done()
    assert f"warning: --out {folder} is a model folder, which is replaced when" in done.err
    assert is_model_folder(folder)
    assert contents(folder) != before
    if command != "fit":
        before = contents(folder)
        args = (command, table, "--target", "y", "--forecast", folder, "--out", folder)
        assert f"--out {folder} lies in the model, {folder}" in evenhand(*args).complaint()
        assert contents(folder) == before


@pytest.mark.parametrize("command", WRITERS)
def test_a_manifest_of_another_program_is_not_replaced(command, table, tmp_path, evenhand):
    for name, text in (("model.json", '{"learner": {}}'), ("certificate.json", "[]")):
        folder = tmp_path / name.removesuffix(".json")
        folder.mkdir()
        (folder / name).write_text(text)
        refused = evenhand(*written_by(command, table, folder)).complaint()
        assert f"contains {name!r} and is not a model folder" in refused
        assert (folder / name).read_text() == text


RESULTS = {
    "manifest": lambda table, to: ("audit", table, *NORMAL, "--out", to / "model.json"),
    "certificate": lambda table, to: ("audit", table, *NORMAL, "--out", to / "certificate.json"),
    "report": lambda table, to: ("audit", table, *NORMAL, "--out", to / "report.html"),
    "tables": lambda table, to: ("audit", table, *NORMAL, "--tables", to),
    "tables inside": lambda table, to: ("audit", table, *NORMAL, "--tables", to / "tables"),
    "demo": lambda table, to: ("demo", "--out", to),
}


@pytest.mark.parametrize("result", RESULTS)
def test_no_result_is_written_into_a_model_folder(result, folder, table, evenhand):
    before = contents(folder)
    args = RESULTS[result](table, folder)
    target = ("--target", "y") if args[0] == "audit" else ()
    refused = evenhand(*args, *target).complaint()
    assert str(folder) in refused
    assert "a model folder; use another path" in refused
    assert contents(folder) == before
