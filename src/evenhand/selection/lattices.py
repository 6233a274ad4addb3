"""Links around forecasts of counts and ordinal scores, tested in a fixed order (outcomes: 4.4)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand._format import at_most, count, in_full
from evenhand._validate import Floats, InputError
from evenhand.audits import BLOCK_ROWS, PIT_DRAWS
from evenhand.calibration import PITs, betting_cvar, cvar, pathwise_errors
from evenhand.certificates import FixedSequenceCertificate, PITCertificate, certify_pit
from evenhand.draws import fresh, jittered
from evenhand.links import Link
from evenhand.planning import Target
from evenhand.selection.simultaneous import SimultaneousCertificate

ALPHAS = tuple(float(alpha) for alpha in np.geomspace(0.01, 1.0, 40))
"""Values of alpha around a forecast of counts, in the order of the tests; each is 12.5% larger.

They are fixed here, before any rows are seen, which fixed-sequence testing needs. More of them cost
nothing, as no test is corrected for the others (outcomes: 4.4).
"""

WORST = 0.5
"""Largest possible W1 error."""

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
    def of(
        cls, cells: tuple[Floats, Floats], mass: float, random: np.random.Generator
    ) -> LatticeTests:
        """Make the tests with fresh draws, which are the same for all links."""
        low, high = cells
        n = low.size
        draws = jittered(n, PIT_DRAWS, random)
        return cls(low, high, mass, draws, fresh(n, random), int(random.integers(2**31)))

    @property
    def n_people(self) -> int:
        """Number of people."""
        return self.low.size

    def pits(self, link: Link, rows: slice = slice(None)) -> PITs:
        """Return PITs of the randomized forecasts of some people, with their cells."""
        draws = self.draws[rows]
        low, high = (link.ppf(end[rows, None], draws) for end in (self.low, self.high))
        # both ends of a cell move up with the same draw: rounding errors alone could cross them
        return PITs.of_cells(low, np.maximum(low, high), self.ties[rows], draws=draws)

    def errors(self, link: Link) -> Floats:
        """Return the pathwise error of each person under a link, shape (n,)."""
        starts = range(0, self.n_people, BLOCK_ROWS)
        blocks = (slice(start, start + BLOCK_ROWS) for start in starts)
        return np.concatenate([pathwise_errors(self.pits(link, rows)) for rows in blocks])

    def bound(self, link: Link, confidence: float) -> float:
        """Upper bound for the error of every group under one link that was fixed beforehand."""
        return betting_cvar(self.errors(link), self.mass, WORST, confidence, self.seed)

    def certificate(self, link: Link, bounds: FixedSequenceCertificate) -> PITCertificate:
        """Return the certificate of the chosen link, whose bounds account for the choice."""
        proof = certify_pit(
            self.pits(link),
            confidence=bounds.confidence,
            method="betting",
            mass=self.mass,
            random_state=self.seed,
        )
        return proof.accounting_for(bounds)


@dataclass(frozen=True, eq=False)
class LatticeChoice:
    """The choice of a link around forecasts of counts, and its certificate.

    Parameters
    ----------
    tests : LatticeTests
        Bounds of each link.
    target : Target
        What must be certified, or what may be paid.
    family : type of Link
        The family of links.
    one_row_each : bool
        Whether people have several rows and one row per person was used.
    """

    tests: LatticeTests
    target: Target
    family: type[Link]
    one_row_each: bool

    def least_randomized(self, most: float) -> tuple[Link, PITCertificate]:
        """Return the link of the least randomization whose group error is certified.

        Raises
        ------
        InputError
            If not even the first alpha passes; the message says whether more rows can help.
        """
        confidence = self.target.confidence
        alpha = last_passed(
            lambda alpha: self.tests.bound(self.family(alpha), confidence), most, ALPHAS
        )
        if alpha is None:
            raise InputError(self._refusal(most))
        bounds = FixedSequenceCertificate(
            most, self.target.group_mass, confidence, self.tests.n_people, self.one_row_each
        )
        return self._certified(alpha, bounds)

    def at(self, alpha: float) -> tuple[Link, PITCertificate]:
        """Return the link at one of `ALPHAS` that its cost decides, and the most that is proven.

        The cost may depend on the same people: the risk is shared equally by all of `ALPHAS`, so
        the bounds of all of them hold simultaneously.
        """
        risk = (1 - self.target.confidence) / len(ALPHAS)
        bounds = SimultaneousCertificate(
            self.tests.bound(self.family(alpha), 1 - risk),
            self.target.group_mass,
            self.target.confidence,
            self.tests.n_people,
            self.one_row_each,
            n_links=len(ALPHAS),
        )
        return self._certified(alpha, bounds)

    def _certified(
        self, alpha: float, bounds: FixedSequenceCertificate
    ) -> tuple[Link, PITCertificate]:
        link = self.family(alpha)
        return link, self.tests.certificate(link, bounds)

    def _refusal(self, most: float) -> str:
        """Return why no link is certified: atoms that no randomization helps, or too few rows."""
        link = self.family(ALPHAS[0])
        target, n = self.target, self.tests.n_people
        groups = f"groups of {in_full(target.group_mass)} of people"
        start = f"no randomization has a certified group error of at most {most:g} for {groups}"
        least = cvar(self.tests.errors(link), target.group_mass)
        if least >= most:
            # an end of the scale keeps an error of 1/4 under the strongest link (outcomes: 4.1)
            return (
                f"{start}: even the strongest (alpha = {link.alpha:g}) has an estimated one of"
                f" {at_most(least)} points, because outcomes at an end of the scale are frequent;"
                " allow a larger error or larger groups"
            )
        # the excess of a bound over the estimate falls with the square root of the number of rows
        excess = self.tests.bound(link, target.confidence) - least
        needed = n * max(ROWS_MARGIN * (excess / (most - least)) ** 2, ROWS_MARGIN)
        rows = f"; about {count(_rounded(needed), 'row')} suffice" if needed < MOST_ROWS else ""
        return (
            f"{start} with {count(n, 'certifying row')}{rows}; use more rows, or allow a larger"
            " error or larger groups"
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
    unit = 10 ** max(int(np.log10(n)) - 1, 0)
    return int(np.ceil(n / unit)) * unit
