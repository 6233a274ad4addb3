"""Row record of an audit: values of each row that let another audit be compared row by row."""

from __future__ import annotations

import base64
import hashlib
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._validate import Floats, Mask
from evenhand.calibration import Cells, ramps_at
from evenhand.report import Measure

MOST_ROWS = 20_000
"""Most rows of a record; audits of more rows have none."""

EDGES = 40
"""Number of cells of PITs; the ends of 80% and 90% intervals are edges."""

MOST_DRAWS = 255
"""Most draws of a row that are counted exactly; shares of more draws are rounded to 1/255."""

KEPT_SCORES = (
    "log score",
    "cell log score",
    "CRPS",
    "log loss",
    "Brier score",
    "interval width",
)
"""Scores of each row that are recorded; of the widths that of 80% intervals."""


@dataclass(frozen=True, eq=False, repr=False)
class RowRecord:
    """Values of each row, for comparisons with another audit of the same rows.

    Parameters
    ----------
    key : str
        Hash of all outcomes in rising order: equal for audits of the same rows in any order.
    fingerprint : ndarray of uint64, shape (n,)
        Hash of each outcome, with a key that is made of all outcomes and is not stored.
    n_draws : int
        Number of draws per row, at most 255; 255 for outcomes with atoms.
    below : ndarray of shape (n, 39)
        Share of the row's draws whose PIT is at most 1/40, 2/40, ..., 39/40; for outcomes with
        atoms the mean over positions in the cells.
    residual : ndarray of shape (n,)
        Outcome minus mean forecast, units of the outcome; of 0/1 outcomes minus the probability,
        which is rounded to 2^-24.
    weight : ndarray of shape (n,) or None
        Weights of the rows; None if all are equal.
    scores : dict of str to ndarray of shape (n,)
        Scores of each row, by the name of the measure.
    masks : dict of str to ndarray of bool, shape (n,)
        Groups of single features and named groups, from which scanned groups are intersected.
    """

    key: str
    fingerprint: NDArray[np.uint64]
    n_draws: int
    below: Floats
    residual: Floats
    weight: Floats | None
    scores: dict[str, Floats]
    masks: dict[str, Mask]

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return self.fingerprint.size

    @classmethod
    def of(
        cls,
        cells: Cells,
        outcomes: Floats,
        residual: Floats,
        scores: Mapping[Measure, Floats],
        masks: Mapping[str, Mask],
    ) -> RowRecord | None:
        """Return the record of the rows of an audit; None for more than `MOST_ROWS`.

        Values are rounded as they are stored, so that an audit and its JSON compare alike.
        """
        n = outcomes.size
        if n > MOST_ROWS:
            return None
        key, fingerprint = _fingerprints(outcomes)
        if any(measure.what == "Brier score" for measure in scores):
            residual = outcomes - _storable(outcomes - residual)
        kept = {
            str(measure): values
            for measure, values in scores.items()
            if measure.what in KEPT_SCORES
            and not (measure.what == "interval width" and measure.level != 0.8)
            and values.size == n
            # an infinite score cannot be compared
            and np.isfinite(values).all()
        }
        # shares of positions in the cells are stored like those of many draws
        draws = min(cells.n_draws, MOST_DRAWS) if cells.are_points else MOST_DRAWS
        return cls(
            key,
            fingerprint,
            draws,
            _below(_counts(_shares(cells), draws), n, draws),
            _single(residual),
            None if cells.weights is None else _single(cells.weights),
            {name: _single(values) for name, values in kept.items()},
            dict(masks),
        )

    def has_outcomes(self, outcomes: Floats) -> bool:
        """Whether these are the outcomes of the rows, in the same order."""
        # in any order few distinct outcomes, such as 0 and 1, may agree by chance
        is_same = outcomes.size == self.n_samples
        return is_same and np.array_equal(_fingerprints(outcomes)[1], self.fingerprint)

    def take(self, rows: NDArray[np.intp]) -> RowRecord:
        """Return the rows in another order."""
        return RowRecord(
            self.key,
            self.fingerprint[rows],
            self.n_draws,
            self.below[rows],
            self.residual[rows],
            None if self.weight is None else self.weight[rows],
            {name: values[rows] for name, values in self.scores.items()},
            {name: mask[rows] for name, mask in self.masks.items()},
        )

    def aligned(self, other: RowRecord) -> RowRecord:
        """Return the same rows in the order of another record of them.

        Rows of one outcome have one fingerprint. Among them rows are matched by their groups, then
        by their order; rows of the same outcome and groups are exchangeable in what is compared.
        """
        if np.array_equal(self.fingerprint, other.fingerprint):
            return self
        shared = [name for name in self.masks if name in other.masks]
        ours, theirs = (
            np.lexsort([*(record.masks[name] for name in shared), record.fingerprint])
            for record in (self, other)
        )
        order = np.empty_like(ours)
        order[theirs] = ours
        return self.take(order)

    def to_state(self) -> dict[str, Any]:
        """Return the record as JSON values: columns of numbers as compressed text."""
        columns, groups = _distinct(self.masks)
        bits = np.packbits(columns, axis=-1)
        return {
            "n": self.n_samples,
            "key": self.key,
            "fingerprint": _packed(self.fingerprint.astype("<u8")),
            "n_draws": self.n_draws,
            "pit": _packed(_counts(self.below, self.n_draws)),
            "residual": _packed(self.residual.astype("<f4")),
            "weight": None if self.weight is None else _packed(self.weight.astype("<f4")),
            "scores": {name: _packed(values.astype("<f4")) for name, values in self.scores.items()},
            "groups": groups,
            "membership": _packed(bits),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> RowRecord:
        """Read a record from JSON values.

        Raises KeyError, IndexError, TypeError or ValueError if they are damaged.
        """
        n = int(state["n"])
        draws = int(state["n_draws"])
        below = _below(_unpacked(state["pit"], "<u1"), n, draws)
        bits = _unpacked(state["membership"], "<u1").reshape(-1, (n + 7) // 8)
        columns = np.unpackbits(bits, axis=-1, count=n).astype(np.bool_)
        weight = state["weight"]
        fingerprint = _unpacked(state["fingerprint"], "<u8").astype(np.uint64)
        residual = _unpacked(state["residual"], "<f4").astype(np.float64)
        weights = None if weight is None else _unpacked(weight, "<f4").astype(np.float64)
        scores = {
            str(name): _unpacked(text, "<f4").astype(np.float64)
            for name, text in state["scores"].items()
        }
        sizes = {values.size for values in (fingerprint, residual, *scores.values())}
        if sizes | {len(below), n if weights is None else weights.size} != {n}:
            raise ValueError(f"a column has not {n} rows")
        if weights is not None and not (weights.min() >= 0 and 0 < weights.sum() < np.inf):
            raise ValueError("weights must be positive")
        return cls(
            str(state["key"]),
            fingerprint,
            draws,
            below,
            residual,
            weights,
            scores,
            {
                str(entry["group"]): columns[entry["column"]] ^ bool(entry["complement"])
                for entry in state["groups"]
            },
        )


def _single(values: Floats) -> Floats:
    """Round values to floats of 32 bits."""
    return values.astype("<f4").astype(np.float64)


def _storable(probability: Floats) -> Floats:
    """Return probabilities of which both `p` and `1 - p` are floats of 32 bits.

    Equal probabilities are then read as equal, whatever the outcome; 0 and 1 become their
    neighbors, so that the sign of a residual is that of the outcome.
    """
    steps = 2.0**24
    return np.clip(np.rint(probability * steps), 1, steps - 1) / steps


def _shares(cells: Cells) -> Floats:
    """Return the share of each row's PITs at or below each inner edge, shape (n, 39)."""
    if not cells.are_points:
        edges = np.arange(1, EDGES) / EDGES
        return ramps_at(edges, cells.low, cells.high) / cells.n_draws
    cell = np.clip(np.ceil(cells.drawn * EDGES).astype(np.intp) - 1, 0, EDGES - 1)
    n, m = cell.shape
    counts = np.bincount((cell + EDGES * np.arange(n)[:, None]).ravel(), minlength=n * EDGES)
    return np.asarray(np.cumsum(counts.reshape(n, EDGES), axis=-1)[:, :-1] / m)


def _counts(below: Floats, draws: int) -> NDArray[np.uint8]:
    """Return the cell of each row's PIT, or the number of its draws in each cell."""
    shares = np.diff(below, axis=-1, prepend=0.0, append=1.0)
    cells = np.argmax(shares, axis=-1) if draws == 1 else np.rint(shares * draws)
    return cells.astype("<u1")


def _below(cells: NDArray[Any], n: int, draws: int) -> Floats:
    """Return the shares of PITs at or below each inner edge from stored cells, shape (n, 39)."""
    if draws == 1:
        return (cells[:, None] <= np.arange(EDGES - 1)).astype(np.float64)
    counts = cells.reshape(n, EDGES).astype(np.float64)
    if not counts.any(axis=-1).all():
        raise ValueError("a row has no draws")
    return np.asarray((np.cumsum(counts, axis=-1) / counts.sum(axis=-1, keepdims=True))[:, :-1])


def _fingerprints(outcomes: Floats) -> tuple[str, NDArray[np.uint64]]:
    """Return the hash of all outcomes and that of each.

    The key of the hashes of single outcomes is made of all outcomes: without all of them nobody can
    find a continuous outcome by trying values. Equal outcomes have equal hashes, so that few whole
    numbers can be guessed from their frequencies.
    """
    values = np.ascontiguousarray(outcomes, dtype="<f8") + 0.0  # -0.0 becomes 0.0
    everything = np.sort(values).tobytes()
    secret = hashlib.blake2b(everything, digest_size=32, person=b"evenhand key").digest()
    public = hashlib.blake2b(secret, digest_size=16, person=b"evenhand rows").hexdigest()
    text = values.tobytes()
    hashes = b"".join(
        hashlib.blake2b(text[start : start + 8], digest_size=8, key=secret).digest()
        for start in range(0, len(text), 8)
    )
    return public, np.frombuffer(hashes, dtype="<u8").astype(np.uint64)


def _distinct(masks: Mapping[str, Mask]) -> tuple[Mask, list[dict[str, Any]]]:
    """Return the columns of the masks, a mask and its complement as one, and their names."""
    columns: list[Mask] = []
    place: dict[bytes, int] = {}
    groups = []
    for name, mask in masks.items():
        # the half without the first row is the column of a mask and of its complement
        is_flipped = bool(mask[0])
        column = mask ^ is_flipped
        at = place.setdefault(np.packbits(column).tobytes(), len(columns))
        columns += [column] if at == len(columns) else []
        groups.append({"group": name, "column": at, "complement": is_flipped})
    n = next((mask.size for mask in masks.values()), 0)
    return np.array(columns, dtype=np.bool_).reshape(len(columns), n), groups


def _packed(values: NDArray[Any]) -> str:
    return base64.b64encode(zlib.compress(values.tobytes(), 6)).decode("ascii")


def _unpacked(text: Any, dtype: str) -> NDArray[Any]:
    try:
        content = zlib.decompress(base64.b64decode(text, validate=True))
    except zlib.error as error:
        raise ValueError("not compressed by zlib") from error
    return np.frombuffer(content, dtype=dtype)


def intersections(names: Iterable[str], masks: Mapping[str, Mask]) -> dict[str, Mask]:
    """Return the masks of named groups, each a mask or the intersection of two.

    An intersection of the groups `a` and `b` is listed in a scan as `a and b`. Groups of no known
    mask are left out.
    """
    wanted = set(names)
    found = {name: masks[name] for name in masks if name in wanted}
    listed = list(masks)
    for i, first in enumerate(listed):
        for second in listed[i + 1 :]:
            for name in (f"{first} and {second}", f"{second} and {first}"):
                if name in wanted and name not in found:
                    found[name] = masks[first] & masks[second]
    return found
