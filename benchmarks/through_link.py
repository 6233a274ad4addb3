"""Training a model through its link, compared with likelihood training before adding the link.

For the mean error both are equivalent by a theorem: with the laplace link, the log loss of `h` plus
`kappa * error` is the model's own log loss plus a constant, for each row and draw
(tests/test_links_theory.py). This experiment is about the tail: the ensemble is trained on the log
loss of `h` plus `weight * kappa * tail`, where the tail is the excess of the pathwise error over
its upper fifth for a calibrated model, divided by 0.2. Communities and Crime, 500 test rows,
laplace link; scores are compared at equal oracle worst-group error at group size 0.2, and the
errors at the other sizes are printed beside them. Gains are over training in two steps, paired by
split, with 95% t intervals.

    python benchmarks/record.py "through_link --splits 5"
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
import torch

from crime_front import LEVELS, LINK_ALPHAS, interval, measure
from evenhand import DiscreteOutcomeWarning, Forecast, MixtureMLPRegressor
from evenhand.datasets import load_crime
from evenhand.draws import jittered, nodes
from evenhand.links import Laplace

MASS = 0.2
TRAINED_AT = (0.06, 0.12)
WEIGHTS = (0.5, 2.0)
ALPHAS = (*LINK_ALPHAS, 0.4, 0.7, 1.0)
GRID = np.linspace(0.0, 1.0, 4001)


class ThroughLink(MixtureMLPRegressor):
    """Ensemble trained on the log score and the tail of the pathwise error, both randomized."""

    def set_objective(self, alpha: float, weight: float) -> ThroughLink:
        """Tabulate what the link adds to the model's own loss, as a function of its PIT."""
        link, r = Laplace(alpha), nodes(256)
        kappa = (1 - alpha) / alpha
        inside = np.clip(GRID, 1e-9, 1 - 1e-9)
        paid = link.logpdf(link.ppf(inside[:, None], r), r).mean(axis=1)
        errors = link.pathwise_error(inside)
        usual = link.pathwise_error(np.array([0.5 + (1 - MASS) / 2]))[0]
        added = paid + weight * kappa * np.maximum(errors - usual, 0) / MASS
        self._added = torch.as_tensor(added, dtype=torch.float32)
        return self

    def _row_loss(self) -> Any:
        own, added = super()._row_loss(), self._added

        def loss(
            out: torch.Tensor, y: torch.Tensor, r: torch.Tensor | None, numbers: torch.Tensor
        ) -> torch.Tensor:
            logits, loc, std = self.outputs_.tensors(out)
            pit = (
                torch.softmax(logits, dim=-1) * torch.special.ndtr((y[..., None] - loc) / std)
            ).sum(dim=-1)
            place = pit.clamp(0, 1) * (len(added) - 1)
            cell = place.detach().long().clamp(max=len(added) - 2)
            return own(out, y, r, numbers) + torch.lerp(added[cell], added[cell + 1], place - cell)

        return loss


def models(seed: int) -> Iterator[tuple[str, MixtureMLPRegressor]]:
    """Training in two steps, and trainings through the link."""
    yield "two steps", MixtureMLPRegressor(random_state=seed)
    for alpha in TRAINED_AT:
        for weight in WEIGHTS:
            name = f"tail, trained at alpha {alpha:g}, weight {weight:g}"
            yield name, ThroughLink(random_state=seed).set_objective(alpha, weight)


def one_split(seed: int, data: str | None) -> pd.DataFrame:
    """Scores of all models at the given errors."""
    warnings.simplefilter("ignore", DiscreteOutcomeWarning)
    crime = load_crime(data)
    order = np.random.default_rng(1000 + seed).permutation(len(crime.y))
    X, y = crime.X.to_numpy(dtype=np.float64), crime.y.to_numpy(dtype=np.float64)
    test, learn = order[:500], order[500:]
    draws = jittered(500, 64, seed), jittered(500, 2, seed + 1)
    parts = []
    for name, model in models(seed):
        base: Forecast = model.fit(X[learn], y[learn]).forecast(X[test])
        rows = [
            {
                "alpha": alpha,
                **measure(*(base.randomized(alpha, "laplace", r) for r in draws), y[test], seed),
            }
            for alpha in ALPHAS
        ]
        parts.append(read_off(pd.DataFrame(rows)).assign(forecaster=name, split=seed))
    return pd.concat(parts)


def read_off(rows: pd.DataFrame) -> pd.DataFrame:
    """Scores at the given errors by linear interpolation; NaN where no alpha reaches one."""
    rows = rows.sort_values("error at 0.2")
    error = rows["error at 0.2"].to_numpy()
    names = [name for name in rows.columns if name != "alpha"]
    values = {
        name: np.interp(LEVELS, error, rows[name], left=np.nan, right=np.nan) for name in names
    }
    return pd.DataFrame({"level": LEVELS} | values)


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument(
        "--jobs", type=int, default=2, help="splits at the same time, a process each"
    )
    parser.add_argument("--data", help="communities.data, if it is not fetched or in EVENHAND_DATA")
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs) as pool:
        found = pd.concat(
            pool.map(one_split, range(options.splits), [options.data] * options.splits)
        )
    of = dict(iter(found.set_index(["level", "split"]).groupby("forecaster", sort=False)))
    width = max(map(len, of))
    for level in LEVELS:
        print(f"oracle worst-group error at group size {MASS:g}: {level:.2f}")
        print(
            f"{'':{width}}  cell log score             gain    CRPS               gain  error at"
            " 0.1 / 0.5 / 1.0"
        )
        reference = of["two steps"].loc[level]
        for name, rows in of.items():
            own = rows.loc[level]
            line = f"{name:{width}}"
            for score, digits, size in (("cell log score", 3, 14), ("CRPS", 4, 6)):
                mean, half = interval(reference[score] - own[score])
                gain = (
                    f"{mean:+.{digits}f} ± {half:.{digits}f}"
                    if name != "two steps" and np.isfinite(mean)
                    else ""
                )
                line += f"  {own[score].mean():{size}.{digits}f}  {gain:>17}"
            print(
                line
                + "  "
                + " / ".join(f"{own[f'error at {mass:g}'].mean():.3f}" for mass in (0.1, 0.5, 1.0))
            )
        print()


if __name__ == "__main__":
    main()
