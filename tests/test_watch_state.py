"""States of a watch: exact continuation, and refusal of other and damaged states."""

from __future__ import annotations

import copy
import json
from itertools import pairwise

import numpy as np
import pytest

from complaints import refused
from evenhand import Watch
from evenhand.certificates import Promise
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
        matures_after="8d",
        groups={"town": town, "age": random.uniform(20, 80, size=n)},
    )


def through_json(watch: Watch) -> Watch:
    return Watch.from_state(json.loads(json.dumps(watch.state(), allow_nan=False)))


def new_watch() -> Watch:
    return Watch(PROMISE, groups=["town", "age"], matures_after="8d")


@pytest.mark.parametrize("seed", range(4))
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


@pytest.mark.parametrize("seed", range(4))
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
        (
            Watch(other, groups=["town", "age"], matures_after="8d"),
            "belongs to another certificate",
        ),
        (Watch(groups=["town", "age"], matures_after="8d"), "belongs to another certificate"),
        (Watch(PROMISE, groups=["town"], matures_after="8d"), "groups is .* in the state, not"),
        (
            Watch(PROMISE, groups=["town", "age"], matures_after="9d"),
            "matures_after is 8.0 in the state",
        ),
        (
            Watch(PROMISE, groups=["town", "age"], matures_after="8d", tolerance=0.05),
            "tolerance is 0.02",
        ),
    ]:
        refused(message, Watch.from_state, state, like=like)


def test_other_files_and_damaged_states_are_refused_in_one_line() -> None:
    watch = new_watch()
    watch.update(random_rows(100, 1))
    state = watch.state()
    for wrong, message in [
        ({**state, "schema": "evenhand.watch-state/2"}, "not the state of a watch"),
        ([1, 2], "not the state of a watch"),
        ({name: one for name, one in state.items() if name != "tests"}, "watch is damaged"),
        ({**state, "settings": None}, "watch is damaged"),
        ({**state, "tests": {}}, "watch is damaged"),
    ]:
        refused(message, Watch.from_state, wrong)


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
