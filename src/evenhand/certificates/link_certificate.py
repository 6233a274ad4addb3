"""Simultaneous certificates of all links around a deterministic forecaster (method: proof)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import four_digits, one_line
from evenhand._validate import Floats, InputError, bad_input, check_fraction
from evenhand.calibration import PITs, SurvivalBand, as_pits, local_levels_band
from evenhand.certificates.assumptions import SAMPLE, UNIFORM_DRAWS
from evenhand.certificates.certificate import SHOWN_MASS, WORST, Certificate
from evenhand.certificates.least_alpha import (
    LEAST_ALPHA,
    SEARCH_SLACK,
    approximate_errors,
    enough_rows,
    search_alpha,
)
from evenhand.draws import RandomState, nodes, one_row_each
from evenhand.links import Link

CELLS = 512
"""Number of cells of draws over which probabilities are averaged."""

GRID_POINTS = 257
"""Number of distances, besides the steps of the band, at which probabilities are computed."""

THINNED_PEOPLE = 1000
"""Largest number of people in a mean; more people are replaced by as many equal steps in rank."""

MOST_ROWS = 200_000
"""Largest number of rows that a message proposes, or twice the given rows if that is more."""


@dataclass(frozen=True, eq=False, repr=False)
class LinkCertificate(Certificate):
    """Simultaneous bounds for every link around one deterministic forecaster.

    The bounds hold simultaneously, so the link may be chosen freely on the same people.

    A person's pathwise error under a link grows with the distance of the forecaster's own PIT from
    1/2. One upper band for the distribution of that distance therefore bounds the errors under
    every link, at every `alpha` and in every group of every mass simultaneously with the given
    confidence: the weakest randomization that meets a target may be chosen on the same rows.

    Parameters
    ----------
    confidence : float
        Probability, over the rows, that all of the bounds hold.
    link : Link
        The link whose bounds are returned.
    distances : ndarray of shape (n,)
        `|U - 1/2|` of each person's PIT `U` under the deterministic forecaster.
    band : SurvivalBand
        Upper band for the distribution of the distances.
    one_row_each : bool
        Whether people have several rows and one row per person was used: group sizes are then
        shares of people, not of rows.
    """

    confidence: float
    link: Link
    distances: Floats
    band: SurvivalBand
    one_row_each: bool = False

    method = "local-levels"
    mass = None
    is_randomized = True
    assumptions = (
        SAMPLE,
        "the deterministic forecaster was fixed without using these rows",
        UNIFORM_DRAWS,
    )

    def __repr__(self) -> str:
        return one_line(
            self,
            link=self.link,
            n_samples=self.n_samples,
            confidence=four_digits(self.confidence, "down"),
            group_error=four_digits(self.group_error(SHOWN_MASS), "up"),
            group_mass=SHOWN_MASS,
        )

    @property
    def n_samples(self) -> int:
        """Number of people."""
        return self.distances.size

    def with_link(self, link: Link) -> LinkCertificate:
        """Return the same bounds read for another link."""
        return replace(self, link=link)

    def average_error(self) -> float:
        """Upper bound for the overall W1 error, 0 to 1/2: the bound for the group of all people."""
        return self.group_error(1.0)

    def group_error(self, mass: float) -> float:
        """Upper bound for the W1 error, 0 to 1/2, of every group of at least this share."""
        check_fraction("mass", mass, high_open=False)
        return self._worst_mean(self._errors, mass, WORST)

    @cached_property
    def _errors(self) -> Floats:
        """Pathwise errors at the steps of the band."""
        return self.link.pathwise_error(0.5 + self.band.starts)

    def _worst_mean(self, values: Floats, mass: float, top: float) -> float:
        """Bound the mean of the worst `mass` of a quantity that increases with the distance."""
        # monotone: moving the steps of the band from distances to values bounds the quantity
        steps = np.append(0.0, np.minimum(values, top))
        return SurvivalBand(steps, np.append(1.0, self.band.upper), top).cvar(mass)

    def mean_error(self) -> float:
        """Return the mean pathwise error of these people under the link.

        This is the argument of `price_of_proof`. Exact up to 1,000 people, to within 0.0005 beyond.
        """
        # errors increase with the distance and lie in [0, 1/2]: the mean over 1,000 equal steps in
        # rank is off by at most half a step
        return float(self.link.pathwise_error(0.5 + _thinned(self.distances)).mean())

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
            The coverage of every such group lies between them. The upper bound is the largest
            coverage that any single person can have under the link.
        """
        check_fraction("level", level)
        check_fraction("mass", mass, high_open=False)
        distances = self._grid
        u = 0.5 + distances[:, None]
        r = nodes(CELLS)
        near = (u < self.link.cdf((1 - level) / 2, r)).mean(axis=-1)
        far = (u > self.link.cdf((1 + level) / 2, r)).mean(axis=-1)
        # each of the two averages over cells of draws is exact to half a cell
        worst = self._largest_so_far(near, far) + 1 / CELLS
        least = float((near[1:] + far[:-1]).min()) - 1 / CELLS
        return 1 - self._worst_mean(worst, mass, 1.0), 1 - max(least, 0.0)

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
        return self._worst_mean(self._largest_so_far(near, far), 1.0, 1.0)

    @property
    def _grid(self) -> Floats:
        """Distances at which probabilities over the draw are computed."""
        return np.union1d(self.band.starts, np.linspace(0, 0.5, GRID_POINTS))

    def _largest_so_far(self, near: Floats, far: Floats) -> Floats:
        """Return the running maximum, at each step of the band, of the sum of two probabilities.

        The probability on the near side of the PIT decreases with the distance, the one on the far
        side increases. Links are symmetric, so PITs above 1/2 also represent those below.
        """
        # Unlike the error, the sum is not monotone in the distance: the near side can decrease
        # before the far side increases. Its running maximum is monotone. Between two grid points
        # each probability lies between its values at these points
        sums = np.append(near[0], near[:-1]) + far
        return np.maximum.accumulate(sums)[np.searchsorted(self._grid, self.band.starts)]

    def _forecasts(self) -> str:
        return f"under {self.link!r}"

    def _remarks(self) -> list[str]:
        return [
            "These bounds hold simultaneously for every link and alpha, so both may be chosen on"
            " the same people."
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
        family = type(self.link)
        found = self.with_link(family(1.0))
        most = found.group_error(mass)
        if most <= max_group_error:
            return found
        # steps at which the band is at least `mass` all have full weight, so their widths
        # telescope: the bound depends only on the errors at the remaining steps
        needed = self.band.starts[self.band.upper < mass]
        inner = np.zeros(self.band.starts.size - needed.size)

        def bound_at(alpha: float) -> float:
            errors = approximate_errors(family(alpha), needed)
            return self._worst_mean(np.append(inner, errors), mass, WORST)

        alpha = search_alpha(bound_at, max_group_error, most)
        step = SEARCH_SLACK
        found = self.with_link(family(alpha))
        # the search used approximate errors: the bound itself decides
        while found.group_error(mass) > max_group_error:
            if found.link.alpha <= LEAST_ALPHA:
                raise InputError(self._too_few_rows(max_group_error, mass, certify_share))
            alpha = max(alpha * (1 - step), LEAST_ALPHA)
            step = min(2 * step, 0.5)
            found = self.with_link(family(alpha))
        return found

    def _too_few_rows(
        self, max_group_error: float, mass: float, certify_share: float | None
    ) -> str:
        n = self.n_samples
        start = (
            f"a group error of at most {max_group_error:g} cannot be certified for mass {mass:g} on"
            f" {n:,} rows"
        )
        least = self.with_link(type(self.link)(LEAST_ALPHA))
        most = max(MOST_ROWS, 2 * n)
        enough = enough_rows(
            lambda rows: least._as_if(rows).group_error(mass) <= max_group_error, n, most
        )
        if enough is None:
            remedy = (
                "allow a larger error, or recalibrate the model first (in Python: recalibrate=True)"
            )
            return f"{start}, nor on {most:,} such rows; {remedy}"
        # that many rows suffice on average: a tenth more suffices nine times in ten
        needed = _two_digits(math.ceil(1.1 * enough))
        found = self._as_if(needed).least_randomized(max_group_error, mass)
        in_all = ""
        if certify_share is not None:
            rows = _two_digits(math.ceil(needed / certify_share))
            in_all = f" ({rows:,} in all at certify_share={certify_share:g})"
        return (
            f"{start}: about {needed:,} certification rows suffice{in_all}, at a price of"
            f" {found._mean_price():.1f} nats of log score; use more rows or allow a larger error"
        )

    def _as_if(self, rows: int) -> LinkCertificate:
        """Return the certificate of this many people with the same quantiles of distances."""
        alike = np.quantile(self.distances, (np.arange(rows) + 0.5) / rows)
        band = local_levels_band(alike, WORST, self.confidence)
        return replace(self, distances=alike, band=band)

    def _mean_price(self) -> float:
        """Return the mean loss of log score through the link, in nats."""
        u = 0.5 - _thinned(self.distances)[:, None]
        r = nodes(16)
        return float(self.link.logpdf(self.link.ppf(u, r), r).mean())


def certify_link(
    pit: ArrayLike | PITs,
    link: Link,
    *,
    confidence: float = 0.95,
    cluster: ArrayLike | None = None,
    random_state: RandomState = None,
) -> LinkCertificate:
    """Certify links around a deterministic forecaster, from its own PITs on held-out rows.

    Parameters
    ----------
    pit : PITs or array-like of shape (n,)
        PITs of the deterministic forecaster, between 0 and 1, one per row.
    link : Link
        The link whose bounds are returned; `with_link` returns those of any other.
    confidence : float, default 0.95
        Probability that all bounds for all links hold.
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
        If the PITs are invalid, or there is more than one per row.

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
    matrix = as_pits(pit).matrix
    if matrix.shape[1] != 1:
        remedy = "links wrap a deterministic forecaster; certify a randomized one with certify_pit"
        raise bad_input("pit", "have one PIT per row", f"shape {matrix.shape}", remedy)
    u = matrix[:, 0]
    if cluster is not None:
        u = u[one_row_each(cluster, u.size, random_state)]
    distances = np.abs(u - 0.5)
    band = local_levels_band(distances, WORST, confidence)
    return LinkCertificate(float(confidence), link, distances, band, cluster is not None)


def _thinned(values: Floats) -> Floats:
    """Return at most `THINNED_PEOPLE` of the values, in the middle of equal steps in rank."""
    if values.size <= THINNED_PEOPLE:
        return values
    ranks = ((np.arange(THINNED_PEOPLE) + 0.5) * values.size / THINNED_PEOPLE).astype(np.intp)
    return np.asarray(np.sort(values)[ranks])


def _two_digits(n: int) -> int:
    """Round a count up to two significant digits."""
    scale: int = 10 ** max(len(str(n)) - 2, 0)
    return -(-n // scale) * scale
