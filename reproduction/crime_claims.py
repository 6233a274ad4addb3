"""Claims of the paper about Communities and Crime, with verdicts from new splits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

import numpy as np
import pandas as pd

from evenhand._validate import Floats
from reproduction.crime_split import MASSES
from reproduction.sweep import LIKELIHOOD, NETWORK, PAIC, recalibration_claim, values_at
from reproduction.verdicts import Claim, interval, judge

MOSTLY = 0.9
"""Smallest share of pairs of alphas that counts as "almost always"."""

KINDS = {
    "immigration": ("immig", "foreign", "speakengl"),
    "race": ("race", "black", "white", "asian", "hisp", "indian"),
    "housing": (
        "housvac",
        "housless",
        "densehous",
        "vacant",
        "ownocc",
        "rent",
        "nophone",
        "plumb",
        "housoccup",
        "numbr",
    ),
    "population": ("population", "popdens", "numburban", "landarea"),
    "police": ("lemas", "police", "officer", "drug"),
}
"""Kinds of features in the paper's table of least calibrated groups, by substrings of names."""


def crime_claims_of(rows: pd.DataFrame, features: list[str]) -> pd.DataFrame:
    """Decide the paper's claims, each by its 95% interval over splits.

    Parameters
    ----------
    rows : DataFrame
        Rows of one protocol: `seed, forecaster, alpha, recalibrated` and the measures of
        `measure_split`.
    features : list of str
        Features that define groups.
    """
    network = rows[rows["forecaster"] == NETWORK]
    return judge(_claims(network, features))


def _claims(network: pd.DataFrame, features: list[str]) -> Iterator[Claim]:
    for recalibrated, how in ((False, ""), (True, ", recalibrated")):
        yield from _claims_of_alphas(network, recalibrated, how)
    for alpha in (PAIC, LIKELIHOOD):
        before, after = (values_at(network, "average_error", alpha, own) for own in (False, True))
        claim = f"Recalibration improves average calibration, alpha {alpha:g}"
        yield Claim(claim, "error before minus after", before - after)
        yield recalibration_claim(network, alpha)
    # scanned groups have at most two features: the share among random pairs is the baseline
    usual = usual_share(features)
    measured = (
        "share of splits whose worst group involves a kind of feature in the paper's table;"
        f" {usual:.2f} of random pairs of features do"
    )
    for alpha in (PAIC, LIKELIHOOD):
        own = network[(network["alpha"] == alpha) & ~network["recalibrated"]]
        named = np.array([bool(kinds_of(used)) for used in own["interpretable_features"]])
        claim = f"The least calibrated groups are protected groups, alpha {alpha:g}"
        yield Claim(claim, measured, named, usual)


def _claims_of_alphas(network: pd.DataFrame, recalibrated: bool, how: str) -> Iterator[Claim]:
    """Yield claims that compare two alphas, for networks as trained or recalibrated."""

    def gap(column: str) -> Floats:
        """Return the measure at alpha 1 minus that at alpha 0.1, by split."""
        at_likelihood = values_at(network, column, LIKELIHOOD, recalibrated)
        return at_likelihood - values_at(network, column, PAIC, recalibrated)

    claim = f"A smaller alpha calibrates adversarial groups better{how}"
    measured = f"worst fifth: error at alpha {LIKELIHOOD:g} minus that at {PAIC:g}"
    yield Claim(claim, measured, gap("worst_error"))
    measured = f"share of pairs of alphas in this order, at least {MOSTLY:g}"
    claim = f"... and does so almost always{how}"
    yield Claim(claim, measured, _ordered(network, recalibrated), MOSTLY)
    claim = f"A smaller alpha calibrates interpretable groups better{how}"
    yield Claim(claim, "worst scanned group: the same difference", gap("interpretable_error"))
    for column, name in (
        ("nll", "log score"),
        ("cell_log_score", "cell log score"),
        ("mean_std", "mean std"),
    ):
        measured = f"{name} at alpha {PAIC:g} minus that at {LIKELIHOOD:g}"
        yield Claim(f"A smaller alpha is less sharp{how}", measured, -gap(column))
    claim = f"A smaller alpha is better at every group size{how}"
    yield Claim(claim, *_least_gap(network, recalibrated))


def _ordered(network: pd.DataFrame, recalibrated: bool) -> Floats:
    """Return the share of pairs of alphas with increasing worst-group errors, by split."""
    shares = []
    for _, own in network[network["recalibrated"] == recalibrated].groupby("seed"):
        errors = own.sort_values("alpha")["worst_error"]
        shares.append(np.mean([first < second for first, second in combinations(errors, 2)]))
    return np.array(shares)


def _least_gap(network: pd.DataFrame, recalibrated: bool) -> tuple[str, Floats]:
    """Return the difference of errors at the group size with the smallest lower confidence end."""
    curves = []
    for alpha in (LIKELIHOOD, PAIC):
        own = network[
            (network["alpha"] == alpha) & (network["recalibrated"] == recalibrated)
        ].sort_values("seed")
        curves.append(np.array(own["worst_errors"].tolist()))
    gaps = curves[0] - curves[1]
    # the hardest size for the claim: the smallest lower end of the difference
    lower_ends = [interval(gap)[1] for gap in gaps.T] if len(gaps) > 1 else gaps[0]
    at = int(np.argmin(lower_ends))
    return (
        f"the same difference at the size with the smallest lower end, {MASSES[at]:g}",
        gaps[:, at],
    )


def kinds_of(features: Iterable[str]) -> list[str]:
    """Return the kinds, as in the paper's table, of the features that define a group."""
    text = " ".join(features).lower()
    return [kind for kind, parts in KINDS.items() if any(part in text for part in parts)]


def usual_share(features: list[str]) -> float:
    """Return the share of pairs of features that include one of these kinds."""
    named = np.mean([bool(kinds_of([feature])) for feature in features])
    # the complement: neither feature is of such a kind
    return float(1 - (1 - named) ** 2)
