"""The JSON of audits and its generated schema, what is refused of it, and the pages about it."""

import copy
import functools
import json
import re
from dataclasses import replace

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from built_page import built_page
from complaints import refused
from evenhand import (
    Forecast,
    InputError,
    Outcomes,
    RandomizedRegressor,
    audit,
    audit_pit,
    randomize,
)
from evenhand.audits import Audit, with_sources
from evenhand.monitoring import watch_schema
from evenhand.results import audit_schema
from parts_examples import QUICK_AUDIT, people, searching

QUICK = searching(QUICK_AUDIT, learned_masses=(0.2,))
CHECK = jsonschema.Draft202012Validator(audit_schema())


def forecast(table):
    return Forecast.from_normal(table["mean"].to_numpy(), table["std"].to_numpy())


def given(n=700, known=None, **options):
    table = people(n)
    columns = {"groups": ["sex", "region"], "features": table[["age", "score", "sex"]]}
    y = Outcomes(table["y"], **(known or {}))
    return audit(forecast(table), table, y, **(QUICK | columns | options))


def leaking():
    table = people(700)
    return given(groups={"high": table["y"] > 0}, features=table[["age"]].assign(y2=table["y"]))


def chosen():
    table = people(900)
    model = LinearRegression()
    found = randomize(model, table[["age", "rooms"]], table["y"], max_price=0.2, random_state=0)
    rows = table.iloc[found.certifying]
    return found.audited(audit(found.model, rows[["age", "rooms"]], rows["y"], **QUICK))


def of_model():
    table = people(600)
    model = RandomizedRegressor(LinearRegression(), random_state=0)
    X = table[["age", "rooms"]]
    model.fit(X[:300].clip(20, 60), table["y"][:300])
    found = audit(model, X[300:], table["y"][300:], **QUICK)
    return with_sources(replace(found, ids=list(table["id"][300:])), command="evenhand audit")


def rounded():
    table = people(300)
    return audit(forecast(table), y=table["y"].round(1), **QUICK)


def of_pits():
    pit = np.random.default_rng(0).random(300)
    return audit_pit(pit, X=people(300)[["age"]], groups={"all": [True] * 300}, **QUICK)


def weighted():
    weight = np.random.default_rng(0).integers(0, 3, 700)
    return given(known={"weight": weight, "person": np.arange(700) // 2})


KINDS = (given, weighted, rounded, leaking, of_pits, of_model, chosen)


@functools.cache
def values(kind):
    return kind().to_json()


@pytest.mark.parametrize("kind", KINDS)
def test_audits_fulfil_the_schema_and_are_read_again(kind, tmp_path):
    plain = json.loads(values(kind))
    CHECK.validate(plain)
    (tmp_path / "audit.json").write_text(values(kind), encoding="utf-8")
    found = Audit.read(tmp_path / "audit.json")
    assert json.loads(found.to_json()) == plain
    # with other rows as well, what was proven stays
    assert found.with_rows(name="another").to_dict() == plain | {"name": "another"}


@pytest.mark.parametrize("table", ["groups", "learned"])
def test_a_column_that_the_schema_does_not_name_is_refused(table, tmp_path):
    plain = json.loads(values(given))
    assert plain[table]
    plain[table][0]["another"] = 1
    with pytest.raises(jsonschema.ValidationError, match="another"):
        CHECK.validate(plain)
    (tmp_path / "a.json").write_text(json.dumps(plain))
    at = re.escape(f"at `$.{table}[0]`") if table == "groups" else re.escape(f"at `$.{table}[")
    pattern = f"a.json is not the JSON of an audit.*unknown field `another`.*{at}"
    refused(pattern, Audit.read, tmp_path / "a.json")


def paths(node, start=()):
    if start:
        yield start
    listed = enumerate(node) if isinstance(node, list) else ()
    for key, item in node.items() if isinstance(node, dict) else listed:
        yield from paths(item, (*start, key))


def mutated(text, random):
    plain = json.loads(text)
    places = list(paths(plain))
    # columns of few rows as often as those of many
    names = sorted({place[0] for place in places})
    name = names[random.integers(len(names))]
    some = [place for place in places if place[0] == name]
    *inside, key = some[random.integers(len(some))]
    node = functools.reduce(lambda found, step: found[step], inside, plain)
    others = [None, "text", -1.5, 7, True, [], {}, [[0]], {"a": {"b": None}}, 10**400, "\x1b[31m"]
    match random.integers(6):
        case 0:
            del node[key]
        case 1:
            node[key] = [node[key]]
        case 2:
            node[key] = {"x" * 300: copy.deepcopy(node[key])}
        case 3:
            whole = json.dumps(plain)
            return whole[: random.integers(len(whole))]
        case _:
            node[key] = others[random.integers(len(others))]
    return json.dumps(plain)


def use(found):
    assert json.loads(found.to_json()) == found.to_dict()
    assert str(found.status)
    assert repr(found)
    tables = found.groups, found.scan, found.learned, found.histogram, found.every_group
    assert all(isinstance(table, pd.DataFrame) for table in tables)
    assert found.members.empty
    assert len(found.overall) >= len(found.difference())


@pytest.mark.parametrize("kind", [given, of_model, chosen])
def test_json_with_a_slip_is_read_or_refused_in_a_line(kind, tmp_path):
    random, path = np.random.default_rng(7), tmp_path / "a.json"
    # two of the numbers are of no use after a slip: an audit has thousands
    text = json.dumps(
        {
            key: item[:4] if isinstance(item, list) else item
            for key, item in json.loads(values(kind)).items()
        }
    )
    n_read = 0
    for _ in range(200):
        path.write_text(mutated(text, random), encoding="utf-8")
        try:
            found = Audit.read(path)
        except InputError as error:
            message = str(error)
            assert message.isprintable()
            assert len(message) < 400
            assert re.search(r"at `\$.*`$|\(byte \d+\)'$|truncated'$|required field", message)
        else:
            n_read += 1
            use(found)
    assert 20 < n_read < 120


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[" * 100_000, b'{"schema":"evenhand.audit/2"}', b"null", b"{}"]
)
def test_other_files_are_refused_in_a_line(content, tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    refused("a.json is not the JSON of an audit", Audit.read, path)
    refused("none.json cannot be read: No such file", Audit.read, tmp_path / "none.json")
    refused("cannot be read: Is a directory", Audit.read, tmp_path)


def objects(node):
    if isinstance(node, list):
        return [found for item in node for found in objects(item)]
    if not isinstance(node, dict):
        return []
    own = [node] if "properties" in node and node.get("type") == "object" else []
    return own + [found for item in node.values() for found in objects(item)]


def test_the_schema_of_watches_names_every_key_of_its_objects():
    jsonschema.Draft202012Validator.check_schema(watch_schema())
    assert len(objects(watch_schema())) >= 9
    for one in objects(watch_schema()):
        assert one["additionalProperties"] is False
        assert set(one["required"]) <= set(one["properties"])


def missing(text, schema):
    words = set(re.findall(r"\w+", text))
    return [key for one in objects(schema) for key in one["properties"] if key not in words]


def test_the_page_of_both_layouts_is_made_of_them_and_names_every_key(tmp_path):
    page = built_page(tmp_path, "reference/json", "json_keys").read_text(encoding="utf-8")
    code = " ".join(re.findall(r"<(?:code|strong)[^>]*>(.*?)</(?:code|strong)>", page, re.DOTALL))
    audits, watches = code.split("Watch.to_json")
    assert missing(audits, audit_schema()) == []
    assert missing(watches, watch_schema()) == []
    text = " ".join(page.split())
    assert "W1 distance of the PITs to the uniform distribution" in text
    assert watch_schema()["properties"]["n_late"]["description"] in text
