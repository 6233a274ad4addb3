"""Null distribution of worst-group errors under calibrated forecasts (method: worst groups)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import one_line
from evenhand._validate import Floats, bad_input, check_count, check_masses
from evenhand.calibration import (
    Cells,
    as_cells,
    calibration_error,
    pathwise_errors,
    row_distances,
)
from evenhand.draws import RandomState, fresh, generator, jittered, nodes
from evenhand.links import Entropic, Link
from evenhand.search.oracle_group import group_sizes, worst_groups

Search = Callable[[Any, Floats], ArrayLike]
"""User-defined search: PITs and masses of shape (k,) to errors of shape (k,). The PITs have the
shape (n, m), or are a `Cells` if a function simulates them."""

Simulate = Callable[[np.random.Generator], Cells]
"""Function that simulates outcomes from forecasts and returns their PITs."""

MOST_ROWS = 5000
MOST_PITS = 1 << 17
"""Largest number of rows, and of PITs, that are simulated: 2048 rows of 64 draws."""

MATCHING_ROWS = 400
"""Number of rows from which the mean pathwise error of a link with given draws is computed."""

LEAST_ALPHA = 0.002
"""Smallest alpha of a matching link; its mean pathwise error is about 0.002, too."""


@dataclass(frozen=True, eq=False, repr=False)
class NullCurve:
    """Errors that a group search finds in calibrated forecasts.

    Parameters
    ----------
    masses : ndarray of shape (k,)
        Group sizes as shares of the rows.
    mean : ndarray of shape (k,)
        Mean error over simulations, 0 to 1/2.
    low, high : ndarray of shape (k,)
        5% and 95% quantiles: 90% of searches in calibrated forecasts find errors between them. With
        fewer than 19 simulations they are the smallest and largest simulated error, and the share
        between them is below 90%.
    """

    masses: Floats
    mean: Floats
    low: Floats
    high: Floats

    def __repr__(self) -> str:
        return one_line(
            self, masses=self.masses.size, mean=(float(self.mean.min()), float(self.mean.max()))
        )


def null_curve(
    pit: ArrayLike | Cells,
    masses: ArrayLike,
    *,
    selection: str | Search = "oracle",
    link: Link | None = None,
    simulate: Simulate | None = None,
    n_simulations: int = 50,
    random_state: RandomState = None,
) -> NullCurve:
    """Simulate the errors that a group search finds in calibrated forecasts of the same kind.

    A search always finds some error. An error is evidence against forecasts only if it exceeds the
    errors found in calibrated forecasts with the same number of rows and draws and the same
    randomization.

    Parameters
    ----------
    pit : Cells or array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns are draws, one jittered draw in each of `m`
        cells.
    masses : float or array-like of shape (k,)
        Group sizes as shares of the rows, 0 < mass <= 1.
    selection : {"oracle", "fixed"} or callable, default "oracle"
        Group search: `"oracle"` is `worst_group_curve`, `"fixed"` is one group of each size that
        was chosen beforehand, and a function `f(pit, masses)` returns the errors, shape (k,), of
        another search.
    link : Link, optional
        The randomization. By default an `Entropic` link with the mean pathwise error of `pit`. If
        forecasts are miscalibrated, their pathwise errors exceed those of their randomization, and
        the default gives the higher null of a less randomized forecaster. With a single column the
        PITs of calibrated forecasts are uniform, whatever the link.
    simulate : callable, optional
        Function of a generator that draws an outcome from each forecast, or from those of a sample
        of the rows, and returns the PITs of these outcomes. It is needed for the null distribution
        of outcomes with atoms, whose cells depend on the forecasts. Without it, calibrated PITs
        without cells are simulated, in which a search finds larger errors.
    n_simulations : int, default 50
        Number of simulated data sets, at least 2.
    random_state : int, generator or None
        Seed.

    Returns
    -------
    NullCurve

    Raises
    ------
    InputError
        If an argument is out of range, or the function returns errors of another shape.

    Notes
    -----
    At most 5000 rows and 131,072 PITs (2048 rows of 64 draws) are simulated. For more rows, errors
    of `"fixed"` groups and of the group of all rows are scaled by `1 / sqrt(rows)`; other errors
    are those of the simulated rows. Their mean is then slightly too high (by at most 0.002 at 2048
    rows instead of 11,000) and their range is wider, so comparisons with them are conservative.

    Examples
    --------
    For one group of 400 rows, chosen beforehand, the expected error is the mean absolute area under
    a Brownian bridge, 0.3133, divided by 20: about 0.016.

    >>> import numpy as np
    >>> pit = np.random.default_rng(0).uniform(size=400)
    >>> null_curve(pit, 1.0, selection="fixed", n_simulations=500, random_state=0).mean.round(3)
    array([0.016])
    """
    pits = as_cells(pit)
    shares = check_masses(masses)
    check_count("n_simulations", n_simulations, least=2)
    if not callable(selection) and selection not in ("oracle", "fixed"):
        raise bad_input("selection", "be 'oracle', 'fixed' or a function", repr(selection))
    if link is not None and not isinstance(link, Link):
        remedy = "use evenhand.links.Entropic(alpha=0.1), for example"
        raise bad_input("link", "be a link or None", repr(link), remedy)
    random = generator(random_state)
    m = pits.n_draws
    n = min(pits.n_samples, MOST_ROWS, max(MOST_PITS // m, 1))
    # the PIT at a single draw of a calibrated forecast is uniform, whatever the link
    if link is None and m > 1 and simulate is None:
        link = _matching_link(pits)
    found: list[Floats] = []
    for _ in range(n_simulations):
        calibrated = _calibrated(n, m, link, random) if simulate is None else simulate(random)
        n = calibrated.n_samples
        found.append(_search(selection, calibrated, shares, random))
    errors = np.array(found)
    if not callable(selection):
        # errors of a fixed group decrease as 1 / sqrt(rows), and the group of all rows is fixed in
        # any search
        errors[:, (shares == 1) | (selection == "fixed")] *= np.sqrt(n / pits.n_samples)
    # with Weibull positions the error of a further simulation lies below the p-quantile with
    # probability about p, whatever the number of simulations
    low, high = np.quantile(errors, [0.05, 0.95], axis=0, method="weibull")
    return NullCurve(shares, errors.mean(axis=0), low, high)


def _search(
    selection: str | Search, pits: Cells, masses: Floats, random: np.random.Generator
) -> Floats:
    """Return the errors of the groups that a search finds."""
    if selection == "oracle":
        return worst_groups(pits, masses, random)[0]
    if not callable(selection):
        # rows are exchangeable, so the first rows represent any fixed group
        sizes = group_sizes(masses, pits.n_samples)
        return np.array([calibration_error(pits.take(slice(k))) for k in sizes])
    pit = pits.drawn if pits.are_points else pits
    errors = np.asarray(selection(pit, masses), dtype=np.float64)
    if errors.shape != masses.shape:
        raise bad_input(
            "selection", f"return one error per mass, shape {masses.shape}", f"shape {errors.shape}"
        )
    return errors


def _calibrated(n: int, m: int, link: Link | None, random: np.random.Generator) -> Cells:
    """Return PITs of calibrated forecasts, shape (n, m): randomized by a link, or deterministic."""
    base = fresh((n, 1), random)
    return Cells(base if link is None else link.ppf(base, jittered(n, m, random)))


def _matching_link(pits: Cells) -> Link:
    """Return the entropic link under which calibrated PITs have the same mean pathwise error.

    Both errors are computed with the same number of draws.
    """
    from scipy import optimize

    wanted = float(pathwise_errors(pits).mean())
    base = nodes(MATCHING_ROWS).T
    # with the same draws at each alpha the error is a smooth function of alpha
    r = jittered(MATCHING_ROWS, pits.n_draws, 0)

    def excess(alpha: float) -> float:
        return float(row_distances(Entropic(alpha).ppf(base, r)).mean()) - wanted

    if excess(1.0) <= 0:
        return Entropic(1.0)
    if excess(LEAST_ALPHA) >= 0:
        return Entropic(LEAST_ALPHA)
    return Entropic(float(optimize.brentq(excess, LEAST_ALPHA, 1.0, xtol=1e-4)))
