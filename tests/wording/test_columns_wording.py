"""Exact sentences of the errors and warnings about columns and groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from evenhand._validate import InputError
from evenhand.columns import (
    Schema,
    TableEncoder,
    UnseenValues,
    as_table,
    check_groups,
    check_names,
    group_columns,
    label,
)

TABLE = pd.DataFrame({"sex": ["f", "m", "f"], "age": [30.0, 45.0, 60.0]})
SCHEMA = Schema.learn(TABLE)
OLD = pd.Series([True, False, False], name="old")


def read(**columns: Any) -> Any:
    return SCHEMA.apply(pd.DataFrame(columns), "t.csv")


SENTENCES: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: as_table(np.zeros(3)),
        "X must be a table or an array of shape (n, p), got shape (3,)",
    ),
    (
        lambda: as_table(pd.DataFrame([[1, 2]], columns=["v", "v"])),
        "X: column name 'v' appears 2 times; rename or drop one",
    ),
    (
        lambda: read(age=["30", "old"]),
        "t.csv: column 'age', row 2 must be a number, got 'old'; correct it or leave it empty",
    ),
    (
        lambda: TableEncoder().fit(TABLE).transform(TABLE[["sex"]].assign(job="cook", car=1)),
        "X lacks columns of the training table: 'age'; add them",
    ),
    (lambda: TableEncoder().transform(TABLE), "TableEncoder is not fitted yet; call fit first"),
    (
        lambda: TableEncoder().fit(pd.DataFrame({"v": [1j]})),
        "column 'v' must contain numbers, text, booleans or dates, got complex; convert it first,"
        " or drop it",
    ),
    (
        lambda: group_columns(
            pd.DataFrame({"v": [f"n{i}" for i in range(101)]}), ["v"], source="X"
        ),
        "X: column 'v' must have at most 100 distinct values, got 101; merge the rare values",
    ),
    (
        lambda: check_groups({"everyone": OLD}, 3),
        "groups['everyone']: the name 'everyone' is reserved for all rows; rename the group",
    ),
    (
        lambda: check_groups({"sex": TABLE["sex"], "sex = f": OLD}, 3),
        "groups['sex = f']: two groups have the name 'sex = f'; rename one",
    ),
    (lambda: check_groups({"old": OLD & False}, 3), "groups['old'] is an empty group; remove it"),
    (lambda: check_groups(OLD, 4), "groups['old'] must have one row per outcome (4), got 3 rows"),
    (
        lambda: check_groups({"old": OLD[::-1]}, 3, TABLE),
        "groups['old'] and X have different indexes, but rows are matched by position; reorder with"
        " .loc[X.index], or pass .to_numpy() if the rows are in the order of X",
    ),
    (
        lambda: check_groups({"old": OLD.astype("boolean").where(OLD)}, 3),
        "groups['old'] is a mask with 2 missing values, the first in row 1 (counted from 0); fill"
        " them, or make them a separate group with .astype('category')",
    ),
    (
        lambda: check_groups("sex", 3, TABLE),
        "groups must be a list of column names or masks by name, got 'sex'; write ['sex']",
    ),
    (
        lambda: check_groups(["sex"], 3),
        "groups must be masks by name, as X is not a table, got list",
    ),
    (
        lambda: check_groups(OLD.rename(None), 3),
        "groups is a Series without a name; write {'name': series}",
    ),
    (
        lambda: check_names({"old": OLD}),
        "groups must be a list of column names, got dict; add the groups to the table as columns",
    ),
    (
        lambda: check_names([OLD.to_numpy()]),
        "groups must contain column names, got ndarray; pass masks as {'name': mask}",
    ),
    (
        lambda: label(["a"]),
        "the label of a group must be a single value, got ['a']; convert it to text",
    ),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=[one[1][:40] for one in SENTENCES])
def test_sentence(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert str(caught.value) == sentence


def test_sentences_about_unseen_values() -> None:
    new = pd.DataFrame({"sex": ["F", None], "age": [31.0, 45000.0]})
    assert UnseenValues.of(SCHEMA, new).lines() == [
        "column 'sex': 1 of 2 values are missing; training had no missing ones",
        "column 'sex': 1 of 2 values never occurred in training, such as 'F'; training had 'f',"
        " 'm'",
        "column 'age': 1 of 2 values lie outside the range of training, 30 to 60, up to 45000;"
        " check the units",
    ]
