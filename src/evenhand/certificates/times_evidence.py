"""Evidence of certificates of times that may be cut off: worst completions (outcomes: 5)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from evenhand._validate import Floats, Mask
from evenhand.calibration import PITs, covered_whole, error_interval, row_distances, row_excess
from evenhand.censoring import KaplanMeier
from evenhand.certificates.certificate import WORST
from evenhand.certificates.deterministic_intervals import (
    WIDER_LEVELS,
    WiderInterval,
    intervals_of_hits,
)
from evenhand.certificates.evidence import LinkBase, PeopleEvidence, Values
from evenhand.draws import jittered
from evenhand.links import Link

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
        return covered_whole(PITs(self.low, cells=(self.low, self.high)), level)

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
    pits : PITs
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

    pits: PITs
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
        lost = self.pits.censored
        known = np.ones(self.n_samples, dtype=np.bool_) if lost is None else ~lost
        pit = np.where(known[:, None], self.pits.matrix, self.pits.low)
        return min(KaplanMeier.of(pit.ravel(), np.repeat(known, self.n_draws)).error(), WORST)

    def error_interval(self, confidence: float) -> tuple[float, float]:
        """Return a confidence interval for the W1 error, whatever the unknown outcomes are."""
        if self.n_samples == 0:
            return 0.0, WORST
        low, high = self.one_draw
        return error_interval(low, confidence, high)


def times_evidence(
    pits: PITs,
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
    pits : PITs
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
    low = np.where(is_open, pits.low, pits.matrix)
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
    drawn = np.where(lost, low[place], pits.matrix[place])
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
    pits: PITs, lost: Mask, masks: Mapping[str, Mask], random: np.random.Generator
) -> TimesEvidence:
    """Return the evidence of people with an event by the horizon, and of people who were lost.

    Nothing is known of a person who was lost, not even that the event happened by the horizon: each
    counts with the largest value of every quantity. That bounds means of the worst share of the
    people with the event, as adding people with the largest value only raises it.
    """
    anywhere = lost[:, None]
    low = np.where(anywhere, 0.0, pits.matrix)
    high = np.where(anywhere, 1.0, pits.matrix)
    nobody = np.zeros(lost.size, dtype=np.bool_)
    spans = Spans(low, high, nobody, lost)
    errors = np.where(lost, WORST, row_distances(pits.matrix))
    place = np.arange(pits.n_samples), random.integers(pits.n_draws, size=pits.n_samples)
    gap = None
    if pits.draws is not None:
        gap = np.where(lost, 1.0, np.abs(pits.matrix[place] - pits.draws[place]))
    return TimesEvidence(pits, spans, Values(errors), (low[place], high[place]), gap, masks)
