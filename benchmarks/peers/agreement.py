"""Statistics that other libraries compute as well: agreement of the numbers, and times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from measures import Contest, Section, table_lines, timed
from scipy import stats

from evenhand import Forecast
from evenhand.calibration import calibration_error, covered
from evenhand.scoring import crps, log_score

N_ROWS = 2000


@dataclass(frozen=True)
class Pair:
    """The same statistic, computed by us and by another library.

    Parameters
    ----------
    name, peer : str
        Statistic, and the library.
    difference : float
        Largest difference that the definitions of both allow.
    ours, theirs : function
        Compute it.
    """

    name: str
    peer: str
    difference: float
    ours: Callable[[], float]
    theirs: Callable[[], float]


def pairs(seed: int) -> list[Pair]:
    """Return the statistics of a miscalibrated normal forecast that several libraries have."""
    import uncertainty_toolbox as uct
    from mapie.metrics.regression import regression_coverage_score

    rng = np.random.default_rng(seed)
    mean, std = rng.normal(size=N_ROWS), rng.uniform(0.5, 2.0, size=N_ROWS)
    y = mean + 0.2 + 1.3 * std * rng.normal(size=N_ROWS)
    forecast = Forecast.from_normal(mean, std)
    pit = stats.norm.cdf(y, mean, std)
    ends = np.column_stack([forecast.ppf(0.05), forecast.ppf(0.95)])
    metrics = uct.metrics_calibration
    rules = uct.metrics_scoring_rule
    # a mean over k levels differs from the integral by at most 1/k
    n_levels = 1000
    return [
        Pair(
            "calibration error, W1",
            "uncertainty-toolbox",
            1 / n_levels,
            lambda: float(calibration_error(pit)),
            lambda: float(
                metrics.mean_absolute_calibration_error(
                    mean, std, y, n_levels, vectorized=True, prop_type="quantile"
                )
            ),
        ),
        Pair(
            "CRPS of normal forecasts",
            "uncertainty-toolbox",
            1e-9,
            lambda: float(crps(forecast, y).mean()),
            lambda: float(rules.crps_gaussian(mean, std, y)),
        ),
        Pair(
            "log score of normal forecasts",
            "uncertainty-toolbox",
            1e-9,
            lambda: float(log_score(forecast, y).mean()),
            lambda: float(rules.nll_gaussian(mean, std, y)),
        ),
        Pair(
            "coverage of 90% intervals",
            "MAPIE",
            1e-12,
            lambda: float(covered(pit, 0.9).mean()),
            lambda: float(regression_coverage_score(y, ends[:, :, None])[0]),
        ),
    ]


def section(seed: int = 0) -> Section:
    """Compare statistics of one miscalibrated forecast."""
    made = Section("The same statistics in other libraries")
    rows = []
    for pair in pairs(seed):
        own_seconds, ours = _median_time(pair.ours)
        seconds, theirs = _median_time(pair.theirs)
        is_same = abs(ours - theirs) <= pair.difference
        ratio = own_seconds / seconds
        rows.append(
            (
                pair.name,
                pair.peer,
                f"{ours:.6f}",
                f"{theirs:.6f}",
                "same" if is_same else "DIFFERENT",
                f"{pair.difference:.0e}",
                f"{ratio:.2f}",
            )
        )
        made.contests.append(
            Contest(f"metric: {pair.name}", "CPU time, share of the peer", ratio, {pair.peer: 1.0})
        )
    heads = ("statistic", "library", "ours", "theirs", "agree", "allowed difference", "time")
    made.lines = [
        f"{N_ROWS:,} rows, normal forecasts, outcomes higher by 0.2 and 1.3 times as spread.",
        "",
        *table_lines(heads, rows),
        "",
        "Time: CPU of ours, as a share of theirs. Their calibration error: mean of 1,000 levels.",
    ]
    return made


def _median_time(run: Callable[[], float]) -> tuple[float, float]:
    run()
    found = [timed(run) for _ in range(9)]
    return float(np.median([seconds for seconds, _ in found])), found[0][1]
