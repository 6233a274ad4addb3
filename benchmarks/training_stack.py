"""Training of a stack of 16 networks, compared with 16 single trainings of as many steps.

Single and stacked trainings take turns, so that a busy machine slows both; the median ratio is
reported.

    python benchmarks/training_stack.py
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from evenhand import PAICRegressor

N_NETWORKS = 16


def seconds(n_networks: int, X: np.ndarray, y: np.ndarray, steps: int) -> float:
    """Time one training of `n_networks` networks of 3 x 100 units for `steps` steps."""
    start = time.perf_counter()
    models = PAICRegressor.path(
        X,
        y,
        [0.1] * n_networks,
        max_steps=steps,
        check_every=steps // 4,
        patience=1000,
        random_state=0,
    )
    taken = time.perf_counter() - start
    if any(model.n_steps_[0] != steps for model in models):
        raise SystemExit("a network stopped early; the comparison needs the same steps")
    return taken


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 99))
    y = X[:, 0] * 0.2 + 0.1 * rng.normal(size=1500)
    seconds(1, X, y, 20)
    ratios = []
    for _ in range(options.repeats):
        singles = sum(seconds(1, X, y, options.steps) for _ in range(N_NETWORKS))
        ratios.append(seconds(N_NETWORKS, X, y, options.steps) / singles)
    shown = ", ".join(f"{ratio:.3f}" for ratio in ratios)
    print(
        f"stack of {N_NETWORKS} over {N_NETWORKS} single trainings: median {np.median(ratios):.3f}"
        f" of {shown}"
    )
    print("required: at most 0.5")


if __name__ == "__main__":
    main()
