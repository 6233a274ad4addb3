"""Watches of simulated forecasts, as the values of their JSON."""

import functools
from copy import deepcopy
from dataclasses import replace

import numpy as np
from scipy import stats

from evenhand import Watch
from evenhand.certificates import Promise, certify_link
from evenhand.links import Entropic
from evenhand.monitoring import Rows

EVIL = "<script>alert(1)</script>"
LINK = Entropic(0.12)
SOURCES = {
    "log": "decisions.sqlite",
    "contexts": ["loans 2026"],
    "model_sha256": "a3" * 32,
    "key": "5f2b90c1",
    "certificate": "model",
    "n_entries": 8001,
    "head_sha256": "0c" * 32,
    "evenhand": "0.1.0",
    "command": "evenhand watch decisions.sqlite --certificate model --matures-after 30d",
}


@functools.cache
def watched(n_days, kinds=("woman", "man"), since=np.inf, is_event=False):
    """Right forecasts of 20 people a day, whose outcomes are higher from a day on."""
    random = np.random.default_rng(n_days)
    day = np.repeat(np.arange(n_days), 20)
    time = np.datetime64("2026-01-05T00:00", "us") + day * np.timedelta64(1, "D")
    u, r = stats.norm.cdf(random.normal(size=day.size) + (day >= since)), random.random(day.size)
    of_people = {
        "groups": {"kind": random.choice(np.array(kinds, dtype=object), day.size)},
        # one of 30 comes late, and one of 25 never
        "recorded": time + (random.exponential(9, day.size) * 86_400e6).astype("m8[us]"),
        "matures_after": "30d",
    }
    pit = np.where(random.random(day.size) < 0.04, np.nan, LINK.ppf(u, r))
    if is_event:
        promise = Promise("bias", 0.2, 0.08, 0.95)
        rows = {"outcome": u < 0.01, "probability": np.full(day.size, 0.01)}
    else:
        proven = certify_link((np.arange(2000) + 0.5) / 2000, LINK).promise(0.2)
        promise = replace(proven, target=0.3)
        rows = {"pit": pit, "r": r, "link": LINK}
    watch = Watch(promise, groups=["kind"], matures_after="30d")
    watch.update(Rows.of(time, **rows, **of_people))
    return watch.to_dict() | {"n_waiting": 1489, "n_repeated": 0, "sources": SOURCES}


def values_of(*args, **options):
    return lambda: deepcopy(watched(*args, **options))


def empty():
    """Return a watch before anything matured."""
    new = Watch(groups=["sex"], period="week", matures_after=30)
    return new.to_dict() | {"n_waiting": 214}


def hostile():
    values = deepcopy(watched(60, (EVIL, "a\x1b[31m & b", "\u202eright to left", "x" * 400), 20))
    log = "</script><img src=x onerror=alert(1)>"
    return values | {"sources": SOURCES | {"contexts": [EVIL], "log": log}}


REGIONS = tuple(f"region {i}" for i in range(60))
WATCHES = {
    "quiet": values_of(200),
    "alarm": values_of(270, since=220),
    "years": values_of(600, since=520),
    "many": values_of(250, REGIONS, since=200),
    "events": values_of(120, is_event=True),
    "empty": empty,
    "hostile": hostile,
}
