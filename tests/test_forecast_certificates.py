"""Stored certificates of given forecasts have the link, the columns and the kind of outcome."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand import InputError, store
from evenhand.links import Entropic


def written(folder: Path, **forecasts: Any) -> Path:
    certificate = {"link": "entropic", "alpha": 0.1, "forecasts": forecasts}
    store.write_forecast_certificate(certificate, folder, b"<p>")
    return folder


def test_the_kind_of_outcome_is_that_of_the_forecasts(tmp_path: Path) -> None:
    counts = written(tmp_path / "a", kind="pmf", columns=["p0", "p1", "p2"], outcome="count")
    read = store.read_forecast_certificate(counts)
    assert (read.kind, read.columns) == ("pmf", ("p0", "p1", "p2"))
    assert (read.link, str(read.outcome)) == (Entropic(0.1), "count")


def test_certificates_without_a_kind_of_outcome_are_of_continuous_ones(tmp_path: Path) -> None:
    folder = written(tmp_path / "a", kind="samples", columns=["s1", "s2"])
    assert str(store.read_forecast_certificate(folder).outcome) == "continuous"


@pytest.mark.parametrize("forecasts", [{"outcome": "amount"}, {"outcome": 3}, {"columns": None}])
def test_a_certificate_with_other_values_is_damaged(tmp_path: Path, forecasts: dict) -> None:
    folder = written(tmp_path / "a", **({"kind": "pmf", "columns": ["p0", "p1"]} | forecasts))
    with pytest.raises(InputError, match=r"certificate.json is damaged .*certify the forecasts"):
        store.read_forecast_certificate(folder)


def test_an_edited_certificate_is_refused(tmp_path: Path) -> None:
    folder = written(tmp_path / "a", kind="pmf", columns=["p0", "p1"], outcome="count")
    path = folder / "certificate.json"
    content = json.loads(path.read_text())
    content["forecasts"]["outcome"] = "continuous"
    path.write_text(json.dumps(content))
    with pytest.raises(InputError):
        store.read_forecast_certificate(folder)
