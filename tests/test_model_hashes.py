"""Hashes of models: the same for the same fitted model, in every process."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.svm import SVR

from evenhand import RandomizedRegressor, RecalibratedRegressor, save
from evenhand.store import foreign_parts, load_with_hash, pack
from forecaster_examples import DISCRETE, EXAMPLES, linear_task, small_boosted, use_small_default

PRINT_HASH = """
import sys
from evenhand import load
from evenhand.store import pack
for folder in sys.argv[1:]:
    print(pack(load(folder)).sha256)
"""


def hashes(folders, seed):
    """Return the hashes of saved models, loaded and packed in another process."""
    done = subprocess.run(
        [sys.executable, "-c", PRINT_HASH, *map(str, folders)],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONHASHSEED": seed},
    )
    return done.stdout.split()


@pytest.fixture(scope="module")
def models():
    with pytest.MonkeyPatch.context() as patch:
        use_small_default(patch)
        yield fitted()


def fitted():
    X, y = linear_task(120)
    found = {name: EXAMPLES[name].make().fit(X, y) for name in list(EXAMPLES)[::3]}
    for name in list(DISCRETE)[::4]:
        found[name] = DISCRETE[name].make().fit(X, DISCRETE[name].outcomes(y))
    for estimator in (RandomForestRegressor(5, random_state=0), KNeighborsRegressor(), SVR()):
        found[type(estimator).__name__] = RandomizedRegressor(estimator, random_state=0).fit(X, y)
    table = pd.DataFrame(X, columns=["a", "b", "c"]).assign(group=np.where(X[:, 0] > 0, "u", "v"))
    found["by group"] = RecalibratedRegressor(small_boosted(), by="group").fit(table, y)
    one_hot = make_pipeline(OneHotEncoder(handle_unknown="ignore"), RandomForestRegressor(3))
    found["pipeline"] = RandomizedRegressor(one_hot, random_state=0).fit(table[["group"]], y)
    # a set, whose order depends on the process
    words = {"a", "add", "all", "of", "one", "the", "to", "word"}
    counts = make_column_transformer((CountVectorizer(vocabulary=words), "text"))
    texts = pd.DataFrame({"text": np.where(X[:, 0] > 0, "the one of those", "a word below")})
    with_words = make_pipeline(counts, RandomForestRegressor(3, random_state=0))
    found["words"] = RandomizedRegressor(with_words, random_state=0).fit(texts, y)
    return found


def test_the_same_model_has_one_hash_in_every_process(models, tmp_path):
    packed = {name: pack(model) for name, model in models.items()}
    # a part that is not stored would not change the hash
    assert [name for name, one in packed.items() if list(foreign_parts(one.entry))] == []
    first = {name: one.sha256 for name, one in packed.items()}
    assert len(set(first.values())) == len(models)
    folders = [tmp_path / str(number) for number in range(len(models))]
    for folder, (name, model) in zip(folders, models.items(), strict=True):
        assert pack(model).sha256 == first[name], name
        save(model, folder)
        again, sha256 = load_with_hash(folder)
        assert sha256 == first[name], name
        assert pack(again).sha256 == first[name], name
    assert dict(zip(models, hashes(folders, "1"), strict=True)) == first
