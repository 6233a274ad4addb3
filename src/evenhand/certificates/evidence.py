"""What a certificate asks of the people it rests on, answered by their PITs or by counts of them (method: proof)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from evenhand._format import one_line
from evenhand._validate import Floats, NotKeptError, bad_input
from evenhand.calibration.bands import (
    SurvivalBand,
    betting_cvar,
    binned_distance,
    binned_error_interval,
    dkw_band,
    error_interval,
    local_levels_band,
)
from evenhand.calibration.counts import ERROR_BINS, GAP_BINS
from evenhand.calibration.errors import calibration_error, pathwise_errors
from evenhand.calibration.pits import PITs, check_own_draws
from evenhand.calibration.scores import covered
from evenhand.columns import check_groups
from evenhand.draws import one_row_each

if TYPE_CHECKING:
    from evenhand.calibration.counts import PITCounts

Method = Literal["local-levels", "betting", "dkw"]

WORST = 0.5
"""Largest W1 error there is."""

ASSUMPTIONS = (
    (
        "the rows are a sample of the people the statement is about, exchangeable and independent"
        " of each other"
    ),
    (
        "the forecaster, its recalibration and its randomization were fixed before these rows were"
        " seen"
    ),
    "each draw is uniform, independent of the person and of other people's draws",
)
NOT_COVERED = (
    "a shift in time or population after these rows",
    "groups formed after seeing the draws, such as the people who were approved",
    "groups smaller than the stated mass",
    "outcomes that are not continuous",
)
SHARES_OF_ROWS = (
    "groups by their share of the rows: one row of each person was used, so sizes are shares of"
    " people"
)
"""What a certificate of people who have several rows does not cover."""

ONE_ROW_EACH = "One row of each person was used: group sizes are shares of people, not of rows."

OWN_DRAWS = (
    "the draws, which were not given, are each person's own, one in each of as many equal cells of"
    " [0, 1]"
)
ROUNDED = (
    "errors and gaps were rounded up to bins of 1/{error} and 1/{gap}, which only widens bounds"
)


def not_covered(one_row_each: bool) -> tuple[str, ...]:
    """Return what no certificate covers, with what a certificate of one row per person does not."""
    return (*NOT_COVERED, SHARES_OF_ROWS) if one_row_each else NOT_COVERED


class Values(NamedTuple):
    """One value per person: `values` themselves, or where there are `counts`, each for so many people."""

    values: Floats
    counts: NDArray[np.int64] | None = None

    def complement(self) -> Values:
        """Return 1 less each value."""
        return Values(1 - self.values, self.counts)

    def band(self, method: Method, top: float, confidence: float) -> SurvivalBand:
        """Upper band for the law of the values."""
        make = dkw_band if method == "dkw" else local_levels_band
        return make(self.values, top, confidence, self.counts)

    def worst_mean(
        self, method: Method, mass: float, top: float, confidence: float, seed: int
    ) -> float:
        """Upper bound for the mean of the worst `mass`; bets need a row each."""
        if method == "betting":
            return betting_cvar(self.values, mass, top, confidence, seed)
        return self.band(method, top, confidence).cvar(mass)

    def total(self) -> int:
        """Return the number of people."""
        return self.values.size if self.counts is None else int(self.counts.sum())

    def at_least(self, threshold: float) -> int:
        """Return the number of people whose value is at least this."""
        hits = self.values >= threshold
        return int(hits.sum() if self.counts is None else self.counts[hits].sum())


@dataclass(frozen=True, eq=False, repr=False)
class RowEvidence:
    """The PITs themselves.

    Parameters
    ----------
    pit : ndarray of shape (n, m)
        PITs: rows are people, columns draws.
    r : ndarray of shape (n, m) or None
        Their draws, where known.
    one_draw : ndarray of shape (n,)
        One PIT per person, its draw chosen at random.
    gap : ndarray of shape (n,) or None
        `|h[x, r](y) - r|` of the same draw.
    masks : dict of str to ndarray of bool
        The named groups.
    """

    pit: Floats
    r: Floats | None
    one_draw: Floats
    gap: Floats | None
    masks: Mapping[str, NDArray[np.bool_]]

    def __repr__(self) -> str:
        return one_line(
            self, n_samples=self.n_samples, n_draws=self.n_draws, groups=len(self.masks)
        )

    @classmethod
    def of(
        cls,
        pits: PITs,
        groups: Any,
        cluster: ArrayLike | None,
        random: np.random.Generator,
    ) -> RowEvidence:
        """Check the draws, take one row of each person, and choose one draw per row."""
        matrix = pits.matrix
        draws = pits.draws
        if draws is None and (matrix == matrix[:, :1]).all():
            matrix = matrix[:, :1]  # one forecast each, repeated
        n, m = matrix.shape
        masks: Mapping[str, NDArray[np.bool_]] = check_groups(groups, n)
        rows = None if cluster is None else one_row_each(cluster, n, random)
        if draws is not None:
            check_own_draws(draws, rows)
        if rows is not None:
            matrix = matrix[rows]
            draws = None if draws is None else draws[rows]
            masks = {name: mask[rows] for name, mask in masks.items()}
            n = rows.size
        place = np.arange(n), random.integers(m, size=n)
        one_draw = matrix[place]
        return cls(
            matrix,
            draws,
            one_draw,
            None if draws is None else np.abs(one_draw - draws[place]),
            masks,
        )

    @property
    def n_samples(self) -> int:
        """People."""
        return int(self.pit.shape[0])

    @property
    def n_draws(self) -> int:
        """Draws per person."""
        return int(self.pit.shape[1])

    @property
    def is_randomized(self) -> bool:
        """Whether a draw stands behind the forecasts."""
        return self.r is not None or self.n_draws > 1

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Draws that were not given."""
        return () if self.n_draws == 1 or self.r is not None else (OWN_DRAWS,)

    @cached_property
    def errors(self) -> Values:
        """Pathwise errors."""
        # from draws spread over cells the exact W1 of a row never understates in expectation
        # (convexity)
        return Values(pathwise_errors(self.pit))

    @property
    def gaps(self) -> Values | None:
        """`|h[x, r](y) - r|` of one draw each."""
        return None if self.gap is None else Values(self.gap)

    @property
    def named(self) -> Mapping[str, NDArray[np.bool_]]:
        """The named groups, as masks."""
        return self.masks

    @property
    def groups(self) -> dict[str, Evidence]:
        """The rows of each named group."""
        return {
            name: RowEvidence(self.pit[mask], None, self.one_draw[mask], None, {})
            for name, mask in self.masks.items()
        }

    def knows(self, level: float) -> bool:
        """Whether the central intervals of this level were counted: all are."""
        return True

    def inside(self, level: float) -> Values:
        """Shares of draws whose central interval holds the outcome."""
        return Values(covered(self.pit, level))

    def error(self) -> float:
        """Exact W1 error."""
        return calibration_error(self.pit) if self.n_samples else np.nan

    def error_interval(self, confidence: float) -> tuple[float, float]:
        """Interval from one PIT per row."""
        return error_interval(self.one_draw, confidence) if self.n_samples else (0.0, WORST)


@dataclass(frozen=True, eq=False, repr=False)
class CountEvidence:
    """Counts of PITs in bins: values stand at the upper ends of their bins, so that no bound is understated.

    Parameters
    ----------
    counts : PITCounts
        Of everybody.
    by_group : dict of str to PITCounts
        Of the named groups.
    """

    counts: PITCounts
    by_group: Mapping[str, PITCounts]

    def __repr__(self) -> str:
        return one_line(
            self, n_samples=self.n_samples, n_draws=self.n_draws, groups=len(self.by_group)
        )

    @classmethod
    def of(
        cls, counts: PITCounts, by_group: Mapping[str, PITCounts], is_randomized: bool
    ) -> CountEvidence:
        """Check that there is somebody and that the groups are of these people and this kind of forecaster."""
        if counts.n_samples == 0:
            raise bad_input("counts", "hold at least one person", "none")
        if not is_randomized and (counts.n_draws > 1 or counts.gap is not None):
            remedy = "count the one column of a deterministic forecaster, without r"
            raise bad_input(
                "is_randomized", "be True of several draws or known ones", is_randomized, remedy
            )
        for name, group in by_group.items():
            pairs = [(group.one_draw, counts.one_draw), (group.error, counts.error)]
            if group.n_draws != counts.n_draws or any(
                (part > whole).any() for part, whole in pairs
            ):
                remedy = "take both from the same calls of count_pits"
                raise bad_input(
                    f"groups[{name!r}]", "count some of the same people", "others", remedy
                )
        return cls(counts, dict(by_group))

    r = gap = None  # of each person: not kept

    @property
    def pit(self) -> Floats:
        """Not kept: raises InputError."""
        raise NotKeptError(
            "counts keep no PITs of each person; read evidence.counts, or use certify_pit"
        )

    one_draw = pit

    @property
    def named(self) -> Mapping[str, PITCounts]:
        """The named groups, as counts."""
        return self.by_group

    @cached_property
    def n_samples(self) -> int:
        """People."""
        return self.counts.n_samples

    @property
    def n_draws(self) -> int:
        """Draws per person."""
        return self.counts.n_draws

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Draws that were not given, and what binning does."""
        rounded = ROUNDED.format(error=2 * ERROR_BINS, gap=GAP_BINS)
        return (
            (rounded,) if self.n_draws == 1 or self.counts.gap is not None else (OWN_DRAWS, rounded)
        )

    @property
    def errors(self) -> Values:
        """Pathwise errors, rounded up."""
        return Values(np.arange(1, ERROR_BINS + 1) / (2 * ERROR_BINS), self.counts.error)

    @property
    def gaps(self) -> Values | None:
        """`|h[x, r](y) - r|` of one draw each, rounded up."""
        return (
            None
            if self.counts.gap is None
            else Values(np.arange(1, GAP_BINS + 1) / GAP_BINS, self.counts.gap)
        )

    @property
    def groups(self) -> dict[str, Evidence]:
        """The counts of each named group."""
        return {name: CountEvidence(counts, {}) for name, counts in self.by_group.items()}

    def knows(self, level: float) -> bool:
        """Whether the central intervals of this level were counted."""
        return level in self.counts.inside

    def inside(self, level: float) -> Values:
        """Shares of draws whose central interval holds the outcome: exact."""
        if not self.knows(level):
            counted = ", ".join(f"{one:g}" for one in self.counts.levels) or "none"
            remedy = "count the rows again with this level in count_pits(..., levels=...)"
            raise bad_input("level", f"be one that was counted ({counted})", level, remedy)
        return Values(np.arange(self.n_draws + 1) / self.n_draws, self.counts.inside[level])

    def error(self) -> float:
        """W1 error, to 1/12800."""
        return binned_distance(self.counts.pit) if self.n_samples else np.nan

    def error_interval(self, confidence: float) -> tuple[float, float]:
        """Interval from the bins of one PIT per person."""
        return (
            binned_error_interval(self.counts.one_draw, confidence)
            if self.n_samples
            else (0.0, WORST)
        )


Evidence = RowEvidence | CountEvidence


def named_table(groups: Mapping[str, Evidence], confidence: float) -> pd.DataFrame:
    """W1 errors of named groups and intervals for all of them at once, by Bonferroni."""
    rows = [
        (
            name,
            group.n_samples,
            group.error(),
            *group.error_interval(1 - (1 - confidence) / len(groups)),
        )
        for name, group in groups.items()
    ]
    return pd.DataFrame(rows, columns=["group", "n", "error", "low", "high"])


def questions(n_draws: int, is_randomized: bool) -> pd.DataFrame:
    """What people can answer about this kind of forecaster: `question`, `answered`, `why`."""
    single = n_draws == 1
    proof = "with several draws per person the error of each person's own forecasts is seen"
    if not is_randomized:
        proof = (
            "one forecast per person: even the true distribution has pathwise error 1/4 or more,"
            " and whatever is calibrated for one population is off by as much for another with the"
            " same rows (1/8 in the paper)"
        )
    elif single:
        proof = (
            "only one draw per person is known: give PITs over several draws of the same forecaster"
        )
    rows = [
        ("is it calibrated on average", True, "one PIT per person suffices, for any forecaster"),
        ("is it calibrated for groups named beforehand", True, "the same, group by group"),
        ("is it calibrated for every group of a given size", not single, proof),
        ("do intervals hold as often as stated in every group of a given size", not single, proof),
        (
            "is it calibrated for groups formed after the draws",
            False,
            "such groups can single out lucky draws",
        ),
    ]
    return pd.DataFrame(rows, columns=["question", "answered", "why"])
