"""Settings of the trees, by the size of the training table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SPREAD = {
    "objective": "gamma",
    # a Newton step on the log scale is unbounded where residuals are near 0
    "max_delta_step": 0.7,
}
"""LightGBM's parameters of ensembles for the scale, beside those of `TreeSettings`."""


@dataclass(frozen=True)
class TreeSettings:
    """Settings of LightGBM, named as the parameters of `BoostedDistributionRegressor`.

    `n_threads` is 0 for all threads.
    """

    n_estimators: int
    learning_rate: float
    num_leaves: int
    min_child_samples: int
    subsample: float
    colsample_bytree: float
    reg_lambda: float
    patience: int
    n_threads: int
    seed: int

    def of_mean(self) -> dict[str, Any]:
        """Return LightGBM's parameters of ensembles for the mean."""
        return {
            "objective": "l2",
            "learning_rate": float(self.learning_rate),
            "num_leaves": int(self.num_leaves),
            "min_data_in_leaf": int(self.min_child_samples),
            "min_data_per_group": int(self.min_child_samples),
            # one binned data set serves ensembles with different smallest leaves
            "feature_pre_filter": False,
            "bagging_fraction": float(self.subsample),
            "bagging_freq": 1,
            "feature_fraction": float(self.colsample_bytree),
            "lambda_l2": float(self.reg_lambda),
            "num_threads": self.n_threads,
            # a seed determines the model on a given machine type and number of threads
            "deterministic": True,
            "force_row_wise": True,
            "seed": self.seed,
            "verbosity": -1,
        }

    def of_spread(self) -> dict[str, Any]:
        """Return LightGBM's parameters of ensembles for the scale.

        The size of a residual has about as much noise as signal, so leaves are larger and their
        values shrunk more than for the mean.
        """
        smallest = 2 * int(self.min_child_samples)
        larger = {"min_data_in_leaf": smallest, "min_data_per_group": smallest}
        return self.of_mean() | SPREAD | larger | {"lambda_l2": max(1.0, float(self.reg_lambda))}


def n_threads(n_jobs: int) -> int:
    """Return the number of threads as LightGBM counts them: 0 means all."""
    return 0 if n_jobs == -1 else int(n_jobs)


def fitting_learning_rate(n_samples: int) -> float:
    """Return a shrinkage that suits a number of rows: large tables would need many small steps."""
    return 0.05 if n_samples < 20_000 else 0.1


def fitting_leaves(n_samples: int) -> int:
    """Return a number of leaves that suits a number of rows: 4 for 400, 9 for 2,000, 31 at most."""
    return int(np.clip(round(np.sqrt(n_samples) / 5), 4, 31))


def fitting_leaf_size(n_samples: int) -> int:
    """Return a smallest number of rows in a leaf: 5 up to 500 rows, 20 from 2,000 rows."""
    return int(np.clip(n_samples // 100, 5, 20))


def fitting_share(n_features: int) -> float:
    """Return a share of features for each tree: all of up to 10 features, at least half.

    If few features matter, trees without them learn noise.
    """
    return float(np.clip(10 / n_features, 0.5, 1.0))


def n_splits(n_samples: int) -> int:
    """Return how often a number of rows is split into folds: once from 1,000 rows, at most 5 times.

    More splits make held-out scores of small tables less noisy, and average more ensembles.
    """
    return int(np.clip(-(-1000 // n_samples), 1, 5))
