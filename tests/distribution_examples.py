"""One registry of example batches, which the common suite of `test_distributions.py` runs over."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from evenhand.distributions import (
    Bernoulli,
    Categorical,
    Distribution,
    Hurdle,
    Joined,
    LocationScale,
    NegativeBinomial,
    Normal,
    NormalMixture,
    Poisson,
    Quantiles,
    Randomized,
    Recalibrated,
    Samples,
    Support,
    SurvivalCurves,
    Transformed,
    Truncated,
)
from evenhand.links import LINKS

Shape = tuple[int, ...]
Build = Callable[[Shape], Distribution]

PLAIN_SHAPES = ((4,), (4, 1), (4, 3))

CLOSED = 2e-6
"""Tolerance of moments and CRPS in closed form, in standard deviations: the test's own
quadrature, at most 4e-7."""

CLOSED_WITH_JUMP = 4e-5
"""The same where two quantiles are tied and the CDF all but jumps, which that quadrature does
not know."""

SMOOTH = 6e-4
"""The same by a table of quantiles 1/16 normal score apart.

The trapezium rule errs by (1/16)^2 / 12 = 3.3e-4 of the standard deviation of a normal
distribution, and up to 3.6e-4 was measured on the distributions marked so.
"""

EXACT = 1e-9
"""The same for sums over the values of a lattice: rounding alone."""

LUMPY = 5e-3
"""The same for distributions with gaps between components, where quantiles jump between two
nodes: up to 3e-3 was measured."""


@dataclass(frozen=True)
class Example:
    """A way to build a batch of any of the shapes, how exact its moments and its CRPS are, and the
    bounds of its outcomes.

    Next to the end of a truncated base, probabilities below `least_p` are differences of CDF values
    whose rounding errors a test of relative errors would see.
    """

    name: str
    build: Build
    tolerance: float
    shapes: tuple[Shape, ...] = PLAIN_SHAPES
    low: float = -np.inf
    high: float = np.inf
    least_p: float = 0.0


def frozen(values, dtype=np.float64):
    """Return the values as an array that nobody can write to."""
    array = np.array(values, dtype=dtype)
    array.flags.writeable = False
    return array


def parts(distribution):
    yield distribution
    base = getattr(distribution, "base", getattr(distribution, "positive", None))
    if base is not None:
        yield from parts(base)


def normal(shape):
    rng = np.random.default_rng(1)
    return Normal(frozen(rng.normal(0, 3, shape)), frozen(np.exp(rng.normal(0, 0.7, shape))))


def mixture(shape):
    rng = np.random.default_rng(2)
    loc, scale = rng.normal(0, 1.5, (*shape, 3)), np.exp(rng.normal(-0.3, 0.4, (*shape, 3)))
    return NormalMixture(frozen([0.25, 0.6, 0.15]), frozen(loc), frozen(scale))


def large_mixture(shape):
    rng = np.random.default_rng(3)
    return NormalMixture(
        frozen(rng.uniform(0.5, 1.5, 70)),
        frozen(rng.normal(0, 1, (*shape, 70))),
        frozen(np.full(70, 0.4)),
    )


def quantiles(shape):
    steps = np.random.default_rng(4).uniform(0.3, 1.0, (*shape, 6))
    return Quantiles(
        frozen([0.02, 0.11, 0.27, 0.52, 0.81, 0.97]), frozen(np.cumsum(steps, axis=-1) - 2)
    )


def crossing_quantiles(shape):
    """Return quantiles out of order and tied, each row its own."""
    values = np.random.default_rng(5).normal(0, 1, (*shape, 5))
    values[..., 3] = values[..., 1]
    return Quantiles(frozen([0.06, 0.21, 0.46, 0.74, 0.93]), frozen(values), sort=True)


def survival_curves(shape):
    """Return curves with a flat part in some rows."""
    drops = np.random.default_rng(15).uniform(0.02, 0.15, (*shape, 6))
    drops[:2, ..., 3] = 0.0
    return SurvivalCurves(
        frozen([0.3, 0.7, 1.5, 2.0, 3.5, 6.0]), frozen(1 - np.cumsum(drops, axis=-1))
    )


def samples(shape):
    return Samples(frozen(np.random.default_rng(6).gamma(3.0, 1.0, (*shape, 7))))


def two_samples(shape):
    return Samples(frozen(np.random.default_rng(7).normal(100, 1, (*shape, 2))))


def randomized(base, link, alpha):
    """Build with one draw per person in one dimension, with the same draws for everybody in two."""

    def build(shape):
        draws = [0.37, 0.004, 0.81, 0.55][: shape[-1]]
        # (4, 3) from people (4, 1) and draws (1, 3)
        people, draws = (shape, draws) if len(shape) == 1 else ((shape[0], 1), [draws])
        return Randomized(base(people), LINKS[link](alpha), frozen(draws))

    return build


def moved(base):
    def build(shape):
        rng = np.random.default_rng(8)
        return LocationScale(
            base((1,)), frozen(rng.normal(10, 5, shape)), frozen(rng.uniform(0.5, 3, shape))
        )

    return build


def in_other_units(base):
    return lambda shape: LocationScale(base((1,)), np.zeros(shape), frozen(np.full(shape, 7.0)))


def recalibrated(base):
    """Build with a map shared by all rows in one dimension, with a map for each row in two."""

    def build(shape):
        maps, which = (), None
        if len(shape) > 1:
            maps, which = shape[:1], frozen(np.arange(shape[0])[:, None], np.intp)
        inner = np.cumsum(np.random.default_rng(9).uniform(0.3, 1.0, (2, *maps, 8)), axis=-1) / 10
        ends = np.zeros((2, *maps, 1)), np.ones((2, *maps, 1))
        levels, values = np.concatenate((ends[0], inner, ends[1]), axis=-1)
        return Recalibrated(base(shape), frozen(levels), frozen(values), which)

    return build


def transformed(base, **fields):
    """Build over a narrow base, so that outcomes have moments that a table can integrate."""

    def build(shape):
        return Transformed(LocationScale(base(shape), 0.5, 0.2), Support(**fields))

    return build


def truncated(base, low, high):
    return lambda shape: Truncated(base(shape), Support(low, high))


def joined(first, second):
    """Build with rows of two families by turns."""
    chosen = (np.array([0, 2]), first), (np.array([3, 1]), second)
    return lambda shape: Joined([(rows, build(shape).take(rows)) for rows, build in chosen])


def fixed_draw(shape):
    return Randomized(normal(shape), LINKS["laplace"](0.2), frozen(0.9))


def poisson(shape):
    return Poisson(frozen(np.exp(np.random.default_rng(20).normal(0.7, 1.2, shape))))


def many(shape):
    return Poisson(frozen(10 ** np.random.default_rng(21).uniform(5, 7, shape)))


def negative_binomial(shape):
    rng = np.random.default_rng(22)
    mean, dispersion = rng.normal(1, 0.6, shape), rng.normal(-1.5, 0.7, shape)
    return NegativeBinomial(frozen(np.exp(mean)), frozen(np.exp(dispersion)))


def scores(shape):
    rng = np.random.default_rng(23)
    return Categorical(frozen([-1, 0, 2, 3, 7]), frozen(rng.dirichlet(np.ones(5), shape)))


def own_scores(shape):
    """Return distributions each on its own values, some without probability."""
    rng = np.random.default_rng(24)
    mass = rng.dirichlet(np.ones(6), shape)
    mass[..., 2] = 0
    support = np.cumsum(rng.uniform(0.1, 2, (*shape, 6)), axis=-1)
    return Categorical(frozen(support), frozen(mass / mass.sum(axis=-1, keepdims=True)))


def events(shape):
    return Bernoulli(frozen(np.random.default_rng(25).uniform(0.02, 0.98, shape)))


def hurdle(part, at, end="low"):
    """Build with one chance per row, which all draws of a row share."""

    def build(shape):
        chance = np.random.default_rng(26).uniform(0.1, 0.9, (shape[0], *(1,) * (len(shape) - 1)))
        return Hurdle(frozen(chance), part(shape), at, end)

    return build


FAMILY_BUILDS = {
    "normal": (normal, SMOOTH),
    "mixture": (mixture, LUMPY),
    "quantiles": (quantiles, SMOOTH),
    "samples": (samples, LUMPY),
}
"""One build of each family to wrap, and the tolerance of a table over it."""

lognormal = transformed(normal, low=0.0)
logit_normal = transformed(normal, low=0.0, high=10.0)
mirrored = transformed(mixture, high=3.0, bend=2.0)

CUT = {"tolerance": SMOOTH, "least_p": 1e-3}
"""Of truncated examples."""

CONTINUOUS = (
    Example("normal", normal, CLOSED),
    Example("mixture", mixture, CLOSED),
    Example("large mixture", large_mixture, SMOOTH, ((4,),)),
    Example("quantiles", quantiles, CLOSED),
    Example("crossing quantiles", crossing_quantiles, CLOSED_WITH_JUMP),
    Example("samples", samples, CLOSED),
    Example("survival curves", survival_curves, CLOSED_WITH_JUMP, low=0.0),
    Example("two samples", two_samples, CLOSED),
    *(
        Example(f"randomized {base} {link}", randomized(build, link, 0.15), tolerance)
        for base, (build, tolerance) in FAMILY_BUILDS.items()
        for link in LINKS
    ),
    *(
        Example(
            f"randomized curves {link}", randomized(survival_curves, link, 0.15), SMOOTH, low=0.0
        )
        for link in LINKS
    ),
    *(
        Example(f"randomized normal {link} {alpha}", randomized(normal, link, alpha), SMOOTH)
        for link in LINKS
        for alpha in (0.03, 1.0)
    ),
    *(
        Example(f"location-scale {base}", moved(build), CLOSED)
        for base, (build, _) in FAMILY_BUILDS.items()
    ),
    Example("times in days", in_other_units(survival_curves), CLOSED_WITH_JUMP, low=0.0),
    Example("randomized location-scale", randomized(moved(samples), "entropic", 0.3), LUMPY),
    Example("location-scale randomized", moved(fixed_draw), SMOOTH),
    Example("recalibrated normal", recalibrated(normal), SMOOTH),
    Example("recalibrated mixture", recalibrated(mixture), LUMPY),
    Example("randomized recalibrated", randomized(recalibrated(normal), "laplace", 0.2), SMOOTH),
    Example("joined", joined(normal, samples), CLOSED),
    Example("randomized joined", randomized(joined(normal, quantiles), "entropic", 0.2), SMOOTH),
    Example("lognormal", lognormal, SMOOTH, low=0.0),
    Example("bent normal", transformed(normal, low=-1.0, bend=0.7), SMOOTH, low=-1.0),
    Example("bent quantiles", transformed(quantiles, low=-1.0, bend=50.0), SMOOTH, low=-1.0),
    Example("mirrored mixture", mirrored, LUMPY, high=3.0),
    Example("logit-normal", logit_normal, SMOOTH, low=0.0, high=10.0),
    Example("randomized lognormal", randomized(lognormal, "entropic", 0.2), SMOOTH, low=0.0),
    Example("recalibrated logit-normal", recalibrated(logit_normal), SMOOTH, low=0.0, high=10.0),
    Example("truncated normal", truncated(normal, 0.0, np.inf), **CUT, low=0.0),
    Example("truncated on both sides", truncated(mixture, -1.0, 2.0), **CUT, low=-1.0, high=2.0),
    Example(
        "randomized truncated",
        randomized(truncated(quantiles, -np.inf, 1.0), "laplace", 0.2),
        **CUT,
        high=1.0,
    ),
)

LATTICE_BUILDS = {
    "poisson": poisson,
    "negative binomial": negative_binomial,
    "categorical": scores,
    "own categorical": own_scores,
    "bernoulli": events,
}

WITH_ATOMS = (
    *(Example(name, build, EXACT) for name, build in LATTICE_BUILDS.items()),
    Example("many", many, SMOOTH),
    *(
        Example(f"randomized {name} {link}", randomized(build, link, alpha), EXACT)
        for name, build in LATTICE_BUILDS.items()
        for link, alpha in (("laplace", 0.15), ("entropic", 0.05), ("gaussian", 0.3))
    ),
    Example("randomized many", randomized(many, "entropic", 0.1), SMOOTH),
    Example("unchanged poisson", randomized(poisson, "entropic", 1.0), EXACT),
    Example("recalibrated poisson", recalibrated(poisson), EXACT),
    Example("recalibrated categorical", recalibrated(own_scores), EXACT),
    Example("recalibrated events", recalibrated(events), EXACT),
    Example(
        "randomized recalibrated counts",
        randomized(recalibrated(negative_binomial), "entropic", 0.1),
        EXACT,
    ),
    Example("joined counts", joined(poisson, negative_binomial), EXACT),
    Example("hurdle", hurdle(lognormal, 0.0), SMOOTH, low=0.0),
    Example("hurdle above", hurdle(mirrored, 3.0, "high"), LUMPY, high=3.0),
    Example(
        "randomized part", hurdle(randomized(lognormal, "entropic", 0.12), 0.0), SMOOTH, low=0.0
    ),
    Example(
        "link over a hurdle", randomized(hurdle(lognormal, 0.0), "entropic", 0.2), SMOOTH, low=0.0
    ),
    Example("recalibrated hurdle", recalibrated(hurdle(lognormal, 0.0)), SMOOTH, low=0.0),
    Example(
        "recalibrated hurdle above", recalibrated(hurdle(mirrored, 3.0, "high")), LUMPY, high=3.0
    ),
)
"""Batches whose single outcomes have positive probability; their axioms are tested apart."""

EXAMPLES = (*CONTINUOUS, *WITH_ATOMS)


def some(examples, law):
    """Return at most eight examples as parameters of a test; other laws have others."""
    step = -(-len(examples) // 8)
    return [pytest.param(one, one.shapes[-1], id=one.name) for one in examples[law % step :: step]]
