"""`--json` in every command: one JSON document on standard output, messages on standard error."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from typer.main import get_command

from command_outcome import Command
from evenhand import RandomizedRegressor, Service, save
from evenhand.cli import app
from evenhand.draws import KeyedDraws
from evenhand.service import open_log

FORECASTS = ("--mean", "mu", "--std", "sigma")
QUICK = ("--id", "id")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a table, a key, a model and two audits."""
    folder = tmp_path_factory.mktemp("json")
    random = np.random.default_rng(0)
    n = 240
    table = pd.DataFrame({"id": np.arange(n), "x": random.normal(size=n), "z": random.random(n)})
    table["mu"] = table["x"]
    table["sigma"] = 1.0
    table["narrow"] = 0.5
    table["y"] = table["x"] + random.normal(size=n)
    table.to_csv(folder / "table.csv", index=False)
    (folder / "key").write_bytes(b"a secret of enough bytes")
    (folder / "key").chmod(0o600)
    model = RandomizedRegressor(LinearRegression(), random_state=0)
    save(model.fit(table[["x", "z"]], table["y"]), folder / "model")
    draws = KeyedDraws((folder / "key").read_bytes(), "2026-11")
    service = Service(folder / "model", draws, open_log(folder / "log.sqlite"))
    served = service.forecast(0, table.loc[0, ["x", "z"]])
    service.close()
    known = pd.DataFrame({"forecast_id": [served.id], "y": [1.0]})
    known.to_csv(folder / "known.csv", index=False)
    return folder


def logged_id(place: Path) -> str:
    return str(pd.read_csv(place / "known.csv")["forecast_id"][0])


def audited(place: Path, evenhand: Command, name: str, std: str, *more: Any) -> Any:
    options = ("--mean", "mu", "--std", std, "--target", "y", "--features", "x,z", *QUICK)
    return evenhand("audit", place / "table.csv", *options, "--out", place / name, *more)


def fit(place: Path, *more: Any) -> tuple[Any, ...]:
    options = ("--target", "y", *QUICK, "--drop", "mu,sigma,narrow", "--seed", 0)
    return ("fit", place / "table.csv", *options, *more, "--json")


CALLS: dict[str, Callable[[Path, Path], tuple[Any, ...]]] = {
    "demo": lambda place, out: ("demo", "--out", out / "demo", "--json"),
    "plan": lambda place, out: ("plan", "--rows", "500", "--json"),
    "fit": lambda place, out: fit(place, "--out", out / "model"),
    "fit, certified": lambda place, out: fit(
        place, "--out", out / "model", "--max-group-error", 0.45
    ),
    "predict": lambda place, out: (
        "predict",
        place / "model",
        place / "table.csv",
        *QUICK,
        "--key-file",
        place / "key",
        "--out",
        out / "served.csv",
        "--json",
    ),
    "randomize": lambda place, out: (
        "randomize",
        place / "table.csv",
        *FORECASTS,
        *QUICK,
        "--key-file",
        place / "key",
        "--out",
        out / "served.csv",
        "--json",
    ),
    "randomize, certified": lambda place, out: (
        "randomize",
        place / "table.csv",
        *FORECASTS,
        *QUICK,
        "--target",
        "y",
        "--max-group-error",
        0.45,
        "--out",
        out / "proof",
        "--json",
    ),
    "recalibrate": lambda place, out: (
        "recalibrate",
        place / "table.csv",
        *FORECASTS,
        "--target",
        "y",
        "--out",
        out / "maps",
        "--json",
    ),
    "audit": lambda place, out: (
        "audit",
        place / "table.csv",
        *FORECASTS,
        "--target",
        "y",
        "--features",
        "x,z",
        "--tables",
        out / "tables",
        "--json",
    ),
    "compare": lambda place, out: (
        "compare",
        place / "narrow.json",
        place / "right.json",
        "--out",
        out / "page.html",
        "--tables",
        out / "tables",
        "--json",
    ),
    "outcomes": lambda place, out: (
        "outcomes",
        place / "log.sqlite",
        place / "known.csv",
        "--id",
        "forecast_id",
        "--target",
        "y",
        "--json",
    ),
    "replay": lambda place, out: (
        "replay",
        place / "log.sqlite",
        logged_id(place),
        "--model",
        place / "model",
        "--key-file",
        place / "key",
        "--features",
        place / "table.csv",
        *QUICK,
        "--json",
    ),
    "watch": lambda place, out: ("watch", place / "log.sqlite", "--horizon", "1d", "--json"),
}
COMMANDS = sorted(get_command(app).commands)  # type: ignore[attr-defined]


def test_every_command_has_the_option_and_a_call_here() -> None:
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for name, command in commands.items():
        options = {option: one for one in command.params for option in one.opts}
        assert "--json" in options, name
        assert "JSON" in options["--json"].help
    assert {name.partition(",")[0] for name in CALLS} >= set(commands)


@pytest.mark.usefixtures("quick_training")
@pytest.mark.parametrize("name", [name for name in CALLS if name.partition(",")[0] in COMMANDS])
def test_standard_output_is_one_json_document(
    name: str, place: Path, tmp_path: Path, evenhand: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the demo trains for a minute; its results have tests of their own
    monkeypatch.setattr("evenhand.demo.run", lambda *args, **more: ("text", {"a": 1.0}))
    for file, std in (("narrow.json", "narrow"), ("right.json", "sigma")):
        if name == "compare" and not (place / file).exists():
            assert audited(place, evenhand, file, std).code == 0
    done = evenhand(*CALLS[name](place, tmp_path))
    assert done.code == 0, done.err

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    values = json.loads(done.out, parse_constant=refuse)
    assert isinstance(values, dict)
    assert all(not line.startswith(("{", "}")) for line in done.err.splitlines())
    if name in ("predict", "randomize"):
        assert values["n_rows"] == 240
        assert values["key"] in done.err
    if name in ("audit", "compare"):
        assert (tmp_path / "tables" / "groups.csv").is_file()
        assert re.search(r"\d+ tables written to", done.err)


def test_compare_fails_if_a_group_got_worse(place: Path, evenhand: Command) -> None:
    paths = []
    for file, std in (("narrow.json", "narrow"), ("right.json", "sigma")):
        assert audited(place, evenhand, file, std).code == 0
        paths.append(place / file)
    worse = evenhand("compare", *reversed(paths), "--fail-if-worse")
    assert worse.code == 1
    assert worse.err == "failed: a group got significantly worse by more than the tolerance\n"
    assert worse.out.startswith("Comparison of right and narrow: 240 rows")
    assert evenhand("compare", *paths, "--fail-if-worse").code == 0
    assert evenhand("compare", *reversed(paths)).code == 0
    # without paired intervals nothing can be decided
    assert audited(place, evenhand, "bare.json", "sigma", "--no-rows").code == 0
    open_question = evenhand("compare", place / "bare.json", paths[0], "--fail-if-worse")
    assert open_question.code == 2
    assert "--fail-if-worse needs paired intervals" in open_question.err
