"""scikit-learn's own checks over every forecaster, with the expected failures explained.

The lists are strict both ways: a check that fails without being listed fails the test, and so does
a listed check that passes.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from sklearn.utils.estimator_checks import check_estimator

from evenhand import InputError
from evenhand.forecasters import FORECASTERS
from forecaster_examples import EXAMPLES, use_small_default

WEIGHTS = "check_sample_weight_equivalence_on_dense_data"

NO_WEIGHTS = "Pipeline.fit does not take sample_weight, so weights are refused"

LIMITS: dict[str, dict[str, str]] = {
    "PAICRegressor": {
        WEIGHTS: (
            "minibatches, the validation rows and the encoder's scales count rows, whatever their"
            " weight"
        )
    },
    "MixtureMLPRegressor": {
        WEIGHTS: (
            "minibatches, the validation rows and the encoder's scales count rows, whatever their"
            " weight"
        )
    },
    "BoostedDistributionRegressor": {
        WEIGHTS: "the check puts splits for cv, which is a number of folds"
    },
    "RandomizedRegressor(None)": {
        WEIGHTS: "the check puts splits for cv, which is a number of folds"
    },
    "RandomizedRegressor(Ridge)": {
        WEIGHTS: "the check puts splits for cv, which is a number of folds"
    },
    "RandomizedRegressor(BayesianRidge)": {
        WEIGHTS: "the check puts splits for cv, which is a number of folds"
    },
    "RandomizedRegressor(Pipeline)": {
        WEIGHTS: "the check puts splits for cv, which is a number of folds; and " + NO_WEIGHTS,
        "check_sample_weights_pandas_series": NO_WEIGHTS,
        "check_sample_weights_not_an_array": NO_WEIGHTS,
        "check_sample_weights_list": NO_WEIGHTS,
        "check_sample_weights_shape": NO_WEIGHTS,
        "check_sample_weights_not_overwritten": NO_WEIGHTS,
    },
    "RandomizedRegressor(QuantileRegressor)": {
        WEIGHTS: "the check puts splits for cv, which is a number of folds"
    },
    "RandomizedRegressor(BayesianRidge, recalibrate)": {
        WEIGHTS: "the check puts splits for cv, which is a number of folds"
    },
    "RecalibratedRegressor(BayesianRidge)": {
        WEIGHTS: "the check puts splits for cv, which is a number of folds"
    },
}
"""Checks that cannot hold even where discrete outcomes are let through, with the reason."""

REFUSED: dict[str, str] = {
    "check_fit_score_takes_y": "the outcome is 3 classes",
    "check_estimators_overwrite_params": "the outcome is 3 classes",
    "check_dont_overwrite_parameters": "the outcome is 3 classes",
    "check_estimators_fit_returns_self": "the outcome is 3 classes",
    "check_readonly_memmap_input": "the outcome is 3 classes",
    "check_n_features_in_after_fitting": "15 rows, and 20 are needed",
    "check_positive_only_tag_during_fit": "10 rows, and 20 are needed",
    "check_estimators_dtypes": "the outcome is 2 classes",
    "check_sample_weights_pandas_series": "12 rows, and 20 are needed",
    "check_sample_weights_not_an_array": "12 rows, and 20 are needed",
    "check_sample_weights_list": "the outcome is 3 classes",
    "check_sample_weights_shape": "16 rows, and 20 are needed",
    "check_sample_weights_not_overwritten": "16 rows, and 20 are needed",
    "check_dtype_object": "the outcome is 4 classes",
    "check_pipeline_consistency": "the outcome is 2 classes",
    "check_estimators_pickle": "the outcome is 2 classes",
    "check_f_contiguous_array_estimator": "the outcome is 3 classes",
    "check_regressors_no_decision_function": "10 rows, and 20 are needed",
    "check_supervised_y_2d": "the outcome is 3 classes",
    "check_regressors_int": "the outcome is 3 classes",
    "check_methods_sample_order_invariance": "the outcome is 3 classes",
    "check_methods_subset_invariance": "the outcome is 3 classes",
    "check_fit2d_1feature": "10 rows, and 20 are needed",
    "check_dict_unchanged": "the outcome is 3 classes",
    "check_fit2d_predict1d": "the outcome is 3 classes",
}
"""Checks whose outcome is not continuous: by default every forecaster refuses it, as it should."""

REFUSED_FIRST = {
    "check_estimators_nan_inf": (
        "the outcome is constant, which is said before the model inside sees NaN"
    )
}
"""The same for forecasters around a model that takes no missing values: for others the check
passes as it stands."""

SKIPPED = {
    "check_array_api_input": "runs only where the environment variable SCIPY_ARRAY_API is set"
}


@pytest.fixture(autouse=True)
def _small_default(monkeypatch: pytest.MonkeyPatch) -> None:
    use_small_default(monkeypatch)


def run_checks(estimator: Any) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = check_estimator(estimator, on_skip=None, on_fail=None)
    assert len(results) > 40
    assert {result["check_name"] for result in results if result["status"] == "skipped"} <= set(
        SKIPPED
    )
    return results


def compare_with_list(results: list[dict[str, Any]], expected: set[str]) -> None:
    failed = {
        result["check_name"]: result["exception"]
        for result in results
        if result["status"] == "failed"
    }
    passed = {result["check_name"] for result in results if result["status"] == "passed"}
    unlisted = {name: repr(failed[name]) for name in failed.keys() - expected}
    assert not unlisted, f"checks fail that are not listed: {unlisted}"
    assert not expected & passed, (
        f"listed checks pass, take them off the list: {sorted(expected & passed)}"
    )


def is_refusal(error: BaseException | None) -> bool:
    """Whether a refused outcome stands behind an error, or behind one that it led to."""
    while error is not None:
        if isinstance(error, InputError) and re.search(
            "needs a continuous outcome|nothing to forecast|at least 20 are needed", str(error)
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def test_every_forecaster_has_an_example_and_a_list() -> None:
    assert {name.partition("(")[0] for name in EXAMPLES} == set(FORECASTERS)
    assert set(LIMITS) == set(EXAMPLES)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXAMPLES)
def test_scikit_learn_checks_hold_where_discrete_outcomes_are_let_through(name: str) -> None:
    compare_with_list(run_checks(EXAMPLES[name].make(on_discrete="ignore")), set(LIMITS[name]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXAMPLES)
def test_scikit_learn_checks_hold_but_for_refused_outcomes(name: str) -> None:
    results = run_checks(EXAMPLES[name].make())
    refused = set(REFUSED) | (set() if EXAMPLES[name].takes_mixed else set(REFUSED_FIRST))
    compare_with_list(results, set(LIMITS[name]) | refused)
    errors = {result["check_name"]: result["exception"] for result in results}
    assert all(
        is_refusal(errors[check]) for check in refused - set(LIMITS[name]) if check in errors
    )
