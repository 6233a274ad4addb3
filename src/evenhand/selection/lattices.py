"""Links around forecasts of counts and ordinal scores, tested in a fixed order (outcomes: 4.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand._format import count, in_full
from evenhand._validate import Floats, InputError
from evenhand.audits import BLOCK_ROWS, PIT_DRAWS
from evenhand.calibration import Cells, betting_cvar, cvar, pathwise_errors
from evenhand.certificates import WORST, FixedSequenceCertificate, certify_pit
from evenhand.distributions import OutcomeKind
from evenhand.draws import fresh, jittered
from evenhand.forecast import Forecast
from evenhand.links import Link
from evenhand.selection.chosen_link import ChosenLink, Costs, affordable_alpha
from evenhand.selection.comparison import Ends
from evenhand.selection.rows import SplitRows
from evenhand.selection.target import MaxGroupError, Target

# --- certificate of a randomization that was chosen by its cost, one of several


@dataclass(frozen=True)
class SimultaneousCertificate(FixedSequenceCertificate):
    """Bound of the group error of one of several links that holds for all of them (Bonferroni).

    Each of `n_links` links has a bound that holds with probability `1 - (1 - confidence) /
    n_links`, so all of them hold with `confidence`, and any of the links may be chosen on the same
    people, by what it costs. `target` is the bound of the chosen one.

    Parameters
    ----------
    target : float
        Bound for the error of every group of the chosen link.
    mass : float
        Smallest share of people in a group.
    confidence : float
        Probability that the bounds of all links hold.
    n_people : int
        Number of people from whose rows the bounds were computed.
    one_row_each : bool
        Whether people have several rows and one row per person was used.
    kind : OutcomeKind
        Kind of outcome that the forecasts describe.
    link : Link or None
        The chosen link.
    n_links : int
        Number of links, fixed beforehand.
    """

    n_links: int = 1

    assumptions = (
        # of the sample, and after the order of the tests, of the draws
        FixedSequenceCertificate.assumptions[0],
        "the deterministic forecaster and the links compared were fixed without using these rows",
        *FixedSequenceCertificate.assumptions[2:],
    )

    def _forecasts(self) -> str:
        return f"under one of {self.n_links} links, whose bounds hold simultaneously"


# --- links tested in a fixed order

ALPHAS = tuple(float(alpha) for alpha in np.geomspace(0.01, 1.0, 40))
"""Values of alpha around a forecast of counts, in the order of the tests; each is 12.5% larger.

They are fixed here, before any rows are seen, which fixed-sequence testing needs. More of them cost
nothing, as no test is corrected for the others (outcomes: 4.4).
"""

ROWS_MARGIN = 1.3
"""Factor of the number of rows that a message proposes, as bounds of random rows vary."""

MOST_ROWS = 10_000_000
"""Largest number of rows that a message proposes."""


@dataclass(frozen=True, eq=False)
class LatticeTests:
    """Bounds of the group error of links around one deterministic forecast of counts.

    A link is applied to both ends of the cell between the CDF just below and at the outcome. The
    pathwise error of a person is the W1 distance of the randomized PIT over draws *and* positions
    in the cell, whose conditional value at risk bounds the error of every group (outcomes: 2). It
    is not a function of one number, as it is for continuous outcomes, so no band covers all links
    simultaneously, and links are tested one by one.

    Parameters
    ----------
    low, high : ndarray of shape (n,)
        Cells of the deterministic forecast at the outcomes, as from `Forecast.pit_interval`.
    mass : float
        Smallest share of people in a group.
    draws : ndarray of shape (n, m)
        Draws of each person, one in each of m cells.
    ties : ndarray of shape (n,)
        Position of each person within the cells, independent of the draws.
    seed : int
        Seed of the order of bets, which is the same for all links.
    """

    low: Floats
    high: Floats
    mass: float
    draws: Floats
    ties: Floats
    seed: int

    @classmethod
    def of(cls, cells: Ends, target: Target, random: np.random.Generator) -> LatticeTests:
        """Make the tests with fresh draws, which are the same for all links."""
        low, high = cells
        draws = jittered(low.size, PIT_DRAWS, random)
        ties = fresh(low.size, random)
        return cls(low, high, target.group_mass, draws, ties, int(random.integers(2**31)))

    @property
    def n_people(self) -> int:
        """Number of people."""
        return self.low.size

    def pits(self, link: Link, rows: slice = slice(None)) -> Cells:
        """Return PITs of the randomized forecasts of some people, with their cells."""
        draws = self.draws[rows]
        low, high = (link.ppf(end[rows, None], draws) for end in (self.low, self.high))
        # both ends of a cell move up with the same draw: rounding errors alone could cross them
        return Cells.between(low, np.maximum(low, high), self.ties[rows], draws=draws)

    def errors(self, link: Link) -> Floats:
        """Return the pathwise error of each person under a link, shape (n,)."""
        starts = range(0, self.n_people, BLOCK_ROWS)
        blocks = (slice(start, start + BLOCK_ROWS) for start in starts)
        return np.concatenate([pathwise_errors(self.pits(link, rows)) for rows in blocks])

    def bound(self, link: Link, confidence: float) -> float:
        """Upper bound for the error of every group under one link that was fixed beforehand."""
        return betting_cvar(self.errors(link), self.mass, WORST, confidence, self.seed)


def lattice_choice(
    base: Forecast,
    y: Floats,
    family: Link,
    target: Target,
    rows: SplitRows,
    random: np.random.Generator,
) -> ChosenLink:
    """Choose a link around a forecast of counts or ordinal scores.

    For a group error that must be certified, links are tested in the order of `ALPHAS` until one
    fails. For a limit of the cost, the smallest of `ALPHAS` that costs no more is chosen on the
    same people, and the risk is shared equally by all of `ALPHAS`, so that the bounds of all of
    them hold simultaneously.
    """
    tests = LatticeTests.of(base.pit_interval(y), target, random)
    searched = Cells.between(tests.low, tests.high, tests.ties)
    costs = Costs(base, searched.drawn[:, 0], y, None, random)
    if isinstance(target.goal, MaxGroupError):
        link, bounds = least_randomized(tests, family, target, rows.one_row_each)
    else:
        link, bounds = affordable_link(tests, costs, family, target, rows.one_row_each)
    pits = tests.pits(link)
    proof = certify_pit(
        pits,
        confidence=target.confidence,
        method="betting",
        mass=target.group_mass,
        kind=OutcomeKind.COUNT,
        random_state=tests.seed,
    )
    return ChosenLink(
        link,
        proof.accounting_for(bounds),
        costs.price(link),
        # the limit of the price at a mean error is one of continuous outcomes
        np.nan,
        # counts that are nearly always equal have intervals without a width
        costs.wider(link) if costs.widths.is_positive else np.nan,
        (pits.low, pits.high),
        searched,
        costs,
        lambda link: tests.bound(_tested(link), target.confidence),
    )


def least_randomized(
    tests: LatticeTests, family: Link, target: Target, one_row_each: bool
) -> tuple[Link, FixedSequenceCertificate]:
    """Return the link of the least randomization whose group error is certified, and its bounds.

    Raises
    ------
    InputError
        If not even the first alpha passes; the message names a number of rows that suffices, if
        there is one.
    """
    kind = type(family)
    most = target.goal.most
    alpha = last_passed(lambda alpha: tests.bound(kind(alpha), target.confidence), most, ALPHAS)
    if alpha is None:
        raise InputError(_refusal(tests, kind(ALPHAS[0]), target))
    bounds = FixedSequenceCertificate(
        most,
        target.group_mass,
        target.confidence,
        tests.n_people,
        one_row_each,
        kind=OutcomeKind.COUNT,
        link=kind(alpha),
    )
    return kind(alpha), bounds


def affordable_link(
    tests: LatticeTests, costs: Costs, family: Link, target: Target, one_row_each: bool
) -> tuple[Link, FixedSequenceCertificate]:
    """Return the link of the smallest of `ALPHAS` within a limit of the cost, and its bounds."""
    link = _tested(type(family)(affordable_alpha(costs, family, target)))
    # the choice depends on these people: each link has an equal share of the risk (Bonferroni)
    risk = (1 - target.confidence) / len(ALPHAS)
    bounds = SimultaneousCertificate(
        tests.bound(link, 1 - risk),
        target.group_mass,
        target.confidence,
        tests.n_people,
        one_row_each,
        kind=OutcomeKind.COUNT,
        link=link,
        n_links=len(ALPHAS),
    )
    return link, bounds


def _tested(link: Link) -> Link:
    """Return the link of the smallest of `ALPHAS` that is not below a link's; it costs no more."""
    place = int(np.searchsorted(ALPHAS, link.alpha))
    return type(link)(ALPHAS[min(place, len(ALPHAS) - 1)])


def _refusal(tests: LatticeTests, link: Link, target: Target) -> str:
    """Return why no link is certified: atoms that no randomization helps, or too few rows."""
    most, n = target.goal.most, tests.n_people
    groups = f"groups of {in_full(target.group_mass)} of people"
    start = f"no randomization has a certified group error of at most {most:g} for {groups}"
    least = cvar(tests.errors(link), target.group_mass)
    if least >= most:
        # an end of the scale keeps an error of 1/4 under the strongest link (outcomes: 4.1)
        return (
            f"{start}: even with the strongest (alpha = {link.alpha:g}) it is an estimated"
            f" {least:.2f}, because outcomes at an end of their scale are frequent; allow a larger"
            " error or larger groups"
        )
    # the excess of a bound over the estimate falls with the square root of the number of rows
    excess = tests.bound(link, target.confidence) - least
    needed = n * max(ROWS_MARGIN * (excess / (most - least)) ** 2, ROWS_MARGIN)
    rows = f"; about {count(_rounded(needed), 'row')} suffice" if needed < MOST_ROWS else ""
    return (
        f"{start} with {count(n, 'certifying row')}{rows}; use more rows, or allow a larger error"
        " or larger groups"
    )


def last_passed(
    bound_at: Callable[[float], float], most: float, alphas: Sequence[float]
) -> float | None:
    """Test each alpha in order, and return the last one before the first failure.

    Each bound holds with a confidence of its own. The probability that an alpha passes whose group
    error is above `most` is at most one minus that confidence, however many are tested: the first
    such alpha of the order would have to pass its own test (fixed-sequence testing; outcomes: 4.4).

    Parameters
    ----------
    bound_at : callable
        Upper bound of the group error under the link of an alpha.
    most : float
        Largest admissible bound.
    alphas : sequence of float
        Alphas in the order of the tests, fixed before the rows were seen.

    Returns
    -------
    float or None
        None if the first one fails.
    """
    passed = None
    for alpha in alphas:
        if bound_at(alpha) > most:
            break
        passed = alpha
    return passed


def _rounded(n: float) -> int:
    """Return a number of rows with two digits, rounded up."""
    unit = int(10 ** max(np.floor(np.log10(n)) - 1, 0))
    return int(np.ceil(n / unit)) * unit
