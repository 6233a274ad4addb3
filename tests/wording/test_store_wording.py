"""Exact sentences of the errors and warnings about model folders; other tests check their facts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from evenhand import InputError, RandomizedRegressor, load, save
from evenhand.store import check_folder, read_certificate, sealed

X = np.arange(30.0)[:, None]
Y = X[:, 0] + np.sin(X[:, 0])


def normal(rows: Any) -> tuple[Any, Any]:
    return np.zeros(len(rows)), np.ones(len(rows))


def manifest_with(**changes: Any) -> None:
    manifest = json.loads(Path("model/model.json").read_text())
    del manifest["sha256"]
    Path("model/model.json").write_bytes(sealed(manifest | changes))


def damage() -> None:
    text = Path("model/model.json").read_text()
    Path("model/model.json").write_text(text.replace("0.1.0", "0.1.1"))


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RandomizedRegressor:
    """Save a model to the folder `model`, which becomes part of the working folder."""
    monkeypatch.chdir(tmp_path)
    found = RandomizedRegressor(Ridge(), cv=2, random_state=0).fit(X, Y)
    save(found, "model")
    return found


def save_function() -> None:
    save(RandomizedRegressor(normal).fit(X, Y), "function")


def load_function() -> None:
    with pytest.warns(UserWarning, match="without an inner model"):
        save_function()
    load("function")


SENTENCES: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: load("none"),
        "none: no such model folder; create one with evenhand fit or evenhand.save",
    ),
    (
        lambda: load("."),
        ". is not a model folder, as it has no model.json; create one with evenhand fit or"
        " evenhand.save",
    ),
    (
        lambda: damage() or load("model"),
        "model/model.json is damaged or was changed after it was saved (its hash differs); save the"
        " model again",
    ),
    (
        lambda: manifest_with(format=7, written_by="evenhand 9.2") or load("model"),
        "model/model.json has format 7, but this release reads formats up to 1; use evenhand 9.2",
    ),
    (
        lambda: load("model", estimator=Ridge()),
        "estimator is not needed, as model contains the whole model; omit the Ridge",
    ),
    (
        load_function,
        "function was saved without normal; pass the fitted model with load(folder, estimator=...)",
    ),
    (
        lambda: read_certificate("model"),
        "model has no readable certificate.json; certify a model with evenhand fit"
        " --max-group-error",
    ),
    (
        lambda: check_folder("model/model.json/new"),
        "model/model.json/new cannot be a folder: model/model.json is a file; name another folder",
    ),
    (
        lambda: save(Ridge().fit(X, Y), "new"),
        "model must be a PAICRegressor or MixtureMLPRegressor or BoostedDistributionRegressor or"
        " RandomizedRegressor or RecalibratedRegressor or HurdleRegressor or CountRegressor or"
        " ClassifierForecaster, got Ridge; wrap a scikit-learn regressor in"
        " RandomizedRegressor(...), a classifier in ClassifierForecaster(...)",
    ),
]


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=[one[1][:40] for one in SENTENCES])
def test_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value).replace(f"{Path.cwd()}/", "") == sentence


@pytest.mark.usefixtures("model")
def test_sentence_of_a_warning_about_a_model_that_cannot_be_stored() -> None:
    with pytest.warns(UserWarning, match="without an inner model") as caught:
        save_function()
    sentence = str(caught[0].message)
    assert sentence.startswith("function was saved without an inner model: normal cannot be stored")
    assert sentence.endswith(
        "; keep model.estimator_, e.g. with joblib, and load with load(folder, estimator=...)"
    )
