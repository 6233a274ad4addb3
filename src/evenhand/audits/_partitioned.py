"""From a tally of all rows and an audit of some of them to one audit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand import calibration
from evenhand.audits import _tables
from evenhand.audits._pictures import LEVELS, curve_table
from evenhand.audits._result import Audit
from evenhand.audits._tally import Tally, TallyPlan
from evenhand.calibration._exact import Wholes, rounded
from evenhand.calibration.bands import binned_error_interval
from evenhand.calibration.counts import BINS, PITCounts, binned_error
from evenhand.figures._histogram import BINS as BARS
from evenhand.figures._histogram import band

CONFIDENCE = 0.95
"""Of the bands of averages, as in an audit in memory."""


def audit_of(found: Audit, tally: Tally, plan: TallyPlan, *, confidence: float, min_size: int) -> Audit:
    """Put what all rows say in the place of what some of them say.

    Parameters
    ----------
    found : Audit
        Of rows chosen at random: what is searched for, scores, examples and price stay as they are.
    tally : Tally
        Of all rows.
    plan : TallyPlan
        By which they were counted.
    confidence : float
        Of the certificate.
    min_size : int
        Fewest rows of a scanned group.
    """
    n, searched = tally.counts.n_samples, found.n_samples
    groups = {name: counts for name, counts in tally.groups.items() if counts.n_samples}
    proof = None
    if found.certificate is not None:
        proof = calibration.certify_counts(
            tally.counts, groups=groups, is_randomized=tally.is_randomized, confidence=confidence
        )
    worst = found.worst_groups
    bounds = [np.nan if proof is None else proof.group_error(mass) for mass in worst["mass"]]
    table = _group_table(tally, groups, found.groups)
    everyone = table.iloc[0]
    is_all = worst["mass"] == 1
    notes = [
        f"averages, named groups{', the scan' * (tally.scan is not None)} and what is proven are of all {n:,} rows; "
        f"errors of averages and named groups are counted in bins, within {1 / (2 * BINS):.5f} of the exact ones",
        f"scores, learned groups and worst groups in hindsight are of {searched:,} rows chosen at random",
    ]
    notes += [f"no row of group {name!r} is left" for name in tally.groups if name not in groups]
    return replace(
        found,
        n_samples=n,
        scores=_scores(found.scores, everyone),
        groups=table,
        scan=found.scan if tally.scan is None or plan.layout is None else tally.scan.frame(plan.layout, min_size),
        # the group of everybody is not searched for
        worst_groups=worst.assign(
            n=worst["n"].mask(is_all, n), error=worst["error"].mask(is_all, everyone["error"]), certified=bounds
        ),
        certificate=proof,
        histogram=_histogram(tally),
        calibration=_curve(tally.counts),
        notes=(*notes, *found.notes),
    )


def _scores(scores: pd.DataFrame, everyone: pd.Series[Any]) -> pd.DataFrame:
    """Scores of which those that PITs give are of everybody."""
    columns = {f"{level:.0%} coverage": f"coverage_{level * 100:.0f}" for level in _tables.LEVELS}
    columns["average error"] = "error"
    rows = scores.to_dict("records")
    for row in rows:
        if (column := columns.get(row["measure"])) is not None:
            row |= {"value": everyone[column], "low": everyone[f"{column}_low"], "high": everyone[f"{column}_high"]}
    return pd.DataFrame(rows, columns=scores.columns)


def _group_table(tally: Tally, groups: dict[str, PITCounts], some: pd.DataFrame) -> pd.DataFrame:
    """Everybody and the named groups; `some` is the same table of the rows chosen at random."""
    margins = {row["group"]: _margin(dict(row)) for row in some.to_dict("records")}
    everyone = {"everyone": tally.counts}
    return pd.DataFrame(
        [_row(name, counts, tally.moments[name], margins.get(name)) for name, counts in (everyone | groups).items()]
    )


def _margin(row: dict[Any, Any]) -> float | None:
    """How far the error of a sample of one row may be from the true one; None of too few rows to tell."""
    return None if row["too_small"] else (row["error_high"] - row["error"]) * np.sqrt(row["n"])


def _row(name: str, counts: PITCounts, sums: Wholes, margin: float | None) -> dict[str, Any]:
    n = counts.n_samples
    mean_pit, residual, square = rounded(sums) / n
    variance = max(square - residual**2, 0.0) / n if n >= 2 else np.nan
    coverage = {level: _coverage(counts, level) for level in _tables.LEVELS}
    bias = _tables.mean_band(float(residual), float(variance))
    is_small = n < _tables.SMALL_GROUP
    return _tables.group_row(name, n, _error(counts, margin), float(mean_pit), bias, coverage, is_small)


def _error(counts: PITCounts, margin: float | None) -> tuple[float, float, float]:
    """W1 error with its band: that of the rows chosen at random shrinks as 1 / sqrt(n), as in an audit in memory."""
    error = binned_error(counts)
    if margin is None:
        return error, *binned_error_interval(counts.one_draw, CONFIDENCE)
    spread = margin / np.sqrt(counts.n_samples)
    return error, max(error - spread, 0.0), min(error + spread, 0.5)


def _coverage(counts: PITCounts, level: float) -> dict[str, float]:
    inside, n = counts.inside[level], counts.n_samples
    shares = np.arange(inside.size) / counts.n_draws
    mean = float(inside @ shares) / n
    return _tables.share_band(mean, float(inside @ (shares - mean) ** 2) / n**2, n)


def _histogram(tally: Tally) -> pd.DataFrame:
    n, m = tally.counts.n_samples, tally.counts.n_draws
    draws, squares = tally.bars / np.array([[m], [m**2]])
    low, high = band((squares - 2 / BARS * draws + n / BARS**2) / n**2, m)
    edges = np.arange(BARS + 1) / BARS
    return pd.DataFrame({"start": edges[:-1], "end": edges[1:], "share": draws / n, "low": low, "high": high})


def _curve(counts: PITCounts) -> pd.DataFrame:
    below = np.cumsum(counts.pit) / counts.pit.sum()
    return curve_table(below[np.rint(LEVELS * BINS).astype(np.intp) - 1], counts.n_samples)
