"""PAICRegressor on Communities and Crime under the published protocol, beside the published figures.

500 rows are held out and used for early stopping and for the figures, as in the published code (a validation set of
their own is what anybody else should use). One training per run holds all alphas.

    python benchmarks/crime_published.py --runs 20 --reference published_code.json
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from evenhand import DiscreteOutcomeWarning, PAICRegressor
from evenhand.calibration import log_score, spread
from evenhand.datasets import load_crime
from evenhand.draws import jittered

ALPHAS = (0.1, 0.4, 1.0)


def one_run(seed: int, data: str | None) -> list[dict[str, float]]:
    """Train at every alpha on one split and score the held-out rows."""
    crime = load_crime(data)
    order = np.random.default_rng(seed).permutation(len(crime.y))
    held, learn = order[:500], order[500:]
    X, y = crime.X.to_numpy(dtype=np.float64), crime.y.to_numpy(dtype=np.float64)
    start = time.perf_counter()
    models = PAICRegressor.path(X[learn], y[learn], ALPHAS, X_val=X[held], y_val=y[held], random_state=seed)
    seconds = time.perf_counter() - start
    rows = []
    for alpha, model in zip(ALPHAS, models, strict=True):
        forecast = model.forecast(X[held], jittered(500, 16, seed))
        nll, std = log_score(forecast, y[held]).mean(), spread(forecast).mean()
        rows.append({"alpha": alpha, "nll": nll, "std": std, "steps": model.n_steps_[0], "train_s": seconds})
    return rows


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--data", help="communities.data, if it is not fetched or in EVENHAND_DATA")
    parser.add_argument("--reference", type=Path, help="figures of the published code, one JSON entry per run")
    options = parser.parse_args()
    warnings.simplefilter("ignore", DiscreteOutcomeWarning)
    found = pd.DataFrame([row for seed in range(options.runs) for row in one_run(seed, options.data)])
    ours = found.groupby("alpha").agg(
        nll=("nll", "mean"),
        nll_sd=("nll", "std"),
        std=("std", "mean"),
        std_sd=("std", "std"),
        most_steps=("steps", "max"),
    )
    ours.insert(0, "runs", options.runs)
    print("ours\n" + ours.round(3).to_string())
    if options.reference:
        runs = pd.DataFrame(json.loads(options.reference.read_text()))
        runs = runs[~runs["recalibrated"]]
        theirs = runs.groupby("alpha").agg(
            runs=("run", "size"), nll=("nll", "mean"), std=("mean_std", "mean"), mean_steps=("iterations", "mean")
        )
        print("\npublished code\n" + theirs.round(3).to_string())
        gap = ours[["nll", "std"]] - theirs[["nll", "std"]]
        gap["steps_ratio"] = ours["most_steps"] / theirs["mean_steps"]
        print("\nours less published; our most steps over their mean\n" + gap.round(3).to_string())


if __name__ == "__main__":
    main()
