"""Indicator matrix of groups, for sums over groups by matrix products (method: worst groups)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from evenhand._validate import Ints, Mask
from evenhand.columns import Group, Groups, LeftOut, feature_groups


@dataclass(frozen=True)
class Masks:
    """Groups of rows: mask `g` is column `column[g]` or its complement.

    Parameters
    ----------
    columns : ndarray of bool, shape (n, k)
        Indicators. Column 0 contains all rows, so that a sum over one mask is a sum over a pair.
        Two halves share one column.
    groups : tuple of Group
        Group of each mask.
    feature, column : ndarray of int, shape (g,)
        Feature and column of each mask; masks are in the order of their columns.
    complement : ndarray of bool, shape (g,)
        Whether the mask is the complement of its column.
    labels : list of str
        Names of the features; each named group is a feature, and named groups come last.
    n_unnamed : int
        Number of features that are not named groups.
    left_out : dict of str to LeftOut
        Features without a mask, with the reason.
    same_rows : dict of Group to Group
        Named groups without a mask, with the group whose mask contains the same rows.
    """

    columns: Mask
    groups: tuple[Group, ...]
    feature: Ints
    column: Ints
    complement: Mask
    labels: list[str]
    n_unnamed: int
    left_out: dict[str, LeftOut]
    same_rows: dict[Group, Group]

    @property
    def names(self) -> list[str]:
        """Names of the masks, such as `age <= 50`."""
        return [group.name for group in self.groups]

    @property
    def attrs(self) -> dict[str, dict[str, str]]:
        """Attributes of the table of `scan_groups`, in words: `left_out` and `same_rows`."""
        return {
            "left_out": {name: str(reason) for name, reason in self.left_out.items()},
            "same_rows": {given.name: same.name for given, same in self.same_rows.items()},
        }

    def rows(self, mask: int) -> Mask:
        """Return the rows of a mask, shape (n,)."""
        found: Mask = self.columns[:, self.column[mask]] ^ self.complement[mask]
        return found

    def sizes(self) -> Ints:
        """Return the number of rows of each mask."""
        counts = np.array([np.count_nonzero(column) for column in self.columns.T])[self.column]
        return np.where(self.complement, self.columns.shape[0] - counts, counts)

    def keep(self, wanted: Mask) -> Masks:
        """Return some of the masks, with the columns that they need."""
        needed = np.unique(np.concatenate(([0], self.column[wanted])))
        has_all = needed.size == self.columns.shape[1]  # avoids a copy of the matrix
        return replace(
            self,
            columns=self.columns if has_all else self.columns[:, needed],
            groups=tuple(self.groups[g] for g in np.flatnonzero(wanted)),
            feature=self.feature[wanted],
            column=np.searchsorted(needed, self.column[wanted]),
            complement=self.complement[wanted],
        )


def make_masks(table: pd.DataFrame, groups: Groups) -> Masks:
    """Split every feature into groups, and add the named groups.

    There is no mask for text columns with too many values, for constant features, and for features
    that split the rows into the same two halves as another feature. A named group gets no second
    mask if a feature or another name defines the same rows, or if it contains all rows.
    """
    left_out = dict[str, LeftOut]()
    splits = dict[bytes, str]()
    labels = list[str]()
    columns: list[Mask] = [np.ones(len(table), dtype=np.bool_)]
    made: list[tuple[Group, int, int, bool]] = []  # group, feature, column, complement
    for j, (name, found) in enumerate(feature_groups(table)):
        labels.append(name)
        if isinstance(found, Groups):
            found = _redundant(found, name, splits) or found
        if isinstance(found, LeftOut):
            left_out[name] = found
            continue
        pairs = list(found.pairs())
        if len(pairs) == 2:  # the second half is the complement of the first: one column for both
            made.append((pairs.pop(0)[0], j, len(columns), True))
        for group, mask in pairs:
            made.append((group, j, len(columns), False))
            columns.append(mask)
    known = ((group, columns[c] ^ flipped) for group, _, c, flipped in made)
    named, same_rows = _distinct(groups, columns[0], known)
    for j, (group, mask) in enumerate(named, start=len(labels)):
        made.append((group, j, len(columns), False))
        columns.append(mask)
    return Masks(
        columns=_side_by_side(columns),
        groups=tuple(group for group, *_ in made),
        feature=np.array([feature for _, feature, _, _ in made], dtype=np.intp),
        column=np.array([column for _, _, column, _ in made], dtype=np.intp),
        complement=np.array([complement for *_, complement in made], dtype=np.bool_),
        labels=[*labels, *(group.name for group, _ in named)],
        n_unnamed=len(labels),
        left_out=left_out,
        same_rows=same_rows,
    )


def _redundant(groups: Groups, name: str, splits: dict[bytes, str]) -> LeftOut | None:
    """Return the reason if the groups of a feature are redundant, else record its split.

    `splits` maps each split of the rows in two to the first feature that makes it.
    """
    if len(groups) < 2:
        return LeftOut("constant")
    if len(groups) > 2:
        return None
    half = list(groups.values())[-1]
    # a half and its complement are the same split: use the half without the first row as the key
    twin = splits.setdefault(np.packbits(half ^ half[0]).tobytes(), name)
    return None if twin == name else LeftOut("same split", twin)


def _distinct(
    groups: Groups, everyone: Mask, known: Iterator[tuple[Group, Mask]]
) -> tuple[list[tuple[Group, Mask]], dict[Group, Group]]:
    """Return the groups with distinct rows, and for each other group one with the same rows.

    A repeated test would only reduce power.
    """
    kept = list[tuple[Group, Mask]]()
    same_rows = dict[Group, Group]()
    if not groups:
        return kept, same_rows
    seen = {np.packbits(mask).tobytes(): group for group, mask in known}
    all_rows = np.packbits(everyone).tobytes()
    for group, mask in groups.pairs():
        rows = np.packbits(mask).tobytes()
        if rows in seen:
            same_rows[group] = seen[rows]
        elif rows != all_rows:
            kept.append((group, mask))
            seen[rows] = group
    return kept, same_rows


def _side_by_side(columns: list[Mask]) -> Mask:
    out = np.empty((columns[0].size, len(columns)), dtype=np.bool_)
    for j, column in enumerate(columns):
        out[:, j] = column
    return out
