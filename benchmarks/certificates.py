"""What certificates prove and what it costs, beside the norm alone and beside weights at mass / W.

The norm bounds the mean of the people's own errors, whose worst share is the bound of a group; the
bounds in use know more of a link (method: 11 and 12). Targets are group errors of `TARGET` in every
group of a fifth of the people, at 95%, over right forecasts.

    OMP_NUM_THREADS=1 python benchmarks/certificates.py [--samples 10]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy import stats

from evenhand import Forecast, Outcomes, certify
from evenhand.calibration import Cells, error_interval
from evenhand.certificates import Certificate, LatticeBounds, certify_link
from evenhand.certificates.parts import norm
from evenhand.links import Entropic
from evenhand.selection.chosen_link import Costs, Wrapped
from evenhand.selection.plans import planned_unions
from evenhand.selection.target import largest_alpha
from record import print_lost

Values = np.ndarray
TARGET, MASS, CONFIDENCE, ALPHA = 0.3, 0.2, 0.95, 0.12
WORST = 0.5


def least_price(
    bound_at: Callable[[Entropic], float], price_of: Callable[[Entropic], float]
) -> float:
    """Return the price of the least randomization whose bound meets the target, in nats."""
    alpha = largest_alpha(lambda alpha: bound_at(Entropic(alpha)), TARGET)
    return np.nan if alpha is None else price_of(Entropic(alpha))


def entropic_price(link: Entropic) -> float:
    """Return the price of a link over continuous outcomes."""
    return link.price


def by_link(proof: Certificate) -> Callable[[Entropic], float]:
    """Return the bound in use, as a function of the link."""
    return lambda link: proof.with_link(link).group_error(MASS)


def by_norm(cells: Cells) -> Callable[[Entropic], float]:
    """Return the bound of the norm alone, as a function of the link."""

    def bound(link: Entropic) -> float:
        return norm(cells.before(link)).worst_mean(MASS, WORST, CONFIDENCE)

    return bound


def continuous(samples: int) -> None:
    """Print prices of continuous outcomes by number of rows."""
    print(f"price of {TARGET} in every fifth, nats: continuous outcomes, mean of {samples} samples")
    print(f"  {'rows':>9s}{'norm':>8s}{'now':>8s}")
    for n in (200, 500, 1000, 2000, 10_000):
        found = []
        for seed in range(samples if n < 10_000 else min(samples, 3)):
            cells = Cells(np.random.default_rng(seed).random(n))
            proof = certify_link(cells, Entropic(ALPHA))
            bounds = by_norm(cells), by_link(proof)
            found.append([least_price(bound, entropic_price) for bound in bounds])
        print("  {:9,d}{:8.3f}{:8.3f}".format(n, *np.mean(found, axis=0)), flush=True)


def times(samples: int) -> list[str]:
    """Print prices and errors of times by the share of lost people; returns where the norm wins."""
    n = 2000
    print(f"times, {n:,} people with the event or lost: price by the norm alone, and now;")
    print(f"average error at alpha {ALPHA} from one served draw each, and from the base")
    print(f"  {'lost':>6s}{'norm':>8s}{'now':>8s}{'one draw':>10s}{'base':>8s}")
    dearer = []
    for share in (0.0, 0.01, 0.03, 0.05):
        found = []
        for seed in range(samples):
            random = np.random.default_rng(seed)
            u, lost = random.random(n), random.random(n) < share
            seen = np.where(lost, u * random.random(n), u)
            cells = Cells(seen, np.where(lost, 1.0, seen), reading=lost)
            proof = certify_link(seen, Entropic(ALPHA), lost=lost)
            link, r = Entropic(ALPHA), random.random(n)
            ends = link.ppf(cells.low[:, 0], r), link.ppf(cells.high[:, 0], r)
            found.append(
                (
                    least_price(by_norm(cells), entropic_price),
                    least_price(by_link(proof), entropic_price),
                    error_interval(ends[0], CONFIDENCE, ends[1])[1],
                    proof.average_error(),
                )
            )
        means = np.mean(found, axis=0)
        print("  {:6.0%}{:8.3f}{:8.3f}{:10.3f}{:8.3f}".format(share, *means))
        dearer += [f"times, {share:.0%} lost"] if means[1] > means[0] else []
    return dearer


def counts(samples: int) -> list[str]:
    """Print prices of counts and scores by mean or levels; returns where the norm wins."""
    dearer = []
    print("counts and scores: price by the norm alone (betting), and by Theorem L at half the risk")
    print(f"  {'outcome':18s}{'rows':>7s}{'norm':>8s}{'now':>8s}{'change':>8s}")
    cases = [(f"Poisson mean {mean}", mean) for mean in (1, 2, 5, 10, 20, 100)]
    for name, mean in [*cases, ("score, 5 levels", None)]:
        for n in (1000, 2000):
            found = []
            for seed in range(min(samples, 5)):
                random = np.random.default_rng(seed)
                forecast, y = poisson(mean, n, random) if mean else scores(n, random)
                wrapped = Wrapped.of(forecast, Outcomes(y), random)
                bounds = LatticeBounds.of(wrapped.cells, random)
                price = Costs(wrapped, None, random).price

                def now(link: Entropic, bounds: LatticeBounds = bounds) -> float:
                    return bounds.group_error(link, MASS, CONFIDENCE, by_betting=True)

                def before(link: Entropic, bounds: LatticeBounds = bounds) -> float:
                    errors = bounds.errors(link)
                    return errors.worst_mean(MASS, WORST, CONFIDENCE, bounds.seed)

                found.append((least_price(before, price), least_price(now, price)))
            norm_price, price_now = np.mean(found, axis=0)
            change = price_now / norm_price - 1
            print(f"  {name:18s}{n:7,d}{norm_price:8.3f}{price_now:8.3f}{change:+8.1%}", flush=True)
            dearer += [f"{name}, {n:,} rows"] if change > 0 else []
    return dearer


def poisson(mean: float, n: int, random: np.random.Generator) -> tuple[Forecast, Values]:
    """Return right forecasts of counts, and counts."""
    means = mean * np.exp(0.3 * random.normal(size=n))
    return Forecast.from_poisson(means), random.poisson(means).astype(float)


def scores(n: int, random: np.random.Generator) -> tuple[Forecast, Values]:
    """Return right forecasts of scores of five levels, and scores."""
    levels = np.arange(5.0)
    chance = np.exp(-((levels - 2 - random.normal(size=(n, 1))) ** 2) / 2)
    chance /= chance.sum(axis=1, keepdims=True)
    y = (chance.cumsum(axis=1) < random.random((n, 1))).sum(axis=1)
    return Forecast.from_pmf(levels, chance), y.astype(float)


def weights(samples: int) -> None:
    """Print the bound of a weighted sample: read at mass / W, and by thinning."""
    n = 4000
    print(
        f"weights: {n:,} rows, a tenth with weight 10, group error at alpha {ALPHA} in every fifth"
    )
    print(f"  {'at mass / W':>12s}{'thinned':>9s}{'truth':>8s}")
    found, link = [], Entropic(ALPHA)
    for seed in range(samples):
        random = np.random.default_rng(seed)
        weight = np.where(random.random(n) < 0.1, 10.0, 1.0)
        u = random.random(n)
        forecast = Forecast.from_normal(np.zeros(n), np.ones(n)).randomized(
            ALPHA, link, random.random(n)
        )
        known = Outcomes(stats.norm.ppf(u), weight=weight, largest_weight=10.0)
        thinned = certify(forecast, y=known, random_state=seed).group_error(MASS)
        largest = 10.0 / float(weight.mean())
        found.append((certify_link(u, link).group_error(MASS / largest), thinned))
    print("  {:12.3f}{:9.3f}{:8.3f}".format(*np.mean(found, axis=0), link.group_error(MASS)))


def unions() -> None:
    """Print the bound of every union of equal cells, without a draw."""
    print(
        "unions of equal cells of right forecasts, without a draw: error that nine of ten samples"
    )
    print("prove (cells have 190 rows or more, so there are fewer of them in a small sample)")
    print(f"  {'rows':>7s}{'10 cells':>18s}{'20 cells':>18s}{'50 cells':>18s}")
    for n in (2000, 5000, 20_000):
        bounds = [planned_unions(n, k, CONFIDENCE) for k in (10, 20, 50)]
        shown = (f"{error:.3f} ({k} cells)" for k, error in bounds)
        print(f"  {n:7,d}{''.join(map('{:>18s}'.format, shown))}")


def seconds() -> None:
    """Print the CPU time of a certificate of links, and of a whole one."""
    print("CPU seconds: certify_link with a bound and the least randomization; certify")
    print(f"  {'rows':>9s}{'links':>8s}{'certify':>9s}")
    for n in (500, 10_000, 100_000):
        random = np.random.default_rng(n)
        u = random.random(n)
        start = time.process_time()
        proof = certify_link(u, Entropic(ALPHA))
        least_price(by_link(proof), entropic_price)
        links = time.process_time() - start
        forecast = Forecast.from_normal(np.zeros(n), np.ones(n)).randomized(
            ALPHA, r=random.random(n)
        )
        y = random.normal(size=n)
        start = time.process_time()
        certify(forecast, y=y, random_state=0).summary()
        print(f"  {n:9,d}{links:8.2f}{time.process_time() - start:9.2f}", flush=True)


def main() -> None:
    """Run all and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--samples", type=int, default=10, help="samples in each mean")
    samples = parser.parse_args().samples
    continuous(samples)
    dearer = times(samples) + counts(samples)
    weights(samples)
    unions()
    seconds()
    print_lost(dearer)


if __name__ == "__main__":
    main()
