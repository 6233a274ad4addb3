"""What the paper says of Communities and Crime, claim by claim, with our numbers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pandas as pd

from evenhand._validate import Floats
from evenhand.studies.crime_split import LIKELIHOOD, MASS, MASSES, NETWORK, PAIC
from evenhand.studies.verdicts import NEGLIGIBLE, Claim, interval, judged

MOSTLY = 0.9
"""What "almost always" asks of the pairs of alphas, at least."""

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
"""Kinds of features in the paper's table of least calibrated groups, by parts of their names."""


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
    return judged(_measured(network, features))


def at_mass(row_errors: list[float]) -> float:
    """Error of the worst group of mass `MASS`, from a curve over `MASSES`."""
    return float(np.interp(MASS, MASSES, row_errors))


def _measured(network: pd.DataFrame, features: list[str]) -> Iterator[Claim]:
    def gap(column: str, recalibrated: bool) -> Floats:
        """What alpha 1 has more than alpha 0.1, by split."""
        return _of(network, column, LIKELIHOOD, recalibrated) - _of(
            network, column, PAIC, recalibrated
        )

    for recalibrated, how in ((False, ""), (True, ", recalibrated")):
        claim = f"A smaller alpha calibrates adversarial groups better{how}"
        measured = f"worst fifth: error at alpha {LIKELIHOOD:g} less that at {PAIC:g}"
        yield claim, measured, gap("worst_error", recalibrated), 0.0, True
        measured = f"share of pairs of alphas in this order, {MOSTLY:g} at least"
        yield (
            f"... and does so almost always{how}",
            measured,
            _ordered(network, recalibrated),
            MOSTLY,
            True,
        )
        claim = f"A smaller alpha calibrates interpretable groups better{how}"
        yield (
            claim,
            "worst of the scan: the same difference",
            gap("interpretable_error", recalibrated),
            0.0,
            True,
        )
        for column, name in (
            ("nll", "log score"),
            ("cell_log_score", "cell log score"),
            ("mean_std", "mean std"),
        ):
            claim = f"A smaller alpha is less sharp{how}"
            measured = f"{name} at alpha {PAIC:g} less that at {LIKELIHOOD:g}"
            yield claim, measured, -gap(column, recalibrated), 0.0, True
        yield (
            f"A smaller alpha is better at every group size{how}",
            *_least_gap(network, recalibrated),
            0.0,
            True,
        )
    for alpha in (PAIC, LIKELIHOOD):
        before, after = (_of(network, "average_error", alpha, given) for given in (False, True))
        claim = f"Recalibration improves average calibration, alpha {alpha:g}"
        yield claim, "error before less after", before - after, 0.0, True
        before, after = (_of(network, "worst_error", alpha, given) for given in (False, True))
        claim = f"Recalibration does not improve adversarial groups, alpha {alpha:g}"
        measured = f"worst fifth: error before less after, {NEGLIGIBLE:g} at most"
        yield claim, measured, before - after, NEGLIGIBLE, False
    usual = usual_share(features)
    measured = (
        "share of splits whose worst group is of a kind in the paper's table; of pairs of features"
        f" {usual:.2f} are"
    )
    for alpha in (PAIC, LIKELIHOOD):
        own = network[(network["alpha"] == alpha) & ~network["recalibrated"]]
        named = np.array([bool(kinds_of(group)) for group in own["interpretable_group"]])
        yield (
            f"The least calibrated groups are ones to protect, alpha {alpha:g}",
            measured,
            named,
            usual,
            True,
        )


def _of(network: pd.DataFrame, column: str, alpha: float, recalibrated: bool) -> Floats:
    """A measure at one alpha, by split."""
    own = network[
        (network["alpha"] == alpha) & (network["recalibrated"] == recalibrated)
    ].sort_values("seed")
    return own[column].to_numpy(dtype=np.float64)


def _ordered(network: pd.DataFrame, recalibrated: bool) -> Floats:
    """Share of pairs of alphas of which the smaller one has the smaller worst-group error, by split."""
    shares = []
    for _, own in network[network["recalibrated"] == recalibrated].groupby("seed"):
        errors = own.sort_values("alpha")["worst_error"]
        shares.append(np.mean([first < second for first, second in combinations(errors, 2)]))
    return np.array(shares)


def _least_gap(network: pd.DataFrame, recalibrated: bool) -> tuple[str, Floats]:
    """Difference of the errors at the group size where its lower end is least."""
    curves = []
    for alpha in (LIKELIHOOD, PAIC):
        own = network[
            (network["alpha"] == alpha) & (network["recalibrated"] == recalibrated)
        ].sort_values("seed")
        curves.append(np.array(own["worst_errors"].tolist()))
    gaps = curves[0] - curves[1]
    at = (
        int(np.argmin([interval(gap)[1] for gap in gaps.T]))
        if len(gaps) > 1
        else int(gaps.argmin())
    )
    return (
        f"the same difference at the size where it is surest to be least, {MASSES[at]:g}",
        gaps[:, at],
    )


def kinds_of(group: str) -> list[str]:
    """Kinds of the paper's table that a group's name speaks of."""
    text = group.lower()
    return [kind for kind, parts in KINDS.items() if any(part in text for part in parts)]


def usual_share(features: list[str]) -> float:
    """Share of pairs of features with one of those kinds among them."""
    named = np.mean([bool(kinds_of(feature)) for feature in features])
    return float(1 - (1 - named) ** 2)
