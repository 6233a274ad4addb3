"""The command: what goes in comes out, and bad input is one line and exit code 2."""

import json
import os
import re
import shlex
import shutil
import sys

import numpy as np
import pandas as pd
import pytest

from command_outcome import KEY, contents, key_file, predict_args, written
from evenhand import (
    BoostedDistributionRegressor,
    Forecast,
    ForecastColumns,
    MixtureMLPRegressor,
    Outcomes,
    RandomizedRegressor,
    RecalibratedRegressor,
    audit,
    load,
    randomize,
    save,
    store,
)
from evenhand._format import at_most
from evenhand.audits import Audit
from evenhand.draws import KeyedDraws

ROWS = 200
NORMAL = ("--forecast", "mean=mu,std=sigma")
LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
QUANTILES = [f"q{level}" for level in LEVELS]


def make_table():
    """A table with numbers, text, dates and missing values, and a forecast of its outcome."""
    random = np.random.default_rng(11)
    income = random.normal(50, 10, ROWS).round(2)
    table = pd.DataFrame(
        {
            "id": np.arange(101, 101 + ROWS),
            "income": income,
            "job": random.choice(["cook", "nurse", "clerk"], ROWS),
            "since": (
                pd.Timestamp("2015-01-01")
                + pd.to_timedelta(random.integers(0, 3000, ROWS), unit="D")
            ),
            "mu": 0.3 * income,
            "sigma": random.uniform(2.0, 4.0, ROWS),
        }
    )
    table["loss"] = (table["mu"] + table["sigma"] * random.normal(size=ROWS)).round(4)
    table.loc[::23, "income"] = np.nan
    table.loc[7, "job"] = None
    return table


TABLE = make_table()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with tables, a key and a small model of the columns income, job and since."""
    folder = tmp_path_factory.mktemp("cli")
    written(TABLE, folder / "people.csv")
    written(TABLE, folder / "people.parquet")
    key_file(folder / "key", KEY + b"\n")
    base = MixtureMLPRegressor(n_members=2, hidden=(8,), max_steps=60, random_state=0)
    model = RandomizedRegressor(base, alpha=0.2, link="laplace")
    save(model.fit(TABLE[["income", "job", "since"]], TABLE["loss"]), folder / "model")
    return folder


def fit_args(place, *more):
    names = ("--target", "loss", "--id", "id", "--drop", "mu,sigma")
    return ("fit", place / "people.csv", *names, *more)


@pytest.mark.usefixtures("quick_training")
def test_the_better_model_by_held_out_crps_is_trained(place, tmp_path, evenhand):
    # a network of 20 steps has learned nothing yet
    asked = ("--seed", 0, "--model", "auto", "--out", tmp_path / "model")
    fitted = evenhand(*fit_args(place, *asked)).done()
    pattern = r"CRPS of (\d+) held-out rows: network ([\d.]+), boosted ([\d.]+); boosted is trained"
    found = re.search(pattern, fitted.err)
    assert int(found[1]) == ROWS // 4
    assert float(found[3]) < float(found[2])
    assert isinstance(load(tmp_path / "model"), BoostedDistributionRegressor)


@pytest.mark.parametrize("missing", [("torch",), ("torch", "lightgbm")])
def test_without_torch_trees_are_trained_and_named(missing, place, tmp_path, evenhand, monkeypatch):
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    fitted = evenhand(*fit_args(place, "--out", tmp_path / "model", "--seed", 0)).done()
    trained = "boosted trees are" if missing == ("torch",) else "scikit-learn's trees are"
    assert f"not installed: {trained} trained; networks need: pip install" in fitted.err
    y = TABLE["loss"].to_numpy()
    crps = load(tmp_path / "model").forecast(TABLE[["income", "job", "since"]]).crps(y)
    # that of one distribution for everybody is half the mean difference
    assert crps.mean() < 0.8 * np.abs(y[:, None] - y).mean() / 2


@pytest.mark.usefixtures("quick_training")
def test_fit_predict_and_audit(place, tmp_path, evenhand):
    # the demo's test is the training in a process of its own
    model, out = tmp_path / "model", tmp_path / "out.csv"
    fitted = evenhand(*fit_args(place, "--out", model, "--seed", 0))
    assert (fitted.code, fitted.out) == (0, "")
    trained, report = fitted.err.splitlines()
    wanted = f"trained on {ROWS} rows and 3 columns with seed 0; no draw; model written to {model}"
    assert trained == (wanted)
    assert report.startswith("no rows were held out: run evenhand audit OTHER --target loss")
    assert list(load(model).feature_names_in_) == ["income", "job", "since"]
    asked = ("--forecast", model, "--id", "id", "--out", out)
    made = evenhand("predict", place / "people.parquet", *asked)
    told = f"{ROWS} forecasts written to {out}\nan audit reads them by --forecast quantiles=q\n"
    assert (made.code, made.out, made.err) == (0, "", told)
    forecasts = pd.read_csv(out)
    assert list(forecasts.columns) == ["id", "mean", *QUANTILES]
    assert forecasts["id"].tolist() == TABLE["id"].tolist()
    table = ("--forecast", model, "--target", "loss", "--json", "--groups", "job")
    audited = evenhand("audit", place / "people.csv", *table)
    assert (audited.code, audited.err) == (0, "")
    found = json.loads(audited.out)
    assert found["name"] == "model"
    assert {"job = cook", "job missing"} < {row["group"] for row in found["groups"]}


def test_a_fitted_model_is_certified_and_audited_on_other_rows(
    place, tmp_path, evenhand, monkeypatch
):
    written = []
    monkeypatch.setattr(Audit, "to_html", lambda found: written.append(found) or "")
    model, out = tmp_path / "first model", tmp_path / "proven"
    fit = fit_args(place, "--model", "boosted", "--seed", 0, "--out")
    assert evenhand(*fit, model).code == 0
    given = (place / "people.csv", "--target", "loss", "--id", "id", "--forecast", model)
    goal = ("--seed", 3, "--out", out, "--goal", 0.4, "--confidence", 0.9)
    args = ("randomize", *given, *goal)
    assert evenhand(*args).code == 0
    (found,) = written
    assert (found.name, found.n_samples, found.n_draws) == ("first model", ROWS, 64)
    # one number for one statement: what is proven whatever was chosen
    assert f"at most {at_most(found.certificate.group_error(0.2))} points" in found.caveat
    proof = json.loads((out / "certificate.json").read_text())
    assert (proof["n_certifying"], proof["n_learning"]) == (ROWS, 0)
    assert found.provenance["model"]["sha256"] == proof["model_sha256"]
    assert found.provenance["data"] == proof["data"]
    assert found.provenance["command"] == shlex.join(["evenhand", *map(str, args)])
    refused = evenhand(*args[:-4], "--goal", 0.1)
    assert "cannot be certified for groups of 20% of people on 200 rows" in refused.err
    assert (refused.code, proof) == (2, json.loads((out / "certificate.json").read_text()))
    # a model without a certificate does not keep that of the model which it replaces
    assert evenhand(*fit, out).code == 0
    assert sorted(os.listdir(out)) == sorted(os.listdir(model))


def test_the_written_forecasts_are_those_of_the_model(place, tmp_path, evenhand):
    out = tmp_path / "out.parquet"
    assert evenhand(*predict_args(place, place / "people.csv", out, "--moments")).code == 0
    found = pd.read_parquet(out)
    moments = ["served_mean", "served_std"]
    assert list(found.columns) == ["id", "r", "mean", *QUANTILES, *moments, "context", "key"]
    r = KeyedDraws(KEY)(TABLE["id"])
    model, rows = load(place / "model"), TABLE[["income", "job", "since"]]
    forecast = model.forecast(rows, r)
    np.testing.assert_array_equal(found["r"], r)
    np.testing.assert_allclose(found["mean"], model.base_forecast(rows).mean(), rtol=1e-9)
    np.testing.assert_allclose(found[QUANTILES], forecast.ppf(LEVELS), rtol=1e-9)
    np.testing.assert_allclose(found["served_mean"], forecast.mean(), rtol=1e-9)
    np.testing.assert_allclose(found["served_std"], forecast.std(), rtol=1e-9)
    assert (np.diff(found[QUANTILES], axis=-1) > 0).all()


def test_audit_of_another_models_forecasts(place, tmp_path, evenhand):
    args = ("audit", place / "people.csv", "--target", "loss", *NORMAL, "--groups", "job,since")
    args += ("--id", "id")
    about = ("--about", "unit=mg per week", "--about", "formula = a=b")
    shown = evenhand(*args, "--json", "--seed", 4, *about)
    assert (shown.code, shown.err) == (0, "")
    found = json.loads(shown.out, parse_constant=pytest.fail)
    assert found["about"] == {"unit": "mg per week", "formula": "a=b"}
    forecast = Forecast.from_normal(TABLE["mu"], TABLE["sigma"])
    again = audit(forecast, y=TABLE["loss"], random_state=4)
    scores = {row["measure"]: row["value"] for row in found["scores"]}
    for measure in ("log score", "CRPS", "90% coverage", "average error"):
        assert scores[measure] == pytest.approx(again.score(measure), rel=1e-9)
    # the forecasts are the truth: 5 standard errors of a share of 0.9 among 200 are 0.106
    assert scores["90% coverage"] == pytest.approx(0.9, abs=0.106)
    assert sum(row["n"] for row in found["groups"] if row["group"].startswith("job")) == ROWS
    assert found["is_randomized"] is False
    # without the option the main findings alone
    report = tmp_path / "report.md"
    text, brief = evenhand(*args, "--full", "--out", report).out, evenhand(*args).out
    assert "job = cook" in text
    assert f"**{found['status']['verdict'].upper()}**" in report.read_text()
    assert brief.startswith("Audit of people.csv: 200 rows, ")
    assert len(brief.splitlines()) <= 24 < len(text.splitlines())


def test_weights_reach_what_is_fitted_repaired_and_certified(place, tmp_path, evenhand):
    weights = np.where(np.arange(ROWS) % 2, 2.0, 3.0)
    table = written(TABLE.assign(w=weights), tmp_path / "weighted.csv")
    given = ("--target", "loss", "--seed", 0, "--weight", "w", "--out")
    columns, y = ForecastColumns("mu", "sigma"), TABLE["loss"]
    forecasts = TABLE[["mu", "sigma"]]
    outcomes = Outcomes(y, weight=weights, largest_weight=3)
    plain = ("--model", "boosted", "--drop", "id,mu,sigma")
    boosted = BoostedDistributionRegressor(random_state=0)
    # a column of weights is no feature
    features = TABLE[["income", "job", "since"]]
    chosen = randomize(columns, forecasts, outcomes, goal=0.45, random_state=0)
    goal = ("--goal", 0.45, "--largest-weight", 3)
    for args, expected in (
        (("fit", table, *plain), boosted.fit(features, y, sample_weight=weights)),
        (
            ("recalibrate", table, *NORMAL),
            RecalibratedRegressor(columns, random_state=0).fit(forecasts, outcomes),
        ),
        (("randomize", table, *NORMAL, *goal), chosen.model),
    ):
        out = tmp_path / str(args[0])
        assert evenhand(*args, *given, out).code == 0
        rows = features if args[0] == "fit" else forecasts
        ours, theirs = (one.forecast(rows, 0.3).ppf(0.3) for one in (load(out), expected))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)
    proof = json.loads((tmp_path / "randomize" / "certificate.json").read_text())
    assert proof["group_error"] == pytest.approx(chosen.group_error, rel=1e-9)
    # of a design with larger weights, fewer rows are left
    larger = ("randomize", table, *NORMAL, "--largest-weight", 40, *given, tmp_path / "no")
    assert "of 200 weighted rows " in evenhand(*larger).complaint()
    audited = ("audit", table, "--target", "loss", *NORMAL, "--json")
    found = json.loads(evenhand(*audited, "--weight", "w").done().out)
    scores = {row["measure"]: row["value"] for row in found["scores"]}
    again = audit(Forecast.from_normal(TABLE["mu"], TABLE["sigma"]), y=Outcomes(y, weight=weights))
    assert scores["90% coverage"] == pytest.approx(again.score("90% coverage"), rel=1e-9)
    assert not any("w" in (row["features"] or ()) for row in found["scan"])
    assert "give --weight" in evenhand(*audited, "--largest-weight", 3).complaint()
    written(TABLE.assign(w=-weights), tmp_path / "weighted.csv")
    told = "weighted.csv: column 'w', row 1 must be at least 0, got -3"
    assert told in evenhand(*audited, "--weight", "w").complaint()


def test_a_gate_fails_with_code_one_and_says_by_how_much(place, tmp_path, evenhand):
    args = ("audit", place / "people.csv", *NORMAL, "--target", "loss", "--id", "id", "--json")
    report = tmp_path / "audit.json"
    passed = evenhand(
        *args, "--fail-if", "groups_beyond_tolerance > 99", "--fail-if", "coverage(0.8, 1) < 0.01"
    )
    assert (passed.code, passed.err) == (0, "")
    # the verdict does not depend on conditions, nor the exit code on the verdict
    verdict = json.loads(passed.out)["status"]["verdict"]
    assert json.loads(evenhand(*args).out)["status"]["verdict"] == verdict
    gates = ("--fail-if", "not-proven", "--fail-if", "coverage(0.8, 1) < 0.99", "--out", report)
    failed = evenhand(*args, *gates)
    assert failed.code == 1
    lines = failed.err.splitlines()
    assert lines[0] == f"audit written to {report}"
    assert lines[1] == "failed: the condition of --fail-if is true: not-proven"
    condition = "coverage(0.8, 1) < 0.99"
    assert lines[2].startswith(f"failed: the condition of --fail-if is true: {condition} (it is 0.")


def test_a_gate_that_cannot_be_judged_leaves_the_report_and_names_another(
    place, tmp_path, evenhand
):
    gate = "coverage(0.8,0.2)<0.5"
    words = (
        "all people whom an interval misses may be one group",
        "every group of 20%",
        "a level above 0.8",
    )
    out = tmp_path / "audit.json"
    table = ("audit", place / "people.csv", "--target", "loss", *NORMAL)
    args = (*table, "--features", "job", "--out", out, "--json")
    shown = evenhand(*args, "--fail-if", "not-proven", "--fail-if", gate)
    assert shown.code == 2
    assert json.loads(out.read_text()) == json.loads(shown.out)
    report, failed, refused = shown.err.splitlines()
    assert report == f"audit written to {out}"
    assert failed == "failed: the condition of --fail-if is true: not-proven"
    assert refused.startswith(f"error: condition {gate!r} cannot be evaluated: ")
    for word in words:
        assert word in refused


def searched(shown):
    (note,) = [
        note
        for note in json.loads(shown.out)["notes"]
        if note["text"].startswith("groups were searched in ")
    ]
    return str(note["text"]).removeprefix("groups were searched in ")


def test_neither_outcomes_nor_ids_nor_the_forecasts_are_searched_unasked(tmp_path, evenhand):
    other = written(
        TABLE.assign(their_mu=TABLE["mu"] + 1, person=TABLE["id"] + 5), tmp_path / "t.csv"
    )
    args = ("audit", other, "--target", "loss", *NORMAL, "--json")
    ids = ("--id", "id", "--person", "person")
    assert searched(evenhand(*args, *ids)) == "4 features: income, job, since, their_mu"
    assert searched(evenhand(*args, *ids, "--features", "job,mu,job")) == "2 features: job, mu"


def bad_args(line, table, place, folder):
    """Return a call with options of a line; results would go to `folder / "out"`."""
    command, *more = shlex.split(line.format(place=place, folder=folder))
    out = folder / "out"
    calls = {
        "fit": ("fit", table, "--target", "loss", "--out", out / "model"),
        "predict": predict_args(place, table, out / "out.csv"),
        "randomize": ("randomize", table, "--target", "loss", *NORMAL, "--out", out / "model"),
        "audit": ("audit", table, "--forecast", place / "model", "--target", "loss"),
        "audit-alone": ("audit", table, "--target", "loss"),
        "audit-nothing": ("audit", "none.csv", "--target", "loss", *NORMAL),
        "demo": ("demo",),
    }
    report = ("--out", out / "audit.json") if command.startswith("audit") else ()
    return (*calls[command], *report, *more)


OPTIONS = [
    ("fit --target lost", "people.csv", "'lost'", "'loss'?"),
    ("fit --out {place}/key", "key", "folder"),
    ("predict --id person", "people.csv", "'person'"),
    ("predict --levels 5,95", "--levels", "[5.0, 95.0]", "0.9, not 90"),
    ("predict --key-file {folder}/none", "none", "key file"),
    ("predict --key-file {place}/short", "got 15", "16", "secrets"),
    ("predict --context \udcff", "--context"),
    ("predict --out {folder}", "end in"),
    ("audit --groups job,sex", "people.csv", "'sex'"),
    ("audit --event late", "people.csv", "'late'"),
    ("audit --out {folder}/o.pdf", "o.pdf", ".html", ".json"),
    ("audit --out {folder}/no/a.json", "no", "folder"),
    ("audit --groups job,loss", "--groups", "'loss'", "--target"),
    ("audit --features income,loss", "--features", "'loss'", "--target"),
    ("audit --fail-if error", "--fail-if", "'error'", "write for"),
    ("audit --fail-if 'certified_bias(0.2) > 5'", "limit", "5", "fraction"),
    ("audit-alone --seed 0", "--forecast"),
    ("audit-alone --forecast mean=mu,std=sigma,sort_quantiles=yes", "without quantiles="),
    ("audit --id id --features id,income", "'id'", "--id"),
    # before the table is read
    ("audit-nothing --about unit", "--about must have the form KEY=VALUE, got 'unit'; write"),
    ("audit-nothing --about 'unit= '", "--about must have the form KEY=VALUE, got 'unit= '"),
    ("audit-nothing --about a=1 --about a=2", "--about repeats the key 'a'; give each key once"),
    ("demo --out {place}/key", "key", "folder"),
]
"""Wrong options, and words of the message."""

CELLS = [
    ("fit", "loss", "much", 4, "'much'"),
    ("fit", "loss", np.inf, 6, "inf"),
    ("predict", "income", "much", 9, "'much'"),
    ("predict", "id", None, 5, "no id"),
    ("predict", "id", "  ", 5, "empty"),
    ("randomize", "mu", None, 3, "missing"),
    ("audit", "income", np.inf, 6, "inf"),
    ("audit --id id", "id", 101, 3, "repeats the id 101"),
]
"""A wrong value in a row, counted from 1, or in a whole column, and words of the message."""

FILES = [
    ("fit", "", ".csv", ("empty",)),
    ("fit", "loss,age,age\n1,2,3\n", ".csv", ("'age'", "2 times")),
    ("fit", np.random.default_rng(3).bytes(2000), ".parquet", ("readable",)),
    ("fit", TABLE[:1], ".csv", ("'loss'", "1 row;", "20")),
    ("predict", "id,income,job,since\n", ".csv", ("no rows", "at least one")),
    ("predict", TABLE.drop(columns=["job", "income"]), ".csv", ("no column 'income'",)),
    ("predict", TABLE.assign(since="soon"), ".csv", ("'since'", "row 1", "'soon'")),
    ("predict", TABLE.assign(id=TABLE["id"] + 0.5), ".parquet", ("'id'", "row 1", "101.5")),
    ("predict --id q0.5", TABLE.rename(columns={"id": "q0.5"}), ".csv", ("'q0.5'", "rename")),
]
"""Tables that cannot be used, and words of the message."""


def flipped(folder):
    path = next(folder.glob("*.safetensors"))
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


MODELS = [(flipped, ("damaged", ".safetensors")), (shutil.rmtree, ("no such model folder",))]
"""Damages of a model folder, and words of the message."""


@pytest.fixture
def refuses(place, tmp_path, evenhand):
    old = {"out.csv": b"old forecasts", "audit.json": b"old audit"}
    shutil.copytree(place / "model", tmp_path / "out" / "model")
    for file, text in old.items():
        (tmp_path / "out" / file).write_bytes(text)
    (place / "short").write_bytes(b"fifteen letters\n")

    def check(args, *words):
        before = contents(tmp_path), contents(place)
        line = evenhand(*args).complaint()
        for word in words:
            assert word in line
        assert (contents(tmp_path), contents(place)) == before
        assert not (tmp_path / "no").is_dir()

    return check


def test_wrong_options_are_one_line_and_leave_everything_as_it_was(place, tmp_path, refuses):
    for line, *words in OPTIONS:
        refuses(bad_args(line, place / "people.csv", place, tmp_path), *words)


def test_wrong_cells_are_named_with_file_column_and_row(place, tmp_path, refuses):
    for line, column, value, row, words in CELLS:
        table = TABLE.astype({column: object})
        table.loc[slice(None) if row is None else row - 1, column] = value
        where = () if row is None or words == "empty" else (f"row {row}",)
        args = bad_args(line, written(table, tmp_path / "given.csv"), place, tmp_path)
        refuses(args, "given.csv", f"'{column}'", *where, words)


def test_files_that_are_no_tables_are_named(place, tmp_path, refuses):
    for line, table, ending, words in FILES:
        path = tmp_path / f"given{ending}"
        if isinstance(table, pd.DataFrame):
            written(table, path)
        else:
            path.write_bytes(table if isinstance(table, bytes) else table.encode())
        named = () if "--id q0.5" in line else (path.name,)
        refuses(bad_args(line, path, place, tmp_path), *named, *words)


def test_damaged_models_are_named(place, tmp_path, refuses):
    table = ("--target", "loss")
    for damage, words in MODELS:
        shutil.copytree(place / "model", tmp_path / "damaged", dirs_exist_ok=True)
        damage(tmp_path / "damaged")
        model = ("--forecast", tmp_path / "damaged")
        refuses(("audit", place / "people.csv", *model, *table), "damaged", *words)
    swapped = ("audit", place / "model", "--forecast", place / "people.csv", *table)
    refuses(swapped, "people.csv")
    refuses(("fit", "none.csv", *table, "--out", tmp_path / "no"), "none.csv")


BLAME = "this is a bug of evenhand, not a problem of your data; run with EVENHAND_DEBUG=1 for the"
FAULTS = [
    (ValueError("odd\nsize"), 70, f"ValueError: odd size; {BLAME} traceback"),
    (AssertionError(), 70, f"AssertionError; {BLAME} traceback"),
    # typer's own exit code for this one is 1
    (EOFError("short"), 70, f"EOFError: short; {BLAME} traceback"),
    (KeyboardInterrupt(), 130, "interrupted"),
    (MemoryError(), 2, "not enough memory for the table; write it as a folder of parquet parts"),
]


@pytest.mark.parametrize(("error", "code", "said"), FAULTS)
def test_a_fault_of_ours_is_one_line_with_a_code_that_no_gate_has(
    error, code, said, place, evenhand, monkeypatch
):
    def load(folder):
        raise error

    monkeypatch.delenv("EVENHAND_DEBUG", raising=False)
    monkeypatch.setattr(store, "load", load)
    model = ("--forecast", place / "model")
    args = ("audit", place / "people.csv", *model, "--target", "loss", "--fail-if", "problem")
    shown = evenhand(*args)
    assert (shown.code, shown.out, shown.err.count("\n")) == (code, "", 1)
    assert shown.err.startswith(f"error: {said}")
    if code == 70:
        monkeypatch.setenv("EVENHAND_DEBUG", "1")
        again = evenhand(*args)
        assert again.code == 70
        assert again.err.startswith("Traceback (most recent call last):\n")
        assert again.err.endswith(shown.err)


def test_a_disk_that_is_full_leaves_the_old_output(place, tmp_path, evenhand, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    (tmp_path / "out.csv").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    complaint = evenhand(
        *predict_args(place, place / "people.csv", tmp_path / "out.csv")
    ).complaint()
    assert "out.csv: No space left on device" in complaint
    assert contents(tmp_path) == {"out.csv": b"old"}
