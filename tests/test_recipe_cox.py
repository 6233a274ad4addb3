"""The recipe of a Cox model: its tables, and its commands, from audit to service."""

import ast
import json
import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from evenhand import load

RECIPE = Path(__file__).parents[1] / "docs" / "recipes" / "cox.py"

pytestmark = [
    pytest.mark.skipif(not RECIPE.exists(), reason="the documentation is not here"),
    pytest.mark.filterwarnings("ignore"),
]


def commands():
    text = ast.get_docstring(ast.parse(RECIPE.read_text(encoding="utf-8")))
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.strip().startswith("evenhand ")]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    pytest.importorskip("lifelines")
    pytest.importorskip("sksurv")
    folder = tmp_path_factory.mktemp("cox")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        runpy.run_path(str(RECIPE))
    return folder


def test_no_person_is_in_two_tables(place):
    tables = [pd.read_csv(place / f"{name}.csv") for name in ("test", "past", "proof", "new")]
    assert pd.concat(tables)["id"].is_unique
    # the share in the docstring
    known = pd.concat(tables[:3])
    share = ((known["years"] < 10) & (known["died"] == 0)).mean()
    (named,) = re.findall(r"(\d+)% had been followed", RECIPE.read_text())
    assert round(100 * share) == int(named)


def test_commands_audit_repair_prove_and_serve(place, evenhand, monkeypatch):
    monkeypatch.chdir(place)
    calls = commands()
    expected = [*("audit", "recalibrate", "predict", "audit", "randomize", "predict")]
    assert [call[0] for call in calls] == expected
    done = [evenhand(*call) for call in calls]
    for call, one in zip(calls, done, strict=True):
        assert one.code == 0, (call, one.err)
    found, _, _, repaired, _, _ = done
    assert "\nPROBLEM FOUND" in found.out
    assert "Decade 80 " in found.out
    assert "\nNO PROBLEM FOUND" in repaired.out
    for name in ("audit", "repaired"):
        assert "cut off" in (place / f"{name}.html").read_text(encoding="utf-8")
    certificate = json.loads((place / "proven" / "certificate.json").read_text())
    assert certificate["group_error"] <= 0.4
    columns = load(place / "proven").estimator
    assert columns.horizon == 10
    new = pd.read_csv(place / "new.csv")
    times = np.arange(0.5, 10.1, 0.5)
    assert [*columns.by_option(new, "new.csv")["survival"].values()] == times.tolist()
    served = pd.read_csv(place / "served.csv")
    curves = served[[name for name in served if name.startswith("survival_")]].to_numpy()
    assert (np.diff(curves) <= 1e-12).all()
    # whether a person dies within ten years is not randomized, but when is
    np.testing.assert_allclose(served["survival_10"], new["s10.0"], rtol=1e-9)
    assert (np.abs(served["survival_5"] - new["s5.0"]) > 1e-3).mean() > 0.8
