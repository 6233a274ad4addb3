"""Exact copies of rows in a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._format import percent
from evenhand._validate import Floats

MOST_COPIES = 0.01
"""Share of repeated rows up to which nothing is reported."""

LEAST_DIFFERENT = 10
"""Fewest rows with equal features whose outcomes would differ if features did not matter."""

MOST_DIFFERENT = 0.1
"""Largest share of these that may differ: different people with equal features do differ."""


def copies_in_words(features: pd.DataFrame, y: Floats) -> str | None:
    """Return a warning if rows repeat other rows, features and outcome; None if none do.

    Rows of a table of few values agree honestly. Repeated rows are copies if one column nearly
    identifies the distinct rows, and if the outcomes of rows with equal features are equal.

    Parameters
    ----------
    features : DataFrame
        Features, shape (n, p).
    y : ndarray of shape (n,)
        Outcomes.

    Examples
    --------
    >>> x = pd.DataFrame({"x": np.arange(200.0) % 50})
    >>> copies_in_words(x, x["x"].to_numpy() ** 2)
    '75.0% of 200 rows are exact copies of other rows, with equal features and outcomes: ...'
    >>> copies_in_words(x, np.arange(200.0))
    """
    hashes = [_hash(features.iloc[:, [i]]) for i in range(features.shape[1])]
    rows = pd.DataFrame({"x": _hash(features) if hashes else 0, "y": y})
    is_copy = rows.duplicated().to_numpy()
    n = int(is_copy.sum())
    if n <= MOST_COPIES * y.size:
        return None
    n_distinct = [np.unique(column[~is_copy]).size for column in (y, *hashes)]
    if max(n_distinct) < (y.size - n) / 2:
        return None
    shared = rows[rows.duplicated("x", keep=False)]
    shuffled = shared.assign(y=np.random.default_rng(0).permutation(shared["y"]))
    n_different, by_chance = (
        len(one.drop_duplicates()) - one["x"].nunique() for one in (shared, shuffled)
    )
    if by_chance < LEAST_DIFFERENT or n_different > MOST_DIFFERENT * by_chance:
        return None
    return (
        f"{percent(n / y.size)} of {y.size:,} rows are exact copies of other rows, with equal"
        " features and outcomes: where people are counted, these are rows, and tests, intervals and"
        " guarantees, which assume independent rows, are wrong; keep one row of each person"
    )


def _hash(table: pd.DataFrame) -> NDArray[Any]:
    """Return a hash of each row; cells may be of any type."""
    return pd.util.hash_pandas_object(table, index=False, categorize=False).to_numpy()
