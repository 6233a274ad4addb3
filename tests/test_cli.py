"""The command: what goes in comes out, and bad input is one line and exit code 2."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import re
import shlex
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import evenhand as package
from command_outcome import Command, Outcome
from evenhand import Forecast, MixtureMLPRegressor, RandomizedRegressor, audit, load, save, store
from evenhand._format import at_most
from evenhand.audits import Audit
from evenhand.cli import fitting
from evenhand.draws import KeyedDraws
from forked_command import NO_READER, Forks

ROWS = 200
KEY = b"a secret of enough bytes"
FINGERPRINT = hashlib.blake2b(key=KEY, digest_size=8, person=b"evenhand key").digest().hex("-", 2)
LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
QUANTILES = [f"q{level}" for level in LEVELS]


def make_table() -> pd.DataFrame:
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


def process(*args: Any, **environment: str) -> Outcome:
    """Call the command in a process of its own."""
    script = shutil.which("evenhand", path=sysconfig.get_path("scripts"))
    assert script is not None, "install the package, so that the command is there"
    run = subprocess.run(
        [script, *map(str, args)], check=False, capture_output=True, env=os.environ | environment
    )
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
    (folder / "key").chmod(0o600)
    base = MixtureMLPRegressor(n_members=2, hidden=(8,), max_steps=60, random_state=0)
    model = RandomizedRegressor(base, alpha=0.2, link="laplace")
    save(model.fit(TABLE[["income", "job", "since"]], TABLE["loss"]), folder / "model")
    return folder


def predict_args(place: Path, table: Path, out: Path, *more: Any) -> tuple[Any, ...]:
    return (
        "predict",
        place / "model",
        table,
        "--id",
        "id",
        "--key-file",
        place / "key",
        "--out",
        out,
        *more,
    )


def randomize_args(place: Path, table: Path, out: Path, *more: Any) -> tuple[Any, ...]:
    names = ("--mean", "mu", "--std", "sigma", "--id", "id", "--key-file", place / "key")
    return ("randomize", table, *names, "--out", out, *more)


# The round trip.


@pytest.mark.usefixtures("quick_training")
def test_fit_predict_and_audit_where_predictions_come_from_another_process(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    # the demo's test is the training in a process of its own
    model, out = tmp_path / "model", tmp_path / "out.csv"
    drop = ("--id", "id", "--drop", "mu, sigma")
    fitted = evenhand(
        "fit", place / "people.csv", "--target", "loss", *drop, "--out", model, "--seed", 0
    )
    assert (fitted.code, fitted.out) == (0, "")
    trained, report = fitted.err.splitlines()
    assert trained == f"trained on {ROWS} rows and 3 columns with seed 0; model written to {model}"
    assert report.startswith("no report was written because no rows were held out")
    assert not list(tmp_path.rglob("*.html"))
    assert list(load(model).feature_names_in_) == ["income", "job", "since"]

    made = process("predict", model, place / "people.parquet", "--id", "id", "--out", out)
    told = f"{ROWS} forecasts written to {out}\n"
    assert (made.code, made.out, made.err) == (0, "", told)
    forecasts = pd.read_csv(out)
    assert list(forecasts.columns) == ["id", "mean", *QUANTILES]
    assert forecasts["id"].tolist() == TABLE["id"].tolist()

    audited = evenhand(
        "audit", model, place / "people.csv", "--target", "loss", "--json", "--groups", "job"
    )
    assert (audited.code, audited.err) == (0, "")
    found = json.loads(audited.out)
    assert found["name"] == "model"
    assert {"job = cook", "job missing"} < {row["group"] for row in found["groups"]}


@pytest.mark.usefixtures("quick_training")
def test_fit_finds_the_least_randomization_that_is_certified(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    args = (
        "fit",
        place / "people.csv",
        "--target",
        "loss",
        "--id",
        "id",
        "--drop",
        "mu,sigma",
        "--seed",
        0,
    )
    fitted = evenhand(*args, "--out", tmp_path / "model", "--max-group-error", 0.4)
    assert fitted.code == 0
    assert "In every group of at least 20% of people" in fitted.out
    assert "off by at most 40.0 points" in fitted.out
    assert "(60 people; trained on 140 other rows)" in fitted.out
    assert (
        "trained on 140 rows and 3 columns with seed 0, certified on 60 other people; model and"
        in fitted.err
    )
    alpha = float(fitted.out.partition("alpha = ")[2].partition(".\n")[0])
    assert load(tmp_path / "model").alpha == pytest.approx(alpha, rel=0.01)

    proof = json.loads((tmp_path / "model" / "certificate.json").read_text())
    # a promise that costs more than the features are worth is reported first
    first, second = fitted.out.splitlines()[:2]
    assert first.startswith("At this promise the forecast is worse than one that ignores every")
    assert proof["statement"] == second
    assert proof["alpha"] == load(tmp_path / "model").alpha
    assert (proof["link"], proof["n_certifying"], proof["n_learning"]) == ("entropic", 60, 140)
    assert (proof["max_group_error"], proof["group_mass"], proof["confidence"]) == (0.4, 0.2, 0.95)
    assert (proof["max_wider"], proof["max_price"]) == (None, None)
    assert f"Price: {proof['price']:.2f} nats" in fitted.out
    assert 0 <= proof["group_error"] <= 0.4
    assert proof["bound"] in ("sharp", "pathwise")
    assert 0 <= proof["coverage_80"][0] < proof["coverage_80"][1] <= 1
    # 60 people are too few for a search
    assert proof["learned_group"] is None
    scores = {row.pop("forecaster"): row for row in proof["comparison"]}
    assert list(scores) == ["without features", "as it is", "recalibrated", "randomized"]
    assert all(row["width"] > 0 for row in scores.values())
    assert scores["as it is"]["certified_group_error"] is None
    assert "without features" in fitted.out.splitlines()[-4]
    assert proof["certified_on"].keys() == {"n", "named_by", "salt", "sha256"}
    assert (proof["certified_on"]["n"], proof["certified_on"]["named_by"]) == (60, "ids")
    assert proof["written_by"].startswith("evenhand ")
    assert (
        proof["model_sha256"]
        == json.loads((tmp_path / "model" / "model.json").read_text())["sha256"]
    )
    page = tmp_path / "model" / "report.html"
    assert fitted.err.splitlines()[-1] == f"audit of the certifying people written to {page}"
    assert "<!doctype html>" in page.read_text()[:200].lower()
    # a model without a certificate does not keep that of the model which it replaces
    assert evenhand(*args, "--out", tmp_path / "model", "--alpha", 0.2).code == 0
    assert not (tmp_path / "model" / "certificate.json").exists()
    assert not page.exists()

    refused = evenhand(*args, "--out", tmp_path / "other", "--max-group-error", 0.1)
    assert "cannot be certified for groups of 20% of people on 60 rows" in refused.complaint()
    both = evenhand(*args, "--out", tmp_path / "other", "--max-group-error", 0.4, "--alpha", 0.1)
    assert "--alpha or --max-group-error, not both" in both.complaint()
    assert not (tmp_path / "other").exists()


@pytest.mark.usefixtures("quick_training")
def test_fit_audits_the_rows_that_it_certifies_on(
    place: Path, tmp_path: Path, evenhand: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Audit] = []
    monkeypatch.setattr(Audit, "to_html", lambda found: written.append(found) or "")
    certifying: list[int] = []
    certified = fitting.certificate_of
    monkeypatch.setattr(
        fitting,
        "certificate_of",
        lambda chosen, people: certifying.extend(chosen.certifying) or certified(chosen, people),
    )
    out = tmp_path / "first model"
    args = (
        "fit",
        place / "people.csv",
        "--target",
        "loss",
        "--id",
        "id",
        "--drop",
        "mu,sigma",
        "--seed",
        3,
    )
    assert evenhand(*args, "--out", out, "--max-group-error", 0.4, "--confidence", 0.9).code == 0
    (found,) = written
    assert (found.name, found.n_samples, found.n_draws) == ("first model", 60, 64)
    assert found.certificate is not None
    assert found.certificate.confidence == 0.9
    assert found.caveat is not None
    # one number for one statement: what is proven whatever was chosen
    assert f"at most {at_most(found.certificate.group_error(0.2))} points" in found.caveat
    assert "Alpha was chosen on these same people." in found.caveat
    assert (
        "40.0 points in every group of at least 20% of people, with 90% confidence" in found.caveat
    )
    proof = json.loads((out / "certificate.json").read_text())
    assert found.provenance["model"]["sha256"] == proof["model_sha256"]
    data = {"name": "people.csv", "sha256": digest(place / "people.csv"), "n_rows": ROWS}
    assert found.provenance["data"] == data
    command = shlex.join(
        ["evenhand", *map(str, args), "--out", str(out), "--max-group-error", "0.4"]
    )
    assert found.provenance["command"] == f"{command} --confidence 0.9"
    assert found.target == "loss"
    # its people are among those of the certificate, by their rows in the table
    assert set(found.learned_rows["row"]) < set(certifying)
    on = proof["certified_on"]
    assert store.ids_digest(TABLE["id"][certifying], on["salt"]) == on["sha256"]


@pytest.mark.usefixtures("quick_training")
def test_rows_that_cannot_be_audited_are_said_and_the_model_is_kept(
    place: Path, tmp_path: Path, evenhand: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*args: Any, **more: Any) -> None:
        raise package.InputError("y is 15 in 12.0% of the rows")

    monkeypatch.setattr("evenhand.audits.audit", refused)
    args = ("fit", place / "people.csv", "--target", "loss", "--drop", "mu,sigma,id", "--seed", 0)
    fitted = evenhand(*args, "--out", tmp_path / "model", "--max-group-error", 0.4)
    assert fitted.code == 0
    last = fitted.err.splitlines()[-1]
    assert last == "no report was written: y is 15 in 12.0% of the rows"
    assert 0 < load(tmp_path / "model").alpha < 1
    assert not (tmp_path / "model" / "report.html").exists()


@pytest.mark.usefixtures("quick_training")
def test_fit_certifies_as_much_as_a_limit_of_the_width_allows(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    args = ("fit", place / "people.csv", "--target", "loss", "--drop", "mu,sigma,id", "--seed", 0)
    fitted = evenhand(*args, "--out", tmp_path / "model", "--max-wider", 0.2, "--group-mass", 0.5)
    assert fitted.code == 0
    proof = json.loads((tmp_path / "model" / "certificate.json").read_text())
    assert (proof["max_wider"], proof["max_group_error"], proof["group_mass"]) == (0.2, None, 0.5)
    assert 0.19 < proof["wider"] <= 0.2
    assert "80% intervals at most 20% wider: alpha" in fitted.out
    assert "every group of at least 50% of people" in proof["statement"]
    refused = evenhand(*args, "--out", tmp_path / "other", "--max-price", -1)
    assert "--max-price must be a number above 0" in refused.complaint()


@pytest.mark.parametrize("option", ["--group-mass", "--confidence"])
def test_what_belongs_to_max_group_error_is_refused_without_it(
    option: str, place: Path, tmp_path: Path, evenhand: Command
) -> None:
    refused = evenhand(
        "fit", place / "people.csv", "--target", "loss", "--out", tmp_path / "model", option, 0.5
    )
    assert f"{option} 0.5 has no effect without --max-group-error" in refused.complaint()
    assert not (tmp_path / "model").exists()


@pytest.mark.usefixtures("quick_training")
def test_rows_of_one_person_certify_once(place: Path, tmp_path: Path, evenhand: Command) -> None:
    twice = TABLE.assign(id=[f"p{i // 2}" for i in range(ROWS)])
    written(twice, tmp_path / "twice.csv")
    args = (
        "fit",
        tmp_path / "twice.csv",
        "--target",
        "loss",
        "--cluster",
        "id",
        "--drop",
        "mu,sigma",
        "--seed",
        0,
    )
    fitted = evenhand(*args, "--out", tmp_path / "model", "--max-group-error", 0.45)
    assert fitted.code == 0
    # three in ten of 100 people; of the others both rows
    assert "(30 people; trained on 140 other rows)" in fitted.out
    assert (
        json.loads((tmp_path / "model" / "certificate.json").read_text())["certified_on"]["n"] == 30
    )


def test_ids_that_repeat_are_told(place: Path, tmp_path: Path, evenhand: Command) -> None:
    ids = [f"p{i}" for i in range(ROWS)]
    ids[5:8] = ["f"] * 3
    out = tmp_path / "out.csv"
    for rest, said in (([], ""), (["g", "g"], "; 2 ids are repeated in total")):
        ids[: len(rest)] = rest
        table = written(TABLE.assign(id=ids), tmp_path / "repeated.csv")
        for args in (predict_args(place, table, out), randomize_args(place, table, out)):
            done = evenhand(*args)
            assert done.code == 0
            where = "the first is in rows 6 and 7"
            told = f"warning: 3 rows have the id 'f' and share one draw; {where}{said}\n"
            assert told in done.err
    assert "warning" not in evenhand(*predict_args(place, place / "people.csv", out)).err


def test_bad_input_in_a_process_of_its_own_is_one_line_and_code_2(
    place: Path, tmp_path: Path
) -> None:
    refused = process("fit", place / "people.csv", "--target", "lost", "--out", tmp_path / "model")
    assert "people.csv" in refused.complaint()
    assert "did you mean 'loss'?" in refused.err
    assert list(tmp_path.iterdir()) == []


def test_a_usage_error_has_code_2(place: Path, tmp_path: Path, evenhand: Command) -> None:
    for args in (
        ("fit", place / "people.csv", "--out", tmp_path / "model"),
        (
            "fit",
            place / "people.csv",
            "--target",
            "loss",
            "--out",
            tmp_path / "model",
            "--alpha",
            "much",
        ),
        ("predict", place / "model"),
        ("audit", "--colour", "red"),
        ("forecast",),
    ):
        refused = evenhand(*args)
        assert (refused.code, refused.out) == (2, "")
        assert refused.err
    assert list(tmp_path.iterdir()) == []


def test_the_written_forecasts_are_those_of_the_model(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    assert evenhand(*predict_args(place, place / "people.csv", tmp_path / "out.parquet")).code == 0
    found = pd.read_parquet(tmp_path / "out.parquet")
    r = KeyedDraws(KEY)(TABLE["id"])
    model, rows = load(place / "model"), TABLE[["income", "job", "since"]]
    forecast = model.forecast(rows, r)
    np.testing.assert_array_equal(found["r"], r)
    np.testing.assert_allclose(found["mean"], model.base_forecast(rows).mean(), rtol=1e-9)
    np.testing.assert_allclose(found[QUANTILES], forecast.ppf(LEVELS), rtol=1e-9)
    assert (np.diff(found[QUANTILES], axis=-1) > 0).all()


def test_moments_are_those_of_the_forecast_at_the_draw_of_each_person(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    assert (
        evenhand(
            *predict_args(place, place / "people.csv", tmp_path / "out.parquet", "--moments")
        ).code
        == 0
    )
    found = pd.read_parquet(tmp_path / "out.parquet")
    assert list(found.columns) == [
        "id",
        "r",
        "mean",
        *QUANTILES,
        "served_mean",
        "served_std",
        "context",
        "key",
    ]
    forecast = load(place / "model").forecast(
        TABLE[["income", "job", "since"]], KeyedDraws(KEY)(TABLE["id"])
    )
    np.testing.assert_allclose(found["served_mean"], forecast.mean(), rtol=1e-9)
    np.testing.assert_allclose(found["served_std"], forecast.std(), rtol=1e-9)
    # a person alone: the same, whatever the draws of the others
    TABLE[50:51].to_csv(tmp_path / "one.csv", index=False)
    assert (
        evenhand(
            *predict_args(place, tmp_path / "one.csv", tmp_path / "one.parquet", "--moments")
        ).code
        == 0
    )
    alone = pd.read_parquet(tmp_path / "one.parquet")
    texts = ["id", "context", "key"]
    np.testing.assert_allclose(
        alone.drop(columns=texts), found[50:51].drop(columns=texts), rtol=1e-9
    )


def test_levels_are_columns_named_by_all_their_digits(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    levels = ("--levels", "0.5, 0.9999999,0.99999991")
    assert (
        evenhand(*predict_args(place, place / "people.csv", tmp_path / "out.csv", *levels)).code
        == 0
    )
    found = pd.read_csv(tmp_path / "out.csv")
    assert list(found.columns[3:-2]) == ["q0.5", "q0.9999999", "q0.99999991"]
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
        found = (
            pd.read_parquet(out)
            if out.suffix == ".parquet"
            else pd.read_csv(out, float_precision="round_trip")
        )
        assert set(found["key"]) == {FINGERPRINT}
        found = (
            found.assign(id=found["id"].astype(str))
            .set_index("id")
            .drop(columns=["context", "key"])
        )
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


def test_another_context_or_key_gives_other_draws(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    (tmp_path / "key").write_bytes(KEY[::-1])
    table, out = place / "people.csv", tmp_path / "out.csv"
    draws = []
    for more in (
        (),
        ("--context", "2026-11"),
        ("--context", "2026-12"),
        ("--key-file", tmp_path / "key"),
    ):
        assert evenhand(*predict_args(place, table, out, *more)).code == 0
        draws.append(pd.read_csv(out, float_precision="round_trip")["r"].to_numpy())
    np.testing.assert_array_equal(draws[1], KeyedDraws(KEY, "2026-11")(TABLE["id"]))
    for i, first in enumerate(draws):
        for second in draws[i + 1 :]:
            # independent draws of 200 people: beyond 0.35 is 5 standard errors
            assert abs(np.corrcoef(first, second)[0, 1]) < 0.35


def test_line_ends_of_the_key_file_do_not_count(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    for ending in (b"", b"\n", b"\r\n"):
        (tmp_path / "key").write_bytes(KEY + ending)
        more = ("--key-file", tmp_path / "key")
        assert (
            evenhand(*predict_args(place, place / "people.csv", tmp_path / "out.csv", *more)).code
            == 0
        )
        found = pd.read_csv(tmp_path / "out.csv", float_precision="round_trip")
        np.testing.assert_array_equal(found["r"], KeyedDraws(KEY)(TABLE["id"]))


# Another model's forecasts.


def test_randomize_at_alpha_1_leaves_the_normal_forecasts_as_they_are(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    out = tmp_path / "out.csv"
    made = evenhand(*randomize_args(place, place / "people.csv", out, "--alpha", 1, "--moments"))
    told = f"{ROWS} randomized forecasts written to {out}; fingerprint of the key: {FINGERPRINT}\n"
    assert (made.code, made.out, made.err) == (0, "", told)
    found = pd.read_csv(out)
    mean, std = TABLE[["mu"]].to_numpy(), TABLE[["sigma"]].to_numpy()
    np.testing.assert_allclose(found[QUANTILES], mean + std * stats.norm.ppf(LEVELS), rtol=1e-6)
    np.testing.assert_allclose(found["mean"], TABLE["mu"], rtol=1e-12)
    # the moments of what is served come from a table of quantiles
    np.testing.assert_allclose(found["served_mean"], TABLE["mu"], rtol=1e-6)
    np.testing.assert_allclose(found["served_std"], TABLE["sigma"], rtol=1e-3)


@pytest.mark.parametrize("link", ["entropic", "laplace", "gaussian"])
def test_randomize_is_the_link_around_the_normal_forecast(
    link: str, place: Path, tmp_path: Path, evenhand: Command
) -> None:
    more = ("--alpha", 0.2, "--link", link, "--context", "trial")
    assert (
        evenhand(*randomize_args(place, place / "people.parquet", tmp_path / "out.csv", *more)).code
        == 0
    )
    found = pd.read_csv(tmp_path / "out.csv")
    forecast = Forecast.from_normal(TABLE["mu"], TABLE["sigma"])
    expected = forecast.randomized(0.2, link, KeyedDraws(KEY, "trial")(TABLE["id"]))
    np.testing.assert_allclose(found[QUANTILES], expected.ppf(LEVELS), rtol=1e-9)
    np.testing.assert_allclose(found["mean"], TABLE["mu"], rtol=1e-12)  # no draw moves it
    # a small draw says that outcomes are high
    assert np.corrcoef(found["r"], (found["q0.5"] - TABLE["mu"]) / TABLE["sigma"])[0, 1] < -0.9


def test_audit_of_another_models_forecasts(place: Path, evenhand: Command) -> None:
    args = (
        "audit",
        place / "people.csv",
        "--target",
        "loss",
        "--mean",
        "mu",
        "--std",
        "sigma",
        "--groups",
        "job,since",
    )
    shown = evenhand(*args, "--json", "--seed", 4)
    assert (shown.code, shown.err) == (0, "")
    found = json.loads(shown.out, parse_constant=pytest.fail)
    again = audit(
        Forecast.from_normal(TABLE["mu"], TABLE["sigma"]), y=TABLE["loss"], random_state=4
    )
    scores = {row["measure"]: row["value"] for row in found["scores"]}
    for measure in ("log score", "CRPS", "90% coverage", "average error"):
        assert scores[measure] == pytest.approx(again.score(measure), rel=1e-9)
    # the forecasts are the truth: 5 standard errors of a share of 0.9 among 200 are 0.106
    assert scores["90% coverage"] == pytest.approx(0.9, abs=0.106)
    assert sum(row["n"] for row in found["groups"] if row["group"].startswith("job")) == ROWS
    assert found["is_randomized"] is False
    text = evenhand(*args, "--full")
    assert (text.code, text.err) == (0, "")
    assert "ORACLE WORST GROUPS" in text.out
    assert "job = cook" in text.out
    # without the option the main findings alone
    brief = evenhand(*args)
    assert (brief.code, brief.err) == (0, "")
    assert brief.out.startswith("Audit of people.csv: 200 rows, ")
    assert len(brief.out.splitlines()) <= 24


@pytest.mark.parametrize(
    "options",
    [
        ("--fail-if", 5000 * "x"),
        ("--fail-if", f"{5000 * 'x'} > 0"),
        ("--tolerance", 5000 * "9"),
        ("--groups", 5000 * "x"),
        ("--about", 5000 * "x"),
        ("--seed", 5000 * "9"),
    ],
    ids=lambda options: f"{options[0]} {options[1][-6:]}",
)
def test_long_values_of_options_are_shortened_in_messages(
    options: tuple[str, str], place: Path, evenhand: Command
) -> None:
    table = place / "people.csv"
    said = evenhand("audit", table, "--target", "loss", *NORMAL, *options).complaint()
    assert len(said.replace(str(place), "")) < 300


def test_long_levels_are_shortened_in_messages(
    tmp_path: Path, place: Path, evenhand: Command
) -> None:
    table, out = place / "people.csv", tmp_path / "out.csv"
    said = evenhand(*predict_args(place, table, out, "--levels", 5000 * "x")).complaint()
    assert "--levels" in said
    assert len(said) < 300


@pytest.mark.parametrize("workers", ["0", "-1"])
def test_a_number_of_workers_is_named_as_it_is_typed(
    workers: str, place: Path, evenhand: Command
) -> None:
    given = ("audit", place / "people.csv", "--target", "loss", *NORMAL)
    assert "'--workers'" in evenhand(*given, "--workers", workers).complaint()


def test_weights_of_rows_and_the_largest_of_the_design(
    place: Path, evenhand: Command, tmp_path: Path
) -> None:
    weights = np.where(np.arange(ROWS) % 2, 1.0, 3.0)
    TABLE.assign(w=weights).to_csv(tmp_path / "weighted.csv", index=False)
    args = ("audit", tmp_path / "weighted.csv", "--target", "loss", *NORMAL, "--json")
    shown = evenhand(*args, "--weight", "w")
    assert shown.code == 0
    found = json.loads(shown.out)
    again = audit(
        Forecast.from_normal(TABLE["mu"], TABLE["sigma"]), y=TABLE["loss"], sample_weight=weights
    )
    scores = {row["measure"]: row["value"] for row in found["scores"]}
    assert scores["90% coverage"] == pytest.approx(again.score("90% coverage"), rel=1e-9)
    # a column of weights is no feature
    assert not any("w" in (row["features"] or ()) for row in found["scan"])
    refused = evenhand(*args, "--largest-weight", 3)
    assert (refused.code, refused.out) == (2, "")
    assert "give --weight" in refused.err
    parts = tmp_path / "parts"
    parts.mkdir()
    TABLE.assign(w=weights).to_csv(parts / "a.csv", index=False)
    refused = evenhand("audit", parts, "--target", "loss", *NORMAL, "--weight", "w")
    assert refused.code == 2
    told = "error: --weight needs a table in memory, but this one is read in parts; audit a single"
    assert refused.err.startswith(told)


def test_quantiles_and_samples_of_another_model_are_audited(
    tmp_path: Path, evenhand: Command
) -> None:
    levels = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
    law = stats.norm(TABLE["mu"].to_numpy()[:, None], TABLE["sigma"].to_numpy()[:, None])
    quantiles = pd.DataFrame(law.ppf(levels), columns=[f"q{level}" for level in levels])
    draws = pd.DataFrame(law.rvs(size=(ROWS, 400), random_state=0)).add_prefix("draw")
    path = written(
        pd.concat([TABLE[["loss", "job"]], quantiles, draws], axis=1), tmp_path / "theirs.parquet"
    )
    truth = audit(
        Forecast.from_normal(TABLE["mu"], TABLE["sigma"]), y=TABLE["loss"], random_state=0
    )
    for option in (("--quantiles", "q"), ("--samples", "draw")):
        features = ("--features", "job")
        shown = evenhand(
            "audit", path, "--target", "loss", *option, *features, "--groups", "job", "--json"
        )
        assert (shown.code, shown.err) == (0, "")
        found = json.loads(shown.out)
        scores = {row["measure"]: row["value"] for row in found["scores"]}
        # 400 samples of a normal place its PITs to 0.025 or so
        assert scores["average error"] == pytest.approx(truth.score("average error"), abs=0.02)
        assert scores["CRPS"] == pytest.approx(truth.score("CRPS"), rel=0.02)
        assert found["certificate"]["n_draws"] == 1


def test_crossing_quantiles_are_audited_as_their_sorted_rows_if_asked(
    tmp_path: Path, evenhand: Command
) -> None:
    levels = (0.05, 0.25, 0.5, 0.75, 0.95)
    values = stats.norm(TABLE[["mu"]], TABLE[["sigma"]]).ppf(levels)
    crossed = values.copy()
    crossed[3:50:4] = crossed[3:50:4, ::-1]
    names = [f"q{level}" for level in levels]
    found = {}
    for name, these in (("sorted", values), ("crossed", crossed)):
        table = pd.concat([TABLE[["loss", "job"]], pd.DataFrame(these, columns=names)], axis=1)
        folder = tmp_path / name
        folder.mkdir()
        table[:120].to_csv(folder / "part-0.csv", index=False)
        table[120:].to_csv(folder / "part-1.csv", index=False)
        path = written(table, tmp_path / f"{name}.csv")
        more = ("--target", "loss", "--quantiles", "q", "--features", "job", "--json")
        sort = ("--sort-quantiles",) if name == "crossed" else ()
        for kind, place in (("whole", path), ("parts", folder)):
            shown = evenhand("audit", place, *more, *sort)
            assert (shown.code, shown.err) == (0, "")
            found[name, kind] = json.loads(shown.out)["scores"]
            if sort:
                assert "row 4" in evenhand("audit", place, *more).complaint()
    for kind in ("whole", "parts"):
        assert found["crossed", kind] == found["sorted", kind]


def test_a_gate_fails_with_code_one_and_says_by_how_much(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    args = ("audit", place / "model", place / "people.csv", "--target", "loss", "--json")
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


@pytest.mark.parametrize(
    ("gate", "words"),
    [
        (
            "coverage(0.8,0.2)<0.5",
            ("one deterministic forecast", "every group of 20%", "a level above 0.8"),
        ),
    ],
)
def test_a_gate_that_cannot_be_judged_leaves_the_report_and_names_another(
    gate: str, words: tuple[str, ...], place: Path, tmp_path: Path, evenhand: Command
) -> None:
    out = tmp_path / "audit.json"
    args = (
        "audit",
        place / "people.csv",
        "--target",
        "loss",
        *NORMAL,
        "--features",
        "job",
        "--out",
        out,
        "--json",
    )
    shown = evenhand(*args, "--fail-if", "not-proven", "--fail-if", gate)
    assert shown.code == 2
    assert json.loads(out.read_text()) == json.loads(shown.out)
    report, failed, refused = shown.err.splitlines()
    assert report == f"audit written to {out}"
    assert failed == "failed: the condition of --fail-if is true: not-proven"
    assert refused.startswith(f"error: condition {gate!r} cannot be evaluated: ")
    for word in words:
        assert word in refused


def searched(shown: Outcome) -> str:
    """Return the note on the features that groups were looked for in."""
    (note,) = [
        note
        for note in json.loads(shown.out)["notes"]
        if note.startswith("groups were searched in ")
    ]
    return str(note).removeprefix("groups were searched in ")


def test_neither_outcomes_nor_ids_nor_the_forecasts_are_searched_unasked(
    tmp_path: Path, evenhand: Command
) -> None:
    other = written(
        TABLE.assign(their_mu=TABLE["mu"] + 1, person=TABLE["id"] + 5), tmp_path / "t.csv"
    )
    args = ("audit", other, "--target", "loss", *NORMAL, "--json")
    ids = ("--id", "id", "--cluster", "person")
    assert searched(evenhand(*args, *ids)) == "4 features: income, job, since, their_mu"
    assert searched(evenhand(*args, *ids, "--features", "job,mu,job")) == "2 features: job, mu"


def test_a_model_that_was_trained_on_ids_is_not_searched_by_them(
    place: Path, evenhand: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Model:
        feature_names_in_ = ("id", "income", "loss")

        def forecast(self, X: pd.DataFrame, r: Any) -> Forecast:
            assert list(X.columns) == list(self.feature_names_in_)
            return Forecast.from_normal(np.full(len(X), 15.0), np.full(len(X), 4.0))

    monkeypatch.setattr(store, "load", lambda folder: Model())
    args = ("audit", "model", place / "people.csv", "--target", "loss", "--id", "id", "--json")
    assert searched(evenhand(*args)) == "1 feature: income"


def test_a_column_that_is_not_there_is_told_alike_by_all_options(
    place: Path, evenhand: Command
) -> None:
    args = ("audit", place / "people.csv", "--target", "loss", *NORMAL)
    lines = {
        evenhand(*args, *more).complaint()
        for more in (
            ("--groups", "nope"),
            ("--features", "nope"),
            ("--mean", "nope"),
            ("--target", "nope"),
        )
    }
    (line,) = lines
    assert line.endswith("name one of these\n")
    for option in ("--groups", "--features"):
        assert "did you mean 'income'?" in evenhand(*args, option, "incom").complaint()


def test_one_row_of_each_person_is_audited_on_request(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    twice = written(
        pd.concat([TABLE, TABLE]).assign(nr=np.arange(2 * ROWS)), tmp_path / "twice.csv"
    )
    shown = evenhand(
        "audit", twice, "--target", "loss", *NORMAL, "--id", "nr", "--cluster", "id", "--json"
    )
    assert shown.code == 0
    assert json.loads(shown.out)["n_samples"] == ROWS


def test_a_report_is_one_page(place: Path, tmp_path: Path, evenhand: Command) -> None:
    page = tmp_path / "report.html"
    shown = evenhand(
        "audit", place / "model", place / "people.csv", "--target", "loss", "--out", page
    )
    assert (shown.code, shown.err) == (0, f"audit written to {page}\n")
    assert page.read_text().lstrip().lower().startswith("<!doctype html>")


def test_an_audit_names_the_command_the_seed_and_the_files(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    args = (
        "audit",
        place / "model",
        place / "people.csv",
        "--target",
        "loss",
        "--json",
        "--seed",
        5,
    )
    made = json.loads(evenhand(*args, "--groups", "job, since").out)["provenance"]
    assert shlex.split(made["command"]) == ["evenhand", *map(str, args), "--groups", "job, since"]
    assert made["command"].endswith("--groups 'job, since'")
    assert made["random_state"] == 5
    seal = json.loads((place / "model" / "model.json").read_text())["sha256"]
    assert made["model"] == {"name": "model", "kind": "RandomizedRegressor", "sha256": seal}
    assert made["data"] == {
        "name": "people.csv",
        "sha256": digest(place / "people.csv"),
        "n_rows": ROWS,
    }

    parts = tmp_path / "parts"
    parts.mkdir()
    written(TABLE, parts / "1.parquet")
    made = json.loads(evenhand("audit", parts, "--target", "loss", *NORMAL, "--json").out)[
        "provenance"
    ]
    assert made["model"] == {"name": "parts", "kind": "Forecast", "sha256": None}
    assert made["data"] == {
        "name": "parts",
        "sha256": None,
        "n_rows": ROWS,
        "n_parts": 1,
        "n_searched": ROWS,
    }


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_audit_of_a_model_writes_what_it_prints(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    args = (
        "audit",
        place / "model",
        place / "people.parquet",
        "--target",
        "loss",
        "--out",
        tmp_path / "audit.json",
    )
    shown = evenhand(*args, "--json")
    assert shown.code == 0
    assert shown.err == f"audit written to {tmp_path / 'audit.json'}\n"
    assert json.loads((tmp_path / "audit.json").read_text()) == json.loads(shown.out)
    assert json.loads(shown.out)["is_randomized"] is True
    assert evenhand(*args, "--json").out == shown.out
    assert evenhand(*args, "--json", "--seed", 1).out != shown.out


def test_a_milder_atom_is_a_warning_that_names_the_column(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
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
    shown = process(*args, "--full", PYTHONIOENCODING="ascii")
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.isascii()
    assert "everyone" in shown.out


# Bad input: the arguments, and what the one line must name.


@dataclass(frozen=True)
class Desk:
    """Makes arguments; tables are written to `folder`, results would go to `folder / "out"`."""

    place: Path
    folder: Path

    def given(self, table: pd.DataFrame | str | bytes | None, ending: str) -> Path:
        path = self.folder / f"given{ending}"
        if table is None:
            return self.place / "people.csv"
        if isinstance(table, pd.DataFrame):
            return written(table, path)
        path.write_bytes(table.encode() if isinstance(table, str) else table)
        return path

    def fit(
        self, table: Any = None, *more: Any, ending: str = ".csv", target: str = "loss"
    ) -> tuple[Any, ...]:
        return (
            "fit",
            self.given(table, ending),
            "--target",
            target,
            "--out",
            self.folder / "out" / "model",
            *more,
        )

    def predict(self, table: Any = None, *more: Any, ending: str = ".csv") -> tuple[Any, ...]:
        return predict_args(
            self.place, self.given(table, ending), self.folder / "out" / "out.csv", *more
        )

    def randomize(self, table: Any = None, *more: Any, ending: str = ".csv") -> tuple[Any, ...]:
        return randomize_args(
            self.place, self.given(table, ending), self.folder / "out" / "out.csv", *more
        )

    def audit(
        self, table: Any = None, *more: Any, target: str = "loss", model: Any = None
    ) -> tuple[Any, ...]:
        out = ("--out", self.folder / "out" / "audit.json")
        return (
            "audit",
            model or self.place / "model",
            self.given(table, ".csv"),
            "--target",
            target,
            *out,
            *more,
        )

    def audit_alone(self, table: Any = None, *more: Any) -> tuple[Any, ...]:
        out = ("--out", self.folder / "out" / "audit.json")
        return ("audit", self.given(table, ".csv"), "--target", "loss", *out, *(more or NORMAL))

    def key(self, content: bytes) -> tuple[Any, ...]:
        (self.folder / "key").write_bytes(content)
        return ("--key-file", self.folder / "key")

    def model(self, change: Callable[[Path], Any]) -> Path:
        shutil.copytree(self.place / "model", self.folder / "damaged")
        change(self.folder / "damaged")
        return self.folder / "damaged"


NORMAL = ("--mean", "mu", "--std", "sigma")


def changed(column: str, value: Any, row: int | None = None) -> pd.DataFrame:
    """The table with another value in a row, counted from 1, or in a whole column."""
    table = TABLE.copy()
    if row is None:
        table[column] = value
    else:
        table[column] = table[column].astype(object)
        table.loc[row - 1, column] = value
    return table


def newer(folder: Path) -> None:
    manifest = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(
        json.dumps(manifest | {"format": 9, "written_by": "evenhand 7.7"})
    )


def flipped(folder: Path) -> None:
    path = next(folder.glob("*.safetensors"))
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


GARBAGE = np.random.default_rng(3).bytes(2000)
DISCRETE = changed("loss", np.arange(ROWS) % 7 * 1.0)
ATOM = changed("loss", np.where(np.arange(ROWS) < 30, 15.0, TABLE["loss"]))
SPLIT = "loss,age,age\n1,2,3\n"
HEADER = "id,income,job,since,mu,sigma,loss\n"

BAD: dict[str, tuple[Callable[[Desk], tuple[Any, ...]], tuple[str, ...]]] = {
    "fit, no such table": (
        lambda d: ("fit", "none.csv", "--target", "y", "--out", d.folder / "m"),
        ("none.csv",),
    ),
    "fit, no such target": (lambda d: d.fit(target="lost"), ("people.csv", "'lost'", "'loss'?")),
    "fit, no such id": (lambda d: d.fit(None, "--id", "person"), ("people.csv", "'person'")),
    "fit, no such column to drop": (
        lambda d: d.fit(None, "--drop", "mu,nu"),
        ("people.csv", "'nu'"),
    ),
    "fit, no features": (
        lambda d: d.fit(TABLE[["id", "loss"]], "--id", "id"),
        ("given.csv", "features"),
    ),
    "fit, text in the target": (
        lambda d: d.fit(changed("loss", "much", 4)),
        ("given.csv", "'loss'", "row 4", "'much'"),
    ),
    "fit, text among numbers": (
        lambda d: d.fit(
            pd.DataFrame({"loss": TABLE["loss"], "x": [[1, 2]] * ROWS}), ending=".parquet"
        ),
        ("given.parquet", "'x'"),
    ),
    "fit, constant target": (
        lambda d: d.fit(changed("loss", 3.5)),
        ("given.csv", "'loss'", "constant", "3.5"),
    ),
    "fit, missing target": (
        lambda d: d.fit(changed("loss", None, 6)),
        ("given.csv", "'loss'", "row 6", "missing"),
    ),
    "fit, infinite target": (
        lambda d: d.fit(changed("loss", np.inf, 6)),
        ("given.csv", "'loss'", "row 6", "inf"),
    ),
    "fit, infinite feature": (
        lambda d: d.fit(changed("income", -np.inf, 6)),
        ("given.csv", "'income'", "row 6", "inf"),
    ),
    "fit, date as target": (lambda d: d.fit(target="since"), ("people.csv", "'since'", "dates")),
    "fit, zero rows": (lambda d: d.fit(HEADER), ("given.csv", "no rows", "at least one")),
    "fit, empty file": (lambda d: d.fit(""), ("given.csv", "empty")),
    "fit, one row": (lambda d: d.fit(TABLE[:1]), ("given.csv", "'loss'", "1 row;", "20")),
    "fit, a column twice": (lambda d: d.fit(SPLIT), ("given.csv", "'age'", "2 times")),
    "fit, few values": (
        lambda d: d.fit(DISCRETE),
        ("given.csv", "'loss'", "7 distinct values", "--outcome count"),
    ),
    "fit, one value often": (
        lambda d: d.fit(ATOM),
        ("given.csv", "'loss'", "15", "15.0%", "model the frequent values apart"),
    ),
    "fit, alpha 0": (lambda d: d.fit(None, "--alpha", "0"), ("alpha", "0 < alpha <= 1", "0.0")),
    "fit, alpha 1.2": (lambda d: d.fit(None, "--alpha", "1.2"), ("alpha", "0 < alpha <= 1", "1.2")),
    "fit, alpha -1": (lambda d: d.fit(None, "--alpha", "-1"), ("alpha", "0 < alpha <= 1", "-1")),
    "fit, alpha nan": (lambda d: d.fit(None, "--alpha", "nan"), ("alpha", "nan")),
    "fit, unknown link": (
        lambda d: d.fit(None, "--link", "cauchy"),
        ("link", "'laplace'", "'cauchy'"),
    ),
    "fit, unknown device": (
        lambda d: d.fit(None, "--device", "tpu"),
        ("--device", "'cuda'", "'tpu'"),
    ),
    "fit, negative seed": (lambda d: d.fit(None, "--seed", "-1"), ("--seed", "-1")),
    "fit, garbage csv": (lambda d: d.fit(GARBAGE), ("given.csv", "readable")),
    "fit, garbage parquet": (
        lambda d: d.fit(GARBAGE, ending=".parquet"),
        ("given.parquet", "readable"),
    ),
    "fit, unknown table": (lambda d: d.fit("x", ending=".xlsx"), ("given.xlsx", ".csv")),
    "fit, a file in the way": (lambda d: d.fit(None, "--out", d.place / "key"), ("key", "folder")),
    "fit, a file as parent": (
        lambda d: d.fit(None, "--out", d.place / "key" / "model"),
        ("key", "folder"),
    ),
    "predict, no such table": (
        lambda d: predict_args(d.place, Path("no.csv"), d.folder / "o.csv"),
        ("no.csv",),
    ),
    "predict, no such id": (
        lambda d: d.predict(None, "--id", "person"),
        ("people.csv", "'person'"),
    ),
    "predict, zero rows": (lambda d: d.predict(HEADER), ("given.csv", "no rows", "at least one")),
    "predict, fewer features": (
        lambda d: d.predict(TABLE.drop(columns=["job", "income"])),
        ("given.csv", "'income', 'job'"),
    ),
    "predict, text among numbers": (
        lambda d: d.predict(changed("income", "much", 9)),
        ("given.csv", "'income'", "row 9", "'much'"),
    ),
    "predict, infinite feature": (
        lambda d: d.predict(changed("income", np.inf, 9)),
        ("given.csv", "'income'", "row 9", "inf"),
    ),
    "predict, text among dates": (
        lambda d: d.predict(changed("since", "soon", 2).astype({"since": str})),
        ("given.csv", "'since'", "row 2", "'soon'"),
    ),
    "predict, float ids": (
        lambda d: d.predict(changed("id", TABLE["id"] + 0.5), ending=".parquet"),
        ("given.parquet", "'id'", "row 1", "101.5"),
    ),
    "predict, float ids in csv": (
        lambda d: d.predict(changed("id", TABLE["id"] * 1.0)),
        ("given.csv", "'id'", "row 1", "101.0"),
    ),
    "predict, missing id": (
        lambda d: d.predict(changed("id", None, 5)),
        ("given.csv", "'id'", "row 5", "no id"),
    ),
    "predict, blank id": (
        lambda d: d.predict(changed("id", "  ", 5)),
        ("given.csv", "'id'", "empty"),
    ),
    "predict, id with the name of a result": (
        lambda d: d.predict(TABLE.rename(columns={"id": "q0.5"}), "--id", "q0.5"),
        ("'q0.5'", "rename"),
    ),
    "predict, percentages": (
        lambda d: d.predict(None, "--levels", "5,95"),
        ("--levels", "'5,95'", "0.9, not 90"),
    ),
    "predict, levels out of order": (
        lambda d: d.predict(None, "--levels", "0.9,0.1"),
        ("--levels", "increasing"),
    ),
    "predict, levels as text": (
        lambda d: d.predict(None, "--levels", "low"),
        ("--levels", "'low'"),
    ),
    "predict, no levels": (lambda d: d.predict(None, "--levels", ","), ("--levels",)),
    "predict, no such key file": (
        lambda d: d.predict(None, "--key-file", d.folder / "none"),
        ("none", "key file"),
    ),
    "predict, a folder as key file": (
        lambda d: d.predict(None, "--key-file", d.folder),
        ("key file",),
    ),
    "predict, short key": (
        lambda d: d.predict(None, *d.key(b"fifteen letters\n")),
        ("15 bytes", "16", "secrets"),
    ),
    "predict, context that is no text": (
        lambda d: d.predict(None, "--context", "\udcff"),
        ("--context",),
    ),
    "predict, unknown ending": (
        lambda d: d.predict(None, "--out", d.folder / "o.xlsx"),
        ("o.xlsx", ".parquet"),
    ),
    "predict, missing parent": (
        lambda d: d.predict(None, "--out", d.folder / "no" / "o.csv"),
        ("no", "folder"),
    ),
    "predict, a folder as output": (lambda d: d.predict(None, "--out", d.folder), ("end in",)),
    "randomize, no such mean": (
        lambda d: d.randomize(None, "--mean", "nu"),
        ("people.csv", "'nu'", "mu, sigma"),
    ),
    "randomize, text as mean": (
        lambda d: d.randomize(changed("mu", "x", 3)),
        ("given.csv", "'mu'", "row 3", "'x'"),
    ),
    "randomize, negative std": (
        lambda d: d.randomize(changed("sigma", -2.0, 3)),
        ("'sigma'", "row 3", "-2"),
    ),
    "randomize, zero std": (
        lambda d: d.randomize(changed("sigma", 0.0, 3)),
        ("given.csv", "'sigma'", "row 3", "0"),
    ),
    "randomize, missing mean": (
        lambda d: d.randomize(changed("mu", None, 3)),
        ("given.csv", "'mu'", "row 3"),
    ),
    "randomize, infinite std": (
        lambda d: d.randomize(changed("sigma", np.inf, 3)),
        ("'sigma'", "row 3", "inf"),
    ),
    "randomize, alpha 1.2": (lambda d: d.randomize(None, "--alpha", "1.2"), ("alpha", "1.2")),
    "randomize, unknown link": (
        lambda d: d.randomize(None, "--link", "cauchy"),
        ("link", "'cauchy'"),
    ),
    "audit, no such model": (
        lambda d: d.audit(model=d.folder / "none"),
        ("none", "no such model folder"),
    ),
    "audit, newer model": (
        lambda d: d.audit(model=d.model(newer)),
        ("format 9", "up to 1", "evenhand 7.7"),
    ),
    "audit, damaged model": (
        lambda d: d.audit(model=d.model(flipped)),
        ("damaged", ".safetensors"),
    ),
    "audit, damaged manifest": (
        lambda d: d.audit(model=d.model(lambda folder: (folder / "model.json").write_text("{"))),
        ("model.json", "damaged"),
    ),
    "audit, empty model folder": (lambda d: d.audit(model=d.folder), ("not a model folder",)),
    "audit, model and table swapped": (
        lambda d: ("audit", d.place / "people.csv", d.place / "model", "--target", "loss"),
        ("people.csv", "no such model folder"),
    ),
    "audit, no such target": (
        lambda d: d.audit(target="lost"),
        ("people.csv", "'lost'", "'loss'?"),
    ),
    "audit, constant target": (
        lambda d: d.audit(changed("loss", 3.5)),
        ("given.csv", "'loss'", "constant", "3.5"),
    ),
    "audit, one row": (lambda d: d.audit(TABLE[:1]), ("given.csv", "'loss'", "1 row;", "20")),
    "audit, infinite target": (
        lambda d: d.audit(changed("loss", np.inf, 6)),
        ("given.csv", "'loss'", "row 6", "inf"),
    ),
    "audit, missing target": (
        lambda d: d.audit_alone(changed("loss", None, 6)),
        ("given.csv", "'loss'", "row 6"),
    ),
    "audit, infinite feature": (
        lambda d: d.audit(changed("income", np.inf, 6)),
        ("given.csv", "'income'", "row 6"),
    ),
    "audit, fewer features": (lambda d: d.audit(TABLE.drop(columns="job")), ("given.csv", "'job'")),
    "audit, unknown group": (
        lambda d: d.audit(None, "--groups", "job,sex"),
        ("people.csv", "'sex'"),
    ),
    "audit, ids as groups": (
        lambda d: d.audit(changed("job", TABLE["id"].map("p{}".format)), "--groups", "job"),
        ("given.csv", "'job'", "100"),
    ),
    "audit, negative std": (
        lambda d: d.audit_alone(changed("sigma", -2.0, 3)),
        ("'sigma'", "row 3", "-2"),
    ),
    "audit, mean without std": (
        lambda d: d.audit_alone(None, "--mean", "mu"),
        ("people.csv", "--std"),
    ),
    "audit, std without mean": (
        lambda d: d.audit_alone(None, "--std", "sigma"),
        ("people.csv", "--mean"),
    ),
    "audit, neither model nor mean": (
        lambda d: d.audit_alone(None, "--seed", "0"),
        ("people.csv", "--mean"),
    ),
    "audit, both model and mean": (lambda d: d.audit(None, *NORMAL), ("--mean", "not both")),
    "audit, negative seed": (lambda d: d.audit(None, "--seed", "-3"), ("--seed", "-3")),
    "audit, garbage csv": (lambda d: d.audit_alone(GARBAGE), ("given.csv", "readable")),
    "audit, unknown ending": (
        lambda d: d.audit(None, "--out", d.folder / "o.pdf"),
        ("o.pdf", ".html", ".json"),
    ),
    "audit, two kinds of columns": (
        lambda d: d.audit_alone(None, *NORMAL, "--samples", "mu"),
        ("people.csv", "one kind", "--quantiles"),
    ),
    "audit, a quantile without its level": (
        lambda d: d.audit_alone(None, "--quantiles", "mu,sigma"),
        ("--quantiles", "'mu'", "q0.05"),
    ),
    "audit, quantiles that cross": (
        lambda d: d.audit_alone(TABLE.assign(**{"q0.1": 1.0, "q0.9": 0.0}), "--quantiles", "q"),
        ("given.csv", "'q0.9'", "row 1", "got 0 after 1", "--sort-quantiles"),
    ),
    "audit, sorted quantiles that are none": (
        lambda d: d.audit_alone(None, *NORMAL, "--sort-quantiles"),
        ("--sort-quantiles", "without --quantiles"),
    ),
    "audit, no such feature": (
        lambda d: d.audit(None, "--features", "town"),
        ("people.csv", "'town'"),
    ),
    "audit, an id twice": (
        lambda d: d.audit(changed("id", 101, 3), "--id", "id"),
        ("given.csv", "'id'", "row 3", "101", "row 1", "--cluster id"),
    ),
    "audit, groups of the outcome": (
        lambda d: d.audit(None, "--groups", "job,loss"),
        ("--groups", "'loss'", "--target"),
    ),
    "audit, the outcome as a feature": (
        lambda d: d.audit(None, "--features", "income,loss"),
        ("--features", "'loss'", "--target"),
    ),
    "audit, the id as a feature": (
        lambda d: d.audit_alone(None, *NORMAL, "--id", "id", "--features", "id,income"),
        ("--features", "'id'", "--id"),
    ),
    "audit, people as a feature": (
        lambda d: d.audit_alone(None, *NORMAL, "--cluster", "id", "--features", "id"),
        ("--features", "'id'", "--cluster"),
    ),
    "audit, the outcome as its forecast": (
        lambda d: d.audit_alone(None, "--mean", "loss", "--std", "sigma"),
        ("people.csv", "'loss'", "target"),
    ),
    "audit, infinite column that is searched": (
        lambda d: d.audit_alone(changed("income", np.inf, 6)),
        ("given.csv", "'income'", "row 6", "inf"),
    ),
    "audit, a person without a label": (
        lambda d: d.audit(changed("job", None, 3), "--cluster", "job"),
        ("given.csv", "'job'", "row 3"),
    ),
    "audit, no condition": (
        lambda d: d.audit(None, "--fail-if", "error"),
        ("--fail-if", "'error'", "write for"),
    ),
    "audit, unknown quantity": (
        lambda d: d.audit(None, "--fail-if", "group_error(0.2) > 0.1"),
        ("--fail-if", "certified_group_error", "'group_error'"),
    ),
    "audit, percent in a condition": (
        lambda d: d.audit(None, "--fail-if", "certified_bias(0.2) > 5"),
        ("limit", "5", "fraction"),
    ),
    "audit, confidence 95": (
        lambda d: d.audit(None, "--confidence", "95"),
        ("--confidence", "95", "fraction"),
    ),
    "audit, missing parent": (
        lambda d: d.audit(None, "--out", d.folder / "no" / "a.json"),
        ("no", "folder"),
    ),
    "demo, negative seed": (
        lambda d: ("demo", "--out", d.folder / "out", "--seed", "-1"),
        ("--seed", "-1"),
    ),
    "demo, a file in the way": (lambda d: ("demo", "--out", d.place / "key"), ("key", "folder")),
}


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line_and_leaves_everything_as_it_was(
    name: str, place: Path, tmp_path: Path, evenhand: Command
) -> None:
    make, words = BAD[name]
    (tmp_path / "out").mkdir()
    args = make(Desk(place, tmp_path))
    old = {"out.csv": b"old forecasts", "audit.json": b"old audit", "model": None}
    for there in (False, True):
        if there:
            for file, text in old.items():
                path = tmp_path / "out" / file
                shutil.copytree(place / "model", path) if text is None else path.write_bytes(text)
        before = contents(tmp_path), contents(place)
        refused = evenhand(*args)
        # features that no model can read are found by the training, after the warning
        warned, line = re.match("(warning: --out .*\n)?((?s:.)*)", refused.err).groups()  # type: ignore[union-attr]
        assert there or warned is None
        assert replace(refused, err=line).complaint() == line
        for word in words:
            assert word in line
        assert (contents(tmp_path), contents(place)) == before
        assert not any(path.is_dir() for path in (tmp_path / "no", tmp_path / "m"))


def test_garbage_of_any_kind_is_one_line(tmp_path: Path, evenhand: Command) -> None:
    random = np.random.default_rng(0)
    for i in range(60):
        head = b"id,loss,mu,sigma\n" if i % 2 else b""
        (tmp_path / "t.csv").write_bytes(head + random.bytes(int(random.integers(1, 400))))
        evenhand("audit", tmp_path / "t.csv", "--target", "loss", *NORMAL).complaint()


def test_what_a_file_says_cannot_steer_the_terminal(tmp_path: Path, evenhand: Command) -> None:
    (tmp_path / "t.csv").write_bytes(b"loss,mu,sigma\n1,2,3,\x1b[2J\x1b]0;title\x07\n")
    assert (
        "given"
        not in evenhand("audit", tmp_path / "t.csv", "--target", "loss", *NORMAL).complaint()
    )


# What is no fault of the user's.


def failing(error: BaseException) -> Callable[[Path], Any]:
    def load(folder: Path) -> Any:
        raise error

    return load


FAULTS = [
    (ValueError("odd\nsize"), "ValueError: odd size"),
    (KeyError("mass"), "KeyError: 'mass'"),
    (RuntimeError("no"), "RuntimeError: no"),
    (AssertionError(), "AssertionError"),
    # typer's own exit code for this one is 1
    (EOFError("short"), "EOFError: short"),
]


@pytest.mark.parametrize(("error", "said"), FAULTS)
def test_a_fault_of_ours_is_one_line_with_a_code_that_no_gate_has(
    error: Exception, said: str, place: Path, evenhand: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVENHAND_DEBUG", raising=False)
    monkeypatch.setattr(store, "load", failing(error))
    args = (
        "audit",
        place / "model",
        place / "people.csv",
        "--target",
        "loss",
        "--fail-if",
        "problem",
    )
    shown = evenhand(*args)
    blame = (
        "this is a bug of evenhand, not a problem of your data; run with EVENHAND_DEBUG=1 for the"
        " traceback"
    )
    assert (shown.code, shown.out, shown.err) == (70, "", f"error: {said}; {blame}\n")
    monkeypatch.setenv("EVENHAND_DEBUG", "1")
    shown = evenhand(*args)
    assert shown.code == 70
    assert shown.err.startswith("Traceback (most recent call last):\n")
    assert shown.err.endswith(f"error: {said}; {blame}\n")


def test_an_interrupted_command_has_the_code_of_one(
    place: Path, evenhand: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "load", failing(KeyboardInterrupt()))
    shown = evenhand("audit", place / "model", place / "people.csv", "--target", "loss")
    assert (shown.code, shown.out, shown.err) == (130, "", "error: interrupted\n")


def test_a_reader_that_has_seen_enough_does_not_change_the_verdict(
    place: Path, forks: Forks
) -> None:
    args = ["audit", str(place / "people.csv"), "--target", "loss", *NORMAL, "--features", "job"]
    for condition, code in (("groups_beyond_tolerance > 99", 0), ("not-proven", 1)):
        gate = ["--fail-if", condition]
        found, _, errors = forks.run([*args, *gate], stdout=NO_READER)
        assert found == code
        assert errors.count("\n") == code  # the line of the gate


def test_the_help_names_the_exit_codes(evenhand: Command) -> None:
    shown = evenhand("--help")
    assert shown.code == 0
    assert "70 internal error" in " ".join(shown.out.split())


def test_every_module_can_be_imported() -> None:
    modules = [one.name for one in pkgutil.walk_packages(package.__path__, "evenhand.")]
    assert {"evenhand.cli", "evenhand.audits.run", "evenhand.report.page"} <= set(modules)
    for name in modules:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] not in {"torch", "lightgbm"}:  # extras
                raise


def test_a_cuda_device_that_is_not_there_is_one_line(
    place: Path, tmp_path: Path, evenhand: Command
) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has a CUDA device")
    refused = evenhand(
        "fit", place / "people.csv", "--target", "loss", "--out", tmp_path / "m", "--device", "cuda"
    )
    assert "CUDA" in refused.complaint()
    assert list(tmp_path.iterdir()) == []


def test_too_little_memory_is_one_line(
    place: Path, evenhand: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def greedy(folder: Path) -> None:
        raise MemoryError

    monkeypatch.setattr(store, "load", greedy)
    args = ("audit", place / "model", place / "people.csv", "--target", "loss")
    assert "memory" in evenhand(*args).complaint()


def test_a_disk_that_is_full_leaves_the_old_output(
    place: Path, tmp_path: Path, evenhand: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "out.csv").write_text("old")
    monkeypatch.setattr(os, "fsync", full)
    assert (
        "out.csv: No space left on device"
        in evenhand(*predict_args(place, place / "people.csv", tmp_path / "out.csv")).complaint()
    )
    assert contents(tmp_path) == {"out.csv": b"old"}


def test_a_model_is_not_written_among_other_files(tmp_path: Path, evenhand: Command) -> None:
    folder = tmp_path / "parts"
    folder.mkdir()
    TABLE.to_csv(folder / "part-0.csv", index=False)
    refused = evenhand(
        "fit", written(TABLE, tmp_path / "t.csv"), "--target", "loss", "--out", folder
    )
    assert f"--out {folder} contains 'part-0.csv'" in refused.complaint()
    assert "use a new or empty folder" in refused.complaint()


def test_features_that_name_each_row_are_remarked_on() -> None:
    from evenhand.cli import features_like_names

    table = pd.DataFrame(
        {"policy": [f"P{i}" for i in range(30)], "town": ["a", "b", "c"] * 10, "x": range(30)}
    )
    assert features_like_names(table[:9]) == []
    (remark,) = features_like_names(table)
    assert re.search("column 'policy' .*different text in every row", remark)
    assert "--id" in remark
