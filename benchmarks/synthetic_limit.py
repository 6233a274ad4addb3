"""Price of the default forecaster above the theoretical limit, for known distributions.

Three tasks of 20 features, of which five matter, with one mean and three kinds of noise: a spread
that depends on a feature, two modes, and heavy tails (Student's t with 3 degrees of freedom). The
default `RandomizedRegressor` learns from 10,000 rows; on 20,000 others its mean pathwise error and
its price, the mean log score minus that of the true density, are measured at three levels, named by
the mean pathwise error of the worst fifth of the people for a calibrated model. "Above the limit"
is the price minus the lowest price of any forecaster with that mean error that is calibrated on
average (for laplace, which is not exactly calibrated: of any forecaster); its standard error is
that of `price + slope * error`. The table also has the same links around the true distribution.
Exits with 1 if the default is 0.05 nats or more above the limit anywhere, or below it by more than
its standard error, or if the true distribution, which attains the limit, differs from it by more
than three standard errors.

    python benchmarks/record.py synthetic_limit
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
from scipy import optimize, stats

from evenhand import Forecast, RandomizedRegressor
from evenhand.draws import nodes
from evenhand.links import Link, make_link, price_of_proof

LEVELS = (0.12, 0.20, 0.31)
MASS = 0.2
LINKS = ("entropic", "laplace")
ALLOWED = 0.05
ROUNDING = 1e-4
"""Error of the price from so many nodes, in nats."""

FEATURES = 20
N_LEARN, N_TEST = 10_000, 20_000
N_NODES = 64

Sample = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Features, outcomes, the true log density at each outcome, and the true CDF there."""


def mean_of(X: np.ndarray) -> np.ndarray:
    """The conditional mean of every task: one straight, one curved and one interacting part."""
    return X[:, 0] + np.sin(2 * X[:, 1]) + 0.5 * X[:, 2] * X[:, 3]


def heteroscedastic(random: np.random.Generator, n: int) -> Sample:
    """Normal noise whose standard deviation grows with a feature, from 0.3 to 1."""
    X = random.normal(size=(n, FEATURES))
    truth = stats.norm(mean_of(X), 0.3 + 0.7 / (1 + np.exp(-2 * X[:, 4])))
    y = truth.rvs(random_state=random)
    return X, y, truth.logpdf(y), truth.cdf(y)


def bimodal(random: np.random.Generator, n: int) -> Sample:
    """Two modes three apart, whose weights depend on a feature."""
    X = random.normal(size=(n, FEATURES))
    upper = 1 / (1 + np.exp(-X[:, 4]))
    low, high = (stats.norm(mean_of(X) + shift, 0.5) for shift in (-1.5, 1.5))
    y = np.where(
        random.random(n) < upper, high.rvs(random_state=random), low.rvs(random_state=random)
    )
    density = (1 - upper) * low.pdf(y) + upper * high.pdf(y)
    return X, y, np.log(density), (1 - upper) * low.cdf(y) + upper * high.cdf(y)


def heavy_tailed(random: np.random.Generator, n: int) -> Sample:
    """Student's t with 3 degrees of freedom."""
    X = random.normal(size=(n, FEATURES))
    truth = stats.t(3, mean_of(X), 0.5)
    y = truth.rvs(random_state=random)
    return X, y, truth.logpdf(y), truth.cdf(y)


TASKS: tuple[Callable[[np.random.Generator, int], Sample], ...] = (
    heteroscedastic,
    bimodal,
    heavy_tailed,
)


def at_level(link: str, level: float) -> Link:
    """The link whose worst fifth has this pathwise error over a calibrated model."""
    alpha = optimize.brentq(
        lambda alpha: make_link(link, alpha).pathwise_cvar(MASS) - level, 0.02, 0.5, xtol=1e-6
    )
    return make_link(link, alpha)


def above_limit(link: Link, pit: np.ndarray, loss: np.ndarray) -> tuple[float, float, float, float]:
    """Mean error, price, price above the limit, and the standard error of the latter.

    `loss` is the true log density less the model's, (n,), and `pit` the model's PITs.
    """
    r = nodes(N_NODES)
    paid = loss + link.logpdf(link.ppf(pit[:, None], r), r).mean(axis=1)
    errors = link.pathwise_error(pit)
    error, price = errors.mean(), paid.mean()
    exact = link.name != "laplace"
    limit, before, after = (
        float(price_of_proof(error + step, exact)) for step in (0.0, -1e-3, 1e-3)
    )
    slope = (before - after) / 2e-3
    return error, price, price - limit, float(np.std(paid + slope * errors) / np.sqrt(len(pit)))


def one_task(
    task: Callable[[np.random.Generator, int], Sample], seed: int
) -> Iterator[tuple[str, bool]]:
    """Lines of text, and whether each meets the requirement."""
    X, y, *_ = task(np.random.default_rng(2 * seed), N_LEARN)
    new, outcomes, density, cdf = task(np.random.default_rng(2 * seed + 1), N_TEST)
    base: Forecast = RandomizedRegressor(random_state=seed).fit(X, y).base_forecast(new)
    subjects = {
        "the truth": (cdf, np.zeros(N_TEST)),
        "the default": (base.pit(outcomes), density - base.logpdf(outcomes)),
    }
    for name in LINKS:
        for level in LEVELS:
            link = at_level(name, level)
            for subject, (pit, loss) in subjects.items():
                error, price, above, deviation = above_limit(link, pit, loss)
                least = -max((3 if subject == "the truth" else 1) * deviation, ROUNDING)
                good = above > least and (above < ALLOWED or subject == "the truth")
                yield (
                    (
                        f"{task.__name__:16} {seed:4d}  {name:8} {level:5.2f}  {subject:11}"
                        f" {error:10.4f} {price:8.4f} {above:+16.4f}"
                        f" {deviation:15.4f}{'' if good else '   NOT AS IT MUST BE'}"
                    ),
                    good,
                )


def main() -> None:
    """Run and print; exits with 1 if a line does not meet the requirement."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print(
        f"{'task':16} seed  {'link':8} level  {'link around':11} mean error    price  above the"
        " limit  standard error"
    )
    good = True
    for seed in range(options.seeds):
        for task in TASKS:
            for line, fine in one_task(task, seed):
                print(line, flush=True)
                good &= fine
    raise SystemExit(0 if good else 1)


if __name__ == "__main__":
    main()
