"""Simultaneous intervals of named and scanned groups: their formulas, and how often they fail."""

import functools

import msgspec
import numpy as np
import pandas as pd
import pytest
from scipy import optimize, stats

from evenhand import Forecast, audit, audit_pit
from evenhand.calibration import Cells, GroupRows, calibration_error, covered
from evenhand.calibration.group_sums import (
    bias_intervals,
    coverage_intervals,
    error_intervals,
    most_variance,
)
from evenhand.results import Family
from evenhand.search import scan_groups
from parts_examples import QUICK_AUDIT, searching
from repeats import most_failures, repeats, statistical

FEATURES = 12
NAMED = 24
MEASURES = ("error", "bias", "coverage_80", "coverage_90")


def shifts(x):
    return 0.4 * (x[:, 0] > 0) - 0.3 * ((x[:, 0] > 0) & (x[:, 1] > 0))


@functools.cache
def truth(a, b, *, is_shifted):
    """Return the true values in the rows where the first features are `a` and `b`, if given."""
    cells = [(i, j) for i in (0, 1) for j in (0, 1) if a in (i, None) and b in (j, None)]
    delta = shifts(np.array(cells, dtype=float)) * is_shifted
    c = (np.arange(4000) + 0.5) / 4000
    # the PIT of outcome z + delta is Phi(z + delta); randomized forecasts are not shifted
    below = stats.norm.cdf(stats.norm.ppf(c) - delta[:, None]).mean(axis=0)
    ends = np.array([0.1, 0.9, 0.05, 0.95])
    inside = stats.norm.cdf(stats.norm.ppf(ends) - delta[:, None]).mean(axis=0)
    return {
        "error": float(np.abs(below - c).mean()) * is_shifted,
        "bias": float(delta.mean()),
        "coverage_80": float(inside[1] - inside[0]),
        "coverage_90": float(inside[3] - inside[2]),
    }


def failures(seed, n, kind):
    """Return for each measure whether any interval of one table excludes the true value."""
    rng = np.random.default_rng(seed)
    is_shifted = kind == "shifted"
    rho, m = (0.7, 8) if kind == "randomized" else (0.0, 1)
    x = rng.integers(0, 2, size=(n, FEATURES)).astype(float)
    z = rng.normal(size=n) + shifts(x) * is_shifted
    r = (np.arange(m) + rng.random((n, m))) / m
    pit = stats.norm.cdf(np.sqrt(1 - rho**2) * z[:, None] + rho * stats.norm.ppf(r))
    # shares from a tenth to a half, independent of everything
    named = {f"g{j}": rng.random(n) < 0.1 + 0.4 * j / NAMED for j in range(NAMED)}
    weight = rng.exponential(size=n) if kind == "weighted" else None
    frame = scan_groups(pit, x, groups=named, residual=z, sample_weight=weight, random_state=rng)
    assert len(frame) > 500
    singles = {f"x{j} = {v}": (j, v) for j in range(2) for v in (0, 1)}
    known = []
    for name in frame["group"]:
        parts = dict(singles[part] for part in str(name).split(" and ") if part in singles)
        known.append(truth(parts.get(0), parts.get(1), is_shifted=is_shifted))
    values = pd.DataFrame(known)
    return {
        name: bool(
            ((frame[f"{name}_low"] > values[name]) | (frame[f"{name}_high"] < values[name])).any()
        )
        for name in MEASURES
    }


@statistical
@pytest.mark.parametrize("kind", ["randomized", "shifted", "weighted"])
def test_all_intervals_of_a_measure_hold_at_once(kind):
    # 24 named groups, 12 features, all intersections; a binomial test at 1e-3 per measure
    n_tables = repeats(1000)
    found = pd.DataFrame([failures(seed, 1000, kind) for seed in range(n_tables)])
    for name in MEASURES:
        count = int(found[name].sum())
        assert stats.binomtest(count, n_tables, 0.05, "greater").pvalue > 1e-3, (name, count)


def planted(n=1200):
    """PITs of outcomes that are shifted in one half of a feature, with two named groups."""
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    z = rng.normal(size=n) + 0.5 * (X["a"] > X["a"].median())
    return {
        "pit": stats.norm.cdf(z),
        "X": X,
        "residual": z.to_numpy(),
        "groups": {"first": np.arange(n) < 400, "few": np.arange(n) < 40},
    }


def sums_of(matrix, residual=None, weights=None):
    """Return the sums over all rows as one group; the first draw is tested."""
    pits = Cells(matrix, weights=weights)
    return GroupRows(pits, (np.arange(pits.n_samples), 0), residual).sums(
        [np.full(pits.n_samples, True)]
    )


@pytest.mark.parametrize(("p", "spread"), [(0.3, 0.0), (0.8, 0.4), (0.95, 1.0)])
def test_intervals_from_several_draws_fail_as_seldom_as_stated(p, spread):
    # shares 0, 1/2 and 1 of two draws, mean p: the distribution of the sum of 25 by convolution
    half = 2 * min(p, 1 - p) * (1 - spread)
    one = np.array([1 - p - half / 2, half, p - half / 2])
    exact = functools.reduce(np.convolve, [one] * 25)
    tail = 0.01
    lost = np.zeros(2)
    for total, probability in enumerate(exact):
        whole, odd = divmod(total, 2)
        shares = np.r_[np.ones(whole), np.full(odd, 0.5), np.zeros(25 - whole - odd)]
        matrix = np.column_stack([shares > 0, shares == 1]) * 0.5  # inside are PITs of 1/2
        low, high = coverage_intervals(sums_of(matrix), 0.8, tail)
        assert low[0] <= shares.mean() <= high[0]
        lost += probability * np.array([low[0] > p, high[0] < p])
    assert (lost <= tail).all()


def test_lower_ends_of_errors_are_the_least_error_that_is_not_rejected():
    u = np.random.default_rng(3).beta(2.0, 1.5, size=400)
    tail = 1e-3
    z = stats.norm.isf(tail / 4)
    roots = []
    for mean, variance, slope in (
        (u.mean() - 0.5, 1 / 12, 1.0),
        (np.abs(u - 0.5).mean() - 0.25, 1 / 48, 0.5),
    ):

        def gap(d, mean=mean, variance=variance, slope=slope):
            return float(abs(mean) - d - z * np.sqrt((variance + slope * d) / u.size))

        roots.append(optimize.brentq(gap, 0, abs(mean)))
    low, _ = error_intervals(sums_of(u[:, None]), tail)
    assert low[0] == pytest.approx(max(roots), rel=1e-9)
    assert low[0] > 0


def test_the_largest_variance_of_an_error_is_that_of_pits_moved_to_both_ends():
    v = (np.arange(100_000) + 0.5) / 100_000
    for h in (0.1, 0.3, 0.5):
        u = np.where(np.abs(v - 0.5) > 0.5 - h, np.round(v), v)
        d = calibration_error(u)
        assert d == pytest.approx(h**2, rel=1e-3)
        assert ((u - 0.5) ** 2).mean() == pytest.approx(most_variance(np.array(d)), rel=1e-3)


@pytest.mark.parametrize(("n", "tail"), [(60, 0.01), (5000, 1e-4)])
def test_upper_ends_of_errors_solve_hoeffdings_bounds(n, tail):
    # theorem 2 of Hoeffding (1963) for few rows, theorem 3, in its own form, for many
    u = np.random.default_rng(8).beta(1.2, 1.0, size=n)
    high = error_intervals(sums_of(u[:, None]), tail)[1][0]
    t = high - calibration_error(u)
    v = 1 / 12 + high - 2 / 3 * high**1.5
    of_range = np.exp(-2 * n * t**2)
    at = (1 + t / v) * v / (1 + v)
    of_variance = ((1 + t / v) ** -at * (1 - t) ** (-(1 - t) / (1 + v))) ** n
    assert (of_range if n == 60 else of_variance) == pytest.approx(tail, rel=1e-6)


@statistical
def test_intervals_of_skewed_residuals_hold():
    # exponential residuals; a t-interval alone misses the mean in 2.9% of samples of 200, where
    # 0.1% are allowed at its upper end. Asymptotic: at most three times as often as stated
    n_sets = repeats(8000)
    rng = np.random.default_rng(5)
    lost = np.zeros(2, dtype=int)
    for _ in range(n_sets):
        e = rng.exponential(size=200)
        low, high = bias_intervals(sums_of(rng.random((200, 1)), e), 1e-3)
        lost += [low[0] > 1, high[0] < 1]
    assert (lost <= most_failures(n_sets, 3e-3)).all()


def test_bias_intervals_of_symmetric_residuals_are_t_intervals():
    e = np.r_[np.arange(-30, 31), 5.0 * np.arange(-3, 4)]
    low, high = bias_intervals(sums_of(np.full((e.size, 1), 0.5), e + 7), 1e-4)
    half = stats.t.isf(1e-4, e.size - 1) * stats.sem(e)
    assert (low[0], high[0]) == pytest.approx((7 - half, 7 + half), rel=1e-6)


def test_without_an_event_the_bias_is_limited_by_the_number_of_rows():
    for weight in (None, np.repeat([1.0, 3.0], 100)):
        n = 200 if weight is None else 400**2 / 1000
        cells = Cells(np.full((200, 1), 0.5), weights=weight)
        rows = GroupRows.of(cells, None, None, (np.zeros(200), np.full(200, 0.005)))
        sums = rows.sums([np.full(200, True)])
        low, high = bias_intervals(sums, 0.01)
        # the rate at which no event in n trials has the probability 0.01
        assert low[0] == pytest.approx(-0.005, abs=1e-12)
        assert high[0] == pytest.approx(1 - 0.01 ** (1 / n) - 0.005, rel=1e-6)


def test_weights_make_effective_trials():
    rng = np.random.default_rng(6)
    w, u = rng.integers(1, 9, size=300).astype(float), rng.random(300)
    v = covered(u, 0.8)
    share = np.average(v, weights=w)
    variance = (w**2 * (v - share) ** 2).sum() / w.sum() ** 2
    trials = min(share * (1 - share) / variance, w.sum() ** 2 / (w**2).sum())
    assert trials < 270
    low, high = coverage_intervals(sums_of(u[:, None], weights=w), 0.8, 0.01)
    hits = share * trials
    assert low[0] == pytest.approx(stats.beta.ppf(0.01, hits, trials - hits + 1), rel=1e-9)
    assert high[0] == pytest.approx(stats.beta.isf(0.01, hits + 1, trials - hits), rel=1e-9)


QUICK = searching(QUICK_AUDIT, masses=(1.0,))


def family_of(n_groups):
    """Return the family of everyone and of groups, of PITs without forecasts (verdict: 1)."""
    # the points of absent parts are those of everyone
    shares = {"everyone": 0.03, "by_forecast": 0.0, "groups": 0.02, "learned": 0.0}
    shares = {name: pytest.approx(share) for name, share in shares.items()}
    sizes = {"n_groups": n_groups, "n_by_forecast": 0, "n_learned": 0, "n_tests": 2}
    return Family(confidence=0.95, shares=shares, min_size=150, asymptotic=("bias",), **sizes)


def test_named_and_scanned_groups_are_one_family():
    rows = planted()
    above = (rows["X"]["a"] > rows["X"]["a"].median()).to_numpy()
    groups = rows.pop("groups") | {"above": above, "tiny": np.arange(len(above)) < 20}
    found = audit_pit(**rows, groups=groups, **QUICK)
    named = found.groups.set_index("group")
    scan = found.scan.set_index("group")
    # `above` is the half of a feature: the same hypothesis, under the name of the scan
    twin = scan.loc[str(named.loc["above", "scanned_as"])]
    # with one estimate: a histogram moves an error by up to half the width of a bin
    columns = ["n", "error", "error_high", "coverage_90", "bias", "p_value", "p_adjusted"]
    columns += ["error_low", "coverage_80_low", "bias_high"]
    ours = named.loc["above", columns].astype(float)
    np.testing.assert_allclose(ours, twin[columns].astype(float), rtol=1e-9)
    # 20 rows are too few for a test, but have intervals; 40 are tested
    assert named["p_value"].isna().tolist() == [False, False, False, False, True]
    assert scan.loc["tiny", "direction"] == "too few rows"
    tested = scan["p_value"].dropna()
    assert found.family == family_of(len(tested) + 1)
    assert named.loc["tiny", "coverage_80_high"] > named.loc["tiny", "coverage_80_low"]
    rising = np.sort(tested.to_numpy())
    # by Holm's method at the share of these groups, scaled to the level of the whole family
    steps = np.maximum.accumulate(rising * np.arange(rising.size, 0, -1)).clip(max=1)
    expected = (steps * 0.05 / 0.02).clip(max=1)
    np.testing.assert_allclose(np.sort(scan["p_adjusted"].dropna()), expected, rtol=1e-12)
    tail = 0.02 / (2 * (len(tested) + 1))
    hits = np.rint(scan["coverage_80"] * scan["n"])
    low = stats.beta.ppf(tail, hits, scan["n"] - hits + 1)
    np.testing.assert_allclose(scan["coverage_80_low"], low, rtol=1e-9)


@pytest.mark.parametrize("draws", [1, 4])
def test_lower_ends_are_positive_only_in_groups_that_are_off(draws):
    rows = planted()
    weight = np.random.default_rng(7).exponential(size=1200) if draws == 1 else None
    r = np.random.default_rng(8).random((1200, draws))
    pit = stats.norm.cdf(0.8 * rows.pop("residual")[:, None] + 0.6 * stats.norm.ppf(r))
    rows["pit"] = pit
    found = audit_pit(**rows, sample_weight=weight, **QUICK)
    for table in (found.groups.iloc[1:], found.scan):
        is_off = table["p_adjusted"] < 0.05
        assert not ((table["error_low"] > 0) & ~is_off).any()
        for name in set(MEASURES) & set(table):
            ends = table[f"{name}_low"], table[name], table[f"{name}_high"]
            known = table[name].notna()
            assert ((ends[0] <= ends[1] + 1e-12) & (ends[1] <= ends[2] + 1e-12))[known].all()
    assert (found.scan["error_low"] > 0).any()


def test_everyone_is_a_member_of_the_family():
    y = np.random.default_rng(9).normal(size=800)
    forecast = Forecast.from_normal(np.zeros(800), np.full(800, 1.3))
    found = audit(forecast, y=y, groups={"half": np.arange(800) < 400}, **QUICK)
    everyone, level = found.groups.iloc[0], 0.03
    assert found.family == family_of(1)
    # level and spread by Bonferroni; forecasts that are all equal have no trend
    u = stats.norm.cdf(y / 1.3)
    z = (u.mean() - 0.5) * np.sqrt(12 * 800), (np.abs(u - 0.5).mean() - 0.25) * np.sqrt(48 * 800)
    p_value = min(4 * stats.norm.sf(np.abs(z).max()), 1)
    # p-values below 1e-12 are within the default absolute tolerance of each other
    assert everyone["p_value"] == pytest.approx(p_value, rel=1e-9, abs=0.0)
    assert everyone["p_adjusted"] == pytest.approx(p_value * 0.05 / level, rel=1e-9, abs=0.0)
    assert everyone["p_adjusted"] < 1e-4
    hits = np.count_nonzero(np.abs(u - 0.5) <= 0.4)
    low, high = stats.beta.ppf(
        [level / 2, 1 - level / 2], [hits, hits + 1], [801 - hits, 800 - hits]
    )
    assert everyone["coverage_80"] == hits / 800
    assert [everyone["coverage_80_low"], everyone["coverage_80_high"]] == pytest.approx([low, high])
    ends = [np.ravel(end)[0] for end in error_intervals(sums_of(u[:, None]), level / 2)]
    assert ends[0] > 0
    assert [everyone["error_low"], everyone["error_high"]] == pytest.approx(ends)
    # scores have the same error
    score = found.scores.set_index("measure").loc["average error", ["value", "low", "high"]]
    assert score.tolist() == everyone[["error", "error_low", "error_high"]].tolist()


LAWS = {
    "calibrated": {"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)},
    "different": {"a": (0.1, 1.0), "b": (-0.3, 1.2), "c": (0.0, 0.8)},
}


def three_groups(laws, seed, n=600):
    """Audit PITs of three groups of one size and of another one of ten rows that is far off."""
    random = np.random.default_rng([seed, 3])
    z = np.concatenate([random.normal(*law, n) for law in laws.values()] + [np.full(10, 5.0)])
    group = np.repeat([*laws, "few"], [*([n] * len(laws)), 10])
    return audit_pit(stats.norm.cdf(z), groups={"of": group}, residual=z, **QUICK)


def test_comparisons_between_groups_are_those_of_their_table():
    found = three_groups(LAWS["different"], 0)
    table = found.by_group.drop("of = few")
    assert list(table.index) == ["of = a", "of = b", "of = c"]
    assert found.groups["too_small"].sum() == 1
    expected = found.groups.iloc[0][table.columns]
    pd.testing.assert_series_equal(found.overall, expected, check_names=False, check_dtype=False)
    # as fairlearn's MetricFrame: the largest minus the smallest, and the smallest by the largest
    difference, ratio = found.difference(), found.ratio()
    np.testing.assert_allclose(difference["value"], (table.max() - table.min())[difference.index])
    np.testing.assert_allclose(ratio["value"], (table.min() / table.max())[ratio.index])
    assert list(difference.index) == list(MEASURES)
    assert list(ratio.index) == ["error", "coverage_80", "coverage_90"]
    # of one group there is nothing to compare
    alone = audit_pit(np.linspace(0.01, 0.99, 100), groups={"all": [True] * 100}, **QUICK)
    assert len(alone.by_group) == 1
    assert alone.difference().empty
    assert alone.ratio().empty


def test_intervals_between_groups_are_those_of_all_values_in_the_intervals_of_groups():
    random = np.random.default_rng(4)
    found = three_groups(LAWS["different"], 1)
    groups = found.made.groups
    for _ in range(20):
        # wide and narrow intervals, some of which contain others or 0
        ends = np.sort(random.uniform(size=(3, 2)), axis=1) * (random.random((3, 1)) > 0.2)
        rows = [
            msgspec.structs.replace(one, error=low, error_low=low, error_high=high)
            for one, (low, high) in zip(groups[1:4], ends, strict=True)
        ]
        changed = found.with_rows(groups=(groups[0], *rows))
        # extreme values are at ends, or where values agree
        meeting = np.unique(ends)
        lines = [
            np.clip([*meeting, *random.uniform(low, high, 12)], low, high) for low, high in ends
        ]
        values = np.stack(np.meshgrid(*lines), axis=-1).reshape(-1, 3)
        most, least = values.max(axis=1), values.min(axis=1)
        row = changed.difference().loc["error"]
        assert row["low"] == pytest.approx((most - least).min(), abs=1e-12)
        assert row["high"] == pytest.approx((most - least).max(), abs=1e-12)
        row = changed.ratio().loc["error"]
        some = most > 0
        assert row["low"] == pytest.approx((least[some] / most[some]).min(initial=1), abs=1e-12)
        assert row["high"] >= (least[some] / most[some]).max() - 1e-12
        assert row["high"] <= 1


def of_law(shift, spread):
    """Return the true values of a group of outcomes from a normal law, forecast as N(0, 1)."""
    c = (np.arange(4000) + 0.5) / 4000
    law = stats.norm(shift, spread)
    inside = {level: np.diff(law.cdf(stats.norm.interval(level)))[0] for level in (0.8, 0.9)}
    return {
        "error": float(np.abs(law.cdf(stats.norm.ppf(c)) - c).mean()),
        "bias": shift,
        "coverage_80": inside[0.8],
        "coverage_90": inside[0.9],
    }


@statistical
@pytest.mark.parametrize("kind", LAWS)
def test_intervals_between_groups_contain_the_true_value(kind):
    """Each measure may miss in 5% of the tables; a false alarm in 10^6 of each check."""
    true = pd.DataFrame([of_law(*law) for law in LAWS[kind].values()])
    largest, smallest = true.max(), true.min()
    n_tables = repeats(400)
    missed = {name: [0, 0] for name in MEASURES}
    widths, sure = [], []
    for seed in range(n_tables):
        found = three_groups(LAWS[kind], seed)
        for i, (table, value) in enumerate(
            [(found.difference(), largest - smallest), (found.ratio(), smallest / largest)]
        ):
            for name, row in table.iterrows():
                # calibrated forecasts have no error, of which there is no ratio
                if kind == "different" or name != "error" or i == 0:
                    truth = 0.0 if kind == "calibrated" and i == 0 else value[name]
                    missed[name][i] += not row["low"] - 1e-12 <= truth <= row["high"] + 1e-12
        widths.append(found.difference().eval("high - low"))
        sure.append(found.difference().loc["bias", "low"] > 0)
    assert max(map(max, missed.values())) <= most_failures(n_tables, 0.05)
    # two intervals of shares of 600 rows have a width of about 0.2
    assert np.mean(widths, axis=0).max() < 0.6
    # and a difference of 0.4 is 6 of its standard errors
    assert kind == "calibrated" or np.mean(sure) > 0.5
