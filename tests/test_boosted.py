"""Boosted trees as a base: near a known truth, on tables with text and missing values."""

import sys
from functools import cache

import lightgbm
import numpy as np
import pandas as pd
import pytest
from scipy import stats

from complaints import refused
from evenhand import (
    BoostedDistributionRegressor,
    MissingExtraError,
    RandomizedRegressor,
    load,
    save,
)
from evenhand.forecasters.boosted import TREES_AT_ONCE, FoldEnsembles, averaged, raw_output

LAWS = {"normal": stats.norm(), "t3": stats.t(3)}
"""Laws of the noise in `wavy_task`."""


def wavy_task(n, seed, law):
    """Five features, a wavy mean, a scale that varies 7-fold, and the truth's log score."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, size=(n, 5))
    scale = 0.3 * np.exp(X[:, 2])
    noise = LAWS[law].rvs(size=n, random_state=random)
    return (
        X,
        np.sin(3 * X[:, 0]) + X[:, 1] + scale * noise,
        float((np.log(scale) - LAWS[law].logpdf(noise)).mean()),
    )


@cache
def model_of(law):
    return BoostedDistributionRegressor(random_state=0).fit(*wavy_task(4000, 0, law)[:2])


def quick(**params):
    return BoostedDistributionRegressor(
        **({"n_estimators": 60, "cv": 3, "random_state": 0} | params)
    )


def ensembles_of(X, folds):
    model = BoostedDistributionRegressor(
        400, 0.05, num_leaves=7, min_child_samples=20, colsample_bytree=0.5, reg_lambda=1.0
    )
    settings = model._settings(*X.shape, seed=0)
    return FoldEnsembles(X, [], np.atleast_2d(folds), settings)


def table_of(n, seed=0):
    """A city with a mean of its own, an informative gap in income, outcomes and true means."""
    random = np.random.default_rng(seed)
    city = random.integers(0, 8, size=n)
    gone = random.uniform(size=n) < 0.2
    # neighbouring numbers of levels are far apart: an order of the cities would not help
    mean = np.array([0.0, 3.0, 1.0, 4.0, -2.0, 2.0, -1.0, 5.0])[city] + 3.0 * gone
    table = pd.DataFrame(
        {
            "city": pd.Categorical([f"city {i}" for i in city]),
            "income": np.where(gone, np.nan, random.normal(size=n)),
            "member": random.uniform(size=n) < 0.5,
            "since": (
                pd.Timestamp("2024-01-01")
                + pd.to_timedelta(random.integers(0, 700, size=n), unit="D")
            ),
        }
    )
    return table, mean + 0.3 * random.normal(size=n), mean


@pytest.mark.parametrize("law", LAWS)
def test_log_score_is_near_the_truths_and_pits_of_held_out_rows_are_uniform_on_average(law):
    X, y, truth = wavy_task(4000, 1, law)
    forecast = model_of(law).forecast(X)
    # one scale for all loses log(sinh(2) / 2) / 2 = 0.30 nats; the rest is errors of the mean
    assert truth < -float(forecast.logpdf(y).mean()) < truth + 0.09
    pit = forecast.pit(y)
    # learned from 4000 rows and judged on 4000: two samples; two tests at 1e-4
    assert stats.ks_2samp(pit, (np.arange(4000) + 0.5) / 4000).pvalue > 1e-4
    for level in (0.5, 0.9):
        inside = (np.abs(pit - 0.5) < level / 2).mean()
        # two samples' binomial errors; four tests, each a false alarm in 6e-5 of all seeds
        assert abs(inside - level) < 4 * np.sqrt(2 * level * (1 - level) / 4000)


def resistance_task(n, seed):
    """Outcomes from 0.02 to 60 that grow exponentially with one of six features, with 3% noise."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, size=(n, 6))
    X[:, 0] = random.integers(0, 14, size=n) / 13
    logarithm = 8 * X[:, 0] + 0.05 * X[:, 1] + 0.05 * X[:, 2]
    return X, 0.02 * np.exp(logarithm + 0.03 * random.normal(size=n))


def plain_forecast(X, y, fresh):
    from lightgbm import LGBMRegressor

    trees = LGBMRegressor(
        n_estimators=150,
        num_leaves=4,
        min_child_samples=5,
        learning_rate=0.05,
        n_jobs=1,
        verbosity=-1,
    )
    return RandomizedRegressor(trees, random_state=0).fit(X, y).base_forecast(fresh)


def test_rows_of_large_scale_are_forecast_as_well_as_by_plain_boosting():
    X, y = resistance_task(1000, 0)
    fresh, outcomes = X[250:], y[250:]
    model = BoostedDistributionRegressor(500, random_state=0).fit(X[:250], y[:250])
    plain = plain_forecast(X[:250], y[:250], fresh)
    ours, theirs = (
        np.sqrt(((means - outcomes) ** 2).mean()) for means in (model.predict(fresh), plain.mean())
    )
    # with uncapped precision weights and leaves of 20 rows it was 16 times as large on such a table
    assert ours < 1.2 * theirs
    # the noise is proportional to the outcome: a logarithmic outcome has a gain of a nat and more
    assert model.forecast(fresh).logpdf(outcomes).mean() > plain.logpdf(outcomes).mean() + 1.0
    assert model.forecast(fresh).crps(outcomes).mean() < plain.crps(outcomes).mean()


def test_scale_of_the_outcome_is_chosen_by_held_out_scores():
    logarithmic = quick(n_estimators=200).fit(*resistance_task(250, 1))
    assert logarithmic.outcome_scale_.bend is not None
    restored = BoostedDistributionRegressor.from_state(logarithmic.to_state())
    assert restored.outcome_scale_ == logarithmic.outcome_scale_
    X, y, _ = wavy_task(300, 1, "normal")
    shifted = y - y.min()
    assert np.quantile(shifted, 0.9) > 2 * np.quantile(shifted, 0.1)
    # the noise does not grow with the outcome
    assert quick().fit(X, shifted).outcome_scale_.bend is None


def test_folds_stop_their_ensembles_together_and_are_in_none_of_their_trees():
    X, y, _ = wavy_task(600, 7, "normal")
    fold = np.arange(600) % 3
    ensembles = ensembles_of(X, fold)
    held = fold == 1
    # outcomes that nothing explains
    changed = np.where(held, np.random.default_rng(0).permutation(600), y)
    grown = [ensembles.grow(one, np.ones(600)) for one in (y, changed)]
    first, second = ([lightgbm.Booster(model_str=one) for one in texts] for texts, _ in grown)
    out = grown[0][1]
    n_rounds = {one.current_iteration() for one in first}
    assert len(n_rounds) == 1
    assert {one.current_iteration() for one in second} != n_rounds
    assert max(n_rounds) < 400
    shared = min(first[0].current_iteration(), second[0].current_iteration())
    for k in range(3):
        ours, theirs = (one[k].predict(X, num_iteration=shared) for one in (first, second))
        assert np.array_equal(ours, theirs) == (k == 1)
        assert np.array_equal(out[fold == k], first[k].predict(X[fold == k]))
    # no number of trees has a lower held-out loss, up to as many as were tried
    losses = [
        np.mean(
            [((first[k].predict(X, num_iteration=n) - y)[fold == k] ** 2).mean() for k in range(3)]
        )
        for n in range(1, first[0].current_iteration() + 1)
    ]
    assert int(np.argmin(losses)) == len(losses) - 1


def test_outputs_do_not_depend_on_how_many_rows_and_trees_are_evaluated_at_once():
    X, _, _ = wavy_task(300, 3, "normal")
    model = model_of("normal")
    assert model.mean_booster_.num_trees() > 2 * TREES_AT_ONCE
    means = model.forecast(X).mean()
    assert np.array_equal(means[:5], [model.forecast(X[i : i + 1]).mean()[0] for i in range(5)])
    ours = raw_output(model.mean_booster_, X, 1)
    assert np.array_equal(ours, model.mean_booster_.predict(X))
    # values are rounded by at most half a unit
    plain, _ = ensembles_of(X, np.arange(300) % 2).grow(X[:, 0] / 3, np.ones(300))
    mean = np.mean([lightgbm.Booster(model_str=one).predict(X) for one in plain], axis=0)
    difference = np.abs(averaged(plain).predict(X) - mean)
    assert 0 < difference.max() <= averaged(plain).num_trees() * 2.0**-39


def test_categories_and_missing_values_are_found():
    table, y, _ = table_of(1500)
    fresh, _, mean = table_of(1000, seed=1)
    model = BoostedDistributionRegressor(random_state=0).fit(table, y)
    # 150 to 190 rows, noise 0.3; without the city the error is 2.3, without the absence 1.2
    assert np.sqrt(((model.predict(fresh) - mean) ** 2).mean()) < 0.25
    text = fresh.assign(city=fresh["city"].astype(str))
    assert np.array_equal(model.predict(text), model.predict(fresh))
    assert np.array_equal(
        model.predict(fresh[fresh.columns[::-1]][table.columns]), model.predict(fresh)
    )

    # levels that training did not have count as missing
    table, y, _ = table_of(600)
    table["city"] = table["city"].astype(object).where(np.arange(600) % 7 > 0, None)
    model = quick().fit(table, y)
    unseen, missing = table.assign(city="elsewhere"), table.assign(city=None)
    assert np.array_equal(model.predict(unseen), model.predict(missing))
    assert np.isfinite(
        model.predict(table.assign(city=None, income=np.nan, member=None, since=pd.NaT))
    ).all()


def test_where_no_feature_can_be_split_the_law_says_all():
    y = np.random.default_rng(15).normal(size=200)
    model = quick().fit(np.ones((200, 2)), y)
    assert model.mean_booster_ is model.scale_booster_ is None
    forecast = BoostedDistributionRegressor.from_state(model.to_state()).forecast(np.ones((1, 2)))
    # quantiles at the levels of the law are those of the outcomes: 2 * 200^0.4 = 16.7 cells
    levels = (np.arange(17) + 0.5) / 17
    ours = forecast.ppf(levels)
    np.testing.assert_allclose(ours, [np.quantile(y, levels, method="weibull")], rtol=0, atol=1e-12)


def test_parameters_that_cannot_be_are_named():
    X, y, _ = wavy_task(100, 13, "normal")
    rounds = "^n_estimators must be an integer of at least 1, got 0"
    refused(rounds, quick(n_estimators=0).fit, X, y)
    leaf = "^min_child_samples must be an integer of at least 1, got 2.5"
    refused(leaf, quick(min_child_samples=2.5).fit, X, y)
    folds = "^X must have at least 120 rows for cv=60, got n_samples = 100"
    refused(folds, quick(cv=60).fit, X, y)
    share = "^subsample must be above 0 and at most 1, got 80; give a fraction: 0.8, not 80"
    refused(share, quick(subsample=80).fit, X, y)
    penalty = "^reg_lambda must be a finite number of at least 0, got -1.0"
    refused(penalty, quick(reg_lambda=-1.0).fit, X, y)


def test_without_lightgbm_the_extra_is_named(monkeypatch, tmp_path):
    X, y, _ = wavy_task(100, 14, "normal")
    save(quick().fit(X, y), tmp_path)
    monkeypatch.setitem(sys.modules, "lightgbm", None)
    for use in (lambda: quick().fit(X, y), lambda: load(tmp_path)):
        with pytest.raises(MissingExtraError, match=r"run: pip install 'evenhand\[boosting\]'"):
            use()

    def broken(module, extra):
        raise OSError("libgomp.so.1: cannot open shared object file")

    monkeypatch.setattr("evenhand.forecasters.boosted.require_extra", broken)
    message = r"lightgbm cannot be loaded \(libgomp.*install the OpenMP runtime"
    with pytest.raises(MissingExtraError, match=message):
        quick().fit(np.zeros((50, 1)), np.arange(50.0))
