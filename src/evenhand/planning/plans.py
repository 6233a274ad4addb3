"""Plan of a guarantee: what it costs, or what can be proven, with each number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from evenhand._format import Summarized, one_line
from evenhand._validate import InputError, bad_input, check_count
from evenhand.certificates import WORST, Bound, certify_calibrated, search_alpha
from evenhand.links import Link
from evenhand.planning import sentences
from evenhand.planning.needed import MOST_ROWS, population_link, rows_needed
from evenhand.planning.random_samples import PROBABILITY, reached_error
from evenhand.planning.target import (
    LEVEL,
    MaxGroupError,
    Target,
    affordable,
    bound_of,
    family_of,
    goal_of,
    right_coverage,
    right_wider,
)
from evenhand.search import MIN_SIZE, group_test_rows, shift_of

ROWS = (200, 500, 1000, 2000, 5000, 10_000, 100_000)
"""Numbers of certifying rows of a plan."""

ERRORS = (0.02, 0.03, 0.05, 0.1)
POWERS = (0.8, 0.9)
"""Errors of a group and probabilities of detecting them."""

AUDIT_LEVEL = 0.02
"""Error probability that an audit gives its named and scanned groups."""

N_GROUPS = 20
"""Number of groups that are tested together."""


@dataclass(frozen=True)
class PlannedCertificate:
    """What a number of rows certifies for a calibrated model, in nine of ten samples or more.

    Parameters
    ----------
    n_samples : int or None
        Number of certifying rows; None for unlimited rows.
    bound : {"sharp", "pathwise"} or None
        Kind of the bound, by the rule of `choose_bound`; None for unlimited rows, and where no link
        meets the target.
    alpha : float or None
        Alpha of the link; None if no link meets the target with so few rows. The other fields are
        then None, too.
    price : float or None
        Loss of log score, in nats.
    wider : float or None
        Relative increase of the mean width of 80% prediction intervals of normal forecasts.
    group_error : float or None
        Certified bound for the W1 error of every group.
    coverage_low, coverage_high : float or None
        Certified bounds for the coverage of 80% prediction intervals in every group, if PITs are
        evenly spread.
    """

    n_samples: int | None
    bound: Bound | None = None
    alpha: float | None = None
    price: float | None = None
    wider: float | None = None
    group_error: float | None = None
    coverage_low: float | None = None
    coverage_high: float | None = None


@dataclass(frozen=True)
class GroupTest:
    """Number of rows of a group with which its error is detected.

    Parameters
    ----------
    error : float
        W1 error of the group.
    shift : float
        Shift of its outcomes, in standard deviations of a normal forecast, that has this error.
    power : float
        Probability that the error is detected.
    n_groups : int
        Number of groups that are tested together.
    n_samples : int
        Number of rows of the group; groups of fewer than 150 rows are not tested by default.
    """

    error: float
    shift: float
    power: float
    n_groups: int
    n_samples: int


@dataclass(frozen=True, repr=False)
class Plan(Summarized):
    """What a guarantee costs, or what can be proven, before there are any rows.

    Parameters
    ----------
    target : Target
        The guarantee, or what may be paid for it.
    link : str
        Family of the links.
    certificates : tuple of PlannedCertificate
        One for each number of rows, by increasing number; the last one is for unlimited rows.
    rows_needed : int or None
        Fewest certifying rows for the guarantee at any price, in nine of ten samples; None if the
        cost is limited.
    group_tests : tuple of GroupTest
        Rows of a group for several errors, probabilities and numbers of groups.
    """

    target: Target
    link: str
    certificates: tuple[PlannedCertificate, ...]
    rows_needed: int | None
    group_tests: tuple[GroupTest, ...]

    def summary(self) -> str:
        """Return both tables as text."""
        return sentences.text(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as values of JSON."""
        return {
            "schema": "evenhand.plan/1",
            **self.target.to_dict(),
            "link": self.link,
            "probability": PROBABILITY,
            "rows_needed": self.rows_needed,
            "certificates": [asdict(one) for one in self.certificates],
            "group_tests": [asdict(one) for one in self.group_tests],
        }

    def __repr__(self) -> str:
        return one_line(
            self,
            **{self.target.goal.name: self.target.goal.most},
            group_mass=self.target.group_mass,
            confidence=self.target.confidence,
            link=self.link,
            rows_needed=self.rows_needed,
        )


def plan(
    max_group_error: float | None = None,
    group_mass: float = 0.2,
    *,
    max_wider: float | None = None,
    max_price: float | None = None,
    confidence: float = 0.95,
    link: str = "entropic",
    rows: Sequence[int] = ROWS,
    n_groups: int = N_GROUPS,
) -> Plan:
    """Return the price of a guarantee by number of rows, or the certified error for a price.

    The model is calibrated before the randomization. Nine of ten random samples or more certify
    what is planned; a miscalibrated model needs more rows or a higher price. The bound of each
    certificate is chosen as in `randomize`, before rows are seen.

    Parameters
    ----------
    max_group_error : float, optional
        Largest W1 error that a group may have, between 0 and 1/2; 0.25 if neither of the other two
        is given.
    group_mass : float, default 0.2
        Smallest group size, as a share of the people.
    max_wider : float, optional
        Instead of an error: largest relative increase of the mean width of 80% prediction
        intervals of normal forecasts; 0.1 for 10%. At most 2.
    max_price : float, optional
        Instead of an error: largest loss of log score, in nats.
    confidence : float, default 0.95
        Confidence of the certificates.
    link : {"entropic", "laplace", "gaussian"}, default "entropic"
        Family of links.
    rows : sequence of int
        Numbers of certifying rows, one per person, up to 10 million. Rows for training are not
        included.
    n_groups : int, default 20
        Number of groups that are tested together, for the power of the test of a named group;
        scanned groups are counted, too.

    Returns
    -------
    Plan

    Raises
    ------
    InputError
        If an argument is out of its range, or no number of rows suffices for the guarantee.

    Examples
    --------
    >>> planned = plan(0.3, 0.2, rows=[500, 2000])
    >>> [(one.n_samples, round(one.price, 1)) for one in planned.certificates]
    [(500, 0.6), (2000, 0.4), (None, 0.3)]
    >>> planned.rows_needed
    47
    """
    target = Target(goal_of(max_group_error, max_wider, max_price), group_mass, confidence)
    goal = target.goal
    family = family_of(link)
    if not np.iterable(rows):
        raise bad_input("rows", "be a list of numbers of rows", repr(rows), "such as [500, 1000]")
    numbers = sorted({_checked(one) for one in rows})
    if not numbers:
        raise InputError("rows is empty; give at least one number of rows")
    sizes = dict.fromkeys((1, check_count("n_groups", n_groups)))
    least = None
    if isinstance(goal, MaxGroupError):
        least = rows_needed(goal.most, target.group_mass, target.confidence, link=link)
        limit = population_link(target, family)
    else:
        limit = affordable(goal, family)
    return Plan(
        target=target,
        link=family.name,
        certificates=(
            *(_certificate(n, family, target) for n in numbers),
            _row(
                None,
                None,
                limit,
                limit.group_error(target.group_mass),
                right_coverage(limit, target.group_mass),
            ),
        ),
        rows_needed=least,
        group_tests=tuple(
            GroupTest(
                error,
                shift_of(error),
                power,
                size,
                group_test_rows(
                    error, power=power, n_groups=size, min_size=MIN_SIZE, level=AUDIT_LEVEL
                ),
            )
            for error in ERRORS
            for size in sizes
            for power in POWERS
        ),
    )


def _checked(rows: int) -> int:
    if check_count("rows", rows) > MOST_ROWS:
        raise bad_input("rows", f"be at most {MOST_ROWS:,}", f"{rows:,}")
    return int(rows)


def _certificate(n: int, family: Link, target: Target) -> PlannedCertificate:
    """Plan the certificate of `n` rows."""
    goal = target.goal
    mass = target.group_mass
    confidence = target.confidence
    bound = bound_of(target, family, n)

    def error_at(alpha: float) -> float:
        return reached_error(n, type(family)(alpha), bound, mass, confidence)

    if not isinstance(goal, MaxGroupError):
        link = affordable(goal, family)
    elif error_at(1.0) <= goal.most:
        link = type(family)(1.0)
    else:
        link = type(family)(search_alpha(error_at, goal.most, WORST))
        if error_at(link.alpha) > goal.most:
            return PlannedCertificate(n)
    proof = certify_calibrated(n, link, confidence=confidence, bound=bound)
    return _row(n, bound, link, error_at(link.alpha), proof.coverage(LEVEL, mass))


def _row(
    n: int | None,
    bound: Bound | None,
    link: Link,
    group_error: float,
    coverage: tuple[float, float],
) -> PlannedCertificate:
    return PlannedCertificate(
        n, bound, link.alpha, link.price, right_wider(link), group_error, *coverage
    )
