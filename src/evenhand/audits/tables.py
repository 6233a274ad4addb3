"""Tables of an audit: named groups, learned groups and oracle worst groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from evenhand import search
from evenhand._kinds import POSSIBLE_LEAK
from evenhand._validate import Floats, Ints
from evenhand.audits.outcomes import Simulate
from evenhand.audits.scores import BAND_ENDS, LEVELS, Band, bands_at
from evenhand.calibration import Cells, GroupSums, Interval, coverage_name, covered, holm
from evenhand.certificates import MASSES, WIDER_LEVELS, Certificate
from evenhand.distributions import OutcomeKind
from evenhand.search import Scanned
from evenhand.tables import Group, Groups

WORST_COLUMNS = ("mass", "n", "error", "null_mean", "null_low", "null_high", "certified")

SMALL_GROUP = 30
"""Effective number of rows below which a group is too small for reliable estimates."""

ESTIMATES = tuple(
    f"{measure}{end}"
    for measure in ("error", "bias", *map(coverage_name, LEVELS))
    for end in ("", "_low", "_high")
)
"""Columns of estimates and of their intervals, in the tables of named and of scanned groups."""

SCAN_COLUMNS = (
    *("group", "n", *ESTIMATES[:3], "direction", *ESTIMATES[3:]),
    *("p_value", "p_adjusted", "features"),
)
LEARNED_COLUMNS = (
    "mass",
    "n",
    "n_judged",
    "error",
    "low",
    "p_value",
    "direction",
    "bias",
    "coverage_80",
    "description",
    "description_share",
    "features",
)


def mean_pits(cells: Cells) -> Floats:
    """Return each person's mean PIT over draws and positions in the cells, shape (n,)."""
    return np.asarray((cells.low.mean(axis=-1) + cells.high.mean(axis=-1)) / 2)


def named_rows(
    cells: Cells,
    groups: Groups,
    names: Sequence[str],
    sums: GroupSums,
    intervals: Mapping[str, Interval],
    slopes: Mapping[str, Floats],
) -> list[dict[str, Any]]:
    """Return the rows of named groups from their sums, intervals and calibration slopes."""
    mean_pit = mean_pits(cells)
    estimates = sums.estimates
    further = sums.rates | dict(slopes)
    rows = []
    for i, name in enumerate(names):
        members = groups.membership(name)
        weights = members if cells.weights is None else members * cells.weights
        row = group_row(
            groups.what(name),
            round(float(members.sum())),
            bands_at(estimates, intervals, i),
            float(np.average(mean_pit, weights=weights)),
            bool(sums.n_effective[i] < SMALL_GROUP),
        )
        rows.append(row | {key: float(values[i]) for key, values in further.items()})
    return rows


def group_frame(rows: Sequence[Mapping[str, Any]], leaks: pd.DataFrame) -> pd.DataFrame:
    """Return the table of groups from its rows, with possible leaks marked."""
    # as objects: pandas would convert None to NaN
    column = pd.Series([row["column"] for row in rows], dtype=object)
    leaked = set(leaks.loc[leaks["kind"] == "group", "name"])
    return pd.DataFrame(rows).assign(
        column=column, possible_leak=[row["group"] in leaked for row in rows]
    )


def scan_names(
    names: Iterable[str], scanned: Scanned | None, leaks: Scanned | None
) -> pd.Series[Any]:
    """Return the name under which the scan lists each group's rows; None if it does not."""
    listed: dict[str, str] = {}
    for scan in (scanned, leaks):
        if scan is not None:
            listed |= {name: scan.name(place) for name, place in scan.places.items()}
            listed |= {name: name for name in scan.few}
    # as objects: pandas would convert None to NaN
    return pd.Series([listed.get(name) for name in names], dtype=object)


def scan_frame(
    scanned: Scanned | None,
    leaks: Scanned | None,
    adjusted: Floats,
    family: tuple[int, float, float],
    slopes: Mapping[str, Floats],
    covered: Sequence[float],
) -> pd.DataFrame:
    """Return the table of scanned groups; possible leaks are listed last, without tests.

    `family` is the number of groups, their error probability and that of the whole audit.
    """
    found = [] if scanned is None else [scanned.table(adjusted, *family, slopes)]
    if leaks is not None:
        unknown = np.full(len(leaks.sums), np.nan)
        listed = leaks.table(unknown, *family)
        found.append(listed.assign(direction=POSSIBLE_LEAK, p_value=np.nan))
    some = [table for table in found if len(table)]
    if not some:
        uncovered = tuple(coverage_name(level) for level in LEVELS if level not in covered)
        return pd.DataFrame(columns=[c for c in SCAN_COLUMNS if not c.startswith(uncovered)])
    return pd.concat(some, ignore_index=True) if len(some) > 1 else some[0]


def with_named(scan: pd.DataFrame, groups: pd.DataFrame) -> pd.DataFrame:
    """Return the scan with the estimates and intervals that named groups of the same rows have.

    Errors of scanned groups are otherwise those of histograms, or of a sample of the rows.
    """
    named = groups.dropna(subset="scanned_as").drop_duplicates("scanned_as").set_index("scanned_as")
    # named groups that are too small for the scan have no estimates there
    is_named = (scan["group"].isin(named.index) & scan["error"].notna()).to_numpy()
    same = named.loc[scan.loc[is_named, "group"]]
    shared = [name for name in ESTIMATES if name in scan]
    columns = {name: scan[name].to_numpy(copy=True) for name in shared}
    for name, values in columns.items():
        values[is_named] = same[name].to_numpy()
    return scan.assign(**columns)


def group_row(
    group: Group, n: int, bands: Mapping[str, Band], mean_pit: float, too_small: bool
) -> dict[str, Any]:
    """Return a row of the table of groups; `bands` begin with that of the error."""
    row: dict[str, Any] = {"group": group.name, "n": n}
    for key, band in bands.items():
        row |= {key + end: band[name] for name, end in BAND_ENDS.items()}
        row.setdefault("mean_pit", mean_pit)
    return row | {"too_small": too_small, "column": group.column}


def worst_group_table(
    cells: Cells,
    masses: Sequence[float],
    certificate: Certificate | None,
    n_simulations: int,
    random: np.random.Generator,
    simulate: Simulate | None = None,
) -> pd.DataFrame:
    """Return the oracle worst group of each size, its null distribution and the certified bound.

    Outcomes with cells are simulated from their forecasts for the null distribution. Where the
    forecasts are not known, it is that of continuous outcomes, whose errors are larger: an oracle
    chooses among more distinct PITs.
    """
    # random starts have a fixed seed, so the group does not depend on the searches before
    curve = search.worst_group_curve(cells, masses, random_state=0)
    table = pd.DataFrame(
        {"mass": curve.masses, "n": [rows.size for rows in curve.rows], "error": curve.errors}
    )
    # an oracle finds groups in calibrated forecasts, too (method: worst groups)
    null = search.null_curve(
        cells, masses, n_simulations=n_simulations, random_state=random, simulate=simulate
    )
    table["null_mean"] = null.mean
    table["null_low"] = null.low
    table["null_high"] = null.high
    return table.assign(certified=certified_errors(certificate, table["mass"]))


def certified_errors(certificate: Certificate | None, masses: Iterable[float]) -> list[float]:
    """Return the bounds for the errors of every group of shares of all people; NaN without one."""
    # bounds of a hurdle are for shares of the people whose outcome is not the atom
    if certificate is None or certificate.kind is OutcomeKind.HURDLE:
        return [np.nan for _ in masses]
    return [certificate.group_error(mass) for mass in masses]


def learned_rows(found: Sequence[search.FoundGroup], kept: Ints) -> pd.DataFrame:
    """Return the rows of each learned group by their numbers in the given table."""
    return pd.DataFrame(
        {
            "mass": np.repeat([group.mass for group in found], [group.n for group in found]),
            "row": np.concatenate([np.empty(0, np.intp), *(kept[group.rows] for group in found)]),
            "id": None,
        }
    )


def learned_table(
    found: Sequence[search.FoundGroup], factor: float, *, is_event: bool
) -> pd.DataFrame:
    """Return the table of learned groups, one row per size.

    `factor` scales their adjusted p-values for comparison with the error probability of the audit.

    Given the forecast, the W1 error of 0/1 outcomes is half the difference of event rate and
    probability (outcomes: Theorem 4.1), which is their error here.
    """
    # as objects: pandas would convert None to NaN
    columns = {
        key: pd.Series([getattr(group, key) for group in found], dtype=object)
        for key in LEARNED_COLUMNS
    }
    numbers = [key for key in columns if key not in ("direction", "description", "features")]
    types: dict[str, type] = dict.fromkeys(numbers, float) | {"n": int, "n_judged": int}
    table = pd.DataFrame(columns).astype(types)
    adjusted = holm(table["p_value"].to_numpy())
    table = table.assign(p_adjusted=np.minimum(adjusted * factor, 1.0))
    if not is_event:
        return table
    return table.assign(error=2 * table["error"], low=2 * table["low"]).drop(columns="coverage_80")


# --- intervals without a draw

PLAIN_COLUMNS = ("level", "mass", "floor", "covered", "width")


def relative_widths(plain: Floats, served_80: Floats | None) -> dict[float, float]:
    """Return mean widths without a draw by level, divided by that of the served 80% intervals.

    The widths have shapes (n, 4) and (n,). Empty if the served intervals have no width, or if
    widths are not scored.
    """
    if served_80 is None:
        return {}
    served = float(served_80.mean())
    if not 0 < served < np.inf:
        return {}
    return dict(zip(WIDER_LEVELS, (plain.mean(axis=0) / served).tolist(), strict=True))


def plain_table(
    proof: Certificate | None, widths: Mapping[float, float] | None = None
) -> pd.DataFrame:
    """Return the floors of intervals without a draw, by level and group size.

    Parameters
    ----------
    proof : Certificate or None
        Certificate of a deterministic forecaster or of a link around one.
    widths : mapping of float to float, optional
        Relative width by level, from `relative_widths`.

    Returns
    -------
    DataFrame
        Columns: `level`, `mass`, `floor` (lower bound for the coverage in every group), `covered`
        (estimated coverage of all people) and `width` (NaN if unknown). Empty without a certificate
        and for other forecasters.
    """
    ratios = widths or {}
    rows = [
        (one.level, one.mass, one.floor, one.covered, ratios.get(one.level, np.nan))
        for mass in MASSES
        for one in ([] if proof is None else proof.plain_intervals(mass))
    ]
    return pd.DataFrame(rows, columns=list(PLAIN_COLUMNS))


# --- bounds for groups whose members are known by probability

MEMBERSHIP_COLUMNS = (
    "group",
    "members",
    *(f"{coverage_name(level)}_{end}" for level in LEVELS for end in ("least", "most")),
    "bias_least",
    "bias_most",
)

BIN_ROWS = 100
"""Smallest number of rows with similar probabilities that are compared with each other."""

MOST_BINS = 20
"""Largest number of bins of similar probabilities."""


def membership_table(
    cells: Cells, residual: Floats | None, groups: Groups, confidence: float
) -> pd.DataFrame:
    """Return bounds for the coverage and the bias of each group known by probability.

    The bounds allow for any relation between membership and outcome: see `mean_bounds`. There are
    none where times are cut off, whose coverage is not known.

    Returns
    -------
    DataFrame
        One row per group: `group`, the expected number of `members`, and for each measure the ends
        `least` and `most` of an interval that contains the value of the group with the stated
        confidence, separately for each measure.
    """
    weights = np.ones(cells.n_samples) if cells.weights is None else cells.weights
    rows = []
    for group, shares in groups.probable() if not cells.unknown.any() else ():
        row: dict[str, str | float] = {"group": group.name, "members": float(shares.sum())}
        values = {coverage_name(level): covered(cells, level) for level in LEVELS}
        if residual is not None:
            values["bias"] = residual
        for key, one in values.items():
            low, high = mean_bounds(one, shares, weights, confidence)
            is_share = key != "bias"
            row[f"{key}_least"] = max(low, 0.0) if is_share else low
            row[f"{key}_most"] = min(high, 1.0) if is_share else high
        rows.append(row)
    return pd.DataFrame(rows, columns=list(MEMBERSHIP_COLUMNS))


def mean_bounds(
    values: Floats, shares: Floats, weights: Floats, confidence: float = 0.95
) -> tuple[float, float]:
    """Return bounds for the mean of a group, whatever the relation of membership and values.

    People with a probability of membership `p` have an unknown part `p` who are members. Their mean
    value is largest if these are the people with the largest values. The bounds compare people
    within bins of similar probabilities, so they are slightly wider than the sharpest bounds given
    the probabilities. They assume that the probabilities are correct on average in each bin.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Value of each person, such as the share of draws whose interval covers the outcome.
    shares : ndarray of shape (n,)
        Probabilities of membership, not all 0.
    weights : ndarray of shape (n,)
        Weights of the rows.
    confidence : float, default 0.95
        Confidence that both bounds hold, asymptotically.

    References
    ----------
    Kallus, Mao & Zhou, Assessing algorithmic fairness with unobserved protected class using data
    combination, Management Science, 2022.

    Examples
    --------
    >>> values = np.repeat([0.0, 1.0], 500)
    >>> low, high = mean_bounds(values, np.full(1000, 0.8), np.ones(1000))
    >>> 0.33 < low < 3 / 8 and 5 / 8 < high < 0.67  # at least 0.3 of 0.8 have 0, at most 0.5
    True
    """
    low = -_upper_bound(-values, shares, weights, confidence)
    return low, _upper_bound(values, shares, weights, confidence)


def _upper_bound(values: Floats, shares: Floats, weights: Floats, confidence: float) -> float:
    """Return the upper end of a confidence interval for the largest possible mean."""
    total = float(weights @ shares)
    best = np.empty(values.size)
    for rows in _bins(shares):
        size = float(weights[rows] @ shares[rows])
        cut = _cut(values[rows], weights[rows], size)
        # the largest sum of members' values is size * cut + sum of the excesses over the cut
        best[rows] = shares[rows] * cut + np.maximum(values[rows] - cut, 0.0)
    bound = float(weights @ best) / total
    # the derivative in the cut is 0 at the optimum, so its sampling error has no effect
    influence = weights * (best - shares * bound) / total
    return bound - float(special.ndtri((1 - confidence) / 2) * np.sqrt(influence @ influence))


def _bins(shares: Floats) -> Iterable[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    """Yield the rows of each bin of similar probabilities; equal ones are in one bin."""
    order = np.argsort(shares, kind="stable")
    count = min(MOST_BINS, max(shares.size // BIN_ROWS, 1))
    rising = shares[order]
    cuts = rising[np.rint(np.linspace(0, shares.size, count + 1)[1:-1]).astype(np.intp)]
    ends = np.unique([0, *np.searchsorted(rising, cuts), shares.size])
    for start, stop in pairwise(ends):
        yield order[start:stop]


def _cut(values: Floats, weights: Floats, size: float) -> float:
    """Return the value above which people have a total weight of `size`."""
    falling = np.argsort(-values, kind="stable")
    at = int(np.searchsorted(np.cumsum(weights[falling]), size))
    return float(values[falling[min(at, values.size - 1)]])
