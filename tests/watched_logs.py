"""Decision logs of many days, with a clock that is set, for tests of watches."""

from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import BayesianRidge

from evenhand import RandomizedRegressor, Service
from evenhand.draws import KeyedDraws
from evenhand.service import Entry, log_watch, open_log
from evenhand.service import log as log_module

KEY = b"a secret of enough bytes"
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
PER_DAY = 20


@contextmanager
def clock():
    """Let a function set the time of the entries of logs, and of their readers."""

    class Clock(datetime):
        time = START

        @classmethod
        def now(cls, tz=None):
            return cls.time

    with pytest.MonkeyPatch.context() as patch:
        for module in (log_module, log_watch):
            patch.setattr(module, "datetime", Clock)
        yield lambda time: setattr(Clock, "time", time)


def people(n, seed):
    """Return features, and outcomes of which the model knows the distribution."""
    random = np.random.default_rng(seed)
    X = pd.DataFrame({"age": random.uniform(20, 80, n), "sex": random.choice(["f", "m"], n)})
    return X, X["age"].to_numpy() / 10 + random.normal(size=n)


def fitted(seed=0):
    X, y = people(400, seed)
    return RandomizedRegressor(BayesianRidge(), 0.1, random_state=seed).fit(X[["age"]], y)


def serve(model, place, n_days, *, context="2026", broken_from=None, first=0, missing=0.05):
    """Log forecasts of some days, and outcomes, women's higher by 3 from `broken_from` on."""
    X, y = people(n_days * PER_DAY, 7 + first)
    day = np.repeat(np.arange(first, first + n_days), PER_DAY)
    if broken_from is not None:
        y += 3.0 * ((X["sex"] == "f") & (day >= broken_from)).to_numpy()
    random = np.random.default_rng(1 + first)
    delay = np.where(random.random(day.size) < missing, 9, random.integers(1, 7, day.size))
    known = random.random(day.size) > missing
    ids = np.full(day.size, "", dtype=object)
    with clock() as set_time:
        set_time(START + timedelta(days=first))
        service = Service(model, KeyedDraws(KEY, context), open_log(place), groups=["sex"])
        for now in range(first, first + n_days + 10):
            set_time(START + timedelta(days=int(now), hours=1))
            for row in np.flatnonzero(known & (day + delay == now)):
                service.record_outcome(ids[row], float(y[row]))
            rows = np.flatnonzero(day == now)
            set_time(START + timedelta(days=int(now), hours=2))
            if rows.size:
                names = [f"p{first}-{row}" for row in rows]
                served = service.forecast_many(names, X.iloc[rows])
                ids[rows] = [one.id for one in served]
    service.close()


def entries_at(place):
    log = open_log(place)
    found = list(log.entries())
    log.close()
    return found


def append(place, entries, readings):
    """Append entries of another log, with the readings of its clock except those that are given."""
    log = open_log(place)
    with clock() as set_time:

        def add(transaction):
            for one in entries:
                set_time(datetime.fromisoformat(readings.get(one.number, one.time)))
                transaction.add(Entry(one.kind, one.id, one.request, one.subject, one.values))

        log.run(add)
    log.close()
