"""Forecasts of other models from the columns of a table."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import evenhand
from complaints import refused
from evenhand import Outcomes, RandomizedRegressor, RecalibratedRegressor
from evenhand._validate import counted_from
from evenhand.distributions import OutcomeKind
from evenhand.forecast_columns import FORMS, ForecastColumns
from parts_examples import QUICK_AUDIT


def read(table, **options):
    return ForecastColumns(**options).of(pd.DataFrame(table), "t.csv")[0]


def columns_of(table, **options):
    return ForecastColumns(**options).columns(list(table), "t.csv")


def test_means_and_standard_deviations_make_normal_forecasts():
    table = {"mu": [0.0, 10.0], "sigma": [1.0, 2.0]}
    forecast = read(table, mean="mu", std="sigma")
    np.testing.assert_allclose(forecast.cdf([1.0, 8.0]), stats.norm.cdf([1.0, -1.0]), rtol=1e-12)


@pytest.mark.parametrize("listed", ["q", "q0.9,q0.1,q0.5", " q0.1, q0.5 ,q0.9"])
def test_quantiles_are_put_in_the_order_of_their_levels(listed):
    table = pd.DataFrame(
        {"q0.9": [9.0], "q0.1": [1.0], "y": [3.0], "q0.5": [5.0], "quality": [1.0]}
    )
    forecast = read(table, quantiles=listed)
    assert columns_of(table, quantiles=listed) == ["q0.1", "q0.5", "q0.9"]
    np.testing.assert_allclose(forecast.ppf([0.1, 0.5, 0.9]), [[1.0, 5.0, 9.0]])


TABLE = pd.DataFrame(
    {"mu": [0.0, 1.0], "sigma": [1.0, 0.0], "s1": [1.0, 2.0]}
    | {"q0.1": [0.0, 2.0], "q0.9": [1.0, 1.0], "q0.10": [0.0, 2.0]}
)


def test_what_does_not_fit_is_refused_in_one_line():
    refused(f"t.csv: name one kind of columns: {FORMS}", read, TABLE)
    mean = "t.csv: mean= alone shows no uncertainty; name std= too, .* or name probability= inst"
    refused(mean, read, TABLE, mean="mu")
    spread = r"^t\.csv: column 'sigma', row 2 must be finite and positive, got 0.*; correct it"
    refused(spread, read, TABLE, mean="mu", std="sigma")
    crossing = r"'q0\.9', row 2 must not .*crossing.* 1 after 2; .*sort_quantiles=yes"
    refused(crossing, read, TABLE, quantiles="q0.1,q0.9")
    once = r"^quantiles= must name each column once, got 'q0.1'"
    refused(once, read, TABLE, quantiles="q0.1,q0.9,q0.1")
    level = "for each level, got 'q0.1' and 'q0.10' for 0.1; leave"
    refused(level, read, TABLE, quantiles="q0.1,q0.10")
    refused(r"^t\.csv .*'Sigmas'.*; did you mean 'sigma'", read, TABLE, mean="mu", std="Sigmas")


@pytest.mark.parametrize("listed", ["p", "p2,p_0,p-1.5"])
def test_values_of_probabilities_are_read_from_names_in_any_order(listed):
    table = {"p2": [0.5], "p_0": [0.2], "p-1.5": [0.3], "p_value": [7.0], "price": [2.0]}
    forecast = read(table, pmf=listed)
    assert forecast.outcome_kind is OutcomeKind.COUNT
    assert columns_of(table, pmf=listed) == ["p-1.5", "p_0", "p2"]
    np.testing.assert_allclose(forecast.cdf(0.0), [0.5])
    np.testing.assert_allclose(forecast.mean(), [0.5 * 2 - 0.3 * 1.5])


@pytest.mark.parametrize("decimals", [2, 4])
def test_sums_that_rounding_explains_are_accepted_with_a_warning(decimals):
    exact = np.random.default_rng(0).dirichlet(np.ones(5), size=2000)
    written = np.round(exact, decimals)
    assert np.abs(written.sum(axis=1) - 1).max() > 10.0**-decimals / 2
    table = {f"p{value}": written[:, value] for value in range(5)}
    with pytest.warns(UserWarning, match=rf"^probabilities of pmf= .* {decimals} decimals;"):
        forecast = read(table, pmf="p")
    np.testing.assert_allclose(forecast.cdf(4.0), 1.0, rtol=1e-12)
    mass = np.exp(forecast.log_mass(np.full(2000, 2.0)))
    np.testing.assert_allclose(mass, exact[:, 2], atol=4 * 10.0**-decimals)
    # with another decimal in one cell, the digits of the others do not explain their sums
    table["p0"] = table["p0"] + np.where(np.arange(2000) == 7, 1e-9, 0)
    refused("must add up to 1 .*, got", read, table, pmf="p")


def test_means_and_standard_deviations_of_counts_make_negative_binomial_forecasts():
    mean, std = np.array([2.0, 10.0]), np.array([3.0, 4.0])
    forecast = read({"mu": mean, "sd": std}, mean="mu", std="sd", outcome="count")
    # SciPy counts failures: success probability mean / variance
    share = mean / std**2
    peer = stats.nbinom(mean * share / (1 - share), share)
    np.testing.assert_allclose(forecast.cdf([1.0, 12.0]), peer.cdf([1, 12]), rtol=1e-9)
    np.testing.assert_allclose(forecast.std(), std, rtol=1e-6)


def test_samples_of_counts_keep_their_shares():
    table = {"s1": [0.0, 5.0], "s2": [2.0, 5.0], "s3": [2.0, 7.0], "s4": [9.0, 5.0]}
    forecast = read(table, samples="s", outcome="count")
    assert forecast.outcome_kind is OutcomeKind.COUNT
    np.testing.assert_allclose(np.exp(forecast.log_mass([2.0, 5.0])), [0.5, 0.75])
    np.testing.assert_allclose(forecast.cdf([8.9, 4.9]), [0.75, 0.0], atol=1e-12)


AMOUNTS = {"none": [0.4, 0.0], "mu": [1.0, 50.0], "sd": [2.0, 1.0]}
AMOUNTS |= {"q0.1": [1.0, 40.0], "q0.5": [4.0, 50.0], "q0.9": [9.0, 60.0]}
AMOUNTS |= {"s1": [1.0, 2.0], "s2": [2.0, 3.0]}


@pytest.mark.parametrize(
    "amounts", [{"mean": "mu", "std": "sd"}, {"quantiles": "q"}, {"samples": "s"}]
)
def test_a_chance_of_zero_makes_a_hurdle(amounts):
    forecast = read(AMOUNTS, chance_of_zero="none", **amounts)
    assert forecast.outcome_kind is OutcomeKind.HURDLE
    np.testing.assert_allclose(forecast.cdf(0.0), [0.4, 0.0], atol=1e-12)
    np.testing.assert_allclose(forecast.cdf(0.0, left=True), [0.0, 0.0], atol=1e-12)
    np.testing.assert_allclose(forecast.event_probability(), [0.6, 1.0])
    assert columns_of(AMOUNTS, chance_of_zero="none", **amounts)[0] == "none"


MIXED = {"p": [0.5, 1.5], "none": [0.5, -0.1], "s1": [1.0, 2.0], "s2": [2.0, 2.5]}
MIXED |= {"mu": [1.0, 4.0], "zero": [1.0, 0.0], "sd": [2.0, 2.0]}
MIXED |= {"k0": [0.5, 0.25], "k1": [0.5, 0.25], "k01": [0.5, 0.25]}


def test_columns_that_contradict_each_other_or_their_kind_are_refused():
    def wrong(facts, **options):
        refused(facts, read, MIXED, **options)

    wrong(r"'p', row 2 must lie between 0 and 1, got 1\.5", probability="p")
    wrong(r"'none', row 2 must .*-0\.1", chance_of_zero="none", mean="mu", std="sd")
    wrong(r"row 2 must .* 2 columns of pmf=, got 0\.5; name a column", pmf="k0,k1")
    wrong(r"^pmf= must name one column for each value.*'k1' and 'k01'", pmf="k")
    wrong("'zero', row 2 must be pos.* the mean of a count, got 0", mean="zero", outcome="count")
    narrow = "'sd', row 2 must be above the square root of the mean .* got 2.0; leave std= out"
    wrong(narrow, mean="mu", std="sd", outcome="count")
    wrong(r"'s2', row 2 must be a whole number, got 2\.5", samples="s", outcome="count")
    wrong("quantiles= do not .* pmf=", quantiles="q", outcome="count")
    wrong("outcome= must be 'count' or left.*probability=", mean="mu", outcome="binary")
    wrong("outcome=count contradicts probability=", probability="p", outcome="count")
    wrong("chance_of_zero= needs forecasts of the outcomes above 0", chance_of_zero="none")
    wrong("'zero', row 2 must be above 0: ", chance_of_zero="zero", mean="zero", std="sd")


EVENTS, SCORES = ForecastColumns(probability="p"), ForecastColumns(pmf="k0,k1")
POISSON = ForecastColumns(mean="mu", outcome="count")
COSTS = ForecastColumns(chance_of_zero="none", mean="mu", std="sd")


def test_outcomes_that_a_forecast_cannot_describe_are_refused_by_row():
    table, place = pd.DataFrame(MIXED), {"target": "y", "source": "t.csv"}
    for columns, y, facts in (
        (EVENTS, 2.0, "be 0 or 1, got 2; code the event as 1, or drop the row"),
        (SCORES, 2.0, r"be one of the values of pmf= \(0, 1\), got 2"),
        (POISSON, 1.5, "be a whole number of at least 0 for outcome=count, got 1.5"),
        (POISSON, -1.0, "be a whole number of at least 0 for outcome=count, got -1"),
        (COSTS, -3.0, "be 0 or above for chance_of_zero=, got -3; correct it or drop the "),
    ):
        columns.check_outcomes(np.array([0.0, 1.0]), table, **place)
        wrong = r"^t\.csv: column 'y', row 12 must " + facts
        with counted_from(10):
            refused(wrong, columns.check_outcomes, np.array([0.0, y]), table, **place)


# --- a model like any other: audited, certified, randomized, recalibrated and stored

RANDOM = np.random.default_rng(5)
CENTER = RANDOM.normal(size=300)
ALL = pd.DataFrame(
    {"mu": CENTER, "sd": 0.5, "rate": np.exp(CENTER), "p": 1 / (1 + np.exp(-CENTER))}
    | {f"c{i}": CENTER + z for i, z in (("0.5", 0), ("0.1", 1), ("0.9", -1))}
    | {f"x{i}": CENTER + RANDOM.normal(size=300) for i in range(30)}
    | dict(zip(("k1", "k2", "k3.5"), RANDOM.dirichlet([2, 3, 4], size=300).T, strict=True))
    | {f"a{p}": p + np.exp(CENTER) for p in (0.1, 0.5, 0.9)}
    | {f"t{time}": np.exp(-time / np.exp(CENTER)) for time in (1, 2, 4)}
)
"""Forecasts of every form; the quantiles in columns of c cross."""

FORMS_OF_ALL = {
    "normal": ForecastColumns("mu", "sd"),
    "quantiles": ForecastColumns(quantiles="c", sort_quantiles=True),
    "samples": ForecastColumns(samples="x"),
    "event": ForecastColumns(probability="p"),
    "scores": ForecastColumns(pmf="k"),
    "counts": ForecastColumns("rate", outcome="count"),
    "amounts": ForecastColumns(quantiles="a", chance_of_zero="p"),
    "times": ForecastColumns(survival="t"),
    "times to a horizon": ForecastColumns(survival="t", horizon=3.0),
}


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        (" mean = mu , std=sigma", ForecastColumns("mu", "sigma")),
        ("quantiles=q0.1, q0.9,sort_quantiles=no", ForecastColumns(quantiles="q0.1,q0.9")),
        ("pmf=k=0,k=1.0", ForecastColumns(pmf="k=0,k=1.0")),
        (
            "survival=30=s30,60=s60,event=died,horizon=0.30000000000000004",
            ForecastColumns(survival="30=s30,60=s60", event="died", horizon=0.1 + 0.2),
        ),
        *((str(columns), columns) for columns in FORMS_OF_ALL.values()),
    ],
)
def test_forecasts_as_text_are_read_and_written(text, columns):
    assert ForecastColumns.parse(text) == ForecastColumns.parse(str(columns)) == columns


def test_texts_that_name_no_forecasts_are_refused_by_their_part():
    for text, facts in {
        "": "^'' must consist of known parts NAME=COLUMN, .*write mean=mu,std=sigma",
        "mu,std=s": "parts NAME=COLUMN, separated by commas, got 'mu'; write mean=mu",
        "mean=mu,sdt=s": "got 'sdt=s'; did you mean 'std'",
        "mean=mu,std": "got 'std'; write std=COLUMN",
        # beside a list of columns too
        "quantiles=q,sort_quantile=yes": "got 'sort_quantile=yes'; did you mean 'sort_quantiles'",
        "mean=mu,mean=nu": "'mean=mu,mean=nu' names mean= twice; leave one out",
        "mean=mu,std=": "'mean=mu,std=': std= is empty; name a column after it",
        "quantiles=q0.1,,q0.9": "separated by commas, got ''",
        "survival=s,horizon=soon": "horizon= must be a time above 0, got 'soon'",
        "survival=s,horizon=nan": "horizon= must be a time above 0, got nan",
        "quantiles=q,sort_quantiles=1": "sort_quantiles= must be one of 'yes', 'no', got",
    }.items():
        refused(facts, ForecastColumns.parse, text)


@pytest.mark.parametrize("form", FORMS_OF_ALL)
def test_forecasts_in_columns_are_a_model_that_is_saved_and_loaded(form, tmp_path):
    columns = FORMS_OF_ALL[form]
    table = ALL[columns.columns(ALL.columns, "t")]
    forecast = columns.forecast(table)
    y = forecast.sample(np.random.default_rng(6))
    is_of_times = form.startswith("times")
    outcomes = Outcomes(y, y != columns.horizon, columns.horizon) if is_of_times else y
    audited, expected = (
        evenhand.audit(one, table, outcomes, **QUICK_AUDIT) for one in (columns, forecast)
    )
    assert audited.scores.equals(expected.scores)
    if form != "times":  # without a horizon nobody can prove anything
        certified, expected = (
            evenhand.certify(one, table, outcomes, random_state=0) for one in (columns, forecast)
        )
        assert certified.summary() == expected.summary()
    models = [columns, RecalibratedRegressor(columns, random_state=0).fit(table, outcomes)]
    if form != "event":
        models.append(RandomizedRegressor(columns, random_state=0).fit(table, y))
        # nothing is fitted, so that forecasts without randomization are those of the columns
        np.testing.assert_array_equal(models[-1].base_forecast(table).cdf(y), forecast.cdf(y))
    for model in models:
        folder = tmp_path / type(model).__name__
        evenhand.save(model, folder)
        again = evenhand.load(folder)
        assert type(again) is type(model)
        ours, theirs = (one.forecast(table, 0.3) for one in (model, again))
        np.testing.assert_array_equal(theirs.cdf(y), ours.cdf(y))
        np.testing.assert_array_equal(again.predict(table), model.predict(table))
        assert getattr(again, "estimator_", again) == columns
