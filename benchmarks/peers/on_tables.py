"""Intervals and distributions on tables of the forecast benchmark: comparison with others.

Tables are those of the report of the forecast benchmark with at least 1,000 rows. Other libraries
wrap `HistGradientBoostingRegressor`, as does one of ours; each gets the same training rows, and
splits them as it recommends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from measures import (
    LEVELS,
    Contest,
    Section,
    Tally,
    covered_rows,
    crps_of_quantiles,
    paragraph,
    table_lines,
    timed,
    worst_gap,
)
from planted import groups_of_features
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.model_selection import cross_val_predict, train_test_split
from table_rows import Data, data_of, filled, folds_of, frame_of, wanted_tables

from evenhand import (
    BoostedDistributionRegressor,
    InputError,
    MixtureMLPRegressor,
    RecalibratedRegressor,
)

LEVEL = 0.9

CALIBRATION_SHARE = 0.25
"""Share of the training rows on which the other libraries calibrate."""

MIN_SIZE = 150


@dataclass(frozen=True)
class Predicted:
    """Predictions for test rows.

    Parameters
    ----------
    interval : ndarray of shape (n, 2)
        90% prediction intervals.
    quantiles : ndarray of shape (n, 99) or None
        Quantiles at `measures.LEVELS`; None if the method predicts no distribution.
    """

    interval: np.ndarray
    quantiles: np.ndarray | None = None


Predict = Callable[[Data, Data, int], Predicted]
"""Learns from training rows with a seed, and predicts test rows."""


def model(seed: int, **options: Any) -> HistGradientBoostingRegressor:
    """Return the model that is wrapped."""
    return HistGradientBoostingRegressor(random_state=seed, **options)


def split(train: Data, seed: int) -> tuple[Data, Data]:
    """Return the rows for fitting and those for calibration."""
    fit, calibrate = train_test_split(
        np.arange(len(train.y)), test_size=CALIBRATION_SHARE, random_state=seed
    )
    return train[fit], train[calibrate]


def _of_forecast(forecast: Any) -> Predicted:
    ends = np.column_stack([forecast.ppf(p) for p in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)])
    return Predicted(ends, np.column_stack([forecast.ppf(p) for p in LEVELS]))


def by_wrapper(train: Data, test: Data, seed: int) -> Predicted:
    """Recalibrated forecasts around the same model, cross-fitted on all training rows."""
    wrapped = RecalibratedRegressor(model(seed), random_state=seed)
    return _of_forecast(wrapped.fit(train.numbers, train.y).forecast(test.numbers))


def by_network(train: Data, test: Data, seed: int) -> Predicted:
    """Our default network, on the table itself."""
    network = MixtureMLPRegressor(random_state=seed)
    return _of_forecast(network.fit(train.X, train.y).forecast(test.X))


def by_boosting(train: Data, test: Data, seed: int) -> Predicted:
    """Our boosted distributions, on the table itself."""
    boosted = BoostedDistributionRegressor(random_state=seed)
    return _of_forecast(boosted.fit(train.X, train.y).forecast(test.X))


def by_mapie_split(train: Data, test: Data, seed: int) -> Predicted:
    """Split conformal intervals with absolute residuals."""
    from mapie.regression import SplitConformalRegressor

    fit, calibrate = split(train, seed)
    fitted = model(seed).fit(fit.numbers, fit.y)
    conformal = SplitConformalRegressor(fitted, confidence_level=LEVEL, prefit=True)
    conformal.conformalize(calibrate.numbers, calibrate.y)
    return Predicted(conformal.predict_interval(test.numbers)[1][:, :, 0])


def by_mapie_quantile(train: Data, test: Data, seed: int) -> Predicted:
    """Conformalized quantile regression."""
    from mapie.regression import ConformalizedQuantileRegressor

    fit, calibrate = split(train, seed)
    conformal = ConformalizedQuantileRegressor(
        model(seed, loss="quantile", quantile=0.5), confidence_level=LEVEL
    )
    conformal.fit(fit.numbers, fit.y).conformalize(calibrate.numbers, calibrate.y)
    return Predicted(conformal.predict_interval(test.numbers)[1][:, :, 0])


def by_crepes(train: Data, test: Data, seed: int) -> Predicted:
    """Conformal predictive system, residuals divided by the spread of the nearest neighbours."""
    from crepes import WrapRegressor
    from crepes.extras import DifficultyEstimator

    fit, calibrate = split(train, seed)
    difficulty = DifficultyEstimator().fit(fit.numbers, y=fit.y)
    wrapped = WrapRegressor(model(seed))
    wrapped.fit(fit.numbers, fit.y)
    wrapped.calibrate(calibrate.numbers, calibrate.y, de=difficulty, cps=True, seed=seed)
    interval = wrapped.predict_int(test.numbers, confidence=LEVEL)
    percent = list(100 * LEVELS)
    both = wrapped.predict_percentiles(
        test.numbers, lower_percentiles=percent, higher_percentiles=percent
    )
    return Predicted(interval, (both[:, : LEVELS.size] + both[:, LEVELS.size :]) / 2)


def by_uncertainty_toolbox(train: Data, test: Data, seed: int) -> Predicted:
    """Normal forecasts of constant spread, with the isotonic recalibration of their quantiles."""
    import uncertainty_toolbox as uct

    fit, calibrate = split(train, seed)
    unseen = fit.y - cross_val_predict(model(seed), fit.numbers, fit.y, cv=5)
    fitted = model(seed).fit(fit.numbers, fit.y)
    spread = unseen.std()

    def normal(rows: Data) -> tuple[np.ndarray, np.ndarray]:
        return fitted.predict(rows.numbers), np.full(len(rows.y), spread)

    recalibrated = uct.recalibration.get_quantile_recalibrator(*normal(calibrate), calibrate.y)
    mean, std = normal(test)

    def quantile(level: float) -> np.ndarray:
        # beyond the outcomes it has seen, the isotonic map predicts infinite quantiles
        return np.clip(recalibrated(mean, std, level), mean - 4 * std, mean + 4 * std)

    ends = [quantile(p) for p in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)]
    return Predicted(np.column_stack(ends), np.column_stack([quantile(p) for p in LEVELS]))


OURS: dict[str, Predict] = {
    "evenhand, same model": by_wrapper,
    "evenhand boosted": by_boosting,
    "evenhand network": by_network,
}
PEERS: dict[str, Predict] = {
    "MAPIE split": by_mapie_split,
    "MAPIE quantile": by_mapie_quantile,
    "crepes": by_crepes,
    "uncertainty-toolbox": by_uncertainty_toolbox,
}


@dataclass(frozen=True)
class Scores:
    """Scores of a method on the test rows of a table, each of shape (n,), and its CPU time."""

    is_covered: np.ndarray
    width: np.ndarray
    interval_score: np.ndarray
    crps: np.ndarray | None
    seconds: float


@dataclass(frozen=True)
class TableResult:
    """Result of a table.

    Parameters
    ----------
    name, size : str
        Name of the table, and its numbers of rows and groups in words.
    scores : dict of str to Scores
        Scores by method; empty if the table is left out.
    groups : dict of str to ndarray of bool
        Groups of the test rows.
    """

    name: str
    size: str
    scores: dict[str, Scores]
    groups: dict[str, np.ndarray]

    def with_scores(self, earlier: TableResult | None) -> TableResult:
        """Return the result with the scores of other methods before its own."""
        others = {} if earlier is None else earlier.scores
        return replace(self, scores=others | self.scores)


def interval_score(interval: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return widths, plus `2 / (1 - level)` times the distance of outcomes outside."""
    low, high = interval.T
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    return high - low + 2 / (1 - LEVEL) * outside


def scores_of(predict: Predict, data: Data, folds: list[np.ndarray]) -> Scores:
    """Return the scores of a method on the test rows of folds."""
    parts = []
    total = 0.0
    for seed, is_test in enumerate(folds):
        train, test = data[~is_test], data[is_test]
        seconds, found = timed(lambda a=train, b=test, s=seed: predict(a, b, s))
        total += seconds
        parts.append(
            (
                covered_rows(found.interval, test.y),
                np.diff(found.interval)[:, 0],
                interval_score(found.interval, test.y),
                None if found.quantiles is None else crps_of_quantiles(found.quantiles, test.y),
            )
        )
    covered, width, score, crps = zip(*parts, strict=True)
    has_crps = crps[0] is not None
    return Scores(
        np.concatenate(covered),
        np.concatenate(width),
        np.concatenate(score),
        np.concatenate(crps) if has_crps else None,
        total,
    )


def results_of(table: str, methods: Mapping[str, Predict]) -> TableResult:
    """Return the scores of methods on a table."""
    source = next(one for one in wanted_tables() if one.name == table)
    try:
        data = data_of(frame_of(source))
    except InputError as error:
        return TableResult(table, f"left out, {error}", {}, {})
    folds = folds_of(len(data.y))
    found = {name: scores_of(predict, data, folds) for name, predict in methods.items()}
    test = np.concatenate([np.flatnonzero(is_test) for is_test in folds])
    groups = groups_of_features(filled(data.X).iloc[test], MIN_SIZE)
    size = (
        f"{len(data.y):,} rows, {data.X.shape[1]} features; {test.size:,} test rows,"
        f" {len(groups)} groups"
    )
    return TableResult(table, size, found, groups)


HEADS = (
    "method",
    "coverage",
    "worst group",
    "off beyond noise",
    "width",
    "interval score",
    "CRPS",
    "time",
)


def table_block(table: TableResult) -> list[str]:
    """Return the lines of a table."""
    title = f"{table.name}: {table.size}"
    if not table.scores:
        return [title, ""]
    reference = table.scores["MAPIE quantile"].seconds
    groups = table.groups
    rows = []
    for name, scores in table.scores.items():
        lowest = min((scores.is_covered[mask].mean() for mask in groups.values()), default=np.nan)
        rows.append(
            (
                name,
                f"{scores.is_covered.mean():.3f}",
                f"{lowest:.3f}",
                f"{worst_gap(scores.is_covered, groups, LEVEL):.3f}",
                f"{scores.width.mean():.4g}",
                f"{scores.interval_score.mean():.4g}",
                "–" if scores.crps is None else f"{scores.crps.mean():.4g}",
                f"{scores.seconds / reference:.2f}",
            )
        )
    return [title, *table_lines(HEADS, rows), ""]


def contest(table: TableResult, measure: str, own: str) -> Contest:
    """Compare one of ours with the peers by one measure; ties by paired standard errors."""
    values = {}
    for method in (own, *PEERS):
        scores = table.scores[method]
        if measure == "worst group":
            values[method] = np.array([worst_gap(scores.is_covered, table.groups, LEVEL)])
        elif measure == "CRPS":
            values[method] = scores.crps
        else:
            values[method] = scores.interval_score
    mine = values.pop(own)
    theirs = {method: value for method, value in values.items() if value is not None}
    best = min(theirs, key=lambda method: theirs[method].mean())
    gap = mine - theirs[best]
    # a difference of one point of coverage is a tie: it is the scale of the noise of a group
    noise = 0.01 if gap.size == 1 else 2 * gap.std(ddof=1) / np.sqrt(gap.size)
    means = {method: float(value.mean()) for method, value in theirs.items()}
    return Contest(table.name, measure, float(mine.mean()), means, float(noise), ".4g")


def section(results: list[TableResult]) -> Section:
    """Return the page's section, given the results of tables."""
    made = Section("Intervals and distributions on tables of the benchmark")
    made.lines = paragraph(
        "90% intervals, mean over test rows of up to five folds. Worst group: the lowest coverage"
        f" of a half, value or pair of at least {MIN_SIZE} test rows. Off beyond noise: the largest"
        " difference of a group's coverage from 90%, less two standard errors. Interval score:"
        " width, plus 20 times the distance of outcomes outside. CRPS from 99 quantiles. Time: CPU"
        " of fits and predictions, in those of MAPIE quantile."
    )
    made.lines.append("")
    for table in results:
        made.lines += table_block(table)
    for own in OURS:
        complete = [table for table in results if {own, *PEERS} <= set(table.scores)]
        for measure in ("CRPS", "interval score", "worst group"):
            fought = [contest(table, measure, own) for table in complete]
            if not fought:
                continue
            made.contests.append(Tally(f"tables: {own}", measure, fought))
    made.lines += paragraph(
        "All but our boosted distributions and network wrap HistGradientBoostingRegressor(). MAPIE,"
        " crepes and uncertainty-toolbox fit it to three quarters of the training rows and"
        " calibrate on the others; evenhand cross-fits. MAPIE split: absolute residuals. MAPIE"
        " quantile: quantile loss. crepes: conformal predictive system, difficulty from the"
        " outcomes of the 25 nearest neighbours, as its documentation begins."
        " uncertainty-toolbox: normal of constant spread, isotonic recalibration of quantiles."
    )
    return made
