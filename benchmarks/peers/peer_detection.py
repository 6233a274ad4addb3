"""Detection of planted groups, compared with fairaudit, MCGrad and DivExplorer.

All methods get the same rows: features, outcomes and the forecast N(0, 1). A group is found if the
method's own rule is met; the right group is named if the group that the method puts first and the
planted one share at least half of the rows of either.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from measures import OURS, Contest, Section, binomial_range, overlap, paragraph, table_lines, timed
from planted import PROBLEMS, Planted, groups_of_features, planted_table
from scipy import stats

from evenhand.search import find_group, scan_groups

N_ROWS = 3000
MIN_SIZE = 150
LEVEL = 0.05
MASSES = (0.1, 0.2, 0.5)
"""Sizes of learned groups, those of an audit."""

NAMED = 0.5
"""Least overlap with the planted rows of a group that counts as the right one."""


@dataclass(frozen=True)
class Answer:
    """Answer of a method: whether a group was found, and the rows of its first group, if any."""

    is_found: bool
    rows: np.ndarray | None


@dataclass(frozen=True)
class Method:
    """A method with its name, its rule in words, and how many tables of a problem it is given.

    Parameters
    ----------
    name : str
        Name of the method.
    rule : str
        When a group counts as found.
    share : float
        Share of the tables that it is given, as some methods take long.
    detect : function
        Returns the answer for a table.
    """

    name: str
    rule: str
    share: float
    detect: Callable[[Planted], Answer]


def pit_of(table: Planted) -> np.ndarray:
    """Return the PITs of the forecast N(0, 1)."""
    return stats.norm.cdf(table.y)


def by_scan(table: Planted) -> Answer:
    """Test halves, values and their pairs, with Holm's correction."""
    found = scan_groups(pit_of(table), table.X, MIN_SIZE)
    first = found.iloc[0]
    masks = groups_of_features(table.X, MIN_SIZE)
    return Answer(bool(first["p_adjusted"] < LEVEL), masks.get(first["group"]))


def by_learned_group(table: Planted) -> Answer:
    """Learn a group of each size, with Bonferroni's correction for the sizes."""
    pit = pit_of(table)
    found = [find_group(pit, table.X, mass, random_state=0) for mass in MASSES]
    best = min(found, key=lambda group: group.p_value)
    rows = np.zeros(len(table.y), dtype=bool)
    rows[best.rows] = True
    return Answer(bool(best.p_value < LEVEL / len(MASSES)), rows)


def by_fairaudit(table: Planted) -> Answer:
    """Flag groups by the level and the spread of PITs, each in both directions.

    The two-sided test of fairaudit 0.0.1 computes `1 - 2 Phi(|t|)`, which is never positive, and
    flags every group, so both one-sided tests are used. The defaults otherwise: bootstrap of 500
    replicates, median absolute deviation, Benjamini and Hochberg.
    """
    from fairaudit import Auditor, Metric

    pit = pit_of(table)
    masks = groups_of_features(table.X, MIN_SIZE)
    groups = np.column_stack(list(masks.values()))
    n, sizes = len(pit), groups.sum(axis=0)
    is_found = False
    largest = np.zeros(groups.shape[1])
    for name, value in {"level": pit - 0.5, "spread": np.abs(pit - 0.5) - 0.25}.items():
        metric = Metric(name, lambda Z, Y: Y.reshape(-1), lambda Z, Y, X=None: np.zeros(len(Y)))
        auditor = Auditor(np.ones((n, 1)), value.reshape(-1, 1), np.zeros((n, 1)), metric)
        for side in ("lower", "upper"):
            flags, means = auditor.flag_groups(groups, side, LEVEL / 4)
            is_found |= bool(flags.any())
            standardized = np.abs(means[0]) * np.sqrt(sizes) / value.std()
            largest = np.maximum(largest, np.where(flags, standardized, 0.0))
    return Answer(is_found, groups[:, np.argmax(largest)] if is_found else None)


def by_mcgrad(table: Planted, *, sigmas: float | None) -> Answer:
    """Multicalibration error of the mean, and of the spread of PITs as a second outcome.

    Parameters
    ----------
    sigmas : float, optional
        Number of standard deviations that the largest error must exceed; by default its p-value
        must be less than 0.05, both halved for the two outcomes.
    """
    from mcgrad.metrics import MulticalibrationError

    spread = np.abs(pit_of(table) - 0.5)
    frame = table.X.assign(mean=table.y, mean_score=0.0, spread=spread, spread_score=0.25)
    words = [name for name in table.X if table.X[name].dtype.kind not in "fi"]
    numbers = [name for name in table.X if name not in words]
    errors = [
        MulticalibrationError(
            frame,
            label,
            f"{label}_score",
            categorical_segment_columns=words,
            numerical_segment_columns=numbers,
            outcome_type="regression",
        )
        for label in ("mean", "spread")
    ]
    worst = max(errors, key=lambda error: error.mce_sigma)
    is_found = (
        min(error.mce_pvalue for error in errors) < LEVEL / 2
        if sigmas is None
        else worst.mce_sigma > sigmas
    )
    # the segments in the order of their errors; rows were sorted by the score
    segments = worst._segments[0].reshape(-1, len(frame))
    rows = np.zeros(len(frame), dtype=bool)
    rows[worst.df["index"].to_numpy()] = segments[np.argmax(worst.segments_ecce_sigma)]
    return Answer(bool(is_found), rows)


def by_divexplorer(table: Planted, *, corrected: bool) -> Answer:
    """Rank patterns of halves and values by Welch's t; the tool has no test for the largest.

    Parameters
    ----------
    corrected : bool
        Whether |t| must exceed the normal quantile with Bonferroni's correction for the patterns
        and the two outcomes, which is ours; else the usual 1.96.
    """
    from divexplorer import DivergenceExplorer

    pit = pit_of(table)
    halves = {
        name: column if column.dtype.kind not in "fi" else column > column.median()
        for name, column in table.X.items()
    }
    frame = pd.DataFrame(halves).assign(level=pit, spread=np.abs(pit - 0.5))
    patterns = DivergenceExplorer(frame).get_pattern_divergence(
        min_support=MIN_SIZE / len(frame),
        quantitative_outcomes=["level", "spread"],
        attributes=list(table.X),
    )
    t = patterns[["level_t", "spread_t"]].max(axis=1).to_numpy(dtype=float)
    tail = LEVEL / (2 * t.size) if corrected else LEVEL
    rows = np.ones(len(frame), dtype=bool)
    for item in patterns["itemset"].iloc[int(np.argmax(t))]:
        name, _, value = item.partition("=")
        rows &= frame[name].astype(str).to_numpy() == value
    return Answer(bool(t.max() > stats.norm.isf(tail / 2)), rows)


METHODS = (
    Method("evenhand scan", "Holm-adjusted p < 0.05", 1.0, by_scan),
    Method(
        "evenhand learned group",
        "p < 0.05 / 3 for a group of 10, 20 or 50% of the rows",
        0.4,
        by_learned_group,
    ),
    Method(
        "fairaudit flags",
        "any group flagged at 0.05, Benjamini and Hochberg, two metrics, both directions",
        0.1,
        by_fairaudit,
    ),
    Method(
        "MCGrad p-value",
        "p < 0.05 / 2 for the mean or the spread",
        0.4,
        partial(by_mcgrad, sigmas=None),
    ),
    Method("MCGrad 5 sigma", "largest error above 5 sigma", 0.4, partial(by_mcgrad, sigmas=5.0)),
    Method(
        "DivExplorer t", "largest |t| above 1.96", 0.1, partial(by_divexplorer, corrected=False)
    ),
    Method(
        "DivExplorer t, corrected",
        "largest |t| above the normal quantile with Bonferroni's correction (ours)",
        0.1,
        partial(by_divexplorer, corrected=True),
    ),
)
CLAIMED_LEVEL = 0.05
"""False alarms that a method may have to be compared by its power."""


@dataclass(frozen=True)
class Counts:
    """Counts of a method on the tables of a problem.

    Parameters
    ----------
    n : int
        Number of tables.
    found, named : int
        Tables in which a group was found, and in which it was also the planted one.
    seconds : float
        CPU time of a table, the median.
    """

    n: int
    found: int
    named: int
    seconds: float

    @property
    def share(self) -> float:
        """Share of the tables in which a group was found."""
        return self.found / self.n

    @property
    def named_share(self) -> float:
        """Share of the tables in which the first group was the planted one."""
        return self.named / self.n


def count(method: Method, problem: str, n_tables: int, first_seed: int) -> Counts:
    """Run a method on the tables of a problem."""
    found = named = 0
    times = []
    for seed in range(first_seed, first_seed + n_tables):
        table = planted_table(problem, N_ROWS, seed)
        seconds, answer = timed(partial(method.detect, table))
        times.append(seconds)
        found += answer.is_found
        named += answer.is_found and overlap(answer.rows, table.rows) >= NAMED
    return Counts(n_tables, found, named, float(np.median(times)))


def is_at_level(calibrated: Counts) -> bool:
    """Return whether false alarms are not significantly above 5% (one-sided, at 1%)."""
    tail = stats.binom.sf(calibrated.found - 1, calibrated.n, CLAIMED_LEVEL)
    return bool(tail > 0.01)


def contests(results: dict[str, dict[str, Counts]]) -> list[Contest]:
    """Compare the more powerful of ours with peers whose false alarms are at their level.

    A difference of shares is a tie unless Fisher's exact test is significant at 5%.
    """
    own = [name for name in results if name.startswith(OURS)]
    peers = [name for name in results if name not in own]
    trusted = [name for name in results if is_at_level(results[name]["calibrated"])]
    problem = "calibrated"
    # each package by its best rule for false alarms, ours by its worst
    worst = max(own, key=lambda name: results[name][problem].share)
    made = [_alarm_contest(results, worst, [name]) for name in peers]
    for problem in list(PROBLEMS)[1:]:
        for measure in ("share", "named_share"):
            words = "found" if measure == "share" else "found and named"
            value = {name: getattr(results[name][problem], measure) for name in trusted}
            mine = {name: value[name] for name in own if name in trusted}
            theirs = {name: value[name] for name in peers if name in trusted}
            if mine and theirs:
                first = max(mine, key=mine.__getitem__)
                other = max(theirs, key=theirs.__getitem__)
                counts = results[first][problem], results[other][problem]
                differ = is_different(*counts, named=measure == "named_share")
                made.append(
                    Contest(
                        f"detection: {problem}",
                        f"share of tables {words}",
                        mine[first],
                        theirs,
                        noise=0.0 if differ else 1.0,
                        text=".2f",
                        more_is_better=True,
                    )
                )
    ratios = {name: mean_ratio(results, name) for name in peers}
    made.append(Contest("detection: all", "CPU time of a table, in our scans", 1.0, ratios))
    learned = mean_ratio(results, "evenhand learned group")
    made.append(Contest("detection: all, learned", "CPU time, in our scans", learned, ratios))
    return made


def _alarm_contest(
    results: dict[str, dict[str, Counts]], own: str, peers: Sequence[str]
) -> Contest:
    calibrated = {name: results[name]["calibrated"] for name in (own, *peers)}
    differ = any(is_different(calibrated[own], calibrated[name]) for name in peers)
    return Contest(
        "detection: calibrated",
        "share of false alarms",
        calibrated[own].share,
        {name: calibrated[name].share for name in peers},
        noise=0.0 if differ else 1.0,
        text=".2f",
    )


def is_different(one: Counts, other: Counts, *, named: bool = False) -> bool:
    """Return whether two shares differ significantly (Fisher's exact test, 5%)."""
    counts = [(each.named if named else each.found) for each in (one, other)]
    table = [[count, each.n - count] for count, each in zip(counts, (one, other), strict=True)]
    return bool(stats.fisher_exact(table).pvalue < LEVEL)


def mean_ratio(results: dict[str, dict[str, Counts]], name: str) -> float:
    """Return the CPU time of a table in scans of ours, the mean over problems."""
    ratios = [
        results[name][problem].seconds / results["evenhand scan"][problem].seconds
        for problem in PROBLEMS
    ]
    return float(np.mean(ratios))


def results_of(method: Method, n_tables: int) -> dict[str, Counts]:
    """Run a method on all problems.

    Parameters
    ----------
    method : Method
        Method, which gets its share of the tables.
    n_tables : int
        Tables of each problem for the fastest method; twice as many calibrated ones.
    """
    found = {}
    for k, problem in enumerate(PROBLEMS):
        n = max(1, round(method.share * n_tables)) * (2 if problem == "calibrated" else 1)
        found[problem] = count(method, problem, n, 10_000 * k)
    return found


def section(results: dict[str, dict[str, Counts]]) -> Section:
    """Return the page's section, given the counts of every method by its name."""
    return Section("Detection of planted groups", _lines(results), contests(results))


def _lines(results: dict[str, dict[str, Counts]]) -> list[str]:
    heads = ("method", *PROBLEMS, "time")
    rows = []
    for name, found in results.items():
        cells = [
            f"{each.found}/{each.n}" + ("" if problem == "calibrated" else f" ({each.named})")
            for problem, each in found.items()
        ]
        rows.append((name, *cells, f"{mean_ratio(results, name):.1f}"))
    low, high = binomial_range(2, 20)
    return [
        *paragraph(
            f"{N_ROWS:,} rows, 8 uniform features, 4 categories of 2 to 5 values; forecast N(0, 1)."
            " Tables in which a group was found, and in brackets those in which the first group was"
            " also the planted one (at least half of the rows of either in common); the first"
            " column counts false alarms. Time: CPU of a table, in scans of ours."
        ),
        "",
        *table_lines(heads, rows),
        "",
        *paragraph(
            f"Counts of few tables are rough: 2 of 20 is a share between {low:.2f} and {high:.2f}."
            " Only methods whose false alarms are not significantly above 5% are compared by their"
            " power."
        ),
        "",
        *table_lines(("method", "found if"), [(method.name, method.rule) for method in METHODS]),
        "",
        *paragraph(
            "fairaudit's two-sided flags have p-values that are never positive and flag every"
            " group, so both one-sided tests are used. MCGrad: its default segments, up to three"
            " features, at least 10 rows. DivExplorer: patterns of any length of at least 150 rows;"
            " t compares a pattern with all rows."
        ),
    ]
