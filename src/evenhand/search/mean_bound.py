"""Lower confidence bound for a mean by betting (method: what can be proven)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from evenhand._validate import bad_input, check_finite, check_fraction

MULTIPLES = (1.0, 2.0, 4.0)
WEIGHTS = (0.8, 0.1, 0.1)
"""Stakes, as multiples of the best stake for the bound, and the share of capital on each."""


def mean_lower_bound(
    values: ArrayLike, confidence: float = 0.95, *, deviation: float = 12**-0.5
) -> tuple[float, float]:
    """Return a lower bound, by betting, for the mean of the values' conditional expectations.

    Each value may depend on the earlier ones and have a different conditional expectation `mu_i`
    given them; the bound is for the mean of the `mu_i`. It is valid at any number of values.

    Parameters
    ----------
    values : array-like of shape (n,)
        Values between -1/2 and 1/2.
    confidence : float, default 0.95
        Probability that the bound holds.
    deviation : float, default 12**-0.5
        Guess of the standard deviation of the values, made without seeing them; by default that of
        a uniform value. A poor guess makes the bound looser, not invalid.

    Returns
    -------
    low, p_value : float
        The bound, at least 0, and a p-value for the hypothesis that the mean is at most 0.

    Notes
    -----
    For a stake `b < 2`, `prod_i (1 + b v_i) / (1 + b mu_i)` has expectation 1, and so has a mean of
    such products over stakes. By Markov's inequality it is below `1 / (1 - confidence)` with
    probability at least `confidence`. As the logarithm is concave, `prod_i (1 + b mu_i) <=
    (1 + b mu)^n` at the mean `mu`. Therefore every `theta` at which the capital, the mean over
    stakes of `prod_i (1 + b v_i) / (1 + b theta)^n`, reaches that level is below `mu`. The capital
    decreases in `theta`.

    References
    ----------
    Waudby-Smith & Ramdas (2024), Estimating means of bounded random variables by betting.
    doi:10.1093/jrsssb/qkad009

    Examples
    --------
    >>> low, p_value = mean_lower_bound(np.full(100, 0.5))
    >>> 0.4 < low < 0.5, p_value < 1e-9
    (True, True)
    """
    from scipy.optimize import brentq

    bets = check_finite("values", values)
    if np.abs(bets).max() > 0.5 + 1e-12:
        raise bad_input("values", "lie between -1/2 and 1/2", float(bets[np.abs(bets).argmax()]))
    level = -math.log1p(-check_fraction("confidence", confidence))
    # log(1 + b v) is about b v - b^2 v^2 / 2, so the bound at level L is tightest for
    # b = sqrt(2 L / n) / deviation; larger stakes give smaller p-values for strong effects
    stake = math.sqrt(2 * level / bets.size) / max(deviation, 1e-3)
    # at a stake of 2 a single value of -1/2 would lose all the capital
    stakes = np.minimum(stake * np.array(MULTIPLES), 1.98)
    gains = np.log1p(stakes[:, None] * bets).sum(axis=-1)

    def log_capital(theta: float) -> float:
        return float(
            np.logaddexp.reduce(gains - bets.size * np.log1p(stakes * theta) + np.log(WEIGHTS))
        )

    p_value = math.exp(-max(log_capital(0.0), 0.0))
    # compare the capital, not the rounded p-value: `brentq` needs a change of sign
    if log_capital(0.0) <= level:
        return 0.0, p_value
    return float(brentq(lambda theta: log_capital(theta) - level, 0.0, 0.5)), p_value
