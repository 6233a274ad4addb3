"""Null distribution of worst-group errors under calibrated forecasts (method: worst groups)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand._format import one_line
from evenhand._validate import Floats, bad_input, check_count, check_masses
from evenhand.calibration import PITs, as_pits, pathwise_errors, row_distances
from evenhand.draws import RandomState, fresh, generator, jittered, nodes
from evenhand.links import Entropic, Link
from evenhand.search.oracle_group import group_sizes, worst_groups

Search = Callable[[Floats, Floats], ArrayLike]
"""A search of a user: PITs of shape (n, m) and masses of shape (k,) to errors of shape (k,)."""

MOST_ROWS = 5000
"""Most rows that are simulated."""

MATCHING_ROWS = 400
"""Rows from which the mean pathwise error of a link in a few draws is computed."""

LEAST_ALPHA = 0.002
"""Least alpha of a matching link, whose mean pathwise error is about as small."""


@dataclass(frozen=True, eq=False, repr=False)
class NullCurve:
    """Errors of groups found in calibrated forecasts.

    Parameters
    ----------
    masses : ndarray of shape (k,)
        Shares of the rows.
    mean : ndarray of shape (k,)
        Mean error over simulations, 0 to 1/2.
    low, high : ndarray of shape (k,)
        5% and 95% quantiles: a search in calibrated forecasts ends between them nine times in ten.
        With fewer than 19 simulations they are the least and the largest error, and the interval
        between them is left more often.
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
    pit: ArrayLike | PITs,
    masses: ArrayLike,
    *,
    selection: str | Search = "oracle",
    link: Link | None = None,
    n_simulations: int = 50,
    random_state: RandomState = None,
) -> NullCurve:
    """Simulate the errors that a group search finds in calibrated forecasts of the same kind.

    A search always finds some error. It is evidence against forecasts only as far as it exceeds
    what the search finds in calibrated ones with as many rows and draws and as much randomization.

    Parameters
    ----------
    pit : PITs or array-like of shape (n,) or (n, m)
        PITs between 0 and 1: rows are people, columns draws, one jittered draw in each of `m`
        cells.
    masses : float or array-like of shape (k,)
        Shares of the rows, 0 < mass <= 1.
    selection : {"oracle", "fixed"} or callable, default "oracle"
        `"oracle"` is `worst_group_curve`; `"fixed"` is one group of each mass that was named
        before; a function `f(pit, masses)` returns the errors, shape (k,), that another search
        finds.
    link : Link, optional
        The randomization. By default an `Entropic` link with the mean pathwise error of `pit`;
        forecasts that are wrong have larger errors than their randomization gives, and then this
        null is the higher one of a less randomized forecaster. With a single column the PITs of
        calibrated forecasts are uniform.
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
        If an argument is out of its range, or the function's errors have another shape.

    Notes
    -----
    At most 5000 rows are simulated. For more, `"fixed"` errors, and the `"oracle"`'s of all rows,
    are scaled by `1 / sqrt(rows)`; other errors of a search are those of 5000 rows, hence a little
    high.

    Examples
    --------
    For one named group of 400 the error is the mean area under a Brownian bridge, 0.3133, over 20:
    about 0.016.

    >>> import numpy as np
    >>> pit = np.random.default_rng(0).uniform(size=400)
    >>> null_curve(pit, 1.0, selection="fixed", n_simulations=500, random_state=0).mean.round(3)
    array([0.016])
    """
    pits = as_pits(pit)
    shares = check_masses(masses)
    check_count("n_simulations", n_simulations, least=2)
    if not callable(selection) and selection not in ("oracle", "fixed"):
        raise bad_input("selection", "be 'oracle', 'fixed' or a function", repr(selection))
    if link is not None and not isinstance(link, Link):
        raise bad_input(
            "link", "be a link or None", repr(link), "evenhand.links.Entropic(alpha=0.1) makes one"
        )
    random = generator(random_state)
    n = min(pits.n_samples, MOST_ROWS)
    m = pits.n_draws
    # one draw of a calibrated forecast has a uniform PIT, whatever the link
    if link is None and m > 1:
        link = _matching_link(pits)
    errors = np.array(
        [
            _search(selection, _calibrated(n, m, link, random), shares, random)
            for _ in range(n_simulations)
        ]
    )
    if not callable(selection):
        # errors of a fixed group fall as 1 / sqrt(rows); in any search the group of all rows is
        # fixed
        errors[:, (shares == 1) | (selection == "fixed")] *= np.sqrt(n / pits.n_samples)
    # with these positions a data set of the same kind lies below the p-quantile with probability
    # about p, whatever the number of simulations
    low, high = np.quantile(errors, [0.05, 0.95], axis=0, method="weibull")
    return NullCurve(shares, errors.mean(axis=0), low, high)


def _search(
    selection: str | Search, pit: Floats, masses: Floats, random: np.random.Generator
) -> Floats:
    """Return the errors of the groups that a search finds."""
    if selection == "oracle":
        return worst_groups(pit, masses, random)[0]
    if not callable(selection):
        # a fixed group: rows are exchangeable, and the first are as good as any
        groups = [pit[:k].reshape(1, -1) for k in group_sizes(masses, pit.shape[0])]
        return np.concatenate([row_distances(group) for group in groups])
    errors = np.asarray(selection(pit, masses), dtype=np.float64)
    if errors.shape != masses.shape:
        raise bad_input(
            "selection", f"return one error per mass, shape {masses.shape}", f"shape {errors.shape}"
        )
    return errors


def _calibrated(n: int, m: int, link: Link | None, random: np.random.Generator) -> Floats:
    """Return PITs of calibrated forecasts, shape (n, m), under a link or of deterministic ones."""
    base = fresh((n, 1), random)
    return base if link is None else link.ppf(base, jittered(n, m, random))


def _matching_link(pits: PITs) -> Link:
    """Return the entropic link under which calibrated PITs have the mean pathwise error given.

    Both errors are those of as many draws.
    """
    from scipy import optimize

    wanted = float(pathwise_errors(pits).mean())
    base = nodes(MATCHING_ROWS).T
    # the same draws at each alpha: the error is a smooth function of it
    r = jittered(MATCHING_ROWS, pits.n_draws, 0)

    def excess(alpha: float) -> float:
        return float(row_distances(Entropic(alpha).ppf(base, r)).mean()) - wanted

    if excess(1.0) <= 0:
        return Entropic(1.0)
    if excess(LEAST_ALPHA) >= 0:
        return Entropic(LEAST_ALPHA)
    return Entropic(float(optimize.brentq(excess, LEAST_ALPHA, 1.0, xtol=1e-4)))
