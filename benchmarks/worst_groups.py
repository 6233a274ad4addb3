"""Time of the search for worst groups, the published procedure and random subsets.

The published procedure draws 2,000 times for every person at every group size, averages the PITs,
and takes the rows with the lowest or the highest averages. It is linear in the number of sizes, so
a few are timed and the time is extrapolated. Random subsets are those of uncertainty-toolbox at its
defaults, which judge central intervals (the extra `evenhand[bench]`); they are left out if it is
missing.

    OMP_NUM_THREADS=1 python benchmarks/worst_groups.py [--sizes-timed 2] [--rows 10000 100000
    1000000]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from evenhand import Forecast
from evenhand.calibration import calibration_error
from evenhand.draws import jittered
from evenhand.links import Gaussian
from evenhand.search import worst_group_curve

Pit = Callable[[np.ndarray], np.ndarray]

N_PEOPLE, N_DRAWS, N_SIZES, PASSES = 500, 64, 50, 2000
BIAS = 0.5
"""Bias of the planted halves, in standard deviations of the forecast."""


def small_forecaster(n: int) -> tuple[str, Pit]:
    """A name and a function to PITs of `n` test rows; the paper's network if torch is there."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000 + n, 5))
    y = X[:, 0] + 0.3 * rng.normal(size=1000 + n)
    try:
        from evenhand import PAICRegressor

        model = PAICRegressor(alpha=0.1, max_steps=200, random_state=0).fit(X[n:], y[n:])
    except ImportError:
        base = Forecast.from_normal(X[:n, 0], np.full(n, 0.3))
        return "entropic link", lambda r: base.randomized(0.1, "entropic", r).pit(y[:n])
    return "PAICRegressor", lambda r: model.forecast(X[:n], r).pit(y[:n])


def published_group(pit_at: Pit, n: int, k: int, rng: np.random.Generator) -> np.ndarray:
    """Published worst group of `k` rows: average, sort, score both ends on one more draw."""
    total = np.zeros(n)
    for _ in range(PASSES):
        total += pit_at(rng.uniform(size=n))
    order = np.argsort(total)
    once = pit_at(rng.uniform(size=n))
    return max((order[:k], order[n - k :]), key=lambda rows: calibration_error(once[rows]))


def median_seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """Return the median time of a call, after one to warm up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return statistics.median(times)


def against_published(n_timed: int) -> None:
    """Time the curve at 50 sizes beside the published procedure, and compare on one PIT matrix."""
    rng, n = np.random.default_rng(1), N_PEOPLE
    name, pit_at = small_forecaster(n)
    masses = np.arange(1, N_SIZES + 1) / N_SIZES
    r = jittered(n, N_DRAWS, 2)
    pit = pit_at(r)
    ours, curve = (
        median_seconds(lambda: worst_group_curve(pit, masses, random_state=0)),
        worst_group_curve(pit, masses, random_state=0),
    )
    with_draws = median_seconds(lambda: worst_group_curve(pit_at(r), masses, random_state=0))
    one_column = median_seconds(lambda: worst_group_curve(pit[:, :1], masses, random_state=0))
    timed = np.linspace(0.2, 0.5, n_timed)
    start = time.process_time()
    groups = [published_group(pit_at, n, round(mass * n), rng) for mass in timed]
    published = (time.process_time() - start) * N_SIZES / n_timed
    print(f"published procedure, {name}, {n} rows, {N_SIZES} sizes, {PASSES} passes each")
    print(
        f"  published   {published:10.1f} s   ({n_timed} of {N_SIZES} sizes timed; the time is"
        " linear in them)"
    )
    print(
        f"  this curve  {ours:10.4f} s   from {n} x {N_DRAWS} PITs, ratio {published / ours:,.0f}"
    )
    print(
        f"              {with_draws:10.4f} s   with the forecasts, ratio"
        f" {published / with_draws:,.0f}"
    )
    print(f"              {one_column:10.4f} s   from {n} x 1 PITs")
    order = np.argsort(pit.mean(axis=-1), kind="stable")
    for error, rows in zip(curve.errors, curve.rows, strict=True):
        k = rows.size
        ends = [calibration_error(pit[order[:k]]), calibration_error(pit[order[n - k :]])]
        assert error >= max(ends) - 1e-13, "below the lowest and highest mean PITs"
    for mass, group in zip(timed, groups, strict=True):
        found, theirs = (
            worst_group_curve(pit, mass, random_state=0).errors[0],
            calibration_error(pit[group]),
        )
        print(
            f"  mass {mass:.2f}: error {found:.4f} found, {theirs:.4f} published, on the same PITs"
        )


def against_random_subsets() -> None:
    """Find two halves biased apart, beside random subsets of the same sizes."""
    from scipy import special

    rng, n = np.random.default_rng(0), 20_000
    half = rng.permutation(n) < n // 2
    y = rng.normal(size=n) + np.where(half, BIAS, -BIAS)
    pit = Forecast.from_normal(np.zeros(n), np.ones(n)).pit(y)
    true_error = special.ndtr(BIAS / np.sqrt(2)) - 0.5
    sizes = np.linspace(0, 1, 10)
    masses = np.maximum(sizes, 2 / n)
    ours, middle = (
        median_seconds(lambda: worst_group_curve(pit, masses, random_state=0), 9),
        worst_group_curve(pit, 0.5, random_state=0),
    )
    of_one_half = max(half[middle.rows[0]].mean(), 1 - half[middle.rows[0]].mean())
    print(
        f"two halves biased by +-{BIAS} sigma, {n} rows, {sizes.size} sizes; true error of a half"
        f" {true_error:.3f}"
    )
    print(
        f"  this curve      {ours:8.4f} s   error {middle.errors[0]:.3f} at mass 0.5,"
        f" {of_one_half:.0%} of one half"
    )
    try:
        from uncertainty_toolbox.metrics_calibration import adversarial_group_calibration
    except ImportError as error:
        print(f"  random subsets  left out: {error}")
        return
    start = time.process_time()
    peer = adversarial_group_calibration(np.zeros(n), np.ones(n), y, cali_type="mean_abs")
    theirs = time.process_time() - start
    at_half = np.interp(0.5, peer.group_size, peer.score_mean)
    print(
        f"  random subsets  {theirs:8.4f} s   error {at_half:.3f} at mass 0.5, ratio"
        f" {theirs / ours:,.0f}"
    )


def peak_megabytes() -> float:
    """Return the most memory that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def at_scale(row_counts: list[int]) -> None:
    """Time the curve at ten sizes on ever more rows: peak memory is that of the process."""
    link, masses = Gaussian(0.1), np.arange(1, 11) / 10
    print(f"{N_DRAWS} columns, {masses.size} sizes")
    for n in sorted(row_counts):
        rng = np.random.default_rng(3)
        pit = np.empty((n, N_DRAWS))
        for start in range(0, n, 10_000):
            base = rng.uniform(size=(min(10_000, n - start), 1))
            pit[start : start + 10_000] = link.ppf(base, jittered(base.size, N_DRAWS, rng))
        before, start_time = peak_megabytes(), time.process_time()
        worst_group_curve(pit, masses, random_state=0)
        seconds = time.process_time() - start_time
        extra = peak_megabytes() - before
        print(
            f"  {n:9,d} rows  {seconds:7.2f} s  {1e6 * seconds / n:6.1f} us a row  {extra:6.0f} MB"
            " beside the PITs"
        )
        del pit


def main() -> None:
    """Run all three and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--sizes-timed", type=int, default=2, help="group sizes of the published procedure to time"
    )
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    options = parser.parse_args()
    against_published(options.sizes_timed)
    against_random_subsets()
    at_scale(options.rows)


if __name__ == "__main__":
    main()
