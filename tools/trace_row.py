"""Files of the package that one row crosses through `Service.forecast`, in order of first entry.

Of two small stored models, a row of a new person is served and logged in SQLite, after another one
has loaded what is loaded once. The time is the median of 300 new people, most of it of the disk.
The listed files are those of the second model, of amounts. The last lines count the files of
`model.forecast(row).ppf` of a recalibrated and a randomized regression::

    python tools/trace_row.py
"""

from __future__ import annotations

import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression

import evenhand
from evenhand import HurdleRegressor, RandomizedRegressor, RecalibratedRegressor, Service, save
from evenhand.draws import KeyedDraws
from evenhand.service import open_log

N_TIMED = 300
"""People whose forecasts are timed."""

PACKAGE = Path(evenhand.__file__).resolve().parent


def entered(work: Any) -> Counter[str]:
    """Return how often functions of each file were called during some work, in order of entry."""
    found: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found[frame.f_code.co_filename] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    inside = {Path(name): n for name, n in found.items() if Path(name).is_relative_to(PACKAGE)}
    return Counter({str(path.relative_to(PACKAGE)): n for path, n in inside.items()})


def seconds_of(service: Service, person: str) -> float:
    """Return how long the forecast of a new person takes."""
    start = time.perf_counter()
    service.forecast(person, {"age": 41.0, "sex": 1})
    return time.perf_counter() - start


def main() -> None:
    """Serve two rows of each model and print the files that the second one crosses."""
    random = np.random.default_rng(0)
    X = pd.DataFrame({"age": random.uniform(20, 80, 200), "sex": random.integers(1, 3, 200)})
    y = X["age"] / 30 + random.normal(size=200)
    amounts = HurdleRegressor(LogisticRegression(), LinearRegression(), random_state=0)
    for name, model in (("normal", BayesianRidge()), ("amounts", amounts)):
        outcome = np.exp(y) * (y > 1) if name == "amounts" else y
        with tempfile.TemporaryDirectory() as place:
            folder, log = Path(place, "model"), open_log(Path(place, "log.sqlite"))
            save(RandomizedRegressor(model, 0.1, random_state=0).fit(X, outcome), folder)
            service = Service(folder, KeyedDraws(b"sixteen bytes or more"), log, groups=["sex"])
            service.forecast("first", {"age": 30.0, "sex": 1})
            found = entered(lambda one=service: one.forecast("second", {"age": 40.0, "sex": 2}))
            times = [seconds_of(service, f"person {i}") for i in range(N_TIMED)]
            service.close()
        print(
            f"{name}: one row crosses {len(found)} files in {sum(found.values())} calls, and takes"
            f" {1e6 * np.median(times):.0f} microseconds"
        )
    for number, (path, n) in enumerate(found.items(), start=1):
        print(f"{number:3}  {path:45} {n:5} calls")
    for kind in (RecalibratedRegressor, RandomizedRegressor):
        model = kind(LinearRegression(), random_state=0).fit(X, y)
        model.forecast(X[:1]).ppf(0.5)
        found = entered(lambda one=model: one.forecast(X[1:2]).ppf(0.5))
        print(f"{kind.__name__}: model.forecast(row).ppf crosses {len(found)} files")


if __name__ == "__main__":
    main()
