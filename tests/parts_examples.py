"""Tables in parts for tests of audits and forecasts, and subjects that end their process."""

import os
import signal
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.linear_model import LinearRegression

from command_outcome import KEY, written
from evenhand import ForecastColumns, RandomizedRegressor
from evenhand._validate import place_of_rows
from evenhand.audits import Search

GIVEN = ForecastColumns("mean", "std")
SPAN = np.linspace(-9.0, 9.0, 30)
SERVED = RandomizedRegressor(GIVEN, 0.2).fit(pd.DataFrame({"mean": SPAN, "std": SPAN + 9.1}), SPAN)
"""The same forecasts with draws."""

ASKED = {"id_column": "id", "key": KEY, "context": "2026-11"}
"""Options of forecasts."""


def searching(options, **changed):
    """Return options of an audit with some fields of its `search` changed."""
    return options | {"search": replace(options.get("search", Search()), **changed)}


QUICK = {"search": Search(masses=(0.2, 1.0), learned_masses=())}
"""Options of an audit whose searches take no time."""

QUICK_AUDIT = searching(QUICK, n_simulations=2) | {"random_state": 0}
"""The same of an audit in memory."""


def people(n, seed=0):
    """Make rows of every kind of column, with forecasts that are wrong for some groups."""
    random = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "id": np.arange(n) + 100_000 * seed,
            "age": random.integers(18, 90, n),
            "score": random.normal(size=n).round(3),
            "since": (
                pd.Timestamp("2015-01-01") + pd.to_timedelta(random.integers(0, 3000, n), unit="D")
            ),
            "sex": random.choice(["f", "m"], n),
            "region": random.choice(["north", "south", "east"], n, p=[0.6, 0.3, 0.1]),
            "owner": random.random(n) < 0.3,
            "rooms": random.integers(1, 5, n),
            "flat": "same",
            "mean": random.normal(size=n),
            "std": random.uniform(0.5, 1.5, n),
        }
    )
    spread = np.where(table["sex"] == "f", 1.4, 1.0)
    table["y"] = (
        table["mean"] + 0.3 * (table["age"] > 70) + spread * table["std"] * random.normal(size=n)
    )
    table.loc[random.random(n) < 0.1, "score"] = np.nan
    table.loc[random.random(n) < 0.05, "region"] = None
    return table


def write_parts(table, folder, cuts, ending=".parquet"):
    """Write the rows before, between and after some cuts as the parts of a folder."""
    folder.mkdir(exist_ok=True)
    for i, (start, stop) in enumerate(zip((0, *cuts), (*cuts, len(table)), strict=True)):
        written(table[start:stop], folder / f"part-{i}{ending}")
    return folder


def temporary(folder):
    """Return the names of hidden files and folders, which nothing should leave behind."""
    return sorted(path.name for path in folder.rglob(".*"))


@dataclass(frozen=True)
class Deadly(ForecastColumns):
    """Forecasts in columns; reading a block ends the process, once if there is a `marker`."""

    mean: str | None = "mean"
    std: str | None = "std"
    part: str = ""
    marker: Path | None = None
    at_row: int = 0

    def columns(self, present, source):
        return GIVEN.columns(present, source)

    def of(self, table, source):
        if source == self.part and place_of_rows()[1] == self.at_row:
            if self.marker is None:
                os.kill(os.getpid(), signal.SIGKILL)
            elif not self.marker.exists():
                self.marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return GIVEN.of(table, source)


def work_and_tell(shared, parts, i):
    """Return the number of a part and of the process at work on it; leave a file each time."""
    Path(shared, f"{i}-{os.getpid()}").touch()
    return i, os.getpid()


def size_of(shared, parts, i):
    return len(shared)


def bad_folder(folder, case):
    """Write four parts, of which the third is bad, and say what must be told."""
    table = people(400)
    write_parts(table, folder, [100, 200, 300])
    place = folder / "part-2.parquet"
    part = table[200:300].copy()
    if case == "truncated":
        place.write_bytes(place.read_bytes()[:-200])
        return folder, "part-2.parquet is not a readable .parquet file"
    if case == "missing":
        part.iloc[17, part.columns.get_loc("y")] = np.nan
        told = "part-2.parquet: column 'y' has 1 missing value, the first in row 18"
    else:
        part.iloc[17, part.columns.get_loc("std")] = 0.0
        told = "part-2.parquet: column 'std', row 18 must be finite and positive"
    part.to_parquet(place)
    return folder, told


def a_model():
    """Train a forecaster that takes no time, on the columns `age`, `mean` and `rooms`."""
    table = people(500, 77)
    base = RandomizedRegressor(LinearRegression(), alpha=0.3, random_state=0)
    return base.fit(table[["age", "mean", "rooms"]], table["y"])
