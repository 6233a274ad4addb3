"""Size of the calibration error where some PITs are only known to be larger (outcomes: 5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from evenhand._validate import check_count, check_fraction
from evenhand.calibration.group_sums import COVERED
from evenhand.calibration.known_pits import Estimate, KnownPITs
from evenhand.calibration.pits import PITs
from evenhand.calibration.served_times import ServedTimes
from evenhand.draws import RandomState, generator


class CensoredError(NamedTuple):
    """Calibration error of people of whom some have a PIT that is only known to be larger.

    Parameters
    ----------
    error, low, high : float
        W1 distance to uniform of the Kaplan-Meier estimate of the distribution of PITs, and an
        asymptotic confidence interval, 0 to 1/2. They assume that, among these people, the PIT of
        the outcome and the PIT at which a person is cut off are independent. Beyond the PIT up to
        which enough people were followed, the estimate assumes that the forecasts are right; the
        interval assumes nothing.
    least, most : float
        Bounds for the error whoever is cut off, 0 to 1/2. They have their confidence at any number
        of people; with weights, at any weights that do not depend on the outcomes.
    mean : float
        Mean PIT by the same estimate; below 1/2 outcomes are lower than forecast.
    coverage : dict of float to Estimate
        Coverage of the central 80% and 90% intervals by the same estimate, with asymptotic
        intervals.
    """

    error: float
    low: float
    high: float
    least: float
    most: float
    mean: float
    coverage: dict[float, Estimate]


def censored_error(
    pits: PITs,
    confidence: float = 0.95,
    *,
    n_groups: int = 1,
    base: PITs | None = None,
    random_state: RandomState = None,
) -> CensoredError:
    """Estimate and bound the calibration error of people of whom some are cut off.

    Parameters
    ----------
    pits : PITs
        PITs; those of people who are `censored` are only known to lie in their cell, which reaches
        to 1.
    confidence : float, default 0.95
        Confidence of each interval.
    n_groups : int, default 1
        Number of groups whose intervals hold simultaneously (Bonferroni).
    base : PITs of one column, optional
        For randomized forecasts: PITs of the deterministic forecasts under which they are
        calibrated over their draws, such as those inside a link, with the same people `censored`.
    random_state : int, generator or None
        Seed for the draw of each person behind `least`, if there are several.

    Returns
    -------
    CensoredError

    Notes
    -----
    The variance of the Kaplan-Meier estimate is that of the sum of the influence functions of
    people, so that several draws of a person count once. The error is a mean `integral s (F - c)`
    of the true distribution `F` for one function `s` with values from -1 to 1, and the estimate is
    the largest such integral of its own distribution: `high` adds a t quantile times the largest
    standard deviation of any of these integrals. `low` is the largest lower end of two of them,
    those for the level and the spread of PITs.

    A person's draw moves the PIT of the outcome and that of the time at which the person is cut
    off. Both are then dependent, so the Kaplan-Meier estimate of randomized forecasts is that of
    the PITs of their `base`; the people whose time is known have its jumps as weights (Efron 1967;
    Stute, Scandinavian Journal of Statistics 23, 1996).

    Without an assumption the PIT of a person who is cut off may be anywhere in its cell. `most` is
    the largest error of these people in any case (outcomes: 5), plus the margin of Hoeffding
    (JASA 58, 1963) for the one integral of values in [0, 1] that gives the largest error of the
    true distribution. `least` is the distance of the uniform distribution from a band of
    Dvoretzky, Kiefer and Wolfowitz (Massart 1990) about both ends of the cells.

    References
    ----------
    Kaplan & Meier, JASA 1958; Reid, Influence functions for censored data, Annals of Statistics
    1981.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> u, c = random.random((2, 2000))
    >>> lost = c < u
    >>> low = np.minimum(u, c)
    >>> pits = PITs.of_cells(low, np.where(lost, 1.0, low), random.random(2000), censored=lost)
    >>> found = censored_error(pits)
    >>> found.error < 0.03, found.low, found.most > 0.2
    (True, 0.0, True)
    """
    check_fraction("confidence", confidence)
    tail = (1 - confidence) / (2 * check_count("n_groups", n_groups))
    data = KnownPITs(pits) if base is None else ServedTimes(pits, base)
    deviation = data.deviations
    low, high = 0.0, 0.5
    if data.is_large:
        freedom = data.n_effective - 1
        most_t, least_t = (float(-special.stdtrit(freedom, p)) for p in (tail, tail / 4))
        # level and spread, each in both directions
        known_level, known_spread = (abs(x) - data.unknown for x in (data.level, data.spread))
        low = max(known_level - least_t * deviation.level, 0.0)
        low = max(known_spread - least_t * deviation.spread, low)
        high = data.error + most_t * deviation.largest + data.unknown
    least, most = data.bounds(tail, generator(random_state))
    return CensoredError(
        data.error,
        min(low, data.error),
        min(high, 0.5),
        least,
        most,
        float(np.clip(0.5 - data.level, 0.0, 1.0)),
        {level: data.coverage(level, tail) for level in COVERED},
    )
