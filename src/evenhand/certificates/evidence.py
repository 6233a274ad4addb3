"""Evidence of a certificate: Cells, counts of PITs, or PITs of times that may be cut off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import one_line
from evenhand._validate import Floats, Mask, bad_input
from evenhand.calibration import (
    ERROR_BINS,
    GAP_BINS,
    Cells,
    KaplanMeier,
    PITCounts,
    SurvivalBand,
    betting_cvar,
    binned_distance,
    binned_error_interval,
    calibration_error,
    check_own_draws,
    covered_whole,
    error_interval,
    local_levels_band,
    pathwise_errors,
    row_distances,
    row_excess,
)
from evenhand.certificates.assumptions import OWN_DRAWS, ROUNDED
from evenhand.certificates.certificate import WORST, Method
from evenhand.certificates.deterministic_intervals import (
    WIDER_LEVELS,
    WiderInterval,
    intervals_of_hits,
    wider_intervals,
    wider_intervals_of_counts,
)
from evenhand.draws import jittered, one_row_each
from evenhand.links import Link
from evenhand.tables import check_groups


class LinkBase(NamedTuple):
    """A link, and the PITs of the deterministic forecaster inside it.

    Parameters
    ----------
    pit : ndarray of shape (n,)
        PIT of each person under the deterministic forecaster, between 0 and 1.
    link : Link
        The link that randomizes its forecasts.
    cells : tuple of two ndarrays of shape (n,), optional
        Lower and upper ends of the cells of these PITs, for outcomes with atoms.
    """

    pit: Floats
    link: Link
    cells: tuple[Floats, Floats] | None = None

    def take(self, rows: Any) -> LinkBase:
        """Return the same for some of the people."""
        cells = None if self.cells is None else (self.cells[0][rows], self.cells[1][rows])
        return LinkBase(self.pit[rows], self.link, cells)

    def pits(self) -> Cells:
        """Return the PITs with their cells."""
        ends = None if self.cells is None else (self.cells[0][:, None], self.cells[1][:, None])
        return Cells(*(ends or (self.pit, self.pit)), self.pit)


class Values(NamedTuple):
    """One value per person, or, with `counts`, distinct values and their numbers of people."""

    values: Floats
    counts: NDArray[np.int64] | None = None

    def complement(self) -> Values:
        """Return one minus each value."""
        return Values(1 - self.values, self.counts)

    def band(self, top: float, confidence: float) -> SurvivalBand:
        """Return an upper band for the distribution of the values."""
        return local_levels_band(self.values, top, confidence, self.counts)

    def worst_mean(
        self, method: Method, mass: float, top: float, confidence: float, seed: int
    ) -> float:
        """Return an upper bound for the mean of the worst `mass`; betting needs one row each."""
        if method == "betting":
            # a bound for a single mean, without a band
            return betting_cvar(self.values, mass, top, confidence, seed)
        return self.band(top, confidence).cvar(mass)

    def total(self) -> int:
        """Return the number of people."""
        return self.values.size if self.counts is None else int(self.counts.sum())

    def at_least(self, threshold: float) -> int:
        """Return the number of people whose value is at least `threshold`."""
        hits = self.values >= threshold
        return int(hits.sum() if self.counts is None else self.counts[hits].sum())


class PeopleEvidence:
    """Evidence with PITs of each person."""

    pits: Cells
    gap: Floats | None
    masks: Mapping[str, Mask]

    def __repr__(self) -> str:
        return one_line(
            self, n_samples=self.n_samples, n_draws=self.n_draws, groups=len(self.masks)
        )

    @property
    def n_samples(self) -> int:
        """Number of people."""
        return self.pits.n_samples

    @property
    def n_draws(self) -> int:
        """Number of draws per person."""
        return self.pits.n_draws

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumption about draws that were not given, if any."""
        return () if self.n_draws == 1 or self.pits.draws is not None else (OWN_DRAWS,)

    @property
    def gaps(self) -> Values | None:
        """`|h[x, r](y) - r|` of one draw per person."""
        return None if self.gap is None else Values(self.gap)

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the named groups."""
        return tuple(self.masks)

    def knows(self, level: float) -> bool:
        """Return True: PITs give the coverage at any level."""
        return True


@dataclass(frozen=True, eq=False, repr=False)
class RowEvidence(PeopleEvidence):
    """PITs of each person.

    Parameters
    ----------
    pits : Cells
        PITs, with their draws if known.
    one_draw : ndarray of shape (n,)
        One PIT per person, at a draw chosen at random.
    gap : ndarray of shape (n,) or None
        `|h[x, r](y) - r|` at the same draw, if the draws are known.
    masks : mapping of str to ndarray of bool
        Rows of each named group.
    base : LinkBase or None
        The link and the PITs of the deterministic forecaster inside it, if they are known.
    is_rounded : bool
        Whether cells are those of rounded outcomes under continuous forecasts. Outcomes then lie at
        one position in their cells, and an interval that meets a cell need not cover the outcome.
    """

    pits: Cells
    one_draw: Floats
    gap: Floats | None
    masks: Mapping[str, Mask]
    base: LinkBase | None = None
    is_rounded: bool = False

    @property
    def has_cells(self) -> bool:
        """Whether the PITs have cells."""
        return not self.pits.are_points

    @cached_property
    def errors(self) -> Values:
        """Pathwise errors."""
        # with one draw per cell, the exact W1 of a row never understates the error in expectation
        # (convexity)
        return Values(pathwise_errors(self.pits))

    def group(self, name: str) -> RowEvidence:
        """Return the evidence of a named group."""
        mask = self.masks[name]
        one_draw = self.one_draw[mask]
        return RowEvidence(self.pits.take(mask), one_draw, None, {}, None, self.is_rounded)

    def inside(self, level: float) -> Values:
        """Return each person's share of draws whose central interval covers the outcome."""
        return Values(covered_whole(self._values, level))

    def missed(self, level: float) -> Values:
        """Return each person's share of draws whose central interval misses the outcome."""
        return self.inside(level).complement()

    @property
    def _values(self) -> Cells:
        """PITs whose cells are those of whole values: drawn positions if outcomes were rounded."""
        return self.pits.at_points() if self.is_rounded else self.pits

    def plain_intervals(
        self, mass: float, *, confidence: float, is_randomized: bool
    ) -> tuple[WiderInterval, ...]:
        """Return what intervals of the deterministic forecaster prove; empty if there is none."""
        if self.base is not None:
            # without its cells, a base of outcomes with atoms does not show what intervals cover
            is_known = self.base.cells is not None or not self.has_cells or self.is_rounded
            own = Cells(self.base.pit) if self.is_rounded else self.base.pits()
            return wider_intervals(own, mass, confidence=confidence) if is_known else ()
        return () if is_randomized else wider_intervals(self._values, mass, confidence=confidence)

    def error(self) -> float:
        """Return the exact W1 error."""
        return calibration_error(self.pits) if self.n_samples else np.nan

    def error_interval(self, confidence: float) -> tuple[float, float]:
        """Return a confidence interval for the W1 error, from one PIT per row."""
        return error_interval(self.one_draw, confidence) if self.n_samples else (0.0, WORST)


def row_evidence(
    pits: Cells,
    groups: Any,
    cluster: ArrayLike | None,
    random: np.random.Generator,
    base: LinkBase | None = None,
) -> RowEvidence:
    """Check the draws, take one row per person, and choose one draw per row."""
    if base is not None:
        base = _checked_base(base, pits)
    pits = pits.without_copies()
    masks: Mapping[str, Mask] = check_groups(groups, pits.n_samples)
    # bounds need independent rows: one row per person is chosen at random, and only the chosen
    # rows must have separate draws
    rows = None if cluster is None else one_row_each(cluster, pits.n_samples, random)
    if pits.draws is not None:
        check_own_draws(pits.draws, rows)
    if rows is not None:
        pits = pits.take(rows)
        masks = {name: mask[rows] for name, mask in masks.items()}
        base = None if base is None else base.take(rows)
    # one PIT per person at a random draw: independent, and distributed as the PITs in use
    n = pits.n_samples
    place = np.arange(n), random.integers(pits.n_draws, size=n)
    one_draw = pits.drawn[place]
    gap = None if pits.draws is None else np.abs(one_draw - pits.draws[place])
    return RowEvidence(pits, one_draw, gap, masks, base)


def _checked_base(base: LinkBase, pits: Cells) -> LinkBase:
    """Check the base of a link, whose served PITs are `pits`."""
    if not isinstance(base, LinkBase):
        raise bad_input("base", "be a LinkBase(pit, link)", type(base).__name__)
    if not pits.is_randomized:
        remedy = "give the draws of the link as r, or leave base out"
        raise bad_input("base", "be None for forecasts without a draw", repr(base.link), remedy)
    own = np.asarray(base.pit)
    if own.shape != (pits.n_samples,):
        rule = f"have one PIT of the base per row ({pits.n_samples})"
        raise bad_input("base", rule, f"shape {own.shape}")
    made = base._replace(pit=own)
    made.pits()  # checks the cells
    return made


@dataclass(frozen=True, eq=False, repr=False)
class CountEvidence:
    """Counts of PITs in bins, taken at the upper ends of the bins, which widens bounds.

    Parameters
    ----------
    counts : PITCounts
        Counts of all people and, in their attribute `groups`, of the named groups.
    """

    counts: PITCounts

    def __repr__(self) -> str:
        groups = len(self.counts.groups)
        return one_line(self, n_samples=self.n_samples, n_draws=self.n_draws, groups=groups)

    @cached_property
    def n_samples(self) -> int:
        """Number of people."""
        return self.counts.n_samples

    @property
    def n_draws(self) -> int:
        """Number of draws per person."""
        return self.counts.n_draws

    @property
    def has_cells(self) -> bool:
        """Whether the PITs have cells."""
        return self.counts.inside_whole is not None

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumption about draws that were not given, if any, and the effect of binning."""
        rounded = ROUNDED.format(error=2 * ERROR_BINS, gap=GAP_BINS)
        has_draws = self.n_draws == 1 or self.counts.gap is not None
        return (rounded,) if has_draws else (OWN_DRAWS, rounded)

    @property
    def errors(self) -> Values:
        """Pathwise errors, rounded up."""
        # taken at the upper ends of their bins, so that no bound is understated
        return Values(np.arange(1, ERROR_BINS + 1) / (2 * ERROR_BINS), self.counts.error)

    @property
    def gaps(self) -> Values | None:
        """`|h[x, r](y) - r|` of one draw per person, rounded up."""
        if self.counts.gap is None:
            return None
        return Values(np.arange(1, GAP_BINS + 1) / GAP_BINS, self.counts.gap)

    @property
    def group_names(self) -> tuple[str, ...]:
        """Names of the named groups."""
        return tuple(self.counts.groups)

    def group(self, name: str) -> CountEvidence:
        """Return the counts of a named group."""
        return CountEvidence(self.counts.groups[name])

    def knows(self, level: float) -> bool:
        """Whether the central intervals of this level were counted."""
        return level in self.counts.inside

    def inside(self, level: float) -> Values:
        """Return the shares of draws whose central interval covers the outcome, not rounded."""
        if not self.knows(level):
            counted = ", ".join(f"{one:g}" for one in self.counts.levels) or "none"
            remedy = "count the rows again with this level in count_pits(..., levels=...)"
            raise bad_input("level", f"be one of the counted levels ({counted})", level, remedy)
        people = self.counts.inside_whole or self.counts.inside
        return Values(np.arange(self.n_draws + 1) / self.n_draws, people[level])

    def missed(self, level: float) -> Values:
        """Return the shares of draws whose central interval misses the outcome, not rounded."""
        return self.inside(level).complement()

    def plain_intervals(
        self, mass: float, *, confidence: float, is_randomized: bool
    ) -> tuple[WiderInterval, ...]:
        """Return what intervals of the deterministic forecaster prove; empty if there is none."""
        whole = self.counts.inside_whole
        if whole is not None:
            # bins of drawn PITs do not show whether the intervals contain the whole outcomes
            if is_randomized or not all(level in whole for level in WIDER_LEVELS):
                return ()
            inside = [int(whole[level][-1]) for level in WIDER_LEVELS]
            return intervals_of_hits(inside, self.n_samples, mass, confidence)
        counts = self.counts.base if is_randomized else self.counts.one_draw
        if counts is None:
            return ()
        return wider_intervals_of_counts(counts, mass, confidence=confidence)

    def error(self) -> float:
        """Return the W1 error, to within 1/12800."""
        return binned_distance(self.counts.pit) if self.n_samples else np.nan

    def error_interval(self, confidence: float) -> tuple[float, float]:
        """Return a confidence interval for the W1 error, from the bins of one PIT per person."""
        if self.n_samples == 0:
            return 0.0, WORST
        return binned_error_interval(self.counts.one_draw, confidence)


# --- times that may be cut off: worst completions (outcomes: 5)

LEAST_DRAWS = 16
"""Fewest draws over which the coverage of a known link is computed."""

Ends = tuple[Floats, Floats]


@dataclass(frozen=True, eq=False, repr=False)
class Spans:
    """PITs over draws of people, between what is known of their ends.

    Parameters
    ----------
    low, high : ndarray of shape (n, m)
        Ends between which the PITs lie; both are the PITs of people with the event. The upper end
        is 1 for people who reached the horizon. It is the PIT at the horizon for people who were
        lost before it, if that is known, and else 1.
    reached, lost : ndarray of bool, shape (n,)
        People who reached the horizon without the event, and who were lost before it.
    """

    low: Floats
    high: Floats
    reached: Mask
    lost: Mask

    @classmethod
    def of(cls, low: Floats, high: Floats, reached: Mask, lost: Mask) -> Spans:
        """Make the spans from PITs up to which people were seen, and PITs at the horizon."""
        upper = np.where(lost[:, None], np.maximum(low, high), low)
        return cls(low, np.where(reached[:, None], 1.0, upper), reached, lost)

    def most_missed(self, level: float) -> Floats:
        """Return the largest share of draws whose central interval may miss the outcome, (n,)."""
        missed = 1 - self._known(level)
        # an outcome at the horizon is covered if its cell reaches into the interval: wherever the
        # outcome is, it is covered if both ends are
        is_in = (self.low >= (1 - level) / 2) & (self.high <= (1 + level) / 2)
        return np.where(self.lost, 1 - is_in.mean(axis=-1), missed)

    def most_covered(self, level: float) -> Floats:
        """Return the largest share of draws whose central interval may cover the outcome, (n,)."""
        return np.where(self.lost, 1.0, self._known(level))

    def _known(self, level: float) -> Floats:
        return covered_whole(Cells(self.low, self.high), level)

    def errors(self, link: Link | None = None) -> Floats:
        """Return the largest pathwise error that each person may have, (n,), in cells of outcomes.

        With a link the spans, of one draw, are those of the deterministic forecast inside it.
        """
        events = ~self.reached & ~self.lost
        found = np.full(self.lost.size, WORST)
        found[events] = _points(self.low[events], link)
        found[self.reached] = (
            row_excess(self.low[self.reached])
            if link is None
            else link.cell_error(self.low[self.reached, 0])
        )
        if self.low.shape[1] == 1:
            # the error of one forecast is convex in its PIT: the largest one is at an end
            ends = (_points(end[self.lost], link) for end in (self.low, self.high))
            found[self.lost] = np.maximum(*ends)
        return found


def _points(pit: Floats, link: Link | None) -> Floats:
    return row_distances(pit) if link is None else link.pathwise_error(pit[:, 0])


@dataclass(frozen=True, eq=False, repr=False)
class TimesEvidence(PeopleEvidence):
    """PITs of people whose times may be cut off, each completed in the worst way.

    Parameters
    ----------
    pits : Cells
        PITs at positions in their cells; those of people who are `censored` are not known.
    spans : Spans
        What is known of the PITs over draws.
    errors : Values
        Largest pathwise error that each person may have.
    one_draw : tuple of two ndarrays of shape (n,)
        Ends between which one PIT per person lies, at a draw chosen at random.
    gap : ndarray of shape (n,) or None
        Largest distance from that draw, if the draws are known.
    masks : mapping of str to ndarray of bool
        Rows of each named group.
    inside : TimesEvidence or None
        Evidence of the deterministic forecaster inside a link, if it is known.
    """

    pits: Cells
    spans: Spans
    errors: Values
    one_draw: Ends
    gap: Floats | None
    masks: Mapping[str, Mask]
    inside_link: Spans | None = None

    has_cells = False
    """Cells of PITs are what is known of them, not atoms or rounding."""

    def group(self, name: str) -> TimesEvidence:
        """Return the evidence of a named group, for its overall error."""
        mask = self.masks[name]
        low, high = self.one_draw
        return replace(
            self,
            pits=self.pits.take(mask),
            one_draw=(low[mask], high[mask]),
            gap=None,
            masks={},
        )

    def inside(self, level: float) -> Values:
        """Return the largest share of draws whose central interval may cover the outcome."""
        return Values(self.spans.most_covered(level))

    def missed(self, level: float) -> Values:
        """Return the largest share of draws whose central interval may miss the outcome."""
        return Values(self.spans.most_missed(level))

    def plain_intervals(
        self, mass: float, *, confidence: float, is_randomized: bool
    ) -> tuple[WiderInterval, ...]:
        """Return what intervals of the deterministic forecaster prove; empty if there is none."""
        own = self.inside_link if is_randomized else self.spans
        if own is None:
            return ()
        n = self.n_samples
        inside = [n - int((own.most_missed(level) > 0).sum()) for level in WIDER_LEVELS]
        return intervals_of_hits(inside, n, mass, confidence)

    def error(self) -> float:
        """Return the W1 error of the Kaplan-Meier estimate of the distribution of PITs."""
        if not self.n_samples:
            return np.nan
        known = ~self.pits.unknown
        pit = np.where(known[:, None], self.pits.drawn, self.pits.low)
        return min(KaplanMeier.of(pit.ravel(), np.repeat(known, self.n_draws)).error(), WORST)

    def error_interval(self, confidence: float) -> tuple[float, float]:
        """Return a confidence interval for the W1 error, whatever the unknown outcomes are."""
        if self.n_samples == 0:
            return 0.0, WORST
        low, high = self.one_draw
        return error_interval(low, confidence, high)


def times_evidence(
    pits: Cells,
    reached: Mask,
    lost: Mask,
    masks: Mapping[str, Mask],
    random: np.random.Generator,
    *,
    base: LinkBase | None = None,
    at_horizon: Floats | None = None,
) -> TimesEvidence:
    """Return the evidence of forecasts of times.

    Parameters
    ----------
    pits : Cells
        PITs; those of people who reached the horizon or were lost have cells that reach to 1.
    reached, lost : ndarray of bool, shape (n,)
        As for `Spans`.
    masks : mapping of str to ndarray of bool
        Rows of each named group.
    random : Generator
        Source of the one draw of each person.
    base : LinkBase, optional
        The link, and the PITs with cells of the deterministic forecaster inside it.
    at_horizon : ndarray of shape (n,), optional
        CDF of the deterministic forecaster at the horizon.
    """
    # events at their position in a rounding cell, other people at the end that is known
    is_open = (reached | lost)[:, None]
    low = np.where(is_open, pits.low, pits.drawn)
    tops = np.ones(pits.n_samples) if at_horizon is None else at_horizon
    inner = None
    if base is None:
        top = tops[:, None] if not pits.is_randomized else np.ones((1, 1))
        spans = Spans.of(low, np.broadcast_to(top, low.shape), reached, lost)
        errors = spans.errors()
    else:
        ends = base.pit if base.cells is None else base.cells[0]
        own = np.where(is_open[:, 0], ends, base.pit)[:, None]
        inner = Spans.of(own, tops[:, None], reached, lost)
        draws = pits.draws
        if draws is None or draws.shape[1] < LEAST_DRAWS:
            draws = jittered(pits.n_samples, LEAST_DRAWS, random)
        low_served, top = (base.link.ppf(end, draws) for end in (own, tops[:, None]))
        spans = Spans.of(low_served, top, reached, lost)
        errors = inner.errors(base.link)
    place = np.arange(pits.n_samples), random.integers(pits.n_draws, size=pits.n_samples)
    drawn = np.where(lost, low[place], pits.drawn[place])
    gap = None
    if pits.draws is not None:
        r = pits.draws[place]
        # in cells, only a lower end above the draw is an error of people who reached the horizon
        below = low[place] - r
        gap = np.where(reached, np.maximum(below, 0.0), np.abs(below))
        gap = np.where(lost, np.maximum(gap, 1 - r), gap)
    one_draw = drawn, np.where(lost, 1.0, drawn)
    return TimesEvidence(pits, spans, Values(errors), one_draw, gap, masks, inner)


def part_evidence(
    pits: Cells, lost: Mask, masks: Mapping[str, Mask], random: np.random.Generator
) -> TimesEvidence:
    """Return the evidence of people with an event by the horizon, and of people who were lost.

    Nothing is known of a person who was lost, not even that the event happened by the horizon: each
    counts with the largest value of every quantity. That bounds means of the worst share of the
    people with the event, as adding people with the largest value only raises it.
    """
    anywhere = lost[:, None]
    low = np.where(anywhere, 0.0, pits.drawn)
    high = np.where(anywhere, 1.0, pits.drawn)
    nobody = np.zeros(lost.size, dtype=np.bool_)
    spans = Spans(low, high, nobody, lost)
    errors = np.where(lost, WORST, row_distances(pits.drawn))
    place = np.arange(pits.n_samples), random.integers(pits.n_draws, size=pits.n_samples)
    gap = None
    if pits.draws is not None:
        gap = np.where(lost, 1.0, np.abs(pits.drawn[place] - pits.draws[place]))
    return TimesEvidence(pits, spans, Values(errors), (low[place], high[place]), gap, masks)
