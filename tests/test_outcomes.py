"""Recording of outcomes: what is checked, logged once, corrected and refused."""

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge

from complaints import refused
from evenhand import RandomizedRegressor, Service
from evenhand.draws import KeyedDraws
from evenhand.service import Recorded, open_log, record_outcome, record_outcomes
from evenhand.service.log import person_subject
from evenhand.service.outcomes import check_outcome
from served_examples import LogInMemory, example, open_context, serve

KEY = b"a secret of enough bytes"


@pytest.fixture
def log():
    found = LogInMemory()
    open_context(found)
    serve(found, example("normal"))
    return found


def outcomes(log):
    return [(one.id, one.values["y"]) for one in log.entries(kind="outcome")]


def test_an_outcome_is_logged_once_with_the_id_of_its_forecast(log):
    entry = record_outcome(log.at(days=3), "f0", 1.5)
    assert (entry.kind, entry.id, entry.values) == ("outcome", "f0", {"y": 1.5, "observed": None})
    assert entry.time == "2026-01-04T00:00:00.000000Z"
    assert record_outcome(log.at(days=4), "f0", 1.5) == entry
    assert outcomes(log) == [("f0", 1.5)]


def test_a_correction_is_logged_also_one_back_to_an_earlier_value(log):
    for y in (1.5, 2.5, 2.5, 1.5):
        record_outcome(log, "f0", y)
    record_outcome(log, "f1", 2.5)
    assert outcomes(log) == [("f0", 1.5), ("f0", 2.5), ("f0", 1.5), ("f1", 2.5)]


def test_the_time_of_observation_is_kept_in_utc(log):
    entry = record_outcome(log, "f0", 1.5, time="2026-01-02T09:00:00+02:00")
    assert entry.values["observed"] == "2026-01-02T07:00:00.000000Z"
    message = "time must be a date or time, got 'monday'"
    refused(message, record_outcome, log, "f0", 2.5, time="monday")


def test_the_outcome_of_an_unknown_forecast_is_refused(log):
    refused(r"memory has no forecast 'g1'; give the id that", record_outcome, log, "g1", 1.0)
    for id in (None, 17, ["f0"]):
        refused("has no forecast", record_outcome, log, id, 1.0)
    assert outcomes(log) == []


COUNT = {"family": "poisson", "rate": 2.0}
STARS = {"family": "categorical", "support": [1.0, 2.0, 3.0], "probabilities": [0.0, 0.5, 0.5]}
EVENT = {"family": "bernoulli", "probability": 0.3}
NORMAL = {"family": "normal", "loc": 0.0, "scale": 1.0}
SAMPLES = {"family": "samples", "values": [1.0, 2.0, 3.0]}
BELOW_100 = "100 or below, the bound of the forecast"


def amount(at, end):
    return {"family": "hurdle", "at": at, "end": end, "chance": 0.5, "positive": NORMAL}


def bounded(family, base, low=0.0, high=100.0):
    support = {"low": low, "high": high, "bend": None, "edge": 0.0, "is_map": True}
    return {"family": family, "support": support, "base": base}


def wrapped(record):
    return {"family": "recalibrated", "levels": [0.5], "values": [0.5], "base": record}


@pytest.mark.parametrize(
    ("record", "y"),
    [
        (NORMAL, -3.5),
        (COUNT, 0),
        (STARS, 1),
        (EVENT, True),
        (EVENT, np.False_),
        (amount(0.0, "low"), 0.0),
        (amount(0.0, "low"), 3.5),
        (wrapped(amount(0.0, "low")), 2.0),
        (bounded("truncated", NORMAL), 0.0),
        (wrapped(bounded("transformed", NORMAL)), 100.0),
        (bounded("truncated", NORMAL, high=None), 1e9),
        # supports of the scale on which a model was fitted are none of outcomes
        (bounded("transformed", bounded("truncated", NORMAL), low=None, high=None), -3.0),
        (amount(-1.0, "low") | {"positive": bounded("truncated", NORMAL)}, -1.0),
        (SAMPLES, -9.0),
    ],
)
def test_outcomes_of_the_kind_of_the_forecast_are_accepted(record, y):
    assert check_outcome(y, record, "y") == float(y)


def test_outcomes_that_a_forecast_cannot_have_are_refused():
    below = f".* {BELOW_100}, .*"
    inside = amount(0.0, "low") | {"positive": bounded("truncated", NORMAL)}
    for record, y, message in (
        (NORMAL, np.nan, "y must be a finite number, got nan"),
        (NORMAL, True, "y must be a number, not a boolean, got True"),
        (COUNT, -1, "y must be a whole number of at least 0, got -1"),
        (COUNT, 0.5, "y must be a whole number of at least 0, got 0.5"),
        (wrapped(STARS), 1.5, "y must be one of the values 1, 2, 3, got 1.5"),
        (EVENT, 0.5, "y must be 0 or 1, got 0.5"),
        (amount(0.0, "low"), -1.0, "y must be 0 or above, got -1"),
        (bounded("truncated", NORMAL), -3, "y must be 0 or above, the bound of .*, got -3"),
        (wrapped(bounded("transformed", NORMAL)), 101, f"y must be {BELOW_100}, got 101"),
        (bounded("truncated", bounded("truncated", NORMAL), high=None), 101, below),
        (inside, 101, below),
    ):
        refused(f"^{message}$", check_outcome, y, record, "y")


def test_the_bound_of_a_fitted_model_is_that_of_its_outcomes(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 1))
    model = RandomizedRegressor(BayesianRidge(), support=(0, None))
    model.fit(X, np.exp(X[:, 0] + rng.normal(size=200)))
    service = Service(model, KeyedDraws(KEY, "2026-11"), open_log(tmp_path / "a.sqlite"))
    served = service.forecast("ada", [0.5])
    rule = "y must be 0 or above, the bound of the forecast, got -3"
    refused(f"^{rule}$", service.record_outcome, served.id, -3.0)
    assert service.record_outcome(served.id, 0.0).values["y"] == 0.0


def test_a_table_counts_what_is_new_corrected_and_repeated(log):
    record_outcomes(log, ["f0", "f1"], [1.0, 2.0])
    found = record_outcomes(log, ["f0", "f1", "f2", "f2"], [1.0, 2.5, 3.0, 3.0])
    assert found == Recorded(n_first=1, n_corrections=1, n_repeated=2)
    assert outcomes(log) == [("f0", 1.0), ("f1", 2.0), ("f1", 2.5), ("f2", 3.0)]


@pytest.mark.parametrize("options", [{"context": "loans"}, {"skip_unknown": True}])
def test_one_id_with_two_outcomes_refuses_the_table(log, options):
    name = "p" if "context" in options else "f"
    expected = r"outcomes, rows 2, 4: one id has the outcomes 2\.0 and 2\.5; nothing was recorded"
    ids = [f"{name}{i}" for i in (0, 1, 2, 1)]
    refused(expected, record_outcomes, log, ids, [1.0, 2.0, 3.0, 2.5], **options)
    assert outcomes(log) == []


def test_all_unknown_ids_are_listed_and_nothing_is_recorded(log):
    ids = ["x", "f0", "y", "z", "f1"]
    expected = r"outcomes, rows 1, 3 to 4: 3 ids without a forecast in memory; nothing was recorded"
    refused(expected, record_outcomes, log, ids, np.zeros(5))
    assert outcomes(log) == []
    found = record_outcomes(log, ids, np.zeros(5), skip_unknown=True)
    assert found == Recorded(2, 0, 0, unknown=(0, 2, 3))
    assert outcomes(log) == [("f0", 0.0), ("f1", 0.0)]


def test_people_are_matched_with_their_first_forecast(log):
    serve(log, example("normal"), revision=1, prefix="r")
    open_context(log, "other")
    serve(log, example("normal"), context="other", prefix="g")
    found = record_outcomes(log, ["p3", "p4"], [1.0, 2.0], context="loans")
    assert found == Recorded(2, 0, 0)
    assert outcomes(log) == [("f3", 1.0), ("f4", 2.0)]
    expected = "row 1: 1 id without a first forecast in the context 'loans'"
    refused(expected, record_outcomes, log, ["nobody"], [1.0], context="loans")


def test_people_named_by_hashes_are_matched_with_the_key():
    draws, other = KeyedDraws(KEY, "loans"), KeyedDraws(KEY + b"!", "loans")
    log = LogInMemory()
    open_context(log, person="hash", key=draws.fingerprint)
    serve(log, example("normal"))
    for entry in log.entries(kind="forecast"):
        name = entry.values["person"] = draws.pseudonyms([entry.values["person"]])[0]
        object.__setattr__(entry, "subject", person_subject("loans", name))
    record_outcomes(log, ["p3"], [1.0], context="loans", draws=draws)
    assert outcomes(log) == [("f3", 1.0)]
    again = (record_outcomes, log, ["p3"], [1.0])
    refused("named by keyed hashes in this context; give the key", *again, context="loans")
    message = refused(other.fingerprint, *again, context="loans", draws=other)
    assert draws.fingerprint in message
    assert "secret" not in message


def test_times_of_observation_may_be_missing(log):
    times = ["2026-01-02", None, np.datetime64("NaT"), ""]
    record_outcomes(log, ["f0", "f1", "f2", "f3"], np.zeros(4), observed=times)
    found = [one.values["observed"] for one in log.entries(kind="outcome")]
    assert found == ["2026-01-02T00:00:00.000000Z", None, None, None]
