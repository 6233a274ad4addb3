"""Replay of logged forecasts: what is equal, what differs, and what cannot be compared."""

import json
from typing import get_args

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import BayesianRidge, LinearRegression

from complaints import refused
from evenhand import RandomizedRegressor, Service
from evenhand.draws import KeyedDraws
from evenhand.service import Check, Difference, Entry, open_log, replay_forecast
from evenhand.service.contexts import versions
from evenhand.service.replay import ReplayPart
from served_examples import EXAMPLES, example

KEY = b"a secret of enough bytes"
CONTEXT = "2026-11"
ROW = {"x": 0.5, "z": 0.25}


@pytest.fixture
def log(tmp_path):
    found = open_log(tmp_path / "log.sqlite")
    yield found
    found.close()


def draws(key=KEY, context=CONTEXT):
    return KeyedDraws(key, context)


def service(log, **options):
    return Service(example("normal").model, draws(), log, **options)


def parts(replay, status):
    return {check.part for check in replay.checks if check.status == status}


EVERY_PART = set(get_args(ReplayPart))


def rewritten(served, log, **changes):
    """Log a forecast with changed values, as a service that forges them would; return its id."""
    entry = log.get(served.id)
    forged = Entry(
        "forecast", f"forged {sorted(changes.items())}", None, None, entry.values | changes
    )
    return log.run(lambda found: found.add(forged))[0].id


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_forecast_of_each_kind_is_equal_to_all_digits(name, log):
    one = example(name)
    found = Service(one.model, draws(), log)
    served = found.forecast("ada", one.X.iloc[[3]])
    replay = found.replay(served.id, row=one.X.iloc[3], person="ada")
    assert parts(replay, "equal") == EVERY_PART
    assert replay.is_equal
    assert replay.is_identical
    assert not any(check.differences for check in replay.checks)


def test_an_action_is_compared_by_a_service_with_the_rule(log):
    def lend(forecast):
        return ["yes" if value > 0 else "no" for value in forecast.ppf(0.25)]

    found = service(log, decide=lend)
    served = found.forecast("ada", ROW)
    assert found.replay(served.id, row=ROW, person="ada").is_equal
    other = service(log, decide=lambda forecast: ["never"] * len(forecast))
    replay = other.replay(served.id, row=ROW, person="ada")
    assert [check for check in replay.checks if check.differences] == [replay.of("values")]
    assert replay.of("values").differences == (Difference("action", served.action, "never"),)
    without = replay_forecast(log, served.id, example("normal").model, row=ROW)
    assert without.of("values").text.endswith(
        "the action was not compared, as its rule is not given"
    )


def test_another_model_is_named_with_its_values(log):
    served = service(log).forecast("ada", ROW)
    one = example("normal")
    other = RandomizedRegressor(BayesianRidge(), 0.1, random_state=0).fit(one.X, one.y)
    replay = replay_forecast(log, served.id, other, draws=draws(), row=ROW, person="ada")
    assert parts(replay, "differs") == {"model", "values"}
    assert replay.status == "differs"
    found = {one.name: one for one in replay.of("values").differences}
    assert set(found) == {*(f"quantile {level}" for level in served.quantiles), "mean"}
    r = served.r
    expected = other.forecast(pd.DataFrame([ROW]), [r]).ppf(0.25)[0]
    median = found["quantile 0.25"]
    assert (median.logged, median.found) == (served.quantiles["0.25"], pytest.approx(expected))


def test_a_model_with_other_columns_is_another_model(log):
    served = service(log).forecast("ada", ROW)
    one = example("normal")
    X = one.X.rename(columns={"z": "w"})
    other = RandomizedRegressor(BayesianRidge(), 0.1, random_state=0).fit(X, one.y)
    replay = replay_forecast(log, served.id, other, row=ROW)
    assert parts(replay, "differs") == {"model"}
    assert "the model cannot read them: the row has no column 'w'" in replay.of("features").text
    # with the same model, the row is wrong
    refused("the row has no column 'z'", service(log).replay, served.id, row={"x": 1.0})


def test_another_key_and_another_context_are_named(log):
    served = service(log).forecast("ada", ROW)
    model = example("normal").model
    other = draws(KEY + b"!")
    replay = replay_forecast(log, served.id, model, draws=other, row=ROW, person="ada")
    assert parts(replay, "differs") == {"key", "draw"}
    expected = (Difference("fingerprint", draws().fingerprint, other.fingerprint),)
    assert replay.of("key").differences == expected
    # names depend on the key: nothing is known of the person
    assert parts(replay, "not checked") == {"person"}
    other = draws(context="2026-12")
    replay = replay_forecast(log, served.id, model, draws=other, row=ROW, person="ada")
    assert parts(replay, "differs") == {"context", "draw"}
    assert KEY.decode() not in replay.summary() + json.dumps(replay.to_dict())


def test_another_person_is_named(log):
    for naming in ("hash", "id"):
        context = f"by {naming}"
        found = Service(example("normal").model, draws(context=context), log, person=naming)
        replay = found.replay(found.forecast("ada", ROW).id, row=ROW, person="bob")
        assert parts(replay, "differs") == {"person"}
        # the draw of somebody else shows nothing
        assert parts(replay, "not checked") == {"draw"}


def test_columns_that_differ_are_named_if_the_log_has_the_features(log):
    changed = ROW | {"z": 0.75}
    served = service(log).forecast("ada", ROW)
    replay = service(log).replay(served.id, row=changed, person="ada")
    assert [one.name for one in replay.of("features").differences] == ["sha256"]
    assert "the log has only their hash" in replay.of("features").text
    kept = service(log, keep_features=True).forecast("bob", ROW)
    replay = service(log).replay(kept.id, row=changed, person="bob")
    assert replay.of("features").differences == (Difference("z", 0.25, 0.75),)
    assert parts(replay, "differs") == {"features", "values"}


def test_a_draw_that_was_chosen_is_found(log):
    class Chosen(KeyedDraws):
        def __call__(self, ids):
            return np.maximum(super().__call__(ids), 0.987)

    forged = Service(example("normal").model, Chosen(KEY, CONTEXT), log)
    served = forged.forecast("ada", ROW)
    assert served.r == 0.987
    replay = service(log).replay(served.id, row=ROW, person="ada")
    # everything else is consistent with the draw that was logged
    assert parts(replay, "differs") == {"draw"}
    (difference,) = replay.of("draw").differences
    assert (difference.logged, difference.found) == (0.987, draws()(["ada"])[0])


def test_a_quantile_that_was_changed_before_it_was_logged_is_found(log):
    found = service(log)
    served = found.forecast("ada", ROW)
    forged = rewritten(served, log, quantiles=served.quantiles | {"0.5": 1.0})
    replay = found.replay(forged, row=ROW, person="ada")
    assert parts(replay, "differs") == {"record", "values"}
    assert [one.name for one in replay.of("record").differences] == ["quantile 0.5"]
    # without the features it shows too
    replay = found.replay(forged, person="ada")
    assert parts(replay, "differs") == {"record"}
    assert replay.status == "differs"


@pytest.mark.parametrize("name", ["events", "counts", "hurdle"])
def test_records_of_other_kinds_are_compared(name, log):
    one = example(name)
    found = Service(one.model, draws(), log)
    served = found.forecast("ada", one.X.iloc[[3]])
    assert found.replay(served.id).of("record").status == "equal"
    changes = {"probability": 0.123}
    if name != "events":
        changes = {"quantiles": served.quantiles | {"0.95": served.quantiles["0.95"] + 9}}
    assert parts(found.replay(rewritten(served, log, **changes)), "differs") == {"record"}


def test_tolerances_do_not_depend_on_the_unit_of_the_outcome(log):
    one = example("normal")
    for unit in (1e-9, 1e9):
        model = RandomizedRegressor(LinearRegression(), 0.1, random_state=0).fit(
            one.X, one.y * unit
        )
        found = Service(model, draws(context=f"{unit}"), log)
        served = found.forecast("ada", ROW)
        middle = served.quantiles["0.5"]
        for change, is_equal in ((1e-12, True), (1e-7, False)):
            quantiles = served.quantiles | {"0.5": middle + change * unit}
            forged = rewritten(served, log, quantiles=quantiles)
            assert found.replay(forged, row=ROW, person="ada").is_equal is is_equal


def test_other_libraries_alone_are_no_difference(log, monkeypatch):
    served = service(log).forecast("ada", ROW)
    now = versions() | {"numpy": "99.0"}
    del now["scipy"]
    monkeypatch.setattr("evenhand.service.replay.versions", lambda: now)
    model = example("normal").model
    replay = replay_forecast(log, served.id, model, draws=draws(), row=ROW, person="ada")
    assert replay.is_equal
    before = versions()
    assert replay.of("libraries") == Check(
        "libraries",
        "differs",
        "the values are nevertheless equal",
        (Difference("numpy", before["numpy"], "99.0"), Difference("scipy", before["scipy"], None)),
    )
    assert "scipy: " in replay.summary()
    assert "nothing now; the values are nevertheless equal" in " ".join(replay.summary().split())
    replay = replay_forecast(log, served.id, model, row=ROW | {"x": 2.0})
    assert replay.of("libraries").text == "they may be why values differ"


def test_libraries_are_those_of_the_time_of_the_forecast(log, monkeypatch):
    first = service(log).forecast("ada", ROW)
    before = versions()
    monkeypatch.setattr("evenhand.service.service.versions", lambda: before | {"numpy": "99.0"})
    second = service(log).forecast("bob", ROW)
    model = example("normal").model
    assert replay_forecast(log, first.id, model).of("libraries").status == "equal"
    (difference,) = replay_forecast(log, second.id, model).of("libraries").differences
    assert difference == Difference("numpy", "99.0", before["numpy"])


def test_without_features_and_person_the_rest_is_compared(log):
    found = service(log)
    served = found.forecast("ada", ROW)
    replay = found.replay(served.id)
    assert parts(replay, "not checked") == {"person", "features", "draw", "values"}
    assert parts(replay, "differs") == set()
    assert (replay.status, replay.is_equal, replay.is_identical) == ("incomplete", False, None)
    assert "not computed again" in replay.summary().splitlines()[0]
    bare = replay_forecast(log, served.id, example("normal").model)
    assert parts(bare, "not checked") == {"person", "features", "draw", "values", "key"}


def test_an_unknown_id_is_refused_with_similar_ones(log):
    found = service(log)
    served = found.forecast("ada", ROW)
    refused(f"did you mean '{served.id}'", found.replay, served.id[:8])
    refused("has no forecast 'other'; it has 1 forecast; give", found.replay, "other")


def test_text_and_json_name_each_part(log):
    found = service(log)
    replay = found.replay(found.forecast("ada", ROW).id, row=ROW, person="ada")
    text, values = replay.summary(), replay.to_dict()
    head = log.head()
    # as text to be noted as the anchor of later replays
    assert f"{head.number}:{head.sha256}" in text
    assert [one["part"] for one in values["checks"]] == list(get_args(ReplayPart))
    assert json.loads(json.dumps(values, allow_nan=False)) == values
