"""Price of proof: the least cost of provable calibration (method: links, what proof costs)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import interpolate

from evenhand._validate import Floats, bad_input
from evenhand.links.entropic import FLAT, Profile, profile_at, statistics_of
from evenhand.links.laplace import Laplace

FREE = 1 / 3
"""Mean pathwise error of the true distribution without any draw; the price is 0 from here on."""

WORST = 1 / 2
"""Largest pathwise error."""


def price_of_proof(error: ArrayLike, exact: bool = True) -> Floats:
    """Least log score that a forecaster gives up for a mean pathwise error of at most `error`.

    The limit holds for every randomized forecaster with a density, on any data, however it uses its
    draw. It is a statement about populations: excess NLL over the conditional entropy given what
    the forecaster sees (not over a fitted base), and the exact W1 error. A finite test set can dip
    below.

    Parameters
    ----------
    error : array-like
        Mean pathwise error `E err(X, Y)`, `err(x, y) = W1(h[x, R](y) over R, uniform)`, 0 <
        error <= 1/2, a fraction; any shape.
    exact : bool, default True
        True: the limit for forecasters that are exactly calibrated on average, `h[X, R](Y)`
        uniform, as every individually calibrated one is. `Entropic` over the truth attains it.
        False: the limit for all forecasters, calibrated or not, lower by at most 0.0061 nats.
        `Laplace` over the truth attains it.

    Returns
    -------
    ndarray
        Price in nats, of the shape of `error`: convex, falling like `-log(2 error) - 1` at small
        errors to 0 at 1/3, the error of the true distribution without a draw, and 0 above. Relative
        precision is about 1e-10, and as the rounding of `1/3 - error` allows near 1/3.

    Raises
    ------
    InputError
        If an error is not a number above 0 and at most 1/2.

    Examples
    --------
    >>> float(price_of_proof(1 / 3))
    0.0
    >>> small = price_of_proof(0.001, exact=False)
    >>> bool(abs(small + np.log(2 * 0.001) + 1) < 0.002)
    True
    """
    # above 1/3 the truth itself is good enough, without a draw
    errors = np.minimum(_check_errors(error), FREE)
    part = errors / FREE
    return np.asarray(_main_term(part) + (1 - part) ** 2 * _remainder(bool(exact))(part))[()]


class PriceLimits(NamedTuple):
    """Limits of the price of proof as curves, with the links that attain the lower one.

    Parameters
    ----------
    error : ndarray of shape (q,)
        Mean pathwise errors, rising to 1/3, where the price is 0.
    price : ndarray of shape (q,)
        Limit of all forecasters at each error, in nats.
    calibrated_price : ndarray of shape (q,)
        Limit of forecasters that are exactly calibrated on average, in nats.
    links : tuple of Laplace
        Links on the limit of all forecasters, for the alphas asked for.
    """

    error: Floats
    price: Floats
    calibrated_price: Floats
    links: tuple[Laplace, ...]


def price_limits(alphas: Iterable[float] = (), n_points: int = 400) -> PriceLimits:
    """Return both limits of the price of proof as curves, from an error of 0.002 to 1/3.

    Parameters
    ----------
    alphas : iterable of float
        Alphas of `Laplace` links to mark on the limit of all forecasters.
    n_points : int, default 400
        Number of points of the curves, at least 2.

    Returns
    -------
    PriceLimits

    Examples
    --------
    >>> limits = price_limits([0.1], n_points=3)
    >>> limits.price.round(2), limits.links
    (array([4.52, 1.99, 0.  ]), (Laplace(alpha=0.1),))
    """
    error = np.geomspace(0.002, FREE, n_points)
    links = tuple(Laplace(alpha) for alpha in alphas)
    return PriceLimits(error, price_of_proof(error, exact=False), price_of_proof(error), links)


def _check_errors(error: ArrayLike) -> Floats:
    try:
        errors = np.asarray(error, dtype=np.float64)
    except (TypeError, ValueError) as complaint:
        raise bad_input(
            "error", "hold numbers only", f"values that are not numbers ({complaint})"
        ) from complaint
    wrong = ~((errors > 0) & (errors <= WORST))
    if wrong.any():
        first = np.argwhere(wrong)[0]
        place = f"error[{', '.join(str(i) for i in first)}]" if errors.ndim else "error"
        got = float(errors[tuple(first)])
        remedy = "no finite price buys an error of 0" if got == 0 else ""
        raise bad_input(
            place, "fulfil 0 < error <= 1/2", got, "fractions: 0.1, not 10" if got >= 1 else remedy
        )
    return errors


def _main_term(part: Floats) -> Floats:
    """Leading term in `part = 3 error`.

    It is the logarithm at small errors and has a double zero at 1/3, as the price has.
    """
    return np.asarray(-np.log(part) - (1 - part))


@lru_cache(maxsize=2)
def _remainder(exact: bool) -> interpolate.BSpline:
    """Spline of `(price - main term) / (1 - 3 error)^2` over `3 error`, between 0.4 and 0.8.

    Both ends are known. At small errors `C - r` has Laplace's distribution with entropy `1 + log(2
    error)`, which leaves `log(3/2)`. Near 1/3 the price is `(1/3 - error)^2 / (2 v)`, `v` the
    variance of `|c - r|` that the family can use: `E Var(|C - R| | R) = 1/20` for all forecasters;
    less, `2/45`, with both marginals held uniform.
    """
    guess = np.linspace(1 / 100, 1 - 1 / 100, 100)
    kappa = 5 * guess / (1 - guess)  # spreads `3 error` almost evenly
    if exact:
        found = [_entropic(float(k)) for k in kappa]
    else:
        links = [Laplace.from_kappa(float(k)) for k in kappa]
        found = [(link.mean_error, link.price) for link in links]
    error, price = np.array(sorted(found)).T
    part = error / FREE
    inner = (price - _main_term(part)) / (1 - part) ** 2
    variance = 2 / 45 if exact else 1 / 20
    values = np.concatenate(([np.log(3 / 2)], inner, [FREE**2 / (2 * variance) - 1 / 2]))
    return interpolate.make_interp_spline(np.concatenate(([0.0], part, [1.0])), values, k=5)


def _entropic(kappa: float) -> tuple[float, float]:
    """Mean error and price of the entropic link without its tables; below `FLAT` near `kappa`."""
    if kappa >= FLAT:
        return statistics_of(profile_at(FLAT), kappa)
    # right in both limits and near between them: points of a grid need no more, and nothing is
    # solved for
    profile = Profile.from_logit(float(np.log(kappa / 2) + kappa / np.sqrt(2)))
    return statistics_of(profile, 2 * profile.length)
