"""Stored forecasters are those that were saved; other folders are refused."""

import io
import json
import os
import pickle
import shutil
import subprocess
import sys
import warnings
import zipfile
from copy import deepcopy
from functools import cache, partial
from operator import methodcaller
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import skops.io
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import BaggingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import BayesianRidge, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from evenhand import (
    InputError,
    MixtureMLPRegressor,
    PAICRegressor,
    RandomizedRegressor,
    RecalibratedRegressor,
    load,
    save,
)
from evenhand.forecasters import FORECASTERS
from evenhand.store import digest, load_with_hash, pack
from evenhand.store.models import sealed
from forecaster_examples import DISCRETE, small_boosted

ROWS = 80
RANDOM = np.random.default_rng(7)
NUMBERS = RANDOM.normal(size=(ROWS, 3))
Y = NUMBERS[:, 0] + 0.5 * RANDOM.normal(size=ROWS)
TABLE = pd.DataFrame(NUMBERS, columns=["age", "income", "debt"]).assign(
    job=np.where(NUMBERS[:, 1] > 0, "cook", "nurse"),
    since=pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(ROWS), unit="D"),
)
TABLE.loc[3, "age"] = np.nan
TABLE.loc[4, "job"] = None
COLUMNS = make_column_transformer(
    (OneHotEncoder(handle_unknown="ignore"), ["job"]), (SimpleImputer(), ["age", "debt"])
)

small_mixture = partial(
    MixtureMLPRegressor, n_members=2, hidden=(8, 8), max_steps=20, random_state=0
)
around = partial(RandomizedRegressor, link="laplace", cv=2, random_state=3)

BY, KERNEL = ["job", "age"], ConstantKernel() * RBF() + WhiteKernel()
FOREST = RandomForestRegressor(5, random_state=0)
TEXTS = TABLE.assign(text=np.where(NUMBERS[:, 0] > 0, "the one of those", "a word below"))
# a set, whose order depends on the process
COUNTS = CountVectorizer(vocabulary={"a", "add", "all", "of", "one", "the", "to", "word"})

# name -> forecaster and the rows that it is fitted on
EXAMPLES = {
    "PAICRegressor": (PAICRegressor(hidden=(8, 8, 8), max_steps=20, random_state=0), TABLE),
    "MixtureMLPRegressor": (small_mixture(), TABLE),
    "BoostedDistributionRegressor": (small_boosted(n_estimators=20, cv=2), TABLE),
    "RandomizedRegressor": (around(small_mixture(), alpha=0.2, link="entropic"), TABLE),
    "RecalibratedRegressor": (RecalibratedRegressor(small_mixture(), by=BY, cv=2), TABLE),
    "scaled": (around(make_pipeline(StandardScaler(), Ridge()), link="gaussian"), NUMBERS),
    "mixed columns": (around(make_pipeline(COLUMNS, FOREST)), TABLE),
    "words": (around(make_pipeline(make_column_transformer((COUNTS, "text")), FOREST)), TEXTS),
    "Gaussian process": (around(GaussianProcessRegressor(KERNEL)), NUMBERS),
    "neighbours": (around(KNeighborsRegressor(metric="manhattan")), NUMBERS),
    "quantiles": (around(HistGradientBoostingRegressor(loss="quantile", max_iter=3)), NUMBERS),
    "bagging": (around(BaggingRegressor(BayesianRidge(), 3, random_state=0)), NUMBERS),
    "search": (around(GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2)), NUMBERS),
    "frozen mixture": (around(small_mixture()), NUMBERS),
}


def fitted(name):
    model, rows = clone(EXAMPLES[name][0]), EXAMPLES[name][1]
    if name == "frozen mixture":
        model.estimator = FrozenEstimator(model.estimator.fit(NUMBERS[:40], Y[:40]))
    return model.fit(rows, Y), rows


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """Return a function that fits an example and saves it, once: the model, its rows, a folder."""

    @cache
    def once(name):
        model, rows = fitted(name)
        folder = tmp_path_factory.mktemp("stored")
        with warnings.catch_warnings(action="error", category=UserWarning):
            save(model, folder)
        return model, rows, folder

    return once


@pytest.fixture
def folder(stored, tmp_path):
    """Return a folder with files of both kinds beside its manifest."""
    return Path(shutil.copytree(stored("scaled")[2], tmp_path / "model"))


def refused(place, *words):
    with pytest.raises(InputError) as caught:
        load(place)
    message = str(caught.value)
    assert "\n" not in message
    for word in (str(place), *words):
        assert word in message
    return message


def manifest_of(place):
    return dict(json.loads((place / "model.json").read_text()))


def rewrite(place, manifest):
    """Write a manifest whose own hash is right, as somebody with bad intent would."""
    (place / "model.json").write_bytes(sealed({k: v for k, v in manifest.items() if k != "sha256"}))


def plant(place, content, ending):
    """Put `content` in the place of a file of the model, with its hash in the manifest."""
    manifest = manifest_of(place)
    entry = next(file for file in manifest["files"].values() if file["file"].endswith(ending))
    entry["sha256"] = digest(content)
    (place / entry["file"]).write_bytes(content)
    rewrite(place, manifest)
    return place / entry["file"]


def test_every_forecaster_has_an_example():
    # outcomes with atoms: test_forecasters.py; models without `fit`: test_foreign.py
    fitted = {name for name, kind in FORECASTERS.items() if hasattr(kind, "fit")}
    assert fitted <= set(EXAMPLES) | {name.partition("(")[0] for name in DISCRETE}


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_loaded_forecaster_is_the_one_that_was_saved(name, stored):
    model, rows, folder = stored(name)
    again, sha256 = load_with_hash(folder)
    assert type(again) is type(model)
    for r in (0.3, np.linspace(0.01, 0.99, ROWS), np.array([[1e-6, 0.5, 1 - 1e-6]])):
        ours, theirs = model.forecast(rows, r), again.forecast(rows, r)
        for what in ("pit", "logpdf"):
            expected = getattr(ours, what)(Y)
            np.testing.assert_allclose(getattr(theirs, what)(Y), expected, rtol=1e-9, atol=1e-9)
        found = theirs.ppf([0.05, 0.5, 0.95])
        np.testing.assert_allclose(found, ours.ppf([0.05, 0.5, 0.95]), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(again.predict(rows), model.predict(rows), rtol=1e-9, atol=1e-9)
    known = {
        key: value for key, value in model.get_params(deep=False).items() if key != "estimator"
    }
    assert {key: again.get_params(deep=False)[key] for key in known} == known
    assert again.n_features_in_ == model.n_features_in_
    names = getattr(model, "feature_names_in_", [])
    assert list(getattr(again, "feature_names_in_", [])) == list(names)
    assert pack(again).sha256 == pack(model).sha256 == sha256
    if len(names):
        with pytest.raises(ValueError, match="feature names should match"):
            again.forecast(rows[names[:2]])
    # fitted models stay as they are, what is learned beside them is learned anew
    assert np.isfinite(clone(again).fit(rows, Y).predict(rows)).all()


PRINT_HASHES = """
import sys
from evenhand import load
from evenhand.store import pack
print(*(pack(load(folder)).sha256 for folder in sys.argv[1:]))
"""


def test_a_model_has_the_same_hash_in_every_process_and_no_other_model_has_it(stored):
    folders = [stored(name)[2] for name in EXAMPLES]
    command = [sys.executable, "-c", PRINT_HASHES, *map(str, folders)]
    printed = subprocess.check_output(command, text=True, env=os.environ | {"PYTHONHASHSEED": "1"})
    hashes = [manifest_of(folder)["sha256"] for folder in folders]
    assert printed.split() == hashes
    assert len(set(hashes)) == len(EXAMPLES)


@pytest.mark.parametrize("name", ["RandomizedRegressor", "mixed columns", "Gaussian process"])
def test_no_file_holds_a_pickle(name, stored):
    folder = stored(name)[2]
    names = {path.name for path in folder.iterdir()}
    expected = {"model.json", *(file["file"] for file in manifest_of(folder)["files"].values())}
    assert names == expected
    for path in folder.iterdir():
        content = path.read_bytes()
        # files of arrays begin with the length of their header
        assert not content.startswith(b"\x80") or path.suffix == ".safetensors"
        if path.suffix == ".skops":
            parts = zipfile.ZipFile(io.BytesIO(content))
            for entry in parts.namelist():
                assert not parts.read(entry).startswith(b"\x80")
                if entry.endswith(".npy"):
                    np.load(io.BytesIO(parts.read(entry)), allow_pickle=False)


def test_overwriting_sweeps_the_old_model_and_leaves_other_files_alone(folder, stored):
    others = {
        *("notes.txt", "weights.safetensors", "other-model.skops", ".draft-thesis.tex"),
        ".evenhand-notes.draft",
    }
    for name in others:
        (folder / name).write_text("mine")
    (folder / ".model.json.01234567.part").write_text("")
    save(stored("neighbours")[0], folder)
    ours = {"model.json", *(file["file"] for file in manifest_of(folder)["files"].values())}
    assert {path.name for path in folder.iterdir()} == ours | others


# What cannot be stored safely is left out, and is attached at load.


def cubed(x):
    return x**3


def cubed_normal(rows):
    return cubed(rows[:, 0]), np.ones(len(rows))


class Foreign(RegressorMixin, BaseEstimator):
    def fit(self, X, y):
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


class Renamed(PAICRegressor):
    """A forecaster of somebody else."""


FOREIGN = {
    "own function": (lambda: FunctionTransformer(cubed), "test_store.cubed"),
    "lambda": (lambda: FunctionTransformer(lambda x: x), "lambda"),
    "eval": (lambda: FunctionTransformer(eval), "builtins.eval"),
    "os.system": (lambda: FunctionTransformer(os.system), "system"),
    "pickle.loads": (lambda: FunctionTransformer(pickle.loads), "pickle.loads"),
    "methodcaller": (lambda: FunctionTransformer(methodcaller("sum")), "operator.methodcaller"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_functions_are_left_out_at_save_and_refused_at_load(name, folder, tmp_path):
    make, called = FOREIGN[name]
    # fitted by hand: some of these functions cannot be called at all
    model = fitted("scaled")[0]
    model.estimator_ = model._base.estimator = make_pipeline(make(), Ridge().fit(NUMBERS, Y))
    message = "saved without an inner model: Pipeline cannot be stored"
    with pytest.warns(UserWarning, match=message) as caught:
        save(model, tmp_path / "new")
    assert called in str(caught[0].message)
    assert not list((tmp_path / "new").glob("*.skops"))
    refused(tmp_path / "new", "saved without Pipeline", "estimator=")
    plant(folder, skops.io.dumps(model.estimator_), ".skops")
    refused(folder, called)


def test_a_foreign_class_is_attached_at_load_and_never_read(folder, tmp_path):
    model = around(make_pipeline(StandardScaler(), Foreign())).fit(NUMBERS, Y)
    with pytest.warns(UserWarning, match=r"Pipeline cannot be stored safely.*Foreign") as caught:
        save(model, tmp_path / "new")
    advice = "keep model.estimator_, e.g. with joblib, and load with load(folder, estimator=...)"
    assert str(caught[0].message).endswith(advice)
    refused(tmp_path / "new", "saved without Pipeline")
    again = load(tmp_path / "new", estimator=model.estimator_)
    for r in (0.2, 0.7):
        pits = (one.forecast(NUMBERS, r).pit(Y) for one in (model, again))
        np.testing.assert_allclose(*pits, rtol=0, atol=1e-9)
    plant(folder, skops.io.dumps(model.estimator_), ".skops")
    refused(folder, "types that are not allowed", "Foreign")


@pytest.mark.parametrize("make", [Ridge, partial(Renamed, hidden=(4, 4), max_steps=2), Foreign])
def test_only_our_forecasters_are_saved(make, tmp_path):
    message = f"model must be .*RandomizedRegressor.* {type(make()).__name__};"
    with pytest.raises(InputError, match=message):
        save(make().fit(NUMBERS, Y), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_unfitted_forecaster_is_refused(tmp_path):
    for model in (PAICRegressor(), RandomizedRegressor()):
        with pytest.raises(ValueError, match="not fitted"):
            save(model, tmp_path / "new")


def test_what_is_attached_must_be_what_was_left_out(folder, tmp_path):
    pattern = r"estimator .*not needed.* contains the whole model; omit .*Ridge"
    with pytest.raises(InputError, match=pattern):
        load(folder, estimator=Ridge())
    foreign = Foreign().fit(NUMBERS, Y)
    mixed = around([BayesianRidge(), lambda rows: (np.zeros(len(rows)), np.ones(len(rows)))])
    twice = around([cubed_normal] * 2)
    listed = "without cubed_normal and cubed_normal; pass a list.* got cubed_normal$"
    for model, wrong, message in (
        (around(foreign), Ridge().fit(NUMBERS, Y), "Foreign; pass it, .*estimator.* got Ridge$"),
        (mixed, [lambda rows: rows] * 2, r"without .*<lambda>; .* got .*<lambda>, .*<lambda>$"),
        (twice, [cubed_normal], listed),
        (twice, cubed_normal, listed),
    ):
        with pytest.warns(UserWarning, match="saved without"):
            save(model.fit(NUMBERS, Y), tmp_path)
        with pytest.raises(InputError, match=message) as caught:
            load(tmp_path, estimator=wrong)
        assert "\n" not in str(caught.value)


def test_a_changed_truncated_longer_or_missing_file_is_refused(folder):
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        step = 3 if path.name == "model.json" else max(1, len(content) // 40)
        changed = [
            content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]
            for at in {*range(0, len(content), step), len(content) - 1}
        ]
        changed += [content[:at] for at in (0, 1, len(content) // 2, -1)]
        for other in (*changed, content + b"\n", b"\x00" * 100):
            path.write_bytes(other)
            refused(folder)
        path.unlink()
        refused(folder)
        path.write_bytes(content)
    load(folder)


def test_a_manifest_that_describes_no_model_is_refused(folder):
    for text in (
        *("not JSON", "null", "[" * 100_000, '{"format": 0}', '{"format": 1}'),
        *('{"format": 1, "sha256": 5, "model": {}, "files": {}}', "\udcff"),
    ):
        (folder / "model.json").write_bytes(text.encode("utf-8", "surrogateescape"))
        refused(folder, "model.json", "damaged")


def test_a_manifest_with_missing_or_odd_entries_is_refused(folder):
    whole = manifest_of(folder)
    for change in (
        lambda manifest: manifest.pop("model"),
        lambda manifest: manifest.pop("files"),
        lambda manifest: manifest["model"].pop("params"),
        lambda manifest: manifest["model"].update(kind="Unknown"),
        lambda manifest: manifest["model"].update(arrays="elsewhere"),
        lambda manifest: manifest["model"].update(parts={}),
        lambda manifest: manifest["model"]["params"]["learned"]["_base"].update(kind="no"),
    ):
        manifest = deepcopy(whole)
        change(manifest)
        rewrite(folder, manifest)
        refused(folder)


def test_weights_of_another_shape_are_refused(tmp_path):
    from safetensors.numpy import load as arrays_of
    from safetensors.numpy import save as to_bytes

    save(small_mixture().fit(NUMBERS, Y), tmp_path)
    arrays = arrays_of(next(tmp_path.glob("*.safetensors")).read_bytes())
    arrays["weights_.kernel_0"] = arrays["weights_.kernel_0"][:, :-1].copy()
    plant(tmp_path, to_bytes(arrays), ".safetensors")
    with pytest.raises(InputError, match="kernel_0"):
        load(tmp_path)


def test_a_newer_format_is_refused_with_both_versions_and_the_release(folder):
    rewrite(folder, manifest_of(folder) | {"format": 2, "written_by": "evenhand 9.2"})
    refused(folder, "format 2", "formats up to 1", "evenhand 9.2")


def test_a_missing_folder_manifest_or_file_is_named(folder, tmp_path):
    refused(tmp_path / "nowhere", "no such model folder")
    refused(folder / "model.json", "no such model folder")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", "no model.json")
    path = next(folder.glob("*.skops"))
    path.unlink()
    refused(folder, path.name, "No such file")
    path.mkdir()
    refused(folder, path.name, "not a plain file")


# Nothing outside the folder is opened, and nothing is unpickled.


@pytest.mark.parametrize("name", ["../outside", "{folder}/outside", "sub/inside", "..", ""])
def test_a_path_that_leaves_the_folder_is_refused(name, folder, monkeypatch):
    name = name.format(folder=folder.parent)
    manifest = manifest_of(folder)
    entry = next(file for file in manifest["files"].values() if file["file"].endswith(".skops"))
    content = (folder / entry["file"]).read_bytes()
    (folder / "sub").mkdir()
    (folder.parent / "outside").write_bytes(content)
    (folder / "sub" / "inside").write_bytes(content)
    entry["file"] = name
    rewrite(folder, manifest)
    opened = []
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: opened.append(path) or read(path))
    refused(folder, "outside the model folder")
    assert {path.parent for path in opened} == {folder}


@pytest.mark.parametrize("ending", [".skops", ".json"])
def test_a_link_is_refused(ending, folder):
    path = next(folder.glob("*" + ending))
    shutil.move(path, folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")
    refused(folder, path.name, "symbolic link")


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return os.mkdir, (str(self.trace),)


@pytest.mark.parametrize("ending", [".skops", ".safetensors"])
def test_a_pickle_in_the_place_of_a_file_is_never_opened(ending, folder, tmp_path):
    plant(folder, pickle.dumps(Bomb(tmp_path / "trace")), ending)
    refused(folder, "damaged")
    assert not (tmp_path / "trace").exists()


def test_pickles_beside_the_model_or_inside_a_part_are_never_opened(folder, tmp_path):
    evil = pickle.dumps(Bomb(tmp_path / "trace"))
    for name in ("model.pkl", "model.joblib", "__init__.pkl"):
        (folder / name).write_bytes(evil)
    held = io.BytesIO(next(folder.glob("*.skops")).read_bytes())
    with zipfile.ZipFile(held, "a") as parts:
        parts.writestr("evil.pkl", evil)
    plant(folder, held.getvalue(), ".skops")
    load(folder)
    assert not (tmp_path / "trace").exists()


def test_an_array_of_pickled_objects_inside_a_part_is_refused(folder, tmp_path):
    evil = io.BytesIO()
    np.save(evil, np.array([Bomb(tmp_path / "trace")], dtype=object), allow_pickle=True)
    old = zipfile.ZipFile(next(folder.glob("*.skops")))
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as parts:
        for name in old.namelist():
            parts.writestr(name, evil.getvalue() if name.endswith(".npy") else old.read(name))
    plant(folder, held.getvalue(), ".skops")
    refused(folder, "damaged")
    assert not (tmp_path / "trace").exists()
