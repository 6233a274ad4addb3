"""Numbers of rows with which the test of a group detects an error (method: worst groups)."""

from __future__ import annotations

import math

from scipy import special

from evenhand._validate import bad_input, check_count, check_fraction
from evenhand.search.scan_table import LEVEL


def group_test_rows(
    error: float,
    *,
    power: float = 0.8,
    n_groups: int = 1,
    min_size: int = 2,
    level: float = LEVEL,
) -> int:
    """Return the number of rows of a group with which `scan_groups` detects an error of the group.

    The outcomes of the group are shifted and have the right spread: forecasts are normal with
    standard deviation 1, and outcomes are normal around the predicted mean plus `shift_of(error)`.

    Parameters
    ----------
    error : float
        W1 error of the group, 0 < error < 1/2: 0.05 for 5 points. For randomized forecasts it is
        the error that remains after the randomization.
    power : float, default 0.8
        Probability that the error is detected, 1/2 <= power < 1.
    n_groups : int, default 1
        Number of groups that are tested together, scanned groups included. Holm's
        correction divides the level by this number for the first group that is detected.
    min_size : int, default 2
        Smallest group that is tested.
    level : float, default 0.05
        Level of all tests together; an audit gives named and scanned groups 0.02.

    Returns
    -------
    int
        Number of rows of the group.

    Raises
    ------
    InputError
        If an argument is out of its range.

    Notes
    -----
    The test compares the mean PIT with 1/2 in units of `1 / sqrt(12 n)`, and the spread of the PITs
    likewise; a group is detected if the larger statistic exceeds `c`, `4 Phi(-c) = level / k` for
    `k` groups. With shift `d` the PIT is `Phi(Z + d)`, its mean `1/2 + error`, and its variance `v
    = Phi(d / sqrt(2)) - 2 T(d / sqrt(2), sqrt(1/3)) - (1/2 + error)^2`, with Owen's function `T`.
    With `z` the normal quantile of the power, `n = ((c + z sqrt(12 v)) / (sqrt(12) error))^2` by
    the normal approximation. The test of the spread adds power, which is left out.

    Examples
    --------
    >>> group_test_rows(0.05), group_test_rows(0.05, power=0.9, n_groups=20)
    (316, 676)
    """
    shift = shift_of(error)
    check_fraction("power", power)
    if power < 0.5:
        raise bad_input("power", "be at least 0.5", power)
    each = check_fraction("level", level) / check_count("n_groups", n_groups)
    critical = -special.ndtri(each / 4)
    mean = 0.5 + error
    h = shift / math.sqrt(2)
    variance = mean - 2 * special.owens_t(h, math.sqrt(1 / 3)) - mean**2
    needed = (critical + special.ndtri(power) * math.sqrt(12 * variance)) / (math.sqrt(12) * error)
    return max(math.ceil(needed**2), check_count("min_size", min_size))


def shift_of(error: float) -> float:
    """Return the shift of normal outcomes, in standard deviations, whose W1 error is `error`.

    The PIT of the outcomes `d + Z` under the standard normal distribution is stochastically larger
    than a uniform variable, so the error is `E Phi(Z + d) - 1/2 = Phi(d / sqrt(2)) - 1/2`.

    Examples
    --------
    >>> round(shift_of(0.05), 3)
    0.178
    """
    check_fraction("error", error)
    if error >= 0.5:
        raise bad_input("error", "be below 0.5, the largest possible error", error)
    return math.sqrt(2) * float(special.ndtri(0.5 + error))
