"""States of a watch: exact continuation, and refusal of other and damaged states."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from evenhand import InputError, Watch
from evenhand.certificates import Envelope, Promise
from evenhand.links import Entropic
from evenhand.monitoring import Rows

START = np.datetime64("2026-01-01T00:00", "us")
MINUTE = np.timedelta64(60_000_000, "us")
LINK = Entropic(0.12)
PROMISE = Promise("mean_pit", 0.2, 0.3, 0.95, LINK)


def random_rows(n: int, seed: int) -> Rows:
    """Rows with all parts: missing and late outcomes, repeated draws, several columns, a change."""
    random = np.random.default_rng(seed)
    times = START + np.sort(random.integers(0, 40 * 1440, size=n)) * MINUTE
    r = random.uniform(size=n)
    r[n // 2 :: 7] = r[: len(r[n // 2 :: 7])]
    base = random.uniform(size=n) ** np.where(np.arange(n) < n // 2, 1.0, 0.05)
    delay = random.exponential(1.5, size=n)
    town = random.integers(0, 2 + (np.arange(n) > n // 3) * 3).astype(object)
    town[random.uniform(size=n) < 0.05] = None
    return Rows.of(
        times,
        LINK.ppf(base, r),
        r=r,
        link=LINK,
        recorded=times + (delay * 1440).astype(np.int64) * MINUTE,
        horizon="8d",
        groups={"town": town, "age": random.uniform(20, 80, size=n)},
    )


def through_json(watch: Watch) -> Watch:
    return Watch.from_state(json.loads(json.dumps(watch.state(), allow_nan=False)))


def new_watch() -> Watch:
    return Watch(PROMISE, groups=["town", "age"], horizon="8d")


@pytest.mark.parametrize("seed", range(8))
def test_a_resumed_watch_equals_an_uninterrupted_one(seed: int) -> None:
    rows = random_rows(600, seed)
    random = np.random.default_rng(100 + seed)
    whole, parts = new_watch(), new_watch()
    # groups are learned from the first update, which is the same
    whole.update(rows.take(slice(0, 60)))
    parts.update(rows.take(slice(0, 60)))
    expected = whole.update(rows.take(slice(60, 600)), until="2026-03-01")
    cuts = [60, *np.sort(random.choice(np.arange(61, 600), size=25, replace=False)), 600]
    found = []
    for first, last in pairwise(cuts):
        parts = through_json(parts)
        found += parts.update(rows.take(slice(first, last)))
    parts = through_json(parts)
    found += parts.update(rows.take(slice(0, 0)), until="2026-03-01")
    assert expected
    assert found == expected
    assert parts.to_json() == whole.to_json()
    # the text also distinguishes -0.0 from 0.0
    assert json.dumps(parts.state()) == json.dumps(whole.state())


@pytest.mark.parametrize("seed", range(8))
def test_a_resumed_watch_of_unusual_columns_equals_an_uninterrupted_one(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(20, 150))
    low = random.uniform(size=n)
    high = low + (1 - low) * random.uniform(size=n) * (random.uniform(size=n) < 0.5)
    low[random.uniform(size=n) < 0.2] = np.nan
    columns = {
        "text": random.choice(np.array(["x", "y", None, "ü", "x = 1", "nan"], dtype=object), n),
        "few": random.choice([1.5, np.nan, 2, 3e20], n),
        "many": random.normal(size=n),
        "flag": random.choice([True, False], n),
        "date": np.datetime64("2020-01-01") + random.integers(0, 1000, size=n),
    }
    rows = Rows.of(
        START + np.sort(random.integers(0, 60 * 1440, size=n)) * MINUTE,
        (low, high),
        r=np.where(random.uniform(size=n) < 0.2, np.nan, random.uniform(1e-9, 1, size=n)),
        groups=columns,
    )
    period = ("hour", "day", "week", "month")[seed % 4]
    whole = Watch(groups=[*columns], period=period, false_alarm=0.3)
    # values that the first rows do not have define groups later
    first = int(random.integers(1, 20))
    whole.update(rows.take(slice(0, first)))
    parts = through_json(whole)
    whole.update(rows.take(slice(first, n)))
    for row in range(first, n, 7):
        parts = through_json(parts)
        parts.update(rows.take(slice(row, min(row + 7, n))))
    assert parts.to_json() == whole.to_json()
    assert json.dumps(parts.state()) == json.dumps(whole.state())


def test_a_state_continues_under_the_same_settings_only() -> None:
    watch = new_watch()
    watch.update(random_rows(100, 1))
    state = watch.state()
    assert Watch.from_state(state, like=new_watch()).state() == state
    other = Promise("mean_pit", 0.1, 0.3, 0.95, LINK)
    for like, message in [
        (Watch(other, groups=["town", "age"], horizon="8d"), "belongs to another certificate"),
        (Watch(groups=["town", "age"], horizon="8d"), "belongs to another certificate"),
        (Watch(PROMISE, groups=["town"], horizon="8d"), "groups is .* in the state, not"),
        (Watch(PROMISE, groups=["town", "age"], horizon="9d"), "horizon is 8.0 in the state"),
        (Watch(PROMISE, groups=["town", "age"], horizon="8d", tolerance=0.05), "tolerance is 0.02"),
    ]:
        with pytest.raises(InputError, match=message) as error:
            Watch.from_state(state, like=like)
        assert "\n" not in str(error.value)


def test_states_of_newer_versions_and_other_files_are_refused_in_one_line() -> None:
    state = new_watch().state()
    for wrong, message in [
        ({**state, "schema": "evenhand.watch-state/2"}, "newer version of evenhand; update"),
        ({**state, "schema": "evenhand.watch/1"}, "not the state of a watch"),
        ({}, "not the state of a watch"),
        ([1, 2], "not the state of a watch"),
        ("state", "not the state of a watch"),
    ]:
        with pytest.raises(InputError, match=message) as error:
            Watch.from_state(wrong)
        assert "\n" not in str(error.value)


PARTS = [("parts", name) for name in ("promise", "envelope", "group", "draws")]

FORGED = ["remove", "text", None, True, 1.5, -1, 10**30, np.nan, [], {}]
"""What takes the place of a value of a forged state."""


def paths_of(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all entries of nested dicts, and of the first and last entry of each list."""
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = [(i, value[i]) for i in sorted({0, len(value) - 1})] if value else []
    else:
        return [path]
    return [path, *(one for key, item in pairs for one in paths_of(item, (*path, key)))]


def forged(state: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a state with another value at a path, or without it."""
    found = copy.deepcopy(state)
    place = found
    for key in path[:-1]:
        place = place[key]
    if value == "remove":
        place.pop(path[-1])
    else:
        place[path[-1]] = value
    return found


@pytest.mark.parametrize("part", ["ledger", "promise", "envelope", "group", "draws"])
def test_a_forged_state_is_refused_in_one_line_or_is_a_watch(part: str) -> None:
    rows = random_rows(400, 2)
    end = START + 4 * 1440 * MINUTE
    first = rows.take(rows.time < end)
    envelope = Envelope(((0.05, 0.06),), ((0.05, 0.06),))
    promise = Promise("mean_pit", 0.2, 0.3, 0.95, LINK, envelope)
    watch = Watch(promise, groups=["town", "age"], horizon="8d", false_alarm=0.9)
    watch.update(first)
    # with alarms and a notice, as these outcomes are much higher
    n, r = 60, np.linspace(0.1, 0.9, 60)
    table = {"town": [1] * n, "age": [30.0] * n}
    high = LINK.ppf(np.full(n, 0.999), r)
    watch.update(Rows.of(np.repeat(end, n), high, r=r, link=LINK, groups=table))
    assert watch.alarms
    assert watch.notices
    state = json.loads(json.dumps(watch.state()))
    paths = [
        path
        for path in paths_of(state)[1:]
        if (path[:2] == ("parts", part) if part != "ledger" else path[:2] not in PARTS)
    ]
    refused, n_valid = [], 0
    for path in paths:
        for value in FORGED:
            try:
                resumed = Watch.from_state(forged(state, path, value))
                # refused here if the rows do not belong to it, such as those of another link
                resumed.update(rows.take((rows.time > end) & (rows.time < end + 2880 * MINUTE)))
            except InputError as error:
                refused.append(str(error))
                continue
            resumed.summary()
            json.dumps([resumed.to_dict(), resumed.state()], allow_nan=False)
            n_valid += 1
    assert len(refused) > 4 * n_valid
    assert not [message for message in refused if "\n" in message or len(message) > 300]


def test_states_are_small_and_do_not_share_memory() -> None:
    watch = new_watch()
    watch.update(random_rows(300, 3))
    state = watch.state()
    kept = copy.deepcopy(state)
    watch.update(
        Rows.of(["2026-06-01"], [0.5], r=[0.5], link=LINK, groups={"town": [1], "age": [3]})
    )
    assert state == kept
    resumed = Watch.from_state(state)
    resumed.update(
        Rows.of(["2026-06-01"], [0.5], r=[0.5], link=LINK, groups={"town": [1], "age": [3]})
    )
    assert state == kept
    assert resumed.state() == watch.state()
    # of a year and ten groups: evidence per day and test, draws, bins
    assert len(json.dumps(state)) < 200_000
