"""What the paper says of Communities and Crime, claim by claim, with our numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from evenhand._checks import Floats
from evenhand.experiments._crime_split import MASS, MASSES, NETWORK

CONFIDENCE = 0.95
NEGLIGIBLE = 0.02
"""An improvement by less than this counts as none: the errors that it is compared with are ten times as large."""

PAIC, LIKELIHOOD = 0.1, 1.0
"""The alphas that the paper compares."""

KINDS = {
    "immigration": ("immig", "foreign", "speakengl", "recent", "bornsame"),
    "race": ("race", "black", "white", "asian", "hisp", "indian"),
    "housing": ("hous", "vac", "bed", "rent", "occup", "plumb", "phone"),
    "population": ("population", "popdens", "numburban", "landarea"),
    "police": ("lemas", "police", "officer", "drug"),
}
"""Kinds of features in the paper's table of least calibrated groups, by parts of their names."""

Verdict = Literal["holds", "does not hold", "undecided"]


def interval(values: Floats) -> tuple[float, float, float]:
    """Mean over splits and the ends of its 95% t interval, of yes and no Clopper and Pearson's; NaN for one split."""
    mean, n = float(np.mean(values)), len(values)
    if n < 2:
        return mean, np.nan, np.nan
    if np.isin(values, (0, 1)).all():
        exact = stats.binomtest(round(mean * n), n).proportion_ci(CONFIDENCE)
        return mean, float(exact.low), float(exact.high)
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return mean, mean - half, mean + half


def claims(rows: pd.DataFrame, features: list[str]) -> pd.DataFrame:
    """Every claim as a row: what is claimed, what was measured, its 95% interval over splits, and whether it holds.

    Parameters
    ----------
    rows : DataFrame
        Of one protocol: `seed, forecaster, alpha, recalibrated` and what `one_split` measures.
    features : list of str
        Features that groups are made of.
    """
    network = rows[rows["forecaster"] == NETWORK]
    parts = [_claim(*each) for each in _measured(network, features)]
    return pd.DataFrame(parts, columns=["claim", "measured", "value", "low", "high", "verdict"])


def at_mass(row_errors: list[float], mass: float = MASS) -> float:
    """Error of the worst group of a mass, from a curve over `MASSES`."""
    return float(np.interp(mass, MASSES, row_errors))


def _claim(claim: str, measured: str, values: Floats, least: float) -> tuple[str, str, float, float, float, Verdict]:
    """A claim that the mean of `values` is above `least`."""
    mean, low, high = interval(values)
    verdict: Verdict = "undecided"
    if low > least:
        verdict = "holds"
    elif high < least:
        verdict = "does not hold"
    return claim, measured, mean, low, high, verdict


def _measured(network: pd.DataFrame, features: list[str]) -> Iterator[tuple[str, str, Floats, float]]:
    def gap(column: str | Callable[[pd.Series], float], recalibrated: bool) -> Floats:
        """What alpha 1 has more than alpha 0.1, by split."""
        return _of(network, column, LIKELIHOOD, recalibrated) - _of(network, column, PAIC, recalibrated)

    for recalibrated, how in ((False, ""), (True, ", recalibrated")):
        worst = gap(_worst, recalibrated)
        claim = f"A smaller alpha calibrates adversarial groups better{how}"
        yield claim, f"worst fifth: error at alpha {LIKELIHOOD:g} less that at {PAIC:g}", worst, 0.0
        yield f"... almost always{how}", "share of pairs of alphas in this order", _ordered(network, recalibrated), 0.5
        claim = f"A smaller alpha calibrates interpretable groups better{how}"
        yield claim, "worst of the scan: the same difference", gap("interpretable_error", recalibrated), 0.0
        for column, name in (("nll", "log score"), ("cell_log_score", "cell log score"), ("mean_std", "mean std")):
            claim = f"A smaller alpha is less sharp{how}"
            yield claim, f"{name} at alpha {PAIC:g} less that at {LIKELIHOOD:g}", -gap(column, recalibrated), 0.0
        yield f"A smaller alpha is better at every group size{how}", *_least_gap(network, recalibrated)
    for alpha in (PAIC, LIKELIHOOD):
        before, after = (_of(network, "average_error", alpha, given) for given in (False, True))
        yield (
            f"Recalibration improves average calibration, alpha {alpha:g}",
            "error before less after",
            before - after,
            0.0,
        )
        before, after = (_of(network, _worst, alpha, given) for given in (False, True))
        claim = f"Recalibration does not improve adversarial groups, alpha {alpha:g}"
        what = f"worst fifth: {NEGLIGIBLE:g} less the improvement"
        yield claim, what, NEGLIGIBLE - (before - after), 0.0
    usual = _usual_share(features)
    what = f"share of the kinds of the paper's table; of all pairs of features it is {usual:.2f}"
    for alpha in (PAIC, LIKELIHOOD):
        own = network[(network["alpha"] == alpha) & ~network["recalibrated"]]
        named = np.array([float(bool(kinds_of(group))) for group in own["interpretable_group"]])
        claim = f"The least calibrated groups are ones to protect, alpha {alpha:g}"
        yield (
            claim,
            f"share of the kinds of the paper's table; of all pairs of features it is {usual:.2f}",
            named,
            usual,
        )


def _worst(row: pd.Series) -> float:
    return at_mass(row["worst_errors"])


def _of(network: pd.DataFrame, column: str | Callable[[pd.Series], float], alpha: float, recalibrated: bool) -> Floats:
    """A measure at one alpha, by split."""
    own = network[(network["alpha"] == alpha) & (network["recalibrated"] == recalibrated)].sort_values("seed")
    values = own[column] if isinstance(column, str) else [column(row) for _, row in own.iterrows()]
    return np.asarray(values, dtype=np.float64)


def _ordered(network: pd.DataFrame, recalibrated: bool) -> Floats:
    """Share of pairs of alphas of which the smaller one has the smaller worst-group error, by split."""
    shares = []
    for _, own in network[network["recalibrated"] == recalibrated].groupby("seed"):
        errors = [_worst(row) for _, row in own.sort_values("alpha").iterrows()]
        shares.append(np.mean([first < second for first, second in combinations(errors, 2)]))
    return np.array(shares)


def _least_gap(network: pd.DataFrame, recalibrated: bool) -> tuple[str, Floats, float]:
    """Difference of the errors at the group size, under 1, where it is least on average."""
    curves = []
    for alpha in (PAIC, LIKELIHOOD):
        own = network[(network["alpha"] == alpha) & (network["recalibrated"] == recalibrated)].sort_values("seed")
        curves.append(np.array(own["worst_errors"].tolist()))
    gaps = (curves[1] - curves[0])[:, :-1]
    at = int(gaps.mean(axis=0).argmin())
    return f"least difference over sizes under 1, at {MASSES[at]:g}", gaps[:, at], 0.0


def kinds_of(group: str) -> list[str]:
    """Kinds of the paper's table that a group's name speaks of."""
    text = group.lower()
    return [kind for kind, parts in KINDS.items() if any(part in text for part in parts)]


def _usual_share(features: list[str]) -> float:
    """Share of pairs of features with one of those kinds among them."""
    named = np.mean([bool(kinds_of(feature)) for feature in features])
    return float(1 - (1 - named) ** 2)
