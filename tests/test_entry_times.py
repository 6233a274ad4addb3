"""Wrong clocks: few wrong readings move no other entry, and no answer is lost."""

import logging
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from evenhand import Watch
from evenhand.service import (
    Entry,
    EntryTimes,
    LogWatch,
    WatchedContexts,
    open_log,
    replay_forecast,
    verify,
)
from watched_logs import append, clock, entries_at, fitted, serve

PRESENT = datetime(2026, 3, 5, tzinfo=UTC)
READINGS = {"ahead": "2027-02-01T12:00:00.000000Z", "reset": "1970-01-01T00:00:07.000000Z"}


def text(time):
    return f"{time.astype('datetime64[us]')}Z"


def days(*numbers):
    """Times in days since 1 March."""
    start = np.datetime64("2026-03-01", "us")
    return [text(start + np.timedelta64(round(one * 86_400e6), "us")) for one in numbers]


@pytest.mark.parametrize("seed", range(4))
def test_few_wrong_readings_move_no_other(seed):
    random = np.random.default_rng(seed)
    true = np.sort(random.uniform(0, 30, size=200))
    read = true.copy()
    # runs of up to ten entries, at the ends too
    wrong = np.zeros(200, dtype=bool)
    for start in (0, *random.integers(0, 190, size=3), 195):
        wrong[start : start + random.integers(1, 11)] = True
        read[start : start + 11] += random.choice([-20_000.0, 365.0])
    read = np.where(wrong, read, true)
    with clock() as set_time:
        set_time(datetime(2026, 4, 1, tzinfo=UTC))
        times = EntryTimes.of(days(*read))
    expected = np.array([one[:-1] for one in days(*true)], dtype="datetime64[us]")
    np.testing.assert_array_equal(times.earliest[~wrong], expected[~wrong])
    np.testing.assert_array_equal(times.latest[~wrong], expected[~wrong])
    # and theirs are between those of their neighbours
    assert (times.earliest[wrong] <= expected[wrong]).all()
    assert (times.latest[wrong] >= expected[wrong]).all()
    assert len(times.wrong) == wrong.sum()


def test_a_wrong_clock_is_written_as_it_is_and_reported_at_once(tmp_path, caplog):
    log = open_log(tmp_path / "log.sqlite")
    with clock() as set_time, caplog.at_level(logging.WARNING):
        for hours in (0, 24 * 365, 1, 2):
            set_time(PRESENT + timedelta(hours=hours))
            log.run(lambda found: found.add(Entry("context", "2026")))
    expected = [*("2026-03-05T00", "2027-03-05T00", "2026-03-05T01", "2026-03-05T02")]
    assert [entry.time[:13] for entry in log.entries()] == expected
    with clock() as set_time:
        set_time(PRESENT + timedelta(days=1))
        assert verify(log).times.wrong == ["2 (2027-03-05T00:00)"]
    log.close()
    (message,) = [record.getMessage() for record in caplog.records]
    assert "log.sqlite: entry 3 is at 2026-03-05T01:00" in message
    assert "but entry 2 before it at 2027-03-05T00:00" in message


def test_a_replay_names_the_entries_at_which_a_clock_was_wrong(place, tmp_path):
    log = open_log(with_readings(place, tmp_path, {5: READINGS["reset"]}))
    found = replay_forecast(log, next(log.entries(kind="forecast")).id, fitted())
    log.close()
    assert found.clock.startswith(
        "a clock was wrong at 1 entry of the log, number 5 (1970-01-01T00"
    )
    assert found.to_dict()["log"]["clock"] == found.clock
    assert found.clock in " ".join(found.summary().split())


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Return a log of 600 forecasts, of which those of women are wrong from day 15 on."""
    found = tmp_path_factory.mktemp("clocks") / "log.sqlite"
    serve(fitted(), found, 30, broken_from=15)
    return found


@pytest.fixture(scope="module")
def right(place):
    """Return the watch over this log, where no clock is wrong."""
    return watched(place)


def watched(place, until=PRESENT, state=None):
    log = open_log(place)
    scope = None if state is None else state.scope
    watch = Watch(groups=["sex"], matures_after="7d")
    found = LogWatch(log, WatchedContexts.of(log, before=scope), watch, state)
    with clock() as set_time:
        set_time(until)
        found.update()
    log.close()
    return found


def with_readings(place, folder, readings):
    copy = folder / "copy.sqlite"
    append(copy, entries_at(place), readings)
    return copy


def evidence(found):
    """Return what does not depend on the day in which a single row is counted."""
    values = found.to_dict()
    alarms = [
        {name: one[name] for name in ("part", "group", "direction", "since", "n_rows")}
        for one in values["alarms"]
    ]
    counts = {name: values[name] for name in ("n_rows", "n_missing", "n_late")}
    return {"alarms": alarms, "counts": counts, "groups": [one["n"] for one in values["groups"]]}


@pytest.mark.parametrize(
    ("kind", "where", "reading"),
    [
        ("forecast", "first", "ahead"),
        ("forecast", "start", "reset"),
        ("outcome", "start", "ahead"),
        ("forecast", "middle", "ahead"),
        ("outcome", "middle", "reset"),
        ("forecast", "end", "ahead"),
        ("outcome", "last", "reset"),
    ],
)
def test_one_wrong_reading_changes_no_alarm_and_loses_no_answer(
    place, right, tmp_path, kind, where, reading
):
    entries = entries_at(place)
    mine = [entry.number for entry in entries if entry.kind == kind]
    places = {"first": 1, "start": mine[0], "middle": mine[len(mine) // 2], "end": mine[-1]}
    number = (places | {"last": entries[-1].number})[where]
    wrong = watched(with_readings(place, tmp_path, {number: READINGS[reading]}))
    assert right.watch.alarms
    assert evidence(wrong) == evidence(right)
    named = f"a clock was wrong at 1 entry of the log, number {number} ({READINGS[reading][:16]})"
    assert [note for note in wrong.notes if named in note]
    assert not right.verified.times.note


def test_a_watch_in_many_runs_equals_one_run_also_where_clocks_are_wrong(place, right, tmp_path):
    entries = entries_at(place)
    chosen = np.random.default_rng(3).choice(len(entries), size=25, replace=False) + 1
    readings = {int(number): READINGS[("ahead", "reset")[number % 2]] for number in chosen}
    whole = watched(with_readings(place, tmp_path, readings))
    growing, state = tmp_path / "growing.sqlite", None
    n_read = 0
    for day in range(1, 60, 5):
        until = datetime(2026, 1, 5, 12, tzinfo=UTC) + timedelta(days=day)
        new = [one for one in entries[n_read:] if one.time < until.isoformat()]
        append(growing, new, readings)
        n_read += len(new)
        state = watched(growing, min(until, PRESENT), state).state()
    assert n_read == len(entries)
    last = watched(growing, PRESENT, state)
    for one in (whole, last):
        assert len(one.verified.times.wrong) == 25
    values = [one.to_dict() | {"sources": None} for one in (whole, last)]
    assert values[0] == values[1]
    assert evidence(last) == evidence(right)


def test_a_reading_that_later_entries_prove_wrong_moves_no_row_back(place, tmp_path):
    # the clock is three days ahead in the last entries, and forecasts mature after an hour
    entries = entries_at(place)[:600]
    day = entries[400].time[:10]
    ahead = f"{np.datetime64(day) + 3}T12:00:00.000000Z"
    readings = {one.number: ahead for one in entries if one.time[:10] == day}
    copy = tmp_path / "copy.sqlite"
    log = open_log(copy)
    before = [one for one in entries if one.time[:10] <= day]
    append(copy, before, readings)
    found = []
    watch = Watch(matures_after="1h")
    looks = LogWatch(log, WatchedContexts.of(log), watch)
    with clock() as set_time:
        set_time(datetime.fromisoformat(ahead) + timedelta(hours=2))
        looks.update()
        found.append(looks.watch.to_dict()["n_rows"])
        append(copy, entries[len(before) :], {})
        set_time(PRESENT)
        looks.update()
    log.close()
    assert found == [sum(one.kind == "forecast" for one in before)]
    n_all = sum(one.kind == "forecast" for one in entries)
    assert looks.watch.to_dict()["n_rows"] == n_all
