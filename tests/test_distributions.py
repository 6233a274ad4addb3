"""Distributions: one suite over all examples, then each family and wrapper beside theory."""

import inspect
from functools import partial

import numpy as np
import pytest
import scoringrules
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import special, stats

from complaints import refused
from distribution_examples import (
    CONTINUOUS,
    EXAMPLES,
    WITH_ATOMS,
    frozen,
    mixture,
    normal,
    parts,
    quantiles,
    samples,
    some,
)
from evenhand import distributions
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
    OutcomeKind,
    Poisson,
    Quantiles,
    Randomized,
    Recalibrated,
    Samples,
    Support,
    SurvivalCurves,
    Tail,
    Transformed,
    Truncated,
)
from evenhand.distributions.wrappers import KINDS
from evenhand.links import LINKS, Entropic, Gaussian, Laplace
from quadrature import panels

every_link = pytest.mark.parametrize(
    "link", [Laplace(0.08), Laplace(0.4), Entropic(0.08), Gaussian(0.4)], ids=str
)

FAMILIES = tuple(kind for kind in KINDS.values() if kind.inner is None and kind is not Joined)
WRAPPERS = {*KINDS.values()} - {*FAMILIES}
CONTINUOUS_FAMILIES = tuple(kind for kind in FAMILIES if kind.kind is None)

DIRECT = ("cdf", "sf", "logcdf", "logsf", "logpdf")
TAILS = frozen([1e-12, 1e-9, 1e-6, 1e-3, 0.02, 0.1, 0.3, 0.5])


def concrete(kind):
    below = {deeper for child in kind.__subclasses__() for deeper in concrete(child)}
    is_one = kind.__module__.startswith("evenhand.") and not inspect.isabstract(kind)
    return below | ({kind} if is_one else set())


def test_every_distribution_of_the_package_is_a_family_or_a_wrapper():
    assert concrete(Distribution) == {*FAMILIES, *WRAPPERS}
    assert {kind.__name__ for kind in (*FAMILIES, *WRAPPERS)} <= set(distributions.__all__)


def test_no_family_wrapper_or_link_is_missing_from_the_examples():
    chains = [list(parts(example.build(example.shapes[-1]))) for example in EXAMPLES]
    assert {type(part) for chain in chains for part in chain} == {*FAMILIES, *WRAPPERS}
    assert {type(chain[0]) for chain in chains} == {*FAMILIES, *WRAPPERS}
    pairs = {
        (type(part.base), part.link.name)
        for chain in chains
        for part in chain
        if isinstance(part, Randomized)
    }
    assert {(family, link) for family in FAMILIES for link in LINKS} <= pairs
    expected = set(CONTINUOUS_FAMILIES)
    assert {type(chain[1]) for chain in chains if isinstance(chain[0], LocationScale)} >= expected
    assert len({example.name for example in EXAMPLES}) == len(EXAMPLES)


@pytest.mark.parametrize(("example", "shape"), some(EXAMPLES, 1))
def test_expand_and_take_agree_with_direct_evaluation(example, shape):
    batch = example.build(shape)
    wide, spread = batch.expand(), batch.std()
    y, levels = np.quantile(batch.ppf(0.5), [0.1, 0.6]), TAILS[[0, 3, 6]]
    # logarithms and quantiles of order one; steps of the solver stop at 1e-13
    exact = {"rtol": 1e-9, "atol": 1e-12}
    for k, value in enumerate(y):
        for name in DIRECT:
            found = getattr(wide, name)(y)[..., k]
            np.testing.assert_allclose(found, getattr(batch, name)(value), **exact)
    rough = np.abs(wide.crps(y)[..., 1] - batch.crps(y[1]))
    assert (rough <= 2 * example.tolerance * spread).all()
    quantiles = wide.ppf(levels)
    for k, p in enumerate(levels):
        np.testing.assert_allclose(quantiles[..., k], batch.ppf(p), **exact)
    own = batch.ppf(0.3)
    for rows in ([2, 0, 2], slice(1, 3), np.array([True, False, False, True])):
        taken = batch.take(rows)
        assert type(taken) is type(batch)
        assert taken.batch_shape == own[rows].shape
        np.testing.assert_allclose(taken.ppf(0.3), own[rows], **exact)
        for name in DIRECT:
            ours = getattr(taken, name)(own[rows])
            np.testing.assert_allclose(ours, getattr(batch, name)(own)[rows], **exact)
    # a table's nodes may depend on the draws in the batch
    assert (np.abs(taken.std() - spread[rows]) <= 2 * example.tolerance * spread[rows]).all()


def assert_quantiles_invert_both_tails(batch, absolute=0.0, least_p=0.0):
    tails = TAILS[least_p <= TAILS]
    wide, log_p = batch.expand(), np.log(tails)
    allowed = 1e-8 + absolute / tails
    # of the numbers that quantiles are sums of, which bounds their rounding
    size = (np.abs(batch.mean()) + batch.std())[..., None]
    for upper, log_tail in ((False, wide.logcdf), (True, wide.logsf)):
        y = wide.point(Tail(log_p, np.full(tails.shape, upper)))
        assert np.isfinite(y).all()
        back = log_tail(y)
        # no float is nearer than its spacing, rate * spacing in the log tail; links' tables 1e-8
        with np.errstate(over="ignore"):
            rounding = 4 * np.spacing(np.abs(y) + size) * np.exp(wide.logpdf(y) - back)
        assert (np.abs(back - log_p) <= rounding + allowed).all()


def assert_tails_add_up_rise_and_stay_finite(batch, low=-np.inf, high=np.inf):
    wide = batch.expand()
    reach = np.concatenate((np.linspace(-40, 40, 81), np.linspace(-3, 3, 41)))
    y = batch.ppf(0.5)[..., None] + batch.std()[..., None] * np.sort(reach)
    # as near to a bound as its distance has all digits
    y = np.clip(y, np.nextafter(low, np.inf), np.nextafter(high, -np.inf))
    lower, upper, density = wide.logcdf(y), wide.logsf(y), wide.logpdf(y)
    for values in (lower, upper, density):
        assert np.isfinite(values).all()
    assert (lower <= 0).all()
    assert (upper <= 0).all()
    # sums of a few exponentials of logarithms: some units of rounding of 1
    np.testing.assert_allclose(wide.cdf(y) + wide.sf(y), 1, atol=1e-13)
    # the logarithms of links subtract log(kappa) of at most 4, whose unit in the last place is
    # 4e-16, and meet about nine such errors where libraries differ by a unit; the relative
    # precision below the draw is tested next
    np.testing.assert_allclose(wide.cdf(y), np.exp(lower), rtol=1e-15, atol=4e-15)
    deep = lower < np.log(1e-3)
    if isinstance(batch, Randomized):
        deep &= lower < np.log(batch.r[..., None]) - 1e-3
    # the logarithm of 1e-300 is rounded to 1e-13
    np.testing.assert_allclose(wide.cdf(y)[deep], np.exp(lower[deep]), rtol=2e-13, atol=1e-300)
    for rising in (lower, -upper):
        assert (np.diff(rising, axis=-1) >= -1e-13 * (1 + np.abs(rising[..., 1:]))).all()
    for tail, nowhere in ((wide.cdf, -np.inf), (wide.sf, np.inf)):
        np.testing.assert_array_equal(tail(nowhere), 0.0)
        np.testing.assert_allclose(
            tail(-nowhere), 1.0, atol=1e-15
        )  # weights add up to 1 but for rounding


def assert_density_is_the_slope(batch, tolerance, least_p=0.0):
    """Central differences of the log tails (density / tail) on steps of 1e-4 of its length."""
    wide, p = batch.expand(), np.array([1e-10, 1e-6, 1e-3, 0.043, 0.31, 0.47])
    p = p[p >= least_p]
    for upper in (False, True):
        y = wide.point(Tail(np.log(p), np.full(p.shape, upper)))
        log_tail = wide.logsf if upper else wide.logcdf
        rate = np.exp(wide.logpdf(y) - log_tail(y))
        step = 1e-4 * np.minimum(1 / rate, batch.std()[..., None])
        slope = (log_tail(y + step) - log_tail(y - step)) / ((y + step) - (y - step))
        np.testing.assert_allclose(-slope if upper else slope, rate, rtol=tolerance)


@pytest.mark.parametrize(("example", "shape"), some(CONTINUOUS, 1))
def test_quantiles_invert_the_cdf_in_both_tails(example, shape):
    batch = example.build(shape)
    assert_quantiles_invert_both_tails(batch, least_p=example.least_p)
    wide = batch.expand()
    # 1 - 1e-12 is a float with four digits of the tail, which 1 - p keeps
    p = np.array([1e-12, 1e-5, 0.2, 0.5, 0.8, 1 - 1e-5, 1 - 1e-12])
    p = p[np.minimum(p, 1 - p) >= example.least_p]
    back = np.where(p > 0.5, wide.sf(wide.ppf(p)), wide.cdf(wide.ppf(p)))
    expected = np.broadcast_to(np.where(p > 0.5, 1 - p, p), back.shape)
    np.testing.assert_allclose(back, expected, rtol=1e-6)
    np.testing.assert_array_equal(batch.ppf(0.0), example.low)
    np.testing.assert_array_equal(batch.ppf(1.0), example.high)


@pytest.mark.parametrize(("example", "shape"), some(CONTINUOUS, 2))
def test_tails_add_up_rise_and_stay_finite_forty_deviations_out(example, shape):
    assert_tails_add_up_rise_and_stay_finite(example.build(shape), example.low, example.high)


@pytest.mark.parametrize(("example", "shape"), some(CONTINUOUS, 3))
def test_density_is_the_slope_of_the_cdf(example, shape):
    # truncation of order 1e-8, and 1e-4 where a link's density has a kink within the step
    assert_density_is_the_slope(example.build(shape), 1e-5, example.least_p)


def tail_integrals(batch, edges, outcomes, order):
    """Mean, standard deviation and CRPS at the outcomes (last axis) by Gauss-Legendre panels.

    E Y = c + integral_c^inf S - integral_-inf^c F, E (Y - c)^2 = 2 integral |y - c| (S or F), CRPS
    = integral_-inf^y F^2 + integral_y^inf S^2; there is an edge at every outcome and at c.
    """
    wide, edges = batch.expand(), np.sort(edges, axis=-1)
    centre = edges[..., edges.shape[-1] // 2][..., None]
    y, weight = panels(np.sort(np.concatenate((edges, outcomes), axis=-1), axis=-1), order=order)
    cdf, sf = wide.cdf(y), wide.sf(y)
    above = y > centre
    mean = (weight * np.where(above, sf, -cdf)).sum(axis=-1)
    square = 2 * (weight * np.abs(y - centre) * np.where(above, sf, cdf)).sum(axis=-1)
    crps = [
        (weight * np.where(y > at[..., None], sf, cdf) ** 2).sum(-1)
        for at in np.moveaxis(outcomes, -1, 0)
    ]
    return mean + centre[..., 0], np.sqrt(square - mean**2), np.stack(crps, axis=-1)


def check_moments_and_crps(batch, outcomes, integrals, tolerance):
    mean, std, crps = integrals
    np.testing.assert_array_less(np.abs(batch.mean() - mean) / std, tolerance)
    np.testing.assert_array_less(np.abs(batch.std() / std - 1), tolerance)
    for k in range(outcomes.shape[-1]):
        error = np.abs(batch.crps(outcomes[..., k]) - crps[..., k]) / std
        np.testing.assert_array_less(error, tolerance)
    for far, sign in ((batch.mean() + 50 * batch.std(), 1), (batch.mean() - 50 * batch.std(), -1)):
        # the distance to the mean, less half the mean difference of two copies
        gap = sign * (far - mean) - batch.crps(far)
        assert ((gap > 0) & (gap < 0.6 * std)).all()


@pytest.mark.parametrize(("example", "shape"), some(CONTINUOUS, 4))
def test_mean_deviation_and_crps_agree_with_quadrature(example, shape):
    batch = example.build(shape)
    outcomes = batch.expand().ppf(np.array([0.004, 0.3, 0.6, 0.99]))
    edges = batch.expand().point(Tail.at_score(np.arange(-8.5, 8.51, 0.125)))
    even = edges[..., :1] + (edges[..., -1:] - edges[..., :1]) * np.linspace(0, 1, 300)
    integrals = tail_integrals(batch, np.concatenate((edges, even), axis=-1), outcomes, 8)
    check_moments_and_crps(batch, outcomes, integrals, example.tolerance)


shares = st.floats(0.01, 0.99)


@st.composite
def families(draw, kinds, largest):
    """Return a distribution of one of the families, with numbers up to the largest one."""
    finite = st.integers(-1000, 1000).map(lambda k: largest * k / 1000)
    positive = st.floats(-1, 1).map(lambda x: largest ** (0.75 * x))
    kind = draw(st.sampled_from(kinds))
    size = draw(st.integers(2, 6))
    values = np.array([draw(st.lists(finite, min_size=size, max_size=size))])
    scales = np.array(draw(st.lists(positive, min_size=size, max_size=size)))
    mass = np.array([draw(st.lists(shares, min_size=size, max_size=size))])
    mass /= mass.sum()
    made = {
        Normal: lambda: Normal(values[0, :1], scales[0]),
        NormalMixture: lambda: NormalMixture(mass, values, scales),
        Quantiles: lambda: Quantiles(0.99 * np.cumsum(mass), values[:, :1] + np.cumsum(scales)),
        Samples: lambda: Samples(np.append(values, [[values.max() + scales[0]]], axis=1)),
        SurvivalCurves: lambda: SurvivalCurves(np.cumsum(scales), 1 - 0.99 * np.cumsum(mass)[None]),
        Poisson: lambda: Poisson(scales[:1]),
        NegativeBinomial: lambda: NegativeBinomial(scales[:1], scales[1]),
        Categorical: lambda: Categorical(np.cumsum(scales), mass),
        Bernoulli: lambda: Bernoulli(mass[:, 0]),
    }
    return made[kind]()


ALL_LINKS = [kind(alpha) for kind in LINKS.values() for alpha in (0.02, 0.1, 0.5, 1.0)]

MAPS = (
    lambda base, u: Recalibrated(base, [0, u, 1], [0, 0.3, 1]),
    lambda base, u: Randomized(base, ALL_LINKS[int(u * len(ALL_LINKS))], [u]),
)
CONTINUOUS_WRAPPERS = (
    *MAPS,
    lambda base, u: LocationScale(base, [10 * u - 5], 0.5 + u),
    lambda base, u: Truncated(
        base, Support(float(base.ppf(u / 3)[0]) - 0.1, float(base.ppf(1 - u / 3)[0]) + 0.1)
    ),
    lambda base, u: Transformed(LocationScale(base, 0.0, 0.1), Support(low=0.0, bend=0.1 + u)),
    lambda base, u: Hurdle(
        [u / 2], base, float(base.point(Tail(np.array(-600.0), np.array(False)))[0])
    ),
)


@st.composite
def batches(draw):
    batch = draw(families(FAMILIES, 20.0))
    for _ in range(draw(st.integers(0, 2))):
        wrap = draw(st.sampled_from(MAPS if batch.has_atoms else CONTINUOUS_WRAPPERS))
        batch = wrap(batch, draw(shares))
    return batch


@settings(max_examples=300)
@given(batches())
@example(Randomized(Hurdle([0.25], Normal([0.0], 1.0), -34.5), Gaussian(0.02), [0.7]))
@example(Truncated(Samples([[0.0, 0.0, 0.0, 0.02, 1.02]]), Support(-0.11, 0.13)))
@example(Transformed(Quantiles([0.48, 0.5, 0.99], [[1, 2, 99]]), Support(0.0, bend=0.1)))
def test_tail_and_point_are_inverse_in_both_tails(batch):
    batch, log_p = batch.expand(), np.log(TAILS)
    for upper in (False, True):
        y = batch.point(Tail(log_p, np.full(TAILS.shape, upper)))
        # a quantile with neither density nor mass was rounded to a bound
        is_inside = np.maximum(batch.logpdf(y), batch.log_mass(y)) > -np.inf
        near = np.where(is_inside, y, np.nextafter(y, -np.inf if upper else np.inf))
        at, before = (batch.tail(near if upper == left else y, left=left) for left in (False, True))
        assert y.dtype == at.log.dtype == batch.logpdf(y).dtype == np.float64
        assert at.upper.dtype == np.bool_
        # the least outcome with enough probability up to it, or little enough beyond it
        less, more = (one.on(upper=upper) for one in ((at, before) if upper else (before, at)))
        with np.errstate(over="ignore", invalid="ignore"):
            density = np.exp(batch.logpdf(y) - log_p)
            # rounding of the quantile, and next to a bound that of differences of tails
            slack = 1e-6 + 4 * np.spacing(np.abs(y) + 1e4) * density + 1e-13 / TAILS
        known = slack < 1
        assert (less <= log_p + slack)[known].all()
        assert (more >= log_p - slack)[known].all()
        np.testing.assert_array_equal(batch.tail(y.astype(np.float32)).log.dtype, np.float64)


@pytest.mark.parametrize(
    ("family", "link"),
    [((normal, mixture)[k % 2], link) for k, link in enumerate(ALL_LINKS) if link.alpha < 0.3],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_axioms_hold_for_the_most_extreme_draws(family, link):
    batch = Randomized(family((5,)), link, [2.0**-53, 1e-12, 1e-7, 1 - 1e-8, 1 - 2.0**-53])
    assert_tails_add_up_rise_and_stay_finite(batch)
    # a tail that is cut at r differs from r by rounding of 1: such a draw has no more digits
    assert_quantiles_invert_both_tails(batch, absolute=1e-15)


def test_crps_of_many_rows_is_the_same_in_chunks(monkeypatch):
    examples = [
        example for example in CONTINUOUS if "quantiles" in example.name or "normal" in example.name
    ]
    batches = [example.build(example.shapes[-1]) for example in examples]
    y = np.array([[0.3], [1.0], [-2.0], [5.0]])
    whole = [batch.crps(y) for batch in batches]
    monkeypatch.setattr("evenhand.distributions.base.CACHED", 1)
    for batch, scores in zip(batches, whole, strict=True):
        np.testing.assert_array_equal(batch.crps(y), scores)


def test_normal_agrees_with_scipy_and_scoringrules():
    rng = np.random.default_rng(10)
    loc, scale, y = rng.normal(0, 5, 50), np.exp(rng.normal(size=50)), rng.normal(0, 8, 50)
    batch, peer = Normal(loc, scale), stats.norm(loc, scale)
    for name in DIRECT:
        found = getattr(batch, name)(y)
        np.testing.assert_allclose(found, getattr(peer, name)(y), rtol=1e-11, atol=1e-300)
    for p in (1e-9, 0.2, 0.5, 0.9):
        np.testing.assert_allclose(batch.ppf(p), peer.ppf(p), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(batch.crps(y), scoringrules.crps_normal(y, loc, scale), rtol=1e-10)


def test_unusable_parameters_are_refused_in_one_line():
    refused(r"loc\[1\] must be finite, got nan", Normal, [0.0, np.nan], 1.0)
    refused(r"scale\[0, 1\] must be finite and positive, got 0.0", Normal, 0.0, [[1.0, 0.0]])
    weights = "weights must be at least 0 with a positive sum"
    refused(weights, NormalMixture, [0.5, -0.5], [0.0, 1.0], 1.0)
    # the standard deviation of these is not 0 but 1.4e-17
    refused(r"values\[0\] must have a spread above 0", Samples, [[0.1, 0.1, 0.1]])
    refused(r"levels\[0\] must lie .*not 90", Quantiles, [10, 50, 90], [[0.0, 1.0, 2.0]])
    three = Normal(np.zeros(3), 1.0)
    refused("base and r must", Randomized, three, Laplace(0.1), [0.1, 0.2])


def mixture_cdf(y, weights, loc, scale):
    return float((weights * special.ndtr((y - loc) / scale)).sum() / weights.sum())


def test_mixture_agrees_with_its_definition_and_with_scoringrules():
    rng = np.random.default_rng(11)
    weights, loc, scale = (
        rng.uniform(0, 2, (30, 4)),
        rng.normal(0, 2, (30, 4)),
        np.exp(rng.normal(size=(30, 4))),
    )
    weights[:, 1] = 0
    y = rng.normal(0, 3, 30)
    batch = NormalMixture(weights, loc, scale)
    by_hand = [mixture_cdf(*row) for row in zip(y, weights, loc, scale, strict=True)]
    np.testing.assert_allclose(batch.cdf(y), by_hand, rtol=1e-12)
    shares = weights / weights.sum(axis=-1, keepdims=True)
    density = (shares * stats.norm(loc, scale).pdf(y[:, None])).sum(axis=-1)
    np.testing.assert_allclose(batch.logpdf(y), np.log(density), rtol=1e-11, atol=1e-11)
    found = batch.crps(y)
    np.testing.assert_allclose(found, scoringrules.crps_mixnorm(y, loc, scale, shares), rtol=1e-9)


def test_mixture_quantiles_are_where_the_cdf_says_for_every_start_of_newtons_method():
    # steps can alternate inside the bracket: 6 of these 3,000 mixtures were off by over 10%
    rng = np.random.default_rng(14)
    n = 3000
    batch = NormalMixture(
        rng.dirichlet(np.ones(4), n),
        rng.uniform(0, 10, (n, 1)) * rng.normal(size=(n, 4)),
        np.exp(rng.uniform(0, 2, (n, 1)) * rng.normal(size=(n, 4))),
    )
    p = special.ndtr(np.linspace(-6, 6, 97))
    y = batch.expand().ppf(p)
    upper = p > 0.5
    found = batch.expand().cdf(y)[:, ~upper]
    np.testing.assert_allclose(found, np.broadcast_to(p[~upper], (n, 49)), rtol=1e-9)
    ours = batch.expand().sf(y)[:, upper]
    np.testing.assert_allclose(ours, np.broadcast_to(1 - p[upper], (n, 48)), rtol=1e-6)


@pytest.mark.parametrize("log_p", [-600.0, -708.0, -745.0, -3000.0, -1e5])
def test_mixture_quantiles_reach_tails_below_the_least_float(log_p):
    weights, loc, scale = np.array([0.3, 0.7]), np.array([-1.0, 1.0]), np.array([0.5, 1.0])
    y = float(NormalMixture(weights, loc, scale).point(Tail(np.array(log_p), np.array(False))))
    back = special.logsumexp(np.log(weights) + special.log_ndtr((y - loc) / scale))
    assert back == pytest.approx(log_p, rel=1e-10)


def silverman(values):
    """Centres and width 0.9 min(s, IQR / 1.349) n^(-1/5) of the kernel, variance kept."""
    mean, std = values.mean(), values.std()
    iqr = np.subtract(*np.quantile(values, [0.75, 0.25]))
    width = 0.9 * min(std, iqr / 1.349) * values.size**-0.2
    return mean + (values - mean) * np.sqrt(1 - width**2 / std**2), width


@pytest.mark.parametrize(("n_draws", "tolerance"), [(2, 1e-9), (20, 1e-9), (100, 8e-3)])
def test_samples_agree_with_scoringrules_and_keep_mean_and_variance(n_draws, tolerance):
    # from 65 samples on by a table: 4e-3 of the standard deviation was measured
    rng = np.random.default_rng(14)
    values, y = rng.gamma(2.0, 3.0, (10, n_draws)), rng.gamma(2.0, 3.0, 10)
    batch = Samples(values)
    np.testing.assert_allclose(batch.mean(), values.mean(axis=-1), rtol=1e-12)
    np.testing.assert_allclose(batch.std(), values.std(axis=-1), rtol=1e-12)
    for i in range(10):
        centres, width = silverman(values[i])
        equal = np.full(n_draws, 1 / n_draws)
        expected = mixture_cdf(y[i], equal, centres, np.full(n_draws, width))
        assert batch.cdf(y)[i] == pytest.approx(expected, rel=1e-9)
        peer = scoringrules.crps_mixnorm(y[i], centres, np.full(n_draws, width), equal)
        assert abs(batch.crps(y)[i] - peer) <= tolerance * values[i].std()


LEVELS = np.array([0.03, 0.2, 0.45, 0.9])
KNOTS = np.array([-2.0, 0.5, 1.0, 4.0])


def quantiles_cdf(y):
    """Straight lines between the knots, exponential tails that go on with the outermost slopes."""
    slopes = np.diff(LEVELS) / np.diff(KNOTS)
    if y < KNOTS[0]:
        return float(LEVELS[0] * np.exp((y - KNOTS[0]) * slopes[0] / LEVELS[0]))
    if y > KNOTS[-1]:
        return float(
            1 - (1 - LEVELS[-1]) * np.exp(-(y - KNOTS[-1]) * slopes[-1] / (1 - LEVELS[-1]))
        )
    return float(np.interp(y, KNOTS, LEVELS))


def test_quantiles_agree_with_their_definition():
    batch = Quantiles(LEVELS, KNOTS[None, :])
    for y in (-5.0, -2.0, -1.0, 0.7, 1.0, 3.9, 4.0, 6.0):
        assert float(batch.cdf(y)[0]) == pytest.approx(quantiles_cdf(y), rel=1e-12)
    np.testing.assert_allclose(batch.expand().ppf(LEVELS)[0], KNOTS, rtol=1e-12)
    # the tails join with the density of their neighbours
    for knot in KNOTS[[0, -1]]:
        before, after = np.exp(batch.logpdf(knot - 1e-9)), np.exp(batch.logpdf(knot + 1e-9))
        np.testing.assert_allclose(before, after, rtol=1e-7)


def test_crossing_quantiles_are_refused_by_their_row():
    levels, values = (
        [0.1, 0.5, 0.9],
        [[[1.0, 2.0, 3.0], [1.0, 1.0, 3.0]], [[1.0, 2.0, 3.0], [1.0, 3.0, 2.0]]],
    )
    message = r"^values\[1, 1, 2\] .*2 after 3; .*sort=True"
    refused(message, Quantiles, levels, values)
    refused(r"^values\[1\] .*1 after 2", Quantiles, [[0.1, 0.5], [0.2, 0.6]], [2.0, 1.0])


def test_crossing_quantiles_are_sorted_and_ties_are_spread_in_their_own_row_only():
    levels = [0.1, 0.5, 0.9]
    crossing, sorted_row, tied = [3.0, 1.0, 2.0], [1.0, 2.0, 3.0], [0.0, 0.0, 1.0]
    np.testing.assert_array_equal(Quantiles(levels, [crossing], sort=True).values, [sorted_row])
    batch = Quantiles(levels, [crossing, tied], sort=True)
    np.testing.assert_array_equal(batch.values[0], sorted_row)
    np.testing.assert_allclose(batch.values[1], tied, atol=1e-8)
    np.testing.assert_array_equal(batch.take([1]).values, batch.values[1:])


def test_rows_are_taken_from_what_has_rows_and_not_from_what_is_shared():
    shared_loc = LocationScale(Normal(np.arange(5.0), 1.0), 3.0)
    np.testing.assert_array_equal(shared_loc.take([4, 1]).mean(), [7.0, 4.0])
    # three draws for each of three people: the draws are no rows
    three = Randomized(Normal(np.zeros((3, 1)), 1.0), Gaussian(0.2), [0.1, 0.5, 0.9])
    np.testing.assert_array_equal(three.take([0]).cdf(0.4), three.cdf(0.4)[[0]])
    across = LocationScale(Normal(np.arange(3.0), 1.0), np.zeros((3, 1)))
    np.testing.assert_array_equal(across.take([2]).cdf(0.4), across.cdf(0.4)[[2]])


@pytest.mark.parametrize("link", [Laplace(0.02), Entropic(0.3), Gaussian(0.02)])
def test_many_draws_through_a_table_of_the_link_are_as_few_draws(link, monkeypatch):
    r = np.concatenate(([1e-9, 1 - 1e-9], np.random.default_rng(0).uniform(size=398)))
    y = np.random.default_rng(1).normal(size=(1, 1))
    few = Randomized(Normal([[0.0]], 1.0), link, r[None])
    direct = few.mean(), few.std(), few.crps(y)
    monkeypatch.setattr("evenhand.distributions.wrappers.MANY_DRAWS", 100)
    many = Randomized(Normal([[0.0]], 1.0), link, r[None])
    for value, expected in zip((many.mean(), many.std(), many.crps(y)), direct, strict=True):
        np.testing.assert_allclose(value, expected, atol=3e-4)


@every_link
def test_randomized_is_the_link_at_the_pit_of_the_base(link):
    base, r, y = mixture((4, 1)), np.array([[0.02, 0.4, 0.97]]), np.linspace(-2, 2, 4)[:, None]
    batch, u = Randomized(base, link, r), mixture((4, 1)).cdf(y)
    pit = link.ppf(u, r)
    np.testing.assert_allclose(batch.cdf(y), pit, rtol=1e-9)
    np.testing.assert_allclose(batch.logpdf(y), base.logpdf(y) - link.logpdf(pit, r), rtol=1e-7)
    for p in (0.03, 0.5, 0.8):
        found = base.cdf(batch.ppf(p))
        np.testing.assert_allclose(found, np.broadcast_to(link.cdf(p, r), (4, 3)), rtol=1e-8)
    assert (np.diff(batch.cdf(y), axis=-1) > 0).all()


def brute_mean_over_draws(base, link):
    """Mean of a batch (n, 1) over draws and probabilities, on one grid, finer at the ends."""
    x = (np.arange(160) + 0.5) / 160
    grid, weight = x**3 * (10 - 15 * x + 6 * x * x), 30 * (x * (1 - x)) ** 2 / 160
    total = np.zeros(base.batch_shape[0])
    for r, share in zip(grid, weight, strict=True):
        total += share * (Randomized(base, link, r).ppf(grid) @ weight)
    return np.asarray(total / weight.sum() ** 2)


@pytest.mark.parametrize(
    ("family", "link"),
    [(mixture, Entropic(0.1)), (quantiles, Laplace(0.1)), (samples, Gaussian(0.3))],
)
def test_mean_over_draws_is_without_bias(family, link):
    base, copies = family((4, 1)), 500
    expected = brute_mean_over_draws(base, link)
    many = Randomized(base.take(np.repeat(np.arange(4), copies)), link, 0.5)
    found = many.mean_over_draws(np.random.default_rng(20)).reshape(4, copies)
    spread = (base.ppf(0.9) - base.ppf(0.1))[:, 0]
    error = found.std(axis=1)
    # four standard errors of 500 independent means and what the grids of both sides leave: 3e-4 by
    # chance in 12
    assert (
        np.abs(found.mean(axis=1) - expected) < 4 * error / np.sqrt(copies) + 2e-3 * spread
    ).all()
    # one mean is near as it is: symmetric pairs leave the skewness only
    assert (error < 0.1 * spread).all()
    # and the base's own mean, which a uniform PIT might suggest, is elsewhere
    assert (np.abs(base.mean()[:, 0] - expected) > 0.01 * spread).any()


def test_the_forecast_of_a_person_does_not_hang_on_how_many_are_asked_for():
    rng = np.random.default_rng(0)
    mean, r = rng.normal(size=9000), rng.random(9000)
    whole = Randomized(Normal(mean, 2.0), Entropic(0.1), r)
    some = whole.take(np.arange(50))
    assert np.array_equal(whole.mean()[:50], some.mean())
    assert np.array_equal(whole.std()[:50], some.std())


# --- distributions with atoms: left limits, masses, quantiles, moments and scores


def is_lattice(batch):
    return batch.outcome_kind in (OutcomeKind.COUNT, OutcomeKind.BINARY)


def nodes_of(batch):
    """Return outcomes, all atoms of at least 1e-9 among them, batch shape + (q,)."""
    shape = batch.batch_shape
    least = np.full((shape[0], *(1,) * len(shape[1:])), np.log(1e-20))
    found = batch.nodes(*batch.span(least, least), np.linspace(-9, 9, 289))[1]
    return np.broadcast_to(found, (*shape, found.shape[-1]))


@pytest.mark.parametrize(("example", "shape"), some(WITH_ATOMS, 0))
def test_left_limits_are_limits_from_below(example, shape):
    batch = example.build(shape)
    assert batch.has_atoms
    wide, y = batch.expand(), nodes_of(batch)
    below = np.nextafter(y, -np.inf)
    for name in ("logcdf", "logsf"):
        at, before = getattr(wide, name)(y, left=True), getattr(wide, name)(below)
        # a step of one float changes a continuous part by rounding alone
        np.testing.assert_allclose(np.exp(at), np.exp(before), rtol=1e-7, atol=1e-15)
    np.testing.assert_allclose(wide.cdf(y, left=True) + wide.sf(y, left=True), 1, atol=1e-13)
    np.testing.assert_allclose(wide.cdf(y) + wide.sf(y), 1, atol=1e-13)
    np.testing.assert_allclose(wide.cdf(y), np.exp(wide.logcdf(y)), rtol=1e-13, atol=1e-14)
    for values in (wide.cdf(y), -wide.sf(y), wide.cdf(y, left=True)):
        assert (np.diff(values, axis=-1) >= -1e-14).all()
    assert not np.isnan(wide.logpdf(y)).any()


@pytest.mark.parametrize(("example", "shape"), some(WITH_ATOMS, 1))
def test_masses_are_the_jumps_of_the_cdf(example, shape):
    batch = example.build(shape)
    wide, y = batch.expand(), nodes_of(batch)
    mass = np.exp(wide.log_mass(y))
    np.testing.assert_allclose(mass, wide.cdf(y) - wide.cdf(y, left=True), atol=1e-13)
    np.testing.assert_allclose(mass, wide.sf(y, left=True) - wide.sf(y), atol=1e-13)
    # between the atoms there is none
    assert np.isneginf(wide.log_mass(np.nextafter(y, np.inf))).all()
    if is_lattice(batch) and example.name not in ("many", "randomized many"):
        fresh = np.diff(y, axis=-1, prepend=-np.inf) > 0
        np.testing.assert_allclose((mass * fresh).sum(axis=-1), 1, atol=1e-11)
        assert np.isneginf(wide.logpdf(y)).all()


@pytest.mark.parametrize(("example", "shape"), some(WITH_ATOMS, 2))
def test_the_density_beside_an_atom_is_the_slope_of_the_cdf(example, shape):
    batch = example.build(shape).expand()
    if is_lattice(batch):
        return  # it has none
    levels = np.array([0.21, 0.5, 0.71, 0.97])
    low, high = (batch.ppf(levels + step) for step in (-1e-6, 1e-6))
    is_beside = np.isneginf(batch.log_mass(low)) & np.isneginf(batch.log_mass(high))
    assert is_beside.any()
    width = np.where(is_beside, high - low, 1.0)
    slope = (batch.cdf(high) - batch.cdf(low)) / width
    density = np.exp(batch.logpdf((low + high) / 2))
    np.testing.assert_allclose(density[is_beside], slope[is_beside], rtol=1e-3)


@pytest.mark.parametrize(("example", "shape"), some(WITH_ATOMS, 5))
def test_mean_deviation_and_crps_agree_with_integrals(example, shape):
    batch = example.build(shape)
    outcomes = batch.expand().ppf(np.array([0.004, 0.3, 0.6, 0.99]))
    # an outcome that is none of the values of a lattice has a score too
    outcomes[..., 1] += 0.3
    # an edge at each atom
    integrals = tail_integrals(batch, nodes_of(batch), outcomes, 6)
    check_moments_and_crps(batch, outcomes, integrals, example.tolerance)


@pytest.mark.parametrize(("example", "shape"), some(WITH_ATOMS, 6))
def test_expectations_are_those_of_the_outcome(example, shape):
    batch = example.build(shape)
    mean, std = batch.mean(), batch.std()
    tolerance = 3 * example.tolerance
    for is_smooth in (False, True):
        expect = partial(batch.expectation, is_smooth=is_smooth)
        assert expect(np.square).shape == shape
        found = expect(lambda y: (y - mean[..., None]) / std[..., None])
        np.testing.assert_allclose(found, 0, atol=tolerance)
        square = expect(lambda y: ((y - mean[..., None]) / std[..., None]) ** 2)
        np.testing.assert_allclose(square, 1, atol=tolerance)
    if is_lattice(batch) and "many" not in example.name:
        # functions with jumps, too
        at = batch.ppf(0.6)
        found = batch.expectation(lambda y: (y <= at[..., None]).astype(float))
        np.testing.assert_allclose(found, batch.cdf(at), atol=1e-9)
