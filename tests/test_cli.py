"""The command: what goes in comes out, and bad input is one line and exit code 2."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evenhand import Forecast, MixtureMLPRegressor, RandomizedRegressor, audit, load, save, store
from evenhand.cli import main
from evenhand.draws import KeyedDraws

ROWS = 200
KEY = b"a secret of enough bytes"
LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
QUANTILES = [f"q{level}" for level in LEVELS]


def make_table() -> pd.DataFrame:
    """Make a table with numbers, text, dates and missing values, and a good forecast of its outcome."""
    random = np.random.default_rng(11)
    income = random.normal(50, 10, ROWS).round(2)
    table = pd.DataFrame(
        {
            "id": np.arange(101, 101 + ROWS),
            "income": income,
            "job": random.choice(["cook", "nurse", "clerk"], ROWS),
            "since": pd.Timestamp("2015-01-01") + pd.to_timedelta(random.integers(0, 3000, ROWS), unit="D"),
            "mu": 0.3 * income,
            "sigma": random.uniform(2.0, 4.0, ROWS),
        }
    )
    table["loss"] = (table["mu"] + table["sigma"] * random.normal(size=ROWS)).round(4)
    table.loc[::23, "income"] = np.nan
    table.loc[7, "job"] = None
    return table


TABLE = make_table()


@dataclass(frozen=True)
class Outcome:
    """What a call of the command did."""

    code: int
    out: str
    err: str

    def complaint(self) -> str:
        """Return the one line on standard error of a call that was refused."""
        assert self.code == 2
        assert self.out == ""
        assert self.err.count("\n") == 1
        assert self.err.startswith("error: ")
        assert self.err.rstrip("\n").isprintable()
        return self.err


Command = Callable[..., Outcome]


@pytest.fixture
def evenhand(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Command]:
    """Call the command in this process."""
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)

    def call(*args: Any) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["evenhand", *map(str, args)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            main()
        code = caught.value.code
        return Outcome(0 if code is None else int(code), *capfd.readouterr())

    with warnings.catch_warnings():
        yield call


def process(*args: Any, **environment: str) -> Outcome:
    """Call the command in a process of its own."""
    argv = [sys.executable, "-m", "evenhand.cli", *map(str, args)]
    if args and args[0] == "-c":
        argv = [sys.executable, *map(str, args)]
    run = subprocess.run(argv, check=False, capture_output=True, env=os.environ | environment)
    return Outcome(run.returncode, run.stdout.decode(), run.stderr.decode())


def written(table: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False, date_format="%Y-%m-%d")
    return path


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with tables, a key and a small model of the columns income, job and since."""
    folder = tmp_path_factory.mktemp("cli")
    written(TABLE, folder / "people.csv")
    written(TABLE, folder / "people.parquet")
    (folder / "key").write_bytes(KEY + b"\n")
    base = MixtureMLPRegressor(n_members=2, hidden=(8,), max_steps=60, random_state=0)
    model = RandomizedRegressor(base, alpha=0.2, link="laplace")
    save(model.fit(TABLE[["income", "job", "since"]], TABLE["loss"]), folder / "model")
    return folder


def predict_args(place: Path, table: Path, out: Path, *more: Any) -> tuple[Any, ...]:
    return ("predict", place / "model", table, "--id", "id", "--key-file", place / "key", "--out", out, *more)


def randomize_args(place: Path, table: Path, out: Path, *more: Any) -> tuple[Any, ...]:
    names = ("--mean", "mu", "--std", "sigma", "--id", "id", "--key-file", place / "key")
    return ("randomize", table, *names, "--out", out, *more)


# The round trip.


def test_fit_predict_and_audit_in_processes_of_their_own(place: Path, tmp_path: Path) -> None:
    model, out = tmp_path / "model", tmp_path / "out.csv"
    drop = ("--id", "id", "--drop", "mu, sigma")
    fitted = process("fit", place / "people.csv", "--target", "loss", *drop, "--out", model, "--seed", 0)
    assert (fitted.code, fitted.out) == (0, "")
    assert fitted.err == f"trained on {ROWS} rows and 3 columns; the model is in {model}\n"
    assert list(load(model).feature_names_in_) == ["income", "job", "since"]

    key = ("--id", "id", "--key-file", place / "key")
    made = process("predict", model, place / "people.parquet", *key, "--out", out)
    assert (made.code, made.out, made.err) == (0, "", f"{ROWS} forecasts are in {out}\n")
    forecasts = pd.read_csv(out)
    assert list(forecasts.columns) == ["id", "r", "mean", "std", *QUANTILES]
    assert forecasts["id"].tolist() == TABLE["id"].tolist()

    audited = process("audit", model, place / "people.csv", "--target", "loss", "--json", "--groups", "job")
    assert (audited.code, audited.err) == (0, "")
    found = json.loads(audited.out)
    assert found["name"] == "model"
    assert {"job = cook", "job missing"} < {row["group"] for row in found["groups"]}


def test_bad_input_in_a_process_of_its_own_is_one_line_and_code_2(place: Path, tmp_path: Path) -> None:
    refused = process("fit", place / "people.csv", "--target", "lost", "--out", tmp_path / "model")
    assert "people.csv" in refused.complaint()
    assert "did you mean 'loss'?" in refused.err
    assert list(tmp_path.iterdir()) == []


def test_a_usage_error_has_code_2(place: Path, tmp_path: Path, evenhand: Command) -> None:
    for args in (
        ("fit", place / "people.csv", "--out", tmp_path / "model"),
        ("fit", place / "people.csv", "--target", "loss", "--out", tmp_path / "model", "--alpha", "much"),
        ("predict", place / "model"),
        ("audit", "--colour", "red"),
        ("forecast",),
    ):
        refused = evenhand(*args)
        assert (refused.code, refused.out) == (2, "")
        assert refused.err
    assert list(tmp_path.iterdir()) == []


def test_the_written_forecasts_are_those_of_the_model(place: Path, tmp_path: Path, evenhand: Command) -> None:
    assert evenhand(*predict_args(place, place / "people.csv", tmp_path / "out.parquet")).code == 0
    found = pd.read_parquet(tmp_path / "out.parquet")
    r = KeyedDraws(KEY)(TABLE["id"])
    forecast = load(place / "model").forecast(TABLE[["income", "job", "since"]], r)
    np.testing.assert_array_equal(found["r"], r)
    np.testing.assert_allclose(found["mean"], forecast.mean(), rtol=1e-9)
    np.testing.assert_allclose(found["std"], forecast.std(), rtol=1e-9)
    np.testing.assert_allclose(found[QUANTILES], forecast.ppf(LEVELS), rtol=1e-9)
    assert (np.diff(found[QUANTILES], axis=-1) > 0).all()


def test_levels_are_columns_named_by_all_their_digits(place: Path, tmp_path: Path, evenhand: Command) -> None:
    levels = ("--levels", "0.5, 0.9999999,0.99999991")
    assert evenhand(*predict_args(place, place / "people.csv", tmp_path / "out.csv", *levels)).code == 0
    found = pd.read_csv(tmp_path / "out.csv")
    assert list(found.columns[4:]) == ["q0.5", "q0.9999999", "q0.99999991"]
    assert (found["q0.9999999"] < found["q0.99999991"]).all()


def test_an_old_output_is_replaced(place: Path, tmp_path: Path, evenhand: Command) -> None:
    (tmp_path / "out.csv").write_text("old")
    assert evenhand(*predict_args(place, place / "people.csv", tmp_path / "out.csv")).code == 0
    assert len(pd.read_csv(tmp_path / "out.csv")) == ROWS
    assert [path.name for path in tmp_path.iterdir()] == ["out.csv"]


# A person's draw.


def test_draws_and_forecasts_do_not_depend_on_order_batch_or_type_of_the_id(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    shuffled = TABLE.sample(frac=1.0, random_state=0)
    as_text = TABLE.assign(id=TABLE["id"].astype(str))
    batches = {
        "people.csv": TABLE,
        "integers.parquet": TABLE,
        "text.parquet": as_text,
        "shuffled.csv": shuffled,
        "half.csv": shuffled[: ROWS // 2],
        "one.parquet": as_text[5:6],
    }
    whole = None
    for name, table in batches.items():
        out = tmp_path / f"out-{name}"
        assert evenhand(*predict_args(place, written(table, tmp_path / name), out)).code == 0
        found = pd.read_parquet(out) if out.suffix == ".parquet" else pd.read_csv(out)
        found = found.assign(id=found["id"].astype(str)).set_index("id")
        assert found.index.tolist() == table["id"].astype(str).tolist()
        whole = found if whole is None else whole
        np.testing.assert_array_equal(found["r"], whole.loc[found.index, "r"])
        np.testing.assert_allclose(found, whole.loc[found.index], rtol=1e-9)


def test_leading_zeros_of_an_id_are_kept(place: Path, tmp_path: Path, evenhand: Command) -> None:
    table = TABLE[:2].assign(id=["007", "7"])
    out = tmp_path / "out.csv"
    assert evenhand(*predict_args(place, written(table, tmp_path / "t.csv"), out)).code == 0
    found = pd.read_csv(out, dtype={"id": str})
    assert found["id"].tolist() == ["007", "7"]
    np.testing.assert_array_equal(found["r"], KeyedDraws(KEY)(["007", 7]))
    assert found["r"][0] != found["r"][1]


def test_another_context_or_key_gives_other_draws(place: Path, tmp_path: Path, evenhand: Command) -> None:
    (tmp_path / "key").write_bytes(KEY[::-1])
    table, out = place / "people.csv", tmp_path / "out.csv"
    draws = []
    for more in ((), ("--context", "2026-11"), ("--context", "2026-12"), ("--key-file", tmp_path / "key")):
        assert evenhand(*predict_args(place, table, out, *more)).code == 0
        draws.append(pd.read_csv(out)["r"].to_numpy())
    np.testing.assert_array_equal(draws[1], KeyedDraws(KEY, "2026-11")(TABLE["id"]))
    for i, first in enumerate(draws):
        for second in draws[i + 1 :]:
            # independent draws of 200 people: beyond 0.35 is 5 standard errors
            assert abs(np.corrcoef(first, second)[0, 1]) < 0.35


def test_line_ends_of_the_key_file_do_not_count(place: Path, tmp_path: Path, evenhand: Command) -> None:
    for ending in (b"", b"\n", b"\r\n"):
        (tmp_path / "key").write_bytes(KEY + ending)
        more = ("--key-file", tmp_path / "key")
        assert evenhand(*predict_args(place, place / "people.csv", tmp_path / "out.csv", *more)).code == 0
        np.testing.assert_array_equal(pd.read_csv(tmp_path / "out.csv")["r"], KeyedDraws(KEY)(TABLE["id"]))


# Another model's forecasts.


def test_randomize_at_alpha_1_leaves_the_normal_forecasts_as_they_are(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    out = tmp_path / "out.csv"
    made = evenhand(*randomize_args(place, place / "people.csv", out, "--alpha", 1))
    assert (made.code, made.out, made.err) == (0, "", f"{ROWS} randomized forecasts are in {out}\n")
    found = pd.read_csv(out)
    mean, std = TABLE[["mu"]].to_numpy(), TABLE[["sigma"]].to_numpy()
    np.testing.assert_allclose(found[QUANTILES], mean + std * stats.norm.ppf(LEVELS), rtol=1e-6)
    np.testing.assert_allclose(found["mean"], TABLE["mu"], rtol=1e-6)
    np.testing.assert_allclose(found["std"], TABLE["sigma"], rtol=1e-6)


@pytest.mark.parametrize("link", ["entropic", "laplace", "gaussian"])
def test_randomize_is_the_link_around_the_normal_forecast(
    link: str, place: Path, tmp_path: Path, evenhand: Command
) -> None:
    more = ("--alpha", 0.2, "--link", link, "--context", "trial")
    assert evenhand(*randomize_args(place, place / "people.parquet", tmp_path / "out.csv", *more)).code == 0
    found = pd.read_csv(tmp_path / "out.csv")
    forecast = Forecast.from_normal(TABLE["mu"], TABLE["sigma"])
    expected = forecast.randomized(0.2, link, KeyedDraws(KEY, "trial")(TABLE["id"]))
    np.testing.assert_allclose(found[QUANTILES], expected.ppf(LEVELS), rtol=1e-9)
    # a small draw says that outcomes are high
    assert np.corrcoef(found["r"], (found["q0.5"] - TABLE["mu"]) / TABLE["sigma"])[0, 1] < -0.9


def test_audit_of_another_models_forecasts(place: Path, evenhand: Command) -> None:
    args = ("audit", place / "people.csv", "--target", "loss", "--mean", "mu", "--std", "sigma", "--groups", "job,since")
    shown = evenhand(*args, "--json", "--seed", 4)
    assert (shown.code, shown.err) == (0, "")
    found = json.loads(shown.out, parse_constant=pytest.fail)
    again = audit(Forecast.from_normal(TABLE["mu"], TABLE["sigma"]), y=TABLE["loss"], random_state=4)
    scores = {row["measure"]: row["value"] for row in found["scores"]}
    for measure in ("log score", "CRPS", "90% coverage", "average error"):
        assert scores[measure] == pytest.approx(again.score(measure), rel=1e-9)
    # the forecasts are the truth: 5 standard errors of a share of 0.9 among 200 are 0.106
    assert scores["90% coverage"] == pytest.approx(0.9, abs=0.106)
    assert sum(row["n"] for row in found["groups"] if row["group"].startswith("job")) == ROWS
    assert found["is_randomized"] is False
    text = evenhand(*args)
    assert (text.code, text.err) == (0, "")
    assert "oracle worst group" in text.out
    assert "job = cook" in text.out


def test_audit_of_a_model_writes_what_it_prints(place: Path, tmp_path: Path, evenhand: Command) -> None:
    args = ("audit", place / "model", place / "people.parquet", "--target", "loss", "--out", tmp_path / "audit.json")
    shown = evenhand(*args, "--json")
    assert shown.code == 0
    assert shown.err == f"the audit is in {tmp_path / 'audit.json'}\n"
    assert json.loads((tmp_path / "audit.json").read_text()) == json.loads(shown.out)
    assert json.loads(shown.out)["is_randomized"] is True
    assert evenhand(*args, "--json").out == shown.out
    assert evenhand(*args, "--json", "--seed", 1).out != shown.out


def test_a_milder_atom_is_a_warning_that_names_the_column(place: Path, tmp_path: Path, evenhand: Command) -> None:
    table = TABLE.copy()
    table.loc[:7, "loss"] = 15.0
    path = written(table, tmp_path / "mild.csv")
    shown = evenhand("audit", path, "--target", "loss", "--mean", "mu", "--std", "sigma", "--json")
    assert shown.code == 0
    json.loads(shown.out)
    (line,) = shown.err.splitlines()
    assert line.startswith("warning: mild.csv: column 'loss' is 15 in 4.0% of the rows")


def test_a_terminal_without_the_lines_of_tables_is_served(place: Path) -> None:
    args = ("audit", place / "people.csv", "--target", "loss", "--mean", "mu", "--std", "sigma")
    shown = process(*args, PYTHONIOENCODING="ascii")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.isascii()
    assert "everyone" in shown.out


# Bad input. Each case takes the place and a folder to write to, and returns the arguments.

Case = Callable[[Path, Path], tuple[Any, ...]]


def changed(column: str, values: Any, rows: Any = slice(None)) -> pd.DataFrame:
    """Return the table with other values in some rows of a column."""
    table = TABLE.copy()
    table[column] = table[column].astype(object)
    table.loc[rows, column] = values
    return table.infer_objects() if isinstance(rows, slice) and rows == slice(None) else table


def fit(table: pd.DataFrame | str | bytes | None = None, *more: Any, ending: str = ".csv", target: str = "loss") -> Case:
    def args(place: Path, folder: Path) -> tuple[Any, ...]:
        path = given(table, place, folder, ending)
        return ("fit", path, "--target", target, "--out", folder / "out" / "model", *more)

    return args


def predict(table: pd.DataFrame | str | bytes | None = None, *more: Any, ending: str = ".csv") -> Case:
    def args(place: Path, folder: Path) -> tuple[Any, ...]:
        filled = [folder / text if isinstance(text, Path) else text for text in more]
        return predict_args(place, given(table, place, folder, ending), folder / "out" / "out.csv", *filled)

    return args


def audit_model(table: pd.DataFrame | str | bytes | None = None, *more: Any, target: str = "loss") -> Case:
    def args(place: Path, folder: Path) -> tuple[Any, ...]:
        path, out = given(table, place, folder, ".csv"), folder / "out" / "audit.json"
        return ("audit", place / "model", path, "--target", target, "--out", out, *more)

    return args


def audit_normal(table: pd.DataFrame | str | bytes | None = None, *more: Any) -> Case:
    def args(place: Path, folder: Path) -> tuple[Any, ...]:
        path, out = given(table, place, folder, ".csv"), folder / "out" / "audit.json"
        return ("audit", path, "--target", "loss", "--out", out, *(more or ("--mean", "mu", "--std", "sigma")))

    return args


def randomize(table: pd.DataFrame | None = None, *more: Any) -> Case:
    return lambda place, folder: randomize_args(
        place, given(table, place, folder, ".csv"), folder / "out" / "out.csv", *more
    )


def given(table: pd.DataFrame | str | bytes | None, place: Path, folder: Path, ending: str) -> Path:
    path = folder / f"given{ending}"
    if table is None:
        return place / "people.csv"
    if isinstance(table, pd.DataFrame):
        return written(table, path)
    path.write_bytes(table.encode() if isinstance(table, str) else table)
    return path


def few(columns: str) -> pd.DataFrame:
    return TABLE.drop(columns=columns.split())


GARBAGE = np.random.default_rng(3).bytes(2000)
DISCRETE = changed("loss", np.arange(ROWS) % 7 * 1.0)
ATOM = changed("loss", 15.0, slice(0, 30))
TWICE = "loss,age,age\n1,2,3\n"

BAD: dict[str, tuple[Case, tuple[str, ...]]] = {
    "fit: no such table": (lambda place, folder: fit()(place, folder)[:1] + (folder / "no.csv", "--target", "loss", "--out", folder / "out" / "model"), ("no.csv", "no such path")),
}
