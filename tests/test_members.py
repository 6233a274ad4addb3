"""Members of the groups that an audit lists, and the data that its page embeds."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from command_outcome import Command
from evenhand import Forecast, InputError, audit, audit_pit
from evenhand.audits import MOST_PEOPLE, Audit, OffGroup, member_lists, without_rows
from evenhand.report import audit_html
from evenhand.scale import ColumnSubject, audit_parts

N = 600
QUICK: dict[str, Any] = {
    "masses": (1.0,),
    "learned_masses": (0.2,),
    "n_simulations": 2,
    "random_state": 0,
}


def people(n: int = N) -> tuple[pd.DataFrame, np.ndarray[Any, np.dtype[np.float64]]]:
    """Return features and outcomes; forecasts of N(0, 1) are far too low for those over 50."""
    random = np.random.default_rng(3)
    X = pd.DataFrame(
        {"age": random.uniform(20, 80, n).round(), "sex": random.choice(["f", "m"], n)}
    )
    return X, random.normal(size=n) + 1.5 * (X["age"] > 50).to_numpy()


def made(**options: Any) -> Audit:
    X, y = people()
    forecast = Forecast.from_normal(np.zeros(N), np.ones(N))
    return audit(forecast, X, y, groups=["sex"], **(QUICK | options))


IDS = [f"p{i:03}" for i in range(N - 3)] + ["=1+1", 'a "b"', "c,d"]


@pytest.fixture(scope="module")
def found() -> Audit:
    return made(ids=IDS)


def data_of(page: str) -> tuple[str, Any]:
    """Return the data of a page, as text and parsed."""
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    return text, json.loads(text)


def test_members_are_the_rows_that_the_rule_of_a_group_selects(found: Audit) -> None:
    X, _ = people()
    assert found.off_groups
    members = found.members
    assert list(members) == ["group", "mass", "row", "id"]
    n_ruled = 0
    for group in found.off_groups:
        own = members[members["group"] == group.name]
        assert [IDS[row] for row in own["row"]] == own["id"].tolist()
        if group.rule is not None and group.mass is None:
            n_ruled += 1
            assert own["row"].tolist() == np.flatnonzero(group.rule.mask(X)).tolist()
    assert n_ruled >= 2
    learned = members[members["mass"] == 0.2]
    assert learned["row"].tolist() == found.learned_rows["row"].tolist()


def test_without_ids_members_are_known_by_row_alone(found: Audit) -> None:
    plain = without_rows(found)
    assert plain.members["id"].isna().all()
    assert len(plain.members) > 0
    _, data = data_of(plain.to_html())
    assert "members" not in data
    assert "data-list" not in plain.to_html()


def test_members_are_numbered_by_the_rows_of_the_given_table() -> None:
    X, _ = people()
    weights = np.ones(N)
    weights[:100] = 0.0
    some = made(sample_weight=weights, ids=IDS)
    for group in some.off_groups or ():
        if group.rule is not None and group.mass is None:
            rows = np.flatnonzero(group.rule.mask(X))
            assert group.rows is not None
            assert group.rows.tolist() == rows[rows >= 100].tolist()
            assert group.ids == tuple(IDS[row] for row in group.rows)
    learned = some.members[some.members["mass"] == 0.2]
    assert len(learned) > 0
    assert learned["row"].tolist() == some.learned_rows["row"].tolist()


def test_rows_of_weight_0_are_no_rows_of_people() -> None:
    weights = np.ones(N)
    weights[:101] = 0.0
    some = made(sample_weight=weights, cluster=np.arange(N) // 2)
    assert some.n_samples == (N - 100) // 2
    for table in (some.members, some.examples):
        assert table["row"].min() >= 101


def test_ids_must_be_one_per_row() -> None:
    with pytest.raises(
        InputError, match=re.escape(f"ids must have one id per row ({N}), got 2; pass")
    ):
        made(ids=["a", "b"])
    with pytest.raises(InputError, match="ids must have one id per row"):
        audit_pit(np.linspace(0.01, 0.99, 50), ids=[1], **QUICK)


def embedded(data: Any, place: int) -> list[str]:
    """Return the ids of a list of the page, decoded as docs/report.rst describes."""
    members = data["members"]
    bits = base64.b64decode(members["groups"][place]["bits"])
    cells = [cell for i, cell in enumerate(members["ids"]) if bits[i // 8] >> (i % 8) & 1]
    return [row[0] for row in csv.reader(io.StringIO("\n".join(cells)))]


def test_a_page_embeds_the_ids_of_members(found: Audit) -> None:
    page = found.to_html()
    _, data = data_of(page)
    listed = data["members"]["groups"]
    assert [one["name"] for one in listed] == [one.name for one in found.off_groups or ()]
    for place, group in enumerate(found.off_groups or ()):
        # a text that a spreadsheet would compute is written after an apostrophe
        expected = [{"=1+1": "'=1+1"}.get(one, one) for one in group.ids or ()]
        assert embedded(data, place) == expected
        assert listed[place]["n"] == len(expected)
    buttons = re.findall(r'data-list="(\d+)">Download ([\d,]+) ids \(csv\)<', page)
    assert buttons
    for place, n in buttons:
        assert int(n.replace(",", "")) == listed[int(place)]["n"]


def test_ids_are_left_out_of_a_page_without_rows(found: Audit) -> None:
    page = found.to_html(rows=False)
    assert "members" not in data_of(page)[1]
    assert "data-list" not in page
    # nor does it name example people, who are in the JSON of all rows
    shown = [person["id"] for person in found.to_dict()["examples"]]
    assert set(shown) <= set(IDS)
    values = data_of(page)[1], json.loads(found.to_json(rows=False))
    assert [person["id"] for one in values for person in one["examples"]] == [None] * 2 * len(shown)
    assert not any(f">{one}" in page for one in shown)


def test_ids_of_very_many_people_are_not_embedded(found: Audit) -> None:
    rows = np.arange(MOST_PEOPLE + 1)
    ids = tuple(map(str, rows))
    many = OffGroup("many", None, rows=rows, ids=ids)
    lists = member_lists([many])
    assert lists is not None
    assert (lists.n_people, lists.ids, lists.groups) == (MOST_PEOPLE + 1, (), ())
    fewer = member_lists([replace(many, rows=rows[1:], ids=ids[1:])])
    assert fewer is not None
    assert len(fewer.ids) == MOST_PEOPLE
    said = f"{MOST_PEOPLE + 1:,} people"
    assert said in audit_html(found.to_dict(), members=lists)


def test_the_hash_of_a_page_is_that_of_its_data(found: Audit) -> None:
    page = found.to_html()
    text, data = data_of(page)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert f"sha256 of the embedded data: {digest}" in page
    # the data have one canonical form, and contain what the JSON of the audit does
    again = json.dumps(data, sort_keys=True, separators=(",", ":")).replace("<", "\\u003c")
    assert again == text
    values = {key: value for key, value in found.to_dict().items() if key != "rows"}
    # a scanned group that is a named one, too, is a row of the named groups
    same = {row["scanned_as"] for row in values["groups"]} - {None}
    assert same == {"sex = f", "sex = m"}
    values["scan"] = [row for row in values["scan"] if row["group"] not in same]
    assert {key: data[key] for key in values} == json.loads(json.dumps(values))
    other = audit_html(found.to_dict() | {"target": "another"})
    assert digest not in other


def test_groups_with_ids_open(found: Audit) -> None:
    page = found.to_html()
    section = page.partition('<section id="groups">')[2].partition("</section>")[0]
    opened = re.findall(r'<tr class="more">(.*?)</tr>', section, re.S)
    named = {one.name for one in found.off_groups or ()} & {*found.groups["group"]}
    assert len(opened) == len(named) > 0
    for part in opened:
        assert part.count("<details><summary>Show ids<") == 1
        assert part.count("<button") == 1
    # a page without ids has nothing to open
    assert '<tr class="more">' not in found.to_html(rows=False)


def test_tables_contain_the_members(found: Audit, tmp_path: Path) -> None:
    found.to_csv(tmp_path)
    members = pd.read_csv(tmp_path / "members.csv", dtype={"id": str})
    assert len(members) == len(found.members)
    assert members["row"].tolist() == found.members["row"].tolist()
    assert set(members["id"]) <= {*IDS, "'=1+1"}


def test_an_audit_of_parts_in_memory_knows_its_members(tmp_path: Path) -> None:
    X, y = people()
    table = X.assign(y=y, mean=0.0, std=1.0, person=IDS)
    for part, rows in enumerate(np.split(np.arange(N), 2)):
        table.iloc[rows].to_parquet(tmp_path / f"{part}.parquet")
    options = {key: value for key, value in QUICK.items() if key != "n_simulations"}
    subject = ColumnSubject("mean", "std")
    found = audit_parts(subject, tmp_path, "y", id_column="person", **options)
    (over,) = [one for one in found.off_groups or () if one.name.startswith("age > ")][:1]
    assert over.rule is not None
    assert over.rows is not None
    assert over.rows.tolist() == np.flatnonzero(over.rule.mask(X)).tolist()
    assert over.ids == tuple(IDS[row] for row in over.rows)


def test_the_command_lists_members_by_id(tmp_path: Path, evenhand: Command) -> None:
    X, y = people(300)
    table = X.assign(y=y, mu=0.0, sigma=1.0, person=IDS[-300:])
    table.to_csv(tmp_path / "t.csv", index=False)
    given = ("--target", "y", "--mean", "mu", "--std", "sigma", "--id", "person")
    out = ("--out", tmp_path / "r.html", "--tables", tmp_path / "tables")
    assert evenhand("audit", tmp_path / "t.csv", *given, *out).code == 0
    _, data = data_of((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert len(data["members"]["ids"]) > 100
    assert "id" in pd.read_csv(tmp_path / "tables" / "members.csv")
    assert evenhand("audit", tmp_path / "t.csv", *given, *out, "--no-rows").code == 0
    for path in (tmp_path / "tables").glob("*.csv"):
        content = pd.read_csv(path) if path.stat().st_size > 1 else pd.DataFrame()
        assert "id" not in content or content["id"].isna().all()
    _, data = data_of((tmp_path / "r.html").read_text(encoding="utf-8"))
    assert "members" not in data
