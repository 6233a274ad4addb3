"""The JSON of watches and its schema, which is part of the package and of the documentation."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from browser.watch_examples import WATCHES
from evenhand.monitoring import Watch, watch_schema

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


def test_a_watch_before_its_first_row_fulfils_the_schema() -> None:
    CHECK.validate(json.loads(Watch(groups=["sex"], period="week", horizon=30).to_json()))


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
