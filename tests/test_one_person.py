"""A person's forecast has the same bits in any company, order and format."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from command_outcome import written
from evenhand import BoostedDistributionRegressor, RandomizedRegressor, Service, load, save
from evenhand.draws import KeyedDraws
from evenhand.scale import forecast_parts
from evenhand.service import open_log
from evenhand.tables.files import read_table

KEY = b"a key of 16 bytes or more"
LEVELS = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
N = 60

pytestmark = pytest.mark.filterwarnings("ignore::evenhand.UnseenValuesWarning")


def people(n, seed):
    """Return people with columns of every kind; all but the ids have missing cells."""
    random = np.random.default_rng(seed)
    day = pd.Timestamp("2021-01-31") + pd.to_timedelta(random.integers(0, 900, n), unit="D")
    table = pd.DataFrame(
        {
            "id": [f"{i:04d}" for i in range(n)],
            "age": random.normal(45, 12, n),
            "visits": random.integers(0, 9, n).astype(float),
            "job": random.choice(["nurse", "Köchin", "NA", "007", "true", "a,b", 'say "no"'], n),
            "member": pd.array(random.random(n) < 0.5, dtype="boolean"),
            "since": day,
        }
    )
    for name in table.columns[1:]:
        table.loc[random.random(n) < 0.08, name] = None
    return table


TRAINING, PEOPLE = people(300, 1), people(N, 2)


def fitted(is_randomized):
    random = np.random.default_rng(3)
    y = TRAINING["age"].fillna(40) / 10 + pd.factorize(TRAINING["job"])[0] + random.normal(size=300)
    model = BoostedDistributionRegressor(n_estimators=15, min_child_samples=5, random_state=0)
    whole = RandomizedRegressor(model, alpha=0.2, random_state=0) if is_randomized else model
    return whole.fit(TRAINING.drop(columns="id"), y)


@pytest.fixture(scope="module", params=[False, True], ids=["trees", "trees with a link"])
def model(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("stored") / "model"
    save(fitted(request.param), folder)
    return load(folder)


def from_file(model, table, folder):
    """Forecast the people of a file, or of a folder of parts, as the command does."""
    out = folder / ("out" if table.is_dir() else "out.parquet")
    key = KEY if isinstance(model, RandomizedRegressor) else None
    forecast_parts(model, table, out, id_column="id", key=key, context="test", levels=LEVELS)
    return read_table(out).set_index("id").select_dtypes("number")


def from_frame(model, X, ids):
    r = KeyedDraws(KEY, "test")(ids) if isinstance(model, RandomizedRegressor) else None
    forecast, mean = model.forecast_and_predict(X, r)
    drawn = {} if r is None else {"r": r}
    quantiles = dict(zip([f"q{level}" for level in LEVELS], forecast.ppf(LEVELS).T, strict=True))
    return pd.DataFrame(drawn | {"mean": mean} | quantiles, index=pd.Index(ids, name="id"))


def ways(model, folder):
    """Yield each way to forecast the people, or some of them, by its name."""
    order = np.random.default_rng(4).permutation(N)
    shuffled = PEOPLE.iloc[order]
    more = PEOPLE.assign(other=np.arange(N), age_of_partner="?")[
        ["since", "other", "job", "id", "visits", "age_of_partner", "member", "age"]
    ]
    as_text = PEOPLE.astype({"visits": "Int64"})  # 3 in place of 3.0
    tables = {"batch": PEOPLE, "shuffled": shuffled, "more": more, "integers": as_text}
    for name, table in tables.items():
        for ending in (".csv", ".csv.gz", ".parquet") if name == "batch" else (".csv", ".parquet"):
            path = written(table, folder / f"{name}{ending}")
            yield path.name, lambda path=path: from_file(model, path, folder)
    parts = folder / "parts"
    parts.mkdir()
    for i, rows in enumerate(np.array_split(order, 5)):
        written(PEOPLE.iloc[rows], parts / f"{i}.{'csv' if i % 2 else 'parquet'}")
    yield "parts", lambda: from_file(model, parts, folder)

    def alone_in_files():
        files = (written(PEOPLE.iloc[[i]], folder / "one.csv") for i in range(0, N, 6))
        return pd.concat([from_file(model, file, folder) for file in files])

    yield "alone in csv", alone_in_files
    X, ids = PEOPLE.drop(columns="id"), PEOPLE["id"].tolist()
    frames = {
        "pandas": X,
        "pandas with another index": X.set_axis(range(N, 0, -1)),
        "objects": X.astype(object),
        "polars": pl.from_pandas(X),
        "arrow": pa.Table.from_pandas(X, preserve_index=False),
    }
    for name, frame in frames.items():
        yield name, lambda frame=frame: from_frame(model, frame, ids)
    mixed = [ids[i] for i in order]
    yield "shuffled in memory", lambda: from_frame(model, X.iloc[order], mixed)
    yield (
        "alone in memory",
        lambda: pd.concat([from_frame(model, X.iloc[[i]], [ids[i]]) for i in range(0, N, 3)]),
    )
    if isinstance(model, RandomizedRegressor):
        draws = KeyedDraws(KEY, "test")
        service = Service(model, draws, open_log(folder / "log.sqlite"), levels=LEVELS)
        rows = X.astype(object).where(X.notna(), None).to_dict("records")
        served = [service.forecast(ids[i], rows[i]) for i in range(0, N, 3)]
        values = [{"r": one.r} | {f"q{q}": v for q, v in one.quantiles.items()} for one in served]
        yield "service", lambda: pd.DataFrame(values, index=ids[::3])


def test_a_person_has_one_forecast_in_any_company_order_and_format(model, tmp_path):
    expected = from_file(model, written(PEOPLE, tmp_path / "first.parquet"), tmp_path)
    n_compared, n_ways = 0, 0
    for name, way in ways(model, tmp_path):
        found = way()
        wanted = expected.loc[found.index, found.columns]
        # as bits: -0.0 is not 0.0
        differ = found.to_numpy().view(np.int64) != wanted.to_numpy().view(np.int64)
        assert not differ.any(), (name, found[differ.any(axis=1)], wanted[differ.any(axis=1)])
        n_compared, n_ways = n_compared + differ.size, n_ways + 1
    is_randomized = isinstance(model, RandomizedRegressor)
    assert (n_ways, n_compared) == ((19, 9070) if is_randomized else (18, 7920))
