"""Models of other libraries inside a model: scikit-learn's by skops, LightGBM's by their text.

Archives of skops depend on the estimator only and have a fixed list of allowed types. All parts are
checked before they are used: hashes detect damage and the list excludes functions, but a small
archive could fill the memory, and an index out of range in a forged tree would let compiled code
read foreign memory.
"""

from __future__ import annotations

import io
import json
import math
import sys
import threading
import zipfile
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import Any

import numpy as np

from evenhand._validate import InputError, about, check_indices
from evenhand.forecasters import lightgbm

# --- bounds on the size of stored parts, so that a small file cannot fill the memory


def check_archive(content: bytes) -> None:
    """Refuse an archive that unpacks to more than its own size, or whose arrays would.

    Parts are stored uncompressed, and so are the sparse matrices inside them.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = archive.infolist()
        declared = sum(member.file_size for member in members)
        if declared > len(content):
            raise InputError(f"it unpacks to {declared:,} bytes, more than {len(content):,}")
        for member in members:
            if member.compress_type != zipfile.ZIP_STORED:
                raise InputError(
                    f"its member {member.filename!r} has a compression that models do not use"
                )
            # by its content, as NumPy opens any file that looks like an array or an archive
            data = archive.read(member)
            if data.startswith(np.lib.format.MAGIC_PREFIX):
                _check_array(member.filename, data)
            elif data.startswith(b"PK"):
                check_archive(data)


def _check_array(name: str, data: bytes) -> None:
    stream = io.BytesIO(data)
    is_first = np.lib.format.read_magic(stream) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if is_first else np.lib.format.read_array_header_2_0
    shape, _, dtype = read(stream)
    n_bytes = math.prod(shape) * max(dtype.itemsize, 1)
    # NumPy allocates the declared size before it reads
    if n_bytes > len(data) and not dtype.hasobject:
        raise InputError(
            f"its array {name!r} declares {n_bytes:,} bytes but contains {len(data):,}"
        )


# --- archives of fitted estimators that depend on the estimator only

CONSTANTS = ("JsonNode", "TypeNode", "FunctionNode")
"""Loaders of skops for objects that never change, of which it does not matter whether two are the
same object."""

# the same model would have another hash after use
NEIGHBOR_TREES = ("BallTree", "KDTree")
COUNTERS = slice(7, 11)
"""Entries in the state of such a tree that count its queries."""


def reproducible(content: bytes) -> bytes:
    """Return an archive of skops that is the same in every process.

    skops identifies objects by their addresses in memory, which also name the files of arrays, and
    its archives have the time of writing. Here objects and files are numbered in the order of
    their first occurrence, and all files have one time.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(files.pop("schema.json"))
    _number_objects(schema)
    names: dict[str, str] = {}
    for entry in _entries(schema):
        if entry.get("file") in files:
            ending = entry["file"].partition(".")[2]
            entry["file"] = names.setdefault(entry["file"], f"{len(names)}.{ending}")
        if entry.get("__class__") in NEIGHBOR_TREES:
            for counter in entry["content"]["content"][COUNTERS]:
                counter["content"] = "0"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        renamed = {new: _plain_file(new, files[old]) for old, new in names.items()}
        for name, data in (renamed | {"schema.json": json.dumps(schema)}).items():
            member = zipfile.ZipInfo(name)
            member.create_system = 3  # the same on every system
            archive.writestr(member, data)
    return buffer.getvalue()


def _number_objects(schema: dict[str, Any]) -> None:
    """Replace the addresses of objects that occur several times by numbers from 1.

    All others have no number: skops needs none, and whether equal constants are one object depends
    on the process. The order of sets does, too.
    """
    counts = Counter(entry["__id__"] for entry in _entries(schema) if "__id__" in entry)
    numbers: dict[int, int] = {}
    for entry in _entries(schema):
        address = entry.pop("__id__", None)
        if counts[address] > 1 and entry["__loader__"] not in CONSTANTS:
            entry["__id__"] = numbers.setdefault(address, len(numbers) + 1)
        if entry.get("__loader__") == "SetNode":
            entry["content"].sort(key=lambda one: json.dumps(one | {"__id__": 0}))


def _entries(state: Any) -> Iterator[dict[str, Any]]:
    """Yield the dictionaries inside JSON values, each before those inside it."""
    return (one for one in _objects(state) if isinstance(one, dict))


def _plain_file(name: str, data: bytes) -> bytes:
    """Return the file of an array or a sparse matrix without compression.

    Fields of records are separated by zeros: nodes of trees are padded with bytes that nobody set.
    """
    written = io.BytesIO()
    if name.endswith(".npz"):
        from scipy import sparse

        sparse.save_npz(written, sparse.load_npz(io.BytesIO(data)), compressed=False)
        return written.getvalue()
    found = np.load(io.BytesIO(data), allow_pickle=False) if name.endswith(".npy") else None
    if found is None or found.dtype.names is None:
        return data
    clean = np.zeros(found.shape, found.dtype)
    for field in found.dtype.names:
        clean[field] = found[field]
    np.save(written, clean, allow_pickle=False)
    return written.getvalue()


# --- checks of trees and other structures that scikit-learn uses unchecked

N_BITS = 256
"""Number of categories of a feature that histogram trees can distinguish."""


def check_structures(part: Any) -> None:
    """Refuse an estimator with indices that would lead compiled code out of its arrays.

    Trees of neighbors are built again.
    """
    from scipy.sparse import issparse
    from sklearn.neighbors import BallTree, KDTree

    checks = {
        "tree_": _check_decision_tree,
        "estimators_": _check_ensemble,
        "_predictors": _check_histogram_trees,
        "support_vectors_": _check_support_vectors,
    }
    for value in _objects(part):
        if issparse(value) and hasattr(value, "check_format"):
            value.check_format(full_check=True)
        elif isinstance(value, BallTree | KDTree):
            _rebuild_neighbor_tree(value)
        else:
            for name in checks.keys() & getattr(value, "__dict__", {}):
                checks[name](value)


def _objects(part: Any) -> Iterator[Any]:
    """Yield a stored estimator, or JSON values, and all objects inside, owners first."""
    seen: set[int] = set()
    waiting = [part]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, str | bytes | int | float | type | None):
            continue
        seen.add(id(value))
        yield value
        inside = list(vars(value).values()) if hasattr(value, "__dict__") else []
        if isinstance(value, dict):
            inside += value.values()
        elif isinstance(value, list | tuple | set | frozenset):
            inside += value
        elif isinstance(value, np.ndarray) and value.dtype.hasobject:
            inside += value.ravel().tolist()
        waiting += reversed(inside)


def _check_nodes(left: Any, right: Any, feature: Any, is_leaf: Any, width: int) -> None:
    """Refuse nodes whose children do not come after them, or that split another than a feature.

    A descent would leave the tree or its row, or never end.
    """
    parents = np.flatnonzero(~is_leaf)
    for children in (left, right):
        child = np.asarray(children)[parents].astype(np.int64)
        if not np.all((child > parents) & (child < is_leaf.size)):
            raise InputError("a child of a tree's node is out of range")
    check_indices(feature[parents], width, "the feature of a tree's node")


def _check_decision_tree(model: Any) -> None:
    tree = model.tree_
    # before its arrays are read, as the node count declares their length
    if tree.node_count != tree.capacity or tree.node_count < 1:
        raise InputError("the number of nodes of a tree is not the declared one")
    left, width = tree.children_left, min(int(model.n_features_in_), tree.n_features)
    _check_nodes(left, tree.children_right, tree.feature, left == -1, width)


def _check_ensemble(model: Any) -> None:
    """Refuse trees of other shapes than their ensemble, which alone checks the rows."""
    from sklearn.tree import BaseDecisionTree

    trees = model.estimators_
    if isinstance(trees, np.ndarray):  # boosted trees
        if trees.size and trees.shape[1:] != (model.n_trees_per_iteration_,):
            raise InputError(f"the trees of a boosted ensemble have the shape {trees.shape}")
        trees = trees.ravel()
    # others, such as pipelines, check the rows themselves, as do trees of some of the features
    if hasattr(model, "estimators_features_"):
        return
    if any(
        isinstance(tree, BaseDecisionTree) and tree.n_features_in_ != model.n_features_in_
        for tree in trees
    ):
        raise InputError("the number of features of a tree differs from its ensemble's")


def _check_histogram_trees(model: Any) -> None:
    # a table with categories needs an encoder that skops cannot store, whose columns could differ
    # from those in training
    if getattr(model, "_preprocessor", None) is not None:
        raise InputError("it contains histogram trees that encode categories")
    width = int(model.n_features_in_)
    mapper = model._bin_mapper
    is_category = np.asarray(mapper.is_categorical_, dtype=bool)
    if is_category.shape != (width,):
        raise InputError(f"categories of {is_category.size} features belong to a model of {width}")
    for feature in np.flatnonzero(is_category):
        check_indices(mapper.bin_thresholds_[feature], N_BITS, "a category")
    for predictor in (one for several in model._predictors for one in several):
        nodes = predictor.nodes
        is_leaf = nodes["is_leaf"] != 0
        _check_nodes(nodes["left"], nodes["right"], nodes["feature_idx"], is_leaf, width)
        by_category = nodes[~is_leaf & (nodes["is_categorical"] != 0)]
        if not is_category[by_category["feature_idx"]].all():
            raise InputError("a tree splits a numeric feature by categories")
        for bits in (predictor.raw_left_cat_bitsets, predictor.binned_left_cat_bitsets):
            n_sets = len(np.reshape(bits, (-1, N_BITS // 32)))
            check_indices(by_category["bitset_idx"], n_sets, "the categories of a tree's node")


def _rebuild_neighbor_tree(tree: Any) -> None:
    """Build a tree of neighbors again from its rows, so that no stored index is used."""
    rows, _, _, _, leaf_size, *_, metric, weights = tree.__getstate__()
    fresh = type(tree)(rows, leaf_size=leaf_size, metric=metric, sample_weight=weights)
    tree.__setstate__(fresh.__getstate__())


def _check_support_vectors(model: Any) -> None:
    n_vectors = np.shape(model.support_)[0]
    shapes = {np.shape(model.dual_coef_), np.shape(model._dual_coef_)}
    # a model with a precomputed kernel stores no vectors
    has_vectors = model.kernel != "precomputed"
    wanted = (n_vectors, model.n_features_in_)
    if (
        shapes != {(1, n_vectors)}
        or {len(model.intercept_), len(model._intercept_)} != {1}
        or (has_vectors and np.shape(model.support_vectors_) != wanted)
    ):
        raise InputError("support vectors and their coefficients have different shapes")


# --- boosters of LightGBM, stored as their text, whose indices LightGBM itself reads unchecked

PER_NODE = ("split_feature", "threshold", "decision_type", "left_child", "right_child")


def check_booster(content: bytes) -> None:
    """Refuse a booster with children, features or categories out of range.

    It has one tree per iteration and no linear leaves.
    """
    # sizes are in bytes, and feature names need not be ASCII
    content = content.partition(b"\nend of trees")[0]
    parts = content.split(b"\nTree=")
    header, *trees = map(_fields, parts)
    sizes = [len(part) + len(b"\nTree=") for part in parts[1:]]
    if list(map(int, header.get("tree_sizes", "").split())) != sizes:
        raise InputError("the sizes of its trees are not the declared ones")
    if header["num_class"] != "1" or header["num_tree_per_iteration"] != "1":
        raise InputError("it does not have one tree per iteration")
    n_features = int(header["max_feature_idx"]) + 1
    for tree in trees:
        _check_tree(tree, n_features)


def _fields(content: bytes) -> dict[str, str]:
    lines = [line.partition("=") for line in content.decode().split("\n") if "=" in line]
    fields = {name: value for name, _, value in lines}
    # if a name appears twice, LightGBM might use the line that was not checked
    if len(fields) < len(lines):
        raise InputError("it contains a name twice")
    return fields


def _check_tree(tree: dict[str, str], n_features: int) -> None:
    n_leaves = int(tree["num_leaves"])
    n_nodes = n_leaves - 1
    # linear leaves contain further indices, and our forecaster does not grow them
    if n_leaves < 1 or tree.get("is_linear", "0") != "0":
        raise InputError("a tree has no leaves or has linear leaves")
    sizes = {"leaf_value": n_leaves} | (dict.fromkeys(PER_NODE, n_nodes) if n_nodes else {})
    numbers = {name: np.array(tree[name].split(), dtype=float) for name in sizes}
    if any(numbers[name].size != size for name, size in sizes.items()):
        raise InputError("a tree has another number of nodes or leaves than declared")
    if not n_nodes:
        return
    check_indices(numbers["split_feature"], n_features, "the feature of a tree's node")
    later = np.arange(1, n_nodes + 1)
    for name in ("left_child", "right_child"):
        # a child is a later node, or a leaf, numbered -1, -2, ...
        child = numbers[name]
        if not np.where(child >= 0, (child >= later) & (child < n_nodes), child >= -n_leaves).all():
            raise InputError("a child of a tree's node is out of range")
    # for a split by categories, the threshold is the number of a set of categories
    by_category = numbers["decision_type"].astype(np.int64) & 1 > 0
    n_sets = int(tree.get("num_cat", "0"))
    which = numbers["threshold"][by_category]
    bounds = np.array(tree.get("cat_boundaries", "0").split(), dtype=np.int64)
    n_words = len(tree.get("cat_threshold", "").split())
    is_sound = ((which >= 0) & (which < n_sets)).all() and (np.diff(bounds) >= 0).all()
    if not is_sound or bounds.size != n_sets + 1 or bounds[0] != 0 or bounds[-1] != n_words:
        raise InputError("the categories of a tree's node are out of range")


# --- scikit-learn estimators inside a model, stored by skops with a fixed list of allowed types

_DISTANCES = "Chebyshev Euclidean Manhattan Minkowski"
_KERNELS = (
    "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Matern PairwiseKernel"
    " Product RBF RationalQuadratic Sum WhiteKernel"
)

# no functions. Trees and other structures used by compiled code are checked after loading. Hashes
# detect damage but not who wrote a file: load only models from people you trust.
ALLOWED_TYPES = frozenset(
    {
        "evenhand.forecasters.QuantileGrid",
        "evenhand.forecasters.SpreadTrees",
        "evenhand.forecasters.TableClassifier",
        "evenhand.forecasters.TableCounts",
        "evenhand.forecasters.TableMeans",
        "numpy.dtype",
        "sklearn._loss.loss.HalfTweedieLoss",
        "sklearn._loss.loss.HalfTweedieLossIdentity",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.model_selection._split.KFold",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        *(f"sklearn.metrics._dist_metrics.{name}Distance64" for name in _DISTANCES.split()),
        *(f"sklearn.gaussian_process.kernels.{name}" for name in _KERNELS.split()),
    }
)
"""Types allowed in a stored scikit-learn part in addition to those that skops trusts."""


def error_text(error: BaseException) -> str:
    """Return the message of an error from another package, shortened to one line."""
    return " ".join(str(error).split())[:200]


class _Absent(MetaPathFinder):
    """Finder of modules for which torch and Dask are not installed, in the thread that made it."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()

    def find_spec(self, name: str, *_: Any) -> None:
        if name in ("dask", "torch") and threading.get_ident() == self.thread:
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)


@cache
def _skops() -> Any:
    """Return `skops.io`, without the second and the 200 MB of libraries that no model needs.

    To list the estimators of scikit-learn, skops has all of its packages imported, and with two of
    them torch and Dask.
    """
    sys.meta_path.insert(0, absent := _Absent())
    try:
        import skops.io
    finally:
        sys.meta_path.remove(absent)
    return skops.io


def dump_part(part: Any) -> tuple[str, bytes]:
    """Return the form and the bytes of a fitted model; InputError if it cannot be stored safely."""
    if hasattr(part, "model_to_string"):
        text = part.model_to_string().encode()
        check_booster(text)
        return "booster", text
    try:
        content = reproducible(_skops().dumps(part))
        refused = _refused(_skops().get_untrusted_types(data=content))
    except Exception as error:  # the foreign object may raise anything
        raise InputError(f"cannot be stored without pickle ({error_text(error)})") from error
    if refused:
        raise InputError(f"cannot be stored safely, as it contains {', '.join(refused)}")
    return "skops", content


def load_part(form: str, content: bytes, source: Path) -> Any:
    """Rebuild a model from its form and untrusted bytes."""
    with about(f"{source}: an inner model is refused, do not use this model"):
        if form == "booster":
            check_booster(content)
            return lightgbm().Booster(model_str=content.decode())
        # before skops reads it: an archive can unpack to more than the available memory
        check_archive(content)
        types = _skops().get_untrusted_types(data=content)
        if refused := _refused(types):
            raise InputError(f"it contains types that are not allowed, {', '.join(refused)}")
        part = _skops().loads(content, trusted=types)
        # allowed types can still contain indices out of range, which compiled code would follow
        check_structures(part)
        return part


def _refused(types: list[str]) -> list[str]:
    return [name for name in types if name not in ALLOWED_TYPES]
