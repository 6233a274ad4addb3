"""Edited audits and folders of other files are refused in one line, and nothing is lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
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
        (("tolerance",), {"error": 0.1}, "tolerance with the keys"),
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
