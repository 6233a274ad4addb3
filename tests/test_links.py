"""Links: inverses, ranges, symmetry, calibration, errors per person, mean PITs and bad input."""

import numpy as np
import pytest
from scipy import special

from complaints import complaint
from evenhand.links import LINKS, Entropic, Gaussian, Laplace, make_link
from quadrature import gaussian_link, panels, split_at

NAMES = sorted(LINKS)
ALPHAS = (0.02, 0.05, 0.12, 0.2, 1 / 3, 0.5, 0.9, 1.0)
SMALL_ALPHAS = (0.01, 0.004, 0.001)

PAIRS = [
    *(("laplace", 0.02), ("entropic", 0.004), ("gaussian", 0.05), ("laplace", 0.5)),
    *(("entropic", 0.12), ("gaussian", 0.9), ("entropic", 1 / 3), ("gaussian", 0.001)),
]
every_pair = pytest.mark.parametrize(("name", "alpha"), PAIRS)
LOW = np.concatenate(
    (
        10.0 ** -np.arange(300, 16, -14.0),
        10.0 ** -np.arange(16, 2, -1.0),
        np.linspace(0.01, 0.5, 40),
    )
)
UNIT = np.unique(np.concatenate((LOW, 1 - LOW[LOW > 1e-16], [1 - 2.0**-53])))
"""From 1e-300 to the last double below 1."""

INNER = np.unique(np.concatenate((10.0 ** -np.arange(6, 2, -0.5), np.linspace(0.01, 0.99, 61))))
INNER = np.union1d(INNER, 1 - INNER)


def rounding(alpha):
    """Six units in the last place of log(kappa).

    The log kernels subtract it from logarithms of the same size: four rounded results, two of which
    libraries may give a unit higher or lower. Where nothing so large is subtracted, the unit is at
    least that of 2.
    """
    return float(6 * np.spacing(max(2.0, np.log(1 / alpha))))


@pytest.mark.parametrize(
    ("name", "alpha"), [*(pair for pair in PAIRS if pair[0] != "gaussian"), ("laplace", 0.001)]
)
def test_cdf_undoes_ppf_over_all_representable_probabilities(name, alpha):
    link = make_link(name, alpha)
    u, r = UNIT[:, None], UNIT
    # the density is at most about kappa: rounding costs kappa * 1e-16; splines add 1e-12
    tolerance = 1e-9 if alpha >= 0.02 else 1e-11
    found = link.cdf(link.ppf(u, r), r)
    np.testing.assert_allclose(found, np.broadcast_to(u, (UNIT.size, UNIT.size)), atol=tolerance)


@pytest.mark.parametrize(("alphas", "tolerance"), [(ALPHAS, 1e-9), (SMALL_ALPHAS, 2e-8)])
def test_gaussian_cdf_undoes_ppf_away_from_the_corners(alphas, tolerance):
    # Phi(z) leaves (0, 1) in doubles at z = 8.3: with u and r opposed and further out than this, C
    # is no double other than 0 or 1, and no plain round trip can hold. The log kernels carry those
    # (next test).
    for alpha in alphas:
        link = Gaussian(alpha)
        back = link.cdf(link.ppf(INNER[:, None], INNER), INNER)
        expected = np.broadcast_to(INNER[:, None], back.shape)
        np.testing.assert_allclose(back, expected, rtol=0, atol=tolerance)


@every_pair
def test_log_kernels_are_inverse_in_the_far_tail(name, alpha):
    link = make_link(name, alpha)
    log_u, r = (np.array(x) for x in np.broadcast_arrays(np.log(LOW)[:, None], LOW))
    log_c = link.log_ppf_lower(log_u, r)
    assert not np.isnan(log_c).any()
    assert (log_c <= 0).all()
    # c <= 1/2 is the kernels' domain; above r laplace and entropic are exact to 1e-15
    kept = (log_c <= np.log(0.5)) & ((log_c < np.log(r) - 1e-9) | (name == "gaussian"))
    assert kept.sum() > 1000
    # relative in u: 1e-9 after up to 690 units of the logarithm
    found = link.log_cdf_lower(log_c[kept], r[kept])
    np.testing.assert_allclose(found, log_u[kept], rtol=0, atol=1e-9)


@every_pair
def test_plain_and_log_kernels_agree_and_complements_keep_their_digits(name, alpha):
    link = make_link(name, alpha)
    log_u, r = np.log(LOW)[:, None], UNIT
    log_h = link.log_ppf_lower(log_u, r)
    near, far = (link.ppf_lower(log_u, r, np.array(is_far)) for is_far in (False, True))
    # relative down to the least float where H lies below the draw, as the log kernel has it
    kept = (np.exp(log_h) < r * (1 - 1e-9)) & (log_h > np.log(1e-300))
    np.testing.assert_allclose(near[kept], np.exp(log_h[kept]), rtol=1e-11)
    np.testing.assert_allclose(near, np.exp(log_h), rtol=0, atol=rounding(alpha))
    np.testing.assert_allclose(far, -np.expm1(log_h), rtol=0, atol=rounding(alpha))
    # rows of either kind in one call
    is_far = np.arange(LOW.size)[:, None] % 2 == 1
    np.testing.assert_array_equal(link.ppf_lower(log_u, r, is_far), np.where(is_far, far, near))
    assert ((near >= 0) & (near <= 1) & (far >= 0) & (far <= 1)).all()


@every_pair
def test_ppf_stays_in_the_unit_interval_and_increases(name, alpha):
    link = make_link(name, alpha)
    for function in (link.ppf, link.cdf):
        values = function(UNIT[:, None], UNIT)
        assert not np.isnan(values).any()
        assert ((values >= 0) & (values <= 1)).all()
        found = function([[0.0], [1.0]], UNIT)
        np.testing.assert_array_equal(found, np.repeat([[0.0], [1.0]], UNIT.size, axis=1))
    h = link.ppf(UNIT[:, None], UNIT)
    # a difference of two results
    assert (np.diff(h, axis=0) >= -2 * rounding(alpha)).all()
    assert (np.diff(h, axis=1) >= -2 * rounding(alpha)).all()
    assert (np.isfinite(link.logpdf(UNIT[:, None], UNIT))).all()


@every_pair
def test_reflecting_person_and_draw_reflects_the_result(name, alpha):
    link = make_link(name, alpha)
    # multiples of 1/64, so that 1 - u is exact; u = 1/2 is where the two halves meet
    u, r = np.arange(65)[:, None] / 64, np.arange(1, 64) / 64
    for function in (link.ppf, link.cdf):
        np.testing.assert_allclose(1 - function(u, r), function(1 - u, 1 - r), rtol=0, atol=1e-12)
        step = function(np.nextafter(0.5, 1), r) - function(0.5, r)
        np.testing.assert_allclose(step, 0, atol=1e-12)
    np.testing.assert_allclose(link.pdf(u[1:-1], r), link.pdf(1 - u[1:-1], 1 - r), rtol=1e-10)


@pytest.mark.parametrize(("name", "alpha"), [pair for pair in PAIRS if pair[1] > 0.01])
def test_the_density_is_the_derivative_of_the_cdf(name, alpha):
    link = make_link(name, alpha)
    draws = np.array([0.003, 0.11, 0.5, 0.83, 0.999])
    edges = np.union1d(np.linspace(0.001, 0.999, 801), draws)  # no panel straddles a kink at c = r
    for r in draws:
        nodes, weights = panels(edges)
        mass = (link.pdf(nodes, r) * weights).reshape(edges.size - 1, -1).sum(axis=-1)
        np.testing.assert_allclose(mass, np.diff(link.cdf(edges, r)), rtol=0, atol=1e-10)


@pytest.mark.parametrize("alpha", [0.004, 0.02, 0.12, 1 / 3, 0.9])
def test_entropic_and_gaussian_keep_a_calibrated_base_exactly_calibrated(alpha):
    # P(H(U; R) <= c) = integral of K(c; r) over the draw: it must be c itself
    c = np.array([1e-6, 1e-3, 0.02, 0.1, 0.3, 0.5, 0.77, 0.95, 0.9999])
    r, weights = panels(np.union1d(np.linspace(0, 1, 401), c))
    uniform = (Entropic(alpha).cdf(c[:, None], r) * weights).sum(axis=-1)
    np.testing.assert_allclose(uniform, c, rtol=0, atol=1e-8)
    # the trapezoidal rule in normal scores; 8 leaves 1e-15
    z = np.arange(-8.0, 8.0005, 0.001)
    r, weights = special.ndtr(z), np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) * 0.001
    uniform = (Gaussian(alpha).cdf(c[:, None], r) * weights).sum(axis=-1)
    np.testing.assert_allclose(uniform, c, rtol=0, atol=1e-8)


@pytest.mark.parametrize("alpha", [0.03, 0.05, 0.12, 0.2, 1 / 3, 0.5, 0.9])
@pytest.mark.parametrize("make", [Laplace, Entropic])
def test_price_and_mean_error_are_the_integrals_of_the_density(make, alpha):
    link = make(alpha)
    edges = np.linspace(0, 1, 25)
    r, weight_r = panels(edges)
    c, weight_c = panels(split_at(r, edges))
    density, weight = link.pdf(c, r[:, None]), weight_c * weight_r[:, None]
    assert (density * weight).sum() == pytest.approx(1, abs=1e-10)
    expected = link.mean_error
    assert (density * np.abs(c - r[:, None]) * weight).sum() == pytest.approx(expected, abs=1e-10)
    wanted = link.price
    assert (density * link.logpdf(c, r[:, None]) * weight).sum() == pytest.approx(wanted, abs=1e-10)


@pytest.mark.parametrize("rho", [0.05, 0.3, 0.7, 0.95, 0.999])
def test_gaussian_price_and_mean_error_in_closed_form_and_by_integration(rho):
    link = gaussian_link(rho)
    assert link.price == pytest.approx(-0.5 * np.log((1 - rho) * (1 + rho)), rel=1e-12, abs=1e-15)
    # E|Phi(Z) - Phi(T)| over a normal pair, panels split at z = t; beyond 8.5 lies 2e-17
    t, weight_t = panels(np.linspace(-8.5, 8.5, 41))
    rest = np.sqrt((1 - rho) * (1 + rho))
    w, weight_w = panels(
        split_at(np.clip((1 - rho) * t / rest, -8.5, 8.5), np.linspace(-8.5, 8.5, 41))
    )
    normal = np.exp(-(w**2 + t[:, None] ** 2) / 2) / (2 * np.pi) * weight_w * weight_t[:, None]
    z = rho * t[:, None] + rest * w
    error = (np.abs(special.ndtr(z) - special.ndtr(t)[:, None]) * normal).sum()
    assert link.mean_error == pytest.approx(error, abs=1e-10)
    # mutual information as the mean of the log density; scores beyond 7 are left out (weight 3e-12)
    inside = (np.abs(z) < 7) & (np.abs(t[:, None]) < 7)
    u, r = special.ndtr(np.where(inside, z, 0.0)), special.ndtr(np.where(inside, t[:, None], 0.0))
    assert (link.logpdf(u, r) * normal)[inside].sum() == pytest.approx(link.price, abs=1e-8)


@pytest.mark.parametrize("alpha", [0.03, 0.05, 0.12, 0.2, 1 / 3, 0.5, 0.9])
def test_entropic_density_has_the_only_form_that_is_optimal(alpha):
    # a(c) a(r) exp(-kappa |c - r|) with uniform marginals is unique
    link = Entropic(alpha)
    c = np.linspace(0.003, 0.997, 61)
    log_a = link.logpdf(c[:, None], c) + link.kappa * np.abs(c[:, None] - c)
    np.testing.assert_allclose(log_a, log_a.T, atol=1e-11)
    np.testing.assert_allclose(log_a - log_a[:1] - log_a[:, :1] + log_a[0, 0], 0, atol=1e-11)
    nodes, weights = panels(split_at(c, np.linspace(0, 1, 41)))
    np.testing.assert_allclose((link.pdf(nodes, c[:, None]) * weights).sum(axis=-1), 1, atol=1e-9)
    np.testing.assert_allclose((link.pdf(c[:, None], nodes) * weights).sum(axis=-1), 1, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.2, 0.9, 1e-12, 1e-300, 1 - 2.0**-53])
def test_all_links_have_the_same_mean_error_at_one_alpha(alpha):
    expected = Laplace(alpha).mean_error
    for name in NAMES:
        assert make_link(name, alpha).mean_error == pytest.approx(expected, rel=1e-10, abs=1e-10)
        assert make_link(name, alpha).price >= 0


@pytest.mark.parametrize("link", [LINKS[name](1.0) for name in NAMES])
def test_alpha_one_is_the_identity_to_the_last_digit(link):
    u, r = UNIT[:, None], UNIT
    square = np.broadcast_to(u, (UNIT.size, UNIT.size))
    np.testing.assert_array_equal(link.ppf(u, r), square)
    np.testing.assert_array_equal(link.cdf(u, r), square)
    np.testing.assert_array_equal(link.pdf(u, r), np.ones_like(square))
    assert (link.alpha, link.price) == (1.0, 0.0)
    # a person at u is |u - r| off under draw r: u^2/2 + (1 - u)^2/2, 1/3 on average
    assert link.mean_error == pytest.approx(1 / 3, abs=1e-15)
    found = link.pathwise_error(UNIT)
    np.testing.assert_allclose(found, UNIT**2 / 2 + (1 - UNIT) ** 2 / 2, rtol=0, atol=1e-12)
    for mass in (0.1, 0.5, 1.0):
        cvar = 1 / 2 - mass / 4 + mass**2 / 12
        assert link.pathwise_cvar(mass) == pytest.approx(cvar, abs=1e-10)
        # uniform PITs in one tail of the unit interval
        assert link.group_error(mass) == pytest.approx((1 - mass) / 2, abs=1e-15)


@pytest.mark.parametrize("rho", [1e-4, 0.1, 0.5, 0.9, 0.999, 1 - 1e-8])
def test_the_gaussian_link_is_that_of_textbooks_at_its_correlation(rho):
    link = gaussian_link(rho)
    assert link.rho == pytest.approx(rho, abs=1e-12)
    assert link.mean_error == pytest.approx(Laplace(link.alpha).mean_error, rel=1e-10)
    scores = special.ndtri(INNER)
    textbook = special.ndtr(np.sqrt((1 - rho) * (1 + rho)) * scores[:, None] + rho * scores)
    # the double nearest 1 - 1e-6 has a normal score that is 1e-11 off
    np.testing.assert_allclose(link.ppf(INNER[:, None], INNER), textbook, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rest", [1e-15, 1e-13, 1e-11])
def test_an_alpha_of_nearly_one_is_nearly_the_identity(name, rest):
    link = make_link(name, 1 - rest)
    found = link.ppf(INNER[:, None], INNER)
    np.testing.assert_allclose(found, INNER[:, None] + 0 * INNER, rtol=0, atol=2e-10)
    assert link.mean_error == pytest.approx(1 / 3, abs=1e-11)


@every_pair
def test_pathwise_error_is_the_integral_of_the_distance_to_the_draw(name, alpha):
    link = make_link(name, alpha)
    u = np.array([[1e-10, 1e-4, 0.01, 0.2], [0.45, 0.5, 0.7, 0.9999]])
    x = (np.arange(50_000) + 0.5) / 50_000
    r = x * x * (3 - 2 * x)  # finer at both ends, where the gaussian link is steep
    brute = [(np.abs(link.ppf(value, r) - r) * 6 * x * (1 - x)).mean() for value in u.ravel()]
    # the midpoint rule is good to some 1e-10 / alpha here, the quadrature to 2e-8
    found = link.pathwise_error(u)
    np.testing.assert_allclose(found, np.reshape(brute, u.shape), rtol=0, atol=1e-7)


@every_pair
def test_pathwise_cvar_is_the_mean_over_the_worst_people(name, alpha):
    link = make_link(name, alpha)
    assert link.pathwise_cvar(1.0) == pytest.approx(link.mean_error, abs=2e-6)
    # brute force: the midpoint rule after u = mass / 2 * x^4, which tames the slope at 0
    x = (np.arange(300) + 0.5) / 300
    brute = (link.pathwise_error(0.1 * x**4) * 4 * x**3).mean()
    assert link.pathwise_cvar(0.2) == pytest.approx(brute, abs=1e-5)
    errors = [link.pathwise_cvar(mass) for mass in (1e-6, 0.05, 0.3, 1.0)]
    assert 0.5 > errors[0] > errors[1] > errors[2] > errors[3]


@every_pair
def test_group_error_is_the_error_of_people_in_one_tail(name, alpha):
    link = make_link(name, alpha)
    r = (np.arange(400) + 0.5) / 400
    for mass in (0.05, 0.3, 1.0):
        u = mass * (np.arange(400) + 0.5) / 400
        served = np.sort(link.ppf(u[:, None], r), axis=None)
        brute = np.abs(served - (np.arange(served.size) + 0.5) / served.size).mean()
        error = link.group_error(mass)
        # for laplace, at most its calibration error below that of this group
        assert -3e-4 < brute - error < 3e-4 + link.calibration_error
        assert error <= link.pathwise_cvar(mass) + 1e-12
    errors = [link.group_error(mass) for mass in (1e-300, 1e-9, 0.05, 0.3, 0.6)]
    assert (np.diff(errors) < 0).all()
    assert errors[0] <= 0.5
    # everybody is such a group too
    assert link.group_error(1.0) == pytest.approx(link.calibration_error, abs=1e-12)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.246, 0.6, 1 - 1e-6, 1.0])
def test_calibration_error_is_the_distance_of_all_pits_from_uniform(alpha):
    for name in ("entropic", "gaussian"):
        assert make_link(name, alpha).calibration_error == 0
    link = Laplace(alpha)
    layer = np.append(np.linspace(0, 0.5, 26), np.clip(np.arange(20) * alpha, 0, 0.5))
    edges = np.union1d(layer, 1 - layer)
    c, weights = panels(edges, order=4)
    # the kinks of K(c; .) at c lie on edges of panels
    r, shares = panels(np.unique(np.append(edges, c)), order=4)
    distance = weights @ np.abs(link.cdf(c[:, None], r) @ shares - c)
    assert link.calibration_error == pytest.approx(distance, rel=1e-6, abs=1e-9)
    assert link.calibration_error < 0.014


@every_pair
def test_averaged_score_inverts_the_forecasts_averaged_over_draws(name, alpha):
    link = make_link(name, alpha)
    score = np.array([0.0, 0.01, 0.3, 1.0, 2.0, 3.0])
    place = link.averaged_score(-score)
    x = (np.arange(50_000) + 0.5) / 50_000
    r = x * x * (3 - 2 * x)  # finer at both ends
    brute = [
        (np.exp(link.log_ppf_lower(special.log_ndtr(np.array(at)), r)) * 6 * x * (1 - x)).mean()
        for at in place
    ]
    # F(u) = integral of H(u; r) over the draw, read off at the place found
    np.testing.assert_allclose(special.ndtri(brute), -score, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(link.averaged_score(score), -place)


@pytest.mark.parametrize("alpha", [0, 1.2, float("nan"), "x", None])
def test_a_bad_alpha_is_refused_in_one_line(alpha):
    message = complaint(Entropic, alpha)
    assert message.startswith("alpha must be above 0 and at most 1")
    assert repr(alpha) in message


def test_other_bad_arguments_are_refused_in_one_line():
    for name in ("cdf", "ppf", "pdf", "logpdf"):
        call = getattr(Laplace(0.2), name)
        for bad in (1 + 1e-9, float("nan"), 50):
            assert "between 0 and 1" in complaint(call, [0.5, bad], 0.5)
        assert "r[1] must lie strictly between 0 and 1" in complaint(call, 0.5, [0.5, 1.0])
    complaint(Laplace(0.2).pathwise_error, [0.3, 1.5])
    for mass in (0, 20, float("nan"), "x"):
        assert complaint(Laplace(0.2).group_error, mass).startswith("mass must")
        assert complaint(Laplace(0.2).pathwise_cvar, mass).startswith("mass must")


# --- the mean served PIT `mu(u) = integral H(u; r) dr` and its integral, by quadrature


def over_draws(link, u):
    """Mean PITs by a rule whose panels are far narrower than all that H bends over."""
    if isinstance(link, Gaussian):
        # draws as normal scores, where the gaussian link is smooth; beyond 9 lies 1e-19
        z = np.linspace(-9, 9, 3001)
        weights = np.exp(-(z**2) / 2) * (z[1] - z[0]) / np.sqrt(2 * np.pi)
        shifted = np.sqrt(1 - link.rho**2) * special.ndtri(u)[:, None] + link.rho * z
        return np.asarray(special.ndtr(shifted) @ weights)
    r, weights = panels(np.linspace(0, 1, 3001), order=6)
    return np.asarray([link.ppf(each, r) @ weights for each in u])


@every_pair
def test_mean_pit_is_the_mean_over_draws(name, alpha):
    link = make_link(name, alpha)
    np.testing.assert_allclose(link.mean_pit(UNIT), over_draws(link, UNIT), rtol=0, atol=1e-9)


@every_pair
def test_mean_pit_is_symmetric_and_increases_from_zero_to_one(name, alpha):
    link = make_link(name, alpha)
    u = np.concatenate((np.geomspace(1e-300, 1e-3, 400)[:-1], np.linspace(1e-3, 0.5, 2001)))
    mean = link.mean_pit(u)
    assert (np.diff(mean) > 0).all()
    assert mean[-1] == pytest.approx(0.5, abs=1e-11)
    np.testing.assert_array_equal(link.mean_pit([0.0, 1.0]), [0.0, 1.0])
    dyadic = np.arange(33) / 64  # 1 - u is exact
    np.testing.assert_allclose(link.mean_pit(1 - dyadic), 1 - link.mean_pit(dyadic), atol=1e-15)


@every_pair
def test_the_integral_is_that_of_mean_pit(name, alpha):
    link = make_link(name, alpha)
    np.testing.assert_allclose(link.mean_pit_integral([0.0, 1.0]), [0.0, 0.5], rtol=0, atol=1e-15)
    u = np.array([1e-200, 1e-12, 1e-4, 0.03, 0.2, 0.5, 0.8, 0.999, 1 - 1e-9])
    # in negative log odds t, du = -u (1 - u) dt
    fine = 2.0 ** -np.arange(15)
    steps = np.concatenate((np.arange(2, 600), fine, [0], -fine, -np.arange(2, 40)))
    for each in u:
        start = np.log1p(-each) - np.log(each)
        edges = np.append(start, np.sort(steps[(steps > start) & (steps < start + 45)]))
        t, weights = panels(edges)
        v = special.expit(-t)
        expected = (link.mean_pit(v) * v * special.expit(t)) @ weights
        bound = 1e-9 * (each if each < 0.5 or name != "gaussian" else 1)
        assert float(link.mean_pit_integral(each)) == pytest.approx(expected, rel=0, abs=bound)
