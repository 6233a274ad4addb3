"""Decision logs of all kinds: entries, transactions, threads and forks."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from complaints import refused
from evenhand import InputError
from evenhand.service import Entry, Head, open_log, verify
from log_writers import confirmed_after_kills, filled, forecast, held, in_fork, n_waiting, wait_for
from repeats import repeats, statistical


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request, tmp_path):
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgresql").new_database())
    return str(tmp_path / "log.sqlite")


@pytest.fixture
def log(where):
    opened = open_log(where)
    yield opened
    opened.close()


def test_an_entry_is_found_as_it_was_added(log):
    values = {
        "mean": 0.1 + 0.2,
        "text": "Zoë\0\u2028",
        "none": None,
        "nested": [{"b": 1, "a": -0.0}],
    }
    (added,) = log.run(lambda t: t.add(Entry("forecast", "one", "q", "s", values)))
    assert added.values == values
    assert (added.number, added.previous, len(added.sha256)) == (1, "0" * 64, 64)
    for found in (*log.forecasts("request", ["q"]), log.get("one"), *log.entries()):
        assert found == added
    assert log.head() == Head(1, added.sha256)


def test_what_is_not_in_the_log_is_not_found(log):
    assert (log.get("one"), log.head(), list(log.entries())) == (None, None, [])
    log.run(lambda t: t.add(Entry("context", "one", "q")))
    assert log.get("one") is None  # a context is no forecast
    assert (log.get("\ud800"), log.get("\0"), log.get(None)) == (None, None, None)


def test_a_transaction_sees_what_is_in_the_log_and_what_it_added(log):
    log.run(lambda t: t.add(forecast("a")))

    def work(transaction):
        assert transaction.n_of("ada") == {"ada": 1}
        added = transaction.add(forecast("b"), forecast("c"))
        found = transaction.find("request-c", "request-b", "request-a", "request-none")
        assert sorted(found) == ["request-a", "request-b", "request-c"]
        assert [found["request-a"].number, found["request-b"], found["request-c"]] == [1, *added]
        n = transaction.n_of("ada", "bob")
        return n["ada"], n["bob"]

    assert log.run(work) == (3, 0)
    assert verify(log).n_entries == 3


def test_entries_come_in_order_after_a_number_and_of_a_kind(log):
    log.run(lambda t: t.add(Entry("context", "c", "c")))
    filled(log, 2500)  # several pages
    log.run(lambda t: t.add(Entry("outcome", "id-7", values={"y": 1})))
    assert [entry.number for entry in log.entries()] == list(range(1, 2503))
    assert [entry.number for entry in log.entries(after=2500)] == [2501, 2502]
    assert [entry.kind for entry in log.entries(kind="outcome")] == ["outcome"]
    assert sum(1 for _ in log.entries(after=1, kind="forecast")) == 2500
    assert list(log.entries(after=9999)) == []


def test_entries_are_those_of_the_moment_when_reading_began(log):
    filled(log, 1500)
    reading = log.entries()
    first = next(reading)
    log.run(lambda t: t.add(forecast("later")))
    assert [first.number, *(entry.number for entry in reading)] == list(range(1, 1501))


def test_a_work_that_fails_leaves_nothing(log):
    def fails(transaction):
        transaction.add(forecast("a"))
        raise KeyError("own error")

    with pytest.raises(KeyError, match="own error"):
        log.run(fails)
    assert log.head() is None
    assert log.run(lambda t: (t.n_of("ada")["ada"], t.add(forecast("a"))[0].number)) == (0, 1)


def test_a_failing_work_takes_no_other_work_of_its_group_with_it(log):
    """All threads wait for one that is in its work, so that the next group has all of them."""

    def numbered(i):
        def work(transaction):
            (added,) = transaction.add(forecast(str(i)))
            if i % 3 == 0:
                raise KeyError(i)
            return added.values["name"]

        return work

    with held(log, 17) as (pool, first, may_end):
        calls = [pool.submit(log.run, numbered(i)) for i in range(16)]
        wait_for(lambda: n_waiting(log) == 16)
        may_end.set()
        assert first.result() is None
        for i, call in enumerate(calls):
            if i % 3 == 0:
                assert isinstance(call.exception(), KeyError)
                assert call.exception().args == (i,)
            else:
                assert call.result() == str(i)
    names = sorted(int(entry.values["name"]) for entry in log.entries())
    assert names == [i for i in range(16) if i % 3]
    assert verify(log).n_entries == 10


def test_requests_and_ids_of_forecasts_are_unique(log):
    log.run(lambda t: t.add(forecast("a")))
    same_request, same_id = Entry("forecast", "x", "request-a"), Entry("forecast", "id-a", "x")
    for wrong in ([same_request], [same_id], [forecast("b")] * 2):
        refused(
            "is in the log already", log.run, lambda t, some=wrong: [t.add(one) for one in some]
        )
    log.run(lambda t: [t.add(Entry("outcome", "id-a")) for _ in range(2)])
    assert log.head().number == 3


def test_a_refused_entry_takes_no_other_work_of_its_group_with_it(log):
    """One work of the group adds what another adds, and one what the log has."""
    log.run(lambda t: t.add(forecast("a")))
    names = ["b", "c", "b", "a"]
    with held(log, len(names) + 1) as (pool, first, may_end):
        calls = [pool.submit(log.run, lambda t, name=n: t.add(forecast(name))) for n in names]
        wait_for(lambda: n_waiting(log) == len(names))
        may_end.set()
        assert first.result() is None
        b, c, again, a = (isinstance(call.exception(), InputError) for call in calls)
    assert (b != again, c, a) == (True, False, True)
    assert sorted(entry.id for entry in log.entries()) == ["id-a", "id-b", "id-c"]
    assert verify(log).n_entries == 3


def test_an_entry_that_cannot_be_stored_is_refused(log):
    for value in (float("nan"), {1, 2}):
        entry = Entry("forecast", "a", values={"y": value})
        refused("must be finite JSON values", log.run, lambda t, entry=entry: t.add(entry))
    assert log.head() is None


def test_a_work_must_not_call_run(log):
    with pytest.raises(RuntimeError, match="add to the transaction"):
        log.run(lambda t: log.run(lambda t: None))
    assert log.run(lambda t: 3) == 3


def test_32_threads_lose_and_repeat_nothing(log):
    def serve(thread):
        return [
            log.run(lambda t, i=i: t.add(forecast(f"{thread}-{i}")))[0].number for i in range(20)
        ]

    with ThreadPoolExecutor(32) as pool:
        numbers = [number for served in pool.map(serve, range(32)) for number in served]
    assert sorted(numbers) == list(range(1, 641))
    expected = {f"{thread}-{i}" for thread in range(32) for i in range(20)}
    assert {entry.values["name"] for entry in log.entries()} == expected
    assert verify(log).n_entries == 640


def test_readers_do_not_wait_for_a_writer(log):
    log.run(lambda t: t.add(forecast("a")))

    def read(transaction):
        transaction.add(forecast("b"))
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: [log.get("id-b"), verify(log).n_entries]).result(30)

    assert log.run(read) == [None, 1]


def test_a_writer_that_never_ends_is_named(log, where, monkeypatch):
    monkeypatch.setattr("evenhand.service.log.PATIENCE_SECONDS", 1)
    other = open_log(where)
    message = "another process has been writing for 60 seconds; end it"
    refused(message, other.run, lambda _: log.run(lambda t: t.add(forecast("a"))))
    other.close()
    assert log.get("id-a") is None
    assert log.run(lambda t: t.add(forecast("a")))[0].number == 1


@statistical
def test_killed_writers_lose_nothing_that_was_confirmed(where, writers, tmp_path):
    """No entry may be lost in any round: there is no false alarm."""
    confirmed_after_kills(writers, where, tmp_path, rounds=repeats(50, least=7))


def test_a_fork_and_its_parent_go_on_with_one_log(log):
    filled(log, 2)
    assert in_fork(lambda: log.run(lambda t: t.add(forecast("fork")))) == 0
    log.run(lambda t: t.add(forecast("parent")))
    assert in_fork(log.close) == 0
    assert [entry.values["name"] for entry in log.entries()] == ["0", "1", "fork", "parent"]
    assert verify(log).n_entries == 4
