"""Sums of a watch that are exact in any order: PITs in bins, biases, delays and repeated draws."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, Mask
from evenhand.calibration import binned_distance
from evenhand.monitoring.settings import Direction

Whole = NDArray[np.int64]

BINS = 100
"""Number of equal bins of [0, 1] for PITs: estimates of errors are exact to half a bin, 0.005."""

UNIT = 1 << 20
"""Parts of a row that are counted: sums of whole numbers do not depend on the order of rows."""

GENERATION = 1 << 16
"""Draws are remembered to recognize repeated ones for at least so many later draws."""


class GroupSums:
    """Sums of the rows of G groups, in parts of a row that are whole numbers.

    Parameters
    ----------
    n_groups : int
        Number of groups.
    """

    width: int

    def __init__(self, n_groups: int) -> None:
        self.counts = np.zeros((n_groups, self.width), dtype=np.int64)

    def extend(self, n_groups: int) -> None:
        """Add groups without rows, up to a number of groups."""
        new = np.zeros((n_groups - len(self.counts), self.width), dtype=np.int64)
        self.counts = np.concatenate((self.counts, new))

    def _add(self, parts: Whole, members: Mask) -> None:
        # in floating point the product is fast, and exact up to 2^53: 2^33 rows
        total = members.T.astype(np.float64) @ parts.astype(np.float64)
        self.counts += total.astype(np.int64)

    def to_state(self) -> list[list[int]]:
        """Return the sums as JSON values."""
        counts: list[list[int]] = self.counts.tolist()
        return counts

    def restore(self, state: Any) -> None:
        """Take over the output of `to_state`."""
        self.counts = np.array(state, dtype=np.int64).reshape(-1, self.width)


class PITSums(GroupSums):
    """PITs of groups in bins, for the estimates of their errors.

    Each PIT cell is spread over its bins; a row counts as 2^20 parts, which makes sums exact.

    Examples
    --------
    >>> sums = PITSums(1)
    >>> sums.add(np.array([0.0, 0.5]), np.array([1.0, 0.5]), np.array([[True], [False]]))
    >>> sums.error(0), sums.direction(0)
    (0.0, None)
    """

    width = BINS

    def add(self, low: Floats, high: Floats, members: Mask) -> None:
        """Add PIT cells of rows whose outcome is known; `members` has shape (n, G)."""
        edges = np.arange(BINS + 1) / BINS
        width = np.maximum(high - low, 1e-12)[:, None]
        below = np.clip((edges - low[:, None]) / width, 0.0, 1.0)
        below[:, -1] = 1.0
        upto = np.rint(below * UNIT).astype(np.int64)
        self._add(upto[:, 1:] - upto[:, :-1], members)

    def n_rows(self, group: int) -> int:
        """Return the number of rows of a group with a known outcome."""
        return round(int(self.counts[group].sum()) / UNIT)

    def error(self, group: int) -> float | None:
        """Return the W1 distance of a group's PITs to uniform; None if it has no rows."""
        # sums of parts of 2^20 would exceed whole numbers in floating point from 10^7 rows on
        return binned_distance(self.counts[group] >> 10) if self.counts[group].any() else None

    def direction(self, group: int) -> Direction | None:
        """Return in which way a group's PITs deviate most; None if they do not."""
        counts = self.counts[group].astype(np.float64)
        if not counts.any():
            return None
        middle = (np.arange(BINS) + 0.5) / BINS
        shares = counts / counts.sum()
        shift = float(shares @ middle) - 0.5
        spread = float(shares @ np.abs(middle - 0.5)) - 0.25
        if max(abs(shift), abs(spread)) < 1e-9:
            return None
        if abs(shift) >= abs(spread):
            return "higher" if shift > 0 else "lower"
        return "narrow" if spread > 0 else "wide"


class BiasSums(GroupSums):
    """Sums of outcome minus probability of groups, for 0/1 outcomes.

    Examples
    --------
    >>> sums = BiasSums(1)
    >>> sums.add(np.array([0.75, -0.25]), np.array([[True], [True]]))
    >>> sums.error(0), sums.direction(0)
    (0.25, 'higher')
    """

    width = 2

    def add(self, excess: Floats, members: Mask) -> None:
        """Add rows whose outcome is known; `members` has shape (n, G)."""
        parts = np.rint(excess * UNIT).astype(np.int64)
        self._add(np.stack((np.ones_like(parts), parts), axis=-1), members)

    def n_rows(self, group: int) -> int:
        """Return the number of rows of a group with a known outcome."""
        return int(self.counts[group, 0])

    def error(self, group: int) -> float | None:
        """Return the absolute mean of outcome minus probability; None if there are no rows."""
        n, total = (int(one) for one in self.counts[group])
        return abs(total) / UNIT / n if n else None

    def direction(self, group: int) -> Direction | None:
        """Return whether outcomes are higher or lower than predicted; None if neither."""
        total = int(self.counts[group, 1])
        if total == 0:
            return None
        return "higher" if total > 0 else "lower"


class Delays:
    """Outcomes by the days from serving to their record, and counts of late and missing ones.

    Parameters
    ----------
    matures_after_days : float
        Horizon in days; bins divide it evenly. Without one (0) their edges are fixed.

    Examples
    --------
    >>> delays = Delays(10.0)
    >>> delays.add(np.array([True, False, False]), np.array([0.5, np.nan, 12.0]))
    >>> delays.n_missing, delays.n_late, delays.counts[:2]
    (2, 1, array([1, 0]))
    """

    N_BINS = 20
    EDGES = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 36525)

    def __init__(self, matures_after_days: float) -> None:
        even = [matures_after_days * i / self.N_BINS for i in range(self.N_BINS + 1)]
        self.edges: list[float] = (
            even if matures_after_days > 0 else [float(one) for one in self.EDGES]
        )
        self.counts = np.zeros(len(self.edges) - 1, dtype=np.int64)
        self.n_missing = 0
        self.n_late = 0

    def add(self, known: Mask, delay: Floats | None) -> None:
        """Add rows; delays in days are NaN where there is no outcome."""
        self.n_missing += int((~known).sum())
        if delay is None:
            return
        self.n_late += int((~known & ~np.isnan(delay)).sum())
        waited = delay[known & ~np.isnan(delay)]
        # a bin contains its upper end, so that the latest outcome in time is in the last one
        bins = np.searchsorted(self.edges, waited, side="left") - 1
        np.add.at(self.counts, np.clip(bins, 0, self.counts.size - 1), 1)

    def to_state(self) -> dict[str, Any]:
        """Return the counts as JSON values."""
        counts = self.counts.tolist()
        return {"counts": counts, "n_missing": self.n_missing, "n_late": self.n_late}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the output of `to_state`."""
        self.counts = np.array(state["counts"], dtype=np.int64)
        self.n_missing = int(state["n_missing"])
        self.n_late = int(state["n_late"])


class SeenDraws:
    """Draws that were seen before: a person's draw in one context is evidence only once.

    At least the last 65,536 draws are remembered, and fewer than twice as many. Fresh draws of 52
    bits practically never coincide.

    Examples
    --------
    >>> seen = SeenDraws()
    >>> seen.is_new(np.array([0.1, 0.2, 0.1, np.nan])), seen.n_repeated
    (array([ True,  True, False, False]), 1)
    """

    def __init__(self) -> None:
        self.n_repeated = 0
        self._older: dict[float, None] = {}
        self._recent: dict[float, None] = {}

    def is_new(self, r: Floats) -> Mask:
        """Return which draws were not seen before, and remember them; NaN is no draw."""
        new = ~np.isnan(r)
        for row in np.flatnonzero(new).tolist():
            draw = float(r[row])
            if draw in self._recent or draw in self._older:
                new[row] = False
                self.n_repeated += 1
                continue
            # one row after another, so that splits into calls do not matter
            self._recent[draw] = None
            if len(self._recent) == GENERATION:
                self._older, self._recent = self._recent, {}
        return np.asarray(new)

    def to_state(self) -> dict[str, Any]:
        """Return the draws as JSON values: bytes of little-endian floats in base64."""
        return {
            "n_repeated": self.n_repeated,
            "older": _packed(self._older),
            "recent": _packed(self._recent),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take over the output of `to_state`."""
        self.n_repeated = int(state["n_repeated"])
        self._older, self._recent = (_unpacked(state[key]) for key in ("older", "recent"))


def _packed(draws: Iterable[float]) -> str:
    return base64.b64encode(np.array([*draws], dtype="<f8").tobytes()).decode("ascii")


def _unpacked(text: str) -> dict[float, None]:
    draws = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f8")
    return dict.fromkeys(draws.tolist())
