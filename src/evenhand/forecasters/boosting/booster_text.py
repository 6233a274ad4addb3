"""Validation of stored LightGBM models, whose indices LightGBM itself reads unchecked."""

from __future__ import annotations

import numpy as np

from evenhand._validate import InputError, check_indices

PER_NODE = ("split_feature", "threshold", "decision_type", "left_child", "right_child")


def check_booster_text(text: str, n_features: int) -> None:
    """Refuse a booster with children, features or categories out of range.

    Parameters
    ----------
    text : str
        Output of `Booster.model_to_string`, with one tree per iteration and no linear leaves.
    n_features : int
        Number of features of the booster.
    """
    try:
        # sizes are in bytes, and feature names need not be ASCII
        content = text.encode().partition(b"\nend of trees")[0]
        header, *trees = (_fields(part) for part in content.split(b"\nTree="))
        sizes = [len(part) + len(b"\nTree=") for part in content.split(b"\nTree=")[1:]]
        if list(map(int, header.get("tree_sizes", "").split())) != sizes:
            raise InputError("the sizes of its trees are not the declared ones")
        if header["num_class"] != "1" or header["num_tree_per_iteration"] != "1":
            raise InputError("it does not have one tree per iteration")
        n_found = int(header["max_feature_idx"]) + 1
        for tree in trees:
            _check_tree(tree, n_found)
    except (KeyError, ValueError, OverflowError) as error:
        raise InputError(f"a stored booster is damaged ({error})") from error
    # with another number of features, LightGBM would read past the end of the row
    if n_found != n_features:
        raise InputError(
            f"a stored booster does not have the {n_features} features of the training table"
        )


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
    # linear leaves contain further indices, and our forecasters do not grow them
    if n_leaves < 1 or tree.get("is_linear", "0") != "0":
        raise InputError("a tree has no leaves or has linear leaves")
    sizes = {"leaf_value": n_leaves} | (dict.fromkeys(PER_NODE, n_nodes) if n_nodes else {})
    numbers = {name: np.array(tree[name].split(), dtype=np.float64) for name in sizes}
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
