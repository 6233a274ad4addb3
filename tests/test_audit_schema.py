"""The JSON of audits, and the schemas of audits and watches with the pages that explain them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from evenhand import Forecast, Outcomes, RandomizedRegressor, audit, audit_pit, randomize
from evenhand.audits import Audit, audit_schema, with_people, with_sources
from evenhand.forecast_columns import ForecastColumns
from evenhand.monitoring import watch_schema
from evenhand.scale import audit_parts
from parts_examples import QUICK_AUDIT, people

DOCS = Path(__file__).parents[1] / "docs"
QUICK = QUICK_AUDIT | {"learned_masses": (0.2,)}
CHECK = jsonschema.Draft202012Validator(audit_schema())
BOTH = pytest.mark.parametrize(
    ("schema", "page", "n_objects"),
    [(audit_schema(), "audit-schema.rst", 21), (watch_schema(), "watch-schema.rst", 10)],
    ids=["audit", "watch"],
)


def forecast(table: pd.DataFrame) -> Forecast:
    return Forecast.from_normal(table["mean"].to_numpy(), table["std"].to_numpy())


def given(n: int = 700, known: dict[str, Any] | None = None, **options: Any) -> Audit:
    table = people(n)
    columns = {"groups": ["sex", "region"], "features": table[["age", "score", "sex"]]}
    y = Outcomes(table["y"], **(known or {}))
    return audit(forecast(table), table, y, **(QUICK | columns | options))


def leaking() -> Audit:
    table = people(700)
    return given(groups={"high": table["y"] > 0}, features=table[["age"]].assign(y2=table["y"]))


def chosen() -> Audit:
    table = people(900)
    model = LinearRegression()
    found = randomize(model, table[["age", "rooms"]], table["y"], max_price=0.2, random_state=0)
    held = found.certifying
    rows = table.iloc[held]
    return found.audited(audit(found.model, rows[["age", "rooms"]], rows["y"], **QUICK))


def of_model() -> Audit:
    table = people(600)
    model = RandomizedRegressor(LinearRegression(), random_state=0)
    X = table[["age", "rooms"]]
    model.fit(X[:300].clip(20, 60), table["y"][:300])
    found = audit(model, X[300:], table["y"][300:], **QUICK)
    return with_sources(with_people(found, list(table["id"][300:])), command="evenhand audit")


def in_parts(folder: Path) -> Audit:
    for part in range(2):
        people(300, part).to_parquet(folder / f"{part}.parquet")
    subject = ForecastColumns("mean", "std")
    return audit_parts(subject, folder, "y", groups=["sex"], sample_size=200, masses=(0.2, 1.0))


def rounded() -> Audit:
    table = people(300)
    return audit(forecast(table), y=table["y"].round(1), **QUICK)


def of_pits() -> Audit:
    pit = np.random.default_rng(0).random(300)
    return audit_pit(pit, X=people(300)[["age"]], groups={"all": [True] * 300}, **QUICK)


def weighted() -> Audit:
    weight = np.random.default_rng(0).integers(0, 3, 700)
    return given(known={"weight": weight, "person": np.arange(700) // 2})


KINDS = (given, weighted, rounded, leaking, of_pits, of_model, chosen)


@functools.cache
def values(kind: Callable[[], Audit]) -> str:
    return kind().to_json()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_audits_fulfil_the_schema(kind: Callable[[], Audit]) -> None:
    CHECK.validate(json.loads(values(kind)))


def test_an_audit_of_parts_fulfils_the_schema(tmp_path: Path) -> None:
    CHECK.validate(json.loads(in_parts(tmp_path).to_json()))


def objects(node: Any) -> list[dict[str, Any]]:
    """Return every object type of a schema."""
    if isinstance(node, list):
        return [found for item in node for found in objects(item)]
    if not isinstance(node, dict):
        return []
    own = [node] if "properties" in node and node.get("type") == "object" else []
    return own + [found for item in node.values() for found in objects(item)]


@BOTH
def test_a_schema_is_one_of_draft_2020_12_and_names_every_key(
    schema: dict[str, Any], page: str, n_objects: int
) -> None:
    jsonschema.Draft202012Validator.check_schema(schema)
    assert len(objects(schema)) >= n_objects
    for one in objects(schema):
        assert one["additionalProperties"] is False
        assert set(one["required"]) <= set(one["properties"])


@pytest.mark.parametrize("table", ["groups", "learned"])
def test_a_column_that_the_schema_does_not_name_is_refused(table: str) -> None:
    plain = json.loads(values(given))
    assert plain[table]
    plain[table][0]["another"] = 1
    with pytest.raises(jsonschema.ValidationError, match="another"):
        CHECK.validate(plain)


@BOTH
def test_the_page_names_every_key_and_column(
    schema: dict[str, Any], page: str, n_objects: int
) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert f'"{schema["properties"]["schema"]["const"]}"' in text
    code = " ".join(re.findall(r"``(.*?)``", text, re.DOTALL))
    words = set(re.findall(r"\w+", code))
    assert [key for one in objects(schema) for key in one["properties"] if key not in words] == []
