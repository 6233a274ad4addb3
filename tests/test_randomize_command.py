"""`evenhand randomize` of forecasts in columns: certificates, and the links that predict serves."""

import json
import re
import shlex

import numpy as np
import pandas as pd
import pytest

from command_outcome import KEY, key_file, written
from evenhand import Forecast, ForecastColumns, InputError, randomize, store
from evenhand.audits import Audit
from evenhand.certificates import certify_link
from evenhand.draws import KeyedDraws
from evenhand.links import Entropic
from evenhand.selection.target import largest_alpha

ROWS = 400
NORMAL = "mean=mu,std=sigma"


def make_table(seed, n=ROWS):
    """Return forecasts of a model, with outcomes; it is off for old people."""
    random = np.random.default_rng(seed)
    mu, sigma = random.normal(50, 10, n), random.uniform(2.0, 4.0, n)
    age = random.integers(20, 90, n)
    loss = (mu + sigma * random.normal(size=n) + 2.0 * (age > 70)).round(4)
    ids = [f"p{seed}-{i}" for i in range(n)]
    return pd.DataFrame({"id": ids, "age": age, "mu": mu, "sigma": sigma, "loss": loss})


OLD = make_table(1)
NEW = make_table(2, 800).drop(columns="loss")


@pytest.fixture
def place(tmp_path):
    written(OLD, tmp_path / "old.csv")
    written(NEW, tmp_path / "new.csv")
    key_file(tmp_path / "key")
    return tmp_path


@pytest.fixture
def no_audit(monkeypatch):
    """Refuse audits, where the report is not what is tested."""

    def refuse(*args, **more):
        raise InputError("not in this test")

    monkeypatch.setattr("evenhand.audits.audit", refuse)


def certify_args(place, *more, given=NORMAL):
    options = ("--target", "loss", "--out", place / "proof", "--seed", 0, "--goal", 0.4)
    return ("randomize", place / "old.csv", "--forecast", given, *options, *more)


def serve_args(place, *more):
    options = ("--id", "id", "--key-file", place / "key", "--out", place / "served.csv")
    return ("predict", place / "new.csv", "--forecast", place / "proof", *options, *more)


def proof_in(place):
    return json.loads((place / "proof" / "certificate.json").read_text())


def test_the_command_certifies_what_randomize_certifies(place, evenhand, monkeypatch):
    audits = []
    to_html = Audit.to_html
    monkeypatch.setattr(Audit, "to_html", lambda found: audits.append(found) or to_html(found))
    written(OLD[["id", "age", "mu", "sigma", "loss"]], place / "old.csv")
    made = evenhand(*certify_args(place, "--id", "id", "--confidence", 0.9, "--group-mass", 0.25))
    assert made.code == 0
    proof = proof_in(place)
    assert proof["statement"] in " ".join(made.out.split())
    subject = ForecastColumns("mu", "sigma")
    chosen = randomize(
        subject,
        OLD[["mu", "sigma"]],
        OLD["loss"],
        goal=0.4,
        group_mass=0.25,
        confidence=0.9,
        random_state=0,
    )
    assert proof["alpha"] == pytest.approx(chosen.alpha, rel=1e-9)
    assert proof["group_error"] == pytest.approx(chosen.group_error, rel=1e-9)
    assert proof["group_error"] <= 0.4
    # a model that is not fitted here is certified on all rows
    assert (proof["n_certifying"], proof["n_learning"]) == (ROWS, 0)
    # the same by hand, from PITs alone
    pit = Forecast.from_normal(OLD["mu"], OLD["sigma"]).pit(OLD["loss"])
    bounds = certify_link(pit, Entropic(1.0), confidence=0.9)
    by_hand = largest_alpha(lambda alpha: bounds.with_link(Entropic(alpha)).group_error(0.25), 0.4)
    assert proof["alpha"] == pytest.approx(by_hand, rel=1e-9)

    assert (proof["goal"], proof["group_mass"], proof["confidence"]) == (0.4, 0.25, 0.9)
    assert proof["data"] == {
        "name": "old.csv",
        "sha256": store.digest((place / "old.csv").read_bytes()),
        "n_rows": ROWS,
    }
    assert proof["target"] == "loss"
    assert proof["command"].startswith("evenhand randomize ")
    model, sha256 = store.load_with_hash(place / "proof")
    assert proof["model_sha256"] == sha256
    assert (model.estimator, model.alpha) == (subject, proof["alpha"])
    on = proof["certified_on"]
    assert (on["n"], on["named_by"]) == (ROWS, "ids")
    assert store.ids_digest(OLD["id"], on["salt"]) == on["sha256"]
    page = (place / "proof" / "report.html").read_bytes()
    assert proof["report_sha256"] == store.digest(page)
    assert b"Alpha was chosen on these same people" in page

    (found,) = audits
    assert (found.name, found.n_samples, found.n_draws) == ("old.csv", ROWS, 64)
    # groups are searched in the columns without forecasts, ids and outcomes
    assert len(found.scan) == 2
    assert all("age" in str(group) for group in found.scan["group"])
    assert found.certificate.group_error(0.25) == pytest.approx(chosen.group_error, rel=1e-9)
    assert not any(f">{one}" in page.decode() for one in OLD["id"])


@pytest.mark.parametrize(("goal", "most"), [("wider", 0.2), ("price", 0.3)])
@pytest.mark.usefixtures("no_audit")
def test_the_most_that_a_cost_certifies(goal, most, place, evenhand):
    options = ("--target", "loss", "--out", place / "proof", "--seed", 0, f"--max-{goal}", most)
    assert evenhand("randomize", place / "old.csv", "--forecast", NORMAL, *options).code == 0
    proof = proof_in(place)
    assert proof[f"max_{goal}"] == most
    assert proof["goal"] is None
    # the smallest alpha whose cost is not larger
    assert 0.95 * most < proof[goal] <= most
    assert 0.3 < proof["group_error"] < 0.45
    both = evenhand(*certify_args(place, f"--max-{goal}", most)).complaint()
    assert f"--goal=0.4 and --max-{goal}={most} are given together" in both


@pytest.mark.usefixtures("no_audit")
def test_rows_of_one_person_count_once(place, evenhand):
    written(OLD.assign(id=[f"p{i // 2}" for i in range(ROWS)]), place / "old.csv")
    assert "'id'" in evenhand(*certify_args(place, "--id", "id")).complaint()
    evenhand(*certify_args(place, "--person", "id")).done()
    assert proof_in(place)["n_certifying"] == ROWS // 2
    assert proof_in(place)["certified_on"]["n"] == ROWS // 2
    assert proof_in(place)["data"]["n_rows"] == ROWS


@pytest.mark.usefixtures("no_audit")
def test_a_certificate_without_a_report_is_written_and_says_so(place, evenhand):
    made = evenhand(*certify_args(place)).done()
    assert "no report was written: not in this test" in made.err
    assert proof_in(place)["report_sha256"] is None


@pytest.mark.usefixtures("no_audit")
def test_a_promise_that_is_not_worth_its_price_is_refused(place, evenhand):
    # all features are worth 0.35 nats
    random = np.random.default_rng(0)
    mu = random.normal(size=900)
    table = pd.DataFrame({"mu": mu, "sigma": 1.0, "loss": mu + random.normal(size=900)})
    written(table, place / "old.csv")
    refused = evenhand(*certify_args(place, "--goal", 0.2))
    assert refused.code == 3
    assert refused.err == "error: old.csv: not worth its price; nothing was written\n"
    text = " ".join(refused.out.split())
    assert text.startswith("NOT WORTH IT: at 20 points, the forecast is worse than one that")
    assert not (place / "proof").exists()
    # what is suggested runs when pasted
    (command,) = re.findall(r"^  evenhand (.*)$", refused.out, re.MULTILINE)
    evenhand(*shlex.split(command)).done()
    named = re.search(r"worth its price is about (0\.\d+)\.", text)
    assert evenhand(*certify_args(place, "--goal", named[1])).code == 0
    as_json = evenhand(*certify_args(place, "--goal", 0.2, "--json"))
    assert (as_json.code, json.loads(as_json.out)["goal"]) == (3, 0.2)


@pytest.mark.usefixtures("no_audit")
def test_served_forecasts_are_those_of_the_certified_folder(place, evenhand):
    assert evenhand(*certify_args(place)).code == 0
    inside = evenhand(*serve_args(place, "--out", place / "proof" / "x.csv")).complaint()
    assert "lies in the model" in inside
    # each person's draw has a key and an id
    args = serve_args(place)
    evenhand(*args, "--context", "trial").done()
    served, alpha = pd.read_csv(place / "served.csv"), proof_in(place)["alpha"]
    base, r = Forecast.from_normal(NEW["mu"], NEW["sigma"]), KeyedDraws(KEY, "trial")(NEW["id"])
    # csv files keep twelve digits at least
    expected = base.randomized(alpha, Entropic(alpha), r).ppf([0.05, 0.5])
    np.testing.assert_allclose(served[["q0.05", "q0.5"]], expected, rtol=1e-11)
    (place / "served.csv").unlink()
    for option in ("--key-file", "--id"):
        at = args.index(option)
        refused = evenhand(*args[:at], *args[at + 2 :]).complaint()
        assert f"{option} is missing" in refused
    path = place / "proof" / "model.json"
    changed, n = re.subn(r'"alpha": 0.', '"alpha": 0.9', path.read_text())
    assert n == 1
    path.write_text(changed)
    refused = evenhand(*args).complaint()
    assert f"{place / 'proof'}" in refused
    assert "hash" in refused
    assert not (place / "served.csv").exists()


REFUSED = {
    "--target loss": "'--forecast'",
    "--forecast mean=mu --target loss": "mean= alone shows no uncertainty; name std= too",
    "--forecast mean=mu,std=sigma,samples=s --target loss": "one kind",
    "--forecast mean=mu,std=sigma": "'--target'",
    "--forecast mean=mu,std=sigma --target lost": "'loss'",
    "--forecast mean=id,std=sigma --target loss": "'id', row 1 must be a number, got 'p1-0'",
    "--forecast mean=mu,std=minus --target loss": "'minus', row 3",
    "--forecast samples=c --target loss": "old.csv: row 1 must have a spread above 0",
    "--forecast mean=loss,std=sigma --target loss": "'loss' is the target",
    "--forecast mean=mu,std=sigma --target event": "column 'event' has only the values 0 and 1",
    "--forecast probability=p --target event --link laplace": "--link: ",
    "--forecast probability=p --target event --goal 0.3": "--goal: ",
}
"""Options of calls, and words of the message."""

WRONG = {
    "--goal 30": "0.3",
    "--confidence 95": "--confidence",
    "--max-wider 9": "at most 2",
    "--link cauchy": "'cauchy'",
    "--seed -3": "--seed",
    "--largest-weight 2": "weight",
}
"""Options that are wrong with right forecasts."""


def test_bad_input_is_one_line_and_nothing_is_written(place, evenhand):
    minus = OLD["sigma"].where(OLD.index != 2, -2.0)
    event = (OLD["loss"] > 50).astype(int)
    written(OLD.assign(minus=minus, c1=1.0, c2=1.0, p=0.5, event=event), place / "old.csv")
    right = f"--forecast {NORMAL} --target loss"
    for line, fact in (REFUSED | {f"{right} {line}": WRONG[line] for line in WRONG}).items():
        args = ("randomize", place / "old.csv", "--out", place / "proof", *line.split())
        assert fact in evenhand(*args).complaint()
        assert not (place / "proof").exists()
