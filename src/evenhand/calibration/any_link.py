"""What the PITs of a deterministic forecaster prove about every link around it, at once (method: proof)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.interpolate import PchipInterpolator
from scipy.special import expit

from evenhand._checks import Floats, InputError, bad_input, check_fraction
from evenhand._words import at_least, at_most, percent
from evenhand.calibration.bands import SurvivalBand, local_levels_band
from evenhand.calibration.certificates import ASSUMPTIONS, NOT_COVERED, WORST
from evenhand.calibration.errors import check_pit
from evenhand.draws import RandomState, nodes, one_row_each
from evenhand.links import Link
from evenhand.links._base import TINY

__all__ = ["LinkCertificate", "certify_link"]

LEAST_ALPHA = 0.005
"""Least alpha that is searched: at it a calibrated base pays 3.6 nats."""

KNOTS = 20
"""Half of the distances at which a link's error is computed while one is searched for."""

SEARCH_SLACK = 2e-3
"""How far below the largest alpha the search may end, on the logit scale."""

MOST_STEPS = 50
"""Steps of the search, of which three or four are taken; halving its range alone needs no more."""

CELLS = 512
"""Draws over which the probability that an interval misses is averaged."""

MOST_ROWS = 200_000
"""Most rows that are reckoned with where more would be needed."""


@dataclass(frozen=True)
class LinkCertificate:
    """Bounds for every link around one deterministic forecaster; they hold together, so the link may be chosen freely.

    A person's error under a link grows with the distance of the forecaster's own PIT from 1/2. One upper band for the
    law of that distance therefore bounds the errors under every link, at every `alpha`, in every group of every mass,
    all at once with the stated confidence: the least randomization that meets a target may be picked on the same rows.

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
    """

    confidence: float
    link: Link
    n_samples: int
    distances: Floats
    band: SurvivalBand

    assumptions = (ASSUMPTIONS[0], "the deterministic forecaster was fixed before these rows were seen", ASSUMPTIONS[2])
    not_covered = NOT_COVERED

    def with_link(self, link: Link) -> LinkCertificate:
        """Read the same bounds for another link."""
        return replace(self, link=link)

    def group_error(self, mass: float) -> float:
        """Upper bound for the W1 error of every group of at least this share of people, 0 to 1/2."""
        check_fraction("mass", mass, high_open=False)
        if mass not in self._bounds:
            band = self._needed(mass)
            self._bounds[mass] = self._bound(band, self.link.pathwise_error(0.5 + band.starts), mass)
        return self._bounds[mass]

    def mean_error(self) -> float:
        """Mean pathwise error of these people under the link: what `price_of_proof` asks for, to about 0.0001."""
        return float(_errors_at(self.link, self.distances).mean())

    def average_error(self) -> float:
        """Upper bound for the W1 error over everybody, 0 to 1/2: that of the group of all."""
        return self.group_error(1.0)

    def coverage(self, level: float, mass: float) -> float:
        """Lower bound for the share of outcomes that a central interval holds, in every group of a mass."""
        check_fraction("level", level)
        check_fraction("mass", mass, high_open=False)
        misses = np.maximum.accumulate(self._missed(self.band.starts, level))
        return 1 - SurvivalBand(np.append(0.0, misses), np.append(1.0, self.band.upper), 1.0).cvar(mass)

    def table(self, masses: ArrayLike = (0.1, 0.2, 0.5, 1.0)) -> pd.DataFrame:
        """Return the bounds for some masses: `mass`, `group_error`, `coverage_80_low`."""
        rows = [(mass, self.group_error(mass), self.coverage(0.8, mass)) for mass in np.atleast_1d(masses).tolist()]
        return pd.DataFrame(rows, columns=["mass", "group_error", "coverage_80_low"])

    def summary(self) -> str:
        """Return the bounds as text, with what they assume and what they do not cover."""
        lines = [f"With {percent(self.confidence)} confidence, from {self.n_samples:,} people, under {self.link!r}:"]
        lines += [
            f"- for every group of at least {percent(row['mass'])} of people, stated chances are off by at most "
            f"{at_most(row['group_error'])} points; the 80% interval holds at least {at_least(row['coverage_80_low'])}%"
            for row in self.table((0.1, 0.2, 0.5)).to_dict("records")
        ]
        lines.append(f"- over everybody, stated chances are off by at most {at_most(self.average_error())} points")
        lines.append("All of this holds together, for every link and alpha: they may be chosen on the same people.")
        lines.append("Assumes: " + "; ".join(self.assumptions) + ".")
        lines.append("Does not cover: " + "; ".join(self.not_covered) + ".")
        return "\n".join(lines)

    def least_randomized(self, max_group_error: float, mass: float) -> LinkCertificate:
        """Return the certificate of the largest `alpha` of this family of links that meets a target.

        Raises
        ------
        InputError
            If none does; the message says how many rows it would take.
        """
        check_fraction("max_group_error", max_group_error)
        check_fraction("mass", mass, high_open=False)
        family = type(self.link)
        found = self.with_link(family(1.0))
        if found.group_error(mass) <= max_group_error:
            return found
        alpha, step = self._search(max_group_error, mass, found.group_error(mass)), SEARCH_SLACK
        found = self.with_link(family(alpha))
        # the search went by a table of errors: the bound itself decides
        while found.group_error(mass) > max_group_error:
            if found.link.alpha <= LEAST_ALPHA:
                raise InputError(self._too_few_rows(max_group_error, mass))
            alpha, step = max(alpha * (1 - step), LEAST_ALPHA), min(2 * step, 0.5)
            found = self.with_link(family(alpha))
        return found

    def _search(self, target: float, mass: float, most: float) -> float:
        """Alpha whose bound, by a table, lies just below the target; the least that is searched if none does.

        `most` is the bound without randomization. On the logit scale of both, bound and alpha lie nearly on a line.
        """
        family, band = type(self.link), self._needed(mass)

        def logit(bound: float) -> float:
            return float(np.log(bound / max(most - bound, 1e-9)))

        low, high, slope = float(np.log(LEAST_ALPHA / (1 - LEAST_ALPHA))), 12.0, 1.35
        goal = logit(target)
        # where a calibrated forecaster would end
        place, last = float(np.clip(goal / slope - 2.1, low, high)), (np.nan, np.nan)
        for _ in range(MOST_STEPS):
            alpha = float(expit(place))
            bound = self._bound(band, _errors_at(family(alpha), band.starts), mass)
            gap = logit(bound) - goal
            if np.isfinite(last[1]) and place != last[0]:
                slope = max((gap - last[1]) / (place - last[0]), 0.01)
            if -SEARCH_SLACK <= gap / slope <= 0:
                return alpha
            low, high = (place, high) if gap < 0 else (low, place)
            last, place = (place, gap), place - gap / slope - SEARCH_SLACK / 2
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
        """Steps that a bound for this mass hangs on: farther in, all that counts is where they begin."""
        keep = self.band.upper < mass
        return SurvivalBand(self.band.starts[keep], self.band.upper[keep], self.band.top)

    def _bound(self, band: SurvivalBand, errors: Floats, mass: float) -> float:
        return SurvivalBand(np.append(0.0, errors), np.append(1.0, band.upper), WORST).cvar(mass)

    def _missed(self, distances: Floats, level: float) -> Floats:
        """Probability over draws that the central interval misses, the worse of both sides."""
        r = nodes(CELLS)
        low, high = self.link.cdf((1 - level) / 2, r), self.link.cdf((1 + level) / 2, r)
        sides = [((u < low) | (u > high)).mean(axis=-1) for u in (0.5 + distances[:, None], 0.5 - distances[:, None])]
        # the average over cells of draws is exact to one cell
        return np.asarray(np.minimum(np.maximum(*sides) + 1 / CELLS, 1.0))

    def _too_few_rows(self, max_group_error: float, mass: float) -> str:
        n, least = self.n_samples, type(self.link)(LEAST_ALPHA)
        rising = np.sort(self.distances)

        def bound(rows: int) -> float:
            alike = np.quantile(rising, (np.arange(rows) + 0.5) / rows)
            band = local_levels_band(alike, WORST, self.confidence)
            return replace(self, band=band, link=least).group_error(mass)

        start = f"a group error of at most {max_group_error:g} cannot be certified for mass {mass:g} on {n:,} rows"
        enough = 4 * n
        while enough < MOST_ROWS and bound(enough) > max_group_error:
            enough *= 4
        if enough >= MOST_ROWS and bound(MOST_ROWS) > max_group_error:
            remedy = "allow a larger error, or mend the model first (recalibrate=True)"
            return f"{start}, nor on {MOST_ROWS:,} of the kind: {remedy}"
        few, enough = enough // 4, min(enough, MOST_ROWS)
        while enough - few > max(1, few // 20):
            middle = (few + enough) // 2
            few, enough = (few, middle) if bound(middle) <= max_group_error else (middle, enough)
        return f"{start}: it takes about {_two_digits(enough):,} certifying rows; bring more, or allow a larger error"


def certify_link(
    pit: ArrayLike,
    link: Link,
    *,
    confidence: float = 0.95,
    cluster: ArrayLike | None = None,
    random_state: RandomState = None,
) -> LinkCertificate:
    """Certify links around a deterministic forecaster, from its own PITs on rows it has not seen.

    Parameters
    ----------
    pit : array-like of shape (n,)
        PITs of the deterministic forecaster, between 0 and 1, one per row.
    link : Link
        The link to read bounds for; every other may be read later, `with_link`.
    confidence : float, default 0.95
        Probability that all bounds for all links hold.
    cluster : array-like of shape (n,), optional
        Labels of people who have several rows: one row of each, chosen at random, is used.
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
    matrix = check_pit(pit)
    if matrix.shape[1] != 1:
        remedy = "links go around a deterministic forecaster; certify a randomized one with certify_pit"
        raise bad_input("pit", "have one PIT per row", f"shape {matrix.shape}", remedy)
    u = matrix[:, 0]
    if cluster is not None:
        u = u[one_row_each(cluster, u.size, random_state)]
    distances = np.abs(u - 0.5)
    return LinkCertificate(float(confidence), link, u.size, distances, local_levels_band(distances, WORST, confidence))


def _errors_at(link: Link, distances: Floats) -> Floats:
    """Errors at many distances, to about 1e-5: computed at some of them, interpolated between.

    They are smooth in the logarithm of what is left to the end. Knots lie evenly in it, and evenly in rank.
    """
    place = np.log(np.maximum(0.5 - distances, TINY))
    knots = np.unique(place)
    if knots.size > 2 * KNOTS:
        even = np.searchsorted(knots, np.linspace(knots[0], knots[-1], KNOTS))
        ranks = np.linspace(0, knots.size - 1, KNOTS).astype(np.intp)
        knots = knots[np.union1d(even.clip(max=knots.size - 1), ranks)]
    if knots.size < 3:
        return link.pathwise_error(0.5 + distances)
    errors = link.pathwise_error(np.where(knots > np.log(TINY), np.exp(knots), 0.0))
    return np.asarray(PchipInterpolator(knots, errors)(place))


def _two_digits(n: int) -> int:
    scale: int = 10 ** max(len(str(n)) - 2, 0)
    return -(-n // scale) * scale
