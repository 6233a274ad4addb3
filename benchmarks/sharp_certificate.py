"""The sharp certificate of links compared with the pathwise one: excess, prices and time.

Both are 95% bounds for the error of every group of a given size, computed from the same PITs. The
sharp one uses two one-sided bands for the PIT, the pathwise one a band for its distance from 1/2.
`--seconds-only` prints only the times.

    OMP_NUM_THREADS=1 python benchmarks/sharp_certificate.py [--bases 10]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy import special

from evenhand import InputError
from evenhand.certificates import LEAST_ALPHA, certify_link, choose_bound
from evenhand.links import Entropic, Gaussian, Laplace, Link

Values = np.ndarray
BOUNDS = ("pathwise", "sharp")
ALPHA, MASS = 0.12, 0.2
EXCESS_ROWS = (200, 500, 2000, 10_000)
PRICE_ROWS = (200, 500, 1000, 2000, 5000, 10_000, 100_000)
TARGETS = (0.2, 0.3, 0.35)
MASSES = (0.1, 0.2, 0.5)
TIMED_ROWS = (500, 10_000, 1_000_000)

# PITs at normal scores of the outcome: the mean or the spread of the second and third base is wrong
BASES: dict[str, Callable[[Values], Values]] = {
    "right": special.ndtr,
    "0.5 sigma too low": lambda score: special.ndtr(score + 0.5),
    "2/3 of the spread": lambda score: special.ndtr(1.5 * score),
}


def evenly_spread(n: int) -> Values:
    """Return PITs of a calibrated base at the middle of equal cells."""
    return (np.arange(n) + 0.5) / n


def one_tailed_error(pit_at: Callable[[Values], Values], link: Link, mass: float) -> float:
    """Error of the lowest or highest PITs, the worst groups of these bases."""
    p = mass * evenly_spread(100_000)
    ends = (link.mean_pit(pit_at(special.ndtri(tail))).mean() for tail in (p, 1 - p))
    return max(abs(float(end) - 0.5) for end in ends)


def excess(n_bases: int) -> None:
    """Print the excess of the bounds over the error of the worst group."""
    link = Entropic(ALPHA)
    print(f"{link}, group size {MASS}, 95%: mean of the bound minus the worst group's error,")
    print(f"{n_bases} samples (3 of 10,000 rows)")
    print(f"  {'base':20s}{'worst':>8s}{'rows':>8s}{'pathwise':>10s}{'sharp':>8s}")
    for name, pit_at in BASES.items():
        worst = one_tailed_error(pit_at, link, MASS)
        for n in EXCESS_ROWS:
            rng = np.random.default_rng(n)
            above = []
            for _ in range(n_bases if n < 10_000 else min(n_bases, 3)):
                pit = pit_at(rng.normal(size=n))
                above.append(
                    [certify_link(pit, link, bound=bound).group_error(MASS) for bound in BOUNDS]
                )
            pathwise, sharp = np.mean(above, axis=0) - worst
            print(f"  {name:20s}{worst:8.3f}{n:8,d}{pathwise:10.3f}{sharp:8.3f}", flush=True)


def price(pit: Values, family: type[Link], bound: str, target: float, mass: float) -> float:
    """Price, in nats over a calibrated base, of the least randomization; NaN if there is none."""
    try:
        proof = certify_link(pit, family(0.1), bound=bound)
        return proof.least_randomized(target, mass).link.price
    except InputError:
        return np.nan


def prices() -> None:
    """Print the prices of targets over a calibrated base, with both bounds and by the rule."""
    print(
        "price in nats of a certified group error over a calibrated base with evenly spread PITs,"
    )
    print("entropic link, 95%; the rule chooses the bound by rows, group size and target")
    print(
        f"  {'target':>7s}{'mass':>6s}{'rows':>9s}{'pathwise':>10s}{'sharp':>8s}{'rule':>8s}  saved"
    )
    for target in TARGETS:
        for mass in MASSES:
            for n in PRICE_ROWS:
                old, new = (
                    price(evenly_spread(n), Entropic, bound, target, mass) for bound in BOUNDS
                )
                chosen = choose_bound(
                    n, Entropic(0.1), mass=mass, confidence=0.95, max_group_error=target
                )
                ruled = new if chosen == "sharp" else old
                shown = "".join(
                    f"{'none' if np.isnan(cost) else f'{cost:.3f}':>{width}s}"
                    for cost, width in ((old, 10), (new, 8), (ruled, 8))
                )
                saved = "" if np.isnan(old) else f"{1 - ruled / old:6.1%}"
                print(f"  {target:7.2f}{mass:6.1f}{n:9,d}{shown} {saved:>6s}", flush=True)


def rule(n_bases: int) -> None:
    """Print where the rule costs more than the pathwise bound in the mean over calibrated bases."""
    print(f"mean price by the rule minus that of the pathwise bound, {n_bases} random right bases")
    print(f"  {'link':9s}{'target':>7s}{'mass':>6s}{'rows':>7s}  chosen   difference  (s.e.)")
    worst = -np.inf
    for family in (Entropic, Gaussian, Laplace):
        dearest = family(LEAST_ALPHA).price
        for target in (0.2, 0.3):
            for mass in (0.1, 0.2):
                for n in (150, 300, 500):
                    chosen = choose_bound(
                        n, family(0.1), mass=mass, confidence=0.95, max_group_error=target
                    )
                    if chosen == "pathwise":
                        print(f"  {family.name:9s}{target:7.2f}{mass:6.1f}{n:7,d}  pathwise")
                        continue
                    rng = np.random.default_rng(n)
                    gaps = []
                    for _ in range(n_bases):
                        pit = rng.uniform(size=n)
                        old, new = (price(pit, family, bound, target, mass) for bound in BOUNDS)
                        gaps.append(
                            np.nan_to_num(new, nan=dearest) - np.nan_to_num(old, nan=dearest)
                        )
                    mean, error = np.mean(gaps), np.std(gaps, ddof=1) / np.sqrt(n_bases)
                    worst = max(worst, float(mean))
                    print(
                        f"  {family.name:9s}{target:7.2f}{mass:6.1f}{n:7,d}  sharp  {mean:+12.3f}"
                        f"  ({error:.3f})",
                        flush=True,
                    )
    print(f"  largest difference {worst:+.3f} nats")


def seconds() -> None:
    """Print the CPU time of a certificate with both bounds, and the ratio."""
    print("CPU seconds of certify_link, group_error(0.2) and least_randomized(0.3, 0.2)")
    print(f"  {'rows':>9s}{'pathwise':>10s}{'sharp':>8s}{'ratio':>7s}")
    for n in TIMED_ROWS:
        taken = dict.fromkeys(BOUNDS, np.inf)
        # the levels of a band are kept for further bands of as many rows
        for more in range(3):
            pit = np.random.default_rng(0).uniform(size=n + more)
            for bound in BOUNDS:
                start = time.process_time()
                proof = certify_link(pit, Entropic(ALPHA), bound=bound)
                proof.group_error(MASS)
                proof.least_randomized(0.3, MASS)
                taken[bound] = min(taken[bound], time.process_time() - start)
        old, new = taken.values()
        print(f"  {n:9,d}{old:10.2f}{new:8.2f}{new / old:7.1f}", flush=True)


def main() -> None:
    """Run all four and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--bases", type=int, default=10, help="random bases in each mean")
    parser.add_argument("--seconds-only", action="store_true", help="print the times alone")
    options = parser.parse_args()
    if not options.seconds_only:
        excess(options.bases)
        prices()
        rule(options.bases)
    seconds()


if __name__ == "__main__":
    main()
