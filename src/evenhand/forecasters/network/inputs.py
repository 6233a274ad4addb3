"""Inputs of networks: encoded columns with short tails, and their places among bins."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from evenhand._validate import Floats, InputError, Ints, check_indices, typed
from evenhand.forecasters.network.skew import robust_scale, skew_scores

LEAST_VALUES = 6
"""Fewest distinct values of a column that is transformed; others are indicators or few levels."""

BEND = 3.0
"""Score beyond which scores are compressed."""

LEVEL_RANGE = 2.0
"""Largest range of a column of few values: a standardized indicator of a rare level has a larger
one, which would make its level dominate all other inputs."""

BOUND = 8.0
"""Bound on columns of few values, which later rows may have other values of."""

ROWS_PER_BIN = 100
LEAST_BINS = 8
MOST_BINS = 48
MOST_BIN_INPUTS = 600
BIN_SCALE = 3.0
"""Difference of a bin's input between its two ends."""


@dataclass(frozen=True)
class Inputs:
    """Transformation of encoded columns into inputs of networks.

    Numbers become scores that are roughly normal, so that a skewed or heavy-tailed column has no
    values far from the others. Bins (a piecewise linear encoding) add inputs that grow from one
    quantile of a column to the next and are constant elsewhere: with them a network follows steps
    and fast changes, which it learns slowly from a single input.

    Parameters
    ----------
    factor : ndarray of shape (n_columns,)
        Factors of the columns of few values; 1 for the others.
    columns : ndarray of shape (n_transformed,)
        Encoded columns that are transformed.
    offset, unit, skew : ndarray of shape (n_transformed,)
        Scales of these columns.
    binned, low, width : ndarray of shape (n_bins,)
        Encoded column of each bin, its lower end and its width, in scores.

    References
    ----------
    Gorishniy, Rubachev & Babenko, On embeddings for numerical features in tabular deep learning,
    NeurIPS 2022; Holzmueller, Grinsztajn & Steinwart, Better by default, NeurIPS 2024.
    """

    factor: Floats
    columns: Ints
    offset: Floats
    unit: Floats
    skew: Floats
    binned: Ints
    low: Floats
    width: Floats

    @classmethod
    def fit(cls, encoded: Floats) -> Self:
        """Learn the scales, and bins if there are enough rows for them."""
        n = encoded.shape[0]
        columns = [
            j for j in range(encoded.shape[1]) if np.unique(encoded[:, j]).size >= LEAST_VALUES
        ]
        scales = [robust_scale(encoded[:, j], np.ones(n)) for j in columns]
        offset, unit, skew = np.array(scales, dtype=np.float64).reshape(-1, 3).T
        factor = 1 / np.maximum(np.ptp(encoded, axis=0) / LEVEL_RANGE, 1.0)
        factor[columns] = 1.0
        places = np.array(columns, dtype=np.intp)
        none = np.zeros(0)
        plain = cls(factor, places, offset, unit, skew, places[:0], none, none)
        n_bins = min(MOST_BINS, n // ROWS_PER_BIN, MOST_BIN_INPUTS // max(len(columns), 1))
        if not columns or n_bins < LEAST_BINS:
            return plain
        scores = plain._scores(encoded)
        levels = np.linspace(0, 1, n_bins + 1)
        ends = [np.unique(np.quantile(scores[:, i], levels)) for i in range(len(columns))]
        return replace(
            plain,
            binned=np.repeat(plain.columns, [end.size - 1 for end in ends]),
            low=np.concatenate([end[:-1] for end in ends]),
            width=np.concatenate([np.diff(end) for end in ends]),
        )

    @property
    def has_bins(self) -> bool:
        """Whether there are inputs of bins."""
        return self.binned.size > 0

    def without_bins(self) -> Self:
        """Return the same transformation without bins."""
        return replace(self, binned=self.binned[:0], low=self.low[:0], width=self.width[:0])

    def transform(self, encoded: Floats) -> Floats:
        """Return the inputs, shape (n, n_columns + n_bins)."""
        inputs = np.clip(encoded * self.factor, -BOUND, BOUND)
        scores = self._scores(encoded)
        # linear near 0, logarithmic far from it
        inputs[:, self.columns] = BEND * np.arcsinh(scores / BEND)
        if not self.has_bins:
            return inputs
        place = np.searchsorted(self.columns, self.binned)
        share = np.clip((scores[:, place] - self.low) / self.width, 0.0, 1.0)
        return np.hstack([inputs, BIN_SCALE * (share - 0.5)])

    def _scores(self, encoded: Floats) -> Floats:
        return skew_scores((encoded[:, self.columns] - self.offset) / self.unit, self.skew)

    def to_state(self) -> dict[str, Any]:
        """Return JSON values."""
        return {name: array.tolist() for name, array in asdict(self).items()}

    @classmethod
    def from_state(cls, state: dict[str, Any], n_columns: int) -> Self:
        """Rebuild the transformation of `n_columns` columns from the output of `to_state`."""
        arrays: dict[str, Any] = {}
        for name, values in state.items():
            is_place = name in ("columns", "binned")
            declared = tuple[int, ...] if is_place else tuple[float, ...]
            arrays[name] = np.array(typed(name, values, declared), np.intp if is_place else float)
        made = cls(**arrays)
        check_indices(made.columns, n_columns, "a column of the inputs")
        sizes = [array.size for array in vars(made).values()]
        is_known = np.isin(made.binned, made.columns).all()
        if sizes != [n_columns, *[sizes[1]] * 4, *[sizes[5]] * 3] or not is_known:
            raise InputError("the scales and the bins of the inputs do not match")
        return made
