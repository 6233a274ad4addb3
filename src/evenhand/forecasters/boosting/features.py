"""Features of a table for trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand._validate import Floats
from evenhand.columns import CategoryColumn, TableEncoder


def tree_features(encoder: TableEncoder, table: Any) -> Floats:
    """Return features with NaN for missing values and level numbers for categories."""
    encoded = encoder.transform(table)
    blocks = []
    start = 0
    for column in encoder.columns_:
        n_out = len(column.outputs())
        # the encoder is that of the networks, so its indicators are turned back into levels
        block = encoded[:, start : start + n_out]
        missing = (
            encoded[:, start + n_out] > 0
            if column.had_missing
            else np.zeros(len(encoded), dtype=np.bool_)
        )
        if isinstance(column, CategoryColumn):
            missing = missing | (block[:, -1] > 0)  # unknown levels
            block = block.argmax(axis=-1)[:, None].astype(np.float64)
        blocks.append(np.where(missing[:, None], np.nan, block))
        start += len(column.names_out)
    return np.hstack(blocks)


def category_flags(encoder: TableEncoder) -> list[bool]:
    """Return whether each feature is a category."""
    return [flag for column in encoder.columns_ for flag in _flags(column)]


def _flags(column: Any) -> list[bool]:
    return [True] if isinstance(column, CategoryColumn) else [False] * len(column.outputs())
