"""What the PITs of a deterministic forecaster prove about every link around it, at once (method: proof)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.interpolate import PchipInterpolator
from scipy.special import expit

from evenhand._format import Summarized, at_least, at_most, one_line, stated, stated_confidence
from evenhand._validate import Floats, InputError, bad_input, check_fraction
from evenhand.calibration.bands import SurvivalBand, local_levels_band
from evenhand.calibration.pits import PITs, as_pits
from evenhand.certificates.certificate import ASSUMPTIONS, MASS, ONE_ROW_EACH, WORST, not_covered
from evenhand.draws import RandomState, nodes, one_row_each
from evenhand.links import Link

__all__ = ["LinkCertificate", "certify_link"]

LEAST_ALPHA = 0.005
"""Least alpha that is searched: at it a calibrated base pays 3.6 nats."""

KNOTS = 30
"""Half of the distances at which a link's error is computed while one is searched for."""

CALIBRATED_SLOPE = 1.35
CALIBRATED_PLACE = -2.1
"""Around a calibrated forecaster the bound's logit, of its share of the bound without randomization, rises 1.1 to 1.7
times as fast as that of alpha, and alpha's is -3.2 to -1.5 where the bound is half of it (300 to
100,000 people, masses 0.1 to 1, all links). The search begins there; where it ends does not hang
on it."""

SEARCH_SLACK = 2e-3
"""How far below the largest alpha the search may end, on the logit scale."""

MOST_STEPS = 50
"""Steps of the search, of which three or four are taken; halving its range alone needs no more."""

CELLS = 512
"""Draws over which the probability that an interval misses is averaged."""

GRID = 257
"""Distances, beside those where the band steps, at which that probability is computed."""

EXACT_PEOPLE = 1000
"""Most people whose errors are computed one by one; of more, as many at equal steps in rank."""

MOST_ROWS = 200_000
"""Most rows that are reckoned with where more would be needed, unless there are more already."""

ROOM = 1.1
"""Factor on the rows that it takes on the average, so that they will do nine times in ten."""

PRICED = 1000
"""People, at equal steps in rank, over whom the price of a number of rows is averaged."""


@dataclass(frozen=True, eq=False, repr=False)
class LinkCertificate(Summarized):
    """Bounds for every link around one deterministic forecaster.

    They hold together, so the link may be chosen freely.

    A person's error under a link grows with the distance of the forecaster's own PIT from 1/2. One
    upper band for the law of that distance therefore bounds the errors under every link, at every
    `alpha`, in every group of every mass, all at once with the stated confidence: the least
    randomization that meets a target may be picked on the same rows.

    Parameters
    ----------
    confidence : float
        Probability, over the rows, that all of the bounds hold.
    link : Link
        The randomization that the bounds are read for.
    n_samples : int
        Rows, one per person.
    distances : ndarray of shape (n,)
        `|U - 1/2|` of each person's PIT `U` under the deterministic forecaster.
    band : SurvivalBand
        Upper band for the law of the distances.
    one_row_each : bool
        Whether one row of each person was taken, of several: shares are then of people, not of
        rows.
    """

    confidence: float
    link: Link
    n_samples: int
    distances: Floats
    band: SurvivalBand
    one_row_each: bool = False

    method = "local-levels"
    assumptions = (
        ASSUMPTIONS[0],
        "the deterministic forecaster was fixed before these rows were seen",
        ASSUMPTIONS[2],
    )

    def __repr__(self) -> str:
        return one_line(
            self,
            link=self.link,
            n_samples=self.n_samples,
            confidence=self.confidence,
            group_error=self.group_error(MASS),
            group_mass=MASS,
        )

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What the bounds say nothing about."""
        return not_covered(self.one_row_each)

    def with_link(self, link: Link) -> LinkCertificate:
        """Read the same bounds for another link."""
        return replace(self, link=link)

    def group_error(self, mass: float) -> float:
        """Upper bound for the W1 error of every group of at least this share of people, 0 to 1/2."""
        check_fraction("mass", mass, high_open=False)
        if mass not in self._bounds:
            band = self._needed(mass)
            self._bounds[mass] = self._bound(
                band, self.link.pathwise_error(0.5 + band.starts), mass
            )
        return self._bounds[mass]

    def mean_error(self) -> float:
        """Mean pathwise error of these people under the link: what `price_of_proof` asks for.

        Exact up to 1,000 people, to 0.0005 beyond.
        """
        # errors rise with the distance, from 0 or more to 1/2 or less: 1,000 steps in rank are off
        # by half of one
        return float(self.link.pathwise_error(0.5 + _thinned(self.distances, EXACT_PEOPLE)).mean())

    def average_error(self) -> float:
        """Upper bound for the W1 error over everybody, 0 to 1/2: that of the group of all."""
        return self.group_error(1.0)

    def coverage(self, level: float, mass: float) -> tuple[float, float]:
        """Bounds for the share of outcomes that a central interval holds, in every group of a mass.

        (low, high).

        The high one is that of the person whose interval holds most often, whoever that is.
        """
        check_fraction("level", level)
        check_fraction("mass", mass, high_open=False)
        # Unlike the error, the probability of a miss may fall while the distance grows: misses on
        # the near side, at draws that carry the interval past the middle, grow rarer before those
        # on the far side grow frequent. What only grows is the largest up to a distance. Between
        # two grid points each kind lies between its values there
        distances = np.union1d(self.band.starts, np.linspace(0, 0.5, GRID))
        near, far = self._missed(distances, level)
        worst = np.maximum.accumulate(np.append(near[0], near[:-1]) + far)[
            np.searchsorted(distances, self.band.starts)
        ]
        least = float((near[1:] + far[:-1]).min())
        # an average over cells of draws is exact to half a cell, for either kind
        worst = np.minimum(worst + 1 / CELLS, 1.0)
        low = 1 - SurvivalBand(np.append(0.0, worst), np.append(1.0, self.band.upper), 1.0).cvar(
            mass
        )
        return low, 1 - max(least - 1 / CELLS, 0.0)

    def table(self, masses: ArrayLike = (0.1, 0.2, 0.5, 1.0)) -> pd.DataFrame:
        """Return the bounds for some masses.

        `mass`, `group_error`, `coverage_80_low`, `coverage_80_high`.
        """
        rows = [
            (mass, self.group_error(mass), *self.coverage(0.8, mass))
            for mass in np.atleast_1d(masses).tolist()
        ]
        return pd.DataFrame(
            rows, columns=["mass", "group_error", "coverage_80_low", "coverage_80_high"]
        )

    def summary(self) -> str:
        """Return the bounds as text, with what they assume and what they do not cover."""
        lines = [
            f"With {stated_confidence(self.confidence)} confidence, from {self.n_samples:,} people,"
            f" under {self.link!r}:"
        ]
        lines += [
            f"- for every group of at least {stated(row['mass'])} of people, stated chances are off"
            f" by at most {at_most(row['group_error'])} points; the 80% interval holds"
            f" {at_least(row['coverage_80_low'])}% to {at_most(row['coverage_80_high'])}% there"
            for row in self.table((0.1, 0.2, 0.5)).to_dict("records")
        ]
        lines.append(
            f"- over everybody, stated chances are off by at most {at_most(self.average_error())}"
            " points"
        )
        lines += [ONE_ROW_EACH] if self.one_row_each else []
        lines.append(
            "All of this holds together, for every link and alpha: they may be chosen on the same"
            " people."
        )
        lines.append("Assumes: " + "; ".join(self.assumptions) + ".")
        lines.append("Does not cover: " + "; ".join(self.not_covered) + ".")
        return "\n".join(lines)

    def least_randomized(
        self, max_group_error: float, mass: float, *, certify_share: float | None = None
    ) -> LinkCertificate:
        """Return the certificate of the largest `alpha` of this family of links that meets a target.

        Parameters
        ----------
        max_group_error : float
            Largest W1 error that a group may have, 0 to 1.
        mass : float
            Least share of people in a group.
        certify_share : float, optional
            Share of all rows that these are, of which a complaint about too few of them tells.

        Raises
        ------
        InputError
            If none does; the message says how many rows would do, about nine times in ten, and at
            what price.
        """
        check_fraction("max_group_error", max_group_error)
        check_fraction("mass", mass, high_open=False)
        family = type(self.link)
        found = self.with_link(family(1.0))
        if found.group_error(mass) <= max_group_error:
            return found
        alpha = self._search(max_group_error, mass, found.group_error(mass))
        step = SEARCH_SLACK
        found = self.with_link(family(alpha))
        # the search went by a table of errors: the bound itself decides
        while found.group_error(mass) > max_group_error:
            if found.link.alpha <= LEAST_ALPHA:
                raise InputError(self._too_few_rows(max_group_error, mass, certify_share))
            alpha = max(alpha * (1 - step), LEAST_ALPHA)
            step = min(2 * step, 0.5)
            found = self.with_link(family(alpha))
        return found

    def _search(self, target: float, mass: float, most: float) -> float:
        """Alpha whose bound, by a table, lies just below the target.

        The least that is searched if none does.

        `most` is the bound without randomization. On the logit scale of both, bound and alpha lie
        nearly on a line.
        """
        family = type(self.link)
        band = self._needed(mass)

        def logit(bound: float) -> float:
            return float(np.log(bound / max(most - bound, 1e-9)))

        low = float(np.log(LEAST_ALPHA / (1 - LEAST_ALPHA)))
        high = 12.0
        slope = CALIBRATED_SLOPE
        goal = logit(target)
        place = float(np.clip(goal / slope + CALIBRATED_PLACE, low, high))
        last = (np.nan, np.nan)
        for _ in range(MOST_STEPS):
            alpha = float(expit(place))
            bound = self._bound(band, _errors_at(family(alpha), band.starts), mass)
            gap = logit(bound) - goal
            if np.isfinite(last[1]) and place != last[0]:
                slope = max((gap - last[1]) / (place - last[0]), 0.01)
            if -SEARCH_SLACK <= gap / slope <= 0:
                return alpha
            low, high = (place, high) if gap < 0 else (low, place)
            last = (place, gap)
            place = place - gap / slope - SEARCH_SLACK / 2
            if not low < place < high:
                place = (low + high) / 2
            if high - low < SEARCH_SLACK:
                break
        return max(float(expit(low)), LEAST_ALPHA)

    @cached_property
    def _bounds(self) -> dict[float, float]:
        """Bounds for the masses that were asked."""
        return {}

    def _needed(self, mass: float) -> SurvivalBand:
        """Steps that a bound for this mass hangs on.

        Farther in, all that counts is where they begin.
        """
        keep = self.band.upper < mass
        return SurvivalBand(self.band.starts[keep], self.band.upper[keep], self.band.top)

    def _bound(self, band: SurvivalBand, errors: Floats, mass: float) -> float:
        return SurvivalBand(np.append(0.0, errors), np.append(1.0, band.upper), WORST).cvar(mass)

    def _missed(self, distances: Floats, level: float) -> tuple[Floats, Floats]:
        """Probabilities over draws that a PIT at each distance is missed.

        On the near and on the far side of it.

        Links are symmetric, so PITs above the middle stand for those below.
        """
        u = 0.5 + distances[:, None]
        r = nodes(CELLS)
        low = self.link.cdf((1 - level) / 2, r)
        high = self.link.cdf((1 + level) / 2, r)
        return np.asarray((u < low).mean(axis=-1)), np.asarray((u > high).mean(axis=-1))

    def _too_few_rows(
        self, max_group_error: float, mass: float, certify_share: float | None
    ) -> str:
        n = self.n_samples
        start = (
            f"a group error of at most {max_group_error:g} cannot be certified for mass {mass:g} on"
            f" {n:,} rows"
        )

        def is_enough(rows: int) -> bool:
            return (
                self._as_if(rows).with_link(type(self.link)(LEAST_ALPHA)).group_error(mass)
                <= max_group_error
            )

        most = max(MOST_ROWS, 2 * n)
        few = n
        enough = min(4 * n, most)
        while not is_enough(enough):
            if enough == most:
                remedy = (
                    "allow a larger error, or recalibrate the model first (in Python:"
                    " recalibrate=True)"
                )
                return f"{start}, nor on {most:,} of the kind: {remedy}"
            few = enough
            enough = min(4 * enough, most)
        while enough - few > max(1, few // 20):
            middle = (few + enough) // 2
            few, enough = (few, middle) if is_enough(middle) else (middle, enough)
        needed = _two_digits(math.ceil(ROOM * enough))
        found = self._as_if(needed).least_randomized(max_group_error, mass)
        in_all = ""
        if certify_share is not None:
            rows = _two_digits(math.ceil(needed / certify_share))
            in_all = f" ({rows:,} in all at certify_share={certify_share:g})"
        return (
            f"{start}: about {needed:,} certifying rows will do{in_all}, at a price of"
            f" {found._mean_price():.1f} nats of log score; bring more rows, or allow a larger"
            " error"
        )

    def _as_if(self, rows: int) -> LinkCertificate:
        """Return what another number of people of the same kind would prove, on the average."""
        alike = np.quantile(self.distances, (np.arange(rows) + 0.5) / rows)
        band = local_levels_band(alike, WORST, self.confidence)
        return replace(self, n_samples=rows, distances=alike, band=band)

    def _mean_price(self) -> float:
        """Mean loss of log score to the link, nats."""
        u = 0.5 - _thinned(self.distances, PRICED)[:, None]
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
    """Certify links around a deterministic forecaster, from its own PITs on rows it has not seen.

    Parameters
    ----------
    pit : PITs or array-like of shape (n,)
        PITs of the deterministic forecaster, between 0 and 1, one per row.
    link : Link
        The link to read bounds for; every other may be read later, `with_link`.
    confidence : float, default 0.95
        Probability that all bounds for all links hold.
    cluster : array-like of shape (n,), optional
        Labels of people who have several rows: one row of each, chosen at random, is used, and the
        sizes of groups are shares of people, not of rows.
    random_state : int, generator or None
        Of the rows chosen.

    Returns
    -------
    LinkCertificate

    Raises
    ------
    InputError
        If the PITs do not fit.

    Examples
    --------
    >>> from evenhand.links import Entropic
    >>> u = np.random.default_rng(0).uniform(size=2000)  # a calibrated forecaster
    >>> proof = certify_link(u, Entropic(0.1))
    >>> Entropic(0.1).group_error(0.2) < proof.group_error(0.2) < Entropic(0.1).group_error(0.2) + 0.04
    True
    >>> least = proof.least_randomized(max_group_error=0.3, mass=0.2)
    >>> least.group_error(0.2) <= 0.3, 0.1 < least.link.alpha < 0.2
    (True, True)
    """
    check_fraction("confidence", confidence)
    matrix = as_pits(pit).matrix
    if matrix.shape[1] != 1:
        remedy = (
            "links go around a deterministic forecaster; certify a randomized one with certify_pit"
        )
        raise bad_input("pit", "have one PIT per row", f"shape {matrix.shape}", remedy)
    u = matrix[:, 0]
    if cluster is not None:
        u = u[one_row_each(cluster, u.size, random_state)]
    distances = np.abs(u - 0.5)
    band = local_levels_band(distances, WORST, confidence)
    return LinkCertificate(float(confidence), link, u.size, distances, band, cluster is not None)


def _errors_at(link: Link, distances: Floats) -> Floats:
    """Errors at many distances, to about 0.002 and on average to 0.0001.

    Computed at some, interpolated between.

    They are smooth in the logarithm of what is left to the end. Knots lie evenly in it, and evenly
    in rank. The end itself, where the logarithm has none, is computed apart.
    """
    left = 1 - (0.5 + distances)
    errors = np.full(distances.shape, float(link.pathwise_error(1.0)))
    is_inside = left > 0
    place = np.log(left[is_inside])
    knots = np.unique(place)
    if knots.size < 3:
        return link.pathwise_error(0.5 + distances)
    if knots.size > 2 * KNOTS:
        ranks = np.linspace(0, knots.size - 1, KNOTS).astype(np.intp)
        knots = np.union1d(np.linspace(knots[0], knots[-1], KNOTS), knots[ranks])
    # a person's error is that of the mirrored PIT, which has the digits near the end
    errors[is_inside] = PchipInterpolator(
        knots, link.pathwise_error(np.minimum(np.exp(knots), 0.5))
    )(place)
    return errors


def _thinned(values: Floats, most: int) -> Floats:
    """At most so many of the values, those in the middle of equal steps in rank."""
    if values.size <= most:
        return values
    ranks = ((np.arange(most) + 0.5) * values.size / most).astype(np.intp)
    return np.asarray(np.sort(values)[ranks])


def _two_digits(n: int) -> int:
    scale: int = 10 ** max(len(str(n)) - 2, 0)
    return -(-n // scale) * scale
