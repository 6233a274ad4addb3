"""Upper bound for the CVaR by betting (method: proof)."""

from __future__ import annotations

import numpy as np

from evenhand._validate import Floats
from evenhand.draws import RandomState, generator


def betting_cvar(
    values: Floats, mass: float, top: float, confidence: float, random_state: RandomState = None
) -> float:
    """Upper bound for the mean of the worst `mass`, for a single mass, by betting.

    To test the hypothesis that the mean of the worst `mass` is at least `tau`, a bettor stakes
    capital on `(V - q)_+` being below `mass * (tau - q)`, where `q` and the stakes depend on
    earlier rows only. Under the hypothesis no stake has a positive expected gain, whatever `q`
    (Rockafellar & Uryasev 2000). If the capital ever reaches `1 / (1 - confidence)`, `tau` is
    therefore rejected (Ville's inequality). The bound is the smallest rejected `tau`.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Independent values between 0 and `top`.
    mass : float
        Share of people, 0 < mass <= 1.
    top : float
        Largest possible value.
    confidence : float
        Probability that the bound holds.
    random_state : int, generator or None
        Seed for the order of the rows, which must not depend on the values.

    Examples
    --------
    >>> values = np.random.default_rng(0).uniform(size=1000)  # the true mean is 1/2
    >>> 0.5 < betting_cvar(values, 1.0, 1.0, 0.95, random_state=0) < 0.55
    True
    """
    order = generator(random_state).permutation(values)
    pivots, stakes = pivots_and_stakes(order, mass, top, confidence)
    excess = np.maximum(order - pivots, 0.0)
    goal = -np.log1p(-confidence)

    def is_rejected(tau: float) -> bool:
        gains = np.log1p(-stakes * (excess - mass * (tau - pivots)))
        return bool(np.cumsum(gains).max() >= goal)

    # stakes do not depend on tau, so the capital increases with tau and bisection finds the
    # smallest rejected tau
    low = 0.0
    high = top
    if not is_rejected(high):
        return top
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if is_rejected(middle) else (middle, high)
    return high


def pivots_and_stakes(
    order: Floats, mass: float, top: float, confidence: float
) -> tuple[Floats, Floats]:
    """Return the pivot and stake of each row, shape (n,), computed from the rows before it."""
    n = order.size
    # the stake with the largest expected growth of capital over n rows if the excess were normal
    unit = np.sqrt(-2 * np.log1p(-confidence) / n)
    pivots = np.empty(n)
    stakes = np.empty(n)
    start = 0
    while start < n:
        # pivots and stakes are updated whenever the number of rows seen has grown by 5%
        stop = min(n, max(start + 1, int(start * 1.05)))
        # two pseudo-rows at the ends of the range give the first bets a spread
        seen = np.concatenate(([0.0, top], order[:start]))
        pivot = 0.0 if mass == 1 else float(np.quantile(seen, 1 - mass))
        spread = float(np.maximum(seen - pivot, 0.0).std())
        # the capital stays positive for every tau in [0, top]
        most = 0.9 / (top - pivot + mass * pivot)
        pivots[start:stop] = pivot
        stakes[start:stop] = min(unit / spread, most) if spread > 0 else most
        start = stop
    return pivots, stakes
