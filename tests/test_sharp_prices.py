"""What the sharp certificate saves over a calibrated base, and the rule that chooses the bound.

`benchmarks/sharp_certificate.py` prints the whole table.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

from evenhand import InputError
from evenhand.certificates import certify_link, choose_bound
from evenhand.links import Entropic, Gaussian, Laplace, Link
from repeats import WHOLE, statistical


def evenly_spread(n: int) -> np.ndarray:
    return (np.arange(n) + 0.5) / n


def price(n: int, family: type[Link], bound: str, target: float, mass: float) -> float:
    """Price of the least randomization over a calibrated base; infinite if there is none."""
    proof = certify_link(evenly_spread(n), family(0.1), bound=bound)
    try:
        return proof.least_randomized(target, mass).link.price
    except InputError:
        return np.inf


@pytest.mark.parametrize(
    ("n", "target", "mass", "saved"),
    [
        (500, 0.3, 0.2, 0.24),
        (2000, 0.3, 0.2, 0.32),
        (100_000, 0.3, 0.2, 0.39),
        (500, 0.2, 0.2, 0.04),
        (2000, 0.2, 0.2, 0.21),
        (2000, 0.3, 0.1, 0.19),
    ],
)
def test_the_target_is_met_for_less(n: int, target: float, mass: float, saved: float) -> None:
    most = (1 - saved) * price(n, Entropic, "pathwise", target, mass)
    alpha = brentq(lambda alpha: Entropic(alpha).price - most, 0.01, 0.9, xtol=1e-6)
    cheaper = certify_link(evenly_spread(n), Entropic(alpha), bound="sharp")
    assert cheaper.group_error(mass) <= target


@statistical
@pytest.mark.parametrize("family", [Entropic, Gaussian, Laplace])
def test_the_rule_is_nowhere_dearer_than_the_pathwise_bound(family: type[Link]) -> None:
    sizes = (150, 400) if WHOLE else (150,)
    for n in sizes:
        for target in (0.2, 0.3) if WHOLE else (0.3,):
            for mass in (0.1, 0.2) if WHOLE else (0.2,):
                chosen = choose_bound(
                    n, family(0.1), mass=mass, confidence=0.95, max_group_error=target
                )
                found = {
                    bound: price(n, family, bound, target, mass) for bound in ("sharp", "pathwise")
                }
                # the sharp bound is chosen where it is cheaper by a margin
                assert found[chosen] <= found["pathwise"], (n, target, mass)
                assert (chosen == "sharp") >= (found["sharp"] < 0.85 * found["pathwise"])


@pytest.mark.parametrize(("n", "mass"), [(100, 0.15), (200, 0.08)])
def test_larger_groups_never_cost_more(n: int, mass: float) -> None:
    # with few people the sharp bound is not monotone in alpha, and its search ends early
    paid = []
    for size in (0.75 * mass, mass):
        bound = choose_bound(n, Entropic(0.1), mass=size, confidence=0.95, max_group_error=0.4)
        paid.append(price(n, Entropic, bound, 0.4, size))
    assert paid[1] <= paid[0] < np.inf


def test_the_default_is_sharp_from_500_rows_on_and_cheaper_there_at_the_usual_target() -> None:
    for n in (499, 500):
        default = certify_link(evenly_spread(n), Entropic(0.15))
        assert default.bound == ("sharp" if n >= 500 else "pathwise")
    pathwise = certify_link(evenly_spread(500), Entropic(0.15), bound="pathwise")
    for mass in (0.05, 0.1, 0.2, 0.5, 1.0):
        assert default.group_error(mass) < pathwise.group_error(mass)
