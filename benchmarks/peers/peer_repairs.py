"""Repairs of overlapping groups, compared with conditional conformal, crepes and MCGrad.

The forecast N(0, 1) is wrong in three groups that overlap, and all methods are given the groups and
the same rows to learn from. They are measured on fresh rows: coverage of 80% and 90% intervals in
each group, in intersections that no method was given, and where no group is; widths; and CRPS where
the method predicts a distribution. The same on rows where the forecast is right.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from measures import (
    LEVELS,
    Contest,
    Section,
    covered_rows,
    crps_of_quantiles,
    paragraph,
    table_lines,
    timed,
)
from planted import OVERLAPPING, features, overlapping_table
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.frozen import FrozenEstimator

from evenhand import RecalibratedRegressor
from evenhand.tables import GroupRule

N_LEARN = 3000
N_FRESH = 20_000
COVERAGES = (0.8, 0.9)


class StandardNormal(RegressorMixin, BaseEstimator):
    """Model of others that predicts N(0, 1) for every row."""

    fitted_ = True

    def fit(self, X: Any, y: Any) -> StandardNormal:
        """Do nothing."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return means, and standard deviations if asked for."""
        zero = np.zeros(len(X))
        return (zero, zero + 1) if return_std else zero


@dataclass(frozen=True)
class Rows:
    """Rows with their memberships in the groups that methods are given.

    Parameters
    ----------
    X : DataFrame of shape (n, 12)
        Features.
    y : ndarray of shape (n,)
        Outcomes.
    inside : ndarray of shape (n, 3)
        Memberships in the given groups, 0 or 1.
    """

    X: pd.DataFrame
    y: np.ndarray
    inside: np.ndarray

    @classmethod
    def of(cls, X: pd.DataFrame, y: np.ndarray) -> Rows:
        """Return the rows with their memberships."""
        inside = np.column_stack([group(X) for group in OVERLAPPING.values()])
        return cls(X, y, inside.astype(float))

    @property
    def cell(self) -> np.ndarray:
        """Number of the combination of groups of each row, shape (n,)."""
        return (self.inside @ (1, 2, 4)).astype(int)


@dataclass(frozen=True)
class Repaired:
    """Predictions for fresh rows.

    Parameters
    ----------
    intervals : dict of float to ndarray of shape (n, 2)
        Prediction intervals by level.
    quantiles : ndarray of shape (n, 99) or None
        Quantiles at `measures.LEVELS`; None if the method predicts no distribution.
    """

    intervals: Mapping[float, np.ndarray]
    quantiles: np.ndarray | None = None


Repair = Callable[[Rows, Rows], Repaired]


def _of_quantiles(ppf: Callable[[np.ndarray], np.ndarray]) -> Repaired:
    """Return central intervals and quantiles, given quantiles at levels of shape (k,)."""
    ends = {level: ppf(np.array([(1 - level) / 2, (1 + level) / 2])) for level in COVERAGES}
    return Repaired(ends, ppf(LEVELS))


def unrepaired(learn: Rows, fresh: Rows) -> Repaired:
    """Return the forecast N(0, 1)."""
    n = len(fresh.y)
    return _of_quantiles(lambda levels: np.tile(stats.norm.ppf(levels), (n, 1)))


def by_evenhand(learn: Rows, fresh: Rows) -> Repaired:
    """Recalibrate the distribution by overlapping groups, each given by a rule."""
    rules = {name: GroupRule.parse(name, learn.X.columns) for name in OVERLAPPING}
    model = RecalibratedRegressor(FrozenEstimator(StandardNormal()), by=rules, random_state=0)
    model.fit(learn.X, learn.y)
    forecast = model.forecast(fresh.X)
    return _of_quantiles(lambda p: np.column_stack([forecast.ppf(level) for level in p]))


def by_evenhand_cells(learn: Rows, fresh: Rows) -> Repaired:
    """Recalibrate by combinations of the groups, as `by` with a list of columns does."""
    names = [f"g{j}" for j in range(learn.inside.shape[1])]

    def table(rows: Rows) -> pd.DataFrame:
        return pd.DataFrame(rows.inside.astype(bool), columns=names)

    model = RecalibratedRegressor(FrozenEstimator(StandardNormal()), by=names, random_state=0)
    forecast = model.fit(table(learn), learn.y).forecast(table(fresh))
    return _of_quantiles(lambda p: np.column_stack([forecast.ppf(level) for level in p]))


def _per_cell(fresh: Rows, predict: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Predict once per combination of groups, as these cutoffs depend on nothing else."""
    _, first, cell = np.unique(fresh.cell, return_index=True, return_inverse=True)
    return predict(fresh.inside[first])[cell]


def with_intercept(inside: np.ndarray) -> np.ndarray:
    """Return the basis of conditional conformal prediction: all rows, and each group."""
    return np.column_stack([np.ones(len(inside)), inside])


def by_mapie(learn: Rows, fresh: Rows) -> Repaired:
    """Conditional split conformal prediction with signed scores, exact cutoffs."""
    from mapie.conditional_conformal_prediction import ConditionalSplitConformalRegressor
    from mapie.conformity_scores import AbsoluteConformityScore

    model = ConditionalSplitConformalRegressor(
        with_intercept,
        StandardNormal(),
        list(COVERAGES),
        conformity_score=AbsoluteConformityScore(sym=False),
    )
    model.conformalize(learn.inside, learn.y)
    found = _per_cell(fresh, lambda inside: model.predict_interval(inside)[1])
    return Repaired({level: found[:, :, k] for k, level in enumerate(COVERAGES)})


def by_conditionalconformal(learn: Rows, fresh: Rows) -> Repaired:
    """Conditional conformal prediction by its authors, signed scores, one cutoff for each side."""
    from conditionalconformal import CondConf

    model = CondConf(lambda x, y: y, with_intercept)
    model.setup_problem(learn.inside, learn.y)

    def ends(inside: np.ndarray, level: float) -> np.ndarray:
        return np.array(
            [
                [
                    float(np.ravel(model.predict(tail, row[None], lambda cut, x: cut))[0])
                    for tail in ((1 - level) / 2, (1 + level) / 2)
                ]
                for row in inside
            ]
        )

    return Repaired(
        {level: _per_cell(fresh, lambda rows, p=level: ends(rows, p)) for level in COVERAGES}
    )


def by_crepes(learn: Rows, fresh: Rows) -> Repaired:
    """Mondrian conformal predictive systems, one per combination of groups."""
    from crepes import ConformalPredictiveSystem

    system = ConformalPredictiveSystem()
    system.fit(learn.y, bins=learn.cell, seed=0)
    _, first, cell = np.unique(fresh.cell, return_index=True, return_inverse=True)
    zero, bins = np.zeros(first.size), fresh.cell[first]
    intervals = {
        level: system.predict_int(zero, bins=bins, confidence=level)[cell] for level in COVERAGES
    }
    percent = list(100 * LEVELS)
    both = system.predict_percentiles(
        zero, bins=bins, lower_percentiles=percent, higher_percentiles=percent
    )
    quantiles = (both[:, : LEVELS.size] + both[:, LEVELS.size :]) / 2
    return Repaired(intervals, quantiles[cell])


def by_mcgrad(learn: Rows, fresh: Rows) -> Repaired:
    """Multicalibration of the mean by boosting over the groups; the spread stays."""
    from mcgrad.methods import RegressionMCGrad

    names = [f"g{j}" for j in range(learn.inside.shape[1])]

    def frame(rows: Rows) -> pd.DataFrame:
        inside = pd.DataFrame(rows.inside.astype(int).astype(str), columns=names)
        return inside.assign(prediction=0.0, label=rows.y)

    model = RegressionMCGrad()
    model.fit(frame(learn), "prediction", "label", categorical_feature_column_names=names)
    mean = model.predict(frame(fresh), "prediction", categorical_feature_column_names=names)
    return _of_quantiles(lambda levels: np.asarray(mean)[:, None] + stats.norm.ppf(levels))


METHODS: dict[str, Repair] = {
    "evenhand": by_evenhand,
    "evenhand, by combinations": by_evenhand_cells,
    "MAPIE conditional": by_mapie,
    "conditionalconformal": by_conditionalconformal,
    "crepes Mondrian": by_crepes,
    "MCGrad mean": by_mcgrad,
}
BEFORE = "before"


def calibrated_table(n: int, rng: np.random.Generator) -> tuple[pd.DataFrame, np.ndarray]:
    """Return features, and outcomes for which the forecast N(0, 1) is right."""
    return features(n, rng), rng.normal(size=n)


def measured(found: Repaired, fresh: Rows) -> dict[str, float]:
    """Return the measures of one repair on fresh rows.

    Returns
    -------
    dict of str to float
        "given" and "other": mean absolute difference of coverage from the level, in the given
        groups and in their intersections and the rest, over both levels; "pooled": the same for all
        rows; "width": mean width of 90% intervals; "crps": mean CRPS, NaN without a distribution.
    """
    given = [column > 0 for column in fresh.inside.T]
    other = [a & b for a, b in combinations(given, 2)] + [~np.any(given, axis=0)]
    gaps: dict[str, list[float]] = {"given": [], "other": [], "pooled": []}
    for level in COVERAGES:
        covered = covered_rows(found.intervals[level], fresh.y)
        everyone = [np.ones(len(covered), dtype=bool)]
        for name, groups in (("given", given), ("other", other), ("pooled", everyone)):
            gaps[name] += [abs(covered[group].mean() - level) for group in groups]
    crps = np.nan if found.quantiles is None else crps_of_quantiles(found.quantiles, fresh.y).mean()
    width = np.diff(found.intervals[0.9]).mean()
    means = {name: float(np.mean(values)) for name, values in gaps.items()}
    return means | {"width": float(width), "crps": float(crps)}


MEASURES = {
    "given": "coverage off, given groups",
    "other": "coverage off, intersections",
    "pooled": "coverage off, all rows",
    "width": "width, 90%",
    "crps": "CRPS",
}


def section(n_repeats: int) -> Section:
    """Repair overlapping groups, and calibrated forecasts, in several repetitions."""
    warnings.simplefilter("ignore")
    made = Section("Repairs of overlapping groups")
    made.lines = [
        f"{N_LEARN:,} rows to learn from, {N_FRESH:,} fresh rows, forecast N(0, 1), {n_repeats}"
        " repetitions.",
        f"Groups: {'; '.join(OVERLAPPING)}: mean +0.5; spread 1.6; mean -0.4.",
        *paragraph(
            "Coverage off: mean of |coverage - level| for 80% and 90% over groups; the"
            " intersections of two groups, and the rows in no group, were not named to any method,"
            " but for those that take combinations. CRPS from 99 quantiles."
        ),
        "",
    ]
    for title, table in (("planted", overlapping_table), ("calibrated", calibrated_table)):
        results, seconds = _run(table, n_repeats)
        made.lines += [f"{title} outcomes (mean, and in brackets its standard error)"]
        made.lines += [*_lines(results, seconds), ""]
        made.contests += _contests(f"repairs, {title}", results)
    made.lines += [
        "MAPIE and conditionalconformal: basis of all rows and each group, signed scores, exact",
        "cutoffs, one prediction per combination of groups, as cutoffs depend on nothing else.",
        "crepes: conformal predictive systems, a Mondrian category for each combination of groups.",
        "MCGrad: RegressionMCGrad, defaults, the groups as categorical features; the mean only.",
        "Time: CPU of learning and of 20,000 predictions, in those of evenhand.",
    ]
    return made


def _run(
    table: Callable[[int, np.random.Generator], tuple[pd.DataFrame, np.ndarray]], n_repeats: int
) -> tuple[dict[str, dict[str, np.ndarray]], dict[str, float]]:
    """Return measures per repetition and median CPU seconds, by method."""
    found: dict[str, list[dict[str, float]]] = {}
    times: dict[str, list[float]] = {}
    for seed in range(n_repeats):
        rng = np.random.default_rng(1000 + seed)
        learn, fresh = Rows.of(*table(N_LEARN, rng)), Rows.of(*table(N_FRESH, rng))
        for name, repair in ({BEFORE: unrepaired} | METHODS).items():
            seconds, repaired = timed(lambda repair=repair: repair(learn, fresh))  # noqa: B023
            found.setdefault(name, []).append(measured(repaired, fresh))
            times.setdefault(name, []).append(seconds)
    results = {
        name: {key: np.array([row[key] for row in rows]) for key in MEASURES}
        for name, rows in found.items()
    }
    return results, {name: float(np.median(values)) for name, values in times.items()}


def _lines(results: dict[str, dict[str, np.ndarray]], seconds: dict[str, float]) -> list[str]:
    rows = []
    for name, values in results.items():
        cells = [_with_error(values[key]) for key in MEASURES]
        ratio = "" if name == BEFORE else f"{seconds[name] / seconds['evenhand']:.2f}"
        rows.append((name, *cells, ratio))
    return list(table_lines(("method", *MEASURES.values(), "time"), rows))


def _with_error(values: np.ndarray) -> str:
    if np.isnan(values).any():
        return "–"
    error = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else np.nan
    return f"{values.mean():.4f} ({error:.4f})"


def _contests(problem: str, results: dict[str, dict[str, np.ndarray]]) -> list[Contest]:
    made = []
    for key in ("given", "other", "pooled", "crps"):
        ours = results["evenhand"][key]
        theirs = {
            name: values[key]
            for name, values in results.items()
            if not name.startswith((BEFORE, "evenhand")) and not np.isnan(values[key]).any()
        }
        best = min(theirs, key=lambda name: theirs[name].mean())
        # paired over repetitions, as all methods get the same rows
        gap = ours - theirs[best]
        noise = 2 * gap.std(ddof=1) / np.sqrt(gap.size) if gap.size > 1 else 0.0
        made.append(
            Contest(
                problem,
                MEASURES[key],
                float(ours.mean()),
                {name: float(values.mean()) for name, values in theirs.items()},
                noise=float(noise),
                text=".4f",
            )
        )
    return made
