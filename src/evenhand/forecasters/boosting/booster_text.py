"""Validation of stored LightGBM models, which LightGBM itself reads unchecked."""

from __future__ import annotations

from itertools import accumulate, pairwise

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import InputError, check_indices

Fields = dict[str, str]

PER_NODE = ("split_feature", "threshold", "decision_type", "left_child", "right_child")
PER_NODE_OPTIONAL = ("split_gain", "internal_value", "internal_weight", "internal_count")
PER_LEAF_OPTIONAL = ("leaf_weight", "leaf_count")

_WRONG_SIZES = "the sizes of its trees are not the declared ones"


def check_booster_text(text: str, n_features: int) -> None:
    """Refuse a booster with indices out of range or trees whose lengths are not as declared.

    Parameters
    ----------
    text : str
        Output of `Booster.model_to_string`, with one tree per iteration and no linear leaves.
    n_features : int
        Number of features of the booster.
    """
    try:
        header, trees = _sections(text)
        # with another number of features, LightGBM would read past the end of the row
        fits = int(header["max_feature_idx"]) + 1 == n_features
        if header["num_class"] != "1" or header["num_tree_per_iteration"] != "1":
            raise InputError("it does not have one tree per iteration")
        for tree in trees if fits else ():
            _check_tree(tree, n_features)
    except InputError as error:
        raise InputError(f"a stored booster is damaged: {error}") from error
    except (KeyError, ValueError, OverflowError) as error:
        raise InputError(
            f"a stored booster is damaged ({type(error).__name__}: {error})"
        ) from error
    if not fits:
        raise InputError(
            f"a stored booster does not have the {n_features} features of the training table"
        )


def _sections(text: str) -> tuple[Fields, list[Fields]]:
    """Split the text as LightGBM does, by the tree sizes in the header."""
    # sizes are in bytes, and feature names need not be ASCII
    content = text.encode()
    start = content.find(b"\nTree=") + 1
    header = _fields(content[: start or content.find(b"\nend of trees")])
    sizes = [int(size) for size in header.get("tree_sizes", "").split()]
    if any(size <= 0 for size in sizes) or (sizes and not start):
        raise InputError(_WRONG_SIZES)
    ends = list(accumulate(sizes, initial=start))
    pieces = [content[a:b] for a, b in pairwise(ends)]
    whole = all(piece.startswith(b"Tree=") and piece.count(b"Tree=") == 1 for piece in pieces)
    rest = content[ends[-1] :] if sizes else content
    if not whole or b"\nTree=" in rest or rest.startswith(b"Tree=") or b"end of trees" not in rest:
        raise InputError(_WRONG_SIZES)
    return header, [_fields(piece) for piece in pieces]


def _fields(content: bytes) -> Fields:
    fields: Fields = {}
    # if a name appears twice, LightGBM might use the line that was not checked
    for line in content.decode().strip("\n").split("\n"):
        name, equals, value = line.partition("=")
        if name in fields or (equals and name.startswith(" ")):
            raise InputError(f"it contains {name!r} twice")
        fields[name] = value
    return fields


def _check_tree(tree: Fields, n_features: int) -> None:
    n_leaves = int(tree["num_leaves"])
    n_nodes = n_leaves - 1
    # linear leaves contain further indices, and our forecasters do not grow them
    if n_leaves < 1 or tree.get("is_linear", "0") != "0":
        raise InputError("a tree has no leaves or has linear leaves")
    _check_length(tree["leaf_value"], n_leaves)
    if n_nodes == 0:
        return
    for name in (*PER_NODE, *(name for name in PER_NODE_OPTIONAL if name in tree)):
        _check_length(tree[name], n_nodes)
    for name in PER_LEAF_OPTIONAL:
        if name in tree:
            _check_length(tree[name], n_leaves)
    check_indices(_integers(tree["split_feature"]), n_features, "the feature of a tree's node")
    node = np.arange(n_nodes)
    for side in ("left_child", "right_child"):
        child = _integers(tree[side])
        # a child is a later node, or a leaf, numbered -1, -2, ...
        if not np.all(np.where(child >= 0, (child > node) & (child < n_nodes), child >= -n_leaves)):
            raise InputError("a child of a tree's node is out of range")
    _check_categories(tree)


def _check_categories(tree: Fields) -> None:
    n_sets = int(tree.get("num_cat", "0"))
    # for a split by categories, the threshold is the number of a set of categories
    by_category = (_integers(tree["decision_type"]) & 1) > 0
    which = np.array([float(value) for value in tree["threshold"].split()])[by_category]
    if not np.all((which >= 0) & (which < max(n_sets, 0))):
        raise InputError("the categories of a tree's node are out of range")
    if n_sets:
        bounds = _integers(tree["cat_boundaries"])
        n_words = len(tree["cat_threshold"].split())
        if (
            bounds.size != n_sets + 1
            or bounds[0] != 0
            or bounds[-1] != n_words
            or (np.diff(bounds) < 0).any()
        ):
            raise InputError("the categories of a tree are out of range")


def _integers(text: str) -> NDArray[np.int64]:
    return np.array([int(value) for value in text.split()], dtype=np.int64)


def _check_length(text: str, n: int) -> None:
    found = len(text.split())
    if found != n:
        raise InputError(f"a tree has {found} values where {n} are needed")
