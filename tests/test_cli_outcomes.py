"""Commands for counts, scores, amounts with zeros and 0/1 outcomes."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from command_outcome import key_file
from evenhand import load
from evenhand.cli.fitting import discrete_target
from test_command_loop import make_table as table_of_kinds

N = 600


def make_table(seed=0):
    """Return outcomes of each kind, and scores, with their true forecasts in columns."""
    table = table_of_kinds(seed, N, shift=0.0)
    chance = table["chance"].to_numpy()
    of_scores = stats.binom(3, chance[:, None]).pmf(np.arange(4))
    table["score"] = np.random.default_rng(seed).binomial(3, chance)
    return table.assign(**{f"k{k}": of_scores[:, k] for k in range(4)})


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_table().to_csv("t.csv", index=False)
    key_file(Path("key"))
    return tmp_path / "t.csv"


def test_the_first_audit_of_an_event_leads_to_its_forecast_its_ids_and_its_plan(table, evenhand):
    rows = make_table(1)
    rows.assign(number=np.random.default_rng(0).permutation(N) + 5000).to_csv(table, index=False)
    given = ("t.csv", "--target", "event", "--forecast")
    told = evenhand("audit", *given, "mean=chance").complaint()
    assert "has only the values 0 and 1" in told
    assert "write probability=chance" in told
    found = evenhand("audit", *given, "probability=chance").done()
    assert "column 'number' numbers the rows" in found.err
    assert "column 'x'" not in found.err
    assert evenhand("audit", *given, "probability=chance", "--id", "number").done().err == ""
    (line,) = re.findall("evenhand (plan .*)", found.out)
    assert f"--rate {rows['event'].mean():.3g}" in line
    evenhand(*line.split()).done()
    evenhand("recalibrate", *given, "probability=chance", "--out", "m").done()
    predict = ("predict", "t.csv", "--forecast", "m", "--out", "o.csv")
    assert "order of the table: copy columns" in evenhand(*predict).err
    assert "order of the table" not in evenhand(*predict, "--keep", "number").err
    rows.assign(chance=1 - rows["event"]).to_csv(table, index=False)
    found = evenhand("audit", *given, "probability=chance").done()
    assert "the first in column 'event', row 1, where" in " ".join(found.out.split())


COLUMNS = {
    "binary": ("--target", "event", "--forecast", "probability=chance"),
    "count": ("--target", "visits", "--forecast", "mean=rate,outcome=count"),
    "pmf": ("--target", "score", "--forecast", "pmf=k"),
    "hurdle": ("--target", "cost", "--forecast", "chance_of_zero=none,quantiles=a"),
}


REFUSED = {
    "audit t.csv --target visits --forecast probability=chance": "'visits', row 2 must be 0 or 1",
    "audit t.csv --target visits --forecast pmf=k": "one of the values of pmf= (0, 1, 2, 3), got",
    "audit t.csv --target event --forecast m": "--forecast m: there is no such model folder",
    "audit t.csv --target event --forecast probabilty=p": "did you mean 'probability'?",
    "audit t.csv --target event --forecast probability=": "probability= is empty; name a column",
    "fit t.csv --target score --out m --id id": "add --outcome count",
    "fit t.csv --target cost --out m --id id": "add --outcome hurdle",
    "fit t.csv --target visits --outcome binary --out m --id id": "must be 0 or 1",
    "fit t.csv --target rate --outcome hurdle --out m --id id": "has no zeros, but --outcome",
    "fit t.csv --target x --outcome count --out m --id id": "must be a whole number of at least 0",
    "randomize t.csv --target event --forecast probability=k0 --link laplace --out m": "--link: fo",
    "fit t.csv --target visits --outcome count --support 0: --out m": "--support has no effect",
}


def test_what_does_not_fit_is_refused_in_one_line(evenhand, table):
    for line, facts in REFUSED.items():
        assert facts in evenhand(*line.split()).complaint()
        assert not Path("m").exists()


@pytest.mark.parametrize(
    ("y", "facts"),
    [
        (np.arange(100) % 2 + 1.0, "values 1 and 2; .* --outcome binary, with the event coded as"),
        (np.arange(100) % 5 * 0.5, "5 distinct values in .*; for scores add --outcome count"),
        (np.repeat(np.arange(50.0), 2), None),
        (
            np.append(np.zeros(50), np.arange(1.0, 51.0)),
            "50.0% .* for counts or scores add --outcome count or for amounts",
        ),
        (np.append(np.zeros(50), np.arange(50) + 0.5), "for amounts with zeros add --outcome hurd"),
        (np.append(np.full(50, 7.3), np.arange(50.0)), "model the frequent values apart"),
    ],
)
def test_discrete_targets_are_told_their_option(y, facts):
    found = discrete_target(y)
    assert (found is None) == (facts is None)
    if facts is not None:
        assert re.search(facts, str(found)), found


TARGETS = {"event": "binary", "visits": "count", "score": "count", "cost": "hurdle"}


def fit(evenhand, target, *args):
    others = ",".join(name for name in make_table() if name not in ("x", "sex", target))
    options = ("--target", target, "--outcome", TARGETS[target], "--drop", others, "--seed", "0")
    return evenhand("fit", "t.csv", *options, "--out", "m", *args).done()


PREDICT = ("predict", "t.csv", "--forecast", "m", "--id", "id")


def predicted(evenhand, *args):
    evenhand(*PREDICT, "--out", "out.csv", *args).done()
    return pd.read_csv("out.csv")


def test_events_are_fitted_and_their_probabilities_written_without_a_key(evenhand, table):
    assert json.loads(fit(evenhand, "event", "--json").out)["outcome"] == "binary"
    written = predicted(evenhand)
    assert written.columns.tolist() == ["id", "probability"]
    forecast = load("m").forecast(pd.read_csv("t.csv")[["x", "sex"]])
    np.testing.assert_allclose(written["probability"], forecast.event_probability(), rtol=1e-6)
    refused = evenhand(*PREDICT, "--out", "o.csv", "--key-file", "key")
    assert refused.complaint() == (
        "error: --key-file has no effect with m, whose forecasts are not randomized; leave it out\n"
    )
    for option in (("--moments",), ("--levels", "0.5")):
        refused = evenhand(*PREDICT, "--out", "o.csv", *option).complaint()
        assert f"{option[0]} has no effect with m, which predicts probabilities" in refused


@pytest.mark.usefixtures("quick_training")
@pytest.mark.parametrize("target", ["score", "cost"])
def test_a_fit_is_deterministic_and_its_forecasts_need_no_key(evenhand, table, target):
    fit(evenhand, target)
    assert not load("m").forecast(pd.read_csv("t.csv")[["x", "sex"]]).is_randomized
    written = predicted(evenhand, "--moments")
    assert not {"r", "context", "key"} & set(written.columns)
    for option, value in (("--key-file", "key"), ("--context", "2026-11")):
        refused = evenhand(*PREDICT, "--out", "o.csv", option, value)
        assert f"{option} has no effect with m, whose forecasts" in refused.complaint()
    # a log needs the key to name people, and its forecasts depend on neither key nor context
    for context in ("one", "two"):
        log = ("--log", "log.sqlite", "--key-file", "key", "--context", context)
        done = evenhand(*PREDICT, "--out", "log.csv", "--moments", *log, "--json")
        assert json.loads(done.out)["key"] is None
        logged = pd.read_csv("log.csv")
        pd.testing.assert_frame_equal(logged.drop(columns="forecast_id"), written)


@pytest.fixture
def not_due(table):
    """Return a table in which a fifth of the outcomes is missing; known.csv has the other rows."""
    rows = make_table().astype({"event": "Int64", "visits": "Int64", "score": "Int64"})
    is_due = np.arange(N) % 5 != 2
    rows.loc[~is_due, ["event", "visits", "score", "cost"]] = None
    rows.to_csv("due.csv", index=False)
    rows[is_due].to_csv("known.csv", index=False)
    return Path("due.csv")


LEFT_OUT = "rows without an outcome were left out: 120 of 600"


@pytest.mark.parametrize("kind", ["binary", "hurdle"])
def test_an_audit_without_missing_outcomes_is_that_of_the_other_rows(evenhand, not_due, kind):
    args = (*COLUMNS[kind], "--groups", "sex", "--id", "id", "--features", "x,sex", "--json")
    done = evenhand("audit", str(not_due), *args, "--drop-missing").done()
    assert f"warning: due.csv: {LEFT_OUT}" in done.err
    found, known = json.loads(done.out), json.loads(evenhand("audit", "known.csv", *args).out)
    for part in ("n_samples", "scores", "groups", "scan", "certificate"):
        assert found[part] == known[part]
    assert LEFT_OUT in json.dumps(found["notes"])


@pytest.mark.parametrize(
    "args",
    [
        ("recalibrate", *COLUMNS["count"], "--by", "sex"),
        ("randomize", *COLUMNS["binary"], "--seed", "0"),
        ("fit", "--target", "event", "--outcome", "binary", "--drop", "id", "--seed", "0"),
    ],
)
def test_commands_that_learn_from_outcomes_leave_out_rows_without_one(evenhand, not_due, args):
    # columns with the other missing outcomes
    rows = pd.read_csv(not_due).drop(columns=["cost", "score"])
    learnt = []
    for name in ("due.csv", "known.csv"):
        rows[rows["event"].notna() | (name == "due.csv")].to_csv(name, index=False)
        done = evenhand(args[0], name, *args[1:], "--json", "--drop-missing", "--out", name[:3])
        assert done.code == 0, done.err
        assert (LEFT_OUT in done.err) == (name == "due.csv")
        found = json.loads(done.out)
        learnt.append({key: found[key] for key in found.keys() - {"out", "data", "command"}})
    for one in learnt:
        one.pop("certified_on", None)  # salted
        one.get("training", {}).pop("data", None)
    assert learnt[0] == learnt[1]


def test_missing_outcomes_are_refused_with_the_option_that_leaves_them_out(evenhand, not_due):
    told = "due.csv: column 'event' has 120 missing values, the first in row 3; drop such rows"
    for args in (("audit", *COLUMNS["binary"]), ("fit", "--target", "event", "--out", "m")):
        said = evenhand(args[0], "due.csv", *args[1:]).complaint()
        assert f"{told} with --drop-missing" in said
    Path("parts").mkdir()
    make_table().to_csv("parts/a.csv", index=False)
    said = evenhand("audit", "parts", *COLUMNS["binary"], "--drop-missing").complaint()
    assert "--drop-missing needs a table in memory" in said
    rows = pd.read_csv("due.csv")
    rows.loc[[2, 3], "chance"] = [np.nan, 1.5]
    rows.to_csv("due.csv", index=False)
    done = evenhand("audit", "due.csv", *COLUMNS["binary"], "--drop-missing")
    assert "due.csv without rows that lack 'event': column 'chance', row 3 must lie" in done.err
    rows.assign(event=None).to_csv("none.csv", index=False)
    said = evenhand("audit", "none.csv", *COLUMNS["binary"], "--drop-missing").complaint()
    assert "none.csv: column 'event' has 600 missing values, the first in row 1; drop such" in said
