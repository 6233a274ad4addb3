"""The loop by command, without pandas in between: audit, repair, predict, compare, prove, serve."""

import json
import re
import subprocess
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from command_outcome import key_file

LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
TIMES = (2, 5, 10, 20, 40)


def make_table(seed, n, shift=0.8):
    """Return outcomes of each kind with forecasts in columns, which are too low for sex f."""
    random = np.random.default_rng(seed)
    x = random.normal(size=n)
    sex = random.choice(["f", "m"], n)
    off = np.where(sex == "f", shift, 0.0)
    rate = np.exp(1 + 0.7 * x)
    none = stats.logistic.cdf(-x)
    amount = np.exp(2 + 1.5 * x + off + 0.5 * random.normal(size=n))
    days = np.exp(2 + x + off + random.normal(size=n))
    last = random.uniform(19, 60, n)
    columns = {
        "id": [f"p{seed}-{i}" for i in range(n)],
        "x": x.round(3),
        "sex": sex,
        "event": (random.uniform(size=n) < stats.logistic.cdf(x + off)).astype(int),
        "chance": stats.logistic.cdf(x),
        "visits": random.poisson(rate * np.exp(off)),
        "rate": rate,
        "none": none,
        "cost": np.where(random.uniform(size=n) < none, 0, amount),
        **{f"a{q}": np.exp(2 + 1.5 * x + 0.5 * stats.norm.ppf(q)) for q in LEVELS},
        "days": np.minimum(days, last),
        "died": (days <= last).astype(int),
        **{f"s{t}": stats.norm.sf(np.log(t) - 2 - x) for t in TIMES},
        "mu": 50 + 10 * x,
        "sigma": 3.0,
        "loss": 50 + 10 * x + 3 * (off + random.normal(size=n)),
    }
    return pd.DataFrame(columns)


class Kind(NamedTuple):
    """A target, its forecasts, the columns that predict writes of them, and what is kept."""

    target: str
    given: str
    written: str
    keep: str


KINDS = {
    "yes/no": Kind("event", "probability=chance", "probability=probability", "chance"),
    "count": Kind("visits", "mean=rate,outcome=count", "pmf=p", "rate"),
    "amount": Kind(
        "cost",
        "chance_of_zero=none,quantiles=a",
        "chance_of_zero=chance_of_zero,quantiles=positive_q",
        ",".join(["none", *(f"a{q}" for q in LEVELS)]),
    ),
    "time": Kind(
        "days",
        "survival=s,event=died,horizon=20",
        "survival=survival_,event=died,horizon=20",
        ",".join(["died", *(f"s{t}" for t in TIMES)]),
    ),
    "continuous": Kind("loss", "mean=mu,std=sigma", "quantiles=q", "mu,sigma"),
}


ODD = 'a --b\'s "f" {x}, y'
"""A label whose quotes, braces and dashes a command must not break."""


@pytest.fixture
def place(tmp_path, monkeypatch, two_folds):
    """Enter a folder with a key and a table for each step, of other people each."""
    for seed, (name, n) in enumerate({"test": 400, "OTHER": 400, "proof": 600, "new": 20}.items()):
        rows = make_table(seed, n)
        rows["sex"] = rows["sex"].replace("f", ODD)
        rows.to_csv(tmp_path / f"{name}.csv", index=False)
    key_file(tmp_path / "key")
    monkeypatch.chdir(tmp_path)


def group_of(audit):
    (found,) = (row for row in audit["groups"] if row["group"] == f"sex = {ODD}")
    return found


def run_pasted(evenhand, *, is_proof):
    """Run each command that a page suggests; the last one randomizes where a proof is possible."""
    page = Path("audit.html").read_text(encoding="utf-8")
    program = 'evenhand() { printf "%s\\0" "$@"; }\n'
    commands = []
    for line in re.findall(r"<code>(evenhand [^<]*)</code></pre>", page):
        shown = subprocess.check_output(["sh", "-c", program + unescape(line)])
        words = shown.decode().split("\0")[:-1]
        groups = [value for option, value in pairwise(words) if option == "--by"]
        assert len(set(groups)) == len(groups)
        made = evenhand(*words, "--json")
        # 3: certified forecasts would not be worth their price
        assert made.code == 0 or (made.code == 3 and words[0] == "randomize"), (words, made.err)
        if words[0] == "recalibrate":
            checked = json.loads(made.out)["check"]
            assert len(checked) >= 1 + len(groups)
            assert min(row["n"] for row in checked) > 0
        commands.append(words)
    assert commands[0][0] == "recalibrate"
    if is_proof:
        assert commands[-1][0] == "randomize"
        assert "--id" in commands[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_forecasts_are_audited_repaired_compared_certified_and_served(kind, place, evenhand):
    target, given, written, keep = KINDS[kind]

    def audit(table, forecast, *more):
        options = ("--target", target, "--groups", "sex", "--features", "x,sex", "--json", *more)
        return json.loads(evenhand("audit", table, "--forecast", forecast, *options).done().out)

    before = audit("test.csv", given, "--id", "id", "--out", "audit.html")
    run_pasted(evenhand, is_proof=kind != "yes/no")
    assert before["status"]["verdict"] == "problem found"
    repair = ("--target", target, "--forecast", given, "--by", "sex", "--out", "repaired")
    evenhand("recalibrate", "OTHER.csv", *repair).done()
    kept = f"x,sex,{target},{keep}"
    to = ("--id", "id", "--keep", kept, "--out", "out.csv")
    predicted = evenhand("predict", "test.csv", "--forecast", "repaired", *to).done()
    assert f"an audit reads them by --forecast {written}\n" in predicted.err
    after, of_folder = audit("out.csv", written), audit("test.csv", "repaired")
    assert after["outcome_kind"] == before["outcome_kind"]
    assert group_of(after)["n"] == group_of(before)["n"]
    assert group_of(after)["error"] < 0.4 * group_of(before)["error"]
    # between the quantiles that are written, a distribution is interpolated
    digits = 1e-6 if kind in ("yes/no", "count") else 0.02
    assert group_of(after)["error"] == pytest.approx(group_of(of_folder)["error"], abs=digits)

    both = ("--target", target, "--forecast", given, "--forecast", written, "--groups", "sex")
    compared = evenhand("compare", "out.csv", *both, "--features", "x,sex", "--json").done()
    change = group_of(json.loads(compared.out))
    # changes of times that are cut off have no paired intervals
    assert change["outcome"] == ("problem before" if kind == "time" else "better")
    measure = "km_error" if kind == "time" else "error"
    (error,) = (one for one in change["changes"] if one["measure"] == "error")
    for name, found in {"before": before, "after": after}.items():
        assert error[name] == pytest.approx(group_of(found)[measure], abs=1e-9)

    proof = ("--target", target, "--forecast", "repaired", "--id", "id", "--out", "proven")
    goal = ("--seed", 0, *(() if kind == "yes/no" else ("--goal", 0.35)))
    certified = evenhand("randomize", "proof.csv", *proof, *goal, "--json").done()
    proven = json.loads(certified.out)
    assert proven["certified_on"]["n"] == 600
    assert f"with seed {proven['seed']};" in certified.err
    assert kind == "yes/no" or proven["group_error"] <= 0.35
    draw = () if kind == "yes/no" else ("--key-file", "key", "--context", "2026-11")
    serve = ("predict", "new.csv", "--forecast", "proven", "--id", "id", "--out", "served.csv")
    evenhand(*serve, *draw).done()
    served = pd.read_csv("served.csv")
    assert served["id"].tolist() == [f"p3-{i}" for i in range(20)]
    assert ("r" in served) == (kind != "yes/no")
    # of these forecasts there are reasons to keep a record
    logged = ("--key-file", "key", "--context", "2026-12", "--log", "log.sqlite")
    evenhand(*serve, *logged).done()
    (number,) = pd.read_csv("served.csv", dtype=str)["forecast_id"][7:8]
    same = ("--key-file", "key", "--features", "new.csv", "--id", "id")
    evenhand("replay", "log.sqlite", number, "--forecast", "proven", *same).done()


AUDITS = {
    "no horizon": ("days", "survival=s,event=died", "test.csv"),
    "repaired before": ("loss", "repaired/", "test.csv"),
    "parts": ("loss", "mean=mu,std=sigma", "parts"),
}
"""Targets, forecasts and tables of other audits."""


@pytest.mark.parametrize("name", AUDITS)
def test_each_command_that_an_audit_suggests_runs_when_pasted(name, place, evenhand):
    target, forecast, table = AUDITS[name]
    if name == "parts":
        Path("parts").mkdir()
        pd.read_csv("test.csv").to_parquet("parts/a.parquet")
    if name == "repaired before":
        repair = ("--target", target, "--forecast", "mean=mu,std=sigma", "--out", forecast)
        evenhand("recalibrate", "proof.csv", *repair).done()
    options = ("--target", target, "--forecast", forecast, "--features", "x,sex", "--groups", "sex")
    evenhand("audit", table, *options, "--id", "id", "--out", "audit.html").done()
    run_pasted(evenhand, is_proof=name != "no horizon")
