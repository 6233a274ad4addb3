"""The JSON of watches and its schema, which is part of the package and of the documentation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest

from browser.watch_examples import WATCHES
from evenhand.monitoring import Rows, Watch, watch_schema

PAGE = Path(__file__).parents[1] / "docs" / "watch-schema.rst"
SCHEMA = watch_schema()
CHECK = jsonschema.Draft202012Validator(SCHEMA)


def objects(node: Any) -> list[dict[str, Any]]:
    """Return every object type of the schema."""
    if isinstance(node, list):
        return [found for item in node for found in objects(item)]
    if not isinstance(node, dict):
        return []
    own = [node] if "properties" in node and node.get("type") == "object" else []
    return own + [found for item in node.values() for found in objects(item)]


@pytest.mark.parametrize("made", WATCHES.values(), ids=WATCHES)
def test_examples_fulfil_the_schema(made: Callable[[], Any]) -> None:
    CHECK.validate(made())


def served(n_days: int, *, is_event: bool = False) -> Rows:
    """Return 20 rows a day, of women with outcomes that become higher, some missing."""
    random = np.random.default_rng(0)
    day = np.repeat(np.arange(n_days), 20)
    sex = random.choice(["woman", "man"], day.size)
    p = random.uniform(0.2, 0.8, day.size)
    pit = random.random(day.size) ** np.where((sex == "woman") & (day > 10), 0.4, 1.0)
    time = np.datetime64("2026-01-01", "us") + day * np.timedelta64(1, "D")
    missing = random.random(day.size) < 0.1
    delays = np.where(missing, 50, random.integers(1, 29, day.size))
    more: dict[str, Any] = {"groups": {"sex": sex}, "horizon": 30}
    more["recorded"] = time + delays * np.timedelta64(1, "D")
    if is_event:
        y = (random.random(day.size) < p).astype(float)
        return Rows.of(time, outcome=y, probability=p, **more)
    return Rows.of(time, pit, r=random.random(day.size), **more)


def test_watches_fulfil_the_schema() -> None:
    watch = Watch(groups=["sex"], period="week", horizon=30)
    CHECK.validate(json.loads(watch.to_json()))
    watch.update(served(60))
    assert watch.alarms
    CHECK.validate(json.loads(watch.to_json()))
    assert "In the group sex = woman" in " ".join(watch.summary().split())
    assert "Alarm.</strong>" in watch.to_html()


def test_watches_of_probabilities_fulfil_the_schema() -> None:
    watch = Watch(groups=["sex"], horizon=30)
    watch.update(served(10, is_event=True))
    CHECK.validate(json.loads(watch.to_json()))
    assert "bias (points)" in watch.to_html()


def test_the_schema_is_one_of_draft_2020_12_and_names_every_key() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert len(objects(SCHEMA)) >= 10
    for one in objects(SCHEMA):
        assert one["additionalProperties"] is False
        assert set(one["required"]) <= set(one["properties"])


def test_the_page_names_every_key() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert f'"{SCHEMA["properties"]["schema"]["const"]}"' in text
    code = " ".join(re.findall(r"``(.*?)``", text, re.DOTALL))
    words = set(re.findall(r"\w+", code))
    assert [key for one in objects(SCHEMA) for key in one["properties"] if key not in words] == []
