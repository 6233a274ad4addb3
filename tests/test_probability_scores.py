"""Scores of probabilities against scikit-learn, statsmodels, probcal and model-diagnostics."""

import math

import numpy as np
import probcal.metrics
import pytest
import statsmodels.api as sm
from model_diagnostics.scoring import SquaredError, decompose
from scipy import integrate, stats
from scipy.special import expit, logit
from sklearn.calibration import calibration_curve
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import brier_score_loss, log_loss, roc_auc_score

from complaints import refused
from evenhand.scoring import calibration_slope, isotonic_curve, probability_scores, reliability
from repeats import most_failures, repeats, statistical

Z = float(stats.norm.isf(0.025))
NONE = np.empty(0)
INTERVALS = "slope", "intercept", "observed_expected"


def table(n, seed=0, slope=0.62, digits=9, mean=-0.2):
    """Probabilities, events whose log odds have a slope on theirs, and weights."""
    rng = np.random.default_rng(seed)
    p = np.round(expit(rng.normal(mean, 1.2, n)), digits)
    return p, (rng.random(n) < expit(slope * logit(p))).astype(float), rng.lognormal(size=n)


def curve(p, y, w=None):
    return isotonic_curve(p, y, NONE, NONE, NONE, NONE, w)


@pytest.mark.parametrize(("digits", "is_weighted"), [(9, False), (2, True), (1, True)])
def test_scores_are_those_of_scikit_learn(digits, is_weighted):
    p, y, weights = table(2_000, digits=digits)
    p = np.clip(p, 0.01, 0.99)
    w = weights if is_weighted else None
    found = probability_scores(p, y, w)
    rate = np.average(y, weights=w)
    brier = brier_score_loss(y, p, sample_weight=w)
    np.testing.assert_allclose(
        [found.auc, found.brier, found.log_loss, found.rate, found.predicted, found.scaled_brier],
        [
            roc_auc_score(y, p, sample_weight=w),
            brier,
            log_loss(y, p, sample_weight=w),
            rate,
            np.average(p, weights=w),
            1 - brier / (rate * (1 - rate)),
        ],
        rtol=1e-10,
    )
    assert (found.n, found.n_events) == (2_000, y.sum())


@pytest.mark.parametrize(
    ("digits", "mean", "is_weighted"), [(9, -3.0, False), (2, -0.2, False), (9, -0.2, True)]
)
def test_slope_intercept_and_ratio_are_those_of_regressions_of_statsmodels(
    digits, mean, is_weighted
):
    p, y, weights = table(1_000, digits=digits, mean=mean)
    p, ones = np.clip(p, 0.005, 0.995), np.ones(y.size)
    w = weights if is_weighted else None
    found = probability_scores(p, y, w)
    events, counts = (
        {"family": family, "var_weights": weights if is_weighted else ones}
        for family in (sm.families.Binomial(), sm.families.Poisson())
    )
    # errors are robust where rows have weights, and for the ratio of rates
    plain = "HC0" if is_weighted else "nonrobust"
    for name, model, errors in (
        ("slope", sm.GLM(y, sm.add_constant(logit(p)), **events), plain),
        ("intercept", sm.GLM(y, ones, offset=logit(p), **events), plain),
        ("observed_expected", sm.GLM(y, ones, offset=np.log(p), **counts), "HC0"),
    ):
        fit = model.fit(cov_type=errors, tol=1e-12)
        ends = [getattr(found, name + end) for end in ("", "_low", "_high")]
        expected = fit.params[-1] + np.array([0, -Z, Z]) * fit.bse[-1]
        if name == "observed_expected":
            expected = np.exp(expected)
        np.testing.assert_allclose(ends, expected, rtol=1e-6, atol=1e-8)
    assert calibration_slope(p, y, w) == (found.slope, found.slope_low, found.slope_high)


@pytest.mark.parametrize(
    ("n", "digits", "tolerance"),
    # up to 200 distinct probabilities, and more, which are averaged in bins
    [(7, 9, 1e-9), (200, 9, 1e-9), (3_000, 2, 1e-9), (1_000, 9, 5e-4)],
)
def test_distances_are_those_of_probcal(n, digits, tolerance):
    p, y, _ = table(n, digits=digits)
    found = probability_scores(p, y)
    assert found.ici == pytest.approx(probcal.metrics.ici(y, p, grid_size=None), abs=tolerance)
    e_max = probcal.metrics.emax(y, p, grid_size=None)
    assert found.e_max == pytest.approx(e_max, abs=8 * tolerance)


@pytest.mark.parametrize(("digits", "is_weighted"), [(9, True), (2, False), (1, True)])
def test_curve_is_the_isotonic_regression_of_scikit_learn(digits, is_weighted):
    p, y, weights = table(2_000, digits=digits)
    w = weights if is_weighted else None
    found = curve(p, y, w)
    peer = IsotonicRegression(out_of_bounds="clip").fit(p, y, sample_weight=w)
    at = np.random.default_rng(1).random(500)
    rate = np.interp(at, found.probability, found.rate)
    np.testing.assert_allclose(rate, peer.predict(at), atol=1e-9)
    # the miscalibration of the Brier score is the distance of the probabilities from the curve
    parts = decompose(y, p, w, scoring_function=SquaredError())
    rate = np.interp(p, found.probability, found.rate)
    brier = probability_scores(p, y, w).brier
    least = np.average((rate - y) ** 2, weights=w)
    assert parts["score"][0] == pytest.approx(brier)
    assert parts["miscalibration"][0] == pytest.approx(brier - least, abs=1e-12)


def test_weights_are_numbers_of_equal_rows():
    p, y, _ = table(150, digits=2)
    w = np.random.default_rng(2).integers(0, 4, y.size)
    whole = probability_scores(np.repeat(p, w), np.repeat(y, w))
    found = probability_scores(p, y, w)
    names = whole.__struct_fields__[3:]
    points = [name for name in names if not name.endswith(("_low", "_high"))]
    for name in points:
        assert getattr(found, name) == pytest.approx(getattr(whole, name), abs=1e-9), name
    assert (found.n, found.n_events) == ((w > 0).sum(), y[w > 0].sum())
    two, one = curve(np.repeat(p, w), np.repeat(y, w)), curve(p, y, w)
    np.testing.assert_allclose(one, two, atol=1e-9)


@pytest.mark.parametrize(
    ("p", "y", "message"),
    [
        ([0.2, 1.2], [0, 1], r"probability\[1\] must lie between 0 and 1, got 1.2"),
        ([0.2, math.nan], [0, 1], "probability"),
        ([0.2, 0.4], [0, 2], r"event\[1\] must be 0 or 1, got 2.0"),
        ([0.2, 0.4], [0, 1, 1], "event must have one value per row"),
    ],
)
def test_bad_input_is_refused(p, y, message):
    for score in (probability_scores, curve):
        refused(message, score, p, y)


def unknown(found):
    """Return the names of the scores that do not exist, without the ends of intervals."""
    names = {name for name in found.__struct_fields__[1:] if math.isnan(getattr(found, name))}
    for name in INTERVALS:
        if name in names:
            assert {f"{name}_low", f"{name}_high"} <= names
    return {name for name in names if not name.endswith(("_low", "_high"))}


@pytest.mark.parametrize("weights", [None, np.arange(1.0, 101.0)])
def test_separated_outcomes_have_no_slope(weights):
    p = np.linspace(0.01, 0.99, 100)
    for y in (p > 0.5, p < 0.5):
        found = probability_scores(p, y, weights)
        assert unknown(found) == {"slope"}
        assert found.auc == float(y[-1])


@pytest.mark.parametrize(
    ("n_events", "is_known"), [(9, False), (10, True), (90, True), (91, False)]
)
def test_a_slope_needs_ten_events_and_ten_others(n_events, is_known):
    p = np.random.default_rng(0).uniform(0.05, 0.95, 100)
    y = np.arange(100) < n_events
    for w in (None, np.full(100, 0.3)):
        assert unknown(probability_scores(p, y, w)) == (set() if is_known else {"slope"})


def test_with_weights_a_slope_needs_ten_effective_events():
    p = np.random.default_rng(0).uniform(0.05, 0.95, 100)
    # of 50 events one has the weight of 20 or 30: 69^2 / 449 = 10.6 or 79^2 / 949 = 6.6
    for weight, none in ((20, set()), (30, {"slope"})):
        w = np.where(np.arange(100) == 0, weight, 1)
        assert unknown(probability_scores(p, np.arange(100) < 50, w)) == none
        assert unknown(probability_scores(p, np.arange(100) >= 50, w)) == none


def test_equal_probabilities_have_no_slope():
    y = np.arange(200) % 4 == 0
    found = probability_scores(np.full(200, 0.2), y)
    assert unknown(found) == {"slope"}
    assert found.intercept == pytest.approx(logit(0.25) - logit(0.2))
    # the standard error of the log odds of a rate
    half = Z / math.sqrt(200 * 0.25 * 0.75)
    assert found.intercept_high - found.intercept == pytest.approx(half)
    assert (found.ici, found.e_max, found.auc) == pytest.approx((0.05, 0.05, 0.5))


def test_certain_probabilities_are_left_out_of_regressions():
    p, y, _ = table(400)
    inner = probability_scores(p, y)
    certain = np.concatenate([p, [0.0, 0.0, 1.0]])
    right = probability_scores(certain, np.concatenate([y, [0, 0, 1]]))
    impossible = probability_scores(certain, np.concatenate([y, [0, 1, 0]]))
    for found in (right, impossible):
        for name in ("slope", "intercept"):
            for end in ("", "_low", "_high"):
                expected = getattr(inner, name + end)
                assert getattr(found, name + end) == pytest.approx(expected, rel=1e-9)
    # as if the log odds of outcomes that were certain were large
    fit = sm.Logit(
        np.concatenate([y, [0, 0, 1]]), sm.add_constant(logit(np.clip(certain, 1e-12, 1 - 1e-12)))
    ).fit(disp=0, tol=1e-12)
    assert right.slope == pytest.approx(fit.params[1], rel=1e-6)
    assert right.log_loss == pytest.approx(400 / 403 * inner.log_loss)
    assert impossible.log_loss == math.inf
    assert not unknown(right) | unknown(impossible)


def test_probabilities_that_are_far_too_low_have_an_intercept():
    # Newton's first step is 5e7 here
    found = probability_scores(np.repeat([1e-8, 2e-8], 50), np.arange(100) % 2)
    assert found.intercept == pytest.approx(-logit(1.5e-8), abs=0.2)
    assert 0 < found.intercept - found.intercept_low < 0.5


def test_few_probabilities_near_0_and_1_do_not_stop_the_fit():
    rng = np.random.default_rng(5)
    for _ in range(100):
        odds = np.clip(rng.normal(size=60) * rng.choice([0.01, 1, 10], size=60), -20, 20)
        y = (rng.random(60) < 0.5).astype(float)
        found = probability_scores(expit(odds), y)
        fit = sm.Logit(y, sm.add_constant(odds)).fit(disp=0, tol=1e-12)
        assert found.slope == pytest.approx(fit.params[1], abs=1e-6)
        assert (y - expit(odds + found.intercept)).sum() == pytest.approx(0, abs=1e-6)


def test_band_holds_wherever_the_intervals_of_groups_hold():
    rng = np.random.default_rng(6)
    for _ in range(100):
        # a nondecreasing rate, and intervals that contain its mean in each group by score
        jumps, heights = np.sort(rng.random((2, 4)))
        p = np.sort(rng.random(600).round(2))
        rate = np.append(0.02, heights)[np.searchsorted(jumps, p, side="right")]
        part = (np.arange(600) // 100)[np.searchsorted(p, p)]
        groups = [part == k for k in np.unique(part)]
        mean = np.array([rate[group].mean() for group in groups])
        lowest, highest = (np.array([end(p[g]) for g in groups]) for end in (np.min, np.max))
        width = rng.uniform(0, 0.1, (2, mean.size))
        y = (rng.random(600) < rate).astype(float)
        found = isotonic_curve(p, y, lowest, highest, mean - width[0], mean + width[1])
        assert not found.isna().any(axis=None)
        at = found.probability
        # between two points, the ends of the left one and of the right one
        low = found.low.to_numpy()[np.searchsorted(at, p, side="right") - 1]
        high = found.high.to_numpy()[np.searchsorted(at, p, side="left")]
        assert (low <= rate).all()
        assert (rate <= high).all()


def test_band_is_the_narrowest_that_the_groups_imply():
    p, y, _ = table(900)
    lowest, highest = np.array([0.0, 0.3, 0.7]), np.array([0.29, 0.69, 1.0])
    low, high = np.array([0.1, 0.2, 0.5]), np.array([0.3, 0.5, 0.9])
    found = isotonic_curve(p, y, lowest, highest, low, high)
    x = found.probability.to_numpy()
    ours = found.low
    np.testing.assert_array_equal(ours, np.select([x >= 1, x >= 0.69, x >= 0.29], low[::-1], 0))
    np.testing.assert_array_equal(found.high, np.select([x <= 0, x <= 0.3, x <= 0.7], high, 1))


def test_no_band_where_the_rate_must_fall():
    p, y, _ = table(900, slope=-1.0)
    ends = np.array([0.0, 0.5]), np.array([0.49, 1.0])
    found = isotonic_curve(p, y, *ends, np.array([0.6, 0.2]), np.array([0.8, 0.4]))
    x = found.probability
    # from the end of the lower group to the beginning of the upper one
    between = (x >= 0.49) & (x <= 0.5)
    assert (found.low.isna() == between).all()
    assert (found.high.isna() == between).all()


def test_a_curve_has_few_points_which_lie_on_it():
    p, y, _ = table(100_000)
    groups = np.sort(np.random.default_rng(7).choice(p, (2, 10)))
    found = isotonic_curve(p, y, *groups, np.zeros(10), np.ones(10))
    assert len(found) <= 100
    assert found.probability.is_monotonic_increasing
    assert found.rate.is_monotonic_increasing
    assert set(groups.ravel()) <= set(found.probability)
    assert (found.probability.min(), found.probability.max()) == (p.min(), p.max())
    peer = IsotonicRegression().fit(p, y)
    np.testing.assert_allclose(found.rate, peer.predict(found.probability), atol=1e-9)


# --- reliability of probabilities: bins, intervals and false alarms


def events(n, seed):
    rng = np.random.default_rng(seed)
    p = rng.beta(1.0, 3.0, size=n)
    return p, rng.random(n) < p


def test_bins_of_quantiles_agree_with_scikit_learn():
    p, y = events(1000, 0)
    rate, mean = calibration_curve(y, p, n_bins=10, strategy="quantile")
    found = reliability(p, y)
    # quantiles are interpolated there: one person at an edge may change bins
    np.testing.assert_allclose(found.probability, mean, rtol=0, atol=0.01)
    np.testing.assert_allclose(found.rate, rate, rtol=0, atol=0.011)
    np.testing.assert_array_equal(found.n, 100)


def test_intervals_are_those_of_clopper_and_pearson_by_bonferroni():
    p, y = events(500, 1)
    found = reliability(p, y, n_bins=5, confidence=0.9)
    hits = np.rint(found.rate * found.n)
    np.testing.assert_allclose(found.low, stats.beta.ppf(0.01, hits, found.n - hits + 1))
    np.testing.assert_allclose(found.high, stats.beta.isf(0.01, hits + 1, found.n - hits))
    assert found.columns.tolist() == ["bin", "n", "probability", "rate", "low", "high"]


def is_off(found):
    return ~found["probability"].between(found["low"], found["high"])


def test_people_with_one_probability_share_a_bin():
    p = np.repeat([0.0, 0.2, 1.0], [70, 20, 10])
    found = reliability(p, p > 0.5)
    np.testing.assert_array_equal(found.n, [70, 20, 10])
    np.testing.assert_allclose(found.rate, [0, 0, 1])
    assert (found.low[0], found.high[2]) == (0, 1)
    assert not is_off(found)[[0, 2]].any()


def test_weights_are_repetitions_in_rates_and_draws_are_averaged():
    p, y = events(60, 2)
    counts = np.random.default_rng(3).integers(0, 3, size=60)
    one = reliability(p, y, counts, n_bins=1)
    repeated = reliability(np.repeat(p, counts), np.repeat(y, counts), n_bins=1)
    np.testing.assert_allclose(one.rate, repeated.rate)
    np.testing.assert_allclose(one.probability, repeated.probability)
    # fewer effective people than rows of their own
    assert one.high[0] - one.low[0] >= repeated.high[0] - repeated.low[0]
    draws = np.column_stack((p / 2, p))
    np.testing.assert_allclose(reliability(draws, y), reliability(0.75 * p, y))


def expected_ratio(mean, slope, shift):
    law = stats.norm(mean, 1.2)
    ends = mean - 12, mean + 12
    rate, _ = integrate.quad(lambda z: expit(shift + slope * z) * law.pdf(z), *ends)
    predicted, _ = integrate.quad(lambda z: expit(z) * law.pdf(z), *ends)
    return float(rate / predicted)


def sample(n, mean, slope, shift, ratio, seed):
    """Scores of n rows, among them one of `ratio` people without the event, with weights."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(mean, 1.2, int(2 * n * ratio))
    y = (rng.random(odds.size) < expit(shift + slope * odds)).astype(float)
    some = np.flatnonzero((y == 1) | (rng.random(odds.size) < 1 / ratio))[:n]
    weights = None if ratio == 1 else np.where(y[some] == 1, 1.0, ratio)
    return probability_scores(expit(odds[some]), y[some], weights)


@statistical
@pytest.mark.parametrize(
    ("n", "mean", "slope", "shift", "ratio"),
    [
        (300, -0.2, 0.62, 0.0, 1.0),
        (1_000, -0.2, 1.0, 0.3, 1.0),
        # 40 events, on average
        (500, -3.0, 1.0, 0.0, 1.0),
        # a sample of non-events, with weights
        (1_000, -2.0, 0.8, 0.0, 5.0),
    ],
)
def test_intervals_contain_the_truth_as_often_as_stated(n, mean, slope, shift, ratio):
    """Asymptotic: 7% may miss instead of 5%; one of 10 counts is too large with 1e-5."""
    truth = {"slope": slope, "observed_expected": expected_ratio(mean, slope, shift)}
    # the intercept is that of slope 1
    truth |= {"intercept": shift} if slope == 1 else {}
    n_sets = repeats(2_000)
    missed = dict.fromkeys(truth, 0)
    for seed in range(n_sets):
        found = sample(n, mean, slope, shift, ratio, seed)
        for name, true in truth.items():
            low, high = (getattr(found, name + end) for end in ("_low", "_high"))
            missed[name] += not low <= true <= high
    assert max(missed.values()) <= most_failures(n_sets, 0.07), missed


@statistical
def test_intervals_of_calibrated_probabilities_hold_at_once():
    # the limit is that of `repeats`: a false alarm of 1e-6
    n_sets = repeats(2000)
    wrong = sum(is_off(reliability(*events(300, seed))).any() for seed in range(n_sets))
    assert wrong <= most_failures(n_sets)
