"""From a tally of all rows and an audit of some of them to one audit."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand import certificates
from evenhand._format import stated
from evenhand.audits import tables as _tables
from evenhand.audits._tally import Tally, TallyPlan
from evenhand.audits.pictures import LEVELS, curve_table
from evenhand.audits.result import Audit
from evenhand.audits.rows import POSSIBLE_LEAK, with_leaks
from evenhand.calibration import HISTOGRAM_BINS as BARS
from evenhand.calibration import (
    PIT_BINS,
    PITCounts,
    binned_error,
    binned_error_interval,
    histogram_band,
)
from evenhand.calibration._exact import Wholes, rounded
from evenhand.columns import Group
from evenhand.report import says_no_scan

CONFIDENCE = 0.95
"""Of the bands of averages, as in an audit in memory."""


def audit_of(
    found: Audit, tally: Tally, plan: TallyPlan, *, confidence: float, min_size: int
) -> Audit:
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
    n = tally.counts.n_samples
    groups = {name: counts for name, counts in tally.counts.groups.items() if counts.n_samples}
    proof = None
    if found.certificate is not None:
        proof = certificates.certify_counts(
            replace(tally.counts, groups=groups),
            is_randomized=tally.counts.gap is not None,
            confidence=confidence,
        )
    table = _group_table(tally, groups, plan, found)
    scan = found.scan
    old = found.notes
    if tally.scan is not None and plan.layout is not None:
        leaks = found.scan[found.scan["direction"] == POSSIBLE_LEAK]
        scan = with_leaks(tally.scan.frame(plan.layout, min_size), leaks)
        old = tuple(note for note in found.notes if not says_no_scan(note))
    return replace(
        found,
        n_samples=n,
        scores=_scores(found.scores, table.iloc[0]),
        groups=_tables.with_scanned_as(table, scan),
        scan=scan,
        worst_groups=_worst_groups(found.worst_groups, table.iloc[0], proof),
        certificate=proof,
        histogram=_histogram(tally),
        calibration=_curve(tally.counts),
        notes=(*_notes(tally, groups, found.n_samples, has_leaks=len(found.leaks) > 0), *old),
    )


def _notes(tally: Tally, groups: Container[str], searched: int, *, has_leaks: bool) -> list[str]:
    of_all = ["averages", "named groups"]
    of_some = ["scores", "learned groups", "worst groups in hindsight"]
    (of_some if tally.scan is None else of_all).append("scanned groups")
    of_some += ["possible leaks"] if has_leaks else []
    notes = [
        (
            f"{', '.join(of_all)} and what is proven are of all {tally.counts.n_samples:,} rows;"
            f" errors of averages and named groups are counted in bins, within {1 / (2 * PIT_BINS):.5f}"
            " of the exact ones"
        ),
        f"{', '.join(of_some)} are of {searched:,} rows chosen at random",
    ]
    return notes + [
        f"no row of group {name!r} is left" for name in tally.counts.groups if name not in groups
    ]


def _worst_groups(
    some: pd.DataFrame, everyone: pd.Series[Any], proof: certificates.PITCertificate | None
) -> pd.DataFrame:
    """Worst groups of some rows, with what is certified of all.

    The group of everybody is not searched for.
    """
    bounds = [np.nan if proof is None else proof.group_error(mass) for mass in some["mass"]]
    table = some.assign(certified=bounds)
    is_all = some["mass"] == 1
    smaller = np.sqrt(some["n"] / everyone["n"])
    for name in ("null_mean", "null_low", "null_high"):
        table[name] = table[name].mask(is_all, table[name] * smaller)
    return table.assign(
        n=some["n"].mask(is_all, everyone["n"]), error=some["error"].mask(is_all, everyone["error"])
    )


def _scores(scores: pd.DataFrame, everyone: pd.Series[Any]) -> pd.DataFrame:
    """Scores of which those that PITs give are of everybody."""
    columns = {
        f"{stated(level)} coverage": f"coverage_{level * 100:.0f}" for level in _tables.LEVELS
    }
    columns["average error"] = "error"
    rows = scores.to_dict("records")
    for row in rows:
        if (column := columns.get(row["measure"])) is not None:
            row |= {
                "value": everyone[column],
                "low": everyone[f"{column}_low"],
                "high": everyone[f"{column}_high"],
            }
    return pd.DataFrame(rows, columns=scores.columns)


def _group_table(
    tally: Tally, groups: dict[str, PITCounts], plan: TallyPlan, found: Audit
) -> pd.DataFrame:
    """Everybody and the named groups; `found` is of the rows chosen at random."""
    margins = {row["group"]: _margin(dict(row)) for row in found.groups.to_dict("records")}
    known = {group.name: group for partition in plan.groups for group in partition.groups}
    return _tables.group_frame(
        [
            _row(
                known.get(name, Group.given(name)),
                counts,
                tally.moments[name],
                plan.centre,
                margins.get(name),
            )
            for name, counts in ({"everyone": tally.counts} | groups).items()
        ],
        found.leaks,
    )


def _margin(row: dict[Any, Any]) -> float | None:
    """How far the error of a sample of one row may be from the true one.

    None of too few rows to tell.
    """
    return None if row["too_small"] else (row["error_high"] - row["error"]) * np.sqrt(row["n"])


def _row(
    group: Group, counts: PITCounts, sums: Wholes, centre: float, margin: float | None
) -> dict[str, Any]:
    n = counts.n_samples
    mean_pit, excess, square = rounded(sums) / n
    variance = max(square - excess**2, 0.0) / n if n >= 2 else np.nan
    coverage = {level: _coverage(counts, level) for level in _tables.LEVELS}
    bias = _tables.mean_band(float(centre + excess), float(variance))
    is_small = n < _tables.SMALL_GROUP
    return _tables.group_row(
        group, n, _error(counts, margin), float(mean_pit), bias, coverage, is_small
    )


def _error(counts: PITCounts, margin: float | None) -> tuple[float, float, float]:
    """W1 error with its band: that of the rows chosen at random shrinks as 1 / sqrt(n), as in an audit in memory."""
    error = binned_error(counts)
    if margin is None:
        return error, *binned_error_interval(counts.one_draw, CONFIDENCE)
    spread = margin / np.sqrt(counts.n_samples)
    return error, max(error - spread, 0.0), min(error + spread, 0.5)


def _coverage(counts: PITCounts, level: float) -> dict[str, float]:
    inside = counts.inside[level]
    n = counts.n_samples
    shares = np.arange(inside.size) / counts.n_draws
    mean = float(inside @ shares) / n
    return _tables.share_band(mean, float(inside @ (shares - mean) ** 2) / n**2, n)


def _histogram(tally: Tally) -> pd.DataFrame:
    n = tally.counts.n_samples
    m = tally.counts.n_draws
    draws, squares = tally.bars / np.array([[m], [m**2]])
    low, high = histogram_band((squares - 2 / BARS * draws + n / BARS**2) / n**2, m)
    edges = np.arange(BARS + 1) / BARS
    return pd.DataFrame(
        {"start": edges[:-1], "end": edges[1:], "share": draws / n, "low": low, "high": high}
    )


def _curve(counts: PITCounts) -> pd.DataFrame:
    below = np.cumsum(counts.pit) / counts.pit.sum()
    return curve_table(below[np.rint(LEVELS * PIT_BINS).astype(np.intp) - 1], counts.n_samples)
