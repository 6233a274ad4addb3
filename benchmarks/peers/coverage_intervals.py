"""Simultaneous intervals for the coverage of many groups, compared with fairaudit.

Forecasts are calibrated. Groups are the 24 values of 12 features of two values each and all 264
intersections of two of them; both methods get the same rows and the same groups.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from measures import Contest, Section, binomial_range, paragraph, table_lines, timed
from planted import binary_features, groups_of_features

from evenhand.search import scan_groups

N_ROWS = 3000
N_FEATURES = 12
MIN_SIZE = 150
CONFIDENCE = 0.95
COVERAGES = (0.8, 0.9)

WIDER = 1.05
"""Largest mean width that is accepted, in widths of fairaudit."""

SHORTER = 0.1
"""Largest time that is accepted, in times of fairaudit."""


@dataclass(frozen=True)
class Intervals:
    """Intervals of one table.

    Parameters
    ----------
    ends : dict of float to ndarray of shape (g, 2)
        Intervals of the groups by coverage level, in the order of the groups.
    seconds : float
        CPU time.
    """

    ends: dict[float, np.ndarray]
    seconds: float


def by_scan(pit: np.ndarray, X: pd.DataFrame, names: list[str]) -> Intervals:
    """Return exact binomial intervals with Bonferroni's correction, as the scan lists them."""
    seconds, found = timed(lambda: scan_groups(pit, X, MIN_SIZE, confidence=CONFIDENCE))
    rows = found.set_index("group").loc[names]
    columns = {level: f"coverage_{100 * level:.0f}" for level in COVERAGES}
    ends = {
        level: rows[[f"{column}_low", f"{column}_high"]].to_numpy()
        for level, column in columns.items()
    }
    return Intervals(ends, seconds)


def by_fairaudit(pit: np.ndarray, groups: np.ndarray) -> Intervals:
    """Return bootstrap intervals: the scaling for bounds, 500 replicates, both by default."""
    from fairaudit import Auditor, Metric

    ends, total = {}, 0.0
    n = len(pit)
    for level in COVERAGES:
        metric = Metric("coverage", lambda Z, Y: Y.reshape(-1), lambda Z, Y, X=None: 0 * Y)
        is_covered = (np.abs(pit - 0.5) <= level / 2).astype(float).reshape(-1, 1)
        auditor = Auditor(np.ones((n, 1)), is_covered, np.zeros((n, 1)), metric)

        def calibrated(auditor: Auditor = auditor) -> np.ndarray:
            auditor.calibrate_groups(
                1 - CONFIDENCE, "interval", groups, bootstrap_params={"student": "prob_bound"}
            )
            bounds = [auditor.query_group(g)[0][0] for g in range(groups.shape[1])]
            return np.array(bounds)

        seconds, ends[level] = timed(calibrated)
        total += seconds
    return Intervals(ends, total)


@dataclass(frozen=True)
class Summary:
    """Widths, misses and times of a method over tables.

    Parameters
    ----------
    widths : ndarray of shape (n_tables, n_levels)
        Mean width over groups.
    is_missed : ndarray of bool, shape (n_tables, n_levels)
        Whether any interval of a table excludes the level.
    seconds : ndarray of shape (n_tables,)
        CPU times.
    """

    widths: np.ndarray
    is_missed: np.ndarray
    seconds: np.ndarray

    @classmethod
    def of(cls, tables: list[Intervals]) -> Summary:
        """Return the summary of tables of calibrated forecasts."""
        widths = [[np.diff(one.ends[level]).mean() for level in COVERAGES] for one in tables]
        missed = [[excludes(one.ends[level], level) for level in COVERAGES] for one in tables]
        return cls(np.array(widths), np.array(missed), np.array([one.seconds for one in tables]))


def excludes(ends: np.ndarray, truth: float) -> bool:
    """Return whether any interval excludes the true value."""
    return bool(((ends[:, 0] > truth) | (ends[:, 1] < truth)).any())


def section(n_tables: int) -> Section:
    """Compare intervals on tables of calibrated forecasts; ours also on ten times as many."""
    ours, theirs, alone = [], [], []
    for seed in range(10 * n_tables):
        rng = np.random.default_rng(seed)
        X = binary_features(N_ROWS, N_FEATURES, rng)
        pit = rng.uniform(size=N_ROWS)
        masks = groups_of_features(X, MIN_SIZE)
        alone.append(by_scan(pit, X, list(masks)))
        if seed < n_tables:
            ours.append(alone[-1])
            theirs.append(by_fairaudit(pit, np.column_stack(list(masks.values()))))
    return _section(len(masks), Summary.of(ours), Summary.of(theirs), Summary.of(alone))


def _section(n_groups: int, ours: Summary, theirs: Summary, alone: Summary) -> Section:
    made = Section("Simultaneous intervals for coverage")
    ratio = ours.widths.mean(axis=0) / theirs.widths.mean(axis=0)
    time = float(np.median(ours.seconds / theirs.seconds))
    made.lines = [
        *paragraph(
            f"{N_ROWS:,} rows, calibrated forecasts, {n_groups} groups: 24 values of 12 features"
            f" and all their pairs; {CONFIDENCE:.0%} confidence for all groups at once. evenhand:"
            " `scan_groups`, all measures in one call. fairaudit: `calibrate_groups` of type"
            " interval with the scaling for bounds (prob_bound), 500 bootstrap replicates."
        ),
        "",
        *table_lines(
            (
                "method",
                "tables",
                *(f"width, {level:.0%}" for level in COVERAGES),
                *(f"any miss, {level:.0%}" for level in COVERAGES),
                "time",
            ),
            [
                _row("evenhand", ours, theirs),
                _row("fairaudit", theirs, theirs),
                _row("evenhand, more tables", alone, theirs),
            ],
        ),
        "",
        "Any miss: tables in which some interval excludes the truth, 5% if exactly at the stated",
        "confidence. Time: CPU, as a share of fairaudit's for the two levels.",
        *(
            f"{'held' if value <= WIDER else 'NOT HELD'}: mean width at most {WIDER - 1:.0%} above"
            f" fairaudit's at {level:.0%}: {value - 1:+.1%}"
            for level, value in zip(COVERAGES, ratio, strict=True)
        ),
        f"{'held' if time <= SHORTER else 'NOT HELD'}: time at most a tenth of fairaudit's:"
        f" 1/{1 / time:.0f}",
    ]
    for k, level in enumerate(COVERAGES):
        made.contests.append(
            Contest(
                "simultaneous intervals",
                f"mean width, {level:.0%} coverage",
                float(ours.widths[:, k].mean()),
                {"fairaudit": float(theirs.widths[:, k].mean())},
                text=".4f",
            )
        )
    made.contests += [
        Contest(
            "simultaneous intervals",
            "tables with any miss beyond 5%",
            max(0.0, float(alone.is_missed.mean(axis=0).max()) - 0.05),
            {"fairaudit": max(0.0, float(theirs.is_missed.mean(axis=0).max()) - 0.05)},
            noise=2 * float(np.sqrt(0.05 * 0.95 / len(theirs.seconds))),
            text=".3f",
        ),
        Contest("simultaneous intervals", "CPU time, share", time, {"fairaudit": 1.0}),
    ]
    return made


def _row(name: str, summary: Summary, reference: Summary) -> tuple[str, ...]:
    n = len(summary.seconds)
    misses = []
    for count in summary.is_missed.sum(axis=0):
        low, high = binomial_range(int(count), n)
        misses.append(f"{count}/{n} [{low:.3f}, {high:.3f}]")
    time = np.median(summary.seconds) / np.median(reference.seconds)
    widths = (f"{width:.4f}" for width in summary.widths.mean(axis=0))
    return (name, str(n), *widths, *misses, f"{time:.4f}")
