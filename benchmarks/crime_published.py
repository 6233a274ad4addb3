"""The paper's protocol on Communities and Crime, compared with figures of the published code.

500 rows are held out and used for early stopping and for the figures, as published (otherwise use a
separate validation set). Worst groups are selected by mean PIT and evaluated on one draw, and the
worst interpretable group is that of one draw, both as published. A figure agrees if the published
mean is within two standard errors of the difference of both means, with the spread of our runs used
for both: by chance, one in twenty figures disagrees. Exits with 1 if more than one in five
disagree.

    python benchmarks/crime_published.py --runs 10 --reference published_code.json
"""

from __future__ import annotations

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd

# the studies lie beside this folder, outside the package
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from reproduction.crime import MASSES, measure_split
from reproduction.study import MAX_STEPS

ALPHAS = [0.1, 0.4, 1.0]
SHOWN = (0.1, 0.2, 0.5, 1.0)


def figures(
    alpha: float, recalibrated: bool, nll: float, std: float, worst: list[float], scan: float
) -> dict:
    """One run as a row."""
    row = {"alpha": alpha, "recalibrated": recalibrated, "nll": nll, "mean std": std}
    return (
        row
        | {f"worst {mass:g}": error for mass, error in zip(SHOWN, worst, strict=True)}
        | {"worst of scan": scan}
    )


def ours(seed: int, data: Path | None) -> list[dict]:
    """Our figures of one split."""
    found = measure_split(seed, "published", ALPHAS, [], MAX_STEPS, data=data)
    return [
        figures(
            row["alpha"],
            row["recalibrated"],
            row["nll"],
            row["mean_std"],
            np.interp(SHOWN, MASSES, row["as_published"]).tolist(),
            row["interpretable_as_published"],
        )
        for row in found
    ]


def theirs(file: Path) -> pd.DataFrame:
    """The published code's figures."""
    sizes = np.linspace(0.01, 1, 50)
    return pd.DataFrame(
        [
            figures(
                run["alpha"],
                run["recalibrated"],
                run["nll"],
                run["mean_std"],
                np.interp(SHOWN, sizes, run["worst_group_error"]["values"]).tolist(),
                run["worst_interpretable_group_error"],
            )
            for run in json.loads(file.read_text(encoding="utf-8"))
        ]
    )


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--data", type=Path, help="communities.data, if it is not fetched or in EVENHAND_DATA"
    )
    parser.add_argument(
        "--reference",
        type=Path,
        required=True,
        help="figures of the published code, an entry per run",
    )
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs) as pool:
        runs = list(pool.map(ours, range(options.runs), [options.data] * options.runs))
    mine, published = pd.DataFrame([row for run in runs for row in run]), theirs(options.reference)
    names = [name for name in mine.columns if name not in ("alpha", "recalibrated")]
    print(
        f"{'alpha':>5} {'recalibrated':>12}  {'figure':13} {'ours':>8} {'sd':>7} {'published':>10}"
        f" {'runs':>4}  agrees"
    )
    agree, total = 0, 0
    for (alpha, recalibrated), own in mine.groupby(["alpha", "recalibrated"]):
        other = published[
            (published["alpha"] == alpha) & (published["recalibrated"] == recalibrated)
        ]
        if other.empty:
            continue
        for name in names:
            sd = own[name].std(ddof=1)
            allowed = 2 * sd * np.sqrt(1 / options.runs + 1 / len(other))
            fits = abs(other[name].mean() - own[name].mean()) <= allowed
            agree, total = agree + fits, total + 1
            print(
                f"{alpha:5g} {'yes' if recalibrated else 'no':>12}  {name:13}"
                f" {own[name].mean():8.3f} {sd:7.3f} {other[name].mean():10.3f} {len(other):4d} "
                f" {'yes' if fits else 'NO'}"
            )
    print(f"{agree} of {total} figures agree")
    raise SystemExit(0 if agree >= 0.8 * total else 1)


if __name__ == "__main__":
    main()
