"""Price of proof: the smallest loss of log score for provable calibration (method: links)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import interpolate

from evenhand._validate import Floats, as_floats, bad_input
from evenhand.links.closed_form import Laplace
from evenhand.links.entropic import FLAT, Profile, profile_at, statistics_of

FREE = 1 / 3
"""Mean pathwise error of the true distribution without any draw; the price is 0 from here on."""

WORST = 1 / 2
"""Largest pathwise error."""


def price_of_proof(error: ArrayLike, exact: bool = True) -> Floats:
    """Return the smallest loss of log score for a mean pathwise error of at most `error`.

    No randomized forecaster with a density has a smaller loss, on any data and however it uses its
    draw. The limit is a statement about populations: the loss is the excess NLL over the
    conditional entropy given the forecaster's inputs (not over a fitted base), and the error is the
    exact W1 error. Estimates from a finite test set can be lower.

    Parameters
    ----------
    error : array-like
        Mean pathwise error `E err(X, Y)`, `err(x, y) = W1(h[x, R](y) over R, uniform)`, 0 <
        error <= 1/2, a fraction; any shape.
    exact : bool, default True
        True: the limit for forecasters that are exactly calibrated on average, that is, with
        uniform `h[X, R](Y)`, as every individually calibrated forecaster is. `Entropic` over the
        true distribution attains it. False: the limit for all forecasters, calibrated or not, lower
        by at most 0.0061 nats. `Laplace` over the true distribution attains it.

    Returns
    -------
    ndarray
        Price in nats, same shape as `error`. It is convex, decreases from about
        `-log(2 error) - 1` at small errors to 0 at 1/3, the error of the true distribution without
        a draw, and is 0 above. The relative precision is about 1e-10; near 1/3 it is limited by the
        rounding of `1/3 - error`.

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
    # above 1/3 the true distribution meets the target without a draw
    errors = np.minimum(_check_errors(error), FREE)
    part = errors / FREE
    return np.asarray(_main_term(part) + (1 - part) ** 2 * _remainder(bool(exact))(part))[()]


def _check_errors(error: ArrayLike) -> Floats:
    errors = as_floats("error", error)
    wrong = ~((errors > 0) & (errors <= WORST))
    if wrong.any():
        first = np.argwhere(wrong)[0]
        place = f"error[{', '.join(str(i) for i in first)}]" if errors.ndim else "error"
        got = float(errors[tuple(first)])
        remedy = "an error of 0 has no finite price" if got == 0 else ""
        raise bad_input(
            place, "satisfy 0 < error <= 1/2", got, "fractions: 0.1, not 10" if got >= 1 else remedy
        )
    return errors


def _main_term(part: Floats) -> Floats:
    """Return the leading term of the price in `part = 3 error`.

    Like the price, it is logarithmic at small errors and has a double zero at 1/3.
    """
    return np.asarray(-np.log(part) - (1 - part))


@lru_cache(maxsize=2)
def _remainder(exact: bool) -> interpolate.BSpline:
    """Return the spline of `(price - main term) / (1 - 3 error)^2` over `3 error`.

    Its values lie between 0.4 and 0.8, and both ends are known. At small errors `C - r` has a
    Laplace distribution with entropy `1 + log(2 error)`, which gives `log(3/2)`. Near 1/3 the price
    is `(1/3 - error)^2 / (2 v)`, where `v` is the variance of `|c - r|` that is available to the
    family: `E Var(|C - R| | R) = 1/20` for all forecasters, and `2/45` if both marginals must be
    uniform.
    """
    guess = np.linspace(1 / 100, 1 - 1 / 100, 100)
    kappa = 5 * guess / (1 - guess)  # gives almost equally spaced values of `3 error`
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
    """Return mean error and price of an entropic link; below `FLAT` its kappa is near `kappa`."""
    if kappa >= FLAT:
        return statistics_of(profile_at(FLAT), kappa)
    # approximate inverse, exact in both limits: points of a grid need no exact kappa, which would
    # have to be solved for
    profile = Profile.from_logit(float(np.log(kappa / 2) + kappa / np.sqrt(2)))
    return statistics_of(profile, 2 * profile.length)
