"""Edited audits and folders of other files are refused in one line, and nothing is lost."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand import Forecast, InputError, audit, compare

Y = np.random.default_rng(0).normal(size=200)
AUDIT = audit(
    Forecast.from_normal(np.zeros(200), np.ones(200)),
    np.linspace(0, 1, 200)[:, None],
    Y,
    groups={"half": np.arange(200) < 100},
    random_state=0,
)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("n_samples",), None, "n_samples that is not a number: None"),
        (("scores", 0, "value"), "high", "scores, row 0: 'value' that is not a number: 'high'"),
        (("groups", 1, "n"), True, "groups, row 1: 'n' that is not a number: True"),
        (("scan",), [[]], r"scan, row 0 that is not an object: \[\]"),
        (("worst_groups",), {}, "worst_groups that is not a list"),
        (("tolerance",), {"error": 0.1}, "tolerance that is not a number"),
        (("outcome_kind",), "scores", "outcome_kind that is none of"),
        (("provenance",), "none", "provenance that is not an object: 'none'"),
    ],
)
def test_an_edited_audit_is_refused_with_its_place(
    tmp_path: Path, place: tuple[Any, ...], value: Any, message: str
) -> None:
    old, new = (tmp_path / name for name in ("old.json", "new.json"))
    for path in (old, new):
        AUDIT.to_json(path)
    values = json.loads(new.read_text())
    inner = values
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    new.write_text(json.dumps(values))
    with pytest.raises(InputError, match=message) as caught:
        compare(old, new)
    assert "\n" not in str(caught.value)


def test_tables_json_of_others_is_not_replaced(tmp_path: Path) -> None:
    mark = tmp_path / "tables.json"
    for text in ("{}", "mine", '{"schema": "evenhand.tables/1", "files": null}'):
        mark.write_text(text)
        with pytest.raises(InputError, match=r"'tables\.json', which evenhand did not write"):
            AUDIT.to_csv(tmp_path)
        assert mark.read_text() == text
    assert [path.name for path in tmp_path.iterdir()] == ["tables.json"]


def test_tables_of_an_audit_are_not_replaced_by_those_of_a_comparison(tmp_path: Path) -> None:
    AUDIT.to_csv(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(InputError, match="contains other tables"):
        compare(AUDIT, replace(AUDIT, name="other")).to_csv(tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_texts_are_no_formulas_of_a_spreadsheet(tmp_path: Path) -> None:
    names = ["=1+1", "@x", "-5", "+cmd", "\tx", "a=b"]
    table = AUDIT.groups.iloc[[1] * len(names)].assign(group=names)
    replace(AUDIT, groups=table).to_csv(tmp_path)
    written = pd.read_csv(tmp_path / "groups.csv")["group"].tolist()
    assert written == ["'=1+1", "'@x", "-5", "'+cmd", "'\tx", "a=b"]
