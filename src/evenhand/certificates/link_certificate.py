"""Simultaneous certificates of links around one base forecaster (method: sharp certificate)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand._format import four_digits, in_full, one_line, points_in_full
from evenhand._validate import (
    Floats,
    InputError,
    bad_input,
    check_count,
    check_fraction,
    check_rows,
)
from evenhand.calibration import PIT_BINS, Cells, as_cells
from evenhand.certificates.assumptions import SAMPLE, UNIFORM_DRAWS, WEIGHTED
from evenhand.certificates.certificate import WORST, Certificate
from evenhand.certificates.event_certificate import SHOWN_MASS, Sample
from evenhand.certificates.link_evidence import (
    EVIDENCE,
    LEAST_ALPHA,
    Bound,
    LinkEvidence,
    calibrated_evidence,
    enough_rows,
    evidence_type,
    largest_alpha,
)
from evenhand.certificates.promise import Promise
from evenhand.distributions import OutcomeKind
from evenhand.draws import RandomState, nodes, one_row_each
from evenhand.links import Link, check_link

CELLS = 512
"""Number of cells of draws over which probabilities are averaged."""

GRID_POINTS = 257
"""Number of distances, besides the steps of the band, at which probabilities are computed."""

MOST_PITS = 10_000
"""Largest number of PITs that a certificate keeps, for estimates; more are thinned by rank."""

THINNED_PEOPLE = 1000
"""Largest number of people in a mean; more people are replaced by as many equal steps in rank."""

MOST_ROWS = 200_000
"""Largest number of rows that a message proposes, or twice the given rows if that is more."""


@dataclass(frozen=True, eq=False, repr=False)
class LinkCertificate(Certificate):
    """Simultaneous bounds for every link around one deterministic forecaster.

    All bounds hold jointly, so the link may be chosen freely on the same people: bands for the
    distribution of the forecaster's own PITs bound the errors under every link, at every `alpha`
    and in every group of every size, with the given confidence.

    Parameters
    ----------
    confidence : float
        Probability, over the rows, that all of the bounds hold.
    link : Link
        The link whose bounds are returned.
    evidence : LinkEvidence
        Bands for the forecaster's PITs. Two one-sided bands give the sharp bound for group errors:
        with many people it approaches the least error that anybody can prove. One band for
        `|PIT - 1/2|` gives the mean pathwise error of the worst people, which is smaller for few
        people and strong links only.
    pit : ndarray of shape (k,)
        The forecaster's PITs, increasing; 10,000 of equal steps in rank if there are more.
    n_people : int
        Number of people.
    one_row_each : bool
        Whether people have several rows and one row per person was used: group sizes are then
        shares of people, not of rows.
    n_lost: int
        Number of people whose PIT is not known: they count with the largest value of every bounded
        quantity. `pit` does not contain them.
    """

    confidence: float
    link: Link
    evidence: LinkEvidence
    pit: Floats
    n_people: int
    one_row_each: bool = False
    n_lost: int = 0

    method = "local-levels"
    mass = None
    is_randomized = True
    assumptions = (
        SAMPLE,
        "the deterministic forecaster was fixed without using these rows",
        UNIFORM_DRAWS,
    )

    def __post_init__(self) -> None:
        check_link(self.link)

    @classmethod
    def of(cls, sample: Sample, link: Link, confidence: float, bound: Bound | None) -> Self:
        """Make the certificate from PITs; without `bound` its kind depends on their number."""
        n = sample.n_samples
        evidence = evidence_type(bound, n).of(sample, confidence)
        return cls(confidence, link, evidence, sample.quantiles(MOST_PITS), n)

    def __repr__(self) -> str:
        return one_line(
            self,
            link=self.link,
            bound=self.bound,
            n_samples=self.n_samples,
            confidence=four_digits(self.confidence, "down"),
            group_error=four_digits(self.group_error(SHOWN_MASS), "up"),
            group_mass=SHOWN_MASS,
        )

    @property
    def n_samples(self) -> int:
        """Number of people."""
        return self.n_people

    @property
    def bound(self) -> Bound:
        """Kind of the bound for group errors: "sharp" or "pathwise"."""
        return self.evidence.bound

    def with_link(self, link: Link) -> LinkCertificate:
        """Return the same bounds read for another link."""
        return replace(self, link=link)

    def average_error(self) -> float:
        """Upper bound for the overall W1 error, 0 to 1/2: the bound for the group of all people."""
        return self.group_error(1.0)

    def group_error(self, mass: float) -> float:
        """Upper bound for the W1 error, 0 to 1/2, of every group of at least this share."""
        check_fraction("mass", mass, high_open=False)
        return self.evidence.group_error(self.link, mass)

    def promise(self, mass: float) -> Promise:
        """Return the bound of group errors as a promise about mean served PITs.

        A group error is at least the distance of the group's mean served PIT from 1/2, whatever the
        link and whichever bound was certified. The sharp bound also gives the certified envelope of
        the forecaster's own PITs.

        Parameters
        ----------
        mass : float
            Smallest share of people in the group, 0 < mass <= 1.
        """
        target = self.group_error(mass)
        envelope = self.evidence.envelope(mass)
        return Promise("mean_pit", mass, target, self.confidence, self.link, envelope)

    def mean_error(self) -> float:
        """Return the mean pathwise error of these people under the link.

        This is the argument of `price_of_proof`. Exact up to 1,000 people, to within 0.001 beyond.
        People whose PIT is not known are left out.
        """
        # errors increase with the distance from 1/2 and lie in [0, 1/2]: the mean over 1,000 equal
        # steps in rank is off by at most half a step
        return float(self.link.pathwise_error(_thinned(self.pit)).mean())

    def coverage(self, level: float, mass: float) -> tuple[float, float]:
        """Bounds for the coverage of central prediction intervals in every group of a given size.

        Parameters
        ----------
        level : float
            Nominal level of the interval, such as 0.8.
        mass : float
            Smallest share of people in the group, 0 < mass <= 1.

        Returns
        -------
        low, high : float
            The coverage of every such group lies between them. With the pathwise bound, `high` is
            the largest coverage that any single person can have under the link.
        """
        check_fraction("level", level)
        check_fraction("mass", mass, high_open=False)
        u = 0.5 + self._grid[:, None]
        r = nodes(CELLS)
        near = (u < self.link.cdf((1 - level) / 2, r)).mean(axis=-1)
        far = (u > self.link.cdf((1 + level) / 2, r)).mean(axis=-1)
        # each of the two averages over cells of draws is exact to half a cell
        missed = self._largest_so_far(near, far) + 1 / CELLS
        # the largest share of hits from each distance on; between two grid points as above
        hits = 1 - np.append(near[1:] + far[:-1], near[-1] + far[-1]) + 1 / CELLS
        largest = np.maximum.accumulate(hits[::-1])[::-1]
        covered = largest[np.searchsorted(self._grid, self.evidence.nearness.starts)]
        low = 1 - self.evidence.worst_mean(missed, mass, 1.0)
        return low, min(self.evidence.best_mean(covered, mass), 1.0)

    def mpaic(self, error: float) -> float:
        """Upper bound for `P(|h[X, R](Y) - R| >= error)`, the delta of the paper's mPAIC.

        Holds simultaneously for all thresholds, links and alphas.

        Parameters
        ----------
        error : float
            Threshold, 0 to 1.

        Returns
        -------
        float
            Between 0 and 1.
        """
        check_fraction("error", error, low_open=False, high_open=False)
        # H(u; r) <= r - e where u <= K(r - e; r), H(u; r) >= r + e where u >= K(r + e; r). K(c; r)
        # increases in c and decreases in r, so its values at opposite ends of a cell of draws bound
        # it from above and from below. No draw lies within 2^-60 of an end
        ends = np.clip(np.linspace(0.0, 1.0, CELLS + 1), 2.0**-60, 1 - 2.0**-53)
        left = ends[:-1]
        right = ends[1:]
        u = 0.5 + self._grid[:, None]
        below = self.link.cdf(np.maximum(right - error, 0.0), left)
        above = self.link.cdf(np.minimum(left + error, 1.0), right)
        near = ((u <= below) & (right >= error)).mean(axis=-1)
        far = ((u >= above) & (left + error <= 1)).mean(axis=-1)
        return self.evidence.worst_mean(self._largest_so_far(near, far), 1.0, 1.0)

    @cached_property
    def _grid(self) -> Floats:
        """Distances at which probabilities over the draw are computed."""
        steps = np.union1d(self.evidence.distances.starts, self.evidence.nearness.starts)
        return np.union1d(steps, np.linspace(0, 0.5, GRID_POINTS))

    def _largest_so_far(self, near: Floats, far: Floats) -> Floats:
        """Return the running maximum, at each step of the band, of the sum of two probabilities.

        The probability on the near side of the PIT decreases with the distance, the one on the far
        side increases. Links are symmetric, so PITs above 1/2 also represent those below.
        """
        # Unlike the error, the sum is not monotone in the distance: the near side can decrease
        # before the far side increases. Its running maximum is monotone. Between two grid points
        # each probability lies between its values at these points
        sums = np.append(near[0], near[:-1]) + far
        return np.maximum.accumulate(sums)[
            np.searchsorted(self._grid, self.evidence.distances.starts)
        ]

    def _forecasts(self) -> str:
        return f"under {self.link!r}"

    def _remarks(self) -> list[str]:
        return [
            "These bounds hold simultaneously for every link and alpha, so both may be chosen on"
            " the same people.",
            f"The bound for group errors is the {self.bound} one.",
        ]

    def least_randomized(
        self, max_group_error: float, mass: float, *, certify_share: float | None = None
    ) -> LinkCertificate:
        """Return the certificate of the largest `alpha` of this family that meets a target.

        Parameters
        ----------
        max_group_error : float
            Largest admissible W1 error of a group, 0 to 1.
        mass : float
            Smallest share of people in a group.
        certify_share : float, optional
            Share of all rows that is used for certification; with it, a message about too few rows
            gives the number of all rows, too.

        Raises
        ------
        InputError
            If no alpha meets the target. The message gives the price and a number of rows that
            suffices about nine times in ten.
        """
        check_fraction("max_group_error", max_group_error)
        check_fraction("mass", mass, high_open=False)
        alpha = largest_alpha(self.evidence, self.link, max_group_error, mass)
        if alpha is None:
            raise InputError(self._too_few_rows(max_group_error, mass, certify_share))
        return self.with_link(type(self.link)(alpha))

    def _too_few_rows(
        self, max_group_error: float, mass: float, certify_share: float | None
    ) -> str:
        n = self.n_samples
        start = (
            f"a group error of at most {points_in_full(max_group_error)} points cannot be certified"
            f" for groups of {in_full(mass)} of people on {n:,} rows"
        )
        # a group may contain all people who were lost, each with an error of 1/2
        if self.n_lost / (2 * n * mass) >= max_group_error:
            return f"{start}: {self._lost_in_words()}"
        least = type(self.link)(LEAST_ALPHA)
        most = max(MOST_ROWS, 2 * n)
        enough = enough_rows(
            lambda rows: any(
                evidence.group_error(least, mass) <= max_group_error
                for evidence in self._as_if(rows)
            ),
            n,
            most,
        )
        if enough is None and self.n_lost:
            return f"{start}, nor on {most:,} such rows: {self._lost_in_words()}"
        if enough is None:
            remedy = (
                "allow a larger error, or recalibrate the model first (in Python: recalibrate=True)"
            )
            return f"{start}, nor on {most:,} such rows; {remedy}"
        # that many rows suffice on average: a tenth more suffices nine times in ten
        needed = _two_digits(math.ceil(1.1 * enough))
        alpha = max(
            largest_alpha(evidence, self.link, max_group_error, mass) or LEAST_ALPHA
            for evidence in self._as_if(needed)
        )
        price = self.with_link(type(self.link)(alpha))._mean_price()
        in_all = ""
        if certify_share is not None:
            rows = _two_digits(math.ceil(needed / certify_share))
            in_all = f" ({rows:,} in all if {in_full(certify_share)} of them certify)"
        return (
            f"{start}: about {needed:,} certification rows suffice{in_all}, at a price of"
            f" {price:.1f} nats of log score; use more rows or allow a larger error"
        )

    def _lost_in_words(self) -> str:
        lost = f"{self.n_lost:,} {'was' if self.n_lost == 1 else 'were'} lost before the horizon"
        return (
            f"of {self.n_samples:,} people who had the event or were lost, {lost}, and each of"
            " these may have the largest error; use people who entered early enough to be followed"
            " (entered), an earlier horizon, larger groups or a larger error"
        )

    def _as_if(self, rows: int) -> Iterator[LinkEvidence]:
        """Yield the evidence of both bounds from this many people with the same quantiles."""
        n_lost = round(rows * self.n_lost / self.n_samples)
        known = rows - n_lost
        alike = np.quantile(self.pit, (np.arange(known) + 0.5) / known)
        low, high = np.append(alike, np.zeros(n_lost)), np.append(alike, np.ones(n_lost))
        # with people lost, the kind of the bound does not depend on their number
        kinds = (type(self.evidence),) if self.n_lost else tuple(EVIDENCE.values())
        for kind in kinds:
            yield kind.of(Sample(low, high), self.confidence)

    def _mean_price(self) -> float:
        """Return the mean loss of log score through the link, in nats."""
        r = nodes(16)
        return float(self.link.logpdf(self.link.ppf(_thinned(self.pit)[:, None], r), r).mean())


def _thinned(values: Floats) -> Floats:
    """Return at most `THINNED_PEOPLE` of increasing values, in the middle of equal steps."""
    if values.size <= THINNED_PEOPLE:
        return values
    ranks = ((np.arange(THINNED_PEOPLE) + 0.5) * values.size / THINNED_PEOPLE).astype(np.intp)
    return values[ranks]


def _two_digits(n: int) -> int:
    """Round a count up to two significant digits."""
    scale: int = 10 ** max(len(str(n)) - 2, 0)
    return -(-n // scale) * scale


# --- certification


def certify_link(
    pit: ArrayLike | Cells,
    link: Link,
    *,
    confidence: float = 0.95,
    bound: Bound | None = None,
    lost: ArrayLike | None = None,
    cluster: ArrayLike | None = None,
    random_state: RandomState = None,
) -> LinkCertificate:
    """Certify links around a deterministic forecaster, from its own PITs on held-out rows.

    Parameters
    ----------
    pit : Cells or array-like of shape (n,)
        PITs of the deterministic forecaster, between 0 and 1, one per row.
    link : Link
        The link whose bounds are returned; `with_link` returns those of any other.
    confidence : float, default 0.95
        Probability that all bounds for all links hold.
    bound : {"sharp", "pathwise"}, optional
        The kind of bound for group errors. It must not be chosen by looking at these rows: by
        default it is the sharp one from 500 people on. `choose_bound` gives the cheaper one for a
        target.
    lost : array-like of bool, shape (n,), optional
        People whose PIT is not known, and who need not belong to the population of the others: the
        bounds are for groups of the people who do, and hold whatever these PITs are. What `pit`
        contains for them is ignored.
    cluster : array-like of shape (n,), optional
        Person labels, for people who have several rows. One row per person, chosen at random, is
        used, and group sizes are shares of people, not of rows.
    random_state : int, generator or None
        Seed for the choice of rows.

    Returns
    -------
    LinkCertificate

    Raises
    ------
    InputError
        If the PITs are invalid, weighted, randomized or those of outcomes with atoms, or there is
        more than one per row.

    Examples
    --------
    >>> from evenhand.links import Entropic
    >>> u = np.random.default_rng(0).uniform(size=2000)  # a calibrated forecaster
    >>> proof = certify_link(u, Entropic(0.1))
    >>> true = Entropic(0.1).group_error(0.2)
    >>> true < proof.group_error(0.2) < true + 0.04
    True
    >>> least = proof.least_randomized(max_group_error=0.3, mass=0.2)
    >>> least.group_error(0.2) <= 0.3, 0.1 < least.link.alpha < 0.2
    (True, True)
    """
    check_fraction("confidence", confidence)
    pits = as_cells(pit)
    remedy = "links wrap a deterministic forecaster; certify a randomized one with certify_pit"
    if pits.n_draws != 1:
        raise bad_input("pit", "have one PIT per row", f"shape {pits.drawn.shape}", remedy)
    if pits.is_randomized:
        raise bad_input("pit", "be those of forecasts without a draw", "PITs with draws", remedy)
    if not pits.are_points:
        remedy = "certify randomized forecasts of outcomes with atoms with certify_pit"
        raise bad_input("pit", "be PITs of continuous outcomes", "PITs with cells", remedy)
    if pits.weights is not None:
        raise bad_input("pit", "have no weights", "weighted PITs", WEIGHTED)
    u = pits.drawn[:, 0]
    unknown = np.zeros(u.size, dtype=np.bool_)
    if lost is not None:
        unknown = check_rows("lost", lost, u.size) != 0
    if cluster is not None:
        rows = one_row_each(cluster, u.size, random_state)
        u, unknown = u[rows], unknown[rows]
    known = u[~unknown]
    if known.size == 0:
        raise bad_input("lost", "leave out at least one person whose PIT is known", "all people")
    # at 0 for the band of one tail and at 1 for that of the other, whichever makes a group worse
    sample = Sample(np.where(unknown, 0.0, u), np.where(unknown, 1.0, u))
    made = LinkCertificate.of(sample, link, float(confidence), bound)
    return replace(
        made,
        pit=Sample(known, known).quantiles(MOST_PITS),
        one_row_each=cluster is not None,
        n_lost=int(unknown.sum()),
    )


def certify_link_counts(
    counts: NDArray[np.int64],
    link: Link,
    *,
    confidence: float = 0.95,
    bound: Bound | None = None,
) -> LinkCertificate:
    """Certify links around a deterministic forecaster, from counts of its PITs in equal bins.

    PITs are taken at the ends of their bins, which only widens the bounds, by at most the share of
    people in a bin times the change of the mean served PIT over it, summed over bins and divided by
    the group size: by less than 0.001 for a size of 0.2 unless many PITs are in the first or the
    last bin.

    Parameters
    ----------
    counts : ndarray of int64, shape (6400,)
        Number of people by PIT, one row per person, in equal bins of [0, 1] closed on the right.
    link, confidence, bound
        As in `certify_link`.

    Returns
    -------
    LinkCertificate

    Raises
    ------
    InputError
        If the counts have another shape or contain no people.

    Examples
    --------
    >>> from evenhand.links import Entropic
    >>> counts = np.full(6400, 1)  # 6,400 people with evenly spread PITs
    >>> round(certify_link_counts(counts, Entropic(0.1)).group_error(0.2), 2)
    0.19
    """
    check_fraction("confidence", confidence)
    counts = np.asarray(counts)
    if counts.shape != (PIT_BINS,) or counts.dtype.kind not in "iu":
        rule = f"be {PIT_BINS} integers"
        raise bad_input("counts", rule, f"shape {counts.shape} of type {counts.dtype}")
    if counts.min() < 0 or counts.sum() == 0:
        raise bad_input("counts", "be at least 0, of at least one person", f"sum {counts.sum()}")
    bins = np.flatnonzero(counts)
    sample = Sample(bins / PIT_BINS, (bins + 1) / PIT_BINS, counts[bins])
    return LinkCertificate.of(sample, link, float(confidence), bound)


def certify_calibrated(
    n: int, link: Link, *, confidence: float = 0.95, bound: Bound | None = None
) -> LinkCertificate:
    """Return the certificate of links around a calibrated base with evenly spread PITs.

    It shows what so many rows can prove before there are any. Bounds from rows vary around it.

    Parameters
    ----------
    n : int
        Number of people; their PITs are `(i - 1/2) / n`.
    link, confidence, bound
        As in `certify_link`.

    Returns
    -------
    LinkCertificate

    Examples
    --------
    >>> from evenhand.links import Entropic
    >>> round(certify_calibrated(2000, Entropic(0.1)).group_error(0.2), 3)
    0.204
    """
    check_fraction("confidence", confidence)
    n_people = check_count("n", n)
    kind = evidence_type(bound, n_people).bound
    evidence = calibrated_evidence(n_people, float(confidence), kind)
    size = min(n_people, MOST_PITS)
    return LinkCertificate(
        float(confidence), link, evidence, (np.arange(size) + 0.5) / size, n_people
    )


# --- certificate of a model that was chosen by fixed-sequence testing (method: proof)


@dataclass(frozen=True)
class FixedSequenceCertificate(Certificate):
    """The target group error that a model passed in fixed-sequence testing, and no tighter bound.

    Models are tested in a fixed order until one fails, so the probability that any model passes
    whose group error is above the target is at most `1 - confidence` (fixed-sequence testing). The
    bound from the test of a model may be below the target, but it does not hold with that
    confidence, because bounds of several models were computed.

    Parameters
    ----------
    target : float
        Group error that was tested.
    mass : float
        Smallest share of people in a group.
    confidence : float
        Probability that the target holds.
    n_people : int
        Number of people on whose rows the models were tested.
    one_row_each : bool
        Whether people have several rows and one row per person was used.
    kind : OutcomeKind, default "continuous"
        Kind of outcome that the forecasts describe.
    link : Link, optional
        Link of the model that passed; None if it is not a link around a deterministic one.
    """

    target: float
    mass: float
    confidence: float
    n_people: int
    one_row_each: bool = False
    kind: OutcomeKind = OutcomeKind.CONTINUOUS
    link: Link | None = None

    method = "betting"
    is_randomized = True
    assumptions = (
        SAMPLE,
        "the models and their order were fixed without using these rows",
        UNIFORM_DRAWS,
    )

    @property
    def n_samples(self) -> int:
        """Number of people."""
        return self.n_people

    def average_error(self) -> float:
        """Return the target: all people together are such a group."""
        return self.target

    def group_error(self, mass: float) -> float:
        """Return the target for groups of at least the tested size, 1/2 for smaller ones."""
        check_fraction("mass", mass, high_open=False)
        # a bound for every group of a size holds for larger groups, which are mixtures of them
        return self.target if mass >= self.mass else WORST

    def promise(self, mass: float) -> Promise:
        """Return the target as a promise about mean served PITs; needs the link of the model.

        Parameters
        ----------
        mass : float
            Smallest share of people in the group, at least the tested size.
        """
        check_fraction("mass", mass, high_open=False)
        if self.link is None:
            raise InputError(
                "nothing is promised that served forecasts can show: the model is not a link around"
                " a deterministic one, so its mean PIT over draws is not known after one draw;"
                " certify it on other rows with certify_pit(..., r=...), which bounds |PIT - r|"
            )
        if mass < self.mass:
            raise bad_input("mass", f"be at least {self.mass:g}, the tested group size", mass)
        return Promise("mean_pit", mass, self.target, self.confidence, self.link)

    def coverage(self, level: float, mass: float) -> tuple[float, float]:
        """Return 0 and 1: coverage was not tested."""
        check_fraction("level", level)
        check_fraction("mass", mass, high_open=False)
        return 0.0, 1.0

    def mpaic(self, error: float) -> float:
        """Raise InputError: mPAIC was not tested."""
        raise InputError(
            "mPAIC was not tested in the sequence of models, so it has no bound here; certify the"
            " chosen model on other rows with certify_pit"
        )

    def _forecasts(self) -> str:
        return "on whom the models were tested in a fixed order"
