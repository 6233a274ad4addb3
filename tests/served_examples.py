"""Fitted forecasters of each kind of outcome, and their forecasts in a log."""

import json
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression

from evenhand import RandomizedRegressor
from evenhand._validate import Floats
from evenhand.distributions import Hurdle, Randomized, to_records
from evenhand.draws import fresh
from evenhand.forecasters import (
    ClassifierForecaster,
    CountRegressor,
    HurdleRegressor,
    PAICRegressor,
)
from evenhand.service import DecisionLog, Entry, Head, Logged
from evenhand.service.log import person_subject


@dataclass(frozen=True)
class Example:
    """A fitted forecaster with rows that it has not seen."""

    model: Any
    X: pd.DataFrame
    y: Floats
    has_draw: bool = True

    def served(self, r):
        return self.model.forecast(self.X, r if self.has_draw else None)


def inside(forecast):
    """Return the distributions inside a link, and the link; the served ones and None without."""
    served = forecast.distribution
    if isinstance(served, Randomized):
        return served.base, served.link
    if isinstance(served, Hurdle) and isinstance(served.positive, Randomized):
        part = served.positive
        return Hurdle(served.chance, part.base, served.at, served.end), part.link
    return served, None


N_TRAIN, N_NEW = 300, 60


def rows(seed):
    random = np.random.default_rng(seed)
    n = N_TRAIN + N_NEW
    return pd.DataFrame({"x": random.normal(size=n), "z": random.uniform(size=n)}), random


def fitted(model, X, y, **facts):
    model.fit(X[:N_TRAIN], y[:N_TRAIN])
    return Example(model, X[N_TRAIN:].reset_index(drop=True), y[N_TRAIN:], **facts)


def normal():
    X, random = rows(1)
    y = X["x"].to_numpy() + random.normal(size=len(X))
    return fitted(RandomizedRegressor(BayesianRidge(), 0.1, random_state=0), X, y)


def residuals():
    X, random = rows(2)
    y = X["x"].to_numpy() + random.exponential(size=len(X))
    return fitted(RandomizedRegressor(LinearRegression(), 0.1, random_state=0), X, y)


def bounded():
    X, random = rows(3)
    y = np.exp(X["x"].to_numpy() + random.normal(size=len(X)))
    model = RandomizedRegressor(LinearRegression(), 0.2, support=(0.0, None), random_state=0)
    return fitted(model, X, y)


def paic():
    X, random = rows(4)
    y = X["x"].to_numpy() + random.normal(size=len(X))
    return fitted(PAICRegressor(0.2, hidden=(16, 16), max_steps=60, random_state=0), X, y)


def counts():
    X, random = rows(5)
    y = random.poisson(np.exp(1 + 0.3 * X["x"].to_numpy())).astype(np.float64)
    inner = CountRegressor(random_state=0)
    return fitted(RandomizedRegressor(inner, 0.1, random_state=0), X, y)


def hurdle():
    X, random = rows(6)
    size = np.exp(X["x"].to_numpy() + random.normal(size=len(X)))
    y = np.where(random.uniform(size=len(X)) < 0.5, 0.0, size)
    inner = HurdleRegressor(LogisticRegression(), LinearRegression(), random_state=0)
    return fitted(RandomizedRegressor(inner, 0.1, random_state=0), X, y)


def events():
    X, random = rows(7)
    y = (random.uniform(size=len(X)) < 1 / (1 + np.exp(-X["x"].to_numpy()))).astype(np.float64)
    return fitted(ClassifierForecaster(LogisticRegression()), X, y, has_draw=False)


EXAMPLES = {one.__name__: one for one in (normal, residuals, bounded, paic, counts, hurdle, events)}


@cache
def example(name):
    return EXAMPLES[name]()


def open_context(log, name="loans", **values):
    usual = {"context": name, "person": "id", "key": "0000-0000-0000-0000", "groups": []}
    usual |= {"model_sha256": "m", "outcome": "continuous", "link": None, "alpha": None}
    log.run(lambda found: found.add(Entry("context", name, f"open {name}", None, usual | values)))


def values_of(context, person, record, **others):
    """Return the values of a logged forecast; by default it has no draw and no link."""
    values = dict.fromkeys(("r", "mean", "probability", "link", "alpha"))
    values |= {"context": context, "person": person, "record": record, "revision": 0}
    return values | {"features_sha256": "", "groups": {}} | others


def serve(log, one, *, context="loans", revision=0, prefix="f"):
    """Log the forecasts of an example under ids "f0", "f1", ..., and return their draws."""
    r = fresh(len(one.X), 0)
    distribution, link = inside(one.served(r))
    records = json.loads(json.dumps(to_records(distribution)))
    for row, record in enumerate(records):
        others = {"revision": revision, "groups": {"z": float(one.X["z"][row])}}
        if one.has_draw:
            others["r"] = float(r[row])
        if link is not None:
            others |= {"link": link.name, "alpha": float(link.alpha)}
        values = values_of(context, f"p{row}", record, **others)
        subject = person_subject(context, f"p{row}")
        entry = Entry("forecast", f"{prefix}{row}", f"{context} {row} {revision}", subject, values)
        log.run(lambda found, entry=entry: found.add(entry))
    return r


START = datetime(2026, 1, 1, tzinfo=UTC)
"""Time of the first entries."""


class LogInMemory(DecisionLog):
    """Entries in a list, with their numbers as hashes; each has the time of `clock`."""

    def __init__(self):
        self.source = "memory"
        self.clock = START
        self._entries = []

    def at(self, **since):
        """Set the clock to a time since the start, and return the log."""
        self.clock = START + timedelta(**since)
        return self

    def run(self, work):
        before = list(self._entries)
        try:
            return work(self)
        except BaseException:
            self._entries = before
            raise

    def find(self, *requests):
        return {str(one.request): one for one in self._entries if one.request in requests}

    def n_of(self, *subjects):
        return Counter(str(one.subject) for one in self._entries if one.subject in subjects)

    def add(self, *entries):
        time = f"{self.clock:%Y-%m-%dT%H:%M:%S.%f}Z"
        n = len(self._entries)
        for i, entry in enumerate(entries, n):
            chain = {"previous": f"{i:064}", "sha256": f"{i + 1:064}"}
            self._entries.append(Logged(**asdict(entry), number=i + 1, time=time, **chain))
        return self._entries[n:]

    def get(self, id):
        mine = (one for one in self._entries if one.kind == "forecast")
        return next((one for one in mine if one.id == id), None)

    def entries(self, *, after=0, kind=None):
        listed = list(self._entries)
        return (one for one in listed[after:] if kind in (None, one.kind))

    def forecasts(self, by, values):
        wanted = set(values)
        return (one for one in self.entries(kind="forecast") if getattr(one, by) in wanted)

    def head(self):
        return Head(len(self._entries), "0" * 64) if self._entries else None

    def close(self):
        pass
