"""`predict --log`, `outcomes` and `replay`: from a table to a log and back."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import BayesianRidge

from command_outcome import key_file
from evenhand import RandomizedRegressor, save
from evenhand.service import matured_rows, open_log, verify

CONTEXT = "2026-11"
N = 40


def table_of(n=300):
    random = np.random.default_rng(0)
    table = pd.DataFrame({"x": random.normal(size=n), "z": random.uniform(size=n)})
    table["person"] = [f"p{row}" for row in range(n)]
    table["region"] = random.choice(["north", "south"], size=n)
    table["size"] = random.integers(1, 4, size=n)
    table["y"] = table["x"] + random.normal(size=n)
    return table


def read(path, **options):
    """Return a csv file with all digits of its numbers."""
    return pd.read_csv(path, float_precision="round_trip", **options)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a folder with models, keys and tables; nothing in it is changed by tests."""
    folder = tmp_path_factory.mktemp("service")
    table = table_of()
    X = table[["x", "z"]]
    save(RandomizedRegressor(BayesianRidge(), random_state=0).fit(X, table["y"]), folder / "model")
    other = RandomizedRegressor(BayesianRidge(), random_state=0).fit(X, table["y"] + 1)
    save(other, folder / "other")
    table[:N].drop(columns="y").to_csv(folder / "new.csv", index=False)
    key_file(folder / "key")
    key_file(folder / "other.key", b"another secret of enough bytes")
    return folder


def predict(place, to, *more):
    return (
        *("predict", place / "new.csv", "--forecast", place / "model", "--id", "person"),
        *("--key-file", place / "key", "--context", CONTEXT),
        *("--log", to / "log.sqlite", "--out", to / "out.csv", *more),
    )


@pytest.fixture
def served(place, tmp_path, evenhand):
    evenhand(*predict(place, tmp_path)).done()
    return read(tmp_path / "out.csv")


def replay(evenhand, place, to, id, *more):
    options = ("--forecast", place / "model", "--key-file", place / "key")
    return evenhand("replay", to / "log.sqlite", id, *options, *more)


def features(place):
    return ("--features", place / "new.csv", "--id", "person")


def test_predict_writes_what_it_logs(place, tmp_path, served, evenhand):
    entries = list(open_log(tmp_path / "log.sqlite", create=False).entries(kind="forecast"))
    assert [one.id for one in entries] == served["forecast_id"].tolist()
    for level in ("0.05", "0.5", "0.95"):
        assert [one.values["quantiles"][level] for one in entries] == served[f"q{level}"].tolist()
    assert [one.values["r"] for one in entries] == served["r"].tolist()
    assert [one.values["mean"] for one in entries] == served["mean"].tolist()
    # the same table as without a log, but for the ids
    of_log = ("--log", tmp_path / "log.sqlite")
    evenhand(*(one for one in predict(place, tmp_path) if one not in of_log)).done()
    again = read(tmp_path / "out.csv")
    pd.testing.assert_frame_equal(again, served.drop(columns="forecast_id"))


def test_a_repeated_run_adds_nothing_and_writes_the_same(place, tmp_path, served, evenhand):
    log = open_log(tmp_path / "log.sqlite", create=False)
    before = verify(log)
    done = evenhand(*predict(place, tmp_path, "--json"))
    assert verify(log) == before
    pd.testing.assert_frame_equal(read(tmp_path / "out.csv"), served)
    assert f"0 forecasts added to {tmp_path / 'log.sqlite'}; {N} were in it before" in done.err
    shown = json.loads(done.out)["log"]
    assert (shown["n_new"], shown["n_repeated"], shown["context"]) == (0, N, CONTEXT)


def test_groups_and_features_are_logged_if_asked(place, tmp_path, evenhand):
    more = ("--groups", "region,size", "--keep-features", "--person", "id")
    assert evenhand(*predict(place, tmp_path, *more)).code == 0
    entries = list(open_log(tmp_path / "log.sqlite", create=False).entries(kind="forecast"))
    table = read(place / "new.csv")
    assert [one.values["groups"]["region"] for one in entries] == table["region"].tolist()
    # a column of numbers that the model does not use is one of numbers in csv too
    assert [one.values["groups"]["size"] for one in entries] == table["size"].tolist()
    assert [one.values["person"] for one in entries] == table["person"].tolist()
    assert [one.values["features"]["x"] for one in entries] == table["x"].tolist()


def test_wrong_options_of_the_log_are_refused(place, tmp_path, evenhand):
    for option, value, message in (
        ("--groups", "nowhere", "has no column 'nowhere'"),
        ("--person", "name", "invalid value for '--person': 'name' is not one of 'hash', 'id'"),
        ("--workers", 2, "--workers has no effect with --log"),
        ("--log", "log.txt", "a decision log must be a path that ends in .sqlite"),
    ):
        assert message in evenhand(*predict(place, tmp_path, option, value)).complaint()
    assert not (tmp_path / "out.csv").exists()


def test_options_of_the_log_need_the_log(place, tmp_path, evenhand):
    args = ("predict", place / "new.csv", "--forecast", place / "model", "--id", "person")
    out = ("--key-file", place / "key", "--out", tmp_path / "out.csv")
    for option in (("--groups", "region"), ("--keep-features",), ("--person", "id")):
        complaint = evenhand(*args, *out, *option).complaint()
        assert f"{option[0]} has no effect without --log" in complaint
    log = ("--log", tmp_path / "log.sqlite")
    assert "--key-file" in evenhand(*args, *out[2:], *log).complaint()
    complaint = evenhand(*args, *out, *log).complaint()
    assert "--log needs --context: each context has its own draws" in complaint
    assert not (tmp_path / "log.sqlite").exists()


def record(evenhand, to, table, *more):
    table.to_csv(to / "known.csv", index=False)
    log = to / "log.sqlite"
    return evenhand("outcomes", log, to / "known.csv", "--target", "y", *more)


def test_outcomes_are_recorded_by_forecast(tmp_path, served, evenhand):
    y = np.random.default_rng(3).normal(size=N).round(3)
    known = pd.DataFrame({"forecast_id": served["forecast_id"], "y": y})
    done = record(evenhand, tmp_path, known, "--id", "forecast_id")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"{N} outcomes recorded, of which 0 corrections; 0 in the log")
    log = open_log(tmp_path / "log.sqlite", create=False)
    assert [one.values["y"] for one in log.entries(kind="outcome")] == y.tolist()
    known.loc[0, "y"] = 9.0
    again = record(evenhand, tmp_path, known, "--id", "forecast_id", "--json")
    expected = {"n_first": 0, "n_corrections": 1, "n_repeated": N - 1, "n_unknown": 0}
    assert json.loads(again.out) == {"schema": "evenhand.outcomes/1"} | expected


def test_outcomes_are_recorded_by_person_and_enter_the_watch(place, tmp_path, served, evenhand):
    known = table_of()[:N][["person", "y"]][::-1]
    person = ("--id", "person", "--context", CONTEXT, "--key-file", place / "key")
    assert record(evenhand, tmp_path, known, *person).code == 0
    log = open_log(tmp_path / "log.sqlite", create=False)
    rows = matured_rows(log, matures_after=1, until="2999-01-01")
    assert rows.known.all()
    np.testing.assert_array_equal(rows.r, served["r"])
    # the served PIT is below the level of a quantile if and only if the outcome is
    y = known["y"].to_numpy()[::-1]
    np.testing.assert_array_equal(rows.pit[0] < 0.25, y < served["q0.25"])


def test_outcomes_that_do_not_fit_are_refused_together(place, tmp_path, served, evenhand):
    ids = ["nobody", *served["forecast_id"][:2], "nothing"]
    known = pd.DataFrame({"forecast_id": ids, "y": [1.0, 2.0, 3.0, 4.0]})
    refused = record(evenhand, tmp_path, known, "--id", "forecast_id").complaint()
    assert "known.csv, rows 1, 4: 2 ids without a forecast" in refused
    assert "nothing was recorded" in refused
    log = open_log(tmp_path / "log.sqlite", create=False)
    assert not list(log.entries(kind="outcome"))
    done = record(evenhand, tmp_path, known, "--id", "forecast_id", "--skip-unknown").done()
    assert done.err.startswith("warning: known.csv, rows 1, 4: skipped")
    assert len(list(log.entries(kind="outcome"))) == 2
    known.loc[1, "y"] = np.inf
    refused = record(evenhand, tmp_path, known, "--id", "forecast_id").complaint()
    assert "known.csv: column 'y', row 2 must lie between" in refused
    person = ("--id", "forecast_id", "--context", "2026-12", "--key-file", place / "key")
    known.loc[1, "y"] = 1.0
    refused = record(evenhand, tmp_path, known, *person).complaint()
    assert "has no context '2026-12', only '2026-11'; did you mean '2026-11'?" in refused


def test_the_row_is_found_by_its_features(place, tmp_path, served, evenhand):
    id = served["forecast_id"][N - 1]
    done = replay(evenhand, place, tmp_path, id, "--features", place / "new.csv").done()
    # without ids nothing is known of the person
    assert "person      not checked" in done.out
    read(place / "new.csv")[: N - 1].to_csv(tmp_path / "fewer.csv", index=False)
    refused = replay(evenhand, place, tmp_path, id, "--features", tmp_path / "fewer.csv")
    expected = refused.complaint()
    assert f"fewer.csv: none of {N - 1} rows has the features of the forecast" in expected


def test_what_differs_is_named(place, tmp_path, served, evenhand):
    changed = tmp_path / "changed.csv"
    table = read(place / "new.csv")
    table.loc[7, "x"] += 0.5
    table.to_csv(changed, index=False)
    same = {"--forecast": "model", "--key-file": "key", "--features": "new.csv"}
    for options, parts in (
        ({"--features": changed}, {"features", "values"}),
        ({"--forecast": "other"}, {"model", "values"}),
        ({"--key-file": "other.key", "--person": "p7"}, {"key", "draw"}),
        ({"--context": "2026-12"}, {"context", "draw"}),
    ):
        files = {name: place / file for name, file in (same | options).items() if name in same}
        more = {name: value for name, value in options.items() if name not in same}
        given = [word for pair in (files | more).items() for word in pair]
        log, id = tmp_path / "log.sqlite", served["forecast_id"][7]
        done = evenhand("replay", log, id, "--id", "person", "--json", *given)
        assert done.code == 1
        checks = json.loads(done.out)["checks"]
        assert {one["part"] for one in checks if one["status"] == "differs"} == parts
        assert "secret" not in done.out + done.err


def test_an_anchor_shows_a_log_that_was_written_anew(place, tmp_path, served, evenhand):
    id = served["forecast_id"][7]
    head = open_log(tmp_path / "log.sqlite", create=False).head()
    good = ("--anchor", f"{head.number}:{head.sha256}")
    assert replay(evenhand, place, tmp_path, id, *features(place), *good).code == 0
    bad = ("--anchor", f"{head.number}:{'0' * 64}")
    for options, message in (
        ((*features(place), *bad), "the log has been rewritten"),
        (("--anchor", "12"), "--anchor must be the number and hash of an entry"),
        (("--id", "person"), "--id has no effect without --features"),
    ):
        assert message in replay(evenhand, place, tmp_path, id, *options).complaint()
