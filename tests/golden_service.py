"""Golden numbers of served forecasts: watches, decision logs, stored models, tables of commands."""

import functools
import itertools
import sqlite3
import unittest.mock
import warnings
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import BaseEstimator, clone
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import (
    BayesianRidge,
    LinearRegression,
    PoissonRegressor,
    QuantileRegressor,
)
from sklearn.tree import DecisionTreeClassifier

# every import from the package stands here: a refactor may edit these lines, and nothing below them
from evenhand import ForecastColumns, Service, Watch, load, save
from evenhand.certificates import Envelope, Promise
from evenhand.draws import KeyedDraws
from evenhand.forecasters import (
    BoostedDistributionRegressor,
    ClassifierForecaster,
    CountRegressor,
    HurdleRegressor,
    MixtureMLPRegressor,
    PAICRegressor,
    RandomizedRegressor,
    RecalibratedRegressor,
)
from evenhand.links import Entropic
from evenhand.monitoring import Rows
from evenhand.service import Entry, export, matured_rows, open_log, record_outcomes, verify
from golden_data import (
    FEATURES,
    GRID,
    HORIZON,
    KEY,
    command,
    forecaster,
    forecasts_of,
    key_file,
    outcomes_of,
    people,
)
from golden_files import CASES, case, cells

DAYS, PER_DAY, CHANGE = 40, 20, 15
N = DAYS * PER_DAY
DAY = np.repeat(np.arange(DAYS), PER_DAY)
TIME = np.datetime64("2026-01-05T08:00") + DAY.astype("timedelta64[D]")
LINK = Entropic(0.2)


def moved(u, how):
    """Return numbers that are uniform until a day, and then not."""
    other = {
        "higher": 1 - (1 - u) ** 2,
        "lower": u * u,
        "extreme": np.where(u < 0.5, 2 * u * u, 1 - 2 * (1 - u) ** 2),
        "central": 0.25 + u / 2,
        "none": u,
    }[how]
    return np.where(DAY < CHANGE, u, other)


@functools.cache
def uniform(seed):
    """Return numbers from 0.001 to 0.999: Cells or draws of right forecasts."""
    return 0.001 + 0.998 * np.random.default_rng(seed).random(N)


GROUPS = pd.DataFrame({"sex": np.where(uniform(9) < 0.4, "f", "m"), "age": 20 + 50 * uniform(8)})
"""Columns of groups."""


def rows_of(how="none", draws="none", *, is_linked=True):
    """Return served rows whose base PITs, or whose draws, change after some days."""
    u, r = moved(uniform(1), how), moved(uniform(2), draws)
    pit = LINK.ppf(u, r) if is_linked else u
    return Rows.of(TIME, pit, r=r, link=LINK if is_linked else None, groups=GROUPS)


def events(how):
    p = 0.1 + 0.8 * uniform(4)
    outcome = (uniform(5) < moved(p, how)).astype(float)
    return Rows.of(TIME, outcome=outcome, probability=p, groups=GROUPS)


def partial(how):
    """Return rows of amounts, of which the promise covers two in three."""
    u, r = moved(uniform(1), how), uniform(2)
    pit = LINK.ppf(u, r)
    covered = np.arange(N) % 3 > 0
    return Rows(TIME, np.ones(N, bool), (pit, pit), r, (u, u), promised=covered, link=LINK)


def late(how):
    """Return rows with outcomes that come late or never."""
    u = np.where(np.arange(N) % 17 == 0, np.nan, moved(uniform(1), how))
    delay = np.where(np.arange(N) % 13 == 0, 9, 1 + np.arange(N) % 6)
    recorded = TIME + delay.astype("timedelta64[D]")
    return Rows.of(TIME, u, recorded=recorded, matures_after="7d", groups=GROUPS)


ENVELOPE = Envelope(low=((0.05, 0.08), (0.1, 0.14)), high=((0.05, 0.08),))
MEAN_PIT = Promise("mean_pit", 0.2, 0.35, 0.95, LINK, ENVELOPE)

WATCHES = {
    # the promise of each statistic, on each side
    "promise higher": (lambda: Watch(MEAN_PIT), lambda: rows_of("higher")),
    "promise lower": (lambda: Watch(MEAN_PIT, period="week"), lambda: rows_of("lower")),
    "promise gap": (
        lambda: Watch(Promise("gap", 0.5, 0.4, 0.95)),
        lambda: rows_of("higher", is_linked=False),
    ),
    "promise bias higher": (
        lambda: Watch(Promise.of_bias(-0.45, 0.42, mass=0.5, confidence=0.95)),
        lambda: events("higher"),
    ),
    "promise bias lower": (
        lambda: Watch(Promise.of_bias(-0.42, 0.45, mass=0.5, confidence=0.95)),
        lambda: events("lower"),
    ),
    "promise off an atom": (
        lambda: Watch(Promise("mean_pit", 0.2, 0.35, 0.95, LINK, atom=0.0)),
        lambda: partial("higher"),
    ),
    # named groups in each direction
    "groups higher": (lambda: Watch(groups=["sex", "age"]), lambda: rows_of("higher")),
    "groups lower": (lambda: Watch(groups=["sex"]), lambda: rows_of("lower", is_linked=False)),
    "groups narrow": (lambda: Watch(groups=["sex"]), lambda: rows_of("extreme", is_linked=False)),
    "groups wide": (Watch, lambda: rows_of("central", is_linked=False)),
    "events higher": (lambda: Watch(groups=["sex"]), lambda: events("higher")),
    "events lower": (lambda: Watch(groups=["sex"], tolerance=0.05), lambda: events("lower")),
    # draws that are not fair
    **{
        f"draws {how}": (lambda: Watch(groups=["sex"]), functools.partial(rows_of, draws=how))
        for how in ("higher", "lower", "extreme", "central")
    },
    "late outcomes": (lambda: Watch(tolerance=0.01, matures_after="7d"), lambda: late("higher")),
    "nothing changes": (lambda: Watch(MEAN_PIT, groups=["sex", "age"]), rows_of),
}


@case
def alarms(folder):
    """Watches in which each test alarms: promises, groups and draws, in each direction."""
    return {name: watched(make(), rows()) for name, (make, rows) in WATCHES.items()}


def watched(watch, rows):
    cuts = (0, 300, 310, N)
    for start, stop in itertools.pairwise(cuts):
        watch.update(rows.take(slice(start, stop)))
        watch = Watch.from_state(watch.state(), like=watch)
    said = watch.to_dict()
    left_out = ("settings", "dates", "schema", "tests")
    kept = {name: value for name, value in said.items() if name not in left_out}
    # evidence at some periods
    kept["tests"] = [
        [one["part"], one["group"], one["direction"], one["threshold"], one["log_evidence"][::13]]
        for one in said["tests"]
    ]
    return kept


@contextmanager
def clock():
    """Let the times of entries be a minute apart."""

    class Clock(datetime):
        n_asked = 0

        @classmethod
        def now(cls, tz=None):
            cls.n_asked += 1
            return datetime(2026, 1, 5, 9, tzinfo=UTC) + timedelta(minutes=cls.n_asked)

    with unittest.mock.patch.multiple("evenhand.service.log", datetime=Clock):
        yield


VALUES = (
    {"context": "Zoë & co", "person": "hash", "levels": [0.05, 0.5], "groups": [], "b": None},
    {"r": 0.1, "record": {"family": "normal", "loc": -0.0, "scale": 1e-300}, "link": "entropic"},
    {"y": 12345678.9, "is_known": True, "n": 2**53, "text": 'line\n"quoted" \u2028 \U0001f600'},
    {"z": [[1, 2.5], {}], "a": 5e22, "A": 0.30000000000000004},
)


@case
def log_chain(folder):
    """Content and hashes of entries in SQLite, exact to the byte."""
    kinds = ("context", "forecast", "outcome", "forecast")
    entries = [
        Entry(kind, f"id-{i}", f"request-{i}", None if i == 0 else f"subject-{i % 2}", values)
        for i, (kind, values) in enumerate(zip(kinds, VALUES, strict=True))
    ]
    with clock():
        log = open_log(folder / "log.sqlite")
        for entry in entries:
            log.run(lambda found, entry=entry: found.add(entry))
    hashes = [entry.sha256 for entry in log.entries()]
    said = {"log.sqlite": [str(log.head()), verify(log).n_entries, hashes]}
    export(log, folder / "exported.parquet")
    log.close()
    with sqlite3.connect(folder / "log.sqlite") as database:
        listed = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = sorted(name for (name,) in listed if not name.startswith("sqlite_"))
        said["rows"] = {
            table: [list(row) for row in database.execute(f"SELECT * FROM {table}")]
            for table in tables
        }
    database.close()
    exported = pd.read_parquet(folder / "exported.parquet")
    return said | {"columns": list(exported), "exported": exported["sha256"].to_list()}


NUMERIC = ["age", "rooms"]


def tree():
    return DecisionTreeClassifier(max_depth=3, random_state=0)


OF_MACHINE = ("model_sha256", "versions", "unstored")
"""Values of entries that depend on the versions of libraries; with them the hashes do."""


@case
def log_of_a_service(folder):
    """Rows that a service logs, what it answers, outcomes, rows of a watch, and a replay."""
    table = people(12, 31)
    said = {}
    for name, (model, options) in served_models().items():
        with clock():
            log = open_log(folder / f"{name}.sqlite")
            service = Service(model, KeyedDraws(KEY, "2026-11"), log, groups=["region"], **options)
            ids = table["id"].to_list()
            rows = table[FEATURES] if name == "normal" else table[[*NUMERIC, "region"]]
            with warnings.catch_warnings(action="ignore"):  # of values that training never had
                first = service.forecast(ids[0], rows[:1])
                many = service.forecast_many(ids[:6], rows[:6])
                revised = service.forecast(ids[0], rows[6:7])
            service.record_outcome(many[1].id, 1.0, time="2026-01-06T10:00")
            record_outcomes(log, [one.id for one in many[2:4]], [1.0, 0.0])
            replay = service.replay(first.id, row=rows[:1], person=ids[0])
        matured = matured_rows(log, matures_after="1d", until="2026-02-01")
        said[name] = {
            "entries": [logged(entry) for entry in log.entries()],
            "revised": [revised.id, revised.revision, revised.quantiles, list(revised.warnings)],
            "repeated": [one.is_repeated for one in (first, *many)],
            "replay": [[check.part, check.status] for check in replay.checks],
            "matured": {"known": matured.known, "pit": matured.pit, "r": matured.r}
            | {"base": matured.base, "time": [str(time) for time in matured.time]},
        }
        log.close()
    return said


def logged(entry):
    values = {name: value for name, value in entry.values.items() if name not in OF_MACHINE}
    names = ("number", "time", "kind", "id", "request", "subject")
    return {name: getattr(entry, name) for name in names} | {"values": values}


@functools.cache
def served_models():
    table = people(300, 32)
    event = (table["y"] > table["mean"]).astype(float)
    classifier = ClassifierForecaster(tree()).fit(table[NUMERIC], event)
    return {
        "normal": (forecaster(), {"keep_features": True, "levels": [0.1, 0.9]}),
        "events": (classifier, {"person": "id"}),
    }


class Shifted(BaseEstimator):
    """Model of another library: `pred_dist` returns an object with `ppf`."""

    def fit(self, X, y):
        self.shift_ = float(np.mean(y))
        return self

    def predict(self, X):
        return self.shift_ + 0.01 * np.asarray(X["age"], dtype=float)

    def pred_dist(self, X):
        return stats.norm(self.predict(X), 1.5)


def known(X):
    """Predict times from the age, which a model file stores by name."""
    return forecasts_of("cut times", X)


NETWORK = {"hidden": (8, 8), "max_steps": 20, "random_state": 0, "device": "cpu"}
ONE = {"random_state": 0}


def mixture():
    return MixtureMLPRegressor(2, 2, **NETWORK)


MODELS = {
    # forecasters
    "PAIC": (PAICRegressor(0.2, **NETWORK), "y"),
    "mixture": (mixture(), "y"),
    "boosted": (BoostedDistributionRegressor(20, min_child_samples=10, cv=2, **ONE), "amount"),
    "classifier": (ClassifierForecaster(tree()), "event"),
    "default classifier": (ClassifierForecaster(**ONE), "event"),
    "classifier of scores": (ClassifierForecaster(tree()), "score"),
    "counts": (CountRegressor(DummyRegressor(), **ONE), "count"),
    "default counts": (CountRegressor(**ONE), "count"),
    "hurdle": (HurdleRegressor(tree(), BayesianRidge(), **ONE), "cost"),
    "recalibrated": (RecalibratedRegressor(BayesianRidge(), by="rooms", **ONE), "y"),
    "recalibrated overlapping": (
        RecalibratedRegressor(BayesianRidge(), by={"old": "age > 50", "large": "rooms > 2"}, **ONE),
        "y",
    ),
    "recalibrated events": (
        RecalibratedRegressor(ClassifierForecaster(tree()), by="rooms", **ONE),
        "event",
    ),
    "recalibrated counts": (
        RecalibratedRegressor(CountRegressor(DummyRegressor(), **ONE), by="rooms", **ONE),
        "count",
    ),
    "recalibrated hurdle": (
        RecalibratedRegressor(HurdleRegressor(tree(), BayesianRidge(), **ONE), by="rooms", **ONE),
        "cost",
    ),
    # kinds of bases
    "around a forecaster": (RandomizedRegressor(mixture(), 0.3, **ONE), "y"),
    "around members": (RandomizedRegressor([BayesianRidge(), BayesianRidge()], **ONE), "y"),
    "around a function": (RandomizedRegressor(known, 0.2, **ONE), "time"),
    "around a classifier": (RandomizedRegressor(tree(), **ONE), "score"),
    "around ppf": (RandomizedRegressor(Shifted(), 0.2, "laplace", **ONE), "y"),
    "around counts": (
        RandomizedRegressor(PoissonRegressor(tol=1e-10, max_iter=1000), **ONE),
        "count",
    ),
    "around quantiles": (RandomizedRegressor(QuantileRegressor(alpha=0.0), 0.2, **ONE), "y"),
    "around std": (
        RandomizedRegressor(BayesianRidge(), 0.2, "gaussian", recalibrate=True, **ONE),
        "y",
    ),
    "around residuals": (RandomizedRegressor(LinearRegression(), **ONE), "y"),
    "around constant residuals": (
        RandomizedRegressor(LinearRegression(), spread="constant", support=(0.0, None), **ONE),
        "amount",
    ),
    "around a hurdle": (
        RandomizedRegressor(HurdleRegressor(tree(), BayesianRidge(), **ONE), **ONE),
        "cost",
    ),
}
"""Each class of forecasters and kind of base, and the column of its outcomes."""


@case
def stored_models(folder):
    """Forecasts of each class of forecasters and kind of base, equal after `save` and `load`."""
    table, rows = people(240, 33), people(4, 34)[NUMERIC]
    y = table["y"].to_numpy()
    outcomes = {
        "y": y,
        "amount": (y - y.min()) ** 2 + 0.5,
        "event": (y > table["mean"]).astype(float),
        "score": np.clip(np.round(y / 4), 0, 4),
        "count": np.clip(np.floor(y), 0, None),
        "cost": np.maximum(y - 7.0, 0.0),
        "time": np.minimum(np.abs(y) + 0.25, 8.0),
    }
    said = {}
    for name, (example, column) in MODELS.items():
        with warnings.catch_warnings(action="ignore"):  # of models that are stored by their names
            model = clone(example).fit(table[NUMERIC], outcomes[column])
            save(model, folder / name)
            inner = {"around a function": known, "around ppf": getattr(model, "estimator_", None)}
            again = load(folder / name, *([inner[name]] if name in inner else []))
            pair = [one.forecast(rows, r=[0.1, 0.4, 0.6, 0.95]) for one in (model, again)]
        numbers = [[one.ppf([0.1, 0.9]), one.cdf(4.0), one.cdf(0.0), one.mean()] for one in pair]
        said[name] = {
            "kind": str(pair[0].outcome_kind),
            "numbers": numbers[0],
            "is equal": all(map(np.array_equal, *numbers)),
        }
    return said


def table_of(folder, kind, n=5, seed=35, *, known=False):
    """Write rows with forecasts of a kind in columns, and their outcomes if they are known."""
    table = people(n, seed)
    forecast = forecasts_of(kind, table)
    columns = {"id": table["id"], "region": table["region"].fillna("none")}
    columns |= {"member": table["member"].astype(int)}
    if kind == "normal":
        columns |= {"mu": table["mean"], "sigma": table["std"]}
    elif kind == "counts":
        columns |= {"rate": forecast.mean()}
    elif kind == "scores":
        columns |= {f"p{k}": forecast.distribution.probabilities[:, k - 1] for k in (1, 2, 3)}
    elif kind == "events":
        columns |= {"chance": forecast.event_probability()}
    elif kind == "amounts":
        part = forecast.positive_part()
        columns |= {"none": 1 - forecast.event_probability()}
        columns |= {"mu": part.mean(), "sigma": part.std()}
    else:
        curves = 1 - forecasts_of("times", table).distribution.expand().cdf(np.array(GRID))
        columns |= {f"s{t:g}": curves[:, i] for i, t in enumerate(GRID)}
    if known:
        found = outcomes_of(kind, table, seed)
        columns |= {"y": found.y}
        columns |= {} if found.event is None else {"happened": found.event.astype(int)}
    place = folder / f"{kind}-{seed}.csv"
    pd.DataFrame(columns).to_csv(place, index=False)
    return place


COLUMNS = {
    "normal": "mean=mu,std=sigma",
    "counts": "mean=rate,outcome=count",
    "scores": "pmf=p",
    "events": "probability=chance",
    "amounts": "chance_of_zero=none,mean=mu,std=sigma",
    "cut times": "survival=s,event=happened,horizon=8",
}


def randomized_table(folder, kind, *more):
    out, model = folder / "served.csv", folder / "model"
    old = pd.read_csv(table_of(folder, kind, 300, 36, known=True))
    y = old["y"].clip(upper=HORIZON) if kind == "cut times" else old["y"]
    save(RandomizedRegressor(ForecastColumns.parse(COLUMNS[kind]), 0.3).fit(old, y), model)
    command("predict", table_of(folder, kind), "--forecast", model, "--id", "id", "--key-file",
            key_file(folder), *more, "--out", out)  # fmt: skip
    return cells(out)


def recalibrated_table(folder, kind):
    out, model = folder / "served.csv", folder / "model"
    old = table_of(folder, kind, 300, 36, known=True)
    command("recalibrate", old, "--forecast", COLUMNS[kind], "--target", "y", "--by", "member",
            "--out", model)  # fmt: skip
    command("predict", table_of(folder, kind), "--forecast", model, "--id", "id", "--out", out)
    return cells(out)


SERVED = {
    "randomize_counts": (randomized_table, ("counts", "--levels", "0.1,0.5,0.9")),
    "randomize_scores": (randomized_table, ("scores",)),
    "randomize_amounts": (randomized_table, ("amounts",)),
    "randomize_times": (randomized_table, ("cut times",)),
    "recalibrate": (recalibrated_table, ("normal",)),
    "recalibrate_scores": (recalibrated_table, ("scores",)),
    "recalibrate_events": (recalibrated_table, ("events",)),
    "recalibrate_times": (recalibrated_table, ("cut times",)),
}
"""Forecasts in columns that are randomized, or repaired by group, and written by `predict`."""

for _name, (_make, _words) in SERVED.items():
    CASES[f"served_{_name}"] = lambda folder, make=_make, words=_words: make(folder, *words)


@case
def served_events(folder):
    """`evenhand predict` of probabilities, which need no key."""
    model, out, new = folder / "model", folder / "served.csv", folder / "new.csv"
    save(served_models()["events"][0], model)
    people(5, 37)[["id", *NUMERIC]].to_csv(new, index=False)
    command("predict", new, "--forecast", model, "--id", "id", "--out", out)
    return cells(out)


@case
def served_log(folder):
    """`evenhand predict --log`, and the same rows again."""
    model, out, new = folder / "model", folder / "served.csv", folder / "new.csv"
    save(served_models()["normal"][0], model)
    people(5, 38)[["id", *FEATURES]].to_csv(new, index=False, date_format="%Y-%m-%d")
    for _ in range(2):
        command("predict", new, "--forecast", model, "--id", "id", "--key-file", key_file(folder),
                "--context", "2026-11", "--log", folder / "log.sqlite", "--groups", "region",
                "--levels", "0.1,0.9", "--out", out)  # fmt: skip
    return cells(out)


@case
def tables_of_commands(folder):
    """Files that audits and comparisons write, with their columns and numbers of rows."""
    said = {}
    for name, kind in (("old", "counts"), ("new", "counts"), ("times", "cut times")):
        table = table_of(folder, kind, 200, 42, known=True)
        command("audit", table, "--forecast", COLUMNS[kind], "--target", "y", "--id", "id",
                "--groups", "member", "--features", "region", "--seed", "0",
                "--out", folder / f"{name}.json", "--tables", folder / name)  # fmt: skip
    command("compare", folder / "old.json", folder / "new.json", "--tables", folder / "compare")
    for name in ("old", "times", "compare"):
        for path in sorted((folder / name).iterdir()):
            rows = cells(path)
            said[f"{name}/{path.name}"] = {"columns": rows[0], "n_rows": len(rows) - 1}
    return said
