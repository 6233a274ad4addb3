"""Sums over groups of rows from which the estimates and intervals of all groups are computed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from evenhand._validate import Floats, Ints
from evenhand.calibration.event_sums import EVENT_NAMES, event_values
from evenhand.calibration.pits import BLOCK_ROWS, PITs
from evenhand.calibration.scores import share_inside

COVERED = (0.8, 0.9)
"""Nominal levels of the central prediction intervals whose coverage is listed by group."""


WEIGHTED_EVENTS = ("w excess", "w2 variance", "w tilt", "w2 tilt variance")
"""Products with weights that follow `EVENT_NAMES` if rows have weights."""


@dataclass(frozen=True)
class RowValues:
    """Values of each row that are summed over groups.

    Parameters
    ----------
    n_draws : int
        Number of draws per person.
    has_residual, is_weighted : bool
        Whether residuals and weights are known.
    centre : float
        Value subtracted from residuals before they are summed: the variance of a group would
        otherwise lose its digits in a difference of large sums.
    has_cells : bool, default False
        Whether covered shares are averages over the positions of PITs in their cells. `u` is one
        position in either case: tests have exact null distributions (outcomes: 4.3).
    has_events : bool, default False
        Whether 0/1 outcomes are known whose residuals are the residuals.
    has_event_cells : bool, default False
        Whether the cells are those of 0/1 outcomes, whose sums tests and errors use.
    most_weight : float, default 1
        Largest weight of a row.

    Notes
    -----
    The values are, in the order of `names`: 1, level `u - 1/2` and spread `|u - 1/2| - 1/4` of one
    draw `u` per person; with weights `w` also the products of both with `w`; for each level the
    share of draws whose interval covers the outcome; for cells of 0/1 outcomes `EVENT_NAMES`; the
    first three powers of the residual; 0/1 outcomes. With weights, shares, residuals and outcomes
    are multiplied by `w`, products with `w^2` follow, and the last two values are `w^2` and `w`.
    """

    n_draws: int
    has_residual: bool
    is_weighted: bool
    centre: float = 0.0
    has_cells: bool = False
    has_events: bool = False
    has_event_cells: bool = False
    most_weight: float = 1.0

    @property
    def counts_hits(self) -> bool:
        """Whether each covered share is 0 or 1."""
        return self.n_draws == 1 and not self.has_cells

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the values, in the order of the sums."""
        names = ["n", "level", "spread"]
        names += ["w level", "w spread"] if self.is_weighted else []
        for level in COVERED:
            names += [f"covered {level}"] + [f"w2 covered {level}"] * self.is_weighted
        if self.has_event_cells:
            names += [*EVENT_NAMES, *(WEIGHTED_EVENTS if self.is_weighted else ())]
        if self.has_residual:
            cubes = ["w2 residual", "w2 squares"] if self.is_weighted else ["squares", "cubes"]
            names += ["residual", *cubes]
        names += ["events"] if self.has_events else []
        return (*names, *(["w2", "w"] if self.is_weighted else []))

    def values(
        self, pits: PITs, residual: Floats | None, u: Floats, events: Floats | None = None
    ) -> Floats:
        """Return the values of all rows, shape (q, n); `u` is one PIT per person, (n,)."""
        n = pits.n_samples
        level = u - 0.5
        spread = np.abs(level) - 0.25
        rows = [np.ones(n), level, spread]
        w = pits.weights
        if w is not None:
            rows += [w * level, w * spread]
        for share in _shares(pits):
            rows += [share] if w is None else [w * share, w**2 * share]
        in_cells = pits.events() if self.has_event_cells else None
        if in_cells is not None:
            rows += _event_rows(in_cells, w)
        if residual is not None:
            excess = residual - self.centre
            powers = [excess, excess**2, excess**3]
            rows += powers if w is None else [w * excess, w**2 * excess, w**2 * excess**2]
        if events is not None:
            rows.append(events if w is None else w * events)
        if w is not None:
            rows += [w**2, w]
        return np.stack(rows)


def row_values(
    pits: PITs, residual: Floats | None, u: Floats, events: Floats | None = None
) -> tuple[RowValues, Floats]:
    """Return the values of each row, shape (q, n), and their order; `events` are 0/1 outcomes."""
    centre = 0.0
    if residual is not None:
        centre = float(np.average(residual, weights=pits.weights))
    is_weighted = pits.weights is not None
    in_cells = pits.events()
    if events is None and residual is not None and in_cells is not None:
        happened, probability = in_cells
        is_own = np.allclose(residual, happened - probability, rtol=0, atol=1e-9)
        events = happened if is_own else None
    order = RowValues(
        pits.n_draws,
        residual is not None,
        is_weighted,
        centre,
        has_cells=pits.cells is not None,
        has_events=events is not None,
        has_event_cells=in_cells is not None,
        most_weight=1.0 if pits.weights is None else float(pits.weights.max()),
    )
    return order, order.values(pits, residual, u, events)


def _event_rows(events: tuple[Floats, Floats], weights: Floats | None) -> list[Floats]:
    """Return the values of rows whose cells are those of 0/1 outcomes."""
    rows = event_values(events)
    if weights is None:
        return list(rows)
    named = dict(zip(EVENT_NAMES, rows, strict=True))
    sums = [weights * named["excess"], weights**2 * named["variance"]]
    spread = [weights * named["tilt"], weights**2 * named["tilt variance"]]
    return [*rows, *sums, *spread]


def _shares(pits: PITs) -> list[Floats]:
    """Return each person's share of draws inside the interval of each level."""
    # in blocks of rows, so that temporaries need little memory
    blocks = list(pits.row_blocks(BLOCK_ROWS))
    return [
        np.concatenate([share_inside(*block, level).mean(axis=-1) for block in blocks])
        for level in COVERED
    ]


@dataclass(frozen=True, eq=False)
class GroupSums:
    """Sums over the rows of each of `g` groups.

    Parameters
    ----------
    order : RowValues
        Order of the sums.
    sums : ndarray of shape (q, g)
        Sums of the values of the rows.
    error : ndarray of shape (g,)
        Estimates of the W1 calibration error, over all draws.
    slack : ndarray of shape (g,)
        Largest amount by which the exact error of the same PITs may exceed `error`: 0, or half the
        width of a bin.
    """

    order: RowValues
    sums: Floats
    error: Floats
    slack: Floats

    def __getitem__(self, name: str) -> Floats:
        """Return a sum over all groups by its name."""
        return np.asarray(self.sums[self.order.names.index(name)])

    def __len__(self) -> int:
        return int(self.error.size)

    def take(self, wanted: Ints) -> GroupSums:
        """Return some of the groups."""
        return replace(
            self,
            sums=self.sums[:, wanted],
            error=self.error[wanted],
            slack=self.slack[wanted],
        )

    def join(self, other: GroupSums) -> GroupSums:
        """Return these groups, followed by those of `other`."""
        return replace(
            self,
            sums=np.concatenate((self.sums, other.sums), axis=-1),
            error=np.concatenate((self.error, other.error)),
            slack=np.concatenate((self.slack, other.slack)),
        )

    @property
    def in_cells(self) -> dict[str, Floats]:
        """Sums of the values of `EVENT_NAMES` over all groups."""
        return {name: self[name] for name in EVENT_NAMES}

    @property
    def n(self) -> Floats:
        """Number of rows."""
        return np.rint(self["n"])

    @property
    def weight(self) -> Floats:
        """Sum of weights."""
        return self["w"] if self.order.is_weighted else self.n

    @property
    def n_effective(self) -> Floats:
        """Effective number of rows (Kish)."""
        return self.weight**2 / self["w2"] if self.order.is_weighted else self.n

    @property
    def bias(self) -> Floats:
        """Mean residual; NaN if residuals are unknown."""
        if not self.order.has_residual:
            return np.full(len(self), np.nan)
        return self.order.centre + self["residual"] / self.weight

    def coverage(self, level: float) -> Floats:
        """Share of outcomes in the central interval of a level."""
        # rounding errors in sums of weights may leave the share slightly outside [0, 1]
        return np.clip(self[f"covered {level}"] / self.weight, 0.0, 1.0)

    @property
    def estimates(self) -> dict[str, Floats]:
        """Estimates of "error", "bias" and, by level, "coverage_80" and so on."""
        covered = {coverage_name(level): self.coverage(level) for level in COVERED}
        return {"error": self.error, "bias": self.bias} | covered


def coverage_name(level: float) -> str:
    """Return the name of the coverage of an interval in tables, such as `coverage_80`."""
    return f"coverage_{level * 100:.0f}"
