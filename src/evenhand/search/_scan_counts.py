"""The interpretable scan of rows that come in parts.

Counts that add up over them (method: worst groups).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._validate import Floats
from evenhand.calibration import as_pits
from evenhand.calibration._exact import Wholes, exact, rounded
from evenhand.columns import Groups, LeftOut, Partition
from evenhand.draws import RandomState
from evenhand.search.masks import Ints, Masks, assemble
from evenhand.search.pairs import column_pairs, counts_below, joined, pair_sums, scan_tile
from evenhand.search.scan import frame_of, quantities_of, too_small

MOST_COLUMNS = 80
"""Most masks whose pairs are counted row by row: of more, the pairs would cost more than the
forecasts."""


@dataclass(frozen=True)
class ScanLayout:
    """Which groups are scanned, fixed before the rows are read.

    Parameters
    ----------
    masks : Masks
        The groups, without rows.
    partitions : tuple of Partition or None
        Of each feature in the order of the masks' labels; None where it makes no group.
    named : tuple of str
        The named groups, which are listed however few rows they have.
    """

    masks: Masks
    partitions: tuple[Partition | None, ...]
    named: tuple[str, ...]

    @classmethod
    def planned(
        cls, sample: pd.DataFrame, searched: Sequence[str], known: Mapping[str, Partition]
    ) -> Self:
        """Lay out the groups of the columns searched, then those of other columns that name groups.

        Parameters
        ----------
        sample : DataFrame
            Some of the rows, by which columns that split the rows alike are told.
        searched : sequence of str
            Columns of features.
        known : dict of str to Partition
            How columns part the rows; one that is searched and not among them has too many values.
        """
        named = [name for name in known if name not in searched]
        partitions = tuple(known.get(name) for name in (*searched, *named))
        groups = (
            (name, LeftOut("many values") if partition is None else partition.masks(sample[name]))
            for name, partition in zip((*searched, *named), partitions, strict=True)
        )
        masks = assemble(len(sample), groups, Groups())
        return cls(
            replace(masks, columns=masks.columns[:0]),
            partitions,
            tuple(group for name in named for group in known[name].names),
        )

    def of(self, groups: Mapping[str, Mapping[str, NDArray[np.bool_]]], n_samples: int) -> Masks:
        """Return the masks of some rows, from the groups of each column."""
        columns = np.ones((n_samples, self.masks.columns.shape[1]), dtype=np.bool_, order="F")
        for g in np.flatnonzero(~self.masks.complement):
            partition = self.partitions[self.masks.feature[g]]
            assert partition is not None
            columns[:, self.masks.column[g]] = groups[partition.column][self.masks.groups[g].name]
        return replace(self.masks, columns=columns)

    @property
    def is_small(self) -> bool:
        """Whether all pairs can be counted."""
        return bool(self.masks.columns.shape[1] <= MOST_COLUMNS)


@dataclass(frozen=True)
class ScanCounts:
    """What a scan needs of rows.

    Parameters
    ----------
    below : ndarray of int, shape (64, p)
        PITs at or below each edge `0, 1/64, ...` in each pair of columns, single columns first.
    sums : ndarray of whole numbers, shape (q, k, k)
        Exact sums of the quantities over the rows of each pair of columns.
    n_draws : int
        PITs per row.
    """

    below: NDArray[np.int64]
    sums: Wholes
    n_draws: int

    @classmethod
    def count(
        cls, masks: Masks, pit: Floats, residual: Floats | None, random_state: RandomState
    ) -> Self:
        """Count some rows."""
        everything = np.arange(masks.columns.shape[1])
        quantities = _on_grid(quantities_of(as_pits(pit), residual, random_state))
        sums = pair_sums(masks.columns, everything, everything, quantities)
        below = counts_below(pit, None, masks.columns, everything, everything, _places(masks))
        return cls(np.rint(below).astype(np.int64), exact(sums), pit.shape[1])

    def __add__(self, other: ScanCounts) -> ScanCounts:
        return ScanCounts(self.below + other.below, self.sums + other.sums, self.n_draws)

    def frame(self, layout: ScanLayout, min_size: int) -> pd.DataFrame:
        """Return the table of `scan_groups` for all rows counted."""
        sums = rounded(self.sums)
        masks = layout.masks
        both = np.zeros(sums.shape[1:], dtype=np.intp)
        places = _places(masks)
        both[places] = np.arange(places[0].size)
        everything = np.arange(sums.shape[1])

        def below(a: Ints, b: Ints) -> Floats:
            return self.below[:, both[a, b]].astype(np.float64)

        tile = scan_tile(
            masks,
            sums,
            below,
            self.n_draws * sums[0],
            min_size,
            (everything, everything),
            np.float64,
        )
        has_residual = sums.shape[0] > 4
        frame = frame_of(joined(tile, sums.shape[0]), masks, self.n_draws, has_residual, "holm")
        counts = sums[0, 0][masks.column]
        sizes = dict(
            zip(
                masks.names, np.where(masks.complement, sums[0, 0, 0] - counts, counts), strict=True
            )
        )
        small = [name for name in layout.named if sizes.get(name, min_size) < min_size]
        if small:
            frame = pd.concat(
                [frame, too_small(small, np.array([sizes[name] for name in small]))],
                ignore_index=True,
            )
        frame.attrs |= masks.attrs
        return frame


def _on_grid(quantities: Floats) -> Floats:
    """Quantities, shape (q, n), rounded so far that sums of n of them are exact.

    By at most 2^-37 n of the largest.

    Else the last digits of a matrix product would hang on how many threads take part in it.
    """
    bits = 52 - quantities.shape[1].bit_length()
    exponent = np.frexp(np.abs(quantities).max(axis=-1, keepdims=True))[1]
    return np.asarray(np.ldexp(np.rint(np.ldexp(quantities, bits - exponent)), exponent - bits))


def _places(masks: Masks) -> tuple[Ints, Ints]:
    """Return the columns of each pair whose histogram is counted.

    Single columns with that of all rows first.
    """
    everything = np.arange(masks.columns.shape[1])
    a, b = column_pairs(masks, everything, everything)
    return np.concatenate((np.zeros_like(everything), a)), np.concatenate((everything, b))
