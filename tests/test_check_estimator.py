"""scikit-learn's own checks over every forecaster; lists of failures are strict both ways."""

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge, LogisticRegression, PoissonRegressor
from sklearn.utils.estimator_checks import check_estimator

from complaints import refused
from evenhand._validate import outcomes_checked
from evenhand.forecasters import FORECASTERS, ClassifierForecaster, CountRegressor, HurdleRegressor
from forecaster_examples import DISCRETE, EXAMPLES, linear_task, small_boosted, small_mixture

WEIGHTS = "check_sample_weight_equivalence_on_dense_data"

NETWORK = (
    "minibatches, the validation rows and the encoder's scales count rows, whatever their weight"
)
FOLDS = "the folds that choose a model count rows, whatever their weight"
OTHER = "the check compares predictions with its own outcomes, not with those converted from them"
SPLITS = "the check puts splits for cv, which is a number of folds"

LIMITS = {
    "PAICRegressor": {WEIGHTS: NETWORK},
    "MixtureMLPRegressor": {WEIGHTS: NETWORK},
    "BoostedDistributionRegressor": {WEIGHTS: SPLITS},
    "RandomizedRegressor": {WEIGHTS: SPLITS},
    "RecalibratedRegressor": {WEIGHTS: SPLITS},
    "RecalibratedClassifier": {WEIGHTS: SPLITS},
    "HurdleRegressor": {"check_regressors_train": OTHER},
    "CountRegressor": {WEIGHTS: FOLDS, "check_regressors_train": OTHER},
    "ClassifierForecaster": {"check_regressors_train": OTHER},
}
"""Checks that cannot pass even where few rows and constants are let through, with the reason."""

SKIPPED = {
    "check_array_api_input": "runs only where the environment variable SCIPY_ARRAY_API is set"
}


class CountsOfAny(CountRegressor):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, converted(y, lambda value: np.floor(7.3 * value) % 5), sample_weight)


class EventsOfAny(ClassifierForecaster):
    def fit(self, X, y, sample_weight=None):
        return super().fit(X, converted(y, lambda value: np.floor(7.3 * value) % 2), sample_weight)


class HurdleOfAny(HurdleRegressor):
    def fit(self, X, y, sample_weight=None):
        amounts = converted(y, lambda value: (np.floor(7.3 * value) % 2) * (1 + value**2))
        return super().fit(X, amounts, sample_weight)


def converted(y, convert):
    """Return outcomes converted one by one; unchanged if they are not numbers."""
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        return y
    return convert(values) if values.ndim and np.isfinite(values).all() else y


RECALIBRATING = EXAMPLES["RandomizedRegressor(BayesianRidge, recalibrate)"]
CLASSIFIER = DISCRETE["RecalibratedClassifier(LogisticRegression)"]
CHECKED = {
    "PAICRegressor": EXAMPLES["PAICRegressor"].make,
    "MixtureMLPRegressor": lambda: small_mixture(max_steps=20),
    "BoostedDistributionRegressor": lambda: small_boosted(n_estimators=5, learning_rate=0.3, cv=2),
    "RandomizedRegressor": lambda: RECALIBRATING.make(cv=2),
    "RecalibratedRegressor": lambda: EXAMPLES["RecalibratedRegressor(BayesianRidge)"].make(cv=2),
    "RecalibratedClassifier": lambda: CLASSIFIER.make(cv=2),
    "HurdleRegressor": lambda: HurdleOfAny(LogisticRegression(), BayesianRidge(), random_state=0),
    "CountRegressor": lambda: CountsOfAny(PoissonRegressor(), random_state=0),
    "ClassifierForecaster": lambda: EventsOfAny(LogisticRegression()),
}
"""The example of each class that is checked; `test_forecasters.py` has other examples."""


def run_checks(estimator):
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    assert len(results) > 40
    expected = set(SKIPPED)
    assert {result["check_name"] for result in results if result["status"] == "skipped"} <= expected
    return results


def compare_with_list(results, expected):
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


def test_every_forecaster_has_an_example_and_a_list():
    fitted = {name for name, kind in FORECASTERS.items() if hasattr(kind, "fit")}
    assert set(CHECKED) == set(LIMITS) == fitted
    every = {name.partition("(")[0] for name in EXAMPLES | DISCRETE}
    assert every == fitted
    assert all(isinstance(make(), FORECASTERS[name]) for name, make in CHECKED.items())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CHECKED)
def test_scikit_learn_checks_pass_where_outcomes_are_not_checked(name, two_folds):
    with outcomes_checked():
        compare_with_list(run_checks(CHECKED[name]()), set(LIMITS[name]))


def test_few_rows_are_refused():
    X, y = linear_task(19)
    for name in ("MixtureMLPRegressor", "BoostedDistributionRegressor", "PAICRegressor"):
        refused("at least 20 are needed", EXAMPLES[name].make().fit, X, y)
