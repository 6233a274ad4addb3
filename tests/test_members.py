"""Members of groups, which tables list and no page contains, and the data that a page embeds."""

import hashlib
import json
import re

import numpy as np
import pandas as pd
import pytest

from complaints import refused
from evenhand import Forecast, ForecastColumns, Outcomes, Watch, audit, audit_pit
from evenhand.audits import Audit
from evenhand.monitoring import Rows
from evenhand.scale import audit_parts
from evenhand.tables import GroupRule
from parts_examples import QUICK_AUDIT, searching
from test_golden_pages import data_of
from test_html import data_text

N = 600
QUICK = searching(QUICK_AUDIT, learned_masses=(0.2,), masses=(1.0,))


def people(n=N):
    """Return features and outcomes; forecasts of N(0, 1) are far too low for those over 50."""
    random = np.random.default_rng(3)
    X = pd.DataFrame(
        {"age": random.uniform(20, 80, n).round(), "sex": random.choice(["f", "m"], n)}
    )
    return X, random.normal(size=n) + 1.5 * (X["age"] > 50).to_numpy()


def made(ids=None, **known):
    X, y = people()
    forecast = Forecast.from_normal(np.zeros(N), np.ones(N))
    return audit(forecast, X, Outcomes(y, **known), groups=["sex"], ids=ids, **QUICK)


IDS = [f"p{i:03}" for i in range(N - 3)] + ["=1+1", 'a "b"', "c,d"]


@pytest.fixture(scope="module")
def found():
    return made(ids=IDS)


def test_members_are_the_rows_that_the_rule_of_a_group_selects(found):
    X, _ = people()
    assert found.off
    members = found.members
    assert list(members) == ["group", "mass", "row", "id"]
    n_ruled = 0
    for group in found.off:
        own = members[members["group"] == group.group]
        assert [IDS[row] for row in own["row"]] == own["id"].tolist()
        if group.rule is not None and group.mass is None:
            n_ruled += 1
            rule = GroupRule.from_state(group.rule)
            assert own["row"].tolist() == np.flatnonzero(rule.mask(X)).tolist()
    assert n_ruled >= 2
    learned = members[members["mass"] == 0.2]
    assert learned["row"].tolist() == found.learned_rows["row"].tolist()


def test_members_are_numbered_by_the_rows_of_the_given_table():
    X, _ = people()
    weights = np.ones(N)
    weights[:100] = 0.0
    some = made(ids=IDS, weight=weights)
    ruled = [one for one in some.off if one.rule is not None and one.mass is None]
    assert ruled
    for group in ruled:
        rows = np.flatnonzero(GroupRule.from_state(group.rule).mask(X))
        own = some.members[some.members["group"] == group.group]
        assert own["row"].tolist() == rows[rows >= 100].tolist()
        assert own["id"].tolist() == [IDS[row] for row in own["row"]]
    learned = some.members[some.members["mass"] == 0.2]
    assert len(learned) > 0
    assert learned["row"].tolist() == some.learned_rows["row"].tolist()


def test_rows_of_weight_0_are_no_rows_of_people():
    weights = np.ones(N)
    weights[:101] = 0.0
    some = made(weight=weights, person=np.arange(N) // 2)
    assert some.n_samples == (N - 100) // 2
    assert some.members["row"].min() >= 101


def test_ids_must_be_one_per_row():
    refused(re.escape(f"ids must have one id per row ({N}), got 2; pass"), made, ids=["a", "b"])
    refused("ids must have one id per row", audit_pit, np.linspace(0, 1, 50), ids=[1], **QUICK)


def test_no_page_contains_the_id_of_anybody(tmp_path, evenhand):
    X, y = people()
    ids = [f"Q{i:03}-patient" for i in range(N)]
    table = X.assign(y=y, mu=1.5 * (X["age"] > 50), zero=0.0, sigma=1.1, person=ids)
    table.to_csv(tmp_path / "t.csv", index=False)
    given = (tmp_path / "t.csv", "--target", "y", "--id", "person", "--forecast")
    made = [tmp_path / "audit.html", tmp_path / "comparison.html", tmp_path / "model/report.html"]
    for out in (tmp_path / "a.json", made[0]):
        more = ("--features", "age,sex", "--out", out, "--tables", tmp_path / "tables")
        done = evenhand("audit", *given, "mean=zero,std=sigma", *more).done()
    # the tables list them
    assert re.search(r"\d+ tables written to", done.err)
    listed = pd.read_csv(tmp_path / "tables" / "members.csv")["id"]
    assert len(listed) > 100
    assert set(listed) <= set(ids)
    twice = (tmp_path / "a.json", tmp_path / "a.json")
    assert evenhand("compare", *twice, "--out", made[1]).code == 0
    goal = ("mean=mu,std=sigma", "--goal", 0.35, "--out", tmp_path / "model")
    assert evenhand("randomize", *given, *goal).code == 0
    # also of an audit of parts, one that was read from JSON, and a watch
    parts = audit_parts(ForecastColumns("mu", "sigma"), tmp_path / "t.csv", "y", id_column="person")
    watched = Watch(matures_after="5d")
    days = np.datetime64("2026-01-01") + np.arange(N) // 50
    watched.update(Rows.of(days, np.linspace(0.01, 0.99, N), id=ids))
    pages = [parts.to_html(), Audit.read(tmp_path / "a.json").to_html(), watched.to_html()]
    pages += [page.read_text(encoding="utf-8") for page in [*made, tmp_path / "a.json"]]
    assert [page.count("-patient") for page in pages] == [0] * 7


def test_the_hash_of_a_page_is_that_of_its_data(found):
    page = found.to_html()
    text, data = data_text(page), data_of(page)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert f"sha256 of the embedded data: {digest}" in page
    # the data have one canonical form, and contain what the JSON of the audit does
    again = json.dumps(data, sort_keys=True, separators=(",", ":")).replace("<", "\\u003c")
    assert again == text
    values = found.to_dict()
    # of scanned groups those that the page lists
    listed = {row["group"] for row in data["scan"]}
    assert listed
    values["scan"] = [row for row in values["scan"] if row["group"] in listed]
    assert data == values
    assert digest not in found.with_rows(target="another").to_html()
