"""Rows for the watch, made from a log: cells, maturity, and what does not enter."""

import numpy as np
import pytest
from scipy import stats

from complaints import refused
from evenhand.distributions import as_hurdle
from evenhand.forecast import Forecast
from evenhand.monitoring import Watch
from evenhand.service import Entry, matured_rows, record_outcome
from repeats import most_failures, repeats, statistical
from served_examples import EXAMPLES, LogInMemory, example, inside, open_context, serve, values_of

N_PEOPLE = 12


def watched(log, **options):
    """Return rows that mature after a week, a year after the start."""
    return matured_rows(log, **({"matures_after": "7d", "until": "2027-01-01"} | options))


def with_outcomes(one):
    log = LogInMemory()
    open_context(log)
    r = serve(log, one)
    for row, y in enumerate(one.y):
        record_outcome(log.at(days=1), f"f{row}", y)
    return log, r


# The values of rows, beside direct computation with the model.


@pytest.mark.parametrize("name", EXAMPLES)
def test_pits_are_those_of_the_forecaster(name):
    one = example(name)
    log, r = with_outcomes(one)
    rows = watched(log)
    assert rows.known.all()
    for found, expected in zip(rows.pit, one.served(r).pit_interval(one.y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    if one.has_draw:
        np.testing.assert_array_equal(rows.r, r)
    else:
        assert rows.r is None
    assert (rows.excess is None) == (name != "events")
    if rows.excess is not None:
        np.testing.assert_allclose(rows.excess, one.y - one.model.predict(one.X), atol=1e-12)


@pytest.mark.parametrize("name", ["normal", "residuals", "bounded", "counts"])
def test_base_pits_are_those_inside_the_link(name):
    one = example(name)
    log, r = with_outcomes(one)
    rows = watched(log)
    base, link = inside(one.served(r))
    for found, expected in zip(rows.base, Forecast(base).pit_interval(one.y), strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
    # the link maps them to the served ones, and back: u = K(c; r) (outcomes: 6)
    for u, c in zip(rows.base, rows.pit, strict=True):
        np.testing.assert_allclose(u, link.cdf(c, r), atol=1e-9)


def test_the_promise_for_amounts_covers_outcomes_off_the_atom():
    one = example("hurdle")
    log, _ = with_outcomes(one)
    rows = watched(log)
    np.testing.assert_array_equal(rows.promised, one.y > 0)
    # given that the outcome is not zero, the PIT is that of the continuous part
    base = as_hurdle(inside(one.served(np.full(len(one.y), 0.5)))[0])
    part = base.positive.cdf(np.where(one.y > 0, one.y, 1.0))
    for end in rows.base:
        np.testing.assert_allclose(end[rows.promised], part[rows.promised], atol=1e-12)
    # whether a missing amount is zero is not known
    open_context(other := LogInMemory())
    serve(other, one)
    assert watched(other).promised.all()


def served_first():
    log = LogInMemory()
    open_context(log)
    serve(log, example("normal"))
    return log


def test_an_outcome_exactly_in_time_counts_and_a_microsecond_later_is_late():
    log = served_first()
    record_outcome(log.at(days=7), "f0", 0.1)
    record_outcome(log.at(days=7, microseconds=1), "f1", 0.2)
    rows = watched(log)
    assert rows.known.tolist()[:3] == [True, False, False]
    assert np.isnan(rows.pit[0][1])
    np.testing.assert_allclose(rows.delay[:2], [7.0, 7.0 + 1 / 86_400_000_000], rtol=1e-15)
    assert np.isnan(rows.delay[2])


def test_a_look_is_at_what_had_matured_by_then():
    log = served_first()
    record_outcome(log.at(days=1), "f0", 0.1)
    assert len(watched(log, until="2026-01-08")) == len(example("normal").y)
    early = watched(log, until="2026-01-07T23:59:59.999999Z")
    assert early.time.size == 0
    assert early.r is None
    before = watched(log, until="2026-01-10")
    for name in ("f0", "f1"):
        record_outcome(log.at(days=20), name, 5.0)
    after = watched(log, until="2026-01-10")
    np.testing.assert_array_equal(before.pit[0], after.pit[0])
    np.testing.assert_array_equal(before.delay, after.delay)
    refused("matures_after must be", watched, log, matures_after="soon")
    refused("until must be a date or time, got 'tomorrow'", watched, log, until="tomorrow")


def test_the_last_outcome_in_time_counts():
    log = served_first()
    record_outcome(log.at(days=1), "f0", -1.0)
    record_outcome(log.at(days=2), "f0", 1.0)
    record_outcome(log.at(days=8), "f0", -2.0)
    other = served_first()
    record_outcome(other.at(days=2), "f0", 1.0)
    assert watched(log).pit[0][0] == watched(other).pit[0][0]
    # a forecast has its outcome since the first record
    assert watched(log).delay[0] == 1.0


def test_revisions_and_other_contexts_do_not_enter():
    log = LogInMemory()
    open_context(log)
    open_context(log, "other")
    n = len(example("normal").y)
    serve(log, example("normal"))
    serve(log.at(hours=1), example("normal"), context="other", prefix="g")
    serve(log.at(hours=2), example("normal"), revision=1, prefix="r")
    assert watched(log, contexts="loans").time.size == n
    assert (watched(log, contexts=["other"]).time == np.datetime64("2026-01-01T01")).all()
    refused(r"no context 'loan', only .*did you mean 'loans'", watched, log, contexts="loan")


def test_many_forecasts_are_read_in_blocks(monkeypatch):
    log, _ = with_outcomes(example("counts"))
    whole = watched(log)
    monkeypatch.setattr("evenhand.service.matured.BLOCK", 7)
    parts = watched(log)
    for one, other in zip((*whole.pit, *whole.base), (*parts.pit, *parts.base), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    np.testing.assert_array_equal(whole.r, parts.r)


def test_a_missing_entry_and_a_record_that_cannot_be_read_are_named():
    log = served_first()
    del log._entries[3]
    refused("entry 4 is missing", watched, log)
    log = served_first()
    next(log.entries(kind="forecast")).values["record"] = {"family": "norml"}
    refused(r"entries 2 to 61: .*'normal'", watched, log)


def add_forecast(log, context, person, y):
    values = values_of(context, person, {"family": "normal", "loc": 0.0, "scale": 1.0})
    id = f"{context} {person}"
    log.run(lambda found: found.add(Entry("forecast", id, id, None, values)))
    log.run(lambda found: found.add(Entry("outcome", id, f"{id} y", None, {"y": y})))


def test_a_person_counts_once_with_the_first_forecast():
    log = LogInMemory()
    for month, people in enumerate(("ab", "bc", "ad")):
        open_context(log.at(days=30 * month), f"{month}")
        for person in people:
            add_forecast(log, f"{month}", person, ord(person) - 97.0 + 10 * month)
    np.testing.assert_array_equal(watched(log).pit[0], stats.norm.cdf([0, 1, 12, 23]))
    # alone, and in another order of the names
    assert len(watched(log, contexts="2")) == 2
    assert len(watched(log, contexts=["2", "1"])) == 4


def test_people_under_another_key_count_as_new_but_ids_do_not():
    for mode, expected in (("hash", 4), ("id", 2)):
        log = LogInMemory()
        for month in range(2):
            open_context(log.at(days=30 * month), f"{month}", key=f"k{month}", person=mode)
            for person in "ab":
                add_forecast(log, f"{month}", person, 0.0)
        assert len(watched(log)) == expected


def test_contexts_of_another_model_do_not_enter():
    log = LogInMemory()
    for name, model in (("a", "m"), ("b", "other"), ("c", "m")):
        open_context(log, name, model_sha256=model)
        add_forecast(log, name, f"p{name}", 0.0)
    assert len(watched(log)) == 2
    assert len(watched(log, contexts="b")) == 1
    open_context(log, "d", link="entropic", alpha=0.1)
    refused("have different links", watched, log, contexts=["a", "d"])


def has_false_alarm(seed, *, is_new_key):
    """Watch the same people for twelve months: 95% of the variance is the person's own."""
    random = np.random.default_rng(seed)
    own = random.normal(size=N_PEOPLE)
    log = LogInMemory()
    for month in range(12):
        open_context(
            log.at(days=30 * month), f"{month}", key=f"k{month * is_new_key}", person="hash"
        )
        for person in range(N_PEOPLE):
            y = 0.95**0.5 * own[person] + 0.05**0.5 * random.normal()
            add_forecast(log, f"{month}", f"{person}", float(y))
    watch = Watch(matures_after="7d", period="month")
    watch.update(watched(log))
    assert watch.to_dict()["n_rows"] == (12 * N_PEOPLE if is_new_key else N_PEOPLE)
    return bool(watch.alarms)


@statistical
def test_people_who_come_again_raise_no_false_alarms():
    # the second bound fails with a probability below 1e-6 if the rate is below 5%
    n = repeats(80, least=40)
    first = sum(has_false_alarm(seed, is_new_key=False) for seed in range(n))
    every = sum(has_false_alarm(seed, is_new_key=True) for seed in range(n))
    assert first <= most_failures(n)
    assert every > most_failures(n)
