"""Serving: one answer per person and features, logged once, whoever asks."""

import json
import math
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date
from multiprocessing import get_context
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import BayesianRidge

from complaints import refused
from evenhand import Forecast, InputError, RandomizedRegressor, Service, save
from evenhand.decisions import BayesDecision, StepLoss
from evenhand.distributions import from_records
from evenhand.draws import KeyedDraws
from evenhand.service import open_log, verify
from evenhand.service.features import FeatureReader, unseen_values
from evenhand.tables import Schema, UnseenValues
from forecaster_examples import linear_task, small_boosted
from log_writers import wait_for

KEY = b"a key of these tests, not secret"
DRAWS = KeyedDraws(KEY, "2026-11")
EXACT = 1e-9
"""Relative difference between forecasts of one row and of many: rounding in other orders."""


def table(n, seed=0):
    X, _ = linear_task(n, seed)
    return pd.DataFrame(X, columns=["age", "income", "debt"])


@pytest.fixture(scope="module")
def model():
    return RandomizedRegressor(BayesianRidge()).fit(table(200), linear_task(200)[1])


@pytest.fixture
def service(model, tmp_path):
    return Service(model, DRAWS, open_log(tmp_path / "a.sqlite"))


def mixed(n, seed=0):
    """Columns of all kinds, one with missing values."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.integers(20, 60, n), "score": rng.normal(size=n)})
    X["seldom"] = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    X["region"] = rng.choice(["north", "süd", "west"], n)
    X["job"] = pd.Categorical(rng.choice(["baker", "clerk"], n))
    X["grade"] = pd.Categorical(rng.choice([1, 2, 3], n))
    X["is_new"] = rng.random(n) < 0.5
    X["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")
    return X


@pytest.fixture(scope="module")
def mixed_model():
    X = mixed(200)
    y = X["score"] + X["is_new"] + np.random.default_rng(1).normal(size=200)
    return RandomizedRegressor(small_boosted(), random_state=0).fit(X, y)


def forecasts(service):
    return list(service.log.entries(kind="forecast"))


def same(first, second):
    return first.to_dict() | {"is_repeated": 0} == second.to_dict() | {"is_repeated": 0}


ROW = {"age": 0.3, "income": -1.0, "debt": 2}


def test_the_answer_is_that_of_the_model_at_the_draw_of_the_person(model, tmp_path):
    service = Service(model, DRAWS, open_log(tmp_path / "a.sqlite"), levels=(0.1, 0.9))
    served = service.forecast("person 17", ROW)
    forecast = model.forecast(pd.DataFrame([ROW]), DRAWS(["person 17"]))
    assert served.r == DRAWS(["person 17"])[0]
    expected = forecast.ppf([0.1, 0.9])[0]
    np.testing.assert_allclose([served.quantiles["0.1"], served.quantiles["0.9"]], expected)
    np.testing.assert_allclose(served.mean, model.predict(pd.DataFrame([ROW]))[0])
    assert (served.probability, served.action, served.revision) == (None, None, 0)
    (entry,) = forecasts(service)
    assert (entry.id, entry.number, entry.time) == (served.id, served.number, served.time)
    again = Forecast(from_records([entry.values["record"]])).randomized(
        entry.values["alpha"], entry.values["link"], [entry.values["r"]]
    )
    np.testing.assert_allclose(again.ppf([0.1, 0.9])[0], expected, rtol=EXACT)
    assert json.loads(json.dumps(served.to_dict())) == served.to_dict()


def test_parallel_requests_have_one_entry_and_one_answer(service):
    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda _: service.forecast(17, ROW), range(96)))
    assert len(forecasts(service)) == 1
    assert all(same(answers[0], one) for one in answers)
    assert sum(not one.is_repeated for one in answers) == 1
    with ThreadPoolExecutor(32) as pool:
        others = list(pool.map(lambda i: service.forecast(i, ROW), range(64)))
    assert len({one.id for one in others}) == 64
    assert verify(service.log).n_entries == 1 + 64


def test_the_answer_is_the_same_after_a_restart(model, tmp_path):
    save(model, tmp_path / "model")
    path = tmp_path / "a.sqlite"
    service = Service(tmp_path / "model", DRAWS, open_log(path))
    first = service.forecast(17, ROW)
    service.close()
    again = Service(tmp_path / "model", DRAWS, open_log(path))
    assert same(again.forecast("17", ROW), first)
    # the context is in the log once
    assert [entry.kind for entry in again.log.entries()] == ["context", "forecast"]


def test_unseen_values_are_warnings_of_the_answer_and_in_the_log(mixed_model, tmp_path):
    service = Service(mixed_model, DRAWS, open_log(tmp_path / "a.sqlite"))
    usual = mixed(1).iloc[0].to_dict() | {"age": 30, "since": "2035-01-01"}
    unusual = usual | {"age": 710, "region": "south", "score": None, "seldom": None}
    served = service.forecast(1, unusual)
    ages = mixed(200)["age"]
    assert served.warnings == (
        f"column 'age': the number lies above the range of training, {ages.min()} to {ages.max()};"
        " check the units",
        "column 'score': the number is missing; training had no missing ones",
        "column 'region': the category never occurred in training, which had 'north', 'süd',"
        " 'west'",
    )
    assert service.forecast(2, usual).warnings == ()
    first, second = (entry.values for entry in forecasts(service))
    assert first["warnings"] == list(served.warnings)
    assert "warnings" not in second
    again = service.forecast(1, unusual)
    assert again.is_repeated
    assert again.warnings == served.warnings
    assert json.loads(json.dumps(again.to_dict())) == again.to_dict()
    assert again.to_dict()["warnings"] == list(served.warnings)
    assert service.replay(served.id, row=unusual, person=1).is_equal


@pytest.mark.parametrize(
    ("changes", "n_warnings"),
    [
        # no value beyond the range but near it is a reason for a warning
        ({"age": 61}, 0),
        ({"age": -400}, 1),
        ({"grade": 2}, 0),
        ({"grade": 4}, 1),
        ({"is_new": None}, 1),
        ({"job": ""}, 1),
        ({"since": "1950-01-01"}, 0),
        ({"seldom": None}, 0),
        ({"seldom": 1e9}, 1),
    ],
)
def test_warnings_are_those_of_a_table_of_one_row(mixed_model, changes, n_warnings):
    reader = FeatureReader(mixed_model)
    row = reader.read(mixed(1).iloc[0].to_dict() | {"age": 30} | changes)
    found = unseen_values(reader.schema.columns, row.values)
    assert len(found) == n_warnings
    dated = {column.name for column in reader.schema.columns if column.kind == "date"}
    expected = UnseenValues.of(mixed_model.schema_, reader.table([row])).records()
    columns = [one["column"] for one in expected if one["column"] not in dated]
    assert [one.split("'")[1] for one in found] == columns


def test_other_features_have_the_same_draw_and_a_revision(service):
    served = [service.forecast("ada", ROW | {"debt": debt}) for debt in (0, 1, 2, 1)]
    assert [one.revision for one in served] == [0, 1, 2, 1]
    assert [one.is_repeated for one in served] == [False, False, False, True]
    assert len({one.r for one in served}) == 1
    assert len({one.quantiles["0.5"] for one in served}) == 3
    assert service.forecast("bob", ROW).revision == 0


def test_equal_values_of_a_column_are_the_same_features(mixed_model, tmp_path):
    service = Service(mixed_model, DRAWS, open_log(tmp_path / "a.sqlite"))
    row = {
        "age": 40,
        "score": 0.0,
        "seldom": None,
        "region": "süd",
        "job": "clerk",
        "grade": 2,
        "is_new": True,
        "since": "2021-03-01",
    }
    first = service.forecast("ada", row)
    spellings = {
        "age": [40.0, "40", "40.0", np.int32(40), np.float32(40)],
        "score": [-0.0, 0, "0"],
        "seldom": [math.nan, np.nan, "", pd.NA],
        "grade": ["2", 2.0],
        "is_new": [1, "true", np.True_, 1.0],
        "since": ["2021-03-01T00:00:00", pd.Timestamp("2021-03-01"), date(2021, 3, 1)],
    }
    for name, values in spellings.items():
        for value in values:
            again = service.forecast("ada", row | {name: value})
            assert again.is_repeated, (name, value)
            assert again.id == first.id
    turned = dict(reversed(row.items()))
    for form in (turned, pd.Series(turned), pd.DataFrame([turned])):
        assert service.forecast("ada", form).id == first.id
    assert len(forecasts(service)) == 1
    other = {"age": 41, "seldom": 0, "region": "south", "grade": 3, "is_new": 0, "job": None}
    for i, (name, value) in enumerate(other.items()):
        assert service.forecast("ada", row | {name: value}).revision == i + 1


VALUES = (
    *(None, 0, 1, -0.0, 2.5, 3, 2**53 + 1, 1e300, True, False, math.nan, math.inf, 10**30, 1j),
    *("", "1", "1.0", "2", "3", "clerk", "Clerk", "süd", " west", "true", "yes", "nan", "\ud800"),
    *("2021-02-29", "2021-03-01", "1500-01-01", "9999-12-31", "2021-03-01T10:00:00+02:00"),
    *(np.float32(0.1), np.int8(3), np.bool_(False), np.str_("west"), np.float64("nan"), pd.NaT),
    *(pd.Timestamp("2021-03-01", tz="Europe/Paris"), date(2021, 3, 1), pd.NA, [1], {}, b"1"),
)


@pytest.mark.parametrize("name", mixed(1).columns)
def test_a_value_alone_is_read_as_in_a_column(mixed_model, name):
    reader = FeatureReader(mixed_model)
    row = reader.read(mixed(1)).values

    def read(value, *, alone):
        try:
            if alone:
                return reader.read(row | {name: value}).values[name]
            column = pd.Series([value, value], dtype=object, name=name)
            table = pd.DataFrame([row, row]).astype({name: object}).assign(**{name: column})
            first, second = (features.values[name] for features in reader.read_all(table))
            assert first == second
            return first
        except InputError as error:
            return InputError if f"column {name!r}" in str(error) else error

    for value in VALUES:
        found = read(value, alone=True)
        assert found == read(value, alone=False), value
        assert type(found) in (type(None), float, bool, str, type)


def test_many_forecasts_equal_those_one_by_one(mixed_model, tmp_path):
    X = mixed(40, 5)
    many, single = (
        Service(mixed_model, DRAWS, open_log(tmp_path / name)) for name in ("a.db", "b.db")
    )
    at_once = many.forecast_many(range(40), X)
    for row, served in enumerate(at_once):
        alone = single.forecast(row, X.iloc[[row]])
        assert (alone.id, alone.r, alone.revision) == (served.id, served.r, 0)
        found = list(alone.quantiles.values())
        np.testing.assert_allclose(found, list(served.quantiles.values()), rtol=EXACT)
    direct = mixed_model.forecast(X, DRAWS(range(40))).ppf(0.5)
    np.testing.assert_allclose([one.quantiles["0.5"] for one in at_once], direct, rtol=EXACT)
    again = many.forecast_many(range(40), X)
    assert all(one.is_repeated for one in again)
    assert len(forecasts(many)) == 40


def test_a_person_twice_in_one_table_has_one_entry_per_features(service):
    X = table(3).iloc[[0, 1, 0, 2]]
    served = service.forecast_many(["ada", "ada", "ada", "bob"], X)
    assert [one.revision for one in served] == [0, 1, 0, 0]
    assert [one.is_repeated for one in served] == [False, False, True, False]


def test_a_context_belongs_to_one_model_key_and_way_of_naming_people(model, tmp_path):
    log = open_log(tmp_path / "a.sqlite")
    Service(model, DRAWS, log)
    other = RandomizedRegressor(BayesianRidge(), 0.2).fit(table(200), linear_task(200)[1])
    refused(r"'2026-11' was opened with another model .*new context", Service, other, DRAWS, log)
    foreign = KeyedDraws(b"another key of these tests", "2026-11")
    refused(r"another key \([0-9a-f-]{19}, now [0-9a-f-]{19}\)", Service, model, foreign, log)
    naming = r"another way of naming people \(hash, now id\)"
    refused(naming, Service, model, DRAWS, log, person="id")
    Service(other, KeyedDraws(KEY, "2026-12"), log)
    assert [entry.id for entry in log.entries(kind="context")] == ["2026-11", "2026-12"]


def test_a_person_has_a_first_forecast_and_a_draw_in_each_context(model, tmp_path):
    log = open_log(tmp_path / "a.sqlite")
    for month in ("2026-11", "2026-12"):
        draws = KeyedDraws(KEY, month)
        served = Service(model, draws, log).forecast(17, ROW)
        assert (served.is_repeated, served.revision, served.context) == (False, 0, month)
        assert served.r == draws(["17"])[0]
    assert len(list(log.entries(kind="forecast"))) == 2


def test_contexts_that_look_alike_are_one_context_or_refused(model, tmp_path):
    """They would give one person two first forecasts, and accents do not change the draws."""
    log = open_log(tmp_path / "a.sqlite")
    first, again = (
        Service(model, KeyedDraws(KEY, name), log).forecast("ada", ROW)
        for name in ("Zoe\u0308", "Zo\u00eb")
    )
    assert (again.id, again.is_repeated, first.context) == (first.id, True, "Zo\u00eb")
    for name in (" a", "a\n", "a\u200b", "a\u3164", "\u202ea"):
        hidden = "name of a context must have no hidden"
        assert refused(hidden, Service, model, KeyedDraws(KEY, name), log).isascii()


def test_other_options_of_a_context_are_logged_once(model, tmp_path):
    log = open_log(tmp_path / "a.sqlite")
    for levels in ((0.5,), (0.1, 0.9), (0.5,), (0.1, 0.9)):
        service = Service(model, DRAWS, log, levels=levels)
    opened = [entry.values["levels"] for entry in log.entries(kind="context")]
    assert opened == [[0.5], [0.1, 0.9]]
    service.forecast(1, ROW)
    assert forecasts(service)[0].values["opened"] == 2


def test_ids_follow_the_rules_of_draws(model, tmp_path):
    service = Service(model, DRAWS, open_log(tmp_path / "a.sqlite"), person="id")
    for id in ("", "ada\u200b", 1.0, "17.0", "\ud800"):
        refused(r"^person must", service.forecast, id, ROW)
        refused(r"^people\[1\] must", service.forecast_many, ["ada", id], table(2))
    assert forecasts(service) == []


def test_neither_key_nor_id_nor_features_are_in_the_files_of_the_log(model, tmp_path):
    key, person, value = b"\x01\xfe secret key \x80 of bytes", "ada lovelace 1815", 0.123456789
    service = Service(model, KeyedDraws(key, "c"), open_log(tmp_path / "a.sqlite"))
    served = service.forecast(person, ROW | {"debt": value})
    service.close()
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert served.person.encode() in content
    for hidden in (key, key.hex().encode(), person.encode(), str(value).encode()):
        assert hidden not in content
    assert key.hex() not in repr(service)
    assert person not in json.dumps(served.to_dict())


def test_features_and_groups_are_logged_if_asked(model, tmp_path):
    options = {"keep_features": True, "groups": ["sex", "age"], "person": "id"}
    service = Service(model, DRAWS, open_log(tmp_path / "a.sqlite"), **options)
    service.forecast(1, ROW | {"sex": "f"})
    service.forecast_many([2, 3], table(2).assign(sex=["m", None]))
    first, second, third = (entry.values for entry in forecasts(service))
    assert first["features"] == {"age": 0.3, "income": -1.0, "debt": 2.0}
    assert first["groups"] == {"sex": "f", "age": 0.3}
    assert first["person"] == "1"
    assert [one["groups"]["sex"] for one in (second, third)] == ["m", None]
    # a column that the model does not use changes no forecast
    assert service.forecast(1, ROW | {"sex": "m"}).is_repeated
    groups_alone = Service(model, DRAWS, open_log(tmp_path / "b.sqlite"), groups=["sex"])
    groups_alone.forecast(1, ROW | {"sex": "f"})
    (entry,) = forecasts(groups_alone)
    assert entry.values["groups"] == {"sex": "f"}
    assert "features" not in entry.values


def test_a_refused_id_is_in_no_message_and_no_cause(service):
    person = "lovelace\n"
    with pytest.raises(InputError, match="an id that is not shown") as caught:
        service.forecast(person, ROW)
    assert "lovelace" not in "".join(traceback.format_exception(caught.value))


def test_a_bad_row_is_an_error_that_names_the_column(service):
    for changes, message in (
        ({"age": "old"}, r"column 'age', row 1 must be a number, got 'old'"),
        ({"age": [1]}, r"column 'age', row 1 must be a single value, got a list"),
        ({"age": math.inf}, r"column 'age', row 1 must lie between -1e\+150 and .*, got inf"),
        ({"age": 1e200}, r"column 'age', row 1 must lie between -1e\+150 and 1e\+150, got 1e\+200"),
        ({"age": 10**400}, r"column 'age'"),
        ({"age": object()}, r"column 'age'"),
        ({"age": None}, r"refuses the row \(.*\); columns without a value: 'age'"),
        ({"sex": "f"}, r"the row has an unknown column 'sex'; the model has only age, income"),
        ({"agee": 1}, r"the row has an unknown column 'agee'; did you mean 'age'\?"),
    ):
        refused(message, service.forecast, 1, ROW | changes)
    assert forecasts(service) == []


def test_a_row_of_another_form_is_refused(service):
    for row in (None, [1, 2, 3], "age", 3, {1, 2}):
        refused("row must be a mapping from column names to values", service.forecast, 1, row)
    refused("row must have one row, got 2 rows", service.forecast, 1, table(2))
    message = r"the row has no column 'age'; did you mean 'Age'\?"
    refused(message, service.forecast, 1, {"Age": 1, "income": 1, "debt": 1})
    refused(r"have one id per row \(2\), got 1 ids", service.forecast_many, [1], table(2))


def test_an_error_in_one_row_loses_nothing_that_was_logged(service, model, monkeypatch):
    monkeypatch.setattr("evenhand.service.service.BLOCK", 4)
    X = table(10).astype(object)
    X.iloc[6, 1] = "much"
    message = "column 'income', row 7 must be a number, got 'much'"
    refused(message, service.forecast_many, range(10), X)
    assert forecasts(service) == []
    # a row that only the model refuses
    X.iloc[6, 1] = None
    refused("columns without a value: 'income'", service.forecast_many, range(10), X)
    logged = [entry.id for entry in forecasts(service)]
    assert len(logged) == 4
    X.iloc[6, 1] = 0.5
    served = service.forecast_many(range(10), X)
    assert [one.id for one in served][:4] == logged
    assert [one.is_repeated for one in served] == [True] * 4 + [False] * 6
    assert verify(service.log).n_entries == 11


def bank():
    return BayesDecision(("yes", "no"), {"yes": StepLoss([0.5], [4.0, 0.0]), "no": 1.0})


def test_actions_are_those_of_the_served_forecast(model, tmp_path):
    X = table(20, 3)
    forecast = model.forecast(X, DRAWS(range(20)))
    by_loss = Service(model, DRAWS, open_log(tmp_path / "a.sqlite"), decide=bank())
    served = by_loss.forecast_many(range(20), X)
    assert [one.action for one in served] == bank().decide(forecast).chosen.tolist()
    assert {one.action for one in served} == {"yes", "no"}

    def grants(forecast):
        return forecast.cdf(0.0) < 0.5

    by_rule = Service(model, DRAWS, open_log(tmp_path / "b.sqlite"), decide=grants)
    for row in range(20):
        action = by_rule.forecast(row, X.iloc[row]).action
        assert action is bool(forecast.cdf(0.0)[row] < 0.5)


def test_a_rule_for_actions_that_is_wrong_logs_nothing(model, tmp_path):
    log = open_log(tmp_path / "a.sqlite")
    for actions, message in (
        (["yes", "no"], r"one action per row \(1\), got 2 actions"),
        ([math.nan], "must be finite JSON values"),
    ):
        service = Service(model, DRAWS, log, decide=lambda forecast, actions=actions: actions)
        refused(message, service.forecast, 1, ROW)
    assert forecasts(service) == []


@pytest.mark.parametrize("dtype", ["datetime64[ns]", "datetime64[us, Asia/Tokyo]"])
@pytest.mark.parametrize("value", ["2020-01-03", "2021-05-06T07:08:09.654321+02:00", None])
def test_dates_reach_the_model_as_its_own_reader_gives_them(dtype, value):
    days = pd.Series(pd.to_datetime(["2020-01-01", "2021-12-31"], utc=True))
    has_zone = "," in dtype
    days = (days if has_zone else days.dt.tz_localize(None)).astype(dtype)
    model = SimpleNamespace(schema_=Schema.learn(pd.DataFrame({"since": days})), n_features_in_=1)
    reader = FeatureReader(model)
    served = reader.table([reader.read({"since": value})])
    own = model.schema_.apply(pd.DataFrame({"since": pd.Series([value], dtype=object)}), "")
    pd.testing.assert_frame_equal(model.schema_.apply(served, ""), own)


N_PEOPLE = 40


def serve(seed, begin, log, folder):
    begin.wait(60)
    # a context that all processes open at once
    service, X = Service(folder / "model", DRAWS, open_log(log)), table(N_PEOPLE, 3)
    order = np.random.default_rng(seed).permutation(N_PEOPLE)
    served = {int(i): service.forecast(int(i), X.iloc[i]).to_dict() for i in order}
    (folder / f"{seed}.json").write_text(json.dumps(served))


def without_flag(answers):
    return [{**one, "is_repeated": None} for one in answers]


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_processes_on_one_log_give_one_answer_per_person(kind, model, request, tmp_path):
    where = str(tmp_path / "log.sqlite")
    if kind == "postgresql":
        where = str(request.getfixturevalue("postgresql").new_database())
    save(model, tmp_path / "model")
    forks = get_context("fork")
    begin = forks.Barrier(3)
    workers = [forks.Process(target=serve, args=(i, begin, where, tmp_path)) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(100)
        assert worker.exitcode == 0
    found = [json.loads((tmp_path / f"{seed}.json").read_text()) for seed in range(3)]
    log = open_log(where)
    entries = list(log.entries(kind="forecast"))
    assert len(entries) == N_PEOPLE
    assert len(list(log.entries(kind="context"))) == 1
    assert all(entry.values["revision"] == 0 for entry in entries)
    for person in map(str, range(N_PEOPLE)):
        answers = [one[person] for one in found]
        assert without_flag(answers) == without_flag(answers[:1] * 3)
        # one process logged it, and the others found it
        assert sum(not one["is_repeated"] for one in answers) == 1
    assert verify(log).n_entries == 1 + N_PEOPLE
    log.close()


class Refusing:
    """A forecaster that waits in its first call, and refuses some rows."""

    def __init__(self, model):
        self._model = model
        self.n_rows = []
        self.has_started = threading.Event()
        self.may_end = threading.Event()

    def __getattr__(self, name):
        return getattr(self._model, name)

    def forecast_and_predict(self, X, r):
        self.n_rows.append(len(X))
        self.has_started.set()
        self.may_end.wait(60)
        if (X["age"] > 9).any():
            raise InputError("age is too large")
        return self._model.forecast_and_predict(X, r)


@pytest.mark.parametrize("is_one_refused", [False, True])
def test_requests_that_wait_share_one_call_of_the_model_but_no_refusal(
    is_one_refused, model, service
):
    def ask(person, age):
        return service.forecast(person, ROW | {"age": age})

    slow, forecasting = Refusing(model), service._forecasting
    service._forecasting = replace(forecasting, model=slow)
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(ask, "first", 0.0)
        assert slow.has_started.wait(60)
        people = [(i, i / 10) for i in range(7)] + [("wrong", 10.0)] * is_one_refused
        calls = [pool.submit(ask, *one) for one in people]
        wait_for(lambda: len(service._computing._waiting) == len(calls))
        slow.may_end.set()
        found = [call.result(60) for call in calls[:7]]
        if is_one_refused:
            refused("age is too large", calls[7].result, 60)
    # all that wait in one call, and, if one row was refused, each by itself
    assert slow.n_rows == ([1, 8] + 8 * [1] if is_one_refused else [1, 7])
    np.testing.assert_array_equal([one.r for one in found], DRAWS(range(7)))
    service._forecasting = forecasting
    assert first.result().quantiles == ask("first", 0.0).quantiles
    assert [one.number for one in found] == [ask(i, i / 10).number for i in range(7)]
    assert len(forecasts(service)) == 8
