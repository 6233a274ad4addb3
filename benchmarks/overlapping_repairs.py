"""Repairs of three overlapping groups: joint corrections, a pooled map and separate maps.

The forecast is N(0, 1). Outcomes are shifted in one group and have another spread in a second; a
third group is right, has a deviation of shape or is the overlap of the others. Sizes and deviations
are drawn for each problem. Methods learn from the same rows and are measured on 40,000 fresh rows.
A group's error is "beyond noise" if it exceeds the 95% quantile of the error (W1) between two
samples of one distribution with as many rows as the group has for learning and for measuring.

python benchmarks/overlapping_repairs.py [--problems 16]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from evenhand import Forecast, RecalibratedRegressor
from evenhand.calibration import calibration_error

N_FRESH = 40_000
SIZES = (1000, 2000, 4000)
NAMES = ("shift", "scale", "third", "shift and scale")
KINDS = ("right third group", "shape in the third group", "third group in the overlap", "all right")


def standard(X: pd.DataFrame) -> Forecast:
    """Predict N(0, 1) for every row."""
    return Forecast.from_normal(np.zeros(len(X)), np.ones(len(X)))


def problem(number: int) -> Callable[[int, int], tuple[pd.DataFrame, np.ndarray]]:
    """Return a function that draws rows, with drawn sizes of groups and deviations."""
    drawn = np.random.default_rng([7, number])
    kind = KINDS[number % len(KINDS)]
    shares = drawn.uniform(0.2, 0.6, size=3)
    shift = drawn.choice([-1, 1]) * drawn.uniform(0.25, 0.6)
    scale = drawn.uniform(1.3, 1.8) ** drawn.choice([-1, 1])

    def rows(n: int, seed: int) -> tuple[pd.DataFrame, np.ndarray]:
        random = np.random.default_rng([number, n, seed])
        inside = random.uniform(size=(n, 3)) < shares
        y = random.normal(size=n)
        if kind == "third group in the overlap":
            inside[:, 2] &= inside[:, 0] & inside[:, 1]
        if kind != "all right":
            y = shift * inside[:, 0] + np.where(inside[:, 1], scale, 1.0) * y
        if kind == "shape in the third group":
            y = np.where(inside[:, 2], np.sign(y) * np.sqrt(np.abs(y)), y)
        return pd.DataFrame(inside, columns=list(NAMES[:3])), y

    return rows


METHODS = {
    "unrepaired": None,
    "one map": {},
    "maps by combination": {"by": list(NAMES[:3])},
    "joint corrections": {"by": {name: name for name in NAMES[:3]}},
}


def largest_by_chance() -> float:
    """Return the 95% quantile of the integral of the absolute value of a Brownian bridge."""
    random = np.random.default_rng(0)
    walks = random.normal(size=(20_000, 500)).cumsum(axis=1) / np.sqrt(500)
    bridges = walks - walks[:, -1:] * np.arange(1, 501) / 500
    return float(np.quantile(np.abs(bridges).mean(axis=1), 0.95))


def measured(n_problems: int) -> Iterator[dict[str, object]]:
    """Yield the measures of each problem, size, method and group."""
    by_chance = largest_by_chance()
    for number in range(n_problems):
        rows = problem(number)
        X, y = rows(N_FRESH, 1)
        masks = [np.ones(N_FRESH, dtype=bool), *X.to_numpy().T]
        masks.append(masks[1] & masks[2])
        before = standard(X).logpdf(y)
        for n in SIZES:
            learn = rows(n, 0)
            for method, options in METHODS.items():
                forecast = standard(X)
                if options is not None:
                    model = RecalibratedRegressor(standard, random_state=0, **options)
                    forecast = model.fit(*learn).forecast(X)
                pit = forecast.pit(y)
                gain = forecast.logpdf(y) - before
                for name, mask in zip(("everyone", *NAMES), masks, strict=True):
                    u = pit[mask]
                    noise = by_chance * np.sqrt(1 / (n * mask.mean()) + 1 / mask.sum())
                    yield {
                        "kind": KINDS[number % len(KINDS)],
                        "n": n,
                        "method": method,
                        "group": name,
                        "error": calibration_error(u),
                        "beyond": calibration_error(u) > noise,
                        "off 80": abs(np.mean(np.abs(u - 0.5) < 0.4) - 0.8),
                        "off 90": abs(np.mean(np.abs(u - 0.5) < 0.45) - 0.9),
                        "gain": gain[mask].mean(),
                    }


def main() -> None:
    """Print the means over the problems."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=16)
    table = pd.DataFrame(measured(parser.parse_args().problems))
    is_named = table["group"].isin(NAMES[:3])
    for is_right, title in ((False, "Planted deviations"), (True, "Nothing is wrong")):
        chosen = table[(table["kind"] == "all right") == is_right]
        parts = {
            "three groups": chosen[is_named.loc[chosen.index]],
            "their overlap, not named": chosen[chosen["group"] == NAMES[3]],
            "everyone": chosen[chosen["group"] == "everyone"],
        }
        for part, rows in parts.items():
            found = rows.groupby(["n", "method"], sort=False)
            means = found[["error", "beyond", "off 80", "off 90", "gain"]].mean()
            means["smallest gain"] = found["gain"].min()
            print(f"{title}: {part}\n{means.round(4).to_string()}\n")


if __name__ == "__main__":
    main()
