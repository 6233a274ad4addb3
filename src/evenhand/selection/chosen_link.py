"""The link chosen around a deterministic model: what links cost, and which one is certified."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple, Self

import numpy as np
from msgspec import structs

from evenhand._format import count, digits_of, in_full, number_in_full, points_in_full
from evenhand._validate import Floats, InputError, Ints, about, named
from evenhand.calibration import Cells, cvar
from evenhand.certificates import (
    Certificate,
    Choice,
    EventPart,
    LatticeBounds,
    OffAtom,
    PlainInterval,
    certify_link,
    certify_rows,
    part_of_base,
)
from evenhand.distributions import OutcomeKind
from evenhand.draws import fresh, jittered, nodes, sampled_rows
from evenhand.forecast import Forecast
from evenhand.links import Link, price_of_proof
from evenhand.outcomes import Outcomes, Rounding
from evenhand.selection.result import log_scores
from evenhand.selection.target import (
    LEAST_ALPHA,
    LEVEL,
    Target,
    fewest_rows,
    largest_alpha,
    least_alpha,
    mean_width,
)

# --- what a link goes around: everyone, or the people off the atom

LEAST_ROWS = 20
"""Fewest certifying outcomes besides the atom."""


class Wrapped(NamedTuple):
    """The people whose forecasts a link goes around, and their cells before the draw.

    Parameters
    ----------
    base : Forecast
        Deterministic forecast of all certifying people.
    outcomes : Outcomes
        Outcomes of all of them.
    rows : ndarray of int, shape (k,)
        People off the atom of a hurdle, or who had the event or were lost before the horizon;
        everyone for other outcomes.
    part : Forecast of k people
        Their forecasts, given that the outcome is off the atom.
    cells : Cells of k people
        Cells of their outcomes.
    ties : ndarray of shape (n,)
        Position of each person in the cell.
    rounding : Rounding
        Rounding cells of the outcomes.
    """

    base: Forecast
    outcomes: Outcomes
    rows: Ints
    part: Forecast
    cells: Cells
    ties: Floats
    rounding: Rounding

    @classmethod
    def of(cls, base: Forecast, outcomes: Outcomes, random: np.random.Generator) -> Self:
        """Return what a link around a forecast goes around."""
        # PITs of rounded outcomes are spread over their cells, none of which is open
        rounding = Rounding(base.rounding(outcomes).step)
        n = outcomes.n_samples
        needs_ties = base.has_atoms or rounding.step is not None or outcomes.are_times
        ties = fresh(n, random) if needs_ties else np.full(n, 0.5)
        at, part = base.atom, base
        rows = np.flatnonzero(outcomes.value != at)
        n_known = outcomes.happened[rows].sum()
        if at is not None and n_known < LEAST_ROWS:
            what = f"an outcome other than {at:g}"
            if outcomes.are_times:
                what = f"the event by {number_in_full(at)}"
            raise InputError(
                f"{count(n_known, 'certifying row has', 'certifying rows have')} {what}, and at"
                f" least {LEAST_ROWS} are needed; use more rows"
            )
        if at is not None:
            part = base.positive_part()[rows]
        cells = part.cells(outcomes.take(rows), rounding=rounding, ties=ties[rows])
        if base.outcome_kind is not OutcomeKind.COUNT:
            # rounded outcomes have one position
            cells = cells.at_points(~cells.unknown)
        return cls(base, outcomes, rows, part, cells, ties, rounding)

    @property
    def at(self) -> float | None:
        """The atom."""
        return self.base.atom

    @property
    def people(self) -> str:
        """The people of the part, where that is not everyone."""
        if self.at is None:
            return ""
        if self.outcomes.are_times:
            return f"people with the event by {number_in_full(self.at)}"
        return f"outcomes other than {self.at:g}"

    def served(self, link: Link, draws: Floats) -> Cells:
        """Return the cells of all people under the randomized forecasts."""
        forecast = self.base.randomized(link.alpha, link, draws)
        return forecast.cells(self.outcomes, rounding=self.rounding, ties=self.ties)

    def searched(self) -> Cells:
        """Return the cells of all people in which groups are searched."""
        if self.at is None:
            return self.cells
        return self.base.cells(self.outcomes, rounding=self.rounding, ties=self.ties)


# --- costs: loss of log score and width of prediction intervals

PRICE_DRAWS = 16
MOST_PRICED = 400_000
"""Draws per person in the price, and most people times draws."""

# people without a closed form of their quantiles take time
WIDTH_DRAWS = 4
WIDTH_PEOPLE = 2000
"""Draws per person, and most people, in the width of randomized intervals."""


class Costs:
    """Costs of links, as means over all certifying people, at fixed draws.

    A cost is a continuous function of alpha, as the draws are the same for all links.

    Parameters
    ----------
    wrapped : Wrapped
        What the links go around.
    grid : Rounding
        Grid of continuous outcomes, which makes the price a difference of cell log scores.
    random : Generator
        Source of the draws.
    """

    def __init__(self, wrapped: Wrapped, grid: Rounding, random: np.random.Generator) -> None:
        self.wrapped = wrapped
        self.grid = grid
        self.known = np.flatnonzero(~wrapped.cells.unknown)
        n = self.known.size
        self.draws = jittered(n, int(np.clip(MOST_PRICED // n, 1, PRICE_DRAWS)), random)
        base = wrapped.base
        rows = sampled_rows(base.n_samples, WIDTH_PEOPLE, random)
        self._sample = base[rows]
        self._width_draws = jittered(rows.size, WIDTH_DRAWS, random)
        # the probability of an atom is not randomized: nobody else's log score changes
        people = np.full((wrapped.rows.size, self.draws.shape[1]), 0.5)
        people[self.known] = self.draws
        if n_lost := wrapped.rows.size - n:
            people[wrapped.cells.unknown] = fresh((n_lost, self.draws.shape[1]), random)
        self._scored = base[wrapped.rows], wrapped.outcomes.take(wrapped.rows), people
        # of a hurdle, intervals without a draw are compared with those of the part
        self._part = self._sample, self._width_draws
        if wrapped.at is not None:
            some = wrapped.part[np.sort(random.permutation(len(wrapped.part))[:WIDTH_PEOPLE])]
            self._part = some, jittered(some.n_samples, WIDTH_DRAWS, random)

    def price(self, link: Link) -> float:
        """Return the mean loss of log score through a link, in nats."""
        base, outcomes, draws = self._scored
        served = base.randomized(link.alpha, link, draws)
        with np.errstate(invalid="ignore"):
            losses = log_scores(served, outcomes, self.grid) - self._scores
        # neither of them allows for an outcome outside of the support
        return float(np.nan_to_num(losses).sum()) / self.wrapped.outcomes.n_samples

    @cached_property
    def _scores(self) -> Floats:
        base, outcomes, _ = self._scored
        return log_scores(base, outcomes, self.grid)

    def wider(self, link: Link) -> float:
        """Return the relative increase of the mean width of 80% intervals through a link."""
        if not self.has_width:
            raise InputError(
                f"80% prediction intervals of the model have a mean width of {self._width:g}; give"
                " forecasts whose intervals have a width"
            )
        served = self._sample.randomized(link.alpha, link, self._width_draws)
        return mean_width(served) / self._width - 1

    def plain_width(self, link: Link, level: float) -> float:
        """Return the width of an interval without a draw relative to the randomized 80% one."""
        part, draws = self._part
        return mean_width(part, level) / mean_width(part.randomized(link.alpha, link, draws))

    @property
    def has_width(self) -> bool:
        """Whether the intervals of the deterministic forecast have a mean width above 0."""
        return 0 < self._width < np.inf

    @cached_property
    def _width(self) -> float:
        return mean_width(self._sample)


# --- the choice of a link


@dataclass(frozen=True, eq=False)
class ChosenLink:
    """A link around a deterministic model, its certificate and its costs.

    Parameters
    ----------
    link : Link
        The link.
    certificate : Certificate
        Its certificate, given the choice.
    costs : Costs
        Costs of links.
    limit : float
        Minimum price of any forecaster with the same mean pathwise error; NaN if it is not known.
    cells : Cells
        Cells of the randomized forecasts.
    error_at : callable
        Certified group error of another link.
    plain : PlainInterval or None
        The narrowest interval without a draw that covers as much, or the widest; None where
        intervals have no width.
    """

    link: Link
    certificate: Certificate
    costs: Costs
    limit: float
    cells: Cells
    error_at: Callable[[Link], float]
    plain: PlainInterval | None


def choose_link(
    wrapped: Wrapped,
    grid: Rounding,
    family: Link,
    target: Target,
    share: float | None,
    random: np.random.Generator,
) -> ChosenLink:
    """Choose the link with the least randomization that meets the target, or the most it may cost.

    Under a link around continuous outcomes and times the bounds of all links hold at once; around
    a lattice they are tested in a fixed order (method: proof, choosing on the same rows). `share`
    is that of the rows that certify, for messages.
    """
    if wrapped.base.outcome_kind is OutcomeKind.COUNT:
        return _tested_link(wrapped, family, target, random)
    costs = Costs(wrapped, grid, random)
    where = wrapped.people
    with about(where) if where else nullcontext():
        proof = _simultaneous(wrapped, costs, family, target, share)
    link = proof.link
    assert link is not None
    # of people whose outcome is known
    cells = wrapped.cells.take(costs.known).served(link, costs.draws)
    certificate = proof
    if wrapped.at is not None:
        draws = jittered(wrapped.outcomes.n_samples, costs.draws.shape[1], random)
        cells = wrapped.served(link, draws)
        certificate = _certificate(wrapped, cells, link, draws, target, random, proof.choice)
    return ChosenLink(
        link,
        certificate,
        costs,
        costs.known.size / wrapped.outcomes.n_samples * least_price(proof.mean_error()),
        cells,
        lambda other: proof.with_link(other).group_error(target.group_mass),
        plain_interval(costs, link, proof.coverage(LEVEL, target.group_mass)[0], target),
    )


def least_price(error: float) -> float:
    """Return the minimum price in nats of any forecaster with this mean pathwise error."""
    # the true distribution without draws has a mean error of 1/3: larger errors are free
    return float(price_of_proof(min(error, 1 / 3)))


def _simultaneous(
    wrapped: Wrapped, costs: Costs, family: Link, target: Target, share: float | None
) -> Certificate:
    """Certify all links, and read the certificate for the link that meets the goal."""
    cells = wrapped.cells
    lost = cells.unknown if wrapped.outcomes.are_times else None
    proof = certify_link(cells.low, family, lost=lost, confidence=target.confidence)
    if target.goal is None:
        return proof.with_link(affordable(costs, family, target))

    def error_at(alpha: float) -> float:
        return proof.with_link(type(family)(alpha)).group_error(target.group_mass)

    alpha = largest_alpha(error_at, target.goal)
    if alpha is None:
        raise InputError(_too_few_rows(wrapped, family, target, share))
    return proof.with_link(type(family)(alpha))


def _certificate(
    wrapped: Wrapped,
    cells: Cells,
    link: Link,
    draws: Floats,
    target: Target,
    random: np.random.Generator,
    choice: Choice,
) -> Certificate:
    """Certify the served forecasts, with bounds for every group that account for the choice."""
    base, outcomes = wrapped.base, wrapped.outcomes
    is_count = base.outcome_kind is OutcomeKind.COUNT
    off_atom = event = None
    if wrapped.at is not None:
        own = wrapped.cells.served(link, draws[wrapped.rows])
        off_atom = OffAtom(wrapped.rows, own, wrapped.cells.before(link), wrapped.at)
        happened = outcomes.happened & (outcomes.value != wrapped.at)
        event = EventPart.of(base.event_probability(), happened, outcomes.is_lost)
    made = certify_rows(
        cells,
        kind=base.outcome_kind,
        off_atom=off_atom,
        event=event,
        times=outcomes if outcomes.are_times else None,
        confidence=target.confidence,
        method="betting" if is_count else "local-levels",
        mass=target.group_mass if is_count else None,
        random_state=random,
    )
    return replace(made, link=link, choice=choice)


def affordable(costs: Costs, family: Link, target: Target) -> Link:
    """Return the link with the smallest alpha that costs no more than the target admits."""
    kind = type(family)
    cost = costs.price if target.max_wider is None else costs.wider
    return kind(least_alpha(lambda alpha: cost(kind(alpha)), target.most))


def plain_interval(costs: Costs, link: Link, floor: float, target: Target) -> PlainInterval | None:
    """Return the interval without a draw that covers as much in every group, or the widest."""
    if not costs.has_width:
        return None
    mass = target.group_mass
    found = part_of_base(costs.wrapped.cells).floors(mass, mass, target.confidence)
    enough = next((one for one in found if one.floor >= floor > 0), found[-1])
    return structs.replace(enough, width=costs.plain_width(link, enough.level))


# --- lattices: links tested in a fixed order (outcomes: 4.4; method: 12, Theorem L)

# fixed here, before any rows are seen, which fixed-sequence testing needs. More of them
# cost nothing, as no test is corrected for the others (outcomes: 4.4).
ALPHAS = tuple(float(alpha) for alpha in np.geomspace(0.01, 1.0, 40))
"""Values of alpha around a forecast of counts, in the order of the tests; each is 12.5% larger."""

ROWS_MARGIN = 1.3
"""Factor of the number of rows that a message proposes, as bounds of random rows vary."""

MOST_TESTED_ROWS = 10_000_000
"""Largest number of rows that a message proposes."""


def _tested_link(
    wrapped: Wrapped, family: Link, target: Target, random: np.random.Generator
) -> ChosenLink:
    """Choose a link around a forecast of counts or ordinal scores."""
    bounds = LatticeBounds.of(wrapped.cells, random)
    costs = Costs(wrapped, Rounding(), random)
    most, mass, kind = target.goal, target.group_mass, type(family)

    def error_at(link: Link, confidence: float = target.confidence, enough: float = 0) -> float:
        return bounds.group_error(link, mass, confidence, by_betting=True, most=enough)

    if most is not None:
        # the last one before the first failure
        alpha = last_passed(lambda alpha: error_at(kind(alpha), enough=most), most)
        if alpha is None:
            raise InputError(_refusal(bounds, error_at(kind(ALPHAS[0])), kind(ALPHAS[0]), target))
        link, choice = kind(alpha), Choice("tested", most, mass)
    else:
        link = _tested(affordable(costs, family, target))
        # the choice depends on these people: each link has an equal share of the risk (Bonferroni)
        risk = (1 - target.confidence) / len(ALPHAS)
        choice = Choice("tested", error_at(link, 1 - risk), mass, len(ALPHAS))
    cells = bounds.served(link)
    return ChosenLink(
        link,
        _certificate(wrapped, cells, link, bounds.draws, target, random, choice),
        costs,
        # the limit of the price at a mean error is one of continuous outcomes
        math.nan,
        cells,
        lambda other: error_at(_tested(other)),
        plain_interval(costs, link, 0.0, target),
    )


def last_passed(bound_at: Callable[[float], float], most: float) -> float | None:
    """Test each of `ALPHAS` in order, and return the last one before the first failure."""
    passed = [*takewhile(lambda alpha: bound_at(alpha) <= most, ALPHAS)]
    return passed[-1] if passed else None


def _tested(link: Link) -> Link:
    """Return the link of the smallest of `ALPHAS` that is not below a link's; it costs no more."""
    place = int(np.searchsorted(ALPHAS, link.alpha))
    return type(link)(ALPHAS[min(place, len(ALPHAS) - 1)])


def _refusal(bounds: LatticeBounds, bound: float, link: Link, target: Target) -> str:
    """Return why no link is certified: atoms that no randomization helps, or too few rows."""
    most, n = target.most, bounds.cells.n_samples
    groups = f"groups of {in_full(target.group_mass)} of people"
    start = f"no randomization has a certified group error of at most {most:g} for {groups}"
    least = cvar(bounds.errors(link).high, target.group_mass)
    if least >= most:
        # an end of the scale keeps an error of 1/4 under the strongest link (outcomes: 4.1)
        return (
            f"{start}: even with the strongest (alpha = {link.alpha:g}) it is an estimated"
            f" {least:.2f}, because outcomes at an end of their scale are frequent; allow a larger"
            " error or larger groups"
        )
    # the excess of a bound over the estimate falls with the square root of the number of rows
    needed = n * max(ROWS_MARGIN * ((bound - least) / (most - least)) ** 2, ROWS_MARGIN)
    enough = f"; about {count(two_digits(needed), 'row')} suffice"
    rows = enough if needed < MOST_TESTED_ROWS else ""
    return (
        f"{start} with {count(n, 'certifying row')}{rows}; use more rows, or allow a larger error"
        " or larger groups"
    )


# --- messages where no link is certified

MOST_ROWS = 200_000
"""Largest number of rows that a message proposes, or twice the given rows if that is more."""


def _too_few_rows(wrapped: Wrapped, family: Link, target: Target, share: float | None) -> str:
    """Return that a target is not met, and a number of rows that suffices nine times in ten.

    With the share of all rows that certify, the number of all rows is named, too.
    """
    cells, most, mass = wrapped.cells, target.most, target.group_mass
    n, n_lost = cells.n_samples, int(cells.unknown.sum())
    start = (
        f"a group error of at most {points_in_full(most)} points cannot be certified for groups of"
        f" {in_full(mass)} of people on {n:,} rows"
    )
    early = ""
    if wrapped.outcomes.entered is None:
        early = f" people who entered early enough to be followed ({named('entered')}),"
    lost = (
        f"of {n:,} people who had the event or were lost, {count(n_lost, 'was', 'were')} lost"
        f" before the horizon, and each of these may have the largest error; use{early} an earlier"
        " horizon, larger groups or a larger error"
    )
    # a group may contain all people who were lost, each with an error of 1/2
    if n_lost / (2 * n * mass) >= most:
        return f"{start}: {lost}"
    known = np.sort(cells.drawn[~cells.unknown, 0])

    def error_at(rows: int, alpha: float) -> float:
        """Return the bound of this many people with the same quantiles."""
        n_gone = round(rows * n_lost / n)
        alike = np.append(np.zeros(n_gone), np.quantile(known, nodes(rows - n_gone)))
        gone = np.arange(rows) < n_gone if n_lost else None
        proof = certify_link(alike, type(family)(alpha), lost=gone, confidence=target.confidence)
        return proof.group_error(mass)

    limit = max(MOST_ROWS, 2 * n)
    enough = fewest_rows(lambda rows: error_at(rows, LEAST_ALPHA) <= most, n, limit)
    if enough is None:
        remedy = (
            "allow a larger error, or recalibrate the model first (in Python: recalibrate=True)"
        )
        why = f": {lost}" if n_lost else f"; {remedy}"
        return f"{start}, nor on {limit:,} such rows{why}"
    # that many rows suffice on average: a tenth more suffices nine times in ten
    needed = two_digits(1.1 * enough)
    link = type(family)(largest_alpha(lambda alpha: error_at(needed, alpha), most) or LEAST_ALPHA)
    r = nodes(16)
    price = float(link.logpdf(link.ppf(known[:, None], r), r).mean())
    in_all = ""
    # these rows are those of the part: all rows, with the atom, are more
    if share is not None and wrapped.at is None:
        rows = two_digits(needed / share)
        in_all = f" ({rows:,} in all if {in_full(share)} of them certify)"
    return (
        f"{start}: about {needed:,} certification rows suffice{in_all}, at a price of {price:.1f}"
        " nats of log score; use more rows or allow a larger error"
    )


def two_digits(n: float) -> int:
    """Return a number of at least 10 with two digits, rounded up."""
    return int(digits_of(n, 2, "up"))
