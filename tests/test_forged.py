"""A model folder that somebody made up is refused in one line."""

import io
import json
import re
import tracemalloc
import zipfile
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
import skops.io
from scipy import sparse
from sklearn.ensemble import (
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import Lasso, LogisticRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.svm import SVR
from sklearn.tree import DecisionTreeRegressor

from evenhand import (
    BoostedDistributionRegressor,
    ForecastColumns,
    HurdleRegressor,
    InputError,
    RandomizedRegressor,
    RecalibratedRegressor,
    load,
    save,
)
from evenhand.store.estimators import check_archive, reproducible
from test_store import manifest_of, plant, refused, rewrite

RANDOM = np.random.default_rng(5)
X = RANDOM.normal(size=(90, 3))
X[:, 2] = RANDOM.integers(0, 4, size=90)
Y = X[:, 0] + (X[:, 2] == 2) + 0.1 * RANDOM.normal(size=90)


def saved(estimator, folder):
    model = RandomizedRegressor(estimator, link="laplace", cv=2, random_state=0).fit(X, Y)
    save(model, folder)
    return model.estimator_


def tree_with(tree, **changes):
    """Change fields of a tree's second node that has children, or of its state."""
    state = tree.__getstate__()
    nodes = state["nodes"].copy()
    inner = np.flatnonzero(nodes["left_child"] != -1)[1]
    for name, value in changes.items():
        if name in nodes.dtype.names:
            nodes[name][inner] = value
        else:
            state[name] = value
    tree.__setstate__(state | {"nodes": nodes})


def forged(make, folder, change, message):
    estimator = saved(make, folder)
    plant(folder, skops.io.dumps(estimator), ".skops")
    load(folder)
    change(estimator)
    plant(folder, skops.io.dumps(estimator), ".skops")
    refused(folder, message)


CHILD = "child of a tree's node is out of range"
FEATURE = "feature of a tree's node is out of range"
TREES = {
    "tree, a circle": (
        DecisionTreeRegressor(max_depth=4),
        lambda model: model.tree_,
        {"right_child": 1},
        CHILD,
    ),
    "forest": (
        RandomForestRegressor(2, max_depth=4),
        lambda model: model.estimators_[1].tree_,
        {"feature": 3},
        FEATURE,
    ),
    "boosting": (
        GradientBoostingRegressor(n_estimators=2),
        lambda model: model.estimators_[1, 0].tree_,
        {"feature": -1},
        FEATURE,
    ),
}


@pytest.mark.parametrize("kind", TREES)
def test_a_forged_tree_is_refused(kind, tmp_path):
    make, tree_of, changes, message = TREES[kind]
    forged(make, tmp_path, lambda model: tree_with(tree_of(model), **changes), message)


def with_categories(estimator):
    estimator._bin_mapper.is_categorical_ = np.array([0, 0, 1], dtype=np.uint8)
    estimator._bin_mapper.bin_thresholds_[2] = np.arange(4.0)
    for predictor in (one for several in estimator._predictors for one in several):
        nodes = predictor.nodes
        nodes["is_categorical"][(nodes["is_leaf"] == 0) & (nodes["feature_idx"] == 2)] = 1
        predictor.raw_left_cat_bitsets = predictor.binned_left_cat_bitsets = np.ones(
            (1, 8), dtype=np.uint32
        )
    return estimator


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("left", 10**6, CHILD),
        ("feature_idx", 1000, FEATURE),
        ("bitset_idx", 10**6, "categories of a tree's node"),
        ("is_categorical", 1, "splits a numeric feature by categories"),
        ("bin_thresholds_", 1e6, "a category is out of range"),
    ],
)
def test_a_forged_histogram_tree_is_refused(field, value, message, tmp_path):
    estimator = with_categories(
        saved(HistGradientBoostingRegressor(max_iter=3, min_samples_leaf=3), tmp_path)
    )
    plant(tmp_path, skops.io.dumps(estimator), ".skops")
    load(tmp_path)
    nodes = estimator._predictors[0][0].nodes
    assert nodes["is_categorical"].any()
    if field == "bin_thresholds_":
        estimator._bin_mapper.bin_thresholds_[2] = np.array([0.0, value])
    else:
        inner = (nodes["is_leaf"] == 0) & (nodes["is_categorical"] == (field == "bitset_idx"))
        nodes[field][inner] = value
    plant(tmp_path, skops.io.dumps(estimator), ".skops")
    refused(tmp_path, message)


NEIGHBORS = {
    "row": lambda state: state[1].__setitem__(0, 10**9),
    "end": lambda state: state[2]["idx_end"].__setitem__(-1, 10**9),
    "nodes": lambda state: state.__setitem__(6, 10**6),
}


@pytest.mark.parametrize(
    ("algorithm", "name"), [("kd_tree", name) for name in NEIGHBORS] + [("ball_tree", "row")]
)
def test_a_forged_neighbor_tree_is_built_again_from_its_rows(name, algorithm, tmp_path):
    estimator = saved(KNeighborsRegressor(algorithm=algorithm, leaf_size=10), tmp_path)
    found = estimator.predict(X)
    state = [
        value.copy() if isinstance(value, np.ndarray) else value
        for value in estimator._tree.__getstate__()
    ]
    NEIGHBORS[name](state)
    estimator._tree.__setstate__(tuple(state))
    plant(tmp_path, skops.io.dumps(estimator), ".skops")
    np.testing.assert_array_equal(load(tmp_path).estimator_.predict(X), found)


def test_support_vectors_of_another_shape_are_refused(tmp_path):
    def forge(estimator):
        estimator.support_vectors_ = estimator.support_vectors_[:2]

    forged(SVR(), tmp_path, forge, "support vectors and their coefficients have different shapes")


def test_a_sparse_matrix_with_an_index_out_of_range_is_refused(tmp_path):
    saved(Ridge(), tmp_path)
    estimator = Lasso(alpha=1e-3).fit(X, Y)
    matrix = sparse.csr_matrix(np.ones((1, 3)))
    matrix.indices = np.array([0, 1, 10**6], dtype=np.int32)
    estimator.coef_ = matrix
    members = read_members(reproducible(skops.io.dumps(estimator)))
    plant(tmp_path, zipped(members), ".skops")
    refused(tmp_path, "types that are not allowed, scipy.sparse")
    # the parent class is trusted by skops, and any matrix is read under its name
    parent = sparse.spmatrix
    schema = json.loads(members["schema.json"])
    (entry,) = (
        one
        for one in walk(schema)
        if isinstance(one, dict) and one.get("__class__") == "csr_matrix"
    )
    entry.update(__class__=parent.__name__, __module__=parent.__module__)
    plant(tmp_path, zipped(members | {"schema.json": json.dumps(schema).encode()}), ".skops")
    refused(tmp_path, "is damaged and cannot be loaded (ValueError: ")


@pytest.fixture(scope="module")
def boosted(tmp_path_factory):
    pytest.importorskip("lightgbm")
    folder = tmp_path_factory.mktemp("boosted")
    table = np.column_stack([X, X[:, 0] * 2])
    save(
        BoostedDistributionRegressor(5, min_child_samples=5, cv=2, random_state=0).fit(table, Y),
        folder,
    )
    return folder


def last_value(name, value):
    """Replace the last number of the first list of that name, and correct the tree's size."""

    def change(text):
        old = re.search(rf"^{name}=.*$", text, re.MULTILINE)
        new = old[0].rsplit(" ", 1)[0] + f" {value}"
        text = text[: old.start()] + new + text[old.end() :]
        sizes = re.search(r"^tree_sizes=(\d+)", text, re.MULTILINE)
        size = int(sizes[1]) + len(new) - len(old[0])
        return text[: sizes.start()] + f"tree_sizes={size}" + text[sizes.end() :]

    return change


BOOSTERS = {
    "left child": (last_value("left_child", "99999"), CHILD),
    "feature": (last_value("split_feature", "77777"), FEATURE),
    "category": (last_value("decision_type", "1"), "categories of a tree's node are out of range"),
    "text for a number": (last_value("left_child", "x"), "is damaged and cannot be loaded"),
    "sizes": (lambda text: re.sub(r"tree_sizes=\d", "tree_sizes=9", text), "sizes of its trees"),
    "more features": (
        lambda text: re.sub(
            r"(?m)^(feature_\w+=.*)$", r"\1 none", text.replace("feature_idx=3", "feature_idx=4")
        ),
        "4 features",
    ),
}


@pytest.mark.parametrize("name", BOOSTERS)
def test_a_forged_booster_is_refused(name, boosted, tmp_path):
    change, message = BOOSTERS[name]
    for path in boosted.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (stored,) = tmp_path.glob("model.mean_booster-*.booster")
    text = stored.read_text()
    plant(tmp_path, text.encode(), ".booster")
    load(tmp_path)
    assert change(text) != text
    plant(tmp_path, change(text).encode(), ".booster")
    refused(tmp_path, message)


def walk(value):
    yield value
    for inner in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    ):
        yield from walk(inner)


def read_members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members, compression=zipfile.ZIP_STORED):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return held.getvalue()


def understated(content, member, declared):
    """Change the size that an archive declares of its last member, in both places."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        size = archive.getinfo(member).file_size
    return content.replace(size.to_bytes(4, "little"), declared.to_bytes(4, "little"))


N_BOMB = 40 * 2**20


@pytest.mark.parametrize("declared", [N_BOMB, 1000])
def test_a_part_that_unpacks_to_far_more_than_it_is_is_refused_without_unpacking(
    declared, tmp_path
):
    members = read_members(skops.io.dumps(saved(Ridge(), tmp_path)))
    bomb = zipped(members | {"zeros.bin": bytes(N_BOMB)}, zipfile.ZIP_DEFLATED)
    plant(tmp_path, understated(bomb, "zeros.bin", declared), ".skops")
    tracemalloc.start()
    refused(tmp_path, "unpacks to" if declared == N_BOMB else "compression")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 20 * 2**20


def test_archives_inside_archives_and_other_compressions_are_refused():
    inner = zipped({"data.npy": b"", "zeros": bytes(N_BOMB)}, zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match="unpacks to"):
        check_archive(zipped({"matrix.npz": inner}))
    with pytest.raises(InputError, match="compression"):
        check_archive(zipped({"a": b"a"}, zipfile.ZIP_LZMA))


def test_an_array_that_declares_more_than_it_holds_is_refused(tmp_path):
    members = read_members(skops.io.dumps(saved(Ridge(), tmp_path)))
    name = next(name for name in members if name.endswith(".npy"))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)}
    )
    plant(tmp_path, zipped(members | {name: header.getvalue()}), ".skops")
    refused(tmp_path, "declares 8,000,000,000,000 bytes but contains 128")


OTHERS = (None, [], {}, [1], {"a": 1}, 1e300, 10**30, "nan", "", -1, 0, True)
"""What a leaf is replaced by."""

TABLE = pd.DataFrame(
    {
        "x": X[:, 0],
        "kind": np.where(X[:, 2] > 1, "u", "v"),
        "is_new": X[:, 1] > 0,
        "since": pd.to_datetime("2020-01-01") + pd.to_timedelta(np.arange(90) % 50, "D"),
        "level": pd.Categorical(np.where(X[:, 1] > 0.5, "p", "q")),
    }
)
MODELS = {
    "boosted trees": lambda: BoostedDistributionRegressor(
        5, min_child_samples=5, cv=2, random_state=0
    ).fit(TABLE, Y),
    "maps of overlapping groups": lambda: RecalibratedRegressor(
        Ridge(), by={"high": "x > 0", "low": "x < 0.5"}, cv=2, random_state=0
    ).fit(TABLE[["x"]], Y),
    "amounts": lambda: HurdleRegressor(LogisticRegression(), Ridge(), random_state=0).fit(
        TABLE[["x"]], np.where(X[:, 2] > 1, np.exp(Y), 0)
    ),
    "forecasts in columns": lambda: RandomizedRegressor(
        ForecastColumns(survival="1=s1,2=s2", horizon=3.0)
    ).fit(TABLE.assign(s1=0.6, s2=0.3)[["s1", "s2"]], np.abs(Y)),
}


def leaves(value, path=()):
    inner = value.items() if isinstance(value, dict) else ()
    inner = enumerate(value) if isinstance(value, list) else inner
    inside = [found for key, one in inner for found in leaves(one, (*path, key))]
    yield from inside or [path]


def with_leaf(value, path, new):
    if not path:
        return new
    changed = value.copy()
    changed[path[0]] = with_leaf(value[path[0]], path[1:], new)
    return changed


def sampled_leaves(content, random):
    """Return one path of each kind: of the members of a list and of equal records one by chance."""
    kinds = {}
    for path in leaves(content):
        kinds.setdefault(tuple("#" if isinstance(key, int) else key for key in path), []).append(
            path
        )
    return [some[random.integers(len(some))] for some in kinds.values()]


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning")
@pytest.mark.parametrize("name", MODELS)
def test_any_other_value_in_a_manifest_is_refused_in_one_line_or_does_no_harm(name, tmp_path):
    if name == "boosted trees":
        pytest.importorskip("lightgbm")
    random = np.random.default_rng(0)
    model = MODELS[name]()
    rows = TABLE.assign(s1=0.6, s2=0.3)[list(model.feature_names_in_)][:3]
    save(model, tmp_path)
    manifest = manifest_of(tmp_path)
    del manifest["sha256"]
    for path in sampled_leaves(manifest, random):
        for new in (OTHERS[i] for i in random.choice(len(OTHERS), 2, replace=False)):
            rewrite(tmp_path, with_leaf(manifest, path, new))
            with one_line(path, new):
                again = load(tmp_path)
                forecast = again.forecast(rows, 0.3)
                made = (forecast.ppf([0.1, 0.9]), forecast.mean(), again.predict(rows))
                assert all(np.isfinite(one).all() for one in made), (path, new)


@contextmanager
def one_line(path, new):
    try:
        yield
    except Exception as error:
        problem = error
    else:
        return
    if not isinstance(problem, InputError) or "\n" in str(problem):
        pytest.fail(f"{path}, {new!r}: {problem!r}")
